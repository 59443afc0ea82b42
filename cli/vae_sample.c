/* vae_sample.c - `hollow vae sample`: images of the model, reconstructions, traversals. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/png.h"
#include "vae.h"

enum { TRAVERSAL_STEPS = 11, MOST_TRAVERSED = 20 };

typedef struct settings {
    uint64_t threads, count, seed, columns;
    const char *out, *png, *reconstruct, *traverse;
    vae_input input;
    bool draw;
} settings;

#define AT(member) offsetof(settings, member)
static const cli_option options[] = {
    { "n", CLI_INTEGER, AT(count), "N", "number of images, or of rows of DATA; default 100", 1, 1e9, NULL },
    { "png", CLI_TEXT, AT(png), "FILE", "write a picture of all images, 10 per line", 0, 0, NULL },
    { "out", CLI_TEXT, AT(out), "FILE", "write numbers (.csv or .npy); default stdout unless --png is given", 0, 0,
      NULL },
    { "draw", CLI_FLAG, AT(draw), NULL, "draw x given z instead of its mean: bits, or values with noise", 0, 0, NULL },
    { "reconstruct", CLI_TEXT, AT(reconstruct), "DATA", "show images of DATA, each followed by its reconstruction", 0,
      0, NULL },
    { "traverse", CLI_TEXT, AT(traverse), "DATA",
      "vary the latent values with the largest effect on the first image of DATA, one per line", 0, 0, NULL },
    { "columns", CLI_INTEGER, AT(columns), "N", "images per line of the picture", 1, 1000, NULL },
    { "seed", CLI_INTEGER, AT(seed), "N", "random seed; default 0", 0, 9e15, NULL },
    VAE_INPUT_OPTIONS(settings),
    { "threads", CLI_INTEGER, AT(threads), "N", "number of threads; default all. Does not change results", 1, 256,
      NULL },
    { 0 },
};

static const char text[] =
    "Draws z from the prior and writes the mean of x given z (probabilities of bits), as numbers or as a\n"
    "picture. --reconstruct and --traverse start from the images of a file.\n";

static int run(int argc, char **argv);
const cli_command vae_command_sample = {
    "vae sample", "MODEL [-n N] [--option VALUE ...]", "draw images from an autoencoder", text, options, 1, 1, run
};

typedef struct job {
    const settings *set;
    hl_context *ctx;
    hl_vae *vae;
    hl_images *images;
    hl_vae_rows rows; /* of the images */
    size_t count;     /* of the result */
    double *x;        /* count x dim */
} job;

static int no_memory(void)
{
    return cli_no_memory(&vae_command_sample);
}

static int failed(const job *j, hl_status status)
{
    return cli_fail_library(&vae_command_sample, j->ctx, status);
}

static bool make_room(job *j, size_t count)
{
    j->count = count;
    j->x = calloc(count, hl_vae_dim(j->vae) * sizeof *j->x);
    return j->x != NULL;
}

/* Pixel i of the data, 0..1. */
static double pixel(const job *j, size_t i)
{
    return j->rows.values ? j->rows.values[i] : j->rows.gray ? j->rows.bytes[i] / 255.0 : j->rows.bytes[i];
}

/* With --draw: means of x given z become draws. */
static hl_status draw(const job *j, size_t rows, double *x)
{
    return j->set->draw ? hl_vae_draw(j->vae, rows, j->set->seed, x) : HL_OK;
}

static int sample(job *j)
{
    if (!make_room(j, (size_t)j->set->count))
        return no_memory();
    hl_status status = hl_vae_sample(j->vae, j->count, j->set->seed, NULL, j->x);
    if (status == HL_OK)
        status = draw(j, j->count, j->x);
    return status == HL_OK ? CLI_OK : failed(j, status);
}

