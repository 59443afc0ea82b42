/* hollow/graph.h - build expressions from primitives.
 *
 *     hl_node x = hl_input(g, "x", 1, (size_t[]){ 3 });          three values per row
 *     hl_node w = hl_param(g, "w", 2, (size_t[]){ 5, 3 });       shared by all rows
 *     hl_node y = hl_tanh(g, hl_linear(g, x, w));                five values per row
 *
 * A node has a shape, which is that of one row. It is *batched* (each row has its own value) or *shared* (parameters, constants and
 * expressions of these). Shapes broadcast as in NumPy; shared values also broadcast over rows. Equal expressions are the same node,
 * except that masks and constant arrays are compared by identity.
 *
 * A function with an invalid argument returns HL_BAD, and so does every function that takes HL_BAD. The graph keeps the first error;
 * hl_graph_status and hl_plan_create report it. */
#ifndef HOLLOW_GRAPH_H
#define HOLLOW_GRAPH_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_graph hl_graph; /* opaque */
typedef int32_t hl_node;          /* a node of one graph; valid ones are > 0 */

#define HL_BAD ((hl_node)(-1)) /* the result of a failed call */
#define HL_NONE ((hl_node)0)   /* no node; functions that accept it treat it as zero */
#define HL_MAX_RANK 6

HL_API hl_status hl_graph_create(hl_context *context, hl_graph **graph);
HL_API void hl_graph_free(hl_graph *graph); /* takes NULL; plans created from it stay valid */
/* The first error of all calls on this graph, or HL_OK. The message is on the context. */
HL_API hl_status hl_graph_status(const hl_graph *graph);
/* Check the inputs and the shape of every node. */
HL_API hl_status hl_graph_verify(const hl_graph *graph);
/* Number of nodes. Nodes are 1..count; the inputs of a node have smaller numbers. */
HL_API size_t hl_graph_count(const hl_graph *graph);
/* One line of text for a node, such as "%7 = tanh(%5) batched [3]", written to buffer as snprintf does. */
HL_API int hl_node_text(const hl_graph *graph, hl_node node, char *buffer, size_t size);

/* A node's rank, dimension and kind; rank is -1 for a bad node. */
HL_API int hl_node_rank(const hl_graph *graph, hl_node node);
HL_API size_t hl_node_dim(const hl_graph *graph, hl_node node, int axis); /* axis < 0 counts from the end */
HL_API size_t hl_node_size(const hl_graph *graph, hl_node node);          /* product of the dimensions */
HL_API int hl_node_batched(const hl_graph *graph, hl_node node);

/* Leaves. Inputs and parameters are numbered 0, 1, ... in the order of creation. Names are copied. */
HL_API hl_node hl_input(hl_graph *g, const char *name, int rank, const size_t *dims);
HL_API hl_node hl_param(hl_graph *g, const char *name, int rank, const size_t *dims);
HL_API hl_node hl_const(hl_graph *g, double value);
HL_API hl_node hl_const_array(hl_graph *g, int rank, const size_t *dims, const double *values); /* copies */
HL_API size_t hl_graph_inputs(const hl_graph *g);
HL_API size_t hl_graph_params(const hl_graph *g);
HL_API hl_node hl_graph_input(const hl_graph *g, size_t index); /* HL_BAD if there is no such input */
HL_API hl_node hl_graph_param(const hl_graph *g, size_t index);
HL_API const char *hl_node_name(const hl_graph *g, hl_node node); /* name of a leaf; "" for other nodes */

/* Elementwise functions; operands broadcast. */
HL_API hl_node hl_add(hl_graph *g, hl_node a, hl_node b);
HL_API hl_node hl_sub(hl_graph *g, hl_node a, hl_node b);
HL_API hl_node hl_mul(hl_graph *g, hl_node a, hl_node b);
HL_API hl_node hl_div(hl_graph *g, hl_node a, hl_node b);
HL_API hl_node hl_pow(hl_graph *g, hl_node a, hl_node b);     /* requires a > 0, or a constant b and a != 0 */
HL_API hl_node hl_powi(hl_graph *g, hl_node a, int exponent); /* by repeated products; any a */
HL_API hl_node hl_min(hl_graph *g, hl_node a, hl_node b);
HL_API hl_node hl_max(hl_graph *g, hl_node a, hl_node b);
HL_API hl_node hl_less(hl_graph *g, hl_node a, hl_node b);                /* a < b ? 1 : 0; derivative 0 */
HL_API hl_node hl_select(hl_graph *g, hl_node c, hl_node a, hl_node b);   /* c != 0 ? a : b */
HL_API hl_node hl_clamp(hl_graph *g, hl_node x, double low, double high); /* derivative 0 outside low..high */
HL_API hl_node hl_scale(hl_graph *g, double factor, hl_node x);
HL_API hl_node hl_neg(hl_graph *g, hl_node x);
HL_API hl_node hl_exp(hl_graph *g, hl_node x);
HL_API hl_node hl_log(hl_graph *g, hl_node x);
HL_API hl_node hl_log1p(hl_graph *g, hl_node x);
HL_API hl_node hl_expm1(hl_graph *g, hl_node x);
HL_API hl_node hl_sin(hl_graph *g, hl_node x);
HL_API hl_node hl_cos(hl_graph *g, hl_node x);
HL_API hl_node hl_tanh(hl_graph *g, hl_node x);
HL_API hl_node hl_sigmoid(hl_graph *g, hl_node x);
HL_API hl_node hl_softplus(hl_graph *g, hl_node x);
HL_API hl_node hl_swish(hl_graph *g, hl_node x); /* x sigmoid(x) */
HL_API hl_node hl_elu(hl_graph *g, hl_node x);   /* x > 0 ? x : exp(x) - 1; only once differentiable at 0 */
HL_API hl_node hl_relu(hl_graph *g, hl_node x);
HL_API hl_node hl_erf(hl_graph *g, hl_node x);
HL_API hl_node hl_sqrt(hl_graph *g, hl_node x);
HL_API hl_node hl_abs(hl_graph *g, hl_node x);
HL_API hl_node hl_sign(hl_graph *g, hl_node x); /* derivative 0 */
HL_API hl_node hl_stop(hl_graph *g, hl_node x); /* x, with derivative 0 */

