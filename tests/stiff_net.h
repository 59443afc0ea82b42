/* stiff_net.h - a hollow network with a given stiffness, in closed form, for the tests of implicit methods and adjoints.
 *
 *     f_i = sum_k v_k tanh(u_k x_i + s sum_m W_km h_im + b_k),    h_im = tanh(a_m + sum_(j != i) A_mj x_j)
 *
 * u_k = .5 + |N| / 2, v_k < 0 and sum u_k |v_k| = kappa; s is such that the median over dimensions and rows of (sum of the
 * off-diagonal of a row of J) / |diagonal| is c at the start. Parameters are (u, v, b). */
#ifndef HL_TESTS_STIFF_NET_H
#define HL_TESTS_STIFF_NET_H

#include "hollow/ode.h"
#include "support.h"

enum { NET_D = 32, NET_H = 4, NET_K = 8, NET_PARAMS = 3 * NET_K, NET_ROWS = 8 };

typedef struct stiff_net {
    double u[NET_K], v[NET_K], b[NET_K]; /* first, in the order of gparam */
    double w[NET_K][NET_H], a[NET_H], mix[NET_H][NET_D], s;
    double x0[NET_ROWS * NET_D];
} stiff_net;

/* A row's values on the way to f. */
typedef struct stiff_net_row {
    double h[NET_D][NET_H], tau[NET_D][NET_K]; /* of tanh */
} stiff_net_row;

static inline void stiff_net_eval(const stiff_net *net, const double *x, stiff_net_row *to)
{
    for (int m = 0; m < NET_H; m++) {
        double q = net->a[m];
        for (int j = 0; j < NET_D; j++)
            q += net->mix[m][j] * x[j];
        for (int i = 0; i < NET_D; i++)
            to->h[i][m] = tanh(q - net->mix[m][i] * x[i]);
    }
    for (int i = 0; i < NET_D; i++)
        for (int k = 0; k < NET_K; k++) {
            double z = net->u[k] * x[i] + net->b[k];
            for (int m = 0; m < NET_H; m++)
                z += net->s * net->w[k][m] * to->h[i][m];
            to->tau[i][k] = tanh(z);
        }
}

static inline double slope(double y)
{
    return 1 - y * y;
}

static inline int stiff_net_rhs(void *user, const hl_rows *at, double *dy)
{
    const stiff_net *net = user;
    stiff_net_row row;
    for (size_t r = 0; r < at->count; r++) {
        stiff_net_eval(net, at->y + r * NET_D, &row);
        for (size_t i = 0; i < NET_D; i++) {
            dy[r * NET_D + i] = 0;
            for (int k = 0; k < NET_K; k++)
                dy[r * NET_D + i] += net->v[k] * row.tau[i][k];
        }
    }
    return 0;
}

static inline int stiff_net_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    const stiff_net *net = user;
    stiff_net_row row;
    if (dy)
        stiff_net_rhs(user, at, dy);
    for (size_t r = 0; r < at->count; r++) {
        stiff_net_eval(net, at->y + r * NET_D, &row);
        for (size_t i = 0; i < NET_D; i++) {
            diagonal[r * NET_D + i] = 0;
            for (int k = 0; k < NET_K; k++)
                diagonal[r * NET_D + i] += net->v[k] * net->u[k] * slope(row.tau[i][k]);
        }
    }
    return 0;
}

static inline int stiff_net_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    const stiff_net *net = user;
    stiff_net_row row;
    for (size_t r = 0; r < at->count; r++) {
        const double *dx = v + r * NET_D;
        double dq[NET_H] = { 0 };
        stiff_net_eval(net, at->y + r * NET_D, &row);
        for (int m = 0; m < NET_H; m++)
            for (int j = 0; j < NET_D; j++)
                dq[m] += net->mix[m][j] * dx[j];
        for (int i = 0; i < NET_D; i++) {
            double sum = 0;
            for (int k = 0; k < NET_K; k++) {
                double dz = net->u[k] * dx[i];
                for (int m = 0; m < NET_H; m++)
                    dz += net->s * net->w[k][m] * slope(row.h[i][m]) * (dq[m] - net->mix[m][i] * dx[i]);
                sum += net->v[k] * slope(row.tau[i][k]) * dz;
            }
            jv[r * NET_D + (size_t)i] = sum;
        }
    }
    return 0;
}

