/* test_sde_bands.c - bands of drift and diffusion: they hold the truth and shrink with the data, for trajectories, snapshots and one
 * path; known parts have none; where the data are; files, threads and memory. */
#include "support.h"

#include "hollow/sde_bands.h"
#include "hollow/sde_regress.h"

enum { MOST = 20000, SUB = 10, POINTS = 5 };
static double t_all[MOST], x_all[MOST];
static size_t id_all[MOST];
static const double point[POINTS] = { 0.3, 0.7, 1.1, 1.5, 1.9 }, clock_of[POINTS] = { 0 };

static double drift(double x)
{
    return 0.9 * (1 - x);
}
static const double diffusion = 0.4;

/* Paths that come from 2 to rest. */
static hl_sde_data simulate(uint64_t seed, size_t paths, size_t times, double step, double start)
{
    size_t row = 0;
    for (size_t p = 0; p < paths; p++) {
        double x = start + 0.3 * hl_random_normal(seed, 1, p);
        for (size_t j = 0; j < times; j++, row++) {
            t_all[row] = step * (double)j;
            id_all[row] = p;
            x_all[row] = x;
            for (size_t k = 0; k < SUB; k++)
                x += drift(x) * step / SUB + diffusion * sqrt(step / SUB) * hl_random_normal(seed, 2 + p, j * SUB + k);
        }
    }
    return (hl_sde_data){ row, t_all, x_all, id_all };
}

static hl_status make(hl_context *ctx, const hl_sde_data *data, const hl_sde_regress_options *o, hl_sde **sde)
{
    hl_sde_simple *simple = NULL;
    hl_status status = hl_sde_regress(ctx, data, 1, o, &simple);
    hl_sde_spec spec = { .dim = 1, .simple = simple, .hidden = 1, .layers = 1, .components = 1, .dtype = HL_F64 };
    *sde = NULL;
    if (status == HL_OK)
        status = hl_sde_create(ctx, &spec, sde);
    hl_sde_simple_free(simple);
    return status;
}

typedef struct bands {
    double f_low[POINTS], f_high[POINTS], g_low[POINTS], g_high[POINTS];
    int inside[POINTS];
} bands;

static void get(hl_context *ctx, hl_sde *sde, const double *x, bands *b)
{
    double f[POINTS], g[POINTS];
    CHECK_OK(ctx, hl_sde_bands(sde, POINTS, clock_of, x,
                               &(hl_sde_band_values){ b->f_low, b->f_high, b->g_low, b->g_high, b->inside }));
    CHECK_OK(ctx, hl_sde_eval(sde, POINTS, clock_of, x, &(hl_sde_values){ .f = f, .g = g }));
    for (size_t k = 0; k < POINTS; k++) {
        CHECK_NEAR(0.5 * (b->f_low[k] + b->f_high[k]), f[k], 1e-12 * (1 + fabs(f[k])), "middle of the drift's band");
        CHECK(b->f_low[k] < b->f_high[k] && b->g_low[k] >= 0 && b->g_low[k] < b->g_high[k], "bands have a width");
    }
}

/* Of these data sets most bands hold the truth, and their width is that of the errors. */
static void check_cover(hl_context *ctx, size_t paths, size_t times, double step, double start, bool unlinked)
{
    enum { SETS = 20 };
    double held[2] = { 0 }, square = 0, width = 0;
    for (uint64_t seed = 1; seed <= SETS; seed++) {
        hl_sde_data data = simulate(seed, paths, times, step, start);
        hl_sde *sde;
        bands b;
        if (unlinked)
            data.trajectory = NULL;
        CHECK_OK(ctx, make(ctx, &data, &(hl_sde_regress_options){ .form = "linear", .replicates = 30 }, &sde));
        assert_int_equal(hl_sde_replicates(sde), 30);
        get(ctx, sde, point, &b);
        for (size_t k = 0; k < POINTS; k++) {
            double truth = drift(point[k]), error = 0.5 * (b.f_low[k] + b.f_high[k]) - truth;
            held[0] += b.f_low[k] <= truth && truth <= b.f_high[k];
            held[1] += b.g_low[k] <= diffusion && diffusion <= b.g_high[k];
            square += error * error / (SETS * POINTS);
            width += (b.f_high[k] - b.f_low[k]) / 2 / (SETS * POINTS);
        }
        hl_sde_free(sde);
    }
    CHECK_LE(0.6 * SETS * POINTS, held[0], "drifts in their bands");
    CHECK_LE(0.6 * SETS * POINTS, held[1], "diffusions in their bands");
    CHECK_LE(width, 4 * sqrt(square), "bands are not much wider than errors");
    CHECK_LE(sqrt(square), 1.5 * width, "nor narrower");
}

