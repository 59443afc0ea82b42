/* kernel_gemm.h - products of panels with a shared matrix, and the gradient of that matrix. Included by kernel_impl.c.
 *
 *   forward     y_p[n] = init + sum_k w[n][k] x_p[k]      unit n, depth k
 *   transposed  y_p[k] = init + sum_n w[n][k] x_p[n]      unit k, depth n
 *   gradient    gw[n][k..k+15] = sum_{p,lane} y_p[n][lane] (x_p[k..k+15][lane])
 *
 * All three are one loop, the *tile*: `units` rows of scalars, each broadcast and multiplied into two vecs, so that
 * 2 * units sums stay in registers. The two vecs are halves of an entry, or the same entry of two panels if an entry is
 * one vec. For the gradient the x panels are transposed into scratch first, so that a vec holds 16 inputs k.
 *
 * Invariant: the order of a sum depends on the matrix's shape, its mask and the unit's place, never on the panels: units
 * are cut into blocks by `block_units` alone, and only blocks of 1 or 2 units (all the units there are) split their sum. */

#define DEPTH_BLOCK 256                 /* depth per pass: a panel's part of x stays in the first cache */
#define COPY_DEPTH 128                  /* the same for the transposed product, whose weights may be copied */
#define GROUP_BLOCKS 8                  /* blocks of units that share a pass over the panels */
#define PARTS (NV < 2 ? 1 : NV / 2)     /* pairs of vecs in an entry */
#define PANELS_AT_ONCE (NV < 2 ? 2 : 1) /* panels in a pair of vecs */

enum { INIT_ZERO, INIT_VECTOR, INIT_SCALAR };

/* One call of the tile. Distances are in elements. */
typedef struct tile {
    size_t depth;  /* terms in the sum */
    const real *w; /* the scalar of unit u, term k: w[u * w_unit + k * w_term] */
    size_t w_unit, w_term;
    const real *x; /* term k: the vec at x + 16 k, and the second one x_next further */
    size_t x_next;
    int init;         /* what the sums start from */
    const real *from; /* unit u: from + u * from_unit, the second vec from_next further */
    size_t from_unit, from_next;
    real *y; /* unit u: y + u * y_unit, the second vec y_next further */
    size_t y_unit, y_next;
    size_t chunks; /* gradient only: the sum goes on `chunks` times, w_chunk and x_chunk further */
    size_t w_chunk, x_chunk;
    size_t repeat; /* products only: the same for `repeat` panels, these distances apart */
    size_t x_repeat, y_repeat, from_repeat;
} tile;

/* Without a loop, whose pragma gcc would apply to the loop around it. */
INLINE void rows_advance(const char **row, const int pointers, size_t bytes)
{
    row[0] += bytes;
    if (pointers > 1)
        row[1] += bytes;
    if (pointers > 2)
        row[2] += bytes;
}

/* The loop itself. All arguments but t are constants where it is inlined: `split` partial sums per unit (term k goes to
 * sum k mod split), `step` terms per round; `per` units have one pointer to their weights; `half`: 8 lanes alone, whose results are
 * stored twice. */
