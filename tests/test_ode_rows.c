/* test_ode_rows.c - rows that are solved together: each as if alone, each failing alone; no allocation; wrong arguments. */
#include "ode_support.h"

#include "ode/ode.h"
#include "ode/tableau.h"

#include <stdio.h>

/* ---- rows of mixed difficulty ---- */

typedef struct batch {
    size_t rows;
    double *mu, *t, *y;
    hl_ode_row *info;
} batch;

static batch make_batch(size_t rows)
{
    batch b = { rows, test_malloc(rows * sizeof *b.mu), test_malloc(rows * sizeof *b.t),
                test_malloc(2 * rows * sizeof *b.y), test_malloc(rows * sizeof *b.info) };
    for (size_t r = 0; r < rows; r++)
        b.mu[r] = r % 10 == 7 ? 100 : .1 + (double)(r % 7);
    return b;
}

static void start_batch(batch *b)
{
    fill_normal_f64(b->y, 2 * b->rows, 3);
    for (size_t r = 0; r < b->rows; r++)
        b->t[r] = .01 * (double)(r % 5);
}

static void drop_batch(batch *b)
{
    test_free(b->mu);
    test_free(b->t);
    test_free(b->y);
    test_free(b->info);
}

static void check_same(const batch *a, const batch *b, const char *label)
{
    for (size_t r = 0; r < a->rows; r++)
        if (memcmp(a->y + 2 * r, b->y + 2 * r, 2 * sizeof *a->y) != 0 || a->t[r] != b->t[r] ||
            a->info[r].steps != b->info[r].steps || a->info[r].evaluations != b->info[r].evaluations)
            fail_msg("%s: row %zu differs", label, r);
}

/* Solve rows first .. first + count - 1 of the batch. */
static void solve_some(hl_context *ctx, hl_ode *ode, batch *b, size_t first, size_t count)
{
    CHECK_OK(ctx, hl_ode_solve(ode, count, b->t + first, 1.5, b->y + 2 * first, b->info + first));
}

/* The same bits alone, in few slots that are filled again and again, and all at once; and an easy row costs what it costs. */
static void test_mixed(void **state)
{
    enum { ROWS = 1000 };
    hl_context *ctx = test_context(NULL, 1);
    batch together = make_batch(ROWS), alone = make_batch(ROWS);
    size_t slots[] = { ROWS, 64, 3 };
    double mu_alone;
    (void)state;
    start_batch(&alone);
    hl_system one = { .n = 2, .rhs = oscillator, .user = &mu_alone };
    hl_ode *ode = make_ode(ctx, &one, &(hl_ode_options){ .rows = 1 });
    for (size_t r = 0; r < ROWS; r++) {
        mu_alone = alone.mu[r];
        solve_some(ctx, ode, &alone, r, 1);
    }
    hl_ode_free(ode);
    for (size_t k = 0; k < 3; k++) {
        hl_system all = { .n = 2, .rhs = oscillator, .user = together.mu };
        ode = make_ode(ctx, &all, &(hl_ode_options){ .rows = slots[k] });
        start_batch(&together);
        solve_some(ctx, ode, &together, 0, ROWS);
        check_same(&together, &alone, "1000 rows");
        size_t total = 0;
        for (size_t r = 0; r < ROWS; r++)
            total += together.info[r].evaluations;
        assert_int_equal(total, hl_ode_report(ode).forward.f);
        if (k < 2) /* filled slots: far fewer calls than rows solved in turn would need */
            CHECK_LE((double)hl_ode_report(ode).forward.f_calls, .2 * (double)total, "calls");
        hl_ode_free(ode);
    }
    double easy = 0, hard = 0;
    for (size_t r = 0; r < ROWS; r++)
        *(together.mu[r] == 100 ? &hard : &easy) += (double)together.info[r].evaluations;
    CHECK_LE(easy / (.9 * ROWS), .3 * hard / (.1 * ROWS), "an easy row's evaluations");
    drop_batch(&together);
    drop_batch(&alone);
    test_context_free(ctx, NULL);
}

/* Every method, equal steps, output times and events too. */
static int high(void *user, const hl_rows *at, double *value)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++)
        value[r] = at->index[r] % 3 == 1 ? at->y[2 * r] - .3 : 1;
    return 0;
}

