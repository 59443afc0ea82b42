/* bridge.c - paths between given states: guided proposals with importance weights, one gap between states at a time.
 *
 * Beside the model's Euler chain x_i+1 = x_i + h f + sqrt(h) g C xi stands a linear one: f is linearised, and the noise held fixed,
 * along the line between the two states. Its probability of reaching the end y from x at step i is Gaussian,
 *   psi_i(x) = N(y; F_i x + c_i, S_i),   F_i = F_i+1 (1 + h B_i),  c_i = F_i+1 h b_i + c_i+1,  S_i = F_i+1 h A_i F_i+1' + S_i+1.
 * A proposal is drawn from the model's step times psi_i+1, which is Gaussian as well: with m = x_i + h f, V = h A(x_i), P = F V F' + S,
 * K = V F' P^-1 its mean is m + K (y - F m - c) and its covariance V - K F V. The weight of a path is the product over the steps of
 * N(y; F m + c, P) / psi_i(x_i). It makes the proposals paths of the model's own chain, given its end; where the model is linear with
 * constant noise all weights are equal. Paths are drawn anew by their weights when few of them count. Far from the line its slope may
 * mislead, so a quarter of the candidates tries three chains: with B and b, with B = 0, and with both 0; that of the largest effective share is
 * taken. */
#include <math.h>
#include <string.h>

#include "hollow/sde_bridge.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { STREAM_STEP = 50, STREAM_CHOOSE, STEPS = 50, FINE = 128, MOST_LEVEL = 16, LEAST_CANDIDATES = 400, FACTOR = 4 };
static const double tilt = 1e-4;      /* of a column's deviation: differences of f */
static const double good_share = 0.9; /* no other chain is tried */

typedef struct bridge {
    hl_sde *sde;
    hl_bridge_options o;
    size_t dim, paths, count, steps, fine;    /* count: candidates; fine: Euler steps of a gap */
    int chain_kind;                           /* 0: with slope and drift; 1: without slope; 2: without both */
    double h, t;                              /* a step; the gap's begin, in the user's time */
    const double *begin, *end;                /* standardised; the user's states are these in the model's units */
    double *chain;                            /* [fine + 1][2 d d + d]: F, S, c */
    double *x, *f, *g, *time, *saved, *spare; /* of the candidates: [count][dim], ..; [count][steps + 1][dim] twice */
    double *weight;                           /* [count] logarithms */
    size_t *from;                             /* [count] */
    double *ends, *small;                     /* [2][dim]; matrices */
} bridge;

static double *chain_at(const bridge *b, size_t i)
{
    return b->chain + i * (2 * b->dim * b->dim + b->dim);
}

/* f and g, standardised, at `count` standardised states x, all at one time. x is left as it is. */
static hl_status evaluate(const bridge *b, size_t count, double t, double *x, double *f, double *g)
{
    const hl_sde *s = b->sde;
    size_t d = b->dim;
    for (size_t k = 0; k < count; k++)
        b->time[k] = t;
    for (size_t k = 0; k < count * d; k++)
        x[k] = s->mean[k % d] + s->deviation[k % d] * x[k];
    hl_status status = hl_sde_eval(b->sde, count, b->time, x, &(hl_sde_values){ .f = f, .g = g });
    for (size_t k = 0; k < count * d; k++) {
        x[k] = (x[k] - s->mean[k % d]) / s->deviation[k % d];
        f[k] /= s->deviation[k % d];
        g[k] = fabs(g[k]) / s->deviation[k % d];
    }
    return status;
}

/* h diag(g) C C' diag(g) to v. */
static void noise_of(const bridge *b, const double *g, double *v)
{
    size_t d = b->dim;
    const hl_sde_simple *s = b->sde->simple;
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) {
            double c = i == j;
            if (hl_sde_simple_correlated(s))
                c = hl_dot((i < j ? i : j) + 1, s->factor + i * d, s->factor + j * d);
            v[i * d + j] = b->h * g[i] * g[j] * c;
        }
}

