/* test_vae_columns.c - real-valued data in any units: bounds and samples are in those of the data, files keep them, and a trained autoencoder is
 * compared with a normal distribution. */
#include <math.h>
#include <string.h>

#include "hollow/vae_fit.h"
#include "io/safetensors.h"
#include "vae/rows.h"
#include "vae_support.h"

enum { DIM = 5, ROWS = 600, LATENT = 2 };
static const double unit[DIM] = { 1, 1000, 1e-6, 3, 40 }, origin[DIM] = { 0, 7000, 1, -20, 4 };

/* Two factors and noise; in units of their own if `units`. */
static double *make_rows(bool units)
{
    double *x = test_malloc(ROWS * DIM * sizeof *x);
    for (size_t i = 0; i < ROWS * DIM; i++) {
        size_t r = i / DIM, c = i % DIM;
        double value = 0.3 * hl_random_normal(1, 0, i);
        for (size_t k = 0; k < LATENT; k++)
            value += hl_random_normal(2, k, c) * hl_random_normal(3, k, r);
        x[i] = units ? origin[c] + unit[c] * value : value;
    }
    return x;
}

static double log_units(void)
{
    double sum = 0;
    for (size_t i = 0; i < DIM; i++)
        sum += log(unit[i]);
    return sum;
}

/* One autoencoder, once without units and once with them: the same bounds but for the units, the same codes, and means in the units. */
static void test_units(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double *plain = make_rows(false), *given = make_rows(true), z[2][ROWS * LATENT], mean[2][ROWS * DIM];
    hl_vae_rows rows[2] = { { .rows = ROWS, .values = plain }, { .rows = ROWS, .values = given } };
    hl_vae_row_result *bound[2];
    for (size_t k = 0; k < 2; k++) {
        hl_vae_spec spec = {
            .dim = DIM, .likelihood = "gaussian", .net = "fc", .latent = LATENT, .posterior = "planar", .dtype = HL_F64
        };
        hl_vae *v = small_vae(ctx, &spec);
        const double *shift, *scale;
        hl_vae_columns(v, &shift, &scale);
        assert_null(scale);
        if (k == 1) {
            CHECK_OK(ctx, hl_vae_set_columns(v, origin, unit));
            hl_vae_columns(v, &shift, &scale);
            assert_memory_equal(shift, origin, sizeof origin);
            assert_memory_equal(scale, unit, sizeof unit);
        }
        double *noise = test_malloc(ROWS * LATENT * sizeof *noise);
        hl_random_normals(6, 0, 0, ROWS * LATENT, noise);
        bound[k] = test_malloc(ROWS * sizeof **bound);
        /* the noise of a row depends on its contents, so it is given */
        double *log_q = test_malloc(ROWS * sizeof *log_q), *log_joint = test_malloc(ROWS * sizeof *log_joint);
        CHECK_OK(ctx, hl_vae_push(v, &rows[k], noise, z[k], log_q, log_joint));
        for (size_t r = 0; r < ROWS; r++)
            bound[k][r].elbo = log_joint[r] - log_q[r];
        CHECK_OK(ctx, hl_vae_decode(v, ROWS, z[k], mean[k]));
        test_free(noise);
        test_free(log_q);
        test_free(log_joint);
        hl_vae_free(v);
    }
    for (size_t i = 0; i < ROWS * LATENT; i++)
        CHECK_NEAR(z[1][i], z[0][i], 1e-8, "");
    for (size_t r = 0; r < ROWS; r++)
        CHECK_NEAR(bound[1][r].elbo, bound[0][r].elbo - log_units(), 1e-6, "");
    for (size_t i = 0; i < ROWS * DIM; i++)
        CHECK_NEAR((mean[1][i] - origin[i % DIM]) / unit[i % DIM], mean[0][i], 1e-6, "");
    for (size_t k = 0; k < 2; k++)
        test_free(bound[k]);
    test_free(plain);
    test_free(given);
    test_context_free(ctx, NULL);
}

/* The normal distribution with the moments of `from`, by its definition: solving with Gauss. */
static double normal_log_p(const double *from, size_t rows, const double *judged, size_t count)
{
    double mean[DIM] = { 0 }, sum = 0;
    for (size_t i = 0; i < rows * DIM; i++)
        mean[i % DIM] += from[i] / (double)rows;
    for (size_t r = 0; r < count; r++) {
        double a[DIM][DIM + 1], det = 1, z[DIM];
        for (size_t i = 0; i < DIM; i++) {
            a[i][DIM] = z[i] = judged[r * DIM + i] - mean[i];
            for (size_t j = 0; j < DIM; j++) {
                a[i][j] = 0;
                for (size_t k = 0; k < rows; k++)
                    a[i][j] += (from[k * DIM + i] - mean[i]) * (from[k * DIM + j] - mean[j]) / (double)rows;
            }
        }
        for (size_t i = 0; i < DIM; i++) {
            det *= a[i][i];
            for (size_t j = 0; j < DIM; j++) {
                double factor = j != i ? a[j][i] / a[i][i] : 0;
                for (size_t k = i; k <= DIM; k++)
                    a[j][k] -= factor * a[i][k];
            }
        }
        sum -= 0.5 * (log(det) + DIM * log(2 * 3.14159265358979323846));
        for (size_t i = 0; i < DIM; i++)
            sum -= 0.5 * z[i] * a[i][DIM] / a[i][i];
    }
    return sum / (double)count;
}

