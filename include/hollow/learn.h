/* hollow/learn.h - optimisers.
 *
 *     hl_optimizer_create(ctx, 1, &net, &(hl_optimizer_options){ .rate = 1e-3 }, &optimizer);
 *     for (...) {
 *         ... compute the gradient of all parameters, in double ...
 *         hl_optimizer_step(optimizer, gradient, 1.0, NULL);
 *     }
 *
 * The optimiser keeps a copy of the parameters in double, so that small updates of float32 parameters are not lost. Each step writes
 * it to the parameters. Results do not depend on the number of threads. */
#ifndef HOLLOW_LEARN_H
#define HOLLOW_LEARN_H

#include "hollow/params.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_optimizer hl_optimizer; /* opaque */

/* Zero or NULL in any field means the default. */
typedef struct hl_optimizer_options {
    /* "adam" (default), "adamw" (decoupled weight decay), "adamax" or "sgd". */
    const char *method;
    /* Learning rate. Default 1e-3. */
    double rate;
    /* Defaults 0.9 and 0.999. A negative beta1 stands for 0. */
    double beta1, beta2;
    /* Default 1e-8. */
    double epsilon;
    /* Weight decay: of the values for adamw, added to the gradient for the others. Default 0. */
    double weight_decay;
    /* Gradient clipping: gradients of a larger norm are scaled to this norm. Default none. */
    double clip;
    /* Decay rate of an exponential moving average of the parameters, such as 0.99. Default none. */
    double average;
} hl_optimizer_options;
/* Names of the methods; the list ends with NULL. */
HL_API const char *const *hl_optimizer_methods(void);

/* An optimiser of a set of parameters, which is borrowed until the optimiser is freed. It starts from their current values. */
HL_API hl_status hl_optimizer_create_for(hl_params *params, const hl_optimizer_options *options,
                                         hl_optimizer **optimizer);
/* An optimiser of the parameters of `count` networks of the same precision, which are borrowed until the optimiser is freed. */
HL_API hl_status hl_optimizer_create(hl_context *context, size_t count, hl_net *const *nets,
                                     const hl_optimizer_options *options, hl_optimizer **optimizer);
HL_API void hl_optimizer_free(hl_optimizer *optimizer); /* takes NULL */
/* Length of a gradient: the number of values of all parameters, in the flat order of the set. */
HL_API size_t hl_optimizer_size(const hl_optimizer *optimizer);
/* One step with the learning rate times `factor`. If norm is not NULL, *norm receives the norm of the gradient. If the gradient is not
 * finite, nothing changes and the result is HL_ERR_NOT_FINITE. Allocates nothing. */
HL_API hl_status hl_optimizer_step(hl_optimizer *optimizer, const double *gradient, double factor, double *norm);
/* Set the parameters to their moving average, or (on = 0) back to their values. Without an average, does nothing. */
HL_API void hl_optimizer_use_average(hl_optimizer *optimizer, int on);
/* Reset moments and step count, for example when the loss changes. Parameters and their average are kept. */
HL_API void hl_optimizer_restart(hl_optimizer *optimizer);
/* Read the parameters again after they were changed. Moments are kept. */
HL_API void hl_optimizer_reread(hl_optimizer *optimizer);
/* The state of the optimiser, hl_optimizer_state_size doubles. A run that continues from it is bitwise identical. */
HL_API size_t hl_optimizer_state_size(const hl_optimizer *optimizer);
HL_API void hl_optimizer_get_state(const hl_optimizer *optimizer, double *state);
HL_API hl_status hl_optimizer_set_state(hl_optimizer *optimizer, const double *state);

/* Factor of the learning rate at step i of n (from 0): linear warm-up over the first `warmup` steps, then cosine decay from 1 to `last`. */
HL_API double hl_schedule_cosine(size_t i, size_t n, size_t warmup, double last);

#ifdef __cplusplus
}
#endif

#endif
