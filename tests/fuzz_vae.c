/* fuzz_vae.c - files of autoencoders. One that is read can be written and drawn from. */
#include "fuzz_support.h"

enum { MOST = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    uint8_t *copy = fuzz_unchecked(bytes, size);
    hl_vae *vae = NULL;
    if (fuzz_opened(ctx, hl_vae_read(ctx, copy, size, &vae), vae)) {
        double mean[MOST];
        FUZZ_AGAIN(hl_vae, vae);
        if (hl_vae_dim(vae) <= MOST)
            hl_vae_sample(vae, 1, 1, NULL, mean);
    }
    hl_vae_free(vae);
    hl_context_free(ctx);
    free(copy);
    return 0;
}
