/* weak_tests.c - do the means of functions of x change with time as a model says? No pairs of observations are needed.
 *
 * For a function phi and a cosine c_k(t), summed over the intervals between times,
 *   y = sum_l d_kl E[phi](t_l) - w_kl E[L phi](t_l),   L phi = f . grad phi + A : Hess phi / 2,
 * with means over the observations of a time, is zero but for noise if f and A are the model's and the model is right. The functions are
 * columns, their products, and Gaussians at observations other than those that the regression takes.
 *
 * What the model may miss, df and dA, is linear in y: sum_l w_kl E[df . grad phi + dA : Hess phi / 2]. Least squares, weighted by the
 * covariance of y, finds polynomials df and dA, then changes with time and correlations beside them. As in residuals.c the
 * noise is subtracted from their squares, so that effects are errors relative to f and g without bias.
 *
 * The covariance of y is that of independent rows, or that of whole trajectories, for which y is a martingale with the variance
 * sum_j c_k^2 h E[grad phi' A grad phi], or a mean of both by the share of a trajectory's times that are seen. If it is not known which rows are of the
 * same trajectories it is the sum, which is too large by at most a factor of two.
 *
 * It does not hold errors of the integrals where times are far apart, nor the noise of the regressors w E[df . grad phi], which correlates with y:
 * of a stationary density some combinations of them are noise alone, and right models were 10 standard errors off. So where an effect is large the
 * tests are done again on data of the model itself (weak_reference.c), and sigma is told by their mean and deviation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linear.h"
#include "sde/regress.h"
#include "sde/weak_tests.h"

enum {
    MOST_TIMES = 60,
    LEAST_TIMES = 8, /* of fewer the integrals are not accurate */
    LEAST_ROWS = 40, /* of a time */
    LEAST_TRAJECTORIES = 50,
    MOST_ROWS = 60000,
    COVARIANCE_ROWS = 400,
    MOST_WAVES = 8,
    MOST_TESTS = 60,
    MOST_TERMS = 200,
    MOST_DIM = 10,
    CUBIC_DIM = 3,
    PRODUCT_DIM = 6,
    BUMPS = 8, /* for each column, */
    MOST_BUMPS = 24,
    CHUNK = 256,
    REPLICATES = 10,
    SURE_REPLICATES = 4, /* enough where sigma is far off */
    STREAM_CENTRE = 43,
    SCALE_TEST = HL_WEAK_TESTS,
    TESTS
};
/* least_variance and the Gaussians were changed after results on the calibration equations of docs/sde_verdicts.md. */
static const double bump_width = 0.7, far = 3, least_variance = 5e-3;
static const double same_rows = 0.2, most_shared = 0.95, chi_deviation = 0.7, least_deviation = 0.2,
                    sure = 5; /* see same_order(), refer() */

/* phi: the product of one or two columns, or a Gaussian. */
typedef struct phi {
    size_t factor[2]; /* column + 1, or 0 */
    double centre[MOST_DIM], width;
} phi;

/* What the model may miss: `value` times a coefficient is added to f_i (part 0), A_ii (1) or A_ij (2). DRIFT and DIFFUSION: linear f, constant A; the next
 * two: what of them is not; SCALE: f and A times t; TREND: other changes with time. */
typedef enum block { DRIFT, DIFFUSION, BENT_DRIFT, BENT_DIFFUSION, TREND, SCALE, CROSS } block;
typedef struct term {
    block block;
    int part;
    size_t i, j;
} term;

typedef struct weak {
    hl_sde *sde;
    const hl_sde_data *data;
    size_t dim, times, tests, waves, terms, rows;
    size_t *index, *start; /* rows by time */
    size_t *path, paths;   /* of these rows */
    double at[MOST_TIMES], first, last;
    double *f, *g; /* [rows][dim], standardised columns, the user's time */
    double *z;     /* [rows][dim] */
    phi phi[MOST_TESTS];
    term term[MOST_TERMS];
    double value[MOST_TERMS], effect[MOST_TERMS]; /* at a row; effect: as it counts in f or g */
    double *cell;                                 /* [times][tests][terms + 2] means; the last two: L phi, phi */
    double *variance;             /* [times][2 tests][2 tests] of (phi, L phi) over the number of rows */
    double *spread;               /* [times][tests][tests] E[grad phi' A grad phi] over the number of rows */
    double *metric;               /* [terms][terms] mean products of effects */
    double size[2];               /* mean squares of f, of g */
    double *weight, *jump, *wave; /* [waves][times] */
    double *factor, *y;           /* of the covariance; [conditions][terms + 1] */
    double share[2];              /* of the covariance of independent rows, and of trajectories */
    bool known;                   /* it is known which rows are of the same trajectories */
    double slope[MOST_DIM], bend[MOST_DIM * MOST_DIM];
} weak;

