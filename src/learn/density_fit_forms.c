/* density_fit_forms.c - forms of the columns of a table: declared bounds, whole numbers, grids and far values.
 *
 * Bounds are the text 'a=0:1,b=0:', read when the columns have names. A column of whole numbers is dequantised, uniform noise over one step being
 * added, and its bounds move out by half a step; draws are rounded back. Other columns that repeat their values keep them, and draws are rounded
 * to the grid of these. Forms are chosen and fitted on training rows only. From here on all rows, means and deviations of the table
 * are those behind the forms, as if they were the data; reports add the mean log slope of the forms. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/density_fit.h"

/* ---- bounds ---- */

static size_t find_column(const hl_fit_table *t, const char *name, size_t length)
{
    for (size_t i = 0; i < t->dim; i++)
        if (strlen(t->column[i].name) == length && memcmp(t->column[i].name, name, length) == 0)
            return i;
    return SIZE_MAX;
}

/* A number up to `end`; nothing is `otherwise`. */
static bool read_bound(const char *text, const char *end, double otherwise, double *value)
{
    char copy[64], *rest;
    size_t length = (size_t)(end - text);
    *value = otherwise;
    if (!length)
        return true;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *value = strtod(copy, &rest);
    return !*rest && isfinite(*value);
}

/* One "name=low:high". */
static hl_status read_item(hl_fit_table *t, const char *item, const char *end)
{
    const char *equal = NULL, *colon = NULL;
    double low, high;
    for (const char *c = item; c < end; c++)
        equal = *c == '=' ? c : equal;
    for (const char *c = equal; c && c < end; c++)
        colon = *c == ':' ? c : colon;
    if (!colon || !read_bound(equal + 1, colon, -INFINITY, &low) || !read_bound(colon + 1, end, INFINITY, &high) ||
        (isinf(low) && isinf(high)))
        return hl_fail(t->ctx, HL_ERR_INVALID,
                       "bounds: '%.*s' is not of the form NAME=LOW:HIGH, in which LOW or HIGH may be omitted",
                       (int)(end - item), item);
    if (!(low < high))
        return hl_fail(t->ctx, HL_ERR_INVALID, "bounds: '%.*s': LOW must be less than HIGH", (int)(end - item), item);
    size_t column = find_column(t, item, (size_t)(equal - item));
    if (column == SIZE_MAX)
        return hl_fail(t->ctx, HL_ERR_INVALID, "bounds: '%.*s' is not one of the columns to model", (int)(equal - item),
                       item);
    if (isfinite(t->form[column].low) || isfinite(t->form[column].high))
        return hl_fail(t->ctx, HL_ERR_INVALID, "bounds: column '%.*s' is listed twice", (int)(equal - item), item);
    t->form[column].low = low;
    t->form[column].high = high;
    return HL_OK;
}

static hl_status check_inside(const hl_fit_table *t, bool validation, const hl_density_rows *rows)
{
    for (size_t i = 0; i < rows->rows * t->dim; i++) {
        const hl_column_form *f = &t->form[i % t->dim];
        hl_place place = { i / t->dim, i % t->dim, HL_NOWHERE, validation };
        if (rows->x[i] < f->low || rows->x[i] > f->high)
            return hl_fail_at(t->ctx, HL_ERR_INVALID, t->stream ? hl_at(HL_NOWHERE, HL_NOWHERE) : place,
                              "%s row %zu, column '%.60s' is %g, outside of its bounds %g:%g",
                              validation ? "validation" : "training", i / t->dim + 1, t->column[i % t->dim].name,
                              rows->x[i], f->low, f->high);
    }
    return HL_OK;
}

hl_status hl_fit_read_bounds(hl_fit_table *t, const hl_density_data *data, const char *text)
{
    size_t all = t->dim + t->context;
    hl_status status = HL_OK;
    t->form = hl_calloc(t->ctx, all, sizeof *t->form);
    if (!t->form)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < all; i++)
        t->form[i] = hl_column_form_none();
    for (const char *item = text; item && *item && status == HL_OK;) {
        const char *comma = strchr(item, ','), *end = comma ? comma : item + strlen(item);
        status = read_item(t, item, end);
        item = comma ? comma + 1 : NULL;
    }
    if (status == HL_OK && text)
        status = check_inside(t, false, &data->train);
    return status == HL_OK && text && data->valid.rows ? check_inside(t, true, &data->valid) : status;
}

