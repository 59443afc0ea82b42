/* density_fit_members.c - the simple members of a density model: mixtures of t distributions on standardised and on mapped columns.
 *
 * They take seconds, and the flow is judged by what it adds to them. Sizes are chosen by the validation rows; up to FEW rows by five-fold
 * cross-validation over all rows, maps inside the folds, and the mixtures are fitted to all rows in the end. With fewer than LEAST_VALID
 * validation rows nothing can judge a flow, and the mixtures are the model. Where none is better than normal columns, these are the only
 * mixture: one part with the columns' means and deviations. The flow sees mapped
 * columns, unless trials decide (density_fit_trial.c), where the mixture of them is clearly better: of nine tables this chose the better space for the flow on eight, and on the ninth,
 * which had 126 rows, the flow sees standardised columns as on all tables that are as small. */
#include <math.h>
#include <string.h>

#include "learn/density.h"
#include "learn/density_fit.h"

enum { FEW = 5000, FOLDS = 5, LEAST_VALID = 5, REPORT_ROWS = 200, REPORT_PART = 5, STREAM_FOLD = 45 };
enum {
    LEAST_FITTED = 5,
    EVEN_ROWS = 50,
    JUDGE_PART = 10,
    REFINE_STEPS = 3,
    STARTS = 4,
    QUICK_STARTS = 2,
    START_STEPS = 10
};
enum { MAPPED_ROWS = 500, MAP_COLUMNS = 512, MANY_COLUMNS = 64, MAP_PARTS = 64, FEW_MAP_PARTS = 8, EM_ROWS = 50000 };
static const double WORK = 6e9; /* parts times rows times squared columns of a mixture, at most */
static const double MAPPED_GAIN = 0.05, MAPPED_GAIN_COLUMN = 0.01;
static const double LOG_TWO_PI = 1.8378770664093453;
static const double PRIOR = 2; /* rows that every member's weight begins with */

/* All rows that choose, standardised, the context's columns first. A row of fold f is held when the others are fitted; without
 * cross-validation rows of training have no fold. */
typedef struct pool {
    hl_context *ctx;
    const hl_fit_table *table;
    size_t rows, columns, folds, first_valid;
    double *x;      /* [rows][columns] */
    int *fold;      /* [rows], or -1 */
    double *w;      /* [rows]: their weights, of mean 1; or NULL */
    size_t *copies; /* [rows]: how often a row is fitted, by its weight; or NULL: once */
    size_t fitted;  /* rows, each as often as it is fitted */
    double *work;   /* [rows], or [fitted] if that is more */
    double normal;  /* mean -log p, standardised, of held rows for normal columns of the others */
    uint64_t seed;
    bool quick;
} pool;

/* Rows of a fold as a member sees them. */
typedef struct view {
    hl_tmixture_fold rows;
    double *x, *held, *slope; /* slope: of the held rows */
    size_t *index;            /* of the held rows in the pool */
    hl_tmixture_fold choice;  /* the same rows; held ones as often as their weights say */
    double *judged;           /* choice.held, if it is not held */
} view;

/* ---- rows ---- */

static void join_rows(const hl_fit_table *t, const hl_fit_rows *from, size_t first, size_t count, double *to)
{
    for (size_t r = first; r < first + count; r++, to += t->dim + t->context) {
        if (t->context)
            memcpy(to, from->c + r * t->context, t->context * sizeof *to);
        memcpy(to + t->context, from->x + r * t->dim, t->dim * sizeof *to);
    }
}

/* At random. Of few rows, folds of the same size. Without validation rows that can judge, a tenth of many training rows helps them. */
static int fold_of(const pool *p, size_t row)
{
    uint64_t own = hl_random_bits(p->seed, STREAM_FOLD, row);
    size_t before = 0;
    if (p->folds == 1)
        return row >= p->first_valid || (p->rows - p->first_valid < LEAST_VALID && own % JUDGE_PART == 0) ? 0 : -1;
    if (p->rows >= EVEN_ROWS)
        return (int)(own % FOLDS);
    for (size_t r = 0; r < p->rows; r++)
        before += hl_random_bits(p->seed, STREAM_FOLD, r) < own;
    return (int)(before % FOLDS);
}

