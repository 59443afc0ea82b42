/* kernel_conv.h - convolution, its transpose, and the gradient of its weights. Included by kernel_impl.c only.
 *
 *   conv    y[o][i][j] = sum_{c,a,b} w[o][c][a][b] x[c][r][s]          r = i stride0 + a - pad0, s = j stride1 + b - pad1
 *   conv_t  x[c][r][s] = sum_{o,a,b} w[o][c][a][b] y[o][i][j]
 *   conv_w  gw[o][c][a][b] (+)= sum_{p,i,j,lane} y_p[o][i][j][lane] x_p[c][r][s][lane]
 *
 * The first two gather: for one value of the result they list the taps (a, b) that meet it and where, then run over the
 * channels of the other side with `units` sums in registers, one weight broadcast to each. The weights are copied together first,
 * [channel][tap][unit] for each block of units. The gradient keeps the sums of all taps of a few units and channels and goes over rows of the image, so that
 * these stay in the first cache.
 *
 * Invariant: the order of a sum depends on the geometry alone. A value of an image that all rows share is one element; such
 * images take plain loops. */

#define TAP_BLOCK 64    /* taps listed at a time */
#define MEETINGS 32     /* values of the result listed at a time */
#define DEPTH_AT_ONCE 8 /* channels per pass: what they hold of a value's taps stays in the first cache */

/* The taps that meet one value of the result: which, and the place in the image, in values. */
typedef struct meeting {
    size_t at, count;
    uint32_t tap[TAP_BLOCK], x[TAP_BLOCK];
} meeting;

/* Row (or column) `at` of the side that is read, if tap `tap` of output `i` falls on it, else -1. */
INLINE ptrdiff_t forward_place(size_t i, size_t tap, size_t stride, size_t pad, size_t size)
{
    const size_t shifted = i * stride + tap;
    return shifted >= pad && shifted - pad < size ? (ptrdiff_t)(shifted - pad) : -1;
}
INLINE ptrdiff_t backward_place(size_t r, size_t tap, size_t stride, size_t pad, size_t size)
{
    if (r + pad < tap || (r + pad - tap) % stride)
        return -1;
    const size_t i = (r + pad - tap) / stride;
    return i < size ? (ptrdiff_t)i : -1;
}

/* One convolution either way: `units` channels of the result, `depth` channels of the side that is read. */
typedef struct gather {
    const hl_conv_geometry *c;
    bool backward;
    size_t units, depth, to_height, to_width, from_height, from_width;
    size_t w_unit, w_depth; /* between weights of neighbouring units, of neighbouring channels */
} gather;

/* List taps `first` .. `last` - 1 of the value (i, j). */
static void meet(const gather *g, size_t i, size_t j, size_t first, size_t last, meeting *m)
{
    const hl_conv_geometry *c = g->c;
    m->at = i * g->to_width + j;
    m->count = 0;
    for (size_t tap = first; tap < last; tap++) {
        const size_t a = tap / c->kernel_width, b = tap % c->kernel_width;
        if (c->taps && !c->taps[tap])
            continue;
        const ptrdiff_t r =
            (g->backward ? backward_place : forward_place)(i, a, c->stride[0], c->pad[0], g->from_height);
        const ptrdiff_t s =
            (g->backward ? backward_place : forward_place)(j, b, c->stride[1], c->pad[1], g->from_width);
        if (r < 0 || s < 0)
            continue;
        m->tap[m->count] = (uint32_t)(tap - first);
        m->x[m->count++] = (uint32_t)((size_t)r * g->from_width + (size_t)s);
    }
}

/* List values of row i from column *column on; returns how many and moves *column. */
static size_t meet_row(const gather *g, size_t i, size_t *column, size_t first, size_t last, meeting *m)
{
    size_t count = 0;
    for (; *column < g->to_width && count < MEETINGS; ++*column)
        meet(g, i, *column, first, last, &m[count++]);
    return count;
}

/* Add the listed taps of `depth` channels to `units` results, which start from 0 if `fresh`. w is [depth][taps][units]. `half`: of 8 lanes
 * alone, whose results are stored twice. */
