/* test_graph.c - building graphs: errors that stick, equal nodes, folding, shapes, verifier, printer. */
#include "ops_support.h"

static hl_graph *new_graph(hl_context *ctx)
{
    hl_graph *g = NULL;
    CHECK_OK(ctx, hl_graph_create(ctx, &g));
    return g;
}

static hl_node input(hl_graph *g, const hl_shape *s)
{
    return hl_input(g, "x", s->rank, s->dim);
}

static hl_node param(hl_graph *g, const hl_shape *s)
{
    return hl_param(g, "p", s->rank, s->dim);
}

/* ---- errors ---- */

/* Every public builder, with the node x in all its places, and with attributes that suit a node of shape [2, 3]. */
enum { BUILDERS = 48 };
static hl_node build(int i, hl_graph *g, hl_node x)
{
    static const size_t dims[] = { 2, 3 }, index[] = { 0 };
    static const int axes[] = { 1, 0 };
    static const uint32_t lo[] = { 0, 0 }, hi[] = { 1, 1 };
    switch (i) {
    case 0:
        return hl_add(g, x, x);
    case 1:
        return hl_sub(g, x, x);
    case 2:
        return hl_mul(g, x, x);
    case 3:
        return hl_div(g, x, x);
    case 4:
        return hl_pow(g, x, x);
    case 5:
        return hl_powi(g, x, 3);
    case 6:
        return hl_min(g, x, x);
    case 7:
        return hl_max(g, x, x);
    case 8:
        return hl_less(g, x, x);
    case 9:
        return hl_select(g, x, x, x);
    case 10:
        return hl_clamp(g, x, 0, 1);
    case 11:
        return hl_scale(g, 2, x);
    case 12:
        return hl_neg(g, x);
    case 13:
        return hl_exp(g, x);
    case 14:
        return hl_log(g, x);
    case 15:
        return hl_log1p(g, x);
    case 16:
        return hl_expm1(g, x);
    case 17:
        return hl_sin(g, x);
    case 18:
        return hl_cos(g, x);
    case 19:
        return hl_tanh(g, x);
    case 20:
        return hl_sigmoid(g, x);
    case 21:
        return hl_softplus(g, x);
    case 22:
        return hl_swish(g, x);
    case 23:
        return hl_elu(g, x);
    case 24:
        return hl_relu(g, x);
    case 25:
        return hl_erf(g, x);
    case 26:
        return hl_sqrt(g, x);
    case 27:
        return hl_abs(g, x);
    case 28:
        return hl_sign(g, x);
    case 29:
        return hl_stop(g, x);
    case 30:
        return hl_sum(g, x, 0);
    case 31:
        return hl_mean(g, x, -1);
    case 32:
        return hl_max_over(g, x, 1);
    case 33:
        return hl_sum_all(g, x);
    case 34:
        return hl_sum_rows(g, x);
    case 35:
        return hl_logsumexp(g, x, -1);
    case 36:
        return hl_softmax(g, x, 0);
    case 37:
        return hl_cumsum(g, x, -1, 1, 1);
    case 38:
        return hl_reshape(g, x, 2, dims);
    case 39:
        return hl_broadcast(g, x, 2, dims);
    case 40:
        return hl_permute(g, x, axes);
    case 41:
        return hl_concat(g, 2, (hl_node[]){ x, x }, 0);
    case 42:
        return hl_slice(g, x, 0, 0, 1);
    case 43:
        return hl_gather(g, x, 0, 1, index);
    case 44:
        return hl_linear(g, x, x);
    case 45:
        return hl_linear_masked(g, x, x, lo, hi);
    case 46:
        return hl_matmul(g, x, x);
    default:
        return hl_conv(g, x, x, NULL);
    }
}

