/* density_fit.c - the call: data, choices, the loop of training, and what came of it.
 *
 * The model is made before training, around the flow that is trained, and handed out at the end with the best parameters in it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/ranks.h"
#include "flow/flow.h"
#include "learn/checkpoint.h"
#include "learn/density.h"
#include "learn/density_atoms.h"
#include "learn/density_fit.h"
#include "learn/fit.h"

enum { SETTINGS = 1000 };                              /* bytes of the line that describes them */
enum { JUDGED_ROWS = 5 };                              /* of validation, from which on they are said to contradict */
static const double SAVE_EVERY = 20, ASK_EVERY = 0.05; /* seconds */

/* An outcome as the caller sees it, and what it points to. */
typedef struct outcome {
    hl_density_outcome seen; /* first */
    hl_context *ctx;
    hl_finding *finding;
    char settings[SETTINGS];
} outcome;

typedef struct run {
    hl_context *ctx;
    const hl_job *job;
    hl_fit_table table;
    hl_fit_stream *stream; /* that the table is the sample of; or NULL */
    hl_fit_members members;
    hl_fit_variant variant; /* how the flow is trained */
    hl_fit_plan plan;
    hl_density *model;
    hl_fit *fit;
    hl_fit_pace pace;
    hl_fit_report report; /* of the last iteration */
    double fall;          /* by how much the last validation was better than the best before; 0 if it was not */
    double validation;    /* the last, in the units of the data; NaN before the first */
    double scale;         /* from the flow's -log p to what is behind the columns' forms */
    double form_scale;    /* and from there to the units of the data */
    double start, saved;  /* when the call began; when the last checkpoint was written */
    bool stopped;         /* after training, while members were weighed */
    outcome *outcome;
    int (*stop)(void *user); /* the context's own, while mixtures are fitted */
    void *stop_user;
    double asked; /* when the job was asked last */
} run;

/* ---- outcome ---- */

static hl_status create_outcome(run *r)
{
    r->outcome = hl_calloc(r->ctx, 1, sizeof *r->outcome);
    if (!r->outcome)
        return HL_ERR_NOMEM;
    r->outcome->ctx = r->ctx;
    r->outcome->seen = (hl_density_outcome){
        .verdict = HL_DENSITY_UNVALIDATED, .best = NAN, .normal = NAN, .recent = NAN, .settings = r->outcome->settings
    };
    r->outcome->seen.mixture = r->outcome->seen.flow = NAN;
    r->outcome->seen.gain = r->outcome->seen.gain_error = NAN;
    return HL_OK;
}

hl_status hl_fit_make_outcome(hl_context *ctx, const hl_density_outcome *like, const char *settings,
                              hl_density_outcome **out)
{
    outcome *o = hl_calloc(ctx, 1, sizeof *o);
    hl_finding *finding = hl_calloc(ctx, like->findings, sizeof *finding);
    *out = NULL;
    if (!o || !finding) {
        hl_free(ctx, o);
        hl_free(ctx, finding);
        return HL_ERR_NOMEM;
    }
    o->ctx = ctx;
    o->seen = *like;
    o->finding = finding;
    if (like->findings)
        memcpy(finding, like->finding, like->findings * sizeof *finding);
    snprintf(o->settings, sizeof o->settings, "%s", settings);
    o->seen.finding = finding;
    o->seen.settings = o->settings;
    *out = &o->seen;
    return HL_OK;
}

void hl_density_outcome_free(hl_density_outcome *seen)
{
    outcome *o = (outcome *)seen;
    if (!o)
        return;
    hl_free(o->ctx, o->finding);
    hl_free(o->ctx, o);
}

/* The findings go over to the outcome. */
static void hand_over_findings(run *r)
{
    r->outcome->finding = r->table.finding;
    r->outcome->seen.finding = r->table.finding;
    r->outcome->seen.findings = r->table.findings;
    r->table.finding = NULL;
    r->table.findings = r->table.finding_room = 0;
}

static bool is_continuous(const run *r)
{
    return !r->plan.flow.kind || strcmp(r->plan.flow.kind, "cnf") == 0;
}

