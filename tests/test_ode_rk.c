/* test_ode_rk.c - Runge-Kutta methods: orders of the solution, of the error estimate and of dense output; step control,
 * output times and events. */
#include "ode_support.h"

#include "ode/rk.h"

static const hl_system waves = { .n = 2, .rhs = wave };

/* ---- coefficients ---- */

/* Rows sum to c, the end integrates powers of t exactly, errors sum to 0. */
static void test_tableaux(void **state)
{
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++) {
        int stages = m->end + 1 + m->extra;
        CHECK(stages <= HL_RK_STAGES, m->name);
        for (int j = 1; j < stages; j++) {
            double sum = 0;
            for (int i = 0; i < j; i++)
                sum += hl_rk_row(m, j)[i];
            CHECK_NEAR(sum, m->c[j], 1e-14, m->name);
        }
        CHECK(m->c[0] == 0 && m->c[m->end] == 1, m->name);
        for (int p = 0; p < m->order; p++) {
            double sum = 0;
            for (int i = 0; i < m->end; i++)
                sum += hl_rk_row(m, m->end)[i] * (p ? pow(m->c[i], p) : 1);
            CHECK_NEAR(sum, 1. / (p + 1), 1e-14, m->name);
        }
        double sum = 0, sum3 = 0;
        for (int i = 0; i < m->end + m->end_in_error; i++) {
            sum += m->e[i];
            sum3 += m->e3 ? m->e3[i] : 0;
        }
        CHECK_NEAR(sum, 0, 1e-14, m->name);
        CHECK_NEAR(sum3, 0, 1e-14, m->name);
    }
}

/* ---- orders ---- */

/* Error at `inside` of the way (1: at the end) of solves over `length` (< 0: backwards) in equal steps from exact starts, as
 * the root mean square over several starts: a single one may meet a place where the leading term of the error vanishes. */
static double error_of(hl_context *ctx, const char *method, size_t steps, double length, double inside)
{
    enum { STARTS = 8 };
    double strength = inside < 1 ? .2 : 1; /* weak: or the error of the step's end hides that of dense output */
    hl_system system = { .n = 2, .rhs = wave, .user = &strength };
    hl_ode *ode = make_ode(ctx, &system, &(hl_ode_options){ .method = method, .steps = steps });
    double sum = 0;
    for (int r = 0; r < STARTS; r++) {
        double t = .4 * r + (length < 0), y[2], exact[2], out[4], times[2] = { t + inside * length, t + length };
        size_t count = inside < 1 ? 2 : 1;
        wave_at(t, y);
        CHECK_OK(ctx, hl_ode_solve_at(ode, 1, &t, count, times, y, out, NULL));
        assert_true(t == times[count - 1]);
        wave_at(times[0], exact);
        sum += pow(out[0] - exact[0], 2) + pow(out[1] - exact[1], 2);
    }
    hl_ode_free(ode);
    return sqrt(sum / STARTS);
}

/* High orders start coarse, or rounding hides them. */
static const struct {
    const char *name;
    int order;
    size_t steps;
} expected[] = { { "euler", 1, 512 }, { "midpoint", 2, 64 }, { "heun", 2, 64 },  { "rk4", 4, 32 },   { "bosh3", 3, 32 },
                 { "dopri5", 5, 32 }, { "tsit5", 5, 64 },    { "calvo6", 6, 8 }, { "dopri8", 8, 5 }, { "ab2", 2, 128 },
                 { "ab3", 3, 128 },   { "ab4", 4, 256 },     { "ab5", 5, 64 } };
enum { METHODS = sizeof expected / sizeof *expected, POINTS = 3 };

static void test_orders(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++)
        for (int back = 0; back < 2; back++) {
            double error[POINTS];
            for (int i = 0; i < POINTS; i++)
                error[i] = error_of(ctx, expected[m].name, expected[m].steps << i, back ? -1 : 1, 1);
            CHECK_NEAR(fit_order(error, POINTS), expected[m].order, .2, expected[m].name);
        }
    test_context_free(ctx, NULL);
}

