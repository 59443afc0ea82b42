/* numbers.c - what benchmarks, figures and problems need of numbers: statistics, arrays of either precision. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "numbers.h"

double numbers_cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void numbers_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
}

double numbers_median(double *values, size_t count)
{
    if (!count)
        return NAN;
    numbers_sort(values, count);
    return 0.5 * (values[(count - 1) / 2] + values[count / 2]);
}

double numbers_get(hl_dtype dtype, const void *array, size_t index)
{
    return dtype == HL_F32 ? (double)((const float *)array)[index] : ((const double *)array)[index];
}

void numbers_set(hl_dtype dtype, void *array, size_t index, double value)
{
    if (dtype == HL_F32)
        ((float *)array)[index] = (float)value;
    else
        ((double *)array)[index] = value;
}
