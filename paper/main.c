/* main.c - the program hollow-paper, which `hollow paper` starts: reproduces the figures of the paper. */
#include <math.h>
#include <string.h>

#include "paper.h"
#include "problems/numbers.h"

static const paper_item *const items[] = { &paper_fig1, &paper_fig2,   &paper_fig3,      &paper_fig4,
                                           &paper_fig5, &paper_table1, &paper_posteriors };
enum { ITEMS = sizeof items / sizeof *items };

static const cli_option options[] = {
    { "out", CLI_TEXT, offsetof(paper_settings, out), "DIR", "output directory, created if missing; default .", 0, 0,
      NULL },
    { "quick", CLI_FLAG, offsetof(paper_settings, quick), NULL, "a smaller and faster run", 0, 0, NULL },
    { "seed", CLI_INTEGER, offsetof(paper_settings, seed), "N", "random seed; default 1", 0, 4294967295.0, NULL },
    { "dim", CLI_INTEGER, offsetof(paper_settings, dim), "N", "fig1: dimension of the Jacobian; default 16", 2, 128,
      NULL },
    { "data", CLI_TEXT, offsetof(paper_settings, data), "DIR",
      "fig3: directory of train.npy and val.npy, default data/miniboone; table1, posteriors: of *_bits.npy", 0, 0,
      NULL },
    { "shared", CLI_FLAG, offsetof(paper_settings, shared), NULL,
      "table1: use one encoder and decoder for all posteriors", 0, 0, NULL },
    { "anchor", CLI_FLAG, offsetof(paper_settings, anchor), NULL,
      "table1: continue training with each posterior, then compare the decoders", 0, 0, NULL },
    { "epochs", CLI_INTEGER, offsetof(paper_settings, epochs), "N", "table1: epochs of each training; default 30", 1,
      1e6, NULL },
    { "net", CLI_TEXT, offsetof(paper_settings, net), "NAME",
      "table1: encoder and decoder: fc (default), small, mid or paper", 0, 0, NULL },
    { "only", CLI_TEXT, offsetof(paper_settings, only), "NAMES", "table1: train these posteriors, separated by commas",
      0, 0, NULL },
    { "threads", CLI_INTEGER, offsetof(paper_settings, threads), "N", "fig2 to fig5: number of threads; default all", 1,
      256, NULL },
    { 0 },
};

static const char text[] =
    "Reproduces a figure or table of the paper: writes data (CSV, JSON) and pictures (PNG, if gnuplot\n"
    "is installed) to a directory and prints their names. Without a name, lists what is available.\n"
    "\n"
    "  fig1        The Jacobian of a random hollow network by brute force, and its parts: the diagonal,\n"
    "              which is D f, and the hollow part, which factors through h. Checks that the parts add\n"
    "              up to rounding, and compares the time of D f with brute force for increasing d.\n"
    "  fig2        Train a continuous flow with Runge-Kutta, Adams and BDF methods from the same weights\n"
    "              and batches, and count forward and backward evaluations, from the usual initial\n"
    "              weights and from stiff ones.\n"
    "  fig3        Train continuous flows of one and two hidden layers with the exact trace and with\n"
    "              Hutchinson's estimate, from the same weights and batches, with three seeds: -log p of\n"
    "              validation rows, evaluations and time per iteration.\n"
    "  fig4        Learn the equation of a noisy pendulum by Fokker-Planck matching: the learned\n"
    "              density, trajectories of the learned equation, and drift and diffusion compared with\n"
    "              the true ones.\n"
    "  fig5        Compare Fokker-Planck matching with pseudo-maximum likelihood for fewer and fewer\n"
    "              observations of the pendulum: mean absolute errors, three seeds.\n"
    "  table1      Train autoencoders with six posteriors, and with the hollow one also with a stochastic\n"
    "              trace: -ELBO and IWAE of test rows. With --shared all posteriors use one fixed encoder\n"
    "              and decoder, so log p - ELBO is the inference gap. With --anchor encoder and decoder\n"
    "              are trained further with each posterior, and a new planar posterior then bounds log p\n"
    "              of each decoder. A stopped run continues when it is started again.\n"
    "  posteriors  Draw q(z | x) of one image in two latent dimensions next to the exact posterior.\n";