/* ---- times ---- */

typedef struct stamp {
    double t;
    size_t row;
} stamp;

static int by_time(const void *a, const void *b)
{
    const stamp *p = a, *q = b;
    return p->t != q->t ? (p->t > q->t) - (p->t < q->t) : (p->row > q->row) - (p->row < q->row);
}

/* Rows of one time, or of neighbouring times where these are many or thin; of many rows every so many. Of neighbouring times a trajectory
 * gives its first row alone, as covariances take the rows of a group for independent. seen: [path number], zeros. */
static void group(weak *w, const stamp *s, const size_t *path, size_t *seen)
{
    size_t n = w->data->rows, distinct = 1, thin = 0, run = 1;
    for (size_t r = 1; r <= n; r++, run++)
        if (r == n || s[r].t != s[r - 1].t) {
            thin += run < LEAST_ROWS;
            run = 0;
            distinct += r < n;
        }
    bool exact = distinct <= MOST_TIMES && thin == 0;
    size_t groups = n / LEAST_ROWS < MOST_TIMES ? n / LEAST_ROWS : MOST_TIMES, paths = path[n - 1] + 1;
    size_t every = (exact || paths > n / MOST_TIMES ? n : paths * MOST_TIMES) / MOST_ROWS + 1;
    for (size_t r = 0, end; r < n && w->times < MOST_TIMES; r = end) {
        end = exact || !groups ? r + 1 : r + n / groups < n ? r + n / groups : n;
        while (end < n && s[end].t == s[end - 1].t)
            end++;
        double sum = 0;
        size_t first = w->rows, fresh = 0;
        for (size_t k = r; k < end; k++) {
            size_t *last = &seen[path[s[k].row]];
            bool again = *last == end;
            *last = end;
            if (again || fresh++ % every)
                continue;
            w->path[w->rows] = w->data->trajectory ? path[s[k].row] : w->rows - first;
            w->index[w->rows++] = s[k].row;
            sum += s[k].t - s[r].t;
        }
        if (fresh < LEAST_ROWS) {
            w->rows = first;
            continue;
        }
        w->at[w->times++] = s[r].t + sum / (double)(w->rows - first);
        w->start[w->times] = w->rows;
    }
    w->first = w->times ? w->at[0] : 0;
    w->last = w->times ? w->at[w->times - 1] : 0;
}

static hl_status find_times(weak *w)
{
    hl_context *ctx = w->sde->ctx;
    size_t n = w->data->rows, *path = hl_calloc(ctx, n, 2 * sizeof *path);
    const size_t *id = w->data->trajectory;
    stamp *s = hl_calloc(ctx, n, sizeof *s);
    w->index = hl_calloc(ctx, n, 2 * sizeof *w->index);
    w->start = hl_calloc(ctx, MOST_TIMES + 1, sizeof *w->start);
    hl_status status = s && path && w->index && w->start ? HL_OK : HL_ERR_NOMEM;
    w->path = w->index + (w->index ? n : 0);
    for (size_t r = 0; r < n && status == HL_OK; r++) {
        s[r] = (stamp){ w->data->t[r], r };
        path[r] = r ? path[r - 1] + (!id || id[r] != id[r - 1]) : 0;
    }
    if (status == HL_OK) {
        qsort(s, n, sizeof *s, by_time);
        group(w, s, path, path + n);
        for (size_t r = 0; r < w->rows; r++)
            w->paths = w->path[r] < w->paths ? w->paths : w->path[r] + 1;
    }
    hl_free(ctx, s);
    hl_free(ctx, path);
    return status;
}

/* ---- test functions ---- */

static void choose_tests(weak *w, uint64_t seed)
{
    size_t d = w->dim;
    for (size_t a = 0; a < d; a++)
        w->phi[w->tests++] = (phi){ .factor = { a + 1 } };
    for (size_t a = 0; a < d; a++)
        for (size_t b = 0; b <= a; b++)
            if (a == b || d <= PRODUCT_DIM)
                w->phi[w->tests++] = (phi){ .factor = { a + 1, b + 1 } };
    for (size_t k = 0; k < BUMPS * d && k < MOST_BUMPS && w->tests < MOST_TESTS; k++) {
        phi *p = &w->phi[w->tests++];
        size_t row = hl_random_bits(seed, STREAM_CENTRE, k) % w->rows;
        *p = (phi){ .width = bump_width * sqrt(fmax(1, (double)d / 2)) };
        memcpy(p->centre, w->z + row * d, d * sizeof *p->centre);
    }
}

