/* test_plan.c - compiling and running: the same results however the work is cut, no allocation, no leak, all kinds of
 * outputs, and errors. That every op computes what it should is tested in test_ops.c. */
#include "exec/plan.h"
#include "ops_support.h"

#include <time.h>

/* ---- a graph with something of everything ---- */

/* A masked network of x [6] to h [6, 4], a transformer of (x_i, h_i) run dimension by dimension, two derivatives of it with
 * h held, a convolution, a softmax, running sums; then a loss, and its gradient by x and all parameters. */
enum { DIM = 6, HIDDEN = 20, FEATURES = 4, WIDTH = 9, ZOO_PARAMS = 7, ZOO_OUT = 16 };

static hl_node linear_layer(hl_graph *g, hl_node x, size_t out, size_t in, const uint32_t *lo, const uint32_t *hi)
{
    hl_node w = hl_param(g, "w", 2, (size_t[]){ out, in });
    return lo ? hl_linear_masked(g, x, w, lo, hi) : hl_linear(g, x, w);
}

static hl_node zoo_features(hl_graph *g, hl_node x)
{
    uint32_t zero[DIM * FEATURES] = { 0 }, seen[HIDDEN], reach[DIM * FEATURES];
    for (uint32_t n = 0; n < HIDDEN; n++)
        seen[n] = 1 + n * (DIM - 1) / HIDDEN; /* unit n sees so many inputs */
    for (uint32_t n = 0; n < DIM * FEATURES; n++) {
        uint32_t d = n / FEATURES, k = 0;
        while (k < HIDDEN && seen[k] <= d)
            k++;
        reach[n] = k;
    }
    hl_node a = hl_tanh(g, linear_layer(g, x, HIDDEN, DIM, zero, seen));
    return hl_reshape(g, linear_layer(g, a, DIM * FEATURES, HIDDEN, zero, reach), 2, (size_t[]){ DIM, FEATURES });
}

static void zoo_outputs(hl_graph *g, hl_node *out)
{
    size_t dim = DIM;
    hl_node x = hl_input(g, "x", 1, &dim), t = hl_input(g, "t", 0, NULL), h = zoo_features(g, x), d[2],
            params[ZOO_PARAMS];
    hl_node parts[2] = { hl_reshape(g, x, 2, (size_t[]){ DIM, 1 }), h };
    hl_node hidden = linear_layer(g, hl_concat(g, 2, parts, 1), WIDTH, 1 + FEATURES, NULL, NULL);
    hidden = hl_tanh(g, hl_add(g, hidden, hl_param(g, "b", 1, (size_t[]){ WIDTH })));
    hidden = hl_softplus(g, linear_layer(g, hidden, WIDTH, WIDTH, NULL, NULL));
    hl_node f = hl_reshape(g, linear_layer(g, hidden, 1, WIDTH, NULL, NULL), 1, &dim);
    hl_dim_derivatives(g, f, x, &(hl_hold){ 1, &h }, 2, HL_TAYLOR, d);
    hl_node k = hl_param(g, "k", 4, (size_t[]){ 2, 1, 2, 2 });
    hl_node image = hl_conv(g, hl_reshape(g, f, 3, (size_t[]){ 1, 2, 3 }), k, &(hl_conv_options){ .pad = { 1, 0 } });
    hl_node soft = hl_softmax(g, hl_mul(g, f, t), 0);
    hl_node running = hl_cumsum(g, hl_mul(g, soft, d[0]), 0, 1, 0);
    hl_node loss =
        hl_add(g, hl_sum_all(g, hl_mul(g, f, running)), hl_scale(g, 0.1, hl_sum_all(g, hl_mul(g, d[1], d[1]))));
    loss = hl_add(g, loss, hl_add(g, hl_sum_all(g, hl_sin(g, image)), hl_max_over(g, f, 0)));
    hl_node leaves[ZOO_PARAMS + 2] = { x, t };
    for (size_t i = 0; i < ZOO_PARAMS; i++)
        leaves[2 + i] = params[i] = hl_graph_param(g, i);
    hl_vjp(g, 1, &loss, NULL, ZOO_PARAMS + 2, leaves, NULL, out);
    hl_node total = hl_sum_rows(g, loss);
    hl_node last[] = {
        f, d[0], d[1], loss, total, hl_exp(g, hl_scale(g, 1e-4, total)), hl_sum_all(g, hl_tanh(g, params[0]))
    };
    memcpy(out + ZOO_PARAMS + 2, last, sizeof last);
}

static hl_node zoo_node[ZOO_OUT];

static model zoo_model(hl_context *ctx, size_t rows)
{
    model m = model_make(ctx, rows);
    zoo_outputs(m.g, zoo_node);
    CHECK_OK(ctx, hl_graph_status(m.g));
    CHECK_OK(ctx, hl_graph_verify(m.g));
    for (size_t kind = 0; kind < 2; kind++)
        for (size_t i = 0; i < (kind ? hl_graph_params(m.g) : hl_graph_inputs(m.g)); i++) {
            hl_node n = kind ? hl_graph_param(m.g, i) : hl_graph_input(m.g, i);
            double **v = kind ? &m.param[i] : &m.input[i];
            *v = model_alloc(&m, model_count(&m, n) * sizeof **v);
            for (size_t k = 0; k < model_count(&m, n); k++)
                (*v)[k] = (float)(kind ? 0.4 * hl_random_normal(7, i, k) : hl_random_normal(8, i, k));
        }
    assert_int_equal(hl_graph_params(m.g), ZOO_PARAMS);
    return m;
}

static void run_options(model *m, const hl_plan_options *o, size_t count, const hl_node *node, double **out)
{
    hl_plan *plan;
    CHECK_OK(m->ctx, hl_plan_create(m->ctx, m->g, count, node, o, &plan));
    model_run(m, plan, count, node, out);
    hl_plan_free(plan);
}