static void test_simple(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double *x = make_rows(false), log_p, independent;
    enum { FEW = 100 };
    hl_vae_rows from = { .rows = ROWS - FEW, .values = x }, judged = { .rows = FEW, .values = x + (ROWS - FEW) * DIM };
    hl_vae_spec spec = { .dim = DIM, .likelihood = "gaussian", .net = "linear" };
    hl_vae *v = small_vae(ctx, &spec);
    CHECK_OK(ctx, hl_vae_simple(v, &from, &judged, &log_p));
    CHECK_NEAR(log_p, normal_log_p(x, ROWS - FEW, judged.values, FEW), 1e-9, "");
    independent = hl_vae_independent(v, &(hl_vae_part_of){ &from, 0, 1 }, &(hl_vae_part_of){ &judged, 0, 1 });
    assert_true(independent < log_p - 1);
    /* a constant column does not hide the correlations of the others */
    for (size_t r = 0; r < ROWS; r++)
        x[r * DIM] = 7;
    CHECK_OK(ctx, hl_vae_simple(v, &from, &judged, &log_p));
    independent = hl_vae_independent(v, &(hl_vae_part_of){ &from, 0, 1 }, &(hl_vae_part_of){ &judged, 0, 1 });
    assert_true(independent < log_p - 1);
    hl_vae_free(v);
    test_free(x);
    test_context_free(ctx, NULL);
}

typedef struct fitted {
    hl_vae *vae;
    hl_vae_outcome outcome;
} fitted;

static fitted fit(hl_context *ctx, const double *x, const size_t *image, const hl_vae *from)
{
    hl_settings *s = NULL;
    fitted f = { 0 };
    CHECK_OK(ctx, hl_settings_create(ctx, hl_vae_fit_options(), &s));
    CHECK_OK(ctx, hl_settings_set(s, "likelihood", "gaussian"));
    CHECK_OK(ctx, hl_settings_set(s, "net", "linear"));
    CHECK_OK(ctx, hl_settings_set(s, "latent", "2"));
    if (from)
        CHECK_OK(ctx, hl_settings_set(s, "iters", "20"));
    hl_vae_data data = { .dim = DIM, .train = { .rows = ROWS, .values = x }, .from = from };
    for (size_t i = 0; i < 3 && image; i++)
        data.image[i] = image[i];
    CHECK_OK(ctx, hl_vae_fit(ctx, &data, s, NULL, &f.vae, &f.outcome));
    hl_settings_free(s);
    return f;
}

/* With default settings 600 rows are learned about as well as by a normal distribution, which is right here, in any units. */
static void test_fit(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    for (int units = 0; units < 2; units++) {
        double *x = make_rows(units);
        fitted f = fit(ctx, x, NULL, NULL);
        assert_true(f.outcome.iterations >= 4000);
        CHECK(fabs(f.outcome.best - f.outcome.simple) < 0.15, "the autoencoder is behind a normal distribution");
        double one[DIM];
        CHECK_OK(ctx, hl_vae_decode(f.vae, 1, (const double[LATENT]){ 0 }, one));
        for (size_t i = 0; i < DIM && units; i++) /* the middle of the data */
            assert_true(fabs(one[i] - origin[i]) < unit[i]);
        fitted more = fit(ctx, x, NULL, f.vae); /* keeps the units of what it started from */
        assert_memory_equal(more.vae->shift, f.vae->shift, 2 * DIM * sizeof(double));
        hl_vae_free(more.vae);
        hl_vae_free(f.vae);
        test_free(x);
    }
    double *x = make_rows(true);
    fitted f = fit(ctx, x, (const size_t[]){ 1, 1, DIM }, NULL); /* pixels have one unit */
    for (size_t i = 1; i < DIM; i++)
        assert_true(f.vae->scale[i] == f.vae->scale[0] && f.vae->scale[0] > 300);
    assert_int_equal(f.vae->spec.deviations, 1);
    hl_vae_free(f.vae);
    test_free(x);
    test_context_free(ctx, NULL);
}

