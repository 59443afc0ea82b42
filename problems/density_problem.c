/* density_problem.c - how rows of each set are drawn, and their exact log-density. */
#include <math.h>

#include "density_problem.h"
#include "numbers.h"
#include "program/program.h"

enum { MODES = 8, PIECES = 4, NODES = 2000, MOST_SPOTS = 12 };
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

/* ---- Neal's funnel: the first column is the log-variance of the others ---- */

static const double funnel_width = 1.5;

static void draw_funnel(uint64_t seed, uint64_t row, double *x)
{
    x[0] = funnel_width * normal(seed, 0, row);
    for (size_t i = 1; i < DENSITY_MOST_DIM; i++)
        x[i] = exp(0.5 * x[0]) * normal(seed, i, row);
}

static double logp_funnel(const double *x)
{
    double sum = normal_logp(x[0], 0, funnel_width);
    for (size_t i = 1; i < DENSITY_MOST_DIM; i++)
        sum += normal_logp(x[i], 0, exp(0.5 * x[0]));
    return sum;
}

/* ---- five columns, by turns near a parabola and a sine of the one before ---- */

static double banana_mean(const double *x, size_t i)
{
    return i % 2 ? 0.5 * x[i - 1] * x[i - 1] : sin(2 * x[i - 1]);
}

static void draw_banana(uint64_t seed, uint64_t row, double *x)
{
    x[0] = normal(seed, 0, row);
    for (size_t i = 1; i < EQUAL; i++)
        x[i] = banana_mean(x, i) + 0.3 * normal(seed, i, row);
}

static double logp_banana(const double *x)
{
    double sum = normal_logp(x[0], 0, 1);
    for (size_t i = 1; i < EQUAL; i++)
        sum += normal_logp(x[i], banana_mean(x, i), 0.3);
    return sum;
}

/* ---- mixtures of correlated normals: parts of unequal weights, their tables made from the number of the set ---- */

static double spot_weight(uint64_t set, size_t k)
{
    return 0.3 + hl_random_uniform(set, 0, k);
}

static double spot_mean(uint64_t set, double spread, size_t k, size_t i)
{
    return spread * hl_random_normal(set, 1, k * 16 + i);
}

static double spot_factor(uint64_t set, size_t k, size_t i, size_t j)
{
    return i == j ? 0.15 + 0.5 * hl_random_uniform(set, 2, k * 16 + i)
                  : 0.3 * hl_random_normal(set, 3, (k * 16 + i) * 16 + j);
}

static size_t choose_spot(uint64_t set, size_t parts, double u)
{
    double total = 0, sum = 0;
    for (size_t k = 0; k < parts; k++)
        total += spot_weight(set, k);
    for (size_t k = 0; k < parts; k++)
        if ((sum += spot_weight(set, k)) >= u * total)
            return k;
    return parts - 1;
}

static void draw_spots(uint64_t set, size_t parts, size_t dim, double spread, uint64_t seed, uint64_t row, double *x)
{
    size_t k = choose_spot(set, parts, uniform(seed, 62, row));
    for (size_t i = 0; i < dim; i++) {
        x[i] = spot_mean(set, spread, k, i);
        for (size_t j = 0; j <= i; j++)
            x[i] += spot_factor(set, k, i, j) * normal(seed, j, row);
    }
}

static double logp_spots(uint64_t set, size_t parts, size_t dim, double spread, const double *x)
{
    double term[MOST_SPOTS], total = 0, top = -INFINITY, sum = 0;
    for (size_t k = 0; k < parts; k++) {
        double z[DENSITY_MOST_DIM];
        total += spot_weight(set, k);
        term[k] = log(spot_weight(set, k));
        for (size_t i = 0; i < dim; i++) {
            double rest = x[i] - spot_mean(set, spread, k, i);
            for (size_t j = 0; j < i; j++)
                rest -= spot_factor(set, k, i, j) * z[j];
            z[i] = rest / spot_factor(set, k, i, i);
            term[k] += normal_logp(z[i], 0, 1) - log(spot_factor(set, k, i, i));
        }
        top = fmax(top, term[k]);
    }
    for (size_t k = 0; k < parts; k++)
        sum += exp(term[k] - top);
    return top + log(sum / total);
}

static void draw_mixture6(uint64_t seed, uint64_t row, double *x)
{
    draw_spots(911, 12, 6, 2, seed, row, x);
}

static double logp_mixture6(const double *x)
{
    return logp_spots(911, 12, 6, 2, x);
}

/* ---- five positive columns: the exponential of a mixture of three normals ---- */

static void draw_lognormals(uint64_t seed, uint64_t row, double *x)
{
    draw_spots(912, 3, EQUAL, 1, seed, row, x);
    for (size_t i = 0; i < EQUAL; i++)
        x[i] = exp(x[i]);
}

static double logp_lognormals(const double *x)
{
    double y[EQUAL], sum = 0;
    for (size_t i = 0; i < EQUAL; i++) {
        y[i] = log(x[i]);
        sum += y[i];
    }
    return logp_spots(912, 3, EQUAL, 1, y) - sum;
}

/* ---- six columns of a t distribution with three degrees of freedom, each correlated with the one before ---- */

enum { HEAVY = 6, FREEDOM = 3 };

static void draw_heavy(uint64_t seed, uint64_t row, double *x)
{
    double square = 0;
    for (size_t k = 0; k < FREEDOM; k++)
        square += pow(normal(seed, 10 + k, row), 2);
    for (size_t i = 0; i < HEAVY; i++)
        x[i] = (i ? 0.7 * x[i - 1] : 0) + normal(seed, i, row) / sqrt(square / FREEDOM);
}

