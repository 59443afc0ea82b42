/* test_ops.c - every row of the op table: values, forward and reverse derivatives, Taylor coefficients, second
 * derivatives.
 *
 * A case (ops_cases.h) is an op with attributes and shapes, and its value written naively in double. Each is run with its
 * inputs batched and shared in all ways it allows, and with all inputs made of sums over rows (so that it runs after the
 * batch). 37 rows: the last panel is partial. Checks:
 *   value     against the naive one
 *   jvp       (hl_jet of order 1) against differences of the naive value
 *   adjoint   <w, J v> = <J' w, v> with signed random w and v
 *   jet       order 5 against jvps nested five deep along the curve x + v1 e + v2 e^2 + ...
 *   second    vjp of the vjp against differences of the vjp, and its w part against J u
 * in double; in single precision the results are compared with those in double. */
#include "ops_cases.h"

enum { ORDER = 5, ROWS = 37 };

/* ---- one case in one setting ---- */

/* What moves in the Taylor test: all inputs at all orders, with coefficients of their inputs' kind or shared by all rows;
 * or one input alone, at orders 1 and 3. */
enum { SEED_ALL, SEED_SHARED, SEED_ONE };

typedef struct setting {
    const op_case *c;
    unsigned shared; /* bits of the inputs that are parameters */
    bool means;      /* inputs are means over the rows of batched leaves */
    char label[120];
    model m;
    hl_node leaf[MAX_IN], x[MAX_IN], y; /* x: what the op sees, the leaves or their means */
} setting;

/* Values spread over cells of the domain, no two of a row in one cell and different inputs at different places of a cell:
 * minima, maxima and signs are never near a tie. Zero, in a symmetric domain, is an edge between cells. */
static void fill_leaf(setting *s, int i, double low, double high)
{
    const op_case *c = s->c;
    double *v = model_values(&s->m, s->leaf[i]);
    size_t n = hl_shape_size(&c->in[i]), cells = n < 16 ? 16 : n + n % 2, order[700];
    assert_true(cells <= 700);
    for (size_t r = 0; r < model_count(&s->m, s->leaf[i]) / n; r++) {
        size_t draw = s->means ? 0 : r; /* means: the same cells in all rows, or the means would meet */
        for (size_t k = 0; k < cells; k++)
            order[k] = k;
        for (size_t k = 0; k < n; k++) {
            size_t at = k + hl_random_bits(77 + (uint64_t)i, 2, draw * cells + k) % (cells - k), cell = order[at];
            double jitter = 0.1 * (hl_random_uniform(78 + (uint64_t)i, 3, r * n + k) - 0.5);
            order[at] = order[k];
            v[r * n + k] = (float)(low + (high - low) * ((double)cell + 0.25 * (i + 1) + jitter) / (double)cells);
            if (c->signs && hl_random_bits(79 + (uint64_t)i, 4, draw * n + k) & 1)
                v[r * n + k] *= -1;
            if (c->trusted && i == 1 && !inside(c, k / MASK_IN, k % MASK_IN))
                v[r * n + k] = 0;
        }
    }
}

static hl_node mean_rows(hl_graph *g, hl_node x)
{
    return hl_sum_rows(g, hl_scale(g, 1.0 / ROWS, x));
}

static void set_up(setting *s, hl_context *ctx)
{
    const op_case *c = s->c;
    double low = c->low, high = c->high;
    s->m = model_make(ctx, ROWS);
    if (low == 0 && high == 0) {
        low = c->op->domain[0];
        high = c->op->domain[1];
    }
    if (low == high) { /* leaves have no domain */
        low = -2;
        high = 2;
    }
    for (int i = 0; i < c->inputs; i++) {
        s->leaf[i] = model_leaf(&s->m, !(s->shared >> i & 1), &c->in[i], 0);
        fill_leaf(s, i, low, high);
        s->x[i] = s->means ? mean_rows(s->m.g, s->leaf[i]) : s->leaf[i];
    }
    s->y = c->build(s->m.g, c, s->x);
    CHECK_OK(ctx, hl_graph_status(s->m.g));
    CHECK(s->y > 0, s->label);
    snprintf(s->label, sizeof s->label, "%s, case %d, shared %x%s", c->label, (int)(c - all_cases), s->shared,
             s->means ? ", of means" : "");
}

