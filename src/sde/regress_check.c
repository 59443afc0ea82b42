/* regress_check.c - does the diffusion of an estimate agree with the steps that it was learnt from?
 *
 * With the residual e of a step of h, e^2 / (h A) - 1 has mean 0 wherever x is. Least squares of it on 1, x_j and x_j^2 - 1 gives the share of A
 * that is missing, and half of it that of g. From its mean square the noise of the coefficients is subtracted, as in residuals.c. */
#include <math.h>

#include "sde/regress.h"

enum { MOST_PAIRS = 20000, MOST_DIM = 10, MOST_FUNCTIONS = 2 * MOST_DIM + 1 };
static const double far = 3;                              /* deviations of a column: beyond, functions are constant */
static const double least_effect = 0.12, least_sigma = 4; /* as of the verdict's test of steps */
static const double least_share = 0.02;                   /* of the mean of A */

typedef struct column {
    double normal[MOST_FUNCTIONS * MOST_FUNCTIONS], right[MOST_FUNCTIONS], squares;
} column;

static size_t functions(const hl_regress *p, const double *z, double *phi)
{
    size_t n = 0;
    phi[n++] = 1;
    for (size_t j = 0; j < p->dim; j++) {
        double u = fmax(-far, fmin(far, z[j]));
        phi[n++] = u;
        phi[n++] = u * u - 1;
    }
    return n;
}

/* The effect of a column's sums over `rows` steps; 0 if it is small or may be chance. */
static double effect_of(column *c, size_t n, double rows)
{
    double *beta = c->right;
    for (size_t a = 0; a < n; a++)
        c->normal[a * n + a] *= 1 + 1e-9;
    if (!(hl_cholesky(n, c->normal, 0) > 0))
        return 0;
    hl_solve_lower(n, c->normal, n, beta);
    double explained = hl_dot(n, beta, beta), variance = fmax(c->squares - explained, 0) / fmax(rows - (double)n, 1);
    double sigma = (explained / fmax(variance, 1e-300) - (double)n) / sqrt(2 * (double)n);
    /* the mean square of the fit is `explained` over the rows, and its noise is n times the variance */
    double effect = 0.5 * sqrt(fmax(explained - (double)n * variance, 0) / rows);
    return effect > least_effect && sigma > least_sigma ? effect : 0;
}

hl_status hl_regress_noise_missed(const hl_regress *p, double *effect)
{
    size_t d = p->dim, both = p->size[0] + p->size[1], n = 2 * d + 1, stride = p->pairs / MOST_PAIRS + 1;
    *effect = 0;
    if (d > MOST_DIM)
        return HL_OK;
    column *columns = hl_calloc(p->ctx, d, sizeof *columns);
    double *value = hl_calloc(p->ctx, both + 3 * d + 2 * p->entries, sizeof *value), phi[MOST_FUNCTIONS], rows = 0;
    hl_status status = columns && value ? HL_OK : HL_ERR_NOMEM;
    double *f = value + both, *f1 = f + d, *mean = f1 + d, *a = mean + d, *a1 = a + p->entries;
    for (int pass = 0; pass < 2 && status == HL_OK; pass++) {
        rows = 0;
        for (size_t k = 0; k < p->pairs; k += stride) {
            const hl_pair *q = &p->pair[k];
            if (q->step > p->longest)
                continue;
            rows++;
            hl_regress_values(p, q->from, value, f, a);
            hl_regress_values(p, q->to, value, f1, a1);
            functions(p, p->z + q->from * p->inputs, phi);
            for (size_t i = 0; i < d; i++) {
                double v = 0.5 * (a[i] + a1[i]);
                if (!pass) {
                    mean[i] += fmax(v, 0);
                    continue;
                }
                double e = p->z[q->to * p->inputs + i] - p->z[q->from * p->inputs + i] - 0.5 * q->step * (f[i] + f1[i]);
                double y = e * e / (q->step * fmax(v, mean[i])) - 1;
                columns[i].squares += y * y;
                for (size_t b = 0; b < n; b++) {
                    columns[i].right[b] += y * phi[b];
                    hl_axpy(b + 1, phi[b], phi, columns[i].normal + b * n);
                }
            }
        }
        for (size_t i = 0; i < d && !pass; i++)
            mean[i] *= least_share / fmax(rows, 1);
    }
    for (size_t i = 0; i < d && status == HL_OK && rows > (double)(2 * n); i++)
        if (p->open[1][i] && mean[i] > 0)
            *effect = fmax(*effect, effect_of(&columns[i], n, rows));
    hl_free(p->ctx, columns);
    hl_free(p->ctx, value);
    return status;
}
