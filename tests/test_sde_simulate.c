/* test_sde_simulate.c - Brownian paths: the same bits however they are asked for, and the right distribution; every
 * stepper's strong and weak order on problems with known solutions; both senses of an equation; wrong uses. */
#include "net_support.h"

#include "hollow/simulate.h"
#include "sde/sde.h"

/* ---- paths ---- */

/* W at every time is the same from any level, and increments are its differences, exactly. */
static void test_refinement(void **state)
{
    (void)state;
    for (uint64_t path = 0; path < 20; path++) {
        hl_brownian b = { 7, path % 2 ? 5.0 : 0.3 };
        hl_span stack[12];
        double w = 0;
        for (uint64_t k = 0; k < 1024; k++) {
            double dw, half[2], value = hl_brownian_value(&b, path, 3, 10, k);
            assert_true(value == w);
            assert_true(hl_brownian_value(&b, path, 3, 15, k << 5) == value);
            hl_brownian_increment(&b, path, 3, 10, k, &dw, NULL);
            hl_brownian_increment(&b, path, 3, 11, 2 * k, &half[0], NULL);
            hl_brownian_increment(&b, path, 3, 11, 2 * k + 1, &half[1], NULL);
            assert_true(half[0] + half[1] == dw);
            hl_brownian_walk(&b, path, 3, 10, k, stack);
            assert_true(stack[10].dw == dw);
            w += dw;
        }
        assert_true(hl_brownian_value(&b, path, 3, 0, 1) == w);
        assert_true(hl_brownian_value(&b, path, 3, 4, 16) == w);
    }
}

/* The integral over a span is made of those over its halves. */
static void test_integral_refinement(void **state)
{
    hl_brownian b = { 3, 2.0 };
    (void)state;
    for (int level = 0; level < 12; level++)
        for (uint64_t k = 0; k < UINT64_C(1) << level && k < 16; k++) {
            double dw, dz, w1, z1, w2, z2, h = ldexp(b.span, -level);
            hl_brownian_increment(&b, 5, 1, level, k, &dw, &dz);
            hl_brownian_increment(&b, 5, 1, level + 1, 2 * k, &w1, &z1);
            hl_brownian_increment(&b, 5, 1, level + 1, 2 * k + 1, &w2, &z2);
            CHECK_NEAR(z1 + z2 + 0.5 * h * w1, dz, 1e-12 * h * sqrt(h), "integral");
            CHECK(dz != 0 && z1 != z2, "not degenerate");
        }
}

/* var dw = h, var dz = h^3 / 3, cov = h^2 / 2; neighbours and dimensions are independent. */
static void test_distribution(void **state)
{
    enum { PATHS = 40000 };
    (void)state;
    for (int level = 0; level < 4; level++) {
        hl_brownian b = { 11, 1.5 };
        double h = ldexp(b.span, -level), ww = 0, wz = 0, zz = 0, next = 0, other = 0, nz = 0;
        uint64_t last = (UINT64_C(1) << level) - 1;
        for (uint64_t path = 0; path < PATHS; path++) {
            double dw, dz, dw2 = 0, dz2 = 0, dw3;
            hl_brownian_increment(&b, path, 0, level, last, &dw, &dz);
            hl_brownian_increment(&b, path, 1, level, last, &dw3, NULL);
            if (level)
                hl_brownian_increment(&b, path, 0, level, last - 1, &dw2, &dz2);
            ww += dw * dw / h / PATHS;
            wz += dw * dz / (h * h) / PATHS;
            zz += dz * dz / (h * h * h) / PATHS;
            next += dw * dw2 / h / PATHS;
            nz += dz * dz2 / (h * h * h) / PATHS;
            other += dw * dw3 / h / PATHS;
        }
        CHECK_NEAR(ww, 1, 0.03, "var dw");
        CHECK_NEAR(wz, 0.5, 0.02, "cov dw dz");
        CHECK_NEAR(zz, 1. / 3, 0.012, "var dz");
        CHECK_NEAR(next, 0, 0.025, "neighbours");
        CHECK_NEAR(nz, 0, 0.01, "neighbours' integrals");
        CHECK_NEAR(other, 0, 0.025, "dimensions");
    }
}

/* ---- problems with known solutions ---- */