/* A row of weight w is fitted w times, rounded up or down such that the sums of the first rows are right to one half; one that stands for
 * copies, as often as there were. */
static hl_status copy_weights(pool *p)
{
    const hl_fit_table *t = p->table;
    double sum = 0;
    p->fitted = p->rows;
    if (!t->train.w && !t->valid.w)
        return HL_OK;
    p->fitted = 0;
    p->w = hl_calloc(p->ctx, p->rows, sizeof *p->w);
    p->copies = hl_calloc(p->ctx, p->rows, sizeof *p->copies);
    if (!p->w || !p->copies)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < p->rows; r++) {
        const hl_fit_rows *rows = r < p->first_valid ? &t->train : &t->valid;
        p->w[r] = rows->w ? rows->w[r < p->first_valid ? r : r - p->first_valid] : 1;
        p->copies[r] = rows->unit > 0 ? (size_t)round(p->w[r] / rows->unit)
                                      : (size_t)(floor(sum + p->w[r] + 0.5) - floor(sum + 0.5));
        sum += p->w[r];
        p->fitted += p->copies[r];
    }
    return HL_OK;
}

static double weight_of(const pool *p, size_t row)
{
    return p->w ? p->w[row] : 1;
}

static hl_status create_pool(const hl_fit_table *t, uint64_t seed, pool *p)
{
    size_t rows = t->train.rows + t->valid.rows;
    *p = (pool){ .ctx = t->ctx, .table = t, .rows = rows, .columns = t->dim + t->context, .seed = seed };
    p->folds = rows <= FEW ? FOLDS : 1;
    p->first_valid = t->train.rows;
    p->x = hl_calloc(t->ctx, hl_size_mul(rows, p->columns), sizeof *p->x);
    p->fold = hl_calloc(t->ctx, rows, sizeof *p->fold);
    if (!p->x || !p->fold)
        return HL_ERR_NOMEM;
    join_rows(t, &t->train, 0, t->train.rows, p->x);
    join_rows(t, &t->valid, 0, t->valid.rows, p->x + t->train.rows * p->columns);
    for (size_t r = 0; r < rows; r++)
        p->fold[r] = fold_of(p, r);
    hl_status status = copy_weights(p);
    if (status != HL_OK)
        return status;
    p->work = hl_calloc(t->ctx, p->fitted > rows ? p->fitted : rows, sizeof *p->work);
    return p->work ? HL_OK : HL_ERR_NOMEM;
}

static void free_pool(pool *p)
{
    hl_free(p->ctx, p->x);
    hl_free(p->ctx, p->fold);
    hl_free(p->ctx, p->work);
    hl_free(p->ctx, p->w);
    hl_free(p->ctx, p->copies);
}

static void free_view(const pool *p, view *v)
{
    hl_free(p->ctx, v->x);
    hl_free(p->ctx, v->held);
    hl_free(p->ctx, v->slope);
    hl_free(p->ctx, v->index);
    hl_free(p->ctx, v->judged);
    *v = (view){ 0 };
}

/* Copies of a row by its weight to rows that are as many as *count. */
static void put_row(const pool *p, size_t row, double *to, size_t *count)
{
    for (size_t k = p->copies ? p->copies[row] : 1; k > 0; k--)
        memcpy(to + (*count)++ * p->columns, p->x + row * p->columns, p->columns * sizeof *to);
}

