/* test_net.c - hollow networks: D^k and its gradients against brute force, hollowness to the last bit, and that results do
 * not depend on threads, batch, or what else is asked for.
 *
 * Brute force holds nothing. With e the i-th unit vector,
 *     s_0 = <e, f>,   s_m = <e, d s_{m-1} / dx>,   so that   s_k = d^k f_i / dx_i^k,
 * each derivative taken through the conditioner. One row of its batch is one (row, i) of the network's. */
#include "support.h"

#include <stdio.h>

#include "graph/graph.h"
#include "hollow/net.h"
#include "op/op.h"

enum { MAX_PIECES = 64, TOP = 8 /* highest order */ };

/* ---- a network with generic weights, and a batch ---- */

typedef struct setup {
    hl_context *ctx;
    hl_net *net;
    hl_net_spec spec; /* defaults filled in */
    size_t rows, params;
    void *x, *t, *context;
    char label[160];
} setup;

static void set(hl_dtype dtype, void *values, size_t at, double v)
{
    if (dtype == HL_F32)
        ((float *)values)[at] = (float)v;
    else
        ((double *)values)[at] = v;
}

static double get(hl_dtype dtype, const void *values, size_t at)
{
    return dtype == HL_F32 ? (double)((const float *)values)[at] : ((const double *)values)[at];
}

static void *normals(hl_dtype dtype, size_t count, uint64_t seed)
{
    void *values = test_malloc((count + 1) * hl_dtype_size(dtype));
    for (size_t i = 0; i < count; i++)
        set(dtype, values, i, hl_random_normal(seed, 0, i));
    return values;
}

static hl_net_param param(const setup *s, size_t i)
{
    hl_net_param p;
    CHECK_OK(s->ctx, hl_net_param_get(s->net, i, &p));
    return p;
}

/* Random weights, and biases that are not zero. */
static void randomise(const setup *s, uint64_t seed)
{
    CHECK_OK(s->ctx, hl_net_init(s->net, seed));
    for (size_t i = 0; i < s->params; i++) {
        hl_net_param p = param(s, i);
        for (size_t k = 0; strstr(p.name, ".bias") && k < p.size; k++)
            set(s->spec.dtype, p.values, k, 0.4 * hl_random_normal(seed, 1000 + i, k));
    }
}

static setup make(hl_context *ctx, const hl_net_spec *spec, size_t rows)
{
    setup s = { .ctx = ctx, .rows = rows };
    CHECK_OK(ctx, hl_net_create(ctx, spec, &s.net));
    s.spec = hl_net_describe(s.net);
    s.params = hl_net_param_count(s.net);
    randomise(&s, 7);
    s.x = normals(s.spec.dtype, rows * s.spec.dim, 11);
    s.t = s.spec.time ? normals(s.spec.dtype, rows, 12) : NULL;
    s.context = s.spec.context ? normals(s.spec.dtype, rows * s.spec.context, 13) : NULL;
    snprintf(s.label, sizeof s.label, "%s d=%zu %s conditioner %d transformer %d %s time %d context %zu, %zu rows",
             hl_dtype_name(s.spec.dtype), s.spec.dim, s.spec.transformer, s.spec.hidden_layers, s.spec.layers,
             s.spec.activation, s.spec.time, s.spec.context, rows);
    return s;
}

static void drop(setup *s)
{
    test_free(s->x);
    if (s->t)
        test_free(s->t);
    if (s->context)
        test_free(s->context);
    hl_net_free(s->net);
}

static hl_operator *compile(const setup *s, int order, hl_diff_mode mode)
{
    hl_operator *op;
    hl_operator_options options = { .order = order, .mode = mode };
    CHECK_OK(s->ctx, hl_operator_create(s->net, &options, &op));
    return op;
}

/* ---- bundles: all results of a call in one array ---- */

typedef struct bundle {
    hl_dtype dtype;
    size_t pieces, total;
    struct {
        char name[64];
        size_t at, size;
    } piece[MAX_PIECES];
    void *data;
} bundle;

