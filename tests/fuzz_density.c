/* fuzz_density.c - files of density models. One that is read can be written, asked for log-densities and drawn from. */
#include "fuzz_support.h"

enum { MOST = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    uint8_t *copy = fuzz_unchecked(bytes, size);
    hl_density *model = NULL;
    if (fuzz_opened(ctx, hl_density_read(ctx, copy, size, &model), model)) {
        double x[2 * MOST] = { 1, -1, .5 }, c[2 * MOST] = { 0 }, logp[2];
        FUZZ_AGAIN(hl_density, model);
        if (hl_density_dim(model) <= MOST && hl_density_context(model) <= MOST) {
            hl_density_logp(model, 2, x, c, logp);
            asked = 0;
            hl_density_sample(model, 1, 0, 2, c, x);
        }
    }
    hl_density_free(model);
    hl_context_free(ctx);
    free(copy);
    return 0;
}
