/* bench_blas.c - the library's matrix product against OpenBLAS, on the sizes of hollow networks. Built where OpenBLAS is.
 *
 * Both compute y = w x for 128 rows, the own kernel on panels of 16 rows, OpenBLAS on rows, single-threaded, interleaved in
 * one run; best of many in processor time. One JSON line per size, after checking that both agree. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel/kernel.h"

enum { ROWS = 128, PANELS = ROWS / HL_LANES, MOST = 1024, ROUNDS = 60 };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Largest difference between the two results, of which one lies in panels. */
static double difference(size_t out, const float *panels, const float *rows)
{
    double worst = 0;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t n = 0; n < out; n++)
            worst = fmax(worst, fabs((double)panels[(r / HL_LANES * out + n) * HL_LANES + r % HL_LANES] -
                                     (double)rows[r * out + n]));
    return worst;
}

static int bench(const hl_kernels *k, size_t out, size_t in, float *w, float *x, float *rows, float *y, float *z)
{
    double own = 1e30, blas = 1e30, flops = 2.0 * ROWS * (double)(out * in);
    int repeat = (int)(2e7 / flops) + 1;
    hl_gemm g = { .panels = PANELS,
                  .out = out,
                  .in = in,
                  .w = w,
                  .ldw = in,
                  .x = x,
                  .x_panel = in * HL_LANES,
                  .y = y,
                  .y_panel = out * HL_LANES };
    for (size_t r = 0; r < ROWS; r++)
        for (size_t i = 0; i < in; i++)
            rows[r * in + i] = x[(r / HL_LANES * in + i) * HL_LANES + r % HL_LANES] = (float)sin((double)(r * in + i));
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        for (int j = 0; j < repeat; j++)
            k->gemm(&g);
        double middle = now();
        for (int j = 0; j < repeat; j++)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, ROWS, (int)out, (int)in, 1, rows, (int)in, w, (int)in,
                        0, z, (int)out);
        double end = now();
        own = fmin(own, (middle - start) / repeat);
        blas = fmin(blas, (end - middle) / repeat);
    }
    double wrong = difference(out, y, z);
    printf("{\"bench\": \"blas\", \"isa\": \"%s\", \"rows\": %d, \"out\": %zu, \"in\": %zu, \"own_gflops\": %.1f, "
           "\"openblas_gflops\": %.1f, \"ratio\": %.2f, \"max_difference\": %.1e}\n",
           k->isa, ROWS, out, in, flops / own * 1e-9, flops / blas * 1e-9, blas / own, wrong);
    return wrong < 1e-5 * (double)in ? 0 : 1;
}

int main(void)
{
    static const size_t sizes[][2] = { { 64, 32 }, { 64, 64 },   { 1, 64 },    { 100, 100 },
                                       { 32, 16 }, { 256, 256 }, { 688, 256 }, { 1024, 1024 } };
    const hl_kernels *k = hl_kernels_pick(HL_F32, NULL);
    float *all = aligned_alloc(64, sizeof(float) * MOST * (MOST + 4 * ROWS));
    if (!all)
        return 1;
    float *w = all, *x = w + MOST * MOST, *rows = x + ROWS * MOST, *y = rows + ROWS * MOST, *z = y + ROWS * MOST;
    for (size_t i = 0; i < MOST * MOST; i++)
        w[i] = (float)cos((double)i);
    int failed = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        failed += bench(k, sizes[i][0], sizes[i][1], w, x, rows, y, z);
    free(all);
    return failed != 0;
}