/* phi with its gradient and Hessian to w->slope and w->bend. */
static double eval_phi(weak *w, const phi *p, const double *z)
{
    size_t d = w->dim;
    double square = 0;
    if (p->factor[0]) {
        size_t a = p->factor[0] - 1, b = p->factor[1] ? p->factor[1] - 1 : 0;
        memset(w->slope, 0, d * sizeof *w->slope);
        memset(w->bend, 0, d * d * sizeof *w->bend);
        if (!p->factor[1]) {
            w->slope[a] = 1;
            return z[a];
        }
        w->slope[a] = z[b];
        w->slope[b] += z[a];
        w->bend[a * d + b] += 1;
        w->bend[b * d + a] += 1;
        return z[a] * z[b];
    }
    for (size_t i = 0; i < d; i++) {
        w->slope[i] = (z[i] - p->centre[i]) / p->width;
        square += w->slope[i] * w->slope[i];
    }
    double value = exp(-0.5 * square);
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            w->bend[i * d + j] = value * (w->slope[i] * w->slope[j] - (i == j)) / (p->width * p->width);
    for (size_t i = 0; i < d; i++)
        w->slope[i] *= -value / p->width;
    return value;
}

/* The model's correlation of the noise of columns i and j. */
static double correlation(const weak *w, size_t i, size_t j)
{
    const hl_sde_simple *s = w->sde->simple;
    if (i == j || !hl_sde_simple_correlated(s))
        return i == j;
    return hl_dot((i < j ? i : j) + 1, s->factor + i * w->dim, s->factor + j * w->dim);
}

/* L phi of the last eval_phi at a row. */
static double generator(const weak *w, const double *f, const double *g)
{
    double sum = 0;
    for (size_t i = 0; i < w->dim; i++) {
        sum += f[i] * w->slope[i] + 0.5 * g[i] * g[i] * w->bend[i * w->dim + i];
        for (size_t j = 0; j < i && hl_sde_simple_correlated(w->sde->simple); j++)
            sum += correlation(w, i, j) * g[i] * g[j] * w->bend[i * w->dim + j];
    }
    return sum;
}

/* ---- what the model may miss ---- */

static void add_term(weak *w, block kind, int part, size_t i, size_t j, double value, double effect)
{
    if (w->terms == MOST_TERMS)
        return;
    w->value[w->terms] = value;
    w->effect[w->terms] = effect;
    w->term[w->terms++] = (term){ kind, part, i, j };
}

/* Polynomials of x in the drift of column i: cubic up to 3 columns, else linear. */
static void add_drift(weak *w, size_t i, const double *u)
{
    add_term(w, DRIFT, 0, i, i, 1, 1);
    for (size_t a = 0; a < w->dim; a++) {
        double power[] = { u[a], u[a] * u[a] - 1, u[a] * (u[a] * u[a] - 3) };
        for (size_t k = 0; k < (w->dim <= CUBIC_DIM ? 3 : 1); k++)
            add_term(w, k ? BENT_DRIFT : DRIFT, 0, i, i, power[k], power[k]);
        for (size_t b = 0; b < a && w->dim <= CUBIC_DIM; b++)
            add_term(w, BENT_DRIFT, 0, i, i, u[a] * u[b], u[a] * u[b]);
    }
}

/* All terms at a row of a time; shares of A count half in g. */
static void eval_terms(weak *w, const double *z, const double *f, const double *g, double t)
{
    double u[MOST_DIM], tau = 2 * (t - w->first) / (w->last - w->first) - 1, bent = tau * tau - 1. / 3;
    w->terms = 0;
    for (size_t i = 0; i < w->dim; i++)
        u[i] = fmax(-far, fmin(far, z[i]));
    for (size_t i = 0; i < w->dim; i++)
        add_drift(w, i, u);
    for (size_t i = 0; i < w->dim; i++) {
        double power[] = { 1, u[i], u[i] * u[i] - 1 };
        for (size_t k = 0; k < 3; k++)
            add_term(w, k ? BENT_DIFFUSION : DIFFUSION, 1, i, i, g[i] * g[i] * power[k], 0.5 * g[i] * power[k]);
    }
    for (size_t i = 0; i < w->dim; i++) {
        add_term(w, TREND, 0, i, i, tau, tau);
        add_term(w, SCALE, 0, i, i, tau * f[i], tau * f[i]);
        add_term(w, SCALE, 1, i, i, g[i] * g[i] * tau, 0.5 * g[i] * tau);
        add_term(w, TREND, 1, i, i, g[i] * g[i] * bent, 0.5 * g[i] * bent);
    }
    for (size_t i = 0; i < w->dim && w->dim <= PRODUCT_DIM; i++)
        for (size_t j = 0; j < i; j++)
            add_term(w, CROSS, 2, i, j, g[i] * g[j], 0);
}