typedef struct problem {
    const char *name;
    hl_noise_fn *coefficients;
    double (*solution)(double t, double w); /* from x0 = solution(0, 0) */
    bool additive, stratonovich;
    double (*end)(const hl_brownian *b, uint64_t path); /* at t = 1, if it is not a function of W(1) */
    bool linear;                                        /* additive and linear: methods of order 3/2 have order 2 */
} problem;

#define COEFFICIENTS(name, F, G, DG)                                                                                   \
    static int name(void *user, const hl_rows *at, double *f, double *g, double *dg)                                   \
    {                                                                                                                  \
        (void)user;                                                                                                    \
        for (size_t r = 0; r < at->count; r++) {                                                                       \
            double t = at->t[r], x = at->y[r];                                                                         \
            (void)t;                                                                                                   \
            (void)x;                                                                                                   \
            if (f)                                                                                                     \
                f[r] = (F);                                                                                            \
            if (g)                                                                                                     \
                g[r] = (G);                                                                                            \
            if (dg)                                                                                                    \
                dg[r] = (DG);                                                                                          \
        }                                                                                                              \
        return 0;                                                                                                      \
    }

/* X = sinh(Y), Y = 0.2 + t / 4 + sin(2 t) / 8 + W / 2 */
COEFFICIENTS(sinh_noise, (0.25 + 0.25 * cos(2 * t)) * sqrt(1 + x * x) + 0.125 * x, 0.5 * sqrt(1 + x * x),
             0.5 * x / sqrt(1 + x * x))
static double sinh_solution(double t, double w)
{
    return sinh(0.2 + 0.25 * t + sin(2 * t) / 8 + 0.5 * w);
}

/* X = sinh(a (1 + W)), a = 0.6 / (1 + t): the diffusion depends on t and x */
COEFFICIENTS(slowing, -asinh(x) / (1 + t) * sqrt(1 + x * x) + 0.18 * x / ((1 + t) * (1 + t)),
             0.6 / (1 + t) * sqrt(1 + x * x), 0.6 / (1 + t) * x / sqrt(1 + x * x))
static double slowing_solution(double t, double w)
{
    return sinh(0.6 / (1 + t) * (1 + w));
}

COEFFICIENTS(geometric, -0.5 * x, 0.5 * x, 0.5)
static double geometric_solution(double t, double w)
{
    return exp((-0.5 - 0.125) * t + 0.5 * w);
}

/* X = (1 + t + W / 2) / sqrt(1 + t) */
COEFFICIENTS(fading, 1 / sqrt(1 + t) - x / (2 * (1 + t)), 0.5 / sqrt(1 + t), 0)

/* Stratonovich: X = exp(sin t + 0.7 W) */
COEFFICIENTS(plain, cos(t) * x, 0.7 * x, 0.7)
static double plain_solution(double t, double w)
{
    return exp(sin(t) + 0.7 * w);
}

/* Ornstein-Uhlenbeck with noise 0.5 (1 + t): X(1) = e^-2 plus the integral of q(u) dW, q = 0.5 (1 + u) e^(2 (u - 1)),
 * by cells of 2^-10, over each of which q is taken for a line: an error of 1e-6. */
COEFFICIENTS(returning, -2 * x, 0.5 + 0.5 * t, 0)
static double returning_start(double t, double w)
{
    (void)t;
    (void)w;
    return 1;
}

static double returning_end(const hl_brownian *b, uint64_t path)
{
    enum { FINE = 10 };
    hl_span stack[FINE + 1];
    double h = ldexp(1, -FINE), x = exp(-2);
    for (uint64_t k = 0; k < 1 << FINE; k++) {
        hl_brownian_walk(b, path, 0, FINE, k, stack);
        double dw = stack[FINE].dw, dz = stack[FINE].u + 0.5 * h * dw;
        double u = (double)k * h, e = 0.5 * exp(2 * (u - 1));
        x += e * (1 + u) * dw + e * (3 + 2 * u) * (h * dw - dz);
    }
    return x;
}

/* Additive noise and a nonlinear drift: there is no solution in closed form; by Euler with the first terms of its
 * expansion, x + f h + g dW + f' g dz + (f_t + f f' + g^2 f'' / 2) h^2 / 2, at 2^-10, an error of 1e-5. */
COEFFICIENTS(swinging, sin(3 * x) + cos(2 * t), 0.7, 0)
static double swinging_start(double t, double w)
{
    (void)t;
    (void)w;
    return 0.3;
}

