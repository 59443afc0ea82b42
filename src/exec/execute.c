/* execute.c - run a plan.
 *
 * Every thread of the team goes through the same list of stages and meets the others between them: for each chunk of the
 * batch, rows to panels; each segment's tiles; its sums over rows; panels to rows. Who does which tile is decided as they
 * go, but no sum depends on it: sums over rows are cut by output, or by groups of panels of fixed size. */
#include <stdatomic.h>
#include <string.h>

#include "exec/plan.h"

#define SHARE_UNITS 48  /* units of a product that a thread takes at a time */
#define PART_UNITS 128  /* units of a sum over rows that are worth a part of their own */
#define FLUSH_ROWS 1024 /* rows summed in the plan's precision before they go to double */

typedef struct run_state {
    hl_plan *p;
    const void *const *input, *const *param;
    void *const *output;
    const hl_row_in *row_in; /* instead of input and output, or NULL */
    const hl_row_out *row_out;
    size_t rows;
    int threads;
    atomic_size_t next[2]; /* next unit of work, of this stage and of the one after it in turn */
} run_state;

/* One thread's way through a run. */
typedef struct worker {
    run_state *s;
    int thread;
    size_t stage; /* stages behind it; all threads count alike */
} worker;

/* The chunk at hand. */
typedef struct chunk {
    size_t start, rows, panels, index;
    bool first_since_flush; /* sums start from zero */
    bool flush;             /* sums go to double after this chunk */
    bool last;
} chunk;

static bool single_precision(const hl_plan *p)
{
    return p->element == sizeof(float);
}

/* Where the user wants output i, which is not batched; NULL: nowhere. */
static void *shared_output(const run_state *s, size_t i)
{
    return s->row_out ? s->row_out[i].shared : s->output[i];
}

/* Where a sum over rows is accumulated: the user's own array if it is an output and nothing else reads it. */
static char *sum_place(const run_state *s, const hl_reduction *r)
{
    void *own = r->output != SIZE_MAX ? shared_output(s, r->output) : NULL;
    return own ? own : s->p->shared + r->value * s->p->element;
}

/* End a stage: wait for the others and go to the next counter, which was set to zero a stage ago, when nobody used it. */
static void end_stage(worker *w)
{
    run_state *s = w->s;
    if (s->threads > 1)
        hl_team_barrier(s->p->ctx->team);
    w->stage++;
    if (w->thread == 0)
        atomic_store_explicit(&s->next[(w->stage + 1) % 2], 0, memory_order_relaxed);
}

static size_t take(const worker *w, size_t count)
{
    return atomic_fetch_add_explicit(&w->s->next[w->stage % 2], count, memory_order_relaxed);
}

/* Rows `row` .. of input i to a panel. */
static void load_panel(const run_state *s, size_t i, size_t row, size_t rows, char *to)
{
    const hl_plan *p = s->p;
    size_t n = p->input[i].elements;
    const hl_row_in *in = s->row_in ? &s->row_in[i] : NULL;
    if (in ? !in->p : !s->input[i])
        memset(to, 0, n * HL_LANES * p->element);
    else if (in)
        p->k->doubles_to_panel(rows, n, in->index ? in->p : in->p + row * in->pitch, in->pitch,
                               in->index ? in->index + row : NULL, to);
    else
        p->k->rows_to_panel(rows, n, (const char *)s->input[i] + row * n * p->element, n, to);
}

static void store_panel(const run_state *s, size_t i, size_t row, size_t rows, const char *from)
{
    const hl_plan *p = s->p;
    size_t n = p->output[i].elements;
    const hl_row_out *out = s->row_out ? &s->row_out[i] : NULL;
    if (out && out->p)
        p->k->panel_to_doubles(rows, n, from, out->p + row * out->pitch, out->pitch);
    else if (!out && s->output[i])
        p->k->panel_to_rows(rows, n, from, (char *)s->output[i] + row * n * p->element, n);
}

static void rows_in(const worker *w, const chunk *c)
{
    const run_state *s = w->s;
    const hl_plan *p = s->p;
    for (size_t panel; (panel = take(w, 1)) < c->panels;)
        for (size_t i = 0; i < p->inputs; i++) {
            const hl_port *port = &p->input[i];
            size_t row = panel * HL_LANES, rows = c->rows - row < HL_LANES ? c->rows - row : HL_LANES;
            if (port->needed)
                load_panel(s, i, c->start + row, rows,
                           p->chunk + (port->ref.offset + panel * port->ref.row_step) * p->element);
        }
}

