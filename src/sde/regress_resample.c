/* regress_resample.c - regressions of resampled data (bootstrap), of which the bands of a regression are made.
 *
 * The data are cut into groups: trajectories, rows of snapshots, or blocks of time where trajectories are few. A replicate takes as
 * many groups of each fold as there are, with repetition, and finds its coefficients from their conditions as the estimate
 * did: choice of the ridge by held-out folds, noise of the regressors taken out. Conditions are sums over rows, so
 * each group's are made once. The weights of the conditions stay those of the estimate: they do not change it to first order.
 *
 * Half of a band is a quantile times the root of the mean square of replicate - estimate. K groups make a variance
 * that is too small by (K - 1) / K, so replicates are moved away from the estimate by the root of its inverse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde/ensemble.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { MOST_RIVALS = 6 };              /* beyond one column */
static const double open_excess = 2.5; /* standard errors */
static const double absurd = 10;       /* see drop_absurd() */
enum { STREAM_GROUP = 41, LEAST_GROUPS = 2 };

void hl_replicates_free(hl_context *ctx, hl_replicates *r)
{
    if (!r)
        return;
    for (size_t part = 0; part < 2; part++) {
        hl_basis_free(ctx, &r->basis[part]);
        hl_free(ctx, r->coefficient[part]);
    }
    hl_region_free(ctx, &r->region);
    hl_free(ctx, r);
}

hl_status hl_replicates_copy(hl_context *ctx, const hl_replicates *from, hl_replicates **to)
{
    hl_replicates *r = *to = hl_calloc(ctx, 1, sizeof *r);
    if (!r)
        return HL_ERR_NOMEM;
    *r = *from;
    r->region = (hl_region){ 0 };
    for (size_t part = 0; part < 2; part++) {
        r->basis[part] = (hl_basis){ 0 };
        r->coefficient[part] = NULL;
    }
    hl_status status = hl_region_copy(ctx, &from->region, &r->region);
    for (size_t part = 0; part < 2 && status == HL_OK; part++) {
        const hl_basis *b = &from->basis[part];
        size_t values = hl_size_mul(from->count * from->dim, hl_basis_size(b));
        status = hl_basis_copy(ctx, b, b->products, b->bumps, &r->basis[part]);
        r->coefficient[part] = hl_calloc(ctx, values, sizeof *r->coefficient[part]);
        if (!r->coefficient[part])
            status = HL_ERR_NOMEM;
        else
            memcpy(r->coefficient[part], from->coefficient[part], values * sizeof *r->coefficient[part]);
    }
    return status;
}

/* ---- candidates ---- */

typedef struct rivals {
    size_t count;
    hl_candidate candidate[HL_REGRESS_CANDIDATES];
} rivals;

/* The candidate chosen and others, the best first, that are no worse than the data leave open. */
static void find_rivals(size_t candidates, const hl_candidate *candidate, const hl_choice *choice, size_t most,
                        rivals *to)
{
    bool taken[HL_REGRESS_CANDIDATES] = { false };
    taken[choice->candidate] = true;
    to->candidate[0] = candidate[choice->candidate];
    for (to->count = 1; to->count < most && to->count < candidates; to->count++) {
        size_t best = candidates;
        for (size_t k = 0; k < candidates; k++)
            if (!taken[k] && choice->excess[k] <= open_excess &&
                (best == candidates || choice->excess[k] < choice->excess[best]))
                best = k;
        if (best == candidates)
            return;
        taken[best] = true;
        to->candidate[to->count] = candidate[best];
    }
}

/* Few Gaussians of a direction are an approximation that is chosen for its small variance. Replicates have all of them, so that their distance from the estimate
 * tells what it misses. */
static void widen_ridges(rivals *r)
{
    for (size_t k = 0; k < r->count; k++)
        r->candidate[k].ridges = r->candidate[k].ridges ? HL_RIDGE_DIRECTIONS * HL_RIDGE_EACH : 0;
}

