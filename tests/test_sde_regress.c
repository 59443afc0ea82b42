/* test_sde_regress.c - drift and diffusion by regression: exact flows, known equations from snapshots, steps and one path,
 * correlated noise, known parts; memory, threads, and refusals. */
#include "support.h"

#include "hollow/sde_regress.h"
#include "sde/regress.h"
#include "sde/sde.h"

/* Paths of dx = f(x) dt + g(x) C dW by small Euler steps, rows by path; dim <= 2. */
typedef void motion_fn(const double *x, double *f, double *g);

enum { SUB = 10, MOST = 24000 };
static double t_all[MOST], x_all[2 * MOST];
static size_t id_all[MOST];

static hl_sde_data simulate(size_t dim, motion_fn *motion, double start, double spread, double correlation,
                            size_t paths, size_t times, double step)
{
    size_t row = 0;
    for (size_t p = 0; p < paths; p++) {
        double x[2], f[2], g[2], w[2];
        for (size_t i = 0; i < dim; i++)
            x[i] = (i ? -start : start) + spread * hl_random_normal(1, 1, 2 * p + i);
        for (size_t j = 0; j < times; j++, row++) {
            t_all[row] = step * (double)j;
            id_all[row] = p;
            memcpy(x_all + row * dim, x, dim * sizeof *x);
            for (size_t k = 0; k < SUB; k++) {
                motion(x, f, g);
                for (size_t i = 0; i < dim; i++)
                    w[i] = hl_random_normal(2, p, (j * SUB + k) * 2 + i);
                w[1] = correlation * w[0] + sqrt(1 - correlation * correlation) * (dim > 1 ? w[1] : 0);
                for (size_t i = 0; i < dim; i++)
                    x[i] += f[i] * step / SUB + g[i] * sqrt(step / SUB) * w[i];
            }
        }
    }
    return (hl_sde_data){ row, t_all, x_all, id_all };
}

/* The same rows, time by time, without the paths. */
static hl_sde_data unlink(hl_sde_data data, size_t dim, size_t paths)
{
    static double t[MOST], x[2 * MOST];
    size_t times = data.rows / paths;
    for (size_t r = 0; r < data.rows; r++) {
        size_t from = r % paths * times + r / paths;
        t[r] = data.t[from];
        memcpy(x + r * dim, data.x + from * dim, dim * sizeof *x);
    }
    return (hl_sde_data){ data.rows, t, x, NULL };
}

static void decay(const double *x, double *f, double *g)
{
    f[0] = -0.8 * x[0] + 0.4;
    g[0] = 0.5;
}
static void well(const double *x, double *f, double *g)
{
    f[0] = x[0] - x[0] * x[0] * x[0];
    g[0] = 0.5;
}
static void growth(const double *x, double *f, double *g)
{
    f[0] = 0.5 * x[0];
    g[0] = 0.4 * x[0];
}
static void pair(const double *x, double *f, double *g)
{
    for (size_t i = 0; i < 2; i++) {
        f[i] = -x[i];
        g[i] = 0.6;
    }
}

static void values(hl_sde_simple *s, double x, double *f, double *g)
{
    CHECK_OK(s->ctx, hl_sde_simple_eval(s, 1, (double[]){ 0 }, &x, f, g));
}

/* ---- tests ---- */

/* Without noise: x(t) = x0 exp(-t / 2) is a linear drift and no diffusion, up to what is exchanged between the two. */
static void test_flow(void **state)
{
    enum { PATHS = 200, TIMES = 21 };
    hl_context *ctx = *state;
    hl_sde_simple *s;
    double f, g;
    for (size_t r = 0; r < PATHS * TIMES; r++) {
        t_all[r] = 0.1 * (double)(r / PATHS);
        x_all[r] = (1 + (double)(r % PATHS) / PATHS) * exp(-0.5 * t_all[r]);
    }
    CHECK_OK(ctx, hl_sde_regress(ctx, &(hl_sde_data){ PATHS * TIMES, t_all, x_all, NULL }, 1, NULL, &s));
    for (double x = 0.5; x < 1.8; x += 0.3) {
        values(s, x, &f, &g);
        CHECK_NEAR(f, -0.5 * x, 0.08, "drift");
        CHECK_LE(g, 0.15, "diffusion");
    }
    hl_sde_simple_free(s);
}

/* Data that satisfy the conditions exactly give the coefficients exactly: steps of the trapezoidal rule, for which the conditions of steps
 * have no error; and a flow seen at close times, for which those of snapshots have only that of the quadrature. */
static void test_exact(void **state)
{
    enum { PATHS = 100, TIMES = 41 };
    const double slope = -0.7, constant = 0.3, h = 0.02;
    hl_context *ctx = *state;
    hl_sde_known still = { .diffusion = 1 };
    for (int linked = 0; linked < 2; linked++) {
        for (size_t r = 0; r < PATHS * TIMES; r++) {
            double t = h * (double)(r % TIMES), x0 = 1 + (double)(r / TIMES) / PATHS, rest = -constant / slope;
            double step = (1 + h * slope / 2) / (1 - h * slope / 2);
            t_all[r] = t;
            id_all[r] = r / TIMES;
            x_all[r] = rest + (x0 - rest) * (linked ? pow(step, (double)(r % TIMES)) : exp(slope * t));
        }
        hl_sde_data data = { PATHS * TIMES, t_all, x_all, linked ? id_all : NULL };
        hl_sde_regress_options o = { .form = "linear", .known = &still, .use = linked ? "steps" : "snapshots" };
        hl_sde_simple *s;
        double f, g;
        CHECK_OK(ctx, hl_sde_regress(ctx, &data, 1, &o, &s));
        for (double x = 0.6; x < 2; x += 0.2) {
            values(s, x, &f, &g);
            CHECK_NEAR(f, constant + slope * x, linked ? 1e-6 : 1e-4, "drift");
        }
        hl_sde_simple_free(s);
    }
}