static double through(const weak *w, const term *t)
{
    double bend = w->bend[t->i * w->dim + t->j];
    return t->part == 0 ? w->slope[t->i] : t->part == 1 ? 0.5 * bend : bend;
}

/* ---- sums over the data ---- */

/* z, f and g of the rows; given: their states, or NULL for those of the data. */
static hl_status evaluate(weak *w, const double *given)
{
    size_t d = w->dim;
    double t[CHUNK], *x = hl_calloc(w->sde->ctx, CHUNK * d, sizeof *x);
    hl_status status = x ? HL_OK : HL_ERR_NOMEM;
    for (size_t first = 0; first < w->rows && status == HL_OK; first += CHUNK) {
        size_t n = w->rows - first < CHUNK ? w->rows - first : CHUNK;
        for (size_t k = 0; k < n; k++) {
            size_t row = w->index[first + k];
            t[k] = w->data->t[row];
            memcpy(x + k * d, given ? given + (first + k) * d : w->data->x + row * d, d * sizeof *x);
        }
        status = hl_sde_eval(w->sde, n, t, x, &(hl_sde_values){ .f = w->f + first * d, .g = w->g + first * d });
        for (size_t k = 0; k < n * d; k++) {
            double unit = w->sde->deviation[k % d];
            w->z[first * d + k] = (x[k] - w->sde->mean[k % d]) / unit;
            w->f[first * d + k] /= unit;
            w->g[first * d + k] = fabs(w->g[first * d + k]) / unit;
        }
        if (status == HL_OK)
            status = hl_check_stop(w->sde->ctx);
    }
    hl_free(w->sde->ctx, x);
    return status;
}

static void add_row(weak *w, size_t time, size_t r, double share)
{
    const double *z = w->z + r * w->dim, *f = w->f + r * w->dim, *g = w->g + r * w->dim;
    double *to = w->cell + time * w->tests * (w->terms + 2), all = 1 / (double)w->rows;
    eval_terms(w, z, f, g, w->data->t[w->index[r]]);
    for (size_t k = 0; k < w->tests; k++, to += w->terms + 2) {
        double value = eval_phi(w, &w->phi[k], z);
        for (size_t c = 0; c < w->terms; c++)
            to[c] += share * w->value[c] * through(w, &w->term[c]);
        to[w->terms] += share * generator(w, f, g);
        to[w->terms + 1] += share * value;
    }
    for (size_t c = 0; c < w->terms; c++)
        for (size_t b = 0; b <= c; b++)
            if (w->term[b].i == w->term[c].i && w->term[b].part == w->term[c].part)
                w->metric[c * w->terms + b] += all * w->effect[b] * w->effect[c];
    for (size_t i = 0; i < w->dim; i++) {
        w->size[0] += all * f[i] * f[i];
        w->size[1] += all * g[i] * g[i];
    }
}

/* A row's part of the covariances of a time. v: phi and L phi of all tests; flow: [tests][dim] gradients times g, mixed. */
static void add_products(weak *w, size_t r, double *v, double *flow, double *s, double *spread)
{
    size_t n = w->tests, d = w->dim;
    const double *f = w->f + r * d, *g = w->g + r * d;
    bool mixed = hl_sde_simple_correlated(w->sde->simple);
    for (size_t k = 0; k < n; k++) {
        v[k] = eval_phi(w, &w->phi[k], w->z + r * d);
        v[n + k] = generator(w, f, g);
        for (size_t i = 0; i < d; i++) { /* C' diag(g) grad phi */
            flow[k * d + i] = mixed ? 0 : g[i] * w->slope[i];
            for (size_t j = i; j < d && mixed; j++)
                flow[k * d + i] += w->sde->simple->factor[j * d + i] * g[j] * w->slope[j];
        }
        for (size_t l = 0; l <= k; l++)
            spread[k * n + l] += hl_dot(d, flow + k * d, flow + l * d);
    }
    for (size_t k = 0; k < 2 * n; k++)
        hl_axpy(k + 1, v[k], v, s + k * 2 * n);
}

