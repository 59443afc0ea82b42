/* test_sde_residuals.c - tests of the steps along trajectories: true models pass them, and each wrong one fails the test that is
 * meant for it. Models are known equations, so that nothing is learned. */
#include <stdio.h>

#include "hollow/hollow.h"
#include "support.h"

enum { PATHS = 200, TIMES = 50, ROWS = PATHS * TIMES, SUB = 20, DIM = 2 };

typedef enum world { PLAIN, CORRELATED, TREND, JUMPS, NOISY, WELLS, PUSHED } world;

typedef struct rows {
    double t[ROWS], x[ROWS * DIM];
    size_t trajectory[ROWS];
} rows;

/* dx = -x dt + 0.8 dW in two columns, and what each world changes; observations `step` apart. */
static void simulate(rows *to, world w, double step, uint64_t seed)
{
    double h = step / SUB;
    for (size_t p = 0; p < PATHS; p++) {
        double x[DIM] = { 2 + 0.3 * hl_random_normal(seed, 1, 2 * p), -1 + 0.3 * hl_random_normal(seed, 1, 2 * p + 1) };
        for (size_t k = 0; k < TIMES; k++) {
            size_t r = p * TIMES + k;
            to->t[r] = step * (double)k;
            to->trajectory[r] = p;
            for (size_t i = 0; i < DIM; i++)
                to->x[r * DIM + i] = x[i] + (w == NOISY ? 0.15 * hl_random_normal(seed, 4, r * DIM + i) : 0);
            for (size_t n = 0; n < SUB; n++) {
                uint64_t at = (r * SUB + n) * DIM;
                double e[DIM] = { hl_random_normal(seed, 2, at), hl_random_normal(seed, 2, at + 1) };
                double g = w == TREND ? 1.2 - 0.9 * to->t[r] / (step * TIMES) : 0.8;
                if (w == CORRELATED)
                    e[1] = 0.6 * e[0] + 0.8 * e[1];
                for (size_t i = 0; i < DIM; i++) {
                    double f = w == WELLS && i == 0 ? 2 * x[i] - 2 * x[i] * x[i] * x[i] : -x[i];
                    f += w == PUSHED ? 1 : 0;
                    x[i] += f * h + g * sqrt(h) * e[i];
                    if (w == JUMPS && hl_random_uniform(seed, 3, at + i) < 0.02 * h / step)
                        x[i] += 2;
                }
            }
        }
    }
}

/* The model dx = -drift x dt + diffusion dW, compared with the rows. */
static hl_verdict judge(const rows *r, double drift, double diffusion)
{
    double linear[DIM][DIM] = { { -drift, 0 }, { 0, -drift } }, mean[DIM] = { 0 }, deviation[DIM] = { 1, 1 };
    hl_sde_known known[DIM];
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_data data = { ROWS, r->t, r->x, r->trajectory };
    hl_judge *j = NULL;
    hl_sde *sde = NULL;
    for (size_t i = 0; i < DIM; i++)
        known[i] =
            (hl_sde_known){ .drift = 1, .drift_linear = linear[i], .diffusion = 1, .diffusion_value = diffusion };
    CHECK_OK(ctx, hl_sde_create(ctx,
                                &(hl_sde_spec){ .dim = DIM,
                                                .network = "mlp",
                                                .hidden = 1,
                                                .layers = 1,
                                                .components = 1,
                                                .density_hidden = 1,
                                                .density_layers = 1,
                                                .known = known },
                                &sde));
    CHECK_OK(ctx, hl_sde_set_scale(sde, 0, r->t[TIMES - 1], mean, deviation));
    CHECK_OK(ctx, hl_judge_create(ctx, DIM, &data, &(hl_judge_options){ .rows = 50, .steps = 50 }, &j));
    CHECK_OK(ctx, hl_judge_model(j, sde));
    hl_verdict v = hl_judge_verdict(j);
    hl_judge_free(j);
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
    return v;
}

static void check_only(const hl_verdict *v, unsigned failed, const char *label)
{
    for (int k = 0; k < HL_RESIDUAL_TESTS; k++)
        if (!v->test[k].failed != !(failed >> k & 1))
            fail_msg("%s: test '%s' %s: %g, %g standard errors", label, hl_residual_name((hl_residual)k),
                     v->test[k].failed ? "failed" : "passed", v->test[k].effect, v->test[k].sigma);
    if (!(v->reasons & HL_REASON_RESIDUALS) != !failed)
        fail_msg("%s: the reasons are %x", label, v->reasons);
}

