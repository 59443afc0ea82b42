/* regress_choose.c - least squares of the conditions for every candidate and ridge, and the one of the least error.
 *
 * A split holds two folds a and b out; the error is r_a . r_b, the product of their residuals, whose noises are independent. Among many
 * candidates the errors of all ten pairs of folds are compared, among few those of five pairs. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "op/op.h"
#include "sde/regress.h"

enum { MOST_SPLITS = HL_REGRESS_FOLDS * (HL_REGRESS_FOLDS - 1) / 2, FEW_CANDIDATES = 8 };
enum { ALL = MOST_SPLITS, SETS = MOST_SPLITS + 1 }; /* sets of folds to learn from: of splits, then all folds */
static const unsigned char held[MOST_SPLITS][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { 3, 4 }, { 4, 0 },
                                                    { 0, 2 }, { 1, 3 }, { 2, 4 }, { 3, 0 }, { 4, 1 } };
static const double ridges[] = { 1e-8, 1e-6, 1e-5, 1e-4, 1e-3 };
/* Standard errors by which a smaller dictionary may be worse, and the share of splits in which it may be: in rounds that find the
 * weights of steps, for which a diffusion that is too simple is bad, and in others; or the error by which it may be worse for every function
 * that it saves. Chosen on sparse observations and snapshots of cir, cev, bist, ou, well, gbm and logistic (problems/sde_equation.c), seeds
 * 11 to 15, and adjusted after a look at seeds 1 to 3 of toggle, corr, cev, gbm and bist, and 11 to 13 of lv. */
static const double tolerance[] = { 0.5, 1.5 }, most_worse[] = { 0.6, 0.8 }, per_function = 3;
static const double far = 3; /* deviations of the noise of an error, see error() */
/* Times the least standard error of a mean over splits, see stable(). The rule was made on snapshots of gbm (bench sde --bands, data sets 1 to 28)
 * and of corr, seeds 31 and 32. */
static const double most_scatter = 5;
/* Deviations of a chi-square variable, see lacks(). A round number; seen on four data sets of 300 pairs of a tanh equation. */
static const double needed = 4;
static const double left_share = 0.3; /* of every direction of the equations that is left without noise */
enum { RIDGES = sizeof ridges / sizeof *ridges };

typedef struct work {
    const hl_regress *p;
    const hl_conditions *c;
    size_t candidates, team, splits;
    const hl_candidate *candidate;
    double *mean;    /* for each thread [count][columns + 1] */
    double *normal;  /* [SETS][columns + 1][columns + 1] */
    double *noise;   /* its part that is noise of the regressors */
    double *square;  /* [folds][columns + 1][columns + 1]: products of the noisy rows of a fold */
    double *scratch; /* for each thread: matrix, its scaled copy, scale, theta, columns' numbers */
    size_t scratch_size;
    double *score;   /* [candidates][RIDGES][folds]: of each split */
    size_t *columns; /* [candidates]: their numbers */
    atomic_bool stopped;
} work;

/* ---- normal equations ---- */

static bool held_out(size_t set, size_t fold)
{
    return set < ALL && (fold == held[set][0] || fold == held[set][1]);
}

/* Adds the sum of the products of `count` rows of n values with themselves to the lower triangle of `to`. Four rows at a time: it is large. */
static void add_squares(size_t n, size_t count, const double *rows, double *to)
{
    size_t r = 0;
    for (; r + 4 <= count; r += 4, rows += 4 * n)
        for (size_t i = 0; i < n; i++) {
            const double value[] = { rows[i], rows[n + i], rows[2 * n + i], rows[3 * n + i] };
            if (value[0] != 0 || value[1] != 0 || value[2] != 0 || value[3] != 0)
                hl_axpy_four(i + 1, value, rows, n, to + i * n);
        }
    for (; r < count; r++, rows += n)
        for (size_t i = 0; i < n; i++)
            if (rows[i] != 0)
                hl_axpy(i + 1, rows[i], rows, to + i * n);
}

