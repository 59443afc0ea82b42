/* fuzz_spec.c - specifications of networks and flows: each byte is a field. What is accepted can be built, described, and made again from its
 * description with the same parameters. */
#include "fuzz_support.h"

typedef struct source {
    const uint8_t *at, *end;
} source;

static size_t take(source *s, size_t most)
{
    return s->at < s->end ? *s->at++ % (most + 1) : 0;
}

/* A name of a list, none, or one that is no name. */
static const char *take_name(source *s, const char *const *names)
{
    size_t count = 0;
    while (names[count])
        count++;
    size_t k = take(s, count + 1);
    return k < count ? names[k] : k == count ? NULL : "unknown";
}

static hl_net_spec take_spec(source *s, size_t *order)
{
    hl_net_spec spec = { .dim = take(s, 9),
                         .context = take(s, 3),
                         .time = (int)take(s, 1),
                         .conditioner = take_name(s, hl_net_conditioners()),
                         .image = { take(s, 2), take(s, 3), take(s, 3) },
                         .kernel = take(s, 5),
                         .features = take(s, 6),
                         .hidden = take(s, 9),
                         .hidden_layers = (int)take(s, 5) - 2,
                         .transformer = take_name(s, hl_net_transformers()),
                         .width = take(s, 5),
                         .layers = (int)take(s, 4) - 2,
                         .activation = take_name(s, hl_net_activations()),
                         .dtype = (hl_dtype)take(s, 2),
                         .reflections = take(s, 3),
                         .mlp = take(s, 3) };
    if (take(s, 1)) {
        for (size_t i = 0; i < spec.dim; i++)
            order[i] = take(s, spec.dim);
        spec.order = order;
    }
    return spec;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    source s = { bytes, bytes + size };
    hl_context *ctx = fuzz_context(&asked);
    size_t order[2][16];
    hl_net_spec spec = take_spec(&s, order[0]), more = take_spec(&s, order[1]);
    hl_flow_spec flow_spec = { .flows = take(&s, 3), .net = spec };
    hl_net *net = NULL, *again = NULL;
    hl_flow *flow = NULL;
    if (take(&s, 1))
        spec.plus = &more;
    if (fuzz_opened(ctx, hl_net_create(ctx, &spec, &net), net)) {
        hl_net_spec full = hl_net_describe(net);
        require(hl_net_check(net) == HL_OK);
        require(hl_net_create(ctx, &full, &again) == HL_OK && hl_net_param_count(net) == hl_net_param_count(again));
        FUZZ_AGAIN(hl_net, net);
    }
    hl_net_free(again);
    hl_net_free(net);
    if (fuzz_opened(ctx, hl_flow_create(ctx, &flow_spec, &flow), flow)) {
        double x[16] = { .1, .2 }, c[4] = { 0 }, logp;
        require(hl_flow_init(flow, 1) == HL_OK);
        hl_flow_logp(flow, 1, x, c, &logp);
    }
    hl_flow_free(flow);
    hl_context_free(ctx);
    return 0;
}
