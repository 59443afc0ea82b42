/* test_model.c - what a network may be, what it refuses, and model files: round trips and hostile files. */
#include "support.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hollow/net.h"
#include "io/file.h"
#include "io/safetensors.h"

enum { MAX_PARAMS = 64, SMALL_MEMORY = 10 << 20 };

static const hl_net_spec small = { .dim = 2, .features = 2, .hidden = 3, .hidden_layers = 1, .width = 3, .layers = 1 };

/* The tests run in an empty directory of their own; in memory if possible, as they save hundreds of files, and saving waits
 * for the disk. */
static char in_memory[] = "/dev/shm/test_model.XXXXXX", on_disk[] = "/tmp/test_model.XXXXXX";
static const char *directory;

static int enter_directory(void **state)
{
    (void)state;
    directory = mkdtemp(in_memory);
    if (!directory)
        directory = mkdtemp(on_disk);
    return !directory || chdir(directory);
}

static int empty_directory(void **state)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    (void)state;
    while (dir && (entry = readdir(dir)))
        if (entry->d_name[0] != '.')
            remove(entry->d_name);
    return !dir || closedir(dir);
}

static int leave_directory(void **state)
{
    (void)state;
    return chdir("/") || rmdir(directory);
}

static void check_message(const hl_context *ctx, const char *fragment)
{
    if (!strstr(hl_context_message(ctx), fragment))
        fail_msg("\"%s\" does not contain \"%s\"", hl_context_message(ctx), fragment);
}

static hl_net *make(hl_context *ctx, const hl_net_spec *spec)
{
    hl_net *net;
    CHECK_OK(ctx, hl_net_create(ctx, spec, &net));
    CHECK_OK(ctx, hl_net_init(net, 5));
    return net;
}

static hl_net_param param(const hl_net *net, size_t i)
{
    hl_net_param p;
    assert_int_equal(hl_net_param_get(net, i, &p), HL_OK);
    return p;
}

