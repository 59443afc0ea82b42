/* discrete.c - flows of networks with triangular Jacobians, log |det| = sum of log D f_i.
 *
 * Applying a network is one plan. Undoing it is an inversion by sweeps. The gradient of -log p comes from one plan of all
 * networks where they map data to base. Where they map base to data (iaf), with v_0 = z, v_{k+1} = f_k(v_k), v_K = x,
 *
 *   L = |z|^2 / 2 + sum_k logdet_k(v_k),   a_k = dL / dv_k,   w_k = J_k^-T a_k
 *   dL / dtheta_k = d logdet_k / dtheta_k - w_k . df_k / dtheta_k,   a_{k+1} = w_k + d logdet_{k+1} / dv_{k+1}
 *
 * and J' w = a is solved by sweeps as well, from the last dimension to the first. */
#include <math.h>
#include <string.h>

#include "flow/flow.h"
#include "op/op.h"

enum { ROWS = HL_INVERSE_ROWS };

typedef struct step {
    hl_inverse *inverse;
    hl_plan *value;    /* x, context: f, logdet, D f */
    hl_plan *gradient; /* x, context, cotangents of f and logdet: gradients of x and the parameters; iaf */
} step;

typedef struct discrete {
    step *step;               /* one for each network */
    hl_plan *whole;           /* x, context: z, logdet, gradients of all parameters; NULL for iaf */
    const void **param;       /* values of all networks' parameters */
    hl_row_out *output;       /* for gradients: two results, then one per parameter */
    hl_row_out *result;       /* for gradients of one network: its x, then its parameters */
    size_t params;            /* of all networks */
    size_t *first;            /* of each network in `param` */
    const double *context;    /* of the rows at hand */
    double ones[ROWS];        /* cotangents of log-determinants */
    void *pieces;             /* gradients of all parameters, in the networks' precision */
    double *solution;         /* [ROWS][dim] */
    double *trail;            /* iaf: v_0 .. v_{K-1} [nets][ROWS][dim] */
    double *a, *w, *jw, *ddf; /* iaf: [ROWS][dim] */
} discrete;

/* ---- creation ---- */

static hl_status build_value(const hl_net *net, hl_graph *g, hl_node *param, hl_net_nodes *n, hl_node *logdet)
{
    n->param = param;
    hl_status status = hl_net_build(net, g, 1, HL_TAYLOR, n);
    if (status != HL_OK)
        return status;
    hl_node sum = hl_sum(g, hl_log(g, n->d[0]), 0); /* may be a constant, but each row gets its own */
    *logdet = hl_broadcast_shape(g, sum, &(hl_shape){ .batched = true });
    return hl_graph_status(g);
}

static hl_status compile_step(hl_flow *flow, size_t i, hl_graph *g, hl_node *node)
{
    discrete *s = flow->state;
    const hl_net *net = flow->net[i];
    hl_plan_options options = { .dtype = net->dtype };
    hl_node d, logdet, out[3];
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &net->dim), .d = &d };
    n.context = net->context ? hl_input(g, "context", 1, &net->context) : HL_NONE;
    hl_status status = build_value(net, g, node, &n, &logdet);
    if (status != HL_OK)
        return status;
    out[0] = n.f;
    out[1] = logdet;
    out[2] = d;
    status = hl_plan_create(flow->ctx, g, 3, out, &options, &s->step[i].value);
    if (status != HL_OK || !flow->kind->from_base)
        return status;
    hl_node gy[] = { hl_input(g, "gf", 1, &net->dim), hl_input(g, "gl", 0, NULL) }, *gx = node + s->params + 1;
    memmove(node + 1, node, net->params * sizeof *node);
    node[0] = n.x;
    status = hl_vjp(g, 2, out, gy, net->params + 1, node, NULL, gx);
    return status == HL_OK ? hl_plan_create(flow->ctx, g, net->params + 1, gx, &options, &s->step[i].gradient) : status;
}

