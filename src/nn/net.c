/* net.c - a network: its specification, its parameters, and its graph.
 *
 * There is one description of the architecture: the code that builds it into a graph. Creating a network builds it once into
 * a throw-away graph, which declares the parameters in their order; every later building takes them in that order. */
#include "nn/net.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "op/op.h"

/* ---- parameters ---- */

static hl_status declare(hl_builder *b, const char *name, const hl_shape *shape, size_t fan_in)
{
    hl_net *net = b->net;
    void *grown = net->param;
    if (hl_grow(net->ctx, &grown, &net->capacity, net->params + 1, sizeof *net->param) != HL_OK)
        return HL_ERR_NOMEM;
    net->param = grown;
    hl_param_info *p = &net->param[net->params++];
    *p = (hl_param_info){ .shape = *shape, .fan_in = fan_in, .offset = net->values_size };
    snprintf(p->name, sizeof p->name, "%s", name);
    net->values_size =
        hl_size_add(net->values_size, hl_size_add(hl_shape_size(shape), HL_LANES - 1) / HL_LANES * HL_LANES);
    return HL_OK;
}

hl_node hl_builder_param(hl_builder *b, const char *plain, int rank, const size_t *dims, size_t fan_in)
{
    char name[64];
    size_t index = (size_t)(b->term - b->net->term);
    if (b->reuse)
        return b->node[b->next++];
    if (index)
        snprintf(name, sizeof name, "plus.%zu.%s", index, plain);
    else
        snprintf(name, sizeof name, "%s", plain);
    hl_node n = hl_param(b->g, name, rank, dims);
    if (n == HL_BAD)
        return n;
    if (b->declaring) {
        if (declare(b, name, &hl_graph_node(b->g, n)->shape, fan_in) != HL_OK)
            return hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the parameters");
    } else {
        b->node[b->next++] = n;
    }
    return n;
}

static hl_status declare_mask(hl_net *net, size_t out, const uint32_t *lo, const uint32_t *hi)
{
    uint32_t *copy = hl_calloc(net->ctx, out, 2 * sizeof *copy);
    if (!copy)
        return HL_ERR_NOMEM;
    memcpy(copy, lo, out * sizeof *lo);
    memcpy(copy + out, hi, out * sizeof *hi);
    net->param[net->params - 1].lo = copy;
    net->param[net->params - 1].hi = copy + out;
    return HL_OK;
}

hl_node hl_builder_masked(hl_builder *b, const char *name, hl_node x, size_t out, size_t in, const uint32_t *lo,
                          const uint32_t *hi)
{
    char weight[64];
    snprintf(weight, sizeof weight, "%s.weight", name);
    hl_node w = hl_builder_param(b, weight, 2, (size_t[]){ out, in }, in);
    if (w == HL_BAD)
        return w;
    if (b->declaring) /* only the shape counts: a mask of the graph costs time for every weight */
        return declare_mask(b->net, out, lo, hi) == HL_OK
                   ? hl_linear(b->g, x, w)
                   : hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the masks");
    const hl_mask *mask = hl_graph_mask(b->g, out, in, lo, hi);
    return mask ? hl_linear_trusted(b->g, x, w, mask) : HL_BAD;
}

hl_node hl_builder_conv(hl_builder *b, const char *name, hl_node y, size_t out, size_t in, size_t kernel,
                        const unsigned char *taps)
{
    char weight[64];
    size_t rows = hl_size_mul(hl_size_mul(out, in), kernel), seen = 0;
    for (size_t i = 0; i < kernel * kernel; i++)
        seen += !taps || taps[i];
    snprintf(weight, sizeof weight, "%s.weight", name);
    hl_node w = hl_builder_param(b, weight, 4, (size_t[]){ out, in, kernel, kernel }, in * (seen ? seen : 1));
    if (w != HL_BAD && b->declaring && taps) {
        uint32_t *lo = hl_calloc(b->g->ctx, rows, 2 * sizeof *lo), *hi = lo + rows;
        for (size_t r = 0; lo && r < rows; r++)
            for (size_t k = kernel; k-- > 0;)
                if (taps[r % kernel * kernel + k]) {
                    lo[r] = (uint32_t)k;
                    hi[r] = hi[r] ? hi[r] : (uint32_t)k + 1;
                }
        hl_status status = lo ? declare_mask(b->net, rows, lo, hi) : HL_ERR_NOMEM;
        hl_free(b->g->ctx, lo);
        if (status != HL_OK)
            return hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the masks");
    }
    return hl_conv(b->g, y, w, &(hl_conv_options){ .pad = { kernel / 2, kernel / 2 }, .taps = taps });
}

