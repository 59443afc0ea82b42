/* test_spec.c - what a network may be, its parameters, and what specifications and calls it refuses. */
#include "net_support.h"

static const hl_net_spec small = { .dim = 2, .features = 2, .hidden = 3, .hidden_layers = 1, .width = 3, .layers = 1 };

/* ---- specifications ---- */

static void test_defaults(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_net_spec spec = { .dim = 4, .time = 7 };
    hl_net *net;
    (void)state;
    CHECK_OK(ctx, hl_net_create(ctx, &spec, &net));
    hl_net_spec s = hl_net_describe(net);
    assert_true(s.dim == 4 && s.context == 0 && s.time == 1 && s.features == 16 && s.hidden == 64 &&
                s.hidden_layers == 2);
    assert_true(s.width == 64 && s.layers == 2 && s.dtype == HL_F32);
    assert_string_equal(s.conditioner, "made");
    assert_string_equal(s.transformer, "shared");
    assert_string_equal(s.activation, "tanh");
    for (size_t i = 0; i < hl_net_param_count(net); i++) /* all parameters 0 */
        for (size_t k = 0; k < param(net, i).size; k++)
            assert_true(((float *)param(net, i).values)[k] == 0);
    hl_net_free(net);
    hl_net_free(NULL);
    test_context_free(ctx, &allocator);
}

static void test_bad_specs(void **state)
{
    const struct {
        hl_net_spec spec;
        const char *message;
    } bad[] = {
        { { .dim = 0 }, "dim is 0; it must be in 1..1000000" },
        { { .dim = 1000001 }, "dim is 1000001; it must be in 1..1000000" },
        { { .dim = SIZE_MAX }, "dim is 18446744073709551615" },
        { { .dim = 2, .context = 1000001 }, "context is 1000001" },
        { { .dim = 2, .features = 3 }, "features is 3; conditioner made needs an even number" },
        { { .dim = 2, .features = 65538 }, "features is 65538" },
        { { .dim = 2, .hidden = SIZE_MAX }, "hidden is" },
        { { .dim = 2, .hidden = (1 << 20) + 1 }, "hidden is 1048577" },
        { { .dim = 2, .width = (1 << 20) + 1 }, "width is 1048577" },
        { { .dim = 2, .hidden_layers = -2 }, "hidden_layers is -2; it must be in 1..64, or -1 for none" },
        { { .dim = 2, .hidden_layers = 65 }, "hidden_layers is 65" },
        { { .dim = 2, .layers = -7 }, "layers is -7" },
        { { .dim = 2, .layers = 65 }, "layers is 65" },
        { { .dim = 2, .activation = "relu" }, "unknown activation 'relu'; use one of: tanh, " },
        { { .dim = 2, .activation = "" }, "unknown activation ''" },
        { { .dim = 2, .transformer = "Shared" }, "unknown transformer 'Shared'; use one of: shared, " },
        { { .dim = 2, .conditioner = "mad" }, "unknown conditioner 'mad'; use one of: made, " },
        { { .dim = 6, .conditioner = "conv" }, "needs an image of channels x height x width = dim; it is 0 x 0 x 0" },
        { { .dim = 6, .conditioner = "conv", .image = { 1, 2, 2 } }, "it is 1 x 2 x 2, dim is 6" },
        { { .dim = 6, .conditioner = "conv", .image = { 1, 2, 3 }, .kernel = 4 }, "kernel is 4; it must be odd" },
        { { .dim = 6, .conditioner = "conv", .image = { 1, 2, 3 }, .features = 3 }, "needs an even number" },
        { { .dim = 6, .conditioner = "conv", .image = { 1, 2, 3 }, .hidden_layers = -1 }, "at least one hidden layer" },
        { { .dim = 20000, .conditioner = "attention" }, "takes at most 16384; use sum or tree" },
        { { .dim = 2, .order = (const size_t[]){ 0, 2 } },
          "order[1] is 2; an order holds each of the columns 0..1 once" },
        { { .dim = 2, .conditioner = "tree", .order = (const size_t[]){ 1, 1 } }, "order[1] is 1" },
        { { .dim = 2, .transformer = "monotone", .activation = "swish" }, "use one of: tanh, softplus, elu, sigmoid" },
        { { .dim = 2, .reflections = 65 }, "reflections is 65; it must be in 0..64" },
        { { .dim = 2, .mlp = 1 << 21 }, "mlp is" },
        { { .dim = 2, .plus = &(const hl_net_spec){ .conditioner = "nobody" } }, "unknown conditioner 'nobody'" },
        { { .dim = 2, .dtype = (hl_dtype)2 }, "unknown dtype 2" },
        { { .dim = 2, .dtype = (hl_dtype)1000 }, "unknown dtype 1000" },
    };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    char long_name[2000];
    (void)state;
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    hl_net_spec long_spec = { .dim = 2, .activation = long_name };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hl_net *net = (hl_net *)&allocator;
        CHECK_STATUS(ctx, hl_net_create(ctx, &bad[i].spec, &net), HL_ERR_INVALID);
        check_message(ctx, bad[i].message);
        assert_null(net);
    }
    hl_net *net;
    CHECK_STATUS(ctx, hl_net_create(ctx, &long_spec, &net), HL_ERR_INVALID);
    check_message(ctx, "softplus");
    test_context_free(ctx, &allocator);
}

