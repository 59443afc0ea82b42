/* fit_report.c - `hollow fit`: what the library reports, as text and JSON. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "fit.h"

enum { SHOWN = 5 }; /* findings of a kind */

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* ---- findings ---- */

static void say_finding(const fit_job *j, const hl_finding *f)
{
    char place[400] = "", sentence[600], text[700];
    bool remark = f->noise > 0 || f->kind >= HL_FINDING_EDGE, far = f->kind == HL_FINDING_FAR;
    if (far)
        hl_table_place(j->table, f->row, HL_NO_COLUMN, place, sizeof place);
    cli_dash_options(text, sizeof text, hl_finding_text(f, j->names, sentence, sizeof sentence));
    cli_say(&cli_fit, "%s%s%s%s", remark ? "" : "warning: ", place, far ? ": " : "", text);
}

static void say_warnings(const fit_job *j, const hl_density_outcome *o)
{
    size_t said[HL_FINDING_ATOM + 1] = { 0 };
    for (size_t i = 0; i < o->findings; i++)
        if (++said[o->finding[i].kind] <= SHOWN)
            say_finding(j, &o->finding[i]);
    for (size_t k = 0; k < sizeof said / sizeof *said; k++)
        if (said[k] > SHOWN)
            cli_say(&cli_fit, "the same applies to %zu more column%s (%s)", said[k] - SHOWN, plural(said[k] - SHOWN),
                    hl_finding_name((hl_finding_kind)k));
}

bool fit_has_atoms(const hl_density_outcome *o)
{
    for (size_t i = 0; o && i < o->findings; i++)
        if (o->finding[i].kind == HL_FINDING_ATOM)
            return true;
    return false;
}

bool fit_refuse(const fit_job *j, const hl_density_outcome *o)
{
    char list[600] = "", text[600];
    size_t used = 0, constant = 0, scale = 0;
    for (size_t i = 0; i < o->findings; i++) {
        const hl_finding *f = &o->finding[i];
        if (f->kind == HL_FINDING_CONSTANT && constant++ < 2 * SHOWN && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.80s' (%g)", *list ? ", " : "",
                                     j->names[f->column], f->value);
        if (f->kind == HL_FINDING_SCALE && scale++ < SHOWN)
            cli_fail(&cli_fit, CLI_WRONG, "%s: %s", j->path, hl_finding_text(f, j->names, text, sizeof text));
    }
    if (constant >= j->dim && j->set->drop_constant)
        cli_fail(&cli_fit, CLI_WRONG, "%s: all columns are constant; there is nothing to model", j->path);
    else if (constant)
        cli_fail(&cli_fit, CLI_WRONG,
                 "%s: column%s %s%s %s constant and %s no density; remove %s with --drop-constant or --exclude",
                 j->path, constant > 1 ? "s" : "", list, constant > 2 * SHOWN ? ", ..." : "",
                 constant > 1 ? "are" : "is", constant > 1 ? "have" : "has", constant > 1 ? "them" : "it");
    return constant || scale;
}

/* ---- progress ---- */

/* Settings of flows where there is none. */
static void say_unused(const fit_job *j)
{
    static const char *const flows[] = { "model",    "flows", "conditioner", "hidden",     "hidden-layers",
                                         "features", "width", "layers",      "activation", "iters",
                                         "batch",    "lr",    "loss",        "trace",      "solver",
                                         "rtol",     "atol",  "ode-steps",   "jitter",     "decorrelate" };
    const char *members = hl_settings_text(j->settings, "members");
    char list[300] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof flows / sizeof *flows && used < sizeof list; i++)
        if (hl_settings_text(j->settings, flows[i]))
            used += (size_t)snprintf(list + used, sizeof list - used, "%s--%s", used ? ", " : "", flows[i]);
    if (members && strcmp(members, "mixture") == 0 && used)
        cli_say(&cli_fit, "%s: no effect with --members mixture, as no flow is trained", list);
}

