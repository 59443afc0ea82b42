/* kernel_conv.h - convolution, its transpose, and the gradient of its weights. Included by kernel_impl.c only.
 *
 *   conv    y[o][i][j] = sum_{c,a,b} w[o][c][a][b] x[c][r][s]          r = i stride0 + a - pad0, s = j stride1 + b - pad1
 *   conv_t  x[c][r][s] = sum_{o,a,b} w[o][c][a][b] y[o][i][j]
 *   conv_w  gw[o][c][a][b] (+)= sum_{p,i,j,lane} y_p[o][i][j][lane] x_p[c][r][s][lane]
 *
 * The first two gather: for one value of the result they list the taps (a, b) that meet it and where, then run over the
 * channels of the other side with `units` sums of two vecs in registers, one weight broadcast to each. The two vecs are parts of an entry, or
 * if that is one vec the same entry of two panels, or neighbouring values. The weights are copied together first,
 * [channel][tap][unit] for each block of units. The gradient keeps the sums of all taps of a few units and channels and goes over rows of the image, so that
 * these stay in the first cache.
 *
 * Invariant: the order of a sum depends on the geometry alone. A value of an image that all rows share is one element; such
 * images take plain loops. */

#define TAP_BLOCK 64    /* taps listed at a time */
#define VALUES 32       /* values of the result listed at a time */
#define DEPTH_AT_ONCE 8 /* channels per pass: what they hold of a value's taps stays in the first cache */
/* Of the side that is read, for a row of the result: the panels that share its lists stay in the second cache. */
#define SWEEP_BYTES (512 * 1024)

/* The taps that meet a value of the result: which, and where in the image, in values, from the value's own place on. */
typedef struct meeting {
    size_t count;
    uint32_t tap[TAP_BLOCK];
    int32_t x[TAP_BLOCK];
} meeting;

/* Some values of a row of the result. Neighbours that meet the same taps share a list, and are equally far apart. */
typedef struct row_values {
    size_t count, lists;
    ptrdiff_t at[VALUES], x[VALUES];
    const meeting *met[VALUES];
    meeting list[VALUES];
} row_values;

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

INLINE ptrdiff_t row_place(const gather *g, size_t i, size_t a)
{
    const hl_conv_geometry *c = g->c;
    return g->backward ? backward_place(i, a, c->stride[0], c->pad[0], g->from_height)
                       : forward_place(i, a, c->stride[0], c->pad[0], g->from_height);
}
INLINE ptrdiff_t column_place(const gather *g, size_t j, size_t b)
{
    const hl_conv_geometry *c = g->c;
    return g->backward ? backward_place(j, b, c->stride[1], c->pad[1], g->from_width)
                       : forward_place(j, b, c->stride[1], c->pad[1], g->from_width);
}

/* List taps `first` .. `last` - 1 of the value (i, j), from place `x` of the image on. */
static void meet(const gather *g, size_t i, size_t j, ptrdiff_t x, size_t first, size_t last, meeting *m)
{
    const hl_conv_geometry *c = g->c;
    m->count = 0;
    for (size_t tap = first; tap < last; tap++) {
        if (c->taps && !c->taps[tap])
            continue;
        const ptrdiff_t r = row_place(g, i, tap / c->kernel_width), s = column_place(g, j, tap % c->kernel_width);
        if (r < 0 || s < 0)
            continue;
        m->tap[m->count] = (uint32_t)(tap - first);
        m->x[m->count++] = (int32_t)(r * (ptrdiff_t)g->from_width + s - x);
    }
}

/* Do columns j and k meet the same taps? They are neighbours in the order of meet_row. */
static bool meet_alike(const gather *g, size_t j, size_t k)
{
    for (size_t b = 0; b < g->c->kernel_width; b++)
        if ((column_place(g, j, b) < 0) != (column_place(g, k, b) < 0))
            return false;
    return true;
}

/* List values of row i from the *next one on, and move *next. The transpose goes backwards, so that what a value meets last is what its
 * neighbour does not have at hand yet, as it is forward; and with a stride over every stride-th column first, as these meet the same taps. */
