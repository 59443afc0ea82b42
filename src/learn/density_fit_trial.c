/* density_fit_trial.c - short trial runs that choose the input of the flow and its learning rate before the full training.
 *
 * Successive halving on validation rows: every space of the columns (standardised or mapped, with or without linear correlations) is
 * tried for half of a trial's iterations, the better half of them for all; a smaller rate is tried where a trial was unstable. A trial
 * has both losses, in the shares TRIAL_MATCHING and TRIAL_SOLVING of the full run's iterations, so that all trials together cost at
 * most a fifth of it. Only iterations are counted, never seconds, and everything random has the seed of the run: the choice is the same
 * every time, and a run that is resumed makes it again. A best trial that is far behind the mixtures ends the flow. */
#include <math.h>
#include <string.h>

#include "base/ranks.h"
#include "flow/flow.h"
#include "learn/density_fit.h"

enum { SPACES = 4, TRIAL_ROWS = 500, LEAST_VALID = 200, LEAST_SOLVING = 10 };
static const double TRIAL_MATCHING = 1. / 25, TRIAL_SOLVING = 1. / 50;
static const double SMALL_RATE = 0.4, MAPPED_MARGIN = 0.25, UNSTABLE = 0.25; /* nats, the last two */
/* Nats behind the mixtures, and for each column, after which a full run has never made up for a trial. */
static const double HOPELESS = 1, HOPELESS_COLUMN = 0.2;

typedef struct trial {
    const hl_fit_members *members;
    const hl_fit_table *table;
    const hl_settings *settings;
    size_t matching, solving; /* iterations */
} trial;

static hl_status copy_rows(const hl_fit_table *t, const hl_fit_rows *from, hl_fit_rows *to)
{
    to->rows = from->rows;
    to->x = hl_calloc(t->ctx, hl_size_mul(from->rows, t->dim), sizeof *to->x);
    to->c = hl_calloc(t->ctx, hl_size_mul(from->rows, t->context), sizeof *to->c);
    to->w = from->w ? hl_calloc(t->ctx, from->rows, sizeof *to->w) : NULL;
    if (!to->x || !to->c || (from->w && !to->w))
        return HL_ERR_NOMEM;
    if (from->w)
        memcpy(to->w, from->w, from->rows * sizeof *to->w);
    memcpy(to->x, from->x, from->rows * t->dim * sizeof *to->x);
    if (t->context)
        memcpy(to->c, from->c, from->rows * t->context * sizeof *to->c);
    return HL_OK;
}

/* The table's rows as the flow is to see them, in `own`, which borrows its columns. Free with free_rows on failure as well. */
static hl_status transform_rows(const trial *t, const hl_fit_variant *v, hl_fit_table *own)
{
    *own = (hl_fit_table){
        .ctx = t->table->ctx, .dim = t->table->dim, .context = t->table->context, .column = t->table->column
    };
    hl_status status = copy_rows(t->table, &t->table->train, &own->train);
    if (status == HL_OK)
        status = copy_rows(t->table, &t->table->valid, &own->valid);
    if (own->valid.rows > TRIAL_ROWS)
        own->valid.rows = TRIAL_ROWS;
    if (status == HL_OK && v->mapped)
        status = hl_fit_members_map(t->members, own);
    if (status == HL_OK)
        status = hl_fit_decorrelate(own, t->settings, v);
    return status;
}

static void free_rows(hl_fit_table *own)
{
    own->column = NULL;
    hl_fit_table_free(own);
}

/* Train; the mean -log p of validation rows, in the units of the data, to *score. */
static hl_status run_flow(const trial *t, const hl_fit_table *own, hl_fit_plan *plan, double *score)
{
    hl_flow *flow = NULL;
    hl_fit *fit = NULL;
    hl_fit_report report = { .best = INFINITY };
    hl_fit_data train = { own->train.rows, own->train.x, own->context ? own->train.c : NULL, own->train.w };
    hl_fit_data valid = { own->valid.rows, own->valid.x, own->context ? own->valid.c : NULL, own->valid.w };
    plan->options.matching = t->matching;
    plan->options.iterations = plan->options.validate_every = t->matching + t->solving;
    plan->options.extensions = 0;
    hl_status status = hl_flow_create(own->ctx, &plan->flow, &flow);
    if (status == HL_OK)
        status = hl_flow_init(flow, plan->options.seed + 1);
    if (status == HL_OK)
        status = hl_fit_create(flow, &train, &valid, &plan->options, &fit);
    status = hl_ranks_agree(own->ctx, status);
    while (status == HL_OK && report.iteration < plan->options.iterations) {
        status = hl_ranks_agree(own->ctx, hl_check_stop(own->ctx));
        if (status == HL_OK)
            status = hl_fit_step(fit, &report);
    }
    *score = isfinite(report.best) ? report.best + hl_fit_table_scale(own) : INFINITY;
    hl_fit_free(fit);
    hl_flow_free(flow);
    return status;
}

