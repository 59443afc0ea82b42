/* term.c - one term of a network in a graph, and the derivatives of their sum.
 *
 *   f(x) = sum over terms of  Q' P' u(P Q x) + W2 act(W1 x + b1) + b2
 *
 * u is hollow, P an order of columns and Q a product of reflections. D^k is linear, permutes with P, and of the plain network
 * has a closed form, D^k_i = sum_j W2_ij W1_ji^k act^(k)(z_j). Under Q only the divergence stays cheap: Tr(Q' J Q) = Tr J. */
#include <math.h>
#include <stdio.h>

#include "nn/net.h"
#include "op/op.h"

/* ---- another basis ---- */

/* y - 2 v (v.y) / (v.v); y itself if v is zero. v [1, dim] */
static hl_node reflect(hl_graph *g, hl_node y, hl_node v, size_t dim)
{
    hl_node flat = hl_reshape(g, v, 1, &dim), length = hl_sum(g, hl_mul(g, flat, flat), 0);
    hl_node zero = hl_const(g, 0);
    length = hl_select(g, hl_less(g, zero, length), length, hl_const(g, 1));
    hl_node along = hl_scale(g, -2, hl_div(g, hl_linear(g, y, v), length));
    return hl_add(g, y, hl_mul(g, along, flat));
}

/* All reflections of the term, in order or, to undo them, backwards. */
static hl_node rotate(hl_builder *b, hl_node y, const hl_node *v, bool back)
{
    size_t count = b->term->spec.reflections;
    for (size_t i = 0; i < count; i++)
        y = reflect(b->g, y, v[back ? count - 1 - i : i], b->net->dim);
    return y;
}

/* ---- one term ---- */

static hl_node conditioner(hl_builder *b)
{
    hl_node h = b->term->conditioner->build(b);
    if (!hl_graph_node(b->g, h))
        return h;
    hl_shape shape = *hl_shape_of(b->g, h);
    shape.batched = true; /* a constant h is still one per row */
    return hl_broadcast_shape(b->g, h, &shape);
}

/* The plain network of one hidden layer. */
static hl_node plain(hl_builder *b, hl_node x, hl_term_nodes *n)
{
    const hl_net_spec *s = &b->term->spec;
    size_t dim = b->net->dim, fan_in = dim + s->context + (size_t)s->time;
    n->w1 = hl_builder_param(b, "mlp.0.weight", 2, (size_t[]){ s->mlp, dim }, fan_in);
    n->z = hl_add(b->g, hl_linear(b->g, x, n->w1), hl_builder_offset(b, "mlp.0", s->mlp, false, fan_in));
    n->w2 = hl_builder_param(b, "mlp.1.weight", 2, (size_t[]){ dim, s->mlp }, s->mlp);
    hl_node y = hl_linear(b->g, b->term->activation(b->g, n->z), n->w2);
    return hl_add(b->g, y, hl_builder_param(b, "mlp.1.bias", 1, &dim, 0));
}

hl_term_nodes hl_term_build(hl_builder *b, const hl_term *term, hl_node x)
{
    const hl_net_spec *s = &term->spec;
    hl_term_nodes n = { .x = x };
    hl_node reflection[HL_MAX_REFLECTIONS];
    b->term = term;
    for (size_t i = 0; i < s->reflections; i++) {
        char name[32];
        snprintf(name, sizeof name, "basis.%zu", i);
        reflection[i] = hl_builder_param(b, name, 2, (size_t[]){ 1, b->net->dim }, 1);
    }
    n.x = rotate(b, n.x, reflection, false);
    if (term->order)
        n.x = hl_gather(b->g, n.x, 0, b->net->dim, term->order);
    b->x = n.x;
    n.h = conditioner(b);
    if (b->declaring)
        b->net->term[term - b->net->term].tau_param = b->net->params;
    n.u = n.f = term->transformer->build(b, n.h);
    if (term->order)
        n.f = hl_gather(b->g, n.f, 0, b->net->dim, term->inverse);
    n.f = rotate(b, n.f, reflection, true);
    if (s->mlp)
        n.f = hl_add(b->g, n.f, plain(b, x, &n));
    return n;
}

/* ---- derivatives ---- */

/* act^(k)(z) for k = 1..order, by the Taylor coefficients of act along ones. HL_NONE is zero. */
static hl_status slopes(hl_graph *g, const hl_term *term, hl_node z, int order, hl_node *slope)
{
    hl_node seed[HL_MAX_ORDER] = { HL_NONE }, y = term->activation(g, z);
    if (y == HL_BAD)
        return g->status;
    seed[0] = hl_constant_like(g, 1, z);
    hl_status status = hl_jet(g, order, 1, &z, seed, NULL, 1, &y, slope);
    double factorial = 1;
    for (int k = 1; k <= order && status == HL_OK; k++) {
        factorial *= k;
        if (slope[k - 1] != HL_NONE)
            slope[k - 1] = hl_scale(g, factorial, slope[k - 1]);
    }
    return status;
}

/* Add D^k of the plain network to d. */
static hl_status derive_plain(hl_graph *g, const hl_term *term, const hl_term_nodes *n, int order, hl_node *d)
{
    hl_node slope[HL_MAX_ORDER], across = hl_permute(g, n->w1, (int[]){ 1, 0 }), w = n->w2;
    hl_status status = slopes(g, term, n->z, order, slope);
    for (int k = 1; k <= order && status == HL_OK; k++) {
        w = hl_mul(g, w, across);
        if (slope[k - 1] != HL_NONE)
            d[k - 1] = hl_accumulate(g, d[k - 1], hl_linear(g, slope[k - 1], w));
    }
    return status;
}

/* Add the term's D^k to d, and what of the divergence is not in d[0] to *rest. */
static hl_status derive_term(hl_graph *g, const hl_term *term, const hl_term_nodes *n, int order, hl_diff_mode mode,
                             hl_node *d, hl_node *rest)
{
    hl_node own[HL_MAX_ORDER];
    bool turned = term->spec.reflections > 0;
    hl_status status = hl_dim_derivatives(g, n->u, n->x, &(hl_hold){ 1, &n->h }, turned ? 1 : order, mode, own);
    if (status != HL_OK)
        return status;
    if (turned)
        *rest = hl_accumulate(g, *rest, hl_sum(g, own[0], 0));
    for (int k = 0; k < order && !turned; k++)
        d[k] = hl_accumulate(g, d[k],
                             term->order ? hl_gather(g, own[k], 0, hl_node_size(g, n->u), term->inverse) : own[k]);
    return term->spec.mlp ? derive_plain(g, term, n, order, d) : HL_OK;
}

hl_status hl_net_derive(const hl_net *net, hl_graph *g, const hl_term_nodes *n, int order, hl_diff_mode mode,
                        hl_node *d, hl_node *divergence)
{
    hl_node rest = HL_NONE;
    for (int k = 0; k < order; k++)
        d[k] = HL_NONE;
    for (size_t i = 0; i < net->terms; i++) {
        hl_status status = derive_term(g, &net->term[i], &n[i], order, mode, d, &rest);
        if (status != HL_OK)
            return status;
    }
    if (d[0] != HL_NONE)
        rest = hl_accumulate(g, rest, hl_sum(g, d[0], 0));
    *divergence = rest;
    return hl_graph_status(g);
}
