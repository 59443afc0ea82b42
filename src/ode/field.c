/* field.c - a network as a system: rows in double through plans in the network's precision.
 *
 * f, D f and the vjp with parameters are plans of operators. J v, the jet of order 1 in the direction of an input v, and J' v
 * without the parameters, which costs half as much as with them, are plans of their own. */
#include <string.h>

#include "exec/plan.h"
#include "nn/net.h"
#include "ode/ode.h"

struct hl_field {
    hl_context *ctx;
    const hl_net *net;
    size_t rows, n_params;
    const double *context;                       /* of all rows of the solve; borrowed */
    hl_operator *value, *slope;                  /* f and its gradients; f and D */
    hl_plan *jvp, *vjp;                          /* inputs x, t and context if there are any, v */
    const void **param;                          /* for these */
    void **gparam;                               /* for the operator: pieces of gradient */
    char *x, *t, *c, *v, *out, *out2, *gradient; /* in the network's precision */
};

/* ---- creation ---- */

/* f in a graph of its own, with the inputs in the order of the struct. The only use of hl_net_build here. */
static hl_status build(hl_field *field, hl_graph *g, hl_node *param, hl_node *x, hl_node *f)
{
    const hl_net *net = field->net;
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &net->dim), .param = param };
    n.t = net->time ? hl_input(g, "t", 0, NULL) : HL_NONE;
    n.context = net->context ? hl_input(g, "context", 1, &net->context) : HL_NONE;
    hl_status status = hl_net_build(net, g, 0, HL_TAYLOR, &n);
    *x = n.x;
    *f = n.f;
    return status;
}

static hl_status compile_products(hl_field *field)
{
    hl_plan_options options = { .dtype = field->net->dtype };
    hl_graph *g = NULL;
    hl_node x, f, v, jv = HL_BAD, vj = HL_BAD, *param = hl_calloc(field->ctx, field->net->params + 1, sizeof *param);
    hl_status status = param ? hl_graph_create(field->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = build(field, g, param, &x, &f);
    if (status == HL_OK) {
        v = hl_input(g, "v", 1, &field->net->dim);
        status = hl_jet(g, 1, 1, &x, &v, NULL, 1, &f, &jv);
    }
    if (status == HL_OK)
        status = hl_vjp(g, 1, &f, &v, 1, &x, NULL, &vj);
    if (status == HL_OK)
        status = hl_plan_create(field->ctx, g, 1, &jv, &options, &field->jvp);
    if (status == HL_OK)
        status = hl_plan_create(field->ctx, g, 1, &vj, &options, &field->vjp);
    hl_graph_free(g);
    hl_free(field->ctx, param);
    return status;
}

static hl_status allocate(hl_field *field)
{
    hl_context *ctx = field->ctx;
    const hl_net *net = field->net;
    size_t element = hl_dtype_size(net->dtype), row = net->dim * element, rows = field->rows, at = 0;
    field->x = hl_calloc(ctx, rows, row);
    field->v = hl_calloc(ctx, rows, row);
    field->out = hl_calloc(ctx, rows, row);
    field->out2 = hl_calloc(ctx, rows, row);
    field->t = hl_calloc(ctx, rows, element);
    field->c = hl_calloc(ctx, rows, net->context * element);
    for (size_t i = 0; i < net->params; i++)
        field->n_params += hl_shape_size(&net->param[i].shape);
    field->gradient = hl_calloc(ctx, field->n_params, element);
    field->param = hl_calloc(ctx, net->params, sizeof *field->param);
    field->gparam = hl_calloc(ctx, net->params, sizeof *field->gparam);
    if (!field->x || !field->v || !field->out || !field->out2 || !field->t || !field->c || !field->gradient ||
        !field->param || !field->gparam)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < net->params; i++) {
        field->param[i] = (const char *)net->values + net->param[i].offset * element;
        field->gparam[i] = field->gradient + at * element;
        at += hl_shape_size(&net->param[i].shape);
    }
    return HL_OK;
}

hl_status hl_field_create(const hl_net *net, size_t rows, hl_field **out)
{
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
    field->rows = rows ? rows : 1;
    hl_status status = allocate(field);
    if (status == HL_OK)
        status = hl_operator_create(net, &(hl_operator_options){ .order = -1 }, &field->value);
    if (status == HL_OK && !hl_net_turned(net))
        status = hl_operator_create(net, &(hl_operator_options){ .order = 1, .no_gradient = 1 }, &field->slope);
    if (status == HL_OK)
        status = compile_products(field);
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
    hl_operator_free(field->value);
    hl_operator_free(field->slope);
    hl_plan_free(field->jvp);
    hl_plan_free(field->vjp);
    void *const blocks[] = { field->x, field->v,        field->out,           field->out2,  field->t,
                             field->c, field->gradient, (void *)field->param, field->gparam };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(ctx, blocks[i]);
    hl_free(ctx, field);
}

