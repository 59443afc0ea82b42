/* test_wrong_calls.c - calls with NULL where something must be: a status, and a message where there is a context; nothing is made, and what there
 * was goes on working. Other tests have the wrong calls of their own module; here are those that all have in common. */
#include "support.h"

#include "hollow/hollow.h"
#include "report/report.h"

/* The status of a call without a handle. */
#define REFUSED(call) assert_int_equal(call, HL_ERR_INVALID)
/* The same with a handle, whose context tells why. */
#define TOLD(call, text)                                                                                               \
    do {                                                                                                               \
        CHECK_STATUS(ctx, call, HL_ERR_INVALID);                                                                       \
        if (!strstr(hl_context_message(ctx), text))                                                                    \
            fail_msg("%s: message \"%s\"", #call, hl_context_message(ctx));                                            \
    } while (0)

static void test_without_handle(void **state)
{
    double x = 0;
    size_t size;
    (void)state;
    REFUSED(hl_sde_create(NULL, NULL, NULL));
    REFUSED(hl_sde_sample(NULL, 1, &x, 0, 0, &x));
    REFUSED(hl_sde_eval(NULL, 1, &x, &x, NULL));
    REFUSED(hl_sde_forms_parse(NULL, 1, NULL, NULL, NULL, NULL));
    REFUSED(hl_sde_forms_set(NULL, 0, 1));
    REFUSED(hl_sde_forms_eval(NULL, 1, &x, &x, &x, &x));
    REFUSED(hl_sde_forms_fit(NULL, NULL, NULL));
    REFUSED(hl_sde_fit_create(NULL, NULL, NULL, NULL));
    REFUSED(hl_sde_fit_step(NULL, NULL));
    REFUSED(hl_sde_fit_set_state(NULL, &x));
    REFUSED(hl_sde_fit_save(NULL, "{}", "x"));
    REFUSED(hl_sde_save(NULL, "x"));
    REFUSED(hl_sde_init(NULL, 1));
    REFUSED(hl_sde_set_name(NULL, 0, "x"));
    REFUSED(hl_sde_bridge(NULL, 2, &x, &x, 1, NULL, &x, &x));
    REFUSED(hl_simulator_create(NULL, NULL, NULL, NULL));
    REFUSED(hl_simulator_run(NULL, 1, 0, &x, 1, 1, &x, NULL));
    REFUSED(hl_settings_create(NULL, NULL, NULL));
    REFUSED(hl_vae_fit(NULL, NULL, NULL, NULL, NULL, NULL));
    REFUSED(hl_params_from_graph(NULL, HL_F32, NULL));
    REFUSED(hl_params_init(NULL, 0, 1, 1, 0));
    REFUSED(hl_optimizer_create_for(NULL, NULL, NULL));
    REFUSED(hl_optimizer_step(NULL, &x, 1, &x));
    REFUSED(hl_flow_init(NULL, 1));
    REFUSED(hl_flow_gradient(NULL, 1, &x, NULL, &x, &x));
    REFUSED(hl_fit_step(NULL, NULL));
    REFUSED(hl_fit_set_state(NULL, &x));
    REFUSED(hl_fit_save(NULL, "{}", "x"));
    REFUSED(hl_judge_create(NULL, 1, NULL, NULL, NULL));
    REFUSED(hl_density_logp_gradient(NULL, 1, &x, NULL, &x, &x, NULL));
    REFUSED(hl_density_sample(NULL, 1, 0, 1, NULL, &x));
    REFUSED(hl_density_set_solver(NULL, NULL));
    REFUSED(hl_context_set_ranks(NULL, NULL));
    REFUSED(hl_report_html(NULL, HL_REPORT_PAGE, NULL, 0, &size));
    REFUSED(hl_report_json(NULL, NULL, 0, &size));
    REFUSED(hl_report_save(NULL, "x"));
    REFUSED(hl_report_sde(NULL, NULL, NULL, NULL));
    REFUSED(hl_report_vae(NULL, NULL, NULL, NULL));
    REFUSED(hl_fp_derive_density(NULL, 0, 0, 0, NULL));
    REFUSED(hl_simulator_orders("nothing", &x, &x));
}

/* An equation with expressions: what its functions refuse, and that it still works. */
static void test_equations(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    const char *const names[] = { "x", "t" };
    double t = 0, x = 2, f, g, strong = 0, weak = 0;
    hl_sde_forms *forms = NULL;
    hl_sde *sde = NULL;
    hl_simulator *simulator = NULL;
    (void)state;
    TOLD(hl_sde_forms_parse(ctx, 0, names, "x = -x", "x = 1", &forms), "no columns");
    TOLD(hl_sde_forms_parse(ctx, 1, (const char *const[]){ NULL, "t" }, "x = -x", "x = 1", &forms), "name 0");
    assert_null(forms);
    CHECK_OK(ctx, hl_sde_forms_parse(ctx, 1, names, "x = -k*x", "x = 1", &forms));
    TOLD(hl_sde_forms_set(forms, 1, 1), "no such constant");
    TOLD(hl_sde_forms_set(forms, 0, NAN), "not finite");
    TOLD(hl_sde_forms_eval(forms, 1, &t, NULL, &f, &g), "t or x");
    TOLD(hl_sde_forms_fit(forms, NULL, NULL), "data are NULL");
    CHECK_OK(ctx, hl_sde_forms_set(forms, 0, 3));
    CHECK_OK(ctx, hl_sde_forms_eval(forms, 1, &t, &x, &f, &g));
    CHECK_NEAR(f, -6, 1e-12, "the drift");
    hl_sde_forms_free(forms);
    TOLD(hl_sde_create(ctx, NULL, &sde), "NULL");
    TOLD(hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .dtype = (hl_dtype)9 }, &sde), "precision");
    assert_null(sde);
    CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .components = 1 }, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 1));
    TOLD(hl_sde_sample(sde, 1, NULL, 0, 0, &x), "t or x");
    TOLD(hl_sde_fit_create(sde, NULL, NULL, NULL), "NULL");
    CHECK_OK(ctx, hl_sde_sample(sde, 1, &t, 0, 0, &x));
    hl_sde_free(sde);
    TOLD(hl_simulator_create(ctx, NULL, NULL, &simulator), "NULL");
    CHECK_OK(ctx, hl_simulator_orders(NULL, &strong, &weak));
    CHECK(strong > 0 && weak > 0, "orders of the default");
    test_context_free(ctx, NULL);
}

