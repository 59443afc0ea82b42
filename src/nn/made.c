/* made.c - conditioner "made": two masked networks, one sees x_1..x_{i-1}, the other x_{i+1}..x_d; h_i is both outputs side
 * by side. Conditioner "autoregressive" is the first of them alone.
 *
 * Every hidden unit has a degree m, and degrees are sorted, so each mask is an interval. In the forward network a unit of
 * degree m sees x_1..x_m and units of degree <= m, and output i sees units of degree < i. In the backward network a unit of
 * degree m sees x_{m+1}..x_d and units of degree >= m, and output i sees units of degree >= i. Degrees run over 1..d-1; with
 * time or context also over the value (0 forward, d backward) that sees no x at all, so that every h_i may depend on them. */
#include <stdio.h>

#include "nn/net.h"

typedef struct made {
    hl_builder *b;
    bool backward;
    size_t d, low, count; /* degrees low .. low + count - 1 */
    size_t hidden, units; /* units: values of each h_i that this network gives */
    uint32_t *lo, *hi;    /* scratch: [max(hidden, d * units)] */
} made;

static hl_status made_check(hl_context *ctx, const hl_net_spec *s)
{
    if (s->features % 2)
        return hl_fail(ctx, HL_ERR_INVALID,
                       "features is %zu; conditioner made needs an even number, half per direction", s->features);
    return HL_OK;
}

/* Degree of hidden unit u: `count` degrees spread evenly over the units. */
static size_t degree(const made *m, size_t u)
{
    return m->low + u * m->count / m->hidden;
}

/* Number of hidden units of degree < value: u count / hidden < value - low. */
static size_t units_below(const made *m, size_t value)
{
    size_t n = value > m->low ? ((value - m->low) * m->hidden + m->count - 1) / m->count : 0;
    return n < m->hidden ? n : m->hidden;
}

/* Unit n sees [lo, hi): everything of order < bound forward, >= bound backward, of `size` in all. */
static void see(const made *m, size_t n, size_t bound, size_t size)
{
    m->lo[n] = (uint32_t)(m->backward ? bound : 0);
    m->hi[n] = (uint32_t)(m->backward ? size : bound);
}

static void layer_name(const made *m, char *name, size_t size, int layer)
{
    snprintf(name, size, "conditioner.%s.%d", m->backward ? "backward" : "forward", layer);
}

/* Hidden layer: from x (layer 0) or from the layer before. */
static hl_node hidden_layer(const made *m, hl_node y, int layer)
{
    char name[48];
    size_t in = layer ? m->hidden : m->d;
    for (size_t u = 0; u < m->hidden; u++) {
        size_t g = degree(m, u);
        see(m, u, layer == 0 ? g : units_below(m, m->backward ? g : g + 1), in);
    }
    layer_name(m, name, sizeof name, layer);
    hl_node z = hl_builder_masked(m->b, name, y, m->hidden, in, m->lo, m->hi);
    z = hl_update_masked(m->b, z, y, layer > 0, m->lo, m->hi);
    if (layer == 0)
        z = hl_add(m->b->g, z, hl_builder_offset(m->b, name, m->hidden, false, m->d));
    else {
        char bias[64];
        snprintf(bias, sizeof bias, "%s.bias", name);
        z = hl_add(m->b->g, z, hl_builder_param(m->b, bias, 1, &m->hidden, 0));
    }
    return m->b->term->activation(m->b->g, z);
}

/* Output: `units` values for each dimension i (1-based), from the last hidden layer, or from x if there is none. */
static hl_node output_layer(const made *m, hl_node y, int layer)
{
    char name[48], bias[64];
    size_t out = m->d * m->units, in = layer ? m->hidden : m->d;
    for (size_t i = 1; i <= m->d; i++) {
        size_t bound = layer == 0 ? (m->backward ? i : i - 1) : units_below(m, i);
        for (size_t k = 0; k < m->units; k++)
            see(m, (i - 1) * m->units + k, bound, in);
    }
    layer_name(m, name, sizeof name, layer);
    snprintf(bias, sizeof bias, "%s.bias", name);
    hl_node z = hl_builder_masked(m->b, name, y, out, in, m->lo, m->hi);
    z = hl_add(m->b->g, z, hl_builder_param(m->b, bias, 1, &out, 0));
    z = hl_reshape(m->b->g, z, 2, (size_t[]){ m->d, m->units });
    return hl_update_outputs(m->b, z, y, m->lo, m->hi);
}

static hl_node direction(hl_builder *b, bool backward, size_t units, uint32_t *lo, uint32_t *hi)
{
    const hl_net_spec *s = &b->term->spec;
    bool extra = s->time || s->context;
    int layers = s->hidden_layers < 0 ? 0 : s->hidden_layers;
    made m = { .b = b, .backward = backward, .d = s->dim, .hidden = s->hidden, .units = units, .lo = lo, .hi = hi };
    m.low = extra && !backward ? 0 : 1;
    m.count = s->dim - 1 + extra;
    if (m.count == 0)
        m.count = 1; /* one dimension, nothing to see: units that no output sees */
    hl_node y = b->x;
    for (int layer = 0; layer < layers; layer++)
        y = hidden_layer(&m, y, layer);
    return output_layer(&m, y, layers);
}

/* One or both networks, h_i being all their outputs side by side. */
static hl_node directions(hl_builder *b, int count)
{
    const hl_net_spec *s = &b->term->spec;
    size_t units = s->features / (size_t)count, most = hl_size_mul(s->dim, units);
    most = most < s->hidden ? s->hidden : most;
    uint32_t *lo = hl_calloc(b->g->ctx, most, 2 * sizeof *lo);
    hl_node part[2] = { HL_NONE };
    if (!lo)
        return hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the masks");
    for (int i = 0; i < count; i++)
        part[i] = direction(b, i == 1, units, lo, lo + most);
    hl_free(b->g->ctx, lo);
    return count == 1 ? part[0] : hl_concat(b->g, count, part, 1);
}

static hl_node made_build(hl_builder *b)
{
    return directions(b, 2);
}

const hl_conditioner hl_conditioner_made = { .check = made_check, .build = made_build };

static hl_node autoregressive_build(hl_builder *b)
{
    return directions(b, 1);
}

const hl_conditioner hl_conditioner_autoregressive = { .build = autoregressive_build, .triangular = true };
