/* sde_problem.c - the pendulum and the chain; simulating, observing, learning and judging either. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "sde_problem.h"

enum { LEVEL = 4 }; /* 2^LEVEL steps between neighbours in time */

/* Independent random numbers of one seed. */
enum { SIDE, POSITION, VELOCITY, KEPT, STREAMS };
static uint64_t stream(uint64_t seed, int which)
{
    return STREAMS * seed + (uint64_t)which;
}

/* ---- the pendulum ---- */

static int pendulum(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++) {
        if (f) {
            f[2 * r] = at->y[2 * r + 1];
            f[2 * r + 1] = -2 * sin(at->y[2 * r]);
        }
        if (g) {
            g[2 * r] = 0;
            g[2 * r + 1] = 0.2;
        }
        if (dg)
            dg[2 * r] = dg[2 * r + 1] = 0;
    }
    return 0;
}

static void pendulum_start(uint64_t seed, size_t row, double *y)
{
    double side = hl_random_uniform(stream(seed, SIDE), 0, row) < 0.5 ? -1 : 1;
    y[0] = side + 0.1 * hl_random_normal(stream(seed, POSITION), 0, row);
    y[1] = 0.1 * hl_random_normal(stream(seed, VELOCITY), 0, row);
}

const sde_problem sde_pendulum = { "pendulum", 2, pendulum, pendulum_start, "sra" };

/* ---- the chain ---- */

enum { LINKS = 5 };

static int chain(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++)
        for (size_t i = 0; i < LINKS; i++) {
            const double *q = at->y + r * 2 * LINKS, *v = q + LINKS;
            size_t low = r * 2 * LINKS + i, high = low + LINKS;
            double left = i ? q[i - 1] : 0, right = i + 1 < LINKS ? q[i + 1] : 0, root = sqrt(1 + v[i] * v[i]);
            if (f) {
                f[low] = v[i];
                f[high] = -q[i] - (2 * q[i] - left - right) - 0.25 * v[i];
            }
            if (g) {
                g[low] = 0;
                g[high] = 0.3 * sqrt(0.5) * root;
            }
            if (dg) {
                dg[low] = 0;
                dg[high] = 0.3 * sqrt(0.5) * v[i] / root;
            }
        }
    return 0;
}

static void chain_start(uint64_t seed, size_t row, double *y)
{
    double side = hl_random_uniform(stream(seed, SIDE), 0, row) < 0.5 ? -1 : 1;
    for (size_t i = 0; i < LINKS; i++) {
        y[i] = side * (i % 2 ? 0.5 : 1.5) + 0.2 * hl_random_normal(stream(seed, POSITION), 0, row * LINKS + i);
        y[LINKS + i] = 0.2 * hl_random_normal(stream(seed, VELOCITY), 0, row * LINKS + i);
    }
}

const sde_problem sde_chain = { "chain", 2 * LINKS, chain, chain_start, "milstein" };

/* ---- others ---- */

/* Equations of which g_i depends on x_i alone: the values at one row. */
typedef void row_fn(const double *x, double *f, double *g, double *dg);

static int by_rows(row_fn *row, size_t dim, const hl_rows *at, double *f, double *g, double *dg)
{
    double value[3][10];
    for (size_t r = 0; r < at->count; r++) {
        row(at->y + r * dim, value[0], value[1], value[2]);
        double *const to[] = { f, g, dg };
        for (size_t k = 0; k < 3; k++)
            if (to[k])
                memcpy(to[k] + r * dim, value[k], dim * sizeof **value);
    }
    return 0;
}

/* Starts from a point, with normal deviations. */
static void start_near(uint64_t seed, size_t row, size_t dim, double at, double deviation, double *y)
{
    for (size_t i = 0; i < dim; i++)
        y[i] = at + deviation * hl_random_normal(stream(seed, POSITION), 0, row * dim + i);
}

static void ou_row(const double *x, double *f, double *g, double *dg)
{
    f[0] = -0.6 * x[0];
    g[0] = 0.4;
    dg[0] = 0;
}
static int ou(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    return by_rows(ou_row, 1, at, f, g, dg);
}
static void ou_start(uint64_t seed, size_t row, double *y)
{
    start_near(seed, row, 1, 2, 0.3, y);
}
const sde_problem sde_ou = { "ou", 1, ou, ou_start, "sra" };

