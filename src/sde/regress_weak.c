/* regress_weak.c - conditions from snapshots: the weak form of the equation, integrated between neighbouring times.
 *
 *   E[phi](t_j+1) - E[phi](t_j) = integral from t_j to t_j+1 of E[L phi],   L phi = f . grad phi + A : Hess phi / 2
 *
 * with means over the observations of each time, and the integral by the polynomial through four or six times. Both sides are multiplied
 * by cosines c_k(t) and summed over the intervals: sum_l d_kl E[phi](t_l) = sum_l w_kl E[L phi](t_l). Few cosines see all of a
 * smooth change, and average the noise of the regressors, whose squares would make the estimate too small.
 *
 * A row's noise is that of sum_l (d_kl phi - w_kl L phi), averaged over the rows of time l. If the rows of different times are independent, its
 * covariance over test functions and cosines follows from the covariances of (phi, L phi) at each time. If they are the same trajectories, the
 * noise is a martingale, whose covariance is the integral of c_j c_k E[grad phi . A grad phi']; if a share is, it is the weighted mean of both. The
 * scatter of the folds tells which it is. What all folds share, such as errors of the quadrature, is not in their scatter: if the estimate leaves more
 * than the martingale explains, the rows are taken as independent. The Cholesky factor of the covariance makes the rows independent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "sde/regress.h"

enum { MOST_TIMES = 60, LEAST_TIMES = 3, LEAST_ROWS = 40, MOST_WAVES = 12 };
enum { TRIAL_BUMPS = 60, MOST_TESTS = 56, NARROW_DIM = 2, TRIAL_ROWS = 4000, STREAM_TEST = 31 };
static const double test_width = 0.7, narrow = 0.5, test_variance = 1e-4, covariance_floor = 1e-3, least_seen = 1e-5;
/* Cosines as a share of the intervals. Faster ones see a time or two each, and their noise in the regressors makes estimates too small: with 20 times,
 * 12 cosines gave .33 for cir and 4.1 for two columns with tanh where 8 give .02 and .12 (one set of 600 rows a time each). */
static const double waves_share = 0.4;
enum { LEAST_WAVES = 3 };
/* Rows of a time from which on the polynomial through six times is better than that through four, whose error then exceeds the noise: from 600 rows at each of 12
 * times of CIR four took a cubic drift whose slope was .9 off (tests/test_sde_regress.c, test_few_snapshots). With 60 rows six make errors 7 to 10 % larger (scarce, as in
 * regress_contest.c). */
enum { MANY_ROWS = 200 };
/* Rows of a time that the covariances are found from, in one column and in more. With 200 of 2,000 weights are too noisy (toggle .08 -> .42, corr .05 -> .10, snapshots); 1,200 are little
 * better than 400 but in one column, where they cost little (cir, seed 1002: .05 -> .01). */
enum { COVARIANCE_ROWS_ONE = 1200, COVARIANCE_ROWS = 400 };
static const double most_shared = 0.95; /* the rest stands for errors of the quadrature */
/* Mean square of what is left of the whitened rows: .7 to 1.4 for bist, toggle, corr, lv and hopf, 2.8 for brusselator and morse, whose quadrature
 * is too coarse (seed 51 of the benchmark). */
static const double most_left = 2;

/* A test function: the product of one or two columns, or a Gaussian. */
typedef struct test {
    unsigned short factor[2]; /* column + 1 or 0; both 0: a Gaussian */
    const double *centre;     /* [inputs] */
    double width;
} test;

struct hl_weak {
    hl_regress *p;
    size_t times, tests;
    double width;
    size_t *index, *start; /* rows by time; [times + 1] */
    double *at, *weight;   /* [times]; [waves][times]: integrals of the waves' right sides */
    double *jump;          /* [waves][times]: of their left sides */
    size_t waves;
    test test[MOST_TESTS];
    double
        *cell; /* [FOLDS][times][tests][columns + 2]: sums of L phi of each function, of known parts, and of phi; then
                       * [threads][tests][columns + 2] */
    double *count;    /* [FOLDS][times] */
    double *variance; /* [times][2 tests][2 tests] of phi and L phi, then their mean */
    double *bracket;  /* [times][tests][tests]: E[grad phi . A grad phi'] */
    double *wave;     /* [waves][times]: cosines of the intervals */
    double *factor;   /* of the rows' covariance; of the one that is compared with it */
    double *residual; /* [FOLDS][rows]: less their mean; their mean; one for use */
    double share;     /* of the rows of a time that are of the same trajectories as those of another */
    double *scratch;  /* for each thread */
    size_t scratch_size;
    double *rows; /* of a job */
    size_t first, total, next;
};

static size_t cell_width(const hl_weak *w)
{
    return w->p->columns + 2;
}

static double *cell_of(const hl_weak *w, size_t fold, size_t time)
{
    return w->cell + (fold * w->times + time) * w->tests * cell_width(w);
}

/* ---- times ---- */

typedef struct stamp {
    double u;
    size_t row;
} stamp;

