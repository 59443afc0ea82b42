/* vjp.c - the vector-Jacobian product of a flow, from data to base or from base to data.
 *
 * With y the result of a pass from v, l its log-determinant, and cotangents a of y and b of l, it gives the gradient of
 *
 *   sum over rows of  <a, y> + b l      to v, to the context and to all parameters.
 *
 * Continuous flows: the state of a row is (v, l, context), whose last part does not move, so that the gradient of the solve has that of the
 * context beside that of v. The trace is exact. Discrete flows: a network y = f(v) that is applied pulls back (a, b / D f). One that is undone,
 * v = f^-1(y) and l = -log |det J(v)|, has by the implicit function theorem, with L = b log |det J|,
 *
 *   w = J^-T (a - dL/dv),   the gradient w to y,   and  -w . df - dL  to parameters and context,
 *
 * where J' w = ... is solved by sweeps, as J is triangular. */
#include <math.h>
#include <string.h>

#include "flow/flow.h"
#include "ode/ode.h"

enum { ROWS = HL_INVERSE_ROWS };

typedef struct part {
    hl_flow_pull *of;
    const hl_net *net;
    hl_operator *op;
    hl_inverse *inverse; /* discrete */
    hl_ode *ode;         /* continuous; made for the present solver */
    void **gparam;       /* gradients of the parameters, in the network's precision */
    void *pieces;
} part;

struct hl_flow_pull {
    hl_flow *flow;
    part *part; /* one for each network */
    size_t dim, context, n;
    /* A call's arguments and results in the networks' precision. */
    void *x, *t, *c, *f, *d, *l, *gf, *gd, *gl, *gx, *gc;
    double *block;                      /* all doubles below */
    double *state, *time;               /* [ROWS][n], [ROWS] */
    double *trail;                      /* [nets][ROWS][dim]: what each network was applied to */
    double *slope, *a, *w, *jw, *gdual; /* [ROWS][dim] */
    double *gcontext, *sum;             /* [ROWS][context], [ROWS] */
};

/* ---- creation ---- */

static hl_status make_part(hl_flow_pull *p, size_t k)
{
    part *q = &p->part[k];
    hl_context *ctx = p->flow->ctx;
    size_t values = 0, element = hl_dtype_size(p->flow->net[k]->dtype);
    *q = (part){ .of = p, .net = p->flow->net[k] };
    hl_status status = hl_operator_create(q->net, &(hl_operator_options){ .order = 1 }, &q->op);
    if (status == HL_OK && p->flow->kind->conditioner)
        status = hl_inverse_create(q->net, &q->inverse);
    for (size_t i = 0; i < q->net->params; i++)
        values += hl_shape_size(&q->net->param[i].shape);
    q->gparam = hl_calloc(ctx, q->net->params, sizeof *q->gparam);
    q->pieces = hl_calloc(ctx, values, element);
    if (!q->gparam || !q->pieces)
        return HL_ERR_NOMEM;
    for (size_t i = 0, at = 0; i < q->net->params; i++) {
        q->gparam[i] = (char *)q->pieces + at * element;
        at += hl_shape_size(&q->net->param[i].shape);
    }
    return status;
}

static hl_status make_arrays(hl_flow_pull *p)
{
    hl_context *ctx = p->flow->ctx;
    size_t wide = hl_size_mul(ROWS, p->dim), deep = hl_size_mul(ROWS, p->context + 1), all = hl_size_mul(ROWS, p->n);
    void **const rows[] = { &p->x, &p->f, &p->d, &p->gf, &p->gd, &p->gx }, **const ones[] = { &p->t, &p->l, &p->gl };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(*rows[i] = hl_calloc(ctx, wide, sizeof(double))))
            return HL_ERR_NOMEM;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (!(*ones[i] = hl_calloc(ctx, ROWS, sizeof(double))))
            return HL_ERR_NOMEM;
    p->c = hl_calloc(ctx, deep, sizeof(double));
    p->gc = hl_calloc(ctx, deep, sizeof(double));
    size_t total = hl_size_add(hl_size_mul(p->flow->nets + 5, wide), hl_size_add(hl_size_add(all, deep), 2 * ROWS));
    p->block = hl_calloc(ctx, total, sizeof *p->block);
    if (!p->c || !p->gc || !p->block)
        return HL_ERR_NOMEM;
    p->trail = p->block;
    p->slope = p->trail + p->flow->nets * wide;
    p->a = p->slope + wide;
    p->w = p->a + wide;
    p->jw = p->w + wide;
    p->gdual = p->jw + wide;
    p->state = p->gdual + wide;
    p->gcontext = p->state + all;
    p->time = p->gcontext + deep;
    p->sum = p->time + ROWS;
    return HL_OK;
}

