/* density_gradient.c - the gradient of a model's log-density with respect to x and to the context, in the units of the data.
 *
 *   grad log p = sum_k r_k grad log p_k,   r_k = w_k p_k / p
 *
 * A member that sees y(x) has d log p_k / dx_i = (d log q_k / dy_i) dy_i/dx_i + d log(dy_i/dx_i) / dx_i for its density q_k of y. The flow's is
 * the vector-Jacobian product of its pass from y to the base z, with the cotangents -z and 1 of z and of the log-determinant. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "learn/density_atoms.h"

enum { CHUNK = 256 };

typedef struct work {
    hl_density *m;
    size_t dim, context, members;
    double *logp;               /* [members][CHUNK], weights included */
    double *total;              /* [CHUNK] */
    double *ones;               /* [CHUNK] */
    double *x, *z, *gx;         /* [CHUNK][dim]: rows that the flow can solve, their base, gradients to what it sees */
    double *c, *gc;             /* [CHUNK][context]: the same of the context */
    double *seen;               /* [CHUNK][dim + context]: rows as a mixture sees them */
    size_t index[CHUNK];        /* of the rows above */
    const double *rows, *given; /* of this chunk, behind their forms */
    double *to, *to_context;    /* of this chunk; to_context may be NULL */
} work;

static hl_status create(work *w)
{
    size_t all = w->dim + w->context;
    size_t values = hl_size_add(w->members + 2, hl_size_mul(5, all));
    double *block = w->logp = hl_calloc(w->m->ctx, hl_size_mul(CHUNK, values), sizeof *block);
    if (!block)
        return HL_ERR_NOMEM;
    w->total = block + w->members * CHUNK;
    w->ones = w->total + CHUNK;
    w->x = w->ones + CHUNK;
    w->z = w->x + CHUNK * w->dim;
    w->gx = w->z + CHUNK * w->dim;
    w->c = w->gx + CHUNK * w->dim;
    w->gc = w->c + CHUNK * w->context;
    w->seen = w->gc + CHUNK * w->context;
    for (size_t r = 0; r < CHUNK; r++)
        w->ones[r] = 1;
    return HL_OK;
}

/* dy/dx of a column as a member sees it, and the derivative of its log. */
static double slope_of(const hl_density *m, bool mapped, size_t column, double x, double *curve)
{
    double log_slope;
    *curve = 0;
    if (!mapped)
        return 1 / m->column[column].deviation;
    hl_column_map_curve(m->map[column], x, &log_slope, curve);
    return exp(log_slope);
}

/* Add `share` times a member's gradient for row r, given that to what the member sees. */
static void add_row(const work *w, bool mapped, size_t r, double share, const double *gx, const double *gc)
{
    double curve;
    for (size_t i = 0; i < w->dim; i++) {
        double slope = slope_of(w->m, mapped, i, w->rows[r * w->dim + i], &curve);
        w->to[r * w->dim + i] += share * (gx[i] * slope + curve);
    }
    for (size_t i = 0; w->to_context && i < w->context; i++) {
        double slope = slope_of(w->m, mapped, w->dim + i, w->given[r * w->context + i], &curve);
        w->to_context[r * w->context + i] += share * gc[i] * slope;
    }
}

/* The gradient to what the flow sees of `count` rows in w->x and w->c. */
static hl_status pull(work *w, size_t count)
{
    const double *c = w->context ? w->c : NULL;
    hl_status status = hl_flow_forward(w->m->flow, count, w->x, c, w->z, NULL);
    for (size_t i = 0; i < count * w->dim; i++)
        w->z[i] = -w->z[i];
    hl_flow_pullback pass = { .from = w->x, .context = c, .gto = w->z, .glogdet = w->ones, .gfrom = w->gx };
    pass.gcontext = w->context ? w->gc : NULL;
    if (status == HL_OK || status == HL_IMPRECISE)
        status = hl_flow_vjp(w->m->flow, count, &pass);
    for (size_t r = 0; r < count && w->m->factor; r++)
        hl_solve_lower_transposed(w->dim, w->m->factor, w->dim, w->gx + r * w->dim);
    return status == HL_IMPRECISE ? HL_OK : status;
}

/* Rows that the flow cannot solve have no share of it and are left out. */
static hl_status add_flow(work *w, size_t count)
{
    size_t kept = 0, d = w->dim;
    for (size_t r = 0; r < count; r++) {
        if (!isfinite(w->logp[r]))
            continue;
        memcpy(w->x + kept * d, w->rows + r * d, d * sizeof *w->x);
        if (w->context)
            memcpy(w->c + kept * w->context, w->given + r * w->context, w->context * sizeof *w->c);
        w->index[kept++] = r;
    }
    hl_density_see(w->m, kept, w->x, w->c);
    hl_status status = kept ? pull(w, kept) : HL_OK;
    for (size_t k = 0; k < kept && status == HL_OK; k++) {
        size_t r = w->index[k];
        add_row(w, w->m->flow_mapped, r, exp(w->logp[r] - w->total[r]), w->gx + k * d, w->gc + k * w->context);
    }
    return status;
}

static hl_status add_mixture(work *w, size_t member, size_t count)
{
    const hl_density *m = w->m;
    const hl_density_mixture *k = &m->mixture[member - (m->flow != NULL)];
    size_t all = w->dim + w->context;
    double *gradient = w->x; /* [count][all]: the flow's arrays, which are one block, have room for it */
    for (size_t r = 0; r < count; r++)
        hl_density_joint_row(m, k->mapped, w->context ? w->given + r * w->context : NULL, w->rows + r * w->dim,
                             w->seen + r * all);
    hl_status status = hl_tmixture_gradient(k->mixture, count, w->seen, gradient);
    for (size_t r = 0; r < count && status == HL_OK; r++) {
        double logp = w->logp[member * CHUNK + r], share = exp(logp - w->total[r]);
        const double *row = gradient + r * all;
        if (share > 0)
            add_row(w, k->mapped, r, share, row + w->context, row);
    }
    return status;
}

