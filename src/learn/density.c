/* density.c - density models: members over the columns of a table, in the units of the data.
 *
 * log p is the log of the weighted sum of the members' densities, samples choose their member by a counter. A model of a flow alone, with
 * weight 1, is what it was before there were other members, to the bit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/linear.h"
#include "io/safetensors.h"
#include "learn/density.h"

enum { CHUNK = 2048, STREAM_BASE = 11, STREAM_MEMBER = 12 };

/* ---- creation ---- */

static hl_status check_column(hl_context *ctx, const hl_density_column *c, size_t index)
{
    if (!c->name || strlen(c->name) >= HL_DENSITY_NAME)
        return hl_fail(ctx, HL_ERR_INVALID, "column %zu has no name, or one of %d bytes or more", index + 1,
                       HL_DENSITY_NAME);
    if (!hl_is_utf8(c->name))
        return hl_fail(ctx, HL_ERR_INVALID, "the name of column %zu is not UTF-8", index + 1);
    if (!isfinite(c->mean) || !isfinite(c->deviation) || !(c->deviation > 0))
        return hl_fail(ctx, HL_ERR_INVALID,
                       "column '%.60s': mean %g, deviation %g; they must be finite, and the deviation positive",
                       c->name, c->mean, c->deviation);
    return HL_OK;
}

static hl_status fill_columns(hl_density *m, const hl_density_column *columns)
{
    size_t all = hl_size_add(m->dim, m->context);
    hl_status status = HL_OK;
    m->column = hl_calloc(m->ctx, all, sizeof *m->column);
    m->x = hl_calloc(m->ctx, hl_size_mul(CHUNK, m->dim), sizeof *m->x);
    m->c = hl_calloc(m->ctx, hl_size_mul(CHUNK, m->context + 1), sizeof *m->c);
    m->joint = hl_calloc(m->ctx, hl_size_mul(CHUNK, all), sizeof *m->joint);
    m->member = hl_calloc(m->ctx, CHUNK, sizeof *m->member);
    if (!m->column || !m->x || !m->c || !m->joint || !m->member)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < all && status == HL_OK; i++) {
        status = check_column(m->ctx, &columns[i], i);
        if (status != HL_OK)
            break;
        snprintf(m->column[i].name, sizeof m->column[i].name, "%s", columns[i].name);
        m->column[i].mean = columns[i].mean;
        m->column[i].deviation = columns[i].deviation;
    }
    return status == HL_OK ? hl_density_set_note(m, "") : status;
}

hl_status hl_density_create_columns(hl_context *ctx, size_t dim, size_t context, const hl_density_column *columns,
                                    hl_density **out)
{
    hl_density *m = hl_calloc(ctx, 1, sizeof *m);
    *out = NULL;
    if (!m)
        return HL_ERR_NOMEM;
    m->ctx = ctx;
    m->dim = dim;
    m->context = context;
    hl_status status = fill_columns(m, columns);
    if (status != HL_OK) {
        hl_density_free(m);
        return status;
    }
    *out = m;
    return HL_OK;
}

hl_status hl_density_add_flow(hl_density *m, const hl_flow_spec *flow)
{
    hl_status status = hl_flow_create(m->ctx, flow, &m->flow);
    m->flow_weight = 1;
    return status == HL_OK ? hl_density_set_solver(m, NULL) : status;
}

void hl_density_drop_flow(hl_density *m)
{
    hl_flow_free(m->flow);
    hl_free(m->ctx, m->factor);
    m->flow = NULL;
    m->factor = NULL;
    m->flow_weight = 0;
    m->flow_mapped = false;
}

hl_status hl_density_add_mixture(hl_density *m, hl_tmixture *mixture, bool mapped, double weight)
{
    if (m->mixtures == HL_DENSITY_MIXTURES || mixture->dim != m->dim + m->context || mixture->given != m->context) {
        hl_tmixture_free(mixture);
        return hl_fail(m->ctx, HL_ERR_INVALID, "a mixture does not fit the model's columns, or is one too many");
    }
    m->mixture[m->mixtures++] = (hl_density_mixture){ mixture, weight, mapped };
    return HL_OK;
}

void hl_density_weigh(hl_density *m, double flow_weight)
{
    size_t kept = 0;
    bool mapped = flow_weight > 0 && m->flow_mapped;
    m->flow_weight = flow_weight;
    if (!(flow_weight > 0))
        hl_density_drop_flow(m);
    for (size_t k = 0; k < m->mixtures; k++) {
        hl_density_mixture *x = &m->mixture[k];
        x->weight *= 1 - flow_weight;
        if (x->weight > 0) {
            mapped = mapped || x->mapped;
            m->mixture[kept++] = *x;
        } else {
            hl_tmixture_free(x->mixture);
        }
    }
    m->mixtures = kept;
    if (!mapped)
        hl_density_set_maps(m, NULL);
}

