/* test_failure.c - failures as data: the place of an error in the caller's arrays, through layers that cut rows into chunks,
 * and a stop that the context's user asks for. */
#include "net_support.h"

#include "hollow/hollow.h"

enum { ROWS = 5000, D = 2 };

static void check_failure(const hl_context *ctx, hl_status status, size_t row, size_t column, const char *what)
{
    hl_failure f = hl_context_failure(ctx);
    assert_int_equal(f.status, status);
    assert_int_equal(f.row, row);
    assert_int_equal(f.column, column);
    assert_int_equal(f.node, HL_NOWHERE);
    if (!strstr(f.what, what))
        fail_msg("\"%s\" does not contain \"%s\"", f.what, what);
    assert_non_null(strstr(hl_context_message(ctx), f.what));
}

static void test_messages(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char text[600];
    (void)state;
    assert_int_equal(hl_context_failure(ctx).status, HL_OK);
    assert_string_equal(hl_context_failure(NULL).what, "");
    assert_int_equal(hl_context_failure(NULL).row, HL_NOWHERE);
    hl_fail_at(ctx, HL_ERR_STEP, hl_at(3, 7), "too %s", "small");
    assert_string_equal(hl_context_message(ctx), "row 3, value 7: too small");
    check_failure(ctx, HL_ERR_STEP, 3, 7, "too small");
    assert_int_equal(hl_fail_offset(ctx, HL_ERR_STEP, 100), HL_ERR_STEP);
    assert_string_equal(hl_context_message(ctx), "row 103, value 7: too small");
    hl_kept_failure kept;
    hl_failure_keep(ctx, &kept);
    hl_fail_at(ctx, HL_ERR_STEP, hl_at(0, HL_NOWHERE), "other");
    assert_string_equal(hl_context_message(ctx), "row 0: other");
    hl_fail_at(ctx, HL_ERR_SHAPE, hl_at_node(5), "shape");
    assert_string_equal(hl_context_message(ctx), "node 5: shape");
    assert_int_equal(hl_context_failure(ctx).node, 5);
    hl_fail_offset(ctx, HL_ERR_SHAPE, 100); /* has no row */
    assert_string_equal(hl_context_message(ctx), "node 5: shape");
    hl_failure_restore(ctx, &kept);
    check_failure(ctx, HL_ERR_STEP, 103, 7, "too small");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    hl_fail_at(ctx, HL_ERR_STEP, hl_at(1, 1), "%s", text);
    size_t length = strlen(hl_context_message(ctx));
    assert_string_equal(hl_context_message(ctx) + length - 4, "x...");
    hl_fail(ctx, HL_ERR_INVALID, "plain");
    check_failure(ctx, HL_ERR_INVALID, HL_NOWHERE, HL_NOWHERE, "plain");
    test_context_free(ctx, NULL);
}

static hl_density *make_model(hl_context *ctx, const char *kind)
{
    hl_flow_spec spec = { .kind = kind, .net = { .dim = D, .hidden = 4, .width = 4, .dtype = HL_F64 } };
    hl_density_column columns[D] = { { "a", 0, 1 }, { "b", 0, 1 } };
    hl_density *model;
    CHECK_OK(ctx, hl_density_create(ctx, &spec, columns, &model));
    CHECK_OK(ctx, hl_flow_init(hl_density_flow(model), 3));
    return model;
}

static double *make_rows(void)
{
    double *x = test_malloc(ROWS * D * sizeof *x);
    for (size_t i = 0; i < ROWS * D; i++)
        x[i] = hl_random_normal(1, 1, i);
    return x;
}

/* The row is that of the caller's array, whatever the chunks, for every kind of flow and number of threads. */
static void test_rows(void **state)
{
    double *x = make_rows(), *logp = test_malloc(ROWS * sizeof *logp);
    (void)state;
    x[4711 * D + 1] = NAN;
    x[4999 * D] = NAN;
    for (size_t k = 0; hl_flow_kinds()[k]; k++) {
        hl_context *ctx = test_context(NULL, 1 + (int)(k % 2));
        hl_density *model = make_model(ctx, hl_flow_kinds()[k]);
        CHECK_STATUS(ctx, hl_density_logp(model, ROWS, x, NULL, logp), HL_ERR_NOT_FINITE);
        check_failure(ctx, HL_ERR_NOT_FINITE, 4711, 1, "not finite");
        CHECK(isnan(logp[4711]) && isfinite(logp[4712]), hl_flow_kinds()[k]);
        hl_density_free(model);
        test_context_free(ctx, NULL);
    }
    test_free(x);
    test_free(logp);
}

