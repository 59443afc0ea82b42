/* test_report_vae.c - reports of autoencoders: numbers, pictures, verdicts. */
#include "support.h"

#include "hollow/vae_fit.h"
#include "report/report.h"
#include "vae_support.h"

enum { ROWS = 40, SIDE = 4, DIM = SIDE * SIDE };

static hl_status make_report(hl_context *ctx, void *user)
{
    unsigned char bytes[ROWS * DIM];
    hl_vae_spec spec = { .image = { 1, SIDE, SIDE }, .net = "linear", .latent = 3, .posterior = "vae" };
    hl_vae *vae = NULL;
    hl_report *report = NULL, **out = user;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = hl_random_uniform(1, 0, i) < (i % DIM < 8 ? 0.9 : 0.1);
    hl_status status = hl_vae_create(ctx, &spec, &vae);
    if (status == HL_OK)
        status = hl_vae_init(vae, 3);
    if (status == HL_OK)
        status = hl_report_vae(vae, &(hl_vae_rows){ .rows = ROWS, .bytes = bytes }, NULL, &report);
    size_t size = 0;
    if (status == HL_OK)
        status = hl_report_html(report, HL_REPORT_PAGE, NULL, 0, &size);
    hl_vae_free(vae);
    if (out)
        *out = report;
    else
        hl_report_free(report);
    return status;
}

/* An autoencoder that has not learned is worse than independent pixels, whose log p is known. */
static void test_untrained(void **state)
{
    (void)state;
    hl_context *ctx = NULL;
    hl_report *r = NULL;
    size_t size = 0;
    assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
    CHECK_OK(ctx, make_report(ctx, &r));
    const hl_vae_report *v = hl_report_vae_numbers(r);
    assert_int_equal(v->rows, ROWS);
    assert_int_equal(v->latent, 3);
    CHECK(v->variance[0] >= v->variance[1] && v->variance[1] >= v->variance[2], "order of the units");
    double independent = v->result.elbo - v->over_independent; /* 16 pixels of probability 0.9 or 0.1 */
    CHECK_NEAR(independent, 16 * (0.9 * log(0.9) + 0.1 * log(0.1)), 1, "independent pixels");
    assert_int_equal(hl_report_get_level(r), HL_REPORT_WRONG);
    CHECK(strstr(hl_report_verdict(r), "below log p of independent pixels"), hl_report_verdict(r));
    CHECK_OK(ctx, hl_report_html(r, HL_REPORT_PAGE, NULL, 0, &size));
    char *text = calloc(size + 1, 1);
    CHECK_OK(ctx, hl_report_html(r, HL_REPORT_PAGE, text, size, &size));
    CHECK(strstr(text, "data:image/png;base64,iVBORw0KGgo"), "a picture");
    CHECK(!hl_report_density_numbers(r) && !hl_report_sde_numbers(r), "numbers of other kinds");
    free(text);
    CHECK_OK(ctx, hl_report_json(r, NULL, 0, &size));
    hl_report_free(r);
    hl_context_free(ctx);
}

/* ---- verdicts ---- */

enum { MANY = 400, FACTORS = 2 };

/* Row r has the values w_1 z_1 + w_2 z_2 + 0.3 e, of which bits are signs. */
static double value_of(size_t r, size_t i)
{
    double value = 0.3 * hl_random_normal(7, 0, r * DIM + i);
    for (size_t k = 0; k < FACTORS; k++)
        value += hl_random_normal(8, k, i) * hl_random_normal(9, k, r);
    return value;
}

typedef struct learned {
    double x[MANY * DIM];
    unsigned char bits[MANY * DIM];
    hl_context *ctx;
    hl_vae *vae;
    hl_vae_rows rows;
} learned;

/* An autoencoder with linear maps and as many latent columns as there are factors. */
static void learn(learned *l, const char *likelihood, const char *iterations)
{
    bool real = strcmp(likelihood, "gaussian") == 0;
    hl_settings *settings = NULL;
    const char *const set[][2] = { { "net", "linear" },     { "latent", "2" }, { "posterior", "vae" },
                                   { "iters", iterations }, { "lr", "0.02" },  { "likelihood", likelihood } };
    for (size_t i = 0; i < MANY * DIM; i++) {
        l->x[i] = value_of(i / DIM, i % DIM);
        l->bits[i] = l->x[i] > 0;
    }
    l->rows = (hl_vae_rows){ .rows = MANY, .values = real ? l->x : NULL, .bytes = real ? NULL : l->bits };
    assert_int_equal(hl_context_create(NULL, &l->ctx), HL_OK);
    CHECK_OK(l->ctx, hl_settings_create(l->ctx, hl_vae_fit_options(), &settings));
    for (size_t k = 0; k < sizeof set / sizeof *set; k++)
        CHECK_OK(l->ctx, hl_settings_set(settings, set[k][0], set[k][1]));
    CHECK_OK(l->ctx, hl_vae_fit(l->ctx, &(hl_vae_data){ .image = { 1, SIDE, SIDE }, .train = l->rows }, settings, NULL,
                                &l->vae, NULL));
    hl_settings_free(settings);
}