static void check_decay(hl_context *ctx, const hl_sde_data *data, const char *use, double slack)
{
    hl_sde_simple *s;
    double f, g;
    CHECK_OK(ctx, hl_sde_regress(ctx, data, 1, &(hl_sde_regress_options){ .use = use }, &s));
    hl_sde_regress_report r = hl_sde_simple_report(s);
    assert_int_equal(r.snapshots, strcmp(use, "snapshots") == 0);
    assert_int_equal(r.steps, strcmp(use, "steps") == 0);
    for (double x = 0.2; x < 2; x += 0.4) {
        values(s, x, &f, &g);
        CHECK_NEAR(f, -0.8 * x + 0.4, slack, use);
        CHECK_NEAR(g, 0.5, slack, use);
    }
    hl_sde_simple_free(s);
}

/* Some rows of 2,000 trajectories at 50 times are of all times. */
static void test_some_rows(void **state)
{
    size_t count[50] = { 0 };
    (void)state;
    for (size_t k = 0; k < 2000; k++)
        count[hl_sde_some_row(k, 2000, 100000) % 50]++;
    for (size_t k = 0; k < 50; k++)
        assert_in_range(count[k], 30, 50);
}

/* Snapshots in the order of trajectories, whose number of times the folds divide: every fold has rows of every time. */
static void test_row_order(void **state)
{
    hl_sde_data data = simulate(1, decay, 2, 0.2, 0, 600, 20, 0.15);
    data.trajectory = NULL;
    check_decay(*state, &data, "snapshots", 0.2);
}

static void test_sources(void **state)
{
    hl_sde_data data = simulate(1, decay, 2, 0.2, 0, 600, 20, 0.15), loose = unlink(data, 1, 600);
    check_decay(*state, &data, "steps", 0.06);
    check_decay(*state, &data, "snapshots", 0.2);
    check_decay(*state, &loose, "snapshots", 0.2);
}

/* Steps of 0.5, over which Euler's regression would find -(1 - exp(-0.4)) / 0.5 = -0.66 for the slope. */
static void test_long_steps(void **state)
{
    hl_sde_data data = simulate(1, decay, 2, 0.2, 0, 1500, 8, 0.5);
    check_decay(*state, &data, "steps", 0.06);
}

/* Steps of 0.1 with gaps of 4 between stretches of four rows: the gaps, over which nothing of the start is left, do not make the drift smaller. */
static void test_gaps(void **state)
{
    hl_sde_data data = simulate(1, decay, 2, 0.2, 0, 120, 200, 0.1);
    size_t rows = 0;
    for (size_t r = 0; r < data.rows; r++)
        if (r % 200 % 43 < 4) {
            t_all[rows] = t_all[r];
            x_all[rows] = x_all[r];
            id_all[rows++] = id_all[r];
        }
    data.rows = rows;
    check_decay(*state, &data, "steps", 0.25);
    hl_sde_known known = { .drift = 1, .drift_constant = 0.4, .drift_linear = (double[]){ -0.8 } };
    hl_sde_simple *s;
    double f, g;
    CHECK_OK(*state,
             hl_sde_regress(*state, &data, 1, &(hl_sde_regress_options){ .use = "steps", .known = &known }, &s));
    values(s, 0.5, &f, &g);
    CHECK_NEAR(g, 0.5, 0.02, "the diffusion to a known drift, which tells of no long steps");
    hl_sde_simple_free(s);
}

/* Mean and covariance of a transition of dx = A x dt + B dW over a step of any length are those of the linear equation: here
 * x1' = -x1 + 2 x2, x2' = -x2 with noises .5 and .3, whose moments are known. */
static void test_moments(void **state)
{
    hl_context *ctx = *state;
    hl_regress p = { .ctx = ctx, .dim = 2, .inputs = 2, .entries = 2, .rate = 2, .started = true };
    double z[] = { 0.7, -0.4 }, u[] = { 0 }, theta[] = { 0, -1, 2, 0, 0, -1, 0.25, 0.09 }, a[2];
    size_t entry[][2] = { { 0, 0 }, { 1, 1 } };
    p.z = z;
    p.u = u;
    p.theta = theta;
    p.entry = entry;
    CHECK_OK(ctx, hl_basis_create(ctx, 2, 3, 0, &p.basis[0]));
    CHECK_OK(ctx, hl_basis_create(ctx, 2, 1, 0, &p.basis[1]));
    p.basis[0].factor[1][0] = 1;
    p.basis[0].factor[2][0] = 2;
    p.size[0] = 3;
    p.size[1] = p.cross_size = 1;
    double *scratch = hl_calloc(ctx, hl_moments_scratch(&p), sizeof *scratch);
    for (double h = 0.2; h < 3; h *= 2) {
        hl_moments m = { .a = a };
        /* exp(A s) = e^-s (1, 2 s; 0, 1); P = integral of exp(A s) Q exp(A s)' */
        double e = exp(-h), i0 = 0.5 * (1 - e * e), i1 = 0.25 * (1 - e * e * (1 + 2 * h));
        double i2 = 0.25 * (1 - e * e * (1 + 2 * h + 2 * h * h));
        assert_true(hl_regress_moments(&p, 0, h, scratch, &m));
        CHECK_NEAR(m.mean[0], e * (z[0] + 2 * h * z[1]), 2e-3, "mean");
        CHECK_NEAR(m.mean[1], e * z[1], 1e-3, "mean");
        CHECK_NEAR(m.covariance[0], 0.25 * i0 + 0.09 * 4 * i2, 2e-3, "variance");
        CHECK_NEAR(m.covariance[1], 0.09 * 2 * i1, 1e-3, "covariance");
        CHECK_NEAR(m.covariance[3], 0.09 * i0, 1e-3, "second variance");
        CHECK_NEAR(m.f[0], -m.mean[0] + 2 * m.mean[1], 1e-12, "mean drift");
        CHECK_NEAR(m.function[1], m.mean[0], 1e-12, "mean function");
    }
    hl_free(ctx, scratch);
    hl_basis_free(ctx, &p.basis[0]);
    hl_basis_free(ctx, &p.basis[1]);
}

