/* test_fit_members.c - hl_density_fit with mixtures beside the flow: never worse than they are, the same bits when resumed, with a
 * context, without memory. */
#include "support.h"

#include "directory.h"
#include "learn/density_fit.h"

enum { ROWS = 2600, DIM = 2, TEST = 1000 };

static hl_settings *settings_of(hl_context *ctx, const char *const *more)
{
    static const char *const small[] = { "iters",    "40",       "batch",  "32",     "hidden", "8",         "width",
                                         "8",        "features", "4",      "layers", "1",      "ode-steps", "2",
                                         "patience", "100",      "recipe", "fast",   NULL };
    hl_settings *s = NULL;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    for (size_t i = 0; small[i]; i += 2)
        CHECK_OK(ctx, hl_settings_set(s, small[i], small[i + 1]));
    for (size_t i = 0; more && more[i]; i += 2)
        CHECK_OK(ctx, hl_settings_set(s, more[i], more[i + 1]));
    return s;
}

/* Three normal distributions far apart, narrow in different directions; the log-density of each row to `truth`. */
static void draw(size_t rows, uint64_t seed, double *x, double *truth)
{
    static const double mean[3][2] = { { -40, 3 }, { 0, 0 }, { 40, -3 } },
                        wide[3][2] = { { 5, 0.1 }, { 0.5, 2 }, { 5, 0.3 } };
    for (size_t r = 0; r < rows; r++) {
        size_t k = (size_t)(3 * hl_random_uniform(seed, 0, r));
        double sum = 0;
        for (size_t i = 0; i < 2; i++)
            x[2 * r + i] = mean[k][i] + wide[k][i] * hl_random_normal(seed, 1 + i, r);
        for (size_t j = 0; j < 3 && truth; j++) {
            double a = (x[2 * r] - mean[j][0]) / wide[j][0], b = (x[2 * r + 1] - mean[j][1]) / wide[j][1];
            sum += exp(-0.5 * (a * a + b * b)) / (3 * wide[j][0] * wide[j][1] * 2 * acos(-1));
        }
        if (truth)
            truth[r] = log(sum);
    }
}

static double mean_logp(hl_context *ctx, hl_density *model, const double *x, const double *c)
{
    double logp[TEST], mean = 0;
    CHECK_OK(ctx, hl_density_logp(model, TEST, x, c, logp));
    for (size_t r = 0; r < TEST; r++)
        mean += logp[r] / TEST;
    return mean;
}

/* A few iterations of a small flow learn nothing of this; the model is near the truth all the same. */
static void test_never_worse(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 2);
    static double x[ROWS * DIM], test[TEST * DIM], truth[TEST];
    static const char *const choices[] = { "all", "mixture", "flow" };
    double exact = 0, found[3];
    draw(ROWS, 1, x, NULL);
    draw(TEST, 2, test, truth);
    for (size_t r = 0; r < TEST; r++)
        exact += truth[r] / TEST;
    for (int k = 0; k < 3; k++) {
        hl_settings *s = settings_of(ctx, (const char *const[]){ "members", choices[k], NULL });
        hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
        hl_density *model = NULL;
        hl_density_outcome *o = NULL;
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
        found[k] = mean_logp(ctx, model, test, NULL);
        if (k < 2) {
            double total = 0;
            for (size_t i = 0; i < hl_density_members(model); i++)
                total += hl_density_get_member(model, i).weight;
            CHECK_NEAR(total, 1, 1e-12, "weights");
            CHECK_LE(o->best, o->mixture, "not worse than the mixtures on the rows that chose");
            CHECK_NEAR(-found[k], o->best, 0.2, "in the units of the data");
        } else {
            assert_int_equal(hl_density_members(model), 1);
            CHECK(isnan(o->mixture), "a flow alone");
        }
        if (k == 1)
            CHECK(!hl_density_flow(model), "mixtures alone");
        hl_density_outcome_free(o);
        hl_density_free(model);
        hl_settings_free(s);
    }
    CHECK_LE(exact - found[0], 0.05, "close to the truth");
    CHECK_LE(exact - found[1], 0.05, "close to the truth without a flow");
    CHECK_LE(found[2], exact - 0.3, "which the flow alone is not");
    test_context_free(ctx, NULL);
}

