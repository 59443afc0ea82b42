/* test_sde_judge.c - distances of samples against formulas, groups of times, and verdicts: data that move and that do not, few
 * trajectories, models that follow the data, stand still, or follow them in density alone. */
#include "net_support.h"

#include "hollow/judge.h"
#include "sde/sde.h"

/* ---- distances ---- */

static void test_distances(void **state)
{
    enum { N = 1500 };
    static double a[N], b[N], c[3 * N], e[3 * N];
    (void)state;
    CHECK_NEAR(hl_wasserstein_distance(2, (double[]){ 3, 1 }, 2, (double[]){ 2, 6 }), 2, 1e-15, "means of sorted gaps");
    CHECK_NEAR(hl_wasserstein_distance(1, (double[]){ 0 }, 3, (double[]){ 1, 1, 4 }), 2, 1e-15, "unequal sizes");
    CHECK_NEAR(hl_wasserstein_distance(2, (double[]){ 1, 1 }, 3, (double[]){ 1, 1, 1 }), 0, 0, "ties");
    assert_true(isnan(hl_wasserstein_distance(0, a, 1, b)));
    /* by hand: 2 (1 + 3 + 0 + 2) / 4 - 1 - 2 */
    CHECK_NEAR(hl_energy_distance(1, 2, (double[]){ 0, 1 }, 2, (double[]){ 1, 3 }), 0, 1e-15, "two and two");
    CHECK_NEAR(hl_energy_distance(2, 2, (double[]){ 0, 0, 0, 0 }, 2, (double[]){ 3, 4, 3, 4 }), 10, 1e-15,
               "two points");
    assert_true(isnan(hl_energy_distance(1, 1, a, 2, b)));
    /* N(0, 1) and N(1, 1): 2 E|N(1, 2)| - 2 E|N(0, 2)| */
    fill_normal_f64(a, N, 1);
    fill_normal_f64(b, N, 2);
    double pi = acos(-1), s = sqrt(2), shifted = s * sqrt(2 / pi) * exp(-0.25) + erf(0.5);
    double truth = 2 * shifted - 2 * s * sqrt(2 / pi);
    CHECK_NEAR(hl_energy_distance(1, N, a, N, b), 0, 0.01, "one distribution");
    for (size_t i = 0; i < N; i++)
        b[i] += 1;
    CHECK_NEAR(hl_energy_distance(1, N, a, N, b), truth, 0.06, "a shift of 1");
    CHECK_NEAR(hl_wasserstein_distance(N, a, N, b), 1, 0.08, "a shift of 1");
    fill_normal_f64(c, 3 * N, 3); /* the same marginals, another joint distribution */
    fill_normal_f64(e, 3 * N, 4);
    for (size_t i = 0; i < N; i++)
        e[3 * i + 1] = e[3 * i];
    CHECK(hl_energy_distance(3, N, c, N, e) > 0.03, "columns that go together");
}

/* ---- data ---- */

enum { PATHS = 300, TIMES = 10 };
typedef struct table {
    double t[PATHS * TIMES], x[PATHS * TIMES];
    size_t trajectory[PATHS * TIMES];
} table;

/* dX = -X dt + sqrt(2) dW, exactly, from N(start, 1), which is at rest for start 0; times 0..2. */
static hl_sde_data make_data(table *to, double start, size_t paths)
{
    double step = 2. / (TIMES - 1), keep = exp(-step);
    for (size_t p = 0; p < paths; p++) {
        double x = start + hl_random_normal(1, 1, p);
        for (size_t k = 0; k < TIMES; k++) {
            size_t at = p * TIMES + k;
            to->t[at] = step * (double)k;
            to->x[at] = 100 + 5 * x;
            to->trajectory[at] = p;
            x = keep * x + sqrt(1 - keep * keep) * hl_random_normal(1, 2, at);
        }
    }
    return (hl_sde_data){ paths * TIMES, to->t, to->x, to->trajectory };
}

static hl_verdict judge(hl_context *ctx, const hl_sde_data *data, hl_sde *sde)
{
    hl_judge *j;
    CHECK_OK(ctx, hl_judge_create(ctx, 1, data, NULL, &j));
    if (sde)
        CHECK_OK(ctx, hl_judge_model(j, sde));
    hl_verdict v = hl_judge_verdict(j);
    hl_judge_free(j);
    return v;
}

