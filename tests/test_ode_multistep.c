/* test_ode_multistep.c - Adams and BDF: accuracy on closed forms, directions, output, blocks of rows, options, failures,
 * gradients of small systems, memory. Stiff problems are in test_ode_stiff.c. */
#include "ode/ode.h"

#include "support.h"

#include <ctype.h>
#include <malloc.h>

#include "ode/tableau.h"

static const char *const all_methods[] = { HL_MULTISTEP_NAMES };
enum { METHODS = sizeof all_methods / sizeof *all_methods };

/* ---- a system with a closed form: Kvaerno, Prothero, Robinson ----
 *
 * u^2 = 1 + cos(t) / 2 and v^2 = 2 + cos(2t) are pulled at with rates p, coupled by q; nonlinear and explicit in t on purpose.
 * Rows whose index is odd run with the time shifted by 1, to see that `index` is right. */

typedef struct kpr {
    double p, q, nan_after; /* f is NaN after this time, if it is not 0 */
    int value;              /* returned from call number `fail_at` on */
    size_t fail_at, calls;
    double g0, g1; /* parameters: factors of the two pulls; 1 */
} kpr;

static void kpr_exact(double t, double *y)
{
    y[0] = sqrt(1 + cos(t) / 2);
    y[1] = sqrt(2 + cos(2 * t));
}

static double kpr_time(const hl_rows *at, size_t r)
{
    return at->t[r] + (double)(at->index[r] % 2);
}

static int kpr_rhs(void *user, const hl_rows *at, double *dy)
{
    kpr *k = user;
    for (size_t r = 0; r < at->count; r++) {
        double t = kpr_time(at, r), u = at->y[2 * r], v = at->y[2 * r + 1];
        double a = k->g0 * (u * u - 1 - cos(t) / 2) / (2 * u), b = k->g1 * (v * v - 2 - cos(2 * t)) / (2 * v);
        dy[2 * r] = -k->p * a + k->q * b - sin(t) / (4 * u);
        dy[2 * r + 1] = k->q * a - k->p * b - sin(2 * t) / v;
        if (k->nan_after > 0 && at->t[r] > k->nan_after)
            dy[2 * r + 1] = NAN;
    }
    return ++k->calls >= k->fail_at && k->fail_at ? k->value : 0;
}

/* The Jacobian of a row. */
static void kpr_jacobian(const kpr *k, double t, const double *y, double j[2][2])
{
    double u = y[0], v = y[1];
    double da = k->g0 * (1 + (1 + cos(t) / 2) / (u * u)) / 2, db = k->g1 * (1 + (2 + cos(2 * t)) / (v * v)) / 2;
    j[0][0] = -k->p * da + sin(t) / (4 * u * u);
    j[0][1] = k->q * db;
    j[1][0] = k->q * da;
    j[1][1] = -k->p * db + sin(2 * t) / (v * v);
}

static int kpr_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    double j[2][2];
    for (size_t r = 0; r < at->count; r++) {
        kpr_jacobian(user, kpr_time(at, r), at->y + 2 * r, j);
        diagonal[2 * r] = j[0][0];
        diagonal[2 * r + 1] = j[1][1];
    }
    return dy ? kpr_rhs(user, at, dy) : 0;
}

static int kpr_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    double j[2][2];
    for (size_t r = 0; r < at->count; r++) {
        kpr_jacobian(user, kpr_time(at, r), at->y + 2 * r, j);
        for (size_t i = 0; i < 2; i++)
            jv[2 * r + i] = j[i][0] * v[2 * r] + j[i][1] * v[2 * r + 1];
    }
    return 0;
}

static int kpr_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    const kpr *k = user;
    double j[2][2];
    for (size_t r = 0; r < at->count; r++) {
        double t = kpr_time(at, r), u = at->y[2 * r], v = at->y[2 * r + 1], w0 = w[2 * r], w1 = w[2 * r + 1];
        kpr_jacobian(k, t, at->y + 2 * r, j);
        for (size_t i = 0; i < 2; i++)
            gy[2 * r + i] = j[0][i] * w0 + j[1][i] * w1;
        if (gparam) {
            gparam[0] += (u * u - 1 - cos(t) / 2) / (2 * u) * (k->q * w1 - k->p * w0);
            gparam[1] += (v * v - 2 - cos(2 * t)) / (2 * v) * (k->q * w0 - k->p * w1);
        }
    }
    return 0;
}

static hl_system kpr_system(kpr *k)
{
    k->g0 = k->g0 != 0 ? k->g0 : 1;
    k->g1 = k->g1 != 0 ? k->g1 : 1;
    return (hl_system){
        .n = 2, .rhs = kpr_rhs, .diagonal = kpr_diagonal, .jvp = kpr_jvp, .vjp = kpr_vjp, .n_params = 2, .user = k
    };
}

