/* jet.c - Taylor mode: push a curve x(e) = x + c_1 e + c_2 e^2 + ... through the graph and get the curve of y.
 *
 * One walk up. Each node's coefficients follow from its inputs' by its row's rule; HL_NONE is a zero that costs nothing.
 * Order 1 is the Jacobian-vector product. The work is O(order^2) per node. */
#include "hollow/diff.h"
#include "op/op.h"

#define MAX_ORDER 63

typedef struct jet_state {
    hl_graph *g;
    int order;
    hl_node *c;         /* [count + 1][order + 1]; c[n][0] is n itself */
    const hl_node **in; /* coefficient rows of a node's inputs */
    hl_node *args;      /* inputs of an emitted node */
} jet_state;

static hl_node *row(const jet_state *s, hl_node n)
{
    return s->c + (size_t)n * (size_t)(s->order + 1);
}

/* Coefficient for an op that sums over rows: it must be batched if the node it belongs to is. */
static hl_node as_batched(hl_graph *g, hl_node c, hl_node like)
{
    return c == HL_NONE ? HL_NONE : hl_broadcast_shape(g, c, &g->node[like].shape);
}

/* y_k = op(x_k, ...); absent inputs are zeros if any is present. */
static hl_node linear_coefficient(const jet_state *s, const hl_node_data *d, int k)
{
    bool any = false;
    for (int i = 0; i < d->inputs; i++) {
        s->args[i] = s->in[i][k];
        any = any || s->args[i] != HL_NONE;
    }
    if (!any)
        return HL_NONE;
    for (int i = 0; i < d->inputs; i++)
        if (s->args[i] == HL_NONE || d->inputs > 1 || d->op->over_rows)
            s->args[i] = as_batched(s->g, s->args[i] == HL_NONE ? hl_const(s->g, 0) : s->args[i], d->in[i]);
    return hl_graph_add(s->g, d->op, d->inputs, s->args, &d->attr);
}

static hl_node bilinear_coefficient(const jet_state *s, const hl_node_data *d, int k)
{
    hl_node sum = HL_NONE;
    for (int j = 0; j <= k; j++) {
        hl_node pair[2] = { s->in[0][j], s->in[1][k - j] };
        if (pair[0] == HL_NONE || pair[1] == HL_NONE)
            continue;
        for (int i = 0; i < 2 && d->op->over_rows; i++)
            pair[i] = as_batched(s->g, pair[i], d->in[i]);
        sum = hl_accumulate(s->g, sum, hl_graph_add(s->g, d->op, 2, pair, &d->attr));
    }
    return sum;
}

static void push(const jet_state *s, hl_node n)
{
    const hl_node_data d = s->g->node[n]; /* a copy: rules add nodes */
    hl_node *y = row(s, n);
    bool moves = false;
    for (int i = 0; i < d.inputs; i++) {
        s->in[i] = row(s, d.in[i]);
        for (int k = 1; k <= s->order; k++)
            moves = moves || s->in[i][k] != HL_NONE;
    }
    for (int k = 1; k <= s->order && moves; k++) {
        hl_node c = HL_NONE;
        switch (d.op->jet_kind) {
        case HL_JET_ZERO:
            break;
        case HL_JET_LINEAR:
            c = linear_coefficient(s, &d, k);
            break;
        case HL_JET_BILINEAR:
            c = bilinear_coefficient(s, &d, k);
            break;
        case HL_JET_RULE:
            c = d.op->jet(s->g, n, k, s->in, y);
            break;
        }
        y[k] = c;
    }
}

/* The seeds' coefficients, stretched to their nodes' dimensions. */
static void seed(const jet_state *s, size_t nx, const hl_node *x, const hl_node *cx)
{
    for (size_t j = 0; j < nx; j++)
        for (int k = 1; k <= s->order; k++) {
            hl_node c = cx[j * (size_t)s->order + (size_t)k - 1];
            hl_shape shape = s->g->node[x[j]].shape;
            shape.batched = hl_node_batched(s->g, c);
            row(s, x[j])[k] = c == HL_NONE ? HL_NONE : hl_broadcast_shape(s->g, c, &shape);
        }
}

enum { FIXED = 1, NEEDED = 2 };

/* What the y are made of. The rest, such as the results of earlier jets, stays out: d jets one after the other, each
 * through the results of those before it, would make 2^d times the graph. */
static void mark_needed(const hl_graph *g, size_t count, size_t ny, const hl_node *y, uint8_t *flags)
{
    for (size_t i = 0; i < ny; i++)
        flags[y[i]] |= NEEDED;
    for (size_t n = count; n >= 1; n--)
        for (int i = 0; flags[n] & NEEDED && i < g->node[n].inputs; i++)
            flags[g->node[n].in[i]] |= NEEDED;
}

static hl_status run(jet_state *s, size_t count, size_t nx, const hl_node *x, const hl_node *cx, uint8_t *flags,
                     const hl_hold *hold)
{
    hl_node fresh = s->g->fresh;
    s->g->fresh = fresh ? fresh : (hl_node)count + 1;
    for (size_t n = 1; n <= count; n++)
        row(s, (hl_node)n)[0] = (hl_node)n;
    for (size_t h = 0; hold && h < hold->count; h++)
        flags[hold->nodes[h]] |= FIXED;
    for (size_t j = 0; j < nx; j++)
        flags[x[j]] |= FIXED;
    seed(s, nx, x, cx);
    for (size_t n = 1; n <= count && s->g->status == HL_OK; n++)
        if (flags[n] == NEEDED)
            push(s, (hl_node)n);
    s->g->fresh = fresh;
    return s->g->status;
}

