/* ops_cases.h - the cases of test_ops.c: every op with attributes and shapes, how to build it, and its value written naively
 * in double. `add_cases` fills the table. */
#ifndef HL_TESTS_OPS_CASES_H
#define HL_TESTS_OPS_CASES_H

#include "ops_support.h"

enum { MAX_IN = 3, MAX_CASES = 600 };

typedef struct op_case op_case;
typedef hl_node build_fn(hl_graph *g, const op_case *c, const hl_node *x);
typedef void value_fn(const op_case *c, const double *const *x, double *y); /* adds one row's values to y */

struct op_case {
    const hl_op *op; /* the row; NULL for what is composed of several */
    const char *label;
    build_fn *build;
    value_fn *value;
    int inputs;
    hl_shape in[MAX_IN], out; /* out: of elementwise cases and others that need it */
    unsigned shared, batched; /* bits of inputs that must be so */
    double low, high;         /* where the inputs are drawn; 0, 0: the row's own domain */
    bool signs;               /* with random signs */
    bool zero;                /* the derivative is zero by definition, whatever the differences say */
    bool trusted;             /* input 1 is zero outside the mask */
    int a[6];                 /* attributes, as build and value use them */
    double constant;
    hl_node (*unary)(hl_graph *, hl_node);
    hl_node (*binary)(hl_graph *, hl_node, hl_node);
    hl_node (*ternary)(hl_graph *, hl_node, hl_node, hl_node);
    double (*f)(const double *x);
};

static op_case all_cases[MAX_CASES];
static size_t case_count;

static op_case *new_case(const hl_op *op, const char *label, build_fn *build, value_fn *value, int inputs)
{
    assert_true(case_count < MAX_CASES);
    op_case *c = &all_cases[case_count++];
    *c = (op_case){ .op = op, .label = label, .build = build, .value = value, .inputs = inputs };
    return c;
}

/* ---- elementwise ---- */

static hl_node elementwise_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return c->unary ? c->unary(g, x[0]) : c->binary ? c->binary(g, x[0], x[1]) : c->ternary(g, x[0], x[1], x[2]);
}

/* Index into an array of shape s for the entry of `out` at flat index i, by NumPy's rule. */
static size_t broadcast_index(const hl_shape *out, const hl_shape *s, size_t i)
{
    size_t at = 0, step = 1;
    for (int axis = out->rank - 1; axis >= 0; axis--) {
        int own = axis - (out->rank - s->rank);
        size_t index = i % out->dim[axis];
        i /= out->dim[axis];
        if (own >= 0) {
            at += (s->dim[own] == 1 ? 0 : index) * step;
            step *= s->dim[own];
        }
    }
    return at;
}

static void elementwise_value(const op_case *c, const double *const *x, double *y)
{
    for (size_t i = 0; i < hl_shape_size(&c->out); i++) {
        double at[MAX_IN] = { 0 };
        for (int j = 0; j < c->inputs; j++)
            at[j] = x[j][broadcast_index(&c->out, &c->in[j], i)];
        y[i] += c->f(at);
    }
}

#define F(name, expression)                                                                                            \
    static double f_##name(const double *x)                                                                            \
    {                                                                                                                  \
        return (expression);                                                                                           \
    }
F(neg, 0 - x[0])
F(exp, exp(x[0]))
F(log, log(x[0]))
F(log1p, log(1 + x[0]))
F(expm1, expm1(x[0]))
F(sin, sin(x[0]))
F(cos, cos(x[0]))
F(tanh, tanh(x[0]))
F(sigmoid, 1 / (1 + exp(-x[0])))
F(softplus, log(1 + exp(x[0])))
F(erf, erf(x[0]))
F(sqrt, sqrt(x[0]))
F(abs, x[0] < 0 ? -x[0] : x[0])
F(sign, x[0] < 0 ? -1 : 1)
F(add, x[0] + x[1])
F(sub, x[0] - x[1])
F(mul, x[0] * x[1])
F(div, x[0] / x[1])
F(pow, pow(x[0], x[1]))
F(min, x[0] < x[1] ? x[0] : x[1])
F(max, x[0] > x[1] ? x[0] : x[1])
F(less, x[0] < x[1] ? 1 : 0)
F(select, x[0] != 0 ? x[1] : x[2])
F(swish, x[0] / (1 + exp(-x[0])))
F(swish_slope, (1 + exp(-x[0]) * (1 + x[0])) / pow(1 + exp(-x[0]), 2))
F(swish_curve, (2 + x[0] + exp(x[0]) * (2 - x[0])) * exp(x[0]) / pow(1 + exp(x[0]), 3))
F(elu, x[0] > 0 ? x[0] : exp(x[0]) - 1)
F(relu, x[0] > 0 ? x[0] : 0)
F(clamp, fmin(fmax(x[0], -1), 1.5))

#define S(...)                                                                                                         \
    {                                                                                                                  \
        .rank = (int)(sizeof((size_t[]){ __VA_ARGS__ }) / sizeof(size_t)), .dim = { __VA_ARGS__ }                      \
    }
#define S0                                                                                                             \
    {                                                                                                                  \
        .rank = 0                                                                                                      \
    }