static double coarse_step(const hl_rk *m)
{
    return m->order < 4 ? .02 : m->order < 8 ? .06 : .3;
}

/* One step of size h from an exact start: the error inside it is O(h^(1 + order)) of the lesser order. */
static void test_dense_orders(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++)
        for (int back = 0; back < 2; back++) {
            double error[POINTS], h = coarse_step(m);
            int order = m->order < m->dense_order ? m->order : m->dense_order;
            for (int i = 0; i < POINTS; i++, h /= 2)
                error[i] = error_of(ctx, m->name, 1, back ? -h : h, .37);
            CHECK_NEAR(fit_order(error, POINTS), order + 1, .2, m->name);
        }
    test_context_free(ctx, NULL);
}

/* The same for the estimate of the step's error, read off a step that a wide tolerance accepts. */
static void test_error_orders(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++) {
        double error[POINTS], h = coarse_step(m);
        for (int i = 0; i < POINTS; i++, h /= 2) {
            hl_ode *ode = make_ode(ctx, &waves, &(hl_ode_options){ .method = m->name, .atol = 1, .first_step = h });
            double t = .4, y[2];
            hl_ode_row info;
            wave_at(t, y);
            CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, .4 + h, y, &info));
            assert_int_equal(info.steps, 1);
            error[i] = info.error;
            hl_ode_free(ode);
        }
        CHECK_NEAR(fit_order(error, POINTS), m->error_order + 1, .2, m->name);
    }
    test_context_free(ctx, NULL);
}

/* Equal steps cost what they should: nothing is evaluated that is not used. */
static void test_fixed_cost(void **state)
{
    static const struct {
        const char *name;
        size_t evaluations;
    } cost[] = {
        { "euler", 10 }, { "midpoint", 20 }, { "rk4", 40 }, { "dopri5", 60 }, { "dopri8", 120 }, { "ab2", 13 }
    };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < sizeof cost / sizeof *cost; m++) {
        hl_ode *ode = make_ode(ctx, &waves, &(hl_ode_options){ .method = cost[m].name, .steps = 10 });
        double t = 0, y[2] = { 0, 1 };
        hl_ode_row info;
        CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 1, y, &info));
        assert_int_equal(info.evaluations, cost[m].evaluations);
        assert_int_equal(info.steps, 10);
        assert_int_equal(hl_ode_report(ode).forward.f, cost[m].evaluations);
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* ---- error control ---- */

/* The error follows the tolerance, and the work grows as an order-q method's should. */
static void test_tolerances(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++)
        for (int back = 0; back < 2; back++) {
            size_t steps[3];
            int k = 0, finest = m->order < 3 ? 5 : 9;
            for (int digits = finest - 2; digits <= finest; digits++, k++) {
                double tol = pow(10, -digits), t = back ? 3 : -.5, y[2], exact[2];
                hl_ode *ode = make_ode(ctx, &waves, &(hl_ode_options){ .method = m->name, .rtol = tol, .atol = tol });
                hl_ode_row info;
                wave_at(t, y);
                CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, back ? -.5 : 1.5, y, &info));
                wave_at(t, exact);
                CHECK_LE(fmax(fabs(y[0] - exact[0]), fabs(y[1] - exact[1])), (m->order < 2 ? 3000 : 100) * tol,
                         m->name);
                CHECK_LE((double)info.rejected, 3 + .25 * (double)info.steps, m->name);
                assert_int_equal(info.status, HL_OK);
                steps[k] = info.steps;
                hl_ode_free(ode);
            }
            double growth = log10((double)steps[2] / (double)steps[0]) / 2 * (m->error_order + 1);
            CHECK_NEAR(growth, 1, .35, m->name);
        }
    test_context_free(ctx, NULL);
}

