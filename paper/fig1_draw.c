/* fig1_draw.c - the pictures of fig1, as commands for gnuplot. Places are in pixels from the upper left corner. */
#include <math.h>
#include <stdlib.h>

#include "paper.h"

enum { WIDTH = FIG1_WIDTH, HEIGHT = FIG1_JACOBIAN_HEIGHT };

/* ---- the Jacobian ---- */

/* A matrix as a datablock; exact zeros are left out, so that they show the panel's ground. */
static void data(FILE *g, const char *name, const double *m, size_t rows, size_t columns)
{
    fprintf(g, "$%s << EOD\n", name);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            double v = m[r * columns + c];
            if (v != 0)
                fprintf(g, "%zu %zu %.6g\n", c, r, v);
        }
    fprintf(g, "EOD\n");
}

static void label(FILE *g, double x, double y, int size, const char *colour, const char *align, const char *text)
{
    fprintf(g, "set label \"%s\" at screen %.5f, screen %.5f %s font ',%d' textcolor rgb '%s' front\n", text, x / WIDTH,
            1 - y / HEIGHT, align, size, colour);
}

/* Where the next plot goes. */
static void place(FILE *g, double x, double y, double w, double h)
{
    fprintf(g,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\nset tmargin at screen %.5f\nset bmargin at screen "
            "%.5f\n",
            x / WIDTH, (x + w) / WIDTH, 1 - y / HEIGHT, 1 - (y + h) / HEIGHT);
}

/* One heat map with its name above and what it is below. Labels set before are drawn with it. */
static void panel(FILE *g, const char *block, size_t rows, size_t columns, double x, double y, double cell,
                  const char *name, const char *what)
{
    double w = (double)columns * cell, h = (double)rows * cell;
    label(g, x + w / 2, y - 17, 16, CLI_INK, "center", name);
    label(g, x + w / 2, y + h + 19, 12, CLI_SOFT, "center", what);
    place(g, x, y, w, h);
    fprintf(g, "set xrange [-0.5:%zu.5]\nset yrange [%zu.5:-0.5]\n", columns - 1, rows - 1);
    fprintf(
        g,
        "set object 1 rectangle from graph 0,0 to graph 1,1 behind fillcolor rgb '#e4e4e4' fillstyle solid noborder\n");
    fprintf(g,
            "plot $%s using 1:2:(0.5):(0.5):3 with boxxyerror fillstyle solid noborder linecolor palette "
            "notitle\nunset label\nunset object 1\n",
            block);
}

static double largest(const double *m, size_t count, double least)
{
    for (size_t i = 0; i < count; i++)
        least = fmax(least, fabs(m[i]));
    return least;
}

/* The palette from -range to range, as a bar with three marks. */
static void bar(FILE *g, double range, double x, double y, double h)
{
    char text[32];
    snprintf(text, sizeof text, "%.2g", range);
    label(g, x + 34, y + 6, 12, CLI_INK, "left", text);
    label(g, x + 34, y + h / 2, 12, CLI_INK, "left", "0");
    snprintf(text, sizeof text, "−%.2g", range);
    label(g, x + 34, y + h - 6, 12, CLI_INK, "left", text);
    place(g, x, y, 24, h);
    fprintf(g, "set xrange [-0.5:1.5]\nset yrange [-0.5:255.5]\nset cbrange [0:255]\n"
               "plot $bar matrix using 1:2:3 with image notitle\nunset label\n");
}

/* Features in two halves, forward then backward, so that their triangles show; [rows, columns] of m is seen as
 * [.., dim, FIG1_FEATURES, ..] either in its columns or in its rows. */
static void by_direction(const double *m, size_t dim, bool columns, double *out)
{
    size_t n = dim * FIG1_FEATURES;
    for (size_t r = 0; r < (columns ? dim : n); r++)
        for (size_t c = 0; c < (columns ? n : dim); c++) {
            size_t k = columns ? c : r, to = k % FIG1_FEATURES * dim + k / FIG1_FEATURES;
            out[columns ? r * n + to : to * dim + c] = m[columns ? r * n + c : r * dim + c];
        }
}

