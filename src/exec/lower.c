/* lower.c - memory for every value, and the instructions. */
#include <string.h>

#include "exec/compile.h"
#include "op/op.h"

#define TARGET_CHUNK_BYTES ((size_t)1 << 20) /* what the values of a chunk should take */
#define MAX_CHUNK_BYTES ((size_t)256 << 20)  /* and what they take at most, unless one panel needs more */
#define MIN_CHUNK_PANELS 8
#define MAX_CHUNK_PANELS 32
#define TILE_PANELS 8       /* panels per tile along an axis */
#define ROW_TILE_PANELS 8   /* panels per tile without one: weights are read once per tile */
#define MAX_GROUP_PANELS 64 /* a group's sum is one chain in the plan's precision: about a thousand rows */

static size_t pad(size_t elements)
{
    return hl_size_add(elements, HL_LANES - 1) / HL_LANES * HL_LANES;
}

/* The node whose memory operand i (u) of n's instruction is read from; *o says how it is stepped through. */
static hl_node operand_node(const hl_compiler *c, hl_node n, int i, hl_node u, hl_operand *o)
{
    hl_node source = u;
    if (!hl_folds(c, n, i) || !hl_fold_operand(c, n, u, &source, o)) {
        const hl_shape *s = &hl_data(c, u)->shape;
        size_t size = hl_shape_size(s), axis = c->axis[n] > 1 && s->rank && s->dim[0] == c->axis[n] ? c->axis[n] : 1;
        size_t lanes = s->batched ? HL_LANES : 1;
        *o = (hl_operand){ .step = HL_LANES,
                           .ref = { .row_step = size * lanes, .axis_step = axis > 1 ? size / axis * lanes : 0 } };
        source = u;
    }
    return hl_storage(c->g, source);
}

/* ---- where values live ---- */

static bool has_value(const hl_compiler *c, hl_node n)
{
    return c->form[n] != HL_FORM_NONE || (c->phase[n] != HL_PHASE_NONE && hl_data(c, n)->op->kind == HL_KIND_LEAF);
}

/* Narrowest space that all readers of a batched value reach. */
static void choose_spaces(hl_compiler *c)
{
    for (size_t n = 1; n <= c->g->count; n++)
        if (has_value(c, (hl_node)n)) {
            bool leaf = hl_data(c, (hl_node)n)->op->kind == HL_KIND_LEAF,
                 batched = hl_data(c, (hl_node)n)->shape.batched;
            c->space[n] = !batched ? (hl_data(c, (hl_node)n)->op == &hl_op_param ? HL_SPACE_PARAM : HL_SPACE_SHARED)
                          : leaf   ? HL_SPACE_CHUNK
                                   : HL_SPACE_PANEL;
        }
    for (size_t i = 0; i < c->outputs; i++) {
        hl_node s = hl_storage(c->g, c->output[i]);
        if (hl_data(c, s)->shape.batched)
            c->space[s] = HL_SPACE_CHUNK;
    }
    for (size_t i = 0; i < c->ordered; i++) {
        const hl_node *in;
        hl_node buffer[3], n = c->order[i];
        hl_operand o;
        int reads = hl_reads(c, n, &in, buffer);
        for (int j = 0; j < reads; j++) {
            hl_node s = operand_node(c, n, j, in[j], &o);
            if (c->space[s] != HL_SPACE_PANEL && c->space[s] != HL_SPACE_TILE)
                continue;
            if (c->segment[s] != c->segment[n] || (hl_data(c, n)->op->over_rows && !c->tiled_sum[n]))
                c->space[s] = HL_SPACE_CHUNK;
            else if (c->run[s] != c->run[n] || c->wide[n] || c->wide[s])
                c->space[s] = HL_SPACE_TILE;
        }
    }
    for (size_t i = 0; i < c->ordered; i++) /* without fusion nothing is confined to a run */
        if (c->space[c->order[i]] == HL_SPACE_PANEL && !c->fuse)
            c->space[c->order[i]] = HL_SPACE_TILE;
}

/* Parameters that shared elementwise work reads get a padded copy: kernels work on whole entries. */
static bool needs_copy(const hl_compiler *c, hl_node param)
{
    for (size_t i = 0; i < c->ordered; i++) {
        hl_node n = c->order[i], buffer[3];
        const hl_node *in;
        hl_operand o;
        if (c->phase[n] == HL_PHASE_MAIN || !hl_elementwise(hl_data(c, n)))
            continue;
        int reads = hl_reads(c, n, &in, buffer);
        for (int j = 0; j < reads; j++)
            if (operand_node(c, n, j, in[j], &o) == param && !o.scalar)
                return true;
    }
    return false;
}