/* Originals and reconstructions in turn, from one sample of the posterior each. */
static int reconstruct(job *j)
{
    size_t dim = hl_vae_dim(j->vae), latent = hl_vae_describe(j->vae).latent;
    size_t n = j->set->count < j->rows.rows ? (size_t)j->set->count : j->rows.rows;
    double *z = calloc(n, latent * sizeof *z), *mean = calloc(n, dim * sizeof *mean);
    j->rows.rows = n;
    hl_status status = z && mean && make_room(j, 2 * n) ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_vae_encode(j->vae, &j->rows, j->set->seed, NULL, z);
    if (status == HL_OK)
        status = hl_vae_decode(j->vae, n, z, mean);
    if (status == HL_OK)
        status = draw(j, n, mean);
    for (size_t i = 0; i < n * dim && status == HL_OK; i++) {
        double *pair = j->x + i / dim * 2 * dim + i % dim;
        pair[0] = pixel(j, i);
        pair[dim] = mean[i];
    }
    free(z);
    free(mean);
    return status == HL_OK ? CLI_OK : failed(j, status);
}

enum { REACH = 3 }; /* of a traversal, either way */

/* The latent values that change the image most, from one end of their traversal to the other, best first. */
static hl_status most_effective(const job *j, const double *z, size_t latent, size_t count, size_t *index)
{
    size_t dim = hl_vae_dim(j->vae);
    double *ends = calloc(2 * latent, latent * sizeof *ends), *x = calloc(2 * latent, dim * sizeof *x);
    double *effect = calloc(latent, sizeof *effect);
    hl_status status = ends && x && effect ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < 2 * latent && status == HL_OK; i++) {
        memcpy(ends + i * latent, z, latent * sizeof *z);
        ends[i * latent + i / 2] = i % 2 ? REACH : -REACH;
    }
    if (status == HL_OK)
        status = hl_vae_decode(j->vae, 2 * latent, ends, x);
    for (size_t i = 0; i < latent * dim && status == HL_OK; i++) {
        double change = x[(2 * (i / dim) + 1) * dim + i % dim] - x[2 * (i / dim) * dim + i % dim];
        effect[i / dim] += change * change;
    }
    for (size_t k = 0; k < count && status == HL_OK; k++) {
        for (size_t i = index[k] = 0; i < latent; i++)
            index[k] = effect[i] > effect[index[k]] ? i : index[k];
        effect[index[k]] = -1;
    }
    free(ends);
    free(x);
    free(effect);
    return status;
}

static int traverse(job *j)
{
    size_t latent = hl_vae_describe(j->vae).latent, lines = latent < MOST_TRAVERSED ? latent : MOST_TRAVERSED;
    size_t index[MOST_TRAVERSED] = { 0 };
    lines = j->set->count < lines ? (size_t)j->set->count : lines;
    double *z = calloc(latent, sizeof *z), *all = calloc(lines * TRAVERSAL_STEPS, latent * sizeof *all);
    j->rows.rows = 1;
    hl_status status = z && all && make_room(j, lines * TRAVERSAL_STEPS) ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_vae_encode(j->vae, &j->rows, j->set->seed, NULL, z);
    if (status == HL_OK)
        status = most_effective(j, z, latent, lines, index);
    for (size_t i = 0; i < j->count && status == HL_OK; i++) {
        double part = 2 * (double)(i % TRAVERSAL_STEPS) / (TRAVERSAL_STEPS - 1) - 1;
        memcpy(all + i * latent, z, latent * sizeof *z);
        all[i * latent + index[i / TRAVERSAL_STEPS]] = REACH * part;
    }
    if (status == HL_OK)
        status = hl_vae_decode(j->vae, j->count, all, j->x);
    if (status == HL_OK)
        status = draw(j, j->count, j->x);
    free(z);
    free(all);
    return status == HL_OK ? CLI_OK : failed(j, status);
}

/* ---- results ---- */

