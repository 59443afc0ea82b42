/* plans.c - the plans of evaluation: encoder, start and flow, the field of a continuous flow, decoder. The encoder runs once per row,
 * the others once per sample. */
#include "vae/vae.h"

typedef enum kind { ENCODE, START, FIELD, DECODE, MEAN } kind;

/* The pieces as inputs. */
static void piece_inputs(hl_vae_builder *b, hl_vae_pieces *p)
{
    const hl_vae *v = b->vae;
    p->count = v->pieces;
    for (size_t i = 0; i < v->pieces; i++)
        p->node[i] = hl_input(b->g, "piece", 1, &v->piece_size[i]);
}

/* Outputs of a plan; returns how many. Inputs are made in the order in which runner.c gives them. */
static size_t outputs(hl_vae_builder *b, kind what, hl_node *out)
{
    const hl_vae *v = b->vae;
    hl_graph *g = b->g;
    hl_vae_pieces p;
    hl_node probe, x;
    if (what == ENCODE) {
        hl_vae_build_pieces(b, hl_input(g, "x", 1, &v->dim), &p);
        for (size_t i = 0; i < p.count; i++)
            out[i] = p.node[i];
        return p.count;
    }
    if (what == MEAN) {
        hl_node y = hl_vae_build_decoder(b, hl_input(g, "z", 1, &v->spec.latent));
        out[0] = v->gaussian ? y : hl_sigmoid(g, y);
        return 1;
    }
    if (what == DECODE) {
        x = hl_input(g, "x", 1, &v->dim);
        hl_node z = hl_input(g, "z", 1, &v->spec.latent);
        out[0] = hl_vae_build_likelihood(b, x, z);
        out[1] = hl_vae_build_prior(b, z);
        return 2;
    }
    piece_inputs(b, &p);
    if (what == START) {
        hl_node noise = hl_input(g, "noise", 1, &v->spec.latent);
        hl_node z = hl_vae_build_start(b, &p, noise, &out[1]);
        out[0] = v->posterior->apply ? hl_vae_build_flow(b, &p, z, HL_NONE, 0, &out[2]) : z;
        return v->posterior->apply ? 3 : 2;
    }
    hl_node z = hl_input(g, "z", 1, &v->spec.latent);
    probe = hl_input(g, "probe", 1, &v->spec.latent);
    out[0] = hl_vae_build_field(b, &p, z, probe, hl_input(g, "t", 0, NULL), &out[1]);
    return 2;
}

static hl_status compile(hl_vae *v, kind what, hl_plan **plan)
{
    hl_graph *g = NULL;
    hl_vae_builder b = { .vae = v };
    hl_node out[HL_VAE_PIECES];
    hl_plan_options options = { .dtype = v->spec.dtype };
    hl_status status = hl_graph_create(v->ctx, &g);
    if (status == HL_OK)
        status = hl_vae_builder_init(&b, v, g);
    if (status == HL_OK) {
        size_t count = outputs(&b, what, out);
        status = hl_plan_create(v->ctx, g, count, out, &options, plan);
    }
    hl_vae_builder_free(&b);
    hl_graph_free(g);
    return status;
}

hl_status hl_vae_compile(hl_vae *v)
{
    hl_vae_plans *p = &v->plans;
    hl_status status = p->encode ? HL_OK : compile(v, ENCODE, &p->encode);
    if (status == HL_OK && !p->start)
        status = compile(v, START, &p->start);
    if (status == HL_OK && !p->field && v->posterior->field)
        status = compile(v, FIELD, &p->field);
    if (status == HL_OK && !p->decode)
        status = compile(v, DECODE, &p->decode);
    if (status == HL_OK && !p->mean)
        status = compile(v, MEAN, &p->mean);
    return status;
}

void hl_vae_plans_free(hl_vae_plans *p)
{
    hl_plan_free(p->encode);
    hl_plan_free(p->start);
    hl_plan_free(p->field);
    hl_plan_free(p->decode);
    hl_plan_free(p->mean);
    *p = (hl_vae_plans){ 0 };
}
