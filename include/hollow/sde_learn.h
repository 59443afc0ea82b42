/* hollow/sde_learn.h - learn a stochastic differential equation from observations in one call.
 *
 *     hl_sde_observations data = { .rows = n, .dim = 2, .t = t, .x = x, .trajectory = id };
 *     hl_sde_learn(ctx, &data, NULL, NULL, &sde, &outcome);
 *     if (outcome->verdict.answer == HL_CONSISTENT) ...
 *
 * hl_sde_learn does what `hollow sde fit` does, except for files and messages. It checks the data, chooses the method, the number of mixture
 * components and the scales of drift and diffusion, trains the model, and compares it with the data. The same settings and data give the same
 * model as the command, byte for byte. */
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
    /* rows: observations with the same number belong to one trajectory. They need not be adjacent, but their times must increase. NULL: rows
     * with increasing times are one trajectory; other rows are snapshots. */
    const size_t *trajectory;
    /* Names of the columns, then of time (dim + 1). NULL: x1, x2, ..., t. */
    const char *const *names;
    /* Nonzero: times are dates converted to years (hl_time_scan). The model file records it. */
    int dates;
} hl_sde_observations;

/* The settings of hl_sde_learn; the table ends with a NULL name. */
HL_API const hl_option *hl_sde_learn_options(void);

/* ---- outcome ---- */

typedef enum hl_sde_finding_kind {
    /* The first four kinds are fatal. All values of the column equal `value`. */
    HL_SDE_FINDING_CONSTANT = 0,
    /* All observations have the time `value`. */
    HL_SDE_FINDING_SAME_TIMES,
    /* The time `value` of row `row` is not later than `other`. */
    HL_SDE_FINDING_TIME_ORDER,
    /* pseudo-ml: there are `value` steps along trajectories, fewer than ten. */
    HL_SDE_FINDING_NO_STEPS,
    /* No observations in an interval of length `value` before row `row`, the fraction `other` of the whole time. */
    HL_SDE_FINDING_TIME_GAP,
    /* There are only `value` trajectories, too few to estimate the density at a time. */
    HL_SDE_FINDING_FEW_TRAJECTORIES,
    /* The density moves by `value` of its spread only; `other` is expected by chance. */
    HL_SDE_FINDING_STATIONARY,
    /* The density moves by `value`: drift and diffusion will be less accurate. */
    HL_SDE_FINDING_LITTLE_MOVEMENT,
    /* pseudo-ml was chosen because there are only `value` trajectories. */
    HL_SDE_FINDING_METHOD,
    /* Drift and diffusion both depend on t: densities do not identify them. */
    HL_SDE_FINDING_TIME_DEPENDENT,
    /* There are too few steps, and for networks of snapshots too few rows or times, to test the model. */
    HL_SDE_FINDING_FEW_STEPS,
    /* pseudo-ml: the 90 % band of the drift is the fraction `value` of the drift. */
    HL_SDE_FINDING_WIDE_BAND,
    /* Drift and diffusion differ from those of the regression by the fractions `value` and `other`. */
    HL_SDE_FINDING_REGRESSION,
    /* Drift and diffusion do not explain the fraction `value` of the density's change. */
    HL_SDE_FINDING_UNEXPLAINED,
    /* The drift does not explain the fraction `value` of the mean speed along trajectories. */
    HL_SDE_FINDING_STEPS_MISSED,
    /* The density misses the fraction `value` of the movement of the data. */
    HL_SDE_FINDING_DENSITY_MISSES,
    /* Simulations miss the fraction `value` of the movement of the data. */
    HL_SDE_FINDING_SIMULATIONS_MISS,
    /* pseudo-ml: the loss `value` exceeds `other`, the loss of constant drift and diffusion. */
    HL_SDE_FINDING_STEPS_UNLIKELY,
    /* A test of residuals failed; `value` is the effect and `other` its distance from chance in standard errors. One kind for each test, in the order
     * of hl_residual. */
    HL_SDE_FINDING_RESIDUALS,
    /* The same for tests of means, in the order of hl_weak_test. */
    HL_SDE_FINDING_MEANS = HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_TESTS,
    HL_SDE_FINDING_LAST = HL_SDE_FINDING_MEANS + HL_WEAK_TESTS - 1
} hl_sde_finding_kind;

