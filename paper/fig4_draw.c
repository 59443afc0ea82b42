/* fig4_draw.c - the pictures of fig4, as commands for gnuplot. Places are in pixels from the upper left corner. */
#include <math.h>
#include <stdlib.h>

#include "fig4.h"

typedef struct page {
    FILE *g;
    double width, height;
} page;

static void label(const page *p, double x, double y, double size, const char *colour, const char *align,
                  const char *text)
{
    fprintf(p->g, "set label \"%s\" at screen %.5f, screen %.5f %s font ',%g' textcolor rgb '%s' front\n", text,
            x / p->width, 1 - y / p->height, align, size, colour);
}

/* Where the next plot goes, and its name above. */
static void place(const page *p, double x, double y, double w, double h, const char *title)
{
    fprintf(p->g,
            "set lmargin at screen %.5f\nset rmargin at screen %.5f\nset tmargin at screen %.5f\nset bmargin at screen "
            "%.5f\n",
            x / p->width, (x + w) / p->width, 1 - y / p->height, 1 - (y + h) / p->height);
    label(p, x, y - 18, 15, CLI_INK, "left", title);
}

static void setup(const page *p, const char *title, const char *what)
{
    fprintf(p->g, "set multiplot\nset border front\nset tics font ',12'\nunset grid\nunset key\nunset colorbox\n");
    label(p, 40, 40, 20, CLI_INK, "left", title);
    label(p, 40, 74, 13, CLI_SOFT, "left", what);
}

/* ---- densities and trajectories ---- */

/* t p density, a line for each cell, so that `with image` can draw it. */
static void density_block(FILE *g, const char *name, const double *density)
{
    fprintf(g, "$%s << EOD\n", name);
    for (size_t i = 0; i < SDE_TIMES * FIG4_POSITIONS; i++)
        fprintf(g, "%.5g %.5g %.4g\n", sde_problem_time(i / FIG4_POSITIONS), fig4_position(i % FIG4_POSITIONS),
                density[i]);
    fprintf(g, "EOD\n");
}

/* t p of trajectories that start on the given side, an empty line after each. */
static void path_block(FILE *g, const char *name, const double *states, int side)
{
    fprintf(g, "$%s << EOD\n", name);
    for (size_t r = 0; r < FIG4_PATHS; r++) {
        const double *y = states + r * SDE_TIMES * 2;
        if ((y[0] > 0) != (side > 0))
            continue;
        for (size_t k = 0; k < SDE_TIMES; k++)
            fprintf(g, "%.5g %.5g\n", sde_problem_time(k), y[2 * k]);
        fputc('\n', g);
    }
    fprintf(g, "EOD\n");
}

/* Some of the observations, as many at every time. */
static void observation_block(FILE *g, const fig4 *a)
{
    enum { DOTS = 12 };
    fprintf(g, "$dots << EOD\n");
    for (size_t r = 0; r < DOTS; r++)
        for (size_t k = 0; k < SDE_TIMES; k++) {
            size_t row = (r * SDE_TIMES + k) % a->rows; /* another trajectory every time */
            fprintf(g, "%.5g %.5g\n", sde_problem_time(k), a->observed[(row * SDE_TIMES + k) * 2]);
        }
    fprintf(g, "EOD\n");
}

/* One map over t and p with what is drawn on it. */
static void map(const page *p, double x, const char *title, const char *block, const char *over)
{
    place(p, x, 140, 395, 390, title);
    fprintf(
        p->g,
        "set xrange [-0.05:5.05]\nset yrange [%g:%g]\nset cbrange [0:1.2]\nset xtics 1 nomirror\nset ytics 1 nomirror\n"
        "set xlabel 'time {/:Italic t}' font ',13'\nset ylabel 'position {/:Italic p}, rad' font ',13' offset 1\n"
        "plot $%s using 1:2:3 with image, %s\nunset label\n",
        fig4_low, fig4_high, block, over);
}

static void draw_bar(const page *p, double x)
{
    fprintf(p->g, "$bar << EOD\n");
    for (int i = 0; i < 64; i++)
        fprintf(p->g, "0 %g %g\n1 %g %g\n", (i + 0.5) * 1.2 / 64, (i + 0.5) * 1.2 / 64, (i + 0.5) * 1.2 / 64,
                (i + 0.5) * 1.2 / 64);
    fprintf(p->g, "EOD\n");
    place(p, x, 140, 16, 390, "");
    label(p, x + 12, 122, 12, CLI_INK, "center", "density");
    fprintf(p->g, "unset xtics\nunset xlabel\nunset ylabel\nset xrange [-0.5:1.5]\nset yrange [0:1.2]\n"
                  "unset ytics\n"
                  "set y2tics ('0' 0, '0.3' 0.3, '0.6' 0.6, '0.9' 0.9, '≥ 1.2' 1.2)\nset y2range [0:1.2]\n"
                  "plot $bar using 1:2:3 with image\nunset y2tics\nunset label\n");
}

