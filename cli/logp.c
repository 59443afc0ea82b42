/* logp.c - `hollow logp`: the exact log-density of every row of a table. */
#include "logp.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_FAILURES = 5 };

typedef struct settings {
    uint64_t threads, worst;
    double rtol, atol;
    const char *out, *solver, *columns, *array, *part;
    bool drop, calibrate, append;
} settings;

static const cli_option options[] = {
    { "out", CLI_TEXT, offsetof(settings, out), "FILE", "output file (.csv or .npy); default stdout", 0, 0, NULL },
    { "append", CLI_FLAG, offsetof(settings, append), NULL, "write the rows of DATA with a last column logp", 0, 0,
      NULL },
    { "worst", CLI_INTEGER, offsetof(settings, worst), "N", "print the N least likely rows, least likely first", 1, 1e6,
      NULL },
    { "part", CLI_TEXT, offsetof(settings, part), "K/N",
      "evaluate part K of N only; the parts in sequence are the whole result", 0, 0, NULL },
    { "solver", CLI_TEXT, offsetof(settings, solver), "NAME",
      "ODE solver: dopri5, tsit5, calvo6, dopri8, bdf-jacobi, ...; default that of the model", 0, 0, NULL },
    { "rtol", CLI_REAL, offsetof(settings, rtol), "X", "relative tolerance; default that of the model", 1e-16, 1,
      NULL },
    { "atol", CLI_REAL, offsetof(settings, atol), "X", "absolute tolerance; default that of the model", 1e-100, 1,
      NULL },
    { "calibrate", CLI_FLAG, offsetof(settings, calibrate), NULL,
      "print how log p changes with the tolerance; see also 'hollow calibrate'", 0, 0, NULL },
    { "columns", CLI_TEXT, offsetof(settings, columns), "LIST", "read only these columns of DATA", 0, 0, NULL },
    { "drop-missing", CLI_FLAG, offsetof(settings, drop), NULL, "skip rows with missing values", 0, 0, NULL },
    { "array", CLI_TEXT, offsetof(settings, array), "NAME", "npz: name of the array to read", 0, 0, NULL },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N",
      "number of threads; default all. Does not change results", 1, 256, NULL },
    { 0 },
};

static const char text[] = "Prints the exact log-density of each row of DATA (csv, npy, npz, or - for stdin), in nats\n"
                           "and in the units of the data. Numbers have enough digits to read back to the same bits.\n"
                           "The result of a row does not depend on the other rows. The mean and its standard error\n"
                           "are printed on stderr. If a row cannot be solved, its result is nan, a message on stderr\n"
                           "names the row, and the exit status is 1. Columns are matched by name if the file has\n"
                           "names, else by position.\n";

static int run(int argc, char **argv);
const cli_command cli_logp = {
    "logp", "MODEL DATA [--option VALUE ...]", "exact log-densities of the rows of a table", text, options, 2, 2, run
};

hl_status logp_read(logp_job *j, size_t start, size_t count)
{
    hl_status status = hl_table_read_columns(j->table, start, count, hl_density_dim(j->model), j->x_index, j->x);
    if (status == HL_OK && hl_density_context(j->model))
        status = hl_table_read_columns(j->table, start, count, hl_density_context(j->model), j->c_index, j->c);
    return status;
}

/* Why the log-density of row r of the chunk that begins at `start` is infinite. */
static void say_infinite(const logp_job *j, size_t start, size_t r)
{
    size_t column = HL_NO_COLUMN, dim = hl_density_dim(j->model);
    char what[160] = "it is too far from the data for double precision", place[400];
    if (cli_outside(j->model, j->x + r * dim, NULL, &column, what, sizeof what))
        column = j->x_index[column];
    else if (hl_density_patterns(j->model))
        snprintf(what, sizeof what, "this pattern of atoms does not occur in the training data");
    hl_table_place(j->table, start + r, column, place, sizeof place);
    cli_say(&cli_logp, "warning: %s: log p is %g: %s", place, j->logp[r], what);
}

