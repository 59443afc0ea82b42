/* test_report.c - reports: bands that hold if the model is right, verdicts that say what is wrong, texts that are safe. */
#include "support.h"

#include "directory.h"

#include "report/compare.h"
#include "report/report.h"

enum { DIM = 3, ROWS = 600 };

/* Two normal parts in three columns, `share` of the rows in the first; `correlation` of the first two columns in both. */
static hl_density *make_model(hl_context *ctx, double share, double correlation, const char *name)
{
    const hl_density_column columns[DIM] = { { name, 1, 2 }, { "b", -3, 0.5 }, { "c", 100, 30 } };
    hl_density *m = NULL;
    hl_tmixture *x = NULL;
    if (hl_density_create_columns(ctx, DIM, 0, columns, &m) != HL_OK)
        return NULL;
    if (hl_tmixture_create(ctx, DIM, 0, 2, INFINITY, &x) != HL_OK) {
        hl_density_free(m);
        return NULL;
    }
    x->weight[0] = share;
    x->weight[1] = 1 - share;
    for (size_t j = 0; j < 2; j++)
        for (size_t i = 0; i < DIM; i++) {
            x->mean[j * DIM + i] = j ? 1.2 : -1.2;
            x->factor[(j * DIM + i) * DIM + i] = 0.4;
        }
    for (size_t j = 0; j < 2; j++) {
        x->factor[(j * DIM + 1) * DIM] = 0.4 * correlation;
        x->factor[(j * DIM + 1) * DIM + 1] = 0.4 * sqrt(1 - correlation * correlation);
    }
    if (hl_tmixture_prepare(x) != HL_OK || hl_density_add_mixture(m, x, false, 1) != HL_OK) {
        hl_density_free(m);
        return NULL;
    }
    return m;
}

static hl_context *make_context(int threads)
{
    hl_context *ctx = NULL;
    assert_int_equal(hl_context_create(&(hl_context_options){ .threads = threads }, &ctx), HL_OK);
    return ctx;
}

/* A report of `model` on rows of `truth`. */
static hl_report *make_report(hl_context *ctx, hl_density *truth, hl_density *model, size_t rows, size_t draws,
                              uint64_t seed)
{
    double *x = calloc(rows * DIM, sizeof *x);
    hl_report *report = NULL;
    CHECK_OK(ctx, hl_density_sample(truth, 1000 + seed, 0, rows, NULL, x));
    CHECK_OK(ctx, hl_report_density(model, &(hl_report_rows){ .rows = rows, .x = x },
                                    &(hl_report_options){ .seed = seed, .draws = draws }, &report));
    free(x);
    return report;
}

/* Bands and p-values of a model that is right: they hold in about 95 % of 200 seeds. */
static void test_right(void **state)
{
    (void)state;
    enum { SEEDS = 200, SMALL = 150 };
    hl_context *ctx = make_context(1);
    hl_density *m = make_model(ctx, 0.6, 0.5, "a");
    int rank = 0, column[DIM] = { 0 }, energy = 0, good = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hl_report *r = make_report(ctx, m, m, SMALL, SMALL, seed);
        const hl_density_report *d = hl_report_density_numbers(r);
        rank += d->rank_distance <= d->band;
        for (size_t i = 0; i < DIM; i++)
            column[d->column[i].column] += d->column[i].distance <= d->band;
        energy += d->distance.p > 0.05;
        good += hl_report_get_level(r) == HL_REPORT_GOOD;
        hl_report_free(r);
    }
    print_message("of %d seeds: ranks %d, columns %d %d %d, energy %d, good %d\n", SEEDS, rank, column[0], column[1],
                  column[2], energy, good);
    for (int k = 0; k < 5; k++) { /* 190, and three standard errors */
        int held = k == 0 ? rank : k == 1 ? energy : column[k - 2];
        CHECK(held >= 180 && held <= 199, "bands of 95 %");
    }
    CHECK(good >= 185, "verdicts");
    hl_density_free(m);
    hl_context_free(ctx);
}

static void check_verdict(hl_context *ctx, hl_density *truth, hl_density *model, const char *text)
{
    hl_report *r = make_report(ctx, truth, model, ROWS, 2000, 3);
    if (!strstr(hl_report_verdict(r), text))
        fail_msg("no '%s' in '%s'", text, hl_report_verdict(r));
    assert_int_equal(hl_report_get_level(r), HL_REPORT_WRONG);
    hl_report_free(r);
    hl_density_free(model);
}