/* The position's density at one time: data, model and learned equation. */
static void marginal(const page *p, double x, double y, double w, double h, size_t k, bool first)
{
    char title[40];
    size_t from = k * FIG4_POSITIONS, to = from + FIG4_POSITIONS - 1;
    snprintf(title, sizeof title, "{/:Italic t} = %.2g", sde_problem_time(k));
    place(p, x, y, w, h, title);
    fprintf(p->g,
            "set xrange [%g:%g]\nset yrange [0:*]\nset xtics 1 nomirror out scale 0.6 font ',12'\nset ytics autofreq "
            "nomirror out scale 0.6 font ',12'\n"
            "set xlabel 'position {/:Italic p}, rad' font ',13'\n",
            fig4_low, fig4_high);
    if (first)
        fprintf(p->g, "set ylabel 'density' font ',13' offset 1\n");
    fprintf(p->g,
            "plot $data every ::%zu::%zu using 2:3 with boxes fillstyle solid 1 noborder linecolor rgb '" CLI_PALE "', "
            "$sde every ::%zu::%zu using 2:3 with histeps linewidth 1.2 linecolor rgb '" CLI_ORANGE "', "
            "$density every ::%zu::%zu using 2:3 with lines linewidth 2.4 linecolor rgb '" CLI_BLUE "'\n"
            "unset label\nunset ylabel\n",
            from, to, from, to, from, to);
}

int fig4_draw_density(FILE *g, const void *figure)
{
    const fig4 *a = figure;
    static const size_t shown[] = { 0, 10, 20, 35, 49 };
    page p = { g, FIG4_DENSITY_WIDTH, FIG4_DENSITY_HEIGHT };
    char text[400];
    density_block(g, "data", a->data_density);
    density_block(g, "density", a->density);
    density_block(g, "sde", a->sde_density);
    path_block(g, "true_low", a->truth, -1);
    path_block(g, "true_high", a->truth, 1);
    path_block(g, "low", a->learned, -1);
    path_block(g, "high", a->learned, 1);
    observation_block(g, a);
    snprintf(text, sizeof text,
             "d{/:Italic p} = {/:Italic v} d{/:Italic t}, d{/:Italic v} = −2 sin {/:Italic p} d{/:Italic t} + 0.2 "
             "d{/:Italic W}, from two modes; %zu trajectories seen at 50 times; error of the drift %.3f, of the "
             "diffusion %.3f",
             a->rows, a->outcome.drift, a->outcome.diffusion);
    setup(&p, "A noisy pendulum, learned by Fokker–Planck matching from unpaired observations", text);
    fprintf(g, "set palette defined (0 '#ffffff', 0.1 '#edeff2', 0.3 '" CLI_PALE "', 0.6 '#8b95a1', 1 '#39424e')\n");
    map(&p, 75, "Data, and true trajectories", "data",
        "$true_low with lines linewidth 1.1 linecolor rgb '" CLI_BLUE
        "', $true_high with lines linewidth 1.1 linecolor "
        "rgb '" CLI_ORANGE "'");
    map(&p, 537, "Learned density, and some observations", "density",
        "$dots with points pointtype 7 pointsize 0.35 linecolor rgb '" CLI_GREEN "'");
    map(&p, 999, "Trajectories of the learned equation", "sde",
        "$low with lines linewidth 1.1 linecolor rgb '" CLI_BLUE
        "', $high with lines linewidth 1.1 linecolor rgb '" CLI_ORANGE "'");
    draw_bar(&p, 1412);
    label(&p, 75, 616, 15, CLI_INK, "left", "Density of the position at five times:");
    label(&p, 460, 616, 14, CLI_LIGHT, "left", "■ data");
    label(&p, 550, 616, 14, CLI_BLUE, "left", "━ learned density");
    label(&p, 730, 616, 14, CLI_ORANGE, "left", "━ trajectories of the learned equation");
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        marginal(&p, 75 + 284 * (double)i, 672, 232, 245, shown[i], i == 0);
    fprintf(g, "unset multiplot\n");
    return 0;
}

