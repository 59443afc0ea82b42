/* test_ode_stiff.c - Adams and BDF where they are for: the stiff problems of the Bari / CWI test set, and stiff hollow networks
 * with their gradients. */
#include <stdio.h>

#include "stiff_net.h"
#include "stiff_support.h"

/* ---- the test set ---- */

static const double pollu_y0[] = { 0, .2, 0, .04, 0, 0, .1, .3, .01, 0, 0, 0, 0, 0, 0, 0, .007, 0, 0, 0 };
static const double pollu_y1[] = {
    0.5646255480022769e-1,  0.1342484130422339,    0.4139734331099427e-8, 0.5523140207484359e-2, 0.2018977262302196e-6,
    0.1464541863493966e-6,  0.7784249118997964e-1, 0.3245075353396018,    0.7494013383880406e-2, 0.1622293157301561e-7,
    0.1135863833257075e-7,  0.2230505975721359e-2, 0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2,
    0.4352846369330103e-17, 0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4
};
static const double hires_y1[] = { 7.371312573325668e-4, 1.442485726316185e-4, 5.888729740967575e-5,
                                   1.175651343283149e-3, 2.386356198831331e-3, 6.238968252742796e-3,
                                   2.849998395185769e-3, 2.850001604814231e-3 };
static const double hires_y0[] = { 1, 0, 0, 0, 0, 0, 0, .0057 }, orego_y0[] = { 1, 2, 3 }, rober_y0[] = { 1, 0, 0 },
                    vdpol_y0[] = { 2, 0 }, kaps_y0[] = { 1, 1 }, e5_y0[] = { 1.76e-3, 0, 0, 0 };
static const double orego_y1[] = { 1.000814870318523, 1228.178521549917, 132.0554942846706 };
static const double rober_y1[] = { 2.083340149701255e-8, 8.333360770334713e-14, 0.999999979166505 };
static const double vdpol_y1[] = { 1.706167732170483, -0.8928097010247975 };
static const double kaps_y1[] = { 2.0611536224385579e-9, 4.5399929762484854e-5 };
static const double e5_y1[] = { 0, 8.867655517642120e-23, 8.854814626268838e-23, 0 };

static const stiff_problem problems[] = {
    { "HIRES", 8, hires_f, 321.8122, 1e-3, hires_y0, hires_y1 },
    { "OREGO", 3, orego_f, 360, 1e-2, orego_y0, orego_y1 },
    { "ROBER", 3, rober_f, 1e11, 1e-10, rober_y0, rober_y1 },
    { "VDPOL", 2, vdpol_f, 2, 1, vdpol_y0, vdpol_y1 },
    { "POLLU", 20, pollu_f, 60, 1e-5, pollu_y0, pollu_y1 },
    { "KAPS", 2, kaps_f, 10, 1e-4, kaps_y0, kaps_y1 },
    { "E5", 4, e5_f, 1e13, 1e-21, e5_y0, e5_y1 }, /* the last: for auto and newton alone */
};
enum { PROBLEMS = sizeof problems / sizeof *problems };

/* Solve a problem; its error in units of atol + rtol |y|. */
static double solve_stiff(hl_context *ctx, const stiff_problem *p, const char *method, double rtol,
                          hl_ode_counts *counts)
{
    hl_system system = stiff_system(p);
    hl_ode_options options = { .method = method, .rtol = rtol, .atol = rtol * p->ratio, .rows = 1 };
    double y[STIFF_MAX], t = 0, error = 0;
    hl_ode *ode;
    memcpy(y, p->y0, p->n * sizeof *y);
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, p->t1, y, NULL));
    CHECK(t == p->t1, p->name);
    for (size_t i = 0; i < p->n; i++) {
        double e = fabs(y[i] - p->y1[i]) / (options.atol + rtol * fabs(p->y1[i]));
        error = e > error || isnan(e) ? e : error;
    }
    *counts = hl_ode_report(ode).forward;
    hl_ode_free(ode);
    return error;
}

static void check_stiff(hl_context *ctx, const stiff_problem *p, const char *method, double rtol)
{
    hl_ode_counts counts;
    double error = solve_stiff(ctx, p, method, rtol, &counts);
    char label[80];
    snprintf(label, sizeof label, "%s %s %g", p->name, method, rtol);
    CHECK_LE(error, 150, label);
    CHECK_LE((double)(counts.f_calls + counts.jvp_calls), 5000, label);
}

static void test_set(void **state)
{
    static const double rtols[] = { 1e-3, 1e-6 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t p = 0; p < PROBLEMS; p++)
        for (int k = 0; k < 2; k++) {
            check_stiff(ctx, problems + p, "auto", rtols[k]);
            check_stiff(ctx, problems + p, "bdf-newton", rtols[k]);
            if (p + 1 < PROBLEMS)
                check_stiff(ctx, problems + p, "bdf-gmres", rtols[k]);
        }
    test_context_free(ctx, NULL);
}

