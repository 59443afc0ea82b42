/* kernel_math.h - elementary functions of one vec, without branches. Included by kernel_impl.c only.
 *
 * Methods (coefficients fitted by Chebyshev interpolation, tanh's by weighted least squares on its relative error):
 *   exp, expm1  x = n ln2 + r, |r| <= ln2/2;  e^r - 1 = r + r^2 P(r);  expm1 = 2 (s (e^r - 1) + (s - 1/2)), s = 2^(n-1)
 *   log, log1p  x = 2^k (1 + f), |f| small;   float: f - f^2/2 + f^3 P(f);  double: through s = f / (2 + f)
 *   tanh        float: x P(x^2) / Q(x^2), no cancellation, or with AVX-512 a polynomial for each of 32 intervals;
 *               double: -t / (2 + t), t = expm1(-2|x|)
 *   sin, cos    x = n pi/2 + r, pi/2 in four parts so that n times each is exact; libm for lanes that are too large
 *   erf         float: x (1 + P(x^2)) for |x| < 1, else 1 - exp(-Q(|x|))
 * log1p and expm1 keep all digits near 0. NaN stays NaN; infinities and poles are as in libm. Nothing relies on whether
 * the compiler fuses multiply and add: where a rounding matters, the product is exact. */

#if defined(HL_DTYPE_f32)
#define MANTISSA 23
#define BIAS 127
#define R(x) x##f
#define LOG2E 1.44269504088896341f
#define LN2_HI 0.693359375f /* 11 bits: times any exponent is exact */
#define LN2_LO -2.12194440054690583e-4f
#define EXP_MIN -104.0f
#define EXP_MAX 89.0f
#define EXPM1_MIN -30.0f
#define SMALLEST_NORMAL 1.17549435e-38f
#define TRIG_MAX 1e4f
#define TWO_OVER_PI 0.636619772367581343f
#define PIO2_1 1.5703125f
#define PIO2_2 4.837512969970703125e-4f
#define PIO2_3 7.5495336204767227173e-8f
#define PIO2_4 2.5633441515945187882e-12f
static const real EXP_P[] = { 0.5f, 0.16666576583158f, 0.04166655410934671658f, 0.008363246669753728263f,
                              0.0013926268052570573467f };
static const real SIN_P[] = { -0.16666664650292082048f, 0.0083327459363804223201f, -0.00019587387068464456456f };
static const real COS_P[] = { 0.041666664647457377173f, -0.0013888300696903898947f, 0.000024547437210193198834f };
#else
#define MANTISSA 52
#define BIAS 1023
#define R(x) x
#define LOG2E 1.44269504088896340736
#define LN2_HI 0.69314718055829871446 /* 38 bits */
#define LN2_LO 1.6465949582897081281e-12
#define EXP_MIN -746.0
#define EXP_MAX 710.0
#define EXPM1_MIN -50.0
#define SMALLEST_NORMAL 2.2250738585072014e-308
#define TRIG_MAX 1e6
#define TWO_OVER_PI 0.63661977236758134308
#define PIO2_1 0x1.921fb544p+0
#define PIO2_2 0x1.0b4611a6p-34
#define PIO2_3 0x1.3198a2ep-69
#define PIO2_4 0x1.b839a252049c1p-104
static const real EXP_P[] = { 0.5,
                              0.1666666666666667104,
                              0.04166666666666666979,
                              0.0083333333333260697564,
                              0.0013888888888883701623,
                              0.00019841269875048905233,
                              0.000024801587325710758321,
                              2.7557255110978889315e-6,
                              2.755727343657048581e-7,
                              2.5105337244665210221e-8,
                              2.091477283224808965e-9 };
static const real SIN_P[] = { -0.16666666666666666665,   0.0083333333333333314699,  -0.00019841269841265017028,
                              2.7557319219301918704e-6,  -2.5052106219521894233e-8, 1.6058529572267876353e-10,
                              -7.5865765881710724626e-13 };
static const real COS_P[] = { 0.041666666666666666666,   -0.0013888888888888887853, 0.000024801587301584619787,
                              -2.7557319221382115583e-7, 2.087675578389403842e-9,   -1.1470459749675606144e-11,
                              4.745804889760674174e-14 };
#endif
#define ROUND_MAGIC ((real)((natural)3 << (MANTISSA - 1))) /* adding it rounds to an integer kept in the low bits */
#define SIGN_BIT ((natural)1 << (8 * sizeof(real) - 1))
#define INFINITE ((real)INFINITY)

