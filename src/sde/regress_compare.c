/* regress_compare.c - a model against the regression of the same data in closed form.
 *
 * Both are estimates of one equation by different means. Where they differ by much, at least one of them is wrong, and nothing
 * else may tell: densities and simulations of a wrong drift and diffusion can follow the data well. A model that is a regression
 * is compared with that of half of the data: where it is not determined, they differ. */
#include <math.h>
#include <string.h>

#include "hollow/sde_bands.h"
#include "hollow/sde_regress.h"
#include "sde/sde.h"

enum { MOST_ROWS = 40000, MOST_STATES = 2000, BAND_STATES = 300 };

/* Every k-th trajectory (row, if there are none) of many; the arrays of `to` are the caller's to free. */
static hl_status thin_out(hl_context *ctx, const hl_sde_data *data, size_t dim, size_t least, hl_sde_data *to)
{
    size_t every = (data->rows + MOST_ROWS - 1) / MOST_ROWS, number = 0;
    every = every > least ? every : least;
    double *t = hl_calloc(ctx, data->rows, sizeof *t), *x = hl_calloc(ctx, hl_size_mul(data->rows, dim), sizeof *x);
    size_t *trajectory = hl_calloc(ctx, data->rows, sizeof *trajectory);
    *to = (hl_sde_data){ 0, t, x, trajectory };
    if (!t || !x || !trajectory)
        return HL_ERR_NOMEM;
    bool few = data->trajectory && data->trajectory[0] == data->trajectory[data->rows - 1]; /* one: it stays whole */
    for (size_t r = 0; r < data->rows; r++) {
        number += r > 0 && (!data->trajectory || data->trajectory[r] != data->trajectory[r - 1]);
        if (number % every != 0 && !few)
            continue;
        t[to->rows] = data->t[r];
        memcpy(x + to->rows * dim, data->x + r * dim, dim * sizeof *x);
        trajectory[to->rows++] = data->trajectory ? data->trajectory[r] : 0;
    }
    return HL_OK;
}

/* Mean |a - b| over the larger of mean |a| and mean |b|, in deviations of the columns. */
static double differ(const hl_sde *s, size_t rows, const double *a, const double *b)
{
    double difference = 0, size[2] = { 0 };
    for (size_t k = 0; k < rows * s->spec.dim; k++) {
        double unit = s->deviation[k % s->spec.dim];
        difference += fabs(a[k] - b[k]) / unit;
        size[0] += fabs(a[k]) / unit;
        size[1] += fabs(b[k]) / unit;
    }
    return difference / fmax(size[0], size[1]);
}

static hl_status compare(hl_sde *s, const hl_sde_simple *simple, const hl_sde_data *data, double difference[2])
{
    size_t d = s->spec.dim, rows = data->rows < MOST_STATES ? data->rows : MOST_STATES;
    double *t = hl_calloc(s->ctx, rows, (1 + 5 * d) * sizeof *t);
    if (!t)
        return HL_ERR_NOMEM;
    double *x = t + rows, *f = x + rows * d, *g = f + rows * d, *a = g + rows * d, *b = a + rows * d;
    for (size_t k = 0; k < rows; k++) {
        size_t r = hl_sde_some_row(k, rows, data->rows);
        t[k] = data->t[r];
        memcpy(x + k * d, data->x + r * d, d * sizeof *x);
    }
    hl_status status = hl_sde_eval(s, rows, t, x, &(hl_sde_values){ .f = f, .g = g });
    if (status == HL_OK)
        status = hl_sde_simple_eval(simple, rows, t, x, a, b);
    difference[0] = differ(s, rows, f, a);
    difference[1] = differ(s, rows, g, b);
    hl_free(s->ctx, t);
    return status;
}

hl_status hl_sde_compare_regression(hl_sde *s, const hl_sde_data *data, uint64_t seed, double difference[2])
{
    hl_sde_simple *simple = NULL;
    hl_sde_data some;
    bool open = !s->known; /* is there anything to learn? */
    difference[0] = difference[1] = NAN;
    for (size_t i = 0; s->known && i < s->spec.dim; i++) {
        if (s->known[i].drift_form || s->known[i].diffusion_form)
            return HL_OK;
        open = open || !s->known[i].drift || !s->known[i].diffusion;
    }
    if (!open)
        return HL_OK;
    hl_status status = thin_out(s->ctx, data, s->spec.dim, s->simple ? 2 : 1, &some);
    hl_sde_regress_options options = { .time = s->spec.time, .known = s->known, .seed = seed };
    void *const blocks[] = { (void *)some.t, (void *)some.x, (void *)some.trajectory };
    if (!data->trajectory)
        some.trajectory = NULL;
    if (status == HL_OK)
        status = hl_sde_regress(s->ctx, &some, s->spec.dim, &options, &simple);
    if (status == HL_OK)
        status = compare(s, simple, &some, difference);
    hl_sde_simple_free(simple);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(s->ctx, blocks[i]);
    return status == HL_ERR_NO_SOLUTION ? HL_OK : status; /* then there is nothing to compare with */
}

/* Root mean square of half the widths low..high over that of the values, in deviations of the columns, where there are data. */
static double width(const hl_sde *s, size_t rows, const int *inside, const double *value, const double *low,
                    const double *high)
{
    double square = 0, size = 0;
    for (size_t k = 0; k < rows * s->spec.dim; k++) {
        double unit = s->deviation[k % s->spec.dim], half = 0.5 * (high[k] - low[k]) / unit;
        square += inside[k / s->spec.dim] ? half * half : 0;
        size += inside[k / s->spec.dim] ? value[k] / unit * (value[k] / unit) : 0;
    }
    return size > 0 ? sqrt(square / size) : NAN;
}

hl_status hl_sde_band_width(hl_sde *s, const hl_sde_data *data, double *share)
{
    size_t d = s->spec.dim, rows = data->rows < BAND_STATES ? data->rows : BAND_STATES, wide = rows * d;
    *share = NAN;
    if (!hl_sde_replicates(s))
        return HL_OK;
    double *t = hl_calloc(s->ctx, rows, (1 + 7 * d) * sizeof *t);
    int *inside = hl_calloc(s->ctx, rows, sizeof *inside);
    hl_status status = t && inside ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        double *x = t + rows, *f = x + wide, *g = f + wide;
        hl_sde_band_values b = { g + wide, g + 2 * wide, g + 3 * wide, g + 4 * wide, inside };
        for (size_t k = 0; k < rows; k++) {
            size_t r = hl_sde_some_row(k, rows, data->rows);
            t[k] = data->t[r];
            memcpy(x + k * d, data->x + r * d, d * sizeof *x);
        }
        status = hl_sde_eval(s, rows, t, x, &(hl_sde_values){ .f = f, .g = g });
        if (status == HL_OK)
            status = hl_sde_bands(s, rows, t, x, &b);
        if (status == HL_OK)
            *share = fmax(width(s, rows, inside, f, b.f_low, b.f_high), width(s, rows, inside, g, b.g_low, b.g_high));
    }
    hl_free(s->ctx, t);
    hl_free(s->ctx, inside);
    return status;
}
