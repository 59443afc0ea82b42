/* density_fit_check.c - findings about the data: columns that cannot be modelled, and data that would give a bad model without an
 * error.
 *
 * Far values: columns are standardised by their deviation, and one value of 10^8 among normal ones leaves nothing of the others.
 * The rule is a distance of FAR interquartile ranges from the median, which of 10,000 rows of Student's t with 3 degrees of
 * freedom 4 in 100 samples have.
 *
 * Dependent columns: by Cholesky's factors of the correlations, column by column. A pivot is the part of a column's variance that
 * the columns before it, those of the context first, do not explain; where it is rounding only, the data lie in a subspace and
 * the likelihood grows without bound.
 *
 * Edges: a column that is never negative and has as many values close to 0 as farther away, as exponential and uniform ones, unlike lognormal
 * ones. A smooth density would put mass beyond it. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "learn/density_fit.h"

enum {
    QUARTILE_ROWS = 10000,    /* looked at for quartiles, at most */
    REPEATED_LEAST = 5,       /* rows of a value, from which on it is said to repeat */
    EDGE_LEAST = 5,           /* rows near an edge, from which on there is one */
    DEPENDENT_COLUMNS = 1024, /* more are not compared: the cost grows as their cube */
    DEPENDENT_ROWS = 2000     /* at most, or four for each column */
};
static const double LEAST_DEVIATION = 1e-140, MOST_DEVIATION = 1e140; /* whose squares are numbers, with room */
static const double REPEATED = 0.01, EDGE_SHARE = 0.02;               /* shares of the rows */
static const double FAR = 50, LEAST_PIVOT = 1e-10, LEAST_SHARE = 1e-4;

hl_status hl_fit_table_find(hl_fit_table *t, const hl_finding *finding)
{
    hl_status status = hl_grow(t->ctx, (void **)&t->finding, &t->finding_room, t->findings + 1, sizeof *t->finding);
    if (status != HL_OK)
        return status;
    t->finding[t->findings] = *finding;
    size_t *row = &t->finding[t->findings].row; /* of the table, not of its sample or of its rows without copies */
    if (t->original && finding->kind == HL_FINDING_FAR)
        *row = t->original[*row];
    if (t->stream && finding->kind == HL_FINDING_FAR)
        *row = t->stream->row[t->stream->held + *row];
    t->findings++;
    return status;
}

/* ---- columns ---- */

hl_status hl_fit_check_columns(hl_fit_table *t, bool dequantize)
{
    hl_status status = HL_OK;
    size_t bad = 0, which = 0;
    for (size_t i = 0; i < t->dim + t->context && status == HL_OK; i++) {
        const hl_column_stats *s = &t->stats[i];
        bool constant = !(s->min < s->max),
             scale = !constant && !(s->deviation > LEAST_DEVIATION && s->deviation < MOST_DEVIATION),
             steps = i < t->dim && (s->integer || s->tied > 0.5) && !dequantize;
        hl_finding f = { .column = i, .low = s->min, .high = s->max, .count = s->distinct };
        if (!constant && !scale && !steps)
            continue;
        f.kind = constant     ? HL_FINDING_CONSTANT
                 : scale      ? HL_FINDING_SCALE
                 : s->integer ? HL_FINDING_INTEGER
                              : HL_FINDING_TIED;
        f.value = constant ? s->min : !scale ? s->tied : isfinite(s->deviation) ? s->deviation : INFINITY;
        which = (constant || scale) && !bad ? i : which;
        bad += constant || scale;
        status = hl_fit_table_find(t, &f);
    }
    if (status != HL_OK || !bad)
        return status;
    return hl_fail(t->ctx, HL_ERR_INVALID, "column '%.60s' %s", t->column[which].name,
                   t->stats[which].min < t->stats[which].max ? "is too small or too large to compute with"
                                                             : "is constant and has no density");
}

/* ---- far values ---- */

/* Lower quartile, median and upper quartile of a column, of evenly spaced rows; without those of one value, unless it is NaN. */
static void quartiles(const double *x, size_t rows, size_t stride, double without, double *sorted, double q[3])
{
    size_t most = rows < QUARTILE_ROWS ? rows : QUARTILE_ROWS, count = 0;
    for (size_t i = 0; i < most; i++) {
        double value = x[(size_t)((double)i * ((double)rows / (double)most)) * stride];
        if (value != without)
            sorted[count++] = value;
    }
    hl_sort(sorted, count);
    for (size_t k = 0; k < 3 && count; k++)
        q[k] = sorted[(k + 1) * (count - 1) / 4];
}

