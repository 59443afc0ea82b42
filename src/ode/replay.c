/* replay.c - HL_REPLAY: the gradient of exactly the steps that were taken, step sizes and times being constants.
 *
 * One step backwards, a being the gradient to its end and b_j, a_ij the tableau's:
 *     g_j = h (b_j a + sum_{i>j} a_ij Y'_i),   Y'_j = J(t_j, Y_j)' g_j,   a <- a + sum_j Y'_j
 * Rows go backwards together, each from its own last step, in *phases*: every row's steps between its last entry of the
 * record and where it has got to (or as many of them as its window holds) are made again, then taken backwards. From the
 * second phase on all rows have equally many. The order of all sums depends on the steps alone. */
#include <math.h>
#include <string.h>

#include "ode/rk.h"

static hl_status explain(hl_ode *ode, int value)
{
    if (value < 0)
        return hl_fail(ode->ctx, HL_ERR_CALLBACK, "a callback of the system stopped the gradient with the value %d",
                       value);
    return hl_fail(ode->ctx, HL_ERR_NOT_FINITE,
                   "the gradient is not finite: f or its vjp failed or is not finite at a recorded step");
}

/* ---- one step backwards ---- */

/* Set times of the `count` rows at hand to those of stage j in the solve; where their steps start and end is in list_t and next. */
static hl_rows stage_rows(hl_rk_state *s, size_t count, int j)
{
    double c = s->m->c[j];
    for (size_t i = 0; i < count; i++)
        s->t[i] = c == 1 ? s->record.next[i] : s->list_t[i] + c * s->h[i];
    return (hl_rows){ count, s->index, s->t, s->record.stage[j] };
}

/* Where the stages were evaluated, from slopes that are known or else evaluated again. The slope of the last of them is not needed. */
static int repeat_stages(hl_ode *ode, size_t count, int stages, bool known)
{
    hl_rk_state *s = ode->state;
    for (int j = 0; j < stages; j++) {
        hl_rows at = stage_rows(s, count, j);
        if (j > 0)
            hl_rk_combine(s, s->k, 0, count, hl_rk_row(s->m, j), j, s->y, s->record.stage[j]);
        int value = !known && j + 1 < stages ? hl_call_rhs(ode, &at, s->k[j], NULL) : 0;
        if (value)
            return value;
    }
    return 0;
}

/* weight: of the stages in the step's end. k[j] is overwritten by Y'_j. */
static int reverse_stages(hl_ode *ode, size_t count, int stages, const double *weight, double *gparam)
{
    hl_rk_state *s = ode->state;
    double *term[HL_RK_STAGES + 1] = { s->record.gy };
    double *live[HL_RK_STAGES];
    int lives = 0;
    for (int j = stages - 1; j >= 0; j--) {
        double coef[HL_RK_STAGES + 1] = { weight[j] };
        bool any = weight[j] != 0;
        int terms = 1;
        for (int i = stages - 1; i > j; i--, terms++) {
            term[terms] = s->k[i];
            coef[terms] = hl_rk_row(s->m, i)[j];
            any = any || coef[terms] != 0;
        }
        if (!any) {
            memset(s->k[j], 0, count * s->n * sizeof *s->y);
            continue;
        }
        hl_rk_combine(s, term, 0, count, coef, terms, NULL, s->work);
        hl_rows at = stage_rows(s, count, j);
        int value = hl_call_vjp(ode, &at, s->work, s->k[j], gparam, NULL);
        if (value)
            return value;
        live[lives++] = s->k[j];
    }
    for (int j = 0; j < lives; j++)
        for (size_t i = 0; i < count * s->n; i++)
            s->record.gy[i] += live[j][i];
    return 0;
}

/* Step record.to - back of the `count` rows in `row`. All of them end as the tableau says, or one at its event. */
static int reverse_rows(hl_ode *ode, size_t count, const size_t *row, size_t back, double *gy, double *gparam)
{
    hl_rk_state *s = ode->state;
    hl_record *r = &s->record;
    size_t n = s->n, bytes = n * sizeof *s->y;
    bool cut = count == 1 && back == 1 && r->to[row[0]] == r->steps[row[0]] && r->theta[row[0]] < 1;
    double weight[HL_RK_STAGES];
    for (size_t i = 0; i < count; i++) {
        size_t at = row[i] * r->window + r->to[row[i]] - back - r->from[row[i]];
        s->index[i] = row[i];
        s->h[i] = r->window_h[at];
        s->list_t[i] = r->window_t[at];
        r->next[i] = cut ? r->window_t[at] + r->window_h[at] : r->window_next[at]; /* the event has moved its end */
        memcpy(s->y + i * n, r->window_y + at * n, bytes);
        for (int j = 0; j < r->slopes; j++)
            memcpy(s->k[j] + i * n, r->window_k + (at * (size_t)r->slopes + (size_t)j) * n, bytes);
        memcpy(r->gy + i * n, gy + row[i] * n, bytes);
    }
    if (cut)
        hl_rk_dense_weights(s->m, r->theta[row[0]], weight);
    else
        memcpy(weight, hl_rk_row(s->m, s->m->end), (size_t)s->m->end * sizeof *weight);
    int stages = cut ? s->stages : s->m->end, value = repeat_stages(ode, count, stages, !cut && r->slopes);
    if (!value)
        value = reverse_stages(ode, count, stages, weight, gparam);
    for (size_t i = 0; !value && i < count; i++)
        memcpy(gy + row[i] * n, r->gy + i * n, bytes);
    ode->counts->steps += count;
    return value;
}

