/* flow.c - flows as chains of networks: their kinds and specifications, and the division of rows into chunks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "flow/flow.h"

#define HL_FLOW_KIND(name_, ...) { .name = name_, __VA_ARGS__ },
static const hl_flow_kind kinds[] = {
#include "flow/kinds.def"
};
#define HL_FLOW_KIND(name_, ...) name_,
const char *const hl_flow_kind_names[] = {
#include "flow/kinds.def"
    NULL
};

const char *const *hl_flow_kinds(void)
{
    return hl_flow_kind_names;
}

static const hl_flow_kind *find_kind(const char *name)
{
    size_t i = hl_name_index(hl_flow_kind_names, name ? name : "cnf");
    return hl_flow_kind_names[i] ? &kinds[i] : NULL;
}

int hl_flow_is_continuous(const char *kind)
{
    const hl_flow_kind *found = find_kind(kind);
    return found && found->engine == &hl_flow_continuous;
}

/* ---- creation ---- */

static hl_status set_kind(hl_flow *flow, const char *name)
{
    flow->kind = find_kind(name);
    if (!flow->kind)
        return hl_fail_unknown(flow->ctx, "kind of flow", name, hl_flow_kind_names);
    flow->spec.kind = flow->kind->name;
    return HL_OK;
}

static hl_status set_spec(hl_flow *flow, const hl_flow_spec *given)
{
    hl_flow_spec *s = &flow->spec;
    *s = *given;
    hl_status status = set_kind(flow, given->kind);
    if (status != HL_OK)
        return status;
    const hl_net_spec *net = &given->net;
    bool discrete = flow->kind->conditioner != NULL;
    if (discrete && (net->conditioner || net->transformer || net->order || net->reflections || net->mlp || net->plus))
        return hl_fail(flow->ctx, HL_ERR_INVALID,
                       "a flow of kind %s has the conditioner %s and the transformer %s; do not set conditioner, "
                       "transformer, order, reflections, mlp or plus in its specification, or use kind cnf",
                       flow->kind->name, flow->kind->conditioner, flow->kind->transformer);
    s->flows = s->flows ? s->flows : flow->kind->flows;
    if (s->flows > 1000)
        return hl_fail(flow->ctx, HL_ERR_INVALID, "flows is %zu; it must be in 1..1000", s->flows);
    flow->dim = net->dim;
    flow->context = net->context;
    return HL_OK;
}

/* Network i; of the discrete ones every second takes the columns backwards. */
static hl_status make_net(hl_flow *flow, size_t i, const size_t *backwards)
{
    const hl_flow_kind *kind = flow->kind;
    hl_net_spec spec = flow->spec.net;
    bool scale = i == flow->spec.flows;
    if (!kind->conditioner) {
        spec.time = 1;
        return hl_net_create(flow->ctx, &spec, &flow->net[i]);
    }
    spec.time = 0;
    spec.conditioner = scale ? "none" : kind->conditioner;
    spec.transformer = scale ? "affine" : kind->transformer;
    spec.order = i % 2 && !scale ? backwards : NULL;
    spec.features = spec.features ? spec.features : kind->features;
    spec.width = spec.width ? spec.width : kind->width;
    spec.layers = spec.layers ? spec.layers : kind->layers;
    return hl_net_create(flow->ctx, &spec, &flow->net[i]);
}

static hl_status make_nets(hl_flow *flow)
{
    size_t offset = 0, *backwards = hl_calloc(flow->ctx, flow->dim + 1, sizeof *backwards);
    flow->nets = flow->spec.flows + flow->kind->scaled;
    flow->net = hl_calloc(flow->ctx, flow->nets, sizeof *flow->net);
    flow->offset = hl_calloc(flow->ctx, flow->nets, sizeof *flow->offset);
    hl_status status = backwards && flow->net && flow->offset ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < flow->dim && status == HL_OK; i++)
        backwards[i] = flow->dim - 1 - i;
    for (size_t i = 0; i < flow->nets && status == HL_OK; i++) {
        status = make_net(flow, i, backwards);
        flow->offset[i] = offset;
        for (size_t p = 0; status == HL_OK && p < flow->net[i]->params; p++)
            offset += hl_shape_size(&flow->net[i]->param[p].shape);
    }
    hl_free(flow->ctx, backwards);
    return status;
}

