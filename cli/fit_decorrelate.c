/* fit_decorrelate.c - `hollow fit`: rows y of standardised columns become u with y = L u, L being Cholesky's factor of the
 * correlations.
 *
 * A flow has to flatten a correlation of 0.999 by moving everything, which costs it hundreds of steps and digits; L does it at
 * once. Columns are left alone where they are hardly correlated, so that nothing is gained, and where u has heavier tails than y:
 * there the dependence is not linear, and what is left of it is harder to learn. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"

enum { MOST_COLUMNS = 512 };
/* Of a column's variance, what the ones before it leave: the least that is left alone, and the least that L takes out. */
static const double WEAK = 0.5, LEAST = 1e-10;
/* The fourth moment of half of the columns of u may be so much larger than that of y, or be about that of the normal, 3. */
static const double HEAVIER = 1.2, NORMAL = 3.5;

/* Lower triangle of the correlations, to `c`. */
static void correlations(const fit_rows *rows, size_t dim, double *mean, double *c)
{
    double n = (double)rows->rows;
    for (size_t r = 0; r < rows->rows; r++)
        for (size_t i = 0; i < dim; i++)
            mean[i] += rows->x[r * dim + i] / n;
    for (size_t r = 0; r < rows->rows; r++)
        for (size_t i = 0; i < dim; i++) {
            double y = rows->x[r * dim + i] - mean[i];
            for (size_t j = 0; j <= i; j++)
                c[i * dim + j] += y * (rows->x[r * dim + j] - mean[j]) / n;
        }
}

/* In place; returns the least part of a column's variance that is its own. What a regression on i columns leaves of the rows it was
 * made from is too little by i in the number of rows, and new rows' u_i would be too large: column i of L makes up for it. */
static double factorise(size_t rows, size_t dim, double *c)
{
    double least = 1;
    for (size_t i = 0; i < dim; i++)
        for (size_t j = 0; j <= i; j++) {
            double variance = c[i * dim + i], sum = c[i * dim + j];
            for (size_t k = 0; k < j; k++)
                sum -= c[i * dim + k] * c[j * dim + k];
            if (j == i)
                least = fmin(least, sum / variance);
            c[i * dim + j] = j < i ? sum / c[j * dim + j] : sqrt(fmax(sum, LEAST));
        }
    for (size_t i = 0; i < dim; i++)
        for (size_t j = 0; j <= i; j++)
            c[i * dim + j] *= sqrt((double)rows / (double)(rows - j));
    return least;
}

static void solve_rows(const double *l, size_t dim, fit_rows *rows)
{
    for (size_t r = 0; r < rows->rows; r++) {
        double *u = rows->x + r * dim;
        for (size_t i = 0; i < dim; i++) {
            for (size_t j = 0; j < i; j++)
                u[i] -= l[i * dim + j] * u[j];
            u[i] /= l[i * dim + i];
        }
    }
}

/* What half of the columns have at most, of their fourth moments, in units of the square of the second. */
static double tails(const fit_rows *rows, size_t dim, double *moment)
{
    for (size_t i = 0; i < dim; i++) {
        double second = 0, fourth = 0, n = (double)rows->rows;
        for (size_t r = 0; r < rows->rows; r++) {
            double square = rows->x[r * dim + i] * rows->x[r * dim + i];
            second += square / n;
            fourth += square * square / n;
        }
        moment[i] = fourth / (second * second);
    }
    cli_sort(moment, dim);
    return moment[(dim - 1) / 2];
}

/* The rows become u; back to y if that is no gain. Returns whether they are u. */
static bool solve_if_linear(bool always, double *work, fit_data *data)
{
    size_t dim = data->dim, bytes = data->train.rows * dim * sizeof(double);
    double *keep = malloc(bytes), before = tails(&data->train, dim, work);
    if (!keep)
        return false;
    memcpy(keep, data->train.x, bytes);
    solve_rows(data->factor, dim, &data->train);
    bool good = always || tails(&data->train, dim, work) <= fmax(HEAVIER * before, NORMAL);
    if (good)
        solve_rows(data->factor, dim, &data->valid);
    else
        memcpy(data->train.x, keep, bytes);
    free(keep);
    return good;
}

int fit_decorrelate(const fit_settings *set, fit_data *data)
{
    size_t dim = data->dim;
    bool made = (!set->kind || strcmp(set->kind, "cnf") == 0) &&
                (!set->conditioner || strcmp(set->conditioner, "made") == 0); /* others want columns as they are */
    bool asked = set->decorrelate && strcmp(set->decorrelate, "on") == 0;
    if (asked && data->train.rows < 2 * dim)
        return cli_fail(&cli_fit, CLI_WRONG,
                        "--decorrelate on: %zu rows for %zu columns; at least two for each are needed",
                        data->train.rows, dim);
    if (dim < 2 || data->train.rows < 2 * dim || (set->decorrelate && !asked) ||
        (!asked && (!made || dim > MOST_COLUMNS)))
        return CLI_OK;
    double *work = calloc(dim, sizeof *work);
    data->factor = calloc(dim * dim, sizeof *data->factor);
    bool memory = work && data->factor, good = false;
    if (memory) {
        correlations(&data->train, dim, work, data->factor);
        double least = factorise(data->train.rows, dim, data->factor);
        good = (asked || least < WEAK) && solve_if_linear(asked, work, data);
    }
    free(work);
    if (!good) {
        free(data->factor);
        data->factor = NULL;
    }
    return memory ? CLI_OK : cli_fail(&cli_fit, CLI_FAILED, "out of memory");
}

double fit_value(const fit_data *data, size_t row, size_t column)
{
    const double *u = data->train.x + row * data->dim;
    double y = data->factor ? 0 : u[column];
    for (size_t j = 0; data->factor && j <= column; j++)
        y += data->factor[column * data->dim + j] * u[j];
    return y;
}
