/* fit.c - `hollow fit`: a table goes to hl_density_fit, its model to a file. */
#include "fit.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT(member) offsetof(fit_settings, member)
static const cli_option options[] = {
    { "o", CLI_TEXT, AT(out), "MODEL", "model file to write; required", 0, 0, NULL },
    { "valid", CLI_TEXT, AT(valid), "FILE", "validation rows; default a tenth of DATA", 0, 0, NULL },
    { "columns", CLI_TEXT, AT(columns), "LIST", "use only these columns of DATA, such as 'a,b' or 1-5", 0, 0, NULL },
    { "exclude", CLI_TEXT, AT(exclude), "LIST", "do not use these columns", 0, 0, NULL },
    { "context", CLI_TEXT, AT(context), "LIST", "columns to condition on; columns of text are categorical", 0, 0,
      NULL },
    { "weights", CLI_TEXT, AT(weights), "COLUMN", "column of row weights", 0, 0, NULL },
    { "drop-constant", CLI_FLAG, AT(drop_constant), NULL, "do not use constant columns", 0, 0, NULL },
    { "drop-missing", CLI_FLAG, AT(drop), NULL, "skip rows with missing values", 0, 0, NULL },
    { "array", CLI_TEXT, AT(array), "NAME", "npz: name of the array to read", 0, 0, NULL },
    { "resume", CLI_FLAG, AT(resume), NULL, "continue from the checkpoint MODEL.ckpt; the result is bitwise the same",
      0, 0, NULL },
    { "save-every", CLI_REAL, AT(save_every), "SECONDS", "seconds between checkpoints in MODEL.ckpt; default 20", 0,
      1e6, NULL },
    { "log", CLI_TEXT, AT(log), "FILE", "write one line of JSON per iteration", 0, 0, NULL },
    { "plot", CLI_TEXT, AT(plot), "DIR", "draw pictures of training, density and samples in DIR", 0, 0, NULL },
    { "threads", CLI_INTEGER, AT(threads), "N", "number of threads; default all. Does not change results", 1, 256,
      NULL },
    { .offset = AT(chosen), .more = &(const cli_job){ hl_density_fit_options } },
};

static const char text[] = "Fits a density model to the rows of DATA (csv, npy, npz, or - for stdin) and writes it\n"
                           "to MODEL. Columns are standardised internally; log-densities and samples are in the\n"
                           "units of the data. The defaults are chosen from the numbers of rows and columns and are\n"
                           "suitable for most tables.\n"
                           "\n"
                           "Ctrl-C stops the training and writes a checkpoint, MODEL.ckpt; --resume continues from\n"
                           "it. Training uses few steps of the ODE solver. Each validation compares them with an\n"
                           "adaptive solver and doubles their number if the results differ.\n";

static int run(int argc, char **argv);
const cli_command cli_fit = {
    "fit", "DATA -o MODEL [--option VALUE ...]", "fit a density model to a table", text, options, 1, 1, run
};

enum { LEAST_ROWS = 10 };

/* ---- columns and rows ---- */

/* Columns of a list go to j->index, from place `at` on. */
static int take_columns(fit_job *j, const char *list, size_t *found, bool *taken, size_t at, size_t *count)
{
    hl_status status = list ? hl_table_find_in_file(j->table, list, found, count) : HL_OK;
    if (status != HL_OK)
        return cli_fail_library(&cli_fit, j->ctx, status);
    for (size_t i = 0; i < *count; i++) {
        if (taken[found[i]])
            return cli_fail(&cli_fit, CLI_WRONG, "%s: column '%s' is given both by --context and by --weights", j->path,
                            hl_table_name(j->table, found[i]));
        taken[found[i]] = true;
        j->index[at + i] = found[i];
    }
    return CLI_OK;
}

