/* table1.c - `hollow paper table1`: autoencoders with six posteriors, and what an exact trace is worth in one of them.
 *
 * With --shared one autoencoder is trained, and then every posterior for its encoder and decoder, which are frozen: log p(x) is
 * then the same for all, so that log p - ELBO is the gap of inference alone. log p is the best bound IWAE-k over all posteriors
 * with an exact log q, row by row. Without --shared all parts are trained, for each posterior by itself.
 *
 * Models, and the results of each row, are files; what is there is not made again, and a training that was killed goes on. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/png.h"
#include "table1.h"

const table1_run table1_runs[TABLE1_RUNS] = {
    { "vae", "vae", NULL },
    { "planar", "planar", NULL },
    { "iaf", "iaf", NULL },
    { "sylvester", "sylvester", NULL },
    { "ffjord", "ffjord", "hutchinson" },
    { "hollow", "hollow", "exact" },
    { "hollow-stochastic", "hollow", "hutchinson" },
};

enum { SIDE = 8, MADE_ROWS = 1200 };

static int failed(const table1 *t, hl_status status)
{
    return cli_fail_library(&paper_command, t->ctx, status);
}

static int no_memory(void)
{
    return cli_no_memory(&paper_command);
}

/* ---- data ---- */

/* Images of two bars, with noise: something to run without files. */
static int make_images(table1 *t)
{
    t->made = malloc(MADE_ROWS * SIDE * SIDE);
    if (!t->made)
        return no_memory();
    for (size_t r = 0; r < MADE_ROWS; r++) {
        size_t a = (size_t)(hl_random_uniform(1, 0, r) * SIDE), b = (size_t)(hl_random_uniform(1, 1, r) * SIDE);
        for (size_t i = 0; i < SIDE * SIDE; i++) {
            bool on = i / SIDE == a || i % SIDE == b, flip = hl_random_uniform(1, 2, r * SIDE * SIDE + i) < 0.03;
            t->made[r * SIDE * SIDE + i] = on != flip;
        }
    }
    t->image[0] = 1;
    t->image[1] = t->image[2] = SIDE;
    t->dim = SIDE * SIDE;
    t->train = (hl_vae_rows){ .rows = MADE_ROWS / 2, .bytes = t->made };
    t->valid = (hl_vae_rows){ .rows = MADE_ROWS / 4, .bytes = t->made + MADE_ROWS / 2 * t->dim };
    t->test = (hl_vae_rows){ .rows = MADE_ROWS / 4, .bytes = t->made + MADE_ROWS / 4 * 3 * t->dim };
    return CLI_OK;
}

static int read_images(table1 *t)
{
    static const char *const names[3][3] = { { "train_bits.npy" },
                                             { "valid_bits.npy", "val_bits.npy" },
                                             { "test_bits.npy" } };
    hl_vae_rows *const rows[3] = { &t->train, &t->valid, &t->test };
    for (size_t i = 0; i < 3; i++) {
        hl_status status = HL_ERR_IO;
        for (size_t k = 0; names[i][k] && status != HL_OK; k++) {
            char path[1000];
            snprintf(path, sizeof path, "%s/%s", t->set->data, names[i][k]);
            status = hl_images_open(t->ctx, path, &(hl_images_options){ .bits = 1 }, &t->file[i]);
        }
        if (status != HL_OK) {
            failed(t, status);
            return cli_fail(&paper_command, CLI_WRONG,
                            "table1 needs train_bits.npy, valid_bits.npy and test_bits.npy, 8 pixels a byte: --data "
                            "DIR says where they are");
        }
        *rows[i] = hl_images_rows(t->file[i]);
        t->dim = hl_images_dim(t->file[i]);
    }
    hl_images_shape(t->file[0], t->image);
    return CLI_OK;
}

/* Evenly spaced rows of the test images, which may be sorted. */
static int choose_rows(table1 *t)
{
    size_t n = t->rows < t->test.rows ? t->rows : t->test.rows;
    t->chosen = malloc(n * t->dim);
    if (!t->chosen)
        return no_memory();
    for (size_t i = 0; i < n; i++)
        memcpy(t->chosen + i * t->dim, t->test.bytes + i * t->test.rows / n * t->dim, t->dim);
    t->test = (hl_vae_rows){ .rows = n, .bytes = t->chosen };
    t->rows = n;
    return CLI_OK;
}