/* One path: two wells and a hill between them. */
static void test_one_path(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, well, 1, 0, 0, 1, 20000, 0.02);
    hl_sde_simple *s;
    double f[5], g;
    data.trajectory = NULL;
    CHECK_OK(ctx, hl_sde_regress(ctx, &data, 1, NULL, &s));
    for (size_t k = 0; k < 5; k++)
        values(s, -1.25 + 0.625 * (double)k, &f[k], &g);
    CHECK(f[0] > 0.2 && f[1] < -0.1 && f[3] > 0.1 && f[4] < -0.2, "signs of the drift");
    CHECK_NEAR(f[2], 0, 0.15, "the hill");
    CHECK_NEAR(g, 0.5, 0.03, "diffusion");
    hl_sde_simple_free(s);
}

/* One path whose noise is strong in few of its times: held-out errors take a constant diffusion for as good, and the residuals of the
 * steps do not. By held-out errors alone the diffusion of two of these paths had an error of .3 and more. */
/* Slope of the drift of a linear equation, by the exact likelihood of its steps. */
static double exact_slope(const hl_sde_data *data, double step)
{
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t r = 0; r + 1 < data->rows; r++)
        if (data->trajectory[r] == data->trajectory[r + 1]) {
            double a = data->x[r], b = data->x[r + 1];
            n++, x += a, y += b, xx += a * a, xy += a * b;
        }
    return log((xy - x * y / n) / (xx - x * x / n)) / step;
}

/* Few data of a linear equation: where the states of a fold are is no noise of the regressors. Taken out as if it were, slopes are too steep. */
static void test_few_linear(void **state)
{
    hl_context *ctx = *state;
    const double step = 0.05;
    for (size_t paths = 1; paths <= 20; paths += 19)
        for (size_t k = 0; k < 3; k++) {
            hl_sde_data data = simulate(1, decay, 0.5 + 0.1 * (double)k, 0.4, 0, paths, paths > 1 ? 151 : 2001, step);
            hl_sde_simple *s;
            double f[2], g, exact = exact_slope(&data, step);
            assert_int_equal(hl_sde_regress(ctx, &data, 1, &(hl_sde_regress_options){ .form = "linear" }, &s), HL_OK);
            values(s, 0, &f[0], &g);
            values(s, 1, &f[1], &g);
            hl_sde_simple_free(s);
            CHECK_LE(fabs(f[1] - f[0] - exact) / fabs(exact), 0.02, "slope");
        }
}

static void travel(const double *x, double *f, double *g)
{
    (void)x;
    f[0] = 1.5, f[1] = -0.8;
    g[0] = 0.5, g[1] = 0.3;
}

/* Constant drifts from snapshots: slopes that the data do not show must not stand in for the diffusion. */
static void test_constant_drift(void **state)
{
    hl_context *ctx = *state;
    const double at = 1, x[] = { 1, -0.5 };
    for (size_t paths = 500; paths <= 700; paths += 100) {
        hl_sde_data data = simulate(2, travel, 0, 0.3, 0, paths, 15, 2. / 14);
        double f[2], g[2];
        hl_sde_simple *s;
        data = unlink(data, 2, paths);
        assert_int_equal(hl_sde_regress(ctx, &data, 2, NULL, &s), HL_OK);
        assert_int_equal(hl_sde_simple_eval(s, 1, &at, x, f, g), HL_OK);
        hl_sde_simple_free(s);
        CHECK_LE(fabs(f[0] - 1.5), 0.1, "drift");
        CHECK_LE(fabs(g[0] - 0.5), 0.1, "diffusion");
        CHECK_LE(fabs(g[1] - 0.3), 0.06, "the smaller diffusion");
    }
}

static void return_to_one(const double *x, double *f, double *g)
{
    f[0] = 2 * (1 - x[0]);
    g[0] = 0.5 * sqrt(fmax(x[0], 0));
}

/* Few snapshots: an unstable candidate that is the best by chance must not make a drift of nearly zero as good as any. */
static void test_few_snapshots(void **state)
{
    hl_context *ctx = *state;
    for (size_t paths = 500; paths <= 600; paths += 100) {
        hl_sde_data data = simulate(1, return_to_one, 1.6, 0.5, 0, paths, 12, 3. / 11);
        double f[2], g;
        hl_sde_simple *s;
        data = unlink(data, 1, paths);
        assert_int_equal(hl_sde_regress(ctx, &data, 1, NULL, &s), HL_OK);
        values(s, 0.7, &f[0], &g);
        values(s, 1.3, &f[1], &g);
        hl_sde_simple_free(s);
        CHECK_NEAR((f[1] - f[0]) / 0.6, -2, 0.6, "slope");
        CHECK_NEAR(g, 0.57, 0.12, "diffusion");
    }
}

static void bend(const double *x, double *f, double *g)
{
    f[0] = 2 * tanh(x[0] + x[1]) - x[0];
    f[1] = tanh(2 * (x[0] - x[1])) - x[1];
    g[0] = g[1] = 0.3;
}

