/* vjp.c - reverse mode: from outputs and their cotangents to the cotangents of inputs, as graph.
 *
 * One walk from the highest node down. A node matters if it depends on some x without going through a held node. Here, and
 * nowhere else, a cotangent is brought to its node's kind: summed over the rows for a shared node, stretched for a batched
 * one. */
#include <string.h>

#include "hollow/diff.h"
#include "op/op.h"

enum { ACTIVE = 1, HELD = 2 };

/* Mark every node that depends on one of x and is not cut off by a held node. A held node that is itself one of x is active
 * but passes nothing on. */
static void mark(const hl_graph *g, size_t count, size_t nx, const hl_node *x, const hl_hold *hold, uint8_t *flags)
{
    for (size_t h = 0; hold && h < hold->count; h++)
        flags[hold->nodes[h]] = HELD;
    for (size_t j = 0; j < nx; j++)
        flags[x[j]] |= ACTIVE;
    for (size_t n = 1; n <= count; n++) {
        const hl_node_data *d = &g->node[n];
        if (d->op->jet_kind == HL_JET_ZERO || flags[n] & HELD)
            continue;
        for (int i = 0; i < d->inputs; i++)
            flags[n] |= flags[d->in[i]] & ACTIVE;
    }
}

/* Bring a cotangent to the node's shape and kind. */
static hl_node fit_cotangent(hl_graph *g, hl_node gx, hl_node x)
{
    const hl_node_data *d = hl_graph_node(g, x), *c = hl_graph_node(g, gx);
    if (!d || !c)
        return HL_BAD;
    return c->shape.batched && !d->shape.batched ? hl_sum_to(g, gx, &d->shape) : hl_broadcast_shape(g, gx, &d->shape);
}

static hl_status check_nodes(hl_graph *g, const char *what, size_t n, const hl_node *nodes)
{
    for (size_t i = 0; i < n; i++)
        if (!nodes || !hl_graph_node(g, nodes[i]))
            return hl_graph_fail(g, HL_ERR_INVALID, "%s: entry %zu is not a node of this graph", what, i), g->status;
    return HL_OK;
}

static void seed(hl_graph *g, size_t ny, const hl_node *y, const hl_node *gy, hl_node *cotangent)
{
    for (size_t i = 0; i < ny; i++) {
        hl_shape shape = g->node[y[i]].shape;
        hl_node c = gy && gy[i] != HL_NONE ? gy[i] : hl_const(g, 1);
        shape.batched = hl_node_batched(g, c);
        c = hl_broadcast_shape(g, c, &shape);
        cotangent[y[i]] = hl_accumulate(g, cotangent[y[i]], fit_cotangent(g, c, y[i]));
    }
}

/* Hand the cotangent of node n down to its inputs. `scratch` holds one node per input. */
static void pull_back(hl_graph *g, hl_node n, const uint8_t *flags, hl_node *cotangent, hl_node *scratch)
{
    const hl_node_data d = g->node[n]; /* a copy: rules add nodes */
    for (int i = 0; i < d.inputs; i++)
        scratch[i] = HL_NONE;
    d.op->vjp(g, n, d.in, cotangent[n], scratch);
    for (int i = 0; i < d.inputs; i++)
        if (scratch[i] != HL_NONE && flags[d.in[i]] & ACTIVE)
            cotangent[d.in[i]] = hl_accumulate(g, cotangent[d.in[i]], fit_cotangent(g, scratch[i], d.in[i]));
}

hl_status hl_vjp(hl_graph *g, size_t ny, const hl_node *y, const hl_node *gy, size_t nx, const hl_node *x,
                 const hl_hold *hold, hl_node *gx)
{
    if (!g || !y || !x || !gx)
        return HL_ERR_INVALID;
    if (check_nodes(g, "hl_vjp: y", ny, y) != HL_OK || check_nodes(g, "hl_vjp: x", nx, x) != HL_OK ||
        (hold && check_nodes(g, "hl_vjp: hold", hold->count, hold->nodes) != HL_OK))
        return g->status;
    size_t count = g->count;
    int widest = 1;
    for (size_t n = 1; n <= count; n++)
        widest = g->node[n].inputs > widest ? g->node[n].inputs : widest;
    uint8_t *flags = hl_calloc(g->ctx, count + 1, 1);
    hl_node *cotangent = hl_calloc(g->ctx, count + 1, sizeof *cotangent);
    hl_node *scratch = hl_calloc(g->ctx, (size_t)widest, sizeof *scratch);
    if (!flags || !cotangent || !scratch) {
        hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the derivatives");
    } else {
        hl_node fresh = g->fresh;
        g->fresh = fresh ? fresh : (hl_node)count + 1;
        mark(g, count, nx, x, hold, flags);
        seed(g, ny, y, gy, cotangent);
        for (size_t n = count; n >= 1; n--)
            if (flags[n] == ACTIVE && cotangent[n] > 0 && g->node[n].op->vjp)
                pull_back(g, (hl_node)n, flags, cotangent, scratch);
        for (size_t j = 0; j < nx; j++)
            gx[j] = cotangent[x[j]] != HL_NONE ? cotangent[x[j]] : hl_constant_like(g, 0, x[j]);
        g->fresh = fresh;
    }
    hl_free(g->ctx, flags);
    hl_free(g->ctx, cotangent);
    hl_free(g->ctx, scratch);
    return g->status;
}