/* A column with heavy tails and one of positive values: the flow sees mapped columns. The report has a gain on rows of its own. */
static void test_mapped(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 2);
    static double x[ROWS * DIM], test[TEST * DIM];
    for (size_t r = 0; r < ROWS + TEST; r++) {
        double a = hl_random_normal(3, 0, r), b = 0.8 * a + 0.6 * hl_random_normal(3, 1, r);
        double *to = r < ROWS ? x + 2 * r : test + 2 * (r - ROWS);
        to[0] = exp(1.5 * a);
        to[1] = sinh(2 * b);
    }
    hl_settings *s = settings_of(ctx, (const char *const[]){ "iters", "60", NULL });
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    /* The truth: a correlated normal through known maps. */
    double exact = 0, found = mean_logp(ctx, model, test, NULL);
    for (size_t r = 0; r < TEST; r++) {
        double a = log(test[2 * r]) / 1.5, b = asinh(test[2 * r + 1]) / 2, e = (b - 0.8 * a) / 0.6;
        exact += (-0.5 * (a * a + e * e) - log(2 * acos(-1) * 0.6) - log(1.5 * test[2 * r]) -
                  log(2 * sqrt(1 + test[2 * r + 1] * test[2 * r + 1]))) /
                 TEST;
    }
    CHECK_LE(exact - found, 0.12, "close to the truth");
    bool mapped = false;
    for (size_t i = 0; i < hl_density_members(model); i++)
        mapped = mapped || hl_density_get_member(model, i).mapped;
    CHECK(mapped, "a member sees mapped columns");
    if (hl_density_flow(model)) {
        assert_int_equal(o->gain_rows, ROWS / 10 / 5);
        CHECK(o->gain_error >= 0 && isfinite(o->gain), "what the flow gained");
    }
    hl_density_outcome_free(o);
    hl_density_free(model);
    hl_settings_free(s);
    test_context_free(ctx, NULL);
}

static int stop_at_9(const void *report, void *user)
{
    (void)user;
    return ((const hl_density_progress *)report)->iteration >= 9;
}

/* Few rows, so that mixtures are chosen by cross-validation; a context; one thread and two; stopped and resumed: the same bits. */
static void test_same_bits(void **state)
{
    (void)state;
    enum { FEW = 200 };
    static double x[FEW * DIM], c[FEW], logp[3][FEW];
    for (size_t r = 0; r < FEW; r++) {
        c[r] = hl_random_normal(4, 0, r);
        x[2 * r] = c[r] + 0.1 * hl_random_normal(4, 1, r);
        x[2 * r + 1] = c[r] * c[r] + 0.2 * hl_random_normal(4, 2, r);
    }
    for (int k = 0; k < 3; k++) {
        hl_context *ctx = test_context(NULL, 1 + k % 2);
        hl_settings *s = settings_of(ctx, NULL);
        hl_density_data data = { .dim = DIM, .context = 1, .train = { .rows = FEW, .x = x, .context = c } };
        hl_density *model = NULL;
        hl_job job = { .checkpoint = "fit.ckpt", .progress = stop_at_9 };
        if (k == 2) {
            CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &model, NULL), HL_STOPPED);
            CHECK(model, "a stopped fit has a model");
            hl_density_free(model);
            job.resume = 1;
            job.progress = NULL;
        }
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, k == 2 ? &job : NULL, &model, NULL));
        CHECK_OK(ctx, hl_density_logp(model, FEW, x, c, logp[k]));
        hl_density_free(model);
        hl_settings_free(s);
        test_context_free(ctx, NULL);
    }
    CHECK(memcmp(logp[0], logp[1], sizeof *logp) == 0, "one thread and two");
    CHECK(memcmp(logp[0], logp[2], sizeof *logp) == 0, "stopped and resumed");
}

