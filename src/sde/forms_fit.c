/* forms_fit.c - the constants of expressions.
 *
 * The conditions of the regression (regress_weak.c, regress_pairs.c) are linear in f and A = g^2. Around the present constants c these are
 * f(x; c) + sum_k d_k df/dc_k, so a Gauss-Newton step is a regression in which f(x; c) is known and the derivatives are the
 * dictionary. What has no expression keeps the dictionary that the free regression chose, and is solved for with the
 * constants. The start is the best of several least squares of the expressions on the free regression at some rows.
 *
 * Noise of the regressors is taken out of the normal equations H as in regress_choose.c, here as far as H stays positive. With s_g the scores of the
 * groups of the data, H^-1 (sum s_g s_g') H^-1 is the covariance of the estimate. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hollow/sde_forms.h"
#include "sde/expression.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { STEPS = 30, STARTS = 16, START_ROWS = 200, START_STEPS = 40, STREAM_START = 51, MOST_COLUMNS = 1000 };
static const double longest_step = 0.5, small_constant = 0.5;
static const double ridge = 1e-9, close_enough = 0.02; /* of a standard error */
static const double least_left = 1e-6;                 /* of a constant's effect that those before it do not explain */

/* The dictionaries of the problem: those of the free regression, then dim x constants derivatives. */
typedef struct functions {
    const hl_sde_forms *forms;
    const hl_sde_simple *s;
    size_t part;
    hl_basis plain;
} functions;

typedef struct fitter {
    hl_sde_forms *forms;
    const hl_sde_simple *s;
    hl_regress p;
    functions functions[2];
    hl_conditions rows, groups;
    hl_weak *weak;
    hl_steps *steps;
    size_t n, *index;                         /* unknowns: constants, then columns of p */
    double *h, *score, *solution, *scale, *l; /* [n][n], [n], [n], [n], [n][n] */
    double *mean;                             /* [rows.count][n + 1]: of all folds, by unknowns */
} fitter;

/* ---- dictionaries ---- */

static double unit_of(const hl_sde_simple *s)
{
    return (s->t_last - s->t_first) / HL_SDE_SPAN;
}

/* t and x of standardised inputs. */
static double place(const hl_sde_simple *s, const double *z, double *x)
{
    for (size_t i = 0; i < s->dim; i++)
        x[i] = s->mean[i] + s->deviation[i] * z[i];
    return s->inputs > s->dim ? s->t_first + (z[s->dim] + 2) * (s->t_last - s->t_first) / 4 : s->t_first;
}

/* f_i or g_i^2, standardised, and its derivatives. */
static double standard(const functions *u, size_t i, double t, const double *x, double *slope)
{
    const hl_sde_simple *s = u->s;
    double work[HL_EXPRESSION_WORK], unit = unit_of(s);
    double y = hl_expression_eval(u->forms, u->part, i, t, x, slope, work);
    double scale = u->part ? unit / (s->deviation[i] * s->deviation[i]) : unit / s->deviation[i];
    for (size_t k = 0; k < u->forms->constants && slope; k++)
        slope[k] *= u->part ? 2 * y * scale : scale;
    return u->part ? y * y * scale : y * scale;
}

static void evaluate(const void *user, const double *z, double *value)
{
    const functions *u = user;
    size_t plain = hl_basis_size(&u->plain), n = u->forms->constants;
    double x[MOST_COLUMNS], t = place(u->s, z, x);
    hl_basis_eval(&u->plain, z, value);
    for (size_t i = 0; i < u->s->dim; i++) {
        double *slope = value + plain + i * n;
        memset(slope, 0, n * sizeof *slope);
        if (hl_sde_forms_has(u->forms, (int)u->part, i))
            standard(u, i, t, x, slope);
    }
}

