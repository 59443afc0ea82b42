/* update.c - a hollow network whose weights are updated for each row: layer by layer
 *
 *   z <- z + b + U (V y) / (r sqrt(inputs)),   U and V of rank r with entries in (-1, 1)
 *
 * under the layer's own mask, so that h_i does not see x_i with the update either. A masked product of rank r is r sums over the
 * inputs that a unit sees, V_k y: products with ones under the mask. All values come from one vector, in the order of the layers. */
#include <math.h>

#include "nn/net.h"

/* The next values, in this shape. */
static hl_node take(hl_builder *b, size_t rows, size_t columns)
{
    hl_update *u = b->update;
    size_t at = u->size, count = hl_size_mul(rows, columns);
    u->size = hl_size_add(u->size, count);
    if (u->values == HL_NONE)
        return HL_NONE;
    hl_node part = hl_slice(b->g, u->values, 0, at, count);
    return rows == 1 ? part : hl_reshape(b->g, part, 2, (size_t[]){ rows, columns });
}

/* The same, each in (-1, 1). */
static hl_node take_bounded(hl_builder *b, size_t rows, size_t columns)
{
    hl_node values = take(b, rows, columns);
    if (values == HL_NONE)
        return HL_NONE;
    values = hl_tanh(b->g, values);
    return rows == 1 ? hl_reshape(b->g, values, 2, (size_t[]){ 1, columns }) : values;
}

static hl_node scaled(hl_builder *b, hl_node low, size_t in)
{
    return hl_scale(b->g, 1 / ((double)b->update->rank * sqrt((double)(in ? in : 1))), low);
}

/* Sums of y [rank, in] over what each of `out` units sees: [rank, out]. */
static hl_node sums(hl_builder *b, hl_node y, size_t out, size_t in, size_t stride, const uint32_t *lo,
                    const uint32_t *hi)
{
    hl_context *ctx = b->g->ctx;
    if (!hl_graph_node(b->g, y))
        return HL_BAD;
    double *ones = hl_calloc(ctx, hl_size_mul(out, in), sizeof *ones);
    uint32_t *bound = hl_calloc(ctx, out, 2 * sizeof *bound);
    hl_node sum = HL_BAD;
    for (size_t n = 0; ones && bound && n < out; n++) {
        bound[n] = lo[n * stride];
        bound[out + n] = hi[n * stride];
        for (size_t k = bound[n]; k < bound[out + n]; k++)
            ones[n * in + k] = 1;
    }
    if (ones && bound)
        sum = hl_linear_masked(b->g, y, hl_const_array(b->g, 2, (size_t[]){ out, in }, ones), bound, bound + out);
    else
        hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the masks");
    hl_free(ctx, ones);
    hl_free(ctx, bound);
    return sum;
}

hl_node hl_update_masked(hl_builder *b, hl_node z, hl_node y, bool bias, const uint32_t *lo, const uint32_t *hi)
{
    if (!b->update)
        return z;
    size_t out = hl_node_size(b->g, z), in = hl_node_size(b->g, y), rank = b->update->rank;
    hl_node shift = bias ? take(b, 1, out) : HL_NONE;
    hl_node u = take_bounded(b, rank, out), v = take_bounded(b, rank, in);
    if (u == HL_NONE)
        return z;
    hl_node seen = sums(b, hl_mul(b->g, v, y), out, in, 1, lo, hi);
    z = hl_add(b->g, z, scaled(b, hl_sum(b->g, hl_mul(b->g, u, seen), 0), in));
    return bias ? hl_add(b->g, z, shift) : z;
}

hl_node hl_update_outputs(hl_builder *b, hl_node z, hl_node y, const uint32_t *lo, const uint32_t *hi)
{
    if (!b->update)
        return z;
    size_t dim = b->net->dim, units = hl_node_size(b->g, z) / dim, in = hl_node_size(b->g, y), rank = b->update->rank;
    hl_node shift = take(b, 1, units), u = take_bounded(b, rank, units), v = take_bounded(b, rank, in);
    if (u == HL_NONE)
        return z;
    hl_node seen = sums(b, hl_mul(b->g, v, y), dim, in, units, lo, hi);
    hl_node low = hl_matmul(b->g, hl_permute(b->g, seen, (int[]){ 1, 0 }), u);
    return hl_add(b->g, hl_add(b->g, z, scaled(b, low, in)), shift);
}

hl_node hl_update_shared(hl_builder *b, hl_node z, hl_node y, hl_node x, bool last)
{
    if (!b->update)
        return z;
    size_t dim = b->net->dim, units = hl_node_size(b->g, z) / dim, in = hl_node_size(b->g, y) / dim;
    size_t rank = b->update->rank;
    hl_node shift = x == HL_NONE && !last ? take(b, 1, units) : HL_NONE;
    hl_node u = last ? take_bounded(b, dim, rank) : take_bounded(b, rank, units), v = take_bounded(b, in, rank);
    hl_node of_x = x == HL_NONE ? HL_NONE : take_bounded(b, dim, rank);
    if (u == HL_NONE)
        return z;
    hl_node along = hl_matmul(b->g, y, v); /* [dim, rank] */
    if (x != HL_NONE)
        along = hl_add(b->g, along, hl_mul(b->g, x, of_x));
    hl_node low = last ? hl_reshape(b->g, hl_sum(b->g, hl_mul(b->g, along, u), 1), 2, (size_t[]){ dim, 1 })
                       : hl_matmul(b->g, along, u);
    z = hl_add(b->g, z, scaled(b, low, in));
    return shift == HL_NONE ? z : hl_add(b->g, z, shift);
}

hl_status hl_net_update_size(const hl_net *net, size_t rank, size_t *size)
{
    hl_graph *g = NULL;
    hl_update update = { .rank = rank, .values = HL_NONE };
    hl_node *param = hl_calloc(net->ctx, net->params, sizeof *param);
    hl_status status = param ? hl_graph_create(net->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK) {
        hl_net_nodes n = { .x = hl_input(g, "x", 1, &net->dim), .t = HL_NONE, .context = HL_NONE, .param = param };
        if (net->time)
            n.t = hl_input(g, "t", 0, NULL);
        if (net->context)
            n.context = hl_input(g, "context", 1, &net->context);
        status = hl_net_build_updated(net, g, 0, HL_TAYLOR, &n, &update);
    }
    *size = update.size;
    hl_graph_free(g);
    hl_free(net->ctx, param);
    return status;
}
