/* regress_pairs.c - conditions from neighbours in time of one trajectory.
 *
 * Without an estimate of the drift's rate:
 *
 *   x' - x = h (f(x) + f(x')) / 2 + e,   e_i e_j = h (A_ij(x) + A_ij(x')) / 2 on average,
 *
 * both with an error of second order in h: in e the noise of the mean slope does not correlate with the increment. As
 * f(x') depends on the noise, these are no regressions; multiplied by functions of x, all those of the dictionary over the
 * variance of a row, and summed over the pairs, they are conditions whose noise has mean 0.
 *
 * With one, the transitions' means m and covariances P of the estimate (regress_moments.c):
 *
 *   x' - m = h (df(x) + E df(X')) / 2 + e,   e_i e_j - P_ij = h (dA_ij(x) + E dA_ij(X')) / 2 on average,
 *
 * where df and dA are the changes of the estimate. The right sides are approximations of first order in h times the rate of f, which
 * are right where the estimate does not change any more: there, e has mean 0 for steps of any length that m and P are right for. */
#include <math.h>
#include <string.h>

#include "op/op.h"
#include "sde/regress.h"

static const double variance_share = 0.05; /* of the mean variance, the least one used as a weight */

/* One entry of f or A: sums of instruments times regressors and y for each fold or group, and their covariance. */
typedef struct block {
    size_t part, entry, size; /* part: 0 f, 1 A */
    size_t common, gap; /* its functions are the first `common` of the dictionary and, `gap` later, those of its own */
    double *sum;        /* [parts][size][size + 1] */
    double *square;     /* [parts][size][size] */
} block;

struct hl_steps {
    hl_regress *p;
    bool grouped;
    size_t blocks, parts; /* parts: folds, or groups of all folds */
    block *block;
    double *least, *scratch; /* [dim]; for each thread */
    size_t plain;            /* values of its first part */
    size_t scratch_size;
};