static int by_time(const void *a, const void *b)
{
    const stamp *p = a, *q = b;
    return p->u != q->u ? (p->u > q->u) - (p->u < q->u) : (p->row > q->row) - (p->row < q->row);
}

/* Groups of rows of one time, or, if the times are too many or too thin, of neighbouring times. False if there are too
 * few rows. */
static bool group(hl_weak *w, const stamp *s)
{
    size_t n = w->p->rows, distinct = 1, thin = 0, run = 1;
    for (size_t r = 1; r <= n; r++, run++)
        if (r == n || s[r].u != s[r - 1].u) {
            thin += run < LEAST_ROWS;
            run = 0;
            distinct += r < n;
        }
    bool exact = distinct <= MOST_TIMES && 4 * thin <= distinct;
    size_t groups = n / LEAST_ROWS < MOST_TIMES ? n / LEAST_ROWS : MOST_TIMES;
    w->times = 0;
    for (size_t r = 0; r < n;) {
        size_t end = exact || !groups ? r + 1 : r + n / groups < n ? r + n / groups : n;
        while (end < n && s[end].u == s[end - 1].u)
            end++;
        double sum = 0;
        for (size_t k = r; k < end; k++)
            sum += s[k].u - s[r].u;
        if (end - r >= 2 * HL_REGRESS_FOLDS) { /* thinner times are left out */
            for (size_t k = r; k < end; k++)
                w->index[w->start[w->times] + k - r] = s[k].row;
            w->at[w->times] = s[r].u + sum / (double)(end - r);
            w->start[w->times + 1] = w->start[w->times] + end - r;
            w->times++;
        }
        r = end;
    }
    return w->times >= LEAST_TIMES;
}

static hl_status find_times(hl_weak *w)
{
    hl_regress *p = w->p;
    stamp *s = hl_calloc(p->ctx, p->rows, sizeof *s);
    w->index = hl_calloc(p->ctx, p->rows, sizeof *w->index);
    w->start = hl_calloc(p->ctx, p->rows + 1, sizeof *w->start);
    w->at = hl_calloc(p->ctx, p->rows, sizeof *w->at);
    hl_status status = s && w->index && w->start && w->at ? HL_OK : HL_ERR_NOMEM;
    for (size_t r = 0; r < p->rows && status == HL_OK; r++)
        s[r] = (stamp){ p->u[r], r };
    if (status == HL_OK) {
        qsort(s, p->rows, sizeof *s, by_time);
        if (!group(w, s))
            w->times = 0;
    }
    hl_free(p->ctx, s);
    return status;
}

/* ---- test functions ---- */

/* phi, its gradient [dim] and its second derivatives [entries]. */
static double eval_test(const hl_weak *w, const test *t, const double *z, double *slope, double *bend)
{
    const hl_regress *p = w->p;
    size_t d = p->dim;
    double square = 0, value;
    if (t->factor[0]) {
        size_t a = t->factor[0] - 1, b = t->factor[1] ? t->factor[1] - 1 : 0;
        memset(slope, 0, d * sizeof *slope);
        memset(bend, 0, p->entries * sizeof *bend);
        slope[a] = t->factor[1] ? z[b] : 1;
        for (size_t e = 0; t->factor[1] && e < p->entries; e++)
            bend[e] = p->entry[e][0] == a && p->entry[e][1] == b ? 1 + (a == b) : 0;
        if (t->factor[1])
            slope[b] += z[a];
        return t->factor[1] ? z[a] * z[b] : z[a];
    }
    for (size_t i = 0; i < d; i++) {
        slope[i] = (z[i] - t->centre[i]) / t->width;
        square += slope[i] * slope[i];
    }
    value = exp(-0.5 * square);
    for (size_t e = 0; e < p->entries; e++) {
        size_t i = p->entry[e][0], j = p->entry[e][1];
        bend[e] = value * (slope[i] * slope[j] - (i == j)) / (t->width * t->width);
    }
    for (size_t i = 0; i < d; i++)
        slope[i] *= -value / t->width;
    return value;
}

/* All that might serve: columns, their products, Gaussians at observations. */
static size_t propose(hl_weak *w, test *trial)
{
    const hl_regress *p = w->p;
    size_t count = 0, rows = w->start[w->times];
    for (size_t a = 0; a < p->dim; a++)
        trial[count++] = (test){ .factor = { (unsigned short)(a + 1) } };
    for (size_t a = 0; a < p->dim; a++)
        for (size_t b = a; b < p->dim; b++)
            trial[count++] = (test){ .factor = { (unsigned short)(a + 1), (unsigned short)(b + 1) } };
    for (size_t k = 0; k < TRIAL_BUMPS; k++) {
        size_t row = w->index[hl_random_bits(p->options.seed, STREAM_TEST, k) % rows];
        trial[count++] = (test){ .centre = p->z + row * p->inputs,
                                 .width = w->width * (k % 2 && p->dim <= NARROW_DIM ? narrow : 1) };
    }
    return count;
}

