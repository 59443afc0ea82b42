/* test_cnf.c - continuous flows: densities against Jacobians, closed forms and all ways to the trace; gradients of all flows
 * against differences; rows by themselves. */
#include "flow_support.h"

enum { ROWS = 4 };

static hl_flow *make_flow(hl_context *ctx, const hl_flow_spec *spec)
{
    hl_flow *flow;
    CHECK_OK(ctx, hl_flow_create(ctx, spec, &flow));
    CHECK_OK(ctx, hl_flow_init(flow, 4));
    return flow;
}

static hl_flow_spec cnf_spec(size_t n, size_t dim)
{
    static const char *const conditioners[] = { "made", "separate", "sum", "tree", "attention" };
    return (hl_flow_spec){ .flows = 1 + n % 2,
                           .net = { .dim = dim,
                                    .context = n / 2 % 2 * 2,
                                    .conditioner = conditioners[n % 5],
                                    .features = 4,
                                    .hidden = 6,
                                    .width = 6,
                                    .reflections = n / 4 % 2 * 2,
                                    .mlp = n / 3 % 2 * 3,
                                    .dtype = HL_F64 } };
}

/* dz/dx of one row by differences of fourth order. */
static double brute_logdet(hl_context *ctx, hl_flow *flow, size_t d, const double *x, const double *c)
{
    static const double place[] = { -2, -1, 1, 2 }, weight[] = { 1, -8, 8, -1 };
    const double e = 1e-3;
    double jacobian[MOST][MOST] = { { 0 } };
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k < 4; k++) {
            double moved[MOST], z[MOST];
            memcpy(moved, x, d * sizeof *x);
            moved[i] += place[k] * e;
            CHECK_OK(ctx, hl_flow_forward(flow, 1, moved, c, z, NULL));
            for (size_t j = 0; j < d; j++)
                jacobian[i][j] += weight[k] * z[j] / (12 * e);
        }
    return log_determinant(d, jacobian);
}

static void test_density(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 6 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 16; n++) {
        size_t d = dims[n / 2 % 4];
        hl_flow_spec spec = cnf_spec(n, d);
        hl_flow *flow = make_flow(ctx, &spec);
        double *x = normals(HL_F64, ROWS * d, 31), *c = normals(HL_F64, ROWS * 2, 32);
        const double *context = spec.net.context ? c : NULL;
        double z[ROWS * MOST], back[ROWS * MOST], logdet[ROWS], inverse[ROWS], logp[ROWS], square;
        CHECK_OK(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .rtol = 1e-11, .atol = 1e-12, .method = "dopri8" }));
        CHECK_OK(ctx, hl_flow_forward(flow, ROWS, x, context, z, logdet));
        CHECK_OK(ctx, hl_flow_inverse(flow, ROWS, z, context, back, inverse));
        CHECK_OK(ctx, hl_flow_logp(flow, ROWS, x, context, logp));
        for (size_t r = 0; r < ROWS; r++) {
            double brute = brute_logdet(ctx, flow, d, x + r * d, context ? context + 2 * r : NULL);
            CHECK_LE(fabs(logdet[r] - brute), 1e-8, spec.net.conditioner);
            CHECK_LE(fabs(logdet[r] + inverse[r]), 1e-9, spec.net.conditioner);
            square = 0;
            for (size_t i = 0; i < d; i++) {
                CHECK_LE(fabs(back[r * d + i] - x[r * d + i]), 1e-9, spec.net.conditioner);
                square += z[r * d + i] * z[r * d + i];
            }
            CHECK_LE(fabs(logp[r] - (logdet[r] - square / 2 - 0.5 * (double)d * log(2 * acos(-1)))), 1e-12, "log p");
        }
        test_free(x);
        test_free(c);
        hl_flow_free(flow);
    }
    test_context_free(ctx, NULL);
}

