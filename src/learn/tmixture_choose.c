/* tmixture_choose.c - the size, the kind of parts and the prior of a mixture, by held rows. */
#include <math.h>

#include "learn/tmixture.h"

enum { POOLED_ROWS = 3000, ROWS_PER_PART = 4 };
enum {
    EM_STEPS = 120,
    START_STEPS = 10,
    QUICK_STARTS = 3,
    SMALL_PARTS = 16,
    LARGE_PARTS = 128,
    HEAVY = 8 /* degrees of freedom */
};

static const double DIAGONAL = 1e9;   /* rows of the prior */
static const double SMALL_WORK = 5e6; /* parts times rows times squared columns: all starts are tried */
static const double FAR = 0.2;        /* nats that more parts with independent columns have not made up for */
static const double LARGER =
    5e-4; /* nats that a mixture with more parameters must gain; smaller differences are chance */
static const double CLEARLY = 0.02; /* nats by which a size is worse, so that larger ones are not tried */

typedef struct choice {
    hl_context *ctx;
    size_t dim, given, folds;
    const hl_tmixture_fold *fold;
    hl_tmixture_plan best;
    double score, last; /* of the best plan; of the last */
} choice;

static bool is_misfit(hl_status status)
{
    return status == HL_ERR_CONVERGENCE || status == HL_ERR_NOT_FINITE;
}

/* Parameters of a mixture. */
static double size_of(const choice *c, const hl_tmixture_plan *plan)
{
    double d = (double)c->dim, spread = plan->prior < DIAGONAL ? d * (d + 1) / 2 : d;
    return (double)plan->parts * (1 + d + spread) + (isinf(plan->nu) ? 0 : 1);
}

/* Fit a plan to all folds; it becomes the best if the held rows say so. A plan that cannot be fitted is passed over. */
static hl_status try_plan(choice *c, hl_tmixture_plan plan)
{
    double sum = 0, count = 0;
    size_t steps = 0;
    plan.steps = EM_STEPS;
    for (size_t f = 0; f < c->folds; f++) {
        hl_tmixture *m = NULL;
        size_t taken = 0;
        double score = 0;
        hl_status status = hl_tmixture_fit(c->ctx, c->dim, c->given, &c->fold[f], &plan, &m, &taken, &score);
        hl_tmixture_free(m);
        if (is_misfit(status))
            return HL_OK;
        if (status != HL_OK)
            return status;
        sum += score * (double)c->fold[f].held_rows;
        count += (double)c->fold[f].held_rows;
        steps += taken;
    }
    c->last = sum / count;
    if (sum / count > c->score + (size_of(c, &plan) > size_of(c, &c->best) ? LARGER : 0)) {
        c->score = sum / count;
        c->best = plan;
        c->best.steps = (steps + c->folds - 1) / c->folds;
    }
    return HL_OK;
}

/* A few steps of EM from several starts; the likelihood of the rows says from which to go on. Large mixtures try two starts of the kind that was
 * best for the size before, and the last; from LARGE_PARTS on they take this kind. */
static hl_status try_starts(choice *c, hl_tmixture_start before, hl_tmixture_plan *plan)
{
    static const hl_tmixture_start starts[] = { HL_START_COLUMNS, HL_START_SCORES,  HL_START_WHITE,
                                                HL_START_COLUMNS, HL_START_COLUMNS, HL_START_SCORES,
                                                HL_START_COLUMNS, HL_START_COLUMNS, HL_START_WHITE };
    const hl_tmixture_fold rows_only = { .rows = c->fold[0].rows, .x = c->fold[0].x };
    const size_t count = plan->quick ? QUICK_STARTS : sizeof starts / sizeof *starts;
    double best = -INFINITY;
    uint64_t seed = plan->seed;
    hl_tmixture_plan next = *plan;
    size_t same = 0;
    bool small = plan->parts <= SMALL_PARTS ||
                 (double)plan->parts * (double)c->fold[0].rows * pow((double)c->dim, 2) <= SMALL_WORK;
    next.steps = START_STEPS;
    if (plan->parts >= LARGE_PARTS) {
        plan->start = before;
        return HL_OK;
    }
    for (size_t i = 0; i < count && plan->parts > 1; i++) {
        hl_tmixture *m = NULL;
        double score = 0;
        next.start = starts[i];
        next.seed = seed + i;
        if (!small && i + 1 < count && (starts[i] != before || ++same > 2))
            continue;
        hl_status status = hl_tmixture_fit(c->ctx, c->dim, c->given, &rows_only, &next, &m, NULL, &score);
        hl_tmixture_free(m);
        if (status != HL_OK && !is_misfit(status))
            return status;
        if (status == HL_OK && score > best) {
            best = score;
            plan->start = next.start;
            plan->seed = next.seed;
        }
    }
    return HL_OK;
}

/* Sizes 1, 2, 4, ... (quick: 1, 4, 16, ...) until one is clearly worse or two in a row are no better: of normal and of t parts, large ones only of the kind that is better so far. */
static hl_status try_sizes(choice *c, size_t most, const hl_tmixture_plan *given)
{
    static const double kinds[] = { INFINITY, HEAVY };
    hl_status status = HL_OK;
    hl_tmixture_plan plan = *given;
    size_t worse = 0;
    for (size_t parts = 1; status == HL_OK && parts <= most && worse < 2; parts *= given->quick ? 4 : 2) {
        double before = c->score;
        hl_tmixture_start start = plan.start;
        bool one_kind = parts > SMALL_PARTS;
        plan = *given;
        plan.parts = parts;
        plan.nu = one_kind ? c->best.nu : INFINITY;
        plan.prior = 1;
        plan.pooled = false;
        status = try_starts(c, start, &plan);
        for (size_t i = 0; i < 2 && status == HL_OK; i++) {
            plan.nu = one_kind ? c->best.nu : kinds[i];
            status = i && one_kind ? HL_OK : try_plan(c, plan);
        }
        worse = c->score > before ? 0 : c->last < c->score - CLEARLY ? 2 : worse + 1;
    }
    return status;
}

