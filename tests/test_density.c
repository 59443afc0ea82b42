/* test_density.c - density models: files that come back to the bit, hostile files, units, integrals, samples, contexts, rows
 * that do not see each other, checkpoints, and failures at every allocation. */
#include "net_support.h"

#include "directory.h"

#include <unistd.h>

#include "hollow/density.h"
#include "io/file.h"
#include "io/safetensors.h"

enum { MEMORY = 10 << 20, TRAIN = 1500, COLUMNS = 6 };

/* ---- models ---- */

/* Means and deviations with all their digits, of sizes that columns of tables have. */
static void make_columns(hl_density_column *columns)
{
    static const char *const names[COLUMNS] = { "a", "b, \"quoted\"", "\xc3\xa9t\xc3\xa9", "", "x 5", "6" };
    for (size_t i = 0; i < COLUMNS; i++)
        columns[i] = (hl_density_column){ names[i], hl_random_normal(3, 1, i) * pow(10, 2.0 * (double)i),
                                          exp(3 * hl_random_normal(3, 2, i)) };
}

static hl_density *make_model(hl_context *ctx, const hl_flow_spec *spec)
{
    hl_density_column columns[COLUMNS];
    hl_density *model;
    make_columns(columns);
    CHECK_OK(ctx, hl_density_create(ctx, spec, columns, &model));
    CHECK_OK(ctx, hl_flow_init(hl_density_flow(model), 4));
    return model;
}

/* Rows about where the model's columns are. */
static void fill_rows(const hl_density *model, size_t rows, uint64_t seed, double *x, double *c)
{
    size_t dim = hl_density_dim(model), context = hl_density_context(model);
    for (size_t i = 0; i < rows * dim; i++) {
        hl_density_column column = hl_density_get_column(model, i % dim);
        x[i] = column.mean + column.deviation * hl_random_normal(seed, 1, i);
    }
    for (size_t i = 0; i < rows * context; i++) {
        hl_density_column column = hl_density_get_column(model, dim + i % context);
        c[i] = column.mean + column.deviation * hl_random_normal(seed, 2, i);
    }
}

static hl_flow_spec small_spec(const char *kind)
{
    hl_flow_spec spec = { .kind = kind,
                          .flows = 2,
                          .net = { .dim = 2, .features = 2, .hidden = 3, .hidden_layers = 1 } };
    if (hl_flow_is_continuous(kind)) {
        spec.flows = 1;
        spec.net.width = 3;
        spec.net.layers = 1;
    }
    return spec;
}

/* ---- files ---- */

static void check_same_file(hl_context *ctx, const char *a, const char *b)
{
    char *first, *second;
    size_t size[2];
    CHECK_OK(ctx, hl_file_load(ctx, a, 1 << 24, &first, &size[0]));
    CHECK_OK(ctx, hl_file_load(ctx, b, 1 << 24, &second, &size[1]));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(first, second, size[0]);
    hl_free(ctx, first);
    hl_free(ctx, second);
}

static void check_same_results(hl_context *ctx, hl_density *a, hl_density *b)
{
    enum { ROWS = 20 };
    double x[ROWS * COLUMNS], c[ROWS * COLUMNS], logp[2][ROWS], drawn[2][ROWS * COLUMNS];
    fill_rows(a, ROWS, 8, x, c);
    CHECK_OK(ctx, hl_density_logp(a, ROWS, x, c, logp[0]));
    CHECK_OK(ctx, hl_density_logp(b, ROWS, x, c, logp[1]));
    assert_memory_equal(logp[0], logp[1], sizeof logp[0]);
    CHECK_OK(ctx, hl_density_sample(a, 5, 7, ROWS, c, drawn[0]));
    CHECK_OK(ctx, hl_density_sample(b, 5, 7, ROWS, c, drawn[1]));
    assert_memory_equal(drawn[0], drawn[1], ROWS * hl_density_dim(a) * sizeof(double));
}

static void test_round_trip(void **state)
{
    static const size_t order[] = { 2, 0, 1 };
    static const double factor[9] = { 1.0 / 3, 0, 0, -2.0 / 7, 0.01, 0, 5, 1e-9, 1e3 };
    static const char note[] = "any text: \"\xe2\x82\xac\"\n\t and more";
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    (void)state;
    for (size_t n = 0; n < 24; n++) {
        hl_flow_spec spec = small_spec(name_of(hl_flow_kinds(), n));
        bool cnf = hl_flow_is_continuous(spec.kind);
        spec.net.dim = 3;
        spec.net.context = n / 6 % 2 * 2;
        spec.net.dtype = n / 12 ? HL_F64 : HL_F32;
        spec.net.order = cnf && n / 6 % 2 ? order : NULL;
        spec.flows = 1 + n / 6;
        hl_density *model = make_model(ctx, &spec), *back;
        hl_flow_solver solver = {
            .method = n % 2 ? "tsit5" : "bosh3", .rtol = 1.0 / 3e3, .atol = 0.1e-3, .steps = n % 5
        };
        if (n % 3)
            CHECK_OK(ctx, hl_density_set_solver(model, &solver));
        CHECK_OK(ctx, hl_density_set_note(model, n % 2 ? note : NULL));
        CHECK_OK(ctx, hl_density_set_factor(model, n % 4 > 1 ? factor : NULL));
        CHECK_OK(ctx, hl_density_save(model, "a.hollow"));
        CHECK_OK(ctx, hl_density_load(ctx, "a.hollow", &back));
        assert_string_equal(hl_density_note(back), n % 2 ? note : "");
        hl_flow_solver now = hl_density_solver(back);
        solver = hl_density_solver(model);
        assert_string_equal(now.method, solver.method);
        assert_true(now.rtol == solver.rtol && now.atol == solver.atol && now.steps == solver.steps);
        assert_int_equal(hl_density_dim(back), 3);
        assert_int_equal(hl_density_context(back), spec.net.context);
        assert_string_equal(hl_flow_describe(hl_density_flow(back)).kind, name_of(hl_flow_kinds(), n));
        assert_int_equal(hl_flow_describe(hl_density_flow(back)).flows, spec.flows);
        for (size_t i = 0; i < 3 + spec.net.context; i++) {
            hl_density_column a = hl_density_get_column(model, i), b = hl_density_get_column(back, i);
            assert_string_equal(a.name, b.name);
            assert_memory_equal(&a.mean, &b.mean, sizeof a.mean);
            assert_memory_equal(&a.deviation, &b.deviation, sizeof a.deviation);
        }
        assert_null(hl_density_get_column(back, 3 + spec.net.context).name);
        assert_true(!hl_density_factor(back) == !(n % 4 > 1));
        if (hl_density_factor(back))
            assert_memory_equal(hl_density_factor(back), hl_density_factor(model), sizeof factor);
        check_same_results(ctx, model, back);
        CHECK_OK(ctx, hl_density_save(back, "b.hollow"));
        check_same_file(ctx, "a.hollow", "b.hollow");
        hl_density_free(back);
        hl_density_free(model);
    }
    test_context_free(ctx, &allocator);
}

