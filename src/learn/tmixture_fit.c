/* tmixture_fit.c - EM for mixtures of t distributions, started by k-means, and the choice of their size by held rows.
 *
 *   shares R_rj = w_j t(x_r) / sum,   v_rj = R_rj (nu + d) / (nu + q_rj)     (v = R for normal parts)
 *   w_j = sum_r R / n,   m_j = sum_r v x / sum_r v,   S_j = sum_r v (x - m_j)(x - m_j)' / sum_r R
 *
 * Threads divide the parts: the sums of a part are made by one thread in the order of the rows, whatever their number. A part that
 * loses its rows keeps its place with the least weight. */
#include <math.h>
#include <string.h>

#include "learn/tmixture_panels.h"

enum { BLOCK = 64, ROWS = BLOCK * HL_LANES }; /* panels and rows of a block */
enum { MEANS_ROWS = 4000, EM_ROWS = 50000, POOLED_ROWS = 3000, ROWS_PER_PART = 4 };
enum { EM_STEPS = 120, START_STEPS = 10, SCORE_EVERY = 5, SMALL_PARTS = 16, HEAVY = 8 /* degrees of freedom */ };
static const double LEAST_FLOOR = 1e-3, LEAST_GAIN = 2e-4, LEAST_SHARE = 1e-6;

typedef struct em {
    hl_context *ctx;
    const hl_kernels *kernels;
    const hl_tmixture_plan *plan;
    hl_tmixture *m;
    size_t rows, step, panels, sums_size; /* step: every step-th row is used */
    double *x;                            /* panels of dim entries and an entry of ones */
    double *q;                            /* [parts][ROWS], of a block */
    double *share;                        /* [parts][ROWS]: log-densities, then shares */
    double *logp;                         /* [panels] entries */
    double *work;                         /* [threads]: z, weighted x, the kernel's scratch */
    size_t work_size;
    double *sums;    /* [parts]: sum R, sum v, then sum v x x' with sum v x as its last column [dim][dim + 1] */
    double *common;  /* [dim][dim]: covariance that all parts have in common, or NULL */
    double *scratch; /* [dim][dim] */
} em;

/* ---- a part's parameters from its sums ---- */

static double floor_of(const em *e, size_t i)
{
    double f = e->plan->floor ? e->plan->floor[i] : 0;
    return f > LEAST_FLOOR ? f : LEAST_FLOOR;
}

/* The factor of a part from N S, in scratch, and the weight N of its rows. */
static bool set_factor(em *e, size_t j, double weight)
{
    size_t d = e->m->dim;
    double *s = e->scratch, prior = e->plan->prior;
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k <= i; k++) {
            double target = e->plan->pooled ? e->common[i * d + k] : i == k ? s[i * d + i] / fmax(weight, 1e-100) : 0;
            s[i * d + k] = (s[i * d + k] + prior * target) / (weight + prior);
            if (i == k)
                s[i * d + k] += floor_of(e, i) * floor_of(e, i);
        }
    return hl_tmixture_cholesky(d, s, e->m->factor + j * d * d);
}

/* N S of part j about its mean, from its sums, to scratch. */
static void centre_sums(em *e, size_t j)
{
    size_t d = e->m->dim;
    const double *sums = e->sums + j * e->sums_size, *second = sums + 2, *mean = e->m->mean + j * d;
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k <= i; k++) {
            double s = second[i * (d + 1) + k] - sums[1] * mean[i] * mean[k];
            e->scratch[i * d + k] = i == k && s < 0 ? 0 : s;
        }
}

