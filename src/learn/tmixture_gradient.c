/* tmixture_gradient.c - the gradient of a mixture's log-density.
 *
 *   grad log p(x) = - sum_j r_j a_j L_j^-T z_j,   z_j = L_j^-1 (x - m_j),   r_j = w_j p_j / p
 *
 * with a_j = (nu + d) / (nu + |z_j|^2), 1 for normal parts. That of the columns which are not given, log p(all) - log p(given), is the
 * difference of two such sums. */
#include <math.h>
#include <string.h>

#include "learn/tmixture.h"

typedef struct job {
    const hl_tmixture *m;
    size_t rows, size; /* size: of a thread's work */
    const double *x;
    double *gradient, *work;
} job;

/* z of the first `columns` columns for part j, and the log of the part's weighted density of them. */
static double part_density(const hl_tmixture *m, size_t j, size_t columns, const double *x, double *z, double *square)
{
    size_t d = m->dim;
    double q = 0, constant = m->constant[2 * j + (columns < d)];
    for (size_t i = 0; i < columns; i++) {
        const double *row = m->inverse + (j * d + i) * d;
        double sum = m->offset[j * d + i];
        for (size_t k = 0; k <= i; k++)
            sum += row[k] * x[k];
        z[i] = sum;
        q += sum * sum;
    }
    *square = q;
    return constant - (isinf(m->nu) ? 0.5 * q : 0.5 * (m->nu + (double)columns) * log1p(q / m->nu));
}

/* Add `sign` times the gradient of the log-density of the first `columns` columns. */
static void add_gradient(const hl_tmixture *m, size_t columns, double sign, const double *x, double *work, double *to)
{
    size_t d = m->dim;
    double *share = work, *z = work + m->parts, most = -INFINITY, total = 0, q;
    for (size_t j = 0; j < m->parts; j++) {
        share[j] = part_density(m, j, columns, x, z, &q);
        most = share[j] > most ? share[j] : most;
    }
    for (size_t j = 0; j < m->parts; j++)
        total += share[j] = isinf(most) ? 1 : exp(share[j] - most);
    for (size_t j = 0; j < m->parts; j++) {
        if (!(share[j] > 0))
            continue;
        part_density(m, j, columns, x, z, &q);
        double scale = isinf(m->nu) ? 1 : (m->nu + (double)columns) / (m->nu + q);
        scale *= -sign * share[j] / total;
        for (size_t i = 0; i < columns; i++) /* the columns of the inverse are those of L^-T */
            for (size_t k = 0; k <= i; k++)
                to[k] += scale * m->inverse[(j * d + i) * d + k] * z[i];
    }
}

static void run(void *user, int thread)
{
    const job *s = user;
    const hl_tmixture *m = s->m;
    double *work = s->work + (size_t)thread * s->size;
    for (size_t r = (size_t)thread; r < s->rows; r += (size_t)hl_team_size(m->ctx->team)) {
        double *to = s->gradient + r * m->dim;
        const double *x = s->x + r * m->dim;
        bool finite = true;
        memset(to, 0, m->dim * sizeof *to);
        add_gradient(m, m->dim, 1, x, work, to);
        if (m->given)
            add_gradient(m, m->given, -1, x, work, to);
        for (size_t i = 0; i < m->dim; i++)
            finite = finite && isfinite(x[i]);
        for (size_t i = 0; i < m->dim && !finite; i++)
            to[i] = NAN;
    }
}

hl_status hl_tmixture_gradient(const hl_tmixture *m, size_t rows, const double *x, double *gradient)
{
    job s = { .m = m, .rows = rows, .x = x, .gradient = gradient, .size = hl_size_add(m->parts, m->dim) };
    s.work = hl_calloc(m->ctx, hl_size_mul(s.size, (size_t)hl_team_size(m->ctx->team)), sizeof *s.work);
    if (!s.work)
        return HL_ERR_NOMEM;
    hl_team_run(m->ctx->team, run, &s);
    hl_free(m->ctx, s.work);
    return HL_OK;
}
