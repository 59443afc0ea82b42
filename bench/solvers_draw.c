/* solvers_draw.c - the picture of `hollow bench solvers`, as commands for gnuplot: when implicit steps pay, what a gradient is
 * worth, and what an inverse costs. */
#include <math.h>
#include <string.h>

#include "solvers.h"

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

/* Lines x y low high of the results of one section, method and coupling. */
static void series(FILE *g, const solver_bench *b, const char *name, const solver_result *like)
{
    fprintf(g, "$%s << EOD\n", name);
    for (size_t i = 0; i < b->count; i++) {
        const solver_result *r = &b->result[i];
        bool adjoint = !like->adjoint || (r->adjoint && strcmp(r->adjoint, like->adjoint) == 0);
        if (strcmp(r->section, like->section) != 0 || strcmp(r->method, like->method) != 0 || !adjoint)
            continue;
        if (strcmp(r->section, "network") == 0 && (r->kappa == 0 || same(r->coupling, like->coupling)))
            fprintf(g, "%g %g %g %g\n", fmax(r->kappa, 1), r->ratio, r->ratio_low, r->ratio_high);
        if (strcmp(r->section, "gradient") == 0)
            fprintf(g, "%g %g\n", fmax(r->kappa, .3), fmin(fmax(r->error, 1e-12), 1e3));
        if (strcmp(r->section, "inversion") == 0 && r->sign == like->sign && r->coupling == like->coupling &&
            r->lipschitz < 1)
            fprintf(g, "%g %g\n", r->lipschitz, r->f_high);
    }
    fprintf(g, "EOD\n");
}

static void panel(FILE *g, int k, const char *title, const char *what)
{
    double left = .055 + .333 * k;
    fprintf(
        g,
        "unset label\nset lmargin at screen %.4f\nset rmargin at screen %.4f\nset tmargin at screen 0.80\nset bmargin "
        "at screen 0.13\n"
        "set label 1 \"%s\" at screen %.4f, screen 0.945 left font ',17' textcolor rgb '" CLI_INK "'\n"
        "set label 2 \"%s\" at screen %.4f, screen 0.885 left font ',11.5' textcolor rgb '" CLI_SOFT "'\n",
        left, left + .262, title, left - .04, what, left - .04);
}

static void setup(FILE *g)
{
    fprintf(g, "set multiplot\nset logscale xy\n");
}

static void draw_networks(FILE *g, const solver_bench *b)
{
    static const char *const methods[] = { "adams-jacobi", "bdf-jacobi", "auto" };
    static const char *const colours[] = { CLI_BLUE, CLI_ORANGE, CLI_SOFT };
    char name[16];
    for (int m = 0; m < 3; m++)
        for (int c = 0; c < 2; c++) {
            solver_result like = solver_result_empty("network", methods[m]);
            like.coupling = c ? .5 : .1;
            snprintf(name, sizeof name, "n%d%d", m, c);
            series(g, b, name, &like);
        }
    panel(g, 0, "Stiff hollow networks: when implicit steps pay",
          "evaluations of RK45 over the method's; tolerances 1e-5; median, range");
    fprintf(g, "set xrange [0.7:1500]\nset yrange [0.3:40]\nset key top left\n"
               "set xtics ('random' 1, '10' 10, '100' 100, '1000' 1000)\nset ytics (0.3, 0.5, 1, 2, 5, 10, 20, 40)\n"
               "set xlabel 'stiffness κ' font ',14'\nset ylabel 'times fewer evaluations' font ',14' offset 0.8\n"
               "plot 1 with lines linewidth 1.5 linecolor rgb '" CLI_LIGHT "' notitle");
    for (int m = 0; m < 3; m++)
        for (int c = 0; c < 2; c++) {
            fprintf(g,
                    ", $n%d%d using ($1*%g):2:3:4 with yerrorbars linewidth 1.4 pointtype 0 linecolor rgb '%s' notitle",
                    m, c, 1 + .05 * (2 * m + c - 2.5), colours[m]);
            fprintf(g,
                    ", $n%d%d using ($1*%g):2 with linespoints linewidth %g dashtype %s pointtype %d pointsize 1.1 "
                    "linecolor "
                    "rgb '%s' title '%s, c = %s'",
                    m, c, 1 + .05 * (2 * m + c - 2.5), c ? 2.6 : 1.8, c ? "1" : "(6,4)", c ? 7 : 6, colours[m],
                    methods[m], c ? ".5" : ".1");
        }
    fputc('\n', g);
}

