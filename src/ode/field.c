/* field.c - a network as a system: rows in double through plans in the network's precision.
 *
 * J v is the jet of order 1 in the direction of an input v. J' v without the parameters, which costs half as much as with
 * them, is a plan of its own. */
#include <string.h>

#include "exec/plan.h"
#include "nn/net.h"
#include "ode/ode.h"

struct hl_field {
    hl_context *ctx;
    const hl_net *net;
    size_t n_params;
    const double *context;              /* of all rows of the solve; borrowed */
    hl_plan *value, *slope, *jvp, *vjp; /* inputs x, t and context if there are any, v */
    hl_plan *gradient;                  /* likewise: gradients to x and to the parameters */
    const void **param;
    hl_row_out *result; /* of gradient */
    char *pieces;       /* gradients to the parameters, in the network's precision */
};

/* ---- creation ---- */

typedef struct field_graph {
    hl_graph *g;
    hl_net_nodes n;
    hl_node d;
} field_graph;

/* f, and D f if asked for and there is one, with the inputs in the order of the struct. */
static hl_status build(const hl_field *field, field_graph *b, bool with_slope)
{
    const hl_net *net = field->net;
    b->n.x = hl_input(b->g, "x", 1, &net->dim);
    b->n.t = net->time ? hl_input(b->g, "t", 0, NULL) : HL_NONE;
    b->n.context = net->context ? hl_input(b->g, "context", 1, &net->context) : HL_NONE;
    b->n.d = with_slope ? &b->d : NULL;
    return hl_net_build(net, b->g, with_slope, HL_TAYLOR, &b->n);
}

static hl_status compile_value(hl_field *field, field_graph *b, const hl_plan_options *options)
{
    hl_status status = build(field, b, false);
    return status == HL_OK ? hl_plan_create(field->ctx, b->g, 1, &b->n.f, options, &field->value) : status;
}

static hl_status compile_slope(hl_field *field, field_graph *b, const hl_plan_options *options)
{
    if (hl_net_turned(field->net))
        return HL_OK;
    hl_status status = build(field, b, true);
    hl_node out[] = { b->n.f, b->d };
    return status == HL_OK ? hl_plan_create(field->ctx, b->g, 2, out, options, &field->slope) : status;
}

static hl_status compile_products(hl_field *field, field_graph *b, const hl_plan_options *options)
{
    hl_node v, jv = HL_BAD, vj = HL_BAD;
    hl_status status = build(field, b, false);
    if (status == HL_OK) {
        v = hl_input(b->g, "v", 1, &field->net->dim);
        status = hl_jet(b->g, 1, 1, &b->n.x, &v, NULL, 1, &b->n.f, &jv);
    }
    if (status == HL_OK)
        status = hl_vjp(b->g, 1, &b->n.f, &v, 1, &b->n.x, NULL, &vj);
    if (status == HL_OK)
        status = hl_plan_create(field->ctx, b->g, 1, &jv, options, &field->jvp);
    return status == HL_OK ? hl_plan_create(field->ctx, b->g, 1, &vj, options, &field->vjp) : status;
}

static hl_status compile_gradient(hl_field *field, field_graph *b, const hl_plan_options *options)
{
    size_t count = field->net->params + 1;
    hl_node *of = hl_calloc(field->ctx, count, 2 * sizeof *of);
    hl_status status = of ? build(field, b, false) : HL_ERR_NOMEM;
    if (status == HL_OK) {
        hl_node v = hl_input(b->g, "v", 1, &field->net->dim);
        of[0] = b->n.x;
        memcpy(of + 1, b->n.param, field->net->params * sizeof *of);
        status = hl_vjp(b->g, 1, &b->n.f, &v, count, of, NULL, of + count);
    }
    if (status == HL_OK)
        status = hl_plan_create(field->ctx, b->g, count, of + count, options, &field->gradient);
    hl_free(field->ctx, of);
    return status;
}

/* Each in a graph of its own, which is freed before the next is made. */
static hl_status compile(hl_field *field)
{
    hl_status (*const parts[])(hl_field *, field_graph *, const hl_plan_options *) = { compile_value, compile_slope,
                                                                                       compile_products,
                                                                                       compile_gradient };
    hl_plan_options options = { .dtype = field->net->dtype };
    field_graph b = { .n.param = hl_calloc(field->ctx, field->net->params + 1, sizeof *b.n.param) };
    hl_status status = b.n.param ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && status == HL_OK; i++) {
        status = hl_graph_create(field->ctx, &b.g);
        if (status == HL_OK)
            status = parts[i](field, &b, &options);
        hl_graph_free(b.g);
        b.g = NULL;
    }
    hl_free(field->ctx, b.n.param);
    return status;
}