/* z, the log-determinant of all networks, and the gradient of the sum of |z|^2 / 2 - logdet. */
static hl_status compile_whole(hl_flow *flow, hl_graph *g, hl_node *node)
{
    discrete *s = flow->state;
    hl_node d, logdet, total = HL_NONE, *gradient = node + s->params;
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &flow->dim), .d = &d };
    n.context = flow->context ? hl_input(g, "context", 1, &flow->context) : HL_NONE;
    for (size_t i = 0; i < flow->nets; i++, n.x = n.f) {
        hl_status status = build_value(flow->net[i], g, node + s->first[i], &n, &logdet);
        if (status != HL_OK)
            return status;
        total = hl_accumulate(g, total, logdet);
    }
    hl_node loss = hl_sub(g, hl_scale(g, 0.5, hl_sum(g, hl_mul(g, n.f, n.f), 0)), total);
    gradient[0] = n.f;
    gradient[1] = total;
    hl_status status = hl_vjp(g, 1, &loss, NULL, s->params, node, NULL, gradient + 2);
    return status == HL_OK ? hl_plan_create(flow->ctx, g, s->params + 2, gradient,
                                            &(hl_plan_options){ .dtype = flow->net[0]->dtype }, &s->whole)
                           : status;
}

static hl_status compile(hl_flow *flow, size_t i)
{
    discrete *s = flow->state;
    hl_graph *g = NULL;
    hl_node *node = hl_calloc(flow->ctx, 2 * s->params + 4, sizeof *node);
    hl_status status = node ? hl_graph_create(flow->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = i < flow->nets ? compile_step(flow, i, g, node) : compile_whole(flow, g, node);
    hl_graph_free(g);
    hl_free(flow->ctx, node);
    return status;
}

static hl_status make_arrays(hl_flow *flow)
{
    discrete *s = flow->state;
    size_t chunk = hl_size_mul(ROWS, flow->dim), element = hl_dtype_size(flow->net[0]->dtype), values = 0;
    s->step = hl_calloc(flow->ctx, flow->nets, sizeof *s->step);
    s->first = hl_calloc(flow->ctx, flow->nets, sizeof *s->first);
    if (!s->step || !s->first)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < flow->nets; i++) {
        s->first[i] = s->params;
        s->params += flow->net[i]->params;
        for (size_t p = 0; p < flow->net[i]->params; p++)
            values += hl_shape_size(&flow->net[i]->param[p].shape);
    }
    s->param = hl_calloc(flow->ctx, s->params + 1, sizeof *s->param);
    s->output = hl_calloc(flow->ctx, s->params + 2, sizeof *s->output);
    s->result = hl_calloc(flow->ctx, s->params + 1, sizeof *s->result);
    s->pieces = hl_calloc(flow->ctx, values + 1, element);
    s->solution = hl_calloc(flow->ctx, hl_size_mul(5, chunk), sizeof *s->solution);
    s->trail = hl_calloc(flow->ctx, flow->kind->from_base ? hl_size_mul(flow->nets, chunk) : 1, sizeof *s->trail);
    if (!s->param || !s->output || !s->result || !s->pieces || !s->solution || !s->trail)
        return HL_ERR_NOMEM;
    s->a = s->solution + chunk;
    s->w = s->a + chunk;
    s->jw = s->w + chunk;
    s->ddf = s->jw + chunk;
    return HL_OK;
}

/* Where the parameters' values and gradients are. */
static void point_params(hl_flow *flow)
{
    discrete *s = flow->state;
    char *piece = s->pieces;
    for (size_t i = 0; i < flow->nets; i++)
        for (size_t p = 0; p < flow->net[i]->params; p++) {
            hl_net_param q;
            hl_net_param_get(flow->net[i], p, &q);
            s->param[s->first[i] + p] = q.values;
            s->output[s->first[i] + p + 2].shared = piece;
            piece += q.size * hl_dtype_size(flow->net[i]->dtype);
        }
}

static hl_status discrete_create(hl_flow *flow)
{
    flow->state = hl_calloc(flow->ctx, 1, sizeof(discrete));
    hl_status status = flow->state ? make_arrays(flow) : HL_ERR_NOMEM;
    if (status != HL_OK)
        return status;
    discrete *s = flow->state;
    for (size_t r = 0; r < ROWS; r++)
        s->ones[r] = 1;
    point_params(flow);
    for (size_t i = 0; i < flow->nets && status == HL_OK; i++) {
        status = hl_inverse_create(flow->net[i], &s->step[i].inverse);
        if (status == HL_OK)
            status = compile(flow, i);
    }
    return status == HL_OK && !flow->kind->from_base ? compile(flow, flow->nets) : status;
}

static void discrete_free(hl_flow *flow)
{
    discrete *s = flow->state;
    if (!s)
        return;
    for (size_t i = 0; s->step && i < flow->nets; i++) {
        hl_inverse_free(s->step[i].inverse);
        hl_plan_free(s->step[i].value);
        hl_plan_free(s->step[i].gradient);
    }
    hl_plan_free(s->whole);
    void *const blocks[] = {
        s->step, s->first, (void *)s->param, s->output, s->result, s->pieces, s->solution, s->trail
    };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(flow->ctx, blocks[i]);
    hl_free(flow->ctx, s);
}