static const hl_shape unary_shapes[][1] = { { S(5) }, { S0 }, { S(2, 3) }, { S(1, 17) } };
static const hl_shape binary_shapes[][2] = {
    { S(5), S(5) }, { S(3, 1), S(1, 4) }, { S0, S(4) }, { S(3), S(2, 3) }, { S(2, 1, 2), S(3, 1) }, { S0, S0 },
};
static const hl_shape ternary_shapes[][3] = { { S(4), S(4), S(4) }, { S(2, 1), S(3), S0 }, { S0, S(2, 3), S(1, 3) } };

static void elementwise_case(const op_case *like, int inputs, const hl_shape *shapes)
{
    op_case *c = new_case(like->op, like->label, elementwise_build, elementwise_value, inputs);
    *c = *like;
    c->build = like->build ? like->build : elementwise_build;
    c->value = elementwise_value;
    c->inputs = inputs;
    for (int j = 0; j < inputs; j++) {
        c->in[j] = shapes[j];
        if (j == 0)
            c->out = shapes[0];
        else
            assert_true(hl_shape_join(&c->out, &shapes[j], &c->out));
    }
}

static void unary_cases(op_case like)
{
    for (size_t i = 0; i < sizeof unary_shapes / sizeof *unary_shapes; i++)
        elementwise_case(&like, 1, unary_shapes[i]);
}

static void binary_cases(op_case like)
{
    for (size_t i = 0; i < sizeof binary_shapes / sizeof *binary_shapes; i++)
        elementwise_case(&like, 2, binary_shapes[i]);
}

static void ternary_cases(op_case like)
{
    for (size_t i = 0; i < sizeof ternary_shapes / sizeof *ternary_shapes; i++)
        elementwise_case(&like, 3, ternary_shapes[i]);
}

/* An elementwise op by its row alone. */
static hl_node row_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    hl_node in[MAX_IN];
    hl_shape shape = *hl_shape_of(g, x[0]);
    for (int i = 1; i < c->inputs; i++)
        assert_true(hl_shape_join(&shape, hl_shape_of(g, x[i]), &shape));
    for (int i = 0; i < c->inputs; i++)
        in[i] = hl_broadcast_shape(g, x[i], &shape);
    return hl_graph_add(g, c->op, c->inputs, in, NULL);
}

/* Rows that no case names are compared with their own eval. */
static void add_other_rows(void)
{
    for (const hl_op *const *op = hl_ops; *op; op++) {
        op_case like = { .op = *op, .label = (*op)->name, .build = row_build, .f = (*op)->eval };
        bool listed = false;
        for (size_t i = 0; i < case_count; i++)
            listed = listed || all_cases[i].op == *op;
        if (listed || !like.f)
            continue;
        ((*op)->arity == 1 ? unary_cases : (*op)->arity == 2 ? binary_cases : ternary_cases)(like);
    }
}

static hl_node clamp_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    (void)c;
    return hl_clamp(g, x[0], -1, 1.5);
}

static hl_node powi_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_powi(g, x[0], c->a[0]);
}

static hl_node power_build(hl_graph *g, const op_case *c, const hl_node *x) /* constant exponent */
{
    return hl_pow(g, x[0], hl_const(g, c->constant));
}

static hl_node exponential_build(hl_graph *g, const op_case *c, const hl_node *x) /* constant base */
{
    return hl_pow(g, hl_const(g, c->constant), x[0]);
}

static hl_node quotient_build(hl_graph *g, const op_case *c, const hl_node *x) /* signs that meet in the derivatives */
{
    hl_node sine = hl_sin(g, x[0]), cosine = hl_cos(g, x[0]);
    (void)c;
    return hl_sub(g, hl_div(g, sine, hl_add(g, hl_const(g, 2), cosine)), hl_mul(g, cosine, hl_neg(g, sine)));
}

static hl_node twice_build(hl_graph *g, const op_case *c, const hl_node *x) /* one node as both operands, and again */
{
    hl_node square = hl_mul(g, x[0], x[0]);
    (void)c;
    return hl_div(g, square, hl_add(g, x[0], hl_mul(g, square, x[0])));
}

