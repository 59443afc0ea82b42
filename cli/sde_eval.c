/* sde_eval.c - `hollow sde eval`: a model against data, time by time, and against a known truth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde.h"

typedef struct settings {
    sde_source source;
    uint64_t threads, seed, groups, rows;
    const char *truth;
} settings;

static const cli_option options[] = {
    { "truth", CLI_TEXT, offsetof(settings, truth), "FILE",
      "table t,x1,..,f1,..,g1,.. with the true drift and diffusion at points", 0, 0, NULL },
    { "groups", CLI_INTEGER, offsetof(settings, groups), "N", "largest number of time intervals; default 20", 2, 10000,
      NULL },
    { "rows", CLI_INTEGER, offsetof(settings, rows), "N", "largest number of rows per interval; default 400", 10, 20000,
      NULL },
    SDE_SOURCE_OPTIONS(settings, source),
    SDE_MOST_OPTION(settings, source),
    { "seed", CLI_INTEGER, offsetof(settings, seed), "N", "random seed of samples and simulations; default 0", 0, 9e15,
      NULL },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N", "number of threads; default 1. Does not change results",
      1, 256, NULL },
    { 0 },
};

static const char text[] =
    "Compares a model with observations and prints one line of JSON for each time interval of DATA:\n"
    "  density, simulated   energy distance of the observations from samples of the model's density, and\n"
    "                       from simulations that start at the first observations (columns have standard\n"
    "                       deviation 1)\n"
    "  moved, travelled     distance of these observations from all, and from the first ones\n"
    "  noise                distance between two halves of these observations\n"
    "  density_columns, simulated_columns   Wasserstein distances in the units of the data\n"
    "  residual             mean |R| of the Fokker-Planck equation; a small value is necessary, but not\n"
    "                       sufficient\n"
    "\n"
    "The last line is a summary: the verdict, which is consistent, contradicted (a test failed) or not\n"
    "determined (other drifts and diffusions would fit as well), with its reasons; the fractions of the\n"
    "movement that density and simulations miss; steps_miss, the fraction of the mean speed along\n"
    "trajectories that the drift does not explain; the tests of step residuals, each with its effect and\n"
    "its deviation from chance in standard errors; the mean -log p; and with --truth the mean absolute\n"
    "errors of drift and diffusion. Unknown values are null. With --json everything is one object with a\n"
    "list `times`.\n";

static int run(int argc, char **argv);
const cli_command sde_command_eval = { "sde eval",
                                       "MODEL DATA [--truth FILE] [--option VALUE ...]",
                                       "compare a model with data or with the true equation",
                                       text,
                                       options,
                                       2,
                                       2,
                                       run };
static const cli_command *const me = &sde_command_eval;

typedef struct job {
    const settings *set;
    hl_context *ctx;
    hl_sde *sde;
    hl_observations *rows, *truth;
    hl_judge *judge;
    size_t dim;
    double nll;
    double *errors; /* with a truth: mean absolute errors of f1.., g1.. */
} job;

/* ---- numbers ---- */

static int mean_nll(job *j)
{
    enum { CHUNK = 4096 };
    double *logp = calloc(CHUNK, sizeof *logp);
    hl_status status = logp ? HL_OK : HL_ERR_NOMEM;
    for (size_t start = 0; start < j->rows->rows && status == HL_OK; start += CHUNK) {
        size_t count = j->rows->rows - start < CHUNK ? j->rows->rows - start : CHUNK;
        status = hl_sde_eval(j->sde, count, j->rows->t + start, j->rows->x + start * j->dim,
                             &(hl_sde_values){ .logp = logp });
        for (size_t r = 0; r < count; r++)
            j->nll -= logp[r] / (double)j->rows->rows;
    }
    free(logp);
    return status == HL_OK ? CLI_OK : cli_fail_library(me, j->ctx, status);
}

static int compare(job *j)
{
    const hl_observations *d = j->rows;
    hl_sde_data data = { d->rows, d->t, d->x, d->paired ? d->trajectory : NULL };
    hl_judge_options o = { .groups = j->set->groups, .rows = j->set->rows, .seed = j->set->seed };
    hl_status status = hl_judge_create(j->ctx, d->dim, &data, &o, &j->judge);
    if (status == HL_OK)
        status = hl_judge_model(j->judge, j->sde);
    return status == HL_OK ? mean_nll(j) : cli_fail_library(me, j->ctx, status);
}

static int read_truth(job *j)
{
    size_t wide = 2 * j->dim;
    char(*name)[24] = calloc(wide, sizeof *name);
    const char **names = calloc(wide, sizeof *names);
    int result = name && names ? CLI_OK : cli_no_memory(me);
    for (size_t i = 0; result == CLI_OK && i < wide; i++) {
        snprintf(name[i], sizeof *name, "%c%zu", i < j->dim ? 'f' : 'g', i % j->dim + 1);
        names[i] = name[i];
    }
    sde_source source = { .path = j->set->truth, .how = { .time = j->set->source.how.time, .model = j->sde } };
    source.how.extra = wide;
    source.how.extra_names = names;
    source.how.unordered = 1;
    source.how.min_rows = 1;
    if (result == CLI_OK)
        result = sde_read(me, j->ctx, &source, &j->truth);
    free(name);
    free(names);
    return result;
}