/* Rows that the solver cannot finish: the failure is that of the first one, whatever the chunks. */
static void test_solver(void **state)
{
    double *x = make_rows(), *logp = test_malloc(ROWS * sizeof *logp);
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        hl_context *ctx = test_context(NULL, threads);
        hl_density *model = make_model(ctx, NULL);
        size_t easy = ROWS, hard = ROWS, budget = 30;
        while (easy == ROWS || hard == ROWS) { /* a budget with which some rows end and some do not */
            CHECK(budget < 100, "no such budget");
            CHECK_OK(ctx, hl_density_set_solver(
                              model, &(hl_flow_solver){ .rtol = 1e-7, .atol = 1e-7, .max_evaluations = budget++ }));
            hl_density_logp(model, ROWS - 4500, x + 4500 * D, NULL, logp + 4500);
            easy = hard = ROWS;
            for (size_t r = ROWS; r-- > 4500;)
                *(isnan(logp[r]) ? &hard : &easy) = r;
        }
        memmove(x + 4300 * D, x + hard * D, D * sizeof *x);
        for (size_t r = 0; r < 4300; r++)
            memmove(x + r * D, x + easy * D, D * sizeof *x);
        CHECK_STATUS(ctx, hl_density_logp(model, ROWS, x, NULL, logp), HL_ERR_BUDGET);
        check_failure(ctx, HL_ERR_BUDGET, 4300, hl_context_failure(ctx).column, "used up");
        CHECK(isnan(logp[4300]) && isfinite(logp[4299]), "the rows before it");
        hl_density_free(model);
        test_context_free(ctx, NULL);
    }
    test_free(x);
    test_free(logp);
}

/* ---- stopping ---- */

static int countdown(void *user)
{
    int *left = user;
    return (*left)-- <= 0;
}

static void test_stop(void **state)
{
    static const char *const methods[] = { "dopri5", "rk4", "adams-jacobi", "bdf-newton" };
    double *x = make_rows(), *logp = test_malloc(ROWS * sizeof *logp), *g = test_calloc(4096, sizeof *g);
    double *drawn = test_malloc(ROWS * D * sizeof *drawn);
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        int left = 1 << 30;
        hl_context *ctx;
        hl_context_options options = { .threads = 1 + (int)(m % 2), .stop = countdown, .user = &left };
        CHECK_OK(NULL, hl_context_create(&options, &ctx));
        hl_density *model = make_model(ctx, NULL);
        hl_flow *flow = hl_density_flow(model);
        size_t rows = m < 2 ? ROWS : 3;
        CHECK_OK(ctx, hl_density_set_solver(model, &(hl_flow_solver){ .method = methods[m] }));
        for (int after = 0; after < 12; after += 3) {
            left = after;
            CHECK_STATUS(ctx, hl_density_logp(model, rows, x, NULL, logp), HL_STOPPED);
            check_failure(ctx, HL_STOPPED, HL_NOWHERE, HL_NOWHERE, "stopped on request");
            CHECK(isnan(logp[rows - 1]), methods[m]);
            left = after;
            CHECK_STATUS(ctx, hl_density_sample(model, 1, 0, rows, NULL, drawn), HL_STOPPED);
            left = after + 1;
            CHECK_STATUS(ctx, hl_flow_gradient(flow, 3, x, NULL, logp, g), HL_STOPPED);
            left = 1 << 30;
        }
        CHECK_OK(ctx, hl_density_logp(model, 3, x, NULL, logp));
        hl_density_free(model);
        hl_context_free(ctx);
    }
    test_free(x);
    test_free(logp);
    test_free(g);
    test_free(drawn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_solver),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