static void solve_way(hl_context *ctx, const char *method, size_t steps, size_t slots, batch *b, double *out)
{
    static const double times[3] = { .2, .35, .6 };
    hl_system all = { .n = 2, .rhs = oscillator, .user = b->mu };
    hl_ode_options o = { .method = method, .steps = steps, .rows = slots, .rtol = 1e-4, .event = high };
    hl_ode *ode = make_ode(ctx, &all, &o);
    start_batch(b);
    CHECK_OK(ctx, hl_ode_solve_at(ode, b->rows, b->t, 3, times, b->y, out, b->info));
    hl_ode_free(ode);
}

static void test_every_method(void **state)
{
    enum { ROWS = 40 };
    hl_context *ctx = test_context(NULL, 1);
    batch a = make_batch(ROWS), b = make_batch(ROWS);
    double *out[2] = { test_malloc(3 * ROWS * 2 * sizeof(double)), test_malloc(3 * ROWS * 2 * sizeof(double)) };
    (void)state;
    for (size_t r = 0; r < ROWS; r++)
        a.mu[r] = b.mu[r] = fmin(a.mu[r], 10); /* or equal steps are too long for it */
    size_t methods = 0;
    while (hl_ode_family_of(hl_ode_methods()[methods]) == &hl_ode_rk)
        methods++;
    for (size_t m = 0; m < 2 * methods; m++) {
        const char *name = hl_ode_methods()[m % methods];
        size_t steps = m < methods ? 0 : 500;
        if (!steps && hl_ab_find(name))
            continue;
        solve_way(ctx, name, steps, ROWS, &a, out[0]);
        solve_way(ctx, name, steps, 7, &b, out[1]);
        check_same(&a, &b, name);
        assert_memory_equal(out[0], out[1], 3 * ROWS * 2 * sizeof(double));
        for (size_t r = 0; r < ROWS; r++) /* the last output is the end itself */
            if (a.info[r].status == HL_OK)
                assert_memory_equal(out[0] + (2 * ROWS + r) * 2, a.y + 2 * r, 2 * sizeof(double));
    }
    test_free(out[0]);
    test_free(out[1]);
    drop_batch(&a);
    drop_batch(&b);
    test_context_free(ctx, NULL);
}

/* ---- failures ---- */

enum { ROWS = 20, BAD = 13 };

typedef enum trouble { NO_TROUBLE, BLOW_UP, NOT_A_NUMBER, INFINITE, REFUSE, STOP, HARD } trouble;

typedef struct troubled {
    trouble kind;
    size_t bad; /* row that is in trouble; SIZE_MAX: none */
    int value;  /* of the callback that stops */
    size_t refusals;
} troubled;

/* Three values; row `bad` is in trouble after t = 0.5. */
static int troubled_rhs(void *user, const hl_rows *at, double *dy)
{
    troubled *u = user;
    for (size_t r = 0; r < at->count; r++) {
        const double *y = at->y + 3 * r;
        bool now = at->index[r] == u->bad && at->t[r] > .5;
        dy[3 * r] = -y[0] + .1 * y[1] * at->t[r];
        dy[3 * r + 1] = u->kind == BLOW_UP && at->index[r] == u->bad ? y[1] * y[1] : sin(y[0]);
        dy[3 * r + 2] = u->kind == HARD && at->index[r] == u->bad ? 1e5 * (cos(at->t[r]) - y[2]) : -y[2] * y[2];
        if (now && u->kind == NOT_A_NUMBER)
            dy[3 * r + 2] = NAN;
        if (now && u->kind == INFINITE)
            dy[3 * r + 1] = INFINITY;
        if (now && u->kind == REFUSE)
            u->refusals++;
        if (now && u->kind == REFUSE)
            return 1;
        if (now && u->kind == STOP)
            return u->value;
    }
    return 0;
}

typedef struct outcome {
    hl_status status;
    double t[ROWS], y[ROWS][3];
    hl_ode_row info[ROWS];
    int callback;
} outcome;

/* From t = 0, y = 2 (1, .5, .3) at the bad row, smaller elsewhere, to 1.5. */
static outcome run_troubled(hl_context *ctx, trouble kind, const hl_ode_options *options)
{
    troubled u = { kind, kind == NO_TROUBLE ? SIZE_MAX : BAD, -7, 0 };
    hl_system system = { .n = 3, .rhs = troubled_rhs, .user = &u };
    hl_ode *ode = make_ode(ctx, &system, options);
    outcome o = { .status = HL_OK };
    for (size_t r = 0; r < ROWS; r++) {
        double size = r == BAD ? 2 : .01 * (double)r;
        o.y[r][0] = size;
        o.y[r][1] = .5 * size;
        o.y[r][2] = .3 * size;
    }
    o.status = hl_ode_solve(ode, ROWS, o.t, 1.5, o.y[0], o.info);
    o.callback = hl_ode_report(ode).callback;
    hl_ode_free(ode);
    return o;
}

