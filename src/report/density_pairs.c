/* density_pairs.c - two columns of data beside the same of draws: a bounded sample that the page's script draws, a still picture of
 * one pair for pages without scripts, and matrices of correlations.
 *
 * A value is two letters, 64 a + b in 0..4094 from the lowest to the highest of its column's range; 4095 is outside of it. */
#include <math.h>
#include <string.h>

#include "report/report.h"

enum { PAIR_ROWS = 2000, PAIR_VALUES = 100000, PAIR_COLUMNS = 500, STILL_ROWS = 400, CODES = 4095, MATRIX = 48 };

/* The columns of the pair view: those of x, then of the context; at most PAIR_COLUMNS. */
static size_t pair_columns(const hl_density_report *d)
{
    size_t all = d->dim + d->context;
    return all < PAIR_COLUMNS ? all : PAIR_COLUMNS;
}

static double value_of(const hl_density_report *d, const hl_report_set *set, size_t row, size_t column)
{
    return column < d->dim ? set->x[row * d->dim + column] : set->c[row * d->context + column - d->dim];
}

static void range_of(const hl_report *r, size_t column, double *low, double *high)
{
    const hl_density_report *d = &r->density;
    if (column < d->dim) {
        *low = d->column[r->by_column[column]].low;
        *high = d->column[r->by_column[column]].high;
    } else {
        *low = INFINITY;
        *high = -INFINITY;
        for (size_t i = 0; i < r->set[0].rows; i++) {
            *low = fmin(*low, value_of(d, &r->set[0], i, column));
            *high = fmax(*high, value_of(d, &r->set[0], i, column));
        }
    }
    double margin = 0.03 * (*high - *low);
    *low -= margin;
    *high += margin;
    if (!(*high > *low) || !isfinite(*high - *low)) {
        *low = 0;
        *high = 1;
    }
}

static size_t shown_rows(const hl_report_set *set, size_t columns)
{
    size_t most = PAIR_VALUES / columns < PAIR_ROWS ? PAIR_VALUES / columns : PAIR_ROWS;
    return set->rows < most ? set->rows : most;
}

/* A set's values, row after row. */
static void put_values(const hl_report *r, const hl_report_set *set, size_t columns, const double *low,
                       const double *high, hl_page *p)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t rows = shown_rows(set, columns);
    for (size_t k = 0; k < rows; k++)
        for (size_t i = 0; i < columns; i++) {
            double at = (value_of(&r->density, set, k * set->rows / rows, i) - low[i]) / (high[i] - low[i]);
            int code = at >= 0 && at <= 1 ? (int)round(at * (CODES - 1)) : CODES;
            const char text[3] = { letters[code / 64], letters[code % 64], '\0' };
            hl_page_put(p, text);
        }
}

static void put_worst(const hl_report *r, size_t columns, hl_page *p)
{
    const hl_density_report *d = &r->density;
    hl_page_put(p, ",\"worst\":[");
    for (size_t k = 0; k < d->worst; k++) {
        size_t row = 0;
        while (r->set[0].number[row] != d->row[k].row)
            row++;
        hl_page_put(p, k ? ",[" : "[");
        for (size_t i = 0; i < columns; i++) {
            hl_page_put(p, i ? "," : "");
            hl_page_script_number(p, value_of(d, &r->set[0], row, i), 6);
        }
        hl_page_put(p, "]");
    }
    hl_page_put(p, "]");
}

static void put_numbers(size_t count, const char *name, const double *values, hl_page *p)
{
    hl_page_add(p, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        hl_page_put(p, i ? "," : "");
        hl_page_script_number(p, values[i], 9);
    }
    hl_page_put(p, "]");
}

static void put_data(const hl_report *r, const size_t start[2], const double *low, const double *high, hl_page *p)
{
    size_t columns = pair_columns(&r->density);
    hl_page_put(p, "<script type=\"application/json\" id=\"pairs-data\">{\"names\":[");
    for (size_t i = 0; i < columns; i++) {
        hl_page_put(p, i ? "," : "");
        hl_page_script_text(p, r->name[i]);
    }
    hl_page_add(p, "],\"start\":[%zu,%zu]", start[0], start[1]);
    put_numbers(columns, "low", low, p);
    put_numbers(columns, "high", high, p);
    put_worst(r, columns, p);
    hl_page_put(p, ",\"data\":\"");
    put_values(r, &r->set[0], columns, low, high, p);
    hl_page_put(p, "\",\"draws\":\"");
    put_values(r, &r->set[1], columns, low, high, p);
    hl_page_put(p, "\"}</script>\n");
}

