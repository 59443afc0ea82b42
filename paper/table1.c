/* table1.c - `hollow paper table1`: autoencoders with six posteriors, and what an exact trace is worth in one of them.
 *
 * With --shared one autoencoder is trained, and then every posterior for its encoder and decoder, which are frozen: log p(x) is
 * then the same for all, so that log p - ELBO is the gap of inference alone. log p is the best bound IWAE-k over all posteriors
 * with an exact log q, row by row. Without --shared all parts are trained, for each posterior by itself.
 *
 * With --anchor all parts of the one autoencoder go on training with each posterior (table1_anchor.c).
 *
 * Models, and the results of each row, are files; what is there is not made again, and a training that was killed goes on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "table1.h"

const table1_run table1_runs[TABLE1_RUNS] = {
    { .name = "vae", .posterior = "vae" },
    { .name = "planar", .posterior = "planar" },
    { .name = "iaf", .posterior = "iaf" },
    { .name = "sylvester", .posterior = "sylvester" },
    { .name = "ffjord", .posterior = "ffjord", .settings = { { "trace", "hutchinson" } } },
    { .name = "hollow", .posterior = "hollow", .settings = { { "trace", "exact" } } },
    { .name = "hollow-stochastic", .posterior = "hollow", .settings = { { "trace", "hutchinson" } } },
    { .name = "hollow-weights", .posterior = "hollow", .settings = { { "code", "weights" } }, .optional = true },
    /* sizes of the hollow network, as the paper searched them */
    { .name = "hollow-elu", .posterior = "hollow", .settings = { { "activation", "elu" } }, .optional = true },
    { .name = "hollow-64",
      .posterior = "hollow",
      .settings = { { "activation", "elu" }, { "features", "64" }, { "width", "64" } },
      .optional = true },
    { .name = "hollow-100",
      .posterior = "hollow",
      .settings = { { "activation", "elu" }, { "features", "100" }, { "width", "100" } },
      .optional = true },
    { .name = "hollow-3-layers",
      .posterior = "hollow",
      .settings = { { "activation", "elu" }, { "layers", "3" } },
      .optional = true },
};

enum { SIDE = 8, MADE_ROWS = 1200 };

int table1_failed(const table1 *t, hl_status status)
{
    return cli_fail_library(&paper_command, t->ctx, status);
}

static int no_memory(void)
{
    return cli_no_memory(&paper_command);
}

/* ---- data ---- */

/* A row and a column that are on. */
static bool is_bar(size_t r, size_t i)
{
    size_t a = (size_t)(hl_random_uniform(1, 0, r) * SIDE), b = (size_t)(hl_random_uniform(1, 1, r) * SIDE);
    return i / SIDE == a || i % SIDE == b;
}

/* A hand of a clock, from the centre of the image outwards. */
static bool is_hand(size_t r, size_t i)
{
    double angle = 6.283185307179586 * hl_random_uniform(1, 0, r), c = cos(angle), s = sin(angle);
    double x = (double)(i % SIDE) - 0.5 * (SIDE - 1), y = (double)(i / SIDE) - 0.5 * (SIDE - 1);
    return c * x + s * y > 0 && fabs(c * y - s * x) < 0.8;
}

/* Something to run without files: images of bars; for the picture, whose posteriors are to be wide and curved, of a hand with much
 * noise. */
static int make_images(table1 *t)
{
    size_t rows = t->picture ? 12 * MADE_ROWS : MADE_ROWS;
    double noise = t->picture ? 0.2 : 0.03;
    t->made = malloc(rows * SIDE * SIDE);
    if (!t->made)
        return no_memory();
    for (size_t r = 0; r < rows; r++)
        for (size_t i = 0; i < SIDE * SIDE; i++) {
            bool on = t->picture ? is_hand(r, i) : is_bar(r, i);
            t->made[r * SIDE * SIDE + i] = on != (hl_random_uniform(1, 2, r * SIDE * SIDE + i) < noise);
        }
    t->image[0] = 1;
    t->image[1] = t->image[2] = SIDE;
    t->dim = SIDE * SIDE;
    t->train = (hl_vae_rows){ .rows = rows / 2, .bytes = t->made };
    t->valid = (hl_vae_rows){ .rows = rows / 4, .bytes = t->made + rows / 2 * t->dim };
    t->part[TABLE1_ALL] = (hl_vae_rows){ .rows = rows / 4, .bytes = t->made + rows / 4 * 3 * t->dim };
    return CLI_OK;
}

static int read_images(table1 *t)
{
    static const char *const names[3][3] = { { "train_bits.npy" },
                                             { "valid_bits.npy", "val_bits.npy" },
                                             { "test_bits.npy" } };
    hl_vae_rows *const rows[3] = { &t->train, &t->valid, &t->part[TABLE1_ALL] };
    for (size_t i = 0; i < 3; i++) {
        hl_status status = HL_ERR_IO;
        for (size_t k = 0; names[i][k] && status != HL_OK; k++) {
            char path[1000];
            snprintf(path, sizeof path, "%s/%s", t->set->data, names[i][k]);
            status = hl_images_open(t->ctx, path, &(hl_images_options){ .bits = 1 }, &t->file[i]);
        }
        if (status != HL_OK) {
            table1_failed(t, status);
            return cli_fail(&paper_command, CLI_WRONG,
                            "table1 needs train_bits.npy, valid_bits.npy and test_bits.npy (8 pixels per byte); give "
                            "their directory with --data DIR");
        }
        *rows[i] = hl_images_rows(t->file[i]);
        t->dim = hl_images_dim(t->file[i]);
    }
    hl_images_shape(t->file[0], t->image);
    return CLI_OK;
}

