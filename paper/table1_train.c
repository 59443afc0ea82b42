/* table1_train.c - the trainings of `hollow paper table1`: each leaves a model, notes and a curve, and goes on where it was killed.
 *
 * The curve has a line for each validation, with the processor seconds so far. A training that goes on drops the lines after its
 * checkpoint and counts on from the seconds that belong to the checkpoint's iteration. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "table1.h"

static hl_status make_settings(const table1 *t, const table1_run *run, size_t latent, bool given, hl_settings **s)
{
    char number[3][32];
    snprintf(number[0], sizeof number[0], "%zu", latent);
    snprintf(number[1], sizeof number[1], "%zu", t->epochs);
    snprintf(number[2], sizeof number[2], "%llu", (unsigned long long)t->set->seed);
    const char *const pairs[][2] = { { "posterior", run->posterior }, { "net", t->net },
                                     { "latent", number[0] },         { "epochs", number[1] },
                                     { "seed", number[2] },           { "freeze", given && !run->thawed ? "on" : NULL },
                                     { "warmup", given ? "0" : NULL } };
    hl_status status = hl_settings_create(t->ctx, hl_vae_fit_options(), s);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && status == HL_OK; i++)
        if (pairs[i][1])
            status = hl_settings_set(*s, pairs[i][0], pairs[i][1]);
    for (size_t i = 0; i < TABLE1_SETTINGS && status == HL_OK; i++)
        if (run->settings[i][0])
            status = hl_settings_set(*s, run->settings[i][0], run->settings[i][1]);
    return status;
}

/* ---- the curve ---- */

static double cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static const char curve_head[] = "iteration,epoch,cpu_seconds,validation,loss,gradient_norm,ode_steps\n";

static void write_point(FILE *f, const table1_curve *c, size_t i)
{
    fprintf(f, "%.0f,%.6g,%.3f,%.9g,%.9g,%.9g,%.0f\n", c->point[i].iteration, c->point[i].epoch, c->point[i].cpu,
            c->point[i].validation, c->point[i].loss, c->point[i].norm, c->point[i].steps);
}

bool table1_read_curve(const table1 *t, const char *kind, const char *name, table1_curve *c)
{
    char path[1100], line[400];
    table1_path(t, kind, name, ".curve", path, sizeof path);
    c->count = 0;
    FILE *f = fopen(path, "r");
    while (f && c->count < TABLE1_MOST_POINTS && fgets(line, sizeof line, f))
        c->count += sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf", &c->point[c->count].iteration,
                           &c->point[c->count].epoch, &c->point[c->count].cpu, &c->point[c->count].validation,
                           &c->point[c->count].loss, &c->point[c->count].norm, &c->point[c->count].steps) == 7;
    if (f)
        fclose(f);
    return c->count > 0;
}

typedef struct watch {
    const table1 *table;
    const table1_run *run;
    const char *path; /* of the curve */
    table1_curve *curve;
    cli_progress line;
    bool begun;
    double before, start, norm_sum, loss_sum; /* seconds of earlier runs; when this one began */
    size_t summed;
} watch;

/* Lines after the checkpoint go; the seconds of the checkpoint's iteration are on the line through the last point. */
static void begin_curve(watch *w, const hl_vae_progress *p)
{
    table1_curve *c = w->curve;
    double last = c->count ? c->point[c->count - 1].cpu / c->point[c->count - 1].iteration : 0;
    while (c->count && c->point[c->count - 1].iteration > (double)p->iteration)
        c->count--;
    w->before = last * (double)p->iteration;
    w->start = cpu_seconds();
    FILE *f = fopen(w->path, "w");
    if (!f)
        return;
    fputs(curve_head, f);
    for (size_t i = 0; i < c->count; i++)
        write_point(f, c, i);
    fclose(f);
}

static void add_point(watch *w, const hl_vae_progress *p)
{
    table1_curve *c = w->curve;
    if (c->count == TABLE1_MOST_POINTS)
        return;
    double n = (double)(w->summed ? w->summed : 1);
    size_t i = c->count++;
    c->point[i].iteration = (double)p->iteration;
    c->point[i].epoch = p->epoch;
    c->point[i].cpu = w->before + cpu_seconds() - w->start;
    c->point[i].validation = p->validation;
    c->point[i].loss = w->loss_sum / n;
    c->point[i].norm = w->norm_sum / n;
    c->point[i].steps = (double)p->ode_steps;
    w->loss_sum = w->norm_sum = 0;
    w->summed = 0;
    FILE *f = fopen(w->path, "a");
    if (!f)
        return;
    write_point(f, c, i);
    fclose(f);
}

