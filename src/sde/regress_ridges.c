/* regress_ridges.c - functions of the combinations of columns that the drift depends on: a network of one hidden layer on what is left, in closed form.
 *
 * If f_i(z) = a . z + h(v . z), the gradient of f_i varies along v only: the covariance of the gradient over the data has v as its eigenvector, and others
 * of eigenvalue 0. An estimate with any dictionary tells that covariance. Its first two eigenvectors are the directions of f_i; Gaussians of v . z, few for each
 * column of the drift, are added to the linear functions, or to those of the estimate. Held-out errors decide as among the other dictionaries.
 *
 * The directions of the candidate that is chosen are then improved by Gauss-Newton steps: its functions change with v by tangents, of which the drift is a
 * sum, too, so a regression with them tells how far v should turn. If the candidate has one direction, more Gaussians of it become candidates in place of the second. Bands take the same tangents into their replicates (regress_resample.c). */
#include <math.h>
#include <string.h>

#include "sde/regress.h"
#include "sde/sde.h"

enum { GRADIENT_ROWS = 1000, QUANTILE_ROWS = 2000, SWEEPS = 30, TURNS = 6 };
static const double most_turn = 0.5,
                    least_turn = 0.01; /* tangents of angles; of a Gauss-Newton step, and when to stop */
static const double gap = 0.05;        /* of differences, in deviations of a column */
static const double tail = 0.02, width = 1.2;

bool hl_regress_bends(const hl_regress *p, const hl_candidate *c)
{
    bool asked = strcmp(p->options.form, "ridge") == 0, free = strcmp(p->options.form, "auto") == 0;
    return p->dim > 1 && p->dim <= HL_REGRESS_RIDGES && p->inputs == p->dim &&
           (asked || (free && (c->degree[0] > 1 || c->bumps[0])));
}

/* Eigenvectors of the symmetric matrix a (n x n) to the rows of v, those of the largest eigenvalues first; Jacobi's method. a is destroyed. */
static void eigenvectors(size_t n, double *a, double *v)
{
    for (size_t k = 0; k < n * n; k++)
        v[k] = k / n == k % n;
    for (size_t sweep = 0; sweep < SWEEPS; sweep++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = i + 1; j < n; j++) {
                double off = a[i * n + j], half = 0.5 * (a[j * n + j] - a[i * n + i]);
                if (off == 0)
                    continue;
                double t = off / (fabs(half) + sqrt(half * half + off * off)), c, s;
                t = half < 0 ? -t : t;
                c = 1 / sqrt(1 + t * t);
                s = t * c;
                for (size_t k = 0; k < n; k++) {
                    double x = a[k * n + i], y = a[k * n + j];
                    a[k * n + i] = c * x - s * y;
                    a[k * n + j] = s * x + c * y;
                }
                for (size_t k = 0; k < n; k++) {
                    double x = a[i * n + k], y = a[j * n + k];
                    a[i * n + k] = c * x - s * y;
                    a[j * n + k] = s * x + c * y;
                    x = v[i * n + k], y = v[j * n + k];
                    v[i * n + k] = c * x - s * y;
                    v[j * n + k] = s * x + c * y;
                }
            }
    for (size_t i = 0; i < n; i++)
        for (size_t j = i + 1; j < n; j++)
            if (a[j * n + j] > a[i * n + i])
                for (size_t k = 0; k < n; k++) {
                    double x = v[i * n + k];
                    v[i * n + k] = v[j * n + k];
                    v[j * n + k] = x;
                    if (k == 0) {
                        x = a[i * n + i];
                        a[i * n + i] = a[j * n + j];
                        a[j * n + j] = x;
                    }
                }
}

