/* test_kernel.c - every kernel of every table that this machine runs, against plain loops and libm in wider precision.
 *
 * Besides values the tests check bits: a row's result may not depend on its lane, its panel or the number of panels.
 * Buffers are allocated at their exact size, off alignment, so that the address sanitizer sees any step outside. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hollow/random.h"
#include "kernel/kernel.h"

#define L HL_LANES

/* ---- Values of either precision. */

typedef struct buffer {
    const hl_kernels *k;
    size_t n;
    char *block;
    void *p;
} buffer;

static size_t size_of(const hl_kernels *k)
{
    return k->dtype == HL_F32 ? 4 : 8;
}

static double get(const buffer *b, size_t i)
{
    assert_true(i < b->n);
    return b->k->dtype == HL_F32 ? (double)((const float *)b->p)[i] : ((const double *)b->p)[i];
}

static void set(buffer *b, size_t i, double v)
{
    assert_true(i < b->n);
    if (b->k->dtype == HL_F32)
        ((float *)b->p)[i] = (float)v;
    else
        ((double *)b->p)[i] = v;
}

static uint64_t drawn;
static double uniform(void) /* in (-1, 1) */
{
    return 2 * hl_random_uniform(1, 0, drawn++) - 1;
}
static size_t below(size_t n)
{
    return (size_t)((uniform() + 1) / 2 * (double)n) % n;
}

static buffer make(const hl_kernels *k, size_t n)
{
    const size_t size = size_of(k);
    buffer b = { k, n, malloc((n + 1) * size), NULL };
    assert_non_null(b.block);
    b.p = b.block + size; /* aligned to one element, no better */
    for (size_t i = 0; i < n; i++)
        set(&b, i, uniform());
    return b;
}
static buffer copy_of(const buffer *b)
{
    buffer c = make(b->k, b->n);
    memcpy(c.p, b->p, b->n * size_of(b->k));
    return c;
}
static void drop(buffer *b)
{
    free(b->block);
}
static void *at(const buffer *b, size_t i)
{
    return (char *)b->p + i * size_of(b->k);
}
static int same_bits(const buffer *a, size_t i, const buffer *b, size_t j, size_t count)
{
    return memcmp(at(a, i), at(b, j), count * size_of(a->k)) == 0;
}

/* |a - b| small against the size of the terms that were summed; fails on NaN. */
static void check_near(const hl_kernels *k, double a, double b, double scale)
{
    const double eps = k->dtype == HL_F32 ? FLT_EPSILON : DBL_EPSILON;
    if (!(fabs(a - b) <= 16 * eps * (scale + 1)))
        fail_msg("%s: %.17g is not %.17g (scale %g)", k->isa, a, b, scale);
}

static void each_table(void (*test)(const hl_kernels *k))
{
    static const char *const isas[] = { "avx512", "avx2", "base" };
    for (size_t i = 0; i < 3; i++)
        for (int d = 0; d < 2; d++) {
            const hl_kernels *k = hl_kernels_pick(d ? HL_F64 : HL_F32, isas[i]);
            if (k) {
                assert_string_equal(k->isa, isas[i]);
                assert_int_equal(k->dtype, d ? HL_F64 : HL_F32);
                test(k);
            }
        }
}

static void test_pick(void **state)
{
    (void)state;
    assert_non_null(hl_kernels_pick(HL_F32, NULL));
    assert_non_null(hl_kernels_pick(HL_F64, NULL));
    assert_non_null(hl_kernels_pick(HL_F64, "base"));
    assert_null(hl_kernels_pick(HL_F32, "sse9"));
    assert_null(hl_kernels_pick((hl_dtype)7, NULL));
    assert_true(hl_gemm_w_scratch(3, 17) >= 3 * 16 * 32);
}

/* ---- Functions of one argument. */

static long double neg_l(long double x)
{
    return -x;
}
static long double sigmoid_l(long double x)
{
    return 1 / (1 + expl(-x));
}
static long double softplus_l(long double x)
{
    return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}
