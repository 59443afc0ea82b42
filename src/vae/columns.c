/* columns.c - names of columns, and the units of real-valued data. An autoencoder with the Gaussian likelihood sees (x - shift) / scale; what it says of x is in the
 * units of the data again. And the simple densities that a trained one is compared with. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "vae/rows.h"

#define LOG_2PI 1.83787706640934548356
static const double LEAST_SCALE = 1e-140, MOST_SCALE = 1e140; /* whose squares are numbers, with room */
enum { MOST_COVARIANCES = 256 };                              /* columns of a normal distribution that is compared */

/* ---- names ---- */

const char **hl_names_copy(hl_context *ctx, size_t count, const char *const *names)
{
    size_t bytes = hl_size_mul(count, sizeof *names);
    for (size_t i = 0; i < count; i++)
        bytes = hl_size_add(bytes, strlen(names[i]) + 1);
    const char **copy = hl_alloc(ctx, bytes);
    char *to = copy ? (char *)(copy + count) : NULL;
    for (size_t i = 0; copy && i < count; i++) {
        copy[i] = strcpy(to, names[i]);
        to += strlen(names[i]) + 1;
    }
    return copy;
}

hl_status hl_vae_set_names(hl_vae *v, const char *const *names)
{
    if (!v)
        return HL_ERR_INVALID;
    for (size_t i = 0; names && i < v->dim; i++)
        if (!names[i])
            return hl_fail(v->ctx, HL_ERR_INVALID, "hl_vae_set_names: the name of column %zu is NULL", i + 1);
    const char **copy = names ? hl_names_copy(v->ctx, v->dim, names) : NULL;
    if (names && !copy)
        return HL_ERR_NOMEM;
    hl_free(v->ctx, v->names);
    v->names = copy;
    return HL_OK;
}

const char *hl_vae_name(const hl_vae *v, size_t column)
{
    return v && v->names && column < v->dim ? v->names[column] : NULL;
}

/* ---- units ---- */

hl_status hl_vae_set_columns(hl_vae *v, const double *shift, const double *scale)
{
    if (!v)
        return HL_ERR_INVALID;
    if (!shift || !scale || !v->gaussian)
        return hl_fail(v->ctx, HL_ERR_INVALID,
                       "hl_vae_set_columns: shift and scale are needed, and the likelihood must be gaussian");
    double log_scale = 0;
    for (size_t i = 0; i < v->dim; i++) {
        if (!isfinite(shift[i]) || !isfinite(scale[i]) || !(scale[i] > 0))
            return hl_fail(v->ctx, HL_ERR_INVALID,
                           "column %zu: its mean is %g and its scale %g; they must be finite, and the scale positive",
                           i + 1, shift[i], scale[i]);
        log_scale += log(scale[i]);
    }
    double *both = hl_calloc(v->ctx, hl_size_mul(2, v->dim), sizeof *both);
    if (!both)
        return HL_ERR_NOMEM;
    memcpy(both, shift, v->dim * sizeof *both);
    memcpy(both + v->dim, scale, v->dim * sizeof *both);
    hl_free(v->ctx, v->shift);
    v->shift = both;
    v->scale = both + v->dim;
    v->log_scale = log_scale;
    return HL_OK;
}

void hl_vae_columns(const hl_vae *v, const double **shift, const double **scale)
{
    if (shift)
        *shift = v ? v->shift : NULL;
    if (scale)
        *scale = v ? v->scale : NULL;
}

double hl_vae_value(const hl_vae_rows *d, size_t at)
{
    return d->values ? d->values[at] : d->gray ? d->bytes[at] / 255.0 : d->bytes[at];
}

/* Mean and deviation of a column over rows first, first + step, ..., relative to the first value: the deviation of a constant column is 0
 * to the bit. Is it constant? */
static bool moments(size_t dim, const hl_vae_part_of *p, size_t column, double *mean, double *deviation)
{
    double n = 0, sum = 0, square = 0, origin = hl_vae_value(p->rows, p->first * dim + column);
    bool constant = true;
    for (size_t r = p->first; r < p->rows->rows; r += p->step, n++) {
        double z = hl_vae_value(p->rows, r * dim + column) - origin;
        sum += z;
        constant = constant && z == 0;
    }
    for (size_t r = p->first; r < p->rows->rows; r += p->step) {
        double z = hl_vae_value(p->rows, r * dim + column) - origin - sum / n;
        square += z * z;
    }
    *mean = origin + sum / n;
    *deviation = sqrt(square / n);
    return constant;
}

