/* test_net.c - hollow networks with conditioner made: f against its definition, D^k and its gradients against brute force,
 * and hollowness to the last bit. The rest of the family is in test_family.c. */
#include "brute_support.h"

/* ---- f, by plain loops from the parameters' names ---- */

static double activate(const char *name, double z)
{
    double sigmoid = 1 / (1 + exp(-z));
    switch (name[1]) {
    case 'a':
        return tanh(z);
    case 'o':
        return log1p(exp(z)); /* softplus */
    case 'w':
        return z * sigmoid;
    case 'l':
        return z > 0 ? z : expm1(z);
    default:
        return sigmoid;
    }
}

/* Parameter "prefix.what", from the part of dimension i on if it has one of its own. NULL if the network has none. */
static const double *weights(const setup *s, const char *prefix, const char *what, size_t i)
{
    char name[80];
    bool own = strcmp(s->spec.transformer, "per-dimension") == 0 && prefix[0] == 't';
    if ((strcmp(what, "weight_t") == 0 && !s->spec.time) || (strcmp(what, "weight_c") == 0 && !s->spec.context))
        return NULL;
    snprintf(name, sizeof name, "%s.%s", prefix, what);
    hl_net_param p = param_named(s->net, name);
    return (const double *)p.values + (own ? i * (p.size / s->spec.dim) : 0);
}

/* y += w x, w [out][in] */
static void add_product(const double *w, const double *x, size_t out, size_t in, double *y)
{
    for (size_t n = 0; w && n < out; n++)
        for (size_t k = 0; k < in; k++)
            y[n] += w[n * in + k] * x[k];
}

/* y = bias + w_t t + w_c context of row r; t and context only in the first layer. */
static void start_layer(const setup *s, const char *prefix, size_t i, size_t r, bool first, size_t out, double *y)
{
    memcpy(y, weights(s, prefix, "bias", i), out * sizeof *y);
    if (!first)
        return;
    add_product(weights(s, prefix, "weight_t", i), s->t ? (double *)s->t + r : NULL, out, 1, y);
    add_product(weights(s, prefix, "weight_c", i), (double *)s->context + r * s->spec.context, out, s->spec.context, y);
}

/* One direction of the conditioner: out [dim][features / 2]. */
static void reference_direction(const setup *s, const char *way, size_t r, double *out)
{
    int layers = s->spec.hidden_layers < 0 ? 0 : s->spec.hidden_layers;
    double a[64], z[64];
    size_t in = s->spec.dim, half = s->spec.features / 2;
    memcpy(a, (double *)s->x + r * in, in * sizeof *a);
    for (int l = 0; l <= layers; l++) {
        char prefix[64];
        size_t units = l < layers ? s->spec.hidden : s->spec.dim * half;
        snprintf(prefix, sizeof prefix, "conditioner.%s.%d", way, l);
        start_layer(s, prefix, 0, r, l == 0 && layers > 0, units, z);
        add_product(weights(s, prefix, "weight", 0), a, units, in, z);
        for (size_t u = 0; u < units; u++)
            a[u] = l < layers ? activate(s->spec.activation, z[u]) : z[u];
        in = units;
    }
    memcpy(out, a, in * sizeof *out);
}

static double reference_f(const setup *s, size_t r, size_t i)
{
    int layers = s->spec.layers < 0 ? 0 : s->spec.layers;
    size_t half = s->spec.features / 2, units = layers ? s->spec.width : 1, in = units;
    double forward[64], backward[64], h[16], a[64], z[64];
    reference_direction(s, "forward", r, forward);
    reference_direction(s, "backward", r, backward);
    for (size_t k = 0; k < half; k++) {
        h[k] = forward[i * half + k];
        h[half + k] = backward[i * half + k];
    }
    start_layer(s, "transformer.0", i, r, true, units, z);
    add_product(weights(s, "transformer.0", "weight_h", i), h, units, 2 * half, z);
    add_product(weights(s, "transformer.0", "weight_x", i), (double *)s->x + r * s->spec.dim + i, units, 1, z);
    for (int l = 1; l <= layers; l++, in = units) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "transformer.%d", l);
        for (size_t u = 0; u < in; u++)
            a[u] = activate(s->spec.activation, z[u]);
        units = l < layers ? s->spec.width : 1;
        start_layer(s, prefix, i, r, false, units, z);
        add_product(weights(s, prefix, "weight", i), a, units, in, z);
    }
    return z[0];
}