static long double swish_l(long double x)
{
    return x * sigmoid_l(x);
}
static long double swish_slope_l(long double x)
{
    return sigmoid_l(x) * (1 + x * sigmoid_l(-x));
}
static long double swish_curve_l(long double x)
{
    return sigmoid_l(x) * sigmoid_l(-x) * (2 + x * (sigmoid_l(-x) - sigmoid_l(x)));
}
static long double sign_l(long double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

/* Limits in units of the last place; `floor`: below it the error counts against it (in units of epsilon * floor). */
typedef struct function {
    int id;
    const char *name;
    long double (*exact)(long double);
    double lo, hi; /* range of the sweep in float */
    double ulp[2], floor;
    double stretch; /* the range in double is so much wider */
} function;
static const function functions[HL_UNARY_COUNT] = {
    { HL_UN_NEG, "neg", neg_l, -1e30, 1e30, { 0, 0 }, 0, 1 },
    { HL_UN_EXP, "exp", expl, -105, 88.7, { 2, 2 }, 0, 8 },
    { HL_UN_LOG, "log", logl, 1e-37, 1e38, { 2, 2 }, 0, 1 },
    { HL_UN_LOG1P, "log1p", log1pl, -1, 1e38, { 2.5, 2.5 }, 0, 1 },
    { HL_UN_EXPM1, "expm1", expm1l, -88, 88.7, { 2.5, 2.5 }, 0, 8 },
    { HL_UN_SIN, "sin", sinl, -3e4, 3e4, { 2, 2 }, 0.5, 1 },
    { HL_UN_COS, "cos", cosl, -3e4, 3e4, { 2, 2 }, 0.5, 1 },
    { HL_UN_TANH, "tanh", tanhl, -1e30, 1e30, { 5.5, 3 }, 0, 1 },
    { HL_UN_SIGMOID, "sigmoid", sigmoid_l, -86, 1e30, { 3, 3 }, 0, 8 },
    { HL_UN_SOFTPLUS, "softplus", softplus_l, -86, 1e30, { 3, 3 }, 0, 8 },
    { HL_UN_ERF, "erf", erfl, -1e30, 1e30, { 3, 2 }, 0, 1 },
    { HL_UN_SQRT, "sqrt", sqrtl, 0, 1e38, { 0.5001, 0.5001 }, 0, 1 },
    { HL_UN_ABS, "abs", fabsl, -1e30, 1e30, { 0, 0 }, 0, 1 },
    { HL_UN_SIGN, "sign", sign_l, -1e30, 1e30, { 0, 0 }, 0, 1 },
    { HL_UN_SWISH, "swish", swish_l, -86, 1e30, { 3.5, 3.5 }, 0.25, 8 },
    { HL_UN_SWISH_SLOPE, "swish'", swish_slope_l, -86, 1e4, { 12, 26 }, 0.5, 8 },
    { HL_UN_SWISH_CURVE, "swish''", swish_curve_l, -86, 1e4, { 24, 52 }, 0.5, 8 },
};

static double error_ulp(const hl_kernels *k, double got, long double want, double floor_value)
{
    const int digits = k->dtype == HL_F32 ? FLT_MANT_DIG : DBL_MANT_DIG;
    const long double smallest = k->dtype == HL_F32 ? (long double)FLT_MIN : (long double)DBL_MIN;
    long double size = fabsl(want);
    if (size < floor_value)
        size = floor_value;
    if (size < smallest)
        size = smallest;
    int exponent;
    frexpl(size, &exponent);
    return (double)(fabsl((long double)got - want) / ldexpl(1, exponent - digits));
}

/* Points of the sweep: dense around 0 and in the middle, sparse towards both ends. */
static double sweep_point(const hl_kernels *k, const function *f, size_t i)
{
    const double stretch = k->dtype == HL_F64 ? f->stretch : 1, lo = f->lo * stretch, hi = f->hi * stretch;
    double v;
    switch (i % 4) {
    case 0:
        v = uniform() * 2;
        break;
    case 1:
        v = uniform() * 20;
        break;
    case 2:
        v = uniform() * 100;
        break;
    default:
        v = pow(10, uniform() * 37) * (uniform() < 0 ? -1 : 1);
        break;
    }
    if (i % 64 == 5)
        v = lo + (hi - lo) * (uniform() + 1) / 2;
    if (!(v >= lo && v <= hi))
        v = fabs(v) <= hi && fabs(v) >= lo ? fabs(v) : lo + (hi < 1e4 ? hi - lo : 3) * (uniform() + 1) / 2;
    return v;
}

static void unary_accuracy(const hl_kernels *k)
{
    const size_t entries = 2048;
    for (int f = 0; f < HL_UNARY_COUNT; f++) {
        assert_int_equal(functions[f].id, f);
        double worst = 0, worst_at = 0;
        for (int round = 0; round < 8; round++) {
            buffer x = make(k, entries * L), y = make(k, entries * L);
            for (size_t i = 0; i < x.n; i++)
                set(&x, i, sweep_point(k, &functions[f], i));
            k->unary[f](entries, x.p, y.p);
            for (size_t i = 0; i < x.n; i++) {
                double e = error_ulp(k, get(&y, i), functions[f].exact((long double)get(&x, i)), functions[f].floor);
                if (!(e <= worst)) {
                    worst = e;
                    worst_at = get(&x, i);
                }
            }
            drop(&x), drop(&y);
        }
        if (getenv("HL_TEST_VERBOSE"))
            printf("%-6s %s %-8s %.2f ulp at %.9g\n", k->isa, k->dtype == HL_F32 ? "f32" : "f64", functions[f].name,
                   worst, worst_at);
        if (!(worst <= functions[f].ulp[k->dtype]))
            fail_msg("%s %s: error %g ulp at %.17g", k->isa, functions[f].name, worst, worst_at);
    }
}
static void test_unary_accuracy(void **state)
{
    (void)state, each_table(unary_accuracy);
}

#define N_ NAN
#define I_ INFINITY
/* {function, x, result}; both infinities, zeros, poles, subnormals, saturation. */
static const struct {
    int f;
    double x, y;
} specials[] = {
    { HL_UN_EXP, I_, I_ },      { HL_UN_EXP, -I_, 0 },       { HL_UN_EXP, 1e30, I_ },      { HL_UN_EXP, -1e30, 0 },
    { HL_UN_EXP, 0, 1 },        { HL_UN_EXP, -0.0, 1 },      { HL_UN_EXP, 800, I_ },       { HL_UN_EXP, -800, 0 },
    { HL_UN_LOG, 0, -I_ },      { HL_UN_LOG, -0.0, -I_ },    { HL_UN_LOG, -1, N_ },        { HL_UN_LOG, -I_, N_ },
    { HL_UN_LOG, I_, I_ },      { HL_UN_LOG, 1, 0 },         { HL_UN_LOG, -1e-39, N_ },    { HL_UN_LOG1P, -1, -I_ },
    { HL_UN_LOG1P, -1.5, N_ },  { HL_UN_LOG1P, -I_, N_ },    { HL_UN_LOG1P, I_, I_ },      { HL_UN_LOG1P, 0, 0 },
    { HL_UN_EXPM1, I_, I_ },    { HL_UN_EXPM1, -I_, -1 },    { HL_UN_EXPM1, 0, 0 },        { HL_UN_EXPM1, 1e5, I_ },
    { HL_UN_EXPM1, -1e5, -1 },  { HL_UN_SIN, 0, 0 },         { HL_UN_SIN, I_, N_ },        { HL_UN_COS, 0, 1 },
    { HL_UN_COS, -I_, N_ },     { HL_UN_TANH, 1e30, 1 },     { HL_UN_TANH, -1e30, -1 },    { HL_UN_TANH, I_, 1 },
    { HL_UN_TANH, -I_, -1 },    { HL_UN_TANH, 0, 0 },        { HL_UN_SIGMOID, I_, 1 },     { HL_UN_SIGMOID, -I_, 0 },
    { HL_UN_SIGMOID, 0, 0.5 },  { HL_UN_SIGMOID, 1e6, 1 },   { HL_UN_SIGMOID, -1e6, 0 },   { HL_UN_SOFTPLUS, I_, I_ },
    { HL_UN_SOFTPLUS, -I_, 0 }, { HL_UN_SOFTPLUS, -1e6, 0 }, { HL_UN_SOFTPLUS, 1e6, 1e6 }, { HL_UN_ERF, I_, 1 },
    { HL_UN_ERF, -I_, -1 },     { HL_UN_ERF, 0, 0 },         { HL_UN_ERF, 30, 1 },         { HL_UN_SQRT, -1, N_ },
    { HL_UN_SQRT, 0, 0 },       { HL_UN_SQRT, I_, I_ },      { HL_UN_ABS, -0.0, 0 },       { HL_UN_ABS, -I_, I_ },
    { HL_UN_SIGN, 0, 0 },       { HL_UN_SIGN, -0.0, 0 },     { HL_UN_SIGN, -I_, -1 },      { HL_UN_SIGN, I_, 1 },
    { HL_UN_NEG, I_, -I_ },     { HL_UN_NEG, 0, 0 },         { HL_UN_SWISH, -1e6, 0 },     { HL_UN_SWISH, 1e6, 1e6 },
};

static void unary_specials(const hl_kernels *k)
{
    buffer x = make(k, L), y = make(k, L);
    for (size_t i = 0; i < sizeof(specials) / sizeof(specials[0]); i++) {
        const size_t lane = i % L;
        set(&x, lane, specials[i].x);
        k->unary[specials[i].f](1, x.p, y.p);
        const double got = get(&y, lane), want = specials[i].y;
        if (!(got == want || (isnan(got) && isnan(want))))
            fail_msg("%s %s(%g) = %g, not %g", k->isa, functions[specials[i].f].name, specials[i].x, got, want);
        set(&x, lane, 0.5);
    }
    /* NaN spreads, but only in its lane. */
    for (int f = 0; f < HL_UNARY_COUNT; f++)
        for (size_t lane = 0; lane < L; lane++) {
            set(&x, lane, NAN);
            k->unary[f](1, x.p, y.p);
            for (size_t i = 0; i < L; i++)
                if (!isnan(get(&y, i)) != (i != lane))
                    fail_msg("%s %s: NaN in lane %zu, lane %zu is %g", k->isa, functions[f].name, lane, i, get(&y, i));
            set(&x, lane, 0.25);
        }
    /* Subnormals have logarithms; |tanh| and erf never exceed 1. */
    const double tiny = k->dtype == HL_F32 ? 1e-42 : 1e-315;
    set(&x, 0, tiny);
    const double stored = get(&x, 0);
    k->unary[HL_UN_LOG](1, x.p, y.p);
    assert_true(error_ulp(k, get(&y, 0), logl((long double)stored), 0) <= 2);
    buffer wide = make(k, 4096 * L), out = make(k, 4096 * L);
    for (size_t i = 0; i < wide.n; i++)
        set(&wide, i, uniform() * 12);
    for (int f = 0; f < 2; f++) {
        k->unary[f ? HL_UN_ERF : HL_UN_TANH](4096, wide.p, out.p);
        for (size_t i = 0; i < out.n; i++)
            assert_true(fabs(get(&out, i)) <= 1);
    }
    drop(&x), drop(&y), drop(&wide), drop(&out);
}
static void test_unary_specials(void **state)
{
    (void)state, each_table(unary_specials);
}

/* The same value in another lane, and in place, gives the same bits. */
static void unary_lanes(const hl_kernels *k)
{
    const size_t entries = 33;
    for (int f = 0; f < HL_UNARY_COUNT; f++) {
        buffer x = make(k, entries * L), y = make(k, entries * L), x2 = make(k, entries * L);
        for (size_t i = 0; i < x.n; i++)
            set(&x, i, sweep_point(k, &functions[f], i));
        for (size_t i = 0; i < x.n; i++)
            memcpy(at(&x2, (i * 5 + 3) % x.n), at(&x, i), size_of(k)); /* 5 and 33 * 16 share no factor */
        k->unary[f](entries, x.p, y.p);
        k->unary[f](entries, x2.p, x2.p);
        for (size_t i = 0; i < x.n; i++)
            assert_true(same_bits(&y, i, &x2, (i * 5 + 3) % x.n, 1));
        drop(&x), drop(&y), drop(&x2);
    }
}
static void test_unary_lanes(void **state)
{
    (void)state, each_table(unary_lanes);
}

/* ---- Functions of two and three arguments. */

static double binary_exact(int f, double a, double b)
{
    switch (f) {
    case HL_BI_ADD:
        return a + b;
    case HL_BI_SUB:
        return a - b;
    case HL_BI_MUL:
        return a * b;
    case HL_BI_DIV:
        return a / b;
    case HL_BI_POW:
        return pow(a, b);
    case HL_BI_MIN:
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case HL_BI_MAX:
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    case HL_BI_SLOPE:
        return a * (1 - b * b);
    default:
        return a < b;
    }
}
static double ternary_exact(int f, double a, double b, double c)
{
    switch (f) {
    case HL_TE_SELECT:
        return a != 0 ? b : c;
    case HL_TE_MULADD:
        return a * b + c;
    case HL_TE_MULSUB:
        return a * b - c;
    case HL_TE_MULMUL:
        return a * b * c;
    default:
        return c - a * b;
    }
}

/* Argument kinds: full, one entry for all, scalar per entry, one scalar. */
static hl_arg argument(const buffer *b, int kind)
{
    static const int32_t steps[] = { L, 0, 1, 0 };
    return (hl_arg){ b->p, steps[kind], kind >= 2 };
}
static buffer make_argument(const hl_kernels *k, int kind, size_t entries)
{
    buffer b = make(k, kind == 0 ? entries * L : kind == 1 ? L : kind == 2 ? entries : 1);
    for (size_t i = 0; i < b.n; i++)
        if (below(8) == 0)
            set(&b, i, (double[]){ NAN, INFINITY, -INFINITY, 0, -0.0, 1, -1, 0.5 }[below(8)]);
    return b;
}
static double element(const buffer *b, int kind, size_t i)
{
    return get(b, kind == 0 ? i : kind == 1 ? i % L : kind == 2 ? i / L : 0);
}
static void check_same(const hl_kernels *k, double got, double want, double scale, const char *what, int f)
{
    if (isnan(want) ? isnan(got) : isinf(want) || want == 0 ? fabs(got - want) <= 1e-6 || got == want : 0)
        return;
    const double eps = k->dtype == HL_F32 ? FLT_EPSILON : DBL_EPSILON;
    if (!(fabs(got - want) <= 2 * eps * (fabs(want) + scale)))
        fail_msg("%s %s %d: %g is not %g", k->isa, what, f, got, want);
}

static void binary_all(const hl_kernels *k)
{
    const size_t entries = 37;
    for (int f = 0; f < HL_BINARY_COUNT; f++)
        for (int ka = 0; ka < 4; ka++)
            for (int kb = 0; kb < 4; kb++) {
                buffer a = make_argument(k, ka, entries), b = make_argument(k, kb, entries), y = make(k, entries * L);
                k->binary[f](entries, argument(&a, ka), argument(&b, kb), y.p);
                for (size_t i = 0; i < y.n; i++)
                    check_same(k, get(&y, i), binary_exact(f, element(&a, ka, i), element(&b, kb, i)), f == HL_BI_SLOPE,
                               "binary", f);
                if (ka == 0) { /* in place */
                    k->binary[f](entries, argument(&a, ka), argument(&b, kb), a.p);
                    assert_true(same_bits(&a, 0, &y, 0, y.n));
                } else if (kb == 0) {
                    k->binary[f](entries, argument(&a, ka), argument(&b, kb), b.p);
                    assert_true(same_bits(&b, 0, &y, 0, y.n));
                }
                drop(&a), drop(&b), drop(&y);
            }
}
static void test_binary(void **state)
{
    (void)state, each_table(binary_all);
}

/* Swish and its derivatives in one pass: the bits of the functions alone, for every choice of results and kind of factor, in place of x
 * and of the factor. */
static void swish_all(const hl_kernels *k)
{
    const size_t entries = 37;
    for (int wanted = 1; wanted < 8; wanted++)
        for (int kind = -1; kind < 4; kind++)
            for (int place = -1; place < 6; place++) { /* the result that overwrites x, or the factor */
                if (place >= 0 && (!(wanted >> place % 3 & 1) || (place >= 3 && kind != 0)))
                    continue;
                buffer x = make(k, entries * L), by = make(k, kind <= 0 ? entries * L : kind == 1 ? L : entries);
                buffer want[3], got[3];
                void *to[3] = { NULL };
                for (size_t i = 0; i < x.n; i++)
                    set(&x, i, 10 * get(&x, i));
                for (int r = 0; r < 3; r++) {
                    want[r] = make(k, entries * L);
                    got[r] = make(k, entries * L);
                    k->unary[HL_UN_SWISH + r](entries, x.p, want[r].p);
                    if (r == 1 && kind >= 0)
                        k->binary[HL_BI_MUL](entries, (hl_arg){ want[r].p, L, 0 }, argument(&by, kind), want[r].p);
                    if (wanted >> r & 1)
                        to[r] = place == r ? x.p : place == r + 3 ? by.p : got[r].p;
                }
                k->swish(entries, x.p, kind < 0 ? (hl_arg){ NULL, 0, 0 } : argument(&by, kind), to);
                for (int r = 0; r < 3; r++) {
                    if (to[r])
                        assert_memory_equal(to[r], want[r].p, entries * L * size_of(k));
                    drop(&want[r]), drop(&got[r]);
                }
                drop(&x), drop(&by);
            }
}
/* tanh and a product with its slope in one pass: the bits of both alone. */
static void tanh_all(const hl_kernels *k)
{
    const size_t entries = 37;
    for (int kind = 0; kind < 4; kind++)
        for (int place = 0; place < (kind == 0 ? 4 : 3);
             place++) { /* x is y, x is the slope, the factor is the slope */
            buffer x = make(k, entries * L), by = make(k, kind == 0 ? entries * L : kind == 1 ? L : entries);
            buffer y = make(k, entries * L), slope = make(k, entries * L);
            buffer got_y = make(k, entries * L), got_slope = make(k, entries * L);
            k->unary[HL_UN_TANH](entries, x.p, y.p);
            k->binary[HL_BI_SLOPE](entries, argument(&by, kind), (hl_arg){ y.p, L, 0 }, slope.p);
            void *to_y = place == 1 ? x.p : got_y.p, *to_slope = place == 2 ? x.p : place == 3 ? by.p : got_slope.p;
            k->tanh(entries, x.p, argument(&by, kind), to_y, to_slope);
            assert_memory_equal(to_y, y.p, entries * L * size_of(k));
            assert_memory_equal(to_slope, slope.p, entries * L * size_of(k));
            drop(&x), drop(&by), drop(&y), drop(&slope), drop(&got_y), drop(&got_slope);
        }
}
static void swish_far(const hl_kernels *k)
{
    buffer x = make(k, L), y = make(k, L);
    for (int r = 1; r < 3; r++)
        for (int sign = -1; sign < 2; sign++) {
            set(&x, 3, sign * 1e6);
            k->unary[HL_UN_SWISH + r](1, x.p, y.p);
            assert_true(get(&y, 3) == (sign == 0 ? 0.5 : r == 1 && sign > 0));
        }
    drop(&x), drop(&y);
}
static void test_swish(void **state)
{
    (void)state, each_table(swish_all), each_table(swish_far), each_table(tanh_all);
}

static void ternary_all(const hl_kernels *k)
{
    const size_t entries = 19;
    for (int f = 0; f < HL_TERNARY_COUNT; f++)
        for (int kinds = 0; kinds < 64; kinds++) {
            const int ka = kinds % 4, kb = kinds / 4 % 4, kc = kinds / 16;
            buffer a = make_argument(k, ka, entries), b = make_argument(k, kb, entries),
                   c = make_argument(k, kc, entries);
            buffer y = make(k, entries * L);
            k->ternary[f](entries, argument(&a, ka), argument(&b, kb), argument(&c, kc), y.p);
            for (size_t i = 0; i < y.n; i++)
                check_same(k, get(&y, i), ternary_exact(f, element(&a, ka, i), element(&b, kb, i), element(&c, kc, i)),
                           1, "ternary", f);
            buffer *target = ka == 0 ? &a : kb == 0 ? &b : kc == 0 ? &c : NULL;
            if (target) {
                k->ternary[f](entries, argument(&a, ka), argument(&b, kb), argument(&c, kc), target->p);
                assert_true(same_bits(target, 0, &y, 0, y.n));
            }
            drop(&a), drop(&b), drop(&c), drop(&y);
        }
}
static void test_ternary(void **state)
{
    (void)state, each_table(ternary_all);
}

/* ---- Matrix products. */

enum { DENSE, LOWER, UPPER, BAND, HOLES, MASKS };

/* A mask with its own arrays; tlo and thi are the hulls over the units. */
typedef struct test_mask {
    hl_mask m;
    uint32_t *lo, *hi, *tlo, *thi;
} test_mask;

static test_mask make_mask(int kind, size_t out, size_t in)
{
    test_mask t;
    t.lo = malloc(out * 4), t.hi = malloc(out * 4), t.tlo = malloc(in * 4), t.thi = malloc(in * 4);
    for (size_t n = 0; n < out; n++) {
        size_t lo = 0, hi = in, d = (n * in + in / 2) / out;
        switch (kind) {
        case LOWER:
            hi = d;
            break;
        case UPPER:
            lo = d;
            break;
        case BAND:
            lo = d > 2 ? d - 2 : 0, hi = d + 5 < in ? d + 5 : in;
            break;
        case HOLES:
            n % 3 == 1  ? (lo = hi = in)
            : n % 7 < 2 ? (lo = hi = d / 2)
                        : (lo = below(in), hi = lo + below(in - lo + 1));
            break;
        default:
            break;
        }
        t.lo[n] = (uint32_t)lo, t.hi[n] = (uint32_t)hi;
    }
    for (size_t k = 0; k < in; k++) {
        size_t lo = out, hi = 0;
        for (size_t n = 0; n < out; n++)
            if (t.lo[n] <= k && k < t.hi[n]) {
                lo = n < lo ? n : lo;
                hi = n + 1;
            }
        t.tlo[k] = (uint32_t)(lo < hi ? lo : 0), t.thi[k] = (uint32_t)hi;
    }
    t.m = (hl_mask){ out, in, t.lo, t.hi, t.tlo, t.thi };
    return t;
}
static void drop_mask(test_mask *t)
{
    free(t->lo), free(t->hi), free(t->tlo), free(t->thi);
}
static int sees(const test_mask *t, size_t n, size_t k)
{
    return t->lo[n] <= k && k < t->hi[n];
}

enum { INIT_NONE, INIT_PANELS, INIT_ENTRY, INIT_UNITS, INIT_ONE, INIT_SELF, INIT_SHARED, INITS };

/* One product, forward or transposed, of the given shape; checks values, bits between panels, and the gaps. */
static void product_case(const hl_kernels *k, int transposed, size_t out, size_t in, size_t panels, int mask_kind,
                         int init)
{
    const size_t units = transposed ? in : out, depth = transposed ? out : in;
    const size_t ldw = in + below(3), gap = below(2) * 5;
    const size_t x_panel = depth * L + gap, y_panel = units * L + gap;
    test_mask mask = make_mask(mask_kind, out, in);
    buffer w = make(k, out * ldw), x = make(k, panels * x_panel), y = make(k, panels * y_panel), y0 = copy_of(&y);
    for (size_t n = 0; n < out; n++)
        for (size_t i = 0; i < in; i++)
            if (!sees(&mask, n, i))
                set(&w, n * ldw + i, 0);
    buffer b = make(k, init == INIT_PANELS ? panels * y_panel : init == INIT_SHARED ? y_panel : units + L);
    hl_gemm g = { .panels = panels,
                  .out = out,
                  .in = in,
                  .w = w.p,
                  .ldw = ldw,
                  .mask = mask_kind ? &mask.m : NULL,
                  .x = x.p,
                  .x_panel = x_panel,
                  .y = y.p,
                  .y_panel = y_panel };
    switch (init) {
    case INIT_PANELS:
        g.init = (hl_arg){ b.p, L, 0 }, g.init_panel = y_panel;
        break;
    case INIT_ENTRY:
        g.init = (hl_arg){ b.p, 0, 0 };
        break;
    case INIT_UNITS:
        g.init = (hl_arg){ b.p, 1, 1 };
        break;
    case INIT_ONE:
        g.init = (hl_arg){ b.p, 0, 1 };
        break;
    case INIT_SELF:
        g.init = (hl_arg){ y.p, L, 0 }, g.init_panel = y_panel;
        break;
    case INIT_SHARED:
        g.init = (hl_arg){ b.p, L, 0 };
        break;
    default:
        break;
    }
    (transposed ? k->gemm_t : k->gemm)(&g);
    for (size_t p = 0; p < panels; p++) {
        for (size_t u = 0; u < units; u++)
            for (size_t lane = 0; lane < L; lane++) {
                double s = 0;
                switch (init) {
                case INIT_PANELS:
                    s = get(&b, p * y_panel + u * L + lane);
                    break;
                case INIT_ENTRY:
                    s = get(&b, lane);
                    break;
                case INIT_UNITS:
                    s = get(&b, u);
                    break;
                case INIT_ONE:
                    s = get(&b, 0);
                    break;
                case INIT_SELF:
                    s = get(&y0, p * y_panel + u * L + lane);
                    break;
                case INIT_SHARED:
                    s = get(&b, u * L + lane);
                    break;
                default:
                    break;
                }
                for (size_t d = 0; d < depth; d++)
                    s += get(&w, transposed ? d * ldw + u : u * ldw + d) * get(&x, p * x_panel + d * L + lane);
                check_near(k, get(&y, p * y_panel + u * L + lane), s, sqrt((double)depth));
            }
        for (size_t i = units * L; i < y_panel; i++) /* the gap is untouched */
            assert_true(same_bits(&y, p * y_panel + i, &y0, p * y_panel + i, 1));
    }
    if (panels > 1) { /* the last panel alone: the same bits */
        const size_t p = panels - 1;
        buffer one = copy_of(&y0);
        hl_gemm h = g;
        h.panels = 1;
        h.x = at(&x, p * x_panel);
        h.y = at(&one, p * y_panel);
        if (init == INIT_PANELS)
            h.init.p = at(&b, p * y_panel);
        if (init == INIT_SELF)
            h.init.p = h.y;
        (transposed ? k->gemm_t : k->gemm)(&h);
        assert_true(same_bits(&one, p * y_panel, &y, p * y_panel, units * L));
        drop(&one);
    }
    { /* the last panels have 8 rows: the same bits in their lanes, and again in the others */
        buffer half = copy_of(&y0);
        hl_gemm h = g;
        h.half = 1 + below(panels);
        h.y = half.p;
        if (init == INIT_SELF)
            h.init.p = h.y;
        (transposed ? k->gemm_t : k->gemm)(&h);
        for (size_t p = 0; p < panels; p++)
            for (size_t i = 0; i < units * L; i++)
                assert_true(same_bits(&half, p * y_panel + i, &y,
                                      p * y_panel + (p < panels - h.half ? i : i / L * L + i % (L / 2)), 1));
        for (size_t p = 0; p < panels; p++)
            for (size_t i = units * L; i < y_panel; i++)
                assert_true(same_bits(&half, p * y_panel + i, &y0, p * y_panel + i, 1));
        drop(&half);
    }
    drop(&w), drop(&x), drop(&y), drop(&y0), drop(&b), drop_mask(&mask);
}

static const size_t sizes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 16, 17, 43, 64, 100 };
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