/* The results of two runs agree; batched ones bit by bit if asked. */
static void compare(const model *m, double *const *a, double *const *b, double tolerance, bool same_rows,
                    const char *label)
{
    char text[80];
    for (size_t i = 0; i < ZOO_OUT; i++) {
        size_t n = model_count(m, zoo_node[i]);
        snprintf(text, sizeof text, "%s, output %zu", label, i);
        CHECK_LE(scaled_error(a[i], b[i], n, 1e-6), tolerance, text);
        if (same_rows && hl_node_batched(m->g, zoo_node[i]) && memcmp(a[i], b[i], n * sizeof(double)) != 0)
            fail_msg("%s: rows differ", text);
    }
}

/* ---- the same results however the work is cut ---- */

static void test_cuts(void **state)
{
    static const size_t chunks[] = { 16, 64, 4096, 1 };
    hl_context *ctx = test_context(NULL, 1);
    model m = zoo_model(ctx, 333);
    double *exact[ZOO_OUT], *base[ZOO_OUT], *out[ZOO_OUT];
    char label[80];

    (void)state;
    model_eval(&m, HL_F64, ZOO_OUT, zoo_node, exact);
    for (int dtype = 0; dtype < 2; dtype++)
        for (int no_fusion = 0; no_fusion < 2; no_fusion++)
            for (int dense = 0; dense < 2; dense++) {
                hl_plan_options o = { .dtype = dtype ? HL_F64 : HL_F32, .no_fusion = no_fusion, .dense_masks = dense };
                run_options(&m, &o, ZOO_OUT, zoo_node, base);
                compare(&m, base, exact, dtype ? 1e-12 : 1e-4, false, "to the default in double");
                for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
                    o.chunk_rows = chunks[i];
                    snprintf(label, sizeof label, "dtype %d, no_fusion %d, dense %d, chunk %zu", dtype, no_fusion,
                             dense, chunks[i]);
                    run_options(&m, &o, ZOO_OUT, zoo_node, out);
                    compare(&m, out, base, dtype ? 1e-12 : 1e-5, true, label);
                }
            }
    model_free(&m);
    hl_context_free(ctx);
}

static void test_threads(void **state)
{
    static const size_t sizes[] = { 1, 15, 16, 17, 100, 5000 };
    enum { CONTEXTS = 4 }; /* 1 to 3 threads, which share all, and 2 that learn whether to */
    hl_context *ctx[CONTEXTS];

    (void)state;
    for (int t = 0; t < 3; t++)
        ctx[t] = test_context(NULL, t + 1);
    CHECK_OK(NULL, hl_context_create(&(hl_context_options){ .threads = 2 }, &ctx[3]));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int dtype = 0; dtype < 2; dtype++)
            for (size_t chunk = 0; chunk <= 64 && !(chunk && sizes[s] > 100); chunk += 64) {
                double *out[CONTEXTS][ZOO_OUT];
                model m[CONTEXTS];
                for (int t = 0; t < CONTEXTS; t++) {
                    hl_plan_options o = { .dtype = dtype ? HL_F64 : HL_F32, .chunk_rows = chunk };
                    m[t] = zoo_model(ctx[t], sizes[s]);
                    run_options(&m[t], &o, ZOO_OUT, zoo_node, out[t]);
                    for (size_t i = 0; i < ZOO_OUT; i++)
                        if (memcmp(out[0][i], out[t][i], model_count(&m[t], zoo_node[i]) * sizeof(double)) != 0)
                            fail_msg("context %d, %zu rows, dtype %d: output %zu differs", t, sizes[s], dtype, i);
                }
                for (int t = 0; t < CONTEXTS; t++)
                    model_free(&m[t]);
            }
    for (int t = 0; t < CONTEXTS; t++)
        hl_context_free(ctx[t]);
}

/* A row's bits depend neither on its place nor on its neighbours, and a second run gives the same bits. */
static void test_rows_independent(void **state)
{
    enum { ROWS = 77 };
    hl_context *ctx = test_context(NULL, 2);

    (void)state;
    for (int dtype = 0; dtype < 2; dtype++) {
        model m = zoo_model(ctx, ROWS);
        double *out[ZOO_OUT], *again[ZOO_OUT], *moved[ZOO_OUT], *single[ZOO_OUT], *copy[2];
        static const size_t inputs[2] = { DIM, 1 };
        hl_plan *plan = model_plan(&m, dtype ? HL_F64 : HL_F32, ZOO_OUT, zoo_node);
        model_run(&m, plan, ZOO_OUT, zoo_node, out);
        model_run(&m, plan, ZOO_OUT, zoo_node, again);
        for (size_t i = 0; i < ZOO_OUT; i++)
            assert_memory_equal(out[i], again[i], model_count(&m, zoo_node[i]) * sizeof(double));
        for (size_t i = 0; i < 2; i++) {
            copy[i] = m.input[i];
            m.input[i] = model_alloc(&m, ROWS * inputs[i] * sizeof(double));
            for (size_t r = 0; r < ROWS; r++) /* row r goes to 30 r mod 77 */
                memcpy(m.input[i] + r * 30 % ROWS * inputs[i], copy[i] + r * inputs[i], inputs[i] * sizeof(double));
        }
        model_run(&m, plan, ZOO_OUT, zoo_node, moved);
        m.rows = 1;
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t i = 0; i < 2; i++)
                m.input[i] = copy[i] + r * inputs[i];
            model_run(&m, plan, ZOO_OUT, zoo_node, single);
            for (size_t i = 0; i < ZOO_OUT; i++) {
                size_t n = hl_node_size(m.g, zoo_node[i]);
                if (!hl_node_batched(m.g, zoo_node[i]))
                    continue;
                assert_memory_equal(out[i] + r * n, moved[i] + r * 30 % ROWS * n, n * sizeof(double));
                assert_memory_equal(out[i] + r * n, single[i], n * sizeof(double));
            }
        }
        hl_plan_free(plan);
        model_free(&m);
    }
    hl_context_free(ctx);
}