static void test_wrong_calls(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_flow_spec spec = small_spec("maf"), bad = { .kind = "mad", .net.dim = 2 };
    hl_density_column good[] = { { "a", 0, 1 }, { "b", 0, 1 } }, columns[2];
    static const hl_density_column wrong[] = { { NULL, 0, 1 },       { "b", NAN, 1 },      { "b", INFINITY, 1 },
                                               { "b", 0, 0 },        { "b", 0, -1 },       { "b", 0, NAN },
                                               { "b", 0, INFINITY }, { "\xe9t\xe9", 0, 1 } };
    hl_density *model = NULL;
    double x[2] = { 0 }, logp;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        columns[0] = good[0];
        columns[1] = wrong[i];
        CHECK_STATUS(ctx, hl_density_create(ctx, &spec, columns, &model), HL_ERR_INVALID);
        assert_null(model);
        check_message(ctx, i == 0 || i == 7 ? "column 2" : "column 'b'");
    }
    CHECK_STATUS(ctx, hl_density_create(NULL, &spec, good, &model), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_create(ctx, NULL, good, &model), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_create(ctx, &spec, NULL, &model), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_create(ctx, &spec, good, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_create(ctx, &bad, good, &model), HL_ERR_INVALID);
    check_message(ctx, "'mad'");
    CHECK_STATUS(ctx, hl_density_load(ctx, NULL, &model), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_load(ctx, "absent", &model), HL_ERR_IO);
    spec = small_spec("cnf");
    CHECK_OK(ctx, hl_density_create(ctx, &spec, good, &model));
    CHECK_STATUS(ctx, hl_density_logp(model, 1, NULL, NULL, &logp), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_logp(model, 1, x, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_sample(model, 0, 0, 1, NULL, NULL), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_density_logp(model, 0, NULL, NULL, NULL));
    CHECK_OK(ctx, hl_density_sample(model, 0, 0, 0, NULL, NULL));
    CHECK_STATUS(ctx, hl_density_set_solver(model, &(hl_flow_solver){ .rtol = -1 }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_set_solver(model, &(hl_flow_solver){ .atol = NAN }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_set_solver(model, &(hl_flow_solver){ .method = "euler6" }), HL_ERR_INVALID);
    assert_string_equal(hl_density_solver(model).method, "dopri5"); /* as before */
    CHECK_OK(ctx, hl_density_logp(model, 1, x, NULL, &logp));
    hl_flow_solver own = hl_density_solver(model); /* its method is borrowed from the model itself */
    own.rtol = 1e-3;
    CHECK_OK(ctx, hl_density_set_solver(model, &own));
    assert_string_equal(hl_density_solver(model).method, "dopri5");
    CHECK_STATUS(ctx, hl_density_save(model, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_save(model, "none/m.hollow"), HL_ERR_IO);
    CHECK_OK(ctx, hl_density_set_note(model, "\xe9"));
    CHECK_STATUS(ctx, hl_density_save(model, "m.hollow"), HL_ERR_INVALID);
    assert_int_equal(access("m.hollow", F_OK), -1);
    hl_density_free(model);
    hl_density_free(NULL);
    assert_int_equal(hl_density_dim(NULL), 0);
    assert_int_equal(hl_density_context(NULL), 0);
    assert_null(hl_density_flow(NULL));
    assert_string_equal(hl_density_note(NULL), "");
    test_context_free(ctx, &allocator);
}

/* ---- hostile files ---- */

static void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* Loading fails as expected, names the file, and takes little memory. */
static void check_refused(const char *path, hl_status expected, const char *fragment, const char *label)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_density *model = (hl_density *)&allocator;
    hl_status status = hl_density_load(ctx, path, &model);
    if (status != expected)
        fail_msg("%s: \"%s\" instead of \"%s\": %s", label, hl_status_text(status), hl_status_text(expected),
                 hl_context_message(ctx));
    assert_null(model);
    CHECK(allocator.peak_bytes < MEMORY, label);
    check_message(ctx, path);
    if (!strstr(hl_context_message(ctx), fragment))
        fail_msg("%s: \"%s\" does not contain \"%s\"", label, hl_context_message(ctx), fragment);
    test_context_free(ctx, &allocator);
}

/* Loading is refused with a message that names the file, or gives a model that can be used. */
static void check_survives(const char *path, const char *label)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_density *model;
    hl_status status = hl_density_load(ctx, path, &model);
    double x[2] = { 0.1, 0.2 }, logp;
    if (status == HL_OK) {
        hl_flow_solver solver = hl_density_solver(model);
        solver.max_evaluations = 200;
        if (hl_density_dim(model) == 2 && hl_density_context(model) == 0 && solver.steps < 100) {
            CHECK_OK(ctx, hl_density_set_solver(model, &solver));
            hl_density_logp(model, 1, x, NULL, &logp);
        }
        hl_density_free(model);
    } else {
        if (status != HL_ERR_FORMAT && status != HL_ERR_IO && status != HL_ERR_NOT_FINITE &&
            status != HL_ERR_UNSUPPORTED)
            fail_msg("%s: \"%s\": %s", label, hl_status_text(status), hl_context_message(ctx));
        assert_null(model);
        check_message(ctx, path);
    }
    CHECK(allocator.peak_bytes < MEMORY, label);
    test_context_free(ctx, &allocator);
}

/* The tensors of good.hollow, but for number `without`, with one piece of metadata replaced, or left out if the value is
 * NULL; and a tensor more of `extra` elements. */
static void write_changed(const char *key, const char *value, size_t without, const char *name, size_t extra)
{
    hl_context *ctx = test_context(NULL, 1);
    float *values = test_calloc(extra + 1, sizeof *values);
    hl_tensors *from, *to;
    const char *k, *v;
    CHECK_OK(ctx, hl_tensors_read(ctx, "good.hollow", &from));
    CHECK_OK(ctx, hl_tensors_create(ctx, &to));
    for (size_t i = 0; hl_tensors_metadata_get(from, i, &k, &v); i++) {
        v = strcmp(k, key) == 0 ? value : v;
        if (v)
            CHECK_OK(ctx, hl_tensors_set_metadata(to, k, v));
    }
    for (size_t i = 0; i < hl_tensors_count(from); i++) {
        const hl_tensor *t = hl_tensors_get(from, i);
        if (i != without)
            CHECK_OK(ctx, hl_tensors_add(to, t->name, t->dtype, t->rank, t->dims, t->data));
    }
    if (extra)
        CHECK_OK(ctx, hl_tensors_add(to, name, HL_F32, 1, &extra, values));
    CHECK_OK(ctx, hl_tensors_write(to, "bad.hollow"));
    hl_tensors_free(to);
    hl_tensors_free(from);
    test_free(values);
    test_context_free(ctx, NULL);
}

static void write_good(const char *kind)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_flow_spec spec = small_spec(kind);
    hl_density *model = make_model(ctx, &spec);
    CHECK_OK(ctx, hl_density_set_note(model, "n"));
    CHECK_OK(ctx, hl_density_save(model, "good.hollow"));
    hl_density_free(model);
    test_context_free(ctx, NULL);
}

static void test_bad_metadata(void **state)
{
    static const char two[] = "[{\"name\": \"a\", \"mean\": 0, \"deviation\": 1}, %s]";
    static const char *const bad[][3] = {
        /* key, value, message */
        { "format", NULL, "not a density model" },
        { "format", "hollow-net 1", "a network, not a density model" },
        { "format", "other 1", "not a density model of hollow" },
        { "format", "hollow-density 0", "not a density model of hollow" },
        { "format", "hollow-density 1x", "not a density model of hollow" },
        { "format", "hollow-density 3", "its members are missing" },
        { "format", "hollow-density 6", "reads formats up to 'hollow-density 5'; update hollow" },
        { "kind", NULL, "its kind" },
        { "kind", "cnf", "" },
        { "kind", "naf", "" },
        { "kind", "iaf2", "unknown kind of flow 'iaf2'" },
        { "kind", "nice", "" },
        { "flows", NULL, "number of flows" },
        { "flows", "", "number of flows" },
        { "flows", "0", "number of flows" },
        { "flows", "-1", "number of flows" },
        { "flows", " 2", "number of flows" },
        { "flows", "2x", "number of flows" },
        { "flows", "1", "" },
        { "flows", "3", "" },
        { "flows", "1001", "" },
        { "flows", "99999", "" },
        { "architecture", NULL, "architecture" },
        { "architecture", "[]", "not a JSON object" },
        { "dtype", NULL, "no dtype" },
        { "dtype", "f64", "" },
        { "columns", NULL, "columns are missing" },
        { "columns", "", "columns are missing" },
        { "columns", "{}", "columns are missing" },
        { "columns", "[]", "columns are missing" },
        { "columns", "[1, 2]", "a column has no name" },
        { "columns", "[{\"name\": \"a\", \"mean\": 0, \"deviation\": 1}]", "columns are missing" },
        { "columns", "{\"name\": \"b\", \"mean\": 0, \"deviation\": 0}", "deviation" },
        { "columns", "{\"name\": \"b\", \"mean\": 0, \"deviation\": -1}", "deviation" },
        { "columns", "{\"name\": \"b\", \"mean\": \"0\", \"deviation\": 1}", "a column has no" },
        { "columns", "{\"name\": 3, \"mean\": 0, \"deviation\": 1}", "a column has no name" },
        { "columns", "{\"name\": \"b\", \"deviation\": 1}", "a column has no" },
        { "columns", "{\"name\": \"b\", \"mean\": 1e999, \"deviation\": 1}", "columns are missing" },
        { "columns", "null", "a column has no" },
        { "solver", NULL, "solver" },
        { "solver", "{}", "solver is missing or wrong" },
        { "solver", "{\"method\": 3}", "solver is missing or wrong" },
        { "solver", "{\"method\": \"dopri5\", \"steps\": -1}", "solver is missing or wrong" },
        { "solver", "{\"method\": \"dopri5\", \"steps\": 1000001}", "solver is missing or wrong" },
        { "solver", "{\"method\": \"dopri5\", \"rtol\": -1, \"atol\": 1e-5, \"steps\": 0}", "solver: rtol is -1" },
        { "solver", "{\"method\": \"dopri5\", \"rtol\": 1e-5, \"steps\": 0}", "its solver is missing or wrong" },
        { "solver", "{\"method\": \"dopri5dopri5dopri5dopri5dopri5dopri5\"}", "solver is missing or wrong" },
    };
    char text[300];
    (void)state;
    write_good("maf");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *value = bad[i][1];
        if (strcmp(bad[i][0], "columns") == 0 && value && (*value == 'n' || (*value == '{' && value[1] != '}'))) {
            snprintf(text, sizeof text, two, value);
            value = text;
        }
        write_changed(bad[i][0], value, SIZE_MAX, NULL, 0);
        check_refused("bad.hollow", HL_ERR_FORMAT, bad[i][2], value ? value : bad[i][0]);
    }
    write_changed("note", NULL, SIZE_MAX, NULL, 0);
    check_survives("bad.hollow", "without a note");
    write_good("cnf");
    write_changed("solver", "{\"method\": \"euler6\", \"rtol\": 1e-5, \"atol\": 1e-5, \"steps\": 0}", SIZE_MAX, NULL,
                  0);
    check_refused("bad.hollow", HL_ERR_FORMAT, "euler6", "a method that there is not");
    write_changed("kind", "maf", SIZE_MAX, NULL, 0);
    check_refused("bad.hollow", HL_ERR_FORMAT, "", "a network of another kind");
    write_changed("architecture", "{\"dim\": 1000000}", SIZE_MAX, NULL, 0);
    check_refused("bad.hollow", HL_ERR_FORMAT, "", "half an architecture");
}

