/* kernel_conv.h - convolution, its transpose, and the gradient of its weights. Included by kernel_impl.c only.
 *
 *   conv    y[o][i][j] = sum_{c,a,b} w[o][c][a][b] x[c][r][s]          r = i stride0 + a - pad0, s = j stride1 + b - pad1
 *   conv_t  x[c][r][s] = sum_{o,a,b} w[o][c][a][b] y[o][i][j]
 *   conv_w  gw[o][c][a][b] (+)= sum_{p,i,j,lane} y_p[o][i][j][lane] x_p[c][r][s][lane]
 *
 * The first two gather: for one value of the result they list the taps (a, b) that meet it and where, then run over the
 * channels of the other side with `units` sums in registers, one weight broadcast to each. A value is 16 lanes, or one
 * element if the image is shared, which takes the same way through vecs of which only the first lane counts. */

#define TAP_BLOCK 64 /* taps listed at a time */

/* The taps that meet one value: offsets of the weight and of the image's value, in elements. */
typedef struct meeting {
    size_t count;
    size_t w[TAP_BLOCK], x[TAP_BLOCK];
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
    const real *from, *w;
    real *to;
    size_t w_unit, w_depth; /* between weights of neighbouring units, of neighbouring channels */
} gather;

/* List taps `first` .. `last` - 1 of the value (i, j). */
static void meet(const gather *g, size_t i, size_t j, size_t first, size_t last, meeting *m)
{
    const hl_conv_geometry *c = g->c;
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
        m->w[m->count] = tap;
        m->x[m->count++] = ((size_t)r * g->from_width + (size_t)s) * c->lanes;
    }
}

/* Add the listed taps to `units` results, which start from 0 if `fresh`. `lanes` is a constant, 16 or 1. */
INLINE void gather_units(const gather *g, const meeting *m, const size_t units, const size_t lanes, const real *w,
                         real *to, bool fresh)
{
    const size_t pitch = g->to_height * g->to_width * lanes, plane = g->from_height * g->from_width * lanes;
    for (size_t part = 0; part < lanes; part += 2 * VL) {
        const bool pair = lanes > 1 && NV > 1;
        vec sum[UNITS][2];
        UNROLL
        for (size_t u = 0; u < units; u++) {
            sum[u][0] = fresh ? splat(0) : lanes > 1 ? load(to + u * pitch + part) : splat(to[u * pitch]);
            sum[u][1] = fresh || !pair ? splat(0) : load(to + u * pitch + part + VL);
        }
        const real *from = g->from + part, *weight = w;
        for (size_t d = 0; d < g->depth; d++, from += plane, weight += g->w_depth)
            for (size_t t = 0; t < m->count; t++) {
                const real *x = from + m->x[t], *scalar = weight + m->w[t];
                const vec x0 = lanes > 1 ? load(x) : splat(*x), x1 = pair ? load(x + VL) : x0;
                UNROLL
                for (size_t u = 0; u < units; u++) {
                    const vec s = splat(scalar[u * g->w_unit]);
                    sum[u][0] = muladd(s, x0, sum[u][0]);
                    if (pair)
                        sum[u][1] = muladd(s, x1, sum[u][1]);
                }
            }
        UNROLL
        for (size_t u = 0; u < units; u++) {
            if (lanes == 1) {
                to[u * pitch] = sum[u][0][0];
                continue;
            }
            store(to + u * pitch + part, sum[u][0]);
            if (pair)
                store(to + u * pitch + part + VL, sum[u][1]);
        }
    }
}

static void gather_one(const gather *g, const meeting *m, size_t units, const real *w, real *to, bool fresh)
{
    if (g->c->lanes == 1)
        for (size_t u = 0; u < units; u++)
            gather_units(g, m, 1, 1, w + u * g->w_unit, to + u * g->to_height * g->to_width, fresh);
    else if (units == UNITS)
        gather_units(g, m, UNITS, HL_LANES, w, to, fresh);
    else
        for (size_t u = 0; u < units;) {
            const size_t count = units - u >= UNITS / 2 ? UNITS / 2 : 1;
            real *place = to + u * g->to_height * g->to_width * HL_LANES;
            if (count > 1)
                gather_units(g, m, UNITS / 2, HL_LANES, w + u * g->w_unit, place, fresh);
            else
                gather_units(g, m, 1, HL_LANES, w + u * g->w_unit, place, fresh);
            u += count;
        }
}

static void gather_run(const gather *g)
{
    const hl_conv_geometry *c = g->c;
    const size_t taps = c->kernel_height * c->kernel_width, values = g->to_height * g->to_width;
    for (size_t at = 0; at < values; at++) {
        size_t first = 0;
        do {
            const size_t last = smaller(taps, first + TAP_BLOCK);
            meeting m;
            meet(g, at / g->to_width, at % g->to_width, first, last, &m);
            for (size_t u = 0; u < g->units; u += UNITS)
                gather_one(g, &m, smaller(UNITS, g->units - u), g->w + u * g->w_unit,
                           g->to + (u * values + at) * c->lanes, first == 0);
            first = last;
        } while (first < taps);
    }
}

