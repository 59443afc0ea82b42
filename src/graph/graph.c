/* graph.c - the table of nodes.
 *
 * Nodes are only ever added, inputs before users, so the numbers are a topological order. A node equal to an older one
 * (same op, inputs and attributes) is the older one: common subexpressions never come into being. */
#include "graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

hl_status hl_graph_create(hl_context *ctx, hl_graph **graph)
{
    if (!ctx || !graph)
        return ctx ? hl_fail(ctx, HL_ERR_INVALID, "hl_graph_create: graph is NULL") : HL_ERR_INVALID;
    *graph = NULL;
    hl_graph *g = hl_calloc(ctx, 1, sizeof *g);
    if (!g)
        return HL_ERR_NOMEM;
    g->ctx = ctx;
    hl_arena_init(&g->arena, ctx);
    *graph = g;
    return HL_OK;
}

void hl_graph_free(hl_graph *g)
{
    if (!g)
        return;
    hl_context *ctx = g->ctx;
    hl_arena_free(&g->arena);
    hl_free(ctx, g->node);
    hl_free(ctx, g->table);
    hl_free(ctx, g->inputs);
    hl_free(ctx, g->params);
    hl_free(ctx, g);
}

hl_node hl_graph_fail(hl_graph *g, hl_status status, const char *format, ...)
{
    if (g->status == HL_OK) {
        va_list args;
        va_start(args, format);
        vsnprintf(g->message, sizeof g->message, format, args);
        va_end(args);
        g->status = status;
        hl_fail(g->ctx, status, "%s", g->message);
    }
    return HL_BAD;
}

hl_status hl_graph_status(const hl_graph *g)
{
    return g ? g->status : HL_ERR_INVALID;
}

size_t hl_graph_count(const hl_graph *g)
{
    return g ? g->count : 0;
}

const hl_node_data *hl_graph_node(const hl_graph *g, hl_node n)
{
    return g && n > 0 && (size_t)n <= g->count ? &g->node[n] : NULL;
}

bool hl_graph_through(const hl_graph *g, hl_node n)
{
    return g && g->fresh > 0 && n >= g->fresh;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccdu;
}

static uint64_t node_hash(const hl_op *op, int inputs, const hl_node *in, const hl_attr *a)
{
    uint64_t bits, h = mix((uint64_t)(uintptr_t)op, (uint64_t)inputs);
    for (int i = 0; i < inputs; i++)
        h = mix(h, (uint64_t)in[i]);
    for (int i = 0; i < 4; i++)
        h = mix(h, (uint64_t)a->i[i]);
    memcpy(&bits, &a->value, sizeof bits);
    h = mix(h, bits);
    h = mix(h, (uint64_t)a->shape.rank * 2 + a->shape.batched);
    for (int i = 0; i < a->shape.rank; i++)
        h = mix(h, a->shape.dim[i]);
    for (size_t i = 0; i < a->list_len; i++)
        h = mix(h, (uint64_t)a->list[i]);
    return mix(h, (uint64_t)(uintptr_t)a->mask);
}

static bool node_equal(const hl_node_data *n, const hl_op *op, int inputs, const hl_node *in, const hl_attr *a)
{
    const hl_attr *b = &n->attr;
    return n->op == op && n->inputs == inputs && !b->data && !a->data && !b->name && !a->name && a->mask == b->mask &&
           memcmp(a->i, b->i, sizeof a->i) == 0 && memcmp(&a->value, &b->value, sizeof a->value) == 0 &&
           a->shape.batched == b->shape.batched && hl_shape_equal(&a->shape, &b->shape) && a->list_len == b->list_len &&
           (a->list_len == 0 || memcmp(a->list, b->list, a->list_len * sizeof *a->list) == 0) &&
           (inputs == 0 || memcmp(n->in, in, (size_t)inputs * sizeof *in) == 0);
}

