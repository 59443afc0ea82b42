/* density_atoms.c - log-densities and samples of models with atoms: rows are sorted by pattern, and the model of each takes its own. */
#include "learn/density_atoms.h"

#include <math.h>
#include <string.h>

enum { CHUNK = HL_DENSITY_CHUNK, STREAM_PATTERN = 13, STREAM_ATOM = 14, STREAM_COLUMN = 15 };
static const double LOG_ROOT_2PI = 0.91893853320467274178;

void hl_atoms_prepare(struct hl_density_atoms *a)
{
    a->rows = 0;
    for (size_t k = 0; k < a->patterns; k++)
        a->rows += a->pattern[k].rows;
    for (size_t i = 0; i < a->count; i++) {
        double at = 0.5;
        for (size_t k = 0; k < a->patterns; k++)
            at += a->pattern[k].mask >> i & 1 ? a->pattern[k].rows : 0;
        a->share[i] = at / (a->rows + 1);
    }
}

void hl_atoms_free(hl_context *ctx, struct hl_density_atoms *a)
{
    for (size_t k = 0; a && a->pattern && k < a->patterns; k++) {
        hl_density_free(a->pattern[k].rest);
        hl_free(ctx, a->pattern[k].packed);
    }
    if (a)
        hl_free(ctx, a->pattern);
    hl_free(ctx, a);
}

uint32_t hl_atoms_mask(const struct hl_density_atoms *a, const double *row)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < a->count; i++)
        mask |= row[a->column[i]] == a->value[i] ? (uint32_t)1 << i : 0;
    return mask;
}

size_t hl_atoms_find(const struct hl_density_atoms *a, uint32_t mask)
{
    size_t k = 0;
    while (k < a->patterns && a->pattern[k].mask != mask)
        k++;
    return k;
}

double hl_atoms_probability(const struct hl_density_atoms *a, uint32_t mask)
{
    size_t k = hl_atoms_find(a, mask);
    double q = 1;
    for (size_t i = 0; i < a->count; i++)
        q *= mask >> i & 1 ? a->share[i] : 1 - a->share[i];
    return ((k < a->patterns ? a->pattern[k].rows : 0) + q) / (a->rows + 1);
}

size_t hl_atoms_rest(const hl_density *m, uint32_t mask, size_t *columns)
{
    const struct hl_density_atoms *a = m->atoms;
    size_t count = 0;
    for (size_t c = 0, i = 0; c < m->dim; c++) {
        bool atom = i < a->count && a->column[i] == c;
        if (!atom || !(mask >> i & 1))
            columns[count++] = c;
        i += atom;
    }
    return count;
}

/* log of the density of one column by itself, and its derivative. */
static double own_density(const hl_density *m, size_t column, double x, double *derivative)
{
    hl_column_form none = hl_column_form_none();
    double slope, curve, log_slope, map_curve;
    double v = hl_column_form_forward(m->form ? &m->form[column] : &none, x, &slope, &curve);
    if (slope == -INFINITY) {
        *derivative = NAN;
        return -INFINITY;
    }
    double y = hl_column_map_curve(m->map[column], v, &log_slope, &map_curve);
    *derivative = (map_curve - y * exp(log_slope)) * exp(slope) + curve;
    return log_slope - 0.5 * y * y - LOG_ROOT_2PI + slope;
}

double hl_atoms_independent(const hl_density *m, uint32_t mask, const double *row)
{
    const struct hl_density_atoms *a = m->atoms;
    double sum = 0, derivative;
    for (size_t c = 0, i = 0; c < m->dim; c++) {
        bool atom = i < a->count && a->column[i] == c;
        if (!atom || !(mask >> i & 1))
            sum += own_density(m, c, row[c], &derivative);
        i += atom;
    }
    return sum;
}

/* ---- work ---- */

typedef struct work {
    hl_density *m;
    size_t index[CHUNK], *columns;
    uint64_t number[CHUNK];
    uint32_t mask[CHUNK];
    double logp[CHUNK];
    double *rows, *gradient; /* [CHUNK][dim] of a pattern */
    double context[CHUNK];   /* of a pattern's rows, if its model has one */
} work;

