/* test_sde_weak.c - tests of means, without trajectories: the true model passes them, for independent rows and for rows of whole
 * trajectories, and each wrong one fails the test that is meant for it. */
#include <math.h>
#include <string.h>

#include "hollow/hollow.h"
#include "support.h"

enum { ROWS = 400, TIMES = 20, SUB = 20, DIM = 2 };

typedef struct table {
    double t[ROWS * TIMES], x[ROWS * TIMES * DIM];
} table;

/* dx = -x dt + .5 dW in two columns with correlated noise, whose size may change with time. `one`: rows of a time are those of the
 * trajectories of all times; else each has a trajectory of its own. */
static void simulate(table *to, bool one, double correlation, double trend, uint64_t seed)
{
    const double h = 2. / (TIMES - 1) / SUB, other = sqrt(1 - correlation * correlation);
    for (size_t run = 0; run < (one ? 1 : TIMES); run++)
        for (size_t p = 0; p < ROWS; p++) {
            uint64_t path = run * ROWS + p, at = path * TIMES * SUB * DIM;
            double x[DIM] = { 2 + 0.3 * hl_random_normal(seed, 1, DIM * path),
                              -1 + 0.3 * hl_random_normal(seed, 1, DIM * path + 1) };
            for (size_t k = 0; k < TIMES && (one || k <= run); k++) {
                size_t r = k * ROWS + p;
                to->t[r] = 2. / (TIMES - 1) * (double)k;
                if (one || k == run)
                    memcpy(to->x + r * DIM, x, sizeof x);
                for (size_t n = 0; n < SUB; n++, at += DIM) {
                    double e = hl_random_normal(seed, 2, at), g = 0.5 * (1 + trend * (to->t[r] - 1));
                    double noise[DIM] = { e, correlation * e + other * hl_random_normal(seed, 2, at + 1) };
                    for (size_t i = 0; i < DIM; i++)
                        x[i] += -x[i] * h + g * sqrt(h) * noise[i];
                }
            }
        }
}

static hl_verdict judge_data(hl_context *ctx, hl_sde_data data, double drift, double diffusion)
{
    double linear[DIM][DIM] = { { -drift, 0 }, { 0, -drift } }, mean[DIM] = { 1, -0.5 }, deviation[DIM] = { 0.7, 0.5 };
    hl_sde_known known[DIM];
    hl_judge *j = NULL;
    hl_sde *sde = NULL;
    for (size_t i = 0; i < DIM; i++)
        known[i] =
            (hl_sde_known){ .drift = 1, .drift_linear = linear[i], .diffusion = 1, .diffusion_value = diffusion };
    hl_sde_spec spec = { .dim = DIM, .network = "mlp", .hidden = 1, .layers = 1, .components = 1, .known = known };
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    CHECK_OK(ctx, hl_sde_set_scale(sde, 0, 2, mean, deviation));
    CHECK_OK(ctx, hl_judge_create(ctx, DIM, &data, &(hl_judge_options){ .rows = 30, .steps = 20 }, &j));
    CHECK_OK(ctx, hl_judge_model(j, sde));
    hl_verdict v = hl_judge_verdict(j);
    hl_judge_free(j);
    hl_sde_free(sde);
    return v;
}

static hl_verdict judge(hl_context *ctx, const table *d, double drift, double diffusion)
{
    hl_verdict v = judge_data(ctx, (hl_sde_data){ ROWS * TIMES, d->t, d->x, NULL }, drift, diffusion);
    CHECK(v.means > 100 && v.steps == 0, "conditions, without steps");
    return v;
}

static void test_right(void **state)
{
    static table d;
    hl_context *ctx = test_context(NULL, 1);
    double worst = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        simulate(&d, seed % 2, 0, 0, seed);
        hl_verdict v = judge(ctx, &d, 1, 0.5);
        assert_int_equal(v.reasons & HL_REASON_MEANS, 0);
        CHECK(v.means_band[0] > 0.01 && v.means_band[0] < 0.5 && v.means_band[1] > 0.01 && v.means_band[1] < 0.5,
              "bands");
        for (size_t k = 0; k < HL_WEAK_TESTS; k++)
            worst = fmax(worst, v.means_test[k].sigma);
    }
    CHECK_LE(worst, 4, "standard errors of a right model");
    test_context_free(ctx, NULL);
}