static void conv(const hl_conv_geometry *c, const void *x, const void *w, void *y)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const gather g = { c,        false, c->out, c->channels, c->out_height,      c->out_width, c->height,
                       c->width, x,     w,      y,           c->channels * taps, taps };
    gather_run(&g);
}

static void conv_t(const hl_conv_geometry *c, const void *y, const void *w, void *x)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const gather g = { c, true, c->channels, c->out, c->height,         c->width, c->out_height, c->out_width,
                       y, w,    x,           taps,   c->channels * taps };
    gather_run(&g);
}

/* The sum of one panel for `units` outputs and `channels` inputs at tap (a, b), added to s. */
INLINE void conv_w_panel(const hl_conv_geometry *c, const size_t units, const size_t channels, size_t a, size_t b,
                         size_t valid, const real *y, const real *x, vec (*s)[3])
{
    const size_t y_plane = c->out_height * c->out_width * HL_LANES, x_plane = c->height * c->width * HL_LANES;
    for (size_t i = 0; i < c->out_height; i++) {
        const ptrdiff_t row = forward_place(i, a, c->stride[0], c->pad[0], c->height);
        if (row < 0)
            continue;
        for (size_t j = 0; j < c->out_width; j++) {
            const ptrdiff_t column = forward_place(j, b, c->stride[1], c->pad[1], c->width);
            if (column < 0)
                continue;
            const real *y_at = y + (i * c->out_width + j) * HL_LANES;
            const real *x_at = x + ((size_t)row * c->width + (size_t)column) * HL_LANES;
            for (size_t part = 0; part < HL_LANES; part += VL) {
                vec right[3];
                UNROLL
                for (size_t k = 0; k < channels; k++) {
                    right[k] = load(x_at + k * x_plane + part);
                    if (valid < HL_LANES)
                        right[k] = valid_lanes(right[k], part, valid);
                }
                UNROLL
                for (size_t u = 0; u < units; u++) {
                    vec left = load(y_at + u * y_plane + part);
                    if (valid < HL_LANES)
                        left = valid_lanes(left, part, valid);
                    UNROLL
                    for (size_t k = 0; k < channels; k++)
                        s[u][k] = muladd(left, right[k], s[u][k]);
                }
            }
        }
    }
}

/* A tap's gradient for `units` outputs and `channels` inputs. */
INLINE void conv_w_block(const hl_conv_geometry *c, const size_t units, const size_t channels, size_t tap,
                         size_t panels, size_t full, size_t tail, const real *y, size_t y_panel, const real *x,
                         size_t x_panel, real *gw, bool add)
{
    const size_t taps = c->kernel_height * c->kernel_width;
    const size_t a = tap / c->kernel_width, b = tap % c->kernel_width;
    vec s[4][3] = { { { 0 } } };
    if (!c->taps || c->taps[tap])
        for (size_t p = 0; p < panels; p++) {
            if (p < full || tail >= HL_LANES)
                conv_w_panel(c, units, channels, a, b, HL_LANES, y + p * y_panel, x + p * x_panel, s);
            else
                conv_w_panel(c, units, channels, a, b, tail, y + p * y_panel, x + p * x_panel, s);
        }
    for (size_t u = 0; u < units; u++)
        for (size_t k = 0; k < channels; k++) {
            real *to = gw + (u * c->channels + k) * taps + tap;
            const real total = vec_total(s[u][k]);
            *to = add ? *to + total : total;
        }
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
    for (size_t o = lo; o < hi;) {
        const size_t units = hi - o >= 4 && c->lanes > 1 ? 4 : 1;
        for (size_t k = 0; k < c->channels;) {
            const size_t channels = c->channels - k >= 3 && c->lanes > 1 ? 3 : 1;
            const real *py = (const real *)y + o * y_plane, *px = (const real *)x + k * x_plane;
            real *to = (real *)gw + (o * c->channels + k) * taps;
            for (size_t t = 0; t < taps; t++) {
                if (c->lanes == 1)
                    conv_w_shared(c, o, k, t, y, x, gw, add);
                else if (units == 4 && channels == 3)
                    conv_w_block(c, 4, 3, t, panels, full, tail, py, y_panel, px, x_panel, to, add);
                else if (units == 4)
                    conv_w_block(c, 4, 1, t, panels, full, tail, py, y_panel, px, x_panel, to, add);
                else if (channels == 3)
                    conv_w_block(c, 1, 3, t, panels, full, tail, py, y_panel, px, x_panel, to, add);
                else
                    conv_w_block(c, 1, 1, t, panels, full, tail, py, y_panel, px, x_panel, to, add);
            }
            k += channels;
        }
        o += units;
    }
}