static void products(const hl_kernels *k)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        for (size_t i = 0; i < SIZES; i++)
            for (size_t j = 0; j < SIZES; j++)
                for (int mask = 0; mask < MASKS; mask++)
                    product_case(k, transposed, sizes[i], sizes[j], 1 + below(3), mask, (int)below(INITS));
        for (size_t panels = 1; panels <= 9; panels++)
            for (int init = 0; init < INITS; init++)
                product_case(k, transposed, 17, 13, panels, (int)below(MASKS), init);
        for (int mask = 0; mask < MASKS; mask++) { /* several depth blocks and unit groups */
            product_case(k, transposed, 130, 600, 3, mask, INIT_UNITS);
            product_case(k, transposed, 600, 130, 2, mask, INIT_SELF);
            product_case(k, transposed, 1, 700, 3, mask, INIT_NONE);
            product_case(k, transposed, 700, 2, 3, mask, INIT_PANELS);
        }
        product_case(k, transposed, 5, 0, 2, DENSE, INIT_UNITS);
        product_case(k, transposed, 0, 5, 2, DENSE, INIT_UNITS);
        product_case(k, transposed, 0, 3, 2, DENSE, INIT_NONE);
    }
}
static void test_products(void **state)
{
    (void)state, each_table(products);
}

/* Every row the same: every lane of every panel gives the same bits. */
static void product_lanes(const hl_kernels *k)
{
    const size_t out = 43, in = 300, panels = 5;
    buffer w = make(k, out * in), row = make(k, in), x = make(k, panels * in * L), y = make(k, panels * in * L);
    for (size_t i = 0; i < x.n; i++)
        memcpy(at(&x, i), at(&row, i / L % in), size_of(k));
    hl_gemm g = { .panels = panels,
                  .out = out,
                  .in = in,
                  .w = w.p,
                  .ldw = in,
                  .x = x.p,
                  .x_panel = in * L,
                  .y = y.p,
                  .y_panel = in * L };
    for (int transposed = 0; transposed < 2; transposed++) {
        (transposed ? k->gemm_t : k->gemm)(&g);
        for (size_t p = 0; p < panels; p++)
            for (size_t i = 0; i < (transposed ? in : out) * L; i++)
                assert_true(same_bits(&y, p * in * L + i, &y, i / L * L, 1));
    }
    drop(&w), drop(&row), drop(&x), drop(&y);
}
static void test_product_lanes(void **state)
{
    (void)state, each_table(product_lanes);
}

