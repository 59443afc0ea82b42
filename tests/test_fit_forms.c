/* test_fit_forms.c - what hl_density_fit does with bounds, whole numbers, far values, edges and ties, with mixtures alone. */
#include "support.h"

#include "hollow/density_fit.h"
#include "learn/density.h"

enum { ROWS = 1000, DIM = 2, DRAWS = 1000 };
static const double NORMAL = 1.4189385332046727; /* the entropy of a normal distribution of deviation 1 */

static hl_status fit(hl_context *ctx, const double *x, const char *option, const char *value, hl_density **model,
                     hl_density_outcome **o)
{
    hl_settings *s = NULL;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    CHECK_OK(ctx, hl_settings_set(s, "members", "mixture"));
    CHECK_OK(ctx, hl_settings_set(s, "recipe", "fast"));
    if (option)
        CHECK_OK(ctx, hl_settings_set(s, option, value));
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    hl_status status = hl_density_fit(ctx, &data, s, NULL, model, o);
    hl_settings_free(s);
    return status;
}

static const hl_finding *find(const hl_density_outcome *o, hl_finding_kind kind, size_t column)
{
    for (size_t i = 0; i < o->findings; i++)
        if (o->finding[i].kind == kind && o->finding[i].column == column)
            return &o->finding[i];
    return NULL;
}

static void draw(double *x, double (*first)(size_t r))
{
    for (size_t r = 0; r < ROWS; r++) {
        x[DIM * r] = first(r);
        x[DIM * r + 1] = hl_random_normal(4, 1, r);
    }
}

static double normal(size_t r)
{
    return hl_random_normal(4, 0, r);
}

static double exponential(size_t r)
{
    return -2 * log(hl_random_uniform(4, 0, r));
}

static double whole(size_t r)
{
    return floor(exponential(r));
}

static double quarters(size_t r)
{
    return 0.25 * floor(4 * normal(r));
}

/* One value of 1e9 among normal ones: it is named, and the model is that of the others. */
static void test_far_value(void **state)
{
    (void)state;
    static double x[ROWS * DIM];
    double logp[2];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    hl_density_outcome *o = NULL;
    draw(x, normal);
    x[DIM * 333] = 1e9;
    CHECK_OK(ctx, fit(ctx, x, NULL, NULL, &m, &o));
    const hl_finding *far = find(o, HL_FINDING_FAR, 0);
    CHECK(far && far->row == 333 && far->count == 1, "the value is named");
    CHECK(strcmp(hl_density_get_range(m, 0).form, "asinh") == 0 && strcmp(hl_density_get_range(m, 1).form, "none") == 0,
          "seen through asinh");
    double fresh = 0, one;
    for (size_t r = 0; r < DRAWS; r++) {
        const double row[] = { hl_random_normal(5, 0, r), hl_random_normal(5, 1, r) };
        CHECK_OK(ctx, hl_density_logp(m, 1, row, NULL, &one));
        fresh -= one / DRAWS;
    }
    CHECK_NEAR(fresh, 2 * NORMAL, 0.1, "fresh rows");
    CHECK_NEAR(o->best, 2 * NORMAL, 0.3, "validation, in the units of the data");
    const double out[] = { 1e9, 0, 1e300, 0 };
    CHECK_OK(ctx, hl_density_logp(m, 2, out, NULL, logp));
    CHECK(isfinite(logp[0]) && isfinite(logp[1]), "finite rows have finite log p");
    hl_density_free(m);
    hl_density_outcome_free(o);
    test_context_free(ctx, NULL);
}

static void test_bounds(void **state)
{
    (void)state;
    static double x[ROWS * DIM], drawn[DRAWS * DIM];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    hl_density_outcome *o = NULL;
    draw(x, exponential);
    CHECK_OK(ctx, fit(ctx, x, NULL, NULL, &m, &o)); /* not declared: told, and every row has a log p */
    const hl_finding *edge = find(o, HL_FINDING_EDGE, 0);
    CHECK(edge && edge->value == 0 && edge->low == 0 && isinf(edge->high), "an edge");
    CHECK(!find(o, HL_FINDING_EDGE, 1), "and none");
    const double out[] = { -1, 0, 0, 0 };
    double logp[2];
    CHECK_OK(ctx, hl_density_logp(m, 2, out, NULL, logp));
    CHECK(isfinite(logp[0]), "without a declaration");
    hl_density_free(m);
    hl_density_outcome_free(o);
    CHECK_OK(ctx, fit(ctx, x, "bounds", "x1=0:", &m, &o));
    CHECK(!find(o, HL_FINDING_EDGE, 0), "it is declared");
    CHECK_NEAR(o->best, 1 + log(2) + NORMAL, 0.2, "validation, in the units of the data");
    CHECK_OK(ctx, hl_density_logp(m, 2, out, NULL, logp));
    CHECK(logp[0] == -INFINITY && isfinite(logp[1]), "outside, and at the bound");
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, DRAWS, NULL, drawn));
    for (size_t r = 0; r < DRAWS; r++)
        CHECK(drawn[DIM * r] >= 0, "inside the bounds");
    hl_density_free(m);
    hl_density_outcome_free(o);
    static const char *const wrong[] = { "x3=0:", "x1", "x1=:", "x1=1:0", "x1=0:1", "x1=a:", "=0:", "x1=0:,x1=-1:" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_STATUS(ctx, fit(ctx, x, "bounds", wrong[i], &m, &o), HL_ERR_INVALID);
        CHECK(!m && strstr(hl_context_message(ctx), "bounds"), "refused");
        CHECK(!strstr(wrong[i], "1:0") || strstr(hl_context_message(ctx), "LOW must be less"), "and why");
        hl_density_outcome_free(o);
    }
    test_context_free(ctx, NULL);
}

