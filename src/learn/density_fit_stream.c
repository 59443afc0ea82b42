/* density_fit_stream.c - tables of any number of rows: a sample for what looks at all rows, and batches read from the rest.
 *
 * A random permutation P of the rows, which needs no memory (hl_permuted), gives the sample: rows P(0) .. P(V - 1) are for validation, the
 * next ones for everything else that hl_density_fit looks at. Epoch e of training goes through rows V, V + 1, ... of P in an order
 * of its own, P(V + Q_e(i)); weighted rows by systematic sampling, whose places Q_e shuffles. So a batch is a function of its place alone, and
 * whoever needs it reads it: each rank its own share, from memory or from a file, to the same bits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linear.h"
#include "learn/column_map.h"
#include "learn/density_fit.h"

enum { MOST_ROWS = 100000, LEAST_ROWS = 5000, MOST_VALUES = 1 << 24, CHUNK = 4096 };
enum { STREAM_SAMPLE = 47, STREAM_ORDER = 48, STREAM_PLACE = 49, STREAM_STEPS = 50 }; /* of random numbers */

size_t hl_density_sample_rows(size_t columns)
{
    size_t rows = MOST_VALUES / (columns ? columns : 1);
    return rows > MOST_ROWS ? MOST_ROWS : rows < LEAST_ROWS ? LEAST_ROWS : rows;
}

/* ---- reading ---- */

/* Rows of a table in memory. */
static hl_status read_memory(size_t count, const size_t *row, double *x, double *context, double *weights, void *user)
{
    const hl_fit_stream *s = user;
    for (size_t r = 0; r < count; r++) {
        if (x)
            memcpy(x + r * s->dim, s->x + row[r] * s->dim, s->dim * sizeof *x);
        if (context && s->context)
            memcpy(context + r * s->context, s->c + row[r] * s->context, s->context * sizeof *x);
        if (weights)
            weights[r] = s->w[row[r]];
    }
    return HL_OK;
}

static hl_status check_finite(const hl_fit_stream *s, size_t columns, size_t count, const size_t *row,
                              const double *values, const char *what)
{
    for (size_t i = 0; values && i < count * columns; i++)
        if (!isfinite(values[i]))
            return hl_fail(s->ctx, HL_ERR_NOT_FINITE, "training row %zu, column %zu%s is not finite",
                           row[i / columns] + 1, i % columns + 1, what);
    return HL_OK;
}

static hl_status read_rows(const hl_fit_stream *s, size_t count, const size_t *row, double *x, double *c, double *w)
{
    hl_status status = s->source.read(count, row, x, s->context ? c : NULL, w, s->source.user);
    if (status != HL_OK)
        return status;
    status = check_finite(s, s->dim, count, row, x, "");
    return status == HL_OK && s->context ? check_finite(s, s->context, count, row, c, " of the context") : status;
}

hl_status hl_fit_stream_take(const hl_fit_stream *s, size_t count, const size_t *row, double *x)
{
    return read_rows(s, count, row, x, NULL, NULL);
}

/* ---- the sample ---- */

static int by_number(const void *a, const void *b)
{
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return x < y ? -1 : x > y;
}

/* The rows of the sample, each part in the order of the table, which is the order that files are read fastest in. */
static void draw(hl_fit_stream *s, size_t count)
{
    for (size_t i = 0; i < count; i++)
        s->row[i] = s->streamed ? hl_permuted(s->seed, STREAM_SAMPLE, s->source.rows, i) : i;
    qsort(s->row, s->held, sizeof *s->row, by_number);
    qsort(s->row + s->held, count - s->held, sizeof *s->row, by_number);
}

/* Rows `first` up to `first + count` of the sample as the data of a fit. */
static hl_density_rows part_of(const hl_fit_stream *s, size_t all, size_t first, size_t count)
{
    const double *c = s->block + all * s->dim, *w = c + all * s->context;
    return (hl_density_rows){ .rows = count,
                              .x = s->block + first * s->dim,
                              .context = s->context ? c + first * s->context : NULL,
                              .weights = s->source.weighted ? w + first : NULL };
}

