/* hollow/vae_fit.h - train an autoencoder on rows of bits or real numbers in one call.
 *
 *     hl_vae_data data = { .image = { 1, 28, 28 }, .train = { .rows = rows, .bytes = bits } };
 *     hl_settings_create(ctx, hl_vae_fit_options(), &settings);
 *     hl_settings_set(settings, "posterior", "hollow");
 *     hl_vae_fit(ctx, &data, settings, NULL, &vae, NULL);
 *
 * Training minimises -log p(x | z) - beta (log p(z) - log q(z | x)). beta increases from 0 to 1 in the first part of the run. The result is the
 * autoencoder with the best -ELBO (beta = 1) of the validation rows after that part.
 *
 * Continuous posteriors are trained with few fixed ODE steps. A network can exploit their discretisation error, so validations also use an
 * adaptive solver. Its -ELBO selects the result, and the number of steps is doubled when the two differ by more than 0.05 nats. The same data,
 * settings and seed give bitwise the same result for any number of threads. */
#ifndef HOLLOW_VAE_FIT_H
#define HOLLOW_VAE_FIT_H

#include "hollow/job.h"
#include "hollow/options.h"
#include "hollow/vae.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The options of hl_vae_fit; the table ends with a NULL name. */
HL_API const hl_option *hl_vae_fit_options(void);

/* Everything is borrowed during the call. */
typedef struct hl_vae_data {
    /* As in hl_vae_spec. */
    size_t image[3];
    size_t dim;
    /* Training rows, at least 10. */
    hl_vae_rows train;
    /* Validation rows. 0 rows: a part of `train` is used (option "validation-share"). */
    hl_vae_rows valid;
    /* Start from the encoder and decoder of this autoencoder. NULL: from random weights. */
    const hl_vae *from;
    /* Training rows that are read when needed, in place of `train`; or NULL. Memory is then 16 bytes per row, and a rank (hollow/ranks.h)
     * reads only its own rows. Bitwise the same result as with rows in memory. */
    const hl_vae_source *source;
    /* Names of the columns, for hl_vae_name; or NULL. */
    const char *const *names;
} hl_vae_data;

/* The report passed to the callback of hl_job, once before the first iteration and then after each. */
typedef struct hl_vae_progress {
    size_t iteration, iterations; /* iterations done; total */
    double epoch;                 /* passes through the rows so far */
    double loss;                  /* mean -ELBO of this batch, at beta = 1; NaN before the first iteration */
    double beta;
    double validation; /* mean -ELBO of the validation rows at the last validation; NaN before the first */
    double best;       /* best validation after beta has reached 1; NaN before the first */
    size_t best_iteration;
    int validated; /* nonzero: `validation` is new */
    double gradient_norm;
    size_t ode_steps; /* ODE steps of training; 0 if the posterior is not continuous */
    int steps_doubled;
    double seconds, seconds_left; /* since the start; estimate until the end, NaN if unknown */
    size_t batch, parameters;
} hl_vae_progress;

typedef enum hl_vae_end {
    HL_VAE_END_DONE,     /* all iterations were done */
    HL_VAE_END_PATIENCE, /* no improvement in as many validations as the option "patience" allows */
    HL_VAE_END_TIME,     /* the option "minutes" */
    HL_VAE_END_STOPPED   /* by the callback, or by the context's stop function */
} hl_vae_end;

typedef struct hl_vae_outcome {
    hl_vae_end end;
    size_t iteration, iterations, best_iteration; /* iterations done; requested; iteration of the result */
    /* Mean -ELBO of the validation rows. NaN if there was no validation after beta reached 1; the result is then the last autoencoder. */
    double best;
    /* Mean -log p of the validation rows by independent columns or, with the Gaussian likelihood, by a normal distribution, whichever is better.
     * -ELBO above it means that the autoencoder has learned less than that. NaN without validation rows. */
    double simple;
    double seconds; /* duration of this call */
    size_t train_rows, valid_rows, parameters;
    size_t ode_steps; /* ODE steps of training at the end */
    /* Gaussian likelihood, rows that are not images: columns that have one value in all training rows, or in 10,000 of them if there are more;
     * the number of the first one, from 0. Such a column has the least possible noise and adds a constant to the bound. */
    size_t constant_columns, first_constant;
} hl_vae_outcome;

/* Train. `settings` (of hl_vae_fit_options), `job` and `outcome` may be NULL. HL_STOPPED: the callback or the context stopped the run; *vae is the
 * best autoencoder so far. */
HL_API hl_status hl_vae_fit(hl_context *context, const hl_vae_data *data, const hl_settings *settings,
                            const hl_job *job, hl_vae **vae, hl_vae_outcome *outcome);

#ifdef __cplusplus
}
#endif

#endif
