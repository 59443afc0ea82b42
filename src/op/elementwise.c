/* elementwise.c - functions of one, two and three values: their builders, vjp rules and Taylor rules.
 *
 * Taylor rules work on coefficients x_k = x^(k) / k!. Most functions satisfy y' = s x' for some s whose own coefficients
 * follow from those of x and y; then  k y_k = sum_{j=1..k} j x_j s_{k-j}  (`chain` below). Rules may rebuild the lower
 * coefficients of s: equal nodes are one node, so this costs nothing at run time. */
#include <math.h>

#include "op/op.h"

#define MAX_ORDER 64

static bool same_shape(hl_graph *g, int inputs, const hl_node *in, const hl_attr *attr, hl_shape *out)
{
    (void)attr;
    *out = hl_graph_node(g, in[0])->shape;
    for (int i = 1; i < inputs; i++) {
        const hl_shape *s = &hl_graph_node(g, in[i])->shape;
        if (!hl_shape_equal(out, s) || out->batched != s->batched)
            return hl_graph_fail(g, HL_ERR_SHAPE, "elementwise: input %d has another shape", i), false;
    }
    return true;
}

/* ---- builders ---- */

/* Stretch all inputs to their common shape, fold constants, and add the node. */
static hl_node elementwise(hl_graph *g, const hl_op *op, int n, const hl_node *in)
{
    hl_node x[3];
    hl_shape shape;
    double value[3];
    bool fold = true;
    for (int i = 0; i < n; i++) {
        const hl_node_data *d = hl_graph_node(g, in[i]);
        if (!d)
            return g ? hl_graph_fail(g, HL_ERR_INVALID, "%s: input %d is not a node of this graph", op->name, i)
                     : HL_BAD;
        if (i == 0)
            shape = d->shape;
        else if (!hl_shape_join(&shape, &d->shape, &shape)) {
            char a[120], b[120];
            return hl_graph_fail(g, HL_ERR_SHAPE, "%s: %s and %s do not broadcast", op->name,
                                 hl_shape_text(&shape, a, sizeof a), hl_shape_text(&d->shape, b, sizeof b));
        }
        fold = fold && hl_scalar_value(g, in[i], &value[i]);
    }
    if (fold)
        return hl_broadcast_shape(g, hl_const(g, op->eval(value)), &shape);
    const hl_node_data *first = hl_graph_node(g, in[0]);
    if (n == 1 && first->op == &hl_op_broadcast && hl_graph_through(g, in[0])) /* work on the small side */
        return hl_broadcast_shape(g, elementwise(g, op, 1, first->in), &shape);
    for (int i = 0; i < n; i++)
        x[i] = hl_broadcast_shape(g, in[i], &shape);
    return hl_graph_add(g, op, n, x, NULL);
}

static bool is_scalar(const hl_graph *g, hl_node n, double value)
{
    double v;
    return hl_scalar_value(g, n, &v) && v == value;
}

/* b stands for the whole result of an op with a neutral other argument a: stretched to their common shape. */
static hl_node neutral(hl_graph *g, hl_node a, hl_node b)
{
    hl_shape shape;
    if (!hl_shape_join(&hl_graph_node(g, a)->shape, &hl_graph_node(g, b)->shape, &shape))
        return elementwise(g, &hl_op_add, 2, (hl_node[]){ a, b }); /* which says what is wrong */
    return hl_broadcast_shape(g, b, &shape);
}