/* clang-format off */
#define POWI(name, n)                                                                                                  \
    F(powi_##name, pow(x[0], n))                                                                                       \
    enum { powi_##name = n };
POWI(0, 0) POWI(1, 1) POWI(2, 2) POWI(3, 3) POWI(7, 7) POWI(minus_1, -1) POWI(minus_2, -2) POWI(minus_5, -5)
F(power_half, pow(x[0], 2.5))
F(power_cube, x[0] * x[0] * x[0])
F(power_inverse_square, 1 / (x[0] * x[0]))
F(exponential, pow(1.7, x[0]))
F(quotient, sin(x[0]) / (2 + cos(x[0])) + cos(x[0]) * sin(x[0]))
F(twice, x[0] * x[0] / (x[0] + x[0] * x[0] * x[0]))
    /* clang-format on */

    static void add_elementwise(void)
{
#define UNARY(name, ...)                                                                                               \
    unary_cases((op_case){ .op = &hl_op_##name, .label = #name, .unary = hl_##name, .f = f_##name, __VA_ARGS__ })
#define BINARY(name, ...)                                                                                              \
    binary_cases((op_case){ .op = &hl_op_##name, .label = #name, .binary = hl_##name, .f = f_##name, __VA_ARGS__ })
    UNARY(neg, .zero = false);
    UNARY(exp, .zero = false);
    UNARY(log, .zero = false);
    UNARY(log1p, .zero = false);
    UNARY(expm1, .zero = false);
    UNARY(sin, .zero = false);
    UNARY(cos, .zero = false);
    UNARY(tanh, .zero = false);
    UNARY(sigmoid, .zero = false);
    UNARY(softplus, .zero = false);
    UNARY(swish, .zero = false);
    UNARY(swish_slope, .zero = false);
    UNARY(swish_curve, .zero = false);
    UNARY(erf, .zero = false);
    UNARY(sqrt, .zero = false);
    UNARY(abs, .signs = true);
    UNARY(sign, .signs = true, .zero = true);
    BINARY(add, .zero = false);
    BINARY(sub, .zero = false);
    BINARY(mul, .zero = false);
    BINARY(div, .signs = true);
    BINARY(pow, .zero = false);
    BINARY(min, .zero = false);
    BINARY(max, .zero = false);
    BINARY(less, .zero = true);
    ternary_cases((op_case){ .op = &hl_op_select, .label = "select", .ternary = hl_select, .f = f_select });

#define COMPOSITE(text, ...) unary_cases((op_case){ .label = text, __VA_ARGS__ })
    COMPOSITE("elu", .unary = hl_elu, .f = f_elu, .low = -3, .high = 3);
    COMPOSITE("relu", .unary = hl_relu, .f = f_relu, .low = -3, .high = 3);
    COMPOSITE("clamp", .build = clamp_build, .f = f_clamp, .low = -3, .high = 3);
#define POWI_CASE(name)                                                                                                \
    COMPOSITE("powi " #name, .build = powi_build, .a = { powi_##name }, .f = f_powi_##name, .low = 0.5, .high = 2,     \
              .signs = true)
    POWI_CASE(0);
    POWI_CASE(1);
    POWI_CASE(2);
    POWI_CASE(3);
    POWI_CASE(7);
    POWI_CASE(minus_1);
    POWI_CASE(minus_2);
    POWI_CASE(minus_5);
#define POWER(value, ...)                                                                                              \
    unary_cases((op_case){                                                                                             \
        .op = &hl_op_pow, .label = "pow of a constant", .constant = value, .low = 0.5, .high = 2, __VA_ARGS__ })
    POWER(2.5, .build = power_build, .f = f_power_half);
    POWER(3, .build = power_build, .f = f_power_cube, .signs = true);
    POWER(-2, .build = power_build, .f = f_power_inverse_square, .signs = true);
    POWER(1.7, .build = exponential_build, .f = f_exponential);
    COMPOSITE("quotient", .build = quotient_build, .f = f_quotient, .low = -3, .high = 3);
    COMPOSITE("one node twice", .build = twice_build, .f = f_twice, .low = 0.5, .high = 2, .signs = true);
}

/* ---- leaves and shape ---- */

static hl_node identity_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    (void)g, (void)c;
    return x[0];
}

static void copy_value(const op_case *c, const double *const *x, double *y)
{
    for (size_t i = 0; i < hl_shape_size(&c->in[0]); i++)
        y[i] += x[0][i];
}

static hl_node constant_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    double values[] = { 0.5, -2, 3, 1.25, 7, -0.125 };
    return hl_mul(g, x[0], hl_const_array(g, c->in[0].rank, c->in[0].dim, values));
}

static void constant_value(const op_case *c, const double *const *x, double *y)
{
    double values[] = { 0.5, -2, 3, 1.25, 7, -0.125 };
    for (size_t i = 0; i < hl_shape_size(&c->in[0]); i++)
        y[i] += values[i] * x[0][i];
}

static hl_node broadcast_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_broadcast(g, x[0], c->out.rank, c->out.dim);
}

static void broadcast_value(const op_case *c, const double *const *x, double *y)
{
    for (size_t i = 0; i < hl_shape_size(&c->out); i++)
        y[i] += x[0][broadcast_index(&c->out, &c->in[0], i)];
}

static hl_node reshape_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_reshape(g, x[0], c->out.rank, c->out.dim);
}

static hl_node stop_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    (void)c;
    return hl_stop(g, x[0]);
}

static hl_node permute_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_permute(g, x[0], c->a);
}

/* Result axis i is axis a[i] of x. */
static void permute_value(const op_case *c, const double *const *x, double *y)
{
    const hl_shape *s = &c->in[0];
    size_t step[HL_MAX_RANK], total = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        step[i] = total;
        total *= s->dim[i];
    }
    for (size_t i = 0; i < total; i++) {
        size_t rest = i, at = 0;
        for (int axis = s->rank - 1; axis >= 0; axis--) {
            at += rest % s->dim[c->a[axis]] * step[c->a[axis]];
            rest /= s->dim[c->a[axis]];
        }
        y[i] += x[0][at];
    }
}

/* The shape cut in three around an axis. */
typedef struct around {
    size_t outer, mid, inner;
} around;