/* Evenly spaced rows of the test images, which may be sorted. */
static int choose_rows(table1 *t, int part, size_t rows)
{
    const hl_vae_rows *all = &t->part[TABLE1_ALL];
    size_t n = rows < all->rows ? rows : all->rows;
    unsigned char *copy = t->copy[part] = malloc(n * t->dim);
    if (!copy)
        return no_memory();
    for (size_t i = 0; i < n; i++)
        memcpy(copy + i * t->dim, all->bytes + i * all->rows / n * t->dim, t->dim);
    t->part[part] = (hl_vae_rows){ .rows = n, .bytes = copy };
    return CLI_OK;
}

/* ---- the runs ---- */

void table1_path(const table1 *t, const char *kind, const char *name, const char *suffix, char *path, size_t size)
{
    snprintf(path, size, "%s/table1_%s_%s_%llu%s", t->set->out, kind, name, (unsigned long long)t->set->seed, suffix);
}

bool table1_wanted(const table1 *t, const table1_run *run)
{
    size_t length = strlen(run->name);
    const char *at = t->set->only;
    if (!at)
        return !run->optional;
    for (; (at = strstr(at, run->name)) != NULL; at += length)
        if ((at == t->set->only || at[-1] == ',') && (at[length] == '\0' || at[length] == ','))
            return true;
    return false;
}

static int check_names(const table1 *t)
{
    size_t found = 0, given = 1;
    const char *names[TABLE1_RUNS + 1] = { NULL };
    char list[300];
    for (size_t i = 0; i < TABLE1_RUNS; i++) {
        names[i] = table1_runs[i].name;
        found += table1_wanted(t, &table1_runs[i]);
    }
    for (const char *at = t->set->only; at && (at = strchr(at, ',')) != NULL; at++)
        given++;
    cli_join(list, sizeof list, names);
    return !t->set->only || found == given
               ? CLI_OK
               : cli_fail(&paper_command, CLI_WRONG, "--only: give names separated by commas: %s", list);
}

static int run_one(table1 *t, size_t i, const char *kind, const hl_vae *base)
{
    table1_result *r = &t->result[i];
    hl_vae *v = NULL;
    int result = table1_train(t, &table1_runs[i], kind, t->latent, base, r, &v);
    if (result == CLI_OK)
        result = table1_evaluate(t, kind, &table1_runs[i], v, r);
    hl_vae_free(v);
    return result;
}

static int run_all(table1 *t)
{
    const char *kind = t->set->shared ? "shared" : "whole";
    table1_result unused;
    hl_vae *base = NULL;
    int result = check_names(t);
    if (result == CLI_OK && t->set->shared)
        result = table1_train(t, &table1_runs[0], "base", t->latent, NULL, &unused, &base);
    for (size_t i = 0; i < TABLE1_RUNS && result == CLI_OK; i++)
        if (table1_wanted(t, &table1_runs[i]) || table1_is_done(t, kind, &table1_runs[i]))
            result = run_one(t, i, kind, base);
    hl_vae_free(base);
    return result == CLI_OK ? table1_write(t, kind) : result;
}

static int prepare(table1 *t)
{
    bool quick = t->set->quick;
    int result = t->set->data ? read_images(t) : make_images(t);
    t->samples[TABLE1_ALL] = 10;
    t->samples[TABLE1_MORE] = quick ? 10 : 500;
    t->samples[TABLE1_FEW] = quick ? 40 : 5000;
    if (result == CLI_OK)
        result = choose_rows(t, TABLE1_MORE, quick ? 40 : 1000);
    if (result == CLI_OK)
        result = choose_rows(t, TABLE1_FEW, quick ? 20 : 300);
    return result;
}

/* Open everything, do `job`, close everything. */
static int run_with(const paper_settings *set, bool picture, int (*job)(table1 *t))
{
    table1 t = { .set = set,
                 .picture = picture,
                 .net = set->net ? set->net : "fc",
                 .latent = set->quick ? 4 : 64,
                 .epochs = set->epochs  ? (size_t)set->epochs
                           : set->quick ? 3
                                        : 30 };
    int error = cli_make_directory(set->out);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "%s: %s", set->out, strerror(error));
    if (!set->data && !set->quick && !picture)
        return cli_fail(&paper_command, CLI_WRONG,
                        "--data DIR with train_bits.npy, valid_bits.npy and test_bits.npy is required; --quick uses "
                        "generated images instead");
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set->threads, .stop = cli_stop }, &t.ctx);
    int result = status == HL_OK ? prepare(&t) : cli_fail_library(&paper_command, NULL, status);
    if (result == CLI_OK)
        result = job(&t);
    for (size_t i = 0; i < TABLE1_RUNS; i++)
        for (size_t k = 0; k < TABLE1_PARTS; k++)
            free(t.result[i].row[k]);
    for (size_t i = 0; i < 3; i++)
        hl_images_free(t.file[i]);
    for (size_t i = 0; i < TABLE1_PARTS; i++)
        free(t.copy[i]);
    free(t.made);
    hl_context_free(t.ctx);
    return result;
}

static int run_anchor(table1 *t)
{
    int result = check_names(t);
    return result == CLI_OK ? table1_anchor(t) : result;
}

static int run_table(const paper_settings *set)
{
    if (set->anchor && set->shared)
        return cli_fail(&paper_command, CLI_WRONG, "--anchor and --shared cannot be combined");
    return run_with(set, false, set->anchor ? run_anchor : run_all);
}

static int run_picture(const paper_settings *set)
{
    return run_with(set, true, table1_picture);
}

const paper_item paper_table1 = { "table1", "autoencoders with six posteriors: -ELBO, IWAE and the inference gap",
                                  run_table };
const paper_item paper_posteriors = { "posteriors", "the exact posterior of an image and six approximations",
                                      run_picture };
