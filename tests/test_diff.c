/* test_diff.c - the drivers of reverse and Taylor mode: what is held, what is summed over the rows, orders, errors, and
 * dimension-wise derivatives. The rules of the ops are tested in test_ops.c. */
#include "ops_support.h"

enum { ROWS = 19, N = 3 };

/* ---- holding ---- */

/* Ways to make h of x, and to use it. Among them all that a builder could be tempted to simplify: signs, constant factors,
 * reshapes, broadcasts. (Not a broadcast of x itself: x used next to it broadcasts to the same node.) */
typedef hl_node make_fn(hl_graph *g, hl_node x);
typedef hl_node use_fn(hl_graph *g, hl_node x, hl_node h);

static hl_node make_tanh(hl_graph *g, hl_node x)
{
    return hl_tanh(g, x);
}
static hl_node make_neg(hl_graph *g, hl_node x)
{
    return hl_neg(g, x);
}
static hl_node make_scale(hl_graph *g, hl_node x)
{
    return hl_scale(g, 3, x);
}
static hl_node make_neg_tanh(hl_graph *g, hl_node x)
{
    return hl_neg(g, hl_tanh(g, x));
}
static hl_node make_stretch(hl_graph *g, hl_node x)
{
    return hl_broadcast(g, hl_cos(g, x), 2, (size_t[]){ 2, N });
}
static hl_node make_reshape(hl_graph *g, hl_node x)
{
    return hl_reshape(g, x, 2, (size_t[]){ 1, N });
}
static hl_node make_add(hl_graph *g, hl_node x)
{
    return hl_add(g, x, hl_const(g, 0.5));
}
static hl_node make_gather(hl_graph *g, hl_node x)
{
    return hl_gather(g, x, 0, N, (size_t[]){ 2, 0, 0 });
}

static hl_node use_mul(hl_graph *g, hl_node x, hl_node h)
{
    return hl_mul(g, x, h);
}
static hl_node use_square(hl_graph *g, hl_node x, hl_node h)
{
    return hl_mul(g, hl_sin(g, x), hl_mul(g, h, h));
}
static hl_node use_add(hl_graph *g, hl_node x, hl_node h)
{
    return hl_exp(g, hl_add(g, x, h));
}
static hl_node use_sub(hl_graph *g, hl_node x, hl_node h)
{
    return hl_exp(g, hl_sub(g, x, h));
}
static hl_node use_double(hl_graph *g, hl_node x, hl_node h)
{
    return hl_mul(g, hl_add(g, h, h), hl_mul(g, x, x));
}
static hl_node use_neg(hl_graph *g, hl_node x, hl_node h)
{
    return hl_mul(g, hl_neg(g, h), hl_sin(g, x));
}
static hl_node use_scale(hl_graph *g, hl_node x, hl_node h)
{
    return hl_mul(g, hl_scale(g, 2, h), hl_sin(g, x));
}
static hl_node use_exp(hl_graph *g, hl_node x, hl_node h)
{
    return hl_mul(g, hl_exp(g, h), hl_sin(g, x));
}
static hl_node use_div(hl_graph *g, hl_node x, hl_node h)
{
    return hl_div(g, hl_sin(g, x), hl_add(g, h, hl_const(g, 8)));
}

static hl_node use_reshape(hl_graph *g, hl_node x, hl_node h)
{
    size_t size = hl_node_size(g, h);
    return hl_mul(g, hl_sum_all(g, hl_sin(g, x)), hl_exp(g, hl_reshape(g, h, 1, &size)));
}

static hl_node use_stretch(hl_graph *g, hl_node x, hl_node h)
{
    return hl_mul(g, hl_sin(g, x), hl_broadcast(g, h, 3, (size_t[]){ 2, 2, N }));
}

static make_fn *const makes[] = { make_tanh,    make_neg,     make_scale, make_neg_tanh,
                                  make_stretch, make_reshape, make_add,   make_gather };
static use_fn *const uses[] = { use_mul,   use_square, use_add, use_sub,     use_double, use_neg,
                                use_scale, use_exp,    use_div, use_reshape, use_stretch };
enum { MAKES = sizeof makes / sizeof *makes, USES = sizeof uses / sizeof *uses, JETS = 3 };

/* Derivatives of y = use(x, h) by x with h held, then gradients of the result: by h, and by x with and without h held. */
typedef struct held {
    hl_node x, h, y, out[JETS + 5];
} held;
enum { HELD_OUT = JETS + 4 }; /* those that must agree between the model with h made of x and the one with h a leaf */

