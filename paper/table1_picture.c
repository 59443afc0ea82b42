/* table1_picture.c - the posterior of one image in two latent dimensions: exact, normalised over a grid, and samples of each model
 * counted on the same grid. Their encoders and decoders are one, trained with the first posterior. All panels have one scale: white
 * is the largest density of the exact one, so a model whose samples are elsewhere is dark. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/png.h"
#include "table1.h"

enum { GRID = 48, SAMPLES = 10000, SHOWN = TABLE1_HOLLOW + 1 };

typedef struct window {
    double low[2], high[2];
} window;

static void cell_centre(const window *w, size_t i, double *z)
{
    for (size_t k = 0; k < 2; k++) {
        size_t at = k ? i / GRID : i % GRID;
        z[k] = w->low[k] + (w->high[k] - w->low[k]) * ((double)at + 0.5) / GRID;
    }
}

/* The exact panel to 0 .. 1, the others, which are shares of samples, to the same scale. */
static void scale(double *panel)
{
    double most = 0, sum = 0;
    for (size_t i = 0; i < GRID * GRID; i++) {
        most = fmax(most, panel[i]);
        sum += panel[i];
    }
    for (size_t i = 0; i < (SHOWN + 1) * GRID * GRID; i++)
        panel[i] = fmin(1, i < GRID * GRID ? panel[i] / most : panel[i] * sum / most);
}

/* p(x | z) p(z) at the centres of the cells; from probabilities, which is enough for a picture. */
static hl_status exact_panel(const table1 *t, hl_vae *v, const unsigned char *x, const window *w, double *panel)
{
    double *z = calloc(GRID * GRID, 2 * sizeof *z), *mean = calloc(GRID * GRID, t->dim * sizeof *mean), top = -INFINITY;
    for (size_t i = 0; z && i < GRID * GRID; i++)
        cell_centre(w, i, z + 2 * i);
    hl_status status = z && mean ? hl_vae_decode(v, GRID * GRID, z, mean) : HL_ERR_NOMEM;
    for (size_t i = 0; i < GRID * GRID && status == HL_OK; i++) {
        panel[i] = -0.5 * (z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1]);
        for (size_t k = 0; k < t->dim; k++) {
            double p = mean[i * t->dim + k];
            panel[i] += log(fmax(x[k] ? p : 1 - p, 1e-12));
        }
        top = fmax(top, panel[i]);
    }
    for (size_t i = 0; i < GRID * GRID && status == HL_OK; i++)
        panel[i] = exp(panel[i] - top);
    free(z);
    free(mean);
    return status;
}

/* SAMPLES draws of q(z | x), 2 values each. */
static hl_status draw_samples(const table1 *t, hl_vae *v, const unsigned char *x, double *z)
{
    unsigned char *copies = malloc(SAMPLES * t->dim);
    double *noise = calloc(SAMPLES, 2 * sizeof *noise);
    hl_status status = copies && noise ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < SAMPLES && status == HL_OK; i++)
        memcpy(copies + i * t->dim, x, t->dim);
    if (status == HL_OK)
        hl_random_normals(3, 0, 0, 2 * SAMPLES, noise);
    if (status == HL_OK)
        status = hl_vae_push(v, &(hl_vae_rows){ .rows = SAMPLES, .bytes = copies }, noise, z, NULL, NULL);
    free(copies);
    free(noise);
    return status;
}

/* The share of the samples in each cell; returns that in all of them. */
static double count_samples(const double *z, const window *w, double *panel)
{
    size_t inside = 0;
    for (size_t i = 0; i < SAMPLES; i++) {
        double at[2];
        for (size_t k = 0; k < 2; k++)
            at[k] = floor((z[2 * i + k] - w->low[k]) / (w->high[k] - w->low[k]) * GRID);
        if (at[0] >= 0 && at[0] < GRID && at[1] >= 0 && at[1] < GRID) {
            panel[(size_t)at[1] * GRID + (size_t)at[0]] += 1.0 / SAMPLES;
            inside++;
        }
    }
    return (double)inside / SAMPLES;
}

/* The image whose bounds are farther apart than those of three quarters of the others: its posterior has a shape that a normal
 * distribution has not. Where they are farthest apart, the encoder itself is wrong. */
