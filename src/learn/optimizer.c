/* optimizer.c - first-order optimisers with their state in double.
 *
 *   adam    m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,        w -= r (m / (1 - b1^k)) / (sqrt(v / (1 - b2^k)) + e)
 *   adamw   the same, and w -= r decay w
 *   adamax  m as above,  u = max(b2 u, |g|),                        w -= r (m / (1 - b1^k)) / (u + e)
 *   sgd     m = b1 m + g,                                           w -= r m
 *
 * The loop is in update.c. Where a mask excludes a weight its gradient is exactly 0, so it stays 0. */
#include <math.h>
#include <string.h>

#include "hollow/learn.h"
#include "learn/update.h"
#include "nn/params.h"

static const char *const methods[] = { "adam", "adamw", "adamax", "sgd", NULL }; /* in the order of the enum */

struct hl_optimizer {
    hl_context *ctx;
    hl_optimizer_options options; /* defaults filled in */
    hl_update_method method;
    hl_params *params;
    bool owns_params;
    size_t size;
    double steps;
    double *state;                         /* one array for the four below */
    double *value, *first, *second, *mean; /* [size]; mean is NULL without an average */
};

enum { HEAD = 1 }; /* of a saved state: the number of steps */

const char *const *hl_optimizer_methods(void)
{
    return methods;
}

/* ---- creation ---- */

static hl_status set_options(hl_optimizer *o, const hl_optimizer_options *given)
{
    const char *name = given->method ? given->method : "adam";
    o->options = *given;
    o->method = (hl_update_method)hl_name_index(methods, name);
    if (!methods[o->method])
        return hl_fail_unknown(o->ctx, "optimiser", name, methods);
    hl_optimizer_options *s = &o->options;
    s->method = methods[o->method];
    s->rate = s->rate > 0 ? s->rate : 1e-3;
    s->beta1 = s->beta1 == 0 ? 0.9 : s->beta1 < 0 ? 0 : s->beta1;
    s->beta2 = s->beta2 > 0 ? s->beta2 : 0.999;
    s->epsilon = s->epsilon > 0 ? s->epsilon : 1e-8;
    bool good = given->rate >= 0 && isfinite(s->rate) && given->epsilon >= 0 && isfinite(s->epsilon) &&
                s->weight_decay >= 0 && isfinite(s->weight_decay) && s->clip >= 0 && isfinite(s->clip);
    if (!good || !(s->beta1 >= 0 && s->beta1 < 1) || !(given->beta2 >= 0 && s->beta2 < 1) ||
        !(s->average >= 0 && s->average < 1))
        return hl_fail(o->ctx, HL_ERR_INVALID,
                       "optimiser: rate, epsilon, weight_decay and clip must be positive, or 0 for the default; beta1, "
                       "beta2 and average must be in 0..1, 1 excluded");
    return HL_OK;
}

static hl_status make_state(hl_optimizer *o)
{
    o->size = hl_params_size(o->params);
    o->state = hl_calloc(o->ctx, o->size, (o->options.average > 0 ? 4 : 3) * sizeof *o->state);
    if (!o->state)
        return HL_ERR_NOMEM;
    o->value = o->state;
    o->first = o->value + o->size;
    o->second = o->first + o->size;
    o->mean = o->options.average > 0 ? o->second + o->size : NULL;
    hl_optimizer_reread(o);
    return HL_OK;
}

hl_status hl_optimizer_create_for(hl_params *params, const hl_optimizer_options *options, hl_optimizer **out)
{
    static const hl_optimizer_options defaults;
    if (!params)
        return HL_ERR_INVALID;
    if (!out)
        return hl_fail(params->ctx, HL_ERR_INVALID, "hl_optimizer_create_for: the result is NULL");
    *out = NULL;
    hl_optimizer *o = hl_calloc(params->ctx, 1, sizeof *o);
    if (!o)
        return HL_ERR_NOMEM;
    o->ctx = params->ctx;
    o->params = params;
    hl_status status = set_options(o, options ? options : &defaults);
    if (status == HL_OK)
        status = make_state(o);
    if (status != HL_OK) {
        hl_optimizer_free(o);
        return status;
    }
    *out = o;
    return HL_OK;
}

hl_status hl_optimizer_create(hl_context *ctx, size_t count, hl_net *const *nets, const hl_optimizer_options *options,
                              hl_optimizer **out)
{
    hl_params *params = NULL;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_optimizer_create: the result is NULL");
    *out = NULL;
    hl_status status = hl_params_from_nets(ctx, count, nets, &params);
    if (status == HL_OK)
        status = hl_optimizer_create_for(params, options, out);
    if (status == HL_OK)
        (*out)->owns_params = true;
    else
        hl_params_free(params);
    return status;
}

void hl_optimizer_free(hl_optimizer *o)
{
    if (!o)
        return;
    if (o->owns_params)
        hl_params_free(o->params);
    hl_free(o->ctx, o->state);
    hl_free(o->ctx, o);
}