/* The context and the weights are the columns of their lists, x all others. */
static int choose_columns(fit_job *j)
{
    size_t all = hl_table_columns(j->table), n = 0, *found = calloc(all, sizeof *found);
    bool *taken = calloc(all, sizeof *taken);
    j->index = calloc(2 * all + 1, sizeof *j->index);
    int result = found && taken && j->index ? CLI_OK : cli_no_memory(&cli_fit);
    if (result == CLI_OK) /* behind all that x may have; moved down below */
        result = take_columns(j, j->set->context, found, taken, all, &j->context);
    if (result == CLI_OK)
        result = take_columns(j, j->set->weights, found, taken, all + j->context, &j->weights);
    if (result == CLI_OK && j->weights > 1)
        result = cli_fail(&cli_fit, CLI_WRONG, "--weights: give one column, not %zu", j->weights);
    if (result == CLI_OK && j->context + j->weights == all)
        result = cli_fail(&cli_fit, CLI_WRONG, "%s: all columns are given by %s; at least one must be left to model",
                          j->path,
                          !j->weights   ? "--context"
                          : !j->context ? "--weights"
                                        : "--context and --weights");
    for (size_t i = 0; result == CLI_OK && i < all; i++)
        if (!taken[i])
            j->index[n++] = i;
    j->dim = n;
    if (result == CLI_OK)
        memmove(j->index + n, j->index + all, (j->context + j->weights) * sizeof *j->index);
    free(found);
    free(taken);
    return result;
}

static int open_table(fit_job *j)
{
    const fit_settings *s = j->set;
    char extra[4096];
    snprintf(extra, sizeof extra, "%s%s%s", s->context ? s->context : "", s->context && s->weights ? "," : "",
             s->weights ? s->weights : "");
    hl_table_options o = { .columns = s->columns,
                           .exclude = s->exclude,
                           .extra = *extra ? extra : NULL,
                           .label_columns = s->context,
                           .drop_missing = s->drop,
                           .array = s->array,
                           .shared = 1,
                           .min_rows = LEAST_ROWS };
    hl_status status = hl_table_open(j->ctx, j->path, &o, &j->table);
    if (status != HL_OK)
        return cli_fail_library(&cli_fit, j->ctx, status);
    if (hl_table_dropped(j->table))
        cli_say(&cli_fit, "%s: skipped %zu rows with missing values", j->path, hl_table_dropped(j->table));
    int result = choose_columns(j);
    return result == CLI_OK ? fit_expand_context(j) : result;
}

/* More rows than this are read by the library when it needs them. */
static size_t most_rows(const fit_job *j)
{
    return hl_density_sample_rows(j->dim + j->context);
}

/* Rows of a table by their numbers: x, context and weights, each unless it is NULL. */
static hl_status read_numbers(const fit_job *j, hl_table *table, const size_t *index, size_t count, const size_t *row,
                              const fit_rows *to)
{
    hl_status status = to->x ? hl_table_gather(table, count, row, j->dim, index, to->x) : HL_OK;
    if (status == HL_OK && to->context && j->context)
        status = hl_table_gather(table, count, row, j->context, index + j->dim, to->context);
    if (status == HL_OK && to->weights)
        status = hl_table_gather(table, count, row, 1, index + j->dim + j->context, to->weights);
    return status;
}

/* Of j->table: hl_read_rows_fn. */
static hl_status read_source(size_t count, const size_t *row, double *x, double *context, double *weights, void *user)
{
    const fit_job *j = user;
    return read_numbers(j, j->table, j->index, count, row, &(fit_rows){ x, context, weights });
}

/* `rows` rows of a table: all, or at even distances. */
static int read_rows(const fit_job *j, hl_table *table, const size_t *index, size_t rows, fit_rows *to)
{
    size_t total = hl_table_rows(table), *row = calloc(rows, sizeof *row);
    to->x = calloc(rows * j->dim, sizeof *to->x);
    to->context = calloc(rows * j->context + 1, sizeof *to->context);
    to->weights = j->weights ? calloc(rows, sizeof *to->weights) : NULL;
    bool room = row && to->x && to->context && (!j->weights || to->weights);
    for (size_t r = 0; room && r < rows; r++)
        row[r] = rows == total ? r : (size_t)((double)r / (double)rows * (double)total);
    hl_status status = room ? read_numbers(j, table, index, rows, row, to) : HL_OK;
    free(row);
    return !room ? cli_no_memory(&cli_fit) : status == HL_OK ? CLI_OK : cli_fail_library(&cli_fit, j->ctx, status);
}

/* Of a large validation file some are enough. */
static size_t valid_rows(const fit_job *j)
{
    size_t rows = hl_table_rows(j->valid), most = most_rows(j);
    return rows < most ? rows : most;
}