/* The rows of fold f; f < 0: all rows that are fitted in the end, none held. */
static hl_status create_view(const pool *p, int f, view *v)
{
    size_t d = p->columns, judged = 0, distinct = 0;
    *v = (view){ .x = hl_calloc(p->ctx, hl_size_mul(p->fitted + 1, d), sizeof *v->x),
                 .held = hl_calloc(p->ctx, hl_size_mul(p->rows, d), sizeof *v->held),
                 .slope = hl_calloc(p->ctx, p->rows, sizeof *v->slope),
                 .index = hl_calloc(p->ctx, p->rows, sizeof *v->index) };
    if (p->copies)
        v->judged = hl_calloc(p->ctx, hl_size_mul(p->fitted + 1, d), sizeof *v->judged);
    if (!v->x || !v->held || !v->slope || !v->index || (p->copies && !v->judged))
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < p->rows; r++) {
        const double *row = p->x + r * d;
        if (f >= 0 && p->fold[r] == f) {
            v->index[v->rows.held_rows] = r;
            memcpy(v->held + v->rows.held_rows++ * d, row, d * sizeof *row);
            if (v->judged)
                put_row(p, r, v->judged, &judged);
        } else if (f >= 0 || p->folds > 1 || p->fold[r] < 0) {
            put_row(p, r, v->x, &v->rows.rows);
            distinct += !p->copies || p->copies[r];
        }
    }
    v->rows.x = v->x;
    v->rows.held = v->held;
    v->choice = v->rows;
    if (v->judged) {
        v->choice.held = v->judged;
        v->choice.held_rows = judged;
    }
    if (distinct < LEAST_FITTED || (f >= 0 && !v->choice.held_rows))
        return hl_fail(p->ctx, HL_ERR_INVALID,
                       "nearly all of the weight is on so few rows that mixtures cannot be fitted; set members=flow to "
                       "fit a flow only");
    return HL_OK;
}

/* ---- maps ---- */

/* The least width of parts in a column. The context has no density that spikes could raise, and its repeated values, as those of
 * categories, are told apart. */
static double find_floor(const pool *p, size_t rows, const double *x, size_t i)
{
    return i < p->table->context ? 0 : hl_column_tie_width(rows, x + i, p->columns, p->work);
}

static hl_column_fold column_of(const pool *p, const view *v, size_t i)
{
    return (hl_column_fold){ v->choice.rows, v->choice.held_rows, p->columns, v->choice.x + i, v->choice.held + i };
}

static size_t most_map_parts(const pool *p)
{
    return p->columns > MANY_COLUMNS ? FEW_MAP_PARTS : MAP_PARTS;
}

/* How many parts each column's map gets. */
static hl_status choose_maps(const pool *p, const view *views, size_t *parts)
{
    hl_status status = HL_OK;
    hl_column_fold fold[FOLDS];
    for (size_t i = 0; i < p->columns && status == HL_OK; i++) {
        double floor = find_floor(p, p->first_valid, p->x, i);
        status = hl_check_stop(p->ctx);
        for (size_t f = 0; f < p->folds; f++)
            fold[f] = column_of(p, &views[f], i);
        if (status == HL_OK)
            status = hl_column_map_choose(p->ctx, p->folds, fold, most_map_parts(p), floor, &parts[i]);
    }
    return status;
}

static void free_maps(hl_context *ctx, size_t columns, hl_column_map **map)
{
    for (size_t i = 0; map && i < columns; i++)
        hl_column_map_free(map[i]);
    hl_free(ctx, map);
}

/* Maps of the columns in the order of the pool, fitted to the rows of a view. */
static hl_status fit_maps(const pool *p, const view *v, const size_t *parts, hl_column_map ***out)
{
    hl_column_map **map = *out = hl_calloc(p->ctx, p->columns, sizeof(hl_column_map *));
    hl_status status = map ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < p->columns && status == HL_OK; i++) {
        hl_column_fold rows = column_of(p, v, i);
        double floor = find_floor(p, v->rows.rows, v->x, i);
        status = hl_column_map_fit(p->ctx, &rows, parts[i], floor, &map[i]);
    }
    return status;
}

static void map_view(const pool *p, hl_column_map *const *map, view *v)
{
    size_t d = p->columns;
    for (size_t i = 0; i < v->rows.rows * d; i++)
        v->x[i] = hl_column_map_forward(map[i % d], v->x[i], NULL);
    for (size_t i = 0; v->judged && i < v->choice.held_rows * d; i++) /* their slopes are the same for all choices */
        v->judged[i] = hl_column_map_forward(map[i % d], v->judged[i], NULL);
    for (size_t i = 0; i < v->rows.held_rows * d; i++) {
        double slope;
        v->held[i] = hl_column_map_forward(map[i % d], v->held[i], &slope);
        v->slope[i / d] += i % d >= p->table->context ? slope : 0;
    }
}