/* f = A x + b: affine tau, conditioner without hidden layers. z is affine in x and log |det| = -Tr A, exactly. */
static void test_linear(void **state)
{
    enum { D = 3 };
    hl_context *ctx = test_context(NULL, 1);
    hl_flow_spec spec = { .net = { .dim = D, .hidden_layers = -1, .layers = -1, .features = 2, .dtype = HL_F64 } };
    hl_flow *flow = make_flow(ctx, &spec);
    hl_operator *op;
    double x[D] = { 0.3, -1, 2 }, t = 0.5, f[D], trace, z[D], logdet;
    (void)state;
    CHECK_OK(ctx, hl_operator_create(hl_flow_net(flow, 0), NULL, &op));
    CHECK_OK(ctx, hl_operator_eval(op, 1, x, &t, NULL, f, NULL, &trace));
    CHECK_OK(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .rtol = 1e-10, .atol = 1e-10 }));
    CHECK_OK(ctx, hl_flow_forward(flow, 1, x, NULL, z, &logdet));
    CHECK(fabs(trace) > 0.05, "a trace to speak of");
    CHECK_LE(fabs(logdet + trace), 1e-13, "log |det| = - Tr A");
    hl_operator_free(op);
    hl_flow_free(flow);
    test_context_free(ctx, NULL);
}

/* Exact and brute traces are the same number; the mean of Hutchinson's agrees within four standard errors. */
static void test_traces(void **state)
{
    enum { D = 5, DRAWS = 400 };
    hl_context *ctx = test_context(NULL, 1);
    double x[2 * D], exact[2], brute[2];
    (void)state;
    for (size_t i = 0; i < 2 * D; i++)
        x[i] = hl_random_normal(8, 1, i);
    for (size_t n = 0; n < 4; n++) {
        hl_flow_spec spec = cnf_spec(n, D);
        double c[4] = { 0.1, 0.2, -1, 2 };
        hl_flow *flow = make_flow(ctx, &spec);
        hl_flow_solver solver = { .method = "rk4", .steps = 4 };
        CHECK_OK(ctx, hl_flow_set_solver(flow, &solver));
        CHECK_OK(ctx, hl_flow_forward(flow, 2, x, c, NULL, exact));
        solver.trace = HL_TRACE_BRUTE;
        CHECK_OK(ctx, hl_flow_set_solver(flow, &solver));
        CHECK_OK(ctx, hl_flow_forward(flow, 2, x, c, NULL, brute));
        for (size_t r = 0; r < 2; r++)
            CHECK_LE(fabs(exact[r] - brute[r]), 1e-13, "brute force");
        solver.trace = HL_TRACE_HUTCHINSON;
        for (solver.gaussian = 0; solver.gaussian < 2; solver.gaussian++) {
            double sum[2] = { 0 }, square[2] = { 0 }, one[2], again[2];
            CHECK_OK(ctx, hl_flow_set_solver(flow, &solver));
            for (uint64_t draw = 0; draw < DRAWS; draw++) {
                hl_flow_set_draw(flow, draw);
                CHECK_OK(ctx, hl_flow_forward(flow, 2, x, c, NULL, one));
                for (size_t r = 0; r < 2; r++) {
                    sum[r] += one[r] / DRAWS;
                    square[r] += one[r] * one[r] / DRAWS;
                }
            }
            CHECK_OK(ctx, hl_flow_forward(flow, 2, x, c, NULL, again));
            assert_memory_equal(one, again, sizeof one); /* the same draw gives the same e */
            for (size_t r = 0; r < 2; r++) {
                double error = sqrt((square[r] - sum[r] * sum[r]) / DRAWS);
                CHECK(error > 1e-6, "there is noise");
                CHECK_LE(fabs(sum[r] - exact[r]), 4 * error, "Hutchinson's mean");
            }
        }
        hl_flow_free(flow);
    }
    test_context_free(ctx, NULL);
}

/* Sum over rows of -log p as hl_flow_gradient minimises it; it is given with the gradient, which `scratch` has room for. */
static double objective(hl_context *ctx, hl_flow *flow, bool straight, size_t rows, const double *x, const double *c,
                        double *logp, double *scratch)
{
    double sum = 0;
    if (straight)
        CHECK_OK(ctx, hl_flow_gradient(flow, rows, x, c, logp, scratch));
    else
        CHECK_OK(ctx, hl_flow_logp(flow, rows, x, c, logp));
    for (size_t r = 0; r < rows; r++)
        sum -= logp[r];
    return sum;
}