/* Covariances within times of the proposed functions over some rows, to s (count x count), scaled to a unit diagonal. */
static void trial_covariance(const hl_weak *w, size_t count, const test *trial, double *s, double *value)
{
    const hl_regress *p = w->p;
    size_t stride = w->start[w->times] / TRIAL_ROWS + 1;
    double *mean = value + count, *seen = mean + count, *slope = seen + count, *bend = slope + p->dim;
    size_t rows = 0;
    memset(s, 0, count * count * sizeof *s);
    for (size_t t = 0; t < w->times; t++)
        for (int pass = 0; pass < 2; pass++) {
            size_t n = 0;
            if (!pass)
                memset(mean, 0, count * sizeof *mean);
            for (size_t r = w->start[t]; r < w->start[t + 1]; r += stride, n++)
                for (size_t k = 0; k < count; k++) {
                    value[k] = eval_test(w, &trial[k], p->z + w->index[r] * p->inputs, slope, bend) - mean[k] * pass;
                    if (!pass)
                        mean[k] += value[k];
                    for (size_t l = 0; l <= k && pass; l++)
                        s[k * count + l] += value[k] * value[l];
                }
            for (size_t k = 0; k < count && !pass; k++)
                mean[k] /= (double)n;
            rows += pass ? n : 0;
        }
    for (size_t k = 0; k < count;
         k++) /* a Gaussian that hardly any row sees has no covariance that could be estimated */
        seen[k] = trial[k].factor[0] || s[k * count + k] > least_seen * (double)rows;
    for (size_t k = 0; k < count; k++)
        for (size_t l = 0; l < k; l++)
            s[l * count + k] = s[k * count + l] /= sqrt(s[k * count + k] * s[l * count + l]) + 1e-300;
    for (size_t k = 0; k < count; k++)
        for (size_t l = 0; l < count; l++)
            s[k * count + l] = k == l ? seen[k] : seen[k] * seen[l] * s[k * count + l];
}

/* Those that are not nearly combinations of others: Cholesky's factorisation with pivots, to a remaining variance. */
static void take_tests(hl_weak *w, size_t count, const test *trial, double *s)
{
    for (w->tests = 0; w->tests < MOST_TESTS && w->tests < count; w->tests++) {
        size_t best = 0;
        for (size_t k = 1; k < count; k++)
            if (s[k * count + k] > s[best * count + best])
                best = k;
        double top = s[best * count + best];
        if (!(top > test_variance))
            break;
        w->test[w->tests] = trial[best];
        for (size_t k = 0; k < count; k++)
            for (size_t l = 0; l < count; l++)
                if (k != best && l != best)
                    s[k * count + l] -= s[k * count + best] * s[best * count + l] / top;
        for (size_t k = 0; k < count; k++)
            s[k * count + best] = s[best * count + k] = 0;
    }
}

static hl_status find_tests(hl_weak *w)
{
    hl_regress *p = w->p;
    size_t most = p->dim + p->dim * (p->dim + 1) / 2 + TRIAL_BUMPS;
    test *trial = hl_calloc(p->ctx, most, sizeof *trial);
    double *s = hl_calloc(p->ctx, hl_size_mul(most, most), sizeof *s);
    double *value = hl_calloc(p->ctx, 3 * most + p->dim + p->entries, sizeof *value);
    hl_status status = trial && s && value ? HL_OK : HL_ERR_NOMEM;
    w->width = test_width * sqrt(fmax(1, (double)p->dim / 2));
    if (status == HL_OK) {
        size_t count = propose(w, trial);
        trial_covariance(w, count, trial, s, value);
        take_tests(w, count, trial, s);
    }
    hl_free(p->ctx, trial);
    hl_free(p->ctx, s);
    hl_free(p->ctx, value);
    return status;
}

/* ---- sums over the data ---- */

enum { ROWS = 4 }; /* that are added to a cell together */

typedef struct rows {
    size_t count, row[ROWS];
} rows;

