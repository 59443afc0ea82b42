/* sde_equation.c - equations with known answers, their trajectories and observations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde_equation.h"

enum { SUBSTEPS = 60 };
enum { SCARCE_TIMES = 10, SCARCE_ROWS = 60 };
enum { STREAM_START = 40, STREAM_NOISE, STREAM_KEPT };

static double normal(uint64_t seed, size_t row, size_t dim, size_t column)
{
    return hl_random_normal(seed, STREAM_START, row * dim + column);
}

/* ---- the twelve of the benchmark ---- */

static void cir(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 1.5 * (1 - x[0]);
    g[0] = 0.5 * sqrt(fmax(x[0], 0));
}
static void cir_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0; /* gamma(40) 3 / 40, as a sum */
    for (size_t k = 0; k < 40; k++)
        x[0] -= 3. / 40 * log(hl_random_uniform(seed, STREAM_START, row * 40 + k));
}

static void cev(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 0.3 * x[0];
    g[0] = 0.4 * pow(fmax(x[0], 0), 0.7);
}
static void cev_start(uint64_t seed, size_t row, double *x)
{
    x[0] = exp(0.2 * normal(seed, row, 1, 0));
}

static void bist(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 2 * x[0] - 2 * x[0] * x[0] * x[0];
    g[0] = 0.5;
}
static void bist_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.1 + 0.3 * normal(seed, row, 1, 0);
}

static void lv(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = x[0] * (1 - 0.5 * x[1]);
    f[1] = x[1] * (-0.8 + 0.4 * x[0]);
    g[0] = 0.12 * x[0];
    g[1] = 0.12 * x[1];
}
static void lv_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 4 + 0.3 * normal(seed, row, 2, 0);
    x[1] = 2 + 0.3 * normal(seed, row, 2, 1);
}

static void toggle(double t, const double *x, double *f, double *g)
{
    (void)t;
    for (size_t i = 0; i < 2; i++) {
        f[i] = 2 / (1 + pow(x[1 - i], 4)) - x[i];
        g[i] = 0.15 + 0.1 * fabs(x[i]);
    }
}
static void toggle_start(uint64_t seed, size_t row, double *x)
{
    for (size_t i = 0; i < 2; i++)
        x[i] = fmax(1 + 0.25 * normal(seed, row, 2, i), 0.05);
}

static void fhn(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = x[0] - x[0] * x[0] * x[0] / 3 - x[1] + 0.5;
    f[1] = 0.08 * (x[0] + 0.7 - 0.8 * x[1]);
    g[0] = 0.2;
    g[1] = 0.04;
}
static void fhn_start(uint64_t seed, size_t row, double *x)
{
    x[0] = -0.5 + 0.5 * normal(seed, row, 2, 0);
    x[1] = 0.3 + 0.25 * normal(seed, row, 2, 1);
}

static void lorenz(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 10 * (x[1] - x[0]);
    f[1] = x[0] * (28 - x[2]) - x[1];
    f[2] = x[0] * x[1] - 8. / 3 * x[2];
    g[0] = g[1] = g[2] = 1;
}
static void lorenz_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { -6, -6, 24 };
    for (size_t i = 0; i < 3; i++)
        x[i] = at[i] + 1.5 * normal(seed, row, 3, i);
}

/* Drawn once; its eigenvalues have real parts from -1.17 to -.73. */
static void ou6(double t, const double *x, double *f, double *g)
{
    static const double matrix[6][6] = {
        { -0.94, 0.27, -0.13, 0.41, 0.05, -0.30 }, { -0.36, -1.12, 0.22, -0.08, 0.31, 0.17 },
        { 0.19, -0.25, -0.81, 0.10, -0.44, 0.06 }, { -0.29, 0.12, 0.38, -1.05, 0.21, -0.15 },
        { 0.08, -0.33, 0.16, -0.24, -0.90, 0.35 }, { 0.26, 0.04, -0.20, 0.30, -0.11, -1.18 },
    };
    static const double noise[] = { 0.2, 0.3, 0.4, 0.5, 0.6, 0.3 };
    (void)t;
    for (size_t i = 0; i < 6; i++) {
        f[i] = 0;
        for (size_t j = 0; j < 6; j++)
            f[i] += matrix[i][j] * x[j];
        g[i] = noise[i];
    }
}
static void ou6_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { 2, -1.5, 1, 2, -2, 1 };
    for (size_t i = 0; i < 6; i++)
        x[i] = at[i] + 0.4 * normal(seed, row, 6, i);
}

