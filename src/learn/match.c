/* match.c - flow matching and score matching.
 *
 * Both take a row x to a noise level t, t = 0 being all noise z ~ N(0, I) and t = 1 none, and minimise a mean over t.
 *
 * Flow matching: x_t = (1 - t) z + t x, and f(t, x_t) is fitted to x - z.
 *
 * Score matching: x_t = cos(a) x + sin(a) z with a = pi (1 - t) / 2, a variance-preserving diffusion of rate b = pi tan(a). Its
 * probability flow has the velocity f = b (x + s) / 2, s being the score of x_t, so that a network f gives the score s = 2 f / b - x.
 * Hyvarinen's loss |s|^2 / 2 + sum_i D s_i, times b^2 / 2, is |f|^2 + b (div f - x . f) without constants: nothing but f and
 * its exact divergence at x_t. It is divided by 1 + b, which keeps it bounded at both ends. */
#include "learn/match.h"

#include <math.h>
#include <string.h>

#include "base/base.h"
#include "learn/assignment.h"

enum { STREAM_NOISE = 2, STREAM_TIME = 3 }; /* of random numbers */
enum {
    GROUP = 128
}; /* rows that are paired with each other: the cost of all pairs of a batch would grow as its cube */

struct hl_matcher {
    hl_context *ctx;
    hl_matching how;
    hl_net *net;
    hl_operator *op; /* f, for scores also its divergence, and gradients */
    hl_dtype dtype;
    size_t dim, context, size; /* size: of the gradient */
    double *z, *target;        /* [batch][dim] */
    double *cost, *work;       /* for the assignment */
    size_t *places, *pair;
    double *share;           /* scores: b / (1 + b) of each row */
    double *t, *x, *f, *div; /* a batch */
    const double *c;         /* its context: borrowed until the next */
    void **piece;            /* where the operator puts each parameter's gradient: */
    char *values;            /* [size] in the network's precision */
};

/* ---- creation ---- */

static hl_status make_arrays(hl_matcher *m)
{
    hl_context *ctx = m->ctx;
    size_t batch = m->how.batch, values = hl_size_mul(batch, m->dim), element = hl_dtype_size(m->dtype);
    size_t params = hl_net_param_count(m->net);
    m->z = hl_calloc(ctx, values, sizeof *m->z);
    m->target = hl_calloc(ctx, values, sizeof *m->target);
    m->cost = hl_calloc(ctx, m->how.transport ? (size_t)GROUP * GROUP : 1, sizeof *m->cost);
    m->work = hl_calloc(ctx, batch + 1, 3 * sizeof *m->work);
    m->places = hl_calloc(ctx, batch + 1, 3 * sizeof *m->places);
    m->pair = hl_calloc(ctx, batch, sizeof *m->pair);
    m->share = hl_calloc(ctx, batch, sizeof *m->share);
    m->t = hl_calloc(ctx, batch, sizeof *m->t);
    m->x = hl_calloc(ctx, values, sizeof *m->x);
    m->f = hl_calloc(ctx, values, sizeof *m->f);
    m->div = hl_calloc(ctx, batch, sizeof *m->div);
    m->piece = hl_calloc(ctx, params + 1, sizeof *m->piece);
    m->values = hl_calloc(ctx, m->size, element);
    if (!m->z || !m->target || !m->cost || !m->work || !m->places || !m->pair || !m->share || !m->t || !m->x || !m->f ||
        !m->div || !m->piece || !m->values)
        return HL_ERR_NOMEM;
    char *at = m->values;
    for (size_t p = 0; p < params; p++) {
        hl_net_param q;
        hl_net_param_get(m->net, p, &q);
        m->piece[p] = at;
        at += q.size * element;
    }
    return HL_OK;
}

hl_status hl_matcher_create(hl_flow *flow, const hl_matching *how, hl_matcher **out)
{
    hl_matcher *m = hl_calloc(flow->ctx, 1, sizeof *m);
    if (!m)
        return HL_ERR_NOMEM;
    m->ctx = flow->ctx;
    m->how = *how;
    m->net = hl_flow_net(flow, 0);
    m->dtype = hl_net_describe(m->net).dtype;
    m->dim = flow->dim;
    m->context = flow->context;
    for (size_t p = 0; p < hl_net_param_count(m->net); p++) {
        hl_net_param q;
        hl_net_param_get(m->net, p, &q);
        m->size += q.size;
    }
    hl_status status = make_arrays(m);
    if (status == HL_OK)
        status = hl_operator_create(m->net, &(hl_operator_options){ .order = how->score ? 1 : -1 }, &m->op);
    if (status != HL_OK) {
        hl_matcher_free(m);
        return status;
    }
    *out = m;
    return HL_OK;
}

