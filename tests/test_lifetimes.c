/* test_lifetimes.c - 10^5 objects made and freed: nothing is left with the context's allocator, nor with that of the process. */
#include "support.h"

#include <malloc.h>

#include "hollow/hollow.h"

static const hl_net_spec small = { .dim = 2, .features = 2, .hidden = 3, .hidden_layers = 1, .width = 3, .layers = 1 };

static int decay(void *user, const hl_rows *at, double *dy)
{
    (void)user;
    for (size_t i = 0; i < at->count; i++)
        dy[i] = -at->y[i];
    return 0;
}

static void a_context(hl_context *ctx)
{
    hl_context *other = NULL;
    CHECK_OK(ctx, hl_context_create(NULL, &other));
    hl_context_free(other);
}

static void a_context_with_threads(hl_context *ctx)
{
    hl_context *other = NULL;
    CHECK_OK(ctx, hl_context_create(&(hl_context_options){ .threads = 2 }, &other));
    hl_context_free(other);
}

static void settings(hl_context *ctx)
{
    hl_settings *s = NULL;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    CHECK_OK(ctx, hl_settings_set(s, "seed", "7"));
    hl_settings_free(s);
}

static void a_plan(hl_context *ctx)
{
    hl_graph *g = NULL;
    hl_plan *plan = NULL;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node x = hl_input(g, "x", 1, (size_t[]){ 2 });
    hl_node y = hl_tanh(g, hl_mul(g, x, x));
    CHECK_OK(ctx, hl_plan_create(ctx, g, 1, &y, NULL, &plan));
    hl_plan_free(plan);
    hl_graph_free(g);
}

static void a_network(hl_context *ctx)
{
    hl_net *net = NULL;
    hl_operator *op = NULL;
    CHECK_OK(ctx, hl_net_create(ctx, &small, &net));
    CHECK_OK(ctx, hl_operator_create(net, &(hl_operator_options){ .order = 1 }, &op));
    hl_operator_free(op);
    hl_net_free(net);
}

static void solve(hl_context *ctx, const char *method)
{
    hl_ode *ode = NULL;
    hl_system system = { .n = 1, .rhs = decay };
    double t = 0, y = 1;
    CHECK_OK(ctx, hl_ode_create(ctx, &system, &(hl_ode_options){ .method = method }, &ode));
    CHECK_OK(ctx, hl_ode_solve(ode, 1, &t, .01, &y, NULL));
    hl_ode_free(ode);
}

static void a_solver(hl_context *ctx)
{
    solve(ctx, "dopri5");
}

static void a_multistep_solver(hl_context *ctx)
{
    solve(ctx, "adams-functional");
}

static void an_equation(hl_context *ctx)
{
    hl_sde_forms *forms = NULL;
    CHECK_OK(ctx, hl_sde_forms_parse(ctx, 1, NULL, "x1 = a - b * x1", "x1 = c", &forms));
    hl_sde_forms_free(forms);
}

static void test_hundred_thousand(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        long count;
        void (*make)(hl_context *ctx);
    } kinds[] = { { "contexts", 50000, a_context },
                  { "contexts with threads", 1000, a_context_with_threads },
                  { "settings", 20000, settings },
                  { "solvers", 10000, a_solver },
                  { "solvers of SUNDIALS", 3000, a_multistep_solver },
                  { "expressions", 10000, an_equation },
                  { "graphs and plans", 4000, a_plan },
                  { "networks and operators", 2000, a_network } };
    long made = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        test_allocator allocator;
        hl_context *ctx = test_context(&allocator, 1);
        kinds[k].make(ctx); /* what a first one keeps for good */
        long live = allocator.live;
        size_t before = mallinfo2().uordblks;
        for (long n = 0; n < kinds[k].count; n++)
            kinds[k].make(ctx);
        made += kinds[k].count;
        assert_int_equal(allocator.live, live);
        CHECK_LE((double)mallinfo2().uordblks, (double)before + 10000, kinds[k].name);
        test_context_free(ctx, &allocator);
    }
    assert_int_equal(made, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_hundred_thousand) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
