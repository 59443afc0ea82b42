/* build.c - an autoencoder as graph: parameters in order, the pieces of the code, the start of the posterior, RK4 steps of a
 * continuous flow, likelihood and prior.
 *
 *   z0 = mean + sqrt(variance) e,   log q0 = -1/2 sum (e^2 + log variance + log 2 pi),   log q = log q0 - log |dz / dz0|
 *   log p(x | z) = sum x l - softplus(l), l the logits;   or sum -(x - m)^2 / (2 s^2) - log s - 1/2 log 2 pi
 *
 * The variance is softplus(.) plus FLOOR, so that its logarithm stays finite whatever the encoder says. */
#include <math.h>
#include <stdio.h>

#include "op/op.h"
#include "vae/vae.h"

#define FLOOR 1e-6
#define HALF_LOG_2PI 0.91893853320467274178

/* ---- parameters ---- */

hl_status hl_vae_builder_init(hl_vae_builder *b, hl_vae *vae, hl_graph *g)
{
    const hl_params *p = vae->params;
    *b = (hl_vae_builder){ .vae = vae, .g = g, .declaring = !p };
    hl_status status = p ? hl_grow(vae->ctx, (void **)&b->param, &b->capacity, p->count, sizeof *b->param) : HL_OK;
    for (size_t i = 0; p && status == HL_OK && i < p->count; i++)
        b->param[b->known++] = hl_param(g, p->param[i].name, p->param[i].rank, p->param[i].dims);
    return status;
}

void hl_vae_builder_free(hl_vae_builder *b)
{
    hl_free(b->vae->ctx, b->param);
    b->param = NULL;
}

/* Room for one more, while declaring. */
static hl_status more(hl_vae_builder *b)
{
    hl_vae *v = b->vae;
    hl_status status = hl_grow(v->ctx, (void **)&b->param, &b->capacity, b->known + 1, sizeof *b->param);
    if (status == HL_OK)
        status = hl_grow(v->ctx, (void **)&v->deviation, &v->deviation_capacity, b->known + 1, sizeof *v->deviation);
    if (status == HL_OK)
        status = hl_grow(v->ctx, (void **)&v->offset, &v->offset_capacity, b->known + 1, sizeof *v->offset);
    return status;
}

hl_node hl_vae_param(hl_vae_builder *b, const char *name, int rank, const size_t *dims, double deviation, double offset)
{
    if (b->next < b->known)
        return b->param[b->next++];
    if (!b->declaring)
        return hl_graph_fail(b->g, HL_ERR_INVALID, "an autoencoder with more parameters than it declared");
    if (more(b) != HL_OK)
        return hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the parameters");
    b->vae->deviation[b->known] = deviation;
    b->vae->offset[b->known] = offset;
    b->param[b->known] = hl_param(b->g, name, rank, dims);
    b->next = ++b->known;
    return b->param[b->next - 1];
}

hl_node hl_vae_dense(hl_vae_builder *b, const char *name, hl_node y, size_t out, double gain, double bias)
{
    char full[64];
    size_t in = hl_node_size(b->g, y);
    snprintf(full, sizeof full, "%s.weight", name);
    hl_node w = hl_vae_param(b, full, 2, (size_t[]){ out, in }, gain / sqrt((double)(in ? in : 1)), 0);
    snprintf(full, sizeof full, "%s.bias", name);
    return hl_add(b->g, hl_linear(b->g, y, w), hl_vae_param(b, full, 1, &out, 0, bias));
}

hl_node hl_vae_zero(hl_vae_builder *b, hl_node like)
{
    return hl_graph_node(b->g, like) ? hl_constant_like(b->g, 0, like) : HL_BAD;
}

/* ---- pieces ---- */

void hl_vae_add_piece(hl_vae_builder *b, hl_vae_pieces *p, hl_node node)
{
    if (p->count == HL_VAE_PIECES) {
        hl_graph_fail(b->g, HL_ERR_INVALID, "too many layers in the posterior");
        return;
    }
    if (b->declaring) {
        b->vae->piece_size[p->count] = hl_node_size(b->g, node);
        b->vae->pieces = p->count + 1;
    }
    p->node[p->count++] = node;
}

hl_node hl_vae_head(hl_vae_builder *b, hl_vae_pieces *p, const char *name, hl_node code, size_t size, double gain,
                    double bias)
{
    char full[48];
    snprintf(full, sizeof full, "head.%s", name);
    hl_node y = hl_vae_dense(b, full, code, size, gain, bias);
    hl_vae_add_piece(b, p, y);
    return y;
}

/* Go to the first parameter of a part. */
static void enter(hl_vae_builder *b, hl_vae_part part)
{
    if (b->declaring && !b->entered[part])
        b->vae->part[part] = b->known;
    b->entered[part] = true;
    b->next = b->vae->part[part];
}

