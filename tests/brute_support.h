/* brute_support.h - brute force against which networks are checked, and the check of hollowness to the last bit.
 *
 * Brute force holds nothing. With e the i-th unit vector,
 *     s_0 = <e, f>,   s_m = <e, d s_{m-1} / dx>,   so that   s_k = d^k f_i / dx_i^k,
 * each derivative taken through the conditioner. One row of its batch is one (row, i) of the network's. */
#ifndef HL_BRUTE_SUPPORT_H
#define HL_BRUTE_SUPPORT_H

#include <float.h>

#include "net_support.h"

#include "graph/graph.h"
#include "op/op.h"

/* ---- brute force ---- */

typedef enum way { NESTED_REVERSE, FULL_TAYLOR } way;

typedef struct brute {
    hl_graph *g;
    hl_node x, t, context, e, f, param[MAX_PIECES];
    hl_node s[TOP + 1]; /* <e, D^m f> */
    size_t rows;        /* the network's rows times its dimensions */
} brute;

static inline brute brute_build(const setup *s, int order, way how)
{
    const hl_net_spec *spec = &s->spec;
    brute b = { .rows = s->rows * spec->dim };
    hl_node seed[TOP] = { HL_NONE }, coefficient[TOP], gx;
    double factorial = 1;
    CHECK_OK(s->ctx, hl_graph_create(s->ctx, &b.g));
    b.x = hl_input(b.g, "x", 1, &spec->dim);
    b.t = spec->time ? hl_input(b.g, "t", 0, NULL) : HL_NONE;
    b.context = spec->context ? hl_input(b.g, "context", 1, &spec->context) : HL_NONE;
    b.e = hl_input(b.g, "e", 1, &spec->dim);
    hl_net_nodes n = { .x = b.x, .t = b.t, .context = b.context, .param = b.param };
    CHECK_OK(s->ctx, hl_net_build(s->net, b.g, 0, HL_TAYLOR, &n));
    b.f = n.f;
    b.s[0] = hl_sum(b.g, hl_mul(b.g, b.e, b.f), 0);
    if (how == FULL_TAYLOR) {
        seed[0] = b.e;
        CHECK_OK(s->ctx, hl_jet(b.g, order, 1, &b.x, seed, NULL, 1, &b.s[0], coefficient));
        for (int m = 1; m <= order; m++) {
            factorial *= m;
            b.s[m] = hl_scale(b.g, factorial, coefficient[m - 1]);
        }
        return b;
    }
    for (int m = 1; m <= order; m++) {
        CHECK_OK(s->ctx, hl_vjp(b.g, 1, &b.s[m - 1], NULL, 1, &b.x, NULL, &gx));
        b.s[m] = hl_sum(b.g, hl_mul(b.g, b.e, gx), 0);
    }
    return b;
}

/* Every row of `from` (columns wide) once for each dimension. */
static inline double *repeat(const setup *s, const void *from, size_t columns)
{
    size_t d = s->spec.dim;
    double *to = test_malloc((s->rows * d * columns + 1) * sizeof *to);
    for (size_t r = 0; r < s->rows * d; r++)
        memcpy(to + r * columns, (const double *)from + r / d * columns, columns * sizeof *to);
    return to;
}