static void say_start(fit_job *j, const hl_density_progress *p)
{
    const hl_density_outcome *o = p->so_far;
    say_warnings(j, o);
    char size[60] = "";
    if (o->parameters)
        snprintf(size, sizeof size, "; %zu parameters", o->parameters);
    cli_say(&cli_fit, "%zu training row%s, %zu validation row%s, %zu column%s%s%s", o->train_rows,
            plural(o->train_rows), o->valid_rows, plural(o->valid_rows), j->dim, plural(j->dim),
            j->context ? " conditional on the context" : "", size);
    say_unused(j);
    if (!o->valid_rows && !fit_has_atoms(o) && !hl_settings_text(j->settings, "members"))
        cli_say(&cli_fit,
                "there are no validation rows to weight mixtures, so the model is a flow only (see --members)");
    if (!j->resume && access(j->checkpoint, F_OK) == 0)
        cli_say(&cli_fit,
                "warning: the checkpoint %s of an earlier run will be replaced; use --resume to continue from it",
                j->checkpoint);
    if (j->log && j->resume)
        cli_cut_log(j->log, p->iteration);
    fit_free_rows(j);
    cli_progress_start(&j->progress, 0);
}

static void say_progress(fit_job *j, const hl_density_progress *p)
{
    cli_progress *line = &j->progress;
    double all = p->seconds + p->seconds_left;
    if (p->steps_doubled)
        cli_say(&cli_fit,
                "the ODE steps of training were doubled: validation is %.3f nats with them and %.3f with the adaptive "
                "solver",
                p->validation_fixed, p->validation);
    if (!cli_progress_due(line, all > 0 ? p->seconds / all : 0, p->validated))
        return;
    cli_progress_field(line, 0, "%6zu/%zu", p->iteration, p->iterations);
    cli_progress_field(line, 3, "%-13s", hl_fit_phase_name(p->phase));
    cli_progress_field(line, 2, "loss %9.4f", p->loss);
    if (isfinite(p->best)) {
        cli_progress_field(line, 4, "valid %9.4f", p->validation);
        cli_progress_field(line, 2, "best %9.4f", p->best);
    }
    cli_progress_field(line, 5, "NFE %3.0f", p->evaluations);
    cli_progress_field(line, 6, "%6.0f rows/s", p->rows_per_second);
    cli_progress_show(line);
}

static void write_log(FILE *log, const hl_density_progress *p)
{
    cli_json json = { .file = log };
    cli_json_open(&json, NULL, '{');
    cli_json_count(&json, "iteration", p->iteration);
    cli_json_text(&json, "phase", hl_fit_phase_name(p->phase));
    cli_json_real(&json, "loss", p->loss);
    cli_json_real(&json, "gradient_norm", p->gradient_norm);
    cli_json_real(&json, "evaluations", p->evaluations);
    cli_json_real(&json, "backward", p->backward);
    cli_json_count(&json, "ode_steps", p->ode_steps);
    cli_json_real(&json, "seconds", p->seconds);
    if (p->validated) {
        cli_json_real(&json, "validation", p->validation);
        cli_json_real(&json, "validation_fixed", p->validation_fixed);
        cli_json_real(&json, "best", p->best);
    }
    cli_json_close(&json, '}');
    cli_end_log_line(log);
}

int fit_progress(const void *report, void *user)
{
    const hl_density_progress *p = report;
    fit_job *j = user;
    if (p->phase == HL_FIT_MIXING) {
        if (!(j->progress.start > 0) || j->progress.fraction > 0) /* the first, or the next pattern of atoms */
            cli_progress_start(&j->progress, 0);
        if (cli_progress_due(&j->progress, 0, false)) {
            cli_progress_field(&j->progress, 0, "mixtures, %.0f s", p->seconds);
            cli_progress_show(&j->progress);
        }
        return cli_interrupted();
    }
    if (p->phase == HL_FIT_START) {
        say_start(j, p);
        return cli_interrupted();
    }
    say_progress(j, p);
    if (j->log)
        write_log(j->log, p);
    if (j->set->plot)
        fit_add_point(&j->curves, p);
    return cli_interrupted();
}

