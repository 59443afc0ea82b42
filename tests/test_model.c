/* test_model.c - model files: round trips, hostile files, and failures at every allocation. */
#include "net_support.h"

#include "directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "io/safetensors.h"

enum { SMALL_MEMORY = 10 << 20 };

static const hl_net_spec small = { .dim = 2, .features = 2, .hidden = 3, .hidden_layers = 1, .width = 3, .layers = 1 };

/* ---- saving ---- */

/* Weights that are not finite, or not zero where a mask needs it, are found and not saved. */
static void test_check(void **state)
{
    static const double bad[] = { NAN, INFINITY, -INFINITY };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int dtype = HL_F32; dtype <= HL_F64; dtype++) {
        hl_net_spec spec = small;
        spec.dtype = (hl_dtype)dtype;
        hl_net *net = make_net(ctx, &spec);
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

static void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void check_same_spec(hl_net_spec s, hl_net_spec t)
{
    assert_true(s.dim == t.dim && s.context == t.context && s.time == t.time && s.features == t.features);
    assert_true(s.hidden == t.hidden && s.hidden_layers == t.hidden_layers && s.width == t.width &&
                s.layers == t.layers);
    assert_true(s.dtype == t.dtype && s.kernel == t.kernel && memcmp(s.image, t.image, sizeof s.image) == 0);
    assert_string_equal(s.conditioner, t.conditioner);
    assert_string_equal(s.transformer, t.transformer);
    assert_string_equal(s.activation, t.activation);
    assert_true(s.reflections == t.reflections && s.mlp == t.mlp && !s.plus == !t.plus && !s.order == !t.order);
    if (s.order)
        assert_memory_equal(s.order, t.order, s.dim * sizeof *s.order);
    if (s.plus)
        check_same_spec(*s.plus, *t.plus);
}

static void check_same(const hl_net *a, const hl_net *b)
{
    hl_net_spec s = hl_net_describe(a);
    check_same_spec(s, hl_net_describe(b));
    assert_int_equal(hl_net_param_count(a), hl_net_param_count(b));
    for (size_t i = 0; i < hl_net_param_count(a); i++) {
        assert_string_equal(param(a, i).name, param(b, i).name);
        assert_int_equal(param(a, i).size, param(b, i).size);
        assert_memory_equal(param(a, i).values, param(b, i).values, param(a, i).size * hl_dtype_size(s.dtype));
    }
}

static void test_round_trip(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    (void)state;
    for (size_t n = 0; n < 80; n++) {
        hl_net_spec spec = { .dim = 1 + n % 4,
                             .context = n / 2 % 2 * 3,
                             .time = n / 4 % 2,
                             .features = 2 + n % 3 * 2,
                             .hidden = 1 + n % 7,
                             .hidden_layers = depth(n % 4),
                             .width = 1 + n % 5,
                             .transformer = n / 3 % 2 ? "shared" : "per-dimension",
                             .layers = depth(n / 4 % 4),
                             .activation = activation(n % 5),
                             .dtype = n / 8 % 2 };
        spec.conditioner = name_of(hl_net_conditioners(), n / 2);
        if (strcmp(spec.conditioner, "conv") == 0) {
            spec.image[0] = spec.image[2] = 1;
            spec.image[1] = spec.dim;
            spec.kernel = 5;
            spec.hidden_layers = 2;
        }
        hl_net_spec added = { .conditioner = n % 2 ? "coupling" : "autoregressive",
                              .transformer = n % 3 ? "affine" : "monotone",
                              .hidden = 2,
                              .plus = n % 3 ? &(hl_net_spec){ .conditioner = "sum" } : NULL };
        size_t order[] = { 0, 1, 2, 3 };
        order[0] = spec.dim - 1;
        order[spec.dim - 1] = 0;
        spec.order = n / 5 % 2 ? order : NULL;
        spec.reflections = n / 7 % 3;
        spec.mlp = n / 11 % 2 * 3;
        spec.plus = n / 13 % 2 ? &added : NULL;
        hl_net *net = make_net(ctx, &spec), *back;
        char *first, *second;
        size_t size[2];
        hl_net_param bias = param_named(net, "transformer.0.bias");       /* every network has it */
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

/* Networks without any hidden layer are small; the reader must not think them too small. */
static void test_smallest(void **state)
{
    static const char *const conditioners[] = { "none", "coupling", "autoregressive", "made", "sum" };
    static const char *const transformers[] = { "shared", "additive", "affine", "monotone" };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 5 * 4 * 2; n++) {
        hl_net_spec spec = { .dim = 1 + 2 * (n / 20),
                             .conditioner = conditioners[n % 5],
                             .transformer = transformers[n / 5 % 4],
                             .hidden_layers = -1,
                             .layers = -1 };
        hl_net *net = make_net(ctx, &spec), *back;
        CHECK_OK(ctx, hl_net_save(net, "a.hollow"));
        CHECK_OK(ctx, hl_net_load(ctx, "a.hollow", &back));
        check_same(net, back);
        hl_net_free(net);
        hl_net_free(back);
    }
    test_context_free(ctx, NULL);
}

/* What can be saved can be loaded, also where one dimension leaves most of a conditioner out. */
static void test_few_dimensions(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const char *const *name = hl_net_conditioners(); *name; name++)
        for (size_t n = 0; n < 12; n++) {
            hl_net_spec spec = { .dim = 1 + n % 2,
                                 .features = 2,
                                 .hidden = 512,
                                 .hidden_layers = (const int[]){ -1, 1, 10 }[n / 2 % 3],
                                 .layers = n / 6 ? -1 : 1,
                                 .width = 3,
                                 .conditioner = *name };
            hl_net *net = NULL, *back = NULL;
            if (hl_net_create(ctx, &spec, &net) == HL_OK) { /* not every conditioner takes every number */
                CHECK_OK(ctx, hl_net_save(net, "m.hollow"));
                CHECK_OK(ctx, hl_net_load(ctx, "m.hollow", &back));
            }
            hl_net_free(net);
            hl_net_free(back);
        }
    test_context_free(ctx, NULL);
}

static void test_save_fails(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net = make_net(ctx, &small), *back;
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

/* ---- hostile files ---- */

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
    hl_net *net = make_net(ctx, &small);
    float *values = test_calloc(spare + 1, sizeof *values);
    hl_tensors *t;
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        CHECK_OK(ctx, hl_tensors_add(t, param(net, i).name, HL_F32, param(net, i).rank, param(net, i).dims,
                                     param(net, i).values));
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
} architecture[] = {
    { "dim", "2" },      { "context", "0" }, { "time", "false" },          { "conditioner", "\"made\"" },
    { "features", "2" }, { "hidden", "3" },  { "hidden_layers", "1" },     { "transformer", "\"shared\"" },
    { "width", "3" },    { "layers", "1" },  { "activation", "\"tanh\"" }, { "image", "[0, 0, 0]" },
    { "kernel", "0" },   { "mlp", "0" },     { "reflections", "0" },       { "plus", "[]" }
};

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
            used += (size_t)snprintf(text + used, size - used, "%s\"%s\": %s", used > 1 ? ", " : "",
                                     architecture[i].key, value);
        assert_true(used < size - 2);
    }
    snprintf(text + used, size - used, "}");
}