INLINE void tile_once(const tile *t, const real *t_x, const real *t_from, real *t_y, const int units, const int vecs,
                      const int split, const int per, const int half, const size_t w_unit, const size_t w_term,
                      const size_t chunks, const size_t y_unit)
{
    vec sum[UNITS][2][4];
    const int step = split > 2 ? split : 2;
    UNROLL
    for (int u = 0; u < units; u++) {
        UNROLL
        for (int v = 0; v < vecs; v++) {
            const real *from = t_from + (size_t)u * t->from_unit;
            sum[u][v][0] = t->init == INIT_ZERO     ? splat_lanes(0, half)
                           : t->init == INIT_SCALAR ? splat_lanes(*from, half)
                                                    : load_lanes(from + (v ? t->from_next : 0), half);
            UNROLL
            for (int s = 1; s < split; s++)
                sum[u][v][s] = splat_lanes(0, half);
        }
    }
    const size_t x_next = NV < 2 ? t->x_next : VL, unit = w_unit * sizeof(real), term = w_term * sizeof(real);
    const real *w_start = t->w, *x_start = t_x;
    for (size_t c = 0; c < chunks; c++, w_start += t->w_chunk, x_start += t->x_chunk) {
        const char *row[(UNITS + 2) / 3];
        const real *x = x_start, *x_end = x_start + t->depth * HL_LANES,
                   *x_rounds = x_end - t->depth % (size_t)step * HL_LANES;
        UNROLL
        for (int i = 0; i < (units + per - 1) / per; i++) {
            row[i] = (const char *)w_start + (size_t)(i * per) * unit;
            __asm__("" : "+r"(row[i])); /* keep these pointers, or the compiler makes one per unit or per load */
        }
        ONE_BY_ONE
        while (x != x_rounds) {
            UNROLL
            for (int j = 0; j < step; j++) {
                vec x0 = load_lanes(x + j * HL_LANES, half),
                    x1 = vecs > 1 ? load_lanes(x + j * HL_LANES + x_next, half) : x0;
                UNROLL
                for (int u = 0; u < units; u++) {
                    vec scalar =
                        splat_lanes(*(const real *)(row[u / per] + (size_t)(u % per) * unit + (size_t)j * term), half);
                    sum[u][0][j % split] = muladd_lanes(scalar, x0, sum[u][0][j % split], half);
                    if (vecs > 1)
                        sum[u][1][j % split] = muladd_lanes(scalar, x1, sum[u][1][j % split], half);
                }
            }
            x += step * HL_LANES;
            rows_advance(row, (units + per - 1) / per, (size_t)step * term);
        }
        ONE_BY_ONE
        while (x != x_end) {
            vec x0 = load_lanes(x, half), x1 = vecs > 1 ? load_lanes(x + x_next, half) : x0;
            UNROLL
            for (int u = 0; u < units; u++) {
                vec scalar = splat_lanes(*(const real *)(row[u / per] + (size_t)(u % per) * unit), half);
                sum[u][0][0] = muladd_lanes(scalar, x0, sum[u][0][0], half);
                if (vecs > 1)
                    sum[u][1][0] = muladd_lanes(scalar, x1, sum[u][1][0], half);
            }
            x += HL_LANES;
            rows_advance(row, (units + per - 1) / per, term);
        }
    }
    UNROLL
    for (int u = 0; u < units; u++) {
        UNROLL
        for (int v = 0; v < vecs; v++) {
            vec total = sum[u][v][0];
            if (split == 2)
                total = add_lanes(total, sum[u][v][1], half);
            if (split == 4)
                total =
                    add_lanes(add_lanes(total, sum[u][v][1], half), add_lanes(sum[u][v][2], sum[u][v][3], half), half);
            store_lanes(t_y + (size_t)u * y_unit + (v ? t->y_next : 0), total, half);
        }
    }
}

/* The loop for every panel. */
INLINE void tile_run(const tile *t, const int units, const int vecs, const int split, const int per, const int half,
                     const size_t w_unit, const size_t w_term)
{
    for (size_t r = 0; r < t->repeat; r++)
        tile_once(t, t->x + r * t->x_repeat, t->from + r * t->from_repeat, t->y + r * t->y_repeat, units, vecs, split,
                  per, half, w_unit, w_term, 1, HL_LANES);
}

/* Tiles for each number of units: of the forward product (terms of a unit are neighbours), the transposed one (units are
 * neighbours) and the gradient (units are entries apart, sums are never split as blocks start anywhere). */
#define SPLIT(units) ((units) == 1 ? 4 : (units) == 2 ? 2 : 1)
#define TILE(units, vecs)                                                                                              \
    static void tile_n_##units##_##vecs(const tile *t)                                                                 \
    {                                                                                                                  \
        tile_run(t, units, vecs, SPLIT(units), 3, 0, t->w_unit, 1);                                                    \
    }                                                                                                                  \
    static void tile_t_##units##_##vecs(const tile *t)                                                                 \
    {                                                                                                                  \
        tile_run(t, units, vecs, SPLIT(units), UNITS, 0, 1, t->w_term);                                                \
    }                                                                                                                  \
    static void tile_nh_##units##_##vecs(const tile *t)                                                                \
    {                                                                                                                  \
        tile_run(t, units, vecs, SPLIT(units), 3, 1, t->w_unit, 1);                                                    \
    }                                                                                                                  \
    static void tile_th_##units##_##vecs(const tile *t)                                                                \
    {                                                                                                                  \
        tile_run(t, units, vecs, SPLIT(units), UNITS, 1, 1, t->w_term);                                                \
    }                                                                                                                  \
    static void tile_w_##units##_##vecs(const tile *t)                                                                 \
    {                                                                                                                  \
        tile_once(t, t->x, t->from, t->y, units, vecs, 1, UNITS, 0, HL_LANES, 1, t->chunks, t->y_unit);                \
    }
