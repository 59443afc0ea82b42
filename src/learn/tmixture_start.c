/* tmixture_start.c - where EM begins: clusters of rows by k-means.
 *
 * Which columns the distances are of decides more than the seed: with 64 parts on the normal scores of heavy-tailed columns EM ends
 * 0.3 nats higher than on the columns themselves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linear.h"
#include "learn/tmixture_panels.h"

enum { MEANS_STEPS = 30, STREAM_MEANS = 34 };

/* Of s [d][d] the lower triangle is read. */
bool hl_tmixture_cholesky(size_t d, const double *s, double *l)
{
    memset(l, 0, d * d * sizeof *l);
    for (size_t i = 0; i < d; i++) {
        memcpy(l + i * d, s + i * d, (i + 1) * sizeof *l);
        double pivot = hl_cholesky_row(i, l, d, l + i * d);
        if (!(pivot > 0))
            return false;
        l[i * d + i] = sqrt(pivot);
    }
    return true;
}

/* ---- order ---- */

typedef struct arranger {
    size_t dim, stride, leaf;
    const double *x;
} arranger;

/* Does row a come before row b by a column? Rows of equal values by their place. */
static bool precedes(const arranger *w, size_t column, uint32_t a, uint32_t b)
{
    double x = w->x[a * w->stride + column], y = w->x[b * w->stride + column];
    return x < y || (x == y && a < b);
}

/* The first `middle` rows become those that come before the others (Hoare's selection). */
static void select_rows(const arranger *w, size_t column, uint32_t *order, size_t count, size_t middle)
{
    size_t low = 0, high = count - 1;
    while (low < high) {
        uint32_t pivot = order[low + (high - low) / 2];
        size_t i = low, j = high;
        while (i <= j) {
            while (precedes(w, column, order[i], pivot))
                i++;
            while (precedes(w, column, pivot, order[j]))
                j--;
            if (i > j)
                break;
            uint32_t swap = order[i];
            order[i++] = order[j];
            order[j] = swap;
            if (j == 0)
                break;
            j--;
        }
        if (middle <= j)
            high = j;
        else if (middle >= i)
            low = i;
        else
            return;
    }
}

static size_t widest_column(const arranger *w, const uint32_t *order, size_t count)
{
    size_t widest = 0;
    double most = -1;
    for (size_t i = 0; i < w->dim; i++) {
        double mean = 0, square = 0;
        for (size_t r = 0; r < count; r++)
            mean += w->x[order[r] * w->stride + i] / (double)count;
        for (size_t r = 0; r < count; r++)
            square += pow(w->x[order[r] * w->stride + i] - mean, 2);
        if (square > most) {
            most = square;
            widest = i;
        }
    }
    return widest;
}

static void arrange(const arranger *w, uint32_t *order, size_t count)
{
    if (count <= w->leaf)
        return;
    size_t leaves = (count + w->leaf - 1) / w->leaf, middle = leaves / 2 * w->leaf;
    select_rows(w, widest_column(w, order, count), order, count, middle);
    arrange(w, order, middle);
    arrange(w, order + middle, count - middle);
}

void hl_tmixture_arrange(size_t rows, size_t dim, const double *x, size_t stride, size_t leaf, uint32_t *order)
{
    const arranger w = { dim, stride, leaf, x };
    for (size_t r = 0; r < rows; r++)
        order[r] = (uint32_t)r;
    arrange(&w, order, rows);
}

/* ---- k-means ---- */

typedef struct means {
    size_t rows, dim, parts;
    const double *x;                 /* [rows][dim] */
    double *centre;                  /* [parts][dim] */
    double *distance, *trial, *next; /* [rows]: from the nearest centre; with a candidate; with the best of them */
    uint32_t *nearest;               /* the centre of each row */
} means;

