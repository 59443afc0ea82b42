/* test_root.c - root finding: inverses of residual networks, rows that do not see each other, and what happens when there is no
 * root. */
#include "hollow/root.h"

#include "problems/residual_net.h"
#include "support.h"

/* ---- y = x + g(x), g a hollow network with a given Lipschitz constant ---- */

enum { ROWS = RESIDUAL_ROWS, NET_D = STIFF_NET_DIM };

static residual_net net;
static double found[ROWS * NET_D];

static void make_residual(hl_context *ctx, double constant, double sign)
{
    residual_net_free(&net);
    CHECK_OK(ctx, residual_net_create(&net, ctx, constant, sign, .3, 1));
}

/* Invert all rows from x = y; the most evaluations of a row. */
static size_t invert(hl_context *ctx, const char *method, hl_status expected)
{
    hl_system system = net.system;
    hl_root_options options = { .method = method, .rows = ROWS };
    hl_root_row info[ROWS];
    hl_root *root;
    size_t most = 0;
    memcpy(found, net.target, sizeof found);
    CHECK_OK(ctx, hl_root_create(ctx, &system, &options, &root));
    CHECK_STATUS(ctx, hl_root_solve(root, ROWS, NULL, found, info), expected);
    for (size_t r = 0; r < ROWS; r++) {
        most = info[r].evaluations > most ? info[r].evaluations : most;
        if (expected == HL_OK)
            CHECK_LE(info[r].residual, 1e-10, method);
    }
    hl_root_free(root);
    return most;
}

static void test_inverse(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    static const double constants[] = { .5, .9, .99 };
    (void)state;
    for (int sign = -1; sign <= 1; sign += 2)
        for (int c = 0; c < 3; c++) {
            make_residual(ctx, constants[c], sign);
            size_t jacobi = invert(ctx, "jacobi", HL_OK);
            CHECK_LE(relative_error_f64(found, net.answer, ROWS * NET_D), 2e-10 / (1 - constants[c]), "jacobi");
            CHECK_LE((double)jacobi, sign > 0 ? 10 : 22, "evaluations of jacobi");
            size_t anderson = invert(ctx, "anderson", HL_OK);
            CHECK_LE(relative_error_f64(found, net.answer, ROWS * NET_D), 2e-10 / (1 - constants[c]), "anderson");
            CHECK_LE((double)anderson, 30, "evaluations of anderson");
            invert(ctx, "fixed-point", HL_OK);
            CHECK_LE(relative_error_f64(found, net.answer, ROWS * NET_D), 2e-10 / (1 - constants[c]), "fixed-point");
            invert(ctx, "newton-krylov", HL_OK);
            CHECK_LE(relative_error_f64(found, net.answer, ROWS * NET_D), 2e-10 / (1 - constants[c]), "newton-krylov");
        }
    residual_net_free(&net);
    test_context_free(ctx, NULL);
}

/* Beyond Lipschitz constant 1 fixed-point iteration diverges; Anderson finds the root. */
static void test_expansive(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    make_residual(ctx, 5, 1);
    size_t most = invert(ctx, "anderson", HL_OK);
    CHECK_LE((double)most, 100, "evaluations of anderson");
    invert(ctx, "fixed-point", HL_ERR_NO_SOLUTION);
    invert(ctx, "newton-krylov", HL_OK);
    residual_net_free(&net);
    test_context_free(ctx, NULL);
}

/* A row's bits do not depend on the others, nor on how many are solved together; done rows are not evaluated again. */
static void test_rows(void **state)
{
    static const char *const methods[] = { "jacobi", "anderson", "fixed-point" };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    make_residual(ctx, .9, -1);
    for (size_t m = 0; m < 3; m++) {
        hl_system system = net.system;
        hl_root_options options = { .method = methods[m], .rows = 7 };
        hl_root_row together[ROWS], alone[ROWS];
        hl_root *root;
        double y[ROWS * NET_D], one[ROWS * NET_D];
        size_t total = 0;
        for (size_t i = 0; i < ROWS * NET_D; i++) /* some start on their answer */
            y[i] = one[i] = i / NET_D % 5 == 0 ? net.answer[i] : net.target[i];
        net.rows = 0;
        CHECK_OK(ctx, hl_root_create(ctx, &system, &options, &root));
        CHECK_OK(ctx, hl_root_solve(root, ROWS, NULL, y, together));
        for (size_t r = 0; r < ROWS; r++)
            total += together[r].evaluations;
        assert_int_equal(total, net.rows);
        CHECK(together[5].evaluations == 1, "a row that starts on its root");
        hl_root_free(root);
        options.rows = 1;
        CHECK_OK(ctx, hl_root_create(ctx, &system, &options, &root));
        CHECK_OK(ctx, hl_root_solve(root, ROWS, NULL, one, alone));
        assert_memory_equal(y, one, sizeof y);
        for (size_t r = 0; r < ROWS; r++)
            assert_int_equal(together[r].evaluations, alone[r].evaluations);
        hl_root_free(root);
    }
    residual_net_free(&net);
    test_context_free(ctx, NULL);
}

