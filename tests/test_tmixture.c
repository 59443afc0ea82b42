/* test_tmixture.c - mixtures of t distributions: densities, conditional densities, samples, EM. */
#include "support.h"

#include "learn/tmixture.h"

enum { PARTS = 3, DIM = 3 };
static const double pi = 3.14159265358979323846;

static hl_tmixture *make_mixture(hl_context *ctx, size_t dim, size_t given, double nu)
{
    hl_tmixture *m = NULL;
    static const double w[PARTS] = { 0.5, 0.3, 0.2 };
    CHECK_OK(ctx, hl_tmixture_create(ctx, dim, given, PARTS, nu, &m));
    memcpy(m->weight, w, sizeof w);
    fill_normal_f64(m->mean, PARTS * dim, 5);
    for (size_t j = 0; j < PARTS; j++)
        for (size_t i = 0; i < dim; i++)
            for (size_t k = 0; k <= i; k++)
                m->factor[(j * dim + i) * dim + k] =
                    (i == k ? 0.5 : 0) + 0.4 * fabs(hl_random_normal(6, j, i * dim + k)) * (i == k ? 1 : -1);
    CHECK_OK(ctx, hl_tmixture_prepare(m));
    return m;
}

/* The formula, with the solve of L z = x - m written out, of the first d columns. */
static double brute(const hl_tmixture *m, size_t d, const double *x)
{
    double sum = 0, z[8];
    for (size_t j = 0; j < m->parts; j++) {
        double q = 0, volume = 0, n = (double)d, nu = m->nu;
        for (size_t i = 0; i < d; i++) {
            const double *l = m->factor + (j * m->dim + i) * m->dim;
            z[i] = x[i] - m->mean[j * m->dim + i];
            for (size_t k = 0; k < i; k++)
                z[i] -= l[k] * z[k];
            z[i] /= l[i];
            q += z[i] * z[i];
            volume += log(l[i]);
        }
        double log_p = isinf(nu) ? -0.5 * q - 0.5 * n * log(2 * pi)
                                 : lgamma((nu + n) / 2) - lgamma(nu / 2) - 0.5 * n * log(nu * pi) -
                                       0.5 * (nu + n) * log(1 + q / nu);
        sum += m->weight[j] * exp(log_p - volume);
    }
    return log(sum);
}

static void test_density(void **state)
{
    (void)state;
    enum { ROWS = 300 };
    const double nus[] = { INFINITY, 3, 8 };
    for (int c = 0; c < 6; c++) {
        hl_context *ctx = test_context(NULL, 1 + c % 2);
        size_t given = c < 3 ? 0 : 2;
        hl_tmixture *m = make_mixture(ctx, DIM, given, nus[c % 3]);
        double x[ROWS * DIM], logp[ROWS], alone;
        fill_normal_f64(x, ROWS * DIM, 7);
        x[5 * DIM + 1] = INFINITY;
        CHECK_OK(ctx, hl_tmixture_logp(m, ROWS, x, logp));
        for (size_t r = 0; r < ROWS; r++) {
            double expected = brute(m, DIM, x + r * DIM) - (given ? brute(m, given, x + r * DIM) : 0);
            if (r == 5)
                CHECK(isnan(logp[r]), "a row that is not finite");
            else
                CHECK_NEAR(logp[r], expected, 1e-11, "log p against the formula");
            CHECK_OK(ctx, hl_tmixture_logp(m, 1, x + r * DIM, &alone));
            CHECK(memcmp(&alone, &logp[r], sizeof alone) == 0 || r == 5, "a row alone has the same bits");
        }
        hl_tmixture_free(m);
        test_context_free(ctx, NULL);
    }
}

/* Over a grid of two columns, and over one column given the other; heavy tails are integrated after x = sinh u. */
static void test_integral(void **state)
{
    (void)state;
    enum { GRID = 400 };
    const double nus[] = { INFINITY, 4 };
    hl_context *ctx = test_context(NULL, 2);
    double *x = calloc(GRID * GRID * 2, sizeof *x), *logp = calloc(GRID * GRID, sizeof *logp);
    for (int c = 0; c < 4; c++) {
        size_t given = (size_t)c / 2, rows = given ? GRID : GRID * GRID;
        hl_tmixture *m = make_mixture(ctx, 2, given, nus[c % 2]);
        double sum = 0, h = 16.0 / GRID;
        for (size_t r = 0; r < rows; r++) {
            x[2 * r] = given ? 0.7 : sinh(h * ((double)(r / GRID) + 0.5) - 8);
            x[2 * r + 1] = sinh(h * ((double)(r % GRID) + 0.5) - 8);
        }
        CHECK_OK(ctx, hl_tmixture_logp(m, rows, x, logp));
        for (size_t r = 0; r < rows; r++)
            sum += exp(logp[r]) * h * sqrt(1 + x[2 * r + 1] * x[2 * r + 1]) *
                   (given ? 1 : h * sqrt(1 + x[2 * r] * x[2 * r]));
        CHECK_NEAR(sum, 1, 1e-4, "the integral of the density");
        hl_tmixture_free(m);
    }
    free(x);
    free(logp);
    test_context_free(ctx, NULL);
}

