/* continuous.c - continuous posteriors: dz/dt = f(z, t, code) from t = 0 to 1, log |det| = integral of the trace of df/dz.
 *
 *   ffjord  a plain network; layer l is  act(W y + w_t t + c + b(code) + U(code) V(code)' y / (r sqrt(inputs))),  U and V of rank
 *           r with entries in (-1, 1): without a bound the field got so stiff that training with few steps broke down
 *   hollow  a hollow network; the code is its context, in the conditioner and in the transformer; with code = "weights" it
 *           changes the weights of every layer as well, in the same way, under the layer's mask (nn/update.c)
 *
 * The trace is exact (one sweep for hollow, latent sweeps for ffjord), or Hutchinson's e' J e with one probe e per row and solve. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "vae/vae.h"

/* e' (df/dz) e */
static hl_node along_probe(hl_vae_builder *b, hl_node f, hl_node z, hl_node probe)
{
    hl_node slope = HL_NONE;
    if (hl_jet(b->g, 1, 1, &z, &probe, NULL, 1, &f, &slope) != HL_OK)
        return HL_BAD;
    return slope == HL_NONE ? hl_vae_zero(b, hl_sum(b->g, z, 0)) : hl_sum(b->g, hl_mul(b->g, probe, slope), 0);
}

/* Entry by entry: a derivative along each axis. */
static hl_node whole_trace(hl_vae_builder *b, hl_node f, hl_node z)
{
    size_t d = b->vae->spec.latent;
    double *unit = hl_calloc(b->vae->ctx, d, sizeof *unit);
    hl_node sum = hl_vae_zero(b, hl_sum(b->g, z, 0));
    if (!unit)
        return hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the trace");
    for (size_t i = 0; i < d; i++) {
        unit[i] = 1;
        hl_node axis = hl_const_array(b->g, 1, &d, unit), slope = HL_NONE;
        hl_node seed = hl_add(b->g, hl_vae_zero(b, z), axis);
        if (hl_jet(b->g, 1, 1, &z, &seed, NULL, 1, &f, &slope) != HL_OK)
            sum = HL_BAD;
        else if (slope != HL_NONE)
            sum = hl_add(b->g, sum, hl_sum(b->g, hl_mul(b->g, slope, axis), 0));
        unit[i] = 0;
    }
    hl_free(b->vae->ctx, unit);
    return sum;
}

static hl_node activate(hl_vae_builder *b, hl_node x)
{
    static const struct {
        const char *name;
        hl_node (*build)(hl_graph *g, hl_node x);
    } table[] = { { "tanh", hl_tanh }, { "elu", hl_elu }, { "softplus", hl_softplus }, { "swish", hl_swish } };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(b->vae->spec.activation, table[i].name) == 0)
            return table[i].build(b->g, x);
    return hl_sigmoid(b->g, x);
}

/* ---- a plain network ---- */

static size_t layers_of(const hl_vae_spec *s)
{
    return (s->layers < 0 ? 0 : (size_t)s->layers) + 1;
}

static void layer_sizes(const hl_vae_spec *s, size_t layer, size_t *in, size_t *out)
{
    *in = layer ? s->hidden : s->latent;
    *out = layer + 1 < layers_of(s) ? s->hidden : s->latent;
}

static void ffjord_heads(hl_vae_builder *b, hl_node code, hl_vae_pieces *p)
{
    const hl_vae_spec *s = &b->vae->spec;
    for (size_t l = 0; l < layers_of(s); l++) {
        char name[40];
        size_t in, out;
        layer_sizes(s, l, &in, &out);
        snprintf(name, sizeof name, "ffjord_bias.%zu", l);
        hl_vae_head(b, p, name, code, out, 0.3, 0);
        snprintf(name, sizeof name, "ffjord_u.%zu", l);
        hl_vae_head(b, p, name, code, out * s->rank, 0.3, 0);
        snprintf(name, sizeof name, "ffjord_v.%zu", l);
        hl_vae_head(b, p, name, code, in * s->rank, 0.3, 0);
    }
}