static double swinging_end(const hl_brownian *b, uint64_t path)
{
    enum { FINE = 10 };
    hl_span stack[FINE + 1];
    double h = ldexp(1, -FINE), x = 0.3, g = 0.7;
    for (uint64_t k = 0; k < 1 << FINE; k++) {
        hl_brownian_walk(b, path, 0, FINE, k, stack);
        double dw = stack[FINE].dw, dz = stack[FINE].u + 0.5 * h * dw, t = (double)k * h;
        double f = sin(3 * x) + cos(2 * t), slope = 3 * cos(3 * x), bend = -9 * sin(3 * x);
        x += f * h + g * dw + slope * g * dz + 0.5 * h * h * (f * slope + 0.5 * g * g * bend - 2 * sin(2 * t));
    }
    return x;
}

static const problem problems[] = { { "sinh", sinh_noise, sinh_solution, false, false, NULL, false },
                                    { "slowing", slowing, slowing_solution, false, false, NULL, false },
                                    { "geometric", geometric, geometric_solution, false, false, NULL, false },
                                    { "stratonovich", plain, plain_solution, false, true, NULL, false },
                                    { "ornstein-uhlenbeck", returning, returning_start, true, false, returning_end,
                                      true },
                                    { "swinging", swinging, swinging_start, true, false, swinging_end, false } };

enum { PATHS = 256 };

/* Mean absolute error at t = 1; `end` are the solutions. */
static double strong_error(hl_context *ctx, const problem *p, const char *method, int level, const double *end)
{
    static double y[PATHS], t[PATHS];
    hl_noise_system system = { 1, p->coefficients, 1, p->stratonovich, NULL, NULL };
    hl_simulator *simulator;
    double sum = 0;
    CHECK_OK(ctx,
             hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = method, .seed = 5, .level = level },
                                 &simulator));
    for (size_t r = 0; r < PATHS; r++) {
        t[r] = 0;
        y[r] = p->solution(0, 0);
    }
    CHECK_OK(ctx, hl_simulator_run(simulator, PATHS, 0, t, 1, 1, y, NULL));
    for (size_t r = 0; r < PATHS; r++) {
        sum += fabs(y[r] - end[r]) / PATHS;
        assert_true(t[r] == 1);
    }
    hl_simulator_free(simulator);
    return sum;
}

/* Slope of -log2 error over the levels, by least squares. */
static double slope(const double *error, int count)
{
    double mean = 0.5 * (count - 1), top = 0, bottom = 0;
    for (int i = 0; i < count; i++) {
        top -= (i - mean) * log2(error[i]);
        bottom += (i - mean) * (i - mean);
    }
    return top / bottom;
}

static void check_strong_order(hl_context *ctx, const hl_stepper *m, const problem *p, const double *end)
{
    double error[5], expected = m->strong;
    char label[100];
    if (p->additive && m->strong < 1)
        expected = 1; /* Euler is Milstein there */
    if (p->linear && m->strong > 1)
        expected = 2;
    for (int i = 0; i < 5; i++)
        error[i] = strong_error(ctx, p, m->name, 4 + i, end);
    snprintf(label, sizeof label, "%s on %s: strong order %.3f, errors %.2e .. %.2e", m->name, p->name, slope(error, 5),
             error[0], error[4]);
    CHECK_NEAR(slope(error, 5), expected, 0.2, label);
    CHECK_LE(error[4], 0.15, label);
}

static void test_strong_orders(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_brownian b = { 5, 1 };
    double end[PATHS];
    (void)state;
    for (size_t k = 0; k < sizeof problems / sizeof *problems; k++) {
        const problem *p = &problems[k];
        for (uint64_t r = 0; r < PATHS; r++)
            end[r] = p->end ? p->end(&b, r) : p->solution(1, hl_brownian_value(&b, r, 0, 0, 1));
        for (const hl_stepper *m = hl_steppers; m->name; m++)
            if (p->additive || !m->additive_only)
                check_strong_order(ctx, m, p, end);
    }
    test_context_free(ctx, NULL);
}

/* ---- correlated noise that does not commute ---- */

/* dx1 = -x1 dt + 0.8 x2 dB1, dx2 = -x2 dt + 0.8 x1 dB2, where B1 and B2 have the correlation 0.6. */
static int crossed(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    for (size_t k = 0; k < 2 * at->count; k++) {
        if (f)
            f[k] = -at->y[k];
        if (g)
            g[k] = 0.8 * at->y[k ^ 1];
        if (dg)
            dg[k] = 0;
    }
    return 0;
}