static hl_status take_sample(hl_fit_stream *s, size_t count, hl_density_data *sample)
{
    size_t each = hl_size_add(hl_size_add(s->dim, s->context), 1);
    s->row = hl_calloc(s->ctx, count, sizeof *s->row);
    s->block = hl_calloc(s->ctx, hl_size_mul(count, each), sizeof *s->block);
    if (!s->row || !s->block)
        return HL_ERR_NOMEM;
    draw(s, count);
    double *c = s->block + count * s->dim, *w = c + count * s->context;
    hl_status status = HL_OK;
    for (size_t at = 0; at < count && status == HL_OK; at += CHUNK) {
        size_t n = count - at < CHUNK ? count - at : CHUNK;
        status = read_rows(s, n, s->row + at, s->block + at * s->dim, c + at * s->context,
                           s->source.weighted ? w + at : NULL);
    }
    sample->train = part_of(s, count, s->held, count - s->held);
    if (s->held)
        sample->valid = part_of(s, count, 0, s->held);
    return status;
}

/* Sums of the weights of all rows in the order of the table; rows of validation count nothing. */
static hl_status add_weights(hl_fit_stream *s)
{
    size_t rows = s->source.rows, next = 0, chunk[CHUNK];
    double sum = 0;
    s->sum = hl_calloc(s->ctx, rows, sizeof *s->sum);
    hl_status status = s->sum ? HL_OK : HL_ERR_NOMEM;
    for (size_t at = 0; at < rows && status == HL_OK; at += CHUNK) {
        size_t n = rows - at < CHUNK ? rows - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            chunk[i] = at + i;
        status = read_rows(s, n, chunk, NULL, NULL, s->sum + at);
        for (size_t r = at; r < at + n && status == HL_OK; r++) {
            double weight = s->sum[r];
            bool held = next < s->held && s->row[next] == r;
            next += held;
            sum += held ? 0 : weight;
            s->sum[r] = sum;
            if (!(weight >= 0) || !isfinite(weight))
                status = hl_fail_at(s->ctx, HL_ERR_INVALID, hl_at(r, HL_NOWHERE),
                                    "the weight of this training row is %g; it must be 0 or more", weight);
        }
    }
    if (status == HL_OK && !(sum > 0 && isfinite(sum)))
        status = hl_fail(s->ctx, HL_ERR_INVALID, "the weights of the training rows add up to %g", sum);
    return status;
}

/* A source as the caller gave it, or one of the rows in memory, which are all looked at. */
static hl_status open_source(hl_fit_stream *s, const hl_density_data *data)
{
    const hl_density_rows *t = &data->train;
    if (data->source && !data->source->read)
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_density_fit: the row source has no read function");
    if (data->source) {
        s->source = *data->source;
        return HL_OK;
    }
    if (!t->x || (s->context && !t->context))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_density_fit: the training rows have no %s",
                       t->x ? "context" : "values");
    s->x = t->x;
    s->c = t->context;
    s->w = t->weights;
    s->source = (hl_row_source){ t->rows, read_memory, s, t->weights != NULL };
    hl_status status = HL_OK;
    for (size_t r = 0; r < t->rows && status == HL_OK; r++) {
        status = check_finite(s, s->dim, 1, &r, t->x + r * s->dim, "");
        if (status == HL_OK && s->context)
            status = check_finite(s, s->context, 1, &r, t->context + r * s->context, " of the context");
    }
    return status;
}