/* The other rows are as they would be without the trouble. */
static void check_others(const outcome *o, const outcome *calm, const char *label)
{
    for (size_t r = 0; r < ROWS; r++)
        if (r != BAD && (memcmp(o->y[r], calm->y[r], sizeof o->y[r]) != 0 || o->t[r] != calm->t[r] ||
                         o->info[r].status != HL_OK || o->info[r].evaluations != calm->info[r].evaluations))
            fail_msg("%s: row %zu is disturbed", label, r);
}

static void check_message(const hl_context *ctx, const char *fragment)
{
    if (!strstr(hl_context_message(ctx), fragment))
        fail_msg("the message lacks \"%s\": %s", fragment, hl_context_message(ctx));
}

static void test_one_row_fails(void **state)
{
    static const struct {
        const char *label;
        trouble kind;
        hl_status status;
        double last; /* time that it gets to */
        size_t component;
        const char *message;
    } cases[] = { { "blow-up", BLOW_UP, HL_ERR_STEP, 1, 1, "bdf-jacobi" },
                  { "nan", NOT_A_NUMBER, HL_ERR_NOT_FINITE, .5, 2, "value 2" },
                  { "infinite", INFINITE, HL_ERR_NOT_FINITE, .5, 1, "not finite" },
                  { "refused", REFUSE, HL_ERR_STEP, .5, SIZE_MAX, "rejects" },
                  { "budget", HARD, HL_ERR_BUDGET, 1.5, 2, "max_evaluations" } };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++)
        for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
            hl_ode_options options = { .method = m->name,
                                       .rtol = m->order < 3 ? 1e-3 : 1e-6,
                                       .max_evaluations = 20000 };
            outcome calm = run_troubled(ctx, NO_TROUBLE, &options), o = run_troubled(ctx, cases[k].kind, &options);
            CHECK_STATUS(ctx, calm.status, HL_OK);
            if (cases[k].kind == BLOW_UP && m->order < 3)
                continue; /* the low orders need more than the budget to come that close */
            CHECK_STATUS(ctx, o.status, cases[k].status);
            check_message(ctx, "row 13");
            check_message(ctx, cases[k].message);
            check_others(&o, &calm, cases[k].label);
            assert_int_equal(o.info[BAD].status, cases[k].status);
            CHECK_LE(o.t[BAD], cases[k].last + 1e-5, cases[k].label);
            if (cases[k].kind != HARD)
                CHECK_LE(cases[k].last - 1e-5, o.t[BAD], cases[k].label);
            if (cases[k].component != SIZE_MAX)
                assert_int_equal(o.info[BAD].component, cases[k].component);
            for (int i = 0; i < 3; i++)
                assert_true(isfinite(o.y[BAD][i]));
            if (cases[k].kind == HARD)
                CHECK_LE((double)o.info[BAD].evaluations, 20000, "budget");
        }
    test_context_free(ctx, NULL);
}