/* Reductions and cumulative sums. axis < 0 counts from the end. Reductions remove the axis from the shape. */
HL_API hl_node hl_sum(hl_graph *g, hl_node x, int axis);
HL_API hl_node hl_mean(hl_graph *g, hl_node x, int axis);
HL_API hl_node hl_max_over(hl_graph *g, hl_node x, int axis); /* equal maxima share the derivative */
HL_API hl_node hl_sum_all(hl_graph *g, hl_node x);            /* over all axes; one value per row */
/* Sum over the rows; the result is shared. Batched nodes of the same plan must not depend on it. */
HL_API hl_node hl_sum_rows(hl_graph *g, hl_node x);
HL_API hl_node hl_logsumexp(hl_graph *g, hl_node x, int axis);
HL_API hl_node hl_softmax(hl_graph *g, hl_node x, int axis);
HL_API hl_node hl_cumsum(hl_graph *g, hl_node x, int axis, int reverse, int exclusive);

/* Shapes. */
HL_API hl_node hl_reshape(hl_graph *g, hl_node x, int rank, const size_t *dims);
HL_API hl_node hl_broadcast(hl_graph *g, hl_node x, int rank,
                            const size_t *dims);                    /* batched stays batched, shared stays shared */
HL_API hl_node hl_permute(hl_graph *g, hl_node x, const int *axes); /* axis i of the result is axes[i] */
HL_API hl_node hl_concat(hl_graph *g, int count, const hl_node *parts, int axis);
HL_API hl_node hl_slice(hl_graph *g, hl_node x, int axis, size_t start, size_t count);
HL_API hl_node hl_gather(hl_graph *g, hl_node x, int axis, size_t count, const size_t *index); /* indices may repeat */

/* Products.
 * linear:   x [..., in], w [out, in] shared            -> [..., out], sum_k w[n][k] x[k].
 * grouped:  x [g, ..., in], w [g, out, in] shared      -> [g, ..., out]; each index of the first axis has its own w.
 * masked:   like linear, but unit n uses only inputs lo[n] <= k < hi[n]. Other entries of w count as zero and are not accessed.
 * matmul:   a [..., m, k] times b [..., k, n] for each row; either may be batched or shared. Leading axes must be equal. */
HL_API hl_node hl_linear(hl_graph *g, hl_node x, hl_node w);
HL_API hl_node hl_linear_grouped(hl_graph *g, hl_node x, hl_node w);
HL_API hl_node hl_linear_masked(hl_graph *g, hl_node x, hl_node w, const uint32_t *lo, const uint32_t *hi); /* copies */
HL_API hl_node hl_matmul(hl_graph *g, hl_node a, hl_node b);

/* Convolution of x [c, h, w] with a shared kernel k [o, c, kh, kw] and zero padding: out [o, (h + 2 pad - kh) / stride + 1, ..].
 * Entries of the kernel where `taps` (kh x kw, NULL: all 1) is 0 count as zero. The transpose maps [o, h', w'] to
 * [c, height, width]; the convolution of an image of that size has the size [h', w']. */
typedef struct hl_conv_options {
    size_t stride[2], pad[2]; /* stride 0 means 1 */
    const unsigned char *taps;
} hl_conv_options;
HL_API hl_node hl_conv(hl_graph *g, hl_node x, hl_node k, const hl_conv_options *options);
HL_API hl_node hl_conv_transpose(hl_graph *g, hl_node x, hl_node k, size_t height, size_t width,
                                 const hl_conv_options *options);

#ifdef __cplusplus
}
#endif

#endif
