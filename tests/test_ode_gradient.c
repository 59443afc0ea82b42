/* test_ode_gradient.c - gradients of solves.
 *
 * The check of HL_REPLAY is exact: a tangent v, v' = J v + df/dp dp, integrated beside y by the same steps is the derivative of
 * the discrete solution along (v, dp), so <gy(t1), v(t1)> = <gy(t0), v(t0)> + gp . dp to rounding. That the steps are the same
 * is seen to by error weights of zero for the tangents. */
#include "ode_support.h"

#include "ode/tableau.h"

enum { ROWS = 9, N = 3, P = 4 };

/* ---- a system with parameters, and its tangent ---- */

typedef struct model {
    double p[P], dp[P];
    double limit; /* of |y_0|, beyond which f is not defined */
} model;

static const model some = { { .7, -1.1, .4, 1.3 }, { .3, -.2, .5, .9 }, INFINITY };

/* f of one row; a row's index makes it harder: it is data of its own. */
static void f_row(const double *p, size_t row, double t, const double *y, double *dy)
{
    double speed = 1 + 3 * (double)(row % 4);
    dy[0] = speed * (p[0] * sin(y[1]) - sin(y[0]) * cos(y[2]) + cos(t) * p[1]);
    dy[1] = speed * (p[2] * cos(y[0]) - sin(y[1]) + t * sin(y[2]));
    dy[2] = sin(p[3] * t) * sin(y[0]) - p[3] * sin(y[2]) + p[1] * y[1];
}

static void jacobian(const double *p, size_t row, double t, const double *y, double j[N][N], double jp[N][P])
{
    double s = 1 + 3 * (double)(row % 4);
    const double jacobian[N][N] = { { -s * cos(y[0]) * cos(y[2]), s * p[0] * cos(y[1]), s * sin(y[0]) * sin(y[2]) },
                                    { -s * p[2] * sin(y[0]), -s * cos(y[1]), s * t * cos(y[2]) },
                                    { sin(p[3] * t) * cos(y[0]), p[1], -p[3] * cos(y[2]) } };
    const double parameters[N][P] = { { s * sin(y[1]), s * cos(t), 0, 0 },
                                      { 0, 0, s * cos(y[0]), 0 },
                                      { 0, y[1], 0, t * cos(p[3] * t) * sin(y[0]) - sin(y[2]) } };
    memcpy(j, jacobian, sizeof jacobian);
    memcpy(jp, parameters, sizeof parameters);
}

static int f(void *user, const hl_rows *at, double *dy)
{
    const model *m = user;
    for (size_t r = 0; r < at->count; r++) {
        f_row(m->p, at->index[r], at->t[r], at->y + N * r, dy + N * r);
        if (fabs(at->y[N * r]) > m->limit)
            dy[N * r] = NAN;
    }
    return 0;
}

static int f_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    const model *m = user;
    for (size_t r = 0; r < at->count; r++, w += N, gy += N) {
        double j[N][N], jp[N][P];
        jacobian(m->p, at->index[r], at->t[r], at->y + N * r, j, jp);
        for (int k = 0; k < N; k++)
            gy[k] = w[0] * j[0][k] + w[1] * j[1][k] + w[2] * j[2][k];
        for (int k = 0; gparam && k < P; k++)
            gparam[k] += w[0] * jp[0][k] + w[1] * jp[1][k] + w[2] * jp[2][k];
    }
    return 0;
}

/* Rows of 2 N values: y and v. */
static int f_tangent(void *user, const hl_rows *at, double *dy)
{
    const model *m = user;
    for (size_t r = 0; r < at->count; r++, dy += 2 * N) {
        const double *y = at->y + 2 * N * r, *v = y + N;
        double j[N][N], jp[N][P];
        f_row(m->p, at->index[r], at->t[r], y, dy);
        jacobian(m->p, at->index[r], at->t[r], y, j, jp);
        for (int i = 0; i < N; i++) {
            dy[N + i] = j[i][0] * v[0] + j[i][1] * v[1] + j[i][2] * v[2];
            for (int k = 0; k < P; k++)
                dy[N + i] += jp[i][k] * m->dp[k];
        }
    }
    return 0;
}

