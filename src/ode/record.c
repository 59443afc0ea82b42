/* record.c - the accepted steps of a solve, kept within a bound of memory.
 *
 * An entry is a step: where it began, its size, and what the step control remembered, so that solving on from an entry makes the
 * same steps, to the bit. When the entries are full, every second one of each row is dropped and from then on only every
 * stride-th step is kept; the steps between are made again when they are replayed. A row's first step is never dropped.
 *
 * If memory is ample an entry also has the slopes of the step's stages, so that the replay need not evaluate them again. */
#include <math.h>
#include <string.h>

#include "ode/rk.h"

enum { LONGEST_WINDOW = 1024 };
enum {
    LEAST_UNITS = 32
}; /* entries of a row, however little memory is allowed: about what the stages of a step take */
enum { UNITS_WITH_SLOPES = 64 }; /* slopes are kept if so many entries of a row have room for theirs */

static size_t entries_that_fit(const hl_rk_state *s, const hl_ode_options *o)
{
    size_t values = hl_size_mul(s->n, (size_t)s->record.slopes + 1);
    return o->checkpoint_bytes / hl_size_add(sizeof *s->record.entry, hl_size_mul(values, sizeof(double)));
}

void hl_record_layout(hl_rk_state *s, const hl_ode_options *o, char *slab, size_t *used)
{
    hl_record *r = &s->record;
    size_t rows = s->slots, n = s->n, d = sizeof(double), z = sizeof(size_t), values = hl_size_mul(rows, n);
    size_t least = hl_size_mul(rows, LEAST_UNITS), units;
    r->slopes = s->m->end - 1;
    units = entries_that_fit(s, o);
    if (units / rows < UNITS_WITH_SLOPES) {
        r->slopes = 0;
        units = entries_that_fit(s, o);
    }
    units = units < least ? least : units;
    size_t kept = hl_size_mul(n, (size_t)r->slopes);
    r->window = units / rows / 4 > LONGEST_WINDOW ? LONGEST_WINDOW : units / rows / 4;
    r->capacity = units - rows * r->window;
    r->entry = hl_slab_take(slab, used, r->capacity, sizeof *r->entry);
    r->y = hl_slab_take(slab, used, hl_size_mul(r->capacity, n), d);
    r->k = hl_slab_take(slab, used, hl_size_mul(r->capacity, kept), d);
    r->last = hl_slab_take(slab, used, rows, z);
    r->steps = hl_slab_take(slab, used, rows, z);
    r->start = hl_slab_take(slab, used, rows, d);
    r->theta = hl_slab_take(slab, used, rows, d);
    r->window_t = hl_slab_take(slab, used, hl_size_mul(rows, r->window), d);
    r->window_h = hl_slab_take(slab, used, hl_size_mul(rows, r->window), d);
    r->window_next = hl_slab_take(slab, used, hl_size_mul(rows, r->window), d);
    r->window_y = hl_slab_take(slab, used, hl_size_mul(values, r->window), d);
    r->window_k = hl_slab_take(slab, used, hl_size_mul(hl_size_mul(rows, r->window), kept), d);
    r->from = hl_slab_take(slab, used, rows, z);
    r->to = hl_slab_take(slab, used, rows, z);
    r->cursor = hl_slab_take(slab, used, rows, z);
    r->list = hl_slab_take(slab, used, rows, z);
    r->gy = hl_slab_take(slab, used, values, d);
    r->next = hl_slab_take(slab, used, rows, d);
    for (int j = 1; j < s->stages; j++)
        r->stage[j] = hl_slab_take(slab, used, values, d);
    r->stage[0] = s->y;
}

void hl_record_start(hl_rk_state *s, size_t rows, const double *t, double end)
{
    hl_record *r = &s->record;
    r->count = 0;
    r->stride = 1;
    r->rows = rows;
    r->end = end;
    r->valid = true;
    for (size_t i = 0; i < rows; i++) {
        r->last[i] = SIZE_MAX;
        r->steps[i] = 0;
        r->start[i] = t[i];
        r->theta[i] = 1;
    }
}

/* Double the stride and close the gaps. */
static void thin(hl_record *r, size_t n)
{
    size_t kept = 0, slopes = (size_t)r->slopes * n;
    r->stride *= 2;
    for (size_t i = 0; i < r->rows; i++)
        r->last[i] = SIZE_MAX;
    for (size_t i = 0; i < r->count; i++) {
        hl_record_entry *e = &r->entry[i];
        if (e->step % r->stride != 0)
            continue;
        r->entry[kept] = *e;
        r->entry[kept].before = r->last[e->row];
        memmove(r->y + kept * n, r->y + i * n, n * sizeof *r->y);
        memmove(r->k + kept * slopes, r->k + i * slopes, slopes * sizeof *r->k);
        r->last[r->entry[kept].row] = kept;
        kept++;
    }
    r->count = kept;
}

static void keep_slopes(const hl_rk_state *s, size_t i, double *to)
{
    for (int j = 0; j < s->record.slopes; j++, to += s->n)
        memcpy(to, s->k[j] + i * s->n, s->n * sizeof *to);
}

static void keep_in_window(hl_rk_state *s, size_t i)
{
    hl_record *r = &s->record;
    const hl_rk_slot *slot = &s->slot[i];
    size_t step = slot->info.steps, at;
    if (step < r->from[slot->row])
        return;
    at = slot->row * r->window + step - r->from[slot->row];
    r->window_t[at] = slot->t;
    r->window_next[at] = slot->next;
    r->window_h[at] = s->h[i];
    memcpy(r->window_y + at * s->n, s->y + i * s->n, s->n * sizeof *s->y);
    keep_slopes(s, i, r->window_k + at * (size_t)r->slopes * s->n);
}

void hl_record_step(hl_rk_state *s, size_t i, bool replay)
{
    hl_record *r = &s->record;
    const hl_rk_slot *slot = &s->slot[i];
    size_t row = slot->row, step = slot->info.steps;
    if (replay) {
        keep_in_window(s, i);
        return;
    }
    r->steps[row] = step + 1;
    r->theta[row] = slot->theta;
    while (step % r->stride == 0 && r->count == r->capacity)
        thin(r, s->n);
    if (step % r->stride != 0)
        return;
    r->entry[r->count] = (hl_record_entry){ .row = row,
                                            .step = step,
                                            .before = r->last[row],
                                            .t = slot->t,
                                            .next = slot->next,
                                            .h = s->h[i],
                                            .error_before = slot->error_before,
                                            .rejected = slot->rejected };
    memcpy(r->y + r->count * s->n, s->y + i * s->n, s->n * sizeof *s->y);
    keep_slopes(s, i, r->k + r->count * (size_t)r->slopes * s->n);
    r->last[row] = r->count++;
}