/* ---- mixtures ---- */

static size_t most_parts(const pool *p, size_t most)
{
    double rows = fmin((double)p->rows, EM_ROWS), d = (double)p->columns;
    double limit = WORK / (rows * d * d);
    return limit < 1 ? 0 : limit < (double)most ? (size_t)limit : most;
}

static void set_floors(const pool *p, const view *v, double *floor)
{
    for (size_t i = 0; i < p->columns; i++)
        floor[i] = find_floor(p, v->rows.rows, v->x, i);
}

/* log p of held rows, each by a mixture that has not seen it, to logp by the row's place in the pool. */
static hl_status score_folds(const pool *p, const view *views, const hl_tmixture_plan *plan, double *logp,
                             hl_tmixture **last)
{
    hl_status status = HL_OK;
    for (size_t f = 0; f < p->folds && status == HL_OK; f++) {
        const view *v = &views[f];
        hl_tmixture_free(*last);
        status = hl_tmixture_fit(p->ctx, p->columns, p->table->context, &v->rows, plan, last, NULL, NULL);
        if (status == HL_OK)
            status = hl_tmixture_logp(*last, v->rows.held_rows, v->held, p->work);
        for (size_t r = 0; r < v->rows.held_rows && status == HL_OK; r++)
            logp[v->index[r]] = p->work[r] + v->slope[r];
    }
    return status;
}

/* The rows that chose the mixture are as good as the others: a few more steps see them, too. */
static hl_status refine(const pool *p, const view *v, const hl_tmixture_plan *plan, hl_tmixture *m)
{
    size_t d = p->columns, rows = v->rows.rows + v->choice.held_rows;
    double *x = hl_calloc(p->ctx, hl_size_mul(rows, d), sizeof *x);
    if (!x)
        return HL_ERR_NOMEM;
    memcpy(x, v->x, v->rows.rows * d * sizeof *x);
    memcpy(x + v->rows.rows * d, v->choice.held, v->choice.held_rows * d * sizeof *x);
    hl_status status = hl_tmixture_refine(m, rows, x, plan, REFINE_STEPS);
    hl_free(p->ctx, x);
    return status;
}

/* All rows, from the best of some starts: that of the plan was chosen on a part of the rows, and here it may lead elsewhere. */
static hl_status fit_all(const pool *p, const view *v, const hl_tmixture_plan *plan, hl_tmixture **out)
{
    hl_tmixture_plan best = *plan, next = *plan;
    double most = -INFINITY;
    hl_status status = HL_OK;
    next.steps = plan->steps < START_STEPS ? plan->steps : START_STEPS;
    size_t starts = plan->parts < 2 ? 0 : plan->quick ? QUICK_STARTS : STARTS;
    for (size_t i = 0; i < starts && status == HL_OK; i++) {
        double score = -INFINITY;
        next.seed = plan->seed + 100 * i;
        status = hl_tmixture_fit(p->ctx, p->columns, p->table->context, &v->rows, &next, out, NULL, &score);
        hl_tmixture_free(*out);
        *out = NULL;
        if (status == HL_OK && score > most) {
            most = score;
            best.seed = next.seed;
        }
        if (i > 0 && (status == HL_ERR_CONVERGENCE || status == HL_ERR_NOT_FINITE))
            status = HL_OK;
    }
    return status == HL_OK ? hl_tmixture_fit(p->ctx, p->columns, p->table->context, &v->rows, &best, out, NULL, NULL)
                           : status;
}

