/* sde_fit.c - `hollow sde fit`: hl_sde_learn on the rows of a table, its talk, its files and its pictures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sde.h"

typedef struct settings {
    sde_source source;
    uint64_t threads;
    double save_every;
    const char *out, *log, *plot;
    bool resume;
    cli_chosen chosen; /* of hl_sde_learn_options */
} settings;

static const cli_job learning = { hl_sde_learn_options };

#define AT(member) offsetof(settings, member)
static const cli_option options[] = {
    { "o", CLI_TEXT, AT(out), "MODEL", "model file to write; required", 0, 0, NULL },
    { "columns", CLI_TEXT, AT(source.how.columns), "LIST",
      "columns of x, such as 'a,b' or 2-3; default all other columns", 0, 0, NULL },
    SDE_SOURCE_OPTIONS(settings, source),
    SDE_MOST_OPTION(settings, source),
    { "resume", CLI_FLAG, AT(resume), NULL, "continue from the checkpoint MODEL.ckpt; the result is bitwise the same",
      0, 0, NULL },
    { "save-every", CLI_REAL, AT(save_every), "SECONDS", "seconds between checkpoints in MODEL.ckpt; default 20", 1e-3,
      1e6, NULL },
    { "log", CLI_TEXT, AT(log), "FILE", "write one line of JSON per iteration", 0, 0, NULL },
    { "plot", CLI_TEXT, AT(plot), "DIR", "draw pictures of training, drift, diffusion and marginals in DIR", 0, 0,
      NULL },
    { "threads", CLI_INTEGER, AT(threads), "N", "number of threads; default 1. Does not change results", 1, 256, NULL },
    { .offset = AT(chosen), .more = &learning },
};

static const char text[] =
    "Learns drift f and diffusion g of dx_i = f_i(t, x) dt + g_i(t, x) dW_i from the rows (trajectory, t,\n"
    "x1, x2, ...) of DATA (csv, npy, npz, or - for stdin). Results are in the units of the data; dates\n"
    "are converted to years.\n"
    "\n"
    "By default f and g are linear combinations of basis functions, fitted by regression; see --form. Two\n"
    "methods train networks instead. fp fits a density p(t, x) to all rows, and f and g to its\n"
    "Fokker-Planck equation. It needs no trajectories, but the density must change with time: data with\n"
    "the same distribution at all times do not identify f and g, and the command then reports that\n"
    "instead of training. pseudo-ml treats each step of a trajectory as an Euler step, so the steps must\n"
    "be short. It is the default for fewer than ten trajectories, such as one time series.\n"
    "\n"
    "After training, the model is compared with the data, and the verdict is printed: contradicted if a\n"
    "test of steps, means or simulations fails; not determined if other drifts and diffusions would do as\n"
    "well (wide bands, a regression of half of the data differs, stationary data, few trajectories, ...);\n"
    "else consistent. Tests see errors above about 15 %. Ctrl-C writes a checkpoint, MODEL.ckpt.\n"
    "\n"
    "Under mpirun, the ranks share the batches of networks and of the density. Each rank holds the rows\n"
    "that are used (about 0.2 kB per row of one column, see --most-rows) and computes regressions and the\n"
    "verdict.\n";

static int run(int argc, char **argv);
const cli_command sde_command_fit = { "sde fit",
                                      "DATA -o MODEL [--method fp|pseudo-ml] [--option VALUE ...]",
                                      "learn drift and diffusion from observations",
                                      text,
                                      options,
                                      1,
                                      1,
                                      run };
static const cli_command *const me = &sde_command_fit;

typedef struct job {
    const settings *set;
    hl_context *ctx;
    hl_settings *settings;
    hl_observations *rows;
    hl_sde *sde;
    hl_sde_outcome *outcome;
    char *checkpoint;
    FILE *log;
    cli_curves curves;
    size_t said;  /* findings */
    double start; /* of training */
    bool begun;   /* it has begun */
    bool resume;
    cli_progress progress;
} job;

/* ---- findings ---- */

