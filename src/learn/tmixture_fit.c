/* tmixture_fit.c - EM for mixtures of t distributions, started by k-means, and the choice of their size by held rows.
 *
 *   shares R_rj = w_j t(x_r) / sum,   v_rj = R_rj (nu + d) / (nu + q_rj)     (v = R for normal parts)
 *   w_j = sum_r R / n,   m_j = sum_r v x / sum_r v,   S_j = sum_r v (x - m_j)(x - m_j)' / sum_r R
 *
 * Threads divide the parts: the sums of a part over a block of rows are made by one thread in the order of the rows, whatever their
 * number. A part that loses its rows keeps its place with the least weight.
 *
 * Most of many parts have no share in most rows. So rows are ordered such that neighbours are near each other, every REFRESH-th step
 * finds which parts have a share in which cells of CELL panels, and the steps between leave the other parts of a cell out (a partial
 * E-step in the sense of Neal and Hinton). */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "learn/tmixture_panels.h"

enum { CELL = 8, CELLS = 8, BLOCK = CELL * CELLS, ROWS = BLOCK * HL_LANES, CELL_ROWS = CELL * HL_LANES };
enum { REFRESH = 4 };
enum { MEANS_ROWS = 4000, EM_ROWS = 50000, SCORE_EVERY = 5, PATIENCE = 4 };
static const double LEAST_FLOOR = 1e-3, LEAST_GAIN = 2e-4, LEAST_SHARE = 1e-6;
static const double NO_SHARE = 1e-7; /* of a row: left out */

typedef struct em {
    hl_context *ctx;
    const hl_kernels *kernels;
    const hl_tmixture_plan *plan;
    hl_tmixture *m;
    size_t rows, step, panels, cells, sums_size; /* step: every step-th row is used */
    bool refresh;                                /* this step finds the active parts */
    double *x;                                   /* panels of dim entries and an entry of ones */
    uint32_t *order;                             /* [rows]: of the panels */
    uint32_t *active;  /* [panels / CELL][parts]: those with a share in a cell, in ascending order */
    uint32_t *actives; /* [panels / CELL]: how many */
    uint32_t *slot;    /* [CELLS][parts] of a block: the place of a part among the active ones + 1; or 0 */
    double *q;         /* [CELLS][parts][CELL_ROWS], of a block, by places */
    double *share;     /* likewise: log-densities, then shares */
    double *logp;      /* [panels] entries */
    double *work;      /* [threads]: z or weighted x, then x, the kernel's scratch */
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
            return hl_fail(e->ctx, HL_ERR_CONVERGENCE,
                           "the covariance of a mixture component is not positive definite");
    }
    return hl_tmixture_prepare(m);
}

/* ---- EM ---- */

/* v of a panel from shares and squared distances; false if there are no shares to speak of. */
static bool scale_shares(const hl_tmixture *m, const double *share, const double *q, double *v)
{
    double most = 0, top = m->nu + (double)m->dim;
    for (size_t lane = 0; lane < HL_LANES; lane++)
        most = share[lane] > most ? share[lane] : most;
    if (most < NO_SHARE)
        return false;
    if (isinf(m->nu))
        memcpy(v, share, HL_LANES * sizeof *v);
    else
        for (size_t lane = 0; lane < HL_LANES; lane++)
            v[lane] = share[lane] * top / (m->nu + q[lane]);
    return true;
}

/* The sums of part j from its shares of a block, from the panels where it has any. */
static void add_block(em *e, size_t j, size_t panels, const double *x, double *work)
{
    const hl_tmixture *m = e->m;
    size_t d = m->dim, used = 0, entry = (d + 1) * HL_LANES;
    double *sums = e->sums + j * e->sums_size, *scaled = work, *own_x = work + (size_t)ROWS * d;
    double zeroth[HL_LANES] = { 0 }, scaled_sum[HL_LANES] = { 0 };
    for (size_t p = 0; p < panels; p++) {
        size_t cell = p / CELL, place = e->slot[cell * m->parts + j];
        if (!place) {
            p = (cell + 1) * CELL - 1;
            continue;
        }
        size_t at = (cell * m->parts + place - 1) * CELL_ROWS + p % CELL * HL_LANES;
        double v[HL_LANES];
        if (!scale_shares(m, e->share + at, e->q + at, v))
            continue;
        for (size_t lane = 0; lane < HL_LANES; lane++) {
            zeroth[lane] += e->share[at + lane];
            scaled_sum[lane] += v[lane];
        }
        for (size_t i = 0; i < d; i++)
            for (size_t lane = 0; lane < HL_LANES; lane++)
                scaled[(used * d + i) * HL_LANES + lane] = v[lane] * x[p * entry + i * HL_LANES + lane];
        memcpy(own_x + used++ * entry, x + p * entry, entry * sizeof *x);
    }
    if (!used)
        return;
    for (size_t lane = 0; lane < HL_LANES; lane++) {
        sums[0] += zeroth[lane];
        sums[1] += scaled_sum[lane];
    }
    hl_gemm_w g = { .panels = used,
                    .full = used,
                    .out = d,
                    .in = d + 1,
                    .out_hi = d,
                    .y = scaled,
                    .y_panel = d * HL_LANES,
                    .x = own_x,
                    .x_panel = entry,
                    .gw = sums + 2,
                    .ldw = d + 1,
                    .add = true,
                    .scratch = own_x + (size_t)BLOCK * entry };
    e->kernels->gemm_w(&g);
}

