/* operator.c - a network compiled: f, D^1 f .. D^k f, divergence, and their gradients. */
#include <string.h>

#include "exec/plan.h"
#include "nn/net.h"

struct hl_operator {
    hl_context *ctx;
    const hl_net *net;
    int order;                       /* the divergence is there if it is > 0 */
    size_t d_count;                  /* D^1..D^order, or none if the network has them not */
    hl_plan *value, *all, *gradient; /* f alone; f, D and divergence; gradients */
    hl_plan *joint;                  /* all of them, results first */
    const void **input, **param;     /* scratch for calls */
    void **output;
    hl_row_out *row_output;
};

/* The graph of an operator while it is compiled. */
typedef struct op_graph {
    hl_graph *g;
    hl_net_nodes n;
    hl_node d[HL_MAX_ORDER];
} op_graph;

static hl_status build(hl_operator *op, hl_diff_mode mode, op_graph *b)
{
    const hl_net *net = op->net;
    b->n.x = hl_input(b->g, "x", 1, &net->dim);
    b->n.t = net->time ? hl_input(b->g, "t", 0, NULL) : HL_NONE;
    b->n.context = net->context ? hl_input(b->g, "context", 1, &net->context) : HL_NONE;
    b->n.d = op->d_count ? b->d : NULL;
    return hl_net_build(net, b->g, op->order, mode, &b->n);
}

/* f, D^1..D^order and the divergence, as far as they are there. */
static size_t results(const hl_operator *op, const op_graph *b, hl_node *to)
{
    size_t n = 0;
    to[n++] = b->n.f;
    for (size_t k = 0; k < op->d_count; k++)
        to[n++] = b->d[k];
    if (op->order)
        to[n++] = b->n.divergence;
    return n;
}

static hl_status compile_values(hl_operator *op, const op_graph *b, const hl_plan_options *o)
{
    hl_node out[HL_MAX_ORDER + 2];
    size_t n = results(op, b, out);
    hl_status status = hl_plan_create(op->ctx, b->g, 1, out, o, &op->value);
    return status == HL_OK && op->order ? hl_plan_create(op->ctx, b->g, n, out, o, &op->all) : status;
}

/* Inputs x, t, context, then the cotangents; outputs the gradients of x, t, context and all parameters. */
static hl_status compile_gradient(hl_operator *op, const op_graph *b, const hl_plan_options *o, bool joint)
{
    hl_graph *g = b->g;
    size_t dim = op->net->dim, params = op->net->params, n = 0;
    hl_node y[HL_MAX_ORDER + 2], gy[HL_MAX_ORDER + 2];
    size_t count = results(op, b, y);
    for (size_t i = 0; i < count; i++)
        gy[i] = hl_input(g, "cotangent", i <= op->d_count ? 1 : 0, &dim);
    hl_node *x = hl_calloc(op->ctx, 2 * (params + 3) + count, sizeof *x), *gx = x + params + 3 + count;
    if (!x)
        return HL_ERR_NOMEM;
    x[n++] = b->n.x;
    if (b->n.t != HL_NONE)
        x[n++] = b->n.t;
    if (b->n.context != HL_NONE)
        x[n++] = b->n.context;
    memcpy(x + n, b->n.param, params * sizeof *x);
    n += params;
    hl_status status = hl_vjp(g, count, y, gy, n, x, NULL, gx);
    if (status == HL_OK)
        status = hl_plan_create(op->ctx, g, n, gx, o, &op->gradient);
    memcpy(gx - count, y, count * sizeof *y);
    if (status == HL_OK && joint)
        status = hl_plan_create(op->ctx, g, count + n, gx - count, o, &op->joint);
    hl_free(op->ctx, x);
    return status;
}

