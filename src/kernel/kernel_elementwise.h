/* kernel_elementwise.h - loops of functions over entries. Included by kernel_impl.c only.
 *
 * A binary or ternary loop is compiled for each choice of full (16 values an entry) and scalar (one value an entry)
 * arguments; steps stay run-time values. Within an entry all loads come before the store of the same vec, so the result
 * may overwrite a full argument. */

#define UNARY(NAME, function)                                                                                          \
    static void unary_##NAME(size_t n, const void *x, void *y)                                                         \
    {                                                                                                                  \
        const real *from = x;                                                                                          \
        real *to = y;                                                                                                  \
        for (size_t i = 0; i < n * HL_LANES; i += VL)                                                                  \
            store(to + i, function(load(from + i)));                                                                   \
    }

UNARY(NEG, neg_v)
UNARY(EXP, exp_v)
UNARY(LOG, log_v)
UNARY(LOG1P, log1p_v)
UNARY(EXPM1, expm1_v)
UNARY(TANH, tanh_v)
UNARY(SIGMOID, sigmoid_v)
UNARY(SOFTPLUS, softplus_v)
UNARY(ERF, erf_v)
UNARY(ABS, abs_v)
UNARY(SIGN, sign_v)
UNARY(SWISH, swish_v)
UNARY(SWISH_SLOPE, swish_slope_v)
UNARY(SWISH_CURVE, swish_curve_v)

/* Sine and cosine, a few entries at a time: if a value is too large for the reduction, libm does that lane. */
INLINE void trig_loop(size_t n, const real *x, real *y, vec (*function)(vec), real (*libm)(real))
{
    enum { BLOCK = 8 * HL_LANES };
    for (size_t start = 0; start < n * HL_LANES; start += BLOCK) {
        const size_t end = n * HL_LANES - start < BLOCK ? n * HL_LANES : start + BLOCK;
        ivec beyond = { 0 };
        for (size_t i = start; i < end; i += VL)
            beyond |= beyond_trig(load(x + i));
        integer any = 0;
        for (size_t i = 0; i < VL; i++)
            any |= beyond[i];
        for (size_t i = start; i < end; i += VL) {
            vec from = load(x + i), to = function(from);
            if (__builtin_expect(any != 0, 0)) {
                beyond = beyond_trig(from);
                for (size_t lane = 0; lane < VL; lane++)
                    if (beyond[lane])
                        to[lane] = libm(from[lane]);
            }
            store(y + i, to);
        }
    }
}
static void unary_SIN(size_t n, const void *x, void *y)
{
    trig_loop(n, x, y, sin_v, LIBM(sin));
}
static void unary_COS(size_t n, const void *x, void *y)
{
    trig_loop(n, x, y, cos_v, LIBM(cos));
}

/* The square root is correctly rounded however it is computed. */
static void unary_SQRT(size_t n, const void *x, void *y)
{
    const real *from = x;
    real *to = y;
    for (size_t i = 0; i < n * HL_LANES; i++)
        to[i] = LIBM(sqrt)(from[i]);
}

INLINE vec add_v(vec a, vec b)
{
    return a + b;
}
INLINE vec sub_v(vec a, vec b)
{
    return a - b;
}
INLINE vec mul_v(vec a, vec b)
{
    return a * b;
}
INLINE vec div_v(vec a, vec b)
{
    return a / b;
}
/* A NaN in either argument is the result: the comparison takes b if there is one, so only a is left to see to. */
#if defined(NATIVE)
INLINE vec min_v(vec a, vec b)
{
    return select((ivec)(a != a), a, NATIVE(min)(a, b));
}
INLINE vec max_v(vec a, vec b)
{
    return select((ivec)(a != a), a, NATIVE(max)(a, b));
}
#else
INLINE vec min_v(vec a, vec b)
{
    return select((ivec)(a < b) | (ivec)(a != a), a, b);
}
INLINE vec max_v(vec a, vec b)
{
    return select((ivec)(a > b) | (ivec)(a != a), a, b);
}
#endif
INLINE vec less_v(vec a, vec b)
{
    return (vec)((ivec)splat(R(1.0)) & (ivec)(a < b));
}

