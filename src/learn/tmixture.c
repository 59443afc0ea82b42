/* tmixture.c - mixtures of t distributions: densities, conditional densities and samples.
 *
 *   z = L^-1 (x - m),  q = |z|^2,  log t_nu = log G((nu + d)/2) - log G(nu/2) - d/2 log(nu pi) - sum log L_ii - (nu + d)/2 log(1 + q/nu)
 *
 * As L is lower triangular, the first entries of z are those of the marginal distribution of the first columns: one product gives the
 * density of all columns and that of the given ones. Given c of q_c, the others are t with nu + |c| degrees of freedom, whose squared
 * scale is (nu + q_c) / (nu + |c|) times that of the normal case.
 *
 * Rows go through in panels of 16, a row per lane, by the kernels of networks. */
#include "learn/tmixture.h"

#include <math.h>
#include <string.h>

#include "kernel/kernel.h"
#include "learn/tmixture_panels.h"

enum { STREAM_PART = 31, STREAM_NORMAL = 32, STREAM_GAMMA = 33, GAMMA_TRIES = 64 };

hl_status hl_tmixture_create(hl_context *ctx, size_t dim, size_t given, size_t parts, double nu, hl_tmixture **out)
{
    *out = NULL;
    size_t square = hl_size_mul(parts, hl_size_mul(dim, dim)), row = hl_size_mul(parts, dim);
    hl_tmixture *m = hl_calloc(ctx, 1, sizeof *m);
    double *values =
        hl_calloc(ctx, hl_size_add(hl_size_mul(2, square), hl_size_mul(2, row) + 3 * parts), sizeof *values);
    if (!m || !values) {
        hl_free(ctx, m);
        hl_free(ctx, values);
        return HL_ERR_NOMEM;
    }
    *m = (hl_tmixture){ .ctx = ctx, .parts = parts, .dim = dim, .given = given, .nu = nu, .weight = values };
    m->mean = m->weight + parts;
    m->factor = m->mean + row;
    m->inverse = m->factor + square;
    m->offset = m->inverse + square;
    m->constant = m->offset + row;
    *out = m;
    return HL_OK;
}

void hl_tmixture_free(hl_tmixture *m)
{
    if (!m)
        return;
    hl_free(m->ctx, m->weight);
    hl_free(m->ctx, m);
}

static double constant_of(double nu, size_t d)
{
    double dim = (double)d;
    if (isinf(nu))
        return -0.5 * dim * log(2 * 3.14159265358979323846);
    return lgamma(0.5 * (nu + dim)) - lgamma(0.5 * nu) - 0.5 * dim * log(nu * 3.14159265358979323846);
}

/* L^-1 column by column. */
static void invert(size_t d, const double *l, double *to)
{
    memset(to, 0, d * d * sizeof *to);
    for (size_t c = 0; c < d; c++)
        for (size_t i = c; i < d; i++) {
            double sum = i == c;
            for (size_t k = c; k < i; k++)
                sum -= l[i * d + k] * to[k * d + c];
            to[i * d + c] = sum / l[i * d + i];
        }
}

static hl_status check(const hl_tmixture *m)
{
    double total = 0;
    bool good = m->parts > 0 && m->given < m->dim && m->nu > 0;
    for (size_t j = 0; j < m->parts && good; j++) {
        total += m->weight[j];
        good = m->weight[j] >= 0;
        for (size_t i = 0; i < m->dim && good; i++) {
            const double *row = m->factor + (j * m->dim + i) * m->dim;
            good = isfinite(m->mean[j * m->dim + i]) && row[i] > 0;
            for (size_t k = 0; k <= i && good; k++)
                good = isfinite(row[k]);
        }
    }
    if (good && fabs(total - 1) <= 1e-9)
        return HL_OK;
    return hl_fail(m->ctx, HL_ERR_INVALID,
                   "invalid mixture: the weights must add up to 1 and the factors must have a positive diagonal");
}

hl_status hl_tmixture_prepare(hl_tmixture *m)
{
    size_t d = m->dim;
    hl_status status = check(m);
    for (size_t j = 0; j < m->parts && status == HL_OK; j++) {
        const double *l = m->factor + j * d * d;
        double *inverse = m->inverse + j * d * d, log_weight = log(m->weight[j]), volume = 0;
        invert(d, l, inverse);
        m->constant[2 * j + 1] = log_weight;
        for (size_t i = 0; i < d; i++) {
            double sum = 0;
            for (size_t k = 0; k <= i; k++)
                sum -= inverse[i * d + k] * m->mean[j * d + k];
            m->offset[j * d + i] = sum;
            volume += log(l[i * d + i]);
            if (i + 1 == m->given)
                m->constant[2 * j + 1] = log_weight + constant_of(m->nu, m->given) - volume;
        }
        m->constant[2 * j] = log_weight + constant_of(m->nu, d) - volume;
    }
    return status;
}

/* ---- densities ---- */

