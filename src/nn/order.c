/* order.c - an order in which related columns stand near each other, as the tree wants it.
 *
 * Chains of columns are joined at their ends, the most correlated ends first (|correlation|, each column at most two
 * neighbours, no circles: Kruskal's algorithm for a path), until one chain is left. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/net.h"

#define MAX_COLUMNS 8192 /* all pairs are compared */

typedef struct pair {
    float weight;
    uint32_t a, b;
} pair;

/* Columns to mean 0 and length 1, as [dim][rows]; constant columns become 0. */
static void standardise(size_t rows, size_t dim, const double *values, float *to)
{
    for (size_t c = 0; c < dim; c++) {
        double mean = 0, square = 0;
        for (size_t r = 0; r < rows; r++)
            mean += values[r * dim + c] / (double)rows;
        for (size_t r = 0; r < rows; r++)
            square += (values[r * dim + c] - mean) * (values[r * dim + c] - mean);
        double scale = square > 0 ? 1 / sqrt(square) : 0;
        for (size_t r = 0; r < rows; r++)
            to[c * rows + r] = (float)((values[r * dim + c] - mean) * scale);
    }
}

static float correlation(const float *a, const float *b, size_t rows)
{
    float part[16] = { 0 }, sum = 0;
    size_t r = 0;
    for (; r + 16 <= rows; r += 16)
        for (size_t k = 0; k < 16; k++)
            part[k] += a[r + k] * b[r + k];
    for (; r < rows; r++)
        sum += a[r] * b[r];
    for (size_t k = 0; k < 16; k++)
        sum += part[k];
    return fabsf(sum);
}

/* Strongest first; equal ones by column, so that the order is always the same. */
static int compare(const void *left, const void *right)
{
    const pair *p = left, *q = right;
    if (p->weight != q->weight)
        return p->weight < q->weight ? 1 : -1;
    if (p->a != q->a)
        return p->a < q->a ? -1 : 1;
    return p->b < q->b ? -1 : p->b > q->b;
}

static uint32_t chain_of(uint32_t *parent, uint32_t c)
{
    while (parent[c] != c)
        c = parent[c] = parent[parent[c]];
    return c;
}

/* Join the columns by the strongest pairs; neighbour[2 c], [2 c + 1] are UINT32_MAX where there is none. */
static void join(size_t dim, const pair *pairs, size_t count, uint32_t *parent, uint32_t *neighbour)
{
    memset(neighbour, 0xff, 2 * dim * sizeof *neighbour);
    for (uint32_t c = 0; c < dim; c++)
        parent[c] = c;
    for (size_t i = 0; i < count; i++) {
        uint32_t a = pairs[i].a, b = pairs[i].b;
        if (neighbour[2 * a + 1] != UINT32_MAX || neighbour[2 * b + 1] != UINT32_MAX)
            continue;
        uint32_t ca = chain_of(parent, a), cb = chain_of(parent, b);
        if (ca == cb)
            continue;
        parent[ca] = cb;
        neighbour[2 * a + (neighbour[2 * a] != UINT32_MAX)] = b;
        neighbour[2 * b + (neighbour[2 * b] != UINT32_MAX)] = a;
    }
}

/* Walk the one chain from the end with the smaller column. */
static void walk(size_t dim, const uint32_t *neighbour, size_t *order)
{
    uint32_t at = 0, before = UINT32_MAX;
    while (dim > 1 && neighbour[2 * at + 1] != UINT32_MAX)
        at++;
    for (size_t i = 0; i < dim; i++) {
        order[i] = at;
        uint32_t next = neighbour[2 * at] != before ? neighbour[2 * at] : neighbour[2 * at + 1];
        before = at;
        at = next;
    }
}

hl_status hl_order_columns(hl_context *ctx, size_t rows, size_t dim, const double *values, size_t *order)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!values || !order || dim == 0 || rows < 2)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_order_columns: needs at least two rows and one column");
    if (dim > MAX_COLUMNS)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_order_columns: %zu columns; all pairs are compared, so at most %d", dim,
                       MAX_COLUMNS);
    for (size_t i = 0; i < rows * dim; i++)
        if (!isfinite(values[i]))
            return hl_fail_at(ctx, HL_ERR_NOT_FINITE, hl_at(i / dim, i % dim), "the data are not finite");
    size_t count = 0;
    float *column = hl_calloc(ctx, hl_size_mul(dim, rows), sizeof *column);
    pair *pairs = hl_calloc(ctx, dim * (dim - 1) / 2 + 1, sizeof *pairs);
    uint32_t *scratch = hl_calloc(ctx, dim, 3 * sizeof *scratch);
    hl_status status = column && pairs && scratch ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        standardise(rows, dim, values, column);
        for (uint32_t a = 0; a < dim; a++)
            for (uint32_t b = a + 1; b < dim; b++)
                pairs[count++] = (pair){ correlation(column + a * rows, column + b * rows, rows), a, b };
        qsort(pairs, count, sizeof *pairs, compare);
        join(dim, pairs, count, scratch, scratch + dim);
        walk(dim, scratch + dim, order);
    }
    hl_free(ctx, column);
    hl_free(ctx, pairs);
    hl_free(ctx, scratch);
    return status;
}
