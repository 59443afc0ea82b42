/* hollow/vae.h - variational autoencoders whose approximate posterior is a flow.
 *
 *     hl_vae_spec spec = { .image = { 1, 28, 28 }, .net = "small", .latent = 64, .posterior = "hollow" };
 *     hl_vae_create(ctx, &spec, &vae);
 *     hl_vae_init(vae, 1);
 *     ... hl_vae_fit (hollow/vae_fit.h) creates, initialises and trains in one call ...
 *     hl_vae_evaluate(vae, &rows, &(hl_vae_eval_options){ .importance = 5000 }, NULL, &result);
 *     hl_vae_sample(vae, 100, seed, NULL, probability);
 *
 * An encoder maps a row x to a code; the posterior q(z | x) starts from a normal variable z0 with mean and variance from the code
 * and transforms it by a flow whose parameters come from the code as well; a decoder gives p(x | z); p(z) is standard normal.
 *
 *     -ELBO   = E_q[ -log p(x | z) - log p(z) + log q(z | x) ]
 *     IWAE-k  = E[ log (1/k) sum_j p(x | z_j) p(z_j) / q(z_j | x) ],  a lower bound of log p(x) that rises with k
 *
 * Probabilities are never formed: the Bernoulli likelihood is computed from logits. All results are in nats per row. A row's result
 * depends on the model, the seed and the row's own values; the other rows, the chunk size and the number of threads change no bit.
 * Only rows that are equal are told apart, in evaluations: the second, the third, ... each have samples of their own. */
#ifndef HOLLOW_VAE_H
#define HOLLOW_VAE_H

#include "hollow/job.h"
#include "hollow/params.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_vae hl_vae; /* opaque */

/* What an autoencoder is. Zero or NULL in any field means the default. Strings are not kept. */
typedef struct hl_vae_spec {
    size_t image[3];        /* channels, height, width; or leave it 0 and set dim */
    size_t dim;             /* values of a row, if it is no image */
    const char *likelihood; /* "bernoulli" (default): values 0 and 1; "gaussian": real values, one learned deviation */
    const char *net;        /* encoder and decoder: "fc" (default; gated dense layers 300-300), "small", "mid", "paper"
                             * (gated convolutions, for images), "linear" (the code is x, the decoder is affine) */
    size_t latent;          /* values of z; default 64, at most 4096 */
    const char *posterior;  /* "vae" (default; diagonal normal), "planar", "iaf", "sylvester", "ffjord", "hollow" */
    size_t flows;           /* planar: default 16; iaf, sylvester: default 4 */
    size_t columns;         /* sylvester: columns of Q; default the smaller of 8 and latent */
    size_t hidden;          /* units of each layer; iaf: default 320; ffjord: 64; hollow's conditioner: 64 */
    int layers;             /* hidden layers of ffjord's network, or of hollow's transformer; default 2; -1: none */
    size_t features;        /* hollow: values of each h_i, even; default 32 */
    size_t width;           /* hollow: units of each transformer layer; default 32 */
    size_t rank;            /* ffjord, hollow: rank of the update of each layer's weights by the code; default 4 */
    const char *code;       /* hollow: "input" (default): the code is an input of the network; "weights": it changes the
                             * weights of each layer as well */
    const char *activation; /* ffjord, hollow: "tanh" (default), "elu", "softplus", "swish", "sigmoid" */
    const char *trace; /* ffjord, hollow: "exact" or "hutchinson"; default hutchinson for ffjord, exact for hollow */
    size_t steps;      /* ffjord, hollow: RK4 steps of evaluations; default 0: an adaptive solver */
    hl_dtype dtype;    /* default HL_F32 */
} hl_vae_spec;

/* Names, each list ending with NULL. */
HL_API const char *const *hl_vae_nets(void);
HL_API const char *const *hl_vae_posteriors(void);

HL_API hl_status hl_vae_create(hl_context *context, const hl_vae_spec *spec, hl_vae **vae); /* all parameters 0 */
HL_API void hl_vae_free(hl_vae *vae);                                                       /* takes NULL */
/* Random weights. The same seed gives the same weights on every machine. */
HL_API hl_status hl_vae_init(hl_vae *vae, uint64_t seed);
/* The specification with all defaults filled in. Its strings are borrowed until the autoencoder is freed. */
HL_API hl_vae_spec hl_vae_describe(const hl_vae *vae);
HL_API size_t hl_vae_dim(const hl_vae *vae); /* values of a row */
/* All parameters; borrowed until the autoencoder is freed. */
HL_API hl_params *hl_vae_params(hl_vae *vae);
/* The RK4 steps of evaluations with a continuous posterior, 1..4096; 0: an adaptive solver. */
HL_API hl_status hl_vae_set_steps(hl_vae *vae, size_t steps);
/* Copy encoder and decoder, without what the posterior takes from the code, from another autoencoder of equal sizes. */
HL_API hl_status hl_vae_copy_networks(hl_vae *vae, const hl_vae *from);

/* The course of the training, as hl_vae_fit left it and the model's file keeps it: losses and validations are -ELBO. *count points, or NULL and 0
 * if it is not known. Borrowed from the autoencoder. */