/* Rows 2, 5 and 8 end at an event, or all of them. */
static int event_of(const hl_rows *at, size_t n, bool all, double *value)
{
    for (size_t r = 0; r < at->count; r++)
        value[r] = all || at->index[r] % 3 == 2 ? .45 - at->t[r] + .05 * sin(at->y[n * r + 1]) : 1;
    return 0;
}

static int event(void *user, const hl_rows *at, double *value)
{
    return event_of(at, N, user, value);
}

static int event_tangent(void *user, const hl_rows *at, double *value)
{
    return event_of(at, 2 * N, user, value);
}

/* ---- one solve and its gradient ---- */

typedef struct result {
    double t[ROWS], y[ROWS][N], gy[ROWS][N], gp[P];
    hl_ode_row info[ROWS];
    hl_ode_summary summary;
} result;

static void start_values(double *y, double *t, double from)
{
    fill_normal_f64(y, ROWS * N, 11);
    for (size_t r = 0; r < ROWS; r++) {
        t[r] = from + .01 * (double)(r % 2);
        for (int i = 0; i < N; i++)
            y[N * r + (size_t)i] *= .5;
    }
}

static hl_system plain_system(const model *m)
{
    return (hl_system){ .n = N, .rhs = f, .vjp = f_vjp, .n_params = P, .user = (void *)(uintptr_t)m };
}

static result differentiate(hl_context *ctx, const hl_ode_options *options, double from, double to)
{
    model m = some;
    m.limit = options->first_step > 0 ? 3 : INFINITY; /* the first steps tried are far too long */
    hl_system system = plain_system(&m);
    hl_ode *ode = make_ode(ctx, &system, options);
    result a = { .gp = { 1, 2, 3, 4 } };
    start_values(a.y[0], a.t, from);
    CHECK_OK(ctx, hl_ode_solve(ode, ROWS, a.t, to, a.y[0], a.info));
    fill_normal_f64(a.gy[0], ROWS * N, 12);
    CHECK_OK(ctx, hl_ode_gradient(ode, a.gy[0], a.gp));
    for (int k = 0; k < P; k++)
        a.gp[k] -= k + 1; /* it is added to what is there */
    a.summary = hl_ode_report(ode);
    hl_ode_free(ode);
    return a;
}

/* <gy(t1), v(t1)> against <gy(t0), v(t0)> + gp . dp; also that the tangent's solve took the same steps. */
static void check_exact(hl_context *ctx, const hl_ode_options *options, const result *a, double from, double to,
                        double tolerance, const char *label)
{
    static const double weights[2 * N] = { 1, 1, 1 };
    hl_system system = { .n = 2 * N, .rhs = f_tangent, .user = (void *)(uintptr_t)&some };
    hl_ode_options o = *options;
    double t[ROWS], y[ROWS][2 * N], v[ROWS][N], start[ROWS][N], gy[ROWS][N], end = 0, begin = 0;
    hl_ode_row info[ROWS];
    o.gradient = HL_NO_GRADIENT;
    o.weights = weights;
    o.event = options->event ? event_tangent : NULL;
    start_values(start[0], t, from);
    fill_normal_f64(v[0], ROWS * N, 13);
    fill_normal_f64(gy[0], ROWS * N, 12);
    for (size_t r = 0; r < ROWS; r++) {
        memcpy(y[r], start[r], sizeof start[r]);
        memcpy(y[r] + N, v[r], sizeof v[r]);
    }
    hl_ode *ode = make_ode(ctx, &system, &o);
    CHECK_OK(ctx, hl_ode_solve(ode, ROWS, t, to, y[0], info));
    hl_ode_free(ode);
    for (size_t r = 0; r < ROWS; r++) {
        assert_int_equal(info[r].steps, a->info[r].steps);
        assert_memory_equal(y[r], a->y[r], sizeof a->y[r]);
        for (int i = 0; i < N; i++) {
            end += gy[r][i] * y[r][N + i];
            begin += a->gy[r][i] * v[r][i];
        }
    }
    for (int k = 0; k < P; k++)
        begin += a->gp[k] * some.dp[k];
    CHECK_NEAR(begin, end, tolerance * fabs(end), label);
}

/* ---- replay ---- */

