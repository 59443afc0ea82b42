/* column_map.c - monotone maps of columns: y = Phi^-1(F(x)) with F a mixture of normals over a heavy-tailed background.
 *
 *   T(u) = 1/2 + u / (2 r), T'(u) = r^-3, r = sqrt(2 + u^2);  the tail below u < 0 is 1 / (r (r + |u|))
 *   log dy/dx = log F'(u) - log scale + y^2 / 2 + log(2 pi) / 2
 *
 * Both tails of F are summed, and y comes from the smaller, so that no digits are lost on either side. EM starts at quantiles, each
 * part as wide as its share of the rows. */
#include "learn/column_map.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"

enum { EM_STEPS = 60, EM_ROWS = 6000, BLOCK = 32 * HL_LANES, ROWS_PER_PART = 20 };
static const double LEAST_DEVIATION = 1e-3, LEAST_WEIGHT = 1e-6, MORE_PARTS_GAIN = 1e-3, TIED_SHARE = 0.01;
static const double TAIL = 2;       /* y's that x takes to grow e-fold, beyond the rows; see the header */
static const double FURTHEST = 690; /* e-folds: x stays finite */
static const double LOG_ROOT_2PI = 0.91893853320467274178, ROOT_HALF = 0.70710678118654752440;

/* ---- columns ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort_column(size_t rows, const double *x, size_t stride, double *work)
{
    for (size_t r = 0; r < rows; r++)
        work[r] = x[r * stride];
    qsort(work, rows, sizeof *work, compare);
}

static double quantile(const double *sorted, size_t rows, double share)
{
    double at = share * (double)(rows - 1);
    size_t below = (size_t)at;
    double part = at - (double)below;
    return below + 1 < rows ? sorted[below] * (1 - part) + sorted[below + 1] * part : sorted[rows - 1];
}

void hl_column_scale(size_t rows, const double *x, size_t stride, double *work, double *centre, double *scale)
{
    /* shares, and the width between their quantiles for a normal distribution of deviation 1 */
    static const double pairs[][2] = { { 0.25, 1.3489795 }, { 0.1, 2.5631031 }, { 0.02, 4.1074978 }, { 0, 6 } };
    sort_column(rows, x, stride, work);
    *centre = quantile(work, rows, 0.5);
    *scale = 0;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && !(*scale > 0); i++)
        *scale = (quantile(work, rows, 1 - pairs[i][0]) - quantile(work, rows, pairs[i][0])) / pairs[i][1];
    if (!(*scale > 0) || !isfinite(*scale))
        *scale = 1;
}

double hl_column_tie_width(size_t rows, const double *x, size_t stride, double *work)
{
    size_t distinct = rows > 0;
    double least = INFINITY;
    sort_column(rows, x, stride, work);
    double range = rows ? work[rows - 1] - work[0] : 0;
    for (size_t r = 1; r < rows; r++) {
        double gap = work[r] - work[r - 1];
        distinct += gap > 0;
        if (gap > 1e-9 * range) /* less is rounding */
            least = fmin(least, gap);
    }
    return (double)(rows - distinct) > TIED_SHARE * (double)rows && isfinite(least) ? least / 2 : 0;
}

/* ---- maps ---- */

hl_status hl_column_map_create(hl_context *ctx, size_t parts, hl_column_map **out)
{
    *out = NULL;
    hl_column_map *m = hl_calloc(ctx, 1, sizeof *m);
    double *values = hl_calloc(ctx, hl_size_mul(3, parts), sizeof *values);
    if (!m || !values) {
        hl_free(ctx, m);
        hl_free(ctx, values);
        return HL_ERR_NOMEM;
    }
    *m = (hl_column_map){ ctx, parts, 0, 1, 1, -INFINITY, INFINITY, values, values + parts, values + 2 * parts };
    *out = m;
    return HL_OK;
}

void hl_column_map_free(hl_column_map *m)
{
    if (!m)
        return;
    hl_free(m->ctx, m->weight);
    hl_free(m->ctx, m);
}

bool hl_column_map_valid(const hl_column_map *m)
{
    double sum = m->background;
    bool good = isfinite(m->centre) && m->scale > 0 && isfinite(m->scale) && m->background > 0 && m->low <= m->high &&
                m->low < INFINITY && m->high > -INFINITY;
    for (size_t j = 0; j < m->parts; j++) {
        good = good && m->weight[j] >= 0 && isfinite(m->mean[j]) && m->deviation[j] > 0 && isfinite(m->deviation[j]);
        sum += m->weight[j];
    }
    return good && fabs(sum - 1) <= 1e-9;
}

