/* vae_fit.c - `hollow vae fit`: train an autoencoder. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vae.h"

typedef struct settings {
    uint64_t threads;
    double save_every;
    const char *out, *valid, *from, *log;
    vae_input input;
    bool resume;
    cli_chosen chosen;
} settings;

#define AT(member) offsetof(settings, member)
static const cli_option options[] = {
    { "o", CLI_TEXT, AT(out), "MODEL", "model file to write; required", 0, 0, NULL },
    { "valid", CLI_TEXT, AT(valid), "FILE", "validation rows; default a tenth of DATA", 0, 0, NULL },
    VAE_INPUT_OPTIONS(settings),
    { "from", CLI_TEXT, AT(from), "MODEL", "start from the encoder and decoder of this model", 0, 0, NULL },
    { "resume", CLI_FLAG, AT(resume), NULL, "continue from the checkpoint MODEL.ckpt; the result is bitwise the same",
      0, 0, NULL },
    { "save-every", CLI_REAL, AT(save_every), "SECONDS", "seconds between checkpoints in MODEL.ckpt; default 20", 0,
      1e6, NULL },
    { "log", CLI_TEXT, AT(log), "FILE", "write one line of JSON per iteration", 0, 0, NULL },
    { "threads", CLI_INTEGER, AT(threads), "N", "number of threads; default all. Does not change results", 1, 256,
      NULL },
    { .offset = AT(chosen), .more = &(const cli_job){ hl_vae_fit_options } },
};

static const char text[] =
    "Trains an autoencoder on the rows of DATA (npy, npz, csv or idx): pixels 0 and 1, gray values 0 to\n"
    "255, or packed bits (--bits). Gray values are converted to random bits once, or in every epoch with\n"
    "--dynamic. --likelihood gaussian accepts any numbers. The model with the best -ELBO of validation\n"
    "rows, after the warm-up of beta, is written. Ctrl-C writes a checkpoint, MODEL.ckpt; --resume\n"
    "continues from it.\n";

static int run(int argc, char **argv);
const cli_command vae_command_fit = {
    "vae fit", "DATA -o MODEL [--option VALUE ...]", "train an autoencoder on images", text, options, 1, 1, run
};

typedef struct job {
    const settings *set;
    const char *path;
    hl_context *ctx;
    hl_settings *settings;
    hl_images *train, *valid;
    hl_vae *from, *vae;
    char *checkpoint;
    bool resume, started;
    FILE *log;
    cli_progress progress;
} job;

/* ---- reports ---- */

static void log_line(job *j, const hl_vae_progress *p)
{
    cli_json json = { .file = j->log };
    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "iteration", p->iteration);
    cli_json_real(&json, "epoch", p->epoch);
    cli_json_real(&json, "loss", p->loss);
    cli_json_real(&json, "beta", p->beta);
    cli_json_real(&json, "gradient_norm", p->gradient_norm);
    if (p->validated)
        cli_json_real(&json, "validation", p->validation);
    if (p->ode_steps)
        cli_json_count(&json, "ode_steps", p->ode_steps);
    cli_json_real(&json, "seconds", p->seconds);
    cli_json_close(&json, '}');
    cli_end_log_line(j->log);
}

/* Bits are drawn from gray values with P(1) = value / 255, so that images of another scale come out nearly black. Looks at some rows,
 * evenly spaced. */
static void say_dark(const job *j, bool gray)
{
    enum { DARK = 64, LOOK = 1000 };
    const hl_vae_source source = hl_images_source(j->train);
    size_t dim = hl_images_dim(j->train), look = source.rows < LOOK ? source.rows : LOOK;
    unsigned char *row = gray ? malloc(dim) : NULL;
    unsigned most = 0;
    bool good = row != NULL;
    for (size_t r = 0; r < look && good; r++) {
        size_t at = (size_t)((double)r * (double)source.rows / (double)look);
        good = source.read(1, &at, row, source.user) == HL_OK;
        for (size_t i = 0; i < dim && good; i++)
            most = row[i] > most ? row[i] : most;
    }
    free(row);
    if (good && most < DARK)
        cli_say(&vae_command_fit, "the largest gray value is %u, but white is 255; if %u is white, rescale the images",
                most, most);
}