void hl_density_set_maps(hl_density *m, hl_column_map **map)
{
    for (size_t i = 0; m->map && i < m->dim + m->context; i++)
        hl_column_map_free(m->map[i]);
    hl_free(m->ctx, m->map);
    m->map = map;
}

hl_status hl_density_create(hl_context *ctx, const hl_flow_spec *flow, const hl_density_column *columns,
                            hl_density **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!flow || !columns || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_density_create: the flow, the columns or the result is NULL");
    *out = NULL;
    hl_flow *made = NULL; /* first: it checks the specification, which says how many columns there are */
    hl_status status = hl_flow_create(ctx, flow, &made);
    if (status == HL_OK)
        status = hl_density_create_columns(ctx, made->dim, made->context, columns, out);
    if (status != HL_OK) {
        hl_flow_free(made);
        return status;
    }
    (*out)->flow = made;
    (*out)->flow_weight = 1;
    status = hl_density_set_solver(*out, NULL);
    if (status != HL_OK) {
        hl_density_free(*out);
        *out = NULL;
    }
    return status;
}

void hl_density_free(hl_density *m)
{
    if (!m)
        return;
    hl_density_drop_flow(m);
    hl_density_set_maps(m, NULL);
    for (size_t k = 0; k < m->mixtures; k++)
        hl_tmixture_free(m->mixture[k].mixture);
    void *const blocks[] = { m->column, m->x, m->c, m->joint, m->member, m->note };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(m->ctx, blocks[i]);
    hl_free(m->ctx, m);
}

size_t hl_density_members(const hl_density *m)
{
    return m ? m->mixtures + (m->flow != NULL) : 0;
}

hl_density_member hl_density_get_member(const hl_density *m, size_t index)
{
    if (!m || index >= hl_density_members(m))
        return (hl_density_member){ 0 };
    if (m->flow && index == 0)
        return (hl_density_member){ .kind = HL_MEMBER_FLOW, .weight = m->flow_weight, .mapped = m->flow_mapped };
    const hl_density_mixture *k = &m->mixture[index - (m->flow != NULL)];
    return (hl_density_member){ .kind = HL_MEMBER_MIXTURE,
                                .weight = k->weight,
                                .mapped = k->mapped,
                                .parts = k->mixture->parts,
                                .nu = isinf(k->mixture->nu) ? 0 : k->mixture->nu };
}

size_t hl_density_dim(const hl_density *m)
{
    return m ? m->dim : 0;
}

size_t hl_density_context(const hl_density *m)
{
    return m ? m->context : 0;
}

hl_density_column hl_density_get_column(const hl_density *m, size_t index)
{
    if (!m || index >= m->dim + m->context)
        return (hl_density_column){ 0 };
    const hl_density_units *c = &m->column[index];
    return (hl_density_column){ c->name, c->mean, c->deviation };
}

hl_flow *hl_density_flow(const hl_density *m)
{
    return m ? m->flow : NULL;
}

hl_status hl_density_set_solver(hl_density *m, const hl_flow_solver *given)
{
    static const hl_flow_solver defaults;
    if (!m)
        return HL_ERR_INVALID;
    if (!m->flow)
        return HL_OK; /* nothing is solved */
    hl_flow_solver s = given ? *given : defaults;
    bool single = m->flow->net[0]->dtype == HL_F32;
    s.trace = HL_TRACE_EXACT;
    s.method = s.method ? s.method : "dopri5";
    s.rtol = s.rtol != 0 ? s.rtol : single ? 1e-5 : 1e-6;
    s.atol = s.atol != 0 ? s.atol : single ? 1e-5 : 1e-8;
    if (!(s.rtol > 0 && isfinite(s.rtol) && s.atol > 0 && isfinite(s.atol)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "rtol is %g and atol %g; they must be positive, or 0 for the default",
                       s.rtol, s.atol);
    hl_status status = hl_flow_set_solver(m->flow, &s);
    if (status != HL_OK)
        return status;
    if (s.method != m->method) /* as it is when the model's own solver is given back with a change */
        snprintf(m->method, sizeof m->method, "%s", s.method);
    m->solver = s;
    m->solver.method = m->method;
    m->accuracy = (hl_density_accuracy){ 0 };
    return HL_OK;
}

hl_flow_solver hl_density_solver(const hl_density *m)
{
    return m ? m->solver : (hl_flow_solver){ 0 };
}

hl_status hl_density_set_note(hl_density *m, const char *note)
{
    if (!m)
        return HL_ERR_INVALID;
    note = note ? note : "";
    char *copy = hl_alloc(m->ctx, strlen(note) + 1);
    if (!copy)
        return HL_ERR_NOMEM;
    strcpy(copy, note);
    hl_free(m->ctx, m->note);
    m->note = copy;
    return HL_OK;
}

const char *hl_density_note(const hl_density *m)
{
    return m ? m->note : "";
}

hl_status hl_density_set_factor(hl_density *m, const double *factor)
{
    if (!m)
        return HL_ERR_INVALID;
    size_t dim = m->dim;
    double *copy = factor ? hl_calloc(m->ctx, hl_size_mul(dim, dim), sizeof *copy) : NULL;
    if (factor && !copy)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < dim && factor; i++)
        for (size_t j = 0; j <= i; j++) {
            copy[i * dim + j] = factor[i * dim + j];
            if (isfinite(factor[i * dim + j]) && (j < i || factor[i * dim + i] > 0))
                continue;
            hl_free(m->ctx, copy);
            return hl_fail(
                m->ctx, HL_ERR_INVALID,
                "the factor of the columns has %g in row %zu, column %zu; it must be finite, and its diagonal "
                "positive",
                factor[i * dim + j], i + 1, j + 1);
        }
    hl_free(m->ctx, m->factor);
    m->factor = copy;
    return HL_OK;
}

