/* step.c - the arithmetic of a step: stages, the state at its end, its error.
 *
 * Loops go over the slots' values as one long array where they can, so that they vectorise whatever n is. Every value is
 * computed by the same operations in the same order wherever it stands. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ode/rk.h"

enum { BLOCK = 1024 /* values that go through together, to stay in the first cache */ };

/* ---- combinations ---- */

static void set_scaled(double *restrict out, const double *restrict k, double c, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = c * k[i];
}

static void add_scaled(double *restrict out, const double *restrict k, double c, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] += c * k[i];
}

static void finish_rows(double *restrict out, const double *restrict base, const double *h, size_t rows, size_t n)
{
    for (size_t r = 0; r < rows; r++, out += n) {
        if (base)
            for (size_t i = 0; i < n; i++)
                out[i] = base[r * n + i] + h[r] * out[i];
        else
            for (size_t i = 0; i < n; i++)
                out[i] *= h[r];
    }
}

void hl_rk_combine(const hl_rk_state *s, double *const *k, size_t first, size_t rows, const double *coef, int terms,
                   const double *base, double *out)
{
    size_t n = s->n, block = BLOCK / n + 1, stop = first + rows;
    for (size_t r = first; r < stop; r += block) {
        size_t count = stop - r < block ? stop - r : block;
        double *at = out + (r - first) * n;
        bool begun = false;
        for (int j = 0; j < terms; j++)
            if (coef[j] != 0) {
                (begun ? add_scaled : set_scaled)(at, k[j] + r * n, coef[j], count * n);
                begun = true;
            }
        if (!begun)
            memset(at, 0, count * n * sizeof *at);
        finish_rows(at, base ? base + r * n : NULL, s->h + r, count, n);
    }
}

/* ---- evaluations ---- */

static size_t judge_row(const double *dy, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(dy[i]))
            return HL_RK_NOT_FINITE + i;
    return HL_RK_GOOD;
}

/* A callback that refuses a call does not say which row it means: ask again for each alone. */
static int evaluate_singly(hl_ode *ode, const hl_rows *at, double *dy, size_t *verdict)
{
    size_t n = ode->system.n;
    for (size_t r = 0; r < at->count; r++) {
        hl_rows one = { 1, at->index + r, at->t + r, at->y + r * n };
        size_t bad = SIZE_MAX;
        int value = hl_call_rhs(ode, &one, dy + r * n, &bad);
        if (value < 0)
            return value;
        verdict[r] = value == 0 ? HL_RK_GOOD : bad == SIZE_MAX ? HL_RK_REFUSED : HL_RK_NOT_FINITE + bad;
    }
    return 1;
}

int hl_rk_evaluate(hl_ode *ode, const hl_rows *at, double *dy, size_t *verdict)
{
    size_t n = ode->system.n, bad = SIZE_MAX;
    int value = hl_call_rhs(ode, at, dy, &bad);
    if (value <= 0)
        return value;
    if (bad == SIZE_MAX && at->count > 1)
        return evaluate_singly(ode, at, dy, verdict);
    for (size_t r = 0; r < at->count; r++)
        verdict[r] = bad == SIZE_MAX ? HL_RK_REFUSED : judge_row(dy + r * n, n);
    return 1;
}

static void swap_rows(double *a, double *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double value = a[i];
        a[i] = b[i];
        b[i] = value;
    }
}

/* Exchange all of two slots, in the middle of a step. */
static void swap_slots(hl_rk_state *s, size_t a, size_t b)
{
    size_t n = s->n;
    if (a == b)
        return;
    hl_rk_slot slot = s->slot[a];
    s->slot[a] = s->slot[b];
    s->slot[b] = slot;
    swap_rows(s->h + a, s->h + b, 1);
    swap_rows(s->y + a * n, s->y + b * n, n);
    swap_rows(s->end + a * n, s->end + b * n, n);
    for (int j = 0; j < s->stages; j++)
        swap_rows(s->k[j] + a * n, s->k[j] + b * n, n);
    for (int j = 0; j < s->ab; j++)
        swap_rows(s->history[j] + a * n, s->history[j] + b * n, n);
}

void hl_rk_move(hl_rk_state *s, size_t to, size_t from)
{
    size_t n = s->n, bytes = n * sizeof *s->y;
    if (to == from)
        return;
    s->slot[to] = s->slot[from];
    memcpy(s->y + to * n, s->y + from * n, bytes);
    memcpy(s->k[0] + to * n, s->k[0] + from * n, bytes);
    for (int j = 0; j < s->ab; j++)
        memcpy(s->history[j] + to * n, s->history[j] + from * n, bytes);
}