typedef struct hl_sde_finding {
    hl_sde_finding_kind kind;
    int fatal;          /* nonzero: there is no model, or the model failed */
    size_t row, column; /* position in the observations, or SIZE_MAX; column dim is time */
    double value, other;
} hl_sde_finding;

/* Choices and findings of hl_sde_learn. */
typedef struct hl_sde_outcome {
    size_t rows, dim, trajectories;
    int paired; /* nonzero: trajectories were given, or the rows are one trajectory */
    hl_sde_method method;
    int method_chosen; /* nonzero: chosen from the data, not by the settings */
    size_t components; /* components of the mixture; 0 for flows */
    int components_chosen;
    double diffusion_start, drift_scale; /* pseudo-ml: scales estimated from steps; 0: the default */
    char form[32];  /* regression: dictionaries of drift and diffusion, such as "cubic, constant"; networks: "" */
    int regression; /* bits: 1 snapshots, 2 steps; 0: networks */
    int correlated; /* nonzero: the noise of different columns is correlated, see hl_sde_describe(sde).simple */
    size_t parameters, batch;
    size_t first, iterations; /* first iteration of this run (> 0 if resumed); iterations done in total */
    double seconds;           /* duration of this call */
    int judged;               /* nonzero: the verdict refers to the model; 0: to the data only */
    hl_verdict verdict;
    size_t findings;
    const hl_sde_finding *finding;
    const char *settings; /* all settings that determine the model; also its note */
    hl_judge *judge;      /* the comparison behind the verdict, or NULL; its model is borrowed */
} hl_sde_outcome;
/* Takes NULL. Free the outcome before the context. */
HL_API void hl_sde_outcome_free(hl_sde_outcome *outcome);
/* "constant", "same times", ...; NULL if there is no such kind. */
HL_API const char *hl_sde_finding_name(hl_sde_finding_kind kind);
/* Write a finding as a sentence with advice, without a full stop, truncated to fit, and return buffer. Options are written as
 * "option iters". */
HL_API const char *hl_sde_finding_text(const hl_sde_outcome *outcome, size_t finding, char *buffer, size_t size);

/* ---- learning ---- */

typedef enum hl_sde_phase { HL_SDE_PHASE_CHOICE = 0, HL_SDE_PHASE_TRAINING, HL_SDE_PHASE_BANDS } hl_sde_phase;
typedef enum hl_sde_loss {
    HL_SDE_LOSS_RESIDUAL = 0, /* mean |R|, in units of 1/t */
    HL_SDE_LOSS_PENALTY,      /* mean of another penalty of R, standardised */
    HL_SDE_LOSS_STEP          /* mean negative log-likelihood of a step, standardised and without constants */
} hl_sde_loss;

/* The report passed to the callback of hl_job: once before the first iteration of training, and after every iteration. */
typedef struct hl_sde_progress {
    hl_sde_phase phase;           /* choice of the number of components, training, or networks for bands */
    size_t iteration, iterations; /* iterations of the phase, or networks for bands: done, total */
    double fraction;              /* estimated fraction of all work, 0 to 1 */
    hl_sde_loss kind;
    /* The following fields refer to training; NaN before its first iteration. The loss is also NaN if only the density is trained. */
    double loss;
    double nll; /* mean -log p */
    double lambda;
    double gradient_norm[3];       /* of drift, diffusion and density */
    const hl_sde_outcome *outcome; /* the outcome so far, with the findings about the data */
} hl_sde_progress;

/* Learn a model. `settings` (of hl_sde_learn_options) and `job` may be NULL. The caller frees *sde and *outcome after every result.
 *
 * HL_OK: the model is trained; the verdict of the outcome says whether it can be trusted.
 * HL_STOPPED: the callback or the context stopped the run. *sde is the current model, or NULL before training; the checkpoint is written.
 * HL_ERR_INVALID with a fatal finding: the data are not sufficient. Errors give no model.
 *
 * *outcome is NULL only if memory ran out or an argument was invalid. */
HL_API hl_status hl_sde_learn(hl_context *context, const hl_sde_observations *data, const hl_settings *settings,
                              const hl_job *job, hl_sde **sde, hl_sde_outcome **outcome);

#ifdef __cplusplus
}
#endif

#endif
