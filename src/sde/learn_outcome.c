/* learn_outcome.c - findings as data, and as sentences. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sde/learn.h"

hl_status hl_learned_create(hl_context *ctx, const hl_sde_observations *data, hl_learned **out)
{
    hl_learned *l = hl_calloc(ctx, 1, sizeof *l);
    *out = NULL;
    if (!l)
        return HL_ERR_NOMEM;
    l->ctx = ctx;
    l->outcome = (hl_sde_outcome){ .rows = data->rows, .dim = data->dim, .settings = "" };
    l->name = hl_calloc(ctx, hl_size_add(data->dim, 1), sizeof *l->name);
    if (!l->name) {
        hl_sde_outcome_free(&l->outcome);
        return HL_ERR_NOMEM;
    }
    for (size_t i = 0; i <= data->dim; i++) {
        const char *name = data->names ? data->names[i] : NULL;
        if (name)
            snprintf(l->name[i], HL_SDE_NAME, "%s", name);
        else if (i < data->dim)
            snprintf(l->name[i], HL_SDE_NAME, "x%zu", i + 1);
        else
            snprintf(l->name[i], HL_SDE_NAME, "t");
    }
    *out = l;
    return HL_OK;
}

void hl_sde_outcome_free(hl_sde_outcome *outcome)
{
    if (!outcome)
        return;
    hl_learned *l = (hl_learned *)outcome; /* its first member */
    hl_judge_free(outcome->judge);
    hl_free(l->ctx, l->finding);
    hl_free(l->ctx, l->settings);
    hl_free(l->ctx, l->name);
    hl_free(l->ctx, l);
}

hl_status hl_learned_add(hl_learned *l, hl_sde_finding finding)
{
    hl_sde_outcome *o = &l->outcome;
    hl_status status = hl_grow(l->ctx, (void **)&l->finding, &l->capacity, o->findings + 1, sizeof finding);
    if (status != HL_OK)
        return status;
    l->finding[o->findings++] = finding;
    o->finding = l->finding;
    return HL_OK;
}

hl_status hl_learned_refuse(hl_learned *l, hl_sde_finding finding)
{
    char text[400], place[40] = "";
    finding.fatal = 1;
    hl_status status = hl_learned_add(l, finding);
    if (status != HL_OK)
        return status;
    if (finding.row != SIZE_MAX)
        snprintf(place, sizeof place, "row %zu: ", finding.row);
    return hl_fail(l->ctx, HL_ERR_INVALID, "%s%s", place,
                   hl_sde_finding_text(&l->outcome, l->outcome.findings - 1, text, sizeof text));
}

const char *hl_sde_finding_name(hl_sde_finding_kind kind)
{
    static const char *const names[HL_SDE_FINDING_RESIDUALS] = {
        "constant",   "same times",      "time order",   "no steps",       "time gap",         "few trajectories",
        "stationary", "little movement", "method",       "time dependent", "few steps",        "wide band",
        "regression", "unexplained",     "steps missed", "density misses", "simulations miss", "steps unlikely"
    };
    if ((int)kind >= HL_SDE_FINDING_MEANS)
        return hl_weak_test_name((hl_weak_test)((int)kind - (int)HL_SDE_FINDING_MEANS));
    return (size_t)kind < HL_SDE_FINDING_RESIDUALS
               ? names[kind]
               : hl_residual_name((hl_residual)((int)kind - (int)HL_SDE_FINDING_RESIDUALS));
}

/* Sentences about one number; NULL for kinds that need more. */
static const char *simple_text(hl_sde_finding_kind kind)
{
    switch (kind) {
    case HL_SDE_FINDING_SAME_TIMES:
        return "all observations have the same time %g";
    case HL_SDE_FINDING_LITTLE_MOVEMENT:
        return "the density of x moves by only %.2g of its spread, so drift and diffusion will be less accurate";
    case HL_SDE_FINDING_TIME_DEPENDENT:
        return "drift and diffusion both depend on t, and densities do not identify them: for every diffusion g(t, x) "
               "there is a drift with the same densities";
    case HL_SDE_FINDING_FEW_STEPS:
        return "there are fewer than 100 steps along trajectories, or too few rows or times: the model cannot be "
               "tested";
    default:
        return NULL;
    }
}