static void test_cover(void **state)
{
    check_cover(*state, 120, 15, 0.2, 2, false);
    check_cover(*state, 300, 15, 0.2, 2, true);
    check_cover(*state, 1, 3000, 0.05, 1, false);
}

/* Four times the data: half the width. */
static void test_shrink(void **state)
{
    hl_context *ctx = *state;
    double width[2] = { 0 };
    for (size_t k = 0; k < 2; k++) {
        hl_sde_data data = simulate(3, k ? 600 : 150, 15, 0.2, 2);
        hl_sde *sde;
        bands b;
        CHECK_OK(ctx, make(ctx, &data, &(hl_sde_regress_options){ .form = "linear", .replicates = 40 }, &sde));
        get(ctx, sde, point, &b);
        for (size_t i = 0; i < POINTS; i++)
            width[k] += b.f_high[i] - b.f_low[i];
        hl_sde_free(sde);
    }
    CHECK_NEAR(width[1] / width[0], 0.5, 0.2, "width");
}

/* Snapshots of dx = .12 x dt + .25 x dW, each row of a trajectory of its own. Candidates of which the error scatters wildly once made the choice a
 * constant diffusion below zero, with bands of no width, and Gaussians at lone observations conditions of any size. */
static void test_snapshots(void **state)
{
    enum { TIMES = 50, ROWS = 400, SETS = 6 };
    hl_context *ctx = *state;
    double held[2] = { 0 };
    for (uint64_t seed = 1; seed <= SETS; seed++) {
        for (size_t k = 0; k < TIMES * ROWS; k++) {
            double t = 0.1 * (double)(k / ROWS), z = hl_random_normal(seed, 5, k);
            double start = exp(0.2 * hl_random_normal(seed, 6, k));
            t_all[k] = t;
            x_all[k] = start * exp((0.12 - 0.25 * 0.25 / 2) * t + 0.25 * sqrt(t) * z);
        }
        hl_sde_data data = { TIMES * ROWS, t_all, x_all, NULL };
        hl_sde *sde;
        bands b;
        CHECK_OK(ctx, make(ctx, &data, &(hl_sde_regress_options){ .seed = seed, .replicates = 20 }, &sde));
        get(ctx, sde, point, &b);
        for (size_t i = 0; i < POINTS; i++) {
            double f = 0.12 * point[i], g = 0.25 * point[i];
            CHECK_LE(0.002 * g, b.g_high[i] - b.g_low[i], "the diffusion's band has a width");
            CHECK_LE(b.f_high[i] - b.f_low[i], 10, "no replicate makes the drift's band useless");
            held[0] += b.f_low[i] <= f && f <= b.f_high[i];
            held[1] += b.g_low[i] <= g && g <= b.g_high[i];
        }
        hl_sde_free(sde);
    }
    CHECK_LE(0.7 * SETS * POINTS, held[0], "drifts in their bands");
    CHECK_LE(0.7 * SETS * POINTS, held[1], "diffusions in their bands");
}