/* Tensors that are missing or too many; sizes that ask for more memory than the file is worth. */
static void test_bad_tensors(void **state)
{
    static const char *const bombs[] = { "\"dim\":1000000,\"context\":0", "\"dim\":2,\"context\":1000000",
                                         "\"dim\":100000,\"context\":0" };
    (void)state;
    for (size_t k = 0; hl_flow_kinds()[k]; k++) {
        hl_context *ctx = test_context(NULL, 1);
        hl_tensors *t;
        write_good(hl_flow_kinds()[k]);
        CHECK_OK(ctx, hl_tensors_read(ctx, "good.hollow", &t));
        for (size_t i = 0; i < hl_tensors_count(t); i++) {
            write_changed("", NULL, i, NULL, 0);
            check_refused("bad.hollow", HL_ERR_FORMAT, "", hl_tensors_get(t, i)->name);
            write_changed("", NULL, i, hl_tensors_get(t, i)->name, 100);
            check_refused("bad.hollow", HL_ERR_FORMAT, "is not", hl_tensors_get(t, i)->name);
        }
        write_changed("", NULL, SIZE_MAX, "9.more", 1);
        check_refused("bad.hollow", HL_ERR_FORMAT, "tensors that the architecture does not have", hl_flow_kinds()[k]);
        for (size_t b = 0; b < 3; b++) {
            const char *text = hl_tensors_metadata(t, "architecture"), *rest = strchr(strchr(text, ',') + 1, ',');
            char bomb[2000];
            snprintf(bomb, sizeof bomb, "{%s%s", bombs[b], rest);
            write_changed("architecture", bomb, SIZE_MAX, "9.more", b == 2 ? 300000 : 1);
            check_refused("bad.hollow", HL_ERR_FORMAT, "", bomb);
        }
        write_changed("flows", "999", SIZE_MAX, "9.more", 300000);
        check_refused("bad.hollow", HL_ERR_FORMAT, "", "many flows");
        hl_tensors_free(t);
        test_context_free(ctx, NULL);
    }
}