/* A step is accepted if its error is at most the tolerance, and tried again if it is more. */
static void test_acceptance(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++) {
        double error = 1;
        for (int k = 0; k < 3; k++) {
            hl_ode_options o = { .method = m->name, .rtol = 1e-300, .first_step = .5 };
            o.atol = k == 0 ? 1e3 : k == 1 ? error * 1.01 : error / 1.01;
            hl_ode *ode = make_ode(ctx, &waves, &o);
            double t = 0, y[2] = { .3, 1.2 };
            hl_ode_row info;
            CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, .5, y, &info));
            assert_true((info.rejected > 0) == (k == 2) && (info.steps == 1) == (k < 2));
            error = k == 0 ? info.error * 1e3 : error;
            hl_ode_free(ode);
        }
    }
    test_context_free(ctx, NULL);
}

/* first_step and max_step are kept; steps are counted. */
static void test_step_options(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_ode *ode = make_ode(ctx, &waves, &(hl_ode_options){ .rtol = 1e-2, .max_step = .125, .first_step = .125 });
    double t = 0, y[2] = { 0, 1 };
    hl_ode_row info;
    (void)state;
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 1, y, &info));
    assert_int_equal(info.steps, 8);
    assert_int_equal(info.evaluations, 1 + 8 * 6);
    assert_int_equal(hl_ode_report(ode).forward.steps, 8);
    hl_ode_reset(ode);
    assert_int_equal(hl_ode_report(ode).forward.f, 0);
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

static int drift(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++)
        dy[r] = cos(at->y[r]);
    return 0;
}

/* Far from t = 0, where small steps vanish; over a long way from a start that is at rest; over next to nothing. */
static void test_scales(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = { .n = 1, .rhs = drift };
    const double from[] = { 1e12, 0, -1e12, 1 }, to[] = { 1e12 + 8, 1e4, -1e12 - 8, 1 + 4e-16 };
    (void)state;
    for (int k = 0; k < 4; k++) {
        hl_ode *ode = make_ode(ctx, &system, &(hl_ode_options){ .max_evaluations = 100000 });
        double t = from[k], y = k == 1 ? asin(1) : 0, end = k == 1 ? asin(1) : k == 3 ? 0 : copysign(1.57, to[k]);
        CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, to[k], &y, NULL));
        assert_true(t == to[k]);
        CHECK_NEAR(y, end, 2e-3, "scales of time");
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* A tolerance finer than f's rounding is said to be so, a value left out by its weight excepted. */
static void test_imprecise(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system coarse = { .n = 2, .rhs = wave, .rounding = 6e-8 };
    double weights[2] = { 0, 0 };
    (void)state;
    for (int k = 0; k < 3; k++) {
        hl_ode_options o = { .rtol = k == 1 ? 1e-5 : 1e-8, .atol = 1e-12, .weights = k == 2 ? weights : NULL };
        hl_ode *ode = make_ode(ctx, &coarse, &o);
        double t = .5, y[2];
        wave_at(t, y);
        CHECK_STATUS(ctx, hl_ode_solve(ode, 1, &t, 1, y, NULL), k == 0 ? HL_IMPRECISE : HL_OK);
        assert_true(t == 1);
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* ---- output times ---- */

/* Dense output keeps the tolerance, the last time is the solve's own end, times may repeat and may be the start. */
static void test_output_times(void **state)
{
    enum { COUNT = 60 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++)
        for (int back = 0; back < 2; back++) {
            double tol = m->order < 3 ? 1e-5 : 1e-8, from = back ? 1.5 : -.5, to = back ? -.5 : 1.5;
            hl_ode_options o = { .method = m->name, .rtol = tol, .atol = tol };
            hl_ode *ode = make_ode(ctx, &waves, &o);
            double t = from, y[2], times[COUNT], out[COUNT][2], alone[2], exact[2];
            for (int i = 0; i < COUNT; i++)
                times[i] = i == COUNT - 1 ? to : from + (to - from) * (i / 2 * 2) / (COUNT - 1);
            wave_at(from, y);
            wave_at(from, alone);
            CHECK_OK(ctx, hl_ode_solve_at(ode, 1, &t, COUNT, times, y, out[0], NULL));
            for (int i = 0; i < COUNT; i++) {
                wave_at(times[i], exact);
                CHECK_NEAR(out[i][0], exact[0], (m->order < 2 ? 3000 : 200) * tol, m->name);
                CHECK_NEAR(out[i][1], exact[1], (m->order < 2 ? 3000 : 200) * tol, m->name);
            }
            t = from;
            CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, to, alone, NULL));
            assert_memory_equal(y, alone, sizeof y);
            assert_memory_equal(out[COUNT - 1], alone, sizeof y);
            wave_at(from, exact);
            assert_memory_equal(out[0], exact, sizeof exact);
            hl_ode_free(ode);
        }
    test_context_free(ctx, NULL);
}