static void still(const hl_report *r, const size_t start[2], const double *low, const double *high, hl_page *p)
{
    const hl_density_report *d = &r->density;
    hl_page_put(p, "<div class=\"still figures\">");
    for (size_t k = r->set[0].rows ? 0 : 1; k < 2; k++) {
        const hl_report_set *set = &r->set[k];
        size_t rows = set->rows < STILL_ROWS ? set->rows : STILL_ROWS;
        double x[STILL_ROWS], y[STILL_ROWS];
        for (size_t i = 0; i < rows; i++) {
            x[i] = value_of(d, set, i * set->rows / rows, start[0]);
            y[i] = value_of(d, set, i * set->rows / rows, start[1]);
        }
        hl_plot plot = { .page = p,
                         .title = k ? "samples from the model" : "data",
                         .x_label = r->name[start[0]],
                         .y_label = r->name[start[1]],
                         .low = { low[start[0]], low[start[1]] },
                         .high = { high[start[0]], high[start[1]] } };
        hl_plot_open(&plot);
        hl_plot_dots(&plot, k ? "dots m" : "dots d", rows, 1, x, y);
        hl_plot_close(&plot);
    }
    hl_page_put(p, "</div>\n");
}

/* The pair that the view begins with: the correlations that differ most, or the first two columns. */
static void first_pair(const hl_report *r, size_t columns, size_t start[2])
{
    const hl_density_report *d = &r->density;
    double most = 0;
    start[0] = 0;
    start[1] = columns > 1;
    for (size_t i = 0; i < d->dim && i < columns && r->set[0].rows; i++)
        for (size_t j = 0; j < i; j++) {
            double change = fabs(d->correlation[1][i * d->dim + j] - d->correlation[0][i * d->dim + j]);
            if (change > most) {
                most = change;
                start[0] = j;
                start[1] = i;
            }
        }
}

static void put_correlations(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    size_t index[MATRIX], n = d->dim < MATRIX ? d->dim : MATRIX;
    double most = 0;
    for (size_t i = 0; i < n; i++)
        index[i] = d->dim <= MATRIX ? i : d->column[i].column;
    for (size_t i = 0; i < d->dim * d->dim; i++)
        most = fmax(most, fabs(d->correlation[1][i] - d->correlation[0][i]));
    hl_page_put(p, "<h3>Correlations</h3>\n"
                   "<p class=\"key\"><i class=\"kp\"></i>+1<i class=\"kn\"></i>\xe2\x88\x92"
                   "1; the first column is on "
                   "the left and at the top");
    if (d->dim > MATRIX)
        hl_page_add(p, "; the %d columns with the largest differences", MATRIX);
    hl_page_put(p, "</p>\n<div class=\"figures\">");
    if (r->set[0].rows)
        hl_plot_matrix(p, "data", n, index, d->dim, d->correlation[0], NULL);
    hl_plot_matrix(p, "samples", n, index, d->dim, d->correlation[1], NULL);
    if (r->set[0].rows)
        hl_plot_matrix(p, "samples \xe2\x88\x92 data", n, index, d->dim, d->correlation[1], d->correlation[0]);
    hl_page_put(p, "</div>\n");
    if (r->set[0].rows) {
        hl_page_put(p, "<p class=\"soft\">The largest difference of two correlations is ");
        hl_page_number(p, most, 3);
        hl_page_put(p, ".</p>\n");
    }
}

void hl_density_page_pairs(const hl_report *r, hl_page *p)
{
    const hl_density_report *d = &r->density;
    double low[PAIR_COLUMNS], high[PAIR_COLUMNS];
    size_t columns = pair_columns(d), start[2];
    if (d->dim + d->context < 2)
        return;
    for (size_t i = 0; i < columns; i++)
        range_of(r, i, &low[i], &high[i]);
    first_pair(r, columns, start);
    hl_page_put(p,
                "<section id=\"pairs\"><h2>Pairs</h2>\n"
                "<div class=\"menus\"><label>horizontal<select id=\"pair-x\"></select></label><label>vertical<select "
                "id=\"pair-y\"></select></label></div>\n"
                "<div class=\"plots\"><figure><figcaption>data <small id=\"count-data\"></small></figcaption><canvas "
                "id=\"canvas-data\"></canvas></figure><figure><figcaption>samples from the model <small "
                "id=\"count-draws\"></small></figcaption><canvas id=\"canvas-draws\"></canvas></figure></div>\n");
    still(r, start, low, high, p);
    if (d->dim > 1)
        put_correlations(r, p);
    put_data(r, start, low, high, p);
    hl_page_put(p, "</section>\n");
}
