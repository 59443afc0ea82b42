/* linear.c - the few lines of linear algebra that columns of data need.
 *
 * Matrices are lower triangular, row after row, `stride` values from one row to the next; the upper triangle is not read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linear.h"

typedef double lanes __attribute__((vector_size(16)));
enum { LANES = 2 };

static lanes get(const double *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

double hl_dot(size_t n, const double *a, const double *b)
{
    lanes s[4] = { { 0 } };
    size_t k = 0;
    for (; k + 4 * LANES <= n; k += 4 * LANES)
        for (size_t l = 0; l < 4; l++)
            s[l] += get(a + k + l * LANES) * get(b + k + l * LANES);
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    double sum = s[0][0] + s[0][1];
    for (; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

void hl_axpy(size_t n, double a, const double *x, double *y)
{
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        lanes v = get(y + k) + a * get(x + k);
        memcpy(y + k, &v, sizeof v);
    }
    for (; k < n; k++)
        y[k] += a * x[k];
}

void hl_axpy_four(size_t n, const double *a, const double *x, size_t stride, double *y)
{
    const double *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        lanes v = get(y + k) + (a[0] * get(x + k) + a[1] * get(x1 + k)) + (a[2] * get(x2 + k) + a[3] * get(x3 + k));
        memcpy(y + k, &v, sizeof v);
    }
    for (; k < n; k++)
        y[k] = y[k] + (a[0] * x[k] + a[1] * x1[k]) + (a[2] * x2[k] + a[3] * x3[k]);
}

void hl_solve_lower(size_t n, const double *l, size_t stride, double *y)
{
    for (size_t i = 0; i < n; i++)
        y[i] = (y[i] - hl_dot(i, l + i * stride, y)) / l[i * stride + i];
}

void hl_solve_lower_transposed(size_t n, const double *l, size_t stride, double *y)
{
    for (size_t i = n; i-- > 0;) {
        y[i] /= l[i * stride + i];
        hl_axpy(i, -y[i], l + i * stride, y);
    }
}

void hl_solve_lower_rows(size_t n, const double *l, size_t stride, size_t columns, double *y)
{
    for (size_t i = 0; i < n; i++) {
        double *row = y + i * columns, inverse = 1 / l[i * stride + i];
        for (size_t j = 0; j < i; j++)
            hl_axpy(columns, -l[i * stride + j], y + j * columns, row);
        for (size_t k = 0; k < columns; k++)
            row[k] *= inverse;
    }
}

void hl_multiply_lower(size_t n, const double *l, size_t stride, double *y)
{
    for (size_t i = n; i-- > 0;) {
        y[i] *= l[i * stride + i];
        for (size_t j = 0; j < i; j++)
            y[i] += l[i * stride + j] * y[j];
    }
}

double hl_cholesky_row(size_t i, const double *l, size_t stride, double *row)
{
    hl_solve_lower(i, l, stride, row);
    return row[i] -= hl_dot(i, row, row);
}

double hl_cholesky(size_t n, double *a, double floor)
{
    double least = 1;
    for (size_t i = 0; i < n; i++) {
        double variance = a[i * n + i], pivot = hl_cholesky_row(i, a, n, a + i * n);
        least = fmin(least, pivot > 0 && isfinite(pivot) ? pivot / variance : 0);
        if (least == 0 && floor == 0)
            return 0;
        a[i * n + i] = sqrt(fmax(pivot, floor));
    }
    return least;
}

void hl_standardise(size_t rows, size_t dim, const double *mean, const double *deviation, size_t stride,
                    const double *x, double *z)
{
    for (size_t r = 0; r < rows; r++, x += dim, z += dim)
        for (size_t i = 0; i < dim; i++)
            z[i] = (x[i] - mean[i * stride]) / deviation[i * stride];
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void hl_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
}