static void test_reports(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    hl_report *r = NULL;
    size_t size = 0;
    (void)state;
    CHECK_OK(ctx, hl_density_load(ctx, HL_TEST_CORPUS "/density/mixture.hollow", &m));
    CHECK_OK(ctx, hl_report_density(m, NULL, &(hl_report_options){ .draws = 10 }, &r));
    TOLD(hl_report_html(r, HL_REPORT_PAGE, NULL, 0, NULL), "size");
    TOLD(hl_report_html(r, (hl_report_part)7, NULL, 0, &size), "part");
    TOLD(hl_report_json(r, NULL, 0, NULL), "size");
    TOLD(hl_report_save(r, NULL), "path");
    CHECK_OK(ctx, hl_report_json(r, NULL, 0, &size));
    assert_int_equal(hl_density_get_member(m, 99).weight == 0, 1);
    hl_report_free(r);
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

static void test_settings(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_settings *s = NULL;
    hl_vae *vae = NULL;
    (void)state;
    TOLD(hl_settings_create(ctx, NULL, &s), "NULL");
    TOLD(hl_vae_fit(ctx, NULL, NULL, NULL, &vae, NULL), "NULL");
    assert_null(s);
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    CHECK_OK(ctx, hl_settings_set(s, "seed", "3"));
    hl_settings_free(s);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_handle),
        cmocka_unit_test(test_equations),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