static void differentiate(model *m, held *d, bool hold_h)
{
    hl_hold hold = { hold_h, &d->h };
    hl_node cx[JETS] = { hl_const(m->g, 1) }, both[2] = { d->x, d->h }, g1, g2[2];
    CHECK_OK(m->ctx, hl_jet(m->g, JETS, 1, &d->x, cx, &hold, 1, &d->y, d->out));
    for (int k = 0; k < JETS; k++) {
        hl_shape shape = hl_graph_node(m->g, d->y)->shape;
        d->out[k] = hl_broadcast_shape(m->g, d->out[k] == HL_NONE ? hl_const(m->g, 0) : d->out[k], &shape);
    }
    CHECK_OK(m->ctx, hl_vjp(m->g, 1, &d->y, NULL, 1, &d->x, &hold, &g1));
    CHECK_OK(m->ctx, hl_vjp(m->g, 1, &g1, NULL, 2, both, &hold, g2)); /* h held, yet asked for: its own cotangent */
    d->out[JETS] = g1;
    d->out[JETS + 1] = g2[0];
    d->out[JETS + 2] = g2[1];
    CHECK_OK(m->ctx, hl_vjp(m->g, 1, &d->y, NULL, 1, &d->h, NULL, &d->out[JETS + 3]));
    CHECK_OK(m->ctx, hl_vjp(m->g, 1, &g1, NULL, 1, &d->x, NULL, &d->out[JETS + 4])); /* through h */
}

/* A held h behaves as a leaf with the same values; and the gradient of the result, not holding it, goes through it. */
static void check_hold(hl_context *ctx, make_fn *make, use_fn *use, const char *label)
{
    model a = model_make(ctx, ROWS), b = model_make(ctx, ROWS);
    held da = { 0 }, db = { 0 };
    double *ra[HELD_OUT + 1], *rb[HELD_OUT + 1], *vh, *pulled;

    da.x = model_leaf(&a, true, SHAPE(N), 1);
    da.h = make(a.g, da.x);
    da.y = use(a.g, da.x, da.h);
    db.x = model_leaf(&b, true, SHAPE(N), 1);
    db.h = model_leaf(&b, true, &hl_graph_node(a.g, da.h)->shape, 1);
    db.y = use(b.g, db.x, db.h);
    vh = model_eval1(&a, HL_F64, da.h);
    memcpy(model_values(&b, db.h), vh, model_count(&b, db.h) * sizeof *vh);

    differentiate(&a, &da, true);
    differentiate(&b, &db, false);
    model_eval(&a, HL_F64, HELD_OUT + 1, da.out, ra);
    model_eval(&b, HL_F64, HELD_OUT + 1, db.out, rb);
    for (int i = 0; i < HELD_OUT; i++) {
        assert_int_equal(model_count(&a, da.out[i]), model_count(&b, db.out[i]));
        CHECK_LE(scaled_error(ra[i], rb[i], model_count(&a, da.out[i]), 1e-3), 1e-12, label);
    }
    /* By hand: the part by x with h fixed, plus the part by h pulled back through `make`. */
    hl_node gh = model_leaf(&a, true, &hl_graph_node(a.g, da.h)->shape, 1), back;
    memcpy(model_values(&a, gh), rb[JETS + 2], model_count(&a, gh) * sizeof(double));
    CHECK_OK(ctx, hl_vjp(a.g, 1, &da.h, &gh, 1, &da.x, NULL, &back));
    pulled = model_eval1(&a, HL_F64, back);
    for (size_t i = 0; i < ROWS * N; i++)
        pulled[i] += rb[JETS + 1][i];
    CHECK_LE(scaled_error(ra[HELD_OUT], pulled, ROWS * N, 1e-3), 1e-12, label);
    model_free(&a);
    model_free(&b);
}

static void test_hold(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char label[60];

    (void)state;
    for (int i = 0; i < MAKES; i++)
        for (int j = 0; j < USES; j++) {
            snprintf(label, sizeof label, "h made in way %d, used in way %d", i, j);
            check_hold(ctx, makes[i], uses[j], label);
        }
    hl_context_free(ctx);
}

/* The gradient of a derivative with h held, against formulas written by hand: f = sin(x) h^2, h = tanh(x). */
static void test_hold_by_hand(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, ROWS);
    hl_node x = model_leaf(&m, true, SHAPE(N), 1), h = hl_tanh(m.g, x);
    hl_node f = hl_mul(m.g, hl_sin(m.g, x), hl_mul(m.g, h, h)), d, gradient;
    double *out[2];

    (void)state;
    CHECK_OK(ctx, hl_vjp(m.g, 1, &f, NULL, 1, &x, &(hl_hold){ 1, &h }, &d));
    CHECK_OK(ctx, hl_vjp(m.g, 1, &d, NULL, 1, &x, NULL, &gradient));
    model_eval(&m, HL_F64, 2, (hl_node[]){ d, gradient }, out);
    for (size_t i = 0; i < ROWS * N; i++) {
        double v = model_values(&m, x)[i], t = tanh(v);
        CHECK_NEAR(out[0][i], cos(v) * t * t, 1e-14, "cos(x) h^2");
        CHECK_NEAR(out[1][i], -sin(v) * t * t + 2 * cos(v) * t * (1 - t * t), 1e-14, "its gradient");
    }
    model_free(&m);
    hl_context_free(ctx);
}

/* ---- reverse mode ---- */