/* A mixture on the rows of `views`, whose last one is all rows for the end. */
static hl_status fit_mixture(const pool *p, const view *views, size_t most, hl_tmixture **out, double *logp)
{
    hl_tmixture_fold fold[FOLDS];
    hl_tmixture_plan plan = { .seed = p->seed, .quick = p->quick };
    double *floor = hl_calloc(p->ctx, p->columns, sizeof *floor);
    hl_status status = floor ? HL_OK : HL_ERR_NOMEM;
    *out = NULL;
    if (status == HL_OK) {
        set_floors(p, &views[p->folds], floor);
        plan.floor = floor;
        for (size_t f = 0; f < p->folds; f++)
            fold[f] = views[f].choice;
        status = hl_tmixture_choose(p->ctx, p->columns, p->table->context, p->folds, fold, most, &plan, NULL);
    }
    if (status == HL_OK)
        status = score_folds(p, views, &plan, logp, out);
    if (status == HL_OK && p->folds == 1)
        status = refine(p, &views[0], &plan, *out);
    if (status == HL_OK && p->folds > 1) {
        hl_tmixture_free(*out);
        *out = NULL;
        status = fit_all(p, &views[p->folds], &plan, out);
    }
    hl_free(p->ctx, floor);
    return status;
}

/* ---- weights ---- */

/* Weights of `count` densities by EM on rows; logp[k] has the log-densities of member k. */
void hl_fit_weigh(size_t rows, size_t count, const double *const *logp, const double *of_rows, double *weight)
{
    double sum[HL_FIT_MEMBERS];
    for (size_t k = 0; k < count; k++)
        weight[k] = 1 / (double)count;
    for (int step = 0; step < 300; step++) {
        for (size_t k = 0; k < count; k++)
            sum[k] = PRIOR;
        for (size_t r = 0; r < rows; r++) {
            double most = -INFINITY, total = 0, share[HL_FIT_MEMBERS];
            for (size_t k = 0; k < count; k++)
                most = logp[k][r] > most ? logp[k][r] : most;
            for (size_t k = 0; k < count && isfinite(most); k++) {
                share[k] = logp[k][r] > -INFINITY ? weight[k] * exp(logp[k][r] - most) : 0; /* NaN: 0 */
                total += share[k];
            }
            for (size_t k = 0; k < count && total > 0; k++)
                sum[k] += (of_rows ? of_rows[r] : 1) * share[k] / total;
        }
        double all = 0;
        for (size_t k = 0; k < count; k++)
            all += sum[k];
        for (size_t k = 0; k < count; k++)
            weight[k] = sum[k] / all;
    }
    double kept = 0;
    for (size_t k = 0; k < count; k++)
        kept += weight[k] = weight[k] < HL_FIT_LEAST_WEIGHT ? 0 : weight[k];
    for (size_t k = 0; k < count; k++)
        weight[k] /= kept;
}

double hl_fit_mix(size_t count, const double *weight, const double *const *logp, size_t row)
{
    double most = -INFINITY, sum = 0;
    for (size_t k = 0; k < count; k++)
        if (weight[k] > 0 && logp[k][row] > most)
            most = logp[k][row];
    for (size_t k = 0; k < count; k++)
        if (weight[k] > 0 && logp[k][row] > -INFINITY)
            sum += weight[k] * exp(logp[k][row] - most);
    return most + log(sum);
}

/* ---- all of it ---- */

/* From the pool's order and units, standardised, to the model's: x first, units of the data. */
static hl_status order_maps(const pool *p, hl_column_map **map, hl_fit_members *m)
{
    const hl_fit_table *t = p->table;
    m->map = hl_calloc(p->ctx, p->columns, sizeof(hl_column_map *));
    if (!m->map)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < p->columns; i++) {
        size_t to = i < t->context ? t->dim + i : i - t->context;
        const hl_density_column *c = &t->column[to];
        map[i]->centre = c->mean + c->deviation * map[i]->centre;
        map[i]->scale *= c->deviation;
        m->map[to] = map[i];
        map[i] = NULL;
    }
    return HL_OK;
}

static double mean_over(const pool *p, const double *logp)
{
    double sum = 0, count = 0;
    for (size_t r = 0; r < p->rows; r++)
        if (p->fold[r] >= 0) {
            sum -= weight_of(p, r) * logp[r];
            count += weight_of(p, r);
        }
    return sum / count;
}

static double log_deviations(const hl_fit_table *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->dim; i++)
        sum += log(t->column[i].deviation);
    return sum;
}

