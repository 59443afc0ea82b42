/* regress_contest.c - the first estimate from snapshots: a contest of dictionaries, each with weights of its own.
 *
 * The weights of the conditions follow from an estimate. An estimate with functions that it does not need may be wrong and yet agree with the weights that follow
 * from it, so that rounds from there stay there: two columns with strongly correlated noise ended at a drift 45 % wrong. So every part of the list of
 * candidates is solved with weights of its own, and what each leaves of the conditions,
 *
 *   J = r' S^-1 r,   r: the mean residual of each condition, S: its covariance under this very estimate,
 *
 * tells them apart: for the right functions J is about the number of conditions less that of functions, and a function without need lowers it by about one.
 * The least J + price x functions wins. Where even the largest dictionary leaves more than the noise explains, such as errors of the quadrature between
 * few times, the price rises by that factor.
 *
 * In one column each candidate is a part of its own. In several, parts are the drifts of one kind with constant diffusions, independent or correlated, and with
 * linear or larger ones; held-out folds choose within a part. */
#include <math.h>
#include <string.h>

#include "sde/regress.h"

enum { FIRST_ROUNDS = 3, FURTHER_ROUNDS = 2, LAST_ROUNDS = 2, SOME_ROWS = 500 };
static const double most_below = 0.2; /* share of the rows, see impossible() */
/* Found on 66 data sets of 600 rows at ten times (bench sde --observed scarce, eleven equations in one column, seeds 3001 to 3006): 4 to 6 are equal within noise, 2 and 8 worse. */
static const double price = 6;
/* Rows of different times are of the same trajectories only if that leaves no more than so many times what independent rows leave: .5 to 1.4 where it is true
 * (corr, toggle, fhn, lv), 1.8 to 3 where it is not. */
static const double most_excess = 1.8;
static const double most_left = 2; /* and of the number of conditions */
/* Parts that lost by more are no rivals of the winner in resampled data either. In units of the price. */
static const double clear = 4;

typedef struct finalist {
    size_t candidate, functions;
    /* If rows are independent; if they are of the same trajectories: */
    bool impossible[2]; /* a diffusion is below zero at many rows, or the data are more likely under other moments */
    double left[2], scatter[2];
    double *theta[2];
    bool moments;    /* theta[0] is that of means and covariances */
    double unlikely; /* with moments: -2 log of the probability of the data */
} finalist;

typedef struct contest {
    hl_regress *p;
    hl_sources *s;
    hl_sources all; /* the whole list of candidates */
    bool done[HL_REGRESS_CANDIDATES];
    size_t part[HL_REGRESS_CANDIDATES];   /* the finalist of a candidate's part, if it has one */
    size_t number[HL_REGRESS_CANDIDATES]; /* of the candidates of the present part in the whole list */
    size_t count;
    finalist finalist[HL_REGRESS_CANDIDATES];
    hl_gaussian *gaussian; /* NULL: none */
    double *first; /* estimate of the last part that began without one: the same kind of drift, constant diffusions */
} contest;

/* Are the drifts of one kind? */
static bool alike(const hl_regress *p, const hl_candidate *a, const hl_candidate *b)
{
    if (p->dim == 1)
        return a->degree[0] == b->degree[0] && a->bumps[0] == b->bumps[0];
    bool lines[] = { a->first[0] < p->lines, b->first[0] < p->lines };
    return !a->bumps[0] == !b->bumps[0] &&
           (a->bumps[0] ? lines[0] == lines[1] : (a->degree[0] > 1) == (b->degree[0] > 1));
}

static bool same_part(const hl_regress *p, const hl_candidate *a, const hl_candidate *b)
{
    const size_t large = p->dim == 1 ? SIZE_MAX : 3;
    size_t noise[] = { hl_candidate_noise(a), hl_candidate_noise(b) };
    bool same = noise[0] == noise[1] && (noise[0] || a->crossed == b->crossed);
    return alike(p, a, b) && (same || (noise[0] >= large && noise[1] >= large));
}

/* The part that candidate `at` belongs to becomes the list of s. */
static void take_part(contest *c, size_t at)
{
    c->s->candidates = 0;
    for (size_t k = at; k < c->all.candidates; k++)
        if (!c->done[k] && same_part(c->p, &c->all.candidate[at], &c->all.candidate[k])) {
            c->done[k] = true;
            c->part[k] = c->count;
            c->number[c->s->candidates] = k;
            c->s->candidate[c->s->candidates++] = c->all.candidate[k];
        }
}

/* It has no finalist. */
static void forget_part(contest *c)
{
    for (size_t k = 0; k < c->s->candidates; k++)
        c->part[c->number[k]] = SIZE_MAX;
}

static hl_status run_rounds(contest *c, size_t count)
{
    hl_status status = HL_OK;
    c->p->last = true;
    c->p->settled = false;
    for (size_t k = 0; k < count && status == HL_OK; k++)
        status = hl_regress_round(c->p, c->s, true, false);
    return status;
}