static void test_inside(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, 100, 15, 0.2, 2);
    const double x[POINTS] = { -9, 0.7, 1, 2, 12 };
    hl_sde *sde, *plain;
    bands b;
    CHECK_OK(ctx, make(ctx, &data, &(hl_sde_regress_options){ .replicates = 5 }, &sde));
    get(ctx, sde, x, &b);
    for (size_t k = 0; k < POINTS; k++)
        assert_int_equal(b.inside[k], k > 0 && k < 4);
    CHECK_OK(ctx, make(ctx, &data, NULL, &plain));
    assert_int_equal(hl_sde_replicates(plain), 0);
    CHECK_STATUS(ctx, hl_sde_bands(plain, POINTS, clock_of, x, &(hl_sde_band_values){ .inside = b.inside }),
                 HL_ERR_UNSUPPORTED);
    CHECK_STATUS(ctx, hl_sde_bands(sde, 1, NULL, x, &(hl_sde_band_values){ .inside = b.inside }), HL_ERR_INVALID);
    assert_int_equal(hl_sde_bands(NULL, 0, NULL, NULL, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_sde_replicates(NULL), 0);
    hl_noise_system system;
    CHECK_STATUS(ctx, hl_sde_replicate_system(plain, &system), HL_ERR_UNSUPPORTED);
    hl_sde_free(plain);
    hl_sde_free(sde);
}

/* What is known has a band without width. */
static void test_known(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, 100, 15, 0.2, 2);
    hl_sde_known known = {
        .drift = 1, .drift_constant = 0.9, .drift_linear = (double[]){ -0.9 }, .diffusion_value = 0
    };
    double low[POINTS], high[POINTS], g_low[POINTS], g_high[POINTS];
    hl_sde *sde;
    CHECK_OK(ctx, make(ctx, &data, &(hl_sde_regress_options){ .replicates = 10, .known = &known }, &sde));
    CHECK_OK(ctx, hl_sde_bands(sde, POINTS, clock_of, point, &(hl_sde_band_values){ low, high, g_low, g_high, NULL }));
    for (size_t k = 0; k < POINTS; k++) {
        CHECK_NEAR(low[k], drift(point[k]), 1e-9, "known drift");
        CHECK_NEAR(high[k], drift(point[k]), 1e-9, "known drift");
        CHECK(g_low[k] < g_high[k], "diffusion is not known");
    }
    hl_sde_free(sde);
}

/* The same bands from the model's file, and for any number of threads. */
static void test_file(void **state)
{
    hl_context *ctx = *state, *team = NULL;
    hl_sde_data data = simulate(1, 60, 15, 0.2, 2);
    hl_sde *sde, *again, *other;
    bands a = { 0 }, b = { 0 };
    static char bytes[1 << 20];
    size_t size = 0;
    hl_sde_regress_options o = { .replicates = 12 };
    CHECK_OK(ctx, hl_context_create(&(hl_context_options){ .threads = 3 }, &team));
    CHECK_OK(ctx, make(ctx, &data, &o, &sde));
    CHECK_OK(team, make(team, &data, &o, &other));
    get(ctx, sde, point, &a);
    get(team, other, point, &b);
    assert_memory_equal(&a, &b, sizeof a);
    CHECK_OK(ctx, hl_sde_write(sde, bytes, sizeof bytes, &size));
    CHECK_OK(ctx, hl_sde_read(ctx, bytes, size, &again));
    assert_int_equal(hl_sde_replicates(again), 12);
    get(ctx, again, point, &b);
    assert_memory_equal(&a, &b, sizeof a);
    hl_sde_free(again);
    hl_sde_free(other);
    hl_sde_free(sde);
    hl_context_free(team);
}

/* Over steps in which the drift pulls noise back, bands of a constant diffusion have the width of a sample of as many squares. Without the slope of
 * variances in regress_pairs.c they have .8 of it. */
static void test_long_steps(void **state)
{
    enum { SETS = 12, PATHS = 100, TIMES = 20 };
    hl_context *ctx = *state;
    double ratio = 0;
    for (uint64_t seed = 1; seed <= SETS; seed++) {
        hl_sde_data data = simulate(seed, PATHS, TIMES, 0.25, 2);
        hl_sde *sde;
        bands b;
        CHECK_OK(ctx, make(ctx, &data, &(hl_sde_regress_options){ .form = "linear", .replicates = 40 }, &sde));
        get(ctx, sde, point, &b);
        double half = (b.g_high[2] - b.g_low[2]) / (b.g_high[2] + b.g_low[2]);
        ratio += half / (1.645 * sqrt(0.5 / (PATHS * (TIMES - 1)))) / SETS;
        hl_sde_free(sde);
    }
    CHECK_NEAR(ratio, 1.02, 0.12, "width of the band of g");
}

/* ---- directions ---- */

