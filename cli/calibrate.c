/* calibrate.c - `hollow calibrate`: the cheapest solver with which a model's log-densities are accurate enough. */
#include <math.h>
#include <stdlib.h>

#include "cli.h"

enum { MOST_ROWS = 4096 /* read; the library looks at some of them */ };

typedef struct settings {
    uint64_t threads;
    double accuracy;
    const char *out, *columns, *array;
    bool drop;
} settings;

#define AT(member) offsetof(settings, member)
static const cli_option options[] = {
    { "o", CLI_TEXT, AT(out), "FILE", "write the model with the new solver to FILE; default: print the solver only", 0,
      0, NULL },
    { "accuracy", CLI_REAL, AT(accuracy), "X",
      "error in nats allowed for 99 % of the rows, and 20 times that for all; default 5e-4", 1e-12, 1, NULL },
    { "columns", CLI_TEXT, AT(columns), "LIST", "read only these columns of DATA; other columns may contain text", 0, 0,
      NULL },
    { "drop-missing", CLI_FLAG, AT(drop), NULL, "skip rows with missing values", 0, 0, NULL },
    { "array", CLI_TEXT, AT(array), "NAME", "npz: name of the array to read", 0, 0, NULL },
    { "threads", CLI_INTEGER, AT(threads), "N", "number of threads; default all. Does not change results", 1, 256,
      NULL },
    { 0 },
};

static const char text[] = "Finds the solver method and tolerance that need the fewest evaluations of the model's\n"
                           "network for log-densities of the given accuracy. Errors are measured on rows of DATA\n"
                           "against an accurate solution in double precision. -o FILE writes a model with this\n"
                           "solver and its accuracy, which 'hollow info' shows. The choice is based on the number of\n"
                           "evaluations, so it is the same on every machine. 'hollow logp --calibrate' prints a\n"
                           "table of tolerances instead.\n";

static int run(int argc, char **argv);
const cli_command cli_calibrate = { "calibrate",
                                    "MODEL DATA [-o FILE] [--option VALUE ...]",
                                    "find the cheapest solver for a given accuracy of log p",
                                    text,
                                    options,
                                    2,
                                    2,
                                    run };

typedef struct job {
    hl_context *ctx;
    hl_density *model;
    hl_table *table;
    size_t *x_index, *c_index, rows;
    double *x, *c;
} job;

/* Row r, which is row `from` of the table, must be inside the bounds. */
static int check_row(const job *j, size_t r, size_t from)
{
    size_t dim = hl_density_dim(j->model), context = hl_density_context(j->model), column;
    char what[160], place[400];
    if (!cli_outside(j->model, j->x + r * dim, context ? j->c + r * context : NULL, &column, what, sizeof what))
        return CLI_OK;
    hl_table_place(j->table, from, column < dim ? j->x_index[column] : j->c_index[column - dim], place, sizeof place);
    return cli_fail(&cli_calibrate, CLI_WRONG, "%s: %s; log p has no solver error there. Remove the row", place, what);
}

/* Rows of the table, evenly spread. */
static int read_rows(job *j, const char *path)
{
    size_t dim = hl_density_dim(j->model), context = hl_density_context(j->model), all = hl_table_rows(j->table);
    j->rows = all < MOST_ROWS ? all : MOST_ROWS;
    j->x_index = calloc(dim + 1, sizeof *j->x_index);
    j->c_index = calloc(context + 1, sizeof *j->c_index);
    j->x = calloc(j->rows + 1, dim * sizeof *j->x);
    j->c = calloc(j->rows + 1, (context + 1) * sizeof *j->c);
    if (!j->x_index || !j->c_index || !j->x || !j->c)
        return cli_no_memory(&cli_calibrate);
    int result = cli_match_columns(&cli_calibrate, path, j->table, j->model, j->x_index, j->c_index);
    hl_status status = HL_OK;
    for (size_t r = 0; r < j->rows && status == HL_OK && result == CLI_OK; r++) {
        size_t from = r * all / j->rows;
        status = hl_table_read_columns(j->table, from, 1, dim, j->x_index, j->x + r * dim);
        if (status == HL_OK && context)
            status = hl_table_read_columns(j->table, from, 1, context, j->c_index, j->c + r * context);
        if (status == HL_OK)
            result = check_row(j, r, from);
    }
    return status == HL_OK ? result : cli_fail_library(&cli_calibrate, j->ctx, status);
}

static void print(const hl_density *model)
{
    hl_flow_solver s = hl_density_solver(model);
    hl_density_accuracy a = hl_density_get_accuracy(model);
    if (!cli_json_wanted()) {
        printf("%s, rtol %g, atol %g", s.method, s.rtol, s.atol);
        if (s.even_steps)
            printf(s.divided ? ", first step 1/%zu" : ", first %zu equal steps", s.even_steps);
        printf(": 99 %% of rows within %.2g nats, all within %.2g, %.1f evaluations per row\n", a.typical, a.worst,
               a.evaluations);
        return;
    }
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "method", s.method);
    cli_json_exact(&json, "rtol", s.rtol);
    cli_json_exact(&json, "atol", s.atol);
    cli_json_count(&json, "even_steps", s.even_steps);
    cli_json_bool(&json, "divided", s.divided != 0);
    cli_json_real(&json, "typical", a.typical);
    cli_json_real(&json, "worst", a.worst);
    cli_json_real(&json, "evaluations", a.evaluations);
    cli_json_close(&json, '}');
    putchar('\n');
}

static int calibrate(job *j, const settings *set)
{
    hl_status status = hl_density_calibrate(j->model, j->rows, j->x, j->c, set->accuracy);
    if (status == HL_IMPRECISE) {
        print(j->model);
        return cli_fail(&cli_calibrate, CLI_FAILED, "%s; %s", hl_context_message(j->ctx),
                        set->out ? "no file is written" : "try a larger --accuracy");
    }
    if (status != HL_OK)
        return cli_fail_library(&cli_calibrate, j->ctx, status);
    print(j->model);
    if (set->out && (status = hl_density_save(j->model, set->out)) != HL_OK)
        return cli_fail_library(&cli_calibrate, j->ctx, status);
    return CLI_OK;
}

static int prepare(job *j, const settings *set, const char **path)
{
    hl_table_options how = { .columns = set->columns, .drop_missing = set->drop, .array = set->array };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set->threads, .stop = cli_stop }, &j->ctx);
    if (status == HL_OK)
        status = hl_density_load(j->ctx, path[0], &j->model);
    if (status != HL_OK)
        return cli_fail_model(&cli_calibrate, j->ctx, status, path[1]);
    status = cli_open_data(j->ctx, path[1], &how, j->model, 0, false, &j->table);
    return status == HL_OK ? read_rows(j, path[1]) : cli_fail_library(&cli_calibrate, j->ctx, status);
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available() };
    const char *path[3];
    int result = cli_parse(&cli_calibrate, argc, argv, &set, path);
    if (result >= 0)
        return result;
    const cli_path paths[] = { { path[0], CLI_READ, NULL }, { path[1], CLI_READ, NULL }, { set.out, CLI_WRITE, NULL } };
    result = cli_check_paths(&cli_calibrate, 3, paths);
    if (result != CLI_OK)
        return result;
    job j = { 0 };
    result = prepare(&j, &set, path);
    if (result == CLI_OK)
        result = calibrate(&j, &set);
    free(j.x_index);
    free(j.c_index);
    free(j.x);
    free(j.c);
    hl_table_free(j.table);
    hl_density_free(j.model);
    hl_context_free(j.ctx);
    return result;
}
