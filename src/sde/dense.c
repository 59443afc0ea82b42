/* dense.c - plain networks: layers of act(W y + b), the last without act. Their parameters live in an hl_net without a
 * specification, so that initialisation, checks and optimisers are those of hollow networks. */
#include <stdio.h>
#include <string.h>

#include "sde/sde.h"

static const struct {
    const char *name;
    hl_node (*function)(hl_graph *g, hl_node x);
} activations[] = { { "swish", hl_swish }, { "tanh", hl_tanh }, { "softplus", hl_softplus } };

static hl_node layers(hl_builder *b, const hl_dense *d, hl_node y)
{
    size_t in = d->in;
    char name[32];
    for (int k = 0; k < d->layers; k++, in = d->hidden) {
        snprintf(name, sizeof name, "layer.%d", k);
        y = hl_builder_dense(b, name, y, d->hidden, in, true);
    }
    return hl_builder_dense(b, "out", y, d->out, in, false);
}

hl_node hl_dense_build(const hl_dense *d, hl_graph *g, hl_node y, const hl_node *param)
{
    hl_builder b = { .net = d->net, .term = d->net->term, .g = g, .node = (hl_node *)(uintptr_t)param, .reuse = true };
    return layers(&b, d, y);
}

static hl_status declare(const hl_dense *d)
{
    hl_graph *g = NULL;
    hl_status status = hl_graph_create(d->net->ctx, &g);
    if (status != HL_OK)
        return status;
    hl_builder b = { .net = d->net, .term = d->net->term, .g = g, .declaring = true };
    layers(&b, d, hl_input(g, "y", 1, &d->in));
    status = hl_graph_status(g);
    hl_graph_free(g);
    return status == HL_OK ? hl_net_allocate(d->net) : status;
}

const char *hl_dense_activation(const char *name)
{
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(activations[i].name, name) == 0)
            return activations[i].name;
    return NULL;
}

hl_status hl_dense_create(hl_context *ctx, const char *activation, hl_dtype dtype, hl_dense *d)
{
    d->net = hl_calloc(ctx, 1, sizeof *d->net);
    if (!d->net)
        return HL_ERR_NOMEM;
    d->net->ctx = ctx;
    d->net->dtype = dtype;
    d->net->term = hl_calloc(ctx, 1, sizeof *d->net->term);
    if (!d->net->term)
        return HL_ERR_NOMEM;
    d->net->terms = 1;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        if (strcmp(activations[i].name, activation) == 0)
            d->net->term->activation = activations[i].function;
    return declare(d);
}