static int read_valid(fit_job *j)
{
    size_t all = j->dim + j->context + j->weights, *index = calloc(all, sizeof *index);
    hl_table_options o = { .drop_missing = j->set->drop, .array = j->set->array };
    cli_categories texts = { j->categories, j->category };
    hl_status status =
        j->valid ? HL_OK : cli_open_columns(j->ctx, j->set->valid, &o, all, j->columns, &texts, false, &j->valid);
    int result = !index            ? cli_no_memory(&cli_fit)
                 : status == HL_OK ? CLI_OK
                                   : cli_fail_library(&cli_fit, j->ctx, status);
    if (result == CLI_OK)
        result = cli_find_columns(&cli_fit, j->set->valid, j->valid, all, j->columns, index);
    if (result == CLI_OK)
        result = read_rows(j, j->valid, index, valid_rows(j), &j->valid_rows);
    free(index);
    return result;
}

void fit_free_rows(fit_job *j)
{
    double *const blocks[] = { j->rows.x,       j->rows.context,       j->rows.weights,
                               j->valid_rows.x, j->valid_rows.context, j->valid_rows.weights };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    j->rows = j->valid_rows = (fit_rows){ 0 };
}

/* Names and numbers of the columns in j->index. */
static int load(fit_job *j)
{
    size_t all = j->dim + j->context + j->weights;
    fit_free_rows(j);
    free(j->columns);
    free(j->names);
    j->columns = calloc(all, sizeof *j->columns);
    j->names = calloc(all, sizeof *j->names);
    if (!j->columns || !j->names)
        return cli_no_memory(&cli_fit);
    for (size_t i = 0; i < all; i++)
        j->columns[i].name = j->names[i] = hl_table_name(j->table, j->index[i]);
    size_t rows = hl_table_rows(j->table);
    int result = rows <= most_rows(j) ? read_rows(j, j->table, j->index, rows, &j->rows) : CLI_OK;
    return result == CLI_OK && j->set->valid ? read_valid(j) : result;
}

/* Leave the constant columns of the findings out of j->index, if any of x is left then. */
static bool drop_constant(fit_job *j, const hl_density_outcome *o)
{
    size_t constant = 0, constant_x = 0;
    for (size_t i = 0; j->set->drop_constant && i < o->findings; i++) {
        constant += o->finding[i].kind == HL_FINDING_CONSTANT;
        constant_x += o->finding[i].kind == HL_FINDING_CONSTANT && o->finding[i].column < j->dim;
    }
    if (!constant || constant_x == j->dim)
        return false;
    for (size_t i = o->findings; i-- > 0;) { /* from the last: those before keep their places */
        size_t at = o->finding[i].column, behind = j->dim + j->context + j->weights - at - 1;
        if (o->finding[i].kind != HL_FINDING_CONSTANT)
            continue;
        cli_say(&cli_fit, "column '%s' is constant and not used", j->names[at]);
        memmove(j->index + at, j->index + at + 1, behind * sizeof *j->index);
        j->context -= at >= j->dim;
        j->dim -= at < j->dim;
    }
    return true;
}

/* ---- the fit ---- */

static hl_status call_library(fit_job *j, hl_density **model, hl_density_outcome **outcome)
{
    hl_density_data data = { .dim = j->dim, .context = j->context, .names = j->names };
    hl_row_source source = { hl_table_rows(j->table), read_source, j, j->weights > 0 };
    if (j->rows.x)
        data.train = (hl_density_rows){ source.rows, j->rows.x, j->rows.context, j->rows.weights };
    else
        data.source = &source;
    if (j->valid)
        data.valid = (hl_density_rows){ valid_rows(j), j->valid_rows.x, j->valid_rows.context, j->valid_rows.weights };
    hl_job job = { .progress = fit_progress,
                   .unsaved = cli_say_unsaved,
                   .user = j,
                   .checkpoint = j->checkpoint,
                   .resume = j->resume,
                   .save_every = j->set->save_every > 0 ? j->set->save_every : 1e-9 };
    return hl_density_fit(j->ctx, &data, j->settings, &job, model, outcome);
}

/* The message of a failed call; that of a weight or a value outside of its bounds with its place in the file. */
static int fail(fit_job *j, hl_status status)
{
    hl_failure f = hl_context_failure(j->ctx);
    char place[400];
    if (status != HL_ERR_INVALID || f.row == HL_NOWHERE)
        return cli_fail_library(&cli_fit, j->ctx, status);
    hl_table_place(f.validation ? j->valid : j->table, f.row, HL_NO_COLUMN, place, sizeof place);
    if (f.column < j->dim)
        return cli_fail(&cli_fit, CLI_WRONG, "%s: %s", place, f.what);
    if (!j->weights)
        return cli_fail_library(&cli_fit, j->ctx, status);
    return cli_fail(&cli_fit, CLI_WRONG, "%s: --weights %s: %s", place, j->set->weights, f.what);
}

