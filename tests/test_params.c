/* test_params.c - named sets of parameters: shapes, flat views, borrowed and owned values, and optimisers over them. */
#include "net_support.h"

#include "hollow/learn.h"
#include "nn/params.h"

static const hl_net_spec spec = { .dim = 3, .features = 2, .hidden = 4, .width = 3 };

static hl_graph *two_params(hl_context *ctx)
{
    hl_graph *g = NULL;
    if (hl_graph_create(ctx, &g) != HL_OK)
        return NULL;
    hl_param(g, "w", 2, (size_t[]){ 2, 3 });
    hl_param(g, "b", 1, (size_t[]){ 4 });
    return g;
}

static void test_graph(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int dtype = 0; dtype < 2; dtype++) {
        hl_graph *g = two_params(ctx);
        hl_params *p;
        hl_net_param one;
        CHECK_OK(ctx, hl_params_from_graph(g, (hl_dtype)dtype, &p));
        hl_graph_free(g);
        assert_int_equal(hl_params_count(p), 2);
        assert_int_equal(hl_params_size(p), 10);
        assert_int_equal(hl_params_dtype(p), dtype);
        CHECK_OK(ctx, hl_params_get(p, 0, &one));
        assert_string_equal(one.name, "w");
        assert_int_equal(one.rank, 2);
        assert_int_equal(one.dims[1], 3);
        assert_int_equal(one.size, 6);
        assert_int_equal(hl_params_find(p, "b"), 1);
        assert_int_equal(hl_params_find(p, "c"), 2);
        CHECK_STATUS(ctx, hl_params_get(p, 2, &one), HL_ERR_INVALID);
        double flat[10], back[10];
        for (size_t i = 0; i < 10; i++)
            flat[i] = (double)i - 4.5;
        hl_params_write(p, flat);
        hl_params_read(p, back);
        assert_memory_equal(flat, back, sizeof flat);
        CHECK_OK(ctx, hl_params_get(p, 1, &one));
        assert_true(one.values == hl_params_values(p)[1]);
        CHECK_NEAR(get((hl_dtype)dtype, one.values, 0), 1.5, 0, "the second begins after the first");
        hl_params_read_gradients(p, back);
        CHECK_NEAR(back[3], 0, 0, "no gradient yet");
        set((hl_dtype)dtype, hl_params_gradients(p)[1], 2, 7);
        hl_params_read_gradients(p, back);
        CHECK_NEAR(back[8], 7, 0, "gradient");
        CHECK_OK(ctx, hl_params_init(p, 0, 4, 1, 2));
        CHECK_OK(ctx, hl_params_init(p, 1, 0, 1, 3));
        hl_params_read(p, back);
        CHECK_NEAR(back[5], hl_random_normal(1, 2, 5) / 2, 1e-7, "variance 1 / fan_in");
        CHECK_NEAR(back[6], 0, 0, "fan_in 0");
        CHECK_OK(ctx, hl_params_check(p));
        set((hl_dtype)dtype, one.values, 3, NAN);
        CHECK_STATUS(ctx, hl_params_check(p), HL_ERR_NOT_FINITE);
        assert_non_null(strstr(hl_context_message(ctx), "'b', element 3, is NaN"));
        hl_params_free(p);
    }
    hl_params_free(NULL);
    test_context_free(ctx, NULL);
}

