/* density_problem.c - how rows of each set are drawn, and their exact log-density. */
#include <math.h>

#include "density_problem.h"
#include "numbers.h"
#include "program/program.h"

enum { MODES = 8, PIECES = 4, NODES = 2000 };
static const double pi = 3.14159265358979323846;

/* log of the mean of exp(term). */
static double log_mean(const double *term, size_t count)
{
    double top = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++)
        top = fmax(top, term[i]);
    for (size_t i = 0; i < count; i++)
        sum += exp(term[i] - top);
    return top + log(sum / (double)count);
}

static double normal_logp(double x, double mean, double deviation)
{
    double z = (x - mean) / deviation;
    return -0.5 * z * z - log(deviation) - 0.5 * log(2 * pi);
}

/* A column of random numbers of their own for each use: stream `use` of row `row`. */
static double uniform(uint64_t seed, uint64_t use, uint64_t row)
{
    return hl_random_uniform(seed * 64 + use, 0, row);
}

static double normal(uint64_t seed, uint64_t use, uint64_t row)
{
    return hl_random_normal(seed * 64 + use, 0, row);
}

static size_t choose(uint64_t seed, uint64_t row, size_t count)
{
    return (size_t)(uniform(seed, 63, row) * (double)count);
}

/* ---- eight normals on a circle ---- */

static const double circle_scale = 1.414;

static void draw_8gaussians(uint64_t seed, uint64_t row, double *x)
{
    double angle = pi / 4 * (double)choose(seed, row, MODES);
    x[0] = (4 * cos(angle) + 0.5 * normal(seed, 0, row)) / circle_scale;
    x[1] = (4 * sin(angle) + 0.5 * normal(seed, 1, row)) / circle_scale;
}

static double logp_8gaussians(const double *x)
{
    double term[MODES];
    for (size_t k = 0; k < MODES; k++) {
        double angle = pi / 4 * (double)k, width = 0.5 / circle_scale;
        term[k] = normal_logp(x[0], 4 * cos(angle) / circle_scale, width) +
                  normal_logp(x[1], 4 * sin(angle) / circle_scale, width);
    }
    return log_mean(term, MODES);
}

/* ---- squares of side 2: uniform on half of them ---- */

static void draw_checkerboard(uint64_t seed, uint64_t row, double *x)
{
    double a = 4 * uniform(seed, 0, row) - 2, b = uniform(seed, 1, row) - 2 * (double)choose(seed, row, 2);
    x[0] = 2 * a;
    x[1] = 2 * (b + fabs(fmod(floor(a), 2)));
}

static double logp_checkerboard(const double *x)
{
    (void)x;
    return -log(32);
}

/* ---- points near two half circles, or two circles ---- */

static void moon(size_t which, double s, double *x)
{
    x[0] = which ? 1 - cos(pi * s) : cos(pi * s);
    x[1] = which ? 0.5 - sin(pi * s) : sin(pi * s);
}

static void ring(size_t which, double s, double *x)
{
    double radius = which ? 1.5 : 3;
    x[0] = radius * cos(2 * pi * s);
    x[1] = radius * sin(2 * pi * s);
}

/* log p by the midpoint rule along both curves, whose steps are much smaller than the noise. */
static double logp_curves(void (*curve)(size_t which, double s, double *x), double noise, const double *x)
{
    double term[2 * NODES], at[2];
    for (size_t i = 0; i < 2 * NODES; i++) {
        curve(i / NODES, ((double)(i % NODES) + 0.5) / NODES, at);
        term[i] = normal_logp(x[0], at[0], noise) + normal_logp(x[1], at[1], noise);
    }
    return log_mean(term, (size_t)2 * NODES);
}

static void draw_curves(void (*curve)(size_t, double, double *), double noise, uint64_t seed, uint64_t row, double *x)
{
    curve(choose(seed, row, 2), uniform(seed, 0, row), x);
    x[0] += noise * normal(seed, 1, row);
    x[1] += noise * normal(seed, 2, row);
}

static const double moon_noise = 0.1, ring_noise = 0.24;

static void draw_moons(uint64_t seed, uint64_t row, double *x)
{
    draw_curves(moon, moon_noise, seed, row, x);
}

static double logp_moons(const double *x)
{
    return logp_curves(moon, moon_noise, x);
}

static void draw_rings(uint64_t seed, uint64_t row, double *x)
{
    draw_curves(ring, ring_noise, seed, row, x);
}

static double logp_rings(const double *x)
{
    return logp_curves(ring, ring_noise, x);
}

/* ---- one column: a sharp and two blunt peaks ---- */

static const double peak_mean[PIECES] = { -3, 0, 0, 2 }, peak_width[PIECES] = { 0.3, 1, 1, 0.1 };

static void draw_peaks(uint64_t seed, uint64_t row, double *x)
{
    size_t k = choose(seed, row, PIECES);
    x[0] = peak_mean[k] + peak_width[k] * normal(seed, 0, row);
}

static double logp_peaks(const double *x)
{
    double term[PIECES];
    for (size_t k = 0; k < PIECES; k++)
        term[k] = normal_logp(x[0], peak_mean[k], peak_width[k]);
    return log_mean(term, PIECES);
}

/* ---- ten columns: four normals, each mean + L z with a lower triangular L ---- */

static double factor(size_t k, size_t i, size_t j)
{
    return i == j ? 0.4 + 0.6 * hl_random_uniform(901, 0, k * 10 + i)
                  : 0.4 * hl_random_normal(902, 0, (k * 10 + i) * 10 + j);
}

static double center(size_t k, size_t i)
{
    return 1.5 * hl_random_normal(903, 0, k * 10 + i);
}