static hl_status covariances(weak *w)
{
    size_t n = w->tests, n2 = 2 * n;
    double *v = hl_calloc(w->sde->ctx, 2 * n2 + n * w->dim, sizeof *v);
    if (!v)
        return HL_ERR_NOMEM;
    double *mean = v + n2, *flow = mean + n2;
    for (size_t t = 0; t < w->times; t++) {
        double *s = w->variance + t * n2 * n2, *spread = w->spread + t * n * n, count = 0;
        size_t rows = w->start[t + 1] - w->start[t], every = rows / COVARIANCE_ROWS + 1;
        memset(mean, 0, n2 * sizeof *mean);
        for (size_t r = w->start[t]; r < w->start[t + 1]; r += every, count++) {
            add_products(w, r, v, flow, s, spread);
            hl_axpy(n2, 1, v, mean);
        }
        for (size_t k = 0; k < n2; k++)
            for (size_t l = 0; l <= k; l++)
                s[k * n2 + l] = s[l * n2 + k] =
                    (s[k * n2 + l] - mean[k] * mean[l] / count) / ((count - 1) * (double)rows);
        for (size_t k = 0; k < n; k++)
            for (size_t l = 0; l <= k; l++)
                spread[k * n + l] = spread[l * n + k] = spread[k * n + l] / (count * (double)rows);
    }
    hl_free(w->sde->ctx, v);
    return HL_OK;
}

/* ---- conditions of unit variance ---- */

/* Block (j, k) of the covariance of y. */
static void add_block(weak *w, size_t j, size_t k)
{
    size_t r = w->tests, m = w->times, n = w->waves * r;
    for (size_t l = 0; l < m; l++) {
        double dj = w->jump[j * m + l], dk = w->jump[k * m + l], wj = -w->weight[j * m + l], wk = -w->weight[k * m + l];
        double along = l + 1 < m ? w->wave[j * m + l] * w->wave[k * m + l] * (w->at[l + 1] - w->at[l]) : 0;
        along *= w->share[1];
        dj *= w->share[0];
        wj *= w->share[0];
        const double *s = w->variance + l * 4 * r * r, *spread = w->spread + l * r * r;
        for (size_t a = 0; a < r; a++) {
            double *to = w->factor + (j * r + a) * n + k * r;
            hl_axpy(r, dj * dk, s + a * 2 * r, to);
            hl_axpy(r, dj * wk, s + a * 2 * r + r, to);
            hl_axpy(r, wj * dk, s + (r + a) * 2 * r, to);
            hl_axpy(r, wj * wk, s + (r + a) * 2 * r + r, to);
            hl_axpy(r, along, spread + a * r, to);
        }
    }
}

/* y (last column) and the terms' part in it, all divided by the factor of the covariance. False if there is none. */
static bool make_conditions(weak *w)
{
    size_t r = w->tests, m = w->times, n = w->waves * r, wide = w->terms + 1;
    for (size_t j = 0; j < w->waves; j++)
        for (size_t k = 0; k <= j; k++)
            add_block(w, j, k);
    for (size_t a = 0; a < n;
         a++) /* combinations of functions with next to no noise would show errors of the integrals */
        w->factor[a * n + a] *= 1 + least_variance;
    if (!(hl_cholesky(n, w->factor, 0) > 0))
        return false;
    for (size_t j = 0; j < w->waves; j++)
        for (size_t l = 0; l < m; l++)
            for (size_t k = 0; k < r; k++) {
                const double *from = w->cell + (l * r + k) * (w->terms + 2);
                double *to = w->y + (j * r + k) * wide, weight = w->weight[j * m + l];
                hl_axpy(w->terms, weight, from, to);
                to[w->terms] += w->jump[j * m + l] * from[w->terms + 1] - weight * from[w->terms];
            }
    hl_solve_lower_rows(n, w->factor, n, wide, w->y);
    return true;
}

/* ---- least squares ---- */

typedef struct fit {
    size_t count, free; /* terms, the tested ones last; of these */
    size_t term[MOST_TERMS];
    double scale[MOST_TERMS], beta[MOST_TERMS];
    double normal[MOST_TERMS * MOST_TERMS]; /* its factor */
    double left;                            /* squares that are left */
} fit;

static void solve(const weak *w, fit *q)
{
    size_t n = w->waves * w->tests, wide = w->terms + 1, p = q->count;
    memset(q->normal, 0, sizeof q->normal);
    memset(q->beta, 0, sizeof q->beta);
    q->left = 0;
    for (size_t a = 0; a < p; a++) {
        double square = 0;
        for (size_t r = 0; r < n; r++)
            square += w->y[r * wide + q->term[a]] * w->y[r * wide + q->term[a]];
        q->scale[a] = square > 0 ? 1 / sqrt(square) : 0;
    }
    for (size_t r = 0; r < n; r++) {
        const double *row = w->y + r * wide;
        q->left += row[w->terms] * row[w->terms];
        for (size_t a = 0; a < p; a++) {
            double value = row[q->term[a]] * q->scale[a];
            q->beta[a] += value * row[w->terms];
            for (size_t b = 0; b <= a; b++)
                q->normal[a * p + b] += value * row[q->term[b]] * q->scale[b];
        }
    }
    for (size_t a = 0; a < p; a++)
        q->normal[a * p + a] += 1e-8;
    hl_cholesky(p, q->normal, 1e-300);
    hl_solve_lower(p, q->normal, p, q->beta);
    q->left -= hl_dot(p, q->beta, q->beta);
    hl_solve_lower_transposed(p, q->normal, p, q->beta);
}

