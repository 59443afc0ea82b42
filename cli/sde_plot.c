/* sde_plot.c - pictures of `hollow sde fit`: curves of training; drift and diffusion as curves in one dimension and as fields in
 * two; observations, density and simulations at some times. */
#include <math.h>
#include <stdlib.h>

#include "sde.h"

enum { CURVE = 201, FIELD = 61, ARROWS = 17, SHOWN_TIMES = 5, SHOWN_COLUMNS = 3, POINTS = 1500 };
static const cli_command *const me = &sde_command_fit;

static int open_plot(cli_file *file, const char *directory, const char *name, int width, int height)
{
    int result = cli_plot_start(me, file, directory, name, width, height);
    if (result == CLI_OK)
        fprintf(file->stream, "unset key\n");
    return result;
}

/* ---- training ---- */

/* Means over stretches of iterations, as a block of data called `name`. */
static void print_curve(FILE *g, const char *name, const cli_curves *c, int which)
{
    size_t stretch = c->count / 400 + 1;
    fprintf(g, "$%s << E\n", name);
    for (size_t i = 0; i + stretch <= c->count; i += stretch) {
        double mean = 0;
        for (size_t k = i; k < i + stretch; k++)
            mean += c->point[k][which] / (double)stretch;
        fprintf(g, "%g %.9g\n", c->point[i + stretch - 1][0], mean);
    }
    fprintf(g, "E\n");
}

static int plot_training(const char *directory, bool matching, const cli_curves *c)
{
    cli_file file;
    int result = c->count < 2 ? CLI_OK : open_plot(&file, directory, "training.png", 900, 700);
    if (result != CLI_OK || c->count < 2)
        return result;
    FILE *g = file.stream;
    bool loss = isfinite(c->point[c->count - 1][1]); /* a regression has none */
    print_curve(g, "loss", c, 1);
    print_curve(g, "nll", c, 2);
    fprintf(g, "set multiplot layout %d,1\nset lmargin 10\nset rmargin 3\nset xrange [%g:%g]\n", loss ? 2 : 1,
            c->point[0][0], c->point[c->count - 1][0]);
    if (loss)
        fprintf(g,
                "set title '%s'\nset xlabel 'iteration'\nset ylabel '%s'\n%s"
                "plot $loss with lines linewidth 2 linecolor rgb '" CLI_ORANGE "'\nunset logscale\n",
                matching ? "Mean penalty of the Fokker–Planck residual, standardised"
                         : "Mean negative log-likelihood of a step, standardised, without constants",
                matching ? "penalty" : "nats a step", matching ? "set logscale y\n" : "");
    fprintf(g, "set title 'Mean −log p(t, x) of the observations'\nset xlabel 'iteration'\nset ylabel 'nats'\n"
               "plot $nll with lines linewidth 2 linecolor rgb '" CLI_BLUE "'\nunset multiplot\n");
    return cli_plot_finish(me, &file, directory, "training.png");
}

/* ---- drift and diffusion ---- */

/* Where the observations are in a column. */
static int find_range(const hl_observations *rows, size_t column, double range[2])
{
    return cli_find_range(me, rows->rows, rows->dim, rows->x + column, range);
}

/* Three times, or one if nothing depends on them. */
static size_t pick_times(const hl_sde *sde, double times[3])
{
    double first, last;
    hl_sde_get_scale(sde, &first, &last, NULL, NULL);
    times[0] = first;
    times[1] = 0.5 * (first + last);
    times[2] = last;
    return hl_sde_describe(sde).time ? 3 : 1;
}

/* f, g and their bands along the first column at time t; NaN where there are no data. */
static void print_curves(FILE *to, size_t number, hl_sde *sde, double time, double low, double high)
{
    double x[CURVE], t[CURVE], value[6][CURVE];
    int inside[CURVE];
    bool bands = hl_sde_replicates(sde) > 0;
    for (size_t i = 0; i < CURVE; i++) {
        x[i] = low + (high - low) * (double)i / (CURVE - 1);
        t[i] = time;
        inside[i] = 1;
    }
    hl_sde_eval(sde, CURVE, t, x, &(hl_sde_values){ .f = value[0], .g = value[1] });
    if (bands)
        hl_sde_bands(sde, CURVE, t, x, &(hl_sde_band_values){ value[2], value[3], value[4], value[5], inside });
    fprintf(to, "$curve%zu << E\n", number);
    for (size_t i = 0; i < CURVE; i++) {
        fprintf(to, "%.9g", x[i]);
        for (size_t k = 0; k < (bands ? 6 : 2); k++)
            inside[i] ? fprintf(to, " %.9g", value[k][i]) : fprintf(to, " nan");
        fputc('\n', to);
    }
    fprintf(to, "E\n");
}

