/* density_rows.c - rows of a density model: units, log-densities and samples.
 *
 * log p is the log of the weighted sum of the members' densities, samples choose their member by a counter. A model of a flow alone, with
 * weight 1, is what it was before there were other members, to the bit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/linear.h"
#include "learn/density_atoms.h"

enum { CHUNK = HL_DENSITY_CHUNK, STREAM_BASE = 11, STREAM_MEMBER = 12 };
static const double LOG_2PI = 1.83787706640934548356;

/* ---- rows ---- */

/* Columns `first` .. of rows that have `count` of them, as members see them, in place. */
static void see_columns(const hl_density *m, bool mapped, size_t first, size_t count, size_t rows, double *x)
{
    for (size_t i = 0; i < rows * count; i++) {
        size_t column = first + i % count;
        x[i] = mapped ? hl_column_map_forward(m->map[column], x[i], NULL)
                      : (x[i] - m->column[column].mean) / m->column[column].deviation;
    }
}

void hl_density_see(const hl_density *m, size_t rows, double *x, double *context)
{
    if (x)
        see_columns(m, m->flow_mapped, 0, m->dim, rows, x);
    for (size_t r = 0; m->factor && x && r < rows; r++)
        hl_solve_lower(m->dim, m->factor, m->dim, x + r * m->dim);
    if (context && m->context)
        see_columns(m, m->flow_mapped, m->dim, m->context, rows, context);
}

void hl_density_standardise(const hl_density *m, size_t rows, double *x, double *context)
{
    for (size_t i = 0; m && m->form && x && i < rows * m->dim; i++)
        x[i] = hl_column_form_forward(&m->form[i % m->dim], x[i], NULL, NULL);
    for (size_t i = 0; m && m->form && context && i < rows * m->context; i++)
        context[i] = hl_column_form_forward(&m->form[m->dim + i % m->context], context[i], NULL, NULL);
    if (m)
        hl_density_see(m, rows, x, context);
}

hl_density_formed hl_density_form_rows(hl_density *m, size_t rows, const double *x, const double *context)
{
    if (!m->form)
        return (hl_density_formed){ x, context, NULL };
    double *to = m->formed, *given = to + HL_DENSITY_CHUNK * m->dim, *slopes = given + HL_DENSITY_CHUNK * m->context;
    for (size_t i = 0; x && i < rows * m->dim; i++) {
        double slope;
        size_t column = i % m->dim;
        to[i] = hl_column_form_forward(&m->form[column], x[i], &slope, NULL);
        slopes[i / m->dim] = slope + (column ? slopes[i / m->dim] : 0);
        if (slope == -INFINITY)
            to[i] = m->column[column].mean;
    }
    for (size_t i = 0; context && i < rows * m->context; i++)
        given[i] = hl_column_form_forward(&m->form[m->dim + i % m->context], context[i], NULL, NULL);
    return (hl_density_formed){ to, context ? given : NULL, slopes };
}

/* From what the flow sees to what is behind the forms. */
static void unsee(const hl_density *m, size_t rows, double *x)
{
    for (size_t r = 0; m->factor && r < rows; r++)
        hl_multiply_lower(m->dim, m->factor, m->dim, x + r * m->dim);
    for (size_t i = 0; i < rows * m->dim; i++) {
        const hl_density_units *c = &m->column[i % m->dim];
        x[i] = m->flow_mapped ? hl_column_map_inverse(m->map[i % m->dim], x[i]) : c->mean + c->deviation * x[i];
    }
}

void hl_density_unstandardise(const hl_density *m, size_t rows, double *x)
{
    if (m && x)
        unsee(m, rows, x);
    for (size_t i = 0; m && m->form && x && i < rows * m->dim; i++)
        x[i] = hl_column_form_inverse(&m->form[i % m->dim], x[i]);
}