static hl_net_param param_named(const hl_net *net, const char *name)
{
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        if (strcmp(param(net, i).name, name) == 0)
            return param(net, i);
    fail_msg("no parameter '%s'", name);
    return (hl_net_param){ 0 };
}

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
    assert_true(s.dim == 4 && s.context == 0 && s.time == 1 && s.features == 16 && s.hidden == 64 && s.hidden_layers == 2);
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
    static const struct {
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
        { { .dim = 2, .activation = "relu" }, "unknown activation 'relu'; there are tanh, softplus, swish, elu and sigmoid" },
        { { .dim = 2, .activation = "" }, "unknown activation ''" },
        { { .dim = 2, .transformer = "Shared" }, "unknown transformer 'Shared'; there are shared and per-dimension" },
        { { .dim = 2, .conditioner = "mad" }, "unknown conditioner 'mad'; there is: made" },
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
    assert_int_equal(hl_context_create(&(hl_context_options){ .alloc = modest_alloc, .release = modest_release }, &ctx), HL_OK);
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
    hl_net *net = make(ctx, &small), *other;
    hl_net_param p;
    hl_operator *op;
    hl_graph *g;
    hl_node node[MAX_PARAMS], h, f;
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
    h = hl_input(g, "x", 1, &small.dim);
    CHECK_STATUS(ctx, hl_net_build(NULL, g, h, HL_NONE, HL_NONE, 0, node, &h, &f), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_build(net, NULL, h, HL_NONE, HL_NONE, 0, node, &h, &f), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_build(net, g, h, HL_NONE, HL_NONE, 0, NULL, &h, &f), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_build(net, g, h, HL_NONE, HL_NONE, 0, node, NULL, &f), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_net_build(net, g, h, HL_NONE, HL_NONE, 0, node, &h, NULL), HL_ERR_INVALID);
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
    hl_net *net = make(ctx, &spec), *plain = make(ctx, &small);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hl_graph *g;
        hl_node node[MAX_PARAMS], h, f;
        CHECK_OK(ctx, hl_graph_create(ctx, &g));
        hl_node choice[] = { HL_NONE, hl_input(g, "t", 0, NULL), hl_input(g, "x", 1, (size_t[]){ 2 }),
                             hl_input(g, "c", 1, (size_t[]){ 3 }), 1000 };
        for (size_t k = 0; k < MAX_PARAMS; k++)
            node[k] = choice[cases[i].params];
        CHECK_STATUS(ctx, hl_net_build(net, g, choice[cases[i].x], choice[cases[i].t], choice[cases[i].context],
                                       cases[i].params != NONE, node, &h, &f), cases[i].status);
        if (cases[i].status)
            check_message(ctx, cases[i].message);
        hl_graph_free(g);
    }
    hl_graph *g;
    hl_node node[MAX_PARAMS], h, f;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node x = hl_input(g, "x", 1, (size_t[]){ 2 }), t = hl_input(g, "t", 0, NULL);
    CHECK_STATUS(ctx, hl_net_build(plain, g, x, t, HL_NONE, 0, node, &h, &f), HL_ERR_INVALID);
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
    hl_net *net = make(ctx, &spec);
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
    CHECK_STATUS(ctx, hl_operator_create(net, &(hl_operator_options){ .plan.chunk_rows = SIZE_MAX }, &op), HL_ERR_INVALID);
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
    hl_net *net = make(ctx, &spec), *again = make(ctx, &spec), *single;
    size_t set = 0;
    (void)state;
    spec.dtype = HL_F32;
    single = make(ctx, &spec);
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
        { "conditioner.forward.0.weight", { 3, 2 }, { 3, 2 } }, { "conditioner.forward.0.bias", { 3 }, { 3 } },
        { "conditioner.forward.0.weight_t", { 3 }, { 3 } }, { "conditioner.forward.0.weight_c", { 3, 4 }, { 3, 4 } },
        { "conditioner.forward.1.weight", { 2, 3 }, { 2, 3 } }, { "conditioner.forward.1.bias", { 2 }, { 2 } },
        { "conditioner.backward.0.weight", { 3, 2 }, { 3, 2 } }, { "conditioner.backward.0.bias", { 3 }, { 3 } },
        { "conditioner.backward.0.weight_t", { 3 }, { 3 } }, { "conditioner.backward.0.weight_c", { 3, 4 }, { 3, 4 } },
        { "conditioner.backward.1.weight", { 2, 3 }, { 2, 3 } }, { "conditioner.backward.1.bias", { 2 }, { 2 } },
        { "transformer.0.weight_h", { 5, 2 }, { 2, 5, 2 } }, { "transformer.0.bias", { 5 }, { 2, 5 } },
        { "transformer.0.weight_t", { 5 }, { 2, 5 } }, { "transformer.0.weight_c", { 5, 4 }, { 2, 5, 4 } },
        { "transformer.0.weight_x", { 5 }, { 2, 5 } }, { "transformer.1.weight", { 1, 5 }, { 2, 1, 5 } },
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
        hl_net *net = make(ctx, &spec);
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

