/* test_report_vae.c - reports of autoencoders: numbers, pictures, verdicts. */
#include "support.h"

#include "report/report.h"

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
    CHECK(strstr(hl_report_verdict(r), "below that of independent pixels"), hl_report_verdict(r));
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

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(1, make_report, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untrained),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
