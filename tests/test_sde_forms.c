/* test_sde_forms.c - drift and diffusion as expressions: grammar and messages, values and derivatives, constants with standard errors,
 * models and their files, hostile text and memory. */
#include "support.h"

#include "hollow/sde_bands.h"
#include "hollow/sde_forms.h"
#include "sde/expression.h"

enum { MOST = 24000, SUB = 10 };
static double t_all[MOST], x_all[MOST];
static size_t id_all[MOST];

/* dx = 1.5 (1 - x) dt + 0.5 sqrt(x) dW from near 3. */
static hl_sde_data cir(uint64_t seed, size_t paths, size_t times, double step)
{
    size_t row = 0;
    for (size_t p = 0; p < paths; p++) {
        double x = 3 + 0.4 * hl_random_normal(seed, 1, p);
        for (size_t j = 0; j < times; j++, row++) {
            t_all[row] = step * (double)j;
            id_all[row] = p;
            x_all[row] = x;
            for (size_t k = 0; k < SUB; k++)
                x = fabs(x + 1.5 * (1 - x) * step / SUB +
                         0.5 * sqrt(x * step / SUB) * hl_random_normal(seed, 2 + p, j * SUB + k));
        }
    }
    return (hl_sde_data){ row, t_all, x_all, id_all };
}

static double value(hl_context *ctx, const char *text, double t, const double *x)
{
    hl_sde_forms *f = NULL;
    double y[2];
    CHECK_OK(ctx, hl_sde_forms_parse(ctx, 2, NULL, text, NULL, &f));
    CHECK_OK(ctx, hl_sde_forms_eval(f, 1, &t, x, y, NULL));
    hl_sde_forms_free(f);
    return y[0];
}

static void test_values(void **state)
{
    hl_context *ctx = *state;
    const double x[] = { 0.7, -1.3 }, a = x[0], b = x[1], t = 2;
    const struct {
        const char *text;
        double value;
    } rows[] = { { "x1 = 1 - 2 - 3", -4 },
                 { "x1=2^3^2", 512 },
                 { "x1=-x2^2", -b * b },
                 { "x1=x2^2*3/2/x1", b * b * 3 / 2 / a },
                 { "x1 = 2^-1", 0.5 },
                 { " x1 = exp( -x1 ) + log(x1)*sqrt(x1) ", exp(-a) + log(a) * sqrt(a) },
                 { "x1=sin(x1)+cos(x2)-tan(x1)", sin(a) + cos(b) - tan(a) },
                 { "x1=tanh(x2)*abs(x2)*pi*1e-1", tanh(b) * fabs(b) * 0.314159265358979323846 },
                 { "x1=t*x1--x2", t * a + b },
                 { "x1=.5*(x1+(x2))", 0.5 * (a + b) },
                 { "x1=x1^1.5", pow(a, 1.5) } };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        CHECK_NEAR(value(ctx, rows[k].text, t, x), rows[k].value, 1e-14 * (1 + fabs(rows[k].value)), rows[k].text);
    assert_true(isnan(value(ctx, "x2=1", t, x)));
}

static void test_errors(void **state)
{
    hl_context *ctx = *state;
    const struct {
        const char *text, *says;
    } rows[] = { { "x3=1", "column 1: expected the name of a column" },
                 { "x1", "column 3: expected '='" },
                 { "x1=", "column 4: expected a number" },
                 { "x1=(1+2", "column 8: expected an operator or ')', found the end" },
                 { "x1=1 2", "column 6: expected an operator" },
                 { "x1=foo(2)", "column 4: expected a function" },
                 { "x1=exp 2", "column 8: expected '('" },
                 { "x1=1;x1=2", "column 6: expected a column that has no expression" },
                 { "x1=1+*2", "column 6: expected" },
                 { "x1=0x10", "column 4: expected a decimal number" },
                 { "x1=1e999", "column 4: expected a finite number" } };
    hl_sde_forms *f;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        CHECK_STATUS(ctx, hl_sde_forms_parse(ctx, 2, NULL, rows[k].text, NULL, &f), HL_ERR_INVALID);
        CHECK(strstr(hl_context_message(ctx), rows[k].says) != NULL, hl_context_message(ctx));
        assert_null(f);
    }
    static char deep[4000];
    memcpy(deep, "x1=", 3);
    memset(deep + 3, '(', sizeof deep - 4);
    CHECK_STATUS(ctx, hl_sde_forms_parse(ctx, 1, NULL, deep, NULL, &f), HL_ERR_INVALID);
    for (size_t k = 3; k + 2 < sizeof deep; k += 2)
        memcpy(deep + k, "1+", 2);
    CHECK_STATUS(ctx, hl_sde_forms_parse(ctx, 1, NULL, deep, NULL, &f), HL_ERR_INVALID);
    memset(deep + 3, '-', sizeof deep - 4);
    CHECK_STATUS(ctx, hl_sde_forms_parse(ctx, 1, NULL, deep, NULL, &f), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_forms_parse(ctx, 1, NULL, "x1=\xff", NULL, &f), HL_ERR_INVALID);
}

