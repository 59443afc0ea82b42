/* fuzz_support.h - what the libFuzzer targets share. `make fuzz` builds tests/fuzz_NAME.c with clang and runs each on the corpus in
 * tests/corpus/NAME. A target calls `require` of what must hold whatever the bytes are. */
#ifndef HL_FUZZ_SUPPORT_H
#define HL_FUZZ_SUPPORT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hollow/hollow.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static inline void require(int condition)
{
    if (!condition)
        abort();
}

/* A context whose solves end after some evaluations, so that a file which asks for very many costs little. */
static inline int fuzz_stop(void *user)
{
    return ++*(int *)user > 200;
}

static inline hl_context *fuzz_context(int *asked)
{
    hl_context *ctx;
    *asked = 0;
    require(hl_context_create(&(hl_context_options){ .stop = fuzz_stop, .user = asked }, &ctx) == HL_OK);
    return ctx;
}

/* A failure has a message, and gives nothing. */
static inline int fuzz_opened(const hl_context *ctx, hl_status status, const void *result)
{
    require(status == HL_OK ? result != NULL : !result && *hl_context_message(ctx));
    return status == HL_OK;
}

/* The bytes of a model file whose checksum counts for nothing: a file without the key is not held to it. The caller frees. */
static inline uint8_t *fuzz_unchecked(const uint8_t *bytes, size_t size)
{
    static const char key[] = "\"crc32\"";
    uint8_t *copy = malloc(size + 1);
    require(copy != NULL);
    memcpy(copy, bytes, size);
    for (size_t i = 0; i + sizeof key - 1 <= size; i++)
        if (memcmp(copy + i, key, sizeof key - 1) == 0)
            copy[i + 5] = '_';
    return copy;
}

/* A model that was read is written, and what was written is read and written to the same bytes. */
#define FUZZ_AGAIN(type, model)                                                                                        \
    do {                                                                                                               \
        size_t size_1 = 0, size_2 = 0;                                                                                 \
        type *read_again = NULL;                                                                                       \
        require(type##_write(model, NULL, 0, &size_1) == HL_OK);                                                       \
        uint8_t *first = malloc(size_1), *second = malloc(size_1);                                                     \
        require(first &&second &&type##_write(model, first, size_1, &size_2) == HL_OK && size_1 == size_2);            \
        require(type##_read(ctx, first, size_1, &read_again) == HL_OK);                                                \
        require(type##_write(read_again, second, size_1, &size_2) == HL_OK && size_1 == size_2);                       \
        require(memcmp(first, second, size_1) == 0);                                                                   \
        type##_free(read_again);                                                                                       \
        free(first);                                                                                                   \
        free(second);                                                                                                  \
    } while (0)

#endif
