/* regress_gaussian.c - linear drift and constant diffusion from snapshots, by the means and covariances of all times.
 *
 *   m' = F m + c,   P' = F P + P F' + A,   m(t_0) = m_0, P(t_0) = P_0
 *
 * hold whatever the distribution of the rows. So F, c, A, m_0 and P_0 are those under which normal distributions N(m(t), P(t)) make the observations most likely: the weak form needs the rate of
 * change of means between few times, and its regressors have noise; a path through all times needs neither. Steps are Fisher's scoring, damped by Levenberg's rule; the path is found by the
 * classical Runge-Kutta method together with its derivatives by all unknowns.
 *
 * A replicate (regress_resample.c) makes one step of scoring from the estimate, with the means and covariances of the rows that it drew. */
#include <math.h>
#include <string.h>

#include "sde/regress.h"

enum {
    MOST_COLUMNS = 12,
    MOST_VALUES = 1 << 24 /* derivatives of a path */,
    MOST_SUBSTEPS = 60,
    MOST_STEPS = 60,
    MOST_TRIALS = 14,
    STARTS = 2,
    START_ROWS = 300
};
static const double substep = 0.4;     /* times the size of F, at most */
static const double slope_step = 0.01; /* the same of derivatives of expectations */
/* F, c and B have a prior (times are fifths of what the data cover), so that directions of which the data say nothing stay small. Its deviation is `widest` at
 * first; that of F and c is then the one of these shares of it under which the data are most likely. */
static const double widest = 10;
static const double spreads[] = { 1, 0.3, 0.1, 0.03 };
static const double least_noise = 1e-2; /* A's diagonal at the start */
static const double settled = 1e-7;     /* gain in -2 log likelihood that ends the steps */
static const double same_time = 1e-5;   /* of the fifths */
static const double start_rate = -0.5;  /* of the second start */

struct hl_gaussian {
    const hl_regress *p;            /* that it was created of */
    size_t dim, times, cells, cell; /* cells: parts of the data; cell: sums of each at each time, 1, z, z z' */
    size_t unknowns, noise;         /* noise: entries of A that are free */
    double *at;                     /* [times] */
    double *sum;                    /* [cells][times][cell] */
    double *total;                  /* [times][cell]; of the data or of a replicate */
    double *value, *trial, *best;   /* [unknowns]: where the path was made linear; a trial; the best start's */
    double *path;                   /* [times][state]: means and covariances */
    double *slope;                  /* [times][unknowns][state], whitened: derivatives of the path */
    double *stage;                  /* [4][state], and scratch */
    double *normal;                 /* [2][unknowns][unknowns]: Fisher's information, its factor */
    double *gradient;               /* [unknowns] */
    double spread;                  /* the prior deviation of F and c */
};

/* The order of the unknowns: F, c, the lower triangle B of A = B B' (the diagonal, then entries of the problem), m_0, P_0 (lower triangle). */
static size_t first_noise(const hl_gaussian *l)
{
    return l->dim * (l->dim + 1);
}
static size_t first_mean(const hl_gaussian *l)
{
    return first_noise(l) + l->noise;
}
static size_t state_size(const hl_gaussian *l)
{
    return l->dim * (l->dim + 1);
}
static double prior_of(const hl_gaussian *l, size_t unknown)
{
    return unknown < first_noise(l) ? l->spread : widest;
}

bool hl_gaussian_fits(const hl_regress *p, const hl_candidate *c)
{
    return !p->plain && p->inputs == p->dim && p->dim <= MOST_COLUMNS && c->degree[0] == 1 && !c->bumps[0] &&
           !c->ridges && hl_candidate_noise(c) == 0;
}

/* ---- sums ---- */

static void add_row(const hl_gaussian *l, const double *z, double *to)
{
    size_t d = l->dim;
    to[0]++;
    hl_axpy(d, 1, z, to + 1);
    for (size_t i = 0; i < d; i++)
        hl_axpy(d, z[i], z, to + 1 + d + i * d);
}