static hl_status need_pull(hl_flow *flow)
{
    if (flow->pull)
        return HL_OK;
    hl_flow_pull *p = flow->pull = hl_calloc(flow->ctx, 1, sizeof *p);
    if (!p)
        return HL_ERR_NOMEM;
    *p = (hl_flow_pull){ .flow = flow, .dim = flow->dim, .context = flow->context, .n = flow->dim + 1 + flow->context };
    p->part = hl_calloc(flow->ctx, flow->nets, sizeof *p->part);
    hl_status status = p->part ? make_arrays(p) : HL_ERR_NOMEM;
    for (size_t k = 0; k < flow->nets && status == HL_OK; k++)
        status = make_part(p, k);
    if (status != HL_OK)
        hl_flow_pull_free(flow);
    return status;
}

void hl_flow_pull_reset(hl_flow *flow)
{
    for (size_t k = 0; flow->pull && k < flow->nets; k++) {
        hl_ode_free(flow->pull->part[k].ode);
        flow->pull->part[k].ode = NULL;
    }
}

void hl_flow_pull_free(hl_flow *flow)
{
    hl_flow_pull *p = flow->pull;
    if (!p)
        return;
    for (size_t k = 0; p->part && k < flow->nets; k++) {
        hl_ode_free(p->part[k].ode);
        hl_operator_free(p->part[k].op);
        hl_inverse_free(p->part[k].inverse);
        hl_free(flow->ctx, p->part[k].gparam);
        hl_free(flow->ctx, p->part[k].pieces);
    }
    void *const blocks[] = {
        p->part, p->x, p->t, p->c, p->f, p->d, p->l, p->gf, p->gd, p->gl, p->gx, p->gc, p->block, p
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(flow->ctx, blocks[i]);
    flow->pull = NULL;
}

/* ---- a network's values and gradients, in double ---- */

static void add_pieces(const part *q, double *gradient)
{
    for (size_t i = 0; gradient && i < q->net->params; i++) {
        size_t size = hl_shape_size(&q->net->param[i].shape);
        hl_add_from_precision(q->net->dtype, size, q->gparam[i], gradient);
        gradient += size;
    }
}

/* f to f (rows x dim, unless NULL) and D f to p->slope; adds `sign` log |det| to logdet. */
static hl_status evaluate(part *q, size_t rows, const double *v, const double *context, double sign, double *f,
                          double *logdet)
{
    hl_flow_pull *p = q->of;
    hl_dtype dtype = q->net->dtype;
    hl_to_precision(dtype, rows * p->dim, v, p->x);
    if (p->context)
        hl_to_precision(dtype, rows * p->context, context, p->c);
    hl_status status = hl_operator_eval(q->op, rows, p->x, NULL, p->context ? p->c : NULL, p->f, &p->d, NULL);
    if (status != HL_OK)
        return status;
    hl_from_precision(dtype, rows * p->dim, p->d, p->slope);
    if (f)
        hl_from_precision(dtype, rows * p->dim, p->f, f);
    for (size_t i = 0; logdet && i < rows * p->dim; i++)
        logdet[i / p->dim] += sign * log(p->slope[i]);
    return HL_OK;
}

/* Gradients of <gf, f> + <gd, D f> at what `evaluate` was called with last: to v (p->jw), and, if asked, the context's to p->gcontext and the
 * parameters' to gradient, both added. */
static hl_status pull_back(part *q, size_t rows, const double *gf, const double *gd, bool all, double *gradient)
{
    hl_flow_pull *p = q->of;
    hl_dtype dtype = q->net->dtype;
    if (gf)
        hl_to_precision(dtype, rows * p->dim, gf, p->gf);
    if (gd)
        hl_to_precision(dtype, rows * p->dim, gd, p->gd);
    hl_status status = hl_operator_vjp(q->op, rows, p->x, NULL, p->context ? p->c : NULL, gf ? p->gf : NULL,
                                       gd ? (const void *const[]){ p->gd } : NULL, NULL, p->gx, NULL,
                                       p->context && all ? p->gc : NULL, gradient ? q->gparam : NULL);
    if (status != HL_OK)
        return status;
    hl_from_precision(dtype, rows * p->dim, p->gx, p->jw);
    if (all && p->context)
        hl_add_from_precision(dtype, rows * p->context, p->gc, p->gcontext);
    add_pieces(q, gradient);
    return HL_OK;
}

/* ---- discrete flows ---- */

/* p->w with J' w = p->a, by sweeps: each gets at least one more dimension right. */
static hl_status solve_transposed(part *q, size_t rows)
{
    hl_flow_pull *p = q->of;
    size_t size = rows * p->dim;
    hl_status status = HL_OK;
    for (size_t k = 0; k < size; k++)
        p->w[k] = p->a[k] / p->slope[k];
    for (size_t sweep = 0; sweep < p->dim && status == HL_OK; sweep++) {
        double moved = 0, largest = 0;
        status = pull_back(q, rows, p->w, NULL, false, NULL);
        for (size_t k = 0; k < size; k++) {
            double step = (p->a[k] - p->jw[k]) / p->slope[k];
            p->w[k] += step;
            moved = fmax(moved, fabs(step));
            largest = fmax(largest, fabs(p->w[k]));
        }
        if (moved <= 1e-15 * largest)
            break;
    }
    return status;
}

/* p->a from the cotangent of network k's result to that of what it was applied to, or undone from. */
static hl_status pull_network(hl_flow_pull *p, size_t k, bool undone, size_t rows, const double *context,
                              const double *glogdet, double *gradient)
{
    part *q = &p->part[k];
    size_t size = rows * p->dim;
    double sign = undone ? -1 : 1;
    hl_status status = evaluate(q, rows, p->trail + k * ROWS * p->dim, context, 0, NULL, NULL);
    for (size_t i = 0; i < size; i++)
        p->gdual[i] = glogdet ? sign * glogdet[i / p->dim] / p->slope[i] : 0;
    if (status == HL_OK && !undone) {
        status = pull_back(q, rows, p->a, p->gdual, true, gradient);
        memcpy(p->a, p->jw, size * sizeof *p->a);
        return status;
    }
    if (status == HL_OK)
        status = pull_back(q, rows, NULL, p->gdual, false, NULL);
    for (size_t i = 0; i < size; i++)
        p->a[i] += p->jw[i];
    if (status == HL_OK)
        status = solve_transposed(q, rows);
    for (size_t i = 0; i < size; i++)
        p->a[i] = -p->w[i];
    if (status == HL_OK)
        status = pull_back(q, rows, p->a, p->gdual, true, gradient);
    memcpy(p->a, p->w, size * sizeof *p->a);
    return status;
}

/* One chunk: values (rows x dim) through the networks to p->state, log |det| to p->sum. */
static hl_status push_discrete(hl_flow_pull *p, bool undo, size_t rows, const double *from, const double *context)
{
    size_t size = rows * p->dim, nets = p->flow->nets;
    hl_status status = HL_OK;
    memcpy(p->state, from, size * sizeof *from);
    memset(p->sum, 0, rows * sizeof *p->sum);
    for (size_t i = 0; i < nets && status == HL_OK; i++) {
        size_t k = undo ? nets - 1 - i : i;
        double *v = p->trail + k * ROWS * p->dim;
        if (undo)
            hl_inverse_solve(p->part[k].inverse, rows, p->state, context, v);
        else
            memcpy(v, p->state, size * sizeof *v);
        status = evaluate(&p->part[k], rows, v, context, undo ? -1 : 1, undo ? NULL : p->state, p->sum);
        if (undo)
            memcpy(p->state, v, size * sizeof *v);
    }
    return status;
}

static hl_status pull_discrete(hl_flow_pull *p, bool undo, size_t rows, const double *context, const double *gto,
                               const double *glogdet, double *gradient)
{
    size_t nets = p->flow->nets;
    hl_status status = HL_OK;
    memset(p->a, 0, rows * p->dim * sizeof *p->a);
    if (gto)
        memcpy(p->a, gto, rows * p->dim * sizeof *p->a);
    memset(p->gcontext, 0, rows * p->context * sizeof *p->gcontext);
    for (size_t i = 0; i < nets && status == HL_OK; i++) {
        size_t k = undo ? i : nets - 1 - i;
        status = pull_network(p, k, undo, rows, context, glogdet, gradient ? gradient + p->flow->offset[k] : NULL);
    }
    return status;
}

/* ---- continuous flows ---- */

/* A call's rows (count x n) to the network's precision. */
static void load_rows(part *q, const hl_rows *at)
{
    hl_flow_pull *p = q->of;
    hl_dtype dtype = q->net->dtype;
    size_t element = hl_dtype_size(dtype);
    for (size_t r = 0; r < at->count; r++) {
        const double *y = at->y + r * p->n;
        hl_to_precision(dtype, p->dim, y, (char *)p->x + r * p->dim * element);
        hl_to_precision(dtype, p->context, y + p->dim + 1, (char *)p->c + r * p->context * element);
    }
    hl_to_precision(dtype, at->count, at->t, p->t);
}

static int field_rhs(void *user, const hl_rows *at, double *dy)
{
    part *q = user;
    hl_flow_pull *p = q->of;
    hl_dtype dtype = q->net->dtype;
    size_t element = hl_dtype_size(dtype);
    load_rows(q, at);
    if (hl_operator_eval(q->op, at->count, p->x, p->t, p->context ? p->c : NULL, p->f, NULL, p->l) != HL_OK)
        return -1;
    for (size_t r = 0; r < at->count; r++, dy += p->n) {
        hl_from_precision(dtype, p->dim, (char *)p->f + r * p->dim * element, dy);
        hl_from_precision(dtype, 1, (char *)p->l + r * element, dy + p->dim);
        memset(dy + p->dim + 1, 0, p->context * sizeof *dy);
    }
    return 0;
}

static int field_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    part *q = user;
    hl_flow_pull *p = q->of;
    hl_dtype dtype = q->net->dtype;
    size_t element = hl_dtype_size(dtype);
    load_rows(q, at);
    for (size_t r = 0; r < at->count; r++) {
        hl_to_precision(dtype, p->dim, w + r * p->n, (char *)p->gf + r * p->dim * element);
        hl_to_precision(dtype, 1, w + r * p->n + p->dim, (char *)p->gl + r * element);
    }
    if (hl_operator_vjp(q->op, at->count, p->x, p->t, p->context ? p->c : NULL, p->gf, NULL, p->gl, p->gx, NULL,
                        p->context ? p->gc : NULL, gparam ? q->gparam : NULL) != HL_OK)
        return -1;
    for (size_t r = 0; r < at->count; r++, gy += p->n) {
        hl_from_precision(dtype, p->dim, (char *)p->gx + r * p->dim * element, gy);
        gy[p->dim] = 0;
        hl_from_precision(dtype, p->context, (char *)p->gc + r * p->context * element, gy + p->dim + 1);
    }
    add_pieces(q, gparam);
    return 0;
}