static size_t *last_use_table(hl_compiler *c, size_t end)
{
    size_t *last = hl_calloc(c->plan->ctx, c->g->count + 1, sizeof *last), together = 0;
    for (size_t i = 0; last && i < c->ordered; i++) {
        const hl_node *in;
        hl_node buffer[3], n = c->order[i];
        hl_operand o;
        int reads = hl_reads(c, n, &in, buffer);
        /* What one pass computes is written while any of its arguments is read. */
        for (together = i; together + 1 < c->ordered && hl_joins(c, n, c->order[together + 1]);)
            together++;
        for (int j = 0; j < reads; j++)
            last[operand_node(c, n, j, in[j], &o)] = together;
    }
    for (size_t i = 0; last && i < c->outputs; i++)
        last[hl_storage(c->g, c->output[i])] = end;
    return last;
}

/* The values of one space that are to be placed, with their lifetimes in the space's own time. */
typedef struct placing {
    hl_life *life;
    hl_node *node;
    size_t count;
} placing;

static void add_life(placing *l, hl_node n, size_t size, size_t first, size_t last)
{
    l->life[l->count] = (hl_life){ .size = size, .first = first, .last = last < first ? first : last };
    l->node[l->count++] = n;
}

static size_t finish_lives(hl_compiler *c, placing *l, size_t scale)
{
    size_t total = hl_life_place(l->life, l->count);
    for (size_t i = 0; i < l->count; i++)
        c->offset[l->node[i]] = l->life[i].offset * scale;
    l->count = 0;
    return total;
}

static size_t entries_of(const hl_compiler *c, hl_node n)
{
    return hl_shape_size(&hl_data(c, n)->shape);
}

/* Many panels for little values, at least MIN_CHUNK_PANELS to make use of the weights while they are at hand, but fewer if
 * that takes more memory than a chunk may. */
static size_t default_chunk(size_t bytes_per_panel)
{
    size_t panels = TARGET_CHUNK_BYTES / bytes_per_panel;
    panels = panels < MIN_CHUNK_PANELS ? MIN_CHUNK_PANELS : panels > MAX_CHUNK_PANELS ? MAX_CHUNK_PANELS : panels;
    if (panels * bytes_per_panel > MAX_CHUNK_BYTES)
        panels = MAX_CHUNK_BYTES / bytes_per_panel;
    return panels ? panels : 1;
}

static void place_chunk(hl_compiler *c, placing *l, const size_t *last, size_t *elements_per_panel)
{
    hl_plan *p = c->plan;
    size_t end = p->segments + 1;
    for (size_t n = 1; n <= c->g->count; n++) {
        if (!has_value(c, (hl_node)n) || c->space[n] != HL_SPACE_CHUNK)
            continue;
        bool input = hl_data(c, (hl_node)n)->op->kind == HL_KIND_LEAF;
        size_t at = last[n], use = at == SIZE_MAX ? end : c->ordered ? c->segment[c->order[at]] + 1 : 0;
        add_life(l, (hl_node)n, entries_of(c, (hl_node)n) * HL_LANES, input ? 0 : c->segment[n] + 1,
                 at == SIZE_MAX ? end : use);
    }
    *elements_per_panel = hl_life_place(l->life, l->count);
    if (!p->chunk_panels)
        p->chunk_panels = default_chunk(*elements_per_panel * p->element + 1);
    finish_lives(c, l, p->chunk_panels);
}