/* Run outputs of the brute-force graph; inputs beyond e are scalars per row, from `more`. */
static inline void brute_run(const setup *s, const brute *b, size_t outputs, const hl_node *output,
                             const double *const *more, double *const *to)
{
    size_t d = s->spec.dim, n = 0, first;
    const void *input[TOP + 8], *values[MAX_PIECES];
    double *own[4], *e = test_calloc(b->rows * d, sizeof *e);
    void *result[MAX_PIECES];
    hl_plan *plan;
    for (size_t r = 0; r < b->rows; r++)
        e[r * d + r % d] = 1;
    own[n++] = repeat(s, s->x, d);
    if (s->t)
        own[n++] = repeat(s, s->t, 1);
    if (s->context)
        own[n++] = repeat(s, s->context, s->spec.context);
    own[n++] = e;
    for (size_t i = 0; i < n; i++)
        input[i] = own[i];
    first = n;
    for (size_t i = n; i < hl_graph_inputs(b->g); i++)
        input[i] = more[i - first];
    for (size_t i = 0; i < s->params; i++)
        values[i] = param(s->net, i).values;
    for (size_t i = 0; i < outputs; i++)
        result[i] = to[i];
    CHECK_OK(s->ctx, hl_plan_create(s->ctx, b->g, outputs, output, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    CHECK_OK(s->ctx, hl_plan_run(plan, b->rows, input, values, result));
    hl_plan_free(plan);
    for (size_t i = 0; i < n; i++)
        test_free(own[i]);
}

/* f, D^1 .. D^order and the divergence, as hl_operator_eval gives them. */
static inline bundle brute_values(const setup *s, int order, way how)
{
    bundle v = value_bundle(s, order, 97);
    brute b = brute_build(s, order, how);
    double *to[TOP + 1], *divergence = piece(&v, (size_t)order + 1);
    for (int k = 0; k <= order; k++) {
        to[k] = piece(&v, (size_t)k);
        /* a derivative that is identically zero may be a constant, shared by the rows */
        b.s[k] = hl_broadcast_shape(b.g, b.s[k] == HL_NONE ? hl_const(b.g, 0) : b.s[k], &(hl_shape){ .batched = true });
    }
    brute_run(s, &b, (size_t)order + 1, b.s, NULL, to);
    for (size_t r = 0; r < s->rows; r++) {
        divergence[r] = 0;
        for (size_t i = 0; i < s->spec.dim; i++)
            divergence[r] += to[1][r * s->spec.dim + i];
    }
    hl_graph_free(b.g);
    return v;
}

/* The functional <cotangent, values> as a sum over the brute-force rows, with one weight per row and order. */
static inline hl_node functional(const brute *b, size_t d, int order, const bundle *cotangent, double **weight)
{
    const double *divergence = piece(cotangent, (size_t)order + 1);
    hl_node sum = HL_NONE;
    for (int k = 0; k <= order; k++) {
        hl_node term = hl_mul(b->g, hl_input(b->g, "weight", 0, NULL), b->s[k]);
        sum = k ? hl_add(b->g, sum, term) : term;
        weight[k] = test_malloc(b->rows * sizeof **weight);
        for (size_t r = 0; r < b->rows; r++)
            weight[k][r] = ((double *)piece(cotangent, (size_t)k))[r] + (k == 1 ? divergence[r / d] : 0);
    }
    return sum;
}

/* Gradients of <cotangent, values>, by reverse mode through the brute-force derivatives. */
static inline bundle brute_gradient(const setup *s, int order, const bundle *cotangent)
{
    bundle v = gradient_bundle(s);
    brute b = brute_build(s, order, NESTED_REVERSE);
    size_t d = s->spec.dim, n = 0, own, target[3], width[] = { d, 1, s->spec.context };
    double *weight[TOP + 1], *to[MAX_PIECES];
    hl_node inputs[] = { b.x, b.t, b.context }, of[MAX_PIECES], result[MAX_PIECES];
    hl_node sum = functional(&b, d, order, cotangent, weight);
    for (size_t i = 0; i < 3; i++)
        if (inputs[i] != HL_NONE) {
            target[n] = i;
            of[n] = inputs[i];
            to[n++] = test_malloc(b.rows * width[i] * sizeof **to);
        }
    own = n;
    for (size_t i = 0; i < s->params; i++) {
        of[n] = b.param[i];
        to[n++] = piece(&v, 3 + i);
    }
    CHECK_OK(s->ctx, hl_vjp(b.g, 1, &sum, NULL, n, of, NULL, result));
    brute_run(s, &b, n, result, (const double *const *)weight, to);
    for (size_t j = 0; j < own; j++) { /* the gradient of a row is the sum over its d rows here */
        size_t w = width[target[j]];
        double *total = piece(&v, target[j]);
        memset(total, 0, s->rows * w * sizeof *total);
        for (size_t k = 0; k < b.rows * w; k++)
            total[k / (d * w) * w + k % w] += to[j][k];
        test_free(to[j]);
    }
    for (int k = 0; k <= order; k++)
        test_free(weight[k]);
    hl_graph_free(b.g);
    return v;
}

static inline void check_values(const setup *s, int order, way how, double tolerance)
{
    hl_operator *op = compile(s, order, HL_TAYLOR);
    bundle values = evaluate(s, op, order), expected = brute_values(s, order, how);
    check_close(s, &values, &expected, tolerance, 0);
    drop_bundle(&values);
    drop_bundle(&expected);
    hl_operator_free(op);
}

/* A gradient is exactly 0 where the mask excludes, so that updates by it keep the network hollow. */
static inline void check_masked(setup *s, const bundle *gradients)
{
    for (size_t i = 0; i < s->params; i++) {
        hl_net_param p = param(s->net, i);
        for (size_t k = 0; k < p.size; k++)
            set(s->spec.dtype, p.values, k,
                get(s->spec.dtype, p.values, k) + get(s->spec.dtype, piece(gradients, 3 + i), k));
    }
    CHECK_OK(s->ctx, hl_net_check(s->net));
    randomise(s, 7);
}

/* ---- hollowness ---- */

/* h of every row, [rows][dim][features]. */
static inline void *conditioner_values(const setup *s, const char *isa)
{
    hl_graph *g;
    hl_plan *plan;
    hl_node node[MAX_PIECES];
    const void *input[3] = { s->x }, *values[MAX_PIECES];
    void *result = normals(s->spec.dtype, s->rows * s->spec.dim * s->spec.features, 96);
    size_t n = 1;
    CHECK_OK(s->ctx, hl_graph_create(s->ctx, &g));
    hl_node x = hl_input(g, "x", 1, &s->spec.dim), t = HL_NONE, context = HL_NONE;
    if (s->t) {
        t = hl_input(g, "t", 0, NULL);
        input[n++] = s->t;
    }
    if (s->context) {
        context = hl_input(g, "context", 1, &s->spec.context);
        input[n++] = s->context;
    }
    hl_net_nodes built = { .x = x, .t = t, .context = context, .param = node };
    CHECK_OK(s->ctx, hl_net_build(s->net, g, 0, HL_TAYLOR, &built));
    CHECK_OK(s->ctx,
             hl_plan_create(s->ctx, g, 1, &built.h, &(hl_plan_options){ .dtype = s->spec.dtype, .isa = isa }, &plan));
    for (size_t i = 0; i < s->params; i++)
        values[i] = param(s->net, i).values;
    CHECK_OK(s->ctx, hl_plan_run(plan, s->rows, input, values, &result));
    hl_plan_free(plan);
    hl_graph_free(g);
    return result;
}

/* Row r > 0 is row 0 with x_i = values[(r - 1) % count], i = (r - 1) / count. */
static inline void replace_one(setup *s, const double *values, size_t count)
{
    size_t d = s->spec.dim, element = hl_dtype_size(s->spec.dtype);
    for (size_t r = 1; r < s->rows; r++) {
        memcpy((char *)s->x + r * d * element, s->x, d * element);
        set(s->spec.dtype, s->x, r * d + (r - 1) / count, values[(r - 1) % count]);
        if (s->t)
            memcpy((char *)s->t + r * element, s->t, element);
        if (s->context)
            memcpy((char *)s->context + r * s->spec.context * element, s->context, s->spec.context * element);
    }
}

/* The same with values so large that units which see x_i overflow: h_i still keeps its bits. */
static inline void check_hollow_overflow(hl_context *ctx, const hl_net_spec *spec, const char *isa)
{
    double largest = spec->dtype == HL_F32 ? FLT_MAX : DBL_MAX;
    setup s = make(ctx, spec, 1 + 2 * spec->dim);
    size_t d = spec->dim, block = s.spec.features * hl_dtype_size(s.spec.dtype);
    for (size_t p = 0; p < s.params; p++) /* so that sums of products overflow, and with both signs */
        for (size_t k = 0; strstr(param(s.net, p).name, "conditioner") && k < param(s.net, p).size; k++)
            set(s.spec.dtype, param(s.net, p).values, k, 4 * get(s.spec.dtype, param(s.net, p).values, k));
    replace_one(&s, (double[]){ largest, -largest }, 2);
    char *h = conditioner_values(&s, isa);
    for (size_t r = 1; r < s.rows; r++) {
        size_t i = (r - 1) / 2;
        if (memcmp(h + (r * d + i) * block, h + i * block, block) != 0)
            fail_msg("%s: x_%zu = +-%g changes h_%zu", s.label, i, largest, i);
    }
    test_free(h);
    drop(&s);
}

/* Row 0 is a plain row, the others have one x_i replaced: h_i keeps its bits, and every other h_j changes. */
static inline void check_hollow(hl_context *ctx, const hl_net_spec *spec, const char *isa)
{
    static const double values[] = { 1e30, -1e30, 1e-30 };
    size_t d = spec->dim, rows = 1 + 3 * d;
    setup s = make(ctx, spec, rows);
    size_t element = hl_dtype_size(s.spec.dtype), block = s.spec.features * element;
    replace_one(&s, values, 3);
    char *h = conditioner_values(&s, isa);
    for (size_t i = 0; i < rows * d * s.spec.features; i++)
        CHECK(isfinite(get(s.spec.dtype, h, i)), s.label);
    bool made = strcmp(s.spec.conditioner, "made") == 0;
    size_t changed = 0, pairs = 0;
    for (size_t r = 1; r < rows; r++)
        for (size_t j = 0; j < d; j++) {
            bool same = memcmp(h + (r * d + j) * block, h + j * block, block) == 0;
            bool small = values[(r - 1) % 3] == 1e-30; /* too little for some h_j to see it */
            bool own = j == (r - 1) / 3;
            changed += !same && !own && !small;
            pairs += !own && !small;
            /* attention may not look, and a far leaf of a tree may not feel it in the last bit */
            if (same != own && !(same && (small || !made)))
                fail_msg("%s: x_%zu = %g %s h_%zu", s.label, (r - 1) / 3, values[(r - 1) % 3],
                         same ? "does not change" : "changes", j);
        }
    CHECK(changed >= (pairs + 7) / 8, s.label); /* h does see the others */
    test_free(h);
    drop(&s);
}

#endif
