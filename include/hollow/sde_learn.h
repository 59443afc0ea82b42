/* hollow/sde_learn.h - learn a stochastic equation from observations in one call.
 *
 *     hl_sde_observations data = { .rows = n, .dim = 2, .t = t, .x = x, .trajectory = id };
 *     hl_sde_learn(ctx, &data, NULL, NULL, &sde, &outcome);
 *     if (outcome->verdict.answer == HL_CONSISTENT) ...
 *
 * This is all of `hollow sde fit` but files and messages: checks of the data, the choice of the method, of the number of Gaussians and
 * of the scales of drift and diffusion, training, and the comparison of the model with the data. The same settings and data give
 * the same model, byte for byte, as the command. */
#ifndef HOLLOW_SDE_LEARN_H
#define HOLLOW_SDE_LEARN_H

#include "hollow/job.h"
#include "hollow/judge.h"
#include "hollow/options.h"
#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Observations in the user's units, borrowed during the call. */
typedef struct hl_sde_observations {
    size_t rows, dim;
    const double *t; /* rows */
    const double *x; /* rows x dim */
    /* rows: observations with the same number belong to one trajectory, in which times must rise; they need not stand together. NULL:
     * rows whose times rise are one trajectory, other rows are snapshots. */
    const size_t *trajectory;
    const char *const *names; /* of the columns, then of time: dim + 1; NULL: x1, x2, ..., t */
    int dates;                /* nonzero: times are years that were dates (hl_time_scan); the model remembers it */
} hl_sde_observations;

/* The settings of hl_sde_learn; ends with a NULL name. */
HL_API const hl_option *hl_sde_learn_options(void);

/* ---- outcome ---- */

typedef enum hl_sde_finding_kind {
    HL_SDE_FINDING_CONSTANT = 0, /* fatal: the column has one value, `value` */
    HL_SDE_FINDING_SAME_TIMES,   /* fatal: all observations have the time `value` */
    HL_SDE_FINDING_TIME_ORDER,   /* fatal: the time `value` of row `row` does not come after `other` */
    HL_SDE_FINDING_NO_STEPS,     /* fatal: pseudo-ml, and every trajectory has one observation */
    HL_SDE_FINDING_TIME_GAP, /* no observation in a stretch of `value`, before row `row`: the share `other` of all time */
    HL_SDE_FINDING_FEW_TRAJECTORIES, /* `value` trajectories: they do not show the density of a time */
    HL_SDE_FINDING_STATIONARY,       /* the density moves by `value` of its spread; `other` is what chance makes */
    HL_SDE_FINDING_LITTLE_MOVEMENT,  /* it moves by `value`: drift and diffusion will be less accurate */
    HL_SDE_FINDING_METHOD,           /* pseudo-ml was chosen, as there are only `value` trajectories */
    HL_SDE_FINDING_TIME_DEPENDENT,   /* drift and diffusion both depend on t: densities do not identify them */
    HL_SDE_FINDING_FEW_STEPS,        /* pseudo-ml: there are too few steps to test the model */
    HL_SDE_FINDING_WIDE_BAND,        /* pseudo-ml: steps determine the drift to the share `value` of it (90 % band) */
    HL_SDE_FINDING_REGRESSION,  /* drift and diffusion differ from the regression's by the shares `value` and `other` */
    HL_SDE_FINDING_UNEXPLAINED, /* drift and diffusion leave the share `value` of the density's change unexplained */
    HL_SDE_FINDING_STEPS_MISSED,     /* the drift leaves the share `value` of the mean speed along trajectories */
    HL_SDE_FINDING_DENSITY_MISSES,   /* the density misses the share `value` of the movement of the data */
    HL_SDE_FINDING_SIMULATIONS_MISS, /* simulations miss it */
    HL_SDE_FINDING_STEPS_UNLIKELY, /* pseudo-ml: its loss `value` is above `other`, that of constant drift and diffusion */
    /* A test of residuals failed, by `value` and `other` standard errors; the other tests follow in the order of hl_residual. */
    HL_SDE_FINDING_RESIDUALS,
    /* The same of a test of means, in the order of hl_weak_test. */
    HL_SDE_FINDING_MEANS = HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_TESTS,
    HL_SDE_FINDING_LAST = HL_SDE_FINDING_MEANS + HL_WEAK_TESTS - 1
} hl_sde_finding_kind;