/* Short steps, and steps of twice the time in which the drift acts. */
static void test_true_model(void **state)
{
    static rows r;
    static const double steps[] = { 0.02, 0.1, 0.5, 2 };
    (void)state;
    for (uint64_t seed = 0; seed < 5; seed++)
        for (size_t i = 0; i < 4; i++) {
            char label[40];
            snprintf(label, sizeof label, "step %g, seed %d", steps[i], (int)seed);
            simulate(&r, PLAIN, steps[i], seed);
            hl_verdict v = judge(&r, 1, 0.8);
            check_only(&v, 0, label);
            assert_true(v.steps >= 900 && v.steps_simulated == (i > 1));
        }
}

static void test_wrong_models(void **state)
{
    static rows r;
    static const double steps[] = { 0.1, 0.5 };
    enum { DRIFT = 1 << HL_RESIDUAL_DRIFT, DIFFUSION = 1 << HL_RESIDUAL_DIFFUSION };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        simulate(&r, PLAIN, steps[i], 9);
        hl_verdict v = judge(&r, 1, 0.4); /* half the diffusion */
        CHECK(v.test[HL_RESIDUAL_DIFFUSION].failed && v.answer == HL_CONTRADICTED, "half the diffusion");
        CHECK(v.test[HL_RESIDUAL_DIFFUSION].effect > 0.3, "half the diffusion");
        CHECK(!v.test[HL_RESIDUAL_DIFFUSION_TREND].failed, "half the diffusion, at all times");
        v = judge(&r, 1, 1.2);
        CHECK(v.test[HL_RESIDUAL_DIFFUSION].failed, "more than the diffusion");
        CHECK(!v.test[HL_RESIDUAL_DIFFUSION_TREND].failed, "more than the diffusion, at all times");
        v = judge(&r, 1, 0);
        CHECK(v.steps && v.test[HL_RESIDUAL_DIFFUSION].failed && v.answer == HL_CONTRADICTED, "no diffusion");
        v = judge(&r, 0.5, 0.8);
        CHECK(v.test[HL_RESIDUAL_DRIFT].failed && v.answer == HL_CONTRADICTED, "half the drift");
        CHECK_NEAR(v.test[HL_RESIDUAL_DRIFT].effect, 1, 0.35, "half the drift: an error of its own size");
        simulate(&r, PUSHED, steps[i], 9);
        v = judge(&r, 1, 0.8);
        CHECK(v.test[HL_RESIDUAL_DRIFT].failed, "a push");
        CHECK(!v.test[HL_RESIDUAL_DIFFUSION].failed, "a push is no noise");
        CHECK(!v.test[HL_RESIDUAL_DRIFT_TREND].failed, "a push that is the same at all times");
        simulate(&r, WELLS, steps[i], 9);
        v = judge(&r, 0, 0.8);
        CHECK(v.test[HL_RESIDUAL_DRIFT].failed, "a drift without wells");
        simulate(&r, CORRELATED, steps[i], 9);
        v = judge(&r, 1, 0.8);
        check_only(&v, 1 << HL_RESIDUAL_CORRELATION, "correlated noise");
        CHECK_NEAR(v.test[HL_RESIDUAL_CORRELATION].effect, 0.6, 0.15, "correlated noise");
        simulate(&r, TREND, steps[i], 9);
        v = judge(&r, 1, 0.75);
        CHECK(v.test[HL_RESIDUAL_DIFFUSION_TREND].failed, "noise that fades");
    }
    simulate(&r, JUMPS, 0.1, 9);
    hl_verdict v = judge(&r, 1, 0.8);
    CHECK(v.test[HL_RESIDUAL_KURTOSIS].failed, "jumps");
    simulate(&r, NOISY, 0.1, 9);
    v = judge(&r, 1, 0.8);
    CHECK(v.test[HL_RESIDUAL_AUTOCORRELATION].failed, "noisy observations");
    assert_null(hl_residual_name(HL_RESIDUAL_TESTS));
    assert_null(hl_answer_name((hl_answer)3));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_true_model), cmocka_unit_test(test_wrong_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
