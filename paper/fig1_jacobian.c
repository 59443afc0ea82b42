/* fig1_jacobian.c - the Jacobian of a hollow network in all its parts.
 *
 * One batch of d rows holds the same x with the d one-hot cotangents v, so that row i of each result is row i of a matrix. */
#include <math.h>
#include <stdlib.h>

#include "paper.h"
#include "problems/numbers.h"

static hl_status make_plans(const hl_net *net, hl_context *ctx, hl_graph *g, hl_plan **rows, hl_plan **features)
{
    size_t dims[] = { hl_net_describe(net).dim, FIG1_FEATURES };
    hl_node *param = calloc(hl_net_param_count(net) + 1, sizeof *param);
    hl_node x = hl_input(g, "x", 1, dims), v = hl_input(g, "v", 1, dims), u = hl_input(g, "u", 2, dims);
    hl_node d, total, direct, by_h, hollow, h_by_x;
    hl_net_nodes n = { .x = x, .param = param, .d = &d };
    hl_status status = param ? hl_net_build(net, g, 1, HL_TAYLOR, &n) : HL_ERR_NOMEM;
    free(param);
    if (status != HL_OK)
        return status;
    hl_node h = n.h, f = n.f;
    hl_hold hold = { 1, &h };
    if ((status = hl_vjp(g, 1, &f, &v, 1, &x, NULL, &total)) != HL_OK ||
        (status = hl_vjp(g, 1, &f, &v, 1, &x, &hold, &direct)) != HL_OK ||
        (status = hl_vjp(g, 1, &f, &v, 1, &h, NULL, &by_h)) != HL_OK ||
        (status = hl_vjp(g, 1, &h, &by_h, 1, &x, NULL, &hollow)) != HL_OK ||
        (status = hl_vjp(g, 1, &h, &u, 1, &x, NULL, &h_by_x)) != HL_OK)
        return status;
    hl_plan_options options = { .dtype = HL_F64 };
    status = hl_plan_create(ctx, g, 5, (hl_node[]){ d, total, direct, by_h, hollow }, &options, rows);
    return status == HL_OK ? hl_plan_create(ctx, g, 1, &h_by_x, &options, features) : status;
}

static double larger(double worst, double difference)
{
    return fabs(difference) <= worst ? worst : isnan(difference) ? INFINITY : fabs(difference);
}

static void compare(fig1_jacobian *j)
{
    size_t d = j->dim, n = d * FIG1_FEATURES;
    for (size_t r = 0; r < d; r++)
        for (size_t c = 0; c < d; c++) {
            size_t at = r * d + c;
            double product = 0;
            for (size_t k = 0; k < n; k++)
                product += j->by_h[r * n + k] * j->h_by_x[k * d + c];
            j->product_error = larger(j->product_error, product - j->hollow[at]);
            j->sum_error = larger(j->sum_error, j->total[at] - (j->direct[at] + j->hollow[at]));
            if (r != c)
                j->direct_off_diagonal = larger(j->direct_off_diagonal, j->direct[at]);
            else {
                j->hollow_diagonal = larger(j->hollow_diagonal, j->hollow[at]);
                j->diagonal_error = larger(j->diagonal_error, j->total[at] - j->diagonal[r]);
            }
        }
}

hl_status fig1_jacobian_compute(fig1_jacobian *j, const hl_net *net, hl_context *ctx, uint64_t seed)
{
    size_t d = hl_net_describe(net).dim, n = d * FIG1_FEATURES, params = hl_net_param_count(net);
    *j = (fig1_jacobian){ .dim = d, .memory = calloc(4 * d * d + 2 * d * n, sizeof *j->memory) };
    double *x = calloc(n, d * sizeof *x), *v = calloc(d, d * sizeof *v), *u = calloc(n, n * sizeof *u);
    const void **param = calloc(params + 1, sizeof *param);
    hl_graph *g = NULL;
    hl_plan *rows = NULL, *features = NULL;
    hl_status status = j->memory && x && v && u && param ? hl_graph_create(ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = make_plans(net, ctx, g, &rows, &features);
    if (status == HL_OK) {
        double *diagonals = j->memory; /* every row of the batch has all of D f */
        j->diagonal = diagonals;
        j->total = diagonals + d * d;
        j->direct = j->total + d * d;
        j->hollow = j->direct + d * d;
        j->by_h = j->hollow + d * d;
        j->h_by_x = j->by_h + d * n;
        for (size_t i = 0; i < params; i++) {
            hl_net_param p;
            hl_net_param_get(net, i, &p);
            param[i] = p.values;
        }
        for (size_t i = 0; i < n * d; i++)
            x[i] = hl_random_normal(seed, 0, i % d);
        for (size_t i = 0; i < d; i++)
            v[i * d + i] = 1;
        for (size_t i = 0; i < n; i++)
            u[i * n + i] = 1;
        status = hl_plan_run(rows, d, (const void *[]){ x, v, NULL }, param,
                             (void *[]){ diagonals, j->total, j->direct, j->by_h, j->hollow });
    }
    if (status == HL_OK)
        status = hl_plan_run(features, n, (const void *[]){ x, NULL, u }, param, (void *[]){ j->h_by_x });
    if (status == HL_OK)
        compare(j);
    hl_plan_free(rows);
    hl_plan_free(features);
    hl_graph_free(g);
    free(x);
    free(v);
    free(u);
    free(param);
    return status;
}

void fig1_jacobian_free(fig1_jacobian *j)
{
    free(j->memory);
    *j = (fig1_jacobian){ 0 };
}
