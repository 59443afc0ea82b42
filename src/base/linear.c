/* linear.c - the few lines of linear algebra that columns of data need.
 *
 * Matrices are lower triangular, row after row, `stride` values from one row to the next; the upper triangle is not read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linear.h"

/* Eight sums side by side, whatever the processor has: results are the same bits everywhere, as nothing is contracted (see CMakeLists.txt). gcc makes a copy
 * for each instruction set; the loader chooses. */
typedef double lanes __attribute__((vector_size(64)));
enum { LANES = 8, BLOCK = 4 };
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&          \
    !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

static inline __attribute__((always_inline)) void add_product(lanes *to, const double *a, const double *b)
{
    lanes x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    *to += x * y;
}

static inline __attribute__((always_inline)) double total(const lanes *s)
{
    const lanes v = *s;
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

WIDE static double dot(size_t n, const double *a, const double *b)
{
    lanes s = { 0 }, t = { 0 };
    size_t k = 0;
    for (; k + 2 * LANES <= n; k += 2 * LANES) {
        add_product(&s, a + k, b + k);
        add_product(&t, a + k + LANES, b + k + LANES);
    }
    for (; k + LANES <= n; k += LANES)
        add_product(&s, a + k, b + k);
    s += t;
    double sum = total(&s);
    for (; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* Those of BLOCK rows with one. */
WIDE static void dot_rows(size_t n, const double *row, size_t stride, const double *b, double *to)
{
    lanes s[BLOCK] = { { 0 } };
    size_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (size_t r = 0; r < BLOCK; r++)
            add_product(&s[r], row + r * stride + k, b + k);
    for (size_t r = 0; r < BLOCK; r++)
        to[r] = total(&s[r]);
    for (; k < n; k++)
        for (size_t r = 0; r < BLOCK; r++)
            to[r] += row[r * stride + k] * b[k];
}

WIDE static void axpy(size_t n, double a, const double *x, double *y)
{
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        lanes u, v;
        memcpy(&u, x + k, sizeof u);
        memcpy(&v, y + k, sizeof v);
        v += a * u;
        memcpy(y + k, &v, sizeof v);
    }
    for (; k < n; k++)
        y[k] += a * x[k];
}

WIDE static void axpy_four(size_t n, const double *a, const double *x, size_t stride, double *y)
{
    const double *x1 = x + stride, *x2 = x1 + stride, *x3 = x2 + stride;
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        lanes u, u1, u2, u3, v;
        memcpy(&u, x + k, sizeof u);
        memcpy(&u1, x1 + k, sizeof u);
        memcpy(&u2, x2 + k, sizeof u);
        memcpy(&u3, x3 + k, sizeof u);
        memcpy(&v, y + k, sizeof v);
        v += (a[0] * u + a[1] * u1) + (a[2] * u2 + a[3] * u3);
        memcpy(y + k, &v, sizeof v);
    }
    for (; k < n; k++)
        y[k] = y[k] + ((a[0] * x[k] + a[1] * x1[k]) + (a[2] * x2[k] + a[3] * x3[k]));
}

/* Copies of functions for instruction sets would be exported by the library; their callers are not. */
double hl_dot(size_t n, const double *a, const double *b)
{
    return dot(n, a, b);
}

void hl_axpy(size_t n, double a, const double *x, double *y)
{
    axpy(n, a, x, y);
}

void hl_axpy_four(size_t n, const double *a, const double *x, size_t stride, double *y)
{
    axpy_four(n, a, x, stride, y);
}

void hl_solve_lower(size_t n, const double *l, size_t stride, double *y)
{
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        double sum[BLOCK];
        dot_rows(i, l + i * stride, stride, y, sum);
        for (size_t r = 0; r < BLOCK; r++) {
            const double *row = l + (i + r) * stride + i;
            for (size_t k = 0; k < r; k++)
                sum[r] += row[k] * y[i + k];
            y[i + r] = (y[i + r] - sum[r]) / row[r];
        }
    }
    for (; i < n; i++)
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
        size_t j = 0;
        for (; j + BLOCK <= i; j += BLOCK) {
            const double *at = l + i * stride + j, minus[] = { -at[0], -at[1], -at[2], -at[3] };
            hl_axpy_four(columns, minus, y + j * columns, columns, row);
        }
        for (; j < i; j++)
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