static void gradient_case(const hl_kernels *k, size_t out, size_t in, size_t panels, size_t full, size_t tail,
                          int mask_kind, bool add)
{
    const size_t ldw = in + below(3), gap = below(2) * 7, x_panel = in * L + gap, y_panel = out * L + gap;
    test_mask mask = make_mask(mask_kind, out, in);
    buffer x = make(k, panels * x_panel), y = make(k, panels * y_panel), gw = make(k, out * ldw), before = copy_of(&gw);
    buffer parts = copy_of(&gw), scratch = make(k, hl_gemm_w_scratch(panels, in));
    for (size_t p = full; p < panels; p++) /* lanes that do not count may hold anything */
        for (size_t i = 0; i < x_panel || i < y_panel; i++)
            if (i % L >= tail) {
                if (i < in * L)
                    set(&x, p * x_panel + i, NAN);
                if (i < out * L)
                    set(&y, p * y_panel + i, i % 2 ? NAN : INFINITY);
            }
    hl_gemm_w g = { .panels = panels,
                    .full = full,
                    .tail = tail,
                    .out = out,
                    .in = in,
                    .out_lo = 0,
                    .out_hi = out,
                    .y = y.p,
                    .y_panel = y_panel,
                    .x = x.p,
                    .x_panel = x_panel,
                    .mask = mask_kind ? &mask.m : NULL,
                    .gw = gw.p,
                    .ldw = ldw,
                    .add = add,
                    .scratch = scratch.p };
    k->gemm_w(&g);
    for (size_t n = 0; n < out; n++)
        for (size_t i = 0; i < ldw; i++) {
            if (i >= in || !sees(&mask, n, i)) {
                assert_true(same_bits(&gw, n * ldw + i, &before, n * ldw + i, 1));
                continue;
            }
            double s = add ? get(&before, n * ldw + i) : 0;
            for (size_t p = 0; p < panels; p++)
                for (size_t lane = 0; lane < (p < full ? L : tail); lane++)
                    s += get(&y, p * y_panel + n * L + lane) * get(&x, p * x_panel + i * L + lane);
            check_near(k, get(&gw, n * ldw + i), s, sqrt((double)panels * L));
        }
    g.gw = parts.p; /* in ranges of units: the same bits */
    for (size_t lo = 0; lo < out; lo = g.out_hi) {
        g.out_lo = lo;
        g.out_hi = lo + 1 + below(out - lo);
        memset(scratch.p, 0xff, scratch.n * size_of(k));
        k->gemm_w(&g);
    }
    assert_true(same_bits(&parts, 0, &gw, 0, gw.n));
    drop(&x), drop(&y), drop(&gw), drop(&before), drop(&parts), drop(&scratch), drop_mask(&mask);
}