/* Covariances over some rows of the gradients of f_i, with the coefficients `bent`, to c [dim][dim][dim]. */
static void gradient_covariances(const hl_regress *p, const double *bent, double *c, double *scratch)
{
    size_t d = p->dim, n = p->rows < GRADIENT_ROWS ? p->rows : GRADIENT_ROWS;
    double *mean = scratch, *slope = mean + d * d, *z = slope + d * d, *f = z + p->inputs, *value = f + 2 * d;
    for (size_t k = 0; k < n; k++) {
        memcpy(z, p->z + hl_sde_some_row(k, n, p->rows) * p->inputs, p->inputs * sizeof *z);
        for (size_t j = 0; j < d; j++) {
            double at = z[j];
            for (size_t side = 0; side < 2; side++) {
                z[j] = at + (side ? gap : -gap);
                hl_basis_eval(&p->basis[0], z, value);
                for (size_t i = 0; i < d; i++)
                    f[side * d + i] = hl_dot(p->size[0], bent + hl_regress_drift(p, i), value);
            }
            z[j] = at;
            for (size_t i = 0; i < d; i++)
                slope[i * d + j] = (f[d + i] - f[i]) / (2 * gap);
        }
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++) {
                mean[i * d + j] += slope[i * d + j] / (double)n;
                hl_axpy(d, slope[i * d + j] / (double)n, slope + i * d, c + (i * d + j) * d);
            }
    }
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            hl_axpy(d, -mean[i * d + j], mean + i * d, c + (i * d + j) * d);
}

/* `count` Gaussians of v . z, evenly over most of its values, from `first` on. */
static void set_ridges(const hl_regress *p, const double *v, size_t count, hl_basis *b, size_t first, double *value)
{
    size_t n = p->rows < QUANTILE_ROWS ? p->rows : QUANTILE_ROWS, m = p->inputs, cut = (size_t)(tail * (double)n);
    for (size_t k = 0; k < n; k++)
        value[k] = hl_dot(m, v, p->z + hl_sde_some_row(k, n, p->rows) * m);
    hl_sort(value, n);
    double low = value[cut], step = fmax((value[n - 1 - cut] - low) / (double)(count - 1), 1e-3);
    for (size_t k = 0; k < count; k++)
        for (size_t j = 0; j < m; j++) {
            b->centre[(first + k) * m + j] = (low + (double)k * step) * v[j];
            b->scale[(first + k) * m + j] = v[j] / (width * step);
        }
}

static hl_status make_basis(const hl_regress *p, const hl_candidate *c, const double *bent, hl_regress *to)
{
    const hl_basis *b = &p->basis[0];
    size_t d = p->dim, m = p->inputs, products = 0, bumps = c->bumps[0] > c->first[0] ? c->bumps[0] - c->first[0] : 0;
    const size_t each = HL_RIDGE_EACH;
    while (products < b->products && hl_basis_degree(b, products) <= c->degree[0]) /* degrees rise */
        products++;
    to->ridge_first = bumps;
    to->ridge_each = HL_RIDGE_DIRECTIONS * each;
    to->lines = 0;
    hl_status status = hl_basis_create(p->ctx, m, products, bumps + d * to->ridge_each, &to->basis[0]);
    size_t size = 2 * d * d + m + 2 * d + p->size[0];
    double *scratch = hl_calloc(p->ctx, d * d * d + size + QUANTILE_ROWS, sizeof *scratch);
    if (status != HL_OK || !scratch) {
        hl_free(p->ctx, scratch);
        return HL_ERR_NOMEM;
    }
    double *covariance = scratch, *other = scratch + d * d * d, *value = other + size;
    memcpy(to->basis[0].factor, b->factor, products * sizeof *b->factor);
    memcpy(to->basis[0].centre, b->centre + c->first[0] * m, bumps * m * sizeof *b->centre);
    memcpy(to->basis[0].scale, b->scale + c->first[0] * m, bumps * m * sizeof *b->scale);
    to->basis[0].ridges = d * to->ridge_each;
    gradient_covariances(p, bent, covariance, other);
    for (size_t i = 0; i < d; i++) {
        eigenvectors(d, covariance + i * d * d, other);
        for (size_t k = 0; k < HL_RIDGE_DIRECTIONS; k++)
            set_ridges(p, other + k * d, each, &to->basis[0], bumps + i * to->ridge_each + k * each, value);
    }
    hl_free(p->ctx, scratch);
    return HL_OK;
}