/* Both tails of F at u, and the log of its density. */
typedef struct point {
    double below, above, log_density;
} point;

static point evaluate(const hl_column_map *m, double u)
{
    double r = hypot(sqrt(2), u), tail = 1 / r / (r + fabs(u)), density = m->background / r / r / r;
    point p = { m->background * (u < 0 ? tail : 1 - tail), m->background * (u < 0 ? 1 - tail : tail), 0 };
    for (size_t j = 0; j < m->parts; j++) {
        double z = (u - m->mean[j]) / m->deviation[j], small = 0.5 * erfc(fabs(z) * ROOT_HALF);
        p.below += m->weight[j] * (z < 0 ? small : 1 - small);
        p.above += m->weight[j] * (z < 0 ? 1 - small : small);
        density += m->weight[j] / m->deviation[j] * exp(-0.5 * z * z - LOG_ROOT_2PI);
    }
    p.log_density = density > 1e-290 ? log(density) : log(m->background) - 3 * log(r);
    return p;
}

/* y with log Phi(-y) = log_p, for log_p < -600, from the first terms of Mills' ratio. */
static double far_quantile(double log_p)
{
    double y = sqrt(-2 * log_p);
    for (int i = 0; i < 8; i++) {
        double s = 1 / (y * y), mills = 1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s)));
        y += (-0.5 * y * y - LOG_ROOT_2PI - log(y) + log(mills) - log_p) * mills / y;
    }
    return y;
}

/* The y of u: from the smaller tail. Beyond 1e100 only the background is left, whose tail is 1 / (2 u^2). */
static double normal_score(const hl_column_map *m, const point *p, double u)
{
    double small = fmin(p->below, p->above);
    double y =
        small > 1e-250 ? -hl_normal_quantile(small) : far_quantile(log(m->background) - log(2) - 2 * log(fabs(u)));
    return p->below < p->above ? -y : y;
}

/* y at u, between low and high; log dy/du to *log_slope. */
static double score_at(const hl_column_map *m, double u, double *log_slope)
{
    point p = evaluate(m, u);
    double y = normal_score(m, &p, u);
    *log_slope = p.log_density + 0.5 * y * y + LOG_ROOT_2PI;
    return y;
}

/* How far u is outside: > 0 above high, < 0 below low. */
static double beyond(const hl_column_map *m, double u)
{
    return u > m->high ? u - m->high : u < m->low ? u - m->low : 0;
}

double hl_column_map_forward(const hl_column_map *m, double x, double *log_slope)
{
    double u = (x - m->centre) / m->scale, slope = NAN, y = NAN;
    if (isfinite(u)) {
        double out = beyond(m, u);
        y = score_at(m, out > 0 ? m->high : out < 0 ? m->low : u, &slope);
        if (out != 0) {
            double folds = log1p(fabs(out) * exp(slope) / TAIL);
            y += out > 0 ? TAIL * folds : -TAIL * folds;
            slope -= folds;
        }
    }
    if (log_slope)
        *log_slope = slope - log(m->scale);
    return y;
}

double hl_column_map_logf(const hl_column_map *m, double x)
{
    double u = (x - m->centre) / m->scale, slope;
    if (isfinite(u) && beyond(m, u) == 0)
        return evaluate(m, u).log_density - log(m->scale);
    double y = hl_column_map_forward(m, x, &slope);
    return slope - 0.5 * y * y - LOG_ROOT_2PI;
}

/* With f = F': d log f/du = f'/f, and d log |dy/dx| / dx = (f'/f) / scale + y dy/dx. Beyond the rows dy/du = 1 / (1/y' + d / TAIL). */
double hl_column_map_curve(const hl_column_map *m, double x, double *log_slope, double *curve)
{
    double y = hl_column_map_forward(m, x, log_slope), u = (x - m->centre) / m->scale, r = hypot(sqrt(2), u);
    double density = m->background / r / r / r, change = -3 * (u / r) / r * density, out = beyond(m, u);
    if (out != 0) {
        *curve = (out > 0 ? -1 : 1) * exp(*log_slope) / TAIL;
        return y;
    }
    for (size_t j = 0; j < m->parts; j++) {
        double z = (u - m->mean[j]) / m->deviation[j];
        double part = m->weight[j] / m->deviation[j] * exp(-0.5 * z * z - LOG_ROOT_2PI);
        density += part;
        change -= part * z / m->deviation[j];
    }
    change = density > 1e-290 ? change / density : -3 * (u / r) / r;
    *curve = change / m->scale + y * exp(*log_slope);
    return y;
}

