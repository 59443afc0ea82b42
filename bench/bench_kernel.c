/* bench_kernel.c - speed of the kernels of the best table (or of the one named by the first argument).
 *
 * Prints one JSON line per case. Products: GFLOP/s (executed multiply-adds inside the mask) and the fraction of the FMA
 * peak measured just before. Functions: elements per nanosecond on a buffer that stays in the first cache. Every time is the
 * best of many, as the machine is shared. Each product is compared with plain loops on a few units before it is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hollow/random.h"
#include "kernel/kernel.h"

#define L HL_LANES

static double now(void) /* processor time: others may run on this core in between */
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *filled(const hl_kernels *k, size_t n, double scale)
{
    const size_t size = k->dtype == HL_F32 ? 4 : 8;
    void *p = aligned_alloc(64, (n * size + 63) / 64 * 64 + 64);
    if (!p)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        const double v = scale * (hl_random_uniform(1, 0, i) - 0.5);
        if (k->dtype == HL_F32)
            ((float *)p)[i] = (float)v;
        else
            ((double *)p)[i] = v;
    }
    return p;
}

static double peak(const hl_kernels *k)
{
    char sink[64];
    double best = 0;
    for (int i = 0; i < 40; i++) {
        const double start = now(), flops = k->fma_burst(20000, sink), rate = flops / (now() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

typedef struct shape {
    size_t out, in, panels;
    int triangular;
} shape;

static double value(const hl_kernels *k, const void *p, size_t i)
{
    return k->dtype == HL_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

/* Largest difference from plain loops on a few units (all panels' lane 3). */
static double check(const hl_kernels *k, int kind, const hl_gemm *g, const hl_gemm_w *gw)
{
    double worst = 0;
    for (size_t u = 0; u < (kind == 1 ? g->in : g->out); u += 37)
        for (size_t p = 0; p < (kind == 2 ? 1 : g->panels); p++) {
            double s = 0, got;
            if (kind < 2) {
                for (size_t i = 0; i < (kind ? g->out : g->in); i++)
                    s += value(k, g->w, kind ? i * g->ldw + u : u * g->ldw + i) *
                         value(k, g->x, p * g->x_panel + i * L + 3);
                got = value(k, g->y, p * g->y_panel + u * L + 3);
            } else {
                const size_t i = gw->mask ? gw->mask->lo[u] : 0;
                for (size_t q = 0; q < gw->panels; q++)
                    for (size_t l = 0; l < L; l++)
                        s +=
                            value(k, gw->y, q * gw->y_panel + u * L + l) * value(k, gw->x, q * gw->x_panel + i * L + l);
                got = value(k, gw->gw, u * gw->ldw + i);
                if (gw->mask && gw->mask->hi[u] <= i)
                    got = s;
            }
            worst = fmax(worst, fabs(got - s));
        }
    return worst;
}

static void bench_product(const hl_kernels *k, shape s, double limit)
{
    const size_t size = k->dtype == HL_F32 ? 4 : 8, big = s.out > s.in ? s.out : s.in;
    void *w = filled(k, s.out * s.in, 1), *x = filled(k, s.panels * big * L, 1), *y = filled(k, s.panels * big * L, 1);
    void *gw = filled(k, s.out * s.in, 0), *scratch = filled(k, hl_gemm_w_scratch(s.panels, s.in), 0);
    uint32_t *lo = calloc(s.out, 4), *hi = calloc(s.out, 4), *tlo = calloc(s.in, 4), *thi = calloc(s.in, 4);
    double terms = 0;
    for (size_t n = 0; n < s.out; n++) {
        hi[n] = (uint32_t)((n + 1) * s.in / s.out);
        terms += s.triangular ? hi[n] : (double)s.in;
        if (s.triangular)
            memset((char *)w + (n * s.in + hi[n]) * size, 0, (s.in - hi[n]) * size);
    }
    for (size_t i = 0; i < s.in; i++) {
        thi[i] = (uint32_t)s.out;
        while (tlo[i] < s.out && hi[tlo[i]] <= i)
            tlo[i]++;
    }
    const hl_mask mask = { s.out, s.in, lo, hi, tlo, thi };
    const hl_gemm g = { .panels = s.panels,
                        .out = s.out,
                        .in = s.in,
                        .w = w,
                        .ldw = s.in,
                        .mask = s.triangular ? &mask : NULL,
                        .x = x,
                        .x_panel = big * L,
                        .y = y,
                        .y_panel = big * L };
    const hl_gemm_w h = { .panels = s.panels,
                          .full = s.panels,
                          .out = s.out,
                          .in = s.in,
                          .out_hi = s.out,
                          .y = y,
                          .y_panel = big * L,
                          .x = x,
                          .x_panel = big * L,
                          .mask = g.mask,
                          .gw = gw,
                          .ldw = s.in,
                          .scratch = scratch };
    static const char *const names[] = { "gemm", "gemm_t", "gemm_w" };
    const double flops = 2 * terms * (double)s.panels * L;
    for (int kind = 0; kind < 3; kind++) {
        double best = 1e30, spent = 0, wrong = 0;
        for (int i = 0; spent < limit || i < 5; i++) {
            const int rounds = flops < 1e7 ? (int)(1e7 / flops) : 1;
            const double start = now();
            for (int r = 0; r < rounds; r++)
                kind == 0 ? k->gemm(&g) : kind == 1 ? k->gemm_t(&g) : k->gemm_w(&h);
            const double t = now() - start;
            best = t / rounds < best ? t / rounds : best;
            spent += t;
            if (i == 0)
                wrong = check(k, kind, &g, &h);
        }
        const double top = peak(k);
        printf("{\"kernel\": \"%s\", \"isa\": \"%s\", \"dtype\": \"%s\", \"out\": %zu, \"in\": %zu, \"panels\": %zu, "
               "\"triangular\": %s, \"gflops\": %.1f, \"peak\": %.1f, \"fraction\": %.3f, \"max_difference\": %.1e}\n",
               names[kind], k->isa, k->dtype == HL_F32 ? "f32" : "f64", s.out, s.in, s.panels,
               s.triangular ? "true" : "false", flops / best * 1e-9, top * 1e-9, flops / best / top, wrong);
        fflush(stdout);
    }
    free(w), free(x), free(y), free(gw), free(scratch), free(lo), free(hi), free(tlo), free(thi);
}

#define NAME_UN(n) #n,
static const char *const unary_names[] = { HL_UNARY_LIST(NAME_UN) };
static const char *const binary_names[] = { HL_BINARY_LIST(NAME_UN) };
static const char *const ternary_names[] = { HL_TERNARY_LIST(NAME_UN) };

static void bench_functions(const hl_kernels *k)
{
    enum { N = 64, ROUNDS = 50 };
    void *a = filled(k, N * L, 4), *b = filled(k, N * L, 4), *c = filled(k, N * L, 4), *y = filled(k, N * L, 4);
    const hl_arg fa = { a, L, 0 }, fb = { b, L, 0 }, fc = { c, L, 0 }, sb = { b, 1, 1 }, ob = { b, 0, 1 };
    for (int f = 0; f < HL_UNARY_COUNT + 3 * HL_BINARY_COUNT + HL_TERNARY_COUNT; f++) {
        double best = 1e30;
        char name[32];
        for (int i = 0; i < 100; i++) {
            const double start = now();
            for (int r = 0; r < ROUNDS; r++) {
                if (f < HL_UNARY_COUNT)
                    k->unary[f](N, a, y);
                else if (f < HL_UNARY_COUNT + 3 * HL_BINARY_COUNT)
                    k->binary[(f - HL_UNARY_COUNT) / 3](N, fa,
                                                        (f - HL_UNARY_COUNT) % 3 == 0   ? fb
                                                        : (f - HL_UNARY_COUNT) % 3 == 1 ? sb
                                                                                        : ob,
                                                        y);
                else
                    k->ternary[f - HL_UNARY_COUNT - 3 * HL_BINARY_COUNT](N, fa, fb, fc, y);
            }
            const double t = now() - start;
            best = t < best ? t : best;
        }
        if (f < HL_UNARY_COUNT)
            snprintf(name, sizeof(name), "%s", unary_names[f]);
        else if (f < HL_UNARY_COUNT + 3 * HL_BINARY_COUNT)
            snprintf(name, sizeof(name), "%s %s", binary_names[(f - HL_UNARY_COUNT) / 3],
                     (const char *const[]){ "full full", "full units", "full one" }[(f - HL_UNARY_COUNT) % 3]);
        else
            snprintf(name, sizeof(name), "%s", ternary_names[f - HL_UNARY_COUNT - 3 * HL_BINARY_COUNT]);
        printf("{\"function\": \"%s\", \"isa\": \"%s\", \"dtype\": \"%s\", \"elements_per_ns\": %.3f}\n", name, k->isa,
               k->dtype == HL_F32 ? "f32" : "f64", (double)N * L * ROUNDS / best * 1e-9);
    }
    free(a), free(b), free(c), free(y);
}

int main(int argc, char **argv)
{
    static const shape shapes[] = {
        { 64, 64, 4, 0 },   { 64, 64, 8, 0 },   { 64, 33, 8, 0 },     { 32, 16, 8, 0 },
        { 100, 100, 8, 0 }, { 43, 43, 8, 0 },   { 1, 64, 8, 0 },      { 2, 64, 8, 0 },
        { 512, 512, 4, 0 }, { 256, 256, 4, 1 }, { 6272, 1024, 4, 1 }, { 6272, 1024, 4, 0 }
    };
    for (int d = 0; d < 2; d++) {
        const hl_kernels *k = hl_kernels_pick(d ? HL_F64 : HL_F32, argc > 1 ? argv[1] : NULL);
        if (!k)
            return 1;
        if (argc > 2 && d != atoi(argv[2]))
            continue;
        for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
            bench_product(k, shapes[i], 0.1);
        bench_functions(k);
    }
    return 0;
}
