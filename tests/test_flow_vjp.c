/* test_flow_vjp.c - the gradient of a pass through a flow, both ways, against differences of the pass itself, for all kinds; the same
 * numbers as the passes and as the gradient of -log p; wrong calls; failures at every allocation. */
#include "support.h"

#include "hollow/flow.h"

enum { DIM = 3, CONTEXT = 2, ROWS = 4, MANY = 300, MOST = 20000 };

static hl_flow *make_flow(hl_context *ctx, const char *kind, size_t context, hl_dtype dtype)
{
    hl_flow_spec spec = { .kind = kind,
                          .flows = 2,
                          .net = { .dim = DIM,
                                   .context = context,
                                   .features = 4,
                                   .hidden = 5,
                                   .hidden_layers = 1,
                                   .width = 4,
                                   .layers = 1,
                                   .dtype = dtype } };
    hl_flow *flow;
    CHECK_OK(ctx, hl_flow_create(ctx, &spec, &flow));
    CHECK_OK(ctx, hl_flow_init(flow, 5));
    hl_flow_solver fine = { .method = "dopri8", .rtol = 1e-11, .atol = 1e-11 };
    if (dtype == HL_F64)
        CHECK_OK(ctx, hl_flow_set_solver(flow, &fine));
    return flow;
}

static size_t parameters(const hl_flow *flow)
{
    size_t count = 0;
    for (size_t k = 0; k < hl_flow_nets(flow); k++)
        for (size_t i = 0; i < hl_net_param_count(hl_flow_net(flow, k)); i++) {
            hl_net_param p;
            hl_net_param_get(hl_flow_net(flow, k), i, &p);
            count += p.size;
        }
    return count;
}

/* The value number `at` of all parameters, which may be written; NULL if a mask excludes it. */
static double *parameter(const hl_flow *flow, size_t at)
{
    for (size_t k = 0; k < hl_flow_nets(flow); k++)
        for (size_t i = 0; i < hl_net_param_count(hl_flow_net(flow, k)); i++) {
            hl_net_param p;
            hl_net_param_get(hl_flow_net(flow, k), i, &p);
            if (at < p.size) {
                size_t columns = p.rank ? p.dims[p.rank - 1] : 1, row = at / columns, column = at % columns;
                bool in = !p.lo || (column >= p.lo[row] && column < p.hi[row]);
                return in ? (double *)p.values + at : NULL;
            }
            at -= p.size;
        }
    return NULL;
}

typedef struct rows {
    double from[ROWS * DIM], context[ROWS * CONTEXT], gto[ROWS * DIM], glogdet[ROWS];
} rows;

static void fill(rows *r)
{
    for (size_t i = 0; i < ROWS * DIM; i++) {
        r->from[i] = hl_random_normal(1, 1, i);
        r->gto[i] = hl_random_normal(1, 2, i);
    }
    for (size_t i = 0; i < ROWS * CONTEXT; i++)
        r->context[i] = hl_random_normal(1, 3, i);
    for (size_t i = 0; i < ROWS; i++)
        r->glogdet[i] = hl_random_normal(1, 4, i);
}

/* <gto, to> + glogdet . logdet of the pass itself. */
static double loss(hl_context *ctx, hl_flow *flow, bool from_base, const rows *r)
{
    double to[ROWS * DIM], logdet[ROWS], sum = 0;
    CHECK_OK(ctx, (from_base ? hl_flow_inverse : hl_flow_forward)(flow, ROWS, r->from, r->context, to, logdet));
    for (size_t i = 0; i < ROWS * DIM; i++)
        sum += r->gto[i] * to[i];
    for (size_t i = 0; i < ROWS; i++)
        sum += r->glogdet[i] * logdet[i];
    return sum;
}

static void check_slope(hl_context *ctx, hl_flow *flow, bool from_base, const rows *r, double *value, double gradient,
                        const char *label)
{
    const double step = 1e-5, before = *value;
    *value = before + step;
    double up = loss(ctx, flow, from_base, r);
    *value = before - step;
    double down = loss(ctx, flow, from_base, r);
    *value = before;
    CHECK_NEAR(gradient, (up - down) / (2 * step), 2e-6 * (1 + fabs(gradient)), label);
}

static void check_kind(hl_context *ctx, const char *kind, bool from_base, size_t context)
{
    double to[ROWS * DIM], logdet[ROWS], same_to[ROWS * DIM], same_logdet[ROWS], gfrom[ROWS * DIM];
    double gcontext[ROWS * CONTEXT];
    static double gradient[MOST];
    hl_flow *flow = make_flow(ctx, kind, context, HL_F64);
    size_t count = parameters(flow);
    rows r;
    assert_true(count <= MOST);
    fill(&r);
    for (size_t i = 0; i < count; i++)
        gradient[i] = 1;
    hl_flow_pullback pass = { .from_base = from_base,
                              .from = r.from,
                              .context = r.context,
                              .gto = r.gto,
                              .glogdet = r.glogdet,
                              .to = to,
                              .logdet = logdet,
                              .gfrom = gfrom,
                              .gcontext = gcontext,
                              .gparameters = gradient };
    CHECK_OK(ctx, hl_flow_vjp(flow, ROWS, &pass));
    CHECK_OK(ctx, (from_base ? hl_flow_inverse : hl_flow_forward)(flow, ROWS, r.from, r.context, same_to, same_logdet));
    for (size_t i = 0; i < ROWS * DIM; i++)
        CHECK_NEAR(to[i], same_to[i], 1e-9, kind);
    for (size_t i = 0; i < ROWS; i++)
        CHECK_NEAR(logdet[i], same_logdet[i], 1e-9, kind);
    for (size_t i = 0; i < ROWS * DIM; i += 2)
        check_slope(ctx, flow, from_base, &r, &r.from[i], gfrom[i], kind);
    for (size_t i = 0; i < ROWS * context; i++)
        check_slope(ctx, flow, from_base, &r, &r.context[i], gcontext[i], kind);
    for (size_t i = 0; i < count; i += 1 + count / 23)
        if (parameter(flow, i))
            check_slope(ctx, flow, from_base, &r, parameter(flow, i), gradient[i] - 1, kind); /* it was added */
    hl_flow_free(flow);
}

