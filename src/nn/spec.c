/* spec.c - what a network may be: names, limits, defaults. */
#include <stdio.h>
#include <string.h>

#include "nn/net.h"

static const struct {
    const char *name;
    hl_node (*function)(hl_graph *g, hl_node x);
} activations[] = { { "tanh", hl_tanh },
                    { "softplus", hl_softplus },
                    { "swish", hl_swish },
                    { "elu", hl_elu },
                    { "sigmoid", hl_sigmoid } };

const hl_conditioner *const hl_conditioners[] = { &hl_conditioner_made,      &hl_conditioner_sum,  &hl_conditioner_tree,
                                                  &hl_conditioner_attention, &hl_conditioner_conv, NULL };

static hl_status set_activation(hl_net *net, const char *name)
{
    name = name ? name : "tanh";
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(name, activations[i].name) == 0) {
            net->spec.activation = activations[i].name;
            net->activation = activations[i].function;
            return HL_OK;
        }
    return hl_fail(net->ctx, HL_ERR_INVALID,
                   "unknown activation '%.60s'; there are tanh, softplus, swish, elu and sigmoid", name);
}

static hl_status set_conditioner(hl_net *net, const char *name)
{
    char known[100] = "";
    name = name ? name : "made";
    for (size_t i = 0; hl_conditioners[i]; i++) {
        if (strcmp(name, hl_conditioners[i]->name) == 0) {
            net->conditioner = hl_conditioners[i];
            net->spec.conditioner = hl_conditioners[i]->name;
            return HL_OK;
        }
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", hl_conditioners[i]->name);
    }
    return hl_fail(net->ctx, HL_ERR_INVALID, "unknown conditioner '%.60s'; there are: %s", name, known);
}

static hl_status set_transformer(hl_net *net, const char *name)
{
    name = name ? name : "shared";
    net->per_dimension = strcmp(name, "per-dimension") == 0;
    net->spec.transformer = net->per_dimension ? "per-dimension" : "shared";
    if (!net->per_dimension && strcmp(name, "shared") != 0)
        return hl_fail(net->ctx, HL_ERR_INVALID, "unknown transformer '%.60s'; there are shared and per-dimension",
                       name);
    return HL_OK;
}

static hl_status check_range(hl_net *net, const char *what, size_t value, size_t low, size_t high)
{
    if (value < low || value > high)
        return hl_fail(net->ctx, HL_ERR_INVALID, "%s is %zu; it must be in %zu..%zu", what, value, low, high);
    return HL_OK;
}

static hl_status check_layers(hl_net *net, const char *what, int layers)
{
    if (layers < -1 || layers > 64)
        return hl_fail(net->ctx, HL_ERR_INVALID, "%s is %d; it must be in 1..64, or -1 for none", what, layers);
    return HL_OK;
}

hl_status hl_net_set_spec(hl_net *net, const hl_net_spec *given)
{
    hl_net_spec *s = &net->spec;
    *s = *given;
    s->features = s->features ? s->features : 16;
    s->hidden = s->hidden ? s->hidden : 64;
    s->hidden_layers = s->hidden_layers ? s->hidden_layers : 2;
    s->width = s->width ? s->width : 64;
    s->layers = s->layers ? s->layers : 2;
    s->time = s->time != 0;
    s->kernel = s->kernel ? s->kernel : 3;
    if (!hl_dtype_size(s->dtype))
        return hl_fail(net->ctx, HL_ERR_INVALID, "unknown dtype %d", (int)s->dtype);
    hl_status status = check_range(net, "dim", s->dim, 1, 1000000);
    if (status == HL_OK)
        status = check_range(net, "context", s->context, 0, 1000000);
    if (status == HL_OK)
        status = check_range(net, "features", s->features, 2, 65536);
    if (status == HL_OK)
        status = check_range(net, "hidden", s->hidden, 1, 1 << 20);
    if (status == HL_OK)
        status = check_range(net, "width", s->width, 1, 1 << 20);
    if (status == HL_OK)
        status = check_layers(net, "hidden_layers", s->hidden_layers);
    if (status == HL_OK)
        status = check_layers(net, "layers", s->layers);
    if (status == HL_OK)
        status = set_activation(net, given->activation);
    if (status == HL_OK)
        status = set_transformer(net, given->transformer);
    if (status == HL_OK)
        status = set_conditioner(net, given->conditioner);
    if (status != HL_OK)
        return status;
    if (net->conditioner != &hl_conditioner_conv) { /* nothing but conv looks at them */
        s->kernel = 0;
        memset(s->image, 0, sizeof s->image);
    }
    return net->conditioner->check(net->ctx, s);
}
