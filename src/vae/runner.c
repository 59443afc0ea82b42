/* runner.c - blocks of rows and chunks of (row, sample) pairs through the plans of evaluation. Memory is that of one block and one
 * chunk, whatever the number of samples. All values are double here, whatever the precision of the plans.
 *
 * A continuous flow is a system of latent + 1 values, z and log |det|, that every pair solves with steps of its own. */
#include <string.h>

#include "exec/plan.h"
#include "vae/rows.h"

enum { MOST_EVALUATIONS = 20000 };

/* ---- buffers ---- */

static double *take(hl_vae_runner *r, size_t width)
{
    return hl_calloc(r->vae->ctx, hl_size_mul(r->chunk, width), sizeof(double));
}

static hl_status make_buffers(hl_vae_runner *r)
{
    const hl_vae *v = r->vae;
    size_t latent = v->spec.latent;
    double **wide[] = { &r->noise, &r->probe, &r->z };
    double **narrow[] = { &r->log_q0, &r->log_det, &r->log_px, &r->log_pz, &r->time };
    bool good = (r->x = take(r, v->dim)) && (r->state = take(r, latent + 1));
    for (size_t i = 0; good && i < sizeof wide / sizeof *wide; i++)
        good = (*wide[i] = take(r, latent));
    for (size_t i = 0; good && i < sizeof narrow / sizeof *narrow; i++)
        good = (*narrow[i] = take(r, 1));
    for (size_t i = 0; good && i < v->pieces; i++)
        good = (r->piece[i] = take(r, v->piece_size[i]));
    good = good && (r->key = hl_calloc(v->ctx, r->chunk, sizeof *r->key)) &&
           (r->row = hl_calloc(v->ctx, r->chunk, sizeof *r->row)) &&
           (r->stage_row = hl_calloc(v->ctx, r->chunk, sizeof *r->stage_row)) &&
           (r->info = hl_calloc(v->ctx, r->chunk, sizeof *r->info));
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
    void *all[] = { r->x,      r->noise, r->probe, r->z,   r->log_q0, r->log_det,   r->log_px,
                    r->log_pz, r->state, r->time,  r->key, r->row,    r->stage_row, r->info };
    hl_ode_free(r->ode);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hl_free(ctx, all[i]);
    for (size_t i = 0; i < HL_VAE_PIECES; i++)
        hl_free(ctx, r->piece[i]);
    hl_free(ctx, r);
}

/* ---- the plans ---- */

static const void *const *values_of(const hl_vae_runner *r)
{
    return hl_params_values(r->vae->params);
}

void hl_vae_runner_encode(hl_vae_runner *r, const hl_vae_rows *rows, size_t first, size_t count)
{
    enum { DATA_KEY = 0x6461 }; /* of gray values in evaluations: the same for every model */
    const hl_vae *v = r->vae;
    hl_row_out out[HL_VAE_PIECES];
    hl_vae_fetch(v, rows, DATA_KEY, first, count, NULL, r->x);
    for (size_t i = 0; i < count; i++)
        r->key[i] = r->all_keys ? r->all_keys[first + i] : hl_vae_row_key(v, rows, first + i);
    for (size_t i = 0; i < v->pieces; i++)
        out[i] = (hl_row_out){ .p = r->piece[i], .pitch = v->piece_size[i] };
    hl_execute_rows(v->plans.encode, count, &(hl_row_in){ .p = r->x, .pitch = v->dim }, values_of(r), out);
}

void hl_vae_runner_choose(hl_vae_runner *r, const hl_vae_pairs *p, uint64_t seed, uint64_t probe_seed)
{
    const hl_vae *v = r->vae;
    size_t latent = v->spec.latent;
    for (size_t i = 0; i < p->count; i++) {
        size_t row = r->row[i] = (p->first + i) / p->samples, sample = (p->first + i) % p->samples;
        hl_random_normals(seed, r->key[row], sample * latent, latent, r->noise + i * latent);
        for (size_t j = 0; v->hutchinson && j < latent; j++) {
            uint64_t bits = hl_random_bits(probe_seed, ~r->key[row], sample * latent + j);
            r->probe[i * latent + j] = bits >> 63 ? 1 : -1;
        }
    }
}