static void square_job(void *user, int thread)
{
    work *w = user;
    size_t n = w->p->columns + 1;
    for (size_t q = (size_t)thread; q < HL_REGRESS_FOLDS; q += w->team)
        add_squares(n, w->c->noisy, w->c->rows + q * w->c->count * n, w->square + q * n * n);
}

/* Normal equations of every set; and the part of them that is noise of the regressors: products of a fold with itself in excess of those with
 * others. Regressors of steps are functions of the states that were observed: what differs from fold to fold is where the states are, not noise. */
static void normal_job(void *user, int thread)
{
    work *w = user;
    size_t n = w->p->columns + 1, size = w->c->count * n;
    double *mean = w->mean + (size_t)thread * size;
    for (size_t set = (size_t)thread; set < SETS; set += w->team) {
        double folds = HL_REGRESS_FOLDS - (set < ALL ? 2 : 0), share = 1 / folds;
        double *normal = w->normal + set * n * n, *noise = w->noise + set * n * n;
        if (set >= w->splits && set < ALL)
            continue;
        memset(mean, 0, size * sizeof *mean);
        for (size_t q = 0; q < HL_REGRESS_FOLDS; q++)
            if (!held_out(set, q)) {
                hl_axpy(size, share, w->c->rows + q * size, mean);
                hl_axpy(n * n, share / (folds - 1), w->square + q * n * n, noise);
            }
        add_squares(n, w->c->noisy, mean, normal);
        hl_axpy(n * n, -1 / (folds - 1), normal, noise);
        add_squares(n, w->c->count - w->c->noisy, mean + w->c->noisy * n, normal);
    }
}

/* ---- candidates ---- */

static bool has(const hl_regress *p, const hl_candidate *c, size_t part, size_t entry, size_t function)
{
    const hl_basis *b = &p->basis[part];
    if (part && entry >= p->dim && !c->crossed)
        return false;
    if ((part == 0 || entry < p->dim) && !p->open[part][entry])
        return false;
    if (function >= b->products && part == 0 && p->ridge_each && function - b->products >= p->ridge_first) {
        size_t ridge = function - b->products - p->ridge_first, own = ridge % p->ridge_each;
        size_t gaussians = p->ridge_each - p->ridge_tangents;
        size_t of = own < gaussians ? own : (own - gaussians) / (p->dim - 1) * HL_RIDGE_EACH;
        return ridge / p->ridge_each == entry && of < c->ridges;
    }
    if (function >= b->products)
        return (part == 0 || entry < p->dim) && function - b->products >= c->first[part] &&
               function - b->products < c->bumps[part];
    int degree = hl_basis_degree(b, function);
    if (degree > c->degree[part])
        return false;
    size_t own = part && entry >= p->dim ? p->dim : entry;
    for (size_t k = 0; k < HL_BASIS_FACTORS && degree > 1 && c->own[part]; k++)
        if (b->factor[function][k] && b->factor[function][k] != own + 1)
            return false;
    return true;
}

/* The candidate's columns to `index`; returns their number. */
static size_t columns_of(const hl_regress *p, const hl_candidate *c, size_t *index)
{
    size_t count = 0;
    for (size_t i = 0; i < p->dim; i++)
        for (size_t a = 0; a < p->size[0]; a++)
            if (has(p, c, 0, i, a))
                index[count++] = hl_regress_drift(p, i) + a;
    for (size_t e = 0; e < p->entries; e++)
        for (size_t a = 0; a < hl_regress_noise_size(p, e); a++)
            if (has(p, c, 1, e, a))
                index[count++] = hl_regress_noise(p, e) + a;
    return count;
}

size_t hl_candidate_functions(const hl_regress *p, const hl_candidate *c)
{
    size_t count = 0;
    for (size_t i = 0; i < p->dim; i++)
        for (size_t a = 0; a < p->size[0]; a++)
            count += has(p, c, 0, i, a);
    for (size_t e = 0; e < p->entries; e++)
        for (size_t a = 0; a < hl_regress_noise_size(p, e); a++)
            count += has(p, c, 1, e, a);
    return count;
}