/* The mean of log p over samples is the integral of p log p, with and without a context. */
static void test_samples(void **state)
{
    (void)state;
    enum { ROWS = 20000, GRID = 4000 };
    const double nus[] = { INFINITY, 5, 1 };
    hl_context *ctx = test_context(NULL, 2);
    double *x = calloc(ROWS * 2, sizeof *x), *logp = calloc(ROWS, sizeof *logp);
    for (int c = 0; c < 3; c++) {
        hl_tmixture *m = make_mixture(ctx, 2, 1, nus[c]);
        double entropy = 0, mean = 0, square = 0, below = 0, expected = 0, h = 60.0 / GRID;
        for (size_t r = 0; r < GRID; r++) {
            x[2 * r] = -0.4;
            x[2 * r + 1] = sinh(h * ((double)r + 0.5) - 30);
        }
        CHECK_OK(ctx, hl_tmixture_logp(m, GRID, x, logp));
        for (size_t r = 0; r < GRID; r++) {
            double weight = exp(logp[r]) * h * sqrt(1 + x[2 * r + 1] * x[2 * r + 1]);
            entropy += weight * logp[r];
            expected += x[2 * r + 1] < 0.5 ? weight : 0;
        }
        for (size_t r = 0; r < ROWS; r++) {
            x[2 * r] = -0.4;
            hl_tmixture_sample(m, 3, r, x + 2 * r);
            below += (x[2 * r + 1] < 0.5) / (double)ROWS;
        }
        CHECK_OK(ctx, hl_tmixture_logp(m, ROWS, x, logp));
        for (size_t r = 0; r < ROWS; r++) {
            mean += logp[r] / ROWS;
            square += logp[r] * logp[r] / ROWS;
        }
        CHECK_NEAR(mean, entropy, 4 * sqrt((square - mean * mean) / ROWS), "the mean of log p of samples");
        CHECK_NEAR(below, expected, 4 * 0.5 / sqrt(ROWS) + h, "the share of samples below 0.5");
        hl_tmixture_free(m);
    }
    free(x);
    free(logp);
    test_context_free(ctx, NULL);
}

/* ---- EM ---- */

enum { FIT_ROWS = 1500 };

static void make_rows(const hl_tmixture *m, uint64_t seed, size_t rows, double *x)
{
    for (size_t r = 0; r < rows; r++)
        hl_tmixture_sample(m, seed, r, x + r * m->dim);
}

/* Steps of EM do not lower the likelihood, without priors to speak of. */
static void test_em_increases(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double *x = calloc(FIT_ROWS * DIM, sizeof *x);
    const double nus[] = { INFINITY, 4 };
    for (int c = 0; c < 2; c++) {
        hl_tmixture *truth = make_mixture(ctx, DIM, 0, nus[c]);
        make_rows(truth, 1, FIT_ROWS, x);
        double last = -INFINITY;
        for (size_t steps = 1; steps < 12; steps++) {
            hl_tmixture *m = NULL;
            double score = 0;
            const hl_tmixture_plan plan = { .parts = 4, .nu = nus[c], .prior = 1e-9, .steps = steps };
            const hl_tmixture_fold data = { .rows = FIT_ROWS, .x = x };
            CHECK_OK(ctx, hl_tmixture_fit(ctx, DIM, 0, &data, &plan, &m, NULL, &score));
            CHECK(score >= last - 1e-6, "a step of EM");
            last = score;
            hl_tmixture_free(m);
        }
        hl_tmixture_free(truth);
    }
    free(x);
    test_context_free(ctx, NULL);
}

enum { FAR_PARTS = 12 };

