/* table1_picture.c - the posterior of one image in two latent dimensions: the image; its exact posterior, normalised over a grid; and
 * samples of each approximation counted on the same grid. Their encoder and decoder are one, trained with the first posterior. All
 * panels have one scale: white is the largest density of the exact one, so an approximation that is elsewhere is dark.
 *
 *   KL(q || p) = E_q[log q(z | x) - log p(x, z)] + log p(x),   log p(x) by the sum over the grid
 *
 * The image is one of those of training, as for others the encoder may be at fault: the one whose exact posterior is farthest from the normal distribution of the same mean and covariance. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/png.h"
#include "table1.h"

enum { GRID = 96, CELLS = GRID * GRID, BATCH = 10000, BATCHES = 8, POSTERIORS = TABLE1_HOLLOW + 1 };
enum { PANELS = POSTERIORS + 2 }; /* the image, the exact posterior, the others */
enum { LOOKED_AT = 300 };         /* images */
#define LEAST_CELLS 60            /* e to the entropy of a posterior, in cells; fewer are too coarse to judge */

typedef struct window {
    double low[2], high[2];
} window;

typedef struct picture {
    table1 *table;
    hl_vae *base;
    const unsigned char *x; /* the image */
    window window;
    double log_p;     /* of the image */
    double *panel;    /* PANELS x CELLS */
    double *z, *mean; /* CELLS x 2, CELLS x dim: of the grid */
} picture;

static double cell_area(const window *w)
{
    return (w->high[0] - w->low[0]) * (w->high[1] - w->low[1]) / CELLS;
}

/* The means of p(x | z) at the centres of the cells. */
static hl_status decode_grid(picture *p, const window *w)
{
    for (size_t i = 0; i < CELLS; i++)
        for (size_t k = 0; k < 2; k++) {
            size_t at = k ? i / GRID : i % GRID;
            p->z[2 * i + k] = w->low[k] + (w->high[k] - w->low[k]) * ((double)at + 0.5) / GRID;
        }
    return hl_vae_decode(p->base, CELLS, p->z, p->mean);
}

/* Shares of the cells in p(z | x); returns log p(x). From probabilities, which is enough here. */
static double exact_shares(const picture *p, const window *w, const unsigned char *x, double *share)
{
    double top = -INFINITY, sum = 0;
    size_t dim = p->table->dim;
    for (size_t i = 0; i < CELLS; i++) {
        const double *z = p->z + 2 * i, *mean = p->mean + i * dim;
        double product = 1;
        share[i] = -0.5 * (z[0] * z[0] + z[1] * z[1]) - 1.8378770664093453;
        for (size_t k = 0; k < dim; k++) {
            product *= fmax(x[k] ? mean[k] : 1 - mean[k], 1e-12);
            if (product < 1e-200 || k + 1 == dim) {
                share[i] += log(product);
                product = 1;
            }
        }
        top = fmax(top, share[i]);
    }
    for (size_t i = 0; i < CELLS; i++)
        sum += share[i] = exp(share[i] - top);
    for (size_t i = 0; i < CELLS; i++)
        share[i] /= sum;
    return top + log(sum * cell_area(w));
}

/* Mean and covariance of the cells: m0, m1, c00, c01, c11. */
static void moments(const picture *p, const double *share, double *m)
{
    memset(m, 0, 5 * sizeof *m);
    for (size_t i = 0; i < CELLS; i++)
        for (size_t k = 0; k < 2; k++)
            m[k] += share[i] * p->z[2 * i + k];
    for (size_t i = 0; i < CELLS; i++) {
        double a = p->z[2 * i] - m[0], b = p->z[2 * i + 1] - m[1];
        m[2] += share[i] * a * a;
        m[3] += share[i] * a * b;
        m[4] += share[i] * b * b;
    }
}

/* KL(p || normal distribution of p's moments) = entropy of the normal one - entropy of p; 0 if the grid is too coarse for p. */
static double strangeness(const picture *p, const window *w, const double *share)
{
    double m[5], entropy = 0;
    moments(p, share, m);
    for (size_t i = 0; i < CELLS; i++)
        entropy -= share[i] > 0 ? share[i] * log(share[i]) : 0;
    double det = m[2] * m[4] - m[3] * m[3];
    if (entropy < log(LEAST_CELLS) || !(det > 0))
        return 0;
    return 1 + 1.8378770664093453 + 0.5 * log(det) - (entropy + log(cell_area(w)));
}

static hl_status choose_image(picture *p)
{
    size_t rows = p->table->train.rows < LOOKED_AT ? p->table->train.rows : LOOKED_AT;
    const window w = { { -4, -4 }, { 4, 4 } };
    double *share = p->panel, best = -1;
    hl_status status = decode_grid(p, &w);
    for (size_t r = 0; r < rows && status == HL_OK; r++) {
        const unsigned char *x = p->table->train.bytes + r * p->table->dim;
        exact_shares(p, &w, x, share);
        double strange = strangeness(p, &w, share);
        if (strange > best) {
            best = strange;
            p->x = x;
        }
        status = cli_interrupted() ? HL_STOPPED : HL_OK;
    }
    return status;
}