HL_API const hl_training_point *hl_vae_course(const hl_vae *vae, size_t *count);

/* Model files: safetensors, with the specification in the header's metadata. Written atomically. */
HL_API hl_status hl_vae_save(const hl_vae *vae, const char *path);
HL_API hl_status hl_vae_load(hl_context *context, const char *path, hl_vae **vae);
/* The bytes of the model's file in memory, as hl_density_write and hl_density_read. */
HL_API hl_status hl_vae_write(const hl_vae *vae, void *bytes, size_t capacity, size_t *size);
HL_API hl_status hl_vae_read(hl_context *context, const void *bytes, size_t size, hl_vae **vae);

/* Rows of data, borrowed. Give `bytes` or `values`. With the Bernoulli likelihood bytes are 0 and 1, unless `gray` is nonzero:
 * then they are 0..255 and each is drawn once, P(1) = byte / 255, by a seed of its own. */
typedef struct hl_vae_rows {
    size_t rows;
    const unsigned char *bytes; /* rows x dim */
    const double *values;       /* rows x dim */
    int gray;
} hl_vae_rows;

/* Read `count` rows by their numbers, from 0 on: count x dim bytes, or doubles if the source is `real`. The same row must be the same
 * values whenever it is read. Return HL_OK; any error ends the call and is its status. */
typedef hl_status hl_vae_read_fn(size_t count, const size_t *row, void *to, void *user);

/* Rows that stay where they are and are read when they are needed. */
typedef struct hl_vae_source {
    size_t rows;
    hl_vae_read_fn *read;
    void *user; /* passed to `read` */
    int real;   /* nonzero: rows are doubles; else bytes */
    int gray;   /* as in hl_vae_rows */
} hl_vae_source;

/* Zero in any field means the default. */
typedef struct hl_vae_eval_options {
    uint64_t seed;
    size_t samples;    /* of the ELBO, per row; default 1 */
    size_t importance; /* k of IWAE-k; default none */
    size_t chunk;      /* pairs of row and sample that go through together; default 256; changes no bit */
    size_t steps;      /* RK4 steps of a continuous posterior; default the autoencoder's */
    double tolerance;  /* > 0: relative and absolute, of the adaptive solver, which is then used; default 1e-4 */
    /* A stochastic trace biases IWAE-k upwards, by half the variance of its noise for large k, so it is refused unless this
     * is nonzero. */
    int allow_biased;
    int (*progress)(size_t rows_done, size_t rows, void *user); /* nonzero stops with HL_STOPPED; default none */
    void *user;
} hl_vae_eval_options;

/* Of one row. */
typedef struct hl_vae_row_result {
    double elbo;           /* mean over the samples */
    double reconstruction; /* mean log p(x | z) */
    double log_ratio;      /* mean log p(z) - log q(z | x): minus the KL divergence, estimated */
    double log_det;        /* mean log |dz / dz0| */
    double iwae;           /* IWAE-k; NaN if none was asked for */
    double effective;      /* effective number of the k importance samples; NaN likewise */
} hl_vae_row_result;

/* Means over rows, and standard errors of these means. */
typedef struct hl_vae_result {
    size_t rows, samples, importance;
    double elbo, elbo_error, reconstruction, log_ratio, log_det;
    double iwae, iwae_error, effective; /* NaN if none was asked for */
    double
        trace_bias; /* half the variance of the trace's noise, from at most 64 rows: IWAE-k rises by it for large k */
    size_t active;  /* latent columns whose posterior mean varies over the rows by a variance above 0.01 */
    size_t steps;   /* RK4 steps of the posterior; 0 if it is not continuous, or solved with steps that adapt */
    double evaluations; /* of a continuous posterior's network, mean per sample; else 0 */
    double
        step_error; /* largest change of a row's log weight, of at most 64 rows, by twice the steps or a tenth of the tolerance */
} hl_vae_result;

/* -ELBO and IWAE-k. Each row is encoded once, and memory does not grow with k. `row`, if not NULL, receives a result for each. */
HL_API hl_status hl_vae_evaluate(hl_vae *vae, const hl_vae_rows *rows, const hl_vae_eval_options *options,
                                 hl_vae_row_result *row, hl_vae_result *result);

/* The mean of z0 (rows x latent) and one sample of z; either may be NULL. */
HL_API hl_status hl_vae_encode(hl_vae *vae, const hl_vae_rows *rows, uint64_t seed, double *mean, double *z);
/* The mean of p(x | z), rows x dim. */
HL_API hl_status hl_vae_decode(hl_vae *vae, size_t rows, const double *z, double *mean);
/* z (rows x latent, may be NULL) from the standard normal distribution, and the mean of p(x | z). */
HL_API hl_status hl_vae_sample(hl_vae *vae, size_t rows, uint64_t seed, double *z, double *mean);
/* log p(x | z) + log p(z) (rows), and log q of sample z from noise e (rows x latent, standard normal): q's flow applied to
 * given noise. z (rows x latent), log_q and log_joint (rows) may be NULL. */
HL_API hl_status hl_vae_push(hl_vae *vae, const hl_vae_rows *rows, const double *noise, double *z, double *log_q,
                             double *log_joint);

#ifdef __cplusplus
}
#endif

#endif
