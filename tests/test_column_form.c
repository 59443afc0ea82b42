/* test_column_form.c - forms of columns: slopes, round trips, bounds, grids, and density models that have them. */
#include "support.h"

#include "directory.h"

#include "learn/density.h"

enum { ROWS = 400 };

static hl_column_form make(hl_form_kind kind, double low, double high)
{
    return (hl_column_form){ .kind = kind,
                             .low = low,
                             .high = high,
                             .least = -INFINITY,
                             .most = INFINITY,
                             .centre = 0.3,
                             .scale = 0.7,
                             .edge = isinf(low) && isinf(high) ? 0 : 1e-3 };
}

static const struct {
    hl_form_kind kind;
    double low, high;
} forms[] = {
    { HL_FORM_NONE, -INFINITY, INFINITY },  { HL_FORM_LOG, -1, INFINITY },  { HL_FORM_LOG, -INFINITY, 2 },
    { HL_FORM_SOFT, -1, INFINITY },         { HL_FORM_SOFT, -INFINITY, 2 }, { HL_FORM_LOGIT, -1, 2 },
    { HL_FORM_ASINH, -INFINITY, INFINITY },
};
enum { FORMS = sizeof forms / sizeof *forms };

static void test_slopes_and_round_trips(void **state)
{
    (void)state;
    for (size_t k = 0; k < FORMS; k++) {
        hl_column_form f = make(forms[k].kind, forms[k].low, forms[k].high);
        CHECK(hl_column_form_valid(&f), "a form");
        double last = -INFINITY;
        for (int i = -300; i <= 300; i++) {
            double v = 0.05 * i, x = hl_column_form_inverse(&f, v), slope, curve, h = 1e-5 * (1 + fabs(v));
            CHECK(x >= f.low && x <= f.high && x >= last, "monotone, inside the bounds");
            last = x;
            if (x == f.low || x == f.high)
                continue; /* nearer to a bound than numbers are */
            double back = hl_column_form_forward(&f, x, &slope, &curve);
            CHECK_LE(fabs(back - v), 1e-12 * (fabs(v) + fabs(x) * exp(slope)), "v from its x");
            double dx = hl_column_form_inverse(&f, v + h) - hl_column_form_inverse(&f, v - h);
            if (fabs(x) * 1e-16 > 1e-7 * dx)
                continue; /* differences of rounded numbers */
            CHECK_LE(fabs(dx / (2 * h) * exp(slope) - 1), 1e-6, "the slope is the derivative");
            double up, down, step = 1e-4 * exp(-slope);
            if (x - step <= f.low || x + step >= f.high)
                continue;
            hl_column_form_forward(&f, x + step, &up, NULL);
            hl_column_form_forward(&f, x - step, &down, NULL);
            CHECK_LE(fabs((up - down) / 2e-4 - curve / exp(slope)), 1e-6 * (1 + fabs(curve / exp(slope))),
                     "the derivative of the log slope");
        }
    }
}

static void test_edges(void **state)
{
    (void)state;
    double slope, curve;
    for (size_t k = 0; k < FORMS; k++) {
        hl_column_form f = make(forms[k].kind, forms[k].low, forms[k].high), wrong = f;
        CHECK(isnan(hl_column_form_forward(&f, NAN, &slope, &curve)) && isnan(slope), "no number");
        for (int up = 0; up < 2; up++) {
            double bound = up ? f.high : f.low;
            if (!isfinite(bound))
                continue;
            CHECK(isfinite(hl_column_form_forward(&f, bound, &slope, NULL)) && isfinite(slope), "the bound itself");
            CHECK_NEAR(hl_column_form_forward(&f, bound, NULL, NULL),
                       hl_column_form_forward(&f, bound + (up ? -1e-3 : 1e-3), NULL, NULL), 1e-3, "is the edge");
            hl_column_form_forward(&f, bound + (up ? 1 : -1), &slope, NULL);
            CHECK(slope == -INFINITY, "outside");
        }
        CHECK(isfinite(hl_column_form_inverse(&f, 1e4)) && isfinite(hl_column_form_inverse(&f, -1e4)), "far draws");
        wrong.scale = 0;
        CHECK(!hl_column_form_valid(&wrong), "no scale");
        wrong = f;
        wrong.low = wrong.high = 1;
        CHECK(!hl_column_form_valid(&wrong), "bounds that are no interval");
    }
    hl_column_form f = make(HL_FORM_LOG, 0, INFINITY);
    f.step = 0.25;
    CHECK(hl_column_form_round(&f, 0.6) == 0.5 && hl_column_form_round(&f, 0.05) == 0, "the nearest of the grid");
    f.low = 0.1;
    CHECK(hl_column_form_round(&f, 0.11) == 0.25, "that is inside");
}

