/* stiff_problem.c - the problems of stiff_problem.h. Answers are those published with the test set; that of BRUSS is made by newton at a
 * tolerance of 1e-10, which differs from 1e-11 by 1.4e-9. */
#include "stiff_problem.h"

#include <math.h>
#include <string.h>

/* ---- the system of a problem ---- */

static const double COMPLEX_STEP = 1e-100;

static int stiff_rhs(void *user, const hl_rows *at, double *dy)
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

static int stiff_jvp(void *user, const hl_rows *at, const double *v, double *jv)
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

static int stiff_diagonal(void *user, const hl_rows *at, double *dy, double *diagonal)
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

hl_system stiff_problem_system(const stiff_problem *p)
{
    return (hl_system){
        .n = p->n, .rhs = stiff_rhs, .diagonal = stiff_diagonal, .jvp = stiff_jvp, .user = (void *)(uintptr_t)p
    };
}

/* ---- problems ---- */

static void hires_f(double t, const double complex *y, double complex *d)
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

static void orego_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = 77.27 * (y[1] + y[0] * (1 - 8.375e-6 * y[0] - y[1]));
    d[1] = (y[2] - (1 + y[0]) * y[1]) / 77.27;
    d[2] = 0.161 * (y[0] - y[2]);
}

static void rober_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = -0.04 * y[0] + 1e4 * y[1] * y[2];
    d[2] = 3e7 * y[1] * y[1];
    d[1] = -d[0] - d[2];
}

static void vdpol_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = y[1];
    d[1] = ((1 - y[0] * y[0]) * y[1] - y[0]) / 1e-6;
}

static void pollu_f(double t, const double complex *y, double complex *d)
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

static void kaps_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = -(2 + 1e5) * y[0] + 1e5 * y[1] * y[1];
    d[1] = y[0] - y[1] - y[1] * y[1];
}

static void e5_f(double t, const double complex *y, double complex *d)
{
    (void)t;
    d[0] = -7.89e-10 * y[0] - 1.1e7 * y[0] * y[2];
    d[1] = 7.89e-10 * y[0] - 1.13e9 * y[1] * y[2];
    d[3] = 1.1e7 * y[0] * y[2] - 1.13e3 * y[3];
    d[2] = d[1] - d[3];
}

/* The medical Akzo Nobel problem: a penetrating antibody, 200 points; its boundary value jumps at t = 5. */
static void medakzo_f(double t, const double complex *y, double complex *d)
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

/* The Brusselator with diffusion on 50 points (Hairer & Wanner); u and v in turns. */
static void bruss_f(double t, const double complex *y, double complex *d)
{
    enum { N = 50 };
    const double alpha = (N + 1.) * (N + 1.) / 50;
    (void)t;
    for (int j = 0; j < N; j++) {
        double complex u = y[2 * j], v = y[2 * j + 1], left = j ? y[2 * j - 2] : 1,
                       right = j < N - 1 ? y[2 * j + 2] : 1;
        d[2 * j] = 1 + u * u * v - 4 * u + alpha * (left - 2 * u + right);
        left = j ? y[2 * j - 1] : 3;
        right = j < N - 1 ? y[2 * j + 3] : 3;
        d[2 * j + 1] = 3 * u - u * u * v + alpha * (left - 2 * v + right);
    }
}

static void bruss_start(double *y)
{
    for (int j = 0; j < 50; j++) {
        y[2 * j] = 1 + sin(6.283185307179586 * (j + 1) / 51);
        y[2 * j + 1] = 3;
    }
}

/* MEDAKZO starts at 0 without and 1 with the antibody. */
static void medakzo_start(double *y)
{
    for (int j = 0; j < 200; j++) {
        y[2 * j] = 0;
        y[2 * j + 1] = 1;
    }
}

/* ---- starts and answers ---- */

static const double pollu_y0[] = { 0, .2, 0, .04, 0, 0, .1, .3, .01, 0, 0, 0, 0, 0, 0, 0, .007, 0, 0, 0 };
static const double pollu_y1[] = {
    0.5646255480022769e-1,  0.1342484130422339,    0.4139734331099427e-8, 0.5523140207484359e-2, 0.2018977262302196e-6,
    0.1464541863493966e-6,  0.7784249118997964e-1, 0.3245075353396018,    0.7494013383880406e-2, 0.1622293157301561e-7,
    0.1135863833257075e-7,  0.2230505975721359e-2, 0.2087162882798630e-3, 0.1396921016840158e-4, 0.8964884856898295e-2,
    0.4352846369330103e-17, 0.6899219696263405e-2, 0.1007803037365946e-3, 0.1772146513969984e-5, 0.5682943292316392e-4
};
static const double hires_y1[] = { 7.371312573325668e-4, 1.442485726316185e-4, 5.888729740967575e-5,
                                   1.175651343283149e-3, 2.386356198831331e-3, 6.238968252742796e-3,
                                   2.849998395185769e-3, 2.850001604814231e-3 };