/* f and A of the expressions at every row. */
static hl_status set_known(fitter *w)
{
    hl_regress *p = &w->p;
    size_t d = p->dim;
    for (size_t r = 0; r < p->rows; r++)
        for (size_t part = 0; part < 2; part++) {
            const functions *u = &w->functions[part];
            double x[MOST_COLUMNS], t = place(w->s, p->z + r * p->inputs, x);
            for (size_t i = 0; i < d; i++) {
                double *to = p->known + r * 2 * d + part * d + i;
                if (hl_sde_forms_has(w->forms, (int)part, i))
                    *to = standard(u, i, t, x, NULL);
                if (!isfinite(*to))
                    return hl_fail(p->ctx, HL_ERR_NOT_FINITE,
                                   "the %s of column %zu has no finite value at row %zu of the data",
                                   part ? "diffusion" : "drift", i, r);
            }
        }
    return HL_OK;
}

static void set_functions(fitter *w)
{
    hl_regress *p = &w->p;
    for (size_t part = 0; part < 2; part++) {
        functions *u = &w->functions[part];
        hl_sde_forms *f = w->forms;
        *u = (functions){ .forms = f, .s = w->s, .part = part, .plain = p->basis[part] };
        p->basis[part] = (hl_basis){ .inputs = p->inputs, .custom = evaluate, .user = u };
        p->basis[part].products = p->size[part] = hl_basis_size(&u->plain) + p->dim * f->constants;
    }
}

/* Columns of p of the functions of one entry that is not an expression. */
static void add_plain(fitter *w, size_t at, size_t count)
{
    for (size_t a = 0; a < count; a++)
        w->index[w->n++] = at + a;
}

static hl_status set_unknowns(fitter *w)
{
    hl_regress *p = &w->p;
    size_t cross = w->p.cross_size;
    p->columns = hl_regress_noise(p, p->entries);
    double *theta = hl_calloc(p->ctx, p->columns, sizeof *theta);
    w->index = hl_calloc(p->ctx, hl_size_add(w->forms->constants, p->columns), sizeof *w->index);
    hl_free(p->ctx, p->theta);
    p->theta = theta;
    if (!theta || !w->index)
        return HL_ERR_NOMEM;
    w->n = w->forms->constants;
    for (size_t i = 0; i < p->dim; i++)
        if (!hl_sde_forms_has(w->forms, 0, i) && p->open[0][i])
            add_plain(w, hl_regress_drift(p, i), hl_basis_size(&w->functions[0].plain));
    for (size_t e = 0; e < p->entries; e++) {
        bool mixed = e >= p->dim;
        if (mixed)
            add_plain(w, hl_regress_noise(p, e), cross);
        else if (!hl_sde_forms_has(w->forms, 1, e) && p->open[1][e])
            add_plain(w, hl_regress_noise(p, e), hl_basis_size(&w->functions[1].plain));
    }
    return HL_OK;
}

/* ---- normal equations ---- */

static void solve_factor(size_t n, const double *l, double *y)
{
    hl_solve_lower(n, l, n, y);
    hl_solve_lower_transposed(n, l, n, y);
}

/* A row of conditions by unknowns; the last is what is left of y. */
static void reduce(const fitter *w, const double *row, double *to)
{
    const hl_regress *p = &w->p;
    size_t n = w->forms->constants, d = p->dim;
    size_t plain[2] = { hl_basis_size(&w->functions[0].plain), hl_basis_size(&w->functions[1].plain) };
    for (size_t k = 0; k < n; k++) {
        to[k] = 0;
        for (size_t i = 0; i < d; i++)
            to[k] +=
                row[hl_regress_drift(p, i) + plain[0] + i * n + k] + row[hl_regress_noise(p, i) + plain[1] + i * n + k];
    }
    for (size_t k = n; k < w->n; k++)
        to[k] = row[w->index[k]];
    to[w->n] = row[p->columns];
}

static void add_square(const fitter *w, const double *row, double factor, double *h)
{
    for (size_t i = 0; i <= w->n; i++)
        if (row[i] != 0)
            hl_axpy(w->n + 1, factor * row[i], row, h + i * (w->n + 1));
}