static void gradients(const hl_kernels *k)
{
    for (size_t i = 0; i < SIZES; i++)
        for (size_t j = 0; j < SIZES; j++)
            for (int mask = 0; mask < MASKS; mask++) {
                const size_t panels = 1 + below(3);
                gradient_case(k, sizes[i], sizes[j], panels, below(panels + 1), below(17), mask, below(2));
            }
    for (size_t panels = 1; panels <= 9; panels++)
        for (size_t tail = 0; tail <= 16; tail++) {
            gradient_case(k, 13, 19, panels, panels - 1, tail, DENSE, tail % 2);
            gradient_case(k, 7, 33, panels, panels, tail, LOWER, tail % 2);
        }
    for (int mask = 0; mask < MASKS; mask++)
        gradient_case(k, 130, 150, 5, 4, 3, mask, mask % 2);
    gradient_case(k, 3, 0, 2, 2, 0, DENSE, false);
    gradient_case(k, 3, 5, 0, 0, 0, DENSE, false);
}
static void test_gradients(void **state)
{
    (void)state, each_table(gradients);
}

/* ---- The rest. */

static void lane_sums(const hl_kernels *k)
{
    for (size_t panels = 0; panels <= 4; panels++)
        for (size_t tail = 0; tail <= 16; tail++) {
            const size_t n = 7, full = below(panels + 1), pitch = n * L + 3;
            buffer x = make(k, panels * pitch), y = make(k, n), before = copy_of(&y);
            for (size_t i = full * pitch; i < x.n; i++)
                if (i % pitch % L >= tail)
                    set(&x, i, NAN);
            k->lane_sum(n, panels, full, tail, x.p, pitch, y.p, tail % 2);
            for (size_t e = 0; e < n; e++) {
                double s = tail % 2 ? get(&before, e) : 0;
                for (size_t p = 0; p < panels; p++)
                    for (size_t lane = 0; lane < (p < full ? L : tail); lane++)
                        s += get(&x, p * pitch + e * L + lane);
                check_near(k, get(&y, e), s, 8);
            }
            drop(&x), drop(&y), drop(&before);
        }
}
static void test_lane_sum(void **state)
{
    (void)state, each_table(lane_sums);
}