static hl_status discrete_solver(hl_flow *flow, const hl_flow_solver *solver)
{
    (void)flow, (void)solver;
    return HL_OK;
}

/* ---- both directions ---- */

/* values = f(values) of network i; adds `sign` log |det| to logdet. `ddf`, unless NULL, receives D f. */
static void apply(hl_flow *flow, size_t i, size_t rows, double *values, double sign, double *logdet, double *ddf)
{
    discrete *s = flow->state;
    double sum[ROWS];
    hl_row_in in[] = { { values, flow->dim, NULL }, { s->context, flow->context, NULL } };
    hl_row_out out[] = { { .p = values, .pitch = flow->dim },
                         { .p = sum, .pitch = 1 },
                         { .p = ddf, .pitch = flow->dim } };
    hl_execute_rows(s->step[i].value, rows, in, s->param + s->first[i], out);
    for (size_t r = 0; r < rows; r++)
        logdet[r] += sign * sum[r];
}

/* values = the x with f(x) = values, and log |det| of that step. */
static void undo(hl_flow *flow, size_t i, size_t rows, const double *context, double *values, double *logdet)
{
    discrete *s = flow->state;
    flow->sweeps += hl_inverse_solve(s->step[i].inverse, rows, values, context, s->solution);
    memcpy(values, s->solution, rows * flow->dim * sizeof *values);
    apply(flow, i, rows, s->solution, -1, logdet, NULL); /* the solution is kept, its image is not looked at */
}

static bool finite_row(const hl_flow *flow, size_t r, const double *values, const double *logdet)
{
    bool finite = isfinite(logdet[r]);
    for (size_t i = 0; i < flow->dim; i++)
        finite = finite && isfinite(values[r * flow->dim + i]);
    return finite;
}

static void discrete_run(hl_flow *flow, bool to_base, size_t first, size_t rows, const double *context, double *values,
                         double *logdet, hl_status *status)
{
    discrete *s = flow->state;
    bool inverse = to_base == flow->kind->from_base;
    double own[ROWS];
    logdet = memset(logdet ? logdet : own, 0, rows * sizeof *logdet);
    s->context = context;
    for (size_t k = 0; k < flow->nets; k++)
        if (inverse)
            undo(flow, flow->nets - 1 - k, rows, context, values, logdet);
        else
            apply(flow, k, rows, values, 1, logdet, NULL);
    for (size_t r = 0; r < rows; r++)
        if (!finite_row(flow, r, values, logdet)) {
            logdet[r] = NAN;
            for (size_t i = 0; i < flow->dim; i++)
                values[r * flow->dim + i] = NAN;
            hl_flow_note(flow, status, inverse ? HL_ERR_NO_SOLUTION : HL_ERR_NOT_FINITE, hl_at(first + r, HL_NOWHERE),
                         inverse ? "no solution found" : "the flow is not finite at this row");
        }
}

/* ---- gradients ---- */

/* Add the pieces of networks from .. to - 1 to the gradient. */
static void add_pieces(hl_flow *flow, size_t from, size_t to, double *gradient)
{
    discrete *s = flow->state;
    for (size_t i = from; i < to; i++) {
        double *at = gradient + flow->offset[i];
        for (size_t p = 0; p < flow->net[i]->params; p++) {
            size_t size = hl_shape_size(&flow->net[i]->param[p].shape);
            hl_add_from_precision(flow->net[i]->dtype, size, s->output[s->first[i] + p + 2].shared, at);
            at += size;
        }
    }
}

static hl_status refuse(hl_flow *flow, size_t first, size_t rows, const double *logdet)
{
    for (size_t r = 0; r < rows; r++)
        if (!isfinite(logdet[r]))
            return hl_fail_at(flow->ctx, HL_ERR_NOT_FINITE, hl_at(first + r, HL_NOWHERE),
                              "the flow is not finite at this row");
    return HL_OK;
}

