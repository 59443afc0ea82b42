/* memory.c - aligned memory over the context's allocator.
 *
 * The allocator promises no more than malloc's alignment, so a block is allocated larger, its start is rounded up, and
 * the allocator's own pointer is kept in the word before it:
 *
 *     original ... [original] block ...
 *                             ^ multiple of 64 */
#include <string.h>

#include "base/base.h"

enum { ALIGNMENT = 64, OVERHEAD = ALIGNMENT - 1 + sizeof(void *) };

size_t hl_size_mul(size_t a, size_t b)
{
    return b && a > SIZE_MAX / b ? SIZE_MAX : a * b;
}

size_t hl_size_add(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

void *hl_alloc(hl_context *ctx, size_t bytes)
{
    size_t total = hl_size_add(bytes, OVERHEAD);
    char *original = total == SIZE_MAX ? NULL : ctx->alloc(ctx->user, total);
    char *block;

    if (!original) {
        hl_fail(ctx, HL_ERR_NOMEM, "out of memory: %zu bytes", bytes);
        return NULL;
    }
    block = original + sizeof(void *);
    block += -(uintptr_t)block % ALIGNMENT;
    memcpy(block - sizeof(void *), &original, sizeof(void *));
    return block;
}

void *hl_calloc(hl_context *ctx, size_t count, size_t size)
{
    size_t bytes = hl_size_mul(count, size);
    void *block = hl_alloc(ctx, bytes);

    return block ? memset(block, 0, bytes) : NULL;
}

void hl_free(hl_context *ctx, void *pointer)
{
    void *original;

    if (!pointer)
        return;
    memcpy(&original, (char *)pointer - sizeof(void *), sizeof(void *));
    ctx->release(ctx->user, original);
}

hl_status hl_grow(hl_context *ctx, void **array, size_t *capacity, size_t need, size_t size)
{
    size_t wanted = *capacity + *capacity / 2 + 8;
    void *old, *grown;

    if (need <= *capacity)
        return HL_OK;
    if (wanted < need)
        wanted = need;
    grown = hl_alloc(ctx, hl_size_mul(wanted, size));
    if (!grown)
        return HL_ERR_NOMEM;
    /* memcpy, as *array is really a pointer to some other type, cast by the caller. */
    memcpy(&old, array, sizeof old);
    if (old)
        memcpy(grown, old, *capacity * size);
    hl_free(ctx, old);
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return HL_OK;
}
