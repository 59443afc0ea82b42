/* test_sde_file.c - stochastic equations in files: they come back to the bit, hostile files are refused, checkpoints go on to the
 * same bits, and failures at every allocation. */
#include "net_support.h"

#include "directory.h"

#include <unistd.h>

#include "hollow/density.h"
#include "hollow/sde.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "sde/sde.h"

enum { MEMORY = 24 << 20 };

/* ---- models ---- */

static const double row[] = { 0.5, 1, -1e-7 };
static const hl_sde_known known[3] = { { .drift = 1, .drift_constant = 0.25, .drift_linear = row, .diffusion = 1 },
                                       { .diffusion = 1, .diffusion_value = 0.125 } };

/* Both networks, both precisions, with and without time, diagonal covariances and known parts. */
static hl_sde_spec small_spec(size_t n)
{
    static const size_t order[] = { 2, 0, 1 };
    return (hl_sde_spec){ .dim = 3,
                          .network = n % 2 ? "mlp" : "hollow",
                          .time = n % 3 == 1,
                          .hidden = 5,
                          .layers = 1 + n % 2,
                          .activation = n % 4 == 3 ? "tanh" : NULL,
                          .net = { .hidden = 6, .width = 5, .features = 4, .order = n == 4 ? order : NULL },
                          .density = n % 5 == 3 ? "flow" : NULL,
                          .flows = 2,
                          .flow = { .hidden = 5, .features = 4, .width = 4 },
                          .components = 2,
                          .diagonal = n % 4 == 2,
                          .density_hidden = 4,
                          .density_layers = 1,
                          .clamp = 4.5,
                          .diffusion_start = n == 5 ? 2.5 : 0.1 + 0.01 * (double)n,
                          .drift_scale = n % 2 ? 3.25 : 0,
                          .known = n % 3 == 2 ? known : NULL,
                          .dtype = n % 4 < 2 ? HL_F32 : HL_F64 };
}

static hl_sde *make_model(hl_context *ctx, size_t n)
{
    static const char *const names[] = { "a", "b, \"quoted\"", "\xc3\xa9t\xc3\xa9", "year" };
    hl_sde_spec spec = small_spec(n);
    hl_sde *sde;
    double mean[3], deviation[3];
    for (size_t i = 0; i < 3; i++) {
        mean[i] = hl_random_normal(3, 1, i) * pow(10, 4.0 * (double)i);
        deviation[i] = exp(9 * hl_random_normal(3, 2, i));
    }
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, n));
    CHECK_OK(ctx, hl_sde_set_scale(sde, 1990 + 1. / 3, 2026, mean, deviation));
    for (size_t i = 0; i < 4; i++)
        CHECK_OK(ctx, hl_sde_set_name(sde, i, names[i]));
    return sde;
}

/* The same values, draws, names and scale, to the bit. */
static void check_same(hl_context *ctx, hl_sde *a, hl_sde *b)
{
    enum { ROWS = 40 };
    double mean[2][3], deviation[2][3], first[2], last[2], t[ROWS], x[3 * ROWS];
    double f[2][3 * ROWS], g[2][3 * ROWS], logp[2][ROWS], residual[2][ROWS], draw[2][3 * ROWS];
    hl_sde *const both[] = { a, b };
    hl_sde_get_scale(a, &first[0], &last[0], mean[0], deviation[0]);
    for (size_t r = 0; r < ROWS; r++) {
        t[r] = 1990 + (double)r;
        for (size_t i = 0; i < 3; i++)
            x[3 * r + i] = mean[0][i] + deviation[0][i] * hl_random_normal(5, 1, 3 * r + i);
    }
    for (size_t k = 0; k < 2; k++) {
        hl_sde_get_scale(both[k], &first[k], &last[k], mean[k], deviation[k]);
        hl_sde_values v = { .f = f[k], .g = g[k], .logp = logp[k], .residual = residual[k] };
        CHECK_OK(ctx, hl_sde_eval(both[k], ROWS, t, x, &v));
        CHECK_OK(ctx, hl_sde_sample(both[k], ROWS, t, 7, 0, draw[k]));
    }
    assert_true(first[0] == first[1] && last[0] == last[1]);
    assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    assert_memory_equal(deviation[0], deviation[1], sizeof deviation[0]);
    assert_memory_equal(f[0], f[1], sizeof f[0]);
    assert_memory_equal(g[0], g[1], sizeof g[0]);
    assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
    assert_memory_equal(residual[0], residual[1], sizeof residual[0]);
    assert_memory_equal(draw[0], draw[1], sizeof draw[0]);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(hl_sde_name(a, i), hl_sde_name(b, i));
    assert_null(hl_sde_name(b, 4));
    assert_string_equal(hl_sde_note(a), hl_sde_note(b));
}

