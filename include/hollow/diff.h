/* hollow/diff.h - differentiate expressions.
 *
 * Every function adds nodes to the graph and returns them, so derivatives can be differentiated again, up to order 63.
 *
 * A *held* node is treated as a constant by one differentiation. The derivative still contains the node, and a later differentiation
 * that does not hold it goes through it. Equal expressions are the same node, so a node is held wherever it occurs:
 * hl_broadcast(g, x, ..) wherever x is broadcast to that shape, hl_exp(g, x) wherever it is used. */
#ifndef HOLLOW_DIFF_H
#define HOLLOW_DIFF_H

#include "hollow/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Nodes to hold fixed; count 0 for none. */
typedef struct hl_hold {
    size_t count;
    const hl_node *nodes;
} hl_hold;

/* Reverse mode (vector-Jacobian product): gx[j] = sum_i gy[i] . d y[i] / d x[j], with the shape of x[j]. For a shared x[j] it is summed
 * over rows. HL_NONE as gy[i] means ones. If x[j] depends on x[k], then gx[k] is the total derivative and includes the path through
 * x[j]. A gx[j] that is identically zero is a node of zeros. `hold` may be NULL. */
HL_API hl_status hl_vjp(hl_graph *g, size_t ny, const hl_node *y, const hl_node *gy, size_t nx, const hl_node *x,
                        const hl_hold *hold, hl_node *gx);

/* Taylor mode. Given the curve x[j](e) = x[j] + sum_{m=1..order} cx[j * order + m - 1] e^m, compute the Taylor coefficients of y[i](e):
 * cy[i * order + m - 1] is the m-th derivative divided by m!. Order 1 is the Jacobian-vector product.
 *
 * HL_NONE as cx means zero. A cy that is zero is returned as HL_NONE; a cy that is equal for all rows may be a shared node. Each x[j]
 * follows its own coefficients, even if it depends on another x. `hold` may be NULL. */
HL_API hl_status hl_jet(hl_graph *g, int order, size_t nx, const hl_node *x, const hl_node *cx, const hl_hold *hold,
                        size_t ny, const hl_node *y, hl_node *cy);

typedef enum hl_diff_mode {
    HL_TAYLOR = 0, /* one forward pass for all orders */
    HL_REVERSE = 1 /* one reverse pass for each order, as in the paper */
} hl_diff_mode;

/* Dimension-wise derivatives d[m-1] = D^m f = (d^m f_i / d x_i^m), m = 1..order. f has the shape of x. f_i must depend on x only
 * through x_i and the held nodes, and the held nodes that it uses must not depend on x_i. */
HL_API hl_status hl_dim_derivatives(hl_graph *g, hl_node f, hl_node x, const hl_hold *hold, int order,
                                    hl_diff_mode mode, hl_node *d);

/* Curvature propagation: an unbiased estimate of the diagonal of the Hessian of y (one value per row) with respect to x. *diagonal has
 * the shape of x. The cost is about that of two gradients, independent of the size of x. `noise` must hold independent random signs
 * -1 or 1; hl_curvature_noise gives its size. Derivatives of the estimate are unbiased as well. y may consist of elementwise functions
 * of one argument, sums, products and linear maps; other operations give HL_ERR_UNSUPPORTED. */
HL_API hl_status hl_curvature_noise(hl_graph *g, hl_node y, hl_node x, size_t *size);
HL_API hl_status hl_curvature(hl_graph *g, hl_node y, hl_node x, hl_node noise, hl_node *diagonal);

#ifdef __cplusplus
}
#endif

#endif
