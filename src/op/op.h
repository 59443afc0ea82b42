/* op.h - the rows of the op table, and builders that only rules use. */
#ifndef HL_OP_H
#define HL_OP_H

#include "graph/graph.h"

#define HL_OP(name) extern const hl_op hl_op_##name;
#include "op/ops.def"
#undef HL_OP

/* All rows, in the order of ops.def; ends with NULL. */
extern const hl_op *const hl_ops[];

/* The shape of a node that is known to be one; it moves when nodes are added. */
static inline const hl_shape *hl_shape_of(const hl_graph *g, hl_node n)
{
    return &hl_graph_node(g, n)->shape;
}

/* Rules for hl_op.local: always; if the axis (attr.i[0]) is not the first; for inputs of at least two axes. */
bool hl_local_always(const hl_node_data *d, int rank);
bool hl_local_behind(const hl_node_data *d, int rank);
bool hl_local_matrix(const hl_node_data *d, int rank);

/* A node, and an axis of it, of which a negative one counts from the end and is made positive. Reports what is wrong. */
bool hl_check_axis(hl_graph *g, const char *what, hl_node x, int *axis);
/* x stretched to the shape's dimensions and kind (batched or shared). */
hl_node hl_broadcast_shape(hl_graph *g, hl_node x, const hl_shape *shape);
/* A constant of the dimensions and kind of node `like`. */
hl_node hl_constant_like(hl_graph *g, double value, hl_node like);
/* The opposite of a broadcast: sum x until it has the shape's dimensions and kind. */
hl_node hl_sum_to(hl_graph *g, hl_node x, const hl_shape *target);
/* a + b where HL_NONE is zero. */
hl_node hl_accumulate(hl_graph *g, hl_node a, hl_node b);
/* a * b where HL_NONE is zero. */
hl_node hl_product(hl_graph *g, hl_node a, hl_node b);
/* The value of a constant scalar, seen through broadcasts and reshapes. */
bool hl_scalar_value(const hl_graph *g, hl_node n, double *value);
/* The first and second derivative of swish. */
hl_node hl_swish_slope(hl_graph *g, hl_node x);
hl_node hl_swish_curve(hl_graph *g, hl_node x);
/* Transposes of gather and of convolution, and weights with everything outside the mask set to zero. */
hl_node hl_scatter(hl_graph *g, hl_node x, int axis, size_t size, const int32_t *index);
/* The sum of two scatters of neighbouring parts of an axis, as in the gradient of slices, by putting the parts together; HL_NONE if they are
 * none. */
hl_node hl_join_scatters(hl_graph *g, hl_node a, hl_node b);
/* linear with a mask whose weights are known to be zero outside it. */
hl_node hl_linear_trusted(hl_graph *g, hl_node x, hl_node w, const hl_mask *mask);

#endif
