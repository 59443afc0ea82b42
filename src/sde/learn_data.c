/* learn_data.c - observations for hl_sde_learn: sorted into trajectories, checked, and scales estimated from steps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde/learn.h"

/* ---- order ---- */

typedef struct key {
    size_t trajectory, row;
} key;

static int by_trajectory(const void *a, const void *b)
{
    const key *x = a, *y = b;
    if (x->trajectory != y->trajectory)
        return x->trajectory < y->trajectory ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The rows trajectory by trajectory; each keeps the order of its rows. */
static hl_status sort_rows(hl_learner *l)
{
    const hl_sde_observations *from = l->given;
    hl_sde_outcome *o = l->outcome;
    key *keys = hl_calloc(l->ctx, from->rows, sizeof *keys);
    if (!keys)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < from->rows; r++)
        keys[r] = (key){ from->trajectory ? from->trajectory[r] : 0, r };
    if (from->trajectory)
        qsort(keys, from->rows, sizeof *keys, by_trajectory);
    for (size_t r = 0; r < from->rows; r++) {
        o->trajectories += r == 0 || keys[r].trajectory != keys[r - 1].trajectory;
        l->number[r] = o->trajectories - 1;
        l->row[r] = keys[r].row;
    }
    hl_free(l->ctx, keys);
    return HL_OK;
}

static hl_status copy_rows(hl_learner *l, double *t, double *x)
{
    const hl_sde_observations *from = l->given;
    size_t d = from->dim;
    for (size_t r = 0; r < from->rows; r++) {
        size_t row = l->row[r];
        t[r] = from->t[row];
        memcpy(x + r * d, from->x + row * d, d * sizeof *x);
        if (!isfinite(t[r]))
            return hl_fail_at(l->ctx, HL_ERR_NOT_FINITE, hl_at(row, HL_NOWHERE), "the time is not finite");
        for (size_t i = 0; i < d; i++)
            if (!isfinite(x[r * d + i]))
                return hl_fail_at(l->ctx, HL_ERR_NOT_FINITE, hl_at(row, i), "not finite");
    }
    return HL_OK;
}

static hl_status refuse_order(const hl_learner *l, size_t r)
{
    return hl_learned_refuse(l->learned, (hl_sde_finding){ .kind = HL_SDE_FINDING_TIME_ORDER,
                                                           .row = l->row[r],
                                                           .column = l->given->dim,
                                                           .value = l->data.t[r],
                                                           .other = l->data.t[r - 1] });
}

/* Times rise in given trajectories; without them, rows whose times rise are one, and others are snapshots. */
static hl_status pair_rows(hl_learner *l)
{
    const double *t = l->data.t;
    hl_sde_outcome *o = l->outcome;
    bool given = l->given->trajectory, rising = true;
    for (size_t r = 1; r < o->rows; r++) {
        bool after = t[r] > t[r - 1];
        rising = rising && after;
        if (given && l->number[r] == l->number[r - 1] && !after)
            return refuse_order(l, r);
    }
    o->paired = given || rising;
    for (size_t r = 0; r < o->rows && !o->paired; r++)
        l->number[r] = r;
    if (!o->paired)
        o->trajectories = o->rows;
    l->data.trajectory = o->paired ? l->number : NULL;
    return HL_OK;
}

static void hash_values(uint64_t *hash, const void *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, (const char *)values + i * sizeof bits, sizeof bits);
        *hash = (*hash ^ bits) * 0x100000001b3ULL;
        *hash ^= *hash >> 29;
    }
}

hl_status hl_learner_take_data(hl_learner *l)
{
    size_t n = l->given->rows, d = l->given->dim;
    double *t = hl_calloc(l->ctx, n, sizeof *t), *x = hl_calloc(l->ctx, hl_size_mul(n, d), sizeof *x);
    l->data = (hl_sde_data){ n, t, x, NULL };
    l->number = hl_calloc(l->ctx, n, sizeof *l->number);
    l->row = hl_calloc(l->ctx, n, sizeof *l->row);
    hl_status status = t && x && l->number && l->row ? sort_rows(l) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = copy_rows(l, t, x);
    if (status == HL_OK)
        status = pair_rows(l);
    if (status == HL_OK && !l->outcome->paired)
        status = hl_sde_merge_times(l->ctx, n, t);
    if (status != HL_OK)
        return status;
    hash_values(&l->hash, t, n);
    hash_values(&l->hash, x, n * d);
    for (size_t r = 0; r < n; r++)
        hash_values(&l->hash, &(uint64_t){ l->number[r] }, 1);
    return HL_OK;
}

/* ---- checks ---- */