/* What is no node gives HL_BAD and an error with a message; no graph gives HL_BAD and nothing else. */
static void test_bad_nodes(void **state)
{
    static const hl_node bad[] = { HL_BAD, HL_NONE, 1000, INT32_MIN, INT32_MAX };
    hl_context *ctx = test_context(NULL, 1);

    (void)state;
    for (int i = 0; i < BUILDERS; i++) {
        assert_int_equal(build(i, NULL, 1), HL_BAD);
        for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
            hl_graph *g = new_graph(ctx);
            hl_fail(ctx, HL_OK, "nothing");
            if (build(i, g, bad[j]) != HL_BAD || hl_graph_status(g) == HL_OK)
                fail_msg("builder %d takes node %d", i, (int)bad[j]);
            assert_string_not_equal(hl_context_message(ctx), "nothing");
            hl_graph_free(g);
        }
    }
    assert_int_equal(hl_linear_grouped(NULL, 1, 1), HL_BAD);
    assert_int_equal(hl_conv_transpose(NULL, 1, 1, 1, 1, NULL), HL_BAD);
    assert_int_equal(hl_input(NULL, "x", 0, NULL), HL_BAD);
    assert_int_equal(hl_param(NULL, "x", 0, NULL), HL_BAD);
    assert_int_equal(hl_const(NULL, 1), HL_BAD);
    assert_int_equal(hl_const_array(NULL, 0, NULL, (double[]){ 1 }), HL_BAD);
    assert_int_equal(hl_graph_status(NULL), HL_ERR_INVALID);
    assert_int_equal(hl_graph_verify(NULL), HL_ERR_INVALID);
    assert_int_equal(hl_graph_create(NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_graph_create(ctx, NULL), HL_ERR_INVALID);
    hl_graph_free(NULL);
    hl_context_free(ctx);
}

