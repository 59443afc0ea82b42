/* fit_report.c - `hollow fit`: what the library reports, as text and JSON. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "fit.h"

enum { SHOWN = 5 }; /* findings of a kind */

/* ---- findings ---- */

/* The kinds of warnings: names for JSON, and what is said of columns that are not shown one by one. */
static const char *const kinds[] = { "constant",  "scale",    "integer", "tied", "far",
                                     "dependent", "repeated", "copies",  "edge", "atom" };
static const char *const more[] = { NULL,
                                    NULL,
                                    "have whole numbers only, too",
                                    "repeat their values, too",
                                    "have values far from the others",
                                    "are linear functions of others",
                                    "have one value in many rows, too",
                                    NULL,
                                    "have many values near a bound, too",
                                    "have atoms, too" };

static void say_steps(const fit_job *j, const hl_finding *f)
{
    bool kept = hl_settings_text(j->settings, "keep-steps") != NULL;
    if (f->kind == HL_FINDING_INTEGER && !kept) {
        cli_say(&cli_fit,
                "column '%s' has whole numbers only: it is modelled with uniform noise of one step's width, and "
                "samples are rounded "
                "(--keep-steps: without noise)",
                j->names[f->column]);
        return;
    }
    cli_say(&cli_fit,
            "warning: column '%s' %s; the likelihood of such data has no bound: --dequantize adds noise of one "
            "step's width",
            j->names[f->column], f->kind == HL_FINDING_INTEGER ? "has whole numbers only" : "repeats its values");
}

static void say_far(const fit_job *j, const hl_finding *f)
{
    char place[400];
    hl_table_place(j->table, f->row, j->index[f->column], place, sizeof place);
    cli_say(&cli_fit,
            "warning: %s: %g is far from the other values, half of which are in %g .. %g%s; what is an error should be "
            "corrected, and a column with such tails is better modelled as its asinh or logarithm",
            place, f->value, f->low, f->high, f->count > 1 ? ", and so are others of this column" : "");
}

