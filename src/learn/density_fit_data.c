/* density_fit_data.c - rows in the units of the data become standardised rows for training and validation. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/linear.h"
#include "io/table.h"
#include "learn/density_fit.h"

enum { GRADED_ROWS = 10 }; /* for each distinct value of a column on a grid, from which on it is dequantised */
enum { STREAM_SPLIT = 40, STREAM_STEPS_TRAIN = 41, STREAM_STEPS_VALID = 42 }; /* of random numbers */

/* ---- checks of the call ---- */

static hl_status check_rows(hl_fit_table *t, bool validation, const hl_density_rows *rows)
{
    const char *what = validation ? "validation" : "training";
    if (!rows->x || (t->context && !rows->context))
        return hl_fail(t->ctx, HL_ERR_INVALID, "hl_density_fit: the %s rows have no %s", what,
                       rows->x ? "context" : "values");
    double sum = 0;
    for (size_t r = 0; rows->weights && r < rows->rows; r++) {
        sum += rows->weights[r];
        if (!(rows->weights[r] >= 0) || !isfinite(rows->weights[r]))
            return hl_fail_at(t->ctx, HL_ERR_INVALID, (hl_place){ r, HL_NOWHERE, HL_NOWHERE, validation },
                              "the weight of this %s row is %g; it must be 0 or more", what, rows->weights[r]);
    }
    if (rows->weights && !(sum > 0 && isfinite(sum)))
        return hl_fail(t->ctx, HL_ERR_INVALID, "the weights of the %s rows add up to %g", what, sum);
    for (size_t i = 0; i < rows->rows * t->dim; i++)
        if (!isfinite(rows->x[i]))
            return hl_fail(t->ctx, HL_ERR_NOT_FINITE, "%s row %zu, column '%.60s' is not finite", what, i / t->dim + 1,
                           t->column[i % t->dim].name);
    for (size_t i = 0; i < rows->rows * t->context; i++)
        if (!isfinite(rows->context[i]))
            return hl_fail(t->ctx, HL_ERR_NOT_FINITE, "%s row %zu, column '%.60s' is not finite", what,
                           i / t->context + 1, t->column[t->dim + i % t->context].name);
    return HL_OK;
}

static hl_status name_columns(hl_fit_table *t, const char *const *names)
{
    size_t all = hl_size_add(t->dim, t->context);
    t->column = hl_calloc(t->ctx, all, sizeof *t->column);
    t->stats = hl_calloc(t->ctx, all, sizeof *t->stats);
    t->names = hl_calloc(t->ctx, names ? 1 : all, sizeof *t->names);
    if (!t->column || !t->stats || !t->names)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < all; i++) {
        if (names && !names[i])
            return hl_fail(t->ctx, HL_ERR_INVALID, "hl_density_fit: column %zu has no name", i + 1);
        if (!names)
            snprintf(t->names[i], sizeof *t->names, "x%zu", i + 1);
        t->column[i].name = names ? names[i] : t->names[i];
    }
    return HL_OK;
}

static hl_status check_data(hl_fit_table *t, const hl_density_data *data)
{
    if (data->dim < 1)
        return hl_fail(t->ctx, HL_ERR_INVALID, "hl_density_fit: there are no columns to model");
    if (data->train.rows < HL_FIT_LEAST_ROWS)
        return hl_fail(t->ctx, HL_ERR_INVALID, "%zu rows; at least %d are needed", data->train.rows, HL_FIT_LEAST_ROWS);
    hl_status status = name_columns(t, data->names);
    if (status == HL_OK)
        status = check_rows(t, false, &data->train);
    return status == HL_OK && data->valid.rows ? check_rows(t, true, &data->valid) : status;
}

/* ---- rows ---- */

static hl_status copy_rows(hl_fit_table *t, const hl_density_rows *from, hl_fit_rows *to)
{
    size_t values = hl_size_mul(from->rows, t->dim), contexts = hl_size_mul(from->rows, t->context);
    to->x = hl_calloc(t->ctx, values, sizeof *to->x);
    to->c = hl_calloc(t->ctx, contexts, sizeof *to->c);
    if (!to->x || !to->c)
        return HL_ERR_NOMEM;
    to->rows = from->rows;
    memcpy(to->x, from->x, values * sizeof *to->x);
    if (contexts)
        memcpy(to->c, from->context, contexts * sizeof *to->c);
    if (!from->weights)
        return HL_OK;
    to->w = hl_calloc(t->ctx, from->rows, sizeof *to->w);
    if (!to->w)
        return HL_ERR_NOMEM;
    memcpy(to->w, from->weights, from->rows * sizeof *to->w);
    return HL_OK;
}

/* Weights of mean 1. */
static void scale_weights(hl_fit_rows *rows)
{
    double sum = 0;
    for (size_t r = 0; rows->w && r < rows->rows; r++)
        sum += rows->w[r];
    for (size_t r = 0; rows->w && r < rows->rows; r++)
        rows->w[r] *= (double)rows->rows / sum;
    rows->unit *= rows->w ? (double)rows->rows / sum : 0;
}