/* One step from a mixture by the formulas, over all rows and parts, without prior and floor. Normal parts of two columns. */
static void naive_step(const hl_tmixture *m, size_t rows, const double *x, double *weight, double *mean)
{
    memset(weight, 0, m->parts * sizeof *weight);
    memset(mean, 0, m->parts * 2 * sizeof *mean);
    for (size_t r = 0; r < rows; r++) {
        double density[FAR_PARTS], total = 0;
        for (size_t j = 0; j < m->parts; j++) {
            const double *l = m->factor + 4 * j;
            double a = (x[2 * r] - m->mean[2 * j]) / l[0], b = (x[2 * r + 1] - m->mean[2 * j + 1] - l[2] * a) / l[3];
            total += density[j] = m->weight[j] * exp(-0.5 * (a * a + b * b)) / (l[0] * l[3]);
        }
        for (size_t j = 0; j < m->parts; j++) {
            double share = density[j] / total;
            weight[j] += share / (double)rows;
            mean[2 * j] += share * x[2 * r];
            mean[2 * j + 1] += share * x[2 * r + 1];
        }
    }
    for (size_t i = 0; i < 2 * m->parts; i++)
        mean[i] /= weight[i / 2] * (double)rows;
}

/* Parts that are far from most rows are left out of them, and the result is that of the whole sums; five steps, the first and the fifth
 * of which see all parts, do what five naive ones do. */
static void test_far_parts(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 2);
    double *x = calloc(FIT_ROWS * 2, sizeof *x), weight[FAR_PARTS], mean[2 * FAR_PARTS];
    for (size_t r = 0; r < FIT_ROWS; r++) { /* spots on a line, two of which overlap */
        double centre = r % 10 == 9 ? 8.7 : (double)(r % 10);
        x[2 * r] = 10 * centre + hl_random_normal(5, 0, r);
        x[2 * r + 1] = hl_random_normal(5, 1, r);
    }
    hl_tmixture *m = NULL, *one = NULL;
    const hl_tmixture_plan plan = { .parts = FAR_PARTS, .nu = INFINITY, .prior = 1e-12, .steps = 2 };
    const hl_tmixture_fold data = { .rows = FIT_ROWS, .x = x };
    CHECK_OK(ctx, hl_tmixture_fit(ctx, 2, 0, &data, &plan, &m, NULL, NULL));
    for (size_t steps = 0; steps < 5; steps++) {
        naive_step(m, FIT_ROWS, x, weight, mean);
        CHECK_OK(ctx, hl_tmixture_refine(m, FIT_ROWS, x, &plan, 1));
        for (size_t j = 0; j < FAR_PARTS; j++) {
            CHECK_NEAR(m->weight[j], weight[j], 2e-5, "weight");
            CHECK_NEAR(m->mean[2 * j], mean[2 * j], 1e-3, "mean");
            CHECK_NEAR(m->mean[2 * j + 1], mean[2 * j + 1], 1e-3, "mean");
        }
    }
    CHECK_OK(ctx, hl_tmixture_fit(ctx, 2, 0, &data, &plan, &one, NULL, NULL));
    CHECK_OK(ctx, hl_tmixture_refine(one, FIT_ROWS, x, &plan, 5)); /* of which three leave parts out */
    for (size_t j = 0; j < FAR_PARTS; j++) {
        CHECK_NEAR(one->weight[j], m->weight[j], 2e-5, "weight");
        CHECK_NEAR(one->mean[2 * j], m->mean[2 * j], 1e-3, "mean");
    }
    hl_tmixture_free(m);
    hl_tmixture_free(one);
    free(x);
    test_context_free(ctx, NULL);
}

/* The choice finds a density near the true one, with the same bits for any number of threads. */
static void test_choice(void **state)
{
    (void)state;
    double score[2], *x = calloc(2 * FIT_ROWS * DIM, sizeof *x), *logp[2];
    for (int c = 0; c < 2; c++) {
        hl_context *ctx = test_context(NULL, 1 + 2 * c);
        hl_tmixture *truth = make_mixture(ctx, DIM, 1, 5), *m = NULL;
        double exact = 0;
        make_rows(truth, 2, 2 * FIT_ROWS, x);
        for (size_t r = 0; r < 2 * FIT_ROWS; r++) /* the context is not of the mixture: uniform */
            x[r * DIM] = hl_random_uniform(3, 0, r) - 0.5;
        for (size_t r = 0; r < 2 * FIT_ROWS; r++)
            hl_tmixture_sample(truth, 2, r, x + r * DIM);
        logp[c] = calloc(FIT_ROWS, sizeof **logp);
        hl_tmixture_fold fold = { FIT_ROWS, FIT_ROWS, x, x + FIT_ROWS * DIM };
        hl_tmixture_plan plan = { .seed = 7 };
        CHECK_OK(ctx, hl_tmixture_choose(ctx, DIM, 1, 1, &fold, 16, &plan, &score[c]));
        CHECK_OK(ctx, hl_tmixture_fit(ctx, DIM, 1, &fold, &plan, &m, NULL, &score[c]));
        CHECK_OK(ctx, hl_tmixture_logp(truth, FIT_ROWS, fold.held, logp[c]));
        for (size_t r = 0; r < FIT_ROWS; r++)
            exact += logp[c][r] / FIT_ROWS;
        CHECK_LE(exact - score[c], 0.06, "close to the true density");
        CHECK_OK(ctx, hl_tmixture_logp(m, FIT_ROWS, fold.held, logp[c]));
        hl_tmixture_free(m);
        hl_tmixture_free(truth);
        test_context_free(ctx, NULL);
    }
    CHECK(memcmp(logp[0], logp[1], FIT_ROWS * sizeof **logp) == 0, "the same bits for one thread and three");
    free(logp[0]);
    free(logp[1]);
    free(x);
}