enum { CROSSED_ROWS = 2000, CROSSED_FINE = 10 };

/* y (rows x 2) at time 1 from (1, 0.5), by 2^level steps. */
static void follow_crossed(hl_context *ctx, int level, double *y)
{
    static double t[CROSSED_ROWS];
    const double factor[] = { 1, 0, 0.6, 0.8 };
    hl_noise_system system = { .n = 2, .coefficients = crossed, .slope = 1, .factor = factor };
    hl_simulator *simulator;
    CHECK_OK(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .seed = 3, .level = level }, &simulator));
    memset(t, 0, sizeof t);
    for (size_t r = 0; r < CROSSED_ROWS; r++) {
        y[2 * r] = 1;
        y[2 * r + 1] = 0.5;
    }
    CHECK_OK(ctx, hl_simulator_run(simulator, CROSSED_ROWS, 0, t, 1, 1, y, NULL));
    hl_simulator_free(simulator);
}

/* The default has strong order 1/2 and weak order 1, measured along the same Brownian paths as many small steps take; the
 * mean of x1 x2 is exp(-2 + 0.6 0.8^2) / 2. Milstein's method, which would need iterated integrals, is refused. */
static void test_crossed_orders(void **state)
{
    hl_context *ctx = NULL;
    (void)state;
    CHECK_OK(ctx, hl_context_create(NULL, &ctx));
    static double fine[2 * CROSSED_ROWS], y[2 * CROSSED_ROWS];
    double strong[4], weak[3], mean = 0;
    follow_crossed(ctx, CROSSED_FINE, fine);
    for (size_t r = 0; r < CROSSED_ROWS; r++)
        mean += fine[2 * r] * fine[2 * r + 1] / CROSSED_ROWS;
    CHECK_NEAR(mean, 0.5 * exp(-2 + 0.6 * 0.64), 0.04, "mean of x1 x2");
    for (int k = 1; k < 8; k++) {
        double square = 0, gap = 0, step = 1. / (1 << k), least = 1. / (1 << CROSSED_FINE);
        follow_crossed(ctx, k, y);
        for (size_t r = 0; r < CROSSED_ROWS; r++) {
            double a = y[2 * r] - fine[2 * r], b = y[2 * r + 1] - fine[2 * r + 1];
            square += (a * a + b * b) / CROSSED_ROWS;
            gap += (a + b) / CROSSED_ROWS;
        }
        double more = step / (step - least); /* without the error of the small steps */
        if (k > 3)
            strong[k - 4] = sqrt(square * more);
        else
            weak[k - 1] = fabs(gap) * more;
    }
    CHECK_NEAR(slope(strong, 4), 0.5, 0.15, "strong order");
    CHECK_NEAR(slope(weak, 3), 1, 0.3, "weak order");
    const double factor[] = { 1, 0, 0.6, 0.8 };
    hl_noise_system system = { .n = 2, .coefficients = crossed, .slope = 1, .factor = factor };
    hl_simulator *simulator;
    CHECK_STATUS(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = "milstein" }, &simulator),
                 HL_ERR_UNSUPPORTED);
    hl_context_free(ctx);
}

/* ---- weak orders, without sampling ----
 *
 * On a linear equation a step is x -> a x + b with random a, b that depend on the step's dw and dz alone, so the first
 * two moments follow step by step from those of a and b, which Gauss-Hermite quadrature over (dw, dz) gives exactly. */

enum { NODES = 12 };

static double hermite(int n, double x)
{
    double a = 1, b = x;
    for (int k = 1; k < n; k++) {
        double c = x * b - k * a;
        a = b;
        b = c;
    }
    return n ? b : 1;
}

static void quadrature(double *x, double *w)
{
    double factorial = 1;
    int found = 0;
    for (int k = 2; k < NODES; k++)
        factorial *= k;
    for (double a = -8.01; found < NODES; a += 0.02) {
        double lo = a, hi = a + 0.02;
        if (hermite(NODES, lo) * hermite(NODES, hi) > 0)
            continue;
        for (int i = 0; i < 60; i++) {
            double mid = 0.5 * (lo + hi);
            *(hermite(NODES, lo) * hermite(NODES, mid) <= 0 ? &hi : &lo) = mid;
        }
        x[found] = lo;
        w[found++] = factorial / (NODES * pow(hermite(NODES - 1, lo), 2));
    }
}