/* Adds rows to a cell, and forgets them. value: scratch. */
static void add_rows(const hl_weak *w, rows *from, double *to, double *value)
{
    const hl_regress *p = w->p;
    size_t wide = p->size[0] + p->size[1], common = p->size[0] - p->dim * p->ridge_each;
    double *slope = value + ROWS * wide, *bend = slope + p->dim,
           *factor = bend + p->entries; /* [dim + entries][ROWS] */
    memset(factor, 0, ROWS * (p->dim + p->entries) * sizeof *factor);
    for (size_t n = 0; n < ROWS; n++) {
        const double *z = n < from->count ? p->z + from->row[n] * p->inputs : NULL;
        if (!z)
            memset(value + n * wide, 0, wide * sizeof *value);
        if (z)
            hl_basis_eval(&p->basis[0], z, value + n * wide);
        if (z)
            hl_basis_eval(&p->basis[1], z, value + n * wide + p->size[0]);
    }
    for (size_t k = 0; k < w->tests; k++, to += cell_width(w)) {
        for (size_t n = 0; n < from->count; n++) {
            const double *known = p->known + from->row[n] * 2 * p->dim;
            to[p->columns + 1] += eval_test(w, &w->test[k], p->z + from->row[n] * p->inputs, slope, bend);
            for (size_t i = 0; i < p->dim; i++)
                to[p->columns] += slope[i] * known[i] + 0.5 * bend[i] * known[p->dim + i];
            for (size_t i = 0; i < p->dim; i++)
                factor[i * ROWS + n] = slope[i];
            for (size_t e = 0; e < p->entries; e++)
                factor[(p->dim + e) * ROWS + n] = e < p->dim ? 0.5 * bend[e] : bend[e];
        }
        for (size_t i = 0; i < p->dim; i++) {
            size_t own = common + i * p->ridge_each; /* no candidate has the ridges of other columns */
            double *drift = to + hl_regress_drift(p, i);
            hl_axpy_four(common, factor + i * ROWS, value, wide, drift);
            hl_axpy_four(p->ridge_each, factor + i * ROWS, value + own, wide, drift + own);
        }
        for (size_t e = 0; e < p->entries; e++)
            hl_axpy_four(hl_regress_noise_size(p, e), factor + (p->dim + e) * ROWS, value + p->size[0], wide,
                         to + hl_regress_noise(p, e));
    }
    from->count = 0;
}

static void sum_job(void *user, int thread)
{
    hl_weak *w = user;
    int team = w->p->ctx->team ? hl_team_size(w->p->ctx->team) : 1;
    double *scratch = w->scratch + (size_t)thread * w->scratch_size;
    for (size_t t = (size_t)thread; t < w->times; t += (size_t)team) {
        rows some[HL_REGRESS_FOLDS] = { { 0 } };
        for (size_t k = w->start[t]; k < w->start[t + 1]; k++) {
            size_t fold = w->p->fold[w->index[k]];
            w->count[fold * w->times + t]++;
            some[fold].row[some[fold].count++] = w->index[k];
            if (some[fold].count == ROWS)
                add_rows(w, &some[fold], cell_of(w, fold, t), scratch);
        }
        for (size_t fold = 0; fold < HL_REGRESS_FOLDS; fold++)
            if (some[fold].count)
                add_rows(w, &some[fold], cell_of(w, fold, t), scratch);
    }
}

static void run(hl_weak *w, void (*job)(void *user, int thread))
{
    if (w->p->ctx->team)
        hl_team_run(w->p->ctx->team, job, w);
    else
        job(w, 0);
}

static hl_status make_arrays(hl_weak *w)
{
    hl_regress *p = w->p;
    hl_context *ctx = p->ctx;
    size_t team = ctx->team ? (size_t)hl_team_size(ctx->team) : 1, m = w->times, r = w->tests;
    size_t cells =
        hl_size_mul(hl_size_mul(HL_REGRESS_FOLDS * m + team, r), cell_width(w)); /* and one for each thread */
    w->scratch_size =
        ROWS * (p->size[0] + p->size[1]) + (2 + ROWS) * (p->dim + p->entries) + 2 * r * (1 + ROWS * (p->dim + 1));
    w->cell = hl_calloc(ctx, cells, sizeof *w->cell);
    w->count = hl_calloc(ctx, HL_REGRESS_FOLDS * m, sizeof *w->count);
    w->waves = (size_t)ceil(waves_share * (double)(m - 1));
    w->waves = w->waves < LEAST_WAVES ? LEAST_WAVES : w->waves > MOST_WAVES ? MOST_WAVES : w->waves;
    w->waves = m - 1 < w->waves ? m - 1 : w->waves;
    w->weight = hl_calloc(ctx, w->waves * m, sizeof *w->weight);
    w->jump = hl_calloc(ctx, w->waves * m, sizeof *w->jump);
    w->variance = hl_calloc(ctx, (m + 1) * 4 * r * r, sizeof *w->variance);
    w->wave = hl_calloc(ctx, w->waves * m, sizeof *w->wave);
    w->bracket = hl_calloc(ctx, m * r * r, sizeof *w->bracket);
    w->residual = hl_calloc(ctx, (HL_REGRESS_FOLDS + 2) * w->waves * r, sizeof *w->residual);
    w->factor = hl_calloc(ctx, hl_size_mul(2 * w->waves * r, w->waves * r), sizeof *w->factor);
    w->scratch = hl_calloc(ctx, team * w->scratch_size, sizeof *w->scratch);
    return w->cell && w->count && w->weight && w->jump && w->variance && w->wave && w->bracket && w->residual &&
                   w->factor && w->scratch
               ? HL_OK
               : HL_ERR_NOMEM;
}