void hl_matcher_free(hl_matcher *m)
{
    if (!m)
        return;
    hl_operator_free(m->op);
    void *const blocks[] = { m->z, m->target, m->cost, m->work, m->places, m->pair,  m->share,
                             m->t, m->x,      m->f,    m->div,  m->piece,  m->values };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(m->ctx, blocks[i]);
    hl_free(m->ctx, m);
}

/* ---- noise levels ---- */

/* Pair `count` rows with as much noise so that the squares of the distances have the least sum. */
static void pair_group(hl_matcher *m, size_t first, size_t count, const double *x)
{
    size_t dim = m->dim;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            double square = 0;
            for (size_t k = 0; k < dim; k++) {
                double step = x[(first + i) * dim + k] - m->z[(first + j) * dim + k];
                square += step * step;
            }
            m->cost[i * count + j] = square;
        }
    hl_assign(count, m->cost, m->work, m->places, m->pair + first);
    for (size_t i = first; i < first + count; i++)
        m->pair[i] += first;
}

void hl_matcher_rows(size_t batch, size_t *first, size_t *end)
{
    if (*first == *end)
        return;
    *first = *first / GROUP * GROUP;
    *end = (*end + GROUP - 1) / GROUP * GROUP;
    *end = *end < batch ? *end : batch;
}

/* Noise for the rows of the groups that `first` up to `end` are in, and which of it goes with which row. */
static void draw_noise(hl_matcher *m, size_t iteration, size_t first, size_t end, const double *x)
{
    size_t batch = m->how.batch, dim = m->dim;
    for (size_t at = first / GROUP * GROUP; at < end; at += GROUP) {
        size_t count = batch - at < GROUP ? batch - at : GROUP;
        for (size_t i = at * dim; i < (at + count) * dim; i++)
            m->z[i] = hl_random_normal(m->how.seed, STREAM_NOISE, iteration * batch * dim + i);
        for (size_t i = at; i < at + count; i++)
            m->pair[i] = i;
        if (m->how.transport)
            pair_group(m, at, count, x);
    }
}

/* t and x_t go to the buffers; `target` becomes x - z, or for scores x_t. */
void hl_matcher_load(hl_matcher *m, size_t iteration, size_t first, size_t end, const double *x, const double *context)
{
    size_t batch = m->how.batch, dim = m->dim;
    m->c = context;
    draw_noise(m, iteration, first, end, x);
    for (size_t r = first; r < end; r++) {
        /* times are spread evenly over the batch: less noise than with independent ones */
        double u = hl_random_uniform(m->how.seed, STREAM_TIME, iteration * batch + r);
        double t = ((double)r + u) / (double)batch, angle = acos(-1) / 2 * (1 - t), rate = acos(-1) * tan(angle);
        double of_x = m->how.score ? cos(angle) : t, of_z = m->how.score ? sin(angle) : 1 - t;
        const double *noise = m->z + m->pair[r] * dim;
        m->share[r] = rate / (1 + rate);
        m->t[r] = t;
        for (size_t i = r * dim, k = 0; k < dim; i++, k++) {
            m->x[i] = of_x * x[i] + of_z * noise[k];
            m->target[i] = m->how.score ? m->x[i] : x[i] - noise[k];
        }
    }
}

/* ---- losses ---- */

/* The loss; its gradient replaces f. */
static double flow_loss(hl_matcher *m, size_t first, size_t end)
{
    double size = (double)(m->how.batch * m->dim), loss = 0;
    for (size_t i = first * m->dim; i < end * m->dim; i++) {
        double error = m->f[i] - m->target[i];
        loss += error * error / size;
        m->f[i] = 2 * error / size;
    }
    return loss;
}

/* The same; the gradient to the divergence replaces `div`. */
static double score_loss(hl_matcher *m, size_t first, size_t end)
{
    size_t dim = m->dim;
    double size = (double)(m->how.batch * dim), loss = 0;
    for (size_t r = first; r < end; r++) {
        double share = m->share[r] / size;
        loss += share * m->div[r];
        m->div[r] = share;
        for (size_t i = r * dim; i < (r + 1) * dim; i++) {
            double f = m->f[i], rest = 1 / size - share;
            loss += rest * f * f - share * m->target[i] * f;
            m->f[i] = 2 * rest * f - share * m->target[i];
        }
    }
    return loss;
}

hl_status hl_matcher_gradient(hl_matcher *m, size_t first, size_t end, double *loss, double *gradient)
{
    size_t rows = end - first;
    double *f = m->f + first * m->dim, *div = m->how.score ? m->div + first : NULL;
    const double *x = m->x + first * m->dim, *t = m->t + first, *c = m->context ? m->c + first * m->context : NULL;
    hl_operator_eval_rows(m->op, rows, x, t, c, f, div);
    *loss += m->how.score ? score_loss(m, first, end) : flow_loss(m, first, end);
    hl_operator_vjp_rows(m->op, rows, x, t, c, f, div, m->piece);
    hl_add_from_precision(m->dtype, m->size, m->values, gradient);
    return HL_OK;
}
