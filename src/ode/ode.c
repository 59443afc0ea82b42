/* ode.c - the front of all solvers: arguments, defaults, counting. */
#include "ode/ode.h"

#include <math.h>
#include <string.h>

#include "ode/tableau.h"

static const char default_method[] = "dopri5";

const hl_ode_family *hl_ode_family_of(const char *method)
{
    method = method ? method : default_method;
    if (hl_rk_find(method) || hl_ab_find(method))
        return &hl_ode_rk;
    return hl_ode_names[hl_name_index(hl_ode_names, method)] ? &hl_ode_multistep : NULL;
}

const char *const *hl_ode_methods(void)
{
    return hl_ode_names;
}

/* ---- creation ---- */

static hl_status find_method(hl_ode *ode, const char *name)
{
    name = name ? name : default_method;
    ode->family = hl_ode_family_of(name);
    if (!ode->family)
        return hl_fail_unknown(ode->ctx, "ODE method", name, hl_ode_names);
    ode->options.method = hl_ode_names[hl_name_index(hl_ode_names, name)];
    return HL_OK;
}

static hl_status check_positive(hl_context *ctx, const char *what, double value)
{
    if (!(value >= 0) || isinf(value))
        return hl_fail(ctx, HL_ERR_INVALID, "%s is %g; it must be positive, or 0 for the default", what, value);
    return HL_OK;
}

static hl_status set_weights(hl_ode *ode, const double *weights)
{
    ode->options.weights = NULL;
    if (!weights)
        return HL_OK;
    double *copy = hl_calloc(ode->ctx, ode->system.n, sizeof *copy);
    if (!copy)
        return HL_ERR_NOMEM;
    ode->options.weights = copy;
    for (size_t i = 0; i < ode->system.n; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return hl_fail(ode->ctx, HL_ERR_INVALID, "weight %zu of the error is %g; it must be 0 or positive", i,
                           weights[i]);
        copy[i] = weights[i];
    }
    return HL_OK;
}

static hl_status set_options(hl_ode *ode, const hl_ode_options *given)
{
    hl_ode_options *o = &ode->options;
    const double *weights = given->weights;
    *o = *given;
    o->weights = NULL;
    hl_status status = find_method(ode, given->method);
    if (status == HL_OK && ((status = check_positive(ode->ctx, "rtol", o->rtol)) != HL_OK ||
                            (status = check_positive(ode->ctx, "atol", o->atol)) != HL_OK ||
                            (status = check_positive(ode->ctx, "first_step", o->first_step)) != HL_OK ||
                            (status = check_positive(ode->ctx, "start_error", o->start_error)) != HL_OK ||
                            (status = check_positive(ode->ctx, "max_step", o->max_step)) != HL_OK))
        return status;
    if (status != HL_OK)
        return status;
    o->rtol = o->rtol > 0 ? o->rtol : 1e-6;
    o->atol = o->atol > 0 ? o->atol : 1e-8;
    o->rows = o->rows ? o->rows : 256;
    o->start_error = o->start_error > 0 ? o->start_error : .01;
    o->max_step = o->max_step > 0 ? o->max_step : INFINITY;
    o->max_evaluations = o->max_evaluations ? o->max_evaluations : 100000;
    o->checkpoint_bytes = o->checkpoint_bytes ? o->checkpoint_bytes : (size_t)256 << 20;
    if (o->gradient < HL_NO_GRADIENT || o->gradient > HL_ADJOINT_REINTEGRATED)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "unknown kind of gradient %d", (int)o->gradient);
    if (o->gradient && !ode->system.vjp)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "a gradient needs the system's vjp");
    return set_weights(ode, weights);
}

