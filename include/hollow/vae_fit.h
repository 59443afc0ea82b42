/* hollow/vae_fit.h - from rows of bits, or of real numbers, to an autoencoder, in one call.
 *
 *     hl_vae_data data = { .image = { 1, 28, 28 }, .train = { .rows = rows, .bytes = bits } };
 *     hl_settings_create(ctx, hl_vae_fit_options(), &settings);
 *     hl_settings_set(settings, "posterior", "hollow");
 *     hl_vae_fit(ctx, &data, settings, NULL, &vae, NULL);
 *
 * Training minimises -log p(x | z) - beta (log p(z) - log q(z | x)); beta rises from 0 to 1 over the first part of the run. The best
 * autoencoder by -ELBO (beta = 1) of validation rows, after this part, is the result. Continuous posteriors are trained with few
 * fixed steps, which a network could exploit: every validation also uses an adaptive solver, whose -ELBO is the one that counts, and
 * the steps of training are doubled when the two differ by more than 0.05 nats. The same data, settings and seed give the same bits for any number of threads. */
#ifndef HOLLOW_VAE_FIT_H
#define HOLLOW_VAE_FIT_H

#include "hollow/job.h"
#include "hollow/options.h"
#include "hollow/vae.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of this job's options; ends with a NULL name. */
HL_API const hl_option *hl_vae_fit_options(void);

/* All borrowed during the call. */
typedef struct hl_vae_data {
    size_t image[3];    /* as in hl_vae_spec; or 0, and set dim */
    size_t dim;         /* values of a row */
    hl_vae_rows train;  /* at least 10 rows */
    hl_vae_rows valid;  /* 0 rows: part of `train` is set aside (option "validation-share") */
    const hl_vae *from; /* begin with the encoder and decoder of this one; NULL: with random ones */
    /* NULL, or the training rows in place of `train`. Memory grows with their number by an index of 16 bytes a row alone; a rank
     * (hollow/ranks.h) reads the rows of its own shares. The same bits as with the rows in memory. */
    const hl_vae_source *source;
} hl_vae_data;

/* What the callback of hl_job gets, once before the first iteration and then after each. */
typedef struct hl_vae_progress {
    size_t iteration, iterations; /* done; in all */
    double epoch;                 /* passes through the rows, so far */
    double loss;                  /* of this batch: mean -ELBO, at beta = 1; NaN before the first */
    double beta;
    double validation; /* mean -ELBO of the validation rows, of the last validation; NaN before the first */
    double best;       /* the best of these after beta has reached 1; NaN before the first */
    size_t best_iteration;
    int validated; /* nonzero: `validation` is new */
    double gradient_norm;
    size_t ode_steps; /* of training; 0 if the posterior is not continuous */
    int steps_doubled;
    double seconds, seconds_left; /* since the start; expected until the end, NaN while that is unknown */
    size_t batch, parameters;
} hl_vae_progress;

typedef enum hl_vae_end {
    HL_VAE_END_DONE,     /* all iterations */
    HL_VAE_END_PATIENCE, /* as many validations in a row as the option "patience" says were no better */
    HL_VAE_END_TIME,     /* the option "minutes" */
    HL_VAE_END_STOPPED   /* the callback, or the context's */
} hl_vae_end;

typedef struct hl_vae_outcome {
    hl_vae_end end;
    size_t iteration, iterations, best_iteration; /* done; asked for; of the model */
    double
        best; /* mean -ELBO of the validation rows; NaN if no validation came after beta = 1: the model is the last */
    double seconds; /* of this call */
    size_t train_rows, valid_rows, parameters;
    size_t ode_steps; /* of training, at the end */
} hl_vae_outcome;

/* HL_STOPPED if the callback or the context's stopped it; the best autoencoder so far is returned all the same. `settings`, `job` and
 * `outcome` may be NULL. */
HL_API hl_status hl_vae_fit(hl_context *context, const hl_vae_data *data, const hl_settings *settings,
                            const hl_job *job, hl_vae **vae, hl_vae_outcome *outcome);

#ifdef __cplusplus
}
#endif

#endif
