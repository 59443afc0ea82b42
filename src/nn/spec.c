/* spec.c - specifications of networks: names, limits, defaults. */
#include <string.h>

#include "nn/net.h"

typedef struct activation {
    hl_node (*function)(hl_graph *g, hl_node x);
    bool rises; /* everywhere */
} activation;

#define HL_ACTIVATION(name, function, rises) { function, rises },
static const activation activations[] = {
#include "nn/kinds.def"
};
#define HL_CONDITIONER(symbol, name) &hl_conditioner_##symbol,
const hl_conditioner *const hl_conditioners[] = {
#include "nn/kinds.def"
    NULL
};
#define HL_TRANSFORMER(symbol, name) &hl_transformer_##symbol,
const hl_transformer *const hl_transformers[] = {
#include "nn/kinds.def"
    NULL
};
#define HL_ACTIVATION(name, function, rises) name,
const char *const hl_activation_names[] = {
#include "nn/kinds.def"
    NULL
};
#define HL_CONDITIONER(symbol, name) name,
const char *const hl_conditioner_names[] = {
#include "nn/kinds.def"
    NULL
};
#define HL_TRANSFORMER(symbol, name) name,
const char *const hl_transformer_names[] = {
#include "nn/kinds.def"
    NULL
};

const char *const *hl_net_conditioners(void)
{
    return hl_conditioner_names;
}

const char *const *hl_net_transformers(void)
{
    return hl_transformer_names;
}

const char *const *hl_net_activations(void)
{
    return hl_activation_names;
}

static hl_status set_activation(hl_context *ctx, hl_term *term, const char *name)
{
    size_t i = hl_name_index(hl_activation_names, name ? name : "tanh");
    if (!hl_activation_names[i])
        return hl_fail_unknown(ctx, "activation", name, hl_activation_names);
    if (term->transformer->rising && !activations[i].rises) {
        const char *rising[sizeof activations / sizeof *activations + 1] = { NULL };
        for (size_t k = 0, count = 0; hl_activation_names[k]; k++)
            if (activations[k].rises)
                rising[count++] = hl_activation_names[k];
        char list[120];
        return hl_fail(ctx, HL_ERR_INVALID, "transformer %s needs a monotone activation, but %s is not; use one of: %s",
                       term->spec.transformer, name, hl_name_list(rising, list, sizeof list));
    }
    term->spec.activation = hl_activation_names[i];
    term->activation = activations[i].function;
    return HL_OK;
}

static hl_status set_conditioner(hl_context *ctx, hl_term *term, const char *name)
{
    size_t i = hl_name_index(hl_conditioner_names, name ? name : "made");
    if (!hl_conditioner_names[i])
        return hl_fail_unknown(ctx, "conditioner", name, hl_conditioner_names);
    term->conditioner = hl_conditioners[i];
    term->spec.conditioner = hl_conditioner_names[i];
    return HL_OK;
}

static hl_status set_transformer(hl_context *ctx, hl_term *term, const char *name)
{
    size_t i = hl_name_index(hl_transformer_names, name ? name : "shared");
    if (!hl_transformer_names[i])
        return hl_fail_unknown(ctx, "transformer", name, hl_transformer_names);
    term->transformer = hl_transformers[i];
    term->spec.transformer = hl_transformer_names[i];
    return HL_OK;
}

static hl_status check_range(hl_context *ctx, const char *what, size_t value, size_t low, size_t high)
{
    if (value < low || value > high)
        return hl_fail(ctx, HL_ERR_INVALID, "%s is %zu; it must be in %zu..%zu", what, value, low, high);
    return HL_OK;
}

static hl_status check_layers(hl_context *ctx, const char *what, int layers)
{
    if (layers < -1 || layers > 64)
        return hl_fail(ctx, HL_ERR_INVALID, "%s is %d; it must be in 1..64, or -1 for none", what, layers);
    return HL_OK;
}

