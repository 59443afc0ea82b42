/* test_sde_choice.c - which functions a regression of snapshots chooses: from weights that another choice implies it may never come back. */
#include <math.h>
#include <stdlib.h>

#include "hollow/sde_regress.h"
#include "problems/sde_equation.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_correlated),
        cmocka_unit_test(test_few),
    };
    return cmocka_run_group_tests(tests, group_context, group_context_free);
}