static void check_same_file(hl_context *ctx, const char *a, const char *b)
{
    char *data[2];
    size_t size[2];
    CHECK_OK(ctx, hl_file_load(ctx, a, 1 << 20, &data[0], &size[0]));
    CHECK_OK(ctx, hl_file_load(ctx, b, 1 << 20, &data[1], &size[1]));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(data[0], data[1], size[0]);
    hl_free(ctx, data[0]);
    hl_free(ctx, data[1]);
}

static void test_round_trip(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    (void)state;
    for (size_t n = 0; n < 12; n++) {
        hl_sde *sde = make_model(ctx, n), *back;
        CHECK_OK(ctx, hl_sde_set_note(sde, n % 2 ? "any \"text\"\n" : NULL));
        CHECK_OK(ctx, hl_sde_save(sde, "a.hollow"));
        CHECK_OK(ctx, hl_sde_load(ctx, "a.hollow", &back));
        hl_sde_spec p = hl_sde_describe(sde), q = hl_sde_describe(back);
        assert_string_equal(p.network, q.network);
        assert_string_equal(p.activation, q.activation);
        assert_true(p.time == q.time && p.diagonal == q.diagonal && p.components == q.components && p.dtype == q.dtype);
        assert_true(p.clamp == q.clamp && p.diffusion_start == q.diffusion_start && p.drift_scale == q.drift_scale &&
                    !p.known == !q.known);
        for (size_t i = 0; i < 3 && p.known; i++) {
            assert_true(p.known[i].drift == q.known[i].drift && p.known[i].diffusion == q.known[i].diffusion);
            assert_true(p.known[i].drift_constant == q.known[i].drift_constant);
            assert_true(p.known[i].diffusion_value == q.known[i].diffusion_value);
            assert_memory_equal(p.known[i].drift_linear, q.known[i].drift_linear, sizeof row);
        }
        assert_string_equal(p.density, q.density);
        assert_string_equal(p.curvature, q.curvature);
        assert_true(p.flows == q.flows || strcmp(p.density, "flow") != 0);
        check_same(ctx, sde, back);
        CHECK_OK(ctx, hl_sde_save(back, "b.hollow"));
        check_same_file(ctx, "a.hollow", "b.hollow");
        hl_sde_free(back);
        hl_sde_free(sde);
    }
    test_context_free(ctx, &allocator);
}

static hl_node zero_form(void *user, hl_graph *g, hl_node t, hl_node x)
{
    (void)user;
    (void)x;
    return hl_scale(g, 0, t);
}

/* A function of the program has no place in a file. */
static void test_form(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_known form = { .drift = 1, .drift_form = zero_form };
    hl_sde *sde;
    (void)state;
    CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .known = &form }, &sde));
    CHECK_STATUS(ctx, hl_sde_save(sde, "form.hollow"), HL_ERR_UNSUPPORTED);
    check_message(ctx, "given as a C function");
    assert_int_equal(access("form.hollow", F_OK), -1);
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

