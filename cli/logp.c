/* logp.c - `hollow logp`: the exact log-density of every row of a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

enum { CHUNK = 4096, CALIBRATION_ROWS = 1000, SHOWN_FAILURES = 5 };

typedef struct settings {
    uint64_t threads;
    double rtol, atol;
    const char *out, *solver, *columns, *array;
    bool drop, calibrate;
} settings;

static const cli_option options[] = {
    { "out", CLI_TEXT, offsetof(settings, out), "FILE", "write there (.csv or .npy) instead of stdout", 0, 0, NULL },
    { "solver", CLI_TEXT, offsetof(settings, solver), "NAME",
      "dopri5, tsit5, dopri8, bdf-jacobi, ...; default the model's", 0, 0, NULL },
    { "rtol", CLI_REAL, offsetof(settings, rtol), "X", "relative tolerance; default the model's", 1e-16, 1, NULL },
    { "atol", CLI_REAL, offsetof(settings, atol), "X", "absolute tolerance; default the model's", 1e-100, 1, NULL },
    { "calibrate", CLI_FLAG, offsetof(settings, calibrate), NULL, "print how log p changes with the tolerance", 0, 0,
      NULL },
    { "columns", CLI_TEXT, offsetof(settings, columns), "LIST", "read these columns of DATA only; others may hold text",
      0, 0, NULL },
    { "drop-missing", CLI_FLAG, offsetof(settings, drop), NULL, "leave rows with missing values out", 0, 0, NULL },
    { "array", CLI_TEXT, offsetof(settings, array), "NAME", "npz: the array to read", 0, 0, NULL },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N", "default: all of the machine; changes no bit", 1, 256,
      NULL },
    { 0 },
};

static const char text[] = "Prints one number for each row of DATA (csv, npy, npz, or - for stdin): its exact\n"
                           "log-density in nats, in the units of the data, with digits that read back to the\n"
                           "same bits. A row's number does not depend on the other rows. The mean and its\n"
                           "standard error go to stderr. A row that cannot be solved is nan, is named on\n"
                           "stderr, and makes the exit status 1. Columns are found by name if the file has\n"
                           "names, else by place.\n";

static int run(int argc, char **argv);
const cli_command cli_logp = {
    "logp", "MODEL DATA [--option VALUE ...]", "exact log-densities of the rows of a table", text, options, 2, 2, run
};

typedef struct job {
    hl_context *ctx;
    hl_density *model;
    hl_table *table;
    hl_table_writer *writer;
    const char *path;
    size_t *x_index, *c_index;
    double *x, *c, *logp;
    size_t failed;
    double sum, square;
    cli_progress progress;
} job;

static hl_status read_chunk(job *j, size_t start, size_t count)
{
    hl_status status = hl_table_read_columns(j->table, start, count, hl_density_dim(j->model), j->x_index, j->x);
    if (status == HL_OK && hl_density_context(j->model))
        status = hl_table_read_columns(j->table, start, count, hl_density_context(j->model), j->c_index, j->c);
    return status;
}

/* The library's message without its "row N: ", which counts from the chunk's start. */
static const char *reason(const job *j)
{
    const char *message = hl_context_message(j->ctx), *colon = strstr(message, ": ");
    return strncmp(message, "row ", 4) == 0 && colon ? colon + 2 : message;
}

/* Count, and name the rows that failed. */
static void tally(job *j, size_t start, size_t count, hl_status status)
{
    bool first = true; /* of these rows, which is the one that the message is about */
    for (size_t r = 0; r < count; r++)
        if (!isnan(j->logp[r])) { /* -inf is a number: it is too far out for a double */
            j->sum += j->logp[r];
            j->square += j->logp[r] * j->logp[r];
        } else if (++j->failed <= SHOWN_FAILURES) {
            char place[400];
            hl_table_place(j->table, start + r, HL_NO_COLUMN, place, sizeof place);
            cli_say(&cli_logp, "%s: no log-density%s%s", place, first && status < 0 ? ": " : "",
                    first && status < 0 ? reason(j) : "");
            first = false;
        }
}

/* Six digits after the point, or six in all of numbers that are large. */
static void say_mean(double mean, double error, double rows)
{
    char text[2][32];
    const double value[2] = { mean, error };
    for (size_t i = 0; i < 2; i++)
        snprintf(text[i], sizeof text[i], fabs(value[i]) < 1e6 ? "%.6f" : "%.6g", value[i]);
    if (!cli_quiet())
        fprintf(stderr, "mean log p %s +- %s nats over %.0f rows\n", text[0], text[1], rows);
}

static int print_rows(job *j)
{
    size_t rows = hl_table_rows(j->table);
    cli_progress_start(&j->progress, 0);
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        hl_status status = read_chunk(j, start, count);
        if (status != HL_OK)
            return cli_fail_library(&cli_logp, j->ctx, status);
        status = hl_density_logp(j->model, count, j->x, j->c, j->logp);
        if (cli_interrupted())
            return cli_fail(&cli_logp, CLI_STOPPED, "stopped");
        if (status == HL_ERR_NOMEM)
            return cli_fail_library(&cli_logp, j->ctx, status);
        tally(j, start, count, status);
        cli_show_rows(&j->progress, start + count, rows);
        status = hl_table_write_rows(j->writer, count, j->logp);
        if (status != HL_OK)
            return cli_fail_library(&cli_logp, j->ctx, status);
    }
    cli_progress_end(&j->progress, false);
    hl_status status = hl_table_writer_finish(j->writer);
    if (status != HL_OK)
        return cli_fail_library(&cli_logp, j->ctx, status);
    double n = (double)(rows - j->failed), mean = j->sum / n;
    if (n > 0)
        say_mean(mean, sqrt(fmax(j->square / n - mean * mean, 0) / n), n);
    if (j->failed)
        return cli_fail(&cli_logp, CLI_FAILED, "%zu of %zu rows have no log-density", j->failed, rows);
    return CLI_OK;
}