/* Double the hash table when it is half full. */
static bool table_reserve(hl_graph *g)
{
    if (g->table_size > 2 * (g->count + 1))
        return true;
    size_t size = g->table_size ? 2 * g->table_size : 256;
    hl_node *table = hl_calloc(g->ctx, size, sizeof *table);
    if (!table)
        return false;
    for (size_t n = 1; n <= g->count; n++) {
        size_t slot = g->node[n].hash & (size - 1);
        while (table[slot])
            slot = (slot + 1) & (size - 1);
        table[slot] = (hl_node)n;
    }
    hl_free(g->ctx, g->table);
    g->table = table;
    g->table_size = size;
    return true;
}

static bool inputs_valid(hl_graph *g, const hl_op *op, int inputs, const hl_node *in)
{
    for (int i = 0; i < inputs; i++) {
        if (in[i] == HL_BAD)
            return hl_graph_fail(g, HL_ERR_INVALID, "%s: input %d is a bad node", op->name, i), false;
        if (!hl_graph_node(g, in[i]))
            return hl_graph_fail(g, HL_ERR_INVALID, "%s: input %d (%d) is not a node of this graph", op->name, i,
                                 (int)in[i]),
                   false;
    }
    return true;
}

hl_node hl_graph_add(hl_graph *g, const hl_op *op, int inputs, const hl_node *in, const hl_attr *attr)
{
    static const hl_attr no_attr;
    if (!g)
        return HL_BAD;
    if (!attr)
        attr = &no_attr;
    hl_shape shape = { 0 };
    if (!inputs_valid(g, op, inputs, in) || !op->shape(g, inputs, in, attr, &shape))
        return HL_BAD;
    if (hl_shape_size(&shape) == 0)
        return hl_graph_fail(g, HL_ERR_SHAPE, "%s: a dimension of the result is 0", op->name);
    if (hl_shape_size(&shape) > SIZE_MAX / 4096)
        return hl_graph_fail(g, HL_ERR_SHAPE, "%s: the result is too large", op->name);
    if (!table_reserve(g))
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    uint64_t hash = node_hash(op, inputs, in, attr);
    size_t slot = hash & (g->table_size - 1);
    for (; g->table[slot]; slot = (slot + 1) & (g->table_size - 1)) {
        const hl_node_data *old = &g->node[g->table[slot]];
        if (old->hash == hash && node_equal(old, op, inputs, in, attr))
            return g->table[slot];
    }
    if (g->count >= INT32_MAX - 2)
        return hl_graph_fail(g, HL_ERR_UNSUPPORTED, "the graph has too many nodes");
    hl_node *copy = hl_arena_alloc(&g->arena, (size_t)inputs * sizeof *copy);
    void *nodes = g->node;
    if (!copy || hl_grow(g->ctx, &nodes, &g->capacity, g->count + 2, sizeof *g->node) != HL_OK)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    g->node = nodes;
    if (inputs)
        memcpy(copy, in, (size_t)inputs * sizeof *copy);
    hl_node id = (hl_node)++g->count;
    g->node[id] = (hl_node_data){ op, copy, inputs, shape, *attr, hash };
    g->table[slot] = id;
    return id;
}

const int32_t *hl_graph_list(hl_graph *g, const int32_t *list, size_t len)
{
    int32_t *copy = hl_arena_alloc(&g->arena, hl_size_mul(len, sizeof *copy));
    if (!copy)
        hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
    else if (len)
        memcpy(copy, list, len * sizeof *copy);
    return copy;
}

const hl_mask *hl_graph_mask(hl_graph *g, size_t out, size_t in, const uint32_t *lo, const uint32_t *hi)
{
    hl_mask *mask = hl_arena_alloc(&g->arena, sizeof *mask);
    uint32_t *data = hl_arena_alloc(&g->arena, hl_size_mul(hl_size_add(out, in), 2 * sizeof *data));
    if (!mask || !data) {
        hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the graph");
        return NULL;
    }
    uint32_t *mlo = data, *mhi = data + out, *tlo = data + 2 * out, *thi = tlo + in;
    for (size_t k = 0; k < in; k++) {
        tlo[k] = (uint32_t)out;
        thi[k] = 0;
    }
    for (size_t n = 0; n < out; n++) {
        mlo[n] = lo[n] < hi[n] ? lo[n] : 0;
        mhi[n] = lo[n] < hi[n] ? hi[n] : 0;
        for (size_t k = mlo[n]; k < mhi[n] && k < in; k++) {
            if (tlo[k] > n)
                tlo[k] = (uint32_t)n;
            thi[k] = (uint32_t)n + 1;
        }
    }
    for (size_t k = 0; k < in; k++)
        if (tlo[k] >= thi[k])
            tlo[k] = thi[k] = 0;
    *mask = (hl_mask){ out, in, mlo, mhi, tlo, thi };
    return mask;
}