/* ---- small systems ---- */

typedef struct parabola {
    double offset; /* F = y^2 + offset */
    int value;     /* what the callback returns at call number `fail_at` */
    size_t fail_at, calls;
} parabola;

static int parabola_rhs(void *user, const hl_rows *at, double *f)
{
    parabola *p = user;
    for (size_t r = 0; r < at->count; r++)
        f[r] = at->y[r] * at->y[r] + p->offset + at->t[r];
    return ++p->calls == p->fail_at ? p->value : 0;
}

static int parabola_diagonal(void *user, const hl_rows *at, double *f, double *diagonal)
{
    for (size_t r = 0; r < at->count; r++)
        diagonal[r] = 2 * at->y[r];
    return f ? parabola_rhs(user, at, f) : 0;
}

static int parabola_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++)
        jv[r] = 2 * at->y[r] * v[r];
    return 0;
}

static const char *const all_methods[] = { "jacobi", "anderson", "fixed-point", "newton-krylov" };

static hl_root *parabola_root(hl_context *ctx, parabola *p, const char *method, size_t max_evaluations)
{
    hl_system system = { .n = 1, .rhs = parabola_rhs, .diagonal = parabola_diagonal, .jvp = parabola_jvp, .user = p };
    hl_root_options options = { .method = method, .rows = 2, .max_evaluations = max_evaluations };
    hl_root *root;
    CHECK_OK(ctx, hl_root_create(ctx, &system, &options, &root));
    return root;
}

/* y^2 + 1 has no root: the status says so, and y is the best that was seen. */
static void test_no_solution(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        parabola p = { .offset = 1 };
        hl_root *root = parabola_root(ctx, &p, all_methods[m], 0);
        double y[3] = { 3, -2, 5 }, start[3] = { 3, -2, 5 };
        hl_root_row info[3];
        CHECK_STATUS(ctx, hl_root_solve(root, 3, NULL, y, info), HL_ERR_NO_SOLUTION);
        CHECK(strstr(hl_context_message(ctx), "no solution found"), hl_context_message(ctx));
        for (size_t r = 0; r < 3; r++) {
            CHECK(info[r].status == HL_ERR_NO_SOLUTION, all_methods[m]);
            if (m < 3) /* one residual is reported for all rows of a newton-krylov system */
                CHECK_NEAR(info[r].residual, y[r] * y[r] + 1, 1e-12, all_methods[m]);
            CHECK_LE(y[r] * y[r] + 1, start[r] * start[r] + 1, "not worse than the start");
            CHECK_LE((double)info[r].evaluations, 502, "the budget");
        }
        hl_root_free(root);
    }
    test_context_free(ctx, NULL);
}

static void test_budget_and_time(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < 2; m++) {
        parabola p = { .offset = 0 };
        hl_root *root = parabola_root(ctx, &p, all_methods[m], 3);
        double y[2] = { 100, 100 }, t[2] = { -4, -9 };
        hl_root_row info[2];
        CHECK_STATUS(ctx, hl_root_solve(root, 2, t, y, info), HL_ERR_NO_SOLUTION);
        assert_int_equal(info[0].evaluations, 3);
        hl_root_free(root);
        root = parabola_root(ctx, &p, all_methods[m], 0);
        CHECK_OK(ctx, hl_root_solve(root, 2, t, y, info)); /* goes on */
        CHECK_NEAR(y[0], 2, 1e-9, "each row has its time");
        CHECK_NEAR(y[1], 3, 1e-9, "each row has its time");
        hl_root_free(root);
    }
    test_context_free(ctx, NULL);
}