static hl_status operator_compile(hl_operator *op, const hl_operator_options *o)
{
    hl_plan_options plan = o->plan;
    op_graph b = { .n.param = hl_calloc(op->ctx, op->net->params + 1, sizeof *b.n.param) };
    hl_status status = b.n.param ? hl_graph_create(op->ctx, &b.g) : HL_ERR_NOMEM;
    plan.dtype = op->net->dtype;
    if (status == HL_OK)
        status = build(op, o->mode, &b);
    if (status == HL_OK)
        status = compile_values(op, &b, &plan);
    if (status == HL_OK && !o->no_gradient)
        status = compile_gradient(op, &b, &plan, o->joint != 0);
    hl_graph_free(b.g);
    hl_free(op->ctx, b.n.param);
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
    if (o->order < -1 || o->order > HL_MAX_ORDER)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_operator_create: order %d is not in 1..%d, nor -1", o->order,
                       HL_MAX_ORDER);
    int order = o->order == 0 ? 1 : o->order < 0 ? 0 : o->order;
    if (order > 1 && hl_net_turned(net))
        return hl_fail(net->ctx, HL_ERR_UNSUPPORTED,
                       "hl_operator_create: order %d, but a network with reflections has no D^k, only its divergence",
                       order);
    hl_operator *op = hl_calloc(net->ctx, 1, sizeof *op);
    if (!op)
        return HL_ERR_NOMEM;
    op->ctx = net->ctx;
    op->net = net;
    op->order = order;
    op->d_count = hl_net_turned(net) ? 0 : (size_t)order;
    op->input = hl_calloc(net->ctx, HL_MAX_ORDER + 6, sizeof *op->input);
    op->param = hl_calloc(net->ctx, net->params + 1, sizeof *op->param);
    op->output = hl_calloc(net->ctx, net->params + HL_MAX_ORDER + 6, sizeof *op->output);
    op->row_output = hl_calloc(net->ctx, net->params + HL_MAX_ORDER + 6, sizeof *op->row_output);
    bool good = op->input && op->param && op->output && op->row_output;
    hl_status status = good ? operator_compile(op, o) : HL_ERR_NOMEM;
    if (status != HL_OK) {
        hl_operator_free(op);
        return status;
    }
    for (size_t i = 0; i < net->params; i++)
        op->param[i] = (const char *)net->values + net->param[i].offset * hl_dtype_size(net->dtype);
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
    hl_plan_free(op->joint);
    hl_free(ctx, op->input);
    hl_free(ctx, op->param);
    hl_free(ctx, op->output);
    hl_free(ctx, op->row_output);
    hl_free(ctx, op);
}