typedef void tile_fn(const tile *t);

#define TILES(units) TILE(units, 1) TILE(units, 2)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
#if UNITS == 8
TILES(7)
TILES(8)
#define TILE_ROW(kind, vecs)                                                                                           \
    {                                                                                                                  \
        tile_##kind##_1_##vecs, tile_##kind##_2_##vecs, tile_##kind##_3_##vecs, tile_##kind##_4_##vecs,                \
            tile_##kind##_5_##vecs, tile_##kind##_6_##vecs, tile_##kind##_7_##vecs, tile_##kind##_8_##vecs             \
    }
#else
#define TILE_ROW(kind, vecs)                                                                                           \
    {                                                                                                                  \
        tile_##kind##_1_##vecs, tile_##kind##_2_##vecs, tile_##kind##_3_##vecs, tile_##kind##_4_##vecs,                \
            tile_##kind##_5_##vecs, tile_##kind##_6_##vecs                                                             \
    }
#endif
/* [vecs - 1][units - 1], those of panels with 8 lanes from [2] on */
static tile_fn *const tiles_n[4][UNITS] = { TILE_ROW(n, 1), TILE_ROW(n, 2), TILE_ROW(nh, 1), TILE_ROW(nh, 2) };
static tile_fn *const tiles_t[4][UNITS] = { TILE_ROW(t, 1), TILE_ROW(t, 2), TILE_ROW(th, 1), TILE_ROW(th, 2) };
static tile_fn *const tiles_w[2][UNITS] = { TILE_ROW(w, 1), TILE_ROW(w, 2) };

/* The next block when `left` units are left: full blocks, the last two nearly equal. */
INLINE size_t block_units(size_t left)
{
    return left >= 2 * UNITS ? UNITS : left > UNITS ? (left + 1) / 2 : left;
}

INLINE size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}
INLINE size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The hull of the intervals of units first .. first + count - 1, or all of [0, depth); empty is [0, 0). */
typedef struct range {
    size_t lo, hi;
} range;
static range hull(const uint32_t *lo, const uint32_t *hi, size_t first, size_t count, size_t depth)
{
    range r = { 0, depth };
    if (!lo)
        return r;
    r.lo = depth, r.hi = 0;
    for (size_t u = first; u < first + count; u++)
        if (lo[u] < hi[u]) {
            r.lo = smaller(r.lo, lo[u]);
            r.hi = larger(r.hi, hi[u]);
        }
    if (r.lo >= r.hi)
        r.lo = r.hi = 0;
    return r;
}

/* A product in terms of units and depth, whichever way the matrix is read. */
typedef struct product {
    const hl_gemm *g;
    size_t units, depth;
    const uint32_t *lo, *hi; /* interval of each unit, or NULL */
    tile_fn *const (*tiles)[UNITS];
    size_t block; /* depths per pass */
} product;

/* A group of blocks of units: where each starts, its depth range, and the hull of these. */
typedef struct group {
    size_t blocks, end;
    size_t first[GROUP_BLOCKS], units[GROUP_BLOCKS];
    range span[GROUP_BLOCKS], all;
} group;

static void group_next(const product *m, size_t first, group *g)
{
    g->blocks = 0;
    while (g->blocks < GROUP_BLOCKS && first < m->units) {
        size_t b = g->blocks++, count = block_units(m->units - first);
        g->first[b] = first;
        g->units[b] = count;
        g->span[b] = hull(m->lo, m->hi, first, count, m->depth);
        first += count;
    }
    g->end = first;
    g->all = hull(m->lo, m->hi, g->first[0], first - g->first[0], m->depth);
}