/* Constant k has no effect that those before it do not have: names it and those of which the effect is a combination. */
static hl_status not_apart(const fitter *w, size_t k)
{
    const double *l = w->l;
    double part[HL_CONSTANTS_MOST] = { 0 }, most = 0;
    char text[HL_CONSTANTS_MOST * (HL_CONSTANT_NAME + 4)] = "";
    for (size_t i = k; i-- > 0;) { /* L' part = row k of L */
        part[i] = l[k * w->n + i];
        for (size_t j = i + 1; j < k; j++)
            part[i] -= l[j * w->n + i] * part[j];
        part[i] /= l[i * w->n + i];
        most = fmax(most, fabs(part[i]));
    }
    for (size_t i = 0; i < k; i++)
        if (fabs(part[i]) > 0.01 * most)
            snprintf(text + strlen(text), sizeof text - strlen(text), "'%s', ", w->forms->constant[i]);
    if (*text)
        text[strlen(text) - 2] = 0;
    return hl_fail(w->p.ctx, HL_ERR_NO_SOLUTION, "the data do not identify the constants %s and '%s' separately", text,
                   w->forms->constant[k]);
}

/* Normal equations of the folds' mean, with as much of the regressors' noise taken out as they bear; solves them. */
static hl_status solve(fitter *w)
{
    size_t n = w->n, wide = n + 1, count = w->rows.count, columns = w->p.columns + 1;
    double *normal = w->h, *noise = normal + wide * wide, *row = w->l + wide * wide;
    memset(normal, 0, 2 * wide * wide * sizeof *normal);
    memset(w->mean, 0, count * wide * sizeof *w->mean);
    for (size_t q = 0; q < HL_REGRESS_FOLDS; q++)
        for (size_t r = 0; r < count; r++) {
            reduce(w, w->rows.rows + (q * count + r) * columns, row);
            if (r < w->rows.noisy)
                add_square(w, row, 1. / HL_REGRESS_FOLDS, noise);
            hl_axpy(wide, 1. / HL_REGRESS_FOLDS, row, w->mean + r * wide);
        }
    for (size_t r = 0; r < count; r++) {
        add_square(w, w->mean + r * wide, 1, normal);
        if (r + 1 == w->rows.noisy)
            hl_axpy(wide * wide, -1, normal, noise);
    }
    for (size_t k = 0; k < wide * wide; k++)
        noise[k] /= HL_REGRESS_FOLDS - 1;
    for (size_t k = 0; k < n; k++) {
        double v = normal[k * wide + k];
        if (!(v > 0))
            return hl_fail(w->p.ctx, HL_ERR_NO_SOLUTION, "constant '%s' has no effect on the data",
                           k < w->forms->constants ? w->forms->constant[k] : "of the dictionary");
        w->scale[k] = 1 / sqrt(v);
    }
    bool good = false;
    double share = 1.25;
    while (!good && share > 0) {
        share -= 0.25;
        double keep = share > 0 ? 0.3 : 0; /* of every direction must be left without noise */
        for (int pass = 0; pass < 2; pass++) {
            for (size_t i = 0; i < n; i++) {
                for (size_t j = 0; j <= i; j++)
                    w->l[i * n + j] = w->scale[i] * w->scale[j] *
                                      ((pass ? 1 : 1 - keep) * normal[i * wide + j] - share * noise[i * wide + j]);
                w->l[i * n + i] += ridge;
            }
            good = hl_cholesky(n, w->l, 0) > 0;
            if (!good)
                break;
        }
    }
    if (!good)
        return hl_fail(w->p.ctx, HL_ERR_NO_SOLUTION, "the data do not identify the constants");
    for (size_t k = 0; k < w->forms->constants; k++)
        if (!(w->l[k * n + k] * w->l[k * n + k] > least_left))
            return not_apart(w, k);
    for (size_t k = 0; k < n; k++)
        w->solution[k] = w->scale[k] * (normal[k * wide + n] - share * noise[k * wide + n]);
    solve_factor(n, w->l, w->solution);
    for (size_t k = 0; k < n; k++)
        w->solution[k] *= w->scale[k];
    return HL_OK;
}

/* ---- covariance ---- */

