/* steps.c - the fraction of steps along trajectories that a drift explains.
 *
 * Fokker-Planck matching sees densities alone, and a drift that leaves them as they are, such as the rotation of a round one, is
 * nothing to it. Where trajectories are there, their steps tell: the mean speed near a place should be f there. The mean is over
 * pairs of neighbouring steps of different trajectories, whose noise is independent, so that none is left in the sums. */
#include <math.h>

#include "sde/sde.h"

enum { MOST_STEPS = 2000, LEAST_STEPS = 200, MOST_COLUMNS = 5, LEAST_PATHS = 10 };
static const double LONG = 0.3; /* deviations: the mean way of a step, beyond which f dt is not the way */

typedef struct steps {
    size_t dim, count;
    size_t *row;          /* at which a step begins */
    double *t, *x, *f;    /* there; x becomes standardised */
    double *speed, *left; /* of the step, and less f; standardised */
} steps;

static size_t all_steps(const hl_sde_data *data)
{
    size_t count = 0;
    for (size_t r = 0; r + 1 < data->rows; r++)
        count += data->trajectory[r] == data->trajectory[r + 1];
    return count;
}

/* Evenly spaced ones. */
static void pick(const hl_sde_data *data, size_t all, steps *s)
{
    size_t most = all < MOST_STEPS ? all : MOST_STEPS, seen = 0;
    for (size_t r = 0; r + 1 < data->rows && s->count < most; r++) {
        if (data->trajectory[r] != data->trajectory[r + 1])
            continue;
        if (seen++ * most / all < s->count)
            continue;
        s->row[s->count] = r;
        s->t[s->count] = data->t[r];
        for (size_t i = 0; i < s->dim; i++)
            s->x[s->count * s->dim + i] = data->x[r * s->dim + i];
        s->count++;
    }
}

/* Returns the mean way that f goes in a step, in deviations. */
static double standardise(const hl_sde_data *data, const double *scale, steps *s)
{
    size_t d = s->dim;
    double way = 0;
    for (size_t k = 0; k < s->count; k++) {
        double dt = data->t[s->row[k] + 1] - data->t[s->row[k]], square = 0;
        for (size_t i = 0; i < d; i++) {
            double dx = data->x[(s->row[k] + 1) * d + i] - data->x[s->row[k] * d + i], deviation = scale[d + i];
            s->speed[k * d + i] = dx / dt / deviation;
            s->left[k * d + i] = s->speed[k * d + i] - s->f[k * d + i] / deviation;
            s->x[k * d + i] = (s->x[k * d + i] - scale[i]) / deviation;
            square += pow(s->f[k * d + i] / deviation * dt, 2);
        }
        way += sqrt(square) / (double)s->count;
    }
    return way;
}

static double missed(const hl_sde_data *data, const steps *s)
{
    double sum[2] = { 0 };
    size_t d = s->dim;
    for (size_t a = 0; a < s->count; a++)
        for (size_t b = 0; b < a; b++) {
            if (data->trajectory[s->row[a]] == data->trajectory[s->row[b]])
                continue;
            double square = 0, speed = 0, left = 0;
            for (size_t i = 0; i < d; i++) {
                square += pow(s->x[a * d + i] - s->x[b * d + i], 2);
                speed += s->speed[a * d + i] * s->speed[b * d + i];
                left += s->left[a * d + i] * s->left[b * d + i];
            }
            double near = exp(-2 * square / (double)d);
            sum[0] += near * left;
            sum[1] += near * speed;
        }
    return sum[1] > 0 ? sqrt(fmax(sum[0], 0) / sum[1]) : NAN;
}

hl_status hl_sde_steps_missed(hl_sde *sde, const hl_sde_data *data, double *share)
{
    steps s = { .dim = sde->spec.dim };
    size_t all = data->trajectory ? all_steps(data) : 0, room = all < MOST_STEPS ? all : MOST_STEPS;
    *share = NAN;
    if (all < LEAST_STEPS || s.dim > MOST_COLUMNS || data->rows - all < LEAST_PATHS)
        return HL_OK;
    double *memory = hl_calloc(sde->ctx, room * (1 + 4 * s.dim) + 2 * s.dim, sizeof *memory);
    s.row = hl_calloc(sde->ctx, room, sizeof *s.row);
    hl_status status = memory && s.row ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        double *scale = memory;
        s.t = scale + 2 * s.dim;
        s.x = s.t + room;
        s.f = s.x + room * s.dim;
        s.speed = s.f + room * s.dim;
        s.left = s.speed + room * s.dim;
        pick(data, all, &s);
        hl_sde_get_scale(sde, NULL, NULL, scale, scale + s.dim);
        status = hl_sde_eval(sde, s.count, s.t, s.x, &(hl_sde_values){ .f = s.f });
        if (status == HL_OK && standardise(data, scale, &s) <= LONG)
            *share = missed(data, &s);
    }
    hl_free(sde->ctx, memory);
    hl_free(sde->ctx, s.row);
    return status;
}