static void test_damaged_files(void **state)
{
    static const unsigned char flips[] = { 0x01, 0x04, 0x80 };
    hl_context *ctx = test_context(NULL, 1);
    char *data, label[64];
    size_t size, header;
    (void)state;
    write_good("cnf");
    CHECK_OK(ctx, hl_file_load(ctx, "good.hollow", 1 << 20, &data, &size));
    forget_checksum(data, size);
    header = 8 + (unsigned char)data[0] + 256 * (size_t)(unsigned char)data[1];
    assert_in_range(header, 100, size - 1);
    for (size_t cut = 0; cut < size; cut += 1 + (cut > header) * 7) {
        snprintf(label, sizeof label, "cut after %zu", cut);
        put_file("cut.hollow", data, cut);
        check_refused("cut.hollow", HL_ERR_FORMAT, "", label);
    }
    for (size_t at = 0; at < size; at++)
        for (size_t f = 0; f < sizeof flips && (at < header || (f == 2 && at % 4 == 3)); f++) {
            snprintf(label, sizeof label, "byte %zu ^ %02x", at, flips[f]);
            data[at] = (char)(data[at] ^ flips[f]);
            put_file("flip.hollow", data, size);
            check_survives("flip.hollow", label);
            data[at] = (char)(data[at] ^ flips[f]);
        }
    hl_free(ctx, data);
    test_context_free(ctx, NULL);
}

/* ---- a trained model ---- */

/* Two columns of different units: a bent band and its noise. Rows of `side` are 1 where the band is turned over. */
static void make_band(size_t rows, uint64_t seed, double *x, double *side)
{
    for (size_t r = 0; r < rows; r++) {
        double a = hl_random_normal(seed, 1, r), b = 0.5 * hl_random_normal(seed, 2, r) + 0.7 * (a * a - 1);
        double sign = hl_random_bits(seed, 3, r) & 1 ? 1 : -1;
        if (side)
            side[r] = sign;
        x[2 * r] = 20 + 3 * a;
        x[2 * r + 1] = 0.01 * (side ? sign * b : b) - 5;
    }
}

static hl_density_column measure(const char *name, size_t rows, size_t columns, size_t column, const double *x)
{
    double mean = 0, square = 0;
    for (size_t r = 0; r < rows; r++)
        mean += x[r * columns + column] / (double)rows;
    for (size_t r = 0; r < rows; r++)
        square += pow(x[r * columns + column] - mean, 2) / (double)rows;
    return (hl_density_column){ name, mean, sqrt(square) };
}

/* A model of the band, given its side if `context`; all in the units of `scale` times the second column's. */
static hl_density *train(hl_context *ctx, const char *kind, bool context, double scale, size_t iterations)
{
    static double x[2 * TRAIN], side[TRAIN];
    hl_flow_spec spec = { .kind = kind, .net = { .dim = 2, .context = context, .hidden = 24, .width = 16 } };
    hl_fit_data data = { TRAIN, x, context ? side : NULL, NULL };
    hl_fit_options options = { .iterations = iterations, .batch = 128, .optimizer = { .rate = 1e-2 } };
    hl_density *model;
    hl_fit *fit;
    hl_status status;
    make_band(TRAIN, 1, x, context ? side : NULL);
    hl_density_column columns[] = { measure("a", TRAIN, 2, 0, x), measure("b", TRAIN, 2, 1, x), { "side", 0, 1 } };
    columns[1].mean *= scale; /* powers of two and the like aside, scaling the rows would round them */
    columns[1].deviation *= scale;
    CHECK_OK(ctx, hl_density_create(ctx, &spec, columns, &model));
    CHECK_OK(ctx, hl_flow_init(hl_density_flow(model), 1));
    for (size_t r = 0; r < TRAIN; r++)
        x[2 * r + 1] *= scale;
    hl_density_standardise(model, TRAIN, x, side);
    CHECK_OK(ctx, hl_fit_create(hl_density_flow(model), &data, NULL, &options, &fit));
    while ((status = hl_fit_step(fit, NULL)) == HL_OK)
        continue;
    CHECK_STATUS(ctx, status, HL_STOPPED);
    CHECK_OK(ctx, hl_fit_finish(fit));
    hl_fit_free(fit);
    return model;
}