static around cut(const hl_shape *s, int axis)
{
    around r = { 1, s->dim[axis], 1 };
    for (int i = 0; i < s->rank; i++)
        *(i < axis ? &r.outer : &r.inner) *= i == axis ? 1 : s->dim[i];
    return r;
}

static const size_t picks[] = { 2, 0, 0, 1, 2, 2 }; /* axes of at least 3 */
enum { PICKS = 6 };

static hl_node gather_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_gather(g, x[0], c->a[0], PICKS, picks);
}

static void gather_value(const op_case *c, const double *const *x, double *y)
{
    around s = cut(&c->in[0], c->a[0] < 0 ? c->a[0] + c->in[0].rank : c->a[0]);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t j = 0; j < PICKS; j++)
            for (size_t i = 0; i < s.inner; i++)
                y[(o * PICKS + j) * s.inner + i] += x[0][(o * s.mid + picks[j]) * s.inner + i];
}

static hl_node scatter_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    int32_t list[PICKS];
    for (size_t j = 0; j < PICKS; j++)
        list[j] = (int32_t)picks[j];
    return hl_scatter(g, x[0], c->a[0], 4, hl_graph_list(g, list, PICKS));
}

static void scatter_value(const op_case *c, const double *const *x, double *y)
{
    around s = cut(&c->in[0], c->a[0]);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t j = 0; j < PICKS; j++)
            for (size_t i = 0; i < s.inner; i++)
                y[(o * 4 + picks[j]) * s.inner + i] += x[0][(o * PICKS + j) * s.inner + i];
}

static hl_node slice_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_slice(g, x[0], c->a[0], 1, 2);
}

static void slice_value(const op_case *c, const double *const *x, double *y)
{
    around s = cut(&c->in[0], c->a[0]);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t j = 0; j < 2; j++)
            for (size_t i = 0; i < s.inner; i++)
                y[(o * 2 + j) * s.inner + i] += x[0][(o * s.mid + 1 + j) * s.inner + i];
}

static hl_node concat_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_concat(g, c->inputs, x, c->a[0]);
}

static void concat_value(const op_case *c, const double *const *x, double *y)
{
    int axis = c->a[0] < 0 ? c->a[0] + c->in[0].rank : c->a[0];
    size_t total = 0, start = 0;
    for (int p = 0; p < c->inputs; p++)
        total += c->in[p].dim[axis];
    for (int p = 0; p < c->inputs; p++) {
        around s = cut(&c->in[p], axis);
        for (size_t o = 0; o < s.outer; o++)
            for (size_t j = 0; j < s.mid * s.inner; j++)
                y[(o * total + start) * s.inner + j] += x[p][o * s.mid * s.inner + j];
        start += s.mid;
    }
}

#define SHAPE_OF(...) ((hl_shape)S(__VA_ARGS__))

static void add_structure(void)
{
    static const struct {
        hl_shape from, to;
    } stretches[] = { { S(3), S(2, 3) },
                      { S(2, 1), S(2, 5) },
                      { S0, S(2, 2) },
                      { S(1), S(4) },
                      { S(2, 1, 2), S(2, 3, 2) } },
      reshapes[] = { { S(2, 3), S(3, 2) }, { S(2, 3), S(6) }, { S(6), S(1, 6, 1) }, { S(1), S0 } };
    static const struct {
        hl_shape in;
        int axes[4];
    } permutations[] = { { S(2, 3, 4), { 2, 0, 1 } },      { S(2, 3, 4), { 1, 2, 0 } }, { S(2, 3, 4), { 0, 2, 1 } },
                         { S(2, 3, 4), { 1, 0, 2 } },      { S(2, 3, 4), { 2, 1, 0 } }, { S(3, 5), { 1, 0 } },
                         { S(2, 3, 2, 3), { 3, 1, 0, 2 } } };

    new_case(&hl_op_input, "input", identity_build, copy_value, 1)->in[0] = SHAPE_OF(4);
    all_cases[case_count - 1].batched = 1;
    new_case(&hl_op_param, "param", identity_build, copy_value, 1)->in[0] = SHAPE_OF(4);
    all_cases[case_count - 1].shared = 1;
    new_case(&hl_op_constant, "constant", constant_build, constant_value, 1)->in[0] = SHAPE_OF(6);
    new_case(&hl_op_constant, "constant", constant_build, constant_value, 1)->in[0] = SHAPE_OF(2, 3);
    for (size_t i = 0; i < sizeof stretches / sizeof *stretches; i++) {
        op_case *c = new_case(&hl_op_broadcast, "broadcast", broadcast_build, broadcast_value, 1);
        c->in[0] = stretches[i].from;
        c->out = stretches[i].to;
    }
    for (size_t i = 0; i < sizeof reshapes / sizeof *reshapes; i++) {
        op_case *c = new_case(&hl_op_reshape, "reshape", reshape_build, copy_value, 1);
        c->in[0] = reshapes[i].from;
        c->out = reshapes[i].to;
    }
    op_case *stop = new_case(&hl_op_stop, "stop", stop_build, copy_value, 1);
    stop->in[0] = SHAPE_OF(2, 3);
    stop->zero = true;
    for (size_t i = 0; i < sizeof permutations / sizeof *permutations; i++) {
        op_case *c = new_case(&hl_op_permute, "permute", permute_build, permute_value, 1);
        c->in[0] = permutations[i].in;
        memcpy(c->a, permutations[i].axes, sizeof permutations[i].axes);
    }
    for (int axis = -1; axis < 3; axis++) {
        op_case *c = new_case(&hl_op_gather, "gather", gather_build, gather_value, 1);
        c->in[0] = axis < 0 ? SHAPE_OF(3) : SHAPE_OF(3, 4, 5);
        c->a[0] = axis;
        c = new_case(&hl_op_scatter, "scatter", scatter_build, scatter_value, 1);
        c->in[0] = axis < 0    ? SHAPE_OF(6)
                   : axis == 0 ? SHAPE_OF(6, 2)
                   : axis == 1 ? SHAPE_OF(2, 6, 3)
                               : SHAPE_OF(2, 1, 6);
        c->a[0] = axis < 0 ? 0 : axis;
        c = new_case(&hl_op_gather, "slice", slice_build, slice_value, 1);
        c->in[0] = axis < 0 ? SHAPE_OF(4) : SHAPE_OF(3, 4, 5);
        c->a[0] = axis < 0 ? 0 : axis;
        c = new_case(&hl_op_concat, "concat", concat_build, concat_value, 3);
        c->a[0] = axis;
        for (int p = 0; p < 3; p++) {
            c->in[p] = axis < 0 ? SHAPE_OF(2) : SHAPE_OF(2, 3, 2);
            c->in[p].dim[axis < 0 ? 0 : axis] = (size_t)p + 1;
        }
    }
}

