/* vae.c - autoencoders: making, first values, parts. The code that builds an autoencoder into a graph is its only description:
 * creating one builds it once into a throw-away graph, which declares the parameters. */
#include <math.h>
#include <string.h>

#include "vae/vae.h"

static void build_all(hl_vae_builder *b)
{
    const hl_vae *v = b->vae;
    hl_graph *g = b->g;
    hl_vae_pieces p;
    hl_node log_q0, log_det;
    hl_node x = hl_input(g, "x", 1, &v->dim), noise = hl_input(g, "noise", 1, &v->spec.latent);
    hl_node probe = hl_input(g, "probe", 1, &v->spec.latent);
    hl_vae_build_pieces(b, x, &p);
    if (hl_graph_status(g) != HL_OK)
        return;
    hl_node z = hl_vae_build_start(b, &p, noise, &log_q0);
    z = hl_vae_build_flow(b, &p, z, probe, 1, &log_det);
    hl_vae_build_likelihood(b, x, z);
}

static hl_status declare(hl_vae *v)
{
    hl_graph *g = NULL;
    hl_vae_builder b;
    hl_status status = hl_graph_create(v->ctx, &g);
    if (status != HL_OK)
        return status;
    status = hl_vae_builder_init(&b, v, g);
    if (status == HL_OK) {
        build_all(&b);
        v->part[HL_VAE_END] = v->deviations = b.known;
        status = hl_params_declare(g, v->spec.dtype, &v->params);
    }
    hl_vae_builder_free(&b);
    hl_graph_free(g);
    return status;
}

hl_status hl_vae_declare(hl_context *ctx, const hl_vae_spec *spec, hl_vae **out)
{
    hl_vae *v = hl_calloc(ctx, 1, sizeof *v);
    if (!v)
        return HL_ERR_NOMEM;
    v->ctx = ctx;
    hl_status status = hl_vae_set_spec(v, spec);
    if (status == HL_OK)
        status = declare(v);
    if (status != HL_OK) {
        hl_vae_free(v);
        return status;
    }
    *out = v;
    return HL_OK;
}

hl_status hl_vae_create(hl_context *ctx, const hl_vae_spec *spec, hl_vae **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!spec || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_vae_create: the specification or the result is NULL");
    *out = NULL;
    hl_status status = hl_vae_declare(ctx, spec, out);
    if (status == HL_OK && (status = hl_params_allocate((*out)->params)) != HL_OK) {
        hl_vae_free(*out);
        *out = NULL;
    }
    return status;
}

void hl_vae_free(hl_vae *v)
{
    if (!v)
        return;
    hl_vae_plans_free(&v->plans);
    hl_params_free(v->params);
    hl_net_free(v->field);
    hl_free(v->ctx, v->deviation);
    hl_free(v->ctx, v->offset);
    hl_free(v->ctx, v->course);
    hl_row_sketch_free(v->ctx, &v->rows);
    hl_free(v->ctx, v->shift);
    hl_free(v->ctx, v->names);
    hl_free(v->ctx, v);
}

/* ---- first values ---- */

/* The field as networks of its kind begin, but with its last layer a tenth as large: the flow begins near the identity. */
static hl_status init_field(hl_vae *v, uint64_t seed)
{
    hl_net *field = v->field;
    size_t last = field->params;
    hl_status status = field->values ? HL_OK : hl_net_allocate(field);
    if (status == HL_OK)
        status = hl_net_init(field, seed);
    for (size_t i = 0; i < field->params; i++)
        last = field->param[i].fan_in ? i : last;
    for (size_t i = 0; i < field->params && status == HL_OK; i++) {
        hl_net_param from;
        const hl_net_param *to = &v->params->param[v->part[HL_VAE_FLOW] + i];
        status = hl_net_param_get(field, i, &from);
        memcpy(to->values, from.values, to->size * hl_dtype_size(v->spec.dtype));
        for (size_t k = 0; i == last && k < to->size; k++) {
            char *at = (char *)to->values + k * hl_dtype_size(v->spec.dtype);
            double value;
            hl_from_precision(v->spec.dtype, 1, at, &value);
            value *= 0.1;
            hl_to_precision(v->spec.dtype, 1, &value, at);
        }
    }
    return status;
}

hl_status hl_vae_init(hl_vae *v, uint64_t seed)
{
    if (!v)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < v->params->count; i++) {
        const hl_net_param *p = &v->params->param[i];
        for (size_t k = 0; k < p->size && v->deviation[i] >= 0; k++) {
            double value = v->offset[i] + v->deviation[i] * (v->deviation[i] > 0 ? hl_random_normal(seed, i, k) : 0);
            hl_to_precision(v->spec.dtype, 1, &value, (char *)p->values + k * hl_dtype_size(v->spec.dtype));
        }
    }
    return v->field ? init_field(v, seed) : HL_OK;
}

hl_vae_spec hl_vae_describe(const hl_vae *v)
{
    return v ? v->spec : (hl_vae_spec){ 0 };
}

size_t hl_vae_dim(const hl_vae *v)
{
    return v ? v->dim : 0;
}

hl_params *hl_vae_params(hl_vae *v)
{
    return v ? v->params : NULL;
}

hl_status hl_vae_set_steps(hl_vae *v, size_t steps)
{
    if (!v)
        return HL_ERR_INVALID;
    if (steps > 4096)
        return hl_fail(v->ctx, HL_ERR_INVALID, "%zu steps; they must be in 0..4096", steps);
    v->spec.steps = steps;
    return HL_OK;
}

/* Those of one name have one shape in both, or it is an error. */
hl_status hl_vae_copy_networks(hl_vae *v, const hl_vae *from)
{
    if (!v)
        return HL_ERR_INVALID;
    if (!from || from->spec.dtype != v->spec.dtype || from->net != v->net || from->dim != v->dim ||
        from->spec.latent != v->spec.latent || from->gaussian != v->gaussian ||
        memcmp(from->spec.image, v->spec.image, sizeof v->spec.image) != 0)
        return hl_fail(v->ctx, HL_ERR_INVALID, "the networks of these two autoencoders differ");
    for (size_t i = 0; i < v->params->count; i++) {
        size_t at = hl_params_find(from->params, v->params->param[i].name);
        bool flow = i >= v->part[HL_VAE_HEADS] && i < v->part[HL_VAE_DECODER];
        if (!flow && at < from->params->count)
            memcpy(v->params->param[i].values, from->params->param[at].values,
                   v->params->param[i].size * hl_dtype_size(v->spec.dtype));
    }
    return from->scale ? hl_vae_set_columns(v, from->shift, from->scale) : HL_OK;
}
