/* learn.c - hl_sde_learn: from observations to a model, its verdict and findings.
 *
 *   data      sorted and checked (learn_data.c)
 *   settings  what was not set is chosen (learn_options.c), the number of Gaussians by held-out rows (choose.c)
 *   training  fit.c, with checkpoints and reports
 *   bands     of networks: ensemble.c; those of a regression come with it
 *   judgement judge.c
 *
 * A run that resumes takes the number of Gaussians from its checkpoint. */
#include <math.h>
#include <string.h>

#include "base/ranks.h"
#include "hollow/ranks.h"
#include "hollow/sde_forms.h"
#include "learn/checkpoint.h"
#include "sde/ensemble.h"
#include "sde/learn.h"

static const double weak = 0.03; /* movement: below it, drift and diffusion of an OU process were off by 20 % */

static hl_sde_finding finding_of(hl_sde_finding_kind kind, double value, double other)
{
    return (hl_sde_finding){ .kind = kind, .row = SIZE_MAX, .column = SIZE_MAX, .value = value, .other = other };
}

/* ---- before training ---- */

/* Is there a column of which both drift and diffusion must be learned? */
static bool both_open(const hl_learner *l)
{
    for (size_t i = 0; i < l->given->dim; i++)
        if (!l->known || (!l->known[i].drift && !l->known[i].diffusion))
            return true;
    return false;
}

/* Do the data say enough for Fokker-Planck matching? */
static hl_status check_movement(hl_learner *l)
{
    hl_sde_outcome *o = l->outcome;
    hl_status status = hl_judge_create(l->ctx, l->given->dim, &l->data, NULL, &o->judge);
    if (status != HL_OK)
        return status;
    o->verdict = hl_judge_verdict(o->judge);
    const hl_verdict *v = &o->verdict;
    if (!hl_learner_matching(l) || o->regression & 2) /* steps tell f from g */
        return HL_OK;
    bool open = both_open(l), few = v->reasons & HL_REASON_FEW_TRAJECTORIES;
    if (!few && !(v->reasons & HL_REASON_STATIONARY_DATA))
        return v->movement < weak && open
                   ? hl_learned_add(l->learned, finding_of(HL_SDE_FINDING_LITTLE_MOVEMENT, v->movement, 0))
                   : HL_OK;
    hl_sde_finding finding = few ? finding_of(HL_SDE_FINDING_FEW_TRAJECTORIES, (double)v->trajectories, 0)
                                 : finding_of(HL_SDE_FINDING_STATIONARY, v->movement, v->noise);
    return open && !hl_settings_flag(l->settings, "anyway", false) ? hl_learned_refuse(l->learned, finding)
                                                                   : hl_learned_add(l->learned, finding);
}

/* ---- reports ---- */

/* HL_STOPPED if the user wants no more. */
static hl_status report(hl_learner *l, const hl_sde_progress *p)
{
    bool stop = hl_check_stop(l->ctx) != HL_OK;
    stop = (l->job.progress && l->job.progress(p, l->job.user)) || stop;
    return hl_ranks_agree(l->ctx, stop ? HL_STOPPED : HL_OK); /* all ranks stop where one does */
}

/* The share of all work that is done, in iterations of training. */
static double fraction_of(const hl_learner *l, double done)
{
    double bands = (double)(l->replicates * hl_ensemble_iterations(l->options.iterations));
    return done / (l->choice + (double)l->options.iterations + bands);
}

static hl_status report_choice(void *user, size_t done, size_t all)
{
    static const double cost = 0.25; /* of an iteration of the density alone */
    hl_learner *l = user;
    l->choice = cost * (double)all;
    return report(l, &(hl_sde_progress){ .phase = HL_SDE_PHASE_CHOICE,
                                         .iteration = done,
                                         .iterations = all,
                                         .fraction = fraction_of(l, cost * (double)done),
                                         .loss = NAN,
                                         .nll = NAN,
                                         .outcome = l->outcome });
}