/* normal - share * noise of the chosen columns, scaled, with `keep` times normal taken away and a ridge; to l. False if it
 * is not positive. */
static bool factor(const double *normal, const double *noise, size_t wide, size_t n, const size_t *index, double share,
                   double keep, double ridge, const double *scale, double *l)
{
    for (size_t i = 0; i < n; i++) {
        const double *a = normal + index[i] * wide, *b = noise + index[i] * wide;
        for (size_t j = 0; j <= i; j++)
            l[i * n + j] = ((1 - keep) * a[index[j]] - share * b[index[j]]) * scale[i] * scale[j];
        l[i * n + i] += ridge + (scale[i] == 0);
    }
    return hl_cholesky(n, l, 0) > 0;
}

/* Scales of the chosen columns, and the share of the noise that can be taken out of the equations so that a share of every direction
 * is left. */
static double noise_share(const double *normal, const double *noise, size_t wide, size_t n, const size_t *index,
                          double *l, double *scale)
{
    double share = 1;
    for (size_t k = 0; k < n; k++) {
        double v = normal[index[k] * wide + index[k]];
        scale[k] = v > 0 ? 1 / sqrt(v) : 0;
    }
    while (share > 0 && !factor(normal, noise, wide, n, index, share, left_share, 1e-8, scale, l))
        share = share > 0.1 ? share - 0.25 : 0;
    return share;
}

/* theta (n) of the chosen columns; `l` is scratch, `share` and `scale` are noise_share's. */
static void solve(const double *normal, const double *noise, size_t wide, size_t n, const size_t *index, double share,
                  double ridge, double *l, const double *scale, double *theta)
{
    const double *y = normal + (wide - 1) * wide, *noisy = noise + (wide - 1) * wide;
    while (n && !factor(normal, noise, wide, n, index, share, 0, ridge, scale, l) && ridge < 1e6)
        ridge *= 10;
    for (size_t k = 0; k < n; k++)
        theta[k] = (y[index[k]] - share * noisy[index[k]]) * scale[k];
    hl_solve_lower(n, l, n, theta);
    hl_solve_lower_transposed(n, l, n, theta);
    for (size_t k = 0; k < n; k++)
        theta[k] *= scale[k];
}

/* The same with constant diffusions A_ii >= 0. Where a solution is negative the column is left out, and the others are solved for again:
 * otherwise a constant of the wrong sign, which no equation has, could explain the data, and its g would be no number. */
static void solve_positive(const hl_regress *p, const hl_candidate *c, const double *normal, const double *noise,
                           size_t wide, size_t n, const size_t *index, double share, double ridge, double *l,
                           const double *scale, double *bounded, double *theta)
{
    size_t first = hl_regress_noise(p, 0), end = hl_regress_noise(p, p->dim);
    bool negative = true;
    memcpy(bounded, scale, n * sizeof *scale);
    while (negative) {
        solve(normal, noise, wide, n, index, share, ridge, l, bounded, theta);
        negative = false;
        for (size_t k = 0; k < n && c->degree[1] == 0 && !c->bumps[1]; k++)
            if (index[k] >= first && index[k] < end && theta[k] < 0) {
                bounded[k] = 0; /* solve() then gives theta[k] = 0 */
                negative = true;
            }
    }
}

/* Product of the residuals of the two folds that split `set` holds out. Its noise has the deviation folds x sqrt(count); what is far below 0
 * shows an unstable solution whose residuals are large and of opposite signs, and counts as a large error. */
static double error(const work *w, size_t set, size_t n, const size_t *index, const double *theta)
{
    size_t columns = w->p->columns + 1, count = w->c->count;
    const double *a = w->c->rows + held[set][0] * count * columns;
    const double *b = w->c->rows + held[set][1] * count * columns;
    double sum = 0;
    for (size_t r = 0; r < count; r++, a += columns, b += columns) {
        double ra = a[columns - 1], rb = b[columns - 1];
        for (size_t k = 0; k < n; k++) {
            ra -= a[index[k]] * theta[k];
            rb -= b[index[k]] * theta[k];
        }
        sum += ra * rb;
    }
    return w->p->rate > 0 && sum < -far * HL_REGRESS_FOLDS * sqrt((double)count) ? -sum : sum;
}

