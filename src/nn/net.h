/* net.h - inside a network. */
#ifndef HL_NET_H
#define HL_NET_H

#include "base/base.h"
#include "graph/graph.h"
#include "hollow/net.h"

#define HL_MAX_TERMS 64
#define HL_MAX_REFLECTIONS 64
#define HL_MAX_ORDER 32 /* of D^k */

typedef struct hl_conditioner hl_conditioner;
typedef struct hl_transformer hl_transformer;

typedef struct hl_param_info {
    char name[64];
    hl_shape shape;
    size_t fan_in;     /* variance of the initial values is 1 / fan_in; 0: they start at 0 */
    uint32_t *lo, *hi; /* mask: of row n along the last axis, only lo[n] <= k < hi[n] is there; NULL: dense */
    size_t offset;     /* in the network's values, in elements */
} hl_param_info;

/* One of the networks whose sum the network is. */
typedef struct hl_term {
    hl_net_spec
        spec; /* defaults filled in; strings point to static names, order to the own copy, plus to the next term */
    const hl_conditioner *conditioner;
    const hl_transformer *transformer;
    hl_node (*activation)(hl_graph *g, hl_node x);
    size_t *order, *inverse; /* [dim] columns as the conditioner takes them, and the way back; NULL: as they are */
    size_t tau_param;        /* the first parameter of the transformer */
} hl_term;

struct hl_net {
    hl_context *ctx;
    size_t dim, context;
    bool time;
    hl_dtype dtype;
    hl_term *term;
    size_t terms;
    hl_param_info *param;
    size_t params, capacity, values_size; /* elements of `values` */
    void *values;
};

/* What each row adds to the weights: layer by layer a bias (where the context does not enter already) and U V', bounded
 * (update.c). All of it comes from one vector a row. */
typedef struct hl_update {
    size_t rank;
    hl_node values; /* [size]; HL_NONE: only count them */
    size_t size;    /* those used so far */
} hl_update;

/* While a network is built into a graph: parameters come in a fixed order, and the first building declares them. */
typedef struct hl_builder {
    hl_net *net; /* written only while declaring */
    const hl_term *term;
    hl_graph *g;
    hl_node x, t, context; /* x as the term sees it */
    hl_node *node;
    size_t next;
    bool declaring, reuse;
    hl_update *update; /* NULL: none */
} hl_builder;

/* The next parameter: declared, made, or taken from the given nodes. */
hl_node hl_builder_param(hl_builder *b, const char *name, int rank, const size_t *dims, size_t fan_in);
/* The next parameter, a matrix under an interval mask, applied to x. lo and hi are copied. */
hl_node hl_builder_masked(hl_builder *b, const char *name, hl_node x, size_t out, size_t in, const uint32_t *lo,
                          const uint32_t *hi);
/* A convolution that keeps the image's size. `taps`, kernel x kernel, says which taps exist (NULL: all); in each row of the
 * kernel they are neighbours. */
hl_node hl_builder_conv(hl_builder *b, const char *name, hl_node y, size_t out, size_t in, size_t kernel,
                        const unsigned char *taps);
/* w_t t + w_c context + bias for `units` units: [units] or [dim, units] if each dimension has its own. */
hl_node hl_builder_offset(hl_builder *b, const char *name, size_t units, bool per_dimension, size_t fan_in);

/* z of a layer with its update by the row; z itself if there is none (update.c).
 * masked:  z [out] from y [in]; unit n sees lo[n] <= k < hi[n].
 * outputs: z [dim, units] from y [in]; dimension i sees lo[i * units] <= k < hi[i * units]; U is shared by the dimensions.
 * shared:  z [dim, units] from y [dim, in] and, if it is not HL_NONE, x [dim, 1]; U and V are shared by the dimensions, but for the
 *          rows of V that take x, and for U of the last layer, whose outputs are the dimensions themselves. */
hl_node hl_update_masked(hl_builder *b, hl_node z, hl_node y, bool bias, const uint32_t *lo, const uint32_t *hi);
hl_node hl_update_outputs(hl_builder *b, hl_node z, hl_node y, const uint32_t *lo, const uint32_t *hi);
hl_node hl_update_shared(hl_builder *b, hl_node z, hl_node y, hl_node x, bool last);
/* hl_net_build with an update; and how many values it takes. The conditioner must be made or autoregressive, the transformer
 * shared. */