static hl_status set_parameters(em *e)
{
    hl_tmixture *m = e->m;
    size_t d = m->dim;
    double total = 0;
    if (e->plan->pooled)
        memset(e->common, 0, d * d * sizeof *e->common);
    for (size_t j = 0; j < m->parts; j++) {
        const double *sums = e->sums + j * e->sums_size;
        for (size_t i = 0; i < d && sums[1] > LEAST_SHARE; i++)
            m->mean[j * d + i] = sums[2 + i * (d + 1) + d] / sums[1];
        m->weight[j] = fmax(sums[0] / (double)e->rows, LEAST_SHARE);
        total += m->weight[j];
        if (!e->plan->pooled || !(sums[1] > LEAST_SHARE))
            continue;
        centre_sums(e, j);
        for (size_t i = 0; i < d; i++)
            for (size_t k = 0; k <= i; k++)
                e->common[i * d + k] += e->scratch[i * d + k] / (double)e->rows;
    }
    for (size_t j = 0; j < m->parts; j++) {
        const double *sums = e->sums + j * e->sums_size;
        m->weight[j] /= total;
        if (!(sums[1] > LEAST_SHARE))
            continue;
        centre_sums(e, j);
        if (!set_factor(e, j, sums[0]))
            return hl_fail(e->ctx, HL_ERR_CONVERGENCE, "a part of a mixture has no positive definite covariance");
    }
    return hl_tmixture_prepare(m);
}

/* ---- EM ---- */

/* The sums of part j from its shares of a block. */
static void add_block(em *e, size_t j, size_t panels, const double *x, double *work)
{
    hl_tmixture *m = e->m;
    size_t d = m->dim;
    double *sums = e->sums + j * e->sums_size, *scaled = work, *share = e->share + j * ROWS;
    const double *q = e->q + j * ROWS;
    double zeroth[HL_LANES] = { 0 }, scaled_sum[HL_LANES] = { 0 }, top = m->nu + (double)d;
    for (size_t p = 0; p < panels; p++) {
        double v[HL_LANES];
        for (size_t lane = 0; lane < HL_LANES; lane++) {
            double r = share[p * HL_LANES + lane];
            v[lane] = isinf(m->nu) ? r : r * top / (m->nu + q[p * HL_LANES + lane]);
            zeroth[lane] += r;
            scaled_sum[lane] += v[lane];
        }
        for (size_t i = 0; i < d; i++)
            for (size_t lane = 0; lane < HL_LANES; lane++)
                scaled[(p * d + i) * HL_LANES + lane] = v[lane] * x[(p * (d + 1) + i) * HL_LANES + lane];
    }
    for (size_t lane = 0; lane < HL_LANES; lane++) {
        sums[0] += zeroth[lane];
        sums[1] += scaled_sum[lane];
    }
    hl_gemm_w g = { .panels = panels,
                    .full = panels,
                    .out = d,
                    .in = d + 1,
                    .out_hi = d,
                    .y = scaled,
                    .y_panel = d * HL_LANES,
                    .x = x,
                    .x_panel = (d + 1) * HL_LANES,
                    .gw = sums + 2,
                    .ldw = d + 1,
                    .add = true,
                    .scratch = work + (size_t)BLOCK * d * HL_LANES };
    e->kernels->gemm_w(&g);
}

static void em_blocks(void *user, int thread)
{
    em *e = user;
    hl_tmixture *m = e->m;
    size_t d = m->dim, threads = (size_t)hl_team_size(e->ctx->team), own = (size_t)thread;
    double *work = e->work + own * e->work_size;
    for (size_t first = 0; first < e->panels; first += BLOCK) {
        size_t panels = e->panels - first < BLOCK ? e->panels - first : BLOCK;
        const double *x = e->x + first * (d + 1) * HL_LANES;
        for (size_t j = own; j < m->parts; j += threads)
            hl_tmixture_part(m, e->kernels, j, d, panels, x, (d + 1) * HL_LANES, work, e->q + j * ROWS,
                             e->share + j * ROWS);
        hl_team_barrier(e->ctx->team);
        for (size_t p = own; p < panels; p += threads) {
            hl_tmixture_normalise(e->kernels, m->parts, e->share + p * HL_LANES, ROWS, work,
                                  e->logp + (first + p) * HL_LANES);
            for (size_t r = (first + p) * HL_LANES; r < (first + p + 1) * HL_LANES; r++)
                for (size_t j = 0; r >= e->rows && j < m->parts; j++) /* lanes without a row */
                    e->share[j * ROWS + r - first * HL_LANES] = 0;
        }
        hl_team_barrier(e->ctx->team);
        for (size_t j = own; j < m->parts; j += threads)
            add_block(e, j, panels, x, work);
    }
}