static void draw_mixture(uint64_t seed, uint64_t row, double *x)
{
    size_t k = choose(seed, row, PIECES);
    for (size_t i = 0; i < DENSITY_MOST_DIM; i++) {
        x[i] = center(k, i);
        for (size_t j = 0; j <= i; j++)
            x[i] += factor(k, i, j) * normal(seed, j, row);
    }
}

static double logp_mixture(const double *x)
{
    double term[PIECES] = { 0 }, z[DENSITY_MOST_DIM];
    for (size_t k = 0; k < PIECES; k++)
        for (size_t i = 0; i < DENSITY_MOST_DIM; i++) {
            double rest = x[i] - center(k, i);
            for (size_t j = 0; j < i; j++)
                rest -= factor(k, i, j) * z[j];
            z[i] = rest / factor(k, i, i);
            term[k] += normal_logp(z[i], 0, 1) - log(factor(k, i, i));
        }
    return log_mean(term, PIECES);
}

/* ---- a long tail behind an edge that is none: exp(z) ---- */

static void draw_lognormal(uint64_t seed, uint64_t row, double *x)
{
    x[0] = exp(normal(seed, 0, row));
}

static double logp_lognormal(const double *x)
{
    return normal_logp(log(x[0]), 0, 1) - log(x[0]);
}

/* ---- five arms, each a narrow normal turned by an angle that grows with the radius, which keeps areas ---- */

enum { ARMS = 5 };

static void turn(size_t arm, double sign, const double *from, double *to)
{
    double angle = sign * (2 * pi / ARMS * (double)arm + 0.25 * exp(hypot(from[0], from[1])));
    to[0] = from[0] * cos(angle) - from[1] * sin(angle);
    to[1] = from[0] * sin(angle) + from[1] * cos(angle);
}

static void draw_pinwheel(uint64_t seed, uint64_t row, double *x)
{
    double at[2] = { 1 + 0.3 * normal(seed, 0, row), 0.1 * normal(seed, 1, row) };
    turn(choose(seed, row, ARMS), 1, at, x);
}

static double logp_pinwheel(const double *x)
{
    double term[ARMS], at[2];
    for (size_t k = 0; k < ARMS; k++) {
        turn(k, -1, x, at);
        term[k] = normal_logp(at[0], 1, 0.3) + normal_logp(at[1], 0, 0.1);
    }
    return log_mean(term, ARMS);
}

/* ---- two spirals of one and a half turns ---- */

static void spiral(size_t which, double s, double *x)
{
    double angle = 3 * pi * sqrt(s), radius = (which ? -1 : 1) * angle / 3;
    x[0] = -radius * cos(angle);
    x[1] = radius * sin(angle);
}

static const double spiral_noise = 0.1;

static void draw_spirals(uint64_t seed, uint64_t row, double *x)
{
    draw_curves(spiral, spiral_noise, seed, row, x);
}

static double logp_spirals(const double *x)
{
    return logp_curves(spiral, spiral_noise, x);
}

/* ---- five columns of units from 1e-8 to 1e8, each pair with correlation 0.99 ---- */

enum { EQUAL = 5 };

static double unit(size_t i)
{
    return pow(10, 4 * (double)i - 8);
}

static void draw_correlated(uint64_t seed, uint64_t row, double *x)
{
    for (size_t i = 0; i < EQUAL; i++)
        x[i] = unit(i) * (sqrt(0.99) * normal(seed, EQUAL, row) + 0.1 * normal(seed, i, row));
}

/* With common variance c and own variance s, x' C^-1 x = (sum x_i^2 - c (sum x_i)^2 / (s + n c)) / s. */
static double logp_correlated(const double *x)
{
    double sum = 0, square = 0, common = 0.99, own = 0.01, scale = 0;
    for (size_t i = 0; i < EQUAL; i++) {
        sum += x[i] / unit(i);
        square += x[i] / unit(i) * (x[i] / unit(i));
        scale += log(unit(i));
    }
    return -0.5 * (square - common * sum * sum / (own + EQUAL * common)) / own - 0.5 * EQUAL * log(2 * pi) - scale -
           0.5 * ((EQUAL - 1) * log(own) + log(own + EQUAL * common));
}

/* ---- ten columns, each near a curve of the one before it ---- */

static void draw_chain(uint64_t seed, uint64_t row, double *x)
{
    for (size_t i = 0; i < DENSITY_MOST_DIM; i++)
        x[i] = i ? 0.9 * cos(2 * x[i - 1]) + 0.3 * normal(seed, i, row) : normal(seed, i, row);
}

static double logp_chain(const double *x)
{
    double sum = normal_logp(x[0], 0, 1);
    for (size_t i = 1; i < DENSITY_MOST_DIM; i++)
        sum += normal_logp(x[i], 0.9 * cos(2 * x[i - 1]), 0.3);
    return sum;
}

const density_problem density_problems[DENSITY_PROBLEMS + 1] = {
    { "8gaussians", 2, draw_8gaussians, logp_8gaussians },
    { "checkerboard", 2, draw_checkerboard, logp_checkerboard },
    { "moons", 2, draw_moons, logp_moons },
    { "rings", 2, draw_rings, logp_rings },
    { "peaks", 1, draw_peaks, logp_peaks },
    { "mixture10", 10, draw_mixture, logp_mixture },
    { "lognormal", 1, draw_lognormal, logp_lognormal },
    { "pinwheel", 2, draw_pinwheel, logp_pinwheel },
    { "spirals", 2, draw_spirals, logp_spirals },
    { "correlated5", 5, draw_correlated, logp_correlated },
    { "chain10", 10, draw_chain, logp_chain },
    { NULL, 0, NULL, NULL },
};
