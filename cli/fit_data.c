/* fit_data.c - `hollow fit`: the table becomes standardised rows for training and validation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"

enum { LEAST_ROWS = 10, SHOWN_WARNINGS = 5 };
static const double LEAST_DEVIATION = 1e-140, MOST_DEVIATION = 1e140; /* whose squares are numbers, with room */

static int no_memory(void)
{
    return cli_fail(&cli_fit, CLI_FAILED, "out of memory");
}

/* ---- columns ---- */

/* The context's columns by the list, x all others. */
static int choose_columns(hl_context *ctx, const char *path, const hl_table *table, const char *context, size_t *index,
                          fit_data *data)
{
    size_t all = hl_table_columns(table), *chosen = calloc(all, sizeof *chosen), count = 0, n = 0;
    bool *taken = calloc(all, sizeof *taken);
    int result = chosen && taken ? CLI_OK : no_memory();
    if (result == CLI_OK && context) {
        hl_status status = hl_table_find(table, context, chosen, &count);
        if (status != HL_OK)
            result = cli_fail_library(&cli_fit, ctx, status);
    }
    if (result == CLI_OK && count == all)
        result = cli_fail(&cli_fit, CLI_WRONG, "%s: all columns are context; nothing is left to model", path);
    for (size_t i = 0; result == CLI_OK && i < count; i++)
        taken[chosen[i]] = true;
    for (size_t i = 0; result == CLI_OK && i < all; i++)
        if (!taken[i])
            index[n++] = i;
    for (size_t i = 0; result == CLI_OK && i < count; i++)
        index[n++] = chosen[i];
    data->dim = all - count;
    data->context = count;
    free(chosen);
    free(taken);
    return result;
}

/* Names, means and deviations; columns that cannot be modelled. */
static int describe_columns(const char *path, const hl_table *table, const size_t *index, const hl_column_stats *stats,
                            const fit_settings *set, fit_data *data)
{
    size_t warned = 0;
    data->named = hl_table_named(table);
    for (size_t i = 0; i < data->dim + data->context; i++) {
        const hl_column_stats *s = &stats[index[i]];
        const char *name = hl_table_name(table, index[i]);
        char *copy = malloc(strlen(name) + 1);
        if (!copy)
            return no_memory();
        data->columns[i] = (hl_density_column){ strcpy(copy, name), s->mean, s->deviation };
        if (s->min < s->max && !(s->deviation > LEAST_DEVIATION && s->deviation < MOST_DEVIATION))
            return cli_fail(&cli_fit, CLI_WRONG,
                            "%s: column '%s' is too %s to compute with: its values are in %g .. %g; rescale it", path,
                            name, s->deviation <= LEAST_DEVIATION ? "small" : "large", s->min, s->max);
        if (!(s->min < s->max))
            return cli_fail(&cli_fit, CLI_WRONG,
                            "%s: column '%s' is constant (%g) and has no density: leave it out by --columns", path,
                            name, s->min);
        bool steps = i < data->dim && (s->integer || s->tied > 0.5) && !set->dequantize;
        if (steps && ++warned <= SHOWN_WARNINGS)
            cli_say(&cli_fit,
                    "warning: column '%s' %s; the likelihood of such data has no bound: --dequantize adds noise of one "
                    "step's width",
                    name, s->integer ? "has whole numbers only" : "repeats its values");
    }
    if (warned > SHOWN_WARNINGS)
        cli_say(&cli_fit, "warning: so do %zu more columns", warned - SHOWN_WARNINGS);
    return CLI_OK;
}

/* Noise over the width of the steps between a column's values: 1 for whole numbers. */
static void dequantize(const fit_settings *set, const size_t *index, const hl_column_stats *stats, fit_data *data,
                       fit_rows *rows, uint64_t stream)
{
    for (size_t i = 0; i < data->dim; i++) {
        const hl_column_stats *s = &stats[index[i]];
        if (!s->integer && s->tied <= 0.5)
            continue;
        double width = s->integer ? 1 : (s->max - s->min) / (double)(s->distinct > 1 ? s->distinct - 1 : 1);
        for (size_t r = 0; r < rows->rows; r++) {
            double u = 0.5 * (1 + erf(cli_normal(set->seed + stream, r * data->dim + i) / sqrt(2)));
            rows->x[r * data->dim + i] += width * (u - 0.5);
        }
        if (rows == &data->train) /* once */
            data->columns[i].deviation =
                sqrt(data->columns[i].deviation * data->columns[i].deviation + width * width / 12);
    }
}

/* ---- rows ---- */

