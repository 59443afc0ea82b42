/* encode.c - the encoder shared by the conditioners sum, tree and attention: each x_j, with its position, becomes a vector.
 *
 *   y_j = act(w x_j + e_j + offset(t, context)),  then dense layers, shared by all j        [dim, hidden] */
#include <stdio.h>

#include "nn/net.h"

hl_node hl_builder_dense(hl_builder *b, const char *name, hl_node y, size_t out, size_t in, bool active)
{
    char text[64];
    snprintf(text, sizeof text, "%s.weight", name);
    hl_node z = hl_linear(b->g, y, hl_builder_param(b, text, 2, (size_t[]){ out, in }, in));
    snprintf(text, sizeof text, "%s.bias", name);
    z = hl_add(b->g, z, hl_builder_param(b, text, 1, &out, 0));
    return active ? b->term->activation(b->g, z) : z;
}

hl_node hl_builder_place(hl_builder *b, const char *name, size_t units, size_t fan_in)
{
    return hl_builder_param(b, name, 2, (size_t[]){ b->term->spec.dim, units }, fan_in);
}

hl_node hl_builder_encode(hl_builder *b, size_t units)
{
    const hl_net_spec *s = &b->term->spec;
    int layers = s->hidden_layers < 0 ? 0 : s->hidden_layers;
    hl_node x = hl_reshape(b->g, b->x, 2, (size_t[]){ s->dim, 1 });
    hl_node y = hl_mul(b->g, x, hl_builder_param(b, "conditioner.encode.weight_x", 1, &units, 1));
    y = hl_add(b->g, y, hl_builder_place(b, "conditioner.encode.place", units, 1));
    if (s->time || s->context)
        y = hl_add(b->g, y, hl_builder_offset(b, "conditioner.encode", units, false, s->context + (size_t)s->time));
    for (int layer = 1; layer <= layers; layer++) {
        char name[48];
        y = b->term->activation(b->g, y);
        snprintf(name, sizeof name, "conditioner.encode.%d", layer);
        if (layer < layers)
            y = hl_builder_dense(b, name, y, units, units, false);
    }
    return y;
}