/* c[0] + c[1] x + c[2] x^2 + ... in pairs, c[i] + c[i+1] x, by Horner's rule in x2 = x^2: half the latency. */
#define POLY(x, x2, c) poly(x, x2, c, (int)(sizeof(c) / sizeof(c[0])))
INLINE vec poly(vec x, vec x2, const real *c, int n)
{
    vec p = n % 2 ? splat(c[n - 1]) : x * c[n - 1] + c[n - 2];
    UNROLL
    for (int i = n - 3 - (n + 1) % 2; i >= 0; i -= 2)
        p = p * x2 + (x * c[i + 1] + c[i]);
    return p;
}

INLINE vec select(ivec mask, vec a, vec b)
{
    return (vec)(((ivec)a & mask) | ((ivec)b & ~mask));
}
INLINE vec absolute(vec x)
{
    return (vec)((nvec)x & ~SIGN_BIT);
}
INLINE vec with_sign_of(vec magnitude, vec x)
{
    return (vec)(((nvec)magnitude & ~SIGN_BIT) | ((nvec)x & SIGN_BIT));
}
#if defined(NATIVE) /* one instruction instead of two or three; a NaN in x stays, as the second operand is taken */
INLINE vec at_least(vec x, real low)
{
    return NATIVE(max)(splat(low), x);
}
INLINE vec at_most(vec x, real high)
{
    return NATIVE(min)(splat(high), x);
}
#else
INLINE vec at_least(vec x, real low)
{
    return select((ivec)(x < low), splat(low), x);
}
INLINE vec at_most(vec x, real high)
{
    return select((ivec)(x > high), splat(high), x);
}
#endif
INLINE vec power_of_two(nvec biased)
{
    return (vec)(biased << MANTISSA);
}

/* x = n ln2 + r: returns r; n as an integer and as a value. */
INLINE vec exp_reduce(vec x, nvec *n, vec *whole)
{
    vec shifted = x * LOG2E + ROUND_MAGIC;
    *whole = shifted - ROUND_MAGIC;
    *n = (nvec)shifted - (nvec)splat(ROUND_MAGIC);
    return (x - *whole * LN2_HI) - *whole * LN2_LO;
}

INLINE vec exp_v(vec x)
{
    nvec n;
    vec whole, r = exp_reduce(at_most(at_least(x, EXP_MIN), EXP_MAX), &n, &whole);
    vec r2 = r * r;
    vec y = (r2 * POLY(r, r2, EXP_P) + r) + R(1.0);
#if defined(__AVX512F__)
    return (vec)NATIVE(scalef)(y, whole);
#else
    /* 2^n in two factors, as n may lie outside the exponents of normal numbers. */
    nvec sum = n + 4 * (natural)(BIAS + 1);
    nvec half = sum >> 1;
    return y * power_of_two(half - (BIAS + 2)) * power_of_two(sum - half - (BIAS + 2));
#endif
}

/* expm1 for EXPM1_MIN <= x <= EXP_MAX */
INLINE vec expm1_core(vec x)
{
    nvec n;
    vec whole, r = exp_reduce(x, &n, &whole);
    vec r2 = r * r;
    vec e = r2 * POLY(r, r2, EXP_P) + r;
    vec s = power_of_two(n + (BIAS - 1));
    vec half = s * e + (s - R(0.5));
    return half + half;
}

INLINE vec expm1_v(vec x)
{
    return expm1_core(at_most(at_least(x, EXPM1_MIN), EXP_MAX));
}

/* log(2^k (1 + f)) */
INLINE vec log_sum(vec k, vec f)
{
#if defined(HL_DTYPE_f32)
    static const real P[] = { 0.33333331121880150518f,  -0.24999996626939480931f, 0.20000730503852239003f,
                              -0.16667850972851766368f, 0.14248551264361468965f,  -0.12424037717650197427f,
                              0.11689071137457869152f,  -0.1149454661289021927f,  0.069807019586649741938f };
    vec f2 = f * f;
    vec low = k * LN2_LO + (f2 * f * POLY(f, f2, P) - R(0.5) * f2);
#else
    static const real P[] = { 0.66666666666666666456, 0.40000000000000912038, 0.28571428570782207716,
                              0.2222222239655298081,  0.18181795124476753508, 0.15386267672882225032,
                              0.13268026140428739298, 0.13094416666525344015 };
    vec s = f / (f + R(2.0));
    vec z = s * s;
    vec half = R(0.5) * f * f;
    vec low = k * LN2_LO - (half - s * (half + z * POLY(z, z * z, P)));
#endif
    return k * LN2_HI + (f + low);
}