static hl_status create(hl_density *m, work **out)
{
    work *w = *out = hl_calloc(m->ctx, 1, sizeof *w);
    if (!w)
        return HL_ERR_NOMEM;
    w->m = m;
    for (size_t r = 0; r < CHUNK; r++)
        w->context[r] = HL_ATOMS_OWN;
    w->columns = hl_calloc(m->ctx, m->dim, sizeof *w->columns);
    w->rows = hl_calloc(m->ctx, hl_size_mul(CHUNK, m->dim), sizeof *w->rows);
    w->gradient = hl_calloc(m->ctx, hl_size_mul(CHUNK, m->dim), sizeof *w->gradient);
    return w->columns && w->rows && w->gradient ? HL_OK : HL_ERR_NOMEM;
}

static void destroy(hl_context *ctx, work *w)
{
    if (!w)
        return;
    hl_free(ctx, w->columns);
    hl_free(ctx, w->rows);
    hl_free(ctx, w->gradient);
    hl_free(ctx, w);
}

/* ---- log-densities ---- */

/* The rows of a pattern that has a model of its rest. */
static hl_status score_pattern(work *w, const hl_atom_pattern *p, size_t start, size_t count, const double *x,
                               double *logp, double *gradient, hl_density_failures *f)
{
    hl_density *m = w->m;
    size_t found = 0, rest = hl_atoms_rest(m, p->mask, w->columns);
    double log_p = log(hl_atoms_probability(m->atoms, p->mask));
    for (size_t r = 0; r < count; r++)
        if (w->mask[r] == p->mask) {
            for (size_t i = 0; i < rest; i++)
                w->rows[found * rest + i] = x[r * m->dim + w->columns[i]];
            w->index[found++] = r;
        }
    if (!found)
        return HL_OK;
    hl_status status = gradient
                           ? hl_density_logp_gradient(p->rest, found, w->rows, w->context, w->logp, w->gradient, NULL)
                           : hl_density_logp(p->rest, found, w->rows, w->context, w->logp);
    hl_density_note_failure(m, status, start, w->index, f);
    for (size_t k = 0; k < found; k++) {
        size_t r = w->index[k];
        logp[r] = w->logp[k] + log_p;
        for (size_t i = 0; gradient && i < rest; i++)
            gradient[r * m->dim + w->columns[i]] = w->gradient[k * rest + i];
    }
    return status == HL_ERR_NOMEM || status == HL_STOPPED ? status : HL_OK;
}

/* A row whose columns are independent. */
static double score_row(work *w, uint32_t mask, const double *row, double *gradient)
{
    size_t rest = hl_atoms_rest(w->m, mask, w->columns);
    double sum = log(hl_atoms_probability(w->m->atoms, mask)), derivative;
    for (size_t i = 0; i < rest; i++) {
        sum += own_density(w->m, w->columns[i], row[w->columns[i]], &derivative);
        if (gradient)
            gradient[w->columns[i]] = derivative;
    }
    return sum;
}

hl_status hl_atoms_logp(hl_density *m, size_t rows, const double *x, double *logp, double *gradient)
{
    work *w = NULL;
    hl_status status = create(m, &w);
    hl_density_failures f = { .first = HL_OK };
    for (size_t start = 0; start < rows && status == HL_OK; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        const double *at = x + start * m->dim;
        double *to = gradient ? gradient + start * m->dim : NULL;
        if (to)
            memset(to, 0, count * m->dim * sizeof *to);
        for (size_t r = 0; r < count; r++) {
            w->mask[r] = hl_atoms_mask(m->atoms, at + r * m->dim);
            size_t k = hl_atoms_find(m->atoms, w->mask[r]);
            if (k < m->atoms->patterns && m->atoms->pattern[k].rest)
                continue;
            double *own = &logp[start + r];
            *own = score_row(w, w->mask[r], at + r * m->dim, to ? to + r * m->dim : NULL);
            if (isnan(*own))
                hl_density_note_failure(
                    m, hl_fail_at(m->ctx, HL_ERR_NOT_FINITE, hl_at(r, HL_NOWHERE), "the row is not finite"), start,
                    NULL, &f);
        }
        for (size_t k = 0; k < m->atoms->patterns && status == HL_OK; k++)
            if (m->atoms->pattern[k].rest)
                status = score_pattern(w, &m->atoms->pattern[k], start, count, at, logp + start, to, &f);
    }
    destroy(m->ctx, w);
    return status != HL_OK ? status : f.first;
}

/* ---- samples ---- */

