/* update.c - the loop of the optimisers, for one instruction set or another.
 *
 * One pass over all arrays, as large models are limited by memory. Every value takes the same operations in the same order and
 * nothing is contracted, so all instruction sets give the same bits. The build compiles this file with -O3 and without errno, or
 * square roots stay one at a time. */
#include "learn/update.h"

#include <math.h>

static inline __attribute__((always_inline)) void run(const hl_update *u, hl_update_method method, size_t count,
                                                      const double *restrict gradient, double *restrict value,
                                                      double *restrict first, double *restrict second)
{
    const double scale = u->scale, rate = u->step, b1 = u->beta1, b2 = u->beta2, s1 = u->share1, s2 = u->share2;
    const double root = u->root, e = u->epsilon, penalty = u->penalty, shrink = u->shrink;
    for (size_t i = 0; i < count; i++) {
        double g = scale * gradient[i] + penalty * value[i];
        double m = b1 * first[i] + s1 * g, step = m;
        first[i] = m;
        if (method == HL_ADAMAX) {
            double old = b2 * second[i], now = fabs(g);
            second[i] = old > now ? old : now;
            step = m / (second[i] + e);
        } else if (method != HL_SGD) {
            second[i] = b2 * second[i] + s2 * g * g;
            step = m / (root * sqrt(second[i]) + e);
        }
        value[i] -= rate * step + shrink * value[i];
    }
}

static inline __attribute__((always_inline)) void average(double keep, size_t count, const double *restrict value,
                                                          double *restrict mean)
{
    for (size_t i = 0; i < count; i++)
        mean[i] = keep * mean[i] + (1 - keep) * value[i];
}

static inline __attribute__((always_inline)) void narrow_to(size_t count, const double *restrict value,
                                                            float *restrict to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = (float)value[i];
}

static inline __attribute__((always_inline)) double square(size_t count, const double *restrict g)
{
    double part[8] = { 0 }, rest = 0;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t k = 0; k < 8; k++)
            part[k] += g[i + k] * g[i + k];
    for (; i < count; i++)
        rest += g[i] * g[i];
    return ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7])) + rest;
}

enum { BLOCK = 512 }; /* values that stay in the first cache between the three loops */

static inline __attribute__((always_inline)) void run_blocks(const hl_update *u, size_t count, const double *g,
                                                             double *value, double *first, double *second, double *mean,
                                                             float *to)
{
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t n = count - at < BLOCK ? count - at : BLOCK;
        switch (u->method) {
        case HL_ADAMAX:
            run(u, HL_ADAMAX, n, g + at, value + at, first + at, second + at);
            break;
        case HL_SGD:
            run(u, HL_SGD, n, g + at, value + at, first + at, second + at);
            break;
        default: /* adam and adamw differ in numbers only */
            run(u, HL_ADAM, n, g + at, value + at, first + at, second + at);
        }
        if (mean)
            average(u->keep, n, value + at, mean + at);
        if (to)
            narrow_to(n, value + at, to + at);
    }
}

#ifdef HL_HAVE_avx2
__attribute__((target("avx2"))) static void run_avx2(const hl_update *u, size_t count, const double *g, double *value,
                                                     double *first, double *second, double *mean, float *to)
{
    run_blocks(u, count, g, value, first, second, mean, to);
}

__attribute__((target("avx2"))) static double square_avx2(size_t count, const double *g)
{
    return square(count, g);
}
#endif

double hl_update_square(size_t count, const double *g)
{
#ifdef HL_HAVE_avx2
    if (__builtin_cpu_supports("avx2"))
        return square_avx2(count, g);
#endif
    return square(count, g);
}

void hl_update_run(const hl_update *u, size_t count, const double *g, double *value, double *first, double *second,
                   double *mean, float *to)
{
#ifdef HL_HAVE_avx2
    if (__builtin_cpu_supports("avx2")) {
        run_avx2(u, count, g, value, first, second, mean, to);
        return;
    }
#endif
    run_blocks(u, count, g, value, first, second, mean, to);
}
