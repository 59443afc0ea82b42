/* verify.c - before anything is timed: is it right?
 *
 * D^1 in float64 against two kinds of brute force, the gradients of the training step against central differences of the
 * loss, and the subject in its own precision against float64. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"

enum { CHECK_ROWS = 2, CHECK_DIMS = 64 };

/* max |a - b| / max |b|, a NaN counts as infinite; `skip`: only where a is not zero. */
static double difference(size_t count, hl_dtype a_type, const void *a, hl_dtype b_type, const void *b, bool skip)
{
    double worst = 0, scale = 0;
    for (size_t i = 0; i < count; i++) {
        double x = numbers_get(a_type, a, i), y = numbers_get(b_type, b, i);
        if (skip && x == 0)
            continue;
        if (!(fabs(x - y) <= worst))
            worst = isnan(x - y) ? INFINITY : fabs(x - y);
        scale = fmax(scale, fabs(y));
    }
    return scale > 0 ? worst / scale : worst;
}

double bench_difference(const bench_subject *a, const bench_subject *b, bool trainable)
{
    size_t n = a->rows * a->dim;
    double f = difference(n, a->dtype, a->f, b->dtype, b->f, false),
           d = difference(n, a->dtype, a->d, b->dtype, b->d, false);
    return fmax(fmax(f, d), difference(a->values, a->dtype, a->gradient, b->dtype, b->gradient, trainable));
}

bool bench_same_bits(const bench_subject *a, const bench_subject *b)
{
    size_t size = hl_dtype_size(a->dtype), n = a->rows * a->dim * size;
    return memcmp(a->f, b->f, n) == 0 && memcmp(a->d, b->d, n) == 0 &&
           memcmp(a->gradient, b->gradient, a->values * size) == 0;
}

bool bench_errors_small(const bench_errors *e)
{
    return e->brute <= 1e-12 && e->differences <= 1e-7 && e->gradient <= 1e-6 && e->precision <= 1e-3 &&
           e->dense <= 1e-3;
}

/* gx = v^T df/dx as a plan with inputs x and v. */
static hl_status vjp_plan(const bench_subject *s, hl_plan **plan)
{
    hl_graph *g = NULL;
    hl_node *param = calloc(s->params, sizeof *param), gx;
    hl_status status = param ? hl_graph_create(s->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK) {
        hl_net_nodes n = { .x = hl_input(g, "x", 1, &s->dim), .param = param };
        hl_node v = hl_input(g, "v", 1, &s->dim);
        status = hl_net_build(s->net, g, 0, HL_TAYLOR, &n);
        if (status == HL_OK)
            status = hl_vjp(g, 1, &n.f, &v, 1, &n.x, NULL, &gx);
    }
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, g, 1, &gx, &(hl_plan_options){ .dtype = HL_F64 }, plan);
    hl_graph_free(g);
    free(param);
    return status;
}

/* Compare rows x dims entries of D, one row of a batch for each: by one-hot cotangents and by x_i +- e. `s` is float64. */
static hl_status check_derivative(bench_subject *s, bench_errors *errors)
{
    const double e = 1e-4;
    size_t d = s->dim, rows = s->rows < CHECK_ROWS ? s->rows : CHECK_ROWS, dims = d < CHECK_DIMS ? d : CHECK_DIMS;
    size_t n = rows * dims;
    double *work = calloc(n * d, 4 * sizeof *work), *up = work + n * d, *down = up + n * d, *v = down + n * d;
    double *value = calloc(n, 3 * sizeof *value), *brute = value + n, *central = brute + n;
    hl_plan *plan = NULL;
    hl_status status = work && value ? vjp_plan(s, &plan) : HL_ERR_NOMEM;
    for (size_t i = 0; i < n && status == HL_OK; i++) {
        size_t row = i / dims, dim = i % dims * d / dims;
        memcpy(work + i * d, (double *)s->x + row * d, d * sizeof *work);
        memcpy(up + i * d, work + i * d, d * sizeof *up);
        memcpy(down + i * d, work + i * d, d * sizeof *down);
        up[i * d + dim] += e;
        down[i * d + dim] -= e;
        v[i * d + dim] = 1;
        value[i] = ((double *)s->d)[row * d + dim];
    }
    double *out = calloc(n * d, 3 * sizeof *out);
    if (!out)
        status = HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_plan_run(plan, n, (const void *[]){ work, v }, s->param, (void *[]){ out });
    if (status == HL_OK)
        status = hl_plan_run(s->plan[BENCH_F], n, (const void *[]){ up }, s->param, (void *[]){ out + n * d });
    if (status == HL_OK)
        status = hl_plan_run(s->plan[BENCH_F], n, (const void *[]){ down }, s->param, (void *[]){ out + 2 * n * d });
    for (size_t i = 0; i < n && status == HL_OK; i++) {
        size_t at = i * d + i % dims * d / dims;
        brute[i] = out[at];
        central[i] = (out[n * d + at] - out[2 * n * d + at]) / (2 * e);
    }
    if (status == HL_OK) {
        errors->brute = difference(n, HL_F64, value, HL_F64, brute, false);
        errors->differences = difference(n, HL_F64, value, HL_F64, central, false);
    }
    hl_plan_free(plan);
    free(work);
    free(value);
    free(out);
    return status;
}