/* In this order 1 - b^2 keeps its digits near |b| = 1 where multiply and add are fused. */
INLINE vec slope_v(vec a, vec b)
{
    return a * (R(1.0) - b * b);
}

INLINE vec select_v(vec a, vec b, vec c)
{
    return select((ivec)(a != 0), b, c);
}
INLINE vec muladd_v(vec a, vec b, vec c)
{
    return a * b + c;
}
INLINE vec mulsub_v(vec a, vec b, vec c)
{
    return a * b - c;
}
INLINE vec submul_v(vec a, vec b, vec c)
{
    return c - a * b;
}
INLINE vec mulmul_v(vec a, vec b, vec c)
{
    return a * b * c;
}

/* Vec j of entry e. */
INLINE vec argument(const real *p, size_t step, int scalar, size_t e, size_t j)
{
    return scalar ? splat(p[e * step]) : load(p + e * step + j * VL);
}

INLINE void binary_loop(size_t n, hl_arg a, hl_arg b, void *y, int sa, int sb, vec (*function)(vec, vec))
{
    const real *pa = a.p, *pb = b.p;
    const size_t ta = (size_t)a.step, tb = (size_t)b.step;
    real *to = y;
    for (size_t e = 0; e < n; e++) {
        UNROLL
        for (size_t j = 0; j < NV; j++)
            store(to + e * HL_LANES + j * VL, function(argument(pa, ta, sa, e, j), argument(pb, tb, sb, e, j)));
    }
}

#define BINARY(NAME, function)                                                                                         \
    static void binary_##NAME(size_t n, hl_arg a, hl_arg b, void *y)                                                   \
    {                                                                                                                  \
        switch ((a.scalar ? 2 : 0) + (b.scalar ? 1 : 0)) {                                                             \
        case 0:                                                                                                        \
            binary_loop(n, a, b, y, 0, 0, function);                                                                   \
            break;                                                                                                     \
        case 1:                                                                                                        \
            binary_loop(n, a, b, y, 0, 1, function);                                                                   \
            break;                                                                                                     \
        case 2:                                                                                                        \
            binary_loop(n, a, b, y, 1, 0, function);                                                                   \
            break;                                                                                                     \
        default:                                                                                                       \
            binary_loop(n, a, b, y, 1, 1, function);                                                                   \
            break;                                                                                                     \
        }                                                                                                              \
    }

BINARY(ADD, add_v)
BINARY(SUB, sub_v)
BINARY(MUL, mul_v)
BINARY(DIV, div_v)
BINARY(POW, pow_v)
BINARY(MIN, min_v)
BINARY(MAX, max_v)
BINARY(LESS, less_v)
BINARY(SLOPE, slope_v)

INLINE void ternary_loop(size_t n, hl_arg a, hl_arg b, hl_arg c, void *y, int sa, int sb, int sc,
                         vec (*function)(vec, vec, vec))
{
    const real *pa = a.p, *pb = b.p, *pc = c.p;
    const size_t ta = (size_t)a.step, tb = (size_t)b.step, tc = (size_t)c.step;
    real *to = y;
    for (size_t e = 0; e < n; e++) {
        UNROLL
        for (size_t j = 0; j < NV; j++)
            store(to + e * HL_LANES + j * VL,
                  function(argument(pa, ta, sa, e, j), argument(pb, tb, sb, e, j), argument(pc, tc, sc, e, j)));
    }
}

