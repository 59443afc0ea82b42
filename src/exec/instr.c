/* instr.c - run one instruction on some panels: from operands to kernel calls. */
#include <string.h>

#include "exec/plan.h"

char *hl_address(const hl_frame *f, const hl_ref *r, size_t q)
{
    const hl_plan *p = f->p;
    size_t e = p->element;
    switch (r->space) {
    case HL_SPACE_SHARED:
        return p->shared + (r->offset + (q % f->axis) * r->axis_step) * e;
    case HL_SPACE_PARAM:
        return (char *)(uintptr_t)f->param[r->offset] + (q % f->axis) * r->axis_step * e;
    case HL_SPACE_CHUNK:
        return p->chunk + (r->offset + (q / f->axis) * r->row_step + (q % f->axis) * r->axis_step) * e;
    case HL_SPACE_TILE:
        return f->tile + (r->offset + (q - f->tile_q) * r->row_step) * e;
    default:
        return f->panel + r->offset * e;
    }
}

size_t hl_half_panels(const hl_frame *f, size_t q, size_t panels, size_t stride)
{
    size_t whole = f->full > q ? (f->full - q + stride - 1) / stride : 0;
    return f->tail <= HL_LANES / 2 && panels > whole ? panels - whole : 0;
}

/* Elements from panel q to panel q + stride of an operand that has the axis; stride is 1 or the axis. */
static size_t panel_step(const hl_frame *f, const hl_ref *r, size_t stride)
{
    if (r->space != HL_SPACE_CHUNK)
        return r->row_step * stride;
    return f->axis > 1 && stride == 1 ? r->axis_step : r->row_step;
}

static hl_arg arg(const hl_frame *f, const hl_operand *o, size_t q)
{
    return (hl_arg){ hl_address(f, &o->ref, q), o->step, o->scalar };
}

/* Swish and its derivatives, of this instruction and those joined to it. */
static void swish(const hl_frame *f, const hl_instr *t, size_t q, size_t entries)
{
    void *y[3] = { NULL };
    hl_arg factor = { NULL, 0, 0 };
    for (int i = 0; i <= t->joined; i++) {
        y[t[i].kernel - HL_UN_SWISH] = hl_address(f, &t[i].out.ref, q);
        if (t[i].inputs > 1)
            factor = arg(f, &t[i].in[1], q);
    }
    f->p->k->swish(entries, hl_address(f, &t->in[0].ref, q), factor, y);
}

static void elementwise(const hl_frame *f, const hl_instr *t, size_t q, size_t entries)
{
    const hl_kernels *k = f->p->k;
    if (t->joined < 0)
        return;
    void *y = hl_address(f, &t->out.ref, q);
    switch (t->code) {
    case HL_DO_UNARY:
        if (t->joined)
            k->tanh(entries, hl_address(f, &t->in[0].ref, q), arg(f, &t[1].in[0], q), y,
                    hl_address(f, &t[1].out.ref, q));
        else
            k->unary[t->kernel](entries, hl_address(f, &t->in[0].ref, q), y);
        break;
    case HL_DO_BINARY:
        k->binary[t->kernel](entries, arg(f, &t->in[0], q), arg(f, &t->in[1], q), y);
        break;
    case HL_DO_SWISH:
        swish(f, t, q, entries);
        break;
    default:
        k->ternary[t->kernel](entries, arg(f, &t->in[0], q), arg(f, &t->in[1], q), arg(f, &t->in[2], q), y);
    }
}

void hl_instr_panel(const hl_frame *f, const hl_instr *t, size_t q)
{
    elementwise(f, t, q, t->entries);
}

/* One call for all panels. An argument of one entry per panel steps through them, whatever it is within a panel. */
static void elementwise_wide(const hl_frame *f, const hl_instr *t)
{
    hl_instr copy = *t;
    hl_operand in[3];
    for (int i = 0; i < t->inputs; i++) {
        in[i] = t->in[i];
        if (!in[i].scalar)
            in[i].step = HL_LANES;
    }
    copy.in = in;
    elementwise(f, &copy, f->q0, t->entries * (f->q1 - f->q0));
}

/* ---- products ---- */

size_t hl_instr_units(const hl_instr *t)
{
    bool product = t->code == HL_DO_LINEAR || t->code == HL_DO_LINEAR_T;
    return product && t->m == 1 && t->in[1].ref.axis_step == 0 ? (t->code == HL_DO_LINEAR ? t->n : t->k) : 0;
}

