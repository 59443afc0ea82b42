/* compare.c - two samples compared: Kolmogorov and Smirnov's distance, energy distances by permutation, nearest rows.
 *
 * With s_i = 1 for one sample and -1 for the other, both of n rows, and D the distances of all pairs, the energy distance is
 * -s' D s / n^2 but for the bias of the pairs i = i. A permutation changes s alone, so that D is made once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "report/compare.h"

enum { PERMUTATIONS = 199, COPY_PERMUTATIONS = 1999, STREAM_PERMUTE = 61, STREAM_COPIES = 62 };

/* Permutations end after ENOUGH that are above what was observed: p is then their share of those tried (Besag and Clifford 1991). Most end early,
 * as models that are right have a p anywhere between 0 and 1, and small p are as exact as before. */
enum { ENOUGH = 20 };

static double share_above(size_t above, size_t tried)
{
    return above < ENOUGH ? (1.0 + (double)above) / (1.0 + (double)tried) : (double)above / (double)tried;
}

double hl_kolmogorov_p(double k)
{
    double sum = 0;
    if (k < 0.2)
        return 1;
    for (int i = 1; i <= 40; i++)
        sum += (i % 2 ? 2 : -2) * exp(-2 * k * k * i * i);
    return fmin(fmax(sum, 0), 1);
}

/* What a distance is multiplied by before it is Kolmogorov's. */
static double ks_factor(double n, double m)
{
    double root = sqrt(m > 0 ? n * m / (n + m) : n);
    return root + 0.12 + 0.11 / root;
}

double hl_ks_p(double distance, double n, double m)
{
    return hl_kolmogorov_p(distance * ks_factor(n, m));
}

double hl_ks_band(double n, double m)
{
    return 1.3581015157 / ks_factor(n, m);
}

/* By the bits of the values, a byte at a time from the lowest, where -0 and the negative ones come before. */
void hl_sort_finite(size_t n, double *values, uint64_t *room)
{
    enum { BYTES = 8, VALUES = 256 };
    static const uint64_t sign = (uint64_t)1 << 63;
    size_t count[BYTES][VALUES] = { { 0 } };
    uint64_t *from = room, *to = room + n;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        from[i] = bits & sign ? ~bits : bits | sign;
        for (size_t b = 0; b < BYTES; b++)
            count[b][from[i] >> 8 * b & 255]++;
    }
    for (size_t b = 0; b < BYTES; b++) {
        size_t first = 0;
        if (n && count[b][from[0] >> 8 * b & 255] == n)
            continue;
        for (size_t v = 0; v < VALUES; v++) {
            size_t these = count[b][v];
            count[b][v] = first;
            first += these;
        }
        for (size_t i = 0; i < n; i++)
            to[count[b][from[i] >> 8 * b & 255]++] = from[i];
        uint64_t *kept = from;
        from = to;
        to = kept;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = from[i] & sign ? from[i] & ~sign : ~from[i];
        memcpy(&values[i], &bits, sizeof bits);
    }
}

double hl_ks_distance(size_t n, const double *a, size_t m, const double *b)
{
    double most = 0;
    for (size_t i = 0, j = 0; i < n && j < m;) {
        double value = fmin(a[i], b[j]);
        while (i < n && a[i] <= value)
            i++;
        while (j < m && b[j] <= value)
            j++;
        most = fmax(most, fabs((double)i / (double)n - (double)j / (double)m));
    }
    return most;
}

double hl_quantile(size_t n, const double *sorted, double q)
{
    double at = q * (double)n;
    size_t i = at >= 1 ? (size_t)at - 1 : 0;
    return sorted[i < n ? i : n - 1];
}

double hl_share_below(size_t n, const double *sorted, double value)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return (double)low / (double)n;
}

double hl_normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

double hl_chi2_quantile(double d, double p)
{
    if (d == 1) {
        double z = hl_normal_quantile((1 + p) / 2);
        return z * z;
    }
    if (d == 2)
        return -2 * log1p(-p);
    double a = 2 / (9 * d), root = 1 - a + hl_normal_quantile(p) * sqrt(a);
    return d * root * root * root;
}

/* ---- distances of rows ---- */

/* Rows by columns, LANES of them beside each other, so that distances to them are vectors: [group][column][lane]. */
enum { LANES = 16 };

/* Squares of what is too far for floats would be infinite, and distances of them NaN. */
static float near_enough(double x)
{
    return (float)fmin(fmax(x, -1e15), 1e15);
}

static float *make_lanes(hl_context *ctx, size_t dim, size_t rows, const double *x)
{
    float *lanes = hl_calloc(ctx, hl_size_mul((rows + LANES - 1) / LANES * LANES, dim), sizeof *lanes);
    for (size_t r = 0; lanes && r < rows; r++)
        for (size_t i = 0; i < dim; i++)
            lanes[(r / LANES * dim + i) * LANES + r % LANES] = near_enough(x[r * dim + i]);
    return lanes;
}