/* Log-densities and squared distances of the active parts of a block's cells: those of a thread. */
static void score_block(em *e, size_t first, size_t panels, size_t own, size_t threads, double *work)
{
    const hl_tmixture *m = e->m;
    size_t entry = (m->dim + 1) * HL_LANES;
    for (size_t cell = 0; cell * CELL < panels; cell++) {
        size_t here = first / CELL + cell, left = panels - cell * CELL;
        const uint32_t *active = e->active + here * m->parts;
        for (size_t place = own; place < e->actives[here]; place += threads) {
            size_t at = (cell * m->parts + place) * CELL_ROWS;
            hl_tmixture_part(m, e->kernels, active[place], m->dim, left < CELL ? left : CELL,
                             e->x + (first + cell * CELL) * entry, entry, work, e->q + at, e->share + at);
        }
        for (size_t j = own; j < m->parts; j += threads)
            e->slot[cell * m->parts + j] = 0;
    }
}

/* Log-densities of the panels of a block become shares: those of a thread. */
static void normalise_block(em *e, size_t first, size_t panels, size_t own, size_t threads, double *work)
{
    const hl_tmixture *m = e->m;
    for (size_t p = own; p < panels; p += threads) {
        size_t cell = p / CELL, active = e->actives[first / CELL + cell];
        double *share = e->share + cell * m->parts * CELL_ROWS + p % CELL * HL_LANES;
        hl_tmixture_normalise(e->kernels, active, share, CELL_ROWS, work, e->logp + (first + p) * HL_LANES);
        for (size_t r = (first + p) * HL_LANES; r < (first + p + 1) * HL_LANES; r++)
            for (size_t place = 0; r >= e->rows && place < active; place++) /* lanes without a row */
                share[place * CELL_ROWS + r % HL_LANES] = 0;
    }
    for (size_t cell = own; cell * CELL < panels; cell += threads) /* each by one thread */
        for (size_t place = 0; place < e->actives[first / CELL + cell]; place++)
            e->slot[cell * m->parts + e->active[(first / CELL + cell) * m->parts + place]] = (uint32_t)place + 1;
}

/* The parts that have a share in a cell, of all of them. At least one is left. */
static void find_active(em *e, size_t here, size_t cell, size_t panels)
{
    const hl_tmixture *m = e->m;
    uint32_t *active = e->active + here * m->parts, count = 0;
    size_t rows = (panels < CELL ? panels : CELL) * HL_LANES;
    for (size_t j = 0; j < m->parts; j++) {
        const double *share = e->share + (cell * m->parts + j) * CELL_ROWS;
        double most = 0;
        for (size_t r = 0; r < rows; r++)
            most = share[r] > most ? share[r] : most;
        if (most >= NO_SHARE)
            active[count++] = (uint32_t)j;
    }
    e->actives[here] = count ? count : 1;
}

static void em_blocks(void *user, int thread)
{
    em *e = user;
    hl_tmixture *m = e->m;
    size_t d = m->dim, threads = (size_t)hl_team_size(e->ctx->team), own = (size_t)thread;
    double *work = e->work + own * e->work_size;
    for (size_t first = 0; first < e->panels; first += BLOCK) {
        size_t panels = e->panels - first < BLOCK ? e->panels - first : BLOCK;
        score_block(e, first, panels, own, threads, work);
        hl_team_barrier(e->ctx->team);
        normalise_block(e, first, panels, own, threads, work);
        hl_team_barrier(e->ctx->team);
        for (size_t j = own; j < m->parts; j += threads)
            add_block(e, j, panels, e->x + first * (d + 1) * HL_LANES, work);
        for (size_t cell = own; e->refresh && cell * CELL < panels; cell += threads)
            find_active(e, first / CELL + cell, cell, panels - cell * CELL);
        hl_team_barrier(e->ctx->team);
    }
}

