/* test_fit.c - training: assignments against all permutations, learning a known density, the same bits for any threads and
 * after going on from a saved state, the guard against too few steps, and wrong uses. */
#include "net_support.h"

#include "hollow/fit.h"
#include "learn/assignment.h"
#include "learn/match.h"

enum { ROWS = 600 };

/* ---- assignment ---- */

static double cheapest(size_t n, const double *cost, size_t row, unsigned used)
{
    double least = INFINITY;
    if (row == n)
        return 0;
    for (size_t k = 0; k < n; k++)
        if (!(used >> k & 1))
            least = fmin(least, cost[row * n + k] + cheapest(n, cost, row + 1, used | 1U << k));
    return least;
}

static void test_assignment(void **state)
{
    (void)state;
    for (size_t n = 1; n <= 7; n++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            double cost[49], work[24], sum = 0;
            size_t places[24], to[7];
            unsigned used = 0;
            for (size_t i = 0; i < n * n; i++)
                cost[i] = seed % 2 ? floor(4 * hl_random_uniform(seed, n, i)) : hl_random_normal(seed, n, i);
            hl_assign(n, cost, work, places, to);
            for (size_t i = 0; i < n; i++) {
                sum += cost[i * n + to[i]];
                used |= 1U << to[i];
            }
            assert_int_equal(used, (1U << n) - 1);
            CHECK_LE(fabs(sum - cheapest(n, cost, 0, 0)), 1e-12, "the least sum");
        }
}

/* ---- losses that need no solving ---- */

/* The loss of a batch in two halves, and its gradient, which replaces what was there. */
static hl_status whole_batch(hl_matcher *m, size_t batch, size_t iteration, const double *x, const double *context,
                             double *loss, double *gradient)
{
    size_t half = batch / 2;
    *loss = 0;
    memset(gradient, 0, 4000 * sizeof *gradient);
    hl_matcher_load(m, iteration, 0, batch, x, context);
    hl_status status = hl_matcher_gradient(m, 0, half, loss, gradient);
    return status == HL_OK ? hl_matcher_gradient(m, half, batch, loss, gradient) : status;
}

/* Their gradients are those of their losses; noise and times are functions of the iteration. */
static void test_matching_gradients(void **state)
{
    enum { BATCH = 40, DIM = 3 };
    hl_context *ctx = test_context(NULL, 1);
    double x[BATCH * DIM], context[BATCH], *gradient, unused[4000];
    (void)state;
    for (size_t i = 0; i < BATCH * DIM; i++)
        x[i] = hl_random_normal(1, 1, i);
    for (size_t i = 0; i < BATCH; i++)
        context[i] = hl_random_normal(1, 2, i);
    for (int how = 0; how < 3; how++) {
        hl_flow_spec spec = { .net = { .dim = DIM, .context = 1, .hidden = 9, .width = 8, .dtype = HL_F64 } };
        hl_matching matching = { .score = how == 2, .transport = how == 1, .batch = BATCH, .seed = 5 };
        hl_flow *flow;
        hl_matcher *m;
        double loss, other, least = INFINITY;
        size_t at = 0;
        CHECK_OK(ctx, hl_flow_create(ctx, &spec, &flow));
        CHECK_OK(ctx, hl_flow_init(flow, 3));
        CHECK_OK(ctx, hl_matcher_create(flow, &matching, &m));
        gradient = calloc(4000, sizeof *gradient);
        CHECK_OK(ctx, whole_batch(m, BATCH, 7, x, context, &loss, gradient));
        CHECK_OK(ctx, whole_batch(m, BATCH, 8, x, context, &other, unused));
        CHECK(loss != other, "another iteration, other noise");
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, 0)); p++) {
            hl_net_param q = param(hl_flow_net(flow, 0), p);
            for (size_t i = 0; i < q.size; i += 7) {
                double *value = (double *)q.values + i, keep = *value, h = 1e-5, up, down;
                if (q.rank > 1 && keep == 0)
                    continue; /* a masked one */
                *value = keep + h;
                CHECK_OK(ctx, whole_batch(m, BATCH, 7, x, context, &up, unused));
                *value = keep - h;
                CHECK_OK(ctx, whole_batch(m, BATCH, 7, x, context, &down, unused));
                *value = keep;
                CHECK_LE(fabs((up - down) / (2 * h) - gradient[at + i]), 1e-8, q.name);
                least = fmin(least, -fabs(gradient[at + i]));
            }
            at += q.size;
        }
        CHECK(least < -1e-3, "gradients that are not all small");
        free(gradient);
        hl_matcher_free(m);
        hl_flow_free(flow);
    }
    test_context_free(ctx, NULL);
}