/* 300 steps: the residuals of a linear drift show what it lacks more clearly than held-out errors. */
static void test_few_steps(void **state)
{
    hl_context *ctx = *state;
    for (size_t paths = 300; paths <= 303; paths++) {
        hl_sde_data data = simulate(2, bend, 0.05 * (double)(paths - 300), 1.2, 0, paths, 2, 0.138);
        double f[2], g[2], true_f[2], true_g[2], left = 0, size = 0;
        hl_sde_simple *s;
        assert_int_equal(hl_sde_regress(ctx, &data, 2, NULL, &s), HL_OK);
        for (size_t r = 0; r < data.rows; r++) {
            bend(data.x + 2 * r, true_f, true_g);
            assert_int_equal(hl_sde_simple_eval(s, 1, data.t + r, data.x + 2 * r, f, g), HL_OK);
            for (size_t i = 0; i < 2; i++) {
                left += (f[i] - true_f[i]) * (f[i] - true_f[i]);
                size += true_f[i] * true_f[i];
            }
        }
        hl_sde_simple_free(s);
        CHECK_LE(sqrt(left / size), 0.28, "drift");
    }
}

/* Of more than 20,000 steps, rounds that prepare another use some; the last one uses all, so that each row has its say. */
static void test_many_steps(void **state)
{
    enum { CHANGED = 6 };
    const hl_sde_regress_options o = { .form = "linear", .use = "steps" };
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, decay, 2, 0.5, 0, 300, 80, 0.05);
    hl_sde_simple *s;
    double f, g, before[2];
    CHECK_OK(ctx, hl_sde_regress(ctx, &data, 1, &o, &s));
    for (double x = -0.5; x < 2; x += 0.5) {
        values(s, x, &f, &g);
        CHECK_NEAR(f, 0.4 - 0.8 * x, 0.12, "drift");
        CHECK_NEAR(g, 0.5, 0.01, "diffusion");
    }
    values(s, 0.5, &before[0], &before[1]);
    hl_sde_simple_free(s);
    for (size_t k = 0; k < CHANGED; k++) {
        double *x = &x_all[3700 * k + 37], own = *x;
        *x += 0.5;
        CHECK_OK(ctx, hl_sde_regress(ctx, &data, 1, &o, &s));
        values(s, 0.5, &f, &g);
        CHECK_LE(1e-6, fabs(g - before[1]), "the diffusion feels every row");
        hl_sde_simple_free(s);
        *x = own;
    }
}

static void test_rare_noise(void **state)
{
    enum { N = 1000, FIRST = 700, PATHS = 6 };
    hl_context *ctx = *state;
    static double f[N], g[N];
    const double step = 0.08 / 20;
    for (uint64_t seed = FIRST; seed < FIRST + PATHS; seed++) {
        hl_sde_simple *s = NULL;
        double x = 5, missed = 0, size = 0;
        for (size_t r = 0; r < N; r++) {
            t_all[r] = 0.08 * (double)r;
            x_all[r] = x;
            for (size_t k = 0; k < 20; k++)
                x += 0.5 * (5 - x) * step +
                     0.15 * pow(fmax(x, 1e-9), 1.3) * sqrt(step) * hl_random_normal(seed, 9, r * 20 + k);
        }
        hl_sde_data data = { N, t_all, x_all, NULL };
        CHECK_OK(ctx, hl_sde_regress(ctx, &data, 1, NULL, &s));
        CHECK_OK(ctx, hl_sde_simple_eval(s, N, t_all, x_all, f, g));
        for (size_t r = 0; r < N; r++) {
            double truth = 0.15 * pow(x_all[r], 1.3);
            missed += (g[r] - truth) * (g[r] - truth);
            size += truth * truth;
        }
        CHECK_LE(sqrt(missed / size), 0.2, "diffusion of one path");
        hl_sde_simple_free(s);
    }
}

static void test_state_dependent(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, growth, 1, 0.2, 0, 800, 20, 0.05), loose = unlink(data, 1, 800);
    for (int linked = 0; linked < 2; linked++) {
        hl_sde_simple *s;
        double f, g, tolerance = linked ? 0.06 : 0.3;
        CHECK_OK(ctx, hl_sde_regress(ctx, linked ? &data : &loose, 1, NULL, &s));
        for (double x = 0.8; x < 2; x += 0.4) {
            values(s, x, &f, &g);
            CHECK_NEAR(f, 0.5 * x, tolerance * x, "drift");
            CHECK_NEAR(g, 0.4 * x, tolerance * x, "diffusion");
        }
        hl_sde_simple_free(s);
    }
}

static void test_correlated(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(2, pair, 2, 0.2, 0.9, 400, 20, 0.1);
    hl_sde_simple *s;
    CHECK_OK(ctx, hl_sde_regress(ctx, &data, 2, NULL, &s));
    assert_true(hl_sde_simple_report(s).correlated);
    CHECK_NEAR(hl_sde_simple_correlation(s, 0, 1), 0.9, 0.03, "correlation");
    CHECK_NEAR(s->factor[2], hl_sde_simple_correlation(s, 1, 0), 1e-12, "factor");
    CHECK_NEAR(s->factor[2] * s->factor[2] + s->factor[3] * s->factor[3], 1, 1e-12, "rows of length 1");
    hl_sde_simple_free(s);
    CHECK_OK(ctx, hl_sde_regress(ctx, &data, 2, &(hl_sde_regress_options){ .noise = "diagonal" }, &s));
    CHECK_NEAR(hl_sde_simple_correlation(s, 0, 1), 0, 0, "diagonal");
    hl_sde_simple_free(s);
}