static void meet_row(const gather *g, size_t i, size_t *next, size_t first, size_t last, row_values *v)
{
    const size_t stride = g->c->stride[1], step = g->backward ? stride : 1;
    size_t before = 0;
    v->count = v->lists = 0;
    for (; *next < g->to_width && v->count < VALUES; v->count++) {
        const size_t at = *next, j = g->backward ? g->to_width - 1 - at : at;
        const ptrdiff_t x = (ptrdiff_t)(g->backward ? j / stride : j * stride);
        v->at[v->count] = (ptrdiff_t)(i * g->to_width + j);
        v->x[v->count] = x;
        if (v->count == 0 || at < step || !meet_alike(g, before, j))
            meet(g, i, j, x, first, last, &v->list[v->lists++]);
        v->met[v->count] = &v->list[v->lists - 1];
        before = j;
        *next = at + step < g->to_width ? at + step : at % step + 1 < step ? at % step + 1 : g->to_width;
    }
}

/* What the vecs of a tile hold: lanes of a whole panel, 8 lanes of a panel that has no more (whose results are stored twice), or these
 * of two values where 16 lanes are a vec. */
enum { WHOLE, HALF, JOINED };
#if defined(HALF_VEC)
#define JOINS 2 /* values of 8 lanes in a vec */
INLINE vec load_joined(const real *p, ptrdiff_t next)
{
    return (vec)_mm512_castpd_ps(_mm512_insertf64x4(_mm512_castps_pd(WHOLE_VEC(_mm256_loadu_ps(p))),
                                                    _mm256_castps_pd(_mm256_loadu_ps(p + next)), 1));
}
INLINE void store_joined(real *p, ptrdiff_t next, vec v)
{
    const vec second = (vec)_mm512_shuffle_f32x4(v, v, 0xee);
    store_lanes(p, v, 1);
    store_lanes(p + next, second, 1);
}
#else
#define JOINS 1
#define load_joined(p, next) ((void)(next), load(p))
#define store_joined(p, next, v) ((void)(next), store_lanes(p, v, 1))
#endif
/* The lanes < valid of the 8 of each value; the others are 0. */
INLINE vec valid_halves(vec v, size_t valid)
{
    static const real lane[HL_LANES] = { 0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7 };
    return select((ivec)(load(lane) < (real)valid), v, splat(0));
}
INLINE vec load_values(const real *p, ptrdiff_t next, const int kind)
{
    return kind == JOINED ? load_joined(p, next) : load_lanes(p, kind == HALF);
}
INLINE void store_values(real *p, ptrdiff_t next, vec v, const int kind)
{
    if (kind == JOINED)
        store_joined(p, next, v);
    else
        store_lanes(p, v, kind == HALF);
}

/* Tiles of some values: `depth` channels from x on are added to `units` results, which start from 0 if `fresh`. w is [depth][taps][units].
 * The parts of a tile are `step` neighbouring values, or one value and what is x_next and to_next further. */
typedef struct tiles {
    const gather *g;
    const row_values *v;
    size_t from, end, step; /* values */
    size_t depth, taps;
    ptrdiff_t x_next, to_next;
    const real *w, *x;
    real *to;
    bool fresh;
} tiles;

/* One tile, whose first value is number `value`. */
INLINE void gather_tile(const tiles *t, size_t value, const size_t units, const size_t vecs, const int kind,
                        ptrdiff_t x_next, real *to, ptrdiff_t to_next)
{
    const gather *g = t->g;
    const size_t pitch = g->to_height * g->to_width * HL_LANES, plane = g->from_height * g->from_width * HL_LANES;
    const ptrdiff_t joins = kind == JOINED ? JOINS : 1, place = t->v->x[value];
    const meeting *m = t->v->met[value];
    vec sum[UNITS][2];
    UNROLL
    for (size_t u = 0; u < units; u++) {
        UNROLL
        for (size_t v = 0; v < vecs; v++)
            sum[u][v] = t->fresh ? splat_lanes(0, kind == HALF)
                                 : load_values(to + u * pitch + (ptrdiff_t)v * joins * to_next, to_next, kind);
    }
    const real *w = t->w, *x = t->x;
    for (size_t d = 0; d < t->depth; d++, x += plane, w += t->taps * units)
        for (size_t k = 0; k < m->count; k++) {
            const real *at = x + (place + m->x[k]) * HL_LANES, *scalar = w + m->tap[k] * units;
            const vec x0 = load_values(at, x_next, kind),
                      x1 = vecs > 1 ? load_values(at + joins * x_next, x_next, kind) : x0;
            UNROLL
            for (size_t u = 0; u < units; u++) {
                const vec s = splat_lanes(scalar[u], kind == HALF);
                sum[u][0] = muladd_lanes(s, x0, sum[u][0], kind == HALF);
                if (vecs > 1)
                    sum[u][1] = muladd_lanes(s, x1, sum[u][1], kind == HALF);
            }
        }
    UNROLL
    for (size_t u = 0; u < units; u++) {
        UNROLL
        for (size_t v = 0; v < vecs; v++)
            store_values(to + u * pitch + (ptrdiff_t)v * joins * to_next, to_next, sum[u][v], kind);
    }
}

