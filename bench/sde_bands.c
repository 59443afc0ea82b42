/* sde_bands.c - `hollow bench sde --bands`: do the bands of a regression hold the true drift and diffusion as often as they say? By default four
 * equations; with --problem any of sde_equation.h. With --method fp or pseudo-ml those of networks: snapshots, or trajectories.
 *
 * Each data set, 400 trajectories at 50 times or as many snapshots, each of a trajectory of its own, gets a regression with bands, which
 * are compared with the truth at nine of its observations: at the quantiles .1 to .9 of the first column. One line of JSON for each
 * data set. With --out FILE lines are added to the file, and data sets that it has are left out: a run that was stopped goes on. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/sde_equation.h"

enum { TRAJECTORIES = 400, POINTS = 9, REPLICATES = 40, NETWORKS = 20, LINE = 400, MOST_SETS = 10000 };
static const char default_problems[] = "ou,well,gbm,vanderpol";
static const double longest_step = 0.025;
static const uint64_t first_seed = 7000; /* the constants of regress_resample.c were chosen on the first 15 data sets */

/* What one data set shows: shares of the points whose band holds the truth, and the mean half-width over the mean size. */
typedef struct coverage {
    double f, g, wide_f, wide_g;
} coverage;

typedef struct job {
    const bench_sde_options *options;
    hl_context *ctx;
    FILE *out;  /* NULL: none */
    char *done; /* what the file had */
} job;

/* One state of each of TRAJECTORIES trajectories at every time, to x; clock is scratch. */
static hl_status snapshots_of(const job *j, const sde_problem *p, uint64_t seed, double *x, double *clock)
{
    hl_noise_system system = { .n = p->dim, .coefficients = p->coefficients, .slope = 1 };
    hl_status status = HL_OK;
    for (size_t k = 0; k < TRAJECTORIES * SDE_TIMES; k++)
        p->start(seed, k, x + k * p->dim);
    for (size_t k = 1; k < SDE_TIMES && status == HL_OK; k++) {
        hl_simulator_options o = { .method = p->method, .seed = seed };
        hl_simulator *simulator = NULL;
        while (sde_problem_time(k) > longest_step * (double)(1 << o.level))
            o.level++;
        memset(clock, 0, TRAJECTORIES * sizeof *clock);
        status = hl_simulator_create(j->ctx, &system, &o, &simulator);
        if (status == HL_OK)
            status = hl_simulator_run(simulator, TRAJECTORIES, k * TRAJECTORIES, clock, sde_problem_time(k), 1,
                                      x + k * TRAJECTORIES * p->dim, NULL);
        hl_simulator_free(simulator);
        if (status == HL_OK && cli_interrupted())
            status = HL_STOPPED;
    }
    return status;
}

/* The same of an equation that has no simulator of its own. */
static hl_status snapshots_by_euler(const job *j, const sde_equation *e, uint64_t seed, double *x)
{
    hl_status status = HL_OK;
    double *states = calloc(TRAJECTORIES * SDE_TIMES, e->dim * sizeof *states);
    if (!states)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < SDE_TIMES && status == HL_OK; k++) {
        status = sde_equation_simulate(e, j->ctx, TRAJECTORIES, seed * 1000 + k, states);
        for (size_t r = 0; r < TRAJECTORIES; r++)
            memcpy(x + (k * TRAJECTORIES + r) * e->dim, states + (r * SDE_TIMES + k) * e->dim, e->dim * sizeof *x);
    }
    free(states);
    return status;
}

/* Whole trajectories, or rows that each have a trajectory of their own. */
static hl_status observe(const job *j, const sde_equation *e, bool snapshots, uint64_t seed, hl_sde_data *data)
{
    size_t rows = TRAJECTORIES * SDE_TIMES;
    double *t = calloc(rows, sizeof *t), *x = calloc(rows, e->dim * sizeof *x);
    size_t *trajectory = snapshots ? NULL : calloc(rows, sizeof *trajectory);
    *data = (hl_sde_data){ rows, t, x, trajectory };
    if (!t || !x || (!snapshots && !trajectory))
        return HL_ERR_NOMEM;
    hl_status status = !snapshots ? sde_equation_simulate(e, j->ctx, TRAJECTORIES, seed, x)
                       : e->with  ? snapshots_of(j, e->with, seed, x, t)
                                  : snapshots_by_euler(j, e, seed, x);
    for (size_t k = 0; k < rows; k++) {
        t[k] = e->end / (SDE_TIMES - 1) * (double)(snapshots ? k / TRAJECTORIES : k % SDE_TIMES);
        if (trajectory)
            trajectory[k] = k / SDE_TIMES;
    }
    return status;
}

