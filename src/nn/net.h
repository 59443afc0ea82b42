/* net.h - inside a network. */
#ifndef HL_NET_H
#define HL_NET_H

#include "base/base.h"
#include "graph/graph.h"
#include "hollow/net.h"

typedef struct hl_conditioner hl_conditioner;

typedef struct hl_param_info {
    char name[64];
    hl_shape shape;
    size_t fan_in;     /* variance of the initial values is 1 / fan_in; 0: they start at 0 */
    uint32_t *lo, *hi; /* mask: of row n along the last axis, only lo[n] <= k < hi[n] is there; NULL: dense */
    size_t offset;     /* in the network's values, in elements */
} hl_param_info;

struct hl_net {
    hl_context *ctx;
    hl_net_spec spec; /* strings point to static names */
    const hl_conditioner *conditioner;
    hl_node (*activation)(hl_graph *g, hl_node x);
    bool per_dimension;
    hl_param_info *param;
    size_t params, capacity, values_size; /* elements of `values` */
    void *values;
};

/* While a network is built into a graph: parameters come in a fixed order, and the first building declares them. */
typedef struct hl_builder {
    hl_net *net; /* written only while declaring */
    hl_graph *g;
    hl_node x, t, context;
    hl_node *node;
    size_t next;
    bool declaring, reuse;
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

/* A dense layer, weights shared by all leading axes: act(w y + bias), or without act. */
hl_node hl_builder_dense(hl_builder *b, const char *name, hl_node y, size_t out, size_t in, bool active);
/* A vector of its own for each dimension, [dim, units]. */
hl_node hl_builder_place(hl_builder *b, const char *name, size_t units, size_t fan_in);
/* Every x_j by itself, [dim, units] (encode.c). */
hl_node hl_builder_encode(hl_builder *b, size_t units);

/* How h_i is made from the other x. One row per conditioner. */
struct hl_conditioner {
    const char *name;
    hl_status (*check)(hl_context *ctx, const hl_net_spec *spec);
    hl_node (*build)(hl_builder *b); /* [dim, features] */
};
extern const hl_conditioner hl_conditioner_made, hl_conditioner_sum, hl_conditioner_tree, hl_conditioner_attention,
    hl_conditioner_conv;
extern const hl_conditioner *const hl_conditioners[]; /* ends with NULL */

/* Check the specification and fill in the defaults; sets spec, conditioner, activation, per_dimension. */
hl_status hl_net_set_spec(hl_net *net, const hl_net_spec *spec);
/* A network whose parameters are known but have no memory yet; and that memory, zeroed. */
hl_status hl_net_declare(hl_context *ctx, const hl_net_spec *spec, hl_net **net);
hl_status hl_net_allocate(hl_net *net);
hl_node hl_transformer_build(hl_builder *b, hl_node h);

#endif