static int progress(const void *report, void *user)
{
    const hl_vae_progress *p = report;
    job *j = user;
    double fraction = (double)p->iteration / (double)p->iterations;
    if (!j->started) {
        hl_vae_rows rows = hl_images_rows(j->train);
        cli_say(&vae_command_fit, "%zu rows of %zu values%s, %zu parameters, %zu iterations", rows.rows,
                hl_images_dim(j->train), rows.gray ? ", gray" : "", p->parameters, p->iterations);
        say_dark(j, rows.gray);
        cli_progress_start(&j->progress, fraction);
        if (j->log && j->resume)
            cli_cut_log(j->log, p->iteration);
        j->started = true;
        return 0;
    }
    if (j->log)
        log_line(j, p);
    if (p->steps_doubled)
        cli_say(&vae_command_fit, "the ODE steps of training were too few; training now uses %zu", p->ode_steps);
    if (!cli_progress_due(&j->progress, fraction, p->validated))
        return 0;
    cli_progress_field(&j->progress, 0, "%6zu/%zu", p->iteration, p->iterations);
    cli_progress_field(&j->progress, 3, "epoch %.1f", p->epoch);
    cli_progress_field(&j->progress, 2, "-ELBO %8.3f", p->loss);
    if (!isnan(p->validation))
        cli_progress_field(&j->progress, 1, "validation %8.3f", p->validation);
    if (p->beta < 1)
        cli_progress_field(&j->progress, 4, "beta %.2f", p->beta);
    cli_progress_show(&j->progress);
    return 0;
}

/* ---- the call ---- */

static const char *const ends[] = { "done", "patience", "time", "stopped" };

static void print_json(const job *j, const hl_vae_outcome *o)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", j->set->out);
    cli_json_text(&json, "end", ends[o->end]);
    cli_json_real(&json, "validation", o->best);
    cli_json_real(&json, "simple", o->simple);
    cli_json_count(&json, "iteration", o->iteration);
    cli_json_count(&json, "iterations", o->iterations);
    cli_json_count(&json, "best_iteration", o->best_iteration);
    cli_json_count(&json, "train_rows", o->train_rows);
    cli_json_count(&json, "valid_rows", o->valid_rows);
    cli_json_count(&json, "parameters", o->parameters);
    cli_json_count(&json, "ode_steps", o->ode_steps);
    cli_json_count(&json, "constant_columns", o->constant_columns);
    cli_json_real(&json, "seconds", o->seconds);
    cli_json_close(&json, '}');
    printf("\n");
}

/* What the autoencoder gained over what needs no network. */
static void say_gain(const job *j, const hl_vae_outcome *o)
{
    const char *likelihood = hl_settings_text(j->settings, "likelihood");
    const char *simple =
        likelihood && strcmp(likelihood, "gaussian") == 0 ? "a normal distribution" : "independent pixels";
    if (isnan(o->best) || isnan(o->simple))
        return;
    if (o->best < o->simple)
        cli_say(&vae_command_fit, "%.3f nats per row better than -log p of %s", o->simple - o->best, simple);
    else
        cli_say(&vae_command_fit,
                "warning: %s has -log p %.3f, lower by %.3f nats per row. -ELBO is only a bound, see 'hollow vae eval "
                "--iwae'; else train longer (--epochs), or model the density with 'hollow fit'",
                simple, o->simple, o->best - o->simple);
}

static void say_constant(const job *j, const hl_vae_outcome *o)
{
    const char *name = hl_vae_name(j->vae, o->first_constant);
    if (o->constant_columns)
        cli_say(&vae_command_fit,
                "warning: column %zu%s%s%s is constant%s; it adds a constant to the bound and has the least possible "
                "noise in samples; leave it out",
                o->first_constant + 1, name ? " (" : "", name ? name : "", name ? ")" : "",
                o->constant_columns > 1 ? ", and others are" : "");
}