static void jacobian_data(FILE *g, const fig1_jacobian *j, double *work)
{
    size_t d = j->dim, n = d * FIG1_FEATURES;
    data(g, "J", j->total, d, d);
    data(g, "D", j->direct, d, d);
    data(g, "H", j->hollow, d, d);
    by_direction(j->by_h, d, true, work);
    data(g, "A", work, d, n);
    by_direction(j->h_by_x, d, false, work);
    data(g, "B", work, n, d);
    fprintf(g, "$bar << EOD\n");
    for (int i = 0; i < 256; i++)
        fprintf(g, "%d %d\n", i, i);
    fprintf(g, "EOD\n");
}

int fig1_draw_jacobian(FILE *g, const fig1_jacobian *j)
{
    size_t d = j->dim, n = d * FIG1_FEATURES;
    const double left = 70, side = 320, gap = 110, y1 = 150, y2 = 590, low = 232, gap2 = 110;
    double cell = side / (double)d, cell2 = low / (double)d, high = cell2 * (double)n, middle = y2 + high / 2;
    double range = largest(j->total, d * d, 1e-300);
    double range2 = largest(j->h_by_x, n * d, largest(j->by_h, d * n, largest(j->hollow, d * d, 1e-300)));
    double *work = calloc(d, n * sizeof *work);
    char text[160];
    if (!work)
        return -1;
    jacobian_data(g, j, work);
    free(work);
    fprintf(g, "set multiplot\nset datafile missing 'NaN'\nunset tics\nunset key\nunset colorbox\nunset grid\n"
               "set border 15 linewidth 0.8 linecolor rgb '" CLI_LIGHT "'\n"
               "set palette defined (-1 '#053061', -0.55 '#2166ac', -0.25 '#67a9cf', -0.1 '#b5d7e8', 0 '#ffffff', 0.1 "
               "'#fbd0b9', "
               "0.25 '#ef8a62', 0.55 '#b2182b', 1 '#67001f')\n");
    label(g, left, 46, 20, CLI_INK, "left", "The Jacobian of a hollow network is a diagonal plus a hollow matrix");
    snprintf(text, sizeof text,
             "{/:Italic d} = %zu dimensions, {/:Italic d_h} = %d features each. Grey entries are exactly zero.", d,
             FIG1_FEATURES);
    label(g, left, 84, 13, CLI_SOFT, "left", text);

    double x2 = left + side + gap, x3 = x2 + side + gap;
    fprintf(g, "set cbrange [%.9g:%.9g]\n", -range, range);
    label(g, x2 - gap / 2, y1 + side / 2, 30, CLI_INK, "center", "=");
    label(g, x3 - gap / 2, y1 + side / 2, 30, CLI_INK, "center", "+");
    panel(g, "J", d, d, left, y1, cell, "d{/:Italic f} / d{/:Italic x}", "full Jacobian: {/:Italic d} reverse passes");
    panel(g, "D", d, d, x2, y1, cell, "∂{/:Italic τ} / ∂{/:Italic x}", "diagonal: {/:Italic D f}, in one pass");
    panel(g, "H", d, d, x3, y1, cell, "∂{/:Italic τ}/∂{/:Italic h} · ∂{/:Italic h}/∂{/:Italic x}",
          "hollow part: not needed for {/:Italic D f}");
    bar(g, range, 1302, y1, side);

    x2 = left + low + gap2;
    x3 = x2 + cell2 * (double)n + gap2 - 10;
    fprintf(g, "set cbrange [%.9g:%.9g]\n", -range2, range2);
    label(g, x2 - gap2 / 2, middle, 30, CLI_INK, "center", "=");
    label(g, x3 - gap2 / 2 + 5, middle, 30, CLI_INK, "center", "×");
    panel(g, "H", d, d, left, middle - low / 2, cell2, "hollow", "its diagonal is zero:");
    panel(g, "A", d, n, x2, middle - low / 2, cell2, "∂{/:Italic τ} / ∂{/:Italic h}",
          "{/:Italic f_i} depends on the two features in {/:Italic h_i},");
    panel(g, "B", n, d, x3, y2, cell2, "∂{/:Italic h} / ∂{/:Italic x}",
          "which depend on {/:Italic x_j}, {/:Italic j} < {/:Italic i} or {/:Italic j} > {/:Italic i}");
    bar(g, range2, 1302, y2, high);
    fprintf(g, "unset multiplot\n");
    return 0;
}