static int compare_truth(job *j)
{
    size_t d = j->dim, n = j->truth->rows;
    double *f = calloc(n * d, sizeof *f), *g = calloc(n * d, sizeof *g);
    j->errors = calloc(2 * d, sizeof *j->errors);
    hl_status status = f && g && j->errors ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_sde_eval(j->sde, n, j->truth->t, j->truth->x, &(hl_sde_values){ .f = f, .g = g });
    for (size_t k = 0; k < n * d && status == HL_OK; k++) {
        const double *truth = j->truth->extra + k / d * 2 * d;
        j->errors[k % d] += fabs(f[k] - truth[k % d]) / (double)n;
        j->errors[d + k % d] += fabs(g[k] - truth[d + k % d]) / (double)n;
    }
    free(f);
    free(g);
    return status == HL_OK ? CLI_OK : cli_fail_library(me, j->ctx, status);
}

/* ---- printing ---- */

static void print_list(cli_json *json, const char *key, const double *values, size_t count)
{
    cli_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++)
        cli_json_real(json, NULL, values[i]);
    cli_json_close(json, ']');
}

static void print_group(cli_json *json, const job *j, const hl_judge_group *g)
{
    cli_json_open(json, NULL, '{');
    cli_json_real(json, "t_first", g->t_first);
    cli_json_real(json, "t_last", g->t_last);
    cli_json_count(json, "rows", g->rows);
    cli_json_real(json, "residual", g->residual);
    cli_json_real(json, "moved", g->moved);
    cli_json_real(json, "travelled", g->travelled);
    cli_json_real(json, "noise", g->noise);
    cli_json_real(json, "density", g->density);
    cli_json_real(json, "simulated", g->simulated);
    print_list(json, "density_columns", g->density_columns, j->dim);
    print_list(json, "simulated_columns", g->simulated_columns, j->dim);
    cli_json_close(json, '}');
}

/* As members of an object. */
static void print_summary(cli_json *json, const job *j)
{
    hl_verdict v = hl_judge_verdict(j->judge);
    size_t d = j->dim;
    double drift = 0, diffusion = 0;
    sde_print_verdict(json, &v);
    cli_json_real(json, "nll", j->nll);
    cli_json_count(json, "rows", j->rows->rows);
    cli_json_count(json, "trajectories", v.trajectories);
    for (size_t i = 0; i < d && j->errors; i++) {
        drift += j->errors[i] / (double)d;
        diffusion += j->errors[d + i] / (double)d;
    }
    if (j->errors) {
        cli_json_real(json, "drift_mae", drift);
        cli_json_real(json, "diffusion_mae", diffusion);
        print_list(json, "drift_mae_columns", j->errors, d);
        print_list(json, "diffusion_mae_columns", j->errors + d, d);
    }
}

/* A line for each time and one that sums up or, with --json, one object with a list of times. */
static void print(const job *j)
{
    bool one = cli_json_wanted();
    cli_json json = { .file = stdout };
    if (one) {
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "times", '[');
    }
    for (size_t k = 0; k < hl_judge_groups(j->judge); k++) {
        hl_judge_group g = hl_judge_get(j->judge, k);
        print_group(&json, j, &g);
        if (!one) {
            putchar('\n');
            json.comma = false;
        }
    }
    if (one)
        cli_json_close(&json, ']');
    else
        cli_json_open(&json, NULL, '{');
    print_summary(&json, j);
    cli_json_close(&json, '}');
    putchar('\n');
}

static int eval(job *j, const char *data)
{
    sde_source source = j->set->source;
    source.path = data;
    source.how.model = j->sde;
    source.how.min_rows = 2;
    j->dim = hl_sde_describe(j->sde).dim;
    int result = sde_read(me, j->ctx, &source, &j->rows);
    if (result == CLI_OK && j->set->truth)
        result = read_truth(j);
    if (result == CLI_OK)
        result = compare(j);
    if (result == CLI_OK && j->set->truth)
        result = compare_truth(j);
    if (result == CLI_OK)
        print(j);
    return result;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = 1, .groups = 20, .rows = 400, .source.most = SDE_MOST_ROWS };
    const char *path[3];
    int result = cli_parse(me, argc, argv, &set, path);
    if (result >= 0)
        return result;
    job j = { .set = &set };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_sde_load(j.ctx, path[0], &j.sde);
    result = status == HL_OK ? eval(&j, path[1]) : cli_fail_library(me, j.ctx, status);
    hl_judge_free(j.judge);
    hl_observations_free(j.rows);
    hl_observations_free(j.truth);
    hl_sde_free(j.sde);
    hl_context_free(j.ctx);
    free(j.errors);
    return result;
}
