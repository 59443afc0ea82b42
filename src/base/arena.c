/* arena.c - many small allocations, freed together.
 *
 * A list of blocks; the first is the one being filled. Blocks double in size up to a limit. A request that is large for
 * a block gets one of its own behind the first, so that it wastes nothing. */
#include "base/base.h"

enum { GRAIN = 16, FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 18 };

struct hl_arena_block {
    struct hl_arena_block *next;
    size_t used, size; /* bytes after the header */
};

/* The header's size rounded up, so that what follows it is aligned. */
enum { HEADER = (sizeof(struct hl_arena_block) + GRAIN - 1) / GRAIN * GRAIN };

static struct hl_arena_block *new_block(hl_arena *arena, size_t size)
{
    struct hl_arena_block *block = hl_alloc(arena->ctx, hl_size_add(HEADER, size));

    if (block)
        *block = (struct hl_arena_block){ .size = size };
    return block;
}

void hl_arena_init(hl_arena *arena, hl_context *ctx)
{
    *arena = (hl_arena){ .ctx = ctx };
}

void *hl_arena_alloc(hl_arena *arena, size_t bytes)
{
    struct hl_arena_block *first = arena->blocks, *block = first;
    size_t rounded = hl_size_add(bytes, GRAIN - 1) / GRAIN * GRAIN;
    size_t used;

    if (bytes > SIZE_MAX - GRAIN)
        rounded = SIZE_MAX; /* new_block fails and says so */
    if (!first || rounded > first->size - first->used) {
        size_t size = !first ? FIRST_BLOCK : first->size < LARGEST_BLOCK ? 2 * first->size : LARGEST_BLOCK;

        if (first && rounded > size / 4) {
            block = new_block(arena, rounded);
            if (!block)
                return NULL;
            block->next = first->next;
            first->next = block;
        } else {
            block = new_block(arena, rounded > size ? rounded : size);
            if (!block)
                return NULL;
            block->next = first;
            arena->blocks = block;
        }
    }
    used = block->used;
    block->used += rounded;
    return (char *)block + HEADER + used;
}

void hl_arena_free(hl_arena *arena)
{
    struct hl_arena_block *block = arena->blocks, *next;

    for (; block; block = next) {
        next = block->next;
        hl_free(arena->ctx, block);
    }
    arena->blocks = NULL;
}
