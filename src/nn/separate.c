/* separate.c - conditioner "separate": every column has a dense network of its own, which sees all other columns.
 *
 * In few columns most units of "made" see little: of two columns half of its units and half of every h_i depend on no x at all.
 * Here each column has `hidden` units in every layer. x without x_i is two intervals, x_1..x_{i-1} and x_{i+1}..x_d, and so the
 * first layer is two masked products; later layers are products of [hidden] by [units, hidden] for each column. */
#include <stdio.h>

#include "nn/net.h"

/* w x for the `units` units of every column, [dim * units]: column i sees x before it or after it. */
static hl_node product(hl_builder *b, size_t units, bool after, uint32_t *lo, uint32_t *hi)
{
    size_t d = b->term->spec.dim;
    for (size_t u = 0; u < d * units; u++) {
        lo[u] = (uint32_t)(after ? u / units + 1 : 0);
        hi[u] = (uint32_t)(after ? d : u / units);
    }
    return hl_builder_masked(b, after ? "conditioner.0.after" : "conditioner.0.before", b->x, d * units, d, lo, hi);
}

/* From x, t and context to [dim, units]. */
static hl_node first_layer(hl_builder *b, size_t units)
{
    size_t d = b->term->spec.dim, count = hl_size_mul(d, units);
    uint32_t *lo = hl_calloc(b->g->ctx, count, 2 * sizeof *lo);
    if (!lo)
        return hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the masks");
    hl_node z = product(b, units, false, lo, lo + count);
    z = hl_add(b->g, z, product(b, units, true, lo, lo + count));
    hl_free(b->g->ctx, lo);
    z = hl_reshape(b->g, z, 2, (size_t[]){ d, units });
    /* The offset's bias begins at 0, where all units of a fresh network would bend at x = 0. */
    z = hl_add(b->g, z, hl_builder_place(b, "conditioner.0.place", units, 1));
    return hl_add(b->g, z, hl_builder_offset(b, "conditioner.0", units, true, d));
}

/* From [dim, hidden] to [dim, units]. */
static hl_node later_layer(hl_builder *b, int layer, hl_node y, size_t units)
{
    const hl_net_spec *s = &b->term->spec;
    char weight[48], place[48];
    snprintf(weight, sizeof weight, "conditioner.%d.weight", layer);
    snprintf(place, sizeof place, "conditioner.%d.bias", layer);
    hl_node w = hl_builder_param(b, weight, 3, (size_t[]){ s->dim, units, s->hidden }, s->hidden);
    return hl_add(b->g, hl_linear_grouped(b->g, y, w), hl_builder_place(b, place, units, 0));
}

static hl_node separate_build(hl_builder *b)
{
    const hl_net_spec *s = &b->term->spec;
    int layers = s->hidden_layers < 0 ? 0 : s->hidden_layers;
    hl_node y = first_layer(b, layers ? s->hidden : s->features);
    for (int layer = 1; layer <= layers; layer++)
        y = later_layer(b, layer, b->term->activation(b->g, y), layer < layers ? s->hidden : s->features);
    return y;
}

const hl_conditioner hl_conditioner_separate = { .build = separate_build };