static void test_callback(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        parabola p = { .offset = -2, .value = -7, .fail_at = 3 };
        hl_root *root = parabola_root(ctx, &p, all_methods[m], 0);
        double y[2] = { 3, 4 }, bad = NAN;
        CHECK_STATUS(ctx, hl_root_solve(root, 2, NULL, y, NULL), HL_ERR_CALLBACK);
        CHECK(strstr(hl_context_message(ctx), "-7"), hl_context_message(ctx));
        CHECK_STATUS(ctx, hl_root_solve(root, 1, NULL, &bad, NULL), HL_ERR_NOT_FINITE);
        if (m != 2) { /* y <- y - F does not converge here */
            p = (parabola){ .offset = -2, .value = 1, .fail_at = 3 };
            CHECK_OK(ctx, hl_root_solve(root, 2, NULL, y, NULL)); /* "not here" is a step too far */
            CHECK_NEAR(y[0], sqrt(2), 1e-9, all_methods[m]);
        }
        hl_root_free(root);
    }
    test_context_free(ctx, NULL);
}

static void test_arguments(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    parabola p = { 0 };
    hl_system system = { .n = 1, .rhs = parabola_rhs, .user = &p };
    hl_root *root;
    (void)state;
    CHECK_STATUS(ctx, hl_root_create(NULL, &system, NULL, &root), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_root_create(ctx, NULL, NULL, &root), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_root_create(ctx, &system, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_root_create(ctx, &system, NULL, &root), HL_ERR_INVALID); /* anderson without a diagonal */
    CHECK(strstr(hl_context_message(ctx), "diagonal") && !root, hl_context_message(ctx));
    CHECK_STATUS(ctx, hl_root_create(ctx, &system, &(hl_root_options){ .method = "newton-krylov" }, &root),
                 HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_root_create(ctx, &system, &(hl_root_options){ .method = "bisection" }, &root), HL_ERR_INVALID);
    CHECK_STATUS(ctx,
                 hl_root_create(ctx, &system, &(hl_root_options){ .method = "fixed-point", .tolerance = -1 }, &root),
                 HL_ERR_INVALID);
    CHECK_OK(ctx, hl_root_create(ctx, &system, &(hl_root_options){ .method = "fixed-point" }, &root));
    CHECK_STATUS(ctx, hl_root_solve(NULL, 1, NULL, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_root_solve(root, 1, NULL, NULL, NULL), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_root_solve(root, 0, NULL, NULL, NULL));
    hl_root_free(root);
    hl_root_free(NULL);
    test_context_free(ctx, NULL);
}

/* ---- memory ---- */

static hl_status root_scenario(hl_context *ctx, void *user)
{
    parabola p = { .offset = -2 };
    hl_system system = { .n = 1, .rhs = parabola_rhs, .diagonal = parabola_diagonal, .jvp = parabola_jvp, .user = &p };
    hl_root *root;
    double y[3] = { 1, 2, 3 };
    hl_status status = hl_root_create(ctx, &system, &(hl_root_options){ .method = user, .rows = 2 }, &root);
    if (status == HL_OK)
        status = hl_root_solve(root, 3, NULL, y, NULL);
    hl_root_free(root);
    return status;
}

static void test_memory(void **state)
{
    char names[4][16] = { "jacobi", "anderson", "newton-krylov" };
    (void)state;
    for (size_t m = 0; m < 3; m++) {
        test_allocator allocator;
        hl_context *ctx = test_context(&allocator, 1);
        parabola p = { .offset = -2 };
        hl_root *root = parabola_root(ctx, &p, names[m], 0);
        double y[3] = { 1, 2, 3 };
        long before = allocator.calls;
        CHECK_OK(ctx, hl_root_solve(root, 3, NULL, y, NULL));
        assert_int_equal(allocator.calls, before);
        hl_root_free(root);
        test_context_free(ctx, &allocator);
        check_every_allocation(1, root_scenario, names[m]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inverse),     cmocka_unit_test(test_expansive),       cmocka_unit_test(test_rows),
        cmocka_unit_test(test_no_solution), cmocka_unit_test(test_budget_and_time), cmocka_unit_test(test_callback),
        cmocka_unit_test(test_arguments),   cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