/* Count, and name the rows that failed. */
static void tally(logp_job *j, size_t start, size_t count, hl_status status)
{
    bool first = true; /* of these rows, which is the one that the message is about */
    for (size_t r = 0; r < count; r++)
        if (isinf(j->logp[r])) {
            if (!j->infinite++)
                say_infinite(j, start, r);
        } else if (!isnan(j->logp[r])) {
            j->sum += j->logp[r];
            j->square += j->logp[r] * j->logp[r];
        } else if (++j->failed <= SHOWN_FAILURES) {
            char place[400];
            hl_table_place(j->table, start + r, HL_NO_COLUMN, place, sizeof place);
            cli_say(&cli_logp, "%s: no log-density%s%s", place, first && status < 0 ? ": " : "",
                    first && status < 0 ? hl_context_failure(j->ctx).what : "");
            first = false;
        }
}

/* Of the first row only, or of all rows. */
static void say_imprecise(logp_job *j, size_t start, hl_status status)
{
    hl_failure f = hl_context_failure(j->ctx);
    char place[400];
    if (status != HL_IMPRECISE || j->imprecise)
        return;
    j->imprecise = true;
    if (f.row != HL_NOWHERE)
        hl_table_place(j->table, start + f.row, HL_NO_COLUMN, place, sizeof place);
    cli_say(&cli_logp, "warning: %s%s%s", f.row != HL_NOWHERE ? place : "", f.row != HL_NOWHERE ? ": " : "", f.what);
}

/* Six digits after the point, or six in all of numbers that are large. */
static void say_mean(double mean, double error, double rows, size_t infinite)
{
    char shown[2][32];
    const double value[2] = { mean, error };
    for (size_t i = 0; i < 2; i++)
        snprintf(shown[i], sizeof shown[i], fabs(value[i]) < 1e6 ? "%.6f" : "%.6g", value[i]);
    if (cli_quiet() || rows + (double)infinite == 0)
        return;
    if (!infinite)
        fprintf(stderr, "mean log p %s +- %s nats over %.0f rows\n", shown[0], shown[1], rows);
    else
        fprintf(stderr, "mean log p -inf over %.0f rows: log p of %zu rows is -inf\n", rows + (double)infinite,
                infinite);
    if (infinite && rows > 0)
        fprintf(stderr, "mean log p of the other rows %s +- %s nats over %.0f rows\n", shown[0], shown[1], rows);
}

/* Hand the log-densities of a chunk on to where they go. */
static hl_status put(logp_job *j, size_t start, size_t count)
{
    size_t columns = j->columns, read = hl_table_columns(j->table);
    if (j->worst) {
        logp_keep_worst(j, start, count);
        return HL_OK;
    }
    for (size_t r = 0; r < count && j->json_rows; r++)
        cli_json_exact(&j->json, NULL, j->logp[r]);
    if (!j->writer)
        return HL_OK;
    if (!j->appended)
        return hl_table_write_rows(j->writer, count, j->logp);
    double *rows = j->appended + LOGP_CHUNK * (columns + 1);
    hl_status status = hl_table_read_rows(j->table, start, count, rows);
    for (size_t r = 0; r < count; r++) {
        memcpy(j->appended + r * (columns + 1), rows + r * read, columns * sizeof *rows);
        j->appended[r * (columns + 1) + columns] = j->logp[r];
    }
    return status == HL_OK ? hl_table_write_rows(j->writer, count, j->appended) : status;
}

static hl_status each_chunk(logp_job *j)
{
    cli_progress_start(&j->progress, 0);
    for (size_t done = 0; done < j->rows;) {
        size_t start = j->first + done, count = j->rows - done < LOGP_CHUNK ? j->rows - done : LOGP_CHUNK;
        hl_status status = logp_read(j, start, count);
        if (status != HL_OK)
            return status;
        status = hl_density_logp(j->model, count, j->x, j->c, j->logp);
        if (cli_interrupted())
            return HL_STOPPED;
        if (status == HL_ERR_NOMEM)
            return status;
        tally(j, start, count, status);
        say_imprecise(j, start, status);
        done += count;
        cli_show_rows(&j->progress, done, j->rows);
        status = put(j, start, count);
        if (status != HL_OK)
            return status;
    }
    cli_progress_end(&j->progress, false);
    return j->writer ? hl_table_writer_finish(j->writer) : HL_OK;
}