const double *hl_density_factor(const hl_density *m)
{
    return m ? m->factor : NULL;
}

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

void hl_density_standardise(const hl_density *m, size_t rows, double *x, double *context)
{
    if (m && x)
        see_columns(m, m->flow_mapped, 0, m->dim, rows, x);
    for (size_t r = 0; m && m->factor && x && r < rows; r++)
        hl_solve_lower(m->dim, m->factor, m->dim, x + r * m->dim);
    if (m && context && m->context)
        see_columns(m, m->flow_mapped, m->dim, m->context, rows, context);
}

void hl_density_unstandardise(const hl_density *m, size_t rows, double *x)
{
    for (size_t r = 0; m && m->factor && x && r < rows; r++)
        hl_multiply_lower(m->dim, m->factor, m->dim, x + r * m->dim);
    for (size_t i = 0; m && x && i < rows * m->dim; i++) {
        const hl_density_units *c = &m->column[i % m->dim];
        x[i] = m->flow_mapped ? hl_column_map_inverse(m->map[i % m->dim], x[i]) : c->mean + c->deviation * x[i];
    }
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
    hl_density_standardise(m, count, NULL, m->c);
    for (size_t i = 0; i < count * m->context; i++)
        if (!isfinite(m->c[i])) {
            m->c[i] = 0;
            m->x[i / m->context * m->dim] = NAN;
        }
    return m->c;
}

/* The first failure is the one that is reported. */
typedef struct failures {
    hl_status first;
    hl_kept_failure kept;
} failures;

/* A status of rows that start at row `start` of the caller's, or, with an index, are index[0], index[1], ... of those. */
static void note_failure(hl_density *m, hl_status status, size_t start, const size_t *index, failures *f)
{
    if (status == HL_OK)
        return;
    if (f->first == HL_OK || status == HL_STOPPED) {
        size_t row = m->ctx->failure.row;
        f->first = hl_fail_offset(m->ctx, status, start + (index && row != HL_NOWHERE ? index[row] - row : 0));
        hl_failure_keep(m->ctx, &f->kept);
    } else {
        hl_failure_restore(m->ctx, &f->kept);
    }
}

/* ---- log-densities ---- */

static void flow_logp(hl_density *m, size_t start, size_t count, const double *x, const double *context, double *logp,
                      failures *f)
{
    double scale = 0;
    for (size_t i = 0; i < m->dim; i++)
        scale += (m->flow_mapped ? 0 : log(m->column[i].deviation)) + (m->factor ? log(m->factor[i * m->dim + i]) : 0);
    memcpy(m->x, x + start * m->dim, count * m->dim * sizeof *x);
    hl_density_standardise(m, count, m->x, NULL);
    if (m->context)
        memcpy(m->c, context + start * m->context, count * m->context * sizeof *m->c);
    const double *c = see_context(m, count);
    note_failure(m, hl_flow_logp(m->flow, count, m->x, c, logp), start, NULL, f);
    for (size_t r = 0; r < count; r++) {
        double log_slope = 0, slope;
        for (size_t i = 0; m->flow_mapped && i < m->dim; i++) {
            hl_column_map_forward(m->map[i], x[(start + r) * m->dim + i], &slope);
            log_slope += slope;
        }
        logp[r] += log_slope - scale;
    }
}

