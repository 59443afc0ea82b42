/* bands.c - pointwise bands of drift and diffusion, from the replicates of a regression (regress_resample.c) or of networks
 * (ensemble.c).
 *
 * Half of a band is a quantile times the root of the mean square of replicate - estimate. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hollow/sde_bands.h"
#include "hollow/sde_forms.h"
#include "sde/ensemble.h"
#include "sde/expression.h"
#include "sde/regress.h"
#include "sde/sde.h"

size_t hl_sde_replicates(const hl_sde *s)
{
    if (s && s->ensemble)
        return s->ensemble->count;
    return s && s->simple && s->simple->replicates ? s->simple->replicates->count : 0;
}

/* ---- of a regression ---- */

/* Root mean square of replicate - estimate of f (part 0) or g at a row, for each column. */
static void spread(const hl_sde_simple *s, size_t part, const double *z, double *value, double *to)
{
    const hl_replicates *r = s->replicates;
    size_t own = hl_basis_size(&s->basis[part]), size = hl_basis_size(&r->basis[part]);
    for (size_t i = 0; i < s->dim; i++) {
        hl_basis_eval(&s->basis[part], z, value);
        double sum = 0, estimate = hl_dot(own, s->coefficient[part] + i * own, value);
        estimate = hl_sde_simple_value(s, part, i, estimate);
        hl_basis_eval(&r->basis[part], z, value);
        for (size_t b = 0; b < r->count; b++) {
            double y = hl_dot(size, r->coefficient[part] + (b * s->dim + i) * size, value);
            double gap = hl_sde_simple_value(s, part, i, y) - estimate;
            sum += gap * gap;
        }
        to[i] = r->quantile * sqrt(sum / (double)r->count);
        if (part && estimate > 0) /* of the diffusion: as a share, which a network's factor does not change */
            to[i] /= estimate;
    }
}

/* Of an expression: by the covariance of its constants. */
static double form_spread(const hl_sde_forms *f, size_t part, size_t i, double t, const double *x)
{
    double room[HL_EXPRESSION_WORK], slope[HL_CONSTANTS_MOST], sum = 0;
    double value = hl_expression_eval(f, part, i, t, x, slope, room);
    for (size_t k = 0; k < f->constants; k++)
        for (size_t l = 0; l < f->constants; l++)
            sum += slope[k] * f->covariance[k * f->constants + l] * slope[l];
    return part ? sqrt(fmax(sum, 0)) / fabs(value) : sqrt(fmax(sum, 0));
}

/* Half-widths of f, or of g as shares of it, with those of expressions. */
static void half_widths(const hl_sde *s, size_t part, double t, const double *x, const double *z, double *value,
                        double *half)
{
    spread(s->simple, part, z, value, half);
    for (size_t i = 0; i < s->spec.dim; i++)
        if (hl_sde_forms_has(s->forms, (int)part, i))
            half[i] = s->simple->replicates->quantile * form_spread(s->forms, part, i, t, x);
}

static void band_row(hl_sde *s, double t, const double *x, const double *f, const double *g, double *scratch,
                     const hl_sde_band_values *v, size_t row)
{
    const hl_sde_simple *simple = s->simple;
    size_t d = s->spec.dim;
    double *half = scratch, *z = half + d, *value = z + simple->inputs;
    for (size_t i = 0; i < d; i++)
        z[i] = (x[i] - simple->mean[i]) / simple->deviation[i];
    if (simple->inputs > d)
        z[d] = hl_sde_clock((t - s->t_first) / hl_sde_time_unit(s));
    if (v->inside)
        v->inside[row] = hl_region_holds(&simple->replicates->region, z);
    if (v->f_low || v->f_high)
        half_widths(s, 0, t, x, z, value, half);
    for (size_t i = 0; i < d && v->f_low; i++)
        v->f_low[row * d + i] = f[i] - half[i];
    for (size_t i = 0; i < d && v->f_high; i++)
        v->f_high[row * d + i] = f[i] + half[i];
    if (v->g_low || v->g_high)
        half_widths(s, 1, t, x, z, value, half);
    for (size_t i = 0; i < d && v->g_low; i++)
        v->g_low[row * d + i] = g[i] * fmax(1 - half[i], 0);
    for (size_t i = 0; i < d && v->g_high; i++)
        v->g_high[row * d + i] = g[i] * (1 + half[i]);
}

/* ---- of networks ---- */