/* Derivatives by the constants against central differences. */
static void test_slopes(void **state)
{
    hl_context *ctx = *state;
    hl_sde_forms *f;
    double work[HL_EXPRESSION_WORK], slope[3], other[3], x[] = { 0.7, 1.9 };
    const double c[] = { 1.3, 0.4, -0.8 }, step = 1e-5;
    CHECK_OK(ctx,
             hl_sde_forms_parse(ctx, 2, NULL,
                                "x1 = a*(b - x1)/(1 + x2^a) + exp(c*x1)*tanh(b)^3 - sqrt(abs(c)+x2)*tan(b)", NULL, &f));
    assert_int_equal(hl_sde_forms_constants(f), 3);
    for (size_t k = 0; k < 3; k++)
        CHECK_OK(ctx, hl_sde_forms_set(f, k, c[k]));
    hl_expression_eval(f, 0, 0, 0, x, slope, work);
    for (size_t k = 0; k < 3; k++) {
        f->value[k] = c[k] + step;
        double up = hl_expression_eval(f, 0, 0, 0, x, other, work);
        f->value[k] = c[k] - step;
        double down = hl_expression_eval(f, 0, 0, 0, x, NULL, work);
        f->value[k] = c[k];
        CHECK_NEAR(slope[k], (up - down) / (2 * step), 1e-7 * (1 + fabs(slope[k])), f->constant[k]);
    }
    hl_sde_forms_free(f);
}

static void check_fit(hl_context *ctx, bool snapshots)
{
    const uint64_t sets = snapshots ? 1 : 3;
    static const double truth[] = { 1.5, 1, 0.5 };
    static const char *const names[] = { "kappa", "theta", "sigma" };
    double square[3] = { 0 };
    for (uint64_t seed = 1; seed <= sets; seed++) {
        hl_sde_data data = cir(seed, snapshots ? 300 : 150, 15, 0.15);
        hl_sde_forms *f;
        if (snapshots)
            data.trajectory = NULL;
        CHECK_OK(ctx, hl_sde_forms_parse(ctx, 1, NULL, "x1 = kappa*(theta - x1)", "x1 = sigma*sqrt(x1)", &f));
        CHECK_OK(ctx, hl_sde_forms_fit(f, &data, NULL));
        for (size_t k = 0; k < 3; k++) {
            hl_sde_constant c = hl_sde_forms_constant(f, k);
            assert_string_equal(c.name, names[k]);
            double z = (c.value - truth[k]) / c.error; /* of sigma the positive one of two */
            square[k] += z * z / (double)sets;
            CHECK_LE(fabs(c.value - truth[k]), 0.35, c.name);
            CHECK_LE(c.error, 0.15, "standard error");
        }
        hl_sde_forms_free(f);
    }
    for (size_t k = 0; k < 3; k++) {
        CHECK_LE(square[k], 9, "errors beyond the standard errors");
        CHECK_LE(0.01, square[k], "standard errors beyond the errors");
    }
}

/* Conditions of snapshots, of rows that are of the same trajectories: standard errors against the deviation over data sets. */
static double snapshots_ratio(hl_context *ctx)
{
    enum { SETS = 24 };
    double sum = 0, square = 0, told = 0;
    for (uint64_t seed = 1; seed <= SETS; seed++) {
        hl_sde_data data = cir(500 + seed, 147, 15, 0.15);
        hl_sde_forms *f;
        CHECK_OK(ctx, hl_sde_forms_parse(ctx, 1, NULL, "x1 = kappa*(theta - x1)", "x1 = sigma*sqrt(x1)", &f));
        CHECK_OK(ctx, hl_sde_forms_fit(f, &data, &(hl_sde_regress_options){ .use = "snapshots" }));
        hl_sde_constant c = hl_sde_forms_constant(f, 2);
        sum += c.value / SETS;
        square += c.value * c.value / SETS;
        told += c.error * c.error / SETS;
        hl_sde_forms_free(f);
    }
    return sqrt(told / ((square - sum * sum) * SETS / (SETS - 1)));
}

static void test_clusters(void **state)
{
    double ratio = snapshots_ratio(*state);
    CHECK_LE(0.65, ratio, "standard errors are too small");
    CHECK_LE(ratio, 1.65, "standard errors are too large");
}

static void test_fit(void **state)
{
    check_fit(*state, false);
    check_fit(*state, true);
}

