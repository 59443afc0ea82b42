/* learn_options.c - the settings of hl_sde_learn: their table, and what they mean for model and training. */
#include <stdio.h>
#include <string.h>

#include "hollow/sde_forms.h"
#include "learn/checkpoint.h"
#include "sde/expression.h"
#include "sde/learn.h"
#include "sde/regress.h"

/* What ends the settings of a checkpoint whose run chose the number of Gaussians. */
static const char chosen_mark[] = " chosen components";

static const char *const forms[] = { "auto", "linear", "poly3", "radial", "ridge", "network", NULL };
static const char *const noises[] = { "auto", "diagonal", "full", NULL };
static const char *const methods[] = { "fp", "pseudo-ml", NULL };
static const char *const networks[] = { "hollow", "mlp", NULL };
static const char *const densities[] = { "mixture", "flow", NULL };
static const char *const curvatures[] = { "exact", "projected", "propagated", NULL };
static const char *const penalties[] = { "l1", "l2", "huber", NULL };
static const char *const dtypes[] = { "f32", "f64", NULL };

#define NETWORK "form=auto|network"
#define MATCHING "method=fp"
#define STEPS "method=pseudo-ml"
#define MIXTURE "density=mixture"
#define FLOW "density=flow"
static const hl_option options[] = {
    { "method", HL_OPTION_CHOICE, "NAME", 0, 0, methods, "fp; pseudo-ml for fewer than ten trajectories",
      "fp: Fokker-Planck matching; pseudo-ml: pseudo-maximum likelihood of Euler steps", NULL },
    { "form", HL_OPTION_CHOICE, "NAME", 0, 0, forms,
      "auto: the best regression; network if an option of networks is set",
      "drift and diffusion by regression on linear, cubic or radial functions, or by networks", NULL },
    { "noise", HL_OPTION_CHOICE, "NAME", 0, 0, noises, "auto: chosen from the data",
      "noise of different columns: independent (diagonal) or with constant correlations (full); networks: diagonal",
      NULL },
    { "bands", HL_OPTION_INTEGER, "N", 0, 1000, NULL, "40; networks: 0, none",
      "bootstrap replicates for confidence bands of drift and diffusion; of networks each takes half of the time of a "
      "fit",
      NULL },
    { "drift", HL_OPTION_TEXT, "LIST", 0, 0, NULL, "learned",
      "drift as expressions, such as 'x1 = kappa*(theta - x1)'; names other than columns are constants, which are "
      "estimated",
      NULL },
    { "diffusion", HL_OPTION_TEXT, "LIST", 0, 0, NULL, "learned",
      "diffusion as expressions, such as 'x1 = sigma*sqrt(x1)'", NULL },
    { "known-drift", HL_OPTION_TEXT, "LIST", 0, 0, NULL, "none",
      "drift that is not learned, such as 'x1=x2;x2=-2*x1+0.5'", NULL },
    { "known-diffusion", HL_OPTION_TEXT, "LIST", 0, 0, NULL, "none",
      "diffusion that is not learned, such as 'x1=0;x2=0.2'", NULL },
    { "time-dependent", HL_OPTION_FLAG, NULL, 0, 0, NULL, NULL, "drift and diffusion depend on time", NULL },
    { "network", HL_OPTION_CHOICE, "NAME", 0, 0, networks, "hollow", "type of the networks of drift and diffusion",
      NETWORK },
    { "hidden", HL_OPTION_INTEGER, "N", 1, 100000, NULL, "32 up to 3 columns, else 64; mlp: 64", "units of each layer",
      NETWORK },
    { "density", HL_OPTION_CHOICE, "NAME", 0, 0, densities, "mixture",
      "p(t, x): mixture of Gaussians or normalizing flow", NULL },
    { "components", HL_OPTION_INTEGER, "N", 1, 1000, NULL, "1, 2, 5 or 10, chosen on held-out data",
      "mixture: number of components", MIXTURE },
    { "diagonal", HL_OPTION_FLAG, NULL, 0, 0, NULL, NULL, "mixture: diagonal covariances", MIXTURE },
    { "flows", HL_OPTION_INTEGER, "N", 1, 64, NULL, "3", "flow: number of networks", FLOW },
    { "curvature", HL_OPTION_CHOICE, "NAME", 0, 0, curvatures, "exact up to 10 columns, else projected",
      "flow: computation of second derivatives", FLOW },
    { "lambda", HL_OPTION_REAL, "X", 0, 1e6, NULL, "0.1",
      "fp: initial weight of the residual in the loss of the density; decreases to 0", MATCHING },
    { "between", HL_OPTION_REAL, "X", 0, 1, NULL, "1; 0 with pointwise and at least 20 times",
      "fp: fraction of residual points drawn from the density at random times", MATCHING },
    { "pointwise", HL_OPTION_FLAG, NULL, 0, 0, NULL, NULL, "fp: do not average the residual over neighbours",
      MATCHING },
    { "penalty", HL_OPTION_CHOICE, "NAME", 0, 0, penalties, "l1", "fp: penalty of the residual", MATCHING },
    { "p-form", HL_OPTION_FLAG, NULL, 0, 0, NULL, NULL, "fp: penalise p R instead of R", MATCHING },
    { "stop-gradient", HL_OPTION_FLAG, NULL, 0, 0, NULL, NULL, "fp: train the density without the residual", MATCHING },
    { "variance-floor", HL_OPTION_REAL, "X", 1e-300, 1, NULL, "1e-6", "pseudo-ml: added to the variance of each step",
      STEPS },
    { "iters", HL_OPTION_INTEGER, "N", 1, 1e12, NULL, "2000", "iterations", NULL },
    { "batch", HL_OPTION_INTEGER, "N", 1, 1000000, NULL, "256", "observations per batch", NULL },
    { "lr", HL_OPTION_REAL, "X", 1e-12, 10, NULL, "2e-3", "largest learning rate", NULL },
    { "seed", HL_OPTION_INTEGER, "N", 0, 9e15, NULL, "0", "random seed", NULL },
    { "dtype", HL_OPTION_CHOICE, "f32|f64", 0, 0, dtypes, "f32", "floating-point precision of the networks", NULL },
    { "anyway", HL_OPTION_FLAG, NULL, 0, 0, NULL, NULL,
      "fp: train even if the data do not identify drift and diffusion", MATCHING },
    { 0 },
};