/* The naive value at x + t v; v NULL for none. */
static double *naive_value(setting *s, double t, double *const *v)
{
    const op_case *c = s->c;
    size_t size = hl_node_size(s->m.g, s->y), rows = 1;
    bool batched = hl_node_batched(s->m.g, s->y);
    double *y = model_alloc(&s->m, model_count(&s->m, s->y) * sizeof *y), *at[MAX_IN];
    for (int i = 0; i < c->inputs; i++) {
        size_t n = hl_shape_size(&c->in[i]), count = model_count(&s->m, s->leaf[i]);
        const double *leaf = model_values(&s->m, s->leaf[i]);
        at[i] = model_alloc(&s->m, count * sizeof **at);
        for (size_t k = 0; k < count; k++) {
            double value = leaf[k] + (v ? t * v[i][s->means ? k % n : k] : 0);
            if (s->means)
                at[i][k % n] += value / ROWS;
            else
                at[i][k] = value;
        }
        if (!s->means && !(s->shared >> i & 1))
            rows = ROWS;
    }
    for (size_t r = 0; r < rows; r++) {
        const double *x[MAX_IN];
        for (int i = 0; i < c->inputs; i++)
            x[i] = at[i] + (s->means || s->shared >> i & 1 ? 0 : r * hl_shape_size(&c->in[i]));
        c->value(c, x, y + (batched ? r * size : 0));
    }
    return y;
}

/* Central differences of fourth order from values at h, -h, 2 h, -2 h. */
static const double step_size = 5e-4, steps[4] = { 1, -1, 2, -2 };

static double difference(double p1, double m1, double p2, double m2)
{
    return (8 * (p1 - m1) - (p2 - m2)) / (12 * step_size);
}

static hl_node leaf_like(setting *s, hl_node n, uint64_t seed)
{
    return model_leaf(&s->m, hl_node_batched(s->m.g, n), &hl_graph_node(s->m.g, n)->shape, seed);
}

/* A coefficient as a node of y's shape and kind. */
static hl_node whole(setting *s, hl_node coefficient)
{
    hl_shape shape = hl_graph_node(s->m.g, s->y)->shape;
    return hl_broadcast_shape(s->m.g, coefficient == HL_NONE ? hl_const(s->m.g, 0) : coefficient, &shape);
}

static double dot(const double *a, const double *b, size_t count, double *scale)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
        *scale += fabs(a[i] * b[i]);
    }
    return sum;
}

/* Derivatives of y along v and u, and back from w; the second derivatives are those of <u, J' w>. */
enum {
    OUT_Y,
    OUT_JV,
    OUT_JU,
    OUT_HW,
    OUT_GX,
    OUT_JVI = OUT_GX + MAX_IN,
    OUT_H = OUT_JVI + MAX_IN,
    OUTS = OUT_H + MAX_IN
};

typedef struct derivatives {
    hl_node v[MAX_IN], u[MAX_IN], w, out[OUTS]; /* JVI + i: along v of input i alone */
    double *vv[MAX_IN], *r64[OUTS], *r32[OUTS];
    hl_plan *plan; /* in double */
} derivatives;

static void derive(setting *s, derivatives *d)
{
    hl_graph *g = s->m.g;
    size_t nx = (size_t)s->c->inputs;
    hl_node jv, ju, gx[MAX_IN], to[MAX_IN + 1], h[MAX_IN + 1];
    for (size_t i = 0; i < nx; i++) {
        d->v[i] = leaf_like(s, s->x[i], 101 + 2 * i);
        d->u[i] = leaf_like(s, s->x[i], 201 + 2 * i);
        d->vv[i] = model_values(&s->m, d->v[i]);
    }
    d->w = leaf_like(s, s->y, 301);
    CHECK_OK(s->m.ctx, hl_jet(g, 1, nx, s->x, d->v, NULL, 1, &s->y, &jv));
    CHECK_OK(s->m.ctx, hl_jet(g, 1, nx, s->x, d->u, NULL, 1, &s->y, &ju));
    CHECK_OK(s->m.ctx, hl_vjp(g, 1, &s->y, &d->w, nx, s->x, NULL, gx));
    memcpy(to, s->x, sizeof s->x);
    to[nx] = d->w;
    CHECK_OK(s->m.ctx, hl_vjp(g, nx, gx, d->u, nx + 1, to, NULL, h));
    if (s->c->zero)
        CHECK(jv == HL_NONE, s->label);
    d->out[OUT_Y] = s->y;
    d->out[OUT_JV] = whole(s, jv);
    d->out[OUT_JU] = whole(s, ju);
    d->out[OUT_HW] = h[nx];
    for (size_t i = 0; i < MAX_IN; i++) {
        hl_node alone[MAX_IN] = { HL_NONE }, ji;
        size_t at = i < nx ? i : 0;
        alone[at] = d->v[at];
        CHECK_OK(s->m.ctx, hl_jet(g, 1, nx, s->x, alone, NULL, 1, &s->y, &ji));
        d->out[OUT_JVI + i] = whole(s, ji);
        d->out[OUT_GX + i] = gx[at];
        d->out[OUT_H + i] = h[at];
        CHECK(hl_node_batched(g, gx[at]) == hl_node_batched(g, s->x[at]), s->label);
        CHECK(hl_shape_equal(&hl_graph_node(g, gx[at])->shape, &s->c->in[at]), s->label);
    }
    d->plan = model_plan(&s->m, HL_F64, OUTS, d->out);
    model_run(&s->m, d->plan, OUTS, d->out, d->r64);
    model_eval(&s->m, HL_F32, OUTS, d->out, d->r32);
}