INLINE void gather_tile(const gather *g, const meeting *m, const size_t units, const int half, size_t depth,
                        size_t taps, const real *w, const real *x, real *to, bool fresh)
{
    const size_t pitch = g->to_height * g->to_width * HL_LANES, plane = g->from_height * g->from_width * HL_LANES;
    const bool two = NV > 1 && !(NV == 2 && half);
    vec sum[UNITS][2];
    UNROLL
    for (size_t u = 0; u < units; u++) {
        sum[u][0] = fresh ? splat_lanes(0, half) : load_lanes(to + u * pitch, half);
        sum[u][1] = fresh || !two ? splat_lanes(0, half) : load_lanes(to + u * pitch + VL, half);
    }
    for (size_t d = 0; d < depth; d++, x += plane, w += taps * units)
        for (size_t t = 0; t < m->count; t++) {
            const real *at = x + (size_t)m->x[t] * HL_LANES, *scalar = w + m->tap[t] * units;
            const vec x0 = load_lanes(at, half), x1 = two ? load_lanes(at + VL, half) : x0;
            UNROLL
            for (size_t u = 0; u < units; u++) {
                const vec s = splat_lanes(scalar[u], half);
                sum[u][0] = muladd_lanes(s, x0, sum[u][0], half);
                if (two)
                    sum[u][1] = muladd_lanes(s, x1, sum[u][1], half);
            }
        }
    UNROLL
    for (size_t u = 0; u < units; u++) {
        store_lanes(to + u * pitch, sum[u][0], half);
        if (two)
            store_lanes(to + u * pitch + VL, sum[u][1], half);
    }
}

typedef void gather_fn(const gather *g, const meeting *m, size_t depth, size_t taps, const real *w, const real *x,
                       real *to, bool fresh);
#define GATHER(units)                                                                                                  \
    static void gather_##units(const gather *g, const meeting *m, size_t depth, size_t taps, const real *w,            \
                               const real *x, real *to, bool fresh)                                                    \
    {                                                                                                                  \
        for (size_t part = 0; part < HL_LANES; part += 2 * VL)                                                         \
            gather_tile(g, m, units, 0, depth, taps, w, x + part, to + part, fresh);                                   \
    }                                                                                                                  \
    static void gather_half_##units(const gather *g, const meeting *m, size_t depth, size_t taps, const real *w,       \
                                    const real *x, real *to, bool fresh)                                               \
    {                                                                                                                  \
        for (size_t part = 0; part < HL_LANES / 2; part += 2 * VL)                                                     \
            gather_tile(g, m, units, 1, depth, taps, w, x + part, to + part, fresh);                                   \
    }
GATHER(1)
GATHER(2)
GATHER(3)
GATHER(4)
GATHER(5)
GATHER(6)
#if UNITS == 8
GATHER(7)
GATHER(8)
static gather_fn *const gathers[2][UNITS] = {
    { gather_1, gather_2, gather_3, gather_4, gather_5, gather_6, gather_7, gather_8 },
    { gather_half_1, gather_half_2, gather_half_3, gather_half_4, gather_half_5, gather_half_6, gather_half_7,
      gather_half_8 },
};
#else
static gather_fn *const gathers[2][UNITS] = {
    { gather_1, gather_2, gather_3, gather_4, gather_5, gather_6 },
    { gather_half_1, gather_half_2, gather_half_3, gather_half_4, gather_half_5, gather_half_6 },
};
#endif

/* Copy weights of taps first .. last - 1 together: for each block of units, [depth][taps][units]. */
static void pack_weights(const gather *g, size_t first, size_t last, const real *w, real *to)
{
    for (size_t u = 0, units; u < g->units; u += units) {
        units = block_units(g->units - u);
        for (size_t d = 0; d < g->depth; d++)
            for (size_t t = first; t < last; t++)
                for (size_t k = 0; k < units; k++)
                    *to++ = g->c->taps && !g->c->taps[t] ? 0 : w[(u + k) * g->w_unit + d * g->w_depth + t];
    }
}

/* Some values of the result in all units, of one panel. */
static void gather_values(const gather *g, const meeting *m, size_t count, bool half, size_t taps, const real *w,
                          const real *x, real *to, bool fresh)
{
    const size_t values = g->to_height * g->to_width, plane = g->from_height * g->from_width * HL_LANES;
    for (size_t u = 0, units; u < g->units; u += units) {
        units = block_units(g->units - u);
        for (size_t d = 0; d < g->depth; d += DEPTH_AT_ONCE) {
            const size_t depth = smaller(DEPTH_AT_ONCE, g->depth - d);
            for (size_t k = 0; k < count; k++)
                gathers[half][units - 1](g, &m[k], depth, taps, w, x + d * plane,
                                         to + (u * values + m[k].at) * HL_LANES, fresh && d == 0);
            w += depth * taps * units;
        }
    }
}