/* log p is in the units of the data. */
static void test_units(void **state)
{
    enum { ROWS = 200 };
    double x[2 * ROWS], logp[2][ROWS];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *model = train(ctx, "cnf", false, 1, 20), *scaled = train(ctx, "cnf", false, 1000, 20);
    (void)state;
    CHECK_OK(ctx, hl_density_set_solver(model, &(hl_flow_solver){ .rtol = 1e-6, .atol = 1e-6 }));
    CHECK_OK(ctx, hl_density_set_solver(scaled, &(hl_flow_solver){ .rtol = 1e-6, .atol = 1e-6 }));
    make_band(ROWS, 2, x, NULL);
    CHECK_OK(ctx, hl_density_logp(model, ROWS, x, NULL, logp[0]));
    for (size_t r = 0; r < ROWS; r++)
        x[2 * r + 1] *= 1000;
    CHECK_OK(ctx, hl_density_logp(scaled, ROWS, x, NULL, logp[1]));
    for (size_t r = 0; r < ROWS; r++)
        CHECK_NEAR(logp[0][r] - logp[1][r], log(1000), 1e-3, "a column in other units");
    hl_density_free(model);
    hl_density_free(scaled);
    /* the same flow behind other units: exactly the scale */
    hl_flow_spec spec = small_spec("maf");
    hl_density_column columns[] = { { "a", 1, 2 }, { "b", -3, 4 } }, other[] = { { "a", 1, 2 }, { "b", -24, 32 } };
    CHECK_OK(ctx, hl_density_create(ctx, &spec, columns, &model));
    CHECK_OK(ctx, hl_density_create(ctx, &spec, other, &scaled));
    CHECK_OK(ctx, hl_flow_init(hl_density_flow(model), 1));
    CHECK_OK(ctx, hl_flow_init(hl_density_flow(scaled), 1));
    CHECK_OK(ctx, hl_density_logp(model, 1, (double[]){ 2, 1 }, NULL, &logp[0][0]));
    CHECK_OK(ctx, hl_density_logp(scaled, 1, (double[]){ 2, 8 }, NULL, &logp[1][0]));
    CHECK_NEAR(logp[0][0] - logp[1][0], log(8), 1e-12, "eight times the unit");
    hl_density_free(model);
    hl_density_free(scaled);
    test_context_free(ctx, NULL);
}

/* exp(log p) over the plane, by the midpoint rule, which converges fast where all vanishes at the ends. */
static double integral(hl_context *ctx, hl_density *model)
{
    enum { N = 220 };
    static double x[2 * N * N], logp[N * N];
    hl_density_column a = hl_density_get_column(model, 0), b = hl_density_get_column(model, 1);
    double sum = 0, step = 18.0 / N;
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++) {
            x[2 * (i * N + k)] = a.mean + a.deviation * (-9 + step * ((double)i + 0.5));
            x[2 * (i * N + k) + 1] = b.mean + b.deviation * (-9 + step * ((double)k + 0.5));
        }
    CHECK_OK(ctx, hl_density_logp(model, (size_t)N * N, x, NULL, logp));
    for (size_t i = 0; i < (size_t)N * N; i++)
        sum += exp(logp[i]) * step * step * a.deviation * b.deviation;
    return sum;
}

/* The density integrates to 1, and -log p of its own samples has the mean that the integral of -p log p has for samples of
 * other seeds and for the data: they are the same density. */
static void test_integral_and_samples(void **state)
{
    enum { ROWS = 4000 };
    static double x[2 * ROWS], logp[ROWS];
    static const char *const some[] = { "cnf", "maf" };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        hl_density *model = train(ctx, some[k], false, 1, 250);
        CHECK_NEAR(integral(ctx, model), 1, 1e-3, some[k]);
        /* of a: N(20, 9); of b given a: N(.., 0.005^2) */
        double entropy = log(2 * acos(-1) * exp(1)) + log(3 * 0.005), mean[3] = { 0 }, square = 0;
        for (size_t s = 0; s < 3; s++) {
            if (s < 2)
                CHECK_OK(ctx, hl_density_sample(model, s, 0, ROWS, NULL, x));
            else
                make_band(ROWS, 77, x, NULL);
            CHECK_OK(ctx, hl_density_logp(model, ROWS, x, NULL, logp));
            for (size_t r = 0; r < ROWS; r++) {
                mean[s] -= logp[r] / ROWS;
                square += s ? 0 : logp[r] * logp[r] / ROWS;
            }
        }
        double error = sqrt((square - mean[0] * mean[0]) / ROWS);
        CHECK_NEAR(mean[0], mean[1], 6 * error, "samples of two seeds");
        CHECK_NEAR(mean[0], entropy, 0.2, "the entropy of the samples");
        CHECK_NEAR(mean[2], entropy, k ? 0.3 : 0.15, "the cross entropy of the data");
        CHECK(mean[2] > entropy - 0.05, "no better than perfect");
        hl_density_free(model);
    }
    test_context_free(ctx, NULL);
}

/* The entropy that the samples have equals the integral of -p log p over a grid. */
static void test_entropy(void **state)
{
    enum { N = 200, ROWS = 8000 };
    static double x[2 * N * N], logp[N * N];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *model = train(ctx, "cnf", false, 1, 60);
    hl_density_column a = hl_density_get_column(model, 0), b = hl_density_get_column(model, 1);
    double entropy = 0, mean = 0, square = 0, step = 16.0 / N;
    (void)state;
    for (size_t i = 0; i < (size_t)N * N; i++) {
        x[2 * i] = a.mean + a.deviation * (-8 + step * ((double)(i / N) + 0.5));
        x[2 * i + 1] = b.mean + b.deviation * (-8 + step * ((double)(i % N) + 0.5));
    }
    CHECK_OK(ctx, hl_density_logp(model, (size_t)N * N, x, NULL, logp));
    for (size_t i = 0; i < (size_t)N * N; i++)
        entropy -= exp(logp[i]) * logp[i] * step * step * a.deviation * b.deviation;
    CHECK_OK(ctx, hl_density_sample(model, 3, 0, ROWS, NULL, x));
    CHECK_OK(ctx, hl_density_logp(model, ROWS, x, NULL, logp));
    for (size_t r = 0; r < ROWS; r++) {
        mean -= logp[r] / ROWS;
        square += logp[r] * logp[r] / ROWS;
    }
    CHECK_NEAR(mean, entropy, 4 * sqrt((square - mean * mean) / ROWS), "the entropy of samples and of the density");
    hl_density_free(model);
    test_context_free(ctx, NULL);
}