/* With threads that rows are dealt to, chunks of about 4 MB. */
static size_t chunk_of(const hl_flow *flow)
{
    const hl_flow_engine *engine = flow->kind->engine;
    size_t rows = ((size_t)1 << 19) / (flow->dim + 1);
    if (!engine->deals || hl_team_size(flow->ctx->team) < 2 || rows < engine->chunk)
        return engine->chunk;
    return rows < HL_FLOW_CHUNK ? rows : HL_FLOW_CHUNK;
}

static hl_status make_flow(hl_flow *flow, const hl_flow_spec *spec)
{
    hl_status status = set_spec(flow, spec);
    if (status == HL_OK && (spec->net.dim == 0 || spec->net.dim > 1000000))
        status = hl_fail(flow->ctx, HL_ERR_INVALID, "dim is %zu; it must be in 1..1000000", spec->net.dim);
    if (status == HL_OK)
        status = make_nets(flow);
    if (status != HL_OK)
        return status;
    flow->spec.net = hl_net_describe(flow->net[0]);
    size_t chunk = flow->chunk = chunk_of(flow);
    if (chunk < flow->kind->engine->gradient_chunk)
        chunk = flow->kind->engine->gradient_chunk;
    flow->work = hl_calloc(flow->ctx, hl_size_mul(chunk, flow->dim + 1), sizeof *flow->work);
    return flow->work ? flow->kind->engine->create(flow) : HL_ERR_NOMEM;
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
    hl_status status = make_flow(flow, spec);
    if (status != HL_OK) {
        hl_flow_free(flow);
        return status;
    }
    *out = flow;
    return HL_OK;
}

void hl_flow_free(hl_flow *flow)
{
    if (!flow)
        return;
    hl_flow_pull_free(flow);
    if (flow->kind)
        flow->kind->engine->free(flow);
    for (size_t i = 0; flow->net && i < flow->nets; i++)
        hl_net_free(flow->net[i]);
    hl_free(flow->ctx, flow->net);
    hl_free(flow->ctx, flow->offset);
    hl_free(flow->ctx, flow->work);
    hl_free(flow->ctx, flow);
}