static void gather_panels(const gather *g, size_t panels, size_t half, const real *x, size_t x_panel, const real *w,
                          real *to, size_t to_panel, real *scratch)
{
    const size_t taps = g->c->kernel_height * g->c->kernel_width;
    for (size_t first = 0; first < taps; first += TAP_BLOCK) {
        const size_t last = smaller(taps, first + TAP_BLOCK);
        pack_weights(g, first, last, w, scratch);
        for (size_t i = 0; i < g->to_height; i++)
            for (size_t j = 0; j < g->to_width;) {
                meeting m[MEETINGS];
                const size_t count = meet_row(g, i, &j, first, last, m);
                for (size_t p = 0; p < panels; p++)
                    gather_values(g, m, count, p >= panels - half, last - first, scratch, x + p * x_panel,
                                  to + p * to_panel, first == 0);
            }
    }
}

/* An image that all rows share. */
static void gather_shared(const gather *g, const real *x, const real *w, real *to)
{
    const size_t taps = g->c->kernel_height * g->c->kernel_width;
    const size_t values = g->to_height * g->to_width, plane = g->from_height * g->from_width;
    for (size_t at = 0; at < values; at++)
        for (size_t first = 0; first < taps; first += TAP_BLOCK) {
            meeting m;
            meet(g, at / g->to_width, at % g->to_width, first, smaller(taps, first + TAP_BLOCK), &m);
            for (size_t u = 0; u < g->units; u++) {
                real s = first ? to[u * values + at] : 0;
                for (size_t d = 0; d < g->depth; d++)
                    for (size_t t = 0; t < m.count; t++)
                        s += w[u * g->w_unit + d * g->w_depth + first + m.tap[t]] * x[d * plane + m.x[t]];
                to[u * values + at] = s;
            }
        }
}

static void conv(const hl_conv_geometry *c, size_t panels, size_t half, const void *x, size_t x_panel, const void *w,
                 void *y, size_t y_panel, void *scratch)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const gather g = {
        c, false, c->out, c->channels, c->out_height, c->out_width, c->height, c->width, c->channels * taps, taps
    };
    if (c->lanes == 1)
        gather_shared(&g, x, w, y);
    else
        gather_panels(&g, panels, half, x, x_panel, w, y, y_panel, scratch);
}

static void conv_t(const hl_conv_geometry *c, size_t panels, size_t half, const void *y, size_t y_panel, const void *w,
                   void *x, size_t x_panel, void *scratch)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const gather g = { c,        true,          c->channels,  c->out, c->height,
                       c->width, c->out_height, c->out_width, taps,   c->channels * taps };
    if (c->lanes == 1)
        gather_shared(&g, y, w, x);
    else
        gather_panels(&g, panels, half, y, y_panel, w, x, x_panel, scratch);
}

/* ---- the gradient of the weights ---- */

#define GRADIENT_TAPS 10 /* taps at a time: their sums stay in the first cache */
#define STRIPE 28        /* values of a result's channel that one chain of sums takes, if its rows are shorter */
/* Sums in registers: 24 of 32, or 12 of 16. */
#if UNITS == 8
#define GRADIENT_UNITS 6
#define GRADIENT_CHANNELS 4
#else
#define GRADIENT_UNITS 4
#define GRADIENT_CHANNELS 3
#endif

/* Rows or columns of the result at which tap `tap` falls on the image: lo <= i < hi. */
static range tap_range(size_t tap, size_t stride, size_t pad, size_t size, size_t out)
{
    range r = { pad > tap ? (pad - tap + stride - 1) / stride : 0, out };
    if (size + pad > tap)
        r.hi = smaller(out, (size + pad - tap - 1) / stride + 1);
    else
        r.hi = 0;
    return r;
}

/* Where one tap meets a few rows of the result: `rows` of `count` values, from y and x on. */
typedef struct stripe {
    size_t rows, count;
    const real *y, *x;
    size_t y_plane, x_plane; /* between units, between channels */
    size_t y_row, x_row, x_step;
} stripe;

