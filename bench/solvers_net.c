/* solvers_net.c - stiff hollow networks, solved and differentiated.
 *
 * dopri5 is counted in two ways: as one system of all rows with one step, as adams and bdf are ("dopri5"), and with a step for each
 * row, the sum over rows divided by their number ("dopri5-rows"). Ratios are against the first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "problems/numbers.h"
#include "problems/stiff_net.h"
#include "solvers.h"

enum { SIZE = STIFF_NET_SIZE, ROWS = STIFF_NET_ROWS, MAX_SEEDS = 40 };
static const double TOLERANCE = 1e-5, GRADIENT_TOLERANCE = 1e-6, TIGHT = 1e-10;

/* ---- solving ---- */

static hl_status solve(hl_context *ctx, const stiff_net *s, const char *method, bool flat, double tolerance, double *y,
                       hl_ode_counts *counts)
{
    hl_ode_options options = {
        .method = method, .rtol = tolerance, .atol = tolerance, .rows = flat ? 1 : ROWS, .max_evaluations = 1000000
    };
    double t[ROWS] = { 0 };
    hl_ode *ode;
    hl_status status = hl_ode_create(ctx, flat ? &s->flat : &s->rows, &options, &ode);
    if (status != HL_OK)
        return status;
    memcpy(y, s->x0, sizeof s->x0);
    status = hl_ode_solve(ode, flat ? 1 : ROWS, t, 1, y, NULL);
    *counts = hl_ode_report(ode).forward;
    hl_ode_free(ode);
    return status;
}

static const char *const methods[] = { "dopri5", "dopri5-rows", "adams-jacobi", "bdf-jacobi", "auto" };
enum { METHODS = sizeof methods / sizeof *methods };

/* What each seed gave. */
typedef struct sample {
    double f[MAX_SEEDS], diagonal[MAX_SEEDS], jvp[MAX_SEEDS], steps[MAX_SEEDS], ratio[MAX_SEEDS], seconds[MAX_SEEDS];
    double error;
} sample;

static hl_status measure(hl_context *ctx, const stiff_net *s, size_t m, size_t seed, const double *reference, double rk,
                         sample *to)
{
    bool rows = m == 1;
    double y[SIZE], start = cli_now();
    hl_ode_counts c;
    hl_status status = solve(ctx, s, rows ? methods[0] : methods[m], m == 0, TOLERANCE, y, &c);
    to->seconds[seed] = cli_now() - start;
    to->f[seed] = rows ? (double)c.f / ROWS : (double)c.f_calls;
    to->diagonal[seed] = (double)c.diagonal_calls;
    to->jvp[seed] = (double)c.jvp_calls;
    to->steps[seed] = (double)c.steps / (rows ? ROWS : 1);
    to->ratio[seed] = m == 0 ? 1 : rk / (to->f[seed] + to->jvp[seed]);
    for (size_t i = 0; i < SIZE; i++)
        to->error = fmax(to->error, fabs(y[i] - reference[i]) / (TOLERANCE + TOLERANCE * fabs(reference[i])));
    return status == HL_IMPRECISE ? HL_OK : status;
}

static hl_status measure_seed(solver_bench *b, double kappa, double c, size_t seed, sample *samples)
{
    double reference[SIZE];
    hl_ode_counts counts;
    stiff_net s;
    hl_status status = stiff_net_create(&s, b->ctx, kappa, c, seed + 1, HL_F64);
    if (status == HL_OK)
        status = solve(b->ctx, &s, "bdf-newton", false, TIGHT, reference, &counts);
    for (size_t m = 0; m < METHODS && status == HL_OK; m++)
        status =
            cli_interrupted() ? HL_STOPPED : measure(b->ctx, &s, m, seed, reference, samples[0].f[seed], &samples[m]);
    stiff_net_free(&s);
    return status;
}