/* What is known stands in the result as it was given. */
static void test_known(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, decay, 2, 0.2, 0, 300, 20, 0.15), loose = unlink(data, 1, 300);
    hl_sde_known known = { .drift = 1, .drift_constant = 0.4, .drift_linear = (double[]){ -0.8 } };
    hl_sde_simple *s;
    double f, g;
    CHECK_OK(ctx, hl_sde_regress(ctx, &loose, 1, &(hl_sde_regress_options){ .known = &known }, &s));
    values(s, 1.5, &f, &g);
    CHECK_NEAR(f, -0.8, 1e-12, "known drift");
    CHECK_NEAR(g, 0.5, 0.05, "its diffusion");
    hl_sde_simple_free(s);
    known = (hl_sde_known){ .diffusion = 1, .diffusion_value = 0.5 };
    CHECK_OK(ctx, hl_sde_regress(ctx, &data, 1, &(hl_sde_regress_options){ .known = &known }, &s));
    values(s, 1.5, &f, &g);
    CHECK_NEAR(f, -0.8, 0.1, "its drift");
    CHECK_NEAR(g, 0.5, 1e-6, "known diffusion");
    hl_sde_simple_free(s);
}

static void test_positive(void **state)
{
    (void)state;
    CHECK_NEAR(hl_sde_simple_positive(3, 0.1), 3, 1e-12, "well above");
    CHECK_NEAR(hl_sde_simple_positive(0, 0.1), 0.1 * log(2), 1e-15, "at 0");
    CHECK(hl_sde_simple_positive(-2, 0.1) > 0 && hl_sde_simple_positive(-2, 0.1) < 1e-8, "below");
}

static void test_refusals(void **state)
{
    hl_context *ctx = *state;
    hl_sde_simple *s;
    double t[] = { 0, 0, 1, 1 }, x[] = { 0, 1, 2, NAN };
    hl_sde_data data = { 4, t, x, NULL };
    CHECK_STATUS(ctx, hl_sde_regress(ctx, &data, 1, NULL, &s), HL_ERR_NOT_FINITE);
    x[3] = 3;
    CHECK_STATUS(ctx, hl_sde_regress(ctx, &data, 1, NULL, &s), HL_ERR_NO_SOLUTION);
    CHECK_STATUS(ctx, hl_sde_regress(ctx, &data, 1, &(hl_sde_regress_options){ .form = "quartic" }, &s),
                 HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_regress(ctx, &data, 1, &(hl_sde_regress_options){ .noise = "red" }, &s), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_regress(ctx, &data, 0, NULL, &s), HL_ERR_INVALID);
    assert_null(s);
}

static hl_status small_fit(hl_context *ctx, double *f)
{
    hl_sde_data data = { 1200, t_all, x_all, id_all };
    hl_sde_simple *s = NULL;
    hl_status status = hl_sde_regress(ctx, &data, 2, NULL, &s);
    double g[2];
    if (status == HL_OK)
        status = hl_sde_simple_eval(s, 1, (double[]){ 0 }, (double[]){ 0.5, -0.5 }, f, g);
    hl_sde_simple_free(s);
    return status;
}

static void test_threads(void **state)
{
    double one[2], three[2];
    (void)state;
    simulate(2, pair, 2, 0.2, 0.5, 120, 10, 0.2);
    for (int k = 0; k < 2; k++) {
        test_allocator allocator = { 0 };
        hl_context *ctx = test_context(&allocator, k ? 3 : 1);
        CHECK_OK(ctx, small_fit(ctx, k ? three : one));
        hl_context_free(ctx);
    }
    assert_memory_equal(one, three, sizeof one);
}

typedef struct stopper {
    size_t asked, at; /* at: when it says yes; 0: never */
} stopper;

static int ask(void *user)
{
    stopper *s = user;
    return ++s->asked == s->at || (s->at && s->asked > s->at);
}

/* The user is asked between solutions, not only between rounds, whatever the number of threads: with many columns a round takes minutes. */
static void test_stop(void **state)
{
    enum { LEAST = 200 };
    (void)state;
    simulate(2, pair, 2, 0.2, 0.5, 120, 10, 0.2);
    for (int threads = 1; threads <= 2; threads++) {
        double result[2];
        stopper s = { 0 };
        hl_context *ctx;
        CHECK_OK(NULL, hl_context_create(&(hl_context_options){ .threads = threads, .stop = ask, .user = &s }, &ctx));
        CHECK_OK(ctx, small_fit(ctx, result));
        size_t all = s.asked;
        CHECK(all > LEAST, "the user is asked often");
        for (size_t k = 1; k < 4; k++) {
            s = (stopper){ .at = all * k / 4 };
            CHECK_STATUS(ctx, small_fit(ctx, result), HL_STOPPED);
            assert_true(s.asked <= s.at + 2);
        }
        hl_context_free(ctx);
    }
}

/* ---- directions ---- */

static void sigmoid(const double *x, double *f, double *g)
{
    f[0] = -x[0] + 1.5 * tanh(1.6 * x[0] - 1.2 * x[1]);
    f[1] = -x[1] + 1.2 * tanh(1.4 * x[0] - 0.5 * x[1]);
    g[0] = g[1] = 0.25;
}

static double drift_error(hl_context *ctx, const hl_sde_simple *s, const hl_sde_data *data, motion_fn *motion)
{
    static double f[2 * MOST];
    double missed = 0, size = 0;
    CHECK_OK(ctx, hl_sde_simple_eval(s, data->rows, data->t, data->x, f, NULL));
    for (size_t r = 0; r < data->rows; r++) {
        double truth[2], g[2];
        motion(data->x + 2 * r, truth, g);
        for (size_t i = 0; i < 2; i++) {
            missed += (f[2 * r + i] - truth[i]) * (f[2 * r + i] - truth[i]);
            size += truth[i] * truth[i];
        }
    }
    return sqrt(missed / size);
}