static void say_dependent(const fit_job *j, const hl_finding *f)
{
    char list[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < f->count && i < HL_FINDING_OTHERS && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.80s'", i ? ", " : "", j->names[f->others[i]]);
    cli_say(&cli_fit,
            "warning: column '%s' is a linear function of %s%s: the rows lie in a subspace, so the likelihood is "
            "unbounded; leave one of these columns out with --exclude",
            j->names[f->column], list, f->count > HL_FINDING_OTHERS ? " and others" : "");
}

static void say_repeated(const fit_job *j, const hl_finding *f)
{
    cli_say(
        &cli_fit,
        "warning: column '%s' has the value %g in %zu rows, where the likelihood has no bound; leave these rows out "
        "and count them apart, or add noise as large as the values' errors",
        j->names[f->column], f->value, f->count);
}

static void say_edge(const fit_job *j, const hl_finding *f)
{
    char low[40] = "", high[40] = "";
    if (isfinite(f->low))
        snprintf(low, sizeof low, "%g", f->low);
    if (isfinite(f->high))
        snprintf(high, sizeof high, "%g", f->high);
    cli_say(&cli_fit,
            "column '%s' has no value %s %g and many near it; --bounds '%s=%s:%s' keeps samples in this range",
            j->names[f->column], isfinite(f->low) ? "below" : "above", f->value, j->names[f->column], low, high);
}

static void say_copies(const hl_finding *f)
{
    cli_say(&cli_fit,
            "warning: %zu validation rows, %.3g %%, equal a row of training: validation is better than the model is; "
            "leave copies out, or give other rows with --valid",
            f->count, 100 * f->value);
}

static void say_warnings(const fit_job *j, const hl_density_outcome *o)
{
    size_t said[sizeof kinds / sizeof *kinds] = { 0 };
    for (size_t i = 0; i < o->findings; i++) {
        const hl_finding *f = &o->finding[i];
        if (++said[f->kind] > SHOWN)
            continue;
        if (f->kind == HL_FINDING_INTEGER || f->kind == HL_FINDING_TIED)
            say_steps(j, f);
        else if (f->kind == HL_FINDING_FAR)
            say_far(j, f);
        else if (f->kind == HL_FINDING_DEPENDENT)
            say_dependent(j, f);
        else if (f->kind == HL_FINDING_REPEATED)
            say_repeated(j, f);
        else if (f->kind == HL_FINDING_COPIES)
            say_copies(f);
        else if (f->kind == HL_FINDING_EDGE)
            say_edge(j, f);
        else if (f->kind == HL_FINDING_ATOM)
            cli_say(&cli_fit,
                    "column '%s' has the value %g in %zu rows: it is an atom, with a probability of its own (--atoms "
                    "off: it is not)",
                    j->names[f->column], f->value, f->count);
    }
    for (size_t k = HL_FINDING_INTEGER; k < sizeof kinds / sizeof *kinds; k++)
        if (said[k] > SHOWN)
            cli_say(&cli_fit, "warning: %zu more columns %s", said[k] - SHOWN, more[k]);
}

bool fit_refuse(const fit_job *j, const hl_density_outcome *o)
{
    char list[600] = "";
    size_t used = 0, constant = 0, scale = 0;
    for (size_t i = 0; i < o->findings; i++) {
        const hl_finding *f = &o->finding[i];
        if (f->kind == HL_FINDING_CONSTANT && constant++ < 2 * SHOWN && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s'%.80s' (%g)", *list ? ", " : "",
                                     j->names[f->column], f->value);
        if (f->kind == HL_FINDING_SCALE && scale++ < SHOWN)
            cli_fail(&cli_fit, CLI_WRONG,
                     "%s: column '%s' is too %s to compute with: its values are in %g .. %g; rescale it", j->path,
                     j->names[f->column], f->value < 1 ? "small" : "large", f->low, f->high);
    }
    if (constant >= j->dim && j->set->drop_constant)
        cli_fail(&cli_fit, CLI_WRONG, "%s: all columns are constant: nothing is left to model", j->path);
    else if (constant)
        cli_fail(&cli_fit, CLI_WRONG,
                 "%s: column%s %s%s %s constant and %s no density: leave %s out with --drop-constant or --exclude",
                 j->path, constant > 1 ? "s" : "", list, constant > 2 * SHOWN ? ", ..." : "",
                 constant > 1 ? "are" : "is", constant > 1 ? "have" : "has", constant > 1 ? "them" : "it");
    return constant || scale;
}

/* ---- progress ---- */

static void say_start(fit_job *j, const hl_density_progress *p)
{
    const hl_density_outcome *o = p->so_far;
    say_warnings(j, o);
    char size[60] = "";
    if (o->parameters)
        snprintf(size, sizeof size, "; %zu parameters", o->parameters);
    cli_say(&cli_fit, "%zu rows and %zu for validation, %zu columns%s%s", o->train_rows, o->valid_rows, j->dim,
            j->context ? " given the context" : "", size);
    if (!o->valid_rows && !hl_settings_text(j->settings, "members"))
        cli_say(&cli_fit, "no rows are left to weigh mixtures: the model is a flow alone; --members says what it is");
    if (!j->resume && access(j->checkpoint, F_OK) == 0)
        cli_say(&cli_fit, "warning: %s of an earlier run will be replaced; --resume would go on from it",
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
        cli_say(&cli_fit, "the training steps differ from the adaptive solver, %.3f and %.3f nats: doubled",
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
    cli_json json = { log, false };
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
    fputc('\n', log);
    fflush(log);
}

int fit_progress(const void *report, void *user)
{
    const hl_density_progress *p = report;
    fit_job *j = user;
    if (p->phase == HL_FIT_MIXING) {
        if (!(j->progress.start > 0))
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
        fit_curves_add(&j->curves, p);
    return cli_interrupted();
}

/* ---- outcome ---- */

static const char *const verdicts[] = { "good", "normal", "normal is better", "failed", "diverged", "not validated" };
static const char *const ends[] = { "done", "patience", "time", "stopped", "error", "behind" };

static void print_json(const fit_job *j, const hl_density_outcome *o)
{
    cli_json json = { stdout, false };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", j->set->out);
    cli_json_text(&json, "verdict", verdicts[o->verdict]);
    cli_json_text(&json, "end", ends[o->end]);
    cli_json_count(&json, "iterations", o->iteration);
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
    cli_json_real(&json, "gathered_seconds", hl_context_gathered(j->ctx));
    cli_json_count(&json, "rows", o->train_rows);
    cli_json_count(&json, "validation_rows", o->valid_rows);
    cli_json_count(&json, "columns", j->dim);
    cli_json_count(&json, "parameters", o->parameters);
    cli_json_bool(&json, "decorrelated", o->decorrelated);
    cli_json_open(&json, "findings", '[');
    for (size_t i = 0; i < o->findings; i++) {
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "kind", kinds[o->finding[i].kind]);
        if (o->finding[i].kind != HL_FINDING_COPIES)
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
        cli_say(&cli_fit, "no flow is trained: brief trials of it ended %.2f nats behind", o->flow - o->mixture);
    else if (!members || strcmp(members, "mixture") != 0)
        cli_say(&cli_fit, "no flow is trained: to judge one, %zu validation row%s too few", o->valid_rows,
                o->valid_rows == 1 ? " is" : "s are");
    cli_say(&cli_fit, "the model is a mixture of %zu part%s", o->parts, o->parts == 1 ? "" : "s");
}

/* What the flow added to the mixtures, and whether more iterations may add more. */
static void say_gain(const fit_job *j, const hl_density_outcome *o)
{
    if (o->fall > STILL_FALLING)
        cli_say(&cli_fit,
                "the flow's validation still fell at the last iteration, by %.3f nats since the validation before; "
                "more --iters or --recipe best may give a better model",
                o->fall);
    if (isnan(o->mixture))
        return;
    if (!o->iteration)
        say_untrained(j, o);
    else if (!(o->best < o->mixture))
        cli_say(&cli_fit, "the flow adds nothing to a mixture of %zu: the model has none", o->parts);
    else if (o->gain_rows)
        cli_say(&cli_fit,
                "the flow gained %.4f +- %.4f nats a row over a mixture of %zu (on %zu rows that chose nothing)",
                o->gain, o->gain_error, o->parts, o->gain_rows);
    else
        cli_say(&cli_fit, "the flow gained %.4f nats a row over a mixture of %zu (on the rows that chose it)",
                o->mixture - o->best, o->parts);
    if (o->end == HL_DENSITY_END_BEHIND && o->iteration)
        cli_say(&cli_fit, "its training ended at iteration %zu, as it was %.2f nats behind", o->iteration,
                o->flow - o->mixture);
}

/* The verdict in words, and the exit status. */
static int say_verdict(const hl_density_outcome *o)
{
    if (o->verdict == HL_DENSITY_FAILED)
        return cli_fail(&cli_fit, CLI_FAILED,
                        "training failed: even iteration %zu, the best, is worse than normal columns, which "
                        "have %.4f nats; try a smaller --lr or more --iters",
                        o->best_iteration, o->normal);
    if (o->verdict == HL_DENSITY_DIVERGED)
        return cli_fail(&cli_fit, CLI_FAILED,
                        "training diverged: at iteration %zu its loss was %.4g nats, where normal columns "
                        "have %.4f; the best model before is kept; try a smaller --lr",
                        o->iteration, o->recent, o->normal);
    if (o->verdict == HL_DENSITY_NORMAL_BETTER)
        cli_say(&cli_fit, "warning: on these %zu rows a normal distribution, with %.4f nats, is better", o->valid_rows,
                o->normal);
    if (o->verdict == HL_DENSITY_NORMAL)
        cli_say(&cli_fit,
                "a normal distribution, with %.4f nats, is better: the model is this; more rows would tell more",
                o->normal);
    if (o->end == HL_DENSITY_END_PATIENCE)
        cli_say(&cli_fit, "stopped at iteration %zu: %zu validations in a row were no better (--patience)",
                o->iteration, o->patience);
    return CLI_OK;
}

int fit_conclude(const fit_job *j, const hl_density_outcome *o)
{
    const char *model = j->set->out;
    if (j->set->json)
        print_json(j, o);
    if (o->failed_iteration && isnan(o->best))
        return cli_fail(&cli_fit, CLI_FAILED, "no model is written; try a smaller --lr or more --ode-steps");
    if (o->failed_iteration)
        return cli_fail(&cli_fit, CLI_FAILED,
                        "%s holds the best model so far, of iteration %zu; try a smaller --lr or more --ode-steps",
                        model, o->best_iteration);
    say_gain(j, o);
    if (o->verdict == HL_DENSITY_UNVALIDATED)
        cli_say(&cli_fit, "%s: the model of iteration %zu, before the first validation", model, o->iteration);
    else if (!o->iteration || o->best >= o->mixture) /* without a flow */
        cli_say(&cli_fit, "%s: validation %.4f nats a row (mean -log p), %.0f s", model, o->best, o->seconds);
    else
        cli_say(&cli_fit, "%s: validation %.4f nats a row (mean -log p), iteration %zu, %.0f s", model, o->best,
                o->best_iteration, o->seconds);
    return say_verdict(o);
}