/* to = a b, or a b' (d x d). */
static void multiply(size_t d, const double *a, const double *b, bool transposed, double *to)
{
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++) {
            double sum = 0;
            for (size_t k = 0; k < d; k++)
                sum += a[i * d + k] * (transposed ? b[j * d + k] : b[k * d + j]);
            to[i * d + j] = sum;
        }
}

/* ---- the linear chain ---- */

/* One step back, from i + 1 to i. */
static hl_status step_back(const bridge *b, size_t i)
{
    size_t d = b->dim;
    double *next = chain_at(b, i + 1), *own = chain_at(b, i), share = (double)i / (double)b->fine;
    double *state = b->x, *f = b->f, *g = b->g, *matrix = b->small, *noise = matrix + d * d, *product = noise + d * d;
    for (size_t k = 0; k <= d; k++)
        for (size_t j = 0; j < d; j++)
            state[k * d + j] = b->begin[j] + share * (b->end[j] - b->begin[j]) + (k == j + 1 ? tilt : 0);
    hl_status status = evaluate(b, d + 1, b->t + b->h * (double)i, state, f, g);
    if (status != HL_OK)
        return status;
    for (size_t a = 0; a < d; a++)
        for (size_t j = 0; j < d; j++)
            matrix[a * d + j] = (a == j) + (b->chain_kind ? 0 : b->h * (f[(j + 1) * d + a] - f[a]) / tilt);
    noise_of(b, g, noise);
    multiply(d, next, matrix, false, own);
    multiply(d, next, noise, false, product);
    multiply(d, product, next, true, own + d * d);
    hl_axpy(d * d, 1, next + d * d, own + d * d);
    for (size_t a = 0; a < d; a++) { /* x + h b = m - (1 + h B) x */
        double shift = 0;
        for (size_t j = 0; j < d; j++) {
            double rest = state[j] + b->h * f[j] - hl_dot(d, matrix + j * d, state);
            rest = b->chain_kind == 2 ? 0 : rest;
            shift += next[a * d + j] * rest;
        }
        own[2 * d * d + a] = next[2 * d * d + a] + shift;
    }
    return HL_OK;
}

static hl_status make_chain(const bridge *b)
{
    size_t d = b->dim;
    double *last = chain_at(b, b->fine);
    memset(last, 0, (2 * d * d + d) * sizeof *last);
    for (size_t i = 0; i < d; i++)
        last[i * d + i] = 1;
    hl_status status = HL_OK;
    for (size_t i = b->fine; i-- > 0 && status == HL_OK;)
        status = step_back(b, i);
    return status;
}

/* log N(e; 0, P) without constants; P becomes its factor and e the solution of L z = e. */
static double log_normal(size_t d, double *p, double *e)
{
    double sum = 0;
    if (!(hl_cholesky(d, p, 0) > 0))
        return -INFINITY;
    hl_solve_lower(d, p, d, e);
    for (size_t i = 0; i < d; i++)
        sum -= 0.5 * e[i] * e[i] + log(p[i * d + i]);
    return sum;
}

/* y - F x - c at step i. */
static void miss(const bridge *b, size_t i, const double *x, double *e)
{
    size_t d = b->dim;
    const double *chain = chain_at(b, i);
    for (size_t a = 0; a < d; a++)
        e[a] = b->end[a] - hl_dot(d, chain + a * d, x) - chain[2 * d * d + a];
}

/* ---- a step of a candidate ---- */