/* A start that is not finite fails its own row. */
static void test_start_not_finite(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t k = 0; k < 6; k++) {
        hl_ode_options options = { .method = k % 3 == 0   ? "dopri5"
                                             : k % 3 == 1 ? "rk4"
                                                          : "ab3",
                                   .rows = k < 3 ? 4 : ROWS };
        options.steps = k % 3 ? 40 : 0;
        hl_system system = { .n = 3, .rhs = troubled_rhs, .user = &(troubled){ NO_TROUBLE, SIZE_MAX, 0, 0 } };
        hl_ode *ode = make_ode(ctx, &system, &options);
        double t[ROWS] = { 0 }, y[ROWS][3], out[2][ROWS][3], times[2] = { 0, 1.5 };
        hl_ode_row info[ROWS];
        outcome calm = run_troubled(ctx, NO_TROUBLE, &options);
        for (size_t r = 0; r < ROWS; r++)
            for (size_t i = 0; i < 3; i++)
                y[r][i] = (r == BAD ? 2 : .01 * (double)r) * (i == 0 ? 1 : i == 1 ? .5 : .3);
        y[BAD][1] = k % 2 ? NAN : -INFINITY;
        CHECK_STATUS(ctx, hl_ode_solve_at(ode, ROWS, t, 2, times, y[0], out[0][0], info), HL_ERR_NOT_FINITE);
        check_message(ctx, "row 13, value 1: the initial state is not finite");
        for (size_t r = 0; r < ROWS; r++) {
            CHECK(info[r].status == (r == BAD ? HL_ERR_NOT_FINITE : HL_OK), options.method);
            CHECK(r == BAD ? t[r] == 0 && isnan(out[0][r][0]) && isnan(out[1][r][2])
                           : memcmp(y[r], calm.y[r], sizeof y[r]) == 0 && t[r] == 1.5,
                  options.method);
        }
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* In equal steps nothing can be tried again; output times after the failure are NaN. */
static void test_fixed_fails(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int k = 0; k < 3; k++) { /* the last fails before Adams-Bashforth begins */
        hl_ode_options options = { .method = k == 0 ? "rk4" : k == 1 ? "ab3" : "ab5", .steps = k == 2 ? 6 : 30 };
        outcome calm = run_troubled(ctx, NO_TROUBLE, &options), o = run_troubled(ctx, NOT_A_NUMBER, &options);
        CHECK_STATUS(ctx, o.status, HL_ERR_NOT_FINITE);
        check_others(&o, &calm, "equal steps");
        CHECK_NEAR(o.t[BAD], .5, k == 2 ? .26 : .051, "where it ends");
        o = run_troubled(ctx, REFUSE, &options);
        CHECK_STATUS(ctx, o.status, HL_ERR_STEP);
        check_others(&o, &calm, "equal steps, refused");
    }
    troubled u = { NOT_A_NUMBER, 0, 0, 0 };
    hl_system system = { .n = 3, .rhs = troubled_rhs, .user = &u };
    hl_ode *ode = make_ode(ctx, &system, NULL);
    double t = 0, y[3] = { 1, .5, .3 }, out[3][3], times[3] = { .2, .8, 1 };
    CHECK_STATUS(ctx, hl_ode_solve_at(ode, 1, &t, 3, times, y, out[0], NULL), HL_ERR_NOT_FINITE);
    assert_true(isfinite(out[0][2]) && isnan(out[1][0]) && isnan(out[2][2]));
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* A callback that stops the solve is passed on; rows stay at their last accepted step. */
static void test_stop(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t slots = 3; slots < 40; slots += 30) {
        hl_ode_options options = { .rows = slots };
        outcome o = run_troubled(ctx, STOP, &options);
        CHECK_STATUS(ctx, o.status, HL_ERR_CALLBACK);
        assert_int_equal(o.callback, -7);
        assert_int_equal(o.info[BAD].status, HL_ERR_CALLBACK);
        CHECK_LE(o.t[BAD], .5, "stopped before");
        for (size_t r = 0; r < ROWS; r++)
            assert_true(isfinite(o.y[r][0]) && o.t[r] >= 0 && (o.t[r] == 1.5) == (o.info[r].status == HL_OK));
        if (slots == 3)
            assert_true(o.t[0] == 1.5 && o.t[ROWS - 1] == 0); /* one was through, one had not begun */
    }
    test_context_free(ctx, NULL);
}

