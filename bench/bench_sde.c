/* bench_sde.c - the paper's pendulum: dp = v dt, dv = -2 sin(p) dt + 0.2 dW, from two modes; drift and diffusion learned from all
 * and from 5% of the observations by Fokker-Planck matching and by pseudo-likelihood. One line of JSON for each run: mean
 * absolute errors over the states of 2,000 fresh trajectories, and the seconds of training, by the clock and of the processor.
 *
 *     bench_sde [SEEDS [ITERATIONS [NETWORK]]] */
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

/* `rows` trajectories at TIMES equal times of 0..5: rows x TIMES x 2. */
static double *simulate(size_t rows, uint64_t seed)
{
    double *y = calloc(rows * 2, sizeof *y), *t = calloc(rows, sizeof *t), *all = calloc(rows * TIMES * 2, sizeof *all);
    hl_simulator *simulator;
    if (!y || !t || !all)
        exit(1);
    for (size_t r = 0; r < rows; r++) {
        y[2 * r] = (hl_random_bits(seed, 1, r) & 1 ? 1 : -1) + 0.1 * hl_random_normal(seed, 2, r);
        y[2 * r + 1] = 0.1 * hl_random_normal(seed, 3, r);
    }
    must(hl_simulator_create(ctx, &(hl_noise_system){ .n = 2, .coefficients = pendulum },
                             &(hl_simulator_options){ .method = "sra", .seed = seed, .level = LEVEL }, &simulator));
    must(hl_simulator_run(simulator, rows, 0, t, 5.0 / (TIMES - 1), TIMES - 1, y, all));
    hl_simulator_free(simulator);
    free(y);
    free(t);
    return all;
}

/* The kept observations; returns how many. */
static size_t keep(const double *all, double share, uint64_t seed, double *t, double *x, size_t *trajectory)
{
    size_t n = 0;
    for (size_t k = 0; k < (size_t)TRAIN * TIMES; k++)
        if (hl_random_uniform(seed, 4, k) < share) {
            t[n] = 5.0 / (TIMES - 1) * (double)(k % TIMES);
            memcpy(x + 2 * n, all + 2 * k, 2 * sizeof *x);
            trajectory[n++] = k / TIMES;
        }
    return n;
}

static void errors(hl_sde *sde, const double *fresh, double *drift, double *diffusion)
{
    size_t rows = (size_t)FRESH * TIMES;
    double *t = calloc(rows, sizeof *t), *f = calloc(2 * rows, sizeof *f), *g = calloc(2 * rows, sizeof *g);
    if (!t || !f || !g)
        exit(1);
    for (size_t r = 0; r < rows; r++)
        t[r] = 5.0 / (TIMES - 1) * (double)(r % TIMES);
    must(hl_sde_eval(sde, rows, t, fresh, &(hl_sde_values){ .f = f, .g = g }));
    *drift = *diffusion = 0;
    for (size_t r = 0; r < rows; r++) {
        *drift += fabs(f[2 * r] - fresh[2 * r + 1]) + fabs(f[2 * r + 1] + 2 * sin(fresh[2 * r]));
        *diffusion += fabs(g[2 * r]) + fabs(g[2 * r + 1] - 0.2);
    }
    *drift /= 2 * (double)rows;
    *diffusion /= 2 * (double)rows;
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

static void run(const hl_sde_data *data, const double *fresh, double share, hl_sde_method method, uint64_t seed,
                size_t iterations, const char *network)
{
    hl_sde *sde;
    hl_sde_fit *fit;
    hl_sde_fit_report report = { 0 }, last;
    double start = seconds(), cpu = (double)clock(), drift, diffusion;
    must(hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2, .network = network }, &sde));
    must(hl_sde_init(sde, seed));
    must(hl_sde_fit_create(sde, data, &(hl_sde_fit_options){ .method = method, .iterations = iterations, .seed = seed },
                           &fit));
    hl_status status;
    while ((status = hl_sde_fit_step(fit, &last)) == HL_OK)
        report = last;
    must(status);
    must(hl_sde_fit_finish(fit));
    double spent = seconds() - start;
    cpu = ((double)clock() - cpu) / CLOCKS_PER_SEC;
    errors(sde, fresh, &drift, &diffusion);
    printf("{\"bench\": \"sde_pendulum\", \"method\": \"%s\", \"network\": \"%s\", \"kept\": %g, \"seed\": %llu, "
           "\"drift_mae\": %.4f, \"diffusion_mae\": %.4f, \"loss\": %.4f, \"nll\": %.4f, \"seconds\": %.2f, "
           "\"cpu_seconds\": %.2f}\n",
           method == HL_SDE_FOKKER_PLANCK ? "fp" : "pseudo-ml", network, share, (unsigned long long)seed, drift,
           diffusion, report.loss, report.nll, spent, cpu);
    fflush(stdout);
    hl_sde_fit_free(fit);
    hl_sde_free(sde);
}

int main(int argc, char **argv)
{
    static double t[TRAIN * TIMES], x[TRAIN * TIMES * 2];
    static size_t trajectory[TRAIN * TIMES];
    size_t seeds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1, iterations = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    const char *network = argc > 3 ? argv[3] : "mlp";
    must(hl_context_create(NULL, &ctx));
    double *fresh = simulate(FRESH, 1000);
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        double *all = simulate(TRAIN, seed);
        for (int sparse = 0; sparse < 2; sparse++) {
            double share = sparse ? 0.05 : 1;
            hl_sde_data data = { keep(all, share, seed, t, x, trajectory), t, x, trajectory };
            run(&data, fresh, share, HL_SDE_FOKKER_PLANCK, seed, iterations, network);
            run(&data, fresh, share, HL_SDE_PSEUDO_LIKELIHOOD, seed, iterations, network);
        }
        free(all);
    }
    free(fresh);
    hl_context_free(ctx);
    return 0;
}