static void test_wrong(void **state)
{
    static table d;
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        simulate(&d, seed % 2, 0, 0, seed);
        hl_verdict v = judge(ctx, &d, 1, 0.25);
        CHECK(v.means_test[HL_WEAK_DIFFUSION].failed && v.answer == HL_CONTRADICTED, "half the diffusion");
        CHECK(v.means_test[HL_WEAK_DIFFUSION].effect > 0.5, "half the diffusion: an error of its own size");
        v = judge(ctx, &d, 0.5, 0.5);
        CHECK(v.means_test[HL_WEAK_DRIFT].failed && v.means_test[HL_WEAK_DRIFT].effect > 0.5, "half the drift");
        v = judge(ctx, &d, 1, 1);
        CHECK(v.means_test[HL_WEAK_DIFFUSION].failed, "twice the diffusion");
        simulate(&d, seed % 2, 0.9, 0, seed);
        v = judge(ctx, &d, 1, 0.5);
        CHECK(v.reasons & HL_REASON_MEANS, "correlated noise");
        simulate(&d, seed % 2, 0, -0.8, seed);
        v = judge(ctx, &d, 1, 0.5);
        CHECK(v.reasons & HL_REASON_MEANS, "a diffusion that fades");
    }
    test_context_free(ctx, NULL);
}

/* A diffusion that fades by a quarter in each direction from its mean, which is right. Tested beside all polynomials of x, 2 to 3 standard errors. */
static void test_slow_change(void **state)
{
    static table d;
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        simulate(&d, seed % 2, 0, -0.25, seed);
        hl_verdict v = judge(ctx, &d, 1, 0.5);
        CHECK(v.means_test[HL_WEAK_TREND].failed, "a diffusion that fades slowly");
    }
    test_context_free(ctx, NULL);
}

/* Trajectories of more times than there are groups of times: rows of one trajectory in a group are no independent ones. */
static void test_many_times(void **state)
{
    enum { PATHS = 200, LONG = 200 };
    static double t[PATHS * LONG], x[PATHS * LONG * DIM];
    static size_t id[PATHS * LONG];
    const double h = 2. / (LONG - 1);
    hl_context *ctx = test_context(NULL, 1);
    double worst = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        for (size_t r = 0; r < PATHS * LONG; r++)
            for (size_t i = 0; i < DIM; i++) {
                double e = hl_random_normal(seed, 3, r * DIM + i), *to = &x[r * DIM + i], start = i ? -1 : 2;
                id[r] = r / LONG;
                t[r] = h * (double)(r % LONG);
                *to = r % LONG ? to[-DIM] * (1 - h) + 0.5 * sqrt(h) * e : start + 0.3 * e;
            }
        hl_verdict v = judge_data(ctx, (hl_sde_data){ PATHS * LONG, t, x, id }, 1, 0.5);
        CHECK(v.means > 100, "conditions");
        assert_int_equal(v.reasons & HL_REASON_MEANS, 0);
        for (size_t k = 0; k < HL_WEAK_TESTS; k++)
            worst = fmax(worst, v.means_test[k].sigma);
    }
    CHECK_LE(worst, 4.5, "standard errors of a right model");
    test_context_free(ctx, NULL);
}

/* Standard errors of a right model where the covariance of the conditions does not hold all of their noise: stationary data, of which combinations of
 * regressors are noise alone, and times so far apart that integrals have errors. By the covariance alone they were 5 to 30. */
static double worst_of(hl_context *ctx, size_t times, double rate, double start, bool ids)
{
    enum { PATHS = 420, MOST = 20 };
    static double t[PATHS * MOST], x[PATHS * MOST * DIM];
    static size_t id[PATHS * MOST];
    const double h = 2. / (double)(times - 1), keep = exp(-rate * h), stationary = 0.5 / sqrt(2 * rate);
    double worst = 0;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        for (size_t p = 0; p < PATHS; p++)
            for (size_t k = 0; k < times; k++)
                for (size_t i = 0; i < DIM; i++) { /* by path with ids, else by time */
                    size_t r = ids ? p * times + k : k * PATHS + p, before = ids ? r - 1 : r - PATHS;
                    double e = stationary * hl_random_normal(seed, 5, r * DIM + i);
                    id[r] = p;
                    t[r] = h * (double)k;
                    x[r * DIM + i] = k ? keep * x[before * DIM + i] + sqrt(1 - keep * keep) * e : start + e;
                }
        hl_verdict v = judge_data(ctx, (hl_sde_data){ PATHS * times, t, x, ids ? id : NULL }, rate, 0.5);
        CHECK(v.means > 100, "conditions");
        assert_int_equal(v.reasons & HL_REASON_MEANS, 0);
        for (size_t k = 0; k < HL_WEAK_TESTS; k++)
            if (v.means_test[k].effect > 0.15)
                worst = fmax(worst, v.means_test[k].sigma);
    }
    return worst;
}

static void test_calibrated(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int ids = 0; ids < 2; ids++) {
        CHECK_LE(worst_of(ctx, 20, 2, 0, ids), 4, "stationary data");
        CHECK_LE(worst_of(ctx, 10, 4, 2, ids), 4, "times far apart");
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_right), cmocka_unit_test(test_wrong),
                                        cmocka_unit_test(test_slow_change), cmocka_unit_test(test_many_times),
                                        cmocka_unit_test(test_calibrated) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