static void test_wrong(void **state)
{
    (void)state;
    hl_context *ctx = make_context(1);
    hl_density *truth = make_model(ctx, 0.8, 0.5, "a");
    check_verdict(ctx, truth, make_model(ctx, 1, 0.5, "a"), "misses a part of the data"); /* a lost mode */
    hl_density *one = make_model(ctx, 1, 0.5, "a");
    check_verdict(ctx, one, make_model(ctx, 1, -0.5, "a"), "correlation of 'a' and 'b' is 0.49 in the data");
    hl_density_free(one);
    hl_density *shifted = make_model(ctx, 0.8, 0.5, "a");
    shifted->column[1].mean += 0.3;
    check_verdict(ctx, truth, shifted, "column 'b' differs: samples are shifted by +0.5");
    hl_density *wide = make_model(ctx, 0.8, 0.5, "a");
    wide->column[2].deviation *= 2;
    check_verdict(ctx, truth, wide, "column 'c' differs");
    hl_density_free(truth);
    hl_context_free(ctx);
}

/* Rows that are repeated by the model. */
static void test_memorised(void **state)
{
    (void)state;
    enum { COPIES = 200 };
    hl_context *ctx = make_context(1);
    hl_density *truth = make_model(ctx, 0.5, 0.5, "a"), *model = make_model(ctx, 0.5, 0.5, "a");
    double x[COPIES * DIM];
    CHECK_OK(ctx, hl_density_sample(truth, 5, 0, COPIES, NULL, x));
    hl_tmixture *copies = NULL; /* a narrow part on every row */
    CHECK_OK(ctx, hl_tmixture_create(ctx, DIM, 0, COPIES, INFINITY, &copies));
    for (size_t r = 0; r < COPIES; r++) {
        copies->weight[r] = 1.0 / COPIES;
        for (size_t i = 0; i < DIM; i++) {
            copies->mean[r * DIM + i] = (x[r * DIM + i] - model->column[i].mean) / model->column[i].deviation;
            copies->factor[(r * DIM + i) * DIM + i] = 1e-3;
        }
    }
    CHECK_OK(ctx, hl_tmixture_prepare(copies));
    hl_tmixture_free(model->mixture[0].mixture);
    model->mixture[0].mixture = copies;
    hl_report *r = NULL;
    CHECK_OK(ctx, hl_report_density(model, &(hl_report_rows){ .rows = COPIES, .x = x }, NULL, &r));
    CHECK(strstr(hl_report_verdict(r), "memorised"), "the verdict");
    CHECK(hl_report_density_numbers(r)->memorised > 0.9, "the share");
    hl_report_free(r);
    hl_density_free(model);
    hl_density_free(truth);
    hl_context_free(ctx);
}

/* Nothing is called memorised by chance: independent rows, also with ties, have p-values that are uniform or above. */
static void test_not_memorised(void **state)
{
    (void)state;
    enum { SEEDS = 50, N = 200 };
    hl_context *ctx = make_context(1);
    double *x = calloc(2 * N * 2, sizeof *x), p;
    for (int kind = 0; kind < 4; kind++) { /* one law; rounded; paired; another spread */
        int low = 0, lower = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            for (size_t i = 0; i < 2 * N * 2; i++) {
                double z = hl_random_normal(seed, 77, i) * (kind == 3 && i >= N * 2 ? 0.6 : 1);
                x[i] = kind == 1 ? round(2 * z) : z;
            }
            CHECK_OK(ctx, hl_compare_copies(ctx, 2, N, x, kind == 2, seed, &p));
            low += p < 0.05;
            lower += p < 0.01;
        }
        print_message("of %d seeds below 0.05: %d, below 0.01: %d\n", SEEDS, low, lower);
        CHECK(low <= 8 && lower <= 3, "the level");
    }
    free(x);
    hl_density *m = make_model(ctx, 0.6, 0.5, "a");
    hl_report *r = make_report(ctx, m, m, 150, 2000, 1);
    CHECK(isnan(hl_report_density_numbers(r)->memorised_p), "too few rows");
    hl_report_free(r);
    hl_density_free(m);
    hl_context_free(ctx);
}

static void check_says(hl_context *ctx, hl_density *m, size_t rows, const double *x, const char *says,
                       const char *never)
{
    hl_report *r = NULL;
    CHECK_OK(ctx, hl_report_density(m, &(hl_report_rows){ .rows = rows, .x = x }, NULL, &r));
    const char *verdict = hl_report_verdict(r);
    if (!strstr(verdict, says) || strstr(verdict, never) || strstr(verdict, "inf "))
        fail_msg("'%s', or not '%s', in '%s'", never, says, verdict);
    hl_report_free(r);
}