#define SWEEP_VALUES                                                                                                   \
    4096 /* of x, in entries of 16: the panels that one block of units goes over before the next block */

/* Matrices that do not stay in the second cache: what comes next is fetched while a tile runs. */
INLINE bool fetches(const product *m)
{
    return m->units * m->depth * sizeof(real) > 256 * 1024;
}

/* The weights of the block after b, over the depths at hand or, after the last one, the next depths of the group or the next
 * group. */
static void fetch_weights(const product *m, const group *s, size_t b, size_t k0, size_t k1)
{
    const hl_gemm *g = m->g;
    const bool last = b + 1 == s->blocks, deeper = last && k1 < s->all.hi;
    const size_t first = !last ? s->first[b + 1] : deeper ? s->first[0] : s->end;
    const size_t end = smaller(first + UNITS, m->units), start = !last ? k0 : deeper ? k1 : 0;
    for (size_t u = first; u < end; u++) {
        const size_t lo = larger(start, m->lo ? m->lo[u] : 0),
                     hi = smaller(start + m->block, m->hi ? m->hi[u] : m->depth);
        for (size_t k = lo; k < hi; k += 64 / sizeof(real))
            __builtin_prefetch((const real *)g->w + u * g->ldw + k, 0, 2);
    }
}

/* For the transposed product: part b of the rows from depth k1 on that group_pass will copy next. */
static void fetch_copy(const product *m, const group *s, size_t b, size_t k1)
{
    const hl_gemm *g = m->g;
    const size_t first = k1 < s->all.hi ? s->first[0] : s->end, share = COPY_DEPTH / GROUP_BLOCKS;
    const size_t start = (k1 < s->all.hi ? k1 : 0) + b * share, end = smaller(start + share, m->depth);
    const size_t count = first < m->units ? smaller(GROUP_BLOCKS * UNITS, m->units - first) : 0;
    for (size_t k = start; k < end; k++)
        for (size_t j = 0; j < count; j += 64 / sizeof(real))
            __builtin_prefetch((const real *)g->w + k * g->ldw + first + j, 0, 2);
}

/* All blocks of a group, over depths [k0, k1), for `count` panels from p on, of 8 lanes if `half`. w is the scalar of the group's first unit
 * at depth k0. Where a pair of vecs is two panels, an odd last panel takes tiles of one vec. */
static void group_run(const product *m, const group *s, size_t k0, size_t k1, size_t p, size_t count, bool half,
                      const real *w, size_t w_unit, size_t w_term)
{
    const hl_gemm *g = m->g;
    const real *init = g->init.p;
    const size_t pairs = count >= PANELS_AT_ONCE, step = pairs ? PANELS_AT_ONCE : 1;
    real *y = (real *)g->y + p * g->y_panel;
    tile t = { .w_unit = w_unit, .w_term = w_term, .init = INIT_ZERO, .from = y, .repeat = count / step };
    t.x_next = NV < 2 ? g->x_panel : VL;
    t.y_next = NV < 2 ? g->y_panel : VL;
    t.x_repeat = step * g->x_panel;
    t.y_repeat = step * g->y_panel;
    for (size_t b = 0; b < s->blocks; b++) {
        const size_t first = s->first[b], lo = larger(s->span[b].lo, k0), hi = smaller(s->span[b].hi, k1);
        if (lo >= hi && k0 > 0)
            continue;
        t.depth = lo < hi ? hi - lo : 0;
        const size_t from = t.depth ? lo : k0;
        t.w = w + (first - s->first[0]) * w_unit + (from - k0) * w_term;
        if (p == 0 && fetches(m)) {
            if (m->tiles == tiles_n)
                fetch_weights(m, s, b, k0, k1);
            else if (g->panels > 1)
                fetch_copy(m, s, b, k1);
        }
        for (size_t part = 0; part < (half ? (PARTS + 1) / 2 : PARTS); part++) {
            t.x = (const real *)g->x + p * g->x_panel + from * HL_LANES + part * 2 * VL;
            t.y = y + first * HL_LANES + part * 2 * VL;
            if (k0 > 0) {
                t.init = INIT_VECTOR;
                t.from = t.y;
                t.from_unit = HL_LANES;
                t.from_next = t.y_next;
                t.from_repeat = t.y_repeat;
            } else if (init) {
                t.init = g->init.scalar ? INIT_SCALAR : INIT_VECTOR;
                t.from_unit = (size_t)g->init.step;
                t.from = init + p * g->init_panel + first * t.from_unit + (g->init.scalar ? 0 : part * 2 * VL);
                t.from_next = NV < 2 ? g->init_panel : VL;
                t.from_repeat = step * g->init_panel;
            }
            const size_t vecs = NV < 2 ? step : NV == 2 && half ? 1 : 2;
            m->tiles[vecs - 1 + (half ? 2 : 0)][s->units[b] - 1](&t);
        }
    }
    if (count % step)
        group_run(m, s, k0, k1, p + count - 1, 1, half, w, w_unit, w_term);
}

