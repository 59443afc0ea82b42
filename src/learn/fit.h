/* fit.h - inside a fit. */
#ifndef HL_FIT_H
#define HL_FIT_H

#include "base/base.h"
#include "hollow/fit.h"
#include "learn/curve.h"

/* Training rows that are read when a batch needs them: rows first, first + 1, ... of an endless row of epochs, as the flow sees them. */
typedef struct hl_fit_source {
    hl_status (*read)(void *user, size_t first, size_t count, double *x, double *context);
    void *user;
} hl_fit_source;
/* hl_fit_create with a source, copied, in place of the training rows, of which `train` has the number alone. NULL: with the rows. */
hl_status hl_fit_create_from(hl_flow *flow, const hl_fit_data *train, const hl_fit_source *source,
                             const hl_fit_data *valid, const hl_fit_options *options, hl_fit **fit);

hl_context *hl_fit_context(const hl_fit *fit);
/* The options with their defaults filled in; borrowed from the fit. */
const hl_fit_options *hl_fit_chosen(const hl_fit *fit);
size_t hl_fit_validation_rows(const hl_fit *fit); /* those that validations look at: the first */
size_t hl_fit_iteration(const hl_fit *fit);       /* done so far */
size_t hl_fit_iterations(const hl_fit *fit);      /* in all, with the extensions so far */
size_t hl_fit_extensions(const hl_fit *fit);      /* so far */
hl_fit_phase hl_fit_phase_at(const hl_fit *fit, size_t iteration);
/* The course so far, as the flow sees it; borrowed from the fit. */
const hl_curve *hl_fit_curve(const hl_fit *fit);
/* Extend the schedule only if the best validation is below this. */
void hl_fit_extend_below(hl_fit *fit, double nll);
/* All iterations are done, or patience is at its end. */
bool hl_fit_is_done(const hl_fit *fit);
/* Fill in what depends on the number of columns: iterations, batch, rate, matching, validation rows (density_fit_choose.c). */
void hl_fit_default_training(size_t columns, hl_fit_options *options);
/* How long a gradient of the likelihood takes, of the batch of the last iteration; changes nothing. */
hl_status hl_fit_probe(hl_fit *fit, double *seconds);

#endif
