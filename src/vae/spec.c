/* spec.c - check the specification of an autoencoder and fill in its defaults. */
#include <string.h>

#include "nn/net.h"
#include "vae/vae.h"

enum {
    MOST_VALUES = 1 << 20,
    MOST_LATENT = 4096,
    MOST_UNITS = 1 << 16,
    MOST_FLOWS = 256,
    MOST_COLUMNS = 64,
    MOST_STEPS = 4096,
    MOST_BRUTE = 64
};

static const char *const net_names[] = { "fc", "small", "mid", "paper", "linear", NULL };
static const char *const posterior_names[] = { "vae", "planar", "iaf", "sylvester", "ffjord", "hollow", NULL };
static const char *const likelihoods[] = { "bernoulli", "gaussian", NULL };
static const char *const traces[] = { "exact", "hutchinson", NULL };
static const char *const codes[] = { "input", "weights", NULL };

const char *const *hl_vae_nets(void)
{
    return net_names;
}

const char *const *hl_vae_posteriors(void)
{
    return posterior_names;
}

/* The static copy of a name, or NULL with a message that lists those there are. */
static const char *choose(hl_context *ctx, const char *what, const char *name, const char *const *list,
                          const char *otherwise)
{
    char all[120];
    hl_text t = hl_text_start(all, sizeof all);
    for (size_t i = 0; list[i]; i++) {
        if (strcmp(list[i], name ? name : otherwise) == 0)
            return list[i];
        hl_text_list(&t, list[i]);
    }
    hl_fail(ctx, HL_ERR_INVALID, "unknown %s '%.40s'; use one of %s", what, name ? name : otherwise, all);
    return NULL;
}

static hl_status check_size(hl_context *ctx, const char *what, size_t *value, size_t otherwise, size_t most)
{
    if (*value == 0)
        *value = otherwise;
    if (*value > most)
        return hl_fail(ctx, HL_ERR_INVALID, "%s is %zu; at most %zu are possible", what, *value, most);
    return HL_OK;
}

static hl_status set_dim(hl_vae *v)
{
    hl_vae_spec *s = &v->spec;
    size_t pixels = hl_size_mul(hl_size_mul(s->image[0], s->image[1]), s->image[2]);
    bool image = s->image[0] || s->image[1] || s->image[2];
    if (image && pixels == 0)
        return hl_fail(v->ctx, HL_ERR_INVALID, "an image of %zu x %zu x %zu has no pixels", s->image[0], s->image[1],
                       s->image[2]);
    v->dim = image ? pixels : s->dim;
    if (v->dim == 0 || v->dim > MOST_VALUES)
        return hl_fail(v->ctx, HL_ERR_INVALID, "a row has %zu values; it must be in 1..%d", v->dim, (int)MOST_VALUES);
    if (image && s->dim && s->dim != pixels)
        return hl_fail(v->ctx, HL_ERR_INVALID, "dim is %zu, but the image has %zu pixels", s->dim, pixels);
    s->dim = v->dim;
    if (v->net->images && !image)
        return hl_fail(v->ctx, HL_ERR_INVALID,
                       "net %s needs images, but rows of %zu values have no shape; give it with --image HxW or CxHxW",
                       v->net->name, v->dim);
    if (v->net->images && (s->image[1] < 4 || s->image[2] < 4))
        return hl_fail(v->ctx, HL_ERR_INVALID, "net %s needs images of at least 4 x 4 pixels", v->net->name);
    return HL_OK;
}

