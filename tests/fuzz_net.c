/* fuzz_net.c - files of networks. One that is read can be written, and evaluated if it is small. */
#include "fuzz_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    uint8_t *copy = fuzz_unchecked(bytes, size);
    hl_net *net = NULL;
    hl_operator *op = NULL;
    if (fuzz_opened(ctx, hl_net_read(ctx, copy, size, &net), net)) {
        hl_net_spec spec = hl_net_describe(net);
        FUZZ_AGAIN(hl_net, net);
        if (spec.dim <= 16 && spec.context <= 16 && !spec.reflections &&
            hl_operator_create(net, &(hl_operator_options){ .order = 1, .no_gradient = 1 }, &op) == HL_OK) {
            double x[16] = { .1, -.2, .3 }, t = .5, c[16] = { 0 }, f[16], d[16], divergence;
            hl_operator_eval(op, 1, x, spec.time ? &t : NULL, spec.context ? c : NULL, f, (void *[]){ d }, &divergence);
            hl_operator_free(op);
        }
    }
    hl_net_free(net);
    hl_context_free(ctx);
    free(copy);
    return 0;
}