/* Candidate r from step i to i + 1. */
static void advance(const bridge *b, size_t i, size_t r, uint64_t number)
{
    size_t d = b->dim, n = d * d;
    double *x = b->x + r * d, *f = b->f + r * d;
    const double *chain = chain_at(b, i + 1);
    double *v = b->small, *vf = v + n, *p = vf + n, *gain = p + n, *e = gain + n, *z = e + d;
    memcpy(p, chain_at(b, i) + n, n * sizeof *p); /* psi_i(x_i) */
    miss(b, i, x, e);
    double before = i ? log_normal(d, p, e) : 0; /* the same for all at the begin */
    hl_axpy(d, b->h, f, x);                      /* m */
    noise_of(b, b->g + r * d, v);
    multiply(d, v, chain, true, vf);
    multiply(d, chain, vf, false, p);
    hl_axpy(n, 1, chain + n, p);
    miss(b, i + 1, x, e);
    b->weight[r] += log_normal(d, p, e) - before;
    if (!isfinite(b->weight[r])) {
        b->weight[r] = -INFINITY;
        return;
    }
    memcpy(gain, vf, n * sizeof *gain); /* rows of V F' L'^-1 */
    for (size_t a = 0; a < d; a++)
        hl_solve_lower(d, p, d, gain + a * d);
    for (size_t a = 0; a < d; a++) {
        x[a] += hl_dot(d, gain + a * d, e);
        for (size_t j = 0; j < d; j++)
            v[a * d + j] -= hl_dot(d, gain + a * d, gain + j * d);
        z[a] = hl_random_normal(b->o.seed, STREAM_STEP, number + a);
    }
    if (i + 1 == b->fine) {
        memcpy(x, b->end, d * sizeof *x);
        return;
    }
    hl_cholesky(d, v, 1e-300);
    hl_multiply_lower(d, v, d, z);
    hl_axpy(d, 1, z, x);
}

/* ---- candidates by their weights ---- */

/* Weights to shares; the effective share of the candidates, 0 if none counts. */
static double normalise(const bridge *b)
{
    double most = -INFINITY, sum = 0, square = 0;
    for (size_t r = 0; r < b->count; r++)
        most = fmax(most, b->weight[r]);
    if (!(most > -INFINITY))
        return 0;
    for (size_t r = 0; r < b->count; r++)
        sum += exp(b->weight[r] - most);
    for (size_t r = 0; r < b->count; r++) {
        b->weight[r] -= most + log(sum);
        square += exp(2 * b->weight[r]);
    }
    return 1 / (square * (double)b->count);
}

/* `wanted` candidates in proportion to their shares, systematically. */
static void choose(const bridge *b, size_t wanted, uint64_t number)
{
    double at = hl_random_uniform(b->o.seed, STREAM_CHOOSE, number) / (double)wanted, sum = 0;
    size_t r = 0;
    for (size_t k = 0; k < wanted; k++, at += 1 / (double)wanted) {
        while (r + 1 < b->count && sum + exp(b->weight[r]) < at)
            sum += exp(b->weight[r++]);
        b->from[k] = r;
    }
}

/* As many candidates with equal weights, their paths included. */
static void resample(bridge *b, uint64_t number)
{
    size_t d = b->dim, size = (b->steps + 1) * d;
    choose(b, b->count, number);
    for (size_t k = 0; k < b->count; k++) {
        memcpy(b->spare + k * size, b->saved + b->from[k] * size, size * sizeof *b->spare);
        memcpy(b->f + k * d, b->x + b->from[k] * d, d * sizeof *b->f);
        b->weight[k] = 0;
    }
    double *swap = b->saved;
    b->saved = b->spare;
    b->spare = swap;
    memcpy(b->x, b->f, b->count * d * sizeof *b->x);
}

static hl_status no_path(const bridge *b, size_t gap)
{
    return hl_fail(b->sde->ctx, HL_ERR_NO_SOLUTION,
                   "hl_sde_bridge: no path was found between points %zu and %zu; increase candidates or level", gap + 1,
                   gap + 2);
}

static void save(const bridge *b, size_t step)
{
    for (size_t r = 0; r < b->count; r++)
        memcpy(b->saved + (r * (b->steps + 1) + step) * b->dim, b->x + r * b->dim, b->dim * sizeof *b->x);
}

