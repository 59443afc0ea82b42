/* vae.h - inside an autoencoder. */
#ifndef HL_VAE_H
#define HL_VAE_H

#include "graph/graph.h"
#include "hollow/vae.h"
#include "learn/curve.h"
#include "nn/net.h"
#include "nn/params.h"

typedef struct hl_vae_net hl_vae_net;
typedef struct hl_vae_posterior hl_vae_posterior;

enum {
    HL_VAE_PIECES = 40,   /* at most, that the encoder gives to the posterior */
    HL_VAE_MAX_LAYERS = 8 /* hidden, of ffjord's network */
};
#define HL_VAE_LEAST_DEVIATION 1e-3 /* of columns, in their units */
#define HL_VAE_TOLERANCE 1e-4       /* of the adaptive solver, relative and absolute */

/* Where parts begin among the parameters. */
typedef enum hl_vae_part { HL_VAE_TRUNK, HL_VAE_HEADS, HL_VAE_FLOW, HL_VAE_DECODER, HL_VAE_END } hl_vae_part;

/* The plans of evaluation (plans.c). */
typedef struct hl_vae_plans {
    hl_plan *encode; /* x -> pieces */
    hl_plan *start;  /* pieces, noise -> z0, log q0; the flow as well, if it is not continuous: z, log |det| */
    hl_plan *field;  /* pieces, z, probe, t -> dz/dt, its trace; NULL if not continuous */
    hl_plan *decode; /* x, z -> log p(x | z), log p(z) */
    hl_plan *mean;   /* z -> the mean of p(x | z) */
} hl_vae_plans;

struct hl_vae {
    hl_context *ctx;
    hl_vae_spec spec; /* defaults filled in; strings point to static names */
    const hl_vae_net *net;
    const hl_vae_posterior *posterior;
    bool gaussian, hutchinson;
    bool updated; /* the code changes the weights of a hollow field */
    size_t dim;
    hl_net *field;      /* of posterior hollow, for its structure and its first values; else NULL */
    size_t update_size; /* values of the field's update by the code; 0 without one */
    hl_params *params;
    double *deviation; /* [params] of the first values; < 0: taken from `field` */
    double *offset;    /* [params] added to all first values */
    size_t deviations, deviation_capacity, offset_capacity;
    size_t part[HL_VAE_END + 1];
    size_t pieces, piece_size[HL_VAE_PIECES];
    hl_vae_plans plans; /* made when first needed */
    hl_curve *course;   /* of its training; NULL: not known */
    hl_row_sketch rows; /* that trained it, by hl_vae_row_hash; empty: not known */
    /* The networks see (x - shift) / scale ([dim] each, owned by `shift`); NULL: x itself. */
    double *shift, *scale;
    double log_scale;   /* sum of log(scale) */
    const char **names; /* [dim], or NULL */
};

/* A copy of names in one piece of memory, which hl_free frees; NULL without memory. */
const char **hl_names_copy(hl_context *ctx, size_t count, const char *const *names);

/* While an autoencoder is built into a graph. Parameters come in a fixed order; the first building declares them. */
typedef struct hl_vae_builder {
    hl_vae *vae; /* written only while declaring */
    hl_graph *g;
    hl_node *param;
    size_t next, known, capacity; /* the next parameter; those that there are already */
    bool declaring, entered[HL_VAE_END];
} hl_vae_builder;

/* What the encoder gives to the posterior: vectors, one per row. 0 is the mean and 1 the variance of z0. */
typedef struct hl_vae_pieces {
    size_t count;
    hl_node node[HL_VAE_PIECES];
} hl_vae_pieces;

/* The next parameter; its first values are normal with this deviation, plus an offset. */
hl_node hl_vae_param(hl_vae_builder *b, const char *name, int rank, const size_t *dims, double deviation,
                     double offset);
