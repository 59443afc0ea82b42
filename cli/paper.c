/* paper.c - `hollow paper`: reproduce the figures and tables of the paper. */
#include <string.h>

#include "paper.h"

static const paper_item *const items[] = { &paper_fig1, &paper_fig2, &paper_fig3 };
enum { ITEMS = sizeof items / sizeof *items };

static const cli_option options[] = {
    { "out", CLI_TEXT, offsetof(paper_settings, out), "DIR", "where the files go, made if missing; default .", 0, 0,
      NULL },
    { "quick", CLI_FLAG, offsetof(paper_settings, quick), NULL, "a smaller and faster run", 0, 0, NULL },
    { "seed", CLI_INTEGER, offsetof(paper_settings, seed), "N", "of the random numbers; default 1", 0, 4294967295.0,
      NULL },
    { "dim", CLI_INTEGER, offsetof(paper_settings, dim), "N", "dimensions of fig1's Jacobian; default 16", 2, 128,
      NULL },
    { "data", CLI_TEXT, offsetof(paper_settings, data), "DIR", "fig3: train.npy and val.npy; default data/miniboone", 0,
      0, NULL },
    { "threads", CLI_INTEGER, offsetof(paper_settings, threads), "N", "fig2, fig3: default all of the machine", 1, 256,
      NULL },
    { 0 },
};

static const char text[] = "Writes data (CSV, JSON) and pictures (PNG, if gnuplot is installed) to a\n"
                           "directory and prints their names. Without a name it lists what there is.\n"
                           "\n"
                           "fig1 takes a random hollow network, computes its Jacobian by brute force and\n"
                           "splits it into the diagonal, which D f gives exactly and at once, and the\n"
                           "hollow rest, which factors through h. It checks that the parts fit to the last\n"
                           "digits, and measures what D f costs against brute force as the dimension grows.\n"
                           "\n"
                           "fig2 trains a continuous flow with Runge-Kutta, Adams and BDF methods, from the\n"
                           "same weights and batches, and counts evaluations forward and backward: once from\n"
                           "the usual weights and once from stiff ones.\n"
                           "\n"
                           "fig3 trains continuous flows of one and two hidden layers with the exact trace and\n"
                           "with Hutchinson's estimate, from the same weights and batches, three seeds each:\n"
                           "-log p of validation rows, evaluations and time of an iteration.\n";

static int run(int argc, char **argv);
const cli_command cli_paper = {
    "paper", "[NAME] [--option VALUE ...]", "reproduce a figure of the paper", text, options, 0, 1, run
};

int paper_unwritable(const paper_settings *set, const char *name, int error)
{
    return cli_fail(&cli_paper, CLI_WRONG, "%s/%s: %s", set->out, name, strerror(error));
}

double paper_filtered(const double *values, size_t count, size_t i)
{
    enum { WINDOW = 5 };
    double window[WINDOW];
    size_t first = i < WINDOW / 2 ? 0 : i - WINDOW / 2, n = 0;
    for (size_t k = first; k < count && n < WINDOW; k++)
        window[n++] = values[k];
    return cli_median(window, n);
}

static int run(int argc, char **argv)
{
    paper_settings set = {
        .out = ".", .seed = 1, .dim = 16, .data = "data/miniboone", .threads = (uint64_t)cli_default_threads()
    };
    const char *name[2], *names[ITEMS + 1] = { NULL };
    char list[200];
    int result = cli_parse(&cli_paper, argc, argv, &set, name);
    if (result >= 0)
        return result;
    for (size_t i = 0; i < ITEMS; i++) {
        names[i] = items[i]->name;
        if (!name[0])
            printf("%-8s%s\n", items[i]->name, items[i]->summary);
        else if (strcmp(items[i]->name, name[0]) == 0)
            return items[i]->run(&set);
    }
    if (!name[0])
        return CLI_OK;
    cli_join(list, sizeof list, names);
    return cli_fail(&cli_paper, CLI_WRONG, "unknown name '%s'; there are %s", name[0], list);
}