hl_status hl_weak_create(hl_regress *p, hl_weak **weak)
{
    *weak = NULL;
    hl_weak *w = hl_calloc(p->ctx, 1, sizeof *w);
    if (!w)
        return HL_ERR_NOMEM;
    w->p = p;
    hl_status status = find_times(w);
    if (status == HL_OK && w->times)
        status = find_tests(w);
    if (status == HL_OK && w->times)
        status = make_arrays(w);
    if (status != HL_OK || !w->times) {
        hl_weak_free(w);
        return status;
    }
    size_t nodes = w->start[w->times] >= MANY_ROWS * w->times ? HL_WEAK_MOST_NODES : HL_WEAK_NODES;
    hl_weak_waves(w->times, w->at, nodes, w->waves, w->weight, w->jump, w->wave);
    run(w, sum_job);
    for (size_t k = 0; k < HL_REGRESS_FOLDS * w->times; k++)
        if (w->count[k] == 0) { /* a fold without rows at some time: too few trajectories */
            hl_weak_free(w);
            return HL_OK;
        }
    *weak = w;
    return HL_OK;
}

void hl_weak_free(hl_weak *w)
{
    if (!w)
        return;
    hl_context *ctx = w->p->ctx;
    void *const blocks[] = { w->index,  w->start,   w->at,   w->weight, w->cell,    w->count,   w->variance,
                             w->factor, w->scratch, w->jump, w->wave,   w->bracket, w->residual };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(ctx, blocks[i]);
    hl_free(ctx, w);
}

size_t hl_weak_times(const hl_weak *w, const double **at, const size_t **start, const size_t **index)
{
    *at = w->at;
    *start = w->start;
    *index = w->index;
    return w->times;
}

size_t hl_weak_count(const hl_weak *w)
{
    return w ? w->waves * w->tests : 0;
}

/* ---- covariance of the rows ---- */

/* A times the gradient, with A no less than 0. */
static void turn(const hl_regress *p, const double *a, const double *slope, double *to)
{
    for (size_t i = 0; i < p->dim; i++)
        to[i] = fmax(a[i], 0) * slope[i];
    for (size_t e = p->dim; e < p->entries; e++) {
        size_t i = p->entry[e][0], j = p->entry[e][1];
        double most = sqrt(fmax(a[i], 0) * fmax(a[j], 0)), c = fmax(-most, fmin(most, a[e]));
        to[i] += c * slope[j];
        to[j] += c * slope[i];
    }
}

/* phi and L phi of all tests at row r, to v [2 tests]; their gradients to `gradient` [tests][dim], and A times them to what follows, [dim][tests]. */
static void row_values(const hl_weak *w, size_t r, double *v, double *gradient, double *value)
{
    const hl_regress *p = w->p;
    double *slope = value + p->size[0] + p->size[1], *bend = slope + p->dim, *f = bend + p->entries, *a = f + p->dim;
    if (p->started)
        hl_regress_values(p, r, value, f, a);
    for (size_t k = 0; k < w->tests; k++) {
        double sum = 0;
        v[k] = eval_test(w, &w->test[k], p->z + r * p->inputs, slope, bend);
        for (size_t i = 0; p->started && i < p->dim; i++)
            sum += slope[i] * f[i];
        for (size_t e = 0; p->started && e < p->entries; e++)
            sum += (e < p->dim ? 0.5 : 1) * bend[e] * a[e];
        v[w->tests + k] = sum;
        memcpy(gradient + k * p->dim, slope, p->dim * sizeof *slope);
        if (p->started)
            turn(p, a, slope, bend);
        for (size_t i = 0; p->started && i < p->dim; i++)
            gradient[(p->dim + i) * w->tests + k] = bend[i];
    }
}

static double rows_of(const hl_weak *w, size_t time)
{
    return (double)(w->start[time + 1] - w->start[time]);
}

/* Sums of products over the rows of a time, ROWS rows at once, to s [2 tests][2 tests] and to bracket [tests][tests]. v: [ROWS][2 tests], gradient:
 * [ROWS][2 dim tests], of which those beyond `count` are zero. */
static void add_products(const hl_weak *w, const double *v, const double *gradient, double *s, double *bracket)
{
    const hl_regress *p = w->p;
    size_t r = w->tests, r2 = 2 * r, wide = r2 * p->dim;
    for (size_t k = 0; k < r2; k++) {
        const double at[ROWS] = { v[k], v[r2 + k], v[2 * r2 + k], v[3 * r2 + k] };
        hl_axpy_four(k + 1, at, v, r2, s + k * r2);
    }
    for (size_t k = 0; k < r * p->dim && p->started; k++) {
        const double at[ROWS] = { gradient[k], gradient[wide + k], gradient[2 * wide + k], gradient[3 * wide + k] };
        hl_axpy_four(r, at, gradient + (p->dim + k % p->dim) * r, wide, bracket + k / p->dim * r);
    }
}