/* Results lo <= u < hi of a product: move every pointer to the first of them. */
static void take_units(const hl_plan *p, bool forward, size_t lo, size_t hi, hl_gemm *g, hl_mask *mask)
{
    size_t e = p->element;
    g->w = (const char *)g->w + lo * (forward ? g->ldw : 1) * e;
    g->y = (char *)g->y + lo * HL_LANES * e;
    if (g->init.p)
        g->init.p = (const char *)g->init.p + lo * (size_t)g->init.step * e;
    *(forward ? &g->out : &g->in) = hi - lo;
    if (g->mask) {
        *mask = *g->mask;
        mask->lo += forward ? lo : 0;
        mask->hi += forward ? lo : 0;
        mask->tlo += forward ? 0 : lo;
        mask->thi += forward ? 0 : lo;
        g->mask = mask;
    }
}

/* The panels of a product that one call can take, as weights are the same and every operand steps evenly: all, those of one index of the
 * axis, or those of one row. */
typedef enum calls { CALL_ALL, CALL_INDEX, CALL_ROW } calls;

static calls calls_of(const hl_frame *f, const hl_instr *t)
{
    const hl_operand *init = t->inputs > 2 ? &t->in[2] : NULL;
    if (t->in[1].ref.axis_step != 0 || (init && init->scalar && init->ref.axis_step != 0))
        return CALL_INDEX;
    if (!init || init->scalar || f->axis == 1 || init->ref.space != HL_SPACE_CHUNK || init->ref.axis_step != 0)
        return CALL_ALL;
    return f->axis * f->axis < f->q1 - f->q0 ? CALL_INDEX : CALL_ROW; /* what has more panels */
}

/* Results lo <= u < hi of `panels` panels from q on, `stride` apart. */
static void linear(const hl_frame *f, const hl_instr *t, size_t lo, size_t hi, size_t q, size_t panels, size_t stride)
{
    const hl_plan *p = f->p;
    const hl_operand *init = t->inputs > 2 ? &t->in[2] : NULL;
    bool forward = t->code == HL_DO_LINEAR;
    size_t x_size = forward ? t->k : t->n, y_size = forward ? t->n : t->k;
    for (size_t m = 0; m < t->m; m++) {
        hl_mask mask;
        hl_gemm g = {
            .panels = panels, .out = t->n, .in = t->k, .ldw = t->k, .mask = p->dense_masks ? NULL : t->attr.mask
        };
        g.half = hl_half_panels(f, q, panels, stride);
        g.w = hl_address(f, &t->in[1].ref, q);
        g.x = hl_address(f, &t->in[0].ref, q) + m * x_size * HL_LANES * p->element;
        g.x_panel = panel_step(f, &t->in[0].ref, stride);
        g.y = hl_address(f, &t->out.ref, q) + m * y_size * HL_LANES * p->element;
        g.y_panel = panel_step(f, &t->out.ref, stride);
        if (init) {
            g.init = arg(f, init, q);
            g.init_panel = init->scalar ? 0 : panel_step(f, &init->ref, stride);
        }
        if (hi - lo < y_size)
            take_units(p, forward, lo, hi, &g, &mask);
        (forward ? p->k->gemm : p->k->gemm_t)(&g);
    }
}

void hl_instr_linear(const hl_frame *f, const hl_instr *t, size_t lo, size_t hi)
{
    calls of = calls_of(f, t);
    size_t panels = f->q1 - f->q0;
    if (of == CALL_ALL)
        linear(f, t, lo, hi, f->q0, panels, 1);
    for (size_t i = 0; of == CALL_INDEX && i < panels && i < f->axis; i++)
        linear(f, t, lo, hi, f->q0 + i, (panels - i + f->axis - 1) / f->axis, f->axis);
    for (size_t q = f->q0, count; of == CALL_ROW && q < f->q1; q += count) {
        count = f->axis - q % f->axis < f->q1 - q ? f->axis - q % f->axis : f->q1 - q;
        linear(f, t, lo, hi, q, count, 1);
    }
}

/* Panels of the frame with 16 valid rows. */
static size_t full_panels(const hl_frame *f)
{
    return f->full <= f->q0 ? 0 : f->full >= f->q1 ? f->q1 - f->q0 : f->full - f->q0;
}

