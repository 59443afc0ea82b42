/* ops_support.h - a graph together with the values of its leaves, evaluated in either precision. For the tests of the op
 * table, the drivers and the plans. */
#ifndef HL_TESTS_OPS_SUPPORT_H
#define HL_TESTS_OPS_SUPPORT_H

#include "support.h"

#include <stdio.h>

#include "hollow/diff.h"
#include "hollow/plan.h"
#include "op/op.h"

enum { MODEL_LEAVES = 64 };

typedef struct model_block {
    struct model_block *next;
} model_block;

/* Values are doubles that are exact in single precision, so that both precisions compute with the same numbers. */
typedef struct model {
    hl_context *ctx;
    hl_graph *g;
    size_t rows;
    double *input[MODEL_LEAVES], *param[MODEL_LEAVES];
    model_block *blocks; /* freed with the model */
} model;

static inline model model_make(hl_context *ctx, size_t rows)
{
    model m = { .ctx = ctx, .rows = rows };
    CHECK_OK(ctx, hl_graph_create(ctx, &m.g));
    return m;
}

static inline void *model_alloc(model *m, size_t bytes)
{
    model_block *b = calloc(1, sizeof(double) * 2 + bytes);
    assert_non_null(b);
    b->next = m->blocks;
    m->blocks = b;
    return (char *)b + sizeof(double) * 2;
}

static inline void model_free(model *m)
{
    while (m->blocks) {
        model_block *next = m->blocks->next;
        free(m->blocks);
        m->blocks = next;
    }
    hl_graph_free(m->g);
    *m = (model){ 0 };
}

/* How many values a node has in all: rows times its size if it is batched. */
static inline size_t model_count(const model *m, hl_node n)
{
    return hl_node_size(m->g, n) * (hl_node_batched(m->g, n) ? m->rows : 1);
}

/* The values of a leaf. */
static inline double *model_values(const model *m, hl_node leaf)
{
    const hl_node_data *d = hl_graph_node(m->g, leaf);
    return d->op == &hl_op_input ? m->input[d->attr.i[0]] : m->param[d->attr.i[0]];
}

/* A new input or parameter with values in [-1, 1], or normal ones if seed is odd. */
static inline hl_node model_leaf(model *m, bool batched, const hl_shape *shape, uint64_t seed)
{
    hl_node n = batched ? hl_input(m->g, "x", shape->rank, shape->dim) : hl_param(m->g, "p", shape->rank, shape->dim);
    size_t at = batched ? hl_graph_inputs(m->g) - 1 : hl_graph_params(m->g) - 1, count = model_count(m, n);
    double *v = model_alloc(m, count * sizeof *v);
    assert_true(n > 0 && at < MODEL_LEAVES);
    for (size_t i = 0; i < count; i++)
        v[i] = (float)(seed & 1 ? hl_random_normal(seed, 1, i) : 2 * hl_random_uniform(seed, 1, i) - 1);
    *(batched ? &m->input[at] : &m->param[at]) = v;
    return n;
}

#define SHAPE(...)                                                                                                     \
    (&(hl_shape){ .rank = (int)(sizeof((size_t[]){ __VA_ARGS__ }) / sizeof(size_t)), .dim = { __VA_ARGS__ } })
#define SCALAR (&(hl_shape){ 0 })

/* Run a plan on the leaves' values; out[i] (allocated in the model) receives output i as doubles. */
static inline void model_run(model *m, hl_plan *plan, size_t count, const hl_node *node, double **out)
{
    hl_dtype dtype = hl_plan_describe(plan).dtype;
    size_t element = hl_dtype_size(dtype), inputs = hl_graph_inputs(m->g), params = hl_graph_params(m->g);
    const void *in[2][MODEL_LEAVES] = { { NULL } };
    void **to = model_alloc(m, count * sizeof *to);
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < (kind ? params : inputs); i++) {
            size_t n = model_count(m, kind ? hl_graph_param(m->g, i) : hl_graph_input(m->g, i));
            const double *from = kind ? m->param[i] : m->input[i];
            if (!from)
                continue;
            void *typed = model_alloc(m, n * element);
            for (size_t j = 0; j < n; j++)
                if (dtype == HL_F64)
                    ((double *)typed)[j] = from[j];
                else
                    ((float *)typed)[j] = (float)from[j];
            in[kind][i] = typed;
        }
    for (size_t i = 0; i < count; i++)
        to[i] = model_alloc(m, model_count(m, node[i]) * element);
    CHECK_OK(m->ctx, hl_plan_run(plan, m->rows, in[0], in[1], to));
    for (size_t i = 0; i < count; i++) {
        size_t n = model_count(m, node[i]);
        if (dtype == HL_F64) {
            out[i] = to[i];
            continue;
        }
        out[i] = model_alloc(m, n * sizeof **out);
        for (size_t j = 0; j < n; j++)
            out[i][j] = ((float *)to[i])[j];
    }
}

static inline hl_plan *model_plan(model *m, hl_dtype dtype, size_t count, const hl_node *node)
{
    hl_plan *plan = NULL;
    CHECK_OK(m->ctx, hl_graph_status(m->g));
    CHECK_OK(m->ctx, hl_plan_create(m->ctx, m->g, count, node, &(hl_plan_options){ .dtype = dtype }, &plan));
    return plan;
}

/* Compile, run once, free. */
static inline void model_eval(model *m, hl_dtype dtype, size_t count, const hl_node *node, double **out)
{
    hl_plan *plan = model_plan(m, dtype, count, node);
    model_run(m, plan, count, node, out);
    hl_plan_free(plan);
}

static inline double *model_eval1(model *m, hl_dtype dtype, hl_node node)
{
    double *out = NULL;
    model_eval(m, dtype, 1, &node, &out);
    return out;
}

/* max |a - b| over max |b|, where a scale under `floor` counts as `floor`; NaN if any is. */
static inline double scaled_error(const double *a, const double *b, size_t count, double floor)
{
    double error = 0, scale = floor;
    for (size_t i = 0; i < count; i++) {
        double e = fabs(a[i] - b[i]);
        if (isnan(e))
            return NAN;
        error = fmax(error, e);
        scale = fmax(scale, fabs(b[i]));
    }
    return error == 0 ? 0 : error / scale;
}

#endif