/* Mean -log p of the validation rows for normal columns, correlated if decorrelated, which any training should beat. */
static double normal_nll(const run *r)
{
    const hl_fit_table *t = &r->table;
    size_t rows = r->members.mixtures ? t->valid.rows : hl_fit_validation_rows(r->fit); /* those that judge the model */
    double sum = 0, weight = 0;
    if (t->mapped)
        return r->members.normal;
    for (size_t i = 0; t->valid.w && i < rows; i++)
        weight += t->valid.w[i];
    for (size_t i = 0; i < rows * t->dim; i++) {
        double half = 0.5 * t->valid.x[i] * t->valid.x[i];
        sum += t->valid.w ? half * (t->valid.w[i / t->dim] / weight) : half / (double)rows;
    }
    return sum + 0.5 * (double)t->dim * log(2 * 3.14159265358979323846) + r->scale;
}

static hl_density_verdict judge(const run *r)
{
    const hl_density_outcome *o = &r->outcome->seen;
    /* By how much training may miss the normal columns: less is what few rows are the reason of, more is a failure. */
    double slack = 0.2 + 0.05 * (double)r->table.dim;
    if (r->members.mixtures)
        return HL_DENSITY_GOOD;
    if (!isfinite(o->best))
        return HL_DENSITY_UNVALIDATED;
    if (!(o->best <= o->normal + slack))
        return HL_DENSITY_FAILED;
    if (o->recent > o->normal + 10 * slack && o->best_iteration < o->iteration) /* false if it is NaN: unknown */
        return HL_DENSITY_DIVERGED;
    if (o->best <= o->normal)
        return HL_DENSITY_GOOD;
    if (is_continuous(r))
        return HL_DENSITY_NORMAL;
    return r->table.valid.rows < JUDGED_ROWS ? HL_DENSITY_GOOD : HL_DENSITY_NORMAL_BETTER;
}

static void conclude(run *r, hl_density_end end)
{
    hl_density_outcome *o = &r->outcome->seen;
    o->end = end;
    o->iteration = r->report.iteration;
    if (end == HL_DENSITY_END_ERROR) /* a validation is part of its iteration */
        o->failed_iteration = r->report.iteration + !r->report.validated;
    o->best_iteration = r->report.best_iteration;
    o->best = isfinite(r->report.best) ? r->report.best + r->scale : NAN;
    o->normal = r->table.valid.rows ? normal_nll(r) : NAN;
    o->fall = end == HL_DENSITY_END_DONE ? r->fall : 0;
    o->seconds = hl_clock() - r->start;
    o->verdict = judge(r);
}

/* ---- the model ---- */

/* A flow without parameters leaves rows where they are. */
static void make_normal(const run *r)
{
    hl_flow *flow = hl_density_flow(r->model);
    for (size_t i = 0; i < hl_flow_nets(flow); i++)
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(flow, i)); p++) {
            hl_net_param q;
            hl_net_param_get(hl_flow_net(flow, i), p, &q);
            memset(q.values, 0, q.size * hl_dtype_size(hl_net_describe(hl_flow_net(flow, i)).dtype));
        }
}

/* log p, by the model as it is, of standardised rows whose context comes first. */
static hl_status score_rows(run *r, size_t rows, const double *joined, double *logp)
{
    const hl_fit_table *t = &r->table;
    double *x = hl_calloc(r->ctx, hl_size_mul(rows, t->dim), sizeof *x);
    double *c = hl_calloc(r->ctx, hl_size_mul(rows, t->context), sizeof *c);
    hl_status status = x && c ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < rows && status == HL_OK; i++, joined += t->dim + t->context) {
        for (size_t k = 0; k < t->context; k++)
            c[i * t->context + k] = t->column[t->dim + k].mean + t->column[t->dim + k].deviation * joined[k];
        for (size_t k = 0; k < t->dim; k++)
            x[i * t->dim + k] = t->column[k].mean + t->column[k].deviation * joined[t->context + k];
    }
    if (status == HL_OK)
        status = hl_density_logp(r->model, rows, x, t->context ? c : NULL, logp);
    hl_free(r->ctx, x);
    hl_free(r->ctx, c);
    return status == HL_ERR_NOMEM || status == HL_STOPPED ? status : HL_OK; /* rows that fail are NaN */
}