/* The solutions for many columns take minutes. One thread asks the user; the others follow. */
static bool wants_stop(work *w, int thread)
{
    const hl_context *ctx = w->p->ctx;
    if (thread == 0 && ctx->stop && ctx->stop(ctx->stop_user))
        atomic_store_explicit(&w->stopped, true, memory_order_relaxed);
    return atomic_load_explicit(&w->stopped, memory_order_relaxed);
}

static void candidate_job(void *user, int thread)
{
    work *w = user;
    size_t wide = w->p->columns + 1;
    double *l = w->scratch + (size_t)thread * w->scratch_size, *scale = l + wide * wide, *theta = scale + wide;
    double *bounded = theta + wide;
    size_t *index = (size_t *)(bounded + wide);
    for (size_t k = (size_t)thread; k < w->candidates; k += w->team) {
        size_t n = w->columns[k] = columns_of(w->p, &w->candidate[k], index);
        for (size_t set = 0; set < w->splits; set++) {
            const double *normal = w->normal + set * wide * wide, *noise = w->noise + set * wide * wide;
            double share = noise_share(normal, noise, wide, n, index, l, scale);
            for (size_t r = 0; r < RIDGES; r++) {
                if (wants_stop(w, thread))
                    return;
                solve_positive(w->p, &w->candidate[k], normal, noise, wide, n, index, share, ridges[r], l, scale,
                               bounded, theta);
                w->score[(k * RIDGES + r) * MOST_SPLITS + set] = error(w, set, n, index, theta);
            }
        }
    }
}

static void run(work *w, void (*job)(void *user, int thread))
{
    if (w->p->ctx->team)
        hl_team_run(w->p->ctx->team, job, w);
    else
        job(w, 0);
}

static double mean_score(const work *w, size_t k)
{
    double sum = 0;
    for (size_t set = 0; set < w->splits; set++)
        sum += w->score[k * MOST_SPLITS + set] / (double)w->splits;
    return isfinite(sum) ? sum : INFINITY;
}

/* Standard error of the mean over the splits. */
static double score_error(const work *w, size_t k)
{
    double mean = mean_score(w, k), square = 0, splits = (double)w->splits;
    for (size_t set = 0; set < w->splits; set++) {
        double gap = w->score[k * MOST_SPLITS + set] - mean;
        square += gap * gap;
    }
    return isfinite(mean) ? sqrt(square / (splits * (splits - 1))) : INFINITY;
}

/* From snapshots, an error that scatters over the splits far more than others do is that of an unstable solution: as the best of all, by chance, it
 * would make every other as good within its own scatter. least: the smallest standard error. */
static bool stable(const work *w, size_t k, double least)
{
    return w->p->rate > 0 || score_error(w, k) <= most_scatter * least;
}

/* By how much k is worse than `best`, and the standard error of that. */
static double gap_of(const work *w, size_t k, size_t best, double *error)
{
    const double *a = w->score + k * MOST_SPLITS, *b = w->score + best * MOST_SPLITS;
    double gap = mean_score(w, k) - mean_score(w, best), square = 0, splits = (double)w->splits;
    for (size_t set = 0; set < w->splits; set++)
        square += (a[set] - b[set] - gap) * (a[set] - b[set] - gap);
    *error = sqrt(square / (splits * (splits - 1)));
    return gap;
}

/* Is k as good as the best, as far as the splits tell? A large deviation of one split is not enough. */
static bool equals(const work *w, size_t k, size_t best)
{
    const double *a = w->score + k * MOST_SPLITS, *b = w->score + best * MOST_SPLITS;
    double error, gap = gap_of(w, k, best, &error);
    size_t worse = 0;
    for (size_t set = 0; set < w->splits; set++)
        worse += a[set] > b[set];
    double fewer = (double)w->columns[best / RIDGES] - (double)w->columns[k / RIDGES];
    return gap <= per_function * fewer ||
           (gap <= tolerance[w->p->last] * error && (double)worse <= most_worse[w->p->last] * (double)w->splits);
}