hl_status hl_flow_init(hl_flow *flow, uint64_t seed)
{
    if (!flow)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < flow->nets; i++) {
        hl_status status = hl_net_init(flow->net[i], hl_random_bits(seed, 0, i));
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

hl_status hl_flow_set_solver(hl_flow *flow, const hl_flow_solver *solver)
{
    static const hl_flow_solver defaults;
    if (!flow)
        return HL_ERR_INVALID;
    hl_flow_pull_reset(flow);
    return flow->kind->engine->set_solver(flow, solver ? solver : &defaults);
}

void hl_flow_set_draw(hl_flow *flow, uint64_t draw)
{
    if (flow)
        flow->draw = draw;
}

hl_ode_summary hl_flow_report(const hl_flow *flow)
{
    return flow ? flow->report : (hl_ode_summary){ 0 };
}

void hl_flow_reset(hl_flow *flow)
{
    if (flow)
        flow->report = (hl_ode_summary){ 0 };
}

void hl_flow_note(hl_flow *flow, hl_status *status, hl_status why, hl_place place, const char *what)
{
    if (*status != HL_OK && (*status != HL_IMPRECISE || why == HL_IMPRECISE))
        return;
    *status = why;
    flow->place = place;
    snprintf(flow->message, sizeof flow->message, "%s", what);
}

/* ---- rows in chunks ---- */

static double log_base(const double *z, size_t dim)
{
    double square = 0;
    for (size_t i = 0; i < dim; i++)
        square += z[i] * z[i];
    return -0.5 * square - 0.5 * (double)dim * log(2 * 3.14159265358979323846);
}

static hl_status check_call(hl_flow *flow, size_t rows, const double *from, const double *context)
{
    if (rows && (!from || (flow->context && !context)))
        return hl_fail(flow->ctx, HL_ERR_INVALID, "flow: %s is NULL", from ? "the context" : "the input");
    for (size_t i = 0; i < rows * flow->context; i++)
        if (!isfinite(context[i]))
            return hl_fail_at(flow->ctx, HL_ERR_NOT_FINITE, hl_at(i / flow->context, i % flow->context),
                              "the context is not finite");
    return HL_OK;
}

/* NaN where the input is not finite; the others get a zero instead, so that they cause no trouble. */
static void screen(hl_flow *flow, size_t first, size_t rows, double *values, bool *bad, hl_status *status)
{
    size_t dim = flow->dim;
    for (size_t r = 0; r < rows; r++) {
        size_t i = 0;
        while (i < dim && isfinite(values[r * dim + i]))
            i++;
        bad[r] = i < dim;
        if (bad[r]) {
            hl_flow_note(flow, status, HL_ERR_NOT_FINITE, hl_at(first + r, i), "not finite");
            memset(values + r * dim, 0, dim * sizeof *values);
        }
    }
}

static hl_status fail(hl_flow *flow, hl_status status)
{
    return hl_fail_at(flow->ctx, status, flow->place, "%s", flow->message);
}

/* All rows, one way; `logp` asks for log p instead of the log-determinant. */
static hl_status run(hl_flow *flow, bool to_base, size_t rows, const double *from, const double *context, double *to,
                     double *logdet, bool logp)
{
    size_t dim = flow->dim, chunk = flow->chunk, sweeps = 0;
    double *sum = logdet ? flow->work + chunk * dim : NULL;
    hl_status status = check_call(flow, rows, from, context), first_status = HL_OK;
    size_t start = 0;
    for (; start < rows && status == HL_OK && first_status != HL_STOPPED; start += chunk) {
        size_t count = rows - start < chunk ? rows - start : chunk;
        bool bad[HL_FLOW_CHUNK];
        memcpy(flow->work, from + start * dim, count * dim * sizeof *from);
        if (hl_check_stop(flow->ctx) != HL_OK) {
            first_status = HL_OK;
            hl_flow_note(flow, &first_status, HL_STOPPED, hl_at(HL_NOWHERE, HL_NOWHERE), "stopped on request");
            break;
        }
        screen(flow, start, count, flow->work, bad, &first_status);
        flow->sweeps = 0;
        flow->kind->engine->run(flow, to_base, start, count, context ? context + start * flow->context : NULL,
                                flow->work, sum, &first_status);
        sweeps = sweeps > flow->sweeps ? sweeps : flow->sweeps;
        for (size_t r = 0; r < count; r++) {
            for (size_t i = 0; bad[r] && i < dim; i++)
                flow->work[r * dim + i] = NAN;
            if (sum)
                sum[r] = bad[r] ? NAN : sum[r] + (logp ? log_base(flow->work + r * dim, dim) : 0);
        }
        if (to)
            memcpy(to + start * dim, flow->work, count * dim * sizeof *to);
        if (logdet)
            memcpy(logdet + start, sum, count * sizeof *sum);
    }
    flow->sweeps = sweeps;
    for (size_t i = start * dim; first_status == HL_STOPPED && to && i < rows * dim; i++)
        to[i] = NAN;
    for (size_t r = start; first_status == HL_STOPPED && logdet && r < rows; r++)
        logdet[r] = NAN;
    return status == HL_OK && first_status != HL_OK ? fail(flow, first_status) : status;
}

hl_status hl_flow_forward(hl_flow *flow, size_t rows, const double *x, const double *context, double *z, double *logdet)
{
    return flow ? run(flow, true, rows, x, context, z, logdet, false) : HL_ERR_INVALID;
}

hl_status hl_flow_inverse(hl_flow *flow, size_t rows, const double *z, const double *context, double *x, double *logdet)
{
    return flow ? run(flow, false, rows, z, context, x, logdet, false) : HL_ERR_INVALID;
}

hl_status hl_flow_logp(hl_flow *flow, size_t rows, const double *x, const double *context, double *logp)
{
    return flow ? run(flow, true, rows, x, context, NULL, logp, true) : HL_ERR_INVALID;
}

hl_status hl_flow_gradient(hl_flow *flow, size_t rows, const double *x, const double *context, double *logp,
                           double *gradient)
{
    if (!flow)
        return HL_ERR_INVALID;
    if (!gradient)
        return hl_fail(flow->ctx, HL_ERR_INVALID, "hl_flow_gradient: the gradient is NULL");
    size_t dim = flow->dim, chunk = flow->kind->engine->gradient_chunk;
    double *sum = flow->work + chunk * dim;
    hl_status status = check_call(flow, rows, x, context);
    for (size_t start = 0; start < rows && status == HL_OK; start += chunk) {
        size_t count = rows - start < chunk ? rows - start : chunk;
        bool bad[HL_FLOW_CHUNK];
        memcpy(flow->work, x + start * dim, count * dim * sizeof *x);
        screen(flow, start, count, flow->work, bad, &status);
        if (status != HL_OK)
            return fail(flow, status);
        status = flow->kind->engine->gradient(flow, start, count, context ? context + start * flow->context : NULL,
                                              flow->work, sum, gradient);
        for (size_t r = 0; r < count && logp && status == HL_OK; r++)
            logp[start + r] = sum[r] + log_base(flow->work + r * dim, dim);
    }
    return status;
}