/* Which has all of their functions. */
static hl_candidate union_of(const rivals *r)
{
    hl_candidate all = r->candidate[0];
    for (size_t k = 1; k < r->count; k++) {
        const hl_candidate *c = &r->candidate[k];
        all.crossed = all.crossed || c->crossed;
        all.ridges = c->ridges > all.ridges ? c->ridges : all.ridges;
        for (size_t part = 0; part < 2; part++) {
            all.degree[part] = c->degree[part] > all.degree[part] ? c->degree[part] : all.degree[part];
            all.bumps[part] = c->bumps[part] > all.bumps[part] ? c->bumps[part] : all.bumps[part];
            all.first[part] = c->first[part] < all.first[part] ? c->first[part] : all.first[part];
        }
    }
    return all;
}

/* ---- the problem with these candidates' functions alone ---- */

static hl_status narrow_basis(const hl_regress *p, const hl_candidate *c, size_t part, hl_basis *to)
{
    const hl_basis *b = &p->basis[part];
    size_t products = 0, bumps = c->bumps[part] < b->bumps ? c->bumps[part] : b->bumps;
    while (products < b->products && hl_basis_degree(b, products) <= c->degree[part]) /* degrees rise */
        products++;
    return hl_basis_copy(p->ctx, b, products, bumps, to);
}

/* Coefficients of one entry from the wide problem to the narrow one. */
static void narrow_entry(const hl_basis *b, const hl_basis *to, size_t size, const double *from, double *theta)
{
    for (size_t a = 0; a < size; a++)
        theta[a] = from[a < to->products ? a : b->products + a - to->products];
}

hl_status hl_regress_narrow(const hl_regress *p, const hl_candidate *c, hl_regress *to)
{
    *to = *p;
    to->theta = NULL;
    to->basis[0] = to->basis[1] = (hl_basis){ 0 };
    hl_status status = HL_OK;
    for (size_t part = 0; part < 2 && status == HL_OK; part++) {
        status = narrow_basis(p, c, part, &to->basis[part]);
        to->size[part] = hl_basis_size(&to->basis[part]);
    }
    if (status != HL_OK)
        return status;
    to->ridge_each = to->basis[0].bumps > p->ridge_first ? p->ridge_each : 0;
    to->entries = c->crossed ? p->entries : p->dim;
    to->cross_size = p->dim <= 2 ? to->basis[1].products : 1;
    to->columns = hl_regress_noise(to, to->entries);
    to->theta = hl_calloc(p->ctx, to->columns, sizeof *to->theta);
    if (!to->theta)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < p->dim; i++)
        narrow_entry(&p->basis[0], &to->basis[0], to->size[0], p->theta + hl_regress_drift(p, i),
                     to->theta + hl_regress_drift(to, i));
    for (size_t e = 0; e < to->entries; e++)
        narrow_entry(&p->basis[1], &to->basis[1], hl_regress_noise_size(to, e), p->theta + hl_regress_noise(p, e),
                     to->theta + hl_regress_noise(to, e));
    return HL_OK;
}

/* The same with the tangents of `ridges`: a replicate then has directions of its own, to first order. */
static hl_status narrowed(const hl_regress *p, const hl_candidate *c, size_t ridges, hl_regress *to)
{
    if (!ridges)
        return hl_regress_narrow(p, c, to);
    hl_regress narrow;
    hl_status status = hl_regress_narrow(p, c, &narrow);
    if (status == HL_OK)
        status = hl_regress_tangents(&narrow, ridges, to);
    hl_basis_free(p->ctx, &narrow.basis[0]);
    hl_basis_free(p->ctx, &narrow.basis[1]);
    hl_free(p->ctx, narrow.theta);
    return status;
}

/* ---- conditions ---- */

typedef struct work {
    hl_regress p; /* the narrow problem */
    hl_weak *weak;
    hl_steps *steps;
    hl_conditions all, group, drawn; /* of folds; of groups; of the folds of a replicate */
    hl_gaussian *gaussian;           /* NULL, or the estimate is by means and covariances */
    double *estimate;
    unsigned *copies; /* [folds x groups] */
} work;