/* Half-widths of f (dim, then of g) at `rows` rows, [rows][2 dim], from the estimate f, g. other: [2][rows][dim] for scratch. */
static hl_status network_spread(hl_sde *s, size_t rows, const double *t, const double *x, const double *f,
                                const double *g, double *other, double *half)
{
    const hl_ensemble *e = s->ensemble;
    size_t d = s->spec.dim;
    memset(half, 0, rows * 2 * d * sizeof *half);
    for (size_t b = 0; b < e->count; b++) {
        hl_status status = hl_ensemble_eval(s, b, rows, t, x, other, other + rows * d);
        if (status != HL_OK)
            return status;
        for (size_t k = 0; k < rows * 2 * d; k++) {
            size_t row = k / (2 * d), i = k % (2 * d), at = row * d + i % d;
            double gap = i < d ? other[at] - f[at] : other[rows * d + at] - g[at];
            half[k] += gap * gap;
        }
    }
    for (size_t k = 0; k < rows * 2 * d; k++)
        half[k] = e->quantile * sqrt(half[k] / (double)e->count);
    for (size_t k = 0; k < rows * 2 * d; k++) {
        size_t row = k / (2 * d), i = k % d, part = k % (2 * d) >= d;
        double size = part ? g[row * d + i] : 1;
        if (hl_sde_forms_has(s->forms, (int)part, i))
            half[k] = e->quantile * size * form_spread(s->forms, part, i, t[row], x + row * d);
    }
    return HL_OK;
}

static void network_row(const hl_sde *s, double t, const double *x, const double *f, const double *g,
                        const double *half, double *z, const hl_sde_band_values *v, size_t row)
{
    size_t d = s->spec.dim;
    for (size_t i = 0; i < d; i++)
        z[i] = (x[i] - s->mean[i]) / s->deviation[i];
    z[d] = hl_sde_clock((t - s->t_first) / hl_sde_time_unit(s)); /* the region may have no use for it */
    if (v->inside)
        v->inside[row] = hl_region_holds(&s->ensemble->region, z);
    for (size_t i = 0; i < d; i++) {
        double *const to[] = { v->f_low, v->f_high, v->g_low, v->g_high };
        const double value[] = { f[i] - half[i], f[i] + half[i], fmax(g[i] - half[d + i], 0), g[i] + half[d + i] };
        for (size_t k = 0; k < 4; k++)
            if (to[k])
                to[k][row * d + i] = value[k];
    }
}

/* ---- bands ---- */

/* Of at most HL_SDE_ROWS rows, to rows at, at + 1, ... of the results. */
static hl_status band_chunk(hl_sde *s, size_t rows, const double *t, const double *x, double *scratch,
                            const hl_sde_band_values *v, size_t at)
{
    size_t d = s->spec.dim;
    double *f = scratch, *g = f + rows * d, *half = g + rows * d, *other = half + rows * 2 * d;
    hl_status status = hl_sde_eval(s, rows, t, x, &(hl_sde_values){ .f = f, .g = g });
    if (status == HL_OK && s->ensemble)
        status = network_spread(s, rows, t, x, f, g, other, half);
    for (size_t r = 0; r < rows && status == HL_OK; r++)
        if (s->ensemble)
            network_row(s, t[r], x + r * d, f + r * d, g + r * d, half + r * 2 * d, other, v, at + r);
        else
            band_row(s, t[r], x + r * d, f + r * d, g + r * d, half, v, at + r);
    return status;
}

/* Functions of a regression's dictionaries and its replicates', together. */
static size_t regression_functions(const hl_sde *s)
{
    size_t most = 0;
    for (size_t part = 0; part < 2 && s->simple; part++)
        most += hl_basis_size(&s->simple->basis[part]) + hl_basis_size(&s->simple->replicates->basis[part]);
    return most;
}

hl_status hl_sde_bands(hl_sde *s, size_t rows, const double *t, const double *x, const hl_sde_band_values *v)
{
    if (!s)
        return HL_ERR_INVALID;
    if (!v || (rows && (!t || !x)))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_bands: t, x or the results are NULL");
    if (!hl_sde_replicates(s))
        return hl_fail(s->ctx, HL_ERR_UNSUPPORTED,
                       "the model has no bands; fit it with at least one replicate (setting \"bands\")");
    size_t d = s->spec.dim, most = hl_size_add(hl_size_mul(HL_SDE_ROWS, 6 * d), 2 * d + 1 + regression_functions(s));
    double *scratch = hl_calloc(s->ctx, most, sizeof *scratch);
    if (!scratch)
        return HL_ERR_NOMEM;
    hl_status status = HL_OK;
    for (size_t at = 0, count; at < rows && status == HL_OK; at += count) {
        count = rows - at < HL_SDE_ROWS ? rows - at : HL_SDE_ROWS;
        status = band_chunk(s, count, t + at, x + at * d, scratch, v, at);
    }
    hl_free(s->ctx, scratch);
    return status;
}

