/* regress_ridges.c - functions of the combinations of columns that the drift depends on: a network of one hidden layer on what is left, in closed form.
 *
 * If f_i(z) = a . z + h(v . z), the gradient of f_i varies along v only: the covariance of the gradient over the data has v as its eigenvector, and others
 * of eigenvalue 0. An estimate with any dictionary tells that covariance. Its first two eigenvectors are the directions of f_i; Gaussians of v . z, few for each
 * column of the drift, are added to the linear functions, or to those of the estimate. Held-out errors decide as among the other dictionaries. */
#include <math.h>
#include <string.h>

#include "sde/regress.h"
#include "sde/sde.h"

enum {
    MOST_DIM = 6,
    DIRECTIONS = 2,
    EACH = 6, /* Gaussians of a direction */
    GRADIENT_ROWS = 1000,
    QUANTILE_ROWS = 2000,
    SWEEPS = 30
};
static const double gap = 0.05; /* of differences, in deviations of a column */
static const double tail = 0.02, width = 1.2;

bool hl_regress_bends(const hl_regress *p, const hl_candidate *c)
{
    bool asked = strcmp(p->options.form, "ridge") == 0, free = strcmp(p->options.form, "auto") == 0;
    return p->dim > 1 && p->dim <= MOST_DIM && p->inputs == p->dim &&
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
    const size_t each = EACH;
    while (products < b->products && hl_basis_degree(b, products) <= c->degree[0]) /* degrees rise */
        products++;
    to->ridge_first = bumps;
    to->ridge_each = DIRECTIONS * each;
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
        for (size_t k = 0; k < DIRECTIONS; k++)
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
            q->ridges = kind == 0 ? 0 : kind % 2 ? EACH : DIRECTIONS * EACH;
            q->name[0] = kind ? "ridge" : q->name[0];
            if (kind == 1 || kind == 2) {
                q->degree[0] = 1;
                q->own[0] = false;
            }
        }
    }
    return n;
}