static void place_segment(hl_compiler *c, placing *l, const size_t *last, hl_segment *s)
{
    size_t per_chunk = hl_size_mul(c->plan->chunk_panels, s->axis);
    s->tile = s->axis > 1 ? TILE_PANELS : ROW_TILE_PANELS;
    s->group = per_chunk / 8 / s->tile * s->tile;
    if (s->group > MAX_GROUP_PANELS)
        s->group = MAX_GROUP_PANELS;
    if (s->group < s->tile)
        s->group = s->tile;
    for (int space = HL_SPACE_TILE; space <= HL_SPACE_PANEL; space++) {
        for (size_t i = s->first; i < s->first + s->count; i++) {
            hl_node n = c->order[i];
            if (c->space[n] != (hl_space)space || hl_data(c, n)->op->over_rows)
                continue;
            size_t size = entries_of(c, n) / s->axis * HL_LANES, end = last[n] < i ? i : last[n];
            /* An elementwise result may take the place of an argument that dies with it, but not of one with fewer
             * entries: an entry that serves many is read until the last of them is written. */
            bool in_place = entries_of(c, c->order[end]) == entries_of(c, n);
            if (space == HL_SPACE_TILE)
                add_life(l, n, size, c->run[n], c->run[c->order[end]]);
            else
                add_life(l, n, size, 2 * i + 1, in_place ? 2 * end : 2 * end + 1);
        }
        if (space == HL_SPACE_TILE)
            s->tile_elements = finish_lives(c, l, s->tile);
        else
            s->panel_elements = finish_lives(c, l, 1);
    }
}

/* Shared values, one after the other: constants, prologue and epilogue, then sums over rows, which may be large. */
static void place_shared(hl_compiler *c)
{
    hl_plan *p = c->plan;
    size_t top = 0;
    for (int sums = 0; sums < 2; sums++) {
        for (size_t n = 1; n <= c->g->count; n++) {
            const hl_node_data *d = hl_data(c, (hl_node)n);
            bool sum = d->op->over_rows && c->phase[n] == HL_PHASE_MAIN;
            if (!has_value(c, (hl_node)n) || d->shape.batched || sum != (sums == 1))
                continue;
            if (d->op == &hl_op_param) {
                if (!needs_copy(c, (hl_node)n))
                    continue;
                c->space[n] = HL_SPACE_SHARED;
            }
            c->offset[n] = top;
            top = hl_size_add(top, pad(entries_of(c, (hl_node)n)));
        }
        if (!sums)
            p->small_elements = top;
    }
    p->shared_elements = top;
}

static hl_status place_values(hl_compiler *c)
{
    hl_plan *p = c->plan;
    placing l = { hl_calloc(p->ctx, c->g->count + 1, sizeof *l.life),
                  hl_calloc(p->ctx, c->g->count + 1, sizeof *l.node), 0 };
    choose_spaces(c);
    size_t *last = last_use_table(c, SIZE_MAX), per_panel = 0;
    hl_status status = l.life && l.node && last ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        place_chunk(c, &l, last, &per_panel);
        p->chunk_elements = hl_size_mul(per_panel, p->chunk_panels);
        for (size_t s = 0; s < p->segments; s++)
            place_segment(c, &l, last, &p->segment[s]);
        place_shared(c);
    }
    hl_free(p->ctx, l.life);
    hl_free(p->ctx, l.node);
    hl_free(p->ctx, last);
    return status;
}

/* ---- instructions ---- */

static hl_ref ref_of(const hl_compiler *c, hl_node storage, hl_ref steps, size_t axis)
{
    hl_ref r = steps;
    r.space = c->space[storage];
    r.offset = r.space == HL_SPACE_PARAM ? (size_t)hl_data(c, storage)->attr.i[0] : c->offset[storage];
    if (r.space == HL_SPACE_TILE)
        r.row_step = entries_of(c, storage) / axis * HL_LANES;
    return r;
}

static hl_shape without_axis(const hl_shape *s, size_t axis)
{
    hl_shape r = *s;
    if (axis > 1 && s->rank && s->dim[0] == axis) {
        r.rank--;
        memmove(r.dim, s->dim + 1, (size_t)r.rank * sizeof *r.dim);
    }
    return r;
}

static const void *copy_to(hl_arena *a, const void *from, size_t bytes)
{
    void *to = from ? hl_arena_alloc(a, bytes) : NULL;
    return to && bytes ? memcpy(to, from, bytes) : to;
}

/* The plan outlives the graph: copy what the attributes point to. */
static hl_status own_attr(hl_plan *p, hl_attr *a)
{
    if (a->list && !(a->list = copy_to(&p->arena, a->list, a->list_len * sizeof *a->list)))
        return HL_ERR_NOMEM;
    if (a->mask) {
        hl_mask m = *a->mask, *copy;
        m.lo = copy_to(&p->arena, m.lo, m.out * sizeof *m.lo);
        m.hi = copy_to(&p->arena, m.hi, m.out * sizeof *m.hi);
        m.tlo = copy_to(&p->arena, m.tlo, m.in * sizeof *m.tlo);
        m.thi = copy_to(&p->arena, m.thi, m.in * sizeof *m.thi);
        copy = hl_arena_alloc(&p->arena, sizeof *copy);
        if (!m.lo || !m.hi || !m.tlo || !m.thi || !copy)
            return HL_ERR_NOMEM;
        *copy = m;
        a->mask = copy;
    }
    a->name = NULL;
    a->data = NULL;
    return HL_OK;
}