/* Sentences about a share, in percent. */
static const char *share_text(hl_sde_finding_kind kind)
{
    switch ((int)kind) {
    case HL_SDE_FINDING_UNEXPLAINED:
        return "drift and diffusion leave %.0f %% of the change of the density unexplained (residual relative to d log "
               "p/dt), so they are inaccurate";
    case HL_SDE_FINDING_STEPS_MISSED:
        return "the drift leaves %.0f %% of the mean speed along the trajectories unexplained: Fokker-Planck matching "
               "does not see motion that leaves the density unchanged, such as a rotation";
    case HL_SDE_FINDING_DENSITY_MISSES:
        return "the density does not move as the data do: it misses %.0f %% of their movement, although the residual "
               "may be small";
    case HL_SDE_FINDING_SIMULATIONS_MISS:
        return "simulations of the equation do not move as the data do: they miss %.0f %% of their movement";
    case HL_SDE_FINDING_WIDE_BAND:
        return "the data determine drift or diffusion only to %.0f %% of their size (half-width of the 90 %% band)";
    case HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_DRIFT:
        return "steps along trajectories contradict the drift: its error is about %.0f %%";
    case HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_DIFFUSION:
        return "steps along trajectories contradict the diffusion: its error is about %.0f %%";
    case HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_DRIFT_TREND:
        return "steps along trajectories contradict the drift: it misses a change of %.0f %% with time";
    case HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_DIFFUSION_TREND:
        return "steps along trajectories contradict the diffusion: it misses a change of %.0f %% with time";
    case HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_CORRELATION:
        return "the correlation of the noise of different columns differs from the model's by %.0f %%";
    case HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_AUTOCORRELATION:
        return "the residuals of consecutive steps are correlated (%.0f %%): observations may be noisy, or a variable "
               "may be missing";
    case HL_SDE_FINDING_RESIDUALS + HL_RESIDUAL_KURTOSIS:
        return "the residuals of steps have heavy tails (excess kurtosis %.0f %%): there may be jumps";
    case HL_SDE_FINDING_MEANS + HL_WEAK_DRIFT:
        return "the means of the data contradict the drift: its error is about %.0f %%";
    case HL_SDE_FINDING_MEANS + HL_WEAK_DIFFUSION:
        return "the means of the data contradict the diffusion: its error is about %.0f %%";
    case HL_SDE_FINDING_MEANS + HL_WEAK_TREND:
        return "the means of the data show a change of drift or diffusion with time of %.0f %%, which the model misses";
    case HL_SDE_FINDING_MEANS + HL_WEAK_CORRELATION:
        return "the means of the data show a correlation of the noise of different columns that differs from the "
               "model's by %.0f %%";
    default:
        return NULL;
    }
}

static int count_text(const hl_sde_finding *f, char *buffer, size_t size)
{
    const char *end = f->value == 1 ? "y" : "ies";
    if (f->kind == HL_SDE_FINDING_METHOD)
        return snprintf(buffer, size,
                        "%.0f trajector%s: the method is pseudo-ml, as Fokker-Planck matching needs at least ten",
                        f->value, end);
    return snprintf(buffer, size,
                    "%.0f trajector%s. Fokker-Planck matching infers drift and diffusion from the change of the "
                    "density of x with time, and a time observed %s does not determine its density",
                    f->value, end, f->value == 1 ? "once" : "a few times");
}

static int order_text(const hl_sde_outcome *o, const hl_sde_finding *f, char *buffer, size_t size)
{
    if (o->paired)
        return snprintf(buffer, size, "time %.10g %s in its trajectory, after %.10g", f->value,
                        f->value == f->other ? "comes twice" : "goes back", f->other);
    return snprintf(
        buffer, size,
        "time %.10g is not later than %.10g; pseudo-ml needs trajectories: increasing times, or a column 'trajectory'",
        f->value, f->other);
}

