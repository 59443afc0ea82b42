/* structure.c - broadcast, reshape, permute, gather and its transpose, concatenate. All are linear. */
#include <string.h>

#include "op/op.h"

/* A node, and an axis of it (negative counts from the end). Reports and returns false if either is wrong. */
bool hl_check_axis(hl_graph *g, const char *what, hl_node x, int *axis)
{
    const hl_node_data *d = hl_graph_node(g, x);
    if (!g)
        return false;
    if (!d)
        return hl_graph_fail(g, HL_ERR_INVALID, "%s: not a node of this graph", what), false;
    int a = *axis < 0 ? *axis + d->shape.rank : *axis;
    if (a < 0 || a >= d->shape.rank)
        return hl_graph_fail(g, HL_ERR_SHAPE, "%s: axis %d of a node of rank %d", what, *axis, d->shape.rank), false;
    *axis = a;
    return true;
}

/* ---- broadcast ---- */

static bool broadcast_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    hl_shape joined;
    (void)inputs;
    if (!hl_shape_join(hl_shape_of(g, in[0]), &attr->shape, &joined) || !hl_shape_equal(&joined, &attr->shape) ||
        joined.batched != attr->shape.batched) {
        char a[120], b[120];
        hl_graph_fail(g, HL_ERR_SHAPE, "broadcast: %s cannot be broadcast to %s",
                      hl_shape_text(hl_shape_of(g, in[0]), a, sizeof a), hl_shape_text(&attr->shape, b, sizeof b));
        return false;
    }
    *out = attr->shape;
    return true;
}

static void broadcast_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    (void)y;
    gx[0] = hl_sum_to(g, gy, hl_shape_of(g, x[0]));
}

const hl_op hl_op_broadcast = { .name = "broadcast",
                                .arity = 1,
                                .kind = HL_KIND_OTHER,
                                .code = HL_DO_BROADCAST,
                                .local = hl_local_always,
                                .jet_kind = HL_JET_LINEAR,
                                .shape = broadcast_shape,
                                .vjp = broadcast_vjp,
                                .domain = { -2, 2 } };

hl_node hl_broadcast_shape(hl_graph *g, hl_node x, const hl_shape *shape)
{
    const hl_node_data *d = hl_graph_node(g, x);
    if (d && d->op == &hl_op_broadcast && hl_graph_through(g, x))
        d = hl_graph_node(g, x = d->in[0]);
    if (d && hl_shape_equal(&d->shape, shape) && d->shape.batched == shape->batched)
        return x;
    return hl_graph_add(g, &hl_op_broadcast, 1, &x, &(hl_attr){ .shape = *shape });
}

hl_node hl_constant_like(hl_graph *g, double value, hl_node like)
{
    hl_shape shape = *hl_shape_of(g, like); /* a copy: a node's own moves when nodes are added */
    return hl_broadcast_shape(g, hl_const(g, value), &shape);
}

hl_node hl_broadcast(hl_graph *g, hl_node x, int rank, const size_t *dims)
{
    hl_shape shape = { .rank = rank, .batched = hl_node_batched(g, x) };
    if (!g)
        return HL_BAD;
    if (rank < 0 || rank > HL_MAX_RANK || (rank && !dims))
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_broadcast: rank %d is not in 0..%d, or the dimensions are NULL", rank,
                             HL_MAX_RANK);
    if (rank)
        memcpy(shape.dim, dims, (size_t)rank * sizeof *dims);
    return hl_broadcast_shape(g, x, &shape);
}

/* Sum the rows and as many leading axes as the target lacks, then the axes where the target has 1. */
hl_node hl_sum_to(hl_graph *g, hl_node x, const hl_shape *target)
{
    const hl_node_data *d = hl_graph_node(g, x);
    if (!d)
        return HL_BAD;
    hl_shape copy = *target, *shape = &copy; /* the target may be a node's own, which moves when nodes are added */
    int extra = d->shape.rank - shape->rank;
    if (d->shape.batched && !shape->batched) {
        int lead = extra;
        while (lead < d->shape.rank && shape->dim[lead - extra] == 1)
            lead++;
        x = hl_graph_add(g, &hl_op_sum_rows, 1, &x, &(hl_attr){ .i = { lead } });
        extra -= lead;
    }
    for (int axis = hl_node_rank(g, x) - 1; axis >= 0; axis--)
        if (axis < extra || (shape->dim[axis - extra] == 1 && hl_node_dim(g, x, axis) != 1))
            x = hl_sum(g, x, axis);
    return hl_reshape(g, x, shape->rank, shape->dim);
}

