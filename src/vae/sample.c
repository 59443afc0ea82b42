/* sample.c - rows to latent values and back. */
#include <math.h>
#include <string.h>

#include "exec/plan.h"
#include "vae/rows.h"

enum { CHUNK = 256, STREAM_DRAW = 63 };

/* Rows of `width` values of which one is not finite are no result. */
static hl_status check_finite(const hl_vae *v, const char *what, size_t first, size_t rows, size_t width,
                              const double *x)
{
    for (size_t i = 0; i < rows * width; i++)
        if (!isfinite(x[i]))
            return hl_fail(v->ctx, HL_ERR_NOT_FINITE, "row %zu: %s is not finite", first + i / width + 1, what);
    return HL_OK;
}

hl_status hl_vae_decode(hl_vae *v, size_t rows, const double *z, double *mean)
{
    if (!v)
        return HL_ERR_INVALID;
    if (rows && (!z || !mean))
        return hl_fail(v->ctx, HL_ERR_INVALID, "hl_vae_decode: z or the result is NULL");
    hl_status status = hl_vae_compile(v);
    for (size_t at = 0, n; at < rows && status == HL_OK; at += n) {
        n = rows - at < CHUNK ? rows - at : CHUNK;
        hl_execute_rows(v->plans.mean, n, &(hl_row_in){ .p = z + at * v->spec.latent, .pitch = v->spec.latent },
                        hl_params_values(v->params), &(hl_row_out){ .p = mean + at * v->dim, .pitch = v->dim });
        for (size_t i = at * v->dim; i < (at + n) * v->dim && v->scale; i++)
            mean[i] = v->shift[i % v->dim] + v->scale[i % v->dim] * mean[i];
        status = check_finite(v, "what is decoded", at, n, v->dim, mean + at * v->dim);
        if (status == HL_OK)
            status = hl_check_stop(v->ctx);
    }
    return status;
}

hl_status hl_vae_sample(hl_vae *v, size_t rows, uint64_t seed, double *z, double *mean)
{
    if (!v)
        return HL_ERR_INVALID;
    size_t count = hl_size_mul(rows, v->spec.latent);
    double *own = z ? z : hl_calloc(v->ctx, count, sizeof *own);
    if (!own)
        return HL_ERR_NOMEM;
    hl_random_normals(seed, 0x7a, 0, count, own);
    hl_status status = mean ? hl_vae_decode(v, rows, own, mean) : HL_OK;
    if (!z)
        hl_free(v->ctx, own);
    return status;
}

/* What a chunk of rows leaves behind; any may be NULL. */
typedef struct wanted {
    double *mean, *z, *log_q, *log_joint;
} wanted;

static void keep(const hl_vae_runner *r, size_t at, size_t n, const wanted *w)
{
    size_t latent = r->vae->spec.latent;
    if (w->mean)
        memcpy(w->mean + at * latent, r->piece[0], n * latent * sizeof *w->mean);
    if (w->z)
        memcpy(w->z + at * latent, r->z, n * latent * sizeof *w->z);
    for (size_t i = 0; i < n && w->log_q; i++)
        w->log_q[at + i] = r->log_q0[i] - r->log_det[i];
    for (size_t i = 0; i < n && w->log_joint; i++)
        w->log_joint[at + i] = r->log_px[i] + r->log_pz[i];
}

/* One sample for each row, of given noise or of noise by the seed. */
static hl_status push(hl_vae *v, const hl_vae_rows *rows, uint64_t seed, const double *noise, const wanted *w)
{
    hl_vae_runner *r = NULL;
    hl_status status = hl_vae_check_rows(v, rows);
    size_t latent = v->spec.latent;
    if (status == HL_OK)
        status = hl_vae_runner_create(v, CHUNK, &r);
    if (status == HL_OK)
        status = hl_vae_runner_set_solver(r, v->spec.steps, HL_VAE_TOLERANCE);
    for (size_t at = 0, n; status == HL_OK && at < rows->rows; at += n) {
        n = rows->rows - at < CHUNK ? rows->rows - at : CHUNK;
        hl_vae_runner_encode(r, rows, at, n);
        hl_vae_runner_choose(r, &(hl_vae_pairs){ .count = n, .samples = 1 }, seed, seed);
        if (noise)
            memcpy(r->noise, noise + at * latent, n * latent * sizeof *noise);
        status = hl_vae_runner_flow(r, n);
        if (status == HL_OK && w->log_joint)
            hl_vae_runner_decode(r, n);
        if (status == HL_OK)
            keep(r, at, n, w);
        if (status == HL_OK)
            status = check_finite(v, "the code", at, n, latent, r->piece[0]);
        if (status == HL_OK)
            status = check_finite(v, "the code", at, n, latent, r->z);
    }
    hl_vae_runner_free(r);
    return status;
}

hl_status hl_vae_encode(hl_vae *v, const hl_vae_rows *rows, uint64_t seed, double *mean, double *z)
{
    return v ? push(v, rows, seed, NULL, &(wanted){ .mean = mean, .z = z }) : HL_ERR_INVALID;
}

hl_status hl_vae_push(hl_vae *v, const hl_vae_rows *rows, const double *noise, double *z, double *log_q,
                      double *log_joint)
{
    if (!v)
        return HL_ERR_INVALID;
    if (!noise)
        return hl_fail(v->ctx, HL_ERR_INVALID, "hl_vae_push: the noise is NULL");
    return push(v, rows, 0, noise, &(wanted){ .z = z, .log_q = log_q, .log_joint = log_joint });
}

/* Deviation of value i of x about the decoder's output. */
static double deviation_of(const hl_vae *v, size_t i)
{
    size_t at = hl_params_find(v->params, "decoder.log_deviation");
    bool one = v->spec.deviations == 1;
    double value = -INFINITY;
    if (at < v->params->count)
        hl_from_precision(v->spec.dtype, 1,
                          (const char *)v->params->param[at].values + (one ? 0 : i) * hl_dtype_size(v->spec.dtype),
                          &value);
    return (exp(value) + (one ? 0 : HL_VAE_LEAST_DEVIATION)) * (v->scale ? v->scale[i] : 1);
}

hl_status hl_vae_draw(hl_vae *v, size_t rows, uint64_t seed, double *x)
{
    if (!v)
        return HL_ERR_INVALID;
    if (rows && !x)
        return hl_fail(v->ctx, HL_ERR_INVALID, "hl_vae_draw: x is missing");
    for (size_t j = 0; j < v->dim; j++) {
        double deviation = v->gaussian ? deviation_of(v, j) : 0;
        for (size_t i = j; i < rows * v->dim; i += v->dim)
            x[i] = v->gaussian ? x[i] + deviation * hl_random_normal(seed, STREAM_DRAW, i)
                               : hl_random_uniform(seed, STREAM_DRAW, i) < x[i];
    }
    return HL_OK;
}