static void arc(double t, const double *x, double *f, double *g)
{
    double c = cos(x[0]);
    (void)t;
    f[0] = -0.36 * sin(x[0]) * c * c * c;
    g[0] = 0.6 * c * c;
}
static void arc_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.3 + 0.35 * normal(seed, row, 1, 0);
}

static void sqrtt(double t, const double *x, double *f, double *g)
{
    f[0] = 1 / sqrt(1 + t) - x[0] / (2 + 2 * t);
    g[0] = 0.6 / sqrt(1 + t);
}
static void sqrtt_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.5 * normal(seed, row, 1, 0);
}

static void corr(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = -x[0];
    f[1] = -x[1];
    g[0] = g[1] = 0.6;
}
static void corr_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 2 + 0.2 * normal(seed, row, 2, 0);
    x[1] = -2 + 0.2 * normal(seed, row, 2, 1);
}

static void spiral(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = -0.5 * x[0] - 2 * x[1];
    f[1] = 2 * x[0] - 0.5 * x[1];
    g[0] = g[1] = 0.9;
}
static void spiral_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.5 * normal(seed, row, 2, 0);
    x[1] = 0.5 * normal(seed, row, 2, 1);
}

/* ---- for the limits of verdicts ---- */

static void duffing(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = x[1];
    f[1] = x[0] - x[0] * x[0] * x[0] - 0.4 * x[1];
    g[0] = 0.1;
    g[1] = 0.3;
}
static void duffing_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.2 + 0.3 * normal(seed, row, 2, 0);
    x[1] = 0.5 + 0.3 * normal(seed, row, 2, 1);
}

static void logistic(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 1.2 * x[0] * (1 - x[0] / 3);
    g[0] = 0.2 * x[0];
}
static void logistic_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.4 * exp(0.3 * normal(seed, row, 1, 0));
}

static void shear(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = -0.8 * x[0] + 0.9 * x[1];
    f[1] = -0.4 * x[1];
    g[0] = 0.5;
    g[1] = 0.3;
}
static void shear_start(uint64_t seed, size_t row, double *x)
{
    x[0] = -1.5 + 0.3 * normal(seed, row, 2, 0);
    x[1] = 2 + 0.3 * normal(seed, row, 2, 1);
}

static void fading(double t, const double *x, double *f, double *g)
{
    f[0] = -(0.3 + 0.3 * t) * x[0];
    g[0] = 0.7 * exp(-0.3 * t);
}
static void fading_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 2 + 0.3 * normal(seed, row, 1, 0);
}

/* ---- on which nothing was chosen ---- */

static void morse(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 2 * (exp(-2 * x[0]) - exp(-x[0]));
    g[0] = 0.4;
}
static void morse_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 1.2 + 0.25 * normal(seed, row, 1, 0);
}

static void epidemic(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 1.6 * x[0] * (1 - x[0]) - 0.5 * x[0];
    g[0] = 0.35 * x[0] * (1 - x[0]);
}
static void epidemic_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.1 + 0.1 * hl_random_uniform(seed, STREAM_START, row);
}

static void brusselator(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 1 + x[0] * x[0] * x[1] - 2.7 * x[0];
    f[1] = 1.7 * x[0] - x[0] * x[0] * x[1];
    g[0] = 0.1 * x[0];
    g[1] = 0.1 * x[1];
}
static void brusselator_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 1.5 + 0.2 * fmax(normal(seed, row, 2, 0), -3);
    x[1] = 2.2 + 0.2 * normal(seed, row, 2, 1);
}

static void heston(double t, const double *x, double *f, double *g)
{
    double v = fmax(x[1], 0);
    (void)t;
    f[0] = 0.4 - 0.5 * v - 0.8 * x[0];
    f[1] = 2 * (0.35 - x[1]);
    g[0] = sqrt(v);
    g[1] = 0.45 * sqrt(v);
}
static void heston_start(uint64_t seed, size_t row, double *x)
{
    x[0] = -1 + 0.2 * normal(seed, row, 2, 0);
    x[1] = 0.8 + 0.1 * normal(seed, row, 2, 1);
}

/* ---- added after all constants were chosen ---- */

static void gompertz(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 0.8 * x[0] * log(3 / fmax(x[0], 1e-6));
    g[0] = 0.15 * x[0];
}
static void gompertz_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.3 * exp(0.2 * normal(seed, row, 1, 0));
}