/* p(b, a | side): the band is turned over with the side, and the model knows. */
static void test_context_columns(void **state)
{
    enum { ROWS = 1000 };
    double x[2 * ROWS], side[ROWS], logp[ROWS], mean[2] = { 0 };
    hl_context *ctx = test_context(NULL, 1);
    hl_density *model = train(ctx, "cnf", true, 1, 250);
    (void)state;
    make_band(ROWS, 5, x, side);
    for (size_t turned = 0; turned < 2; turned++) {
        CHECK_OK(ctx, hl_density_logp(model, ROWS, x, side, logp));
        for (size_t r = 0; r < ROWS; r++) {
            mean[turned] -= logp[r] / ROWS;
            side[r] = -side[r];
        }
    }
    double entropy = log(2 * acos(-1) * exp(1)) + log(3 * 0.005);
    CHECK_NEAR(mean[0], entropy, 0.25, "given the side");
    CHECK(mean[1] > mean[0] + 1, "given the other side");
    CHECK_OK(ctx, hl_density_sample(model, 1, 0, ROWS, side, x));
    size_t right = 0;
    for (size_t r = 0; r < ROWS; r++) {
        double a = (x[2 * r] - 20) / 3, b = (x[2 * r + 1] + 5) / 0.01;
        right += fabs(b - side[r] * 0.7 * (a * a - 1)) < 1.5;
    }
    CHECK(right > ROWS * 95 / 100, "samples given the side");
    side[3] = NAN; /* one row's own affair */
    CHECK_STATUS(ctx, hl_density_logp(model, ROWS, x, side, logp), HL_ERR_NOT_FINITE);
    check_message(ctx, "row 3");
    for (size_t r = 0; r < ROWS; r++)
        CHECK(isnan(logp[r]) == (r == 3), "a context that is no number");
    CHECK_STATUS(ctx, hl_density_sample(model, 1, 0, ROWS, side, x), HL_ERR_NOT_FINITE);
    CHECK(isnan(x[6]) && isnan(x[7]) && isfinite(x[5]) && isfinite(x[8]), "a context that is no number");
    CHECK_STATUS(ctx, hl_density_logp(model, 1, x, NULL, logp), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_sample(model, 1, 0, 1, NULL, x), HL_ERR_INVALID);
    hl_density_free(model);
    test_context_free(ctx, NULL);
}

/* ---- rows by themselves ---- */

/* A row's log p and a sample have the same bits whatever is beside them, an extreme row too, for 1 and 2 threads. */
static void test_rows(void **state)
{
    enum { MANY = 2500, D = 3 };
    static double x[MANY * D], c[MANY * 2], logp[MANY], first[MANY], drawn[MANY * D], first_drawn[MANY * D];
    (void)state;
    for (size_t k = 0; hl_flow_kinds()[k]; k++)
        for (int threads = 1; threads <= 2; threads++) {
            hl_context *ctx = test_context(NULL, threads);
            hl_flow_spec spec = small_spec(hl_flow_kinds()[k]);
            spec.net.dim = D;
            spec.net.context = 2;
            spec.net.hidden = 9;
            spec.net.dtype = k % 2 ? HL_F32 : HL_F64;
            hl_density *model = make_model(ctx, &spec);
            double one, row[D];
            fill_rows(model, MANY, 3, x, c);
            for (size_t i = 0; i < D; i++) /* an extreme row between the others */
                x[7 * D + i] *= 1e6;
            hl_density_logp(model, MANY, x, c, logp);
            CHECK_OK(ctx, hl_density_sample(model, 9, 0, MANY, c, drawn));
            if (threads == 2) {
                assert_memory_equal(first, logp, sizeof logp);
                assert_memory_equal(first_drawn, drawn, sizeof drawn);
            }
            memcpy(first, logp, sizeof logp);
            memcpy(first_drawn, drawn, sizeof drawn);
            for (size_t r = 6; r < MANY; r += r < 10 ? 1 : 417) {
                hl_density_logp(model, 1, x + r * D, c + r * 2, &one);
                assert_memory_equal(&one, &logp[r], sizeof one);
                CHECK(r == 7 || isfinite(one), hl_flow_kinds()[k]);
                CHECK_OK(ctx, hl_density_sample(model, 9, r, 1, c + r * 2, row));
                assert_memory_equal(row, drawn + r * D, sizeof row);
            }
            hl_density_free(model);
            test_context_free(ctx, NULL);
        }
}

/* The row that failed is named by its place in the whole call. */
static void test_failed_row(void **state)
{
    enum { MANY = 5000, BAD = 4711 };
    static double x[MANY * 2], logp[MANY];
    hl_context *ctx = test_context(NULL, 1);
    hl_flow_spec spec = small_spec("realnvp");
    hl_density *model = make_model(ctx, &spec);
    (void)state;
    fill_rows(model, MANY, 1, x, NULL);
    x[BAD * 2 + 1] = INFINITY;
    CHECK_STATUS(ctx, hl_density_logp(model, MANY, x, NULL, logp), HL_ERR_NOT_FINITE);
    check_message(ctx, "row 4711, value 1: ");
    for (size_t r = 0; r < MANY; r++)
        CHECK(isnan(logp[r]) == (r == BAD), "the row itself and no other");
    hl_density_free(model);
    test_context_free(ctx, NULL);
}

/* ---- checkpoints ---- */

enum { CHECKPOINT_ROWS = 120, CHECKPOINT_ITERATIONS = 12 };

typedef struct training {
    hl_context *ctx;
    hl_density *model;
    hl_fit *fit;
    double x[2 * CHECKPOINT_ROWS];
} training;

static hl_status begin(training *t, hl_context *ctx, const char *kind)
{
    hl_flow_spec spec = small_spec(kind);
    hl_density_column columns[] = { { "a", 20, 3 }, { "b", -5, 0.01 } };
    hl_fit_options options = { .iterations = CHECKPOINT_ITERATIONS, .batch = 32, .validate_every = 4 };
    *t = (training){ .ctx = ctx };
    make_band(CHECKPOINT_ROWS, 1, t->x, NULL);
    hl_status status = hl_density_create(ctx, &spec, columns, &t->model);
    if (!status)
        status = hl_flow_init(hl_density_flow(t->model), 1);
    hl_density_standardise(t->model, CHECKPOINT_ROWS, t->x, NULL);
    hl_fit_data data = { 100, t->x, NULL, NULL }, valid = { 20, t->x + 200, NULL, NULL };
    if (!status)
        status = hl_fit_create(hl_density_flow(t->model), &data, &valid, &options, &t->fit);
    return status;
}

static void end(training *t)
{
    hl_fit_free(t->fit);
    hl_density_free(t->model);
}

static void run_to_end(training *t, const char *path)
{
    hl_status status;
    while ((status = hl_fit_step(t->fit, NULL)) == HL_OK)
        continue;
    CHECK_STATUS(t->ctx, status, HL_STOPPED);
    CHECK_OK(t->ctx, hl_fit_finish(t->fit));
    CHECK_OK(t->ctx, hl_density_save(t->model, path));
}