static int print_rows(logp_job *j, const settings *set)
{
    if (cli_json_wanted()) {
        cli_json_open(&j->json, NULL, '{');
        if (j->json_rows)
            cli_json_open(&j->json, "logp", '[');
    }
    hl_status status = each_chunk(j);
    if (status == HL_STOPPED)
        return cli_fail(&cli_logp, CLI_STOPPED, "stopped");
    if (status != HL_OK)
        return cli_fail_library(&cli_logp, j->ctx, status);
    if (j->json_rows)
        cli_json_close(&j->json, ']');
    double n = (double)(j->rows - j->failed - j->infinite), mean = j->sum / n;
    double error = sqrt(fmax(j->square / n - mean * mean, 0) / n);
    int result = j->worst ? logp_print_worst(j) : CLI_OK;
    if (cli_json_wanted()) {
        if (set->out)
            cli_json_text(&j->json, "file", set->out);
        cli_json_count(&j->json, "rows", j->rows);
        cli_json_count(&j->json, "failed", j->failed);
        cli_json_count(&j->json, "infinite", j->infinite);
        cli_json_exact(&j->json, "mean_logp", j->infinite ? -INFINITY : mean);
        cli_json_exact(&j->json, "standard_error", j->infinite ? NAN : error);
        cli_json_close(&j->json, '}');
        putchar('\n');
    }
    say_mean(mean, error, n, j->infinite);
    if (result == CLI_OK && j->failed)
        return cli_fail(&cli_logp, CLI_FAILED, "%zu of %zu rows have no log-density", j->failed, j->rows);
    return result;
}

/* "2/8": the rows of part 2 of 8, which differ in length by one at most. */
static int find_part(logp_job *j, const char *part)
{
    size_t rows = hl_table_rows(j->table);
    unsigned long long k = 0, n = 0;
    int used = 0;
    j->rows = rows;
    if (!part)
        return CLI_OK;
    if (!isdigit((unsigned char)part[0]) || sscanf(part, "%9llu/%9llu%n", &k, &n, &used) != 2 || part[used] || k < 1 ||
        k > n)
        return cli_fail(&cli_logp, CLI_WRONG, "--part: '%s' is not of the form K/N with 1 <= K <= N", part);
    j->later = k > 1;
    j->first = rows / n * (k - 1) + rows % n * (k - 1) / n;
    j->rows = rows / n * k + rows % n * k / n - j->first;
    return CLI_OK;
}

/* Rows of DATA and logp, under their names; those after the first part have no header of their own. */
static hl_status create_writer(logp_job *j, const settings *set)
{
    size_t columns = set->append ? j->columns : 0;
    const char **names = calloc(columns + 1, sizeof *names);
    hl_table_writer_options how = { .rows = j->rows, .flat = !columns };
    for (size_t i = 0; names && i < columns; i++)
        names[i] = hl_table_name(j->table, i);
    if (names && columns) {
        names[columns] = "logp";
        how.names = j->later ? NULL : names;
        how.texts = j->table;
        j->appended = calloc(LOGP_CHUNK, (columns + 1 + hl_table_columns(j->table)) * sizeof *j->appended);
    }
    hl_status status = !names || (columns && !j->appended)
                           ? HL_ERR_NOMEM
                           : hl_table_writer_create(j->ctx, set->out ? set->out : "-", columns + 1, &how, &j->writer);
    free(names);
    return status;
}