/* The bytes of a file with these units. */
static unsigned char *bytes_of(hl_vae *v, size_t *size)
{
    CHECK_OK(v->ctx, hl_vae_write(v, NULL, 0, size));
    unsigned char *bytes = test_malloc(*size);
    CHECK_OK(v->ctx, hl_vae_write(v, bytes, *size, size));
    return bytes;
}

static void test_files(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_vae_spec spec = { .dim = DIM, .likelihood = "gaussian", .net = "linear", .latent = LATENT };
    hl_vae *v = small_vae(ctx, &spec), *again;
    size_t size;
    unsigned char *bytes = bytes_of(v, &size);
    assert_non_null(strstr((char *)bytes + 8, "hollow-vae 1")); /* without units, as ever */
    CHECK_OK(ctx, hl_vae_read(ctx, bytes, size, &again));
    assert_null(again->scale);
    assert_int_equal(again->spec.deviations, DIM);
    hl_vae_free(again);
    test_free(bytes);
    CHECK_OK(ctx, hl_vae_set_columns(v, origin, unit));
    bytes = bytes_of(v, &size);
    assert_non_null(strstr((char *)bytes + 8, "hollow-vae 2"));
    CHECK_OK(ctx, hl_vae_read(ctx, bytes, size, &again));
    assert_memory_equal(again->shift, origin, sizeof origin);
    assert_memory_equal(again->scale, unit, sizeof unit);
    CHECK_NEAR(again->log_scale, log_units(), 1e-12, "");
    hl_vae_free(again);
    test_free(bytes);
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

/* Files keep the names of columns; those of older versions have none. What is not a list of texts, one for each column, is refused. */
static void test_names(void **state)
{
    static const char *const names[DIM] = { "height", "", "\"quoted\", x", "\xc3\xa4", "height" };
    static const char *const wrong[] = { "{}", "[]", "[\"a\", \"b\", \"c\", \"d\", 5]", "[\"a\"" };
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_vae_spec spec = { .dim = DIM, .likelihood = "gaussian", .net = "linear", .latent = LATENT };
    hl_vae *v = small_vae(ctx, &spec), *again;
    size_t size;
    assert_null(hl_vae_name(v, 0));
    CHECK_OK(ctx, hl_vae_set_names(v, names));
    unsigned char *bytes = bytes_of(v, &size);
    CHECK_OK(ctx, hl_vae_read(ctx, bytes, size, &again));
    for (size_t i = 0; i < DIM; i++)
        assert_string_equal(hl_vae_name(again, i), names[i]);
    assert_null(hl_vae_name(again, DIM));
    hl_vae_free(again);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hl_tensors *t;
        CHECK_OK(ctx, hl_tensors_read_memory(ctx, "v.hollow", bytes, size, &t));
        CHECK_OK(ctx, hl_tensors_set_metadata(t, "names", wrong[i]));
        size_t changed;
        CHECK_OK(ctx, hl_tensors_write_memory(t, NULL, 0, &changed));
        unsigned char *other = test_malloc(changed);
        CHECK_OK(ctx, hl_tensors_write_memory(t, other, changed, &changed));
        CHECK_STATUS(ctx, hl_vae_read(ctx, other, changed, &again), HL_ERR_FORMAT);
        assert_non_null(strstr(hl_context_message(ctx), "the names of its columns are not 5 texts"));
        test_free(other);
        hl_tensors_free(t);
    }
    CHECK_STATUS(ctx, hl_vae_set_names(v, (const char *const[DIM]){ "a", "b", NULL, "d", "e" }), HL_ERR_INVALID);
    assert_string_equal(hl_vae_name(v, 0), "height"); /* as before */
    CHECK_OK(ctx, hl_vae_set_names(v, NULL));
    assert_null(hl_vae_name(v, 0));
    test_free(bytes);
    hl_vae_free(v);
    test_context_free(ctx, NULL);
}

/* A column of one value has the unit 1, also if the mean of its values is not that value to the bit; one whose squares are no numbers
 * is refused. */
