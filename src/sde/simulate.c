/* simulate.c - rows along Brownian paths, a chunk of rows at a time, all in step. */
#include <math.h>
#include <string.h>

#include "sde/sde.h"

enum { CHUNK = 256, MOST_LEVEL = 20, MOST_DEPTH = HL_BROWNIAN_LEVELS };

struct hl_simulator {
    hl_context *ctx;
    hl_noise_system system;
    const hl_stepper *method;
    uint64_t seed;
    int level;
    bool escapes;
    size_t index[CHUNK];
    double time[CHUNK];
    hl_span *stack; /* [CHUNK * n][MOST_DEPTH + 1] */
    double *dw, *dz, *scratch;
};

static hl_status check(hl_context *ctx, const hl_noise_system *system, const hl_simulator_options *o,
                       const hl_stepper *m)
{
    if (system->n < 1 || system->n >= 1 << 20 || !system->coefficients)
        return hl_fail(ctx, HL_ERR_INVALID,
                       "hl_simulator_create: a system needs coefficients and 1 to 2^20 - 1 values");
    if (!m)
        return hl_fail_unknown(ctx, "method", o->method, hl_stepper_names);
    if (o->level < 0 || o->level > MOST_LEVEL)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_simulator_create: level %d is not in 0..%d", o->level, MOST_LEVEL);
    if (system->factor && strcmp(m->name, "euler") != 0 && strcmp(m->name, "sra") != 0)
        return hl_fail(ctx, HL_ERR_UNSUPPORTED,
                       "method %s needs independent noise; for correlated noise use euler, or sra if the diffusion "
                       "depends on time only",
                       m->name);
    if (!system->slope && (m->slope || m->stratonovich != (system->stratonovich != 0)))
        return hl_fail(ctx, HL_ERR_INVALID, "method %s needs the slope dg of the diffusion for an equation of %s type",
                       m->name, system->stratonovich ? "Stratonovich" : "Ito");
    return HL_OK;
}

