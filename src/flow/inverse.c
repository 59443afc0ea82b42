/* inverse.c - invert a network whose h_i looks one way, f_i = tau(x_i, h_i(x_1..x_{i-1})), by Jacobi-type sweeps.
 *
 * A sweep computes h from the x at hand and then solves tau(x_i, h_i) = y_i wherever h_i has changed since the sweep before.
 * After s sweeps the first s dimensions are right, because all that they depend on is, and stay as they are to the last bit;
 * so a row is finished, after at most d + 1 sweeps, when none of its h has changed. The equations in one variable rise, and
 * are solved by Newton's method kept inside a bracket. A row's numbers depend on nothing but the row. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "flow/flow.h"

enum { NEWTON_STEPS = 100 };

struct hl_inverse {
    hl_context *ctx;
    const hl_net *net;
    hl_plan *h_plan, *tau_plan; /* h from x; f and D f from x and h, in the network's order of columns */
    const void **param;
    const double *context;
    double *h, *last_h;             /* [HL_INVERSE_ROWS][dim][features] */
    double *value, *slope;          /* f and D f */
    double *by_column;              /* x in the user's order of columns */
    double *x, *y, *lo, *hi, *step; /* [HL_INVERSE_ROWS][dim] in the network's order of columns; step: the last one */
    bool *fixed;                    /* [HL_INVERSE_ROWS][dim]: solved */
};

/* ---- creation ---- */

static hl_status compile_h(hl_inverse *v, hl_graph *g, hl_node *node)
{
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &v->net->dim), .param = node };
    n.context = v->net->context ? hl_input(g, "context", 1, &v->net->context) : HL_NONE;
    hl_status status = hl_net_build(v->net, g, 0, HL_TAYLOR, &n);
    return status == HL_OK
               ? hl_plan_create(v->ctx, g, 1, &n.h, &(hl_plan_options){ .dtype = v->net->dtype }, &v->h_plan)
               : status;
}

static hl_status compile_tau(hl_inverse *v, hl_graph *g, hl_node *node)
{
    const hl_net *net = v->net;
    hl_node x = hl_input(g, "x", 1, &net->dim), out[2];
    hl_node h = hl_input(g, "h", 2, (size_t[]){ net->dim, net->term[0].spec.features });
    hl_node context = net->context ? hl_input(g, "context", 1, &net->context) : HL_NONE;
    hl_status status = hl_net_build_tau(net, g, x, h, HL_NONE, context, node, &out[0], &out[1]);
    return status == HL_OK ? hl_plan_create(v->ctx, g, 2, out, &(hl_plan_options){ .dtype = net->dtype }, &v->tau_plan)
                           : status;
}