static void rows_out(const worker *w, const chunk *c)
{
    const run_state *s = w->s;
    const hl_plan *p = s->p;
    for (size_t panel; (panel = take(w, 1)) < c->panels;)
        for (size_t i = 0; i < p->outputs; i++) {
            const hl_port *port = &p->output[i];
            size_t row = panel * HL_LANES, rows = c->rows - row < HL_LANES ? c->rows - row : HL_LANES;
            if (port->batched)
                store_panel(s, i, c->start + row, rows,
                            p->chunk + (port->ref.offset + panel * port->ref.row_step) * p->element);
        }
}

/* One run on one panel of a tile that holds more. */
static void run_on_panel(const hl_frame *tile, const hl_run *run, size_t q)
{
    hl_frame f = *tile;
    f.q0 = q;
    f.q1 = q + 1;
    for (size_t i = run->first; i < run->first + run->count; i++)
        hl_instr_run(&f, &f.p->instr[i]);
}

static void run_tile(const hl_frame *f, size_t segment)
{
    const hl_plan *p = f->p;
    for (size_t r = p->run_first[segment]; r < p->run_first[segment + 1]; r++) {
        const hl_run *run = &p->run[r];
        const hl_instr *t = &p->instr[run->first], *end = t + run->count;
        if (!run->fused)
            for (; t < end; t++)
                hl_instr_run(f, t);
        else
            for (size_t q = f->q0; q < f->q1; q++)
                for (t = &p->instr[run->first]; t < end; t++)
                    hl_instr_panel(f, t, q);
    }
}

static hl_frame frame_of(const run_state *s, const chunk *c, const hl_segment *g, int thread)
{
    const hl_plan *p = s->p;
    char *own = p->threads + (size_t)thread * (p->thread_elements + p->scratch_elements) * p->element;
    hl_frame f = { .p = p, .param = s->param, .scratch = own, .axis = g ? g->axis : 1 };
    f.tile = own + p->scratch_elements * p->element;
    f.panel = f.tile + (g ? g->tile_elements * g->tile * p->element : 0);
    f.full = c->rows / HL_LANES * f.axis;
    f.tail = c->rows % HL_LANES;
    f.q1 = c->panels * f.axis;
    return f;
}

static void run_segment(const worker *w, const chunk *c, size_t segment)
{
    const run_state *s = w->s;
    const hl_plan *p = s->p;
    const hl_segment *g = &p->segment[segment];
    size_t panels = c->panels * g->axis, tile = g->tile, unit = g->grouped ? g->group : tile;
    hl_frame f = frame_of(s, c, g, w->thread);
    if (!g->grouped && panels < tile * (size_t)s->threads) /* few panels: give every thread some */
        tile = unit = (panels + (size_t)s->threads - 1) / (size_t)s->threads;
    for (size_t q; (q = take(w, unit)) < panels;) {
        size_t end = q + unit < panels ? q + unit : panels;
        f.partials = p->partials + q / unit * p->group_elements * p->element;
        f.first = true;
        for (f.q0 = q; f.q0 < end; f.q0 = f.q1) {
            f.q1 = f.q0 + tile < end ? f.q0 + tile : end;
            f.tile_q = f.q0;
            run_tile(&f, segment);
            f.first = false;
        }
    }
}

/* Few panels and several threads: all work together on every run of the segment, products cut by units of the result,
 * everything else by panels. The tile is the first thread's; it holds all the panels. */
static void run_together(worker *w, const chunk *c, size_t segment)
{
    const hl_plan *p = w->s->p;
    const hl_segment *g = &p->segment[segment];
    hl_frame f = frame_of(w->s, c, g, w->thread);
    f.tile = frame_of(w->s, c, g, 0).tile;
    for (size_t r = p->run_first[segment]; r < p->run_first[segment + 1]; r++) {
        const hl_run *run = &p->run[r];
        const hl_instr *t = &p->instr[run->first];
        size_t units = run->count == 1 ? hl_instr_units(t) : 0, shares = units / SHARE_UNITS;
        if (shares > 1)
            for (size_t i; (i = take(w, 1)) < shares;)
                hl_instr_linear(&f, t, units * i / shares, units * (i + 1) / shares);
        else
            for (size_t q; (q = take(w, 1)) < c->panels;)
                run_on_panel(&f, run, q);
        end_stage(w);
    }
}