static void test_replay(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++)
        for (int k = 0; k < 8; k++) {
            bool back = k % 2, equal = k / 2 % 2;
            double from = back ? 1.1 : -.2, to = back ? -.2 : 1.1;
            hl_ode_options o = {
                .method = m->name, .rtol = m->order < 3 ? 1e-3 : 1e-7, .atol = m->order < 3 ? 1e-3 : 1e-7, .rows = 10
            };
            o.gradient = HL_REPLAY;
            o.checkpoint_bytes = 1 << 20;
            o.steps = equal ? 17 : 0;
            o.event = k >= 4 ? event : NULL;
            result a = differentiate(ctx, &o, from, to);
            check_exact(ctx, &o, &a, from, to, 1e-11, m->name);
            size_t fewest = SIZE_MAX, most = 0, stopped = 0;
            for (size_t r = 0; r < ROWS; r++) {
                fewest = a.info[r].steps < fewest ? a.info[r].steps : fewest;
                most = a.info[r].steps > most ? a.info[r].steps : most;
                stopped += a.info[r].status == HL_STOPPED;
            }
            assert_true(equal || fewest < most);
            assert_true((stopped > 0) == (k >= 4));
            if (k < 4) /* the record has the slopes of all stages */
                assert_int_equal(a.summary.backward.f, 0);
        }
    test_context_free(ctx, NULL);
}

/* And against differences of solves in equal steps, which know nothing of tangents. */
static void test_replay_differences(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_ode_options o = {
        .method = "tsit5", .steps = 12, .gradient = HL_REPLAY, .rows = ROWS, .checkpoint_bytes = 1 << 16
    };
    result a = differentiate(ctx, &o, 0, 1);
    double gy[ROWS][N];
    (void)state;
    fill_normal_f64(gy[0], ROWS * N, 12);
    for (int k = 0; k < P + N; k++) {
        double sum[2] = { 0, 0 }, h = 1e-5;
        for (int side = 0; side < 2; side++) {
            model m = some;
            double t[ROWS], y[ROWS][N];
            start_values(y[0], t, 0);
            *(k < P ? &m.p[k] : &y[4][k - P]) += side ? h : -h;
            hl_system system = plain_system(&m);
            hl_ode *ode = make_ode(ctx, &system, &(hl_ode_options){ .method = "tsit5", .steps = 12 });
            CHECK_OK(ctx, hl_ode_solve(ode, ROWS, t, 1, y[0], NULL));
            for (size_t i = 0; i < ROWS * N; i++)
                sum[side] += gy[i / N][i % N] * y[i / N][i % N];
            hl_ode_free(ode);
        }
        CHECK_NEAR(k < P ? a.gp[k] : a.gy[4][k - P], (sum[1] - sum[0]) / (2 * h), 1e-8, "differences");
    }
    test_context_free(ctx, NULL);
}

/* However little memory there is: the same to the bit for y, to rounding for the parameters, whose order of summation changes. */
static void test_short_memory(void **state)
{
    static const size_t bytes[] = { 1, 3000, 10000, 20000, 50000 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int k = 0; k < 5; k++) {
        hl_ode_options o = { .method = k == 1 ? "dopri8" : "bosh3",
                             .rtol = k ? 1e-6 : 1e-2,
                             .atol = k ? 0 : 1e-1,
                             .rows = 12,
                             .gradient = HL_REPLAY };
        o.steps = k == 2 ? 400 : 0;
        o.event = k >= 3 ? event : NULL;
        o.event_user = k == 4 ? &ctx : NULL; /* all rows */
        o.first_step = k == 0 ? 1.2 : 0;     /* rejected again and again */
        o.max_step = k == 1 || k >= 3 ? .002 : 0;
        o.checkpoint_bytes = 16 << 20;
        result full = differentiate(ctx, &o, 0, 1.3);
        for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++) {
            o.checkpoint_bytes = bytes[b];
            result a = differentiate(ctx, &o, 0, 1.3);
            assert_memory_equal(a.gy, full.gy, sizeof a.gy);
            CHECK_LE(relative_error_f64(a.gp, full.gp, P), 1e-12, "parameters");
            if (b == 0 && k) /* steps were made again indeed */
                CHECK_LE(1.5 * (double)full.summary.backward.f, (double)a.summary.backward.f, "evaluations");
        }
    }
    test_context_free(ctx, NULL);
}