static hl_status need_ode(hl_flow_pull *p, size_t k)
{
    part *q = &p->part[k];
    const hl_flow_solver *s = p->flow->solver;
    bool single = q->net->dtype == HL_F32;
    size_t values = 0;
    if (q->ode)
        return HL_OK;
    for (size_t i = 0; i < q->net->params; i++)
        values += hl_shape_size(&q->net->param[i].shape);
    hl_system system = {
        .n = p->n, .rhs = field_rhs, .vjp = field_vjp, .n_params = values, .rounding = single ? 6e-8 : 0, .user = q
    };
    hl_ode_options options = { .method = s->method,
                               .rtol = s->rtol > 0 ? s->rtol
                                       : single    ? 1e-5
                                                   : 1e-6,
                               .atol = s->atol > 0 ? s->atol
                                       : single    ? 1e-5
                                                   : 1e-8,
                               .steps = s->steps,
                               .max_evaluations = s->max_evaluations,
                               .rows = ROWS,
                               .gradient = s->adjoint || hl_ode_family_of(s->method) == &hl_ode_multistep ? HL_ADJOINT
                                                                                                          : HL_REPLAY };
    return hl_ode_create(p->flow->ctx, &system, &options, &q->ode);
}

static bool is_good(hl_status status)
{
    return status == HL_OK || status == HL_IMPRECISE;
}