/* The covariance of the solution from the scores of the groups, to `to` (n x n). */
static hl_status covariance(fitter *w, double *to)
{
    const hl_regress *p = &w->p;
    size_t n = w->n, wide = n + 1, count = w->rows.count, columns = p->columns + 1, groups = p->groups;
    double *row = w->l + wide * wide,
           *all = hl_calloc(p->ctx, hl_size_mul(HL_REGRESS_FOLDS * (groups + 1), n), sizeof *all);
    if (!all)
        return HL_ERR_NOMEM;
    double *fold = all + HL_REGRESS_FOLDS * groups * n; /* means */
    memset(to, 0, n * n * sizeof *to);
    for (size_t g = 0; g < HL_REGRESS_FOLDS * groups; g++) {
        double *s = all + g * n;
        for (size_t r = 0; r < count; r++) {
            const double *mean = w->mean + r * wide;
            reduce(w, w->groups.rows + (g * count + r) * columns, row);
            double own = row[n] - hl_dot(n, row, w->solution), left = mean[n] - hl_dot(n, mean, w->solution);
            hl_axpy(n, own / HL_REGRESS_FOLDS, mean, s);
            hl_axpy(n, left / HL_REGRESS_FOLDS, row, s);
        }
        hl_axpy(n, 1 / (double)groups, s, fold + g % HL_REGRESS_FOLDS * n);
    }
    for (size_t g = 0; g < HL_REGRESS_FOLDS * groups; g++) {
        double *s = all + g * n;
        hl_axpy(n, -1, fold + g % HL_REGRESS_FOLDS * n, s);
        for (size_t k = 0; k < n; k++)
            s[k] *= w->scale[k];
        solve_factor(n, w->l, s);
        for (size_t k = 0; k < n; k++)
            s[k] *= w->scale[k];
        for (size_t k = 0; k < n; k++)
            hl_axpy(n, s[k] * (double)groups / (double)(groups - 1), s, to + k * n);
    }
    hl_free(p->ctx, all);
    return HL_OK;
}

/* ---- steps ---- */

static hl_status allocate(fitter *w, bool weak, bool steps)
{
    hl_regress *p = &w->p;
    hl_context *ctx = p->ctx;
    size_t wide = w->n + 1;
    hl_status status = weak ? hl_weak_create(p, &w->weak) : HL_OK;
    if (status == HL_OK && steps)
        status = hl_steps_create(p, true, &w->steps);
    if (status != HL_OK)
        return status;
    w->rows.noisy = hl_weak_count(w->weak);
    size_t count = w->rows.count = w->groups.count = w->rows.noisy + hl_steps_count(w->steps);
    size_t size = hl_size_mul(count, p->columns + 1);
    w->rows.rows = hl_calloc(ctx, hl_size_mul(HL_REGRESS_FOLDS, size), sizeof *w->rows.rows);
    w->groups.rows = hl_calloc(ctx, hl_size_mul(HL_REGRESS_FOLDS * p->groups, size), sizeof *w->groups.rows);
    w->h = hl_calloc(ctx, 2 * wide * wide, sizeof *w->h);
    w->l = hl_calloc(ctx, wide * wide + wide, sizeof *w->l);
    w->solution = hl_calloc(ctx, w->n, sizeof *w->solution);
    w->scale = hl_calloc(ctx, w->n, sizeof *w->scale);
    w->mean = hl_calloc(ctx, hl_size_mul(count, wide), sizeof *w->mean);
    return w->rows.rows && w->groups.rows && w->h && w->l && w->solution && w->scale && w->mean ? HL_OK : HL_ERR_NOMEM;
}

static void free_conditions(fitter *w)
{
    hl_context *ctx = w->p.ctx;
    hl_weak_free(w->weak);
    hl_steps_free(w->steps);
    void *const blocks[] = { w->rows.rows, w->groups.rows, w->h, w->l, w->solution, w->scale, w->mean };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(ctx, blocks[i]);
    w->weak = NULL;
    w->steps = NULL;
    w->rows.rows = w->groups.rows = w->h = w->l = w->solution = w->scale = w->mean = NULL;
}