static void test_check(void **state)
{
    static const double bad[] = { NAN, INFINITY, -INFINITY };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int dtype = HL_F32; dtype <= HL_F64; dtype++) {
        hl_net_spec spec = small;
        spec.dtype = (hl_dtype)dtype;
        hl_net *net = make(ctx, &spec);
        CHECK_OK(ctx, hl_net_check(net));
        for (size_t i = 0; i < hl_net_param_count(net); i++) {
            hl_net_param p = param(net, i);
            for (size_t b = 0; b < 3; b++) {
                size_t at = p.size - 1;
                double old = dtype ? ((double *)p.values)[at] : (double)((float *)p.values)[at];
                if (dtype)
                    ((double *)p.values)[at] = bad[b];
                else
                    ((float *)p.values)[at] = (float)bad[b];
                CHECK_STATUS(ctx, hl_net_check(net), HL_ERR_NOT_FINITE);
                check_message(ctx, p.name);
                check_message(ctx, b ? "is infinite" : "is NaN");
                CHECK_STATUS(ctx, hl_net_save(net, "nan.hollow"), HL_ERR_NOT_FINITE);
                assert_int_equal(access("nan.hollow", F_OK), -1);
                if (dtype)
                    ((double *)p.values)[at] = old;
                else
                    ((float *)p.values)[at] = (float)old;
            }
        }
        /* forward: unit 0 has degree 1 and must not see x_2 */
        hl_net_param p = param_named(net, "conditioner.forward.0.weight");
        memset((char *)p.values + hl_dtype_size(spec.dtype), 1, hl_dtype_size(spec.dtype));
        CHECK_STATUS(ctx, hl_net_check(net), HL_ERR_INVALID);
        check_message(ctx, "'conditioner.forward.0.weight', element 1,");
        check_message(ctx, "the mask of a hollow network needs 0 there");
        CHECK_STATUS(ctx, hl_net_save(net, "nan.hollow"), HL_ERR_INVALID);
        assert_int_equal(access("nan.hollow", F_OK), -1);
        hl_net_free(net);
    }
    test_context_free(ctx, NULL);
}

/* ---- model files ---- */

static void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void check_same(const hl_net *a, const hl_net *b)
{
    hl_net_spec s = hl_net_describe(a), t = hl_net_describe(b);
    assert_true(s.dim == t.dim && s.context == t.context && s.time == t.time && s.features == t.features);
    assert_true(s.hidden == t.hidden && s.hidden_layers == t.hidden_layers && s.width == t.width && s.layers == t.layers);
    assert_true(s.dtype == t.dtype);
    assert_string_equal(s.conditioner, t.conditioner);
    assert_string_equal(s.transformer, t.transformer);
    assert_string_equal(s.activation, t.activation);
    assert_int_equal(hl_net_param_count(a), hl_net_param_count(b));
    for (size_t i = 0; i < hl_net_param_count(a); i++) {
        assert_string_equal(param(a, i).name, param(b, i).name);
        assert_int_equal(param(a, i).size, param(b, i).size);
        assert_memory_equal(param(a, i).values, param(b, i).values, param(a, i).size * hl_dtype_size(s.dtype));
    }
}

static void test_round_trip(void **state)
{
    static const char *const activations[] = { "tanh", "softplus", "swish", "elu", "sigmoid" };
    static const int depths[] = { -1, 1, 2, 3 };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    (void)state;
    for (size_t n = 0; n < 80; n++) {
        hl_net_spec spec = { .dim = 1 + n % 4, .context = n / 2 % 2 * 3, .time = n / 4 % 2, .features = 2 + n % 3 * 2,
                             .hidden = 1 + n % 7, .hidden_layers = depths[n % 4], .width = 1 + n % 5,
                             .transformer = n / 3 % 2 ? "shared" : "per-dimension", .layers = depths[n / 4 % 4],
                             .activation = activations[n % 5], .dtype = n / 8 % 2 };
        hl_net *net = make(ctx, &spec), *back;
        char *first, *second;
        size_t size[2];
        hl_net_param bias = param_named(net, "transformer.0.bias");
        memset(bias.values, 0x3e, bias.size * hl_dtype_size(spec.dtype)); /* all the bits of a value */
        CHECK_OK(ctx, hl_net_save(net, "a.hollow"));
        CHECK_OK(ctx, hl_net_load(ctx, "a.hollow", &back));
        check_same(net, back);
        CHECK_OK(ctx, hl_net_save(back, "b.hollow"));
        CHECK_OK(ctx, hl_file_load(ctx, "a.hollow", 1 << 20, &first, &size[0]));
        CHECK_OK(ctx, hl_file_load(ctx, "b.hollow", 1 << 20, &second, &size[1]));
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(first, second, size[0]);
        hl_free(ctx, first);
        hl_free(ctx, second);
        hl_net_free(net);
        hl_net_free(back);
    }
    test_context_free(ctx, &allocator);
}

