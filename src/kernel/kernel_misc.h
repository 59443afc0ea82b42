/* kernel_misc.h - transposition, reductions, running sums, conversions. Included by kernel_impl.c only. */

/* ---- Transposition, in square blocks of SIDE values held in registers. */

#if defined(HL_DTYPE_f32)
#define QUARTET 4 /* values in 16 bytes */
#else
#define QUARTET 2
#endif
#define SIDE (VB >= 32 ? 2 * QUARTET : QUARTET)

typedef real short_vec __attribute__((vector_size(16)));
typedef real short_in_memory __attribute__((vector_size(16), aligned(sizeof(real)), may_alias));
INLINE short_vec load_short(const real *p)
{
    return *(const short_in_memory *)p;
}

/* `block_vec` is SIDE values: one or two 16-byte halves; LOW and HIGH interleave the halves' low or high values. */
#if VB >= 32
typedef real block_vec __attribute__((vector_size(32)));
typedef real block_in_memory __attribute__((vector_size(32), aligned(sizeof(real)), may_alias));
#if defined(HL_DTYPE_f32)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define LOW_PAIR(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_PAIR(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define BOTH(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7)
#else
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#define HIGH(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#define BOTH(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3)
#endif
#else
typedef short_vec block_vec;
typedef short_in_memory block_in_memory;
#if defined(HL_DTYPE_f32)
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define LOW_PAIR(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define HIGH_PAIR(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#else
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif
#define BOTH(a, b) (a)
#endif

/* to[c * pitch + r] = row[r][c], r < SIDE, c < SIDE */
INLINE void transpose_block(const real *const *row, real *to, size_t pitch)
{
    UNROLL
    for (int c = 0; c < SIDE; c += QUARTET) {
        block_vec a[QUARTET], t[QUARTET];
        UNROLL
        for (int r = 0; r < QUARTET; r++)
            a[r] = BOTH(load_short(row[r] + c), load_short(row[SIDE > QUARTET ? r + QUARTET : r] + c));
#if defined(HL_DTYPE_f32)
        block_vec l0 = LOW(a[0], a[1]), h0 = HIGH(a[0], a[1]), l2 = LOW(a[2], a[3]), h2 = HIGH(a[2], a[3]);
        t[0] = LOW_PAIR(l0, l2), t[1] = HIGH_PAIR(l0, l2), t[2] = LOW_PAIR(h0, h2), t[3] = HIGH_PAIR(h0, h2);
#else
        t[0] = LOW(a[0], a[1]), t[1] = HIGH(a[0], a[1]);
#endif
        UNROLL
        for (int j = 0; j < QUARTET; j++)
            *(block_in_memory *)(to + (size_t)(c + j) * pitch) = t[j];
    }
}

/* to[c * to_pitch + r] = from[r * from_pitch + c], r < rows, c < columns */
static void transpose(size_t rows, size_t columns, const real *from, size_t from_pitch, real *to, size_t to_pitch)
{
    const size_t whole_rows = rows / SIDE * SIDE, whole_columns = columns / SIDE * SIDE;
    for (size_t c = 0; c < whole_columns; c += SIDE)
        for (size_t r = 0; r < whole_rows; r += SIDE) {
            const real *row[SIDE];
            UNROLL
            for (size_t i = 0; i < SIDE; i++)
                row[i] = from + (r + i) * from_pitch + c;
            transpose_block(row, to + c * to_pitch + r, to_pitch);
        }
    for (size_t c = 0; c < columns; c++)
        for (size_t r = c < whole_columns ? whole_rows : 0; r < rows; r++)
            to[c * to_pitch + r] = from[r * from_pitch + c];
}

static void rows_to_panel(size_t rows, size_t n, const void *x, size_t pitch, void *y)
{
    real *to = y;
    if (rows == 0)
        return;
    transpose(rows, n, x, pitch, to, HL_LANES);
    if (rows < HL_LANES)
        for (size_t k = 0; k < n; k++)
            for (size_t lane = rows; lane < HL_LANES; lane++)
                to[k * HL_LANES + lane] = to[k * HL_LANES];
}

static void panel_to_rows(size_t rows, size_t n, const void *x, void *y, size_t pitch)
{
    transpose(n, rows, x, HL_LANES, y, pitch);
}

static void doubles_to_panel(size_t rows, size_t n, const double *x, size_t pitch, const size_t *index, void *y)
{
    real *to = y;
    for (size_t lane = 0; rows && lane < HL_LANES; lane++) {
        size_t row = lane < rows ? lane : 0;
        const double *from = x + (index ? index[row] : row) * pitch;
        for (size_t k = 0; k < n; k++)
            to[k * HL_LANES + lane] = (real)from[k];
    }
}

static void panel_to_doubles(size_t rows, size_t n, const void *x, double *y, size_t pitch)
{
    const real *from = x;
    for (size_t lane = 0; lane < rows; lane++)
        for (size_t k = 0; k < n; k++)
            y[lane * pitch + k] = from[k * HL_LANES + lane];
}

/* ---- Reductions. */

/* All values of a vec, halves onto halves. */
INLINE real vec_total(vec v)
{
    real part[VL];
    store(part, v);
    UNROLL
    for (size_t half = VL / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

/* The lanes < valid of a vec that holds lanes j .. j + VL - 1; the others are 0, whatever they held. */
INLINE vec valid_lanes(vec v, size_t j, size_t valid)
{
    static const real lane[HL_LANES] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
    return select((ivec)(load(lane + j) < (real)valid), v, splat(0));
}

/* Sums over lanes of VL entries at once: the entries' vecs are transposed, and the rows added. `count` of them are
 * wanted. An entry's sum does not depend on its place. */
INLINE void fold_lanes(const real *part, size_t count, real *to, bool add)
{
    real turned[VL * VL], total[VL];
    transpose(VL, VL, part, VL, turned, VL);
    vec s = load(turned);
    UNROLL
    for (size_t l = 1; l < VL; l++)
        s += load(turned + l * VL);
    if (count == VL) {
        store(to, add ? load(to) + s : s);
        return;
    }
    store(total, s);
    for (size_t e = 0; e < count; e++)
        to[e] = add ? to[e] + total[e] : total[e];
}

/* y[e] (+)= sum over panels and valid lanes of x_p[e], times w_p if w is not NULL. */
INLINE void sum_panels(size_t n, size_t panels, size_t full, size_t tail, const real *x, size_t x_panel, const real *w,
                       size_t w_panel, real *y, bool add)
{
    real part[VL * VL] = { 0 };
    for (size_t e = 0; e < n; e++) {
        vec s[NV] = { { 0 } };
        for (size_t p = 0; p < panels; p++) {
            UNROLL
            for (size_t j = 0; j < NV; j++) {
                vec v = load(x + p * x_panel + e * HL_LANES + j * VL);
                if (w)
                    v *= load(w + p * w_panel + j * VL);
                s[j] += p < full ? v : valid_lanes(v, j * VL, tail);
            }
        }
        UNROLL
        for (size_t j = 1; j < NV; j++)
            s[0] += s[j];
        store(part + e % VL * VL, s[0]);
        if (e % VL == VL - 1 || e == n - 1)
            fold_lanes(part, e % VL + 1, y + e / VL * VL, add);
    }
}

static void lane_sum(size_t n, size_t panels, size_t full, size_t tail, const void *x, size_t x_panel, void *y,
                     bool add)
{
    sum_panels(n, panels, full, tail, x, x_panel, NULL, 0, y, add);
}

/* Rows i .. i + rows and columns j .. j + columns of a lane_matmul, one vec of lanes. */
INLINE void matmul_block(const size_t rows, const size_t columns, size_t kk, const real *a, size_t ai, size_t ak,
                         const real *b, size_t bk, size_t bj, real *c, size_t ci)
{
    vec s[2][4] = { { { 0 } } };
    for (size_t k = 0; k < kk; k++, a += ak, b += bk) {
        UNROLL
        for (size_t i = 0; i < rows; i++) {
            vec left = load(a + i * ai);
            UNROLL
            for (size_t j = 0; j < columns; j++)
                s[i][j] = muladd(left, load(b + j * bj), s[i][j]);
        }
    }
    UNROLL
    for (size_t i = 0; i < rows; i++) {
        UNROLL
        for (size_t j = 0; j < columns; j++)
            store(c + i * ci + j * HL_LANES, s[i][j]);
    }
}

static void lane_matmul(size_t m, size_t n, size_t kk, size_t lanes, const void *a, size_t ai, size_t ak, const void *b,
                        size_t bk, size_t bj, void *c)
{
    if (lanes == 1) { /* shared values: rare and small */
        const real *pa = a, *pb = b;
        real *pc = c;
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++) {
                real s = 0;
                for (size_t k = 0; k < kk; k++)
                    s += pa[i * ai + k * ak] * pb[k * bk + j * bj];
                pc[i * n + j] = s;
            }
        return;
    }
    ai *= HL_LANES, ak *= HL_LANES, bk *= HL_LANES, bj *= HL_LANES;
    const size_t ci = n * HL_LANES;
    for (size_t part = 0; part < HL_LANES; part += VL)
        for (size_t i = 0; i < m; i += 2) {
            const real *pa = (const real *)a + i * ai + part;
            const bool two = i + 1 < m;
            for (size_t j = 0; j < n;) {
                const real *pb = (const real *)b + j * bj + part;
                real *pc = (real *)c + i * ci + j * HL_LANES + part;
                const bool four = j + 4 <= n;
                if (two && four)
                    matmul_block(2, 4, kk, pa, ai, ak, pb, bk, bj, pc, ci);
                else if (two)
                    matmul_block(2, 1, kk, pa, ai, ak, pb, bk, bj, pc, ci);
                else if (four)
                    matmul_block(1, 4, kk, pa, ai, ak, pb, bk, bj, pc, ci);
                else
                    matmul_block(1, 1, kk, pa, ai, ak, pb, bk, bj, pc, ci);
                j += four ? 4 : 1;
            }
        }
}

/* ---- The middle axis of [outer][mid][width] values. */

INLINE real sum_two(real a, real b)
{
    return a + b;
}
INLINE real max_two(real a, real b)
{
    return a > b || a != a ? a : b;
}

INLINE void reduce_axis(size_t outer, size_t mid, size_t width, const real *x, real *y, real empty,
                        vec (*combine)(vec, vec), real (*combine_one)(real, real))
{
    for (size_t o = 0; o < outer; o++, x += mid * width, y += width) {
        size_t i = 0;
        for (; i + VL <= width; i += VL) {
            vec r = mid ? load(x + i) : splat(empty);
            for (size_t k = 1; k < mid; k++)
                r = combine(r, load(x + k * width + i));
            store(y + i, r);
        }
        for (; i < width; i++) {
            real r = mid ? x[i] : empty;
            for (size_t k = 1; k < mid; k++)
                r = combine_one(r, x[k * width + i]);
            y[i] = r;
        }
    }
}

static void sum_axis(size_t outer, size_t mid, size_t inner, size_t lanes, const void *x, void *y)
{
    reduce_axis(outer, mid, inner * lanes, x, y, 0, add_v, sum_two);
}

static void max_axis(size_t outer, size_t mid, size_t inner, size_t lanes, const void *x, void *y)
{
    reduce_axis(outer, mid, inner * lanes, x, y, -INFINITE, max_v, max_two);
}

static void cumsum_axis(size_t outer, size_t mid, size_t inner, size_t lanes, bool reverse, bool exclusive,
                        const void *x, void *y)
{
    const size_t width = inner * lanes;
    const real *from = x;
    real *to = y;
    for (size_t o = 0; o < outer; o++, from += mid * width, to += mid * width)
        for (size_t j = 0; j < width; j += VL) {
            const size_t count = width - j < VL ? width - j : VL;
            vec s = splat(0);
            for (size_t k = 0; k < mid; k++) {
                const size_t at = (reverse ? mid - 1 - k : k) * width + j;
                vec v = splat(0);
                if (count == VL)
                    v = load(from + at);
                else
                    for (size_t i = 0; i < count; i++)
                        v[i] = from[at + i];
                const vec before = s;
                s += v;
                const vec out = exclusive ? before : s;
                if (count == VL)
                    store(to + at, out);
                else
                    for (size_t i = 0; i < count; i++)
                        to[at + i] = out[i];
            }
        }
}

/* ---- Plain loops over elements, and the peak. */

static void flush(size_t n, const void *x, double *acc)
{
    const real *from = x;
    for (size_t i = 0; i < n; i++)
        acc[i] += (double)from[i];
}

static void add(size_t n, const void *x, void *y)
{
    const real *from = x;
    real *to = y;
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void fill(size_t n, const void *x, void *y)
{
    const real value = *(const real *)x;
    real *to = y;
    for (size_t i = 0; i < n; i++)
        to[i] = value;
}

static void from_double(size_t n, const double *x, void *y)
{
    real *to = y;
    for (size_t i = 0; i < n; i++)
        to[i] = (real)x[i];
}

/* Twelve independent chains s = s a + b of whole vecs, which converge as 0 < a < 1. */
static double fma_burst(size_t iterations, void *sink)
{
    enum { CHAINS = 12, ROUNDS = 8 };
    real *out = sink;
    volatile real hidden = R(0.5);
    const vec a = splat(hidden), b = splat(hidden + R(0.25));
    vec s[CHAINS];
    UNROLL
    for (int i = 0; i < CHAINS; i++)
        s[i] = splat(hidden * (real)i);
    for (size_t k = 0; k < iterations; k++) {
        for (int r = 0; r < ROUNDS; r++) {
            UNROLL
            for (int i = 0; i < CHAINS; i++)
                s[i] = s[i] * a + b;
        }
    }
    vec total = s[0];
    UNROLL
    for (int i = 1; i < CHAINS; i++)
        total += s[i];
    *out = total[0];
    return (double)iterations * CHAINS * ROUNDS * 2 * (double)VL;
}
