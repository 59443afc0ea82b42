/* numbers.h - what benchmarks, figures and problems need of numbers. */
#ifndef PROBLEMS_NUMBERS_H
#define PROBLEMS_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

#include "hollow/hollow.h"

double numbers_cpu_time(void); /* seconds that the program has been on a processor */
void numbers_sort(double *values, size_t count);
double numbers_median(double *values, size_t count); /* sorts the values */

/* Elements of arrays in either precision. */
double numbers_get(hl_dtype dtype, const void *array, size_t index);
void numbers_set(hl_dtype dtype, void *array, size_t index, double value);

#endif