/* ---- training ---- */

static void file_name(const table1 *t, const char *kind, const char *name, const char *suffix, char *path, size_t size)
{
    snprintf(path, size, "%s/table1_%s_%s_%llu%s", t->set->out, kind, name, (unsigned long long)t->set->seed, suffix);
}

static hl_status make_settings(const table1 *t, const table1_run *run, size_t latent, bool frozen, hl_settings **s)
{
    char number[3][32];
    snprintf(number[0], sizeof number[0], "%zu", latent);
    snprintf(number[1], sizeof number[1], "%zu", t->epochs);
    snprintf(number[2], sizeof number[2], "%llu", (unsigned long long)t->set->seed);
    const char *const pairs[][2] = { { "posterior", run->posterior },
                                     { "trace", run->trace },
                                     { "net", t->net },
                                     { "latent", number[0] },
                                     { "epochs", number[1] },
                                     { "seed", number[2] },
                                     { "freeze", frozen ? "on" : NULL },
                                     { "warmup", frozen ? "0" : NULL } };
    hl_status status = hl_settings_create(t->ctx, hl_vae_fit_options(), s);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && status == HL_OK; i++)
        if (pairs[i][1])
            status = hl_settings_set(*s, pairs[i][0], pairs[i][1]);
    return status;
}

typedef struct watch {
    const table1_run *run;
    cli_progress line;
    bool begun;
} watch;

static int progress(const void *report, void *user)
{
    const hl_vae_progress *p = report;
    watch *w = user;
    double fraction = (double)p->iteration / (double)p->iterations;
    if (!w->begun)
        cli_progress_start(&w->line, fraction);
    w->begun = true;
    if (cli_progress_due(&w->line, fraction, p->validated && fraction == 1)) {
        cli_progress_field(&w->line, 0, "%s %zu/%zu", w->run->name, p->iteration, p->iterations);
        cli_progress_field(&w->line, 1, "-ELBO %.2f", p->loss);
        if (!isnan(p->validation))
            cli_progress_field(&w->line, 1, "validation %.2f", p->validation);
        cli_progress_show(&w->line);
    }
    return cli_interrupted();
}

/* What training took, beside its model; a resumed one counts from where it went on. */
static void keep_notes(const char *path, const table1_result *r)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fprintf(f, "{\"seconds\": %.9g, \"epochs\": %.9g, \"validation\": %.9g}\n", r->seconds, r->epochs, r->validation);
    fclose(f);
}

static void read_notes(const char *path, table1_result *r)
{
    FILE *f = fopen(path, "r");
    r->seconds = r->epochs = r->validation = NAN;
    if (f && fscanf(f, "{\"seconds\": %lf, \"epochs\": %lf, \"validation\": %lf}", &r->seconds, &r->epochs,
                    &r->validation) != 3)
        r->seconds = NAN;
    if (f)
        fclose(f);
}

static int train_new(table1 *t, const table1_run *run, const char *kind, size_t latent, const hl_vae *from,
                     table1_result *r, hl_vae **vae)
{
    char model[1100], checkpoint[1100], notes[1100];
    hl_vae_data data = { .dim = t->dim, .train = t->train, .valid = t->valid, .from = from };
    hl_vae_outcome o;
    hl_settings *s = NULL;
    watch w = { .run = run };
    memcpy(data.image, t->image, sizeof data.image);
    file_name(t, kind, run->name, ".hollow", model, sizeof model);
    file_name(t, kind, run->name, ".ckpt", checkpoint, sizeof checkpoint);
    file_name(t, kind, run->name, ".json", notes, sizeof notes);
    hl_job job = {
        .progress = progress, .user = &w, .checkpoint = checkpoint, .resume = access(checkpoint, F_OK) == 0
    };
    hl_status status = make_settings(t, run, latent, from != NULL, &s);
    if (status == HL_OK)
        status = hl_vae_fit(t->ctx, &data, s, &job, vae, &o);
    cli_progress_end(&w.line, false);
    if (status == HL_OK)
        status = hl_vae_save(*vae, model);
    hl_settings_free(s);
    if (status == HL_STOPPED)
        return cli_fail(&paper_command, CLI_STOPPED, "stopped; the same call goes on");
    if (status != HL_OK)
        return failed(t, status);
    unlink(checkpoint);
    *r = (table1_result){ .seconds = o.seconds, .validation = o.best };
    r->epochs = (double)t->epochs * (double)o.iteration / (double)o.iterations;
    keep_notes(notes, r);
    return CLI_OK;
}