hl_status hl_regress_ridges(const hl_regress *p, const hl_candidate *c, const double *bent, hl_regress *to)
{
    *to = *p;
    to->theta = NULL;
    to->basis[0] = to->basis[1] = (hl_basis){ 0 };
    hl_status status = make_basis(p, c, bent, to);
    if (status == HL_OK)
        status = hl_basis_copy(p->ctx, &p->basis[1], p->basis[1].products, p->basis[1].bumps, &to->basis[1]);
    if (status != HL_OK)
        return status;
    to->size[0] = hl_basis_size(&to->basis[0]);
    to->columns = hl_regress_noise(to, to->entries);
    to->theta = hl_calloc(p->ctx, to->columns, sizeof *to->theta);
    if (!to->theta)
        return HL_ERR_NOMEM;
    size_t products = to->basis[0].products;
    for (size_t i = 0; i < p->dim; i++)
        for (size_t a = 0; a < products + to->ridge_first; a++)
            to->theta[hl_regress_drift(to, i) + a] =
                p->theta[hl_regress_drift(p, i) +
                         (a < products ? a : p->basis[0].products + c->first[0] + a - products)];
    memcpy(to->theta + hl_regress_noise(to, 0), p->theta + hl_regress_noise(p, 0),
           (to->columns - hl_regress_noise(to, 0)) * sizeof *to->theta);
    return HL_OK;
}

size_t hl_regress_ridge_candidates(const hl_regress *p, size_t count, const hl_candidate *from, const hl_candidate *c,
                                   hl_candidate *candidate)
{
    size_t n = 0;
    bool asked = strcmp(p->options.form, "ridge") == 0;
    for (size_t k = 0; k < count; k++) {
        if (from[k].name[0] != c->name[0] || from[k].first[0] != c->first[0] || from[k].bumps[0] != c->bumps[0])
            continue;
        /* none; one or two directions beside linear functions; the same beside the functions of c */
        for (size_t kind = asked; kind < 5 && n < HL_REGRESS_CANDIDATES; kind++) {
            hl_candidate *q = &candidate[n++];
            *q = from[k];
            q->first[0] = kind == 1 || kind == 2 ? p->ridge_first : 0;
            q->bumps[0] = kind ? p->basis[0].bumps : p->ridge_first;
            q->ridges = kind == 0 ? 0 : kind % 2 ? HL_RIDGE_EACH : HL_RIDGE_DIRECTIONS * HL_RIDGE_EACH;
            q->name[0] = kind ? "ridge" : q->name[0];
            if (kind == 1 || kind == 2) {
                q->degree[0] = 1;
                q->own[0] = false;
            }
        }
    }
    return n;
}

/* ---- tangents ---- */

/* Vectors orthogonal to the unit vector v and to each other, to w [n - 1][n]: rows of the reflection that takes v to an axis. */
static void complement(size_t n, const double *v, double *w)
{
    double side = v[0] < 0 ? -1 : 1, first = v[0] + side, norm = first * first;
    for (size_t j = 1; j < n; j++)
        norm += v[j] * v[j];
    for (size_t j = 1; j < n; j++)
        for (size_t k = 0; k < n; k++)
            w[(j - 1) * n + k] = (j == k) - 2 * v[j] * (k ? v[k] : first) / norm;
}

/* Gaussians of direction k of column i begin with this one. */
static size_t first_of(const hl_regress *p, size_t i, size_t k)
{
    return p->ridge_first + i * p->ridge_each + k * HL_RIDGE_EACH;
}

/* Direction k of column i, of length 1, to v; returns the length of its scale. */
static double direction_of(const hl_regress *p, size_t i, size_t k, double *v)
{
    const double *scale = p->basis[0].scale + first_of(p, i, k) * p->inputs;
    double size = sqrt(hl_dot(p->inputs, scale, scale));
    for (size_t j = 0; j < p->inputs; j++)
        v[j] = scale[j] / size;
    return size;
}

/* The tangents of direction k of column i. */
static void set_tangents(const hl_regress *p, size_t i, size_t k, hl_regress *to, double *v)
{
    size_t m = p->inputs, first = first_of(to, i, k), d = p->dim;
    size_t at = to->ridge_first + i * to->ridge_each + p->ridge_each + k * (d - 1);
    double size = direction_of(p, i, k, v);
    hl_basis *b = &to->basis[0];
    complement(m, v, b->scale + at * m);
    for (size_t j = 0; j < (d - 1) * m; j++)
        b->scale[at * m + j] *= size;
    for (size_t j = 0; j + 1 < d; j++) {
        b->tangent[at + j].back = at + j - first;
        memcpy(b->tangent[at + j].coefficient,
               p->theta + hl_regress_drift(p, i) + p->basis[0].products + first_of(p, i, k),
               sizeof b->tangent->coefficient);
    }
}