static hl_status allocate(hl_field *field)
{
    const hl_net *net = field->net;
    size_t element = hl_dtype_size(net->dtype);
    for (size_t i = 0; i < net->params; i++)
        field->n_params += hl_shape_size(&net->param[i].shape);
    field->pieces = hl_calloc(field->ctx, field->n_params + 1, element);
    field->param = hl_calloc(field->ctx, net->params + 1, sizeof *field->param);
    field->result = hl_calloc(field->ctx, net->params + 1, sizeof *field->result);
    if (!field->pieces || !field->param || !field->result)
        return HL_ERR_NOMEM;
    char *piece = field->pieces;
    for (size_t i = 0; i < net->params; i++) {
        field->param[i] = (const char *)net->values + net->param[i].offset * element;
        field->result[i + 1].shared = piece;
        piece += hl_shape_size(&net->param[i].shape) * element;
    }
    return HL_OK;
}

hl_status hl_field_create(const hl_net *net, size_t rows, hl_field **out)
{
    (void)rows;
    if (!net)
        return HL_ERR_INVALID;
    if (!out)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_field_create: the result is NULL");
    *out = NULL;
    hl_field *field = hl_calloc(net->ctx, 1, sizeof *field);
    if (!field)
        return HL_ERR_NOMEM;
    field->ctx = net->ctx;
    field->net = net;
    hl_status status = allocate(field);
    if (status == HL_OK)
        status = compile(field);
    if (status != HL_OK) {
        hl_field_free(field);
        return status;
    }
    *out = field;
    return HL_OK;
}

void hl_field_free(hl_field *field)
{
    if (!field)
        return;
    hl_context *ctx = field->ctx;
    hl_plan *const plans[] = { field->value, field->slope, field->jvp, field->vjp, field->gradient };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        hl_plan_free(plans[i]);
    hl_free(ctx, (void *)field->param);
    hl_free(ctx, field->result);
    hl_free(ctx, field->pieces);
    hl_free(ctx, field);
}

void hl_field_set_context(hl_field *field, const double *context)
{
    if (field)
        field->context = context;
}

/* ---- calls ---- */

/* x, t, context and v, in the order of the plans' inputs; false if the context is missing. */
static bool inputs(const hl_field *field, const hl_rows *at, const double *v, hl_row_in *in)
{
    const hl_net *net = field->net;
    if (net->context && !field->context) {
        hl_fail(field->ctx, HL_ERR_INVALID, "the network has a context; set it with hl_field_set_context");
        return false;
    }
    *in++ = (hl_row_in){ at->y, net->dim, NULL };
    if (net->time)
        *in++ = (hl_row_in){ at->t, 1, NULL };
    if (net->context)
        *in++ = (hl_row_in){ field->context, net->context, at->index };
    *in = (hl_row_in){ v, net->dim, NULL };
    return true;
}

static int field_rhs(void *user, const hl_rows *at, double *dy)
{
    hl_field *field = user;
    hl_row_in in[4];
    if (!inputs(field, at, NULL, in))
        return HL_ERR_INVALID;
    hl_execute_rows(field->value, at->count, in, field->param, &(hl_row_out){ .p = dy, .pitch = field->net->dim });
    return 0;
}

static int field_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    hl_field *field = user;
    size_t dim = field->net->dim;
    hl_row_in in[4];
    if (!inputs(field, at, NULL, in))
        return HL_ERR_INVALID;
    hl_row_out out[] = { { .p = dy, .pitch = dim }, { .p = diagonal, .pitch = dim } };
    hl_execute_rows(field->slope, at->count, in, field->param, out);
    return 0;
}

static int field_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    hl_field *field = user;
    hl_row_in in[4];
    if (!inputs(field, at, v, in))
        return HL_ERR_INVALID;
    hl_execute_rows(field->jvp, at->count, in, field->param, &(hl_row_out){ .p = jv, .pitch = field->net->dim });
    return 0;
}

static int field_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    hl_field *field = user;
    size_t dim = field->net->dim;
    hl_row_in in[4];
    if (!inputs(field, at, w, in))
        return HL_ERR_INVALID;
    if (!gparam) {
        hl_execute_rows(field->vjp, at->count, in, field->param, &(hl_row_out){ .p = gy, .pitch = dim });
        return 0;
    }
    field->result[0] = (hl_row_out){ .p = gy, .pitch = dim };
    hl_execute_rows(field->gradient, at->count, in, field->param, field->result);
    hl_add_from_precision(field->net->dtype, field->n_params, field->pieces, gparam);
    return 0;
}

hl_system hl_field_system(hl_field *field)
{
    if (!field)
        return (hl_system){ 0 };
    return (hl_system){ .n = field->net->dim,
                        .rhs = field_rhs,
                        .diagonal = field->slope ? field_diagonal : NULL, /* none in another basis */
                        .jvp = field_jvp,
                        .vjp = field_vjp,
                        .n_params = field->n_params,
                        .rounding = field->net->dtype == HL_F32 ? 6e-8 : 0,
                        .user = field };
}
