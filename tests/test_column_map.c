/* test_column_map.c - maps of columns: slopes, round trips, tails, ties, fits. */
#include "support.h"

#include "learn/column_map.h"

enum { ROWS = 1200 };

/* A map with parts of very different width. */
static hl_column_map *make_map(hl_context *ctx)
{
    static const double w[] = { 0.3, 0.45, 0.2 }, mean[] = { -1.5, 0.2, 4 }, s[] = { 0.5, 0.01, 1.7 };
    hl_column_map *m = NULL;
    CHECK_OK(ctx, hl_column_map_create(ctx, 3, &m));
    memcpy(m->weight, w, sizeof w);
    memcpy(m->mean, mean, sizeof mean);
    memcpy(m->deviation, s, sizeof s);
    m->background = 0.05;
    m->centre = 10;
    m->scale = 3;
    CHECK(hl_column_map_valid(m), "a map");
    return m;
}

static void test_slope_is_the_derivative(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_column_map *m = make_map(ctx);
    for (double x = -30; x < 60; x += 0.37) {
        double slope, h = 1e-5, y = hl_column_map_forward(m, x, &slope);
        double up = hl_column_map_forward(m, x + h, NULL), down = hl_column_map_forward(m, x - h, NULL);
        CHECK_LE(fabs((up - down) / (2 * h) / exp(slope) - 1), 1e-5, "central difference");
        /* The density of x is that of y times the slope. */
        CHECK_NEAR(hl_column_map_logf(m, x), slope - 0.5 * y * y - 0.5 * log(2 * acos(-1)), 1e-12, "density");
    }
    hl_column_map_free(m);
    test_context_free(ctx, NULL);
}

static void test_round_trip(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_column_map *m = make_map(ctx);
    for (int i = 0; i < 400; i++) {
        double x = 10 + 3 * sinh(0.06 * (i - 200)), slope, y = hl_column_map_forward(m, x, &slope);
        double back = hl_column_map_inverse(m, y), condition = (1 + fabs(y)) * exp(-slope) + fabs(x);
        CHECK_LE(fabs(back - x), 1e-12 * condition, "x from its y");
    }
    hl_column_map_free(m);
    test_context_free(ctx, NULL);
}

/* Far values keep finite scores, in order; 40 deviations are about 5 of the normal distribution. */
static void test_tails(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_column_map *m = make_map(ctx);
    double last = -INFINITY, slope;
    const double far[] = { -1e300, -1e200, -1e120, -1e101, -1e80, -1e20, -1e3, 0, 1e3, 1e20, 1e99, 1e150, 1e300 };
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        double y = hl_column_map_forward(m, far[i], &slope);
        CHECK(isfinite(y) && isfinite(slope) && y > last, "a finite score above the last");
        last = y;
    }
    CHECK(isnan(hl_column_map_forward(m, INFINITY, &slope)) && isnan(slope), "infinity");
    CHECK(isnan(hl_column_map_forward(m, NAN, NULL)), "NaN");
    /* Of the background alone, P(u < -50) = (1 - 50 / sqrt(2502)) / 2. */
    hl_column_map *t = NULL;
    CHECK_OK(ctx, hl_column_map_create(ctx, 0, &t));
    double p = 1 / (sqrt(2502) * (sqrt(2502) + 50)), y = hl_column_map_forward(t, -50, NULL);
    CHECK_NEAR(0.5 * erfc(-y / sqrt(2)), p, 1e-12 * p, "the tail of t with two degrees of freedom");
    hl_column_map_free(t);
    hl_column_map_free(m);
    test_context_free(ctx, NULL);
}

/* The density of a fitted map has the integral 1, and beats that of one normal on a column with two modes. */
static void test_fit(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double *x = calloc(2 * ROWS, sizeof *x), sum = 0;
    size_t parts = 0;
    for (size_t r = 0; r < 2 * ROWS; r++)
        x[r] = r % 3 ? 5 + 0.2 * hl_random_normal(1, 0, r) : -4 + hl_random_normal(1, 0, r);
    hl_column_fold fold = { ROWS, ROWS, 1, x, x + ROWS };
    hl_column_map *m = NULL;
    CHECK_OK(ctx, hl_column_map_choose(ctx, 1, &fold, 64, 0, &parts));
    CHECK_OK(ctx, hl_column_map_fit(ctx, &fold, parts, 0, &m));
    CHECK(hl_column_map_valid(m), "a map");
    CHECK(parts >= 2 && parts <= 16, "two modes");
    for (double at = -3000; at < 3000; at += 0.002)
        sum += 0.002 * exp(hl_column_map_logf(m, at));
    CHECK_NEAR(sum, 1, 1e-4, "the integral of the density");
    double score = 0, truth = 0, mean = 0, square = 0;
    for (size_t r = ROWS; r < 2 * ROWS; r++) {
        double y = hl_column_map_forward(m, x[r], NULL);
        score += hl_column_map_logf(m, x[r]) / ROWS;
        double a = (x[r] - 5) / 0.2, b = x[r] + 4;
        truth += (log(2. / 3 / 0.2 * exp(-0.5 * a * a) + exp(-0.5 * b * b) / 3) - 0.5 * log(2 * acos(-1))) / ROWS;
        mean += y / ROWS;
        square += y * y / ROWS;
    }
    CHECK_LE(truth - score, 0.03, "close to the true density");
    CHECK_NEAR(mean, 0, 0.1, "scores have mean 0");
    CHECK_NEAR(square, 1, 0.1, "and variance 1");
    hl_column_map_free(m);
    free(x);
    test_context_free(ctx, NULL);
}

