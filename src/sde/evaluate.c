/* evaluate.c - a model's values in the user's units, draws from its density, and the model as a system. */
#include <math.h>
#include <string.h>

#include "exec/plan.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { STREAM_DRAW = 7 };

/* Standardise up to HL_SDE_ROWS rows. */
static void load(hl_sde *s, size_t rows, const double *t, const double *x)
{
    hl_standardise(rows, 1, &s->t_first, &(double){ hl_sde_time_unit(s) }, 1, t, s->t);
    if (x)
        hl_standardise(rows, s->spec.dim, s->mean, s->deviation, 1, x, s->x);
}

/* rows x dim values of an output, times deviation^power times factor. */
static void store(const hl_sde *s, size_t rows, const double *from, int power, double factor, double *to)
{
    size_t d = s->spec.dim;
    for (size_t k = 0; to && k < rows * d; k++)
        to[k] = from[k] * (power == 0  ? factor
                           : power > 0 ? factor * s->deviation[k % d]
                                       : factor / s->deviation[k % d]);
}

static void store_scalar(size_t rows, const double *from, double factor, double shift, double *to)
{
    for (size_t r = 0; to && r < rows; r++)
        to[r] = from[r] * factor + shift;
}

/* Run a plan on the chunk; the rows of output k have width[k] values. */
static void run(hl_sde *s, hl_plan *plan, size_t rows, size_t outputs, const size_t *width)
{
    size_t d = s->spec.dim;
    const hl_row_in in[] = { { .p = s->t, .pitch = 1 },
                             { .p = s->x, .pitch = d },
                             { .p = s->v, .pitch = d },
                             { .p = s->diagonal, .pitch = d } };
    hl_row_out out[3];
    for (size_t k = 0; k < outputs; k++)
        out[k] = (hl_row_out){ .p = s->out[k], .pitch = width[k] };
    hl_execute_rows(plan, rows, in, s->param, out);
}

static double *moved(double *to, size_t by)
{
    return to ? to + by : NULL;
}

/* The diagonal of the Hessian of a flow's log p, to s->diagonal: one run for each unit vector. */
static void eval_diagonal(hl_sde *s, size_t rows)
{
    size_t d = s->spec.dim;
    for (size_t i = 0; i < d; i++) {
        for (size_t k = 0; k < rows * d; k++)
            s->v[k] = k % d == i;
        run(s, s->bend, rows, 1, (const size_t[]){ d });
        for (size_t r = 0; r < rows; r++)
            s->diagonal[r * d + i] = s->out[0][r * d + i];
    }
}

static void eval_chunk(hl_sde *s, size_t rows, const hl_sde_values *v)
{
    size_t d = s->spec.dim;
    double unit = hl_sde_time_unit(s), logs = 0;
    for (size_t i = 0; i < d; i++)
        logs += log(s->deviation[i]);
    if (v->f || v->g || v->dg) {
        run(s, v->dg ? s->slopes : s->drift, rows, v->dg ? 3 : 2, (const size_t[]){ d, d, d });
        store(s, rows, s->out[0], 1, 1 / unit, v->f);
        store(s, rows, s->out[1], 1, 1 / sqrt(unit), v->g);
        store(s, rows, s->out[2], 0, 1 / sqrt(unit), v->dg);
    }
    if (v->logp || v->score) {
        run(s, s->density, rows, 2, (const size_t[]){ 1, d });
        store_scalar(rows, s->out[0], 1, -logs, v->logp);
        store(s, rows, s->out[1], -1, 1, v->score);
    }
    if (v->residual || v->change) {
        if (s->flow.count)
            eval_diagonal(s, rows);
        run(s, s->all, rows, 2, (const size_t[]){ 1, 1 });
        store_scalar(rows, s->out[0], 1 / unit, 0, v->residual);
        store_scalar(rows, s->out[1], 1 / unit, 0, v->change);
    }
}

