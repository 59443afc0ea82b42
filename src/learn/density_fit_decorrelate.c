/* density_fit_decorrelate.c - rows y of standardised columns become u with y = L u, L being Cholesky's factor of the correlations.
 *
 * A flow has to flatten a correlation of 0.999 by moving everything, which costs it hundreds of steps and digits; L does it at
 * once. Columns are left alone where they are hardly correlated, so that nothing is gained, and where u has heavier tails than y:
 * there the dependence is not linear, and what is left of it is harder to learn. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "learn/density_fit.h"

enum { MOST_COLUMNS = 512 };
/* Of a column's variance, what the ones before it leave: the least that is left alone, and the least that L takes out. */
static const double WEAK = 0.5, LEAST = 1e-10;
/* The fourth moment of half of the columns of u may be so much larger than that of y, or be about that of the normal, 3. */
static const double HEAVIER = 1.2, NORMAL = 3.5;

/* Lower triangle of the correlations, to `c`. */
static void correlations(const hl_fit_rows *rows, size_t dim, double *mean, double *c)
{
    double n = (double)rows->rows;
    for (size_t r = 0; r < rows->rows; r++)
        for (size_t i = 0; i < dim; i++)
            mean[i] += (rows->w ? rows->w[r] : 1) * rows->x[r * dim + i] / n;
    for (size_t r = 0; r < rows->rows; r++)
        for (size_t i = 0; i < dim; i++) {
            double y = (rows->w ? rows->w[r] : 1) * (rows->x[r * dim + i] - mean[i]);
            for (size_t j = 0; j <= i; j++)
                c[i * dim + j] += y * (rows->x[r * dim + j] - mean[j]) / n;
        }
}

/* In place; returns the least part of a column's variance that is its own. What a regression on i columns leaves of the rows it was
 * made from is too little by i in the number of rows, and new rows' u_i would be too large: column i of L makes up for it. */
static double factorise(size_t rows, size_t dim, double *c)
{
    double least = hl_cholesky(dim, c, LEAST);
    for (size_t i = 0; i < dim; i++)
        for (size_t j = 0; j <= i; j++)
            c[i * dim + j] *= sqrt((double)rows / (double)(rows - j));
    return least;
}

static void solve_rows(const double *l, size_t dim, hl_fit_rows *rows)
{
    for (size_t r = 0; r < rows->rows; r++)
        hl_solve_lower(dim, l, dim, rows->x + r * dim);
}

/* What half of the columns have at most, of their fourth moments, in units of the square of the second. */
static double tails(const hl_fit_rows *rows, size_t dim, double *moment)
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
    hl_sort(moment, dim);
    return moment[(dim - 1) / 2];
}

/* The rows become u; back to y, unless always, if that is no gain: then *good is false. */
static hl_status solve_if_linear(hl_fit_table *t, bool always, double *work, bool *good)
{
    size_t bytes = t->train.rows * t->dim * sizeof(double);
    double *keep = hl_alloc(t->ctx, bytes), before = tails(&t->train, t->dim, work);
    if (!keep)
        return HL_ERR_NOMEM;
    memcpy(keep, t->train.x, bytes);
    solve_rows(t->factor, t->dim, &t->train);
    *good = always || tails(&t->train, t->dim, work) <= fmax(HEAVIER * before, NORMAL);
    if (*good)
        solve_rows(t->factor, t->dim, &t->valid);
    else
        memcpy(t->train.x, keep, bytes);
    hl_free(t->ctx, keep);
    return HL_OK;
}

/* always: also weak correlations, whatever the tails. Trials do not overrule the tails: on MiniBooNE decorrelated columns led by 9 nats after
 * 30 iterations and ended 3 behind. */
static hl_status decorrelate(hl_fit_table *t, bool always)
{
    double *work = hl_calloc(t->ctx, t->dim, sizeof *work);
    bool good = false;
    t->factor = hl_calloc(t->ctx, hl_size_mul(t->dim, t->dim), sizeof *t->factor);
    hl_status status = work && t->factor ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        correlations(&t->train, t->dim, work, t->factor);
        double least = factorise(t->train.rows, t->dim, t->factor);
        if (always || least < WEAK)
            status = solve_if_linear(t, always, work, &good);
    }
    hl_free(t->ctx, work);
    if (!good) {
        hl_free(t->ctx, t->factor);
        t->factor = NULL;
    }
    return status;
}

hl_status hl_fit_decorrelate(hl_fit_table *t, const hl_settings *settings, const hl_fit_variant *variant)
{
    const char *kind = hl_settings_text(settings, "model"), *conditioner = hl_settings_text(settings, "conditioner");
    const char *wish = hl_settings_text(settings, "decorrelate");
    bool dense = (!kind || strcmp(kind, "cnf") == 0) && hl_fit_is_dense(conditioner);
    bool asked = wish && strcmp(wish, "on") == 0, enough = t->train.rows >= 2 * t->dim;
    if (asked && !enough)
        return hl_fail(t->ctx, HL_ERR_INVALID,
                       "decorrelate=on: %zu rows for %zu columns; at least two rows per column are needed",
                       t->train.rows, t->dim);
    if (t->dim < 2 || !enough || (wish && !asked) || (!asked && (!dense || t->dim > MOST_COLUMNS)))
        return HL_OK;
    if (!asked && !variant->by_rule && !variant->decorrelated)
        return HL_OK;
    return decorrelate(t, asked);
}
