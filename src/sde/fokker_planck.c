/* fokker_planck.c - the Fokker-Planck equation as graph, divided by p so that it does not vanish with p:
 *
 *   dp/dt = sum_i [ -d(f p)/dx_i + d^2(g^2 p)/dx_i^2 / 2 ]
 *   R     = d log p/dt + sum_i [ D f + f s - (g'^2 + g g'') - 2 g g' s - g^2 c / 2 ]_i
 *
 * with s = grad log p, c = p'' / p, g' = D g, g'' = D^2 g. With correlated noise, A_ij = (g g')_ij for i < j, R loses
 * sum_ij (d^2 (A_ij p) / dx_i dx_j) / p as well. */
#include "op/op.h"
#include "sde/sde.h"

/* A node or zero, negated. */
static hl_node minus(hl_graph *g, hl_node a)
{
    return a == HL_NONE ? HL_NONE : hl_neg(g, a);
}

hl_status hl_fp_build(hl_graph *g, hl_fp_nodes *n)
{
    if (!g || !n)
        return HL_ERR_INVALID;
    hl_node gdg = hl_product(g, n->g, n->dg);
    hl_node sum = hl_accumulate(g, n->df, hl_product(g, n->f, n->s));
    sum = hl_accumulate(g, sum, minus(g, hl_accumulate(g, hl_product(g, n->dg, n->dg), hl_product(g, n->g, n->d2g))));
    hl_node slope = hl_product(g, gdg, n->s), spread = hl_product(g, hl_product(g, n->g, n->g), n->c);
    if (slope != HL_NONE)
        sum = hl_accumulate(g, sum, hl_scale(g, -2, slope));
    if (spread != HL_NONE)
        sum = hl_accumulate(g, sum, hl_scale(g, -0.5, spread));
    n->residual = hl_accumulate(g, n->logp_t, sum == HL_NONE ? HL_NONE : hl_sum_all(g, sum));
    n->residual = hl_accumulate(g, n->residual, minus(g, n->cross));
    if (n->residual == HL_NONE)
        n->residual = hl_const(g, 0);
    n->residual_p = n->logp == HL_NONE ? HL_NONE : hl_mul(g, hl_exp(g, n->logp), n->residual);
    return hl_graph_status(g);
}

/* Row i of the unit matrix. */
static hl_node unit(hl_graph *g, size_t dim, size_t i)
{
    hl_node one = hl_broadcast(g, hl_const(g, 1), 1, (size_t[]){ 1 });
    hl_node parts[3];
    int count = 0;
    if (i > 0)
        parts[count++] = hl_broadcast(g, hl_const(g, 0), 1, &i);
    parts[count++] = one;
    if (i + 1 < dim)
        parts[count++] = hl_broadcast(g, hl_const(g, 0), 1, (size_t[]){ dim - 1 - i });
    return hl_concat(g, count, parts, 0);
}

/* [1], whatever the shape of the single value, or zero. */
static hl_node single(hl_graph *g, hl_node a)
{
    return hl_reshape(g, a == HL_NONE ? hl_const(g, 0) : a, 1, (size_t[]){ 1 });
}

/* One jet for each dimension i: part[i] and, for order 2, part[dim + i] become d y_i/dx_i and d^2 y_i/dx_i^2, each [1];
 * y of x's shape, or a scalar that is every y_i. */
static hl_status jets(hl_graph *g, hl_node y, hl_node x, int order, hl_node *part)
{
    size_t dim = hl_node_size(g, x);
    bool scalar = hl_node_rank(g, y) == 0;
    for (size_t i = 0; i < dim; i++) {
        hl_node cx[2] = { unit(g, dim, i), HL_NONE }, cy[2] = { HL_NONE, HL_NONE };
        hl_status status = hl_jet(g, order, 1, &x, cx, NULL, 1, &y, cy);
        if (status != HL_OK)
            return status;
        for (int k = 0; k < order; k++) {
            hl_node c = cy[k] == HL_NONE || scalar ? cy[k] : hl_slice(g, cy[k], 0, i, 1);
            part[(size_t)k * dim + i] = single(g, c == HL_NONE || k == 0 ? c : hl_scale(g, 2, c));
        }
    }
    return hl_graph_status(g);
}

/* The same as `order` nodes [dim]. */
static hl_status derive(hl_graph *g, hl_node y, hl_node x, int order, hl_node *d)
{
    size_t dim = hl_node_size(g, x);
    hl_node *part = hl_calloc(g->ctx, dim, 2 * sizeof *part);
    if (!part)
        return HL_ERR_NOMEM;
    hl_status status = jets(g, y, x, order, part);
    for (int k = 0; k < order && status == HL_OK; k++)
        d[k] = hl_concat(g, (int)dim, part + (size_t)k * dim, 0);
    hl_free(g->ctx, part);
    return status == HL_OK ? hl_graph_status(g) : status;
}

hl_status hl_fp_derive(hl_graph *g, hl_node y, hl_node x, int order, hl_node *d)
{
    if (!g || !d)
        return HL_ERR_INVALID;
    if (hl_node_rank(g, x) != 1 || hl_node_rank(g, y) != 1 || hl_node_size(g, x) != hl_node_size(g, y) || order < 1 ||
        order > 2)
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_fp_derive: x and y must be [dim] and the order 1 or 2"),
               hl_graph_status(g);
    return derive(g, y, x, order, d);
}

hl_status hl_fp_derive_density(hl_graph *g, hl_node logp, hl_node t, hl_node x, hl_fp_nodes *n)
{
    if (!g || !n)
        return HL_ERR_INVALID;
    if (hl_node_rank(g, x) != 1 || hl_node_rank(g, t) != 0 || hl_node_rank(g, logp) != 0)
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_fp_derive_density: logp and t must be scalars and x [dim]"),
               hl_graph_status(g);
    hl_node d[2], one = hl_const(g, 1);
    n->logp = logp;
    hl_status status = hl_jet(g, 1, 1, &t, &one, NULL, 1, &logp, &n->logp_t);
    if (status == HL_OK)
        status = derive(g, logp, x, 2, d);
    if (status != HL_OK)
        return status;
    n->s = d[0];
    n->c = hl_add(g, d[1], hl_mul(g, d[0], d[0]));
    return hl_graph_status(g);
}

/* p(y) / p(x) is exp(log p(y) - log p(x)), of which log p(x) does not move. */
hl_status hl_fp_add_cross(hl_graph *g, hl_node logp, hl_node x, size_t i, size_t j, hl_node a, hl_fp_nodes *n)
{
    if (!g || !n)
        return HL_ERR_INVALID;
    size_t dim = hl_node_rank(g, x) == 1 ? hl_node_size(g, x) : 0;
    if (i >= dim || j >= dim || i == j || hl_node_rank(g, logp) != 0 || hl_node_rank(g, a) != 0)
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_fp_add_cross: scalars, x [dim] and two of its columns are needed"),
               hl_graph_status(g);
    hl_node ratio = hl_mul(g, a, hl_exp(g, hl_sub(g, logp, hl_stop(g, logp)))), first = HL_NONE, second = HL_NONE;
    hl_node along_i = unit(g, dim, i), along_j = unit(g, dim, j);
    hl_status status = hl_jet(g, 1, 1, &x, &along_i, NULL, 1, &ratio, &first);
    if (status == HL_OK && first != HL_NONE)
        status = hl_jet(g, 1, 1, &x, &along_j, NULL, 1, &first, &second);
    n->cross = hl_accumulate(g, n->cross, second);
    return status == HL_OK ? hl_graph_status(g) : status;
}