/* Weight gradient of units [lo, hi) of group `group` over the frame's panels. */
static void outer(const hl_frame *f, const hl_instr *t, size_t group, size_t lo, size_t hi, char *value, bool add)
{
    const hl_plan *p = f->p;
    size_t e = p->element;
    for (size_t m = 0; m < t->m; m++) {
        size_t at = (group * t->m + m) * HL_LANES * e;
        hl_gemm_w g = { .panels = f->q1 - f->q0,
                        .full = full_panels(f),
                        .tail = f->tail,
                        .out = t->n,
                        .in = t->k,
                        .out_lo = lo,
                        .out_hi = hi,
                        .ldw = t->k,
                        .scratch = f->scratch,
                        .add = add || m > 0,
                        .mask = p->dense_masks ? NULL : t->attr.mask };
        g.y = hl_address(f, &t->in[0].ref, f->q0) + at * t->n;
        g.y_panel = panel_step(f, &t->in[0].ref, 1);
        g.x = hl_address(f, &t->in[1].ref, f->q0) + at * t->k;
        g.x_panel = panel_step(f, &t->in[1].ref, 1);
        g.gw = value + group * t->n * t->k * e;
        p->k->gemm_w(&g);
    }
}

static void sum_rows(const hl_frame *f, const hl_instr *t, size_t lo, size_t hi, char *value, bool add)
{
    const hl_plan *p = f->p;
    size_t e = p->element;
    const char *x = hl_address(f, &t->in[0].ref, f->q0);
    for (size_t m = 0; m < t->m; m++)
        p->k->lane_sum(hi - lo, f->q1 - f->q0, full_panels(f), f->tail, x + (m * t->n + lo) * HL_LANES * e,
                       panel_step(f, &t->in[0].ref, 1), value + lo * e, add || m > 0);
}

static void zero_outside(const hl_mask *m, size_t e, size_t lo, size_t hi, char *value)
{
    for (size_t n = lo; n < hi; n++) {
        memset(value + n * m->in * e, 0, m->lo[n] * e);
        memset(value + (n * m->in + m->hi[n]) * e, 0, (m->in - m->hi[n]) * e);
    }
}

void hl_instr_reduce(const hl_frame *f, const hl_instr *t, size_t part, size_t parts, char *value, bool add)
{
    size_t units = t->code == HL_DO_OUTER ? t->n : t->code == HL_DO_CONV_W ? t->shape.dim[0] : t->n;
    if (t->code == HL_DO_OUTER && t->groups > 1) {
        for (size_t i = t->groups * part / parts; i < t->groups * (part + 1) / parts; i++)
            outer(f, t, i, 0, t->n, value, add);
        return;
    }
    size_t lo = units * part / parts, hi = units * (part + 1) / parts;
    if (lo == hi)
        return;
    if (t->code == HL_DO_OUTER) {
        if (!add && t->attr.mask)
            zero_outside(t->attr.mask, f->p->element, lo, hi, value);
        outer(f, t, 0, lo, hi, value, add);
    } else if (t->code == HL_DO_CONV_W) {
        hl_conv_weights(f, t, lo, hi, HL_LANES, value, add);
    } else {
        sum_rows(f, t, lo, hi, value, add);
    }
}

/* The same inside a segment, into the partial sums of the group at hand. */
static void reduce_tile(const hl_frame *f, const hl_instr *t)
{
    const hl_reduction *r = &f->p->reduction[t->reduction];
    char *value = f->partials + r->partial * f->p->element;
    if (t->code == HL_DO_OUTER) {
        if (f->first && t->attr.mask)
            zero_outside(t->attr.mask, f->p->element, 0, t->n, value);
        outer(f, t, 0, 0, t->n, value, !f->first);
    } else {
        sum_rows(f, t, 0, t->n, value, !f->first);
    }
}

/* ---- one panel or one shared value; `lanes` is 16 or 1 ---- */

static void matmul(const hl_plan *p, const hl_instr *t, size_t lanes, const char *a, const char *b, char *y)
{
    size_t r = (size_t)t->shape.rank, e = p->element * lanes;
    size_t m = t->shape.dim[r - 2], n = t->shape.dim[r - 1];
    size_t kk = t->in_shape.dim[t->attr.i[0] ? r - 2 : r - 1], repeat = hl_shape_size(&t->shape) / (m * n);
    size_t ai = t->attr.i[0] ? 1 : kk, ak = t->attr.i[0] ? m : 1;
    size_t bk = t->attr.i[1] ? 1 : n, bj = t->attr.i[1] ? kk : 1;
    for (size_t i = 0; i < repeat; i++, a += m * kk * e, b += kk * n * e, y += m * n * e)
        p->k->lane_matmul(m, n, kk, lanes, a, ai, ak, b, bk, bj, y);
}

/* [outer][mid][inner] around an axis */
typedef struct split {
    size_t outer, mid, inner;
} split;

static split split_at(const hl_shape *s, int axis)
{
    split r = { 1, s->dim[axis], 1 };
    for (int i = 0; i < s->rank; i++) {
        r.outer *= i < axis ? s->dim[i] : 1;
        r.inner *= i > axis ? s->dim[i] : 1;
    }
    return r;
}

