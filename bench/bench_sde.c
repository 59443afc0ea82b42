/* bench_sde.c - learning known equations from all and from 5% of the observations of 5000 trajectories at 50 times, by
 * Fokker-Planck matching and by pseudo-likelihood: the paper's pendulum, dp = v dt, dv = -2 sin(p) dt + 0.2 dW from two
 * modes, and a chain of five oscillators with state-dependent noise. One line of JSON for each run: mean absolute
 * errors over the states of 2,000 fresh trajectories, and the seconds of training, by the clock and of the processor.
 *
 *     bench_sde [pendulum | chain [SEEDS [ITERATIONS [mlp | hollow [UNITS [KEPT [mixture | flow [NETWORKS [CURVATURE]]]]]]]]]
 *
 * KEPT: this share alone, 0 for both. A flow is learned by Fokker-Planck matching only, as the density makes no difference
 * to pseudo-likelihood. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "hollow/hollow.h"

enum { TRAIN = 5000, FRESH = 2000, TIMES = 50, LEVEL = 4 };

static hl_context *ctx;

static void must(hl_status status)
{
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", hl_status_text(status), hl_context_message(ctx));
        exit(1);
    }
}

/* A problem: its equation, which also is the truth that errors are measured against, and where trajectories start. */
typedef struct problem {
    const char *name;
    size_t dim;
    hl_noise_fn *coefficients;
    void (*start)(uint64_t seed, size_t row, double *y);
    const char *method; /* of its simulation */
} problem;

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
    y[0] = (hl_random_bits(seed, 1, row) & 1 ? 1 : -1) + 0.1 * hl_random_normal(seed, 2, row);
    y[1] = 0.1 * hl_random_normal(seed, 3, row);
}

/* Five oscillators in a chain, x = (q_1..q_5, v_1..v_5): dq = v dt, dv_i = (-q_i - (2 q_i - q_i-1 - q_i+1) - v_i / 4)
 * dt + 0.3 sqrt(1 + v_i^2) / sqrt(2) dW_i. */
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
    double side = hl_random_bits(seed, 1, row) & 1 ? 1 : -1;
    for (size_t i = 0; i < LINKS; i++) {
        y[i] = side * (i % 2 ? 0.5 : 1.5) + 0.2 * hl_random_normal(seed, 2, row * LINKS + i);
        y[LINKS + i] = 0.2 * hl_random_normal(seed, 3, row * LINKS + i);
    }
}

static const problem problems[] = { { "pendulum", 2, pendulum, pendulum_start, "sra" },
                                    { "chain", 2 * LINKS, chain, chain_start, "milstein" } };

static double *doubles(size_t count)
{
    double *values = calloc(count, sizeof *values);
    if (!values)
        exit(1);
    return values;
}

/* `rows` trajectories at TIMES equal times of 0..5: rows x TIMES x dim. */
static double *simulate(const problem *p, size_t rows, uint64_t seed)
{
    double *y = doubles(rows * p->dim), *t = doubles(rows), *all = doubles(rows * TIMES * p->dim);
    hl_simulator *simulator;
    for (size_t r = 0; r < rows; r++)
        p->start(seed, r, y + r * p->dim);
    must(hl_simulator_create(ctx, &(hl_noise_system){ .n = p->dim, .coefficients = p->coefficients, .slope = 1 },
                             &(hl_simulator_options){ .method = p->method, .seed = seed, .level = LEVEL }, &simulator));
    must(hl_simulator_run(simulator, rows, 0, t, 5.0 / (TIMES - 1), TIMES - 1, y, all));
    hl_simulator_free(simulator);
    free(y);
    free(t);
    return all;
}

/* The kept observations; returns how many. */
static size_t keep(const problem *p, const double *all, double share, uint64_t seed, double *t, double *x,
                   size_t *trajectory)
{
    size_t n = 0;
    for (size_t k = 0; k < (size_t)TRAIN * TIMES; k++)
        if (hl_random_uniform(seed, 4, k) < share) {
            t[n] = 5.0 / (TIMES - 1) * (double)(k % TIMES);
            memcpy(x + p->dim * n, all + p->dim * k, p->dim * sizeof *x);
            trajectory[n++] = k / TIMES;
        }
    return n;
}

static double mean_gap(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t k = 0; k < count; k++)
        sum += fabs(a[k] - b[k]) / (double)count;
    return sum;
}