/* One column, `at` of the first row on; f.count is 0 if nothing is far. */
static hl_finding far_values(const double *at, size_t rows, size_t stride, double *sorted)
{
    hl_finding f = { .kind = HL_FINDING_FAR };
    double q[3], farthest = 0;
    quartiles(at, rows, stride, NAN, sorted, q);
    if (!(q[2] > q[0])) /* more than half are equal, as the zeros of a count: what of the others? */
        quartiles(at, rows, stride, q[1], sorted, q);
    f.low = q[0];
    f.high = q[2];
    for (size_t r = 0; r < rows && q[2] > q[0]; r++) {
        double distance = fabs(at[r * stride] - q[1]);
        f.count += distance > FAR * (q[2] - q[0]);
        if (distance > farthest) {
            farthest = distance;
            f.row = r;
        }
    }
    f.value = at[f.row * stride];
    return f;
}

hl_status hl_fit_check_far(hl_fit_table *t)
{
    double *sorted = hl_calloc(t->ctx, QUARTILE_ROWS, sizeof *sorted);
    hl_status status = sorted ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < t->dim + t->context && status == HL_OK; i++) {
        bool x = i < t->dim;
        hl_finding f =
            far_values(x ? t->train.x + i : t->train.c + (i - t->dim), t->train.rows, x ? t->dim : t->context, sorted);
        f.column = i;
        if (f.count)
            status = hl_fit_table_find(t, &f);
    }
    hl_free(t->ctx, sorted);
    return status;
}

/* ---- edges ---- */

/* Has a column as many values near its edge, at most an eighth of the median's distance away, as in the next eighth, about? */
static bool has_mass_at(const double *at, size_t rows, size_t stride, double edge, double median)
{
    double width = fabs(median - edge) / 8;
    size_t near = 0, next = 0;
    for (size_t r = 0; r < rows; r++) {
        double distance = fabs(at[r * stride] - edge);
        near += distance <= width;
        next += distance > width && distance <= 2 * width;
    }
    return width > 0 && near >= EDGE_LEAST && (double)near > EDGE_SHARE * (double)rows && 10 * near >= 7 * next;
}

hl_status hl_fit_check_edges(hl_fit_table *t)
{
    double *sorted = hl_calloc(t->ctx, QUARTILE_ROWS, sizeof *sorted), q[3];
    hl_status status = sorted ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < t->dim && status == HL_OK; i++) {
        const hl_column_stats *s = &t->stats[i];
        const double *at = t->train.x + i;
        hl_finding f = { .kind = HL_FINDING_EDGE, .column = i, .low = -INFINITY, .high = INFINITY };
        if (isfinite(t->form[i].low) || isfinite(t->form[i].high) || (s->min < 0 && s->max > 0) || s->integer)
            continue; /* declared, no edge at 0, or limited as integers are */
        quartiles(at, t->train.rows, t->dim, NAN, sorted, q);
        if (s->min >= 0 && has_mass_at(at, t->train.rows, t->dim, 0, q[1]))
            f.low = 0;
        if (s->max <= 0 && has_mass_at(at, t->train.rows, t->dim, 0, q[1]))
            f.high = 0;
        if (s->min >= 0 && s->max <= 1 && !s->integer && has_mass_at(at, t->train.rows, t->dim, 1, q[1]))
            f.high = 1;
        f.value = isfinite(f.low) ? f.low : f.high;
        if (isfinite(f.value))
            status = hl_fit_table_find(t, &f);
    }
    hl_free(t->ctx, sorted);
    return status;
}

/* ---- repeated values ---- */

/* The most frequent value of evenly spaced rows of a column. */
static double most_frequent(const double *at, size_t rows, size_t stride, double *sorted)
{
    size_t n = rows < QUARTILE_ROWS ? rows : QUARTILE_ROWS, most = 0;
    double value = 0;
    for (size_t i = 0; i < n; i++)
        sorted[i] = at[(size_t)((double)i * ((double)rows / (double)n)) * stride];
    hl_sort(sorted, n);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && sorted[end] == sorted[i];)
            end++;
        if (end - i > most) {
            most = end - i;
            value = sorted[i];
        }
    }
    return value;
}

hl_status hl_fit_check_repeated(hl_fit_table *t)
{
    size_t rows = t->train.rows;
    double *sorted = hl_calloc(t->ctx, QUARTILE_ROWS, sizeof *sorted);
    hl_status status = sorted ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < t->dim && status == HL_OK; i++) {
        const double *at = t->train.x + i;
        hl_finding f = { .kind = HL_FINDING_REPEATED, .column = i };
        if (t->stats[i].integer || t->stats[i].tied > 0.5) /* found already */
            continue;
        f.value = most_frequent(at, rows, t->dim, sorted);
        for (size_t r = 0; r < rows; r++)
            f.count += at[r * t->dim] == f.value;
        if (f.count >= REPEATED_LEAST && (double)f.count >= REPEATED * (double)rows)
            status = hl_fit_table_find(t, &f);
    }
    hl_free(t->ctx, sorted);
    return status;
}