/* HIRES three times in a row of 24, which is too large for auto to begin with newton: jacobi seems to converge, but breaks y7 + y8. */
static void three_hires_f(double t, const double complex *y, double complex *d)
{
    for (int k = 0; k < 3; k++)
        hires_f(t, y + 8 * k, d + 8 * k);
}

static void test_invariant(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    double y0[24], y1[24];
    stiff_problem p = { "three times HIRES", 24, three_hires_f, 321.8122, 1e-3, y0, y1 };
    (void)state;
    for (size_t i = 0; i < 24; i++) {
        y0[i] = hires_y0[i % 8];
        y1[i] = hires_y1[i % 8];
    }
    check_stiff(ctx, &p, "auto", 1e-3);
    check_stiff(ctx, &p, "auto", 1e-6);
    test_context_free(ctx, NULL);
}

/* auto leaves jacobi where it does not contract: POLLU, whose 20 unknowns are too many to begin with newton, and MEDAKZO, whose
 * 400 make it go to gmres. */
static void test_switch(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_ode_counts counts;
    static double y0[400];
    (void)state;
    solve_stiff(ctx, problems + 4, "auto", 1e-3, &counts);
    assert_int_equal(counts.switches, 1);
    CHECK(counts.diagonal_calls > 0, "began with jacobi");
    for (int j = 0; j < 200; j++)
        y0[2 * j + 1] = 1;
    stiff_problem medakzo = { "MEDAKZO", 400, medakzo_f, 20, 1, y0, y0 };
    solve_stiff(ctx, &medakzo, "auto", 1e-3, &counts); /* the error is not that of an answer */
    assert_int_equal(counts.switches, 1);
    CHECK_LE((double)(counts.f_calls + counts.jvp_calls), 5000, "MEDAKZO auto");
    test_context_free(ctx, NULL);
}

/* ---- stiff hollow networks ---- */

static stiff_net net;

static hl_ode_counts solve_net(hl_context *ctx, const char *method, double tolerance, double *y)
{
    hl_system system = stiff_net_system(&net);
    hl_ode_options options = {
        .method = method, .rtol = tolerance, .atol = tolerance, .rows = NET_ROWS, .max_evaluations = 1000000
    };
    double t[NET_ROWS] = { 0 };
    hl_ode *ode;
    memcpy(y, net.x0, sizeof net.x0);
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
    CHECK_OK(ctx, hl_ode_solve(ode, NET_ROWS, t, 1, y, NULL));
    hl_ode_counts counts = hl_ode_report(ode).forward;
    hl_ode_free(ode);
    return counts;
}

/* An explicit method of order 5 needs 1000 evaluations and more here. */
static void test_networks(void **state)
{
    static const char *const methods[] = {
        "adams-jacobi", "bdf-jacobi", "adams-auto", "auto", "bdf-gmres", "bdf-newton"
    };
    static const double couplings[] = { .1, .5 };
    static double reference[NET_ROWS * NET_D], y[NET_ROWS * NET_D];
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int c = 0; c < 2; c++) {
        stiff_net_make(&net, 1000, couplings[c], 14);
        solve_net(ctx, "bdf-newton", 1e-9, reference);
        for (size_t m = 0; m < 6; m++) {
            hl_ode_counts counts = solve_net(ctx, methods[m], 1e-5, y);
            double worst = 0;
            for (size_t i = 0; i < NET_ROWS * NET_D; i++)
                worst = fmax(worst, fabs(y[i] - reference[i]) / (1e-5 + 1e-5 * fabs(reference[i])));
            CHECK_LE(worst, 20, methods[m]);
            if (m < 2) {
                CHECK_LE((double)counts.f_calls, m == 0 ? 160 : 115, methods[m]);
                CHECK_LE(20. * (double)counts.diagonal_calls, (double)counts.f_calls, methods[m]);
                assert_int_equal(counts.jvp_calls, 0);
            } else if (m < 4) {
                assert_int_equal(counts.switches, 0); /* jacobi contracts */
            }
        }
    }
    test_context_free(ctx, NULL);
}

/* ---- gradients ---- */

static void net_gradient(hl_context *ctx, const char *method, double tolerance, hl_ode_gradient_kind kind, double *gy,
                         double *gparam, hl_ode_summary *summary)
{
    hl_system system = stiff_net_system(&net);
    hl_ode_options options = { .method = method,
                               .rtol = tolerance,
                               .atol = tolerance,
                               .rows = NET_ROWS,
                               .gradient = kind,
                               .max_evaluations = 1000000 };
    double t[NET_ROWS] = { 0 }, y[NET_ROWS * NET_D];
    hl_ode *ode;
    memcpy(y, net.x0, sizeof net.x0);
    fill_normal_f64(gy, NET_ROWS * NET_D, 99);
    memset(gparam, 0, NET_PARAMS * sizeof *gparam);
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
    CHECK_OK(ctx, hl_ode_solve(ode, NET_ROWS, t, 1, y, NULL));
    CHECK_OK(ctx, hl_ode_gradient(ode, gy, gparam));
    *summary = hl_ode_report(ode);
    hl_ode_free(ode);
}