hl_status hl_sde_eval(hl_sde *s, size_t rows, const double *t, const double *x, const hl_sde_values *v)
{
    if (!s)
        return HL_ERR_INVALID;
    if (!v || (rows && (!t || !x)))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_eval: t, x or the results are NULL");
    size_t d = s->spec.dim, count;
    for (size_t at = 0; at < rows; at += count) {
        hl_status status = hl_check_stop(s->ctx);
        if (status != HL_OK)
            return status;
        count = rows - at < HL_SDE_ROWS ? rows - at : HL_SDE_ROWS;
        load(s, count, t + at, x + at * d);
        eval_chunk(s, count,
                   &(hl_sde_values){ moved(v->f, at * d), moved(v->g, at * d), moved(v->dg, at * d), moved(v->logp, at),
                                     moved(v->residual, at), moved(v->score, at * d), moved(v->change, at) });
    }
    return HL_OK;
}

/* A chunk from the flow. */
static hl_status draw_flow(hl_sde *s, size_t rows, const double *t, uint64_t seed, uint64_t first, double *x)
{
    size_t d = s->spec.dim;
    uint64_t stream = UINT64_C(1) << 63 | STREAM_DRAW;
    for (size_t r = 0; r < rows; r++) {
        s->flow.clock[r] = hl_sde_clock((t[r] - s->t_first) / hl_sde_time_unit(s));
        for (size_t i = 0; i < d; i++)
            x[r * d + i] = hl_random_normal(seed, stream, (first + r) * (d + 1) + i);
    }
    if (!hl_sde_flow_draw(&s->flow, rows, x))
        return hl_fail(s->ctx, HL_ERR_NO_SOLUTION, "hl_sde_sample: the flow could not be inverted");
    for (size_t k = 0; k < rows * d; k++)
        x[k] = s->mean[k % d] + s->deviation[k % d] * x[k];
    return HL_OK;
}

/* Row r of the chunk from its mixture. */
static void draw_row(hl_sde *s, size_t r, uint64_t seed, uint64_t number, double *x)
{
    size_t d = s->spec.dim, m = s->spec.components, wide = m * (s->mixture.diagonal ? d : d * d);
    uint64_t stream = UINT64_C(1) << 63 | STREAM_DRAW;
    for (size_t i = 0; i < d; i++)
        x[i] = hl_random_normal(seed, stream, number * (d + 1) + i);
    hl_mixture_draw(&s->mixture, s->out[0] + r * m, s->out[1] + r * m * d, s->out[2] + r * wide,
                    hl_random_uniform(seed, stream, number * (d + 1) + d), x);
    for (size_t i = 0; i < d; i++)
        x[i] = s->mean[i] + s->deviation[i] * x[i];
}

hl_status hl_sde_sample(hl_sde *s, size_t rows, const double *t, uint64_t seed, uint64_t first, double *x)
{
    if (!s)
        return HL_ERR_INVALID;
    if (rows && (!t || !x))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_sample: t or x is NULL");
    size_t d = s->spec.dim, count;
    for (size_t at = 0; at < rows; at += count) {
        count = rows - at < HL_SDE_ROWS ? rows - at : HL_SDE_ROWS;
        if (s->flow.count) {
            hl_status status = draw_flow(s, count, t + at, seed, first + at, x + at * d);
            if (status != HL_OK)
                return status;
            continue;
        }
        load(s, count, t + at, NULL);
        size_t m = s->spec.components, wide = m * (s->mixture.diagonal ? d : d * d);
        run(s, s->mixing, count, 3, (const size_t[]){ m, m * d, wide });
        for (size_t r = 0; r < count; r++)
            draw_row(s, r, seed, first + at + r, x + (at + r) * d);
    }
    return HL_OK;
}

static int coefficients(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    return hl_sde_eval(user, at->count, at->t, at->y, &(hl_sde_values){ .f = f, .g = g, .dg = dg }) != HL_OK;
}

hl_status hl_sde_system(hl_sde *s, hl_noise_system *system)
{
    if (!s || !system)
        return HL_ERR_INVALID;
    *system = (hl_noise_system){ .n = s->spec.dim, .coefficients = coefficients, .slope = 1, .user = s };
    if (hl_sde_simple_correlated(s->simple))
        system->factor = s->simple->factor;
    return HL_OK;
}
