/* test_ode_stiff.c - Adams and BDF where they are for: the stiff problems of the Bari / CWI test set, and stiff hollow networks
 * with their gradients. */
#include <stdio.h>

#include "hollow/ode.h"
#include "problems/stiff_net.h"
#include "problems/stiff_problem.h"
#include "support.h"

/* ---- the test set ---- */

static void check_stiff(hl_context *ctx, const stiff_problem *p, const char *method, double rtol)
{
    static double y[STIFF_MAX], answer[STIFF_MAX];
    hl_ode_counts counts;
    char label[80];
    CHECK_OK(ctx, stiff_problem_answer(ctx, p, answer));
    CHECK_OK(ctx, stiff_problem_solve(ctx, p, method, rtol, y, &counts));
    snprintf(label, sizeof label, "%s %s %g", p->name, method, rtol);
    CHECK_LE(stiff_problem_error(p, y, answer, rtol), 150, label);
    CHECK_LE((double)(counts.f_calls + counts.jvp_calls), 5000, label);
}

static void test_set(void **state)
{
    static const double rtols[] = { 1e-3, 1e-6 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const stiff_problem *p = stiff_problems; p->name; p++)
        for (int k = 0; k < 2; k++) {
            if (rtols[k] < p->finest)
                continue;
            check_stiff(ctx, p, "auto", rtols[k]);
            check_stiff(ctx, p, "bdf-newton", rtols[k]);
            if (p->gmres)
                check_stiff(ctx, p, "bdf-gmres", rtols[k]);
        }
    test_context_free(ctx, NULL);
}

/* HIRES three times in a row of 24, which is too large for auto to begin with newton: jacobi seems to converge, but breaks y7 + y8. */
static void three_hires_f(double t, const double complex *y, double complex *d)
{
    for (int k = 0; k < 3; k++)
        stiff_problem_named("HIRES")->f(t, y + 8 * k, d + 8 * k);
}

static void test_invariant(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    const stiff_problem *hires = stiff_problem_named("HIRES");
    double y0[24], y1[24];
    stiff_problem p = *hires;
    (void)state;
    for (size_t i = 0; i < 24; i++) {
        y0[i] = hires->y0[i % 8];
        y1[i] = hires->y1[i % 8];
    }
    p.n = 24;
    p.f = three_hires_f;
    p.y0 = y0;
    p.y1 = y1;
    check_stiff(ctx, &p, "auto", 1e-3);
    check_stiff(ctx, &p, "auto", 1e-6);
    test_context_free(ctx, NULL);
}

/* auto leaves jacobi where it does not contract: POLLU, whose 20 unknowns are too many to begin with newton, and MEDAKZO, whose
 * 400 make it go to gmres. */
static void test_switch(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    static double y[STIFF_MAX];
    hl_ode_counts counts;
    (void)state;
    CHECK_OK(ctx, stiff_problem_solve(ctx, stiff_problem_named("POLLU"), "auto", 1e-3, y, &counts));
    assert_int_equal(counts.switches, 1);
    CHECK(counts.diagonal_calls > 0, "began with jacobi");
    CHECK_OK(ctx, stiff_problem_solve(ctx, &stiff_medakzo, "auto", 1e-3, y, &counts));
    assert_int_equal(counts.switches, 1);
    CHECK_LE((double)(counts.f_calls + counts.jvp_calls), 5000, "MEDAKZO auto");
    test_context_free(ctx, NULL);
}

/* ---- stiff hollow networks ---- */

enum { SEEDS = 5, ROWS = STIFF_NET_ROWS, SIZE = STIFF_NET_SIZE };

static stiff_net net;

static void make_net(hl_context *ctx, double kappa, double c, uint64_t seed, hl_dtype dtype)
{
    CHECK_OK(ctx, stiff_net_create(&net, ctx, kappa, c, seed, dtype));
}

