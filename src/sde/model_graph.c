/* model_graph.c - a model as graph, in standardised time and columns.
 *
 * Drift: a network, or what is known; diffusion: softplus of a network, so that it is positive, or what is known. Known
 * parts are parameters of the graph that nobody trains, since they change with the scale, and forms in the user's units,
 * which are given t = first + unit u and x = mean + deviation z. */
#include <math.h>

#include "op/op.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { DRIFT, DIFFUSION, DENSITY };

hl_status hl_sde_graph_start(const hl_sde *s, hl_sde_graph *b)
{
    static const char *const names[HL_SDE_KNOWN] = { "known.matrix",    "known.diagonal", "known.drift",
                                                     "known.diffusion", "scale.time",     "scale.mean",
                                                     "scale.deviation" };
    size_t d = s->spec.dim, dims[] = { d, d }, next = 0;
    *b = (hl_sde_graph){ 0 };
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        b->params += s->net[n]->params;
    b->param = hl_calloc(s->ctx, b->params + HL_SDE_KNOWN, sizeof *b->param);
    hl_status status = b->param ? hl_graph_create(s->ctx, &b->g) : HL_ERR_NOMEM;
    if (status != HL_OK)
        return status;
    b->t = hl_input(b->g, "t", 0, NULL);
    b->x = hl_input(b->g, "x", 1, &d);
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        for (size_t i = 0; i < s->net[n]->params; i++) {
            const hl_param_info *p = &s->net[n]->param[i];
            b->param[next++] = hl_param(b->g, p->name, p->shape.rank, p->shape.dim);
        }
    for (size_t k = 0; k < HL_SDE_KNOWN; k++)
        b->param[next++] = hl_param(b->g, names[k], k == 0 ? 2 : 1, k == 4 ? (size_t[]){ 2 } : dims);
    b->lambda = hl_param(b->g, "lambda", 0, NULL);
    return hl_graph_status(b->g);
}

void hl_sde_graph_end(const hl_sde *s, hl_sde_graph *b)
{
    hl_graph_free(b->g);
    hl_free(s->ctx, b->param);
}

/* Time as the networks see it: -2..2. */
double hl_sde_clock(double t)
{
    return 4.0 / HL_SDE_SPAN * t - 2;
}

static hl_node clock(hl_sde_graph *b)
{
    return hl_add(b->g, hl_scale(b->g, 4.0 / HL_SDE_SPAN, b->t), hl_const(b->g, -2));
}

static hl_node *params_of(const hl_sde *s, const hl_sde_graph *b, size_t net)
{
    hl_node *p = b->param;
    for (size_t n = 0; n < net; n++)
        p += s->net[n]->params;
    return p;
}

/* One of the networks of x and t: y and D y, D^2 y. */
static hl_status network(const hl_sde *s, hl_sde_graph *b, size_t which, int order, hl_node *y, hl_node *d)
{
    hl_node time = s->spec.time ? clock(b) : HL_NONE, *param = params_of(s, b, which);
    if (s->hollow) {
        hl_net_nodes n = { .x = b->x, .t = time, .param = param, .reuse = 1, .d = d };
        hl_status status = hl_net_build(s->net[which], b->g, order, HL_TAYLOR, &n);
        *y = n.f;
        return status;
    }
    hl_node in = b->x;
    if (s->spec.time)
        in = hl_concat(b->g, 2, (hl_node[]){ b->x, hl_reshape(b->g, time, 1, (size_t[]){ 1 }) }, 0);
    *y = hl_dense_build(&s->dense[which], b->g, in, param);
    return order ? hl_fp_derive(b->g, *y, b->x, order, d) : hl_graph_status(b->g);
}

/* 1 where a component is not known, or HL_NONE if none is known. */
static hl_node open_mask(const hl_sde *s, hl_graph *g, bool drift)
{
    bool any = false;
    for (size_t i = 0; i < s->spec.dim; i++) {
        bool known = s->known && (drift ? s->known[i].drift : s->known[i].diffusion);
        s->scratch[i] = known ? 0 : 1;
        any = any || known;
    }
    return any ? hl_const_array(g, 1, &s->spec.dim, s->scratch) : HL_NONE;
}

static hl_node masked(hl_graph *g, hl_node mask, hl_node y)
{
    return mask == HL_NONE ? y : hl_mul(g, mask, y);
}

static hl_node scalar(hl_graph *g, hl_node from, size_t at)
{
    return hl_reshape(g, hl_slice(g, from, 0, at, 1), 0, NULL);
}

/* The known forms of all components as the user gives them, [dim], with zeros where there are none; HL_NONE if there is
 * none at all. */