static hl_ode *kpr_ode(hl_context *ctx, kpr *k, hl_ode_options options)
{
    hl_system system = kpr_system(k);
    hl_ode *ode;
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
    return ode;
}

/* Rows at their exact values at time t. */
static void kpr_start(size_t rows, double t, double *times, double *y)
{
    for (size_t r = 0; r < rows; r++) {
        times[r] = t;
        kpr_exact(t + (double)(r % 2), y + 2 * r);
    }
}

static double kpr_error(size_t rows, double t, const double *y)
{
    double worst = 0, exact[2];
    for (size_t r = 0; r < rows; r++) {
        kpr_exact(t + (double)(r % 2), exact);
        worst = fmax(worst, relative_error_f64(y + 2 * r, exact, 2));
    }
    return worst;
}

/* ---- accuracy ---- */

/* Error follows tolerance over six decades, forwards and backwards in time. */
static void test_tolerance(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++)
        for (int direction = -1; direction <= 1; direction += 2) {
            kpr k = { .p = 20 * direction, .q = 5 * direction };
            double first = 0, last = 0, from = direction > 0 ? 0 : 3, to = 3 - from;
            for (double tolerance = 1e-3; tolerance > 0.9e-9; tolerance /= 100) {
                hl_ode *ode = kpr_ode(
                    ctx, &k,
                    (hl_ode_options){ .method = all_methods[m], .rtol = tolerance, .atol = tolerance, .rows = 3 });
                double t[3], y[6];
                kpr_start(3, from, t, y);
                CHECK_OK(ctx, hl_ode_solve(ode, 3, t, to, y, NULL));
                CHECK(t[0] == to && t[2] == to, all_methods[m]);
                last = kpr_error(3, to, y);
                CHECK_LE(last, 30 * tolerance, all_methods[m]);
                first = first > 0 ? first : last;
                hl_ode_free(ode);
            }
            double slope = log10(first / last) / 6;
            CHECK_NEAR(slope, 1, .45, all_methods[m]);
        }
    test_context_free(ctx, NULL);
}

static size_t steps_for(hl_context *ctx, const char *method, int max_order, double tolerance)
{
    kpr k = { .p = 1, .q = .5 };
    hl_ode *ode = kpr_ode(
        ctx, &k,
        (hl_ode_options){ .method = method, .rtol = tolerance, .atol = tolerance, .rows = 1, .max_order = max_order });
    double t, y[2];
    kpr_start(1, 0, &t, y);
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 10, y, NULL));
    size_t steps = hl_ode_report(ode).forward.steps;
    hl_ode_free(ode);
    return steps;
}

/* A method of order q makes 10^(1/(q+1)) times the steps for each decade of the tolerance. */
static void test_orders(void **state)
{
    static const struct {
        const char *method;
        int order;
    } cases[] = { { "adams-jacobi", 1 }, { "adams-functional", 2 }, { "adams-gmres", 4 }, { "bdf-jacobi", 1 },
                  { "bdf-newton", 2 },   { "bdf-gmres", 3 },        { "bdf-auto", 5 } };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        double high = cases[c].order < 3 ? 1e-7 : 1e-9, decades = cases[c].order < 3 ? 2 : 4;
        double coarse = (double)steps_for(ctx, cases[c].method, cases[c].order, pow(10, decades) * high);
        double fine = (double)steps_for(ctx, cases[c].method, cases[c].order, high);
        CHECK_NEAR(decades / log10(fine / coarse) - 1, cases[c].order, cases[c].order < 3 ? .5 : 1, cases[c].method);
    }
    CHECK_LE(2. * (double)steps_for(ctx, "adams-jacobi", 0, 1e-9), (double)steps_for(ctx, "adams-jacobi", 3, 1e-9),
             "high orders pay");
    test_context_free(ctx, NULL);
}