/* A parameter's gradient is summed over the rows, in the kind and shape of the parameter, whatever the way it broadcasts. */
static void test_shared_gradient(void **state)
{
    static const hl_shape shapes[] = { { .rank = 0 },
                                       { .rank = 1, .dim = { 4 } },
                                       { .rank = 2, .dim = { 2, 1 } },
                                       { .rank = 2, .dim = { 1, 4 } },
                                       { .rank = 2, .dim = { 1, 1 } },
                                       { .rank = 2, .dim = { 2, 4 } },
                                       { .rank = 3, .dim = { 3, 2, 4 } } };
    hl_context *ctx = test_context(NULL, 1);

    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        model m = model_make(ctx, ROWS);
        hl_node x = model_leaf(&m, true, SHAPE(2, 4), 1), p = model_leaf(&m, false, &shapes[i], 3), gp;
        hl_node y = hl_mul(m.g, hl_mul(m.g, p, p), x);
        size_t size = hl_shape_size(&shapes[i]), whole = size == 24 ? 24 : 8;
        double expected[24] = { 0 };
        CHECK_OK(ctx, hl_vjp(m.g, 1, &y, NULL, 1, &p, NULL, &gp));
        assert_false(hl_node_batched(m.g, gp));
        assert_true(hl_shape_equal(&hl_graph_node(m.g, gp)->shape, &shapes[i]));
        for (size_t r = 0; r < ROWS; r++)
            for (size_t e = 0; e < whole; e++) {
                size_t at = size == 1 ? 0 : size == 2 ? e / 4 : size == 4 ? e % 4 : e;
                expected[at] += 2 * model_values(&m, p)[at] * model_values(&m, x)[r * 8 + e % 8];
            }
        CHECK_LE(scaled_error(model_eval1(&m, HL_F64, gp), expected, size, 0), 1e-13, "gradient of a parameter");
        model_free(&m);
    }
    hl_context_free(ctx);
}

/* Several y, repeated y, cotangents that are absent, small, shared or batched; x that is y; x that y does not need. */
static void test_cotangents(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, ROWS);
    hl_graph *g = m.g;
    hl_node x = model_leaf(&m, true, SHAPE(N), 1), p = model_leaf(&m, false, SHAPE(N), 3);
    hl_node w = model_leaf(&m, true, SHAPE(N), 5), s = model_leaf(&m, false, SHAPE(N), 7);
    hl_node unused = model_leaf(&m, true, SHAPE(2, 2), 1), unused_p = model_leaf(&m, false, SCALAR, 1);
    hl_node square = hl_mul(g, x, x), cube = hl_mul(g, square, x), shared = hl_exp(g, p), gx[8], zero[3];
    const double *vx = model_values(&m, x), *vw = model_values(&m, w), *vs = model_values(&m, s),
                 *vp = model_values(&m, p);
    double *out[8];

    (void)state;
    CHECK_OK(ctx, hl_vjp(g, 1, &square, NULL, 1, &x, NULL, &gx[0]));
    CHECK_OK(ctx, hl_vjp(g, 3, (hl_node[]){ square, cube, square }, (hl_node[]){ w, HL_NONE, s }, 1, &x, NULL, &gx[1]));
    CHECK_OK(ctx, hl_vjp(g, 1, &square, (hl_node[]){ hl_const(g, 3) }, 1, &x, NULL, &gx[2]));
    CHECK_OK(ctx, hl_vjp(g, 1, &square, &w, 1, &square, NULL, &gx[3])); /* x is y */
    CHECK_OK(ctx, hl_vjp(g, 1, &cube, NULL, 1, &square, NULL, &gx[4])); /* through one of its uses only */
    CHECK_OK(ctx, hl_vjp(g, 1, &shared, &w, 1, &p, NULL, &gx[5]));      /* a batched cotangent of a shared y */
    CHECK_OK(ctx, hl_vjp(g, 1, &shared, (hl_node[]){ hl_sum(g, w, 0) }, 1, &p, NULL, &gx[6])); /* and a smaller one */
    CHECK_OK(ctx, hl_vjp(g, 1, &square, NULL, 3, (hl_node[]){ unused, unused_p, x }, &(hl_hold){ 1, &x }, zero));
    model_eval(&m, HL_F64, 7, gx, out);
    for (size_t i = 0; i < ROWS * N; i++) {
        double v = vx[i];
        CHECK_NEAR(out[0][i], 2 * v, 1e-14, "ones");
        CHECK_NEAR(out[1][i], 2 * v * (vw[i] + vs[i % N]) + 3 * v * v, 1e-13, "several y");
        CHECK_NEAR(out[2][i], 6 * v, 1e-14, "a constant cotangent");
        CHECK_NEAR(out[3][i], vw[i], 0, "x is y");
        CHECK_NEAR(out[4][i], v, 0, "by an intermediate node");
    }
    for (size_t k = 0; k < N; k++) {
        double sum = 0, all = 0;
        for (size_t i = 0; i < ROWS * N; i++) {
            sum += i % N == k ? vw[i] : 0;
            all += vw[i];
        }
        CHECK_NEAR(out[5][k], sum * exp(vp[k]), 1e-12, "batched cotangent");
        CHECK_NEAR(out[6][k], all * exp(vp[k]), 1e-12, "small batched cotangent");
    }
    /* Zeros, of the kind and shape of what they belong to; x is held but also asked for, so it is not zero. */
    model_eval(&m, HL_F64, 3, zero, out);
    assert_true(hl_node_batched(g, zero[0]) && !hl_node_batched(g, zero[1]));
    assert_int_equal(hl_node_size(g, zero[0]), 4);
    assert_int_equal(hl_node_rank(g, zero[1]), 0);
    for (size_t i = 0; i < ROWS * 4; i++)
        CHECK_NEAR(out[0][i], 0, 0, "unreached");
    CHECK_NEAR(out[1][0], 0, 0, "unreached");
    CHECK_NEAR(out[2][0], 2 * vx[0], 1e-15, "held and asked for");
    model_free(&m);
    hl_context_free(ctx);
}