/* The value against the naive one, the derivative along v against its differences. */
static void check_forward(setting *s, const derivatives *d)
{
    size_t count = model_count(&s->m, s->y);
    double *naive[4];
    CHECK_LE(scaled_error(d->r64[OUT_Y], naive_value(s, 0, NULL), count, 1e-3), 1e-13, s->label);
    CHECK_LE(scaled_error(d->r32[OUT_Y], d->r64[OUT_Y], count, 1e-3), 5e-6, s->label);
    for (int k = 0; k < 4; k++)
        naive[k] = naive_value(s, steps[k] * step_size, d->vv);
    for (size_t i = 0; i < count; i++)
        naive[0][i] = s->c->zero ? 0 : difference(naive[0][i], naive[1][i], naive[2][i], naive[3][i]);
    CHECK_LE(scaled_error(d->r64[OUT_JV], naive[0], count, 1e-3), 1e-7, s->label);
    CHECK_LE(scaled_error(d->r32[OUT_JV], d->r64[OUT_JV], count, 1e-3), 5e-5, s->label);
}

/* <w, J v> = <J' w, v>, for all inputs together and for each. */
static void check_adjoint(setting *s, const derivatives *d)
{
    size_t count = model_count(&s->m, s->y);
    const double *w = model_values(&s->m, d->w);
    for (int single = 0; single < 2; single++) {
        double *const *r = single ? d->r32 : d->r64, scale = 1e-3, reverse = 0;
        double forward = dot(w, r[OUT_JV], count, &scale), tolerance = single ? 1e-4 : 1e-12;
        for (int i = 0; i < s->c->inputs; i++) {
            size_t n = model_count(&s->m, s->x[i]);
            double own_scale = 1e-3, own = dot(d->vv[i], r[OUT_GX + i], n, &own_scale);
            CHECK_NEAR(dot(w, r[OUT_JVI + i], count, &own_scale), own, tolerance * own_scale, s->label);
            CHECK_LE(scaled_error(d->r32[OUT_GX + i], d->r64[OUT_GX + i], n, 1e-3), 5e-5, s->label);
            reverse += own;
            scale += own_scale;
        }
        CHECK_NEAR(forward, reverse, tolerance * scale, s->label);
    }
}

/* Move the leaves so that every x becomes x + t v. */
static void move_leaves(setting *s, double t, double *const *v)
{
    for (int i = 0; i < s->c->inputs; i++) {
        double *leaf = model_values(&s->m, s->leaf[i]);
        for (size_t e = 0; e < model_count(&s->m, s->leaf[i]); e++)
            leaf[e] += t * v[i][e % model_count(&s->m, s->x[i])];
    }
}