/* Files that were written before the method was a key of its own. */
static void test_old_files(void **state)
{
    static const struct {
        const char *path;
        hl_sde_method method;
        double t, x, f, g, logp; /* as the program that wrote the file printed them */
    } old[] = { { HL_TEST_DATA "/sde_fp.hollow", HL_SDE_FOKKER_PLANCK, 102, 30, -0.13405668987691824, 2.0531576797247,
                  -2.58129305186271 },
                { HL_TEST_DATA "/sde_pseudo_ml.hollow", HL_SDE_PSEUDO_LIKELIHOOD, 1990, 4, 0.005144500418154653,
                  0.3121051095642044, 0.5574115023263533 } };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        hl_sde *sde = NULL;
        double f, g, logp;
        CHECK_OK(ctx, hl_sde_load(ctx, old[i].path, &sde));
        assert_int_equal(hl_sde_trained_by(sde), old[i].method);
        CHECK_OK(ctx, hl_sde_eval(sde, 1, &old[i].t, &old[i].x, &(hl_sde_values){ .f = &f, .g = &g, .logp = &logp }));
        CHECK_NEAR(f, old[i].f, 1e-5, old[i].path);
        CHECK_NEAR(g, old[i].g, 1e-5, old[i].path);
        CHECK_NEAR(logp, old[i].logp, 1e-5, old[i].path);
        CHECK_OK(ctx, hl_sde_save(sde, "new.hollow"));
        hl_sde_free(sde);
        CHECK_OK(ctx, hl_sde_load(ctx, "new.hollow", &sde));
        assert_int_equal(hl_sde_trained_by(sde), old[i].method);
        hl_sde_free(sde);
    }
    test_context_free(ctx, &allocator);
}

