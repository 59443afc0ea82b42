/* schedule.c - the order of work: prologue, segments, epilogue.
 *
 * A segment takes everything that can run along its axis before another axis must have a turn. Inside a segment a value may
 * be read only index by index along the axis; anything else waits for the segment's end. Elementwise nodes go first, so that
 * they stand in runs, which are fused. */
#include "exec/compile.h"
#include "op/op.h"

#define WIDE_ENTRIES 2 /* at most so many entries per panel: not worth a call per panel */

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
    const hl_shape *s = &hl_data(c, u)->shape;
    if (hl_data(c, n)->op == &hl_op_broadcast)
        return s->rank == hl_data(c, n)->shape.rank && s->dim[0] == c->axis[n];
    return s->rank > 0 && s->dim[0] == c->axis[n];
}

/* A sum over rows runs tile by tile if it runs along an axis; else after its segment. */
static bool after_segment(const hl_compiler *c, hl_node n)
{
    return hl_data(c, n)->op->over_rows && !c->tiled_sum[n];
}

/* Who waits for whom. A node is available when nothing it reads is still to be placed. */
typedef struct waiting {
    uint32_t *count; /* [node]: values that it reads and that have no place yet */
    size_t *first;   /* [node + 1]: its readers are user[first[n]] .. user[first[n + 1] - 1] */
    hl_node *user;
    hl_node *available;
    size_t availables;
} waiting;

static bool has_work(const hl_compiler *c, hl_node n)
{
    return c->form[n] != HL_FORM_NONE && c->phase[n] == HL_PHASE_MAIN;
}

/* Call visit for every value in the main phase that some node has to compute and that node n reads. */
static void each_source(const hl_compiler *c, hl_node n, waiting *w,
                        void (*visit)(waiting *w, hl_node n, hl_node source))
{
    const hl_node *in;
    hl_node buffer[3];
    int reads = hl_reads(c, n, &in, buffer);
    for (int i = 0; i < reads; i++) {
        hl_node s = hl_read_source(c, n, i, in[i]);
        if (c->phase[s] == HL_PHASE_MAIN && hl_data(c, s)->op->kind != HL_KIND_LEAF)
            visit(w, n, s);
    }
}

static void count_edge(waiting *w, hl_node n, hl_node source)
{
    w->count[n]++;
    w->first[source + 1]++;
}

static void list_edge(waiting *w, hl_node n, hl_node source)
{
    w->user[w->first[source]++] = n;
}

static void waiting_free(const hl_compiler *c, waiting *w)
{
    hl_context *ctx = c->plan->ctx;
    hl_free(ctx, w->count);
    hl_free(ctx, w->first);
    hl_free(ctx, w->user);
    hl_free(ctx, w->available);
}

static hl_status waiting_init(const hl_compiler *c, waiting *w)
{
    hl_context *ctx = c->plan->ctx;
    size_t nodes = c->g->count;
    w->count = hl_calloc(ctx, nodes + 1, sizeof *w->count);
    w->first = hl_calloc(ctx, nodes + 2, sizeof *w->first);
    w->available = hl_calloc(ctx, nodes + 1, sizeof *w->available);
    if (!w->count || !w->first || !w->available)
        return HL_ERR_NOMEM;
    for (size_t n = 1; n <= nodes; n++)
        if (has_work(c, (hl_node)n))
            each_source(c, (hl_node)n, w, count_edge);
    for (size_t n = 1; n <= nodes + 1; n++)
        w->first[n] += w->first[n - 1];
    w->user = hl_calloc(ctx, w->first[nodes + 1] + 1, sizeof *w->user);
    if (!w->user)
        return HL_ERR_NOMEM;
    for (size_t n = 1; n <= nodes; n++)
        if (has_work(c, (hl_node)n))
            each_source(c, (hl_node)n, w, list_edge); /* moves first[s] to the end of its list */
    for (size_t n = nodes + 1; n >= 1; n--)
        w->first[n] = w->first[n - 1];
    w->first[0] = 0;
    for (size_t n = 1; n <= nodes; n++)
        if (has_work(c, (hl_node)n) && w->count[n] == 0)
            w->available[w->availables++] = (hl_node)n;
    return HL_OK;
}

/* May the available node n join the segment? Not if it reads a value of the same segment across the axis. */
static bool may_join(const hl_compiler *c, hl_node n, size_t segment)
{
    const hl_node *in;
    hl_node buffer[3];
    int reads = c->axis[n] > 1 && !after_segment(c, n) ? hl_reads(c, n, &in, buffer) : 0;
    for (int i = 0; i < reads; i++) {
        hl_node s = hl_read_source(c, n, i, in[i]);
        if (c->phase[s] == HL_PHASE_MAIN && hl_data(c, s)->op->kind != HL_KIND_LEAF && c->segment[s] == segment &&
            !reads_locally(c, n, i, in[i]))
            return false;
    }
    return true;
}

static void place(hl_compiler *c, hl_node n, size_t segment)
{
    c->segment[n] = segment;
    c->order[c->ordered++] = n;
}