/* Two rows say nothing of a correlation, a constant column has no deviation, and a value far away is named. */
static void test_plain(void **state)
{
    (void)state;
    hl_context *ctx = make_context(1);
    hl_density *m = make_model(ctx, 1, 0.5, "a");
    double x[100 * DIM];
    CHECK_OK(ctx, hl_density_sample(m, 5, 0, 100, NULL, x));
    check_says(ctx, m, 2, x, "with so few rows", "correlation");
    check_says(ctx, m, 100, x, "nats per row above that of a normal", "not shown");
    for (size_t i = 0; i < 2; i++) {
        x[7 * DIM] = i ? 1e300 : 1e9;
        check_says(ctx, m, 100, x, i ? "row 8 is far from all samples: column 'a' is 1e+300" : "column 'a' is 1e+09",
                   "nats per row above");
    }
    for (size_t i = 0; i < 100; i++)
        x[i * DIM] = 3;
    check_says(ctx, m, 100, x, "column 'a' is constant in the data (3", "shifted");
    hl_column_form form[DIM] = { hl_column_form_none(), hl_column_form_none(), hl_column_form_none() };
    form[2].step = 20;
    CHECK_OK(ctx, hl_density_set_forms(m, form));
    CHECK_OK(ctx, hl_density_sample(m, 5, 0, 100, NULL, x));
    check_says(ctx, m, 100, x, "not shown: column 'c' has few distinct values", "nats per row above");
    hl_density_free(m);
    hl_context_free(ctx);
}

/* An outlier in one column is the least likely row, by that column. */
static void test_rows(void **state)
{
    (void)state;
    hl_context *ctx = make_context(1);
    hl_density *m = make_model(ctx, 0.5, 0.5, "a");
    double x[ROWS * DIM];
    size_t index[ROWS];
    CHECK_OK(ctx, hl_density_sample(m, 5, 0, ROWS, NULL, x));
    x[17 * DIM + 2] = 400;
    for (size_t i = 0; i < ROWS; i++)
        index[i] = 3 * i;
    hl_report *r = NULL;
    CHECK_OK(ctx,
             hl_report_density(m, &(hl_report_rows){ .rows = ROWS, .x = x, .index = index, .total = 5000 }, NULL, &r));
    const hl_density_report *d = hl_report_density_numbers(r);
    double logp[ROWS], sum = 0;
    CHECK_OK(ctx, hl_density_logp(m, ROWS, x, NULL, logp));
    for (size_t i = 0; i < ROWS; i++)
        sum += logp[i];
    CHECK_NEAR(d->logp.value, sum / ROWS, 1e-12, "mean log p");
    assert_int_equal(d->worst, HL_REPORT_WORST);
    assert_int_equal(d->row[0].row, 51);
    CHECK_NEAR(d->row[0].logp, logp[17], 0, "log p of the row");
    assert_int_equal(d->row[0].column[0], 2);
    CHECK(d->row[0].gain[0] > 10, "gain");
    double up[DIM], slope[2];
    memcpy(up, x + 17 * DIM, sizeof up);
    for (int k = 0; k < 2; k++) {
        up[2] = 400 + (k ? -1e-3 : 1e-3);
        CHECK_OK(ctx, hl_density_logp(m, 1, up, NULL, &slope[k]));
    }
    for (size_t i = 0; i < DIM; i++)
        if (d->column[i].column == 2)
            CHECK_NEAR(d->row[0].slope[0] / d->column[i].deviation[0], (slope[0] - slope[1]) / 2e-3, 1e-5, "slope");
    CHECK(d->row[0].logp <= d->row[1].logp && d->row[1].logp <= d->row[2].logp, "order");
    assert_int_equal(d->total, 5000);
    hl_report_free(r);
    hl_density_free(m);
    hl_context_free(ctx);
}

static char *text_of(const hl_report *r, int what)
{
    size_t size = 0, again = 0;
    hl_status status = what == 2 ? hl_report_json(r, NULL, 0, &size)
                                 : hl_report_html(r, what ? HL_REPORT_HEAD : HL_REPORT_PAGE, NULL, 0, &size);
    char *text = calloc(size + 1, 1);
    if (status == HL_OK)
        status = what == 2 ? hl_report_json(r, text, size, &again)
                           : hl_report_html(r, what ? HL_REPORT_HEAD : HL_REPORT_PAGE, text, size, &again);
    assert_int_equal(status, HL_OK);
    assert_int_equal(size, again);
    assert_int_equal(size, strlen(text));
    return text;
}

