/* test_operator.c - a compiled network: results do not depend on precision, instruction set, threads, batch, or what else is
 * asked for, and calls allocate nothing. */
#include "net_support.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- precision, threads, batches ---- */

static hl_net_spec usual(hl_dtype dtype, size_t n)
{
    return (hl_net_spec){ .dim = 5,
                          .features = 6,
                          .hidden = 21,
                          .width = 11,
                          .dtype = dtype,
                          .time = 1,
                          .context = 2,
                          .transformer = transformer(n % 2),
                          .activation = activation(n % 3) };
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
            for (size_t k = 0; k < param(a.net, i).size; k++) {
                CHECK_NEAR(get(HL_F32, param(a.net, i).values, k), get(HL_F64, param(b.net, i).values, k), 1e-6,
                           "same seed");
                set(HL_F64, param(b.net, i).values, k, get(HL_F32, param(a.net, i).values, k));
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

/* All instruction sets that the machine runs agree. */
static void test_isa(void **state)
{
    static const char *const names[] = { "base", "avx2", "avx512" };
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = usual(HL_F64, 1);
    setup s = make(ctx, &spec, 37);
    bundle cotangent = value_bundle(&s, 2, 30), values[3], gradients[3];
    size_t count = 0;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        hl_operator *op;
        hl_status status = hl_operator_create(s.net, &(hl_operator_options){ .order = 2, .plan.isa = names[i] }, &op);
        if (status == HL_ERR_UNSUPPORTED && i > 0)
            continue;
        CHECK_OK(ctx, status);
        values[count] = evaluate(&s, op, 2);
        gradients[count++] = gradient(&s, op, 2, &cotangent);
        hl_operator_free(op);
    }
    for (size_t i = 0; i < count; i++) {
        check_close(&s, &values[i], &values[0], 1e-13, 0);
        check_close(&s, &gradients[i], &gradients[0], 1e-12, 0);
    }
    for (size_t i = 0; i < count; i++) {
        drop_bundle(&values[i]);
        drop_bundle(&gradients[i]);
    }
    drop_bundle(&cotangent);
    drop(&s);
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
            fail_msg("%s: %s of rows %zu..%zu of %zu differs", s->label, whole->piece[p].name, first, first + count - 1,
                     rows);
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
        bundle cotangent = value_bundle(&s, 2, 26), values = evaluate(&s, op, 2),
               gradients = gradient(&s, op, 2, &cotangent);
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
        CHECK_OK(ctx, hl_operator_vjp(op, s.rows, s.x, s.t, s.context, from[0], given & 6 ? from + 1 : NULL, from[3],
                                      to[0], to[1], to[2], given % 4 == 3 ? NULL : to + 3));
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
    hl_node node[MAX_PIECES], f[2], gx[MAX_PIECES];
    const void *values[MAX_PIECES], *input[2] = { s.x, (double *)s.x + 9 };
    void *to[MAX_PIECES];
    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    for (int i = 0; i < 2; i++) {
        hl_net_nodes n = { .x = hl_input(g, "x", 1, &spec.dim), .param = node, .reuse = i };
        CHECK_OK(ctx, hl_net_build(s.net, g, 0, HL_TAYLOR, &n));
        f[i] = n.f;
    }
    assert_int_equal(hl_graph_params(g), s.params);
    CHECK_OK(ctx, hl_graph_verify(g));
    CHECK_OK(ctx, hl_vjp(g, 2, f, NULL, s.params, node, NULL, gx));
    CHECK_OK(ctx, hl_plan_create(ctx, g, s.params, gx, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    bundle both = gradient_bundle(&s), cotangent = value_bundle(&s, 0, 1), expected;
    for (size_t i = 0; i < cotangent.total; i++)
        ((double *)cotangent.data)[i] = 1;
    for (size_t i = 0; i < s.params; i++) {
        values[i] = param(s.net, i).values;
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

/* A child of fork goes on with one thread: what was compiled before gives the same bits. */
static void test_fork(void **state)
{
    hl_context *ctx = test_context(NULL, 2);
    hl_net_spec spec = usual(HL_F32, 1);
    setup s = make(ctx, &spec, 150);
    hl_operator *op = compile(&s, 2, HL_TAYLOR);
    bundle cotangent = value_bundle(&s, 2, 25), values = evaluate(&s, op, 2),
           gradients = gradient(&s, op, 2, &cotangent);
    int status;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        bundle v = evaluate(&s, op, 2), g = gradient(&s, op, 2, &cotangent);
        size_t bytes = hl_dtype_size(HL_F32);
        bool same =
            memcmp(v.data, values.data, v.total * bytes) == 0 && memcmp(g.data, gradients.data, g.total * bytes) == 0;
        _exit(same && hl_context_threads(ctx) == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    bundle *all[] = { &cotangent, &values, &gradients };
    for (size_t i = 0; i < 3; i++)
        drop_bundle(all[i]);
    hl_operator_free(op);
    drop(&s);
    test_context_free(ctx, NULL);
}

/* Values, D and gradients in one run are those of two. */
static void test_joint(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 4; n++) {
        hl_net_spec spec = usual(HL_F64, n);
        setup s = make(ctx, &spec, 37);
        hl_operator *op = compile(&s, 2, HL_TAYLOR), *joint;
        bundle c = value_bundle(&s, 2, 24), v = evaluate(&s, op, 2), g = gradient(&s, op, 2, &c);
        bundle values = value_bundle(&s, 2, 98), gradients = gradient_bundle(&s);
        void *d[] = { piece(&values, 1), piece(&values, 2) }, *gparam[MAX_PIECES];
        const void *gd[] = { piece(&c, 1), piece(&c, 2) };
        for (size_t i = 0; i < s.params; i++)
            gparam[i] = piece(&gradients, 3 + i);
        hl_operator_arrays a = { .f = piece(&values, 0),
                                 .d = d,
                                 .divergence = piece(&values, 3),
                                 .gf = piece(&c, 0),
                                 .gd = gd,
                                 .gdiv = piece(&c, 3),
                                 .gx = piece(&gradients, 0),
                                 .gt = piece(&gradients, 1),
                                 .gcontext = piece(&gradients, 2),
                                 .gparam = gparam };
        CHECK_STATUS(ctx, hl_operator_eval_vjp(op, s.rows, s.x, s.t, s.context, &a), HL_ERR_INVALID);
        CHECK_OK(ctx, hl_operator_create(s.net, &(hl_operator_options){ .order = 2, .joint = 1 }, &joint));
        CHECK_STATUS(ctx, hl_operator_eval_vjp(joint, s.rows, s.x, NULL, s.context, &a), HL_ERR_INVALID);
        CHECK_OK(ctx, hl_operator_eval_vjp(joint, s.rows, s.x, s.t, s.context, &a));
        for (size_t k = 0; k < v.total; k++)
            CHECK_NEAR(((double *)values.data)[k], ((double *)v.data)[k], 1e-11, "values");
        for (size_t k = 0; k < g.total; k++)
            CHECK_NEAR(((double *)gradients.data)[k], ((double *)g.data)[k], 1e-10 * (1 + fabs(((double *)g.data)[k])),
                       "gradients");
        bundle *const all[] = { &c, &v, &g, &values, &gradients };
        for (size_t k = 0; k < 5; k++)
            drop_bundle(all[k]);
        hl_operator_free(op);
        hl_operator_free(joint);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joint),          cmocka_unit_test(test_precision), cmocka_unit_test(test_isa),
        cmocka_unit_test(test_threads),        cmocka_unit_test(test_rows),      cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_null_arguments), cmocka_unit_test(test_no_rows),   cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