/* ---- reductions ---- */

static hl_node reduce_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    switch (c->a[1]) {
    case 0:
        return hl_sum(g, x[0], c->a[0]);
    case 1:
        return hl_mean(g, x[0], c->a[0]);
    case 2:
        return hl_max_over(g, x[0], c->a[0]);
    default:
        return hl_logsumexp(g, x[0], c->a[0]);
    }
}

static void reduce_value(const op_case *c, const double *const *x, double *y)
{
    around s = cut(&c->in[0], c->a[0] < 0 ? c->a[0] + c->in[0].rank : c->a[0]);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t i = 0; i < s.inner; i++) {
            const double *v = x[0] + o * s.mid * s.inner + i;
            double sum = 0, max = v[0], exps = 0;
            for (size_t j = 0; j < s.mid; j++) {
                sum += v[j * s.inner];
                exps += exp(v[j * s.inner]);
                max = fmax(max, v[j * s.inner]);
            }
            y[o * s.inner + i] += c->a[1] == 0   ? sum
                                  : c->a[1] == 1 ? sum / (double)s.mid
                                  : c->a[1] == 2 ? max
                                                 : log(exps);
        }
}

static hl_node softmax_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_softmax(g, x[0], c->a[0]);
}

static void softmax_value(const op_case *c, const double *const *x, double *y)
{
    around s = cut(&c->in[0], c->a[0] < 0 ? c->a[0] + c->in[0].rank : c->a[0]);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t i = 0; i < s.inner; i++) {
            size_t at = o * s.mid * s.inner + i;
            double sum = 0;
            for (size_t j = 0; j < s.mid; j++)
                sum += exp(x[0][at + j * s.inner]);
            for (size_t j = 0; j < s.mid; j++)
                y[at + j * s.inner] += exp(x[0][at + j * s.inner]) / sum;
        }
}

static hl_node sum_all_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    (void)c;
    return hl_sum_all(g, x[0]);
}

static void sum_all_value(const op_case *c, const double *const *x, double *y)
{
    for (size_t i = 0; i < hl_shape_size(&c->in[0]); i++)
        y[0] += x[0][i];
}

static hl_node cumsum_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_cumsum(g, x[0], c->a[0], c->a[1], c->a[2]);
}

static void cumsum_value(const op_case *c, const double *const *x, double *y)
{
    around s = cut(&c->in[0], c->a[0]);
    for (size_t o = 0; o < s.outer; o++)
        for (size_t i = 0; i < s.inner; i++)
            for (size_t j = 0; j < s.mid; j++)
                for (size_t from = 0; from < s.mid; from++)
                    if ((c->a[1] ? from > j : from < j) || (from == j && !c->a[2]))
                        y[(o * s.mid + j) * s.inner + i] += x[0][(o * s.mid + from) * s.inner + i];
}

static hl_node sum_rows_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    (void)c;
    return hl_sum_rows(g, x[0]);
}

/* Over the rows and a[0] leading axes. */
static hl_node sum_lead_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    return hl_graph_add(g, &hl_op_sum_rows, 1, x, &(hl_attr){ .i = { c->a[0] } });
}

static void sum_lead_value(const op_case *c, const double *const *x, double *y)
{
    size_t lead = 1, total = hl_shape_size(&c->in[0]);
    for (int i = 0; i < c->a[0]; i++)
        lead *= c->in[0].dim[i];
    for (size_t i = 0; i < total; i++)
        y[i % (total / lead)] += x[0][i];
}

