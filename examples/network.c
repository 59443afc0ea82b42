/* network.c - a hollow network from a specification: evaluate it, differentiate it, train it a little, save and load it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hollow/hollow.h>

enum { ROWS = 6, D = 3 };

static hl_context *ctx;

static void must(hl_status status)
{
    if (status) {
        fprintf(stderr, "%s: %s\n", hl_status_text(status), hl_context_message(ctx));
        exit(1);
    }
}

/* What this example wants to be small: the mean square of the divergence. *cotangent is its derivative by the divergence. */
static double loss(const double *divergence, double *cotangent)
{
    double sum = 0;
    for (int r = 0; r < ROWS; r++) {
        sum += divergence[r] * divergence[r] / ROWS;
        cotangent[r] = 2 * divergence[r] / ROWS;
    }
    return sum;
}

int main(void)
{
    double x[ROWS][D], t[ROWS], f[ROWS][D], df[ROWS][D], divergence[ROWS], cotangent[ROWS];
    for (int r = 0; r < ROWS; r++) {
        t[r] = 0.1 * r;
        for (int i = 0; i < D; i++)
            x[r][i] = sin(1 + 3 * r + i);
    }

    /* Everything that is not said has a default; see hollow/net.h. */
    hl_net_spec spec = { .dim = D, .time = 1, .hidden = 32, .width = 16, .activation = "softplus", .dtype = HL_F64 };
    hl_net *net, *loaded;
    hl_operator *op;
    must(hl_context_create(NULL, &ctx));
    must(hl_net_create(ctx, &spec, &net));
    must(hl_net_init(net, 1));
    printf("a network of %zu parameters in %zu tensors\n", hl_net_size(net), hl_net_param_count(net));

    /* f, D f and the divergence of all rows in one go. D f costs little more than f, and is exact. */
    must(hl_operator_create(net, &(hl_operator_options){ .order = 1 }, &op));
    must(hl_operator_eval(op, ROWS, x, t, NULL, f, (void *[]){ df }, divergence));
    int ok = fabs(divergence[0] - (df[0][0] + df[0][1] + df[0][2])) < 1e-12;
    printf("row 0: f = %.4f %.4f %.4f, divergence = %.4f\n", f[0][0], f[0][1], f[0][2], divergence[0]);

    /* The same by moving one x. */
    double step = 1e-5, up[D], down[D];
    x[0][1] += step;
    must(hl_operator_eval(op, 1, x, t, NULL, up, NULL, NULL));
    x[0][1] -= 2 * step;
    must(hl_operator_eval(op, 1, x, t, NULL, down, NULL, NULL));
    x[0][1] += step;
    double difference = (up[1] - down[1]) / (2 * step);
    ok = ok && fabs(df[0][1] - difference) < 1e-8;
    printf("D f_1 = %.10f, by differences %.10f\n", df[0][1], difference);

    /* Descend: gradients to all parameters, through the exact derivatives. Only the divergence has a cotangent here. */
    size_t params = hl_net_param_count(net);
    void **gradient = calloc(params, sizeof *gradient);
    double first = loss(divergence, cotangent), last = first;
    hl_net_param p;
    if (!gradient)
        return 1;
    for (size_t i = 0; i < params; i++) {
        must(hl_net_param_get(net, i, &p));
        gradient[i] = calloc(p.size, sizeof(double));
        if (!gradient[i])
            return 1;
    }
    for (int iteration = 0; iteration < 50; iteration++) {
        must(hl_operator_vjp(op, ROWS, x, t, NULL, NULL, NULL, cotangent, NULL, NULL, NULL, gradient));
        for (size_t i = 0; i < params; i++) {
            must(hl_net_param_get(net, i, &p));
            for (size_t k = 0; k < p.size; k++)
                ((double *)p.values)[k] -= 0.05 * ((double *)gradient[i])[k];
        }
        must(hl_operator_eval(op, ROWS, x, t, NULL, f, NULL, divergence));
        last = loss(divergence, cotangent);
    }
    ok = ok && last < 0.1 * first;
    printf("mean square of the divergence: %.4f, after 50 steps %.6f\n", first, last);

    /* A model file holds the specification and the weights, bit by bit. */
    double again[ROWS][D];
    hl_operator *loaded_op;
    must(hl_net_save(net, "network.hollow"));
    must(hl_net_load(ctx, "network.hollow", &loaded));
    must(hl_operator_create(loaded, &(hl_operator_options){ .order = -1 }, &loaded_op)); /* f alone */
    must(hl_operator_eval(op, ROWS, x, t, NULL, f, NULL, NULL));
    must(hl_operator_eval(loaded_op, ROWS, x, t, NULL, again, NULL, NULL));
    int same = memcmp(f, again, sizeof f) == 0;
    printf("saved and loaded: %s\n", same ? "the same bits" : "not the same");

    for (size_t i = 0; i < params; i++)
        free(gradient[i]);
    free(gradient);
    hl_operator_free(op);
    hl_operator_free(loaded_op);
    hl_net_free(net);
    hl_net_free(loaded);
    hl_context_free(ctx);
    remove("network.hollow");
    return ok && same ? 0 : 1;
}