double hl_density_joint_row(const hl_density *m, bool mapped, const double *context, const double *x, double *joint)
{
    double log_slope = 0, slope;
    for (size_t i = 0; i < m->context; i++)
        joint[i] = mapped ? hl_column_map_forward(m->map[m->dim + i], context[i], NULL)
                          : (context[i] - m->column[m->dim + i].mean) / m->column[m->dim + i].deviation;
    for (size_t i = 0; i < m->dim; i++) {
        slope = -log(m->column[i].deviation);
        joint[m->context + i] = mapped ? hl_column_map_forward(m->map[i], x[i], &slope)
                                       : (x[i] - m->column[i].mean) / m->column[i].deviation;
        log_slope += slope;
    }
    return log_slope;
}

/* The context in m->c as the flow sees it; NULL without one. Where it is not finite, the row in m->x becomes NaN, so that this
 * row alone fails. */
static const double *see_context(hl_density *m, size_t count)
{
    if (!m->context)
        return NULL;
    hl_density_see(m, count, NULL, m->c);
    for (size_t i = 0; i < count * m->context; i++)
        if (!isfinite(m->c[i])) {
            m->c[i] = 0;
            m->x[i / m->context * m->dim] = NAN;
        }
    return m->c;
}

void hl_density_note_failure(hl_density *m, hl_status status, size_t start, const size_t *index, hl_density_failures *f)
{
    if (status == HL_OK)
        return;
    if (f->first == HL_OK || status == HL_STOPPED || (f->first == HL_IMPRECISE && status < 0)) {
        size_t row = m->ctx->failure.row;
        f->first = hl_fail_offset(m->ctx, status, start + (index && row != HL_NOWHERE ? index[row] - row : 0));
        hl_failure_keep(m->ctx, &f->kept);
    } else {
        hl_failure_restore(m->ctx, &f->kept);
    }
}

/* ---- log-densities ---- */

/* From log p of what the flow sees to that of the rows, behind their forms. */
static void rescale_logp(const hl_density *m, size_t count, const double *x, double *logp)
{
    double scale = 0;
    for (size_t i = 0; i < m->dim; i++)
        scale += (m->flow_mapped ? 0 : log(m->column[i].deviation)) + (m->factor ? log(m->factor[i * m->dim + i]) : 0);
    for (size_t r = 0; r < count; r++) {
        double log_slope = 0, slope;
        for (size_t i = 0; m->flow_mapped && i < m->dim; i++) {
            hl_column_map_forward(m->map[i], x[r * m->dim + i], &slope);
            log_slope += slope;
        }
        logp[r] += log_slope - scale;
    }
}

/* All rows here are behind their forms; x and context point to the first of `count` of them. Rows that cannot be solved are NaN, and the status
 * is that of the first of them. */
static hl_status flow_logp(hl_density *m, size_t count, const double *x, const double *context, double *logp)
{
    memcpy(m->x, x, count * m->dim * sizeof *x);
    hl_density_see(m, count, m->x, NULL);
    if (m->context)
        memcpy(m->c, context, count * m->context * sizeof *m->c);
    const double *c = see_context(m, count);
    hl_status status = hl_flow_logp(m->flow, count, m->x, c, logp);
    rescale_logp(m, count, x, logp);
    return status;
}

/* Of the rows that have NaN alone, as draws of other members. */
static hl_status flow_logp_missing(hl_density *m, size_t count, const double *x, const double *context, double *logp)
{
    size_t index[CHUNK], missing = 0;
    double *some = m->joint, *given = some + CHUNK * m->dim;
    for (size_t r = 0; r < count; r++)
        if (isnan(logp[r])) {
            memcpy(some + missing * m->dim, x + r * m->dim, m->dim * sizeof *x);
            if (m->context)
                memcpy(given + missing * m->context, context + r * m->context, m->context * sizeof *x);
            index[missing++] = r;
        }
    hl_status status = missing ? flow_logp(m, missing, some, m->context ? given : NULL, m->member) : HL_OK;
    for (size_t k = 0; k < missing; k++)
        logp[index[k]] = m->member[k];
    return status;
}

