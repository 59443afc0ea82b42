/* transformer.c - a transformer of your own, from primitives, and its dimension-wise derivatives.
 *
 *     h_i = x_1 + .. + x_{i-1},   f_i = sum_u v_u sin(w_u x_i + b_u h_i),
 *     D^k f_i = sum_u v_u w_u^k sin(w_u x_i + b_u h_i + k pi / 2), which is what holding h fixed must give. */
#include <math.h>
#include <stdio.h>

#include <hollow/hollow.h>

enum { ROWS = 2, D = 3, UNITS = 2, ORDER = 3 };

int main(void)
{
    const double w[UNITS] = { 1.5, -0.7 }, b[UNITS] = { 0.4, 2.0 }, v[UNITS] = { 1.0, 0.5 }, half_pi = acos(0);
    const double x[ROWS][D] = { { 0.1, -0.4, 1.2 }, { 2.0, 0.3, -1.1 } };
    double result[ORDER][ROWS][D], worst = 0;
    hl_context *ctx;
    hl_graph *g;
    hl_plan *plan;
    if (hl_context_create(NULL, &ctx) || hl_graph_create(ctx, &g))
        return 1;

    /* f, node by node. A mistake in any line is kept by the graph and reported by hl_plan_create. */
    hl_node nx = hl_input(g, "x", 1, (size_t[]){ D }), nv = hl_param(g, "v", 2, (size_t[]){ 1, UNITS });
    hl_node nw = hl_param(g, "w", 2, (size_t[]){ UNITS, 1 }), nb = hl_param(g, "b", 2, (size_t[]){ UNITS, 1 });
    hl_node h = hl_cumsum(g, nx, 0, 0, 1); /* [D]: the sum before i, without x_i */
    hl_node column_x = hl_reshape(g, nx, 2, (size_t[]){ D, 1 }), column_h = hl_reshape(g, h, 2, (size_t[]){ D, 1 });
    hl_node z = hl_add(g, hl_linear(g, column_x, nw), hl_linear(g, column_h, nb)); /* [D, UNITS] */
    hl_node f = hl_reshape(g, hl_linear(g, hl_sin(g, z), nv), 1, (size_t[]){ D });

    /* D^1 .. D^3 with h held are more nodes of the same graph. Parameters come in the order of their making. */
    hl_node d[ORDER];
    hl_dim_derivatives(g, f, nx, &(hl_hold){ 1, &h }, ORDER, HL_TAYLOR, d);
    if (hl_plan_create(ctx, g, ORDER, d, &(hl_plan_options){ .dtype = HL_F64 }, &plan) ||
        hl_plan_run(plan, ROWS, (const void *[]){ x }, (const void *[]){ v, w, b },
                    (void *[]){ result[0], result[1], result[2] }))
        return fprintf(stderr, "%s\n", hl_context_message(ctx)), 1;

    for (int k = 1; k <= ORDER; k++)
        for (int at = 0; at < ROWS * D; at++) {
            const double *row = x[at / D], before = at % D == 0 ? 0 : at % D == 1 ? row[0] : row[0] + row[1];
            double exact = 0;
            for (int u = 0; u < UNITS; u++)
                exact += v[u] * pow(w[u], k) * sin(w[u] * row[at % D] + b[u] * before + k * half_pi);
            worst = fmax(worst, fabs(result[k - 1][at / D][at % D] - exact));
        }
    printf("D^1 .. D^%d of f: largest error %.1e\n", ORDER, worst);
    hl_plan_free(plan);
    hl_graph_free(g);
    hl_context_free(ctx);
    return !(worst < 1e-13);
}