/* Move all parameters by step * v and return the loss of `rows` rows. */
static double loss_at(bench_subject *s, size_t rows, const double *start, const double *v, double step)
{
    for (size_t i = 0, at = 0; i < s->params; i++) {
        hl_net_param p;
        hl_net_param_get(s->net, i, &p);
        for (size_t k = 0; k < p.size; k++, at++)
            ((double *)p.values)[k] = start[at] + step * v[at];
    }
    if (hl_plan_run(s->plan[BENCH_TRAIN], rows, (const void *[]){ s->x }, s->param, s->output[BENCH_TRAIN]) != HL_OK)
        return NAN;
    return *(double *)s->loss;
}

/* The slope of the loss along g / |g| + n / |n|, n random: the first part weighs what the gradient has, the second what it
 * may lack. */
static hl_status check_gradient(bench_subject *s, bench_errors *errors)
{
    const double e = 1e-4;
    size_t rows = s->rows < CHECK_ROWS ? s->rows : CHECK_ROWS;
    double *start = calloc(s->values, 2 * sizeof *start), *v = start + s->values, g_norm = 0, n_norm = 0, slope = 0;
    if (!start)
        return HL_ERR_NOMEM;
    for (size_t i = 0, at = 0; i < s->params; i++) {
        hl_net_param p;
        hl_net_param_get(s->net, i, &p);
        memcpy(start + at, p.values, p.size * sizeof *start);
        at += p.size;
    }
    loss_at(s, rows, start, v, 0);
    const double *g = s->gradient;
    for (size_t i = 0; i < s->values; i++) {
        v[i] = start[i] != 0 || g[i] != 0 ? hl_random_normal(8, 0, i) : 0;
        g_norm += g[i] * g[i];
        n_norm += v[i] * v[i];
    }
    for (size_t i = 0; i < s->values; i++) {
        v[i] = g[i] / sqrt(g_norm) + v[i] / sqrt(n_norm);
        slope += g[i] * v[i];
    }
    double up = loss_at(s, rows, start, v, e), down = loss_at(s, rows, start, v, -e);
    loss_at(s, rows, start, v, 0);
    errors->gradient = fabs((up - down) / (2 * e) - slope) / sqrt(g_norm);
    free(start);
    return HL_OK;
}

hl_status bench_verify(const bench_case *c, bench_subject *s, bench_errors *errors)
{
    bench_subject exact;
    hl_status status = bench_subject_create(&exact, c, HL_F64, 1, false);
    for (int j = 0; j < BENCH_JOBS && status == HL_OK; j++) {
        status = bench_subject_run(&exact, (bench_job)j);
        if (status == HL_OK)
            status = bench_subject_run(s, (bench_job)j);
    }
    if (status == HL_OK) {
        errors->precision = bench_difference(s, &exact, false);
        status = check_derivative(&exact, errors);
    }
    if (status == HL_OK)
        status = check_gradient(&exact, errors);
    bench_subject_free(&exact);
    return status;
}