hl_status hl_ode_create(hl_context *ctx, const hl_system *system, const hl_ode_options *options, hl_ode **out)
{
    static const hl_ode_options defaults;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!system || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_ode_create: the system or the result is NULL");
    *out = NULL;
    if (system->n == 0 || !system->rhs)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_ode_create: a system needs n > 0 and a right-hand side");
    hl_ode *ode = hl_calloc(ctx, 1, sizeof *ode);
    if (!ode)
        return HL_ERR_NOMEM;
    ode->ctx = ctx;
    ode->system = *system;
    ode->counts = &ode->report.forward;
    hl_status status = set_options(ode, options ? options : &defaults);
    if (status == HL_OK)
        status = ode->family->create(ode);
    if (status != HL_OK) {
        hl_ode_free(ode);
        return status;
    }
    *out = ode;
    return HL_OK;
}

void hl_ode_free(hl_ode *ode)
{
    if (!ode)
        return;
    if (ode->family)
        ode->family->free(ode);
    hl_free(ode->ctx, (void *)(uintptr_t)ode->options.weights);
    hl_free(ode->ctx, ode);
}

/* ---- calls ---- */

size_t hl_first_bad(const double *v, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!isfinite(v[i]))
            return i;
    return size;
}

static int checked(hl_ode *ode, int value, const double *result, size_t size, size_t *bad)
{
    if (hl_check_stop(ode->ctx) != HL_OK) {
        value = -1;
        ode->stopped = true;
    }
    if (value < 0)
        ode->report.callback = value;
    if (value)
        return value;
    size_t at = hl_first_bad(result, size);
    if (at < size && bad)
        *bad = at;
    return at < size;
}

int hl_call_rhs(hl_ode *ode, const hl_rows *at, double *dy, size_t *bad)
{
    ode->counts->f_calls++;
    ode->counts->f += at->count;
    return checked(ode, ode->system.rhs(ode->system.user, at, dy), dy, at->count * ode->system.n, bad);
}

int hl_call_diagonal(hl_ode *ode, const hl_rows *at, double *dy, double *diagonal, size_t *bad)
{
    ode->counts->diagonal_calls++;
    ode->counts->diagonal += at->count;
    int value = ode->system.diagonal(ode->system.user, at, dy, diagonal);
    value = checked(ode, value, diagonal, at->count * ode->system.n, bad);
    return value || !dy ? value : checked(ode, 0, dy, at->count * ode->system.n, bad);
}

int hl_call_jvp(hl_ode *ode, const hl_rows *at, const double *v, double *jv, size_t *bad)
{
    ode->counts->jvp_calls++;
    ode->counts->jvp += at->count;
    return checked(ode, ode->system.jvp(ode->system.user, at, v, jv), jv, at->count * ode->system.n, bad);
}

int hl_call_vjp(hl_ode *ode, const hl_rows *at, const double *w, double *gy, double *gparam, size_t *bad)
{
    ode->counts->vjp_calls++;
    ode->counts->vjp += at->count;
    return checked(ode, ode->system.vjp(ode->system.user, at, w, gy, gparam), gy, at->count * ode->system.n, bad);
}

/* ---- solving ---- */

static hl_status check_solve(hl_ode *ode, size_t rows, const double *t, size_t count, const double *times,
                             const double *y)
{
    if (rows && (!t || !y))
        return hl_fail(ode->ctx, HL_ERR_INVALID, "hl_ode_solve: t or y is NULL");
    if (ode->options.gradient && rows > ode->options.rows)
        return hl_fail(ode->ctx, HL_ERR_INVALID,
                       "a recorded solve of %zu rows, but options.rows is %zu: solve fewer rows at a time", rows,
                       ode->options.rows);
    for (size_t k = 0; k < count; k++)
        if (!isfinite(times[k]))
            return hl_fail(ode->ctx, HL_ERR_INVALID, "end time %zu is not finite", k);
    for (size_t r = 0; r < rows; r++) {
        double direction = count ? times[count - 1] - t[r] : 0, before = t[r];
        if (!isfinite(t[r]))
            return hl_fail_at(ode->ctx, HL_ERR_INVALID, hl_at(r, HL_NOWHERE), "the start time is not finite");
        for (size_t k = 0; k < count; before = times[k++])
            if ((times[k] - before) * direction < 0)
                return hl_fail_at(ode->ctx, HL_ERR_INVALID, hl_at(r, HL_NOWHERE),
                                  "time %zu (%g) is not between %g and %g", k, times[k], t[r], times[count - 1]);
    }
    return HL_OK;
}

