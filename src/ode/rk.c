/* rk.c - the Runge-Kutta family: creation, rows in and out of slots, and messages of failures. */
#include "ode/rk.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- creation ---- */

void *hl_slab_take(char *slab, size_t *used, size_t count, size_t size)
{
    size_t at = *used, bytes = hl_size_mul(count, size);
    *used = hl_size_add(at, hl_size_mul(hl_size_add(bytes, 63) / 64, 64));
    return slab ? slab + at : NULL;
}

/* Place everything in the slab; with NULL, only add up. */
static size_t lay_out(hl_rk_state *s, const hl_ode_options *o, char *slab)
{
    size_t used = 0, rows = s->slots, values = hl_size_mul(rows, s->n), d = sizeof(double), z = sizeof(size_t);
    s->slot = hl_slab_take(slab, &used, rows, sizeof *s->slot);
    s->h = hl_slab_take(slab, &used, rows, d);
    s->t = hl_slab_take(slab, &used, rows, d);
    s->list_t = hl_slab_take(slab, &used, rows, d);
    s->index = hl_slab_take(slab, &used, rows, z);
    s->verdict = hl_slab_take(slab, &used, rows, z);
    s->list = hl_slab_take(slab, &used, rows, z);
    s->list_index = hl_slab_take(slab, &used, rows, z);
    s->y = hl_slab_take(slab, &used, values, d);
    s->end = hl_slab_take(slab, &used, values, d);
    s->work = hl_slab_take(slab, &used, values, d);
    s->list_y = hl_slab_take(slab, &used, values, d);
    s->list_k = hl_slab_take(slab, &used, values, d);
    for (int j = 0; j < s->stages; j++)
        s->k[j] = hl_slab_take(slab, &used, values, d);
    for (int j = 0; j < s->ab; j++)
        s->history[j] = hl_slab_take(slab, &used, values, d);
    if (o->gradient == HL_REPLAY)
        hl_record_layout(s, o, slab, &used);
    return used;
}

static hl_status set_method(hl_ode *ode, hl_rk_state *s)
{
    const char *name = ode->options.method;
    const hl_ab *ab = hl_ab_find(name);
    s->ab = ab ? ab->order : 0;
    s->ab_weights = ab ? ab->b : NULL;
    s->m = hl_rk_find(ab ? "rk4" : name); /* the first steps of ab; its order is enough for those */
    s->stages = s->m->end + 1 + s->m->extra;
    if (!hl_rk_is_consistent(s->m) || s->ab > HL_AB_ORDER)
        return hl_fail(ode->ctx, HL_ERR_UNSUPPORTED,
                       "method %s: the coefficients in tableau.c do not fit its stages, or there are more than %d",
                       name, ab ? HL_AB_ORDER : HL_RK_STAGES);
    return HL_OK;
}

static hl_status check_options(hl_ode *ode, const hl_rk_state *s)
{
    const hl_ode_options *o = &ode->options;
    if (s->ab && !o->steps)
        return hl_fail(ode->ctx, HL_ERR_INVALID,
                       "method %s has no error control: set options.steps, or use dopri5, tsit5 or an adams method",
                       o->method);
    if (s->ab && o->gradient == HL_REPLAY)
        return hl_fail(ode->ctx, HL_ERR_UNSUPPORTED,
                       "HL_REPLAY does not support %s: use a Runge-Kutta method, such as rk4 with options.steps",
                       o->method);
    if (o->even_steps && (o->steps || o->gradient || s->ab))
        return hl_fail(ode->ctx, HL_ERR_INVALID,
                       "even_steps needs error control (no options.steps) and a solve that is not recorded");
    if (o->divided && !o->even_steps)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "options.divided needs even_steps, which sets the first step");
    if (o->gradient == HL_ADJOINT)
        return hl_fail(ode->ctx, HL_ERR_UNSUPPORTED,
                       "HL_ADJOINT is for the adams and bdf methods; use HL_REPLAY with %s", o->method);
    return HL_OK;
}