static void add_piece(bundle *b, const char *name, size_t size)
{
    assert_in_range(b->pieces, 0, MAX_PIECES - 1);
    snprintf(b->piece[b->pieces].name, sizeof b->piece[0].name, "%s", name);
    b->piece[b->pieces].at = b->total;
    b->piece[b->pieces++].size = size;
    b->total += size;
}

static void *piece(const bundle *b, size_t i)
{
    return (char *)b->data + b->piece[i].at * hl_dtype_size(b->dtype);
}

/* f, D^1 .. D^order, divergence: piece k is D^k. Cotangents are laid out the same way. */
static bundle value_bundle(const setup *s, int order, uint64_t seed)
{
    bundle b = { .dtype = s->spec.dtype };
    char name[16] = "f";
    for (int k = 0; k <= order; k++) {
        add_piece(&b, name, s->rows * s->spec.dim);
        snprintf(name, sizeof name, "D^%d", k + 1);
    }
    if (order)
        add_piece(&b, "divergence", s->rows);
    b.data = normals(b.dtype, b.total, seed);
    return b;
}

/* To x, t, context, parameters: parameter i is piece 3 + i. */
static bundle gradient_bundle(const setup *s)
{
    bundle b = { .dtype = s->spec.dtype };
    add_piece(&b, "x", s->rows * s->spec.dim);
    add_piece(&b, "t", s->t ? s->rows : 0);
    add_piece(&b, "context", s->rows * s->spec.context);
    for (size_t i = 0; i < s->params; i++)
        add_piece(&b, param(s, i).name, param(s, i).size);
    b.data = normals(b.dtype, b.total, 99); /* whoever is to fill it must overwrite it */
    return b;
}

static bundle evaluate(const setup *s, hl_operator *op, int order)
{
    bundle b = value_bundle(s, order, 98);
    void *d[TOP * 4];
    for (int k = 1; k <= order; k++)
        d[k - 1] = piece(&b, (size_t)k);
    CHECK_OK(s->ctx, hl_operator_eval(op, s->rows, s->x, s->t, s->context, piece(&b, 0), order ? d : NULL,
                                      order ? piece(&b, (size_t)order + 1) : NULL));
    return b;
}

static bundle gradient(const setup *s, hl_operator *op, int order, const bundle *cotangent)
{
    bundle b = gradient_bundle(s);
    const void *gd[TOP];
    void *gparam[MAX_PIECES];
    for (int k = 1; k <= order; k++)
        gd[k - 1] = piece(cotangent, (size_t)k);
    for (size_t i = 0; i < s->params; i++)
        gparam[i] = piece(&b, 3 + i);
    CHECK_OK(s->ctx, hl_operator_vjp(op, s->rows, s->x, s->t, s->context, piece(cotangent, 0), order ? gd : NULL,
                                     order ? piece(cotangent, (size_t)order + 1) : NULL, piece(&b, 0), piece(&b, 1),
                                     piece(&b, 2), gparam));
    return b;
}

/* Largest error of a piece relative to its largest value, or to `floor` times the largest value of all pieces. */
static void check_close(const setup *s, const bundle *a, const bundle *b, double tolerance, double floor)
{
    double largest = 0;
    assert_int_equal(a->total, b->total);
    for (size_t i = 0; i < b->total; i++)
        largest = fmax(largest, fabs(get(b->dtype, b->data, i)));
    for (size_t p = 0; p < a->pieces; p++) {
        double error = 0, scale = floor * largest;
        char label[256];
        for (size_t i = a->piece[p].at; i < a->piece[p].at + a->piece[p].size; i++) {
            double expected = get(b->dtype, b->data, i), e = fabs(get(a->dtype, a->data, i) - expected);
            error = e <= error ? error : e; /* takes a NaN and keeps it */
            scale = fmax(scale, fabs(expected));
        }
        snprintf(label, sizeof label, "%s: %s", s->label, a->piece[p].name);
        CHECK_LE(error, tolerance * scale, label);
    }
}

static void check_bits(const setup *s, const bundle *a, const bundle *b, const char *what)
{
    assert_int_equal(a->total, b->total);
    for (size_t p = 0; p < a->pieces; p++)
        if (memcmp(piece(a, p), piece(b, p), a->piece[p].size * hl_dtype_size(a->dtype)) != 0)
            fail_msg("%s: %s: %s differs in its bits", s->label, what, a->piece[p].name);
}

