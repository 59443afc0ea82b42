/* density_plot.c - `hollow fit --plot`: curves of training; data, density and samples in two dimensions; pairs of columns otherwise. */
#include <math.h>
#include <stdlib.h>

#include "fit.h"

enum { POINTS = 2000, GRID = 121, PAIRS = 4, PANEL = 420 };

void fit_add_point(cli_curves *curves, const hl_density_progress *p)
{
    bool likelihood = p->phase == HL_FIT_LIKELIHOOD;
    const double point[CLI_CURVES] = { (double)p->iteration, likelihood ? p->loss : NAN,
                                       p->validated ? p->validation : NAN, p->evaluations, likelihood };
    cli_curves_add(curves, point);
}

/* ---- curves ---- */

/* Column `which` of the points that have it, as a block of data called `name`. */
static void print_curve(FILE *g, const char *name, const cli_curves *c, int which)
{
    fprintf(g, "$%s << E\n", name);
    for (size_t i = 0; i < c->count; i++)
        if (isfinite(c->point[i][which]) && (which != 3 || c->point[i][4] != 0))
            fprintf(g, "%g %.9g\n", c->point[i][0], c->point[i][which]);
    fprintf(g, "0 nan\nE\n");
}

/* The curve of -log p goes from its lowest value up to a few times its spread at the end: the beginning may be far above. */
static void print_range(FILE *g, const cli_curves *c)
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

static int plot_curves(const char *directory, const cli_curves *c)
{
    cli_file file;
    int result = cli_plot_start(&cli_fit, &file, directory, "training.png", 900, 700);
    if (result != CLI_OK)
        return result;
    FILE *g = file.stream;
    print_curve(g, "loss", c, 1);
    print_curve(g, "validation", c, 2);
    print_curve(g, "evaluations", c, 3);
    fprintf(g, "set datafile missing 'nan'\n"
               "set multiplot layout 2,1\n"
               "set lmargin 10\n"
               "set rmargin 3\n"
               "set key top right\n"
               "set ylabel '−log p, nats per row'\n"
               "set xlabel 'iteration'\n"
               "set title 'Mean −log p'\n");
    print_range(g, c);
    fprintf(g, "set xrange [0:%g]\n", c->count ? c->point[c->count - 1][0] : 1.0);
    fprintf(g, "plot $loss with lines linewidth 1 linecolor rgb '#a9c4ee' title 'training batch', "
               "$validation with linespoints linewidth 2.5 pointtype 7 pointsize 0.8 linecolor rgb '" CLI_ORANGE
               "' title 'validation, adaptive solver'\n"
               "set autoscale y\n"
               "set yrange [0:*]\n"
               "set offsets graph 0, 0, graph 0.1, 0\n"
               "set ylabel 'evaluations per row'\n"
               "set title 'Evaluations of f per iteration of likelihood training, forward'\n"
               "plot $evaluations with lines linewidth 2 linecolor rgb '" CLI_BLUE "' notitle\nunset multiplot\n");
    return cli_plot_finish(&cli_fit, &file, directory, "training.png");
}

/* ---- data and samples ---- */

/* What the pictures are made of: the data, as many samples, and the columns' statistics. */
typedef struct sheet {
    const fit_job *job;
    hl_density *model;
    size_t dim, rows; /* rows of the data */
    double *data, *samples;
    hl_column_stats *stats; /* of all columns of the table */
} sheet;