/* The solution of a candidate and ridge k from all folds, its columns and number to the scratch of the first thread. */
static size_t solve_all(const work *w, size_t k, const size_t **index, const double **theta)
{
    const hl_candidate *c = &w->candidate[k / RIDGES];
    size_t wide = w->p->columns + 1;
    double *l = w->scratch, *scale = l + wide * wide, *to = scale + wide, *bounded = to + wide;
    size_t *columns = (size_t *)(bounded + wide), n = columns_of(w->p, c, columns);
    const double *normal = w->normal + ALL * wide * wide, *noise = w->noise + ALL * wide * wide;
    double share = noise_share(normal, noise, wide, n, columns, l, scale);
    solve_positive(w->p, c, normal, noise, wide, n, columns, share, ridges[k % RIDGES], l, scale, bounded, to);
    *index = columns;
    *theta = to;
    return n;
}

/* Sum of squares that the solution leaves of the conditions of all folds, which have unit variance. */
static double squares_left(const work *w, size_t k)
{
    size_t wide = w->p->columns + 1;
    const size_t *index;
    const double *theta, *normal = w->normal + ALL * wide * wide, *y = normal + (wide - 1) * wide;
    size_t n = solve_all(w, k, &index, &theta);
    double sum = y[wide - 1];
    for (size_t i = 0; i < n; i++) {
        const double *row = normal + index[i] * wide;
        sum -= 2 * theta[i] * y[index[i]];
        for (size_t j = 0; j < i; j++)
            sum += 2 * theta[i] * theta[j] * row[index[j]];
        sum += theta[i] * theta[i] * row[index[i]];
    }
    return sum;
}

/* Do the steps, whose regressors are exact, show that k needs a larger drift? left: what the best, of more functions, leaves. The squares that
 * functions without need explain have a chi-square distribution. Held-out errors alone see less of this: few data leave them much noise. */
static bool lacks(const work *w, size_t k, size_t best, double left)
{
    const hl_candidate *a = &w->candidate[k / RIDGES], *b = &w->candidate[best / RIDGES];
    double fewer = (double)w->columns[best / RIDGES] - (double)w->columns[k / RIDGES];
    bool same = a->degree[0] == b->degree[0] && a->own[0] == b->own[0] && a->first[0] == b->first[0] &&
                a->bumps[0] == b->bumps[0] && a->ridges == b->ridges;
    return !w->c->noisy && !same && fewer > 0 && squares_left(w, k) - left > fewer + needed * sqrt(2 * fewer);
}

/* Of the ridges of a candidate the smallest that is as good as the best. */
static size_t best_ridge(const work *w, size_t candidate)
{
    size_t best = candidate * RIDGES;
    for (size_t k = best; k < (candidate + 1) * RIDGES; k++)
        best = mean_score(w, k) < mean_score(w, best) ? k : best;
    for (size_t k = candidate * RIDGES; k < best; k++) {
        double error, gap = gap_of(w, k, best, &error);
        if (gap <= tolerance[w->p->last] * error)
            return k;
    }
    return best;
}

/* The one of the fewest functions among those that are as good as the best; of its ridges the best. */
static size_t best_of(const work *w)
{
    size_t best = SIZE_MAX, at;
    double least = INFINITY, left;
    for (size_t k = 0; k < w->candidates * RIDGES && w->p->rate == 0; k++)
        least = fmin(least, score_error(w, k));
    for (size_t k = 0; k < w->candidates * RIDGES; k++)
        if (stable(w, k, least) && (best == SIZE_MAX || mean_score(w, k) < mean_score(w, best)))
            best = k;
    at = best; /* that of the least standard error is stable */
    left = w->c->noisy ? 0 : squares_left(w, best);
    for (size_t k = 0; k < w->candidates * RIDGES; k++) {
        size_t few = w->columns[at / RIDGES], own = w->columns[k / RIDGES];
        if (stable(w, k, least) && equals(w, k, best) &&
            (own < few || (own == few && mean_score(w, k) < mean_score(w, at))) && !lacks(w, k, best, left))
            at = k;
    }
    return at;
}