/* An allocator that refuses large blocks, as a real one would whole terabytes. */
static void *modest_alloc(void *user, size_t bytes)
{
    (void)user;
    return bytes > 64 << 20 ? NULL : malloc(bytes);
}

static void modest_release(void *user, void *pointer)
{
    (void)user;
    free(pointer);
}

/* Within the limits, but more than any memory. */
static void test_huge_specs(void **state)
{
    static const hl_net_spec huge[] = {
        { .dim = 1000000, .features = 65536, .hidden = 1 << 20, .width = 1 << 20, .context = 1000000, .time = 1 },
        { .dim = 1000000, .transformer = "per-dimension", .width = 1 << 20, .layers = 64, .dtype = HL_F64 },
        { .dim = 1000000, .transformer = "per-dimension", .width = 1 << 20, .context = 1000000, .layers = 1 },
        { .dim = 1000000, .hidden = 1 << 20 },
        { .dim = 2, .hidden = 1 << 20, .hidden_layers = 64 },
        { .dim = 2, .features = 65536, .hidden = 1 << 20 },
        { .dim = 2, .width = 1 << 20 },
    };
    hl_context *ctx;
    hl_net *net;
    (void)state;
    assert_int_equal(hl_context_create(&(hl_context_options){ .alloc = modest_alloc, .release = modest_release }, &ctx),
                     HL_OK);
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++) {
        hl_status status = hl_net_create(ctx, &huge[i], &net);
        if (status != HL_ERR_NOMEM && status != HL_ERR_INVALID && status != HL_ERR_SHAPE)
            fail_msg("huge specification %zu: \"%s\"", i, hl_status_text(status));
        assert_string_not_equal(hl_context_message(ctx), "");
        assert_null(net);
    }
    hl_context_free(ctx);
}