/* The panels, as many at a time as stay in the first cache. */
static void group_sweep(const product *m, const group *s, size_t k0, size_t k1, const real *w, size_t w_unit,
                        size_t w_term)
{
    const size_t fit = SWEEP_VALUES / HL_LANES / larger(k1 - k0, 1) / PANELS_AT_ONCE * PANELS_AT_ONCE;
    const size_t most = larger(fit, PANELS_AT_ONCE), whole = m->g->panels - m->g->half;
    for (size_t p = 0, count; p < m->g->panels; p += count) {
        count = smaller(most, p < whole ? whole - p : m->g->panels - p);
        group_run(m, s, k0, k1, p, count, p >= whole, w, w_unit, w_term);
    }
}

INLINE void copy_values(const real *from, size_t count, real *to)
{
    size_t i = 0;
    for (; i + VL <= count; i += VL)
        store(to + i, load(from + i));
    for (; i < count; i++)
        to[i] = from[i];
}

/* For the transposed product the weights of a term lie ldw apart, often by a power of two that maps them to few cache sets: if they are
 * far apart and used more than once, depths [lo, hi) are copied together first. Apart from group_pass, as the copy takes much stack. */
static __attribute__((noinline)) void group_sweep_copied(const product *m, const group *s, size_t k0, size_t k1,
                                                         size_t lo, size_t hi)
{
    const hl_gemm *g = m->g;
    const size_t first = s->first[0], w_term = GROUP_BLOCKS * UNITS;
    real copy[COPY_DEPTH * GROUP_BLOCKS * UNITS];
    for (size_t k = lo; k < hi; k++)
        copy_values((const real *)g->w + k * g->ldw + first, s->end - first, copy + (k - k0) * w_term);
    group_sweep(m, s, k0, k1, copy, 1, w_term);
}

/* One group over a block of depths from k0 on, all panels. */
static void group_pass(const product *m, const group *s, size_t k0)
{
    const hl_gemm *g = m->g;
    const size_t k1 = smaller(k0 + m->block, m->depth), first = s->first[0];
    const size_t lo = larger(s->all.lo, k0), hi = smaller(s->all.hi, k1);
    const bool transposed = m->tiles == tiles_t;
    if (lo >= hi && k0 > 0)
        return;
    if (transposed && g->panels > 1 && g->ldw * sizeof(real) >= 2048)
        group_sweep_copied(m, s, k0, k1, lo, hi);
    else if (transposed)
        group_sweep(m, s, k0, k1, (const real *)g->w + k0 * g->ldw + first, 1, g->ldw);
    else
        group_sweep(m, s, k0, k1, (const real *)g->w + first * g->ldw + k0, g->ldw, 1);
}

/* If all of x fits in the second cache, a group runs through all depths while its results stay in the first; else all
 * groups run through a block of depths. The order of the sums is the same. */
static void product_run(const product *m)
{
    const bool deep = m->g->panels * m->depth * HL_LANES * sizeof(real) <= 512 * 1024;
    const size_t stride = deep ? larger(m->depth, 1) : m->block;
    for (size_t start = 0; start == 0 || start < m->depth; start += stride) {
        const size_t end = smaller(start + stride, m->depth);
        group s;
        for (size_t first = 0; first < m->units; first = s.end) {
            group_next(m, first, &s);
            for (size_t k0 = start; k0 == start || k0 < end; k0 += m->block)
                group_pass(m, &s, k0);
        }
    }
}