/* What a name may hold does not become part of the page. */
static void test_names(void **state)
{
    (void)state;
    static const char name[] = "</script><script>alert(1)</script>\"'&\n\xe2\x80\xae";
    hl_context *ctx = make_context(1);
    hl_density *m = make_model(ctx, 0.5, 0.5, name);
    hl_report *r = make_report(ctx, m, m, 200, 200, 1);
    for (int what = 0; what < 3; what++) {
        char *text = text_of(r, what);
        CHECK(!strstr(text, "<script>alert") || what == 2, "a script in the page");
        CHECK(!strstr(text, "\xe2\x80\xae") || what == 2, "a sign that turns the text");
        CHECK(!strstr(text, "http:") && !strstr(text, "https:"), "an address");
        if (what == 0) {
            CHECK(strlen(text) < 1 << 20, "the size of the page");
            CHECK(strstr(text, "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;"), "the name");
        }
        free(text);
    }
    CHECK_OK(ctx, hl_report_save(r, "page.html"));
    CHECK_STATUS(ctx, hl_report_save(r, "none/page.html"), HL_ERR_IO);
    hl_report_free(r);
    hl_density_free(m);
    hl_context_free(ctx);
}

/* The same numbers for any number of threads, and without rows. */
static void test_threads(void **state)
{
    (void)state;
    char *first = NULL;
    for (int threads = 1; threads <= 3; threads += 2) {
        hl_context *ctx = make_context(threads);
        hl_density *m = make_model(ctx, 0.5, 0.5, "a");
        hl_report *r = make_report(ctx, m, m, 300, 300, 1), *alone = NULL;
        char *text = text_of(r, 2);
        if (first)
            assert_string_equal(first, text);
        free(first);
        first = text;
        CHECK_OK(ctx, hl_report_density(m, NULL, NULL, &alone));
        free(text_of(alone, 0));
        hl_report_free(alone);
        hl_report_free(r);
        hl_density_free(m);
        hl_context_free(ctx);
    }
    free(first);
}

/* Values that are equal, enormous or few do no harm. */
static void test_hostile(void **state)
{
    (void)state;
    hl_context *ctx = make_context(1);
    hl_density *m = make_model(ctx, 0.5, 0.5, "a");
    for (int kind = 0; kind < 5; kind++) {
        double x[60 * DIM];
        size_t rows = kind == 4 ? 1 : 60;
        for (size_t i = 0; i < rows * DIM; i++)
            x[i] = kind == 0   ? 0
                   : kind == 1 ? 1.7e308 * (i % 2 ? 1 : -1)
                   : kind == 2 ? 1e-308 * (double)i
                   : kind == 3 ? NAN
                               : 1;
        hl_report *r = NULL;
        CHECK_OK(ctx, hl_report_density(m, &(hl_report_rows){ .rows = rows, .x = x },
                                        &(hl_report_options){ .draws = 120 }, &r));
        for (int what = 0; what < 3; what++)
            free(text_of(r, what));
        hl_report_free(r);
    }
    hl_density_free(m);
    hl_context_free(ctx);
}

/* Draws are those of hl_density_sample, and their log p is that of hl_density_logp to the accuracy of the solver. */
static void test_draw(void **state)
{
    (void)state;
    enum { N = 60 };
    hl_context *ctx = make_context(1);
    for (int kind = 0; kind < 4; kind++) { /* a flow; a flow and a mixture; the same with a form; rounded */
        hl_density *m = kind ? make_model(ctx, 0.5, 0.5, "a") : NULL;
        const hl_density_column columns[DIM] = { { "a", 1, 2 }, { "b", -3, 0.5 }, { "c", 100, 30 } };
        hl_flow_spec flow = { .kind = "cnf", .net = { .dim = DIM, .hidden = 8, .features = 4, .width = 8 } };
        if (!m)
            CHECK_OK(ctx, hl_density_create_columns(ctx, DIM, 0, columns, &m));
        CHECK_OK(ctx, hl_density_add_flow(m, &flow));
        CHECK_OK(ctx, hl_flow_init(m->flow, 3));
        hl_density_weigh(m, kind ? 0.6 : 1);
        CHECK_OK(ctx, hl_density_set_solver(m, &(hl_flow_solver){ .rtol = 1e-6, .atol = 1e-6 }));
        hl_column_form form[DIM] = { hl_column_form_none(), hl_column_form_none(), hl_column_form_none() };
        form[2].step = kind == 3 ? 5 : 0;
        if (kind > 1)
            CHECK_OK(ctx, hl_density_set_forms(m, form));
        double x[2][N * DIM], logp[2][N];
        CHECK_OK(ctx, hl_density_draw(m, 4, N, NULL, x[0], logp[0]));
        CHECK_OK(ctx, hl_density_sample(m, 4, 0, N, NULL, x[1]));
        CHECK_OK(ctx, hl_density_logp(m, N, x[1], NULL, logp[1]));
        for (size_t r = 0; r < N; r++) {
            CHECK_NEAR(logp[0][r], logp[1][r], 2e-4, "log p of a draw");
            for (size_t i = 0; i < DIM; i++)
                CHECK_NEAR(x[0][r * DIM + i], x[1][r * DIM + i], 1e-4 * fabs(x[1][r * DIM + i]), "a draw");
        }
        hl_density_free(m);
    }
    hl_context_free(ctx);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void test_sort(void **state)
{
    (void)state;
    enum { N = 1000 };
    double a[N], b[N];
    uint64_t room[2 * N];
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < N; i++) {
            double z = hl_random_normal(3, 5, i);
            a[i] = b[i] = kind == 0 ? z : kind == 1 ? exp(100 * z) * (i % 3 ? 1 : -1) : kind == 2 ? round(z) : 7;
        }
        hl_sort_finite(N, a, room);
        qsort(b, N, sizeof *b, ascending);
        for (size_t i = 0; i < N; i++)
            CHECK_NEAR(a[i], b[i], 0, "in order");
    }
    hl_sort_finite(0, a, room);
}