static int run(int argc, char **argv);
const cli_command paper_command = {
    "paper", "[NAME] [--option VALUE ...]", "reproduce a figure or table of the paper", text, options, 0, 1, run
};

static int run(int argc, char **argv)
{
    paper_settings set = { .out = ".", .seed = 1, .dim = 16, .threads = (uint64_t)hl_threads_available() };
    const char *name[2], *names[ITEMS + 1] = { NULL };
    char list[200];
    int result = cli_parse(&paper_command, argc, argv, &set, name);
    if (result >= 0)
        return result;
    for (size_t i = 0; i < ITEMS; i++) {
        names[i] = items[i]->name;
        if (!name[0])
            printf("%-12s%s\n", items[i]->name, items[i]->summary);
        else if (strcmp(items[i]->name, name[0]) == 0)
            return items[i]->run(&set);
    }
    if (!name[0])
        return CLI_OK;
    cli_join(list, sizeof list, names);
    return cli_fail(&paper_command, CLI_WRONG, "unknown name '%s'; use one of %s", name[0], list);
}

/* ---- what figures share ---- */

static int unwritable(const paper_settings *set, const char *name, int error)
{
    return cli_fail(&paper_command, CLI_WRONG, "cannot write %s/%s: %s", set->out, name, strerror(error));
}

static int write_one(const paper_settings *set, const paper_file *f, const void *figure)
{
    cli_file file;
    int error = f->width ? cli_plot_open(&file, set->out, f->name, f->width, f->height)
                         : cli_file_open(&file, set->out, f->name);
    if (error)
        return unwritable(set, f->name, error);
    if (f->width && set->quick)
        fprintf(file.stream,
                "set label 99 'smoke run (--quick): not the figure of the paper' at screen 0.99, screen 0.985 "
                "right font ',10' textcolor rgb '" CLI_ORANGE "'\n");
    if (f->write(file.stream, figure) != 0) {
        cli_file_drop(&file);
        return cli_no_memory(&paper_command);
    }
    error = f->width ? cli_plot_keep(&file) : cli_file_keep(&file);
    if (cli_interrupted())
        return CLI_STOPPED;
    if (error > 0)
        return unwritable(set, f->name, error);
    if (error < 0)
        return cli_fail(&paper_command, CLI_FAILED, "gnuplot could not draw %s", f->name);
    if (cli_json_wanted()) {
        char path[4200];
        cli_json json = { .file = stdout };
        snprintf(path, sizeof path, "%s/%s", set->out, f->name);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "file", path);
        cli_json_close(&json, '}');
        putchar('\n');
    } else {
        printf("%s/%s\n", set->out, f->name);
    }
    return CLI_OK;
}

int paper_write(const paper_settings *set, size_t count, const paper_file *files, const void *figure)
{
    bool gnuplot = cli_have_gnuplot(), missing = false;
    int result = CLI_OK;
    for (size_t i = 0; i < count && result == CLI_OK; i++)
        if (files[i].width && !gnuplot)
            missing = true;
        else
            result = write_one(set, &files[i], figure);
    if (missing && result == CLI_OK)
        cli_say(&paper_command, "no pictures: gnuplot is not installed; the numbers are in the files above");
    return result;
}

double paper_mean(const double *values, size_t count, double *deviation)
{
    double mean = 0, square = 0;
    for (size_t i = 0; i < count; i++)
        mean += values[i] / (double)count;
    for (size_t i = 0; i < count; i++)
        square += (values[i] - mean) * (values[i] - mean);
    if (deviation)
        *deviation = count > 1 ? sqrt(square / (double)(count - 1)) : NAN;
    return mean;
}

double paper_filtered(const double *values, size_t count, size_t i)
{
    enum { WINDOW = 5 };
    double window[WINDOW];
    size_t first = i < WINDOW / 2 ? 0 : i - WINDOW / 2, n = 0;
    for (size_t k = first; k < count && n < WINDOW; k++)
        window[n++] = values[k];
    return numbers_median(window, n);
}

int main(int argc, char **argv)
{
    cli_catch_interrupt();
    return cli_finish(run(argc - 1, argv + 1));
}
