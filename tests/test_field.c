/* test_field.c - a network as a system: what its callbacks compute, and solves and gradients of it. */
#include "net_support.h"

#include "hollow/ode.h"

enum { ROWS = 37, DIM = 5, CONTEXT = 2 };

static hl_net_spec usual(hl_dtype dtype)
{
    return (hl_net_spec){
        .dim = DIM, .features = 6, .hidden = 21, .width = 11, .dtype = dtype, .time = 1, .context = CONTEXT
    };
}

/* The rows of a setup in double. Row r of a call is row index[r] of the solve, whose context is stored in that place. */
typedef struct points {
    double t[ROWS], y[ROWS * DIM], context[ROWS * CONTEXT];
    size_t index[ROWS];
    hl_rows at;
} points;

static void make_points(const setup *s, points *p)
{
    for (size_t r = 0; r < ROWS; r++) {
        p->index[r] = ROWS - 1 - r;
        p->t[r] = get(s->spec.dtype, s->t, r);
        for (size_t i = 0; i < DIM; i++)
            p->y[r * DIM + i] = get(s->spec.dtype, s->x, r * DIM + i);
        for (size_t i = 0; i < CONTEXT; i++)
            p->context[p->index[r] * CONTEXT + i] = get(s->spec.dtype, s->context, r * CONTEXT + i);
    }
    p->at = (hl_rows){ ROWS, p->index, p->t, p->y };
}

static hl_field *make_field(const setup *s, const points *p, size_t rows)
{
    hl_field *field = NULL;
    CHECK_OK(s->ctx, hl_field_create(s->net, rows, &field));
    hl_field_set_context(field, p->context);
    return field;
}