static void set_code(const hl_compiler *c, hl_node n, hl_instr *t)
{
    const hl_node_data *d = hl_data(c, c->form[n] == HL_FORM_PLUS ? c->partner[n] : n);
    t->kernel = d->op->kernel;
    t->code = d->op->code;
    switch (c->form[n]) {
    case HL_FORM_MULADD:
        t->code = HL_DO_TERNARY, t->kernel = HL_TE_MULADD;
        return;
    case HL_FORM_MULSUB:
        t->code = HL_DO_TERNARY, t->kernel = HL_TE_MULSUB;
        return;
    case HL_FORM_SUBMUL:
        t->code = HL_DO_TERNARY, t->kernel = HL_TE_SUBMUL;
        return;
    case HL_FORM_MULMUL:
        t->code = HL_DO_TERNARY, t->kernel = HL_TE_MULMUL;
        return;
    case HL_FORM_SLOPE:
        t->code = HL_DO_BINARY, t->kernel = HL_BI_SLOPE;
        return;
    case HL_FORM_SWISH:
        t->code = HL_DO_SWISH, t->kernel = HL_UN_SWISH_SLOPE;
        return;
    default:
        break;
    }
}

/* Sizes of products. `w` is the shape of the weights or of the second operand. */
static void set_sizes(hl_instr *t, const hl_shape *w)
{
    size_t r = (size_t)t->in_shape.rank;
    switch (t->code) {
    case HL_DO_LINEAR:
    case HL_DO_LINEAR_T:
        t->n = w->dim[w->rank - 2];
        t->k = w->dim[w->rank - 1];
        t->m = hl_shape_size(&t->in_shape) / t->in_shape.dim[r - 1];
        break;
    case HL_DO_OUTER:
        t->n = t->shape.dim[t->shape.rank - 2];
        t->k = t->shape.dim[t->shape.rank - 1];
        t->groups = t->attr.i[0] ? t->shape.dim[0] : 1;
        t->m = hl_shape_size(&t->in_shape) / t->n / t->groups;
        break;
    case HL_DO_SUM_ROWS:
        t->n = hl_shape_size(&t->shape);
        t->m = hl_shape_size(&t->in_shape) / t->n;
        break;
    case HL_DO_CONV:
    case HL_DO_CONV_T:
        t->n = w->dim[2];
        t->k = w->dim[3];
        break;
    case HL_DO_CONV_W:
        t->n = t->shape.dim[2];
        t->k = t->shape.dim[3];
        t->m = w->dim[1]; /* of the image, which the second operand is */
        t->groups = w->dim[2];
        break;
    default:
        break;
    }
}

/* Flops per row. */
static double work_of(const hl_compiler *c, hl_node n, const hl_node_data *work, const hl_shape *x, const hl_shape *w)
{
    double size = (double)hl_shape_size(&hl_data(c, n)->shape);
    if (c->form[n] >= HL_FORM_MULADD && c->form[n] <= HL_FORM_MULMUL)
        return 2 * size;
    if (c->form[n] == HL_FORM_SLOPE)
        return 3 * size;
    if (c->form[n] == HL_FORM_SWISH)
        return (hl_op_swish_slope.flops + 1) * size;
    return work->op->work ? work->op->work(&(hl_work){ work, x, w, c->plan->dense_masks }) : work->op->flops * size;
}

/* A broadcast's source: strip the segment's axis, which it may have, have as 1, or lack. */
static void set_source(hl_instr *t, const hl_shape *s, int rank, size_t axis)
{
    bool has_axis = axis > 1 && s->rank == rank && s->dim[0] == axis;
    t->in[0].ref.axis_step = has_axis ? hl_shape_size(s) / axis * (s->batched ? HL_LANES : 1) : 0;
    t->in_shape = *s;
    if (axis > 1 && s->rank == rank) {
        t->in_shape.rank--;
        memmove(t->in_shape.dim, s->dim + 1, (size_t)t->in_shape.rank * sizeof *s->dim);
    }
}