static void test_save_fails(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net = make(ctx, &small), *back;
    float *w = param(net, 0).values, old = w[0];
    (void)state;
    CHECK_STATUS(ctx, hl_net_save(net, "none/m.hollow"), HL_ERR_IO);
    check_message(ctx, "none/m.hollow");
    CHECK_STATUS(ctx, hl_net_save(net, ""), HL_ERR_IO);
    CHECK_STATUS(ctx, hl_net_save(net, "."), HL_ERR_IO);
    CHECK_OK(ctx, hl_net_save(net, "m.hollow"));
    w[0] = NAN;
    CHECK_STATUS(ctx, hl_net_save(net, "m.hollow"), HL_ERR_NOT_FINITE);
    w[0] = old;
    CHECK_OK(ctx, hl_net_load(ctx, "m.hollow", &back)); /* the old file is untouched */
    check_same(net, back);
    hl_net_free(net);
    hl_net_free(back);
    test_context_free(ctx, NULL);
}

/* Loading must fail as expected, name the file, and take little memory. */
static void check_refused(const char *path, hl_status expected, const char *fragment, const char *label)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_net *net = (hl_net *)&allocator;
    hl_status status = hl_net_load(ctx, path, &net);
    if (status != expected)
        fail_msg("%s: \"%s\" instead of \"%s\": %s", label, hl_status_text(status), hl_status_text(expected),
                 hl_context_message(ctx));
    assert_null(net);
    CHECK(allocator.peak_bytes < SMALL_MEMORY, label);
    check_message(ctx, path);
    if (!strstr(hl_context_message(ctx), fragment))
        fail_msg("%s: \"%s\" does not contain \"%s\"", label, hl_context_message(ctx), fragment);
    test_context_free(ctx, &allocator);
}

/* A file with the parameters of the small network under some metadata; NULL leaves them out. `spare` elements of a tensor
 * that no network has make it larger. */
static void write_file(const char *path, const char *format, const char *architecture, const char *dtype, size_t spare)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net = make(ctx, &small);
    float *values = test_calloc(spare + 1, sizeof *values);
    hl_tensors *t;
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        CHECK_OK(ctx, hl_tensors_add(t, param(net, i).name, HL_F32, param(net, i).rank, param(net, i).dims, param(net, i).values));
    if (spare)
        CHECK_OK(ctx, hl_tensors_add(t, "spare", HL_F32, 1, &spare, values));
    if (format)
        CHECK_OK(ctx, hl_tensors_set_metadata(t, "format", format));
    if (architecture)
        CHECK_OK(ctx, hl_tensors_set_metadata(t, "architecture", architecture));
    if (dtype)
        CHECK_OK(ctx, hl_tensors_set_metadata(t, "dtype", dtype));
    CHECK_OK(ctx, hl_tensors_write(t, path));
    hl_tensors_free(t);
    test_free(values);
    hl_net_free(net);
    test_context_free(ctx, NULL);
}

static const struct {
    const char *key, *value;
} architecture[] = { { "dim", "2" },        { "context", "0" },    { "time", "false" },
                     { "conditioner", "\"made\"" },                { "features", "2" },
                     { "hidden", "3" },     { "hidden_layers", "1" }, { "transformer", "\"shared\"" },
                     { "width", "3" },      { "layers", "1" },     { "activation", "\"tanh\"" } };

/* The small network's architecture with some entries replaced, or left out if their value is NULL. */
static void architecture_text(char *text, size_t size, size_t count, const char *const (*replaced)[2])
{
    size_t used = (size_t)snprintf(text, size, "{");
    for (size_t i = 0; i < sizeof architecture / sizeof *architecture; i++) {
        const char *value = architecture[i].value;
        for (size_t k = 0; k < count; k++)
            if (strcmp(replaced[k][0], architecture[i].key) == 0)
                value = replaced[k][1];
        if (value)
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\": %s", used > 1 ? ", " : "", architecture[i].key, value);
        assert_true(used < size - 2);
    }
    snprintf(text + used, size - used, "}");
}

