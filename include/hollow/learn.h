/* hollow/learn.h - optimisers: from gradients to better parameters.
 *
 *     hl_optimizer_create(ctx, 1, &net, &(hl_optimizer_options){ .rate = 1e-3 }, &optimizer);
 *     for (...) {
 *         ... gradient of all parameters, in double ...
 *         hl_optimizer_step(optimizer, gradient, 1.0, NULL);
 *     }
 *
 * The optimiser keeps its own copy of the parameters in double, so that small steps are not lost in float32; each step writes
 * it to the parameters. The result does not depend on the number of threads. */
#ifndef HOLLOW_LEARN_H
#define HOLLOW_LEARN_H

#include "hollow/params.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_optimizer hl_optimizer; /* opaque */

/* Zero or NULL in any field means the default. */
typedef struct hl_optimizer_options {
    const char *method;  /* "adam" (default), "adamw" (decay apart from the gradient), "adamax", "sgd" */
    double rate;         /* default 1e-3 */
    double beta1, beta2; /* defaults 0.9, 0.999; a negative beta1 is 0: no average of gradients */
    double epsilon;      /* default 1e-8 */
    double weight_decay; /* default 0; a decay of the values for adamw, a penalty in the gradient for the others */
    double clip;         /* largest norm of a gradient; larger ones are scaled to it; default none */
    double average;      /* decay of a running average of the parameters, such as 0.99; default none */
} hl_optimizer_options;
/* The names of the methods, ended by NULL. */
HL_API const char *const *hl_optimizer_methods(void);

/* For a set of parameters, borrowed until the optimiser is freed. Parameters begin as they are now. */
HL_API hl_status hl_optimizer_create_for(hl_params *params, const hl_optimizer_options *options,
                                         hl_optimizer **optimizer);
/* For the parameters of `count` networks of one precision, borrowed likewise. */
HL_API hl_status hl_optimizer_create(hl_context *context, size_t count, hl_net *const *nets,
                                     const hl_optimizer_options *options, hl_optimizer **optimizer);
HL_API void hl_optimizer_free(hl_optimizer *optimizer); /* takes NULL */
/* Values of all parameters, in the flat order of the set: the length of a gradient. */
HL_API size_t hl_optimizer_size(const hl_optimizer *optimizer);
/* One step at `factor` times the rate, for schedules. *norm, unless NULL, receives the norm of the gradient. A gradient that is
 * not finite changes nothing and returns HL_ERR_NOT_FINITE. Allocates nothing. */
HL_API hl_status hl_optimizer_step(hl_optimizer *optimizer, const double *gradient, double factor, double *norm);
/* Put the running average into the parameters, or (on = 0) the values themselves again. Without an average: nothing. */
HL_API void hl_optimizer_use_average(hl_optimizer *optimizer, int on);
/* Forget moments and steps, as when another loss begins; the parameters and their average stay. */
HL_API void hl_optimizer_restart(hl_optimizer *optimizer);
/* Take the parameters as they are now, as after loading others into them; moments are kept. */
HL_API void hl_optimizer_reread(hl_optimizer *optimizer);
/* All that a later run needs to go on to the same bits: hl_optimizer_state_size doubles. */
HL_API size_t hl_optimizer_state_size(const hl_optimizer *optimizer);
HL_API void hl_optimizer_get_state(const hl_optimizer *optimizer, double *state);
HL_API hl_status hl_optimizer_set_state(hl_optimizer *optimizer, const double *state);

/* A factor of the rate at step i of n (from 0): up along a line over the first `warmup` steps, then down along a cosine to
 * `last` (a share of 1) at the end. */
HL_API double hl_schedule_cosine(size_t i, size_t n, size_t warmup, double last);

#ifdef __cplusplus
}
#endif

#endif