static void test_paper(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        kpr k = { .p = 20, .q = 5 };
        hl_ode *ode = kpr_ode(
            ctx, &k,
            (hl_ode_options){ .method = all_methods[m], .rtol = 1e-6, .atol = 1e-6, .rows = 2, .paper_test = 1 });
        double t[2], y[4];
        kpr_start(2, 0, t, y);
        CHECK_OK(ctx, hl_ode_solve(ode, 2, t, 3, y, NULL));
        CHECK_LE(kpr_error(2, 3, y), 1e-4, all_methods[m]);
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* ---- output, rows, options ---- */

static void test_output(void **state)
{
    static const double times[] = { 0, .1, 1, 1, 2.5, 3 };
    hl_context *ctx = test_context(NULL, 1);
    kpr k = { .p = 20, .q = 5 };
    hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = "adams-jacobi", .rtol = 1e-8, .atol = 1e-8, .rows = 2 });
    double t[3], y[6], out[6][6];
    (void)state;
    kpr_start(3, 0, t, y); /* two blocks */
    CHECK_OK(ctx, hl_ode_solve_at(ode, 3, t, 6, times, y, out[0], NULL));
    for (size_t i = 0; i < 6; i++)
        CHECK_LE(kpr_error(3, times[i], out[i]), 2e-7, "dense output");
    assert_memory_equal(out[2], out[3], sizeof out[2]);
    assert_memory_equal(out[5], y, sizeof y);
    k.nan_after = 1.5;
    kpr_start(3, 0, t, y);
    CHECK_STATUS(ctx, hl_ode_solve_at(ode, 3, t, 6, times, y, out[0], NULL), HL_ERR_NOT_FINITE);
    CHECK_LE(kpr_error(3, 1, out[3]), 2e-7, "reached");
    for (size_t i = 0; i < 6; i++)
        CHECK(isnan(out[4][i]) && isnan(out[5][i]), "not reached");
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* Blocks of options.rows rows are systems of their own; another number of rows in between changes no bit. */
static void test_blocks(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    kpr k = { .p = 20, .q = 5 };
    hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = "bdf-auto", .rows = 3 });
    double t[5], y[10], again[10], alone[6];
    hl_ode_row info[5];
    (void)state;
    kpr_start(5, 0, t, y);
    CHECK_OK(ctx, hl_ode_solve(ode, 5, t, 3, y, info));
    CHECK_LE(kpr_error(5, 3, y), 1e-4, "blocks");
    CHECK(info[4].status == HL_OK && info[4].steps > 10 && info[4].evaluations > info[4].steps, "info");
    kpr_start(3, 0, t, alone);
    CHECK_OK(ctx, hl_ode_solve(ode, 3, t, 3, alone, NULL));
    assert_memory_equal(y, alone, sizeof alone); /* the first block */
    kpr_start(5, 0, t, again);
    CHECK_OK(ctx, hl_ode_solve(ode, 5, t, 3, again, NULL));
    assert_memory_equal(y, again, sizeof y);
    CHECK_OK(ctx, hl_ode_solve(ode, 0, NULL, 3, NULL, NULL));
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

static void test_counts(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        kpr k = { .p = 20, .q = 5 };
        hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = all_methods[m], .rows = 3, .first_step = 1e-4 });
        double t[3], y[6];
        hl_ode_row info[3];
        kpr_start(3, 0, t, y);
        CHECK_OK(ctx, hl_ode_solve(ode, 3, t, 3, y, info));
        hl_ode_counts c = hl_ode_report(ode).forward;
        assert_int_equal(c.f_calls, k.calls);
        assert_int_equal(c.f, 3 * c.f_calls);
        assert_int_equal(info[1].evaluations, c.f_calls + c.jvp_calls);
        assert_int_equal(info[1].steps, c.steps);
        CHECK(c.iterations >= c.steps && c.f_calls >= c.iterations, all_methods[m]);
        if (strstr(all_methods[m], "fresh"))
            CHECK(c.diagonal_calls == c.iterations, all_methods[m]);
        else
            CHECK_LE(20. * (double)c.diagonal_calls, (double)c.f_calls, all_methods[m]);
        hl_ode_reset(ode);
        assert_int_equal(hl_ode_report(ode).forward.f_calls, 0);
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

static size_t count_steps(hl_context *ctx, hl_ode_options options, double *error)
{
    kpr k = { .p = 1, .q = .5 };
    hl_ode *ode = kpr_ode(ctx, &k, options);
    double t, y[2];
    kpr_start(1, 0, &t, y);
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 6, y, NULL));
    *error = kpr_error(1, 6, y);
    size_t steps = hl_ode_report(ode).forward.steps;
    hl_ode_free(ode);
    return steps;
}

static void test_step_options(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_ode_options options = { .method = "bdf-gmres", .rows = 1 };
    double error;
    (void)state;
    size_t usual = count_steps(ctx, options, &error);
    options.weights = (double[]){ 100, 100 };
    CHECK(2 * count_steps(ctx, options, &error) > 3 * usual, "heavy weights");
    options.weights = (double[]){ 0, 0.01 };
    CHECK(3 * count_steps(ctx, options, &error) < 2 * usual, "light weights");
    CHECK_LE(error, 1e-1, "light weights");
    options.weights = NULL;
    options.max_step = 0.01;
    CHECK(count_steps(ctx, options, &error) >= 600, "max_step");
    test_context_free(ctx, NULL);
}