/* One mixture, on standardised or on mapped columns. One that cannot be fitted is left out. */
static hl_status add_member(const pool *p, const view *views, bool mapped, size_t most, hl_fit_members *m)
{
    size_t k = m->mixtures;
    m->held[k] = hl_calloc(p->ctx, p->rows, sizeof **m->held);
    hl_status status = m->held[k] ? fit_mixture(p, views, most, &m->mixture[k], m->held[k]) : HL_ERR_NOMEM;
    if (status == HL_ERR_CONVERGENCE || status == HL_ERR_NOT_FINITE) {
        hl_free(p->ctx, m->held[k]);
        m->held[k] = NULL;
        return HL_OK;
    }
    if (status != HL_OK)
        return status;
    double scale = log_deviations(p->table);
    for (size_t r = 0; r < p->rows; r++)
        m->held[k][r] -= scale;
    m->mapped[k] = mapped;
    m->nll[k] = mean_over(p, m->held[k]);
    m->mixtures++;
    return HL_OK;
}

static hl_status map_views(const pool *p, view *views, const size_t *parts, hl_fit_members *m)
{
    hl_status status = HL_OK;
    for (size_t f = 0; f <= p->folds && status == HL_OK; f++) {
        hl_column_map **map = NULL;
        status = fit_maps(p, &views[f], parts, &map);
        if (status == HL_OK)
            map_view(p, map, &views[f]);
        if (status == HL_OK && f == p->folds)
            status = order_maps(p, map, m);
        free_maps(p->ctx, p->columns, map);
    }
    return status;
}

/* Normal columns, by the means and deviations of the rows of each fold, for the rows that it holds. */
static double score_normal(const pool *p, const view *views)
{
    double sum = 0, count = 0;
    for (size_t f = 0; f < p->folds; f++) {
        const view *v = &views[f];
        double n = (double)v->rows.rows;
        for (size_t i = p->table->context; i < p->columns; i++) {
            double mean = 0, square = 0;
            for (size_t r = 0; r < v->rows.rows; r++)
                mean += v->x[r * p->columns + i] / n;
            for (size_t r = 0; r < v->rows.rows; r++)
                square += pow(v->x[r * p->columns + i] - mean, 2) / (n - 1);
            for (size_t r = 0; r < v->rows.held_rows; r++)
                sum += weight_of(p, v->index[r]) * 0.5 *
                       (LOG_TWO_PI + log(square) + pow(v->held[r * p->columns + i] - mean, 2) / square);
        }
        for (size_t r = 0; r < v->rows.held_rows; r++)
            count += weight_of(p, v->index[r]);
    }
    return sum / count;
}

/* Normal columns become the only mixture. */
static hl_status set_normal(const pool *p, hl_fit_members *m)
{
    for (size_t k = 0; k < HL_FIT_MIXTURES; k++) {
        hl_tmixture_free(m->mixture[k]);
        hl_free(p->ctx, m->held[k]);
        m->mixture[k] = NULL;
        m->held[k] = NULL;
    }
    m->mixtures = 0;
    m->mapped[0] = false;
    m->share[1] = 0;
    m->held[0] = hl_calloc(p->ctx, p->rows, sizeof **m->held);
    hl_status status = m->held[0]
                           ? hl_tmixture_create(p->ctx, p->columns, p->table->context, 1, INFINITY, &m->mixture[0])
                           : HL_ERR_NOMEM;
    if (status != HL_OK)
        return status;
    hl_tmixture *one = m->mixture[0];
    one->weight[0] = 1;
    for (size_t i = 0; i < p->columns; i++) {
        one->mean[i] = 0;
        for (size_t k = 0; k < p->columns; k++)
            one->factor[i * p->columns + k] = i == k;
    }
    status = hl_tmixture_prepare(one);
    if (status == HL_OK)
        status = hl_tmixture_logp(one, p->rows, p->x, m->held[0]);
    for (size_t r = 0; r < p->rows; r++)
        m->held[0][r] -= log_deviations(p->table);
    m->nll[0] = mean_over(p, m->held[0]);
    m->mixtures = 1;
    m->is_normal = true;
    return status;
}

