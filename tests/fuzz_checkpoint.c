/* fuzz_checkpoint.c - checkpoints, with the checksum put right. What is taken has the settings and the size that were asked for. */
#include "fuzz_support.h"

#include "io/safetensors.h"
#include "learn/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    int asked;
    hl_context *ctx = fuzz_context(&asked);
    uint8_t *copy = fuzz_unchecked(bytes, size);
    hl_tensors *t = NULL;
    char path[64], *settings = NULL;
    snprintf(path, sizeof path, "/dev/shm/fuzz_checkpoint.%ld", (long)getpid());
    if (hl_tensors_read_memory(ctx, "bytes", copy, size, &t) == HL_OK && hl_tensors_write(t, path) == HL_OK) {
        double *state = NULL;
        if (fuzz_opened(ctx, hl_checkpoint_settings(ctx, path, &settings), settings)) {
            const hl_tensor *first = hl_tensors_get(t, 0);
            size_t count = first ? first->bytes / sizeof(double) : 0;
            hl_status status = hl_checkpoint_read(ctx, settings, path, count, &state);
            require(status != HL_OK || count == 0 || state);
            hl_free(ctx, state);
        }
        hl_free(ctx, settings);
        unlink(path);
    }
    hl_tensors_free(t);
    hl_context_free(ctx);
    free(copy);
    return 0;
}
