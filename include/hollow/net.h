/* hollow/net.h - hollow networks: f_i = tau(x_i, h_i, t, context), where h_i never sees x_i: for finite x, changing x_i
 * leaves every bit of h_i as it is, even if other units overflow. (Attention multiplies the value of x_i by a weight of 0: there
 * no unit may overflow, as with tanh or sigmoid.)
 *
 *     hl_net_spec spec = { .dim = 43, .hidden = 256, .width = 64 };
 *     hl_net_create(ctx, &spec, &net);
 *     hl_net_init(net, 1);
 *     hl_operator_create(net, &(hl_operator_options){ .order = 1 }, &op);
 *     hl_operator_eval(op, rows, x, NULL, NULL, f, &d, divergence);     f, D f and its sum, exact
 *
 * All arrays are plain, row by row, in the network's precision. */
#ifndef HOLLOW_NET_H
#define HOLLOW_NET_H

#include "hollow/diff.h"
#include "hollow/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_net hl_net;           /* opaque */
typedef struct hl_operator hl_operator; /* opaque */

/* What a network is. Zero or NULL in any field but `dim` means the default. Strings are not kept. */
typedef struct hl_net_spec hl_net_spec;
struct hl_net_spec {
    size_t dim;     /* d: values per row, 1..1000000 */
    size_t context; /* context values per row; default 0 */
    int time;       /* nonzero: t is an input, one per row */
    const char
        *conditioner;    /* "made" (default), "sum", "tree", "attention", "conv"; see docs/conditioners.md. Of flows:
                              * "autoregressive" (h_i sees x_1..x_{i-1}), "coupling" (the second half sees the first),
                              * "none" (h_i is a constant) */
    const size_t *order; /* dim columns, each once: the order in which the conditioner takes them; default as they are;
                              * copied; see hl_order_columns */
    size_t image[3];     /* conv: channels, height, width; their product is dim */
    size_t kernel;       /* conv: size of the kernel, odd; default 3 */
    size_t features;     /* d_h: values of each h_i, both directions together, even; default 16 */
    size_t hidden;       /* units of each conditioner layer; default 64 */
    int hidden_layers;   /* layers of each conditioner; default 2; -1 for none */
    const char *transformer; /* "shared" (default), "per-dimension"; for flows "additive" (x_i + m), "affine"
                              * (x_i exp(s) + m), "monotone" (slope > 0 everywhere; activations that rise only) */
    size_t width;            /* units of each transformer layer; default 64 */
    int layers;              /* hidden layers of the transformer; default 2; -1 for none: affine in x_i and h_i */
    const char *activation;  /* "tanh" (default), "softplus", "swish", "elu", "sigmoid" */
    hl_dtype dtype;          /* default HL_F32 */
    size_t reflections;      /* the network u works in another orthonormal basis, Q' u(Q x), Q the product of this many
                              * reflections, whose vectors are parameters; the divergence stays exact, D^k is not to be had */
    size_t mlp;              /* units of a plain network of one hidden layer that is added; its D^k has a closed form */
    const hl_net_spec
        *plus; /* another network that is added, and so on, 64 in all; dim, context, time and dtype are those
                              * of the first. Read by hl_net_create only */
};

/* The names that a specification may have, ended by NULL. */
HL_API const char *const *hl_net_conditioners(void);
HL_API const char *const *hl_net_transformers(void);
HL_API const char *const *hl_net_activations(void);

HL_API hl_status hl_net_create(hl_context *context, const hl_net_spec *spec, hl_net **net); /* all parameters 0 */
HL_API void hl_net_free(hl_net *net);                                                       /* takes NULL */
/* Random weights: variance 1 / inputs, biases 0. The same seed gives the same weights on every machine. */
HL_API hl_status hl_net_init(hl_net *net, uint64_t seed);
/* The specification with all defaults filled in. Its strings are borrowed until the network is freed. */
HL_API hl_net_spec hl_net_describe(const hl_net *net);

/* Parameters. `values` is borrowed until the network is freed and may be written; entries that a mask excludes must stay
 * zero, which updates by the network's own gradients keep. */
typedef struct hl_net_param {
    const char *name;
    int rank;
    size_t dims[HL_MAX_RANK];
    size_t size;
    void *values;
    /* Mask: of row n along the last axis only lo[n] <= k < hi[n] is there, the rest stays 0. NULL: all of it. Borrowed. */
    const uint32_t *lo, *hi;
} hl_net_param;
HL_API size_t hl_net_param_count(const hl_net *net);
HL_API hl_status hl_net_param_get(const hl_net *net, size_t index, hl_net_param *param);
HL_API size_t hl_net_size(const hl_net *net); /* trainable values: masked ones not counted */
/* HL_ERR_NOT_FINITE, naming the parameter, if any is NaN or infinite. */
HL_API hl_status hl_net_check(const hl_net *net);

