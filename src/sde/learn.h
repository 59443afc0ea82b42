/* learn.h - inside hl_sde_learn: what its parts share. */
#ifndef HL_SDE_LEARN_H
#define HL_SDE_LEARN_H

#include "base/options.h"
#include "hollow/sde_learn.h"
#include "hollow/sde_regress.h"
#include "sde/sde.h"

typedef struct hl_learner {
    hl_context *ctx;
    const hl_sde_observations *given;
    const hl_settings *settings;
    hl_job job;           /* zeros if there is none */
    hl_sde_data data;     /* rows of a trajectory stand together, times rising; trajectory is NULL for snapshots */
    size_t *number, *row; /* of the trajectory, from 0; of the observations as they were given */
    uint64_t hash;        /* of all numbers */
    hl_sde_spec spec;
    hl_sde_known *known;
    double *linear;      /* of what is known: [dim][dim] */
    hl_sde_forms *forms; /* NULL: no expressions */
    hl_sde_fit_options options;
    hl_sde_simple *simple; /* the regression; NULL: networks */
    hl_sde *sde;
    hl_sde_fit *fit;
    char *checkpoint_settings; /* those of the outcome, and which of them were chosen */
    struct hl_learned *learned;
    hl_sde_outcome *outcome; /* of `learned` */
    double loss;             /* pseudo-ml: the sum over the last iterations */
    size_t losses;
    size_t replicates;   /* of networks, for bands */
    double choice;       /* what the number of Gaussians costs, in iterations of training */
    double start, saved; /* seconds */
} hl_learner;

/* The outcome and what it owns. */
typedef struct hl_learned {
    hl_sde_outcome outcome;
    hl_context *ctx;
    hl_sde_finding *finding;
    size_t capacity;
    char *settings;
    char (*name)[HL_SDE_NAME]; /* dim + 1 */
} hl_learned;

/* ---- findings (learn_outcome.c) ---- */

hl_status hl_learned_create(hl_context *ctx, const hl_sde_observations *data, hl_learned **learned);
hl_status hl_learned_add(hl_learned *learned, hl_sde_finding finding);
/* The same for a fatal one: HL_ERR_INVALID with its text as the message. */
hl_status hl_learned_refuse(hl_learned *learned, hl_sde_finding finding);

/* ---- data (learn_data.c) ---- */

/* Sort, number and check the observations. */
hl_status hl_learner_take_data(hl_learner *l);
/* Do columns and times vary, and does the method find its steps? */
hl_status hl_learner_check_data(hl_learner *l);
/* pseudo-ml: where drift and diffusion start, as the steps say. */
void hl_learner_choose_speed(hl_learner *l);
/* pseudo-ml: the mean -log likelihood of a step for constant drift and diffusion, as its loss is. */
hl_status hl_learner_constant_loss(const hl_learner *l, double *constant);

/* ---- settings (learn_options.c) ---- */

/* Options of networks are errors with a form that has none. */
hl_status hl_learner_check_settings(hl_context *ctx, const hl_settings *settings);
/* Method, options of training and specification, what is known included. */
hl_status hl_learner_read_settings(hl_learner *l);
/* Drift and diffusion by regression, if the settings mean it and the data allow it; the model is then made of it. */
hl_status hl_learner_regress(hl_learner *l);
/* All that decides the bits of the result, in one line, to the outcome. */
hl_status hl_learner_describe(hl_learner *l);
/* The number of Gaussians that the run of the checkpoint chose; 0 if it chose none. */
hl_status hl_learner_chosen_before(const hl_learner *l, size_t *components);

/* ---- known parts as text (known.c) ---- */

/* "x1=x2;x2=0.5-2*x1" (drift) or "x1=0" (diffusion), in the names of the columns, to known (dim). `linear` is dim x dim, zeros.
 * `option` is for messages. */
hl_status hl_known_read(hl_context *ctx, const char *option, const char *text, bool drift, size_t dim,
                        const char (*names)[HL_SDE_NAME], hl_sde_known *known, double *linear);

static inline bool hl_learner_matching(const hl_learner *l)
{
    return l->options.method == HL_SDE_FOKKER_PLANCK;
}

#endif