/* d/dt <u, gx(x + t v)> = <h, v>; and <u, J' w> is linear in w, with the derivative J u. */
static void check_second(setting *s, const derivatives *d)
{
    double *moved[4][OUTS], by_difference = 0, by_rule = 0, scale = 1e-3;
    if (s->c->trusted) /* the value is only defined where the weights are zero outside the mask */
        for (size_t k = 0; k < MASK_OUT * MASK_IN; k++)
            d->vv[1][k] = inside(s->c, k / MASK_IN, k % MASK_IN) ? d->vv[1][k] : 0;
    for (int k = 0; k < 4; k++) {
        move_leaves(s, steps[k] * step_size, d->vv);
        model_run(&s->m, d->plan, OUTS, d->out, moved[k]);
        move_leaves(s, -steps[k] * step_size, d->vv);
    }
    for (int i = 0; i < s->c->inputs; i++) {
        size_t n = model_count(&s->m, s->x[i]);
        const double *u = model_values(&s->m, d->u[i]);
        by_rule += dot(d->vv[i], d->r64[OUT_H + i], n, &scale);
        for (size_t e = 0; e < n; e++)
            by_difference += u[e] * difference(moved[0][OUT_GX + i][e], moved[1][OUT_GX + i][e],
                                               moved[2][OUT_GX + i][e], moved[3][OUT_GX + i][e]);
        dot(u, d->r64[OUT_GX + i], n, &scale);
    }
    CHECK_NEAR(by_difference, by_rule, 1e-7 * scale, s->label);
    CHECK_LE(scaled_error(d->r64[OUT_HW], d->r64[OUT_JU], model_count(&s->m, s->y), 1e-3), 1e-12, s->label);
}

static void check_derivatives(setting *s)
{
    derivatives d;
    derive(s, &d);
    check_forward(s, &d);
    check_adjoint(s, &d);
    check_second(s, &d);
    hl_plan_free(d.plan);
}

/* Coefficients of order 1..5 against jvps nested along the curve. */
static void check_taylor(setting *s, int seeding, int which)
{
    const op_case *c = s->c;
    hl_graph *g = s->m.g;
    size_t nx = (size_t)c->inputs, count = model_count(&s->m, s->y);
    hl_node cx[MAX_IN * ORDER], cy[ORDER], curve[MAX_IN], e = model_leaf(&s->m, false, SCALAR, 0), one = hl_const(g, 1);
    hl_node out[2 * ORDER];
    double *r64[2 * ORDER], *r32[2 * ORDER], factorial = 1;
    char label[160];

    *model_values(&s->m, e) = 0;
    for (size_t i = 0; i < nx; i++) {
        hl_node tail = HL_NONE;
        for (int m = ORDER; m >= 1; m--) {
            bool moves = seeding != SEED_ONE || ((int)i == which && (m == 1 || m == 3));
            bool batched = seeding != SEED_SHARED && hl_node_batched(g, s->leaf[i]);
            hl_node k =
                moves ? model_leaf(&s->m, batched, &c->in[i], 401 + 2 * (uint64_t)(m + ORDER * (int)i)) : HL_NONE;
            cx[i * ORDER + (size_t)m - 1] = k;
            if (tail != HL_NONE)
                tail = hl_mul(g, e, tail);
            tail = hl_accumulate(g, tail, k);
        }
        curve[i] = tail == HL_NONE ? s->leaf[i] : hl_add(g, s->leaf[i], hl_mul(g, e, tail));
        if (s->means)
            curve[i] = mean_rows(g, curve[i]);
    }
    CHECK_OK(s->m.ctx, hl_jet(g, ORDER, nx, s->leaf, cx, NULL, 1, &s->y, cy));
    hl_node nested = c->build(g, c, curve);
    for (int m = 0; m < ORDER; m++) {
        if (nested != HL_NONE)
            CHECK_OK(s->m.ctx, hl_jet(g, 1, 1, &e, &one, NULL, 1, &nested, &nested));
        out[m] = whole(s, cy[m]);
        out[ORDER + m] = whole(s, nested);
    }
    model_eval(&s->m, HL_F64, 2 * ORDER, out, r64);
    model_eval(&s->m, HL_F32, ORDER, out, r32);
    for (int m = 0; m < ORDER; m++) {
        factorial *= m + 1;
        for (size_t i = 0; i < count; i++)
            r64[ORDER + m][i] /= factorial;
        snprintf(label, sizeof label, "%s, seeds %d %d, order %d", s->label, seeding, which, m + 1);
        CHECK_LE(scaled_error(r64[m], r64[ORDER + m], count, 1e-3), 1e-11, label);
        CHECK_LE(scaled_error(r32[m], r64[m], count, 1e-3), 5e-4, label);
    }
}

/* The row is in the graph, so the case tests what it says. */
static void check_contains(const setting *s)
{
    bool found = !s->c->op;
    for (size_t n = 1; n <= s->m.g->count; n++)
        found = found || s->m.g->node[n].op == s->c->op;
    CHECK(found, s->label);
}