/* So few rows that nothing can judge a flow; a few validation rows beside many; none: mixtures alone, not far from the truth. */
static void test_few_rows(void **state)
{
    (void)state;
    static const size_t rows[] = { 10, 12, 20, 40, 2500, 30 }, valid[] = { 0, 0, 0, 0, 1, 0 };
    static double x[2500 * DIM], test[TEST * DIM];
    hl_context *ctx = test_context(NULL, 1);
    fill_normal_f64(x, 2500 * DIM, 8);
    fill_normal_f64(test, TEST * DIM, 9);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bool none = k == 5;
        hl_settings *s = settings_of(
            ctx, none ? (const char *const[]){ "members", "mixture", "validation-share", "0", NULL } : NULL);
        hl_density_data data = { .dim = DIM,
                                 .train = { .rows = rows[k], .x = x },
                                 .valid = { .rows = valid[k], .x = test } };
        hl_density *model = NULL;
        hl_density_outcome *o = NULL;
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
        CHECK(!hl_density_flow(model), "no flow");
        assert_int_equal(o->iteration, 0);
        assert_int_equal(o->valid_rows, none ? 0 : valid[k] ? valid[k] : rows[k] / 10);
        bool judged = o->valid_rows >= 5; /* fewer rows do not tell a normal distribution from a better one */
        CHECK(o->verdict == HL_DENSITY_NORMAL ||
                  (o->verdict == HL_DENSITY_GOOD && (!judged || !(o->best > o->normal))) ||
                  (o->verdict == HL_DENSITY_NORMAL_BETTER && o->best > o->normal),
              "a verdict");
        CHECK(isfinite(o->best) && o->parameters >= 5 && o->parameters < 100, "of the model, not of a flow");
        CHECK_LE(-mean_logp(ctx, model, test, NULL), 2.92 + 20 / (double)rows[k], "near the entropy");
        hl_density_outcome_free(o);
        hl_density_free(model);
        hl_settings_free(s);
    }
    test_context_free(ctx, NULL);
}

/* Columns without any relation, of which a mixture can find none: normal columns are the model. */
static void test_normal(void **state)
{
    (void)state;
    enum { WIDE = 20, FEW = 14 };
    static double x[FEW * WIDE];
    hl_context *ctx = test_context(NULL, 1);
    fill_normal_f64(x, FEW * WIDE, 10);
    hl_settings *s = settings_of(ctx, NULL);
    hl_density_data data = { .dim = WIDE, .train = { .rows = FEW, .x = x } };
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    assert_int_equal(o->verdict, HL_DENSITY_NORMAL);
    assert_int_equal(hl_density_members(model), 1);
    CHECK_NEAR(o->best, o->normal, 1e-9, "the model is the normal distribution");
    hl_density_outcome_free(o);
    hl_density_free(model);
    hl_settings_free(s);
    test_context_free(ctx, NULL);
}

/* Weights of rows: mixtures see a row of weight 3 as three, choose by such rows, and have nothing to do with rows of weight 0. */
static void test_weights(void **state)
{
    (void)state;
    enum { COUNT = 600 };
    static double x[COUNT * DIM], w[COUNT];
    double logp[3], points[3 * DIM] = { 10, 10, -10, -10, 40, 40 };
    hl_context *ctx = test_context(NULL, 1);
    for (size_t r = 0; r < COUNT; r++) { /* clouds at 10, -10 and 40 */
        w[r] = r % 3 == 0 ? 4.5 : r % 3 == 1 ? 1.5 : 0;
        for (size_t i = 0; i < DIM; i++)
            x[r * DIM + i] = points[r % 3 * DIM] + hl_random_normal(9, i, r);
    }
    hl_settings *s = settings_of(ctx, (const char *const[]){ "members", "mixture", NULL });
    hl_density_data data = { .dim = DIM, .train = { .rows = COUNT, .x = x, .weights = w } };
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    CHECK_OK(ctx, hl_density_logp(model, 3, points, NULL, logp));
    double peak = -log(2 * acos(-1));
    CHECK_NEAR(logp[0], log(0.75) + peak, 0.25, "three quarters");
    CHECK_NEAR(logp[1], log(0.25) + peak, 0.35, "one quarter");
    CHECK_LE(logp[2], -12, "nothing");
    CHECK_NEAR(o->best, 1 - peak - 0.75 * log(0.75) - 0.25 * log(0.25), 0.25, "validation by the weights");
    hl_density_outcome_free(o);
    hl_density_free(model);
    for (size_t r = 0; r < COUNT; r++)
        w[r] = r < 3 ? 1 : 1e-9;
    CHECK_OK(ctx, hl_settings_set(s, "validation-share", "0"));
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL), HL_ERR_INVALID);
    CHECK(!model && strstr(hl_context_message(ctx), "weight"), "refused");
    hl_settings_free(s);
    test_context_free(ctx, NULL);
}