static hl_status mixture_logp(hl_density *m, const hl_density_mixture *k, size_t count, const double *x,
                              const double *context, double *logp)
{
    size_t all = m->dim + m->context;
    for (size_t r = 0; r < count; r++) /* m->x is free: the flow's turn is over */
        m->x[r] = hl_density_joint_row(m, k->mapped, context ? context + r * m->context : NULL, x + r * m->dim,
                                       m->joint + r * all);
    hl_status status = hl_tmixture_logp(k->mixture, count, m->joint, logp);
    for (size_t r = 0; r < count; r++) {
        logp[r] = status == HL_OK || status == HL_ERR_NOT_FINITE ? logp[r] + m->x[r] : NAN;
        if (isnan(logp[r]) && status == HL_OK)
            status = hl_fail_at(m->ctx, HL_ERR_NOT_FINITE, hl_at(r, HL_NOWHERE), "the row is not finite");
    }
    return status;
}

hl_status hl_density_member_formed(hl_density *m, size_t member, size_t rows, const double *x, const double *context,
                                   double *logp)
{
    return m->flow && member == 0 ? flow_logp(m, rows, x, context, logp)
                                  : mixture_logp(m, &m->mixture[member - (m->flow != NULL)], rows, x, context, logp);
}

/* log(e^a + w e^b) to a; a member that is NaN is left out. */
static void add_member(size_t count, double weight, const double *b, double *a)
{
    double log_weight = log(weight);
    for (size_t r = 0; r < count; r++) {
        double other = b[r] + log_weight, most = a[r] > other ? a[r] : other;
        if (isnan(a[r]) || isnan(other))
            a[r] = isnan(a[r]) ? other : a[r];
        else
            a[r] = isinf(most) ? most : most + log(exp(a[r] - most) + exp(other - most));
    }
}

hl_status hl_density_soften(hl_density *m, hl_status status, size_t count, const double *logp)
{
    if (status == HL_OK || status == HL_IMPRECISE || status == HL_ERR_NOMEM || status == HL_STOPPED || !m->mixtures)
        return status;
    size_t row = m->ctx->failure.row;
    if (row < count && isnan(logp[row])) /* the row itself is not finite */
        return status;
    char what[sizeof m->ctx->failure.what];
    snprintf(what, sizeof what, "%s", m->ctx->failure.what);
    return hl_fail_at(m->ctx, HL_IMPRECISE, hl_at(row, HL_NOWHERE),
                      "the flow cannot be solved at this row; log p is that of the other members (%s)", what);
}

/* The log slopes of the forms; rows outside of the bounds have no density. */
static void add_slopes(size_t count, const double *slope, double *logp)
{
    for (size_t r = 0; slope && r < count; r++)
        logp[r] = slope[r] == -INFINITY ? -INFINITY : logp[r] + slope[r];
}

/* With `drawn`, logp has that of the flow already, or NaN. */
static void chunk_logp(hl_density *m, bool drawn, size_t start, size_t count, const double *x, const double *context,
                       double *logp, hl_density_failures *f)
{
    hl_kept_failure kept;
    hl_status status = !m->flow ? HL_OK
                       : drawn  ? flow_logp_missing(m, count, x, context, logp)
                                : flow_logp(m, count, x, context, logp);
    hl_failure_keep(m->ctx, &kept);
    for (size_t r = 0; r < count && (!m->flow || m->mixtures); r++)
        logp[r] = m->flow ? logp[r] + log(m->flow_weight) : -INFINITY;
    for (size_t k = 0; k < m->mixtures; k++) {
        hl_density_note_failure(m, mixture_logp(m, &m->mixture[k], count, x, context, m->member), start, NULL, f);
        add_member(count, m->mixture[k].weight, m->member, logp);
    }
    if (status == HL_OK)
        return;
    hl_failure_restore(m->ctx, &kept);
    hl_density_note_failure(m, hl_density_soften(m, status, count, logp), start, NULL, f);
}

/* Of all members, or of one. */
static hl_status score(hl_density *m, const size_t *member, size_t rows, const double *x, const double *context,
                       double *logp)
{
    hl_density_failures f = { .first = HL_OK };
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        hl_density_formed in =
            hl_density_form_rows(m, count, x + start * m->dim, m->context ? context + start * m->context : NULL);
        if (member)
            hl_density_note_failure(m, hl_density_member_formed(m, *member, count, in.x, in.context, logp + start),
                                    start, NULL, &f);
        else
            chunk_logp(m, false, start, count, in.x, in.context, logp + start, &f);
        add_slopes(count, in.slope, logp + start);
    }
    return f.first;
}