static void test_no_way(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    kpr k = { .p = 20, .q = 5 };
    hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = "auto", .rows = 1, .gradient = HL_ADJOINT });
    double t = 1, y[2], before[2], gy[2] = { 1, 2 }, next = nextafter(1, 2), out[4];
    (void)state;
    kpr_exact(1, y);
    memcpy(before, y, sizeof y);
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 1, y, NULL));
    assert_memory_equal(before, y, sizeof y);
    assert_int_equal(k.calls, 0);
    CHECK_OK(ctx, hl_ode_solve_at(ode, 1, &t, 2, (double[]){ 1, next }, y, out, NULL));
    CHECK(t == next, "a very short way");
    CHECK_LE(relative_error_f64(y, before, 2), 1e-14, "a very short way");
    assert_memory_equal(out, before, sizeof before);
    assert_memory_equal(out + 2, y, sizeof y);
    CHECK_OK(ctx, hl_ode_gradient(ode, gy, NULL));
    CHECK(gy[0] == 1 && gy[1] == 2, "a very short way back");
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* A float32 system cannot meet fine tolerances. */
static void test_imprecise(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    kpr k = { .p = 20, .q = 5 };
    hl_system system = kpr_system(&k);
    hl_ode *ode;
    (void)state;
    system.rounding = 6e-8;
    for (int fine = 0; fine < 2; fine++) {
        double tolerance = fine ? 1e-7 : 1e-5, t, y[2];
        hl_ode_options options = { .method = "bdf-jacobi", .rtol = tolerance, .atol = 1e-12, .rows = 1 };
        kpr_start(1, 0, &t, y);
        CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
        CHECK_STATUS(ctx, hl_ode_solve(ode, 1, &t, 1, y, NULL), fine ? HL_IMPRECISE : HL_OK);
        CHECK(t == 1, "it finished all the same");
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* ---- failures ---- */

static void test_arguments(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    kpr k = { .p = 1 };
    hl_system system = kpr_system(&k), bare = { .n = 2, .rhs = kpr_rhs, .user = &k };
    hl_ode *ode;
    (void)state;
    const struct {
        hl_ode_options options;
        const char *says;
    } bad[] = { { { .method = "bdf-jacobi", .steps = 10 }, "adaptive steps" },
                { { .method = "bdf-jacobi", .event = (hl_event_fn *)kpr_rhs }, "events" },
                { { .method = "bdf-jacobi", .max_order = 6 }, "1 to 5" },
                { { .method = "adams-jacobi", .max_order = 13 }, "1 to 12" },
                { { .method = "auto", .max_order = -1 }, "max_order" },
                { { .method = "auto", .gradient = HL_REPLAY }, "HL_ADJOINT" } };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(ctx, hl_ode_create(ctx, &system, &bad[i].options, &ode), HL_ERR_INVALID);
        CHECK(strstr(hl_context_message(ctx), bad[i].says) && !ode, hl_context_message(ctx));
    }
    for (size_t m = 0; m < METHODS; m++) {
        hl_ode_options options = { .method = all_methods[m] };
        bool functional = strstr(all_methods[m], "functional") != NULL,
             jacobi = strstr(all_methods[m], "jacobi") != NULL;
        CHECK_STATUS(ctx, hl_ode_create(ctx, &bare, &options, &ode), functional ? HL_OK : HL_ERR_INVALID);
        CHECK(functional || strstr(hl_context_message(ctx), jacobi ? "diagonal" : "jvp"), hl_context_message(ctx));
        hl_ode_free(ode);
    }
    double t[2] = { 0, 1 }, y[4] = { 1, 1, 1, 1 };
    ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = "auto" });
    CHECK_STATUS(ctx, hl_ode_solve(ode, 2, t, 3, y, NULL), HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "the same time"), hl_context_message(ctx));
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* y' = y^2 ends at t = 1: the last good state and time, and who is to blame. */
static int blow_up(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++) {
        dy[2 * r] = -at->y[2 * r];
        dy[2 * r + 1] = at->y[2 * r + 1] * at->y[2 * r + 1];
    }
    return 0;
}

static int blow_up_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    for (size_t r = 0; r < at->count; r++) {
        diagonal[2 * r] = -1;
        diagonal[2 * r + 1] = 2 * at->y[2 * r + 1];
    }
    return dy ? blow_up(user, at, dy) : 0;
}

static int blow_up_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    blow_up_diagonal(user, at, NULL, jv);
    for (size_t i = 0; i < 2 * at->count; i++)
        jv[i] *= v[i];
    return 0;
}

