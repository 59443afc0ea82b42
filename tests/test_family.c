/* test_family.c - the other conditioners and transformers, sums of networks, orders of columns, other bases, the plain
 * network: the same promises as those of test_net.c. */
#include "brute_support.h"

#include "nn/net.h"

/* ---- conditioners and transformers ---- */

/* All conditioners but made, which test_net.c has, those of images, and those whose h is a constant. */
static bool is_other(size_t i)
{
    const hl_conditioner *c = hl_conditioners[i];
    return c != &hl_conditioner_made && !c->image && c->hidden_above < SIZE_MAX;
}

static size_t other_count(void)
{
    size_t count = 0;
    for (size_t i = 0; hl_conditioners[i]; i++)
        count += is_other(i);
    return count;
}

static const char *other_conditioner(size_t n)
{
    n %= other_count();
    for (size_t i = 0;; i++)
        if (is_other(i) && n-- == 0)
            return hl_conditioner_names[i];
}

static hl_net_spec other_spec(size_t n, size_t d)
{
    size_t tau = n / other_count() % name_count(hl_transformer_names), act = n / 7;
    if (hl_transformers[tau]->rising && strcmp(activation(act), "swish") == 0)
        act = 1; /* swish does not rise everywhere */
    return (hl_net_spec){ .dim = d,
                          .conditioner = other_conditioner(n),
                          .features = 2 + n / 3 % 2,
                          .hidden = 5,
                          .width = 4,
                          .dtype = HL_F64,
                          .transformer = hl_transformer_names[tau],
                          .hidden_layers = depth(n / 6),
                          .layers = depth(n / 9 + 1),
                          .activation = activation(act),
                          .time = n / 4 % 2,
                          .context = n / 7 % 2 * 2 };
}

static void test_conditioner_derivatives(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 5, 6, 13, 33 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < other_count() * 20; n++)
        for (size_t i = 0; i < (n < 12 ? 7 : 5); i++) {
            hl_net_spec spec = other_spec(n, dims[i]);
            setup s = make(ctx, &spec, 2);
            check_values(&s, dims[i] < 13 ? 4 : 2, NESTED_REVERSE, 1e-10);
            drop(&s);
        }
    test_context_free(ctx, NULL);
}