/* ---- learning ---- */

/* Two normals of deviation 0.5 at +-1.5 in the first of two columns; the second is the first squared, with noise. */
static double make_data(size_t rows, uint64_t seed, double *x)
{
    double nll = 0;
    for (size_t r = 0; r < rows; r++) {
        double side = hl_random_bits(seed, 1, r) & 1 ? 1.5 : -1.5, a = side + 0.5 * hl_random_normal(seed, 2, r);
        double e = hl_random_normal(seed, 3, r), s = 0.4;
        x[2 * r] = a;
        x[2 * r + 1] = 0.5 * (a * a - 2) + s * e;
        double near = exp(-2 * (a - 1.5) * (a - 1.5)) + exp(-2 * (a + 1.5) * (a + 1.5));
        nll -= log(near / 2 / (0.5 * sqrt(2 * acos(-1)))) - 0.5 * e * e - log(s * sqrt(2 * acos(-1)));
    }
    return nll / (double)rows;
}

static double mean_nll(hl_context *ctx, hl_flow *flow, size_t rows, const double *x)
{
    static double logp[ROWS];
    double sum = 0;
    CHECK_OK(ctx, hl_flow_logp(flow, rows, x, NULL, logp));
    for (size_t r = 0; r < rows; r++)
        sum -= logp[r] / (double)rows;
    return sum;
}

static hl_flow *make_flow(hl_context *ctx, const char *kind, size_t width)
{
    hl_flow_spec spec = { .kind = kind, .net = { .dim = 2, .hidden = 24, .width = width, .dtype = HL_F32 } };
    hl_flow *flow;
    CHECK_OK(ctx, hl_flow_create(ctx, &spec, &flow));
    CHECK_OK(ctx, hl_flow_init(flow, 2));
    return flow;
}

/* Every loss and kind of flow comes near the entropy of data that it can describe. */
static void test_learns(void **state)
{
    static const struct {
        const char *kind;
        hl_loss loss;
        const char *solver; /* of training, adaptive; NULL: the default */
        size_t iterations;
        double allowed;
    } cases[] = {
        { "cnf", HL_LOSS_DEFAULT, NULL, 300, 0.12 },     { "cnf", HL_LOSS_FLOW_MATCHING, NULL, 300, 0.3 },
        { "cnf", HL_LOSS_LIKELIHOOD, NULL, 300, 0.15 },  { "cnf", HL_LOSS_SCORE, NULL, 1000, 0.35 },
        { "cnf", HL_LOSS_DEFAULT, "dopri5", 160, 0.25 }, { "cnf", HL_LOSS_DEFAULT, "adams-jacobi", 100, 0.5 },
        { "maf", HL_LOSS_DEFAULT, NULL, 300, 0.3 },      { "naf", HL_LOSS_DEFAULT, NULL, 300, 0.2 },
        { "realnvp", HL_LOSS_DEFAULT, NULL, 300, 0.4 },  { "iaf", HL_LOSS_DEFAULT, NULL, 300, 0.6 },
    };
    static double train[2 * 4 * ROWS], valid[2 * ROWS], test[2 * ROWS];
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    make_data(4 * ROWS, 1, train);
    make_data(ROWS, 2, valid);
    double perfect = make_data(ROWS, 3, test);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hl_flow *flow = make_flow(ctx, cases[i].kind, 16);
        hl_fit *fit;
        hl_fit_report report;
        hl_fit_options options = { .loss = cases[i].loss, .iterations = cases[i].iterations, .batch = 128 };
        hl_fit_data data[] = { { 4 * ROWS, train, NULL, NULL }, { ROWS, valid, NULL, NULL } };
        hl_status status;
        size_t validations = 0;
        double before = mean_nll(ctx, flow, ROWS, test);
        if (cases[i].solver) {
            options.train_steps = SIZE_MAX;
            options.solver = (hl_flow_solver){ .method = cases[i].solver, .rtol = 1e-4, .atol = 1e-4 };
            options.validation_rows = 50; /* adams solves them row by row */
        }
        CHECK_OK(ctx, hl_fit_create(flow, &data[0], &data[1], &options, &fit));
        while ((status = hl_fit_step(fit, &report)) == HL_OK)
            validations += report.validated != 0;
        CHECK_STATUS(ctx, status, HL_STOPPED);
        assert_int_equal(validations, 20);
        CHECK_OK(ctx, hl_fit_finish(fit));
        double after = mean_nll(ctx, flow, ROWS, test);
        CHECK(before > perfect + 0.7, cases[i].kind);
        CHECK_LE(after - perfect, cases[i].allowed, cases[i].kind);
        CHECK(after > perfect - 0.05, cases[i].kind); /* better than perfect would be cheating */
        size_t judged = cases[i].solver ? 50 : ROWS;
        CHECK_LE(fabs(mean_nll(ctx, flow, judged, valid) - report.best), 1e-3, "the best is what is kept");
        hl_fit_free(fit);
        hl_flow_free(flow);
    }
    test_context_free(ctx, NULL);
}