enum { WIDE_PATHS = 250, WIDE_TIMES = 20, WIDE_POINTS = 40 };

/* Functions of combinations of two columns. */
static void wide_drift(const double *x, double *f)
{
    f[0] = 2 * tanh(x[0] + x[1]) - x[0];
    f[1] = tanh(2 * (x[0] - x[1])) - x[1];
}

static hl_sde_data simulate_wide(uint64_t seed, double *x)
{
    const double step = 0.15, h = step / SUB;
    size_t row = 0;
    for (size_t p = 0; p < WIDE_PATHS; p++) {
        double y[2] = { 1.2 * hl_random_normal(seed, 1, 2 * p), 1.2 * hl_random_normal(seed, 1, 2 * p + 1) }, f[2];
        for (size_t j = 0; j < WIDE_TIMES; j++, row++) {
            t_all[row] = step * (double)j;
            id_all[row] = p;
            memcpy(x + 2 * row, y, sizeof y);
            for (size_t k = 0; k < SUB; k++) {
                wide_drift(y, f);
                for (size_t i = 0; i < 2; i++)
                    y[i] += f[i] * h + 0.3 * sqrt(h) * hl_random_normal(seed, 2 + p, 2 * (j * SUB + k) + i);
            }
        }
    }
    return (hl_sde_data){ row, t_all, x, id_all };
}

/* Replicates turn the directions, and have more Gaussians than the estimate: without both, bands hold .73 of the truth. Files keep the tangents. */
static void test_directions(void **state)
{
    enum { SETS = 3, VALUES = 2 * WIDE_POINTS };
    hl_context *ctx = *state;
    static double x[2 * WIDE_PATHS * WIDE_TIMES];
    static char bytes[1 << 20];
    double held = 0, error = 0, size = 0, clock[WIDE_POINTS] = { 0 };
    for (uint64_t seed = 1; seed <= SETS; seed++) {
        hl_sde_data data = simulate_wide(seed, x);
        hl_sde_simple *simple = NULL;
        hl_sde *sde = NULL, *again = NULL;
        hl_sde_regress_options o = { .form = "ridge", .noise = "diagonal", .replicates = 30 };
        double at[VALUES], f[2], low[VALUES], high[VALUES], same_low[VALUES], same_high[VALUES];
        size_t length = 0;
        CHECK_OK(ctx, hl_sde_regress(ctx, &data, 2, &o, &simple));
        hl_sde_spec spec = { .dim = 2, .simple = simple, .hidden = 1, .layers = 1, .components = 1, .dtype = HL_F64 };
        CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
        for (size_t k = 0; k < WIDE_POINTS; k++)
            memcpy(at + 2 * k, x + 2 * (k * 123 % data.rows), 2 * sizeof *at);
        CHECK_OK(ctx, hl_sde_bands(sde, WIDE_POINTS, clock, at, &(hl_sde_band_values){ low, high, NULL, NULL, NULL }));
        for (size_t k = 0; k < VALUES; k++) {
            wide_drift(at + k / 2 * 2, f);
            double truth = f[k % 2], gap = 0.5 * (low[k] + high[k]) - truth;
            held += (low[k] <= truth && truth <= high[k]) / (double)(SETS * VALUES);
            error += gap * gap;
            size += truth * truth;
        }
        CHECK_OK(ctx, hl_sde_write(sde, bytes, sizeof bytes, &length));
        CHECK_OK(ctx, hl_sde_read(ctx, bytes, length, &again));
        CHECK_OK(ctx, hl_sde_bands(again, WIDE_POINTS, clock, at,
                                   &(hl_sde_band_values){ same_low, same_high, NULL, NULL, NULL }));
        assert_memory_equal(low, same_low, sizeof low);
        assert_memory_equal(high, same_high, sizeof high);
        char equation[200], cut[20];
        CHECK_OK(ctx, hl_sde_equation(again, 0, 1, equation, sizeof equation));
        CHECK(strncmp(equation, "f_x2 = ", 7) == 0 && strstr(equation, " Gaussians of "), equation);
        CHECK_OK(ctx, hl_sde_equation(again, 0, 1, cut, sizeof cut));
        CHECK(strlen(cut) < sizeof cut && strcmp(cut + strlen(cut) - 3, "...") == 0, cut);
        CHECK_OK(ctx, hl_sde_equation(again, 1, 0, equation, sizeof equation));
        CHECK(strncmp(equation, "g_x1", 4) == 0, equation);
        CHECK_STATUS(ctx, hl_sde_equation(again, 2, 0, equation, sizeof equation), HL_ERR_INVALID);
        CHECK_STATUS(ctx, hl_sde_equation(again, 0, 2, equation, sizeof equation), HL_ERR_INVALID);
        hl_sde_free(again);
        hl_sde_free(sde);
        hl_sde_simple_free(simple);
    }
    CHECK(held >= 0.8, "bands of the drift hold the truth");
    CHECK_LE(sqrt(error / size), 0.1, "error of the drift");
}