static void test_odd_columns(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_vae_spec spec = { .dim = DIM, .likelihood = "gaussian", .net = "linear" };
    for (int k = 0; k < 4; k++) {
        static const double factor[] = { 1, 1e-200, 1e200, 1e308 };
        double *x = make_rows(false);
        hl_vae *v = small_vae(ctx, &spec);
        for (size_t r = 0; r < ROWS; r++) {
            x[r * DIM] = 0.1;
            x[r * DIM + 2] = 1e15 + (double)(r % 2);
            x[r * DIM + 1] = fmin(fmax(x[r * DIM + 1], -1), 1) * factor[k];
        }
        size_t constants = 0, first = DIM;
        hl_status status = hl_vae_choose_columns(v, &(hl_vae_rows){ .rows = ROWS, .values = x }, &constants, &first);
        if (k) {
            assert_int_equal(status, HL_ERR_INVALID);
            assert_non_null(strstr(hl_context_message(ctx),
                                   "column 2 is too small or too large to compute with: its standard deviation is"));
        } else {
            CHECK_OK(ctx, status);
            assert_true(v->shift[0] == 0.1 && v->scale[0] == 1);
            assert_int_equal(constants, 1);
            assert_int_equal(first, 0);
            assert_true(v->shift[2] == 1e15 + 0.5 && v->scale[2] == 0.5);
        }
        hl_vae_free(v);
        test_free(x);
    }
    test_context_free(ctx, NULL);
}

/* Draws of x given z have the learned deviations, in the units of the columns; of bits they are bits. */
static void test_draw(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_vae_spec spec = { .dim = DIM, .likelihood = "gaussian", .net = "linear", .dtype = HL_F64 };
    hl_vae_spec binary = { .dim = DIM, .net = "linear" };
    hl_vae *v = small_vae(ctx, &spec), *bits = small_vae(ctx, &binary);
    double x[ROWS * DIM], again[DIM], sum, square;
    hl_params *params = hl_vae_params(v);
    double *log_deviation = params->param[hl_params_find(params, "decoder.log_deviation")].values;
    CHECK_OK(ctx, hl_vae_set_columns(v, origin, unit));
    for (size_t i = 0; i < DIM; i++)
        log_deviation[i] = log(0.1 * (double)(i + 1));
    for (size_t i = 0; i < ROWS * DIM; i++)
        x[i] = origin[i % DIM];
    CHECK_OK(ctx, hl_vae_draw(v, ROWS, 3, x));
    for (size_t i = 0; i < DIM; i++) {
        sum = square = 0;
        for (size_t r = 0; r < ROWS; r++) {
            double z = (x[r * DIM + i] - origin[i]) / unit[i] / (0.1 * (double)(i + 1));
            sum += z / ROWS;
            square += z * z / ROWS;
        }
        CHECK_NEAR(sum, 0, 0.15, "mean");
        CHECK_NEAR(square, 1, 0.2, "variance");
    }
    memcpy(again, origin, sizeof again); /* a row does not depend on the others */
    CHECK_OK(ctx, hl_vae_draw(v, 1, 3, again));
    assert_memory_equal(again, x, sizeof again);
    for (size_t i = 0; i < ROWS * DIM; i++)
        x[i] = 0.3;
    CHECK_OK(ctx, hl_vae_draw(bits, ROWS, 3, x));
    sum = 0;
    for (size_t i = 0; i < ROWS * DIM; i++) {
        assert_true(x[i] == 0 || x[i] == 1);
        sum += x[i] / (ROWS * DIM);
    }
    CHECK_NEAR(sum, 0.3, 0.04, "");
    CHECK_STATUS(ctx, hl_vae_draw(v, 1, 3, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_vae_draw(NULL, 1, 3, x), HL_ERR_INVALID);
    hl_vae_free(v);
    hl_vae_free(bits);
    test_context_free(ctx, NULL);
}

static void test_wrong(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double bad[DIM] = { 1, 1, 0, 1, 1 }, infinite[DIM] = { 1, INFINITY, 1, 1, 1 };
    hl_vae_spec spec = { .dim = DIM, .likelihood = "gaussian", .net = "linear" },
                bits = { .dim = DIM, .net = "linear" };
    hl_vae_spec odd = { .dim = DIM, .likelihood = "gaussian", .deviations = 3 };
    hl_vae *v = small_vae(ctx, &spec), *w = small_vae(ctx, &bits), *none;
    CHECK_STATUS(ctx, hl_vae_set_columns(v, origin, bad), HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "column 3"), hl_context_message(ctx));
    CHECK_STATUS(ctx, hl_vae_set_columns(v, infinite, unit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_vae_set_columns(v, NULL, unit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_vae_set_columns(w, origin, unit), HL_ERR_INVALID);
    assert_null(v->scale);
    CHECK_STATUS(ctx, hl_vae_create(ctx, &odd, &none), HL_ERR_INVALID);
    assert_int_equal(hl_vae_set_columns(NULL, origin, unit), HL_ERR_INVALID);
    hl_vae_free(v);
    hl_vae_free(w);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_units), cmocka_unit_test(test_simple),
                                        cmocka_unit_test(test_fit),   cmocka_unit_test(test_files),
                                        cmocka_unit_test(test_names), cmocka_unit_test(test_odd_columns),
                                        cmocka_unit_test(test_draw),  cmocka_unit_test(test_wrong) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