/* log p of the flow alone on the validation rows, which the table has as the flow sees them. */
static hl_status score_flow(run *r, double *logp)
{
    const hl_fit_table *t = &r->table;
    hl_status status = hl_flow_logp(r->model->flow, t->valid.rows, t->valid.x, t->context ? t->valid.c : NULL, logp);
    for (size_t i = 0; i < t->valid.rows; i++)
        logp[i] -= r->scale - t->map_scale - (t->mapped ? t->valid_slope[i] : 0);
    return status == HL_ERR_NOMEM || status == HL_STOPPED ? status : HL_OK;
}

/* What the flow adds to the mixtures on the rows of the report, the mixtures being in the model with weights of the sum 1. */
static hl_status report_gain(run *r, const double *weight)
{
    hl_density_outcome *o = &r->outcome->seen;
    hl_density *model = r->model;
    size_t rows = r->members.report_rows, good = 0, mixtures = model->mixtures;
    double *flow = hl_calloc(r->ctx, rows, sizeof *flow), *simple = hl_calloc(r->ctx, rows, sizeof *simple);
    hl_status status = flow && simple ? HL_OK : HL_ERR_NOMEM;
    double sum = 0, square = 0;
    model->mixtures = 0; /* the flow alone, then the mixtures alone */
    if (status == HL_OK)
        status = score_rows(r, rows, r->members.report, flow);
    hl_flow *kept = model->flow;
    model->mixtures = mixtures;
    model->flow = NULL;
    if (status == HL_OK)
        status = score_rows(r, rows, r->members.report, simple);
    model->flow = kept;
    for (size_t i = 0; i < rows && status == HL_OK; i++) {
        double gain = hl_fit_mix(2, weight, (const double *const[]){ flow, simple }, i) - simple[i];
        if (!isfinite(gain))
            continue;
        good++;
        sum += gain;
        square += gain * gain;
    }
    hl_free(r->ctx, flow);
    hl_free(r->ctx, simple);
    r->stopped = r->stopped || status == HL_STOPPED;
    if (good < 2 || status != HL_OK)
        return status == HL_ERR_NOMEM ? status : HL_OK;
    double n = (double)good, mean = sum / n;
    o->gain = mean;
    o->gain_error = sqrt(fmax(square / n - mean * mean, 0) / (n - 1));
    o->gain_rows = good;
    return HL_OK;
}

/* Weights of the flow and of the mixtures together on the validation rows; the flow gets 0 if the sum is no better than without it. */
static hl_status weigh_flow(run *r, double *weight)
{
    const hl_fit_members *m = &r->members;
    hl_density_outcome *o = &r->outcome->seen;
    size_t rows = r->table.valid.rows;
    double *flow = hl_calloc(r->ctx, rows, sizeof *flow), best = 0, total = 0;
    const double *logp[] = { flow, m->logp };
    hl_status status = flow ? score_flow(r, flow) : HL_ERR_NOMEM;
    if (status == HL_OK)
        hl_fit_weigh(rows, 2, logp, r->table.valid.w, weight);
    for (size_t i = 0; i < rows; i++)
        total += r->table.valid.w ? r->table.valid.w[i] : 1;
    for (size_t i = 0; i < rows && status == HL_OK; i++)
        best -= (r->table.valid.w ? r->table.valid.w[i] : 1) * hl_fit_mix(2, weight, logp, i) / total;
    if (status == HL_OK && best < m->together) {
        o->best = best;
    } else {
        weight[0] = 0;
        weight[1] = 1;
    }
    hl_free(r->ctx, flow);
    r->stopped = status == HL_STOPPED; /* then the mixtures are the model */
    return r->stopped ? HL_OK : status;
}

/* A mixture that would have less than 1 % of the model, all mixtures having `weight` of it, leaves it for the other. */
static void drop_small(hl_fit_members *m, double weight)
{
    size_t least = m->share[1] < m->share[0];
    if (m->mixtures < 2 || m->share[least] * weight >= HL_FIT_LEAST_WEIGHT || !(m->share[least] > 0))
        return;
    m->share[least] = 0;
    m->share[!least] = 1;
}