hl_status hl_net_build_updated(const hl_net *net, hl_graph *g, int order, hl_diff_mode mode, hl_net_nodes *n,
                               hl_update *update);
hl_status hl_net_update_size(const hl_net *net, size_t rank, size_t *size);

/* A dense layer, weights shared by all leading axes: act(w y + bias), or without act. */
hl_node hl_builder_dense(hl_builder *b, const char *name, hl_node y, size_t out, size_t in, bool active);
/* A vector of its own for each dimension, [dim, units]. */
hl_node hl_builder_place(hl_builder *b, const char *name, size_t units, size_t fan_in);
/* Every x_j by itself, [dim, units] (encode.c). */
hl_node hl_builder_encode(hl_builder *b, size_t units);

/* How h_i is made from the other x. One row per conditioner. */
struct hl_conditioner {
    hl_status (*check)(hl_context *ctx, const hl_net_spec *spec); /* NULL: everything is allowed */
    hl_node (*build)(hl_builder *b);                              /* [dim, features] */
    bool triangular;                                              /* h_i sees only x_j with j < i */
    bool image;                                                   /* uses the specification's image and kernel */
    size_t hidden_above; /* has hidden layers if there are more dimensions than this */
};
#define HL_CONDITIONER(symbol, name) extern const hl_conditioner hl_conditioner_##symbol;
#include "nn/kinds.def"
/* Tables and their names in the same order; both end with NULL. */
extern const hl_conditioner *const hl_conditioners[];
extern const char *const hl_conditioner_names[], *const hl_transformer_names[], *const hl_activation_names[];

/* tau: f_i from x_i, h_i, t and context. One row per transformer. */
struct hl_transformer {
    bool per_dimension;                         /* every dimension has its own weights */
    bool rising;                                /* needs an activation that rises everywhere */
    bool no_layers;                             /* has no hidden layers */
    hl_node (*build)(hl_builder *b, hl_node h); /* h [dim, features] to [dim] */
};
#define HL_TRANSFORMER(symbol, name) extern const hl_transformer hl_transformer_##symbol;
#include "nn/kinds.def"
extern const hl_transformer *const hl_transformers[]; /* ends with NULL */
/* A product along the last axis of h [dim, features]: [dim, units], weights shared or of each dimension. */
hl_node hl_builder_product(hl_builder *b, const char *name, hl_node h, size_t units, size_t in, size_t fan_in);

/* Check a specification and its `plus` and fill in the defaults; sets the terms. */
hl_status hl_net_set_spec(hl_net *net, const hl_net_spec *spec);
/* A network whose parameters are known but have no memory yet; and that memory, zeroed. */
hl_status hl_net_declare(hl_context *ctx, const hl_net_spec *spec, hl_net **net);
hl_status hl_net_allocate(hl_net *net);

/* What was built for one term. */
typedef struct hl_term_nodes {
    hl_node x, h, u; /* as the term sees x; its h; its output in the same basis and order */
    hl_node z, w1,
        w2;    /* the plain network's hidden units before the activation, and its weights; HL_NONE without one */
    hl_node f; /* the term's share of f */
} hl_term_nodes;
/* Build one term (term.c). */
hl_term_nodes hl_term_build(hl_builder *b, const hl_term *term, hl_node x);
/* D^1..D^order and the divergence of the sum of the terms; with reflections d holds only what the others give. */
hl_status hl_net_derive(const hl_net *net, hl_graph *g, const hl_term_nodes *n, int order, hl_diff_mode mode,
                        hl_node *d, hl_node *divergence);
/* The transformer of a network of one term by itself: f_i and D f_i in the term's order of columns, from x in that order and
 * any h [dim, features]. `param` receives the nodes of all parameters. */
hl_status hl_net_build_tau(const hl_net *net, hl_graph *g, hl_node x, hl_node h, hl_node t, hl_node context,
                           hl_node *param, hl_node *f, hl_node *d);
/* An operator on rows of doubles: f and, if it is not NULL, the divergence; gradients of gf . f + gdiv . divergence (NULL: zeros), in the
 * network's precision, to gparam. */
void hl_operator_eval_rows(hl_operator *op, size_t rows, const double *x, const double *t, const double *context,
                           double *f, double *divergence);
void hl_operator_vjp_rows(hl_operator *op, size_t rows, const double *x, const double *t, const double *context,
                          const double *gf, const double *gdiv, void *const *gparam);
/* Does any term work in another basis? Then there is a divergence but no D. */
bool hl_net_turned(const hl_net *net);

#endif
