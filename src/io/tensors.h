/* tensors.h - the table of tensors, as its writer and its reader see it. */
#ifndef HL_TENSORS_H
#define HL_TENSORS_H

#include "io/safetensors.h"

#define HL_METADATA_KEY "__metadata__"
#define HL_CHECKSUM_KEY "crc32" /* of the metadata; belongs to the file, not to the table */

enum {
    HL_NAME_SHOWN = 64, /* bytes of a name in a message */
    HL_SHAPE_TEXT = 2 + HL_TENSOR_MAX_RANK * (20 + 2) + 1
};

typedef struct hl_text_pair {
    const char *key, *value;
} hl_text_pair;

typedef struct hl_name_entry {
    const char *name;
    size_t index; /* in tensors */
} hl_name_entry;

struct hl_tensors {
    hl_context *ctx;
    hl_arena texts; /* names, keys, values */
    hl_tensor *tensors;
    size_t count, capacity;
    hl_name_entry *names; /* sorted; `count` of them */
    size_t names_capacity;
    hl_text_pair *pairs;
    size_t pair_count, pair_capacity;
    char *data;   /* the values that were read; NULL if none were */
    bool checked; /* they had the file's checksum */
};

/* Copy text that may hold anything to where a message can show it: what is not printable becomes '?', and what does
 * not fit "...". Returns out. */
const char *hl_tensor_shown(char *out, size_t capacity, const char *text);
/* What is wrong with a tensor's name, or NULL. */
const char *hl_tensor_name_fault(const char *name);
const char *hl_tensor_shape_text(char out[HL_SHAPE_TEXT], const hl_tensor *tensor);
const char *hl_tensors_copy_text(hl_tensors *t, const char *text);
/* The number of elements, 0 if a dimension is 0; false if the product of the other dimensions overflows. The result
 * times 64 bits does not overflow. */
bool hl_tensor_elements(const hl_tensor *tensor, size_t *elements);
/* Room for `count` tensors and their names. */
hl_status hl_tensors_reserve(hl_tensors *t, size_t count);
/* Append a pair whose key is new. */
hl_status hl_tensors_append_pair(hl_tensors *t, const char *key, const char *value);
/* Of names, types, shapes, values and metadata, in any order. */
uint32_t hl_tensors_checksum(const hl_tensors *t);
#endif