INLINE void gather_tiles(const tiles *t, const size_t units, const size_t vecs, const int kind)
{
    const row_values *v = t->v;
    for (size_t k = t->from; k < t->end; k += t->step) {
        const ptrdiff_t x_next = t->step > 1 ? (v->x[k + 1] - v->x[k]) * HL_LANES : t->x_next;
        const ptrdiff_t to_next = t->step > 1 ? (v->at[k + 1] - v->at[k]) * HL_LANES : t->to_next;
        gather_tile(t, k, units, vecs, kind, x_next, t->to + v->at[k] * HL_LANES, to_next);
    }
}

typedef void gather_fn(const tiles *t);
#define GATHER_1(units, vecs, kind)                                                                                    \
    static void gather_##units##_##vecs##_##kind(const tiles *t)                                                       \
    {                                                                                                                  \
        gather_tiles(t, units, vecs, kind);                                                                            \
    }
#if JOINS > 1
#define GATHER(units)                                                                                                  \
    GATHER_1(units, 1, WHOLE)                                                                                          \
    GATHER_1(units, 2, WHOLE) GATHER_1(units, 1, HALF) GATHER_1(units, 1, JOINED) GATHER_1(units, 2, JOINED)
#define GATHER_ENTRY(units)                                                                                            \
    {                                                                                                                  \
        { gather_##units##_1_WHOLE, gather_##units##_2_WHOLE }, { gather_##units##_1_HALF, NULL },                     \
        {                                                                                                              \
            gather_##units##_1_JOINED, gather_##units##_2_JOINED                                                       \
        }                                                                                                              \
    }
#else
#define GATHER(units) GATHER_1(units, 2, WHOLE) GATHER_1(units, 1, HALF) GATHER_1(units, 2, HALF)
#define GATHER_ENTRY(units)                                                                                            \
    {                                                                                                                  \
        { NULL, gather_##units##_2_WHOLE },                                                                            \
        {                                                                                                              \
            gather_##units##_1_HALF, gather_##units##_2_HALF                                                           \
        }                                                                                                              \
    }
#endif
GATHER(1)
GATHER(2)
GATHER(3)
GATHER(4)
GATHER(5)
GATHER(6)
#if UNITS == 8
GATHER(7)
GATHER(8)
#endif
static gather_fn *const gathers[UNITS][3][2] = {
    /* [units - 1][kind][vecs - 1] */
    GATHER_ENTRY(1), GATHER_ENTRY(2), GATHER_ENTRY(3), GATHER_ENTRY(4), GATHER_ENTRY(5), GATHER_ENTRY(6),
#if UNITS == 8
    GATHER_ENTRY(7), GATHER_ENTRY(8),
#endif
};

/* How the values of a run, which meet the same taps, are cut into tiles: as many as there are of the first shape, then of the next. A
 * vec takes one value or a part of it, except for the halves of two values that are joined. */
typedef struct shape {
    size_t step, vecs;
    int kind;
} shape;
#define SHAPES 3
static const shape shapes_pair[SHAPES] = { { 1, 2, WHOLE } };
static const shape shapes_whole[SHAPES] = { { NV == 1 ? 2 : 1, 2, WHOLE }, { NV == 1, 1, WHOLE } };
static const shape shapes_half[SHAPES] = { { JOINS * (NV <= 2 ? 2 : 1), 2, JOINS > 1 ? JOINED : HALF },
                                           { JOINS > 1 ? 2 : 0, 1, JOINED },
                                           { NV <= 2, 1, HALF } };

/* Copy weights of taps first .. last - 1 together: for each block of units, [depth][taps][units]. */
static void pack_weights(const gather *g, size_t first, size_t last, const real *w, real *to)
{
    for (size_t u = 0, units; u < g->units; u += units, to += g->depth * (last - first) * units) {
        units = block_units(g->units - u);
        for (size_t k = 0; k < units; k++) {
            real *at = to + k;
            for (size_t d = 0; d < g->depth; d++)
                for (size_t t = first; t < last; t++, at += units)
                    *at = g->c->taps && !g->c->taps[t] ? 0 : w[(u + k) * g->w_unit + d * g->w_depth + t];
        }
    }
}

/* The listed values, of one block of units and some channels: run by run. */
static void gather_runs(tiles *t, const shape *shapes, size_t units, size_t lanes)
{
    for (size_t k = 0, end; k < t->v->count; k = end) {
        for (end = k + 1; end < t->v->count && (shapes[0].step == 1 || t->v->met[end] == t->v->met[k]);)
            end++;
        t->from = k;
        for (const shape *s = shapes; t->from < end; s++) {
            t->step = s->step;
            t->end = s->step ? end - (end - t->from) % s->step : t->from;
            if (t->from == t->end)
                continue;
            tiles part = *t;
            for (size_t lane = 0; lane < lanes; lane += s->vecs * VL, part.x += s->vecs * VL, part.to += s->vecs * VL)
                gathers[units - 1][s->kind][s->vecs - 1](&part);
            t->from = t->end;
        }
    }
}

/* Some values of the result in all units, of a panel, or of two if their entries are one vec each. */
static void gather_values(const gather *g, const row_values *v, const shape *shapes, size_t lanes, size_t taps,
                          const real *w, const real *x, size_t x_next, real *to, size_t to_next, bool fresh)
{
    const size_t plane = g->from_height * g->from_width * HL_LANES, pitch = g->to_height * g->to_width * HL_LANES;
    tiles t = { .g = g, .v = v, .taps = taps, .w = w };
    t.x_next = (ptrdiff_t)x_next;
    t.to_next = (ptrdiff_t)to_next;
    for (size_t u = 0, units; u < g->units; u += units) {
        units = block_units(g->units - u);
        t.to = to + u * pitch;
        for (size_t d = 0; d < g->depth; d += DEPTH_AT_ONCE) {
            t.depth = smaller(DEPTH_AT_ONCE, g->depth - d);
            t.x = x + d * plane;
            t.fresh = fresh && d == 0;
            gather_runs(&t, shapes, units, lanes);
            t.w += t.depth * taps * units;
        }
    }
}

/* Panels that share the lists, the last `half` of them of 8 lanes. */
static void gather_sweep(const gather *g, size_t panels, size_t half, const real *x, size_t x_panel, const real *w,
                         real *to, size_t to_panel, size_t first, size_t last)
{
    for (size_t i = 0; i < g->to_height; i++)
        for (size_t j = 0; j < g->to_width;) {
            row_values v;
            meet_row(g, g->backward ? g->to_height - 1 - i : i, &j, first, last, &v);
            for (size_t p = 0, count; p < panels; p += count) {
                const bool pair = NV == 1 && p + 2 <= panels - half, small = p >= panels - half;
                count = pair ? 2 : 1;
                gather_values(g, &v,
                              pair    ? shapes_pair
                              : small ? shapes_half
                                      : shapes_whole,
                              NV == 1 ? 1
                              : small ? HL_LANES / 2
                                      : HL_LANES,
                              last - first, w, x + p * x_panel, pair ? x_panel : VL, to + p * to_panel,
                              pair ? to_panel : VL, first == 0);
            }
        }
}

static void gather_panels(const gather *g, size_t panels, size_t half, const real *x, size_t x_panel, const real *w,
                          real *to, size_t to_panel, real *scratch)
{
    const size_t taps = g->c->kernel_height * g->c->kernel_width;
    const size_t row = g->depth * g->c->kernel_height * g->from_width * HL_LANES * sizeof(real);
    const size_t most = larger(SWEEP_BYTES / larger(row, 1) / 2 * 2, 2), whole = panels - half;
    for (size_t first = 0; first < taps; first += TAP_BLOCK) {
        const size_t last = smaller(taps, first + TAP_BLOCK);
        pack_weights(g, first, last, w, scratch);
        for (size_t p = 0, count; p < panels; p += count) {
            count = smaller(most, panels - p);
            gather_sweep(g, count, p + count > whole ? smaller(count, p + count - whole) : 0, x + p * x_panel, x_panel,
                         scratch, to + p * to_panel, to_panel, first, last);
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
            meet(g, at / g->to_width, at % g->to_width, 0, first, smaller(taps, first + TAP_BLOCK), &m);
            for (size_t u = 0; u < g->units; u++) {
                real s = first ? to[u * values + at] : 0;
                for (size_t d = 0; d < g->depth; d++)
                    for (size_t t = 0; t < m.count; t++)
                        s += w[u * g->w_unit + d * g->w_depth + first + m.tap[t]] * x[d * plane + (size_t)m.x[t]];
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
/* Of a block's units and channels: the panels that all blocks go over before the next ones, so that they stay in the second cache. */
#define GRADIENT_BYTES (512 * 1024)
#define STRIPE 56 /* values of a result's channel that one chain of sums takes, if its rows are shorter */
/* Sums in registers: 24 of 32, or 12 of 16. */
#if UNITS == 8
#define GRADIENT_UNITS 6
#define GRADIENT_CHANNELS 4
#else
#define GRADIENT_UNITS 4
#define GRADIENT_CHANNELS 3
#endif
#define THIN_UNITS (2 * GRADIENT_UNITS) /* with one channel: fewer sums would wait for each other */

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

/* A vec of lanes from `part` on, of which the first `valid` of the panel count; of two values, `next` apart, if these are joined. */
INLINE vec load_valid(const real *p, size_t next, size_t part, size_t valid, const int kind)
{
    const vec v = kind == JOINED ? load_joined(p, (ptrdiff_t)next) : load(p + part);
    if (kind == WHOLE)
        return v;
    return kind == JOINED ? valid_halves(v, valid) : valid_lanes(v, part, valid);
}

/* Add the products of one value (or two) to the sums. */
INLINE void gradient_value(const stripe *s, const real *y, const real *x, const size_t units, const size_t channels,
                           size_t valid, const int kind, vec sum[THIN_UNITS][GRADIENT_CHANNELS])
{
    for (size_t part = 0; part < HL_LANES; part += VL) {
        vec right[GRADIENT_CHANNELS];
        UNROLL
        for (size_t k = 0; k < channels; k++)
            right[k] = load_valid(x + k * s->x_plane, s->x_step, part, valid, kind);
        UNROLL
        for (size_t u = 0; u < units; u++) {
            vec left = load_valid(y + u * s->y_plane, HL_LANES, part, valid, kind);
            in_register(&left);
            UNROLL
            for (size_t k = 0; k < channels; k++)
                sum[u][k] = muladd(left, right[k], sum[u][k]);
        }
    }
}

/* Add the products of a stripe to the sums. Its sum is made by itself, as one chain over all rows and panels would be many times as long.
 * Only the first `valid` lanes count, unless the panel is whole; if there are at most 8, two values may be joined. */
INLINE void gradient_stripe(const stripe *s, const size_t units, const size_t channels, size_t valid, const int kind,
                            vec *sums)
{
    vec sum[THIN_UNITS][GRADIENT_CHANNELS];
    UNROLL
    for (size_t u = 0; u < units; u++) {
        UNROLL
        for (size_t k = 0; k < channels; k++)
            sum[u][k] = splat(0);
    }
    for (size_t i = 0; i < s->rows; i++) {
        const real *y = s->y + i * s->y_row, *x = s->x + i * s->x_row;
        size_t j = 0;
        for (; kind == JOINED && j + 2 <= s->count; j += 2, y += 2 * HL_LANES, x += 2 * s->x_step)
            gradient_value(s, y, x, units, channels, valid, JOINED, sum);
        for (; j < s->count; j++, y += HL_LANES, x += s->x_step)
            gradient_value(s, y, x, units, channels, valid, kind == WHOLE ? WHOLE : HALF, sum);
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
            vec *const to = sums + (t - first) * units * channels;
            if (valid == HL_LANES)
                gradient_stripe(&s, units, channels, valid, WHOLE, to);
            else if (JOINS > 1 && valid <= HL_LANES / 2)
                gradient_stripe(&s, units, channels, valid, JOINED, to);
            else
                gradient_stripe(&s, units, channels, valid, HALF, to);
        }
}

/* What all blocks of a call have in common. */
typedef struct gradient {
    const hl_conv_geometry *c;
    size_t full, tail, y_panel, x_panel;
    bool add;
} gradient;

/* The gradient of `units` outputs and `channels` inputs over panels `from` .. `end` - 1. */
INLINE void gradient_block(const gradient *g, const size_t units, const size_t channels, size_t from, size_t end,
                           const real *y, const real *x, real *gw)
{
    const hl_conv_geometry *c = g->c;
    const size_t taps = c->kernel_height * c->kernel_width;
    const bool add = g->add || from > 0;
    for (size_t first = 0; first < taps; first += GRADIENT_TAPS) {
        const size_t last = smaller(taps, first + GRADIENT_TAPS), count = (last - first) * units * channels;
        /* room for whole blocks of VL */
        vec sums[GRADIENT_TAPS * GRADIENT_UNITS * GRADIENT_CHANNELS + VL];
        real total[GRADIENT_TAPS * GRADIENT_UNITS * GRADIENT_CHANNELS + VL] = { 0 };
        memset(sums, 0, (count + VL) * sizeof *sums);
        for (size_t p = from; p < end; p++)
            gradient_panel(c, units, channels, first, last, p < g->full ? HL_LANES : smaller(g->tail, HL_LANES),
                           y + p * g->y_panel, x + p * g->x_panel, sums);
        for (size_t i = 0; i < count; i += VL)
            fold_lanes((const real *)(sums + i), VL, total + i, false);
        for (size_t t = first; t < last; t++)
            for (size_t u = 0; u < units; u++)
                for (size_t k = 0; k < channels; k++) {
                    real *to = gw + (u * c->channels + k) * taps + t;
                    const real sum = total[((t - first) * units + u) * channels + k];
                    *to = add ? *to + sum : sum;
                }
    }
}

typedef void gradient_fn(const gradient *g, size_t from, size_t end, const real *y, const real *x, real *gw);
#define GRADIENT(units, channels)                                                                                      \
    static void gradient_##units##_##channels(const gradient *g, size_t from, size_t end, const real *y,               \
                                              const real *x, real *gw)                                                 \
    {                                                                                                                  \
        gradient_block(g, units, channels, from, end, y, x, gw);                                                       \
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
GRADIENT(9, 1)
GRADIENT(10, 1)
GRADIENT(11, 1)
GRADIENT(12, 1)
#else
GRADIENT(5, 1)
GRADIENT(6, 1)
#endif
GRADIENT(7, 1)
GRADIENT(8, 1)
static gradient_fn *const gradients[THIN_UNITS][GRADIENT_CHANNELS] = {
    GRADIENT_ENTRIES(1), GRADIENT_ENTRIES(2), GRADIENT_ENTRIES(3), GRADIENT_ENTRIES(4),
#if UNITS == 8
    GRADIENT_ENTRIES(5), GRADIENT_ENTRIES(6), { gradient_7_1 },    { gradient_8_1 },
    { gradient_9_1 },    { gradient_10_1 },   { gradient_11_1 },   { gradient_12_1 },
#else
    { gradient_5_1 },    { gradient_6_1 },    { gradient_7_1 },    { gradient_8_1 },
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

/* Units lo .. hi - 1 over panels from .. end - 1. */
static void gradient_panels(const gradient *g, size_t lo, size_t hi, size_t from, size_t end, const real *y,
                            const real *x, real *gw)
{
    const hl_conv_geometry *c = g->c;
    const size_t taps = c->kernel_height * c->kernel_width;
    const size_t y_plane = c->out_height * c->out_width * HL_LANES, x_plane = c->height * c->width * HL_LANES;
    for (size_t o = lo, units; o < hi; o += units) {
        units = even_block(hi - o, c->channels == 1 ? THIN_UNITS : GRADIENT_UNITS);
        for (size_t k = 0, channels; k < c->channels; k += channels) {
            channels = even_block(c->channels - k, GRADIENT_CHANNELS);
            gradients[units - 1][channels - 1](g, from, end, y + o * y_plane, x + k * x_plane,
                                               gw + (o * c->channels + k) * taps);
        }
    }
}

static void conv_w(const hl_conv_geometry *c, size_t lo, size_t hi, size_t panels, size_t full, size_t tail,
                   const void *y, size_t y_panel, const void *x, size_t x_panel, void *gw, bool add)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const gradient g = { c, full, tail, y_panel, x_panel, add };
    if (c->lanes == 1) {
        for (size_t o = lo; o < hi; o++)
            for (size_t k = 0; k < c->channels; k++)
                for (size_t t = 0; t < taps; t++)
                    conv_w_shared(c, o, k, t, y, x, gw, add);
        return;
    }
    const size_t block = (GRADIENT_UNITS * c->out_height * c->out_width + GRADIENT_CHANNELS * c->height * c->width) *
                         HL_LANES * sizeof(real);
    const size_t most = larger(GRADIENT_BYTES / block, 1);
    for (size_t p = 0; p < panels; p += most)
        gradient_panels(&g, lo, hi, p, smaller(panels, p + most), y, x, gw);
}
