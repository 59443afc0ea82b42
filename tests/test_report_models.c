/* test_report_models.c - reports of models that were read from files: flows, with their solver and base, contexts, many columns; calls that are
 * wrong, stopped, or out of memory. */
#include "support.h"

#include <stdio.h>

#include "report/report.h"

enum { ROWS = 40, MOST = 70 };

/* A report of rows of its own, with its texts. Files are those of the fuzz targets. */
typedef struct request {
    const char *file;
    size_t rows, draws;
    char **page, **json; /* NULL: only made */
} request;

static hl_status read_text(const hl_report *r, bool json, char **out)
{
    size_t size = 0;
    hl_status status = json ? hl_report_json(r, NULL, 0, &size) : hl_report_html(r, HL_REPORT_PAGE, NULL, 0, &size);
    if (status != HL_OK || !out)
        return status;
    *out = calloc(size + 1, 1);
    return json ? hl_report_json(r, *out, size, &size) : hl_report_html(r, HL_REPORT_PAGE, *out, size, &size);
}

static hl_status density_report(hl_context *ctx, void *user)
{
    const request *q = user;
    double x[ROWS * MOST], c[ROWS * MOST];
    hl_density *m = NULL;
    hl_report *r = NULL;
    hl_status status = hl_density_load(ctx, q->file, &m);
    for (size_t i = 0; i < ROWS * MOST; i++)
        c[i] = hl_random_normal(1, 1, i);
    if (status == HL_OK && q->rows)
        status = hl_density_sample(m, 5, 0, q->rows, c, x);
    if (status == HL_OK)
        status = hl_report_density(m, &(hl_report_rows){ .rows = q->rows, .x = x, .context = c },
                                   &(hl_report_options){ .draws = q->draws, .call = "hollow report" }, &r);
    if (status == HL_OK)
        status = read_text(r, false, q->page);
    if (status == HL_OK)
        status = read_text(r, true, q->json);
    hl_report_free(r);
    hl_density_free(m);
    return status;
}

static hl_status sde_report(hl_context *ctx, void *user)
{
    const request *q = user;
    double x[ROWS], t[ROWS], first, last;
    size_t path[ROWS];
    hl_sde *m = NULL;
    hl_report *r = NULL;
    hl_status status = hl_sde_load(ctx, q->file, &m);
    if (status == HL_OK)
        hl_sde_get_scale(m, &first, &last, NULL, NULL);
    for (size_t i = 0; status == HL_OK && i < ROWS; i++) {
        path[i] = i / 8;
        t[i] = first + (last - first) * (double)(i % 8) / 8;
        x[i] = hl_random_normal(2, 0, i);
    }
    if (status == HL_OK)
        status = hl_report_sde(m, &(hl_sde_data){ q->rows, t, x, path }, &(hl_report_options){ .draws = q->draws }, &r);
    if (status == HL_OK)
        status = read_text(r, false, q->page);
    if (status == HL_OK)
        status = read_text(r, true, q->json);
    hl_report_free(r);
    hl_sde_free(m);
    return status;
}

static hl_context *make_context(void)
{
    hl_context *ctx = NULL;
    assert_int_equal(hl_context_create(&(hl_context_options){ .threads = 1 }, &ctx), HL_OK);
    return ctx;
}

static void check_words(hl_context *ctx, const char *file, hl_status (*make)(hl_context *, void *), size_t rows,
                        const char *in_page, const char *in_json)
{
    char *page = NULL, *json = NULL;
    request q = { file, rows, ROWS, &page, &json };
    CHECK_OK(ctx, make(ctx, &q));
    if (!strstr(page, in_page))
        fail_msg("%s: the page has no \"%s\"", file, in_page);
    if (!strstr(json, in_json))
        fail_msg("%s: the JSON has no %s", file, in_json);
    free(page);
    free(json);
}

/* A continuous flow is solved at several tolerances, and its base compared with normal values; other models have neither. */
static void test_kinds(void **state)
{
    hl_context *ctx = make_context();
    (void)state;
    check_words(ctx, HL_TEST_CORPUS "/density/cnf.hollow", density_report, ROWS, "<h3>Solver</h3>",
                "\"tolerances\":[{");
    check_words(ctx, HL_TEST_CORPUS "/density/cnf.hollow", density_report, 0, "flow, cnf", "\"members\"");
    check_words(ctx, HL_TEST_CORPUS "/density/maf.hollow", density_report, ROWS, "z of the flow, worst column",
                "\"base\":{");
    check_words(ctx, HL_TEST_CORPUS "/density/context.hollow", density_report, ROWS, "degrees of freedom",
                "\"members\"");
    check_words(ctx, HL_TEST_CORPUS "/sde/sde_fp.hollow", sde_report, ROWS, "<svg", "\"columns\"");
    check_words(ctx, HL_TEST_CORPUS "/sde/regression.hollow", sde_report, ROWS, "<svg", "\"columns\"");
    hl_context_free(ctx);
}