/* ---- the times ---- */

static void series(FILE *g, const char *name, const fig1_time *t, const double *seconds)
{
    fprintf(g, "$%s << EOD\n", name);
    for (size_t i = 0; i < t->count; i++)
        fprintf(g, "%zu %.6g\n", t->dim[i], 1e6 * seconds[i]);
    fprintf(g, "EOD\n");
}

int fig1_draw_time(FILE *g, const fig1_time *t)
{
    size_t last = t->count - 1;
    double d = (double)t->dim[last], f = 1e6 * t->f[last], fd = 1e6 * t->fd[last], brute = 1e6 * t->brute[last];
    series(g, "f", t, t->f);
    series(g, "fd", t, t->fd);
    series(g, "brute", t, t->brute);
    fprintf(g,
            "unset key\nset logscale xy\n"
            "set lmargin at screen 0.095\nset rmargin at screen 0.815\nset tmargin at screen 0.855\nset bmargin at "
            "screen 0.115\n"
            "set xtics (2, 4, 8, 16, 32, 64, 128, 256, 512) font ',14'\n"
            "set ytics ('0.1 µs' 0.1, '1 µs' 1, '10 µs' 10, '100 µs' 100, '1 ms' 1e3, '10 ms' 1e4, '100 ms' 1e5, '1 s' "
            "1e6, "
            "'10 s' 1e7) font ',14'\n"
            "set xlabel 'dimension {/:Italic d}' offset 0,-0.3\n"
            "set ylabel 'time per row' offset -1.2\nset xrange [1.8:%g]\nset yrange [%g:%g]\n",
            d * 1.06, 0.5e6 * fmin(t->f[0], t->f[1]), 2 * brute);
    fprintf(g,
            "set label 'The exact {/:Italic D f} at about the price of {/:Italic f}, in any dimension' at screen 0.05, "
            "screen 0.95 "
            "font ',20' textcolor rgb '" CLI_INK "'\n"
            "set label 'The diagonal of the Jacobian, one thread, float32: %d features, conditioner networks 2 × %d, "
            "transformer "
            "2 × %d units' at screen 0.05, screen 0.905 font ',13' textcolor rgb '" CLI_SOFT "'\n",
            FIG1_TIME_FEATURES, FIG1_TIME_HIDDEN, FIG1_TIME_UNITS);
    fprintf(g,
            "set label \"brute force\\n{/*0.85 {/:Italic d} reverse sweeps,}\\n{/*0.85 %.0f times {/:Italic f}}\" at "
            "%g,%g left offset "
            "1.5,0.6 font ',15' textcolor rgb '" CLI_ORANGE "'\n",
            brute / f, d, brute);
    fprintf(g,
            "set label \"{/:Italic f} and exact {/:Italic D f}\\n{/*0.85 %.2f times {/:Italic f}}\" at %g,%g left "
            "offset 1.5,1.7 font "
            "',15' textcolor rgb '" CLI_BLUE "'\n",
            fd / f, d, fd);
    fprintf(g,
            "set label \"{/:Italic f} alone\" at %g,%g left offset 1.5,-0.9 font ',15' textcolor rgb '" CLI_INK "'\n",
            d, f);
    fprintf(g, "plot $brute with linespoints linewidth 3 pointtype 5 pointsize 1.4 linecolor rgb '" CLI_ORANGE "', "
               "$f with linespoints linewidth 3 dashtype (8,5) pointtype 6 pointsize 1.6 linecolor rgb '" CLI_INK "', "
               "$fd with linespoints linewidth 3 pointtype 7 pointsize 1.3 linecolor rgb '" CLI_BLUE "'\n");
    return 0;
}