int table1_train(table1 *t, const table1_run *run, const char *kind, size_t latent, const hl_vae *from,
                 table1_result *r, hl_vae **vae)
{
    char model[1100], notes[1100];
    file_name(t, kind, run->name, ".hollow", model, sizeof model);
    file_name(t, kind, run->name, ".json", notes, sizeof notes);
    *vae = NULL;
    if (access(model, F_OK) == 0) {
        hl_status status = hl_vae_load(t->ctx, model, vae);
        read_notes(notes, r);
        return status == HL_OK ? CLI_OK : failed(t, status);
    }
    return train_new(t, run, kind, latent, from, r, vae);
}

/* ---- evaluation ---- */

static int evaluate(table1 *t, const char *kind, const table1_run *run, hl_vae *v, table1_result *r)
{
    char path[1100];
    bool stochastic = run->trace && strcmp(run->trace, "hutchinson") == 0;
    hl_vae_row_result *row = calloc(t->rows, sizeof *row);
    hl_vae_result all;
    r->elbo = calloc(t->rows, sizeof *r->elbo);
    r->iwae = calloc(t->rows, sizeof *r->iwae);
    r->parameters = hl_params_size(hl_vae_params(v));
    hl_vae_eval_options o = { .samples = t->importance, .importance = stochastic ? 0 : t->importance };
    hl_status status = row && r->elbo && r->iwae ? hl_vae_evaluate(v, &t->test, &o, row, &all) : HL_ERR_NOMEM;
    for (size_t i = 0; i < t->rows && status == HL_OK; i++) {
        r->elbo[i] = row[i].elbo;
        r->iwae[i] = row[i].iwae;
    }
    free(row);
    if (status != HL_OK)
        return cli_interrupted() ? cli_fail(&paper_command, CLI_STOPPED, "stopped; the same call goes on")
                                 : failed(t, status);
    r->evaluations = all.evaluations;
    file_name(t, kind, run->name, ".png", path, sizeof path);
    double *x = calloc(100, t->dim * sizeof *x);
    status = x ? hl_vae_sample(v, 100, 1, NULL, x) : HL_ERR_NOMEM;
    cli_grid grid = { .count = 100, .columns = 10, .shape = { t->image[0], t->image[1], t->image[2] }, .values = x };
    int error = status == HL_OK ? cli_write_grid(path, &grid) : 0;
    free(x);
    return error             ? cli_fail(&paper_command, CLI_WRONG, "%s: %s", path, strerror(error))
           : status == HL_OK ? CLI_OK
                             : failed(t, status);
}

/* ---- the table ---- */

/* Mean over rows of -a[i] (b NULL), or of a[i] - b[i], and its standard error. */
static double mean_of(const double *a, const double *b, size_t rows, double *error)
{
    double sum = 0, square = 0, n = (double)rows;
    for (size_t i = 0; i < rows; i++) {
        double v = b ? a[i] - b[i] : -a[i];
        sum += v;
        square += v * v;
    }
    *error = sqrt(fmax(square - sum * sum / n, 0) / (n - 1) / n);
    return sum / n;
}