static void test_blow_up(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = { .n = 2, .rhs = blow_up, .diagonal = blow_up_diagonal, .jvp = blow_up_jvp };
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        hl_ode_options options = { .method = all_methods[m], .rows = 2 };
        double t[2] = { 0, 0 }, y[4] = { 1, .1, 1, 1 };
        hl_ode_row info[2];
        hl_ode *ode;
        CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
        CHECK_STATUS(ctx, hl_ode_solve(ode, 2, t, 2, y, info), HL_ERR_STEP);
        CHECK(t[0] == t[1] && t[1] > .99 && t[1] < 1.01, all_methods[m]);
        CHECK(isfinite(y[3]) && y[3] > 100, all_methods[m]);
        CHECK_NEAR(y[0], exp(-t[0]), 1e-4, all_methods[m]);
        CHECK(info[0].status == HL_ERR_STEP && info[1].component == 1, all_methods[m]);
        CHECK(strstr(hl_context_message(ctx), "row 1, value 1: "), hl_context_message(ctx));
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

static void test_not_finite(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        kpr k = { .p = 20, .q = 5, .nan_after = .5 };
        hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = all_methods[m], .rows = 3 });
        double t[3], y[6];
        hl_ode_row info[3];
        kpr_start(3, 0, t, y);
        CHECK_STATUS(ctx, hl_ode_solve(ode, 3, t, 3, y, info), HL_ERR_NOT_FINITE);
        CHECK(t[0] > .3 && t[0] <= .5, all_methods[m]);
        CHECK_LE(kpr_error(3, t[0], y), 1e-4, "the last good state");
        CHECK(info[0].component == 1 && info[2].status == HL_ERR_NOT_FINITE, all_methods[m]);
        kpr_start(3, 1, t, y); /* bad from the start */
        CHECK_STATUS(ctx, hl_ode_solve(ode, 3, t, 3, y, info), HL_ERR_NOT_FINITE);
        CHECK(t[0] == 1 && kpr_error(3, 1, y) == 0, "nothing has moved");
        hl_ode_free(ode);
        ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = all_methods[m], .rows = 3 });
        CHECK_STATUS(ctx, hl_ode_solve(ode, 3, t, 3, y, info), HL_ERR_NOT_FINITE); /* and the first of all */
        for (size_t r = 0; r < 3; r++)
            CHECK(info[r].error == 0 && info[r].step == 0, "values of memory that nobody wrote");
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* A start that is not finite fails the rows that are solved with it, and no others. */
static void test_bad_start(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        kpr k = { .p = 20, .q = 5 };
        hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = all_methods[m], .rows = 2 });
        double t[6], y[12], calm_t[6], calm[12], out[24], times[2] = { 1, 2 };
        hl_ode_row info[6];
        kpr_start(6, 0, calm_t, calm);
        CHECK_OK(ctx, hl_ode_solve(ode, 6, calm_t, 2, calm, NULL));
        kpr_start(6, 0, t, y);
        y[7] = NAN;
        CHECK_STATUS(ctx, hl_ode_solve_at(ode, 6, t, 2, times, y, out, info), HL_ERR_NOT_FINITE);
        CHECK(strstr(hl_context_message(ctx), "row 3, value 1"), hl_context_message(ctx));
        for (size_t r = 0; r < 6; r++) {
            bool bad = r == 2 || r == 3;
            CHECK(info[r].status == (bad ? HL_ERR_NOT_FINITE : HL_OK), all_methods[m]);
            CHECK(bad ? t[r] == 0 && isnan(out[2 * r]) && isnan(out[12 + 2 * r])
                      : t[r] == 2 && memcmp(y + 2 * r, calm + 2 * r, 2 * sizeof *y) == 0,
                  all_methods[m]);
        }
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

static int later(void *user)
{
    return ++*(int *)user > 20;
}

/* The context's callback ends a solve of any method. */
static void test_stop(void **state)
{
    (void)state;
    for (size_t m = 0; m <= METHODS; m++) {
        const char *method = m < METHODS ? all_methods[m] : "dopri5";
        int asked = 0;
        hl_context *ctx = NULL;
        CHECK_OK(NULL, hl_context_create(&(hl_context_options){ .stop = later, .user = &asked }, &ctx));
        kpr k = { .p = 20, .q = 5 };
        hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = method, .rows = 2 });
        double t[2], y[4];
        kpr_start(2, 0, t, y);
        CHECK_STATUS(ctx, hl_ode_solve(ode, 2, t, 3, y, NULL), HL_STOPPED);
        CHECK(asked < 25, method);
        CHECK_LE(kpr_error(1, t[0], y), 1e-4, "the last good state");
        hl_ode_free(ode);
        hl_context_free(ctx);
    }
}

