/* random.c - counter-based random numbers.
 *
 * Philox 4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11): ten rounds of
 * a keyed bijection of a 128-bit counter. The key is the seed; the counter is (index, stream), low word first; the first
 * two words of the result are used. */
#include <math.h>

#include "base/base.h"

uint64_t hl_random_bits(uint64_t seed, uint64_t stream, uint64_t index)
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)stream, c3 = (uint32_t)(stream >> 32);
    uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53 * c0;
        uint64_t p1 = (uint64_t)0xCD9E8D57 * c2;

        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9; /* golden ratio */
        k1 += 0xBB67AE85; /* sqrt(3) - 1 */
    }
    return (uint64_t)c1 << 32 | c0;
}

/* The odd multiples of 2^-53: symmetric about 1/2, all exact, and so is 1 - u. */
double hl_random_uniform(uint64_t seed, uint64_t stream, uint64_t index)
{
    return (double)(hl_random_bits(seed, stream, index) >> 11 | 1) * 0x1p-53;
}

static double horner(const double *c, double x) /* eight coefficients, highest power first */
{
    double sum = c[0];

    for (int i = 1; i < 8; i++)
        sum = sum * x + c[i];
    return sum;
}

/* The normal distribution's inverse, by the rational approximations of Wichura, "Algorithm AS 241: the percentage points
 * of the normal distribution", Applied Statistics 37 (1988), routine PPND16: relative error about 1e-16. One number in,
 * one out, so that a normal is a function of its index alone, as Box-Muller's pairs are not. */
double hl_normal_quantile(double p)
{
    static const double centre[2][8] = {
        { 2.5090809287301226727e+3, 3.3430575583588128105e+4, 6.7265770927008700853e+4, 4.5921953931549871457e+4,
          1.3731693765509461125e+4, 1.9715909503065514427e+3, 1.3314166789178437745e+2, 3.3871328727963666080e+0 },
        { 5.2264952788528545610e+3, 2.8729085735721942674e+4, 3.9307895800092710610e+4, 2.1213794301586595867e+4,
          5.3941960214247511077e+3, 6.8718700749205790830e+2, 4.2313330701600911252e+1, 1.0 },
    };
    static const double middle[2][8] = {
        { 7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258e+0,
          3.64784832476320460504e+0, 5.76949722146069140550e+0, 4.63033784615654529590e+0, 1.42343711074968357734e+0 },
        { 1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1,
          6.89767334985100004550e-1, 1.67638483018380384940e+0, 2.05319162663775882187e+0, 1.0 },
    };
    static const double tail[2][8] = {
        { 2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2,
          2.96560571828504891230e-1, 1.78482653991729133580e+0, 5.46378491116411436990e+0, 6.65790464350110377720e+0 },
        { 2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4,
          1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1.0 },
    };
    double q = p - 0.5;
    double r, x;

    if (fabs(q) <= 0.425) {
        r = 0.180625 - q * q;
        return q * horner(centre[0], r) / horner(centre[1], r);
    }
    r = sqrt(-log(q < 0 ? p : 1 - p));
    if (r <= 5)
        x = horner(middle[0], r - 1.6) / horner(middle[1], r - 1.6);
    else
        x = horner(tail[0], r - 5) / horner(tail[1], r - 5);
    return q < 0 ? -x : x;
}

double hl_random_normal(uint64_t seed, uint64_t stream, uint64_t index)
{
    return hl_normal_quantile(hl_random_uniform(seed, stream, index));
}

void hl_random_uniforms(uint64_t seed, uint64_t stream, uint64_t first, size_t count, double *to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = hl_random_uniform(seed, stream, first + i);
}

void hl_random_normals(uint64_t seed, uint64_t stream, uint64_t first, size_t count, double *to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = hl_random_normal(seed, stream, first + i);
}

/* Feistel's network on the two halves of an index, whose round function is a random number; indices beyond the last go on until they
 * are none (Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). */
size_t hl_permuted(uint64_t seed, uint64_t stream, size_t count, size_t index)
{
    enum { ROUNDS = 4 };
    unsigned half = 1;

    while (half < 32 && (uint64_t)1 << 2 * half < count)
        half++;
    uint64_t mask = ((uint64_t)1 << half) - 1, at = index;
    do {
        uint64_t left = at >> half, right = at & mask;

        for (uint64_t round = 0; round < ROUNDS; round++) {
            uint64_t next = left ^ (hl_random_bits(seed, stream, round << 32 | right) & mask);

            left = right;
            right = next;
        }
        at = left << half | right;
    } while (at >= count);
    return (size_t)at;
}