static void test_bad_architecture(void **state)
{
    static const char *const bad[][3] = { /* key, value, message */
        { "dim", "0", "must be at least 1" }, { "dim", "-2", "'dim' is missing or not an integer in 0..1000000" },
        { "dim", "1000001", "'dim'" }, { "dim", "2.0", "'dim'" }, { "dim", "\"2\"", "'dim'" }, { "dim", "null", "'dim'" },
        { "dim", "true", "'dim'" }, { "dim", "[2]", "'dim'" }, { "dim", "{}", "'dim'" }, { "dim", "1e3", "'dim'" },
        { "dim", "99999999999999999999", "not a JSON object" }, { "dim", "9223372036854775807", "'dim'" },
        { "dim", "1", "is not" }, { "dim", "3", "is not" }, { "dim", "1000000", "too few" },
        { "context", "-1", "'context'" }, { "context", "1000001", "'context'" }, { "context", "1", "missing" },
        { "context", "1000000", "missing" }, { "context", "false", "'context'" },
        { "time", "0", "'time' is missing or not a truth value" }, { "time", "\"true\"", "'time'" }, { "time", "null", "'time'" },
        { "time", "true", "missing" },
        { "conditioner", "\"mada\"", "unknown conditioner 'mada'; there is: made" }, { "conditioner", "3", "not a text" },
        { "conditioner", "null", "not a text" }, { "conditioner", "\"\"", "unknown conditioner" },
        { "conditioner", "\"\\u0000\"", "not a JSON object" },
        { "features", "0", "must be at least 1" }, { "features", "1", "it must be in 2..65536" }, { "features", "3", "even" },
        { "features", "-2", "'features'" }, { "features", "65537", "'features'" }, { "features", "65536", "too few" },
        { "features", "4", "is not" },
        { "hidden", "0", "must be at least 1" }, { "hidden", "1048577", "'hidden'" }, { "hidden", "1048576", "too few" },
        { "hidden", "4", "is not" }, { "hidden", "-9223372036854775808", "'hidden'" },
        { "hidden_layers", "-1", "'hidden_layers'" }, { "hidden_layers", "65", "'hidden_layers'" }, { "hidden_layers", "64", "" },
        { "hidden_layers", "0", "" }, { "hidden_layers", "2", "" }, { "hidden_layers", "4294967297", "'hidden_layers'" },
        { "transformer", "\"per-dimension\"", "is not" }, { "transformer", "\"x\"", "unknown transformer 'x'" },
        { "transformer", "0", "not a text" },
        { "width", "0", "must be at least 1" }, { "width", "1048576", "too few" }, { "width", "2", "is not" },
        { "layers", "0", "is not" }, { "layers", "2", "is not" }, { "layers", "64", "" }, { "layers", "65", "'layers'" },
        { "activation", "\"relu\"", "there are tanh, softplus, swish, elu and sigmoid" }, { "activation", "[]", "not a text" },
    };
    char text[1000];
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net;
    architecture_text(text, sizeof text, 0, NULL);
    write_file("good.hollow", "hollow-net 1", text, "f32", 0);
    CHECK_OK(ctx, hl_net_load(ctx, "good.hollow", &net)); /* so that what follows fails for its own reason */
    hl_net_free(net);
    test_context_free(ctx, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        architecture_text(text, sizeof text, 1, (const char *const[][2]){ { bad[i][0], bad[i][1] } });
        write_file("bad.hollow", "hollow-net 1", text, "f32", 0);
        check_refused("bad.hollow", HL_ERR_FORMAT, bad[i][2], text);
    }
    for (size_t i = 0; i < sizeof architecture / sizeof *architecture; i++) {
        char fragment[64];
        snprintf(fragment, sizeof fragment, "'%s' is missing", architecture[i].key);
        architecture_text(text, sizeof text, 1, (const char *const[][2]){ { architecture[i].key, NULL } });
        write_file("bad.hollow", "hollow-net 1", text, "f32", 0);
        check_refused("bad.hollow", HL_ERR_FORMAT, fragment, text);
    }
}