hl_status hl_steps_create(hl_regress *p, bool grouped, hl_steps **steps)
{
    hl_context *ctx = p->ctx;
    *steps = NULL;
    hl_steps *s = hl_calloc(ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    s->p = p;
    s->grouped = grouped;
    s->parts = HL_REGRESS_FOLDS * (grouped ? p->groups : 1);
    s->blocks = p->dim + p->entries;
    size_t team = ctx->team ? (size_t)hl_team_size(ctx->team) : 1;
    s->plain = 2 * (p->size[0] + p->size[1]) + 5 * p->dim + 2 * p->entries;
    s->scratch_size = s->plain + hl_moments_scratch(p) + 2 * p->size[0];
    s->block = hl_calloc(ctx, s->blocks, sizeof *s->block);
    s->least = hl_calloc(ctx, p->dim, sizeof *s->least);
    s->scratch = hl_calloc(ctx, team * s->scratch_size, sizeof *s->scratch);
    bool good = s->block && s->least && s->scratch;
    for (size_t k = 0; good && k < s->blocks; k++) {
        block *b = &s->block[k];
        b->part = k >= p->dim;
        b->entry = k - b->part * p->dim;
        b->size = b->common = b->part ? hl_regress_noise_size(p, b->entry) : p->size[0];
        if (!b->part && p->ridge_each) {
            b->common = p->basis[0].products + p->ridge_first;
            b->size = b->common + p->ridge_each;
            b->gap = b->entry * p->ridge_each;
        }
        b->sum = hl_calloc(ctx, hl_size_mul(s->parts, b->size * (b->size + 1)), sizeof *b->sum);
        b->square = hl_calloc(ctx, hl_size_mul(s->parts, b->size * b->size), sizeof *b->square);
        good = b->sum && b->square;
    }
    if (!good) {
        hl_steps_free(s);
        return HL_ERR_NOMEM;
    }
    *steps = s;
    return HL_OK;
}

void hl_steps_free(hl_steps *s)
{
    if (!s)
        return;
    hl_context *ctx = s->p->ctx;
    for (size_t k = 0; s->block && k < s->blocks; k++) {
        hl_free(ctx, s->block[k].sum);
        hl_free(ctx, s->block[k].square);
    }
    hl_free(ctx, s->block);
    hl_free(ctx, s->least);
    hl_free(ctx, s->scratch);
    hl_free(ctx, s);
}

size_t hl_steps_count(const hl_steps *s)
{
    size_t count = 0;
    for (size_t k = 0; s && k < s->blocks; k++)
        count += s->block[k].size;
    return count;
}

/* Least variances: a share of the mean over the pairs. */
static void set_least(hl_steps *s)
{
    hl_regress *p = s->p;
    double *value = s->scratch, *f = value + p->size[0] + p->size[1], *a = f + p->dim, used = 0;
    double *raw = a + p->entries;
    memset(s->least, 0, p->dim * sizeof *s->least);
    memset(raw, 0, p->dim * sizeof *raw);
    for (size_t k = 0; k < p->pairs; k++) {
        const hl_pair *q = &p->pair[k];
        if (!hl_regress_uses(p, k))
            continue;
        used++;
        if (p->started)
            hl_regress_values(p, q->from, value, f, a);
        for (size_t i = 0; i < p->dim; i++) {
            double gap = p->z[q->to * p->inputs + i] - p->z[q->from * p->inputs + i];
            raw[i] += gap * gap / q->step;
            s->least[i] += p->started ? fmax(a[i], 0) : 0;
        }
    }
    for (size_t i = 0; i < p->dim && used > 0; i++)
        s->least[i] = p->started ? fmax(variance_share * s->least[i], 1e-4 * raw[i]) / used : raw[i] / used;
}

/* The functions of a block from those of the dictionary; `to` is room for them. */
static const double *functions_of(const block *b, const double *from, double *to)
{
    if (b->common == b->size)
        return from;
    memcpy(to, from, b->common * sizeof *to);
    memcpy(to + b->common, from + b->common + b->gap, (b->size - b->common) * sizeof *to);
    return to;
}

/* Adds instruments z (size) times (regressors, y), and z z' times `variance`. */
static void add(block *b, size_t part, const double *z, double weight, const double *regressor, double scale, double y,
                double variance)
{
    size_t n = b->size;
    double *sum = b->sum + part * n * (n + 1), *square = b->square + part * n * n;
    for (size_t k = 0; k < n; k++, sum += n + 1, square += n) {
        double u = weight * z[k], v = u * scale, w = u * weight * variance;
        hl_axpy(n, v, regressor, sum);
        sum[n] += u * y;
        hl_axpy(k + 1, w, z, square);
    }
}

static size_t part_of(const hl_steps *s, const hl_pair *q)
{
    return s->grouped ? s->p->group[q->from] : s->p->fold[q->from];
}

/* The variance of a row: the mean of the estimate's and of the square of what the estimate leaves. With an estimate that is far off the conditions
 * then still have about unit variance. */
static double seen_variance(double model, double left)
{
    return 0.5 * (model + left * left);
}

static void add_pair(hl_steps *s, const hl_pair *q, double *value)
{
    const hl_regress *p = s->p;
    size_t d = p->dim, both = p->size[0] + p->size[1], part = part_of(s, q);
    double *after = value + both, *f = after + both, *f1 = f + d, *a = f1 + d, *a1 = a + p->entries;
    double *gap = a1 + p->entries, *e = gap + d, *v = e + d, h = q->step;
    const double *known = p->known + q->from * 2 * d, *known1 = p->known + q->to * 2 * d;
    hl_regress_values(p, q->from, value, f, a);
    hl_regress_values(p, q->to, after, f1, a1);
    for (size_t i = 0; i < d; i++) {
        gap[i] = p->z[q->to * p->inputs + i] - p->z[q->from * p->inputs + i];
        e[i] = gap[i] - 0.5 * h * (f[i] + f1[i]);
        v[i] = p->started ? fmax(a[i], s->least[i]) : s->least[i];
    }
    for (size_t k = 0; k < both; k++)
        after[k] += value[k];
    for (size_t k = 0; k < s->blocks; k++) {
        block *b = &s->block[k];
        if (b->part == 0) {
            size_t i = b->entry;
            double y = gap[i] - 0.5 * h * (known[i] + known1[i]), *own = value + s->scratch_size - 2 * p->size[0];
            add(b, part, functions_of(b, value, own), 1 / v[i], functions_of(b, after, own + p->size[0]), 0.5 * h, y,
                seen_variance(v[i] * h, p->started ? e[i] : gap[i]));
        } else {
            size_t i = p->entry[b->entry][0], j = p->entry[b->entry][1];
            double given = i == j ? 0.5 * h * (known[d + i] + known1[d + i]) : 0, size = v[i] * v[j];
            double left = e[i] * e[j] - 0.5 * h * (a[b->entry] + a1[b->entry]), model = size * h * h * (1 + (i == j));
            add(b, part, value + p->size[0], 1 / size, after + p->size[0], 0.5 * h, e[i] * e[j] - given,
                p->started ? seen_variance(model, left) : model);
        }
    }
}

/* How much less a variance P changes with A than h A does, as f pulls what the noise moves back. The estimate needs no such slope: it is found in several rounds. A replicate
 * has one, and without it would stay too close to the estimate. */
static double slope_of(const hl_steps *s, double variance, double plain, double least)
{
    const double low = 0.5, high = 2;
    return s->grouped && plain > least ? fmax(low, fmin(high, variance / plain)) : 1;
}

/* The same with the estimate's moments of the transition. */
static void add_transition(hl_steps *s, const hl_pair *q, double *value)
{
    const hl_regress *p = s->p;
    size_t d = p->dim, both = p->size[0] + p->size[1], part = part_of(s, q);
    double *f = value + 2 * both, *a = f + d, *e = a + p->entries, h = q->step;
    hl_moments m = { .a = e + d };
    if (!hl_regress_moments(p, q->from, h, value + s->plain, &m)) {
        add_pair(s, q, value);
        return;
    }
    hl_regress_values(p, q->from, value, f, a);
    hl_axpy(both, 1, value, m.function);
    for (size_t i = 0; i < d; i++)
        e[i] = p->z[q->to * p->inputs + i] - m.mean[i];
    for (size_t k = 0; k < s->blocks; k++) {
        block *b = &s->block[k];
        if (b->part == 0) {
            size_t i = b->entry;
            double v = fmax(m.covariance[i * (d + 1)], s->least[i] * h);
            const double *own = functions_of(b, m.function, value + s->scratch_size - p->size[0]);
            add(b, part, own, 0.5 * h / v, own, 0.5 * h, e[i] + 0.5 * h * (f[i] + m.f[i]), seen_variance(v, e[i]));
        } else {
            size_t i = p->entry[b->entry][0], j = p->entry[b->entry][1];
            double vi = fmax(m.covariance[i * (d + 1)], s->least[i] * h), vij = m.covariance[i * d + j];
            double vj = fmax(m.covariance[j * (d + 1)], s->least[j] * h), size = vi * vj + vij * vij;
            double plain = 0.5 * h * (a[b->entry] + m.a[b->entry]);
            double slope = i == j ? slope_of(s, vij, plain, s->least[i] * h) : 1;
            double y = e[i] * e[j] - vij + slope * plain;
            add(b, part, m.function + p->size[0], 0.5 * h / size, m.function + p->size[0], 0.5 * h * slope, y,
                seen_variance(size, e[i] * e[j] - vij));
        }
    }
}

static void sum_job(void *user, int thread)
{
    hl_steps *s = user;
    const hl_regress *p = s->p;
    size_t team = p->ctx->team ? (size_t)hl_team_size(p->ctx->team) : 1;
    for (size_t k = 0; k < p->pairs; k++)
        if (part_of(s, &p->pair[k]) % team == (size_t)thread && hl_regress_uses(p, k)) {
            double *scratch = s->scratch + (size_t)thread * s->scratch_size;
            if (p->rate > 0)
                add_transition(s, &p->pair[k], scratch);
            else
                add_pair(s, &p->pair[k], scratch);
        }
}

/* Rows of unit variance of one block, to `row` of each part. */
static bool whiten(const hl_steps *s, block *b, hl_conditions *c, size_t row)
{
    const hl_regress *p = s->p;
    size_t n = b->size, columns = p->columns + 1;
    size_t at = b->part ? hl_regress_noise(p, b->entry) : hl_regress_drift(p, b->entry);
    double *l = b->square;
    for (size_t q = 1; q < s->parts; q++)
        for (size_t k = 0; k < n * n; k++)
            l[k] += b->square[q * n * n + k];
    for (size_t k = 0; k < n; k++)
        l[k * n + k] = l[k * n + k] * (1 + 1e-8) + 1e-300;
    if (!(hl_cholesky(n, l, 0) > 0))
        return false;
    for (size_t q = 0; q < s->parts; q++) {
        double *sum = b->sum + q * n * (n + 1), *to = c->rows + (q * c->count + row) * columns;
        hl_solve_lower_rows(n, l, n, n + 1, sum);
        memset(to, 0, n * columns * sizeof *to);
        for (size_t k = 0; k < n; k++, to += columns) {
            for (size_t a = 0; a < n; a++)
                to[at + a + (a < b->common ? 0 : b->gap)] = HL_REGRESS_FOLDS * sum[k * (n + 1) + a];
            to[p->columns] = HL_REGRESS_FOLDS * sum[k * (n + 1) + n];
        }
    }
    return true;
}

hl_status hl_steps_rows(hl_steps *s, hl_conditions *c, size_t first)
{
    hl_regress *p = s->p;
    for (size_t k = 0; k < s->blocks; k++) {
        block *b = &s->block[k];
        memset(b->sum, 0, s->parts * b->size * (b->size + 1) * sizeof *b->sum);
        memset(b->square, 0, s->parts * b->size * b->size * sizeof *b->square);
    }
    set_least(s);
    if (p->ctx->team)
        hl_team_run(p->ctx->team, sum_job, s);
    else
        sum_job(s, 0);
    for (size_t k = 0; k < s->blocks; k++) {
        if (!whiten(s, &s->block[k], c, first))
            return hl_fail(p->ctx, HL_ERR_NO_SOLUTION,
                           "hl_sde_regress: the functions are not independent on the steps");
        first += s->block[k].size;
    }
    return HL_OK;
}
