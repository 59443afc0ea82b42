/* dense.c - the solution inside a step, and where an event changes sign in it. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ode/rk.h"

/* ---- dense output ---- */

/* The polynomials that multiply F0, h k_0, h k_end and F_3 .. F_6 of tableau.h. */
typedef struct basis {
    double f0, first, last, row[4];
} basis;

static basis basis_at(double theta)
{
    double s = 1 - theta, q = theta * theta * s * s;
    return (basis){ .f0 = theta * (1 - s + 2 * s * theta),
                    .first = theta * s * s,
                    .last = -theta * theta * s,
                    .row = { q, q * theta, q * theta * s, q * theta * s * theta } };
}

/* Weights of the k_j but for those through F0. */
static void slope_weights(const hl_rk *m, const basis *b, double *weight)
{
    int stages = m->end + 1 + m->extra;
    for (int j = 0; j < stages; j++) {
        weight[j] = j == 0 ? b->first : j == m->end ? b->last : 0;
        for (int r = 0; r < m->dense_rows; r++)
            weight[j] += b->row[r] * m->d[r * stages + j];
    }
}

void hl_rk_dense_weights(const hl_rk *m, double theta, double *weight)
{
    basis b = basis_at(theta);
    slope_weights(m, &b, weight);
    for (int j = 0; j < m->end; j++)
        weight[j] += b.f0 * hl_rk_row(m, m->end)[j];
}

void hl_rk_dense(const hl_rk_state *s, size_t i, double theta, double *y)
{
    double weight[HL_RK_STAGES];
    basis b = basis_at(theta);
    size_t n = s->n;
    slope_weights(s->m, &b, weight);
    hl_rk_combine(s, s->k, i, 1, weight, s->stages, s->y, y);
    for (size_t v = 0; v < n; v++)
        y[v] += b.f0 * (s->end[i * n + v] - s->y[i * n + v]);
}

/* ---- events ---- */

/* The event's value in each row of the call, and whether it is good. As hl_rk_evaluate. */
static int evaluate_events(hl_ode *ode, const hl_rk_job *job, const hl_rows *at, double *value, size_t *verdict)
{
    int result = job->event(ode->options.event_user, at, value), bad = 0;
    if (result < 0)
        ode->report.callback = result;
    if (result < 0)
        return result;
    for (size_t r = 0; r < at->count; r++) {
        hl_rows one = { 1, at->index + r, at->t + r, at->y + r * ode->system.n };
        int again = result && at->count > 1 ? job->event(ode->options.event_user, &one, value + r) : result;
        if (again < 0)
            ode->report.callback = again;
        if (again < 0)
            return again;
        verdict[r] = again ? HL_RK_REFUSED : isfinite(value[r]) ? HL_RK_GOOD : HL_RK_NOT_FINITE;
        bad |= verdict[r] != HL_RK_GOOD;
    }
    return bad;
}

int hl_rk_first_events(hl_ode *ode, hl_rk_job *job, size_t first)
{
    hl_rk_state *s = ode->state;
    for (size_t i = first; i < s->active; i++) {
        s->index[i] = s->slot[i].row;
        s->t[i] = s->slot[i].t;
    }
    hl_rows at = { s->active - first, s->index + first, s->t + first, s->y + first * s->n };
    int value = evaluate_events(ode, job, &at, s->list_t, s->verdict);
    if (value < 0)
        return value;
    for (size_t i = first; i < s->active; i++) {
        hl_rk_slot *slot = &s->slot[i];
        slot->event = s->list_t[i - first];
        slot->verdict = s->verdict[i - first];
        slot->done = slot->verdict != HL_RK_GOOD;
        if (slot->done)
            slot->info.status = slot->verdict == HL_RK_REFUSED ? HL_ERR_STEP : HL_ERR_NOT_FINITE;
    }
    return 0;
}

int hl_rk_events(hl_ode *ode, hl_rk_job *job, size_t good)
{
    hl_rk_state *s = ode->state;
    size_t n = s->n, count = 0;
    for (size_t i = 0; i < good; i++)
        if (s->slot[i].passed) {
            s->list[count] = i;
            s->list_index[count] = s->slot[i].row;
            s->list_t[count] = s->slot[i].next;
            memcpy(s->list_y + count++ * n, s->end + i * n, n * sizeof *s->y);
        }
    hl_rows at = { count, s->list_index, s->list_t, s->list_y };
    int value = count ? evaluate_events(ode, job, &at, s->list_k, s->verdict) : 0;
    if (value < 0)
        return value;
    for (size_t q = 0; q < count; q++) {
        hl_rk_slot *slot = &s->slot[s->list[q]];
        slot->verdict = s->verdict[q];
        slot->passed = !slot->verdict;
        slot->event_next = s->list_k[q];
        slot->crossed = (slot->event > 0 && slot->event_next <= 0) || (slot->event < 0 && slot->event_next >= 0);
    }
    return 0;
}

/* One more value inside the bracket; > 0 if it is bad. */
static int probe(hl_ode *ode, hl_rk_job *job, size_t i, double theta, double *value)
{
    hl_rk_state *s = ode->state;
    hl_rk_slot *slot = &s->slot[i];
    double t = slot->t + theta * s->h[i];
    size_t verdict = HL_RK_GOOD;
    hl_rk_dense(s, i, theta, s->list_y);
    hl_rows at = { 1, &slot->row, &t, s->list_y };
    int result = evaluate_events(ode, job, &at, value, &verdict);
    slot->passed = result == 0;
    slot->verdict = verdict;
    return result;
}

/* Regula falsi that halves the value at an end that stays (Illinois), with a bisection every third time. The result is the far
 * side of the root, so that a solve that goes on from there does not meet the same event again. */
int hl_rk_locate(hl_ode *ode, hl_rk_job *job, size_t i)
{
    hl_rk_state *s = ode->state;
    hl_rk_slot *slot = &s->slot[i];
    double a = 0, b = 1, ga = slot->event, gb = slot->event_next, sign = ga > 0 ? 1 : -1, h = s->h[i];
    double tolerance = 4 * DBL_EPSILON * fmax(1, fabs(slot->t / h));
    int before = 0; /* the end that moved: -1 or 1 */
    for (int turn = 0; gb != 0 && b - a > tolerance; turn++) {
        double at = turn % 3 == 2 ? (a + b) / 2 : b - gb * (b - a) / (gb - ga), value = 0;
        at = fmin(fmax(at, a + tolerance / 2), b - tolerance / 2);
        int result = probe(ode, job, i, at, &value), moved = value * sign > 0 ? -1 : 1;
        if (result)
            return result < 0 ? result : 0;
        *(moved < 0 ? &a : &b) = at;
        *(moved < 0 ? &ga : &gb) = value;
        if (moved == before)
            *(moved < 0 ? &gb : &ga) /= 2;
        before = moved;
    }
    slot->theta = b;
    slot->next = b < 1 ? slot->t + b * h : slot->next;
    return 0;
}