/* Where a finding is, followed by a colon; "" if that is nowhere. */
static const char *place_of(const job *j, const hl_sde_finding *f, char *buffer, size_t size)
{
    *buffer = 0;
    if (f->row != SIZE_MAX)
        hl_observations_place(j->rows, f->row, f->column, buffer, size);
    else if (f->kind == HL_SDE_FINDING_SAME_TIMES)
        snprintf(buffer, size, "%s: column '%s'", j->set->source.path, j->rows->name[j->rows->dim]);
    else if (f->kind < HL_SDE_FINDING_LITTLE_MOVEMENT)
        snprintf(buffer, size, "%s", j->set->source.path);
    return buffer;
}

static void say_finding(const job *j, const hl_sde_outcome *o, size_t k)
{
    char sentence[800], shown[800], place[400];
    const hl_sde_finding *f = &o->finding[k];
    const char *where = place_of(j, f, place, sizeof place), *colon = *where ? ": " : "";
    cli_dash_options(shown, sizeof shown, hl_sde_finding_text(o, k, sentence, sizeof sentence));
    if (f->fatal) /* an error, also for those who want it quiet; what follows from it is the caller's */
        (void)cli_fail(me, CLI_FAILED, "%s%s%s%s", o->judged ? "training failed: " : "", where, colon, shown);
    else
        cli_say(me, "%s%s%s%s", f->kind == HL_SDE_FINDING_METHOD ? "" : "warning: ", where, colon, shown);
    if (f->kind == HL_SDE_FINDING_FEW_TRAJECTORIES || f->kind == HL_SDE_FINDING_STATIONARY)
        cli_say(me,
                "not identifiable: for every diffusion g there is a drift f = (g^2 p)' / (2 p) for which the density p "
                "is stationary, so f and g are determined only jointly%s",
                f->kind == HL_SDE_FINDING_FEW_TRAJECTORIES ? ", and a stationary path determines no more than p" : "");
}

static void say_findings(job *j, const hl_sde_outcome *o)
{
    while (j->said < o->findings)
        say_finding(j, o, j->said++);
}

/* ---- talk ---- */

/* Once, before training. */
static void begin(job *j, const hl_sde_outcome *o)
{
    j->begun = true;
    j->start = cli_now();
    if (j->log && j->resume)
        cli_cut_log(j->log, o->first);
    if (o->components_chosen)
        cli_say(me, "%zu mixture component%s, chosen on held-out rows (--components)", o->components,
                o->components == 1 ? "" : "s");
    if (o->regression)
        cli_say(me, "drift and diffusion by regression on %s: %s%s (--form)",
                o->regression == 1   ? "snapshots"
                : o->regression == 2 ? "steps"
                                     : "snapshots and steps",
                o->form, o->correlated ? "; correlated noise" : "");
    if (o->regression && hl_context_ranks(j->ctx) > 1)
        cli_say(me, "every rank computes the regression; the ranks share the training of the density");
    if (o->paired)
        cli_say(me, "%zu observations, %zu columns, %zu trajector%s; %zu parameters", o->rows, o->dim, o->trajectories,
                o->trajectories == 1 ? "y" : "ies", o->parameters);
    else
        cli_say(me, "%zu observations, %zu columns, snapshots; %zu parameters", o->rows, o->dim, o->parameters);
    if (!j->resume && access(j->checkpoint, F_OK) == 0)
        cli_say(me, "warning: the checkpoint %s of an earlier run will be replaced; use --resume to continue from it",
                j->checkpoint);
}

static void show(job *j, const hl_sde_progress *p)
{
    static const char *const names[] = { "mean |residual|", "penalty", "step" };
    bool training = p->phase == HL_SDE_PHASE_TRAINING;
    bool bands = p->phase == HL_SDE_PHASE_BANDS;
    size_t every = p->iterations / (training ? 20 : 4) ? p->iterations / (training ? 20 : 4) : 1;
    bool milestone = p->iteration % every == 0 || p->iteration == p->iterations;
    if (!cli_progress_due(&j->progress, p->fraction, milestone))
        return;
    cli_progress_field(&j->progress, 0, "%6zu/%zu", p->iteration, p->iterations);
    if (training) {
        if (!isnan(p->loss))
            cli_progress_field(&j->progress, 2, "%s %9.4g", names[p->kind], p->loss);
        cli_progress_field(&j->progress, 3, "-log p %9.4f", p->nll);
    } else {
        cli_progress_field(&j->progress, 2, bands ? "networks for bands" : "number of components");
    }
    cli_progress_show(&j->progress);
}

