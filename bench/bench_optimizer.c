/* bench_optimizer.c - nanoseconds a value of one optimiser step, norm and conversion included. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/base.h"
#include "hollow/learn.h"

static double now(void) /* processor time: others may run on this core in between */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The best of several runs of `steps` steps, in nanoseconds a value; NAN if anything fails. */
static double time_steps(hl_optimizer *o, size_t size, const double *gradient, size_t steps)
{
    double best = INFINITY;
    for (int run = 0; run < 7; run++) {
        double start = now();
        for (size_t k = 0; k < steps; k++)
            if (hl_optimizer_step(o, gradient, 1, NULL) != HL_OK)
                return NAN;
        best = fmin(best, (now() - start) / (double)(steps * size));
    }
    return 1e9 * best;
}

static int bench(hl_context *ctx, const char *method, double average, size_t size)
{
    hl_graph *g = NULL;
    hl_params *params = NULL;
    hl_optimizer *o = NULL;
    double *gradient = malloc(size * sizeof *gradient);
    hl_optimizer_options options = { .method = method, .average = average };
    int failed = !gradient || hl_graph_create(ctx, &g) != HL_OK || hl_param(g, "w", 1, &size) == HL_BAD ||
                 hl_params_from_graph(g, HL_F32, &params) != HL_OK ||
                 hl_optimizer_create_for(params, &options, &o) != HL_OK;
    if (!failed) {
        hl_random_normals(1, 0, 0, size, gradient);
        printf("{\"bench\": \"optimizer\", \"method\": \"%s\", \"average\": %g, \"values\": %zu, \"ns_per_value\": "
               "%.2f}\n",
               method, average, size, time_steps(o, size, gradient, 1 + 3000000 / size));
    }
    hl_optimizer_free(o);
    hl_params_free(params);
    hl_graph_free(g);
    free(gradient);
    return failed;
}

int main(void)
{
    static const size_t sizes[] = { 10000, 100000, 1000000, 3000000 };
    hl_context *ctx;
    int failed = 0;
    if (hl_context_create(NULL, &ctx) != HL_OK)
        return 1;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        failed |= bench(ctx, "adam", 0, sizes[i]);
        failed |= bench(ctx, "adam", 0.99, sizes[i]);
        failed |= bench(ctx, "adamax", 0.99, sizes[i]);
    }
    hl_context_free(ctx);
    return failed;
}