hl_node hl_builder_offset(hl_builder *b, const char *name, size_t units, bool per_dimension, size_t fan_in)
{
    const hl_net_spec *s = &b->term->spec;
    char text[64];
    size_t dims[] = { s->dim, units, s->context };
    int skip = per_dimension ? 0 : 1;
    snprintf(text, sizeof text, "%s.bias", name);
    hl_node z = hl_builder_param(b, text, 2 - skip, dims + skip, 0);
    if (s->time) {
        snprintf(text, sizeof text, "%s.weight_t", name);
        hl_node t = hl_reshape(b->g, b->t, 1, (size_t[]){ 1 });
        z = hl_add(b->g, z, hl_mul(b->g, t, hl_builder_param(b, text, 2 - skip, dims + skip, fan_in)));
    }
    if (s->context) {
        snprintf(text, sizeof text, "%s.weight_c", name);
        hl_node w = hl_builder_param(b, text, 3 - skip, dims + skip, fan_in);
        hl_node c = per_dimension ? hl_broadcast(b->g, b->context, 2, (size_t[]){ s->dim, s->context }) : b->context;
        z = hl_add(b->g, z, per_dimension ? hl_linear_grouped(b->g, c, w) : hl_linear(b->g, c, w));
    }
    return z;
}

/* ---- building ---- */

bool hl_net_turned(const hl_net *net)
{
    bool turned = false;
    for (size_t i = 0; i < net->terms; i++)
        turned = turned || net->term[i].spec.reflections;
    return turned;
}

/* All terms; their nodes go to n[0..terms-1]. Returns f. */
static hl_node build_terms(hl_builder *b, hl_term_nodes *n)
{
    hl_node f = HL_NONE, x = b->x;
    for (size_t i = 0; i < b->net->terms; i++) {
        n[i] = hl_term_build(b, &b->net->term[i], x);
        f = hl_accumulate(b->g, f, n[i].f);
    }
    return f;
}

static hl_status check_input(hl_graph *g, const char *what, hl_node n, bool wanted, int rank, size_t size)
{
    if (!wanted) {
        if (n != HL_NONE)
            return hl_graph_fail(g, HL_ERR_INVALID, "hl_net_build: the network has no %s", what), g->status;
        return HL_OK;
    }
    if (!hl_graph_node(g, n))
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_net_build: %s is not a node of the graph", what), g->status;
    if (hl_node_rank(g, n) != rank || hl_node_size(g, n) != size)
        return hl_graph_fail(g, HL_ERR_SHAPE, "hl_net_build: %s must have rank %d and %zu values", what, rank, size),
               g->status;
    return HL_OK;
}

static hl_status check_nodes(const hl_net *net, hl_graph *g, int order, const hl_net_nodes *n)
{
    if (!n->param)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_net_build: nodes.param is NULL"), g->status;
    if (order < 0 || order > HL_MAX_ORDER)
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_net_build: order %d is not in 0..%d", order, HL_MAX_ORDER),
               g->status;
    if (order && n->d && hl_net_turned(net))
        return hl_graph_fail(g, HL_ERR_UNSUPPORTED,
                             "hl_net_build: a network with reflections has no D^k, only its divergence; set d to NULL"),
               g->status;
    hl_status status = check_input(g, "x", n->x, true, 1, net->dim);
    if (status == HL_OK)
        status = check_input(g, "t", n->t, net->time, 0, 1);
    return status == HL_OK ? check_input(g, "context", n->context, net->context > 0, 1, net->context) : status;
}