static hl_status fit_members(pool *p, view *views, size_t most, hl_fit_members *m)
{
    size_t *parts = hl_calloc(p->ctx, p->columns, sizeof *parts);
    hl_status status = parts ? HL_OK : HL_ERR_NOMEM;
    for (size_t f = 0; f <= p->folds && status == HL_OK; f++)
        status = create_view(p, f < p->folds ? (int)f : -1, &views[f]);
    if (status == HL_OK)
        p->normal = score_normal(p, views) + log_deviations(p->table);
    if (status == HL_OK)
        status = add_member(p, views, false, most, m);
    if (status == HL_OK && p->columns <= MAP_COLUMNS) {
        status = choose_maps(p, views, parts);
        if (status == HL_OK)
            status = map_views(p, views, parts, m);
        if (status == HL_OK)
            status = add_member(p, views, true, most, m);
    }
    hl_free(p->ctx, parts);
    return status;
}

/* Weights among the mixtures by held rows; *mean becomes the mean -log p of these. */
static hl_status weigh(const pool *p, hl_fit_members *m, double *mean)
{
    size_t held = 0;
    double *packed = hl_calloc(p->ctx, hl_size_mul(p->rows, 3), sizeof *packed), *w = packed + 2 * p->rows, total = 0;
    const double *logp[] = { packed, packed + p->rows };
    if (!packed)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < p->rows; r++)
        if (p->fold[r] >= 0) {
            for (size_t k = 0; k < m->mixtures; k++)
                packed[k * p->rows + held] = m->held[k][r];
            total += w[held++] = weight_of(p, r);
        }
    hl_fit_weigh(held, m->mixtures, logp, w, m->share);
    *mean = 0;
    for (size_t r = 0; r < held; r++)
        *mean -= w[r] * hl_fit_mix(m->mixtures, m->share, logp, r) / total;
    hl_free(p->ctx, packed);
    return HL_OK;
}

/* Weights among the mixtures, what they make of the validation rows together, and the space of the flow. */
static hl_status conclude(const pool *p, hl_fit_members *m)
{
    const hl_fit_table *t = p->table;
    size_t valid = p->rows - p->first_valid;
    double gain = MAPPED_GAIN + MAPPED_GAIN_COLUMN * (double)t->dim, held = INFINITY, total = 0;
    hl_status status = m->mixtures ? weigh(p, m, &held) : HL_OK;
    if (status == HL_OK && (!m->mixtures || p->normal < held)) {
        status = set_normal(p, m);
        m->share[0] = 1;
        held = m->nll[0];
    }
    m->logp = hl_calloc(p->ctx, valid, sizeof *m->logp);
    if (status == HL_OK && !m->logp)
        status = HL_ERR_NOMEM;
    if (status != HL_OK)
        return status;
    for (size_t r = 0; r < valid; r++)
        total += weight_of(p, p->first_valid + r);
    m->together = valid ? 0 : held;
    for (size_t r = 0; r < valid; r++) {
        const double *at[] = { m->held[0] + p->first_valid, m->mixtures > 1 ? m->held[1] + p->first_valid : NULL };
        m->logp[r] = hl_fit_mix(m->mixtures, m->share, at, r);
        m->together -= weight_of(p, p->first_valid + r) * m->logp[r] / total;
    }
    m->normal = 0.5 * (double)t->dim * LOG_TWO_PI + log_deviations(t);
    for (size_t i = 0; i < valid * t->dim; i++)
        m->normal += weight_of(p, p->first_valid + i / t->dim) * 0.5 * t->valid.x[i] * t->valid.x[i] / total;
    m->flow_mapped = m->mixtures > 1 && p->rows >= MAPPED_ROWS && m->nll[1] < m->nll[0] - gain;
    return HL_OK;
}

/* The last of many validation rows choose nothing: they are for the report. */
static hl_status set_report_rows(hl_fit_table *t, hl_fit_members *m)
{
    if (t->valid.rows < REPORT_ROWS || (t->valid.w && !(t->valid.unit > 0)))
        return HL_OK;
    m->report_rows = t->valid.rows / REPORT_PART;
    t->valid.rows -= m->report_rows;
    m->report = hl_calloc(t->ctx, hl_size_mul(m->report_rows, t->dim + t->context), sizeof *m->report);
    if (!m->report)
        return HL_ERR_NOMEM;
    join_rows(t, &t->valid, t->valid.rows, m->report_rows, m->report);
    return HL_OK;
}