static hl_status check_sizes(hl_context *ctx, const hl_net_spec *s)
{
    const struct {
        const char *what;
        size_t value, low, high;
    } range[] = { { "dim", s->dim, 1, 1000000 },         { "context", s->context, 0, 1000000 },
                  { "features", s->features, 2, 65536 }, { "hidden", s->hidden, 1, 1 << 20 },
                  { "width", s->width, 1, 1 << 20 },     { "reflections", s->reflections, 0, HL_MAX_REFLECTIONS },
                  { "mlp", s->mlp, 0, 1 << 20 } };
    for (size_t i = 0; i < sizeof range / sizeof *range; i++)
        if (check_range(ctx, range[i].what, range[i].value, range[i].low, range[i].high) != HL_OK)
            return HL_ERR_INVALID;
    hl_status status = check_layers(ctx, "hidden_layers", s->hidden_layers);
    return status == HL_OK ? check_layers(ctx, "layers", s->layers) : status;
}

/* Keep the order of columns and the way back, if it has every column once. */
static hl_status set_order(hl_context *ctx, hl_term *term, const size_t *given)
{
    size_t dim = term->spec.dim;
    term->spec.order = NULL;
    if (!given)
        return HL_OK;
    size_t *order = hl_calloc(ctx, dim, 2 * sizeof *order);
    if (!order)
        return HL_ERR_NOMEM;
    term->order = order;
    term->inverse = order + dim;
    memset(term->inverse, 0xff, dim * sizeof *order);
    for (size_t i = 0; i < dim; i++) {
        if (given[i] >= dim || term->inverse[given[i]] != SIZE_MAX)
            return hl_fail(ctx, HL_ERR_INVALID, "order[%zu] is %zu; an order holds each of the columns 0..%zu once", i,
                           given[i], dim - 1);
        order[i] = given[i];
        term->inverse[given[i]] = i;
    }
    term->spec.order = order;
    return HL_OK;
}

static hl_status set_term(hl_context *ctx, hl_term *term, const hl_net_spec *given)
{
    hl_net_spec *s = &term->spec;
    s->features = s->features ? s->features : 16;
    s->hidden = s->hidden ? s->hidden : 64;
    s->hidden_layers = s->hidden_layers ? s->hidden_layers : 2;
    s->width = s->width ? s->width : 64;
    s->layers = s->layers ? s->layers : 2;
    s->kernel = s->kernel ? s->kernel : 3;
    hl_status status = check_sizes(ctx, s);
    if (status == HL_OK)
        status = set_transformer(ctx, term, given->transformer);
    if (status == HL_OK)
        status = set_activation(ctx, term, given->activation);
    if (status == HL_OK)
        status = set_conditioner(ctx, term, given->conditioner);
    if (status == HL_OK)
        status = set_order(ctx, term, given->order);
    if (status != HL_OK)
        return status;
    if (!term->conditioner->image) {
        s->kernel = 0;
        memset(s->image, 0, sizeof s->image);
    }
    return term->conditioner->check ? term->conditioner->check(ctx, s) : HL_OK;
}

static hl_status make_terms(hl_net *net, const hl_net_spec *given)
{
    size_t count = 0;
    for (const hl_net_spec *s = given; s; s = s->plus)
        if (++count > HL_MAX_TERMS)
            return hl_fail(net->ctx, HL_ERR_INVALID, "a sum of networks may have at most %d terms", HL_MAX_TERMS);
    net->term = hl_calloc(net->ctx, count, sizeof *net->term);
    if (!net->term)
        return HL_ERR_NOMEM;
    net->terms = count;
    return HL_OK;
}

hl_status hl_net_set_spec(hl_net *net, const hl_net_spec *given)
{
    hl_status status = make_terms(net, given);
    net->dim = given->dim;
    net->context = given->context;
    net->time = given->time != 0;
    net->dtype = given->dtype;
    if (status == HL_OK && !hl_dtype_size(net->dtype))
        return hl_fail(net->ctx, HL_ERR_INVALID, "unknown dtype %d", (int)net->dtype);
    for (size_t i = 0; i < net->terms && status == HL_OK; i++, given = given->plus) {
        hl_term *term = &net->term[i];
        term->spec = *given;
        term->spec.dim = net->dim;
        term->spec.context = net->context;
        term->spec.time = net->time;
        term->spec.dtype = net->dtype;
        term->spec.plus = i + 1 < net->terms ? &net->term[i + 1].spec : NULL;
        status = set_term(net->ctx, term, given);
    }
    return status;
}