/* A concatenation's list: the parts' sizes along its axis. */
static hl_status set_parts(const hl_compiler *c, hl_instr *t, const hl_node *in)
{
    int32_t *size = hl_arena_alloc(&c->plan->arena, (size_t)t->inputs * sizeof *size);
    if (!size)
        return HL_ERR_NOMEM;
    for (int i = 0; i < t->inputs; i++)
        size[i] = (int32_t)hl_data(c, in[i])->shape.dim[t->attr.i[0]];
    t->attr.list = size;
    t->attr.list_len = (size_t)t->inputs;
    return HL_OK;
}

static hl_status emit(hl_compiler *c, hl_node n, hl_instr *t)
{
    hl_plan *p = c->plan;
    const hl_node_data *d = hl_data(c, n), *work = hl_data(c, c->form[n] == HL_FORM_PLUS ? c->partner[n] : n);
    const hl_node *in;
    hl_node buffer[3];
    size_t axis = c->axis[n] > 1 ? c->axis[n] : 1;
    int reads = hl_reads(c, n, &in, buffer);
    *t = (hl_instr){ .node = n, .name = work->op->name, .inputs = reads, .attr = work->attr, .wide = c->wide[n] };
    t->in = hl_arena_alloc(&p->arena, (size_t)(reads ? reads : 1) * sizeof *t->in);
    if (!t->in || own_attr(p, &t->attr) != HL_OK)
        return HL_ERR_NOMEM;
    for (int i = 0; i < reads; i++) {
        hl_node s = operand_node(c, n, i, in[i], &t->in[i]);
        t->in[i].ref = ref_of(c, s, t->in[i].ref, axis);
        if (i == 1 && (work->op == &hl_op_linear || work->op == &hl_op_linear_t) && work->attr.i[0] == 0)
            t->in[i].ref.axis_step = 0; /* weights of all indices, whatever their first dimension is */
    }
    size_t size = hl_shape_size(&d->shape);
    size_t lanes = d->shape.batched ? HL_LANES : 1;
    t->out.step = HL_LANES;
    t->out.ref = (hl_ref){ .row_step = size * lanes, .axis_step = axis > 1 ? size / axis * lanes : 0 };
    t->out.ref = ref_of(c, n, t->out.ref, axis);
    t->entries = d->shape.batched ? size / axis : size;
    t->shape = d->shape.batched ? without_axis(&d->shape, axis) : d->shape;
    t->in_shape = without_axis(&hl_data(c, in[0])->shape, hl_data(c, in[0])->shape.batched ? axis : 1);
    t->reduction = SIZE_MAX;
    set_code(c, n, t);
    if (t->code == HL_DO_CONCAT && set_parts(c, t, in) != HL_OK)
        return HL_ERR_NOMEM;
    if (t->code == HL_DO_BROADCAST)
        set_source(t, &hl_data(c, in[0])->shape, d->shape.rank, axis);
    const hl_shape *second = reads > 1 ? &hl_data(c, in[1])->shape : NULL;
    set_sizes(t, second);
    t->flops = work_of(c, n, work, &hl_data(c, in[0])->shape, second);
    return HL_OK;
}

/* Instructions that one pass computes. */
static void join(hl_compiler *c)
{
    hl_instr *t = c->plan->instr;
    for (size_t i = 0; i + 1 < c->ordered; i++)
        for (size_t k = i + 1; k < c->ordered && hl_joins(c, c->order[i], c->order[k]); k++) {
            if (hl_swish_of(c, c->order[i]) != HL_NONE)
                t[i].code = t[k].code = HL_DO_SWISH;
            if (t[i].joined >= 0) {
                t[i].joined++;
                t[k].joined = -1;
            }
        }
}

/* ---- sums over rows, ports, runs ---- */

