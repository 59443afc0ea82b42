/* kernel.h - loops over raw panels.
 *
 * An *entry* is HL_LANES consecutive values, one for each row of a panel. A batched tensor of n values per row is, for one
 * panel, n entries. Every kernel does the same arithmetic in the same order in every lane. No kernel allocates.
 *
 * One source (kernel_impl.h) is compiled for each instruction set and each precision; hl_kernels_pick returns the table
 * of the best one that this machine runs. Element pointers are void: the table's precision says what they are. */
#ifndef HL_KERNEL_H
#define HL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hollow/base.h"

#define HL_LANES 16

/* Elementwise functions of one, two and three arguments. SWISH is x sigmoid(x); SLOPE and CURVE are its derivatives. */
/* clang-format off */
#define HL_UNARY_LIST(X)                                                                                               \
    X(NEG) X(EXP) X(LOG) X(LOG1P) X(EXPM1) X(SIN) X(COS) X(TANH) X(SIGMOID) X(SOFTPLUS) X(ERF) X(SQRT) X(ABS) X(SIGN)  \
    X(SWISH) X(SWISH_SLOPE) X(SWISH_CURVE)
/* clang-format on */
#define HL_BINARY_LIST(X)                                                                                              \
    X(ADD) X(SUB) X(MUL) X(DIV) X(POW) X(MIN) X(MAX) X(LESS) /* a < b ? 1 : 0 */ X(SLOPE) /* a (1 - b b) */
#define HL_TERNARY_LIST(X)                                                                                             \
    X(SELECT)                                                                                                          \
    /* a != 0 ? b : c */ X(MULADD) /* a b + c */ X(MULSUB) /* a b - c */ X(SUBMUL) /* c - a b */ X(MULMUL) /* a b c */

#define HL_ENUM_UN(n) HL_UN_##n,
#define HL_ENUM_BI(n) HL_BI_##n,
#define HL_ENUM_TE(n) HL_TE_##n,
enum { HL_UNARY_LIST(HL_ENUM_UN) HL_UNARY_COUNT };
enum { HL_BINARY_LIST(HL_ENUM_BI) HL_BINARY_COUNT };
enum { HL_TERNARY_LIST(HL_ENUM_TE) HL_TERNARY_COUNT };

/* An argument of an elementwise kernel. Not scalar: entry e is the 16 values at p + e * step (step 16, or 0 for one entry
 * that serves all). Scalar: entry e is the one value at p[e * step] in all 16 lanes (step 1 or 0). Steps count elements. */
typedef struct hl_arg {
    const void *p;
    int32_t step;
    int32_t scalar;
} hl_arg;

typedef void hl_unary_fn(size_t n, const void *x, void *y);       /* n entries; y may be x */
typedef void hl_binary_fn(size_t n, hl_arg a, hl_arg b, void *y); /* y may be a full argument */
typedef void hl_ternary_fn(size_t n, hl_arg a, hl_arg b, hl_arg c, void *y);

/* Results of swish in one pass: y[0] = swish(x), y[1] = swish'(x) factor, y[2] = swish''(x); NULL: not wanted. factor.p NULL: 1.
 * Each may be x. The bits of y[0], y[2] and, without a factor, y[1] are those of the unary functions. */
typedef void hl_swish_fn(size_t n, const void *x, hl_arg factor, void *const y[3]);
/* y = tanh(x) and slope = factor (1 - y y) in one pass. Each may be x, and slope may be the factor if that is full, or y, which is lost then. */
typedef void hl_tanh_fn(size_t n, const void *x, hl_arg factor, void *y, void *slope);

/* The interval mask of a weight matrix [out][in]: unit n sees inputs lo[n] <= k < hi[n]; input k is seen only by units
 * tlo[k] <= n < thi[k] (a hull). Weights outside are zero in memory. */
typedef struct hl_mask {
    size_t out, in;
    const uint32_t *lo, *hi;   /* [out] */
    const uint32_t *tlo, *thi; /* [in] */
} hl_mask;

/* Products of panels with a shared weight matrix w[out][in] (row pitch ldw elements).
 *   forward:    y_p[n] = init_p[n] + sum_k w[n][k] x_p[k]     n < out, k < in
 *   transposed: y_p[k] = init_p[k] + sum_n w[n][k] x_p[n]
 * for p < panels; panel p of x starts x + p * x_panel elements. init.p NULL means 0; init as an hl_arg over the output's
 * entries whose panels are init_panel elements apart (0: the same for all). y may be the init argument. */
typedef struct hl_gemm {
    size_t panels, out, in;
    /* The last so many panels have rows in their first 8 lanes only; what the other lanes get is of no use. */
    size_t half;
    const void *w;
    size_t ldw;
    const hl_mask *mask; /* NULL: dense */
    const void *x;
    size_t x_panel;
    hl_arg init;
    size_t init_panel;
    void *y;
    size_t y_panel;
} hl_gemm;
typedef void hl_gemm_fn(const hl_gemm *g);

/* Weight gradient over panels: gw[n][k] (+)= sum_p sum_{lane < valid(p)} y_p[n][lane] x_p[k][lane] for out_lo <= n < out_hi;
 * all 16 lanes count in the first `full` panels, only `tail` lanes in the others. Entries outside the mask are not written.
 * scratch: hl_gemm_w_scratch elements. A unit's row is the same bits whatever range it is computed in. */