static hl_status check(hl_graph *g, int order, size_t nx, const hl_node *x, const hl_node *cx, const hl_hold *hold,
                       size_t ny, const hl_node *y)
{
    if (order < 1 || order > MAX_ORDER)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_jet: order %d is not in 1..%d", order, MAX_ORDER), g->status;
    for (size_t j = 0; j < nx; j++)
        if (!hl_graph_node(g, x[j]))
            return hl_graph_fail(g, HL_ERR_INVALID, "hl_jet: x %zu is not a node of this graph", j), g->status;
    for (size_t j = 0; j < nx * (size_t)order; j++)
        if (cx[j] != HL_NONE && !hl_graph_node(g, cx[j]))
            return hl_graph_fail(g, HL_ERR_INVALID, "hl_jet: coefficient %zu is not a node of this graph", j),
                   g->status;
    for (size_t i = 0; i < ny; i++)
        if (!hl_graph_node(g, y[i]))
            return hl_graph_fail(g, HL_ERR_INVALID, "hl_jet: y %zu is not a node of this graph", i), g->status;
    for (size_t h = 0; hold && h < hold->count; h++)
        if (!hold->nodes || !hl_graph_node(g, hold->nodes[h]))
            return hl_graph_fail(g, HL_ERR_INVALID, "hl_jet: held node %zu is not a node of this graph", h), g->status;
    return g->status;
}

hl_status hl_jet(hl_graph *g, int order, size_t nx, const hl_node *x, const hl_node *cx, const hl_hold *hold, size_t ny,
                 const hl_node *y, hl_node *cy)
{
    if (!g || !x || !cx || !y || !cy)
        return HL_ERR_INVALID;
    if (check(g, order, nx, x, cx, hold, ny, y) != HL_OK)
        return g->status;
    size_t count = g->count, widest = 2;
    for (size_t n = 1; n <= count; n++)
        widest = (size_t)g->node[n].inputs > widest ? (size_t)g->node[n].inputs : widest;
    jet_state s = { g, order, hl_calloc(g->ctx, hl_size_mul(count + 1, (size_t)order + 1), sizeof(hl_node)),
                    hl_calloc(g->ctx, widest, sizeof(hl_node *)), hl_calloc(g->ctx, widest, sizeof(hl_node)) };
    uint8_t *flags = hl_calloc(g->ctx, count + 1, 1);
    if (!s.c || !s.in || !s.args || !flags)
        hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the derivatives");
    else
        mark_needed(g, count, ny, y, flags);
    if (g->status == HL_OK && run(&s, count, nx, x, cx, flags, hold) == HL_OK)
        for (size_t i = 0; i < ny; i++)
            for (int k = 1; k <= order; k++)
                cy[i * (size_t)order + (size_t)k - 1] = row(&s, y[i])[k];
    hl_free(g->ctx, s.c);
    hl_free(g->ctx, s.in);
    hl_free(g->ctx, s.args);
    hl_free(g->ctx, flags);
    return g->status;
}

/* A derivative, perhaps zero, as a node like f. */
static hl_node or_zero(hl_graph *g, hl_node c, hl_node f)
{
    return c == HL_NONE ? hl_constant_like(g, 0, f) : hl_broadcast_shape(g, c, &g->node[f].shape);
}

/* One reverse sweep per order, each of the result of the one before. */
static void by_reverse(hl_graph *g, hl_node f, hl_node x, const hl_hold *hold, int order, hl_node *d)
{
    hl_node y = f;
    for (int k = 0; k < order && g->status == HL_OK; k++) {
        hl_vjp(g, 1, &y, NULL, 1, &x, hold, &d[k]);
        y = d[k];
    }
}

/* Along x + e: D^k is k! times the coefficient. */
static void by_taylor(hl_graph *g, hl_node f, hl_node x, const hl_hold *hold, int order, hl_node *d)
{
    hl_node seed_of[MAX_ORDER] = { hl_const(g, 1) };
    double factorial = 1;
    if (hl_jet(g, order, 1, &x, seed_of, hold, 1, &f, d) != HL_OK)
        return;
    for (int k = 0; k < order; k++) {
        factorial *= k + 1;
        d[k] = or_zero(g, d[k] == HL_NONE ? HL_NONE : hl_scale(g, factorial, d[k]), f);
    }
}

hl_status hl_dim_derivatives(hl_graph *g, hl_node f, hl_node x, const hl_hold *hold, int order, hl_diff_mode mode,
                             hl_node *d)
{
    if (!g || !d)
        return HL_ERR_INVALID;
    if (order < 1 || order > MAX_ORDER)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_dim_derivatives: order %d is not in 1..%d", order, MAX_ORDER),
               g->status;
    if (!hl_graph_node(g, f) || !hl_graph_node(g, x) || !hl_shape_equal(&g->node[f].shape, &g->node[x].shape))
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_dim_derivatives: f and x have different shapes"), g->status;
    if (mode != HL_TAYLOR && mode != HL_REVERSE)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_dim_derivatives: unknown mode %d", (int)mode), g->status;
    g->fresh = (hl_node)g->count + 1;
    (mode == HL_REVERSE ? by_reverse : by_taylor)(g, f, x, hold, order, d);
    g->fresh = 0;
    return g->status;
}
