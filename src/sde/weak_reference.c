/* weak_reference.c - data of a model itself, observed as the data were: what tests of means find in them is chance.
 *
 * Each path starts at an observation of the first group of times, its own if it has one there, and is simulated to the times of its rows. Rows without
 * trajectories are taken as those of as many paths as the largest group has rows. Drift by predictor and corrector, noise by Euler's method. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "sde/regress.h"
#include "sde/weak_tests.h"

enum { CHUNK = 256, RATE_ROWS = 200, MOST_SUBSTEPS = 200, STREAM_START = 44, STREAM_NOISE = 45 };
static const double longest = 0.1;  /* substep, in units of the time in which f changes */
static const double farthest = 100; /* deviations; paths stay where a step would lead beyond */

typedef struct simulation {
    const hl_weak_design *design;
    size_t dim;
    uint64_t seed, number;              /* of random numbers used */
    double rate;                        /* root mean square of the derivatives of f */
    double *state, *time;               /* [paths][dim], [paths] */
    double *x, *y, *f, *g, *f1, *noise; /* [CHUNK][dim] */
    double t[CHUNK], h[CHUNK];
} simulation;

static hl_status set_rate(simulation *s)
{
    const hl_weak_design *d = s->design;
    size_t n = d->rows < RATE_ROWS ? d->rows : RATE_ROWS;
    const double gap = 0.05;
    double sum = 0, count = 0;
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < s->dim; i++) {
            size_t row = d->index[k * d->rows / n];
            double t[2] = { d->data->t[row], d->data->t[row] };
            for (size_t side = 0; side < 2; side++) {
                memcpy(s->x + side * s->dim, d->data->x + row * s->dim, s->dim * sizeof *s->x);
                s->x[side * s->dim + i] += (side ? gap : -gap) * d->sde->deviation[i];
            }
            hl_status status = hl_sde_eval(d->sde, 2, t, s->x, &(hl_sde_values){ .f = s->f });
            if (status != HL_OK)
                return status;
            for (size_t j = 0; j < s->dim; j++) {
                double slope = (s->f[s->dim + j] - s->f[j]) / (2 * gap * d->sde->deviation[j]);
                if (isfinite(slope)) {
                    sum += slope * slope;
                    count++;
                }
            }
        }
    s->rate = count > 0 ? sqrt(sum * (double)s->dim / count) : 0;
    return HL_OK;
}

/* One substep of n paths; h[k] <= 0: none. */
static hl_status substep(simulation *s, size_t n)
{
    const hl_weak_design *d = s->design;
    size_t dim = s->dim;
    hl_status status = hl_sde_eval(d->sde, n, s->t, s->x, &(hl_sde_values){ .f = s->f, .g = s->g });
    hl_random_normals(s->seed, STREAM_NOISE, s->number, n * dim, s->noise);
    s->number += n * dim;
    for (size_t k = 0; k < n; k++) {
        double root = s->h[k] > 0 ? sqrt(s->h[k]) : 0;
        if (d->sde->simple)
            hl_noise_mix(dim, d->sde->simple->factor, s->noise + k * dim);
        for (size_t i = k * dim; i < (k + 1) * dim; i++) {
            s->noise[i] *= s->g[i] * root;
            s->y[i] = s->x[i] + s->f[i] * root * root + s->noise[i];
        }
        s->t[k] += root * root;
    }
    if (status == HL_OK)
        status = hl_sde_eval(d->sde, n, s->t, s->y, &(hl_sde_values){ .f = s->f1 });
    for (size_t k = 0; k < n && status == HL_OK; k++) {
        bool good = s->h[k] > 0;
        for (size_t i = 0; i < dim; i++) {
            size_t at = k * dim + i;
            s->y[at] = s->x[at] + 0.5 * s->h[k] * (s->f[at] + s->f1[at]) + s->noise[at];
            good = good && fabs(s->y[at] - d->sde->mean[i]) < farthest * d->sde->deviation[i]; /* NaN is not */
        }
        if (good)
            memcpy(s->x + k * dim, s->y + k * dim, dim * sizeof *s->x);
    }
    return status;
}

/* Paths of rows first .. first + n - 1 of the design to the times of these; their states to `to`. */
static hl_status advance(simulation *s, size_t first, size_t n, double *to)
{
    const hl_weak_design *d = s->design;
    size_t dim = s->dim;
    double most = 0;
    for (size_t k = 0; k < n; k++) {
        size_t path = d->path[first + k];
        s->t[k] = s->time[path];
        s->h[k] = d->data->t[d->index[first + k]] - s->t[k];
        most = fmax(most, s->h[k]);
        memcpy(s->x + k * dim, s->state + path * dim, dim * sizeof *s->x);
    }
    size_t substeps = (size_t)fmin(ceil(most * s->rate / longest), MOST_SUBSTEPS);
    substeps = substeps ? substeps : 1;
    for (size_t k = 0; k < n; k++)
        s->h[k] /= (double)substeps;
    hl_status status = HL_OK;
    for (size_t m = 0; m < substeps && status == HL_OK && most > 0; m++)
        status = substep(s, n);
    for (size_t k = 0; k < n; k++) {
        size_t path = d->path[first + k];
        s->time[path] = fmax(s->time[path], d->data->t[d->index[first + k]]);
        memcpy(s->state + path * dim, s->x + k * dim, dim * sizeof *s->x);
        memcpy(to + (first + k) * dim, s->x + k * dim, dim * sizeof *s->x);
    }
    return status;
}

static void set_starts(simulation *s)
{
    const hl_weak_design *d = s->design;
    size_t dim = s->dim, rows = d->start[1];
    for (size_t p = 0; p < d->paths; p++) {
        size_t row = d->index[hl_random_bits(s->seed, STREAM_START, p) % rows];
        s->time[p] = d->data->t[row];
        memcpy(s->state + p * dim, d->data->x + row * dim, dim * sizeof *s->state);
    }
    for (size_t r = 0; r < rows; r++) {
        s->time[d->path[r]] = d->data->t[d->index[r]];
        memcpy(s->state + d->path[r] * dim, d->data->x + d->index[r] * dim, dim * sizeof *s->state);
    }
}

hl_status hl_weak_simulate(const hl_weak_design *design, uint64_t seed, double *x)
{
    hl_context *ctx = design->sde->ctx;
    size_t dim = design->sde->spec.dim, wide = CHUNK * dim;
    simulation *s = hl_calloc(ctx, 1, sizeof *s);
    double *block = hl_calloc(ctx, hl_size_mul(design->paths, dim + 1) + 6 * wide, sizeof *block);
    hl_status status = s && block ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        *s = (simulation){ .design = design, .dim = dim, .seed = seed, .x = block };
        s->y = s->x + wide;
        s->f = s->y + wide;
        s->g = s->f + wide;
        s->f1 = s->g + wide;
        s->noise = s->f1 + wide;
        s->state = s->noise + wide;
        s->time = s->state + design->paths * dim;
        set_starts(s);
        status = set_rate(s);
    }
    for (size_t g = 0; g < design->groups && status == HL_OK; g++)
        for (size_t r = design->start[g]; r < design->start[g + 1] && status == HL_OK; r += CHUNK) {
            size_t left = design->start[g + 1] - r;
            status = advance(s, r, left < CHUNK ? left : CHUNK, x);
            if (status == HL_OK)
                status = hl_check_stop(ctx);
        }
    hl_free(ctx, s);
    hl_free(ctx, block);
    return status;
}
