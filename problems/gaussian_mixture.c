/* gaussian_mixture.c - EM from k-means on standardised columns. */
#include "gaussian_mixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { MEANS_STEPS = 10, EM_STEPS = 100, ROWS_PER_PART = 4, MOST_PARTS = 64 };
static const double GAIN = 1e-3, RIDGE = 1e-6; /* those of scikit-learn */
static const double log_two_pi = 1.8378770664093453;

typedef struct mixture {
    size_t dim, parts;
    double *weight, *mean, *factor; /* [parts], [parts][dim], [parts][dim][dim]: Cholesky's, lower */
    double *constant;               /* [parts] */
} mixture;

static bool create(mixture *m, size_t dim, size_t parts)
{
    *m = (mixture){ .dim = dim, .parts = parts };
    m->weight = calloc(parts, (2 + dim + dim * dim) * sizeof *m->weight);
    if (!m->weight)
        return false;
    m->constant = m->weight + parts;
    m->mean = m->constant + parts;
    m->factor = m->mean + parts * dim;
    return true;
}

/* Cholesky's factor in place; false if there is none. */
static bool factorise(size_t d, double *s)
{
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = s[i * d + j];
            for (size_t k = 0; k < j; k++)
                sum -= s[i * d + k] * s[j * d + k];
            if (i == j && !(sum > 0))
                return false;
            s[i * d + j] = i == j ? sqrt(sum) : sum / s[j * d + j];
        }
    return true;
}

/* Weighted log-densities of the parts at a row, to `to`; the log of their sum. `z` has dim values. */
static double score(const mixture *m, const double *x, double *z, double *to)
{
    size_t d = m->dim;
    double most = -INFINITY, sum = 0;
    for (size_t j = 0; j < m->parts; j++) {
        const double *l = m->factor + j * d * d, *mean = m->mean + j * d;
        double square = 0;
        for (size_t i = 0; i < d; i++) {
            double rest = x[i] - mean[i];
            for (size_t k = 0; k < i; k++)
                rest -= l[i * d + k] * z[k];
            z[i] = rest / l[i * d + i];
            square += z[i] * z[i];
        }
        to[j] = m->constant[j] - 0.5 * square;
        most = fmax(most, to[j]);
    }
    for (size_t j = 0; j < m->parts; j++)
        sum += exp(to[j] - most);
    return most + log(sum);
}

/* Covariances with their ridge become factors. */
static bool finish(mixture *m)
{
    size_t d = m->dim;
    for (size_t j = 0; j < m->parts; j++) {
        double *s = m->factor + j * d * d;
        for (size_t i = 0; i < d; i++)
            s[i * d + i] += RIDGE;
        if (!factorise(d, s))
            return false;
        m->constant[j] = log(m->weight[j]) - 0.5 * (double)d * log_two_pi;
        for (size_t i = 0; i < d; i++)
            m->constant[j] -= log(s[i * d + i]);
    }
    return true;
}

/* Weights, means and covariances from shares [rows][parts]. */
static bool maximise(mixture *m, gaussian_rows rows, const double *share)
{
    size_t d = m->dim;
    memset(m->weight, 0, m->parts * sizeof *m->weight);
    memset(m->mean, 0, m->parts * (d + d * d) * sizeof *m->mean);
    for (size_t r = 0; r < rows.rows; r++)
        for (size_t j = 0; j < m->parts; j++) {
            double s = share[r * m->parts + j];
            if (s < 1e-12)
                continue;
            m->weight[j] += s;
            for (size_t i = 0; i < d; i++)
                m->mean[j * d + i] += s * rows.x[r * d + i];
        }
    for (size_t j = 0; j < m->parts; j++)
        for (size_t i = 0; i < d; i++)
            m->mean[j * d + i] /= m->weight[j] + 1e-300;
    for (size_t r = 0; r < rows.rows; r++)
        for (size_t j = 0; j < m->parts; j++) {
            double s = share[r * m->parts + j] / (m->weight[j] + 1e-300), *to = m->factor + j * d * d;
            if (share[r * m->parts + j] < 1e-12)
                continue;
            for (size_t i = 0; i < d; i++)
                for (size_t k = 0; k <= i; k++)
                    to[i * d + k] +=
                        s * (rows.x[r * d + i] - m->mean[j * d + i]) * (rows.x[r * d + k] - m->mean[j * d + k]);
        }
    for (size_t j = 0; j < m->parts; j++)
        m->weight[j] = fmax(m->weight[j] / (double)rows.rows, 1e-12);
    return finish(m);
}

static size_t nearest(const double *x, const double *centre, size_t parts, size_t d, double *least)
{
    size_t found = 0;
    *least = INFINITY;
    for (size_t j = 0; j < parts; j++) {
        double square = 0;
        for (size_t i = 0; i < d; i++)
            square += (x[i] - centre[j * d + i]) * (x[i] - centre[j * d + i]);
        if (square < *least) {
            *least = square;
            found = j;
        }
    }
    return found;
}