static void draw_gradients(FILE *g, const solver_bench *b)
{
    solver_result like = solver_result_empty("gradient", "adams-jacobi");
    like.adjoint = "stored";
    series(g, b, "ga", &like);
    like.adjoint = "reintegrated";
    series(g, b, "gr", &like);
    like = solver_result_empty("gradient", "bdf-jacobi");
    series(g, b, "gb", &like);
    like = solver_result_empty("gradient", "dopri5");
    series(g, b, "gd", &like);
    panel(g, 1, "Gradients of stiff hollow networks",
          "error against tight discretise-then-optimise; all at tolerance 1e-6");
    fprintf(
        g,
        "set xrange [0.2:1500]\nset yrange [1e-8:1e0]\nset key top left maxrows 5\nset format y '10^{%%T}'\n"
        "set xtics ('random' 0.3, '1' 1, '10' 10, '100' 100, '1000' 1000)\nset ytics 100\nset ytics (1e-8, 1e-6, 1e-4, "
        "1e-2, 1, 1e2)\n"
        "set xlabel 'stiffness κ' font ',14'\nset ylabel 'error of the gradient' font ',14' offset 0.8\n"
        "plot 5e-5 with lines linewidth 1.5 dashtype (3,4) linecolor rgb '" CLI_LIGHT "' title 'limit 5e-5', "
        "$gr using 1:2 with linespoints linewidth 2.4 pointtype 5 linecolor rgb '" CLI_PINK "' title 're-integrated "
        "(Neural ODE)', "
        "$ga using 1:2 with linespoints linewidth 2.4 pointtype 7 linecolor rgb '" CLI_BLUE "' title 'adams-jacobi, "
        "stored', "
        "$gb using 1:2 with linespoints linewidth 2.4 pointtype 9 linecolor rgb '" CLI_ORANGE
        "' title 'bdf-jacobi, stored', "
        "$gd using 1:2 with linespoints linewidth 1.6 dashtype (6,4) pointtype 6 linecolor rgb '" CLI_INK "' title "
        "'dopri5, "
        "replayed'\nunset format\n");
}

static void draw_inversion(FILE *g, const solver_bench *b)
{
    static const char *const methods[] = { "fixed-point", "jacobi", "anderson" };
    static const char *const colours[] = { CLI_SOFT, CLI_BLUE, CLI_GREEN };
    char name[16];
    for (int m = 0; m < 3; m++)
        for (int s = 0; s < 2; s++) {
            solver_result like = solver_result_empty("inversion", methods[m]);
            like.sign = s ? 1 : -1;
            like.coupling = .3;
            snprintf(name, sizeof name, "i%d%d", m, s);
            series(g, b, name, &like);
        }
    panel(g, 2, "Inverting {/:Italic y = x + g(x)}", "evaluations of the worst of 16 rows to |F| ≤ 1e-10; coupling .3");
    fprintf(g, "unset logscale x\nset xrange [0.45:1.04]\nset yrange [3:1000]\nset key top left\n"
               "set xtics (0.5, 0.9, 0.99)\nset ytics (5, 10, 20, 50, 100, 200, 500)\n"
               "set xlabel 'Lipschitz constant of {/:Italic g}' font ',14'\nset ylabel 'evaluations' font ',14' offset "
               "0.8\nplot ");
    for (int m = 0; m < 3; m++)
        for (int s = 0; s < 2; s++)
            fprintf(g,
                    "%s$i%d%d using 1:2 with linespoints linewidth 2.4 dashtype %s pointtype %d pointsize 1.2 "
                    "linecolor rgb "
                    "'%s' title '%s, Dg %s 0'",
                    m + s ? ", " : "", m, s, s ? "1" : "(6,4)", s ? 7 : 6, colours[m], methods[m], s ? ">" : "<");
    fprintf(g, "\nunset multiplot\n");
}

void solver_bench_draw(FILE *g, const solver_bench *b)
{
    setup(g);
    draw_networks(g, b);
    draw_gradients(g, b);
    draw_inversion(g, b);
}