static int write_csv(FILE *out, const void *figure)
{
    const table1 *t = figure;
    double *best = calloc(t->rows, sizeof *best);
    if (!best)
        return -1;
    for (size_t i = 0; i < t->rows; i++) {
        best[i] = -INFINITY;
        for (size_t k = 0; k < TABLE1_RUNS; k++)
            best[i] = isnan(t->result[k].iwae[i]) ? best[i] : fmax(best[i], t->result[k].iwae[i]);
    }
    fprintf(
        out,
        "name,minus_elbo,error,minus_iwae,iwae_error,k,rows,gap,better_than_vae,better_error,significant,validation,"
        "parameters,epochs,seconds_per_epoch,evaluations\n");
    for (size_t k = 0; k < TABLE1_RUNS; k++) {
        const table1_result *r = &t->result[k];
        double error, iwae_error, gap_error, better_error;
        double elbo = mean_of(r->elbo, NULL, t->rows, &error), iwae = mean_of(r->iwae, NULL, t->rows, &iwae_error);
        double gap = mean_of(best, r->elbo, t->rows, &gap_error);
        double better = mean_of(r->elbo, t->result[0].elbo, t->rows, &better_error);
        fprintf(out, "%s,%.4f,%.4f,", table1_runs[k].name, elbo, error);
        if (isnan(iwae))
            fprintf(out, ",,");
        else
            fprintf(out, "%.4f,%.4f,", iwae, iwae_error);
        fprintf(out, "%zu,%zu,%.4f,%.4f,%.4f,%s,%.4f,%zu,%.3g,%.4g,%.0f\n", t->importance, t->rows, gap, better,
                better_error, k && fabs(better) > 1.96 * better_error ? "yes" : "no", r->validation, r->parameters,
                r->epochs, r->seconds / r->epochs, r->evaluations);
    }
    free(best);
    return 0;
}

static int run_all(table1 *t)
{
    const char *kind = t->set->shared ? "shared" : "whole";
    table1_result unused;
    hl_vae *base = NULL;
    int result = t->set->shared ? table1_train(t, &table1_runs[0], "base", t->latent, NULL, &unused, &base) : CLI_OK;
    for (size_t i = 0; i < TABLE1_RUNS && result == CLI_OK; i++) {
        hl_vae *v = NULL;
        result = table1_train(t, &table1_runs[i], kind, t->latent, base, &t->result[i], &v);
        if (result == CLI_OK)
            result = evaluate(t, kind, &table1_runs[i], v, &t->result[i]);
        if (result == CLI_OK) {
            double error, bound = mean_of(t->result[i].elbo, NULL, t->rows, &error);
            cli_say(&paper_command, "%s: -ELBO %.3f +- %.3f, %.3g s an epoch", table1_runs[i].name, bound, error,
                    t->result[i].seconds / t->result[i].epochs);
        }
        hl_vae_free(v);
    }
    hl_vae_free(base);
    const paper_file csv = { t->set->shared ? "table1_shared.csv" : "table1.csv", write_csv, 0, 0 };
    if (result == CLI_OK)
        result = paper_write(t->set, 1, &csv, t);
    return result == CLI_OK ? table1_picture(t) : result;
}

static int run(const paper_settings *set)
{
    bool files = set->data != NULL;
    table1 t = { .set = set,
                 .net = set->net ? set->net : "fc",
                 .latent = set->quick ? 4 : 40,
                 .epochs = set->epochs  ? (size_t)set->epochs
                           : set->quick ? 3
                                        : 30,
                 .rows = set->quick ? 30 : 200,
                 .importance = set->quick ? 10 : 500 };
    int error = cli_make_directory(set->out);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "%s: %s", set->out, strerror(error));
    if (!files && !set->quick)
        return cli_fail(&paper_command, CLI_WRONG,
                        "table1 needs --data DIR with train_bits.npy, valid_bits.npy and test_bits.npy; --quick takes "
                        "made images instead");
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set->threads, .stop = cli_stop }, &t.ctx);
    int result = status == HL_OK ? CLI_OK : cli_fail_library(&paper_command, NULL, status);
    if (result == CLI_OK)
        result = files ? read_images(&t) : make_images(&t);
    if (result == CLI_OK)
        result = choose_rows(&t);
    if (result == CLI_OK)
        result = run_all(&t);
    for (size_t i = 0; i < TABLE1_RUNS; i++) {
        free(t.result[i].elbo);
        free(t.result[i].iwae);
    }
    for (size_t i = 0; i < 3; i++)
        hl_images_free(t.file[i]);
    free(t.made);
    free(t.chosen);
    hl_context_free(t.ctx);
    return result;
}

const paper_item paper_table1 = { "table1", "autoencoders with six posteriors: -ELBO, IWAE, the gap of inference",
                                  run };