/* Between x and y there may be nodes whose derivative is zero, or that no cotangent reaches. */
static void test_cut_paths(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, ROWS);
    hl_graph *g = m.g;
    hl_node x = model_leaf(&m, true, SHAPE(N), 1), one = hl_const(g, 1);
    hl_node y = hl_mul(g, x, hl_add(g, hl_stop(g, hl_exp(g, x)), hl_less(g, x, hl_const(g, 0)))), gx, jv, none;
    double *out[2];

    (void)state;
    CHECK_OK(ctx, hl_vjp(g, 1, &y, NULL, 1, &x, NULL, &gx));
    CHECK_OK(ctx, hl_jet(g, 1, 1, &x, &one, NULL, 1, &y, &jv));
    CHECK_OK(ctx, hl_jet(g, 1, 1, &x, &one, &(hl_hold){ 1, &y }, 1, &y, &none));
    assert_int_equal(none, HL_NONE);
    model_eval(&m, HL_F64, 2, (hl_node[]){ gx, jv }, out);
    for (size_t i = 0; i < ROWS * N; i++) {
        double v = model_values(&m, x)[i];
        CHECK_NEAR(out[0][i], exp(v) + (v < 0), 1e-14, "reverse");
        CHECK_NEAR(out[1][i], exp(v) + (v < 0), 1e-14, "forward");
    }
    model_free(&m);
    hl_context_free(ctx);
}

/* Nothing is made for paths that lead nowhere: those cut off, and those to what is not asked for. */
static void test_no_dead_work(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_node gx;

    (void)state;
    for (int i = 0; i < 3; i++) {
        model m = model_make(ctx, 1);
        hl_graph *g = m.g;
        hl_node x = model_leaf(&m, true, SHAPE(N), 1), p = model_leaf(&m, false, SHAPE(N), 1), h = hl_exp(g, x);
        hl_node y = i == 0   ? hl_sin(g, hl_sin(g, hl_exp(g, hl_stop(g, x))))
                    : i == 1 ? hl_sin(g, hl_sin(g, hl_sin(g, h)))
                             : hl_add(g, hl_mul(g, x, p), hl_mul(g, h, p)); /* p would get x + h */
        size_t before = hl_graph_count(g);
        CHECK_OK(ctx, hl_vjp(g, 1, &y, NULL, 1, &x, &(hl_hold){ i == 1, &h }, &gx));
        if (i < 2)
            CHECK_LE((double)(hl_graph_count(g) - before), 5, "ones and a zero");
        for (size_t n = before + 1; n <= hl_graph_count(g) && i == 2; n++)
            assert_true(g->node[n].op != &hl_op_add || g->node[n].in[0] + g->node[n].in[1] != x + h);
        model_free(&m);
    }
    hl_context_free(ctx);
}

/* After a differentiation, too, the user's own nodes are not looked through. */
static void test_own_nodes(void **state)
{
    hl_context *ctx = test_context(NULL, 1);

    (void)state;
    for (int i = 0; i < 4; i++) {
        model m = model_make(ctx, 1);
        hl_graph *g = m.g;
        hl_node x = model_leaf(&m, true, SHAPE(N), 1), y = hl_exp(g, x), one = hl_const(g, 1), d[2], n;
        switch (i) {
        case 0:
            CHECK_OK(ctx, hl_vjp(g, 1, &y, NULL, 1, &x, NULL, d));
            break;
        case 1:
            CHECK_OK(ctx, hl_jet(g, 1, 1, &x, &one, NULL, 1, &y, d));
            break;
        case 2:
            CHECK_OK(ctx, hl_dim_derivatives(g, y, x, NULL, 2, HL_TAYLOR, d));
            break;
        default:
            CHECK_OK(ctx, hl_dim_derivatives(g, y, x, NULL, 2, HL_REVERSE, d));
        }
        n = hl_neg(g, x);
        assert_int_equal(hl_graph_node(g, hl_mul(g, n, y))->in[0], n);
        assert_int_equal(hl_graph_node(g, hl_neg(g, n))->in[0], n);
        model_free(&m);
    }
    hl_context_free(ctx);
}

/* ---- Taylor mode ---- */

