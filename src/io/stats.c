/* stats.c - the statistics of a table's columns, in one pass.
 *
 * Moments: values are taken relative to the first row, so that a constant column has deviation 0 to the bit and a large offset
 * costs no digits. A chunk of rows gives its mean and its sum of squares about that mean, and chunks are joined by
 *
 *     delta = mean_b - mean_a,   mean = mean_a + delta n_b / n,   S = S_a + S_b + delta^2 n_a n_b / n.
 *
 * Columns whose squares would leave the range of doubles are computed in units of a power of two, which costs no bit.
 *
 * Ties are counted among a sample of the rows, one at random from each of as many equal stretches: a column of a few values,
 * or one value that many rows have, shows in it whatever the order of the rows. */
#include <math.h>

#include "base/linear.h"
#include "io/table.h"

enum {
    CHUNK_ROWS = 256,
    CHUNK_VALUES = 1 << 16,  /* at most, or one row */
    SAMPLE_ROWS = 1 << 16,   /* at most */
    SAMPLE_VALUES = 1 << 23, /* at most, if that leaves SAMPLE_LEAST rows */
    SAMPLE_LEAST = 256
};

typedef struct moments {
    double origin;       /* the first row's value */
    double mean, square; /* mean relative to the origin; sum of squares about the mean; in units of 2^unit */
    int unit;            /* of the largest value so far; 0 for all that are far from the limits of doubles */
    bool begun;          /* a value was not 0 */
} moments;

typedef struct statistics {
    hl_rows_fn *read;
    void *user;
    hl_column_stats *stats;
    size_t columns, rows, step; /* rows of a chunk */
    double *chunk;              /* step x columns */
    moments *moments;
    double *sample; /* columns x sample_rows */
    size_t sample_rows, sampled;
} statistics;

/* Choose the unit by the largest magnitude; what was summed up so far changes its unit with it. */
static void choose_unit(moments *m, double largest)
{
    int unit;

    if (largest == 0)
        return;
    unit = largest < 0x1p-300 || largest > 0x1p300 ? ilogb(largest) : 0;
    if (m->begun && unit <= m->unit)
        return;
    m->mean = ldexp(m->mean, m->unit - unit);
    m->square = ldexp(m->square, 2 * (m->unit - unit));
    m->unit = unit;
    m->begun = true;
}

static void add_chunk(statistics *s, size_t column, size_t before, size_t n)
{
    const double *x = s->chunk + column;
    hl_column_stats *stats = &s->stats[column];
    moments *m = &s->moments[column];
    double mean = 0, square = 0, delta, total = (double)before + (double)n, largest = fabs(m->origin), origin;

    for (size_t i = 0; i < n; i++)
        largest = fmax(largest, fabs(x[i * s->columns]));
    choose_unit(m, largest);
    origin = ldexp(m->origin, -m->unit);
    for (size_t i = 0; i < n; i++, x += s->columns) {
        mean += (m->unit ? ldexp(*x, -m->unit) : *x) - origin;
        stats->min = *x < stats->min ? *x : stats->min;
        stats->max = *x > stats->max ? *x : stats->max;
        stats->integer &= *x == floor(*x);
    }
    mean /= (double)n;
    x = s->chunk + column;
    for (size_t i = 0; i < n; i++, x += s->columns) {
        double d = (m->unit ? ldexp(*x, -m->unit) : *x) - origin - mean;

        square += d * d;
    }
    delta = mean - m->mean;
    m->mean += delta * ((double)n / total);
    m->square += square + delta * delta * ((double)before * (double)n / total);
}

/* The row that stands for stretch `i` of the sample. */
static size_t sampled_row(const statistics *s, size_t i)
{
    size_t each = s->rows / s->sample_rows, more = s->rows % s->sample_rows;
    size_t first = i * each + (i < more ? i : more), length = each + (i < more);

    return first + (size_t)(hl_random_bits(1, 0, i) % length);
}

static void take_sample(statistics *s, size_t first, size_t n)
{
    for (; s->sampled < s->sample_rows; s->sampled++) {
        size_t row = sampled_row(s, s->sampled);

        if (row >= first + n)
            return;
        for (size_t j = 0; j < s->columns; j++)
            s->sample[j * s->sample_rows + s->sampled] = s->chunk[(row - first) * s->columns + j];
    }
}

static void count_ties(const statistics *s, size_t column)
{
    double *x = s->sample + column * s->sample_rows;
    hl_column_stats *stats = &s->stats[column];
    size_t n = s->sample_rows, tied = 0;

    hl_sort(x, n);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && x[end] == x[i];)
            end++;
        stats->distinct++;
        tied += end - i > 1 ? end - i : 0;
    }
    stats->examined = n;
    stats->tied = (double)tied / (double)n;
}

static hl_status run(statistics *s)
{
    for (size_t first = 0; first < s->rows; first += s->step) {
        size_t n = s->rows - first < s->step ? s->rows - first : s->step;
        hl_status status = s->read(s->user, first, n, s->chunk);

        if (status)
            return status;
        for (size_t j = 0; first == 0 && j < s->columns; j++)
            s->moments[j].origin = s->chunk[j];
        for (size_t j = 0; j < s->columns; j++)
            add_chunk(s, j, first, n);
        take_sample(s, first, n);
    }
    for (size_t j = 0; j < s->columns; j++) {
        const moments *m = &s->moments[j];

        s->stats[j].mean = ldexp(ldexp(m->origin, -m->unit) + m->mean, m->unit);
        s->stats[j].deviation = ldexp(sqrt(m->square / (double)s->rows), m->unit);
        count_ties(s, j);
    }
    return HL_OK;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

hl_status hl_rows_stats(hl_context *ctx, size_t rows, size_t columns, hl_rows_fn *read, void *user,
                        hl_column_stats *stats)
{
    statistics s = { .read = read, .user = user, .stats = stats, .columns = columns, .rows = rows };
    hl_status status = HL_ERR_NOMEM;

    s.step = smaller(CHUNK_VALUES / s.columns, CHUNK_ROWS);
    s.step = s.step ? s.step : 1;
    s.sample_rows = SAMPLE_VALUES / s.columns < SAMPLE_LEAST ? SAMPLE_LEAST : SAMPLE_VALUES / s.columns;
    s.sample_rows = smaller(smaller(s.sample_rows, SAMPLE_ROWS), s.rows);
    for (size_t j = 0; j < s.columns; j++)
        stats[j] = (hl_column_stats){ .min = INFINITY, .max = -INFINITY, .integer = 1 };
    s.chunk = hl_calloc(ctx, s.step * s.columns, sizeof *s.chunk);
    s.moments = s.chunk ? hl_calloc(ctx, s.columns, sizeof *s.moments) : NULL;
    s.sample = s.moments ? hl_calloc(ctx, s.sample_rows * s.columns, sizeof *s.sample) : NULL;
    if (s.sample)
        status = run(&s);
    hl_free(ctx, s.chunk);
    hl_free(ctx, s.moments);
    hl_free(ctx, s.sample);
    return status;
}

static hl_status read_table(void *user, size_t first, size_t count, double *out)
{
    return hl_table_read_rows(user, first, count, out);
}

hl_status hl_table_stats(hl_table *table, hl_column_stats *stats)
{
    return hl_rows_stats(table->ctx, table->rows, table->column_count, read_table, table, stats);
}