/* The gradient of the sum of -log p, or with the term for straight paths, against differences, in every 7th parameter. */
static void check_gradient(hl_context *ctx, hl_flow *flow, size_t rows, const double *x, const double *c, bool straight,
                           const char *label)
{
    const double e = 1e-5;
    size_t size = 0, at = 0;
    double logp[ROWS], again[ROWS], largest = 0;
    for (size_t i = 0; i < hl_flow_nets(flow); i++)
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, i)); p++)
            size += param(hl_flow_net(flow, i), p).size;
    double *g = test_calloc(size, sizeof *g), *scratch = test_calloc(size, sizeof *g);
    g[0] = 7; /* it is added to */
    CHECK_OK(ctx, hl_flow_gradient(flow, rows, x, c, logp, g));
    g[0] -= 7;
    CHECK_OK(ctx, hl_flow_logp(flow, rows, x, c, again));
    for (size_t r = 0; r < rows; r++)
        CHECK(straight ? logp[r] < again[r] : fabs(logp[r] - again[r]) <= 1e-12 * (1 + fabs(logp[r])), label);
    for (size_t i = 0; i < size; i++)
        largest = fmax(largest, fabs(g[i]));
    CHECK(largest > 1e-3, label);
    for (size_t i = 0; i < hl_flow_nets(flow); i++)
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, i)); p++) {
            hl_net_param q = param(hl_flow_net(flow, i), p);
            for (size_t k = 0; k < q.size; k++, at++) {
                double *w = (double *)q.values + k, old = *w, change = 0;
                if (at % 7 || old == 0)
                    continue;
                for (int side = -1; side <= 1; side += 2) {
                    *w = old + side * e;
                    change += side * objective(ctx, flow, straight, rows, x, c, again, scratch) / (2 * e);
                }
                *w = old;
                CHECK_LE(fabs(change - g[at]), 1e-7 * (1 + largest), label);
            }
        }
    test_free(g);
    test_free(scratch);
}

static void test_gradients(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    double x[ROWS * 3], c[ROWS * 2];
    (void)state;
    for (size_t i = 0; i < ROWS * 3; i++)
        x[i] = hl_random_normal(8, 2, i);
    for (size_t i = 0; i < ROWS * 2; i++)
        c[i] = hl_random_normal(8, 3, i);
    for (size_t n = 0; n < 12; n++) {
        hl_flow_spec spec = cnf_spec(n, 3);
        hl_flow *flow = make_flow(ctx, &spec);
        hl_flow_solver solver = { .method = n % 3 ? "rk4" : "dopri5", .steps = 3, .trace = (hl_trace)(n % 3) };
        CHECK_OK(ctx, hl_flow_set_solver(flow, &solver));
        check_gradient(ctx, flow, ROWS, x, c, false, spec.net.conditioner);
        solver.straight = n < 3 ? .7 : 0;
        CHECK_OK(ctx, hl_flow_set_solver(flow, &solver));
        if (n < 3)
            check_gradient(ctx, flow, ROWS, x, c, true, spec.net.conditioner);
        hl_flow_free(flow);
    }
    for (size_t n = 0; n < 2 * discrete_count(); n++) {
        hl_flow_spec spec = { .kind = discrete_kind(n),
                              .flows = 3,
                              .net = { .dim = 3, .hidden = 5, .context = n / discrete_count() * 2, .dtype = HL_F64 } };
        hl_flow *flow = make_flow(ctx, &spec);
        check_gradient(ctx, flow, ROWS, x, c, false, spec.kind);
        hl_flow_free(flow);
    }
    test_context_free(ctx, NULL);
}

/* A row's bits do not depend on its batch, an extreme row included, nor on the threads; a row that fails is NaN by itself. */
/* The term for straight paths is the integral of |f|^2 / dim along the path, here by many steps of the midpoint rule, and log p without a
 * gradient does not know of it. */