/* ---- reshape and stop: views ---- */

static bool reshape_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    (void)inputs;
    *out = attr->shape;
    out->batched = hl_shape_of(g, in[0])->batched;
    if (hl_shape_size(out) != hl_shape_size(hl_shape_of(g, in[0]))) {
        char a[120], b[120];
        hl_graph_fail(g, HL_ERR_SHAPE, "reshape: %s and %s have different numbers of values",
                      hl_shape_text(hl_shape_of(g, in[0]), a, sizeof a), hl_shape_text(out, b, sizeof b));
        return false;
    }
    return true;
}

static void reshape_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    const hl_shape *s = hl_shape_of(g, x[0]);
    (void)y;
    gx[0] = hl_reshape(g, gy, s->rank, s->dim);
}

const hl_op hl_op_reshape = { .name = "reshape",
                              .arity = 1,
                              .kind = HL_KIND_VIEW,
                              .jet_kind = HL_JET_LINEAR,
                              .shape = reshape_shape,
                              .vjp = reshape_vjp,
                              .domain = { -2, 2 } };

hl_node hl_reshape(hl_graph *g, hl_node x, int rank, const size_t *dims)
{
    hl_attr attr = { .shape = { .rank = rank } };
    const hl_node_data *d = hl_graph_node(g, x);
    if (!g)
        return HL_BAD;
    if (rank < 0 || rank > HL_MAX_RANK || (rank && !dims))
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_reshape: rank %d is not in 0..%d, or the dimensions are NULL", rank,
                             HL_MAX_RANK);
    if (rank)
        memcpy(attr.shape.dim, dims, (size_t)rank * sizeof *dims);
    if (d && d->op == &hl_op_reshape && hl_graph_through(g, x))
        d = hl_graph_node(g, x = d->in[0]);
    if (d && hl_shape_equal(&d->shape, &attr.shape))
        return x;
    return hl_graph_add(g, &hl_op_reshape, 1, &x, &attr);
}

static bool stop_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    (void)inputs, (void)attr;
    *out = *hl_shape_of(g, in[0]);
    return true;
}

const hl_op hl_op_stop = {
    .name = "stop", .arity = 1, .kind = HL_KIND_VIEW, .jet_kind = HL_JET_ZERO, .shape = stop_shape, .domain = { -2, 2 }
};

hl_node hl_stop(hl_graph *g, hl_node x)
{
    return hl_graph_add(g, &hl_op_stop, 1, &x, NULL);
}

/* ---- permute ---- */

static bool permute_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    const hl_shape *s = hl_shape_of(g, in[0]);
    unsigned seen = 0;
    (void)inputs;
    *out = *s;
    for (int i = 0; i < s->rank; i++) {
        int axis = attr->list[i];
        if (axis < 0 || axis >= s->rank || (seen & 1u << axis))
            return hl_graph_fail(g, HL_ERR_SHAPE, "permute: the axes are not a permutation of 0..%d", s->rank - 1),
                   false;
        seen |= 1u << axis;
        out->dim[i] = s->dim[axis];
    }
    return true;
}

static void permute_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    const hl_node_data *d = hl_graph_node(g, y);
    int inverse[HL_MAX_RANK];
    (void)x;
    for (int i = 0; i < d->shape.rank; i++)
        inverse[d->attr.list[i]] = i;
    gx[0] = hl_permute(g, gy, inverse);
}

static bool permute_local(const hl_node_data *d, int rank)
{
    (void)rank;
    return d->attr.list[0] == 0;
}

const hl_op hl_op_permute = { .name = "permute",
                              .arity = 1,
                              .kind = HL_KIND_OTHER,
                              .code = HL_DO_PERMUTE,
                              .local = permute_local,
                              .jet_kind = HL_JET_LINEAR,
                              .shape = permute_shape,
                              .vjp = permute_vjp,
                              .domain = { -2, 2 } };

