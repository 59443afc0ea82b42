/* table1_evaluate.c - bounds of the test rows of `hollow paper table1`, and pictures of samples. Each part is a file of one line per
 * row, so that it is not computed again. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/png.h"
#include "table1.h"

static const char *const suffix[TABLE1_PARTS] = { ".elbo.csv", ".more.csv", ".few.csv" };

/* ---- files of rows ---- */

static bool read_rows(const char *path, size_t rows, size_t samples, hl_vae_row_result *row, double *evaluations)
{
    FILE *f = fopen(path, "r");
    size_t count = 0, k = 0;
    bool good = f && fscanf(f, "# samples %zu evaluations %lf\n", &k, evaluations) == 2 && k == samples &&
                fscanf(f, "elbo,reconstruction,log_det,iwae,effective\n") == 0;
    while (good && count < rows &&
           fscanf(f, "%lf,%lf,%lf,%lf,%lf\n", &row[count].elbo, &row[count].reconstruction, &row[count].log_det,
                  &row[count].iwae, &row[count].effective) == 5)
        count++;
    if (f)
        fclose(f);
    return good && count == rows;
}

typedef struct rows_file {
    size_t rows, samples;
    const hl_vae_row_result *row;
    double evaluations;
} rows_file;

static int write_rows(FILE *f, const void *figure)
{
    const rows_file *w = figure;
    fprintf(f, "# samples %zu evaluations %.0f\nelbo,reconstruction,log_det,iwae,effective\n", w->samples,
            w->evaluations);
    for (size_t i = 0; i < w->rows; i++)
        fprintf(f, "%.9g,%.9g,%.9g,%.9g,%.6g\n", w->row[i].elbo, w->row[i].reconstruction, w->row[i].log_det,
                w->row[i].iwae, w->row[i].effective);
    return 0;
}

/* ---- progress ---- */

typedef struct watch {
    cli_progress line;
    const char *name;
    size_t samples;
} watch;

static int show(size_t done, size_t rows, void *user)
{
    watch *w = user;
    if (cli_progress_due(&w->line, (double)done / (double)rows, done == rows)) {
        cli_progress_field(&w->line, 0, "%s: %zu samples of row %zu/%zu", w->name, w->samples, done, rows);
        cli_progress_show(&w->line);
    }
    return cli_interrupted();
}

/* ---- a part ---- */

static int evaluate_part(table1 *t, const char *kind, const table1_run *run, hl_vae *v, table1_result *r, int part)
{
    const hl_vae_rows *rows = &t->part[part];
    char path[1100];
    hl_vae_spec spec = hl_vae_describe(v);
    bool exact = strcmp(spec.trace, "hutchinson") != 0;
    watch w = { .name = run->name, .samples = t->samples[part] };
    hl_vae_eval_options o = { .samples = t->samples[part],
                              .importance = part != TABLE1_ALL && exact ? t->samples[part] : 0,
                              .progress = show,
                              .user = &w };
    hl_vae_result all;
    if (part != TABLE1_ALL && !exact)
        o.samples = t->samples[TABLE1_MORE]; /* for -ELBO alone more would gain nothing */
    table1_path(t, kind, run->name, suffix[part], path, sizeof path);
    r->row[part] = calloc(rows->rows, sizeof *r->row[part]);
    if (!r->row[part])
        return cli_no_memory(&paper_command);
    if (read_rows(path, rows->rows, o.samples, r->row[part], &r->evaluations))
        return CLI_OK;
    cli_progress_start(&w.line, 0);
    hl_status status = hl_vae_evaluate(v, rows, &o, r->row[part], &all);
    cli_progress_end(&w.line, false);
    if (status != HL_OK)
        return cli_interrupted() ? cli_fail(&paper_command, CLI_STOPPED, "stopped; run the same command to continue")
                                 : table1_failed(t, status);
    r->evaluations = all.evaluations;
    const rows_file file = { rows->rows, o.samples, r->row[part], r->evaluations };
    const paper_file csv = { strrchr(path, '/') + 1, write_rows, 0, 0 };
    return paper_write(t->set, 1, &csv, &file);
}

/* 10 x 10 samples of the model. */
static int draw_samples(table1 *t, const char *kind, const table1_run *run, hl_vae *v)
{
    char path[1100];
    table1_path(t, kind, run->name, ".png", path, sizeof path);
    double *x = calloc(100, t->dim * sizeof *x);
    hl_status status = x ? hl_vae_sample(v, 100, 1, NULL, x) : HL_ERR_NOMEM;
    cli_grid grid = { .count = 100, .columns = 10, .shape = { t->image[0], t->image[1], t->image[2] }, .values = x };
    int error = status == HL_OK ? cli_write_grid(path, &grid) : 0;
    free(x);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "%s: %s", path, strerror(error));
    return status == HL_OK ? CLI_OK : table1_failed(t, status);
}

int table1_evaluate(table1 *t, const char *kind, const table1_run *run, hl_vae *v, table1_result *r)
{
    int result = draw_samples(t, kind, run, v);
    r->parameters = hl_params_size(hl_vae_params(v));
    for (int part = 0; part < TABLE1_PARTS && result == CLI_OK; part++)
        result = evaluate_part(t, kind, run, v, r, part);
    r->there = result == CLI_OK;
    return result;
}