/* log p of every member with its weight, and of all together, leaving out members that are not finite. */
static hl_status score(work *w, size_t count, double *logp)
{
    hl_status first = HL_OK, flow = HL_OK;
    hl_kept_failure kept;
    for (size_t k = 0; k < w->members; k++) {
        double *own = w->logp + k * CHUNK, log_weight = log(hl_density_get_member(w->m, k).weight);
        hl_status status = hl_density_member_formed(w->m, k, count, w->rows, w->given, own);
        if (status == HL_ERR_NOMEM || status == HL_STOPPED)
            return status;
        if (w->m->flow && k == 0) {
            flow = status;
            hl_failure_keep(w->m->ctx, &kept);
        } else {
            first = first == HL_OK ? status : first;
        }
        for (size_t r = 0; r < count; r++)
            own[r] += log_weight;
    }
    for (size_t r = 0; r < count; r++) {
        double most = -INFINITY, sum = 0;
        for (size_t k = 0; k < w->members; k++)
            most = w->logp[k * CHUNK + r] > most ? w->logp[k * CHUNK + r] : most;
        for (size_t k = 0; k < w->members; k++)
            sum += w->logp[k * CHUNK + r] > -INFINITY ? exp(w->logp[k * CHUNK + r] - most) : 0;
        w->total[r] = sum > 0 ? most + log(sum) : NAN;
        if (logp)
            logp[r] = w->total[r];
    }
    if (first != HL_OK || flow == HL_OK)
        return first;
    hl_failure_restore(w->m->ctx, &kept);
    return hl_density_soften(w->m, flow, count, w->total);
}

static hl_status run_chunk(work *w, size_t count, double *logp)
{
    hl_status scored = score(w, count, logp), status = HL_OK;
    if (scored == HL_ERR_NOMEM || scored == HL_STOPPED)
        return scored;
    memset(w->to, 0, count * w->dim * sizeof *w->to);
    if (w->to_context)
        memset(w->to_context, 0, count * w->context * sizeof *w->to_context);
    if (w->m->flow)
        status = add_flow(w, count);
    for (size_t k = w->m->flow != NULL; k < w->members && status == HL_OK; k++)
        status = add_mixture(w, k, count);
    for (size_t i = 0; i < count * w->dim; i++)
        w->to[i] = isnan(w->total[i / w->dim]) ? NAN : w->to[i];
    for (size_t i = 0; w->to_context && i < count * w->context; i++)
        w->to_context[i] = isnan(w->total[i / w->context]) ? NAN : w->to_context[i];
    return status != HL_OK ? status : scored;
}

/* From behind the forms, v, to the units of the data: d/dx = dv/dx d/dv + d log(dv/dx) / dx. Where log p is -infinity, the gradient is NaN. */
static void unform(const work *w, size_t count, const double *x, const double *given, const hl_density_formed *in,
                   double *logp)
{
    const hl_column_form *form = w->m->form;
    double slope, curve;
    for (size_t i = 0; form && i < count * w->dim; i++) {
        hl_column_form_forward(&form[i % w->dim], x[i], &slope, &curve);
        w->to[i] = in->slope[i / w->dim] == -INFINITY ? NAN : w->to[i] * exp(slope) + curve;
    }
    for (size_t i = 0; form && w->to_context && i < count * w->context; i++) {
        hl_column_form_forward(&form[w->dim + i % w->context], given[i], &slope, NULL);
        w->to_context[i] = in->slope[i / w->context] == -INFINITY ? NAN : w->to_context[i] * exp(slope);
    }
    for (size_t r = 0; form && logp && r < count; r++)
        logp[r] = in->slope[r] == -INFINITY ? -INFINITY : logp[r] + in->slope[r];
}

hl_status hl_density_logp_gradient(hl_density *m, size_t rows, const double *x, const double *context, double *logp,
                                   double *gradient, double *context_gradient)
{
    if (!m)
        return HL_ERR_INVALID;
    if (rows && (!x || !gradient || (m->context && !context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_logp_gradient: x, the context or the result is NULL");
    if (m->atoms) {
        double *own = logp ? NULL : hl_calloc(m->ctx, rows, sizeof *own);
        hl_status done = logp || own ? hl_atoms_logp(m, rows, x, logp ? logp : own, gradient) : HL_ERR_NOMEM;
        hl_free(m->ctx, own);
        return done;
    }
    work w = { .m = m, .dim = m->dim, .context = m->context, .members = hl_density_members(m) };
    hl_density_failures f = { .first = HL_OK };
    hl_status status = create(&w);
    for (size_t start = 0; start < rows && status == HL_OK; start += CHUNK) {
        size_t count = rows - start < CHUNK ? rows - start : CHUNK;
        const double *given = w.context ? context + start * w.context : NULL;
        hl_density_formed in = hl_density_form_rows(m, count, x + start * w.dim, given);
        w.rows = in.x;
        w.given = in.context;
        w.to = gradient + start * w.dim;
        w.to_context = w.context && context_gradient ? context_gradient + start * w.context : NULL;
        hl_status chunk = run_chunk(&w, count, logp ? logp + start : NULL);
        unform(&w, count, x + start * w.dim, given, &in, logp ? logp + start : NULL);
        hl_density_note_failure(m, chunk, start, NULL, &f);
        status = chunk == HL_ERR_NOMEM || chunk == HL_STOPPED ? chunk : HL_OK;
    }
    hl_free(m->ctx, w.logp);
    return status != HL_OK ? status : f.first;
}
