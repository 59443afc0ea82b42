/* hollow/vae.h - variational autoencoders whose approximate posterior is a flow.
 *
 *     hl_vae_spec spec = { .image = { 1, 28, 28 }, .net = "small", .latent = 64, .posterior = "hollow" };
 *     hl_vae_create(ctx, &spec, &vae);
 *     hl_vae_init(vae, 1);
 *     ... train; hl_vae_fit (hollow/vae_fit.h) creates, initialises and trains in one call ...
 *     hl_vae_evaluate(vae, &rows, &(hl_vae_eval_options){ .importance = 5000 }, NULL, &result);
 *     hl_vae_sample(vae, 100, seed, NULL, probability);
 *
 * An encoder maps a row x to a code. The posterior q(z | x) transforms a normal variable z0, whose mean and variance come from the code, by a
 * flow, whose parameters also come from the code. A decoder gives p(x | z). The prior p(z) is standard normal.
 *
 *     -ELBO   = E_q[ -log p(x | z) - log p(z) + log q(z | x) ]
 *     IWAE-k  = E[ log (1/k) sum_j p(x | z_j) p(z_j) / q(z_j | x) ],  a lower bound of log p(x) that increases with k
 *
 * The Bernoulli likelihood is computed from logits. Results are in nats per row. The result of a row depends on the model, the seed and the
 * values of the row; it is bitwise independent of the other rows, the chunk size and the number of threads. As an exception, evaluation uses
 * different samples for each of several equal rows. */
#ifndef HOLLOW_VAE_H
#define HOLLOW_VAE_H

#include "hollow/job.h"
#include "hollow/params.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_vae hl_vae; /* opaque */

/* Specification of an autoencoder. Zero or NULL in any field means the default. Strings are copied. */
typedef struct hl_vae_spec {
    /* Images: channels, height, width. Other data: 0, and set dim. */
    size_t image[3];
    size_t dim;
    /* "bernoulli" (default) for values 0 and 1; "gaussian" for real values. */
    const char *likelihood;
    /* gaussian: learned standard deviations: 1 for all values, or one for each, in the units of hl_vae_set_columns. Default 1 for images, else
     * dim. */
    size_t deviations;
    /* Encoder and decoder: "fc" (default; gated dense layers 300-300); "small", "mid", "paper" (gated convolutions, for images); "linear" (the
     * code is x, the decoder is affine). */
    const char *net;
    /* Dimension of z, at most 4096. Default 64, or the number of values per row if that is less. */
    size_t latent;
    /* "vae" (default; diagonal normal), "planar", "iaf", "sylvester", "ffjord" or "hollow". */
    const char *posterior;
    /* Number of flows. Default 16 for planar, 4 for iaf and sylvester. */
    size_t flows;
    /* sylvester: columns of Q. Default min(8, latent). */
    size_t columns;
    /* Units of each layer. Default 320 for iaf, 64 for ffjord and for the conditioner of hollow. */
    size_t hidden;
    /* Hidden layers of the network of ffjord, or of the transformer of hollow. Default 2; -1 for none. */
    int layers;
    /* hollow: number of features in each h_i, even. Default 32. */
    size_t features;
    /* hollow: units of each transformer layer. Default 32. */
    size_t width;
    /* ffjord, hollow: rank of the update of each layer's weights by the code. Default 4. */
    size_t rank;
    /* hollow: "input" (default), the code is an input of the network; "weights", it also changes the weights of each layer. */
    const char *code;
    /* ffjord, hollow: "tanh" (default), "elu", "softplus", "swish" or "sigmoid". */
    const char *activation;
    /* ffjord, hollow: "exact" or "hutchinson". Default hutchinson for ffjord, exact for hollow. */
    const char *trace;
    /* ffjord, hollow: RK4 steps of evaluations. Default 0: an adaptive solver. */
    size_t steps;
    /* Precision. Default HL_F32. */
    hl_dtype dtype;
} hl_vae_spec;

/* Names of networks and posteriors; each list ends with NULL. */
HL_API const char *const *hl_vae_nets(void);
HL_API const char *const *hl_vae_posteriors(void);

HL_API hl_status hl_vae_create(hl_context *context, const hl_vae_spec *spec, hl_vae **vae); /* all parameters 0 */
HL_API void hl_vae_free(hl_vae *vae);                                                       /* takes NULL */
/* Set random weights. The same seed gives the same weights on every machine. */
HL_API hl_status hl_vae_init(hl_vae *vae, uint64_t seed);
/* The specification with all defaults filled in. Its strings are borrowed until the autoencoder is freed. */
HL_API hl_vae_spec hl_vae_describe(const hl_vae *vae);
HL_API size_t hl_vae_dim(const hl_vae *vae); /* values per row */
/* All parameters. Borrowed until the autoencoder is freed. */
HL_API hl_params *hl_vae_params(hl_vae *vae);
/* Set the RK4 steps of evaluations with a continuous posterior, 1..4096; 0: an adaptive solver. */
HL_API hl_status hl_vae_set_steps(hl_vae *vae, size_t steps);
/* Gaussian likelihood: units of the columns. The networks see (x - shift) / scale (dim values each); bounds, means and samples are in the units
 * of x. hl_vae_fit sets them from the training rows. By default the networks see x itself. */
HL_API hl_status hl_vae_set_columns(hl_vae *vae, const double *shift, const double *scale);
/* Borrowed from the autoencoder; NULL if it has none. */
HL_API void hl_vae_columns(const hl_vae *vae, const double **shift, const double **scale);
/* Names of the columns, dim texts. Copies; NULL: the columns have no names. hl_vae_name: one of them, borrowed from the autoencoder; NULL if there
 * is none. */
