/* subject.c - a network, its plans and its arrays.
 *
 * The training step is what a user would write: loss = mean over rows of sum_i f_i^2 / 2 + D f_i. */
#include <stdlib.h>

#include "bench.h"
#include "problems/numbers.h"

static hl_status make_arrays(bench_subject *s)
{
    size_t size = hl_dtype_size(s->dtype), n = s->rows * s->dim, at = 0;
    for (size_t i = 0; i < s->params; i++) {
        hl_net_param p;
        hl_net_param_get(s->net, i, &p);
        s->values += p.size;
    }
    s->x = calloc(n, size);
    s->f = calloc(n, size);
    s->d = calloc(n, size);
    s->loss = calloc(1, size);
    s->gradient = calloc(s->values, size);
    s->param = calloc(s->params, sizeof *s->param);
    for (int j = 0; j < BENCH_JOBS; j++)
        s->output[j] = calloc(s->params + 2, sizeof *s->output[j]);
    if (!s->x || !s->f || !s->d || !s->loss || !s->gradient || !s->param || !s->output[0] || !s->output[1] ||
        !s->output[2])
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < n; i++)
        numbers_set(s->dtype, s->x, i, hl_random_normal(7, 0, i));
    s->output[BENCH_F][0] = s->output[BENCH_FD][0] = s->f;
    s->output[BENCH_FD][1] = s->d;
    s->output[BENCH_TRAIN][0] = s->loss;
    for (size_t i = 0; i < s->params; i++) {
        hl_net_param p;
        hl_net_param_get(s->net, i, &p);
        s->param[i] = p.values;
        s->output[BENCH_TRAIN][i + 1] = (char *)s->gradient + at * size;
        at += p.size;
    }
    return HL_OK;
}

static hl_status make_plans(bench_subject *s, hl_graph *g, hl_node *node, const hl_plan_options *options)
{
    hl_node d, *gradient = node + s->params + 1;
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &s->dim), .param = node, .d = &d };
    hl_status status = hl_net_build(s->net, g, 1, HL_TAYLOR, &n);
    if (status != HL_OK)
        return status;
    hl_node f = n.f, row = hl_add(g, hl_scale(g, 0.5, hl_sum(g, hl_mul(g, f, f), 0)), n.divergence);
    hl_node loss = hl_sum_rows(g, hl_scale(g, 1 / (double)s->rows, row));
    gradient[-1] = loss;
    status = hl_vjp(g, 1, &loss, &(hl_node){ HL_NONE }, s->params, node, NULL, gradient);
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, g, 1, &f, options, &s->plan[BENCH_F]);
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, g, 2, (hl_node[]){ f, d }, options, &s->plan[BENCH_FD]);
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, g, s->params + 1, gradient - 1, options, &s->plan[BENCH_TRAIN]);
    return status;
}

hl_status bench_subject_create(bench_subject *s, const bench_case *c, hl_dtype dtype, int threads, bool dense)
{
    hl_net_spec spec = { .dim = c->dim,
                         .features = c->features,
                         .hidden = c->hidden,
                         .width = c->width,
                         .dtype = dtype,
                         .conditioner = c->conditioner,
                         .image = { 1, c->height, c->height ? c->dim / c->height : 0 } };
    *s = (bench_subject){ .dtype = dtype, .rows = c->rows, .dim = c->dim };
    hl_graph *g = NULL;
    hl_status status = hl_context_create(&(hl_context_options){ .threads = threads }, &s->ctx);
    if (status == HL_OK)
        status = hl_net_create(s->ctx, &spec, &s->net);
    if (status == HL_OK)
        status = hl_net_init(s->net, 1);
    s->params = hl_net_param_count(s->net);
    if (status == HL_OK)
        status = make_arrays(s);
    hl_node *node = calloc(2 * s->params + 1, sizeof *node);
    if (status == HL_OK)
        status = node ? hl_graph_create(s->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = make_plans(s, g, node, &(hl_plan_options){ .dtype = dtype, .dense_masks = dense });
    hl_graph_free(g);
    free(node);
    return status;
}

void bench_subject_free(bench_subject *s)
{
    for (int j = 0; j < BENCH_JOBS; j++) {
        hl_plan_free(s->plan[j]);
        free(s->output[j]);
    }
    free(s->x);
    free(s->f);
    free(s->d);
    free(s->loss);
    free(s->gradient);
    free(s->param);
    hl_net_free(s->net);
    hl_context_free(s->ctx);
    *s = (bench_subject){ 0 };
}

hl_status bench_subject_run(bench_subject *s, bench_job job)
{
    return hl_plan_run(s->plan[job], s->rows, (const void *[]){ s->x }, s->param, s->output[job]);
}