/* Squares of the distances of a row to those of a group. */
static void lane_squares(size_t dim, const float *group, const double *x, float *sum)
{
    float s[LANES] = { 0 };
    for (size_t i = 0; i < dim; i++) {
        float at = near_enough(x[i]);
        for (size_t k = 0; k < LANES; k++)
            s[k] += (group[i * LANES + k] - at) * (group[i * LANES + k] - at);
    }
    memcpy(sum, s, sizeof s);
}

/* ---- energy distance ---- */

/* The distances of all pairs of n rows. */
static void fill_distances(size_t dim, size_t n, const double *x, const float *lanes, float *d)
{
    float sum[LANES];
    for (size_t i = 0; i < n; i++)
        for (size_t first = 0; first <= i; first += LANES) {
            lane_squares(dim, lanes + first * dim, x + i * dim, sum);
            for (size_t k = 0; k < LANES && first + k <= i; k++)
                d[i * n + first + k] = d[(first + k) * n + i] = sqrtf(sum[k]);
        }
}

/* s' D s for TOGETHER vectors s, of a symmetric D with zeros on its diagonal: twice the part below it. */
enum { TOGETHER = 4, WIDTH = 8 };

static void quadratic(size_t n, const float *d, const float *s, double *result)
{
    double sum[TOGETHER] = { 0 };
    for (size_t i = 0; i < n; i++) {
        float part[TOGETHER][WIDTH] = { { 0 } };
        size_t j = 0;
        for (; j + WIDTH <= i; j += WIDTH)
            for (size_t v = 0; v < TOGETHER; v++)
                for (size_t k = 0; k < WIDTH; k++)
                    part[v][k] += d[i * n + j + k] * s[v * n + j + k];
        for (; j < i; j++)
            for (size_t v = 0; v < TOGETHER; v++)
                part[v][0] += d[i * n + j] * s[v * n + j];
        for (size_t v = 0; v < TOGETHER; v++)
            for (size_t k = 0; k < WIDTH; k++)
                sum[v] += 2 * (double)s[v * n + i] * (double)part[v][k];
    }
    memcpy(result, sum, sizeof sum);
}

/* Round 0 changes nothing. */
static void permute(size_t n, bool paired, uint64_t seed, uint64_t round, float *s)
{
    for (size_t i = 0; i < 2 * n; i++)
        s[i] = i < n ? 1 : -1;
    for (size_t i = 0; round && i < (paired ? n : 2 * n - 1); i++) {
        uint64_t bits = hl_random_bits(seed, STREAM_PERMUTE, round << 32 | i);
        size_t other = paired ? (bits & 1 ? i + n : i) : i + (size_t)(bits % (2 * n - i));
        float kept = s[i];
        s[i] = s[other];
        s[other] = kept;
    }
}

/* The distance of rows first .. first + n - 1 and second .. second + m - 1 without bias; `scale` becomes twice the mean distance of a row of
 * one and one of the other. */
static double unbiased(size_t stride, const float *d, size_t first, size_t n, size_t second, size_t m, double *scale)
{
    double between = 0, a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < m; j++)
            between += (double)d[(first + i) * stride + second + j];
        for (size_t j = 0; j < n; j++)
            a += (double)d[(first + i) * stride + first + j];
    }
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < m; j++)
            b += (double)d[(second + i) * stride + second + j];
    double dn = (double)n, dm = (double)m;
    *scale = 2 * between / (dn * dm);
    return *scale - a / (dn * (dn - 1)) - b / (dm * (dm - 1));
}

hl_status hl_compare_energy(hl_context *ctx, size_t dim, size_t rows, const double *x, bool paired, uint64_t seed,
                            hl_report_distance *result)
{
    *result = (hl_report_distance){ .rows = rows, .distance = NAN, .halves = NAN, .share = NAN, .p = NAN };
    if (rows < 8)
        return HL_OK;
    size_t all = 2 * rows, above = 0, tried = 0;
    float *d = hl_alloc(ctx, hl_size_mul(all * all, sizeof *d)), *s = hl_alloc(ctx, TOGETHER * all * sizeof *s);
    float *lanes = make_lanes(ctx, dim, all, x);
    hl_status status = d && s && lanes ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        double scale, unused, value[TOGETHER], observed = NAN;
        fill_distances(dim, all, x, lanes, d);
        result->distance = unbiased(all, d, 0, rows, rows, rows, &scale);
        result->halves = unbiased(all, d, 0, rows / 2, rows / 2, rows - rows / 2, &unused);
        result->share = scale > 0 ? fmin(fmax(result->distance / scale, 0), 1) : 0;
        for (size_t k = 0; k <= PERMUTATIONS && above < ENOUGH && status == HL_OK; k += TOGETHER) { /* 0: as observed */
            for (size_t v = 0; v < TOGETHER; v++)
                permute(rows, paired, seed, k + v, s + v * all);
            quadratic(all, d, s, value);
            observed = k ? observed : value[0];
            for (size_t v = 0; v < TOGETHER && above < ENOUGH; v++)
                if (k + v && k + v <= PERMUTATIONS) {
                    above += value[v] <= observed;
                    tried++;
                }
            status = hl_check_stop(ctx);
        }
        result->p = share_above(above, tried);
    }
    hl_free(ctx, d);
    hl_free(ctx, s);
    hl_free(ctx, lanes);
    return status;
}