hl_node hl_permute(hl_graph *g, hl_node x, const int *axes)
{
    const hl_node_data *d = hl_graph_node(g, x);
    if (!g)
        return HL_BAD;
    if (!d || !axes)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_permute: not a node of this graph, or no axes");
    size_t rank = (size_t)d->shape.rank;
    int32_t list[HL_MAX_RANK];
    for (size_t i = 0; i < rank; i++)
        list[i] = axes[i];
    hl_attr attr = { .list = hl_graph_list(g, list, rank), .list_len = rank };
    return attr.list ? hl_graph_add(g, &hl_op_permute, 1, &x, &attr) : HL_BAD;
}

/* ---- gather and scatter: y[j] = x[index[j]], and x[index[j]] += y[j] ---- */

static bool gather_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    int axis = attr->i[0];
    (void)inputs;
    *out = *hl_shape_of(g, in[0]);
    for (size_t j = 0; j < attr->list_len; j++)
        if (attr->list[j] < 0 || (size_t)attr->list[j] >= out->dim[axis])
            return hl_graph_fail(g, HL_ERR_SHAPE, "gather: index %d of an axis of %zu", (int)attr->list[j],
                                 out->dim[axis]),
                   false;
    out->dim[axis] = attr->list_len;
    return true;
}

static bool scatter_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    int axis = attr->i[0];
    (void)inputs;
    *out = *hl_shape_of(g, in[0]);
    if (out->dim[axis] != attr->list_len)
        return hl_graph_fail(g, HL_ERR_SHAPE, "scatter: %zu indices for %zu values", attr->list_len, out->dim[axis]),
               false;
    out->dim[axis] = (size_t)attr->i[1];
    return true;
}

static void gather_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    const hl_attr attr = hl_graph_node(g, y)->attr;
    gx[0] = hl_scatter(g, gy, attr.i[0], hl_shape_of(g, x[0])->dim[attr.i[0]], attr.list);
}

static void scatter_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    hl_attr attr = hl_graph_node(g, y)->attr;
    (void)x;
    attr.i[1] = 0;
    gx[0] = hl_graph_add(g, &hl_op_gather, 1, &gy, &attr);
}

const hl_op hl_op_gather = { .name = "gather",
                             .arity = 1,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_GATHER,
                             .local = hl_local_behind,
                             .jet_kind = HL_JET_LINEAR,
                             .shape = gather_shape,
                             .vjp = gather_vjp,
                             .domain = { -2, 2 } };
const hl_op hl_op_scatter = { .name = "scatter",
                              .arity = 1,
                              .kind = HL_KIND_OTHER,
                              .code = HL_DO_SCATTER,
                              .local = hl_local_behind,
                              .jet_kind = HL_JET_LINEAR,
                              .shape = scatter_shape,
                              .vjp = scatter_vjp,
                              .domain = { -2, 2 } };

hl_node hl_scatter(hl_graph *g, hl_node x, int axis, size_t size, const int32_t *index)
{
    hl_attr attr = { .i = { axis, (int)size }, .list = index, .list_len = hl_node_dim(g, x, axis) };
    return hl_graph_add(g, &hl_op_scatter, 1, &x, &attr);
}

static hl_node gather_list(hl_graph *g, hl_node x, int axis, size_t count, const size_t *index, size_t start)
{
    if (count == 0 || count > INT32_MAX)
        return hl_graph_fail(g, HL_ERR_SHAPE, "gather: %zu indices", count);
    int32_t *list = hl_arena_alloc(&g->arena, count * sizeof *list);
    if (!list)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    for (size_t j = 0; j < count; j++) {
        size_t at = index ? index[j] : start + j;
        list[j] = at > INT32_MAX ? -1 : (int32_t)at;
    }
    return hl_graph_add(g, &hl_op_gather, 1, &x, &(hl_attr){ .i = { axis }, .list = list, .list_len = count });
}

hl_node hl_gather(hl_graph *g, hl_node x, int axis, size_t count, const size_t *index)
{
    if (!hl_check_axis(g, "hl_gather", x, &axis))
        return HL_BAD;
    if (!index)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_gather: index is NULL");
    return gather_list(g, x, axis, count, index, 0);
}

hl_node hl_slice(hl_graph *g, hl_node x, int axis, size_t start, size_t count)
{
    if (!hl_check_axis(g, "hl_slice", x, &axis))
        return HL_BAD;
    size_t size = hl_node_dim(g, x, axis);
    if (count == 0 || start > size || count > size - start)
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_slice: %zu values from %zu on of an axis of %zu", count, start, size);
    return count == size ? x : gather_list(g, x, axis, count, NULL, start);
}

/* ---- concatenate ---- */