/* Model files: safetensors, with the specification in the header's metadata. Written atomically. */
HL_API hl_status hl_net_save(const hl_net *net, const char *path);
HL_API hl_status hl_net_load(hl_context *context, const char *path, hl_net **net);
/* The bytes of the model's file in memory. *size receives their number; they are written if `capacity` is at least that,
 * otherwise nothing is, and `bytes` may be NULL. */
HL_API hl_status hl_net_write(const hl_net *net, void *bytes, size_t capacity, size_t *size);
/* A network from these bytes, which are copied. */
HL_API hl_status hl_net_read(hl_context *context, const void *bytes, size_t size, hl_net **net);

/* The network as part of a user's graph. */
typedef struct hl_net_nodes {
    hl_node x, t, context; /* [dim], a scalar, [context]; t and context are HL_NONE if the network has none */
    hl_node *param;        /* receives hl_net_param_count nodes, one per parameter, in order */
    int reuse;             /* nonzero: `param` holds them already */
    hl_node h;  /* result: [dim, features] of the first network; holding it gives D^k if there is no other term */
    hl_node f;  /* result: [dim] */
    hl_node *d; /* result, if order > 0: d[k-1] = D^k f for k = 1..order; may be NULL */
    hl_node divergence; /* result, if order > 0: the sum of D^1 f, a scalar */
} hl_net_nodes;
/* Build f and, if order > 0, D^1 f .. D^order f and the divergence. With reflections d must be NULL. */
HL_API hl_status hl_net_build(const hl_net *net, hl_graph *g, int order, hl_diff_mode mode, hl_net_nodes *nodes);

/* An operator is the network compiled: f, D^1 f .. D^order f, the divergence sum_i D^1 f_i, and their gradients. */
typedef struct hl_operator_options {
    int order;            /* highest k of D^k; default 1; at most 32; -1 for f alone */
    hl_diff_mode mode;    /* HL_TAYLOR (default) or HL_REVERSE */
    int no_gradient;      /* nonzero: do not compile hl_operator_vjp */
    int joint;            /* nonzero: compile hl_operator_eval_vjp, too */
    hl_plan_options plan; /* its dtype is ignored: the network's is used */
} hl_operator_options;
HL_API hl_status hl_operator_create(const hl_net *net, const hl_operator_options *options, hl_operator **op);
HL_API void hl_operator_free(hl_operator *op); /* takes NULL; free it before its network */

/* An order of columns for conditioners that want related columns near each other (tree, conv): similar columns, by the
 * absolute correlation over `rows` rows of `dim` values, stand together. At most 8192 columns. */
HL_API hl_status hl_order_columns(hl_context *context, size_t rows, size_t dim, const double *values, size_t *order);

/* Evaluate rows x dim values. t (rows) and context (rows x context) are NULL if the network has none. f, d[k-1] for D^k and
 * divergence (rows) receive results; any may be NULL. Reads the network's parameters as they are now. */
HL_API hl_status hl_operator_eval(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                                  void *f, void *const *d, void *divergence);

/* Gradients of sum over rows of <gf, f> + sum_k <gd[k-1], D^k f> + gdiv . divergence: to x, t, context (each row's own) and
 * all parameters (summed over rows; gparam[i] in the order of hl_net_param_get). A NULL cotangent is zero; a NULL result is
 * not wanted. Allocates nothing. */
HL_API hl_status hl_operator_vjp(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                                 const void *gf, const void *const *gd, const void *gdiv, void *gx, void *gt,
                                 void *gcontext, void *const *gparam);
/* Both in one run, where the cotangents do not depend on the results: values, D and gradients share the work. The arrays are
 * those of hl_operator_eval and hl_operator_vjp; each may be NULL. Needs option joint. Allocates nothing. */
typedef struct hl_operator_arrays {
    void *f, *const *d, *divergence;
    const void *gf, *const *gd, *gdiv;
    void *gx, *gt, *gcontext, *const *gparam;
} hl_operator_arrays;
HL_API hl_status hl_operator_eval_vjp(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                                      const hl_operator_arrays *arrays);
/* The plan that eval runs when all results are asked for. */
HL_API const hl_plan *hl_operator_plan(const hl_operator *op);

#ifdef __cplusplus
}
#endif

#endif
