/* control.c - how large steps are.
 *
 * The PI controller of Hairer, Norsett & Wanner: with k = error_order + 1,
 *     h_new = h * 0.9 error^(-0.85 / k) error_before^(0.2 / k),   at least h / 5, at most 10 h, at most h after a rejection.
 *
 * With options.divided the step is what is left over the least whole number that makes it h_new or less. */
#include <float.h>
#include <math.h>

#include "ode/rk.h"

/* ---- the first step ---- */

/* Root mean square of v, in units of the tolerance at y. */
static double norm(const hl_ode *ode, const double *v, const double *minus, const double *y)
{
    const hl_ode_options *o = &ode->options;
    const hl_rk_state *s = ode->state;
    double sum = 0;
    for (size_t i = 0; i < s->n; i++) {
        double weight = o->weights ? o->weights[i] : 1;
        double x = weight * (v[i] - (minus ? minus[i] : 0)) / (o->atol + o->rtol * fabs(y[i]));
        sum += x * x;
    }
    return fmin(sqrt(sum / (double)s->counted), DBL_MAX);
}

static double longest(const hl_ode *ode, const hl_rk_job *job, const hl_rk_slot *slot)
{
    return fmin(fabs(job->end - slot->t), ode->options.max_step);
}

/* A step so small that an Euler step of it is a guess, and the second derivative that it shows; Solving Ordinary Differential
 * Equations I, II.4. */
int hl_rk_first_steps(hl_ode *ode, const hl_rk_job *job, size_t first)
{
    hl_rk_state *s = ode->state;
    size_t n = s->n, good = s->active;
    for (size_t i = first; i < s->active; i++) {
        hl_rk_slot *slot = &s->slot[i];
        double d0 = norm(ode, s->y + i * n, NULL, s->y + i * n), d1 = norm(ode, s->k[0] + i * n, NULL, s->y + i * n);
        double h = d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : .01 * d0 / d1;
        slot->proposal = ode->options.first_step > 0 ? ode->options.first_step : fmin(h, longest(ode, job, slot));
        s->h[i] = copysign(slot->proposal, job->end - slot->t);
        slot->next = slot->t + s->h[i];
    }
    if (ode->options.first_step > 0)
        return 0;
    hl_rk_combine(s, s->k, first, s->active - first, (const double[]){ 1 }, 1, s->y, s->work + first * n);
    int value = hl_rk_stage(ode, first, &good, 1, s->work, 1);
    if (value < 0)
        return value;
    for (size_t i = first; i < good; i++) {
        hl_rk_slot *slot = &s->slot[i];
        const double *y = s->y + i * n;
        double d1 = norm(ode, s->k[0] + i * n, NULL, y), h = slot->proposal;
        double d2 = norm(ode, s->k[1] + i * n, s->k[0] + i * n, y) / h, d = fmax(d1, d2);
        double h1 = d <= 1e-15 ? fmax(1e-6, h * 1e-3) : pow(ode->options.start_error / d, 1. / (s->m->error_order + 1));
        slot->proposal = fmax(fmin(100 * h, h1), 100 * DBL_EPSILON * fabs(slot->t)); /* or a late start has none */
    }
    for (size_t i = good; i < s->active; i++) /* f is bad even there */
        s->slot[i].proposal *= .01;
    return 0;
}

/* ---- the next step ---- */

static void fail(hl_rk_slot *slot, hl_status status)
{
    slot->done = true;
    slot->info.status = status;
}

static void plan_equal(const hl_rk_job *job, hl_rk_slot *slot, size_t steps)
{
    size_t next = slot->info.steps + 1;
    slot->last = next == steps;
    slot->next = slot->last ? job->end : slot->start + (job->end - slot->start) * ((double)next / (double)steps);
}

void hl_rk_plan_step(hl_ode *ode, const hl_rk_job *job, size_t i)
{
    hl_rk_state *s = ode->state;
    hl_rk_slot *slot = &s->slot[i];
    size_t cost = s->ab && slot->info.steps + 1 >= (size_t)s->ab ? 1 : (size_t)s->m->end;
    slot->theta = 1;
    if (!job->replay && slot->info.evaluations + cost > ode->options.max_evaluations) {
        fail(slot, HL_ERR_BUDGET);
    } else if (!s->adaptive || slot->even) {
        plan_equal(job, slot, s->adaptive ? ode->options.even_steps : ode->options.steps);
        s->h[i] = slot->next - slot->t;
    } else {
        double left = fabs(job->end - slot->t), size = fmin(slot->proposal, ode->options.max_step);
        slot->last = left <= fmin(1.01 * slot->proposal, ode->options.max_step); /* no crumb of a step at the end */
        if (ode->options.divided && !slot->last)
            size = left / ceil(left / size - 1e-9);
        if (!slot->last && size < 10 * DBL_EPSILON * fmax(fabs(slot->t), 1e-8 * left))
            fail(slot, slot->verdict >= HL_RK_NOT_FINITE ? HL_ERR_NOT_FINITE : HL_ERR_STEP);
        s->h[i] = slot->last ? job->end - slot->t : copysign(size, job->end - slot->t);
        slot->next = slot->last ? job->end : slot->t + s->h[i];
    }
    slot->info.step = s->h[i];
}

void hl_rk_accepted(const hl_ode *ode, hl_rk_slot *slot)
{
    const hl_rk_state *s = ode->state;
    double k = s->m->error_order + 1, error = slot->info.error;
    if (!s->adaptive)
        return;
    double factor = .9 * pow(error, -.85 / k) * pow(slot->error_before, .2 / k); /* infinite if the error is 0 */
    factor = fmin(fmax(factor, .2), slot->rejected ? 1 : 10);
    slot->proposal = fabs(slot->info.step) * factor;
    slot->error_before = fmax(error, 1e-4);
    slot->rejected = false;
}

void hl_rk_rejected(const hl_ode *ode, hl_rk_slot *slot)
{
    const hl_rk_state *s = ode->state;
    double factor = slot->verdict ? .25 : fmax(.9 * pow(slot->info.error, -.85 / (s->m->error_order + 1)), .2);
    slot->rejected = true;
    slot->even = false;
    slot->proposal = fabs(slot->info.step) * factor;
    if (slot->verdict >= HL_RK_NOT_FINITE)
        slot->info.component = slot->verdict - HL_RK_NOT_FINITE;
    if (!s->adaptive)
        fail(slot, slot->verdict >= HL_RK_NOT_FINITE ? HL_ERR_NOT_FINITE : HL_ERR_STEP);
}