static size_t copy_values(const hl_flow *flow, float *to)
{
    size_t n = 0;
    for (size_t i = 0; i < hl_flow_nets(flow); i++)
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, i)); p++) {
            hl_net_param q = param(hl_flow_net(flow, i), p);
            memcpy(to + n, q.values, q.size * sizeof *to);
            n += q.size;
        }
    return n;
}

/* Run to iteration `end`, saving the state at `save` (and going on with a new fit from there if `resume`). */
static size_t run(int threads, size_t save, bool resume, hl_loss loss, hl_trace trace, double straight, float *values)
{
    static double train[2 * ROWS], valid[2 * ROWS];
    hl_context *ctx = test_context(NULL, threads);
    hl_flow *flow = make_flow(ctx, "cnf", 8);
    hl_fit_options options = { .loss = loss,
                               .iterations = 30,
                               .batch = 64,
                               .validate_every = 7,
                               .train_trace = trace,
                               .straight = straight,
                               .jitter = 0.1,
                               .seed = 5,
                               .train_steps = 1 };
    hl_fit_data data[] = { { ROWS, train, NULL, NULL }, { 50, valid, NULL, NULL } };
    hl_fit *fit;
    make_data(ROWS, 1, train);
    make_data(ROWS, 2, valid);
    CHECK_OK(ctx, hl_fit_create(flow, &data[0], &data[1], &options, &fit));
    for (size_t i = 0; i < 30; i++) {
        if (i == save && resume) {
            size_t size = hl_fit_state_size(fit);
            double *saved = test_calloc(size, sizeof *saved);
            hl_fit_get_state(fit, saved);
            hl_fit_free(fit);
            hl_flow_free(flow);
            flow = make_flow(ctx, "cnf", 8);
            CHECK_OK(ctx, hl_flow_init(flow, 99));
            CHECK_OK(ctx, hl_fit_create(flow, &data[0], &data[1], &options, &fit));
            CHECK_OK(ctx, hl_fit_set_state(fit, saved));
            test_free(saved);
        }
        CHECK_OK(ctx, hl_fit_step(fit, NULL));
    }
    CHECK_STATUS(ctx, hl_fit_step(fit, NULL), HL_STOPPED);
    CHECK_OK(ctx, hl_fit_finish(fit));
    size_t count = copy_values(flow, values);
    hl_fit_free(fit);
    hl_flow_free(flow);
    test_context_free(ctx, NULL);
    return count;
}

static void test_same_bits(void **state)
{
    static float first[20000], other[20000];
    (void)state;
    for (int n = 0; n < 3; n++) {
        hl_loss loss = n == 1 ? HL_LOSS_LIKELIHOOD : HL_LOSS_DEFAULT;
        hl_trace trace = n == 1 ? HL_TRACE_HUTCHINSON : HL_TRACE_EXACT;
        double straight = n == 2 ? .1 : 0;
        size_t count = run(1, 0, false, loss, trace, straight, first);
        run(2, 0, false, loss, trace, straight, other);
        assert_memory_equal(first, other, count * sizeof *first);
        run(1, 3 + 9 * (size_t)n, true, loss, trace, straight, other);
        assert_memory_equal(first, other, count * sizeof *first);
        if (straight > 0) {
            run(1, 0, false, loss, trace, 0, other);
            assert_memory_not_equal(first, other, count * sizeof *first);
        }
    }
}

