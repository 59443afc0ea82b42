/* operator.c - a network compiled: f, D^1 f .. D^k f, divergence, and their gradients. */
#include <string.h>

#include "exec/plan.h"
#include "nn/net.h"

#define MAX_ORDER 32

struct hl_operator {
    hl_context *ctx;
    const hl_net *net;
    int order;
    hl_plan *value, *all, *gradient; /* f alone; f, D and divergence; gradients */
    const void **input, **param;     /* scratch for calls */
    void **output;
};

/* The graph of an operator while it is compiled. */
typedef struct op_graph {
    hl_graph *g;
    hl_node x, t, context, h, f, d[MAX_ORDER], divergence;
    hl_node *param;
} op_graph;

static hl_status build(hl_operator *op, hl_diff_mode mode, op_graph *b)
{
    const hl_net_spec *s = &op->net->spec;
    b->x = hl_input(b->g, "x", 1, &s->dim);
    b->t = s->time ? hl_input(b->g, "t", 0, NULL) : HL_NONE;
    b->context = s->context ? hl_input(b->g, "context", 1, &s->context) : HL_NONE;
    hl_status status = hl_net_build(op->net, b->g, b->x, b->t, b->context, 0, b->param, &b->h, &b->f);
    if (status != HL_OK || op->order == 0)
        return status;
    status = hl_dim_derivatives(b->g, b->f, b->x, &(hl_hold){ 1, &b->h }, op->order, mode, b->d);
    b->divergence = hl_sum(b->g, b->d[0], 0);
    return status != HL_OK ? status : hl_graph_status(b->g);
}

static hl_status compile_values(hl_operator *op, const op_graph *b, const hl_plan_options *o)
{
    hl_node out[MAX_ORDER + 2] = { b->f };
    size_t n = 1;
    hl_status status = hl_plan_create(op->ctx, b->g, 1, out, o, &op->value);
    for (int k = 0; k < op->order; k++)
        out[n++] = b->d[k];
    if (op->order)
        out[n++] = b->divergence;
    return status == HL_OK && op->order ? hl_plan_create(op->ctx, b->g, n, out, o, &op->all) : status;
}

/* Inputs x, t, context, then the cotangents; outputs the gradients of x, t, context and all parameters. */
static hl_status compile_gradient(hl_operator *op, const op_graph *b, const hl_plan_options *o)
{
    hl_graph *g = b->g;
    size_t dim = op->net->spec.dim, params = op->net->params, n = 0, count = (size_t)op->order + 2;
    hl_node y[MAX_ORDER + 2] = { b->f }, gy[MAX_ORDER + 2];
    for (int k = 0; k < op->order; k++)
        y[k + 1] = b->d[k];
    y[op->order + 1] = b->divergence;
    if (op->order == 0)
        count = 1;
    for (size_t i = 0; i < count; i++)
        gy[i] = hl_input(g, "cotangent", i <= (size_t)op->order ? 1 : 0, &dim);
    hl_node *x = hl_calloc(op->ctx, params + 3, 2 * sizeof *x);
    if (!x)
        return HL_ERR_NOMEM;
    x[n++] = b->x;
    if (b->t != HL_NONE)
        x[n++] = b->t;
    if (b->context != HL_NONE)
        x[n++] = b->context;
    memcpy(x + n, b->param, params * sizeof *x);
    n += params;
    hl_status status = hl_vjp(g, count, y, gy, n, x, NULL, x + params + 3);
    if (status == HL_OK)
        status = hl_plan_create(op->ctx, g, n, x + params + 3, o, &op->gradient);
    hl_free(op->ctx, x);
    return status;
}

static hl_status operator_compile(hl_operator *op, const hl_operator_options *o)
{
    hl_plan_options plan = o->plan;
    op_graph b = { .param = hl_calloc(op->ctx, op->net->params + 1, sizeof *b.param) };
    hl_status status = b.param ? hl_graph_create(op->ctx, &b.g) : HL_ERR_NOMEM;
    plan.dtype = op->net->spec.dtype;
    if (status == HL_OK)
        status = build(op, o->mode, &b);
    if (status == HL_OK)
        status = compile_values(op, &b, &plan);
    if (status == HL_OK && !o->no_gradient)
        status = compile_gradient(op, &b, &plan);
    hl_graph_free(b.g);
    hl_free(op->ctx, b.param);
    return status;
}