/* Whether x, `size` values, has no infinity and no NaN. */
static bool all_finite(const real *x, size_t size)
{
    ivec bad = { 0 };
    for (size_t i = 0; i < size; i += VL)
        bad |= ~(ivec)(absolute(load(x + i)) < splat(INFINITE));
    for (size_t j = 0; j < VL; j++)
        if (bad[j])
            return false;
    return true;
}

/* Depths [k0, k1) of a panel, those outside of [lo, hi) replaced by zeros of the same sign, whose product with a weight of zero
 * is the same bits as that of any finite value. */
static void copy_seen(const real *x, size_t k0, size_t k1, size_t lo, size_t hi, real *to)
{
    for (size_t k = k0; k < k1; k++)
        for (size_t j = 0; j < HL_LANES; j += VL) {
            vec v = load(x + k * HL_LANES + j);
            store(to + (k - k0) * HL_LANES + j, k >= lo && k < hi ? v : with_sign_of(splat(0), v));
        }
}

/* Unit n, of the block of `units` from `first` on, for one panel: the tile of the whole block, on the inputs that n sees. */
static void unit_seen(const product *m, size_t p, size_t n, size_t first, size_t units, range span, real *to)
{
    const hl_gemm *g = m->g;
    const real *x = (const real *)g->x + p * g->x_panel, *init = g->init.p;
    real seen[DEPTH_BLOCK * HL_LANES], sum[UNITS * HL_LANES];
    for (size_t k0 = 0; k0 == 0 || k0 < m->depth; k0 += DEPTH_BLOCK) {
        const size_t lo = larger(span.lo, k0), hi = smaller(span.hi, k0 + DEPTH_BLOCK);
        if (lo >= hi && k0 > 0)
            continue;
        copy_seen(x, lo, larger(lo, hi), m->lo[n], m->hi[n], seen);
        tile t = { .depth = lo < hi ? hi - lo : 0, .w = (const real *)g->w + first * g->ldw + lo, .repeat = 1 };
        t.w_unit = g->ldw;
        t.w_term = 1;
        t.x_next = t.y_next = t.from_next = VL;
        for (size_t part = 0; part < HL_LANES; part += NV < 2 ? VL : 2 * VL) {
            t.x = seen + part;
            t.y = sum + part;
            t.from = t.y;
            t.from_unit = HL_LANES;
            t.init = k0 > 0 ? INIT_VECTOR : INIT_ZERO;
            if (k0 == 0 && init) {
                t.init = g->init.scalar ? INIT_SCALAR : INIT_VECTOR;
                t.from_unit = (size_t)g->init.step;
                t.from = init + p * g->init_panel + first * t.from_unit + (g->init.scalar ? 0 : part);
            }
            m->tiles[NV < 2 ? 0 : 1][units - 1](&t);
        }
    }
    memcpy(to, sum + (n - first) * HL_LANES, HL_LANES * sizeof(real));
}

/* A panel with values that are not finite. A block of units runs over the hull of their intervals, where zero weights meet
 * inputs that a unit must not see, and 0 * infinity is NaN: each unit gets a copy of the inputs without these. Slow; the bits of
 * finite rows are those of product_run. */
static void panel_seen(const product *m, size_t p)
{
    const hl_gemm *g = m->g;
    real result[UNITS * HL_LANES]; /* y may be init, which all units of a block read */
    for (size_t first = 0, units; first < m->units; first += units) {
        units = block_units(m->units - first);
        const range span = hull(m->lo, m->hi, first, units, m->depth);
        for (size_t n = first; n < first + units; n++)
            unit_seen(m, p, n, first, units, span, result + (n - first) * HL_LANES);
        memcpy((real *)g->y + p * g->y_panel + first * HL_LANES, result, units * HL_LANES * sizeof(real));
    }
}