static int plot_curves(const char *directory, hl_sde *sde, const hl_observations *rows)
{
    static const char *const colours[] = { CLI_BLUE, CLI_GREEN, CLI_ORANGE };
    double range[2], times[3];
    size_t count = pick_times(sde, times);
    cli_file file;
    int result = find_range(rows, 0, range);
    if (result == CLI_OK)
        result = open_plot(&file, directory, "equation.png", 1100, 480);
    if (result != CLI_OK)
        return result;
    FILE *to = file.stream;
    for (size_t k = 0; k < count; k++)
        print_curves(to, k, sde, times[k], range[0], range[1]);
    fprintf(
        to,
        "set datafile missing 'nan'\nset multiplot layout 1,2\nset offsets 0, 0, graph 0.05, 0\nset xrange [%g:%g]\n%s",
        range[0], range[1], count > 1 ? "set key top right\n" : "");
    cli_plot_label(to, "xlabel", rows->name[0]);
    for (int which = 0; which < 2; which++) {
        fprintf(to, "set title '%s%s'\nset ylabel '%s'\n%splot ", which ? "diffusion g" : "drift f",
                hl_sde_replicates(sde) ? ", with 90 % bands" : "",
                which ? "g, per square root of a unit of t" : "f, per unit of t", which ? "set yrange [0:*]\n" : "");
        for (size_t k = 0; k < count && hl_sde_replicates(sde); k++)
            fprintf(to,
                    "$curve%zu using 1:%d:%d with filledcurves linecolor rgb '%s' fillstyle transparent solid 0.2 "
                    "notitle, ",
                    k, 4 + 2 * which, 5 + 2 * which, colours[k]);
        for (size_t k = 0; k < count; k++)
            fprintf(to, "$curve%zu using 1:%d with lines linewidth 2.5 linecolor rgb '%s' title '%s = %.5g', ", k,
                    which + 2, colours[k], "t", times[k]);
        fprintf(to, "0 notitle linecolor rgb '" CLI_LIGHT "'\n");
    }
    fprintf(to, "unset multiplot\n");
    return cli_plot_finish(me, &file, directory, "equation.png");
}

/* Values on a grid of n x n points at the middle time. */
static void print_field(FILE *to, const char *name, hl_sde *sde, double range[2][2], size_t n)
{
    static double x[2 * FIELD * FIELD], t[FIELD * FIELD], f[2 * FIELD * FIELD], g[2 * FIELD * FIELD];
    static int inside[FIELD * FIELD];
    double times[3], longest = 0, step[2];
    pick_times(sde, times);
    for (size_t k = 0; k < n * n; k++) {
        x[2 * k] = range[0][0] + (range[0][1] - range[0][0]) * ((double)(k % n) + 0.5) / (double)n;
        x[2 * k + 1] = range[1][0] + (range[1][1] - range[1][0]) * ((double)(k / n) + 0.5) / (double)n;
        t[k] = times[1];
        inside[k] = 1;
    }
    if (hl_sde_replicates(sde))
        hl_sde_bands(sde, n * n, t, x, &(hl_sde_band_values){ .inside = inside });
    hl_sde_eval(sde, n * n, t, x, &(hl_sde_values){ .f = f, .g = g });
    for (size_t i = 0; i < 2; i++)
        step[i] = (range[i][1] - range[i][0]) / (double)n;
    for (size_t k = 0; k < n * n; k++)
        if (inside[k])
            longest = fmax(longest, hypot(f[2 * k] / step[0], f[2 * k + 1] / step[1]));
    longest = longest > 0 ? longest : 1;
    fprintf(to, "$%s << E\n", name);
    for (size_t k = 0; k < n * n; k++) {   /* long arrows are shortened, so that small ones are seen */
        double none = inside[k] ? 0 : NAN; /* nothing is drawn where there are no data */
        fprintf(to, "%.7g %.7g %.7g %.7g %.7g %.7g %.7g\n%s", x[2 * k], x[2 * k + 1], 1.2 * f[2 * k] / longest + none,
                1.2 * f[2 * k + 1] / longest + none, g[2 * k] + none, g[2 * k + 1] + none,
                hypot(f[2 * k], f[2 * k + 1]) + none, k % n == n - 1 ? "\n" : "");
    }
    fprintf(to, "E\n");
}

