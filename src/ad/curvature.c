/* curvature.c - curvature propagation (Martens, Sutskever and Swersky, 2012): an unbiased estimate of a Hessian of rank one.
 *
 * With G the gradient, J the Jacobian of a node by its inputs and M = G . (second derivatives of the node), the Hessian H of
 * y by the values at any stage of the graph goes down as
 *
 *   H_in = J' H_out J + M
 *
 * One walk down carries G and two vectors T, U with E[T U'] = H: both go down as G does, T_in = J' T_out + a, U_in = J' U_out
 * + b, with random a, b of zero mean, independent of all others, and E[a b'] = M. From random signs v and w:
 *
 *   a function of one value    a = s v,          b = v M / s
 *   a product of p and q       a = s (v + w, v - w),  b = G / (2 s) (v - w, v + w),  as M = (0, G; G, 0)
 *
 * Any s gives the right mean; s = sqrt |M| gives the least noise, and by stop() its own slope, infinite at M = 0, stays out of
 * derivatives of the estimate, whose mean is right as well. */
#include "hollow/diff.h"
#include "op/op.h"

static const double least = 1e-6; /* of |M| in s */

enum { GRADIENT, T, U, WAYS };
enum { ACTIVE = 1, NEEDED = 2 };

typedef enum bend { STRAIGHT, FUNCTION, SQUARE, PRODUCT, UNKNOWN } bend;

typedef struct walk {
    hl_graph *g;
    size_t count;
    uint8_t *flags;
    hl_node *cotangent[WAYS], *scratch; /* [count + 1]; one for each input of a node */
    hl_node noise;
    size_t used; /* values of it */
} walk;

/* What depends on x, and what y is made of. */
static void mark(const hl_graph *g, size_t count, hl_node y, hl_node x, uint8_t *flags)
{
    flags[x] = ACTIVE;
    for (size_t n = 1; n <= count; n++)
        for (int i = 0; i < g->node[n].inputs && g->node[n].op->jet_kind != HL_JET_ZERO; i++)
            flags[n] |= flags[g->node[n].in[i]] & ACTIVE;
    flags[y] |= NEEDED;
    for (size_t n = count; n >= 1; n--)
        for (int i = 0; flags[n] & NEEDED && i < g->node[n].inputs; i++)
            flags[g->node[n].in[i]] |= NEEDED;
}

/* How node n depends on those of its inputs that move. */
static bend bend_of(const walk *w, const hl_node_data *d)
{
    const hl_op *op = d->op;
    int moving = 0;
    for (int i = 0; i < d->inputs; i++)
        moving += w->flags[d->in[i]] & ACTIVE;
    switch (op->bend) {
    case HL_BEND_STRAIGHT:
        return STRAIGHT;
    case HL_BEND_BILINEAR:
        return moving == 1 ? STRAIGHT : UNKNOWN;
    case HL_BEND_PRODUCT:
        return moving == 1 ? STRAIGHT : d->in[0] == d->in[1] ? SQUARE : PRODUCT;
    case HL_BEND_QUOTIENT:
        return w->flags[d->in[1]] & ACTIVE ? UNKNOWN : STRAIGHT;
    case HL_BEND_DEFAULT:
        break;
    }
    if (op->jet_kind == HL_JET_LINEAR || (op->jet_kind == HL_JET_BILINEAR && moving == 1))
        return STRAIGHT;
    return op->kind == HL_KIND_UNARY ? FUNCTION : UNKNOWN;
}

/* The next random signs, as many as a node has values and of its shape. */
static hl_node draw(walk *w, const hl_shape *shape)
{
    size_t size = hl_shape_size(shape), from = w->used;
    w->used += size;
    return hl_reshape(w->g, hl_slice(w->g, w->noise, 0, from, size), shape->rank, shape->dim);
}

static void add(walk *w, int way, hl_node to, hl_node c)
{
    hl_node *at = &w->cotangent[way][to];
    if (c != HL_NONE)
        *at = hl_accumulate(w->g, *at, hl_broadcast_shape(w->g, c, &w->g->node[to].shape));
}

/* s = sqrt(|m| + least), fixed. */
static hl_node spread(hl_graph *g, hl_node m)
{
    return hl_stop(g, hl_sqrt(g, hl_add(g, hl_abs(g, m), hl_const(g, least))));
}

/* The second derivative of a function of one value, by its Taylor rule; HL_NONE is zero. */
static hl_node second(hl_graph *g, hl_node n, const hl_node_data *d)
{
    hl_node x[3] = { d->in[0], hl_constant_like(g, 1, d->in[0]), HL_NONE }, y[3] = { n };
    const hl_node *rows[] = { x };
    y[1] = d->op->jet(g, n, 1, rows, y);
    y[2] = d->op->jet(g, n, 2, rows, y);
    return y[2] == HL_NONE ? HL_NONE : hl_scale(g, 2, y[2]);
}