static void test_callback_and_budget(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        kpr k = { .p = 20, .q = 5, .value = -5, .fail_at = 12 };
        hl_ode_options options = { .method = all_methods[m], .rows = 2, .max_evaluations = 40 };
        hl_ode *ode = kpr_ode(ctx, &k, options);
        double t[2], y[4];
        hl_ode_row info[2];
        kpr_start(2, 0, t, y);
        CHECK_STATUS(ctx, hl_ode_solve(ode, 2, t, 3, y, info), HL_ERR_CALLBACK);
        assert_int_equal(hl_ode_report(ode).callback, -5);
        assert_int_equal(k.calls, 12);
        CHECK(t[0] >= 0 && t[0] < 3, all_methods[m]);
        CHECK_LE(kpr_error(2, t[0], y), 1e-4, "the last good state");
        k = (kpr){ .p = 20, .q = 5, .g0 = 1, .g1 = 1 };
        kpr_start(2, 0, t, y);
        CHECK_STATUS(ctx, hl_ode_solve(ode, 2, t, 3, y, info), HL_ERR_BUDGET);
        assert_int_equal(hl_ode_report(ode).callback, 0);
        assert_int_equal(info[0].evaluations, 40);
        CHECK(t[0] > 0 && t[0] < 3, all_methods[m]);
        CHECK_LE(kpr_error(2, t[0], y), 1e-4, "the last good state");
        hl_ode_free(ode);
    }
    test_context_free(ctx, NULL);
}

/* "Not here" is a smaller step, not an end; if it never stops being said, the step becomes too small. */
static int fenced(void *user, const hl_rows *at, double *dy)
{
    const double *fence = user;
    dy[0] = -at->y[0];
    return at->t[0] > *fence;
}

static void test_not_here(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    double fence = .5, t = 0, y = 1;
    hl_system system = { .n = 1, .rhs = fenced, .user = &fence };
    hl_ode *ode;
    (void)state;
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &(hl_ode_options){ .method = "adams-functional" }, &ode));
    CHECK_STATUS(ctx, hl_ode_solve(ode, 1, &t, 1, &y, NULL), HL_ERR_STEP);
    CHECK(t > .4 && t <= .5, "up to the fence");
    CHECK_NEAR(y, exp(-t), 1e-5, "up to the fence");
    t = 0;
    y = 1;
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, .5, &y, NULL)); /* no step goes beyond the end */
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* So stiff that functional iteration fails at any step; auto does it. */
static int very_stiff(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    dy[0] = -1e20 * (at->y[0] - cos(at->t[0])) - sin(at->t[0]);
    return 0;
}

static int very_stiff_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    (void)user, (void)at;
    jv[0] = -1e20 * v[0];
    return 0;
}

static void test_convergence(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_system system = { .n = 1, .rhs = very_stiff, .jvp = very_stiff_jvp };
    hl_ode_options options = { .method = "bdf-functional", .rows = 1, .first_step = .1 };
    double t = 0, y = 2;
    hl_ode *ode;
    (void)state;
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
    CHECK_STATUS(ctx, hl_ode_solve(ode, 1, &t, 1, &y, NULL), HL_ERR_CONVERGENCE);
    CHECK(t == 0 && y == 2, "the last good state");
    CHECK(strstr(hl_context_message(ctx), "try auto"), hl_context_message(ctx));
    hl_ode_free(ode);
    options.method = "auto";
    y = 1; /* on the slow solution */
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &options, &ode));
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 1, &y, NULL));
    CHECK_NEAR(y, cos(1), 1e-5, "auto");
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* Advice names neither the method in use nor, in a circle, one that names it: each leads to another until bdf-newton. */
static void test_advice(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < METHODS; m++) {
        kpr k = { .p = 20, .q = 5 };
        const char *method = all_methods[m];
        for (size_t steps = 0; method && steps < 4; steps++) {
            hl_ode *ode =
                kpr_ode(ctx, &k, (hl_ode_options){ .method = method, .rows = 1, .rtol = 1e-12, .max_evaluations = 9 });
            double t, y[2];
            kpr_start(1, 0, &t, y);
            CHECK_STATUS(ctx, hl_ode_solve(ode, 1, &t, 3, y, NULL), HL_ERR_BUDGET);
            const char *advice = strstr(hl_context_message(ctx), "try "), *last = method;
            method = NULL;
            for (size_t other = 0; advice && other < METHODS; other++) {
                size_t length = strlen(all_methods[other]);
                if (strncmp(advice + 4, all_methods[other], length) == 0 &&
                    !isalpha((unsigned char)advice[4 + length]) && advice[4 + length] != '-')
                    method = all_methods[other];
            }
            CHECK(!advice || (method && strcmp(method, last) != 0), hl_context_message(ctx));
            hl_ode_free(ode);
        }
        CHECK(!method, "advice that goes in circles");
    }
    test_context_free(ctx, NULL);
}

/* ---- gradients ---- */

