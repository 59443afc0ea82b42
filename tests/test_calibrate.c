/* test_calibrate.c - a solver calibrated to a model: accurate enough, cheaper than the default, the same for any number of
 * threads, kept in files; and the first step that it starts with, on stiff problems too. */
#include "net_support.h"

#include "hollow/hollow.h"
#include "learn/density.h"

enum { ROWS = 300, D = 3, C = 1 };

/* A flow that bends: weights twice as large as usual. */
static hl_density *make_model(hl_context *ctx, const char *kind)
{
    hl_flow_spec spec = { .kind = kind, .net = { .dim = D, .context = C, .hidden = 12, .width = 12 } };
    hl_density_column columns[D + C] = { { "a", 1, 2 }, { "b", 0, 1 }, { "c", -3, 0.5 }, { "d", 0, 1 } };
    hl_density *model;
    CHECK_OK(ctx, hl_density_create(ctx, &spec, columns, &model));
    CHECK_OK(ctx, hl_flow_init(hl_density_flow(model), 3));
    hl_net *net = hl_flow_net(hl_density_flow(model), 0);
    for (size_t p = 0; p < hl_net_param_count(net); p++)
        for (size_t k = 0; k < param(net, p).size; k++)
            ((float *)param(net, p).values)[k] *= 2;
    return model;
}

static void make_rows(const hl_density *model, double *x, double *c)
{
    for (size_t i = 0; i < ROWS * D; i++) {
        hl_density_column column = hl_density_get_column(model, i % D);
        x[i] = column.mean + column.deviation * hl_random_normal(2, 1, i);
    }
    for (size_t i = 0; i < ROWS * C; i++)
        c[i] = hl_random_normal(2, 2, i);
}

static void test_accuracy(void **state)
{
    static const double limits[] = { 1e-4, 5e-4 /* the default */, 5e-3 };
    static double x[ROWS * D], c[ROWS * C], logp[ROWS], exact[ROWS];
    hl_density_accuracy first[3] = { 0 };
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (int k = 0; k < 3; k++) {
            hl_context *ctx = test_context(NULL, threads);
            hl_density *model = make_model(ctx, NULL);
            hl_flow_solver tight = { .method = "dopri8", .rtol = 3e-7, .atol = 3e-7 };
            make_rows(model, x, c);
            CHECK_OK(ctx, hl_density_set_solver(model, &tight));
            hl_density_logp(model, ROWS, x, c, exact);
            CHECK_OK(ctx, hl_density_calibrate(model, ROWS, x, c, k == 1 ? 0 : limits[k]));
            hl_density_accuracy a = hl_density_get_accuracy(model);
            CHECK(a.typical > 0 && a.typical <= limits[k] && a.worst >= a.typical && a.worst <= 20 * limits[k],
                  "accuracy");
            CHECK_OK(ctx, hl_density_logp(model, ROWS, x, c, logp));
            size_t beyond = 0;
            for (size_t r = 0; r < ROWS; r++) {
                beyond += !(fabs(logp[r] - exact[r]) <= limits[k] + 1e-5);
                CHECK_LE(fabs(logp[r] - exact[r]), 20 * limits[k], "worst");
            }
            CHECK_LE((double)beyond, 0.02 * ROWS, "99 % of the rows, about");
            CHECK(k == 0 || a.evaluations < first[k - 1].evaluations, "less accurate is cheaper");
            if (threads == 1)
                first[k] = a;
            assert_memory_equal(&first[k], &a, sizeof a); /* for any number of threads */
            hl_density_free(model);
            test_context_free(ctx, NULL);
        }
}