/* All candidates of gap `gap` to b->saved and their shares to b->weight. */
static hl_status run_gap(bridge *b, size_t gap, double *effective)
{
    size_t d = b->dim, each = b->fine / b->steps;
    hl_status status = make_chain(b);
    *effective = 1;
    for (size_t r = 0; r < b->count; r++) {
        memcpy(b->x + r * d, b->begin, d * sizeof *b->x);
        b->weight[r] = 0;
    }
    save(b, 0);
    for (size_t i = 0; i < b->fine && status == HL_OK; i++) {
        status = evaluate(b, b->count, b->t + b->h * (double)i, b->x, b->f, b->g);
        for (size_t r = 0; r < b->count && status == HL_OK; r++)
            advance(b, i, r, ((gap * b->fine + i) * b->count + r) * d);
        if ((i + 1) % each)
            continue;
        save(b, (i + 1) / each);
        double share = normalise(b);
        if (status == HL_OK && share == 0)
            return no_path(b, gap);
        if (share < 0.5 && i + 1 < b->fine) {
            resample(b, gap * b->steps + (i + 1) / each);
            *effective *= share;
        } else if (i + 1 == b->fine)
            *effective *= share;
        if (status == HL_OK)
            status = hl_check_stop(b->sde->ctx);
    }
    return status;
}

/* Which chain guides best? A gap without paths is found out by the run itself. */
static hl_status choose_chain(bridge *b, size_t gap)
{
    size_t all = b->count;
    double best = -1, share = 0;
    int taken = 0;
    hl_status status = HL_OK;
    b->count = all / 4 > 1 ? all / 4 : all;
    for (b->chain_kind = 0; b->chain_kind < 3 && status == HL_OK && best < good_share; b->chain_kind++) {
        status = run_gap(b, gap, &share);
        if (status == HL_ERR_NO_SOLUTION)
            status = HL_OK;
        else if (share > best) {
            best = share;
            taken = b->chain_kind;
        }
    }
    b->chain_kind = taken;
    b->count = all;
    return status;
}

/* ---- the call ---- */

static hl_status check(const hl_sde *s, size_t points, const double *t, const double *x)
{
    for (size_t k = 0; k < points; k++) {
        if (!isfinite(t[k]) || (k && !(t[k] > t[k - 1])))
            return hl_fail_at(s->ctx, HL_ERR_INVALID, hl_at(k, HL_NOWHERE),
                              "hl_sde_bridge: time %.10g is not later than the time before", t[k]);
        for (size_t i = 0; i < s->spec.dim; i++)
            if (!isfinite(x[k * s->spec.dim + i]))
                return hl_fail_at(s->ctx, HL_ERR_NOT_FINITE, hl_at(k, i), "not finite");
    }
    return HL_OK;
}

/* Is there noise in all columns at the end of the gap? */
static hl_status check_noise(const bridge *b)
{
    memcpy(b->x, b->end, b->dim * sizeof *b->x);
    hl_status status = evaluate(b, 1, b->t + b->h * (double)b->fine, b->x, b->f, b->g);
    for (size_t i = 0; i < b->dim && status == HL_OK; i++)
        if (!(b->g[i] > 1e-9))
            return hl_fail(b->sde->ctx, HL_ERR_INVALID,
                           "hl_sde_bridge: column '%s' has no noise; bridges need noise in all columns",
                           hl_sde_name(b->sde, i));
    return status;
}

