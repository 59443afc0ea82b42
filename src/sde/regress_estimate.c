/* regress_estimate.c - from conditions to an estimate.
 *
 * The weights of the conditions, and the residuals of steps of which the diffusion is learnt, depend on the coefficients. So the conditions are made a
 * few times, each time with the estimate before. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sde/regress.h"

enum {
    ROUNDS = 4,
    FURTHER_ROUNDS = 2 /* with an estimate to start with */,
    RATE_ROWS = 400,
    LEAST_PAIRS = 30,
    MANY_PAIRS = 20000
};
static const double longest_step = 0.5, close_step = 0.25, longest_transition = 0.5;
static const double much_less = 0.7; /* see enrich() */

/* Root mean square of the derivatives of f: how fast things change. */
static double rate(const hl_regress *p, double *scratch)
{
    size_t d = p->dim, stride = p->rows / RATE_ROWS + 1, count = 0;
    double *z = scratch, *f = z + p->inputs, *f1 = f + d, *a = f1 + d, *value = a + p->entries, sum = 0;
    const double gap = 0.05;
    for (size_t r = 0; r < p->rows; r += stride, count++)
        for (size_t i = 0; i < d; i++) {
            memcpy(z, p->z + r * p->inputs, p->inputs * sizeof *z);
            z[i] += gap;
            hl_regress_values_at(p, z, value, f1, a);
            z[i] -= 2 * gap;
            hl_regress_values_at(p, z, value, f, a);
            for (size_t j = 0; j < d; j++)
                sum += (f1[j] - f[j]) * (f1[j] - f[j]) / (4 * gap * gap);
        }
    return sqrt(sum / (double)(count * d));
}

static size_t short_pairs(const hl_regress *p)
{
    size_t count = 0;
    for (size_t k = 0; k < p->pairs; k++)
        count += p->pair[k].step <= p->longest;
    return count;
}

hl_status hl_regress_round(hl_regress *p, hl_sources *s, bool weak, bool steps)
{
    hl_status status = HL_OK;
    size_t first = weak ? hl_weak_count(s->weak) : 0;
    s->rows.noisy = first;
    s->rows.count = first + (steps ? hl_steps_count(s->steps) : 0);
    if (weak)
        status = hl_weak_rows(s->weak, &s->rows, 0);
    if (status == HL_OK && steps)
        status = hl_steps_rows(s->steps, &s->rows, first);
    if (status == HL_OK)
        status = hl_check_stop(p->ctx);
    return status == HL_OK ? hl_regress_choose(p, &s->rows, s->candidates, s->candidate, s->fixed, &s->choice) : status;
}

/* Rounds that prepare another need not be as exact as the last one: of many pairs they use some. */
static hl_status rounds(hl_regress *p, hl_sources *s, bool weak, bool steps, bool prepare)
{
    const size_t every = steps && !weak ? (p->pairs + MANY_PAIRS - 1) / MANY_PAIRS : 1;
    hl_status status = HL_OK;
    bool started = p->started, apart = p->apart;
    const size_t count = started && steps && (p->ridge_each || weak) ? FURTHER_ROUNDS : ROUNDS;
    for (size_t k = 0; k < count && status == HL_OK; k++) {
        p->last = weak || k + 1 == count;
        p->settled = k + 1 == count;
        p->every = prepare || !p->settled ? every : 1;
        status = hl_regress_round(p, s, weak, steps);
        if (p->apart && !apart) { /* again, with weights that owe nothing to this estimate */
            apart = true;
            p->started = started;
            k = (size_t)-1;
        }
    }
    p->every = 1;
    return status;
}

/* Sets p->longest by the estimate, but so that a tenth of the pairs is used. Are most of them close? */
static hl_status set_longest(hl_regress *p, bool *most)
{
    size_t size = p->inputs + 2 * p->dim + p->entries + p->size[0] + p->size[1];
    double *scratch = hl_calloc(p->ctx, size + p->pairs, sizeof *scratch), *step = scratch + size;
    if (!scratch)
        return HL_ERR_NOMEM;
    double r = rate(p, scratch);
    p->rate = p->plain ? 0 : r;
    for (size_t k = 0; k < p->pairs; k++)
        step[k] = p->pair[k].step;
    hl_sort(step, p->pairs);
    *most = step[p->pairs / 2] * r <= close_step;
    p->longest = fmax((p->rate > 0 ? longest_transition : longest_step) / r, step[p->pairs / 10]);
    hl_free(p->ctx, scratch);
    return HL_OK;
}

/* Again without pairs that are long against the time in which f changes, such as gaps in records, if there are some and enough others: over
 * a long step the drift looks smaller than it is. Without long pairs the estimate stays as it is. */
static hl_status without_long_pairs(hl_regress *p, hl_sources *s)
{
    bool most;
    double rate_before = p->rate, longest_before = p->longest;
    hl_status status = set_longest(p, &most);
    if (status != HL_OK)
        return status;
    size_t kept = short_pairs(p);
    if (kept < p->pairs && kept >= LEAST_PAIRS)
        return rounds(p, s, false, true, false);
    p->rate = rate_before;
    p->longest = longest_before;
    return HL_OK;
}