/* Of each candidate with its best ridge: how much worse than the best of all it is, in standard errors of the first five splits. */
static void set_excess(const work *w, size_t best, hl_choice *to)
{
    const double *b = w->score + best * MOST_SPLITS;
    for (size_t c = 0; c < w->candidates; c++) {
        size_t own = best_ridge(w, c);
        double square = 0;
        const double *a = w->score + own * MOST_SPLITS;
        double gap = mean_score(w, own) - mean_score(w, best);
        for (size_t set = 0; set < HL_REGRESS_FOLDS; set++)
            square += (a[set] - b[set] - gap) * (a[set] - b[set] - gap);
        to->excess[c] = gap > 0 ? gap / sqrt(square / (HL_REGRESS_FOLDS * (HL_REGRESS_FOLDS - 1))) : 0;
    }
}

static void take_best(const work *w, hl_regress *p, size_t fixed, hl_choice *best)
{
    const size_t *index;
    const double *theta;
    size_t at = fixed < SIZE_MAX ? best_ridge(w, fixed) : best_of(w), n = solve_all(w, at, &index, &theta);
    *best = (hl_choice){
        .score = mean_score(w, at), .candidate = at / RIDGES, .ridge = ridges[at % RIDGES], .functions = n
    };
    set_excess(w, at, best);
    memset(p->theta, 0, p->columns * sizeof *p->theta);
    for (size_t k = 0; k < n; k++)
        p->theta[index[k]] = theta[k];
    p->started = true;
}

hl_status hl_regress_choose(hl_regress *p, const hl_conditions *c, size_t candidates, const hl_candidate *candidate,
                            size_t fixed, hl_choice *best)
{
    hl_context *ctx = p->ctx;
    size_t wide = p->columns + 1;
    work w = { .p = p, .c = c, .candidates = candidates, .candidate = candidate };
    atomic_init(&w.stopped, false);
    w.splits = candidates > FEW_CANDIDATES ? MOST_SPLITS : HL_REGRESS_FOLDS;
    w.team = ctx->team ? (size_t)hl_team_size(ctx->team) : 1;
    w.scratch_size = wide * wide + 4 * wide;
    w.mean = hl_calloc(ctx, hl_size_mul(w.team * c->count, wide), sizeof *w.mean);
    w.normal = hl_calloc(ctx, hl_size_mul(SETS * wide, wide), sizeof *w.normal);
    w.noise = hl_calloc(ctx, hl_size_mul(SETS * wide, wide), sizeof *w.noise);
    w.square = hl_calloc(ctx, hl_size_mul(HL_REGRESS_FOLDS * wide, wide), sizeof *w.square);
    w.scratch = hl_calloc(ctx, w.team * w.scratch_size, sizeof *w.scratch);
    w.score = hl_calloc(ctx, candidates * RIDGES * MOST_SPLITS, sizeof *w.score);
    w.columns = hl_calloc(ctx, candidates, sizeof *w.columns);
    hl_status status =
        w.mean && w.normal && w.noise && w.square && w.scratch && w.score && w.columns ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        run(&w, square_job);
        run(&w, normal_job);
        run(&w, candidate_job);
        if (atomic_load(&w.stopped))
            status = hl_fail(ctx, HL_STOPPED, "stopped on request");
    }
    if (status == HL_OK) {
        take_best(&w, p, fixed, best);
        if (!isfinite(best->score))
            status = hl_fail(ctx, HL_ERR_NO_SOLUTION, "hl_sde_regress: no candidate has a finite error");
    }
    hl_free(ctx, w.mean);
    hl_free(ctx, w.normal);
    hl_free(ctx, w.noise);
    hl_free(ctx, w.square);
    hl_free(ctx, w.scratch);
    hl_free(ctx, w.score);
    hl_free(ctx, w.columns);
    return status;
}