hl_status hl_fit_stream_sample(hl_context *ctx, const hl_density_data *data, const hl_settings *settings,
                               hl_fit_stream *s, hl_density_data *sample)
{
    size_t most = hl_density_sample_rows(hl_size_add(data->dim, data->context));
    *sample = *data;
    *s = (hl_fit_stream){ .ctx = ctx, .dim = data->dim, .context = data->context };
    if (!data->dim || (!data->source && data->train.rows <= most))
        return HL_OK;
    s->seed = hl_settings_integer(settings, "seed", 0);
    hl_status status = open_source(s, data);
    if (status != HL_OK)
        return status;
    size_t count = s->source.rows < most ? s->source.rows : most;
    s->streamed = s->source.rows > count;
    if (s->streamed && !data->valid.rows)
        s->held = (size_t)(hl_settings_real(settings, "validation-share", 0.1) * (double)count);
    sample->source = NULL;
    status = take_sample(s, count, sample);
    return status == HL_OK && s->streamed && s->source.weighted ? add_weights(s) : status;
}

void hl_fit_stream_free(hl_fit_stream *s)
{
    void *const blocks[] = { s->row, s->block, s->sum, s->wanted };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(s->ctx, blocks[i]);
}

size_t hl_fit_stream_rows(const hl_fit_stream *s)
{
    return s->source.rows - s->held;
}

/* ---- batches ---- */

/* The first row whose sum is beyond `target`. */
static size_t find_weight(const hl_fit_stream *s, double target)
{
    size_t low = 0, high = s->source.rows - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->sum[middle] > target)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The row at a place of an endless row of epochs. */
static size_t row_at(const hl_fit_stream *s, size_t place)
{
    size_t rows = hl_fit_stream_rows(s), epoch = place / rows;
    size_t i = hl_permuted(s->seed, STREAM_ORDER | (uint64_t)epoch << 32, rows, place % rows);
    if (!s->sum)
        return hl_permuted(s->seed, STREAM_SAMPLE, s->source.rows, s->held + i);
    double u = hl_random_uniform(s->seed, STREAM_PLACE, epoch);
    return find_weight(s, ((double)i + u) / (double)rows * s->sum[s->source.rows - 1]);
}

/* A value of column i (x first) of a row, as hl_fit_table_load and hl_fit_members_map have it. */
static hl_status transform(const hl_fit_stream *s, size_t row, size_t i, double *value)
{
    const hl_fit_table *t = s->table;
    double given = *value;
    if (i < t->dim && t->noise && t->noise[i] > 0)
        *value += t->noise[i] * (hl_random_uniform(s->seed, STREAM_STEPS, row * t->dim + i) - 0.5);
    if (t->form)
        *value = hl_column_form_forward(&t->form[i], *value, NULL, NULL);
    *value = t->mapped ? hl_column_map_forward(s->map[i], *value, NULL)
                       : (*value - t->column[i].mean) / t->column[i].deviation;
    if (!isfinite(*value))
        return hl_fail(s->ctx, HL_ERR_INVALID, "training row %zu, column '%.60s' is %g, outside of its bounds", row + 1,
                       t->column[i].name, given);
    return HL_OK;
}

hl_status hl_fit_stream_read(void *user, size_t first, size_t count, double *x, double *c)
{
    hl_fit_stream *s = user;
    const hl_fit_table *t = s->table;
    if (hl_grow(s->ctx, (void **)&s->wanted, &s->room, count, sizeof *s->wanted) != HL_OK)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < count; r++)
        s->wanted[r] = row_at(s, first + r);
    hl_status status = read_rows(s, count, s->wanted, x, c, NULL);
    for (size_t r = 0; r < count && status == HL_OK; r++) {
        for (size_t i = 0; i < t->dim && status == HL_OK; i++)
            status = transform(s, s->wanted[r], i, &x[r * t->dim + i]);
        for (size_t i = 0; i < t->context && status == HL_OK; i++)
            status = transform(s, s->wanted[r], t->dim + i, &c[r * t->context + i]);
        if (t->factor)
            hl_solve_lower(t->dim, t->factor, t->dim, x + r * t->dim);
    }
    return status;
}
