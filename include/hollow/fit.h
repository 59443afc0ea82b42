/* hollow/fit.h - train a flow on rows of data.
 *
 *     hl_fit_create(flow, &train, &valid, NULL, &fit);
 *     while ((status = hl_fit_step(fit, &report)) == HL_OK)
 *         ... report.loss ...
 *     hl_fit_finish(fit);                          puts the best parameters into the flow
 *
 * Data should be standardised: columns with mean 0 and standard deviation 1. The same seed gives bitwise the same result for any number of
 * threads.
 *
 * Continuous flows are trained with few fixed ODE steps. A network can exploit their discretisation error, so every validation
 * compares log p by the fixed steps with log p by the adaptive solver. If they differ, the number of steps is doubled and training
 * continues from the best parameters so far. The adaptive solver alone decides which parameters are best. */
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
    const double *weights; /* rows, >= 0, not all 0; or NULL: equal weights */
} hl_fit_data;

typedef enum hl_loss {
    /* Continuous flows: flow matching, then likelihood. Discrete flows: likelihood. */
    HL_LOSS_DEFAULT = 0,
    /* -log p. */
    HL_LOSS_LIKELIHOOD,
    /* |f(t, x_t) - (x - z)|^2 on straight lines from z ~ N(0, I) to x. Solves no ODE. */
    HL_LOSS_FLOW_MATCHING,
    /* Score matching: f is the probability flow of a diffusion of the data and gives its exact score (src/learn/match.c). Solves no
     * ODE. Used alone, it needs many rows. */
    HL_LOSS_SCORE,
} hl_loss;

/* Zero or NULL in any field means the default. */
typedef struct hl_fit_options {
    hl_loss loss;
    /* Flow matching: pair z and x of a batch by optimal transport if > 0, at random if < 0. Default: pair them up to 8 dimensions. */
    int transport;
    /* Default 4000 up to 3 dimensions, else 2000. */
    size_t iterations;
    /* HL_LOSS_DEFAULT: number of iterations by flow matching. Default two thirds up to 3 dimensions, else one third. */
    size_t matching;
    /* Rows of a batch. Default 512 up to 3 dimensions, 256 up to 512 dimensions, else 128. */
    size_t batch;
    /* Standard deviation of noise added to training rows. It decreases linearly to 0 over the run. Default 0. */
    double jitter;
    /* Weight of the integral of |f|^2 / dim in likelihood training of continuous flows, see hl_flow_solver. The reported loss includes
     * it; validations do not. Default 0. */
    double straight;
    /* Defaults here: adamw, rate 1e-2 up to 3 dimensions and else 5e-3, clip 10, average 0.99. Negative values turn the last two off. */
    hl_optimizer_options optimizer;
    /* Iterations of learning-rate warm-up. Default iterations / 50. */
    size_t warmup;
    /* Learning rate at the end of the cosine schedule, as a fraction of the rate. Default 0.01. */
    double last_rate;
    /* ODE method of training. Default "rk4". */
    const char *train_method;
    /* Initial number of its steps. Default 8 up to 2 dimensions, else 4. SIZE_MAX: adaptive, with the tolerances of `solver`. */
    size_t train_steps;
    /* Trace of training. Validations use the exact trace. */
    hl_trace train_trace;
    /* Solver of validations; trace and straight are ignored. */
    hl_flow_solver solver;
    /* Iterations between validations. Default iterations / 20. */
    size_t validate_every;
    /* Largest number of validation rows. Default 2000; 100 above 512 dimensions. */
    size_t validation_rows;
    /* Stop after this many validations without improvement, counted in the last phase. Default none. */
    size_t patience;
    /* Extend the schedule at most this many times. At its end, if the best validation is one of the last two and more than 0.01 nats
     * better than the best before the last `iterations / 4`, training continues from the best parameters for half of `iterations` more. The
     * learning rate warms up and falls again, as before. Default none. */
    size_t extensions;
    uint64_t seed;
} hl_fit_options;

/* Phases of training. */
typedef enum hl_fit_phase {
    HL_FIT_START = 0, /* before the first iteration */
    HL_FIT_FLOW_MATCHING,
    HL_FIT_SCORE_MATCHING,
    HL_FIT_LIKELIHOOD,
    HL_FIT_MIXING /* hl_density_fit only: mixtures are fitted and flows are tried before training */
} hl_fit_phase;
/* "start", "flow matching", "score matching", "likelihood" or "mixtures"; NULL for other values. */
HL_API const char *hl_fit_phase_name(hl_fit_phase phase);

typedef struct hl_fit_report {
    size_t iteration, iterations; /* iterations done; total, with the extensions so far */
    hl_fit_phase phase;
    /* Loss of this batch. Likelihood: mean -log p. Flow matching: mean square per dimension. Score matching: Hyvarinen's loss per
     * dimension, without constants. */
    double loss;
    double gradient_norm;
    double evaluations; /* evaluations per row in this iteration, forward: f, its diagonal and J v */
    double backward;    /* evaluations per row for the gradient: f, its diagonal, J v and J' w */
    size_t ode_steps;   /* ODE steps of training; 0 if adaptive */
    /* Nonzero: this iteration was validated, and the following fields are new. */
    int validated;
    double validation, validation_fixed; /* mean -log p by the adaptive solver and by the ODE steps of training */
    double best;                         /* best validation so far */
    size_t best_iteration;
    int steps_doubled; /* nonzero: the two validations differed too much, and the ODE steps were doubled */
    int extended;      /* nonzero: this would have been the last iteration, but the schedule was extended */
} hl_fit_report;

/* The flow and the data are borrowed until the fit is freed. `valid` may be NULL; the last parameters are then taken as the best. */
HL_API hl_status hl_fit_create(hl_flow *flow, const hl_fit_data *train, const hl_fit_data *valid,
                               const hl_fit_options *options, hl_fit **fit);
HL_API void hl_fit_free(hl_fit *fit); /* takes NULL */
/* Do one iteration and, if it is due, a validation. Returns HL_STOPPED after the last iteration or when `patience` is exhausted. After an
 * error the networks hold the parameters before it, and the message says what diverged. */
HL_API hl_status hl_fit_step(hl_fit *fit, hl_fit_report *report);
/* Put the best parameters (the last ones if there was no validation) into the networks, and the solver of validations into the flow. */
HL_API hl_status hl_fit_finish(hl_fit *fit);
/* The state of training, hl_fit_state_size doubles. A run that continues from it with the same flow, data and options is bitwise
 * identical. */
HL_API size_t hl_fit_state_size(const hl_fit *fit);
HL_API void hl_fit_get_state(const hl_fit *fit, double *state);
HL_API hl_status hl_fit_set_state(hl_fit *fit, const double *state);

#ifdef __cplusplus
}
#endif

#endif