static hl_status push_continuous(hl_flow_pull *p, bool to_base, size_t rows, const double *from, const double *context)
{
    size_t nets = p->flow->nets;
    hl_status status = HL_OK;
    for (size_t r = 0; r < rows; r++) {
        double *y = p->state + r * p->n;
        memcpy(y, from + r * p->dim, p->dim * sizeof *y);
        y[p->dim] = 0;
        if (p->context)
            memcpy(y + p->dim + 1, context + r * p->context, p->context * sizeof *y);
    }
    for (size_t i = 0; i < nets && is_good(status); i++) {
        size_t k = to_base ? i : nets - 1 - i;
        for (size_t r = 0; r < rows; r++)
            p->time[r] = to_base ? 1 : 0;
        status = need_ode(p, k);
        if (status == HL_OK)
            status = hl_ode_solve(p->part[k].ode, rows, p->time, to_base ? 0 : 1, p->state, NULL);
    }
    for (size_t r = 0; r < rows; r++) {
        p->sum[r] = p->state[r * p->n + p->dim];
        memmove(p->state + r * p->dim, p->state + r * p->n, p->dim * sizeof *p->state);
    }
    return is_good(status) ? HL_OK : status;
}

static hl_status pull_continuous(hl_flow_pull *p, bool to_base, size_t rows, const double *gto, const double *glogdet,
                                 double *gradient)
{
    size_t nets = p->flow->nets;
    hl_status status = HL_OK;
    for (size_t r = 0; r < rows; r++) {
        double *g = p->state + r * p->n;
        memset(g, 0, p->n * sizeof *g);
        if (gto)
            memcpy(g, gto + r * p->dim, p->dim * sizeof *g);
        g[p->dim] = glogdet ? glogdet[r] : 0;
    }
    for (size_t i = 0; i < nets && is_good(status); i++) {
        size_t k = to_base ? nets - 1 - i : i;
        status = hl_ode_gradient(p->part[k].ode, p->state, gradient ? gradient + p->flow->offset[k] : NULL);
    }
    for (size_t r = 0; r < rows; r++) {
        memcpy(p->a + r * p->dim, p->state + r * p->n, p->dim * sizeof *p->a);
        memcpy(p->gcontext + r * p->context, p->state + r * p->n + p->dim + 1, p->context * sizeof *p->gcontext);
    }
    return is_good(status) ? HL_OK : status;
}