void hl_vae_build_pieces(hl_vae_builder *b, hl_node x, hl_vae_pieces *p)
{
    hl_vae *v = b->vae;
    hl_graph *g = b->g;
    p->count = 0;
    enter(b, HL_VAE_TRUNK);
    hl_node code = v->net->encode(b, x);
    enter(b, HL_VAE_HEADS);
    hl_vae_head(b, p, "mean", code, v->spec.latent, 1, 0);
    hl_node raw = hl_vae_dense(b, "head.variance", code, v->spec.latent, 1, 0);
    hl_vae_add_piece(b, p, hl_add(g, hl_softplus(g, raw), hl_const(g, FLOOR)));
    if (v->posterior->heads)
        v->posterior->heads(b, code, p);
}

/* ---- the posterior ---- */

hl_node hl_vae_build_start(hl_vae_builder *b, const hl_vae_pieces *p, hl_node noise, hl_node *log_q0)
{
    hl_graph *g = b->g;
    hl_node spread = hl_add(g, hl_mul(g, noise, noise), hl_log(g, p->node[1]));
    hl_node sum = hl_sum(g, spread, 0);
    *log_q0 = hl_sub(g, hl_scale(g, -0.5, sum), hl_const(g, HALF_LOG_2PI * (double)b->vae->spec.latent));
    return hl_add(g, p->node[0], hl_mul(g, hl_sqrt(g, p->node[1]), noise));
}

hl_node hl_vae_build_field(hl_vae_builder *b, const hl_vae_pieces *p, hl_node z, hl_node probe, hl_node t,
                           hl_node *trace)
{
    enter(b, HL_VAE_FLOW);
    return b->vae->posterior->field(b, p->node + 2, z, t, probe, trace);
}

/* One RK4 step from t to t + h; adds to *log_det. */
static hl_node build_step(hl_vae_builder *b, const hl_vae_pieces *p, hl_node z, hl_node probe, hl_node t, hl_node h,
                          hl_node *log_det)
{
    static const double place[4] = { 0, 0.5, 0.5, 1 }, weight[4] = { 1 / 6.0, 1 / 3.0, 1 / 3.0, 1 / 6.0 };
    hl_graph *g = b->g;
    hl_node end = z, k = HL_NONE, trace;
    for (int s = 0; s < 4; s++) {
        hl_node step = hl_scale(g, place[s], h);
        hl_node at = s ? hl_add(g, z, hl_mul(g, step, k)) : z;
        k = hl_vae_build_field(b, p, at, probe, hl_add(g, t, step), &trace);
        hl_node part = hl_scale(g, weight[s], h);
        end = hl_add(g, end, hl_mul(g, part, k));
        *log_det = hl_add(g, *log_det, hl_mul(g, part, trace));
    }
    return end;
}

hl_node hl_vae_build_flow(hl_vae_builder *b, const hl_vae_pieces *p, hl_node z, hl_node probe, size_t steps,
                          hl_node *log_det)
{
    enter(b, HL_VAE_FLOW);
    *log_det = hl_const(b->g, 0);
    if (b->vae->posterior->apply)
        return b->vae->posterior->apply(b, p->node + 2, z, log_det);
    for (size_t i = 0; b->vae->posterior->field && i < steps; i++)
        z = build_step(b, p, z, probe, hl_const(b->g, (double)i / (double)steps), hl_const(b->g, 1 / (double)steps),
                       log_det);
    return z;
}

/* ---- the model ---- */

hl_node hl_vae_build_decoder(hl_vae_builder *b, hl_node z)
{
    enter(b, HL_VAE_DECODER);
    return b->vae->net->decode(b, z);
}

hl_node hl_vae_build_likelihood(hl_vae_builder *b, hl_node x, hl_node z)
{
    hl_graph *g = b->g;
    hl_node y = hl_vae_build_decoder(b, z);
    if (!b->vae->gaussian)
        return hl_sum(g, hl_sub(g, hl_mul(g, x, y), hl_softplus(g, y)), 0);
    size_t dim = b->vae->dim;
    bool one = b->vae->spec.deviations == 1;
    hl_node log_s = hl_vae_param(b, "decoder.log_deviation", one ? 0 : 1, &dim, 0, 0);
    if (!one) /* a column that the others determine has a density without bound, so its deviation has one */
        log_s = hl_log(g, hl_add(g, hl_exp(g, log_s), hl_const(g, HL_VAE_LEAST_DEVIATION)));
    hl_node away = hl_mul(g, hl_sub(g, x, y), hl_exp(g, hl_neg(g, log_s)));
    hl_node square = hl_scale(g, -0.5, hl_sum(g, hl_mul(g, away, away), 0));
    hl_node logs = one ? hl_scale(g, (double)dim, log_s) : hl_sum(g, log_s, 0);
    return hl_sub(g, square, hl_add(g, logs, hl_const(g, (double)dim * HALF_LOG_2PI)));
}

hl_node hl_vae_build_prior(hl_vae_builder *b, hl_node z)
{
    hl_graph *g = b->g;
    hl_node square = hl_scale(g, -0.5, hl_sum(g, hl_mul(g, z, z), 0));
    return hl_sub(g, square, hl_const(g, HALF_LOG_2PI * (double)b->vae->spec.latent));
}