static hl_status report_training(hl_learner *l, const hl_sde_fit_report *r)
{
    const hl_sde_fit_options *o = &l->options;
    bool plain = o->penalty == HL_SDE_L1 && !o->density_form && l->sde->curvature == HL_SDE_EXACT;
    hl_sde_progress p = { .phase = HL_SDE_PHASE_TRAINING,
                          .iteration = r->iteration,
                          .iterations = o->iterations,
                          .fraction = fraction_of(l, l->choice + (double)r->iteration),
                          .kind = !hl_learner_matching(l) ? HL_SDE_LOSS_STEP
                                  : plain                 ? HL_SDE_LOSS_RESIDUAL
                                                          : HL_SDE_LOSS_PENALTY,
                          .loss = r->loss,
                          .nll = r->nll,
                          .lambda = r->lambda,
                          .outcome = l->outcome };
    if (r->loss == 0) /* the density alone is trained */
        p.loss = NAN;
    else if (p.kind == HL_SDE_LOSS_RESIDUAL)
        p.loss /= hl_sde_time_unit(l->sde);
    memcpy(p.gradient_norm, r->gradient_norm, sizeof p.gradient_norm);
    return report(l, &p);
}

static hl_status report_bands(void *user, size_t done, size_t all)
{
    hl_learner *l = user;
    double before = l->choice + (double)l->options.iterations;
    return report(
        l, &(hl_sde_progress){
               .phase = HL_SDE_PHASE_BANDS,
               .iteration = done,
               .iterations = all,
               .fraction = fraction_of(l, before + (double)(done * hl_ensemble_iterations(l->options.iterations))),
               .loss = NAN,
               .nll = NAN,
               .outcome = l->outcome });
}

/* ---- model ---- */

static hl_status choose_components(hl_learner *l)
{
    size_t *count = &l->spec.components;
    if (!hl_learner_matching(l) || *count || hl_settings_choice(l->settings, "density", 0) != 0)
        return HL_OK;
    hl_status status = HL_OK;
    if (l->job.resume)
        status = hl_learner_chosen_before(l, count);
    if (status == HL_OK && !*count)
        status = hl_sde_choose(l->ctx, &l->spec, &l->data, &l->options, report_choice, l, count);
    l->outcome->components_chosen = status == HL_OK && *count;
    return status;
}

static hl_status create(hl_learner *l)
{
    hl_sde_outcome *o = l->outcome;
    if (!hl_learner_matching(l) && !l->simple)
        hl_learner_choose_speed(l);
    hl_status status = choose_components(l);
    if (status == HL_OK)
        status = hl_sde_create(l->ctx, &l->spec, &l->sde);
    if (status == HL_OK)
        status = hl_sde_init(l->sde, l->options.seed + 1);
    for (size_t i = 0; i <= l->given->dim && status == HL_OK; i++)
        status = hl_sde_set_name(l->sde, i, l->learned->name[i]);
    if (status == HL_OK)
        l->sde->dates = l->given->dates != 0;
    if (status == HL_OK)
        status = hl_sde_fit_create(l->sde, &l->data, &l->options, &l->fit);
    if (status == HL_OK)
        status = hl_learner_describe(l);
    if (status == HL_OK)
        status = hl_ranks_compare(l->ctx, "table or settings", l->checkpoint_settings, strlen(l->checkpoint_settings));
    if (status == HL_OK && l->job.resume)
        status = hl_sde_fit_load(l->fit, l->checkpoint_settings, l->job.checkpoint);
    if (status != HL_OK)
        return status;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        o->parameters += hl_net_size(hl_sde_net(l->sde, n));
    o->components = l->sde->flow.count ? 0 : l->sde->spec.components;
    o->batch = l->options.batch;
    o->first = o->iterations = hl_sde_fit_iteration(l->fit);
    return HL_OK;
}

/* ---- training ---- */

static hl_status save(hl_learner *l)
{
    bool first = l->ctx->ranks.rank == 0; /* the one that writes */
    l->saved = hl_clock();
    return first && l->job.checkpoint ? hl_sde_fit_save(l->fit, l->checkpoint_settings, l->job.checkpoint) : HL_OK;
}