hl_status hl_net_build_updated(const hl_net *net, hl_graph *g, int order, hl_diff_mode mode, hl_net_nodes *n,
                               hl_update *update)
{
    if (!net || !g || !n)
        return HL_ERR_INVALID;
    hl_status status = check_nodes(net, g, order, n);
    if (status != HL_OK)
        return status;
    hl_builder b = { .net = (hl_net *)(uintptr_t)net,
                     .g = g,
                     .x = n->x,
                     .t = n->t,
                     .context = n->context,
                     .node = n->param,
                     .reuse = n->reuse != 0,
                     .update = update };
    hl_term_nodes term[HL_MAX_TERMS];
    hl_node d[HL_MAX_ORDER];
    n->f = build_terms(&b, term);
    n->h = term[0].h;
    if (order && g->status == HL_OK)
        hl_net_derive(net, g, term, order, mode, n->d ? n->d : d, &n->divergence);
    return g->status;
}

hl_status hl_net_build(const hl_net *net, hl_graph *g, int order, hl_diff_mode mode, hl_net_nodes *n)
{
    return hl_net_build_updated(net, g, order, mode, n, NULL);
}

hl_status hl_net_build_tau(const hl_net *net, hl_graph *g, hl_node x, hl_node h, hl_node t, hl_node context,
                           hl_node *param, hl_node *f, hl_node *d)
{
    for (size_t i = 0; i < net->params; i++)
        param[i] = hl_param(g, net->param[i].name, net->param[i].shape.rank, net->param[i].shape.dim);
    hl_builder b = { .net = (hl_net *)(uintptr_t)net,
                     .term = net->term,
                     .g = g,
                     .x = x,
                     .t = t,
                     .context = context,
                     .node = param,
                     .next = net->term[0].tau_param,
                     .reuse = true };
    *f = net->term[0].transformer->build(&b, h);
    if (g->status != HL_OK)
        return g->status;
    return hl_dim_derivatives(g, *f, x, &(hl_hold){ 1, &h }, 1, HL_TAYLOR, d);
}

static hl_status declare_params(hl_net *net)
{
    hl_graph *g = NULL;
    hl_status status = hl_graph_create(net->ctx, &g);
    if (status != HL_OK)
        return status;
    hl_builder b = { .net = net, .g = g, .declaring = true, .x = hl_input(g, "x", 1, &net->dim) };
    hl_term_nodes term[HL_MAX_TERMS];
    b.t = net->time ? hl_input(g, "t", 0, NULL) : HL_NONE;
    b.context = net->context ? hl_input(g, "context", 1, &net->context) : HL_NONE;
    build_terms(&b, term);
    status = g->status;
    hl_graph_free(g);
    return status;
}

hl_status hl_net_declare(hl_context *ctx, const hl_net_spec *spec, hl_net **out)
{
    hl_net *net = hl_calloc(ctx, 1, sizeof *net);
    if (!net)
        return HL_ERR_NOMEM;
    net->ctx = ctx;
    hl_status status = hl_net_set_spec(net, spec);
    if (status == HL_OK)
        status = declare_params(net);
    if (status != HL_OK) {
        hl_net_free(net);
        return status;
    }
    *out = net;
    return HL_OK;
}