/* The inputs of a plan that takes the pieces, those of these rows of the block; returns how many. */
static size_t piece_inputs(const hl_vae_runner *r, const size_t *row, hl_row_in *in)
{
    const hl_vae *v = r->vae;
    for (size_t i = 0; i < v->pieces; i++)
        in[i] = (hl_row_in){ .p = r->piece[i], .pitch = v->piece_size[i], .index = row };
    return v->pieces;
}

/* ---- a continuous flow ---- */

static int field_rhs(void *user, const hl_rows *at, double *dy)
{
    hl_vae_runner *r = user;
    size_t latent = r->vae->spec.latent, n = latent + 1;
    hl_row_in in[HL_VAE_PIECES + 3];
    for (size_t i = 0; i < at->count; i++)
        r->stage_row[i] = r->row[at->index[i]];
    size_t next = piece_inputs(r, r->stage_row, in);
    in[next++] = (hl_row_in){ .p = at->y, .pitch = n };
    in[next++] = (hl_row_in){ .p = r->probe, .pitch = latent, .index = at->index };
    in[next++] = (hl_row_in){ .p = at->t, .pitch = 1 };
    hl_execute_rows(r->vae->plans.field, at->count, in, values_of(r),
                    (const hl_row_out[]){ { .p = dy, .pitch = n }, { .p = dy + latent, .pitch = n } });
    return 0;
}

hl_status hl_vae_runner_set_solver(hl_vae_runner *r, size_t steps, double tolerance)
{
    const hl_vae *v = r->vae;
    bool single = v->spec.dtype == HL_F32;
    hl_system system = { .n = v->spec.latent + 1, .rhs = field_rhs, .rounding = single ? 6e-8 : 0, .user = r };
    hl_ode_options o = { .method = steps ? "rk4" : "dopri5",
                         .steps = steps,
                         .rtol = tolerance,
                         .atol = tolerance,
                         .rows = r->chunk,
                         .max_evaluations = steps ? 0 : MOST_EVALUATIONS };
    hl_ode_free(r->ode);
    r->ode = NULL;
    r->evaluations = r->solved = 0;
    return v->posterior->field ? hl_ode_create(v->ctx, &system, &o, &r->ode) : HL_OK;
}

static hl_status solve(hl_vae_runner *r, size_t count)
{
    size_t latent = r->vae->spec.latent, n = latent + 1;
    for (size_t i = 0; i < count; i++) {
        memcpy(r->state + i * n, r->z + i * latent, latent * sizeof *r->z);
        r->state[i * n + latent] = r->time[i] = 0;
    }
    hl_status status = hl_ode_solve(r->ode, count, r->time, 1, r->state, r->info);
    for (size_t i = 0; i < count; i++) {
        memcpy(r->z + i * latent, r->state + i * n, latent * sizeof *r->z);
        r->log_det[i] = r->state[i * n + latent];
        r->evaluations += (double)r->info[i].evaluations;
    }
    r->solved += (double)count;
    return status == HL_IMPRECISE ? HL_OK : status;
}

hl_status hl_vae_runner_flow(hl_vae_runner *r, size_t count)
{
    const hl_vae *v = r->vae;
    size_t latent = v->spec.latent;
    hl_row_in in[HL_VAE_PIECES + 1];
    in[piece_inputs(r, r->row, in)] = (hl_row_in){ .p = r->noise, .pitch = latent };
    hl_execute_rows(v->plans.start, count, in, values_of(r),
                    (const hl_row_out[]){ { .p = r->z, .pitch = latent },
                                          { .p = r->log_q0, .pitch = 1 },
                                          { .p = r->log_det, .pitch = 1 } });
    if (!v->posterior->apply)
        memset(r->log_det, 0, count * sizeof *r->log_det);
    hl_status status = v->posterior->field ? solve(r, count) : HL_OK;
    return status == HL_OK ? hl_check_stop(v->ctx) : status;
}

void hl_vae_runner_decode(hl_vae_runner *r, size_t count)
{
    const hl_vae *v = r->vae;
    hl_execute_rows(
        v->plans.decode, count,
        (const hl_row_in[]){ { .p = r->x, .pitch = v->dim, .index = r->row }, { .p = r->z, .pitch = v->spec.latent } },
        values_of(r), (const hl_row_out[]){ { .p = r->log_px, .pitch = 1 }, { .p = r->log_pz, .pitch = 1 } });
    for (size_t i = 0; i < count; i++)
        r->log_px[i] -= r->vae->log_scale;
}