static void add_reductions(void)
{
    for (int axis = -1; axis < 3; axis++) {
        hl_shape shape = axis < 0 ? SHAPE_OF(6) : SHAPE_OF(3, 4, 5);
        op_case *c;
        for (int kind = 0; kind < 4; kind++) {
            static const char *const names[] = { "sum", "mean", "max_over", "logsumexp" };
            c = new_case(kind == 0   ? &hl_op_sum
                         : kind == 2 ? &hl_op_max_over
                                     : NULL,
                         names[kind], reduce_build, reduce_value, 1);
            c->in[0] = shape;
            c->a[0] = axis;
            c->a[1] = kind;
            c->low = -2;
            c->high = 2;
        }
        c = new_case(NULL, "softmax", softmax_build, softmax_value, 1);
        c->in[0] = shape;
        c->a[0] = axis;
        c->low = -2;
        c->high = 2;
        for (int variant = 0; variant < 4; variant++) {
            c = new_case(&hl_op_cumsum, "cumsum", cumsum_build, cumsum_value, 1);
            c->in[0] = shape;
            c->a[0] = axis < 0 ? 0 : axis;
            c->a[1] = variant & 1;
            c->a[2] = variant >> 1;
        }
        c = new_case(&hl_op_sum_rows, "sum_rows", axis < 0 ? sum_rows_build : sum_lead_build, sum_lead_value, 1);
        c->in[0] = shape;
        c->a[0] = axis < 0 ? 0 : axis;
        c->batched = 1;
    }
    new_case(&hl_op_sum_rows, "sum_rows", sum_rows_build, sum_lead_value, 1)->batched = 1;
    new_case(NULL, "sum_all", sum_all_build, sum_all_value, 1)->in[0] = SHAPE_OF(2, 3, 2);
    all_cases[case_count - 1].high = 1;
}

/* ---- products ---- */

/* Interval masks; the third leaves a unit without inputs and an input without units. */
enum { MASK_OUT = 5, MASK_IN = 4 };
static const uint32_t masks[][2][MASK_OUT] = { { { 0, 0, 0, 0, 0 }, { 1, 2, 3, 4, 4 } },
                                               { { 3, 2, 2, 1, 0 }, { 4, 4, 4, 4, 4 } },
                                               { { 2, 0, 1, 0, 1 }, { 3, 0, 3, 3, 2 } } };
enum { MASKS = 3 };

/* a[0] groups, a[1] mask number + 1, a[2] whether input 1 is used as it is (trusted) or through `masked`. */
static hl_attr product_attr(hl_graph *g, const op_case *c)
{
    const uint32_t(*m)[MASK_OUT] = c->a[1] ? masks[c->a[1] - 1] : NULL;
    return (hl_attr){ .i = { c->a[0] }, .mask = m ? hl_graph_mask(g, MASK_OUT, MASK_IN, m[0], m[1]) : NULL };
}

static bool inside(const op_case *c, size_t n, size_t k)
{
    return !c->a[1] || (masks[c->a[1] - 1][0][n] <= k && k < masks[c->a[1] - 1][1][n]);
}

/* Both inputs batched if either is. */
static void join_kinds(hl_graph *g, const hl_node *x, hl_node *to)
{
    for (int i = 0; i < 2; i++) {
        hl_shape s = hl_graph_node(g, x[i])->shape;
        s.batched = hl_node_batched(g, x[0]) || hl_node_batched(g, x[1]);
        to[i] = hl_broadcast_shape(g, x[i], &s);
    }
}

static hl_node linear_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    hl_attr attr = product_attr(g, c);
    if (attr.mask && c->trusted)
        return c->op == &hl_op_linear ? hl_linear_trusted(g, x[0], x[1], attr.mask)
                                      : hl_graph_add(g, c->op, 2, x, &attr);
    if (attr.mask && c->op == &hl_op_linear)
        return hl_linear_masked(g, x[0], x[1], masks[c->a[1] - 1][0], masks[c->a[1] - 1][1]);
    if (c->op == &hl_op_linear)
        return c->a[0] ? hl_linear_grouped(g, x[0], x[1]) : hl_linear(g, x[0], x[1]);
    if (c->op == &hl_op_outer) {
        hl_node in[2];
        join_kinds(g, x, in);
        return hl_graph_add(g, c->op, 2, in, &attr);
    }
    hl_node w = attr.mask ? hl_graph_add(g, &hl_op_masked, 1, &x[1], &(hl_attr){ .mask = attr.mask }) : x[1];
    return hl_graph_add(g, c->op, 2, (hl_node[]){ x[0], w }, &attr);
}