/* The loss y . (1, 2) of all rows at the end, from the start y0 and the parameters of k. */
static double kpr_loss(hl_context *ctx, kpr *k, double from, double to, const double *y0)
{
    hl_ode *ode = kpr_ode(ctx, k, (hl_ode_options){ .method = "bdf-newton", .rtol = 1e-12, .atol = 1e-12, .rows = 2 });
    double t[2] = { from, from }, y[4];
    memcpy(y, y0, sizeof y);
    CHECK_OK(ctx, hl_ode_solve(ode, 2, t, to, y, NULL));
    hl_ode_free(ode);
    return y[0] + 2 * y[1] + y[2] + 2 * y[3];
}

static void kpr_differences(hl_context *ctx, kpr *k, double from, double to, const double *y0, double *gy,
                            double *gparam)
{
    double y[4], step = 1e-4, *parameters[] = { &k->g0, &k->g1 };
    memcpy(y, y0, sizeof y);
    for (size_t i = 0; i < 6; i++) {
        double *p = i < 4 ? y + i : parameters[i - 4], kept = *p;
        *p = kept + step;
        double up = kpr_loss(ctx, k, from, to, y);
        *p = kept - step;
        double down = kpr_loss(ctx, k, from, to, y);
        *p = kept;
        *(i < 4 ? gy + i : gparam + i - 4) = (up - down) / (2 * step);
    }
}

/* Off the closed form, where parameters matter; both directions of time, both adjoints, with a long and a short record. */
static void test_gradient(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    static const double y0[4] = { 1.5, 1.2, .9, 2 };
    (void)state;
    for (int direction = -1; direction <= 1; direction += 2) {
        kpr k = { .p = 2 * direction, .q = .5 * direction, .g0 = 1, .g1 = 1 };
        double from = direction > 0 ? 0 : 2, to = 2 - from, exact[4], exact_param[2];
        kpr_differences(ctx, &k, from, to, y0, exact, exact_param);
        for (size_t m = 0; m < METHODS; m++)
            for (int kind = 0; kind < 3; kind++) {
                hl_ode_options options = { .method = all_methods[m],
                                           .rtol = 1e-7,
                                           .atol = 1e-7,
                                           .rows = 2,
                                           .gradient = kind == 2 ? HL_ADJOINT_REINTEGRATED : HL_ADJOINT,
                                           .checkpoint_bytes = kind == 1 ? 1 : 0 };
                hl_ode *ode = kpr_ode(ctx, &k, options);
                double t[2] = { from, from }, y[4], gy[4] = { 1, 2, 1, 2 }, again[4] = { 1, 2, 1, 2 },
                       gparam[2] = { 10, 20 };
                memcpy(y, y0, sizeof y);
                CHECK_OK(ctx, hl_ode_solve(ode, 2, t, to, y, NULL));
                CHECK_OK(ctx, hl_ode_gradient(ode, gy, gparam));
                gparam[0] -= 10; /* it was added */
                gparam[1] -= 20;
                double limit = kind == 2 ? 5e-5 : 1e-5; /* y that is integrated back drifts */
                CHECK_LE(relative_error_f64(gy, exact, 4), limit, all_methods[m]);
                for (size_t i = 0; i < 2; i++)
                    CHECK_NEAR(gparam[i], exact_param[i], kind == 2 ? 1e-4 : 1e-5, all_methods[m]);
                CHECK_OK(ctx, hl_ode_gradient(ode, again, NULL)); /* again, without parameters */
                CHECK_LE(relative_error_f64(again, exact, 4), limit, all_methods[m]);
                hl_ode_summary s = hl_ode_report(ode);
                CHECK((s.drift > 0) == (kind == 2), "drift");
                CHECK(s.backward.vjp_calls > 0 && s.backward.steps > 0, all_methods[m]);
                hl_ode_free(ode);
            }
    }
    test_context_free(ctx, NULL);
}