static void lane_matmul_case(const hl_kernels *k, size_t m, size_t n, size_t kk, size_t lanes)
{
    const bool ta = below(2), tb = below(2);
    const size_t ai = ta ? 1 : kk, ak = ta ? m : 1, bk = tb ? 1 : n, bj = tb ? kk : 1;
    buffer a = make(k, m * kk * lanes), b = make(k, kk * n * lanes), c = make(k, m * n * lanes);
    k->lane_matmul(m, n, kk, lanes, a.p, ai, ak, b.p, bk, bj, c.p);
    for (size_t i = 0; i < c.n; i++) {
        const size_t lane = i % lanes, col = i / lanes % n, row = i / lanes / n;
        double s = 0;
        for (size_t q = 0; q < kk; q++)
            s += get(&a, (row * ai + q * ak) * lanes + lane) * get(&b, (q * bk + col * bj) * lanes + lane);
        check_near(k, get(&c, i), s, 2);
    }
    drop(&a), drop(&b), drop(&c);
}
static void lane_matmuls(const hl_kernels *k)
{
    for (size_t m = 1; m <= 5; m++)
        for (size_t n = 1; n <= 9; n++)
            for (size_t kk = 0; kk <= 5; kk++) {
                lane_matmul_case(k, m, n, kk, L);
                lane_matmul_case(k, m, n, kk, 1);
            }
}
static void test_lane_matmul(void **state)
{
    (void)state, each_table(lane_matmuls);
}