static int progress(const void *report, void *user)
{
    const hl_vae_progress *p = report;
    watch *w = user;
    double fraction = (double)p->iteration / (double)p->iterations;
    if (!w->begun) {
        cli_progress_start(&w->line, fraction);
        begin_curve(w, p);
    } else {
        w->loss_sum += p->loss;
        w->norm_sum += p->gradient_norm;
        w->summed++;
    }
    if (w->begun && p->validated)
        add_point(w, p);
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

/* ---- notes: what training took ---- */

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

/* ---- a training ---- */

static int train_new(table1 *t, const table1_run *run, const char *kind, size_t latent, const hl_vae *from,
                     table1_result *r, hl_vae **vae)
{
    char model[1100], checkpoint[1100], notes[1100], curve[1100];
    hl_vae_data data = { .dim = t->dim, .train = t->train, .valid = t->valid, .from = from };
    hl_vae_outcome o = { 0 };
    hl_settings *s = NULL;
    watch w = { .table = t, .run = run, .path = curve, .curve = calloc(1, sizeof *w.curve) };
    if (!w.curve)
        return cli_no_memory(&paper_command);
    memcpy(data.image, t->image, sizeof data.image);
    table1_path(t, kind, run->name, ".hollow", model, sizeof model);
    table1_path(t, kind, run->name, ".ckpt", checkpoint, sizeof checkpoint);
    table1_path(t, kind, run->name, ".json", notes, sizeof notes);
    table1_path(t, kind, run->name, ".curve", curve, sizeof curve);
    hl_job job = {
        .progress = progress, .user = &w, .checkpoint = checkpoint, .resume = access(checkpoint, F_OK) == 0
    };
    if (job.resume)
        table1_read_curve(t, kind, run->name, w.curve);
    hl_status status = make_settings(t, run, latent, from != NULL, &s);
    if (status == HL_OK)
        status = hl_vae_fit(t->ctx, &data, s, &job, vae, &o);
    cli_progress_end(&w.line, false);
    if (status == HL_OK)
        status = hl_vae_save(*vae, model);
    hl_settings_free(s);
    *r = (table1_result){ .seconds = w.before + cpu_seconds() - w.start, .validation = o.best };
    free(w.curve);
    if (status == HL_STOPPED)
        return cli_fail(&paper_command, CLI_STOPPED, "stopped; run the same command to continue");
    if (status != HL_OK)
        return table1_failed(t, status);
    unlink(checkpoint);
    r->epochs = (double)t->epochs * (double)o.iteration / (double)o.iterations;
    keep_notes(notes, r);
    return CLI_OK;
}

int table1_train(table1 *t, const table1_run *run, const char *kind, size_t latent, const hl_vae *from,
                 table1_result *r, hl_vae **vae)
{
    char model[1100], notes[1100];
    table1_path(t, kind, run->name, ".hollow", model, sizeof model);
    table1_path(t, kind, run->name, ".json", notes, sizeof notes);
    *vae = NULL;
    if (access(model, F_OK) != 0)
        return train_new(t, run, kind, latent, from, r, vae);
    hl_status status = hl_vae_load(t->ctx, model, vae);
    if (status != HL_OK)
        return table1_failed(t, status);
    hl_vae_spec spec = hl_vae_describe(*vae);
    read_notes(notes, r);
    if (strcmp(spec.net, t->net) == 0 && spec.latent == latent && strcmp(spec.posterior, run->posterior) == 0)
        return CLI_OK;
    hl_vae_free(*vae);
    *vae = NULL;
    return cli_fail(&paper_command, CLI_WRONG, "%s has other settings; choose another directory with --out", model);
}

bool table1_is_done(const table1 *t, const char *kind, const table1_run *run)
{
    char model[1100];
    table1_path(t, kind, run->name, ".hollow", model, sizeof model);
    return access(model, F_OK) == 0;
}
