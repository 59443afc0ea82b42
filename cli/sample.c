/* sample.c - `hollow sample`: rows from a density model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { CHUNK = 4096 };

typedef struct settings {
    uint64_t threads, rows, seed;
    const char *out, *context;
} settings;

static const cli_option options[] = {
    { "n", CLI_INTEGER, offsetof(settings, rows), "N",
      "how many rows; default 1000, or one for each row of the context", 1, 1e15, NULL },
    { "seed", CLI_INTEGER, offsetof(settings, seed), "N", "other seeds give other rows; default 0", 0, 9e15, NULL },
    { "context", CLI_TEXT, offsetof(settings, context), "FILE", "values of the context columns, a row for each sample",
      0, 0, NULL },
    { "out", CLI_TEXT, offsetof(settings, out), "FILE", "write there (.csv or .npy) instead of stdout", 0, 0, NULL },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N", "default: all of the machine; changes no bit", 1, 256,
      NULL },
    { 0 },
};

static const char text[] =
    "Prints rows drawn from the model, in the units of the data, as csv with a header. The same\n"
    "seed gives the same rows, and more rows begin with the same ones.\n";

static int run(int argc, char **argv);
const cli_command cli_sample = {
    "sample", "MODEL [-n N] [--option VALUE ...]", "rows drawn from a density model", text, options, 1, 1, run
};

typedef struct job {
    hl_context *ctx;
    hl_density *model;
    hl_table *table; /* of the context */
    hl_table_writer *writer;
    size_t rows, c_columns;
    size_t *c_index;
    const char **names;
    double *x, *c;
    cli_progress progress;
} job;

static hl_status draw(job *j, uint64_t seed, size_t *failed)
{
    size_t dim = hl_density_dim(j->model);
    cli_progress_start(&j->progress, 0);
    for (size_t start = 0; start < j->rows; start += CHUNK) {
        size_t count = j->rows - start < CHUNK ? j->rows - start : CHUNK;
        hl_status status = HL_OK;
        if (j->table)
            status = hl_table_read_columns(j->table, start, count, j->c_columns, j->c_index, j->c);
        if (status != HL_OK)
            return status;
        status = hl_density_sample(j->model, seed, start, count, j->c, j->x);
        if (cli_interrupted())
            break;
        if (status == HL_ERR_NOMEM)
            return status;
        cli_show_rows(&j->progress, start + count, j->rows);
        for (size_t r = 0; r < count; r++)
            *failed += isnan(j->x[r * dim]) != 0;
        status = hl_table_write_rows(j->writer, count, j->x);
        if (status != HL_OK)
            return status;
    }
    cli_progress_end(&j->progress, false);
    return cli_interrupted() ? HL_STOPPED : hl_table_writer_finish(j->writer);
}

/* Open the table of the context, if the model has one, and find its columns. */
static int open_context(job *j, const settings *set)
{
    j->c_columns = hl_density_context(j->model);
    if (!j->c_columns != !set->context)
        return cli_fail(&cli_sample, CLI_WRONG,
                        set->context ? "the model has no context"
                                     : "the model has a context: give it by --context FILE");
    if (!set->context)
        return CLI_OK;
    hl_density_column *columns = cli_columns_of(j->model);
    hl_status status = columns ? cli_open_columns(j->ctx, set->context, &(hl_table_options){ 0 }, j->c_columns,
                                                  columns + hl_density_dim(j->model), &j->table)
                               : HL_ERR_NOMEM;
    free(columns);
    if (status != HL_OK)
        return cli_fail_library(&cli_sample, j->ctx, status);
    if (hl_table_rows(j->table) < j->rows && set->rows)
        return cli_fail(&cli_sample, CLI_WRONG, "%s: %zu rows for %zu samples", set->context, hl_table_rows(j->table),
                        j->rows);
    j->rows = set->rows ? j->rows : hl_table_rows(j->table);
    return cli_match_columns(&cli_sample, set->context, j->table, j->model, NULL, j->c_index);
}

static int sample(job *j, const settings *set)
{
    size_t dim = hl_density_dim(j->model), context = hl_density_context(j->model), failed = 0;
    j->rows = set->rows ? (size_t)set->rows : 1000;
    j->c_index = calloc(context + 1, sizeof *j->c_index);
    j->names = calloc(dim, sizeof *j->names);
    j->x = calloc(CHUNK * dim, sizeof *j->x);
    j->c = context ? calloc(CHUNK * context, sizeof *j->c) : NULL;
    if (!j->c_index || !j->names || !j->x || (context && !j->c))
        return cli_fail(&cli_sample, CLI_FAILED, "out of memory");
    int result = open_context(j, set);
    if (result != CLI_OK)
        return result;
    for (size_t i = 0; i < dim; i++)
        j->names[i] = hl_density_get_column(j->model, i).name;
    hl_status status =
        hl_table_writer_create(j->ctx, set->out ? set->out : "-", dim,
                               &(hl_table_writer_options){ .names = j->names, .rows = j->rows }, &j->writer);
    if (status == HL_OK)
        status = draw(j, set->seed, &failed);
    if (status == HL_STOPPED)
        return cli_fail(&cli_sample, CLI_STOPPED, "stopped");
    if (status != HL_OK)
        return cli_fail_library(&cli_sample, j->ctx, status);
    return failed
               ? cli_fail(&cli_sample, CLI_FAILED, "%zu of %zu rows could not be solved and are nan", failed, j->rows)
               : CLI_OK;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available() };
    const char *path[2];
    int result = cli_parse(&cli_sample, argc, argv, &set, path);
    if (result >= 0)
        return result;
    const cli_path paths[] = { { path[0], false, NULL }, { set.context, false, NULL }, { set.out, true, NULL } };
    if (cli_check_paths(&cli_sample, 3, paths) != CLI_OK)
        return CLI_WRONG;
    job j = { 0 };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_density_load(j.ctx, path[0], &j.model);
    result = status == HL_OK ? sample(&j, &set) : cli_fail_library(&cli_sample, j.ctx, status);
    hl_table_writer_free(j.writer);
    hl_table_free(j.table);
    hl_density_free(j.model);
    hl_context_free(j.ctx);
    free(j.c_index);
    free(j.names);
    free(j.x);
    free(j.c);
    return result;
}