static void log_line(job *j, const hl_sde_progress *p)
{
    cli_curves_add(&j->curves, (const double[CLI_CURVES]){ (double)p->iteration, p->loss, p->nll });
    if (!j->log)
        return;
    cli_json json = { .file = j->log };
    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "iteration", p->iteration);
    cli_json_real(&json, "loss", p->loss);
    cli_json_real(&json, "nll", p->nll);
    cli_json_real(&json, "lambda", p->lambda);
    cli_json_real(&json, "drift_gradient", p->gradient_norm[0]);
    cli_json_real(&json, "diffusion_gradient", p->gradient_norm[1]);
    cli_json_real(&json, "density_gradient", p->gradient_norm[2]);
    cli_json_real(&json, "seconds", cli_now() - j->start);
    cli_json_close(&json, '}');
    cli_end_log_line(j->log);
}

static int progress(const void *report, void *user)
{
    const hl_sde_progress *p = report;
    job *j = user;
    say_findings(j, p->outcome);
    if (!(j->progress.start > 0))
        cli_progress_start(&j->progress, p->fraction);
    if (p->phase == HL_SDE_PHASE_TRAINING && !j->begun) {
        begin(j, p->outcome);
        return cli_interrupted();
    }
    show(j, p);
    if (p->phase == HL_SDE_PHASE_TRAINING)
        log_line(j, p);
    return cli_interrupted();
}

/* ---- outcome ---- */

static void conclude(const job *j)
{
    const hl_verdict *v = &j->outcome->verdict;
    char residual[60] = "", moves[200] = "", steps[200] = "", simulated[40] = "simulations diverge";
    if (isfinite(v->residual))
        snprintf(residual, sizeof residual, "; mean |residual| %.4g", v->residual);
    if (!isinf(v->simulated))
        snprintf(simulated, sizeof simulated, "simulations %.1f %%", 100 * v->simulated);
    if (!isnan(v->density))
        snprintf(moves, sizeof moves,
                 "; the data move by %.2g of their spread; of this movement the density misses %.1f %%, %s",
                 v->movement, 100 * v->density, simulated);
    if (v->steps)
        snprintf(steps, sizeof steps,
                 "; tests of %zu steps see errors of %.0f %% in the drift and %.0f %% in the diffusion", v->steps,
                 100 * v->test[HL_RESIDUAL_DRIFT].effect, 100 * v->test[HL_RESIDUAL_DIFFUSION].effect);
    cli_say(me, "%s: %s%s%s%s; %.0f s", j->set->out, hl_answer_name(v->answer), residual, moves, steps,
            j->outcome->seconds);
}

static bool failed(const hl_sde_outcome *o)
{
    for (size_t k = 0; k < o->findings; k++)
        if (o->finding[k].fatal)
            return true;
    return false;
}

/* A model was made: keep it, and say what it is worth. */
static int keep(job *j)
{
    const hl_sde_outcome *o = j->outcome;
    const hl_sde_forms *forms = hl_sde_describe(j->sde).forms;
    for (size_t k = 0; k < hl_sde_forms_constants(forms); k++) {
        hl_sde_constant c = hl_sde_forms_constant(forms, k);
        cli_say(me, "%s = %.6g, standard error %.2g", c.name, c.value, c.error);
    }
    if (!cli_is_first_rank())
        return failed(o) ? CLI_FAILED : CLI_OK;
    hl_status status = hl_sde_save(j->sde, j->set->out);
    if (status != HL_OK)
        return cli_fail_library(me, j->ctx, status);
    unlink(j->checkpoint);
    conclude(j);
    int result = failed(o) ? CLI_FAILED : CLI_OK;
    say_findings(j, o);
    if (cli_json_wanted())
        sde_print_outcome(j->set->out, j->sde, o);
    int drawn = j->set->plot
                    ? sde_plot(j->set->plot, j->sde, j->rows, o->judge, o->method == HL_SDE_FOKKER_PLANCK, &j->curves)
                    : CLI_OK; /* pictures are of most use where it failed */
    return result == CLI_OK ? drawn : result;
}