static void drop_bundle(bundle *b)
{
    test_free(b->data);
}

/* ---- brute force ---- */

typedef enum way { NESTED_REVERSE, FULL_TAYLOR } way;

typedef struct brute {
    hl_graph *g;
    hl_node x, t, context, e, h, f, param[MAX_PIECES];
    hl_node s[TOP + 1]; /* <e, D^m f> */
    hl_node ds;         /* d s_0 / dx, a row of the Jacobian */
    size_t rows;        /* the network's rows times its dimensions */
} brute;

static brute brute_build(const setup *s, int order, way how)
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
    CHECK_OK(s->ctx, hl_net_build(s->net, b.g, b.x, b.t, b.context, 0, b.param, &b.h, &b.f));
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
        if (m == 1)
            b.ds = gx;
        b.s[m] = hl_sum(b.g, hl_mul(b.g, b.e, gx), 0);
    }
    return b;
}

/* Every row of `from` (columns wide) once for each dimension. */
static double *repeat(const setup *s, const void *from, size_t columns)
{
    size_t d = s->spec.dim;
    double *to = test_malloc((s->rows * d * columns + 1) * sizeof *to);
    for (size_t r = 0; r < s->rows * d; r++)
        memcpy(to + r * columns, (const double *)from + r / d * columns, columns * sizeof *to);
    return to;
}