/* A file cannot make the reader take much more memory than it has bytes itself. */
static void test_memory_bombs(void **state)
{
    static const char *const bombs[][4][2] = {
        { { "dim", "1000000" }, { "features", "65536" }, { "hidden", "1048576" }, { "hidden_layers", "64" } },
        { { "dim", "200000" }, { "width", "200000" }, { "layers", "64" }, { "transformer", "\"per-dimension\"" } },
        { { "dim", "3" }, { "hidden", "200000" }, { "hidden_layers", "64" }, { "layers", "64" } },
        { { "dim", "3" }, { "hidden", "4" }, { "width", "200000" }, { "layers", "64" } },
        { { "features", "65536" }, { "hidden", "3000" }, { "hidden_layers", "64" }, { "layers", "64" } },
    };
    char text[1000];
    (void)state;
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++)
        for (size_t spare = 0; spare <= 200000; spare += 200000) {
            architecture_text(text, sizeof text, 4, bombs[i]);
            write_file("bomb.hollow", "hollow-net 1", text, "f32", spare);
            check_refused("bomb.hollow", HL_ERR_FORMAT, "", text);
        }
}

static void test_bad_metadata(void **state)
{
    static const char *const bad[][4] = { /* format, architecture, dtype, message; "*" is the right one */
        { NULL, "*", "f32", "not a model of hollow" },           { "", "*", "f32", "not a model of hollow" },
        { "hollow-net 2", "*", "f32", "not a model of hollow" }, { "hollow-net 1", NULL, "f32", "not a model of hollow" },
        { "hollow-net 1", "", "f32", "not a JSON object" },      { "hollow-net 1", "[]", "f32", "not a JSON object" },
        { "hollow-net 1", "{", "f32", "not a JSON object" },     { "hollow-net 1", "{}", "f32", "missing" },
        { "hollow-net 1", "{\"dim\": 2, \"dim\": 2}", "f32", "not a JSON object" },
        { "hollow-net 1", "*", NULL, "no dtype" },               { "hollow-net 1", "*", "F32", "no dtype" },
        { "hollow-net 1", "*", "f16", "no dtype" },              { "hollow-net 1", "*", "f64", "is not" },
        { NULL, NULL, NULL, "not a model of hollow" },
    };
    char text[1000], *deep = test_malloc(100001);
    (void)state;
    architecture_text(text, sizeof text, 0, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_file("bad.hollow", bad[i][0], bad[i][1] && *bad[i][1] == '*' ? text : bad[i][1], bad[i][2], 0);
        check_refused("bad.hollow", HL_ERR_FORMAT, bad[i][3], bad[i][1] ? bad[i][1] : "no architecture");
    }
    memset(deep, '[', 100000);
    deep[100000] = '\0';
    write_file("deep.hollow", "hollow-net 1", deep, "f32", 0);
    check_refused("deep.hollow", HL_ERR_FORMAT, "not a JSON object", "deep nesting");
    test_free(deep);
}

/* What is wrong with one tensor. */
typedef enum fault { NO_FAULT, MISSING, EXTRA, TRANSPOSED, FLATTENED, WIDER, DOUBLE, IS_NAN, IS_INFINITE, UNMASKED } fault;

