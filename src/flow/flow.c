/* flow.c - flows made of networks one after the other: what they are, and both directions. */
#include <math.h>
#include <string.h>

#include "flow/flow.h"
#include "op/op.h"

static const hl_flow_kind kinds[] = {
    { "nice", "coupling", "additive", 2, false, true },       { "realnvp", "coupling", "affine", 2, false, false },
    { "maf", "autoregressive", "affine", 2, false, false },   { "iaf", "autoregressive", "affine", 2, true, false },
    { "naf", "autoregressive", "monotone", 8, false, false },
};

/* ---- creation ---- */

static hl_status set_kind(hl_flow *flow, const char *name)
{
    name = name ? name : "maf";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(name, kinds[i].name) == 0) {
            flow->kind = &kinds[i];
            flow->spec.kind = kinds[i].name;
            return HL_OK;
        }
    return hl_fail(flow->ctx, HL_ERR_INVALID, "unknown kind of flow '%.60s'; there are: nice, realnvp, maf, iaf, naf",
                   name);
}

static hl_status set_spec(hl_flow *flow, const hl_flow_spec *given)
{
    hl_flow_spec *s = &flow->spec;
    *s = *given;
    hl_status status = set_kind(flow, given->kind);
    if (status != HL_OK)
        return status;
    s->flows = s->flows ? s->flows : 5;
    s->features = s->features ? s->features : flow->kind->features;
    s->width = s->width ? s->width : 16;
    s->layers = s->layers ? s->layers : 1;
    if (s->flows > 1000)
        return hl_fail(flow->ctx, HL_ERR_INVALID, "flows is %zu; it must be in 1..1000", s->flows);
    if (s->dim == 0 || s->dim > 1000000)
        return hl_fail(flow->ctx, HL_ERR_INVALID, "dim is %zu; it must be in 1..1000000", s->dim);
    return HL_OK;
}

/* Network i: every second one takes the columns backwards. */
static hl_status make_net(hl_flow *flow, size_t i, const size_t *backwards)
{
    const hl_flow_spec *s = &flow->spec;
    bool scale = i == s->flows;
    hl_net_spec spec = { .dim = s->dim,
                         .context = s->context,
                         .conditioner = scale ? "none" : flow->kind->conditioner,
                         .transformer = scale ? "affine" : flow->kind->transformer,
                         .order = i % 2 && !scale ? backwards : NULL,
                         .features = s->features,
                         .hidden = s->hidden,
                         .hidden_layers = s->hidden_layers,
                         .width = s->width,
                         .layers = s->layers,
                         .activation = s->activation,
                         .dtype = s->dtype };
    hl_status status = hl_net_create(flow->ctx, &spec, &flow->net[i]);
    return status == HL_OK ? hl_inverse_create(flow->net[i], &flow->inverse[i]) : status;
}

static hl_status compile(hl_flow *flow, size_t i, hl_graph *g, hl_node *node)
{
    const hl_net *net = flow->net[i];
    hl_node d;
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &net->dim), .param = node, .d = &d };
    n.context = net->context ? hl_input(g, "context", 1, &net->context) : HL_NONE;
    hl_status status = hl_net_build(net, g, 1, HL_TAYLOR, &n);
    if (status != HL_OK)
        return status;
    hl_node logdet = hl_sum(g, hl_log(g, d), 0); /* which may be a constant, but each row gets its own */
    hl_node out[] = { n.f, hl_broadcast_shape(g, logdet, &(hl_shape){ .batched = true }) };
    return hl_plan_create(flow->ctx, g, 2, out, &(hl_plan_options){ .dtype = net->dtype }, &flow->plan[i]);
}