/* Mean absolute errors over all states of the fresh trajectories. */
static void errors(const problem *p, hl_sde *sde, const double *fresh, double *drift, double *diffusion)
{
    size_t rows = (size_t)FRESH * TIMES, size = rows * p->dim;
    double *t = doubles(rows), *f = doubles(2 * size), *g = doubles(2 * size);
    for (size_t r = 0; r < rows; r++)
        t[r] = 5.0 / (TIMES - 1) * (double)(r % TIMES);
    must(hl_sde_eval(sde, rows, t, fresh, &(hl_sde_values){ .f = f, .g = g }));
    p->coefficients(NULL, &(hl_rows){ .count = rows, .t = t, .y = fresh }, f + size, g + size, NULL);
    *drift = mean_gap(f, f + size, size);
    *diffusion = mean_gap(g, g + size, size);
    free(t);
    free(f);
    free(g);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void run(const problem *p, const hl_sde_data *data, const double *fresh, double share, hl_sde_method method,
                uint64_t seed, size_t iterations, const hl_sde_spec *spec)
{
    hl_sde *sde;
    hl_sde_fit *fit;
    hl_sde_fit_report report = { 0 }, last;
    hl_status status;
    double start = seconds(), cpu = (double)clock(), drift, diffusion;
    must(hl_sde_create(ctx, spec, &sde));
    must(hl_sde_init(sde, seed));
    must(hl_sde_fit_create(sde, data, &(hl_sde_fit_options){ .method = method, .iterations = iterations, .seed = seed },
                           &fit));
    while ((status = hl_sde_fit_step(fit, &last)) == HL_OK)
        report = last;
    must(status);
    must(hl_sde_fit_finish(fit));
    double spent = seconds() - start;
    cpu = ((double)clock() - cpu) / CLOCKS_PER_SEC;
    errors(p, sde, fresh, &drift, &diffusion);
    printf("{\"bench\": \"sde\", \"problem\": \"%s\", \"method\": \"%s\", \"network\": \"%s\", \"density\": \"%s\", "
           "\"kept\": %g, \"seed\": "
           "%llu, "
           "\"drift_mae\": %.4f, \"diffusion_mae\": %.4f, \"loss\": %.4f, \"nll\": %.4f, \"seconds\": %.2f, "
           "\"cpu_seconds\": %.2f}\n",
           p->name, method == HL_SDE_FOKKER_PLANCK ? "fp" : "pseudo-ml", hl_sde_describe(sde).network,
           hl_sde_describe(sde).density, share, (unsigned long long)seed, drift, diffusion, report.loss, report.nll,
           spent, cpu);
    fflush(stdout);
    hl_sde_fit_free(fit);
    hl_sde_free(sde);
}

int main(int argc, char **argv)
{
    const problem *p = &problems[argc > 1 && strcmp(argv[1], "chain") == 0];
    size_t seeds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1, iterations = argc > 3 ? strtoul(argv[3], NULL, 10) : 0;
    const char *network = argc > 4 ? argv[4] : NULL;
    size_t units = argc > 5 ? strtoul(argv[5], NULL, 10) : 0;
    double only = argc > 6 ? strtod(argv[6], NULL) : 0;
    hl_sde_spec spec = { .dim = p->dim,
                         .network = network,
                         .hidden = units,
                         .net = { .hidden = units, .width = units },
                         .density = argc > 7 ? argv[7] : NULL,
                         .flows = argc > 8 ? strtoul(argv[8], NULL, 10) : 0,
                         .curvature = argc > 9 ? argv[9] : NULL };
    bool flow = spec.density && strcmp(spec.density, "flow") == 0;
    double *t = doubles((size_t)TRAIN * TIMES), *x = doubles((size_t)TRAIN * TIMES * p->dim);
    size_t *trajectory = calloc((size_t)TRAIN * TIMES, sizeof *trajectory);
    if (!trajectory)
        return 1;
    must(hl_context_create(NULL, &ctx));
    double *fresh = simulate(p, FRESH, 1000);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        double *all = simulate(p, TRAIN, seed);
        for (int sparse = 0; sparse < 2; sparse++) {
            double share = only > 0 ? only : sparse ? 0.05 : 1;
            if (only > 0 && sparse)
                break;
            hl_sde_data data = { keep(p, all, share, seed, t, x, trajectory), t, x, trajectory };
            run(p, &data, fresh, share, HL_SDE_FOKKER_PLANCK, seed, iterations, &spec);
            if (!flow)
                run(p, &data, fresh, share, HL_SDE_PSEUDO_LIKELIHOOD, seed, iterations, &spec);
        }
        free(all);
    }
    free(fresh);
    free(t);
    free(x);
    free(trajectory);
    hl_context_free(ctx);
    return 0;
}