static void test_null(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_net *net = make_net(ctx, &small), *other;
    hl_net_param p;
    hl_operator *op;
    hl_graph *g;
    hl_node node[MAX_PIECES];
    double x[2] = { 0 };
    (void)state;
    CHECK_STATUS(ctx, hl_net_create(NULL, &small, &other), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_create(ctx, NULL, &other), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_create(ctx, &small, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_init(NULL, 1), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_check(NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_save(NULL, "x"), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_save(net, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_load(NULL, "x", &other), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_load(ctx, NULL, &other), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_load(ctx, "x", NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_param_get(NULL, 0, &p), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_param_get(net, 0, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_param_get(net, hl_net_param_count(net), &p), HL_ERR_INVALID);
    assert_int_equal(hl_net_param_count(NULL), 0);
    assert_int_equal(hl_net_size(NULL), 0);
    assert_int_equal(hl_net_describe(NULL).dim, 0);
    CHECK_STATUS(ctx, hl_operator_create(NULL, NULL, &op), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_operator_create(net, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_operator_eval(NULL, 1, x, NULL, NULL, x, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_operator_vjp(NULL, 1, x, NULL, NULL, x, NULL, NULL, x, NULL, NULL, NULL), HL_ERR_INVALID);
    assert_null(hl_operator_plan(NULL));
    hl_operator_free(NULL);
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_net_nodes n = { .x = hl_input(g, "x", 1, &small.dim), .param = node };
    CHECK_STATUS(ctx, hl_net_build(NULL, g, 0, HL_TAYLOR, &n), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_build(net, NULL, 0, HL_TAYLOR, &n), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_build(net, g, 0, HL_TAYLOR, NULL), HL_ERR_INVALID);
    n.param = NULL;
    CHECK_STATUS(ctx, hl_net_build(net, g, 0, HL_TAYLOR, &n), HL_ERR_INVALID);
    hl_graph_free(g);
    hl_net_free(net);
    test_context_free(ctx, &allocator);
}

/* Inputs that do not fit the network, and parameters that are not its own. */
static void test_bad_build(void **state)
{
    enum { NONE, SCALAR, PAIR, TRIPLE, WRONG };
    static const struct {
        int x, t, context, params;
        hl_status status;
        const char *message;
    } cases[] = {
        { PAIR, SCALAR, TRIPLE, NONE, HL_OK, "" },
        { TRIPLE, SCALAR, TRIPLE, NONE, HL_ERR_SHAPE, "x must have rank 1 and 2 values" },
        { NONE, SCALAR, TRIPLE, NONE, HL_ERR_INVALID, "x is not a node" },
        { WRONG, SCALAR, TRIPLE, NONE, HL_ERR_INVALID, "x is not a node" },
        { PAIR, NONE, TRIPLE, NONE, HL_ERR_INVALID, "t is not a node" },
        { PAIR, PAIR, TRIPLE, NONE, HL_ERR_SHAPE, "t must have rank 0" },
        { PAIR, SCALAR, NONE, NONE, HL_ERR_INVALID, "context is not a node" },
        { PAIR, SCALAR, PAIR, NONE, HL_ERR_SHAPE, "context must have rank 1 and 3 values" },
        { PAIR, SCALAR, TRIPLE, PAIR, HL_ERR_SHAPE, "" },
        { PAIR, SCALAR, TRIPLE, WRONG, HL_ERR_INVALID, "" },
    };
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = small;
    spec.time = 1;
    spec.context = 3;
    hl_net *net = make_net(ctx, &spec), *plain = make_net(ctx, &small);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hl_graph *g;
        hl_node node[MAX_PIECES];
        CHECK_OK(ctx, hl_graph_create(ctx, &g));
        hl_node choice[] = { HL_NONE, hl_input(g, "t", 0, NULL), hl_input(g, "x", 1, (size_t[]){ 2 }),
                             hl_input(g, "c", 1, (size_t[]){ 3 }), 1000 };
        for (size_t k = 0; k < MAX_PIECES; k++)
            node[k] = choice[cases[i].params];
        hl_net_nodes n = { .x = choice[cases[i].x],
                           .t = choice[cases[i].t],
                           .context = choice[cases[i].context],
                           .param = node,
                           .reuse = cases[i].params != NONE };
        CHECK_STATUS(ctx, hl_net_build(net, g, 0, HL_TAYLOR, &n), cases[i].status);
        if (cases[i].status)
            check_message(ctx, cases[i].message);
        hl_graph_free(g);
    }
    hl_graph *g;
    hl_node node[MAX_PIECES];
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_net_nodes n = { .x = hl_input(g, "x", 1, (size_t[]){ 2 }), .t = hl_input(g, "t", 0, NULL), .param = node };
    CHECK_STATUS(ctx, hl_net_build(plain, g, 0, HL_TAYLOR, &n), HL_ERR_INVALID);
    check_message(ctx, "the network has no t");
    hl_graph_free(g);
    hl_net_free(net);
    hl_net_free(plain);
    test_context_free(ctx, NULL);
}

static void test_bad_operator(void **state)
{
    static const int orders[] = { -2, 33, -1000, 1 << 30 };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_net_spec spec = small;
    spec.time = 1;
    spec.context = 1;
    hl_net *net = make_net(ctx, &spec);
    hl_operator *op;
    float x[2] = { 1, 2 }, one = 1, f[2], div;
    void *d[1] = { f };
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        CHECK_STATUS(ctx, hl_operator_create(net, &(hl_operator_options){ .order = orders[i] }, &op), HL_ERR_INVALID);
        check_message(ctx, "is not in 1..32, nor -1");
        assert_null(op);
    }
    CHECK_STATUS(ctx, hl_operator_create(net, &(hl_operator_options){ .plan.isa = "z80" }, &op), HL_ERR_UNSUPPORTED);
    assert_null(op);
    CHECK_STATUS(ctx, hl_operator_create(net, &(hl_operator_options){ .plan.chunk_rows = SIZE_MAX }, &op),
                 HL_ERR_INVALID);
    assert_null(op);

    CHECK_OK(ctx, hl_operator_create(net, NULL, &op));
    CHECK_STATUS(ctx, hl_operator_eval(op, 1, NULL, &one, &one, f, NULL, NULL), HL_ERR_INVALID);
    check_message(ctx, "x is NULL");
    CHECK_STATUS(ctx, hl_operator_eval(op, 1, x, NULL, &one, f, NULL, NULL), HL_ERR_INVALID);
    check_message(ctx, "t is NULL");
    CHECK_STATUS(ctx, hl_operator_vjp(op, 1, x, &one, NULL, x, NULL, NULL, f, NULL, NULL, NULL), HL_ERR_INVALID);
    check_message(ctx, "context is NULL");
    assert_int_equal(hl_plan_describe(hl_operator_plan(op)).dtype, HL_F32);
    hl_operator_free(op);

    CHECK_OK(ctx, hl_operator_create(net, &(hl_operator_options){ .order = -1, .plan.dtype = HL_F64 }, &op));
    CHECK_OK(ctx, hl_operator_eval(op, 1, x, &one, &one, f, NULL, NULL));
    CHECK_STATUS(ctx, hl_operator_eval(op, 1, x, &one, &one, f, d, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_operator_eval(op, 1, x, &one, &one, f, NULL, &div), HL_ERR_INVALID);
    check_message(ctx, "created for f alone");
    hl_operator_free(op);

    CHECK_OK(ctx, hl_operator_create(net, &(hl_operator_options){ .no_gradient = 1 }, &op));
    CHECK_OK(ctx, hl_operator_eval(op, 1, x, &one, &one, f, d, &div));
    CHECK_STATUS(ctx, hl_operator_vjp(op, 1, x, &one, &one, x, NULL, NULL, f, NULL, NULL, NULL), HL_ERR_INVALID);
    check_message(ctx, "created without gradients");
    hl_operator_free(op);
    hl_net_free(net);
    test_context_free(ctx, &allocator);
}

/* ---- weights ---- */

/* The same seed gives the same weights in both precisions; they have variance 1 / inputs, and biases are 0. */
static void test_init(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_net_spec spec = { .dim = 20, .hidden = 200, .width = 150, .dtype = HL_F64 };
    hl_net *net = make_net(ctx, &spec), *again = make_net(ctx, &spec), *single;
    size_t set = 0;
    (void)state;
    spec.dtype = HL_F32;
    single = make_net(ctx, &spec);
    CHECK_OK(ctx, hl_net_init(again, 6));
    for (size_t i = 0; i < hl_net_param_count(net); i++) {
        hl_net_param p = param(net, i);
        double *w = p.values, sum = 0, square = 0;
        bool bias = strstr(p.name, ".bias"), differs = false;
        size_t count = 0;
        for (size_t k = 0; k < p.size; k++) {
            assert_true((float)w[k] == ((float *)param(single, i).values)[k]);
            differs = differs || w[k] != ((double *)param(again, i).values)[k];
            count += w[k] != 0;
            sum += w[k];
            square += w[k] * w[k];
        }
        assert_int_equal(differs, !bias);
        set += bias ? p.size : count;
        if (strcmp(p.name, "transformer.1.weight") == 0) { /* 150 x 150, dense */
            CHECK_NEAR(sum / (double)count * sqrt(150), 0, 0.03, p.name);
            CHECK_NEAR(square / (double)count * 150, 1, 0.05, p.name);
        }
    }
    assert_int_equal(hl_net_size(net), set); /* trainable values are those that are not masked */
    CHECK_OK(ctx, hl_net_init(again, 5));
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        assert_memory_equal(param(net, i).values, param(again, i).values, param(net, i).size * sizeof(double));
    hl_net_free(net);
    hl_net_free(again);
    hl_net_free(single);
    test_context_free(ctx, &allocator);
}

/* The parameters' number and shapes, written out for one network of each kind: files depend on them. */
static void test_params(void **state)
{
    static const struct {
        const char *name;
        size_t shared[3], per_dimension[3]; /* 0 ends */
    } expected[] = {
        { "conditioner.forward.0.weight", { 3, 2 }, { 3, 2 } },
        { "conditioner.forward.0.bias", { 3 }, { 3 } },
        { "conditioner.forward.0.weight_t", { 3 }, { 3 } },
        { "conditioner.forward.0.weight_c", { 3, 4 }, { 3, 4 } },
        { "conditioner.forward.1.weight", { 2, 3 }, { 2, 3 } },
        { "conditioner.forward.1.bias", { 2 }, { 2 } },
        { "conditioner.backward.0.weight", { 3, 2 }, { 3, 2 } },
        { "conditioner.backward.0.bias", { 3 }, { 3 } },
        { "conditioner.backward.0.weight_t", { 3 }, { 3 } },
        { "conditioner.backward.0.weight_c", { 3, 4 }, { 3, 4 } },
        { "conditioner.backward.1.weight", { 2, 3 }, { 2, 3 } },
        { "conditioner.backward.1.bias", { 2 }, { 2 } },
        { "transformer.0.weight_h", { 5, 2 }, { 2, 5, 2 } },
        { "transformer.0.bias", { 5 }, { 2, 5 } },
        { "transformer.0.weight_t", { 5 }, { 2, 5 } },
        { "transformer.0.weight_c", { 5, 4 }, { 2, 5, 4 } },
        { "transformer.0.weight_x", { 5 }, { 2, 5 } },
        { "transformer.1.weight", { 1, 5 }, { 2, 1, 5 } },
        { "transformer.1.bias", { 1 }, { 2, 1 } },
    };
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = small;
    (void)state;
    spec.time = 1;
    spec.context = 4;
    spec.width = 5;
    for (int kind = 0; kind < 2; kind++) {
        spec.transformer = kind ? "per-dimension" : "shared";
        hl_net *net = make_net(ctx, &spec);
        assert_int_equal(hl_net_param_count(net), sizeof expected / sizeof *expected);
        for (size_t i = 0; i < hl_net_param_count(net); i++) {
            const size_t *dims = kind ? expected[i].per_dimension : expected[i].shared;
            hl_net_param p = param_named(net, expected[i].name);
            size_t size = 1;
            assert_int_equal(p.rank, dims[1] == 0 ? 1 : dims[2] == 0 ? 2 : 3);
            for (int a = 0; a < p.rank; size *= dims[a++])
                assert_int_equal(p.dims[a], dims[a]);
            assert_int_equal(p.size, size);
        }
        hl_net_free(net);
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_bad_specs), cmocka_unit_test(test_huge_specs),
        cmocka_unit_test(test_null),     cmocka_unit_test(test_bad_build), cmocka_unit_test(test_bad_operator),
        cmocka_unit_test(test_init),     cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