COEFFICIENTS(linear, cos(2 * t) * x, (0.5 + 0.5 * t) * x, 0.5 + 0.5 * t)

static void linear_moments(double *m)
{
    m[0] = exp(sin(2.) / 2);
    m[1] = exp(sin(2.) + 0.25 * (1 + 1 + 1. / 3));
}

static void fading_moments(double *m)
{
    double mean = 2 / sqrt(2.);
    m[0] = mean;
    m[1] = mean * mean + 0.25 / 2;
}

/* |error| of both moments at t = 1 from x = 1. */
static double weak_error(const hl_stepper *m, hl_noise_fn *coefficients, void (*moments)(double *), int level)
{
    enum { GRID = NODES * NODES };
    static double node[NODES], weight[NODES], y[2 * GRID], t[2 * GRID], dw[2 * GRID], dz[2 * GRID],
        scratch[2 * GRID * (HL_STEPPER_SCRATCH + 1)];
    static size_t index[2 * GRID];
    double h = ldexp(1, -level), first = 1, second = 1, exact[2];
    hl_noise_system system = { 1, coefficients, 1, 0, NULL, NULL };
    hl_stride s = { &system, 2 * GRID, index, t, h, y, dw, dz, scratch };
    quadrature(node, weight);
    for (int step = 0; step < 1 << level; step++) {
        double a1 = 0, b1 = 0, a2 = 0, ab = 0, b2 = 0;
        for (int k = 0; k < 2 * GRID; k++) { /* the first half starts at 1, the second at 0 */
            y[k] = k < GRID;
            t[k] = h * step;
            dw[k] = sqrt(h) * node[k % GRID / NODES];
            dz[k] = 0.5 * h * dw[k] + sqrt(h * h * h / 12) * node[k % NODES];
        }
        assert_int_equal(m->step(m, &s), 0);
        for (int k = 0; k < GRID; k++) {
            double w = weight[k / NODES] * weight[k % NODES], b = y[k + GRID], a = y[k] - b;
            a1 += w * a;
            b1 += w * b;
            a2 += w * a * a;
            ab += w * a * b;
            b2 += w * b * b;
        }
        second = a2 * second + 2 * ab * first + b2;
        first = a1 * first + b1;
    }
    moments(exact);
    return fabs(first - exact[0]) + fabs(second - exact[1]);
}

static void test_weak_orders(void **state)
{
    (void)state;
    for (const hl_stepper *m = hl_steppers; m->name; m++)
        for (int additive = 0; additive < 2; additive++) {
            double error[5];
            char label[80];
            if (m->additive_only && !additive)
                continue;
            for (int i = 0; i < 5; i++)
                error[i] = weak_error(m, additive ? fading : linear, additive ? fading_moments : linear_moments, 5 + i);
            double expected = additive && m->weak_additive > 0 ? m->weak_additive : m->weak;
            snprintf(label, sizeof label, "%s, additive %d: weak order %.3f, errors %.2e .. %.2e", m->name, additive,
                     slope(error, 5), error[0], error[4]);
            CHECK_NEAR(slope(error, 5), expected, 0.2, label);
        }
}

/* ---- runs ---- */

COEFFICIENTS(noise_alone, 0, 1, 0)

/* With f = 0, g = 1 the state is W: the same bits at any level; saved states are W at the intervals' ends; a row's bits
 * do not depend on its place. */
static void test_runs(void **state)
{
    enum { ROWS = 300, ENDS = 6 };
    static double y[ROWS], t[ROWS], saved[ROWS * ENDS], first[ROWS * ENDS];
    hl_context *ctx = test_context(NULL, 1);
    hl_noise_system system = { 1, noise_alone, 0, 0, NULL, NULL };
    hl_simulator *simulator;
    hl_brownian b = { 9, 8 * 0.25 };
    (void)state;
    for (int level = 0; level < 6; level++) {
        memset(y, 0, sizeof y);
        memset(t, 0, sizeof t);
        CHECK_OK(ctx, hl_simulator_create(ctx, &system,
                                          &(hl_simulator_options){ .method = "euler", .seed = 9, .level = level },
                                          &simulator));
        CHECK_OK(ctx, hl_simulator_run(simulator, ROWS, 40, t, 0.25, ENDS - 1, y, saved));
        if (level == 0)
            memcpy(first, saved, sizeof saved);
        assert_memory_equal(first, saved, sizeof saved);
        y[0] = 0;
        t[0] = 0;
        CHECK_OK(ctx, hl_simulator_run(simulator, 1, 40 + 277, t, 0.25, ENDS - 1, y, saved));
        assert_memory_equal(first + 277 * ENDS, saved, ENDS * sizeof *saved);
        hl_simulator_free(simulator);
    }
    for (size_t r = 0; r < ROWS; r++)
        for (uint64_t k = 0; k < ENDS; k++)
            assert_true(first[r * ENDS + k] == hl_brownian_value(&b, 40 + r, 0, 3, k));
    test_context_free(ctx, NULL);
}