/* u for a y that lies `out` beyond that of the edge. */
static double continue_from(double edge, double log_slope, double out)
{
    double folds = fmin(fabs(out) / TAIL, FURTHEST);
    return edge + (out > 0 ? 1 : -1) * TAIL * exp(-log_slope) * expm1(folds);
}

/* u from y, between low and high. */
static double invert(const hl_column_map *m, double y)
{
    double low = isfinite(m->low) ? m->low : -1, high = isfinite(m->high) ? m->high : 1, u;
    for (int i = 0; i < 300; i++) { /* to 1e150 */
        point at_low = evaluate(m, low), at_high = evaluate(m, high);
        bool below = low > m->low && normal_score(m, &at_low, low) > y;
        bool above = high < m->high && normal_score(m, &at_high, high) < y;
        if (!below && !above)
            break;
        low -= below ? 2.2 * fmax(fabs(low), 1) : 0;
        high += above ? 2.2 * fmax(fabs(high), 1) : 0;
    }
    u = 0.5 * (low + high);
    for (int i = 0; i < 400; i++) {
        double slope, at = score_at(m, u, &slope);
        if (at == y)
            break;
        *(at < y ? &low : &high) = u;
        double next = u - (at - y) / exp(slope), middle = 0.5 * (low + high);
        if (!(next > low && next < high) || i % 8 == 7) /* every eighth step halves, come what may */
            next = middle;
        if (fabs(next - u) <= 1e-16 * (fabs(u) + 1e-8) || !(low < middle && middle < high))
            break;
        u = next;
    }
    return u;
}

double hl_column_map_inverse(const hl_column_map *m, double y)
{
    double slope = 0, out;
    if (!isfinite(y))
        return NAN;
    if (isfinite(m->high) && (out = y - score_at(m, m->high, &slope)) > 0)
        return m->centre + m->scale * continue_from(m->high, slope, out);
    if (isfinite(m->low) && (out = y - score_at(m, m->low, &slope)) < 0)
        return m->centre + m->scale * continue_from(m->low, slope, out);
    return m->centre + m->scale * invert(m, y);
}

/* ---- fitting ---- */

typedef struct em {
    const hl_kernels *kernels;
    size_t rows, parts;
    double *u;               /* [rows], padded to entries */
    double *share;           /* [parts][BLOCK] */
    double *sums;            /* [parts][3]: of shares, and of shares times (u - mean) and its square */
    double background_share; /* of the rows */
} em;

/* Shares of a block of rows by part, and their sums. */
static void sum_block(em *e, const hl_column_map *m, size_t first)
{
    size_t count = e->rows - first < BLOCK ? e->rows - first : BLOCK, entries = (count + HL_LANES - 1) / HL_LANES;
    double total[BLOCK], background[BLOCK];
    const double *u = e->u + first;
    for (size_t r = 0; r < entries * HL_LANES; r++) {
        double q = 2 + u[r] * u[r];
        background[r] = m->background / (q * sqrt(q));
        total[r] = background[r];
    }
    for (size_t j = 0; j < m->parts; j++) {
        double *share = e->share + j * BLOCK, inverse = 1 / m->deviation[j];
        double constant = log(m->weight[j]) - log(m->deviation[j]) - LOG_ROOT_2PI;
        for (size_t r = 0; r < entries * HL_LANES; r++) {
            double z = (u[r] - m->mean[j]) * inverse;
            share[r] = constant - 0.5 * z * z;
        }
        e->kernels->unary[HL_UN_EXP](entries, share, share);
        for (size_t r = 0; r < entries * HL_LANES; r++)
            total[r] += share[r];
    }
    for (size_t r = 0; r < entries * HL_LANES; r++)
        total[r] = r < count && total[r] > 0 ? 1 / total[r] : 0; /* 0: further away than numbers reach */
    for (size_t r = 0; r < count; r++)
        e->background_share += background[r] * total[r];
    for (size_t j = 0; j < m->parts; j++) {
        const double *share = e->share + j * BLOCK;
        double zeroth = 0, first_moment = 0, second = 0;
        for (size_t r = 0; r < count; r++) {
            double s = share[r] * total[r], d = u[r] - m->mean[j];
            zeroth += s;
            first_moment += s * d;
            second += s * d * d;
        }
        e->sums[3 * j] += zeroth;
        e->sums[3 * j + 1] += first_moment;
        e->sums[3 * j + 2] += second;
    }
}