static void rows_and_panels(const hl_kernels *k)
{
    for (size_t rows = 1; rows <= L; rows++)
        for (size_t n = 0; n <= 19; n++) {
            const size_t pitch = n + below(4);
            buffer x = make(k, rows * pitch), y = make(k, n * L), back = make(k, rows * pitch), before = copy_of(&back);
            /* The last row may end at its last value: give the kernels no more than that. */
            k->rows_to_panel(rows, n, x.p, pitch, y.p);
            for (size_t i = 0; i < n; i++)
                for (size_t lane = 0; lane < L; lane++)
                    assert_true(same_bits(&y, i * L + lane, &x, (lane < rows ? lane : 0) * pitch + i, 1));
            k->panel_to_rows(rows, n, y.p, back.p, pitch);
            for (size_t r = 0; r < rows; r++)
                for (size_t i = 0; i < pitch; i++)
                    assert_true(same_bits(&back, r * pitch + i, i < n ? &x : &before, r * pitch + i, 1));
            drop(&x), drop(&y), drop(&back), drop(&before);
        }
}
static void test_rows_and_panels(void **state)
{
    (void)state, each_table(rows_and_panels);
}

/* A convolution, its transpose and its gradient, by the definition: every (output, tap) pair in turn. */
static void conv_case(const hl_kernels *k, hl_conv_geometry c, size_t panels, size_t full, size_t tail, bool add)
{
    const size_t taps = c.kernel_height * c.kernel_width, l = c.lanes;
    const size_t x_panel = c.channels * c.height * c.width * l, y_panel = c.out * c.out_height * c.out_width * l;
    buffer x = make(k, panels * x_panel), y = make(k, panels * y_panel), w = make(k, c.out * c.channels * taps);
    buffer got_y = make(k, panels * y_panel), got_x = make(k, panels * x_panel), got_w = copy_of(&w);
    buffer one_y = make(k, y_panel), one_x = make(k, x_panel);
    int32_t *exists = malloc(taps * sizeof(*exists));
    for (size_t t = 0; t < taps; t++)
        exists[t] = below(4) != 0;
    c.taps = below(2) ? exists : NULL;
    for (size_t i = 0; c.taps && i < w.n; i++)
        if (!exists[i % taps])
            set(&w, i, NAN); /* never read */
    double *want_y = calloc(y_panel + 1, 8), *want_x = calloc(x_panel + 1, 8), *want_w = calloc(w.n + 1, 8);
    for (size_t o = 0; o < c.out; o++)
        for (size_t ch = 0; ch < c.channels; ch++)
            for (size_t t = 0; t < taps; t++)
                for (size_t i = 0; i < c.out_height; i++)
                    for (size_t j = 0; j < c.out_width; j++) {
                        const size_t r = i * c.stride[0] + t / c.kernel_width, s = j * c.stride[1] + t % c.kernel_width;
                        if (r < c.pad[0] || r - c.pad[0] >= c.height || s < c.pad[1] || s - c.pad[1] >= c.width ||
                            (c.taps && !exists[t]))
                            continue;
                        const size_t xi = ((ch * c.height + r - c.pad[0]) * c.width + s - c.pad[1]) * l;
                        const size_t yi = ((o * c.out_height + i) * c.out_width + j) * l,
                                     wi = (o * c.channels + ch) * taps + t;
                        for (size_t lane = 0; lane < l; lane++) {
                            want_y[yi + lane] += get(&w, wi) * get(&x, xi + lane);
                            want_x[xi + lane] += get(&w, wi) * get(&y, yi + lane);
                            for (size_t p = 0; p < panels; p++)
                                if (l == 1 || p < full || lane < tail)
                                    want_w[wi] += get(&x, p * x_panel + xi + lane) * get(&y, p * y_panel + yi + lane);
                        }
                    }
    buffer scratch = make(k, hl_conv_scratch(c.out, c.channels, c.kernel_height, c.kernel_width));
    k->conv(&c, l > 1 ? panels : 1, 0, x.p, x_panel, w.p, got_y.p, y_panel, scratch.p);
    k->conv_t(&c, l > 1 ? panels : 1, 0, y.p, y_panel, w.p, got_x.p, x_panel, scratch.p);
    for (size_t p = 0; p < panels; p++) { /* each panel as if it were alone */
        const size_t e = hl_dtype_size(k->dtype), at_x = p * x_panel * e, at_y = p * y_panel * e;
        k->conv(&c, 1, 0, (char *)x.p + at_x, x_panel, w.p, one_y.p, y_panel, scratch.p);
        k->conv_t(&c, 1, 0, (char *)y.p + at_y, y_panel, w.p, one_x.p, x_panel, scratch.p);
        assert_memory_equal(one_y.p, (char *)got_y.p + at_y, y_panel * e);
        assert_memory_equal(one_x.p, (char *)got_x.p + at_x, x_panel * e);
    }
    for (size_t i = 0; i < y_panel; i++)
        check_near(k, get(&got_y, i), want_y[i], 8);
    for (size_t i = 0; i < x_panel; i++)
        check_near(k, get(&got_x, i), want_x[i], 8);
    if (l > 1) { /* the last panels have 8 rows */
        const size_t half = 1 + below(panels);
        buffer half_y = make(k, got_y.n), half_x = make(k, got_x.n);
        k->conv(&c, panels, half, x.p, x_panel, w.p, half_y.p, y_panel, scratch.p);
        k->conv_t(&c, panels, half, y.p, y_panel, w.p, half_x.p, x_panel, scratch.p);
        for (size_t p = 0; p < panels; p++) {
            const size_t lanes = p < panels - half ? L : L / 2;
            for (size_t i = 0; i < y_panel; i++)
                assert_true(same_bits(&half_y, p * y_panel + i, &got_y, p * y_panel + i / L * L + i % lanes, 1));
            for (size_t i = 0; i < x_panel; i++)
                assert_true(same_bits(&half_x, p * x_panel + i, &got_x, p * x_panel + i / L * L + i % lanes, 1));
        }
        drop(&half_y), drop(&half_x);
    }
    for (size_t i = 0; i < got_w.n; i++)
        set(&got_w, i, 0.25);
    for (size_t p = full; l > 1 && p < panels; p++) /* lanes that do not count */
        for (size_t i = 0; i < x_panel || i < y_panel; i++)
            if (i % L >= tail) {
                if (i < x_panel)
                    set(&x, p * x_panel + i, NAN);
                if (i < y_panel)
                    set(&y, p * y_panel + i, INFINITY);
            }
    const size_t terms = c.out_height * c.out_width * panels;
    const double scale = terms > 400 ? (double)terms : 40; /* what is wanted rounds as well */
    for (size_t lo = 0, hi; lo < c.out; lo = hi) {
        hi = lo + 1 + below(c.out - lo);
        k->conv_w(&c, lo, hi, panels, full, tail, y.p, y_panel, x.p, x_panel, got_w.p, add);
    }
    for (size_t i = 0; i < got_w.n; i++)
        check_near(k, get(&got_w, i), want_w[i] + (add ? 0.25 : 0), scale);
    free(want_y), free(want_x), free(want_w), free(exists);
    drop(&x), drop(&y), drop(&w), drop(&got_y), drop(&got_x), drop(&got_w);
    drop(&one_y), drop(&one_x), drop(&scratch);
}
static void convs(const hl_kernels *k)
{
    for (int i = 0; i < 150; i++) {
        hl_conv_geometry c = { .channels = 1 + below(4),
                               .height = 1 + below(6),
                               .width = 1 + below(6),
                               .out = 1 + below(13),
                               .kernel_height = 1 + below(4),
                               .kernel_width = 1 + below(4),
                               .lanes = i % 3 ? L : 1,
                               .stride = { 1 + below(3), 1 + below(3) },
                               .pad = { below(3), below(3) } };
        if (i == 7) /* more taps than are listed at a time */
            c.height = c.width = c.kernel_height = c.kernel_width = 9;
        if (i == 8) /* panels of which few stay in the second cache: both ways and for the gradient */
            c = (hl_conv_geometry){ .channels = 20,
                                    .height = 3,
                                    .width = 90,
                                    .out = 2,
                                    .kernel_height = 3,
                                    .kernel_width = 3,
                                    .lanes = L,
                                    .stride = { 1, 1 },
                                    .pad = { 1, 1 } };
        if (c.height + 2 * c.pad[0] < c.kernel_height || c.width + 2 * c.pad[1] < c.kernel_width)
            continue;
        c.out_height = (c.height + 2 * c.pad[0] - c.kernel_height) / c.stride[0] + 1;
        c.out_width = (c.width + 2 * c.pad[1] - c.kernel_width) / c.stride[1] + 1;
        const size_t panels = i == 8 ? 5 : c.lanes > 1 ? 1 + below(3) : 1;
        conv_case(k, c, panels, below(panels + 1), below(17), below(2));
    }
}
static void test_conv(void **state)
{
    (void)state, each_table(convs);
}