/* Add the products of a stripe to the sums. Its sum is made by itself, as one chain over all rows and panels would be many times as long. */
INLINE void gradient_stripe(const stripe *s, const size_t units, const size_t channels, size_t valid, vec *sums)
{
    vec sum[GRADIENT_UNITS][GRADIENT_CHANNELS];
    UNROLL
    for (size_t u = 0; u < units; u++) {
        UNROLL
        for (size_t k = 0; k < channels; k++)
            sum[u][k] = splat(0);
    }
    for (size_t i = 0; i < s->rows; i++) {
        const real *y = s->y + i * s->y_row, *x = s->x + i * s->x_row;
        for (size_t j = 0; j < s->count; j++, y += HL_LANES, x += s->x_step)
            for (size_t part = 0; part < HL_LANES; part += VL) {
                vec right[GRADIENT_CHANNELS];
                UNROLL
                for (size_t k = 0; k < channels; k++) {
                    right[k] = load(x + k * s->x_plane + part);
                    if (valid < HL_LANES)
                        right[k] = valid_lanes(right[k], part, valid);
                }
                UNROLL
                for (size_t u = 0; u < units; u++) {
                    vec left = load(y + u * s->y_plane + part);
                    if (valid < HL_LANES)
                        left = valid_lanes(left, part, valid);
                    in_register(&left);
                    UNROLL
                    for (size_t k = 0; k < channels; k++)
                        sum[u][k] = muladd(left, right[k], sum[u][k]);
                }
            }
    }
    UNROLL
    for (size_t u = 0; u < units; u++) {
        UNROLL
        for (size_t k = 0; k < channels; k++)
            sums[u * channels + k] += sum[u][k];
    }
}

/* Taps first .. last - 1 of `units` outputs and `channels` inputs, one panel: stripe by stripe of the result. */
INLINE void gradient_panel(const hl_conv_geometry *c, const size_t units, const size_t channels, size_t first,
                           size_t last, size_t valid, const real *y, const real *x, vec *sums)
{
    stripe s = { .y_plane = c->out_height * c->out_width * HL_LANES,
                 .x_plane = c->height * c->width * HL_LANES,
                 .y_row = c->out_width * HL_LANES,
                 .x_row = c->stride[0] * c->width * HL_LANES,
                 .x_step = c->stride[1] * HL_LANES };
    const size_t rows = c->out_width < STRIPE ? STRIPE / c->out_width : 1;
    for (size_t top = 0; top < c->out_height; top += rows)
        for (size_t t = first; t < last; t++) {
            const size_t a = t / c->kernel_width, b = t % c->kernel_width;
            range i = tap_range(a, c->stride[0], c->pad[0], c->height, c->out_height);
            const range j = tap_range(b, c->stride[1], c->pad[1], c->width, c->out_width);
            i.lo = i.lo > top ? i.lo : top;
            i.hi = smaller(i.hi, top + rows);
            if (i.lo >= i.hi || j.lo >= j.hi || (c->taps && !c->taps[t]))
                continue;
            s.rows = i.hi - i.lo;
            s.count = j.hi - j.lo;
            s.y = y + (i.lo * c->out_width + j.lo) * HL_LANES;
            s.x =
                x + ((i.lo * c->stride[0] + a - c->pad[0]) * c->width + j.lo * c->stride[1] + b - c->pad[1]) * HL_LANES;
            if (valid == HL_LANES)
                gradient_stripe(&s, units, channels, HL_LANES, sums + (t - first) * units * channels);
            else
                gradient_stripe(&s, units, channels, valid, sums + (t - first) * units * channels);
        }
}

/* What all blocks of a call have in common. */
typedef struct gradient {
    const hl_conv_geometry *c;
    size_t panels, full, tail, y_panel, x_panel;
    bool add;
} gradient;

/* The gradient of `units` outputs and `channels` inputs. */
INLINE void gradient_block(const gradient *g, const size_t units, const size_t channels, const real *y, const real *x,
                           real *gw)
{
    const hl_conv_geometry *c = g->c;
    const size_t taps = c->kernel_height * c->kernel_width;
    for (size_t first = 0; first < taps; first += GRADIENT_TAPS) {
        const size_t last = smaller(taps, first + GRADIENT_TAPS);
        vec sums[GRADIENT_TAPS * GRADIENT_UNITS * GRADIENT_CHANNELS];
        memset(sums, 0, (last - first) * units * channels * sizeof *sums);
        for (size_t p = 0; p < g->panels; p++)
            gradient_panel(c, units, channels, first, last, p < g->full ? HL_LANES : smaller(g->tail, HL_LANES),
                           y + p * g->y_panel, x + p * g->x_panel, sums);
        for (size_t t = first; t < last; t++)
            for (size_t u = 0; u < units; u++)
                for (size_t k = 0; k < channels; k++) {
                    real *to = gw + (u * c->channels + k) * taps + t;
                    const real total = vec_total(sums[((t - first) * units + u) * channels + k]);
                    *to = g->add ? *to + total : total;
                }
    }
}