/* Of the terms tested, which are the last: (wald - count) / sqrt(2 count). */
static double sigma_of(const fit *q, double variance)
{
    size_t p = q->count, first = p - q->free;
    double wald = 0;
    for (size_t a = first; a < p; a++) {
        double sum = 0;
        for (size_t b = a; b < p; b++)
            sum += q->normal[b * p + a] * q->beta[b];
        wald += sum * sum / variance;
    }
    return (wald - (double)q->free) / sqrt(2 * (double)q->free);
}

/* The mean square that the tested terms of a part add, and the noise of it. */
static void measure(const weak *w, const fit *q, int part, double variance, double *square, double *noise)
{
    size_t p = q->count, first = p - q->free;
    double column[MOST_TERMS];
    *square = *noise = 0;
    for (size_t a = first; a < p; a++) {
        memset(column, 0, p * sizeof *column);
        for (size_t b = first; b < p; b++) {
            size_t s = q->term[a], t = q->term[b], low = s < t ? s : t, high = s < t ? t : s;
            if (w->term[s].part == part && w->term[t].part == part)
                column[b] = w->metric[high * w->terms + low] * q->scale[a] * q->scale[b];
        }
        *square += q->beta[a] * hl_dot(p, column, q->beta);
        hl_solve_lower(p, q->normal, p, column);
        hl_solve_lower_transposed(p, q->normal, p, column);
        *noise += variance * column[a];
    }
}

/* Terms of `tested`, beside those of `given` (bits of blocks). */
static void choose_terms(const weak *w, unsigned given, unsigned tested, fit *q)
{
    q->count = q->free = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t c = 0; c < w->terms; c++)
            if ((pass ? tested : given) >> w->term[c].block & 1) {
                q->term[q->count++] = c;
                q->free += (size_t)pass;
            }
}

static void test_part(const weak *w, fit *q, unsigned given, unsigned tested, int part, double variance,
                      hl_residual_test *test, double *band)
{
    double square, noise, size = w->size[part];
    choose_terms(w, given, tested, q);
    solve(w, q);
    measure(w, q, part, variance, &square, &noise);
    double effect = fmax(square - noise, 0);
    size = fmax(size, effect); /* a model without drift may miss all of it */
    if (!(size > 0))
        return;
    if (sqrt(effect / size) >= test->effect) {
        test->effect = sqrt(effect / size);
        test->sigma = sigma_of(q, variance);
    }
    if (band)
        *band = 1.645 * sqrt(noise / size);
}

static const unsigned all_drift = 1 << DRIFT | 1 << BENT_DRIFT, all_diffusion = 1 << DIFFUSION | 1 << BENT_DIFFUSION;

static void test_correlation(const weak *w, fit *q, double variance, hl_residual_test *test)
{
    choose_terms(w, all_drift | all_diffusion, 1 << CROSS, q);
    if (!q->free)
        return;
    solve(w, q);
    for (size_t a = q->count - q->free; a < q->count; a++)
        test->effect = fmax(test->effect, fmin(1, fabs(q->beta[a] * q->scale[a])));
    test->sigma = sigma_of(q, variance);
}

static hl_status test_all(weak *w, hl_weak_tests *out)
{
    /* Changes with time are tested beside linear drifts and constant diffusions alone: beside all polynomials, which can take their place in part, a
     * missing dependence on time of 40 % of g was missed. */
    const unsigned own = 1 << DRIFT | 1 << DIFFUSION;
    const unsigned trend = 1 << TREND | 1 << SCALE;
    const unsigned tested[TESTS] = { all_drift, all_diffusion, trend, 1 << CROSS, 1 << SCALE };
    size_t n = w->waves * w->tests;
    fit *q = hl_calloc(w->sde->ctx, 1, sizeof *q);
    if (!q)
        return HL_ERR_NOMEM;
    choose_terms(w, all_drift | all_diffusion | trend | 1 << CROSS, 0, q);
    solve(w, q);
    double variance = fmax(1, q->left / (double)(n - q->count));
    hl_residual_test *t = out->test;
    test_part(w, q, all_diffusion, all_drift, 0, variance, &t[HL_WEAK_DRIFT], &out->band[0]);
    test_part(w, q, all_drift, all_diffusion, 1, variance, &t[HL_WEAK_DIFFUSION], &out->band[1]);
    for (int part = 0; part < 2; part++) {
        test_part(w, q, own, trend, part, variance, &t[HL_WEAK_TREND], NULL);
        test_part(w, q, own, 1 << SCALE, part, variance, &t[SCALE_TEST], NULL);
    }
    test_correlation(w, q, variance, &t[HL_WEAK_CORRELATION]);
    for (size_t k = 0; k < TESTS; k++) {
        choose_terms(w, 0, tested[k], q);
        out->terms[k] = fmax((double)q->free, 1);
    }
    out->conditions = n;
    hl_free(w->sde->ctx, q);
    return HL_OK;
}