/* Add the groups' partial sums of a segment to the totals, in the order of the groups. */
static void gather_groups(run_state *s, const chunk *c, size_t segment, int thread)
{
    hl_plan *p = s->p;
    const hl_segment *g = &p->segment[segment];
    size_t groups = (c->panels * g->axis + g->group - 1) / g->group;
    for (size_t i = g->first; i < g->first + g->count; i++) {
        if (p->instr[i].reduction == SIZE_MAX)
            continue;
        const hl_reduction *r = &p->reduction[p->instr[i].reduction];
        size_t lo = r->size * (size_t)thread / (size_t)s->threads,
               hi = r->size * ((size_t)thread + 1) / (size_t)s->threads;
        double *total = p->totals + r->total;
        if (c->index == 0)
            memset(total + lo, 0, (hi - lo) * sizeof *total);
        for (size_t group = 0; group < groups; group++)
            p->k->flush(hi - lo, p->partials + (group * p->group_elements + r->partial + lo) * p->element, total + lo);
    }
}

/* Parts in which a sum over rows is computed: large ones are cut by units of the result. */
static size_t parts_of(const run_state *s, const hl_instr *t)
{
    size_t most = 2 * (size_t)s->threads;
    size_t parts = t->code == HL_DO_CONV_W ? t->shape.dim[0] : (t->groups > 1 ? t->groups * t->n : t->n) / PART_UNITS;
    return s->threads == 1 || parts < 2 ? 1 : parts < most ? parts : most;
}

/* Sums over rows after a segment: the threads take parts as they go. */
static void reduce(const worker *w, const chunk *c, size_t segment)
{
    const run_state *s = w->s;
    const hl_segment *g = &s->p->segment[segment];
    hl_frame f = frame_of(s, c, NULL, w->thread);
    size_t mine = take(w, 1), item = 0;
    for (size_t i = g->reduce_first; i < g->reduce_first + g->reduce_count; i++) {
        const hl_instr *t = &s->p->instr[i];
        size_t parts = parts_of(s, t);
        for (size_t part = 0; part < parts; part++, item++)
            if (item == mine) {
                hl_instr_reduce(&f, t, part, parts, sum_place(s, &s->p->reduction[t->reduction]),
                                !c->first_since_flush);
                mine = take(w, 1);
            }
    }
}

/* After the chunk: sums that have grown long go to double. Thread by thread over the elements. */
static void flush(run_state *s, const chunk *c, bool first_flush, int thread)
{
    hl_plan *p = s->p;
    for (size_t i = 0; i < p->reductions && c->flush; i++) {
        const hl_reduction *r = &p->reduction[i];
        size_t lo = r->size * (size_t)thread / (size_t)s->threads,
               hi = r->size * ((size_t)thread + 1) / (size_t)s->threads;
        if (r->grouped)
            continue;
        if (first_flush)
            memset(p->totals + r->total + lo, 0, (hi - lo) * sizeof(double));
        p->k->flush(hi - lo, sum_place(s, r) + lo * p->element, p->totals + r->total + lo);
    }
}

/* At the end: totals in double become results. */
static void finish_sums(run_state *s, bool flushed)
{
    const hl_plan *p = s->p;
    for (size_t i = 0; i < p->reductions; i++) {
        const hl_reduction *r = &p->reduction[i];
        if (s->rows == 0)
            memset(sum_place(s, r), 0, r->size * p->element);
        else if (r->grouped || flushed)
            p->k->from_double(r->size, p->totals + r->total, sum_place(s, r));
    }
}

static void run_shared(run_state *s, size_t first, size_t count)
{
    hl_frame f = { .p = s->p, .param = s->param, .axis = 1, .q1 = 1, .full = 1 };
    for (size_t i = first; i < first + count; i++)
        hl_instr_shared(&f, &s->p->instr[i]);
}

static void prologue(run_state *s)
{
    const hl_plan *p = s->p;
    for (size_t i = 0; i < p->params; i++)
        if (p->param_copy[i] != SIZE_MAX)
            memcpy(p->shared + p->param_copy[i] * p->element, s->param[i], p->param_size[i] * p->element);
    run_shared(s, p->pre_first, p->pre_count);
}