/* Runs of panels whose inputs are finite, and the others one by one. */
static void product_run_seen(const product *m)
{
    const size_t panels = m->g->panels;
    for (size_t p = 0, end; p < panels; p = end) {
        for (end = p; end < panels && all_finite((const real *)m->g->x + end * m->g->x_panel, m->depth * HL_LANES);)
            end++;
        if (end == p) {
            panel_seen(m, end++);
            continue;
        }
        hl_gemm part = *m->g;
        product run = *m;
        run.g = &part;
        part.panels = end - p;
        part.half = end > panels - part.half ? smaller(end - p, end - (panels - part.half)) : 0;
        part.x = (const real *)part.x + p * part.x_panel;
        part.y = (real *)part.y + p * part.y_panel;
        if (part.init.p)
            part.init.p = (const real *)part.init.p + p * part.init_panel;
        product_run(&run);
    }
}

static void gemm(const hl_gemm *g)
{
    const hl_mask *mask = g->mask;
    const product m = { g, g->out, g->in, mask ? mask->lo : NULL, mask ? mask->hi : NULL, tiles_n, DEPTH_BLOCK };
    (mask ? product_run_seen : product_run)(&m);
}

static void gemm_t(const hl_gemm *g)
{
    const hl_mask *mask = g->mask;
    const product m = { g, g->in, g->out, mask ? mask->tlo : NULL, mask ? mask->thi : NULL, tiles_t, COPY_DEPTH };
    product_run(&m);
}

/* Inputs k0 .. k0 + 15 of every panel as vecs over k: to[p * 16 + lane][16]. Inputs past the last are 0. */
static void transpose_inputs(const hl_gemm_w *g, size_t k0, real *to)
{
    const size_t count = smaller(HL_LANES, g->in - k0);
    for (size_t p = 0; p < g->panels; p++, to += HL_LANES * HL_LANES) {
        const real *x = (const real *)g->x + p * g->x_panel + k0 * HL_LANES;
        if (count < HL_LANES)
            memset(to, 0, HL_LANES * HL_LANES * sizeof(real));
        transpose(count, HL_LANES, x, HL_LANES, to, HL_LANES);
    }
}

/* Copy a tile [units][16] from the rows of gw, or to them: inputs k0 .. k0 + 15, cut to each unit's interval. What is read
 * outside of it is 0. */
static void copy_gradient(const hl_gemm_w *g, real *sums, size_t first, size_t units, size_t k0, bool read)
{
    for (size_t u = 0; u < units; u++, sums += HL_LANES) {
        const size_t n = first + u;
        const size_t lo = g->mask ? larger(g->mask->lo[n], k0) : k0;
        const size_t hi = smaller(k0 + HL_LANES, g->mask ? smaller(g->mask->hi[n], g->in) : g->in);
        real *row = (real *)g->gw + n * g->ldw;
        if (read)
            memset(sums, 0, HL_LANES * sizeof(real));
        for (size_t k = lo; k < hi; k++)
            *(read ? &sums[k - k0] : &row[k]) = read ? row[k] : sums[k - k0];
    }
}

/* Do all units of a block have all inputs k0 .. k1 - 1? */
INLINE bool whole(const hl_gemm_w *g, size_t first, size_t units, size_t k0, size_t k1)
{
    if (k1 > g->in)
        return false;
    for (size_t n = first; g->mask && n < first + units; n++)
        if (g->mask->lo[n] > k0 || g->mask->hi[n] < k1)
            return false;
    return true;
}

/* The sums of one block of units and 16 inputs (or 32, where a pair of vecs is two groups of inputs): straight into gw if
 * the block is whole, else by way of `sums`. Either way they start from gw if it is added to, so that a unit's bits do not
 * depend on its neighbours in the block. */