static hl_status make_plan(hl_flow *flow, size_t i)
{
    hl_graph *g = NULL;
    hl_node *node = hl_calloc(flow->ctx, flow->net[i]->params + 1, sizeof *node);
    hl_status status = node ? hl_graph_create(flow->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = compile(flow, i, g, node);
    hl_graph_free(g);
    hl_free(flow->ctx, node);
    return status;
}

static hl_status make_nets(hl_flow *flow)
{
    size_t dim = flow->spec.dim, params = 0;
    size_t *backwards = hl_calloc(flow->ctx, dim, sizeof *backwards);
    flow->nets = flow->spec.flows + flow->kind->scaled;
    flow->net = hl_calloc(flow->ctx, flow->nets, sizeof *flow->net);
    flow->inverse = hl_calloc(flow->ctx, flow->nets, sizeof *flow->inverse);
    flow->plan = hl_calloc(flow->ctx, flow->nets, sizeof *flow->plan);
    hl_status status = backwards && flow->net && flow->inverse && flow->plan ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < dim && status == HL_OK; i++)
        backwards[i] = dim - 1 - i;
    for (size_t i = 0; i < flow->nets && status == HL_OK; i++) {
        status = make_net(flow, i, backwards);
        if (status == HL_OK)
            status = make_plan(flow, i);
        if (status == HL_OK && flow->net[i]->params > params)
            params = flow->net[i]->params;
    }
    hl_free(flow->ctx, backwards);
    flow->work = hl_calloc(flow->ctx, hl_size_mul(dim, HL_FLOW_ROWS), 2 * sizeof *flow->work);
    flow->narrow = hl_calloc(flow->ctx, hl_size_mul(2 * dim + flow->spec.context + 1, HL_FLOW_ROWS), sizeof(double));
    flow->param = hl_calloc(flow->ctx, params + 1, sizeof *flow->param);
    return status == HL_OK && (!flow->work || !flow->narrow || !flow->param) ? HL_ERR_NOMEM : status;
}

hl_status hl_flow_create(hl_context *ctx, const hl_flow_spec *spec, hl_flow **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!spec || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_flow_create: the specification or the result is NULL");
    *out = NULL;
    hl_flow *flow = hl_calloc(ctx, 1, sizeof *flow);
    if (!flow)
        return HL_ERR_NOMEM;
    flow->ctx = ctx;
    hl_status status = set_spec(flow, spec);
    if (status == HL_OK)
        status = make_nets(flow);
    if (status != HL_OK) {
        hl_flow_free(flow);
        return status;
    }
    hl_net_spec first = hl_net_describe(flow->net[0]);
    flow->spec.hidden = first.hidden;
    flow->spec.hidden_layers = first.hidden_layers;
    flow->spec.activation = first.activation;
    *out = flow;
    return HL_OK;
}

void hl_flow_free(hl_flow *flow)
{
    if (!flow)
        return;
    for (size_t i = 0; i < flow->nets; i++) {
        hl_plan_free(flow->plan ? flow->plan[i] : NULL);
        hl_inverse_free(flow->inverse ? flow->inverse[i] : NULL);
        hl_net_free(flow->net ? flow->net[i] : NULL);
    }
    hl_free(flow->ctx, flow->plan);
    hl_free(flow->ctx, flow->inverse);
    hl_free(flow->ctx, flow->net);
    hl_free(flow->ctx, flow->work);
    hl_free(flow->ctx, flow->narrow);
    hl_free(flow->ctx, flow->param);
    hl_free(flow->ctx, flow);
}

hl_status hl_flow_init(hl_flow *flow, uint64_t seed)
{
    if (!flow)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < flow->nets; i++) {
        hl_status status = hl_net_init(flow->net[i], seed + i);
        if (status != HL_OK)
            return status;
    }
    return HL_OK;
}

hl_flow_spec hl_flow_describe(const hl_flow *flow)
{
    return flow ? flow->spec : (hl_flow_spec){ 0 };
}

size_t hl_flow_nets(const hl_flow *flow)
{
    return flow ? flow->nets : 0;
}

hl_net *hl_flow_net(const hl_flow *flow, size_t index)
{
    return flow && index < flow->nets ? flow->net[index] : NULL;
}

size_t hl_flow_sweeps(const hl_flow *flow)
{
    return flow ? flow->sweeps : 0;
}

/* ---- both directions ---- */

void hl_narrow(hl_dtype dtype, size_t count, const double *from, void *to)
{
    if (dtype == HL_F64)
        memcpy(to, from, count * sizeof *from);
    else
        for (size_t i = 0; i < count; i++)
            ((float *)to)[i] = (float)from[i];
}

double hl_widen(hl_dtype dtype, const void *from, size_t i)
{
    return dtype == HL_F64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
}