hl_status hl_fit_members_fit(hl_fit_table *t, const hl_settings *settings, hl_fit_members *m)
{
    static const size_t sizes[] = { 512, 64, 1024 }; /* default, fast, best */
    size_t choice = hl_settings_choice(settings, "members", 0);
    uint64_t seed = hl_settings_integer(settings, "seed", 0);
    pool p = { .ctx = t->ctx };
    view views[FOLDS + 1] = { 0 };
    m->ctx = t->ctx;
    m->columns = t->dim + t->context;
    m->wish = (hl_fit_wish)choice;
    bool wanted = m->wish == HL_FIT_MIXTURE_ONLY;
    if (m->wish == HL_FIT_FLOW_ONLY || (!t->valid.rows && !wanted))
        return HL_OK;
    hl_status status = set_report_rows(t, m);
    if (status == HL_OK)
        status = create_pool(t, seed, &p);
    size_t recipe = hl_settings_choice(settings, "recipe", 0);
    p.quick = recipe == 1;
    size_t most = status == HL_OK ? most_parts(&p, sizes[recipe]) : 0;
    most = most || !wanted ? most : 1;
    hl_kept_failure kept;
    hl_failure_keep(t->ctx, &kept);
    if (status == HL_OK && most > 0)
        status = fit_members(&p, views, most, m);
    if (status == HL_ERR_INVALID && p.copies && !wanted) { /* too few rows have the weight: a flow alone */
        hl_failure_restore(t->ctx, &kept);
        status = HL_OK;
        most = 0;
    }
    if (status == HL_OK && most > 0)
        status = conclude(&p, m);
    m->alone = m->mixtures && (wanted || t->valid.rows < LEAST_VALID);
    for (size_t f = 0; f <= FOLDS; f++)
        free_view(&p, &views[f]);
    free_pool(&p);
    return status;
}

/* A set of rows; the log slopes of its rows are added to `slopes`. */
static void map_rows(const hl_fit_members *m, const hl_fit_table *t, hl_fit_rows *rows, double *slopes)
{
    for (size_t i = 0; i < rows->rows * t->dim; i++) {
        const hl_density_column *c = &t->column[i % t->dim];
        double slope;
        rows->x[i] = hl_column_map_forward(m->map[i % t->dim], c->mean + c->deviation * rows->x[i], &slope);
        if (slopes)
            slopes[i / t->dim] += slope;
    }
    for (size_t i = 0; i < rows->rows * t->context; i++) {
        size_t column = t->dim + i % t->context;
        const hl_density_column *c = &t->column[column];
        rows->c[i] = hl_column_map_forward(m->map[column], c->mean + c->deviation * rows->c[i], NULL);
    }
}

hl_status hl_fit_members_map(const hl_fit_members *m, hl_fit_table *t)
{
    size_t judged = t->valid.rows < HL_FIT_VALIDATION_ROWS ? t->valid.rows : HL_FIT_VALIDATION_ROWS;
    t->valid_slope = hl_calloc(t->ctx, t->valid.rows, sizeof *t->valid_slope);
    if (!t->valid_slope)
        return HL_ERR_NOMEM;
    map_rows(m, t, &t->train, NULL);
    map_rows(m, t, &t->valid, t->valid_slope);
    double total = 0;
    for (size_t r = 0; r < judged; r++)
        total += t->valid.w ? t->valid.w[r] : 1;
    for (size_t r = 0; r < judged; r++)
        t->map_scale -= (t->valid.w ? t->valid.w[r] : 1) * t->valid_slope[r] / total;
    t->mapped = true;
    return HL_OK;
}

void hl_fit_members_free(hl_fit_members *m)
{
    if (!m->ctx)
        return;
    free_maps(m->ctx, m->columns, m->map);
    for (size_t k = 0; k < HL_FIT_MIXTURES; k++) {
        hl_tmixture_free(m->mixture[k]);
        hl_free(m->ctx, m->held[k]);
    }
    hl_free(m->ctx, m->logp);
    hl_free(m->ctx, m->report);
}