static void well_row(const double *x, double *f, double *g, double *dg)
{
    f[0] = x[0] - x[0] * x[0] * x[0];
    g[0] = 0.45;
    dg[0] = 0;
}
static int well(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    return by_rows(well_row, 1, at, f, g, dg);
}
static void well_start(uint64_t seed, size_t row, double *y)
{
    start_near(seed, row, 1, 0.1, 0.3, y);
}
const sde_problem sde_well = { "well", 1, well, well_start, "sra" };

static void gbm_row(const double *x, double *f, double *g, double *dg)
{
    f[0] = 0.12 * x[0];
    g[0] = 0.25 * x[0];
    dg[0] = 0.25;
}
static int gbm(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    return by_rows(gbm_row, 1, at, f, g, dg);
}
static void gbm_start(uint64_t seed, size_t row, double *y)
{
    y[0] = exp(0.2 * hl_random_normal(stream(seed, POSITION), 0, row));
}
const sde_problem sde_gbm = { "gbm", 1, gbm, gbm_start, "milstein" };

static void vanderpol_row(const double *x, double *f, double *g, double *dg)
{
    f[0] = x[1];
    f[1] = (1 - x[0] * x[0]) * x[1] - x[0];
    g[0] = g[1] = 0.3;
    dg[0] = dg[1] = 0;
}
static int vanderpol(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    return by_rows(vanderpol_row, 2, at, f, g, dg);
}
static void vanderpol_start(uint64_t seed, size_t row, double *y)
{
    start_near(seed, row, 2, 0, 0.3, y);
    y[0] += 2;
}
const sde_problem sde_vanderpol = { "vanderpol", 2, vanderpol, vanderpol_start, "sra" };

static void linear_row(const double *x, double *f, double *g, double *dg)
{
    for (size_t i = 0; i < 10; i++) {
        f[i] = 0.4 * ((i ? 0.3 * x[i - 1] : 0) - x[i]);
        g[i] = 0.3;
        dg[i] = 0;
    }
}
static int linear(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    return by_rows(linear_row, 10, at, f, g, dg);
}
static void linear_start(uint64_t seed, size_t row, double *y)
{
    start_near(seed, row, 10, 2, 0.3, y);
}
const sde_problem sde_linear = { "linear", 10, linear, linear_start, "sra" };

const sde_problem *const sde_problems[] = { &sde_pendulum, &sde_chain,     &sde_ou,     &sde_well,
                                            &sde_gbm,      &sde_vanderpol, &sde_linear, NULL };

/* ---- trajectories and observations ---- */

double sde_problem_time(size_t k)
{
    return 5.0 / (SDE_TIMES - 1) * (double)k;
}

hl_status sde_problem_follow(hl_context *ctx, const hl_noise_system *system, const hl_simulator_options *options,
                             size_t rows, double *y, double *states)
{
    enum { CHUNK = 250 }; /* rows between looks at Ctrl-C; a row's bits do not depend on it */
    double t[CHUNK];
    hl_simulator *simulator = NULL;
    hl_status status = hl_simulator_create(ctx, system, options, &simulator);
    for (size_t r = 0; r < rows && status == HL_OK; r += CHUNK) {
        size_t count = rows - r < CHUNK ? rows - r : CHUNK;
        memset(t, 0, sizeof t);
        status = hl_simulator_run(simulator, count, r, t, sde_problem_time(1), SDE_TIMES - 1, y + r * system->n,
                                  states + r * SDE_TIMES * system->n);
        if (status == HL_OK && cli_interrupted())
            status = HL_STOPPED;
    }
    hl_simulator_free(simulator);
    return status;
}