static bool concat_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    int axis = attr->i[0];
    *out = *hl_shape_of(g, in[0]);
    for (int p = 1; p < inputs; p++) {
        hl_shape s = *hl_shape_of(g, in[p]);
        size_t size = axis < s.rank ? s.dim[axis] : 0;
        if (axis < s.rank)
            s.dim[axis] = out->dim[axis];
        if (!hl_shape_equal(&s, out) || s.batched != out->batched)
            return hl_graph_fail(g, HL_ERR_SHAPE, "concat: part %d has another shape", p), false;
        out->dim[axis] += size;
    }
    return true;
}

static void concat_vjp(hl_graph *g, hl_node y, const hl_node *x, hl_node gy, hl_node *gx)
{
    int parts = hl_graph_node(g, y)->inputs, axis = hl_graph_node(g, y)->attr.i[0];
    size_t start = 0;
    for (int p = 0; p < parts; p++) {
        size_t size = hl_node_dim(g, x[p], axis);
        gx[p] = hl_slice(g, gy, axis, start, size);
        start += size;
    }
}

const hl_op hl_op_concat = { .name = "concat",
                             .arity = -1,
                             .kind = HL_KIND_OTHER,
                             .code = HL_DO_CONCAT,
                             .local = hl_local_behind,
                             .jet_kind = HL_JET_LINEAR,
                             .shape = concat_shape,
                             .vjp = concat_vjp,
                             .domain = { -2, 2 } };

hl_node hl_concat(hl_graph *g, int count, const hl_node *parts, int axis)
{
    bool batched = false;
    if (!g)
        return HL_BAD;
    if (count < 1 || !parts)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_concat: no parts");
    if (!hl_check_axis(g, "hl_concat", parts[0], &axis))
        return HL_BAD;
    if (count == 1)
        return parts[0];
    for (int p = 0; p < count; p++)
        batched = batched || hl_node_batched(g, parts[p]);
    hl_node *in = hl_arena_alloc(&g->arena, (size_t)count * sizeof *in);
    if (!in)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    for (int p = 0; p < count; p++) {
        const hl_node_data *d = hl_graph_node(g, parts[p]);
        if (!d)
            return hl_graph_fail(g, HL_ERR_INVALID, "hl_concat: part %d is not a node of this graph", p);
        hl_shape s = d->shape;
        s.batched = batched;
        in[p] = hl_broadcast_shape(g, parts[p], &s);
    }
    return hl_graph_add(g, &hl_op_concat, count, in, &(hl_attr){ .i = { axis } });
}

/* ---- sums of scatters ---- */

/* Where consecutive values are put by a scatter that the differentiation at hand made: start .. start + count - 1 of an axis. */
typedef struct placed {
    hl_node values;
    int axis;
    size_t start, count;
} placed;

static bool placed_values(const hl_graph *g, hl_node n, placed *p)
{
    const hl_node_data *d = hl_graph_node(g, n);
    if (!d || d->op != &hl_op_scatter || !hl_graph_through(g, n))
        return false;
    *p = (placed){ d->in[0], d->attr.i[0], (size_t)d->attr.list[0], d->attr.list_len };
    for (size_t j = 1; j < p->count; j++)
        if (d->attr.list[j] != d->attr.list[j - 1] + 1)
            return false;
    return true;
}

hl_node hl_join_scatters(hl_graph *g, hl_node a, hl_node b)
{
    placed p[2];
    if (!placed_values(g, a, &p[0]) || !placed_values(g, b, &p[1]) || p[0].axis != p[1].axis ||
        !hl_shape_equal(hl_shape_of(g, a), hl_shape_of(g, b)))
        return HL_NONE;
    int first = p[1].start < p[0].start;
    const placed *lower = &p[first], *upper = &p[!first];
    size_t size = hl_node_dim(g, a, lower->axis), count = lower->count + upper->count;
    if (lower->start + lower->count != upper->start)
        return HL_NONE;
    hl_node both = hl_concat(g, 2, (hl_node[]){ lower->values, upper->values }, lower->axis);
    int32_t *list = count < size ? hl_arena_alloc(&g->arena, count * sizeof *list) : NULL;
    if (count == size)
        return both;
    if (!list)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    for (size_t j = 0; j < count; j++)
        list[j] = (int32_t)(lower->start + j);
    return hl_scatter(g, both, lower->axis, size, list);
}
