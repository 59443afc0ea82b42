/* assignment.h - which row goes with which. */
#ifndef HL_ASSIGNMENT_H
#define HL_ASSIGNMENT_H

#include <stddef.h>

/* The permutation `to` (n) with the least sum of cost[i * n + to[i]], by shortest augmenting paths: O(n^3). `work` holds 3 n + 3
 * doubles, `places` 3 n + 3 sizes. */
void hl_assign(size_t n, const double *cost, double *work, size_t *places, size_t *to);

#endif
