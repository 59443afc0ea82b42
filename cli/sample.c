/* sample.c - `hollow sample`: rows from a density model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { CHUNK = 4096 };

typedef struct settings {
    uint64_t threads, rows, seed, first;
    const char *out, *context;
    bool raw;
} settings;

static const cli_option options[] = {
    { "n", CLI_INTEGER, offsetof(settings, rows), "N",
      "number of rows; default 1000, or one for each row of the context", 1, 1e15, NULL },
    { "first", CLI_INTEGER, offsetof(settings, first), "F",
      "skip the first F rows and the header; '-n F' followed by '--first F' gives the whole sequence", 0, 1e15, NULL },
    { "seed", CLI_INTEGER, offsetof(settings, seed), "N", "random seed; default 0", 0, 9e15, NULL },
    { "context", CLI_TEXT, offsetof(settings, context), "FILE", "values of the context columns, one row per sample", 0,
      0, NULL },
    { "raw", CLI_FLAG, offsetof(settings, raw), NULL, "do not round samples to the resolution of the data", 0, 0,
      NULL },
    { "out", CLI_TEXT, offsetof(settings, out), "FILE", "output file (.csv or .npy); default stdout", 0, 0, NULL },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N",
      "number of threads; default all. Does not change results", 1, 256, NULL },
    { 0 },
};

static const char text[] =
    "Prints rows drawn from the model as csv with a header, in the units of the data. The same seed\n"
    "gives the same rows; a larger -n appends rows to these.\n";

static int run(int argc, char **argv);
const cli_command cli_sample = {
    "sample", "MODEL [-n N] [--option VALUE ...]", "draw rows from a density model", text, options, 1, 1, run
};

typedef struct job {
    hl_context *ctx;
    hl_density *model;
    hl_table *table; /* of the context */
    hl_table_writer *writer;
    size_t first, rows, failed, c_columns;
    size_t *c_index;
    const char **names;
    double *x, *c;
    cli_json json;
    cli_progress progress;
} job;

static hl_status put(job *j, size_t count)
{
    size_t dim = hl_density_dim(j->model);
    for (size_t r = 0; r < count; r++)
        j->failed += isnan(j->x[r * dim]) != 0;
    if (j->writer)
        return hl_table_write_rows(j->writer, count, j->x);
    cli_json_rows(&j->json, count, dim, j->x);
    return HL_OK;
}

static hl_status draw(job *j, uint64_t seed)
{
    cli_progress_start(&j->progress, 0);
    for (size_t done = 0; done < j->rows;) {
        size_t start = j->first + done, count = j->rows - done < CHUNK ? j->rows - done : CHUNK;
        hl_status status = HL_OK;
        if (j->table)
            status = hl_table_read_columns(j->table, start, count, j->c_columns, j->c_index, j->c);
        if (status != HL_OK)
            return status;
        status = hl_density_sample(j->model, seed, start, count, j->c, j->x);
        if (cli_interrupted())
            return HL_STOPPED;
        if (status == HL_ERR_NOMEM)
            return status;
        done += count;
        cli_show_rows(&j->progress, done, j->rows);
        status = put(j, count);
        if (status != HL_OK)
            return status;
    }
    cli_progress_end(&j->progress, false);
    return j->writer ? hl_table_writer_finish(j->writer) : HL_OK;
}

/* Rows go to a table or, with --json and without a file for them, into the object. */
static hl_status draw_rows(job *j, const settings *set)
{
    size_t dim = hl_density_dim(j->model);
    hl_table_writer_options how = { .names = set->first ? NULL : j->names, .rows = j->rows };
    hl_status status = HL_OK;
    for (size_t i = 0; i < dim; i++)
        j->names[i] = hl_density_get_column(j->model, i).name;
    j->json = (cli_json){ .file = stdout };
    if (cli_json_wanted())
        cli_json_open_table(&j->json, dim, j->names);
    if (cli_json_wanted() && !set->out)
        cli_json_open(&j->json, "sample", '[');
    else
        status = hl_table_writer_create(j->ctx, set->out ? set->out : "-", dim, &how, &j->writer);
    if (status == HL_OK)
        status = draw(j, set->seed);
    if (status != HL_OK || !cli_json_wanted())
        return status;
    cli_json_close_rows(&j->json, set->out);
    cli_json_count(&j->json, "rows", j->rows);
    cli_json_count(&j->json, "failed", j->failed);
    cli_json_close(&j->json, '}');
    putchar('\n');
    return HL_OK;
}

/* Open the table of the context, if the model has one, and find its columns. */
static int open_context(job *j, const settings *set)
{
    j->c_columns = hl_density_context(j->model);
    if (!j->c_columns != !set->context)
        return cli_fail(&cli_sample, CLI_WRONG,
                        set->context ? "the model has no context"
                                     : "the model has a context; provide it with --context FILE");
    if (!set->context)
        return CLI_OK;
    hl_status status =
        cli_open_data(j->ctx, set->context, &(hl_table_options){ 0 }, j->model, hl_density_dim(j->model), false, &j->table);
    if (status != HL_OK)
        return cli_fail_library(&cli_sample, j->ctx, status);
    size_t there = hl_table_rows(j->table);
    if (there < j->first || (set->rows && there - j->first < j->rows))
        return cli_fail(&cli_sample, CLI_WRONG, "%s: %zu rows for %zu samples", set->context, there,
                        j->first + (set->rows ? j->rows : 0));
    j->rows = set->rows ? j->rows : there - j->first;
    return cli_match_columns(&cli_sample, set->context, j->table, j->model, NULL, j->c_index);
}

static int sample(job *j, const settings *set)
{
    size_t dim = hl_density_dim(j->model), context = hl_density_context(j->model);
    j->rows = set->rows ? (size_t)set->rows : 1000;
    j->first = (size_t)set->first;
    j->c_index = calloc(context + 1, sizeof *j->c_index);
    j->names = calloc(dim, sizeof *j->names);
    j->x = calloc(CHUNK * dim, sizeof *j->x);
    j->c = context ? calloc(CHUNK * context, sizeof *j->c) : NULL;
    if (!j->c_index || !j->names || !j->x || (context && !j->c))
        return cli_no_memory(&cli_sample);
    hl_density_set_rounding(j->model, !set->raw);
    int result = open_context(j, set);
    if (result != CLI_OK)
        return result;
    hl_status status = draw_rows(j, set);
    if (status == HL_STOPPED)
        return cli_fail(&cli_sample, CLI_STOPPED, "stopped");
    if (status != HL_OK)
        return cli_fail_library(&cli_sample, j->ctx, status);
    return j->failed ? cli_fail(&cli_sample, CLI_FAILED, "%zu of %zu rows could not be solved and are nan", j->failed,
                                j->rows)
                     : CLI_OK;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available() };
    const char *path[2];
    int result = cli_parse(&cli_sample, argc, argv, &set, path);
    if (result >= 0)
        return result;
    const cli_path paths[] = { { path[0], CLI_READ, NULL },
                               { set.context, CLI_READ, NULL },
                               { set.out, CLI_TABLE, NULL } };
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