static void covariance_job(void *user, int thread)
{
    hl_weak *w = user;
    const hl_regress *p = w->p;
    size_t team = p->ctx->team ? (size_t)hl_team_size(p->ctx->team) : 1, r2 = 2 * w->tests;
    size_t most = p->dim == 1 ? COVARIANCE_ROWS_ONE : COVARIANCE_ROWS;
    double *value = w->scratch + (size_t)thread * w->scratch_size;
    double *mean = value + w->scratch_size - r2, *v = mean - ROWS * r2, *gradient = v - ROWS * r2 * p->dim;
    for (size_t t = (size_t)thread; t < w->times; t += team) {
        double *s = w->variance + t * r2 * r2, *bracket = w->bracket + t * w->tests * w->tests;
        size_t stride = (w->start[t + 1] - w->start[t]) / most + 1, n = 0;
        memset(s, 0, r2 * r2 * sizeof *s);
        memset(mean, 0, r2 * sizeof *mean);
        memset(bracket, 0, w->tests * w->tests * sizeof *bracket);
        for (size_t q = w->start[t]; q < w->start[t + 1];) {
            memset(gradient, 0, ROWS * r2 * (p->dim + 1) * sizeof *gradient); /* and v */
            for (size_t k = 0; k < ROWS && q < w->start[t + 1]; k++, q += stride, n++) {
                row_values(w, w->index[q], v + k * r2, gradient + k * r2 * p->dim, value);
                hl_axpy(r2, 1, v + k * r2, mean);
            }
            add_products(w, v, gradient, s, bracket);
        }
        for (size_t k = 0; k < r2; k++)
            for (size_t l = 0; l <= k; l++)
                s[k * r2 + l] = s[l * r2 + k] = (s[k * r2 + l] - mean[k] * mean[l] / (double)n) / (double)n;
        for (size_t k = 0; k < w->tests * w->tests; k++)
            bracket[k] /= (double)n * rows_of(w, t);
    }
}

/* Each time's covariance is drawn to the mean of all, and divided by its number of rows. */
static void shrink(hl_weak *w)
{
    size_t size = 4 * w->tests * w->tests, r2 = 2 * w->tests;
    double *mean = w->variance + w->times * size;
    memset(mean, 0, size * sizeof *mean);
    for (size_t t = 0; t < w->times; t++)
        for (size_t k = 0; k < size; k++)
            mean[k] += w->variance[t * size + k] / (double)w->times;
    for (size_t t = 0; t < w->times; t++) {
        double n = rows_of(w, t), weight = (double)w->tests;
        for (size_t k = 0; k < size; k++) {
            double *v = w->variance + t * size + k, floor = k / r2 < w->tests && k % r2 < w->tests;
            *v = ((n * *v + weight * mean[k]) / (n + weight) + covariance_floor * floor * mean[k]) / n;
        }
    }
}

/* Block (j, k) of the rows' covariance, k <= j. */
static void add_block(hl_weak *w, size_t j, size_t k)
{
    size_t r = w->tests, m = w->times, n = w->waves * r;
    for (size_t l = 0; l + 1 < m && w->share > 0; l++) {
        double c = 0.5 * w->share * w->wave[j * m + l] * w->wave[k * m + l] * (w->at[l + 1] - w->at[l]);
        for (size_t a = 0; a < r; a++) {
            double *to = w->factor + (j * r + a) * n + k * r;
            hl_axpy(r, c, w->bracket + (l * r + a) * r, to);
            hl_axpy(r, c, w->bracket + ((l + 1) * r + a) * r, to);
        }
    }
    for (size_t l = 0; l < m; l++) {
        double own = sqrt(1 - w->share), dj = own * w->jump[j * m + l], dk = own * w->jump[k * m + l];
        double wj = -own * w->weight[j * m + l], wk = -own * w->weight[k * m + l];
        const double *s = w->variance + l * 4 * r * r;
        for (size_t a = 0; a < r; a++) {
            double *to = w->factor + (j * r + a) * n + k * r;
            hl_axpy(r, dj * dk, s + a * 2 * r, to);
            hl_axpy(r, dj * wk, s + a * 2 * r + r, to);
            hl_axpy(r, wj * dk, s + (r + a) * 2 * r, to);
            hl_axpy(r, wj * wk, s + (r + a) * 2 * r + r, to);
        }
    }
}

static void block_job(void *user, int thread)
{
    hl_weak *w = user;
    size_t team = w->p->ctx->team ? (size_t)hl_team_size(w->p->ctx->team) : 1;
    for (size_t j = (size_t)thread; j < w->waves; j += team)
        for (size_t k = 0; k <= j; k++)
            add_block(w, j, k);
}

/* The Cholesky factor of the rows' covariance; a diagonal is added until there is one. Without an estimate: as if the
 * rows were independent. False if there is none. */
static bool factor_share(hl_weak *w, double share)
{
    size_t n = w->waves * w->tests;
    for (double more = 1e-9; more < 1; more *= 100) {
        memset(w->factor, 0, n * n * sizeof *w->factor);
        w->share = share;
        run(w, block_job);
        for (size_t i = 0; i < n; i++) {
            w->factor[i * n + i] *= 1 + more;
            if (!w->p->started)
                memset(w->factor + i * n, 0, i * sizeof *w->factor);
        }
        if (hl_cholesky(n, w->factor, 0) > 0)
            return true;
    }
    return false;
}

/* ---- rows ---- */

