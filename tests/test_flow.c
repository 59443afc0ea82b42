/* test_flow.c - flows: log-determinants against brute-force Jacobians, inverses, rows by themselves, and wrong uses. */
#include "flow_support.h"

#include "op/op.h"

enum { ROWS = 5 };

static hl_flow *make_flow(hl_context *ctx, const hl_flow_spec *spec)
{
    hl_flow *flow;
    CHECK_OK(ctx, hl_flow_create(ctx, spec, &flow));
    CHECK_OK(ctx, hl_flow_init(flow, 4));
    for (size_t i = 0; i < hl_flow_nets(flow); i++) /* biases that are not zero */
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, i)); p++) {
            hl_net_param q = param(hl_flow_net(flow, i), p);
            for (size_t k = 0; strstr(q.name, ".bias") && k < q.size; k++)
                set(spec->net.dtype, q.values, k, 0.3 * hl_random_normal(9, 100 * i + p, k));
        }
    return flow;
}

static hl_flow_spec flow_spec(size_t n, size_t dim)
{
    size_t kinds = discrete_count();
    return (hl_flow_spec){ .kind = discrete_kind(n),
                           .flows = 1 + n / (2 * kinds) % 3,
                           .net = { .dim = dim,
                                    .context = n / kinds % 2 * 2,
                                    .hidden = 9,
                                    .width = 6,
                                    .layers = 1 + (int)(n % 2),
                                    .activation = activation(strcmp(discrete_kind(n), "naf") == 0 ? 0 : n / 3),
                                    .dtype = HL_F64 } };
}

/* All networks in one graph, and rows of their Jacobian through everything. Returns log |det| of each row. */
static void brute_logdet(hl_context *ctx, const hl_flow *flow, const double *x, const double *context, double *logdet)
{
    hl_flow_spec s = hl_flow_describe(flow);
    hl_graph *g;
    hl_plan *plan;
    hl_node node[8 * MAX_PIECES], gx;
    const void *values[8 * MAX_PIECES];
    size_t params = 0;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    hl_node in = hl_input(g, "x", 1, &s.net.dim), e = hl_input(g, "e", 1, &s.net.dim), y = in;
    hl_node c = s.net.context ? hl_input(g, "context", 1, &s.net.context) : HL_NONE;
    for (size_t i = 0; i < hl_flow_nets(flow); i++) {
        hl_net_nodes n = { .x = y, .context = c, .param = node + params };
        CHECK_OK(ctx, hl_net_build(hl_flow_net(flow, i), g, 0, HL_TAYLOR, &n));
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, i)); p++)
            values[params++] = param(hl_flow_net(flow, i), p).values;
        y = n.f;
    }
    CHECK_OK(ctx, hl_vjp(g, 1, &y, &e, 1, &in, NULL, &gx));
    CHECK_OK(ctx, hl_plan_create(ctx, g, 1, &gx, &(hl_plan_options){ .dtype = HL_F64 }, &plan));
    for (size_t r = 0; r < ROWS; r++) {
        double jacobian[MOST][MOST];
        for (size_t i = 0; i < s.net.dim; i++) {
            double unit[MOST] = { 0 };
            unit[i] = 1;
            CHECK_OK(ctx, hl_plan_run(
                              plan, 1,
                              (const void *[]){ x + r * s.net.dim, unit, context ? context + r * s.net.context : NULL },
                              values, (void *[]){ jacobian[i] }));
        }
        logdet[r] = log_determinant(s.net.dim, jacobian);
    }
    hl_plan_free(plan);
    hl_graph_free(g);
}

static void test_determinants(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 5, 12 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < discrete_count() * 6; n++)
        for (size_t k = 0; k < 5; k++) {
            hl_flow_spec spec = flow_spec(n, dims[k]);
            hl_flow *flow = make_flow(ctx, &spec);
            double *x = normals(HL_F64, ROWS * spec.net.dim, 21), *c = normals(HL_F64, ROWS * 2, 22);
            double z[ROWS * MOST], back[ROWS * MOST], logdet[ROWS], inverse[ROWS], brute[ROWS];
            bool from_base = strcmp(spec.kind, "iaf") == 0;
            CHECK_OK(ctx, hl_flow_forward(flow, ROWS, x, spec.net.context ? c : NULL, z, logdet));
            CHECK_OK(ctx, hl_flow_inverse(flow, ROWS, z, spec.net.context ? c : NULL, back, inverse));
            CHECK(hl_flow_sweeps(flow) <= hl_flow_nets(flow) * (spec.net.dim + 2) || from_base, spec.kind);
            brute_logdet(ctx, flow, from_base ? z : x, spec.net.context ? c : NULL, brute);
            for (size_t i = 0; i < ROWS * spec.net.dim; i++)
                CHECK_LE(fabs(back[i] - x[i]), 1e-10 * (1 + fabs(x[i])), spec.kind);
            for (size_t r = 0; r < ROWS; r++) {
                CHECK_LE(fabs(logdet[r] - (from_base ? -brute[r] : brute[r])), 1e-10, spec.kind);
                CHECK_LE(fabs(logdet[r] + inverse[r]), 1e-10, spec.kind);
            }
            test_free(x);
            test_free(c);
            hl_flow_free(flow);
        }
    test_context_free(ctx, NULL);
}