/* No model was made. */
static int refuse(job *j, hl_status status)
{
    const hl_sde_outcome *o = j->outcome;
    const hl_sde_finding *last = o && o->findings ? &o->finding[o->findings - 1] : NULL;
    if (j->begun && status != HL_ERR_NOMEM)
        return cli_fail(me, CLI_FAILED, "training failed: %s; no model is written; try a smaller --lr",
                        hl_context_message(j->ctx));
    if (!last || !last->fatal)
        return cli_fail_job(me, j->ctx, status);
    say_findings(j, o);
    if (last->kind != HL_SDE_FINDING_STATIONARY && last->kind != HL_SDE_FINDING_FEW_TRAJECTORIES)
        return CLI_WRONG;
    return cli_fail(me, CLI_FAILED,
                    "not trained. %sWith --known-diffusion the drift for a given diffusion can be learned; --anyway "
                    "trains in any case",
                    o->paired ? "--method pseudo-ml uses the steps of trajectories instead. " : "");
}

/* ---- the command ---- */

static int learn(job *j)
{
    const settings *s = j->set;
    hl_sde_observations data = hl_observations_rows(j->rows);
    hl_job how = { progress, j, j->checkpoint, j->resume, s->save_every, cli_say_unsaved };
    hl_status status = hl_sde_learn(j->ctx, &data, j->settings, &how, &j->sde, &j->outcome);
    cli_progress_end(&j->progress, true);
    if (status == HL_OK)
        return keep(j);
    if (status != HL_STOPPED)
        return refuse(j, status);
    return j->begun ? cli_fail(me, CLI_STOPPED,
                               "stopped; checkpoint %s is written; run the same command with --resume to continue",
                               j->checkpoint)
                    : cli_fail(me, CLI_STOPPED, "stopped before training; no file is written");
}

static int fit(job *j)
{
    const settings *s = j->set;
    const cli_outputs outputs = { .data = s->source.path, .model = s->out, .log = s->log, .plot = s->plot };
    int result = cli_make_settings(me, j->ctx, &s->chosen, &j->settings);
    if (result == CLI_OK)
        result = cli_use_ranks(me, j->ctx);
    if (result == CLI_OK)
        result = cli_check_outputs(me, j->ctx, &outputs, &j->checkpoint);
    if (result == CLI_OK)
        result = cli_check_resume(me, s->out, j->checkpoint, &j->resume);
    if (result == CLI_OK)
        result = sde_read(me, j->ctx, &s->source, &j->rows);
    if (result == CLI_OK)
        result = cli_open_log(me, s->log, j->resume, &j->log);
    return result == CLI_OK ? learn(j) : result;
}

static int run(int argc, char **argv)
{
    settings set = { .threads = 1, .save_every = 20, .source.how.min_rows = 2, .source.most = SDE_MOST_ROWS };
    const char *path[2];
    int result = cli_parse(me, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (!set.out)
        return cli_fail(me, CLI_WRONG, "-o MODEL is required: the file to write the model to");
    set.source.path = path[0];
    job j = { .set = &set, .resume = set.resume };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    result = status == HL_OK ? fit(&j) : cli_fail_library(me, NULL, status);
    result = cli_close_log(me, set.log, j.log, result);
    hl_sde_outcome_free(j.outcome);
    hl_sde_free(j.sde);
    hl_settings_free(j.settings);
    hl_observations_free(j.rows);
    hl_context_free(j.ctx);
    free(j.checkpoint);
    free(j.curves.point);
    return result;
}