static int refusing(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user, (void)at, (void)f, (void)g, (void)dg;
    return 1;
}

COEFFICIENTS(explosive, x *x *x, 0, 0)

/* Of three rows the middle one escapes within the first interval: it is NaN from then on, and the others are as without it. */
static void check_escape(hl_context *ctx, const hl_noise_system *system)
{
    hl_simulator *s = NULL;
    double t[3] = { 0 }, y[3] = { 0.5, 100, -0.5 }, saved[9], alone_t = 0, alone = -0.5;
    CHECK_OK(ctx, hl_simulator_create(ctx, system, &(hl_simulator_options){ .level = 6, .escapes = 1 }, &s));
    CHECK_OK(ctx, hl_simulator_run(s, 3, 0, t, 0.25, 2, y, saved));
    CHECK_OK(ctx, hl_simulator_run(s, 1, 2, &alone_t, 0.25, 2, &alone, NULL));
    assert_true(saved[3] == 100 && isnan(saved[4]) && isnan(saved[5]) && isnan(y[1]));
    assert_true(y[0] > 0.5 && y[0] == saved[2] && y[2] == alone && isfinite(alone));
    hl_simulator_free(s);
}

static void test_wrong_uses(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_simulator *s = NULL;
    hl_noise_system system = { 1, noise_alone, 0, 0, NULL, NULL };
    double t = 0, y = 100;
    (void)state;
    CHECK_STATUS(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = "taylor" }, &s),
                 HL_ERR_INVALID);
    check_message(ctx, "unknown method 'taylor'");
    CHECK_STATUS(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = "milstein" }, &s),
                 HL_ERR_INVALID);
    check_message(ctx, "needs the slope");
    CHECK_STATUS(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = "heun" }, &s),
                 HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .level = 21 }, &s), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_simulator_create(ctx, &(hl_noise_system){ .n = 1 }, NULL, &s), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_simulator_create(ctx, &system, NULL, &s));
    CHECK_STATUS(ctx, hl_simulator_run(s, 1, 0, &t, 0, 1, &y, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_simulator_run(s, 1, 0, NULL, 1, 1, &y, NULL), HL_ERR_INVALID);
    hl_simulator_free(s);
    system.coefficients = refusing;
    CHECK_OK(ctx, hl_simulator_create(ctx, &system, NULL, &s));
    CHECK_STATUS(ctx, hl_simulator_run(s, 1, 0, &t, 1, 1, &y, NULL), HL_ERR_CALLBACK);
    hl_simulator_free(s);
    system.coefficients = explosive;
    CHECK_OK(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .level = 6 }, &s));
    CHECK_STATUS(ctx, hl_simulator_run(s, 1, 0, &t, 1, 1, &y, NULL), HL_ERR_NOT_FINITE);
    check_message(ctx, "row 0");
    hl_simulator_free(s);
    check_escape(ctx, &system);
    hl_simulator_free(NULL);
    CHECK_STATUS(ctx, hl_simulator_orders("none", NULL, NULL), HL_ERR_INVALID);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    hl_noise_system system = { 1, geometric, 1, 0, NULL, NULL };
    hl_simulator *s = NULL;
    double t = 0, y = 1;
    (void)user;
    hl_status status = hl_simulator_create(ctx, &system, NULL, &s);
    if (status == HL_OK)
        status = hl_simulator_run(s, 1, 0, &t, 1, 2, &y, NULL);
    hl_simulator_free(s);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refinement),     cmocka_unit_test(test_integral_refinement),
        cmocka_unit_test(test_distribution),   cmocka_unit_test(test_strong_orders),
        cmocka_unit_test(test_crossed_orders), cmocka_unit_test(test_weak_orders),
        cmocka_unit_test(test_runs),           cmocka_unit_test(test_wrong_uses),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
