/* bench_ode.c - how much of a solve's time is spent inside f.
 *
 * A network of size b (d = 43, two hidden layers of 256, 16 features, a transformer of 2 x 64, float32) is solved by dopri5 over
 * 256 and 1000 rows; its right-hand side is timed from inside. Before that the result is compared with a tighter solve. Prints
 * one JSON line per case; the fraction must be at least 0.9. Times are processor time: others may run in between. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "hollow/ode.h"

enum { DIM = 43, MOST = 1000 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct timed {
    hl_system inner;
    double seconds;
} timed;

static int timed_rhs(void *user, const hl_rows *at, double *dy)
{
    timed *t = user;
    const double start = now();
    const int value = t->inner.rhs(t->inner.user, at, dy);
    t->seconds += now() - start;
    return value;
}

static void check(hl_context *ctx, hl_status status)
{
    if (status < 0) {
        fprintf(stderr, "bench_ode: %s\n", hl_context_message(ctx));
        exit(1);
    }
}

/* Solve from t = 0 to 1; returns the seconds, and y. */
static double solve(hl_context *ctx, hl_ode *ode, size_t rows, double *y)
{
    static double t[MOST];
    for (size_t i = 0; i < rows * DIM; i++)
        y[i] = hl_random_normal(3, 0, i);
    memset(t, 0, sizeof t);
    const double start = now();
    check(ctx, hl_ode_solve(ode, rows, t, 1, y, NULL));
    return now() - start;
}

static void bench(hl_context *ctx, const hl_net *net, const char *method, size_t rows, size_t slots)
{
    static double y[MOST * DIM], exact[MOST * DIM];
    hl_field *field = NULL;
    hl_ode *ode = NULL, *fine = NULL;
    check(ctx, hl_field_create(net, slots, &field));
    timed t = { .inner = hl_field_system(field) };
    hl_system system = { .n = DIM, .rhs = timed_rhs, .rounding = t.inner.rounding, .user = &t };
    hl_ode_options o = { .method = method, .rows = slots, .rtol = 1e-5, .atol = 1e-5 };
    check(ctx, hl_ode_create(ctx, &system, &o, &ode));
    o.rtol = o.atol = 1e-7;
    check(ctx, hl_ode_create(ctx, &system, &o, &fine));
    double error = 0, best = 0, seconds = 1e30;
    solve(ctx, fine, rows, exact);
    for (int i = 0; i < 7; i++) {
        t.seconds = 0;
        const double total = solve(ctx, ode, rows, y);
        if (total < seconds) {
            seconds = total;
            best = t.seconds / total;
        }
    }
    for (size_t i = 0; i < rows * DIM; i++)
        error = fmax(error, fabs(y[i] - exact[i]));
    const hl_ode_counts c = hl_ode_report(ode).forward;
    printf("{\"bench\": \"ode\", \"method\": \"%s\", \"rows\": %zu, \"slots\": %zu, \"seconds\": %.5f, "
           "\"fraction_in_f\": %.4f, "
           "\"f_per_row\": %.1f, \"error\": %.2g}\n",
           method, rows, slots, seconds, best, (double)c.f / (double)(7 * rows), error);
    hl_ode_free(ode);
    hl_ode_free(fine);
    hl_field_free(field);
}

int main(void)
{
    hl_context *ctx = NULL;
    hl_net *net = NULL;
    hl_net_spec spec = {
        .dim = DIM, .hidden = 256, .hidden_layers = 2, .features = 16, .width = 64, .layers = 2, .time = 1
    };
    if (hl_context_create(NULL, &ctx) != HL_OK)
        return 1;
    check(ctx, hl_net_create(ctx, &spec, &net));
    check(ctx, hl_net_init(net, 1));
    bench(ctx, net, "dopri5", 256, 256);
    bench(ctx, net, "dopri5", 1000, 256);
    bench(ctx, net, "dopri5", 1000, 1000);
    bench(ctx, net, "tsit5", 1000, 256);
    bench(ctx, net, "dopri8", 1000, 256);
    hl_net_free(net);
    hl_context_free(ctx);
    return 0;
}