static void gradient_tile(const hl_gemm_w *g, tile *t, size_t first, size_t units, size_t k0, size_t count,
                          const real *xt)
{
    real sums[2][UNITS * HL_LANES];
    const size_t full = smaller(g->full, g->panels);
    const bool direct = whole(g, first, units, k0, k0 + count * HL_LANES);
    real *to = direct ? (real *)g->gw + first * g->ldw + k0 : sums[0];
    t->y_unit = t->from_unit = direct ? g->ldw : HL_LANES;
    t->y_next = t->from_next = NV >= 2 ? VL : direct ? HL_LANES : UNITS * HL_LANES;
    for (size_t i = 0; i < count && g->add && !direct; i++)
        copy_gradient(g, sums[i], first, units, k0 + i * HL_LANES, true);
    for (size_t part = 0; part < PARTS && k0 + part * 2 * VL < g->in; part++) {
        const size_t left = g->in - k0 - part * 2 * VL; /* inputs; if one vec holds them, the second is not computed */
        tile_fn *run = tiles_w[NV < 2 ? count - 1 : left > VL][units - 1];
        t->y = to + part * 2 * VL;
        t->from = t->y;
        t->init = g->add ? INIT_VECTOR : INIT_ZERO;
        t->w = (const real *)g->y + first * HL_LANES;
        t->x = xt + part * 2 * VL;
        t->depth = HL_LANES;
        t->chunks = full;
        run(t);
        if (full < g->panels) {
            t->init = INIT_VECTOR;
            t->w += full * g->y_panel;
            t->x += full * HL_LANES * HL_LANES;
            t->depth = g->tail;
            t->chunks = g->panels - full;
            run(t);
        }
    }
    for (size_t i = 0; i < count && !direct; i++)
        copy_gradient(g, sums[i], first, units, k0 + i * HL_LANES, false);
}

/* One or two units in all: a transposition would cost more than the sums. */
static void gemm_w_thin(const hl_gemm_w *g)
{
    for (size_t n = g->out_lo; n < g->out_hi; n++) {
        const size_t lo = g->mask ? g->mask->lo[n] : 0, hi = g->mask ? smaller(g->mask->hi[n], g->in) : g->in;
        if (lo < hi)
            sum_panels(hi - lo, g->panels, g->full, g->tail, (const real *)g->x + lo * HL_LANES, g->x_panel,
                       (const real *)g->y + n * HL_LANES, g->y_panel, (real *)g->gw + n * g->ldw + lo, g->add);
    }
}

/* Bring the rows of gw that block b of the group will write at inputs k and on to the first cache. */
INLINE void fetch_gradient(const hl_gemm_w *g, const group *s, size_t b, size_t k)
{
    for (size_t n = s->first[b]; n < s->first[b] + s->units[b]; n++)
        for (size_t i = k; i < smaller(k + PANELS_AT_ONCE * HL_LANES, g->in); i += 64 / sizeof(real))
            __builtin_prefetch((const real *)g->gw + n * g->ldw + i, 1, 3);
}

static void gemm_w(const hl_gemm_w *g)
{
    if (g->out <= 2) {
        gemm_w_thin(g);
        return;
    }
    const product m = {
        .units = g->out_hi, .depth = g->in, .lo = g->mask ? g->mask->lo : NULL, .hi = g->mask ? g->mask->hi : NULL
    };
    const size_t pitch = g->panels * HL_LANES * HL_LANES; /* elements of 16 transposed inputs */
    real *xt = g->scratch;
    const range all = hull(m.lo, m.hi, g->out_lo, g->out_hi - g->out_lo, g->in);
    for (size_t k = all.lo / HL_LANES * HL_LANES; k < all.hi; k += HL_LANES)
        transpose_inputs(g, k, xt + k / HL_LANES * pitch);
    tile t = { .w_unit = HL_LANES, .w_term = 1, .w_chunk = g->y_panel, .x_chunk = HL_LANES * HL_LANES };
    t.x_next = NV < 2 ? pitch : VL;
    const bool large = g->out * g->in * sizeof(real) > 256 * 1024;
    group s;
    for (size_t first = g->out_lo; first < g->out_hi; first = s.end) {
        group_next(&m, first, &s);
        for (size_t k = s.all.lo / HL_LANES * HL_LANES; k < s.all.hi; k += PANELS_AT_ONCE * HL_LANES)
            for (size_t b = 0; b < s.blocks; b++) {
                if (s.span[b].hi <= k || s.span[b].lo >= k + PANELS_AT_ONCE * HL_LANES)
                    continue;
                const size_t count = smaller(PANELS_AT_ONCE, (s.all.hi - k + HL_LANES - 1) / HL_LANES);
                if (large)
                    fetch_gradient(g, &s, b + 1 < s.blocks ? b + 1 : 0,
                                   b + 1 < s.blocks ? k : k + PANELS_AT_ONCE * HL_LANES);
                gradient_tile(g, &t, s.first[b], s.units[b], k, count, xt + k / HL_LANES * pitch);
            }
    }
}