static void run_setting(hl_context *ctx, const op_case *c, unsigned shared, bool means)
{
    for (int test = 0; test < 3 + c->inputs; test++) {
        setting s = { .c = c, .shared = shared, .means = means };
        set_up(&s, ctx);
        if (test == 0) {
            check_contains(&s);
            check_derivatives(&s);
        } else {
            check_taylor(&s, test < 3 ? test - 1 : SEED_ONE, test - 3);
        }
        CHECK_OK(ctx, hl_graph_verify(s.m.g));
        model_free(&s.m);
    }
}

static void run_case(hl_context *ctx, const op_case *c)
{
    for (unsigned shared = 0; shared < 1u << c->inputs; shared++)
        if ((shared & c->shared) == c->shared && !(shared & c->batched))
            run_setting(ctx, c, shared, false);
    if (!c->batched && c->op != &hl_op_param)
        run_setting(ctx, c, 0, true);
}

static void test_row(void **state)
{
    const hl_op *op = *state;
    hl_context *ctx = test_context(NULL, 1);
    bool any = false;
    for (size_t i = 0; i < case_count; i++)
        if (all_cases[i].op == op) {
            run_case(ctx, &all_cases[i]);
            any = true;
        }
    CHECK(any, op ? op->name : "composites");
    hl_context_free(ctx);
}

/* ---- what is not a case ---- */

/* The value in double that folds constants is the op's value. */
static void test_eval(void **state)
{
    (void)state;
    for (size_t i = 0; i < case_count; i++) {
        const op_case *c = &all_cases[i];
        if (!c->op || !c->op->eval || c->inputs != c->op->arity)
            continue;
        for (uint64_t t = 0; t < 20; t++) {
            double x[MAX_IN];
            for (int j = 0; j < c->inputs; j++) {
                x[j] = c->op->domain[0] + (c->op->domain[1] - c->op->domain[0]) * hl_random_uniform(5, (uint64_t)j, t);
                x[j] *= c->signs && hl_random_bits(6, (uint64_t)j, t) & 1 ? -1 : 1;
            }
            if (c->unary || c->binary || c->ternary)
                CHECK_NEAR(c->op->eval(x), c->f(x), 1e-14 * (1 + fabs(c->f(x))), c->label);
        }
    }
}

/* Ties share the derivative, forward and back. */
static void test_max_ties(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, 2);
    static const double x[2][5] = { { 1, 3, 3, 2, 3 }, { -1, -4, -7, -1, -2 } };
    static const double share[2][5] = { { 0, 1. / 3, 1. / 3, 0, 1. / 3 }, { 0.5, 0, 0, 0.5, 0 } };
    hl_node in = model_leaf(&m, true, SHAPE(5), 0), v = model_leaf(&m, true, SHAPE(5), 1), y = hl_max_over(m.g, in, 0);
    hl_node jv, gx;
    double *out[2];

    (void)state;
    memcpy(model_values(&m, in), x, sizeof x);
    CHECK_OK(ctx, hl_jet(m.g, 1, 1, &in, &v, NULL, 1, &y, &jv));
    CHECK_OK(ctx, hl_vjp(m.g, 1, &y, NULL, 1, &in, NULL, &gx));
    model_eval(&m, HL_F64, 2, (hl_node[]){ gx, jv }, out);
    for (int r = 0; r < 2; r++) {
        double expected = 0;
        for (int i = 0; i < 5; i++) {
            CHECK_NEAR(out[0][r * 5 + i], share[r][i], 1e-15, "share");
            expected += share[r][i] * model_values(&m, v)[r * 5 + i];
        }
        CHECK_NEAR(out[1][r], expected, 1e-14, "jvp at a tie");
    }
    model_free(&m);
    hl_context_free(ctx);
}

/* At a tie, min and max give the derivative to one argument, the first, in both modes; the two sum to one. */
static void test_binary_ties(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_node (*const f[])(hl_graph *, hl_node, hl_node) = { hl_min, hl_max };

    (void)state;
    for (int k = 0; k < 2; k++) {
        model m = model_make(ctx, 3);
        hl_node x[2] = { model_leaf(&m, true, SCALAR, 0), model_leaf(&m, true, SCALAR, 0) };
        hl_node v[2] = { model_leaf(&m, true, SCALAR, 1), model_leaf(&m, true, SCALAR, 3) }, y = f[k](m.g, x[0], x[1]);
        hl_node gx[2], jv;
        double *out[3];
        memcpy(model_values(&m, x[1]), model_values(&m, x[0]), 3 * sizeof(double));
        CHECK_OK(ctx, hl_vjp(m.g, 1, &y, NULL, 2, x, NULL, gx));
        CHECK_OK(ctx, hl_jet(m.g, 1, 2, x, v, NULL, 1, &y, &jv));
        model_eval(&m, HL_F64, 3, (hl_node[]){ gx[0], gx[1], jv }, out);
        for (int r = 0; r < 3; r++) {
            CHECK_NEAR(out[0][r], 1, 0, "first");
            CHECK_NEAR(out[1][r], 0, 0, "second");
            CHECK_NEAR(out[2][r], model_values(&m, v[0])[r], 0, "jvp");
        }
        model_free(&m);
    }
    hl_context_free(ctx);
}