/* While the steps contradict the diffusion: again with larger dictionaries for it alone, if these leave much less. Held-out errors of e^2, in which
 * few large residuals count most, may take a constant diffusion for as good. */
static hl_status enrich(hl_regress *p, hl_sources *s)
{
    double before, after, *theta = hl_calloc(p->ctx, p->columns, sizeof *theta);
    hl_sources *kept = hl_calloc(p->ctx, 1, sizeof *kept);
    hl_status status = theta && kept ? hl_regress_noise_missed(p, &before) : HL_ERR_NOMEM;
    bool more = status == HL_OK && before > 0;
    while (more && status == HL_OK) {
        size_t few = hl_candidate_noise(&s->candidate[s->choice.candidate]);
        *kept = *s;
        memcpy(theta, p->theta, p->columns * sizeof *theta);
        s->candidates = 0;
        for (size_t k = 0; k < kept->candidates; k++)
            if (hl_candidate_noise(&kept->candidate[k]) > few)
                s->candidate[s->candidates++] = kept->candidate[k];
        after = before;
        if (s->candidates)
            status = rounds(p, s, false, true, false);
        if (status == HL_OK && s->candidates)
            status = hl_regress_noise_missed(p, &after);
        more = after > 0 && after < much_less * before;
        if (after >= much_less * before) {
            *s = *kept;
            memcpy(p->theta, theta, p->columns * sizeof *theta);
        }
        before = after;
    }
    hl_free(p->ctx, theta);
    hl_free(p->ctx, kept);
    return status;
}

/* Steps alone, if nearly all rows have a neighbour and their steps are short; otherwise snapshots first, and then with them
 * the steps that are short against what they show. */
static hl_status iterate(hl_regress *p, hl_sources *s, hl_sde_regress_report *report)
{
    hl_status status = HL_OK;
    bool weak = s->weak != NULL, steps = s->steps != NULL, linked = steps && 5 * p->pairs >= 4 * p->rows, done = false;
    p->longest = INFINITY;
    if (steps && (!weak || linked)) {
        status = rounds(p, s, false, true, weak);
        if (status == HL_OK && weak)
            status = set_longest(p, &done);
        if (status == HL_OK && done)
            status = rounds(p, s, false, true, false);
        for (size_t k = 0; k < 2 && status == HL_OK && !weak; k++)
            status = without_long_pairs(p, s);
        if (!weak || done)
            weak = false, done = true;
        if (status == HL_OK && done)
            status = enrich(p, s);
    }
    if (status == HL_OK && !done) {
        if (!linked)
            status = hl_regress_contest(p, s);
        if (status == HL_OK && steps)
            status = set_longest(p, &done);
        steps = steps && short_pairs(p) >= LEAST_PAIRS;
        for (size_t k = 0; k < 2 && status == HL_OK && steps; k++) {
            status = rounds(p, s, true, true, false);
            if (status == HL_OK)
                status = set_longest(p, &done);
        }
    }
    report->snapshots = weak;
    report->steps = steps;
    return status;
}

/* Conditions, and room for their rows. */
static hl_status make_sources(hl_regress *p, bool weak, bool steps, hl_sources *s)
{
    hl_status status = HL_OK;
    s->fixed = SIZE_MAX;
    if (weak)
        status = hl_weak_create(p, &s->weak);
    if (status == HL_OK && steps && p->pairs >= LEAST_PAIRS)
        status = hl_steps_create(p, false, &s->steps);
    if (status == HL_OK && !s->weak && !s->steps)
        return hl_fail(p->ctx, HL_ERR_NO_SOLUTION,
                       "hl_sde_regress: too few times with enough rows, and too few steps, for a regression");
    size_t most = hl_weak_count(s->weak) + hl_steps_count(s->steps);
    if (status == HL_OK)
        s->rows.rows = hl_calloc(p->ctx, hl_size_mul(HL_REGRESS_FOLDS * most, p->columns + 1), sizeof *s->rows.rows);
    if (status == HL_OK && !s->rows.rows)
        status = HL_ERR_NOMEM;
    return status;
}

void hl_sources_free(hl_regress *p, hl_sources *s)
{
    hl_weak_free(s->weak);
    hl_steps_free(s->steps);
    hl_free(p->ctx, s->rows.rows);
    s->weak = NULL;
    s->steps = NULL;
    s->rows.rows = NULL;
}

/* An estimate that may bend in every direction, to theta: the present one, or that of the best candidates of a drift that mixes columns. */
static hl_status bent_estimate(hl_regress *p, const hl_sources *s, hl_sources *other, double *theta)
{
    const hl_candidate *c = &s->candidate[s->choice.candidate];
    hl_status status = HL_OK;
    memcpy(theta, p->theta, p->columns * sizeof *theta);
    if (!c->own[0])
        return HL_OK;
    for (size_t k = 0; k < s->candidates; k++)
        if (!s->candidate[k].own[0] && (s->candidate[k].degree[0] > 1 || s->candidate[k].bumps[0]))
            other->candidate[other->candidates++] = s->candidate[k];
    if (other->candidates)
        status = hl_regress_choose(p, &s->rows, other->candidates, other->candidate, SIZE_MAX, &other->choice);
    for (size_t k = 0; k < p->columns; k++) {
        double bent = p->theta[k];
        p->theta[k] = theta[k];
        theta[k] = bent;
    }
    return status;
}