static void test_isas(void **state)
{
    static const char *const isas[] = { "base", "avx2", "avx512" };
    hl_context *ctx = test_context(NULL, 1);
    model m = zoo_model(ctx, 50);
    double *exact[ZOO_OUT], *out[ZOO_OUT];
    hl_plan *plan = (hl_plan *)&m;
    int ran = 0;

    (void)state;
    model_eval(&m, HL_F64, ZOO_OUT, zoo_node, exact);
    for (size_t i = 0; i < 3; i++)
        for (int dtype = 0; dtype < 2; dtype++) {
            hl_plan_options o = { .dtype = dtype ? HL_F64 : HL_F32, .isa = isas[i], .chunk_rows = i ? 0 : 32 };
            hl_status status = hl_plan_create(ctx, m.g, ZOO_OUT, zoo_node, &o, &plan);
            if (status == HL_ERR_UNSUPPORTED) {
                assert_null(plan);
                assert_non_null(strstr(hl_context_message(ctx), isas[i]));
                continue;
            }
            CHECK_OK(ctx, status);
            model_run(&m, plan, ZOO_OUT, zoo_node, out);
            compare(&m, out, exact, dtype ? 1e-12 : 1e-4, false, isas[i]);
            hl_plan_free(plan);
            ran++;
        }
    assert_true(ran >= 2); /* "base" runs everywhere */
    CHECK_STATUS(ctx, hl_plan_create(ctx, m.g, ZOO_OUT, zoo_node, &(hl_plan_options){ .isa = "sse1" }, &plan),
                 HL_ERR_UNSUPPORTED);
    assert_null(plan);
    model_free(&m);
    hl_context_free(ctx);
}

/* ---- random graphs ---- */

/* A node made of one or two earlier ones in a random way; HL_NONE if they do not suit. */
static hl_node random_node(hl_graph *g, uint64_t seed, uint64_t step, const hl_node *pool, size_t count)
{
    uint64_t r = hl_random_bits(seed, 1, step);
    hl_node a = pool[hl_random_bits(seed, 2, step) % count], b = pool[hl_random_bits(seed, 3, step) % count];
    hl_node (*const binary[])(hl_graph *, hl_node, hl_node) = { hl_add, hl_sub,  hl_mul, hl_min,
                                                                hl_max, hl_less, hl_mul, hl_add };
    hl_node (*const unary[])(hl_graph *, hl_node) = { hl_tanh, hl_sin,      hl_neg,   hl_sigmoid,
                                                      hl_abs,  hl_softplus, hl_swish, hl_swish_slope };
    const hl_shape sa = hl_graph_node(g, a)->shape, sb = hl_graph_node(g, b)->shape;
    int axis = sa.rank ? (int)(r >> 40) % sa.rank : 0;
    size_t size = hl_shape_size(&sa), last = sa.rank ? sa.dim[sa.rank - 1] : 0;
    hl_shape joined;
    switch (r % 16) {
    case 0:
        return sa.rank ? hl_sum(g, a, axis) : HL_NONE;
    case 1:
        return sa.rank ? hl_cumsum(g, a, axis, r >> 20 & 1, r >> 21 & 1) : HL_NONE;
    case 2:
        return sa.rank == 2 ? hl_permute(g, a, (int[]){ 1, 0 }) : HL_NONE;
    case 3:
        return size == 12 ? hl_reshape(g, a, 2, (size_t[]){ r >> 20 & 1 ? 3 : 2, r >> 20 & 1 ? 4 : 6 }) : HL_NONE;
    case 4:
        return sa.rank ? hl_gather(g, a, axis, 3, (size_t[]){ 0, sa.dim[axis] - 1, 0 }) : HL_NONE;
    case 5:
        return sa.rank && hl_shape_equal(&sa, &sb) ? hl_concat(g, 2, (hl_node[]){ a, b }, axis) : HL_NONE;
    case 6:
        return sa.rank && !sb.batched && sb.rank == 2 && sb.dim[1] == last ? hl_linear(g, a, b) : HL_NONE;
    case 7:
        return sa.rank == 2 && sb.rank == 2 && last == sb.dim[0] ? hl_matmul(g, a, b) : HL_NONE;
    case 8:
        return sa.rank ? hl_softmax(g, a, axis) : HL_NONE;
    case 9:
        if (!hl_shape_join(&sa, &sb, &joined) || hl_shape_size(&joined) > 100)
            return HL_NONE;
        return r >> 20 & 1 ? hl_select(g, hl_less(g, a, b), b, a)
                           : hl_div(g, a, hl_add(g, hl_const(g, 2), hl_mul(g, b, b)));
    case 10:
        return hl_scale(g, r >> 20 & 1 ? 0.5 : -0.75, a);
    case 11:
        return unary[(r >> 20) % 8](g, a);
    case 12: /* the slope of swish with a factor, perhaps beside swish itself and the second derivative */
        if (!hl_shape_join(&sa, &sb, &joined) || hl_shape_size(&joined) > 100)
            return HL_NONE;
        b = hl_mul(g, hl_swish_slope(g, a), b);
        b = r >> 20 & 1 ? hl_add(g, b, hl_swish(g, a)) : b;
        return r >> 21 & 1 ? hl_sub(g, b, hl_swish_curve(g, a)) : b;
    default:
        if (!hl_shape_join(&sa, &sb, &joined) || hl_shape_size(&joined) > 100)
            return HL_NONE;
        return binary[(r >> 20) % 8](g, a, b);
    }
}

/* Random graphs: values that share memory, run fused, and are read through folded broadcasts are those of a plan that keeps
 * every node as an output. */