/* Of sorted values, by linear interpolation. */
static double quantile(const double *sorted, size_t count, double p)
{
    double at = p * (double)(count - 1);
    size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

static void add(solver_bench *b, double kappa, double c, const char *method, sample *s)
{
    solver_result r = solver_result_empty("network", method);
    r.problem = kappa > 0 ? "stiff" : "random";
    r.kappa = kappa;
    r.coupling = kappa > 0 ? c : NAN;
    r.rtol = TOLERANCE;
    r.f = numbers_median(s->f, b->seeds);
    r.f_low = s->f[0];
    r.f_high = s->f[b->seeds - 1];
    r.diagonal = numbers_median(s->diagonal, b->seeds);
    r.jvp = numbers_median(s->jvp, b->seeds);
    r.steps = numbers_median(s->steps, b->seeds);
    r.ratio = numbers_median(s->ratio, b->seeds);
    r.ratio_low = s->ratio[0];
    r.ratio_high = s->ratio[b->seeds - 1];
    r.ratio_tenth = quantile(s->ratio, b->seeds, .1);
    r.ratio_quarter = quantile(s->ratio, b->seeds, .25);
    r.ratio_three_quarters = quantile(s->ratio, b->seeds, .75);
    r.ratio_nine_tenths = quantile(s->ratio, b->seeds, .9);
    r.seconds = numbers_median(s->seconds, b->seeds);
    r.error = s->error;
    solver_bench_add(b, &r);
}

hl_status solver_bench_networks(solver_bench *b)
{
    static const double kappas[] = { 0, 10, 100, 1000 }, couplings[] = { .1, .5, 1 }; /* random networks once */
    static sample samples[METHODS];
    hl_status status = HL_OK;
    for (size_t k = 2; k < (b->quick ? 6 : 12) && status == HL_OK; k += b->quick ? 3 : 1) {
        double kappa = kappas[k / 3], c = couplings[k % 3];
        memset(samples, 0, sizeof samples);
        for (size_t seed = 0; seed < b->seeds && status == HL_OK; seed++)
            status = measure_seed(b, kappa, c, seed, samples);
        for (size_t m = 0; m < METHODS && status == HL_OK; m++)
            add(b, kappa, c, methods[m], &samples[m]);
    }
    return status;
}

/* ---- gradients ---- */

typedef struct gradient {
    double y[SIZE], *param;
    size_t params;
    hl_ode_summary summary;
} gradient;

/* Of sum_i w_i y_i(1), w ~ N(0, 1). */
static hl_status differentiate(hl_context *ctx, const stiff_net *s, const char *method, double tolerance,
                               hl_ode_gradient_kind kind, gradient *g)
{
    hl_ode_options options = { .method = method,
                               .rtol = tolerance,
                               .atol = tolerance,
                               .rows = ROWS,
                               .max_evaluations = 1000000,
                               .gradient = kind };
    double t[ROWS] = { 0 }, y[SIZE];
    hl_ode *ode;
    hl_status status = hl_ode_create(ctx, &s->rows, &options, &ode);
    if (status != HL_OK)
        return status;
    memcpy(y, s->x0, sizeof y);
    for (size_t i = 0; i < SIZE; i++)
        g->y[i] = hl_random_normal(99, 0, i);
    memset(g->param, 0, g->params * sizeof *g->param);
    status = hl_ode_solve(ode, ROWS, t, 1, y, NULL);
    if (status >= 0)
        status = hl_ode_gradient(ode, g->y, g->param);
    g->summary = hl_ode_report(ode);
    hl_ode_free(ode);
    return status;
}

/* Relative to the largest gradient to a parameter; that to the start, which a stiff system forgets, relative to the loss'. */
static double gradient_error(const gradient *g, const gradient *exact)
{
    double largest = 0, error = 0, start = 0;
    for (size_t i = 0; i < g->params; i++) {
        largest = fmax(largest, fabs(exact->param[i]));
        error = fmax(error, fabs(g->param[i] - exact->param[i]));
    }
    for (size_t i = 0; i < SIZE; i++)
        start = fmax(start, fabs(g->y[i] - exact->y[i]));
    return fmax(error / largest, start);
}

static void add_gradient(solver_bench *b, double kappa, const char *method, hl_ode_gradient_kind kind,
                         const gradient *g, double error, double seconds)
{
    solver_result r = solver_result_empty("gradient", method);
    const hl_ode_counts *c = &g->summary.backward;
    r.adjoint = kind == HL_REPLAY ? "replay" : kind == HL_ADJOINT ? "stored" : "reintegrated";
    r.kappa = kappa;
    r.coupling = kappa > 0 ? .5 : NAN;
    r.rtol = GRADIENT_TOLERANCE;
    r.f = (double)(g->summary.forward.f_calls + c->f_calls);
    r.diagonal = (double)(g->summary.forward.diagonal_calls + c->diagonal_calls);
    r.jvp = (double)c->jvp_calls;
    r.vjp = (double)c->vjp_calls;
    r.steps = (double)c->steps;
    r.error = error;
    r.drift = kind == HL_ADJOINT_REINTEGRATED ? g->summary.drift : NAN;
    r.seconds = seconds;
    solver_bench_add(b, &r);
}

static hl_status gradients_of(solver_bench *b, const stiff_net *s, double kappa, gradient *exact, gradient *g)
{
    static const struct {
        const char *method;
        hl_ode_gradient_kind kind;
    } ways[] = { { "dopri5", HL_REPLAY },
                 { "adams-jacobi", HL_ADJOINT },
                 { "bdf-jacobi", HL_ADJOINT },
                 { "adams-jacobi", HL_ADJOINT_REINTEGRATED } };
    hl_status status = differentiate(b->ctx, s, "dopri8", TIGHT, HL_REPLAY, exact);
    for (size_t w = 0; w < 4 && status >= 0; w++) {
        double start = cli_now();
        if (cli_interrupted())
            return HL_STOPPED;
        status = differentiate(b->ctx, s, ways[w].method, GRADIENT_TOLERANCE, ways[w].kind, g);
        bool drifted = status < 0 && status != HL_ERR_NOMEM && ways[w].kind == HL_ADJOINT_REINTEGRATED;
        if (drifted) /* y integrated backwards blew up: no gradient at all */
            status = HL_OK;
        add_gradient(b, kappa, ways[w].method, ways[w].kind, g, drifted ? INFINITY : gradient_error(g, exact),
                     cli_now() - start);
    }
    return status >= 0 ? HL_OK : status;
}

hl_status solver_bench_gradients(solver_bench *b)
{
    static const double kappas[] = { 0, 1, 3, 10, 30, 100, 300, 1000 };
    hl_status status = HL_OK;
    for (size_t k = 0; k < (b->quick ? 5 : 8) && status == HL_OK; k += b->quick ? 4 : 1) {
        gradient exact = { 0 }, g = { 0 };
        stiff_net s;
        status = stiff_net_create(&s, b->ctx, kappas[k], .5, 1, HL_F64);
        exact.params = g.params = s.rows.n_params;
        exact.param = calloc(exact.params + 1, sizeof(double));
        g.param = calloc(g.params + 1, sizeof(double));
        if (status == HL_OK)
            status = exact.param && g.param ? gradients_of(b, &s, kappas[k], &exact, &g) : HL_ERR_NOMEM;
        free(exact.param);
        free(g.param);
        stiff_net_free(&s);
    }
    return status;
}