static void test_differences(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (const char *const *kind = hl_flow_kinds(); *kind; kind++)
        for (int from_base = 0; from_base < 2; from_base++) {
            check_kind(ctx, *kind, from_base, CONTEXT);
            check_kind(ctx, *kind, from_base, 0);
        }
    test_context_free(ctx, NULL);
}

/* With the cotangents of -log p it is hl_flow_gradient, and chunks, threads and what is left out change nothing. */
static void test_likelihood(void **state)
{
    static double x[MANY * DIM], z[MANY * DIM], ones[MANY], gradient[3][MOST], gx[2][MANY * DIM];
    (void)state;
    for (size_t i = 0; i < MANY * DIM; i++)
        x[i] = hl_random_normal(2, 1, i);
    for (size_t i = 0; i < MANY; i++)
        ones[i] = -1;
    for (const char *const *kind = hl_flow_kinds(); *kind; kind++) {
        for (int threads = 1; threads < 3; threads++) {
            hl_context *ctx = test_context(NULL, threads);
            hl_flow *flow = make_flow(ctx, *kind, 0, HL_F32);
            CHECK_OK(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .method = "rk4", .steps = 4 }));
            CHECK_OK(ctx, hl_flow_forward(flow, MANY, x, NULL, z, NULL));
            memset(gradient, 0, sizeof gradient);
            hl_flow_pullback pass = {
                .from = x, .gto = z, .glogdet = ones, .gfrom = gx[threads - 1], .gparameters = gradient[0]
            };
            CHECK_OK(ctx, hl_flow_vjp(flow, MANY, &pass));
            CHECK_OK(ctx, hl_flow_gradient(flow, MANY, x, NULL, NULL, gradient[1]));
            double norm = 0, error = 0;
            for (size_t i = 0; i < parameters(flow); i++) {
                norm += gradient[1][i] * gradient[1][i];
                error += (gradient[0][i] - gradient[1][i]) * (gradient[0][i] - gradient[1][i]);
            }
            CHECK_LE(sqrt(error), 1e-4 * sqrt(norm), *kind);
            hl_flow_pullback last = { .from = x + 100 * DIM, .gto = z + 100 * DIM, .glogdet = ones, .gfrom = z };
            CHECK_OK(ctx, hl_flow_vjp(flow, MANY - 100, &last));
            assert_memory_equal(z, gx[threads - 1] + 100 * DIM, (MANY - 100) * DIM * sizeof *z);
            hl_flow_free(flow);
            test_context_free(ctx, NULL);
        }
        assert_memory_equal(gx[0], gx[1], sizeof gx[0]);
    }
}

static void test_wrong_calls(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_flow *flow = make_flow(ctx, "cnf", CONTEXT, HL_F32);
    rows r;
    (void)state;
    fill(&r);
    hl_flow_pullback pass = { .from = r.from, .context = r.context, .gto = r.gto };
    CHECK_STATUS(NULL, hl_flow_vjp(NULL, ROWS, &pass), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_vjp(flow, ROWS, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_vjp(flow, ROWS, &(hl_flow_pullback){ .context = r.context }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_vjp(flow, ROWS, &(hl_flow_pullback){ .from = r.from }), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_flow_vjp(flow, 0, &(hl_flow_pullback){ 0 }));
    CHECK_OK(ctx, hl_flow_vjp(flow, ROWS, &pass));
    r.from[DIM] = NAN;
    CHECK_STATUS(ctx, hl_flow_vjp(flow, ROWS, &pass), HL_ERR_NOT_FINITE);
    assert_int_equal(hl_context_failure(ctx).row, 1);
    r.from[DIM] = 0;
    r.context[3] = INFINITY;
    CHECK_STATUS(ctx, hl_flow_vjp(flow, ROWS, &pass), HL_ERR_NOT_FINITE);
    hl_flow_free(flow);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    hl_flow_spec spec = { .kind = user, .flows = 1, .net = { .dim = DIM, .features = 2, .hidden = 3, .width = 3 } };
    hl_flow *flow = NULL;
    double gfrom[ROWS * DIM];
    rows r;
    fill(&r);
    hl_status status = hl_flow_create(ctx, &spec, &flow);
    if (status == HL_OK)
        status = hl_flow_set_solver(flow, &(hl_flow_solver){ .method = "rk4", .steps = 2 });
    if (status == HL_OK)
        status = hl_flow_vjp(flow, ROWS, &(hl_flow_pullback){ .from = r.from, .gto = r.gto, .gfrom = gfrom });
    hl_flow_free(flow);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    check_every_allocation(1, scenario, "cnf");
    check_every_allocation(1, scenario, "maf");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences),
        cmocka_unit_test(test_likelihood),
        cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
