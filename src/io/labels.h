/* labels.h - texts as numbers. */
#ifndef HL_LABELS_H
#define HL_LABELS_H

#include "base/base.h"

typedef struct hl_label hl_label;
typedef struct hl_labels {
    hl_context *ctx;
    hl_arena texts;
    hl_label *label;
    size_t count, capacity;
    size_t *bucket, buckets; /* the first label of each hash, plus 1 */
} hl_labels;
void hl_labels_init(hl_labels *labels, hl_context *ctx);
void hl_labels_free(hl_labels *labels); /* takes one that is all zero */
/* The number of a text: that of an equal one before, else the next. */
hl_status hl_labels_number(hl_labels *labels, const char *text, size_t bytes, size_t *number);
const char *hl_labels_text(const hl_labels *labels, size_t number); /* NULL if there is no such number */

#endif
