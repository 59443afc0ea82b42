/* schedule.c - the order of work: prologue, segments, epilogue.
 *
 * A segment takes everything that can run along its axis before another axis must have a turn. Inside a segment a value may
 * be read only index by index along the axis; anything else waits for the segment's end. Elementwise nodes go first, so that
 * they stand in runs, which are fused. */
#include "exec/compile.h"
#include "op/op.h"

#define WIDE_ENTRIES 2 /* at most so many entries per panel: not worth a call per panel */

static const hl_node_data *data(const hl_compiler *c, hl_node n)
{
    return &c->g->node[n];
}

hl_node hl_read_source(const hl_compiler *c, hl_node n, int i, hl_node u)
{
    hl_node source = u;
    hl_operand o;
    if (hl_folds(c, n, i) && !hl_fold_operand(c, n, u, &source, &o))
        source = u;
    return hl_storage(c->g, source);
}

/* Does node n, which runs along its axis, read operand u index by index? */
static bool reads_locally(const hl_compiler *c, hl_node n, int i, hl_node u)
{
    hl_node source = u;
    hl_operand o;
    if (c->axis[n] <= 1)
        return true;
    if (hl_folds(c, n, i) && hl_fold_operand(c, n, u, &source, &o) && source != u)
        return o.ref.axis_step != 0;
    const hl_shape *s = &data(c, u)->shape;
    if (data(c, n)->op == &hl_op_broadcast)
        return s->rank == data(c, n)->shape.rank && s->dim[0] == c->axis[n];
    return s->rank > 0 && s->dim[0] == c->axis[n];
}

/* A sum over rows runs tile by tile if it runs along an axis; else after its segment. */
static bool after_segment(const hl_compiler *c, hl_node n)
{
    return data(c, n)->op->over_rows && !c->tiled_sum[n];
}

static bool ready(const hl_compiler *c, hl_node n, size_t segment)
{
    const hl_node *in;
    hl_node buffer[3];
    int reads = hl_reads(c, n, &in, buffer);
    for (int i = 0; i < reads; i++) {
        hl_node s = hl_read_source(c, n, i, in[i]);
        if (c->phase[s] != HL_PHASE_MAIN || data(c, s)->op->kind == HL_KIND_LEAF)
            continue;
        if (c->position[s] == SIZE_MAX)
            return false;
        if (c->segment[s] == segment && !after_segment(c, n) && !reads_locally(c, n, i, in[i]))
            return false;
    }
    return true;
}

static void place(hl_compiler *c, hl_node n, size_t segment)
{
    c->segment[n] = segment;
    c->position[n] = c->ordered;
    c->order[c->ordered++] = n;
}

/* Schedule one node of the class in `pick` order: elementwise ones first, then by number. */
static bool place_next(hl_compiler *c, size_t axis, size_t segment, bool sums)
{
    for (int elementwise = 1; elementwise >= 0; elementwise--)
        for (size_t n = 1; n <= c->g->count; n++)
            if (c->form[n] != HL_FORM_NONE && c->phase[n] == HL_PHASE_MAIN && c->position[n] == SIZE_MAX &&
                c->axis[n] == axis && after_segment(c, (hl_node)n) == sums &&
                (sums || (hl_elementwise(data(c, (hl_node)n)) && c->form[n] != HL_FORM_PLUS) == (elementwise == 1)) &&
                ready(c, (hl_node)n, segment)) {
                place(c, (hl_node)n, segment);
                return true;
            }
    return false;
}

static bool wide(const hl_compiler *c, hl_node n)
{
    const hl_node *in;
    hl_node buffer[3], source;
    hl_operand o;
    size_t entries = hl_shape_size(&data(c, n)->shape) / c->axis[n];
    if (!hl_elementwise(data(c, n)) || c->form[n] == HL_FORM_PLUS || entries > WIDE_ENTRIES)
        return false;
    int reads = hl_reads(c, n, &in, buffer);
    for (int i = 0; i < reads; i++) {
        if (!hl_fold_operand(c, n, in[i], &source, &o))
            continue; /* a value of its own, of n's shape */
        if (o.scalar ? o.step != 0 || o.ref.axis_step != 0 : o.step != HL_LANES && entries != 1)
            return false;
        if (!o.scalar && c->axis[n] > 1 && o.ref.axis_step == 0)
            return false;
    }
    return true;
}

/* Cut the segment's tile instructions into runs; returns their number. */
static size_t cut_runs(hl_compiler *c, size_t first, size_t end, size_t run)
{
    bool open = false;
    for (size_t i = first; i < end; i++) {
        hl_node n = c->order[i];
        bool elementwise = hl_elementwise(data(c, n)) && c->form[n] != HL_FORM_PLUS;
        c->wide[n] = wide(c, n);
        bool fused = elementwise && !c->wide[n] && c->fuse;
        if (i > first && !(fused && open))
            run++;
        c->run[n] = (uint32_t)run;
        open = fused;
    }
    return run + 1;
}

static hl_status add_segment(hl_compiler *c, size_t axis, size_t *capacity, size_t *run)
{
    hl_plan *p = c->plan;
    void *segments = p->segment;
    if (hl_grow(p->ctx, &segments, capacity, p->segments + 1, sizeof *p->segment) != HL_OK)
        return HL_ERR_NOMEM;
    p->segment = segments;
    size_t s = p->segments++, first = c->ordered;
    while (place_next(c, axis, s, false))
        ;
    size_t end = c->ordered;
    while (place_next(c, axis, s, true))
        ;
    bool grouped = false;
    for (size_t i = first; i < end; i++)
        grouped = grouped || data(c, c->order[i])->op->over_rows;
    p->segment[s] = (hl_segment){ .axis = axis, .first = first, .count = end - first, .reduce_first = end,
                                  .reduce_count = c->ordered - end, .grouped = grouped };
    if (end > first)
        *run = cut_runs(c, first, end, *run);
    return HL_OK;
}

/* The axis of the next segment: work per panel before work along an axis; 0 if all is done. */
static size_t next_axis(const hl_compiler *c)
{
    size_t axis = 0;
    for (size_t n = 1; n <= c->g->count && axis != 1; n++)
        if (c->form[n] != HL_FORM_NONE && c->phase[n] == HL_PHASE_MAIN && c->position[n] == SIZE_MAX &&
            (axis == 0 || c->axis[n] == 1) && ready(c, (hl_node)n, SIZE_MAX))
            axis = c->axis[n];
    return axis;
}

static void place_phase(hl_compiler *c, hl_phase phase, size_t *first, size_t *count)
{
    *first = c->ordered;
    for (size_t n = 1; n <= c->g->count; n++)
        if (c->form[n] != HL_FORM_NONE && c->phase[n] == phase)
            place(c, (hl_node)n, SIZE_MAX);
    *count = c->ordered - *first;
}

hl_status hl_schedule(hl_compiler *c)
{
    hl_plan *p = c->plan;
    size_t capacity = 0, run = 0;
    for (size_t n = 0; n <= c->g->count; n++) {
        c->position[n] = SIZE_MAX;
        const hl_node_data *d = &c->g->node[n];
        c->tiled_sum[n] = n && c->phase[n] == HL_PHASE_MAIN && d->op->over_rows && c->axis[n] > 1;
    }
    place_phase(c, HL_PHASE_PRE, &p->pre_first, &p->pre_count);
    for (size_t axis; (axis = next_axis(c)) != 0;)
        if (add_segment(c, axis, &capacity, &run) != HL_OK)
            return HL_ERR_NOMEM;
    place_phase(c, HL_PHASE_POST, &p->post_first, &p->post_count);
    return HL_OK;
}