/* One step: conditions at the present constants, their solution, and its covariance. *change: the largest step in standard errors. */
static hl_status step(fitter *w, bool weak, bool steps, double *change)
{
    hl_regress *p = &w->p;
    size_t n = w->n, m = w->forms->constants, first, wide = p->columns + 1;
    hl_status status = set_known(w);
    if (status == HL_OK)
        status = allocate(w, weak, steps);
    first = hl_weak_count(w->weak);
    size_t count = w->rows.count;
    if (status == HL_OK && w->weak)
        status = hl_weak_rows(w->weak, &w->rows, 0);
    if (status == HL_OK && w->weak)
        status = hl_weak_groups(w->weak, &w->groups, 0);
    if (status == HL_OK && w->steps)
        status = hl_steps_rows(w->steps, &w->groups, first);
    for (size_t g = 0; status == HL_OK && w->steps && g < HL_REGRESS_FOLDS * p->groups; g++)
        hl_axpy((count - first) * wide, 1, w->groups.rows + (g * count + first) * wide,
                w->rows.rows + (g % HL_REGRESS_FOLDS * count + first) * wide);
    if (status == HL_OK)
        status = solve(w);
    double *all = status == HL_OK ? hl_calloc(p->ctx, n * n, sizeof *all) : NULL;
    if (status == HL_OK)
        status = all ? covariance(w, all) : HL_ERR_NOMEM;
    double part = 1; /* of the step: a constant changes by at most half of itself */
    for (size_t k = 0; k < m && status == HL_OK; k++)
        part = fmin(part, longest_step * fmax(fabs(w->forms->value[k]), small_constant) / fabs(w->solution[k]));
    *change = 0;
    for (size_t k = 0; k < m && status == HL_OK; k++) {
        *change = fmax(*change, fabs(w->solution[k]) / sqrt(all[k * n + k]));
        w->forms->value[k] += part * w->solution[k];
        for (size_t l = 0; l < m; l++)
            w->forms->covariance[k * m + l] = all[k * n + l];
        if (!isfinite(w->forms->value[k]) || !isfinite(*change))
            status = hl_fail(p->ctx, HL_ERR_NO_SOLUTION, "the constants do not converge");
    }
    for (size_t k = m; k < n && status == HL_OK; k++)
        p->theta[w->index[k]] = w->solution[k];
    p->started = true;
    hl_free(p->ctx, all);
    free_conditions(w);
    return status == HL_OK ? hl_check_stop(p->ctx) : status;
}

/* ---- start ---- */

/* Squared differences between expressions and the free regression over some rows, with normal equations (m + 1)^2. */
static double misfit(const fitter *w, const double *target, double *normal)
{
    const hl_regress *p = &w->p;
    size_t m = w->forms->constants, rows = p->rows < START_ROWS ? p->rows : START_ROWS, d = p->dim;
    double sum = 0, slope[HL_CONSTANTS_MOST + 1];
    memset(normal, 0, (m + 1) * (m + 1) * sizeof *normal);
    for (size_t k = 0; k < rows; k++)
        for (size_t part = 0; part < 2; part++) {
            const functions *u = &w->functions[part];
            double x[MOST_COLUMNS], t = place(w->s, p->z + hl_sde_some_row(k, rows, p->rows) * p->inputs, x);
            for (size_t i = 0; i < d; i++) {
                if (!hl_sde_forms_has(w->forms, (int)part, i))
                    continue;
                slope[m] = target[(k * 2 + part) * d + i] - standard(u, i, t, x, slope);
                sum += slope[m] * slope[m];
                for (size_t c = 0; c <= m; c++)
                    hl_axpy(m + 1, slope[c], slope, normal + c * (m + 1));
            }
        }
    return isfinite(sum) ? sum : INFINITY;
}