/* The mixtures join the model; a member that is worth less than 1 % leaves it. */
static hl_status weigh_members(run *r)
{
    hl_fit_members *m = &r->members;
    hl_density_outcome *o = &r->outcome->seen;
    double weight[2] = { 0, 1 };
    hl_status status = HL_OK;
    o->flow = isfinite(r->report.best) ? r->report.best + r->scale : r->variant.score;
    o->best = o->mixture = m->together;
    o->parts = m->mixture[m->share[1] > m->share[0]]->parts;
    if (r->report.iteration > 0)
        status = weigh_flow(r, weight);
    drop_small(m, weight[1]);
    for (size_t k = 0; k < m->mixtures && status == HL_OK; k++)
        if (m->share[k] > 0) {
            status = hl_density_add_mixture(r->model, m->mixture[k], m->mapped[k], m->share[k]);
            m->mixture[k] = NULL;
        }
    if (status == HL_OK && m->report_rows && weight[0] > 0)
        status = report_gain(r, weight);
    if (status == HL_OK)
        hl_density_weigh(r->model, weight[0]);
    if (m->is_normal && weight[0] == 0)
        o->verdict = HL_DENSITY_NORMAL;
    else if (o->best > o->normal &&
             r->table.valid.rows >= JUDGED_ROWS) /* by chance, as the rows that chose the mixtures say otherwise */
        o->verdict = HL_DENSITY_NORMAL_BETTER;
    return status;
}

/* The course of the training goes to the model, in the units of the data. */
static hl_status keep_course(run *r)
{
    const hl_curve *from = hl_fit_curve(r->fit);
    hl_density_training *t = from->count ? hl_density_add_training(r->model) : NULL;
    double scale = r->scale + r->form_scale;
    if (!t)
        return from->count ? HL_ERR_NOMEM : HL_OK;
    t->curve = *from;
    for (size_t i = 0; i < from->count; i++) {
        hl_training_point *p = &t->curve.point[i];
        p->loss += p->phase == HL_FIT_LIKELIHOOD ? scale : 0;
        p->validation += scale;
    }
    return HL_OK;
}

/* The best so far becomes the model. Nothing that training found may be better than a normal distribution: of few rows a flow learns
 * more than is there. */
static hl_status finish_model(run *r)
{
    char note[SETTINGS + 100];
    const hl_density_outcome *o = &r->outcome->seen;
    bool normal = is_continuous(r) && o->best > o->normal && o->verdict != HL_DENSITY_FAILED && !r->members.mixtures;
    hl_status status = hl_fit_finish(r->fit);
    if (status == HL_OK && normal)
        make_normal(r);
    if (status == HL_OK)
        status = hl_density_set_solver(r->model, &r->plan.options.solver);
    snprintf(note, sizeof note, "%s; best iteration %zu%s", o->settings, o->best_iteration,
             normal ? ", but a normal distribution is better" : "");
    if (status == HL_OK && r->members.mixtures)
        status = weigh_members(r);
    if (status == HL_OK)
        status = keep_course(r);
    return status == HL_OK ? hl_density_set_note(r->model, note) : status;
}

/* ---- reports and checkpoints ---- */

/* The context's stop while mixtures are fitted and flows are tried: its own, then, now and then, that of the job. */
static int stop_mixtures(void *user)
{
    run *r = user;
    double now = hl_clock();
    if (r->stop && r->stop(r->stop_user))
        return 1;
    if (!r->job || !r->job->progress || now - r->asked < ASK_EVERY)
        return 0;
    r->asked = now;
    hl_density_progress progress = { .phase = HL_FIT_MIXING,
                                     .loss = NAN,
                                     .validation = NAN,
                                     .best = NAN,
                                     .validation_fixed = NAN,
                                     .seconds = now - r->start,
                                     .seconds_left = NAN,
                                     .so_far = &r->outcome->seen };
    return r->job->progress(&progress, r->job->user) != 0;
}