static void hopf(double t, const double *x, double *f, double *g)
{
    double r = x[0] * x[0] + x[1] * x[1];
    (void)t;
    f[0] = x[0] * (1 - r) - 2 * x[1];
    f[1] = x[1] * (1 - r) + 2 * x[0];
    g[0] = g[1] = 0.3;
}
static void hopf_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 1.5 + 0.2 * normal(seed, row, 2, 0);
    x[1] = 0.2 * normal(seed, row, 2, 1);
}

static void michaelis(double t, const double *x, double *f, double *g)
{
    double y = fmax(x[0], 0);
    (void)t;
    f[0] = 0.5 - 1.5 * y / (0.5 + y);
    g[0] = 0.2 * sqrt(y);
}
static void michaelis_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 2.5 + 0.3 * normal(seed, row, 1, 0);
}

static void rosenzweig(double t, const double *x, double *f, double *g)
{
    double eaten = 1.2 * x[0] * x[1] / (1 + x[0]);
    (void)t;
    f[0] = x[0] * (1 - x[0] / 4) - eaten;
    f[1] = 0.7 * eaten - 0.4 * x[1];
    g[0] = 0.08 * x[0];
    g[1] = 0.08 * x[1];
}
static void rosenzweig_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 2 + 0.2 * normal(seed, row, 2, 0);
    x[1] = 1 + 0.1 * normal(seed, row, 2, 1);
}

/* Four genes in a ring, each of which represses the next. */
static void ring(double t, const double *x, double *f, double *g)
{
    (void)t;
    for (size_t i = 0; i < 4; i++) {
        double y = fmax(x[(i + 3) % 4], 0);
        f[i] = 3 / (1 + y * y * y) - x[i];
        g[i] = 0.1 + 0.1 * fabs(x[i]);
    }
}
static void ring_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { 2, 0.5, 1.5, 0.8 };
    for (size_t i = 0; i < 4; i++)
        x[i] = fmax(at[i] + 0.3 * normal(seed, row, 4, i), 0.05);
}

static void cascade(double t, const double *x, double *f, double *g)
{
    double a = fmax(x[0], 0), b = fmax(x[1], 0);
    (void)t;
    f[0] = 1.2 - x[0];
    f[1] = 2.5 * a * a / (0.5 + a * a) - x[1];
    f[2] = 2 * a * b / (0.5 + b) - x[2];
    g[0] = 0.3;
    g[1] = g[2] = 0.2;
}
static void cascade_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { 0.3, 0.5, 2 };
    for (size_t i = 0; i < 3; i++)
        x[i] = fmax(at[i] + 0.2 * normal(seed, row, 3, i), 0);
}

static void ripple(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = 1.5 * sin(2 * x[0]) - 0.3 * x[0];
    g[0] = 0.4;
}
static void ripple_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.5 + 0.6 * normal(seed, row, 1, 0);
}

/* Two neurons, of which one excites and the other inhibits. */
static void neurons(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = -x[0] + 1.5 * tanh(2 * x[1]);
    f[1] = -x[1] - 1.5 * tanh(2 * x[0]);
    g[0] = g[1] = 0.25;
}
static void neurons_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 1 + 0.3 * normal(seed, row, 2, 0);
    x[1] = 0.3 * normal(seed, row, 2, 1);
}

/* Two populations of neurons; their inputs are sums of both. */
static void wilson(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = -x[0] + 1.5 * tanh(1.6 * x[0] - 1.2 * x[1] + 0.3);
    f[1] = -x[1] + 1.2 * tanh(1.4 * x[0] - 0.5 * x[1]);
    g[0] = g[1] = 0.25;
}
static void wilson_start(uint64_t seed, size_t row, double *x)
{
    x[0] = 0.3 + 0.5 * normal(seed, row, 2, 0);
    x[1] = -0.5 + 0.5 * normal(seed, row, 2, 1);
}

/* A substance that two saturated steps turn into another. */
static void enzymes(double t, const double *x, double *f, double *g)
{
    double a = fmax(x[0], 0), b = fmax(x[1], 0), c = fmax(x[2], 0);
    double first = 1.5 * a / (0.4 + a), second = b / (0.3 + b);
    (void)t;
    f[0] = 0.3 - first;
    f[1] = first - second;
    f[2] = second - 0.6 * c;
    g[0] = 0.1 + 0.05 * a;
    g[1] = 0.1 + 0.05 * b;
    g[2] = 0.15;
}
static void enzymes_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { 2.5, 0.6, 0.3 };
    for (size_t i = 0; i < 3; i++)
        x[i] = fmax(at[i] + 0.25 * normal(seed, row, 3, i), 0.02);
}