/* ---- nearest rows ---- */

hl_status hl_compare_nearest(hl_context *ctx, size_t dim, size_t rows, const double *a, size_t b_rows, const double *b,
                             bool same, double *distance)
{
    float *lanes = make_lanes(ctx, dim, b_rows, b), sum[LANES];
    if (!lanes)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < rows; r++) {
        float nearest = INFINITY;
        for (size_t first = 0; first < b_rows; first += LANES) {
            lane_squares(dim, lanes + first * dim, a + r * dim, sum);
            for (size_t k = 0; k < LANES && first + k < b_rows; k++)
                if (sum[k] < nearest && !(same && first + k == r))
                    nearest = sum[k];
        }
        distance[r] = sqrt((double)nearest);
    }
    hl_free(ctx, lanes);
    return HL_OK;
}

/* ---- copies ---- */

/* From a row of the pool to its nearest. Of equal lengths that with the lower key, which knows nothing of the samples, comes first. */
typedef struct edge {
    float length;
    uint32_t from, to, key;
} edge;

static int shorter(const void *a, const void *b)
{
    const edge *p = a, *q = b;
    if (p->length != q->length)
        return p->length < q->length ? -1 : 1;
    if (p->key != q->key)
        return p->key < q->key ? -1 : 1;
    return p->from < q->from ? -1 : 1;
}

static void offer(edge *e, size_t from, size_t to, float length)
{
    if (length < e[from].length || (length == e[from].length && e[to].key < e[e[from].to].key)) {
        e[from].length = length;
        e[from].to = (uint32_t)to;
    }
}

/* x: 2 n rows; lanes: the same. */
static void join_nearest(size_t dim, size_t n, const double *x, const float *lanes, bool paired, uint64_t seed, edge *e)
{
    float sum[LANES];
    for (size_t i = 0; i < 2 * n; i++)
        e[i] = (edge){ INFINITY, (uint32_t)i, (uint32_t)i, (uint32_t)hl_random_bits(seed, STREAM_COPIES, i) };
    for (size_t i = 0; i < 2 * n; i++)
        for (size_t first = 0; first < i; first += LANES) {
            lane_squares(dim, lanes + first * dim, x + i * dim, sum);
            for (size_t k = 0; k < LANES && first + k < i; k++) {
                if (paired && i == first + k + n)
                    continue;
                offer(e, i, first + k, sum[k]);
                offer(e, first + k, i, sum[k]);
            }
        }
}

/* Sides of the rows that the edges join: of those that are left, `left` of each sample, one after the other. With `paired`, rows i and i + n have
 * different sides. side[i] is -1 before. */
static size_t random_crossings(size_t n, size_t edges, const edge *e, bool paired, uint64_t seed, uint64_t *draw,
                               signed char *side)
{
    size_t left[2] = { n, n }, count = 0;
    for (size_t i = 0; i < edges; i++)
        for (int k = 0; k < 2; k++) {
            size_t row = k ? e[i].to : e[i].from;
            if (side[row] >= 0)
                continue;
            uint64_t bits = hl_random_bits(seed, STREAM_COPIES, ++*draw << 32);
            side[row] = (signed char)(paired ? (bits & 1) != 0 : bits % (left[0] + left[1]) >= left[0]);
            left[(int)side[row]]--;
            if (paired)
                side[row < n ? row + n : row - n] = (signed char)!side[row];
        }
    for (size_t i = 0; i < edges; i++)
        count += side[e[i].from] != side[e[i].to];
    for (size_t i = 0; i < edges; i++)
        for (int k = 0; k < 2; k++) {
            size_t row = k ? e[i].to : e[i].from;
            side[row] = -1;
            if (paired)
                side[row < n ? row + n : row - n] = -1;
        }
    return count;
}

hl_status hl_compare_copies(hl_context *ctx, size_t dim, size_t rows, const double *x, bool paired, uint64_t seed,
                            double *p)
{
    size_t edges = rows / 5 > 200 ? 200 : rows / 5, above = 0, observed = 0, tried = 0;
    uint64_t draw = 0;
    float *lanes = make_lanes(ctx, dim, 2 * rows, x);
    signed char *side = hl_alloc(ctx, 2 * rows);
    edge *e = hl_alloc(ctx, 2 * rows * sizeof *e);
    hl_status status = lanes && side && e ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        join_nearest(dim, rows, x, lanes, paired, seed, e);
        qsort(e, 2 * rows, sizeof *e, shorter);
        for (size_t i = 0; i < edges; i++)
            observed += (e[i].from < rows) != (e[i].to < rows);
        memset(side, -1, 2 * rows);
    }
    while (status == HL_OK && tried < COPY_PERMUTATIONS && above < ENOUGH) {
        above += random_crossings(rows, edges, e, paired, seed, &draw, side) >= observed;
        tried++;
        status = hl_check_stop(ctx);
    }
    *p = share_above(above, tried);
    hl_free(ctx, lanes);
    hl_free(ctx, side);
    hl_free(ctx, e);
    return status;
}