/* Run to the end, going on with a new fit after `save` iterations; returns the number of iterations. */
static size_t run_extended(size_t extensions, double rate, size_t save, hl_fit_report *last, float *values)
{
    static double train[2 * ROWS], valid[2 * ROWS];
    hl_context *ctx = test_context(NULL, 1);
    hl_flow *flow = make_flow(ctx, "cnf", 8);
    hl_fit_options options = { .iterations = 40,
                               .batch = 64,
                               .extensions = extensions,
                               .optimizer = { .rate = rate },
                               .seed = 5,
                               .train_steps = 2 };
    hl_fit_data data[] = { { ROWS, train, NULL, NULL }, { 50, valid, NULL, NULL } };
    hl_fit *fit;
    hl_status status;
    size_t done = 0, extended = 0;
    make_data(ROWS, 1, train);
    make_data(ROWS, 2, valid);
    CHECK_OK(ctx, hl_fit_create(flow, &data[0], &data[1], &options, &fit));
    while ((status = hl_fit_step(fit, last)) == HL_OK) {
        done++;
        extended += last->extended != 0;
        CHECK(last->iterations == 40 + 20 * extended, "iterations with extensions");
        CHECK(last->extended == 0 || done == 20 + 20 * extended, "extended at the end alone");
        if (done != save)
            continue;
        size_t size = hl_fit_state_size(fit);
        double *saved = test_calloc(size, sizeof *saved);
        hl_fit_get_state(fit, saved);
        hl_fit_free(fit);
        hl_flow_free(flow);
        flow = make_flow(ctx, "cnf", 8);
        CHECK_OK(ctx, hl_flow_init(flow, 99));
        CHECK_OK(ctx, hl_fit_create(flow, &data[0], &data[1], &options, &fit));
        CHECK_OK(ctx, hl_fit_set_state(fit, saved));
        saved[8] = (double)extensions + 1;
        CHECK_STATUS(ctx, hl_fit_set_state(fit, saved), HL_ERR_INVALID);
        test_free(saved);
    }
    CHECK_STATUS(ctx, status, HL_STOPPED);
    CHECK_OK(ctx, hl_fit_finish(fit));
    copy_values(flow, values);
    hl_fit_free(fit);
    hl_flow_free(flow);
    test_context_free(ctx, NULL);
    return done;
}

/* A schedule goes on while validation falls at its end, no more than it may, from any checkpoint to the same bits; it does not where nothing
 * was learnt in its last quarter. */
static void test_extensions(void **state)
{
    static float first[20000], other[20000];
    static const size_t saves[] = { 39, 40, 41, 59, 60, 75 };
    (void)state;
    hl_fit_report none, most;
    CHECK(run_extended(0, 1e-2, 0, &none, first) == 40, "no extension was allowed");
    CHECK(run_extended(2, 1e-2, 0, &most, first) == 80, "two extensions");
    CHECK(most.best < none.best - 0.02, "the extensions learn");
    for (size_t i = 0; i < sizeof saves / sizeof *saves; i++) {
        hl_fit_report again;
        memset(other, 0, sizeof other);
        CHECK(run_extended(2, 1e-2, saves[i], &again, other) == 80, "resumed");
        assert_memory_equal(first, other, sizeof first);
    }
    CHECK(run_extended(2, 1e-7, 0, &none, first) == 40, "a fit that does not learn was extended");
}