hl_status hl_gaussian_create(const hl_regress *p, const hl_weak *weak, hl_gaussian **out)
{
    hl_context *ctx = p->ctx;
    const size_t *start, *index;
    const double *at;
    hl_gaussian *l = *out = NULL;
    size_t times = hl_weak_times(weak, &at, &start, &index), d = p->dim;
    size_t most = 2 * d * d + 3 * d, state = d * (d + 1);
    if (p->inputs != d || d > MOST_COLUMNS || hl_size_mul(times * most, state) > MOST_VALUES)
        return HL_OK;
    for (size_t t = 0; t < times; t++)
        for (size_t k = start[t]; k < start[t + 1]; k++)
            if (fabs(p->u[index[k]] - at[t]) > same_time)
                return HL_OK;
    l = hl_calloc(ctx, 1, sizeof *l);
    if (!l)
        return HL_ERR_NOMEM;
    *l =
        (hl_gaussian){ .p = p, .dim = d, .times = times, .cells = HL_REGRESS_FOLDS * p->groups, .cell = 1 + d + d * d };
    l->at = hl_calloc(ctx, times, sizeof *l->at);
    l->sum = hl_calloc(ctx, hl_size_mul(l->cells * times, l->cell), sizeof *l->sum);
    l->total = hl_calloc(ctx, times * l->cell, sizeof *l->total);
    l->value = hl_calloc(ctx, 3 * most, sizeof *l->value);
    l->path = hl_calloc(ctx, times * state, sizeof *l->path);
    l->slope = hl_calloc(ctx, hl_size_mul(times * most, state), sizeof *l->slope);
    l->stage = hl_calloc(ctx, 16 * state, sizeof *l->stage);
    l->normal = hl_calloc(ctx, hl_size_mul(2 * most, most), sizeof *l->normal);
    l->gradient = hl_calloc(ctx, most, sizeof *l->gradient);
    if (!l->at || !l->sum || !l->total || !l->value || !l->path || !l->slope || !l->stage || !l->normal ||
        !l->gradient) {
        hl_gaussian_free(l);
        return HL_ERR_NOMEM;
    }
    l->trial = l->value + most;
    l->best = l->trial + most;
    memcpy(l->at, at, times * sizeof *at);
    for (size_t t = 0; t < times; t++)
        for (size_t k = start[t]; k < start[t + 1]; k++)
            add_row(l, p->z + index[k] * p->inputs, l->sum + (p->group[index[k]] * times + t) * l->cell);
    *out = l;
    return HL_OK;
}