/* Columns of a table have scales of their own; pixels have one, or pixels that are nearly always the same would weigh most. */
hl_status hl_vae_choose_columns(hl_vae *v, const hl_vae_rows *rows, size_t *constants, size_t *first)
{
    double *shift = hl_calloc(v->ctx, hl_size_mul(2, v->dim), sizeof *shift), *scale, square = 0;
    hl_status status = HL_OK;
    if (!shift)
        return HL_ERR_NOMEM;
    scale = shift + v->dim;
    for (size_t i = 0; i < v->dim && status == HL_OK; i++) {
        bool constant = moments(v->dim, &(hl_vae_part_of){ rows, 0, 1 }, i, &shift[i], &scale[i]);
        if (!constant && !(scale[i] > LEAST_SCALE && scale[i] < MOST_SCALE))
            status = hl_fail(v->ctx, HL_ERR_INVALID,
                             "column %zu is too small or too large to compute with: its standard deviation is %g; "
                             "rescale it",
                             i + 1, scale[i]);
        square += scale[i] * scale[i] / (double)v->dim;
        if (constant && !v->spec.image[1] && (*constants)++ == 0) /* pixels may well be constant */
            *first = i;
    }
    for (size_t i = 0; i < v->dim; i++) {
        if (v->spec.image[1])
            scale[i] = sqrt(square);
        scale[i] = scale[i] != 0 ? scale[i] : 1; /* a constant column */
    }
    if (status == HL_OK)
        status = hl_vae_set_columns(v, shift, scale);
    hl_free(v->ctx, shift);
    return status;
}

/* ---- simple densities ---- */

/* Of column i, as the autoencoder has it. */
static double least_variance(const hl_vae *v, size_t i)
{
    double least = HL_VAE_LEAST_DEVIATION * (v->scale ? v->scale[i] : 1);
    return least * least;
}

double hl_vae_independent(const hl_vae *v, const hl_vae_part_of *from, const hl_vae_part_of *judged)
{
    double sum = 0, n = 0, rows = 0;
    for (size_t r = judged->first; r < judged->rows->rows; r += judged->step)
        n++;
    for (size_t r = from->first; r < from->rows->rows; r += from->step)
        rows++;
    for (size_t i = 0; i < v->dim; i++) {
        double mean, deviation;
        moments(v->dim, from, i, &mean, &deviation);
        double p = (mean * rows + 0.5) / (rows + 1), variance = fmax(deviation * deviation, least_variance(v, i));
        for (size_t r = judged->first; r < judged->rows->rows; r += judged->step) {
            double x = hl_vae_value(judged->rows, r * v->dim + i), z = x - mean;
            sum += v->gaussian ? -0.5 * (z * z / variance + LOG_2PI + log(variance)) : x * log(p) + (1 - x) * log1p(-p);
        }
    }
    return sum / n;
}

/* Mean log p of a normal distribution with all covariances; -inf if they are not positive definite. `work`: dim^2 + 2 dim. */
static double correlated(const hl_vae *v, const hl_vae_rows *from, const hl_vae_rows *judged, double *work)
{
    size_t d = v->dim;
    double *mean = work, *z = mean + d, *a = z + d, n = (double)from->rows, sum = 0, log_det = 0, unused;
    for (size_t i = 0; i < d; i++)
        moments(d, &(hl_vae_part_of){ from, 0, 1 }, i, &mean[i], &unused);
    memset(a, 0, d * d * sizeof *a);
    for (size_t r = 0; r < from->rows; r++) {
        for (size_t i = 0; i < d; i++)
            z[i] = hl_vae_value(from, r * d + i) - mean[i];
        for (size_t i = 0; i < d; i++)
            hl_axpy(i + 1, z[i] / n, z, a + i * d);
    }
    for (size_t i = 0; i < d; i++) /* as of independent columns: a constant one has the least variance */
        a[i * d + i] = fmax(a[i * d + i], least_variance(v, i));
    if (!(hl_cholesky(d, a, 0) > 1e-10))
        return -INFINITY;
    for (size_t i = 0; i < d; i++)
        log_det += log(a[i * d + i]);
    for (size_t r = 0; r < judged->rows; r++) {
        for (size_t i = 0; i < d; i++)
            z[i] = hl_vae_value(judged, r * d + i) - mean[i];
        hl_solve_lower(d, a, d, z);
        sum -= 0.5 * hl_dot(d, z, z);
    }
    return sum / (double)judged->rows - log_det - 0.5 * (double)d * LOG_2PI;
}

hl_status hl_vae_simple(const hl_vae *v, const hl_vae_rows *from, const hl_vae_rows *judged, double *log_p)
{
    *log_p = hl_vae_independent(v, &(hl_vae_part_of){ from, 0, 1 }, &(hl_vae_part_of){ judged, 0, 1 });
    if (!v->gaussian || v->dim > MOST_COVARIANCES || from->rows < 2 * v->dim)
        return HL_OK;
    double *work = hl_alloc(v->ctx, hl_size_mul(v->dim * (v->dim + 2), sizeof *work));
    if (!work)
        return HL_ERR_NOMEM;
    *log_p = fmax(*log_p, correlated(v, from, judged, work));
    hl_free(v->ctx, work);
    return HL_OK;
}