/* Levenberg and Marquardt's steps from the present constants; returns the squared differences. */
static double descend(fitter *w, const double *target)
{
    size_t m = w->forms->constants, wide = m + 1;
    double normal[(HL_CONSTANTS_MOST + 1) * (HL_CONSTANTS_MOST + 1)], l[HL_CONSTANTS_MOST * HL_CONSTANTS_MOST];
    double before[HL_CONSTANTS_MOST], by[HL_CONSTANTS_MOST], damp = 1e-2, *value = w->forms->value;
    double next[(HL_CONSTANTS_MOST + 1) * (HL_CONSTANTS_MOST + 1)], best = misfit(w, target, normal);
    for (size_t k = 0; k < START_STEPS && isfinite(best); k++) {
        memcpy(before, value, m * sizeof *value);
        for (size_t i = 0; i < m; i++) {
            for (size_t j = 0; j <= i; j++)
                l[i * m + j] = normal[i * wide + j];
            l[i * m + i] = l[i * m + i] * (1 + damp) + 1e-12;
            by[i] = normal[i * wide + m];
        }
        if (!(hl_cholesky(m, l, 0) > 0))
            break;
        solve_factor(m, l, by);
        for (size_t i = 0; i < m; i++)
            value[i] += by[i];
        double sum = misfit(w, target, next);
        bool done = fabs(best - sum) <= 1e-9 * best || damp > 1e8;
        if (sum < best) {
            best = sum;
            memcpy(normal, next, wide * wide * sizeof *normal);
            damp = fmax(damp / 5, 1e-9);
        } else {
            memcpy(value, before, m * sizeof *value);
            damp *= 5;
        }
        if (done)
            break;
    }
    return best;
}

static hl_status start(fitter *w)
{
    hl_regress *p = &w->p;
    const hl_sde_simple *s = w->s;
    size_t m = w->forms->constants, rows = p->rows < START_ROWS ? p->rows : START_ROWS, d = p->dim;
    double *target = hl_calloc(p->ctx, rows * 2 * d, sizeof *target), best = INFINITY, value[HL_CONSTANTS_MOST];
    double unit = unit_of(s);
    hl_status status = target ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < rows && status == HL_OK; k++) {
        double x[MOST_COLUMNS], t = place(s, p->z + hl_sde_some_row(k, rows, p->rows) * p->inputs, x),
                                *f = target + k * 2 * d;
        status = hl_sde_simple_eval(s, 1, &t, x, f, f + d);
        for (size_t i = 0; i < d; i++) {
            double g = f[d + i] / s->deviation[i];
            f[i] *= unit / s->deviation[i];
            f[d + i] = g * g * unit;
        }
    }
    for (uint64_t k = 0; k < STARTS && status == HL_OK; k++) {
        for (size_t c = 0; c < m; c++) {
            double u = hl_random_normal(p->options.seed, STREAM_START, 2 * (k * m + c));
            double side = hl_random_uniform(p->options.seed, STREAM_START, 2 * (k * m + c) + 1) < 0.25 ? -1 : 1;
            w->forms->value[c] = k ? side * exp(1.5 * u) : 1;
        }
        double sum = descend(w, target);
        if (sum < best) {
            best = sum;
            memcpy(value, w->forms->value, m * sizeof *value);
        }
    }
    if (status == HL_OK && !isfinite(best))
        status = hl_fail(p->ctx, HL_ERR_NO_SOLUTION, "the expressions have no finite values at the data");
    if (status == HL_OK)
        memcpy(w->forms->value, value, m * sizeof *value);
    hl_free(p->ctx, target);
    return status;
}

/* ---- signs ---- */

/* How many of the diffusions are negative at some rows, if constant `flip` (SIZE_MAX: none) changes its sign; SIZE_MAX if that changes
 * f or |g|. */