static double net_loss(hl_context *ctx)
{
    static double y[NET_ROWS * NET_D], w[NET_ROWS * NET_D];
    double sum = 0;
    fill_normal_f64(w, NET_ROWS * NET_D, 99);
    solve_net(ctx, "bdf-newton", 1e-10, y);
    for (size_t i = 0; i < NET_ROWS * NET_D; i++)
        sum += w[i] * y[i];
    return sum;
}

/* d loss / d parameter by central differences of tight solves. */
static double difference(hl_context *ctx, size_t parameter)
{
    double *p = parameter < NET_K       ? net.u + parameter
                : parameter < 2 * NET_K ? net.v + parameter - NET_K
                                        : net.b + parameter - 2 * NET_K;
    double kept = *p, step = 1e-4 * fmax(1, fabs(kept));
    *p = kept + step;
    double up = net_loss(ctx);
    *p = kept - step;
    double down = net_loss(ctx);
    *p = kept;
    return (up - down) / (2 * step);
}

/* The gradient to the parameters at tolerance 1e-6, from mild to stiff, against a tight adjoint, and that against differences. */
static void test_gradients(void **state)
{
    static const char *const methods[] = { "adams-jacobi", "bdf-jacobi", "bdf-gmres", "bdf-newton", "auto" };
    static const double kappas[] = { 0, 30, 1000 };
    static double gy[NET_ROWS * NET_D], exact_y[NET_ROWS * NET_D], gparam[NET_PARAMS], exact[NET_PARAMS];
    hl_context *ctx = test_context(NULL, 1);
    hl_ode_summary summary;
    (void)state;
    for (int k = 0; k < 3; k++) {
        stiff_net_make(&net, kappas[k], .5, 5);
        net_gradient(ctx, "bdf-newton", 1e-9, HL_ADJOINT, exact_y, exact, &summary);
        for (size_t p = 3; p < NET_PARAMS; p += 11) {
            double scale = relative_error_f64(exact, (double[NET_PARAMS]){ 1 }, NET_PARAMS) + 1;
            CHECK_NEAR(exact[p], difference(ctx, p), 1e-6 * scale, "tight adjoint");
        }
        for (size_t m = 0; m < 5; m++) {
            net_gradient(ctx, methods[m], 1e-6, HL_ADJOINT, gy, gparam, &summary);
            CHECK_LE(relative_error_f64(gparam, exact, NET_PARAMS), 5e-5, methods[m]);
            double largest = 0; /* gy at t1 is of order 1; at t0 it may be tiny */
            for (size_t i = 0; i < NET_ROWS * NET_D; i++)
                largest = fmax(largest, fabs(gy[i] - exact_y[i]));
            CHECK_LE(largest, 5e-5, methods[m]);
            CHECK(summary.backward.vjp_calls > 0 && summary.backward.f_calls == 0, "y comes from the record");
        }
    }
    test_context_free(ctx, NULL);
}

/* Integrating y backwards agrees where the system is mild, and says so with its drift where it is not. */
static void test_reintegrated(void **state)
{
    static double gy[NET_ROWS * NET_D], exact_y[NET_ROWS * NET_D], gparam[NET_PARAMS], exact[NET_PARAMS];
    static const char *const methods[] = { "adams-functional", "adams-jacobi", "bdf-jacobi-fresh",
                                           "bdf-gmres",        "bdf-newton",   "auto" };
    hl_context *ctx = test_context(NULL, 1);
    hl_ode_summary summary;
    (void)state;
    stiff_net_make(&net, 1, .5, 5);
    net_gradient(ctx, "bdf-newton", 1e-9, HL_ADJOINT, exact_y, exact, &summary);
    for (size_t m = 0; m < 6; m++) {
        net_gradient(ctx, methods[m], 1e-6, HL_ADJOINT_REINTEGRATED, gy, gparam, &summary);
        CHECK_LE(relative_error_f64(gparam, exact, NET_PARAMS), 5e-5, methods[m]);
        CHECK_LE(relative_error_f64(gy, exact_y, NET_ROWS * NET_D), 5e-5, methods[m]);
        CHECK_LE(summary.drift, 50, methods[m]);
        CHECK_LE(1e-3, summary.drift, methods[m]);
    }
    stiff_net_make(&net, 60, .5, 5);
    net_gradient(ctx, "bdf-jacobi", 1e-6, HL_ADJOINT_REINTEGRATED, gy, gparam, &summary);
    CHECK_LE(1e5, summary.drift, "drift");
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),      cmocka_unit_test(test_switch),    cmocka_unit_test(test_invariant),
        cmocka_unit_test(test_networks), cmocka_unit_test(test_gradients), cmocka_unit_test(test_reintegrated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
