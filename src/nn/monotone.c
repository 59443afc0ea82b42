/* monotone.c - the transformers of flows: tau rises in x_i, so that with a conditioner that looks one way the network can be
 * inverted, and the determinant of its Jacobian is the product of D f.
 *
 *   additive   x + m
 *   affine     x exp(s) + m
 *   monotone   x exp(s) + exp(a) w . z_L + m,   z_1 = act(softplus(u) x + V_1 h + b_1),  z_l = act(W_l z_{l-1} + V_l h + b_l)
 *
 * s, a and m are linear in h, t and context. Rows of W_l and w are softmaxes: positive, with sum 1. The first part's slope
 * keeps tau onto all of R where the activation is bounded. s and a are bounded smoothly, |s| < BOUND, so that no
 * exponential overflows in float32. */
#include <stdio.h>

#include "nn/net.h"

#define BOUND 8.0

/* Values for each dimension that are linear in h, t and context: [dim, units]. */
static hl_node from_h(hl_builder *b, const char *name, hl_node h, size_t units)
{
    const hl_net_spec *s = &b->term->spec;
    char weight[48];
    size_t fan_in = s->features + s->context + (size_t)s->time;
    snprintf(weight, sizeof weight, "%s.weight_h", name);
    hl_node z = hl_builder_product(b, weight, h, units, s->features, fan_in);
    return hl_add(b->g, z, hl_builder_offset(b, name, units, false, fan_in));
}

/* Column `which` of y [dim, units], as [dim]. */
static hl_node part(hl_builder *b, hl_node y, size_t which)
{
    return hl_reshape(b->g, hl_slice(b->g, y, 1, which, 1), 1, &b->net->dim);
}

static hl_node bounded_exp(hl_graph *g, hl_node x)
{
    return hl_exp(g, hl_scale(g, BOUND, hl_tanh(g, hl_scale(g, 1 / BOUND, x))));
}

static hl_node additive_build(hl_builder *b, hl_node h)
{
    return hl_add(b->g, b->x, part(b, from_h(b, "transformer.shift", h, 1), 0));
}

static hl_node affine_build(hl_builder *b, hl_node h)
{
    hl_node y = from_h(b, "transformer.affine", h, 2);
    return hl_add(b->g, hl_mul(b->g, b->x, bounded_exp(b->g, part(b, y, 0))), part(b, y, 1));
}

/* Weights [out, in], positive, each row with sum 1, applied to y [dim, in]. */
static hl_node convex(hl_builder *b, const char *name, hl_node y, size_t out, size_t in)
{
    hl_node w = hl_builder_param(b, name, 2, (size_t[]){ out, in }, 1);
    return hl_linear(b->g, y, hl_softmax(b->g, w, 1));
}

static hl_node monotone_build(hl_builder *b, hl_node h)
{
    const hl_net_spec *s = &b->term->spec;
    hl_graph *g = b->g;
    hl_node ends = from_h(b, "transformer.affine", h, 3);
    hl_node y = hl_mul(g, b->x, bounded_exp(g, part(b, ends, 0)));
    hl_node x = hl_reshape(g, b->x, 2, (size_t[]){ s->dim, 1 });
    hl_node slope = hl_softplus(g, hl_builder_param(b, "transformer.0.weight_x", 1, &s->width, 1));
    hl_node z = hl_mul(g, x, slope);
    for (int layer = 0; layer < s->layers; layer++) {
        char name[48], weight[56];
        snprintf(name, sizeof name, "transformer.%d", layer);
        snprintf(weight, sizeof weight, "%s.weight", name);
        if (layer)
            z = convex(b, weight, z, s->width, s->width);
        z = b->term->activation(g, hl_add(g, z, from_h(b, name, h, s->width)));
    }
    if (s->layers > 0) {
        hl_node sum = hl_reshape(g, convex(b, "transformer.out.weight", z, 1, s->width), 1, &s->dim);
        y = hl_add(g, y, hl_mul(g, bounded_exp(g, part(b, ends, 1)), sum));
    }
    return hl_add(g, y, part(b, ends, 2));
}

const hl_transformer hl_transformer_additive = { .no_layers = true, .build = additive_build };
const hl_transformer hl_transformer_affine = { .no_layers = true, .build = affine_build };
const hl_transformer hl_transformer_monotone = { .rising = true, .build = monotone_build };