/* x = 2^k m with sqrt(1/2) <= m < sqrt(2): returns m; k as a value, and 2^-k (wrong if k is the largest exponent). */
INLINE vec log_reduce(vec x, vec *k, vec *inverse)
{
    const real unit = (real)((natural)1 << MANTISSA);
    nvec root = (nvec)splat(R(0.70710678118654752440));
    nvec bits = (nvec)x - root + ((natural)BIAS << MANTISSA);
    nvec biased = bits >> MANTISSA; /* k + BIAS */
    *k = (vec)(biased | (nvec)splat(unit)) - (unit + BIAS);
    *inverse = power_of_two(2 * BIAS - biased);
    return (vec)((bits & (((natural)1 << MANTISSA) - 1)) + root);
}

INLINE vec log_v(vec x)
{
    const real up = (real)((natural)1 << (MANTISSA + 1));
    ivec tiny = (ivec)(x < SMALLEST_NORMAL);
    vec k, inverse;
    vec m = log_reduce(select(tiny, x * up, x), &k, &inverse);
    k -= select(tiny, splat((real)(MANTISSA + 1)), splat(0));
    vec y = log_sum(k, m - R(1.0));
    y = select((ivec)(x < INFINITE), y, x);
    y = select((ivec)(x < 0), splat((real)NAN), y);
    return select((ivec)(x == 0), splat(-INFINITE), y);
}

/* log1p for -1 < x < infinity. f = 2^-k (1 + x) - 1 is taken from x, as 1 + x has lost digits. */
INLINE vec log1p_core(vec x)
{
    vec k, s;
    vec m = log_reduce(x + R(1.0), &k, &s);
    vec f = select((ivec)(x > (real)((natural)1 << (MANTISSA + 2))), m - R(1.0), x * s + (s - R(1.0)));
    return log_sum(k, f);
}

INLINE vec log1p_v(vec x)
{
    vec y = log1p_core(x);
    y = select((ivec)(x < INFINITE), y, x);
    y = select((ivec)(x < R(-1.0)), splat((real)NAN), y);
    return select((ivec)(x == R(-1.0)), splat(-INFINITE), y);
}

INLINE vec sigmoid_v(vec x)
{
    return R(1.0) / (exp_v(-x) + R(1.0));
}

/* y = x s with s = sigmoid(x), and its derivatives: y' = s + y (1 - s), y'' = (1 - s) (s (1 - y) + y'). */
typedef struct swish_values {
    vec y, slope, curve;
} swish_values;
/* The sigmoid for swish. Its relative error grows with -x: 40 units in the last place at x = -86, where x s is 4e-36. */
INLINE vec sigmoid_of_swish(vec x)
{
#if defined(HL_DTYPE_f32) && defined(__AVX512F__)
    /* exp(-x) = 2^t = 2^(t - f) 2^f, |f| <= 1/2; any x, as both instructions take what is beyond the exponents. */
    vec t = x * -LOG2E, f = (vec)_mm512_reduce_ps(t, 0), p = splat(0.00132647273f);
    p = muladd(p, f, splat(0.00967151299f));
    p = muladd(p, f, splat(0.0555073358f));
    p = muladd(p, f, splat(0.240222424f));
    p = muladd(p, f, splat(0.693147004f));
    p = muladd(p, f, splat(1.0f));
    return 1.0f / ((vec)_mm512_scalef_ps(p, t - f) + 1.0f);
#else
    return sigmoid_v(x);
#endif
}
INLINE swish_values swish_values_v(vec x)
{
    vec s = sigmoid_of_swish(x), y = x * s, rest = R(1.0) - s, slope = muladd(y, rest, s);
    return (swish_values){ y, slope, rest * (muladd(-y, s, s) + slope) };
}
INLINE vec swish_v(vec x)
{
    return swish_values_v(x).y;
}
INLINE vec swish_slope_v(vec x)
{
    return swish_values_v(x).slope;
}
INLINE vec swish_curve_v(vec x)
{
    return swish_values_v(x).curve;
}

INLINE vec softplus_v(vec x)
{
    return at_least(x, 0) + log1p_core(exp_v(-absolute(x)));
}