void hl_tmixture_part(const hl_tmixture *m, const hl_kernels *k, size_t j, size_t columns, size_t panels,
                      const double *x, size_t x_panel, double *z, double *q, double *density)
{
    size_t d = m->dim, rows = panels * HL_LANES;
    hl_gemm g = { .panels = panels,
                  .out = columns,
                  .in = columns,
                  .w = m->inverse + j * d * d,
                  .ldw = d,
                  .x = x,
                  .x_panel = x_panel,
                  .init = { m->offset + j * d, 1, 1 },
                  .y = z,
                  .y_panel = columns * HL_LANES };
    k->gemm(&g);
    for (size_t p = 0; p < panels; p++) {
        const double *from = z + p * columns * HL_LANES;
        double sum[HL_LANES] = { 0 };
        for (size_t i = 0; i < columns; i++)
            for (size_t lane = 0; lane < HL_LANES; lane++)
                sum[lane] += from[i * HL_LANES + lane] * from[i * HL_LANES + lane];
        memcpy(q + p * HL_LANES, sum, sizeof sum);
    }
    double constant = m->constant[2 * j + (columns < d)];
    if (isinf(m->nu)) {
        for (size_t r = 0; r < rows; r++)
            density[r] = constant - 0.5 * q[r];
        return;
    }
    double half = 0.5 * (m->nu + (double)columns), inverse = 1 / m->nu;
    for (size_t r = 0; r < rows; r++)
        density[r] = q[r] * inverse;
    k->unary[HL_UN_LOG1P](panels, density, density);
    for (size_t r = 0; r < rows; r++)
        density[r] = constant - half * density[r];
}

void hl_tmixture_normalise(const hl_kernels *k, size_t parts, double *density, size_t pitch, double *work,
                           double *total)
{
    double most[HL_LANES], sum[HL_LANES] = { 0 };
    memcpy(most, density, sizeof most);
    for (size_t j = 1; j < parts; j++)
        for (size_t lane = 0; lane < HL_LANES; lane++)
            most[lane] = density[j * pitch + lane] > most[lane] ? density[j * pitch + lane] : most[lane];
    for (size_t j = 0; j < parts; j++)
        for (size_t lane = 0; lane < HL_LANES; lane++)
            work[j * HL_LANES + lane] = density[j * pitch + lane] - most[lane];
    k->unary[HL_UN_EXP](parts, work, work);
    for (size_t j = 0; j < parts; j++)
        for (size_t lane = 0; lane < HL_LANES; lane++)
            sum[lane] += work[j * HL_LANES + lane];
    for (size_t lane = 0; lane < HL_LANES; lane++)
        total[lane] = most[lane] + log(sum[lane]);
    for (size_t lane = 0; lane < HL_LANES; lane++)
        sum[lane] = 1 / sum[lane];
    for (size_t j = 0; j < parts; j++)
        for (size_t lane = 0; lane < HL_LANES; lane++)
            density[j * pitch + lane] = work[j * HL_LANES + lane] * sum[lane];
}

enum { BLOCK = 16, ROWS = BLOCK * HL_LANES }; /* panels and rows that a thread takes at once */

typedef struct scoring {
    const hl_tmixture *m;
    const hl_kernels *kernels;
    size_t rows, size; /* size: of a thread's work */
    const double *x;
    double *logp, *work;
} scoring;

static size_t scoring_size(const hl_tmixture *m)
{
    return hl_size_add(hl_size_mul(2 * ROWS, m->dim), hl_size_mul(m->parts, ROWS + HL_LANES) + 2 * ROWS);
}

/* Log-density of the first `columns` columns of a block, to `to`. */
static void score_columns(const scoring *s, size_t columns, size_t panels, const double *x, double *rest, double *to)
{
    const hl_tmixture *m = s->m;
    double *z = rest, *q = z + ROWS * m->dim, *density = q + ROWS, *work = density + m->parts * ROWS;
    for (size_t j = 0; j < m->parts; j++)
        hl_tmixture_part(m, s->kernels, j, columns, panels, x, m->dim * HL_LANES, z, q, density + j * ROWS);
    for (size_t p = 0; p < panels; p++)
        hl_tmixture_normalise(s->kernels, m->parts, density + p * HL_LANES, ROWS, work, to + p * HL_LANES);
}