static hl_node user_forms(const hl_sde *s, hl_sde_graph *b, bool drift, hl_node *part)
{
    hl_graph *g = b->g;
    const hl_node *scale = b->param + b->params + 4;
    hl_node t = hl_add(g, scalar(g, scale[0], 0), hl_mul(g, scalar(g, scale[0], 1), b->t));
    hl_node x = hl_add(g, scale[1], hl_mul(g, scale[2], b->x));
    bool any = false;
    for (size_t i = 0; i < s->spec.dim; i++) {
        const hl_sde_known *k = &s->known[i];
        hl_sde_form_fn *form = drift ? k->drift_form : k->diffusion_form;
        hl_node y = hl_const(g, 0);
        if (form && (drift ? k->drift : k->diffusion)) {
            y = form(k->user, g, t, x);
            any = true;
            if (hl_node_rank(g, y) != 0)
                return hl_graph_fail(g, HL_ERR_SHAPE, "the known form of component %zu is not a scalar", i);
        }
        part[i] = hl_reshape(g, y, 1, (size_t[]){ 1 });
    }
    return any ? hl_concat(g, (int)s->spec.dim, part, 0) : HL_NONE;
}

/* The forms, standardised, with D and D^2 as far as order goes; HL_NONE if there is none. */
static hl_status forms(const hl_sde *s, hl_sde_graph *b, bool drift, int order, hl_node *y, hl_node *d)
{
    hl_graph *g = b->g;
    hl_node *part = s->known ? hl_calloc(s->ctx, s->spec.dim, sizeof *part) : NULL, time;
    *y = HL_NONE;
    if (!s->known)
        return HL_OK;
    if (!part)
        return HL_ERR_NOMEM;
    *y = user_forms(s, b, drift, part);
    hl_free(s->ctx, part);
    if (*y == HL_NONE)
        return HL_OK;
    if (!drift) /* of g the sign means nothing; with correlated noise it would turn the correlation */
        *y = hl_abs(g, *y);
    time = scalar(g, b->param[b->params + 4], 1);
    *y = hl_mul(g, *y, hl_div(g, drift ? time : hl_sqrt(g, time), b->param[b->params + 6]));
    return order ? hl_fp_derive(g, *y, b->x, order, d) : hl_graph_status(g);
}

static hl_node scaled(hl_graph *g, double factor, hl_node y)
{
    return factor == 1 ? y : hl_scale(g, factor, y);
}

static hl_node add_simple(const hl_sde *s, hl_sde_graph *b, hl_node y)
{
    return s->simple ? hl_add(b->g, hl_sde_simple_node(s->simple, b->g, 0, b->x, clock(b)), y) : y;
}

/* The regression's g times exp(y), with D and D^2. */
static hl_status simple_diffusion(const hl_sde *s, hl_sde_graph *b, int order, hl_node *y, hl_node *d)
{
    hl_node out;
    hl_status status = network(s, b, DIFFUSION, 0, &out, d);
    if (status != HL_OK)
        return status;
    *y = hl_mul(b->g, hl_sde_simple_node(s->simple, b->g, 1, b->x, clock(b)), hl_exp(b->g, out));
    return order ? hl_fp_derive(b->g, *y, b->x, order, d) : hl_graph_status(b->g);
}

static hl_status drift(const hl_sde *s, hl_sde_graph *b, int order)
{
    hl_graph *g = b->g;
    hl_node mask = open_mask(s, g, true), y, d[2], form, slope[2] = { HL_NONE };
    const hl_node *fixed = b->param + b->params;
    hl_status status = network(s, b, DRIFT, s->simple ? 0 : order > 0, &y, d);
    if (status == HL_OK)
        status = forms(s, b, true, order > 0, &form, slope);
    if (status != HL_OK)
        return status;
    b->fp.f = masked(g, mask, add_simple(s, b, scaled(g, s->spec.drift_scale, y)));
    if (s->simple && order)
        status = hl_fp_derive(g, b->fp.f, b->x, 1, &b->fp.df);
    else if (order)
        b->fp.df = masked(g, mask, scaled(g, s->spec.drift_scale, d[0]));
    if (status != HL_OK)
        return status;
    if (mask != HL_NONE) {
        b->fp.f = hl_add(g, b->fp.f, hl_add(g, hl_linear(g, b->x, fixed[0]), fixed[2]));
        if (order)
            b->fp.df = hl_accumulate(g, hl_add(g, b->fp.df, fixed[1]), slope[0]);
        b->fp.f = hl_accumulate(g, b->fp.f, form);
    }
    return hl_graph_status(g);
}