/* The least memory costs a few times the work, not a hundred times. */
static void test_least_memory(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_ode_options o = { .method = "rk4", .steps = 1000, .rows = 12, .gradient = HL_REPLAY, .checkpoint_bytes = 1 };
    (void)state;
    result a = differentiate(ctx, &o, 0, 1.3);
    CHECK_LE((double)a.summary.backward.steps, 5 * (double)a.summary.forward.steps, "steps made again");
    test_context_free(ctx, NULL);
}

/* The gradient may be asked for again; without parameters; of rows that had nothing to do; and not before a solve. */
static void test_again(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = plain_system(&some);
    hl_ode *ode =
        make_ode(ctx, &system, &(hl_ode_options){ .gradient = HL_REPLAY, .rows = ROWS, .checkpoint_bytes = 9000 });
    double t[ROWS], y[ROWS][N], first[ROWS][N], again[ROWS][N], gp[2][P] = { { 0 } };
    (void)state;
    fill_normal_f64(first[0], ROWS * N, 12);
    memcpy(again, first, sizeof first);
    CHECK_STATUS(ctx, hl_ode_gradient(ode, first[0], NULL), HL_ERR_INVALID);
    start_values(y[0], t, 0);
    t[3] = 1;
    CHECK_OK(ctx, hl_ode_solve(ode, ROWS, t, 1, y[0], NULL));
    CHECK_OK(ctx, hl_ode_gradient(ode, first[0], gp[0]));
    CHECK_OK(ctx, hl_ode_gradient(ode, again[0], gp[1]));
    assert_memory_equal(first, again, sizeof first);
    assert_memory_equal(gp[0], gp[1], sizeof gp[0]);
    fill_normal_f64(again[0], ROWS * N, 12);
    assert_memory_equal(first[3], again[3], sizeof first[3]);
    CHECK_OK(ctx, hl_ode_gradient(ode, again[0], NULL));
    assert_memory_equal(first, again, sizeof first);
    CHECK_STATUS(ctx, hl_ode_solve(ode, ROWS + 1, t, 1, y[0], NULL), HL_ERR_INVALID);
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

static int bad_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    f_vjp((void *)(uintptr_t)&some, at, w, gy, gparam);
    if (*(int *)user == 0)
        gy[0] = NAN;
    return *(int *)user;
}

static int some_f(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    return f((void *)(uintptr_t)&some, at, dy);
}

static void test_bad_vjp(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int kind = HL_REPLAY; kind <= HL_ADJOINT_REINTEGRATED; kind += 2)
        for (int value = -5; value < 3; value += value ? 5 : 1) {
            hl_system system = { .n = N, .rhs = some_f, .vjp = bad_vjp, .user = &value };
            hl_ode *ode = make_ode(ctx, &system, &(hl_ode_options){ .gradient = (hl_ode_gradient_kind)kind });
            double t = 0, y[N] = { .1, .2, .3 }, gy[N] = { 1, 1, 1 };
            CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 1, y, NULL));
            hl_status status = hl_ode_gradient(ode, gy, NULL);
            assert_true(value < 0 ? status == HL_ERR_CALLBACK : status == HL_ERR_NOT_FINITE || status == HL_ERR_STEP);
            assert_int_equal(hl_ode_report(ode).callback, value < 0 ? value : 0);
            hl_ode_free(ode);
        }
    test_context_free(ctx, NULL);
}

/* ---- the adjoint, integrated anew ---- */