/* A file keeps it; a file without it has the old rule for the first step and no key of the new one. */
static void test_files(void **state)
{
    static double x[ROWS * D], c[ROWS * C], logp[2][ROWS];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *model = make_model(ctx, NULL), *back;
    (void)state;
    make_rows(model, x, c);
    for (int calibrated = 0; calibrated < 2; calibrated++) {
        if (calibrated)
            CHECK_OK(ctx, hl_density_calibrate(model, ROWS, x, c, 0));
        size_t size;
        CHECK_OK(ctx, hl_density_write(model, NULL, 0, &size));
        char *bytes = test_malloc(size);
        CHECK_OK(ctx, hl_density_write(model, bytes, size, &size));
        CHECK_OK(ctx, hl_density_read(ctx, bytes, size, &back));
        test_free(bytes);
        hl_flow_solver s = hl_density_solver(model), t = hl_density_solver(back);
        hl_density_accuracy a = hl_density_get_accuracy(model), b = hl_density_get_accuracy(back);
        assert_string_equal(s.method, t.method);
        CHECK(s.rtol == t.rtol && s.atol == t.atol && s.start_error == t.start_error && s.even_steps == t.even_steps &&
                  s.divided == t.divided,
              "solver");
        CHECK(a.typical == b.typical && a.worst == b.worst && a.evaluations == b.evaluations, "accuracy");
        CHECK((s.start_error > 0) == calibrated && (a.evaluations > 0) == calibrated, "only where it was calibrated");
        CHECK_OK(ctx, hl_density_logp(model, ROWS, x, c, logp[0]));
        CHECK_OK(ctx, hl_density_logp(back, ROWS, x, c, logp[1]));
        assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
        hl_density_free(back);
    }
    CHECK_OK(ctx, hl_density_set_solver(model, NULL));
    assert_true(hl_density_get_accuracy(model).evaluations == 0 && hl_density_solver(model).start_error == 0);
    hl_density_free(model);
    test_context_free(ctx, NULL);
}

static int at_once(void *user)
{
    return *(int *)user;
}

static void test_wrong(void **state)
{
    double x[2 * D] = { 0 }, c[2] = { 0 };
    int stop = 0;
    hl_context *ctx;
    (void)state;
    CHECK_OK(NULL, hl_context_create(&(hl_context_options){ .stop = at_once, .user = &stop }, &ctx));
    hl_density *model = make_model(ctx, NULL), *maf = make_model(ctx, "maf");
    CHECK_STATUS(ctx, hl_density_calibrate(model, 0, x, c, 0), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_calibrate(model, 2, x, NULL, 0), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_calibrate(model, 2, x, c, -1), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_calibrate(maf, 2, x, c, 0), HL_ERR_UNSUPPORTED);
    assert_int_equal(hl_density_calibrate(NULL, 2, x, c, 0), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_calibrate(model, 2, x, c, 1e-12), HL_IMPRECISE); /* float32 does not get there */
    check_message(ctx, "no solver reaches");
    assert_string_equal(hl_density_solver(model).method, "dopri5");
    CHECK(hl_density_solver(model).rtol == 1e-5 && hl_density_get_accuracy(model).evaluations > 0, "as it was");
    x[1] = NAN;
    CHECK_STATUS(ctx, hl_density_calibrate(model, 2, x, c, 0), HL_ERR_NOT_FINITE);
    x[1] = 0;
    stop = 1;
    CHECK_STATUS(ctx, hl_density_calibrate(model, 2, x, c, 0), HL_STOPPED);
    CHECK(hl_density_solver(model).rtol == 1e-5, "as it was");
    hl_density_free(model);
    hl_density_free(maf);
    hl_context_free(ctx);
}

static hl_status calibrate(hl_context *ctx, void *user)
{
    hl_flow_spec spec = { .net = {
                              .dim = 2, .features = 2, .hidden = 2, .width = 2, .hidden_layers = 1, .layers = 1 } };
    hl_density_column columns[2] = { { "a", 0, 1 }, { "b", 0, 1 } };
    double x[4] = { 0, 1, 2, 3 };
    hl_density *model = NULL;
    (void)user;
    hl_status status = hl_density_create(ctx, &spec, columns, &model);
    if (status == HL_OK)
        status = hl_density_calibrate(model, 2, x, NULL, 0);
    hl_density_free(model);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(1, calibrate, NULL);
}

/* hl_density_fit calibrates its model unless the user says how to solve it. */
static void test_fit(void **state)
{
    static const char *const wishes[][2] = { { NULL, NULL }, { "rtol", "1e-4" }, { "calibrate", "off" } };
    double x[200 * 2];
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t i = 0; i < 400; i++)
        x[i] = hl_random_normal(4, 1, i);
    for (int k = 0; k < 3; k++) {
        hl_settings *settings;
        hl_density *model = NULL;
        hl_density_data data = { .dim = 2, .train = { .rows = 200, .x = x } };
        CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &settings));
        CHECK_OK(ctx, hl_settings_set(settings, "iters", "2"));
        CHECK_OK(ctx, hl_settings_set(settings, "hidden", "4"));
        CHECK_OK(ctx, hl_settings_set(settings, "width", "4"));
        if (wishes[k][0])
            CHECK_OK(ctx, hl_settings_set(settings, wishes[k][0], wishes[k][1]));
        hl_status status = hl_density_fit(ctx, &data, settings, NULL, &model, NULL);
        CHECK(status >= 0 && model, hl_context_message(ctx));
        CHECK((hl_density_get_accuracy(model).evaluations > 0) == (k == 0 && hl_density_flow(model)), "calibrated");
        hl_density_free(model);
        hl_settings_free(settings);
    }
    test_context_free(ctx, NULL);
}