static void test_wrong_calls(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_sde *sde = make_model(ctx, 0), *none = NULL;
    hl_density *density = NULL;
    hl_net *net = NULL;
    char longest[300];
    (void)state;
    memset(longest, 'x', sizeof longest);
    longest[299] = '\0';
    CHECK_STATUS(ctx, hl_sde_set_name(sde, 4, "x"), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_set_name(sde, 0, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_set_name(sde, 0, ""), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_set_name(sde, 0, longest), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_set_name(sde, 0, "\xe9"), HL_ERR_INVALID);
    assert_string_equal(hl_sde_name(sde, 0), "a");
    CHECK_OK(ctx, hl_sde_set_name(sde, 0, hl_sde_name(sde, 0)));
    assert_null(hl_sde_name(NULL, 0));
    assert_string_equal(hl_sde_note(NULL), "");
    assert_int_equal(hl_sde_trained_by(NULL), HL_SDE_FOKKER_PLANCK);
    assert_null(hl_sde_method_name((hl_sde_method)2));
    CHECK_STATUS(ctx, hl_sde_save(sde, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_save(sde, "none/m.hollow"), HL_ERR_IO);
    CHECK_STATUS(ctx, hl_sde_load(ctx, "absent", &none), HL_ERR_IO);
    CHECK_STATUS(ctx, hl_sde_load(ctx, NULL, &none), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_load(NULL, "absent", &none), HL_ERR_INVALID);
    assert_null(none);
    CHECK_OK(ctx, hl_sde_save(sde, "sde.hollow")); /* models of other kinds say what they are */
    CHECK_STATUS(ctx, hl_density_load(ctx, "sde.hollow", &density), HL_ERR_FORMAT);
    check_message(ctx, "not a density model");
    check_message(ctx, "'hollow-sde 1'");
    CHECK_STATUS(ctx, hl_net_load(ctx, "sde.hollow", &net), HL_ERR_FORMAT);
    CHECK_OK(ctx, hl_net_save(hl_sde_net(sde, 0), "net.hollow"));
    CHECK_STATUS(ctx, hl_sde_load(ctx, "net.hollow", &none), HL_ERR_FORMAT);
    check_message(ctx, "net.hollow: a network, not a stochastic equation");
    check_message(ctx, "'hollow-net 1'");
    hl_net_param p = param(hl_sde_net(sde, 1), 0);
    ((float *)p.values)[0] = NAN;
    CHECK_STATUS(ctx, hl_sde_save(sde, "nan.hollow"), HL_ERR_NOT_FINITE);
    assert_int_equal(access("nan.hollow", F_OK), -1);
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

/* ---- hostile files ---- */

static void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Loading is refused with a message that names the file, or, unless it must be refused, gives a model that can be used. */
static void check_load(const char *path, const char *fragment, bool must, const char *label)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_sde *sde = (hl_sde *)&allocator;
    hl_status status = hl_sde_load(ctx, path, &sde);
    if (status == HL_OK) {
        double t = 1, x[64] = { 0 }, logp;
        if (must)
            fail_msg("%s: it was loaded", label);
        if (hl_sde_describe(sde).dim <= 64)
            CHECK_OK(ctx, hl_sde_eval(sde, 1, &t, x, &(hl_sde_values){ .logp = &logp }));
        hl_sde_free(sde);
    } else {
        if (status != HL_ERR_FORMAT && status != HL_ERR_NOT_FINITE && (must || status != HL_ERR_UNSUPPORTED))
            fail_msg("%s: \"%s\": %s", label, hl_status_text(status), hl_context_message(ctx));
        assert_null(sde);
        check_message(ctx, path);
        if (!strstr(hl_context_message(ctx), fragment))
            fail_msg("%s: \"%s\" does not contain \"%s\"", label, hl_context_message(ctx), fragment);
    }
    CHECK(allocator.peak_bytes < MEMORY, label);
    test_context_free(ctx, &allocator);
}

/* good.hollow but for tensor `without`, with `from` in one piece of metadata replaced by `to` (all of it if `from` is NULL; it is
 * left out if `to` is). */
static void write_changed(const char *key, const char *from, const char *to, size_t without)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_tensors *good, *bad;
    const char *k, *v;
    char text[4000];
    bool found = !*key;
    CHECK_OK(ctx, hl_tensors_read(ctx, "good.hollow", &good));
    CHECK_OK(ctx, hl_tensors_create(ctx, &bad));
    for (size_t i = 0; hl_tensors_metadata_get(good, i, &k, &v); i++) {
        const char *at = from ? strstr(v, from) : v;
        if (strcmp(k, key) == 0 && at) {
            found = true;
            if (!to)
                continue;
            snprintf(text, sizeof text, "%.*s%s%s", (int)(at - v), v, to, from ? at + strlen(from) : "");
            v = text;
        }
        CHECK_OK(ctx, hl_tensors_set_metadata(bad, k, v));
    }
    if (!found)
        fail_msg("no '%s' in %s", from ? from : "", key);
    for (size_t i = 0; i < hl_tensors_count(good); i++) {
        const hl_tensor *t = hl_tensors_get(good, i);
        if (i != without)
            CHECK_OK(ctx, hl_tensors_add(bad, t->name, t->dtype, t->rank, t->dims, t->data));
    }
    CHECK_OK(ctx, hl_tensors_write(bad, "bad.hollow"));
    hl_tensors_free(good);
    hl_tensors_free(bad);
    test_context_free(ctx, NULL);
}

static void write_good(size_t n)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_sde *sde = make_model(ctx, n);
    CHECK_OK(ctx, hl_sde_save(sde, "good.hollow"));
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

static void test_bad_metadata(void **state)
{
    static const char *const bad[][4] = {
        /* key, what, by what, message */
        { "format", NULL, NULL, "not a stochastic equation" },
        { "format", NULL, "hollow-sde 2", "a newer version of hollow" },
        { "format", NULL, "hollow-density 1",
          "a density model, not a stochastic equation (its format is 'hollow-density 1')" },
        { "model", NULL, NULL, "its model is missing" },
        { "model", NULL, "[]", "not a JSON object" },
        { "model", "\"dim\":3", "\"dim\":0", "'dim'" },
        { "model", "\"dim\":3", "\"dim\":4", "" },
        { "model", "\"dim\":3", "\"dim\":-3", "'dim'" },
        { "model", "\"dim\":3", "\"dim\":10001", "'dim'" },
        { "model", "\"dim\":3", "\"dim\":10000", "" },
        { "model", "\"dim\":3", "\"dim\":3.5", "'dim'" },
        { "model", "\"network\":\"hollow\"", "\"network\":\"mlp\"", "tensors" },
        { "model", "\"network\":\"hollow\"", "\"network\":\"net\"", "'network'" },
        { "model", "\"network\":\"hollow\"", "\"network\":3", "'network'" },
        { "model", "\"time\":false", "\"time\":true", "other dimensions" },
        { "model", "\"time\":false", "\"time\":0", "'time'" },
        { "model", "\"components\":2", "\"components\":3", "tensors" },
        { "model", "\"components\":2", "\"components\":1000", "tensors" },
        { "model", "\"components\":2", "\"components\":0", "'components'" },
        { "model", "\"diagonal\":true", "\"diagonal\":false", "tensors" },
        { "model", "\"density_hidden\":4", "\"density_hidden\":100000", "tensors" },
        { "model", "\"density_layers\":1", "\"density_layers\":64", "tensors" },
        { "model", "\"density_layers\":1", "\"density_layers\":0", "'density_layers'" },
        { "model", "\"density_layers\":1", "\"density_layers\":65", "'density_layers'" },
        { "model", "\"clamp\":4.5", "\"clamp\":-4.5", "'clamp'" },
        { "model", "\"clamp\":4.5", "\"clamp\":\"4\"", "'clamp'" },
        { "model", "\"diffusion_start\":", "\"diffusion_start\":-", "'diffusion_start'" },
        { "model", "\"activation\":\"swish\"", "\"activation\":\"elu\"", "unknown activation 'elu'" },
        { "architecture", NULL, NULL, "no architecture" },
        { "architecture", "\"dim\":3", "\"dim\":2", "other dimensions" },
        { "architecture", "\"context\":0", "\"context\":1", "other dimensions" },
        { "architecture", "\"hidden\":6", "\"hidden\":1048576", "tensors" },
        { "architecture", "\"features\":4", "\"features\":65536", "tensors" },
        { "columns", NULL, NULL, "the columns" },
        { "columns", NULL, "[]", "the columns" },
        { "columns", "\"name\":\"a\"", "\"name\":3", "name of column 1" },
        { "columns", "\"name\":\"a\"", "\"name\":\"\"", "name of column 1" },
        { "columns", "\"deviation\":", "\"deviation\":-", "deviations" },
        { "columns", "\"mean\":", "\"mode\":", "'mean'" },
        { "clock", NULL, NULL, "the times" },
        { "clock", "\"last\":2026", "\"last\":1990", "times must increase" },
        { "clock", "\"first\":", "\"fist\":", "'first'" },
        { "known", NULL, "[]", "known" },
        { "known", NULL, "[{}, {}, 3]", "known" },
        { "known", NULL, "{}", "known" },
        { "known", "\"constant\":0.25", "\"constant\":null", "'constant'" },
        { "known", "\"linear\":[0.5", "\"linear\":[\"0.5\"", "'linear'" },
        { "known", "\"linear\":[0.5,", "\"linear\":[", "known" },
        { "known", "\"diffusion\":0.125", "\"diffusion\":-0.125", "diffusion < 0" },
        { "known", "\"diffusion\":0.125", "\"diffusion\":true", "'diffusion'" },
        { "method", NULL, "mle", "its method is neither" },
        { "dtype", NULL, NULL, "no dtype" },
        { "dtype", NULL, "f32", "" },
    };
    (void)state;
    write_good(2); /* hollow, double, diagonal, with known parts */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_changed(bad[i][0], bad[i][1], bad[i][2], SIZE_MAX);
        check_load("bad.hollow", bad[i][3], true, bad[i][2] ? bad[i][2] : bad[i][0]);
    }
    write_changed("note", NULL, NULL, SIZE_MAX);
    check_load("bad.hollow", "", false, "without a note");
    write_changed("known", NULL, NULL, SIZE_MAX);
    check_load("bad.hollow", "", false, "without what is known");
    for (size_t n = 0; n < 2; n++) {
        write_good(n);
        hl_context *ctx = test_context(NULL, 1);
        hl_tensors *t;
        CHECK_OK(ctx, hl_tensors_read(ctx, "good.hollow", &t));
        for (size_t i = 0; i < hl_tensors_count(t); i++) {
            write_changed("", NULL, NULL, i);
            check_load("bad.hollow", "tensors", true, hl_tensors_get(t, i)->name);
        }
        hl_tensors_free(t);
        test_context_free(ctx, NULL);
    }
}