/* softplus of the network, with D and D^2. */
static hl_status network_diffusion(const hl_sde *s, hl_sde_graph *b, int order, hl_node *y, hl_node *d)
{
    hl_graph *g = b->g;
    hl_node out, inner[2];
    hl_status status = network(s, b, DIFFUSION, order, &out, inner);
    if (status != HL_OK)
        return status;
    double factor = fmax(1, s->spec.diffusion_start); /* so that the network's outputs stay about 1 */
    hl_node a = hl_add(g, out, hl_const(g, log(expm1(s->spec.diffusion_start / factor)))), slope = hl_sigmoid(g, a);
    *y = scaled(g, factor, hl_softplus(g, a));
    if (order > 0)
        d[0] = scaled(g, factor, hl_mul(g, slope, inner[0]));
    if (order > 1) {
        hl_node bend = hl_mul(g, hl_sub(g, hl_const(g, 1), slope), hl_mul(g, inner[0], inner[0]));
        d[1] = scaled(g, factor, hl_mul(g, slope, hl_add(g, bend, inner[1])));
    }
    return hl_graph_status(g);
}

static hl_status diffusion(const hl_sde *s, hl_sde_graph *b, int order)
{
    hl_graph *g = b->g;
    hl_node mask = open_mask(s, g, false), y, d[2], form, more[2] = { HL_NONE, HL_NONE };
    hl_status status = s->simple ? simple_diffusion(s, b, order, &y, d) : network_diffusion(s, b, order, &y, d);
    if (status == HL_OK)
        status = forms(s, b, false, order, &form, more);
    if (status != HL_OK)
        return status;
    b->fp.g = masked(g, mask, y);
    if (mask != HL_NONE)
        b->fp.g = hl_accumulate(g, hl_add(g, b->fp.g, b->param[b->params + 3]), form);
    if (order > 0)
        b->fp.dg = hl_accumulate(g, masked(g, mask, d[0]), more[0]);
    if (order > 1)
        b->fp.d2g = hl_accumulate(g, masked(g, mask, d[1]), more[1]);
    return hl_graph_status(g);
}

hl_status hl_sde_graph_motion(const hl_sde *s, hl_sde_graph *b, int order)
{
    hl_status status = drift(s, b, order);
    return status == HL_OK ? diffusion(s, b, order) : status;
}

static hl_status flow_density(const hl_sde *s, hl_sde_graph *b, int derivatives)
{
    hl_status status = hl_sde_flow_build(&s->flow, b->g, b->x, clock(b), params_of(s, b, DENSITY), &b->fp.logp);
    return status == HL_OK && derivatives ? hl_fp_derive_density(b->g, b->fp.logp, b->t, b->x, &b->fp) : status;
}

hl_status hl_sde_graph_slopes(hl_sde_graph *b)
{
    hl_node one = hl_const(b->g, 1);
    hl_status status = hl_jet(b->g, 1, 1, &b->t, &one, NULL, 1, &b->fp.logp, &b->fp.logp_t);
    return status == HL_OK ? hl_vjp(b->g, 1, &b->fp.logp, NULL, 1, &b->x, NULL, &b->fp.s) : status;
}

hl_status hl_sde_graph_density(const hl_sde *s, hl_sde_graph *b, int derivatives)
{
    hl_graph *g = b->g;
    if (s->flow.count)
        return flow_density(s, b, derivatives);
    hl_node out =
        hl_dense_build(&s->dense[DENSITY], g, hl_reshape(g, clock(b), 1, (size_t[]){ 1 }), params_of(s, b, DENSITY));
    hl_mixture_split(&s->mixture, g, out, &b->mixture);
    hl_status status = hl_mixture_build(&s->mixture, g, &b->mixture, b->x, derivatives, &b->fp);
    hl_node one = hl_const(g, 1);
    if (status == HL_OK && derivatives)
        status = hl_jet(g, 1, 1, &b->t, &one, NULL, 1, &b->fp.logp, &b->fp.logp_t);
    return status;
}

hl_status hl_sde_graph_cross(const hl_sde *s, hl_sde_graph *b)
{
    hl_graph *g = b->g;
    hl_status status = HL_OK;
    for (size_t i = 0; i < s->spec.dim && hl_sde_simple_correlated(s->simple); i++)
        for (size_t j = 0; j < i && status == HL_OK; j++) {
            double correlation = s->simple->correlation[i * s->spec.dim + j];
            hl_node a = hl_scale(g, correlation, hl_mul(g, scalar(g, b->fp.g, i), scalar(g, b->fp.g, j)));
            if (correlation != 0)
                status = hl_fp_add_cross(g, b->fp.logp, b->x, i, j, a, &b->fp);
        }
    return status;
}