#define UNARY_BUILDER(name)                                                                                            \
    hl_node hl_##name(hl_graph *g, hl_node x)                                                                          \
    {                                                                                                                  \
        return elementwise(g, &hl_op_##name, 1, &x);                                                                   \
    }
UNARY_BUILDER(exp)
UNARY_BUILDER(log)
UNARY_BUILDER(log1p)
UNARY_BUILDER(expm1)
UNARY_BUILDER(sin)
UNARY_BUILDER(cos)
UNARY_BUILDER(tanh)
UNARY_BUILDER(sigmoid)
UNARY_BUILDER(softplus)
UNARY_BUILDER(swish)
UNARY_BUILDER(swish_slope)
UNARY_BUILDER(swish_curve)
UNARY_BUILDER(erf)
UNARY_BUILDER(sqrt)
UNARY_BUILDER(abs)
UNARY_BUILDER(sign)

/* Signs and constant factors are moved outwards, where they meet and merge:  (-a) b = -(a b),  (c a) b = c (a b),
 * a + (-b) = a - b,  a + a = 2 a. */

/* Node n, if it is of this op and may be looked through. */
static const hl_node_data *node_if(const hl_graph *g, hl_node n, const hl_op *op)
{
    const hl_node_data *d = hl_graph_node(g, n);
    return d && d->op == op && hl_graph_through(g, n) ? d : NULL;
}

/* Is n = factor * rest, with a constant factor? */
static bool has_factor(const hl_graph *g, hl_node n, double *factor, hl_node *rest)
{
    const hl_node_data *d = node_if(g, n, &hl_op_neg);
    if (d) {
        *factor = -1;
        *rest = d->in[0];
        return true;
    }
    d = node_if(g, n, &hl_op_mul);
    for (int i = 0; d && i < 2; i++)
        if (hl_scalar_value(g, d->in[i], factor)) {
            *rest = d->in[1 - i];
            return true;
        }
    return false;
}

/* factor * x, where x has no constant factor of its own */
static hl_node times(hl_graph *g, double factor, hl_node x)
{
    if (factor == 1)
        return x;
    if (factor == -1)
        return elementwise(g, &hl_op_neg, 1, &x);
    return elementwise(g, &hl_op_mul, 2, (hl_node[]){ x, hl_const(g, factor) });
}

hl_node hl_scale(hl_graph *g, double factor, hl_node x)
{
    double own, value;
    hl_node rest;
    if (!hl_scalar_value(g, x, &value) && has_factor(g, x, &own, &rest))
        return times(g, factor * own, rest);
    return times(g, factor, x);
}

hl_node hl_neg(hl_graph *g, hl_node x)
{
    return hl_scale(g, -1, x);
}

hl_node hl_add(hl_graph *g, hl_node a, hl_node b)
{
    const hl_node_data *na = node_if(g, a, &hl_op_neg), *nb = node_if(g, b, &hl_op_neg);
    if (hl_graph_node(g, a) && is_scalar(g, b, 0))
        return neutral(g, b, a);
    if (hl_graph_node(g, b) && is_scalar(g, a, 0))
        return neutral(g, a, b);
    if (a == b)
        return hl_scale(g, 2, a);
    if (nb)
        return elementwise(g, &hl_op_sub, 2, (hl_node[]){ a, nb->in[0] });
    if (na)
        return elementwise(g, &hl_op_sub, 2, (hl_node[]){ b, na->in[0] });
    return elementwise(g, &hl_op_add, 2, (hl_node[]){ a, b });
}

hl_node hl_sub(hl_graph *g, hl_node a, hl_node b)
{
    const hl_node_data *nb = node_if(g, b, &hl_op_neg);
    if (hl_graph_node(g, a) && is_scalar(g, b, 0))
        return neutral(g, b, a);
    if (nb)
        return elementwise(g, &hl_op_add, 2, (hl_node[]){ a, nb->in[0] });
    return elementwise(g, &hl_op_sub, 2, (hl_node[]){ a, b });
}

hl_node hl_mul(hl_graph *g, hl_node a, hl_node b)
{
    double fa, fb, value;
    hl_node ra, rb;
    if (hl_graph_node(g, a) && is_scalar(g, b, 1))
        return neutral(g, b, a);
    if (hl_graph_node(g, b) && is_scalar(g, a, 1))
        return neutral(g, a, b);
    if (hl_scalar_value(g, a, &value) || hl_scalar_value(g, b, &value))
        return elementwise(g, &hl_op_mul, 2, (hl_node[]){ a, b });
    bool has_a = has_factor(g, a, &fa, &ra), has_b = has_factor(g, b, &fb, &rb);
    if (has_a || has_b)
        return times(g, (has_a ? fa : 1) * (has_b ? fb : 1), hl_mul(g, has_a ? ra : a, has_b ? rb : b));
    return elementwise(g, &hl_op_mul, 2, (hl_node[]){ a, b });
}

hl_node hl_div(hl_graph *g, hl_node a, hl_node b)
{
    if (hl_graph_node(g, a) && is_scalar(g, b, 1))
        return neutral(g, b, a);
    return elementwise(g, &hl_op_div, 2, (hl_node[]){ a, b });
}

#define BINARY_BUILDER(name)                                                                                           \
    hl_node hl_##name(hl_graph *g, hl_node a, hl_node b)                                                               \
    {                                                                                                                  \
        return elementwise(g, &hl_op_##name, 2, (hl_node[]){ a, b });                                                  \
    }
BINARY_BUILDER(pow)
BINARY_BUILDER(min)
BINARY_BUILDER(max)
BINARY_BUILDER(less)

hl_node hl_select(hl_graph *g, hl_node c, hl_node a, hl_node b)
{
    return elementwise(g, &hl_op_select, 3, (hl_node[]){ c, a, b });
}

hl_node hl_clamp(hl_graph *g, hl_node x, double low, double high)
{
    if (g && !(low <= high))
        return hl_graph_fail(g, HL_ERR_INVALID, "hl_clamp: low %g is not <= high %g", low, high);
    return hl_min(g, hl_max(g, x, hl_const(g, low)), hl_const(g, high));
}

hl_node hl_powi(hl_graph *g, hl_node a, int exponent)
{
    unsigned e = exponent < 0 ? 0u - (unsigned)exponent : (unsigned)exponent;
    hl_node result = HL_NONE;
    if (!hl_graph_node(g, a))
        return g ? hl_graph_fail(g, HL_ERR_INVALID, "hl_powi: the base is not a node of this graph") : HL_BAD;
    if (e == 0)
        return hl_constant_like(g, 1, a);
    for (hl_node square = a; e; e >>= 1) {
        if (e & 1)
            result = result == HL_NONE ? square : hl_mul(g, result, square);
        if (e > 1)
            square = hl_mul(g, square, square);
    }
    return exponent < 0 ? hl_div(g, hl_const(g, 1), result) : result;
}

hl_node hl_relu(hl_graph *g, hl_node x)
{
    return hl_max(g, x, hl_const(g, 0));
}

/* expm1 sees only x <= 0, so that the branch not taken cannot overflow and spoil a derivative. */
hl_node hl_elu(hl_graph *g, hl_node x)
{
    hl_node zero = hl_const(g, 0);
    return hl_select(g, hl_less(g, zero, x), x, hl_expm1(g, hl_min(g, x, zero)));
}

/* ---- sums in which HL_NONE is zero ---- */

hl_node hl_accumulate(hl_graph *g, hl_node a, hl_node b)
{
    if (a == HL_NONE || b == HL_NONE)
        return a == HL_NONE ? b : a;
    hl_node joined = hl_join_scatters(g, a, b);
    return joined == HL_NONE ? hl_add(g, a, b) : joined;
}

hl_node hl_product(hl_graph *g, hl_node a, hl_node b)
{
    return a == HL_NONE || b == HL_NONE ? HL_NONE : hl_mul(g, a, b);
}

/* a - b */
static hl_node minus(hl_graph *g, hl_node a, hl_node b)
{
    return b == HL_NONE ? a : a == HL_NONE ? hl_neg(g, b) : hl_sub(g, a, b);
}

static hl_node scaled(hl_graph *g, double factor, hl_node x)
{
    return x == HL_NONE ? HL_NONE : hl_scale(g, factor, x);
}

/* sum_{j=0..k} a_j b_{k-j} */
static hl_node cauchy(hl_graph *g, int k, const hl_node *a, const hl_node *b)
{
    hl_node sum = HL_NONE;
    for (int j = 0; j <= k; j++)
        sum = hl_accumulate(g, sum, hl_product(g, a[j], b[k - j]));
    return sum;
}

/* (1/k) sum_{j=1..k} j x_j s_{k-j}: coefficient k of y where y' = s x' */
static hl_node chain(hl_graph *g, int k, const hl_node *x, const hl_node *s)
{
    hl_node sum = HL_NONE;
    for (int j = 1; j <= k; j++)
        sum = hl_accumulate(g, sum, scaled(g, (double)j / k, hl_product(g, x[j], s[k - j])));
    return sum;
}

/* Coefficients 0..k-1 of exp(u), with e0 = exp(u_0) given. */
static void exp_series(hl_graph *g, int k, const hl_node *u, hl_node e0, hl_node *e)
{
    e[0] = e0;
    for (int m = 1; m < k; m++)
        e[m] = chain(g, m, u, e);
}

/* ---- unary rules ---- */

#define VJP1(name, expression)                                                                                         \
    static void name##_vjp(hl_graph *g, hl_node y, const hl_node *in, hl_node gy, hl_node *gx)                         \
    {                                                                                                                  \
        hl_node x = in[0];                                                                                             \
        (void)x, (void)y;                                                                                              \
        gx[0] = (expression);                                                                                          \
    }
#define JET1(name)                                                                                                     \
    static hl_node name##_jet(hl_graph *g, hl_node node, int k, const hl_node *const *in, const hl_node *y)
#define UNUSED (void)node, (void)y

static hl_node one_minus(hl_graph *g, hl_node x)
{
    return hl_sub(g, hl_const(g, 1), x);
}

/* The third derivative of swish: with s = sigmoid(x), s (1 - s) ((1 - 2 s) (3 + x - 2 y) - 2 y (1 - s)). */
static hl_node swish_third(hl_graph *g, hl_node x)
{
    hl_node s = hl_sigmoid(g, x), y = hl_swish(g, x), rest = one_minus(g, s);
    hl_node sum = hl_sub(g, hl_add(g, x, hl_const(g, 3)), hl_scale(g, 2, y));
    sum = hl_sub(g, hl_mul(g, one_minus(g, hl_scale(g, 2, s)), sum), hl_scale(g, 2, hl_mul(g, y, rest)));
    return hl_mul(g, hl_mul(g, s, rest), sum);
}

VJP1(neg, hl_neg(g, gy))
VJP1(exp, hl_mul(g, gy, y))
VJP1(log, hl_div(g, gy, x))
VJP1(log1p, hl_div(g, gy, hl_add(g, x, hl_const(g, 1))))
VJP1(expm1, hl_mul(g, gy, hl_exp(g, x)))
VJP1(sin, hl_mul(g, gy, hl_cos(g, x)))
VJP1(cos, hl_neg(g, hl_mul(g, gy, hl_sin(g, x))))
VJP1(tanh, hl_mul(g, gy, one_minus(g, hl_mul(g, y, y))))
VJP1(sigmoid, hl_mul(g, gy, hl_mul(g, y, one_minus(g, y))))
VJP1(softplus, hl_mul(g, gy, hl_sigmoid(g, x)))
VJP1(swish, hl_mul(g, gy, hl_swish_slope(g, x)))
VJP1(swish_slope, hl_mul(g, gy, hl_swish_curve(g, x)))
VJP1(swish_curve, hl_mul(g, gy, swish_third(g, x)))
VJP1(erf, hl_mul(g, gy, hl_scale(g, 2 / sqrt(acos(-1.0)), hl_exp(g, hl_neg(g, hl_mul(g, x, x))))))
VJP1(sqrt, hl_div(g, hl_scale(g, 0.5, gy), y))
VJP1(abs, hl_mul(g, gy, hl_sign(g, x)))

JET1(exp)
{
    UNUSED;
    return chain(g, k, in[0], y);
}

/* x y' = x': k x_0 y_k = k x_k - sum_{j=1..k-1} j y_j x_{k-j}; `base` is x_0, or x_0 + 1 for log1p. */
static hl_node log_coefficient(hl_graph *g, int k, const hl_node *x, const hl_node *y, hl_node base)
{
    hl_node sum = x[k];
    for (int j = 1; j < k; j++)
        sum = minus(g, sum, scaled(g, (double)j / k, hl_product(g, y[j], x[k - j])));
    return sum == HL_NONE ? HL_NONE : hl_div(g, sum, base);
}

JET1(log)
{
    UNUSED;
    return log_coefficient(g, k, in[0], y, in[0][0]);
}

JET1(log1p)
{
    UNUSED;
    return log_coefficient(g, k, in[0], y, hl_add(g, in[0][0], hl_const(g, 1)));
}

JET1(expm1)
{
    hl_node e[MAX_ORDER];
    UNUSED;
    exp_series(g, k, in[0], hl_exp(g, in[0][0]), e);
    return chain(g, k, in[0], e);
}

/* s' = c x', c' = -s x': the pair's lower coefficients. */
static void sin_cos_series(hl_graph *g, int k, const hl_node *x, hl_node *s, hl_node *c)
{
    s[0] = hl_sin(g, x[0]);
    c[0] = hl_cos(g, x[0]);
    for (int m = 1; m < k; m++) {
        s[m] = chain(g, m, x, c);
        c[m] = minus(g, HL_NONE, chain(g, m, x, s));
    }
}

JET1(sin)
{
    hl_node s[MAX_ORDER], c[MAX_ORDER];
    UNUSED;
    sin_cos_series(g, k, in[0], s, c);
    return chain(g, k, in[0], c);
}

JET1(cos)
{
    hl_node s[MAX_ORDER], c[MAX_ORDER];
    UNUSED;
    sin_cos_series(g, k, in[0], s, c);
    return minus(g, HL_NONE, chain(g, k, in[0], s));
}

/* s = 1 - y^2 */
JET1(tanh)
{
    hl_node s[MAX_ORDER];
    UNUSED;
    s[0] = one_minus(g, hl_mul(g, y[0], y[0]));
    for (int m = 1; m < k; m++)
        s[m] = minus(g, HL_NONE, cauchy(g, m, y, y));
    return chain(g, k, in[0], s);
}

/* s = y (1 - y) = y - y^2, from y[0..k-1] */
static void sigmoid_slope(hl_graph *g, int k, const hl_node *y, hl_node *s)
{
    s[0] = hl_mul(g, y[0], one_minus(g, y[0]));
    for (int m = 1; m < k; m++)
        s[m] = minus(g, y[m], cauchy(g, m, y, y));
}

JET1(sigmoid)
{
    hl_node s[MAX_ORDER];
    UNUSED;
    sigmoid_slope(g, k, y, s);
    return chain(g, k, in[0], s);
}

/* y' = sigmoid(x) x' */
JET1(softplus)
{
    hl_node sig[MAX_ORDER], s[MAX_ORDER];
    UNUSED;
    sig[0] = hl_sigmoid(g, in[0][0]);
    for (int m = 1; m < k; m++) {
        sigmoid_slope(g, m, sig, s);
        sig[m] = chain(g, m, in[0], s);
    }
    return chain(g, k, in[0], sig);
}

/* Coefficients 0..k of s = sigmoid(x) and of s' = s (1 - s) as a function of x. */
static void sigmoid_series(hl_graph *g, int k, const hl_node *x, hl_node *s, hl_node *rate)
{
    s[0] = hl_sigmoid(g, x[0]);
    for (int m = 1; m <= k; m++) {
        sigmoid_slope(g, m, s, rate);
        s[m] = chain(g, m, x, rate);
    }
    sigmoid_slope(g, k + 1, s, rate);
}

/* The first two by the derivatives of swish, which are computed along with it; then y = x s. */
JET1(swish)
{
    const hl_node *x = in[0];
    hl_node s[MAX_ORDER], rate[MAX_ORDER];
    UNUSED;
    if (k <= 2) {
        hl_node slope[] = { hl_swish_slope(g, x[0]), HL_NONE };
        if (k == 2)
            slope[1] = hl_product(g, hl_swish_curve(g, x[0]), x[1]);
        return chain(g, k, x, slope);
    }
    sigmoid_series(g, k, x, s, rate);
    return cauchy(g, k, x, s);
}

/* y = s + x s' */
JET1(swish_slope)
{
    const hl_node *x = in[0];
    hl_node s[MAX_ORDER], rate[MAX_ORDER];
    UNUSED;
    if (k == 1)
        return hl_product(g, hl_swish_curve(g, x[0]), x[1]);
    sigmoid_series(g, k, x, s, rate);
    return hl_accumulate(g, s[k], cauchy(g, k, x, rate));
}

/* y = s' (2 + x - 2 x s) */
JET1(swish_curve)
{
    const hl_node *x = in[0];
    hl_node s[MAX_ORDER], rate[MAX_ORDER], sum[MAX_ORDER];
    UNUSED;
    sigmoid_series(g, k, x, s, rate);
    for (int m = 0; m <= k; m++) {
        sum[m] = minus(g, x[m], scaled(g, 2, cauchy(g, m, x, s)));
        if (m == 0)
            sum[0] = hl_add(g, sum[0], hl_const(g, 2));
    }
    return cauchy(g, k, rate, sum);
}

/* y' = 2/sqrt(pi) exp(-x^2) x' */
JET1(erf)
{
    hl_node u[MAX_ORDER], e[MAX_ORDER];
    UNUSED;
    u[0] = hl_neg(g, hl_mul(g, in[0][0], in[0][0]));
    for (int m = 1; m < k; m++)
        u[m] = minus(g, HL_NONE, cauchy(g, m, in[0], in[0]));
    exp_series(g, k, u, hl_exp(g, u[0]), e);
    return scaled(g, 2 / sqrt(acos(-1.0)), chain(g, k, in[0], e));
}

/* y^2 = x: 2 y_0 y_k = x_k - sum_{j=1..k-1} y_j y_{k-j} */
JET1(sqrt)
{
    hl_node sum = in[0][k];
    UNUSED;
    for (int j = 1; j < k; j++)
        sum = minus(g, sum, hl_product(g, y[j], y[k - j]));
    return sum == HL_NONE ? HL_NONE : hl_div(g, hl_scale(g, 0.5, sum), y[0]);
}

JET1(abs)
{
    UNUSED;
    return hl_product(g, in[0][k], hl_sign(g, in[0][0]));
}

/* ---- binary and ternary rules ---- */

#define VJP2(name, first, second)                                                                                      \
    static void name##_vjp(hl_graph *g, hl_node y, const hl_node *in, hl_node gy, hl_node *gx)                         \
    {                                                                                                                  \
        hl_node a = in[0], b = in[1];                                                                                  \
        (void)g, (void)y, (void)a, (void)b;                                                                            \
        gx[0] = (first);                                                                                               \
        gx[1] = (second);                                                                                              \
    }

VJP2(add, gy, gy)
VJP2(sub, gy, hl_neg(g, gy))
VJP2(mul, hl_mul(g, gy, b), hl_mul(g, gy, a))
VJP2(div, hl_div(g, gy, b), hl_neg(g, hl_div(g, hl_mul(g, gy, y), b)))
VJP2(pow, hl_mul(g, gy, hl_mul(g, b, hl_pow(g, a, hl_sub(g, b, hl_const(g, 1))))),
     hl_mul(g, gy, hl_mul(g, y, hl_log(g, a))))
VJP2(min, hl_mul(g, gy, one_minus(g, hl_less(g, b, a))), hl_mul(g, gy, hl_less(g, b, a)))
VJP2(max, hl_mul(g, gy, one_minus(g, hl_less(g, a, b))), hl_mul(g, gy, hl_less(g, a, b)))

/* Constant exponents are common, and their cotangent takes a logarithm that may not exist: leave it out. */
static void pow_vjp_guarded(hl_graph *g, hl_node y, const hl_node *in, hl_node gy, hl_node *gx)
{
    double exponent;
    pow_vjp(g, y, in, gy, gx);
    if (hl_scalar_value(g, in[1], &exponent))
        gx[1] = HL_NONE;
}

static void select_vjp(hl_graph *g, hl_node y, const hl_node *in, hl_node gy, hl_node *gx)
{
    hl_node zero = hl_const(g, 0);
    (void)y;
    gx[1] = hl_select(g, in[0], gy, zero);
    gx[2] = hl_select(g, in[0], zero, gy);
}

JET1(add)
{
    UNUSED;
    return hl_accumulate(g, in[0][k], in[1][k]);
}

JET1(sub)
{
    UNUSED;
    return minus(g, in[0][k], in[1][k]);
}

JET1(mul)
{
    UNUSED;
    return cauchy(g, k, in[0], in[1]);
}

/* b y = a: b_0 y_k = a_k - sum_{j=1..k} b_j y_{k-j} */
JET1(div)
{
    hl_node sum = in[0][k];
    UNUSED;
    for (int j = 1; j <= k; j++)
        sum = minus(g, sum, hl_product(g, in[1][j], y[k - j]));
    return sum == HL_NONE ? HL_NONE : hl_div(g, sum, in[1][0]);
}

/* b at rest: a y' = b y a', so k a_0 y_k = sum_{j=1..k} (b j - (k - j)) a_j y_{k-j}, for any a_0 but 0.
 * Otherwise y = exp(u) with u = b log a. */
JET1(pow)
{
    const hl_node *a = in[0], *b = in[1];
    hl_node sum = HL_NONE, l[MAX_ORDER], u[MAX_ORDER];
    bool rests = true;
    UNUSED;
    for (int j = 1; j <= k; j++)
        rests = rests && b[j] == HL_NONE;
    if (rests) {
        for (int j = 1; j <= k; j++) {
            hl_node factor = hl_sub(g, scaled(g, (double)j / k, b[0]), hl_const(g, (double)(k - j) / k));
            sum = hl_accumulate(g, sum, hl_product(g, factor, hl_product(g, a[j], y[k - j])));
        }
        return sum == HL_NONE ? HL_NONE : hl_div(g, sum, a[0]);
    }
    l[0] = hl_log(g, a[0]);
    for (int m = 1; m <= k; m++)
        l[m] = log_coefficient(g, m, a, l, a[0]);
    for (int m = 0; m <= k; m++)
        u[m] = cauchy(g, m, b, l);
    return chain(g, k, u, y);
}

/* c != 0 ? a : b with HL_NONE as zero */
static hl_node choose(hl_graph *g, hl_node c, hl_node a, hl_node b)
{
    if (a == HL_NONE && b == HL_NONE)
        return HL_NONE;
    return hl_select(g, c, a == HL_NONE ? hl_const(g, 0) : a, b == HL_NONE ? hl_const(g, 0) : b);
}

JET1(min)
{
    UNUSED;
    return choose(g, hl_less(g, in[1][0], in[0][0]), in[1][k], in[0][k]);
}

JET1(max)
{
    UNUSED;
    return choose(g, hl_less(g, in[0][0], in[1][0]), in[1][k], in[0][k]);
}

JET1(select)
{
    UNUSED;
    return choose(g, in[0][0], in[1][k], in[2][k]);
}

/* ---- values in double, for constant folding ---- */

#define EVAL(name, expression)                                                                                         \
    static double name##_eval(const double *x)                                                                         \
    {                                                                                                                  \
        return (expression);                                                                                           \
    }
EVAL(neg, -x[0])
EVAL(exp, exp(x[0]))
EVAL(log, log(x[0]))
EVAL(log1p, log1p(x[0]))
EVAL(expm1, expm1(x[0]))
EVAL(sin, sin(x[0]))
EVAL(cos, cos(x[0]))
EVAL(tanh, tanh(x[0]))
EVAL(sigmoid, x[0] >= 0 ? 1 / (1 + exp(-x[0])) : exp(x[0]) / (1 + exp(x[0])))
EVAL(softplus, fmax(x[0], 0) + log1p(exp(-fabs(x[0]))))
EVAL(swish, x[0] * sigmoid_eval(x))
EVAL(swish_slope, sigmoid_eval(x) + swish_eval(x) * (1 - sigmoid_eval(x)))
EVAL(swish_curve, (1 - sigmoid_eval(x)) * (sigmoid_eval(x) * (1 - swish_eval(x)) + swish_slope_eval(x)))
EVAL(erf, erf(x[0]))
EVAL(sqrt, sqrt(x[0]))
EVAL(abs, fabs(x[0]))
EVAL(sign, x[0] > 0 ? 1 : x[0] < 0 ? -1 : x[0])
EVAL(add, x[0] + x[1])
EVAL(sub, x[0] - x[1])
EVAL(mul, x[0] * x[1])
EVAL(div, x[0] / x[1])
EVAL(pow, pow(x[0], x[1]))
EVAL(min, isnan(x[0]) || x[0] < x[1] ? x[0] : x[1])
EVAL(max, isnan(x[0]) || x[0] > x[1] ? x[0] : x[1])
EVAL(less, x[0] < x[1])
EVAL(select, x[0] != 0 ? x[1] : x[2])

/* ---- rows ---- */

#define ROW(op_name, args, op_kind, number, cost, low, high, ...)                                                      \
    const hl_op hl_op_##op_name = { .name = #op_name,                                                                  \
                                    .arity = args,                                                                     \
                                    .kind = HL_KIND_##op_kind,                                                         \
                                    .code = HL_DO_##op_kind,                                                           \
                                    .kernel = number,                                                                  \
                                    .flops = cost,                                                                     \
                                    .local = hl_local_always,                                                          \
                                    .shape = same_shape,                                                               \
                                    .eval = op_name##_eval,                                                            \
                                    .domain = { low, high },                                                           \
                                    __VA_ARGS__ }
#define RULES(name) .vjp = name##_vjp, .jet = name##_jet

ROW(neg, 1, UNARY, HL_UN_NEG, 1, -3, 3, .vjp = neg_vjp, .jet_kind = HL_JET_LINEAR);
ROW(exp, 1, UNARY, HL_UN_EXP, 16, -3, 3, RULES(exp));
ROW(log, 1, UNARY, HL_UN_LOG, 20, 0.2, 4, RULES(log));
ROW(log1p, 1, UNARY, HL_UN_LOG1P, 24, -0.7, 4, RULES(log1p));
ROW(expm1, 1, UNARY, HL_UN_EXPM1, 20, -3, 3, RULES(expm1));
ROW(sin, 1, UNARY, HL_UN_SIN, 20, -4, 4, RULES(sin));
ROW(cos, 1, UNARY, HL_UN_COS, 20, -4, 4, RULES(cos));
ROW(tanh, 1, UNARY, HL_UN_TANH, 20, -3, 3, RULES(tanh));
ROW(sigmoid, 1, UNARY, HL_UN_SIGMOID, 20, -4, 4, RULES(sigmoid));
ROW(softplus, 1, UNARY, HL_UN_SOFTPLUS, 40, -4, 4, RULES(softplus));
ROW(swish, 1, UNARY, HL_UN_SWISH, 21, -4, 4, RULES(swish));
ROW(swish_slope, 1, UNARY, HL_UN_SWISH_SLOPE, 3, -4, 4,
    RULES(swish_slope)); /* beside swish, which shares the sigmoid */
ROW(swish_curve, 1, UNARY, HL_UN_SWISH_CURVE, 4, -4, 4, RULES(swish_curve));
ROW(erf, 1, UNARY, HL_UN_ERF, 30, -2, 2, RULES(erf));
ROW(sqrt, 1, UNARY, HL_UN_SQRT, 4, 0.2, 4, RULES(sqrt));
ROW(abs, 1, UNARY, HL_UN_ABS, 1, 0.2, 3, RULES(abs));
ROW(sign, 1, UNARY, HL_UN_SIGN, 1, 0.2, 3, .jet_kind = HL_JET_ZERO);
ROW(add, 2, BINARY, HL_BI_ADD, 1, -3, 3, RULES(add), .bend = HL_BEND_STRAIGHT);
ROW(sub, 2, BINARY, HL_BI_SUB, 1, -3, 3, RULES(sub), .bend = HL_BEND_STRAIGHT);
ROW(mul, 2, BINARY, HL_BI_MUL, 1, -3, 3, RULES(mul), .bend = HL_BEND_PRODUCT);
ROW(div, 2, BINARY, HL_BI_DIV, 4, 0.3, 3, RULES(div), .bend = HL_BEND_QUOTIENT);
ROW(pow, 2, BINARY, HL_BI_POW, 60, 0.3, 2.5, .vjp = pow_vjp_guarded, .jet = pow_jet);
ROW(min, 2, BINARY, HL_BI_MIN, 1, -3, 3, RULES(min), .bend = HL_BEND_STRAIGHT);
ROW(max, 2, BINARY, HL_BI_MAX, 1, -3, 3, RULES(max), .bend = HL_BEND_STRAIGHT);
ROW(less, 2, BINARY, HL_BI_LESS, 1, -3, 3, .jet_kind = HL_JET_ZERO);
ROW(select, 3, TERNARY, HL_TE_SELECT, 1, -3, 3, RULES(select), .bend = HL_BEND_STRAIGHT);