static void epilogue(run_state *s, bool flushed)
{
    const hl_plan *p = s->p;
    finish_sums(s, flushed);
    run_shared(s, p->post_first, p->post_count);
    hl_frame f = { .p = p, .param = s->param, .axis = 1 };
    for (size_t i = 0; i < p->outputs; i++)
        if (!p->output[i].batched && p->output[i].reduction == SIZE_MAX && shared_output(s, i))
            memcpy(shared_output(s, i), hl_address(&f, &p->output[i].ref, 0), p->output[i].elements * p->element);
}

/* Chunks of nearly equal size, so that no thread waits through a small last one. */
static chunk chunk_at(const run_state *s, size_t start, size_t since_flush)
{
    size_t panels = (s->rows + HL_LANES - 1) / HL_LANES,
           chunks = (panels + s->p->chunk_panels - 1) / s->p->chunk_panels;
    size_t most = (panels + chunks - 1) / chunks * HL_LANES, left = s->rows - start;
    chunk c = { .start = start, .rows = left < most ? left : most, .index = start / most };
    c.panels = (c.rows + HL_LANES - 1) / HL_LANES;
    c.last = left <= most;
    c.first_since_flush = since_flush == 0;
    return c;
}

/* Is it better to share the products of a segment than its panels? */
static bool together(const run_state *s, const chunk *c, size_t segment)
{
    const hl_segment *g = &s->p->segment[segment];
    return s->threads > 1 && g->axis == 1 && c->panels <= g->tile && c->panels < 4 * (size_t)s->threads;
}

static void run_chunk(worker *w, const chunk *c)
{
    run_state *s = w->s;
    const hl_plan *p = s->p;
    rows_in(w, c);
    end_stage(w);
    for (size_t g = 0; g < p->segments; g++) {
        if (together(w->s, c, g)) {
            run_together(w, c, g);
        } else {
            run_segment(w, c, g);
            end_stage(w);
        }
        gather_groups(s, c, g, w->thread);
        if (p->segment[g].reduce_count)
            reduce(w, c, g);
        if (p->segment[g].grouped || p->segment[g].reduce_count)
            end_stage(w); /* the next segment writes over partial sums and over values that the sums read */
    }
    rows_out(w, c);
    end_stage(w);
}

static void job(void *user, int thread)
{
    worker w = { .s = user, .thread = thread };
    run_state *s = user;
    size_t since_flush = 0;
    bool flushed = false;
    if (thread == 0)
        prologue(s);
    end_stage(&w);
    for (size_t start = 0; start < s->rows;) {
        chunk c = chunk_at(s, start, since_flush);
        since_flush += c.rows;
        c.flush = single_precision(s->p) && (c.last ? flushed : since_flush >= FLUSH_ROWS);
        run_chunk(&w, &c);
        flush(s, &c, !flushed, thread);
        if (c.flush) {
            flushed = true;
            since_flush = 0;
        }
        start += c.rows;
    }
    end_stage(&w);
    if (thread == 0)
        epilogue(s, flushed);
}

static void execute(run_state s)
{
    hl_plan *p = s.p;
    hl_team *team = p->ctx->team;
    s.threads = 1;
    atomic_init(&s.next[0], 0);
    atomic_init(&s.next[1], 0);
    double start = hl_team_size(team) > 1 ? hl_clock() : 0, waited = hl_team_waited(team);
    if (!hl_share(p, s.rows, start)) {
        job(&s, 0);
        return;
    }
    if (!hl_share_waits(p, s.rows)) {
        hl_team_wake(team);
        job(&s, 0);
        hl_team_release(team);
        hl_share_woke(&p->sharing, start, hl_clock());
        return;
    }
    s.threads = hl_team_size(team);
    hl_team_run(team, job, &s);
    hl_share_learn(&p->sharing, s.threads, start, hl_clock(), hl_team_waited(team) - waited);
}

void hl_execute(hl_plan *p, size_t rows, const void *const *input, const void *const *param, void *const *output)
{
    execute((run_state){ .p = p, .input = input, .param = param, .output = output, .rows = rows });
}

void hl_execute_rows(hl_plan *p, size_t rows, const hl_row_in *input, const void *const *param,
                     const hl_row_out *output)
{
    execute((run_state){ .p = p, .row_in = input, .param = param, .row_out = output, .rows = rows });
}