static void test_damaged_files(void **state)
{
    static const unsigned char flips[] = { 0x01, 0x80 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 4; n < 6; n++) {
        char *data, label[64];
        size_t size;
        write_good(n);
        CHECK_OK(ctx, hl_file_load(ctx, "good.hollow", 1 << 20, &data, &size));
        forget_checksum(data, size);
        size_t header = 8 + (unsigned char)data[0] + 256 * (size_t)(unsigned char)data[1];
        assert_in_range(header, 100, size - 1);
        for (size_t cut = 0; cut < size; cut += 1 + (cut > header) * 13) {
            snprintf(label, sizeof label, "cut after %zu", cut);
            put_file("cut.hollow", data, cut);
            check_load("cut.hollow", "", true, label);
        }
        for (size_t at = 0; at < size; at++)
            for (size_t f = 0; f < sizeof flips && (at < header || (f == 1 && at % 16 == 3)); f++) {
                snprintf(label, sizeof label, "byte %zu ^ %02x", at, flips[f]);
                data[at] = (char)(data[at] ^ flips[f]);
                put_file("flip.hollow", data, size);
                check_load("flip.hollow", "", false, label);
                data[at] = (char)(data[at] ^ flips[f]);
            }
        hl_free(ctx, data);
    }
    test_context_free(ctx, NULL);
}