/* Values of 1e4 overflow exp in any precision; the shift by the maximum keeps them out. */
static void test_large_exponents(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    static const double x[3][4] = { { 1e4, 1e4 - 1, 0, 2 }, { -1e4, -1e4, -1e4, -1e4 }, { 1e4, -1e4, 5, 1e4 } };

    (void)state;
    for (int dtype = 0; dtype < 2; dtype++) {
        model m = model_make(ctx, 3);
        hl_node in = model_leaf(&m, true, SHAPE(4), 0), l = hl_logsumexp(m.g, in, -1), p = hl_softmax(m.g, in, -1),
                g[2];
        double *out[4];
        memcpy(model_values(&m, in), x, sizeof x);
        CHECK_OK(ctx, hl_vjp(m.g, 1, &l, NULL, 1, &in, NULL, &g[0]));
        CHECK_OK(ctx, hl_vjp(m.g, 1, &p, NULL, 1, &in, NULL, &g[1])); /* of the sum of a softmax: zero */
        model_eval(&m, dtype ? HL_F64 : HL_F32, 4, (hl_node[]){ l, p, g[0], g[1] }, out);
        double tolerance = dtype ? 1e-11 : 1e-3;
        CHECK_NEAR(out[0][0], 1e4 + log1p(exp(-1)), tolerance, "logsumexp");
        CHECK_NEAR(out[0][1], -1e4 + log(4), tolerance, "logsumexp");
        CHECK_NEAR(out[0][2], 1e4 + log(2), tolerance, "logsumexp");
        for (int r = 0; r < 3; r++) {
            double sum = 0;
            for (int i = 0; i < 4; i++) {
                sum += out[1][4 * r + i];
                CHECK_NEAR(out[2][4 * r + i], out[1][4 * r + i], 1e-6, "gradient of logsumexp is softmax");
                CHECK_NEAR(out[3][4 * r + i], 0, 1e-6, "gradient of a sum of softmax");
            }
            CHECK_NEAR(sum, 1, 1e-6, "softmax sums to 1");
        }
        model_free(&m);
    }
    hl_context_free(ctx);
}

/* The branch that elu does not take must not spoil its derivatives. */
static void test_elu_large(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, 1);
    hl_node x = model_leaf(&m, true, SHAPE(2), 0), y = hl_elu(m.g, x), g1, g2;
    double *out[3];

    (void)state;
    memcpy(model_values(&m, x), (double[]){ 1000, -1000 }, 2 * sizeof(double));
    CHECK_OK(ctx, hl_vjp(m.g, 1, &y, NULL, 1, &x, NULL, &g1));
    CHECK_OK(ctx, hl_vjp(m.g, 1, &g1, NULL, 1, &x, NULL, &g2));
    model_eval(&m, HL_F32, 3, (hl_node[]){ y, g1, g2 }, out);
    CHECK_NEAR(out[0][0], 1000, 0, "elu");
    CHECK_NEAR(out[0][1], -1, 0, "elu");
    CHECK_NEAR(out[1][0], 1, 0, "elu'");
    CHECK_NEAR(out[1][1], 0, 0, "elu'");
    CHECK_NEAR(out[2][0], 0, 0, "elu''");
    CHECK_NEAR(out[2][1], 0, 0, "elu''");
    model_free(&m);
    hl_context_free(ctx);
}

int main(void)
{
    static struct CMUnitTest tests[100];
    size_t count = 0;

    add_cases();
    for (const hl_op *const *op = hl_ops; *op; op++)
        tests[count++] = (struct CMUnitTest){ (*op)->name, test_row, NULL, NULL, (void *)*op };
    tests[count++] = (struct CMUnitTest){ "composites", test_row, NULL, NULL, NULL };
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_eval);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_max_ties);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_binary_ties);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_large_exponents);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_elu_large);
    return _cmocka_run_group_tests("ops", tests, count, NULL, NULL);
}