static int read_rows(hl_context *ctx, hl_table *table, const size_t *index, const fit_data *data, fit_rows *rows)
{
    rows->rows = hl_table_rows(table);
    rows->x = calloc(rows->rows * data->dim, sizeof *rows->x);
    rows->c = calloc(rows->rows * data->context + 1, sizeof *rows->c);
    if (!rows->x || !rows->c)
        return no_memory();
    hl_status status = hl_table_read_columns(table, 0, rows->rows, data->dim, index, rows->x);
    if (status == HL_OK && data->context)
        status = hl_table_read_columns(table, 0, rows->rows, data->context, index + data->dim, rows->c);
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_fit, ctx, status);
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
static int split(const fit_settings *set, fit_data *data)
{
    size_t rows = data->train.rows, count = (size_t)(set->validation_share * (double)rows);
    if (count < 1)
        return CLI_OK;
    for (size_t i = 0; i < count; i++) {
        size_t left = rows - i, k = (size_t)(fabs(cli_normal(set->seed + 17, i)) * 1e9) % left;
        swap_rows(data->train.x, data->dim, k, left - 1);
        swap_rows(data->train.c, data->context, k, left - 1);
    }
    data->train.rows = rows - count;
    data->valid.rows = count;
    data->valid.x = calloc(count * data->dim, sizeof(double));
    data->valid.c = calloc(count * data->context + 1, sizeof(double));
    if (!data->valid.x || !data->valid.c)
        return no_memory();
    memcpy(data->valid.x, data->train.x + data->train.rows * data->dim, count * data->dim * sizeof(double));
    memcpy(data->valid.c, data->train.c + data->train.rows * data->context, count * data->context * sizeof(double));
    return CLI_OK;
}

static void standardise(const fit_data *data, fit_rows *rows)
{
    for (size_t i = 0; i < rows->rows * data->dim; i++)
        rows->x[i] = (rows->x[i] - data->columns[i % data->dim].mean) / data->columns[i % data->dim].deviation;
    for (size_t i = 0; i < rows->rows * data->context; i++) {
        const hl_density_column *c = &data->columns[data->dim + i % data->context];
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

static int read_valid(hl_context *ctx, const fit_settings *set, const fit_data *data, fit_rows *rows)
{
    hl_table *table = NULL;
    size_t all = data->dim + data->context, *index = calloc(all, sizeof *index);
    hl_table_options options = { .drop_missing = set->drop, .array = set->array };
    hl_status status = cli_open_columns(ctx, set->valid, &options, all, data->columns, &table);
    int result = !index ? no_memory() : status == HL_OK ? CLI_OK : cli_fail_library(&cli_fit, ctx, status);
    if (result == CLI_OK)
        result = cli_find_columns(&cli_fit, set->valid, table, all, data->columns, index);
    if (result == CLI_OK)
        result = read_rows(ctx, table, index, data, rows);
    hl_table_free(table);
    free(index);
    return result;
}

static int prepare(hl_context *ctx, const char *path, hl_table *table, const fit_settings *set, size_t *index,
                   hl_column_stats *stats, fit_data *data)
{
    hl_status status = hl_table_stats(table, stats);
    if (status != HL_OK)
        return cli_fail_library(&cli_fit, ctx, status);
    int result = choose_columns(ctx, path, table, set->context, index, data);
    if (result != CLI_OK)
        return result;
    data->columns = calloc(data->dim + data->context, sizeof *data->columns);
    result = data->columns ? describe_columns(path, table, index, stats, set, data) : no_memory();
    if (result == CLI_OK)
        result = read_rows(ctx, table, index, data, &data->train);
    if (result == CLI_OK)
        result = fit_warn_far(table, index, data);
    if (result == CLI_OK)
        result = set->valid ? read_valid(ctx, set, data, &data->valid) : split(set, data);
    if (result != CLI_OK)
        return result;
    if (set->dequantize) {
        dequantize(set, index, stats, data, &data->train, 1);
        dequantize(set, index, stats, data, &data->valid, 2);
    }
    standardise(data, &data->train);
    standardise(data, &data->valid);
    result = fit_warn_dependent(data);
    if (result == CLI_OK)
        result = fit_decorrelate(set, data);
    hash_values(&data->hash, data->train.x, data->train.rows * data->dim);
    hash_values(&data->hash, data->train.c, data->train.rows * data->context);
    hash_values(&data->hash, data->valid.x, data->valid.rows * data->dim);
    hash_values(&data->hash, data->valid.c, data->valid.rows * data->context);
    return result;
}

int fit_load(hl_context *ctx, const char *path, const fit_settings *set, fit_data *data)
{
    hl_table *table = NULL;
    hl_table_options options = {
        .columns = set->columns, .drop_missing = set->drop, .array = set->array, .min_rows = LEAST_ROWS
    };
    hl_status status = hl_table_open(ctx, path, &options, &table);
    if (status != HL_OK)
        return cli_fail_library(&cli_fit, ctx, status);
    if (hl_table_dropped(table))
        cli_say(&cli_fit, "%s: %zu rows with missing values are left out", path, hl_table_dropped(table));
    size_t columns = hl_table_columns(table), *index = calloc(columns, sizeof *index);
    hl_column_stats *stats = calloc(columns, sizeof *stats);
    int result = index && stats ? prepare(ctx, path, table, set, index, stats, data) : no_memory();
    free(index);
    free(stats);
    hl_table_free(table);
    return result;
}

void fit_data_free(fit_data *data)
{
    for (size_t i = 0; data->columns && i < data->dim + data->context; i++)
        free((void *)(uintptr_t)data->columns[i].name);
    free(data->columns);
    free(data->train.x);
    free(data->train.c);
    free(data->valid.x);
    free(data->valid.c);
    free(data->order);
    free(data->factor);
}