/* Adds the conditions of wave j whose sums at time l are `from`, times `share`. */
static void add_wave(const hl_weak *w, size_t j, size_t l, double share, const double *from, double *to)
{
    size_t r = w->tests, m = w->times, columns = w->p->columns, wide = cell_width(w);
    double weight = share * w->weight[j * m + l], jump = share * w->jump[j * m + l];
    if (weight == 0 && jump == 0)
        return;
    for (size_t k = 0; k < r; k++) {
        double *row = to + (j * r + k) * (columns + 1);
        const double *c = from + k * wide;
        hl_axpy(columns, weight, c, row);
        row[columns] += jump * c[columns + 1] - weight * c[columns];
    }
}

static void rows_job(void *user, int thread)
{
    hl_weak *w = user;
    const hl_regress *p = w->p;
    size_t team = p->ctx->team ? (size_t)hl_team_size(p->ctx->team) : 1, r = w->tests, m = w->times;
    size_t columns = p->columns + 1;
    for (size_t q = (size_t)thread; q < HL_REGRESS_FOLDS; q += team) {
        double *to = w->rows + (q * w->total + w->first) * columns;
        memset(to, 0, w->waves * r * columns * sizeof *to);
        for (size_t j = 0; j < w->waves; j++)
            for (size_t l = 0; l < m; l++)
                add_wave(w, j, l, 1 / w->count[q * m + l], cell_of(w, q, l), to);
    }
}

static void whiten_job(void *user, int thread)
{
    hl_weak *w = user;
    size_t team = w->p->ctx->team ? (size_t)hl_team_size(w->p->ctx->team) : 1, n = w->waves * w->tests;
    size_t columns = w->p->columns + 1;
    for (size_t q = (size_t)thread; q < HL_REGRESS_FOLDS; q += team)
        hl_solve_lower_rows(n, w->factor, n, columns, w->rows + (q * w->total + w->first) * columns);
}

/* ---- which covariance ---- */

/* What the estimate leaves of each fold's rows, less the mean over the folds. */
static void set_residuals(hl_weak *w)
{
    size_t n = w->waves * w->tests, columns = w->p->columns + 1;
    double *mean = w->residual + HL_REGRESS_FOLDS * n;
    memset(mean, 0, n * sizeof *mean);
    for (size_t k = 0; k < HL_REGRESS_FOLDS * n; k++) {
        const double *row = w->rows + (k / n * w->total + w->first + k % n) * columns;
        w->residual[k] = row[columns - 1] - hl_dot(columns - 1, row, w->p->theta);
        mean[k % n] += w->residual[k] / HL_REGRESS_FOLDS;
    }
    for (size_t k = 0; k < HL_REGRESS_FOLDS * n; k++)
        w->residual[k] -= mean[k % n];
}

/* -2 log likelihood of the residuals' scatter, whose covariance is FOLDS times that of the rows. */
static double scatter(hl_weak *w)
{
    size_t n = w->waves * w->tests;
    double sum = 0, *e = w->residual + (HL_REGRESS_FOLDS + 1) * n;
    for (size_t i = 0; i < n; i++)
        sum += 2 * (HL_REGRESS_FOLDS - 1) * log(w->factor[i * n + i]);
    for (size_t q = 0; q < HL_REGRESS_FOLDS; q++) {
        memcpy(e, w->residual + q * n, n * sizeof *e);
        hl_solve_lower(n, w->factor, n, e);
        sum += hl_dot(n, e, e) / HL_REGRESS_FOLDS;
    }
    return sum;
}

/* Mean square of what the estimate leaves of the rows of all folds, in units of their noise. */
static double left(hl_weak *w)
{
    size_t n = w->waves * w->tests;
    double *e = w->residual + (HL_REGRESS_FOLDS + 1) * n;
    memcpy(e, w->residual + HL_REGRESS_FOLDS * n, n * sizeof *e);
    hl_solve_lower(n, w->factor, n, e);
    return hl_dot(n, e, e) / (double)n;
}

/* Of the rows of a time, the share that may be of the same trajectories as those of another. */
static double most_share(const hl_weak *w)
{
    return w->p->shared > 0 ? fmin(w->p->shared / (double)w->times, most_shared) : most_shared;
}

/* That of independent rows. */
static hl_status factor_apart(hl_weak *w)
{
    if (factor_share(w, 0))
        return HL_OK;
    return hl_fail(w->p->ctx, HL_ERR_NO_SOLUTION, "hl_sde_regress: the covariance of the conditions is not positive");
}

/* The factor of the likelier covariance: of independent rows, or of trajectories as far as they are known to be, or may be, the same. The second has no
 * factor if the estimate's A is not positive, as correlations of more than two columns may be. */
static hl_status factor(hl_weak *w)
{
    hl_regress *p = w->p;
    size_t n = w->waves * w->tests;
    double most = most_share(w), *other = w->factor + n * n;
    run(w, covariance_job);
    shrink(w);
    if (!p->started || p->apart)
        return factor_apart(w);
    set_residuals(w);
    if (!factor_share(w, most))
        return factor_apart(w);
    double same = scatter(w);
    p->apart = p->settled && left(w) > most_left;
    memcpy(other, w->factor, n * n * sizeof *other);
    hl_status status = factor_apart(w);
    if (status == HL_OK && !p->apart && same < scatter(w)) {
        memcpy(w->factor, other, n * n * sizeof *other);
        w->share = most;
    }
    return status;
}

