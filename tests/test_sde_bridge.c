/* test_sde_bridge.c - paths between given states: against the exact bridges of linear equations in two columns and of
 * geometric Brownian motion, and against densities on a grid for a double well. */
#include <math.h>
#include <string.h>

#include "hollow/hollow.h"
#include "support.h"

enum { PATHS = 2000 };

static hl_sde *make_model(hl_context *ctx, size_t dim, const hl_sde_known *known)
{
    hl_sde *sde = NULL;
    double mean[2] = { 0.5, -1 }, deviation[2] = { 2, 0.5 }; /* any will do */
    hl_sde_spec spec = { .dim = dim,
                         .network = "mlp",
                         .hidden = 1,
                         .layers = 1,
                         .components = 1,
                         .density_hidden = 1,
                         .density_layers = 1,
                         .known = known,
                         .dtype = HL_F64 };
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    CHECK_OK(ctx, hl_sde_set_scale(sde, 0, 3, mean, deviation));
    return sde;
}

static void moments(size_t steps, size_t dim, size_t at, size_t column, const double *paths, double *mean, double *var)
{
    *mean = *var = 0;
    for (size_t p = 0; p < PATHS; p++)
        *mean += paths[(p * (steps + 1) + at) * dim + column] / PATHS;
    for (size_t p = 0; p < PATHS; p++)
        *var += pow(paths[(p * (steps + 1) + at) * dim + column] - *mean, 2) / PATHS;
}