/* Four double wells, each drawn to the next. */
static void wells4(double t, const double *x, double *f, double *g)
{
    (void)t;
    for (size_t i = 0; i < 4; i++) {
        f[i] = x[i] - x[i] * x[i] * x[i] + 0.4 * (x[(i + 1) % 4] - x[i]);
        g[i] = 0.35;
    }
}
static void wells4_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { 0.4, -0.3, 0.2, -0.6 };
    for (size_t i = 0; i < 4; i++)
        x[i] = at[i] + 0.4 * normal(seed, row, 4, i);
}

/* A signal that is passed on by four genes, the last of which represses the first. */
static void relay(double t, const double *x, double *f, double *g)
{
    (void)t;
    for (size_t i = 0; i < 4; i++) {
        double y = fmax(x[(i + 3) % 4], 0), y2 = y * y;
        f[i] = (i ? 1.8 * y2 / (0.6 + y2) : 2 / (1 + y2 * y2)) - (0.8 + 0.1 * (double)i) * x[i];
        g[i] = 0.2;
    }
}
static void relay_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { 1.8, 0.4, 0.3, 0.2 };
    for (size_t i = 0; i < 4; i++)
        x[i] = fmax(at[i] + 0.25 * normal(seed, row, 4, i), 0);
}

/* Three units of a recurrent network; their inputs are sums of the others. */
static void recurrent(double t, const double *x, double *f, double *g)
{
    (void)t;
    f[0] = -x[0] + 1.6 * tanh(1.2 * x[1] - 0.9 * x[2]);
    f[1] = -x[1] + 1.4 * tanh(1.1 * x[2] + 0.8 * x[0] - 0.3);
    f[2] = -0.8 * x[2] + 1.2 * tanh(1.3 * x[0] - 0.7 * x[1]);
    g[0] = g[1] = g[2] = 0.25;
}
static void recurrent_start(uint64_t seed, size_t row, double *x)
{
    static const double at[] = { 0.4, -0.3, 0.2 };
    for (size_t i = 0; i < 3; i++)
        x[i] = at[i] + 0.5 * normal(seed, row, 3, i);
}

/* Bacteria on a food that inhibits them where it is rich. */
static void chemostat(double t, const double *x, double *f, double *g)
{
    double s = fmax(x[0], 0), growth = 1.6 * s / (0.4 + s + s * s / 1.5);
    (void)t;
    f[0] = 0.5 * (2.2 - x[0]) - growth * x[1] / 0.8;
    f[1] = (growth - 0.5) * x[1];
    g[0] = 0.08;
    g[1] = 0.1 * x[1];
}
static void chemostat_start(uint64_t seed, size_t row, double *x)
{
    x[0] = fmax(1.5 + 0.25 * normal(seed, row, 2, 0), 0.1);
    x[1] = 0.4 * exp(0.3 * normal(seed, row, 2, 1));
}

/* ---- the table ---- */

