/* linear.h - triangular matrices and sorting. A lower triangular L has `stride` values from one row to the next. */
#ifndef HL_BASE_LINEAR_H
#define HL_BASE_LINEAR_H

#include <stddef.h>

/* y becomes the solution x of L x = y, of L' x = y, and L y. */
void hl_solve_lower(size_t n, const double *l, size_t stride, double *y);
void hl_solve_lower_transposed(size_t n, const double *l, size_t stride, double *y);
void hl_multiply_lower(size_t n, const double *l, size_t stride, double *y);

/* Row i of Cholesky's factor, from the rows before it in l: row holds i + 1 covariances and becomes the row, but for the square
 * root of its last value, which is returned: the part of a variance that the i others leave. */
double hl_cholesky_row(size_t i, const double *l, size_t stride, double *row);
/* The lower triangle of a (n x n) becomes Cholesky's factor, with squares of at least `floor` on its diagonal. Returns the least
 * share of a variance that those before it leave. */
double hl_cholesky(size_t n, double *a, double floor);

/* In ascending order. */
void hl_sort(double *values, size_t count);

#endif