static hl_status prepare(run *r, const hl_settings *settings)
{
    hl_context *ctx = r->ctx;
    r->stop = ctx->stop;
    r->stop_user = ctx->stop_user;
    r->asked = -INFINITY;
    ctx->stop = stop_mixtures;
    ctx->stop_user = r;
    hl_status status = hl_ranks_agree(ctx, hl_fit_members_fit(&r->table, settings, &r->members));
    if (status == HL_OK)
        status = hl_fit_try(&r->members, &r->table, settings, &r->variant);
    ctx->stop = r->stop;
    ctx->stop_user = r->stop_user;
    return status;
}

static bool tell(run *r, double left)
{
    const hl_fit_report *p = &r->report;
    const hl_job *job = r->job;
    if (p->validated)
        r->validation = p->validation + r->scale + r->form_scale;
    double scale = r->scale + r->form_scale;
    hl_density_progress progress = { .phase = p->phase,
                                     .iteration = p->iteration,
                                     .iterations = r->outcome->seen.iterations,
                                     .loss = p->loss + (p->phase == HL_FIT_LIKELIHOOD ? scale : 0),
                                     .validation = r->validation,
                                     .best = isfinite(p->best) ? p->best + scale : NAN,
                                     .best_iteration = p->best_iteration,
                                     .validated = p->validated,
                                     .validation_fixed = p->validated ? p->validation_fixed + scale : NAN,
                                     .steps_doubled = p->steps_doubled,
                                     .gradient_norm = p->gradient_norm,
                                     .evaluations = p->evaluations,
                                     .backward = p->backward,
                                     .ode_steps = p->ode_steps,
                                     .seconds = hl_clock() - r->pace.start,
                                     .seconds_left = left,
                                     .rows_per_second = hl_fit_pace_rows(&r->pace, p->phase),
                                     .so_far = &r->outcome->seen };
    return job && job->progress && job->progress(&progress, job->user) != 0;
}

static hl_status save(run *r)
{
    bool first = r->ctx->ranks.rank == 0; /* the one that writes */
    r->saved = hl_clock();
    return first && r->job && r->job->checkpoint ? hl_fit_save(r->fit, r->outcome->settings, r->job->checkpoint)
                                                 : HL_OK;
}

/* ---- the loop ---- */

/* After an iteration. *end is set if it was the last one. */
static hl_status after_iteration(run *r, bool *over, hl_density_end *end)
{
    const hl_fit_report *p = &r->report;
    double *recent = &r->outcome->seen.recent, loss = p->loss + r->scale;
    double every = r->job && r->job->save_every > 0 ? r->job->save_every : SAVE_EVERY, left;
    if (p->phase == HL_FIT_LIKELIHOOD && isfinite(loss))
        *recent = isnan(*recent) ? loss : *recent + (loss - *recent) * 0.1;
    *over = true;
    *end = HL_DENSITY_END_STOPPED;
    hl_status status = hl_fit_pace_step(&r->pace, r->fit, p, &left);
    if (status < 0)
        return status;
    if (tell(r, left) || status == HL_STOPPED)
        return HL_STOPPED;
    *end = HL_DENSITY_END_TIME;
    if (r->plan.minutes > 0 && hl_clock() - r->start > 60 * r->plan.minutes)
        return HL_OK;
    *over = false;
    return hl_clock() - r->saved > every ? hl_checkpoint_tell(r->ctx, r->job, save(r)) : HL_OK;
}

/* All ranks end where one does: its user stopped it, or its time is over. */
static hl_status end_together(run *r, hl_status status, bool *over, hl_density_end *end)
{
    double wish = status == HL_STOPPED ? 2 : status == HL_OK && *over ? 1 : 0;
    hl_status agreed = status == HL_OK || status == HL_STOPPED ? hl_ranks_most(r->ctx, &wish) : status;
    if (agreed != HL_OK || wish == 0)
        return agreed;
    *over = true;
    *end = wish == 2 ? HL_DENSITY_END_STOPPED : HL_DENSITY_END_TIME;
    return wish == 2 ? HL_STOPPED : HL_OK;
}