static inline int stiff_net_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    const stiff_net *net = user;
    stiff_net_row row;
    for (size_t r = 0; r < at->count; r++) {
        const double *x = at->y + r * NET_D, *wr = w + r * NET_D;
        double gq[NET_H] = { 0 }, gh[NET_D][NET_H], *gx = gy + r * NET_D;
        stiff_net_eval(net, x, &row);
        for (int i = 0; i < NET_D; i++) {
            gx[i] = 0;
            for (int m = 0; m < NET_H; m++)
                gh[i][m] = 0;
            for (int k = 0; k < NET_K; k++) {
                double gz = wr[i] * net->v[k] * slope(row.tau[i][k]);
                gx[i] += gz * net->u[k];
                for (int m = 0; m < NET_H; m++)
                    gh[i][m] += net->s * gz * net->w[k][m] * slope(row.h[i][m]);
                if (gparam) {
                    gparam[k] += gz * x[i];
                    gparam[NET_K + k] += wr[i] * row.tau[i][k];
                    gparam[2 * NET_K + k] += gz;
                }
            }
            for (int m = 0; m < NET_H; m++)
                gq[m] += gh[i][m];
        }
        for (int i = 0; i < NET_D; i++)
            for (int m = 0; m < NET_H; m++)
                gx[i] += net->mix[m][i] * (gq[m] - gh[i][m]);
    }
    return 0;
}

static inline hl_system stiff_net_system(stiff_net *net)
{
    return (hl_system){ .n = NET_D,
                        .rhs = stiff_net_rhs,
                        .diagonal = stiff_net_diagonal,
                        .jvp = stiff_net_jvp,
                        .vjp = stiff_net_vjp,
                        .n_params = NET_PARAMS,
                        .user = net };
}

static inline int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of (off-diagonal row sum) / |diagonal| at x0. */
static inline double stiff_net_coupling(stiff_net *net)
{
    static double ratio[NET_ROWS * NET_D], diagonal[NET_ROWS * NET_D], sum[NET_ROWS * NET_D], v[NET_ROWS * NET_D],
        jv[NET_ROWS * NET_D];
    hl_rows at = { .count = NET_ROWS, .y = net->x0 };
    stiff_net_diagonal(net, &at, NULL, diagonal);
    memset(sum, 0, sizeof sum);
    for (size_t j = 0; j < NET_D; j++) {
        for (size_t i = 0; i < NET_ROWS * NET_D; i++)
            v[i] = i % NET_D == j;
        stiff_net_jvp(net, &at, v, jv);
        for (size_t i = 0; i < NET_ROWS * NET_D; i++)
            sum[i] += i % NET_D == j ? 0 : fabs(jv[i]);
    }
    for (size_t i = 0; i < NET_ROWS * NET_D; i++)
        ratio[i] = sum[i] / fabs(diagonal[i]);
    qsort(ratio, NET_ROWS * NET_D, sizeof *ratio, compare_doubles);
    return ratio[NET_ROWS * NET_D / 2];
}

static inline void stiff_net_make(stiff_net *net, double kappa, double c, uint64_t seed)
{
    double total = 0, low = 0, high = 64;
    fill_normal_f64(net->x0, NET_ROWS * NET_D, seed + 1);
    fill_normal_f64(net->a, NET_H, seed + 2);
    fill_normal_f64(net->w[0], NET_K * NET_H, seed + 3);
    fill_normal_f64(net->mix[0], NET_H * NET_D, seed + 4);
    fill_normal_f64(net->b, NET_K, seed + 5);
    for (uint64_t k = 0; k < NET_K; k++) {
        net->u[k] = .5 + fabs(hl_random_normal(seed, 6, k)) / 2;
        net->v[k] = -fabs(hl_random_normal(seed, 7, k));
        total += net->u[k] * fabs(net->v[k]);
    }
    for (int k = 0; k < NET_K; k++)
        net->v[k] *= (kappa > 0 ? kappa : 1) / total;
    for (int m = 0; m < NET_H; m++)
        for (int i = 0; i < NET_D; i++)
            net->mix[m][i] /= sqrt(NET_D);
    for (int step = 0; step < 50; step++) { /* the coupling grows with s */
        net->s = (low + high) / 2;
        if (stiff_net_coupling(net) > c)
            high = net->s;
        else
            low = net->s;
    }
}

#endif