static void test_bad_architecture(void **state)
{
    static const char *const bad[][3] = {
        /* key, value, message */
        { "dim", "0", "must be at least 1" },
        { "dim", "-2", "'dim' is missing or not an integer in 0..1000000" },
        { "dim", "1000001", "'dim'" },
        { "dim", "2.0", "'dim'" },
        { "dim", "\"2\"", "'dim'" },
        { "dim", "null", "'dim'" },
        { "dim", "true", "'dim'" },
        { "dim", "[2]", "'dim'" },
        { "dim", "{}", "'dim'" },
        { "dim", "1e3", "'dim'" },
        { "dim", "99999999999999999999", "not a JSON object" },
        { "dim", "9223372036854775807", "'dim'" },
        { "dim", "1", "is not" },
        { "dim", "3", "is not" },
        { "dim", "1000000", "too few" },
        { "context", "-1", "'context'" },
        { "context", "1000001", "'context'" },
        { "context", "1", "missing" },
        { "context", "1000000", "missing" },
        { "context", "false", "'context'" },
        { "time", "0", "'time' is missing or not a truth value" },
        { "time", "\"true\"", "'time'" },
        { "time", "null", "'time'" },
        { "time", "true", "missing" },
        { "conditioner", "\"mada\"", "unknown conditioner 'mada'; use one of: made, " },
        { "conditioner", "\"conv\"", "conditioner conv needs an image of channels x height x width = dim" },
        { "conditioner", "\"tree\"", "" },
        { "image", "[1, 2]", "'image'" },
        { "image", "[1, 2, -1]", "'image'" },
        { "image", "7", "'image'" },
        { "kernel", "32", "'kernel'" },
        { "conditioner", "3", "not a text" },
        { "conditioner", "null", "not a text" },
        { "conditioner", "\"\"", "unknown conditioner" },
        { "conditioner", "\"\\u0000\"", "not a JSON object" },
        { "features", "0", "must be at least 1" },
        { "features", "1", "it must be in 2..65536" },
        { "features", "3", "even" },
        { "features", "-2", "'features'" },
        { "features", "65537", "'features'" },
        { "features", "65536", "too few" },
        { "features", "4", "is not" },
        { "hidden", "0", "must be at least 1" },
        { "hidden", "1048577", "'hidden'" },
        { "hidden", "1048576", "too few" },
        { "hidden", "4", "is not" },
        { "hidden", "-9223372036854775808", "'hidden'" },
        { "hidden_layers", "-1", "'hidden_layers'" },
        { "hidden_layers", "65", "'hidden_layers'" },
        { "hidden_layers", "64", "" },
        { "hidden_layers", "0", "" },
        { "hidden_layers", "2", "" },
        { "hidden_layers", "4294967297", "'hidden_layers'" },
        { "transformer", "\"per-dimension\"", "is not" },
        { "transformer", "\"x\"", "unknown transformer 'x'" },
        { "transformer", "0", "not a text" },
        { "width", "0", "must be at least 1" },
        { "width", "1048576", "too few" },
        { "width", "2", "is not" },
        { "layers", "0", "is not" },
        { "layers", "2", "is not" },
        { "layers", "64", "" },
        { "layers", "65", "'layers'" },
        { "activation", "\"relu\"", "use one of: tanh, " },
        { "activation", "[]", "not a text" },
        { "reflections", "65", "'reflections'" },
        { "reflections", "1", "missing" },
        { "mlp", "-1", "'mlp'" },
        { "mlp", "1", "missing" },
        { "mlp", "1000000", "too few" },
        { "plus", "{}", "'plus'" },
        { "plus", "[3]", "'conditioner' is missing" },
        { "plus", "[{}]", "'conditioner' is missing" },
        { "kernel", "0, \"order\": [0]", "'order' is not a list of dim integers" },
        { "kernel", "0, \"order\": 1", "'order'" },
        { "kernel", "0, \"order\": [0, 0]", "order[1] is 0; an order holds each of the columns 0..1 once" },
        { "kernel", "0, \"order\": [0, -1]", "an order holds" },
        { "kernel", "0, \"order\": [0, 1.0]", "an order holds" },
        { "kernel", "0, \"order\": [2, 1]", "order[0] is 2" },
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
    static const char *const bad[][4] = {
        /* format, architecture, dtype, message; "*" is the right one */
        { NULL, "*", "f32", "not a model of hollow" },
        { "", "*", "f32", "not a model of hollow" },
        { "hollow-net 2", "*", "f32", "a newer version of hollow" },
        { "hollow-net 1", NULL, "f32", "not a model of hollow" },
        { "hollow-net 1", "", "f32", "not a JSON object" },
        { "hollow-net 1", "[]", "f32", "not a JSON object" },
        { "hollow-net 1", "{", "f32", "not a JSON object" },
        { "hollow-net 1", "{}", "f32", "missing" },
        { "hollow-net 1", "{\"dim\": 2, \"dim\": 2}", "f32", "not a JSON object" },
        { "hollow-net 1", "*", NULL, "no dtype" },
        { "hollow-net 1", "*", "F32", "no dtype" },
        { "hollow-net 1", "*", "f16", "no dtype" },
        { "hollow-net 1", "*", "f64", "is not" },
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

/* What a file is, without reading all of it. */
static void test_kinds_of_files(void **state)
{
    static const struct {
        const char *format;
        hl_file_kind kind;
    } of[] = { { "hollow-net 1", HL_FILE_NET },       { "hollow-density 99", HL_FILE_DENSITY },
               { "hollow-sde 1", HL_FILE_SDE },       { "hollow-vae 2", HL_FILE_VAE },
               { "hollow-net", HL_FILE_OTHER },       { "hollow-checkpoint 1", HL_FILE_CHECKPOINT },
               { "hollow-netting 1", HL_FILE_OTHER }, { NULL, HL_FILE_OTHER } };
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        write_file("some.hollow", of[i].format, "{}", "f32", 100000);
        assert_int_equal(hl_file_identify("some.hollow"), of[i].kind);
    }
    FILE *file = fopen("table.csv", "w");
    assert_non_null(file);
    assert_int_equal(hl_file_identify("table.csv"), HL_FILE_NONE); /* empty */
    fputs("\"hollow-net 1\",b\n1,2\n", file);                      /* not behind a header's length */
    assert_int_equal(fclose(file), 0);
    assert_int_equal(hl_file_identify("table.csv"), HL_FILE_OTHER);
    assert_int_equal(hl_file_identify("nosuch"), HL_FILE_NONE);
    assert_int_equal(hl_file_identify("."), HL_FILE_NONE);
    assert_int_equal(hl_file_identify(NULL), HL_FILE_NONE);
    assert_int_equal(mkfifo("pipe", 0600), 0); /* does not wait for a writer */
    assert_int_equal(hl_file_identify("pipe"), HL_FILE_NONE);
}

/* What is wrong with one tensor. */
typedef enum fault {
    NO_FAULT,
    MISSING,
    EXTRA,
    TRANSPOSED,
    FLATTENED,
    WIDER,
    DOUBLE,
    IS_NAN,
    IS_INFINITE,
    UNMASKED
} fault;

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
    } bad[] = { { MISSING, HL_ERR_FORMAT, "is missing" },
                { EXTRA, HL_ERR_FORMAT, "tensors where the architecture has" },
                { TRANSPOSED, HL_ERR_FORMAT, "is not" },
                { FLATTENED, HL_ERR_FORMAT, "is not" },
                { WIDER, HL_ERR_FORMAT, "is not" },
                { DOUBLE, HL_ERR_FORMAT, "of f32" },
                { IS_NAN, HL_ERR_NOT_FINITE, "is NaN" },
                { IS_INFINITE, HL_ERR_NOT_FINITE, "is infinite" },
                { UNMASKED, HL_ERR_FORMAT, "the mask of a hollow network needs 0 there" } };
    hl_context *ctx = test_context(NULL, 1);
    hl_net *net = make_net(ctx, &small), *back;
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
        if (status != HL_ERR_FORMAT && status != HL_ERR_IO && status != HL_ERR_NOT_FINITE &&
            status != HL_ERR_UNSUPPORTED)
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
    hl_net *net = make_net(ctx, &small);
    char *data, label[64];
    size_t size, header;
    (void)state;
    CHECK_OK(ctx, hl_net_save(net, "good.hollow"));
    CHECK_OK(ctx, hl_file_load(ctx, "good.hollow", 1 << 20, &data, &size));
    forget_checksum(data, size);
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
    hl_net_spec spec = { .dim = 3,
                         .features = 2,
                         .hidden = 4,
                         .width = 3,
                         .time = 1,
                         .context = 1,
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
        cmocka_unit_test_teardown(test_check, empty_directory),
        cmocka_unit_test_teardown(test_round_trip, empty_directory),
        cmocka_unit_test_teardown(test_smallest, empty_directory),
        cmocka_unit_test_teardown(test_few_dimensions, empty_directory),
        cmocka_unit_test_teardown(test_save_fails, empty_directory),
        cmocka_unit_test_teardown(test_bad_architecture, empty_directory),
        cmocka_unit_test_teardown(test_memory_bombs, empty_directory),
        cmocka_unit_test_teardown(test_bad_metadata, empty_directory),
        cmocka_unit_test_teardown(test_kinds_of_files, empty_directory),
        cmocka_unit_test_teardown(test_bad_tensors, empty_directory),
        cmocka_unit_test_teardown(test_damaged_files, empty_directory),
        cmocka_unit_test_teardown(test_long_path, empty_directory),
        cmocka_unit_test_teardown(test_every_allocation, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