static bool step_begins(const hl_learner *l, size_t r)
{
    return r + 1 < l->data.rows && l->number[r] == l->number[r + 1];
}

/* Can one compute with a deviation or a span of this size? Its square is a number, with room. */
static bool is_scale(double size)
{
    return size > 1e-140 && size < 1e140;
}

/* Is column j of the data column i times a number plus another? mean and deviation: of all columns. */
static bool same_column(const hl_sde_data *data, size_t d, size_t i, size_t j, const double *mean,
                        const double *deviation)
{
    const double close = 1e-6; /* rounding of a table to seven digits */
    double sign = 0;
    for (size_t r = 0; r < data->rows; r++) {
        double a = (data->x[r * d + i] - mean[i]) / deviation[i], b = (data->x[r * d + j] - mean[j]) / deviation[j];
        if (sign == 0 && fabs(a) > 0.1)
            sign = a * b < 0 ? -1 : 1;
        if (sign != 0 && !(fabs(a - sign * b) <= close * (1 + fabs(a))))
            return false;
    }
    return sign != 0;
}

/* Of two columns that are functions of each other, the data do not tell which one drift and diffusion depend on. */
static hl_status check_twins(hl_learner *l)
{
    const hl_sde_data *data = &l->data;
    size_t d = l->given->dim;
    double *mean = hl_calloc(l->ctx, 2 * d, sizeof *mean), *deviation = mean + d;
    if (!mean)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < d; i++)
        hl_sde_column_scale(data->rows, d, i, data->x, &mean[i], &deviation[i]);
    hl_status status = HL_OK;
    for (size_t i = 0; i < d && status == HL_OK; i++)
        for (size_t j = i + 1; j < d && status == HL_OK; j++)
            if (same_column(data, d, i, j, mean, deviation)) {
                bool equal = mean[i] == mean[j] && deviation[i] == deviation[j] && data->x[i] == data->x[j];
                status = hl_fail(l->ctx, HL_ERR_INVALID,
                                 "columns '%s' and '%s' are %s, so the data do not tell their equations apart; leave "
                                 "one of them out with option columns",
                                 l->learned->name[i], l->learned->name[j],
                                 equal ? "equal in every row" : "linear functions of each other");
            }
    hl_free(l->ctx, mean);
    return status;
}

/* All constant columns are named, not only the first. */
static hl_status check_columns(hl_learner *l)
{
    const hl_sde_data *data = &l->data;
    size_t d = l->given->dim;
    hl_status status = HL_OK;
    for (size_t i = 0; i < d; i++) {
        double mean, deviation;
        hl_sde_column_scale(data->rows, d, i, data->x, &mean, &deviation);
        if (is_scale(deviation))
            continue;
        if (deviation != 0)
            return hl_fail(l->ctx, HL_ERR_INVALID,
                           "column '%s' is too small or too large to compute with: its standard deviation is %g; "
                           "rescale it",
                           l->learned->name[i], deviation);
        hl_status added = hl_learned_refuse(
            l->learned,
            (hl_sde_finding){ .kind = HL_SDE_FINDING_CONSTANT, .row = SIZE_MAX, .column = i, .value = data->x[i] });
        status = status == HL_ERR_NOMEM ? status : added;
    }
    return status;
}

static int by_time(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (x[0] > y[0]) - (x[0] < y[0]);
}

/* A stretch without observations that is most of the time, and many times as long as those between other times: a wrong year, or
 * a unit that changes. All else is then squeezed to a moment. */
static hl_status check_gaps(hl_learner *l)
{
    enum { LEAST_TIMES = 5, TIMES_LONGER = 10 };
    size_t n = l->data.rows, count = 0, at = 0, row = 0;
    double *t = hl_calloc(l->ctx, n, sizeof *t), longest = 0, second = 0;
    if (!t)
        return HL_ERR_NOMEM;
    memcpy(t, l->data.t, n * sizeof *t);
    qsort(t, n, sizeof *t, by_time);
    for (size_t r = 1; r < n; r++) {
        double gap = t[r] - t[r - 1];
        count += gap > 0;
        if (gap > longest) {
            second = longest;
            longest = gap;
            at = r;
        } else if (gap > second) {
            second = gap;
        }
    }
    double span = t[n - 1] - t[0], after = t[at];
    hl_free(l->ctx, t);
    if (count + 1 < LEAST_TIMES || !(longest > 0.5 * span) || !(longest > TIMES_LONGER * second))
        return HL_OK;
    while (l->data.t[row] != after)
        row++;
    return hl_learned_add(l->learned, (hl_sde_finding){ .kind = HL_SDE_FINDING_TIME_GAP,
                                                        .row = l->row[row],
                                                        .column = l->given->dim,
                                                        .value = longest,
                                                        .other = longest / span });
}

