/* test_lists.c - the public lists of names: every name is accepted, no name stands twice, and the message about an unknown name
 * holds them all. */
#include "net_support.h"

#include "hollow/hollow.h"

static int no_rhs(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    memset(dy, 0, at->count * sizeof *dy);
    return 0;
}

static int no_slope(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    if (dy)
        no_rhs(user, at, dy);
    return no_rhs(user, at, diagonal);
}

static int no_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    (void)v;
    return no_rhs(user, at, jv);
}

static int no_noise(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    double *const results[] = { f, g, dg };
    for (int i = 0; i < 3; i++)
        if (results[i])
            no_rhs(user, at, results[i]);
    return 0;
}

static const hl_system constant = { .n = 1, .rhs = no_rhs, .diagonal = no_slope, .jvp = no_jvp };

static hl_status use_conditioner(hl_context *ctx, const char *name)
{
    hl_net *net = NULL;
    hl_status status =
        hl_net_create(ctx, &(hl_net_spec){ .dim = 4, .conditioner = name, .image = { 1, 2, 2 }, .features = 2 }, &net);
    hl_net_free(net);
    return status;
}

static hl_status use_transformer(hl_context *ctx, const char *name)
{
    hl_net *net = NULL;
    hl_status status = hl_net_create(ctx, &(hl_net_spec){ .dim = 4, .transformer = name }, &net);
    hl_net_free(net);
    return status;
}

static hl_status use_activation(hl_context *ctx, const char *name)
{
    hl_net *net = NULL;
    hl_status status = hl_net_create(ctx, &(hl_net_spec){ .dim = 4, .activation = name }, &net);
    hl_net_free(net);
    return status;
}

static hl_status use_kind(hl_context *ctx, const char *name)
{
    hl_flow *flow = NULL;
    hl_status status = hl_flow_create(ctx, &(hl_flow_spec){ .kind = name, .net = { .dim = 2 } }, &flow);
    hl_flow_free(flow);
    return status;
}

static hl_status use_ode(hl_context *ctx, const char *name)
{
    hl_ode *ode = NULL;
    double t = 0, y = 3;
    hl_status status = hl_ode_create(ctx, &constant, &(hl_ode_options){ .method = name }, &ode);
    if (status != HL_OK && strstr(hl_context_message(ctx), "options.steps"))
        status = hl_ode_create(ctx, &constant, &(hl_ode_options){ .method = name, .steps = 9 }, &ode);
    if (status == HL_OK)
        CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, 1, &y, NULL));
    CHECK_NEAR(y, 3, 0, name);
    hl_ode_free(ode);
    return status;
}

static hl_status use_root(hl_context *ctx, const char *name)
{
    hl_root *root = NULL;
    hl_status status = hl_root_create(ctx, &constant, &(hl_root_options){ .method = name }, &root);
    hl_root_free(root);
    return status;
}

static hl_status use_simulator(hl_context *ctx, const char *name)
{
    hl_simulator *simulator = NULL;
    hl_noise_system system = { .n = 1, .coefficients = no_noise, .slope = 1 };
    double t = 0, y = 3;
    hl_status status = hl_simulator_create(ctx, &system, &(hl_simulator_options){ .method = name }, &simulator);
    if (status == HL_OK)
        CHECK_OK(ctx, hl_simulator_run(simulator, 1, 0, &t, 0.5, 3, &y, NULL));
    CHECK_NEAR(y, 3, 0, name);
    hl_simulator_free(simulator);
    return status;
}

static hl_status use_optimizer(hl_context *ctx, const char *name)
{
    hl_net *net = NULL;
    hl_optimizer *optimizer = NULL;
    CHECK_OK(ctx, hl_net_create(ctx, &(hl_net_spec){ .dim = 2 }, &net));
    hl_status status = hl_optimizer_create(ctx, 1, &net, &(hl_optimizer_options){ .method = name }, &optimizer);
    hl_optimizer_free(optimizer);
    hl_net_free(net);
    return status;
}

static void test_lists(void **state)
{
    const struct {
        const char *const *(*names)(void);
        hl_status (*use)(hl_context *ctx, const char *name);
    } lists[] = {
        { hl_net_conditioners, use_conditioner },
        { hl_net_transformers, use_transformer },
        { hl_net_activations, use_activation },
        { hl_flow_kinds, use_kind },
        { hl_ode_methods, use_ode },
        { hl_root_methods, use_root },
        { hl_simulator_methods, use_simulator },
        { hl_optimizer_methods, use_optimizer },
    };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        const char *const *names = lists[l].names();
        CHECK(names[0] && names[1], "a list has names");
        CHECK_STATUS(ctx, lists[l].use(ctx, "nothing"), HL_ERR_INVALID);
        check_message(ctx, "'nothing'; use one of: ");
        for (size_t i = 0; names[i]; i++) {
            check_message(ctx, names[i]);
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(names[i], names[k]);
        }
        for (size_t i = 0; names[i]; i++)
            CHECK_OK(ctx, lists[l].use(ctx, names[i]));
    }
    assert_true(hl_flow_is_continuous("cnf") && hl_flow_is_continuous(NULL));
    assert_false(hl_flow_is_continuous("maf") || hl_flow_is_continuous("nothing"));
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_lists) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