HL_API hl_status hl_vae_set_names(hl_vae *vae, const char *const *names);
HL_API const char *hl_vae_name(const hl_vae *vae, size_t column);
/* Copy encoder, decoder and units from another autoencoder of the same sizes, except the layers that produce the parameters of the posterior. */
HL_API hl_status hl_vae_copy_networks(hl_vae *vae, const hl_vae *from);

/* The training history, as recorded by hl_vae_fit and kept in the model file; losses and validations are -ELBO. *count receives the number of
 * points; NULL and 0 if unknown. Borrowed from the autoencoder. */
HL_API const hl_training_point *hl_vae_course(const hl_vae *vae, size_t *count);

/* Model files in safetensors format, with the specification in the metadata. Files are replaced atomically. */
HL_API hl_status hl_vae_save(const hl_vae *vae, const char *path);
HL_API hl_status hl_vae_load(hl_context *context, const char *path, hl_vae **vae);
/* The contents of the model file in memory, as hl_density_write and hl_density_read. */
HL_API hl_status hl_vae_write(const hl_vae *vae, void *bytes, size_t capacity, size_t *size);
HL_API hl_status hl_vae_read(hl_context *context, const void *bytes, size_t size, hl_vae **vae);

/* Rows of data, borrowed. Set `bytes` or `values`. With the Bernoulli likelihood, bytes are 0 and 1. If `gray` is nonzero they are 0..255, and
 * each pixel is drawn once with P(1) = byte / 255. */
typedef struct hl_vae_rows {
    size_t rows;
    const unsigned char *bytes; /* rows x dim */
    const double *values;       /* rows x dim */
    int gray;
} hl_vae_rows;

/* Read `count` rows by their numbers (from 0): count x dim bytes, or doubles if the source is `real`. A row must have the same values every
 * time. Return HL_OK; an error ends the call, which returns it. */
typedef hl_status hl_vae_read_fn(size_t count, const size_t *row, void *to, void *user);

/* Rows that are read when they are needed. */
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
    /* Samples per row for the ELBO. Default 1. */
    size_t samples;
    /* k of IWAE-k. Default 0: no IWAE bound. */
    size_t importance;
    /* Pairs of row and sample that are processed together. Default 256. Does not change results. */
    size_t chunk;
    /* RK4 steps of a continuous posterior. Default: those of the autoencoder. */
    size_t steps;
    /* > 0: use the adaptive solver with this relative and absolute tolerance. Its default is 1e-4. */
    double tolerance;
    /* Nonzero: allow IWAE with a stochastic trace. It is biased upwards, for large k by half the variance of the noise. Default: an error. */
    int allow_biased;
    /* Progress callback. A nonzero result stops with HL_STOPPED. Default none. */
    int (*progress)(size_t rows_done, size_t rows, void *user);
    void *user;
} hl_vae_eval_options;

/* Result of one row. */
typedef struct hl_vae_row_result {
    double elbo;           /* mean over the samples */
    double reconstruction; /* mean log p(x | z) */
    double log_ratio;      /* mean log p(z) - log q(z | x): an estimate of minus the KL divergence */
    double log_det;        /* mean log |dz / dz0| */
    double iwae;           /* IWAE-k; NaN if not requested */
    double effective;      /* effective number of the k importance samples; NaN if not requested */
} hl_vae_row_result;

/* Means over rows with their standard errors. */
typedef struct hl_vae_result {
    size_t rows, samples, importance;
    double elbo, elbo_error, reconstruction, log_ratio, log_det;
    double iwae, iwae_error, effective; /* NaN if not requested */
    /* Half the variance of the noise of a stochastic trace, from at most 64 rows: the bias of IWAE-k for large k. */
    double trace_bias;
    size_t active;      /* latent columns whose posterior mean has a variance above 0.01 over the rows */
    size_t steps;       /* RK4 steps of the posterior; 0 if it is not continuous, or with an adaptive solver */
    double evaluations; /* evaluations of a continuous posterior's network, mean per sample; else 0 */
    /* Largest change of a row's log weight, from at most 64 rows, with twice the steps or a tenth of the tolerance. */
    double step_error;
} hl_vae_result;

/* Compute -ELBO and IWAE-k. Each row is encoded once, and memory does not grow with k. `row`, if not NULL, receives the result of each row. */
HL_API hl_status hl_vae_evaluate(hl_vae *vae, const hl_vae_rows *rows, const hl_vae_eval_options *options,
                                 hl_vae_row_result *row, hl_vae_result *result);

/* Encode: the mean of z0, and one sample of z (rows x latent each; either may be NULL). HL_ERR_NOT_FINITE if a value is not finite,
 * also of hl_vae_decode. */
HL_API hl_status hl_vae_encode(hl_vae *vae, const hl_vae_rows *rows, uint64_t seed, double *mean, double *z);
/* Decode: the mean of p(x | z), rows x dim. */
HL_API hl_status hl_vae_decode(hl_vae *vae, size_t rows, const double *z, double *mean);
/* Draw z (rows x latent; may be NULL) from the prior, and compute the mean of p(x | z). */
HL_API hl_status hl_vae_sample(hl_vae *vae, size_t rows, uint64_t seed, double *z, double *mean);
/* Replace means of p(x | z), rows x dim, by draws from it: bits, or values with the learned standard deviations. */
HL_API hl_status hl_vae_draw(hl_vae *vae, size_t rows, uint64_t seed, double *x);
/* Apply the posterior's flow to given standard normal noise (rows x latent). Results: the sample z (rows x latent), log_q = log q(z | x), and
 * log_joint = log p(x | z) + log p(z) (rows). Each may be NULL. */
HL_API hl_status hl_vae_push(hl_vae *vae, const hl_vae_rows *rows, const double *noise, double *z, double *log_q,
                             double *log_joint);

#ifdef __cplusplus
}
#endif

#endif
