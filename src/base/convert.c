/* convert.c - arrays between double and the precision of a plan. */
#include <string.h>

#include "base/base.h"

void hl_to_precision(hl_dtype dtype, size_t count, const double *from, void *to)
{
    if (dtype == HL_F64) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    float *restrict f = to;
    for (size_t i = 0; i < count; i++)
        f[i] = (float)from[i];
}

void hl_from_precision(hl_dtype dtype, size_t count, const void *from, double *to)
{
    if (dtype == HL_F64) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    const float *restrict f = from;
    for (size_t i = 0; i < count; i++)
        to[i] = f[i];
}

void hl_add_from_precision(hl_dtype dtype, size_t count, const void *from, double *to)
{
    if (dtype == HL_F64)
        for (size_t i = 0; i < count; i++)
            to[i] += ((const double *)from)[i];
    else
        for (size_t i = 0; i < count; i++)
            to[i] += ((const float *)from)[i];
}
