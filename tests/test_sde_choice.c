/* test_sde_choice.c - which functions a regression of snapshots chooses: from weights that another choice implies it may never come back. */
#include <math.h>
#include <stdlib.h>

#include "hollow/sde_regress.h"
#include "problems/sde_equation.h"
#include "sde/regress.h"
#include "support.h"

/* Errors of the regression of an equation, of so many trajectories. */
static void learn(hl_context *ctx, const char *name, size_t rows, sde_view view, uint64_t seed, double error[2])
{
    enum { FRESH = 100 };
    const sde_equation *e = sde_equation_find(name);
    size_t count = FRESH * SDE_TIMES;
    double *states = calloc(rows * SDE_TIMES, e->dim * sizeof *states);
    double *fresh = calloc(count, e->dim * sizeof *fresh), *t = calloc(count, sizeof *t);
    double *f = calloc(count, 2 * e->dim * sizeof *f), *g = f + count * e->dim;
    hl_sde_data data;
    hl_sde_simple *s;
    assert_true(states && fresh && t && f);
    assert_int_equal(sde_equation_simulate(e, ctx, rows, seed, states), HL_OK);
    assert_int_equal(sde_equation_simulate(e, ctx, FRESH, 1000003, fresh), HL_OK);
    assert_int_equal(sde_equation_observe(e, rows, states, view, seed, &data), HL_OK);
    assert_int_equal(hl_sde_regress(ctx, &data, e->dim, &(hl_sde_regress_options){ .seed = seed }, &s), HL_OK);
    assert_int_equal(hl_sde_simple_eval(s, count, t, fresh, f, g), HL_OK);
    sde_equation_errors(e, FRESH, fresh, f, g, error);
    hl_sde_simple_free(s);
    sde_problem_forget(&data);
    free(states);
    free(fresh);
    free(t);
    free(f);
}

/* Linear drifts and strongly correlated noise: with the weights of a quadratic diffusion, which agrees with them, the drift is 45 % wrong. */
static void test_correlated(void **state)
{
    for (uint64_t seed = 1003; seed <= 1004; seed++) {
        double error[2];
        learn(*state, "corr", 500, SDE_SNAPSHOTS, seed, error);
        CHECK_LE(error[0], 0.3, "drift");
        CHECK_LE(error[1], 0.3, "diffusion");
    }
}

/* 600 rows at ten times: held-out errors are too noisy to tell a cubic drift from a linear one. */
static void test_few(void **state)
{
    for (uint64_t seed = 2002; seed <= 2004; seed += 2) {
        double error[2];
        learn(*state, "morse", 2000, SDE_SCARCE, seed, error);
        CHECK_LE(error[0], 0.5, "drift");
        CHECK_LE(error[1], 0.4, "diffusion");
    }
}

/* Snapshots of dx = -x dt + .5 dW from 2 + .3 N at given times, exact, `rows` of each. */
static void learn_return(hl_context *ctx, size_t times, const double *at, const double *again, double f[2], double *g)
{
    enum { ROWS = 300, MOST = 40 * ROWS };
    static double t[MOST], x[MOST];
    hl_sde_simple *s;
    for (size_t k = 0; k < times; k++)
        for (size_t r = 0; r < ROWS; r++) {
            size_t n = k * ROWS + r;
            double decay = exp(-at[k]), spread = sqrt(0.125 * (1 - decay * decay) + 0.09 * decay * decay);
            t[n] = r % 2 ? again[k] : at[k];
            x[n] = 2 * decay + spread * hl_random_normal(5, 77, n);
        }
    assert_int_equal(hl_sde_regress(ctx, &(hl_sde_data){ times * ROWS, t, x, NULL }, 1, NULL, &s), HL_OK);
    double value[2];
    assert_int_equal(hl_sde_simple_eval(s, 2, (double[]){ 0, 0 }, (double[]){ 0, 1 }, f, value), HL_OK);
    *g = value[1];
    hl_sde_simple_free(s);
}

