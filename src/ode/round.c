/* round.c - one step of every slot: tried together, then judged, finished and taken over one by one. */
#include <math.h>
#include <string.h>

#include "ode/rk.h"

/* ---- evaluations of some slots ---- */

static void list_slot(hl_rk_state *s, size_t q, double c)
{
    const hl_rk_slot *slot = &s->slot[s->list[q]];
    s->list_index[q] = slot->row;
    s->list_t[q] = c == 1 ? slot->next : slot->t + c * s->h[s->list[q]];
}

/* f at list_y of the `count` listed slots to their k[stage]; those where it is bad have not passed and leave the list. */
static int evaluate_list(hl_ode *ode, size_t *count, int stage)
{
    hl_rk_state *s = ode->state;
    size_t n = s->n, kept = 0;
    if (!*count)
        return 0;
    for (size_t q = 0; q < *count; q++)
        list_slot(s, q, s->m->c[stage]);
    hl_rows at = { *count, s->list_index, s->list_t, s->list_y };
    int value = hl_rk_evaluate(ode, &at, s->list_k, s->verdict);
    if (value < 0)
        return value;
    for (size_t q = 0; q < *count; q++) {
        size_t i = s->list[q];
        hl_rk_slot *slot = &s->slot[i];
        slot->info.evaluations++;
        slot->verdict = value ? s->verdict[q] : HL_RK_GOOD;
        slot->passed = !slot->verdict;
        memcpy(s->k[stage] + i * n, s->list_k + q * n, n * sizeof *s->y);
        if (slot->passed)
            s->list[kept++] = i;
    }
    *count = kept;
    return 0;
}

/* ---- finishing a step that passed ---- */

static bool is_before(double a, double b, double h)
{
    return h > 0 ? a < b : a > b;
}

/* Is the solution inside the step asked for? */
static bool wants_dense(const hl_rk_state *s, const hl_rk_job *job, size_t i)
{
    const hl_rk_slot *slot = &s->slot[i];
    return slot->crossed || (slot->time < job->count && is_before(job->times[slot->time], slot->next, s->h[i]));
}

/* f at the end of the step, for the next step and for dense output. */
static int finish_ends(hl_ode *ode, const hl_rk_job *job)
{
    hl_rk_state *s = ode->state;
    size_t n = s->n, count = 0;
    if (s->adaptive && s->m->end_in_error)
        return 0;
    for (size_t i = 0; i < s->active; i++)
        if (s->slot[i].passed && (!s->slot[i].last || wants_dense(s, job, i))) {
            s->list[count] = i;
            memcpy(s->list_y + count++ * n, s->end + i * n, n * sizeof *s->y);
        }
    return evaluate_list(ode, &count, s->m->end);
}

static int finish_dense(hl_ode *ode, const hl_rk_job *job)
{
    hl_rk_state *s = ode->state;
    size_t n = s->n, count = 0;
    for (size_t i = 0; s->m->extra && i < s->active; i++)
        if (s->slot[i].passed && wants_dense(s, job, i))
            s->list[count++] = i;
    for (int j = s->m->end + 1; j < s->stages && count; j++) {
        for (size_t q = 0; q < count; q++)
            hl_rk_combine(s, s->k, s->list[q], 1, hl_rk_row(s->m, j), j, s->y, s->list_y + q * n);
        int value = evaluate_list(ode, &count, j);
        if (value < 0)
            return value;
    }
    return 0;
}

/* ---- accepting ---- */

static void write_outputs(const hl_rk_state *s, const hl_rk_job *job, size_t i)
{
    hl_rk_slot *slot = &s->slot[i];
    size_t n = s->n;
    for (; slot->time < job->count && !is_before(slot->next, job->times[slot->time], s->h[i]); slot->time++) {
        double *out = job->out ? job->out + (slot->time * job->rows + slot->row) * n : NULL;
        double theta = (job->times[slot->time] - slot->t) / s->h[i];
        if (out && job->times[slot->time] == slot->next && slot->theta == 1)
            memcpy(out, s->end + i * n, n * sizeof *out);
        else if (out)
            hl_rk_dense(s, i, theta, out);
    }
}

static void accept_step(hl_ode *ode, hl_rk_job *job, size_t i)
{
    hl_rk_state *s = ode->state;
    hl_rk_slot *slot = &s->slot[i];
    size_t n = s->n, bytes = n * sizeof *s->y;
    write_outputs(s, job, i);
    if (slot->theta < 1) {
        hl_rk_dense(s, i, slot->theta, s->list_y);
        memcpy(s->end + i * n, s->list_y, bytes);
    }
    if (ode->options.gradient == HL_REPLAY)
        hl_record_step(s, i, job->replay);
    memcpy(s->y + i * n, s->end + i * n, bytes);
    memcpy(s->k[0] + i * n, s->k[s->m->end] + i * n, bytes);
    slot->t = slot->next;
    slot->event = slot->event_next;
    slot->info.steps++;
    ode->counts->steps++;
    hl_rk_accepted(ode, slot);
    slot->done = slot->last || slot->crossed;
    slot->info.status = slot->crossed ? HL_STOPPED : HL_OK;
    if (job->replay)
        slot->done = slot->info.steps == s->record.to[slot->row];
}

int hl_rk_round(hl_ode *ode, hl_rk_job *job)
{
    hl_rk_state *s = ode->state;
    size_t good = s->active;
    for (size_t i = 0; i < s->active; i++)
        s->slot[i].passed = s->slot[i].crossed = false;
    int value = hl_rk_try(ode, &good);
    if (value < 0)
        return value;
    hl_rk_measure(ode, good);
    for (size_t i = 0; i < good; i++) {
        hl_rk_slot *slot = &s->slot[i];
        slot->passed = !slot->verdict && (!s->adaptive || slot->info.error <= 1);
    }
    if ((job->event && (value = hl_rk_events(ode, job, good)) < 0) || (value = finish_ends(ode, job)) < 0 ||
        (value = finish_dense(ode, job)) < 0)
        return value;
    for (size_t i = 0; i < good; i++)
        if (s->slot[i].passed && s->slot[i].crossed && (value = hl_rk_locate(ode, job, i)) < 0)
            return value;
    for (size_t i = 0; i < s->active; i++) {
        if (s->slot[i].passed) {
            accept_step(ode, job, i);
        } else {
            s->slot[i].info.rejected++;
            ode->counts->rejected++;
            hl_rk_rejected(ode, &s->slot[i]);
        }
    }
    return 0;
}