/* ---- dependent columns ---- */

typedef struct dependence {
    hl_fit_table *table;
    size_t columns, rows, kept;
    double *value;  /* columns x rows, the context first: mean 0, length 1 */
    double *factor; /* columns x columns, lower triangular: of the kept columns' correlations */
    size_t *basis;  /* kept columns */
    double *own;    /* [columns + 1] of one column */
} dependence;

/* Column `c` of evenly spaced rows, centred and of length 1; all 0 if it is constant in them. */
static void load_column(dependence *d, size_t c)
{
    const hl_fit_table *t = d->table;
    double *to = d->value + c * d->rows, mean = 0, square = 0;
    for (size_t r = 0; r < d->rows; r++) {
        size_t row = (size_t)((double)r * ((double)t->train.rows / (double)d->rows));
        to[r] = c < t->context ? t->train.c[row * t->context + c] : t->train.x[row * t->dim + (c - t->context)];
        mean += to[r] / (double)d->rows;
    }
    for (size_t r = 0; r < d->rows; r++)
        square += (to[r] - mean) * (to[r] - mean);
    for (size_t r = 0; r < d->rows; r++)
        to[r] = square > 0 ? (to[r] - mean) / sqrt(square) : 0;
}

static double product(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Whether the kept columns leave nothing of a column but rounding; else it is kept itself. */
static bool depends(dependence *d, size_t c)
{
    const double *x = d->value + c * d->rows;
    for (size_t k = 0; k < d->kept; k++)
        d->own[k] = product(x, d->value + d->basis[k] * d->rows, d->rows);
    d->own[d->kept] = product(x, x, d->rows);
    double pivot = hl_cholesky_row(d->kept, d->factor, d->columns, d->own);
    if (pivot < LEAST_PIVOT)
        return true;
    d->own[d->kept] = sqrt(pivot);
    for (size_t k = 0; k <= d->kept; k++)
        d->factor[d->kept * d->columns + k] = d->own[k];
    d->basis[d->kept++] = c;
    return false;
}

/* Of the table, from one of the dependence, which has the context first. */
static size_t column_of(const dependence *d, size_t c)
{
    return c < d->table->context ? d->table->dim + c : c - d->table->context;
}

/* Which of the kept columns the column is made of: the coefficients, in deviations, solve L' b = its factors. */
static hl_status find_dependent(dependence *d, size_t c)
{
    hl_finding f = { .kind = HL_FINDING_DEPENDENT, .column = column_of(d, c) };
    hl_solve_lower_transposed(d->kept, d->factor, d->columns, d->own);
    for (size_t k = 0; k < d->kept; k++)
        if (fabs(d->own[k]) > LEAST_SHARE) {
            if (f.count < HL_FINDING_OTHERS)
                f.others[f.count] = column_of(d, d->basis[k]);
            f.count++;
        }
    return hl_fit_table_find(d->table, &f);
}

hl_status hl_fit_check_dependent(hl_fit_table *t)
{
    size_t columns = t->dim + t->context, most = 4 * columns > DEPENDENT_ROWS ? 4 * columns : (size_t)DEPENDENT_ROWS;
    dependence d = { .table = t, .columns = columns, .rows = t->train.rows < most ? t->train.rows : most };
    if (columns < 2 || columns > DEPENDENT_COLUMNS || d.rows < columns + 2) /* few rows always lie in a subspace */
        return HL_OK;
    d.value = hl_calloc(t->ctx, columns * d.rows, sizeof *d.value);
    d.factor = hl_calloc(t->ctx, columns * columns, sizeof *d.factor);
    d.basis = hl_calloc(t->ctx, columns, sizeof *d.basis);
    d.own = hl_calloc(t->ctx, columns + 1, sizeof *d.own);
    hl_status status = d.value && d.factor && d.basis && d.own ? HL_OK : HL_ERR_NOMEM;
    for (size_t c = 0; c < columns && status == HL_OK; c++) {
        load_column(&d, c);
        if (depends(&d, c) && c >= t->context)
            status = find_dependent(&d, c);
    }
    hl_free(t->ctx, d.value);
    hl_free(t->ctx, d.factor);
    hl_free(t->ctx, d.basis);
    hl_free(t->ctx, d.own);
    return status;
}