/* ---- the first step ---- */

/* Row 0: slowly; row 1: fast to a slow solution; row 2: van der Pol; row 3: a corner right after the start. */
static int problems(void *user, const hl_rows *at, double *dy)
{
    size_t first = user ? *(const size_t *)user : 0; /* the problem of row 0 */
    for (size_t r = 0; r < at->count; r++) {
        const double *y = at->y + 2 * r, t = at->t[r];
        double *f = dy + 2 * r;
        switch (first + at->index[r]) {
        case 0:
            f[0] = -y[0] * cos(t);
            f[1] = sin(t) - y[1];
            break;
        case 1:
            f[0] = -2000 * (y[0] - cos(t));
            f[1] = y[0] - y[1];
            break;
        case 2:
            f[0] = y[1];
            f[1] = 100 * (1 - y[0] * y[0]) * y[1] - y[0];
            break;
        default:
            f[0] = t < 1e-3 ? 1 : 1000 * (1 - y[0]);
            f[1] = y[0];
        }
    }
    return 0;
}

/* With a bold first step no problem takes many more evaluations, and smooth ones take fewer. */
static void test_start(void **state)
{
    hl_system system = { .n = 2, .rhs = problems };
    hl_context *ctx = test_context(NULL, 1);
    size_t total[2] = { 0 };
    (void)state;
    for (double tolerance = 1e-3; tolerance > 1e-7; tolerance /= 10) {
        hl_ode_row info[2][4];
        double y[2][8];
        for (int bold = 0; bold < 2; bold++) {
            double t[4] = { 0 }, start[8] = { 1, 0, 3, 0, 2, 0, 0, 0 };
            hl_ode *ode;
            hl_ode_options o = { .rtol = tolerance, .atol = tolerance, .start_error = bold ? 10 : 0 };
            CHECK_OK(ctx, hl_ode_create(ctx, &system, &o, &ode));
            CHECK_OK(ctx, hl_ode_solve(ode, 4, t, 2, memcpy(y[bold], start, sizeof start), info[bold]));
            hl_ode_free(ode);
        }
        for (size_t r = 0; r < 4; r++) {
            CHECK_LE((double)info[1][r].evaluations, 1.03 * (double)info[0][r].evaluations + 14,
                     "bold against cautious");
            CHECK_LE(fabs(y[1][2 * r] - y[0][2 * r]), 100 * tolerance, "the same solution");
        }
        total[0] += info[0][0].evaluations;
        total[1] += info[1][0].evaluations;
    }
    CHECK(total[1] < total[0], "smooth problems gain");
    test_context_free(ctx, NULL);
}