/* Rows follow replicates in turns; those have the spread that bands are made of. */
static void test_replicates(void **state)
{
    enum { COUNT = 40 };
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, 100, 15, 0.2, 2);
    hl_noise_system system;
    hl_sde *sde;
    bands b;
    double t[2 * COUNT] = { 0 }, x[2 * COUNT], f[2 * COUNT], g[2 * COUNT], square[2] = { 0 }, middle;
    size_t index[2 * COUNT];
    CHECK_OK(ctx, make(ctx, &data, &(hl_sde_regress_options){ .replicates = COUNT }, &sde));
    CHECK_OK(ctx, hl_sde_replicate_system(sde, &system));
    for (size_t k = 0; k < 2 * COUNT; k++) {
        x[k] = point[2];
        index[k] = k;
    }
    assert_int_equal(system.coefficients(system.user, &(hl_rows){ 2 * COUNT, index, t, x }, f, g, NULL), 0);
    get(ctx, sde, point, &b);
    for (size_t k = 0; k < COUNT; k++) {
        assert_true(f[k] == f[k + COUNT] && g[k] == g[k + COUNT]);
        middle = 0.5 * (b.f_low[2] + b.f_high[2]);
        square[0] += (f[k] - middle) * (f[k] - middle) / COUNT;
        middle = 0.5 * (b.g_low[2] + b.g_high[2]);
        square[1] += (g[k] - middle) * (g[k] - middle) / COUNT;
    }
    CHECK_NEAR(sqrt(square[0]) / (b.f_high[2] - b.f_low[2]), 0.5 / 1.679, 0.002, "spread of drifts");
    CHECK_NEAR(sqrt(square[1]) / (b.g_high[2] - b.g_low[2]), 0.5 / 1.679, 0.002, "spread of diffusions");
    hl_sde_free(sde);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    hl_sde_data data = { 600, t_all, x_all, id_all };
    hl_sde *sde = NULL;
    hl_sde_simple *simple = NULL;
    static char bytes[1 << 18];
    size_t size;
    (void)user;
    hl_status status = hl_sde_regress(
        ctx, &data, 1, &(hl_sde_regress_options){ .form = "linear", .replicates = 2, .use = "steps" }, &simple);
    hl_sde_spec spec = { .dim = 1, .simple = simple, .hidden = 1, .layers = 1, .components = 1 };
    if (status == HL_OK)
        status = hl_sde_create(ctx, &spec, &sde);
    if (status == HL_OK)
        status = hl_sde_bands(sde, POINTS, clock_of, point, &(hl_sde_band_values){ 0 });
    if (status == HL_OK)
        status = hl_sde_write(sde, bytes, sizeof bytes, &size);
    hl_sde_free(sde);
    sde = NULL;
    if (status == HL_OK)
        status = hl_sde_read(ctx, bytes, size, &sde);
    hl_sde_free(sde);
    hl_sde_simple_free(simple);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    simulate(1, 60, 10, 0.2, 2);
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cover),      cmocka_unit_test(test_shrink),     cmocka_unit_test(test_inside),
        cmocka_unit_test(test_known),      cmocka_unit_test(test_replicates), cmocka_unit_test(test_file),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_snapshots),  cmocka_unit_test(test_directions),
        cmocka_unit_test(test_long_steps),
    };
    return cmocka_run_group_tests(tests, group_context, group_context_free);
}