hl_status hl_ode_stopped(hl_ode *ode)
{
    if (ode->stopped)
        return hl_fail(ode->ctx, HL_STOPPED, "stopped on request");
    return hl_fail(ode->ctx, HL_ERR_CALLBACK, "a callback of the system stopped the solve with the value %d",
                   ode->report.callback);
}

/* Families end with HL_ERR_CALLBACK whether the system or the context's user said stop; the user's stop is HL_STOPPED. */
static hl_status finish(hl_ode *ode, hl_status status, size_t rows, hl_ode_row *info)
{
    if (!ode->stopped || status >= 0)
        return status;
    for (size_t r = 0; info && r < rows; r++)
        if (info[r].status == HL_ERR_CALLBACK)
            info[r].status = HL_STOPPED;
    return hl_ode_stopped(ode);
}

/* Remembers whether there is something to differentiate. */
static hl_status solve(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y, double *out,
                       hl_ode_row *info)
{
    hl_status status = check_solve(ode, rows, t, count, times, y);
    ode->report.callback = 0;
    ode->stopped = false;
    ode->counts = &ode->report.forward;
    ode->solved = false;
    if (status != HL_OK || !count || !rows)
        return status;
    status = finish(ode, ode->family->solve(ode, rows, t, count, times, y, out, info), rows, info);
    ode->solved = status >= 0 && status != HL_STOPPED;
    return status;
}

hl_status hl_ode_solve_at(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y,
                          double *out, hl_ode_row *info)
{
    if (!ode)
        return HL_ERR_INVALID;
    if (count && (!times || (!out && rows)))
        return hl_fail(ode->ctx, HL_ERR_INVALID, "hl_ode_solve_at: times or out is NULL");
    return solve(ode, rows, t, count, times, y, out, info);
}

hl_status hl_ode_solve(hl_ode *ode, size_t rows, double *t, double t1, double *y, hl_ode_row *info)
{
    if (!ode)
        return HL_ERR_INVALID;
    return solve(ode, rows, t, 1, &t1, y, NULL, info);
}

hl_status hl_ode_solve_dealt(hl_ode *ode, atomic_size_t *next, size_t rows, double *t, double t1, double *y,
                             hl_ode_row *info)
{
    ode->report.callback = 0;
    ode->stopped = ode->solved = false;
    ode->counts = &ode->report.forward;
    ode->next = next;
    hl_status status = ode->family->solve(ode, rows, t, 1, &t1, y, NULL, info);
    ode->next = NULL;
    return status < 0 && ode->stopped ? hl_ode_stopped(ode) : status;
}

bool hl_ode_take(hl_ode *ode, size_t rows, size_t *taken, size_t *row)
{
    if (*taken >= rows)
        return false;
    if (!ode->next) {
        *row = (*taken)++;
        return true;
    }
    *row = atomic_fetch_add_explicit(ode->next, 1, memory_order_relaxed);
    if (*row >= rows)
        *taken = rows;
    return *row < rows;
}

hl_status hl_ode_gradient(hl_ode *ode, double *gy, double *gparam)
{
    if (!ode)
        return HL_ERR_INVALID;
    if (!ode->options.gradient)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "hl_ode_gradient: the solver was created without options.gradient");
    if (!gy)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "hl_ode_gradient: gy is NULL");
    if (!ode->solved)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "hl_ode_gradient: there is no successful solve to differentiate");
    ode->report.callback = 0;
    ode->stopped = false;
    ode->counts = &ode->report.backward;
    return finish(ode, ode->family->gradient(ode, gy, gparam), 0, NULL);
}

hl_ode_summary hl_ode_report(const hl_ode *ode)
{
    return ode ? ode->report : (hl_ode_summary){ 0 };
}

void hl_ode_reset(hl_ode *ode)
{
    if (ode)
        ode->report = (hl_ode_summary){ 0 };
}