/* Turns the directions that were chosen and chooses again; the result is kept if its held-out error is smaller. */
static hl_status turn_ridges(hl_regress *p, hl_sources *s, const hl_sde_regress_report *report)
{
    hl_context *ctx = p->ctx;
    const hl_candidate c = s->candidate[s->choice.candidate];
    hl_basis before = { 0 };
    size_t count = s->rows.count;
    hl_choice *choice = hl_calloc(ctx, 1, sizeof *choice);
    double *theta = hl_calloc(ctx, p->columns, sizeof *theta);
    hl_status status = choice && theta
                           ? hl_basis_copy(ctx, &p->basis[0], p->basis[0].products, p->basis[0].bumps, &before)
                           : HL_ERR_NOMEM;
    if (status == HL_OK) {
        *choice = s->choice;
        memcpy(theta, p->theta, p->columns * sizeof *theta);
        hl_sources_free(p, s);
        status = hl_regress_turn(p, &c, report->snapshots, report->steps);
    }
    if (status == HL_OK)
        status = make_sources(p, report->snapshots, report->steps, s);
    if (status == HL_OK)
        status = rounds(p, s, report->snapshots, report->steps, false);
    bool better = status == HL_OK && s->choice.score < choice->score && s->candidate[s->choice.candidate].ridges;
    if (status == HL_ERR_NO_SOLUTION)
        status = HL_OK;
    if (!better && status == HL_OK) {
        hl_basis turned = p->basis[0];
        p->basis[0] = before;
        before = turned;
        s->choice = *choice;
        s->rows.count = count;
        memcpy(p->theta, theta, p->columns * sizeof *theta);
    }
    hl_basis_free(ctx, &before);
    hl_free(ctx, choice);
    hl_free(ctx, theta);
    return status;
}

/* Again with functions of the directions in which the estimate bends; kept if a candidate that has them is chosen. */
static hl_status add_ridges(hl_regress *p, hl_sources *s, const hl_sde_regress_report *report)
{
    const hl_candidate *c = &s->candidate[s->choice.candidate];
    if (!hl_regress_bends(p, c))
        return HL_OK;
    hl_context *ctx = p->ctx;
    hl_regress more = *p;
    more.theta = NULL;
    more.basis[0] = more.basis[1] = (hl_basis){ 0 };
    hl_sources *other = hl_calloc(ctx, 1, sizeof *other);
    double *bent = hl_calloc(ctx, p->columns, sizeof *bent);
    hl_status status = other && bent ? bent_estimate(p, s, other, bent) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_regress_ridges(p, c, bent, &more);
    hl_free(ctx, bent);
    if (!other)
        return status;
    hl_sources_free(p, s); /* they are not needed any more, and may be large */
    if (status == HL_OK)
        status = make_sources(&more, report->snapshots, report->steps, other);
    if (status == HL_OK) {
        other->candidates = hl_regress_ridge_candidates(&more, s->candidates, s->candidate, c, other->candidate);
        status = rounds(&more, other, report->snapshots, report->steps, false);
    }
    bool kept = status == HL_OK && other->candidate[other->choice.candidate].ridges;
    if (status == HL_ERR_NO_SOLUTION) /* the estimate stays */
        status = HL_OK;
    if (kept)
        status = turn_ridges(&more, other, report);
    hl_regress rest = kept ? *p : more;
    if (kept) {
        *p = more;
        s->candidates = other->candidates;
        memcpy(s->candidate, other->candidate, sizeof s->candidate);
        s->choice = other->choice;
        s->rows.count = other->rows.count;
    }
    hl_sources_free(&rest, other);
    hl_basis_free(ctx, &rest.basis[0]);
    hl_basis_free(ctx, &rest.basis[1]);
    hl_free(ctx, rest.theta);
    hl_free(ctx, other);
    return status;
}

hl_status hl_regress_estimate(hl_regress *p, hl_sources *s, bool ridges, hl_sde_regress_report *report)
{
    bool weak = strcmp(p->options.use, "steps") != 0, steps = strcmp(p->options.use, "snapshots") != 0;
    hl_status status = make_sources(p, weak, steps, s);
    s->candidates = hl_regress_candidates(p, s->candidate);
    if (status == HL_OK)
        status = iterate(p, s, report);
    if (status == HL_OK && ridges)
        status = add_ridges(p, s, report);
    const hl_candidate *c = &s->candidate[s->choice.candidate];
    report->conditions = s->rows.count;
    report->ridge = s->choice.ridge;
    report->misfit = s->choice.score;
    report->correlated = c->crossed;
    if (status == HL_OK)
        snprintf(report->form, sizeof report->form, "%s, %s", c->name[0], c->name[1]);
    return status;
}