/* ---- checkpoints ---- */

enum { ROWS = 60, STEPS = 30 };

static hl_sde_fit *begin(hl_context *ctx, hl_sde *sde)
{
    static double t[ROWS], x[3 * ROWS];
    hl_sde_fit *fit;
    for (size_t r = 0; r < ROWS; r++)
        t[r] = (double)(r % 10);
    fill_normal_f64(x, 3 * ROWS, 6);
    CHECK_OK(ctx, hl_sde_fit_create(sde, &(hl_sde_data){ ROWS, t, x, NULL },
                                    &(hl_sde_fit_options){ .iterations = STEPS, .batch = 16 }, &fit));
    return fit;
}

static void run_fit(hl_context *ctx, hl_sde_fit *fit, size_t steps)
{
    for (size_t i = 0; i < steps; i++)
        CHECK_OK(ctx, hl_sde_fit_step(fit, NULL));
}

static void test_checkpoints(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_sde *sde = make_model(ctx, 0);
    hl_sde_fit *fit = begin(ctx, sde);
    (void)state;
    run_fit(ctx, fit, 11);
    CHECK_OK(ctx, hl_sde_fit_save(fit, "rate 1 seed 2", "a.ckpt"));
    run_fit(ctx, fit, STEPS - 11);
    CHECK_OK(ctx, hl_sde_save(sde, "a.hollow"));
    hl_sde_fit_free(fit);
    hl_sde_free(sde);

    sde = make_model(ctx, 0);
    CHECK_OK(ctx, hl_sde_init(sde, 99)); /* other parameters */
    fit = begin(ctx, sde);
    CHECK_STATUS(ctx, hl_sde_fit_load(fit, "rate 1 seed 3", "a.ckpt"), HL_ERR_INVALID);
    check_message(ctx, "a.ckpt: the checkpoint has other settings or data: it has 'seed 2', this run has 'seed 3'");
    CHECK_STATUS(ctx, hl_sde_fit_load(fit, "rate 1 seed 2", "absent"), HL_ERR_IO);
    CHECK_STATUS(ctx, hl_sde_fit_load(fit, "rate 1 seed 2", "a.hollow"), HL_ERR_FORMAT);
    CHECK_STATUS(ctx, hl_sde_fit_load(fit, NULL, "a.ckpt"), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_fit_save(fit, "rate 1 seed 2", "none/a.ckpt"), HL_ERR_IO);
    CHECK_OK(ctx, hl_sde_fit_load(fit, "rate 1 seed 2", "a.ckpt"));
    run_fit(ctx, fit, STEPS - 11);
    CHECK_STATUS(ctx, hl_sde_fit_step(fit, NULL), HL_STOPPED);
    CHECK_OK(ctx, hl_sde_save(sde, "b.hollow"));
    check_same_file(ctx, "a.hollow", "b.hollow");

    char *data;
    size_t size;
    CHECK_OK(ctx, hl_file_load(ctx, "a.ckpt", 1 << 20, &data, &size));
    data[size - 3] ^= 1;
    put_file("b.ckpt", data, size);
    CHECK_STATUS(ctx, hl_sde_fit_load(fit, "rate 1 seed 2", "b.ckpt"), HL_ERR_FORMAT);
    check_message(ctx, "damaged");
    hl_free(ctx, data);
    hl_sde_fit_free(fit);
    hl_sde_free(sde);
    test_context_free(ctx, NULL);
}