static void test_data(void **state)
{
    static table data;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_data rows = make_data(&data, 3, PATHS);
    hl_judge *j;
    double x[400];
    (void)state;
    CHECK_OK(ctx, hl_judge_create(ctx, 1, &rows, NULL, &j));
    assert_int_equal(hl_judge_groups(j), TIMES); /* one for each time */
    double moved = 0;
    for (size_t k = 0; k < TIMES; k++) {
        hl_judge_group g = hl_judge_get(j, k);
        assert_true(g.t_first == data.t[k] && g.t_last == data.t[k] && g.rows == PATHS);
        assert_true(isnan(g.density) && isnan(g.simulated) && isnan(g.residual));
        CHECK_LE(fabs(g.noise), 0.04, "noise");
        moved += g.moved / TIMES;
        CHECK_OK(ctx, hl_judge_rows(j, k, HL_JUDGE_DATA, x));
        for (size_t r = 0; r < PATHS; r++)
            assert_true(x[r] == data.x[r * TIMES + k]);
    }
    CHECK_STATUS(ctx, hl_judge_rows(j, 0, HL_JUDGE_DENSITY, x), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_judge_rows(j, TIMES, HL_JUDGE_DATA, x), HL_ERR_INVALID);
    hl_verdict v = hl_judge_verdict(j);
    assert_int_equal(v.answer, HL_CONSISTENT);
    assert_true(isnan(v.density) && isnan(v.simulated) && v.trajectories == PATHS);
    CHECK(v.movement > 0.05 && v.movement < 0.5 && moved > 0.1, "it moves");
    hl_judge_free(j);
    /* few groups put neighbours in time together, and no time is cut */
    CHECK_OK(ctx, hl_judge_create(ctx, 1, &rows, &(hl_judge_options){ .groups = 4, .rows = 50 }, &j));
    assert_int_equal(hl_judge_groups(j), 4);
    for (size_t k = 0; k < 4; k++) {
        hl_judge_group g = hl_judge_get(j, k);
        assert_true(g.rows == 50 && (k == 0 || g.t_first > hl_judge_get(j, k - 1).t_last));
    }
    assert_true(hl_judge_get(j, 0).t_first == 0 && hl_judge_get(j, 3).t_last == data.t[TIMES - 1]);
    assert_int_equal(hl_judge_get(j, 4).rows, 0);
    hl_judge_free(j);
    /* what stands still is told, in any units; so are few trajectories */
    rows = make_data(&data, 0, PATHS);
    v = judge(ctx, &rows, NULL);
    assert_int_equal(v.answer, HL_NOT_DETERMINED);
    assert_int_equal(v.reasons, HL_REASON_STATIONARY_DATA);
    CHECK_LE(fabs(v.movement), 0.01, "it does not move");
    for (size_t k = 0; k < PATHS * TIMES; k++)
        data.x[k] = 1e12 * data.x[k] - 1e15;
    hl_verdict huge = judge(ctx, &rows, NULL);
    CHECK_NEAR(huge.movement, v.movement, 1e-9, "huge units");
    rows = make_data(&data, 3, 9);
    assert_int_equal(judge(ctx, &rows, NULL).reasons, HL_REASON_FEW_TRAJECTORIES);
    rows.trajectory = NULL; /* then each row stands for itself */
    assert_false(judge(ctx, &rows, NULL).reasons & HL_REASON_FEW_TRAJECTORIES);
    rows.rows = 2;
    assert_int_equal(judge(ctx, &rows, NULL).reasons, HL_REASON_FEW_TRAJECTORIES);
    test_context_free(ctx, NULL);
}

/* ---- models ---- */

static hl_sde *learn(hl_context *ctx, const hl_sde_data *data, double lambda)
{
    hl_sde *sde;
    hl_sde_fit *fit;
    CHECK_OK(ctx, hl_sde_create(ctx,
                                &(hl_sde_spec){ .dim = 1,
                                                .net = { .hidden = 16, .width = 16 },
                                                .components = 2,
                                                .density_hidden = 32,
                                                .density_layers = 2 },
                                &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 1));
    CHECK_OK(ctx,
             hl_sde_fit_create(sde, data,
                               &(hl_sde_fit_options){
                                   .iterations = 500, .batch = 128, .lambda = lambda, .optimizer = { .rate = 5e-3 } },
                               &fit));
    while (hl_sde_fit_step(fit, NULL) == HL_OK)
        continue;
    hl_sde_fit_free(fit);
    return sde;
}

static void scale_bias(hl_sde *sde, size_t net, float by)
{
    hl_net_param p = param(hl_sde_net(sde, net), hl_net_param_count(hl_sde_net(sde, net)) - 1);
    for (size_t i = 0; i < p.size; i++)
        ((float *)p.values)[i] += by;
}