static hl_status list_reductions(hl_compiler *c)
{
    hl_plan *p = c->plan;
    size_t capacity = 0, total = 0, partial = 0;
    for (size_t i = 0; i < c->ordered; i++) {
        hl_node n = c->order[i];
        if (!hl_data(c, n)->op->over_rows || c->phase[n] != HL_PHASE_MAIN)
            continue;
        void *grown = p->reduction;
        if (hl_grow(p->ctx, &grown, &capacity, p->reductions + 1, sizeof *p->reduction) != HL_OK)
            return HL_ERR_NOMEM;
        p->reduction = grown;
        hl_instr *t = &p->instr[i];
        hl_reduction *r = &p->reduction[p->reductions];
        t->reduction = p->reductions++;
        *r = (hl_reduction){ .size = entries_of(c, n),
                             .value = c->offset[n],
                             .total = total,
                             .partial = partial,
                             .grouped = c->tiled_sum[n],
                             .mask = t->attr.mask,
                             .output = SIZE_MAX };
        total = hl_size_add(total, pad(r->size));
        if (r->grouped)
            partial = hl_size_add(partial, pad(r->size));
    }
    p->group_elements = partial;
    for (size_t s = 0; s < p->segments; s++)
        if (p->segment[s].grouped) {
            size_t groups = (p->chunk_panels * p->segment[s].axis + p->segment[s].group - 1) / p->segment[s].group;
            p->groups = groups > p->groups ? groups : p->groups;
        }
    return HL_OK;
}

/* Is the value of the node read by any instruction, or wanted as more than one output? */
static bool is_read(const hl_compiler *c, hl_node node)
{
    size_t wanted = 0;
    for (size_t i = 0; i < c->outputs; i++)
        wanted += hl_storage(c->g, c->output[i]) == node;
    if (wanted > 1)
        return true;
    for (size_t i = 0; i < c->ordered; i++)
        for (int j = 0; j < c->plan->instr[i].inputs; j++) {
            const hl_ref *r = &c->plan->instr[i].in[j].ref;
            if (r->space == HL_SPACE_SHARED && c->space[node] == HL_SPACE_SHARED && r->offset == c->offset[node])
                return true;
        }
    return false;
}

static hl_port port_of(hl_compiler *c, hl_node n)
{
    hl_node s = hl_storage(c->g, n);
    size_t size = entries_of(c, n);
    hl_port port = { .elements = size, .batched = hl_data(c, n)->shape.batched, .needed = true, .reduction = SIZE_MAX };
    port.ref = ref_of(c, s, (hl_ref){ .row_step = size * HL_LANES }, 1);
    return port;
}

static hl_status list_ports(hl_compiler *c)
{
    hl_plan *p = c->plan;
    const hl_graph *g = c->g;
    p->inputs = g->input_count;
    p->params = g->param_count;
    p->outputs = c->outputs;
    p->input = hl_arena_alloc(&p->arena, (p->inputs + 1) * sizeof *p->input);
    p->output = hl_arena_alloc(&p->arena, (p->outputs + 1) * sizeof *p->output);
    p->param_size = hl_arena_alloc(&p->arena, (p->params + 1) * sizeof *p->param_size);
    p->param_needed = hl_arena_alloc(&p->arena, (p->params + 1) * sizeof *p->param_needed);
    p->param_copy = hl_arena_alloc(&p->arena, (p->params + 1) * sizeof *p->param_copy);
    if (!p->input || !p->output || !p->param_copy || !p->param_size || !p->param_needed)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < p->inputs; i++) {
        if (c->phase[g->inputs[i]] == HL_PHASE_NONE)
            p->input[i] = (hl_port){ .batched = true };
        else
            p->input[i] = port_of(c, g->inputs[i]);
    }
    for (size_t i = 0; i < p->params; i++) {
        p->param_size[i] = entries_of(c, g->params[i]);
        p->param_needed[i] = c->phase[g->params[i]] != HL_PHASE_NONE;
        p->param_copy[i] =
            p->param_needed[i] && c->space[g->params[i]] == HL_SPACE_SHARED ? c->offset[g->params[i]] : SIZE_MAX;
    }
    for (size_t i = 0; i < p->outputs; i++) {
        p->output[i] = port_of(c, c->output[i]);
        hl_node s = hl_storage(g, c->output[i]);
        for (size_t r = 0; r < p->reductions; r++)
            if (!p->output[i].batched && p->output[i].ref.space == HL_SPACE_SHARED &&
                p->output[i].ref.offset == p->reduction[r].value && p->reduction[r].output == SIZE_MAX &&
                !is_read(c, s)) {
                p->reduction[r].output = i;
                p->output[i].reduction = r;
            }
    }
    return HL_OK;
}