/* The highest order, and coefficients of every order: exp(x + e) has e^x / k!. Order 0 and 64 are refused. */
static void test_orders(void **state)
{
    enum { MOST = 63 };
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, ROWS);
    hl_node x = model_leaf(&m, true, SCALAR, 1), cx[MOST + 1] = { hl_const(m.g, 1) }, cy[MOST + 1], d[MOST + 1];
    hl_node y = hl_exp(m.g, x);
    double *out[MOST], factorial = 1;

    (void)state;
    CHECK_OK(ctx, hl_jet(m.g, MOST, 1, &x, cx, NULL, 1, &y, cy));
    model_eval(&m, HL_F64, MOST, cy, out);
    for (int k = 0; k < MOST; k++) {
        factorial *= k + 1;
        for (size_t r = 0; r < ROWS; r++) {
            double expected = exp(model_values(&m, x)[r]) / factorial;
            CHECK_NEAR(out[k][r], expected, 1e-13 * expected, "exp");
        }
    }
    model_free(&m);
    for (int i = 0; i < 6; i++) {
        static const int bad[] = { 0, -1, 64, 0, -1, 64 };
        m = model_make(ctx, ROWS);
        x = model_leaf(&m, true, SCALAR, 1);
        cx[0] = hl_const(m.g, 1);
        y = hl_exp(m.g, x);
        if (i < 3)
            CHECK_STATUS(ctx, hl_jet(m.g, bad[i], 1, &x, cx, NULL, 1, &y, cy), HL_ERR_INVALID);
        else
            CHECK_STATUS(ctx, hl_dim_derivatives(m.g, y, x, NULL, bad[i], HL_TAYLOR, d), HL_ERR_INVALID);
        assert_non_null(strstr(hl_context_message(ctx), "order"));
        model_free(&m);
    }
    hl_context_free(ctx);
}

/* Seeds of smaller shape stretch; a seeded node is cut off from its own inputs; what does not move comes back as NONE. */
static void test_seeds(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, ROWS);
    hl_graph *g = m.g;
    hl_node x = model_leaf(&m, true, SHAPE(N), 1), h = hl_sin(g, x), y[2] = { hl_mul(g, h, x), hl_exp(g, x) }, cy[4];
    hl_node cx[4] = { hl_const(g, 2), HL_NONE, HL_NONE, model_leaf(&m, true, SHAPE(N), 3) };
    const double *v = model_values(&m, x), *c = model_values(&m, cx[3]);
    double *out[3];

    (void)state;
    /* x + 2 e, h + c e^2: h x has 2 h e + c x e^2. */
    CHECK_OK(ctx, hl_jet(g, 2, 2, (hl_node[]){ x, h }, cx, NULL, 1, y, cy));
    model_eval(&m, HL_F64, 2, cy, out);
    for (size_t i = 0; i < ROWS * N; i++) {
        CHECK_NEAR(out[0][i], 2 * sin(v[i]), 1e-14, "first");
        CHECK_NEAR(out[1][i], c[i] * v[i], 1e-14, "second");
    }
    /* Only h moves: exp(x) stays. */
    CHECK_OK(ctx, hl_jet(g, 2, 1, &h, cx + 2, NULL, 2, y, cy));
    assert_int_equal(cy[0], HL_NONE);
    assert_true(cy[1] > 0);
    assert_int_equal(cy[2], HL_NONE);
    assert_int_equal(cy[3], HL_NONE);
    model_free(&m);
    hl_context_free(ctx);
}

/* ---- dimension-wise derivatives ---- */

enum { TOP = 6 };

/* h = A tanh(x) with a zero diagonal; f = sin(x h) + exp(0.3 x) h: D^k f = h^k sin(x h + k pi/2) + 0.3^k exp(0.3 x) h. */
static void test_dim_derivatives(void **state)
{
    enum { D = 4 };
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, ROWS);
    hl_graph *g = m.g;
    hl_node x = model_leaf(&m, true, SHAPE(D), 0), a = model_leaf(&m, false, SHAPE(D, D), 1), h, f, d[3 * TOP], grad[2];
    double *out[3 * TOP], *va = model_values(&m, a), *vh;

    (void)state;
    for (size_t i = 0; i < D; i++)
        va[i * D + i] = 0;
    h = hl_linear(g, hl_tanh(g, x), a);
    f = hl_add(g, hl_sin(g, hl_mul(g, x, h)), hl_mul(g, hl_exp(g, hl_scale(g, 0.3, x)), h));
    CHECK_OK(ctx, hl_dim_derivatives(g, f, x, &(hl_hold){ 1, &h }, TOP, HL_TAYLOR, d));
    CHECK_OK(ctx, hl_dim_derivatives(g, f, x, &(hl_hold){ 1, &h }, TOP, HL_REVERSE, d + TOP));
    CHECK_OK(ctx, hl_dim_derivatives(g, h, x, &(hl_hold){ 1, &h }, 1, HL_TAYLOR, d + 2 * TOP)); /* zero, but a node */
    model_eval(&m, HL_F64, 2 * TOP + 1, d, out);
    vh = model_eval1(&m, HL_F64, h);
    for (int k = 1; k <= TOP; k++)
        for (size_t i = 0; i < ROWS * D; i++) {
            double v = model_values(&m, x)[i];
            double expected = pow(vh[i], k) * sin(v * vh[i] + k * acos(-1) / 2) + pow(0.3, k) * exp(0.3 * v) * vh[i];
            CHECK_NEAR(out[k - 1][i], expected, 1e-11 * (1 + fabs(pow(vh[i], k))), "Taylor");
            CHECK_NEAR(out[TOP + k - 1][i], expected, 1e-11 * (1 + fabs(pow(vh[i], k))), "reverse");
        }
    for (size_t i = 0; i < ROWS * D; i++)
        CHECK_NEAR(out[2 * TOP][i], 0, 0, "derivative of h");

    /* Gradients of both D^2 f by x and by A, through h, agree. */
    for (int which = 0; which < 2; which++) {
        hl_node both[2] = { x, a };
        double *r[2][2];
        for (int mode = 0; mode < 2; mode++) {
            CHECK_OK(ctx, hl_vjp(g, 1, &d[mode * TOP + 1], NULL, 2, both, NULL, grad));
            model_eval(&m, HL_F64, 2, grad, r[mode]);
        }
        CHECK_LE(scaled_error(r[0][which], r[1][which], model_count(&m, grad[which]), 1e-3), 1e-12, "gradient of D^2");
    }
    model_free(&m);
    hl_context_free(ctx);
}