/* Trials: columns with a long tail are mapped, with the same scores for any number of threads; and a flow that they show to be far
 * behind the mixtures is not trained. */
static void test_trials(void **state)
{
    (void)state;
    enum { MANY = 2100, JUDGES = 300 };
    static double x[(MANY + JUDGES) * DIM];
    hl_fit_variant found[2];
    for (size_t r = 0; r < MANY + JUDGES; r++) {
        double z = hl_random_normal(21, 0, r);
        x[DIM * r] = exp(2 * z);
        x[DIM * r + 1] = exp(2 * (0.5 * z * z + 0.5 * hl_random_normal(21, 1, r)));
    }
    hl_density_data data = { .dim = DIM,
                             .train = { .rows = MANY, .x = x },
                             .valid = { .rows = JUDGES, .x = x + MANY * DIM } };
    for (int threads = 1; threads <= 2; threads++) {
        hl_context *ctx = test_context(NULL, threads);
        hl_fit_table table = { .ctx = ctx };
        hl_fit_members members = { 0 };
        hl_settings *s = settings_of(ctx, (const char *const[]){ "iters", "500", "recipe", "fast", NULL });
        CHECK_OK(ctx, hl_fit_table_load(&table, &data, s));
        CHECK_OK(ctx, hl_fit_members_fit(&table, s, &members));
        CHECK_OK(ctx, hl_fit_try(&members, &table, s, &found[threads - 1]));
        hl_fit_members_free(&members);
        hl_fit_table_free(&table);
        hl_settings_free(s);
        test_context_free(ctx, NULL);
    }
    CHECK(found[0].mapped && !found[0].by_rule && !found[0].hopeless && isfinite(found[0].score), "mapped");
    CHECK(memcmp(&found[0].score, &found[1].score, sizeof found->score) == 0, "the same bits");
    hl_context *ctx = test_context(NULL, 1);
    hl_settings *s = settings_of(ctx, (const char *const[]){ "iters", "500", "recipe", "fast", NULL });
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    for (size_t r = 0; r < MANY + JUDGES; r++) { /* narrow spots, one in each row and each column of a board */
        size_t spot = hl_random_bits(22, 0, r) % 16;
        x[DIM * r] = (double)spot + 1e-3 * hl_random_normal(22, 1, r);
        x[DIM * r + 1] = (double)(spot * 7 % 16) + 1e-3 * hl_random_normal(22, 2, r);
    }
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    CHECK(o->end == HL_DENSITY_END_BEHIND && o->iteration == 0, "not trained");
    CHECK(o->flow > o->mixture + 1 && o->best == o->mixture, "far behind");
    CHECK(!hl_density_flow(model), "no flow");
    hl_density_outcome_free(o);
    hl_density_free(model);
    hl_settings_free(s);
    test_context_free(ctx, NULL);
}

static int stop_mixing(const void *report, void *user)
{
    (void)user;
    return ((const hl_density_progress *)report)->phase == HL_FIT_MIXING;
}

static int stop_at_count(void *user)
{
    return --*(int *)user <= 0;
}

/* Stopped while mixtures are fitted: at once, without a model or a file. */
static void test_stop(void **state)
{
    (void)state;
    static double x[ROWS * DIM];
    int left = 20;
    hl_context *ctx = NULL;
    hl_context_options options = { .threads = 1, .stop = stop_at_count, .user = &left };
    CHECK(hl_context_create(&options, &ctx) == HL_OK, "a context");
    draw(ROWS, 1, x, NULL);
    hl_settings *s = settings_of(ctx, (const char *const[]){ "members", "mixture", NULL });
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    hl_job job = { .checkpoint = "stopped.ckpt" };
    hl_density *model = NULL;
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &model, NULL), HL_STOPPED);
    CHECK(!model, "no model");
    CHECK(left > -5, "soon");
    left = 1 << 30;
    job.progress = stop_mixing;
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &model, NULL), HL_STOPPED);
    CHECK(!model && left > (1 << 30) - 5, "by the job, too");
    FILE *file = fopen("stopped.ckpt", "rb");
    CHECK(!file, "no checkpoint");
    hl_settings_free(s);
    hl_context_free(ctx);
}