/* ---- grids ---- */

hl_status hl_fit_find_grids(hl_fit_table *t)
{
    double *work = hl_calloc(t->ctx, t->train.rows, sizeof *work);
    if (!work)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < t->dim; i++) {
        hl_column_form grid = hl_column_grid(t->train.rows, t->train.x + i, t->dim, work);
        t->form[i].origin = grid.origin;
        t->form[i].least = grid.least;
        t->form[i].most = grid.most;
        t->form[i].step = grid.step > 0 ? grid.step : t->stats[i].integer ? 1 : 0;
    }
    hl_free(t->ctx, work);
    return HL_OK;
}

/* ---- forms ---- */

/* Values of a column go through its form; its log slopes are added to those of the rows. */
static void apply(const hl_column_form *form, size_t rows, double *at, size_t stride, double *slopes)
{
    for (size_t r = 0; r < rows; r++) {
        double slope;
        at[r * stride] = hl_column_form_forward(form, at[r * stride], &slope, NULL);
        if (slopes)
            slopes[r] += slope;
    }
}

static void measure(size_t rows, const double *at, size_t stride, hl_density_column *column)
{
    double n = (double)rows, mean = 0, square = 0;
    for (size_t r = 0; r < rows; r++)
        mean += at[r * stride] / n;
    for (size_t r = 0; r < rows; r++)
        square += (at[r * stride] - mean) * (at[r * stride] - mean) / (n - 1);
    column->mean = mean;
    column->deviation = square > 0 ? sqrt(square) : 1;
}

static hl_status form_column(hl_fit_table *t, size_t i)
{
    bool x = i < t->dim;
    size_t stride = x ? t->dim : t->context, at = x ? i : i - t->dim;
    double *train = (x ? t->train.x : t->train.c) + at, *valid = (x ? t->valid.x : t->valid.c) + at;
    hl_column_form given = t->form[i], *form = &t->form[i];
    double out = x && t->noise && t->noise[i] > 0 ? t->noise[i] / 2 : 0; /* context has no noise */
    hl_status status =
        hl_column_form_choose(t->ctx, t->train.rows, train, stride, given.low - out, given.high + out, form);
    form->step = given.step;
    form->origin = given.origin;
    form->least = given.least;
    form->most = given.most;
    if (status != HL_OK || form->kind == HL_FORM_NONE)
        return status;
    apply(form, t->train.rows, train, stride, NULL);
    if (t->valid.rows)
        apply(form, t->valid.rows, valid, stride, x ? t->form_slope : NULL);
    measure(t->train.rows, train, stride, &t->column[i]);
    if (t->train.w)
        hl_fit_weigh_column(&t->train, train, stride, &t->column[i]);
    return HL_OK;
}

hl_status hl_fit_apply_forms(hl_fit_table *t)
{
    size_t all = t->dim + t->context;
    bool any = false;
    t->form_slope = hl_calloc(t->ctx, t->valid.rows + 1, sizeof *t->form_slope);
    hl_status status = t->form_slope ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < all && status == HL_OK; i++) {
        status = form_column(t, i);
        any = any || !hl_column_form_is_none(&t->form[i]);
    }
    if (!any) {
        hl_free(t->ctx, t->form);
        t->form = NULL;
    }
    return status;
}

double hl_fit_table_form_scale(const hl_fit_table *t)
{
    double sum = 0, total = 0;
    for (size_t r = 0; r < t->valid.rows; r++)
        total += t->valid.w ? t->valid.w[r] : 1;
    for (size_t r = 0; t->form_slope && r < t->valid.rows; r++)
        sum -= (t->valid.w ? t->valid.w[r] : 1) * t->form_slope[r] / total;
    return sum;
}