static bool runs_elementwise(const hl_compiler *c, hl_node n)
{
    return hl_elementwise(hl_data(c, n)) && c->form[n] != HL_FORM_PLUS;
}

/* Which of the available nodes go first: elementwise ones, and last those that would have company if they waited. */
static int rank(const hl_compiler *c, const waiting *w, hl_node n)
{
    uint32_t own = hl_data(c, n)->op == &hl_op_tanh; /* a slope of tanh reads tanh itself */
    bool waits = c->form[n] == HL_FORM_NODE && c->partner[n] != HL_NONE && w->count[c->partner[n]] > own;
    return waits ? 2 : runs_elementwise(c, n) ? 0 : 1;
}

/* Place available node number i. */
static hl_node place_available(hl_compiler *c, waiting *w, size_t i, size_t segment)
{
    hl_node n = w->available[i];
    w->available[i] = w->available[--w->availables];
    place(c, n, segment);
    for (size_t u = w->first[n]; u < w->first[n + 1]; u++)
        if (--w->count[w->user[u]] == 0)
            w->available[w->availables++] = w->user[u];
    return n;
}

/* Place the next available node of the axis, the one of the lowest number of those that go first, and what is computed along with it. */
static bool place_next(hl_compiler *c, waiting *w, size_t axis, size_t segment, bool sums)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < w->availables; i++) {
        hl_node n = w->available[i], b = best == SIZE_MAX ? HL_NONE : w->available[best];
        if (c->axis[n] != axis || after_segment(c, n) != sums)
            continue;
        if (b != HL_NONE && (rank(c, w, b) != rank(c, w, n) ? rank(c, w, b) < rank(c, w, n) : b < n))
            continue;
        if (may_join(c, n, segment))
            best = i;
    }
    if (best == SIZE_MAX)
        return false;
    hl_node n = place_available(c, w, best, segment);
    for (size_t i = 0; i < w->availables;)
        if (hl_belongs(c, n, w->available[i]) && c->axis[w->available[i]] == axis &&
            may_join(c, w->available[i], segment))
            place_available(c, w, i, segment);
        else
            i++;
    return true;
}

static bool wide(const hl_compiler *c, hl_node n)
{
    const hl_node *in;
    hl_node buffer[3], source;
    hl_operand o;
    size_t entries = hl_shape_size(&hl_data(c, n)->shape) / c->axis[n];
    if (!hl_elementwise(hl_data(c, n)) || c->form[n] == HL_FORM_PLUS || entries > WIDE_ENTRIES)
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
        bool elementwise = hl_elementwise(hl_data(c, n)) && c->form[n] != HL_FORM_PLUS;
        c->wide[n] = wide(c, n);
        bool fused = elementwise && !c->wide[n] && c->fuse;
        if (i > first && !(fused && open))
            run++;
        c->run[n] = (uint32_t)run;
        open = fused;
    }
    return run + 1;
}

static hl_status add_segment(hl_compiler *c, waiting *w, size_t axis, size_t *capacity, size_t *run)
{
    hl_plan *p = c->plan;
    void *segments = p->segment;
    if (hl_grow(p->ctx, &segments, capacity, p->segments + 1, sizeof *p->segment) != HL_OK)
        return HL_ERR_NOMEM;
    p->segment = segments;
    size_t s = p->segments++, first = c->ordered;
    while (place_next(c, w, axis, s, false))
        ;
    size_t end = c->ordered;
    while (place_next(c, w, axis, s, true))
        ;
    bool grouped = false;
    for (size_t i = first; i < end; i++)
        grouped = grouped || hl_data(c, c->order[i])->op->over_rows;
    p->segment[s] = (hl_segment){ .axis = axis,
                                  .first = first,
                                  .count = end - first,
                                  .reduce_first = end,
                                  .reduce_count = c->ordered - end,
                                  .grouped = grouped };
    if (end > first)
        *run = cut_runs(c, first, end, *run);
    return HL_OK;
}

/* The axis of the next segment: work per panel before work along an axis; 0 if all is done. */
static size_t next_axis(const hl_compiler *c, const waiting *w)
{
    hl_node next = HL_NONE;
    for (size_t i = 0; i < w->availables; i++) {
        hl_node n = w->available[i];
        if (next == HL_NONE || (c->axis[n] == 1) > (c->axis[next] == 1) ||
            ((c->axis[n] == 1) == (c->axis[next] == 1) && n < next))
            next = n;
    }
    return next == HL_NONE ? 0 : c->axis[next];
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
        const hl_node_data *d = &c->g->node[n];
        c->tiled_sum[n] = n && c->phase[n] == HL_PHASE_MAIN && d->op->over_rows && c->axis[n] > 1;
    }
    place_phase(c, HL_PHASE_PRE, &p->pre_first, &p->pre_count);
    waiting w = { 0 };
    hl_status status = waiting_init(c, &w);
    for (size_t axis; status == HL_OK && (axis = next_axis(c, &w)) != 0;)
        status = add_segment(c, &w, axis, &capacity, &run);
    waiting_free(c, &w);
    place_phase(c, HL_PHASE_POST, &p->post_first, &p->post_count);
    return status;
}