static size_t negative(fitter *w, size_t flip)
{
    const hl_regress *p = &w->p;
    size_t rows = p->rows < START_ROWS ? p->rows : START_ROWS, count = 0, other = 0;
    double x[MOST_COLUMNS], work[HL_EXPRESSION_WORK], *value = w->forms->value;
    for (size_t k = 0; k < rows; k++) {
        double t = place(w->s, p->z + hl_sde_some_row(k, rows, p->rows) * p->inputs, x);
        for (int part = 0; part < 2; part++)
            for (size_t i = 0; i < p->dim; i++) {
                if (!hl_sde_forms_has(w->forms, part, i))
                    continue;
                double before = hl_expression_eval(w->forms, (size_t)part, i, t, x, NULL, work), after = before;
                if (flip != SIZE_MAX) {
                    value[flip] = -value[flip];
                    after = hl_expression_eval(w->forms, (size_t)part, i, t, x, NULL, work);
                    value[flip] = -value[flip];
                }
                other += !(fabs((part ? fabs(after) - fabs(before) : after - before)) <= 1e-12 * fabs(before));
                count += part && after < 0;
            }
    }
    return other ? SIZE_MAX : count;
}

/* The conditions know g^2 only: constants such as that of g = s x get the sign with which g is positive. */
static void set_signs(fitter *w)
{
    size_t m = w->forms->constants, least = negative(w, SIZE_MAX);
    for (size_t c = 0; c < m && least; c++) {
        size_t count = negative(w, c);
        if (count >= least)
            continue;
        least = count;
        w->forms->value[c] = -w->forms->value[c];
        for (size_t k = 0; k < m; k++)
            if (k != c) {
                w->forms->covariance[c * m + k] *= -1;
                w->forms->covariance[k * m + c] *= -1;
            }
    }
}

/* ---- the call ---- */

static hl_status fit(void *user, const hl_regress *p, const hl_candidate *candidate, const hl_sde_simple *s)
{
    fitter *w = user;
    double change = INFINITY;
    w->s = s;
    if (p->groups < 2)
        return hl_fail(p->ctx, HL_ERR_NO_SOLUTION, "there are too few data for the constants of expressions");
    hl_status status = hl_regress_narrow(p, candidate, &w->p);
    if (status == HL_OK) {
        set_functions(w);
        status = start(w);
    }
    if (status == HL_OK)
        status = set_unknowns(w);
    for (size_t k = 0; k < STEPS && status == HL_OK && change > close_enough; k++)
        status = step(w, s->report.snapshots, s->report.steps, &change);
    if (status == HL_OK && !(change < 1))
        status = hl_fail(p->ctx, HL_ERR_NO_SOLUTION, "the constants do not converge; the data may not identify them");
    if (status == HL_OK)
        set_signs(w);
    free_conditions(w);
    for (size_t part = 0; part < 2; part++)
        hl_basis_free(p->ctx, w->functions[part].forms ? &w->functions[part].plain : &w->p.basis[part]);
    hl_free(p->ctx, w->p.theta);
    hl_free(p->ctx, w->index);
    return status;
}

hl_status hl_sde_forms_fit(hl_sde_forms *forms, const hl_sde_data *data, const hl_sde_regress_options *options)
{
    if (!forms)
        return HL_ERR_INVALID;
    if (!data)
        return hl_fail(forms->ctx, HL_ERR_INVALID, "hl_sde_forms_fit: the data are NULL");
    if (!forms->constants)
        return HL_OK;
    hl_sde_regress_options o = options ? *options : (hl_sde_regress_options){ 0 };
    hl_context *ctx = forms->ctx;
    hl_sde_known *known = hl_calloc(ctx, forms->dim, sizeof *known);
    fitter *w = hl_calloc(ctx, 1, sizeof *w);
    hl_sde_simple *simple = NULL;
    hl_status status = known && w ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i < forms->dim && o.known && known; i++) { /* what has an expression is free in the regression */
        known[i] = o.known[i];
        known[i].drift = known[i].drift && !known[i].drift_form;
        known[i].diffusion = known[i].diffusion && !known[i].diffusion_form;
    }
    o.known = o.known ? known : NULL;
    o.forms = NULL;
    o.replicates = 0;
    o.time = o.time || forms->time;
    if (status == HL_OK) {
        w->forms = forms;
        status = hl_regress_run(ctx, data, forms->dim, &o, fit, w, &simple);
    }
    hl_sde_simple_free(simple);
    hl_free(ctx, known);
    hl_free(ctx, w);
    return status;
}
