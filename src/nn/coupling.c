/* coupling.c - conditioner "coupling": the first half of the columns sees nothing, the second half sees the first; and
 * conditioner "none", in which no column sees another.
 *
 *   h_i = c_i                                 for the first half (t and context reach f_i through the transformer)
 *   h_i = outputs of a dense network of x_1..x_{d/2}, t and context, for the others */
#include <stdio.h>

#include "nn/net.h"

/* The second half, [dim - half, features]. */
static hl_node others(hl_builder *b, size_t half)
{
    const hl_net_spec *s = &b->term->spec;
    int layers = s->hidden_layers < 0 ? 0 : s->hidden_layers;
    size_t count = s->dim - half, in = half;
    hl_node y = hl_slice(b->g, b->x, 0, 0, half);
    for (int layer = 0; layer < layers; layer++) {
        char name[48];
        snprintf(name, sizeof name, "conditioner.%d", layer);
        y = hl_builder_dense(b, name, y, s->hidden, in, false);
        if (layer == 0 && (s->time || s->context))
            y = hl_add(b->g, y, hl_builder_offset(b, "conditioner.offset", s->hidden, false, half));
        y = b->term->activation(b->g, y);
        in = s->hidden;
    }
    y = hl_builder_dense(b, "conditioner.out", y, hl_size_mul(count, s->features), in, false);
    return hl_reshape(b->g, y, 2, (size_t[]){ count, s->features });
}

static hl_node coupling_build(hl_builder *b)
{
    const hl_net_spec *s = &b->term->spec;
    size_t half = s->dim / 2;
    if (half == 0)
        return hl_builder_place(b, "conditioner.first", s->features, 1);
    hl_node second = others(b, half);
    hl_node first = hl_builder_param(b, "conditioner.first", 2, (size_t[]){ half, s->features }, 1);
    return hl_concat(b->g, 2, (hl_node[]){ first, second }, 0);
}

const hl_conditioner hl_conditioner_coupling = { .build = coupling_build, .triangular = true, .hidden_above = 1 };

static hl_node none_build(hl_builder *b)
{
    return hl_builder_place(b, "conditioner.first", b->term->spec.features, 1);
}

const hl_conditioner hl_conditioner_none = { .build = none_build, .triangular = true, .hidden_above = SIZE_MAX };
