/* fuzz_sde.c - files of stochastic equations. One that is read can be written and evaluated. */
#include "fuzz_support.h"

enum { MOST = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    uint8_t *copy = fuzz_unchecked(bytes, size);
    hl_sde *sde = NULL;
    if (fuzz_opened(ctx, hl_sde_read(ctx, copy, size, &sde), sde)) {
        double x[MOST] = { .5, -.5 }, t = .1, f[MOST], g[MOST];
        FUZZ_AGAIN(hl_sde, sde);
        if (hl_sde_describe(sde).dim <= MOST)
            hl_sde_eval(sde, 1, &t, x, &(hl_sde_values){ .f = f, .g = g });
    }
    hl_sde_free(sde);
    hl_context_free(ctx);
    free(copy);
    return 0;
}