/* A pattern by the rows of those seen, or, once in N + 1 times, of independent columns. */
static uint32_t draw_mask(const struct hl_density_atoms *a, uint64_t seed, uint64_t number)
{
    double u = hl_random_uniform(seed, STREAM_PATTERN, number) * (a->rows + 1);
    for (size_t k = 0; k < a->patterns; k++) {
        if (u < a->pattern[k].rows)
            return a->pattern[k].mask;
        u -= a->pattern[k].rows;
    }
    uint32_t mask = 0;
    for (size_t i = 0; i < a->count; i++)
        mask |= hl_random_uniform(seed, STREAM_ATOM, number * HL_ATOMS + i) < a->share[i] ? (uint32_t)1 << i : 0;
    return mask;
}

static void draw_row(work *w, uint32_t mask, uint64_t seed, uint64_t number, double *row)
{
    const hl_density *m = w->m;
    size_t rest = hl_atoms_rest(m, mask, w->columns);
    for (size_t i = 0; i < rest; i++) {
        size_t c = w->columns[i];
        double x = hl_column_map_inverse(m->map[c], hl_random_normal(seed, STREAM_COLUMN, number * m->dim + c));
        x = m->form ? hl_column_form_inverse(&m->form[c], x) : x;
        row[c] = m->form && !m->exact_draws ? hl_column_form_round(&m->form[c], x) : x;
    }
}

static hl_status draw_pattern(work *w, const hl_atom_pattern *p, uint64_t seed, uint64_t first, size_t start,
                              size_t count, double *x, hl_density_failures *f)
{
    hl_density *m = w->m;
    size_t found = 0, rest = hl_atoms_rest(m, p->mask, w->columns);
    for (size_t r = 0; r < count; r++)
        if (w->mask[r] == p->mask) {
            w->number[found] = first + start + r;
            w->index[found++] = r;
        }
    if (!found)
        return HL_OK;
    hl_density_set_rounding(p->rest, !m->exact_draws);
    hl_status status = hl_density_sample_numbers(p->rest, seed, found, w->number, w->context, w->rows);
    hl_density_note_failure(m, status, start, w->index, f);
    for (size_t k = 0; k < found; k++)
        for (size_t i = 0; i < rest; i++)
            x[w->index[k] * m->dim + w->columns[i]] = w->rows[k * rest + i];
    return status == HL_ERR_NOMEM || status == HL_STOPPED ? status : HL_OK;
}

hl_status hl_atoms_sample(hl_density *m, uint64_t seed, size_t first, size_t rows, double *x)
{
    const struct hl_density_atoms *a = m->atoms;
    work *w = NULL;
    hl_status status = create(m, &w);
    hl_density_failures f = { .first = HL_OK };
    for (size_t start = 0; start < rows && status == HL_OK; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        double *to = x + start * m->dim;
        for (size_t r = 0; r < count; r++) {
            w->mask[r] = draw_mask(a, seed, first + start + r);
            size_t k = hl_atoms_find(a, w->mask[r]);
            for (size_t i = 0; i < a->count; i++)
                to[r * m->dim + a->column[i]] = a->value[i];
            if (k == a->patterns || !a->pattern[k].rest)
                draw_row(w, w->mask[r], seed, first + start + r, to + r * m->dim);
        }
        for (size_t k = 0; k < a->patterns && status == HL_OK; k++)
            if (a->pattern[k].rest)
                status = draw_pattern(w, &a->pattern[k], seed, first, start, count, to, &f);
    }
    destroy(m->ctx, w);
    return status != HL_OK ? status : f.first;
}

/* ---- what there is ---- */

size_t hl_density_patterns(const hl_density *m)
{
    return m && m->atoms ? m->atoms->patterns : 0;
}

hl_density_pattern hl_density_get_pattern(const hl_density *m, size_t index)
{
    if (index >= hl_density_patterns(m))
        return (hl_density_pattern){ 0 };
    const hl_atom_pattern *p = &m->atoms->pattern[index];
    hl_density_pattern out = { .probability = hl_atoms_probability(m->atoms, p->mask), .rest = p->rest };
    for (size_t i = 0; i < m->atoms->count; i++)
        out.atoms += p->mask >> i & 1;
    return out;
}

int hl_density_get_atom(const hl_density *m, size_t column, double *value)
{
    for (size_t i = 0; m && m->atoms && i < m->atoms->count; i++)
        if (m->atoms->column[i] == column) {
            if (value)
                *value = m->atoms->value[i];
            return 1;
        }
    return 0;
}