static void test_random_graphs(void **state)
{
    enum { GRAPHS = 200, STEPS = 40, MOST = 700 };
    static const hl_shape leaves[] = { { .rank = 2, .dim = { 3, 1 } },
                                       { .rank = 2, .dim = { 1, 4 } },
                                       { .rank = 2, .dim = { 3, 4 } },
                                       { .rank = 1, .dim = { 4 } },
                                       { .rank = 0 } };
    hl_context *ctx = test_context(NULL, 1);
    char label[80];

    (void)state;
    for (uint64_t seed = 0; seed < GRAPHS; seed++) {
        model m = model_make(ctx, 21);
        hl_node pool[STEPS + 10], all[MOST], out[8], loss, x[2];
        size_t count = 0, outs = 0;
        double *every[MOST], *few[8];
        for (size_t i = 0; i < 10; i++)
            pool[count++] = model_leaf(&m, i < 5, &leaves[i % 5], 2 * i + 100 * seed);
        for (uint64_t step = 0; step < STEPS; step++) {
            hl_node n = random_node(m.g, seed, step, pool, count);
            CHECK_OK(ctx, hl_graph_status(m.g));
            if (n != HL_NONE)
                pool[count++] = n;
        }
        for (size_t i = 0; i < 4; i++)
            out[outs++] = pool[count - 1 - i];
        x[0] = pool[seed % 5];
        x[1] = pool[5 + seed % 5];
        loss = hl_sum_all(m.g, hl_tanh(m.g, out[0]));
        CHECK_OK(ctx, hl_vjp(m.g, 1, &loss, NULL, 2, x, NULL, out + outs));
        outs += 2;
        size_t nodes = hl_graph_count(m.g);
        assert_true(nodes <= MOST);
        for (size_t n = 0; n < nodes; n++)
            all[n] = (hl_node)n + 1;
        run_options(&m, &(hl_plan_options){ .dtype = HL_F64, .no_fusion = 1 }, nodes, all, every);
        for (int variant = 0; variant < 3; variant++) {
            hl_plan_options o = { .dtype = HL_F64, .no_fusion = variant == 1, .chunk_rows = variant == 2 ? 16 : 0 };
            run_options(&m, &o, outs, out, few);
            for (size_t i = 0; i < outs; i++) {
                snprintf(label, sizeof label, "graph %d, variant %d, output %zu", (int)seed, variant, i);
                CHECK_LE(scaled_error(few[i], every[out[i] - 1], model_count(&m, out[i]), 1e-3), 1e-11, label);
            }
        }
        model_free(&m);
    }
    hl_context_free(ctx);
}

/* ---- memory ---- */

/* A run allocates nothing, whatever the rows; the plan's memory is what it was; the graph may be gone. */
static void test_no_allocation(void **state)
{
    static const size_t sizes[] = { 1, 17, 3000, 0, 100 };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 2);
    model m = zoo_model(ctx, 3000);
    hl_plan *plan = model_plan(&m, HL_F32, ZOO_OUT, zoo_node);
    hl_plan_info info = hl_plan_describe(plan);
    double *out[ZOO_OUT];

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        long calls = allocator.calls, live = allocator.live;
        m.rows = sizes[i];
        model_run(&m, plan, ZOO_OUT, zoo_node, out);
        assert_int_equal(allocator.calls, calls);
        assert_int_equal(allocator.live, live);
        assert_int_equal(hl_plan_describe(plan).bytes, info.bytes);
    }
    hl_plan_free(plan);
    model_free(&m);
    test_context_free(ctx, &allocator);
}

static void test_plan_outlives_graph(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_plan *plan;
    float x[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } }, w[6] = { 1, 2, 3, 4, 5, 6 }, y[2][2];

    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node c = hl_const_array(g, 1, (size_t[]){ 2 }, (double[]){ 10, 20 });
    hl_node n = hl_linear_masked(g, hl_gather(g, hl_input(g, "x", 1, (size_t[]){ 3 }), 0, 3, (size_t[]){ 2, 1, 0 }),
                                 hl_param(g, "w", 2, (size_t[]){ 2, 3 }), (uint32_t[]){ 0, 1 }, (uint32_t[]){ 2, 3 });
    n = hl_add(g, n, c);
    CHECK_OK(ctx, hl_plan_create(ctx, g, 1, &n, NULL, &plan));
    hl_graph_free(g);
    CHECK_OK(ctx, hl_plan_run(plan, 2, (const void *[]){ x }, (const void *[]){ w }, (void *[]){ y }));
    CHECK_NEAR(y[0][0], 10 + 1 * 3 + 2 * 2, 0, "unit 0");
    CHECK_NEAR(y[0][1], 20 + 5 * 2 + 6 * 1, 0, "unit 1");
    CHECK_NEAR(y[1][0], 10 + 1 * 6 + 2 * 5, 0, "unit 0");
    CHECK_NEAR(y[1][1], 20 + 5 * 5 + 6 * 4, 0, "unit 1");
    hl_plan_free(plan);
    hl_plan_free(NULL);
    hl_context_free(ctx);
}

static hl_status build_and_run(hl_context *ctx, void *user)
{
    hl_graph *g = NULL;
    hl_plan *plan = NULL;
    hl_node out[ZOO_OUT];
    hl_status status = hl_graph_create(ctx, &g);
    (void)user;
    if (status == HL_OK) {
        zoo_outputs(g, out);
        status = hl_plan_create(ctx, g, ZOO_OUT, out, NULL, &plan);
    }
    if (status != HL_OK)
        assert_null(plan);
    hl_plan_free(plan);
    hl_graph_free(g);
    return status;
}

static void test_every_allocation(void **state)
{
    (void)state;
    check_every_allocation(1, build_and_run, NULL);
}

/* ---- sums over rows ---- */

/* Sums of many rows in single precision are as good as their terms: 0.1 summed 200,000 times naively is off by 1e-3. In all
 * the ways there are: plain, along an axis, outer products with and without one, convolution. */