/* Is a diffusion of the estimate below zero at many rows? No equation has that. */
static bool impossible(const hl_regress *p, double *scratch)
{
    size_t stride = p->rows / SOME_ROWS + 1, rows = 0;
    double *f = scratch + p->size[0] + p->size[1], *a = f + p->dim, *below = a + p->entries;
    memset(below, 0, p->dim * sizeof *below);
    for (size_t r = 0; r < p->rows; r += stride, rows++) {
        hl_regress_values(p, r, scratch, f, a);
        for (size_t i = 0; i < p->dim; i++)
            below[i] += a[i] < 0;
    }
    for (size_t i = 0; i < p->dim; i++)
        if (below[i] > most_below * (double)rows)
            return true;
    return false;
}

/* Two deviations of a J. */
static double chance(const contest *c)
{
    return 2 * sqrt(2 * (double)c->s->rows.count);
}

/* In several columns, where parts cost seconds: has one been found that leaves no more than noise, and would a win of the part that s lists take a J below that by
 * more than chance? */
static bool hopeless(const contest *c)
{
    const hl_regress *p = c->p;
    double conditions = (double)c->s->rows.count, far = chance(c), least = INFINITY;
    for (size_t k = 0; k < c->s->candidates; k++)
        least = fmin(least, (double)hl_candidate_functions(p, &c->s->candidate[k]));
    for (size_t k = 0; k < c->count && p->dim > 1; k++) {
        const finalist *f = &c->finalist[k];
        int same = f->scatter[1] < f->scatter[0];
        double own = (double)f->functions, left = f->left[same];
        if (!f->impossible[same] && left <= conditions + far && price * (least - own) > far)
            return true;
    }
    return false;
}

/* Of estimates by moments, independent and correlated noise, one stays. What they leave of the conditions does not tell them apart: neither minimises it. */
static void reject_unlikely(contest *c)
{
    double least = INFINITY;
    for (size_t k = 0; k < c->count; k++)
        if (c->finalist[k].moments)
            least = fmin(least, c->finalist[k].unlikely);
    for (size_t k = 0; k < c->count; k++)
        c->finalist[k].impossible[0] =
            c->finalist[k].impossible[0] || (c->finalist[k].moments && c->finalist[k].unlikely > least);
}

/* For rows that are independent the estimate of means and covariances takes the place of that of the conditions, if there is one that leaves no more of these than
 * chance explains. Its paths are known between the times, so the conditions have no error of the quadrature. Both are estimates of one equation: it counts what the better one leaves. */
static hl_status enter_moments(contest *c, finalist *f, bool crossed)
{
    hl_regress *p = c->p;
    double left[2], scatter[2], *expected, unlikely = hl_gaussian_estimate(c->gaussian, p, crossed);
    const double *at;
    const size_t *start, *index, times = hl_weak_times(c->s->weak, &at, &start, &index);
    if (!(unlikely < INFINITY))
        return HL_OK;
    expected = hl_calloc(p->ctx, times * hl_weak_test_count(c->s->weak), 2 * sizeof *expected);
    hl_status status = expected ? hl_gaussian_expect(c->gaussian, c->s->weak, expected) : HL_ERR_NOMEM;
    if (status == HL_OK)
        hl_weak_misfit(c->s->weak, &c->s->rows, expected, left, scatter);
    hl_free(p->ctx, expected);
    if (status != HL_OK || !(left[0] < f->left[0] + chance(c)))
        return status;
    f->moments = true;
    f->unlikely = unlikely;
    f->left[0] = fmin(f->left[0], left[0]);
    f->scatter[0] = scatter[0];
    f->impossible[0] = false;
    memcpy(f->theta[0], p->theta, p->columns * sizeof *p->theta);
    reject_unlikely(c);
    return HL_OK;
}

/* The estimate of a part joins the finalists. */
static hl_status enter(contest *c)
{
    hl_regress *p = c->p;
    const hl_candidate *own = &c->s->candidate[c->s->choice.candidate];
    finalist *f = &c->finalist[c->count];
    f->theta[0] = hl_calloc(p->ctx, 2 * p->columns, sizeof *f->theta[0]);
    double *scratch = hl_calloc(p->ctx, p->size[0] + p->size[1] + 2 * p->dim + p->entries, sizeof *scratch);
    c->count++;
    if (!f->theta[0] || !scratch) {
        hl_free(p->ctx, scratch);
        return HL_ERR_NOMEM;
    }
    f->theta[1] = f->theta[0] + p->columns;
    f->candidate = c->number[c->s->choice.candidate];
    f->functions = c->s->choice.functions;
    hl_weak_misfit(c->s->weak, &c->s->rows, NULL, f->left, f->scatter);
    f->impossible[0] = f->impossible[1] = impossible(p, scratch);
    memcpy(f->theta[0], p->theta, p->columns * sizeof *p->theta);
    memcpy(f->theta[1], p->theta, p->columns * sizeof *p->theta);
    hl_free(p->ctx, scratch);
    return c->gaussian && hl_gaussian_fits(p, own) ? enter_moments(c, f, own->crossed) : HL_OK;
}