void hl_gaussian_free(hl_gaussian *l)
{
    if (!l)
        return;
    hl_context *ctx = l->p->ctx;
    void *const blocks[] = {
        l->at, l->sum, l->total, l->value, l->path, l->slope, l->stage, l->normal, l->gradient, l
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(ctx, blocks[i]);
}

/* Number, means and covariances (about the means) of every time to `total`, each cell as often as `copies` says, or once. */
static void add_cells(hl_gaussian *l, const unsigned *copies)
{
    size_t d = l->dim, size = l->times * l->cell;
    memset(l->total, 0, size * sizeof *l->total);
    for (size_t k = 0; k < l->cells; k++)
        if (!copies || copies[k])
            hl_axpy(size, copies ? copies[k] : 1, l->sum + k * size, l->total);
    for (size_t t = 0; t < l->times; t++) {
        double *to = l->total + t * l->cell, n = fmax(to[0], 1), *mean = to + 1, *s = mean + d;
        for (size_t k = 0; k < d + d * d; k++)
            mean[k] /= n;
        for (size_t k = 0; k < d * d; k++)
            s[k] -= mean[k / d] * mean[k % d];
    }
}

/* ---- the path ---- */

/* s = m, P: F m to m', F P + P F' to P'. */
static void turn(const hl_gaussian *l, const double *s, double *to)
{
    size_t d = l->dim;
    const double *f = l->trial;
    double *product = l->stage + 15 * state_size(l);
    memset(product, 0, d * d * sizeof *product);
    for (size_t i = 0; i < d; i++) {
        to[i] = hl_dot(d, f + i * d, s);
        for (size_t k = 0; k < d; k++)
            hl_axpy(d, f[i * d + k], s + d + k * d, product + i * d);
    }
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            to[d + i * d + j] = product[i * d + j] + product[j * d + i];
}

/* What unknown k adds to the rate of change at s, to `to`. */
static void add_unknown(const hl_gaussian *l, size_t k, double by, const double *s, double *to)
{
    size_t d = l->dim;
    if (k < d * d) {
        size_t i = k / d, j = k % d;
        to[i] += by * s[j];
        for (size_t n = 0; n < d; n++) {
            to[d + i * d + n] += by * s[d + j * d + n];
            to[d + n * d + i] += by * s[d + j * d + n];
        }
    } else if (k < first_noise(l)) {
        to[k - d * d] += by;
    } else if (k < first_mean(l)) {
        const size_t *at = l->p->entry[k - first_noise(l)]; /* column, row */
        for (size_t e = 0; e < l->noise; e++)
            if (l->p->entry[e][0] == at[0]) {
                double product = by * l->trial[first_noise(l) + e];
                to[d + at[1] * d + l->p->entry[e][1]] += product;
                to[d + l->p->entry[e][1] * d + at[1]] += product;
            }
    }
}

/* The state at the first time, or its derivative by unknown k if that is one. */
static void begin(const hl_gaussian *l, size_t k, double by, double *s)
{
    size_t d = l->dim, first = first_mean(l);
    if (k < first)
        return;
    if (k < first + d) {
        s[k - first] += by;
        return;
    }
    size_t at = k - first - d, i = 0;
    while (at > i)
        at -= ++i;
    s[d + i * d + at] += by;
    s[d + at * d + i] += i == at ? 0 : by;
}

/* One step of h from s, in place; the states of its four stages stay in l->stage. */
static void step_path(const hl_gaussian *l, double h, double *s)
{
    static const double ahead[] = { 0, 0.5, 0.5, 1 }, share[] = { 1. / 6, 1. / 3, 1. / 3, 1. / 6 };
    size_t n = state_size(l);
    double *rate = l->stage + 4 * n;
    for (size_t q = 0; q < 4; q++) {
        double *stage = l->stage + q * n;
        memcpy(stage, s, n * sizeof *s);
        if (q)
            hl_axpy(n, h * ahead[q], rate + (q - 1) * n, stage);
        turn(l, stage, rate + q * n);
        for (size_t k = l->dim * l->dim; k < first_mean(l); k++) /* B counts twice */
            add_unknown(l, k, k < first_noise(l) ? l->trial[k] : l->trial[k] / 2, stage, rate + q * n);
    }
    for (size_t q = 0; q < 4; q++)
        hl_axpy(n, h * share[q], rate + q * n, s);
}

/* The same of the derivative by unknown k. */
static void step_slope(const hl_gaussian *l, size_t k, double h, double *s)
{
    static const double ahead[] = { 0, 0.5, 0.5, 1 }, share[] = { 1. / 6, 1. / 3, 1. / 3, 1. / 6 };
    size_t n = state_size(l);
    double *rate = l->stage + 8 * n, *trial = rate + 4 * n;
    for (size_t q = 0; q < 4; q++) {
        memcpy(trial, s, n * sizeof *s);
        if (q)
            hl_axpy(n, h * ahead[q], rate + (q - 1) * n, trial);
        turn(l, trial, rate + q * n);
        add_unknown(l, k, 1, l->stage + q * n, rate + q * n);
    }
    for (size_t q = 0; q < 4; q++)
        hl_axpy(n, h * share[q], rate + q * n, s);
}

static double size_of(const hl_gaussian *l)
{
    return sqrt(hl_dot(l->dim * l->dim, l->trial, l->trial));
}

/* The path of the unknowns in l->trial, and with `slopes` its derivatives. False if F is too large for it. */
static bool run_path(hl_gaussian *l, bool slopes)
{
    size_t n = state_size(l), k = l->unknowns;
    double *s = l->stage + 13 * n;
    memset(s, 0, n * sizeof *s);
    for (size_t u = 0; u < k; u++)
        begin(l, u, l->trial[u], s);
    memcpy(l->path, s, n * sizeof *s);
    if (slopes)
        memset(l->slope, 0, k * n * sizeof *l->slope);
    for (size_t u = 0; u < k && slopes; u++)
        begin(l, u, 1, l->slope + u * n);
    for (size_t t = 1; t < l->times; t++) {
        double h = l->at[t] - l->at[t - 1], steps = ceil(fmax(h * size_of(l) / substep, 1));
        if (!(steps <= MOST_SUBSTEPS))
            return false;
        double *slope = l->slope + t * k * n;
        if (slopes)
            memcpy(slope, slope - k * n, k * n * sizeof *slope);
        for (size_t q = 0; q < (size_t)steps; q++) {
            step_path(l, h / steps, s);
            for (size_t u = 0; u < k && slopes; u++)
                step_slope(l, u, h / steps, slope + u * n);
        }
        memcpy(l->path + t * n, s, n * sizeof *s);
    }
    return true;
}

/* ---- likelihood ---- */

/* L^-1 e and L^-1 V L^-T of s = e, V, with a symmetric V. */
static void whiten(size_t d, const double *factor, double *s)
{
    hl_solve_lower(d, factor, d, s);
    for (int side = 0; side < 2; side++) {
        hl_solve_lower_rows(d, factor, d, d, s + d);
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < i; j++) {
                double swap = s[d + i * d + j];
                s[d + i * d + j] = s[d + j * d + i];
                s[d + j * d + i] = swap;
            }
    }
}

