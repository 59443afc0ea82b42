/* stiff_support.h - stiff problems with answers, for the tests of implicit methods.
 *
 * A problem's right-hand side is written once, for complex numbers: Im f(y + i h v) / h with a tiny h is J v to rounding, as all
 * of them are analytic. The answers of the Bari / CWI test set are those published there. */
#ifndef HL_TESTS_STIFF_SUPPORT_H
#define HL_TESTS_STIFF_SUPPORT_H

#include <complex.h>

#include "hollow/ode.h"
#include "support.h"

enum { STIFF_MAX = 400 }; /* unknowns */

typedef struct stiff_problem {
    const char *name;
    size_t n;
    void (*f)(double t, const double complex *y, double complex *dy);
    double t1;
    double ratio; /* atol / rtol */
    const double *y0, *y1;
} stiff_problem;

/* ---- the system of a problem ---- */

static const double COMPLEX_STEP = 1e-100;

static inline int stiff_rhs(void *user, const hl_rows *at, double *dy)
{
    const stiff_problem *p = user;
    double complex y[STIFF_MAX], f[STIFF_MAX];
    for (size_t r = 0; r < at->count; r++) {
        for (size_t i = 0; i < p->n; i++)
            y[i] = at->y[r * p->n + i];
        p->f(at->t[r], y, f);
        for (size_t i = 0; i < p->n; i++)
            dy[r * p->n + i] = creal(f[i]);
    }
    return 0;
}

static inline int stiff_jvp(void *user, const hl_rows *at, const double *v, double *jv)
{
    const stiff_problem *p = user;
    double complex y[STIFF_MAX], f[STIFF_MAX];
    for (size_t r = 0; r < at->count; r++) {
        for (size_t i = 0; i < p->n; i++)
            y[i] = at->y[r * p->n + i] + COMPLEX_STEP * v[r * p->n + i] * I;
        p->f(at->t[r], y, f);
        for (size_t i = 0; i < p->n; i++)
            jv[r * p->n + i] = cimag(f[i]) / COMPLEX_STEP;
    }
    return 0;
}

static inline int stiff_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
{
    const stiff_problem *p = user;
    double complex y[STIFF_MAX], f[STIFF_MAX];
    if (dy)
        stiff_rhs(user, at, dy);
    for (size_t r = 0; r < at->count; r++) {
        for (size_t i = 0; i < p->n; i++)
            y[i] = at->y[r * p->n + i];
        for (size_t i = 0; i < p->n; i++) {
            y[i] += COMPLEX_STEP * I;
            p->f(at->t[r], y, f);
            diagonal[r * p->n + i] = cimag(f[i]) / COMPLEX_STEP;
            y[i] = at->y[r * p->n + i];
        }
    }
    return 0;
}

static inline hl_system stiff_system(const stiff_problem *p)
{
    return (hl_system){
        .n = p->n, .rhs = stiff_rhs, .diagonal = stiff_diagonal, .jvp = stiff_jvp, .user = (void *)(uintptr_t)p
    };
}

/* ---- problems ---- */

static inline void hires_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007;
    d[1] = 1.71 * y[0] - 8.75 * y[1];
    d[2] = -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4];
    d[3] = 8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3];
    d[4] = -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6];
    d[5] = -280 * y[5] * y[7] + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6];
    d[6] = 280 * y[5] * y[7] - 1.81 * y[6];
    d[7] = -d[6];
}

static inline void orego_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = 77.27 * (y[1] + y[0] * (1 - 8.375e-6 * y[0] - y[1]));
    d[1] = (y[2] - (1 + y[0]) * y[1]) / 77.27;
    d[2] = 0.161 * (y[0] - y[2]);
}

static inline void rober_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = -0.04 * y[0] + 1e4 * y[1] * y[2];
    d[2] = 3e7 * y[1] * y[1];
    d[1] = -d[0] - d[2];
}

static inline void vdpol_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = y[1];
    d[1] = ((1 - y[0] * y[0]) * y[1] - y[0]) / 1e-6;
}