static void test_nets(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_net *nets[2] = { make_net(ctx, &spec), make_net(ctx, &spec) }, *none = NULL;
    hl_params *p;
    hl_net_param one;
    (void)state;
    CHECK_OK(ctx, hl_params_from_nets(ctx, 2, nets, &p));
    size_t half = hl_net_param_count(nets[0]);
    assert_int_equal(hl_params_count(p), 2 * half);
    CHECK_OK(ctx, hl_params_get(p, half + 1, &one));
    assert_true(one.values == param(nets[1], 1).values);
    assert_int_equal(strncmp(one.name, "1.", 2), 0);
    assert_string_equal(one.name + 2, param(nets[1], 1).name);
    hl_params_free(p);
    CHECK_OK(ctx, hl_params_from_nets(ctx, 1, nets, &p));
    CHECK_OK(ctx, hl_params_get(p, 0, &one));
    assert_string_equal(one.name, param(nets[0], 0).name);
    hl_params_free(p);
    CHECK_STATUS(ctx, hl_params_from_nets(ctx, 0, nets, &p), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_params_from_nets(ctx, 1, &none, &p), HL_ERR_INVALID);
    hl_net_free(nets[1]);
    hl_net_spec wide = spec;
    wide.dtype = HL_F64;
    nets[1] = make_net(ctx, &wide);
    CHECK_STATUS(ctx, hl_params_from_nets(ctx, 2, nets, &p), HL_ERR_INVALID);
    hl_graph *g = two_params(ctx);
    hl_param(g, "w", 0, NULL);
    CHECK_STATUS(ctx, hl_params_from_graph(g, HL_F32, &p), HL_ERR_INVALID);
    assert_null(p);
    hl_graph_free(g);
    hl_net_free(nets[0]);
    hl_net_free(nets[1]);
    test_context_free(ctx, NULL);
}

/* A value's step does not depend on where it stands: beside a multiple of the vector's width, at a block's end, in which
 * parameter. */
static void test_places(void **state)
{
    enum { MANY = 1031 };
    static const char *const methods[] = { "adam", "adamw", "adamax", "sgd" };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t m = 0; m < 4; m++) {
        hl_optimizer_options options = { .method = methods[m], .average = 0.9, .weight_decay = 0.01, .rate = 0.1 };
        double end[2][MANY], gradient[MANY];
        for (size_t split = 0; split < 2; split++) {
            hl_graph *g;
            hl_params *p;
            hl_optimizer *o;
            CHECK_OK(ctx, hl_graph_create(ctx, &g));
            for (size_t at = 0, n = split ? 1 : MANY; at<MANY; at += n, n = n + 2> MANY - at ? MANY - at : n + 2) {
                char name[24];
                snprintf(name, sizeof name, "p%zu", at);
                hl_param(g, name, 1, &n);
            }
            CHECK_OK(ctx, hl_params_from_graph(g, HL_F32, &p));
            assert_int_equal(hl_params_size(p), MANY);
            CHECK_OK(ctx, hl_optimizer_create_for(p, &options, &o));
            for (uint64_t k = 0; k < 3; k++) {
                hl_random_normals(3, k, 0, MANY, gradient);
                CHECK_NEAR(gradient[7], hl_random_normal(3, k, 7), 0, "an array of normals");
                CHECK_OK(ctx, hl_optimizer_step(o, gradient, 1, NULL));
            }
            hl_optimizer_use_average(o, m % 2);
            hl_params_read(p, end[split]);
            hl_optimizer_free(o);
            hl_params_free(p);
            hl_graph_free(g);
        }
        assert_memory_equal(end[0], end[1], sizeof end[0]);
    }
    double u[4];
    hl_random_uniforms(1, 2, 3, 4, u);
    CHECK_NEAR(u[3], hl_random_uniform(1, 2, 6), 0, "an array of uniforms");
    test_context_free(ctx, NULL);
}

static hl_status all_of_it(hl_context *ctx, void *user)
{
    hl_params *p = NULL, *q = NULL;
    hl_optimizer *o = NULL;
    hl_net *net = NULL;
    hl_graph *g = two_params(ctx);
    (void)user;
    hl_status status = g ? hl_params_from_graph(g, HL_F32, &p) : HL_ERR_NOMEM;
    if (status == HL_OK && !hl_params_gradients(p))
        status = HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_net_create(ctx, &spec, &net);
    if (status == HL_OK)
        status = hl_params_from_nets(ctx, 1, &net, &q);
    if (status == HL_OK)
        status = hl_optimizer_create_for(q, NULL, &o);
    hl_optimizer_free(o);
    o = NULL;
    if (status == HL_OK)
        status = hl_optimizer_create(ctx, 1, &net, NULL, &o);
    hl_optimizer_free(o);
    hl_params_free(p);
    hl_params_free(q);
    hl_net_free(net);
    hl_graph_free(g);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    check_every_allocation(1, all_of_it, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_graph), cmocka_unit_test(test_nets),
                                        cmocka_unit_test(test_places), cmocka_unit_test(test_allocations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