/* Times that differ by rounding are one: k / 10 and a sum of so many tenths. */
static void test_rounded_times(void **state)
{
    double at[31], sum[31] = { 0 }, f[2], g, f_rounded[2], g_rounded;
    size_t differ = 0;
    for (size_t k = 0; k < 31; k++) {
        at[k] = (double)k * 0.1;
        sum[k] = k ? sum[k - 1] + 0.1 : 0;
        differ += sum[k] != at[k];
    }
    assert_true(differ > 10);
    learn_return(*state, 31, at, at, f, &g);
    learn_return(*state, 31, at, sum, f_rounded, &g_rounded);
    CHECK_NEAR(f[1] - f[0], -1, 0.2, "slope");
    for (size_t k = 0; k < 2; k++)
        CHECK_NEAR(f_rounded[k], f[k], 1e-6, "drift");
    CHECK_NEAR(g_rounded, g, 1e-6, "diffusion");
}

/* One more time, long after the others or in steps of very different lengths, must not spoil what the others tell. */
static void test_uneven_times(void **state)
{
    static const double grown[] = { 0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2 },
                        mixed[] = { 0, 0.001, 0.002, 0.01, 0.02, 0.05, 0.1, 0.3, 0.31, 0.9, 2, 2.001, 4, 10 };
    double late[16], f[2], g;
    for (size_t k = 0; k < 15; k++)
        late[k] = (double)k / 7;
    const struct {
        size_t count;
        const double *at;
        double last, within;
    } cases[] = { { 16, late, 6, 0.2 }, { 16, late, 1000, 0.2 }, { 8, grown, 3.2, 0.3 }, { 14, mixed, 10, 0.4 } };
    for (size_t k = 0; k < 4; k++) {
        late[15] = cases[k].last;
        learn_return(*state, cases[k].count, cases[k].at, cases[k].at, f, &g);
        CHECK_NEAR(f[1] - f[0], -1, cases[k].within, "slope");
        CHECK_NEAR(g, 0.5, 0.5 * cases[k].within, "diffusion");
    }
}

/* ---- linear equations: means and covariances of all times ---- */

/* dx = (F x + c) dt + B dW in two columns; state: means, then covariances. */
static const double slope[2][2] = { { -1, 0.8 }, { 0.2, -1.5 } }, shift[2] = { 0.5, -0.5 },
                    factor[2][2] = { { 0.5, 0 }, { -0.3, 0.4 } };

static void rate(const double s[6], double to[6])
{
    for (size_t i = 0; i < 2; i++) {
        to[i] = shift[i] + slope[i][0] * s[0] + slope[i][1] * s[1];
        for (size_t j = 0; j < 2; j++) {
            to[2 + 2 * i + j] = factor[i][0] * factor[j][0] + factor[i][1] * factor[j][1];
            for (size_t k = 0; k < 2; k++)
                to[2 + 2 * i + j] += slope[i][k] * s[2 + 2 * k + j] + slope[j][k] * s[2 + 2 * i + k];
        }
    }
}

/* Means and covariances later by `time`. */
static void go_on(double time, double s[6])
{
    enum { STEPS = 2000 };
    const double h = time / STEPS;
    for (size_t n = 0; n < STEPS; n++) {
        double first[6], middle[6], half[6];
        rate(s, first);
        for (size_t k = 0; k < 6; k++)
            half[k] = s[k] + 0.5 * h * first[k];
        rate(half, middle);
        for (size_t k = 0; k < 6; k++)
            s[k] += h * middle[k];
    }
}

/* Rows [ROWS] that have exactly this mean and covariance. */
static void draw_rows(size_t rows, uint64_t stream, const double s[6], double *x)
{
    double mean[2] = { 0 }, cov[3] = { 0 };
    for (size_t r = 0; r < 2 * rows; r++)
        mean[r % 2] += (x[r] = hl_random_normal(7, stream, r)) / (double)rows;
    for (size_t r = 0; r < rows; r++) {
        double a = x[2 * r] -= mean[0], b = x[2 * r + 1] -= mean[1];
        cov[0] += a * a / (double)rows;
        cov[1] += a * b / (double)rows;
        cov[2] += b * b / (double)rows;
    }
    double own = sqrt(s[2]), cross = s[3] / own, rest = sqrt(s[5] - cross * cross);
    double from = sqrt(cov[0]), share = cov[1] / from, left = sqrt(cov[2] - share * share);
    for (size_t r = 0; r < rows; r++) {
        double a = x[2 * r] / from, b = (x[2 * r + 1] - share * a) / left;
        x[2 * r] = s[0] + own * a;
        x[2 * r + 1] = s[1] + cross * a + rest * b;
    }
}