/* values = f(values) of network i for a chunk of rows; adds `sign` log |det| to logdet. */
static void apply(hl_flow *flow, size_t i, size_t rows, const double *context, double *values, double sign,
                  double *logdet)
{
    const hl_net *net = flow->net[i];
    size_t dim = net->dim, element = hl_dtype_size(net->dtype);
    char *x = flow->narrow, *c = x + rows * dim * element, *f = c + rows * net->context * element;
    char *sum = f + rows * dim * element;
    for (size_t p = 0; p < net->params; p++)
        flow->param[p] = (const char *)net->values + net->param[p].offset * element;
    hl_narrow(net->dtype, rows * dim, values, x);
    if (net->context)
        hl_narrow(net->dtype, rows * net->context, context, c);
    hl_execute(flow->plan[i], rows, (const void *[]){ x, c }, flow->param, (void *[]){ f, sum });
    for (size_t k = 0; k < rows * dim; k++)
        values[k] = hl_widen(net->dtype, f, k);
    for (size_t r = 0; r < rows; r++)
        logdet[r] += sign * hl_widen(net->dtype, sum, r);
}

/* values = the x with f(x) = values, and log |det| of that step. */
static void undo(hl_flow *flow, size_t i, size_t rows, const double *context, double *values, double *logdet)
{
    size_t dim = flow->spec.dim;
    double *solution = flow->work + HL_FLOW_ROWS * dim;
    flow->sweeps += hl_inverse_solve(flow->inverse[i], rows, values, context, solution);
    memcpy(values, solution, rows * dim * sizeof *values);
    apply(flow, i, rows, context, solution, -1, logdet); /* the solution is kept, its image is not looked at */
}

/* A chunk through all networks, as they are defined or undone. */
static void through(hl_flow *flow, bool inverse, size_t rows, const double *context, double *values, double *logdet)
{
    memset(logdet, 0, rows * sizeof *logdet);
    for (size_t k = 0; k < flow->nets; k++)
        if (inverse)
            undo(flow, flow->nets - 1 - k, rows, context, values, logdet);
        else
            apply(flow, k, rows, context, values, 1, logdet);
}

/* The direction in which the networks are defined is that of their indices. */
static hl_status run(hl_flow *flow, bool inverse, size_t rows, const double *from, const double *context, double *to,
                     double *logdet)
{
    size_t dim = flow->spec.dim, failed = 0, first = 0;
    size_t sweeps = 0;
    if (rows && (!from || (flow->spec.context && !context)))
        return hl_fail(flow->ctx, HL_ERR_INVALID, "flow: %s is NULL", from ? "context" : "the input");
    for (size_t start = 0; start < rows; start += HL_FLOW_ROWS) {
        size_t count = rows - start < HL_FLOW_ROWS ? rows - start : HL_FLOW_ROWS;
        double sum[HL_FLOW_ROWS];
        memcpy(flow->work, from + start * dim, count * dim * sizeof *from);
        flow->sweeps = 0;
        through(flow, inverse, count, context ? context + start * flow->spec.context : NULL, flow->work, sum);
        sweeps = sweeps > flow->sweeps ? sweeps : flow->sweeps;
        for (size_t r = 0; r < count; r++)
            if (!isfinite(sum[r]) && failed++ == 0)
                first = start + r;
        if (to)
            memcpy(to + start * dim, flow->work, count * dim * sizeof *to);
        if (logdet)
            memcpy(logdet + start, sum, count * sizeof *sum);
    }
    flow->sweeps = sweeps;
    return failed == 0 ? HL_OK
                       : hl_fail(flow->ctx, inverse ? HL_ERR_NO_SOLUTION : HL_ERR_NOT_FINITE,
                                 "%s for %zu of %zu rows, the first of them row %zu",
                                 inverse ? "no solution found" : "the flow is not finite", failed, rows, first);
}

hl_status hl_flow_forward(hl_flow *flow, size_t rows, const double *x, const double *context, double *z, double *logdet)
{
    return flow ? run(flow, flow->kind->from_base, rows, x, context, z, logdet) : HL_ERR_INVALID;
}

hl_status hl_flow_inverse(hl_flow *flow, size_t rows, const double *z, const double *context, double *x, double *logdet)
{
    return flow ? run(flow, !flow->kind->from_base, rows, z, context, x, logdet) : HL_ERR_INVALID;
}
