/* reduce.c - sums, maxima and running sums along an axis, and sums over the rows. */
#include "op/op.h"

static bool axis_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    const hl_shape *s = &hl_graph_node(g, in[0])->shape;
    int axis = attr->i[0];
    (void)inputs;
    if (axis < 0 || axis >= s->rank)
        return hl_graph_fail(g, HL_ERR_SHAPE, "reduction: axis %d of a node of rank %d", axis, s->rank), false;
    *out = (hl_shape){ .rank = s->rank - 1, .batched = s->batched };
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = s->dim[i < axis ? i : i + 1];
    return true;
}

static hl_node reduction(hl_graph *g, const hl_op *op, hl_node x, int axis)
{
    return hl_check_axis(g, op->name, x, &axis) ? hl_graph_add(g, op, 1, &x, &(hl_attr){ .i = { axis } }) : HL_BAD;
}

/* y, which lacks `axis` of x's shape, stretched to it. */
static hl_node restore_axis(hl_graph *g, hl_node y, hl_node x, int axis)
{
    const hl_node_data *d = hl_graph_node(g, x);
    if (!d || !hl_graph_node(g, y))
        return HL_BAD;
    hl_shape full = d->shape, kept = d->shape;
    kept.dim[axis] = 1;
    y = hl_reshape(g, y, kept.rank, kept.dim);
    full.batched = hl_node_batched(g, y);
    return hl_broadcast_shape(g, y, &full);
}

static void sum_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    gx[0] = restore_axis(g, gy, x[0], hl_graph_node(g, y)->attr.i[0]);
}

const hl_op hl_op_sum = { .name = "sum",
                          .arity = 1,
                          .kind = HL_KIND_OTHER,
                          .code = HL_DO_SUM,
                          .local = hl_local_behind,
                          .jet_kind = HL_JET_LINEAR,
                          .shape = axis_shape,
                          .vjp = sum_vjp,
                          .domain = { -2, 2 } };

hl_node hl_sum(hl_graph *g, hl_node x, int axis)
{
    return reduction(g, &hl_op_sum, x, axis);
}

hl_node hl_mean(hl_graph *g, hl_node x, int axis)
{
    size_t n = hl_node_dim(g, x, axis);
    return hl_scale(g, n ? 1.0 / (double)n : 1, hl_sum(g, x, axis));
}

hl_node hl_sum_all(hl_graph *g, hl_node x)
{
    size_t size = hl_node_size(g, x);
    return hl_sum(g, hl_reshape(g, x, 1, &size), 0);
}

/* ---- maximum: linear in x where the maximum is taken; ties share ---- */

/* 1 / count where x is the maximum, else 0. */
static hl_node max_share(hl_graph *g, hl_node x, hl_node y, int axis)
{
    hl_node at = hl_sub(g, hl_const(g, 1), hl_less(g, x, restore_axis(g, y, x, axis)));
    return hl_div(g, at, restore_axis(g, hl_sum(g, at, axis), x, axis));
}

static void max_over_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    int axis = hl_graph_node(g, y)->attr.i[0];
    gx[0] = hl_mul(g, restore_axis(g, gy, x[0], axis), max_share(g, x[0], y, axis));
}

static hl_node max_over_jet(hl_graph *g, hl_node node, int k, const hl_node *const *x, const hl_node *y)
{
    int axis = hl_graph_node(g, node)->attr.i[0];
    return x[0][k] == HL_NONE ? HL_NONE : hl_sum(g, hl_mul(g, x[0][k], max_share(g, x[0][0], y[0], axis)), axis);
}

const hl_op hl_op_max_over = { .name = "max_over",
                               .arity = 1,
                               .kind = HL_KIND_OTHER,
                               .code = HL_DO_MAX,
                               .bend = HL_BEND_STRAIGHT,
                               .local = hl_local_behind,
                               .shape = axis_shape,
                               .vjp = max_over_vjp,
                               .jet = max_over_jet,
                               .domain = { -2, 2 } };