/* Nodes that derivatives up to order k of a two-layer tau add to the graph. */
static size_t nodes_added(int order, hl_diff_mode mode)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, 1);
    hl_node x = model_leaf(&m, true, SHAPE(2), 0), h = model_leaf(&m, true, SHAPE(2), 0), d[16];
    hl_node w = model_leaf(&m, false, SHAPE(5, 2), 0), u = model_leaf(&m, false, SHAPE(1, 5), 0);
    size_t wide[2] = { 2, 1 }, flat = 2;
    hl_node parts[2] = { hl_reshape(m.g, x, 2, wide), hl_reshape(m.g, h, 2, wide) };
    hl_node in = hl_concat(m.g, 2, parts, 1), f = hl_linear(m.g, hl_tanh(m.g, hl_linear(m.g, in, w)), u);
    f = hl_reshape(m.g, f, 1, &flat);
    size_t before = hl_graph_count(m.g);
    CHECK_OK(ctx, hl_dim_derivatives(m.g, f, x, &(hl_hold){ 1, &h }, order, mode, d));
    size_t added = hl_graph_count(m.g) - before;
    model_free(&m);
    hl_context_free(ctx);
    return added;
}

/* Taylor mode's graph grows like k^2, that of nested reverse sweeps faster than any such power. */
static void test_graph_growth(void **state)
{
    size_t taylor[17] = { 0 }, reverse[8] = { 0 };

    (void)state;
    for (int k = 2; k <= 16; k++)
        taylor[k] = nodes_added(k, HL_TAYLOR);
    for (int k = 2; k <= 7; k++)
        reverse[k] = nodes_added(k, HL_REVERSE);
    for (int k = 2; k <= 8; k++) {
        CHECK_LE((double)taylor[2 * k], 4.4 * (double)taylor[k], "doubling the order");
        CHECK_LE((double)taylor[k], 8.0 * k * k + 10, "nodes of order k");
    }
    for (int k = 3; k <= 6; k++) /* the growth per order does not fall off as a power's does */
        CHECK_LE(1.5 * (double)reverse[k], (double)reverse[k + 1], "reverse");
    CHECK_LE(3.0 * (double)taylor[7], (double)reverse[7], "reverse against Taylor");
}

/* ---- errors ---- */