/* HL_OK when all iterations are done. */
static hl_status train(hl_learner *l)
{
    hl_sde_fit_report r = { .iteration = l->outcome->first, .loss = NAN, .nll = NAN };
    size_t all = l->options.iterations, last = all / 10 ? all / 10 : all;
    double every = l->job.save_every > 0 ? l->job.save_every : 20;
    hl_status status = report_training(l, &r);
    while (status == HL_OK && r.iteration < all && (status = hl_sde_fit_step(l->fit, &r)) == HL_OK) {
        l->outcome->iterations = r.iteration;
        if (r.iteration > all - last) {
            l->loss += r.loss;
            l->losses++;
        }
        status = report_training(l, &r);
        if (status == HL_OK && hl_clock() - l->saved > every)
            status = hl_checkpoint_tell(l->ctx, &l->job, save(l));
    }
    return status;
}

static hl_status finish(hl_learner *l)
{
    hl_status status = hl_sde_fit_finish(l->fit);
    return status == HL_OK ? hl_sde_set_note(l->sde, l->outcome->settings) : status;
}

/* Networks of simulated data. */
static hl_status add_bands(hl_learner *l)
{
    return l->replicates ? hl_ensemble_fit(l->sde, &l->spec, &l->data, &l->options, l->replicates, report_bands, l)
                         : HL_OK;
}

/* Keep what there is of a run that was stopped. */
static hl_status stop(hl_learner *l)
{
    hl_status status = l->fit ? save(l) : HL_OK;
    if (status == HL_OK && l->fit)
        status = finish(l);
    return status == HL_OK ? HL_STOPPED : status;
}

/* ---- judgement ---- */

/* Did pseudo-ml learn anything? Its loss over the last iterations tells. */
static hl_status check_steps(hl_learner *l)
{
    double constant, loss = l->losses ? l->loss / (double)l->losses : NAN;
    hl_status status = hl_learner_constant_loss(l, &constant);
    if (status != HL_OK || !(loss > constant + 0.1 * (double)l->given->dim))
        return status;
    hl_sde_finding finding = finding_of(HL_SDE_FINDING_STEPS_UNLIKELY, loss, constant);
    finding.fatal = 1;
    return hl_learned_add(l->learned, finding);
}

/* What the verdict's reasons are, as findings. */
static hl_status add_reasons(hl_learner *l)
{
    const hl_verdict *v = &l->outcome->verdict;
    bool matching = hl_learner_matching(l);
    const struct {
        unsigned reason;
        hl_sde_finding_kind kind;
        double value;
        bool fatal;
    } rows[] = { { HL_REASON_TIME_DEPENDENT, HL_SDE_FINDING_TIME_DEPENDENT, NAN, false },
                 { HL_REASON_FEW_STEPS, HL_SDE_FINDING_FEW_STEPS, NAN, false },
                 { HL_REASON_WIDE_BAND, HL_SDE_FINDING_WIDE_BAND, v->band, false },
                 { HL_REASON_REGRESSION, HL_SDE_FINDING_REGRESSION, v->regression[0], false },
                 { HL_REASON_UNEXPLAINED, HL_SDE_FINDING_UNEXPLAINED, v->unexplained, false },
                 { HL_REASON_SPEED, HL_SDE_FINDING_STEPS_MISSED, v->speed, false },
                 { HL_REASON_DENSITY, HL_SDE_FINDING_DENSITY_MISSES, v->density, true },
                 { HL_REASON_SIMULATIONS, HL_SDE_FINDING_SIMULATIONS_MISS, v->simulated, matching } };
    hl_status status = HL_OK;
    for (size_t k = 0; k < HL_RESIDUAL_TESTS && status == HL_OK; k++)
        if (v->test[k].failed)
            status = hl_learned_add(l->learned, finding_of((hl_sde_finding_kind)(HL_SDE_FINDING_RESIDUALS + (int)k),
                                                           v->test[k].effect, v->test[k].sigma));
    for (size_t k = 0; k < HL_WEAK_TESTS && status == HL_OK; k++)
        if (v->means_test[k].failed)
            status = hl_learned_add(l->learned, finding_of((hl_sde_finding_kind)(HL_SDE_FINDING_MEANS + (int)k),
                                                           v->means_test[k].effect, v->means_test[k].sigma));
    for (size_t k = 0; k < sizeof rows / sizeof *rows && status == HL_OK; k++)
        if (v->reasons & rows[k].reason) {
            hl_sde_finding finding = finding_of(rows[k].kind, rows[k].value, v->regression[1]);
            finding.fatal = rows[k].fatal;
            status = hl_learned_add(l->learned, finding);
        }
    return status;
}