#define TERNARY(NAME, function)                                                                                        \
    static void ternary_##NAME(size_t n, hl_arg a, hl_arg b, hl_arg c, void *y)                                        \
    {                                                                                                                  \
        switch ((a.scalar ? 4 : 0) + (b.scalar ? 2 : 0) + (c.scalar ? 1 : 0)) {                                        \
        case 0:                                                                                                        \
            ternary_loop(n, a, b, c, y, 0, 0, 0, function);                                                            \
            break;                                                                                                     \
        case 1:                                                                                                        \
            ternary_loop(n, a, b, c, y, 0, 0, 1, function);                                                            \
            break;                                                                                                     \
        case 2:                                                                                                        \
            ternary_loop(n, a, b, c, y, 0, 1, 0, function);                                                            \
            break;                                                                                                     \
        case 3:                                                                                                        \
            ternary_loop(n, a, b, c, y, 0, 1, 1, function);                                                            \
            break;                                                                                                     \
        case 4:                                                                                                        \
            ternary_loop(n, a, b, c, y, 1, 0, 0, function);                                                            \
            break;                                                                                                     \
        case 5:                                                                                                        \
            ternary_loop(n, a, b, c, y, 1, 0, 1, function);                                                            \
            break;                                                                                                     \
        case 6:                                                                                                        \
            ternary_loop(n, a, b, c, y, 1, 1, 0, function);                                                            \
            break;                                                                                                     \
        default:                                                                                                       \
            ternary_loop(n, a, b, c, y, 1, 1, 1, function);                                                            \
            break;                                                                                                     \
        }                                                                                                              \
    }

TERNARY(SELECT, select_v)
TERNARY(MULADD, muladd_v)
TERNARY(MULSUB, mulsub_v)
TERNARY(SUBMUL, submul_v)
TERNARY(MULMUL, mulmul_v)

/* Which results are wanted, and whether the slope has a factor, are constants where this is inlined. */
INLINE void swish_loop(size_t n, const real *x, hl_arg factor, void *const y[3], int value, int slope, int curve,
                       int factored, int scalar)
{
    const real *by = factor.p;
    const size_t step = (size_t)factor.step;
    real *to[3] = { y[0], y[1], y[2] };
    for (size_t e = 0; e < n; e++) {
        UNROLL
        for (size_t j = 0; j < NV; j++) {
            const size_t at = e * HL_LANES + j * VL;
            const swish_values v = swish_values_v(load(x + at));
            const vec by_v = factored ? argument(by, step, scalar, e, j) : splat(0);
            if (value)
                store(to[0] + at, v.y);
            if (slope)
                store(to[1] + at, factored ? v.slope * by_v : v.slope);
            if (curve)
                store(to[2] + at, v.curve);
        }
    }
}

#define SWISH_CASE(value, slope, curve)                                                                                \
    case (value)*4 + (slope)*2 + (curve):                                                                              \
        if (!(slope) || !factor.p)                                                                                     \
            swish_loop(n, x, factor, y, value, slope, curve, 0, 0);                                                    \
        else if (factor.scalar)                                                                                        \
            swish_loop(n, x, factor, y, value, slope, curve, 1, 1);                                                    \
        else                                                                                                           \
            swish_loop(n, x, factor, y, value, slope, curve, 1, 0);                                                    \
        break;

static void swish(size_t n, const void *x, hl_arg factor, void *const y[3])
{
    switch ((y[0] ? 4 : 0) + (y[1] ? 2 : 0) + (y[2] ? 1 : 0)) {
        SWISH_CASE(1, 1, 1)
        SWISH_CASE(1, 1, 0)
        SWISH_CASE(1, 0, 1)
        SWISH_CASE(0, 1, 1)
        SWISH_CASE(1, 0, 0)
        SWISH_CASE(0, 1, 0)
        SWISH_CASE(0, 0, 1)
    default:
        break;
    }
}

INLINE void tanh_loop(size_t n, const real *x, hl_arg factor, real *y, real *slope, int scalar)
{
    const real *by = factor.p;
    const size_t step = (size_t)factor.step;
    for (size_t e = 0; e < n; e++) {
        UNROLL
        for (size_t j = 0; j < NV; j++) {
            const size_t at = e * HL_LANES + j * VL;
            const vec v = tanh_v(load(x + at)), d = slope_v(argument(by, step, scalar, e, j), v);
            store(y + at, v);
            store(slope + at, d);
        }
    }
}

static void tanh_slope(size_t n, const void *x, hl_arg factor, void *y, void *slope)
{
    if (factor.scalar)
        tanh_loop(n, x, factor, y, slope, 1);
    else
        tanh_loop(n, x, factor, y, slope, 0);
}