/* w y + bias: [in] to [out]. `gain` times the deviation 1 / sqrt(in). */
hl_node hl_vae_dense(hl_vae_builder *b, const char *name, hl_node y, size_t out, double gain, double bias);
/* Zeros of the shape of a node. */
hl_node hl_vae_zero(hl_vae_builder *b, hl_node like);
/* A piece: a dense layer of the code. */
hl_node hl_vae_head(hl_vae_builder *b, hl_vae_pieces *p, const char *name, hl_node code, size_t size, double gain,
                    double bias);
/* A node becomes a piece as it is. */
void hl_vae_add_piece(hl_vae_builder *b, hl_vae_pieces *p, hl_node node);

/* Encoder and decoder. One row per name (networks.c). */
struct hl_vae_net {
    const char *name;
    bool images;                                     /* needs an image */
    hl_node (*encode)(hl_vae_builder *b, hl_node x); /* [dim] to the code, a vector */
    hl_node (*decode)(hl_vae_builder *b, hl_node z); /* [latent] to [dim] */
};
extern const hl_vae_net hl_vae_net_list[]; /* ends with a NULL name */

/* q(z | x) from z0. One row per name (posterior.c, continuous.c). A posterior has `apply` or `field`, or neither. */
struct hl_vae_posterior {
    const char *name;
    /* Its own pieces, after mean and variance. */
    void (*heads)(hl_vae_builder *b, hl_node code, hl_vae_pieces *p);
    /* z from z0, and *log_det [scalar]. `first` is its first piece. */
    hl_node (*apply)(hl_vae_builder *b, const hl_node *piece, hl_node z, hl_node *log_det);
    /* dz/dt at t, and its trace, by the probe if the trace is stochastic. */
    hl_node (*field)(hl_vae_builder *b, const hl_node *piece, hl_node z, hl_node t, hl_node probe, hl_node *trace);
};
extern const hl_vae_posterior hl_vae_posterior_vae, hl_vae_posterior_planar, hl_vae_posterior_iaf,
    hl_vae_posterior_sylvester, hl_vae_posterior_ffjord, hl_vae_posterior_hollow;
extern const hl_vae_posterior *const hl_vae_posterior_list[]; /* ends with NULL */

/* Check a specification and fill in the defaults (spec.c). */
hl_status hl_vae_set_spec(hl_vae *vae, const hl_vae_spec *spec);

/* Parameters as nodes of a graph, in order; then builders for parts. */
hl_status hl_vae_builder_init(hl_vae_builder *b, hl_vae *vae, hl_graph *g);
void hl_vae_builder_free(hl_vae_builder *b);
void hl_vae_build_pieces(hl_vae_builder *b, hl_node x, hl_vae_pieces *p);
/* z0 = mean + sqrt(variance) noise, and log q0(z0). */
hl_node hl_vae_build_start(hl_vae_builder *b, const hl_vae_pieces *p, hl_node noise, hl_node *log_q0);
/* z and log |det| from z0; `steps` RK4 steps if the flow is continuous. */
hl_node hl_vae_build_flow(hl_vae_builder *b, const hl_vae_pieces *p, hl_node z0, hl_node probe, size_t steps,
                          hl_node *log_det);
/* dz/dt of a continuous flow at t, and its trace. */
hl_node hl_vae_build_field(hl_vae_builder *b, const hl_vae_pieces *p, hl_node z, hl_node probe, hl_node t,
                           hl_node *trace);
/* log p(x | z), and log p(z). */
hl_node hl_vae_build_likelihood(hl_vae_builder *b, hl_node x, hl_node z);
hl_node hl_vae_build_prior(hl_vae_builder *b, hl_node z);
/* Logits, or means, of x. */
hl_node hl_vae_build_decoder(hl_vae_builder *b, hl_node z);

/* Make the plans of evaluation if they are not there (plans.c). */
hl_status hl_vae_compile(hl_vae *vae);
void hl_vae_plans_free(hl_vae_plans *plans);

/* A set of parameters without values, from a specification; and the rest (vae.c). */
hl_status hl_vae_declare(hl_context *ctx, const hl_vae_spec *spec, hl_vae **vae);

#endif
