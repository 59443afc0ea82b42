/* linear.c - triangular matrices and sorting: the few lines of linear algebra that columns of data need.
 *
 * Matrices are lower triangular, row after row, `stride` values from one row to the next; the upper triangle is not read. */
#include <math.h>
#include <stdlib.h>

#include "base/linear.h"

void hl_solve_lower(size_t n, const double *l, size_t stride, double *y)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < i; j++)
            y[i] -= l[i * stride + j] * y[j];
        y[i] /= l[i * stride + i];
    }
}

void hl_solve_lower_transposed(size_t n, const double *l, size_t stride, double *y)
{
    for (size_t i = n; i-- > 0;) {
        for (size_t j = i + 1; j < n; j++)
            y[i] -= l[j * stride + i] * y[j];
        y[i] /= l[i * stride + i];
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
    for (size_t k = 0; k < i; k++)
        row[i] -= row[k] * row[k];
    return row[i];
}

double hl_cholesky(size_t n, double *a, double floor)
{
    double least = 1;
    for (size_t i = 0; i < n; i++) {
        double variance = a[i * n + i], pivot = hl_cholesky_row(i, a, n, a + i * n);
        least = fmin(least, pivot / variance);
        a[i * n + i] = sqrt(fmax(pivot, floor));
    }
    return least;
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