static void test_grids(void **state)
{
    (void)state;
    double x[ROWS], work[ROWS];
    static const double steps[] = { 1, 0.01, 50, 0.2 };
    for (size_t k = 0; k < 4; k++) {
        for (size_t r = 0; r < ROWS; r++)
            x[r] = round(10 * hl_random_normal(2, k, r)) * steps[k];
        CHECK_NEAR(hl_column_grid(ROWS, x, 1, work).step, steps[k], 1e-12 * steps[k], "a step");
    }
    for (size_t r = 0; r < ROWS; r++) /* a grid in other units */
        x[r] = (round(10 * hl_random_normal(2, 5, r)) - 0.123) / 3.7;
    hl_column_form grid = hl_column_grid(ROWS, x, 1, work);
    CHECK_NEAR(grid.step, 1 / 3.7, 1e-9, "a step in other units");
    CHECK_NEAR(hl_column_form_round(&grid, x[7] + 0.1), x[7], 1e-9, "and its origin");
    for (size_t r = 0; r < ROWS; r++)
        x[r] = hl_random_normal(2, 6, r / 2);
    CHECK(hl_column_grid(ROWS, x, 1, work).step == 0, "copies without a grid");
    fill_normal_f64(x, ROWS, 3);
    CHECK(hl_column_grid(ROWS, x, 1, work).step == 0, "no ties");
}

/* Few values: their grid is exact, samples are the decimals that were read and stay in the range of the data. */
static void test_few_values(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        double value[5], step;
    } few[] = { { 5, { 0, 0.25, 0.5, 0.75, 1 }, 0.25 }, { 4, { 1, 3, 5, 7 }, 2 },
                { 4, { 0, 0.4, 0.8, 2 }, 0.4 },         { 2, { 0, 0.5 }, 0.5 },
                { 3, { 0.99, 1.99, 3.99 }, 1 },         { 3, { 1, 2.5, 3.1 }, 0.1 } };
    double x[ROWS], work[ROWS];
    for (size_t k = 0; k < sizeof few / sizeof *few; k++) {
        size_t count = few[k].count;
        double first = few[k].value[0], last = few[k].value[count - 1];
        for (size_t r = 0; r < ROWS; r++)
            x[r] = few[k].value[r % count];
        hl_column_form grid = hl_column_grid(ROWS, x, 1, work);
        CHECK_NEAR(grid.step, few[k].step, 1e-12, "the step of few values");
        for (size_t i = 0; i < count; i++)
            CHECK(hl_column_form_round(&grid, few[k].value[i] + 0.3 * few[k].step) == few[k].value[i], "as read");
        CHECK(hl_column_form_round(&grid, first - 9) == first && hl_column_form_round(&grid, last + 9) == last,
              "inside");
    }
}

/* The form whose density of held rows is better: log for lognormal values, soft for exponential ones; asinh for a far value alone. */
static void test_choice(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double x[ROWS];
    hl_column_form f;
    for (size_t r = 0; r < ROWS; r++)
        x[r] = 3 + exp(hl_random_normal(1, 0, r));
    CHECK_OK(ctx, hl_column_form_choose(ctx, ROWS, x, 1, 3, INFINITY, &f));
    CHECK(f.kind == HL_FORM_LOG && hl_column_form_valid(&f), "lognormal");
    for (size_t r = 0; r < ROWS; r++)
        x[r] = 3 + 0.01 * log(hl_random_uniform(1, 1, r));
    CHECK_OK(ctx, hl_column_form_choose(ctx, ROWS, x, 1, -INFINITY, 3, &f));
    CHECK(f.kind == HL_FORM_SOFT && hl_column_form_valid(&f), "exponential, below an upper bound");
    CHECK_OK(ctx, hl_column_form_choose(ctx, ROWS, x, 1, 2, 3, &f));
    CHECK(f.kind == HL_FORM_LOGIT && hl_column_form_valid(&f), "two bounds");
    x[5] = 3;
    CHECK_OK(ctx, hl_column_form_choose(ctx, ROWS, x, 1, -INFINITY, 3, &f));
    CHECK(isfinite(hl_column_form_forward(&f, 3, NULL, NULL)), "a value at its bound");
    fill_normal_f64(x, ROWS, 3);
    CHECK_OK(ctx, hl_column_form_choose(ctx, ROWS, x, 1, -INFINITY, INFINITY, &f));
    CHECK(f.kind == HL_FORM_NONE, "nothing special");
    x[5] = 1e9;
    CHECK_OK(ctx, hl_column_form_choose(ctx, ROWS, x, 1, -INFINITY, INFINITY, &f));
    CHECK(f.kind == HL_FORM_ASINH && hl_column_form_valid(&f), "a far value");
    test_context_free(ctx, NULL);
}