static int prepare(logp_job *j, const settings *set)
{
    size_t dim = hl_density_dim(j->model), context = hl_density_context(j->model);
    hl_flow_solver solver = hl_density_solver(j->model);
    solver.method = set->solver ? set->solver : solver.method;
    solver.rtol = set->rtol > 0 ? set->rtol : solver.rtol;
    solver.atol = set->atol > 0 ? set->atol : solver.atol;
    if (set->solver || set->rtol > 0 || set->atol > 0) {
        solver.even_steps = 0;
        solver.divided = 0;
    }
    j->x_index = calloc(dim, sizeof *j->x_index);
    j->c_index = calloc(context + 1, sizeof *j->c_index);
    j->x = calloc(LOGP_CHUNK * dim, sizeof *j->x);
    j->c = context ? calloc(LOGP_CHUNK * context, sizeof *j->c) : NULL;
    j->logp = calloc(LOGP_CHUNK, sizeof *j->logp);
    j->most_worst = (size_t)set->worst;
    j->worst = set->worst ? calloc(j->most_worst + LOGP_CHUNK, sizeof *j->worst) : NULL;
    j->json = (cli_json){ .file = stdout };
    j->json_rows = cli_json_wanted() && !set->out && !set->worst;
    if (!j->x_index || !j->c_index || !j->x || (context && !j->c) || !j->logp || (set->worst && !j->worst))
        return cli_no_memory(&cli_logp);
    int result = find_part(j, set->part);
    if (result == CLI_OK)
        result = cli_match_columns(&cli_logp, j->path, j->table, j->model, j->x_index, j->c_index);
    for (size_t i = 0; set->append && i < j->columns && result == CLI_OK; i++)
        if (strcmp(hl_table_name(j->table, i), "logp") == 0)
            result = cli_fail(&cli_logp, CLI_WRONG,
                              "%s: the file already has a column 'logp'; remove it with --columns", j->path);
    if (result == CLI_OK && set->calibrate && !hl_density_flow(j->model))
        result = cli_fail(&cli_logp, CLI_WRONG, "--calibrate: this model has no flow, so log p has no solver error");
    if (result == CLI_OK && !hl_density_flow(j->model) && (set->solver || set->rtol > 0 || set->atol > 0))
        result = cli_fail(&cli_logp, CLI_WRONG, "the model has no flow; --solver, --rtol and --atol have no effect");
    hl_status status = result == CLI_OK ? hl_density_set_solver(j->model, &solver) : HL_OK;
    if (result == CLI_OK && status == HL_OK && !set->calibrate && !set->worst && !j->json_rows)
        status = create_writer(j, set);
    return status == HL_OK ? result : cli_fail_library(&cli_logp, j->ctx, status);
}

/* All columns of the file are needed where rows are printed, else the model's. */
static hl_status open_table(logp_job *j, const settings *set)
{
    hl_table_options how = { .columns = set->columns, .drop_missing = set->drop, .array = set->array };
    hl_status status = cli_open_data(j->ctx, j->path, &how, j->model, 0, set->append || set->worst, &j->table);
    j->columns = status == HL_OK ? hl_table_columns(j->table) : 0;
    for (size_t k = 0; k < hl_density_categories(j->model) && status == HL_OK;
         k++) /* their columns of 0 and 1 come last */
        for (size_t i = 0; i < j->columns; i++)
            if (strcmp(hl_table_name(j->table, i), hl_density_get_category(j->model, k).name) == 0)
                j->columns -= hl_density_get_category(j->model, k).count - 1;
    return status;
}

static int check(const settings *set, const char **path)
{
    const cli_path paths[] = { { path[0], CLI_READ, NULL },
                               { path[1], CLI_READ, NULL },
                               { set->out, CLI_TABLE, NULL } };
    if (set->calibrate && (set->out || set->append || set->worst))
        return cli_fail(&cli_logp, CLI_WRONG, "--calibrate prints a table; --%s applies to log-densities only",
                        set->out      ? "out"
                        : set->append ? "append"
                                      : "worst");
    if (set->worst && (set->out || set->append))
        return cli_fail(&cli_logp, CLI_WRONG,
                        "--worst prints rows to stdout; --%s applies to the log-densities of all rows",
                        set->out ? "out" : "append");
    if (set->append && cli_json_wanted() && !set->out)
        return cli_fail(&cli_logp, CLI_WRONG, "--append with --json requires --out FILE for the rows");
    return cli_check_paths(&cli_logp, 3, paths);
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available() };
    const char *path[3];
    int result = cli_parse(&cli_logp, argc, argv, &set, path);
    if (result >= 0)
        return result;
    result = check(&set, path);
    if (result != CLI_OK)
        return result;
    logp_job j = { .path = path[1] };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_density_load(j.ctx, path[0], &j.model);
    if (status != HL_OK)
        result = cli_fail_model(&cli_logp, j.ctx, status, path[1]);
    if (status == HL_OK && (status = open_table(&j, &set)) != HL_OK)
        result = cli_fail_library(&cli_logp, j.ctx, status);
    if (result == CLI_OK)
        result = prepare(&j, &set);
    if (result == CLI_OK)
        result = set.calibrate ? logp_calibrate(&j) : print_rows(&j, &set);
    hl_table_writer_free(j.writer);
    hl_table_free(j.table);
    hl_density_free(j.model);
    hl_context_free(j.ctx);
    free(j.x_index);
    free(j.c_index);
    free(j.x);
    free(j.c);
    free(j.logp);
    free(j.appended);
    free(j.worst);
    return result;
}