/* ---- outcome ---- */

static void print_json(const fit_job *j, const hl_density_outcome *o)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", j->set->out);
    cli_json_text(&json, "verdict", hl_density_verdict_name(o->verdict));
    cli_json_text(&json, "end", hl_density_end_name(o->end));
    cli_json_count(&json, "iterations", o->iteration);
    cli_json_count(&json, "extensions", o->extensions);
    cli_json_count(&json, "best_iteration", o->best_iteration);
    cli_json_exact(&json, "validation", o->best);
    cli_json_exact(&json, "normal", o->normal);
    cli_json_exact(&json, "mixture", o->mixture);
    cli_json_exact(&json, "flow", o->flow);
    cli_json_exact(&json, "gain", o->gain);
    cli_json_exact(&json, "gain_error", o->gain_error);
    cli_json_count(&json, "gain_rows", o->gain_rows);
    cli_json_real(&json, "seconds", o->seconds);
    cli_json_count(&json, "ranks", hl_context_ranks(j->ctx));
    cli_exchange e = cli_exchanged();
    cli_json_real(&json, "gathered_seconds", hl_context_gathered(j->ctx));
    cli_json_real(&json, "compute_seconds", e.compute);
    cli_json_count(&json, "exchanges", e.count);
    cli_json_count(&json, "exchanged_bytes", e.bytes);
    cli_json_count(&json, "rows", o->train_rows);
    cli_json_count(&json, "validation_rows", o->valid_rows);
    cli_json_count(&json, "columns", j->dim);
    cli_json_count(&json, "parameters", o->parameters);
    cli_json_bool(&json, "decorrelated", o->decorrelated);
    cli_json_open(&json, "findings", '[');
    for (size_t i = 0; i < o->findings; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "kind", hl_finding_name(o->finding[i].kind));
        if (o->finding[i].kind != HL_FINDING_COPIES && o->finding[i].kind != HL_FINDING_DUPLICATES)
            cli_json_text(&json, "column", j->names[o->finding[i].column]);
        cli_json_exact(&json, "value", o->finding[i].value);
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}

static const double STILL_FALLING = 0.01; /* nats in a twentieth of the iterations */

/* Of a model without training. */
static void say_untrained(const fit_job *j, const hl_density_outcome *o)
{
    const char *members = hl_settings_text(j->settings, "members");
    if (o->end == HL_DENSITY_END_BEHIND)
        cli_say(&cli_fit, "no flow is trained: in short trials it was %.2f nats worse than the mixtures",
                o->flow - o->mixture);
    else if (!members || strcmp(members, "mixture") != 0)
        cli_say(&cli_fit, "no flow is trained: %zu validation row%s too few to select it", o->valid_rows,
                o->valid_rows == 1 ? " is" : "s are");
    cli_say(&cli_fit, "the model is a mixture of %zu component%s", o->parts, o->parts == 1 ? "" : "s");
}

