/* reintegrate.c - HL_ADJOINT_REINTEGRATED: the adjoint as the Neural-ODE papers write it.
 *
 * All rows, their adjoints and the gradient to the parameters are one system, integrated from t1 back to t0:
 *     y' = f,   a' = -J' a,   g' = -a . df/dparameters
 * y is not remembered but integrated backwards too, from its end; how far it misses its start is the drift. */
#include <math.h>
#include <string.h>

#include "ode/rk.h"

typedef struct hl_reintegration {
    hl_ode *inner; /* solves the whole as one row */
    size_t rows;
    bool valid; /* there is a solve whose rows began and ended together */
    double t0, t1;
    double *start, *end; /* rows x n */
    double *whole;       /* y, a (rows x n each) and g */
    double *t;           /* rows */
    size_t *index;
} hl_reintegration;

static int whole_rhs(void *user, const hl_rows *at, double *dy)
{
    hl_ode *ode = user;
    const hl_reintegration *b = ((hl_rk_state *)ode->state)->back;
    size_t size = b->rows * ode->system.n, params = ode->system.n_params;
    hl_rows rows = { b->rows, b->index, b->t, at->y };
    for (size_t r = 0; r < b->rows; r++)
        b->t[r] = at->t[0];
    int value = hl_call_rhs(ode, &rows, dy, NULL);
    if (value)
        return value;
    for (size_t i = 0; i < params; i++)
        dy[2 * size + i] = 0;
    value = hl_call_vjp(ode, &rows, at->y + size, dy + size, params ? dy + 2 * size : NULL, NULL);
    for (size_t i = size; i < 2 * size + params; i++)
        dy[i] = -dy[i];
    return value;
}

hl_status hl_reintegrate_create(hl_ode *ode)
{
    hl_rk_state *s = ode->state;
    size_t size = hl_size_mul(s->slots, s->n), whole = hl_size_add(hl_size_mul(2, size), ode->system.n_params);
    hl_reintegration *b = hl_calloc(ode->ctx, 1, sizeof *b);
    if (!b)
        return HL_ERR_NOMEM;
    s->back = b;
    b->start = hl_calloc(ode->ctx, size, sizeof *b->start);
    b->end = hl_calloc(ode->ctx, size, sizeof *b->end);
    b->whole = hl_calloc(ode->ctx, whole, sizeof *b->whole);
    b->t = hl_calloc(ode->ctx, s->slots, sizeof *b->t);
    b->index = hl_calloc(ode->ctx, s->slots, sizeof *b->index);
    if (!b->start || !b->end || !b->whole || !b->t || !b->index)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < s->slots; r++)
        b->index[r] = r;
    hl_system system = { .n = whole, .rhs = whole_rhs, .rounding = ode->system.rounding, .user = ode };
    hl_ode_options o = ode->options;
    o.rows = 1;
    o.gradient = HL_NO_GRADIENT;
    o.event = NULL;
    o.weights = NULL;
    o.first_step = 0;
    o.max_step = isinf(o.max_step) ? 0 : o.max_step;
    return hl_ode_create(ode->ctx, &system, &o, &b->inner);
}

void hl_reintegrate_free(hl_ode *ode)
{
    hl_reintegration *b = ((hl_rk_state *)ode->state)->back;
    if (!b)
        return;
    hl_ode_free(b->inner);
    hl_free(ode->ctx, b->start);
    hl_free(ode->ctx, b->end);
    hl_free(ode->ctx, b->whole);
    hl_free(ode->ctx, b->t);
    hl_free(ode->ctx, b->index);
    hl_free(ode->ctx, b);
}

hl_status hl_reintegrate_solve(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y,
                               double *out, hl_ode_row *info)
{
    hl_reintegration *b = ((hl_rk_state *)ode->state)->back;
    size_t size = rows * ode->system.n;
    b->valid = true;
    b->rows = rows;
    b->t0 = t[0];
    for (size_t r = 1; r < rows; r++)
        b->valid = b->valid && t[r] == t[0];
    memcpy(b->start, y, size * sizeof *y);
    hl_status status = hl_rk_solve(ode, rows, t, count, times, y, out, info);
    b->t1 = t[0];
    for (size_t r = 1; r < rows; r++)
        b->valid = b->valid && t[r] == t[0];
    memcpy(b->end, y, size * sizeof *y);
    return status;
}

hl_status hl_reintegrate_gradient(hl_ode *ode, double *gy, double *gparam)
{
    hl_reintegration *b = ((hl_rk_state *)ode->state)->back;
    size_t size = b->rows * ode->system.n, params = ode->system.n_params, whole = 2 * size + params;
    if (!b->rows)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "hl_ode_gradient: there is no solve to differentiate");
    if (!b->valid)
        return hl_fail(ode->ctx, HL_ERR_UNSUPPORTED,
                       "HL_ADJOINT_REINTEGRATED needs rows with the same start and end times; use HL_REPLAY");
    /* the inner solver was made for the most rows; it works on as many as there are */
    hl_rk_state *inner = b->inner->state;
    b->inner->system.n = inner->n = inner->counted = whole;
    memcpy(b->whole, b->end, size * sizeof *gy);
    memcpy(b->whole + size, gy, size * sizeof *gy);
    memset(b->whole + 2 * size, 0, params * sizeof *gy);
    double t = b->t1, drift = 0;
    hl_ode_reset(b->inner);
    hl_status status = hl_ode_solve(b->inner, 1, &t, b->t0, b->whole, NULL);
    ode->counts->steps += b->inner->report.forward.steps;
    ode->counts->rejected += b->inner->report.forward.rejected;
    if (status < 0 || status == HL_STOPPED)
        return status;
    for (size_t i = 0; i < size; i++)
        drift =
            fmax(drift, fabs(b->whole[i] - b->start[i]) / (ode->options.atol + ode->options.rtol * fabs(b->start[i])));
    ode->report.drift = drift;
    memcpy(gy, b->whole + size, size * sizeof *gy);
    for (size_t i = 0; gparam && i < params; i++)
        gparam[i] += b->whole[2 * size + i];
    return status;
}
