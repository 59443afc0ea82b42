/* test_optimizer.c - optimisers against the formulas written out, their state, and wrong uses. */
#include "net_support.h"

#include "hollow/learn.h"

static const hl_net_spec spec = { .dim = 3, .features = 2, .hidden = 4, .width = 3, .dtype = HL_F64 };

static size_t size_of(const hl_net *net)
{
    size_t size = 0;
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        size += param(net, i).size;
    return size;
}

static double *values_of(const hl_net *net, double *to)
{
    size_t n = 0;
    for (size_t i = 0; i < hl_net_param_count(net); i++)
        for (size_t k = 0; k < param(net, i).size; k++)
            to[n++] = get(hl_net_describe(net).dtype, param(net, i).values, k);
    return to;
}

/* The formulas for one value, as the papers write them. */
static void reference(const char *method, const hl_optimizer_options *o, double factor, double g, int k, double *w,
                      double *m, double *v)
{
    double rate = factor * (o->rate ? o->rate : 1e-3), b1 = o->beta1 ? o->beta1 : 0.9, b2 = o->beta2 ? o->beta2 : 0.999;
    double old = *w;
    if (strcmp(method, "adamw") != 0)
        g += o->weight_decay * old;
    if (strcmp(method, "sgd") == 0) {
        *m = b1 * *m + g;
        *w = old - rate * *m;
        return;
    }
    *m = b1 * *m + (1 - b1) * g;
    double mhat = *m / (1 - pow(b1, k));
    if (strcmp(method, "adamax") == 0) {
        *v = fmax(b2 * *v, fabs(g));
        *w = old - rate * mhat / (*v + 1e-8);
        return;
    }
    *v = b2 * *v + (1 - b2) * g * g;
    *w = old - rate * mhat / (sqrt(*v / (1 - pow(b2, k))) + 1e-8);
    if (strcmp(method, "adamw") == 0)
        *w -= rate * o->weight_decay * old;
}

static void test_formulas(void **state)
{
    static const char *const methods[] = { "adam", "adamw", "adamax", "sgd" };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 8; n++) {
        hl_net *nets[2] = { make_net(ctx, &spec), make_net(ctx, &spec) };
        hl_optimizer_options options = { .method = methods[n % 4],
                                         .rate = n / 4 ? 0.02 : 0,
                                         .beta1 = n / 4 ? 0.7 : 0,
                                         .weight_decay = n / 4 ? 0.1 : 0,
                                         .clip = n / 4 ? 3 : 0 };
        hl_optimizer *o;
        CHECK_OK(ctx, hl_optimizer_create(ctx, 2, nets, &options, &o));
        size_t half = size_of(nets[0]), size = hl_optimizer_size(o);
        assert_int_equal(size, 2 * half);
        double *w = test_calloc(size, 4 * sizeof *w), *m = w + size, *v = m + size, *g = v + size, length;
        values_of(nets[0], w);
        values_of(nets[1], w + half);
        for (int k = 1; k <= 4; k++) {
            double norm = 0, factor = 1.0 / k;
            for (size_t i = 0; i < size; i++) {
                g[i] = hl_random_normal(5, (uint64_t)k, i);
                norm += g[i] * g[i];
            }
            norm = sqrt(norm);
            CHECK_OK(ctx, hl_optimizer_step(o, g, factor, &length));
            CHECK_LE(fabs(length - norm), 1e-12 * norm, "norm");
            double scale = options.clip > 0 && norm > options.clip ? options.clip / norm : 1;
            for (size_t i = 0; i < size; i++)
                reference(methods[n % 4], &options, factor, scale * g[i], k, &w[i], &m[i], &v[i]);
            double *now = test_calloc(size, sizeof *now);
            values_of(nets[0], now);
            values_of(nets[1], now + half);
            CHECK_LE(relative_error_f64(now, w, size), 1e-14, methods[n % 4]);
            test_free(now);
        }
        test_free(w);
        hl_optimizer_free(o);
        hl_net_free(nets[0]);
        hl_net_free(nets[1]);
    }
    test_context_free(ctx, NULL);
}