/* Steps that are too few are seen and doubled. */
static void test_guard(void **state)
{
    static double train[2 * ROWS];
    hl_context *ctx = test_context(NULL, 1);
    hl_flow *flow = make_flow(ctx, "cnf", 16);
    hl_fit_options options = { .loss = HL_LOSS_LIKELIHOOD,
                               .iterations = 60,
                               .batch = 64,
                               .train_method = "euler",
                               .train_steps = 1,
                               .validate_every = 10,
                               .patience = 100 };
    hl_fit_data data = { ROWS, train, NULL, NULL };
    hl_fit *fit;
    hl_fit_report report;
    size_t doubled = 0;
    (void)state;
    make_data(ROWS, 1, train);
    CHECK_OK(ctx, hl_fit_create(flow, &data, &data, &options, &fit));
    while (hl_fit_step(fit, &report) == HL_OK)
        doubled += report.steps_doubled != 0;
    CHECK(doubled >= 2, "one step of Euler is not enough");
    hl_fit_free(fit);
    hl_flow_free(flow);
    test_context_free(ctx, NULL);
}

static void test_wrong(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_flow *flow = make_flow(ctx, "cnf", 4), *maf = make_flow(ctx, "maf", 4);
    double x[6] = { 1, 2, 3, 4, 5, NAN };
    hl_fit_data good = { 2, x, NULL, NULL }, bad = { 3, x, NULL, NULL }, none = { 0, x, NULL, NULL },
                empty = { 2, NULL, NULL, NULL };
    hl_fit *fit;
    (void)state;
    CHECK_STATUS(ctx, hl_fit_create(NULL, &good, NULL, NULL, &fit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_create(flow, NULL, NULL, NULL, &fit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_create(flow, &none, NULL, NULL, &fit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_create(flow, &empty, NULL, NULL, &fit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_create(flow, &bad, NULL, NULL, &fit), HL_ERR_NOT_FINITE);
    check_message(ctx, "row 2, value 1: the training data are not finite");
    CHECK_STATUS(ctx, hl_fit_create(flow, &good, &bad, NULL, &fit), HL_ERR_NOT_FINITE);
    CHECK_STATUS(ctx, hl_fit_create(maf, &good, NULL, &(hl_fit_options){ .loss = HL_LOSS_FLOW_MATCHING }, &fit),
                 HL_ERR_INVALID);
    check_message(ctx, "flow matching is for continuous flows; this one is a maf");
    CHECK_STATUS(ctx, hl_fit_create(flow, &good, NULL, &(hl_fit_options){ .optimizer.method = "x" }, &fit),
                 HL_ERR_INVALID);
    for (int loss = HL_LOSS_DEFAULT; loss <= HL_LOSS_SCORE; loss++) {
        hl_fit_options strange = { .loss = (hl_loss)loss, .train_trace = (hl_trace)77 };
        CHECK_STATUS(ctx, hl_fit_create(flow, &good, NULL, &strange, &fit), HL_ERR_INVALID);
        check_message(ctx, "unknown trace 77");
    }
    CHECK_STATUS(ctx, hl_fit_create(flow, &good, NULL, &(hl_fit_options){ .loss = (hl_loss)77 }, &fit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_create(flow, &good, NULL, &(hl_fit_options){ .jitter = -1 }, &fit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_create(flow, &good, NULL, &(hl_fit_options){ .jitter = NAN }, &fit), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_fit_create(flow, &good, NULL, &(hl_fit_options){ .straight = -1 }, &fit), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_fit_create(flow, &good, NULL, &(hl_fit_options){ .iterations = 2 }, &fit));
    CHECK_OK(ctx, hl_fit_step(fit, NULL));
    CHECK_STATUS(ctx, hl_fit_set_state(fit, NULL), HL_ERR_INVALID);
    double *wrong = test_calloc(hl_fit_state_size(fit), sizeof *wrong);
    wrong[0] = -1;
    CHECK_STATUS(ctx, hl_fit_set_state(fit, wrong), HL_ERR_INVALID);
    test_free(wrong);
    CHECK_OK(ctx, hl_fit_step(fit, NULL));
    CHECK_STATUS(ctx, hl_fit_step(fit, NULL), HL_STOPPED);
    CHECK_OK(ctx, hl_fit_finish(fit));
    hl_fit_free(fit);
    hl_fit_free(NULL);
    hl_flow_free(flow);
    hl_flow_free(maf);
    test_context_free(ctx, &allocator);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assignment), cmocka_unit_test(test_matching_gradients), cmocka_unit_test(test_learns),
        cmocka_unit_test(test_same_bits),  cmocka_unit_test(test_extensions),         cmocka_unit_test(test_guard),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