/* ---- phases ---- */

/* A slot that goes on from the row's entry as the solve did. */
static void restore(hl_rk_state *s, const hl_record_entry *e, const double *y)
{
    size_t i = s->active++;
    s->slot[i] = (hl_rk_slot){ .row = e->row,
                               .start = s->record.start[e->row],
                               .t = e->t,
                               .proposal = fabs(e->h),
                               .error_before = e->error_before,
                               .rejected = e->rejected,
                               .theta = 1,
                               .info.steps = e->step };
    memcpy(s->y + i * s->n, y, s->n * sizeof *y);
}

/* Fill the rows' windows: from the entry itself if it is the step wanted, else by solving on from it. */
static hl_status fill_windows(hl_ode *ode)
{
    hl_rk_state *s = ode->state;
    hl_record *r = &s->record;
    size_t slopes = (size_t)r->slopes * s->n;
    s->active = 0;
    for (size_t row = 0; row < r->rows; row++) {
        size_t at = r->cursor[row], first = row * r->window;
        if (!r->to[row])
            continue;
        const hl_record_entry *e = &r->entry[at];
        r->from[row] = r->to[row] - e->step > r->window ? r->to[row] - r->window : e->step;
        if (r->to[row] - e->step > 1) {
            restore(s, e, r->y + at * s->n);
            continue;
        }
        r->window_t[first] = e->t;
        r->window_next[first] = e->next;
        r->window_h[first] = e->h;
        memcpy(r->window_y + first * s->n, r->y + at * s->n, s->n * sizeof *s->y);
        memcpy(r->window_k + first * slopes, r->k + at * slopes, slopes * sizeof *r->k);
    }
    hl_rk_job job = { .end = r->end, .replay = true };
    hl_status status = s->active ? hl_rk_run(ode, &job) : HL_OK;
    return status == HL_OK && job.failures ? explain(ode, 1) : status;
}

/* The steps of all windows, last ones first. */
static int reverse_windows(hl_ode *ode, double *gy, double *gparam)
{
    hl_rk_state *s = ode->state;
    hl_record *r = &s->record;
    for (size_t back = 1, count = 1; count; back++) {
        count = 0;
        for (size_t row = 0; row < r->rows; row++) {
            int value = 0;
            if (r->to[row] < back || r->to[row] - back < r->from[row])
                continue;
            if (back == 1 && r->to[row] == r->steps[row] && r->theta[row] < 1)
                value = reverse_rows(ode, 1, &row, back, gy, gparam);
            else
                r->list[count++] = row;
            if (value)
                return value;
        }
        int value = count ? reverse_rows(ode, count, r->list, back, gy, gparam) : 0;
        if (value)
            return value;
        count += back == 1; /* rows that ended at events may have more */
    }
    return 0;
}

hl_status hl_replay_gradient(hl_ode *ode, double *gy, double *gparam)
{
    hl_rk_state *s = ode->state;
    hl_record *r = &s->record;
    bool more = true;
    if (!r->valid)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "hl_ode_gradient: there is no solve to differentiate");
    if (!ode->system.n_params)
        gparam = NULL;
    memcpy(r->cursor, r->last, r->rows * sizeof *r->last);
    memcpy(r->to, r->steps, r->rows * sizeof *r->to);
    memset(r->from, 0, r->rows * sizeof *r->from);
    while (more) {
        hl_status status = fill_windows(ode);
        int value = status == HL_OK ? reverse_windows(ode, gy, gparam) : 0;
        if (status != HL_OK || value)
            return status != HL_OK ? status : explain(ode, value);
        more = false;
        for (size_t row = 0; row < r->rows; row++)
            if (r->to[row]) {
                r->to[row] = r->from[row];
                if (r->to[row] == r->entry[r->cursor[row]].step)
                    r->cursor[row] = r->entry[r->cursor[row]].before;
                more = more || r->to[row];
            }
    }
    return HL_OK;
}