/* Cholesky's factor of a time's covariance P, and what the data show beyond the path, whitened: e and S + e e' - P. Returns -2 log likelihood of a row, or infinity. */
static double compare(const hl_gaussian *l, size_t t, double *factor, double *gap)
{
    size_t d = l->dim;
    const double *s = l->path + t * state_size(l), *data = l->total + t * l->cell + 1;
    double value = 0;
    memcpy(factor, s + d, d * d * sizeof *factor);
    if (!(hl_cholesky(d, factor, 0) > 0))
        return INFINITY;
    for (size_t i = 0; i < d; i++)
        gap[i] = data[i] - s[i];
    for (size_t k = 0; k < d * d; k++)
        gap[d + k] = data[d + k] + gap[k / d] * gap[k % d] - s[d + k];
    whiten(d, factor, gap);
    for (size_t i = 0; i < d; i++)
        value += 2 * log(factor[i * (d + 1)]) + gap[d + i * (d + 1)];
    return isfinite(value) ? value : INFINITY;
}

/* -2 log likelihood of the unknowns in l->trial. */
static double likelihood(hl_gaussian *l)
{
    double *factor = l->stage, *gap = factor + state_size(l), sum = 0;
    if (!run_path(l, false))
        return INFINITY;
    for (size_t t = 0; t < l->times; t++)
        sum += l->total[t * l->cell] * compare(l, t, factor, gap);
    for (size_t k = 0; k < first_mean(l); k++)
        sum += pow(l->trial[k] / prior_of(l, k), 2);
    return sum;
}

/* Adds Fisher's information of time t, and its gradient, from whitened derivatives. */
static void add_time(hl_gaussian *l, size_t t, const double *gap)
{
    size_t d = l->dim, n = state_size(l), k = l->unknowns;
    double rows = l->total[t * l->cell];
    const double *slope = l->slope + t * k * n;
    for (size_t u = 0; u < k; u++) {
        const double *own = slope + u * n;
        l->gradient[u] += rows * (hl_dot(d, own, gap) + 0.5 * hl_dot(d * d, own + d, gap + d));
        for (size_t v = 0; v <= u; v++)
            l->normal[u * k + v] +=
                rows * (hl_dot(d, own, slope + v * n) + 0.5 * hl_dot(d * d, own + d, slope + v * n + d));
    }
}