static void test_definition(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 2 * 4 * 4 * 5; n++) {
        hl_net_spec spec = { .dim = 1 + n % 6,
                             .features = 2 + n % 3 * 2,
                             .hidden = 9,
                             .width = 5,
                             .dtype = HL_F64,
                             .transformer = transformer(n),
                             .hidden_layers = depth(n / 2),
                             .layers = depth(n / 8),
                             .activation = activation(n / 32),
                             .time = n / 3 % 2,
                             .context = n / 5 % 2 * 3 };
        setup s = make(ctx, &spec, 4);
        hl_operator *op = compile(&s, -1, HL_TAYLOR);
        bundle f = evaluate(&s, op, 0), expected = value_bundle(&s, 0, 1);
        for (size_t at = 0; at < s.rows * spec.dim; at++)
            ((double *)expected.data)[at] = reference_f(&s, at / spec.dim, at % spec.dim);
        check_close(&s, &f, &expected, 1e-13, 0);
        drop_bundle(&f);
        drop_bundle(&expected);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* ---- D^k ---- */

/* Every size, kind of transformer, pair of depths and activation; time and context take turns. */
static void test_derivatives(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 5, 17, 33 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 6 * 2 * 4 * 4 * 5; n++) {
        size_t d = dims[n % 6];
        hl_net_spec spec = { .dim = d,
                             .features = 2 + n / 5 % 2 * 2,
                             .hidden = d < 5 ? 7 : d + 3,
                             .width = 5,
                             .dtype = HL_F64,
                             .transformer = transformer(n / 6 % 2),
                             .hidden_layers = depth(n / 12 % 4),
                             .layers = depth(n / 48 % 4),
                             .activation = activation(n / 192),
                             .time = n / 7 % 2,
                             .context = n / 11 % 2 * 3 };
        setup s = make(ctx, &spec, d < 17 ? 3 : 2);
        check_values(&s, 4, NESTED_REVERSE, 1e-10);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* The largest case again, deeper, by both ways of brute force. */
static void test_derivatives_large(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        hl_net_spec spec = { .dim = 33,
                             .features = 6,
                             .hidden = 40,
                             .width = 9,
                             .dtype = HL_F64,
                             .time = 1,
                             .context = 2,
                             .transformer = transformer(n),
                             .activation = activation(n * 2) };
        setup s = make(ctx, &spec, 3);
        check_values(&s, 4, NESTED_REVERSE, 1e-10);
        check_values(&s, 4, FULL_TAYLOR, 1e-10);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* elu has one derivative at 0. Without biases, x = 0 puts every unit there. */
static void test_elu_kink(void **state)
{
    static const double near[] = { 0, 1e-9, -1e-9, 1e-300, -1e-300 };
    enum { ROWS = 5, D = 3 };
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = { .dim = D, .hidden = 8, .width = 6, .dtype = HL_F64, .activation = "elu" };
    setup s = make(ctx, &spec, ROWS);
    hl_operator *op = compile(&s, 1, HL_TAYLOR);
    bundle values, up, down;
    double *x = s.x, h = 1e-7;
    (void)state;
    CHECK_OK(ctx, hl_net_init(s.net, 3));
    for (size_t i = 0; i < ROWS * D; i++)
        x[i] = near[i / D];
    check_values(&s, 1, NESTED_REVERSE, 1e-10);
    values = evaluate(&s, op, 1);
    for (size_t j = 0; j < D; j++) {
        for (size_t r = 0; r < ROWS; r++)
            x[r * D + j] = near[r] + h;
        up = evaluate(&s, op, 0);
        for (size_t r = 0; r < ROWS; r++)
            x[r * D + j] = near[r] - h;
        down = evaluate(&s, op, 0);
        for (size_t r = 0; r < ROWS; r++) {
            size_t at = r * D + j;
            CHECK_NEAR(((double *)piece(&values, 1))[at],
                       (((double *)up.data)[at] - ((double *)down.data)[at]) / (2 * h), 1e-5, "elu at its kink");
            x[at] = near[r];
        }
        drop_bundle(&up);
        drop_bundle(&down);
    }
    drop_bundle(&values);
    hl_operator_free(op);
    drop(&s);
    test_context_free(ctx, NULL);
}

/* All of the Jacobian, a row for each unit cotangent: its diagonal is D f, and the rest is what differences give, not 0. */
static void test_jacobian(void **state)
{
    enum { D = 6 };
    hl_context *ctx = test_context(NULL, 1);
    double h = 1e-5, off_diagonal = 0;
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        hl_net_spec spec = {
            .dim = D, .hidden = 12, .width = 8, .dtype = HL_F64, .time = 1, .transformer = transformer(n)
        };
        setup s = make(ctx, &spec, 4);
        hl_operator *op = compile(&s, 1, HL_TAYLOR);
        bundle values = evaluate(&s, op, 1), cotangent = value_bundle(&s, 0, 1);
        double *x = s.x, *e = cotangent.data, *jacobian = test_malloc(D * s.rows * D * sizeof *jacobian);
        for (size_t i = 0; i < D; i++) { /* jacobian[i][r][j] */
            for (size_t at = 0; at < s.rows * D; at++)
                e[at] = at % D == i;
            CHECK_OK(ctx, hl_operator_vjp(op, s.rows, x, s.t, NULL, e, NULL, NULL, jacobian + i * s.rows * D, NULL,
                                          NULL, NULL));
        }
        for (size_t r = 0; r < s.rows; r++)
            for (size_t j = 0; j < D; j++) {
                double old = x[r * D + j];
                x[r * D + j] = old + h;
                bundle up = evaluate(&s, op, 0);
                x[r * D + j] = old - h;
                bundle down = evaluate(&s, op, 0);
                x[r * D + j] = old;
                for (size_t at = 0; at < s.rows * D; at++) {
                    double difference = (((double *)up.data)[at] - ((double *)down.data)[at]) / (2 * h);
                    CHECK_NEAR(at / D == r ? jacobian[(at % D * s.rows + r) * D + j] : 0, difference, 1e-8, s.label);
                    if (at == r * D + j)
                        CHECK_NEAR(((double *)piece(&values, 1))[at], jacobian[(at % D * s.rows + r) * D + j], 1e-13,
                                   s.label);
                    else
                        off_diagonal = fmax(off_diagonal, fabs(difference));
                }
                drop_bundle(&up);
                drop_bundle(&down);
            }
        CHECK_LE(0.01, off_diagonal, s.label);
        test_free(jacobian);
        drop_bundle(&values);
        drop_bundle(&cotangent);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* ---- gradients ---- */

/* Of a random functional of f, D^1, D^2 and the divergence, to everything, against brute force. */
static void test_gradients(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 5, 17 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        hl_net_spec spec = { .dim = dims[n % 5],
                             .features = 4,
                             .hidden = 19,
                             .width = 6,
                             .dtype = HL_F64,
                             .transformer = transformer(n / 5 % 2),
                             .hidden_layers = depth(n / 10),
                             .layers = depth((n + n / 4) % 4),
                             .activation = activation((n + n / 5) % 5),
                             .time = n % 3 == 0,
                             .context = n / 2 % 2 * 2 };
        setup s = make(ctx, &spec, 5);
        hl_operator *op = compile(&s, 2, HL_TAYLOR);
        bundle cotangent = value_bundle(&s, 2, 21), expected = brute_gradient(&s, 2, &cotangent);
        bundle gradients = gradient(&s, op, 2, &cotangent);
        check_close(&s, &gradients, &expected, 1e-9, 0);
        check_masked(&s, &gradients);
        drop_bundle(&cotangent);
        drop_bundle(&expected);
        drop_bundle(&gradients);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

static double functional_value(const setup *s, hl_operator *op, const bundle *cotangent)
{
    bundle values = evaluate(s, op, 2);
    double sum = 0;
    for (size_t i = 0; i < values.total; i++)
        sum += ((double *)values.data)[i] * ((double *)cotangent->data)[i];
    drop_bundle(&values);
    return sum;
}

/* The same by central differences, every single value moved. */
static void test_gradients_differences(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    double h = 3e-5;
    (void)state;
    for (size_t n = 0; n < 4; n++) {
        hl_net_spec spec = { .dim = 3,
                             .features = 4,
                             .hidden = 6,
                             .width = 5,
                             .dtype = HL_F64,
                             .time = 1,
                             .context = 2,
                             .hidden_layers = n == 2 ? -1 : 2,
                             .transformer = transformer(n % 2),
                             .activation = activation(n == 3 ? 4 : n) };
        setup s = make(ctx, &spec, 3);
        hl_operator *op = compile(&s, 2, HL_TAYLOR);
        bundle cotangent = value_bundle(&s, 2, 22), gradients = gradient(&s, op, 2, &cotangent),
               expected = gradient_bundle(&s);
        for (size_t p = 0; p < expected.pieces; p++) {
            double *values = p == 0 ? s.x : p == 1 ? s.t : p == 2 ? s.context : param(s.net, p - 3).values;
            for (size_t i = 0; i < expected.piece[p].size; i++) {
                double old = values[i], up;
                bool masked = p >= 3 && old == 0; /* generic weights are 0 only where a mask excludes */
                values[i] = masked ? 0 : old + h;
                up = functional_value(&s, op, &cotangent);
                values[i] = masked ? 0 : old - h;
                ((double *)piece(&expected, p))[i] = (up - functional_value(&s, op, &cotangent)) / (2 * h);
                values[i] = old;
            }
        }
        check_close(&s, &gradients, &expected, 1e-6, 1e-3);
        drop_bundle(&cotangent);
        drop_bundle(&gradients);
        drop_bundle(&expected);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* ---- orders and modes ---- */

static void test_modes(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int n = 0; n < 10; n++) {
        int order = n % 4 + 1;
        hl_net_spec spec = { .dim = 4,
                             .features = 4,
                             .hidden = 9,
                             .width = 5,
                             .dtype = HL_F64,
                             .time = n % 2,
                             .context = 2,
                             .transformer = transformer(n / 2 % 2),
                             .activation = activation(n % 5),
                             .layers = 1 + n / 5 };
        setup s = make(ctx, &spec, 3);
        hl_operator *taylor = compile(&s, order, HL_TAYLOR), *reverse = compile(&s, order, HL_REVERSE);
        bundle cotangent = value_bundle(&s, order, 23), a = evaluate(&s, taylor, order),
               b = evaluate(&s, reverse, order);
        check_close(&s, &a, &b, 1e-11, 0);
        drop_bundle(&a);
        drop_bundle(&b);
        a = gradient(&s, taylor, order, &cotangent);
        b = gradient(&s, reverse, order, &cotangent);
        check_close(&s, &a, &b, 1e-11, 0);
        drop_bundle(&a);
        drop_bundle(&b);
        drop_bundle(&cotangent);
        hl_operator_free(taylor);
        hl_operator_free(reverse);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

static void test_order_six(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 2; n++) {
        hl_net_spec spec = { .dim = 2,
                             .features = 2,
                             .hidden = 4,
                             .width = 4,
                             .hidden_layers = 1,
                             .layers = 1 + (int)n,
                             .dtype = HL_F64,
                             .transformer = transformer(n) };
        setup s = make(ctx, &spec, 3);
        check_values(&s, 6, NESTED_REVERSE, 1e-8);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* What D^1 .. D^k cost beyond f grows as k^2 in Taylor mode, not as the 2^k of nesting. */
static void test_cost(void **state)
{
    static const int orders[] = { -1, 2, 4, 8, 16 };
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = { .dim = 8, .hidden = 16 };
    setup s = make(ctx, &spec, 0);
    double f = 0, before = 0;
    (void)state;
    for (int n = 0; n < 5; n++) {
        hl_operator_options options = { .order = orders[n], .no_gradient = 1 };
        hl_operator *op;
        CHECK_OK(ctx, hl_operator_create(s.net, &options, &op));
        double flops = hl_plan_describe(hl_operator_plan(op)).flops_per_row - f;
        hl_operator_free(op);
        CHECK_LE(1, flops, "flops");
        if (n == 0)
            f = flops;
        if (n > 1) {
            CHECK_LE(0.9, log2(flops / before), "exponent of the cost in the order");
            CHECK_LE(log2(flops / before), 2.3, "exponent of the cost in the order");
        }
        before = flops;
    }
    drop(&s);
    test_context_free(ctx, NULL);
}

/* ---- hollowness ---- */

static void test_hollow(void **state)
{
    static const size_t dims[] = { 1, 2, 7, 33 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 4 * 2 * 4 * 4; n++) {
        hl_net_spec spec = { .dim = dims[n % 4],
                             .features = 4 + n % 3 * 2,
                             .hidden = dims[n % 4] + n % 5,
                             .dtype = n / 4 % 2,
                             .hidden_layers = depth(n / 8 % 4),
                             .time = n / 32 % 2,
                             .context = n / 64 * 3,
                             .activation = activation((n + n / 8) % 5) };
        check_hollow(ctx, &spec, NULL);
        check_hollow(ctx, &spec, "base");
        check_hollow_overflow(ctx, &spec, NULL);
        check_hollow_overflow(ctx, &spec, "base");
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),
        cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_derivatives_large),
        cmocka_unit_test(test_elu_kink),
        cmocka_unit_test(test_jacobian),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_gradients_differences),
        cmocka_unit_test(test_modes),
        cmocka_unit_test(test_order_six),
        cmocka_unit_test(test_cost),
        cmocka_unit_test(test_hollow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