/* Five deviations, or what there is of them, and a margin. */
static void find_range(const sheet *s, size_t column, double *low, double *high)
{
    const hl_column_stats *c = &s->stats[s->job->index[column]];
    *low = fmax(c->min, c->mean - 5 * c->deviation);
    *high = fmin(c->max, c->mean + 5 * c->deviation);
    double margin = 0.08 * (*high - *low);
    *low -= margin;
    *high += margin;
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

static int plot_plane(const sheet *s)
{
    const char *directory = s->job->set->plot;
    cli_file file;
    double range[2][2];
    int result = cli_plot_start(&cli_fit, &file, directory, "density.png", 3 * PANEL, PANEL + 40);
    if (result != CLI_OK)
        return result;
    FILE *g = file.stream;
    for (size_t i = 0; i < 2; i++)
        find_range(s, i, &range[i][0], &range[i][1]);
    cli_plot_points(g, "data", s->rows, 2, 2, POINTS, s->data);
    cli_plot_points(g, "samples", POINTS, 2, 2, POINTS, s->samples);
    print_density(g, s->model, range);
    cli_plot_label(g, "xlabel", s->job->names[0]);
    cli_plot_label(g, "ylabel", s->job->names[1]);
    fprintf(g,
            "set multiplot layout 1,3\nset size square\nset xrange [%g:%g]\nset yrange [%g:%g]\nunset key\nunset "
            "colorbox\n" CLI_HEAT "set title 'data'\n"
            "plot $data with points pointtype 7 pointsize 0.25 linecolor rgb '" CLI_GREY "'\n"
            "set title 'density of the model'\nplot $density with image\n"
            "set title 'samples of the model'\n"
            "plot $samples with points pointtype 7 pointsize 0.25 linecolor rgb '" CLI_BLUE "'\nunset multiplot\n",
            range[0][0], range[0][1], range[1][0], range[1][1]);
    return cli_plot_finish(&cli_fit, &file, directory, "density.png");
}

/* Ranges of a panel, with about four numbers on each axis. */
static void print_axes(FILE *g, double range[2][2])
{
    for (int i = 0; i < 2; i++) {
        double rough = (range[i][1] - range[i][0]) / 4, power = pow(10, floor(log10(rough))), r = rough / power;
        double step = (r < 1.5 ? 1 : r < 3.5 ? 2 : r < 7.5 ? 5 : 10) * power;
        fprintf(g, "set %crange [%g:%g]\n", "xy"[i], range[i][0], range[i][1]);
        if (isfinite(step) && step > 0)
            fprintf(g, "set %ctics %g\n", "xy"[i], step);
    }
}

static void print_panel(FILE *g, const sheet *s, size_t r, size_t c)
{
    double range[2][2], shown = (double)(s->rows < POINTS ? s->rows : POINTS);
    find_range(s, c, &range[0][0], &range[0][1]);
    find_range(s, r, &range[1][0], &range[1][1]);
    print_axes(g, range);
    cli_plot_label(g, "xlabel", s->job->names[c]);
    cli_plot_label(g, "ylabel", r == c ? "rows" : s->job->names[r]);
    if (r == c)
        fprintf(
            g,
            "w = %g\nset yrange [0:*]\nset ytics autofreq\n"
            "plot $data using (w * floor($%zu / w) + w / 2):(1) smooth frequency with boxes linecolor rgb '" CLI_PALE
            "' fillstyle solid, $samples using (w * floor($%zu / w) + w / 2):(%g) smooth frequency "
            "with lines linewidth 2 linecolor rgb '" CLI_BLUE "'\n",
            (range[0][1] - range[0][0]) / 40, c + 1, c + 1, shown / POINTS);
    else
        fprintf(g, "plot $%s using %zu:%zu with points pointtype 7 pointsize 0.2 linecolor rgb '%s'\n",
                r > c ? "data" : "samples", c + 1, r + 1, r > c ? CLI_GREY : CLI_BLUE);
}

/* A matrix of panels: each pair of the first columns, data below and samples above the diagonal. */
static int plot_pairs(const sheet *s)
{
    const char *directory = s->job->set->plot;
    size_t n = s->dim < PAIRS ? s->dim : PAIRS;
    cli_file file;
    int result = cli_plot_start(&cli_fit, &file, directory, "pairs.png", 270 * (int)n + 60, 240 * (int)n + 80);
    if (result != CLI_OK)
        return result;
    FILE *g = file.stream;
    cli_plot_points(g, "data", s->rows, s->dim, n, POINTS, s->data);
    cli_plot_points(g, "samples", POINTS, s->dim, n, POINTS, s->samples);
    fprintf(g,
            "set multiplot layout %zu,%zu title 'lower triangle and bars: data; upper triangle and lines: samples of "
            "the model' font ',14' textcolor rgb '" CLI_INK
            "'\nunset key\nset tics font ',10'\nset margins 10,1.5,4,1\n",
            n, n);
    for (size_t r = 0; r < n; r++)
        for (size_t c = 0; c < n; c++)
            print_panel(g, s, r, c);
    fprintf(g, "unset multiplot\n");
    return cli_plot_finish(&cli_fit, &file, directory, "pairs.png");
}

int fit_plot(const fit_job *j, hl_density *model)
{
    if (!cli_have_gnuplot()) {
        cli_say(&cli_fit, "no pictures: gnuplot is not installed");
        return CLI_OK;
    }
    int result = j->curves.count ? plot_curves(j->set->plot, &j->curves) : CLI_OK; /* mixtures are not trained */
    if (result != CLI_OK || j->context)
        return result; /* samples would need a context */
    sheet s = { .job = j, .model = model, .dim = j->dim, .rows = hl_table_rows(j->table) };
    size_t most = hl_density_sample_rows(j->dim);
    s.rows = s.rows < most ? s.rows : most;
    s.data = calloc(s.rows * s.dim, sizeof *s.data);
    s.samples = calloc(POINTS * s.dim, sizeof *s.samples);
    s.stats = calloc(hl_table_columns(j->table), sizeof *s.stats);
    hl_status status = s.data && s.samples && s.stats ? hl_table_stats(j->table, s.stats) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_table_read_columns(j->table, 0, s.rows, s.dim, j->index, s.data);
    if (status == HL_OK)
        status = hl_density_sample(model, 1, 0, POINTS, NULL, s.samples);
    if (status < 0)
        result = cli_fail_library(&cli_fit, j->ctx, status);
    else
        result = s.dim == 2 ? plot_plane(&s) : plot_pairs(&s);
    free(s.data);
    free(s.samples);
    free(s.stats);
    return result;
}