static void mixture_logp(hl_density *m, const hl_density_mixture *k, size_t start, size_t count, const double *x,
                         const double *context, double *logp, failures *f)
{
    size_t all = m->dim + m->context;
    for (size_t r = 0; r < count; r++) /* m->x is free: the flow's turn is over */
        m->x[r] = hl_density_joint_row(m, k->mapped, context ? context + (start + r) * m->context : NULL,
                                       x + (start + r) * m->dim, m->joint + r * all);
    hl_status status = hl_tmixture_logp(k->mixture, count, m->joint, logp);
    for (size_t r = 0; r < count; r++) {
        logp[r] = status == HL_OK ? logp[r] + m->x[r] : NAN;
        if (isnan(logp[r]) && status == HL_OK && f->first == HL_OK)
            note_failure(m, hl_fail_at(m->ctx, HL_ERR_NOT_FINITE, hl_at(r, HL_NOWHERE), "it is not finite"), start,
                         NULL, f);
    }
    note_failure(m, status, start, NULL, f);
}

/* log(e^a + w e^b) to a; NaN stays. */
static void add_member(size_t count, double weight, const double *b, double *a)
{
    double log_weight = log(weight);
    for (size_t r = 0; r < count; r++) {
        double other = b[r] + log_weight, most = a[r] > other ? a[r] : other;
        a[r] = isinf(most) ? most : most + log(exp(a[r] - most) + exp(other - most));
    }
}

static void chunk_logp(hl_density *m, size_t start, size_t count, const double *x, const double *context, double *logp,
                       failures *f)
{
    if (m->flow)
        flow_logp(m, start, count, x, context, logp, f);
    for (size_t r = 0; r < count && (!m->flow || m->mixtures); r++)
        logp[r] = m->flow ? logp[r] + log(m->flow_weight) : -INFINITY;
    for (size_t k = 0; k < m->mixtures; k++) {
        mixture_logp(m, &m->mixture[k], start, count, x, context, m->member, f);
        add_member(count, m->mixture[k].weight, m->member, logp);
    }
}

hl_status hl_density_logp(hl_density *m, size_t rows, const double *x, const double *context, double *logp)
{
    if (!m)
        return HL_ERR_INVALID;
    if (rows && (!x || !logp || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_logp: x, the context or the result is NULL");
    failures f = { .first = HL_OK };
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        chunk_logp(m, start, count, x, m->context ? context : NULL, logp + start, &f);
    }
    return f.first;
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
    failures f = { .first = HL_OK };
    context = m->context ? context : NULL;
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        if (m->flow && member == 0)
            flow_logp(m, start, count, x, context, logp + start, &f);
        else
            mixture_logp(m, &m->mixture[member - (m->flow != NULL)], start, count, x, context, logp + start, &f);
    }
    return f.first;
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

/* `count` rows of a chunk by the flow: index[r] is the place of the r-th of them among the rows from `start` on. */
static void flow_sample(hl_density *m, uint64_t seed, uint64_t first, size_t start, size_t count, const size_t *index,
                        const double *context, double *x, failures *f)
{
    double *to = m->joint; /* [count][dim] */
    for (size_t r = 0; r < count; r++) {
        size_t at = start + index[r];
        for (size_t i = 0; i < m->dim; i++)
            m->x[r * m->dim + i] = hl_random_normal(seed, STREAM_BASE, (first + at) * m->dim + i);
        if (m->context)
            memcpy(m->c + r * m->context, context + at * m->context, m->context * sizeof *m->c);
    }
    const double *c = see_context(m, count);
    note_failure(m, hl_flow_inverse(m->flow, count, m->x, c, to, NULL), start, index, f);
    hl_density_unstandardise(m, count, to);
    for (size_t r = 0; r < count; r++)
        memcpy(x + (start + index[r]) * m->dim, to + r * m->dim, m->dim * sizeof *x);
}

hl_status hl_density_sample(hl_density *m, uint64_t seed, size_t first, size_t rows, const double *context, double *x)
{
    if (!m)
        return HL_ERR_INVALID;
    if (rows && (!x || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_sample: the context or the result is NULL");
    failures f = { .first = HL_OK };
    for (size_t start = 0; start < rows; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK, index[CHUNK], flows = 0;
        for (size_t r = 0; r < count; r++) {
            size_t at = start + r, k = choose_member(m, seed, first + at);
            const double *c = m->context ? context + at * m->context : NULL;
            if (k == m->mixtures)
                index[flows++] = r;
            else if (!mixture_sample(m, &m->mixture[k], seed, first + at, c, x + at * m->dim))
                note_failure(m,
                             hl_fail_at(m->ctx, HL_ERR_NOT_FINITE, hl_at(at, HL_NOWHERE), "its context is not finite"),
                             0, NULL, &f);
        }
        if (flows)
            flow_sample(m, seed, first, start, flows, index, context, x, &f);
    }
    return f.first;
}
