/* loss.c - one plan from rows to -ELBO and the gradients of all parameters, encoder, posterior and decoder. A continuous flow is
 * unrolled into RK4 steps, so that the gradient is that of the steps taken. */
#include "vae/loss.h"

/* The weighted loss of a row, and its terms. */
static hl_node build_loss(hl_vae_builder *b, size_t steps, hl_node *term)
{
    const hl_vae *v = b->vae;
    hl_graph *g = b->g;
    hl_vae_pieces p;
    hl_node x = hl_input(g, "x", 1, &v->dim), noise = hl_input(g, "noise", 1, &v->spec.latent);
    hl_node probe = hl_input(g, "probe", 1, &v->spec.latent);
    hl_node beta = hl_input(g, "beta", 0, NULL), weight = hl_input(g, "weight", 0, NULL);
    hl_vae_build_pieces(b, x, &p);
    hl_node z0 = hl_vae_build_start(b, &p, noise, &term[HL_VAE_LOG_Q0]);
    hl_node z = hl_vae_build_flow(b, &p, z0, probe, steps, &term[HL_VAE_LOG_DET]);
    term[HL_VAE_LOG_PX] = hl_vae_build_likelihood(b, x, z);
    term[HL_VAE_LOG_PZ] = hl_vae_build_prior(b, z);
    hl_node log_q = hl_sub(g, term[HL_VAE_LOG_Q0], term[HL_VAE_LOG_DET]);
    hl_node ratio = hl_mul(g, beta, hl_sub(g, term[HL_VAE_LOG_PZ], log_q));
    return hl_neg(g, hl_mul(g, weight, hl_add(g, term[HL_VAE_LOG_PX], ratio)));
}

static hl_status compile(hl_vae_loss *l, size_t steps)
{
    hl_vae *v = l->vae;
    hl_graph *g = NULL;
    hl_vae_builder b = { .vae = v };
    hl_node *out = hl_calloc(v->ctx, HL_VAE_TERMS + l->last - l->first, sizeof *out);
    hl_plan_options options = { .dtype = v->spec.dtype };
    hl_status status = out ? hl_graph_create(v->ctx, &g) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_vae_builder_init(&b, v, g);
    if (status == HL_OK) {
        hl_node loss = build_loss(&b, steps, out);
        if (!v->posterior->apply && !v->posterior->field) /* one per row, even if there is no flow */
            out[HL_VAE_LOG_DET] = hl_sub(g, out[HL_VAE_LOG_Q0], out[HL_VAE_LOG_Q0]);
        status = hl_graph_status(g);
        if (status == HL_OK)
            status = hl_vjp(g, 1, &loss, NULL, l->last - l->first, b.param + l->first, NULL, out + HL_VAE_TERMS);
    }
    if (status == HL_OK)
        status = hl_plan_create(v->ctx, g, HL_VAE_TERMS + l->last - l->first, out, &options, &l->plan);
    hl_vae_builder_free(&b);
    hl_graph_free(g);
    hl_free(v->ctx, out);
    return status;
}

hl_status hl_vae_loss_create(hl_vae *v, size_t steps, bool frozen, hl_vae_loss **out)
{
    hl_vae_loss *l = hl_calloc(v->ctx, 1, sizeof *l);
    *out = NULL;
    if (!l)
        return HL_ERR_NOMEM;
    l->vae = v;
    l->first = frozen ? v->part[HL_VAE_HEADS] : 0;
    l->last = frozen ? v->part[HL_VAE_DECODER] : v->params->count;
    hl_status status = hl_params_gradients(v->params) ? compile(l, steps) : HL_ERR_NOMEM;
    if (status != HL_OK) {
        hl_vae_loss_free(l);
        return status;
    }
    *out = l;
    return HL_OK;
}

void hl_vae_loss_free(hl_vae_loss *l)
{
    if (!l)
        return;
    hl_plan_free(l->plan);
    hl_free(l->vae->ctx, l);
}

hl_status hl_vae_loss_run(hl_vae_loss *l, size_t rows, const hl_row_in *input, double *const *term)
{
    hl_vae *v = l->vae;
    size_t gradients = l->last - l->first;
    hl_row_out *out = hl_calloc(v->ctx, HL_VAE_TERMS + gradients, sizeof *out);
    if (!out)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < HL_VAE_TERMS; i++)
        out[i] = (hl_row_out){ .p = term[i], .pitch = 1 };
    for (size_t i = 0; i < gradients; i++)
        out[HL_VAE_TERMS + i].shared = hl_params_gradients(v->params)[l->first + i];
    hl_execute_rows(l->plan, rows, input, hl_params_values(v->params), out);
    hl_free(v->ctx, out);
    return HL_OK;
}