static void add_prior(hl_gaussian *l)
{
    for (size_t u = 0; u < first_mean(l); u++) {
        double precision = pow(prior_of(l, u), -2);
        l->normal[u * (l->unknowns + 1)] += precision;
        l->gradient[u] -= precision * l->value[u];
    }
}

/* The same of all times and of the prior, at the unknowns in l->value. False if they have none. */
static bool linearise(hl_gaussian *l)
{
    size_t d = l->dim, n = state_size(l), k = l->unknowns;
    double *factor = l->stage, *gap = factor + n;
    memcpy(l->trial, l->value, k * sizeof *l->trial);
    if (!run_path(l, true))
        return false;
    memset(l->normal, 0, k * k * sizeof *l->normal);
    memset(l->gradient, 0, k * sizeof *l->gradient);
    for (size_t t = 0; t < l->times; t++) {
        if (!(compare(l, t, factor, gap) < INFINITY))
            return false;
        for (size_t u = 0; u < k; u++)
            whiten(d, factor, l->slope + (t * k + u) * n);
        add_time(l, t, gap);
    }
    add_prior(l);
    return true;
}

/* The step of scoring with damping, to `to`. False if the information has no factor. */
static bool solve(const hl_gaussian *l, double damping, double *to)
{
    size_t k = l->unknowns;
    double *factor = l->normal + k * k;
    memcpy(factor, l->normal, k * k * sizeof *factor);
    for (size_t u = 0; u < k; u++)
        factor[u * (k + 1)] *= 1 + damping;
    if (!(hl_cholesky(k, factor, 0) > 0))
        return false;
    memcpy(to, l->gradient, k * sizeof *to);
    hl_solve_lower(k, factor, k, to);
    hl_solve_lower_transposed(k, factor, k, to);
    return true;
}

/* Steps from l->value while they gain; returns -2 log likelihood, or infinity. */
static double climb(hl_gaussian *l)
{
    size_t k = l->unknowns;
    double damping = 1e-2, least;
    memcpy(l->trial, l->value, k * sizeof *l->trial);
    least = likelihood(l);
    for (size_t step = 0; step < MOST_STEPS && least < INFINITY; step++) {
        double next = INFINITY;
        if (!linearise(l))
            return INFINITY;
        for (size_t trial = 0; trial < MOST_TRIALS && !(next < least); trial++, damping *= 5) {
            if (!solve(l, damping, l->trial))
                continue;
            hl_axpy(k, 1, l->value, l->trial);
            next = likelihood(l);
        }
        if (!(next < least))
            break;
        damping /= 25;
        memcpy(l->value, l->trial, k * sizeof *l->value);
        if (least - next < settled)
            break;
        least = next;
    }
    return least;
}

/* ---- estimates ---- */

/* Coefficients of the problem p's functions to the unknowns; means and covariances at the first time are the data's. B is that of the diagonal of A: the rest of an estimate by conditions need not be a
 * covariance. */
static void read_theta(hl_gaussian *l, const hl_regress *p)
{
    size_t d = l->dim, first = first_mean(l);
    const double *data = l->total + 1;
    for (size_t i = 0; i < d; i++) {
        const double *from = p->theta + hl_regress_drift(p, i);
        l->value[d * d + i] = from[0];
        memcpy(l->value + i * d, from + 1, d * sizeof *from);
    }
    memset(l->value + first_noise(l), 0, l->noise * sizeof *l->value);
    for (size_t i = 0; i < d; i++)
        l->value[first_noise(l) + i] = sqrt(fmax(p->theta[hl_regress_noise(p, i)], least_noise));
    memcpy(l->value + first, data, d * sizeof *data);
    for (size_t i = 0, at = first + d; i < d; i++)
        for (size_t j = 0; j <= i; j++)
            l->value[at++] = data[d + i * d + j];
}