hl_status hl_simulator_create(hl_context *ctx, const hl_noise_system *system, const hl_simulator_options *options,
                              hl_simulator **out)
{
    static const hl_simulator_options defaults;
    const hl_simulator_options *o = options ? options : &defaults;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!system || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_simulator_create: the system or the result is NULL");
    *out = NULL;
    const hl_stepper *m = hl_stepper_find(o->method || !system->factor ? o->method : "euler");
    hl_status status = check(ctx, system, o, m);
    if (status != HL_OK)
        return status;
    hl_simulator *s = hl_calloc(ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    s->ctx = ctx;
    s->system = *system;
    s->method = m;
    s->seed = o->seed;
    s->level = o->level;
    s->escapes = o->escapes != 0;
    size_t size = hl_size_mul(CHUNK, system->n);
    s->stack = hl_calloc(ctx, size, (MOST_DEPTH + 1) * sizeof *s->stack);
    s->dw = hl_calloc(ctx, size, sizeof *s->dw);
    s->dz = hl_calloc(ctx, size, sizeof *s->dz);
    s->scratch = hl_calloc(ctx, hl_size_mul(size, HL_STEPPER_SCRATCH + 1), sizeof *s->scratch);
    if (!s->stack || !s->dw || !s->dz || !s->scratch) {
        hl_simulator_free(s);
        return HL_ERR_NOMEM;
    }
    *out = s;
    return HL_OK;
}

void hl_simulator_free(hl_simulator *s)
{
    if (!s)
        return;
    hl_free(s->ctx, s->stack);
    hl_free(s->ctx, s->dw);
    hl_free(s->ctx, s->dz);
    hl_free(s->ctx, s->scratch);
    hl_free(s->ctx, s);
}

/* From the last on, as C is lower triangular. */
void hl_noise_mix(size_t n, const double *factor, double *v)
{
    for (size_t i = n; i-- > 0;) {
        double sum = 0;
        for (size_t j = 0; j <= i; j++)
            sum += factor[i * n + j] * v[j];
        v[i] = sum;
    }
}

/* The paths' increments over step `index` of `depth`. */
static void draw(hl_simulator *s, const hl_brownian *b, size_t rows, uint64_t first_path, int depth, uint64_t index)
{
    size_t n = s->system.n;
    double h = ldexp(b->span, -depth);
    for (size_t k = 0; k < rows * n; k++) {
        hl_span *stack = s->stack + k * (MOST_DEPTH + 1);
        hl_brownian_walk(b, first_path + k / n, k % n, depth, index, stack);
        s->dw[k] = stack[depth].dw;
        s->dz[k] = stack[depth].u + 0.5 * h * stack[depth].dw;
    }
    for (size_t r = 0; r < rows && s->system.factor; r++) {
        hl_noise_mix(n, s->system.factor, s->dw + r * n);
        hl_noise_mix(n, s->system.factor, s->dz + r * n);
    }
}

static hl_status check_finite(const hl_simulator *s, size_t first, size_t rows, double *y, const double *t)
{
    size_t n = s->system.n;
    for (size_t k = 0; k < rows * n; k++)
        if (!isfinite(y[k]) && s->escapes)
            for (size_t i = 0; i < n; i++)
                y[k / n * n + i] = NAN;
        else if (!isfinite(y[k]))
            return hl_fail_at(s->ctx, HL_ERR_NOT_FINITE, hl_at(first + k / n, k % n),
                              "not finite at time %g; use smaller steps", t[k / n]);
    return HL_OK;
}

/* Rows first.. of the call; y, t and saved are those of the chunk. */
static hl_status run_chunk(hl_simulator *s, size_t first, size_t rows, uint64_t first_path, double *t, double interval,
                           size_t intervals, double *y, double *saved)
{
    size_t n = s->system.n, steps = (size_t)1 << s->level;
    int above = 0;
    while ((size_t)1 << above < intervals)
        above++;
    hl_brownian b = { s->seed, ldexp(interval, above) };
    hl_stride stride = { &s->system, rows, s->index, s->time, ldexp(interval, -s->level), y, s->dw, s->dz, s->scratch };
    hl_status status = HL_OK;
    for (size_t r = 0; r < rows; r++)
        s->index[r] = first + r;
    for (size_t i = 0; i <= intervals && status == HL_OK; i++) {
        for (size_t r = 0; saved && r < rows; r++)
            memcpy(saved + (r * (intervals + 1) + i) * n, y + r * n, n * sizeof *y);
        for (size_t k = 0; i < intervals && k < steps && status == HL_OK; k++) {
            for (size_t r = 0; r < rows; r++) /* not added up, so that nothing adds up */
                s->time[r] = t[r] + interval * (double)i + stride.h * (double)k;
            draw(s, &b, rows, first_path, above + s->level, (uint64_t)i * steps + k);
            bool stepped = s->method->step(s->method, &stride) == 0; /* coefficients that are networks stop, too */
            status = hl_check_stop(s->ctx);
            if (!stepped && status == HL_OK)
                status = hl_fail(s->ctx, HL_ERR_CALLBACK, "the callback of the coefficients stopped the run");
        }
        if (status == HL_OK)
            status = check_finite(s, first, rows, y, s->time);
    }
    for (size_t r = 0; r < rows; r++)
        t[r] += interval * (double)intervals;
    return status;
}

hl_status hl_simulator_run(hl_simulator *s, size_t rows, uint64_t first_path, double *t, double interval,
                           size_t intervals, double *y, double *saved)
{
    if (!s)
        return HL_ERR_INVALID;
    if (rows && (!t || !y))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_simulator_run: t or y is NULL");
    if (!(interval > 0) || !isfinite(interval) || intervals > (size_t)1 << (MOST_DEPTH - MOST_LEVEL))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_simulator_run: %zu intervals of %g; at most %zu of positive length",
                       intervals, interval, (size_t)1 << (MOST_DEPTH - MOST_LEVEL));
    size_t n = s->system.n;
    hl_status status = HL_OK;
    for (size_t first = 0; first < rows && status == HL_OK; first += CHUNK) {
        size_t count = rows - first < CHUNK ? rows - first : CHUNK;
        status = run_chunk(s, first, count, first_path + first, t + first, interval, intervals, y + first * n,
                           saved ? saved + first * (intervals + 1) * n : NULL);
    }
    return status;
}

hl_status hl_simulator_orders(const char *method, double *strong, double *weak)
{
    const hl_stepper *m = hl_stepper_find(method);
    if (!m)
        return HL_ERR_INVALID;
    if (strong)
        *strong = m->strong;
    if (weak)
        *weak = m->weak;
    return HL_OK;
}