/* ---- all of it ---- */

static hl_status make_arrays(weak *w)
{
    hl_context *ctx = w->sde->ctx;
    size_t r = w->tests, m = w->times, n = w->waves * r;
    w->cell = hl_calloc(ctx, m * r * (w->terms + 2), sizeof *w->cell);
    w->variance = hl_calloc(ctx, m * r, 5 * r * sizeof *w->variance);
    w->metric = hl_calloc(ctx, w->terms, w->terms * sizeof *w->metric);
    w->weight = hl_calloc(ctx, w->waves * m, 3 * sizeof *w->weight);
    w->factor = hl_calloc(ctx, n, (n + w->terms + 1) * sizeof *w->factor);
    if (!w->cell || !w->variance || !w->metric || !w->weight || !w->factor)
        return HL_ERR_NOMEM;
    w->spread = w->variance + m * r * 4 * r;
    w->jump = w->weight + w->waves * m;
    w->wave = w->jump + w->waves * m;
    w->y = w->factor + n * n;
    return HL_OK;
}

/* The tests of the rows' z, f and g. None if a value is not finite. */
static hl_status measure_rows(weak *w, hl_weak_tests *out)
{
    size_t r = w->tests, m = w->times, n = w->waves * r;
    *out = (hl_weak_tests){ .band = { NAN, NAN } };
    for (size_t k = 0; k < w->rows * w->dim; k++)
        if (!isfinite(w->f[k]) || !isfinite(w->g[k]))
            return HL_OK;
    memset(w->cell, 0, m * r * (w->terms + 2) * sizeof *w->cell);
    memset(w->variance, 0, m * r * 5 * r * sizeof *w->variance);
    memset(w->metric, 0, w->terms * w->terms * sizeof *w->metric);
    memset(w->factor, 0, n * (n + w->terms + 1) * sizeof *w->factor);
    memset(w->size, 0, sizeof w->size);
    for (size_t t = 0; t < m; t++)
        for (size_t k = w->start[t]; k < w->start[t + 1]; k++)
            add_row(w, t, k, 1 / (double)(w->start[t + 1] - w->start[t]));
    hl_status status = covariances(w);
    return status == HL_OK && make_conditions(w) ? test_all(w, out) : status;
}

/* Are rows without ids those of the same trajectories in the same order? The k-th rows of neighbouring times are then alike; neighbours of one
 * time must not be, as of sorted rows. */
static bool same_order(const weak *w)
{
    double along = 0, across = 0, square = 0;
    for (size_t t = 0; t + 1 < w->times; t++) {
        size_t n = w->start[t + 1] - w->start[t];
        if (w->start[t + 2] - w->start[t + 1] != n)
            return false;
        for (size_t i = 0; i < w->dim; i++) {
            const double *a = w->z + w->start[t] * w->dim + i, *b = w->z + w->start[t + 1] * w->dim + i;
            double mean[2] = { 0 };
            for (size_t k = 0; k < n; k++) {
                mean[0] += a[k * w->dim] / (double)n;
                mean[1] += b[k * w->dim] / (double)n;
            }
            for (size_t k = 0; k < n; k++) {
                double own = a[k * w->dim] - mean[0];
                square += own * own;
                along += own * (b[k * w->dim] - mean[1]);
                across += k + 1 < n ? own * (a[(k + 1) * w->dim] - mean[0]) : 0;
            }
        }
    }
    return along > same_rows * square && fabs(across) < same_rows * square;
}

/* The root of Wald's statistic, whose deviation hardly depends on the number of terms. */
static double root_wald(const hl_weak_tests *t, size_t k)
{
    double terms = t->terms[k];
    return sqrt(fmax(t->test[k].sigma * sqrt(2 * terms) + terms, 0));
}

/* sigma of a test by the roots in `count` sets of the model's own data; with so few their deviation is drawn to that of chi's distribution. Rows of
 * unknown trajectories may have more or less noise than the simulated ones: for them sigma is not made larger than by theory. */
static double sigma_beyond(const hl_weak_tests *t, size_t k, double count, double sum, double square, bool known)
{
    double root = sqrt(t->terms[k]), mean = sum / count, deviation = chi_deviation * fmin(1, mean / root);
    double variance = (fmax(square - count * mean * mean, 0) + count * deviation * deviation) / (2 * count - 1);
    if (!known) {
        mean = fmax(mean, root);
        variance = fmax(variance, chi_deviation * chi_deviation);
    }
    return (root_wald(t, k) - mean) / fmax(sqrt(variance), least_deviation);
}