/* ---- drift and diffusion ---- */

static void field_block(FILE *g, const char *name, const fig4_field *w)
{
    fprintf(g, "$%s << EOD\n", name);
    for (size_t i = 0; i < 2 * w->count; i += 2)
        fprintf(g, "%.5g %.5g %.5g %.5g %.5g %.5g %.5g %.5g\n", w->x[i], w->x[i + 1], w->f[i], w->f[i + 1], w->g[i],
                w->g[i + 1], w->true_f[i], w->true_f[i + 1]);
    fprintf(g, "EOD\n");
}

/* Learned values of component `column` against column `against`, and the true function of it. */
static void scatter(const page *p, double x, double y, const char *title, const char *xlabel, const char *ylabel,
                    const char *plot)
{
    place(p, x, y, 530, 380, title);
    fprintf(
        p->g,
        "set xrange [%g:%g]\nset xlabel '%s' font ',13'\nset ylabel '%s' font ',13' offset 1\nplot %s\nunset label\n",
        fig4_low, fig4_high, xlabel, ylabel, plot);
}

int fig4_draw_field(FILE *g, const void *figure)
{
    const fig4 *a = figure;
    page p = { g, FIG4_FIELD_WIDTH, FIG4_FIELD_HEIGHT };
    const char *position = "position {/:Italic p}, rad", *velocity = "velocity {/:Italic v}, rad / time";
    char text[400];
    field_block(g, "states", &a->states);
    field_block(g, "grid", &a->grid);
    snprintf(text, sizeof text,
             "At %zu states of fresh trajectories; mean absolute error over all of them: drift %.4f, diffusion %.4f",
             a->states.count, a->outcome.drift, a->outcome.diffusion);
    setup(&p, "Learned drift and diffusion against the truth", text);
    fprintf(g,
            "set grid xtics ytics\nset xtics 1\nset ytics 1\n"
            "set key top right samplen 1.5 opaque\nset yrange [%g:%g]\n",
            fig4_low, fig4_high);
    label(&p, 400, 122, 13, CLI_LIGHT, "left", "• states");
    label(&p, 482, 122, 13, CLI_GREY, "left", "→ true");
    label(&p, 545, 122, 13, CLI_BLUE, "left", "→ learned");
    scatter(&p, 90, 140, "Drift, where the states are", position, velocity,
            "$states using 1:2 with points pointtype 7 pointsize 0.3 linecolor rgb '" CLI_PALE "' notitle, "
            "$grid using 1:2:(0.09*$7):(0.09*$8) with vectors size 0.06,25 linewidth 3.5 linecolor rgb '" CLI_LIGHT
            "' notitle, "
            "$grid using 1:2:(0.09*$3):(0.09*$4) with vectors size 0.06,25 linewidth 1.3 linecolor rgb '" CLI_BLUE
            "' notitle");
    fprintf(g, "set key bottom right\n");
    scatter(&p, 730, 140, "Drift of the position", velocity, "{/:Italic f_p}, rad / time",
            "$states using 2:3 with points pointtype 7 pointsize 0.4 linecolor rgb '" CLI_BLUE "' title 'learned', "
            "x with lines linewidth 1.8 linecolor rgb '" CLI_INK "' title 'true: {/:Italic v}'");
    fprintf(g, "set key top right\n");
    scatter(&p, 90, 630, "Drift of the velocity", position, "{/:Italic f_v}, rad / time²",
            "$states using 1:4 with points pointtype 7 pointsize 0.4 linecolor rgb '" CLI_BLUE "' title 'learned', "
            "-2*sin(x) with lines linewidth 1.8 linecolor rgb '" CLI_INK "' title 'true: −2 sin {/:Italic p}'");
    fprintf(g, "set yrange [-0.01:0.36]\nset ytics 0.1\n");
    scatter(&p, 730, 630, "Diffusion", position, "{/:Italic g}",
            "$states using 1:6 with points pointtype 7 pointsize 0.4 linecolor rgb '" CLI_BLUE
            "' title 'learned, of {/:Italic v}', "
            "$states using 1:5 with points pointtype 7 pointsize 0.4 linecolor rgb '" CLI_ORANGE
            "' title 'learned, of {/:Italic p}', "
            "0.2 with lines linewidth 1.8 linecolor rgb '" CLI_INK "' title 'true: 0.2 and 0', "
            "0 with lines linewidth 1.8 linecolor rgb '" CLI_INK "' notitle");
    fprintf(g, "unset multiplot\n");
    return 0;
}