/* The drift alone, a constant that stands twice, and what has no expression by the dictionary. */
static void test_mixed(void **state)
{
    hl_context *ctx = *state;
    hl_sde_data data = cir(3, 200, 20, 0.1);
    hl_sde_forms *f;
    CHECK_OK(ctx, hl_sde_forms_parse(ctx, 1, NULL, "x1 = a*a*(1 - x1) + 0*t", NULL, &f));
    CHECK_OK(ctx, hl_sde_forms_fit(f, &data, NULL));
    hl_sde_constant c = hl_sde_forms_constant(f, 0);
    CHECK_NEAR(c.value * c.value, 1.5, 0.15, "a^2");
    hl_sde_forms_free(f);
    CHECK_OK(ctx, hl_sde_forms_parse(ctx, 1, NULL, "x1 = a + b - x1", NULL, &f));
    CHECK_STATUS(ctx, hl_sde_forms_fit(f, &data, NULL), HL_ERR_NO_SOLUTION);
    assert_non_null(strstr(hl_context_message(ctx), "'a' and 'b'"));
    hl_sde_forms_free(f);
}

/* A model of expressions: values, slopes, its file. t is time whatever its name; of a negative g the size counts. */
static void test_model(void **state)
{
    hl_context *ctx = *state;
    hl_sde_forms *f;
    hl_sde *sde, *again;
    static char bytes[1 << 20];
    size_t size;
    const double t[] = { 0, 1 }, x[] = { 0.4, 1.7 };
    double drift[2], g[2], dg[2];
    const char *names[] = { "rate r", "year" };
    CHECK_OK(ctx,
             hl_sde_forms_parse(ctx, 1, names, "rate r = kappa*(1 - rate r) + sin(t)", "rate r = -0.3*rate r^2", &f));
    CHECK_OK(ctx, hl_sde_forms_set(f, 0, 2.5));
    hl_sde_spec spec = {
        .dim = 1, .forms = f, .network = "mlp", .hidden = 1, .layers = 1, .components = 1, .dtype = HL_F64
    };
    CHECK_OK(ctx, hl_sde_create(ctx, &spec, &sde));
    for (size_t k = 0; k < 2; k++)
        CHECK_OK(ctx, hl_sde_set_name(sde, k, names[k]));
    CHECK_OK(ctx, hl_sde_set_scale(sde, 1, 4, (double[]){ 2 }, (double[]){ 3 }));
    CHECK_OK(ctx, hl_sde_write(sde, bytes, sizeof bytes, &size));
    CHECK_OK(ctx, hl_sde_read(ctx, bytes, size, &again));
    for (int pass = 0; pass < 2; pass++) {
        CHECK_OK(ctx, hl_sde_eval(pass ? again : sde, 2, t, x, &(hl_sde_values){ .f = drift, .g = g, .dg = dg }));
        for (size_t k = 0; k < 2; k++) {
            CHECK_NEAR(drift[k], 2.5 * (1 - x[k]) + sin(t[k]), 1e-12, "drift");
            CHECK_NEAR(g[k], 0.3 * x[k] * x[k], 1e-12, "diffusion");
            CHECK_NEAR(dg[k], 0.6 * x[k], 1e-12, "slope");
        }
    }
    assert_string_equal(hl_sde_forms_constant(hl_sde_describe(again).forms, 0).name, "kappa");
    hl_sde_free(again);
    hl_sde_free(sde);
    hl_sde_forms_free(f);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    hl_sde_data data = { 600, t_all, x_all, id_all };
    hl_sde_forms *f = NULL;
    hl_sde *sde = NULL;
    static char bytes[1 << 18];
    size_t size;
    (void)user;
    hl_status status = hl_sde_forms_parse(ctx, 1, NULL, "x1 = a*(1 - x1)", NULL, &f);
    if (status == HL_OK)
        status = hl_sde_forms_fit(f, &data, &(hl_sde_regress_options){ .form = "linear", .use = "steps" });
    hl_sde_spec spec = { .dim = 1, .forms = f, .network = "mlp", .hidden = 1, .layers = 1, .components = 1 };
    if (status == HL_OK)
        status = hl_sde_create(ctx, &spec, &sde);
    if (status == HL_OK)
        status = hl_sde_write(sde, bytes, sizeof bytes, &size);
    hl_sde_free(sde);
    sde = NULL;
    if (status == HL_OK)
        status = hl_sde_read(ctx, bytes, size, &sde);
    hl_sde_free(sde);
    hl_sde_forms_free(f);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    cir(1, 60, 10, 0.1);
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_clusters), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_slopes), cmocka_unit_test(test_fit),      cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_model),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, group_context, group_context_free);
}