typedef struct place {
    double x;
    size_t row;
} place;

static int by_x(const void *a, const void *b)
{
    const place *p = a, *q = b;
    return (p->x > q->x) - (p->x < q->x);
}

static hl_status choose_points(const hl_sde_data *data, size_t d, double *t, double *x)
{
    place *at = calloc(data->rows, sizeof *at);
    if (!at)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < data->rows; r++)
        at[r] = (place){ data->x[r * d], r };
    qsort(at, data->rows, sizeof *at, by_x);
    for (size_t k = 0; k < POINTS; k++) {
        size_t row = at[(k + 1) * data->rows / (POINTS + 1)].row;
        t[k] = data->t[row];
        memcpy(x + k * d, data->x + row * d, d * sizeof *x);
    }
    free(at);
    return HL_OK;
}

static void measure(size_t count, const double *low, const double *high, const double *truth, double *share,
                    double *wide)
{
    double size = 0, half = 0;
    *share = 0;
    for (size_t k = 0; k < count; k++) {
        *share += low[k] <= truth[k] && truth[k] <= high[k] ? 1. / (double)count : 0;
        half += (high[k] - low[k]) / 2;
        size += truth[k] < 0 ? -truth[k] : truth[k];
    }
    *wide = half / size;
}

static hl_status compare(const sde_equation *e, hl_sde *sde, const hl_sde_data *data, coverage *c)
{
    size_t d = e->dim, n = POINTS * d;
    double t[POINTS], *x = calloc(7 * n, sizeof *x);
    hl_status status = x ? choose_points(data, d, t, x) : HL_ERR_NOMEM;
    double *low = x + n, *high = low + n, *g_low = high + n, *g_high = g_low + n, *f = g_high + n, *g = f + n;
    if (status == HL_OK)
        status = hl_sde_bands(sde, POINTS, t, x, &(hl_sde_band_values){ low, high, g_low, g_high, NULL });
    if (status == HL_OK) {
        sde_equation_values(e, POINTS, t, x, f, g);
        measure(n, low, high, f, &c->f, &c->wide_f);
        measure(n, g_low, g_high, g, &c->g, &c->wide_g);
    }
    free(x);
    return status;
}

static void print(const job *j, const char *key, const char *form, const coverage *c)
{
    char line[LINE];
    snprintf(line, sizeof line,
             "{%s, \"form\": \"%s\", \"drift_covered\": %.4f, \"diffusion_covered\": %.4f, \"drift_half_width\": %.4f, "
             "\"diffusion_half_width\": %.4f}\n",
             key, form, c->f, c->g, c->wide_f, c->wide_g);
    fputs(line, j->out ? j->out : stdout);
    fflush(j->out ? j->out : stdout);
}

/* A regression with bands as a model. */
static hl_status regress(const job *j, const sde_equation *e, const hl_sde_data *data, uint64_t seed, char form[40],
                         hl_sde **sde)
{
    hl_sde_simple *simple = NULL;
    hl_sde_regress_options o = { .seed = seed, .replicates = REPLICATES };
    hl_status status = hl_sde_regress(j->ctx, data, e->dim, &o, &simple);
    hl_sde_spec spec = { .dim = e->dim, .simple = simple, .hidden = 1, .layers = 1, .components = 1 };
    if (status == HL_OK)
        status = hl_sde_create(j->ctx, &spec, sde);
    if (status == HL_OK)
        snprintf(form, 40, "%s", hl_sde_simple_report(simple).form);
    hl_sde_simple_free(simple);
    return status;
}