static void test_straight(void **state)
{
    enum { STEPS = 400, D = 2 };
    const double weight = .3, h = -1. / STEPS;
    hl_context *ctx = test_context(NULL, 1);
    hl_flow_spec spec = { .net = { .dim = D, .hidden = 6, .width = 6, .dtype = HL_F64 } };
    hl_flow *flow = make_flow(ctx, &spec);
    double x[D] = { .8, -1.1 }, plain, again, logp, energy = 0, f[D], middle[D], size = 0;
    hl_operator *op;
    (void)state;
    for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, 0)); p++)
        size += (double)param(hl_flow_net(flow, 0), p).size;
    double *g = test_calloc((size_t)size, sizeof *g);
    hl_flow_solver solver = { .rtol = 1e-9, .atol = 1e-9 };
    CHECK_OK(ctx, hl_flow_set_solver(flow, &solver));
    CHECK_OK(ctx, hl_flow_logp(flow, 1, x, NULL, &plain));
    solver.straight = weight;
    CHECK_OK(ctx, hl_flow_set_solver(flow, &solver));
    CHECK_OK(ctx, hl_flow_logp(flow, 1, x, NULL, &again));
    assert_true(plain == again);
    CHECK_OK(ctx, hl_flow_gradient(flow, 1, x, NULL, &logp, g));
    CHECK_OK(ctx, hl_operator_create(hl_flow_net(flow, 0), NULL, &op));
    for (int i = 0; i < STEPS; i++) {
        double t = 1 + i * h, half = t + h / 2;
        CHECK_OK(ctx, hl_operator_eval(op, 1, x, &t, NULL, f, NULL, NULL));
        for (int k = 0; k < D; k++)
            middle[k] = x[k] + h / 2 * f[k];
        CHECK_OK(ctx, hl_operator_eval(op, 1, middle, &half, NULL, f, NULL, NULL));
        for (int k = 0; k < D; k++) {
            energy -= h * f[k] * f[k] / D;
            x[k] += h * f[k];
        }
    }
    CHECK(energy > 1e-3, "it moves");
    CHECK_LE(fabs(plain - logp - weight * energy), 1e-4 * energy, "energy");
    hl_operator_free(op);
    test_free(g);
    solver.straight = -1;
    CHECK_STATUS(ctx, hl_flow_set_solver(flow, &solver), HL_ERR_INVALID);
    solver.straight = NAN;
    CHECK_STATUS(ctx, hl_flow_set_solver(flow, &solver), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .method = "bdf-jacobi", .straight = 1 }),
                 HL_ERR_UNSUPPORTED);
    check_message(ctx, "straight is supported by Runge-Kutta methods, not by bdf-jacobi");
    hl_flow_free(flow);
    test_context_free(ctx, NULL);
}

static void test_rows(void **state)
{
    enum { D = 4, MANY = 700 };
    static double x[MANY * D], first[MANY], logp[MANY], z[MANY * D];
    (void)state;
    for (size_t i = 0; i < MANY * D; i++)
        x[i] = hl_random_normal(1, 2, i) * (i / D == 9 ? 1e4 : 1);
    for (size_t n = 0; n < 4; n++)
        for (int threads = 1; threads <= 2; threads++) {
            hl_context *ctx = test_context(NULL, threads);
            hl_flow_spec spec = { .flows = 2, .net = { .dim = D, .hidden = 12, .dtype = n % 2 } };
            hl_flow *flow = make_flow(ctx, &spec);
            if (n / 2)
                CHECK_OK(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .method = "tsit5", .rtol = 1e-4 }));
            CHECK_OK(ctx, hl_flow_logp(flow, MANY, x, NULL, logp));
            if (threads == 2)
                assert_memory_equal(first, logp, sizeof logp);
            memcpy(first, logp, sizeof logp);
            for (size_t r = 0; r < MANY; r += 61) {
                double one;
                CHECK_OK(ctx, hl_flow_logp(flow, 1, x + r * D, NULL, &one));
                assert_memory_equal(&one, &logp[r], sizeof one);
            }
            double keep = x[5 * D];
            x[5 * D] = NAN;
            CHECK_STATUS(ctx, hl_flow_forward(flow, MANY, x, NULL, z, logp), HL_ERR_NOT_FINITE);
            check_message(ctx, "row 5");
            x[5 * D] = keep;
            CHECK(isnan(z[5 * D]) && isnan(logp[5]), "the row itself");
            for (size_t r = 0; r < MANY; r++)
                CHECK(r == 5 || isfinite(logp[r]), "the others");
            hl_flow_free(flow);
            test_context_free(ctx, NULL);
        }
}