/* f that is bad at the very start. */
static void test_bad_start(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (trouble kind = NOT_A_NUMBER; kind <= REFUSE; kind++) {
        troubled u = { kind, 1, 0, 0 };
        hl_system system = { .n = 3, .rhs = troubled_rhs, .user = &u };
        hl_ode *ode = make_ode(ctx, &system, NULL);
        double t[3] = { .6, .6, .6 }, y[9] = { 1, 2, 3, 1, 2, 3, 1, 2, 3 };
        hl_ode_row info[3];
        hl_status status = hl_ode_solve(ode, 3, t, 1, y, info);
        assert_int_equal(status, kind == REFUSE ? HL_ERR_STEP : HL_ERR_NOT_FINITE);
        assert_true(t[0] == 1 && t[1] == .6 && t[2] == 1 && y[3] == 1 && y[4] == 2);
        assert_memory_equal(y, y + 6, 3 * sizeof *y);
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

static int square(void *user, const hl_rows *at, double *dy)
{
    for (size_t r = 0; r < at->count; r++)
        dy[r] = user ? 1e308 : at->y[r] * at->y[r];
    return 0;
}

/* Of several rows that fail, the first is told of, whichever fails first. A state that overflows is no result. */
static void test_first_failure(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = { .n = 1, .rhs = square }, constant = { .n = 1, .rhs = square, .user = &system };
    hl_ode *ode = make_ode(ctx, &system, NULL);
    double t[4] = { 0 }, y[4] = { .1, 2, 5, .1 }, big = 1e308, start = 0;
    (void)state;
    CHECK_STATUS(ctx, hl_ode_solve(ode, 4, t, 1, y, NULL), HL_ERR_STEP);
    check_message(ctx, "row 1");
    check_message(ctx, "1 more row");
    hl_ode_free(ode);
    ode = make_ode(ctx, &constant, &(hl_ode_options){ .method = "euler", .steps = 1 });
    CHECK_STATUS(ctx, hl_ode_solve(ode, 1, &start, 1, &big, NULL), HL_ERR_NOT_FINITE);
    assert_true(start == 0 && big == 1e308);
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* ---- memory and arguments ---- */

static int unit_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    (void)user;
    memcpy(gy, w, 2 * at->count * sizeof *gy);
    if (gparam)
        gparam[0] += 1;
    return 0;
}

static hl_status create_each(hl_context *ctx, void *user)
{
    const hl_ode_options *o = user;
    double mu[4] = { 1, 1, 1, 1 }, t[4] = { 0 }, y[8] = { 1, 0, 1, 0, 1, 0, 1, 0 };
    hl_system system = { .n = 2, .rhs = oscillator, .vjp = unit_vjp, .n_params = 1, .user = mu };
    hl_ode *ode = NULL;
    hl_status status = hl_ode_create(ctx, &system, o, &ode);
    assert_true((status == HL_OK) == (ode != NULL));
    if (status == HL_OK)
        status = hl_ode_solve(ode, 4, t, 1, y, NULL);
    if (status == HL_OK && o->gradient)
        status = hl_ode_gradient(ode, y, mu);
    hl_ode_free(ode);
    return status;
}

static void test_every_allocation(void **state)
{
    static const double weights[2] = { 1, 2 };
    hl_ode_options cases[] = { { .method = "dopri8", .weights = weights, .rows = 5 },
                               { .method = "ab4", .steps = 10, .rows = 5 },
                               { .gradient = HL_REPLAY, .rows = 5, .checkpoint_bytes = 3000 },
                               { .gradient = HL_ADJOINT_REINTEGRATED, .rows = 5 } };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_every_allocation(1, create_each, &cases[k]);
}

static void test_no_allocation(void **state)
{
    hl_ode_options cases[] = { { .method = "dopri8", .rows = 3 },
                               { .method = "ab4", .steps = 500 },
                               { .gradient = HL_REPLAY, .checkpoint_bytes = 3000, .rows = 6 },
                               { .gradient = HL_ADJOINT_REINTEGRATED, .rows = 6 } };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        test_allocator allocator;
        hl_context *ctx = test_context(&allocator, 1);
        double mu[6] = { 1, 1, 2, 1, 1, 1 }, t[6] = { 0 }, y[12] = { 1, 0, 1, 0, 1, 0, 1, 0, .2, .3, .4, .5 }, out[24];
        hl_system system = { .n = 2, .rhs = oscillator, .vjp = unit_vjp, .n_params = 1, .user = mu };
        hl_ode *ode = make_ode(ctx, &system, &cases[k]);
        long calls = allocator.calls;
        CHECK_OK(ctx, hl_ode_solve(ode, 6, t, .5, y, NULL));
        CHECK_OK(ctx, hl_ode_solve_at(ode, 6, t, 2, (double[]){ .7, 1 }, y, out, NULL));
        if (cases[k].gradient)
            CHECK_OK(ctx, hl_ode_gradient(ode, y, mu));
        assert_int_equal(allocator.calls, calls);
        hl_ode_free(ode);
        test_context_free(ctx, &allocator);
    }
}

static hl_status try_options(hl_context *ctx, const hl_ode_options *options)
{
    hl_system system = { .n = 2, .rhs = oscillator, .vjp = unit_vjp };
    hl_ode *ode = (hl_ode *)&system;
    hl_status status = hl_ode_create(ctx, &system, options, &ode);
    assert_true((status == HL_OK) == (ode != NULL));
    hl_ode_free(ode);
    return status;
}

static void test_arguments(void **state)
{
    static const double bad_weight[2] = { 1, -1 };
    const hl_ode_options invalid[] = { { .method = "dopri6" },
                                       { .rtol = -1 },
                                       { .atol = NAN },
                                       { .max_step = -1 },
                                       { .first_step = INFINITY },
                                       { .weights = bad_weight },
                                       { .method = "ab3" },
                                       { .gradient = 17 } };
    hl_context *ctx = test_context(NULL, 1);
    double mu[2] = { 1, 1 }, t[2] = { 0, 0 }, y[4] = { 1, 2, 3, 4 }, out[8];
    hl_system system = { .n = 2, .rhs = oscillator, .user = mu }, none = { .n = 2 }, empty = { .rhs = oscillator };
    hl_ode *ode = NULL;
    (void)state;
    for (size_t k = 0; k < sizeof invalid / sizeof *invalid; k++)
        CHECK_STATUS(ctx, try_options(ctx, &invalid[k]), HL_ERR_INVALID);
    CHECK_STATUS(ctx, try_options(ctx, &(hl_ode_options){ .gradient = HL_ADJOINT }), HL_ERR_UNSUPPORTED);
    check_message(ctx, "adams");
    CHECK_STATUS(ctx, try_options(ctx, &(hl_ode_options){ .method = "ab3", .steps = 9, .gradient = HL_REPLAY }),
                 HL_ERR_UNSUPPORTED);
    CHECK_STATUS(ctx, try_options(ctx, &(hl_ode_options){ .rows = SIZE_MAX / 64 }), HL_ERR_NOMEM);
    assert_int_equal(hl_ode_create(NULL, &system, NULL, &ode), HL_ERR_INVALID);
    assert_int_equal(hl_ode_create(ctx, NULL, NULL, &ode), HL_ERR_INVALID);
    assert_int_equal(hl_ode_create(ctx, &system, NULL, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_ode_create(ctx, &none, NULL, &ode), HL_ERR_INVALID);
    assert_int_equal(hl_ode_create(ctx, &empty, NULL, &ode), HL_ERR_INVALID);
    assert_int_equal(hl_ode_create(ctx, &system, &(hl_ode_options){ .gradient = HL_REPLAY }, &ode), HL_ERR_INVALID);
    ode = make_ode(ctx, &system, NULL);
    assert_int_equal(hl_ode_solve(NULL, 2, t, 1, y, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_ode_solve(ode, 2, NULL, 1, y, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_ode_solve(ode, 2, t, 1, NULL, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_ode_solve(ode, 2, t, NAN, y, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_ode_solve_at(ode, 2, t, 2, (double[]){ 1, .5 }, y, out, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_ode_solve_at(ode, 2, t, 2, NULL, y, out, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_ode_gradient(ode, y, NULL), HL_ERR_INVALID);
    y[3] = NAN;
    assert_int_equal(hl_ode_solve(ode, 2, t, 1, y, NULL), HL_ERR_NOT_FINITE);
    assert_int_equal(hl_ode_solve(ode, 0, NULL, 1, NULL, NULL), HL_OK);
    assert_int_equal(hl_ode_solve_at(ode, 2, t, 0, NULL, y, NULL, NULL), HL_OK);
    hl_ode_free(ode);
    hl_ode_free(NULL);
    test_context_free(ctx, NULL);
}

/* All names that are listed are listed once, and those of this family make solvers. */
static void test_names(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    size_t count = 0;
    (void)state;
    for (const char *const *a = hl_ode_methods(); *a; a++, count++)
        for (const char *const *b = a + 1; *b; b++)
            assert_string_not_equal(*a, *b);
    for (size_t k = 0; k < 12; k++)
        CHECK_OK(ctx, try_options(ctx, &(hl_ode_options){ .method = hl_ode_methods()[k], .steps = 3 }));
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),         cmocka_unit_test(test_every_method),
        cmocka_unit_test(test_one_row_fails), cmocka_unit_test(test_start_not_finite),
        cmocka_unit_test(test_fixed_fails),   cmocka_unit_test(test_stop),
        cmocka_unit_test(test_bad_start),     cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_no_allocation), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_names),         cmocka_unit_test(test_first_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
