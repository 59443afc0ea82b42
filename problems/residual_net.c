/* residual_net.c - see residual_net.h. */
#include "residual_net.h"

#include "numbers.h"
#include "program/program.h"

enum { D = STIFF_NET_DIM };

static int add_rest(residual_net *net, const hl_rows *at, double *f)
{
    net->rows += at->count;
    for (size_t r = 0; r < at->count; r++)
        for (size_t i = 0; i < D; i++)
            f[r * D + i] += at->y[r * D + i] - net->target[at->index[r] * D + i];
    return 0;
}

static int rhs(void *user, const hl_rows *at, double *f)
{
    residual_net *net = user;
    int value = net->g.rows.rhs(net->g.rows.user, at, f);
    return value ? value : add_rest(net, at, f);
}

static int diagonal(void *user, const hl_rows *at, double *f, double *d)
{
    residual_net *net = user;
    int value = net->g.rows.diagonal(net->g.rows.user, at, f, d);
    for (size_t i = 0; i < at->count * D; i++)
        d[i] += 1;
    return value || !f ? value : add_rest(net, at, f);
}

static int jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    residual_net *net = user;
    int value = net->g.rows.jvp(net->g.rows.user, at, v, jv);
    for (size_t i = 0; i < at->count * D; i++)
        jv[i] += v[i];
    return value;
}

hl_status residual_net_create(residual_net *net, hl_context *ctx, double lipschitz, double sign, double coupling,
                              uint64_t seed)
{
    hl_status status = stiff_net_create(&net->g, ctx, 1, coupling, seed, HL_F64);
    size_t index[RESIDUAL_ROWS];
    double t[RESIDUAL_ROWS] = { 0 };
    if (status != HL_OK)
        return status;
    stiff_net_scale(&net->g, -sign * lipschitz / stiff_net_lipschitz(&net->g)); /* D g < 0 before */
    for (size_t r = 0; r < RESIDUAL_ROWS; r++)
        index[r] = r;
    for (size_t i = 0; i < RESIDUAL_SIZE; i++)
        net->answer[i] = hl_random_normal(seed + 4, 0, i);
    hl_rows at = { RESIDUAL_ROWS, index, t, net->answer };
    net->g.rows.rhs(net->g.rows.user, &at, net->target);
    for (size_t i = 0; i < RESIDUAL_SIZE; i++)
        net->target[i] += net->answer[i];
    net->rows = 0;
    net->system = (hl_system){ .n = D, .rhs = rhs, .diagonal = diagonal, .jvp = jvp, .user = net };
    return HL_OK;
}

void residual_net_free(residual_net *net)
{
    stiff_net_free(&net->g);
}
