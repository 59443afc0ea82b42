/* transformer.c - tau as a small network of x_i, h_i, t and context, with weights shared by all dimensions or of their own. */
#include <stdio.h>

#include "nn/net.h"

hl_node hl_builder_product(hl_builder *b, const char *name, hl_node y, size_t units, size_t in, size_t fan_in)
{
    if (b->term->transformer->per_dimension)
        return hl_linear_grouped(b->g, y, hl_builder_param(b, name, 3, (size_t[]){ b->net->dim, units, in }, fan_in));
    return hl_linear(b->g, y, hl_builder_param(b, name, 2, (size_t[]){ units, in }, fan_in));
}

static hl_node column(hl_builder *b, const char *name, size_t units, size_t fan_in)
{
    return b->term->transformer->per_dimension ? hl_builder_param(b, name, 2, (size_t[]){ b->net->dim, units }, fan_in)
                                               : hl_builder_param(b, name, 1, &units, fan_in);
}

/* First layer: x_i enters by one column of weights, so that its derivative is that column and needs no product. */
static hl_node first_layer(hl_builder *b, hl_node h, size_t units)
{
    const hl_net_spec *s = &b->term->spec;
    size_t fan_in = 1 + s->features + s->context + (size_t)s->time;
    hl_node z = hl_builder_product(b, "transformer.0.weight_h", h, units, s->features, fan_in);
    z = hl_add(b->g, z, hl_builder_offset(b, "transformer.0", units, b->term->transformer->per_dimension, fan_in));
    hl_node x = hl_reshape(b->g, b->x, 2, (size_t[]){ s->dim, 1 });
    z = hl_add(b->g, z, hl_mul(b->g, x, column(b, "transformer.0.weight_x", units, fan_in)));
    return hl_update_shared(b, z, h, x, units == 1 && s->layers < 0);
}

static hl_node network_build(hl_builder *b, hl_node h)
{
    const hl_net_spec *s = &b->term->spec;
    int layers = s->layers < 0 ? 0 : s->layers;
    hl_node y = first_layer(b, h, layers ? s->width : 1);
    for (int layer = 1; layer <= layers; layer++) {
        char weight[48], bias[48];
        size_t units = layer < layers ? s->width : 1;
        snprintf(weight, sizeof weight, "transformer.%d.weight", layer);
        snprintf(bias, sizeof bias, "transformer.%d.bias", layer);
        hl_node before = b->term->activation(b->g, y);
        y = hl_builder_product(b, weight, before, units, s->width, s->width);
        y = hl_add(b->g, y, column(b, bias, units, 0));
        y = hl_update_shared(b, y, before, HL_NONE, layer == layers);
    }
    return hl_reshape(b->g, y, 1, &s->dim);
}

const hl_transformer hl_transformer_shared = { .build = network_build };
const hl_transformer hl_transformer_per_dimension = { .per_dimension = true, .build = network_build };