static void test_failures(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_flow_spec spec = { .flows = 2, .net = { .dim = 2, .hidden = 4, .width = 4, .dtype = HL_F64 } };
    hl_flow *flow = make_flow(ctx, &spec);
    double x[4] = { 1, 2, 30, -1 }, logp[2], g[4096] = { 0 };
    (void)state;
    CHECK_OK(ctx, hl_flow_logp(flow, 2, x, NULL, logp));
    CHECK_OK(ctx, hl_flow_gradient(flow, 2, x, NULL, logp, g));
    long before = allocator.calls;
    CHECK_OK(ctx, hl_flow_logp(flow, 2, x, NULL, logp));
    CHECK_OK(ctx, hl_flow_gradient(flow, 2, x, NULL, logp, g));
    assert_int_equal(allocator.calls, before);
    CHECK(hl_flow_report(flow).forward.f > 0 && hl_flow_report(flow).backward.vjp > 0, "counts");
    hl_flow_reset(flow);
    CHECK(hl_flow_report(flow).forward.f == 0, "counts");
    CHECK_OK(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .max_evaluations = 9 }));
    CHECK_STATUS(ctx, hl_flow_logp(flow, 2, x, NULL, logp), HL_ERR_BUDGET);
    check_message(ctx, "row 0, value 2: 8 evaluations are used up");
    CHECK(isnan(logp[0]), "no number");
    CHECK_STATUS(ctx, hl_flow_gradient(flow, 2, x, NULL, logp, g), HL_ERR_BUDGET);
    CHECK_STATUS(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .method = "euler6" }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .trace = (hl_trace)3 }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .rtol = -1 }), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_flow_set_solver(NULL, NULL), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_flow_set_solver(flow, NULL));
    CHECK_OK(ctx, hl_flow_logp(flow, 2, x, NULL, logp));
    hl_flow_free(flow);
    test_context_free(ctx, &allocator);
}

/* A tolerance that float32 cannot reach is said, costs evaluations, and gives the numbers all the same. */
static void test_imprecise(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        hl_context *ctx = test_context(NULL, threads);
        hl_flow_spec spec = { .flows = 2, .net = { .dim = 2, .hidden = 4, .width = 4, .dtype = HL_F32 } };
        hl_flow *flow = make_flow(ctx, &spec);
        double x[128], z[128], logp[64], again[64];
        fill_normal_f64(x, 128, 3);
        CHECK_OK(ctx, hl_flow_logp(flow, 64, x, NULL, logp));
        CHECK_OK(ctx, hl_flow_set_solver(flow, &(hl_flow_solver){ .rtol = 1e-9, .atol = 1e-9 }));
        CHECK_STATUS(ctx, hl_flow_logp(flow, 64, x, NULL, again), HL_IMPRECISE);
        check_message(ctx, "finer than the rounding error of f");
        CHECK_STATUS(ctx, hl_flow_forward(flow, 64, x, NULL, z, NULL), HL_IMPRECISE);
        CHECK_LE(relative_error_f64(again, logp, 64), 1e-4, "log p");
        x[70] = NAN; /* a failure goes before it */
        CHECK_STATUS(ctx, hl_flow_logp(flow, 64, x, NULL, again), HL_ERR_NOT_FINITE);
        CHECK(isnan(again[35]) && !isnan(again[34]), "one row");
        hl_flow_free(flow);
        test_context_free(ctx, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_density),   cmocka_unit_test(test_linear),   cmocka_unit_test(test_traces),
        cmocka_unit_test(test_gradients), cmocka_unit_test(test_straight), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_imprecise), cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
