/* density_fit_pace.c - the time that is left, over all phases.
 *
 * An iteration by likelihood takes ten and more times as long as one by flow matching, and a validation again as long as several of
 * them. Each is averaged by itself. What likelihood will cost is found out after the first iteration by one gradient that
 * is thrown away. */
#include <math.h>

#include "learn/density_fit.h"
#include "learn/fit.h"

static const double WINDOW = 20; /* iterations that an average is about */

void hl_fit_pace_start(hl_fit_pace *p, const hl_fit *fit)
{
    const hl_fit_options *o = hl_fit_chosen(fit);
    bool never = o->loss == HL_LOSS_FLOW_MATCHING || o->loss == HL_LOSS_SCORE;
    *p = (hl_fit_pace){ .start = hl_clock(),
                        .matching = NAN,
                        .solving = NAN,
                        .validation = NAN,
                        .validate_every = o->validate_every,
                        .valid_rows = hl_fit_validation_rows(fit),
                        .batch = o->batch };
    p->first_solving = never ? SIZE_MAX : hl_fit_phase_at(fit, 0) == HL_FIT_LIKELIHOOD ? 0 : o->matching;
    p->last = p->start;
}

static void average(double *mean, double value)
{
    *mean = isnan(*mean) ? value : *mean + (value - *mean) / WINDOW;
}

static double known(double seconds)
{
    return isnan(seconds) ? 0 : seconds;
}

double hl_fit_pace_rows(const hl_fit_pace *p, hl_fit_phase phase)
{
    double seconds = phase == HL_FIT_LIKELIHOOD ? p->solving : p->matching;
    return seconds > 0 ? (double)p->batch / seconds : 0;
}

/* A gradient that fails tells nothing about time, and its iteration will fail by itself. */
static hl_status probe(hl_fit_pace *p, hl_fit *fit)
{
    double seconds;
    hl_kept_failure kept;
    p->probed = true;
    hl_failure_keep(hl_fit_context(fit), &kept);
    hl_status status = hl_fit_probe(fit, &seconds);
    if (status == HL_OK)
        p->solving = seconds;
    if (status == HL_ERR_NOMEM || status == HL_STOPPED)
        return status;
    hl_failure_restore(hl_fit_context(fit), &kept);
    return HL_OK;
}

static double seconds_left(const hl_fit_pace *p, const hl_fit_report *r)
{
    size_t end = r->iterations, change = p->first_solving < end ? p->first_solving : end;
    size_t matching = r->iteration < change ? change - r->iteration : 0, solved = end - r->iteration - matching;
    if (solved && isnan(p->solving))
        return NAN;
    /* before the first validation: two solves forward of its rows, about a gradient of as many */
    double validation =
        !isnan(p->validation) ? p->validation : known(p->solving) * (double)p->valid_rows / (double)p->batch;
    size_t validations = p->valid_rows ? end / p->validate_every - r->iteration / p->validate_every : 0;
    return (double)matching * known(p->matching) + (double)solved * known(p->solving) +
           (double)validations * validation;
}

hl_status hl_fit_pace_step(hl_fit_pace *p, hl_fit *fit, const hl_fit_report *r, double *left)
{
    bool solving = r->phase == HL_FIT_LIKELIHOOD;
    double *kind = solving ? &p->solving : &p->matching, seconds = hl_clock() - p->last;
    hl_status status = HL_OK;
    if (r->validated && !isnan(*kind))
        average(&p->validation, fmax(seconds - *kind, 0));
    else
        average(kind, seconds);
    if (!solving && !p->probed && p->first_solving != SIZE_MAX)
        status = probe(p, fit);
    p->last = hl_clock();
    *left = seconds_left(p, r);
    return status;
}