/* Put x, t and context in the order of the graph's inputs; returns how many, or 0 with the message set. */
static size_t set_inputs(hl_operator *op, size_t rows, const void *x, const void *t, const void *context)
{
    const hl_net *s = op->net;
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

static hl_status refuse_d(const hl_operator *op, const char *where)
{
    return hl_fail(op->ctx, HL_ERR_UNSUPPORTED, "%s: a network with reflections has no D^k, only its divergence",
                   where);
}

/* Where results go, as far as the operator has them; returns how many there are. */
static size_t set_results(hl_operator *op, void *f, void *const *d, void *divergence)
{
    size_t m = 0;
    op->output[m++] = f;
    for (size_t k = 0; k < op->d_count; k++)
        op->output[m++] = d ? d[k] : NULL;
    if (op->order)
        op->output[m++] = divergence;
    return m;
}

hl_status hl_operator_eval(hl_operator *op, size_t rows, const void *x, const void *t, const void *context, void *f,
                           void *const *d, void *divergence)
{
    if (!op)
        return HL_ERR_INVALID;
    if (!set_inputs(op, rows, x, t, context))
        return HL_ERR_INVALID;
    bool more = divergence != NULL;
    for (size_t k = 0; d && k < op->d_count; k++)
        more = more || d[k];
    if (op->order == 0 && (d || divergence))
        return hl_fail(op->ctx, HL_ERR_INVALID, "hl_operator_eval: the operator was created for f alone");
    if (op->d_count == 0 && d)
        return refuse_d(op, "hl_operator_eval");
    set_results(op, f, d, divergence);
    hl_execute(more ? op->all : op->value, rows, op->input, op->param, op->output);
    return HL_OK;
}

/* Cotangents behind the inputs, and where gradients go from output m on; false with the message set. */
static bool set_gradients(hl_operator *op, size_t rows, const void *x, const void *t, const void *context, size_t m,
                          const void *gf, const void *const *gd, const void *gdiv, void *gx, void *gt, void *gcontext,
                          void *const *gparam)
{
    size_t n = set_inputs(op, rows, x, t, context);
    if (!n)
        return false;
    op->input[n++] = gf;
    for (size_t k = 0; k < op->d_count; k++)
        op->input[n++] = gd ? gd[k] : NULL;
    if (op->order)
        op->input[n++] = gdiv;
    op->output[m++] = gx;
    if (op->net->time)
        op->output[m++] = gt;
    if (op->net->context)
        op->output[m++] = gcontext;
    for (size_t i = 0; i < op->net->params; i++)
        op->output[m++] = gparam ? gparam[i] : NULL;
    return true;
}

hl_status hl_operator_vjp(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                          const void *gf, const void *const *gd, const void *gdiv, void *gx, void *gt, void *gcontext,
                          void *const *gparam)
{
    if (!op)
        return HL_ERR_INVALID;
    if (!op->gradient)
        return hl_fail(op->ctx, HL_ERR_INVALID, "hl_operator_vjp: the operator was created without gradients");
    if (op->order && op->d_count == 0 && gd)
        return refuse_d(op, "hl_operator_vjp");
    if (!set_gradients(op, rows, x, t, context, 0, gf, gd, gdiv, gx, gt, gcontext, gparam))
        return HL_ERR_INVALID;
    hl_execute(op->gradient, rows, op->input, op->param, op->output);
    return HL_OK;
}

hl_status hl_operator_eval_vjp(hl_operator *op, size_t rows, const void *x, const void *t, const void *context,
                               const hl_operator_arrays *a)
{
    if (!op)
        return HL_ERR_INVALID;
    if (!op->joint || !a)
        return hl_fail(op->ctx, HL_ERR_INVALID, "hl_operator_eval_vjp: the operator was created without option joint");
    if (op->order && op->d_count == 0 && (a->gd || a->d))
        return refuse_d(op, "hl_operator_eval_vjp");
    size_t m = set_results(op, a->f, a->d, a->divergence);
    if (!set_gradients(op, rows, x, t, context, m, a->gf, a->gd, a->gdiv, a->gx, a->gt, a->gcontext, a->gparam))
        return HL_ERR_INVALID;
    hl_execute(op->joint, rows, op->input, op->param, op->output);
    return HL_OK;
}

/* x, t and context as rows of doubles; returns how many there are. */
static size_t set_rows(const hl_operator *op, const double *x, const double *t, const double *context, hl_row_in *in)
{
    size_t n = 0;
    in[n++] = (hl_row_in){ .p = x, .pitch = op->net->dim };
    if (op->net->time)
        in[n++] = (hl_row_in){ .p = t, .pitch = 1 };
    if (op->net->context)
        in[n++] = (hl_row_in){ .p = context, .pitch = op->net->context };
    return n;
}

void hl_operator_eval_rows(hl_operator *op, size_t rows, const double *x, const double *t, const double *context,
                           double *f, double *divergence)
{
    hl_row_in in[3];
    hl_row_out out[HL_MAX_ORDER + 2] = { { .p = f, .pitch = op->net->dim } };
    set_rows(op, x, t, context, in);
    out[op->d_count + 1] = (hl_row_out){ .p = divergence, .pitch = 1 };
    hl_execute_rows(divergence ? op->all : op->value, rows, in, op->param, out);
}

void hl_operator_vjp_rows(hl_operator *op, size_t rows, const double *x, const double *t, const double *context,
                          const double *gf, const double *gdiv, void *const *gparam)
{
    hl_row_in in[HL_MAX_ORDER + 5] = { { 0 } };
    size_t n = set_rows(op, x, t, context, in), first = n;
    in[n] = (hl_row_in){ .p = gf, .pitch = op->net->dim };
    in[n + op->d_count + 1] = (hl_row_in){ .p = gdiv, .pitch = 1 };
    for (size_t i = 0; i < op->net->params; i++)
        op->row_output[first + i].shared = gparam[i];
    hl_execute_rows(op->gradient, rows, in, op->param, op->row_output);
}

const hl_plan *hl_operator_plan(const hl_operator *op)
{
    return op ? op->all ? op->all : op->value : NULL;
}