/* rhs, diagonal and vjp against the operator, to the bit; calls of more rows than the field has go in pieces. */
static void test_operator_agrees(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int k = 0; k < 4; k++) {
        hl_dtype dtype = k % 2 ? HL_F64 : HL_F32;
        hl_net_spec spec = usual(dtype);
        setup s = make(ctx, &spec, ROWS);
        points p;
        make_points(&s, &p);
        hl_field *field = make_field(&s, &p, k < 2 ? 64 : 10);
        hl_system system = hl_field_system(field);
        hl_operator *op = compile(&s, 1, HL_TAYLOR), *value = compile(&s, -1, HL_TAYLOR);
        bundle v = evaluate(&s, op, 1), w = value_bundle(&s, 0, 31), g = gradient(&s, value, 0, &w);
        double dy[ROWS * DIM], dy2[ROWS * DIM], d[ROWS * DIM], cotangent[ROWS * DIM], gy[ROWS * DIM];
        double *gp = test_calloc(system.n_params, sizeof *gp);
        for (size_t i = 0; i < ROWS * DIM; i++)
            cotangent[i] = get(dtype, piece(&w, 0), i);
        assert_int_equal(system.n, DIM);
        assert_true((system.rounding > 1e-9) == (dtype == HL_F32));
        assert_int_equal(system.rhs(system.user, &p.at, dy), 0);
        assert_int_equal(system.diagonal(system.user, &p.at, dy2, d), 0);
        assert_int_equal(system.diagonal(system.user, &p.at, NULL, d), 0);
        for (size_t i = 0; i < system.n_params; i++)
            gp[i] = 2; /* it is added to what is there */
        assert_int_equal(system.vjp(system.user, &p.at, cotangent, gy, gp), 0);
        for (size_t i = 0; i < ROWS * DIM; i++) {
            assert_true(dy[i] == get(dtype, piece(&v, 0), i) && dy2[i] == get(dtype, piece(&v, 0), i));
            assert_true(d[i] == get(dtype, piece(&v, 1), i));
            assert_true(gy[i] == get(dtype, piece(&g, 0), i));
        }
        size_t at = 0;
        for (size_t j = 0; j < s.params; j++)
            for (size_t i = 0; i < param(s.net, j).size; i++, at++)
                CHECK_NEAR(gp[at] - 2, get(dtype, piece(&g, 3 + j), i), dtype == HL_F32 ? 1e-4 : 1e-12, s.label);
        assert_int_equal(at, system.n_params);
        double gx[ROWS * DIM]; /* without parameters another plan does it */
        assert_int_equal(system.vjp(system.user, &p.at, cotangent, gx, NULL), 0);
        CHECK_LE(relative_error_f64(gx, gy, ROWS * DIM), dtype == HL_F32 ? 1e-5 : 1e-13, s.label);
        test_free(gp);
        drop_bundle(&v);
        drop_bundle(&w);
        drop_bundle(&g);
        hl_operator_free(op);
        hl_operator_free(value);
        hl_field_free(field);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* J v against differences and against J' w; df/dparameter against a difference. */
static void test_derivatives(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = usual(HL_F64);
    setup s = make(ctx, &spec, ROWS);
    points p, moved;
    make_points(&s, &p);
    hl_field *field = make_field(&s, &p, 16);
    hl_system system = hl_field_system(field);
    double v[ROWS * DIM], w[ROWS * DIM], jv[ROWS * DIM], jw[ROWS * DIM], f[2][ROWS * DIM], h = 1e-5, left = 0,
                                                                                           right = 0;
    double *gp = test_calloc(system.n_params, sizeof *gp), scale = 0, change = 0;
    (void)state;
    fill_normal_f64(v, ROWS * DIM, 41);
    fill_normal_f64(w, ROWS * DIM, 42);
    assert_int_equal(system.jvp(system.user, &p.at, v, jv), 0);
    for (int side = 0; side < 2; side++) {
        make_points(&s, &moved);
        for (size_t i = 0; i < ROWS * DIM; i++)
            moved.y[i] += (side ? h : -h) * v[i];
        assert_int_equal(system.rhs(system.user, &moved.at, f[side]), 0);
    }
    assert_int_equal(system.vjp(system.user, &p.at, w, jw, gp), 0);
    for (size_t i = 0; i < ROWS * DIM; i++) {
        CHECK_NEAR(jv[i], (f[1][i] - f[0][i]) / (2 * h), 1e-8, "J v");
        left += w[i] * jv[i];
        right += jw[i] * v[i];
        scale += fabs(w[i] * jv[i]);
    }
    CHECK_NEAR(left, right, 1e-13 * scale, "<w, J v> = <J' w, v>");
    hl_net_param last = param(s.net, s.params - 2); /* parameters are read at every call */
    for (int side = 0; side < 2; side++) {
        ((double *)last.values)[0] += side ? 2 * h : -h;
        assert_int_equal(system.rhs(system.user, &p.at, f[side]), 0);
    }
    for (size_t i = 0; i < ROWS * DIM; i++)
        change += w[i] * (f[1][i] - f[0][i]) / (2 * h);
    CHECK_NEAR(gp[system.n_params - param(s.net, s.params - 1).size - last.size], change, 1e-7, "a parameter");
    test_free(gp);
    hl_field_free(field);
    drop(&s);
    test_context_free(ctx, NULL);
}

/* ---- solves ---- */

typedef struct solved {
    double y[ROWS * DIM], gy[ROWS * DIM], *gp;
    size_t n_params;
} solved;

static solved solve(int threads, hl_dtype dtype)
{
    hl_context *ctx = test_context(NULL, threads);
    hl_net_spec spec = usual(dtype);
    setup s = make(ctx, &spec, ROWS);
    points p;
    make_points(&s, &p);
    hl_field *field = make_field(&s, &p, ROWS);
    hl_system system = hl_field_system(field);
    hl_ode_options o = { .rtol = 1e-5, .atol = 1e-5, .gradient = HL_REPLAY, .rows = ROWS, .checkpoint_bytes = 60000 };
    hl_ode *ode = NULL;
    solved r = { .gp = test_calloc(system.n_params, sizeof *r.gp), .n_params = system.n_params };
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &o, &ode));
    memcpy(r.y, p.y, sizeof r.y);
    fill_normal_f64(r.gy, ROWS * DIM, 51);
    CHECK_OK(ctx, hl_ode_solve(ode, ROWS, p.t, 3, r.y, NULL));
    CHECK_OK(ctx, hl_ode_gradient(ode, r.gy, r.gp));
    hl_ode_free(ode);
    hl_field_free(field);
    drop(&s);
    test_context_free(ctx, NULL);
    return r;
}