/* ---- models ---- */

/* One column through form k and, if `mapped`, a map; a mixture, or, if `flow`, a flow. */
static hl_density *make_model(hl_context *ctx, size_t k, bool mapped, bool flow)
{
    hl_density *m = NULL;
    hl_column_form f = make(forms[k].kind, forms[k].low, forms[k].high);
    CHECK_OK(ctx, hl_density_create_columns(ctx, 1, 0, &(hl_density_column){ "a", 0.2, 0.6 }, &m));
    if (mapped) {
        hl_column_map **map = hl_calloc(ctx, 1, sizeof(hl_column_map *));
        CHECK_OK(ctx, hl_column_map_create(ctx, 1, &map[0]));
        map[0]->weight[0] = 0.999;
        map[0]->deviation[0] = 0.8;
        map[0]->background = 0.001;
        hl_density_set_maps(m, map);
    }
    if (flow) {
        hl_flow_spec spec = { .net = { .dim = 1, .dtype = HL_F64, .hidden = 4, .hidden_layers = 1, .features = 2 } };
        CHECK_OK(ctx, hl_density_add_flow(m, &spec));
        CHECK_OK(ctx, hl_flow_init(m->flow, 3));
        CHECK_OK(ctx, hl_density_set_solver(m, &(hl_flow_solver){ .method = "dopri8", .rtol = 1e-12, .atol = 1e-12 }));
        m->flow_mapped = mapped;
    } else {
        hl_tmixture *mixture = NULL;
        CHECK_OK(ctx, hl_tmixture_create(ctx, 1, 0, 1, INFINITY, &mixture));
        mixture->weight[0] = 1;
        mixture->factor[0] = 0.8;
        CHECK_OK(ctx, hl_tmixture_prepare(mixture));
        CHECK_OK(ctx, hl_density_add_mixture(m, mixture, mapped, 1));
    }
    CHECK_OK(ctx, hl_density_set_forms(m, &f));
    return m;
}

/* The integral of p, or of p log p, over the range of v in -9..9, by the trapezoidal rule in v. */
static double integrate(hl_context *ctx, hl_density *m, bool entropy)
{
    enum { N = 1000 };
    static double x[N], logp[N];
    double sum = 0, h = 18.0 / N, slope;
    for (size_t i = 0; i < N; i++)
        x[i] = hl_column_form_inverse(&m->form[0], h * (double)i - 9);
    CHECK_OK(ctx, hl_density_logp(m, N, x, NULL, logp));
    for (size_t i = 0; i < N; i++) {
        hl_column_form_forward(&m->form[0], x[i], &slope, NULL);
        sum += exp(logp[i] - slope) * (entropy ? logp[i] : 1) * h;
    }
    return sum;
}