/* A function of a sum of columns is found: no other dictionary has it. Where the drift is a polynomial nothing is added. */
static void test_ridges(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(2, sigmoid, 0.4, 0.6, 0, 1000, 20, 0.1), loose = unlink(data, 2, 1000);
    for (int linked = 0; linked < 2; linked++) {
        const hl_sde_data *seen = linked ? &data : &loose;
        hl_sde_simple *s = NULL, *poly = NULL;
        CHECK_OK(ctx, hl_sde_regress(ctx, seen, 2, NULL, &s));
        CHECK_OK(ctx, hl_sde_regress(ctx, seen, 2, &(hl_sde_regress_options){ .form = "poly3" }, &poly));
        CHECK(strncmp(hl_sde_simple_report(s).form, "ridge", 5) == 0, hl_sde_simple_report(s).form);
        CHECK_LE(drift_error(ctx, s, seen, sigmoid), 0.7 * drift_error(ctx, poly, seen, sigmoid),
                 "drift of directions");
        CHECK_LE(drift_error(ctx, s, seen, sigmoid), linked ? 0.06 : 0.2, "drift of directions");
        hl_sde_simple_free(s);
        hl_sde_simple_free(poly);
    }
}

/* ---- models ---- */

/* A model of a regression has its f and g, with exact slopes, also after a file. */
static void check_model(hl_context *ctx, const char *form)
{
    enum { ROWS = 40 };
    static double x[2 * ROWS], t[ROWS], f[2 * ROWS], g[2 * ROWS], f1[2 * ROWS], g1[2 * ROWS], dg[2 * ROWS],
        up[2 * ROWS];
    hl_sde_data data = simulate(2, pair, 2, 0.2, 0.9, 300, 20, 0.1);
    hl_sde_simple *s;
    hl_sde *sde, *loaded;
    size_t size;
    CHECK_OK(ctx, hl_sde_regress(ctx, &data, 2, &(hl_sde_regress_options){ .form = form, .noise = "full" }, &s));
    s->coefficient[1][1] = 0.2; /* so that g depends on x */
    CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2, .hidden = 3, .simple = s, .dtype = HL_F64 }, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 1));
    CHECK_OK(ctx, hl_sde_write(sde, NULL, 0, &size));
    void *bytes = malloc(size);
    CHECK_OK(ctx, hl_sde_write(sde, bytes, size, &size));
    CHECK_OK(ctx, hl_sde_read(ctx, bytes, size, &loaded));
    memcpy(x, data.x + 100, sizeof x);
    CHECK_OK(ctx, hl_sde_simple_eval(s, ROWS, t, x, f, g));
    for (int k = 0; k < 2; k++) {
        hl_sde *m = k ? loaded : sde;
        CHECK_OK(ctx, hl_sde_eval(m, ROWS, t, x, &(hl_sde_values){ .f = f1, .g = g1, .dg = dg }));
        for (size_t i = 0; i < 2 * ROWS; i++) {
            CHECK_NEAR(f1[i], f[i], 1e-10, "drift");
            CHECK_NEAR(g1[i], g[i], 1e-10, "diffusion");
        }
    }
    for (size_t r = 0; r < ROWS; r++)
        x[2 * r] += 1e-5;
    CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .g = up }));
    for (size_t r = 0; r < ROWS; r++)
        x[2 * r] -= 2e-5;
    CHECK_OK(ctx, hl_sde_eval(sde, ROWS, t, x, &(hl_sde_values){ .g = g1 }));
    for (size_t r = 0; r < ROWS; r++)
        CHECK_NEAR(dg[2 * r], (up[2 * r] - g1[2 * r]) / 2e-5, 1e-7, "slope");
    hl_noise_system system;
    CHECK_OK(ctx, hl_sde_system(loaded, &system));
    CHECK_NEAR(system.factor[2], hl_sde_simple_correlation(s, 0, 1), 1e-12, "factor");
    CHECK_STATUS(ctx, hl_sde_set_scale(loaded, 0, 1, s->mean, s->deviation), HL_ERR_INVALID);
    free(bytes);
    hl_sde_free(sde);
    hl_sde_free(loaded);
    hl_sde_simple_free(s);
}

static void test_model(void **state)
{
    check_model(*state, "radial");
    check_model(*state, "ridge");
}

/* Conditions of snapshots with an estimate whose A, with correlations -.9 of three columns, is not positive. */
static hl_status weigh(void *user, const hl_regress *from, const hl_candidate *candidate, const hl_sde_simple *s)
{
    bool *finite = user;
    hl_candidate crossed = *candidate;
    hl_regress p;
    hl_weak *weak = NULL;
    (void)s;
    crossed.crossed = true;
    hl_status status = hl_regress_narrow(from, &crossed, &p);
    for (size_t e = 0; e < p.entries && status == HL_OK; e++)
        for (size_t a = 0; a < hl_regress_noise_size(&p, e); a++)
            p.theta[hl_regress_noise(&p, e) + a] = a ? 0 : e < p.dim ? 1 : -0.9;
    p.started = p.settled = true;
    p.apart = false;
    if (status == HL_OK)
        status = hl_weak_create(&p, &weak);
    hl_conditions c = { .count = hl_weak_count(weak) };
    size_t size = HL_REGRESS_FOLDS * c.count * (p.columns + 1);
    c.rows = hl_calloc(p.ctx, size, sizeof *c.rows);
    if (status == HL_OK)
        status = c.rows && c.count ? hl_weak_rows(weak, &c, 0) : HL_ERR_NOMEM;
    *finite = status == HL_OK;
    for (size_t k = 0; k < size && *finite; k++)
        *finite = isfinite(c.rows[k]);
    hl_weak_free(weak);
    hl_free(p.ctx, c.rows);
    hl_basis_free(p.ctx, &p.basis[0]);
    hl_basis_free(p.ctx, &p.basis[1]);
    hl_free(p.ctx, p.theta);
    return status;
}