static void write_tensors(hl_context *ctx, const hl_net *net, fault what, size_t which, const char *path)
{
    char text[1000];
    double values[64] = { 0 };
    hl_tensors *t;
    architecture_text(text, sizeof text, 0, NULL);
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    CHECK_OK(ctx, hl_tensors_set_metadata(t, "format", "hollow-net 1"));
    CHECK_OK(ctx, hl_tensors_set_metadata(t, "architecture", text));
    CHECK_OK(ctx, hl_tensors_set_metadata(t, "dtype", "f32"));
    for (size_t i = 0; i < hl_net_param_count(net); i++) {
        hl_net_param p = param(net, i);
        hl_dtype dtype = HL_F32;
        const void *data = p.values;
        if (i == which) {
            data = memcpy(values, p.values, p.size * sizeof(float));
            if (what == TRANSPOSED || what == FLATTENED) {
                size_t last = p.dims[0];
                p.dims[0] = what == FLATTENED ? p.size : p.dims[1];
                p.dims[1] = last;
                p.rank = what == FLATTENED ? 1 : 2;
            }
            p.dims[0] += what == WIDER;
            dtype = what == DOUBLE ? HL_F64 : HL_F32;
            if (what == IS_NAN || what == IS_INFINITE)
                ((float *)values)[p.size - 1] = what == IS_NAN ? NAN : INFINITY;
            if (what == UNMASKED)
                ((float *)values)[1] = 1e-30f;
        }
        if (i != which || what != MISSING)
            CHECK_OK(ctx, hl_tensors_add(t, p.name, dtype, p.rank, p.dims, data));
    }
    if (what == EXTRA)
        CHECK_OK(ctx, hl_tensors_add(t, "extra", HL_F32, 0, NULL, values));
    CHECK_OK(ctx, hl_tensors_write(t, path));
    hl_tensors_free(t);
}

static void test_bad_tensors(void **state)
{
    static const struct {
        fault what;
        hl_status status;
        const char *message;
    } bad[] = { { MISSING, HL_ERR_FORMAT, "is missing" },      { EXTRA, HL_ERR_FORMAT, "tensors where the architecture has" },
                { TRANSPOSED, HL_ERR_FORMAT, "is not" },       { FLATTENED, HL_ERR_FORMAT, "is not" },
                { WIDER, HL_ERR_FORMAT, "is not" },            { DOUBLE, HL_ERR_FORMAT, "of f32" },
                { IS_NAN, HL_ERR_NOT_FINITE, "is NaN" },       { IS_INFINITE, HL_ERR_NOT_FINITE, "is infinite" },
                { UNMASKED, HL_ERR_FORMAT, "the mask of a hollow network needs 0 there" } };
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net = make(ctx, &small), *back;
    (void)state;
    write_tensors(ctx, net, NO_FAULT, 0, "good.hollow");
    CHECK_OK(ctx, hl_net_load(ctx, "good.hollow", &back));
    check_same(net, back);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t p = 0; p < hl_net_param_count(net); p++) {
            bool matrix = param(net, p).rank == 2;
            if ((bad[i].what == UNMASKED && strcmp(param(net, p).name, "conditioner.forward.0.weight") != 0) ||
                (!matrix && (bad[i].what == TRANSPOSED || bad[i].what == FLATTENED)))
                continue;
            write_tensors(ctx, net, bad[i].what, p, "bad.hollow");
            check_refused("bad.hollow", bad[i].status, bad[i].message, param(net, p).name);
        }
    hl_net_free(net);
    hl_net_free(back);
    test_context_free(ctx, NULL);
}

/* Files that are cut, changed at one byte, or are something else: an error that names the file, or a sound network. */
static void check_survives(const char *path, const char *label)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_net *net;
    hl_status status = hl_net_load(ctx, path, &net);
    if (status == HL_OK) {
        CHECK_OK(ctx, hl_net_check(net));
        hl_net_free(net);
    } else {
        if (status != HL_ERR_FORMAT && status != HL_ERR_IO && status != HL_ERR_NOT_FINITE && status != HL_ERR_UNSUPPORTED)
            fail_msg("%s: \"%s\": %s", label, hl_status_text(status), hl_context_message(ctx));
        assert_null(net);
        check_message(ctx, path);
    }
    CHECK(allocator.peak_bytes < SMALL_MEMORY, label);
    test_context_free(ctx, &allocator);
}