static hl_status make_arrays(bridge *b)
{
    hl_context *ctx = b->sde->ctx;
    size_t d = b->dim, room = b->count > d + 1 ? b->count : d + 1, size = hl_size_mul(b->count, (b->steps + 1) * d);
    b->chain = hl_calloc(ctx, hl_size_mul(b->fine + 1, 2 * d * d + d), sizeof *b->chain);
    b->x = hl_calloc(ctx, hl_size_mul(room, 3 * d + 2), sizeof *b->x);
    b->saved = hl_calloc(ctx, size, sizeof *b->saved);
    b->spare = hl_calloc(ctx, size, sizeof *b->spare);
    b->from = hl_calloc(ctx, room, sizeof *b->from);
    b->ends = hl_calloc(ctx, 2 * d + 4 * d * d + 2 * d, sizeof *b->ends);
    if (!b->chain || !b->x || !b->saved || !b->spare || !b->from || !b->ends)
        return HL_ERR_NOMEM;
    b->f = b->x + room * d;
    b->g = b->f + room * d;
    b->time = b->g + room * d;
    b->weight = b->time + room;
    b->small = b->ends + 2 * d;
    b->begin = b->ends;
    b->end = b->ends + d;
    return HL_OK;
}

/* The chosen paths of gap k, in the model's units, to out. */
static void put(bridge *b, size_t k, size_t gaps, const double *x, double *out)
{
    size_t d = b->dim, wide = (gaps * b->steps + 1) * d, size = (b->steps + 1) * d;
    choose(b, b->paths, (gaps + k) * b->steps);
    for (size_t p = 0; p < b->paths; p++) {
        double *to = out + p * wide + k * b->steps * d;
        for (size_t i = 0; i < size; i++)
            to[i] = b->sde->mean[i % d] + b->sde->deviation[i % d] * b->saved[b->from[p] * size + i];
        memcpy(to, x + k * d, d * sizeof *to);
        memcpy(to + size - d, x + (k + 1) * d, d * sizeof *to);
    }
}

static hl_status run(bridge *b, size_t points, const double *t, const double *x, double *out, double *effective)
{
    size_t d = b->dim;
    hl_status status = make_arrays(b);
    for (size_t k = 0; k + 1 < points && status == HL_OK; k++) {
        double share;
        b->t = t[k];
        b->h = (t[k + 1] - t[k]) / (double)b->fine;
        for (size_t i = 0; i < 2 * d; i++)
            b->ends[i] = (x[k * d + i] - b->sde->mean[i % d]) / b->sde->deviation[i % d];
        status = check_noise(b);
        if (status == HL_OK)
            status = choose_chain(b, k);
        if (status == HL_OK)
            status = run_gap(b, k, &share);
        if (status == HL_OK)
            put(b, k, points - 1, x, out);
        if (status == HL_OK && effective)
            effective[k] = share;
    }
    return status;
}

hl_status hl_sde_bridge(hl_sde *sde, size_t points, const double *t, const double *x, size_t paths,
                        const hl_bridge_options *options, double *out, double *effective)
{
    static const hl_bridge_options defaults;
    if (!sde)
        return HL_ERR_INVALID;
    if (points < 2 || !t || !x || !paths || !out)
        return hl_fail(sde->ctx, HL_ERR_INVALID,
                       "hl_sde_bridge: at least two states, one path and a result are needed");
    hl_status status = check(sde, points, t, x);
    if (status != HL_OK)
        return status;
    bridge b = { .sde = sde, .o = options ? *options : defaults, .dim = sde->spec.dim, .paths = paths };
    b.steps = b.o.steps ? b.o.steps : STEPS;
    int level = b.o.level > 0 ? b.o.level : 0;
    while (!b.o.level && b.steps << level < FINE)
        level++;
    if (level > MOST_LEVEL)
        return hl_fail(sde->ctx, HL_ERR_INVALID, "hl_sde_bridge: level %d is above %d", level, (int)MOST_LEVEL);
    b.fine = b.steps << level;
    b.count = b.o.candidates ? b.o.candidates : FACTOR * paths > LEAST_CANDIDATES ? FACTOR * paths : LEAST_CANDIDATES;
    status = run(&b, points, t, x, out, effective);
    void *const blocks[] = { b.chain, b.x, b.saved, b.spare, b.from, b.ends };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(sde->ctx, blocks[i]);
    return status;
}