#if defined(HL_DTYPE_f32) && defined(__AVX512F__)
/* tanh |x| = sum_k TANH_TABLE[k][i] y^k, y = |x| - start of interval i. The first bits of |x| + .625 number the intervals, which are 1/16
 * wide at first, 1 at last; at 9.25, where |x| is cut off, the last polynomial is 1. Least largest relative error, .4 ulp before rounding. */
static const real TANH_TABLE[5][32] = {
    { 0.879826665f, 0.925346255f, 0.954045296f, 0.971872747f,  0.982845008f, 0.98955977f,  0.993654609f, 0.99614656f,
      0.997660995f, 0.999138892f, 0.999683142f, 0.999883413f,  0.999957085f, 0.999984205f, 0.999994218f, 0.999997854f,
      0.999999225f, 0.99999988f,  0.0f,         0.0624187477f, 0.124352999f, 0.185333207f, 0.244918659f, 0.302709728f,
      0.3583574f,   0.462117165f, 0.554599702f, 0.635148942f,  0.703905582f, 0.761594176f, 0.809301078f, 0.848283648f },
    { 0.225906178f,
      0.143733025f,
      0.0897958353f,
      0.0554618388f,
      0.0340145454f,
      0.0207707677f,
      0.0126499943f,
      0.00769179268f,
      0.00467020879f,
      0.00172060437f,
      0.000633317919f,
      0.000233031082f,
      8.57336345e-05f,
      3.15404905e-05f,
      1.16032134e-05f,
      4.26859924e-06f,
      1.56267959e-06f,
      1.5e-7f,
      1.0f,
      0.996103764f,
      0.984536171f,
      0.965651512f,
      0.94001478f,
      0.908366799f,
      0.871580064f,
      0.786448658f,
      0.692420542f,
      0.596587241f,
      0.504518151f,
      0.419975281f,
      0.345032394f,
      0.280415207f },
    { -0.198800802f,    -0.132962823f,    -0.0856130272f,   -0.053853862f,   -0.0333963074f,   -0.0205306672f,
      -0.0125547918f,   -0.00765278144f,  -0.00462241843f,  -0.00170533708f, -0.000628015492f, -0.000231122962f,
      -8.50374345e-05f, -3.12851553e-05f, -1.15093853e-05f, -4.2340962e-06f, -1.49792584e-06f, 0.0f,
      8.09573612e-06f,  -0.0621549711f,   -0.122410946f,    -0.178951666f,   -0.230216026f,    -0.274965227f,
      -0.312340617f,    -0.363491714f,    -0.384105772f,    -0.379014999f,   -0.355213284f,    -0.319910496f,
      -0.279274225f,    -0.237893522f },
    { 0.100146234f,    0.074727267f,    0.0511511788f,   0.033337146f,    0.0211108364f,   0.0131414067f,
      0.00809678342f,  0.00495782541f,  0.00286161946f,  0.00105801341f,  0.000389938272f, 0.000143547382f,
      5.28212804e-05f, 1.94336426e-05f, 7.14947873e-06f, 2.63017887e-06f, 8.18357819e-07f, 0.0f,
      -0.333981633f,   -0.329140157f,   -0.313848853f,   -0.289443642f,   -0.257472128f,   -0.219848797f,
      -0.178602979f,   -0.0928732157f,  -0.0158041082f,  0.0439442433f,   0.08365646f,     0.104992881f,
      0.111889198f,    0.108827546f },
    { -0.0247660186f,   -0.0234683789f,  -0.0178979933f,   -0.0123437373f,   -0.0080680009f,   -0.00511515606f,
      -0.0031858515f,   -0.00196339027f, -0.000949465437f, -0.000351918367f, -0.000129820575f, -4.78066977e-05f,
      -1.75936511e-05f, -6.4732294e-06f, -2.381488e-06f,   -8.76116701e-07f, -2.0417086e-07f,  0.0f,
      0.0166203529f,    0.0602463447f,   0.0967884362f,    0.127077833f,     0.149725586f,     0.164001793f,
      0.169603392f,     0.15333651f,     0.119559884f,     0.0800058171f,    0.0434448123f,    0.0145325633f,
      -0.00552522577f,  -0.0176391155f },
};
#endif