/* One trial. One that fails, or whose space is that of another, has the score infinity. */
static hl_status try_variant(const trial *t, hl_fit_variant *v)
{
    hl_fit_table own;
    hl_fit_plan plan = { 0 };
    hl_kept_failure kept;
    v->score = INFINITY;
    hl_failure_keep(t->table->ctx, &kept);
    hl_status status = hl_ranks_agree(t->table->ctx, transform_rows(t, v, &own));
    if (status == HL_OK && v->decorrelated == (own.factor != NULL)) {
        status = hl_ranks_agree(t->table->ctx, hl_fit_choose(&own, t->settings, v, &plan));
        if (status == HL_OK)
            status = run_flow(t, &own, &plan, &v->score);
        hl_fit_plan_free(own.ctx, &plan);
    }
    free_rows(&own);
    if (status == HL_OK || status == HL_ERR_NOMEM || status == HL_STOPPED)
        return status;
    v->score = INFINITY;
    hl_failure_restore(t->table->ctx, &kept);
    return HL_OK;
}

/* The spaces that are open, in `v`; returns how many. */
static size_t list_spaces(const trial *t, hl_fit_variant *v)
{
    size_t count = 0;
    bool maps = t->members->map != NULL, open = !hl_settings_given(t->settings, "decorrelate") && t->table->dim > 1;
    bool on = hl_settings_given(t->settings, "decorrelate") && hl_settings_choice(t->settings, "decorrelate", 0) == 0;
    for (int mapped = 0; mapped <= maps; mapped++)
        for (int decorrelated = !open && on; decorrelated <= (open || on); decorrelated++)
            v[count++] = (hl_fit_variant){
                .mapped = mapped,
                .decorrelated = decorrelated,
                .rate = 1,
                .score = INFINITY /* no half of a trial yet */
            };
    return count;
}

/* What a trial's score counts as: a space that the rule would not have chosen must be clearly better. */
static double handicap(const trial *t, const hl_fit_variant *v)
{
    return v->score + (v->mapped != t->members->flow_mapped ? MAPPED_MARGIN : 0);
}

/* The best space, with its score after a full trial. */
static hl_status choose_space(const trial *t, hl_fit_variant *best)
{
    hl_fit_variant space[SPACES];
    size_t count = list_spaces(t, space), keep = count;
    hl_status status = HL_OK;
    const trial half = { t->members, t->table, t->settings, t->matching / 2, t->solving / 2 };
    for (size_t i = 0; i < count && count > 2 && status == HL_OK; i++)
        status = try_variant(&half, &space[i]);
    for (; keep > 2 && status == HL_OK; keep--) { /* without the worst of the rest */
        size_t worst = 0;
        for (size_t i = 1; i < keep; i++)
            worst = handicap(t, &space[i]) > handicap(t, &space[worst]) ? i : worst;
        space[worst] = space[keep - 1];
    }
    for (size_t i = 0; i < keep && status == HL_OK; i++) {
        space[i].half = space[i].score;
        status = try_variant(t, &space[i]);
        if (status == HL_OK && (i == 0 || handicap(t, &space[i]) < handicap(t, best)))
            *best = space[i];
    }
    return status;
}

/* A trial that failed, or that was clearly worse than its first half, had too large a rate: a smaller one is tried. Smaller differences are noise,
 * and in so few iterations they say nothing of the rate that is better for a full run. */
static hl_status choose_rate(const trial *t, hl_fit_variant *best)
{
    hl_fit_variant next = *best;
    bool stable = isfinite(best->score) && !(best->score > best->half + UNSTABLE);
    if (stable || hl_settings_given(t->settings, "lr"))
        return HL_OK;
    next.rate = SMALL_RATE;
    hl_status status = try_variant(t, &next);
    if (status == HL_OK && next.score < best->score)
        *best = next;
    return status;
}

hl_status hl_fit_try(const hl_fit_members *members, const hl_fit_table *table, const hl_settings *settings,
                     hl_fit_variant *best)
{
    trial t = { members, table, settings, 0, 0 };
    hl_fit_plan plan = { 0 };
    const char *kind = hl_settings_text(settings, "model"), *conditioner = hl_settings_text(settings, "conditioner");
    bool dense = (!kind || strcmp(kind, "cnf") == 0) && hl_fit_is_dense(conditioner);
    *best = (hl_fit_variant){ .mapped = members->flow_mapped, .rate = 1, .by_rule = true, .score = NAN };
    if (!members->mixtures || members->alone || table->valid.rows < LEAST_VALID || !dense)
        return HL_OK;
    hl_status status = hl_fit_choose(table, settings, best, &plan);
    t.matching = (size_t)(TRIAL_MATCHING * (double)plan.options.iterations);
    t.solving = (size_t)(TRIAL_SOLVING * (double)plan.options.iterations);
    bool both = plan.options.loss == HL_LOSS_DEFAULT;
    hl_fit_plan_free(table->ctx, &plan);
    if (status != HL_OK || t.solving < LEAST_SOLVING || !both)
        return status;
    status = choose_space(&t, best);
    if (status == HL_OK)
        status = choose_rate(&t, best);
    best->hopeless = best->score > members->together + HOPELESS + HOPELESS_COLUMN * (double)table->dim;
    return status;
}