typedef struct hl_gemm_w {
    size_t panels, full, tail, out, in, out_lo, out_hi;
    const void *y; /* (panels) x out entries */
    size_t y_panel;
    const void *x; /* (panels) x in entries */
    size_t x_panel;
    const hl_mask *mask;
    void *gw;
    size_t ldw;
    bool add; /* add to gw, or overwrite it */
    void *scratch;
} hl_gemm_w;
typedef void hl_gemm_w_fn(const hl_gemm_w *g);
/* Elements of scratch for gemm_w over at most `panels` panels. */
size_t hl_gemm_w_scratch(size_t panels, size_t in);

/* A convolution of x [channels, height, width] with w [out, channels, kernel_height, kernel_width], zero padded, to
 * y [out, out_height, out_width]:  y[o][i][j] = sum_{c,a,b} w[o][c][a][b] x[c][i stride + a - pad][j stride + b - pad].
 * Every value is `lanes` elements: 16 for a panel, 1 for a shared image. Taps (a, b) whose entry of `taps` is 0 count as
 * zero, are never read, and get a gradient of 0; NULL: all exist. */
typedef struct hl_conv_geometry {
    size_t channels, height, width, out, out_height, out_width, kernel_height, kernel_width, stride[2], pad[2], lanes;
    const int32_t *taps; /* [kernel_height * kernel_width] */
} hl_conv_geometry;
/* Elements of scratch for conv and conv_t: room for the weights. */
size_t hl_conv_scratch(size_t out, size_t channels, size_t kernel_height, size_t kernel_width);

typedef struct hl_kernels {
    const char *isa;
    hl_dtype dtype;
    hl_unary_fn *unary[HL_UNARY_COUNT];
    hl_binary_fn *binary[HL_BINARY_COUNT];
    hl_ternary_fn *ternary[HL_TERNARY_COUNT];
    hl_swish_fn *swish;
    hl_tanh_fn *tanh;
    hl_gemm_fn *gemm, *gemm_t;
    hl_gemm_w_fn *gemm_w;
    /* y[e] (+)= sum over valid lanes and panels of x_p[e], e < n: panels as in hl_gemm_w. */
    void (*lane_sum)(size_t n, size_t panels, size_t full, size_t tail, const void *x, size_t x_panel, void *y,
                     bool add);
    /* Per-row products of two batched matrices, lane by lane:
     * c[i][j] = sum_k a[i*ai + k*ak] * b[k*bk + j*bj]  (strides count values), i < m, j < n, k < kk; each value is `lanes`
     * (1 or 16) elements. */
    void (*lane_matmul)(size_t m, size_t n, size_t kk, size_t lanes, const void *a, size_t ai, size_t ak, const void *b,
                        size_t bk, size_t bj, void *c);
    /* Rows to lanes: y[k][lane] = x[lane * pitch + k] for lane < rows <= 16; the other lanes repeat row 0. And back. */
    void (*rows_to_panel)(size_t rows, size_t n, const void *x, size_t pitch, void *y);
    void (*panel_to_rows)(size_t rows, size_t n, const void *x, void *y, size_t pitch);
    /* The same between panels and rows of doubles; row r is at x + (index ? index[r] : r) * pitch. */
    void (*doubles_to_panel)(size_t rows, size_t n, const double *x, size_t pitch, const size_t *index, void *y);
    void (*panel_to_doubles)(size_t rows, size_t n, const void *x, double *y, size_t pitch);
    /* Reduce the middle axis of [outer][mid][inner] values, each value `lanes` (1 or 16) elements. */
    void (*sum)(size_t outer, size_t mid, size_t inner, size_t lanes, const void *x, void *y);
    void (*max)(size_t outer, size_t mid, size_t inner, size_t lanes, const void *x, void *y);
    /* Running sums along the middle axis; from the far end if reverse; without the own term if exclusive. */
    void (*cumsum)(size_t outer, size_t mid, size_t inner, size_t lanes, bool reverse, bool exclusive, const void *x,
                   void *y);
    void (*add)(size_t n, const void *x, void *y);  /* y[i] += x[i], n elements */
    void (*fill)(size_t n, const void *x, void *y); /* y[i] = x[0] */
    /* Convolution of `panels` panels, x_panel and y_panel elements apart, the last `half` of them as in hl_gemm, and its transpose.
     * scratch: hl_conv_scratch elements, not needed for a shared image. And units [lo, hi) of the kernel's gradient (panels, full,
     * tail as in hl_gemm_w). */
    void (*conv)(const hl_conv_geometry *c, size_t panels, size_t half, const void *x, size_t x_panel, const void *w,
                 void *y, size_t y_panel, void *scratch);
    void (*conv_t)(const hl_conv_geometry *c, size_t panels, size_t half, const void *y, size_t y_panel, const void *w,
                   void *x, size_t x_panel, void *scratch);
    void (*conv_w)(const hl_conv_geometry *c, size_t lo, size_t hi, size_t panels, size_t full, size_t tail,
                   const void *y, size_t y_panel, const void *x, size_t x_panel, void *gw, bool add);
    /* acc[i] += x[i] in double, and acc[i] to y. */
    void (*flush)(size_t n, const void *x, double *acc);
    void (*from_double)(size_t n, const double *x, void *y);
    /* Multiply-adds per second loop for measuring the peak: runs `iterations` rounds, returns the flops done. */
    double (*fma_burst)(size_t iterations, void *sink);
} hl_kernels;

/* The table for a precision on this machine. `isa` NULL picks the best; a name ("avx512", "avx2", "base") picks that one,
 * NULL if it is unknown here or the machine does not run it. */
const hl_kernels *hl_kernels_pick(hl_dtype dtype, const char *isa);

#endif