#define BENCH(name, dim, end) #name, "bench", dim, 2000, end, name, name##_start
const sde_equation sde_equations[] = {
    { BENCH(cir, 1, 3), 0, false, NULL },
    { BENCH(cev, 1, 3), 0, false, NULL },
    { BENCH(bist, 1, 4), 0, false, NULL },
    { BENCH(lv, 2, 8), 0, false, NULL },
    { BENCH(toggle, 2, 6), 0, false, NULL },
    { BENCH(fhn, 2, 20), 0, false, NULL },
    { BENCH(lorenz, 3, 1.5), 0, false, NULL },
    { BENCH(ou6, 6, 4), 0, false, NULL },
    { "atan", "bench", 1, 2000, 5, arc, arc_start, 0, false, NULL },
    { BENCH(sqrtt, 1, 5), 0, true, NULL },
    { BENCH(corr, 2, 3), 0.9, false, NULL },
    { BENCH(spiral, 2, 3), 0, false, NULL },
    { "pendulum", "old", 2, 5000, 5, NULL, NULL, 0, false, &sde_pendulum },
    { "chain", "old", 10, 2000, 5, NULL, NULL, 0, false, &sde_chain },
    { "ou", "old", 1, 2000, 5, NULL, NULL, 0, false, &sde_ou },
    { "well", "old", 1, 2000, 5, NULL, NULL, 0, false, &sde_well },
    { "gbm", "old", 1, 2000, 5, NULL, NULL, 0, false, &sde_gbm },
    { "vanderpol", "old", 2, 2000, 5, NULL, NULL, 0, false, &sde_vanderpol },
    { "linear", "old", 10, 2000, 5, NULL, NULL, 0, false, &sde_linear },
    { "duffing", "calibration", 2, 2000, 6, duffing, duffing_start, 0, false, NULL },
    { "logistic", "calibration", 1, 2000, 5, logistic, logistic_start, 0, false, NULL },
    { "shear", "calibration", 2, 2000, 4, shear, shear_start, -0.6, false, NULL },
    { "fading", "calibration", 1, 2000, 4, fading, fading_start, 0, true, NULL },
    { "morse", "fresh", 1, 2000, 4, morse, morse_start, 0, false, NULL },
    { "epidemic", "fresh", 1, 2000, 6, epidemic, epidemic_start, 0, false, NULL },
    { "brusselator", "fresh", 2, 2000, 8, brusselator, brusselator_start, 0, false, NULL },
    { "heston", "fresh", 2, 2000, 4, heston, heston_start, -0.5, false, NULL },
    { "gompertz", "unseen", 1, 2000, 5, gompertz, gompertz_start, 0, false, NULL },
    { "hopf", "unseen", 2, 2000, 4, hopf, hopf_start, 0, false, NULL },
    { "michaelis", "unseen", 1, 2000, 4, michaelis, michaelis_start, 0, false, NULL },
    { "rosenzweig", "unseen", 2, 2000, 12, rosenzweig, rosenzweig_start, 0, false, NULL },
    { "ring", "unseen", 4, 2000, 5, ring, ring_start, 0, false, NULL },
    { "cascade", "unseen", 3, 2000, 4, cascade, cascade_start, 0, false, NULL },
    { "ripple", "unseen", 1, 2000, 4, ripple, ripple_start, 0, false, NULL },
    { "neurons", "unseen", 2, 2000, 4, neurons, neurons_start, 0, false, NULL },
    { "wilson", "unseen", 2, 1000, 4, wilson, wilson_start, 0, false, NULL },
    { "enzymes", "unseen", 3, 1000, 4, enzymes, enzymes_start, 0, false, NULL },
    { "wells4", "unseen", 4, 1000, 4, wells4, wells4_start, 0, false, NULL },
    { "relay", "unseen", 4, 1000, 5, relay, relay_start, 0, false, NULL },
    { "recurrent", "unseen", 3, 1000, 4, recurrent, recurrent_start, 0, false, NULL },
    { "chemostat", "unseen", 2, 1000, 5, chemostat, chemostat_start, 0, false, NULL },
    { NULL, NULL, 0, 0, 0, NULL, NULL, 0, false, NULL },
};

const sde_equation *sde_equation_find(const char *name)
{
    for (const sde_equation *e = sde_equations; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}

/* Does a list that is separated by commas have the word? */
static bool contains(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == 0))
            return true;
    return false;
}

bool sde_equation_listed(const sde_equation *e, const char *list)
{
    return contains(list, e->name) || contains(list, e->group) || contains(list, "all");
}

bool sde_equation_unknown(const char *list, char *word, size_t size)
{
    for (const char *at = list; at; at = strchr(at, ','), at = at ? at + 1 : NULL) {
        size_t length = strcspn(at, ",");
        bool known = false;
        snprintf(word, size, "%.*s", (int)length, at);
        for (const sde_equation *e = sde_equations; e->name && !known; e++)
            known = sde_equation_listed(e, word);
        if (!known)
            return true;
    }
    return false;
}

/* ---- trajectories and observations ---- */

static double time_of(const sde_equation *e, size_t k)
{
    return e->end / (SDE_TIMES - 1) * (double)k;
}

void sde_equation_values(const sde_equation *e, size_t rows, const double *t, const double *x, double *f, double *g)
{
    if (e->with)
        e->with->coefficients(NULL, &(hl_rows){ .count = rows, .t = t, .y = x }, f, g, NULL);
    else
        for (size_t r = 0; r < rows; r++)
            e->values(t[r], x + r * e->dim, f + r * e->dim, g + r * e->dim);
}