/* Repeated values and more parts than places: every part is as wide as the floor, and nothing fails. */
static void test_floor(void **state)
{
    (void)state;
    enum { ROWS = 200 };
    hl_context *ctx = test_context(NULL, 1);
    double x[ROWS * 2];
    const double floor_width[] = { 0.5, 1e-3 };
    for (size_t r = 0; r < ROWS; r++) {
        x[2 * r] = (double)(r % 3);
        x[2 * r + 1] = x[2 * r]; /* on a line */
    }
    const hl_tmixture_plan plan = { .parts = 8, .nu = INFINITY, .prior = 1, .floor = floor_width, .steps = 30 };
    const hl_tmixture_fold data = { .rows = ROWS, .x = x };
    hl_tmixture *m = NULL;
    CHECK_OK(ctx, hl_tmixture_fit(ctx, 2, 0, &data, &plan, &m, NULL, NULL));
    for (size_t j = 0; j < m->parts; j++)
        CHECK(m->factor[j * 4] >= 0.5 && m->factor[j * 4 + 3] >= 1e-3, "the floor");
    m->weight[0] += 0.1;
    CHECK_STATUS(ctx, hl_tmixture_prepare(m), HL_ERR_INVALID);
    hl_tmixture_free(m);
    test_context_free(ctx, NULL);
}

/* Clusters of independent columns are fitted by parts of independent columns, which cost fewer rows. */
static void independent_columns_are_noticed(void **state)
{
    (void)state;
    enum { COLUMNS = 6, CLUSTERS = 8, EACH = 300 };
    hl_context *ctx = test_context(NULL, 1);
    double *x = calloc(2 * EACH * COLUMNS, sizeof *x);
    for (size_t r = 0; r < 2 * EACH; r++)
        for (size_t i = 0; i < COLUMNS; i++) {
            size_t at = (r % CLUSTERS) * COLUMNS + i;
            x[r * COLUMNS + i] = 4 * hl_random_normal(1, 0, at) +
                                 exp(hl_random_normal(1, 1, at) - 1) * hl_random_normal(1, 2, r * COLUMNS + i);
        }
    hl_tmixture_fold fold = { EACH, EACH, x, x + EACH * COLUMNS };
    hl_tmixture_plan plan = { .seed = 7 };
    CHECK_OK(ctx, hl_tmixture_choose(ctx, COLUMNS, 0, 1, &fold, 32, &plan, NULL));
    CHECK(plan.prior > 1e6, "a prior that leaves no correlations");
    free(x);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    double *x = user, logp[20];
    hl_tmixture_fold fold = { 40, 20, x, x + 80 };
    hl_tmixture_plan plan = { .seed = 1 };
    hl_tmixture *m = NULL;
    hl_status status = hl_tmixture_choose(ctx, 2, 0, 1, &fold, 2, &plan, NULL);
    if (status == HL_OK)
        status = hl_tmixture_fit(ctx, 2, 0, &fold, &plan, &m, NULL, NULL);
    if (status == HL_OK)
        status = hl_tmixture_logp(m, 20, x, logp);
    hl_tmixture_free(m);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    double x[120];
    fill_normal_f64(x, 120, 4);
    check_every_allocation(1, scenario, x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_density),     cmocka_unit_test(test_integral),
        cmocka_unit_test(test_samples),     cmocka_unit_test(test_em_increases),
        cmocka_unit_test(test_far_parts),   cmocka_unit_test(test_choice),
        cmocka_unit_test(test_floor),       cmocka_unit_test(independent_columns_are_noticed),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
