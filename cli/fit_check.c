/* fit_check.c - `hollow fit`: data that would give a bad model without an error. Nothing is refused here; the user is told.
 *
 * Far values: columns are standardised by their deviation, and one value of 10^8 among normal ones leaves nothing of the others.
 * The rule is a distance of FAR interquartile ranges from the median, which of 10,000 rows of Student's t with 3 degrees of
 * freedom 4 in 100 samples have.
 *
 * Dependent columns: by Cholesky's factors of the correlations, column by column. A pivot is the part of a column's variance that
 * the columns before it, those of the context first, do not explain; where it is rounding only, the data lie in a plane and
 * the likelihood grows without bound. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"

enum {
    QUARTILE_ROWS = 10000,    /* looked at for quartiles, at most */
    SHOWN = 5,                /* warnings of a kind */
    DEPENDENT_COLUMNS = 1024, /* more are not compared: the cost grows as their cube */
    DEPENDENT_ROWS = 2000,    /* at most, or four for each column */
    NAMED = 3                 /* columns that another depends on */
};
static const double FAR = 50, LEAST_PIVOT = 1e-10, LEAST_SHARE = 1e-4;

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
    cli_sort(sorted, count);
    for (size_t k = 0; k < 3 && count; k++)
        q[k] = sorted[(k + 1) * (count - 1) / 4];
}

/* One column, `at` of the first row on. Returns whether there was something to say, and says it if asked. */
static bool far_values(const hl_table *table, size_t column, const double *at, size_t rows, size_t stride,
                       double *sorted, bool say)
{
    double q[3], farthest = 0;
    size_t count = 0, row = 0;
    char place[400];
    quartiles(at, rows, stride, NAN, sorted, q);
    if (!(q[2] > q[0])) /* more than half are equal, as the zeros of a count: what of the others? */
        quartiles(at, rows, stride, q[1], sorted, q);
    for (size_t r = 0; r < rows; r++) {
        double distance = fabs(at[r * stride] - q[1]);
        count += distance > FAR * (q[2] - q[0]);
        if (distance > farthest) {
            farthest = distance;
            row = r;
        }
    }
    if (count == 0 || !(q[2] > q[0]))
        return false;
    if (!say)
        return true;
    hl_table_place(table, row, column, place, sizeof place);
    cli_say(&cli_fit,
            "warning: %s: %g is far from the other values, half of which are in %g .. %g%s; what is an error should be "
            "corrected, and a column with such tails is better modelled as its asinh or logarithm",
            place, at[row * stride], q[0], q[2], count > 1 ? ", and so are others of this column" : "");
    return true;
}

int fit_warn_far(const hl_table *table, const size_t *index, const fit_data *data)
{
    size_t warned = 0, rows = data->train.rows;
    double *sorted = calloc(QUARTILE_ROWS, sizeof *sorted);
    if (!sorted)
        return cli_fail(&cli_fit, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < data->dim + data->context; i++) {
        bool x = i < data->dim;
        const double *at = x ? data->train.x + i : data->train.c + (i - data->dim);
        warned += far_values(table, index[i], at, rows, x ? data->dim : data->context, sorted, warned < SHOWN);
    }
    free(sorted);
    if (warned > SHOWN)
        cli_say(&cli_fit, "warning: %zu more columns have such values", warned - SHOWN);
    return CLI_OK;
}

/* ---- dependent columns ---- */

typedef struct dependence {
    const fit_data *data;
    size_t columns, rows, kept;
    double *value;  /* columns x rows, the context first: mean 0, length 1 */
    double *factor; /* columns x columns: row i has its correlations' factors with the kept columns */
    size_t *basis;  /* kept columns */
    double *share;  /* of the kept columns in one that depends on them */
} dependence;

static const char *name_of(const dependence *d, size_t column)
{
    size_t context = d->data->context;
    return d->data->columns[column < context ? d->data->dim + column : column - context].name;
}