/* ---- many columns ---- */

static hl_density *make_wide(hl_context *ctx, size_t dim)
{
    char name[MOST][8];
    hl_density_column column[MOST];
    hl_density *m = NULL;
    hl_tmixture *x = NULL;
    for (size_t i = 0; i < dim; i++) {
        snprintf(name[i], sizeof name[i], "c%zu", i);
        column[i] = (hl_density_column){ name[i], (double)i, 1 + (double)i };
    }
    CHECK_OK(ctx, hl_density_create_columns(ctx, dim, 0, column, &m));
    CHECK_OK(ctx, hl_tmixture_create(ctx, dim, 0, 1, 5, &x));
    x->weight[0] = 1;
    for (size_t i = 0; i < dim; i++)
        x->factor[i * dim + i] = 1;
    CHECK_OK(ctx, hl_tmixture_prepare(x));
    CHECK_OK(ctx, hl_density_add_mixture(m, x, false, 1));
    return m;
}

/* Of many columns those come first whose draws differ most; one with a single value is shown, too. */
static void test_wide(void **state)
{
    hl_context *ctx = make_context();
    static double x[ROWS * MOST];
    (void)state;
    hl_density *m = make_wide(ctx, MOST);
    hl_report *r = NULL;
    char *page = NULL;
    CHECK_OK(ctx, hl_density_sample(m, 3, 0, ROWS, NULL, x));
    for (size_t i = 0; i < ROWS; i++) {
        x[i * MOST + 17] += 500;
        x[i * MOST + 23] = 7;
    }
    CHECK_OK(ctx,
             hl_report_density(m, &(hl_report_rows){ .rows = ROWS, .x = x }, &(hl_report_options){ .draws = 60 }, &r));
    const hl_density_report *d = hl_report_density_numbers(r);
    assert_int_equal(d->column[0].column, 17);
    assert_int_equal(hl_report_get_level(r), HL_REPORT_WRONG);
    for (size_t i = 0; i < d->columns; i++)
        CHECK(d->column[i].low < d->column[i].high, d->column[i].name);
    CHECK_OK(ctx, read_text(r, false, &page));
    CHECK(strstr(page, "more columns</summary>"), "columns that are folded");
    CHECK(strstr(page, "columns with the largest differences"), "the matrix of pairs");
    free(page);
    hl_report_free(r);
    hl_density_free(m);
    hl_context_free(ctx);
}

/* ---- what goes wrong ---- */

static void test_wrong_calls(void **state)
{
    hl_context *ctx = make_context();
    hl_density *m = make_wide(ctx, 2);
    hl_report *r = (hl_report *)m;
    double x[4] = { 0 };
    (void)state;
    assert_int_equal(hl_report_density(NULL, NULL, NULL, &r), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_report_density(m, NULL, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_report_density(m, &(hl_report_rows){ .rows = 2 }, NULL, &r), HL_ERR_INVALID);
    assert_null(r);
    x[1] = NAN; /* rows without log p are counted, and left out */
    CHECK_OK(ctx, hl_report_density(m, &(hl_report_rows){ .rows = 2, .x = x }, &(hl_report_options){ .draws = 3 }, &r));
    assert_int_equal(hl_report_density_numbers(r)->failed, 1);
    assert_null(hl_report_sde_numbers(r));
    assert_null(hl_report_density_numbers(NULL));
    hl_report_free(r);
    hl_report_free(NULL);
    hl_density_free(m);
    hl_context_free(ctx);
}

static int stop_at(void *user)
{
    return --*(long *)user <= 0;
}

/* A report that is stopped at any moment is none. */
static void test_stop(void **state)
{
    static const char *const files[] = { HL_TEST_CORPUS "/density/cnf.hollow",
                                         HL_TEST_CORPUS "/sde/regression.hollow" };
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        for (long n = 1, over = 0; !over; n += 1 + n / 8) {
            long left = n;
            hl_context *ctx = NULL;
            assert_int_equal(
                hl_context_create(&(hl_context_options){ .threads = 1, .stop = stop_at, .user = &left }, &ctx), HL_OK);
            hl_status status = (kind ? sde_report : density_report)(ctx, &(request){ files[kind], 25, 25, NULL, NULL });
            over = left > 0;
            CHECK_STATUS(ctx, status, over ? HL_OK : HL_STOPPED);
            hl_context_free(ctx);
        }
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(1, density_report, &(request){ HL_TEST_CORPUS "/density/cnf.hollow", 22, 22, NULL, NULL });
    check_every_allocation(1, density_report,
                           &(request){ HL_TEST_CORPUS "/density/context.hollow", 22, 22, NULL, NULL });
    check_every_allocation(1, sde_report, &(request){ HL_TEST_CORPUS "/sde/regression.hollow", ROWS, 10, NULL, NULL });
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds), cmocka_unit_test(test_wide),   cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_stop),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