/* The course of a fit is in the file; where it is wrong, the file is refused, and where there is none, none is made up. */
static void test_course(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_sde *sde = make_model(ctx, 0), *back = NULL;
    size_t count = 7;
    (void)state;
    assert_null(hl_sde_course(sde, HL_SDE_COURSE_LOSS, &count));
    assert_int_equal(count, 0);
    hl_sde_fit *fit = begin(ctx, sde);
    hl_sde_fit_report report = { 0 };
    double last = 0;
    while (hl_sde_fit_step(fit, &report) == HL_OK)
        last = report.nll;
    CHECK_OK(ctx, hl_sde_fit_finish(fit));
    hl_sde_fit_free(fit);
    CHECK_OK(ctx, hl_sde_save(sde, "good.hollow"));
    CHECK_OK(ctx, hl_sde_load(ctx, "good.hollow", &back));
    for (int k = 0; k < HL_SDE_COURSES; k++) {
        size_t again;
        const hl_training_point *a = hl_sde_course(sde, (hl_sde_course_of)k, &count),
                                *b = hl_sde_course(back, (hl_sde_course_of)k, &again);
        assert_int_equal(count, STEPS);
        assert_int_equal(again, STEPS);
        for (size_t i = 0; i < STEPS; i++)
            CHECK(a[i].iteration == i + 1 && b[i].iteration == i + 1 && a[i].loss == b[i].loss && !a[i].validated,
                  "a point");
    }
    CHECK_NEAR(hl_sde_course(back, HL_SDE_COURSE_DENSITY, NULL)[STEPS - 1].loss, last, 0, "the last -log p");
    assert_null(hl_sde_course(back, HL_SDE_COURSES, &count));
    assert_null(hl_sde_course(NULL, HL_SDE_COURSE_LOSS, NULL));
    CHECK_OK(ctx, hl_sde_save(back, "again.hollow"));
    check_same_file(ctx, "good.hollow", "again.hollow");
    hl_sde_free(back);
    hl_sde_free(sde);
    static const char *const bad[] = { "[]", "{}", "{\"loss\": [], \"density\": [[1]]}",
                                       "{\"loss\": 3, \"density\": []}" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_changed("training", NULL, bad[i], SIZE_MAX);
        check_load("bad.hollow", "training", true, bad[i]);
    }
    write_changed("training", NULL, NULL, SIZE_MAX);
    CHECK_OK(ctx, hl_sde_load(ctx, "bad.hollow", &back));
    assert_null(hl_sde_course(back, HL_SDE_COURSE_LOSS, NULL));
    hl_sde_free(back);
    test_context_free(ctx, NULL);
}

/* ---- failures ---- */

static hl_status scenario(hl_context *ctx, void *user)
{
    hl_sde_spec spec = small_spec(*(const size_t *)user);
    hl_sde *sde = NULL, *back = NULL;
    hl_status status = hl_sde_create(ctx, &spec, &sde);
    if (status == HL_OK)
        status = hl_sde_add_course(sde) ? hl_sde_save(sde, "a.hollow") : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_sde_load(ctx, "a.hollow", &back);
    hl_sde_free(sde);
    hl_sde_free(back);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    for (size_t n = 2; n < 6; n += 3)
        check_every_allocation(1, scenario, &n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, empty_directory),
        cmocka_unit_test_teardown(test_old_files, empty_directory),
        cmocka_unit_test_teardown(test_wrong_calls, empty_directory),
        cmocka_unit_test_teardown(test_form, empty_directory),
        cmocka_unit_test_teardown(test_bad_metadata, empty_directory),
        cmocka_unit_test_teardown(test_damaged_files, empty_directory),
        cmocka_unit_test_teardown(test_checkpoints, empty_directory),
        cmocka_unit_test_teardown(test_course, empty_directory),
        cmocka_unit_test_teardown(test_allocations, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