/* One step of EM; returns the mean log p before it. */
static hl_status em_step(em *e, double *mean)
{
    memset(e->sums, 0, e->m->parts * e->sums_size * sizeof *e->sums);
    hl_team_run(e->ctx->team, em_blocks, e);
    *mean = 0;
    for (size_t r = 0; r < e->rows; r++)
        *mean += e->logp[r] / (double)e->rows;
    if (!isfinite(*mean))
        return hl_fail(e->ctx, HL_ERR_NOT_FINITE, "the likelihood of a mixture is not finite");
    return set_parameters(e);
}

/* Sums of rows that belong to one part each. */
static void sum_clusters(em *e, size_t every, size_t rows, const double *x, const uint32_t *nearest)
{
    size_t d = e->m->dim;
    double weight = (double)every;
    memset(e->sums, 0, e->m->parts * e->sums_size * sizeof *e->sums);
    for (size_t r = 0; r < rows; r++) {
        double *sums = e->sums + nearest[r] * e->sums_size;
        const double *row = x + r * every * e->step * d;
        sums[0] += weight;
        sums[1] += weight;
        for (size_t i = 0; i < d; i++) {
            for (size_t c = 0; c < d; c++)
                sums[2 + i * (d + 1) + c] += weight * row[i] * row[c];
            sums[2 + i * (d + 1) + d] += weight * row[i];
        }
    }
    for (size_t j = 0; j < e->m->parts; j++) { /* a part without rows begins at the centre of all */
        double *sums = e->sums + j * e->sums_size;
        if (sums[0] == 0)
            sums[0] = sums[1] = 1e-3;
    }
}

/* From the clusters of k-means. Few rows of a part tell little about its covariance, so that d rows of the common one are added. */
static hl_status start_em(em *e, const double *x)
{
    size_t every = 1 + (e->rows - 1) / MEANS_ROWS, rows = (e->rows + every - 1) / every, d = e->m->dim;
    double *copy = hl_calloc(e->ctx, hl_size_mul(rows, d), sizeof *copy);
    uint32_t *nearest = hl_calloc(e->ctx, rows, sizeof *nearest);
    hl_status status = copy && nearest ? HL_OK : HL_ERR_NOMEM;
    for (size_t r = 0; r < rows && status == HL_OK; r++)
        memcpy(copy + r * d, x + r * every * e->step * d, d * sizeof *copy);
    if (status == HL_OK)
        status = hl_tmixture_cluster(e->ctx, rows, d, copy, e->m->parts, e->plan->start, e->plan->seed, nearest);
    if (status == HL_OK) {
        const hl_tmixture_plan *given = e->plan;
        hl_tmixture_plan first = *given;
        sum_clusters(e, every, rows, x, nearest);
        first.pooled = true;
        first.prior = (double)d;
        e->plan = &first;
        status = set_parameters(e);
        e->plan = given;
    }
    hl_free(e->ctx, copy);
    hl_free(e->ctx, nearest);
    return status;
}

