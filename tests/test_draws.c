/* test_draws.c - draws look like the data: the extremes of many draws are within a small factor of the data's own range. */
#include "support.h"

#include "learn/density_fit.h"

enum { ROWS = 600, DRAWS = 10000 };

typedef double draw_fn(uint64_t seed, uint64_t row);

static double draw_lognormal(uint64_t seed, uint64_t row)
{
    return exp(hl_random_normal(seed, 0, row));
}

/* Of shape 2: the sum of two exponential ones. */
static double draw_gamma(uint64_t seed, uint64_t row)
{
    return -log(hl_random_uniform(seed, 0, row)) - log(hl_random_uniform(seed, 1, row));
}

/* Of mean 4, by inversion. */
static double draw_poisson(uint64_t seed, uint64_t row)
{
    double u = hl_random_uniform(seed, 0, row), p = exp(-4), k = 0;
    for (; u > p && k < 50; k++) {
        u -= p;
        p *= 4 / (k + 1);
    }
    return k;
}

/* Student's t with two degrees of freedom. */
static double draw_heavy(uint64_t seed, uint64_t row)
{
    double u = hl_random_uniform(seed, 0, row) - 0.5;
    return 2 * u * sqrt(2 / (1 - 4 * u * u));
}

/* Two columns, the second like the first; the draws' largest distances from the median are compared. */
static void test_extremes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        draw_fn *draw;
        double middle, factor;
    } cases[] = { { "lognormal", draw_lognormal, 1, 10 },
                  { "gamma", draw_gamma, 1.7, 5 },
                  { "Poisson", draw_poisson, 4, 5 },
                  { "t of two degrees", draw_heavy, 0, 20 } };
    hl_context *ctx = test_context(NULL, 2);
    static double x[2 * ROWS], drawn[2 * DRAWS];
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        hl_settings *s = NULL;
        hl_density *model = NULL;
        double most = 0, least = INFINITY, greatest = -INFINITY, far = 0, logp;
        size_t outside = 0;
        for (size_t r = 0; r < ROWS; r++) {
            x[2 * r] = cases[c].draw(1, r);
            x[2 * r + 1] = x[2 * r] + cases[c].draw(2, r);
            most = fmax(most, fabs(x[2 * r] - cases[c].middle));
            least = fmin(least, x[2 * r]);
            greatest = fmax(greatest, x[2 * r]);
        }
        CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
        CHECK_OK(ctx, hl_settings_set(s, "members", "mixture"));
        CHECK_OK(ctx, hl_settings_set(s, "recipe", "fast"));
        hl_density_data data = { .dim = 2, .train = { .rows = ROWS, .x = x } };
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL));
        CHECK_OK(ctx, hl_density_sample(model, 3, 0, DRAWS, NULL, drawn));
        for (size_t r = 0; r < DRAWS; r++) {
            far = fmax(far, fabs(drawn[2 * r] - cases[c].middle));
            outside += drawn[2 * r] > greatest;
        }
        CHECK_LE(far, cases[c].factor * most, cases[c].name);
        CHECK_LE((double)outside, 10. * DRAWS / ROWS, cases[c].name); /* 1 in ROWS, if all were right */
        const double absurd[] = { 1e12, -1e12 };
        CHECK_OK(ctx, hl_density_logp(model, 1, absurd, NULL, &logp));
        CHECK(isfinite(logp), "log p is finite everywhere");
        hl_density_free(model);
        hl_settings_free(s);
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_extremes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