static double logp_heavy(const double *x)
{
    double square = 0, half = 0.5 * (FREEDOM + HEAVY);
    for (size_t i = 0; i < HEAVY; i++)
        square += pow(x[i] - (i ? 0.7 * x[i - 1] : 0), 2);
    return lgamma(half) - lgamma(0.5 * FREEDOM) - 0.5 * HEAVY * log(FREEDOM * pi) - half * log1p(square / FREEDOM);
}

/* ---- four columns: one of five values and a little noise, the others depend on the value ---- */

enum { LEVELS = 5, LEVEL_COLUMNS = 4 };
static const double level_noise = 0.01;

static double level_mean(size_t level, size_t i)
{
    return i ? 1.5 * hl_random_normal(913, i, level) : (double)level;
}

static double level_width(size_t level, size_t i)
{
    return i ? 0.3 + hl_random_uniform(914, i, level) : level_noise;
}

static void draw_levels(uint64_t seed, uint64_t row, double *x)
{
    size_t level = choose(seed, row, LEVELS);
    for (size_t i = 0; i < LEVEL_COLUMNS; i++)
        x[i] = level_mean(level, i) + level_width(level, i) * normal(seed, i, row);
}

static double logp_levels(const double *x)
{
    double term[LEVELS] = { 0 };
    for (size_t k = 0; k < LEVELS; k++)
        for (size_t i = 0; i < LEVEL_COLUMNS; i++)
            term[k] += normal_logp(x[i], level_mean(k, i), level_width(k, i));
    return log_mean(term, LEVELS);
}

/* ---- three columns near a helix of two turns ---- */

static void helix(double s, double *x)
{
    x[0] = cos(4 * pi * s);
    x[1] = sin(4 * pi * s);
    x[2] = 2 * s - 1;
}

static const double helix_noise = 0.1;

static void draw_helix(uint64_t seed, uint64_t row, double *x)
{
    helix(uniform(seed, 0, row), x);
    for (size_t i = 0; i < 3; i++)
        x[i] += helix_noise * normal(seed, 1 + i, row);
}

static double logp_helix(const double *x)
{
    double term[NODES], at[3];
    for (size_t n = 0; n < NODES; n++) {
        helix(((double)n + 0.5) / NODES, at);
        term[n] = normal_logp(x[0], at[0], helix_noise) + normal_logp(x[1], at[1], helix_noise) +
                  normal_logp(x[2], at[2], helix_noise);
    }
    return log_mean(term, NODES);
}

/* ---- eight columns of different families, each with a spread that depends on the one before ---- */

enum { FAMILIES = 8 };

/* Quantile functions that are monotone in a normal score, and their log-derivatives. */
static double family(size_t i, double z, double *slope)
{
    switch (i % 4) {
    case 0:
        *slope = 0;
        return z;
    case 1: /* lognormal */
        *slope = 0.6 * z + log(0.6);
        return exp(0.6 * z);
    case 2: /* heavy tails on both sides */
        *slope = log(cosh(0.8 * z)) + log(0.8);
        return sinh(0.8 * z);
    default: /* between two values */
        *slope = -1.5 * z - 2 * log1p(exp(-1.5 * z)) + log(1.5);
        return 1 / (1 + exp(-1.5 * z));
    }
}

static double family_inverse(size_t i, double x)
{
    return i % 4 == 0 ? x : i % 4 == 1 ? log(x) / 0.6 : i % 4 == 2 ? asinh(x) / 0.8 : log(x / (1 - x)) / 1.5;
}

static double family_width(double before)
{
    return 0.3 + 0.5 / (1 + before * before);
}

static void draw_families(uint64_t seed, uint64_t row, double *x)
{
    double before = 0, slope;
    for (size_t i = 0; i < FAMILIES; i++) {
        double z = 0.7 * before + family_width(before) * normal(seed, i, row);
        x[i] = family(i, z, &slope);
        before = z;
    }
}

static double logp_families(const double *x)
{
    double before = 0, sum = 0, slope;
    for (size_t i = 0; i < FAMILIES; i++) {
        double z = family_inverse(i, x[i]);
        family(i, z, &slope);
        sum += normal_logp(z, 0.7 * before, family_width(before)) - slope;
        before = z;
    }
    return sum;
}

const density_problem density_problems[DENSITY_PROBLEMS + 1] = {
    { "8gaussians", 2, draw_8gaussians, logp_8gaussians, true },
    { "checkerboard", 2, draw_checkerboard, logp_checkerboard, true },
    { "moons", 2, draw_moons, logp_moons, true },
    { "rings", 2, draw_rings, logp_rings, true },
    { "peaks", 1, draw_peaks, logp_peaks, true },
    { "mixture10", 10, draw_mixture, logp_mixture, false },
    { "lognormal", 1, draw_lognormal, logp_lognormal, false },
    { "pinwheel", 2, draw_pinwheel, logp_pinwheel, false },
    { "spirals", 2, draw_spirals, logp_spirals, true },
    { "correlated5", 5, draw_correlated, logp_correlated, false },
    { "chain10", 10, draw_chain, logp_chain, false },
    { "funnel10", 10, draw_funnel, logp_funnel, true },
    { "banana5", 5, draw_banana, logp_banana, true },
    { "mixture6", 6, draw_mixture6, logp_mixture6, false },
    { "lognormals5", 5, draw_lognormals, logp_lognormals, false },
    { "heavy6", 6, draw_heavy, logp_heavy, false },
    { "levels4", 4, draw_levels, logp_levels, true },
    { "helix3", 3, draw_helix, logp_helix, false },
    { "families8", 8, draw_families, logp_families, false },
    { NULL, 0, NULL, NULL, false },
};
