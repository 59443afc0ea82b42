/* fit_plot.c - `hollow fit --plot`: curves of training; data, density and samples in two dimensions; pairs of columns otherwise. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fit.h"

enum { POINTS = 2000, GRID = 121, PAIRS = 4, PANEL = 420 };

void fit_curves_add(fit_curves *curves, const double point[5])
{
    if (curves->count == curves->capacity) {
        size_t capacity = curves->capacity ? 2 * curves->capacity : 256;
        void *grown = realloc(curves->point, capacity * sizeof *curves->point);
        if (!grown)
            return; /* pictures are not worth failing for */
        curves->point = grown;
        curves->capacity = capacity;
    }
    memcpy(curves->point[curves->count++], point, sizeof *curves->point);
}

static int keep(cli_file *file, const char *directory, const char *name)
{
    return cli_plot_keep(file) == 0
               ? CLI_OK
               : cli_fail(&cli_fit, CLI_FAILED, "%s/%s: gnuplot could not draw it", directory, name);
}

static int open_plot(cli_file *file, const char *directory, const char *name, int width, int height)
{
    int error = cli_plot_open(file, directory, name, width, height);
    return error ? cli_fail(&cli_fit, CLI_WRONG, "%s/%s: %s", directory, name, strerror(error)) : CLI_OK;
}

/* ---- curves ---- */

/* Column `which` of the points that have it, as a block of data called `name`. */
static void print_curve(FILE *g, const char *name, const fit_curves *c, int which)
{
    fprintf(g, "$%s << E\n", name);
    for (size_t i = 0; i < c->count; i++)
        if (isfinite(c->point[i][which]) && (which != 3 || c->point[i][4] != 0))
            fprintf(g, "%g %.9g\n", c->point[i][0], c->point[i][which]);
    fprintf(g, "0 nan\nE\n");
}

/* The curve of -log p goes from its lowest value up to a few times its spread at the end: the beginning may be far above. */
static void print_range(FILE *g, const fit_curves *c)
{
    double low = INFINITY, last = NAN, spread = 0;
    for (size_t i = 0; i < c->count; i++)
        for (int k = 1; k <= 2; k++)
            if (isfinite(c->point[i][k])) {
                low = fmin(low, c->point[i][k]);
                last = c->point[i][k];
            }
    for (size_t i = c->count / 2; i < c->count; i++)
        if (isfinite(c->point[i][1]))
            spread = fmax(spread, c->point[i][1] - low);
    if (isfinite(low) && spread > 0)
        fprintf(g, "set yrange [%g:%g]\n", low - 0.1 * spread, fmax(last, low) + 2 * spread);
}

static int plot_curves(const char *directory, const fit_curves *c)
{
    cli_file file;
    int result = open_plot(&file, directory, "training.png", 900, 700);
    if (result != CLI_OK)
        return result;
    FILE *g = file.stream;
    print_curve(g, "loss", c, 1);
    print_curve(g, "validation", c, 2);
    print_curve(g, "evaluations", c, 3);
    fprintf(g, "set datafile missing 'nan'\nset multiplot layout 2,1\nset grid linecolor rgb '#dddddd'\n"
               "set lmargin 10\nset rmargin 3\nset key top right\nset ylabel 'nats a row'\n"
               "set title 'Mean -log p' font ',15'\n");
    print_range(g, c);
    fprintf(g, "set xrange [0:%g]\n", c->count ? c->point[c->count - 1][0] : 1.0);
    fprintf(g, "plot $loss with lines linewidth 1 linecolor rgb '#9ecae1' title 'training batch', "
               "$validation with linespoints linewidth 2.5 pointtype 7 pointsize 0.8 linecolor rgb '#d55e00' "
               "title 'validation, adaptive solver'\n"
               "set autoscale y\nset yrange [0:*]\nset offsets graph 0, 0, graph 0.1, 0\nset ylabel 'evaluations a "
               "row'\nset xlabel 'iteration'\n"
               "set title 'Evaluations of f in an iteration of likelihood, forward'\n"
               "plot $evaluations with lines linewidth 2 linecolor rgb '#0072b2' notitle\nunset multiplot\n");
    return keep(&file, directory, "training.png");
}

/* ---- data and samples ---- */

/* Rows from all over the data, in their own units; returns how many. */
static size_t data_rows(const fit_data *d, double *to)
{
    size_t rows = d->train.rows < POINTS ? d->train.rows : POINTS;
    for (size_t i = 0; i < rows * d->dim; i++) {
        size_t row = i / d->dim * d->train.rows / rows, column = i % d->dim;
        to[i] = d->columns[column].mean + d->columns[column].deviation * fit_value(d, row, column);
    }
    return rows;
}

static void print_points(FILE *g, const char *name, const double *x, size_t rows, size_t dim)
{
    fprintf(g, "$%s << E\n", name);
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < dim && i < PAIRS; i++)
            fprintf(g, "%.7g ", x[r * dim + i]);
        fputc('\n', g);
    }
    fprintf(g, "E\n");
}

static void find_range(const fit_data *d, size_t column, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (size_t r = 0; r < d->train.rows; r++) {
        double v = fit_value(d, r, column);
        *low = fmin(*low, fmax(v, -5));
        *high = fmax(*high, fmin(v, 5));
    }
    double margin = 0.08 * (*high - *low);
    *low = d->columns[column].mean + d->columns[column].deviation * (*low - margin);
    *high = d->columns[column].mean + d->columns[column].deviation * (*high + margin);
}