/* The three products with their shapes cut as [groups][middle][last]. */
static void linear_value(const op_case *c, const double *const *x, double *y)
{
    const hl_shape *s = &c->in[0], *w = &c->in[1];
    bool outer = c->op == &hl_op_outer, transposed = c->op == &hl_op_linear_t;
    size_t groups = c->a[0] ? s->dim[0] : 1, last = s->dim[s->rank - 1], middle = hl_shape_size(s) / groups / last;
    size_t out = outer ? last : w->dim[w->rank - 2], in = w->dim[w->rank - 1];
    for (size_t g = 0; g < groups; g++)
        for (size_t m = 0; m < middle; m++)
            for (size_t n = 0; n < out; n++)
                for (size_t k = 0; k < in; k++) {
                    size_t weight = (g * out + n) * in + k, side_n = (g * middle + m) * out + n,
                           side_k = (g * middle + m) * in + k;
                    if (!inside(c, n, k))
                        continue;
                    if (outer)
                        y[weight] += x[0][side_n] * x[1][side_k];
                    else if (transposed)
                        y[side_k] += x[1][weight] * x[0][side_n];
                    else
                        y[side_n] += x[1][weight] * x[0][side_k];
                }
}

static hl_node masked_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    hl_attr attr = product_attr(g, c);
    return hl_graph_add(g, &hl_op_masked, 1, x, &attr);
}

static void masked_value(const op_case *c, const double *const *x, double *y)
{
    for (size_t i = 0; i < MASK_OUT * MASK_IN; i++)
        y[i] += inside(c, i / MASK_IN, i % MASK_IN) ? x[0][i] : 0;
}

static hl_node matmul_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    hl_node in[2];
    if (!c->a[0] && !c->a[1])
        return hl_matmul(g, x[0], x[1]);
    join_kinds(g, x, in);
    return hl_graph_add(g, &hl_op_matmul, 2, in, &(hl_attr){ .i = { c->a[0], c->a[1] } });
}

static void matmul_value(const op_case *c, const double *const *x, double *y)
{
    const hl_shape *a = &c->in[0], *b = &c->in[1];
    int r = a->rank;
    size_t m = a->dim[r - (c->a[0] ? 1 : 2)], kk = a->dim[r - (c->a[0] ? 2 : 1)], n = b->dim[r - (c->a[1] ? 2 : 1)];
    for (size_t lead = 0; lead < hl_shape_size(a) / m / kk; lead++)
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++)
                for (size_t k = 0; k < kk; k++)
                    y[(lead * m + i) * n + j] += x[0][lead * m * kk + (c->a[0] ? k * m + i : i * kk + k)] *
                                                 x[1][lead * kk * n + (c->a[1] ? j * kk + k : k * n + j)];
}

static void linear_case(const hl_op *op, int groups, int mask, bool trusted, hl_shape x, hl_shape w)
{
    op_case *c = new_case(op, op->name, linear_build, linear_value, 2);
    hl_shape side = x; /* x with its last axis replaced by the outputs */
    side.dim[side.rank - 1] = w.dim[w.rank - 2];
    c->in[0] = op == &hl_op_linear ? x : side;
    c->in[1] = op == &hl_op_outer ? x : w;
    c->shared = op == &hl_op_outer ? 0 : 2;
    c->trusted = trusted;
    c->a[0] = groups;
    c->a[1] = mask;
}

static void add_products(void)
{
    static const hl_op *const three[] = { &hl_op_linear, &hl_op_linear_t, &hl_op_outer };
    for (int i = 0; i < 3; i++) {
        linear_case(three[i], 0, 0, false, SHAPE_OF(3), SHAPE_OF(4, 3));
        linear_case(three[i], 0, 0, false, SHAPE_OF(2, 3), SHAPE_OF(4, 3));
        linear_case(three[i], 0, 0, false, SHAPE_OF(2, 3, 3), SHAPE_OF(1, 3));
        linear_case(three[i], 0, 0, false, SHAPE_OF(3, 1), SHAPE_OF(2, 1));
        linear_case(three[i], 0, 0, false, SHAPE_OF(20), SHAPE_OF(33, 20));
        linear_case(three[i], 1, 0, false, SHAPE_OF(2, 3), SHAPE_OF(2, 4, 3));
        linear_case(three[i], 1, 0, false, SHAPE_OF(3, 2, 5), SHAPE_OF(3, 4, 5));
        for (int mask = 1; mask <= MASKS; mask++)
            for (int trusted = 0; trusted < (three[i] == &hl_op_outer ? 1 : 2); trusted++) {
                linear_case(three[i], 0, mask, trusted, SHAPE_OF(MASK_IN), SHAPE_OF(MASK_OUT, MASK_IN));
                linear_case(three[i], 0, mask, trusted, SHAPE_OF(2, MASK_IN), SHAPE_OF(MASK_OUT, MASK_IN));
            }
    }
    for (int mask = 1; mask <= MASKS; mask++) {
        op_case *c = new_case(&hl_op_masked, "masked", masked_build, masked_value, 1);
        c->in[0] = SHAPE_OF(MASK_OUT, MASK_IN);
        c->a[1] = mask;
        c->shared = 1;
    }
    for (int t = 0; t < 4; t++)
        for (int lead = 0; lead < 3; lead++) {
            op_case *c = new_case(&hl_op_matmul, "matmul", matmul_build, matmul_value, 2);
            size_t a[2] = { 3, 4 }, b[2] = { 4, 2 }, leads[2] = { 2, 3 };
            c->a[0] = t & 1;
            c->a[1] = t >> 1;
            for (int side = 0; side < 2; side++) {
                const size_t *dims = side ? b : a;
                c->in[side].rank = lead + 2;
                memcpy(c->in[side].dim, leads, (size_t)lead * sizeof *leads);
                c->in[side].dim[lead] = dims[c->a[side]];
                c->in[side].dim[lead + 1] = dims[1 - c->a[side]];
            }
        }
}