static int stop_after_all(const void *report, void *user)
{
    const hl_density_progress *p = report;
    *(int *)user = p->iterations && p->iteration == p->iterations;
    return 0;
}

static int is_set(void *user)
{
    return *(int *)user;
}

/* Stopped when training is over and the members are weighed: HL_STOPPED, with a model, and resuming gives that of a whole run. */
static void test_stop_weighing(void **state)
{
    (void)state;
    enum { FEW = 300 };
    static double x[FEW * DIM], logp[2][FEW];
    int stopped = 0;
    hl_context *ctx = NULL;
    hl_context_options options = { .threads = 1, .stop = is_set, .user = &stopped };
    CHECK(hl_context_create(&options, &ctx) == HL_OK, "a context");
    draw(FEW, 1, x, NULL);
    hl_settings *s = settings_of(ctx, (const char *const[]){ "iters", "10", NULL });
    hl_density_data data = { .dim = DIM, .train = { .rows = FEW, .x = x } };
    hl_job job = { .checkpoint = "weighed.ckpt", .progress = stop_after_all, .user = &stopped };
    hl_density *model = NULL;
    hl_density_outcome *outcome = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL));
    CHECK_OK(ctx, hl_density_logp(model, FEW, x, NULL, logp[0]));
    hl_density_free(model);
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &model, &outcome), HL_STOPPED);
    stopped = 0;
    CHECK(model && outcome->end == HL_DENSITY_END_STOPPED && isfinite(outcome->best), "the best so far");
    CHECK_OK(ctx, hl_density_logp(model, FEW, x, NULL, logp[1]));
    hl_density_free(model);
    hl_density_outcome_free(outcome);
    job.resume = 1;
    job.progress = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, &job, &model, NULL));
    CHECK_OK(ctx, hl_density_logp(model, FEW, x, NULL, logp[1]));
    CHECK(memcmp(logp[0], logp[1], sizeof *logp) == 0, "resumed");
    hl_density_free(model);
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* Memory that runs out here and there. There are too many allocations to make each of them fail. */
static void test_memory(void **state)
{
    (void)state;
    static double x[60 * 2];
    fill_normal_f64(x, 120, 5);
    bool through = false;
    for (long n = 3; !through; n = n * 3 / 2) {
        test_allocator allocator = { .fail_at = n };
        hl_context_options options = test_options(&allocator, 1);
        hl_context *ctx = NULL;
        if (hl_context_create(&options, &ctx) != HL_OK)
            continue;
        hl_settings *s = NULL;
        hl_density *model = NULL;
        hl_density_data data = { .dim = 2, .train = { .rows = 60, .x = x } };
        hl_status status = hl_settings_create(ctx, hl_density_fit_options(), &s);
        static const char *const set[] = { "iters", "2", "batch",  "8", "hidden", "4",
                                           "width", "4", "layers", "1", "recipe", "fast" };
        for (size_t i = 0; i < sizeof set / sizeof *set && status == HL_OK; i += 2)
            status = hl_settings_set(s, set[i], set[i + 1]);
        if (status == HL_OK)
            status = hl_density_fit(ctx, &data, s, NULL, &model, NULL);
        through = !allocator.failed;
        if (status != (through ? HL_OK : HL_ERR_NOMEM) || (model != NULL) != through)
            fail_msg("allocation %ld fails: \"%s\", \"%s\"", n, hl_status_text(status), hl_context_message(ctx));
        hl_density_free(model);
        hl_settings_free(s);
        test_context_free(ctx, &allocator);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_never_worse),
        cmocka_unit_test(test_mapped),
        cmocka_unit_test_teardown(test_same_bits, empty_directory),
        cmocka_unit_test(test_few_rows),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_trials),
        cmocka_unit_test(test_stop),
        cmocka_unit_test_teardown(test_stop_weighing, empty_directory),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
