/* fuzz_safetensors.c - the safetensors reader. What it reads it writes and reads again, and that must succeed and give the same table. */
#include "fuzz_support.h"

#include "io/safetensors.h"

static void compare(const hl_tensors *a, const hl_tensors *b)
{
    require(hl_tensors_count(a) == hl_tensors_count(b));
    require(hl_tensors_metadata_count(a) == hl_tensors_metadata_count(b));
    for (size_t i = 0; i < hl_tensors_count(a); i++) {
        const hl_tensor *x = hl_tensors_get(a, i), *y = hl_tensors_find(b, x->name);

        require(y && x->dtype == y->dtype && x->rank == y->rank && x->bytes == y->bytes);
        require(memcmp(x->dims, y->dims, sizeof x->dims) == 0);
        require((uintptr_t)x->data % 64 == 0 && memcmp(x->data, y->data, x->bytes) == 0);
    }
    for (size_t i = 0; i < hl_tensors_metadata_count(a); i++) {
        const char *key, *value;

        require(hl_tensors_metadata_get(a, i, &key, &value));
        require(strcmp(hl_tensors_metadata(b, key), value) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[64], again[64];
    hl_context *ctx;
    hl_tensors *first, *second;
    hl_status status;
    FILE *file;

    snprintf(path, sizeof path, "/dev/shm/fuzz_safetensors.%ld", (long)getpid());
    snprintf(again, sizeof again, "%s.again", path);
    file = fopen(path, "wb");
    require(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
    require(hl_context_create(NULL, &ctx) == HL_OK);
    status = hl_tensors_read(ctx, path, &first);
    require(status == HL_OK || (status == HL_ERR_FORMAT && !first && *hl_context_message(ctx)));
    if (!status) {
        status = hl_tensors_write(first, again);
        if (!status) {
            require(hl_tensors_read(ctx, again, &second) == HL_OK);
            compare(first, second);
            hl_tensors_free(second);
            unlink(again);
        }
        require(status == HL_OK || status == HL_ERR_UNSUPPORTED);
    }
    hl_tensors_free(first);
    hl_context_free(ctx);
    unlink(path);
    return 0;
}