static void test_pick(void **state)
{
    (void)state;
    size_t index[100], low[100] = { 0 };
    for (uint64_t seed = 0; seed < 50; seed++) {
        assert_int_equal(hl_report_pick(1037, 100, seed, index), 100);
        for (size_t i = 0; i < 100; i++) {
            CHECK(index[i] < 1037 && (!i || index[i] > index[i - 1]), "rising");
            low[i] += index[i] == (size_t)ceil((double)i * 10.37);
        }
    }
    for (size_t i = 0; i < 100; i++)
        CHECK(low[i] < 20, "at random");
    assert_int_equal(hl_report_pick(7, 100, 0, index), 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(index[i], i);
}

static void test_digest(void **state)
{
    (void)state;
    char digest[45];
    hl_sha256_base64("abc", digest);
    assert_string_equal(digest, "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    hl_sha256_base64("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", digest);
    assert_string_equal(digest, "JI1qYdIGOLjlwCaTDD5gOaM85Flk/yFn9uzt1BnbBsE=");
}

/* p-values of Kolmogorov's distribution, and bands. */
static void test_statistics(void **state)
{
    (void)state;
    CHECK_NEAR(hl_kolmogorov_p(1.3581), 0.05, 1e-5, "5 %");
    CHECK_NEAR(hl_kolmogorov_p(1.6276), 0.01, 1e-5, "1 %");
    CHECK_NEAR(hl_ks_p(hl_ks_band(300, 700), 300, 700), 0.05, 1e-5, "band");
    const double a[] = { 1, 2, 3, 4 }, b[] = { 2.5, 3.5, 4.5, 5.5 };
    CHECK_NEAR(hl_ks_distance(4, a, 4, b), 0.5, 1e-15, "distance");
    CHECK_NEAR(hl_share_below(4, a, 3), 0.75, 1e-15, "share");
    CHECK_NEAR(hl_chi2_quantile(2, 0.5), 2 * log(2), 1e-12, "chi-squared of 2");
    CHECK_NEAR(hl_chi2_quantile(10, 0.95), 18.307, 0.02, "chi-squared of 10");
}

static hl_status scenario(hl_context *ctx, void *user)
{
    double x[50 * DIM];
    (void)user;
    hl_density *m = make_model(ctx, 0.5, 0.5, "a");
    hl_report *r = NULL;
    size_t size;
    hl_status status = m ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < 50 * DIM; i++)
        x[i] = hl_random_normal(1, 2, i);
    if (status == HL_OK)
        status = hl_report_density(m, &(hl_report_rows){ .rows = 50, .x = x }, &(hl_report_options){ .draws = 20 }, &r);
    if (status == HL_OK)
        status = hl_report_html(r, HL_REPORT_PAGE, NULL, 0, &size);
    if (status == HL_OK)
        status = hl_report_json(r, NULL, 0, &size);
    hl_report_free(r);
    hl_density_free(m);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_digest),
        cmocka_unit_test(test_pick),       cmocka_unit_test(test_draw),
        cmocka_unit_test(test_sort),       cmocka_unit_test(test_right),
        cmocka_unit_test(test_wrong),      cmocka_unit_test(test_memorised),
        cmocka_unit_test(test_rows),       cmocka_unit_test_teardown(test_names, empty_directory),
        cmocka_unit_test(test_threads),    cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_memory),     cmocka_unit_test(test_not_memorised),
        cmocka_unit_test(test_plain),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