static int conclude(job *j, hl_status status, const hl_vae_outcome *o)
{
    cli_progress_end(&j->progress, true);
    if (status == HL_STOPPED)
        return cli_fail(&vae_command_fit, CLI_STOPPED,
                        "stopped; checkpoint %s is written; run the same command with --resume to continue",
                        j->checkpoint);
    if (status != HL_OK)
        return status == HL_ERR_NOT_FINITE ? cli_fail(&vae_command_fit, CLI_FAILED, "%s", hl_context_message(j->ctx))
                                           : cli_fail_job(&vae_command_fit, j->ctx, status);
    if (!cli_is_first_rank())
        return CLI_OK;
    status = hl_vae_save(j->vae, j->set->out);
    if (status != HL_OK)
        return cli_fail_library(&vae_command_fit, j->ctx, status);
    unlink(j->checkpoint);
    if (isnan(o->best))
        cli_say(&vae_command_fit, "no validation after the warm-up; %s is the last model", j->set->out);
    else
        cli_say(&vae_command_fit, "-ELBO %.3f nats per row on %zu validation rows, iteration %zu%s", o->best,
                o->valid_rows, o->best_iteration,
                o->end == HL_VAE_END_PATIENCE ? "; stopped without further improvement (--patience)"
                : o->end == HL_VAE_END_TIME   ? "; stopped by --minutes"
                                              : "");
    say_gain(j, o);
    say_constant(j, o);
    if (cli_json_wanted())
        print_json(j, o);
    return CLI_OK;
}

static int train(job *j)
{
    hl_vae_source source = hl_images_source(j->train); /* read by batches */
    hl_vae_data data = {
        .dim = hl_images_dim(j->train), .source = &source, .from = j->from, .names = hl_images_names(j->train)
    };
    if (j->valid)
        data.valid = hl_images_rows(j->valid);
    hl_images_shape(j->train, data.image);
    if (j->valid && hl_images_dim(j->valid) != data.dim)
        return cli_fail(&vae_command_fit, CLI_WRONG, "%s: rows have %zu values, but those of %s have %zu",
                        j->set->valid, hl_images_dim(j->valid), j->path, data.dim);
    hl_job how = { .progress = progress,
                   .unsaved = cli_say_unsaved,
                   .user = j,
                   .checkpoint = j->checkpoint,
                   .resume = j->resume,
                   .save_every = j->set->save_every > 0 ? j->set->save_every : 1e-9 };
    hl_vae_outcome outcome;
    hl_status status = hl_vae_fit(j->ctx, &data, j->settings, &how, &j->vae, &outcome);
    return conclude(j, status, &outcome);
}

static int fit(job *j)
{
    const settings *s = j->set;
    vae_input training = s->input;
    const char *likelihood = hl_settings_text(j->settings, "likelihood");
    bool real = likelihood && strcmp(likelihood, "gaussian") == 0;
    const cli_outputs outputs = {
        .data = j->path, .more_data = s->valid, .from = s->from, .model = s->out, .log = s->log
    };
    training.in_file = true;
    int result = cli_check_outputs(&vae_command_fit, j->ctx, &outputs, &j->checkpoint);
    if (result == CLI_OK)
        result = cli_check_resume(&vae_command_fit, s->out, j->checkpoint, &j->resume);
    if (result == CLI_OK)
        result = vae_open(&vae_command_fit, j->ctx, j->path, &training, NULL, real, &j->train);
    if (result == CLI_OK && s->valid)
        result = vae_open(&vae_command_fit, j->ctx, s->valid, &s->input, NULL, real, &j->valid);
    hl_status status = result == CLI_OK && s->from ? hl_vae_load(j->ctx, s->from, &j->from) : HL_OK;
    if (status != HL_OK)
        result = cli_fail_library(&vae_command_fit, j->ctx, status);
    if (result == CLI_OK)
        result = cli_open_log(&vae_command_fit, s->log, j->resume, &j->log);
    if (result == CLI_OK)
        result = train(j);
    return cli_close_log(&vae_command_fit, s->log, j->log, result);
}

static int run(int argc, char **argv)
{
    settings set = { .threads = (uint64_t)cli_threads(), .save_every = 20 };
    job j = { .set = &set };
    const char *path[2];
    int result = cli_parse(&vae_command_fit, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (!set.out)
        return cli_fail(&vae_command_fit, CLI_WRONG, "-o MODEL is required: the file to write the model to");
    j.path = path[0];
    j.resume = set.resume;
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    result = status == HL_OK ? cli_make_settings(&vae_command_fit, j.ctx, &set.chosen, &j.settings)
                             : cli_fail_library(&vae_command_fit, NULL, status);
    if (result == CLI_OK)
        result = cli_use_ranks(&vae_command_fit, j.ctx);
    if (result == CLI_OK)
        result = fit(&j);
    hl_images_free(j.train);
    hl_images_free(j.valid);
    hl_vae_free(j.from);
    hl_vae_free(j.vae);
    hl_settings_free(j.settings);
    hl_context_free(j.ctx);
    free(j.checkpoint);
    return result;
}