const hl_option *hl_sde_learn_options(void)
{
    return options;
}

/* ---- method ---- */

enum { FEW = 10 }; /* trajectories: with fewer, no density of a time can be known */

/* Trajectories that are too few for matching are for the other method, unless something of matching was set. */
static hl_status choose_method(hl_learner *l)
{
    hl_sde_outcome *o = l->outcome;
    bool open =
        !hl_settings_given(l->settings, "method") && o->paired && o->trajectories < FEW && o->rows > o->trajectories;
    for (const hl_option *p = options; p->name && open; p++)
        open = !(p->applies && strcmp(p->applies, MATCHING) == 0 && hl_settings_given(l->settings, p->name));
    o->method = hl_settings_choice(l->settings, "method", open) ? HL_SDE_PSEUDO_LIKELIHOOD : HL_SDE_FOKKER_PLANCK;
    if (!open)
        return HL_OK;
    o->method_chosen = 1;
    return hl_learned_add(l->learned, (hl_sde_finding){ .kind = HL_SDE_FINDING_METHOD,
                                                        .row = SIZE_MAX,
                                                        .column = SIZE_MAX,
                                                        .value = (double)o->trajectories });
}

/* ---- training and model ---- */

/* Of a number for which 0 is the default of the options there, and < 0 means zero. */
static double zero_is_none(const hl_settings *s, const char *name)
{
    double value = hl_settings_real(s, name, 0);
    return value == 0 && hl_settings_given(s, name) ? -1 : value;
}

static void set_training(hl_learner *l)
{
    const hl_settings *s = l->settings;
    l->options = (hl_sde_fit_options){ .method = l->outcome->method,
                                       .penalty = (hl_sde_penalty)hl_settings_choice(s, "penalty", HL_SDE_L1),
                                       .density_form = hl_settings_flag(s, "p-form", false),
                                       .stop_gradient = hl_settings_flag(s, "stop-gradient", false),
                                       .lambda = zero_is_none(s, "lambda"),
                                       .between = zero_is_none(s, "between"),
                                       .smooth = hl_settings_flag(s, "pointwise", false) ? -1 : 0,
                                       .iterations = (size_t)hl_settings_integer(s, "iters", 2000),
                                       .batch = (size_t)hl_settings_integer(s, "batch", 256),
                                       .optimizer = { .rate = hl_settings_real(s, "lr", 2e-3) },
                                       .variance_floor = hl_settings_real(s, "variance-floor", 1e-6),
                                       .seed = hl_settings_integer(s, "seed", 0) };
}

static void set_model(hl_learner *l)
{
    const hl_settings *s = l->settings;
    size_t hidden = (size_t)hl_settings_integer(s, "hidden", 0);
    l->spec = (hl_sde_spec){ .dim = l->given->dim,
                             .network = hl_settings_text(s, "network"),
                             .time = hl_settings_flag(s, "time-dependent", false),
                             .hidden = hidden,
                             .net = { .hidden = hidden, .width = hidden },
                             .density = hl_settings_text(s, "density"),
                             .components = (size_t)hl_settings_integer(s, "components", 0),
                             .diagonal = hl_settings_flag(s, "diagonal", false),
                             .flows = (size_t)hl_settings_integer(s, "flows", 0),
                             .curvature = hl_settings_text(s, "curvature"),
                             .dtype = hl_settings_choice(s, "dtype", 0) ? HL_F64 : HL_F32 };
}

