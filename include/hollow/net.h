/* hollow/net.h - hollow networks f_i = tau(x_i, h_i, t, context) and their exact dimension-wise derivatives.
 *
 * The *conditioner* computes the features h_i from all inputs except x_i. The *transformer* tau computes f_i from x_i and h_i.
 * For finite x, h_i is bitwise independent of x_i, even if other units overflow. The conditioner "attention" is an exception: it
 * multiplies the value of x_i by a weight of 0, so it must not overflow; bounded activations such as tanh ensure that.
 *
 *     hl_net_spec spec = { .dim = 43, .hidden = 256, .width = 64 };
 *     hl_net_create(ctx, &spec, &net);
 *     hl_net_init(net, 1);
 *     hl_operator_create(net, &(hl_operator_options){ .order = 1 }, &op);
 *     hl_operator_eval(op, rows, x, NULL, NULL, f, &d, divergence);     f, D f and the divergence, exact
 *
 * Arrays are contiguous, row by row, in the network's precision. */
#ifndef HOLLOW_NET_H
#define HOLLOW_NET_H

#include "hollow/diff.h"
#include "hollow/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_net hl_net;           /* opaque */
typedef struct hl_operator hl_operator; /* opaque */

/* Specification of a network. Zero or NULL in any field except `dim` means the default. Strings are copied. */
typedef struct hl_net_spec hl_net_spec;
struct hl_net_spec {
    /* d: values per row, 1..1000000. */
    size_t dim;
    /* Context values per row. Default 0. */
    size_t context;
    /* Nonzero: the network has a time input, one value per row. */
    int time;
    /* "made" (default), "separate", "sum", "tree", "attention" or "conv"; see docs/conditioners.md. For flows: "autoregressive" (h_i depends on
     * x_1..x_{i-1}), "coupling" (the second half of the columns depends on the first half), "none" (h_i is a constant). */
    const char *conditioner;
    /* A permutation of 0..dim-1: the order in which the conditioner takes the columns. Default 0, 1, ... Copied. See hl_order_columns. */
    const size_t *order;
    /* conv: channels, height and width; their product must be dim. */
    size_t image[3];
    /* conv: size of the kernel, odd. Default 3. */
    size_t kernel;
    /* d_h: number of features in each h_i, even. Default 16. */
    size_t features;
    /* Units of each conditioner layer. Default 64. */
    size_t hidden;
    /* Hidden layers of the conditioner. Default 2; -1 for none. */
    int hidden_layers;
    /* "shared" (default): one transformer for all dimensions. "per-dimension": one for each. For flows: "additive" (x_i + m),
     * "affine" (x_i exp(s) + m), "monotone" (positive slope everywhere; needs a monotone activation). */
    const char *transformer;
    /* Units of each transformer layer. Default 64. */
    size_t width;
    /* Hidden layers of the transformer. Default 2; -1 for none: f_i is then affine in x_i and h_i. */
    int layers;
    /* "tanh" (default), "softplus", "swish", "elu" or "sigmoid". */
    const char *activation;
    /* Precision. Default HL_F32. */
    hl_dtype dtype;
    /* > 0: the network u works in another orthonormal basis, f(x) = Q' u(Q x). Q is a product of this many Householder reflections
     * with trainable vectors. The divergence stays exact; D^k is not available. */
    size_t reflections;
    /* > 0: add a dense network with one hidden layer of this many units. Its D^k has a closed form. */
    size_t mlp;
    /* Another network that is added to this one, and so on; at most 64 networks. It uses dim, context, time and dtype of the first.
     * Read by hl_net_create only. */
    const hl_net_spec *plus;
};

/* Names of conditioners, transformers and activations; each list ends with NULL. */
HL_API const char *const *hl_net_conditioners(void);
HL_API const char *const *hl_net_transformers(void);
HL_API const char *const *hl_net_activations(void);

HL_API hl_status hl_net_create(hl_context *context, const hl_net_spec *spec, hl_net **net); /* all parameters 0 */
HL_API void hl_net_free(hl_net *net);                                                       /* takes NULL */
/* Set random weights of variance 1 / (number of inputs) and biases 0. The same seed gives the same weights on every machine. */
HL_API hl_status hl_net_init(hl_net *net, uint64_t seed);
/* The specification with all defaults filled in. Its strings are borrowed until the network is freed. */
HL_API hl_net_spec hl_net_describe(const hl_net *net);

/* A parameter. `values` is borrowed until the network is freed and may be written. Masked entries must stay zero; gradients of the
 * network are zero there. */
typedef struct hl_net_param {
    const char *name;
    int rank;
    size_t dims[HL_MAX_RANK];
    size_t size;
    void *values;
    /* Mask: entries k of row n along the last axis are used if lo[n] <= k < hi[n]. NULL: no mask. Borrowed. */
    const uint32_t *lo, *hi;
} hl_net_param;
HL_API size_t hl_net_param_count(const hl_net *net);
HL_API hl_status hl_net_param_get(const hl_net *net, size_t index, hl_net_param *param);
HL_API size_t hl_net_size(const hl_net *net); /* number of trainable values, without masked ones */
/* Return HL_ERR_NOT_FINITE if a parameter is NaN or infinite; the message names it. */
HL_API hl_status hl_net_check(const hl_net *net);