static void test_resume(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++)
        for (size_t stop = 0; stop <= CHECKPOINT_ITERATIONS; stop += 3) {
            test_allocator allocator;
            hl_context *ctx = test_context(&allocator, 1);
            training whole, first, second;
            const char *kind = k ? "maf" : "cnf";
            CHECK_OK(ctx, begin(&whole, ctx, kind));
            run_to_end(&whole, "whole.hollow");
            CHECK_OK(ctx, begin(&first, ctx, kind));
            for (size_t i = 0; i < stop; i++)
                CHECK_OK(ctx, hl_fit_step(first.fit, NULL));
            CHECK_OK(ctx, hl_fit_save(first.fit, "settings one two", "c.ckpt"));
            CHECK_OK(ctx, begin(&second, ctx, kind));
            CHECK_OK(ctx, hl_flow_init(hl_density_flow(second.model), 99));
            CHECK_OK(ctx, hl_fit_load(second.fit, "settings one two", "c.ckpt"));
            run_to_end(&second, "resumed.hollow");
            check_same_file(ctx, "whole.hollow", "resumed.hollow");
            run_to_end(&first, "first.hollow"); /* saving changes nothing */
            check_same_file(ctx, "whole.hollow", "first.hollow");
            end(&whole);
            end(&first);
            end(&second);
            test_context_free(ctx, &allocator);
        }
}

/* A checkpoint that does not belong here, or is damaged, is refused, and the fit goes on as if nothing had been. */
static void test_wrong_checkpoints(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    training t, other;
    char *data;
    size_t size;
    (void)state;
    CHECK_OK(ctx, begin(&t, ctx, "cnf"));
    CHECK_OK(ctx, begin(&other, ctx, "maf"));
    CHECK_OK(ctx, hl_fit_step(t.fit, NULL));
    CHECK_OK(ctx, hl_fit_save(t.fit, "iters 12 lr 0.1 seed 3", "c.ckpt"));
    CHECK_STATUS(ctx, hl_fit_load(t.fit, "iters 12 lr 0.2 seed 3", "c.ckpt"), HL_ERR_INVALID);
    check_message(ctx, "c.ckpt: the checkpoint has other settings or data: it has 'lr 0.1', this run has 'lr 0.2'");
    CHECK_STATUS(ctx, hl_fit_load(t.fit, "", "c.ckpt"), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_load(other.fit, "iters 12 lr 0.1 seed 3", "c.ckpt"), HL_ERR_FORMAT);
    check_message(ctx, "c.ckpt: the checkpoint does not match the model");
    CHECK_STATUS(ctx, hl_fit_load(t.fit, "", "absent.ckpt"), HL_ERR_IO);
    CHECK_STATUS(ctx, hl_fit_save(t.fit, "", "none/c.ckpt"), HL_ERR_IO);
    /* A file of another kind is kept; an empty one is nothing to keep. */
    FILE *foreign = fopen("data.csv", "w");
    assert_true(foreign && fputs("a,b\n1,2\n", foreign) >= 0 && fclose(foreign) == 0);
    CHECK_STATUS(ctx, hl_fit_save(t.fit, "", "data.csv"), HL_ERR_IO);
    check_message(ctx, "data.csv exists and is not a checkpoint of hollow; it is not replaced");
    data = NULL;
    CHECK_OK(ctx, hl_file_load(ctx, "data.csv", 100, &data, &size));
    assert_string_equal(data, "a,b\n1,2\n");
    hl_free(ctx, data);
    foreign = fopen("data.csv", "w");
    assert_true(foreign && fclose(foreign) == 0);
    CHECK_OK(ctx, hl_fit_save(t.fit, "", "data.csv"));
    CHECK_OK(ctx, hl_fit_save(t.fit, "", "data.csv")); /* now it is one */
    CHECK_STATUS(ctx, hl_fit_load(t.fit, NULL, "c.ckpt"), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_save(t.fit, NULL, "c.ckpt"), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_save(NULL, "", "c.ckpt"), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_load(NULL, "", "c.ckpt"), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_density_save(t.model, "m.hollow"));
    CHECK_STATUS(ctx, hl_fit_load(t.fit, "", "m.hollow"), HL_ERR_FORMAT);
    check_message(ctx, "m.hollow: not a checkpoint of hollow");
    check_refused("c.ckpt", HL_ERR_FORMAT, "not a density model", "a checkpoint is no model");
    CHECK_OK(ctx, hl_file_load(ctx, "c.ckpt", 1 << 20, &data, &size));
    for (size_t at = 0; at < size; at += at < 300 ? 1 : 97) {
        data[at] = (char)(data[at] ^ 0x10);
        put_file("bad.ckpt", data, size);
        hl_status status = hl_fit_load(t.fit, "iters 12 lr 0.1 seed 3", "bad.ckpt");
        CHECK(status < 0, "a damaged byte");
        check_message(ctx, "bad.ckpt");
        data[at] = (char)(data[at] ^ 0x10);
        put_file("bad.ckpt", data, at);
        CHECK_STATUS(ctx, hl_fit_load(t.fit, "iters 12 lr 0.1 seed 3", "bad.ckpt"), HL_ERR_FORMAT);
    }
    double *saved = test_calloc(hl_fit_state_size(t.fit), sizeof *saved);
    static const double steps[] = { 0, 1e6, NAN, -1 };
    for (size_t i = 0; i < 4; i++) {
        hl_fit_get_state(t.fit, saved);
        saved[1] = steps[i];
        CHECK_STATUS(ctx, hl_fit_set_state(t.fit, saved), HL_ERR_INVALID);
    }
    test_free(saved);
    run_to_end(&t, "after.hollow");
    end(&t);
    CHECK_OK(ctx, begin(&t, ctx, "cnf"));
    run_to_end(&t, "whole.hollow");
    check_same_file(ctx, "whole.hollow", "after.hollow");
    hl_free(ctx, data);
    end(&t);
    end(&other);
    test_context_free(ctx, NULL);
}

/* A fit that is ended before its first validation gives what it has learnt, not what it began with. */
static void test_early_end(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    training t;
    float before, after;
    (void)state;
    CHECK_OK(ctx, begin(&t, ctx, "cnf"));
    hl_net *net = hl_flow_net(hl_density_flow(t.model), 0);
    before = ((float *)param_named(net, "transformer.0.bias").values)[0];
    CHECK_OK(ctx, hl_fit_step(t.fit, NULL));
    CHECK_OK(ctx, hl_fit_step(t.fit, NULL));
    CHECK_OK(ctx, hl_fit_finish(t.fit));
    after = ((float *)param_named(net, "transformer.0.bias").values)[0];
    CHECK(after != before, "something was learnt");
    end(&t);
    test_context_free(ctx, NULL);
}