/* What the flow added to the mixtures, and whether more iterations may add more, which they cannot if the model has no flow. */
static void say_gain(const fit_job *j, const hl_density_outcome *o)
{
    bool has_flow = isnan(o->mixture) || o->best < o->mixture;
    if (o->extensions)
        cli_say(&cli_fit, "the schedule was extended %s, to %zu iterations, as validation was still improving",
                o->extensions == 1   ? "once"
                : o->extensions == 2 ? "twice"
                                     : "several times",
                o->iterations);
    if (has_flow && o->fall > STILL_FALLING)
        cli_say(&cli_fit,
                "validation was still improving at the last iteration, by %.3f nats; try more --iters, --extensions or "
                "--recipe best",
                o->fall);
    if (isnan(o->mixture))
        return;
    if (!o->iteration)
        say_untrained(j, o);
    else if (!has_flow)
        cli_say(&cli_fit, "the flow does not improve on a mixture of %zu component%s, so the model has no flow",
                o->parts, plural(o->parts));
    else if (o->gain_rows)
        cli_say(&cli_fit,
                "the flow %s %.4f +- %.4f nats per row %s a mixture of %zu component%s (on %zu rows not used for "
                "selection)",
                o->gain < 0 ? "is worse by" : "gains", fabs(o->gain), o->gain_error, o->gain < 0 ? "than" : "over",
                o->parts, plural(o->parts), o->gain_rows);
    else
        cli_say(&cli_fit,
                "the flow gains %.4f nats per row over a mixture of %zu component%s (on the rows used for selection)",
                o->mixture - o->best, o->parts, plural(o->parts));
    if (o->end == HL_DENSITY_END_BEHIND && o->iteration)
        cli_say(&cli_fit, "training of the flow was stopped at iteration %zu, as it was %.2f nats worse", o->iteration,
                fmax(o->flow - o->mixture, 0));
}

/* The verdict in words, and the exit status. */
static int say_verdict(const hl_density_outcome *o)
{
    if (o->verdict == HL_DENSITY_FAILED)
        return cli_fail(&cli_fit, CLI_FAILED,
                        "training failed: the best iteration, %zu, is worse than a normal distribution (%.4f nats); "
                        "try a smaller --lr or more --iters",
                        o->best_iteration, o->normal);
    if (o->verdict == HL_DENSITY_DIVERGED)
        return cli_fail(&cli_fit, CLI_FAILED,
                        "training diverged: the loss at iteration %zu was %.4g nats, that of a normal distribution is "
                        "%.4f; the best model before is kept; try a smaller --lr",
                        o->iteration, o->recent, o->normal);
    if (o->verdict == HL_DENSITY_NORMAL_BETTER)
        cli_say(&cli_fit, "warning: on the %zu validation row%s a normal distribution is better (%.4f nats)",
                o->valid_rows, plural(o->valid_rows), o->normal);
    if (o->verdict == HL_DENSITY_NORMAL)
        cli_say(
            &cli_fit,
            "no flow or mixture is better than a normal distribution (%.4f nats), so it is the model; more rows may "
            "allow a better one",
            o->normal);
    if (o->end == HL_DENSITY_END_PATIENCE)
        cli_say(&cli_fit, "stopped at iteration %zu: no improvement in %zu validations (--patience)", o->iteration,
                o->patience);
    return CLI_OK;
}

int fit_conclude(const fit_job *j, const hl_density_outcome *o)
{
    const char *model = j->set->out;
    if (cli_json_wanted())
        print_json(j, o);
    if (o->failed_iteration && isnan(o->best))
        return cli_fail(&cli_fit, CLI_FAILED, "no model is written; try a smaller --lr or more --ode-steps");
    if (o->failed_iteration)
        return cli_fail(&cli_fit, CLI_FAILED,
                        "%s is the best model so far, of iteration %zu; try a smaller --lr or more --ode-steps", model,
                        o->best_iteration);
    say_gain(j, o);
    if (o->verdict == HL_DENSITY_UNVALIDATED)
        cli_say(&cli_fit, "%s: the model of iteration %zu, before the first validation", model, o->iteration);
    else if (isnan(o->best)) /* with atoms */
        cli_say(&cli_fit,
                "%s: not validated: no pattern of atoms has the 20 rows needed for its own model, so the other columns "
                "of each pattern are modelled as independent; use --atoms off to model all rows together; %.0f s",
                model, o->seconds);
    else if (!o->iteration || o->best >= o->mixture) /* without a flow */
        cli_say(&cli_fit, "%s: validation %.4f nats per row (mean -log p), %.0f s", model, o->best, o->seconds);
    else
        cli_say(&cli_fit, "%s: validation %.4f nats per row (mean -log p), iteration %zu, %.0f s", model, o->best,
                o->best_iteration, o->seconds);
    return say_verdict(o);
}