static hl_status read_forms(hl_learner *l)
{
    const char *drift = hl_settings_text(l->settings, "drift");
    const char *diffusion = hl_settings_text(l->settings, "diffusion");
    size_t d = l->given->dim;
    if (!drift && !diffusion)
        return HL_OK;
    const char **names = hl_calloc(l->ctx, d + 1, sizeof *names);
    if (!names)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i <= d; i++)
        names[i] = l->learned->name[i];
    hl_status status = hl_sde_forms_parse(l->ctx, d, names, drift, diffusion, &l->forms);
    hl_free(l->ctx, names);
    l->spec.forms = l->forms;
    return status;
}

static hl_status read_known(hl_learner *l)
{
    const char *drift = hl_settings_text(l->settings, "known-drift");
    const char *diffusion = hl_settings_text(l->settings, "known-diffusion");
    const char(*names)[HL_SDE_NAME] = (const char(*)[HL_SDE_NAME])l->learned->name;
    size_t d = l->given->dim;
    hl_status parsed = read_forms(l);
    if (parsed != HL_OK || (!drift && !diffusion && !l->forms))
        return parsed;
    l->known = hl_calloc(l->ctx, d, sizeof *l->known);
    l->linear = hl_calloc(l->ctx, hl_size_mul(d, d), sizeof *l->linear);
    hl_status status = l->known && l->linear ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK && drift)
        status = hl_known_read(l->ctx, "known-drift", drift, true, d, names, l->known, l->linear);
    if (status == HL_OK && diffusion)
        status = hl_known_read(l->ctx, "known-diffusion", diffusion, false, d, names, l->known, l->linear);
    l->spec.known = l->known;
    for (size_t i = 0; i < d && l->forms && status == HL_OK; i++)
        if ((l->known[i].drift && hl_sde_forms_has(l->forms, 0, i)) ||
            (l->known[i].diffusion && hl_sde_forms_has(l->forms, 1, i)))
            return hl_fail(l->ctx, HL_ERR_INVALID, "column '%.100s' has a known part and an expression", names[i]);
    if (status == HL_OK && l->forms)
        hl_sde_forms_apply(l->forms, l->known);
    return status;
}

/* ---- regression ---- */

hl_status hl_learner_check_settings(hl_context *ctx, const hl_settings *s)
{
    static const char *const of_networks[] = { "lambda", "between",       "pointwise",      "penalty",
                                               "p-form", "stop-gradient", "variance-floor", NULL };
    const char *form = hl_settings_text(s, "form");
    bool regression = form && strcmp(form, "auto") != 0 && strcmp(form, "network") != 0;
    for (const char *const *name = of_networks; *name && regression; name++)
        if (hl_settings_given(s, *name))
            return hl_fail(ctx, HL_ERR_INVALID, "option '%s' has no effect with form=%s; it is for %s", *name, form,
                           NETWORK);
    return HL_OK;
}

/* Is drift and diffusion by regression what the settings mean? Not if one of them is of networks or of their training. */
static bool regression(const hl_learner *l)
{
    static const char *const of_networks[] = { "method",        "network",        "hidden",  "lambda",
                                               "between",       "pointwise",      "penalty", "p-form",
                                               "stop-gradient", "variance-floor", "lr",      NULL };
    const char *form = hl_settings_text(l->settings, "form");
    bool given = form && strcmp(form, "auto") != 0, own = false;
    for (const char *const *name = of_networks; *name; name++)
        own = own || hl_settings_given(l->settings, *name);
    return given ? strcmp(form, "network") != 0 : !own;
}