/* What a file is, by its first bytes. HL_FILE_NONE: there is no such file, it is empty or not a regular file. HL_FILE_OTHER: not a file of
 * hollow, or one that cannot be read. Allocates nothing. */
typedef enum hl_file_kind {
    HL_FILE_NONE,
    HL_FILE_OTHER,
    HL_FILE_NET,
    HL_FILE_DENSITY,
    HL_FILE_SDE,
    HL_FILE_VAE,
    HL_FILE_CHECKPOINT
} hl_file_kind;
HL_API hl_file_kind hl_file_identify(const char *path);

/* Model files in safetensors format, with the specification in the metadata. Files are replaced atomically. */
HL_API hl_status hl_net_save(const hl_net *net, const char *path);
HL_API hl_status hl_net_load(hl_context *context, const char *path, hl_net **net);
/* Write the contents of the model file to memory. *size receives the number of bytes. If `capacity` is less than that, nothing is
 * written and `bytes` may be NULL. */
HL_API hl_status hl_net_write(const hl_net *net, void *bytes, size_t capacity, size_t *size);
/* Create a network from these bytes. Copies. */
HL_API hl_status hl_net_read(hl_context *context, const void *bytes, size_t size, hl_net **net);

/* The network as part of a graph of your own. */
typedef struct hl_net_nodes {
    /* Inputs: [dim], a scalar and [context]. t and context are HL_NONE if the network has none. */
    hl_node x, t, context;
    /* hl_net_param_count nodes, one per parameter, in order. Written unless `reuse` is nonzero; read if it is. */
    hl_node *param;
    int reuse;
    /* Result: h of the first network, [dim, features]. Holding it fixed gives D^k if the network has one term only. */
    hl_node h;
    /* Result: [dim]. */
    hl_node f;
    /* Result if order > 0: d[k-1] = D^k f for k = 1..order. May be NULL. */
    hl_node *d;
    /* Result if order > 0: the sum of D^1 f, a scalar. */
    hl_node divergence;
} hl_net_nodes;
/* Build f and, if order > 0, D^1 f .. D^order f and the divergence. For networks with reflections, d must be NULL. */
HL_API hl_status hl_net_build(const hl_net *net, hl_graph *g, int order, hl_diff_mode mode, hl_net_nodes *nodes);

/* An operator is a compiled network. It computes f, D^1 f .. D^order f, the divergence sum_i D^1 f_i, and gradients of all of these. */
typedef struct hl_operator_options {
    /* Highest k of D^k, at most 32. Default 1; -1 for f only. */
    int order;
    /* HL_TAYLOR (default) or HL_REVERSE. */
    hl_diff_mode mode;
    /* Nonzero: do not compile hl_operator_vjp. */
    int no_gradient;
    /* Nonzero: also compile hl_operator_eval_vjp. */
    int joint;
    /* dtype is ignored; the precision is that of the network. */
    hl_plan_options plan;
} hl_operator_options;
HL_API hl_status hl_operator_create(const hl_net *net, const hl_operator_options *options, hl_operator **op);
HL_API void hl_operator_free(hl_operator *op); /* takes NULL; free it before its network */

/* Compute an order in which columns with a large absolute correlation are close to each other, from `rows` rows of `dim` values. Use it
 * for conditioners such as "tree" (hl_net_spec.order). At most 8192 columns. */
HL_API hl_status hl_order_columns(hl_context *context, size_t rows, size_t dim, const double *values, size_t *order);

/* Evaluate at x (rows x dim). t (rows) and context (rows x context) are NULL if the network has none. Results: f (rows x dim), d[k-1] =
 * D^k f (rows x dim) and divergence (rows); each may be NULL. Uses the current parameters of the network. Allocates nothing. */
HL_API hl_status hl_operator_eval(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                                  void *f, void *const *d, void *divergence);

/* Gradients of L = sum over rows of <gf, f> + sum_k <gd[k-1], D^k f> + gdiv . divergence: with respect to x, t and context for each row,
 * and with respect to the parameters, summed over rows (gparam[i] in the order of hl_net_param_get). A NULL cotangent counts as zero; a
 * NULL result is not computed. Allocates nothing. */
HL_API hl_status hl_operator_vjp(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                                 const void *gf, const void *const *gd, const void *gdiv, void *gx, void *gt,
                                 void *gcontext, void *const *gparam);
/* hl_operator_eval and hl_operator_vjp in one run, which is faster if the cotangents do not depend on the results. Each array may be
 * NULL. Needs the option `joint`. Allocates nothing. */
typedef struct hl_operator_arrays {
    void *f, *const *d, *divergence;
    const void *gf, *const *gd, *gdiv;
    void *gx, *gt, *gcontext, *const *gparam;
} hl_operator_arrays;
HL_API hl_status hl_operator_eval_vjp(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                                      const hl_operator_arrays *arrays);
/* The plan that hl_operator_eval runs when no result is NULL. */
HL_API const hl_plan *hl_operator_plan(const hl_operator *op);

#ifdef __cplusplus
}
#endif

#endif