/* `flat`: all rows as one system, which Runge-Kutta has to be told. */
static hl_ode_counts solve_net(hl_context *ctx, const char *method, bool flat, double tolerance, hl_status expected,
                               double *y)
{
    hl_ode_options options = {
        .method = method, .rtol = tolerance, .atol = tolerance, .rows = flat ? 1 : ROWS, .max_evaluations = 1000000
    };
    double t[ROWS] = { 0 };
    hl_ode *ode;
    memcpy(y, net.x0, sizeof net.x0);
    CHECK_OK(ctx, hl_ode_create(ctx, flat ? &net.flat : &net.rows, &options, &ode));
    CHECK_STATUS(ctx, hl_ode_solve(ode, flat ? 1 : ROWS, t, 1, y, NULL), expected);
    hl_ode_counts counts = hl_ode_report(ode).forward;
    hl_ode_free(ode);
    return counts;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median over seeds of dopri5's evaluations over those of each method; every error below 20 tolerances. */
static void net_ratios(hl_context *ctx, double kappa, double c, const char *const *methods, size_t count,
                       double *median)
{
    static double reference[SIZE], y[SIZE], ratio[8][SEEDS];
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        make_net(ctx, kappa, c, seed + 1, HL_F64);
        solve_net(ctx, "bdf-newton", false, 1e-9, HL_OK, reference);
        double rk = (double)solve_net(ctx, "dopri5", true, 1e-5, HL_OK, y).f_calls;
        for (size_t m = 0; m < count; m++) {
            hl_ode_counts n = solve_net(ctx, methods[m], false, 1e-5, HL_OK, y);
            for (size_t i = 0; i < SIZE; i++)
                CHECK_LE(fabs(y[i] - reference[i]), 20 * (1e-5 + 1e-5 * fabs(reference[i])), methods[m]);
            ratio[m][seed] = rk / (double)(n.f_calls + n.jvp_calls);
            if (kappa > 0 && strstr(methods[m], "jacobi"))
                CHECK_LE(20. * (double)n.diagonal_calls, (double)n.f_calls, methods[m]);
        }
        stiff_net_free(&net);
    }
    for (size_t m = 0; m < count; m++) {
        qsort(ratio[m], SEEDS, sizeof **ratio, ascending);
        median[m] = ratio[m][SEEDS / 2];
    }
}

static void test_networks(void **state)
{
    static const char *const methods[] = { "adams-jacobi", "bdf-jacobi", "auto", "bdf-gmres" };
    static const double couplings[] = { .1, .5 }, least[2][2] = { { 10, 12 }, { 5, 10 } };
    hl_context *ctx = test_context(NULL, 1);
    double median[4];
    (void)state;
    for (int c = 0; c < 2; c++) {
        net_ratios(ctx, 1000, couplings[c], methods, 4, median);
        CHECK_LE(least[c][0], median[0], "adams-jacobi");
        CHECK_LE(least[c][1], median[1], "bdf-jacobi");
        CHECK_LE(8, median[2], "auto");
    }
    net_ratios(ctx, 0, 0, methods, 1, median);
    CHECK_LE(1 / 1.6, median[0], "adams-jacobi on random networks");
    test_context_free(ctx, NULL);
}

/* A float32 network in a double solve: right to its rounding, and a warning where that is not enough; the same bits for any number
 * of threads. */
static void test_float32(void **state)
{
    static double y[2][SIZE], other[SIZE];
    static const char *const methods[] = { "bdf-jacobi", "auto", "dopri5" };
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        for (int threads = 1; threads <= 2; threads++) {
            hl_context *ctx = test_context(NULL, threads);
            make_net(ctx, 0, 0, 1, HL_F32);
            solve_net(ctx, methods[m], false, 1e-8, HL_IMPRECISE, other);
            solve_net(ctx, methods[m], false, 1e-4, HL_OK, y[threads - 1]);
            stiff_net_free(&net);
            make_net(ctx, 0, 0, 1, HL_F64);
            solve_net(ctx, methods[m], false, 1e-9, HL_OK, other);
            stiff_net_free(&net);
            test_context_free(ctx, NULL);
            for (size_t i = 0; i < SIZE; i++)
                CHECK_NEAR(y[threads - 1][i], other[i], 20 * 1e-4, methods[m]);
        }
        assert_memory_equal(y[0], y[1], sizeof y[0]);
    }
}

/* ---- gradients ---- */

typedef struct gradient {
    double y[SIZE], *param;
    hl_ode_summary summary;
} gradient;

static gradient make_gradient(void)
{
    return (gradient){ .param = test_calloc(net.rows.n_params, sizeof(double)) };
}