/* Where the estimate implies no covariance of trajectories, rows are weighted as independent ones: the fit does not fail. */
static void test_no_covariance(void **state)
{
    enum { PATHS = 100, TIMES = 8 };
    hl_context *ctx = *state;
    static double x[3 * PATHS * TIMES];
    hl_sde_simple *s = NULL;
    bool finite = false;
    for (size_t k = 0; k < PATHS * TIMES; k++) {
        t_all[k] = 0.2 * (double)(k / PATHS);
        for (size_t i = 0; i < 3; i++)
            x[3 * k + i] = 2 * exp(-t_all[k]) + 0.5 * hl_random_normal(8, i, k);
    }
    hl_sde_data data = { PATHS * TIMES, t_all, x, NULL };
    CHECK_OK(ctx, hl_regress_run(ctx, &data, 3, &(hl_sde_regress_options){ .form = "linear" }, weigh, &finite, &s));
    CHECK(finite, "conditions without a covariance of trajectories");
    hl_sde_simple_free(s);
}

/* dx = -x dt + s dW, dy = -y dt + s dV with correlated W, V from a unit Gaussian: covariance e + (1 - e) s^2/2 C, e = exp(-2 t). R of
 * the exact density is 0, and is not without the cross term. */
static void test_correlated_residual(void **state)
{
    enum { ROWS = 50 };
    const double rho = 0.7, noise = 0.8;
    hl_context *ctx = *state;
    hl_graph *g;
    hl_plan *plan;
    static double x[2 * ROWS], t[ROWS], r[ROWS], without[ROWS];
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node tn = hl_input(g, "t", 0, NULL), xn = hl_input(g, "x", 1, (size_t[]){ 2 });
    hl_node e = hl_exp(g, hl_scale(g, -2, tn)), rest = hl_scale(g, noise * noise / 2, hl_sub(g, hl_const(g, 1), e));
    hl_node v = hl_add(g, e, rest), c = hl_scale(g, rho, rest), det = hl_sub(g, hl_mul(g, v, v), hl_mul(g, c, c));
    hl_node a = hl_reshape(g, hl_slice(g, xn, 0, 0, 1), 0, NULL), b = hl_reshape(g, hl_slice(g, xn, 0, 1, 1), 0, NULL);
    hl_node square = hl_sub(g, hl_mul(g, v, hl_add(g, hl_mul(g, a, a), hl_mul(g, b, b))),
                            hl_scale(g, 2, hl_mul(g, c, hl_mul(g, a, b))));
    hl_node logp = hl_scale(g, -0.5, hl_add(g, hl_log(g, det), hl_div(g, square, det)));
    hl_fp_nodes n = { .f = hl_neg(g, xn), .g = hl_broadcast(g, hl_const(g, noise), 1, (size_t[]){ 2 }) };
    CHECK_OK(ctx, hl_fp_derive(g, n.f, xn, 1, &n.df));
    CHECK_OK(ctx, hl_fp_derive_density(g, logp, tn, xn, &n));
    CHECK_OK(ctx, hl_fp_build(g, &n));
    hl_node plain = n.residual;
    CHECK_OK(ctx, hl_fp_add_cross(g, logp, xn, 0, 1, hl_const(g, rho * noise * noise), &n));
    CHECK_OK(ctx, hl_fp_build(g, &n));
    CHECK_OK(ctx,
             hl_plan_create(ctx, g, 2, (hl_node[]){ n.residual, plain }, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    for (size_t k = 0; k < ROWS; k++) {
        t[k] = 0.05 * (double)k;
        x[2 * k] = hl_random_normal(3, 1, 2 * k);
        x[2 * k + 1] = hl_random_normal(3, 1, 2 * k + 1);
    }
    CHECK_OK(ctx, hl_plan_run(plan, ROWS, (const void *[]){ t, x }, NULL, (void *[]){ r, without }));
    double mean = 0;
    for (size_t k = 0; k < ROWS; k++) {
        CHECK_LE(fabs(r[k]), 1e-10, "residual");
        mean += fabs(without[k]) / ROWS;
    }
    CHECK(mean > 0.05, "without the cross term");
    assert_int_not_equal(hl_fp_add_cross(g, logp, xn, 1, 1, tn, &n), HL_OK);
    hl_plan_free(plan);
    hl_graph_free(g);
}

static int two_noises(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    for (size_t k = 0; k < 2 * at->count; k++) {
        if (f)
            f[k] = 0;
        if (g)
            g[k] = k % 2 ? 3 : 2;
        if (dg)
            dg[k] = 0;
    }
    return 0;
}

/* Increments have the covariance g_i g_j (C C')_ij; methods that need commuting noise are refused. */
static void test_correlated_paths(void **state)
{
    enum { ROWS = 4000 };
    hl_context *ctx = *state;
    static double y[2 * ROWS], t[ROWS];
    const double factor[] = { 1, 0, 0.6, 0.8 };
    hl_noise_system system = { .n = 2, .coefficients = two_noises, .slope = 1, .factor = factor };
    hl_simulator *simulator;
    static const char *const refused[] = { "milstein", "heun", "srk" };
    for (size_t k = 0; k < 3; k++)
        CHECK_STATUS(ctx,
                     hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = refused[k] }, &simulator),
                     HL_ERR_UNSUPPORTED);
    for (int k = 0; k < 2; k++) {
        double sum[3] = { 0 };
        CHECK_OK(ctx,
                 hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = k ? "sra" : NULL }, &simulator));
        memset(y, 0, sizeof y);
        CHECK_OK(ctx, hl_simulator_run(simulator, ROWS, 0, t, 0.5, 2, y, NULL));
        for (size_t r = 0; r < ROWS; r++) {
            sum[0] += y[2 * r] * y[2 * r] / ROWS;
            sum[1] += y[2 * r] * y[2 * r + 1] / ROWS;
            sum[2] += y[2 * r + 1] * y[2 * r + 1] / ROWS;
        }
        CHECK_NEAR(sum[0], 4, 0.4, "first variance");
        CHECK_NEAR(sum[1], 3.6, 0.4, "covariance");
        CHECK_NEAR(sum[2], 9, 0.8, "second variance");
        hl_simulator_free(simulator);
    }
}