hl_status hl_graph_verify(const hl_graph *graph)
{
    if (!graph)
        return HL_ERR_INVALID;
    hl_graph *g = (hl_graph *)graph; /* the shape rules take a graph to report to */
    for (size_t n = 1; n <= g->count; n++) {
        const hl_node_data *d = &g->node[n];
        hl_shape shape = { 0 };
        for (int i = 0; i < d->inputs; i++)
            if (d->in[i] < 1 || (size_t)d->in[i] >= n)
                return hl_fail_at(g->ctx, HL_ERR_INVALID, hl_at_node(n), "input %d is not a preceding node", i);
        if (!d->op->shape(g, d->inputs, d->in, &d->attr, &shape))
            return g->status;
        if (!hl_shape_equal(&shape, &d->shape) || shape.batched != d->shape.batched)
            return hl_fail_at(g->ctx, HL_ERR_SHAPE, hl_at_node(n),
                              "op %s: the stored shape differs from the inferred one", d->op->name);
    }
    return HL_OK;
}

int hl_node_text(const hl_graph *g, hl_node n, char *buffer, size_t size)
{
    size = buffer ? size : 0;
    const hl_node_data *d = hl_graph_node(g, n);
    if (!d)
        return snprintf(buffer, size, "%%%d = bad", (int)n);
    char args[160], shape[120];
    hl_text list = hl_text_start(args, sizeof args);
    for (int i = 0; i < d->inputs; i++)
        hl_text_add(&list, i ? ", %%%d" : "%%%d", (int)d->in[i]);
    return snprintf(buffer, size, "%%%d = %s%s%s(%s) %s", (int)n, d->op->name, d->attr.name ? " " : "",
                    d->attr.name ? d->attr.name : "", args, hl_shape_text(&d->shape, shape, sizeof shape));
}

int hl_node_rank(const hl_graph *g, hl_node n)
{
    const hl_node_data *d = hl_graph_node(g, n);
    return d ? d->shape.rank : -1;
}

size_t hl_node_dim(const hl_graph *g, hl_node n, int axis)
{
    const hl_node_data *d = hl_graph_node(g, n);
    if (!d)
        return 0;
    if (axis < 0)
        axis += d->shape.rank;
    return axis >= 0 && axis < d->shape.rank ? d->shape.dim[axis] : 0;
}

size_t hl_node_size(const hl_graph *g, hl_node n)
{
    const hl_node_data *d = hl_graph_node(g, n);
    return d ? hl_shape_size(&d->shape) : 0;
}

int hl_node_batched(const hl_graph *g, hl_node n)
{
    const hl_node_data *d = hl_graph_node(g, n);
    return d && d->shape.batched;
}

const char *hl_node_name(const hl_graph *g, hl_node n)
{
    const hl_node_data *d = hl_graph_node(g, n);
    return d && d->attr.name ? d->attr.name : "";
}

size_t hl_graph_inputs(const hl_graph *g)
{
    return g ? g->input_count : 0;
}

size_t hl_graph_params(const hl_graph *g)
{
    return g ? g->param_count : 0;
}

hl_node hl_graph_input(const hl_graph *g, size_t index)
{
    return g && index < g->input_count ? g->inputs[index] : HL_BAD;
}

hl_node hl_graph_param(const hl_graph *g, size_t index)
{
    return g && index < g->param_count ? g->params[index] : HL_BAD;
}