/* What to do about a finding; NULL: nothing. */
static const char *advice(const hl_sde_outcome *o, hl_sde_finding_kind kind)
{
    bool matching = o->method == HL_SDE_FOKKER_PLANCK;
    switch (kind) {
    case HL_SDE_FINDING_CONSTANT:
        return "remove it with option columns";
    case HL_SDE_FINDING_TIME_ORDER:
        return o->paired ? NULL : "give its name with option trajectory";
    case HL_SDE_FINDING_TIME_DEPENDENT:
        return "give the diffusion with option known-diffusion, or use option method pseudo-ml";
    case HL_SDE_FINDING_UNEXPLAINED:
        return o->components
                   ? "try more option iters, other option components, or give known parts with option known-drift"
                   : "try more option iters, or give known parts with option known-drift";
    case HL_SDE_FINDING_STEPS_MISSED:
        return o->regression & 2 ? NULL : "use option method pseudo-ml, which learns from steps";
    case HL_SDE_FINDING_DENSITY_MISSES:
        return o->components ? "try a smaller option lambda, more option iters or more option components"
                             : "try a smaller option lambda, more option iters or more option flows";
    case HL_SDE_FINDING_SIMULATIONS_MISS:
        return matching && o->regression ? NULL /* iterations train the density alone */
               : matching
                   ? "try more option iters"
                   : "the steps between observations may be too long for pseudo-ml; option method fp does not use them";
    case HL_SDE_FINDING_STEPS_UNLIKELY:
        return "try a smaller option lr or more option iters";
    default:
        return NULL;
    }
}

const char *hl_sde_finding_text(const hl_sde_outcome *o, size_t finding, char *buffer, size_t size)
{
    if (!buffer || size == 0)
        return "";
    *buffer = 0;
    if (!o || finding >= o->findings)
        return buffer;
    const hl_sde_finding *f = &o->finding[finding];
    const hl_learned *l = (const hl_learned *)o; /* the outcome is its first member */
    if (simple_text(f->kind))
        snprintf(buffer, size, simple_text(f->kind), f->value);
    else if (f->kind == HL_SDE_FINDING_SIMULATIONS_MISS && isnan(f->value))
        snprintf(buffer, size, "the density of the data does not change with time, but that of simulations does");
    else if (f->kind == HL_SDE_FINDING_SIMULATIONS_MISS && isinf(f->value))
        snprintf(buffer, size, "simulations of the equation do not move as the data do: they diverge");
    else if (f->kind == HL_SDE_FINDING_STEPS_MISSED && o->regression & 2)
        snprintf(buffer, size, "the drift leaves %.0f %% of the mean speed along the trajectories unexplained",
                 100 * f->value);
    else if (share_text(f->kind))
        snprintf(buffer, size, share_text(f->kind), 100 * f->value);
    else if (f->kind == HL_SDE_FINDING_NO_STEPS && f->value > 0)
        snprintf(
            buffer, size,
            "there %s only %.0f step%s along trajectories; pseudo-ml needs at least 10 to learn drift and diffusion",
            f->value == 1 ? "is" : "are", f->value, f->value == 1 ? "" : "s");
    else if (f->kind == HL_SDE_FINDING_NO_STEPS)
        snprintf(buffer, size,
                 "every trajectory has only one observation, but pseudo-ml needs steps; use option method fp");
    else if (f->kind == HL_SDE_FINDING_CONSTANT)
        snprintf(buffer, size, "column '%s' is constant (%g)", l->name[f->column], f->value);
    else if (f->kind == HL_SDE_FINDING_TIME_ORDER)
        order_text(o, f, buffer, size);
    else if (f->kind == HL_SDE_FINDING_TIME_GAP)
        snprintf(buffer, size,
                 "there are no observations in the interval of %.4g before this time, %.0f %% of the whole time; check "
                 "the times",
                 f->value, 100 * f->other);
    else if (f->kind == HL_SDE_FINDING_FEW_TRAJECTORIES || f->kind == HL_SDE_FINDING_METHOD)
        count_text(f, buffer, size);
    else if (f->kind == HL_SDE_FINDING_REGRESSION)
        snprintf(buffer, size,
                 "a regression of %s gives other results: drift and diffusion differ by %.0f %% and %.0f %%; compare "
                 "the values of option form",
                 o->regression ? "half of the data" : "the data", 100 * f->value, 100 * f->other);
    else if (f->kind == HL_SDE_FINDING_STATIONARY)
        snprintf(buffer, size,
                 "the observations have nearly the same distribution at all times: the density of x moves by %.2g of "
                 "its spread (%.2g is expected by chance; %.2g is needed)",
                 f->value, f->other, fmax(0.01, 3 * f->other));
    else if (f->kind == HL_SDE_FINDING_STEPS_UNLIKELY)
        snprintf(
            buffer, size,
            "the steps are less likely than with constant drift and diffusion (-log p is %.3f instead of %.3f nats)",
            f->value, f->other);
    const char *more = advice(o, f->kind);
    size_t used = strlen(buffer);
    if (more)
        snprintf(buffer + used, size - used, "; %s", more);
    return buffer;
}