hl_status hl_regress_tangents(const hl_regress *p, size_t ridges, hl_regress *to)
{
    const hl_basis *b = &p->basis[0];
    size_t d = p->dim, m = p->inputs, directions = ridges / HL_RIDGE_EACH, common = b->products + p->ridge_first;
    *to = *p;
    to->theta = NULL;
    to->basis[0] = to->basis[1] = (hl_basis){ 0 };
    to->ridge_tangents = directions * (d - 1);
    to->ridge_each += to->ridge_tangents;
    hl_status status = hl_basis_create(p->ctx, m, b->products, p->ridge_first + d * to->ridge_each, &to->basis[0]);
    hl_basis *c = &to->basis[0];
    c->ridges = d * to->ridge_each;
    c->tangent = hl_calloc(p->ctx, c->bumps, sizeof *c->tangent);
    to->size[0] = hl_basis_size(c);
    to->columns = hl_regress_noise(to, to->entries);
    to->theta = hl_calloc(p->ctx, hl_size_add(to->columns, m), sizeof *to->theta);
    if (status == HL_OK)
        status = hl_basis_copy(p->ctx, &p->basis[1], p->basis[1].products, p->basis[1].bumps, &to->basis[1]);
    if (status != HL_OK || !c->tangent || !to->theta)
        return HL_ERR_NOMEM;
    memcpy(c->factor, b->factor, b->products * sizeof *b->factor);
    memcpy(c->centre, b->centre, p->ridge_first * m * sizeof *b->centre);
    memcpy(c->scale, b->scale, p->ridge_first * m * sizeof *b->scale);
    for (size_t i = 0; i < d; i++) {
        size_t from = first_of(p, i, 0), at = first_of(to, i, 0);
        const double *theta = p->theta + hl_regress_drift(p, i);
        memcpy(c->centre + at * m, b->centre + from * m, p->ridge_each * m * sizeof *b->centre);
        memcpy(c->scale + at * m, b->scale + from * m, p->ridge_each * m * sizeof *b->scale);
        memcpy(to->theta + hl_regress_drift(to, i), theta, common * sizeof *theta);
        memcpy(to->theta + hl_regress_drift(to, i) + b->products + at, theta + b->products + from,
               p->ridge_each * sizeof *theta);
        for (size_t k = 0; k < directions; k++)
            set_tangents(p, i, k, to, to->theta + to->columns);
    }
    memcpy(to->theta + hl_regress_noise(to, 0), p->theta + hl_regress_noise(p, 0),
           (to->columns - hl_regress_noise(to, 0)) * sizeof *to->theta);
    return HL_OK;
}

/* Turns the directions of p by the tangents' coefficients in t, takes the other coefficients of the drift from there, and returns the largest turn.
 * scratch: QUANTILE_ROWS + inputs. */
static double turn(hl_regress *p, const hl_regress *t, double *scratch)
{
    size_t d = p->dim, m = p->inputs, products = t->basis[0].products, directions = t->ridge_tangents / (d - 1);
    double *v = scratch + QUANTILE_ROWS, largest = 0;
    for (size_t i = 0; i < d; i++) {
        double *to = p->theta + hl_regress_drift(p, i);
        const double *from = t->theta + hl_regress_drift(t, i);
        memset(to, 0, p->size[0] * sizeof *to);
        memcpy(to, from, products * sizeof *to);
        to += p->basis[0].products;
        from += products;
        memcpy(to, from, p->ridge_first * sizeof *to);
        memcpy(to + first_of(p, i, 0), from + first_of(t, i, 0), p->ridge_each * sizeof *to);
        for (size_t k = 0; k < directions; k++) {
            size_t at = first_of(t, i, 0) + p->ridge_each + k * (d - 1);
            double length = direction_of(p, i, k, v), size = sqrt(hl_dot(d - 1, from + at, from + at));
            double share = size > most_turn ? most_turn / size : 1;
            if (!isfinite(size) || size == 0)
                continue;
            largest = fmax(largest, share * size);
            for (size_t j = 0; j + 1 < d; j++)
                hl_axpy(m, share * from[at + j] / length, t->basis[0].scale + (at + j) * m, v);
            double norm = sqrt(hl_dot(m, v, v));
            for (size_t j = 0; j < m; j++)
                v[j] /= norm;
            set_ridges(p, v, HL_RIDGE_EACH, &p->basis[0], first_of(p, i, k), scratch);
        }
    }
    return largest;
}

