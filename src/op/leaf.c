/* leaf.c - inputs, parameters, constants; and the list of all ops. */
#include <math.h>
#include <string.h>

#include "op/op.h"

#define HL_OP(name) &hl_op_##name,
const hl_op *const hl_ops[] = {
#include "op/ops.def"
    NULL
};
#undef HL_OP

bool hl_local_always(const hl_node_data *d, int rank)
{
    (void)d, (void)rank;
    return true;
}

bool hl_local_behind(const hl_node_data *d, int rank)
{
    (void)rank;
    return d->attr.i[0] >= 1;
}

bool hl_local_matrix(const hl_node_data *d, int rank)
{
    (void)d;
    return rank >= 2;
}

static bool leaf_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    (void)inputs, (void)in;
    *out = attr->shape;
    for (int i = 0; i < out->rank; i++)
        if (out->dim[i] == 0)
            return hl_graph_fail(g, HL_ERR_SHAPE, "%s: dimension %d is 0", attr->name ? attr->name : "constant", i),
                   false;
    return true;
}

const hl_op hl_op_input = { .name = "input", .kind = HL_KIND_LEAF, .jet_kind = HL_JET_ZERO, .shape = leaf_shape };
const hl_op hl_op_param = { .name = "param", .kind = HL_KIND_LEAF, .jet_kind = HL_JET_ZERO, .shape = leaf_shape };
const hl_op hl_op_constant = { .name = "constant", .kind = HL_KIND_LEAF, .jet_kind = HL_JET_ZERO, .shape = leaf_shape };

static bool shape_from(hl_graph *g, const char *what, int rank, const size_t *dims, bool batched, hl_shape *s)
{
    if (rank < 0 || rank > HL_MAX_RANK || (rank > 0 && !dims))
        return hl_graph_fail(g, HL_ERR_SHAPE, "%s: rank %d is not in 0..%d, or the dimensions are NULL", what, rank,
                             HL_MAX_RANK),
               false;
    *s = (hl_shape){ .rank = rank, .batched = batched };
    if (rank)
        memcpy(s->dim, dims, (size_t)rank * sizeof *dims);
    return true;
}

static hl_node named_leaf(hl_graph *g, const hl_op *op, const char *name, int rank, const size_t *dims, bool batched,
                          hl_node **list, size_t *count, size_t *capacity)
{
    hl_attr attr = { .i = { (int)*count } };
    if (!name)
        return hl_graph_fail(g, HL_ERR_INVALID, "%s: the name is NULL", op->name);
    if (!shape_from(g, name, rank, dims, batched, &attr.shape))
        return HL_BAD;
    size_t len = strlen(name) + 1;
    char *copy = hl_arena_alloc(&g->arena, len);
    void *grown = *list;
    if (!copy || hl_grow(g->ctx, &grown, capacity, *count + 1, sizeof **list) != HL_OK)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    *list = grown;
    attr.name = memcpy(copy, name, len);
    hl_node n = hl_graph_add(g, op, 0, NULL, &attr);
    if (n != HL_BAD)
        (*list)[(*count)++] = n;
    return n;
}

hl_node hl_input(hl_graph *g, const char *name, int rank, const size_t *dims)
{
    return g ? named_leaf(g, &hl_op_input, name, rank, dims, true, &g->inputs, &g->input_count, &g->input_capacity)
             : HL_BAD;
}

hl_node hl_param(hl_graph *g, const char *name, int rank, const size_t *dims)
{
    return g ? named_leaf(g, &hl_op_param, name, rank, dims, false, &g->params, &g->param_count, &g->param_capacity)
             : HL_BAD;
}

hl_node hl_const(hl_graph *g, double value)
{
    return hl_graph_add(g, &hl_op_constant, 0, NULL, &(hl_attr){ .value = value });
}

hl_node hl_const_array(hl_graph *g, int rank, const size_t *dims, const double *values)
{
    hl_attr attr = { 0 };
    if (!g)
        return HL_BAD;
    if (!values)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_const_array: values is NULL");
    if (!shape_from(g, "hl_const_array", rank, dims, false, &attr.shape))
        return HL_BAD;
    if (rank == 0)
        return hl_const(g, values[0]);
    size_t bytes = hl_size_mul(hl_shape_size(&attr.shape), sizeof *values);
    double *copy = hl_arena_alloc(&g->arena, bytes);
    if (!copy)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    attr.data = memcpy(copy, values, bytes);
    return hl_graph_add(g, &hl_op_constant, 0, NULL, &attr);
}

bool hl_scalar_value(const hl_graph *g, hl_node n, double *value)
{
    const hl_node_data *d = hl_graph_node(g, n);
    while (d && (d->op == &hl_op_broadcast || d->op == &hl_op_reshape || d->op == &hl_op_stop))
        d = hl_graph_node(g, d->in[0]);
    if (!d || d->op != &hl_op_constant || d->attr.data)
        return false;
    *value = d->attr.value;
    return true;
}