/* The tests again on data of the model itself, for sigma of large effects. */
static hl_status refer(weak *w, uint64_t seed, double effect, hl_weak_tests *out)
{
    hl_weak_design design = { w->sde, w->data, w->times, w->rows, w->paths, w->index, w->start, w->path };
    double sum[TESTS] = { 0 }, square[TESTS] = { 0 }, count = 0;
    double *x = hl_calloc(w->sde->ctx, w->rows, w->dim * sizeof *x);
    hl_status status = x ? HL_OK : HL_ERR_NOMEM;
    bool open = false;
    for (size_t k = 0; k < TESTS; k++)
        open = open || out->test[k].effect > effect;
    for (size_t n = 0; n < REPLICATES && status == HL_OK && open; n++) {
        hl_weak_tests own;
        status = hl_weak_simulate(&design, seed + n, x);
        if (status == HL_OK)
            status = evaluate(w, x);
        if (status == HL_OK)
            status = measure_rows(w, &own);
        if (status != HL_OK || !own.conditions)
            continue;
        count++;
        open = false;
        for (size_t k = 0; k < TESTS; k++) {
            double root = root_wald(&own, k);
            sum[k] += root;
            square[k] += root * root;
            open = open ||
                   (out->test[k].effect > effect && (count < SURE_REPLICATES || root_wald(out, k) < sure * (1 + root)));
        }
    }
    for (size_t k = 0; k < TESTS && count >= SURE_REPLICATES; k++)
        if (out->test[k].effect > effect)
            out->test[k].sigma = sigma_beyond(out, k, count, sum[k], square[k], w->known);
    hl_residual_test *trend = &out->test[HL_WEAK_TREND], *scale = &out->test[SCALE_TEST];
    if (scale->effect > effect && (scale->sigma > trend->sigma || trend->effect <= effect))
        *trend = *scale;
    hl_free(w->sde->ctx, x);
    return status;
}

static hl_status run(weak *w, uint64_t seed, double effect, hl_weak_tests *out)
{
    w->f = hl_calloc(w->sde->ctx, hl_size_mul(w->rows, w->dim), 3 * sizeof *w->f);
    if (!w->f)
        return HL_ERR_NOMEM;
    w->g = w->f + w->rows * w->dim;
    w->z = w->g + w->rows * w->dim;
    hl_status status = evaluate(w, NULL);
    if (status != HL_OK)
        return status;
    w->known = w->data->trajectory || same_order(w);
    double together = fmin((double)w->rows / (double)(w->paths * w->times), most_shared);
    w->share[0] = w->known ? 1 - together : 1;
    w->share[1] = w->known ? together : 1;
    choose_tests(w, seed);
    eval_terms(w, w->z, w->f, w->g, w->first);
    if (w->terms == MOST_TERMS || 2 * w->terms > w->waves * w->tests)
        return HL_OK;
    status = make_arrays(w);
    if (status != HL_OK)
        return status;
    hl_weak_waves(w->times, w->at, HL_WEAK_NODES, w->waves, w->weight, w->jump, w->wave);
    status = measure_rows(w, out);
    return status == HL_OK && out->conditions ? refer(w, seed, effect, out) : status;
}

static size_t count_trajectories(const hl_sde_data *data)
{
    size_t count = 0;
    for (size_t r = 0; r < data->rows; r++)
        count += !data->trajectory || r == 0 || data->trajectory[r] != data->trajectory[r - 1];
    return count;
}

hl_status hl_sde_weak_tests(hl_sde *sde, const hl_sde_data *data, uint64_t seed, double effect, hl_weak_tests *out)
{
    *out = (hl_weak_tests){ .band = { NAN, NAN } };
    if (sde->spec.dim > MOST_DIM || count_trajectories(data) < LEAST_TRAJECTORIES)
        return HL_OK;
    weak *w = hl_calloc(sde->ctx, 1, sizeof *w);
    if (!w)
        return HL_ERR_NOMEM;
    *w = (weak){ .sde = sde, .data = data, .dim = sde->spec.dim };
    hl_status status = find_times(w);
    w->waves = w->times > MOST_WAVES ? MOST_WAVES : w->times ? w->times - 1 : 0;
    if (status == HL_OK && w->times >= LEAST_TIMES)
        status = run(w, seed, effect, out);
    void *const blocks[] = { w->index, w->start, w->f, w->cell, w->variance, w->metric, w->weight, w->factor };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(sde->ctx, blocks[i]);
    hl_free(sde->ctx, w);
    return status;
}
