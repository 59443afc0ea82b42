/* residual_net.h - the inverse of y = x + g(x), g a hollow network of a given Lipschitz constant, as a root F(x) = x + g(x) - y. The
 * tests use this file, too. */
#ifndef PROBLEMS_RESIDUAL_NET_H
#define PROBLEMS_RESIDUAL_NET_H

#include "stiff_net.h"

enum { RESIDUAL_ROWS = 16, RESIDUAL_SIZE = RESIDUAL_ROWS * STIFF_NET_DIM };

typedef struct residual_net {
    stiff_net g;
    double answer[RESIDUAL_SIZE], target[RESIDUAL_SIZE]; /* x ~ N(0, I), and its y */
    size_t rows;                                         /* evaluated so far */
    hl_system system;                                    /* borrows this struct */
} residual_net;

/* `sign` is that of D g, `coupling` the median of (off-diagonal row sum of J) / |D g|. Free it even after a failure. */
hl_status residual_net_create(residual_net *net, hl_context *ctx, double lipschitz, double sign, double coupling,
                              uint64_t seed);
void residual_net_free(residual_net *net);

#endif