static hl_status choose_image(const table1 *t, hl_vae *v, const unsigned char **x)
{
    size_t rows = t->part[TABLE1_MORE].rows, below, best = 0;
    hl_vae_row_result *row = calloc(rows, sizeof *row);
    hl_vae_eval_options o = { .samples = 100, .importance = 100 };
    hl_status status = row ? hl_vae_evaluate(v, &t->part[TABLE1_MORE], &o, row, NULL) : HL_ERR_NOMEM;
    for (size_t i = 0; i < rows && status == HL_OK; i++) {
        below = 0;
        for (size_t k = 0; k < rows; k++)
            below += row[k].iwae - row[k].elbo < row[i].iwae - row[i].elbo;
        best = below == 3 * rows / 4 ? i : best;
    }
    *x = t->part[TABLE1_MORE].bytes + best * t->dim;
    free(row);
    return status;
}

/* Four deviations of the exact posterior around its mean; a few rounds, as the first grid is coarse for it. */
static hl_status find_window(const table1 *t, hl_vae *v, const unsigned char *x, window *w, double *panel)
{
    hl_status status = HL_OK;
    *w = (window){ { -5, -5 }, { 5, 5 } };
    for (int round = 0; round < 3 && status == HL_OK; round++) {
        double sum = 0, mean[2] = { 0 }, square[2] = { 0 }, z[2];
        window before = *w;
        status = exact_panel(t, v, x, &before, panel);
        for (size_t i = 0; i < GRID * GRID && status == HL_OK; i++) {
            cell_centre(&before, i, z);
            sum += panel[i];
            for (size_t k = 0; k < 2; k++) {
                mean[k] += panel[i] * z[k];
                square[k] += panel[i] * z[k] * z[k];
            }
        }
        for (size_t k = 0; k < 2 && status == HL_OK; k++) {
            double m = mean[k] / sum, cell = (before.high[k] - before.low[k]) / GRID;
            double deviation = fmax(sqrt(fmax(square[k] / sum - m * m, 0)), cell);
            w->low[k] = m - 4 * deviation;
            w->high[k] = m + 4 * deviation;
        }
    }
    return status;
}

/* Panel 0 is exact, the others are the models'. */
static int draw_panels(table1 *t, double *panel, double *z)
{
    hl_vae *base = NULL;
    const unsigned char *x = NULL;
    window w = { { 0 }, { 0 } };
    table1_result unused;
    hl_status status = HL_OK;
    int result = table1_train(t, &table1_runs[0], "plane", 2, NULL, &unused, &base);
    for (size_t k = 0; k < SHOWN && result == CLI_OK && status == HL_OK; k++) {
        hl_vae *v = NULL;
        result = table1_train(t, &table1_runs[k], "plane-shared", 2, base, &unused, &v);
        if (result == CLI_OK && k == 0)
            status = choose_image(t, v, &x);
        if (result == CLI_OK && status == HL_OK)
            status = draw_samples(t, v, x, z);
        if (result == CLI_OK && status == HL_OK && k == 0) {
            status = find_window(t, v, x, &w, panel);
            if (status == HL_OK)
                status = exact_panel(t, v, x, &w, panel);
        }
        if (result == CLI_OK && status == HL_OK)
            cli_say(&paper_command, "picture: %s: %.0f %% of its samples are in the window", table1_runs[k].name,
                    100 * count_samples(z, &w, panel + (k + 1) * GRID * GRID));
        hl_vae_free(v);
    }
    hl_vae_free(base);
    return result != CLI_OK || status == HL_OK ? result : cli_fail_library(&paper_command, t->ctx, status);
}

int table1_picture(table1 *t)
{
    double *panel = calloc(SHOWN + 1, GRID * GRID * sizeof *panel), *z = calloc(SAMPLES, 2 * sizeof *z);
    int result = panel && z ? draw_panels(t, panel, z) : cli_no_memory(&paper_command);
    if (result == CLI_OK)
        scale(panel);
    cli_grid grid = { .count = SHOWN + 1, .columns = SHOWN + 1, .shape = { 1, GRID, GRID }, .values = panel };
    char path[1100];
    snprintf(path, sizeof path, "%s/posteriors.png", t->set->out);
    int error = result == CLI_OK ? cli_write_grid(path, &grid) : 0;
    free(panel);
    free(z);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "%s: %s", path, strerror(error));
    if (result == CLI_OK)
        printf("%s\n", path);
    return result;
}
