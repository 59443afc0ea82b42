/* runner.c - blocks of rows and chunks of (row, sample) pairs through the plans of evaluation. Memory is that of one block and one
 * chunk, whatever the number of samples. */
#include <string.h>

#include "vae/rows.h"

/* ---- buffers ---- */

static void *take(hl_vae_runner *r, size_t width)
{
    return hl_calloc(r->vae->ctx, hl_size_mul(r->chunk, width), hl_dtype_size(r->vae->spec.dtype));
}

static hl_status make_buffers(hl_vae_runner *r)
{
    const hl_vae *v = r->vae;
    size_t latent = v->spec.latent;
    void **wide[] = { &r->noise, &r->probe, &r->z, &r->z_next };
    void **narrow[] = { &r->t, &r->h, &r->log_q0, &r->log_det, &r->log_next, &r->log_px, &r->log_pz };
    bool good = (r->x = take(r, v->dim)) && (r->pair_x = take(r, v->dim));
    for (size_t i = 0; good && i < sizeof wide / sizeof *wide; i++)
        good = (*wide[i] = take(r, latent));
    for (size_t i = 0; good && i < sizeof narrow / sizeof *narrow; i++)
        good = (*narrow[i] = take(r, 1));
    for (size_t i = 0; good && i < v->pieces; i++)
        good = (r->piece[i] = take(r, v->piece_size[i])) && (r->pair_piece[i] = take(r, v->piece_size[i]));
    good = good && (r->key = hl_calloc(v->ctx, r->chunk, sizeof *r->key)) &&
           (r->scratch = hl_calloc(v->ctx, hl_size_mul(r->chunk, latent), sizeof *r->scratch));
    return good ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_vae_runner_create(hl_vae *v, size_t chunk, hl_vae_runner **out)
{
    hl_status status = hl_vae_compile(v);
    *out = NULL;
    if (status != HL_OK)
        return status;
    hl_vae_runner *r = hl_calloc(v->ctx, 1, sizeof *r);
    if (!r)
        return HL_ERR_NOMEM;
    r->vae = v;
    r->chunk = chunk;
    status = make_buffers(r);
    if (status != HL_OK) {
        hl_vae_runner_free(r);
        return status;
    }
    *out = r;
    return HL_OK;
}

void hl_vae_runner_free(hl_vae_runner *r)
{
    if (!r)
        return;
    hl_context *ctx = r->vae->ctx;
    void *all[] = { r->x,      r->pair_x,  r->noise,    r->probe,  r->z,      r->z_next, r->t,      r->h,
                    r->log_q0, r->log_det, r->log_next, r->log_px, r->log_pz, r->key,    r->scratch };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hl_free(ctx, all[i]);
    for (size_t i = 0; i < HL_VAE_PIECES; i++) {
        hl_free(ctx, r->piece[i]);
        hl_free(ctx, r->pair_piece[i]);
    }
    hl_free(ctx, r);
}

double hl_vae_runner_get(const hl_vae_runner *r, const void *buffer, size_t i)
{
    return r->vae->spec.dtype == HL_F32 ? (double)((const float *)buffer)[i] : ((const double *)buffer)[i];
}

/* ---- the plans ---- */

static const void *const *values_of(const hl_vae_runner *r)
{
    return hl_params_values(r->vae->params);
}

hl_status hl_vae_runner_encode(hl_vae_runner *r, const hl_vae_rows *rows, size_t first, size_t count)
{
    enum { DATA_KEY = 0x6461 }; /* of gray values in evaluations: the same for every model */
    hl_vae_fetch(r->vae, rows, DATA_KEY, first, count, NULL, r->x);
    for (size_t i = 0; i < count; i++)
        r->key[i] = r->all_keys ? r->all_keys[first + i] : hl_vae_row_key(r->vae, rows, first + i);
    return hl_plan_run(r->vae->plans.encode, count, (const void *[]){ r->x }, values_of(r), r->piece);
}

static void copy_row(hl_dtype dtype, void *to, size_t at, const void *from, size_t row, size_t width)
{
    size_t bytes = width * hl_dtype_size(dtype);
    memcpy((char *)to + at * bytes, (const char *)from + row * bytes, bytes);
}

void hl_vae_runner_gather(hl_vae_runner *r, const hl_vae_pairs *p, uint64_t seed, uint64_t probe_seed)
{
    const hl_vae *v = r->vae;
    size_t latent = v->spec.latent;
    for (size_t i = 0; i < p->count; i++) {
        size_t row = (p->first + i) / p->samples, sample = (p->first + i) % p->samples;
        copy_row(v->spec.dtype, r->pair_x, i, r->x, row, v->dim);
        for (size_t k = 0; k < v->pieces; k++)
            copy_row(v->spec.dtype, r->pair_piece[k], i, r->piece[k], row, v->piece_size[k]);
        hl_random_normals(seed, r->key[row], sample * latent, latent, r->scratch + i * latent);
    }
    hl_to_precision(v->spec.dtype, p->count * latent, r->scratch, r->noise);
    for (size_t i = 0; v->hutchinson && i < p->count; i++) {
        size_t row = (p->first + i) / p->samples, sample = (p->first + i) % p->samples;
        for (size_t j = 0; j < latent; j++) {
            uint64_t bits = hl_random_bits(probe_seed, ~r->key[row], sample * latent + j);
            r->scratch[i * latent + j] = bits >> 63 ? 1 : -1;
        }
    }
    if (v->hutchinson)
        hl_to_precision(v->spec.dtype, p->count * latent, r->scratch, r->probe);
}

/* The inputs of a plan that takes the pieces and then others. */
static void set_inputs(const hl_vae_runner *r, const void **input, size_t others, const void *const *other)
{
    for (size_t i = 0; i < r->vae->pieces; i++)
        input[i] = r->pair_piece[i];
    for (size_t i = 0; i < others; i++)
        input[r->vae->pieces + i] = other[i];
}

static void fill(const hl_vae_runner *r, void *buffer, size_t count, double value)
{
    for (size_t i = 0; i < count; i++)
        hl_to_precision(r->vae->spec.dtype, 1, &value, (char *)buffer + i * hl_dtype_size(r->vae->spec.dtype));
}

hl_status hl_vae_runner_flow(hl_vae_runner *r, size_t count, size_t steps)
{
    const void *input[HL_VAE_PIECES + 5];
    set_inputs(r, input, 1, (const void *[]){ r->noise });
    hl_status status =
        hl_plan_run(r->vae->plans.start, count, input, values_of(r), (void *[]){ r->z, r->log_q0, r->log_det });
    fill(r, r->h, count, 1 / (double)steps);
    for (size_t i = 0; r->vae->plans.step && i < steps && status == HL_OK; i++) {
        fill(r, r->t, count, (double)i / (double)steps);
        set_inputs(r, input, 5, (const void *[]){ r->z, r->log_det, r->probe, r->t, r->h });
        status = hl_plan_run(r->vae->plans.step, count, input, values_of(r), (void *[]){ r->z_next, r->log_next });
        void *z = r->z, *log_det = r->log_det;
        r->z = r->z_next;
        r->z_next = z;
        r->log_det = r->log_next;
        r->log_next = log_det;
        if (status == HL_OK)
            status = hl_check_stop(r->vae->ctx);
    }
    return status;
}

hl_status hl_vae_runner_decode(hl_vae_runner *r, size_t count)
{
    return hl_plan_run(r->vae->plans.decode, count, (const void *[]){ r->pair_x, r->z }, values_of(r),
                       (void *[]){ r->log_px, r->log_pz });
}