/* Beyond the rows that it was fitted to a map goes on with the slope of its ends, back and forth, and x grows slowly with y. */
static void test_ends(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_column_map *m = make_map(ctx);
    double slope, curve, before, after;
    m->low = -4;
    m->high = 7.5; /* x from -2 to 32.5 */
    CHECK(hl_column_map_valid(m), "a map");
    for (double x = -30; x < 70; x += 0.37) {
        double h = 1e-5, y = hl_column_map_curve(m, x, &slope, &curve), up, down;
        double difference = hl_column_map_forward(m, x + h, &up) - hl_column_map_forward(m, x - h, &down);
        CHECK_LE(fabs(difference / (2 * h) / exp(slope) - 1), 1e-5, "central difference");
        if (fabs(x + 2) > 0.1 && fabs(x - 32.5) > 0.1)
            CHECK_LE(fabs((up - down) / (2 * h) - curve), 1e-4 * (1 + fabs(curve)), "of the slope");
        CHECK_NEAR(hl_column_map_logf(m, x), slope - 0.5 * y * y - 0.5 * log(2 * acos(-1)), 1e-12, "density");
        CHECK_LE(fabs(hl_column_map_inverse(m, y) - x), 1e-12 * ((1 + fabs(y)) * exp(-slope) + fabs(x)),
                 "x from its y");
    }
    hl_column_map_forward(m, 32.5 - 1e-9, &before);
    double end = hl_column_map_forward(m, 32.5 + 1e-9, &after);
    CHECK_NEAR(before, after, 1e-6, "no jump of the density");
    /* Four deviations further: e^2 times the slope there, at most; the background alone would have gone to 1e8. */
    CHECK_LE(hl_column_map_inverse(m, end + 4), 32.5 + 2 * exp(2 - before), "not absurd");
    for (double x = 1e10; x < 1e300; x *= 1e10) {
        double y = hl_column_map_forward(m, x, &slope);
        CHECK(isfinite(y) && isfinite(slope), "finite");
        CHECK_NEAR(hl_column_map_inverse(m, y) / x, 1, 1e-9, "from far away");
    }
    CHECK(isfinite(hl_column_map_inverse(m, 1e6)) && isfinite(hl_column_map_inverse(m, -1e6)), "finite draws");
    double sum = 0;
    for (double at = -3000; at < 3000; at += 0.002)
        sum += 0.002 * exp(hl_column_map_logf(m, at));
    CHECK_NEAR(sum, 1, 1e-4, "the integral of the density");
    m->high = -5;
    CHECK(!hl_column_map_valid(m), "ends in the wrong order");
    hl_column_map_free(m);
    test_context_free(ctx, NULL);
}

/* A column of repeated values: no part is narrower than half their distance, so that the density has a bound. */
static void test_ties(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double x[ROWS], work[ROWS], centre, scale;
    for (size_t r = 0; r < ROWS; r++)
        x[r] = 0.25 * floor(4 * hl_random_normal(2, 0, r));
    double floor_width = hl_column_tie_width(ROWS, x, 1, work);
    CHECK_NEAR(floor_width, 0.125, 1e-12, "half a step");
    hl_column_fold fold = { ROWS, 0, 1, x, NULL };
    hl_column_map *m = NULL;
    CHECK_OK(ctx, hl_column_map_fit(ctx, &fold, 32, floor_width, &m));
    for (size_t j = 0; j < m->parts; j++)
        CHECK(m->deviation[j] * m->scale >= 0.125 - 1e-12, "not narrower than half a step");
    hl_column_map_free(m);
    fill_normal_f64(x, ROWS, 3);
    CHECK(hl_column_tie_width(ROWS, x, 1, work) == 0, "no ties");
    /* One absurd value changes neither centre nor scale; a column that is mostly one value has a scale all the same. */
    x[7] = 1e30;
    hl_column_scale(ROWS, x, 1, work, &centre, &scale);
    CHECK_NEAR(centre, 0, 0.1, "median");
    CHECK_NEAR(scale, 1, 0.1, "scale");
    for (size_t r = 0; r < ROWS; r++)
        x[r] = r % 10 ? 3 : 3 + hl_random_normal(2, 1, r);
    hl_column_scale(ROWS, x, 1, work, &centre, &scale);
    CHECK(centre == 3 && scale > 1e-3 && scale < 1, "a spike");
    for (size_t r = 0; r < ROWS; r++)
        x[r] = 3;
    hl_column_scale(ROWS, x, 1, work, &centre, &scale);
    CHECK(scale == 1, "a constant");
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    double *x = user;
    hl_column_fold fold = { 100, 50, 1, x, x + 100 };
    size_t parts = 0;
    hl_column_map *m = NULL;
    hl_status status = hl_column_map_choose(ctx, 1, &fold, 64, 0, &parts);
    if (status == HL_OK)
        status = hl_column_map_fit(ctx, &fold, parts, 0, &m);
    hl_column_map_free(m);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    double x[150];
    fill_normal_f64(x, 150, 4);
    check_every_allocation(1, scenario, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slope_is_the_derivative),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_tails),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