/* ---- the call ---- */

static hl_status check_finite(hl_flow_pull *p, size_t first, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        bool finite = isfinite(p->sum[r]);
        for (size_t i = 0; i < p->dim; i++)
            finite = finite && isfinite(p->state[r * p->dim + i]);
        if (!finite)
            return hl_fail_at(p->flow->ctx, HL_ERR_NOT_FINITE, hl_at(first + r, HL_NOWHERE),
                              "the flow is not finite at this row");
    }
    return HL_OK;
}

static hl_status pull_chunk(hl_flow *flow, size_t first, size_t rows, const hl_flow_pullback *b)
{
    hl_flow_pull *p = flow->pull;
    bool discrete = flow->kind->conditioner != NULL, undo = (b->from_base == 0) == flow->kind->from_base;
    const double *from = b->from + first * p->dim, *context = b->context ? b->context + first * p->context : NULL;
    const double *gto = b->gto ? b->gto + first * p->dim : NULL, *glogdet = b->glogdet ? b->glogdet + first : NULL;
    hl_status status =
        discrete ? push_discrete(p, undo, rows, from, context) : push_continuous(p, !b->from_base, rows, from, context);
    if (status != HL_OK)
        return hl_fail_offset(flow->ctx, status, first);
    status = check_finite(p, first, rows);
    if (status != HL_OK)
        return status;
    if (b->to)
        memcpy(b->to + first * p->dim, p->state, rows * p->dim * sizeof *b->to);
    if (b->logdet)
        memcpy(b->logdet + first, p->sum, rows * sizeof *b->logdet);
    status = discrete ? pull_discrete(p, undo, rows, context, gto, glogdet, b->gparameters)
                      : pull_continuous(p, !b->from_base, rows, gto, glogdet, b->gparameters);
    if (status != HL_OK)
        return hl_fail_offset(flow->ctx, status, first);
    if (b->gfrom)
        memcpy(b->gfrom + first * p->dim, p->a, rows * p->dim * sizeof *b->gfrom);
    if (b->gcontext && p->context)
        memcpy(b->gcontext + first * p->context, p->gcontext, rows * p->context * sizeof *b->gcontext);
    return HL_OK;
}

hl_status hl_flow_vjp(hl_flow *flow, size_t rows, const hl_flow_pullback *b)
{
    if (!flow)
        return HL_ERR_INVALID;
    if (!b || (rows && (!b->from || (flow->context && !b->context))))
        return hl_fail(flow->ctx, HL_ERR_INVALID, "hl_flow_vjp: %s is NULL",
                       b && b->from ? "the context" : "the input");
    for (size_t i = 0; i < rows * flow->dim; i++)
        if (!isfinite(b->from[i]))
            return hl_fail_at(flow->ctx, HL_ERR_NOT_FINITE, hl_at(i / flow->dim, i % flow->dim), "not finite");
    for (size_t i = 0; i < rows * flow->context; i++)
        if (!isfinite(b->context[i]))
            return hl_fail_at(flow->ctx, HL_ERR_NOT_FINITE, hl_at(i / flow->context, i % flow->context),
                              "the context is not finite");
    hl_status status = need_pull(flow);
    for (size_t first = 0; first < rows && status == HL_OK; first += ROWS)
        status = pull_chunk(flow, first, rows - first < ROWS ? rows - first : ROWS, b);
    return status;
}