static int plot_field(const char *directory, hl_sde *sde, const hl_observations *rows)
{
    double range[2][2], times[3];
    char when[40] = "";
    cli_file file;
    int result = find_range(rows, 0, range[0]);
    if (result == CLI_OK)
        result = find_range(rows, 1, range[1]);
    if (result == CLI_OK)
        result = open_plot(&file, directory, "equation.png", 1500, 520);
    if (result != CLI_OK)
        return result;
    FILE *to = file.stream;
    if (pick_times(sde, times) > 1)
        snprintf(when, sizeof when, ", t = %.5g", times[1]);
    print_field(to, "arrows", sde, range, ARROWS);
    print_field(to, "field", sde, range, FIELD);
    cli_plot_points(to, "data", rows->rows, 2, 2, POINTS, rows->x);
    cli_plot_label(to, "xlabel", rows->name[0]);
    cli_plot_label(to, "ylabel", rows->name[1]);
    fprintf(to,
            "set multiplot layout 1,3\nset xrange [%g:%g]\nset yrange [%g:%g]\nset title "
            "'drift f and observations%s'\n"
            "plot $data with points pointtype 7 pointsize 0.25 linecolor rgb '" CLI_PALE "', $arrows using "
            "1:2:3:4 with vectors head size graph 0.015,20 filled linewidth 1.4 linecolor rgb "
            "'" CLI_BLUE "'\n"
            "unset grid\n" CLI_HEAT "set cbrange [0:*]\n",
            range[0][0], range[0][1], range[1][0], range[1][1], when);
    for (int i = 0; i < 2; i++)
        fprintf(to, "set title 'diffusion g%d%s'\nplot $field using 1:2:%d with image\n", i + 1, when, 5 + i);
    fprintf(to, "unset multiplot\n");
    return cli_plot_finish(me, &file, directory, "equation.png");
}

/* ---- marginals ---- */

static const char *const sources[] = { "data", "density", "simulated" };

/* Histograms: a column of panels for each time, a row for each of the first columns. */
static int plot_histograms(const char *directory, const hl_observations *rows, hl_judge *judge, const size_t *shown,
                           size_t times, double *x)
{
    size_t d = rows->dim, lines = d < SHOWN_COLUMNS ? d : SHOWN_COLUMNS;
    cli_file file;
    int result = open_plot(&file, directory, "marginals.png", 300 * (int)times + 40, 260 * (int)lines + 60);
    if (result != CLI_OK)
        return result;
    FILE *to = file.stream;
    fprintf(to,
            "set multiplot layout %zu,%zu title 'grey: observations; blue: density of the model; orange: simulations' "
            "font ',14'\nset tics font ',11'\n",
            lines, times);
    for (size_t c = 0; c < lines && result == CLI_OK; c++) {
        double range[2];
        result = find_range(rows, c, range);
        for (size_t k = 0; k < times && result == CLI_OK; k++) {
            hl_judge_group g = hl_judge_get(judge, shown[k]);
            for (int s = 0; s < 3; s++) {
                hl_judge_rows(judge, shown[k], (hl_judge_source)s, x);
                cli_plot_histogram(to, sources[s], c * times + k, g.rows, d, x + c, range);
            }
            fprintf(to, "set xrange [%g:%g]\nset yrange [0:*]\nset title 't = %.4g'\nset ylabel '%s'\n", range[0],
                    range[1], 0.5 * (g.t_first + g.t_last), k ? "" : "density");
            cli_plot_label(to, "xlabel", rows->name[c]);
            fprintf(to,
                    "plot $data%zu with boxes linecolor rgb '" CLI_PALE
                    "' fillstyle solid, $density%zu with lines linewidth "
                    "2 linecolor rgb '" CLI_BLUE "', $simulated%zu with lines linewidth 2 linecolor rgb '" CLI_ORANGE
                    "'\n",
                    c * times + k, c * times + k, c * times + k);
        }
    }
    fprintf(to, "unset multiplot\n");
    int kept = cli_plot_finish(me, &file, directory, "marginals.png");
    return result == CLI_OK ? kept : result;
}