/* One step. */
static hl_status turn_once(hl_regress *p, const hl_candidate *c, bool weak, bool steps, double *largest)
{
    hl_context *ctx = p->ctx;
    hl_regress narrow = { 0 }, t = { 0 };
    hl_weak *means = NULL;
    hl_steps *pairs = NULL;
    hl_conditions rows = { 0 };
    hl_choice *choice = hl_calloc(ctx, 1, sizeof *choice);
    double *scratch = hl_calloc(ctx, QUANTILE_ROWS + p->inputs, sizeof *scratch);
    hl_status status = choice && scratch ? hl_regress_narrow(p, c, &narrow) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_regress_tangents(&narrow, c->ridges, &t);
    if (status == HL_OK && weak)
        status = hl_weak_create(&t, &means);
    if (status == HL_OK && steps)
        status = hl_steps_create(&t, false, &pairs);
    size_t first = hl_weak_count(means);
    rows.count = first + hl_steps_count(pairs);
    if (status == HL_OK)
        rows.rows = hl_calloc(ctx, hl_size_mul(HL_REGRESS_FOLDS * rows.count, t.columns + 1), sizeof *rows.rows);
    if (status == HL_OK && !rows.rows)
        status = HL_ERR_NOMEM;
    if (status == HL_OK && means)
        status = hl_weak_rows(means, &rows, 0);
    if (status == HL_OK && pairs)
        status = hl_steps_rows(pairs, &rows, first);
    if (status == HL_OK)
        status = hl_regress_choose(&t, &rows, 1, c, SIZE_MAX, choice);
    if (status == HL_OK)
        *largest = turn(p, &t, scratch);
    hl_weak_free(means);
    hl_steps_free(pairs);
    for (size_t part = 0; part < 2; part++) {
        hl_basis_free(ctx, &narrow.basis[part]);
        hl_basis_free(ctx, &t.basis[part]);
    }
    void *const blocks[] = { choice, scratch, rows.rows, narrow.theta, t.theta };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(ctx, blocks[i]);
    return status;
}

/* In place of a second direction, which was not chosen: Gaussians of half the width between those of the first. */
static void halve_widths(hl_regress *p)
{
    size_t m = p->inputs;
    for (size_t i = 0; i < p->dim; i++)
        for (size_t k = 0; k < HL_RIDGE_EACH; k++) {
            size_t from = first_of(p, i, 0) + k, next = k + 1 < HL_RIDGE_EACH ? from + 1 : from - 1;
            const double *centre = p->basis[0].centre + from * m, *other = p->basis[0].centre + next * m;
            size_t to = (from + HL_RIDGE_EACH) * m;
            for (size_t j = 0; j < m; j++) {
                double distance = next > from ? other[j] - centre[j] : centre[j] - other[j];
                p->basis[0].centre[to + j] = centre[j] + 0.5 * distance;
                p->basis[0].scale[to + j] = 2 * p->basis[0].scale[from * m + j];
            }
        }
}

hl_status hl_regress_turn(hl_regress *p, const hl_candidate *c, bool weak, bool steps)
{
    hl_status status = HL_OK;
    double largest = INFINITY;
    for (size_t k = 0; k < TURNS && largest > least_turn && status == HL_OK; k++) {
        status = turn_once(p, c, weak, steps, &largest);
        if (status == HL_OK)
            status = hl_check_stop(p->ctx);
    }
    if (status == HL_OK && c->ridges == HL_RIDGE_EACH)
        halve_widths(p);
    return status;
}