static int write_numbers(const job *j)
{
    hl_table_writer *w = NULL;
    const double *shift; /* values in the units of a table may need more digits than those of images */
    hl_vae_columns(j->vae, &shift, NULL);
    const char *path = j->set->out ? j->set->out : "-";
    const char **names = calloc(hl_vae_dim(j->vae), sizeof *names);
    if (!names)
        return no_memory();
    for (size_t i = 0; i < hl_vae_dim(j->vae); i++)
        names[i] = hl_vae_name(j->vae, i);
    hl_table_writer_options o = { .names = names[0] ? names : NULL, .rows = j->count, .single = !shift };
    hl_status status = hl_table_writer_create(j->ctx, path, hl_vae_dim(j->vae), &o, &w);
    if (status == HL_OK)
        status = hl_table_write_rows(w, j->count, j->x);
    if (status == HL_OK)
        status = hl_table_writer_finish(w);
    hl_table_writer_free(w);
    free(names);
    return status == HL_OK ? CLI_OK : failed(j, status);
}

/* What was written where, or the numbers themselves. */
static void print_json(const job *j)
{
    const size_t dim = hl_vae_dim(j->vae);
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "rows", j->count);
    cli_json_count(&json, "columns", dim);
    if (j->set->png)
        cli_json_text(&json, "png", j->set->png);
    if (j->set->out)
        cli_json_text(&json, "out", j->set->out);
    if (!j->set->png && !j->set->out) {
        cli_json_open(&json, "x", '[');
        for (size_t i = 0; i < j->count; i++) {
            cli_json_open(&json, NULL, '[');
            for (size_t k = 0; k < dim; k++)
                cli_json_real(&json, NULL, j->x[i * dim + k]);
            cli_json_close(&json, ']');
        }
        cli_json_close(&json, ']');
    }
    cli_json_close(&json, '}');
    putchar('\n');
}

static int write_picture(const job *j)
{
    const hl_vae_spec s = hl_vae_describe(j->vae);
    cli_grid g = { .count = j->count,
                   .columns = j->set->columns    ? (size_t)j->set->columns
                              : j->set->traverse ? TRAVERSAL_STEPS
                                                 : 10,
                   .shape = { s.image[0], s.image[1], s.image[2] },
                   .values = j->x };
    if (!s.image[0])
        return cli_fail(&vae_command_sample, CLI_WRONG, "--png: the rows of this model are not images");
    int error = cli_write_grid(j->set->png, &g);
    return error ? cli_fail(&vae_command_sample, CLI_WRONG, "%s: %s", j->set->png, strerror(error)) : CLI_OK;
}

static int work(job *j)
{
    const settings *s = j->set;
    const char *data = s->reconstruct ? s->reconstruct : s->traverse;
    int result = CLI_OK;
    if (data)
        result = vae_open(&vae_command_sample, j->ctx, data, &s->input, j->vae,
                          strcmp(hl_vae_describe(j->vae).likelihood, "gaussian") == 0, &j->images);
    j->rows = hl_images_rows(j->images);
    if (result == CLI_OK)
        result = s->reconstruct ? reconstruct(j) : s->traverse ? traverse(j) : sample(j);
    if (result == CLI_OK && s->png)
        result = write_picture(j);
    if (result == CLI_OK && (s->out || (!s->png && !cli_json_wanted())))
        result = write_numbers(j);
    if (result == CLI_OK && cli_json_wanted())
        print_json(j);
    return result;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)hl_threads_available(), .count = 100 };
    job j = { .set = &set };
    const char *path[2];
    int result = cli_parse(&vae_command_sample, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (set.reconstruct && set.traverse)
        return cli_fail(&vae_command_sample, CLI_WRONG, "--reconstruct and --traverse cannot be combined");
    const cli_path paths[] = { { path[0], CLI_READ, NULL },
                               { set.reconstruct, CLI_READ, NULL },
                               { set.traverse, CLI_READ, NULL },
                               { set.out, CLI_TABLE, NULL },
                               { set.png, CLI_WRITE, NULL } };
    if (cli_check_paths(&vae_command_sample, sizeof paths / sizeof *paths, paths) != CLI_OK)
        return CLI_WRONG;
    if (set.png && cli_check_file(&vae_command_sample, set.png) != CLI_OK)
        return CLI_WRONG;
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_vae_load(j.ctx, path[0], &j.vae);
    result = status == HL_OK ? work(&j) : failed(&j, status);
    hl_images_free(j.images);
    hl_vae_free(j.vae);
    hl_context_free(j.ctx);
    free(j.x);
    return result;
}