/* And back. */
static void write_theta(const hl_gaussian *l, const double *value, const hl_regress *p)
{
    size_t d = l->dim;
    const double *b = value + first_noise(l);
    memset(p->theta, 0, p->columns * sizeof *p->theta);
    for (size_t i = 0; i < d; i++) {
        double *to = p->theta + hl_regress_drift(p, i);
        to[0] = value[d * d + i];
        memcpy(to + 1, value + i * d, d * sizeof *to);
    }
    for (size_t e = 0; e < l->noise; e++)
        for (size_t k = 0; k < l->noise; k++)
            for (size_t n = 0; n < l->noise; n++) /* entries of one column of B, of the rows of e */
                if (p->entry[k][0] == p->entry[n][0] && p->entry[k][1] == p->entry[e][0] &&
                    p->entry[n][1] == p->entry[e][1])
                    p->theta[hl_regress_noise(p, e)] += b[k] * b[n];
}

/* A start without an estimate: all columns relax. */
static void start_anew(hl_gaussian *l)
{
    size_t d = l->dim;
    memset(l->value, 0, first_mean(l) * sizeof *l->value);
    for (size_t i = 0; i < d; i++)
        l->value[i * (d + 1)] = start_rate;
    for (size_t i = 0; i < d; i++)
        l->value[first_noise(l) + i] = sqrt(-start_rate);
}

/* -2 log of the data's probability under the prior, by Laplace's approximation at l->value, where -2 log likelihood is `least`. */
static double evidence(hl_gaussian *l, double least)
{
    size_t k = l->unknowns;
    double *factor = l->normal + k * k, sum = least;
    if (!(least < INFINITY) || !linearise(l))
        return INFINITY;
    memcpy(factor, l->normal, k * k * sizeof *factor);
    if (!(hl_cholesky(k, factor, 0) > 0))
        return INFINITY;
    for (size_t u = 0; u < k; u++)
        sum += 2 * log(factor[u * (k + 1)]);
    for (size_t u = 0; u < first_mean(l); u++)
        sum += 2 * log(prior_of(l, u));
    return isfinite(sum) ? sum : INFINITY;
}

/* Narrower priors from the best start on, while the data become more likely. Returns -2 log of their probability. */
static double choose_prior(hl_gaussian *l, double least)
{
    size_t k = l->unknowns;
    double best = evidence(l, least);
    for (size_t q = 1; q < sizeof spreads / sizeof *spreads; q++) {
        double kept = l->spread;
        l->spread = widest * spreads[q];
        double value = evidence(l, climb(l));
        if (!(value < best)) {
            l->spread = kept;
            break;
        }
        best = value;
        memcpy(l->best, l->value, k * sizeof *l->best);
    }
    memcpy(l->value, l->best, k * sizeof *l->value);
    return best;
}

double hl_gaussian_estimate(hl_gaussian *l, const hl_regress *p, bool crossed)
{
    size_t d = l->dim;
    double least = INFINITY;
    l->spread = widest;
    l->noise = crossed ? p->entries : d;
    l->unknowns = first_mean(l) + d + d * (d + 1) / 2;
    add_cells(l, NULL);
    for (int start = 0; start < STARTS; start++) {
        read_theta(l, p);
        if (start)
            start_anew(l);
        double value = climb(l);
        if (value < least)
            memcpy(l->best, l->value, l->unknowns * sizeof *l->best);
        least = fmin(least, value);
    }
    memcpy(l->value, l->best, l->unknowns * sizeof *l->best);
    double unlikely = choose_prior(l, least);
    if (!(unlikely < INFINITY) || !linearise(l))
        return INFINITY;
    write_theta(l, l->value, p);
    return unlikely;
}

/* ---- expectations of test functions ---- */

/* Where rows are: a row that starts at x has the normal distribution N(b + turned x, Q). */
typedef struct transition {
    double *state;  /* b, Q */
    double *turned; /* [dim] states, of which the means are the columns */
} transition;