hl_status hl_net_allocate(hl_net *net)
{
    net->values = hl_calloc(net->ctx, net->values_size, hl_dtype_size(net->dtype));
    return net->values ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_net_create(hl_context *ctx, const hl_net_spec *spec, hl_net **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!spec || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_net_create: the specification or the result is NULL");
    *out = NULL;
    hl_status status = hl_net_declare(ctx, spec, out);
    if (status == HL_OK && (status = hl_net_allocate(*out)) != HL_OK) {
        hl_net_free(*out);
        *out = NULL;
    }
    return status;
}

void hl_net_free(hl_net *net)
{
    if (!net)
        return;
    hl_context *ctx = net->ctx;
    for (size_t i = 0; i < net->params; i++)
        hl_free(ctx, net->param[i].lo);
    for (size_t i = 0; i < net->terms; i++)
        hl_free(ctx, net->term[i].order);
    hl_free(ctx, net->term);
    hl_free(ctx, net->param);
    hl_free(ctx, net->values);
    hl_free(ctx, net);
}

hl_net_spec hl_net_describe(const hl_net *net)
{
    return net ? net->term[0].spec : (hl_net_spec){ 0 };
}

/* ---- values ---- */

static void set_value(const hl_net *net, size_t at, double v)
{
    if (net->dtype == HL_F32)
        ((float *)net->values)[at] = (float)v;
    else
        ((double *)net->values)[at] = v;
}

static double get_value(const hl_net *net, size_t at)
{
    return net->dtype == HL_F32 ? (double)((float *)net->values)[at] : ((double *)net->values)[at];
}

/* Row n of a parameter seen as a matrix: the inputs it has. */
static void row_range(const hl_param_info *p, size_t n, size_t columns, size_t *lo, size_t *hi)
{
    *lo = p->lo ? p->lo[n] : 0;
    *hi = p->lo ? p->hi[n] : columns;
    if (*lo > *hi)
        *lo = *hi = 0;
}

static size_t columns_of(const hl_param_info *p)
{
    return p->lo ? p->shape.dim[p->shape.rank - 1] : hl_shape_size(&p->shape);
}

hl_status hl_net_init(hl_net *net, uint64_t seed)
{
    if (!net)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < net->params; i++) {
        const hl_param_info *p = &net->param[i];
        size_t size = hl_shape_size(&p->shape), columns = columns_of(p);
        for (size_t n = 0; n < size / columns; n++) {
            size_t lo, hi;
            row_range(p, n, columns, &lo, &hi);
            size_t fan_in = p->lo && p->shape.rank == 2 ? hi - lo : p->fan_in;
            for (size_t k = 0; k < columns; k++) {
                size_t at = n * columns + k;
                bool zero = p->fan_in == 0 || k < lo || k >= hi;
                set_value(net, p->offset + at, zero ? 0 : hl_random_normal(seed, i, at) / sqrt((double)fan_in));
            }
        }
    }
    return HL_OK;
}

size_t hl_net_param_count(const hl_net *net)
{
    return net ? net->params : 0;
}

hl_status hl_net_param_get(const hl_net *net, size_t index, hl_net_param *param)
{
    if (!net)
        return HL_ERR_INVALID;
    if (!param || index >= net->params)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_net_param_get: parameter %zu of %zu", index, net->params);
    const hl_param_info *p = &net->param[index];
    *param = (hl_net_param){
        .name = p->name, .rank = p->shape.rank, .size = hl_shape_size(&p->shape), .lo = p->lo, .hi = p->hi
    };
    memcpy(param->dims, p->shape.dim, sizeof param->dims);
    param->values = (char *)net->values + p->offset * hl_dtype_size(net->dtype);
    return HL_OK;
}

size_t hl_net_size(const hl_net *net)
{
    size_t total = 0;
    for (size_t i = 0; net && i < net->params; i++) {
        const hl_param_info *p = &net->param[i];
        size_t columns = columns_of(p), lo, hi;
        for (size_t n = 0; n < hl_shape_size(&p->shape) / columns; n++) {
            row_range(p, n, columns, &lo, &hi);
            total += hi - lo;
        }
    }
    return total;
}

/* Finite everywhere, and zero where a mask excludes. */
hl_status hl_net_check(const hl_net *net)
{
    if (!net)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < net->params; i++) {
        const hl_param_info *p = &net->param[i];
        size_t columns = columns_of(p), size = hl_shape_size(&p->shape);
        for (size_t at = 0; at < size; at++) {
            double v = get_value(net, p->offset + at);
            size_t lo, hi;
            row_range(p, at / columns, columns, &lo, &hi);
            if (!isfinite(v))
                return hl_fail(net->ctx, HL_ERR_NOT_FINITE, "parameter '%s', element %zu, is %s", p->name, at,
                               isnan(v) ? "NaN" : "infinite");
            if (v != 0 && (at % columns < lo || at % columns >= hi))
                return hl_fail(net->ctx, HL_ERR_INVALID,
                               "parameter '%s', element %zu, is %g, but the mask of a hollow network needs 0 there",
                               p->name, at, v);
        }
    }
    return HL_OK;
}