/* Run outputs of the brute-force graph; inputs beyond e are scalars per row, from `more`. */
static void brute_run(const setup *s, const brute *b, size_t outputs, const hl_node *output, const double *const *more,
                      double *const *to)
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
        values[i] = param(s, i).values;
    for (size_t i = 0; i < outputs; i++)
        result[i] = to[i];
    CHECK_OK(s->ctx, hl_plan_create(s->ctx, b->g, outputs, output, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    CHECK_OK(s->ctx, hl_plan_run(plan, b->rows, input, values, result));
    hl_plan_free(plan);
    for (size_t i = 0; i < n; i++)
        test_free(own[i]);
}

/* f, D^1 .. D^order and the divergence, as hl_operator_eval gives them. */
static bundle brute_values(const setup *s, int order, way how)
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
static hl_node functional(const brute *b, size_t d, int order, const bundle *cotangent, double **weight)
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
static bundle brute_gradient(const setup *s, int order, const bundle *cotangent)
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

/* ---- D^k ---- */

static const char *const activations[] = { "tanh", "softplus", "swish", "elu", "sigmoid" };
static const char *const transformers[] = { "shared", "per-dimension" };
static const int depths[] = { -1, 1, 2, 3 };

static void check_values(const setup *s, int order, way how, double tolerance)
{
    hl_operator *op = compile(s, order, HL_TAYLOR);
    bundle values = evaluate(s, op, order), expected = brute_values(s, order, how);
    check_close(s, &values, &expected, tolerance, 0);
    drop_bundle(&values);
    drop_bundle(&expected);
    hl_operator_free(op);
}

/* Every size, kind of transformer, pair of depths and activation; time and context take turns. */
static void test_derivatives(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 5, 17, 33 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 6 * 2 * 4 * 4 * 5; n++) {
        size_t d = dims[n % 6];
        hl_net_spec spec = { .dim = d, .features = 2 + n / 5 % 2 * 2, .hidden = d < 5 ? 7 : d + 3, .width = 5, .dtype = HL_F64,
                             .transformer = transformers[n / 6 % 2], .hidden_layers = depths[n / 12 % 4],
                             .layers = depths[n / 48 % 4], .activation = activations[n / 192],
                             .time = n / 7 % 2, .context = n / 11 % 2 * 3 };
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
        hl_net_spec spec = { .dim = 33, .features = 6, .hidden = 40, .width = 9, .dtype = HL_F64, .time = 1, .context = 2,
                             .transformer = transformers[n], .activation = activations[n * 2] };
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
            CHECK_NEAR(((double *)piece(&values, 1))[at], (((double *)up.data)[at] - ((double *)down.data)[at]) / (2 * h), 1e-5,
                       "elu at its kink");
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
        hl_net_spec spec = { .dim = D, .hidden = 12, .width = 8, .dtype = HL_F64, .time = 1, .transformer = transformers[n] };
        setup s = make(ctx, &spec, 4);
        hl_operator *op = compile(&s, 1, HL_TAYLOR);
        bundle values = evaluate(&s, op, 1), cotangent = value_bundle(&s, 0, 1);
        double *x = s.x, *e = cotangent.data, *jacobian = test_malloc(D * s.rows * D * sizeof *jacobian);
        for (size_t i = 0; i < D; i++) { /* jacobian[i][r][j] */
            for (size_t at = 0; at < s.rows * D; at++)
                e[at] = at % D == i;
            CHECK_OK(ctx, hl_operator_vjp(op, s.rows, x, s.t, NULL, e, NULL, NULL, jacobian + i * s.rows * D, NULL, NULL, NULL));
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
                        CHECK_NEAR(((double *)piece(&values, 1))[at], jacobian[(at % D * s.rows + r) * D + j], 1e-13, s.label);
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

/* A gradient is exactly 0 where the mask excludes, so that updates by it keep the network hollow. */
static void check_masked(setup *s, const bundle *gradients)
{
    for (size_t i = 0; i < s->params; i++) {
        hl_net_param p = param(s, i);
        for (size_t k = 0; k < p.size; k++)
            set(s->spec.dtype, p.values, k, get(s->spec.dtype, p.values, k) + get(s->spec.dtype, piece(gradients, 3 + i), k));
    }
    CHECK_OK(s->ctx, hl_net_check(s->net));
    randomise(s, 7);
}

/* Of a random functional of f, D^1, D^2 and the divergence, to everything, against brute force. */
static void test_gradients(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 5, 17 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 40; n++) {
        hl_net_spec spec = { .dim = dims[n % 5], .features = 4, .hidden = 19, .width = 6, .dtype = HL_F64,
                             .transformer = transformers[n / 5 % 2], .hidden_layers = depths[n / 10],
                             .layers = depths[(n + n / 4) % 4], .activation = activations[(n + n / 5) % 5],
                             .time = n % 3 == 0, .context = n / 2 % 2 * 2 };
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
        hl_net_spec spec = { .dim = 3, .features = 4, .hidden = 6, .width = 5, .dtype = HL_F64, .time = 1, .context = 2,
                             .hidden_layers = n == 2 ? -1 : 2, .transformer = transformers[n % 2],
                             .activation = activations[n == 3 ? 4 : n] };
        setup s = make(ctx, &spec, 3);
        hl_operator *op = compile(&s, 2, HL_TAYLOR);
        bundle cotangent = value_bundle(&s, 2, 22), gradients = gradient(&s, op, 2, &cotangent), expected = gradient_bundle(&s);
        for (size_t p = 0; p < expected.pieces; p++) {
            double *values = p == 0 ? s.x : p == 1 ? s.t : p == 2 ? s.context : param(&s, p - 3).values;
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
        hl_net_spec spec = { .dim = 4, .features = 4, .hidden = 9, .width = 5, .dtype = HL_F64, .time = n % 2, .context = 2,
                             .transformer = transformers[n / 2 % 2], .activation = activations[n % 5], .layers = 1 + n / 5 };
        setup s = make(ctx, &spec, 3);
        hl_operator *taylor = compile(&s, order, HL_TAYLOR), *reverse = compile(&s, order, HL_REVERSE);
        bundle cotangent = value_bundle(&s, order, 23), a = evaluate(&s, taylor, order), b = evaluate(&s, reverse, order);
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
        hl_net_spec spec = { .dim = 2, .features = 2, .hidden = 4, .width = 4, .hidden_layers = 1, .layers = 1 + (int)n,
                             .dtype = HL_F64, .transformer = transformers[n] };
        setup s = make(ctx, &spec, 3);
        check_values(&s, 6, NESTED_REVERSE, 1e-8);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* Taylor mode costs O(k^2), not the 2^k of nesting. */
static void test_cost(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = { .dim = 8 };
    hl_net *net;
    hl_operator *op;
    double flops[4];
    (void)state;
    CHECK_OK(ctx, hl_net_create(ctx, &spec, &net));
    for (int n = 0; n < 4; n++) {
        hl_operator_options options = { .order = 2 << n, .no_gradient = 1 };
        CHECK_OK(ctx, hl_operator_create(net, &options, &op));
        flops[n] = hl_plan_describe(hl_operator_plan(op)).flops_per_row;
        hl_operator_free(op);
        if (n > 0) {
            CHECK_LE(flops[n - 1], flops[n], "flops");
            CHECK_LE(log2(flops[n] / flops[n - 1]), 2.3, "exponent of the cost in the order");
        }
    }
    hl_net_free(net);
    test_context_free(ctx, NULL);
}

/* ---- hollowness ---- */

/* h of every row, [rows][dim][features]. */
static void *conditioner_values(const setup *s)
{
    hl_graph *g;
    hl_plan *plan;
    hl_node node[MAX_PIECES], h, f;
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
    CHECK_OK(s->ctx, hl_net_build(s->net, g, x, t, context, 0, node, &h, &f));
    CHECK_OK(s->ctx, hl_plan_create(s->ctx, g, 1, &h, &(hl_plan_options){ .dtype = s->spec.dtype }, &plan));
    for (size_t i = 0; i < s->params; i++)
        values[i] = param(s, i).values;
    CHECK_OK(s->ctx, hl_plan_run(plan, s->rows, input, values, &result));
    hl_plan_free(plan);
    hl_graph_free(g);
    return result;
}

/* Row 0 is a plain row, the others have one x_i replaced: h_i keeps its bits, and every other h_j changes. */
static void check_hollow(hl_context *ctx, const hl_net_spec *spec)
{
    static const double values[] = { 1e30, -1e30, 1e-30 };
    size_t d = spec->dim, rows = 1 + 3 * d;
    setup s = make(ctx, spec, rows);
    size_t element = hl_dtype_size(s.spec.dtype), block = s.spec.features * element;
    for (size_t r = 1; r < rows; r++) {
        memcpy((char *)s.x + r * d * element, s.x, d * element);
        set(s.spec.dtype, s.x, r * d + (r - 1) / 3, values[(r - 1) % 3]);
        if (s.t)
            memcpy((char *)s.t + r * element, s.t, element);
        if (s.context)
            memcpy((char *)s.context + r * s.spec.context * element, s.context, s.spec.context * element);
    }
    char *h = conditioner_values(&s);
    for (size_t i = 0; i < rows * d * s.spec.features; i++)
        CHECK(isfinite(get(s.spec.dtype, h, i)), s.label);
    for (size_t r = 1; r < rows; r++)
        for (size_t j = 0; j < d; j++) {
            bool same = memcmp(h + (r * d + j) * block, h + j * block, block) == 0;
            bool small = values[(r - 1) % 3] == 1e-30; /* too little for some h_j to see it */
            if (same != (j == (r - 1) / 3) && !(same && small))
                fail_msg("%s: x_%zu = %g %s h_%zu", s.label, (r - 1) / 3, values[(r - 1) % 3],
                         same ? "does not change" : "changes", j);
        }
    test_free(h);
    drop(&s);
}

static void test_hollow(void **state)
{
    static const size_t dims[] = { 1, 2, 7, 33 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 4 * 2 * 4 * 4; n++) {
        hl_net_spec spec = { .dim = dims[n % 4], .features = 4 + n % 3 * 2, .hidden = dims[n % 4] + n % 5, .dtype = n / 4 % 2,
                             .hidden_layers = depths[n / 8 % 4], .time = n / 32 % 2, .context = n / 64 * 3,
                             .activation = activations[(n + n / 8) % 5] };
        check_hollow(ctx, &spec);
    }
    test_context_free(ctx, NULL);
}

/* ---- precision, threads, batches ---- */

static hl_net_spec usual(hl_dtype dtype, size_t n)
{
    return (hl_net_spec){ .dim = 5, .features = 6, .hidden = 21, .width = 11, .dtype = dtype, .time = 1, .context = 2,
                          .transformer = transformers[n % 2], .activation = activations[n % 3] };
}

/* float32 against float64 with the same weights and rows. */
static void test_precision(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 6; n++) {
        hl_net_spec single = usual(HL_F32, n), twice = usual(HL_F64, n);
        setup a = make(ctx, &single, 37), b = make(ctx, &twice, 37);
        hl_operator *op = compile(&a, 2, HL_TAYLOR), *exact = compile(&b, 2, HL_TAYLOR);
        bundle ca = value_bundle(&a, 2, 24), cb = value_bundle(&b, 2, 24);
        for (size_t i = 0; i < a.params; i++)
            for (size_t k = 0; k < param(&a, i).size; k++) {
                CHECK_NEAR(get(HL_F32, param(&a, i).values, k), get(HL_F64, param(&b, i).values, k), 1e-6, "same seed");
                set(HL_F64, param(&b, i).values, k, get(HL_F32, param(&a, i).values, k));
            }
        bundle va = evaluate(&a, op, 2), vb = evaluate(&b, exact, 2);
        bundle ga = gradient(&a, op, 2, &ca), gb = gradient(&b, exact, 2, &cb);
        check_close(&a, &va, &vb, 2e-5, 0);
        check_close(&a, &ga, &gb, 1e-4, 0);
        bundle *all[] = { &ca, &cb, &va, &vb, &ga, &gb };
        for (size_t i = 0; i < 6; i++)
            drop_bundle(all[i]);
        hl_operator_free(op);
        hl_operator_free(exact);
        drop(&a);
        drop(&b);
    }
    test_context_free(ctx, NULL);
}

/* Values and gradients have the same bits for any number of threads. */
static void test_threads(void **state)
{
    static const size_t rows[] = { 1, 16, 17, 150, 2500 };
    (void)state;
    for (size_t n = 0; n < 20; n++) {
        hl_net_spec spec = usual(n / 10 ? HL_F64 : HL_F32, n / 5);
        bundle values[3], gradients[3];
        setup s[3];
        for (int k = 0; k < 3; k++) {
            hl_context *ctx = test_context(NULL, k + 1);
            s[k] = make(ctx, &spec, rows[n % 5]);
            hl_operator *op = compile(&s[k], 2, HL_TAYLOR);
            bundle cotangent = value_bundle(&s[k], 2, 25);
            values[k] = evaluate(&s[k], op, 2);
            gradients[k] = gradient(&s[k], op, 2, &cotangent);
            drop_bundle(&cotangent);
            hl_operator_free(op);
        }
        for (int k = 1; k < 3; k++) {
            check_bits(&s[0], &values[k], &values[0], "values with more threads");
            check_bits(&s[0], &gradients[k], &gradients[0], "gradients with more threads");
        }
        for (int k = 0; k < 3; k++) {
            drop_bundle(&values[k]);
            drop_bundle(&gradients[k]);
            drop(&s[k]);
            test_context_free(s[k].ctx, NULL);
        }
    }
}

/* The rows first .. first + count - 1 of a setup. */
static setup some_rows(const setup *s, size_t first, size_t count)
{
    size_t element = hl_dtype_size(s->spec.dtype);
    setup part = *s;
    part.rows = count;
    part.x = (char *)s->x + first * s->spec.dim * element;
    part.t = (char *)s->t + first * element;
    part.context = (char *)s->context + first * s->spec.context * element;
    return part;
}

/* The rows first .. first + count - 1 of the batched pieces of a bundle of `rows` rows, against a bundle of just those. */
static void check_rows(const setup *s, const bundle *whole, size_t rows, size_t first, const bundle *part, size_t count,
                       size_t pieces)
{
    for (size_t p = 0; p < pieces; p++) {
        size_t row = whole->piece[p].size / rows * hl_dtype_size(whole->dtype);
        if (memcmp((char *)piece(whole, p) + first * row, piece(part, p), count * row) != 0)
            fail_msg("%s: %s of rows %zu..%zu of %zu differs", s->label, whole->piece[p].name, first, first + count - 1, rows);
    }
}

/* A row gives the same bits alone, in any batch and at any place. */
static void test_rows(void **state)
{
    enum { ROWS = 300 };
    static const size_t cut[][2] = { { 0, 1 }, { 1, 1 }, { 17, 1 }, { 299, 1 }, { 5, 16 }, { 3, 33 }, { 100, 200 } };
    hl_context *ctx = test_context(NULL, 2);
    (void)state;
    for (size_t n = 0; n < 4; n++) {
        hl_net_spec spec = usual(n / 2 ? HL_F64 : HL_F32, n);
        setup s = make(ctx, &spec, ROWS);
        hl_operator *op = compile(&s, 2, HL_TAYLOR);
        bundle cotangent = value_bundle(&s, 2, 26), values = evaluate(&s, op, 2), gradients = gradient(&s, op, 2, &cotangent);
        for (size_t c = 0; c < sizeof cut / sizeof *cut; c++) {
            size_t first = cut[c][0], count = cut[c][1], element = hl_dtype_size(s.spec.dtype);
            setup part = some_rows(&s, first, count);
            bundle own = value_bundle(&part, 2, 1);
            for (size_t p = 0; p < own.pieces; p++) {
                size_t row = own.piece[p].size / count * element;
                memcpy(piece(&own, p), (char *)piece(&cotangent, p) + first * row, count * row);
            }
            bundle v = evaluate(&part, op, 2), g = gradient(&part, op, 2, &own);
            check_rows(&s, &values, ROWS, first, &v, count, v.pieces);
            check_rows(&s, &gradients, ROWS, first, &g, count, 3);
            drop_bundle(&own);
            drop_bundle(&v);
            drop_bundle(&g);
        }
        drop_bundle(&cotangent);
        drop_bundle(&values);
        drop_bundle(&gradients);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* ---- calls ---- */

static void test_no_allocation(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 2);
    hl_net_spec spec = usual(HL_F32, 0);
    setup s = make(ctx, &spec, 200);
    hl_operator *op = compile(&s, 2, HL_TAYLOR);
    bundle cotangent = value_bundle(&s, 2, 27), values, gradients;
    long calls = allocator.calls;
    (void)state;
    values = evaluate(&s, op, 2);
    gradients = gradient(&s, op, 2, &cotangent);
    assert_int_equal(allocator.calls, calls);
    drop_bundle(&cotangent);
    drop_bundle(&values);
    drop_bundle(&gradients);
    hl_operator_free(op);
    drop(&s);
    test_context_free(ctx, &allocator);
}

/* NULL cotangents count as zero, NULL results are skipped, and what remains keeps its bits. */
static void test_null_arguments(void **state)
{
    enum { ORDER = 2 };
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = usual(HL_F64, 1);
    setup s = make(ctx, &spec, 23);
    hl_operator *op = compile(&s, ORDER, HL_TAYLOR);
    bundle values = evaluate(&s, op, ORDER), v = value_bundle(&s, ORDER, 1), g = gradient_bundle(&s);
    (void)state;
    for (unsigned wanted = 0; wanted < 16; wanted++) { /* bit p: piece p of the values */
        void *to[4];
        for (size_t p = 0; p < 4; p++)
            to[p] = wanted >> p & 1 ? memset(piece(&v, p), 0xA5, v.piece[p].size * 8) : NULL;
        CHECK_OK(ctx, hl_operator_eval(op, s.rows, s.x, s.t, s.context, to[0], wanted & 6 ? to + 1 : NULL, to[3]));
        for (size_t p = 0; p < 4; p++)
            if (to[p] && wanted > 1)
                assert_memory_equal(to[p], piece(&values, p), v.piece[p].size * 8);
            else if (to[p]) /* f alone has a plan of its own */
                CHECK_LE(relative_error_f64(to[p], piece(&values, p), v.piece[p].size), 1e-14, "f alone");
    }
    for (unsigned given = 0; given < 16; given++) { /* bit p: cotangent p */
        bundle zeroed = value_bundle(&s, ORDER, 28), full;
        const void *from[4];
        void *to[MAX_PIECES];
        for (size_t p = 0; p < 4; p++) {
            from[p] = given >> p & 1 ? piece(&zeroed, p) : NULL;
            if (!from[p])
                memset(piece(&zeroed, p), 0, zeroed.piece[p].size * 8);
        }
        full = gradient(&s, op, ORDER, &zeroed);
        for (size_t p = 0; p < g.pieces; p++) /* results: all but each third, or none of the parameters */
            to[p] = (p + given) % 3 || !given ? memset(piece(&g, p), 0xA5, g.piece[p].size * 8) : NULL;
        CHECK_OK(ctx, hl_operator_vjp(op, s.rows, s.x, s.t, s.context, from[0], given & 6 ? from + 1 : NULL, from[3], to[0],
                                      to[1], to[2], given % 4 == 3 ? NULL : to + 3));
        for (size_t p = 0; p < (given % 4 == 3 ? 3 : g.pieces); p++)
            if (to[p])
                assert_memory_equal(to[p], piece(&full, p), g.piece[p].size * 8);
        drop_bundle(&zeroed);
        drop_bundle(&full);
    }
    drop_bundle(&values);
    drop_bundle(&v);
    drop_bundle(&g);
    hl_operator_free(op);
    drop(&s);
    test_context_free(ctx, NULL);
}

/* No rows: sums over rows are 0, nothing else is written. */
static void test_no_rows(void **state)
{
    hl_context *ctx = test_context(NULL, 2);
    hl_net_spec spec = usual(HL_F32, 0);
    setup s = make(ctx, &spec, 0);
    hl_operator *op = compile(&s, 1, HL_TAYLOR);
    bundle cotangent = value_bundle(&s, 1, 29), g = gradient(&s, op, 1, &cotangent);
    (void)state;
    for (size_t i = 0; i < g.total; i++)
        assert_true(get(g.dtype, g.data, i) == 0);
    CHECK_OK(ctx, hl_operator_eval(op, 0, NULL, NULL, NULL, NULL, NULL, NULL));
    drop_bundle(&cotangent);
    drop_bundle(&g);
    hl_operator_free(op);
    drop(&s);
    test_context_free(ctx, NULL);
}

/* Two networks in one graph that share their parameters: gradients add up. */
static void test_reuse(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = { .dim = 3, .hidden = 8, .width = 5, .dtype = HL_F64 };
    setup s = make(ctx, &spec, 6), twice = s;
    hl_graph *g;
    hl_plan *plan;
    hl_node node[MAX_PIECES], h, f[2], gx[MAX_PIECES];
    const void *values[MAX_PIECES], *input[2] = { s.x, (double *)s.x + 9 };
    void *to[MAX_PIECES];
    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    for (int i = 0; i < 2; i++)
        CHECK_OK(ctx, hl_net_build(s.net, g, hl_input(g, "x", 1, &spec.dim), HL_NONE, HL_NONE, i, node, &h, &f[i]));
    assert_int_equal(hl_graph_params(g), s.params);
    CHECK_OK(ctx, hl_graph_verify(g));
    CHECK_OK(ctx, hl_vjp(g, 2, f, NULL, s.params, node, NULL, gx));
    CHECK_OK(ctx, hl_plan_create(ctx, g, s.params, gx, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    bundle both = gradient_bundle(&s), cotangent = value_bundle(&s, 0, 1), expected;
    for (size_t i = 0; i < cotangent.total; i++)
        ((double *)cotangent.data)[i] = 1;
    for (size_t i = 0; i < s.params; i++) {
        values[i] = param(&s, i).values;
        to[i] = piece(&both, 3 + i);
    }
    CHECK_OK(ctx, hl_plan_run(plan, 3, input, values, to));
    hl_operator *op = compile(&twice, -1, HL_TAYLOR);
    expected = gradient(&twice, op, 0, &cotangent);
    memcpy(piece(&both, 0), piece(&expected, 0), both.piece[0].size * sizeof(double));
    check_close(&s, &both, &expected, 1e-13, 0);
    hl_operator_free(op);
    drop_bundle(&both);
    drop_bundle(&cotangent);
    drop_bundle(&expected);
    hl_plan_free(plan);
    hl_graph_free(g);
    drop(&s);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test(test_precision),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_null_arguments),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_reuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
