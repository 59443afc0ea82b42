/* stiff_net.h - hollow networks of a given stiffness, as systems of ordinary differential equations.
 *
 *     f_i = sum_k v_k tanh(u_k x_i + s w_k . h_i),    u_k = .5 + |N| / 2,  v_k < 0,  sum u_k |v_k| = kappa
 *
 * h is a random conditioner, and s is such that the median over dimensions and rows of (sum of the off-diagonal of a row of J) /
 * |diagonal| is c at the start x0 ~ N(0, I). The diagonal is then about -kappa / 2 to -kappa. The tests use this file, too. */
#ifndef PROBLEMS_STIFF_NET_H
#define PROBLEMS_STIFF_NET_H

#include "hollow/hollow.h"

enum { STIFF_NET_DIM = 32, STIFF_NET_ROWS = 8, STIFF_NET_SIZE = STIFF_NET_DIM * STIFF_NET_ROWS };

typedef struct stiff_net {
    hl_net *net;
    hl_field *field;
    double x0[STIFF_NET_SIZE];
    hl_system rows; /* STIFF_NET_ROWS rows of STIFF_NET_DIM values */
    hl_system flat; /* the same as one row of STIFF_NET_SIZE values; borrows this struct; rhs only */
} stiff_net;

/* kappa 0: a random network as hl_net_init makes it; c is then ignored. Free it even after a failure. */
hl_status stiff_net_create(stiff_net *s, hl_context *ctx, double kappa, double c, uint64_t seed, hl_dtype dtype);
void stiff_net_free(stiff_net *s);
/* Set u and v of a network whose transformer has one hidden layer; kappa < 0 makes the diagonal positive. */
void stiff_net_weights(const hl_net *net, double kappa, uint64_t seed);
/* Multiply the network by a number. */
void stiff_net_scale(stiff_net *s, double factor);
/* The largest singular value of J over some points, by the power method. */
double stiff_net_lipschitz(const stiff_net *s);

#endif