static void test_long_sums(void **state)
{
    enum { ROWS = 200000 };
    static const size_t chunks[] = { 0, 16, 1000 };
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    float *x = malloc(sizeof *x * ROWS), out[5][8];
    hl_node n[5];

    (void)state;
    assert_non_null(x);
    for (size_t i = 0; i < ROWS; i++)
        x[i] = 0.1f;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node in = hl_input(g, "x", 0, NULL), w = hl_param(g, "w", 2, (size_t[]){ 2, 3 }),
            k = hl_param(g, "k", 4, (size_t[]){ 1, 1, 1, 1 });
    hl_node wide = hl_add(g, hl_broadcast(g, in, 2, (size_t[]){ 4, 3 }),
                          hl_const_array(g, 2, (size_t[]){ 4, 3 }, (double[12]){ 0 }));
    hl_node flat =
        hl_add(g, hl_broadcast(g, in, 1, (size_t[]){ 3 }), hl_const_array(g, 1, (size_t[]){ 3 }, (double[3]){ 0 }));
    n[0] = hl_sum_rows(g, in);
    n[1] = hl_graph_add(g, &hl_op_sum_rows, 1, &wide, &(hl_attr){ .i = { 1 } });
    hl_node y = hl_linear(g, flat, w), z = hl_linear(g, wide, w),
            image = hl_conv(g, hl_reshape(g, flat, 3, (size_t[]){ 1, 1, 3 }), k, NULL);
    CHECK_OK(ctx, hl_vjp(g, 1, &y, NULL, 1, &w, NULL, &n[2]));
    CHECK_OK(ctx, hl_vjp(g, 1, &z, NULL, 1, &w, NULL, &n[3]));
    CHECK_OK(ctx, hl_vjp(g, 1, &image, NULL, 1, &k, NULL, &n[4]));
    for (size_t c = 0; c < 2 * sizeof chunks / sizeof *chunks; c++) {
        static const double terms[] = { 1, 4, 1, 4, 3 }, tolerance[] = { 1e-6, 1e-6, 1e-6, 1e-6, 4e-6 };
        static const size_t counts[] = { 1, 3, 6, 6, 1 };
        hl_plan *plan;
        CHECK_OK(ctx, hl_plan_create(ctx, g, 5, n,
                                     &(hl_plan_options){ .chunk_rows = chunks[c / 2], .isa = c % 2 ? "base" : NULL },
                                     &plan));
        float weights[6] = { 0 };
        CHECK_OK(ctx, hl_plan_run(plan, ROWS, (const void *[]){ x }, (const void *[]){ weights, weights },
                                  (void *[]){ out[0], out[1], out[2], out[3], out[4] }));
        for (size_t i = 0; i < 5; i++)
            for (size_t e = 0; e < counts[i]; e++) {
                double expected = terms[i] * ROWS * (double)0.1f;
                char label[60];
                snprintf(label, sizeof label, "sum %zu in chunks of %zu%s", i, chunks[c / 2], c % 2 ? ", base" : "");
                CHECK_NEAR(out[i][e], expected, tolerance[i] * expected, label);
            }
        hl_plan_free(plan);
    }
    hl_graph_free(g);
    free(x);
    hl_context_free(ctx);
}