static void axis_case(const hl_kernels *k, size_t outer, size_t mid, size_t inner, size_t lanes)
{
    const size_t width = inner * lanes;
    buffer x = make(k, outer * mid * width), s = make(k, outer * width), m = make(k, outer * width), c = make(k, x.n);
    if (mid > 1)
        set(&x, below(x.n), NAN);
    k->sum(outer, mid, inner, lanes, x.p, s.p);
    k->max(outer, mid, inner, lanes, x.p, m.p);
    for (size_t o = 0; o < outer; o++)
        for (size_t i = 0; i < width; i++) {
            double total = 0, top = -INFINITY;
            for (size_t j = 0; j < mid; j++) {
                const double v = get(&x, (o * mid + j) * width + i);
                total += v;
                top = isnan(v) || isnan(top) ? NAN : v > top ? v : top;
            }
            const double got = get(&s, o * width + i), got_top = get(&m, o * width + i);
            assert_true(isnan(total) ? isnan(got) : 1);
            if (!isnan(total))
                check_near(k, got, total, 2);
            assert_true(isnan(top) ? isnan(got_top) : got_top == top);
        }
    for (size_t i = 0; i < x.n; i++)
        if (isnan(get(&x, i)))
            set(&x, i, 0.5);
    for (int kind = 0; kind < 4; kind++) {
        const bool reverse = kind & 1, exclusive = kind & 2;
        k->cumsum(outer, mid, inner, lanes, reverse, exclusive, x.p, c.p);
        for (size_t o = 0; o < outer; o++)
            for (size_t i = 0; i < width; i++) {
                double total = 0;
                for (size_t step = 0; step < mid; step++) {
                    const size_t place = (o * mid + (reverse ? mid - 1 - step : step)) * width + i;
                    const double with = total + get(&x, place);
                    check_near(k, get(&c, place), exclusive ? total : with, 2);
                    total = with;
                }
            }
        if (kind == 3 && x.n) { /* in place */
            k->cumsum(outer, mid, inner, lanes, reverse, exclusive, x.p, x.p);
            assert_true(same_bits(&x, 0, &c, 0, x.n));
        }
    }
    drop(&x), drop(&s), drop(&m), drop(&c);
}
static void axes(const hl_kernels *k)
{
    for (size_t outer = 1; outer <= 3; outer++)
        for (size_t mid = 0; mid <= 5; mid++)
            for (size_t inner = 1; inner <= 20; inner++) {
                axis_case(k, outer, mid, inner, 1);
                if (inner < 4)
                    axis_case(k, outer, mid, inner, L);
            }
}
static void test_axes(void **state)
{
    (void)state, each_table(axes);
}

static void doubles(const hl_kernels *k)
{
    const size_t n = 77;
    buffer x = make(k, n), y = make(k, n);
    double acc[77], start[77];
    for (size_t i = 0; i < n; i++)
        acc[i] = start[i] = uniform() * 1e6;
    k->flush(n, x.p, acc);
    for (size_t i = 0; i < n; i++)
        assert_true(acc[i] == start[i] + get(&x, i));
    k->from_double(n, acc, y.p);
    for (size_t i = 0; i < n; i++)
        assert_true(get(&y, i) == (k->dtype == HL_F32 ? (double)(float)acc[i] : acc[i]));
    buffer sum = copy_of(&x);
    k->add(n, y.p, sum.p);
    for (size_t i = 0; i < n; i++)
        check_near(k, get(&sum, i), get(&x, i) + get(&y, i), fabs(get(&y, i)));
    k->fill(n - 1, at(&x, 3), sum.p);
    for (size_t i = 0; i < n; i++)
        assert_true((get(&sum, i) == get(&x, 3)) == (i < n - 1));
    drop(&sum);
    buffer sink = make(k, L);
    const double flops = k->fma_burst(10, sink.p);
    assert_true(flops > 0 && flops * 2 == k->fma_burst(20, sink.p));
    assert_true(isfinite(get(&sink, 0)));
    drop(&x), drop(&y), drop(&sink);
}
static void test_doubles(void **state)
{
    (void)state, each_table(doubles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pick),
        cmocka_unit_test(test_unary_accuracy),
        cmocka_unit_test(test_unary_specials),
        cmocka_unit_test(test_unary_lanes),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_ternary),
        cmocka_unit_test(test_swish),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_product_lanes),
        cmocka_unit_test(test_gradients),
        cmocka_unit_test(test_lane_sum),
        cmocka_unit_test(test_lane_matmul),
        cmocka_unit_test(test_rows_and_panels),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_doubles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