/* Going on from a saved state gives the same bits, average included; float32 networks follow the copy in double. */
static void test_state(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int dtype = 0; dtype < 2; dtype++) {
        hl_net_spec s = spec;
        s.dtype = (hl_dtype)dtype;
        hl_net *a = make_net(ctx, &s), *b = make_net(ctx, &s);
        hl_optimizer_options options = { .average = 0.9 };
        hl_optimizer *o, *p;
        CHECK_OK(ctx, hl_optimizer_create(ctx, 1, &a, &options, &o));
        size_t size = hl_optimizer_size(o), length = hl_optimizer_state_size(o);
        double *g = test_calloc(size, 3 * sizeof *g), *saved = test_calloc(length, sizeof *saved);
        for (int k = 0; k < 6; k++) {
            for (size_t i = 0; i < size; i++)
                g[i] = hl_random_normal(6, (uint64_t)k, i);
            if (k == 3) {
                hl_optimizer_get_state(o, saved);
                hl_net_init(b, 77);
                CHECK_OK(ctx, hl_optimizer_create(ctx, 1, &b, &options, &p));
                CHECK_OK(ctx, hl_optimizer_set_state(p, saved));
            }
            CHECK_OK(ctx, hl_optimizer_step(o, g, 1, NULL));
            if (k >= 3)
                CHECK_OK(ctx, hl_optimizer_step(p, g, 1, NULL));
        }
        for (int average = 0; average < 2; average++) {
            hl_optimizer_use_average(o, average);
            hl_optimizer_use_average(p, average);
            assert_memory_equal(values_of(a, g), values_of(b, g + size), size * sizeof *g);
            if (average)
                CHECK(memcmp(g, g + 2 * size, size * sizeof *g) != 0, "the average is something else");
            memcpy(g + 2 * size, g, size * sizeof *g);
        }
        saved[3] = NAN;
        CHECK_STATUS(ctx, hl_optimizer_set_state(p, saved), HL_ERR_NOT_FINITE);
        saved[0] = -1;
        CHECK_STATUS(ctx, hl_optimizer_set_state(p, saved), HL_ERR_INVALID);
        test_free(g);
        test_free(saved);
        hl_optimizer_free(o);
        hl_optimizer_free(p);
        hl_net_free(a);
        hl_net_free(b);
    }
    test_context_free(ctx, NULL);
}

static void test_wrong(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_net *net = make_net(ctx, &spec), *none = NULL;
    hl_optimizer *o;
    hl_optimizer_options bad[] = { { .method = "lion" },      { .rate = -1 },    { .rate = NAN },     { .beta1 = 1 },
                                   { .beta2 = -0.1 },         { .average = 1 },  { .clip = -1 },      { .epsilon = -1 },
                                   { .weight_decay = -1e-3 }, { .average = -1 }, { .clip = INFINITY } };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(ctx, hl_optimizer_create(ctx, 1, &net, &bad[i], &o), HL_ERR_INVALID);
        check_message(ctx, i ? "must be" : "use one of: adam, ");
        assert_null(o);
    }
    CHECK_STATUS(ctx, hl_optimizer_create(ctx, 1, &none, NULL, &o), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_optimizer_create(ctx, 0, &net, NULL, &o), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_optimizer_create(ctx, 1, &net, NULL, NULL), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_optimizer_create(ctx, 1, &net, NULL, &o));
    size_t size = hl_optimizer_size(o);
    double *g = test_calloc(size, 3 * sizeof *g), norm;
    values_of(net, g + size);
    g[size / 2] = INFINITY;
    long before = allocator.calls;
    CHECK_STATUS(ctx, hl_optimizer_step(o, g, 1, &norm), HL_ERR_NOT_FINITE);
    assert_memory_equal(values_of(net, g + 2 * size), g + size, size * sizeof *g);
    g[size / 2] = 0;
    CHECK_OK(ctx, hl_optimizer_step(o, g, 1, &norm));
    assert_int_equal(allocator.calls, before);
    CHECK_STATUS(ctx, hl_optimizer_step(o, NULL, 1, &norm), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_optimizer_step(NULL, g, 1, &norm), HL_ERR_INVALID);
    hl_optimizer_use_average(o, 1); /* there is none: nothing happens */
    CHECK_OK(ctx, hl_net_check(net));
    test_free(g);
    hl_optimizer_free(o);
    hl_optimizer_free(NULL);
    hl_net_free(net);
    test_context_free(ctx, &allocator);
}

static void test_schedule(void **state)
{
    (void)state;
    CHECK_LE(fabs(hl_schedule_cosine(0, 100, 10, 0.01) - 0.1), 1e-15, "warm-up");
    CHECK_LE(fabs(hl_schedule_cosine(9, 100, 10, 0.01) - 1), 1e-15, "end of the warm-up");
    CHECK_LE(fabs(hl_schedule_cosine(10, 100, 10, 0.01) - 1), 1e-15, "top");
    CHECK_LE(fabs(hl_schedule_cosine(55, 100, 10, 0.01) - 0.505), 1e-12, "middle");
    CHECK_LE(fabs(hl_schedule_cosine(100, 100, 10, 0.01) - 0.01), 1e-12, "end");
    CHECK_LE(fabs(hl_schedule_cosine(900, 100, 10, 0.01) - 0.01), 1e-12, "after the end");
    CHECK_LE(fabs(hl_schedule_cosine(0, 0, 0, 0.5) - 0.5), 1e-12, "nothing to do");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formulas),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