static void test_conditioner_gradients(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 7 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < other_count() * 15; n++) {
        hl_net_spec spec = other_spec(n, dims[n / other_count() % 4]);
        setup s = make(ctx, &spec, 5);
        hl_operator *op = compile(&s, 2, HL_TAYLOR);
        bundle cotangent = value_bundle(&s, 2, 23), expected = brute_gradient(&s, 2, &cotangent);
        bundle gradients = gradient(&s, op, 2, &cotangent);
        check_close(&s, &gradients, &expected, 1e-9, 0);
        drop_bundle(&cotangent);
        drop_bundle(&expected);
        drop_bundle(&gradients);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* Images: one row, one column, one pixel, several channels, kernels larger than the image. */
static void test_conv(void **state)
{
    static const size_t images[][3] = { { 1, 1, 1 }, { 1, 1, 5 }, { 1, 4, 1 }, { 1, 3, 4 }, { 2, 3, 2 }, { 3, 2, 2 } };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 6 * 6; n++) {
        hl_net_spec spec = other_spec(n, 0);
        spec.conditioner = "conv";
        memcpy(spec.image, images[n % 6], sizeof spec.image);
        spec.dim = spec.image[0] * spec.image[1] * spec.image[2];
        spec.features = 2 + n % 2 * 2;
        spec.hidden_layers = 1 + (int)(n / 6 % 3);
        spec.kernel = (size_t[]){ 3, 5, 1 }[n / 12 % 3];
        setup s = make(ctx, &spec, 3);
        check_values(&s, 3, NESTED_REVERSE, 1e-10);
        hl_operator *op = compile(&s, 2, HL_TAYLOR);
        bundle cotangent = value_bundle(&s, 2, 24), expected = brute_gradient(&s, 2, &cotangent);
        bundle gradients = gradient(&s, op, 2, &cotangent);
        check_close(&s, &gradients, &expected, 1e-9, 0);
        check_masked(&s, &gradients);
        drop_bundle(&cotangent);
        drop_bundle(&expected);
        drop_bundle(&gradients);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* A kernel of 3 and two layers reach two pixels: h of a pixel sees exactly the pixels of other places within its reach, and
 * none of them is in a blind spot. */
static void test_conv_sight(void **state)
{
    enum { H = 5, W = 5, D = H * W };
    hl_context *ctx = test_context(NULL, 1);
    hl_net_spec spec = { .dim = D,
                         .conditioner = "conv",
                         .image = { 1, H, W },
                         .features = 2,
                         .hidden = 6,
                         .hidden_layers = 2,
                         .dtype = HL_F64 };
    setup s = make(ctx, &spec, 1 + D);
    double *x = s.x;
    (void)state;
    for (size_t r = 1; r <= D; r++) {
        memcpy(x + r * D, x, D * sizeof *x);
        x[r * D + r - 1] += 0.7;
    }
    const double *h = (const double *)(const void *)conditioner_values(&s, NULL);
    for (size_t j = 0; j < D; j++)
        for (size_t i = 0; i < D; i++) {
            bool sees = memcmp(h + ((j + 1) * D + i) * 2, h + i * 2, 2 * sizeof *h) != 0;
            long dy = labs((long)(j / W) - (long)(i / W)), dx = labs((long)(j % W) - (long)(i % W));
            bool near = dy <= 1 && dx <= 1 && i != j;
            CHECK(!sees || i != j, "a pixel sees itself");
            CHECK(sees || !near, "a blind spot");
        }
    test_free((void *)(uintptr_t)h);
    drop(&s);
    test_context_free(ctx, NULL);
}

static void test_conditioner_hollow(void **state)
{
    static const size_t dims[] = { 1, 2, 3, 7, 12, 33 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < other_count() * 2 * 15; n++) {
        hl_net_spec spec = other_spec(n / 2, dims[n / (2 * other_count()) % 6]);
        spec.dtype = n % 2;
        check_hollow(ctx, &spec, NULL);
        if (strcmp(spec.conditioner, "attention") != 0) /* its weight 0 meets the values of the others; net.h */
            check_hollow_overflow(ctx, &spec, NULL);
    }
    test_context_free(ctx, NULL);
}

/* ---- combinations ---- */

/* Columns in an order that is neither the given one nor its reverse. */
static void scramble(size_t d, size_t *order)
{
    for (size_t i = 0; i < d; i++)
        order[i] = (i * 3 + 1) % d;
    if (d % 3 == 0)
        for (size_t i = 0; i < d; i++)
            order[i] = (i + 1) % d;
}

/* Gradients of a functional of f, D^1, D^2 and the divergence. */
static void check_gradients(setup *s)
{
    hl_operator *op = compile(s, 2, HL_TAYLOR);
    bundle cotangent = value_bundle(s, 2, 23), expected = brute_gradient(s, 2, &cotangent);
    bundle gradients = gradient(s, op, 2, &cotangent);
    check_close(s, &gradients, &expected, 1e-9, 0);
    check_masked(s, &gradients);
    drop_bundle(&cotangent);
    drop_bundle(&expected);
    drop_bundle(&gradients);
    hl_operator_free(op);
}

/* Orders, plain networks and sums of up to three networks, in all combinations. */
static void test_combinations(void **state)
{
    static const size_t dims[] = { 1, 2, 4, 6 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 64; n++) {
        size_t d = dims[n % 4], order[6];
        hl_net_spec third = other_spec(n + 7, 0), second = other_spec(n + 1, 0), first = other_spec(n, d);
        scramble(d, order);
        first.order = n & 4 ? order : NULL;
        first.mlp = n & 8 ? 3 : 0;
        first.plus = n & 16 ? &second : NULL;
        second.order = n & 8 ? NULL : order;
        second.mlp = 2;
        second.plus = n & 32 ? &third : NULL;
        setup s = make(ctx, &first, 3);
        check_values(&s, 4, NESTED_REVERSE, 1e-10);
        check_gradients(&s);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* In another basis the divergence and its gradients equal brute force, and D is refused. */
static void test_bases(void **state)
{
    static const size_t dims[] = { 1, 2, 5 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 36; n++) {
        size_t d = dims[n % 3], order[6];
        hl_net_spec second = other_spec(n + 1, 0), first = other_spec(n, d);
        scramble(d, order);
        first.reflections = 1 + n % 4;
        first.order = n & 1 ? order : NULL;
        first.mlp = n & 2 ? 3 : 0;
        first.plus = n & 4 ? &second : NULL;
        second.reflections = n & 8 ? 2 : 0;
        setup s = make(ctx, &first, 3);
        hl_operator *op = compile(&s, 1, n & 16 ? HL_REVERSE : HL_TAYLOR);
        bundle expected = brute_values(&s, 1, NESTED_REVERSE), values = value_bundle(&s, 1, 5);
        memcpy(piece(&values, 1), piece(&expected, 1), 3 * d * sizeof(double));
        CHECK_OK(ctx, hl_operator_eval(op, 3, s.x, s.t, s.context, piece(&values, 0), NULL, piece(&values, 2)));
        check_close(&s, &values, &expected, 1e-12, 0);
        CHECK_STATUS(ctx, hl_operator_eval(op, 3, s.x, s.t, s.context, NULL, (void *[]){ s.x }, NULL),
                     HL_ERR_UNSUPPORTED);
        check_message(ctx, "only its divergence");
        bundle cotangent = value_bundle(&s, 1, 29), gradients = gradient_bundle(&s);
        memset(piece(&cotangent, 1), 0, 3 * d * sizeof(double));
        bundle brute = brute_gradient(&s, 1, &cotangent);
        void *gparam[MAX_PIECES];
        for (size_t i = 0; i < s.params; i++)
            gparam[i] = piece(&gradients, 3 + i);
        CHECK_OK(ctx, hl_operator_vjp(op, 3, s.x, s.t, s.context, piece(&cotangent, 0), NULL, piece(&cotangent, 2),
                                      piece(&gradients, 0), piece(&gradients, 1), piece(&gradients, 2), gparam));
        check_close(&s, &gradients, &brute, 1e-9, 1e-3);
        drop_bundle(&expected);
        drop_bundle(&values);
        drop_bundle(&cotangent);
        drop_bundle(&gradients);
        drop_bundle(&brute);
        hl_operator_free(op);
        CHECK_STATUS(ctx, hl_operator_create(s.net, &(hl_operator_options){ .order = 2 }, &op), HL_ERR_UNSUPPORTED);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* A network of flows looks one way only: the Jacobian is triangular in the order of columns and D f > 0. */
static void test_triangular(void **state)
{
    enum { D = 6 };
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t n = 0; n < 2 * 3 * 2; n++) {
        size_t order[D];
        hl_net_spec spec = { .dim = D,
                             .conditioner = n % 2 ? "coupling" : "autoregressive",
                             .transformer = (const char *const[]){ "additive", "affine", "monotone" }[n / 2 % 3],
                             .hidden = 9,
                             .width = 5,
                             .dtype = HL_F64 };
        scramble(D, order);
        spec.order = n / 6 ? order : NULL;
        setup s = make(ctx, &spec, 1 + D);
        double *x = s.x;
        for (size_t r = 1; r <= D; r++) {
            memcpy(x + r * D, x, D * sizeof *x);
            x[r * D + r - 1] += 0.5;
        }
        hl_operator *op = compile(&s, 1, HL_TAYLOR);
        bundle values = evaluate(&s, op, 1);
        const double *f = piece(&values, 0), *d = piece(&values, 1);
        size_t seen = 0;
        for (size_t j = 0; j < D; j++) /* place j of the order moves, place i is looked at */
            for (size_t i = 0; i < D; i++) {
                size_t moved = spec.order ? order[j] : j, looked = spec.order ? order[i] : i;
                bool same = f[(moved + 1) * D + looked] == f[looked];
                bool may = n % 2 ? j < D / 2 && i >= D / 2 : j < i;
                CHECK(d[looked] > 0, s.label);
                CHECK(i != j || !same, s.label);
                CHECK(i == j || may || same, s.label);
                seen += may && !same;
            }
        CHECK(seen >= (n % 2 ? 9 : 10), s.label);
        drop_bundle(&values);
        hl_operator_free(op);
        drop(&s);
    }
    test_context_free(ctx, NULL);
}

/* Columns in shuffled pairs of a chain: neighbours of the chain come out as neighbours. */
static void test_order_columns(void **state)
{
    enum { D = 24, ROWS = 400 };
    static double values[ROWS * D];
    size_t order[D], place[D];
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (size_t r = 0; r < ROWS; r++) {
        double y = 0;
        for (size_t i = 0; i < D; i++) {
            y = 0.95 * y + 0.3 * hl_random_normal(3, r, i);
            values[r * D + (i * 7 + 3) % D] = i % 2 ? y : -y;
        }
    }
    CHECK_OK(ctx, hl_order_columns(ctx, ROWS, D, values, order));
    for (size_t i = 0; i < D; i++)
        place[i] = D;
    for (size_t i = 0; i < D; i++)
        place[order[i]] = i;
    size_t near = 0;
    for (size_t i = 0; i + 1 < D; i++) {
        long gap = (long)place[(i * 7 + 3) % D] - (long)place[((i + 1) * 7 + 3) % D];
        near += labs(gap) == 1;
    }
    CHECK(near >= D - 3, "neighbours of the chain");
    for (size_t r = 0; r < ROWS; r++) /* constant columns are no trouble */
        values[r * D + 5] = values[r * D + 6] = 2;
    CHECK_OK(ctx, hl_order_columns(ctx, ROWS, D, values, order));
    for (size_t d = 1; d < 4; d++) {
        CHECK_OK(ctx, hl_order_columns(ctx, ROWS, d, values, order));
        hl_net_spec spec = { .dim = d, .order = order };
        hl_net_free(make_net(ctx, &spec)); /* each column once */
    }
    values[77] = NAN;
    CHECK_STATUS(ctx, hl_order_columns(ctx, ROWS, D, values, order), HL_ERR_NOT_FINITE);
    check_message(ctx, "row 3, value 5");
    CHECK_STATUS(ctx, hl_order_columns(ctx, 1, D, values, order), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_order_columns(ctx, 2, 9000, values, order), HL_ERR_INVALID);
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conditioner_derivatives),
        cmocka_unit_test(test_conditioner_gradients),
        cmocka_unit_test(test_conditioner_hollow),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_conv_sight),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_bases),
        cmocka_unit_test(test_triangular),
        cmocka_unit_test(test_order_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
