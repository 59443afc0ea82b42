/* labels.c - texts as numbers: each text that differs from those before it gets the next number. */
#include <string.h>

#include "io/labels.h"

struct hl_label {
    size_t next; /* with the same hash, plus 1; 0: none */
    uint64_t hash;
    size_t bytes;
    char *text; /* in the arena */
};

void hl_labels_init(hl_labels *l, hl_context *ctx)
{
    *l = (hl_labels){ .ctx = ctx };
    hl_arena_init(&l->texts, ctx);
}

void hl_labels_free(hl_labels *l)
{
    if (!l->ctx)
        return;
    hl_arena_free(&l->texts);
    hl_free(l->ctx, l->label);
    hl_free(l->ctx, l->bucket);
}

/* Twice the buckets, when there are as many labels. */
static hl_status spread(hl_labels *l)
{
    size_t buckets = l->buckets ? 2 * l->buckets : 64, *bucket;
    if (l->count < l->buckets)
        return HL_OK;
    bucket = hl_calloc(l->ctx, buckets, sizeof *bucket);
    if (!bucket)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < l->count; i++) {
        size_t *first = &bucket[l->label[i].hash % buckets];
        l->label[i].next = *first;
        *first = i + 1;
    }
    hl_free(l->ctx, l->bucket);
    l->bucket = bucket;
    l->buckets = buckets;
    return HL_OK;
}

hl_status hl_labels_number(hl_labels *l, const char *text, size_t bytes, size_t *number)
{
    uint64_t hash = 0xcbf29ce484222325ULL; /* Fowler, Noll and Vo's */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001b3ULL;
    for (size_t i = l->buckets ? l->bucket[hash % l->buckets] : 0; i; i = l->label[i - 1].next) {
        const hl_label *known = &l->label[i - 1];
        if (known->hash == hash && known->bytes == bytes && memcmp(known->text, text, bytes) == 0) {
            *number = i - 1;
            return HL_OK;
        }
    }
    hl_status status = spread(l);
    if (status == HL_OK)
        status = hl_grow(l->ctx, (void **)&l->label, &l->capacity, l->count + 1, sizeof *l->label);
    char *copy = status == HL_OK ? hl_arena_alloc(&l->texts, bytes + 1) : NULL;
    if (!copy)
        return HL_ERR_NOMEM;
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    size_t *first = &l->bucket[hash % l->buckets];
    l->label[l->count] = (hl_label){ .next = *first, .hash = hash, .bytes = bytes, .text = copy };
    *number = l->count;
    *first = ++l->count;
    return HL_OK;
}

const char *hl_labels_text(const hl_labels *l, size_t number)
{
    return number < l->count ? l->label[number].text : NULL;
}