double hl_weak_expect(const hl_weak *w, size_t number, const double *mean, const double *covariance, double *scratch)
{
    const test *t = &w->test[number];
    size_t d = w->p->dim, a = t->factor[0], b = t->factor[1];
    if (a)
        return b ? mean[a - 1] * mean[b - 1] + covariance[(a - 1) * d + b - 1] : mean[a - 1];
    double *factor = scratch, *gap = factor + d * d, volume = 1;
    memcpy(factor, covariance, d * d * sizeof *factor);
    for (size_t i = 0; i < d; i++) {
        factor[i * (d + 1)] += t->width * t->width;
        gap[i] = mean[i] - t->centre[i];
    }
    if (!(hl_cholesky(d, factor, 0) > 0))
        return 0;
    hl_solve_lower(d, factor, d, gap);
    for (size_t i = 0; i < d; i++)
        volume *= t->width / factor[i * (d + 1)];
    return volume * exp(-0.5 * hl_dot(d, gap, gap));
}

size_t hl_weak_test_count(const hl_weak *w)
{
    return w->tests;
}

/* Takes what the quadrature makes of the right paths of means out of the mean residuals. */
static void correct(hl_weak *w, const double *expected)
{
    size_t m = w->times, r = w->tests;
    double *mean = w->residual + HL_REGRESS_FOLDS * w->waves * r;
    for (size_t j = 0; j < w->waves; j++)
        for (size_t l = 0; l < m; l++)
            for (size_t k = 0; k < r; k++) {
                const double *at = expected + (l * r + k) * 2;
                mean[j * r + k] -= w->jump[j * m + l] * at[0] - w->weight[j * m + l] * at[1];
            }
}

void hl_weak_misfit(hl_weak *w, hl_conditions *c, const double *expected, double to[2], double scattered[2])
{
    const double share[] = { 0, most_share(w) };
    w->rows = c->rows;
    w->total = c->count;
    w->first = 0;
    run(w, rows_job);
    run(w, covariance_job);
    shrink(w);
    set_residuals(w);
    if (expected)
        correct(w, expected);
    for (int same = 0; same < 2; same++) {
        bool good = factor_share(w, share[same]);
        to[same] = good ? (double)(w->waves * w->tests) * left(w) : INFINITY;
        scattered[same] = good ? scatter(w) : INFINITY;
    }
}

hl_status hl_weak_rows(hl_weak *w, hl_conditions *c, size_t first)
{
    w->rows = c->rows;
    w->total = c->count;
    w->first = first;
    run(w, rows_job);
    hl_status status = factor(w);
    if (status == HL_OK)
        run(w, whiten_job);
    return status;
}

/* ---- groups ---- */

/* The rows of a group at each time, less as many times the mean of their fold, over the number of the fold. */
static void group_job(void *user, int thread)
{
    hl_weak *w = user;
    const hl_regress *p = w->p;
    size_t team = p->ctx->team ? (size_t)hl_team_size(p->ctx->team) : 1, r = w->tests, m = w->times;
    size_t columns = p->columns + 1, size = r * cell_width(w);
    double *cell = w->cell + (HL_REGRESS_FOLDS * m + (size_t)thread) * size;
    for (size_t g = (size_t)thread; g < HL_REGRESS_FOLDS * p->groups; g += team) {
        size_t q = g % HL_REGRESS_FOLDS;
        double *to = w->rows + (g * w->total + w->first) * columns;
        memset(to, 0, w->waves * r * columns * sizeof *to);
        for (size_t l = 0; l < m; l++) {
            double own = 0, all = w->count[q * m + l];
            rows some = { 0 };
            memset(cell, 0, size * sizeof *cell);
            for (size_t k = w->start[l]; k < w->start[l + 1]; k++)
                if (p->group[w->index[k]] == g) {
                    some.row[some.count++] = w->index[k];
                    if (some.count == ROWS)
                        add_rows(w, &some, cell, w->scratch + (size_t)thread * w->scratch_size);
                    own++;
                }
            if (some.count)
                add_rows(w, &some, cell, w->scratch + (size_t)thread * w->scratch_size);
            hl_axpy(size, -own / all, cell_of(w, q, l), cell);
            for (size_t j = 0; j < w->waves && own > 0; j++)
                add_wave(w, j, l, 1 / all, cell, to);
        }
        hl_solve_lower_rows(w->waves * r, w->factor, w->waves * r, columns, to);
    }
}

hl_status hl_weak_groups(hl_weak *w, hl_conditions *c, size_t first)
{
    w->rows = c->rows;
    w->total = c->count;
    w->first = first;
    run(w, group_job);
    return hl_check_stop(w->p->ctx);
}