/* dx_i = -k_i (x_i - m_i) dt + g_i dW_i: between two states a quarter, half and three quarters of the time. */
static void test_linear(void **state)
{
    enum { STEPS = 4 };
    static double paths[PATHS * (2 * STEPS + 1) * 2];
    const double rate[] = { 1.5, 0.2 }, rest[] = { 1, -2 }, noise[] = { 0.8, 0.3 };
    double linear[2][2] = { { -1.5, 0 }, { 0, -0.2 } }, share[2];
    const double t[] = { 0.5, 2.5, 2.9 }, x[] = { 3, -1, 0.2, -1.5, 0.4, -1.6 };
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_known known[2];
    (void)state;
    for (size_t i = 0; i < 2; i++)
        known[i] = (hl_sde_known){ .drift = 1,
                                   .drift_constant = rate[i] * rest[i],
                                   .drift_linear = linear[i],
                                   .diffusion = 1,
                                   .diffusion_value = noise[i] };
    hl_sde *sde = make_model(ctx, 2, known);
    hl_bridge_options o = { .steps = STEPS, .level = 5, .candidates = PATHS, .seed = 3 };
    CHECK_OK(ctx, hl_sde_bridge(sde, 3, t, x, PATHS, &o, paths, share));
    CHECK_NEAR(share[0], 1, 1e-6, "all candidates count");
    CHECK_NEAR(share[1], 1, 1e-6, "in each gap");
    for (size_t k = 0; k <= 2 * STEPS; k++)
        for (size_t i = 0; i < 2; i++) {
            size_t gap = k < STEPS ? 0 : 1;
            double span = t[gap + 1] - t[gap], s = span * (double)(k - gap * STEPS) / STEPS, mean, var;
            double a = x[2 * gap + i] - rest[i], b = x[2 * gap + 2 + i] - rest[i], q = rate[i];
            double expect = rest[i] + (a * sinh(q * (span - s)) + b * sinh(q * s)) / sinh(q * span);
            double exact = noise[i] * noise[i] / q * sinh(q * s) * sinh(q * (span - s)) / sinh(q * span);
            moments(2 * STEPS, 2, k, i, paths, &mean, &var);
            CHECK_NEAR(mean, expect, 4 * sqrt(exact / PATHS) + 5e-3, "mean of the bridge");
            CHECK_NEAR(var, exact, 0.13 * exact + 1e-12, "variance of the bridge");
        }
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

static hl_node growing(void *user, hl_graph *g, hl_node t, hl_node x)
{
    (void)t;
    return hl_scale(g, *(double *)user, hl_sum(g, x, 0));
}

/* dx = f dt + .6 x dW: log x is a Brownian bridge, whatever the drift. */
static void test_state_dependent(void **state)
{
    enum { STEPS = 2 };
    static double paths[PATHS * (STEPS + 1)];
    double noise = 0.6, drift = 0.9, share, mean, var;
    const double t[] = { 0, 1 }, x[] = { 1, 2.5 };
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_known known = {
        .drift = 1, .drift_linear = &drift, .diffusion = 1, .diffusion_form = growing, .user = &noise
    };
    (void)state;
    hl_sde *sde = make_model(ctx, 1, &known);
    hl_bridge_options o = { .steps = STEPS, .level = 6, .candidates = 4 * PATHS, .seed = 5 };
    CHECK_OK(ctx, hl_sde_bridge(sde, 2, t, x, PATHS, &o, paths, &share));
    CHECK(share > 0.1 && share < 1, "weights are not equal, but most count");
    for (size_t k = 0; k < PATHS * (STEPS + 1); k++)
        paths[k] = log(paths[k]);
    moments(STEPS, 1, 1, 0, paths, &mean, &var);
    CHECK_NEAR(mean, 0.5 * log(2.5), 0.03, "mean of log x");
    CHECK_NEAR(var, noise * noise / 4, 0.01, "variance of log x");
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

static hl_node wells(void *user, hl_graph *g, hl_node t, hl_node x)
{
    hl_node y = hl_sum(g, x, 0);
    (void)t;
    (void)user;
    return hl_scale(g, 4, hl_sub(g, y, hl_mul(g, y, hl_mul(g, y, y))));
}

/* The density of x at the middle of 0..span, given x(0) and x(span), for dx = 4 (x - x^3) dt + .8 dW, by Euler's kernel on a grid:
 * its mean, and the probability of |x| < .5. */
static void grid_density(double from, double to, double span, double *mean, double *middle)
{
    enum { N = 241, HALF = 100 };
    static double kernel[N][N], forth[N], back[N], next[N];
    double width = 6. / (N - 1), h = span / (2 * HALF), s = 0.8 * sqrt(h), sum = 0;
    for (size_t a = 0; a < N; a++)
        for (size_t b = 0; b < N; b++) {
            double x = -3 + width * (double)a, y = -3 + width * (double)b, e = (y - x - 4 * h * (x - x * x * x)) / s;
            kernel[a][b] = exp(-0.5 * e * e) / s;
        }
    for (size_t a = 0; a < N; a++) {
        double x = -3 + width * (double)a, e = (x - from - 4 * h * (from - from * from * from)) / s;
        double l = (to - x - 4 * h * (x - x * x * x)) / s;
        forth[a] = exp(-0.5 * e * e);
        back[a] = exp(-0.5 * l * l);
    }
    for (size_t k = 1; k < HALF; k++) {
        memset(next, 0, sizeof next);
        for (size_t a = 0; a < N; a++)
            for (size_t b = 0; b < N; b++)
                next[b] += forth[a] * kernel[a][b] * width;
        memcpy(forth, next, sizeof next);
        memset(next, 0, sizeof next);
        for (size_t a = 0; a < N; a++)
            for (size_t b = 0; b < N; b++)
                next[a] += back[b] * kernel[a][b] * width;
        memcpy(back, next, sizeof next);
    }
    *mean = *middle = 0;
    for (size_t a = 0; a < N; a++) {
        double x = -3 + width * (double)a, p = forth[a] * back[a];
        sum += p;
        *mean += p * x;
        *middle += fabs(x) < 0.5 ? p : 0;
    }
    *mean /= sum;
    *middle /= sum;
}

static void test_wells(void **state)
{
    enum { STEPS = 10 };
    static double paths[PATHS * (STEPS + 1)];
    double share, mean, middle, seen = 0, inside = 0;
    const double t[] = { 0, 0.8 }, x[] = { -1, 0.9 };
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_known known = { .drift = 1, .drift_form = wells, .diffusion = 1, .diffusion_value = 0.8 };
    (void)state;
    hl_sde *sde = make_model(ctx, 1, &known);
    hl_bridge_options o = { .steps = STEPS, .level = 4, .candidates = 5 * PATHS, .seed = 7 };
    CHECK_OK(ctx, hl_sde_bridge(sde, 2, t, x, PATHS, &o, paths, &share));
    grid_density(x[0], x[1], 0.8, &mean, &middle);
    for (size_t p = 0; p < PATHS; p++) {
        double y = paths[p * (STEPS + 1) + STEPS / 2];
        seen += y / PATHS;
        inside += fabs(y) < 0.5 ? 1. / PATHS : 0;
    }
    CHECK_NEAR(seen, mean, 0.08, "mean in the middle");
    CHECK_NEAR(inside, middle, 0.07, "paths between the wells");
    CHECK(share > 0.01 && share < 0.999, "the effective share");
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

static void test_arguments(void **state)
{
    double out[3 * 100], linear = -1, again[3 * 100];
    const double t[] = { 0, 1 }, back[] = { 1, 0 }, x[] = { 0, 1 };
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_known known = { .drift = 1, .drift_linear = &linear, .diffusion = 1, .diffusion_value = 0.5 };
    hl_bridge_options o = { .steps = 2 };
    (void)state;
    hl_sde *sde = make_model(ctx, 1, &known);
    CHECK_STATUS(ctx, hl_sde_bridge(sde, 1, t, x, 1, NULL, out, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_bridge(sde, 2, back, x, 1, NULL, out, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_bridge(sde, 2, t, (double[]){ 0, NAN }, 1, NULL, out, NULL), HL_ERR_NOT_FINITE);
    CHECK_OK(ctx, hl_sde_bridge(sde, 2, t, x, 100, &o, out, NULL));
    CHECK_OK(ctx, hl_sde_bridge(sde, 2, t, x, 100, &o, again, NULL));
    assert_memory_equal(out, again, sizeof out);
    for (size_t p = 0; p < 100; p++)
        assert_true(out[3 * p] == 0 && out[3 * p + 2] == 1);
    hl_sde_free(sde);
    known.diffusion_value = 0; /* no path reaches the end */
    sde = make_model(ctx, 1, &known);
    CHECK_STATUS(ctx, hl_sde_bridge(sde, 2, t, x, 1, NULL, out, NULL), HL_ERR_INVALID);
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    double out[2], linear = -1, mean = 0, deviation = 1;
    hl_sde_known known = { .drift = 1, .drift_linear = &linear, .diffusion = 1, .diffusion_value = 0.5 };
    hl_sde_spec spec = { .dim = 1, .network = "mlp", .hidden = 1, .layers = 1, .components = 1, .known = &known };
    hl_sde *sde = NULL;
    (void)user;
    hl_status status = hl_sde_create(ctx, &spec, &sde);
    if (status == HL_OK)
        status = hl_sde_set_scale(sde, 0, 1, &mean, &deviation);
    if (status == HL_OK)
        status = hl_sde_bridge(sde, 2, (double[]){ 0, 1 }, (double[]){ 0, 1 }, 1,
                               &(hl_bridge_options){ .steps = 1, .candidates = 2 }, out, NULL);
    hl_sde_free(sde);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_linear), cmocka_unit_test(test_state_dependent),
                                        cmocka_unit_test(test_wells), cmocka_unit_test(test_arguments),
                                        cmocka_unit_test(test_allocations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
