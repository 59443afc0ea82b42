/* hollow/diff.h - derivatives of a graph, as more graph.
 *
 * Every function adds nodes to the graph and returns them, so derivatives can be differentiated again. A *held* node is
 * treated as a constant by the differentiation at hand; the resulting expression still contains it, and a further
 * differentiation that does not hold it goes through it. Equal expressions are one node, so a
 * held node is held wherever it occurs: hl_broadcast(g, x, ..) wherever x is stretched to that shape, hl_sigmoid(g, x) inside
 * hl_swish(g, x). Orders go up to 63. */
#ifndef HOLLOW_DIFF_H
#define HOLLOW_DIFF_H

#include "hollow/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A set of nodes held fixed; count 0 for none. */
typedef struct hl_hold {
    size_t count;
    const hl_node *nodes;
} hl_hold;

/* Reverse mode: gx[j] = sum_i gy[i] . d y[i] / d x[j], of x[j]'s shape; for a shared x[j] summed over the rows. A gy[i] of
 * HL_NONE counts as ones. If an x[j] depends on another, the other's derivative is the total one, through x[j] as well. A gx[j] that is identically zero is a node of zeros. `hold` may be NULL. */
HL_API hl_status hl_vjp(hl_graph *g, size_t ny, const hl_node *y, const hl_node *gy, size_t nx, const hl_node *x,
                        const hl_hold *hold, hl_node *gx);

/* Taylor mode: along the curve x[j](e) = x[j] + sum_{m=1..order} cx[j * order + m - 1] e^m, the coefficients of
 * y[i](e), cy[i * order + m - 1]. Coefficients are derivatives over m!. A cx of HL_NONE is zero; a zero cy comes back as
 * HL_NONE, and one that is the same for all rows may come back as a shared node. Order 1 is the Jacobian-vector product. Every x[j] moves as
 * its own coefficients say, even if it depends on another x. `hold` may be NULL. */
HL_API hl_status hl_jet(hl_graph *g, int order, size_t nx, const hl_node *x, const hl_node *cx, const hl_hold *hold,
                        size_t ny, const hl_node *y, hl_node *cy);

typedef enum hl_diff_mode {
    HL_TAYLOR = 0, /* one sweep for all orders */
    HL_REVERSE = 1 /* one reverse sweep per order, as the paper writes it */
} hl_diff_mode;

/* Dimension-wise derivatives: d[m-1] = D^m f = (d^m f_i / d x_i^m), m = 1..order, for f of x's shape whose entry i depends
 * on x only through x_i and the held nodes, which must not depend on x_i. */
HL_API hl_status hl_dim_derivatives(hl_graph *g, hl_node f, hl_node x, const hl_hold *hold, int order,
                                    hl_diff_mode mode, hl_node *d);

/* Curvature propagation: *diagonal, of x's shape, is an unbiased estimate of the diagonal of the Hessian of y, one value
 * per row, by x, for about two gradients, whatever the size of x. `noise` is [size] as hl_curvature_noise says, of independent
 * signs -1 or 1; derivatives of the estimate are unbiased as well. y may be made of functions of one value, sums, products
 * and linear maps of x; other ops give HL_ERR_UNSUPPORTED. */
HL_API hl_status hl_curvature_noise(hl_graph *g, hl_node y, hl_node x, size_t *size);
HL_API hl_status hl_curvature(hl_graph *g, hl_node y, hl_node x, hl_node noise, hl_node *diagonal);

#ifdef __cplusplus
}
#endif

#endif