static hl_status make_rows(work *w, hl_conditions *c, size_t parts)
{
    c->rows = hl_calloc(w->p.ctx, hl_size_mul(hl_size_mul(parts, c->count), w->p.columns + 1), sizeof *c->rows);
    return c->rows ? HL_OK : HL_ERR_NOMEM;
}

/* Conditions of the groups, and of the folds. */
static hl_status conditions(work *w, bool weak, bool steps)
{
    hl_regress *p = &w->p;
    size_t parts = HL_REGRESS_FOLDS * p->groups, wide = p->columns + 1;
    hl_status status = weak ? hl_weak_create(p, &w->weak) : HL_OK;
    if (status == HL_OK && steps)
        status = hl_steps_create(p, true, &w->steps);
    size_t first = hl_weak_count(w->weak), count = first + hl_steps_count(w->steps);
    w->all.count = w->group.count = w->drawn.count = count;
    w->drawn.noisy = first;
    if (status == HL_OK)
        status = make_rows(w, &w->all, HL_REGRESS_FOLDS);
    if (status == HL_OK)
        status = make_rows(w, &w->drawn, HL_REGRESS_FOLDS);
    if (status == HL_OK)
        status = make_rows(w, &w->group, parts);
    p->settled = true;
    if (status == HL_OK && w->weak)
        status = hl_weak_rows(w->weak, &w->all, 0);
    if (status == HL_OK && w->weak)
        status = hl_weak_groups(w->weak, &w->group, 0);
    if (status == HL_OK && w->steps)
        status = hl_steps_rows(w->steps, &w->group, first);
    for (size_t g = 0; g < parts && status == HL_OK && w->steps; g++)
        hl_axpy((count - first) * wide, 1, w->group.rows + (g * count + first) * wide,
                w->all.rows + (g % HL_REGRESS_FOLDS * count + first) * wide);
    return status;
}

/* The rows of replicate `number`. */
static void draw(work *w, size_t number)
{
    const hl_regress *p = &w->p;
    size_t size = w->all.count * (p->columns + 1), parts = HL_REGRESS_FOLDS * p->groups;
    memset(w->copies, 0, parts * sizeof *w->copies);
    for (size_t k = 0; k < parts; k++) {
        size_t chosen = hl_random_bits(p->options.seed, STREAM_GROUP, number * parts + k) % p->groups;
        w->copies[k % HL_REGRESS_FOLDS + HL_REGRESS_FOLDS * chosen]++;
    }
    memcpy(w->drawn.rows, w->all.rows, HL_REGRESS_FOLDS * size * sizeof *w->drawn.rows);
    for (size_t g = 0; g < parts; g++)
        if (w->copies[g] != 1)
            hl_axpy(size, (double)w->copies[g] - 1, w->group.rows + g * size,
                    w->drawn.rows + g % HL_REGRESS_FOLDS * size);
}

/* ---- results ---- */

/* The coefficients in p->theta as replicate `number`, farther from the estimate by `factor`; known parts from s. */
static void keep(const work *w, const hl_sde_simple *s, double factor, size_t number, hl_replicates *r)
{
    const hl_regress *p = &w->p;
    for (size_t part = 0; part < 2; part++)
        for (size_t i = 0; i < p->dim; i++) {
            size_t size = p->size[part], at = part ? hl_regress_noise(p, i) : hl_regress_drift(p, i);
            double *to = r->coefficient[part] + (number * p->dim + i) * size;
            const double *known = s->coefficient[part] + i * hl_basis_size(&s->basis[part]);
            for (size_t a = 0; a < size; a++)
                to[a] = w->estimate[at + a] + factor * (p->theta[at + a] - w->estimate[at + a]);
            for (size_t a = 0; a < size && a <= (part ? 0 : p->dim) && !p->open[part][i]; a++)
                to[a] = known[a];
        }
}