static void test_gradient_failures(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    kpr k = { .p = 20, .q = 5 };
    hl_ode *ode = kpr_ode(
        ctx, &k, (hl_ode_options){ .method = "bdf-jacobi", .rows = 1, .gradient = HL_ADJOINT, .max_evaluations = 300 });
    double t, y[2], gy[2] = { 1, 1 }, zero[2] = { 0, 0 }, bad[2] = { 1, NAN };
    (void)state;
    CHECK_STATUS(ctx, hl_ode_gradient(ode, gy, NULL), HL_ERR_INVALID); /* nothing was solved */
    kpr_start(1, 0, &t, y);
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 1, y, NULL));
    CHECK_STATUS(ctx, hl_ode_gradient(ode, bad, NULL), HL_ERR_NOT_FINITE);
    CHECK_OK(ctx, hl_ode_gradient(ode, zero, NULL));
    CHECK(zero[0] == 0 && zero[1] == 0, "no loss");
    CHECK_OK(ctx, hl_ode_gradient(ode, gy, NULL));
    double tiny[2] = { 1e-30, 1e-30 };
    CHECK_OK(ctx, hl_ode_gradient(ode, tiny, NULL)); /* the scale of the loss does not matter */
    CHECK_NEAR(tiny[0] * 1e30, gy[0], 1e-12, "scale");
    k.nan_after = .5;
    kpr_start(1, 0, &t, y);
    CHECK_STATUS(ctx, hl_ode_solve(ode, 1, &t, 1, y, NULL), HL_ERR_NOT_FINITE);
    CHECK_STATUS(ctx, hl_ode_gradient(ode, gy, NULL), HL_ERR_INVALID); /* the solve failed */
    hl_ode_free(ode);
    k.nan_after = 0;
    ode = kpr_ode(ctx, &k,
                  (hl_ode_options){ .method = "bdf-jacobi", .rows = 1, .gradient = HL_ADJOINT, .max_evaluations = 60 });
    kpr_start(1, 0, &t, y);
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, .01, y, NULL));
    kpr_start(1, 0, &t, y);
    hl_status status = hl_ode_solve(ode, 1, &t, .1, y, NULL);
    CHECK_OK(ctx, status);
    hl_ode_free(ode);
    test_context_free(ctx, NULL);
}

/* ---- memory and threads ---- */

static hl_status memory_scenario(hl_context *ctx, void *user)
{
    const hl_ode_options *options = user;
    kpr k = { .p = 2, .q = 1 };
    hl_system system = kpr_system(&k);
    double t[3], y[6], gy[6] = { 1, 1, 1, 1, 1, 1 }, gparam[2] = { 0 };
    hl_ode *ode;
    kpr_start(3, 0, t, y);
    hl_status status = hl_ode_create(ctx, &system, options, &ode);
    if (status == HL_OK)
        status = hl_ode_solve(ode, 3, t, 1, y, NULL);
    if (status == HL_OK)
        status = hl_ode_gradient(ode, gy, gparam);
    hl_ode_free(ode);
    return status;
}

static void test_memory(void **state)
{
    static const char *const methods[] = { "adams-functional", "bdf-jacobi", "bdf-gmres", "auto" };
    (void)state;
    for (size_t m = 0; m < 4; m++)
        for (int kind = 0; kind < 2; kind++) {
            hl_ode_options options = { .method = methods[m],
                                       .rows = 3,
                                       .weights = (double[]){ 1, 2 },
                                       .gradient = kind ? HL_ADJOINT : HL_ADJOINT_REINTEGRATED,
                                       .checkpoint_bytes = 1 };
            test_allocator allocator;
            hl_context *ctx = test_context(&allocator, 1);
            kpr k = { .p = 2, .q = 1 };
            hl_ode *ode = kpr_ode(ctx, &k, options);
            double t[3], y[6], gy[6] = { 1, 1, 1, 1, 1, 1 }, gparam[2] = { 0 };
            long before = allocator.calls;
            kpr_start(3, 0, t, y);
            CHECK_OK(ctx, hl_ode_solve(ode, 3, t, 1, y, NULL));
            CHECK_OK(ctx, hl_ode_gradient(ode, gy, gparam));
            assert_int_equal(allocator.calls, before);
            hl_ode_free(ode);
            test_context_free(ctx, &allocator);
            check_every_allocation(1, memory_scenario, &options);
        }
}

static void test_threads(void **state)
{
    double y[2][6], gy[2][6];
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        hl_context *ctx = test_context(NULL, threads);
        kpr k = { .p = 2, .q = 1 };
        hl_ode *ode = kpr_ode(ctx, &k, (hl_ode_options){ .method = "auto", .rows = 3, .gradient = HL_ADJOINT });
        double t[3];
        kpr_start(3, 0, t, y[threads - 1]);
        for (size_t i = 0; i < 6; i++)
            gy[threads - 1][i] = 1;
        CHECK_OK(ctx, hl_ode_solve(ode, 3, t, 1, y[threads - 1], NULL));
        CHECK_OK(ctx, hl_ode_gradient(ode, gy[threads - 1], NULL));
        hl_ode_free(ode);
        test_context_free(ctx, NULL);
    }
    assert_memory_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(gy[0], gy[1], sizeof gy[0]);
}

int main(void)
{
#ifdef __GLIBC__
    mallopt(M_PERTURB, 0x5a); /* memory that nobody wrote is not zero */
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_paper),
        cmocka_unit_test(test_output),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_step_options),
        cmocka_unit_test(test_no_way),
        cmocka_unit_test(test_imprecise),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_blow_up),
        cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_bad_start),
        cmocka_unit_test(test_advice),
        cmocka_unit_test(test_callback_and_budget),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_not_here),
        cmocka_unit_test(test_convergence),
        cmocka_unit_test(test_gradient),
        cmocka_unit_test(test_gradient_failures),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