static inline void pollu_f(double t, const double complex *y, double complex *d)
{
    static const double k[26] = { 0,     .35,     26.6, 12300, 8.6e-4, 8.2e-4, 15000, 1.3e-4, 24000,
                                  16500, 9000,    .022, 12000, 1.88,   16300,  4.8e6, 3.5e-4, .0175,
                                  1e8,   4.44e11, 1240, 2.1,   5.78,   .0474,  1780,  3.12 };
    const double complex r[26] = { 0,
                                   k[1] * y[0],
                                   k[2] * y[1] * y[3],
                                   k[3] * y[4] * y[1],
                                   k[4] * y[6],
                                   k[5] * y[6],
                                   k[6] * y[6] * y[5],
                                   k[7] * y[8],
                                   k[8] * y[8] * y[5],
                                   k[9] * y[10] * y[1],
                                   k[10] * y[10] * y[0],
                                   k[11] * y[12],
                                   k[12] * y[9] * y[1],
                                   k[13] * y[13],
                                   k[14] * y[0] * y[5],
                                   k[15] * y[2],
                                   k[16] * y[3],
                                   k[17] * y[3],
                                   k[18] * y[15],
                                   k[19] * y[15],
                                   k[20] * y[16] * y[5],
                                   k[21] * y[18],
                                   k[22] * y[18],
                                   k[23] * y[0] * y[3],
                                   k[24] * y[18] * y[0],
                                   k[25] * y[19] };
    (void)t;
    d[0] = -r[1] - r[10] - r[14] - r[23] - r[24] + r[2] + r[3] + r[9] + r[11] + r[12] + r[22] + r[25];
    d[1] = -r[2] - r[3] - r[9] - r[12] + r[1] + r[21];
    d[2] = -r[15] + r[1] + r[17] + r[19] + r[22];
    d[3] = -r[2] - r[16] - r[17] - r[23] + r[15];
    d[4] = -r[3] + 2 * r[4] + r[6] + r[7] + r[13] + r[20];
    d[5] = -r[6] - r[8] - r[14] - r[20] + r[3] + 2 * r[18];
    d[6] = -r[4] - r[5] - r[6] + r[13];
    d[7] = r[4] + r[5] + r[6] + r[7];
    d[8] = -r[7] - r[8];
    d[9] = -r[12] + r[7] + r[9];
    d[10] = -r[9] - r[10] + r[8] + r[11];
    d[11] = r[9];
    d[12] = -r[11] + r[10];
    d[13] = -r[13] + r[12];
    d[14] = r[14];
    d[15] = -r[18] - r[19] + r[16];
    d[16] = -r[20];
    d[17] = r[20];
    d[18] = -r[21] - r[22] - r[24] + r[23] + r[25];
    d[19] = -r[25] + r[24];
}

static inline void kaps_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = -(2 + 1e5) * y[0] + 1e5 * y[1] * y[1];
    d[1] = y[0] - y[1] - y[1] * y[1];
}

static inline void e5_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = -7.89e-10 * y[0] - 1.1e7 * y[0] * y[2];
    d[1] = 7.89e-10 * y[0] - 1.13e9 * y[1] * y[2];
    d[3] = 1.1e7 * y[0] * y[2] - 1.13e3 * y[3];
    d[2] = d[1] - d[3];
}

/* The medical Akzo Nobel problem: a penetrating antibody, 200 points; its boundary value jumps at t = 5. */
static inline void medakzo_f(double t, const double complex *y, double complex *d)
{
    enum { N = 200 };
    for (int j = 0; j < N; j++) {
        double x = (j + 1.) / N - 1, alpha = 2 * x * x * x / 16, beta = x * x * x * x / 16;
        double complex left = j ? y[2 * j - 2] : t <= 5 ? 2 : 0, right = j < N - 1 ? y[2 * j + 2] : y[2 * j];
        double complex reaction = 100 * y[2 * j] * y[2 * j + 1];
        d[2 * j] = alpha * (right - left) * N / 2 + beta * (left - 2 * y[2 * j] + right) * N * N - reaction;
        d[2 * j + 1] = -reaction;
    }
}

#endif