void hl_field_set_context(hl_field *field, const double *context)
{
    if (field)
        field->context = context;
}

/* ---- calls ---- */

/* Rows first .. of a call to the buffers; returns how many, 0 at the end, or SIZE_MAX if the context is missing. */
static size_t load(const hl_field *field, const hl_rows *at, size_t first)
{
    const hl_net *s = field->net;
    size_t count = at->count - first < field->rows ? at->count - first : field->rows, element = hl_dtype_size(s->dtype);
    if (s->context && !field->context) {
        hl_fail(field->ctx, HL_ERR_INVALID, "the network has a context: give it by hl_field_set_context");
        return SIZE_MAX;
    }
    hl_to_precision(field->net->dtype, count * s->dim, at->y + first * s->dim, field->x);
    if (s->time)
        hl_to_precision(field->net->dtype, count, at->t + first, field->t);
    for (size_t r = 0; s->context && r < count; r++)
        hl_to_precision(field->net->dtype, s->context, field->context + at->index[first + r] * s->context,
                        field->c + r * s->context * element);
    return count;
}

static int field_rhs(void *user, const hl_rows *at, double *dy)
{
    hl_field *field = user;
    size_t dim = field->net->dim, count;
    for (size_t first = 0; first < at->count; first += count) {
        count = load(field, at, first);
        if (count == SIZE_MAX)
            return HL_ERR_INVALID;
        hl_operator_eval(field->value, count, field->x, field->t, field->c, field->out, NULL, NULL);
        hl_from_precision(field->net->dtype, count * dim, field->out, dy + first * dim);
    }
    return 0;
}

static int field_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    hl_field *field = user;
    size_t dim = field->net->dim, count;
    for (size_t first = 0; first < at->count; first += count) {
        count = load(field, at, first);
        if (count == SIZE_MAX)
            return HL_ERR_INVALID;
        hl_operator_eval(field->slope, count, field->x, field->t, field->c, field->out, (void *const[]){ field->out2 },
                         NULL);
        if (dy)
            hl_from_precision(field->net->dtype, count * dim, field->out, dy + first * dim);
        hl_from_precision(field->net->dtype, count * dim, field->out2, diagonal + first * dim);
    }
    return 0;
}

/* J v or J' v of the rows in the buffers, to `out`. */
static void run_product(const hl_field *field, hl_plan *plan, size_t count)
{
    const hl_net *s = field->net;
    const void *input[4] = { field->x };
    size_t n = 1;
    if (s->time)
        input[n++] = field->t;
    if (s->context)
        input[n++] = field->c;
    input[n] = field->v;
    hl_execute(plan, count, input, field->param, (void *const[]){ field->out });
}

static int field_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    hl_field *field = user;
    size_t dim = field->net->dim, count;
    for (size_t first = 0; first < at->count; first += count) {
        count = load(field, at, first);
        if (count == SIZE_MAX)
            return HL_ERR_INVALID;
        hl_to_precision(field->net->dtype, count * dim, v + first * dim, field->v);
        run_product(field, field->jvp, count);
        hl_from_precision(field->net->dtype, count * dim, field->out, jv + first * dim);
    }
    return 0;
}

static int field_vjp(void *user, const hl_rows *at, const double *w, double *gy, double *gparam)
{
    hl_field *field = user;
    size_t dim = field->net->dim, count;
    for (size_t first = 0; first < at->count; first += count) {
        count = load(field, at, first);
        if (count == SIZE_MAX)
            return HL_ERR_INVALID;
        hl_to_precision(field->net->dtype, count * dim, w + first * dim, field->v);
        if (gparam) {
            hl_operator_vjp(field->value, count, field->x, field->t, field->c, field->v, NULL, NULL, field->out, NULL,
                            NULL, field->gparam);
            hl_add_from_precision(field->net->dtype, field->n_params, field->gradient, gparam);
        } else {
            run_product(field, field->vjp, count);
        }
        hl_from_precision(field->net->dtype, count * dim, field->out, gy + first * dim);
    }
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
