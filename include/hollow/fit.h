/* hollow/fit.h - train a flow on rows of data.
 *
 *     hl_fit_create(flow, &train, &valid, NULL, &fit);
 *     while ((status = hl_fit_step(fit, &report)) == HL_OK)
 *         ... report.loss ...
 *     hl_fit_finish(fit);                          the best parameters are in the flow's networks
 *
 * Data should be standardised: columns of mean 0 and deviation 1. The same seed gives the same bits for any number of threads.
 *
 * Training with few fixed steps can be exploited: the network learns to be wrong between them. So every validation compares the
 * density by the steps of training with the one by the adaptive solver, and doubles the steps when they differ, going on from the
 * best parameters so far; only the adaptive one decides which these are. */
#ifndef HOLLOW_FIT_H
#define HOLLOW_FIT_H

#include "hollow/flow.h"
#include "hollow/learn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_fit hl_fit; /* opaque */

/* Rows of data, borrowed until the fit is freed. */
typedef struct hl_fit_data {
    size_t rows;
    const double *x;       /* rows x dim */
    const double *context; /* rows x context, or NULL */
    const double *weights; /* rows, not negative, not all 0; or NULL: all equal */
} hl_fit_data;

typedef enum hl_loss {
    HL_LOSS_DEFAULT = 0,   /* continuous: flow matching first, then likelihood; discrete: likelihood */
    HL_LOSS_LIKELIHOOD,    /* -log p */
    HL_LOSS_FLOW_MATCHING, /* |f(t, x_t) - (x - z)|^2 on straight lines from z ~ N(0, I) to x; no solving */
    HL_LOSS_SCORE, /* f is the probability flow of a diffusion of the data whose exact score it gives (match.c); no
                            * solving, and no noise but that of the diffusion. Alone it wants many rows */
} hl_loss;

/* Zero or NULL in any field means the default. */
typedef struct hl_fit_options {
    hl_loss loss;
    int transport;     /* flow matching pairs z and x of a batch by optimal transport: > 0 yes, < 0 no; default up to
                              * 8 dimensions */
    size_t iterations; /* default 4000 to 3 dimensions, else 2000 */
    size_t
        matching; /* of HL_LOSS_DEFAULT: the first iterations, by flow matching; default two thirds to 3 dimensions, else a third */
    size_t batch; /* default 512 to 3 dimensions, 256 to 512, else 128 */
    double
        jitter; /* deviation of noise on rows of training, falling linearly to 0 at the last iteration; default none */
    /* Weight of the integral of |f|^2 / dim in likelihood training of continuous flows, see hl_flow_solver; default 0. It counts in the
     * report's loss, not in validations. */
    double straight;
    hl_optimizer_options
        optimizer; /* defaults here: adamw, rate 1e-2 to 3 dimensions, else 5e-3, clip 10, average 0.99; the last two are off if negative */
    size_t warmup; /* steps in which the rate rises; default iterations / 50 */
    double last_rate;         /* share of the rate at the end of the cosine; default 0.01 */
    const char *train_method; /* default "rk4" */
    size_t
        train_steps; /* its steps to begin with; default 8 to 2 dimensions, else 4; SIZE_MAX: adaptive by `solver`'s tolerances */
    hl_trace train_trace;   /* of training; validations are exact */
    hl_flow_solver solver;  /* of validations; its trace and straight are ignored */
    size_t validate_every;  /* iterations; default iterations / 20 */
    size_t validation_rows; /* at most; default 2000, above 512 dimensions 100 */
    size_t patience;        /* stop after this many validations without a better one, of the last loss; default none */
    uint64_t seed;
} hl_fit_options;

/* What an iteration is trained by. */
typedef enum hl_fit_phase {
    HL_FIT_START = 0, /* nothing yet */
    HL_FIT_FLOW_MATCHING,
    HL_FIT_SCORE_MATCHING,
    HL_FIT_LIKELIHOOD,
    HL_FIT_MIXING /* of hl_density_fit: mixtures are fitted, and flows tried, before the start */
} hl_fit_phase;
/* "start", "flow matching", "score matching", "likelihood", "mixtures"; NULL if it is none of these. */
HL_API const char *hl_fit_phase_name(hl_fit_phase phase);

typedef struct hl_fit_report {
    size_t iteration, iterations; /* done; in all */
    hl_fit_phase phase;
    double
        loss; /* of this batch: mean -log p; or per dimension the mean square, or Hyvarinen's loss without constants */
    double gradient_norm;
    double evaluations;                  /* in this iteration, per row, forward: of f, its diagonal and J v */
    double backward;                     /* for the gradient: of f, its diagonal, J v and J' w */
    size_t ode_steps;                    /* of training; 0 if adaptive */
    int validated;                       /* nonzero: the three below are new */
    double validation, validation_fixed; /* mean -log p by the adaptive solver and by the steps of training */
    double best;                         /* validation so far */
    size_t best_iteration;
    int steps_doubled; /* nonzero: the two differed too much */
} hl_fit_report;

/* The flow and the data are borrowed until the fit is freed. `valid` may be NULL: then the last parameters are the best. */
HL_API hl_status hl_fit_create(hl_flow *flow, const hl_fit_data *train, const hl_fit_data *valid,
                               const hl_fit_options *options, hl_fit **fit);
HL_API void hl_fit_free(hl_fit *fit); /* takes NULL */
/* One iteration, and a validation if it is due. HL_STOPPED when all are done or patience is at its end. On an error the
 * networks have the parameters before it, and the message says what diverged. */
HL_API hl_status hl_fit_step(hl_fit *fit, hl_fit_report *report);
/* Put the best parameters into the networks (the last ones if nothing was validated yet), and the solver of validations into
 * the flow. */
HL_API hl_status hl_fit_finish(hl_fit *fit);
/* All that a later run needs to go on to the same bits, beside the flow, the data and the options: hl_fit_state_size doubles. */
HL_API size_t hl_fit_state_size(const hl_fit *fit);
HL_API void hl_fit_get_state(const hl_fit *fit, double *state);
HL_API hl_status hl_fit_set_state(hl_fit *fit, const double *state);

#ifdef __cplusplus
}
#endif

#endif
