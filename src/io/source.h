/* source.h - files, pipes and devices to read from, in order or at any place.
 *
 * Every failure is HL_ERR_IO, or HL_ERR_NOMEM, with the path and the reason in the message. */
#ifndef HL_SOURCE_H
#define HL_SOURCE_H

#include "base/base.h"

/* A file, pipe or device to read from. A regular file may be read at any place; anything else comes in order, and can be made
 * to be read at any place by loading it. */
typedef struct hl_source {
    hl_context *ctx;
    char *path;    /* a copy; "standard input" for "-" */
    int fd;        /* -1 if not open */
    bool standard; /* standard input, which is not ours to close */
    bool regular;  /* read at any place by descriptor, `size` bytes */
    char *memory;  /* what was loaded, `size` bytes; else NULL */
    size_t size;
    char head[8]; /* of a pipe: what was looked at, to be read again */
    size_t head_bytes, head_used;
} hl_source;

/* Open a path, "-" being standard input. On failure there is nothing to close. */
hl_status hl_source_open(hl_context *ctx, const char *path, hl_source *source);
void hl_source_close(hl_source *source);
/* Read another file, `size` bytes long, from now on, under the same name; the source owns its descriptor. */
void hl_source_replace(hl_source *source, int fd, size_t size);
/* The first bytes, at most 8, without taking them. */
hl_status hl_source_peek(hl_source *source, char head[8], size_t *bytes);
/* Up to `bytes` of the next bytes, in order; *got < bytes only at the end. */
hl_status hl_source_next(hl_source *source, void *data, size_t bytes, size_t *got);
/* Make it readable at any place, once. */
hl_status hl_source_load(hl_source *source);
/* `bytes` bytes at `offset`. A file that ends before is HL_ERR_IO. */
hl_status hl_source_at(hl_source *source, size_t offset, void *data, size_t bytes);

#endif