static hl_status set_names(hl_vae *v)
{
    hl_vae_spec *s = &v->spec;
    s->net = choose(v->ctx, "net", s->net, net_names, "fc");
    s->posterior = s->net ? choose(v->ctx, "posterior", s->posterior, posterior_names, "vae") : NULL;
    s->likelihood = s->posterior ? choose(v->ctx, "likelihood", s->likelihood, likelihoods, "bernoulli") : NULL;
    bool ffjord = s->likelihood && strcmp(s->posterior, "ffjord") == 0;
    s->trace = s->likelihood ? choose(v->ctx, "trace", s->trace, traces, ffjord ? "hutchinson" : "exact") : NULL;
    s->activation = s->trace ? choose(v->ctx, "activation", s->activation, hl_activation_names, "tanh") : NULL;
    s->code = s->activation ? choose(v->ctx, "code", s->code, codes, "input") : NULL;
    if (!s->code)
        return HL_ERR_INVALID;
    for (v->net = hl_vae_net_list; strcmp(v->net->name, s->net) != 0;)
        v->net++;
    for (size_t i = 0; hl_vae_posterior_list[i]; i++)
        if (strcmp(hl_vae_posterior_list[i]->name, s->posterior) == 0)
            v->posterior = hl_vae_posterior_list[i];
    v->gaussian = strcmp(s->likelihood, "gaussian") == 0;
    v->updated = v->posterior == &hl_vae_posterior_hollow && strcmp(s->code, "weights") == 0;
    v->hutchinson = v->posterior->field && strcmp(s->trace, "hutchinson") == 0;
    return HL_OK;
}

static hl_status set_sizes(hl_vae *v)
{
    hl_vae_spec *s = &v->spec;
    hl_context *ctx = v->ctx;
    bool iaf = v->posterior == &hl_vae_posterior_iaf, planar = v->posterior == &hl_vae_posterior_planar;
    size_t deviations = s->deviations ? s->deviations : s->image[1] ? 1 : v->dim;
    if (deviations != 1 && deviations != v->dim)
        return hl_fail(ctx, HL_ERR_INVALID, "deviations is %zu; it must be 1 or %zu, one for each value", deviations,
                       v->dim);
    s->deviations = v->gaussian ? deviations : 1;
    hl_status status = check_size(ctx, "latent", &s->latent, v->dim < 64 ? v->dim : 64, MOST_LATENT);
    if (status == HL_OK)
        status = check_size(ctx, "flows", &s->flows, planar ? 16 : 4, MOST_FLOWS);
    if (status == HL_OK)
        status = check_size(ctx, "columns", &s->columns, s->latent < 8 ? s->latent : 8,
                            s->latent < MOST_COLUMNS ? s->latent : MOST_COLUMNS);
    if (status == HL_OK)
        status = check_size(ctx, "hidden", &s->hidden, iaf ? 320 : 64, MOST_UNITS);
    if (status == HL_OK)
        status = check_size(ctx, "features", &s->features, 32, MOST_UNITS);
    if (status == HL_OK)
        status = check_size(ctx, "width", &s->width, 32, MOST_UNITS);
    if (status == HL_OK)
        status = check_size(ctx, "rank", &s->rank, 4, 1024);
    if (status == HL_OK)
        status = s->steps > MOST_STEPS
                     ? hl_fail(ctx, HL_ERR_INVALID, "steps is %zu; it must be in 0..%d", s->steps, (int)MOST_STEPS)
                     : HL_OK;
    s->layers = s->layers == 0 ? 2 : s->layers;
    if (status == HL_OK && (s->layers < -1 || s->layers > HL_VAE_MAX_LAYERS))
        status = hl_fail(ctx, HL_ERR_INVALID, "layers is %d; it must be in 1..%d, or -1 for none", s->layers,
                         (int)HL_VAE_MAX_LAYERS);
    if (status == HL_OK && s->features % 2)
        status = hl_fail(ctx, HL_ERR_INVALID, "features is %zu; it must be even", s->features);
    if (status == HL_OK && v->posterior == &hl_vae_posterior_ffjord && !v->hutchinson && s->latent > MOST_BRUTE)
        status = hl_fail(ctx, HL_ERR_INVALID,
                         "the exact trace of ffjord needs one pass per latent value and is limited to %d values",
                         (int)MOST_BRUTE);
    return status;
}

hl_status hl_vae_set_spec(hl_vae *v, const hl_vae_spec *spec)
{
    v->spec = *spec;
    if (hl_dtype_size(spec->dtype) == 0)
        return hl_fail(v->ctx, HL_ERR_INVALID, "unknown precision of an autoencoder");
    hl_status status = set_names(v);
    if (status == HL_OK)
        status = set_dim(v);
    return status == HL_OK ? set_sizes(v) : status;
}