/* Seven times far apart, at which rows have the means and covariances of a linear equation to the last digit: its constants must come out, and the bands hold
 * them. Conditions alone leave errors of their quadrature, of several percent. */
static void test_linear(void **state)
{
    enum { TIMES = 7, ROWS = 300 };
    static double t[TIMES * ROWS], x[2 * TIMES * ROWS];
    const double points[] = { 0, 0, 1, 0, 0, 1 }, gap = 0.6;
    double s[6] = { -1, 2, 0.36, 0, 0, 0.09 }, f[6], g[6];
    hl_sde_simple *simple;
    for (size_t k = 0; k < TIMES; k++) {
        for (size_t r = 0; r < ROWS; r++)
            t[k * ROWS + r] = gap * (double)k;
        draw_rows(ROWS, k, s, x + 2 * k * ROWS);
        go_on(gap, s);
    }
    assert_int_equal(hl_sde_regress(*state, &(hl_sde_data){ TIMES * ROWS, t, x, NULL }, 2, NULL, &simple), HL_OK);
    assert_int_equal(hl_sde_simple_eval(simple, 3, (double[]){ 0, 0, 0 }, points, f, g), HL_OK);
    for (size_t i = 0; i < 2; i++) {
        CHECK_NEAR(f[i], shift[i], 1e-2, "constant");
        CHECK_NEAR(g[i], sqrt(factor[i][0] * factor[i][0] + factor[i][1] * factor[i][1]), 1e-2, "diffusion");
        for (size_t j = 0; j < 2; j++)
            CHECK_NEAR(f[2 + 2 * j + i] - f[i], slope[i][j], 1e-2, "slope");
    }
    CHECK_NEAR(simple->correlation[1], -0.6, 1e-2, "correlation");
    hl_sde_simple_free(simple);
}

/* 150 rows at twelve times, correlated noise: conditions alone made the drift and the diffusion of these wrong by a third and more. */
static void test_linear_rows(void **state)
{
    enum { TIMES = 12, ROWS = 150 };
    static double t[TIMES * ROWS], x[2 * TIMES * ROWS];
    for (uint64_t seed = 1; seed <= 3; seed++) {
        double mean[6] = { -1, 2, 0.36, 0, 0, 0.09 }, f[6], g[6];
        hl_sde_simple *simple;
        for (size_t k = 0; k < TIMES; k++) {
            for (size_t r = 0; r < ROWS; r++) {
                double a = hl_random_normal(seed, 100 + k, 2 * r), b = hl_random_normal(seed, 100 + k, 2 * r + 1);
                double own = sqrt(mean[2]), cross = mean[3] / own;
                t[k * ROWS + r] = 0.27 * (double)k;
                x[2 * (k * ROWS + r)] = mean[0] + own * a;
                x[2 * (k * ROWS + r) + 1] = mean[1] + cross * a + sqrt(mean[5] - cross * cross) * b;
            }
            go_on(0.27, mean);
        }
        assert_int_equal(hl_sde_regress(*state, &(hl_sde_data){ TIMES * ROWS, t, x, NULL }, 2, NULL, &simple), HL_OK);
        assert_int_equal(hl_sde_simple_eval(simple, 3, (double[]){ 0, 0, 0 }, (double[]){ 0, 0, 1, 0, 0, 1 }, f, g),
                         HL_OK);
        for (size_t i = 0; i < 2; i++)
            for (size_t j = 0; j < 2; j++)
                CHECK_NEAR(f[2 + 2 * j + i] - f[i], slope[i][j], 0.2, "slope");
        hl_sde_simple_free(simple);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_correlated),   cmocka_unit_test(test_few),    cmocka_unit_test(test_rounded_times),
        cmocka_unit_test(test_uneven_times), cmocka_unit_test(test_linear), cmocka_unit_test(test_linear_rows),
    };
    return cmocka_run_group_tests(tests, group_context, group_context_free);
}