/* Whole numbers: dequantised, and whole again in samples. */
static void test_whole_numbers(void **state)
{
    (void)state;
    static double x[ROWS * DIM], drawn[DRAWS * DIM];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    hl_density_outcome *o = NULL;
    draw(x, whole);
    CHECK_OK(ctx, fit(ctx, x, "bounds", "x1=0:", &m, &o));
    CHECK(find(o, HL_FINDING_INTEGER, 0) && hl_density_get_range(m, 0).step == 1, "found");
    CHECK(hl_density_get_range(m, 0).low == -0.5, "half a step beyond the bound");
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, DRAWS, NULL, drawn));
    double mean = 0, truth = 1 / (exp(0.5) - 1);
    for (size_t r = 0; r < DRAWS; r++) {
        CHECK(drawn[DIM * r] == floor(drawn[DIM * r]) && drawn[DIM * r] >= 0, "whole numbers in the bounds");
        mean += drawn[DIM * r] / DRAWS;
    }
    CHECK_NEAR(mean, truth, 0.35, "their mean");
    hl_density_free(m);
    hl_density_outcome_free(o);
    test_context_free(ctx, NULL);
}

/* Draws of few whole numbers stay in the range of the data, those of counts above 0, though log p is finite beyond; also from a file. */
static void test_draws_stay_in_range(void **state)
{
    (void)state;
    static double x[ROWS * DIM], drawn[DRAWS * DIM];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    hl_density_outcome *o = NULL;
    draw(x, whole);
    for (size_t r = 0; r < ROWS; r++) {
        x[DIM * r] = 1 + (double)(r * r % 5);
        x[DIM * r + 1] = floor(-30 * log(hl_random_uniform(3, 0, r)));
    }
    CHECK_OK(ctx, fit(ctx, x, NULL, NULL, &m, &o));
    hl_density_range range = hl_density_get_range(m, 0);
    CHECK(range.least == 1 && range.most == 5 && range.low == -INFINITY, "few values");
    range = hl_density_get_range(m, 1);
    CHECK(range.least == 0 && range.most == INFINITY, "counts");
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, DRAWS, NULL, drawn));
    for (size_t r = 0; r < DRAWS; r++)
        CHECK(drawn[DIM * r] >= 1 && drawn[DIM * r] <= 5 && drawn[DIM * r + 1] >= 0, "in the range");
    double beyond[DIM] = { 6, 3 }, logp;
    CHECK_OK(ctx, hl_density_logp(m, 1, beyond, NULL, &logp));
    CHECK(isfinite(logp), "a value that was not seen has a density");
    hl_density_free(m);
    hl_density_outcome_free(o);
    test_context_free(ctx, NULL);
}

/* Where values tie, no part of any member, and none of a map, is narrower than half the least difference of what it sees. */
static void test_ties(void **state)
{
    (void)state;
    static double x[ROWS * DIM], seen[ROWS], work[ROWS];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    hl_density_outcome *o = NULL;
    draw(x, quarters);
    CHECK_OK(ctx, fit(ctx, x, NULL, NULL, &m, &o));
    CHECK(hl_density_get_range(m, 0).step == 0.25, "the grid");
    for (size_t j = 0; m->map && j < m->map[0]->parts; j++)
        CHECK(m->map[0]->deviation[j] * m->map[0]->scale >= 0.125 - 1e-9, "a part of the map");
    for (size_t k = 0; k < m->mixtures; k++) {
        const hl_tmixture *t = m->mixture[k].mixture;
        for (size_t r = 0; r < ROWS; r++)
            seen[r] = m->mixture[k].mapped ? hl_column_map_forward(m->map[0], x[DIM * r], NULL)
                                           : (x[DIM * r] - m->column[0].mean) / m->column[0].deviation;
        double floor = hl_column_tie_width(ROWS, seen, 1, work);
        CHECK(floor > 0, "there are ties");
        /* Given the other column: 1 over the first entry of the inverse of L L'. */
        for (size_t j = 0; j < t->parts; j++) {
            const double *l = t->factor + j * DIM * DIM;
            double given = l[0] * l[3] / sqrt(l[2] * l[2] + l[3] * l[3]);
            CHECK(given >= floor * (1 - 1e-9), "a part, even given the other column");
        }
    }
    hl_density_free(m);
    hl_density_outcome_free(o);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_value),           cmocka_unit_test(test_bounds), cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_draws_stay_in_range), cmocka_unit_test(test_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