hl_status hl_density_logp(hl_density *m, size_t rows, const double *x, const double *context, double *logp)
{
    if (!m)
        return HL_ERR_INVALID;
    if (rows && (!x || !logp || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_logp: x, the context or the result is NULL");
    return m->atoms ? hl_atoms_logp(m, rows, x, logp, NULL) : score(m, NULL, rows, x, context, logp);
}

hl_status hl_density_member_logp(hl_density *m, size_t member, size_t rows, const double *x, const double *context,
                                 double *logp)
{
    if (!m)
        return HL_ERR_INVALID;
    if (member >= hl_density_members(m))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_member_logp: member %zu of %zu", member,
                       hl_density_members(m));
    if (rows && (!x || !logp || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_member_logp: x, the context or the result is NULL");
    return score(m, &member, rows, x, context, logp);
}

/* ---- samples ---- */

/* The mixture that sample `index` comes from, or `mixtures`: the flow. */
static size_t choose_member(const hl_density *m, uint64_t seed, uint64_t index)
{
    double u = hl_random_uniform(seed, STREAM_MEMBER, index), sum = 0;
    for (size_t k = 0; k < m->mixtures; k++) {
        sum += m->mixture[k].weight;
        if (u < sum || (!m->flow && k + 1 == m->mixtures))
            return k;
    }
    return m->mixtures;
}

/* Row x by a mixture; false and NaN if its context is not finite. */
static bool mixture_sample(const hl_density *m, const hl_density_mixture *k, uint64_t seed, uint64_t index,
                           const double *context, double *x)
{
    double *joint = m->joint;
    bool good = true;
    for (size_t i = 0; i < m->dim; i++) /* any values: only those of the context are looked at */
        x[i] = m->column[i].mean;
    hl_density_joint_row(m, k->mapped, context, x, joint);
    for (size_t i = 0; i < m->context; i++)
        good = good && isfinite(joint[i]);
    if (good)
        hl_tmixture_sample(k->mixture, seed, index, joint);
    for (size_t i = 0; i < m->dim; i++) {
        double y = good ? joint[m->context + i] : NAN;
        x[i] = k->mapped ? hl_column_map_inverse(m->map[i], y) : m->column[i].mean + m->column[i].deviation * y;
    }
    return good;
}

/* Rows of a chunk that are samples number[0], number[1], ...; `start` is the place of the first in the user's call. */
typedef struct draws {
    uint64_t seed;
    const uint64_t *number;
    size_t start;
    const double *context; /* behind its forms, or NULL */
    double *x;
    double *logp; /* NULL, or room for that of the flow behind the forms; NaN for draws of other members */
    hl_density_failures *failures;
} draws;

/* log p of draws of the flow from their base z and log |dx/dz|, behind the forms. */
static void drawn_logp(const hl_density *m, size_t count, const double *z, const double *x, double *logp)
{
    for (size_t r = 0; r < count; r++) {
        double square = 0;
        for (size_t i = 0; i < m->dim; i++)
            square += z[r * m->dim + i] * z[r * m->dim + i];
        logp[r] = -0.5 * (square + (double)m->dim * LOG_2PI) - logp[r];
    }
    rescale_logp(m, count, x, logp);
}

/* Those of the rows, index[0], index[1], ..., that come from the flow. */
static void flow_sample(hl_density *m, const draws *d, size_t count, const size_t *index)
{
    double *to = m->joint; /* [count][dim] */
    for (size_t r = 0; r < count; r++) {
        for (size_t i = 0; i < m->dim; i++)
            m->x[r * m->dim + i] = hl_random_normal(d->seed, STREAM_BASE, d->number[index[r]] * m->dim + i);
        if (m->context)
            memcpy(m->c + r * m->context, d->context + index[r] * m->context, m->context * sizeof *m->c);
    }
    const double *c = see_context(m, count);
    hl_density_note_failure(m, hl_flow_inverse(m->flow, count, m->x, c, to, d->logp ? m->member : NULL), d->start,
                            index, d->failures);
    unsee(m, count, to);
    for (size_t r = 0; r < count; r++)
        memcpy(d->x + index[r] * m->dim, to + r * m->dim, m->dim * sizeof *to);
    if (d->logp)
        drawn_logp(m, count, m->x, to, m->member);
    for (size_t r = 0; r < count && d->logp; r++)
        d->logp[index[r]] = m->member[r];
}

/* From behind the forms to the units of the data, on the columns' grids. */
static void unform(const hl_density *m, size_t rows, double *x)
{
    for (size_t i = 0; m->form && i < rows * m->dim; i++) {
        const hl_column_form *f = &m->form[i % m->dim];
        x[i] = hl_column_form_inverse(f, x[i]);
        x[i] = m->exact_draws ? x[i] : hl_column_form_round(f, x[i]);
    }
}

static void draw_chunk(hl_density *m, const draws *d, size_t count)
{
    size_t index[CHUNK], flows = 0;
    for (size_t r = 0; r < count && d->logp; r++)
        d->logp[r] = NAN;
    for (size_t r = 0; r < count; r++) {
        size_t k = choose_member(m, d->seed, d->number[r]);
        const double *c = m->context ? d->context + r * m->context : NULL;
        if (k == m->mixtures)
            index[flows++] = r;
        else if (!mixture_sample(m, &m->mixture[k], d->seed, d->number[r], c, d->x + r * m->dim))
            hl_density_note_failure(
                m, hl_fail_at(m->ctx, HL_ERR_NOT_FINITE, hl_at(r, HL_NOWHERE), "the context is not finite"), d->start,
                NULL, d->failures);
    }
    if (flows)
        flow_sample(m, d, flows, index);
    unform(m, count, d->x);
}

hl_status hl_density_sample_numbers(hl_density *m, uint64_t seed, size_t rows, const uint64_t *number,
                                    const double *context, double *x)
{
    hl_density_failures f = { .first = HL_OK };
    context = hl_density_form_rows(m, rows, NULL, m->context ? context : NULL).context;
    draw_chunk(m, &(draws){ .seed = seed, .number = number, .context = context, .x = x, .failures = &f }, rows);
    return f.first;
}

/* With log p of the draws, unless `logp` is NULL. */
static hl_status draw(hl_density *m, uint64_t seed, size_t first, size_t rows, const double *context, double *x,
                      double *logp)
{
    hl_density_failures f = { .first = HL_OK };
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        const double *given = m->context ? context + start * m->context : NULL;
        uint64_t number[CHUNK];
        for (size_t r = 0; r < count; r++)
            number[r] = first + start + r;
        draws d = { .seed = seed, .number = number, .start = start, .x = x + start * m->dim, .failures = &f };
        d.logp = logp ? logp + start : NULL;
        d.context = hl_density_form_rows(m, count, NULL, given).context;
        draw_chunk(m, &d, count);
        if (!logp)
            continue;
        hl_density_formed in = hl_density_form_rows(m, count, d.x, given);
        chunk_logp(m, true, start, count, in.x, in.context, d.logp, &f);
        add_slopes(count, in.slope, d.logp);
    }
    return f.first;
}

hl_status hl_density_sample(hl_density *m, uint64_t seed, size_t first, size_t rows, const double *context, double *x)
{
    if (!m)
        return HL_ERR_INVALID;
    if (rows && (!x || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_sample: the context or the result is NULL");
    return m->atoms ? hl_atoms_sample(m, seed, first, rows, x) : draw(m, seed, first, rows, context, x, NULL);
}

hl_status hl_density_draw(hl_density *m, uint64_t seed, size_t rows, const double *context, double *x, double *logp)
{
    bool rounded = m->atoms != NULL;
    for (size_t i = 0; m->form && i < m->dim; i++)
        rounded = rounded || (m->form[i].step > 0 && !m->exact_draws);
    if (!rounded)
        return draw(m, seed, 0, rows, context, x, logp);
    hl_status status = hl_density_sample(m, seed, 0, rows, context, x);
    hl_status scored = status == HL_STOPPED ? status : hl_density_logp(m, rows, x, context, logp);
    return status == HL_OK || scored == HL_STOPPED ? scored : status;
}