/* What came of it: do density, simulations and steps do as the data do? */
static hl_status judge(hl_learner *l)
{
    hl_sde_outcome *o = l->outcome;
    hl_status status = hl_judge_model(o->judge, l->sde);
    if (status != HL_OK)
        return status;
    o->verdict = hl_judge_verdict(o->judge);
    o->judged = 1;
    status = add_reasons(l);
    return status == HL_OK && !hl_learner_matching(l) && !l->simple ? check_steps(l) : status;
}

/* ---- the call ---- */

static hl_status learn(hl_learner *l)
{
    hl_status status = hl_ranks_agree(l->ctx, hl_learner_take_data(l));
    if (status == HL_OK)
        status = hl_ranks_compare(l->ctx, "table or settings", &l->hash, sizeof l->hash);
    if (status == HL_OK)
        status = hl_learner_read_settings(l);
    if (status == HL_OK)
        status = hl_learner_check_data(l);
    if (status == HL_OK)
        status = hl_learner_regress(l);
    if (status == HL_OK)
        status = check_movement(l);
    if (status == HL_OK)
        status = create(l);
    if (status == HL_OK)
        status = train(l);
    if (status == HL_STOPPED)
        return stop(l);
    if (status == HL_OK)
        status = finish(l);
    if (status == HL_OK)
        status = add_bands(l);
    if (status == HL_STOPPED)
        return stop(l);
    if (status == HL_OK)
        status = judge(l);
    return status != HL_OK && hl_check_stop(l->ctx) != HL_OK ? stop(l) : status;
}

static void free_learner(hl_learner *l)
{
    hl_sde_fit_free(l->fit);
    hl_sde_simple_free(l->simple);
    hl_sde_forms_free(l->forms);
    void *const blocks[] = { (void *)l->data.t, (void *)l->data.x,     l->number, l->row, l->known,
                             l->linear,         l->checkpoint_settings };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(l->ctx, blocks[i]);
}

static hl_status check_arguments(hl_context *ctx, const hl_sde_observations *data, const hl_settings *settings,
                                 const hl_job *job)
{
    if (!data || data->rows < 2 || data->dim < 1 || !data->t || !data->x)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_learn: at least two rows of t and x are needed");
    if (job && job->resume && !job->checkpoint)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_learn: a job that resumes needs a checkpoint");
    hl_status status = hl_settings_check(ctx, settings, hl_sde_learn_options());
    return status == HL_OK ? hl_learner_check_settings(ctx, settings) : status;
}

hl_status hl_sde_learn(hl_context *ctx, const hl_sde_observations *data, const hl_settings *settings, const hl_job *job,
                       hl_sde **sde, hl_sde_outcome **outcome)
{
    if (sde)
        *sde = NULL;
    if (outcome)
        *outcome = NULL;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!sde)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_learn: the result is NULL");
    hl_learner l = { .ctx = ctx, .given = data, .settings = settings, .job = job ? *job : (hl_job){ 0 } };
    hl_status status = check_arguments(ctx, data, settings, job);
    if (status == HL_OK)
        status = hl_learned_create(ctx, data, &l.learned);
    if (status != HL_OK)
        return status;
    l.outcome = &l.learned->outcome;
    l.start = l.saved = hl_clock();
    status = learn(&l);
    l.outcome->seconds = hl_clock() - l.start;
    free_learner(&l);
    if (status != HL_OK && status != HL_STOPPED) {
        hl_sde_free(l.sde);
        l.sde = NULL;
    }
    *sde = l.sde;
    if (outcome && status != HL_ERR_NOMEM)
        *outcome = l.outcome;
    else
        hl_sde_outcome_free(l.outcome);
    return status;
}