/* The node's own curvature. */
static void inject(walk *w, hl_node n, const hl_node_data *d, bend kind)
{
    hl_graph *g = w->g;
    hl_node gradient = w->cotangent[GRADIENT][n], v = draw(w, &d->shape);
    if (kind == PRODUCT) {
        hl_node other = draw(w, &d->shape), half = hl_scale(g, 0.5, gradient), s = spread(g, half);
        hl_node sum = hl_add(g, v, other), gap = hl_sub(g, v, other), b = hl_div(g, half, s);
        add(w, T, d->in[0], hl_mul(g, s, sum));
        add(w, T, d->in[1], hl_mul(g, s, gap));
        add(w, U, d->in[0], hl_mul(g, b, gap));
        add(w, U, d->in[1], hl_mul(g, b, sum));
        return;
    }
    hl_node m = kind == SQUARE ? hl_scale(g, 2, gradient) : hl_product(g, gradient, second(g, n, d));
    if (m == HL_NONE)
        return;
    hl_node s = spread(g, m);
    add(w, T, d->in[0], hl_mul(g, s, v));
    add(w, U, d->in[0], hl_mul(g, hl_div(g, m, s), v));
}

static void step(walk *w, hl_node n)
{
    hl_graph *g = w->g;
    const hl_node_data d = g->node[n]; /* a copy: rules add nodes */
    bend kind = bend_of(w, &d);
    for (int way = 0; way < WAYS; way++) {
        if (w->cotangent[way][n] == HL_NONE)
            continue;
        for (int i = 0; i < d.inputs; i++)
            w->scratch[i] = HL_NONE;
        d.op->vjp(g, n, d.in, w->cotangent[way][n], w->scratch);
        for (int i = 0; i < d.inputs; i++)
            if (w->flags[d.in[i]] & ACTIVE)
                add(w, way, d.in[i], w->scratch[i]);
    }
    if (kind != STRAIGHT)
        inject(w, n, &d, kind);
}

/* Does node n take part in the walk? */
static bool visited(const walk *w, size_t n)
{
    return w->flags[n] == (ACTIVE | NEEDED) && w->g->node[n].inputs > 0;
}

/* The noise that the walk takes, or 0 if there is a node it does not know. */
static size_t noise_of(walk *w)
{
    size_t total = 0;
    for (size_t n = 1; n <= w->count; n++) {
        const hl_node_data *d = &w->g->node[n];
        bend kind = visited(w, n) ? bend_of(w, d) : STRAIGHT;
        if (kind == UNKNOWN) {
            hl_graph_fail(w->g, HL_ERR_UNSUPPORTED, "hl_curvature: no rule for %s", d->op->name);
            return 0;
        }
        total += kind == STRAIGHT ? 0 : (kind == PRODUCT ? 2 : 1) * hl_shape_size(&d->shape);
    }
    return total;
}

static hl_status start(walk *w, hl_node y, hl_node x)
{
    hl_graph *g = w->g;
    size_t widest = 1;
    if (!hl_graph_node(g, y) || !hl_graph_node(g, x) || hl_node_size(g, y) != 1 || !hl_node_batched(g, x))
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_curvature: y must be one value and x have values for each row"),
               g->status;
    w->count = g->count;
    for (size_t n = 1; n <= w->count; n++)
        widest = (size_t)g->node[n].inputs > widest ? (size_t)g->node[n].inputs : widest;
    w->flags = hl_calloc(g->ctx, w->count + 1, 1);
    w->scratch = hl_calloc(g->ctx, widest, sizeof *w->scratch);
    bool good = w->flags && w->scratch;
    for (int way = 0; way < WAYS; way++) {
        w->cotangent[way] = hl_calloc(g->ctx, w->count + 1, sizeof(hl_node));
        good = good && w->cotangent[way];
    }
    if (!good)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the derivatives"), g->status;
    mark(g, w->count, y, x, w->flags);
    w->flags[x] = (uint8_t)(w->flags[x] & ~(unsigned)NEEDED); /* the walk ends there */
    return g->status;
}

static void finish(walk *w)
{
    hl_free(w->g->ctx, w->flags);
    hl_free(w->g->ctx, w->scratch);
    for (int way = 0; way < WAYS; way++)
        hl_free(w->g->ctx, w->cotangent[way]);
}

hl_status hl_curvature_noise(hl_graph *g, hl_node y, hl_node x, size_t *size)
{
    if (!g || !size)
        return HL_ERR_INVALID;
    walk w = { .g = g };
    hl_status status = start(&w, y, x);
    if (status == HL_OK)
        *size = noise_of(&w);
    finish(&w);
    return g->status;
}

hl_status hl_curvature(hl_graph *g, hl_node y, hl_node x, hl_node noise, hl_node *diagonal)
{
    if (!g || !diagonal)
        return HL_ERR_INVALID;
    walk w = { .g = g, .noise = noise };
    hl_status status = start(&w, y, x);
    size_t size = status == HL_OK ? noise_of(&w) : 0;
    if (g->status == HL_OK && size &&
        (!hl_graph_node(g, noise) || hl_node_rank(g, noise) != 1 || hl_node_size(g, noise) != size))
        hl_graph_fail(g, HL_ERR_SHAPE, "hl_curvature: the noise must be [%zu]", size);
    if (g->status == HL_OK) {
        hl_node fresh = g->fresh;
        g->fresh = fresh ? fresh : (hl_node)w.count + 1;
        add(&w, GRADIENT, y, hl_const(g, 1));
        for (size_t n = w.count; n >= 1 && g->status == HL_OK; n--)
            if (visited(&w, n) && w.cotangent[GRADIENT][n] > 0)
                step(&w, (hl_node)n);
        hl_node product = hl_product(g, w.cotangent[T][x], w.cotangent[U][x]);
        *diagonal = product == HL_NONE ? hl_constant_like(g, 0, x) : product;
        g->fresh = fresh;
    }
    finish(&w);
    return g->status;
}