/* A smooth row keeps to its even steps, with the bits of equal ones; a hard one leaves them, and both are solved as alone. */
static void test_even(void **state)
{
    static const char *const methods[] = { "bosh3", "dopri5", "tsit5", "calvo6", "dopri8" };
    hl_system system = { .n = 2, .rhs = problems };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < 5; m++) {
        double y[4][8], loose = 1e-3;
        hl_ode_row info[4][4];
        hl_ode_options o[4] = { { .even_steps = 5 }, { .steps = 5 }, { 0 }, { .even_steps = 5, .divided = 1 } };
        for (int k = 0; k < 4; k++) {
            double t[4] = { 0 }, start[8] = { 1, 0, 3, 0, 2, 0, 0, 0 };
            hl_ode *ode;
            o[k].method = methods[m];
            o[k].rtol = o[k].atol = loose;
            CHECK_OK(ctx, hl_ode_create(ctx, &system, &o[k], &ode));
            hl_ode_solve(ode, k == 1 ? 1 : 4, t, 2, memcpy(y[k], start, sizeof start), info[k]);
            for (size_t r = 0; k % 3 == 0 && r < 4; r++) {
                double one[2] = { start[2 * r], start[2 * r + 1] }, at = 0;
                system.user = &r;
                hl_ode *alone;
                CHECK_OK(ctx, hl_ode_create(ctx, &system, &o[k], &alone));
                CHECK_OK(ctx, hl_ode_solve(alone, 1, &at, 2, one, NULL));
                assert_memory_equal(one, y[k] + 2 * r, sizeof one);
                hl_ode_free(alone);
                system.user = NULL;
            }
            hl_ode_free(ode);
        }
        assert_int_equal(info[0][0].steps, 5);
        assert_int_equal(info[0][0].rejected, 0);
        assert_memory_equal(y[0], y[1], 2 * sizeof(double));
        CHECK(info[3][0].status == HL_OK && info[3][0].steps > 1 && (m == 0 || info[3][0].steps <= 5),
              "a smooth row takes no more steps");
        for (size_t r = 1; r < 4; r++) {
            CHECK_LE(fabs(y[3][2 * r] - y[2][2 * r]), 100 * loose, "divided steps are accurate");
            CHECK(info[0][r].status == HL_OK && info[0][r].rejected > 0, "hard rows leave the even steps");
            CHECK_LE(fabs(y[0][2 * r] - y[2][2 * r]), 100 * loose, "and are solved by steps that adapt");
        }
    }
    hl_ode *ode;
    hl_ode_options both = { .even_steps = 3, .steps = 3 };
    CHECK_STATUS(ctx, hl_ode_create(ctx, &system, &both, &ode), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_ode_create(ctx, &system, &(hl_ode_options){ .divided = 1 }, &ode), HL_ERR_INVALID);
    test_context_free(ctx, NULL);
}

/* Steps that divide what is left are of equal length where the error asks for none, and the last is not cut short: an easy problem from a
 * first step of a fifth, with a tolerance that lets it grow, takes that step and then one or two equal ones. */
static void test_divided(void **state)
{
    hl_system system = { .n = 2, .rhs = problems };
    hl_context *ctx = test_context(NULL, 1);
    hl_ode *ode;
    (void)state;
    for (int back = 0; back < 2; back++) {
        double t = back ? 2 : 0, y[2] = { 1, 0 };
        hl_ode_row info;
        hl_ode_options o = { .method = "calvo6", .even_steps = 5, .divided = 1, .rtol = 1, .atol = 1, .max_step = .7 };
        CHECK_OK(ctx, hl_ode_create(ctx, &system, &o, &ode));
        CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, back ? 0 : 2, y, &info));
        assert_true(t == (back ? 0 : 2));
        assert_int_equal(info.steps, 4); /* .4, then 1.6 = 3 x .5333, as .7 is the most */
        CHECK_LE(fabs(fabs(info.step) - 1.6 / 3), 1e-12, "equal steps");
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* A model whose second member, a mixture, has all the density far away: the error there is that of the sum, and evaluations are those of log p. */
static void test_sum(void **state)
{
    static double x[600 * 2], logp[600];
    hl_context *ctx = test_context(NULL, 1);
    hl_settings *settings;
    hl_density *model;
    static const char *const names[] = { "a", "b" };
    hl_density_data data = { .dim = 2, .names = names, .train = { .rows = 600, .x = x } };
    (void)state;
    for (size_t r = 0; r < 600; r++) {
        x[2 * r] = hl_random_normal(4, 1, r);
        x[2 * r + 1] = sin(2 * x[2 * r]) + 0.2 * hl_random_normal(4, 2, r);
    }
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &settings));
    CHECK_OK(ctx, hl_settings_set(settings, "iters", "30"));
    CHECK_OK(ctx, hl_density_fit(ctx, &data, settings, NULL, &model, NULL));
    if (hl_density_flow(model) && hl_density_members(model) > 1) {
        CHECK_OK(ctx, hl_density_calibrate(model, 256, x, NULL, 0));
        hl_density_accuracy a = hl_density_get_accuracy(model);
        hl_flow_reset(hl_density_flow(model));
        CHECK_OK(ctx, hl_density_logp(model, 256, x, NULL, logp));
        CHECK_LE(fabs((double)hl_flow_report(hl_density_flow(model)).forward.f / 256 - a.evaluations), 1e-9, "counts");
        CHECK_LE(a.worst, 1e-2, "worst");
    }
    hl_settings_free(settings);
    hl_density_free(model);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accuracy), cmocka_unit_test(test_files),   cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_memory),   cmocka_unit_test(test_fit),     cmocka_unit_test(test_start),
        cmocka_unit_test(test_even),     cmocka_unit_test(test_divided), cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