/* One step of EM; returns the mean log p before it. */
static hl_status em_step(em *e, size_t step, double *mean)
{
    e->refresh = step % REFRESH == 0;
    for (size_t i = 0; e->refresh && i < e->cells * e->m->parts; i++) { /* all parts */
        e->active[i] = (uint32_t)(i % e->m->parts);
        e->actives[i / e->m->parts] = (uint32_t)e->m->parts;
    }
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
    const hl_tmixture *m = e->m;
    size_t d = m->dim, k = m->parts, threads = (size_t)hl_team_size(e->ctx->team), stride = e->step * d;
    e->panels = (e->rows + HL_LANES - 1) / HL_LANES;
    e->cells = (e->panels + CELL - 1) / CELL;
    e->sums_size = 2 + d * (d + 1);
    e->work_size = hl_size_add(hl_size_mul(ROWS, 2 * d + 1) + HL_LANES * k, hl_gemm_w_scratch(BLOCK, d + 1));
    e->x = hl_calloc(e->ctx, hl_size_mul(e->panels * HL_LANES, d + 1), sizeof *e->x);
    e->order = hl_calloc(e->ctx, e->rows, sizeof *e->order);
    e->active = hl_calloc(e->ctx, hl_size_mul(e->cells, k + 1), sizeof *e->active);
    e->slot = hl_calloc(e->ctx, hl_size_mul(CELLS, k), sizeof *e->slot);
    e->q = hl_calloc(e->ctx, hl_size_mul(2 * ROWS, k), sizeof *e->q);
    e->logp = hl_calloc(e->ctx, e->panels * HL_LANES, sizeof *e->logp);
    e->work = hl_calloc(e->ctx, hl_size_mul(threads, e->work_size), sizeof *e->work);
    e->sums = hl_calloc(e->ctx, hl_size_mul(k, e->sums_size), sizeof *e->sums);
    e->common = hl_calloc(e->ctx, hl_size_mul(2 * d, d), sizeof *e->common);
    if (!e->x || !e->order || !e->active || !e->slot || !e->q || !e->logp || !e->work || !e->sums || !e->common)
        return HL_ERR_NOMEM;
    e->actives = e->active + e->cells * k;
    e->share = e->q + k * ROWS;
    e->scratch = e->common + d * d;
    hl_tmixture_arrange(e->rows, d, x, stride, CELL_ROWS, e->order);
    for (size_t p = 0; p < e->panels; p++) {
        double *to = e->x + p * (d + 1) * HL_LANES;
        for (size_t lane = 0; lane < HL_LANES; lane++) {
            size_t r = p * HL_LANES + lane;
            for (size_t i = 0; i < d && r < e->rows; i++)
                to[i * HL_LANES + lane] = x[e->order[r] * stride + i];
            to[d * HL_LANES + lane] = 1;
        }
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

/* EM until a step gains little, or PATIENCE scores of the held rows were no better. The step that was best for the held rows ends in `best`, which may be NULL without such rows. */
static hl_status run_em(em *e, const hl_tmixture_fold *data, double *logp, hl_tmixture *best, size_t *steps,
                        double *score)
{
    double last = -INFINITY, mean = 0, held;
    size_t worse = 0;
    hl_status status = HL_OK;
    *score = -INFINITY;
    for (size_t i = 0; status == HL_OK && i < e->plan->steps; i++) {
        status = hl_check_stop(e->ctx);
        if (status == HL_OK)
            status = em_step(e, i, &mean);
        bool ends = mean - last < LEAST_GAIN || i + 1 == e->plan->steps;
        last = mean;
        if (status == HL_OK && data->held_rows && ((i + 1) % SCORE_EVERY == 0 || ends)) {
            status = mean_logp(e->m, data->held_rows, data->held, logp, &held);
            worse = held > *score ? 0 : worse + 1;
            if (held > *score) {
                *score = held;
                *steps = i + 1;
                copy_parameters(e->m, best);
            }
        } else if (!data->held_rows) {
            *score = mean;
            *steps = i + 1;
        }
        if (ends || worse == PATIENCE)
            break;
    }
    if (status == HL_OK && data->held_rows && !isfinite(*score))
        status = hl_fail(e->ctx, HL_ERR_NOT_FINITE, "held-out rows have no finite density under a mixture");
    if (status == HL_OK && data->held_rows) {
        copy_parameters(best, e->m);
        status = hl_tmixture_prepare(e->m);
    }
    return status;
}

static void free_em(em *e)
{
    void *const blocks[] = { e->x, e->order, e->active, e->slot, e->q, e->logp, e->work, e->sums, e->common };
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

hl_status hl_tmixture_refine(hl_tmixture *m, size_t rows, const double *x, const hl_tmixture_plan *plan, size_t steps)
{
    em e = { .ctx = m->ctx, .kernels = hl_kernels_pick(HL_F64, NULL), .plan = plan, .m = m };
    hl_tmixture *before = NULL;
    hl_status status = hl_tmixture_create(m->ctx, m->dim, m->given, m->parts, m->nu, &before);
    e.step = 1 + (rows - 1) / EM_ROWS;
    e.rows = (rows + e.step - 1) / e.step;
    if (status == HL_OK)
        status = make_arrays(&e, x);
    for (size_t i = 0; i < steps && status == HL_OK; i++) {
        double mean;
        copy_parameters(m, before);
        status = em_step(&e, i, &mean);
        if (status == HL_ERR_CONVERGENCE || status == HL_ERR_NOT_FINITE) {
            copy_parameters(before, m);
            status = hl_tmixture_prepare(m);
            break;
        }
    }
    free_em(&e);
    hl_tmixture_free(before);
    return status;
}