static void gather(const hl_instr *t, int axis, size_t bytes, const char *x, char *y)
{
    split s = split_at(&t->in_shape, axis);
    size_t inner = s.inner * bytes;
    for (size_t o = 0; o < s.outer; o++, x += s.mid * inner)
        for (size_t j = 0; j < t->attr.list_len; j++, y += inner)
            memcpy(y, x + (size_t)t->attr.list[j] * inner, inner);
}

static void scatter(const hl_plan *p, const hl_instr *t, int axis, size_t lanes, const char *x, char *y)
{
    split s = split_at(&t->shape, axis);
    size_t inner = s.inner * lanes * p->element;
    memset(y, 0, s.outer * s.mid * inner);
    for (size_t o = 0; o < s.outer; o++, y += s.mid * inner)
        for (size_t j = 0; j < t->attr.list_len; j++, x += inner)
            p->k->add(s.inner * lanes, x, y + (size_t)t->attr.list[j] * inner);
}

/* y[index] = x[strides . index] for every index of the result, entry by entry. */
static void strided_copy(const hl_plan *p, const hl_shape *s, const size_t *stride, size_t lanes, size_t x_lanes,
                         const char *x, char *y)
{
    size_t index[HL_MAX_RANK] = { 0 }, at = 0, size = hl_shape_size(s), e = p->element;
    for (size_t i = 0; i < size; i++, y += lanes * e) {
        if (x_lanes == lanes)
            memcpy(y, x + at * lanes * e, lanes * e);
        else
            p->k->fill(lanes, x + at * e, y);
        for (int d = s->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < s->dim[d])
                break;
            at -= stride[d] * s->dim[d];
            index[d] = 0;
        }
    }
}

static void natural_strides(const hl_shape *s, size_t *stride)
{
    size_t step = 1;
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = step;
        step *= s->dim[i];
    }
}

static void broadcast(const hl_plan *p, const hl_instr *t, size_t lanes, size_t x_lanes, const char *x, char *y)
{
    size_t natural[HL_MAX_RANK], stride[HL_MAX_RANK];
    natural_strides(&t->in_shape, natural);
    for (int i = 0; i < t->shape.rank; i++) {
        int at = i - (t->shape.rank - t->in_shape.rank);
        stride[i] = at < 0 || t->in_shape.dim[at] == 1 ? 0 : natural[at];
    }
    strided_copy(p, &t->shape, stride, lanes, x_lanes, x, y);
}

static void permute(const hl_plan *p, const hl_instr *t, size_t lanes, int skip, const char *x, char *y)
{
    size_t natural[HL_MAX_RANK], stride[HL_MAX_RANK];
    natural_strides(&t->in_shape, natural);
    for (int i = 0; i < t->shape.rank; i++)
        stride[i] = natural[t->attr.list[i + skip] - skip];
    strided_copy(p, &t->shape, stride, lanes, lanes, x, y);
}

/* The part's size along the axis follows from its panel's size. */
static void concat(const hl_frame *f, const hl_instr *t, int axis, size_t lanes, size_t q, char *y)
{
    split s = split_at(&t->shape, axis);
    size_t unit = s.inner * lanes * f->p->element, at = 0;
    for (int i = 0; i < t->inputs; i++) {
        const char *x = hl_address(f, &t->in[i].ref, q);
        size_t mid = (size_t)t->attr.list[i];
        for (size_t o = 0; o < s.outer; o++)
            memcpy(y + (o * s.mid + at) * unit, x + o * mid * unit, mid * unit);
        at += mid;
    }
}

static void masked(const hl_plan *p, const hl_instr *t, const char *x, char *y)
{
    const hl_mask *m = t->attr.mask;
    size_t e = p->element;
    memset(y, 0, m->out * m->in * e);
    for (size_t n = 0; n < m->out; n++)
        memcpy(y + (n * m->in + m->lo[n]) * e, x + (n * m->in + m->lo[n]) * e, (m->hi[n] - m->lo[n]) * e);
}

