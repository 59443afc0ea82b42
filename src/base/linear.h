/* linear.h - products, triangular matrices, standardised columns and sorting. A lower triangular L has `stride` values from one row to the
 * next. */
#ifndef HL_BASE_LINEAR_H
#define HL_BASE_LINEAR_H

#include <stddef.h>

double hl_dot(size_t n, const double *a, const double *b);
void hl_axpy(size_t n, double a, const double *x, double *y); /* y += a x */
/* The same of four rows of x, `stride` values apart, and four numbers: one pass over y. */
void hl_axpy_four(size_t n, const double *a, const double *x, size_t stride, double *y);

/* y becomes the solution x of L x = y, of L' x = y, and L y. */
void hl_solve_lower(size_t n, const double *l, size_t stride, double *y);
void hl_solve_lower_transposed(size_t n, const double *l, size_t stride, double *y);
/* The same of L X = Y for the rows of Y (n x columns). */
void hl_solve_lower_rows(size_t n, const double *l, size_t stride, size_t columns, double *y);
void hl_multiply_lower(size_t n, const double *l, size_t stride, double *y);

/* Row i of Cholesky's factor, from the rows before it in l: row holds i + 1 covariances and becomes the row, but for the square
 * root of its last value, which is returned: the part of a variance that the i others leave. */
double hl_cholesky_row(size_t i, const double *l, size_t stride, double *row);
/* The lower triangle of a (n x n) becomes Cholesky's factor, with squares of at least `floor` on its diagonal. Returns the least
 * share of a variance that those before it leave; 0 if a is not positive definite or not finite. */
double hl_cholesky(size_t n, double *a, double floor);

/* z = (x - mean) / deviation of rows x dim values; those of column i are at mean[i * stride] and deviation[i * stride]. x may be z. */
void hl_standardise(size_t rows, size_t dim, const double *mean, const double *deviation, size_t stride,
                    const double *x, double *z);

/* In ascending order. */
void hl_sort(double *values, size_t count);

#endif