static void em_step(em *e, double floor, hl_column_map *m)
{
    double rows = (double)e->rows, total = 0;
    memset(e->sums, 0, 3 * m->parts * sizeof *e->sums);
    e->background_share = 0;
    for (size_t first = 0; first < e->rows; first += BLOCK)
        sum_block(e, m, first);
    for (size_t j = 0; j < m->parts; j++) {
        const double *s = e->sums + 3 * j;
        double shift = s[0] > 1e-100 ? s[1] / s[0] : 0;
        if (s[0] > 1e-100) {
            m->mean[j] += shift;
            m->deviation[j] = fmax(sqrt(fmax(s[2] / s[0] - shift * shift, 0)), floor);
        }
        m->weight[j] = fmax(s[0] / rows, LEAST_WEIGHT);
        total += m->weight[j];
    }
    m->background = fmax(e->background_share / rows, 1 / rows);
    total += m->background;
    for (size_t j = 0; j < m->parts; j++)
        m->weight[j] /= total;
    m->background /= total;
}

/* The least and the greatest of all rows end the map's own tails. */
static void set_range(const hl_column_fold *data, hl_column_map *m)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t r = 0; r < data->rows; r++) {
        low = fmin(low, data->x[r * data->stride]);
        high = fmax(high, data->x[r * data->stride]);
    }
    m->low = (low - m->centre) / m->scale;
    m->high = (high - m->centre) / m->scale;
}

/* Part j begins at its share of the quantiles of the sorted values. */
static void start_em(const em *e, const double *sorted, double floor, hl_column_map *m)
{
    double k = (double)m->parts;
    for (size_t j = 0; j < m->parts; j++) {
        double middle = quantile(sorted, e->rows, ((double)j + 0.5) / k);
        double width =
            quantile(sorted, e->rows, ((double)j + 0.75) / k) - quantile(sorted, e->rows, ((double)j + 0.25) / k);
        m->mean[j] = (middle - m->centre) / m->scale;
        m->deviation[j] = fmax(width / m->scale, floor);
        m->weight[j] = 0.98 / k;
    }
    m->background = 0.02;
}

hl_status hl_column_map_fit(hl_context *ctx, const hl_column_fold *data, size_t parts, double floor,
                            hl_column_map **out)
{
    size_t step = 1 + (data->rows - 1) / EM_ROWS, rows = (data->rows + step - 1) / step;
    size_t padded = (rows + BLOCK - 1) / BLOCK * BLOCK;
    em e = { .kernels = hl_kernels_pick(HL_F64, NULL), .rows = rows, .parts = parts };
    double *block = hl_calloc(ctx, hl_size_add(2 * padded, parts * (BLOCK + 3)), sizeof *block);
    hl_status status = block ? hl_column_map_create(ctx, parts, out) : HL_ERR_NOMEM;
    if (status == HL_OK) {
        hl_column_map *m = *out;
        double *sorted = block + padded;
        e.u = block;
        e.share = sorted + padded;
        e.sums = e.share + parts * BLOCK;
        hl_column_scale(rows, data->x, data->stride * step, sorted, &m->centre, &m->scale);
        for (size_t r = 0; r < rows; r++)
            e.u[r] = (data->x[r * data->stride * step] - m->centre) / m->scale;
        double least = fmax(LEAST_DEVIATION, floor / m->scale);
        start_em(&e, sorted, least, m);
        for (int i = 0; i < EM_STEPS; i++)
            em_step(&e, least, m);
        set_range(data, m);
    }
    hl_free(ctx, block);
    return status;
}

hl_status hl_column_map_choose(hl_context *ctx, size_t folds, const hl_column_fold *fold, size_t most, double floor,
                               size_t *parts)
{
    static const size_t tried[] = { 1, 2, 3, 5, 8, 16, 32, 64 };
    double best = -INFINITY;
    *parts = 1;
    for (size_t i = 0; i < sizeof tried / sizeof *tried && tried[i] <= most; i++) {
        double sum = 0;
        size_t count = 0;
        if (tried[i] > 1 && ROWS_PER_PART * tried[i] > fold[0].rows)
            break;
        for (size_t f = 0; f < folds; f++) {
            hl_column_map *m = NULL;
            hl_status status = hl_column_map_fit(ctx, &fold[f], tried[i], floor, &m);
            if (status != HL_OK)
                return status;
            for (size_t r = 0; r < fold[f].held_rows; r++)
                sum += hl_column_map_logf(m, fold[f].held[r * fold[f].stride]);
            count += fold[f].held_rows;
            hl_column_map_free(m);
        }
        double mean = count ? sum / (double)count : -INFINITY;
        if (mean > best + MORE_PARTS_GAIN || i == 0) {
            best = mean;
            *parts = tried[i];
        }
    }
    return HL_OK;
}