static const double hires_y0[] = { 1, 0, 0, 0, 0, 0, 0, .0057 }, orego_y0[] = { 1, 2, 3 }, rober_y0[] = { 1, 0, 0 },
                    vdpol_y0[] = { 2, 0 }, kaps_y0[] = { 1, 1 }, e5_y0[] = { 1.76e-3, 0, 0, 0 };
static const double orego_y1[] = { 1.000814870318523, 1228.178521549917, 132.0554942846706 };
static const double rober_y1[] = { 2.083340149701255e-8, 8.333360770334713e-14, 0.999999979166505 };
static const double vdpol_y1[] = { 1.706167732170483, -0.8928097010247975 };
static const double kaps_y1[] = { 2.0611536224385579e-9, 4.5399929762484854e-5 };
static const double e5_y1[] = { 0, 8.867655517642120e-23, 8.854814626268838e-23, 0 };

const stiff_problem stiff_problems[] = {
    { "HIRES", 8, hires_f, 321.8122, 1e-3, 0, true, hires_y0, NULL, hires_y1 },
    { "OREGO", 3, orego_f, 360, 1e-2, 0, true, orego_y0, NULL, orego_y1 },
    { "ROBER", 3, rober_f, 1e11, 1e-10, 0, true, rober_y0, NULL, rober_y1 },
    { "VDPOL", 2, vdpol_f, 2, 1, 0, true, vdpol_y0, NULL, vdpol_y1 },
    { "POLLU", 20, pollu_f, 60, 1e-5, 0, true, pollu_y0, NULL, pollu_y1 },
    { "KAPS", 2, kaps_f, 10, 1e-4, 0, true, kaps_y0, NULL, kaps_y1 },
    { "BRUSS", 100, bruss_f, 10, 1, 0, true, NULL, bruss_start, NULL },
    { "E5", 4, e5_f, 1e13, 1e-21, 1e-3, false, e5_y0, NULL, e5_y1 },
    { 0 },
};

const stiff_problem stiff_medakzo = { "MEDAKZO", 400, medakzo_f, 20, 1, 0, true, NULL, medakzo_start, NULL };

const stiff_problem *stiff_problem_named(const char *name)
{
    const stiff_problem *p = stiff_problems;
    while (p->name && strcmp(p->name, name) != 0)
        p++;
    return p->name ? p : NULL;
}

void stiff_problem_start(const stiff_problem *p, double *y)
{
    if (p->y0)
        memcpy(y, p->y0, p->n * sizeof *y);
    else
        p->start(y);
}

hl_status stiff_problem_solve(hl_context *ctx, const stiff_problem *p, const char *method, double rtol, double *y,
                              hl_ode_counts *counts)
{
    hl_system system = stiff_problem_system(p);
    hl_ode_options options = {
        .method = method, .rtol = rtol, .atol = rtol * p->ratio, .rows = 1, .max_evaluations = 200000
    };
    double t = 0;
    hl_ode *ode;
    hl_status status = hl_ode_create(ctx, &system, &options, &ode);
    if (status != HL_OK)
        return status;
    stiff_problem_start(p, y);
    status = hl_ode_solve(ode, 1, &t, p->t1, y, NULL);
    *counts = hl_ode_report(ode).forward;
    hl_ode_free(ode);
    return status;
}

hl_status stiff_problem_answer(hl_context *ctx, const stiff_problem *p, double *y)
{
    hl_ode_counts counts;
    if (!p->y1)
        return stiff_problem_solve(ctx, p, "bdf-newton", 1e-10, y, &counts);
    memcpy(y, p->y1, p->n * sizeof *y);
    return HL_OK;
}

double stiff_problem_error(const stiff_problem *p, const double *y, const double *answer, double rtol)
{
    double error = 0;
    for (size_t i = 0; i < p->n; i++) {
        double e = fabs(y[i] - answer[i]) / (rtol * p->ratio + rtol * fabs(answer[i]));
        error = e > error || isnan(e) ? e : error;
    }
    return error;
}