/* Column `c` of evenly spaced rows, centred and of length 1; all 0 if it is constant in them. */
static void load_column(dependence *d, size_t c)
{
    const fit_data *data = d->data;
    double *to = d->value + c * d->rows, mean = 0, square = 0;
    for (size_t r = 0; r < d->rows; r++) {
        size_t row = (size_t)((double)r * ((double)data->train.rows / (double)d->rows));
        to[r] = c < data->context ? data->train.c[row * data->context + c]
                                  : data->train.x[row * data->dim + (c - data->context)];
        mean += to[r] / (double)d->rows;
    }
    for (size_t r = 0; r < d->rows; r++)
        square += (to[r] - mean) * (to[r] - mean);
    for (size_t r = 0; r < d->rows; r++)
        to[r] = square > 0 ? (to[r] - mean) / sqrt(square) : 0;
}

/* The part of a column that the kept ones leave; it is kept itself if that is more than rounding. */
static bool depends(dependence *d, size_t c)
{
    double pivot = 0, *own = d->factor + c * d->columns;
    const double *x = d->value + c * d->rows;
    for (size_t k = 0; k < d->kept; k++) {
        const double *y = d->value + d->basis[k] * d->rows, *other = d->factor + d->basis[k] * d->columns;
        double sum = 0;
        for (size_t r = 0; r < d->rows; r++)
            sum += x[r] * y[r];
        for (size_t i = 0; i < k; i++)
            sum -= own[i] * other[i];
        own[k] = sum / other[k];
        pivot -= own[k] * own[k];
    }
    for (size_t r = 0; r < d->rows; r++)
        pivot += x[r] * x[r];
    if (pivot < LEAST_PIVOT)
        return true;
    own[d->kept] = sqrt(pivot);
    d->basis[d->kept++] = c;
    return false;
}

/* Say which of the kept columns the column is made of: the coefficients, in deviations, solve L' b = its factors. */
static void say_dependent(dependence *d, size_t c)
{
    const double *own = d->factor + c * d->columns;
    char list[400] = "";
    size_t named = 0, used = 0;
    for (size_t k = d->kept; k-- > 0;) {
        double sum = own[k];
        for (size_t i = k + 1; i < d->kept; i++)
            sum -= d->factor[d->basis[i] * d->columns + k] * d->share[i];
        d->share[k] = sum / d->factor[d->basis[k] * d->columns + k];
    }
    for (size_t k = 0; k < d->kept; k++)
        if (fabs(d->share[k]) > LEAST_SHARE && ++named <= NAMED && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.80s'", named > 1 ? ", " : "",
                                     name_of(d, d->basis[k]));
    cli_say(
        &cli_fit,
        "warning: column '%s' is a linear function of %s%s: the rows fill no volume, and their density has no bound; "
        "leave a column out by --columns",
        name_of(d, c), list, named > NAMED ? " and others" : "");
}

static void look_for_dependence(dependence *d)
{
    size_t warned = 0, context = d->data->context;
    for (size_t c = 0; c < d->columns; c++) {
        load_column(d, c);
        if (depends(d, c) && c >= context && ++warned <= SHOWN)
            say_dependent(d, c);
    }
    if (warned > SHOWN)
        cli_say(&cli_fit, "warning: so are %zu more columns", warned - SHOWN);
}

int fit_warn_dependent(const fit_data *data)
{
    size_t columns = data->dim + data->context,
           most = 4 * columns > DEPENDENT_ROWS ? 4 * columns : (size_t)DEPENDENT_ROWS;
    dependence d = { .data = data, .columns = columns, .rows = data->train.rows < most ? data->train.rows : most };
    if (columns < 2 || columns > DEPENDENT_COLUMNS || d.rows < columns + 2) /* few rows always lie in a plane */
        return CLI_OK;
    d.value = calloc(columns * d.rows, sizeof *d.value);
    d.factor = calloc(columns * columns, sizeof *d.factor);
    d.basis = calloc(columns, sizeof *d.basis);
    d.share = calloc(columns, sizeof *d.share);
    bool memory = d.value && d.factor && d.basis && d.share;
    if (memory)
        look_for_dependence(&d);
    free(d.value);
    free(d.factor);
    free(d.basis);
    free(d.share);
    return memory ? CLI_OK : cli_fail(&cli_fit, CLI_FAILED, "out of memory");
}