static void score_blocks(void *user, int thread)
{
    const scoring *s = user;
    const hl_tmixture *m = s->m;
    size_t threads = (size_t)hl_team_size(m->ctx->team);
    double *x = s->work + (size_t)thread * s->size, *rest = x + ROWS * m->dim, total[ROWS];
    for (size_t first = (size_t)thread * ROWS; first < s->rows; first += threads * ROWS) {
        size_t count = s->rows - first < ROWS ? s->rows - first : ROWS, panels = (count + HL_LANES - 1) / HL_LANES;
        for (size_t p = 0; p < panels; p++) {
            size_t left = count - p * HL_LANES;
            s->kernels->rows_to_panel(left < HL_LANES ? left : HL_LANES, m->dim, s->x + (first + p * HL_LANES) * m->dim,
                                      m->dim, x + p * m->dim * HL_LANES);
        }
        score_columns(s, m->dim, panels, x, rest, total);
        memcpy(s->logp + first, total, count * sizeof *total);
        if (m->given)
            score_columns(s, m->given, panels, x, rest, total);
        for (size_t r = 0; r < count; r++) {
            bool finite = true;
            for (size_t i = 0; i < m->dim; i++)
                finite = finite && isfinite(s->x[(first + r) * m->dim + i]);
            s->logp[first + r] = finite ? s->logp[first + r] - (m->given ? total[r] : 0) : NAN;
        }
    }
}

hl_status hl_tmixture_logp(const hl_tmixture *m, size_t rows, const double *x, double *logp)
{
    scoring s = { .m = m, .kernels = hl_kernels_pick(HL_F64, NULL), .rows = rows, .x = x, .logp = logp };
    s.size = scoring_size(m);
    s.work = hl_calloc(m->ctx, hl_size_mul(s.size, (size_t)hl_team_size(m->ctx->team)), sizeof *s.work);
    if (!s.work)
        return HL_ERR_NOMEM;
    hl_team_run(m->ctx->team, score_blocks, &s);
    hl_free(m->ctx, s.work);
    return HL_OK;
}

/* ---- samples ---- */

/* A gamma variate of shape a >= 1/2 and scale 1 (Marsaglia and Tsang 2000), from the numbers of one index. */
static double gamma_variate(double a, uint64_t seed, uint64_t index)
{
    double boost = a < 1 ? pow(hl_random_uniform(seed, STREAM_GAMMA, index * 2 * GAMMA_TRIES), 1 / a) : 1;
    double d = (a < 1 ? a + 1 : a) - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (uint64_t i = 1; i < GAMMA_TRIES; i++) {
        uint64_t at = index * 2 * GAMMA_TRIES + 2 * i;
        double x = hl_random_normal(seed, STREAM_GAMMA, at), v = 1 + c * x;
        if (v > 0 &&
            log(hl_random_uniform(seed, STREAM_GAMMA, at + 1)) < 0.5 * x * x + d * (1 - v * v * v + 3 * log(v)))
            return boost * d * v * v * v;
    }
    return boost * d; /* with a probability of about 0.05^63 */
}

/* The part that sample `index` comes from: by weight, or by the parts' densities of the given columns. */
static size_t choose_part(const hl_tmixture *m, uint64_t seed, uint64_t index, const double *x, double *given_square)
{
    double u = hl_random_uniform(seed, STREAM_PART, index), best = -INFINITY, total = 0;
    size_t d = m->dim, chosen = 0;
    for (int pass = 0; pass < 3; pass++) { /* the largest log, the sum, the part where the running sum passes u */
        double sum = 0;
        for (size_t j = 0; j < m->parts; j++) {
            double q = 0, log_share;
            for (size_t i = 0; i < m->given; i++) {
                double z = m->offset[j * d + i];
                for (size_t k = 0; k <= i; k++)
                    z += m->inverse[(j * d + i) * d + k] * x[k];
                q += z * z;
            }
            double half = 0.5 * (m->nu + (double)m->given);
            log_share = m->constant[2 * j + 1] - (!m->given ? 0 : isinf(m->nu) ? 0.5 * q : half * log1p(q / m->nu));
            best = pass == 0 ? fmax(best, log_share) : best;
            double share = pass ? exp(log_share - best) : 0;
            sum += share;
            if (pass == 2 && share > 0) {
                chosen = j;
                *given_square = q;
                if (sum >= u * total)
                    return chosen;
            }
        }
        total = sum;
    }
    return chosen;
}

void hl_tmixture_sample(const hl_tmixture *m, uint64_t seed, uint64_t index, double *x)
{
    double q = 0, scale = 1, nu = m->nu + (double)m->given;
    size_t d = m->dim, j = choose_part(m, seed, index, x, &q);
    const double *l = m->factor + j * d * d, *inverse = m->inverse + j * d * d, *mean = m->mean + j * d;
    if (!isinf(m->nu))
        scale = sqrt((m->nu + q) / nu * 0.5 * nu / gamma_variate(0.5 * nu, seed, index));
    for (size_t i = m->given; i < d; i++)
        x[i] = scale * hl_random_normal(seed, STREAM_NORMAL, index * d + i);
    for (size_t i = d; i-- > m->given;) { /* x = m + L z, where z of the given columns is that of their values */
        double sum = mean[i];
        for (size_t k = m->given; k <= i; k++)
            sum += l[i * d + k] * x[k];
        for (size_t k = 0; k < m->given; k++)
            for (size_t c = 0; c <= k; c++)
                sum += l[i * d + k] * inverse[k * d + c] * (x[c] - mean[c]);
        x[i] = sum;
    }
}