/* Training rows for hl_rows_stats: x and context side by side. */
static hl_status read_joined(void *user, size_t first, size_t count, double *out)
{
    const hl_fit_table *t = user;
    for (size_t r = first; r < first + count; r++, out += t->dim + t->context) {
        memcpy(out, t->train.x + r * t->dim, t->dim * sizeof *out);
        if (t->context)
            memcpy(out + t->dim, t->train.c + r * t->context, t->context * sizeof *out);
    }
    return HL_OK;
}

static void swap_rows(double *x, size_t width, size_t a, size_t b)
{
    for (size_t i = 0; i < width; i++) {
        double keep = x[a * width + i];
        x[a * width + i] = x[b * width + i];
        x[b * width + i] = keep;
    }
}

/* A random part of the training rows, the same for the same seed, becomes the validation rows. */
static hl_status split(hl_fit_table *t, double share, uint64_t seed)
{
    size_t rows = t->train.rows, count = (size_t)(share * (double)rows);
    if (count < 1)
        return HL_OK;
    for (size_t i = 0; i < count; i++) {
        size_t left = rows - i, k = (size_t)(hl_random_uniform(seed, STREAM_SPLIT, i) * (double)left);
        swap_rows(t->train.x, t->dim, k, left - 1);
        swap_rows(t->train.c, t->context, k, left - 1);
        if (t->train.w)
            swap_rows(t->train.w, 1, k, left - 1);
    }
    rows = t->train.rows = rows - count;
    t->valid.unit = t->train.unit;
    return copy_rows(t,
                     &(hl_density_rows){ .rows = count,
                                         .x = t->train.x + rows * t->dim,
                                         .context = t->train.c + rows * t->context,
                                         .weights = t->train.w ? t->train.w + rows : NULL },
                     &t->valid);
}

bool hl_fit_is_graded(size_t rows, size_t distinct)
{
    return GRADED_ROWS * distinct <= rows;
}

/* The width of the steps between the values of a column that is dequantised: that of its grid, or their mean distance. */
static double step_width(const hl_fit_table *t, size_t i, bool tied)
{
    const hl_column_stats *s = &t->stats[i];
    bool graded = t->form[i].step > 0 && hl_fit_is_graded(s->examined, s->distinct);
    if (!s->integer && !graded && !(tied && s->tied > 0.5))
        return 0;
    return t->form[i].step > 0 ? t->form[i].step : (s->max - s->min) / (double)(s->distinct > 1 ? s->distinct - 1 : 1);
}

/* Uniform noise over the width of a step. */
static void add_step_noise(const hl_fit_table *t, hl_fit_rows *rows, uint64_t seed, uint64_t stream)
{
    for (size_t i = 0; i < t->dim; i++)
        for (size_t r = 0; t->noise[i] > 0 && r < rows->rows; r++)
            rows->x[r * t->dim + i] += t->noise[i] * (hl_random_uniform(seed, stream, r * t->dim + i) - 0.5);
}

/* Columns of whole numbers or of few values on a grid, and, if `tied`, those of which more than half of the values repeat others. */
static hl_status dequantize(hl_fit_table *t, bool tied, uint64_t seed)
{
    t->noise = hl_calloc(t->ctx, t->dim, sizeof *t->noise);
    if (!t->noise)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < t->dim; i++) {
        double width = t->noise[i] = step_width(t, i, tied);
        if (width > 0)
            t->column[i].deviation = sqrt(t->column[i].deviation * t->column[i].deviation + width * width / 12);
    }
    add_step_noise(t, &t->train, seed, STREAM_STEPS_TRAIN);
    add_step_noise(t, &t->valid, seed, STREAM_STEPS_VALID);
    return HL_OK;
}

static void standardise(const hl_fit_table *t, hl_fit_rows *rows)
{
    for (size_t i = 0; i < rows->rows * t->dim; i++)
        rows->x[i] = (rows->x[i] - t->column[i % t->dim].mean) / t->column[i % t->dim].deviation;
    for (size_t i = 0; i < rows->rows * t->context; i++) {
        const hl_density_column *c = &t->column[t->dim + i % t->context];
        rows->c[i] = (rows->c[i] - c->mean) / c->deviation;
    }
}

static void hash_values(uint64_t *hash, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        *hash = (*hash ^ bits) * 0x100000001b3ULL;
        *hash ^= *hash >> 29;
    }
}

static void hash_rows(hl_fit_table *t, const hl_fit_rows *rows)
{
    hash_values(&t->hash, rows->x, rows->rows * t->dim);
    hash_values(&t->hash, rows->c, rows->rows * t->context);
    hash_values(&t->hash, rows->w, rows->w ? rows->rows : 0);
}

/* ---- all of it ---- */