typedef void gradient_fn(const gradient *g, const real *y, const real *x, real *gw);
#define GRADIENT(units, channels)                                                                                      \
    static void gradient_##units##_##channels(const gradient *g, const real *y, const real *x, real *gw)               \
    {                                                                                                                  \
        gradient_block(g, units, channels, y, x, gw);                                                                  \
    }
#if UNITS == 8
#define GRADIENTS(units) GRADIENT(units, 1) GRADIENT(units, 2) GRADIENT(units, 3) GRADIENT(units, 4)
#define GRADIENT_ENTRIES(units)                                                                                        \
    {                                                                                                                  \
        gradient_##units##_1, gradient_##units##_2, gradient_##units##_3, gradient_##units##_4                         \
    }
#else
#define GRADIENTS(units) GRADIENT(units, 1) GRADIENT(units, 2) GRADIENT(units, 3)
#define GRADIENT_ENTRIES(units)                                                                                        \
    {                                                                                                                  \
        gradient_##units##_1, gradient_##units##_2, gradient_##units##_3                                               \
    }
#endif
GRADIENTS(1)
GRADIENTS(2)
GRADIENTS(3)
GRADIENTS(4)
#if UNITS == 8
GRADIENTS(5)
GRADIENTS(6)
#endif
static gradient_fn *const gradients[GRADIENT_UNITS][GRADIENT_CHANNELS] = {
    GRADIENT_ENTRIES(1), GRADIENT_ENTRIES(2), GRADIENT_ENTRIES(3), GRADIENT_ENTRIES(4),
#if UNITS == 8
    GRADIENT_ENTRIES(5), GRADIENT_ENTRIES(6),
#endif
};

/* The next of nearly equal blocks of at most `most`. */
INLINE size_t even_block(size_t left, size_t most)
{
    const size_t blocks = (left + most - 1) / most;
    return (left + blocks - 1) / blocks;
}

/* The gradient of a shared image: plain loops. */
static void conv_w_shared(const hl_conv_geometry *c, size_t o, size_t k, size_t tap, const real *y, const real *x,
                          real *gw, bool add)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const size_t a = tap / c->kernel_width, b = tap % c->kernel_width;
    real s = 0;
    for (size_t i = 0; i < c->out_height && (!c->taps || c->taps[tap]); i++)
        for (size_t j = 0; j < c->out_width; j++) {
            const ptrdiff_t row = forward_place(i, a, c->stride[0], c->pad[0], c->height);
            const ptrdiff_t column = forward_place(j, b, c->stride[1], c->pad[1], c->width);
            if (row >= 0 && column >= 0)
                s += y[(o * c->out_height + i) * c->out_width + j] *
                     x[(k * c->height + (size_t)row) * c->width + (size_t)column];
        }
    real *to = gw + (o * c->channels + k) * taps + tap;
    *to = add ? *to + s : s;
}

static void conv_w(const hl_conv_geometry *c, size_t lo, size_t hi, size_t panels, size_t full, size_t tail,
                   const void *y, size_t y_panel, const void *x, size_t x_panel, void *gw, bool add)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const size_t y_plane = c->out_height * c->out_width * HL_LANES, x_plane = c->height * c->width * HL_LANES;
    const gradient g = { c, panels, full, tail, y_panel, x_panel, add };
    for (size_t o = lo, units; o < hi; o += units) {
        units = c->lanes > 1 ? even_block(hi - o, GRADIENT_UNITS) : 1;
        for (size_t k = 0, channels; k < c->channels; k += channels) {
            channels = c->lanes > 1 ? even_block(c->channels - k, GRADIENT_CHANNELS) : 1;
            real *to = (real *)gw + (o * c->channels + k) * taps;
            if (c->lanes > 1)
                gradients[units - 1][channels - 1](&g, (const real *)y + o * y_plane, (const real *)x + k * x_plane,
                                                   to);
            for (size_t t = 0; t < taps && c->lanes == 1; t++)
                conv_w_shared(c, o, k, t, y, x, gw, add);
        }
    }
}