/* ---- out of memory ---- */

static hl_status whole_life(hl_context *ctx, void *user)
{
    hl_flow_spec spec = small_spec(user);
    hl_density_column columns[COLUMNS];
    hl_density *model = NULL, *back = NULL;
    double x[4] = { 0.1, 2, 3, 4 }, logp[2];
    make_columns(columns);
    hl_status status = hl_density_create(ctx, &spec, columns, &model);
    if (!status)
        status = hl_flow_init(hl_density_flow(model), 1);
    if (!status)
        status = hl_density_set_factor(model, (const double[]){ 1, 0, 0.5, 0.5 });
    if (!status)
        status = hl_density_save(model, "m.hollow");
    if (!status)
        status = hl_density_load(ctx, "m.hollow", &back);
    if (!status)
        status = hl_density_logp(back, 2, x, NULL, logp);
    if (!status)
        status = hl_density_sample(back, 1, 0, 2, NULL, x);
    hl_density_free(model);
    hl_density_free(back);
    return status;
}

static hl_status fit_and_save(hl_context *ctx, void *user)
{
    training t;
    hl_status status = begin(&t, ctx, user);
    if (!status)
        status = hl_fit_step(t.fit, NULL);
    if (!status)
        status = hl_fit_save(t.fit, "s", "c.ckpt");
    if (!status)
        status = hl_fit_load(t.fit, "s", "c.ckpt");
    end(&t);
    return status;
}

static void test_every_allocation(void **state)
{
    (void)state;
    check_every_allocation(1, whole_life, "cnf");
    check_every_allocation(2, whole_life, "maf");
    check_every_allocation(1, fit_and_save, "realnvp");
}

/* With a flow that does nothing a model is a normal distribution, of covariance D L L' D. */
static void test_factor(void **state)
{
    enum { ROWS = 50 };
    static const double l[9] = { 0.8, 99, 99, 0.6, 0.05, 99, -0.3, 2, 1.5 }; /* the upper triangle is not read */
    double x[ROWS * 3], u[ROWS * 3], logp[ROWS], wrong[9];
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_density_column columns[COLUMNS];
    hl_flow_spec spec = small_spec("cnf");
    hl_density *model, *back;
    (void)state;
    make_columns(columns);
    spec.net.dim = 3;
    CHECK_OK(ctx, hl_density_create(ctx, &spec, columns, &model));
    CHECK_OK(ctx, hl_density_sample(model, 5, 0, ROWS, NULL, u));
    hl_density_standardise(model, ROWS, u, NULL); /* the base's noise */
    CHECK_OK(ctx, hl_density_set_factor(model, l));
    CHECK_OK(ctx, hl_density_sample(model, 5, 0, ROWS, NULL, x));
    CHECK_OK(ctx, hl_density_logp(model, ROWS, x, NULL, logp));
    for (size_t r = 0; r < ROWS; r++) {
        double expected = -1.5 * log(2 * acos(-1));
        for (size_t i = 0; i < 3; i++) {
            double y = 0;
            for (size_t j = 0; j <= i; j++)
                y += l[i * 3 + j] * u[r * 3 + j];
            CHECK_LE(fabs((x[r * 3 + i] - columns[i].mean) / columns[i].deviation - y), 1e-9, "L u");
            expected -= 0.5 * u[r * 3 + i] * u[r * 3 + i] + log(columns[i].deviation * l[i * 4]);
        }
        CHECK_LE(fabs(logp[r] - expected), 1e-4, "log p");
    }
    hl_density_unstandardise(model, ROWS, u); /* L u, in the units of the columns */
    for (size_t i = 0; i < 3 * ROWS; i++)
        CHECK_LE(fabs(u[i] - x[i]), 1e-9 * (columns[i % 3].deviation + fabs(columns[i % 3].mean)), "back in units");
    hl_density_unstandardise(NULL, ROWS, u);
    memcpy(wrong, l, sizeof wrong);
    wrong[4] = 0;
    CHECK_STATUS(ctx, hl_density_set_factor(model, wrong), HL_ERR_INVALID);
    check_message(ctx, "0 in row 2, column 2");
    wrong[4] = 1;
    wrong[6] = NAN;
    CHECK_STATUS(ctx, hl_density_set_factor(model, wrong), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_set_factor(NULL, l), HL_ERR_INVALID);
    assert_true(hl_density_factor(model)[4] == l[4]); /* as before */
    assert_null(hl_density_factor(NULL));

    hl_tensors *t = NULL; /* a file whose factor does not fit */
    const size_t shape[2] = { 3, 2 };
    CHECK_OK(ctx, hl_density_set_factor(model, NULL));
    CHECK_OK(ctx, hl_density_save(model, "f.hollow"));
    CHECK_OK(ctx, hl_tensors_read(ctx, "f.hollow", &t));
    CHECK_OK(ctx, hl_tensors_add(t, "factor", HL_F64, 2, shape, l));
    CHECK_OK(ctx, hl_tensors_write(t, "g.hollow"));
    CHECK_STATUS(ctx, hl_density_load(ctx, "g.hollow", &back), HL_ERR_FORMAT);
    check_message(ctx, "g.hollow: its factor of the columns");
    hl_tensors_free(t);
    hl_density_free(model);
    test_context_free(ctx, &allocator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_round_trip, empty_directory),
        cmocka_unit_test_teardown(test_factor, empty_directory),
        cmocka_unit_test_teardown(test_wrong_calls, empty_directory),
        cmocka_unit_test_teardown(test_bad_metadata, empty_directory),
        cmocka_unit_test_teardown(test_bad_tensors, empty_directory),
        cmocka_unit_test_teardown(test_damaged_files, empty_directory),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_integral_and_samples),
        cmocka_unit_test(test_entropy),
        cmocka_unit_test(test_context_columns),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_failed_row),
        cmocka_unit_test_teardown(test_resume, empty_directory),
        cmocka_unit_test_teardown(test_wrong_checkpoints, empty_directory),
        cmocka_unit_test_teardown(test_early_end, empty_directory),
        cmocka_unit_test_teardown(test_every_allocation, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