/* ---- simulation ---- */

/* f of a replicate is f + (that of the replicate - that of the regression), g times the ratio; known parts have no difference. */
static void replicate_row(hl_sde *s, size_t number, double t, const double *x, double *f, double *g, double *z)
{
    const hl_sde_simple *simple = s->simple;
    const hl_replicates *r = simple->replicates;
    size_t d = s->spec.dim;
    double *value = z + simple->inputs;
    for (size_t i = 0; i < d; i++)
        z[i] = (x[i] - simple->mean[i]) / simple->deviation[i];
    if (simple->inputs > d)
        z[d] = hl_sde_clock((t - s->t_first) / hl_sde_time_unit(s));
    for (size_t part = 0; part < 2; part++) {
        size_t own = hl_basis_size(&simple->basis[part]), size = hl_basis_size(&r->basis[part]);
        if (!(part ? g : f))
            continue;
        hl_basis_eval(&simple->basis[part], z, value);
        hl_basis_eval(&r->basis[part], z, value + own);
        for (size_t i = 0; i < d; i++) {
            const double *c = r->coefficient[part] + (number * d + i) * size;
            double a = hl_sde_simple_value(simple, part, i, hl_dot(own, simple->coefficient[part] + i * own, value));
            double b = hl_sde_simple_value(simple, part, i, hl_dot(size, c, value + own));
            bool fixed = s->known && (part ? s->known[i].diffusion : s->known[i].drift);
            if (part && !fixed && a > 0)
                g[i] *= b / a;
            else if (!part && !fixed)
                f[i] += b - a;
        }
    }
}

static hl_status regression_rows(hl_sde *s, const hl_rows *at, double *f, double *g)
{
    size_t d = s->spec.dim;
    double *scratch = hl_calloc(s->ctx, s->simple->inputs + regression_functions(s), sizeof *scratch);
    hl_status status =
        scratch ? hl_sde_eval(s, at->count, at->t, at->y, &(hl_sde_values){ .f = f, .g = g }) : HL_ERR_NOMEM;
    for (size_t r = 0; r < at->count && status == HL_OK; r++)
        replicate_row(s, at->index[r] % s->simple->replicates->count, at->t[r], at->y + r * d, f ? f + r * d : NULL,
                      g ? g + r * d : NULL, scratch);
    hl_free(s->ctx, scratch);
    return status;
}

/* Rows of one replicate are evaluated together. */
static hl_status network_rows(hl_sde *s, const hl_rows *at, double *f, double *g)
{
    size_t d = s->spec.dim, n = at->count, count = s->ensemble->count;
    double *t = hl_calloc(s->ctx, hl_size_mul(n, 3 * d + 1), sizeof *t);
    size_t *row = hl_calloc(s->ctx, n, sizeof *row);
    hl_status status = t && row ? HL_OK : HL_ERR_NOMEM;
    for (size_t b = 0; b < count && status == HL_OK; b++) {
        double *x = t + n, *own_f = x + n * d, *own_g = own_f + n * d;
        size_t rows = 0;
        for (size_t r = 0; r < n; r++)
            if (at->index[r] % count == b) {
                t[rows] = at->t[r];
                memcpy(x + rows * d, at->y + r * d, d * sizeof *x);
                row[rows++] = r;
            }
        status = rows ? hl_ensemble_eval(s, b, rows, t, x, own_f, own_g) : HL_OK;
        for (size_t k = 0; k < rows; k++) {
            if (f)
                memcpy(f + row[k] * d, own_f + k * d, d * sizeof *f);
            if (g)
                memcpy(g + row[k] * d, own_g + k * d, d * sizeof *g);
        }
    }
    hl_free(s->ctx, t);
    hl_free(s->ctx, row);
    return status;
}

static int replicate_coefficients(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    hl_sde *s = user;
    (void)dg;
    return (s->ensemble ? network_rows(s, at, f, g) : regression_rows(s, at, f, g)) == HL_OK ? 0 : -1;
}

hl_status hl_sde_replicate_system(hl_sde *s, hl_noise_system *system)
{
    hl_status status = hl_sde_system(s, system);
    if (status != HL_OK)
        return status;
    if (!hl_sde_replicates(s))
        return hl_fail(s->ctx, HL_ERR_UNSUPPORTED, "the model has no bands, so it has no replicates");
    system->coefficients = replicate_coefficients;
    system->slope = 0;
    return HL_OK;
}