/* The first error is kept, whatever follows; good calls still work but the status stays, and plans refuse the graph. */
static void test_sticky(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    hl_node x = input(g, SHAPE(2, 3)), y = input(g, SHAPE(4)), bad = hl_add(g, x, y);
    hl_plan *plan = (hl_plan *)&g;
    char first[512];

    (void)state;
    assert_int_equal(bad, HL_BAD);
    CHECK_STATUS(ctx, hl_graph_status(g), HL_ERR_SHAPE);
    snprintf(first, sizeof first, "%s", hl_context_message(ctx));
    assert_string_equal(first, "add: batched [2, 3] and batched [4] do not broadcast");
    assert_int_equal(hl_exp(g, bad), HL_BAD);
    assert_int_equal(hl_sum(g, hl_mul(g, x, bad), 0), HL_BAD);
    assert_int_equal(hl_input(g, NULL, 0, NULL), HL_BAD);
    assert_string_equal(hl_context_message(ctx), first);
    assert_true(hl_exp(g, x) > 0);
    CHECK_STATUS(ctx, hl_graph_status(g), HL_ERR_SHAPE);
    CHECK_STATUS(ctx, hl_plan_create(ctx, g, 1, &x, NULL, &plan), HL_ERR_SHAPE);
    assert_null(plan);
    assert_string_equal(hl_context_message(ctx), first);
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* One wrong call on a fresh graph with x batched [2, 3], p shared [2, 3], v batched [3], k shared [2, 1, 2, 2], image
 * batched [1, 4, 4]. */
typedef struct wrong_graph {
    hl_graph *g;
    hl_node x, p, v, k, image;
} wrong_graph;

static hl_node wrong_call(int i, const wrong_graph *w)
{
    hl_graph *g = w->g;
    hl_node x = w->x, p = w->p, v = w->v;
    static const size_t zero[] = { 0, 3 }, six[] = { 6 }, five[] = { 5 }, huge[] = { SIZE_MAX / 2, 4 },
                        large[] = { (size_t)1 << 40, (size_t)1 << 20 }, many[] = { 1, 1, 1, 1, 1, 1, 1 };
    switch (i) {
    case 0:
        return hl_input(g, "zero", 2, zero);
    case 1:
        return hl_param(g, "huge", 2, huge);
    case 2:
        return hl_input(g, "large", 2, large);
    case 3:
        return hl_input(g, "deep", 7, many);
    case 4:
        return hl_input(g, "negative", -1, many);
    case 5:
        return hl_input(g, "none", 2, NULL);
    case 6:
        return hl_param(g, NULL, 1, six);
    case 7:
        return hl_const_array(g, 1, six, NULL);
    case 8:
        return hl_const_array(g, 2, zero, (double[]){ 1 });
    case 9:
        return hl_sum(g, x, 2);
    case 10:
        return hl_sum(g, x, -3);
    case 11:
        return hl_max_over(g, hl_const(g, 1), 0);
    case 12:
        return hl_softmax(g, x, 5);
    case 13:
        return hl_logsumexp(g, x, -5);
    case 14:
        return hl_cumsum(g, x, 2, 0, 0);
    case 15:
        return hl_mean(g, x, 7);
    case 16:
        return hl_sum_rows(g, p);
    case 17:
        return hl_reshape(g, x, 1, five);
    case 18:
        return hl_reshape(g, x, 7, many);
    case 19:
        return hl_reshape(g, x, 1, NULL);
    case 20:
        return hl_broadcast(g, x, 1, six);
    case 21:
        return hl_broadcast(g, x, -1, six);
    case 22:
        return hl_broadcast(g, v, 2, (size_t[]){ 2, 4 });
    case 23:
        return hl_broadcast(g, hl_const(g, 1), 1, zero);
    case 24:
        return hl_broadcast(g, x, 3, (size_t[]){ SIZE_MAX / 4, 2, 3 });
    case 25:
        return hl_permute(g, x, (int[]){ 0, 0 });
    case 26:
        return hl_permute(g, x, (int[]){ 0, 2 });
    case 27:
        return hl_permute(g, x, (int[]){ -1, 0 });
    case 28:
        return hl_permute(g, x, NULL);
    case 29:
        return hl_concat(g, 2, (hl_node[]){ x, v }, 0);
    case 30:
        return hl_concat(g, 2, (hl_node[]){ x, p }, 2);
    case 31:
        return hl_concat(g, 0, &x, 0);
    case 32:
        return hl_concat(g, 2, NULL, 0);
    case 33:
        return hl_slice(g, x, 1, 2, 2);
    case 34:
        return hl_slice(g, x, 1, 0, 0);
    case 35:
        return hl_slice(g, x, 1, SIZE_MAX, 2);
    case 36:
        return hl_slice(g, x, 2, 0, 1);
    case 37:
        return hl_gather(g, x, 1, 1, (size_t[]){ 3 });
    case 38:
        return hl_gather(g, x, 1, 1, (size_t[]){ SIZE_MAX });
    case 39:
        return hl_gather(g, x, 1, 0, (size_t[]){ 0 });
    case 40:
        return hl_gather(g, x, 1, 1, NULL);
    case 41:
        return hl_linear(g, x, x); /* batched weights */
    case 42:
        return hl_linear(g, input(g, SHAPE(4)), p); /* 4 inputs for weights of 3 */
    case 43:
        return hl_linear(g, hl_const(g, 1), p); /* no axis */
    case 44:
        return hl_linear(g, v, w->k); /* weights of rank 4 */
    case 45:
        return hl_linear_grouped(g, x, p);
    case 46:
        return hl_linear_grouped(g, input(g, SHAPE(3, 3)), param(g, SHAPE(2, 5, 3)));
    case 47:
        return hl_linear_masked(g, v, p, (uint32_t[]){ 0, 0 }, (uint32_t[]){ 1, 4 });
    case 48:
        return hl_linear_masked(g, v, p, NULL, (uint32_t[]){ 1, 3 });
    case 49:
        return hl_linear_masked(g, v, w->k, (uint32_t[]){ 0, 0 }, (uint32_t[]){ 1, 1 });
    case 50:
        return hl_matmul(g, x, x);
    case 51:
        return hl_matmul(g, x, v);
    case 52:
        return hl_matmul(g, input(g, SHAPE(2, 2, 3)), input(g, SHAPE(3, 3, 2)));
    case 53:
        return hl_conv(g, x, w->k, NULL);
    case 54:
        return hl_conv(g, w->image, p, NULL);
    case 55:
        return hl_conv(g, w->image, input(g, SHAPE(2, 1, 2, 2)), NULL); /* batched kernel */
    case 56:
        return hl_conv(g, w->image, param(g, SHAPE(2, 1, 5, 2)), NULL); /* kernel larger than the image */
    case 57:
        return hl_conv(g, w->image, w->k, &(hl_conv_options){ .stride = { (size_t)1 << 40, 1 } });
    case 58:
        return hl_conv(g, w->image, w->k, &(hl_conv_options){ .pad = { 0, SIZE_MAX } });
    case 59:
        return hl_conv_transpose(g, w->image, w->k, 5, 5, NULL);
    case 60:
        return hl_conv_transpose(g, input(g, SHAPE(2, 4, 4)), w->k, 6, 5, NULL);
    case 61:
        return hl_conv_transpose(g, input(g, SHAPE(2, 1, 4)), w->k, 0, 5, &(hl_conv_options){ .pad = { 1, 0 } });
    case 62:
        return hl_clamp(g, x, 1, 0);
    case 63:
        return hl_clamp(g, x, NAN, 0);
    case 64:
        return hl_add(g, x, hl_input(g, "four", 1, (size_t[]){ 4 }));
    case 65:
        return hl_select(g, x, v, hl_input(g, "two", 1, (size_t[]){ 2 }));
    case 66:
        return hl_conv(g, w->image, v, &(hl_conv_options){ .taps = (const unsigned char[]){ 1 } });
    default:
        return HL_NONE;
    }
}

/* A word that the message must have: what was called, or what is wrong. */
static const char *const wrong_words[] = {
    "zero: dimension 0 is 0",
    "input",
    "large",
    "deep: rank 7",
    "negative: rank -1",
    "none",
    "NULL",
    "NULL",
    "dimension 0",
    "axis 2 of a node of rank 2",
    "axis",
    "rank 0",
    "axis",
    "axis",
    "cumsum: axis 2",
    "axis 7",
    "sum_rows",
    "reshape: batched [2, 3] and batched [5] have different numbers of values",
    "rank 7",
    "NULL",
    "broadcast: batched [2, 3] cannot be broadcast to batched [6]",
    "rank -1",
    "broadcast",
    "broadcast",
    "too large",
    "permute",
    "permute",
    "permute",
    "permute",
    "concat: part 1",
    "axis 2",
    "no parts",
    "no parts",
    "2 values from 2",
    "0 values",
    "slice",
    "slice",
    "gather: index 3 of an axis of 3",
    "gather",
    "0 indices",
    "NULL",
    "linear: values",
    "linear: values",
    "linear",
    "linear",
    "linear",
    "linear",
    "unit 1 uses inputs up to 4, but there are 3",
    "NULL",
    "not a matrix",
    "matmul",
    "matmul",
    "matmul: batched [2, 2, 3] and batched [3, 3, 2]",
    "conv: an image batched [2, 3]",
    "conv",
    "conv",
    "conv",
    "stride",
    "padding",
    "conv",
    "conv_transpose",
    "conv",
    "low 1",
    "low nan",
    "add: batched [2, 3] and batched [4]",
    "select",
    "conv",
};
enum { WRONG = sizeof wrong_words / sizeof *wrong_words };

static void test_wrong_calls(void **state)
{
    hl_context *ctx = test_context(NULL, 1);

    (void)state;
    for (int i = 0; i < WRONG; i++) {
        wrong_graph w = { .g = new_graph(ctx) };
        w.x = input(w.g, SHAPE(2, 3));
        w.p = param(w.g, SHAPE(2, 3));
        w.v = input(w.g, SHAPE(3));
        w.k = param(w.g, SHAPE(2, 1, 2, 2));
        w.image = input(w.g, SHAPE(1, 4, 4));
        CHECK_OK(ctx, hl_graph_status(w.g));
        hl_node n = wrong_call(i, &w);
        hl_status status = hl_graph_status(w.g);
        if (n != HL_BAD || (status != HL_ERR_SHAPE && status != HL_ERR_INVALID))
            fail_msg("call %d: node %d, status %d", i, (int)n, (int)status);
        if (i != 1 && !strstr(hl_context_message(ctx), wrong_words[i]))
            fail_msg("call %d: the message '%s' lacks '%s'", i, hl_context_message(ctx), wrong_words[i]);
        hl_graph_free(w.g);
    }
    hl_context_free(ctx);
}

/* A node number of another, larger graph is not a node of this one. */
static void test_other_graph(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *small = new_graph(ctx), *large = new_graph(ctx);
    hl_node x = input(small, SHAPE(2)), y = input(large, SHAPE(2)), far;
    hl_plan *plan;

    (void)state;
    far = hl_exp(large, hl_sin(large, y));
    assert_int_equal(hl_add(small, x, far), HL_BAD);
    CHECK_STATUS(ctx, hl_graph_status(small), HL_ERR_INVALID);
    assert_non_null(strstr(hl_context_message(ctx), "add: input 1 is not a node of this graph"));
    CHECK_OK(ctx, hl_graph_status(large));
    far = 1000;
    CHECK_STATUS(ctx, hl_plan_create(ctx, large, 1, &far, NULL, &plan), HL_ERR_INVALID);
    hl_graph_free(small);
    hl_graph_free(large);
    hl_context_free(ctx);
}

/* ---- shapes ---- */

static void check_shape(const hl_graph *g, hl_node n, bool batched, const hl_shape *s)
{
    assert_true(n > 0);
    assert_int_equal(hl_node_batched(g, n), batched);
    assert_int_equal(hl_node_rank(g, n), s->rank);
    assert_int_equal(hl_node_size(g, n), hl_shape_size(s));
    for (int i = 0; i < s->rank; i++) {
        assert_int_equal(hl_node_dim(g, n, i), s->dim[i]);
        assert_int_equal(hl_node_dim(g, n, i - s->rank), s->dim[i]);
    }
}

static void test_shapes(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    hl_node x = input(g, SHAPE(2, 3)), p = param(g, SHAPE(4, 1, 3)), w = param(g, SHAPE(5, 3)), s = param(g, SCALAR);
    hl_node image = input(g, SHAPE(2, 5, 6)), k = param(g, SHAPE(3, 2, 3, 2));
    hl_conv_options o = { .stride = { 2, 1 }, .pad = { 1, 0 } };

    (void)state;
    check_shape(g, hl_add(g, x, p), true, SHAPE(4, 2, 3));
    check_shape(g, hl_mul(g, p, s), false, SHAPE(4, 1, 3));
    check_shape(g, hl_mul(g, s, x), true, SHAPE(2, 3));
    check_shape(g, hl_select(g, s, x, hl_const(g, 1)), true, SHAPE(2, 3));
    check_shape(g, hl_sum(g, p, 0), false, SHAPE(1, 3));
    check_shape(g, hl_max_over(g, p, -3), false, SHAPE(1, 3));
    check_shape(g, hl_sum_all(g, x), true, SCALAR);
    check_shape(g, hl_sum_rows(g, x), false, SHAPE(2, 3));
    check_shape(g, hl_permute(g, p, (int[]){ 2, 0, 1 }), false, SHAPE(3, 4, 1));
    check_shape(g, hl_concat(g, 3, (hl_node[]){ x, x, x }, -1), true, SHAPE(2, 9));
    check_shape(g, hl_linear(g, x, w), true, SHAPE(2, 5));
    check_shape(g, hl_linear(g, p, w), false, SHAPE(4, 1, 5));
    check_shape(g, hl_linear_grouped(g, x, param(g, SHAPE(2, 7, 3))), true, SHAPE(2, 7));
    check_shape(g, hl_matmul(g, x, hl_permute(g, w, (int[]){ 1, 0 })), true, SHAPE(2, 5));
    check_shape(g, hl_conv(g, image, k, &o), true, SHAPE(3, 3, 5));
    check_shape(g, hl_conv_transpose(g, hl_conv(g, image, k, &o), k, 5, 6, &o), true, SHAPE(2, 5, 6));
    check_shape(g, hl_slice(g, x, 1, 1, 2), true, SHAPE(2, 2));
    check_shape(g, hl_broadcast(g, w, 3, (size_t[]){ 2, 5, 3 }), false, SHAPE(2, 5, 3));
    CHECK_OK(ctx, hl_graph_status(g));
    CHECK_OK(ctx, hl_graph_verify(g));
    assert_int_equal(hl_node_rank(g, HL_BAD), -1);
    assert_int_equal(hl_node_rank(NULL, 1), -1);
    assert_int_equal(hl_node_size(g, 0), 0);
    assert_int_equal(hl_node_dim(g, x, 2), 0);
    assert_int_equal(hl_node_dim(g, x, -3), 0);
    assert_int_equal(hl_node_batched(g, 1000), 0);
    hl_graph_free(g);
    hl_context_free(ctx);
}

static void test_leaves(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    char name[] = "first";
    hl_node a = hl_input(g, name, 1, (size_t[]){ 3 }), p = hl_param(g, "weights", 0, NULL),
            b = hl_input(g, "first", 0, NULL);

    (void)state;
    name[0] = 'x'; /* names are copied */
    assert_int_not_equal(a, b);
    assert_int_equal(hl_graph_inputs(g), 2);
    assert_int_equal(hl_graph_params(g), 1);
    assert_int_equal(hl_graph_input(g, 0), a);
    assert_int_equal(hl_graph_input(g, 1), b);
    assert_int_equal(hl_graph_param(g, 0), p);
    assert_int_equal(hl_graph_input(g, 2), HL_BAD);
    assert_int_equal(hl_graph_param(g, 1), HL_BAD);
    assert_int_equal(hl_graph_input(NULL, 0), HL_BAD);
    assert_string_equal(hl_node_name(g, a), "first");
    assert_string_equal(hl_node_name(g, p), "weights");
    assert_string_equal(hl_node_name(g, hl_exp(g, a)), "");
    assert_string_equal(hl_node_name(g, HL_BAD), "");
    for (int i = 0; i < 300; i++) /* more than any first allocation holds */
        assert_true(input(g, SCALAR) > 0);
    assert_int_equal(hl_graph_inputs(g), 302);
    CHECK_OK(ctx, hl_graph_verify(g));
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* ---- equal nodes, constants, neutral elements ---- */

static void test_equal_nodes(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    hl_node x = input(g, SHAPE(2, 3)), y = input(g, SHAPE(2, 3)), first[BUILDERS];
    size_t count;

    (void)state;
    for (int i = 0; i < 44; i++) /* all that take a batched [2, 3] */
        assert_true((first[i] = build(i, g, x)) > 0);
    count = hl_graph_count(g);
    for (int i = 0; i < 44; i++)
        assert_int_equal(build(i, g, x), first[i]);
    assert_int_equal(hl_graph_count(g), count);
    for (int i = 0; i < 44; i++)
        assert_int_not_equal(build(i, g, y), first[i]);
    /* The same op with other attributes is another node. */
    assert_int_not_equal(hl_sum(g, x, 0), hl_sum(g, x, 1));
    assert_int_equal(hl_sum(g, x, 1), hl_sum(g, x, -1));
    assert_int_not_equal(hl_cumsum(g, x, 0, 0, 0), hl_cumsum(g, x, 0, 1, 0));
    assert_int_not_equal(hl_cumsum(g, x, 0, 0, 0), hl_cumsum(g, x, 0, 0, 1));
    assert_int_not_equal(hl_gather(g, x, 0, 2, (size_t[]){ 0, 1 }), hl_gather(g, x, 0, 2, (size_t[]){ 1, 0 }));
    assert_int_not_equal(hl_gather(g, x, 1, 2, (size_t[]){ 0, 1 }), hl_gather(g, x, 0, 2, (size_t[]){ 0, 1 }));
    assert_int_not_equal(hl_permute(g, x, (int[]){ 1, 0 }), hl_permute(g, x, (int[]){ 0, 1 }));
    assert_int_not_equal(hl_sub(g, x, y), hl_sub(g, y, x));
    assert_int_equal(hl_slice(g, x, 1, 1, 2), hl_gather(g, x, 1, 2, (size_t[]){ 1, 2 }));
    assert_int_equal(hl_slice(g, x, 1, 0, 3), x);
    assert_int_equal(hl_concat(g, 1, &x, 0), x);
    assert_int_equal(hl_reshape(g, x, 2, (size_t[]){ 2, 3 }), x);
    assert_int_equal(hl_broadcast(g, x, 2, (size_t[]){ 2, 3 }), x);
    assert_int_equal(hl_const(g, 2.5), hl_const(g, 2.5));
    assert_int_not_equal(hl_const(g, 2.5), hl_const(g, -2.5));
    assert_int_equal(hl_const_array(g, 0, NULL, (double[]){ 2.5 }), hl_const(g, 2.5));
    CHECK_OK(ctx, hl_graph_verify(g));
    hl_graph_free(g);
    hl_context_free(ctx);
}

static void test_folding(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    hl_node x = input(g, SHAPE(3)), p = param(g, SHAPE(2, 1)), zero = hl_const(g, 0), one = hl_const(g, 1), n;
    hl_node two = hl_const(g, 2), wide = hl_broadcast(g, one, 2, (size_t[]){ 2, 3 });
    double v;

    (void)state;
    /* Functions of constants are constants, also of stretched ones. */
    assert_int_equal(hl_add(g, two, one), hl_const(g, 3));
    assert_int_equal(hl_exp(g, two), hl_const(g, exp(2)));
    assert_int_equal(hl_select(g, zero, one, two), two);
    assert_int_equal(hl_powi(g, two, -3), hl_const(g, 0.125));
    assert_true(hl_scalar_value(g, hl_tanh(g, hl_mul(g, wide, two)), &v));
    CHECK_NEAR(v, tanh(2), 1e-16, "stretched constant");
    check_shape(g, hl_tanh(g, wide), false, SHAPE(2, 3));
    assert_true(hl_scalar_value(g, hl_min(g, hl_const(g, NAN), one), &v));
    assert_true(isnan(v));
    /* Neutral elements vanish, on either side where the op is symmetric. */
    assert_int_equal(hl_add(g, x, zero), x);
    assert_int_equal(hl_add(g, zero, x), x);
    assert_int_equal(hl_sub(g, x, zero), x);
    assert_int_equal(hl_mul(g, x, one), x);
    assert_int_equal(hl_mul(g, one, x), x);
    assert_int_equal(hl_div(g, x, one), x);
    assert_int_equal(hl_scale(g, 1, x), x);
    assert_int_equal(hl_powi(g, x, 1), x);
    assert_int_not_equal(hl_sub(g, zero, x), x);
    assert_int_not_equal(hl_div(g, one, x), x);
    assert_int_not_equal(hl_mul(g, x, zero), x);
    /* But the result has the common shape and kind. */
    check_shape(g, hl_add(g, x, hl_broadcast(g, zero, 2, (size_t[]){ 2, 3 })), true, SHAPE(2, 3));
    check_shape(g, hl_mul(g, wide, p), false, SHAPE(2, 3));
    check_shape(g, hl_powi(g, p, 0), false, SHAPE(2, 1));
    n = hl_mul(g, hl_const_array(g, 1, (size_t[]){ 3 }, (double[]){ 1, 1, 1 }), x); /* an array is no scalar */
    assert_int_not_equal(n, x);
    /* What the user has made is never looked through: he may hold it, or differentiate by it. */
    n = hl_neg(g, x);
    assert_int_not_equal(hl_neg(g, n), x);
    assert_int_equal(hl_graph_node(g, hl_mul(g, n, x))->in[0], n);
    n = hl_reshape(g, x, 2, (size_t[]){ 1, 3 });
    assert_int_equal(hl_graph_node(g, hl_reshape(g, n, 1, (size_t[]){ 3 }))->in[0], n);
    n = hl_broadcast(g, x, 2, (size_t[]){ 2, 3 });
    assert_int_equal(hl_graph_node(g, hl_exp(g, n))->in[0], n);
    assert_int_equal(hl_graph_node(g, hl_broadcast(g, n, 3, (size_t[]){ 2, 2, 3 }))->in[0], n);
    CHECK_OK(ctx, hl_graph_status(g));
    CHECK_OK(ctx, hl_graph_verify(g));
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* Constant arrays, index lists, taps and masks are copied. */
static void test_copies(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    model m = model_make(ctx, 1);
    double values[] = { 1, 2, 3 };
    size_t index[] = { 2, 0 };
    uint32_t lo[] = { 0, 1 }, hi[] = { 2, 3 };
    unsigned char taps[] = { 1, 0 };
    hl_node c = hl_const_array(m.g, 1, (size_t[]){ 3 }, values), picked = hl_gather(m.g, c, 0, 2, index);
    hl_node w = model_leaf(&m, false, SHAPE(2, 3), 0), y = hl_linear_masked(m.g, c, w, lo, hi);
    hl_node k = model_leaf(&m, false, SHAPE(1, 1, 1, 2), 0);
    hl_node z = hl_conv(m.g, hl_reshape(m.g, c, 3, (size_t[]){ 1, 1, 3 }), k, &(hl_conv_options){ .taps = taps });
    double *out[3], *v = model_values(&m, w), *vk = model_values(&m, k);

    (void)state;
    memset(values, 0, sizeof values);
    memset(index, 0, sizeof index);
    memset(lo, 0, sizeof lo);
    memset(hi, 0, sizeof hi);
    memset(taps, 1, sizeof taps);
    for (int i = 0; i < 6; i++)
        v[i] = i + 1;
    model_eval(&m, HL_F64, 3, (hl_node[]){ picked, y, z }, out);
    CHECK_NEAR(out[0][0], 3, 0, "gather");
    CHECK_NEAR(out[0][1], 1, 0, "gather");
    CHECK_NEAR(out[1][0], 1 * 1 + 2 * 2, 0, "mask");
    CHECK_NEAR(out[1][1], 5 * 2 + 6 * 3, 0, "mask");
    CHECK_NEAR(out[2][0], vk[0], 0, "taps");
    CHECK_NEAR(out[2][1], 2 * vk[0], 0, "taps");
    model_free(&m);
    hl_context_free(ctx);
}

/* ---- verifier and printer ---- */

static void test_verify(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    hl_node x = input(g, SHAPE(2, 3)), s = hl_sum(g, hl_exp(g, x), 1);
    hl_node *in = (hl_node *)(uintptr_t)g->node[s].in, kept = in[0];

    (void)state;
    CHECK_OK(ctx, hl_graph_verify(g));
    in[0] = s; /* not before its user */
    CHECK_STATUS(ctx, hl_graph_verify(g), HL_ERR_INVALID);
    in[0] = 0;
    CHECK_STATUS(ctx, hl_graph_verify(g), HL_ERR_INVALID);
    in[0] = kept;
    CHECK_OK(ctx, hl_graph_verify(g));
    g->node[s].shape.dim[0] = 4; /* not the shape of its rule */
    CHECK_STATUS(ctx, hl_graph_verify(g), HL_ERR_SHAPE);
    assert_non_null(strstr(hl_context_message(ctx), "sum"));
    g->node[s].shape.dim[0] = 2;
    g->node[s].shape.batched = false;
    CHECK_STATUS(ctx, hl_graph_verify(g), HL_ERR_SHAPE);
    g->node[s].shape.batched = true;
    g->node[s].attr.i[0] = 2; /* the rule itself fails */
    CHECK_STATUS(ctx, hl_graph_verify(g), HL_ERR_SHAPE);
    hl_graph_free(g);
    hl_context_free(ctx);
}

static void test_text(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    hl_node x = hl_input(g, "x", 1, (size_t[]){ 3 }), p = hl_param(g, "w", 2, (size_t[]){ 5, 3 }), parts[100], n;
    char text[300], small[8];

    (void)state;
    hl_node_text(g, x, text, sizeof text);
    assert_string_equal(text, "%1 = input x() batched [3]");
    hl_node_text(g, p, text, sizeof text);
    assert_string_equal(text, "%2 = param w() shared [5, 3]");
    n = hl_tanh(g, hl_linear(g, x, p));
    assert_int_equal(hl_node_text(g, n, text, sizeof text), strlen("%4 = tanh(%3) batched [5]"));
    assert_string_equal(text, "%4 = tanh(%3) batched [5]");
    hl_node_text(g, n - 1, text, sizeof text);
    assert_string_equal(text, "%3 = linear(%1, %2) batched [5]");
    assert_int_equal(hl_node_text(g, n, small, sizeof small), strlen("%4 = tanh(%3) batched [5]"));
    assert_string_equal(small, "%4 = ta");
    assert_int_equal(hl_node_text(g, n, NULL, 0), strlen("%4 = tanh(%3) batched [5]"));
    assert_true(hl_node_text(g, HL_BAD, text, sizeof text) > 0);
    assert_true(hl_node_text(NULL, 1, text, sizeof text) > 0);
    for (int i = 0; i < 100; i++)
        parts[i] = i % 2 ? x : hl_exp(g, x);
    n = hl_concat(g, 100, parts, 0); /* more inputs than a line holds */
    assert_true(hl_node_text(g, n, text, sizeof text) < 300);
    assert_non_null(strstr(text, "batched [300]"));
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* Many nodes: the tables grow, numbers stay. */
static void test_many_nodes(void **state)
{
    enum { MANY = 20000 };
    hl_context *ctx = test_context(NULL, 1);
    hl_graph *g = new_graph(ctx);
    hl_node x = input(g, SCALAR), y = x, at[3] = { 0 };

    (void)state;
    for (int i = 0; i < MANY; i++) {
        y = hl_sin(g, y);
        if (i < 3)
            at[i] = y;
    }
    assert_int_equal(hl_graph_count(g), MANY + 1);
    assert_int_equal(hl_sin(g, x), at[0]);
    assert_int_equal(hl_sin(g, at[1]), at[2]);
    CHECK_OK(ctx, hl_graph_verify(g));
    hl_graph_free(g);
    hl_context_free(ctx);
}

/* Neutral elements and axes that do not fit are named like everything else. */
static void test_silent_errors(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    (void)state;
    for (int n = 0; n < 6; n++) {
        hl_graph *g;
        CHECK_OK(ctx, hl_graph_create(ctx, &g));
        hl_node x = hl_input(g, "x", 2, (size_t[]){ 3, 4 });
        hl_node one = hl_broadcast(g, hl_const(g, 1), 1, (size_t[]){ 3 }),
                zero = hl_broadcast(g, hl_const(g, 0), 1, (size_t[]){ 3 });
        hl_node y = n == 0   ? hl_mul(g, x, one)
                    : n == 1 ? hl_div(g, x, one)
                    : n == 2 ? hl_add(g, zero, x)
                    : n == 3 ? hl_sub(g, x, zero)
                    : n == 4 ? hl_softmax(g, x, -3)
                             : hl_logsumexp(g, x, 2);
        assert_int_equal(y, HL_BAD);
        assert_int_equal(hl_graph_status(g), HL_ERR_SHAPE);
        assert_non_null(strstr(hl_context_message(ctx), n < 4 ? "do not broadcast" : "axis"));
        hl_graph_free(g);
    }
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_nodes),   cmocka_unit_test(test_sticky),  cmocka_unit_test(test_wrong_calls),
        cmocka_unit_test(test_other_graph), cmocka_unit_test(test_shapes),  cmocka_unit_test(test_leaves),
        cmocka_unit_test(test_equal_nodes), cmocka_unit_test(test_folding), cmocka_unit_test(test_copies),
        cmocka_unit_test(test_verify),      cmocka_unit_test(test_text),    cmocka_unit_test(test_silent_errors),
        cmocka_unit_test(test_many_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