/* exp(log p) on a grid as a block of data. Also in a file, for those who want the numbers. */
static hl_status print_density(FILE *g, hl_density *model, double range[2][2])
{
    static double x[GRID * GRID * 2], logp[GRID * GRID];
    for (size_t i = 0; i < GRID * GRID; i++) {
        x[2 * i] = range[0][0] + (range[0][1] - range[0][0]) * (double)(i % GRID) / (GRID - 1);
        x[2 * i + 1] = range[1][0] + (range[1][1] - range[1][0]) * (double)(i / GRID) / (GRID - 1);
    }
    hl_status status = hl_density_logp(model, GRID * GRID, x, NULL, logp);
    fprintf(g, "$density << E\n");
    for (size_t i = 0; i < GRID * GRID; i++)
        fprintf(g, "%.6g %.6g %.6g\n%s", x[2 * i], x[2 * i + 1], isfinite(logp[i]) ? exp(logp[i]) : 0.0,
                i % GRID == GRID - 1 ? "\n" : "");
    fprintf(g, "E\n");
    return status;
}

static int plot_plane(const char *directory, hl_density *model, const fit_data *d, const double *data, size_t rows,
                      const double *samples)
{
    cli_file file;
    double range[2][2];
    int result = open_plot(&file, directory, "density.png", 3 * PANEL, PANEL + 40);
    if (result != CLI_OK)
        return result;
    FILE *g = file.stream;
    for (size_t i = 0; i < 2; i++)
        find_range(d, i, &range[i][0], &range[i][1]);
    print_points(g, "data", data, rows, 2);
    print_points(g, "samples", samples, POINTS, 2);
    print_density(g, model, range);
    cli_plot_label(g, "xlabel", d->columns[0].name);
    cli_plot_label(g, "ylabel", d->columns[1].name);
    fprintf(g,
            "set multiplot layout 1,3\nset size square\nset xrange [%g:%g]\nset yrange [%g:%g]\nunset key\nunset "
            "colorbox\n"
            "set palette defined (0 '#ffffff', 0.15 '#deebf7', 0.4 '#6baed6', 0.7 '#2171b5', 1 '#08306b')\n"
            "set title 'data' font ',15'\n"
            "plot $data with points pointtype 7 pointsize 0.25 linecolor rgb '#444444'\n"
            "set title 'density of the model'\nplot $density with image\n"
            "set title 'samples of the model'\n"
            "plot $samples with points pointtype 7 pointsize 0.25 linecolor rgb '#2171b5'\nunset multiplot\n",
            range[0][0], range[0][1], range[1][0], range[1][1]);
    return keep(&file, directory, "density.png");
}

/* A matrix of panels: each pair of the first columns, data below and samples above the diagonal. */
static int plot_pairs(const char *directory, const fit_data *d, const double *data, size_t rows, const double *samples)
{
    size_t n = d->dim < PAIRS ? d->dim : PAIRS;
    cli_file file;
    int result = open_plot(&file, directory, "pairs.png", 240 * (int)n + 40, 240 * (int)n + 60);
    if (result != CLI_OK)
        return result;
    FILE *g = file.stream;
    print_points(g, "data", data, rows, d->dim);
    print_points(g, "samples", samples, POINTS, d->dim);
    fprintf(g,
            "set multiplot layout %zu,%zu title 'below the diagonal: data; above: samples of the model' font ',14'\n"
            "unset key\nset format x ''\nset format y ''\nset margins 1,1,1,1\n",
            n, n);
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < n; c++) {
            double range[2][2];
            find_range(d, c, &range[0][0], &range[0][1]);
            find_range(d, r, &range[1][0], &range[1][1]);
            fprintf(g, "set xrange [%g:%g]\nset yrange [%g:%g]\n", range[0][0], range[0][1], range[1][0], range[1][1]);
            if (r == c) {
                cli_plot_label(g, "title", d->columns[c].name);
                fprintf(g,
                        "w = %g\nset yrange [0:*]\n"
                        "plot $data using (w * floor($%zu / w) + w / 2):(1) smooth frequency with boxes linecolor rgb "
                        "'#bbbbbb' fillstyle solid, $samples using (w * floor($%zu / w) + w / 2):(%g) smooth frequency "
                        "with lines linewidth 2 linecolor rgb '#2171b5'\nunset title\n",
                        (range[0][1] - range[0][0]) / 40, c + 1, c + 1, (double)rows / POINTS);
            } else
                fprintf(g, "plot $%s using %zu:%zu with points pointtype 7 pointsize 0.2 linecolor rgb '%s'\n",
                        r > c ? "data" : "samples", c + 1, r + 1, r > c ? "#444444" : "#2171b5");
        }
    fprintf(g, "unset multiplot\n");
    return keep(&file, directory, "pairs.png");
}

int fit_plot(const char *directory, hl_context *ctx, hl_density *model, const fit_data *d, const fit_curves *curves)
{
    if (!cli_have_gnuplot()) {
        cli_say(&cli_fit, "no pictures: gnuplot is not there");
        return CLI_OK;
    }
    int result = plot_curves(directory, curves);
    if (result != CLI_OK || d->context)
        return result; /* samples would need a context */
    double *data = calloc(POINTS * d->dim, sizeof *data), *samples = calloc(POINTS * d->dim, sizeof *samples);
    if (!data || !samples)
        result = cli_fail(&cli_fit, CLI_FAILED, "out of memory");
    if (result == CLI_OK) {
        size_t rows = data_rows(d, data);
        hl_status status = hl_density_sample(model, 1, 0, POINTS, NULL, samples);
        if (status < 0)
            result = cli_fail_library(&cli_fit, ctx, status);
        else
            result = d->dim == 2 ? plot_plane(directory, model, d, data, rows, samples)
                                 : plot_pairs(directory, d, data, rows, samples);
    }
    free(data);
    free(samples);
    return result;
}