/* k-means++ and Lloyd's steps; shares of 1 and 0. `distance` has rows + dim values. */
static void cluster(const mixture *m, gaussian_rows rows, double *share, double *distance)
{
    size_t d = m->dim, parts = m->parts;
    double *centre = m->mean, *sum = distance + rows.rows;
    for (size_t j = 0; j < parts; j++) {
        double total = 0, before = 0;
        for (size_t r = 0; r < rows.rows; r++) {
            double least = 1;
            if (j)
                nearest(rows.x + r * d, centre, j, d, &least);
            total += distance[r] = least;
        }
        size_t chosen = 0;
        for (double u = total * hl_random_uniform(77, 0, j); chosen + 1 < rows.rows && before + distance[chosen] < u;
             chosen++)
            before += distance[chosen];
        memcpy(centre + j * d, rows.x + chosen * d, d * sizeof *centre);
    }
    for (int step = 0; step < MEANS_STEPS; step++) {
        memset(share, 0, rows.rows * parts * sizeof *share);
        for (size_t r = 0; r < rows.rows; r++)
            share[r * parts + nearest(rows.x + r * d, centre, parts, d, &distance[r])] = 1;
        for (size_t j = 0; j < parts; j++) {
            double count = 0;
            memset(sum, 0, d * sizeof *sum);
            for (size_t r = 0; r < rows.rows; r++)
                if (share[r * parts + j] > 0) {
                    count++;
                    for (size_t i = 0; i < d; i++)
                        sum[i] += rows.x[r * d + i];
                }
            for (size_t i = 0; i < d && count > 0; i++)
                centre[j * d + i] = sum[i] / count;
        }
    }
}

/* False if it degenerates. `share` has rows x parts values, `work` rows + parts + dim. */
static bool fit(mixture *m, gaussian_rows rows, double *share, double *work)
{
    double last = -INFINITY;
    cluster(m, rows, share, work);
    bool good = maximise(m, rows, share);
    for (int step = 0; step < EM_STEPS && good; step++) {
        double mean = 0;
        for (size_t r = 0; r < rows.rows; r++) {
            double *own = share + r * m->parts, all = score(m, rows.x + r * m->dim, work, own);
            mean += all / (double)rows.rows;
            for (size_t j = 0; j < m->parts; j++)
                own[j] = exp(own[j] - all);
        }
        good = isfinite(mean) && maximise(m, rows, share);
        if (mean - last < GAIN)
            break;
        last = mean;
    }
    return good;
}

static double mean_of(const mixture *m, gaussian_rows rows, double *work, double *logp)
{
    double mean = 0;
    for (size_t r = 0; r < rows.rows; r++) {
        double own = score(m, rows.x + r * m->dim, work, work + m->dim);
        if (logp)
            logp[r] = own;
        mean += own / (double)rows.rows;
    }
    return mean;
}

/* Sizes until two in a row are no better; standardised rows. */
static bool choose(size_t dim, const gaussian_rows rows[3], double *share, double *work, double *logp, double *normal,
                   size_t *parts)
{
    static const size_t sizes[] = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, MOST_PARTS };
    double best = -INFINITY;
    size_t worse = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes && worse < 2; i++) {
        mixture m;
        if (i && sizes[i] * ROWS_PER_PART > rows[0].rows)
            break;
        if (!create(&m, dim, sizes[i]))
            return false;
        double held = fit(&m, rows[0], share, work) ? mean_of(&m, rows[1], work, NULL) : -INFINITY;
        worse = held > best ? 0 : worse + 1;
        if (held > best) {
            best = held;
            *parts = sizes[i];
            mean_of(&m, rows[2], work, logp);
        }
        if (i == 0)
            memcpy(normal, logp, rows[2].rows * sizeof *normal);
        free(m.weight);
    }
    return true;
}

bool gaussian_mixture(size_t dim, gaussian_rows train, gaussian_rows valid, gaussian_rows test, double *logp,
                      double *normal, size_t *parts)
{
    const gaussian_rows given[3] = { train, valid, test };
    gaussian_rows rows[3];
    double *copy[3] = { NULL }, *share = calloc(train.rows, MOST_PARTS * sizeof *share), scale = 0;
    double *work = calloc(train.rows + MOST_PARTS + dim, sizeof *work);
    bool good = share && work;
    for (size_t s = 0; s < 3 && good; s++) {
        copy[s] = calloc(given[s].rows * dim, sizeof **copy);
        rows[s] = (gaussian_rows){ given[s].rows, copy[s] };
        good = copy[s];
    }
    for (size_t i = 0; i < dim && good; i++) {
        double mean = 0, square = 0;
        for (size_t r = 0; r < train.rows; r++)
            mean += train.x[r * dim + i] / (double)train.rows;
        for (size_t r = 0; r < train.rows; r++)
            square += pow(train.x[r * dim + i] - mean, 2) / (double)train.rows;
        scale += 0.5 * log(square);
        for (size_t s = 0; s < 3; s++)
            for (size_t r = 0; r < given[s].rows; r++)
                copy[s][r * dim + i] = (given[s].x[r * dim + i] - mean) / sqrt(square);
    }
    good = good && choose(dim, rows, share, work, logp, normal, parts);
    for (size_t r = 0; r < test.rows && good; r++) {
        logp[r] -= scale;
        normal[r] -= scale;
    }
    for (size_t s = 0; s < 3; s++)
        free(copy[s]);
    free(share);
    free(work);
    return good;
}