hl_node hl_max_over(hl_graph *g, hl_node x, int axis)
{
    return reduction(g, &hl_op_max_over, x, axis);
}

/* log sum exp(x) = m + log sum exp(x - m) for any m; with m the maximum, held fixed, nothing overflows. */
static hl_node shifted(hl_graph *g, hl_node x, int axis, hl_node *shift)
{
    *shift = hl_stop(g, hl_max_over(g, x, axis));
    return hl_exp(g, hl_sub(g, x, restore_axis(g, *shift, x, axis)));
}

hl_node hl_logsumexp(hl_graph *g, hl_node x, int axis)
{
    hl_node shift = HL_BAD;
    if (!hl_check_axis(g, "hl_logsumexp", x, &axis))
        return HL_BAD;
    hl_node e = shifted(g, x, axis, &shift);
    return hl_add(g, hl_log(g, hl_sum(g, e, axis)), shift);
}

hl_node hl_softmax(hl_graph *g, hl_node x, int axis)
{
    hl_node shift = HL_BAD;
    if (!hl_check_axis(g, "hl_softmax", x, &axis))
        return HL_BAD;
    hl_node e = shifted(g, x, axis, &shift);
    return hl_div(g, e, restore_axis(g, hl_sum(g, e, axis), e, axis));
}

/* ---- running sums ---- */

static bool cumsum_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    (void)inputs;
    *out = hl_graph_node(g, in[0])->shape;
    if (attr->i[0] < 0 || attr->i[0] >= out->rank)
        return hl_graph_fail(g, HL_ERR_SHAPE, "cumsum: axis %d of a node of rank %d", attr->i[0], out->rank), false;
    return true;
}

static void cumsum_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    hl_attr attr = hl_graph_node(g, y)->attr;
    (void)x;
    attr.i[1] = !attr.i[1];
    gx[0] = hl_graph_add(g, &hl_op_cumsum, 1, &gy, &attr);
}

const hl_op hl_op_cumsum = { .name = "cumsum",
                             .arity = 1,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_CUMSUM,
                             .local = hl_local_behind,
                             .jet_kind = HL_JET_LINEAR,
                             .shape = cumsum_shape,
                             .vjp = cumsum_vjp,
                             .domain = { -2, 2 } };

hl_node hl_cumsum(hl_graph *g, hl_node x, int axis, int reverse, int exclusive)
{
    if (!hl_check_axis(g, "hl_cumsum", x, &axis))
        return HL_BAD;
    return hl_graph_add(g, &hl_op_cumsum, 1, &x, &(hl_attr){ .i = { axis, reverse != 0, exclusive != 0 } });
}

/* ---- sum over the rows and attr.i[0] leading axes ---- */

static bool sum_rows_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    const hl_shape *s = &hl_graph_node(g, in[0])->shape;
    int lead = attr->i[0];
    (void)inputs;
    if (!s->batched)
        return hl_graph_fail(g, HL_ERR_SHAPE, "sum_rows: the node is shared, it has no rows"), false;
    *out = (hl_shape){ .rank = s->rank - lead };
    for (int i = 0; i < out->rank; i++)
        out->dim[i] = s->dim[lead + i];
    return true;
}

static void sum_rows_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    (void)y;
    gx[0] = hl_broadcast_shape(g, gy, &hl_graph_node(g, x[0])->shape);
}

static double sum_rows_work(const hl_work *w)
{
    return (double)hl_shape_size(w->x);
}

const hl_op hl_op_sum_rows = { .name = "sum_rows",
                               .arity = 1,
                               .kind = HL_KIND_OTHER,
                               .code = HL_DO_SUM_ROWS,
                               .work = sum_rows_work,
                               .local = hl_local_behind,
                               .jet_kind = HL_JET_LINEAR,
                               .over_rows = true,
                               .shape = sum_rows_shape,
                               .vjp = sum_rows_vjp,
                               .domain = { -2, 2 } };

hl_node hl_sum_rows(hl_graph *g, hl_node x)
{
    return hl_graph_add(g, &hl_op_sum_rows, 1, &x, NULL);
}