/* From the library's answer to the exit status. */
static int conclude(fit_job *j, hl_status status, hl_density *model, const hl_density_outcome *outcome)
{
    bool failed = outcome && outcome->failed_iteration;
    cli_progress_end(&j->progress, true);
    if (status < 0 && !failed)
        return outcome && fit_refuse(j, outcome) ? CLI_WRONG : fail(j, status);
    if (status == HL_STOPPED && !model)
        return cli_fail(&cli_fit, CLI_STOPPED, "stopped %s; no file is written",
                        fit_has_atoms(outcome) ? "(fits of tables with atoms have no checkpoint)"
                                               : "while mixtures were fitted");
    if (status == HL_STOPPED)
        return cli_fail(&cli_fit, CLI_STOPPED,
                        "stopped; checkpoint %s is written; run the same command with --resume to continue",
                        j->checkpoint);
    if (failed)
        cli_fail(&cli_fit, CLI_FAILED, "iteration %zu failed: %s", outcome->failed_iteration,
                 hl_context_message(j->ctx));
    if (!cli_is_first_rank())
        return failed ? CLI_FAILED : CLI_OK;
    hl_status saved = model ? fit_set_categories(j, model) : HL_OK;
    if (model && saved == HL_OK)
        saved = hl_density_save(model, j->set->out);
    if (saved != HL_OK)
        return cli_fail_library(&cli_fit, j->ctx, saved);
    if (model)
        unlink(j->checkpoint);
    int result = fit_conclude(j, outcome);
    return result == CLI_OK && j->set->plot ? fit_plot(j, model) : result;
}

static int train(fit_job *j)
{
    hl_density *model = NULL;
    hl_density_outcome *outcome = NULL;
    int result = load(j);
    if (result != CLI_OK)
        return result;
    hl_status status = call_library(j, &model, &outcome);
    bool again = status == HL_ERR_INVALID && outcome && drop_constant(j, outcome);
    if (!again)
        result = conclude(j, status, model, outcome);
    hl_density_free(model);
    hl_density_outcome_free(outcome);
    return again ? train(j) : result;
}

static int fit(fit_job *j)
{
    const fit_settings *s = j->set;
    const cli_outputs outputs = {
        .data = j->path, .more_data = s->valid, .model = s->out, .log = s->log, .plot = s->plot
    };
    int result = cli_check_outputs(&cli_fit, j->ctx, &outputs, &j->checkpoint);
    if (result == CLI_OK)
        result = cli_check_resume(&cli_fit, s->out, j->checkpoint, &j->resume);
    if (result == CLI_OK)
        result = open_table(j);
    if (result == CLI_OK)
        result = cli_open_log(&cli_fit, s->log, j->resume, &j->log);
    if (result == CLI_OK)
        result = train(j);
    return cli_close_log(&cli_fit, s->log, j->log, result);
}

static int run(int argc, char **argv)
{
    fit_settings set = { .threads = (uint64_t)cli_threads(), .save_every = 20 };
    fit_job j = { .set = &set };
    const char *path[2];
    int result = cli_parse(&cli_fit, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (!set.out)
        return cli_fail(&cli_fit, CLI_WRONG, "-o MODEL is required: the file to write the model to");
    j.path = path[0];
    j.resume = set.resume;
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    result = status == HL_OK ? cli_make_settings(&cli_fit, j.ctx, &set.chosen, &j.settings)
                             : cli_fail_library(&cli_fit, NULL, status);
    if (result == CLI_OK)
        result = cli_use_ranks(&cli_fit, j.ctx);
    if (result == CLI_OK)
        result = fit(&j);
    fit_free_rows(&j);
    fit_free_categories(&j);
    hl_table_free(j.table);
    hl_table_free(j.valid);
    hl_settings_free(j.settings);
    hl_context_free(j.ctx);
    free(j.index);
    free(j.columns);
    free(j.names);
    free(j.checkpoint);
    free(j.curves.point);
    return result;
}