static void differentiate(hl_context *ctx, const char *method, double tolerance, hl_ode_gradient_kind kind, gradient *g)
{
    hl_ode_options options = { .method = method,
                               .rtol = tolerance,
                               .atol = tolerance,
                               .rows = ROWS,
                               .gradient = kind,
                               .max_evaluations = 1000000 };
    double t[ROWS] = { 0 }, y[SIZE];
    hl_ode *ode;
    memcpy(y, net.x0, sizeof y);
    fill_normal_f64(g->y, SIZE, 99);
    memset(g->param, 0, net.rows.n_params * sizeof *g->param);
    CHECK_OK(ctx, hl_ode_create(ctx, &net.rows, &options, &ode));
    CHECK_OK(ctx, hl_ode_solve(ode, ROWS, t, 1, y, NULL));
    CHECK_OK(ctx, hl_ode_gradient(ode, g->y, g->param));
    g->summary = hl_ode_report(ode);
    hl_ode_free(ode);
}

static void check_gradient(const gradient *g, const gradient *exact, const char *label)
{
    CHECK_LE(relative_error_f64(g->param, exact->param, net.rows.n_params), 5e-5, label);
    for (size_t i = 0; i < SIZE; i++) /* gy at t1 is of order 1; at t0 it may be tiny */
        CHECK_NEAR(g->y[i], exact->y[i], 5e-5, label);
}

/* Adjoints at tolerance 1e-6, from random to stiff networks, against the exact gradient of tight Runge-Kutta steps. */
static void test_gradients(void **state)
{
    static const char *const methods[] = { "adams-jacobi", "bdf-jacobi", "bdf-gmres", "auto" };
    static const double kappas[] = { 0, 30, 300 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int k = 0; k < 3; k++) {
        make_net(ctx, kappas[k], .5, 5, HL_F64);
        gradient exact = make_gradient(), g = make_gradient();
        differentiate(ctx, "dopri8", 1e-10, HL_REPLAY, &exact);
        for (size_t m = 0; m < (kappas[k] > 30 ? 2 : 4); m++) {
            differentiate(ctx, methods[m], 1e-6, HL_ADJOINT, &g);
            check_gradient(&g, &exact, methods[m]);
            CHECK(g.summary.backward.vjp_calls > 0 && g.summary.backward.f_calls == 0, "y comes from the record");
        }
        test_free(exact.param);
        test_free(g.param);
        stiff_net_free(&net);
    }
    test_context_free(ctx, NULL);
}

/* All gradients agree on a mild network; where y cannot be integrated backwards the drift says so. */
static void test_reintegrated(void **state)
{
    static const char *const methods[] = { "adams-functional", "adams-jacobi", "bdf-jacobi-fresh",
                                           "bdf-gmres",        "bdf-newton",   "auto" };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    make_net(ctx, 1, .5, 5, HL_F64);
    gradient exact = make_gradient(), g = make_gradient();
    differentiate(ctx, "dopri8", 1e-10, HL_REPLAY, &exact);
    differentiate(ctx, "dopri5", 1e-6, HL_REPLAY, &g);
    check_gradient(&g, &exact, "dopri5, replayed");
    for (size_t m = 0; m < 6; m++) {
        differentiate(ctx, methods[m], 1e-6, HL_ADJOINT, &g);
        check_gradient(&g, &exact, methods[m]);
        differentiate(ctx, methods[m], 1e-6, HL_ADJOINT_REINTEGRATED, &g);
        check_gradient(&g, &exact, methods[m]);
        CHECK_LE(g.summary.drift, 50, methods[m]);
        CHECK_LE(1e-3, g.summary.drift, methods[m]);
    }
    stiff_net_free(&net);
    make_net(ctx, 60, .5, 5, HL_F64);
    differentiate(ctx, "bdf-jacobi", 1e-6, HL_ADJOINT_REINTEGRATED, &g);
    CHECK_LE(1e5, g.summary.drift, "drift");
    test_free(exact.param);
    test_free(g.param);
    stiff_net_free(&net);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),          cmocka_unit_test(test_switch),  cmocka_unit_test(test_invariant),
        cmocka_unit_test(test_networks),     cmocka_unit_test(test_float32), cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_reintegrated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