static hl_status make_arrays(em *e, const double *x)
{
    hl_tmixture *m = e->m;
    size_t step = e->step;
    size_t d = m->dim, k = m->parts, threads = (size_t)hl_team_size(e->ctx->team);
    e->panels = (e->rows + HL_LANES - 1) / HL_LANES;
    e->sums_size = 2 + d * (d + 1);
    e->work_size = hl_size_add(hl_size_mul(ROWS, d) + HL_LANES * k, hl_gemm_w_scratch(BLOCK, d + 1));
    e->x = hl_calloc(e->ctx, hl_size_mul(e->panels * HL_LANES, d + 1), sizeof *e->x);
    e->q = hl_calloc(e->ctx, hl_size_mul(2 * ROWS, k), sizeof *e->q);
    e->logp = hl_calloc(e->ctx, e->panels * HL_LANES, sizeof *e->logp);
    e->work = hl_calloc(e->ctx, hl_size_mul(threads, e->work_size), sizeof *e->work);
    e->sums = hl_calloc(e->ctx, hl_size_mul(k, e->sums_size), sizeof *e->sums);
    e->common = hl_calloc(e->ctx, hl_size_mul(2 * d, d), sizeof *e->common);
    if (!e->x || !e->q || !e->logp || !e->work || !e->sums || !e->common)
        return HL_ERR_NOMEM;
    e->share = e->q + k * ROWS;
    e->scratch = e->common + d * d;
    for (size_t p = 0; p < e->panels; p++) {
        size_t left = e->rows - p * HL_LANES;
        double *to = e->x + p * (d + 1) * HL_LANES;
        e->kernels->rows_to_panel(left < HL_LANES ? left : HL_LANES, d, x + p * HL_LANES * step * d, step * d, to);
        for (size_t lane = 0; lane < HL_LANES; lane++)
            to[d * HL_LANES + lane] = 1;
    }
    return HL_OK;
}

static void copy_parameters(const hl_tmixture *from, hl_tmixture *to)
{
    size_t d = from->dim;
    memcpy(to->weight, from->weight, from->parts * (1 + d + d * d) * sizeof *to->weight); /* weight, mean, factor */
}

static hl_status mean_logp(const hl_tmixture *m, size_t rows, const double *x, double *logp, double *mean)
{
    hl_status status = hl_tmixture_logp(m, rows, x, logp);
    *mean = 0;
    for (size_t r = 0; r < rows; r++)
        *mean += logp[r] / (double)rows;
    return status;
}

/* EM until a step gains little. The step that was best for the held rows ends in `best`, which may be NULL without such rows. */
static hl_status run_em(em *e, const hl_tmixture_fold *data, double *logp, hl_tmixture *best, size_t *steps,
                        double *score)
{
    double last = -INFINITY, mean = 0, held;
    hl_status status = HL_OK;
    *score = -INFINITY;
    for (size_t i = 0; status == HL_OK && i < e->plan->steps; i++) {
        status = hl_check_stop(e->ctx);
        if (status == HL_OK)
            status = em_step(e, &mean);
        bool ends = mean - last < LEAST_GAIN || i + 1 == e->plan->steps;
        last = mean;
        if (status == HL_OK && data->held_rows && ((i + 1) % SCORE_EVERY == 0 || ends)) {
            status = mean_logp(e->m, data->held_rows, data->held, logp, &held);
            if (held > *score) {
                *score = held;
                *steps = i + 1;
                copy_parameters(e->m, best);
            }
        } else if (!data->held_rows) {
            *score = mean;
            *steps = i + 1;
        }
        if (ends)
            break;
    }
    if (status == HL_OK && data->held_rows && !isfinite(*score))
        status = hl_fail(e->ctx, HL_ERR_NOT_FINITE, "held rows have no finite density under a mixture");
    if (status == HL_OK && data->held_rows) {
        copy_parameters(best, e->m);
        status = hl_tmixture_prepare(e->m);
    }
    return status;
}

static void free_em(em *e)
{
    void *const blocks[] = { e->x, e->q, e->logp, e->work, e->sums, e->common };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(e->ctx, blocks[i]);
}