/* Rows that begin at different times; one of them is there already. */
static void test_start_times(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_ode *ode = make_ode(ctx, &waves, &(hl_ode_options){ .rtol = 1e-9, .atol = 1e-9 });
    double t[3] = { -.5, 1, 1.5 }, y[3][2], out[2][3][2], exact[2];
    hl_ode_row info[3];
    (void)state;
    for (int r = 0; r < 3; r++)
        wave_at(t[r], y[r]);
    CHECK_OK(ctx, hl_ode_solve(ode, 3, t, 1, y[0], info));
    for (int r = 0; r < 3; r++) {
        wave_at(1, exact);
        assert_true(t[r] == 1);
        CHECK_NEAR(y[r][0], exact[0], 1e-7, "rows that begin apart");
    }
    assert_int_equal(info[1].evaluations, 0);
    assert_memory_equal(y[1], exact, sizeof exact);
    CHECK_OK(ctx, hl_ode_solve_at(ode, 3, t, 2, (double[]){ 1, 1 }, y[0], out[0][0], info));
    assert_memory_equal(out[0], y, sizeof y);
    assert_memory_equal(out[1], y, sizeof y);
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* ---- events ---- */

/* y_0 - level of the row, level being user data. */
static int level(void *user, const hl_rows *at, double *value)
{
    const double *levels = user;
    for (size_t r = 0; r < at->count; r++)
        value[r] = at->y[2 * r] - levels[at->index[r]];
    return 0;
}

static void test_events(void **state)
{
    static double levels[3] = { .5, 7, -.3 }; /* the second is never met */
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const hl_rk *m = hl_rk_methods; m->name; m++)
        for (int back = 0; back < 2; back++) {
            double tol = m->order < 3 ? 1e-4 : 1e-8, to = back ? -1.2 : 1.2, slack = (m->order < 2 ? 1000 : 100) * tol;
            hl_ode_options o = { .method = m->name, .rtol = tol, .atol = tol, .event = level, .event_user = levels };
            hl_ode *ode = make_ode(ctx, &waves, &o);
            double t[3], y[3][2], out[2][3][2], times[2] = { to * .4, to };
            hl_ode_row info[3];
            for (int r = 0; r < 3; r++)
                wave_at(t[r] = back ? 1.2 : -1.2, y[r]);
            CHECK_OK(ctx, hl_ode_solve_at(ode, 3, t, 2, times, y[0], out[0][0], info));
            CHECK_NEAR(t[0], asin(.5), slack, m->name);
            CHECK_NEAR(t[2], asin(-.3), slack, m->name);
            CHECK_NEAR(y[0][0], .5, 1e-12, m->name);
            CHECK_NEAR(y[2][0], -.3, 1e-12, m->name);
            assert_true(t[1] == to && info[1].status == HL_OK && info[0].status == HL_STOPPED);
            for (int r = 0; r < 3; r++) {
                bool reached = r == 1 || (back ? times[0] > t[r] : times[0] < t[r]);
                assert_true(reached == !isnan(out[0][r][0]));
                assert_true((r == 1) == !isnan(out[1][r][1]));
            }
            CHECK_OK(ctx, hl_ode_solve(ode, 3, t, to, y[0], info)); /* goes on without meeting the event again */
            assert_true(t[0] == to && t[2] == to && info[0].status == HL_OK && info[2].status == HL_OK);
            hl_ode_free(ode);
        }
    test_context_free(ctx, NULL);
}