hl_status hl_operator_create(const hl_net *net, const hl_operator_options *options, hl_operator **out)
{
    static const hl_operator_options defaults;
    const hl_operator_options *o = options ? options : &defaults;
    if (!net)
        return HL_ERR_INVALID;
    if (!out)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_operator_create: the result is NULL");
    *out = NULL;
    if (o->order < -1 || o->order > MAX_ORDER)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_operator_create: order %d is not in 1..%d, nor -1", o->order,
                       MAX_ORDER);
    hl_operator *op = hl_calloc(net->ctx, 1, sizeof *op);
    if (!op)
        return HL_ERR_NOMEM;
    op->ctx = net->ctx;
    op->net = net;
    op->order = o->order == 0 ? 1 : o->order < 0 ? 0 : o->order;
    op->input = hl_calloc(net->ctx, MAX_ORDER + 6, sizeof *op->input);
    op->param = hl_calloc(net->ctx, net->params + 1, sizeof *op->param);
    op->output = hl_calloc(net->ctx, net->params + MAX_ORDER + 6, sizeof *op->output);
    hl_status status = op->input && op->param && op->output ? operator_compile(op, o) : HL_ERR_NOMEM;
    if (status != HL_OK) {
        hl_operator_free(op);
        return status;
    }
    for (size_t i = 0; i < net->params; i++)
        op->param[i] = (const char *)net->values + net->param[i].offset * hl_dtype_size(net->spec.dtype);
    *out = op;
    return HL_OK;
}

void hl_operator_free(hl_operator *op)
{
    if (!op)
        return;
    hl_context *ctx = op->ctx;
    hl_plan_free(op->value);
    hl_plan_free(op->all);
    hl_plan_free(op->gradient);
    hl_free(ctx, op->input);
    hl_free(ctx, op->param);
    hl_free(ctx, op->output);
    hl_free(ctx, op);
}

/* Put x, t and context in the order of the graph's inputs; returns how many, or 0 with the message set. */
static size_t set_inputs(hl_operator *op, size_t rows, const void *x, const void *t, const void *context)
{
    const hl_net_spec *s = &op->net->spec;
    size_t n = 0;
    if (rows && (!x || (s->time && !t) || (s->context && !context))) {
        hl_fail(op->ctx, HL_ERR_INVALID, "operator: %s is NULL, but the network has it as an input",
                !x              ? "x"
                : s->time && !t ? "t"
                                : "context");
        return 0;
    }
    op->input[n++] = x;
    if (s->time)
        op->input[n++] = t;
    if (s->context)
        op->input[n++] = context;
    return n;
}

hl_status hl_operator_eval(hl_operator *op, size_t rows, const void *x, const void *t, const void *context, void *f,
                           void *const *d, void *divergence)
{
    if (!op)
        return HL_ERR_INVALID;
    if (!set_inputs(op, rows, x, t, context))
        return HL_ERR_INVALID;
    bool more = divergence != NULL;
    for (int k = 0; d && k < op->order; k++)
        more = more || d[k];
    if (op->order == 0 && (d || divergence))
        return hl_fail(op->ctx, HL_ERR_INVALID, "hl_operator_eval: the operator was created for f alone");
    op->output[0] = f;
    for (int k = 0; k < op->order; k++)
        op->output[k + 1] = d ? d[k] : NULL;
    op->output[op->order + 1] = divergence;
    hl_execute(more ? op->all : op->value, rows, op->input, op->param, op->output);
    return HL_OK;
}

hl_status hl_operator_vjp(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                          const void *gf, const void *const *gd, const void *gdiv, void *gx, void *gt, void *gcontext,
                          void *const *gparam)
{
    if (!op)
        return HL_ERR_INVALID;
    if (!op->gradient)
        return hl_fail(op->ctx, HL_ERR_INVALID, "hl_operator_vjp: the operator was created without gradients");
    size_t n = set_inputs(op, rows, x, t, context), m = 0;
    if (!n)
        return HL_ERR_INVALID;
    op->input[n++] = gf;
    for (int k = 0; k < op->order; k++)
        op->input[n++] = gd ? gd[k] : NULL;
    if (op->order)
        op->input[n++] = gdiv;
    op->output[m++] = gx;
    if (op->net->spec.time)
        op->output[m++] = gt;
    if (op->net->spec.context)
        op->output[m++] = gcontext;
    for (size_t i = 0; i < op->net->params; i++)
        op->output[m++] = gparam ? gparam[i] : NULL;
    hl_execute(op->gradient, rows, op->input, op->param, op->output);
    return HL_OK;
}

const hl_plan *hl_operator_plan(const hl_operator *op)
{
    return op ? op->all ? op->all : op->value : NULL;
}