/* On a mild problem both kinds agree to the tolerance, and the drift is small. */
static void test_reintegrated(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = plain_system(&some);
    double gy[2][ROWS][N], gp[2][P] = { { 0 } };
    (void)state;
    for (int k = 0; k < 2; k++) {
        hl_ode_options o = { .rtol = 1e-9, .atol = 1e-9, .rows = 20, .checkpoint_bytes = 1 << 20 };
        o.gradient = k ? HL_ADJOINT_REINTEGRATED : HL_REPLAY;
        hl_ode *ode = make_ode(ctx, &system, &o);
        double t[ROWS], y[ROWS][N];
        start_values(y[0], t, 0);
        for (size_t r = 0; r < ROWS; r++)
            t[r] = 0;
        fill_normal_f64(gy[k][0], ROWS * N, 12);
        CHECK_OK(ctx, hl_ode_solve(ode, ROWS, t, .5, y[0], NULL));
        CHECK_OK(ctx, hl_ode_gradient(ode, gy[k][0], gp[k]));
        hl_ode_summary report = hl_ode_report(ode);
        CHECK_LE(report.drift, k ? 1e4 : 0, "drift");
        assert_true((report.drift > 0) == (k == 1) && report.backward.vjp > 0 && report.backward.steps > 0);
        hl_ode_free(ode);
    }
    CHECK_LE(relative_error_f64(gy[1][0], gy[0][0], ROWS * N), 1e-6, "to y");
    CHECK_LE(relative_error_f64(gp[1], gp[0], P), 1e-6, "to parameters");
    test_context_free(ctx, NULL);
}

static int stiff(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    for (size_t i = 0; i < at->count; i++)
        dy[i] = -25 * (at->y[i] - sin(at->t[i]));
    return 0;
}

static int stiff_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    (void)user;
    (void)gparam;
    for (size_t i = 0; i < at->count; i++)
        gy[i] = -25 * w[i];
    return 0;
}

/* A stiff problem shows in the drift; rows that do not go together are refused. */
static void test_drift(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = { .n = 1, .rhs = stiff, .vjp = stiff_vjp };
    hl_ode *ode = make_ode(ctx, &system, &(hl_ode_options){ .gradient = HL_ADJOINT_REINTEGRATED });
    double t[2] = { 0, 0 }, y[2] = { 1, 2 }, gy[2] = { 1, 1 };
    (void)state;
    CHECK_STATUS(ctx, hl_ode_gradient(ode, gy, NULL), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_ode_solve(ode, 2, t, 1, y, NULL));
    CHECK_OK(ctx, hl_ode_gradient(ode, gy, NULL));
    CHECK_LE(1e6, hl_ode_report(ode).drift, "drift");
    t[1] = .5;
    CHECK_OK(ctx, hl_ode_solve(ode, 2, t, 1.5, y, NULL));
    CHECK_STATUS(ctx, hl_ode_gradient(ode, gy, NULL), HL_ERR_UNSUPPORTED);
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

static int blow_up(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++)
        dy[r] = at->y[r] * at->y[r];
    return 0;
}

static int blow_up_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    (void)user, (void)gparam;
    for (size_t r = 0; r < at->count; r++)
        gy[r] = 2 * at->y[r] * w[r];
    return 0;
}

/* There is no gradient of a solve that failed, nor of an earlier one after a solve that was refused. */
static void test_no_solve(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = { .n = 1, .rhs = blow_up, .vjp = blow_up_vjp };
    hl_ode *ode = make_ode(ctx, &system, &(hl_ode_options){ .gradient = HL_REPLAY });
    double t[2] = { 0 }, y[2] = { -1, 1 }, gy[2] = { 1, 1 };
    (void)state;
    CHECK_STATUS(ctx, hl_ode_gradient(ode, gy, NULL), HL_ERR_INVALID);
    assert_true(hl_ode_solve(ode, 2, t, 2, y, NULL) < 0); /* row 1 ends at t = 1 */
    CHECK_STATUS(ctx, hl_ode_gradient(ode, gy, NULL), HL_ERR_INVALID);
    t[0] = 0;
    y[0] = -1;
    CHECK_OK(ctx, hl_ode_solve(ode, 1, t, 1, y, NULL));
    CHECK_OK(ctx, hl_ode_gradient(ode, gy, NULL));
    y[0] = NAN;
    CHECK_STATUS(ctx, hl_ode_solve(ode, 1, t, 2, y, NULL), HL_ERR_NOT_FINITE);
    CHECK_STATUS(ctx, hl_ode_gradient(ode, gy, NULL), HL_ERR_INVALID);
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_solve),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_replay_differences),
        cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_least_memory),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_bad_vjp),
        cmocka_unit_test(test_reintegrated),
        cmocka_unit_test(test_drift),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