static void other(const hl_frame *f, const hl_instr *t, size_t q, size_t lanes)
{
    const hl_plan *p = f->p;
    const char *x = hl_address(f, &t->in[0].ref, q);
    char *y = hl_address(f, &t->out.ref, q);
    int skip = f->axis > 1 ? 1 : 0, axis = t->attr.i[0] - skip;
    split s;
    switch (t->code) {
    case HL_DO_SUM:
    case HL_DO_MAX:
        s = split_at(&t->in_shape, axis);
        (t->code == HL_DO_SUM ? p->k->sum : p->k->max)(s.outer, s.mid, s.inner, lanes, x, y);
        break;
    case HL_DO_CUMSUM:
        s = split_at(&t->in_shape, axis);
        p->k->cumsum(s.outer, s.mid, s.inner, lanes, t->attr.i[1], t->attr.i[2], x, y);
        break;
    case HL_DO_MATMUL:
        matmul(p, t, lanes, x, hl_address(f, &t->in[1].ref, q), y);
        break;
    case HL_DO_BROADCAST:
        broadcast(p, t, lanes, t->in_shape.batched ? HL_LANES : 1, x, y);
        break;
    case HL_DO_PERMUTE:
        permute(p, t, lanes, skip, x, y);
        break;
    case HL_DO_GATHER:
        gather(t, axis, lanes * p->element, x, y);
        break;
    case HL_DO_SCATTER:
        scatter(p, t, axis, lanes, x, y);
        break;
    case HL_DO_CONCAT:
        concat(f, t, axis, lanes, q, y);
        break;
    case HL_DO_MASKED:
        masked(p, t, x, y);
        break;
    default:
        break;
    }
}

void hl_instr_run(const hl_frame *f, const hl_instr *t)
{
    switch (t->code) {
    case HL_DO_UNARY:
    case HL_DO_BINARY:
    case HL_DO_TERNARY:
    case HL_DO_SWISH:
        if (t->wide)
            elementwise_wide(f, t);
        else
            for (size_t q = f->q0; q < f->q1; q++)
                elementwise(f, t, q, t->entries);
        break;
    case HL_DO_LINEAR:
        hl_instr_linear(f, t, 0, t->n);
        break;
    case HL_DO_LINEAR_T:
        hl_instr_linear(f, t, 0, t->k);
        break;
    case HL_DO_OUTER:
    case HL_DO_SUM_ROWS:
        reduce_tile(f, t);
        break;
    case HL_DO_CONV:
    case HL_DO_CONV_T:
        hl_conv_panels(f, t, HL_LANES);
        break;
    default:
        for (size_t q = f->q0; q < f->q1; q++)
            other(f, t, q, HL_LANES);
    }
}

/* ---- shared values ---- */

/* Products of shared values: rare and small, so plain loops over one lane. */
static void shared_product(const hl_frame *f, const hl_instr *t)
{
    const hl_plan *p = f->p;
    size_t e = p->element, groups = t->attr.i[0] ? t->code == HL_DO_OUTER ? t->shape.dim[0] : t->in_shape.dim[0] : 1;
    const char *a = hl_address(f, &t->in[0].ref, 0), *b = hl_address(f, &t->in[1].ref, 0);
    char *y = hl_address(f, &t->out.ref, 0);
    size_t n = t->n, k = t->k, m = t->m / (t->code == HL_DO_OUTER ? 1 : groups);
    for (size_t i = 0; i < groups; i++) {
        if (t->code == HL_DO_LINEAR) /* y [m, n] = x [m, k] w' */
            p->k->lane_matmul(m, n, k, 1, a + i * m * k * e, k, 1, b + i * n * k * e, 1, k, y + i * m * n * e);
        else if (t->code == HL_DO_LINEAR_T) /* y [m, k] = x [m, n] w */
            p->k->lane_matmul(m, k, n, 1, a + i * m * n * e, n, 1, b + i * n * k * e, k, 1, y + i * m * k * e);
        else /* y [n, k] = a' [n, m] b [m, k] */
            p->k->lane_matmul(n, k, m, 1, a + i * m * n * e, 1, n, b + i * m * k * e, k, 1, y + i * n * k * e);
    }
    if (t->code == HL_DO_OUTER && t->attr.mask)
        zero_outside(t->attr.mask, e, 0, n, y);
}

void hl_instr_shared(const hl_frame *f, const hl_instr *t)
{
    switch (t->code) {
    case HL_DO_UNARY:
    case HL_DO_BINARY:
    case HL_DO_TERNARY:
        elementwise(f, t, 0, (t->entries + HL_LANES - 1) / HL_LANES);
        break;
    case HL_DO_LINEAR:
    case HL_DO_LINEAR_T:
    case HL_DO_OUTER:
        shared_product(f, t);
        break;
    case HL_DO_CONV:
    case HL_DO_CONV_T:
        hl_conv_panels(f, t, 1);
        break;
    case HL_DO_CONV_W:
        hl_conv_weights(f, t, 0, t->shape.dim[0], 1, hl_address(f, &t->out.ref, 0), false);
        break;
    default:
        other(f, t, 0, 1);
    }
}