enum { LEAST_STEPS = 10 }; /* fewer do not tell a drift from noise */

hl_status hl_learner_check_data(hl_learner *l)
{
    const hl_sde_data *data = &l->data;
    double first = data->t[0], last = data->t[0];
    size_t steps = 0;
    hl_status status = check_columns(l);
    for (size_t r = 0; r < data->rows; r++) {
        first = fmin(first, data->t[r]);
        last = fmax(last, data->t[r]);
        steps += step_begins(l, r);
    }
    hl_sde_finding finding = { .row = SIZE_MAX, .column = l->given->dim, .value = first };
    if (status == HL_OK && !(last > first)) {
        finding.kind = HL_SDE_FINDING_SAME_TIMES;
        return hl_learned_refuse(l->learned, finding);
    }
    if (status == HL_OK && !is_scale(last - first))
        return hl_fail(l->ctx, HL_ERR_INVALID,
                       "column '%s' is too small or too large to compute with: its times are %g to %g; rescale it",
                       l->learned->name[l->given->dim], first, last);
    if (status == HL_OK)
        status = check_gaps(l);
    if (status == HL_OK)
        status = check_twins(l);
    if (status != HL_OK || hl_learner_matching(l) || steps >= LEAST_STEPS)
        return status;
    for (size_t r = 1; r < data->rows && !l->outcome->paired; r++)
        if (!(data->t[r] > data->t[r - 1]))
            return refuse_order(l, r);
    finding.kind = HL_SDE_FINDING_NO_STEPS;
    finding.value = (double)steps;
    return hl_learned_refuse(l->learned, finding);
}

/* ---- steps ---- */

/* Over a long time of a fast equation, drift and diffusion are large in standardised units: start where the steps say.
 * With q the mean square of a step by its time, g is sqrt(q), and a column of variance 1 is held by a drift of q / 2. */
void hl_learner_choose_speed(hl_learner *l)
{
    const hl_sde_data *data = &l->data;
    size_t d = l->given->dim;
    double first = data->t[0], last = data->t[0], q = 0;
    for (size_t r = 0; r < data->rows; r++) {
        first = fmin(first, data->t[r]);
        last = fmax(last, data->t[r]);
    }
    for (size_t i = 0; i < d; i++) {
        double mean = 0, square = 0, steps = 0, time = 0;
        for (size_t r = 0; r < data->rows; r++)
            mean += data->x[r * d + i] / (double)data->rows;
        for (size_t r = 0; r < data->rows; r++) {
            double gap = data->x[r * d + i] - mean;
            square += gap * gap / (double)data->rows;
            if (!step_begins(l, r))
                continue;
            double step = data->x[(r + 1) * d + i] - data->x[r * d + i];
            steps += step * step;
            time += (data->t[r + 1] - data->t[r]) / (last - first) * HL_SDE_SPAN;
        }
        q += steps / square / time / (double)d;
    }
    if (!(q > 2) || !isfinite(q))
        return;
    l->spec.diffusion_start = l->outcome->diffusion_start = sqrt(q);
    l->spec.drift_scale = l->outcome->drift_scale = q / 2;
}

hl_status hl_learner_constant_loss(const hl_learner *l, double *constant)
{
    const hl_sde_data *data = &l->data;
    size_t d = l->given->dim;
    double unit = hl_sde_time_unit(l->sde), floor = l->options.variance_floor, sum = 0, longest;
    hl_status status = hl_sde_longest_step(l->ctx, data, HL_SDE_LONG, &longest);
    if (status != HL_OK)
        return status;
    for (size_t i = 0; i < d; i++) {
        double way = 0, time = 0, square = 0, loss = 0, steps = 0;
        for (int pass = 0; pass < 3; pass++) /* mean speed, variance of a unit of time, loss */
            for (size_t r = 0; r < data->rows; r++) {
                if (!step_begins(l, r) || data->t[r + 1] - data->t[r] > longest)
                    continue;
                double dt = (data->t[r + 1] - data->t[r]) / unit;
                double dx = (data->x[(r + 1) * d + i] - data->x[r * d + i]) / l->sde->deviation[i];
                double gap = pass ? dx - way / time * dt : 0, v = pass == 2 ? square / steps * dt + floor : 1;
                if (pass == 0) {
                    way += dx;
                    time += dt;
                    steps++;
                } else if (pass == 1) {
                    square += gap * gap / dt;
                } else {
                    loss += 0.5 * (gap * gap / v + log(v)) / steps;
                }
            }
        sum += loss;
    }
    *constant = sum;
    return HL_OK;
}
