/* gaussian_mixture.h - the density that everyone tries first, as a measure for others: a mixture of normal distributions with full
 * covariances by EM, whose size validation rows choose. Plain code, apart from the library. */
#ifndef PROBLEMS_GAUSSIAN_MIXTURE_H
#define PROBLEMS_GAUSSIAN_MIXTURE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gaussian_rows {
    size_t rows;
    const double *x; /* rows x dim */
} gaussian_rows;

/* log p of the test rows by the mixture of 1, 2, 3, 4, 6, ... 64 parts that is best for the validation rows, and by one normal distribution,
 * to the arrays; *parts says how many. False if memory ran out. */
bool gaussian_mixture(size_t dim, gaussian_rows train, gaussian_rows valid, gaussian_rows test, double *logp,
                      double *normal, size_t *parts);

#endif