/* Sizes between those tried, on either side of the best. */
static hl_status try_between(choice *c, size_t limit)
{
    hl_status status = HL_OK;
    size_t parts = c->best.parts, sizes[] = { parts - parts / 4, parts + parts / 2 };
    for (size_t i = 0; i < 2 && status == HL_OK; i++) {
        hl_tmixture_plan next = c->best;
        next.parts = sizes[i];
        if (sizes[i] == parts || sizes[i] > limit || parts < 4)
            continue;
        status = try_starts(c, c->best.start, &next);
        if (status == HL_OK)
            status = try_plan(c, next);
    }
    return status;
}

/* Less of a prior: where columns of a part are strongly correlated, even one row of its diagonal widens it much. */
static hl_status try_priors(choice *c)
{
    static const double priors[] = { 0.1, 0.01 };
    hl_status status = HL_OK;
    for (size_t i = 0; i < sizeof priors / sizeof *priors && status == HL_OK; i++) {
        hl_tmixture_plan next = c->best;
        next.prior = priors[i];
        status = try_plan(c, next);
        if (c->best.prior != priors[i])
            break;
    }
    return status;
}

/* Parts whose columns are independent, which bear more parts: so many rows of the diagonal that nothing else counts. Sizes n, 3 n / 2, 2 n, ...
 * from half of the best size on, until two in a row are no better or one of at least the best size is far behind. */
static hl_status try_diagonal(choice *c, size_t limit)
{
    hl_status status = HL_OK;
    const hl_tmixture_plan like = c->best;
    double best = -INFINITY, goal = c->score;
    size_t worse = 0, power = 1;
    while (4 * power <= like.parts)
        power *= 2;
    for (size_t halves = 2; status == HL_OK && worse < 2; halves = halves == 2 ? 3 : 2) {
        hl_tmixture_plan next = like;
        next.parts = power * halves / 2;
        next.prior = DIAGONAL;
        next.pooled = false;
        power *= halves == 3 ? 2 : 1;
        if (next.parts > limit)
            break;
        if (next.parts == 1 && halves == 3)
            continue;
        c->last = -INFINITY;
        status = try_starts(c, like.start, &next);
        if (status == HL_OK)
            status = try_plan(c, next);
        worse = c->last > best ? 0 : worse + 1;
        best = fmax(best, c->last);
        if (next.parts >= like.parts && best < goal - FAR)
            break;
    }
    return status;
}

/* More parts than the rows bear on their own, held together by a common covariance. */
static hl_status try_pooled(choice *c, size_t limit)
{
    hl_status status = HL_OK;
    size_t parts = c->best.parts;
    for (size_t n = parts > 1 ? parts / 2 : 1; status == HL_OK && n <= 2 * parts && n <= limit; n *= 2)
        for (int i = 0; i < 2 && status == HL_OK; i++) {
            hl_tmixture_plan next = c->best;
            next.parts = n;
            next.prior = (i ? 4 : 1) * (double)c->dim;
            next.pooled = true;
            status = try_plan(c, next);
        }
    return status;
}

hl_status hl_tmixture_choose(hl_context *ctx, size_t dim, size_t given, size_t folds, const hl_tmixture_fold *fold,
                             size_t most, hl_tmixture_plan *plan, double *score)
{
    static const double normal_others[] = { 30, 0, 0 }, heavy_others[] = { 4, 20, INFINITY };
    choice c = { .ctx = ctx, .dim = dim, .given = given, .folds = folds, .fold = fold, .score = -INFINITY };
    size_t rows = fold[0].rows, limit = rows / ROWS_PER_PART < most ? rows / ROWS_PER_PART : most;
    c.best = *plan;
    c.best.nu = INFINITY;
    hl_status status = try_sizes(&c, limit > 0 ? limit : 1, plan);
    if (status == HL_OK && isfinite(c.score) && !plan->quick)
        status = try_between(&c, limit);
    if (status == HL_OK && isfinite(c.score))
        status = try_priors(&c);
    if (status == HL_OK && rows <= POOLED_ROWS && isfinite(c.score))
        status = try_pooled(&c, limit);
    if (status == HL_OK && dim > given + 1 && isfinite(c.score) && !plan->quick)
        status = try_diagonal(&c, limit);
    const double *others = isinf(c.best.nu) ? normal_others : heavy_others;
    for (size_t i = 0; i < (plan->quick ? 1 : 3) && status == HL_OK && isfinite(c.score) && others[i] > 0; i++) {
        hl_tmixture_plan next = c.best;
        next.nu = others[i];
        status = try_plan(&c, next);
    }
    if (status == HL_OK && !isfinite(c.score))
        status = hl_fail(ctx, HL_ERR_CONVERGENCE, "no mixture could be fitted to the rows");
    *plan = c.best;
    if (score)
        *score = c.score;
    return status;
}