/* Three and a half deviations of the exact posterior around its mean, and its shares. */
static hl_status look_closer(picture *p)
{
    double *share = p->panel + CELLS, m[5];
    window w = { { -4, -4 }, { 4, 4 } };
    hl_status status = HL_OK;
    for (int round = 0; round < 2 && status == HL_OK; round++) {
        status = decode_grid(p, &w);
        if (status == HL_OK)
            p->log_p = exact_shares(p, &w, p->x, share);
        if (round || status != HL_OK)
            break;
        moments(p, share, m);
        for (size_t k = 0; k < 2; k++) {
            double reach = 3.5 * sqrt(m[k ? 4 : 2]);
            w.low[k] = m[k] - reach;
            w.high[k] = m[k] + reach;
        }
    }
    p->window = w;
    return status;
}

/* The shares of samples of q(z | x) in each cell, and KL(q || p). */
static hl_status sample_shares(const picture *p, hl_vae *v, double *share, double *divergence)
{
    size_t dim = p->table->dim;
    unsigned char *copies = malloc(BATCH * dim);
    double *noise = calloc(BATCH, 6 * sizeof *noise), *z = noise ? noise + 2 * BATCH : NULL;
    double *log_q = noise ? z + 2 * BATCH : NULL, *log_joint = noise ? log_q + BATCH : NULL, sum = 0;
    hl_status status = copies && noise ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < BATCH && status == HL_OK; i++)
        memcpy(copies + i * dim, p->x, dim);
    for (uint64_t b = 0; b < BATCHES && status == HL_OK; b++) {
        hl_random_normals(3, b, 0, 2 * BATCH, noise);
        status = hl_vae_push(v, &(hl_vae_rows){ .rows = BATCH, .bytes = copies }, noise, z, log_q, log_joint);
        for (size_t i = 0; i < BATCH && status == HL_OK; i++) {
            double at[2];
            for (size_t k = 0; k < 2; k++)
                at[k] = floor((z[2 * i + k] - p->window.low[k]) / (p->window.high[k] - p->window.low[k]) * GRID);
            if (at[0] >= 0 && at[0] < GRID && at[1] >= 0 && at[1] < GRID)
                share[(size_t)at[1] * GRID + (size_t)at[0]] += 1.0 / (BATCH * BATCHES);
            sum += (log_q[i] - log_joint[i]) / (BATCH * BATCHES);
        }
    }
    *divergence = sum + p->log_p;
    free(copies);
    free(noise);
    return status;
}

/* All to the scale of the exact panel; square roots, so that thin parts are seen. */
static void finish_panels(picture *p)
{
    const size_t *shape = p->table->image;
    double most = 0;
    for (size_t i = 0; i < CELLS; i++)
        most = fmax(most, p->panel[CELLS + i]);
    for (size_t i = CELLS; i < (size_t)PANELS * CELLS; i++)
        p->panel[i] = sqrt(fmin(1, p->panel[i] / most));
    for (size_t i = 0; i < CELLS; i++)
        p->panel[i] = p->x[i / GRID * shape[1] / GRID * shape[2] + i % GRID * shape[2] / GRID];
}

static int draw_panels(picture *p)
{
    table1 *t = p->table;
    table1_result unused;
    int result = table1_train(t, &table1_runs[0], "plane", 2, NULL, &unused, &p->base);
    hl_status status = result == CLI_OK ? choose_image(p) : HL_OK;
    if (result == CLI_OK && status == HL_OK)
        status = look_closer(p);
    for (size_t k = 0; k < POSTERIORS && result == CLI_OK && status == HL_OK; k++) {
        table1_run run = table1_runs[k];
        hl_vae *v = NULL;
        double divergence;
        if (run.settings[0][0])
            run.settings[0][1] = "exact"; /* the trace: in two dimensions exact costs as much */
        result = table1_train(t, &run, "plane-shared", 2, p->base, &unused, &v);
        if (result == CLI_OK)
            status = sample_shares(p, v, p->panel + (k + 2) * CELLS, &divergence);
        if (result == CLI_OK && status == HL_OK)
            printf("%s: KL(q || p) %.3f nats\n", table1_runs[k].name, divergence);
        hl_vae_free(v);
    }
    return result != CLI_OK || status == HL_OK ? result : table1_failed(t, status);
}

int table1_picture(table1 *t)
{
    picture p = { .table = t,
                  .panel = calloc(PANELS, CELLS * sizeof *p.panel),
                  .z = calloc(CELLS, 2 * sizeof *p.z),
                  .mean = calloc(CELLS, t->dim * sizeof *p.mean) };
    int result = p.panel && p.z && p.mean ? draw_panels(&p) : cli_no_memory(&paper_command);
    if (result == CLI_OK)
        finish_panels(&p);
    cli_grid grid = { .count = PANELS, .columns = PANELS / 2, .shape = { 1, GRID, GRID }, .values = p.panel };
    char path[1100];
    snprintf(path, sizeof path, "%s/posteriors.png", t->set->out);
    int error = result == CLI_OK ? cli_write_grid(path, &grid) : 0;
    free(p.panel);
    free(p.z);
    free(p.mean);
    hl_vae_free(p.base);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "%s: %s", path, strerror(error));
    if (result == CLI_OK)
        printf("%s\n", path);
    return result;
}