hl_status hl_tmixture_fit(hl_context *ctx, size_t dim, size_t given, const hl_tmixture_fold *data,
                          const hl_tmixture_plan *plan, hl_tmixture **out, size_t *steps, double *score)
{
    size_t own_steps = 0;
    double own_score = 0, *logp = NULL;
    hl_tmixture *best = NULL;
    em e = { .ctx = ctx, .kernels = hl_kernels_pick(HL_F64, NULL), .plan = plan };
    *out = NULL;
    e.step = 1 + (data->rows - 1) / EM_ROWS;
    e.rows = (data->rows + e.step - 1) / e.step;
    hl_status status = hl_tmixture_create(ctx, dim, given, plan->parts, plan->nu, out);
    if (status == HL_OK && data->held_rows) {
        status = hl_tmixture_create(ctx, dim, given, plan->parts, plan->nu, &best);
        logp = hl_calloc(ctx, data->held_rows, sizeof *logp);
        status = logp ? status : HL_ERR_NOMEM;
    }
    e.m = *out;
    if (status == HL_OK)
        status = make_arrays(&e, data->x);
    if (status == HL_OK)
        status = start_em(&e, data->x);
    if (status == HL_OK)
        status = run_em(&e, data, logp, best, steps ? steps : &own_steps, score ? score : &own_score);
    free_em(&e);
    hl_free(ctx, logp);
    hl_tmixture_free(best);
    if (status != HL_OK) {
        hl_tmixture_free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- choice ---- */

typedef struct choice {
    hl_context *ctx;
    size_t dim, given, folds;
    const hl_tmixture_fold *fold;
    hl_tmixture_plan best;
    double score;
} choice;

static bool is_misfit(hl_status status)
{
    return status == HL_ERR_CONVERGENCE || status == HL_ERR_NOT_FINITE;
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
    if (sum / count > c->score) {
        c->score = sum / count;
        c->best = plan;
        c->best.steps = (steps + c->folds - 1) / c->folds;
    }
    return HL_OK;
}

/* A few steps of EM from several starts; the likelihood of the rows says from which to go on. Large mixtures try only the kind of start
 * that was best for the size before, and the last. */
static hl_status try_starts(choice *c, hl_tmixture_start before, hl_tmixture_plan *plan)
{
    static const hl_tmixture_start starts[] = { HL_START_COLUMNS, HL_START_SCORES,  HL_START_WHITE,
                                                HL_START_COLUMNS, HL_START_COLUMNS, HL_START_SCORES,
                                                HL_START_COLUMNS, HL_START_COLUMNS, HL_START_WHITE };
    const hl_tmixture_fold rows_only = { .rows = c->fold[0].rows, .x = c->fold[0].x };
    const size_t count = sizeof starts / sizeof *starts;
    double best = -INFINITY;
    uint64_t seed = plan->seed;
    hl_tmixture_plan next = *plan;
    next.steps = START_STEPS;
    for (size_t i = 0; i < count && plan->parts > 1; i++) {
        hl_tmixture *m = NULL;
        double score = 0;
        next.start = starts[i];
        next.seed = seed + i;
        if (plan->parts > SMALL_PARTS && i + 1 < count && starts[i] != before)
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

/* Sizes 1, 2, 4, ... until two in a row are no better: of normal and of t parts, large ones only of the kind that is better so far. */
static hl_status try_sizes(choice *c, size_t most, const hl_tmixture_plan *given)
{
    static const double kinds[] = { INFINITY, HEAVY };
    hl_status status = HL_OK;
    hl_tmixture_plan plan = *given;
    size_t worse = 0;
    for (size_t parts = 1; status == HL_OK && parts <= most && worse < 2; parts *= 2) {
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
        worse = c->score > before ? 0 : worse + 1;
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
    static const double normal_others[] = { 30, 0 }, heavy_others[] = { 4, 20 };
    choice c = { .ctx = ctx, .dim = dim, .given = given, .folds = folds, .fold = fold, .score = -INFINITY };
    size_t rows = fold[0].rows, limit = rows / ROWS_PER_PART < most ? rows / ROWS_PER_PART : most;
    c.best = *plan;
    c.best.nu = INFINITY;
    hl_status status = try_sizes(&c, limit > 0 ? limit : 1, plan);
    if (status == HL_OK && isfinite(c.score))
        status = try_priors(&c);
    if (status == HL_OK && rows <= POOLED_ROWS && isfinite(c.score))
        status = try_pooled(&c, limit);
    const double *others = isinf(c.best.nu) ? normal_others : heavy_others;
    for (size_t i = 0; i < 2 && status == HL_OK && isfinite(c.score) && others[i] > 0; i++) {
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
