/* train.h - training by steps, with a state that resumes to the same bits. */
#ifndef HL_VAE_TRAIN_H
#define HL_VAE_TRAIN_H

#include "base/ranks.h"
#include "hollow/learn.h"
#include "hollow/vae_fit.h"
#include "vae/loss.h"
#include "vae/rows.h"

/* All that decides the bits of a run, beside data and autoencoder; no zero means a default. */
typedef struct hl_vae_train_options {
    size_t batch, iterations;
    size_t importance; /* k of the training loss; 1: -ELBO */
    double warmup;     /* share of the iterations over which beta rises */
    double last_rate;
    size_t validate_every, validation_rows, patience;
    size_t ode_steps; /* to begin with */
    bool dynamic, frozen;
    uint64_t seed;
    hl_optimizer_options optimizer;
} hl_vae_train_options;

typedef struct hl_vae_train {
    hl_vae *vae;
    hl_vae_train_options o;
    hl_vae_source train;
    hl_vae_rows valid;
    const size_t *index; /* the rows of `train` to use, `rows` of them */
    size_t rows;
    hl_vae_loss *loss;
    hl_optimizer *optimizer;
    size_t *shuffle;                                   /* [rows] of this epoch */
    size_t epoch;                                      /* that shuffle is of; SIZE_MAX: none */
    size_t *copy;                                      /* [pairs] the row of the batch of each pair */
    size_t first, end;                                 /* this rank's rows of a batch */
    void *raw;                                         /* [end - first, dim] as they are read */
    double *x;                                         /* [batch, dim] */
    double *noise, *probe;                             /* [pairs, latent] */
    double *weight, *term[HL_VAE_TERMS], *best_values; /* [pairs] */
    hl_shares *shares;                                 /* of a batch */
    /* the state, beside the optimiser's and the best values */
    double iteration, best, best_iteration, validation, misses, ode_steps;
    hl_curve course;
    double pending; /* nonzero: the validation of this iteration was interrupted */
} hl_vae_train;

/* Everything is borrowed until it is freed. */
hl_status hl_vae_train_create(hl_vae *vae, const hl_vae_source *train, size_t rows, const size_t *index,
                              const hl_vae_rows *valid, const hl_vae_train_options *options, hl_vae_train **t);
void hl_vae_train_free(hl_vae_train *t); /* takes NULL */
/* All iterations are done, or patience is at its end, and the last validation is done. */
bool hl_vae_train_is_over(const hl_vae_train *t);
/* One iteration, and a validation if it is due; if the last call's validation was stopped, that one instead. Not to be called when
 * it is over. HL_STOPPED: the context asked to stop within a validation. */
hl_status hl_vae_train_step(hl_vae_train *t, hl_vae_progress *report);
/* The best parameters go to the autoencoder, the last ones if none are known to be best, and the course. */
hl_status hl_vae_train_finish(hl_vae_train *t);
size_t hl_vae_train_state_size(const hl_vae_train *t);
void hl_vae_train_get_state(const hl_vae_train *t, double *state);
hl_status hl_vae_train_set_state(hl_vae_train *t, const double *state);

#endif