hl_status sde_problem_simulate(const sde_problem *p, hl_context *ctx, size_t rows, uint64_t seed, double *states)
{
    hl_noise_system system = { .n = p->dim, .coefficients = p->coefficients, .slope = 1 };
    hl_simulator_options options = { .method = p->method, .seed = seed, .level = LEVEL };
    double *y = calloc(rows, p->dim * sizeof *y);
    for (size_t r = 0; r < rows && y; r++)
        p->start(seed, r, y + r * p->dim);
    hl_status status = y ? sde_problem_follow(ctx, &system, &options, rows, y, states) : HL_ERR_NOMEM;
    free(y);
    return status;
}

hl_status sde_problem_observe(const sde_problem *p, size_t rows, const double *states, double share, uint64_t seed,
                              hl_sde_data *data)
{
    size_t most = rows * SDE_TIMES, n = 0;
    double *t = calloc(most, sizeof *t), *x = calloc(most, p->dim * sizeof *x);
    size_t *trajectory = calloc(most, sizeof *trajectory);
    for (size_t k = 0; k < most && t && x && trajectory; k++)
        if (hl_random_uniform(stream(seed, KEPT), 0, k) < share) {
            t[n] = sde_problem_time(k % SDE_TIMES);
            memcpy(x + p->dim * n, states + p->dim * k, p->dim * sizeof *x);
            trajectory[n++] = k / SDE_TIMES;
        }
    *data = (hl_sde_data){ n, t, x, trajectory };
    return t && x && trajectory ? HL_OK : HL_ERR_NOMEM;
}

void sde_problem_forget(hl_sde_data *data)
{
    free((void *)data->t);
    free((void *)data->x);
    free((void *)data->trajectory);
    *data = (hl_sde_data){ 0 };
}

/* ---- learning and judging ---- */

static hl_status train(hl_sde_fit *fit, sde_outcome *outcome)
{
    hl_sde_fit_report report;
    hl_status status;
    while ((status = hl_sde_fit_step(fit, &report)) == HL_OK) {
        outcome->loss = report.loss;
        outcome->nll = report.nll;
        if (cli_interrupted())
            return HL_STOPPED;
    }
    return status == HL_STOPPED ? hl_sde_fit_finish(fit) : status;
}

hl_status sde_problem_learn(const sde_problem *p, hl_context *ctx, const hl_sde_spec *spec,
                            const hl_sde_fit_options *options, const hl_sde_data *data, hl_sde **sde,
                            sde_outcome *outcome)
{
    hl_sde_spec own = *spec;
    hl_sde_fit *fit = NULL;
    double start = cli_now(), cpu = numbers_cpu_time();
    own.dim = p->dim;
    *outcome = (sde_outcome){ 0 };
    *sde = NULL;
    hl_status status = hl_sde_create(ctx, &own, sde);
    if (status == HL_OK)
        status = hl_sde_init(*sde, options->seed);
    if (status == HL_OK)
        status = hl_sde_fit_create(*sde, data, options, &fit);
    if (status == HL_OK)
        status = train(fit, outcome);
    hl_sde_fit_free(fit);
    outcome->seconds = cli_now() - start;
    outcome->cpu_seconds = numbers_cpu_time() - cpu;
    return status;
}

static double mean_gap(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t k = 0; k < count; k++)
        sum += fabs(a[k] - b[k]) / (double)count;
    return sum;
}

hl_status sde_problem_judge(const sde_problem *p, hl_sde *sde, size_t rows, const double *states, sde_outcome *outcome)
{
    size_t count = rows * SDE_TIMES, size = count * p->dim;
    double *t = calloc(count, sizeof *t), *f = calloc(size, 4 * sizeof *f);
    hl_status status = t && f ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        double *g = f + size, *true_f = f + 2 * size, *true_g = f + 3 * size;
        for (size_t r = 0; r < count; r++)
            t[r] = sde_problem_time(r % SDE_TIMES);
        status = hl_sde_eval(sde, count, t, states, &(hl_sde_values){ .f = f, .g = g });
        p->coefficients(NULL, &(hl_rows){ .count = count, .t = t, .y = states }, true_f, true_g, NULL);
        outcome->drift = mean_gap(f, true_f, size);
        outcome->diffusion = mean_gap(g, true_g, size);
    }
    free(t);
    free(f);
    return status;
}