static hl_status compile(hl_inverse *v, hl_status (*one)(hl_inverse *, hl_graph *, hl_node *))
{
    hl_graph *g = NULL;
    hl_node *node = hl_calloc(v->ctx, v->net->params + 1, sizeof *node);
    hl_status status = node ? hl_graph_create(v->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = one(v, g, node);
    hl_graph_free(g);
    hl_free(v->ctx, node);
    return status;
}

static hl_status make_arrays(hl_inverse *v)
{
    const hl_net *net = v->net;
    size_t size = hl_size_mul(net->dim, HL_INVERSE_ROWS), element = hl_dtype_size(net->dtype);
    v->h = hl_calloc(v->ctx, hl_size_mul(size, net->term[0].spec.features), sizeof *v->h);
    v->last_h = hl_calloc(v->ctx, hl_size_mul(size, net->term[0].spec.features), sizeof *v->last_h);
    v->x = hl_calloc(v->ctx, hl_size_mul(8, size), sizeof *v->x);
    v->fixed = hl_calloc(v->ctx, size, sizeof *v->fixed);
    v->param = hl_calloc(v->ctx, net->params + 1, sizeof *v->param);
    if (!v->h || !v->last_h || !v->x || !v->fixed || !v->param)
        return HL_ERR_NOMEM;
    v->y = v->x + size;
    v->lo = v->y + size;
    v->hi = v->lo + size;
    v->step = v->hi + size;
    v->value = v->step + size;
    v->slope = v->value + size;
    v->by_column = v->slope + size;
    for (size_t i = 0; i < net->params; i++)
        v->param[i] = (const char *)net->values + net->param[i].offset * element;
    return HL_OK;
}

hl_status hl_inverse_create(const hl_net *net, hl_inverse **out)
{
    hl_inverse *v = hl_calloc(net->ctx, 1, sizeof *v);
    *out = v;
    if (!v)
        return HL_ERR_NOMEM;
    v->ctx = net->ctx;
    v->net = net;
    hl_status status = make_arrays(v);
    if (status == HL_OK)
        status = compile(v, compile_h);
    return status == HL_OK ? compile(v, compile_tau) : status;
}

void hl_inverse_free(hl_inverse *v)
{
    if (!v)
        return;
    hl_plan_free(v->h_plan);
    hl_plan_free(v->tau_plan);
    hl_free(v->ctx, v->h);
    hl_free(v->ctx, v->last_h);
    hl_free(v->ctx, v->x);
    hl_free(v->ctx, v->fixed);
    hl_free(v->ctx, v->param);
    hl_free(v->ctx, v);
}

/* ---- solving ---- */

/* One Newton step of equation i, f = y; true when it is solved: the step is down to rounding, or small and growing again. */
static bool newton(hl_inverse *v, size_t i, double epsilon)
{
    double x = v->x[i], residual = v->value[i] - v->y[i];
    if (residual > 0)
        v->hi[i] = x;
    else
        v->lo[i] = x;
    double next = x - residual / v->slope[i];
    double step = fabs(next - x), scale = 1 + fabs(next);
    bool done = step <= epsilon * scale || (step <= sqrt(epsilon) * scale && step >= 0.5 * v->step[i]);
    if (!done && !(next > v->lo[i] && next < v->hi[i]) && isfinite(v->lo[i]) && isfinite(v->hi[i]))
        next = 0.5 * (v->lo[i] + v->hi[i]);
    v->x[i] = next;
    v->step[i] = step;
    return done || !isfinite(next);
}

/* tau(x_i, h_i) = y_i wherever it is not fixed. */
static void solve_dimensions(hl_inverse *v, size_t rows)
{
    const hl_net *net = v->net;
    size_t size = rows * net->dim;
    double epsilon = net->dtype == HL_F64 ? 2 * DBL_EPSILON : 2 * FLT_EPSILON;
    bool left = true;
    for (size_t i = 0; i < size; i++) {
        v->lo[i] = -INFINITY;
        v->hi[i] = v->step[i] = INFINITY;
    }
    for (int step = 0; step < NEWTON_STEPS && left; step++) {
        left = false;
        hl_row_in in[] = { { v->x, net->dim, NULL },
                           { v->h, net->dim * net->term[0].spec.features, NULL },
                           { v->context, net->context, NULL } };
        hl_row_out out[] = { { .p = v->value, .pitch = net->dim }, { .p = v->slope, .pitch = net->dim } };
        hl_execute_rows(v->tau_plan, rows, in, v->param, out);
        for (size_t i = 0; i < size; i++)
            if (!v->fixed[i]) {
                v->fixed[i] = newton(v, i, epsilon);
                left = left || !v->fixed[i];
            }
    }
}

/* h from x, which goes into the network in the user's order of columns. */
static void compute_h(hl_inverse *v, size_t rows)
{
    const hl_net *net = v->net;
    const size_t *order = net->term[0].order;
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < net->dim; i++)
            v->by_column[r * net->dim + (order ? order[i] : i)] = v->x[r * net->dim + i];
    hl_row_in in[] = { { v->by_column, net->dim, NULL }, { v->context, net->context, NULL } };
    hl_execute_rows(v->h_plan, rows, in, v->param,
                    &(hl_row_out){ .p = v->h, .pitch = net->dim * net->term[0].spec.features });
}

/* Dimensions whose h is what it was are fixed; true if all are. */
static bool compare_h(hl_inverse *v, size_t rows)
{
    const hl_net *net = v->net;
    size_t features = net->term[0].spec.features, block = features * sizeof *v->h;
    bool all = true;
    for (size_t i = 0; i < rows * net->dim; i++) {
        v->fixed[i] = memcmp(v->h + i * features, v->last_h + i * features, block) == 0;
        all = all && v->fixed[i];
    }
    return all;
}

size_t hl_inverse_solve(hl_inverse *v, size_t rows, const double *y, const double *context, double *x)
{
    size_t dim = v->net->dim, sweep = 0;
    const size_t *order = v->net->term[0].order;
    v->context = context;
    for (size_t i = 0; i < rows * dim; i++) {
        v->x[i] = v->y[i] = y[i / dim * dim + (order ? order[i % dim] : i % dim)];
        v->fixed[i] = false;
    }
    for (; sweep <= dim; sweep++) {
        double *last = v->last_h;
        v->last_h = v->h;
        v->h = last;
        compute_h(v, rows);
        if (sweep > 0 && compare_h(v, rows))
            break;
        solve_dimensions(v, rows);
    }
    for (size_t i = 0; i < rows * dim; i++)
        x[i / dim * dim + (order ? order[i % dim] : i % dim)] = v->x[i];
    return sweep;
}