/* Of two hundred events at random places, each to the tolerance; equal steps have events as well. */
static void test_many_events(void **state)
{
    enum { ROWS = 200 };
    static double levels[ROWS], t[ROWS], y[ROWS][2];
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int k = 0; k < 3; k++) {
        hl_ode_options o = { .method = k == 2 ? "ab4" : "dopri5", .rtol = 1e-9, .atol = 1e-9, .steps = k ? 300 : 0 };
        o.event = level;
        o.event_user = levels;
        hl_ode *ode = make_ode(ctx, &waves, &o);
        fill_uniform_f64(levels, ROWS, -.8, .8, 5);
        for (int r = 0; r < ROWS; r++)
            wave_at(t[r] = -1.2, y[r]);
        CHECK_OK(ctx, hl_ode_solve(ode, ROWS, t, 1.2, y[0], NULL));
        for (int r = 0; r < ROWS; r++) {
            CHECK_NEAR(t[r], asin(levels[r]), 1e-7, "event time");
            CHECK_NEAR(y[r][1], cos(t[r]), 1e-7, "state at the event");
        }
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* An event that is 0 at the start is met when it comes back to 0. */
static void test_event_at_start(void **state)
{
    static double zero = 0;
    hl_context *ctx = test_context(NULL, 1);
    hl_ode_options o = { .rtol = 1e-9, .atol = 1e-9, .event = level, .event_user = &zero };
    hl_ode *ode = make_ode(ctx, &waves, &o);
    double t = 0, y[2] = { 0, 1 };
    hl_ode_row info;
    (void)state;
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 4, y, &info));
    assert_int_equal(info.status, HL_STOPPED);
    CHECK_NEAR(t, acos(-1), 1e-6, "the second zero");
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

static int failing_event(void *user, const hl_rows *at, double *value)
{
    for (size_t r = 0; r < at->count; r++)
        value[r] = at->t[r] > .3 ? NAN : 1;
    return at->t[0] > .3 ? *(int *)user : 0;
}

static void test_bad_events(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int value = -3; value < 2; value += 2) {
        int answer = value == -1 ? 0 : value;
        hl_ode *ode = make_ode(ctx, &waves, &(hl_ode_options){ .event = failing_event, .event_user = &answer });
        double t = 0, y[2] = { 0, 1 };
        hl_status status = hl_ode_solve(ode, 1, &t, 1, y, NULL);
        assert_int_equal(status, answer < 0 ? HL_ERR_CALLBACK : answer ? HL_ERR_STEP : HL_ERR_NOT_FINITE);
        assert_int_equal(hl_ode_report(ode).callback, answer < 0 ? answer : 0);
        CHECK_LE(t, .3, "the event is good until .3");
        CHECK_NEAR(y[0], sin(t), 1e-5, "the last accepted step");
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tableaux),       cmocka_unit_test(test_orders),     cmocka_unit_test(test_dense_orders),
        cmocka_unit_test(test_error_orders),   cmocka_unit_test(test_fixed_cost), cmocka_unit_test(test_tolerances),
        cmocka_unit_test(test_step_options),   cmocka_unit_test(test_imprecise),  cmocka_unit_test(test_acceptance),
        cmocka_unit_test(test_event_at_start), cmocka_unit_test(test_scales),     cmocka_unit_test(test_output_times),
        cmocka_unit_test(test_start_times),    cmocka_unit_test(test_events),     cmocka_unit_test(test_many_events),
        cmocka_unit_test(test_bad_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