/* ---- convolution ---- */

typedef struct conv_setting {
    size_t c, h, w, o, kh, kw;
    hl_conv_options options;
} conv_setting;

static const conv_setting convs[] = {
    { 2, 5, 6, 3, 3, 3, { .pad = { 1, 1 } } },
    { 2, 4, 3, 2, 1, 1, { .stride = { 1, 1 } } },
    { 1, 7, 6, 2, 3, 2, { .stride = { 2, 3 }, .pad = { 0, 2 } } },
    { 2, 5, 4, 1, 2, 3, { .stride = { 3, 1 }, .pad = { 1, 0 }, .taps = (const unsigned char[]){ 1, 0, 1, 0, 1, 1 } } },
    { 2, 4, 4, 2, 3, 3, { .pad = { 1, 1 }, .taps = (const unsigned char[]){ 1, 1, 1, 1, 0, 0, 0, 0, 0 } } },
};

static size_t out_size(size_t size, size_t kernel, size_t stride, size_t pad)
{
    return (size + 2 * pad - kernel) / (stride ? stride : 1) + 1;
}

static hl_node conv_build(hl_graph *g, const op_case *c, const hl_node *x)
{
    const conv_setting *s = &convs[c->a[0]];
    if (c->op == &hl_op_conv)
        return hl_conv(g, x[0], x[1], &s->options);
    if (c->op == &hl_op_conv_t)
        return hl_conv_transpose(g, x[0], x[1], s->h, s->w, &s->options);
    hl_node in[2];
    int32_t taps[9];
    size_t count = s->options.taps ? s->kh * s->kw : 0;
    hl_attr attr = { .shape = { .rank = 4, .dim = { s->o, s->c, s->kh, s->kw } }, .list_len = count };
    for (int i = 0; i < 2; i++) {
        attr.i[i] = s->options.stride[i] ? (int)s->options.stride[i] : 1;
        attr.i[2 + i] = (int)s->options.pad[i];
    }
    for (size_t t = 0; t < count; t++)
        taps[t] = s->options.taps[t];
    attr.list = count ? hl_graph_list(g, taps, count) : NULL;
    join_kinds(g, x, in);
    return hl_graph_add(g, &hl_op_conv_w, 2, in, &attr);
}

/* All three are the same sum of products of an image, a kernel and a result entry; each writes another of them. */
static void conv_value(const op_case *c, const double *const *x, double *y)
{
    const conv_setting *s = &convs[c->a[0]];
    const hl_conv_options *p = &s->options;
    size_t sh = p->stride[0] ? p->stride[0] : 1, sw = p->stride[1] ? p->stride[1] : 1;
    size_t oh = out_size(s->h, s->kh, sh, p->pad[0]), ow = out_size(s->w, s->kw, sw, p->pad[1]);
    for (size_t o = 0; o < s->o; o++)
        for (size_t ch = 0; ch < s->c; ch++)
            for (size_t a = 0; a < s->kh; a++)
                for (size_t b = 0; b < s->kw; b++)
                    for (size_t i = 0; i < oh && (!p->taps || p->taps[a * s->kw + b]); i++)
                        for (size_t j = 0; j < ow; j++) {
                            size_t row = i * sh + a - p->pad[0], col = j * sw + b - p->pad[1]; /* wraps when outside */
                            size_t image = (ch * s->h + row) * s->w + col, result = (o * oh + i) * ow + j,
                                   kernel = ((o * s->c + ch) * s->kh + a) * s->kw + b;
                            if (row >= s->h || col >= s->w)
                                continue;
                            if (c->op == &hl_op_conv)
                                y[result] += x[0][image] * x[1][kernel];
                            else if (c->op == &hl_op_conv_t)
                                y[image] += x[0][result] * x[1][kernel];
                            else
                                y[kernel] += x[0][result] * x[1][image];
                        }
}

static void add_convolutions(void)
{
    static const hl_op *const three[] = { &hl_op_conv, &hl_op_conv_t, &hl_op_conv_w };
    for (int i = 0; i < 3; i++)
        for (size_t n = 0; n < sizeof convs / sizeof *convs; n++) {
            const conv_setting *s = &convs[n];
            op_case *c = new_case(three[i], three[i]->name, conv_build, conv_value, 2);
            hl_shape image = SHAPE_OF(s->c, s->h, s->w), kernel = SHAPE_OF(s->o, s->c, s->kh, s->kw),
                     result = SHAPE_OF(s->o, out_size(s->h, s->kh, s->options.stride[0], s->options.pad[0]),
                                       out_size(s->w, s->kw, s->options.stride[1], s->options.pad[1]));
            c->in[0] = i == 0 ? image : result;
            c->in[1] = i == 2 ? image : kernel;
            c->shared = i == 2 ? 0 : 2;
            c->a[0] = (int)n;
        }
}

static void add_cases(void)
{
    add_elementwise();
    add_other_rows();
    add_structure();
    add_reductions();
    add_products();
    add_convolutions();
}

#endif