size_t hl_optimizer_size(const hl_optimizer *o)
{
    return o ? o->size : 0;
}

/* ---- stepping ---- */

/* What all values of this step share. */
static hl_update step_of(const hl_optimizer *o, double scale, double rate)
{
    const hl_optimizer_options *s = &o->options;
    bool apart = o->method == HL_ADAMW;
    return (hl_update){ .method = o->method,
                        .scale = scale,
                        .step = o->method == HL_SGD ? rate : rate / (1 - pow(s->beta1, o->steps)),
                        .root = 1 / sqrt(1 - pow(s->beta2, o->steps)),
                        .beta1 = s->beta1,
                        .beta2 = s->beta2,
                        .share1 = o->method == HL_SGD ? 1 : 1 - s->beta1,
                        .share2 = 1 - s->beta2,
                        .epsilon = s->epsilon,
                        .penalty = apart ? 0 : s->weight_decay,
                        .shrink = apart ? rate * s->weight_decay : 0,
                        .keep = fmin(s->average, (1 + o->steps) / (10 + o->steps)) }; /* the start is soon forgotten */
}

/* Step all parameters, and write them to the set. */
static void update(hl_optimizer *o, const double *gradient, const hl_update *u)
{
    size_t at = 0;
    for (size_t i = 0; i < o->params->count; at += o->params->param[i++].size) {
        const hl_net_param *p = &o->params->param[i];
        bool narrow = o->params->dtype == HL_F32;
        hl_update_run(u, p->size, gradient + at, o->value + at, o->first + at, o->second + at,
                      o->mean ? o->mean + at : NULL, narrow ? p->values : NULL);
        if (!narrow)
            memcpy(p->values, o->value + at, p->size * sizeof *o->value);
    }
}

hl_status hl_optimizer_step(hl_optimizer *o, const double *gradient, double factor, double *norm)
{
    if (!o)
        return HL_ERR_INVALID;
    if (!gradient)
        return hl_fail(o->ctx, HL_ERR_INVALID, "hl_optimizer_step: the gradient is NULL");
    double length = sqrt(hl_update_square(o->size, gradient));
    if (norm)
        *norm = length;
    if (!isfinite(length))
        return hl_fail(o->ctx, HL_ERR_NOT_FINITE, "the gradient is not finite; no step was taken");
    o->steps++;
    bool clipped = o->options.clip > 0 && length > o->options.clip;
    hl_update u = step_of(o, clipped ? o->options.clip / length : 1, factor * o->options.rate);
    update(o, gradient, &u);
    return HL_OK;
}

void hl_optimizer_use_average(hl_optimizer *o, int on)
{
    if (o && o->mean)
        hl_params_write(o->params, on ? o->mean : o->value);
}

void hl_optimizer_restart(hl_optimizer *o)
{
    if (!o)
        return;
    o->steps = 0;
    memset(o->first, 0, o->size * sizeof *o->first);
    memset(o->second, 0, o->size * sizeof *o->second);
}

void hl_optimizer_reread(hl_optimizer *o)
{
    if (!o)
        return;
    hl_params_read(o->params, o->value);
    if (o->mean)
        memcpy(o->mean, o->value, o->size * sizeof *o->mean);
}

/* ---- state ---- */

static size_t arrays_size(const hl_optimizer *o)
{
    return o->size * (o->mean ? 4 : 3);
}

size_t hl_optimizer_state_size(const hl_optimizer *o)
{
    return o ? HEAD + arrays_size(o) : 0;
}

void hl_optimizer_get_state(const hl_optimizer *o, double *state)
{
    if (!o || !state)
        return;
    state[0] = o->steps;
    memcpy(state + HEAD, o->state, arrays_size(o) * sizeof *state);
}

hl_status hl_optimizer_set_state(hl_optimizer *o, const double *state)
{
    if (!o)
        return HL_ERR_INVALID;
    if (!state || !(state[0] >= 0))
        return hl_fail(o->ctx, HL_ERR_INVALID, "hl_optimizer_set_state: not a saved optimiser state");
    for (size_t i = 0; i < HEAD + arrays_size(o); i++)
        if (!isfinite(state[i]))
            return hl_fail(o->ctx, HL_ERR_NOT_FINITE, "the state of the optimiser is not finite");
    o->steps = state[0];
    memcpy(o->state, state + HEAD, arrays_size(o) * sizeof *state);
    hl_params_write(o->params, o->value);
    return HL_OK;
}

double hl_schedule_cosine(size_t i, size_t n, size_t warmup, double last)
{
    const double pi = 3.14159265358979323846;
    if (i < warmup)
        return (double)(i + 1) / (double)warmup;
    double done = n > warmup ? (double)(i - warmup) / (double)(n - warmup) : 1;
    return last + (1 - last) * 0.5 * (1 + cos(pi * (done < 1 ? done : 1)));
}