/* A row's bits do not depend on its batch or on the threads, in both directions and both precisions. */
static void test_rows(void **state)
{
    enum { D = 7, MANY = 300 };
    static double x[MANY * D], z[MANY * D], back[MANY * D], logdet[MANY], inverse[MANY];
    (void)state;
    for (size_t n = 0; n < 2 * discrete_count(); n++) {
        hl_flow_spec spec = { .kind = discrete_kind(n),
                              .flows = 2,
                              .net = { .dim = D, .hidden = 12, .dtype = (hl_dtype)(n / discrete_count()) } };
        for (int threads = 1; threads <= 2; threads++) {
            hl_context *ctx = test_context(NULL, threads);
            hl_flow *flow = make_flow(ctx, &spec);
            for (size_t i = 0; i < MANY * D; i++)
                x[i] = hl_random_normal(1, 2, i) * (i / D == 7 ? 30 : 1);
            double other_z[MANY * D], other_back[MANY * D];
            CHECK_OK(ctx, hl_flow_forward(flow, MANY, x, NULL, threads == 1 ? z : other_z, logdet));
            CHECK_OK(ctx, hl_flow_inverse(flow, MANY, z, NULL, threads == 1 ? back : other_back, inverse));
            if (threads == 2) {
                assert_memory_equal(z, other_z, sizeof z);
                assert_memory_equal(back, other_back, sizeof back);
            }
            for (size_t r = 0; r < MANY; r += 37) {
                double one[D], again[D], sum;
                CHECK_OK(ctx, hl_flow_forward(flow, 1, x + r * D, NULL, one, &sum));
                assert_memory_equal(one, z + r * D, sizeof one);
                assert_memory_equal(&sum, &logdet[r], sizeof sum);
                CHECK_OK(ctx, hl_flow_inverse(flow, 1, z + r * D, NULL, again, &sum));
                assert_memory_equal(again, back + r * D, sizeof again);
                assert_memory_equal(&sum, &inverse[r], sizeof sum);
            }
            for (size_t i = 0; i < MANY * D; i++)
                CHECK_LE(fabs(back[i] - x[i]), (spec.net.dtype ? 1e-10 : 2e-3) * (1 + fabs(x[i])), spec.kind);
            hl_flow_free(flow);
            test_context_free(ctx, NULL);
        }
    }
}

static const hl_flow_spec small = { .kind = "naf", .flows = 2, .net = { .dim = 4, .hidden = 5, .dtype = HL_F64 } };

static hl_status create_small(hl_context *ctx, void *user)
{
    hl_flow *flow;
    (void)user;
    hl_status status = hl_flow_create(ctx, &small, &flow);
    hl_flow_free(status == HL_OK ? flow : NULL);
    return status;
}

static void test_allocations(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_flow *flow = make_flow(ctx, &small);
    double x[8] = { 1, 2, 3, 4, -1, 0.5, 0, 2 }, z[8], logdet[2];
    (void)state;
    long before = allocator.calls;
    CHECK_OK(ctx, hl_flow_forward(flow, 2, x, NULL, z, logdet));
    CHECK_OK(ctx, hl_flow_inverse(flow, 2, z, NULL, x, logdet));
    assert_int_equal(allocator.calls, before);
    hl_flow_free(flow);
    test_context_free(ctx, &allocator);
    check_every_allocation(1, create_small, NULL);
}

static void test_wrong(void **state)
{
    static const struct {
        hl_flow_spec spec;
        const char *message;
    } bad[] = {
        { { .net.dim = 0 }, "dim is 0" },
        { { .net.dim = 2, .kind = "glow" }, "unknown kind of flow 'glow'; use one of: cnf, " },
        { { .kind = "naf", .net = { .dim = 2, .activation = "swish" } }, "use one of: tanh, " },
        { { .net.dim = 2, .flows = 1001 }, "flows is 1001; it must be in 1..1000" },
        { { .kind = "maf", .net = { .dim = 2, .hidden_layers = 65 } }, "hidden_layers is 65" },
    };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_flow *flow;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(ctx, hl_flow_create(ctx, &bad[i].spec, &flow), HL_ERR_INVALID);
        check_message(ctx, bad[i].message);
        assert_null(flow);
    }
    CHECK_STATUS(ctx, hl_flow_create(NULL, &bad[0].spec, &flow), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_create(ctx, NULL, &flow), HL_ERR_INVALID);
    hl_flow_spec spec = { .kind = "maf", .net = { .dim = 2, .context = 1, .dtype = HL_F64 } };
    CHECK_OK(ctx, hl_flow_create(ctx, &spec, &flow));
    double x[2] = { 1, NAN }, c[1] = { 0 }, z[2], logdet;
    CHECK_STATUS(ctx, hl_flow_forward(NULL, 1, x, c, z, &logdet), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_forward(flow, 1, NULL, c, z, &logdet), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_forward(flow, 1, x, NULL, z, &logdet), HL_ERR_INVALID);
    check_message(ctx, "the context is NULL");
    CHECK_OK(ctx, hl_flow_forward(flow, 0, NULL, NULL, NULL, NULL));
    hl_flow_init(flow, 1);
    CHECK_STATUS(ctx, hl_flow_inverse(flow, 1, x, c, z, &logdet), HL_ERR_NOT_FINITE);
    check_message(ctx, "row 0, value 1: not finite");
    CHECK(isnan(z[0]) && isnan(z[1]) && isnan(logdet), "a row that is not finite");
    assert_int_equal(hl_flow_describe(flow).net.features, 2);
    assert_null(hl_flow_net(flow, 5));
    hl_flow *narrow; /* what float32 cannot hold is a failure, not a NaN that passes as success */
    hl_flow_spec single = { .kind = "iaf", .net = { .dim = 1, .hidden = 8 } };
    CHECK_OK(ctx, hl_flow_create(ctx, &single, &narrow));
    CHECK_OK(ctx, hl_flow_init(narrow, 5));
    double far = 1e39;
    CHECK(hl_flow_logp(narrow, 1, &far, NULL, &logdet) < 0 && isnan(logdet), "beyond float32");
    hl_flow_free(narrow);
    hl_flow_free(flow);
    hl_flow_free(NULL);
    test_context_free(ctx, &allocator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_determinants),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