/* Solves a part. `begins`: it has no estimate to start from; its own is that of the parts that follow. */
static hl_status run_part(contest *c, size_t at, bool begins)
{
    hl_regress *p = c->p;
    take_part(c, at);
    if (hopeless(c)) {
        forget_part(c);
        return HL_OK;
    }
    p->started = !begins;
    p->apart = false;
    memcpy(p->theta, c->first, p->columns * sizeof *p->theta);
    hl_status status = run_rounds(c, begins ? FIRST_ROUNDS : FURTHER_ROUNDS);
    if (status == HL_ERR_NO_SOLUTION)
        forget_part(c);
    if (status != HL_OK)
        return status == HL_ERR_NO_SOLUTION ? HL_OK : status;
    if (begins)
        memcpy(c->first, p->theta, p->columns * sizeof *p->theta);
    return enter(c);
}

/* The price of a function, if rows are independent (0) or of the same trajectories (1). */
static double price_of(const contest *c, int same)
{
    double conditions = (double)c->s->rows.count, excess = INFINITY;
    for (size_t k = 0; k < c->count; k++) {
        const finalist *f = &c->finalist[k];
        excess = fmin(excess, f->left[same] / fmax(conditions - (double)f->functions, 1));
    }
    return price * fmax(excess, 1);
}

/* By how much a is behind b. */
static double behind(const contest *c, int same, const finalist *a, const finalist *b)
{
    if (a->impossible[same] != b->impossible[same])
        return a->impossible[same] ? INFINITY : -INFINITY;
    return a->left[same] - b->left[same] + price_of(c, same) * ((double)a->functions - (double)b->functions);
}

static const finalist *winner_of(const contest *c, int same)
{
    const finalist *best = &c->finalist[0];
    for (size_t k = 1; k < c->count; k++)
        if (behind(c, same, &c->finalist[k], best) < 0)
            best = &c->finalist[k];
    return best;
}

/* Candidates of parts that lost clearly, or were not tried, are told to be out of the question. */
static void exclude(contest *c, int same, const finalist *winner)
{
    for (size_t k = 0; k < c->all.candidates; k++) {
        const finalist *f = c->part[k] < c->count ? &c->finalist[c->part[k]] : NULL;
        if (!f || behind(c, same, f, winner) > clear * price_of(c, same))
            c->s->choice.excess[k] = INFINITY;
    }
}

static hl_status finish(contest *c)
{
    hl_regress *p = c->p;
    const finalist *f = winner_of(c, 1);
    bool same = f->scatter[1] < f->scatter[0] && f->left[1] < most_left * (double)c->s->rows.count &&
                f->left[1] < most_excess * f->left[0];
    if (!same)
        f = winner_of(c, 0);
    memcpy(p->theta, f->theta[same], p->columns * sizeof *p->theta);
    p->started = true;
    p->apart = !same;
    c->s->candidates = c->all.candidates;
    memcpy(c->s->candidate, c->all.candidate, sizeof c->s->candidate);
    c->s->fixed = f->candidate;
    hl_status status = run_rounds(c, LAST_ROUNDS);
    c->s->fixed = SIZE_MAX;
    exclude(c, same, f);
    if (!same && f->moments) {
        memcpy(p->theta, f->theta[0], p->columns * sizeof *p->theta);
        c->s->choice.moments = true;
    }
    return status;
}

hl_status hl_regress_contest(hl_regress *p, hl_sources *s)
{
    contest *c = hl_calloc(p->ctx, 1, sizeof *c);
    if (!c)
        return HL_ERR_NOMEM;
    *c = (contest){ .p = p, .s = s, .all = *s, .first = hl_calloc(p->ctx, p->columns, sizeof *c->first) };
    hl_status status = c->first ? hl_gaussian_create(p, s->weak, &c->gaussian) : HL_ERR_NOMEM;
    const hl_candidate *kind = NULL;
    for (size_t at = 0; at < c->all.candidates && status == HL_OK; at++) {
        const hl_candidate *own = &c->all.candidate[at];
        if (c->done[at])
            continue;
        bool begins = !kind || !alike(p, kind, own) || hl_candidate_noise(own) == 0;
        if (begins)
            memset(c->first, 0, p->columns * sizeof *c->first);
        status = run_part(c, at, begins);
        kind = own;
    }
    if (status == HL_OK && !c->count)
        status = hl_fail(p->ctx, HL_ERR_NO_SOLUTION, "hl_sde_regress: no candidate has a finite error");
    if (status == HL_OK)
        status = finish(c);
    for (size_t k = 0; k < HL_REGRESS_CANDIDATES; k++)
        hl_free(p->ctx, c->finalist[k].theta[0]);
    hl_gaussian_free(c->gaussian);
    hl_free(p->ctx, c->first);
    hl_free(p->ctx, c);
    return status;
}