static hl_node ffjord_layer(hl_vae_builder *b, const hl_node *piece, size_t l, hl_node y, hl_node t)
{
    const hl_vae_spec *s = &b->vae->spec;
    hl_graph *g = b->g;
    char name[40];
    size_t in, out;
    layer_sizes(s, l, &in, &out);
    snprintf(name, sizeof name, "ffjord.%zu", l);
    hl_node sum = hl_vae_dense(b, name, y, out, l + 1 < layers_of(s) ? 1 : 0.1, 0);
    snprintf(name, sizeof name, "ffjord.%zu.time", l);
    sum = hl_add(g, sum, hl_mul(g, t, hl_vae_param(b, name, 1, &out, 0.1, 0)));
    hl_node u = hl_reshape(g, hl_tanh(g, piece[3 * l + 1]), 2, (size_t[]){ out, s->rank });
    hl_node v = hl_reshape(g, hl_tanh(g, piece[3 * l + 2]), 2, (size_t[]){ s->rank, in });
    hl_node low = hl_matmul(g, u, hl_matmul(g, v, hl_reshape(g, y, 2, (size_t[]){ in, 1 })));
    low = hl_scale(g, 1 / ((double)s->rank * sqrt((double)in)), hl_reshape(g, low, 1, &out));
    return hl_add(g, hl_add(g, sum, piece[3 * l]), low);
}

static hl_node ffjord_field(hl_vae_builder *b, const hl_node *piece, hl_node z, hl_node t, hl_node probe,
                            hl_node *trace)
{
    size_t layers = layers_of(&b->vae->spec);
    hl_node f = z;
    for (size_t l = 0; l < layers; l++) {
        f = ffjord_layer(b, piece, l, f, t);
        if (l + 1 < layers)
            f = activate(b, f);
    }
    *trace = b->vae->hutchinson ? along_probe(b, f, z, probe) : whole_trace(b, f, z);
    return f;
}

const hl_vae_posterior hl_vae_posterior_ffjord = { .name = "ffjord", .heads = ffjord_heads, .field = ffjord_field };

/* ---- a hollow network ---- */

static void hollow_heads(hl_vae_builder *b, hl_node code, hl_vae_pieces *p)
{
    hl_vae *v = b->vae;
    if (b->declaring && !v->field) {
        hl_net_spec spec = { .dim = v->spec.latent,
                             .context = hl_node_size(b->g, code),
                             .time = 1,
                             .features = v->spec.features,
                             .hidden = v->spec.hidden,
                             .width = v->spec.width,
                             .layers = v->spec.layers,
                             .activation = v->spec.activation,
                             .dtype = v->spec.dtype };
        if (hl_net_declare(v->ctx, &spec, &v->field) != HL_OK ||
            (v->updated && hl_net_update_size(v->field, v->spec.rank, &v->update_size) != HL_OK)) {
            hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the field");
            return;
        }
    }
    hl_vae_add_piece(b, p, code);
    if (v->updated)
        hl_vae_head(b, p, "hollow_update", code, v->update_size, 0.3, 0);
}

/* While declaring, the nodes that the field makes join the builder's. */
static void take_nodes(hl_vae_builder *b)
{
    const hl_net *field = b->vae->field;
    for (size_t i = 0; i < field->params; i++)
        hl_vae_param(b, field->param[i].name, field->param[i].shape.rank, field->param[i].shape.dim, -1, 0);
}

static hl_node hollow_field(hl_vae_builder *b, const hl_node *piece, hl_node z, hl_node t, hl_node probe,
                            hl_node *trace)
{
    bool exact = !b->vae->hutchinson;
    size_t first = b->next;
    if (!b->vae->field)
        return HL_BAD;
    take_nodes(b);
    hl_net_nodes n = { .x = z, .t = t, .context = piece[0], .param = b->param + first, .reuse = 1 };
    hl_update update = { .rank = b->vae->spec.rank, .values = b->vae->updated ? piece[1] : HL_NONE };
    if (hl_graph_status(b->g) != HL_OK || hl_net_build_updated(b->vae->field, b->g, exact ? 1 : 0, HL_TAYLOR, &n,
                                                               b->vae->updated ? &update : NULL) != HL_OK)
        return *trace = HL_BAD;
    *trace = exact ? n.divergence : along_probe(b, n.f, z, probe);
    return n.f;
}

const hl_vae_posterior hl_vae_posterior_hollow = { .name = "hollow", .heads = hollow_heads, .field = hollow_field };