static hl_status rk_create(hl_ode *ode)
{
    hl_rk_state *s = hl_calloc(ode->ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    ode->state = s;
    hl_status status = set_method(ode, s);
    if (status == HL_OK)
        status = check_options(ode, s);
    if (status != HL_OK)
        return status;
    s->adaptive = ode->options.steps == 0;
    s->n = ode->system.n;
    s->slots = ode->options.rows;
    for (size_t i = 0; i < s->n; i++)
        s->counted += !ode->options.weights || ode->options.weights[i] > 0;
    s->counted = s->counted ? s->counted : 1;
    char *slab = hl_alloc(ode->ctx, lay_out(s, &ode->options, NULL));
    if (!slab)
        return HL_ERR_NOMEM;
    lay_out(s, &ode->options, slab);
    return ode->options.gradient == HL_ADJOINT_REINTEGRATED ? hl_reintegrate_create(ode) : HL_OK;
}

static void rk_free(hl_ode *ode)
{
    hl_rk_state *s = ode->state;
    if (!s)
        return;
    hl_reintegrate_free(ode);
    hl_free(ode->ctx, s->slot); /* the slab */
    hl_free(ode->ctx, s);
}

/* ---- rows in and out ---- */

static bool is_imprecise(const hl_ode *ode, const double *y)
{
    const hl_ode_options *o = &ode->options;
    double rounding = ode->system.rounding > 0 ? ode->system.rounding : DBL_EPSILON;
    for (size_t i = 0; i < ode->system.n; i++)
        if ((!o->weights || o->weights[i] > 0) && o->atol + o->rtol * fabs(y[i]) < 10 * rounding * fabs(y[i]))
            return true;
    return false;
}

static void note_failure(hl_rk_job *job, const hl_rk_slot *slot)
{
    if (!job->failures++ || slot->row < job->failed.row)
        job->failed = *slot;
}

/* Write back the row of a slot. */
static void store_row(hl_ode *ode, hl_rk_job *job, size_t i)
{
    hl_rk_state *s = ode->state;
    const hl_rk_slot *slot = &s->slot[i];
    if (!job->t) {
        job->failures += slot->info.status < 0;
        return;
    }
    job->t[slot->row] = slot->t;
    memcpy(job->y + slot->row * s->n, s->y + i * s->n, s->n * sizeof *s->y);
    if (job->info)
        job->info[slot->row] = slot->info;
    if (slot->info.status < 0) {
        note_failure(job, slot);
    } else if (s->adaptive && !job->imprecise) {
        job->imprecise = is_imprecise(ode, s->y + i * s->n);
    }
}

/* Empty the slots that are done; tells whether there were any. */
static bool retire(hl_ode *ode, hl_rk_job *job)
{
    hl_rk_state *s = ode->state;
    size_t before = s->active;
    for (size_t i = s->active; i-- > 0;)
        if (s->slot[i].done) {
            store_row(ode, job, i);
            hl_rk_move(s, i, --s->active);
        }
    return s->active < before;
}

/* Output times that a row has reached before its first step. */
static void write_start(const hl_rk_state *s, const hl_rk_job *job, hl_rk_slot *slot, const double *y)
{
    for (; slot->time < job->count && job->times[slot->time] == slot->t; slot->time++)
        if (job->out)
            memcpy(job->out + (slot->time * job->rows + slot->row) * s->n, y, s->n * sizeof *y);
}

/* A row that cannot begin: it stays as it is. */
static void refuse(hl_rk_job *job, hl_rk_slot *slot, size_t component)
{
    slot->info.status = HL_ERR_NOT_FINITE;
    slot->info.component = component;
    note_failure(job, slot);
    if (job->info)
        job->info[slot->row] = slot->info;
}

/* Give waiting rows the free slots. Rows of Adams-Bashforth go in step, so they wait until all slots are free. */
static void load(hl_ode *ode, hl_rk_job *job)
{
    hl_rk_state *s = ode->state;
    size_t n = s->n;
    if (s->ab && s->active)
        return;
    for (size_t row; s->active < s->slots && hl_ode_take(ode, job->rows, &job->taken, &row);) {
        hl_rk_slot *slot = &s->slot[s->active];
        *slot = (hl_rk_slot){ .row = row, .start = job->t[row], .t = job->t[row], .error_before = 1e-4, .theta = 1 };
        slot->even = ode->options.even_steps > 0 && !ode->options.divided;
        if (ode->options.divided)
            slot->proposal = fabs(job->end - slot->t) / (double)ode->options.even_steps;
        size_t bad = hl_first_bad(job->y + row * n, n);
        if (bad < n) {
            refuse(job, slot, bad);
            continue;
        }
        write_start(s, job, slot, job->y + row * n);
        if (slot->t != job->end)
            memcpy(s->y + s->active++ * n, job->y + row * n, n * sizeof *s->y);
        else if (job->info)
            job->info[row] = slot->info;
    }
}

/* f, the event and the size of the first step of the slots from `first` on; the done are to be retired first. */
static int start(hl_ode *ode, hl_rk_job *job, size_t first)
{
    hl_rk_state *s = ode->state;
    size_t good = s->active;
    int value = hl_rk_stage(ode, first, &good, 0, s->y, 0);
    if (value < 0)
        return value;
    for (size_t i = good; i < s->active; i++) {
        hl_rk_slot *slot = &s->slot[i];
        bool refused = slot->verdict == HL_RK_REFUSED;
        slot->done = true;
        slot->info.status = refused ? HL_ERR_STEP : HL_ERR_NOT_FINITE;
        slot->info.component = refused ? 0 : slot->verdict - HL_RK_NOT_FINITE;
    }
    retire(ode, job);
    if (job->event && s->active > first && (value = hl_rk_first_events(ode, job, first)) < 0)
        return value;
    retire(ode, job);
    bool guess = s->adaptive && !ode->options.even_steps && !job->replay;
    return guess && s->active > first ? hl_rk_first_steps(ode, job, first) : 0;
}

/* A callback stopped the solve: what is not finished stays as it is. */
static hl_status stop(hl_ode *ode, hl_rk_job *job)
{
    hl_rk_state *s = ode->state;
    for (size_t i = 0; i < s->active; i++) {
        s->slot[i].done = true;
        s->slot[i].info.status = HL_ERR_CALLBACK;
    }
    retire(ode, job);
    for (size_t row; hl_ode_take(ode, job->rows, &job->taken, &row);)
        if (job->info)
            job->info[row] = (hl_ode_row){ .status = HL_ERR_CALLBACK };
    return hl_fail(ode->ctx, HL_ERR_CALLBACK, "a callback of the system stopped the solve with the value %d",
                   ode->report.callback);
}

hl_status hl_rk_run(hl_ode *ode, hl_rk_job *job)
{
    hl_rk_state *s = ode->state;
    size_t fresh = job->replay ? 0 : s->active; /* slots from here on have not begun */
    for (;;) {
        if (!job->replay)
            load(ode, job);
        if (s->active > fresh && start(ode, job, fresh) < 0)
            return stop(ode, job);
        for (size_t i = 0; i < s->active; i++)
            hl_rk_plan_step(ode, job, i);
        bool ready = !retire(ode, job);
        if (ready && s->active && hl_rk_round(ode, job) < 0)
            return stop(ode, job);
        retire(ode, job);
        fresh = s->active;
        if (!s->active && job->taken == job->rows)
            return HL_OK;
    }
}

/* ---- solving ---- */

static hl_status explain(hl_ode *ode, const hl_rk_job *job)
{
    const hl_rk_slot *f = &job->failed;
    const hl_ode_row *info = &f->info;
    static const char stiff[] = "the system may be stiff: try method bdf-jacobi or auto";
    char others[64] = "";
    if (job->failures > 1 && !ode->next) /* dealt rows: it would depend on the threads */
        snprintf(others, sizeof others, " (%zu more rows failed)", job->failures - 1);
    if (info->status == HL_ERR_BUDGET)
        return hl_fail_at(ode->ctx, info->status, hl_at(f->row, info->component),
                          "%zu evaluations are used up at t = %.9g (step %.3g); this value has the largest error; %s, "
                          "or increase max_evaluations%s",
                          info->evaluations, f->t, info->step, stiff, others);
    if (info->status == HL_ERR_NOT_FINITE && !info->evaluations)
        return hl_fail_at(ode->ctx, info->status, hl_at(f->row, info->component), "the initial state is not finite%s",
                          others);
    if (info->status == HL_ERR_NOT_FINITE)
        return hl_fail_at(ode->ctx, info->status, hl_at(f->row, info->component),
                          "f or the state is not finite at or after t = %.9g (step %.3g): the solution may have a "
                          "singularity, or f is evaluated outside of its domain%s%s",
                          f->t, info->step,
                          ode->options.steps ? "; without options.steps the solver would try smaller steps" : "",
                          others);
    if (f->verdict == HL_RK_REFUSED)
        return hl_fail_at(ode->ctx, info->status, hl_at(f->row, HL_NOWHERE),
                          "the callback rejects every step from t = %.9g (step %.3g)%s", f->t, info->step, others);
    return hl_fail_at(ode->ctx, info->status, hl_at(f->row, info->component),
                      "the step became too small (%.3g) at t = %.9g; this value has the largest error; %s%s",
                      info->step, f->t, stiff, others);
}

hl_status hl_rk_solve(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y, double *out,
                      hl_ode_row *info)
{
    hl_rk_state *s = ode->state;
    hl_rk_job job = {
        .rows = rows, .t = t, .y = y, .end = times[count - 1], .info = info, .event = ode->options.event
    };
    for (size_t i = 0; out && i < count * rows * s->n; i++)
        out[i] = NAN;
    if (out) {
        job.count = count;
        job.times = times;
        job.out = out;
    }
    s->active = 0;
    if (ode->options.gradient == HL_REPLAY)
        hl_record_start(s, rows, t, job.end);
    hl_status status = hl_rk_run(ode, &job);
    if (status != HL_OK)
        return status;
    if (job.failures)
        return explain(ode, &job);
    if (job.imprecise)
        return hl_fail(ode->ctx, HL_IMPRECISE,
                       "rtol %g and atol %g are finer than the rounding error of f, %.1g, which limits the accuracy",
                       ode->options.rtol, ode->options.atol,
                       ode->system.rounding > 0 ? ode->system.rounding : DBL_EPSILON);
    return HL_OK;
}

static hl_status rk_solve(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y,
                          double *out, hl_ode_row *info)
{
    return (ode->options.gradient == HL_ADJOINT_REINTEGRATED ? hl_reintegrate_solve : hl_rk_solve)(ode, rows, t, count,
                                                                                                   times, y, out, info);
}

static hl_status rk_gradient(hl_ode *ode, double *gy, double *gparam)
{
    return (ode->options.gradient == HL_REPLAY ? hl_replay_gradient : hl_reintegrate_gradient)(ode, gy, gparam);
}

const hl_ode_family hl_ode_rk = { .create = rk_create, .free = rk_free, .solve = rk_solve, .gradient = rk_gradient };