static void test_models(void **state)
{
    static table data;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_data rows = make_data(&data, 3, PATHS);
    (void)state;
    hl_sde *sde = learn(ctx, &rows, 0.1);
    hl_verdict good = judge(ctx, &rows, sde), again = judge(ctx, &rows, sde);
    assert_int_equal(good.answer, HL_CONSISTENT);
    CHECK_LE(good.density, 0.05, "the density follows");
    CHECK_LE(good.simulated, 0.1, "simulations follow");
    CHECK_LE(good.unexplained, 0.1, "drift and diffusion explain it");
    scale_bias(sde, 0, 0.3f);
    hl_verdict rough = judge(ctx, &rows, sde);
    assert_int_equal(rough.answer, HL_CONTRADICTED);
    assert_true(rough.reasons & HL_REASON_UNEXPLAINED);
    scale_bias(sde, 0, -0.3f);
    assert_memory_equal(&good, &again, sizeof good);
    /* a drift that is off: the density still follows, simulations do not */
    scale_bias(sde, 0, 3);
    hl_verdict off = judge(ctx, &rows, sde);
    assert_int_equal(off.answer, HL_CONTRADICTED);
    assert_true((off.reasons & HL_REASON_SIMULATIONS) && !(off.reasons & HL_REASON_DENSITY));
    CHECK_NEAR(off.density, good.density, 0, "the same density");
    CHECK(off.residual > good.residual, "and a residual");
    scale_bias(sde, 0, 1e30f); /* simulations that do not stay finite */
    off = judge(ctx, &rows, sde);
    assert_int_equal(off.answer, HL_CONTRADICTED);
    assert_true((off.reasons & HL_REASON_SIMULATIONS) && !(off.reasons & HL_REASON_DENSITY));
    hl_sde_free(sde);
    /* the trap: density and drift freeze at a small residual */
    sde = learn(ctx, &rows, 300);
    hl_verdict frozen = judge(ctx, &rows, sde);
    assert_int_equal(frozen.answer, HL_CONTRADICTED);
    assert_true(frozen.reasons & HL_REASON_DENSITY);
    CHECK_LE(frozen.residual, good.residual, "a smaller residual than the good one's");
    CHECK(frozen.density > 0.5, "it misses the movement");
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

/* ---- failures ---- */

static hl_status scenario(hl_context *ctx, void *user)
{
    hl_sde *sde = NULL;
    hl_judge *j = NULL;
    hl_status status = hl_judge_create(ctx, 1, user, &(hl_judge_options){ .rows = 20, .steps = 4 }, &j);
    if (status == HL_OK)
        status = hl_sde_create(ctx,
                               &(hl_sde_spec){ .dim = 1,
                                               .network = "mlp",
                                               .hidden = 2,
                                               .layers = 1,
                                               .components = 1,
                                               .density_hidden = 2,
                                               .density_layers = 1 },
                               &sde);
    if (status == HL_OK)
        status = hl_judge_model(j, sde);
    hl_judge_free(j);
    hl_sde_free(sde);
    return status;
}

static void test_failures(void **state)
{
    static table data;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_data rows = make_data(&data, 3, 20), none = { 0 };
    hl_judge *j = NULL;
    hl_sde *sde;
    (void)state;
    check_every_allocation(1, scenario, &rows);
    CHECK_STATUS(ctx, hl_judge_create(NULL, 1, &rows, NULL, &j), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_judge_create(ctx, 0, &rows, NULL, &j), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_judge_create(ctx, 1, &none, NULL, &j), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_judge_create(ctx, 1, NULL, NULL, &j), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_judge_create(ctx, 1, &rows, NULL, NULL), HL_ERR_INVALID);
    data.x[7] = NAN;
    CHECK_STATUS(ctx, hl_judge_create(ctx, 1, &rows, NULL, &j), HL_ERR_NOT_FINITE);
    check_message(ctx, "row 7, value 0");
    assert_null(j);
    data.x[7] = 1;
    CHECK_OK(ctx, hl_judge_create(ctx, 1, &rows, NULL, &j));
    CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2 }, &sde));
    CHECK_STATUS(ctx, hl_judge_model(j, sde), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_judge_model(j, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_judge_model(NULL, sde), HL_ERR_INVALID);
    hl_sde_free(sde);
    hl_judge_free(j);
    hl_judge_free(NULL);
    assert_int_equal(hl_judge_groups(NULL), 0);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distances),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_models),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