static double squared_distance(const double *a, const double *b, size_t dim)
{
    double sum = 0;
    for (size_t i = 0; i < dim; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* The row where the running sum of squared distances passes u of their total. */
static size_t draw_row(const means *k, double u)
{
    double total = 0, sum = 0;
    size_t chosen = 0;
    for (size_t r = 0; r < k->rows; r++)
        total += k->distance[r];
    for (size_t r = 0; r < k->rows; r++) {
        sum += k->distance[r];
        if (k->distance[r] > 0)
            chosen = r;
        if (sum >= u * total && k->distance[r] > 0)
            break;
    }
    return chosen;
}

/* Squared distances of all rows from their nearest centre if this row becomes one, to `to`; returns their sum. */
static double add_centre(const means *k, size_t row, bool first, double *to)
{
    const double *c = k->x + row * k->dim;
    double sum = 0;
    for (size_t r = 0; r < k->rows; r++) {
        double d = squared_distance(k->x + r * k->dim, c, k->dim);
        sum += to[r] = first || d < k->distance[r] ? d : k->distance[r];
    }
    return sum;
}

/* Greedy k-means++: candidates for a centre are rows, drawn with probability proportional to their squared distance from the centres
 * before; of 2 + log(parts) candidates the one that leaves the smallest sum of distances is taken. */
static void choose_centres(means *k, uint64_t seed)
{
    size_t candidates = 2 + (size_t)log((double)k->parts);
    for (size_t r = 0; r < k->rows; r++)
        k->distance[r] = 1;
    for (size_t j = 0; j < k->parts; j++) {
        double least = INFINITY;
        size_t chosen = 0;
        for (size_t i = 0; i < (j ? candidates : 1); i++) {
            size_t row = draw_row(k, hl_random_uniform(seed, STREAM_MEANS, j + i * k->parts));
            double sum = add_centre(k, row, j == 0, k->trial);
            if (sum < least) {
                least = sum;
                chosen = row;
                double *keep = k->trial;
                k->trial = k->next;
                k->next = keep;
            }
        }
        memcpy(k->centre + j * k->dim, k->x + chosen * k->dim, k->dim * sizeof *k->centre);
        double *keep = k->distance;
        k->distance = k->next;
        k->next = keep;
    }
}

/* Returns whether a row has changed its centre. */
static bool move_centres(means *k, double *count)
{
    bool changed = false;
    for (size_t r = 0; r < k->rows; r++) {
        double best = INFINITY;
        uint32_t before = k->nearest[r];
        for (size_t j = 0; j < k->parts; j++) {
            double d = squared_distance(k->x + r * k->dim, k->centre + j * k->dim, k->dim);
            if (d < best) {
                best = d;
                k->nearest[r] = (uint32_t)j;
            }
        }
        changed = changed || k->nearest[r] != before;
    }
    memset(count, 0, k->parts * sizeof *count);
    for (size_t r = 0; r < k->rows; r++)
        count[k->nearest[r]]++;
    for (size_t j = 0; j < k->parts; j++)
        for (size_t i = 0; i < k->dim && count[j] > 0; i++)
            k->centre[j * k->dim + i] = 0;
    for (size_t r = 0; r < k->rows; r++)
        for (size_t i = 0; i < k->dim; i++)
            k->centre[k->nearest[r] * k->dim + i] += k->x[r * k->dim + i] / count[k->nearest[r]];
    return changed;
}

/* ---- spaces ---- */

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many of the sorted values are less than x, or not greater. */
static size_t count_below(const double *sorted, size_t rows, double x, bool equal)
{
    size_t low = 0, high = rows;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sorted[middle] < x || (equal && sorted[middle] == x))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A column's values become the quantiles of the normal distribution for their ranks; equal values share theirs. */
static void score_column(size_t rows, size_t dim, double *x, double *sorted)
{
    for (size_t r = 0; r < rows; r++)
        sorted[r] = x[r * dim];
    qsort(sorted, rows, sizeof *sorted, compare);
    for (size_t r = 0; r < rows; r++) {
        size_t twice = count_below(sorted, rows, x[r * dim], false) + count_below(sorted, rows, x[r * dim], true);
        x[r * dim] = hl_normal_quantile(0.5 * (double)twice / (double)rows);
    }
}

/* Rows of mean 0 become L^-1 times themselves, L L' being their covariance. `work` has room for 2 dim^2 values. */
static void whiten(size_t rows, size_t dim, double *x, double *work)
{
    double *l = work + dim * dim;
    memset(work, 0, dim * dim * sizeof *work);
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < dim; i++)
            for (size_t j = 0; j <= i; j++)
                work[i * dim + j] += x[r * dim + i] * x[r * dim + j] / (double)rows;
    for (size_t i = 0; i < dim; i++)
        work[i * dim + i] += 1e-3;
    if (!hl_tmixture_cholesky(dim, work, l))
        return;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < dim; i++) {
            for (size_t j = 0; j < i; j++)
                x[r * dim + i] -= l[i * dim + j] * x[r * dim + j];
            x[r * dim + i] /= l[i * dim + i];
        }
}

hl_status hl_tmixture_cluster(hl_context *ctx, size_t rows, size_t dim, double *x, size_t parts,
                              hl_tmixture_start start, uint64_t seed, uint32_t *nearest)
{
    means k = { .rows = rows, .dim = dim, .parts = parts, .x = x, .nearest = nearest };
    double *work = hl_calloc(ctx, hl_size_mul(2 * dim, dim), sizeof *work);
    double *distances = hl_calloc(ctx, hl_size_mul(3, rows), sizeof *distances);
    k.centre = hl_calloc(ctx, hl_size_mul(parts, dim + 1), sizeof *k.centre);
    hl_status status = work && distances && k.centre ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; status == HL_OK && start != HL_START_COLUMNS && i < dim; i++)
        score_column(rows, dim, x + i, distances);
    if (status == HL_OK && start == HL_START_WHITE)
        whiten(rows, dim, x, work);
    k.distance = distances;
    k.trial = distances + rows;
    k.next = distances + 2 * rows;
    if (status == HL_OK)
        choose_centres(&k, seed);
    for (int i = 0; status == HL_OK && i < MEANS_STEPS; i++)
        if (!move_centres(&k, k.centre + parts * dim) && i > 0)
            break;
    hl_free(ctx, work);
    hl_free(ctx, distances);
    hl_free(ctx, k.centre);
    return status;
}
