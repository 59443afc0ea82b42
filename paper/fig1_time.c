/* fig1_time.c - what D f costs against brute force.
 *
 * Brute force takes the diagonal out of the Jacobian, d reverse sweeps for each row, run as a batch of d rows with one-hot
 * cotangents; each sweep evaluates f anew and goes back, about 2 f. All three are timed in turns, one thread, by the time that the
 * program spends on a processor, as the machine may be shared. */
#include <stdlib.h>

#include "paper.h"
#include "problems/numbers.h"

enum { F, FD, BRUTE, KINDS };
enum { MIN_ROUNDS = 5 };

typedef struct subject {
    hl_net *net;
    hl_plan *plan[KINDS];
    size_t dim, rows[KINDS]; /* rows of a run; brute force has d of them for each point */
    const void **param;
    float *x, *v, *f, *d; /* [most rows, dim] each */
} subject;

static hl_status make_plans(subject *s, hl_context *ctx, hl_graph *g, hl_node *node)
{
    hl_node d, gx;
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &s->dim), .param = node, .d = &d };
    hl_node v = hl_input(g, "v", 1, &s->dim);
    hl_status status = hl_net_build(s->net, g, 1, HL_TAYLOR, &n);
    if (status == HL_OK)
        status = hl_vjp(g, 1, &n.f, &v, 1, &n.x, NULL, &gx);
    if (status == HL_OK)
        status = hl_plan_create(ctx, g, 1, &n.f, NULL, &s->plan[F]);
    if (status == HL_OK)
        status = hl_plan_create(ctx, g, 2, (hl_node[]){ n.f, d }, NULL, &s->plan[FD]);
    if (status == HL_OK)
        status = hl_plan_create(ctx, g, 1, &gx, NULL, &s->plan[BRUTE]);
    return status;
}

static hl_status subject_create(subject *s, hl_context *ctx, size_t dim, uint64_t seed)
{
    hl_net_spec spec = {
        .dim = dim, .features = FIG1_TIME_FEATURES, .hidden = FIG1_TIME_HIDDEN, .width = FIG1_TIME_UNITS
    };
    hl_graph *g = NULL;
    *s = (subject){ .dim = dim };
    s->rows[F] = s->rows[FD] = dim > 256 ? 128 : dim > 64 ? 256 : 512;
    s->rows[BRUTE] = dim < 128 ? 128 / dim * dim : dim;
    hl_status status = hl_net_create(ctx, &spec, &s->net);
    if (status == HL_OK)
        status = hl_net_init(s->net, seed);
    size_t params = hl_net_param_count(s->net), n = dim * (s->rows[F] > s->rows[BRUTE] ? s->rows[F] : s->rows[BRUTE]);
    hl_node *node = calloc(params + 1, sizeof *node);
    s->param = calloc(params + 1, sizeof *s->param);
    s->x = calloc(4 * n, sizeof *s->x);
    if (status == HL_OK)
        status = node && s->param && s->x ? hl_graph_create(ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = make_plans(s, ctx, g, node);
    hl_graph_free(g);
    free(node);
    if (status != HL_OK)
        return status;
    s->v = s->x + n;
    s->f = s->v + n;
    s->d = s->f + n;
    for (size_t i = 0; i < params; i++) {
        hl_net_param p;
        hl_net_param_get(s->net, i, &p);
        s->param[i] = p.values;
    }
    for (size_t i = 0; i < n; i++)
        s->x[i] = (float)hl_random_normal(seed, 0, i);
    for (size_t i = 0; i < n / dim; i++)
        s->v[i * dim + i % dim] = 1;
    return HL_OK;
}

static void subject_free(subject *s)
{
    for (int k = 0; k < KINDS; k++)
        hl_plan_free(s->plan[k]);
    hl_net_free(s->net);
    free(s->param);
    free(s->x);
}

/* Keep the best time per point. */
static hl_status time_once(subject *s, int kind, double *best)
{
    void *output[] = { s->f, s->d };
    double start = numbers_cpu_time();
    hl_status status = hl_plan_run(s->plan[kind], s->rows[kind], (const void *[]){ s->x, s->v }, s->param, output);
    double points = (double)s->rows[kind] / (double)(kind == BRUTE ? s->dim : 1);
    double seconds = (numbers_cpu_time() - start) / points;
    if (*best == 0 || seconds < *best)
        *best = seconds;
    return status != HL_OK ? status : cli_interrupted() ? HL_STOPPED : HL_OK;
}

hl_status fig1_time_measure(fig1_time *t, hl_context *ctx, bool quick, uint64_t seed)
{
    hl_status status = HL_OK;
    double budget = quick ? 0.1 : 1; /* seconds for each size */
    *t = (fig1_time){ .count = quick ? 6 : FIG1_SIZES };
    for (size_t i = 0; i < t->count && status == HL_OK; i++) {
        subject s;
        double *best[] = { &t->f[i], &t->fd[i], &t->brute[i] };
        t->dim[i] = (size_t)2 << i;
        status = subject_create(&s, ctx, t->dim[i], seed);
        double end = numbers_cpu_time() + budget;
        for (int round = 0; status == HL_OK && (round < MIN_ROUNDS || numbers_cpu_time() < end); round++)
            for (int k = 0; k < KINDS && status == HL_OK; k++)
                status = time_once(&s, k, best[k]);
        subject_free(&s);
    }
    return status;
}