static void test_models(void **state)
{
    (void)state;
    enum { DRAWS = 4000 };
    static double x[DRAWS], logp[DRAWS], g[DRAWS], side[2][DRAWS];
    hl_context *ctx = test_context(NULL, 1);
    for (size_t n = 0; n < 4 * FORMS; n++) {
        hl_density *m = make_model(ctx, n / 4, n & 1, n & 2), *back = NULL;
        size_t rows = n & 2 ? 200 : DRAWS;
        double mean = 0, square = 0, entropy = integrate(ctx, m, true), one;
        CHECK_NEAR(integrate(ctx, m, false), 1, 1e-4, "the integral of the density");
        CHECK_OK(ctx, hl_density_sample(m, 4, 0, rows, NULL, x));
        CHECK_OK(ctx, hl_density_logp_gradient(m, rows, x, NULL, logp, g, NULL));
        for (size_t r = 0; r < rows; r++) {
            CHECK(x[r] >= m->form[0].low && x[r] <= m->form[0].high, "a draw inside the bounds");
            mean += logp[r] / (double)rows;
            square += logp[r] * logp[r] / (double)rows;
        }
        CHECK_NEAR(mean, entropy, 4.5 * sqrt((square - mean * mean) / (double)rows), "the mean log p of draws");
        for (int up = 0; up < 2; up++) {
            double moved[20];
            for (size_t r = 0; r < 20; r++)
                moved[r] = x[r] + (up ? 1e-6 : -1e-6);
            CHECK_OK(ctx, hl_density_logp(m, 20, moved, NULL, side[up]));
        }
        for (size_t r = 0; r < 20; r++)
            if (isfinite(side[0][r]) && isfinite(side[1][r]) && fabs(g[r]) < 100)
                CHECK_NEAR(g[r], (side[1][r] - side[0][r]) / 2e-6, 1e-6 * (10 + g[r] * g[r]), "the gradient");
        CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
        CHECK_OK(ctx, hl_density_load(ctx, "m.hollow", &back));
        CHECK_OK(ctx, hl_density_logp(back, 1, x, NULL, &one));
        CHECK_OK(ctx, hl_density_logp(m, 1, x, NULL, logp));
        CHECK(one == logp[0], "the same bits from the file");
        hl_density_range range = hl_density_get_range(back, 0);
        CHECK(range.low == forms[n / 4].low && range.high == forms[n / 4].high &&
                  strcmp(range.form, hl_form_names[forms[n / 4].kind]) == 0,
              "the range from the file");
        const double out[] = { -50, 50, NAN };
        hl_density_logp(back, 3, out, NULL, logp);
        CHECK((logp[0] == -INFINITY) == isfinite(range.low) && (logp[1] == -INFINITY) == isfinite(range.high) &&
                  isnan(logp[2]),
              "outside");
        hl_density_free(back);
        hl_density_free(m);
    }
    test_context_free(ctx, NULL);
}

/* Draws on the grid, unless they are not to be. */
static void test_rounding(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx, 1, false, false);
    hl_column_form f = m->form[0];
    double x[50], raw[50];
    f.step = 0.25;
    CHECK_OK(ctx, hl_density_set_forms(m, &f));
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, 50, NULL, x));
    hl_density_set_rounding(m, 0);
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, 50, NULL, raw));
    for (size_t r = 0; r < 50; r++)
        CHECK(4 * x[r] == round(4 * x[r]) && fabs(x[r] - raw[r]) <= 0.126 && x[r] != raw[r], "rounded to quarters");
    f.least = raw[0];
    CHECK_OK(ctx, hl_density_set_forms(m, &f));
    CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
    hl_density_free(m);
    CHECK_OK(ctx, hl_density_load(ctx, "m.hollow", &m));
    CHECK(hl_density_get_range(m, 0).least == raw[0] && hl_density_get_range(m, 0).most == INFINITY, "from a file");
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, 50, NULL, x));
    for (size_t r = 0; r < 50; r++)
        CHECK(x[r] >= raw[0] - 0.125, "not below the limit");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    double x[2] = { 0.2, 0.4 }, g[2];
    hl_column_form f;
    hl_density *m = NULL;
    hl_status status = hl_column_form_choose(ctx, 40, user, 1, -10, INFINITY, &f);
    if (status == HL_OK)
        status = hl_density_load(ctx, "m.hollow", &m);
    if (status == HL_OK)
        status = hl_density_logp_gradient(m, 2, x, NULL, NULL, g, NULL);
    if (status == HL_OK)
        status = hl_density_save(m, "again.hollow");
    hl_density_free(m);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    double x[40];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx, 5, true, false);
    CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
    hl_density_free(m);
    test_context_free(ctx, NULL);
    fill_normal_f64(x, 40, 2);
    check_every_allocation(1, scenario, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_slopes_and_round_trips, empty_directory),
        cmocka_unit_test_teardown(test_edges, empty_directory),
        cmocka_unit_test_teardown(test_grids, empty_directory),
        cmocka_unit_test_teardown(test_few_values, empty_directory),
        cmocka_unit_test_teardown(test_choice, empty_directory),
        cmocka_unit_test_teardown(test_models, empty_directory),
        cmocka_unit_test_teardown(test_rounding, empty_directory),
        cmocka_unit_test_teardown(test_allocations, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