/* Networks with bands. */
static hl_status learn(const job *j, const sde_equation *e, const hl_sde_data *data, uint64_t seed, char form[40],
                       hl_sde **sde)
{
    const hl_sde_observations rows = {
        .rows = data->rows, .dim = e->dim, .t = data->t, .x = data->x, .trajectory = data->trajectory
    };
    char text[2][24];
    snprintf(text[0], sizeof text[0], "%llu", (unsigned long long)seed);
    snprintf(text[1], sizeof text[1], "%d", (int)NETWORKS);
    const char *const set[][2] = {
        { "form", "network" }, { "method", j->options->method }, { "seed", text[0] }, { "bands", text[1] }
    };
    hl_settings *settings = NULL;
    hl_sde_outcome *outcome = NULL;
    hl_status status = hl_settings_create(j->ctx, hl_sde_learn_options(), &settings);
    for (size_t k = 0; k < sizeof set / sizeof *set && status == HL_OK; k++)
        status = hl_settings_set(settings, set[k][0], set[k][1]);
    if (status == HL_OK)
        status = hl_sde_learn(j->ctx, &rows, settings, NULL, sde, &outcome);
    snprintf(form, 40, "%s", j->options->method);
    hl_sde_outcome_free(outcome);
    hl_settings_free(settings);
    return status;
}

static bool networks(const job *j)
{
    return j->options->method &&
           (strcmp(j->options->method, "fp") == 0 || strcmp(j->options->method, "pseudo-ml") == 0);
}

static hl_status one(const job *j, const sde_equation *e, bool snapshots, uint64_t seed, const char *key)
{
    hl_sde_data data = { 0 };
    hl_sde *sde = NULL;
    char form[40] = "";
    coverage c;
    hl_status status = observe(j, e, snapshots, first_seed + seed, &data);
    if (status == HL_OK)
        status = (networks(j) ? learn : regress)(j, e, &data, seed, form, &sde);
    if (status == HL_OK)
        status = compare(e, sde, &data, &c);
    if (status == HL_OK)
        print(j, key, form, &c);
    hl_sde_free(sde);
    sde_problem_forget(&data);
    return status;
}

/* The file so far, as one text. */
static int open_file(job *j)
{
    const char *path = j->options->out;
    size_t most = (size_t)MOST_SETS * LINE;
    if (!path)
        return CLI_OK;
    j->done = calloc(most + 1, 1);
    FILE *before = fopen(path, "r");
    if (before && j->done && fread(j->done, 1, most, before) == most)
        return cli_fail(&bench_command, CLI_WRONG, "%s is too long", path);
    if (before)
        fclose(before);
    j->out = fopen(path, "a");
    return j->done && j->out ? CLI_OK : cli_fail(&bench_command, CLI_FAILED, "%s cannot be written", path);
}

int bench_sde_bands(const bench_sde_options *b)
{
    const char *list = b->problem ? b->problem : default_problems;
    char word[80];
    if (sde_equation_unknown(list, word, sizeof word))
        return cli_fail(&bench_command, CLI_WRONG, "--problem: unknown problem '%s'", word);
    job j = { .options = b };
    int result = open_file(&j);
    hl_status status = result == CLI_OK
                           ? hl_context_create(&(hl_context_options){ .threads = b->threads, .stop = cli_stop }, &j.ctx)
                           : HL_STOPPED;
    for (uint64_t seed = 1; seed <= b->seeds && status == HL_OK; seed++)
        for (const sde_equation *e = sde_equations; e->name && status == HL_OK; e++)
            for (int snapshots = 0; snapshots < 2 && status == HL_OK; snapshots++) {
                if (networks(&j) && snapshots != (strcmp(b->method, "fp") == 0))
                    continue;
                char key[LINE / 2];
                snprintf(key, sizeof key,
                         "\"bench\": \"sde bands\", \"problem\": \"%s\", \"data\": \"%s\", \"seed\": %llu", e->name,
                         snapshots ? "snapshots" : "trajectories", (unsigned long long)seed);
                char with_comma[LINE / 2 + 2];
                snprintf(with_comma, sizeof with_comma, "%s,", key);
                if (sde_equation_listed(e, list) && !(j.done && strstr(j.done, with_comma)))
                    status = one(&j, e, snapshots, seed, key);
            }
    if (result == CLI_OK && status != HL_OK)
        result = status == HL_STOPPED ? CLI_STOPPED : cli_fail_library(&bench_command, j.ctx, status);
    if (j.out && fclose(j.out) != 0 && result == CLI_OK)
        result = cli_fail(&bench_command, CLI_FAILED, "%s cannot be written", b->out);
    hl_context_free(j.ctx);
    free(j.done);
    return result;
}