/* The same bits for 1 and 2 threads; the two precisions agree. */
static void test_threads(void **state)
{
    solved r[4];
    (void)state;
    for (int k = 0; k < 4; k++)
        r[k] = solve(1 + k % 2, k < 2 ? HL_F64 : HL_F32);
    for (int k = 0; k < 4; k += 2) {
        assert_memory_equal(r[k].y, r[k + 1].y, sizeof r[k].y);
        assert_memory_equal(r[k].gy, r[k + 1].gy, sizeof r[k].gy);
        assert_memory_equal(r[k].gp, r[k + 1].gp, r[k].n_params * sizeof *r[k].gp);
    }
    CHECK_LE(relative_error_f64(r[2].y, r[0].y, ROWS * DIM), 1e-4, "float32 against float64");
    CHECK_LE(relative_error_f64(r[2].gy, r[0].gy, ROWS * DIM), 1e-3, "float32 against float64, gradient");
    CHECK_LE(relative_error_f64(r[2].gp, r[0].gp, r[0].n_params), 1e-3, "float32 against float64, parameters");
    for (int k = 0; k < 4; k++)
        test_free(r[k].gp);
}

/* ---- memory and arguments ---- */

static hl_status create(hl_context *ctx, void *user)
{
    hl_net_spec spec = usual(HL_F32);
    hl_net *net = NULL;
    hl_field *field = NULL;
    (void)user;
    hl_status status = hl_net_create(ctx, &spec, &net);
    if (status == HL_OK)
        status = hl_field_create(net, 20, &field);
    assert_true((status == HL_OK) == (field != NULL));
    hl_field_free(field);
    hl_net_free(net);
    return status;
}

static void test_memory(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 2);
    hl_net_spec spec = usual(HL_F32);
    setup s = make(ctx, &spec, ROWS);
    points p;
    (void)state;
    make_points(&s, &p);
    hl_field *field = make_field(&s, &p, 10);
    hl_system system = hl_field_system(field);
    double *gp = test_calloc(system.n_params, sizeof *gp), a[ROWS * DIM], b[ROWS * DIM];
    long calls = allocator.calls;
    system.rhs(system.user, &p.at, a);
    system.diagonal(system.user, &p.at, a, b);
    system.jvp(system.user, &p.at, a, b);
    system.vjp(system.user, &p.at, a, b, gp);
    system.vjp(system.user, &p.at, a, b, NULL);
    assert_int_equal(allocator.calls, calls);
    test_free(gp);
    hl_field_free(field);
    drop(&s);
    test_context_free(ctx, &allocator);
    check_every_allocation(1, create, NULL);
}

static void test_arguments(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = usual(HL_F64);
    setup s = make(ctx, &spec, ROWS);
    hl_field *field = NULL;
    hl_ode *ode = NULL;
    points p;
    (void)state;
    make_points(&s, &p);
    assert_int_equal(hl_field_create(NULL, 1, &field), HL_ERR_INVALID);
    assert_int_equal(hl_field_create(s.net, 1, NULL), HL_ERR_INVALID);
    hl_field_free(NULL);
    hl_field_set_context(NULL, NULL);
    assert_int_equal(hl_field_system(NULL).n, 0);
    field = make_field(&s, &p, ROWS);
    hl_field_set_context(field, NULL); /* which the network needs */
    hl_system system = hl_field_system(field);
    CHECK_OK(ctx, hl_ode_create(ctx, &system, NULL, &ode));
    CHECK_STATUS(ctx, hl_ode_solve(ode, ROWS, p.t, 3, p.y, NULL), HL_ERR_CALLBACK);
    assert_int_equal(hl_ode_report(ode).callback, HL_ERR_INVALID);
    hl_ode_free(ode);
    hl_field_free(field);
    drop(&s);
    test_context_free(ctx, NULL);
}

/* In another basis there is no diagonal, and methods that need one say so. */
static void test_turned(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = { .dim = 3, .reflections = 2, .hidden = 4, .width = 4, .dtype = HL_F64 };
    hl_net *net;
    hl_field *field;
    hl_ode *ode;
    (void)state;
    CHECK_OK(ctx, hl_net_create(ctx, &spec, &net));
    CHECK_OK(ctx, hl_net_init(net, 1));
    CHECK_OK(ctx, hl_field_create(net, 4, &field));
    hl_system system = hl_field_system(field);
    assert_true(!system.diagonal && system.rhs && system.jvp && system.vjp);
    CHECK_STATUS(ctx, hl_ode_create(ctx, &system, &(hl_ode_options){ .method = "bdf-jacobi" }, &ode), HL_ERR_INVALID);
    hl_field_free(field);
    hl_net_free(net);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turned),  cmocka_unit_test(test_operator_agrees), cmocka_unit_test(test_derivatives),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_memory),          cmocka_unit_test(test_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