/* No rows: sums are 0, what follows from them is computed, batched outputs are left alone, and no input is needed. */
static void test_no_rows(void **state)
{
    hl_context *ctx = test_context(NULL, 2);
    hl_graph *g;
    hl_plan *plan;

    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node x = hl_input(g, "x", 1, (size_t[]){ 2 }), p = hl_param(g, "p", 2, (size_t[]){ 3, 2 }),
            y = hl_linear(g, x, p), gp;
    CHECK_OK(ctx, hl_vjp(g, 1, &y, NULL, 1, &p, NULL, &gp));
    hl_node sum = hl_sum_rows(g, y), out[] = { sum, hl_exp(g, sum), y, gp, hl_exp(g, p) };
    for (int dtype = 0; dtype < 2; dtype++) {
        double w[6] = { 0 }, s[3] = { 7, 7, 7 }, e[3] = { 0 }, grad[6] = { 7, 7, 7, 7, 7, 7 }, ep[6] = { 0 };
        CHECK_OK(ctx, hl_plan_create(ctx, g, 5, out, &(hl_plan_options){ .dtype = dtype ? HL_F64 : HL_F32 }, &plan));
        CHECK_OK(ctx, hl_plan_run(plan, 0, NULL, (const void *[]){ w }, (void *[]){ s, e, NULL, grad, ep }));
        for (size_t i = 0; i < 6; i++) {
            CHECK_NEAR(dtype ? grad[i] : ((float *)grad)[i], 0, 0, "gradient");
            CHECK_NEAR(dtype ? ep[i] : ((float *)ep)[i], 1, 0, "prologue");
            CHECK_NEAR(dtype ? s[i / 2] : ((float *)s)[i / 2], 0, 0, "sum");
            CHECK_NEAR(dtype ? e[i / 2] : ((float *)e)[i / 2], 1, 0, "epilogue");
        }
        hl_plan_free(plan);
    }
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* ---- outputs of all kinds ---- */

static void test_outputs(void **state)
{
    enum { ROWS = 18, COUNT = 20 };
    hl_context *ctx = test_context(NULL, 1);

    (void)state;
    for (int dtype = 0; dtype < 2; dtype++)
        for (int no_fusion = 0; no_fusion < 2; no_fusion++) {
            model m = model_make(ctx, ROWS);
            hl_graph *g = m.g;
            hl_node x = model_leaf(&m, true, SHAPE(2, 3), 1), p = model_leaf(&m, false, SHAPE(3), 1);
            hl_node s = hl_sum_rows(g, x), y = hl_sin(g, x), flat = hl_reshape(g, x, 1, (size_t[]){ 6 });
            hl_node array = hl_const_array(g, 1, (size_t[]){ 2 }, (double[]){ 3, 4 });
            hl_shape batched = { .rank = 1, .batched = true, .dim = { 3 } };
            hl_node out[COUNT] = {
                y,
                y,
                x,
                x,
                p,
                p,
                hl_const(g, 2.5),
                array,
                flat,
                hl_reshape(g, y, 1, (size_t[]){ 6 }),
                hl_stop(g, x),
                hl_stop(g, p),
                s,
                s,
                hl_reshape(g, s, 1, (size_t[]){ 6 }),
                hl_exp(g, s),
                hl_broadcast_shape(g, p, &batched),
                hl_broadcast_shape(g, hl_const(g, 7), &batched),
                hl_broadcast(g, p, 2, (size_t[]){ 2, 3 }),
                hl_sum_rows(g, y) /* wanted once and read by nothing: summed in the user's array */
            };
            double *r[COUNT], sum[6] = { 0 }, sines[6] = { 0 }, tolerance = dtype ? 1e-13 : 1e-5;
            const double *v = model_values(&m, x), *vp = model_values(&m, p);
            hl_plan_options o = { .dtype = dtype ? HL_F64 : HL_F32, .no_fusion = no_fusion };
            run_options(&m, &o, COUNT, out, r);
            for (size_t i = 0; i < ROWS * 6; i++) {
                sum[i % 6] += v[i];
                sines[i % 6] += sin(v[i]);
                CHECK_NEAR(r[0][i], sin(v[i]), tolerance, "a value");
                CHECK_NEAR(r[1][i], sin(v[i]), tolerance, "again");
                CHECK_NEAR(r[2][i], v[i], 0, "an input");
                CHECK_NEAR(r[3][i], v[i], 0, "again");
                CHECK_NEAR(r[8][i], v[i], 0, "a view of an input");
                CHECK_NEAR(r[9][i], sin(v[i]), tolerance, "a view of a value");
                CHECK_NEAR(r[10][i], v[i], 0, "a stopped input");
            }
            for (size_t i = 0; i < ROWS * 3; i++) {
                CHECK_NEAR(r[16][i], vp[i % 3], 0, "a parameter for every row");
                CHECK_NEAR(r[17][i], 7, 0, "a constant for every row");
            }
            for (size_t i = 0; i < 6; i++) {
                CHECK_NEAR(r[4][i % 3], vp[i % 3], 0, "a parameter");
                CHECK_NEAR(r[5][i % 3], vp[i % 3], 0, "again");
                CHECK_NEAR(r[6][0], 2.5, 0, "a constant");
                CHECK_NEAR(r[7][i % 2], 3 + (double)(i % 2), 0, "a constant array");
                CHECK_NEAR(r[11][i % 3], vp[i % 3], 0, "a stopped parameter");
                CHECK_NEAR(r[12][i], sum[i], tolerance * 20, "a sum");
                CHECK_NEAR(r[13][i], sum[i], tolerance * 20, "again");
                CHECK_NEAR(r[14][i], sum[i], tolerance * 20, "a view of a sum");
                CHECK_NEAR(r[15][i], exp(sum[i]), tolerance * 20 * exp(sum[i]), "of a sum");
                CHECK_NEAR(r[18][i], vp[i % 3], 0, "a stretched parameter");
                CHECK_NEAR(r[19][i], sines[i], tolerance * 20, "a sum of its own");
            }
            model_free(&m);
        }
    hl_context_free(ctx);
}

/* One output alone that no instruction makes. */
static void test_single_outputs(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, 3);
    hl_node x = model_leaf(&m, true, SHAPE(2), 1), p = model_leaf(&m, false, SHAPE(2), 1), c = hl_const(m.g, 4);

    (void)state;
    assert_memory_equal(model_eval1(&m, HL_F64, x), model_values(&m, x), 6 * sizeof(double));
    assert_memory_equal(model_eval1(&m, HL_F64, p), model_values(&m, p), 2 * sizeof(double));
    CHECK_NEAR(model_eval1(&m, HL_F64, c)[0], 4, 0, "constant");
    model_free(&m);
    hl_context_free(ctx);
}

/* ---- errors ---- */