static void test_damaged_files(void **state)
{
    static const unsigned char flips[] = { 0x01, 0x04, 0x20, 0x80, 0xff };
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net = make(ctx, &small);
    char *data, label[64];
    size_t size, header;
    (void)state;
    CHECK_OK(ctx, hl_net_save(net, "good.hollow"));
    CHECK_OK(ctx, hl_file_load(ctx, "good.hollow", 1 << 20, &data, &size));
    header = 8 + (unsigned char)data[0] + 256 * (size_t)(unsigned char)data[1];
    assert_in_range(header, 100, size - 1);
    for (size_t cut = 0; cut < size; cut++) {
        snprintf(label, sizeof label, "cut after %zu", cut);
        put_file("cut.hollow", data, cut);
        check_refused("cut.hollow", HL_ERR_FORMAT, "", label);
    }
    for (size_t at = 0; at < size; at++)
        for (size_t f = 0; f < sizeof flips && (f < 1 || at < header); f++) {
            snprintf(label, sizeof label, "byte %zu ^ %02x", at, flips[f]);
            data[at] = (char)(data[at] ^ flips[f]);
            put_file("flip.hollow", data, size);
            check_survives("flip.hollow", label);
            data[at] = (char)(data[at] ^ flips[f]);
        }
    put_file("text.hollow", "dim = 2\n", 8);
    check_refused("text.hollow", HL_ERR_FORMAT, "", "a text");
    check_refused("none.hollow", HL_ERR_IO, "", "no file");
    check_refused(".", HL_ERR_IO, "", "a directory");
    hl_free(ctx, data);
    hl_net_free(net);
    test_context_free(ctx, NULL);
}

/* However long the path, the message says what is wrong. */
static void test_long_path(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net;
    char path[1000] = "";
    (void)state;
    for (int i = 0; i < 400; i++)
        strcat(path, "./");
    strcat(path, "bad.hollow");
    write_file("bad.hollow", "hollow-net 1", "{}", "f32", 0);
    CHECK_STATUS(ctx, hl_net_load(ctx, path, &net), HL_ERR_FORMAT);
    check_message(ctx, "bad.hollow: architecture: 'dim' is missing");
    test_context_free(ctx, NULL);
}

/* ---- out of memory ---- */

static hl_status whole_life(hl_context *ctx, void *user)
{
    hl_net_spec spec = { .dim = 3, .features = 2, .hidden = 4, .width = 3, .time = 1, .context = 1,
                         .transformer = user ? "per-dimension" : "shared" };
    hl_net *net = NULL, *back = NULL;
    hl_operator *op = NULL;
    hl_status status = hl_net_create(ctx, &spec, &net);
    if (!status)
        status = hl_net_init(net, 1);
    if (!status)
        status = hl_operator_create(net, &(hl_operator_options){ .order = 2 }, &op);
    if (!status)
        status = hl_net_save(net, "m.hollow");
    if (!status)
        status = hl_net_load(ctx, "m.hollow", &back);
    hl_operator_free(op);
    hl_net_free(net);
    hl_net_free(back);
    return status;
}

static void test_every_allocation(void **state)
{
    (void)state;
    check_every_allocation(1, whole_life, NULL);
    check_every_allocation(2, whole_life, "per-dimension");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_bad_specs),
        cmocka_unit_test(test_huge_specs),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_bad_build),
        cmocka_unit_test(test_bad_operator),
        cmocka_unit_test(test_init),
        cmocka_unit_test(test_params),
        cmocka_unit_test_teardown(test_check, empty_directory),
        cmocka_unit_test_teardown(test_round_trip, empty_directory),
        cmocka_unit_test_teardown(test_save_fails, empty_directory),
        cmocka_unit_test_teardown(test_bad_architecture, empty_directory),
        cmocka_unit_test_teardown(test_memory_bombs, empty_directory),
        cmocka_unit_test_teardown(test_bad_metadata, empty_directory),
        cmocka_unit_test_teardown(test_bad_tensors, empty_directory),
        cmocka_unit_test_teardown(test_damaged_files, empty_directory),
        cmocka_unit_test_teardown(test_long_path, empty_directory),
        cmocka_unit_test_teardown(test_every_allocation, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