/* Is the flow, when two fifths of its time are over, too far behind the mixtures to add anything? */
static bool is_behind(const run *r)
{
    const hl_fit_report *p = &r->report;
    return r->members.mixtures && p->validated && 5 * p->iteration >= 2 * r->plan.options.iterations &&
           p->best + r->scale > r->members.together + r->plan.reach;
}

/* The job is stopped: what is needed to go on later. */
static hl_status stop(run *r)
{
    hl_status saved = save(r);
    return saved == HL_OK ? HL_STOPPED : saved;
}

/* The outcome's schedule is that of the fit, which may have been extended. */
static void follow_schedule(run *r)
{
    r->outcome->seen.iterations = hl_fit_iterations(r->fit);
    r->outcome->seen.extensions = hl_fit_extensions(r->fit);
}

/* Train until the end, whichever it is. */
static hl_status train(run *r, hl_density_end *end)
{
    bool over = false;
    hl_status status = HL_OK;
    r->saved = hl_clock();
    follow_schedule(r);
    while (!over && status == HL_OK) {
        *end = hl_fit_iteration(r->fit) < r->outcome->seen.iterations ? HL_DENSITY_END_PATIENCE : HL_DENSITY_END_DONE;
        if (hl_fit_is_done(r->fit))
            break;
        double before = r->report.best;
        status = hl_fit_step(r->fit, &r->report);
        follow_schedule(r);
        if (r->report.validated)
            r->fall = r->report.best < before && isfinite(before) ? before - r->report.best : 0;
        *end = HL_DENSITY_END_ERROR;
        if (status == HL_OK)
            status = end_together(r, after_iteration(r, &over, end), &over, end);
        if (status == HL_OK && !over && is_behind(r)) {
            over = true;
            *end = HL_DENSITY_END_BEHIND;
        } else if (status == HL_STOPPED) { /* in the middle of a solve */
            *end = HL_DENSITY_END_STOPPED;
            status = HL_STOPPED;
        }
    }
    return status == HL_STOPPED ? stop(r) : status;
}

/* ---- from the call to the loop ---- */

/* Of the flow and of the mixtures; a part has a weight, of which the last is what the others leave, a mean and a covariance. */
static size_t count_parameters(const hl_density *model)
{
    size_t count = 0, d = model->dim + model->context;
    for (size_t i = 0; model->flow && i < hl_flow_nets(model->flow); i++)
        count += hl_net_size(hl_flow_net(model->flow, i));
    for (size_t k = 0; k < model->mixtures; k++)
        count += model->mixture[k].mixture->parts * (1 + d + d * (d + 1) / 2) - 1;
    return count;
}

static void describe(run *r)
{
    hl_density_outcome *o = &r->outcome->seen;
    hl_flow *flow = hl_density_flow(r->model);
    hl_fit_describe(&r->table, &r->plan, flow, r->outcome->settings, SETTINGS);
    o->train_rows = r->stream ? hl_fit_stream_rows(r->stream) : r->table.train.rows;
    o->valid_rows = r->table.valid.rows;
    o->decorrelated = r->table.factor != NULL;
    o->iterations = r->plan.options.iterations;
    o->patience = r->plan.options.patience;
    o->parameters = r->members.alone ? 0 : count_parameters(r->model);
}

static hl_status create_model(run *r)
{
    const hl_fit_table *t = &r->table;
    hl_status status = hl_density_create(r->ctx, &r->plan.flow, t->column, &r->model);
    if (status == HL_OK)
        status = hl_flow_init(hl_density_flow(r->model), r->plan.options.seed + 1);
    if (status == HL_OK)
        status = hl_density_set_factor(r->model, t->factor);
    if (status == HL_OK) { /* they belong to the model from now on */
        hl_density_set_maps(r->model, r->members.map);
        r->members.map = NULL;
        r->model->flow_mapped = t->mapped;
    }
    if (status == HL_OK) /* one that there is not is told now, not by the first validation */
        status = hl_density_set_solver(r->model, &r->plan.options.solver);
    r->scale = hl_fit_table_scale(t);
    r->form_scale = hl_fit_table_form_scale(t);
    return status;
}

