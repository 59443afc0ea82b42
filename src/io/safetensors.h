/* safetensors.h - named tensors and text metadata in a safetensors file.
 *
 *     bytes 0..7     N, the header's length, little-endian
 *     N bytes        JSON: {"__metadata__": {"key": "value", ...},
 *                           "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *     the rest       the tensors' values, row-major, little-endian, without gaps or overlaps
 *
 * The metadata of files that are written here have a checksum, "crc32"; a file that has one is held to it.
 *
 * Write:                                             Read:
 *     hl_tensors_create(ctx, &t);                        hl_tensors_read(ctx, "m.hollow", &t);
 *     hl_tensors_add(t, "w", HL_F32, 2, dims, w);        w = hl_tensors_find(t, "w");
 *     hl_tensors_set_metadata(t, "format", "1");         text = hl_tensors_metadata(t, "format");
 *     hl_tensors_write(t, "m.hollow");                   ...
 *     hl_tensors_free(t);                                hl_tensors_free(t);
 *
 * The reader trusts nothing: whatever the file holds, it gives a table that keeps every promise made here, or an error
 * that names the file, the tensor and the fault. */
#ifndef HL_SAFETENSORS_H
#define HL_SAFETENSORS_H

#include "base/base.h"

enum {
    HL_TENSOR_MAX_RANK = 8,
    HL_TENSOR_MAX_NAME = 256,          /* bytes */
    HL_TENSORS_MAX_COUNT = 100000,     /* tensors, and as many pairs of metadata */
    HL_TENSORS_MAX_HEADER = 100000000, /* bytes, as in the reference implementation */
};

/* The element type of a tensor that other programs wrote and Hollow cannot compute with. */
#define HL_DTYPE_OTHER ((hl_dtype)2)

typedef struct hl_tensor {
    const char *name;                /* 1 to HL_TENSOR_MAX_NAME bytes of UTF-8 without control characters */
    const char *type;                /* as the file spells it: "F32", "F64", "BF16", ... */
    hl_dtype dtype;                  /* HL_F32, HL_F64 or HL_DTYPE_OTHER */
    int rank;                        /* 0 for a scalar */
    size_t dims[HL_TENSOR_MAX_RANK]; /* may be 0; the product of the others does not overflow */
    size_t bytes;
    const void *data; /* aligned to 64 bytes if read; NULL if HL_DTYPE_OTHER */
} hl_tensor;

/* Is this text UTF-8, as names and metadata must be? */
bool hl_is_utf8(const char *text);

typedef struct hl_tensors hl_tensors; /* opaque: a table of tensors and metadata */

/* An empty table. */
hl_status hl_tensors_create(hl_context *ctx, hl_tensors **tensors);
/* Takes NULL. */
void hl_tensors_free(hl_tensors *tensors);

/* Append a tensor. Copies name and dims; borrows data until the table is freed. HL_ERR_INVALID if the name is taken or
 * is no name (see hl_tensor), or if an argument is outside the limits above. */
hl_status hl_tensors_add(hl_tensors *tensors, const char *name, hl_dtype dtype, int rank, const size_t *dims,
                         const void *data);
/* Add a pair of texts, or give a key a new value. Copies both; they must be UTF-8 (HL_ERR_INVALID). */
hl_status hl_tensors_set_metadata(hl_tensors *tensors, const char *key, const char *value);

/* Write the table, atomically (hl_file_replace). Equal tables give equal bytes: the F64 tensors come first and the F32
 * tensors after them, each in the order they were added, so that every tensor is aligned to its type.
 * HL_ERR_UNSUPPORTED if the table was read and has a tensor of another type. */
hl_status hl_tensors_write(const hl_tensors *tensors, const char *path);
/* The same bytes in memory: *size receives their number, and `bytes` them, if `capacity` is at least that; otherwise
 * nothing is written, and `bytes` may be NULL. */
hl_status hl_tensors_write_memory(const hl_tensors *tensors, void *bytes, size_t capacity, size_t *size);

/* Read a file, all of it; the table owns the values. Tensors stand in the order of their data. HL_ERR_FORMAT if the
 * file is malformed or beyond the limits above, HL_ERR_IO if it cannot be read, HL_ERR_NOMEM. On failure *tensors is
 * NULL. */
hl_status hl_tensors_read(hl_context *ctx, const char *path, hl_tensors **tensors);
/* The same of `size` bytes in memory, which are copied. Messages call them `name`. */
hl_status hl_tensors_read_memory(hl_context *ctx, const char *name, const void *bytes, size_t size,
                                 hl_tensors **tensors);

/* Was it read from a file with a checksum? */
bool hl_tensors_checked(const hl_tensors *tensors);
size_t hl_tensors_count(const hl_tensors *tensors);
/* Tensor `index`, or NULL if there are not so many. Borrowed until the table is added to or freed. */
const hl_tensor *hl_tensors_get(const hl_tensors *tensors, size_t index);
/* The tensor of that name, or NULL. Borrowed until the table is added to or freed. */
const hl_tensor *hl_tensors_find(const hl_tensors *tensors, const char *name);

/* The value of a key, or NULL. Borrowed until the key is set again or the table is freed. */
const char *hl_tensors_metadata(const hl_tensors *tensors, const char *key);
size_t hl_tensors_metadata_count(const hl_tensors *tensors);
/* Pair `index`, in the order of the file or of setting; false if there are not so many. Borrowed likewise. */
bool hl_tensors_metadata_get(const hl_tensors *tensors, size_t index, const char **key, const char **value);

#endif