/* Mean square of what the estimate leaves of the drift's conditions of steps, with g^2 of the estimate times `scale`. */
typedef struct wrong_noise {
    double scale, rate, square;
} wrong_noise;

static hl_status leave(void *user, const hl_regress *from, const hl_candidate *candidate, const hl_sde_simple *s)
{
    wrong_noise *w = user;
    hl_regress p;
    hl_steps *steps = NULL;
    (void)s;
    hl_status status = hl_regress_narrow(from, candidate, &p);
    p.rate = w->rate;
    p.longest = INFINITY;
    for (size_t k = hl_regress_noise(&p, 0); status == HL_OK && k < p.columns; k++)
        p.theta[k] *= w->scale;
    if (status == HL_OK)
        status = hl_steps_create(&p, false, &steps);
    hl_conditions c = { .count = hl_steps_count(steps) };
    size_t wide = p.columns + 1, size = c.count * wide;
    c.rows = hl_calloc(p.ctx, HL_REGRESS_FOLDS * size, sizeof *c.rows);
    if (status == HL_OK)
        status = c.rows ? hl_steps_rows(steps, &c, 0) : HL_ERR_NOMEM;
    w->square = 0;
    for (size_t r = 0; r < p.size[0] && status == HL_OK; r++)
        for (size_t q = 0; q < HL_REGRESS_FOLDS; q++) { /* of a fold: FOLDS times the variance of a mean */
            const double *row = c.rows + q * size + r * wide;
            double left = row[wide - 1] - hl_dot(wide - 1, row, p.theta);
            w->square += left * left / (double)(HL_REGRESS_FOLDS * HL_REGRESS_FOLDS * p.size[0]);
        }
    hl_steps_free(steps);
    hl_free(p.ctx, c.rows);
    hl_basis_free(p.ctx, &p.basis[0]);
    hl_basis_free(p.ctx, &p.basis[1]);
    hl_free(p.ctx, p.theta);
    return status;
}

/* Conditions of steps have about unit variance, with an estimate of the diffusion that is far too small as well: held-out errors would be
 * dominated by a few rows otherwise. */
static void test_wrong_noise(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = simulate(1, decay, 2, 0.3, 0, 400, 10, 0.1);
    for (int k = 0; k < 4; k++) {
        wrong_noise w = { .scale = k % 2 ? 1e-4 : 1, .rate = k < 2 ? 0 : 0.5 };
        hl_sde_simple *s = NULL;
        CHECK_OK(ctx, hl_regress_run(ctx, &data, 1, NULL, leave, &w, &s));
        hl_sde_simple_free(s);
        CHECK_LE(w.square, 3, "variance of the conditions");
        CHECK_LE(0.3, w.square, "variance of the conditions");
    }
}

static hl_status scenario(hl_context *ctx, void *user)
{
    return small_fit(ctx, user);
}

static hl_status ridge_scenario(hl_context *ctx, void *user)
{
    hl_sde_data data = { 400, t_all, x_all, id_all };
    hl_sde_simple *s = NULL;
    hl_sde_regress_options options = { .form = "ridge", .use = "steps", .noise = "diagonal" };
    hl_status status = hl_sde_regress(ctx, &data, 2, &options, &s);
    if (status == HL_OK)
        status = hl_sde_simple_eval(s, 1, (double[]){ 0 }, (double[]){ 0.5, -0.5 }, user, NULL);
    hl_sde_simple_free(s);
    return status;
}

/* Fails every third of the last allocations of a scenario: those of the second regression come after all of the first. */
static void check_last_allocations(long last, hl_status (*run)(hl_context *ctx, void *user), void *user)
{
    test_allocator none = { 0 };
    hl_context *ctx = test_context(&none, 1);
    CHECK_OK(ctx, run(ctx, user));
    hl_context_free(ctx);
    for (long n = none.calls; n > none.calls - last; n -= 3) {
        test_allocator allocator;
        ctx = test_context(&allocator, 1);
        allocator.fail_at = n;
        CHECK_STATUS(ctx, run(ctx, user), HL_ERR_NOMEM);
        hl_context_free(ctx);
        assert_int_equal(allocator.live, 0);
    }
}

static void test_memory(void **state)
{
    double f[2];
    (void)state;
    simulate(2, pair, 2, 0.2, 0.5, 120, 10, 0.2);
    check_every_allocation(1, scenario, f);
    simulate(2, sigmoid, 0.4, 0.6, 0, 50, 8, 0.1);
    check_last_allocations(60, ridge_scenario, f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flow),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_some_rows),
        cmocka_unit_test(test_row_order),
        cmocka_unit_test(test_long_steps),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_one_path),
        cmocka_unit_test(test_few_linear),
        cmocka_unit_test(test_constant_drift),
        cmocka_unit_test(test_few_snapshots),
        cmocka_unit_test(test_few_steps),
        cmocka_unit_test(test_many_steps),
        cmocka_unit_test(test_rare_noise),
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_state_dependent),
        cmocka_unit_test(test_correlated),
        cmocka_unit_test(test_positive),
        cmocka_unit_test(test_wrong_noise),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_model),
        cmocka_unit_test(test_ridges),
        cmocka_unit_test(test_no_covariance),
        cmocka_unit_test(test_correlated_residual),
        cmocka_unit_test(test_correlated_paths),
    };
    return cmocka_run_group_tests(tests, group_context, group_context_free);
}