static void forget(learned *l)
{
    hl_vae_free(l->vae);
    hl_context_free(l->ctx);
}

static void check_verdict(learned *l, hl_report_level level, const char *says)
{
    hl_report *r = NULL;
    CHECK_OK(l->ctx, hl_report_vae(l->vae, &l->rows, NULL, &r));
    CHECK(hl_report_get_level(r) == level, hl_report_verdict(r));
    CHECK(strstr(hl_report_verdict(r), says), hl_report_verdict(r));
    assert_int_equal(hl_report_vae_numbers(r)->samples.rows, 300);
    hl_report_free(r);
}

/* Add to the values of a parameter. */
static void add_to(hl_vae *v, const char *name, double change)
{
    size_t at = hl_params_find(v->params, name);
    assert_true(at < v->params->count);
    for (size_t k = 0; k < v->params->param[at].size; k++)
        ((float *)v->params->param[at].values)[k] += (float)change;
}

/* Nine tenths of the rows were used for training; the file knows them. Other rows are told from them. */
static void check_training_rows(learned *l)
{
    size_t size;
    hl_vae *again;
    hl_report *r = NULL;
    check_verdict(l, HL_REPORT_GOOD, " % of these rows were used to train the model; new rows may fit worse");
    CHECK_OK(l->ctx, hl_vae_write(l->vae, NULL, 0, &size));
    void *bytes = malloc(size);
    CHECK_OK(l->ctx, hl_vae_write(l->vae, bytes, size, &size));
    CHECK_OK(l->ctx, hl_vae_read(l->ctx, bytes, size, &again));
    for (int other = 0; other < 2; other++) {
        for (size_t i = 0; i < MANY * DIM && other; i++)
            l->x[i] += 1e-9;
        CHECK_OK(l->ctx, hl_report_vae(again, &l->rows, NULL, &r));
        const hl_vae_report *v = hl_report_vae_numbers(r);
        assert_true(v->known > 40 && v->known < 120); /* the file has 64 hashes */
        if (other)
            assert_int_equal(v->trained, 0);
        else
            assert_true(v->trained == 64 && v->known > 64);
        CHECK(!other == !!strstr(hl_report_verdict(r), "to train the model"), hl_report_verdict(r));
        hl_report_free(r);
    }
    hl_vae_free(again);
    free(bytes);
}

/* Real values of a model that is right: samples have its noise. With more noise they do not look like rows. */
static void test_gaussian(void **state)
{
    (void)state;
    learned *l = calloc(1, sizeof *l);
    learn(l, "gaussian", "1500");
    check_verdict(l, HL_REPORT_GOOD, "No test finds a difference between samples from the prior and the rows");
    check_verdict(l, HL_REPORT_GOOD, "nats per row above log p of independent normal values");
    check_training_rows(l);
    add_to(l->vae, "decoder.log_deviation", log(2.5));
    check_verdict(l, HL_REPORT_MINOR, "Samples from the prior differ a little from the rows");
    add_to(l->vae, "decoder.log_deviation", log(1.3));
    check_verdict(l, HL_REPORT_WRONG, "Samples from the prior differ from the rows");
    forget(l);
    free(l);
}

/* Bits of the same factors; and rows that the autoencoder was not made for. */
static void test_bits(void **state)
{
    (void)state;
    learned *l = calloc(1, sizeof *l);
    learn(l, "bernoulli", "600");
    check_verdict(l, HL_REPORT_GOOD, "No test finds a difference between samples from the prior and the rows");
    size_t kept = 0;
    for (size_t r = 0; r < MANY; r++) /* half of the latent plane is missing */
        if (hl_random_normal(9, 0, r) > 0)
            memmove(l->bits + kept++ * DIM, l->bits + r * DIM, DIM);
    l->rows.rows = kept;
    hl_report *report = NULL;
    CHECK_OK(l->ctx, hl_report_vae(l->vae, &l->rows, NULL, &report));
    CHECK(strstr(hl_report_verdict(report), "differ"), hl_report_verdict(report));
    assert_int_equal(hl_report_get_level(report), HL_REPORT_WRONG);
    hl_report_free(report);
    forget(l);
    free(l);
}

/* Parameters of 0: the posterior is the prior, and pixels have the probability 1/2, as these rows have. */
static void test_collapsed(void **state)
{
    (void)state;
    learned *l = calloc(1, sizeof *l);
    learn(l, "bernoulli", "1");
    double *flat = calloc(hl_params_size(l->vae->params), sizeof *flat);
    hl_params_write(l->vae->params, flat);
    for (size_t i = 0; i < MANY * DIM; i++)
        l->bits[i] = hl_random_uniform(3, 0, i) < 0.5;
    check_verdict(l, HL_REPORT_WRONG, "No latent column is active");
    free(flat);
    forget(l);
    free(l);
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(1, make_report, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untrained), cmocka_unit_test(test_gaussian), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_collapsed), cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