static hl_status make_replicates(const hl_regress *p, size_t count, hl_replicates **out)
{
    hl_context *ctx = p->ctx;
    hl_replicates *r = *out = hl_calloc(ctx, 1, sizeof *r);
    if (!r)
        return HL_ERR_NOMEM;
    *r = (hl_replicates){ .count = count,
                          .inputs = p->inputs,
                          .dim = p->dim,
                          .quantile = hl_band_quantile(HL_REGRESS_FOLDS * (p->groups - 1)) };
    for (size_t part = 0; part < 2; part++) {
        const hl_basis *b = &p->basis[part];
        hl_status status = hl_basis_copy(ctx, b, b->products, b->bumps, &r->basis[part]);
        r->coefficient[part] = hl_calloc(ctx, hl_size_mul(count, p->dim * p->size[part]), sizeof *r->coefficient[part]);
        if (status != HL_OK || !r->coefficient[part])
            return HL_ERR_NOMEM;
    }
    return hl_region_find(ctx, p->rows, p->inputs, p->z, p->options.seed, &r->region);
}

/* ---- absurd replicates ---- */

static int by_value(const void *a, const void *b)
{
    double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

/* Differences of the replicates' f or g of a column from the estimate, root mean squares over the points, to gap [count]; returns the size of
 * the estimate, or one standard unit if that is more. values: functions of both dictionaries. */
static double measure_gaps(const hl_sde_simple *s, size_t part, size_t i, double *values, double *gap)
{
    const hl_replicates *r = s->replicates;
    size_t own = hl_basis_size(&s->basis[part]), size = hl_basis_size(&r->basis[part]);
    double square = 0, unit = (s->t_last - s->t_first) / HL_SDE_SPAN;
    memset(gap, 0, r->count * sizeof *gap);
    for (size_t k = 0; k < r->region.points; k++) {
        hl_basis_eval(&s->basis[part], r->region.point + k * r->inputs, values);
        hl_basis_eval(&r->basis[part], r->region.point + k * r->inputs, values + own);
        double estimate = hl_sde_simple_value(s, part, i, hl_dot(own, s->coefficient[part] + i * own, values));
        square += estimate * estimate / (double)r->region.points;
        for (size_t b = 0; b < r->count; b++) {
            double y = hl_dot(size, r->coefficient[part] + (b * r->dim + i) * size, values + own);
            y = hl_sde_simple_value(s, part, i, y) - estimate;
            gap[b] += y * y / (double)r->region.points;
        }
    }
    for (size_t b = 0; b < r->count; b++)
        gap[b] = isfinite(gap[b]) ? sqrt(gap[b]) : INFINITY;
    return fmax(sqrt(square), s->deviation[i] / (part ? sqrt(unit) : unit));
}

/* Drops replicates of which f or g of a column differs from the estimate at the data by more than `absurd` times what the median replicate does,
 * and by more than `absurd` times the size of the estimate: singular equations of an unlucky draw, one of which would make every band
 * useless. */
static hl_status drop_absurd(hl_context *ctx, const hl_sde_simple *s)
{
    hl_replicates *r = s->replicates;
    size_t most = 0, kept = 0;
    for (size_t part = 0; part < 2; part++)
        most += hl_basis_size(&s->basis[part]) + hl_basis_size(&r->basis[part]);
    double *gap = hl_calloc(ctx, hl_size_add(3 * r->count, most), sizeof *gap);
    if (!gap)
        return HL_ERR_NOMEM;
    double *sorted = gap + r->count, *drop = sorted + r->count;
    for (size_t k = 0; k < 2 * r->dim; k++) {
        double size = measure_gaps(s, k % 2, k / 2, drop + r->count, gap);
        memcpy(sorted, gap, r->count * sizeof *gap);
        qsort(sorted, r->count, sizeof *sorted, by_value);
        double limit = absurd * fmax(sorted[r->count / 2], size);
        for (size_t b = 0; b < r->count; b++)
            drop[b] += gap[b] > limit;
    }
    for (size_t b = 0; b < r->count; b++) {
        for (size_t part = 0; part < 2 && drop[b] == 0; part++) {
            size_t size = r->dim * hl_basis_size(&r->basis[part]);
            memmove(r->coefficient[part] + kept * size, r->coefficient[part] + b * size,
                    size * sizeof *r->coefficient[part]);
        }
        kept += drop[b] == 0;
    }
    r->count = kept ? kept : r->count;
    hl_free(ctx, gap);
    return HL_OK;
}

/* Replicates of an estimate by means and covariances are by these as well. The estimate stays as it is. */
static hl_status set_gaussian(work *w, const hl_candidate *c)
{
    hl_regress *p = &w->p;
    hl_status status = hl_gaussian_create(p, w->weak, &w->gaussian);
    if (status == HL_OK && w->gaussian && !(hl_gaussian_estimate(w->gaussian, p, c->crossed) < INFINITY)) {
        hl_gaussian_free(w->gaussian);
        w->gaussian = NULL;
    }
    if (status == HL_OK)
        memcpy(p->theta, w->estimate, p->columns * sizeof *p->theta);
    return status;
}

static hl_status resample(work *w, const rivals *c, bool moments, size_t count, hl_sde_simple *s)
{
    hl_regress *p = &w->p;
    size_t groups = p->groups;
    double factor = sqrt((double)groups / (double)(groups - 1));
    w->estimate = hl_calloc(p->ctx, p->columns, sizeof *w->estimate);
    w->copies = hl_calloc(p->ctx, HL_REGRESS_FOLDS * groups, sizeof *w->copies);
    hl_status status = w->estimate && w->copies ? make_replicates(p, count, &s->replicates) : HL_ERR_NOMEM;
    if (status == HL_OK)
        memcpy(w->estimate, p->theta, p->columns * sizeof *p->theta);
    if (status == HL_OK && moments)
        status = set_gaussian(w, &c->candidate[0]);
    for (size_t b = 0; b < count && status == HL_OK; b++) {
        hl_choice choice;
        draw(w, b);
        status = hl_regress_choose(p, &w->drawn, c->count, c->candidate, SIZE_MAX, &choice);
        if (status == HL_OK)
            status = hl_check_stop(p->ctx);
        if (status == HL_OK && w->gaussian && choice.candidate == 0)
            hl_gaussian_replicate(w->gaussian, p, w->copies);
        if (status == HL_OK)
            keep(w, s, factor, b, s->replicates);
    }
    return status == HL_OK ? drop_absurd(p->ctx, s) : status;
}

hl_status hl_regress_resample(const hl_regress *p, size_t candidates, const hl_candidate *candidate,
                              const hl_choice *choice, bool weak, bool steps, size_t count, hl_sde_simple *s)
{
    if (p->groups < LEAST_GROUPS)
        return HL_OK;
    hl_context *ctx = p->ctx;
    work *w = hl_calloc(ctx, 1, sizeof *w);
    if (!w)
        return HL_ERR_NOMEM;
    rivals *r = hl_calloc(ctx, 1, sizeof *r);
    hl_status status = r ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        find_rivals(candidates, candidate, choice, p->dim == 1 ? HL_REGRESS_CANDIDATES : MOST_RIVALS, r);
        widen_ridges(r);
        hl_candidate all = union_of(r);
        status = narrowed(p, &all, candidate[choice->candidate].ridges, &w->p);
    }
    if (status == HL_OK)
        status = conditions(w, weak, steps);
    if (status == HL_OK)
        status = resample(w, r, choice->moments, count, s);
    hl_gaussian_free(w->gaussian);
    hl_weak_free(w->weak);
    hl_steps_free(w->steps);
    hl_basis_free(ctx, &w->p.basis[0]);
    hl_basis_free(ctx, &w->p.basis[1]);
    void *const blocks[] = { w->all.rows, w->drawn.rows, w->group.rows, w->estimate, w->copies, w->p.theta, w, r };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(ctx, blocks[i]);
    return status;
}