hl_status hl_learner_regress(hl_learner *l)
{
    hl_sde_regress_options o = { .form = hl_settings_text(l->settings, "form"),
                                 .noise = hl_settings_text(l->settings, "noise"),
                                 .time = l->spec.time,
                                 .known = l->known,
                                 .seed = l->options.seed,
                                 .replicates = (size_t)hl_settings_integer(l->settings, "bands", 40) };
    l->replicates = (size_t)hl_settings_integer(l->settings, "bands", 0); /* of networks, if there is no regression */
    if (l->forms) { /* their constants, whatever learns the rest */
        hl_sde_regress_options free = o;
        free.form = o.form && strcmp(o.form, "network") == 0 ? NULL : o.form;
        hl_status fitted = hl_sde_forms_fit(l->forms, &l->data, &free);
        if (fitted != HL_OK)
            return fitted;
        o.forms = l->forms;
    }
    if (!regression(l)) {
        if (o.noise && strcmp(o.noise, "full") == 0)
            return hl_fail(l->ctx, HL_ERR_UNSUPPORTED,
                           "noise full is for regressions: networks have independent noise in every column");
        return HL_OK;
    }
    bool asked = o.form && strcmp(o.form, "auto") != 0;
    hl_status status = hl_sde_regress(l->ctx, &l->data, l->given->dim, &o, &l->simple);
    if (status == HL_ERR_NO_SOLUTION && !asked)
        return HL_OK; /* networks, then */
    if (status != HL_OK)
        return status;
    l->replicates = 0;
    hl_sde_regress_report r = hl_sde_simple_report(l->simple);
    memcpy(l->outcome->form, r.form, sizeof r.form);
    l->outcome->regression = (r.snapshots != 0) + 2 * (r.steps != 0);
    l->outcome->correlated = r.correlated;
    l->spec.simple = l->simple;
    l->spec.network = "mlp"; /* a unit that stays at 0 */
    l->spec.hidden = 1;
    l->spec.layers = 1;
    l->options.density_only = 1;
    return HL_OK;
}

hl_status hl_learner_read_settings(hl_learner *l)
{
    hl_status status = choose_method(l);
    set_training(l);
    set_model(l);
    return status == HL_OK ? read_known(l) : status;
}

/* ---- description ---- */

hl_status hl_learner_describe(hl_learner *l)
{
    const hl_sde_fit_options *o = &l->options;
    const hl_settings *s = l->settings;
    hl_sde_spec p = hl_sde_describe(l->sde);
    const char *drift = hl_settings_text(s, "known-drift"), *noise = hl_settings_text(s, "known-diffusion");
    drift = drift ? drift : "-";
    noise = noise ? noise : "-";
    const char *form[] = { hl_sde_forms_source(l->forms, 0), hl_sde_forms_source(l->forms, 1) };
    size_t room = 880 + strlen(drift) + strlen(noise);
    for (size_t k = 0; k < 2; k++)
        room += form[k] ? strlen(form[k]) : 0;
    char *text = l->learned->settings = hl_alloc(l->ctx, room);
    l->outcome->settings = text ? text : "";
    l->checkpoint_settings = hl_alloc(l->ctx, room);
    if (!text || !l->checkpoint_settings)
        return HL_ERR_NOMEM;
    snprintf(
        text, room,
        "method %s iters %zu batch %zu seed %llu network %s hidden %zu time %d density %s components %zu diagonal %d "
        "flows %zu curvature %s dtype %s "
        "lr %.17g lambda %.17g between %.17g penalty %d p-form %d pointwise %d stop-gradient %d floor %.17g "
        "known-drift %s "
        "known-diffusion %s form %s noise %s "
        "rows %zu data %016llx",
        hl_sde_method_name(o->method), o->iterations, o->batch, (unsigned long long)o->seed, p.network,
        strcmp(p.network, "hollow") == 0 ? p.net.hidden : p.hidden, p.time, p.density, p.components, p.diagonal,
        p.flows, p.curvature, hl_dtype_name(p.dtype), o->optimizer.rate, o->lambda, o->between, (int)o->penalty,
        o->density_form, o->smooth < 0, o->stop_gradient, o->variance_floor, drift, noise,
        l->simple ? l->outcome->form : "network", l->outcome->correlated ? "full" : "diagonal", l->data.rows,
        (unsigned long long)l->hash);
    if (l->replicates)
        snprintf(text + strlen(text), room - strlen(text), " bands %zu", l->replicates);
    for (size_t k = 0; k < 2; k++)
        if (form[k])
            snprintf(text + strlen(text), room - strlen(text), k ? " diffusion %s" : " drift %s", form[k]);
    snprintf(l->checkpoint_settings, room, "%s%s", text, l->outcome->components_chosen ? chosen_mark : "");
    return HL_OK;
}

hl_status hl_learner_chosen_before(const hl_learner *l, size_t *components)
{
    char *text = NULL;
    hl_status status = hl_checkpoint_settings(l->ctx, l->job.checkpoint, &text);
    *components = 0;
    size_t length = text ? strlen(text) : 0, mark = strlen(chosen_mark);
    const char *at =
        length > mark && strcmp(text + length - mark, chosen_mark) == 0 ? strstr(text, " components ") : NULL;
    if (at && sscanf(at, " components %zu", components) != 1)
        *components = 0;
    hl_free(l->ctx, text);
    return status;
}