/* The same rows at ever finer tolerances, against the finest. */
static int calibrate(job *j)
{
    static const double rtols[] = { 1e-2, 1e-3, 1e-4, 1e-5, 1e-6 };
    enum { COUNT = sizeof rtols / sizeof *rtols };
    size_t rows = hl_table_rows(j->table) < CALIBRATION_ROWS ? hl_table_rows(j->table) : CALIBRATION_ROWS;
    hl_flow_solver solver = hl_density_solver(j->model);
    double *logp = calloc(rows, COUNT * sizeof *logp);
    hl_status status = logp ? read_chunk(j, 0, rows) : HL_ERR_NOMEM;
    double evaluations[COUNT];
    for (size_t k = 0; k < COUNT && status == HL_OK; k++) {
        solver.rtol = solver.atol = rtols[k];
        status = hl_density_set_solver(j->model, &solver);
        hl_flow_reset(hl_density_flow(j->model));
        if (status == HL_OK)
            hl_density_logp(j->model, rows, j->x, j->c, logp + k * rows);
        if (cli_interrupted())
            status = HL_STOPPED;
        evaluations[k] = (double)hl_flow_report(hl_density_flow(j->model)).forward.f / (double)rows;
    }
    if (status == HL_OK)
        printf("tolerance  mean log p       largest change  mean change   evaluations a row\n");
    for (size_t k = 0; k < COUNT && status == HL_OK; k++) {
        double mean = 0, largest = 0, change = 0;
        for (size_t r = 0; r < rows; r++) {
            double d = fabs(logp[k * rows + r] - logp[(COUNT - 1) * rows + r]);
            mean += logp[k * rows + r] / (double)rows;
            change += d / (double)rows;
            largest = fmax(largest, d);
        }
        printf("%-9g  %-15.8g  %-14.3g  %-12.3g  %.1f\n", rtols[k], mean, largest, change, evaluations[k]);
    }
    free(logp);
    if (status == HL_STOPPED)
        return cli_fail(&cli_logp, CLI_STOPPED, "stopped");
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_logp, j->ctx, status);
}

static int evaluate(job *j, const settings *set)
{
    size_t dim = hl_density_dim(j->model), context = hl_density_context(j->model);
    hl_flow_solver solver = hl_density_solver(j->model);
    solver.method = set->solver ? set->solver : solver.method;
    solver.rtol = set->rtol > 0 ? set->rtol : solver.rtol;
    solver.atol = set->atol > 0 ? set->atol : solver.atol;
    j->x_index = calloc(dim, sizeof *j->x_index);
    j->c_index = calloc(context + 1, sizeof *j->c_index);
    j->x = calloc(CHUNK * dim, sizeof *j->x);
    j->c = context ? calloc(CHUNK * context, sizeof *j->c) : NULL;
    j->logp = calloc(CHUNK, sizeof *j->logp);
    if (!j->x_index || !j->c_index || !j->x || (context && !j->c) || !j->logp)
        return cli_fail(&cli_logp, CLI_FAILED, "out of memory");
    int result = cli_match_columns(&cli_logp, j->path, j->table, j->model, j->x_index, j->c_index);
    hl_status status = result == CLI_OK ? hl_density_set_solver(j->model, &solver) : HL_OK;
    if (result == CLI_OK && status == HL_OK && !set->calibrate)
        status = hl_table_writer_create(j->ctx, set->out ? set->out : "-", 1,
                                        &(hl_table_writer_options){ .rows = hl_table_rows(j->table), .flat = 1 },
                                        &j->writer);
    if (status != HL_OK)
        return cli_fail_library(&cli_logp, j->ctx, status);
    return result != CLI_OK ? result : set->calibrate ? calibrate(j) : print_rows(j);
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available() };
    const char *path[3];
    int result = cli_parse(&cli_logp, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (set.calibrate && set.out)
        return cli_fail(&cli_logp, CLI_WRONG, "--calibrate prints a table, and --out is for log-densities");
    const cli_path paths[] = { { path[0], false, NULL }, { path[1], false, NULL }, { set.out, true, NULL } };
    if (cli_check_paths(&cli_logp, 3, paths) != CLI_OK)
        return CLI_WRONG;
    job j = { .path = path[1] };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_density_load(j.ctx, path[0], &j.model);
    hl_density_column *columns = status == HL_OK ? cli_columns_of(j.model) : NULL;
    hl_table_options how = { .columns = set.columns, .drop_missing = set.drop, .array = set.array };
    if (status == HL_OK)
        status = columns ? cli_open_columns(j.ctx, path[1], &how, hl_density_dim(j.model) + hl_density_context(j.model),
                                            columns, &j.table)
                         : HL_ERR_NOMEM;
    free(columns);
    result = status == HL_OK ? evaluate(&j, &set) : cli_fail_library(&cli_logp, j.ctx, status);
    hl_table_writer_free(j.writer);
    hl_table_free(j.table);
    hl_density_free(j.model);
    hl_context_free(j.ctx);
    free(j.x_index);
    free(j.c_index);
    free(j.x);
    free(j.c);
    free(j.logp);
    return result;
}