static hl_status create(run *r, const hl_settings *settings)
{
    const hl_fit_table *t = &r->table;
    hl_status status = hl_fit_choose(t, settings, &r->variant, &r->plan);
    if (status == HL_OK)
        status = create_model(r);
    hl_fit_data train_rows = { t->train.rows, t->train.x, t->context ? t->train.c : NULL, t->train.w };
    hl_fit_source source = { hl_fit_stream_read, r->stream };
    hl_fit_data valid_rows = { t->valid.rows, t->valid.x, t->context ? t->valid.c : NULL, t->valid.w };
    if (status == HL_OK && r->stream) { /* the sample has done its work */
        r->stream->table = t;
        r->stream->map = r->model->map;
        train_rows = (hl_fit_data){ .rows = hl_fit_stream_rows(r->stream) };
    }
    if (status == HL_OK)
        status = hl_fit_create_from(hl_density_flow(r->model), &train_rows, r->stream ? &source : NULL, &valid_rows,
                                    &r->plan.options, &r->fit);
    if (status != HL_OK)
        return status;
    if (r->members.mixtures) /* a flow that is worse than they are adds little, however long it is trained */
        hl_fit_extend_below(r->fit, r->members.together - r->scale);
    describe(r);
    status = hl_ranks_compare(r->ctx, "table or settings", r->outcome->settings, strlen(r->outcome->settings));
    if (status == HL_OK && r->job && r->job->resume)
        status = hl_fit_load(r->fit, r->outcome->settings, r->job->checkpoint);
    return status;
}

/* So far all was behind the columns' forms. The model gets them, and the outcome the units of the data. */
static hl_status leave_forms(run *r)
{
    hl_density_outcome *o = &r->outcome->seen;
    double *const values[] = { &o->best, &o->normal, &o->recent, &o->mixture, &o->flow };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        *values[i] += r->form_scale;
    return hl_density_set_forms(r->model, r->table.form);
}

static hl_status fit(run *r, const hl_density_data *data, const hl_settings *settings)
{
    hl_density_end end = HL_DENSITY_END_ERROR;
    hl_status status = hl_fit_table_load(&r->table, data, settings);
    if (status == HL_OK)
        status = hl_ranks_agree(r->ctx, prepare(r, settings));
    if (status == HL_OK && r->variant.mapped)
        status = hl_fit_members_map(&r->members, &r->table);
    if (status == HL_OK)
        status = hl_fit_decorrelate(&r->table, settings, &r->variant);
    hl_fit_table_hash(&r->table);
    hand_over_findings(r);
    if (status == HL_OK)
        status = create(r, settings);
    if (status != HL_OK)
        return status;
    r->report = (hl_fit_report){ .iteration = hl_fit_iteration(r->fit), .best = INFINITY };
    hl_fit_pace_start(&r->pace, r->fit);
    if (tell(r, NAN)) {
        end = HL_DENSITY_END_STOPPED;
        status = stop(r);
    } else if (r->members.alone || r->variant.hopeless) {
        end = r->members.alone ? HL_DENSITY_END_DONE : HL_DENSITY_END_BEHIND;
    } else {
        status = train(r, &end);
    }
    conclude(r, end);
    bool keep = status == HL_OK || status == HL_STOPPED ||
                (status != HL_ERR_NOMEM && (isfinite(r->report.best) || r->members.mixtures));
    hl_status finished = keep ? finish_model(r) : status;
    if (keep && finished == HL_OK)
        finished = leave_forms(r);
    if (keep && finished == HL_OK) {
        r->outcome->seen.parameters = count_parameters(r->model);
        if (r->stopped && status == HL_OK) {
            r->outcome->seen.end = HL_DENSITY_END_STOPPED;
            status = stop(r);
        }
        return status;
    }
    hl_density_free(r->model);
    r->model = NULL;
    return finished;
}

/* The cheapest solver for the finished model, unless the user chose one. A model is complete without it: only a lack of memory
 * is a failure. */