/* A fresh graph for each, as errors stick; the message names the function and the entry. */
static void test_errors(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_node out[4], bad = 1000, one;

    (void)state;
    for (int i = 0; i < 14; i++) {
        static const char *const words[] = { "hl_vjp: y",          "hl_vjp: x",
                                             "hl_vjp: hold",       "broadcast",
                                             "hl_jet: x 0",        "hl_jet: coefficient 0",
                                             "hl_jet: y 0",        "hl_jet: held node 0",
                                             "hl_dim_derivatives", "hl_dim_derivatives",
                                             "broadcast",          "hl_vjp: y",
                                             "broadcast",          "broadcast" };
        model m = model_make(ctx, 1);
        hl_graph *g = m.g;
        hl_node x = model_leaf(&m, true, SHAPE(3), 0), y = hl_exp(g, x), wide = model_leaf(&m, true, SHAPE(4), 0);
        hl_node negative = HL_BAD;
        hl_status status = HL_OK;
        one = hl_const(g, 1);
        switch (i) {
        case 0:
            status = hl_vjp(g, 1, &bad, NULL, 1, &x, NULL, out);
            break;
        case 1:
            status = hl_vjp(g, 1, &y, NULL, 1, &bad, NULL, out);
            break;
        case 2:
            status = hl_vjp(g, 1, &y, NULL, 1, &x, &(hl_hold){ 1, &bad }, out);
            break;
        case 3:
            status = hl_vjp(g, 1, &y, &bad, 1, &x, NULL, out);
            break;
        case 4:
            status = hl_jet(g, 1, 1, &bad, &one, NULL, 1, &y, out);
            break;
        case 5:
            status = hl_jet(g, 1, 1, &x, &bad, NULL, 1, &y, out);
            break;
        case 6:
            status = hl_jet(g, 1, 1, &x, &one, NULL, 1, &bad, out);
            break;
        case 7:
            status = hl_jet(g, 1, 1, &x, &one, &(hl_hold){ 1, &bad }, 1, &y, out);
            break;
        case 8:
            status = hl_dim_derivatives(g, y, wide, NULL, 1, HL_TAYLOR, out);
            break;
        case 9:
            status = hl_dim_derivatives(g, bad, x, NULL, 1, HL_REVERSE, out);
            break;
        case 10:
            status = hl_vjp(g, 1, &y, &wide, 1, &x, NULL, out);
            break; /* a cotangent that does not fit */
        case 11:
            status = hl_vjp(g, 1, &negative, NULL, 1, &x, NULL, out);
            break;
        case 12:
            status = hl_vjp(g, 1, &y, &negative, 1, &x, NULL, out);
            break;
        default:
            status = hl_jet(g, 1, 1, &x, &wide, NULL, 1, &y, out);
            break; /* a seed that does not fit */
        }
        CHECK(status == HL_ERR_INVALID || status == HL_ERR_SHAPE, words[i]);
        assert_int_equal(hl_graph_status(g), status);
        if (!strstr(hl_context_message(ctx), words[i]))
            fail_msg("case %d: '%s' lacks '%s'", i, hl_context_message(ctx), words[i]);
        model_free(&m);
    }
    model m = model_make(ctx, 1);
    hl_node x = model_leaf(&m, true, SHAPE(3), 0), y = hl_exp(m.g, x);
    one = hl_const(m.g, 1);
    assert_int_equal(hl_vjp(NULL, 1, &y, NULL, 1, &x, NULL, out), HL_ERR_INVALID);
    assert_int_equal(hl_vjp(m.g, 1, NULL, NULL, 1, &x, NULL, out), HL_ERR_INVALID);
    assert_int_equal(hl_vjp(m.g, 1, &y, NULL, 1, NULL, NULL, out), HL_ERR_INVALID);
    assert_int_equal(hl_vjp(m.g, 1, &y, NULL, 1, &x, NULL, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_jet(NULL, 1, 1, &x, &one, NULL, 1, &y, out), HL_ERR_INVALID);
    assert_int_equal(hl_jet(m.g, 1, 1, &x, NULL, NULL, 1, &y, out), HL_ERR_INVALID);
    assert_int_equal(hl_jet(m.g, 1, 1, &x, &one, NULL, 1, &y, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_dim_derivatives(NULL, y, x, NULL, 1, HL_TAYLOR, out), HL_ERR_INVALID);
    assert_int_equal(hl_dim_derivatives(m.g, y, x, NULL, 1, HL_TAYLOR, NULL), HL_ERR_INVALID);
    model_free(&m);
    hl_context_free(ctx);
}

/* A base below zero to the power of a constant array: no logarithm is taken. */
static void test_pow_at_rest(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_plan *plan;
    double base[2] = { -2, -2 }, c[2][2];
    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node a = hl_input(g, "a", 1, (size_t[]){ 2 }), one = hl_const(g, 1), cy[2];
    hl_node y = hl_pow(g, a, hl_const_array(g, 1, (size_t[]){ 2 }, (double[]){ 2, 3 }));
    CHECK_OK(ctx, hl_jet(g, 2, 1, &a, (hl_node[]){ one, HL_NONE }, NULL, 1, &y, cy));
    CHECK_OK(ctx, hl_plan_create(ctx, g, 2, cy, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    CHECK_OK(ctx, hl_plan_run(plan, 1, (const void *[]){ base }, NULL, (void *[]){ c[0], c[1] }));
    for (int i = 0; i < 2; i++) {
        CHECK_NEAR(c[0][i], i ? 12 : -4, 1e-14, "first");
        CHECK_NEAR(c[1][i], i ? -6 : 1, 1e-14, "second");
    }
    hl_plan_free(plan);
    hl_graph_free(g);
    test_context_free(ctx, NULL);
}

/* A set of held nodes without nodes is an error, not a crash. */
static void test_hold_null(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_hold hold = { 1, NULL };
    (void)state;
    for (int way = 0; way < 2; way++) {
        CHECK_OK(ctx, hl_graph_create(ctx, &g));
        hl_node x = hl_input(g, "x", 1, (size_t[]){ 2 }), d;
        CHECK_STATUS(ctx, hl_dim_derivatives(g, hl_tanh(g, x), x, &hold, 1, (hl_diff_mode)way, &d), HL_ERR_INVALID);
        hl_graph_free(g);
    }
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node x = hl_input(g, "x", 1, (size_t[]){ 2 }), d;
    CHECK_STATUS(ctx, hl_dim_derivatives(g, x, x, NULL, 1, (hl_diff_mode)7, &d), HL_ERR_INVALID);
    hl_graph_free(g);
    test_context_free(ctx, NULL);
}

/* Curvature propagation of y = sum exp(tanh(W x) x) + (sum of the product)^2 + x_1 / 3 - log of 2 + tanh^2 + a maximum: the mean over all
 * possible signs, one for each row, is the diagonal of the Hessian to rounding, and so are its derivatives by W. */
static void test_curvature(void **state)
{
    enum { SIGNS = 13, COUNT = 1 << SIGNS };
    static double x[2 * COUNT], noise[SIGNS * COUNT];
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_plan *plan;
    size_t size = 0, two = 2;
    double w[] = { 0.7, -1.1, 0.4, 0.9 }, sum[2], exact[2], dsum[4], dexact[4];
    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node in = hl_input(g, "x", 1, &two), signs = hl_input(g, "noise", 1, (size_t[]){ SIGNS });
    hl_node weight = hl_param(g, "w", 2, (size_t[]){ 2, 2 }), a = hl_tanh(g, hl_linear(g, in, weight));
    hl_node b = hl_mul(g, a, in), total = hl_sum(g, b, 0), first = hl_slice(g, in, 0, 0, 1);
    hl_node slope = hl_add(g, hl_const(g, 2), hl_mul(g, a, a));
    hl_node y = hl_add(g, hl_sum(g, hl_exp(g, b), 0), hl_mul(g, total, total));
    y = hl_add(g, y, hl_sum(g, hl_div(g, first, hl_const(g, 3)), 0));
    y = hl_sub(g, y, hl_sum(g, hl_log(g, slope), 0));
    y = hl_add(g, y, hl_sum(g, hl_max(g, b, in), 0)); /* straight, and here one of each */
    CHECK_OK(ctx, hl_curvature_noise(g, y, in, &size));
    assert_int_equal(size, SIGNS);
    hl_node estimate, c[2][2], mix = hl_const_array(g, 1, &two, (double[]){ 1, -0.6 });
    CHECK_OK(ctx, hl_curvature(g, y, in, signs, &estimate));
    for (size_t i = 0; i < 2; i++) {
        hl_node cx[2] = { hl_const_array(g, 1, &two, (double[]){ i == 0, i == 1 }), HL_NONE };
        CHECK_OK(ctx, hl_jet(g, 2, 1, &in, cx, NULL, 1, &y, c[i]));
    }
    hl_node parts[] = { hl_reshape(g, c[0][1], 1, (size_t[]){ 1 }), hl_reshape(g, c[1][1], 1, (size_t[]){ 1 }) };
    hl_node truth = hl_scale(g, 2, hl_concat(g, 2, parts, 0)), slopes[2], values[] = { estimate, truth };
    for (int k = 0; k < 2; k++) {
        hl_node weighted = hl_sum(g, hl_mul(g, mix, values[k]), 0);
        CHECK_OK(ctx, hl_vjp(g, 1, &weighted, NULL, 1, &weight, NULL, &slopes[k]));
    }
    hl_node out[] = { hl_sum_rows(g, estimate), hl_sum_rows(g, truth), slopes[0], slopes[1] };
    CHECK_OK(ctx, hl_plan_create(ctx, g, 4, out, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    for (size_t r = 0; r < COUNT; r++) {
        x[2 * r] = 0.8;
        x[2 * r + 1] = -0.5;
        for (size_t i = 0; i < SIGNS; i++)
            noise[r * SIGNS + i] = r >> i & 1 ? 1 : -1;
    }
    CHECK_OK(ctx, hl_plan_run(plan, COUNT, (const void *[]){ x, noise }, (const void *[]){ w },
                              (void *[]){ sum, exact, dsum, dexact }));
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(sum[i] / COUNT, exact[i] / COUNT, 1e-11, "the mean of the estimate");
    for (int i = 0; i < 4; i++)
        CHECK_NEAR(dsum[i] / COUNT, dexact[i] / COUNT, 1e-10, "the mean of its derivative");
    CHECK(fabs(exact[0]) > 0.1 * COUNT && fabs(dexact[1]) > 0.1 * COUNT, "there is curvature");
    hl_plan_free(plan);
    CHECK_STATUS(ctx, hl_curvature(g, y, in, in, &estimate), HL_ERR_SHAPE);
    hl_graph_free(g);
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    in = hl_input(g, "x", 1, &two);
    CHECK_STATUS(ctx, hl_curvature_noise(g, hl_sum(g, hl_div(g, in, hl_exp(g, in)), 0), in, &size), HL_ERR_UNSUPPORTED);
    hl_graph_free(g);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_hold_by_hand),
        cmocka_unit_test(test_shared_gradient),
        cmocka_unit_test(test_cotangents),
        cmocka_unit_test(test_cut_paths),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_dim_derivatives),
        cmocka_unit_test(test_graph_growth),
        cmocka_unit_test(test_no_dead_work),
        cmocka_unit_test(test_own_nodes),
        cmocka_unit_test(test_pow_at_rest),
        cmocka_unit_test(test_hold_null),
        cmocka_unit_test(test_curvature),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