static void follow(const sde_equation *e, uint64_t seed, size_t row, double *states)
{
    double x[SDE_MOST_DIM], f[SDE_MOST_DIM], g[SDE_MOST_DIM], h = time_of(e, 1) / SUBSTEPS;
    double other = sqrt(1 - e->correlation * e->correlation), all[SUBSTEPS * SDE_MOST_DIM];
    uint64_t number = (uint64_t)row * SDE_TIMES * SUBSTEPS * e->dim;
    e->start(seed, row, x);
    memcpy(states, x, e->dim * sizeof *x);
    for (size_t k = 1; k < SDE_TIMES; k++) {
        hl_random_normals(seed, STREAM_NOISE, number, SUBSTEPS * e->dim, all);
        number += SUBSTEPS * e->dim;
        for (size_t s = 0; s < SUBSTEPS; s++) {
            double *noise = all + s * e->dim;
            e->values(time_of(e, k - 1) + h * (double)s, x, f, g);
            if (e->correlation != 0)
                noise[1] = e->correlation * noise[0] + other * noise[1];
            for (size_t i = 0; i < e->dim; i++)
                x[i] += h * f[i] + sqrt(h) * g[i] * noise[i];
        }
        memcpy(states + k * e->dim, x, e->dim * sizeof *x);
    }
}

hl_status sde_equation_simulate(const sde_equation *e, hl_context *ctx, size_t rows, uint64_t seed, double *states)
{
    if (e->with)
        return sde_problem_simulate(e->with, ctx, rows, seed, states);
    for (size_t r = 0; r < rows; r++) {
        if (cli_interrupted())
            return HL_STOPPED;
        follow(e, seed, r, states + r * SDE_TIMES * e->dim);
    }
    return HL_OK;
}

const char *const sde_view_names[] = { "snapshots", "sparse", "full", "few", "gaps", "scarce", NULL };

/* Is state k of all trajectories seen? In gaps it is not: one of the states before it, or itself, starts one. */
static bool seen(sde_view view, uint64_t seed, size_t k)
{
    bool yes = view != SDE_SPARSE || hl_random_uniform(seed, STREAM_KEPT, k) < 0.05;
    size_t row = k / SDE_TIMES, slot = row / SCARCE_ROWS;
    if (view == SDE_SCARCE)
        return slot < SCARCE_TIMES && k % SDE_TIMES == (SDE_TIMES - 1) * slot / (SCARCE_TIMES - 1);
    for (size_t back = 0; view == SDE_GAPS && back < 10 && back < k % SDE_TIMES && yes; back++)
        yes = hl_random_uniform(seed, STREAM_KEPT, k - back) >= 0.03;
    return yes;
}

hl_status sde_equation_observe(const sde_equation *e, size_t rows, const double *states, sde_view view, uint64_t seed,
                               hl_sde_data *data)
{
    size_t paths = view == SDE_FEW    ? 100
                   : view == SDE_GAPS ? 200
                                      : rows,
           most = SDE_TIMES * (paths < rows ? paths : rows);
    double *t = calloc(most, sizeof *t), *x = calloc(most, e->dim * sizeof *x);
    bool unpaired = view == SDE_SNAPSHOTS || view == SDE_SCARCE;
    size_t *trajectory = unpaired ? NULL : calloc(most, sizeof *trajectory), n = 0;
    bool good = t && x && (trajectory || unpaired);
    for (size_t k = 0; k < most && good; k++)
        if (seen(view, seed, k)) {
            t[n] = time_of(e, k % SDE_TIMES);
            memcpy(x + e->dim * n, states + e->dim * k, e->dim * sizeof *x);
            if (trajectory)
                trajectory[n] = k / SDE_TIMES;
            n++;
        }
    *data = (hl_sde_data){ n, t, x, trajectory };
    return good ? HL_OK : HL_ERR_NOMEM;
}

/* ---- errors ---- */

void sde_equation_errors(const sde_equation *e, size_t rows, const double *states, const double *f, const double *g,
                         double error[2])
{
    double sum[2] = { 0 }, size[2] = { 0 }, truth[2][SDE_MOST_DIM];
    const double *learned[] = { f, g };
    for (size_t r = 0; r < rows * SDE_TIMES; r++) {
        double t = time_of(e, r % SDE_TIMES);
        sde_equation_values(e, 1, &t, states + r * e->dim, truth[0], truth[1]);
        for (size_t part = 0; part < 2; part++)
            for (size_t i = 0; i < e->dim; i++) {
                double gap = learned[part][r * e->dim + i] - truth[part][i];
                sum[part] += gap * gap;
                size[part] += truth[part][i] * truth[part][i];
            }
    }
    error[0] = sqrt(sum[0] / size[0]);
    error[1] = sqrt(sum[1] / size[1]);
}