/* All networks map data to base: one plan. */
static hl_status gradient_to_base(hl_flow *flow, size_t first, size_t rows, double *values, double *logdet,
                                  double *gradient)
{
    discrete *s = flow->state;
    hl_row_in in[] = { { values, flow->dim, NULL }, { s->context, flow->context, NULL } };
    s->output[0] = (hl_row_out){ .p = values, .pitch = flow->dim };
    s->output[1] = (hl_row_out){ .p = logdet, .pitch = 1 };
    hl_execute_rows(s->whole, rows, in, s->param, s->output);
    hl_status status = refuse(flow, first, rows, logdet);
    if (status == HL_OK)
        add_pieces(flow, 0, flow->nets, gradient);
    return status;
}

/* Gradients of <gf, f> + gl logdet of network i at v_i: to it (s->jw) and, if asked, to the network's parameters. */
static void pull_back(hl_flow *flow, size_t i, size_t rows, const double *gf, const double *gl, double *gradient)
{
    discrete *s = flow->state;
    const hl_net *net = flow->net[i];
    hl_row_in in[4] = { { s->trail + i * ROWS * flow->dim, net->dim, NULL } };
    size_t n = 1;
    if (net->context)
        in[n++] = (hl_row_in){ s->context, net->context, NULL };
    in[n++] = (hl_row_in){ gf, net->dim, NULL };
    in[n] = (hl_row_in){ gl, 1, NULL };
    s->result[0] = (hl_row_out){ .p = s->jw, .pitch = net->dim };
    for (size_t p = 0; p < net->params; p++)
        s->result[p + 1].shared = gradient ? s->output[s->first[i] + p + 2].shared : NULL;
    hl_execute_rows(s->step[i].gradient, rows, in, s->param + s->first[i], s->result);
    if (gradient)
        add_pieces(flow, i, i + 1, gradient);
}

/* w with J' w = a: dimension after dimension comes right, beginning with the last that the network looks at. */
static void solve_transposed(hl_flow *flow, size_t i, size_t rows)
{
    discrete *s = flow->state;
    size_t size = rows * flow->dim;
    for (size_t k = 0; k < size; k++)
        s->w[k] = s->a[k] / s->ddf[k];
    for (size_t sweep = 0; sweep < flow->dim; sweep++) {
        double moved = 0, largest = 0;
        pull_back(flow, i, rows, s->w, NULL, NULL);
        for (size_t k = 0; k < size; k++) {
            double change = (s->a[k] - s->jw[k]) / s->ddf[k];
            s->w[k] += change;
            moved = fmax(moved, fabs(change));
            largest = fmax(largest, fabs(s->w[k]));
        }
        if (moved <= 1e-15 * largest)
            break;
    }
}

static hl_status gradient_from_base(hl_flow *flow, size_t first, size_t rows, const double *context, double *values,
                                    double *logdet, double *gradient)
{
    discrete *s = flow->state;
    size_t size = rows * flow->dim, chunk = ROWS * flow->dim;
    memset(logdet, 0, rows * sizeof *logdet);
    for (size_t k = flow->nets; k-- > 0;) {
        undo(flow, k, rows, context, values, logdet);
        memcpy(s->trail + k * chunk, values, size * sizeof *values);
    }
    hl_status status = refuse(flow, first, rows, logdet);
    if (status != HL_OK)
        return status;
    memcpy(s->a, values, size * sizeof *values);
    for (size_t k = 0; k < flow->nets; k++) {
        double unused[ROWS];
        memcpy(s->solution, s->trail + k * chunk, size * sizeof *s->solution);
        apply(flow, k, rows, s->solution, 0, memset(unused, 0, sizeof unused), s->ddf);
        pull_back(flow, k, rows, NULL, s->ones, gradient);
        for (size_t i = 0; i < size; i++)
            s->a[i] += s->jw[i];
        solve_transposed(flow, k, rows);
        for (size_t i = 0; i < size; i++)
            s->a[i] = -s->w[i];
        pull_back(flow, k, rows, s->a, NULL, gradient);
        memcpy(s->a, s->w, size * sizeof *s->a);
    }
    return HL_OK;
}

static hl_status discrete_gradient(hl_flow *flow, size_t first, size_t rows, const double *context, double *values,
                                   double *logdet, double *gradient)
{
    discrete *s = flow->state;
    s->context = context;
    return flow->kind->from_base ? gradient_from_base(flow, first, rows, context, values, logdet, gradient)
                                 : gradient_to_base(flow, first, rows, values, logdet, gradient);
}

const hl_flow_engine hl_flow_discrete = { .chunk = ROWS,
                                          .gradient_chunk = ROWS,
                                          .create = discrete_create,
                                          .free = discrete_free,
                                          .set_solver = discrete_solver,
                                          .run = discrete_run,
                                          .gradient = discrete_gradient };