static hl_status calibrate(run *r, const hl_settings *settings)
{
    static const char *const own[] = { "solver", "rtol", "atol", NULL };
    const char *wish = hl_settings_text(settings, "calibrate");
    bool wanted = wish ? strcmp(wish, "on") == 0 : true;
    for (size_t i = 0; own[i] && !wish; i++)
        wanted = wanted && !hl_settings_text(settings, own[i]);
    const hl_fit_rows *rows = r->table.valid.rows ? &r->table.valid : &r->table.train;
    hl_status status = wanted ? hl_density_calibrate_seen(r->model, rows->rows, rows->x, rows->c) : HL_OK;
    return status == HL_ERR_NOMEM ? status : HL_OK;
}

hl_status hl_fit_one(hl_context *ctx, const hl_density_data *data, const hl_settings *settings, const hl_job *job,
                     hl_fit_stream *stream, hl_density **model, hl_density_outcome **out)
{
    run r = { .ctx = ctx, .job = job, .table.ctx = ctx, .validation = NAN, .start = hl_clock() };
    r.table.stream = r.stream = stream;
    hl_status status = create_outcome(&r);
    if (status == HL_OK)
        status = fit(&r, data, settings);
    if (status == HL_OK && (status = calibrate(&r, settings)) != HL_OK) {
        hl_density_free(r.model);
        r.model = NULL;
    }
    hl_fit_free(r.fit);
    hl_fit_plan_free(ctx, &r.plan);
    hl_fit_members_free(&r.members);
    hl_fit_table_free(&r.table);
    if (status < 0 && r.outcome && !isfinite(r.outcome->seen.best)) {
        hl_density_free(r.model);
        r.model = NULL;
    }
    *model = r.model;
    if (out)
        *out = (hl_density_outcome *)r.outcome;
    else
        hl_density_outcome_free((hl_density_outcome *)r.outcome);
    return status;
}

/* Gives the hashes of the rows to the model. Without memory for that there is no model. */
static hl_status keep_rows(hl_context *ctx, hl_row_sketch *rows, hl_density **model, hl_density_outcome **out)
{
    hl_density_training *t = hl_density_add_training(*model);
    if (t) {
        t->rows = *rows;
        *rows = (hl_row_sketch){ 0 };
        return HL_OK;
    }
    hl_density_free(*model);
    *model = NULL;
    if (out) {
        hl_density_outcome_free(*out);
        *out = NULL;
    }
    return hl_fail(ctx, HL_ERR_NOMEM, "out of memory for the hashes of the training rows");
}

hl_status hl_density_fit(hl_context *ctx, const hl_density_data *data, const hl_settings *settings, const hl_job *job,
                         hl_density **model, hl_density_outcome **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!data || !model)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_density_fit: the data or the model is NULL");
    *model = NULL;
    if (out)
        *out = NULL;
    if (job && job->resume && !job->checkpoint)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_density_fit: to resume, a checkpoint is needed");
    struct hl_density_atoms *atoms = NULL;
    hl_fit_stream stream = { .ctx = ctx };
    hl_density_data sample;
    hl_status status = hl_settings_check(ctx, settings, hl_density_fit_options());
    if (status == HL_OK)
        status = hl_ranks_agree(ctx, hl_fit_stream_sample(ctx, data, settings, &stream, &sample));
    if (status == HL_OK)
        status = hl_fit_find_atoms(ctx, &sample, settings, &atoms);
    hl_fit_stream *streamed = stream.streamed ? &stream : NULL;
    hl_row_sketch rows = { 0 }; /* before the rows are given back; of a streamed table nothing is kept */
    if (status == HL_OK && !streamed && sample.train.x && (!sample.context || sample.train.context))
        status = hl_row_sketch_make(ctx, sample.train.rows, sample.dim, sample.train.x, sample.context,
                                    sample.train.context, &rows);
    if (status != HL_OK)
        hl_atoms_free(ctx, atoms);
    else
        status = atoms ? hl_fit_with_atoms(ctx, &sample, settings, job, streamed, atoms, model, out)
                       : hl_fit_one(ctx, &sample, settings, job, streamed, model, out);
    if (*model && rows.count) {
        hl_status kept = keep_rows(ctx, &rows, model, out);
        status = kept == HL_OK ? status : kept;
    }
    hl_row_sketch_free(ctx, &rows);
    hl_fit_stream_free(&stream);
    return status;
}