static void advance(const hl_gaussian *l, double h, const transition *at)
{
    double steps = fmax(ceil(h * size_of(l) / substep), 1);
    for (size_t q = 0; q < (size_t)steps; q++) {
        step_path(l, h / steps, at->state);
        for (size_t j = 0; j < l->dim; j++)
            step_slope(l, first_mean(l) + j, h / steps, at->turned + j * state_size(l));
    }
}

/* Adds `by` times the mean over some rows of the first time, to `to` [tests], two apart. */
static void add_means(const hl_gaussian *l, const hl_weak *weak, const transition *at, double by, double *to)
{
    const hl_regress *p = l->p;
    const size_t *start, *index;
    const double *times;
    size_t d = l->dim, n = state_size(l), stride, tests = hl_weak_test_count(weak);
    hl_weak_times(weak, &times, &start, &index);
    stride = start[1] / START_ROWS + 1;
    double *mean = l->stage, *scratch = mean + n, rows = (double)((start[1] + stride - 1) / stride);
    for (size_t r = 0; r < start[1]; r += stride) {
        memcpy(mean, at->state, d * sizeof *mean);
        for (size_t j = 0; j < d; j++)
            hl_axpy(d, p->z[index[r] * p->inputs + j], at->turned + j * n, mean);
        for (size_t k = 0; k < tests; k++)
            to[2 * k] += by / rows * hl_weak_expect(weak, k, mean, at->state + d, scratch);
    }
}

/* Value and slope, by three points. */
static void expect_at(const hl_gaussian *l, const hl_weak *weak, const transition *at, const transition *ahead,
                      double *to)
{
    static const double slope[] = { -1.5, 2, -0.5 };
    size_t n = state_size(l);
    double gap = slope_step / fmax(size_of(l), 1);
    memset(to, 0, 2 * hl_weak_test_count(weak) * sizeof *to);
    memcpy(ahead->state, at->state, n * sizeof *at->state);
    memcpy(ahead->turned, at->turned, l->dim * n * sizeof *at->turned);
    for (size_t q = 0; q < 3; q++) {
        if (q)
            advance(l, gap, ahead);
        else
            add_means(l, weak, ahead, 1, to);
        add_means(l, weak, ahead, slope[q] / gap, to + 1);
    }
}

hl_status hl_gaussian_expect(hl_gaussian *l, const hl_weak *weak, double *expected)
{
    size_t d = l->dim, n = state_size(l);
    double *room = hl_calloc(l->p->ctx, 2 * (d + 1) * n, sizeof *room);
    if (!room)
        return HL_ERR_NOMEM;
    transition at = { room, room + n }, ahead = { at.turned + d * n, at.turned + (d + 1) * n };
    memcpy(l->trial, l->value, l->unknowns * sizeof *l->trial);
    for (size_t j = 0; j < d; j++)
        at.turned[j * n + j] = 1;
    for (size_t t = 0; t < l->times; t++) {
        if (t)
            advance(l, l->at[t] - l->at[t - 1], &at);
        expect_at(l, weak, &at, &ahead, expected + t * 2 * hl_weak_test_count(weak));
    }
    hl_free(l->p->ctx, room);
    return HL_OK;
}

/* ---- replicates ---- */

bool hl_gaussian_replicate(hl_gaussian *l, const hl_regress *p, const unsigned *copies)
{
    size_t k = l->unknowns, n = state_size(l);
    double *factor = l->stage, *gap = factor + n;
    add_cells(l, copies);
    memset(l->gradient, 0, k * sizeof *l->gradient);
    memset(l->normal, 0, k * k * sizeof *l->normal);
    for (size_t t = 0; t < l->times; t++) {
        compare(l, t, factor, gap);
        add_time(l, t, gap);
    }
    add_prior(l);
    if (!solve(l, 0, l->trial))
        return false;
    hl_axpy(k, 1, l->value, l->trial);
    write_theta(l, l->trial, p);
    return true;
}