static hl_status list_runs(hl_compiler *c)
{
    hl_plan *p = c->plan;
    p->run = hl_arena_alloc(&p->arena, (c->ordered + 1) * sizeof *p->run);
    p->run_first = hl_arena_alloc(&p->arena, (p->segments + 1) * sizeof *p->run_first);
    if (!p->run || !p->run_first)
        return HL_ERR_NOMEM;
    size_t runs = 0;
    for (size_t s = 0; s < p->segments; s++) {
        p->run_first[s] = runs;
        const hl_segment *g = &p->segment[s];
        for (size_t i = g->first; i < g->first + g->count; i++) {
            const hl_instr *t = &p->instr[i];
            bool fused = t->code <= HL_DO_SWISH && !t->wide && c->fuse;
            p->fused += fused;
            if (i == g->first || c->run[c->order[i]] != c->run[c->order[i - 1]])
                p->run[runs++] = (hl_run){ i, 0, fused };
            p->run[runs - 1].count++;
        }
    }
    p->run_first[p->segments] = runs;
    return HL_OK;
}

/* ---- the slab ---- */

static size_t scratch_of(const hl_plan *p)
{
    size_t most = HL_LANES;
    for (size_t s = 0; s < p->segments; s++) {
        const hl_segment *g = &p->segment[s];
        for (size_t i = g->first; i < g->reduce_first + g->reduce_count; i++) {
            const hl_instr *t = &p->instr[i];
            size_t panels = i < g->reduce_first ? g->tile : p->chunk_panels, need = 0;
            if (t->code == HL_DO_OUTER)
                need = hl_gemm_w_scratch(panels, t->k);
            else if (t->code == HL_DO_CONV || t->code == HL_DO_CONV_T)
                need = hl_conv_room(t);
            most = need > most ? need : most;
        }
    }
    return pad(most);
}

static hl_status make_slab(hl_plan *p, int threads)
{
    for (size_t s = 0; s < p->segments; s++) {
        const hl_segment *g = &p->segment[s];
        size_t need = hl_size_add(hl_size_mul(g->tile_elements, g->tile), g->panel_elements);
        p->thread_elements = need > p->thread_elements ? need : p->thread_elements;
    }
    p->scratch_elements = scratch_of(p);
    size_t partials = hl_size_mul(p->groups, p->group_elements);
    size_t per_thread = hl_size_add(p->thread_elements, p->scratch_elements);
    size_t elements = hl_size_add(hl_size_add(p->shared_elements, p->chunk_elements),
                                  hl_size_add(partials, hl_size_mul(per_thread, (size_t)threads)));
    size_t totals = 0;
    for (size_t r = 0; r < p->reductions; r++)
        totals = hl_size_add(totals, pad(p->reduction[r].size));
    p->slab_bytes = hl_size_add(hl_size_mul(elements, p->element), hl_size_mul(totals, sizeof(double)));
    p->slab = hl_alloc(p->ctx, p->slab_bytes);
    if (!p->slab)
        return HL_ERR_NOMEM;
    p->totals = (double *)(void *)p->slab;
    p->shared = p->slab + totals * sizeof(double);
    p->chunk = p->shared + p->shared_elements * p->element;
    p->partials = p->chunk + p->chunk_elements * p->element;
    p->threads = p->partials + partials * p->element;
    memset(p->shared, 0, p->small_elements * p->element); /* padding is read by whole entries */
    memset(p->threads, 0, per_thread * (size_t)threads * p->element);
    return HL_OK;
}

static void fill_constants(hl_compiler *c)
{
    hl_plan *p = c->plan;
    for (size_t n = 1; n <= c->g->count; n++) {
        const hl_node_data *d = hl_data(c, (hl_node)n);
        if (c->phase[n] == HL_PHASE_NONE || d->op != &hl_op_constant)
            continue;
        p->k->from_double(entries_of(c, (hl_node)n), d->attr.data ? d->attr.data : &d->attr.value,
                          p->shared + c->offset[n] * p->element);
    }
}

hl_status hl_lower(hl_compiler *c)
{
    hl_plan *p = c->plan;
    hl_status status = place_values(c);
    if (status != HL_OK)
        return status;
    p->instrs = c->ordered;
    p->instr = hl_arena_alloc(&p->arena, (c->ordered + 1) * sizeof *p->instr);
    if (!p->instr)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < c->ordered; i++)
        if (emit(c, c->order[i], &p->instr[i]) != HL_OK)
            return HL_ERR_NOMEM;
    join(c);
    if (list_reductions(c) != HL_OK || list_ports(c) != HL_OK || list_runs(c) != HL_OK ||
        make_slab(p, hl_team_size(p->ctx->team)) != HL_OK)
        return HL_ERR_NOMEM;
    fill_constants(c);
    return HL_OK;
}