static void test_create_errors(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_plan *plan = (hl_plan *)&g;

    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node x = hl_input(g, "x", 1, (size_t[]){ 2 }), bad[] = { x, 99 }, y;
    assert_int_equal(hl_plan_create(NULL, g, 1, &x, NULL, &plan), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_create(ctx, NULL, 1, &x, NULL, &plan), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, &x, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 0, &x, NULL, &plan), HL_ERR_INVALID);
    assert_null(plan);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, NULL, NULL, &plan), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 2, bad, NULL, &plan), HL_ERR_INVALID);
    assert_non_null(strstr(hl_context_message(ctx), "output 1"));
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, &x, &(hl_plan_options){ .dtype = (hl_dtype)9 }, &plan), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, &x, &(hl_plan_options){ .chunk_rows = SIZE_MAX }, &plan),
                 HL_ERR_INVALID);
    assert_int_equal(hl_plan_run(NULL, 1, NULL, NULL, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_plan_describe(NULL).bytes, 0);
    assert_int_equal(hl_plan_text(NULL, NULL, 0), 0);
    /* A value per row that depends on a sum over the rows takes two passes: not in one plan. */
    y = hl_mul(g, x, hl_exp(g, hl_sum_rows(g, x)));
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, &y, NULL, &plan), HL_ERR_UNSUPPORTED);
    assert_null(plan);
    assert_non_null(strstr(hl_context_message(ctx), "sum over rows"));
    y = hl_sum_rows(g, y);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, &y, NULL, &plan), HL_ERR_UNSUPPORTED);
    hl_op missing = hl_op_neg; /* an op whose row names no instruction */
    missing.code = HL_DO_NOTHING;
    missing.name = "missing";
    y = hl_graph_add(g, &missing, 1, &x, NULL);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, &y, NULL, &plan), HL_ERR_UNSUPPORTED);
    assert_non_null(strstr(hl_context_message(ctx), "op missing has no instruction"));
    CHECK_OK(ctx, hl_plan_create(ctx, g, 1, &x, NULL, &plan)); /* other outputs of the graph still compile */
    hl_plan_free(plan);
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* Missing arrays are reported; those that the outputs do not need may be missing. */
static void test_run_errors(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_plan *plan;
    float a[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, w[4] = { 1, 0, 0, 1 }, y[8] = { 0 }, s[2] = { 0 };

    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node unused = hl_input(g, "unused", 1, (size_t[]){ 5 }), x = hl_input(g, "x", 1, (size_t[]){ 2 });
    hl_node spare = hl_param(g, "spare", 1, (size_t[]){ 5 }), p = hl_param(g, "p", 2, (size_t[]){ 2, 2 });
    hl_node out[2] = { hl_linear(g, x, p), 0 };
    out[1] = hl_sum_rows(g, out[0]);
    (void)unused, (void)spare;
    CHECK_OK(ctx, hl_plan_create(ctx, g, 2, out, NULL, &plan));
    const void *in[] = { NULL, a }, *none[] = { NULL, NULL }, *param[] = { NULL, w };
    void *to[] = { y, s }, *no_y[] = { NULL, s }, *no_s[] = { y, NULL };
    CHECK_OK(ctx, hl_plan_run(plan, 4, in, param, to));
    CHECK_NEAR(y[5], 6, 0, "value");
    CHECK_NEAR(s[1], 20, 0, "sum");
    CHECK_STATUS(ctx, hl_plan_run(plan, 4, NULL, param, to), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_run(plan, 4, none, param, to), HL_ERR_INVALID);
    assert_non_null(strstr(hl_context_message(ctx), "input 1"));
    CHECK_STATUS(ctx, hl_plan_run(plan, 4, in, NULL, to), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_run(plan, 4, in, none, to), HL_ERR_INVALID);
    assert_non_null(strstr(hl_context_message(ctx), "parameter 1"));
    CHECK_STATUS(ctx, hl_plan_run(plan, 4, in, param, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_run(plan, 4, in, param, no_y), HL_ERR_INVALID);
    assert_non_null(strstr(hl_context_message(ctx), "output 0"));
    CHECK_STATUS(ctx, hl_plan_run(plan, 4, in, param, no_s), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_plan_run(plan, 0, in, param, no_s), HL_ERR_INVALID); /* a sum is written even without rows */
    CHECK_OK(ctx, hl_plan_run(plan, 0, NULL, param, no_y));
    hl_plan_free(plan);
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* ---- description, depth ---- */

static void test_describe(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = zoo_model(ctx, 1);
    hl_plan *plan = model_plan(&m, HL_F64, ZOO_OUT, zoo_node), *plain, *dense;
    hl_plan_info info = hl_plan_describe(plan), other;
    int length = hl_plan_text(plan, NULL, 0);
    char *text = malloc((size_t)length + 1), small[10];

    (void)state;
    assert_int_equal(info.dtype, HL_F64);
    assert_true(info.chunk_rows >= 16 && info.chunk_rows % 16 == 0);
    assert_true(info.nodes > 0 && info.nodes <= hl_graph_count(m.g) && info.segments > 1 && info.fused > 0);
    assert_true(info.instructions > info.fused && info.bytes > 0);
    assert_true(info.gemm_flops_per_row > 0 && info.flops_per_row > info.gemm_flops_per_row);
    assert_non_null(text);
    assert_int_equal(hl_plan_text(plan, text, (size_t)length + 1), length);
    assert_int_equal(strlen(text), length);
    assert_non_null(strstr(text, "tanh"));
    assert_int_equal(hl_plan_text(plan, small, sizeof small), length);
    assert_memory_equal(small, text, sizeof small - 1);
    CHECK_OK(ctx, hl_plan_create(ctx, m.g, ZOO_OUT, zoo_node, &(hl_plan_options){ .dtype = HL_F64, .no_fusion = 1 },
                                 &plain));
    assert_int_equal(hl_plan_describe(plain).fused, 0);
    CHECK_OK(ctx, hl_plan_create(ctx, m.g, ZOO_OUT, zoo_node, &(hl_plan_options){ .dtype = HL_F64, .dense_masks = 1 },
                                 &dense));
    other = hl_plan_describe(dense);
    assert_true(other.gemm_flops_per_row > info.gemm_flops_per_row); /* masked zeros are multiplied */
    free(text);
    hl_plan_free(plan);
    hl_plan_free(plain);
    hl_plan_free(dense);
    model_free(&m);
    hl_context_free(ctx);
}

/* One instruction computes the results of so many others. */
static void check_joined(const hl_plan *plan, int count)
{
    int joined = 0, followers = 0;
    for (size_t i = 0; i < plan->instrs; i++) {
        joined = plan->instr[i].joined > joined ? plan->instr[i].joined : joined;
        followers += plan->instr[i].joined < 0;
    }
    assert_int_equal(joined, count);
    assert_int_equal(followers, count);
}

/* Swish, its slope with a factor and its second derivative are one pass, and so are tanh and a product with its slope, also where the
 * factor comes from a product that would run after them. A factor that follows from swish is computed after it. */
static void test_one_pass(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_plan *plan;

    (void)state;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node x = hl_input(g, "x", 1, (size_t[]){ 4 }), v = hl_input(g, "v", 1, (size_t[]){ 4 }),
            w = hl_param(g, "w", 2, (size_t[]){ 4, 4 });
    hl_node z = hl_add(g, x, x), y = hl_swish(g, z), factor = hl_linear(g, v, w);
    hl_node out[] = { y, hl_mul(g, hl_swish_slope(g, z), factor), hl_linear(g, y, w), hl_swish_curve(g, z) };
    CHECK_OK(ctx, hl_plan_create(ctx, g, 4, out, NULL, &plan));
    check_joined(plan, 2);
    hl_plan_free(plan);
    y = hl_tanh(g, z);
    hl_node by_slope[] = { y, hl_mul(g, factor, hl_sub(g, hl_const(g, 1), hl_mul(g, y, y))), hl_linear(g, y, w) };
    CHECK_OK(ctx, hl_plan_create(ctx, g, 3, by_slope, NULL, &plan));
    check_joined(plan, 1);
    hl_plan_free(plan);
    /* The factor needs swish itself: no waiting for each other. */
    out[1] = hl_mul(g, hl_swish_slope(g, z), out[2]);
    CHECK_OK(ctx, hl_plan_create(ctx, g, 2, out, NULL, &plan));
    float in[4] = { 0.5f, -1, 2, -3 }, weight[16] = { 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4 }, got[2][4];
    CHECK_OK(ctx, hl_plan_run(plan, 1, (const void *[]){ in, in }, (const void *[]){ weight },
                              (void *[]){ got[0], got[1] }));
    for (int i = 0; i < 4; i++) {
        double at = 2 * (double)in[i], s = 1 / (1 + exp(-at)), value = at * s;
        CHECK_NEAR(got[0][i], value, 1e-6, "swish");
        CHECK_NEAR(got[1][i], (s + value * (1 - s)) * (i + 1) * value, 1e-5, "slope");
    }
    hl_plan_free(plan);
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* All results of one pass are written while its arguments are still read, so only the last of them may take an argument's place. Here z
 * begins after a shorter value that is no longer needed: the first result would take the place of both and cover z from below, and the second
 * would cover the end of z from its first entry on. */
static void test_one_pass_memory(void **state)
{
    enum { SHORT = 20, LONG = 32 };
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g;
    hl_plan *plan;
    float x[SHORT] = { 0 }, v[LONG], first[SHORT], got[LONG];

    (void)state;
    for (int i = 0; i < LONG; i++)
        v[i] = (float)(i - 20) / 8;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node before = hl_exp(g, hl_input(g, "x", 1, (size_t[]){ SHORT })), by = hl_input(g, "v", 1, (size_t[]){ LONG });
    hl_node z = hl_sin(g, by), end = hl_exp(g, before), tanh_z = hl_tanh(g, z), swish_z = hl_swish(g, z);
    hl_node of_tanh = hl_mul(g, by, hl_sub(g, hl_const(g, 1), hl_mul(g, tanh_z, tanh_z)));
    hl_node of_swish = hl_mul(g, hl_swish_slope(g, z), by);
    hl_node last[] = { hl_sub(g, of_tanh, tanh_z), hl_sub(g, of_swish, swish_z) };
    for (int k = 0; k < 2; k++) {
        CHECK_OK(ctx, hl_plan_create(ctx, g, 2, (hl_node[]){ end, last[k] }, NULL, &plan));
        check_joined(plan, 1);
        CHECK_OK(ctx, hl_plan_run(plan, 1, (const void *[]){ x, v }, NULL, (void *[]){ first, got }));
        for (int i = 0; i < LONG; i++) {
            double at = sin((double)v[i]), t = tanh(at), s = 1 / (1 + exp(-at));
            double want = k ? (s + at * s * (1 - s)) * (double)v[i] - at * s : (double)v[i] * (1 - t * t) - t;
            CHECK_NEAR(got[i], want, 1e-6, k ? "swish" : "tanh");
        }
        hl_plan_free(plan);
    }
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* Of the processor, so that a busy machine changes little. */
static double now(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* A deep and a wide graph compile in reasonable time. */
static void test_deep(void **state)
{
    enum { DEEP = 5000 };
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, 3);
    hl_node x = model_leaf(&m, true, SHAPE(2), 0), w = model_leaf(&m, false, SHAPE(2, 2), 0), y = x, sum = x, gx;
    double start = now(), *out, value[2];

    (void)state;
    for (int i = 0; i < DEEP / 4; i++) {
        y = hl_scale(m.g, 0.9, hl_sin(m.g, hl_add(m.g, y, x)));
        sum = hl_add(m.g, sum, i % 10 ? y : hl_linear(m.g, y, w));
    }
    CHECK_OK(ctx, hl_vjp(m.g, 1, &sum, NULL, 1, &x, NULL, &gx));
    assert_true(hl_graph_count(m.g) > DEEP);
    out = model_eval1(&m, HL_F64, gx);
    assert_true(isfinite(out[0]));
    out = model_eval1(&m, HL_F64, y);
    for (size_t r = 0; r < 3; r++)
        for (size_t e = 0; e < 2; e++) {
            double v = model_values(&m, x)[2 * r + e];
            value[e] = v;
            for (int i = 0; i < DEEP / 4; i++)
                value[e] = 0.9 * sin(value[e] + v);
            CHECK_NEAR(out[2 * r + e], value[e], 1e-10, "deep");
        }
    CHECK_LE(now() - start, 15, "processor seconds to compile a graph of more than 5000 nodes");
    model_free(&m);
    hl_context_free(ctx);
}

/* When a plan goes back to one thread: after a shared run that gained nothing, and after waking threads twice without a shared run between, unless
 * the second run began while they may still have been waking. */
static void test_sharing(void **state)
{
    hl_sharing s = { 0 };
    (void)state;
    hl_share_learn(&s, 2, 1, 1.5, 0.1);
    assert_true(s.alone_until == 0);
    hl_share_woke(&s, 2, 2.5);
    assert_true(s.alone_until == 0);
    hl_share_woke(&s, 2.002, 2.003);
    assert_true(s.alone_until == 0);
    hl_share_learn(&s, 2, 3, 3.5, 0.1);
    hl_share_woke(&s, 4, 4.5);
    assert_true(s.alone_until == 0);
    hl_share_woke(&s, 5, 5.5);
    assert_true(s.alone_until > 6);
    double first = s.alone_until - 5.5;
    hl_share_woke(&s, 100, 100.5);
    hl_share_woke(&s, 101, 101.5); /* twice as long */
    assert_float_equal(s.alone_until - 101.5, 2 * first, 1e-9);
    for (int i = 0; i < 3; i++)
        hl_share_learn(&s, 2, 200, 200.5, 0.1);
    hl_share_learn(&s, 2, 300, 300.5, 0.6);
    assert_float_equal(s.alone_until - 300.5, first, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_rows_independent),
        cmocka_unit_test(test_isas),
        cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_no_allocation),
        cmocka_unit_test(test_plan_outlives_graph),
        cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_long_sums),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_single_outputs),
        cmocka_unit_test(test_create_errors),
        cmocka_unit_test(test_run_errors),
        cmocka_unit_test(test_describe),
        cmocka_unit_test(test_one_pass),
        cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_one_pass_memory),
        cmocka_unit_test(test_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