INLINE vec tanh_v(vec x)
{
#if defined(HL_DTYPE_f32) && defined(__AVX512F__)
    const real shift = 0.625f;
    const int bits = 20; /* after the exponent and three digits */
    vec a = at_most(absolute(x), 9.25f), sum = a + shift;
    vec y = a - ((vec)((nvec)sum >> bits << bits) - shift), p = { 0 };
    UNROLL
    for (int k = 4; k >= 0; k--) {
        vec c = _mm512_permutex2var_ps(load(TANH_TABLE[k]), (__m512i)((nvec)sum >> bits), load(TANH_TABLE[k] + 16));
        p = k == 4 ? c : muladd(p, y, c);
    }
    return (vec)((nvec)p | ((nvec)x & SIGN_BIT));
#elif defined(HL_DTYPE_f32)
    static const real P[] = {
        1.0f, 0.1367995078f, 0.00386836874904f, 2.8008067511e-5f, 3.05856586425e-8f, -1.22032397977e-11f
    };
    static const real Q[] = { 1.0f, 0.470132828907f, 0.0272459985042f, 0.00039386955123f, 1.28739789297e-6f };
    x = at_most(at_least(x, -9.02f), 9.02f);
    vec z = x * x, z2 = z * z;
    vec y = x * POLY(z, z2, P) / POLY(z, z2, Q);
    return at_most(at_least(y, -1.0f), 1.0f); /* so that 1 - y^2 is never negative */
#else
    vec t = expm1_core(at_least(R(-2.0) * absolute(x), EXPM1_MIN));
    return with_sign_of(t / (t + R(2.0)), x);
#endif
}

/* sin(x + quarter pi/2) for |x| <= TRIG_MAX */
INLINE vec sine_quarter(vec x, natural quarter)
{
    vec shifted = x * TWO_OVER_PI + ROUND_MAGIC;
    vec n = shifted - ROUND_MAGIC;
    nvec turn = (nvec)shifted + quarter; /* quarter turns in the two low bits */
    vec r = (((x - n * PIO2_1) - n * PIO2_2) - n * PIO2_3) - n * PIO2_4;
    vec z = r * r, z2 = z * z;
    vec sine = r * z * POLY(z, z2, SIN_P) + r;
    vec cosine = z2 * POLY(z, z2, COS_P) + (R(1.0) - R(0.5) * z);
    vec y = select((ivec)((turn & 1) != 0), cosine, sine);
    return (vec)((nvec)y ^ (turn >> 1 << (8 * sizeof(real) - 1)));
}

#if defined(HL_DTYPE_f32)
#define LIBM(name) name##f
#else
#define LIBM(name) name
#endif

INLINE vec sin_v(vec x)
{
    return sine_quarter(x, 0);
}
INLINE vec cos_v(vec x)
{
    return sine_quarter(x, 1);
}
INLINE ivec beyond_trig(vec x)
{
    return ~(ivec)(absolute(x) <= TRIG_MAX);
} /* too large, or NaN */

INLINE vec erf_v(vec x)
{
#if defined(HL_DTYPE_f32)
    static const real P[] = { 0.12837916584835094603f,    -0.37612626666720331023f,  0.11283594715160217732f,
                              -0.026854212010626412443f,  0.0051890874234339739861f, -0.00080168642871658695293f,
                              0.000078758750626854883411f };
    static const real Q[] = { -0.00032013804967769883665f, 1.1302334348419940295f,      0.6318260515591630143f,
                              0.1100800829488202466f,      -0.026421136005663896682f,   0.0047595962932662646444f,
                              -0.00059680562566077970634f, 0.000046058042689189779247f, -1.6371514145936435649e-6f };
    vec a = at_most(absolute(x), 4.0f);
    vec a2 = a * a;
    vec near = x * POLY(a2, a2 * a2, P) + x;
    vec far = 1.0f - exp_v(-POLY(a, a2, Q));
    return select((ivec)(a < 1.0f), near, with_sign_of(far, x));
#else
    UNROLL
    for (size_t i = 0; i < VL; i++)
        x[i] = erf(x[i]);
    return x;
#endif
}

INLINE vec neg_v(vec x)
{
    return -x;
}
INLINE vec abs_v(vec x)
{
    return absolute(x);
}
INLINE vec sign_v(vec x)
{
    vec one = with_sign_of(splat(R(1.0)), x);
    return select((ivec)(x < 0) | (ivec)(x > 0), one, x + x * 0); /* 0 gives 0, NaN gives NaN */
}

INLINE vec pow_v(vec a, vec b)
{
    for (size_t i = 0; i < VL; i++)
        a[i] = LIBM(pow)(a[i], b[i]);
    return a;
}