typedef struct hl_sde_finding {
    hl_sde_finding_kind kind;
    int fatal;          /* nonzero: no model is made, or the one that is made has failed */
    size_t row, column; /* of the observations; SIZE_MAX: none. Column dim is time */
    double value, other;
} hl_sde_finding;

/* What hl_sde_learn chose and found. */
typedef struct hl_sde_outcome {
    size_t rows, dim, trajectories;
    int paired; /* nonzero: trajectories were given, or the rows are one */
    hl_sde_method method;
    int method_chosen; /* nonzero: by the data, not by the settings */
    size_t components; /* of the mixture; 0 for flows */
    int components_chosen;
    double diffusion_start, drift_scale; /* pseudo-ml: by the steps of the data; 0: the default */
    char form[32]; /* functions of drift and diffusion if they are a regression's: "cubic, constant"; "" for networks */
    int regression; /* bits: 1 by snapshots, 2 by steps; 0: networks */
    int correlated; /* nonzero: the noise of different columns is correlated, see hl_sde_describe(sde).simple */
    size_t parameters, batch;
    size_t first, iterations; /* where the run began, or went on; done in all */
    double seconds;           /* of this call */
    int judged;               /* nonzero: the verdict is of the model, not of the data alone */
    hl_verdict verdict;
    size_t findings;
    const hl_sde_finding *finding;
    const char *settings; /* all that decides the bits of the model, as its note */
    hl_judge *judge;      /* by which the data, and the model while it lives, were compared; or NULL */
} hl_sde_outcome;
/* Takes NULL. Free it before the context. */
HL_API void hl_sde_outcome_free(hl_sde_outcome *outcome);
/* "constant", "same times", ...; NULL if there is no such kind. */
HL_API const char *hl_sde_finding_name(hl_sde_finding_kind kind);
/* A finding as a sentence without a full stop, with advice, cut to fit; options are named as "option iters". Returns buffer. */
HL_API const char *hl_sde_finding_text(const hl_sde_outcome *outcome, size_t finding, char *buffer, size_t size);

/* ---- the call ---- */

typedef enum hl_sde_phase { HL_SDE_PHASE_CHOICE = 0, HL_SDE_PHASE_TRAINING } hl_sde_phase;
typedef enum hl_sde_loss {
    HL_SDE_LOSS_RESIDUAL = 0, /* mean |R|, in 1/t */
    HL_SDE_LOSS_PENALTY,      /* another mean penalty of R, standardised */
    HL_SDE_LOSS_STEP          /* mean -log likelihood of a step, standardised and without constants */
} hl_sde_loss;

/* What the callback of a job gets: once before the first iteration of training, and after every iteration. */
typedef struct hl_sde_progress {
    hl_sde_phase phase;           /* the number of Gaussians is chosen; the model is trained */
    size_t iteration, iterations; /* of the phase; done, in all */
    double fraction;              /* of all work, estimated: 0 to 1 */
    hl_sde_loss kind;
    /* The fields from here on are of training; NaN before its first iteration. The loss is NaN, too, if the density alone is trained. */
    double loss;
    double nll; /* mean -log p */
    double lambda;
    double gradient_norm[3];       /* of drift, diffusion and density */
    const hl_sde_outcome *outcome; /* what is known so far, with the findings about the data */
} hl_sde_progress;

/* Learn a model. `settings` (of hl_sde_learn_options) and `job` may be NULL: defaults; no callback and no checkpoints.
 * HL_OK: the model is trained; the outcome says whether it can be trusted. HL_STOPPED: the callback or the context stopped the run;
 * the model is the present one, or NULL if training had not begun, and the checkpoint is written. Errors give no model; HL_ERR_INVALID with a
 * fatal finding: the data do not allow it. The outcome is NULL only without memory or for wrong arguments. Free both. */
HL_API hl_status hl_sde_learn(hl_context *context, const hl_sde_observations *data, const hl_settings *settings,
                              const hl_job *job, hl_sde **sde, hl_sde_outcome **outcome);

#ifdef __cplusplus
}
#endif

#endif
