/* flow_support.h - what the tests of flows share. */
#ifndef HL_FLOW_SUPPORT_H
#define HL_FLOW_SUPPORT_H

#include "net_support.h"

#include "hollow/flow.h"

enum { MOST = 12 }; /* dimensions */

/* The n-th kind of discrete flow, in turn, and how many there are. */
static inline size_t discrete_count(void)
{
    size_t count = 0;
    for (const char *const *name = hl_flow_kinds(); *name; name++)
        count += !hl_flow_is_continuous(*name);
    return count;
}

static inline const char *discrete_kind(size_t n)
{
    n %= discrete_count();
    for (const char *const *name = hl_flow_kinds();; name++)
        if (!hl_flow_is_continuous(*name) && n-- == 0)
            return *name;
}

/* log |det A| by elimination with pivots; A is destroyed. */
static inline double log_determinant(size_t n, double a[MOST][MOST])
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) {
        size_t pivot = k;
        for (size_t i = k; i < n; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k]))
                pivot = i;
        for (size_t j = 0; j < n; j++) {
            double swap = a[k][j];
            a[k][j] = a[pivot][j];
            a[pivot][j] = swap;
        }
        sum += log(fabs(a[k][k]));
        for (size_t i = k + 1; i < n; i++)
            for (size_t j = n; j-- > k;)
                a[i][j] -= a[i][k] / a[k][k] * a[k][j];
    }
    return sum;
}

#endif