/* Two dimensions: observations, density and simulations below each other, a column of panels for each time. */
static int plot_planes(const char *directory, const hl_observations *rows, hl_judge *judge, const size_t *shown,
                       size_t times, double *x)
{
    static const char *const titles[] = { "observations", "density", "simulations" };
    static const char *const colours[] = { CLI_GREY, CLI_BLUE, CLI_ORANGE };
    double range[2][2];
    cli_file file;
    int result = find_range(rows, 0, range[0]);
    if (result == CLI_OK)
        result = find_range(rows, 1, range[1]);
    if (result == CLI_OK)
        result = open_plot(&file, directory, "marginals.png", 280 * (int)times + 60, 860);
    if (result != CLI_OK)
        return result;
    FILE *to = file.stream;
    cli_plot_label(to, "xlabel", rows->name[0]);
    cli_plot_label(to, "ylabel", rows->name[1]);
    fprintf(to,
            "set datafile missing 'nan'\nset tics font ',10'\nset multiplot layout 3,%zu\nset xrange [%g:%g]\nset "
            "yrange [%g:%g]\n",
            times, range[0][0], range[0][1], range[1][0], range[1][1]);
    for (int s = 0; s < 3; s++)
        for (size_t k = 0; k < times; k++) {
            hl_judge_group g = hl_judge_get(judge, shown[k]);
            char name[40];
            hl_judge_rows(judge, shown[k], (hl_judge_source)s, x);
            snprintf(name, sizeof name, "%s%zu", sources[s], k);
            cli_plot_points(to, name, g.rows, 2, 2, POINTS, x);
            fprintf(to, "set title '%s, t = %.4g'\nplot $%s with points pointtype 7 pointsize 0.3 linecolor rgb '%s'\n",
                    titles[s], 0.5 * (g.t_first + g.t_last), name, colours[s]);
        }
    fprintf(to, "unset multiplot\n");
    return cli_plot_finish(me, &file, directory, "marginals.png");
}

static int plot_marginals(const char *directory, const hl_observations *rows, hl_judge *judge)
{
    size_t groups = hl_judge_groups(judge), times = groups < SHOWN_TIMES ? groups : SHOWN_TIMES, shown[SHOWN_TIMES];
    size_t most = 0;
    for (size_t k = 0; k < groups; k++)
        most = hl_judge_get(judge, k).rows > most ? hl_judge_get(judge, k).rows : most;
    for (size_t k = 0; k < times; k++)
        shown[k] = times > 1 ? k * (groups - 1) / (times - 1) : 0;
    double *x = calloc(most * rows->dim, sizeof *x);
    if (!x)
        return cli_no_memory(me);
    int result = rows->dim == 2 ? plot_planes(directory, rows, judge, shown, times, x)
                                : plot_histograms(directory, rows, judge, shown, times, x);
    free(x);
    return result;
}

int sde_plot(const char *directory, hl_sde *sde, const hl_observations *rows, hl_judge *judge, bool matching,
             const cli_curves *curves)
{
    if (!cli_have_gnuplot()) {
        cli_say(me, "no pictures: gnuplot is not installed");
        return CLI_OK;
    }
    int result = plot_training(directory, matching, curves);
    if (result == CLI_OK && rows->dim == 1)
        result = plot_curves(directory, sde, rows);
    if (result == CLI_OK && rows->dim == 2)
        result = plot_field(directory, sde, rows);
    return result == CLI_OK ? plot_marginals(directory, rows, judge) : result;
}