void hl_fit_weigh_column(const hl_fit_rows *rows, const double *at, size_t stride, hl_density_column *column)
{
    double n = (double)rows->rows, mean = 0, square = 0;
    for (size_t r = 0; r < rows->rows; r++)
        mean += rows->w[r] / n * (at[r * stride] - column->mean);
    mean += column->mean;
    for (size_t r = 0; r < rows->rows; r++)
        square += rows->w[r] / n * (at[r * stride] - mean) * (at[r * stride] - mean);
    column->mean = mean;
    if (square > 0) /* else all that has a weight is one value */
        column->deviation = sqrt(square);
}

static void weigh_columns(hl_fit_table *t)
{
    for (size_t i = 0; t->train.w && i < t->dim; i++)
        hl_fit_weigh_column(&t->train, t->train.x + i, t->dim, &t->column[i]);
    for (size_t i = 0; t->train.w && i < t->context; i++)
        hl_fit_weigh_column(&t->train, t->train.c + i, t->context, &t->column[t->dim + i]);
}

/* Statistics and the findings that they are enough for. */
static hl_status look_at_columns(hl_fit_table *t, bool dequantized)
{
    hl_status status = hl_rows_stats(t->ctx, t->train.rows, t->dim + t->context, read_joined, t, t->stats);
    for (size_t i = 0; i < t->dim + t->context && status == HL_OK; i++) {
        t->column[i].mean = t->stats[i].mean;
        t->column[i].deviation = t->stats[i].deviation;
    }
    if (status == HL_OK)
        status = hl_fit_check_columns(t, dequantized);
    weigh_columns(t);
    if (status == HL_OK)
        status = hl_fit_check_far(t);
    if (status == HL_OK)
        status = hl_fit_check_repeated(t);
    return status == HL_OK ? hl_fit_check_edges(t) : status;
}

hl_status hl_fit_table_load(hl_fit_table *t, const hl_density_data *data, const hl_settings *settings)
{
    bool dequantized = hl_settings_flag(settings, "dequantize", false);
    if (dequantized && hl_settings_flag(settings, "keep-steps", false))
        return hl_fail(t->ctx, HL_ERR_INVALID, "options dequantize and keep-steps contradict each other; give one");
    uint64_t seed = hl_settings_integer(settings, "seed", 0);
    t->dim = data->dim;
    t->context = data->context;
    hl_status status = check_data(t, data);
    if (status == HL_OK)
        status = hl_fit_read_bounds(t, data, hl_settings_text(settings, "bounds"));
    if (status == HL_OK)
        status = copy_rows(t, &data->train, &t->train);
    if (status == HL_OK)
        status = hl_fit_join_copies(t);
    scale_weights(&t->train);
    if (status == HL_OK)
        status = look_at_columns(t, dequantized);
    if (status == HL_OK)
        status = hl_fit_find_grids(t);
    if (status == HL_OK)
        status = data->valid.rows ? copy_rows(t, &data->valid, &t->valid)
                                  : split(t, hl_settings_real(settings, "validation-share", 0.1), seed);
    if (status == HL_OK && data->valid.rows) /* of a split of its own, equal rows are so by their nature */
        status = hl_fit_check_copies(t);
    if (status != HL_OK)
        return status;
    scale_weights(&t->train);
    scale_weights(&t->valid);
    bool noise = dequantized || !hl_settings_flag(settings, "keep-steps", false);
    if (noise)
        status = dequantize(t, dequantized, seed);
    for (size_t i = 0; i < t->findings; i++) {
        hl_finding *f = &t->finding[i];
        bool steps = f->kind == HL_FINDING_INTEGER || f->kind == HL_FINDING_TIED;
        f->noise = !steps || step_width(t, f->column, dequantized) == 0 ? 0 : noise ? 1 : -1;
    }
    if (status == HL_OK)
        status = hl_fit_apply_forms(t);
    if (status != HL_OK)
        return status;
    standardise(t, &t->train);
    standardise(t, &t->valid);
    return hl_fit_check_dependent(t);
}

void hl_fit_table_hash(hl_fit_table *t)
{
    hash_rows(t, &t->train);
    hash_rows(t, &t->valid);
}

double hl_fit_table_scale(const hl_fit_table *t)
{
    double scale = t->map_scale;
    for (size_t i = 0; i < t->dim; i++)
        scale += (t->mapped ? 0 : log(t->column[i].deviation)) + (t->factor ? log(t->factor[i * t->dim + i]) : 0);
    return scale;
}

void hl_fit_table_free(hl_fit_table *t)
{
    void *const blocks[] = { t->column,  t->names,   t->stats,      t->train.x, t->train.c, t->train.w,
                             t->valid.x, t->valid.c, t->valid.w,    t->factor,  t->finding, t->valid_slope,
                             t->form,    t->noise,   t->form_slope, t->original };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(t->ctx, blocks[i]);
}