int hl_rk_stage(hl_ode *ode, size_t first, size_t *good, double c, const double *y, int stage)
{
    hl_rk_state *s = ode->state;
    size_t n = s->n;
    for (size_t i = first; i < *good; i++) {
        hl_rk_slot *slot = &s->slot[i];
        s->index[i] = slot->row;
        s->t[i] = c == 0 ? slot->t : c == 1 ? slot->next : slot->t + c * s->h[i];
        slot->info.evaluations++;
    }
    hl_rows at = { *good - first, s->index + first, s->t + first, y + first * n };
    int value = hl_rk_evaluate(ode, &at, s->k[stage] + first * n, s->verdict);
    if (value <= 0)
        return value;
    for (size_t i = *good; i-- > first;)
        if (s->verdict[i - first]) {
            s->slot[i].verdict = s->verdict[i - first];
            swap_slots(s, i, --*good);
        }
    return 0;
}

/* ---- a step ---- */

/* y + h sum_i b_i f(i steps ago); all slots have made the same number of steps. */
static void step_by_history(hl_rk_state *s, size_t good, size_t step)
{
    double *past[HL_AB_ORDER];
    size_t order = (size_t)s->ab;
    for (size_t i = 0; i < order; i++)
        past[i] = s->history[(step - i) % order];
    hl_rk_combine(s, past, 0, good, s->ab_weights, s->ab, s->y, s->end);
}

int hl_rk_try(hl_ode *ode, size_t *good)
{
    hl_rk_state *s = ode->state;
    const hl_rk *m = s->m;
    if (s->ab) {
        size_t step = s->slot[0].info.steps, order = (size_t)s->ab;
        memcpy(s->history[step % order], s->k[0], *good * s->n * sizeof *s->y);
        if (step + 1 >= order) {
            step_by_history(s, *good, step);
            return 0;
        }
    }
    for (int j = 1; j <= m->end && *good; j++) {
        double *at = j == m->end ? s->end : s->work;
        hl_rk_combine(s, s->k, 0, *good, hl_rk_row(m, j), j, s->y, at);
        if (j == m->end && !(s->adaptive && m->end_in_error))
            return 0;
        int value = hl_rk_stage(ode, 0, good, m->c[j], at, j);
        if (value < 0)
            return value;
    }
    return 0;
}

/* ---- the error ---- */

/* Of one row: sum of the squares of e and e3 (may be NULL) in units of the tolerance, and where e is largest. */
static double sum_squares(const hl_ode *ode, const double *y, const double *end, const double *e, const double *e3,
                          double *sum3, size_t *component)
{
    const hl_ode_options *o = &ode->options;
    double sum = 0, largest = -1;
    *sum3 = 0;
    for (size_t i = 0; i < ode->system.n; i++) {
        double scale = o->atol + o->rtol * fmax(fabs(y[i]), fabs(end[i])), weight = o->weights ? o->weights[i] : 1;
        double x = fabs(weight * e[i]) / scale;
        sum += x * x;
        if (x > largest) {
            largest = x;
            *component = i;
        }
        if (e3) {
            double x3 = weight * e3[i] / scale;
            *sum3 += x3 * x3;
        }
    }
    return sum;
}

void hl_rk_measure(hl_ode *ode, size_t good)
{
    hl_rk_state *s = ode->state;
    const hl_rk *m = s->m;
    size_t n = s->n;
    int terms = m->end + m->end_in_error;
    if (s->adaptive) {
        hl_rk_combine(s, s->k, 0, good, m->e, terms, NULL, s->work);
        if (m->e3)
            hl_rk_combine(s, s->k, 0, good, m->e3, terms, NULL, s->list_y);
    }
    for (size_t i = 0; i < good; i++) {
        hl_rk_slot *slot = &s->slot[i];
        slot->verdict = judge_row(s->end + i * n, n);
        if (!s->adaptive || slot->verdict)
            continue;
        double sum3, sum = sum_squares(ode, s->y + i * n, s->end + i * n, s->work + i * n,
                                       m->e3 ? s->list_y + i * n : NULL, &sum3, &slot->info.component);
        if (m->e3 && sum > 0)
            sum *= sum / (sum + .01 * sum3);
        slot->info.error = sqrt(sum / (double)s->counted);
        if (!isfinite(slot->info.error)) /* squares overflow; stages are finite */
            slot->info.error = DBL_MAX;
    }
}
