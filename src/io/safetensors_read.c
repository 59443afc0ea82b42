/* safetensors_read.c - the reader.
 *
 * It validates the header completely before it reserves memory for the data, and reads every tensor to a place of its own, so
 * alignment does not depend on the file. Memory is bounded by the file's size and the limits in the header. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/json.h"
#include "io/tensors.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "model files can be read on little-endian machines only"
#endif

enum {
    DATA_ALIGNMENT = 64,
    MAX_DEPTH = 3,       /* of the JSON: the table, a tensor, its shape */
    MAX_VALUES = 2000000 /* in the JSON; HL_TENSORS_MAX_COUNT tensors of the largest rank have 1.4 million */
};

static const struct type {
    const char *name;
    unsigned bits;
    hl_dtype dtype;
} types[] = {
    { "F64", 64, HL_F64 },
    { "F32", 32, HL_F32 },
    { "F16", 16, HL_DTYPE_OTHER },
    { "BF16", 16, HL_DTYPE_OTHER },
    { "I64", 64, HL_DTYPE_OTHER },
    { "I32", 32, HL_DTYPE_OTHER },
    { "I16", 16, HL_DTYPE_OTHER },
    { "I8", 8, HL_DTYPE_OTHER },
    { "U64", 64, HL_DTYPE_OTHER },
    { "U32", 32, HL_DTYPE_OTHER },
    { "U16", 16, HL_DTYPE_OTHER },
    { "U8", 8, HL_DTYPE_OTHER },
    { "BOOL", 8, HL_DTYPE_OTHER },
    { "C64", 64, HL_DTYPE_OTHER },
    { "F8_E4M3", 8, HL_DTYPE_OTHER },
    { "F8_E5M2", 8, HL_DTYPE_OTHER },
    { "F8_E8M0", 8, HL_DTYPE_OTHER },
    { "F6_E2M3", 6, HL_DTYPE_OTHER },
    { "F6_E3M2", 6, HL_DTYPE_OTHER },
    { "F4", 4, HL_DTYPE_OTHER },
};

/* ---- reading: faults ---- */

/* A tensor and the place of its data in the file. */
typedef struct span {
    hl_tensor tensor;
    size_t begin, end;
} span;

typedef struct reader {
    hl_tensors *t;
    hl_file file;
    size_t header_bytes, data_bytes;
    span *spans;
    size_t count, capacity;
    char checksum[16]; /* as the file has it; "" if it has none */
} reader;

/* "m.hollow: <what is wrong>" */
static hl_status fault(const reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static hl_status fault(const reader *r, const char *format, ...)
{
    char text[384];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hl_fail(r->t->ctx, HL_ERR_FORMAT, "%s: %s", hl_path_shown(r->file.path), text);
}

/* "m.hollow: tensor 'w': <what is wrong>" */
static hl_status tensor_fault(const reader *r, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static hl_status tensor_fault(const reader *r, const char *name, const char *format, ...)
{
    char text[288], name_text[HL_NAME_SHOWN];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fault(r, "tensor '%s': %s", hl_tensor_shown(name_text, sizeof name_text, name), text);
}

/* ---- reading: the header ---- */

static hl_status take_shape(const reader *r, const hl_json *shape, hl_tensor *tensor)
{
    size_t rank = shape->count;
    const hl_json *dim = shape->first;

    if (shape->kind != HL_JSON_ARRAY)
        return tensor_fault(r, tensor->name, "shape is not an array");
    if (rank > HL_TENSOR_MAX_RANK)
        return tensor_fault(r, tensor->name, "shape has %zu dimensions; at most %d are supported", rank,
                            HL_TENSOR_MAX_RANK);
    tensor->rank = (int)rank;
    for (size_t i = 0; i < rank; i++, dim = dim->next) {
        if (!hl_json_is_integer(dim) || dim->integer < 0)
            return tensor_fault(r, tensor->name, "dimension %zu of shape is not a whole number >= 0", i);
        tensor->dims[i] = (uintmax_t)dim->integer < SIZE_MAX ? (size_t)dim->integer : SIZE_MAX;
    }
    return HL_OK;
}

/* The bytes that a tensor of this type and shape has. */
static hl_status take_bytes(const reader *r, const struct type *type, hl_tensor *tensor)
{
    char shape[HL_SHAPE_TEXT];
    size_t elements;

    if (!hl_tensor_elements(tensor, &elements))
        return tensor_fault(r, tensor->name, "shape %s is too large", hl_tensor_shape_text(shape, tensor));
    if (elements * type->bits % 8 != 0)
        return tensor_fault(r, tensor->name, "shape %s of %s does not fill whole bytes",
                            hl_tensor_shape_text(shape, tensor), type->name);
    tensor->bytes = elements * type->bits / 8;
    return HL_OK;
}

static hl_status take_offsets(const reader *r, const hl_json *offsets, const struct type *type, span *s)
{
    const char *name = s->tensor.name;
    const hl_json *first = offsets->first, *second = first ? first->next : NULL;
    int64_t begin = hl_json_is_integer(first) ? first->integer : -1;
    int64_t end = hl_json_is_integer(second) ? second->integer : -1;
    unsigned alignment = type->bits > 8 ? type->bits / 8 : 1;
    char shape[HL_SHAPE_TEXT];

    if (!hl_json_is_array(offsets, 2) || begin < 0 || end < 0)
        return tensor_fault(r, name, "data_offsets is not a pair of whole numbers >= 0");
    if (begin > end)
        return tensor_fault(r, name, "data_offsets [%" PRId64 ", %" PRId64 "] end before they begin", begin, end);
    if ((uintmax_t)end > r->data_bytes)
        return tensor_fault(
            r, name, "data_offsets [%" PRId64 ", %" PRId64 "] exceed the %zu bytes of data; the file may be truncated",
            begin, end, r->data_bytes);
    s->begin = (size_t)begin;
    s->end = (size_t)end;
    if (s->end - s->begin != s->tensor.bytes)
        return tensor_fault(r, name, "data_offsets [%zu, %zu] hold %zu bytes but shape %s of %s needs %zu", s->begin,
                            s->end, s->end - s->begin, hl_tensor_shape_text(shape, &s->tensor), type->name,
                            s->tensor.bytes);
    if (s->begin % alignment != 0)
        return tensor_fault(r, name, "data_offsets [%zu, %zu] of %s do not begin at a multiple of %u", s->begin, s->end,
                            type->name, alignment);
    return HL_OK;
}

static hl_status take_type(const reader *r, const hl_json *dtype, const struct type **type, hl_tensor *tensor)
{
    const char *name = hl_json_text(dtype);
    char text[HL_NAME_SHOWN];

    if (!name)
        return tensor_fault(r, tensor->name, "dtype is not a string");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *type = &types[i];
            tensor->type = types[i].name;
            tensor->dtype = types[i].dtype;
            return HL_OK;
        }
    }
    return tensor_fault(r, tensor->name, "unknown dtype '%s'", hl_tensor_shown(text, sizeof text, name));
}

/* A tensor has the three fields and no others: one that we do not know might change what the data means. */
static hl_status check_fields(const reader *r, const char *name, const hl_json *description)
{
    static const char *const fields[] = { "dtype", "shape", "data_offsets" };
    char text[HL_NAME_SHOWN];

    if (!hl_json_is_object(description))
        return tensor_fault(r, name, "its description is not an object");
    for (size_t i = 0; i < 3; i++)
        if (!hl_json_get(description, fields[i]))
            return tensor_fault(r, name, "%s is missing", fields[i]);
    for (const hl_json *j = description->first; j; j = j->next)
        if (strcmp(j->key, fields[0]) != 0 && strcmp(j->key, fields[1]) != 0 && strcmp(j->key, fields[2]) != 0)
            return tensor_fault(r, name, "unknown field '%s'", hl_tensor_shown(text, sizeof text, j->key));
    return HL_OK;
}

static hl_status take_tensor(reader *r, const char *name, const hl_json *description)
{
    const char *bad = hl_tensor_name_fault(name);
    const struct type *type = NULL;
    char text[HL_NAME_SHOWN];
    span s = { 0 };
    hl_status status;

    if (bad)
        return fault(r, "tensor name '%s' %s", hl_tensor_shown(text, sizeof text, name), bad);
    s.tensor.name = name;
    status = check_fields(r, name, description);
    if (!status)
        status = take_type(r, hl_json_get(description, "dtype"), &type, &s.tensor);
    if (!status)
        status = take_shape(r, hl_json_get(description, "shape"), &s.tensor);
    if (!status)
        status = take_bytes(r, type, &s.tensor);
    if (!status)
        status = take_offsets(r, hl_json_get(description, "data_offsets"), type, &s);
    if (!status)
        status = hl_grow(r->t->ctx, (void **)&r->spans, &r->capacity, r->count + 1, sizeof *r->spans);
    if (status)
        return status;
    s.tensor.name = hl_tensors_copy_text(r->t, name);
    if (!s.tensor.name)
        return HL_ERR_NOMEM;
    r->spans[r->count++] = s;
    return HL_OK;
}

static hl_status take_metadata(reader *r, const hl_json *metadata)
{
    char text[HL_NAME_SHOWN];

    if (!hl_json_is_object(metadata))
        return fault(r, HL_METADATA_KEY " is not an object");
    if (metadata->count > HL_TENSORS_MAX_COUNT)
        return fault(r, HL_METADATA_KEY " has %zu entries; at most %d are supported", metadata->count,
                     HL_TENSORS_MAX_COUNT);
    for (const hl_json *j = metadata->first; j; j = j->next) {
        if (j->kind != HL_JSON_TEXT)
            return fault(r, HL_METADATA_KEY " '%s' is not a string", hl_tensor_shown(text, sizeof text, j->key));
        if (strcmp(j->key, HL_CHECKSUM_KEY) == 0)
            snprintf(r->checksum, sizeof r->checksum, "%s", j->text);
        else if (hl_tensors_append_pair(r->t, j->key, j->text))
            return HL_ERR_NOMEM;
    }
    return HL_OK;
}

static hl_status take_table(reader *r, const hl_json *root)
{
    size_t tensors = root->count - (hl_json_get(root, HL_METADATA_KEY) ? 1 : 0);
    hl_status status = HL_OK;

    if (tensors > HL_TENSORS_MAX_COUNT)
        return fault(r, "there are %zu tensors; at most %d are supported", tensors, HL_TENSORS_MAX_COUNT);
    for (const hl_json *j = root->first; j && !status; j = j->next)
        status = strcmp(j->key, HL_METADATA_KEY) == 0 ? take_metadata(r, j) : take_tensor(r, j->key, j);
    return status;
}

/* Refuse, before it is parsed, JSON that would take far more memory than the file: a parsed "0," is twenty times as
 * large. Sees only brackets, commas and strings; whether they are JSON is the parser's question. */
static hl_status check_size(const reader *r, const char *header)
{
    size_t depth = 0, values = 1;
    bool in_string = false;

    if (r->header_bytes == 0 || header[0] != '{')
        return fault(r, "the header does not begin with '{': not a safetensors file");
    for (size_t i = 0; i < r->header_bytes; i++) {
        char c = header[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        in_string = c == '"';
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && depth > 0)
            depth--;
        if (c == '{' || c == '[' || c == ',')
            values++;
        if (depth > MAX_DEPTH)
            return fault(r, "the header is nested too deeply at byte %zu", 8 + i);
        if (values > MAX_VALUES)
            return fault(r, "the header has more than %d values", MAX_VALUES);
    }
    return HL_OK;
}

/* The header is NUL-terminated. */
static hl_status parse_header(reader *r, const char *header)
{
    hl_json_document document = { 0 };
    hl_status status = check_size(r, header);
    char why[200], text[sizeof why];

    if (status)
        return status;
    status = hl_json_parse(r->t->ctx, header, r->header_bytes, &document);
    snprintf(why, sizeof why, "%s", hl_context_message(r->t->ctx));
    if (status == HL_ERR_FORMAT)
        status = fault(r, "the header is not valid JSON: %s", hl_tensor_shown(text, sizeof text, why));
    else if (!status)
        status = take_table(r, document.root);
    hl_json_free(&document);
    return status;
}

/* Are these eight bytes printable, as those of a csv file? */
static bool is_text(const uint64_t *word)
{
    const unsigned char *s = (const unsigned char *)word;

    for (size_t i = 0; i < 8; i++)
        if ((s[i] < 0x20 || s[i] > 0x7E) && s[i] != '\n' && s[i] != '\r' && s[i] != '\t')
            return false;
    return true;
}

/* Read and parse the header; what remains of the file is the data. */
static hl_status read_header(reader *r)
{
    hl_context *ctx = r->t->ctx;
    uint64_t length;
    hl_status status;
    char *header;

    if (r->file.size < 8)
        return fault(r, "only %zu bytes long: not a safetensors file", r->file.size);
    status = hl_file_read(&r->file, &length, 8);
    if (status)
        return status;
    if (is_text(&length))
        return fault(r, "a text file, such as a table, not a model (safetensors file)");
    if (length > HL_TENSORS_MAX_HEADER)
        return fault(r, "a header of %" PRIu64 " bytes is more than the %d allowed: not a safetensors file", length,
                     HL_TENSORS_MAX_HEADER);
    if (length > r->file.size - 8)
        return fault(r, "a header of %" PRIu64 " bytes exceeds the file size of %zu bytes; the file may be truncated",
                     length, r->file.size);
    r->header_bytes = (size_t)length;
    r->data_bytes = r->file.size - 8 - r->header_bytes;
    header = hl_alloc(ctx, r->header_bytes + 1);
    if (!header)
        return HL_ERR_NOMEM;
    header[r->header_bytes] = '\0';
    status = hl_file_read(&r->file, header, r->header_bytes);
    if (!status)
        status = parse_header(r, header);
    hl_free(ctx, header);
    return status;
}

/* ---- reading: the data ---- */

static int compare_spans(const void *left, const void *right)
{
    const span *a = left, *b = right;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->tensor.name, b->tensor.name);
}

static int compare_names(const void *left, const void *right)
{
    const hl_name_entry *a = left, *b = right;

    return strcmp(a->name, b->name);
}

/* The spans, sorted, cover the data once. */
static hl_status check_cover(const reader *r)
{
    char name[HL_NAME_SHOWN];
    size_t covered = 0;

    for (size_t i = 0; i < r->count; i++) {
        const span *s = &r->spans[i];

        if (s->begin < covered)
            return tensor_fault(r, s->tensor.name, "data_offsets [%zu, %zu] overlap those of '%s', [%zu, %zu]",
                                s->begin, s->end, hl_tensor_shown(name, sizeof name, s[-1].tensor.name), s[-1].begin,
                                s[-1].end);
        if (s->begin > covered)
            return fault(r, "bytes %zu to %zu of the data do not belong to a tensor", covered, s->begin);
        covered = s->end;
    }
    if (covered != r->data_bytes)
        return fault(r, "%zu unexpected bytes after the last tensor", r->data_bytes - covered);
    return HL_OK;
}

/* Move the spans' tensors to the table. */
static hl_status fill_table(reader *r)
{
    hl_tensors *t = r->t;
    hl_status status = hl_tensors_reserve(t, r->count);

    if (status)
        return status;
    for (size_t i = 0; i < r->count; i++) {
        t->tensors[i] = r->spans[i].tensor;
        t->names[i] = (hl_name_entry){ .name = t->tensors[i].name, .index = i };
    }
    t->count = r->count;
    if (t->count)
        qsort(t->names, t->count, sizeof *t->names, compare_names);
    return HL_OK;
}

/* Bytes that a tensor takes in the table's block of data. */
static size_t stored_bytes(const hl_tensor *tensor)
{
    if (tensor->dtype == HL_DTYPE_OTHER)
        return 0;
    return hl_size_add(tensor->bytes, DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
}

/* Read the data of the tensors that we can compute with, and pass over the others. */
static hl_status read_data(reader *r)
{
    hl_tensors *t = r->t;
    size_t total = 0;
    hl_status status = HL_OK;
    char *place;

    for (size_t i = 0; i < t->count; i++)
        total = hl_size_add(total, stored_bytes(&t->tensors[i]));
    t->data = place = hl_alloc(t->ctx, total);
    if (!t->data)
        return HL_ERR_NOMEM;
    for (size_t i = 0; !status && i < t->count; i++) {
        hl_tensor *tensor = &t->tensors[i];

        if (tensor->dtype == HL_DTYPE_OTHER) {
            status = hl_file_skip(&r->file, tensor->bytes);
        } else {
            tensor->data = place;
            status = hl_file_read(&r->file, place, tensor->bytes);
            place += stored_bytes(tensor);
        }
    }
    return status;
}

/* What was read, against the file's own checksum. Tensors of other types are not read, and then nothing can be said. */
static hl_status check_sum(reader *r)
{
    char found[9], text[HL_NAME_SHOWN];
    for (size_t i = 0; i < r->t->count; i++)
        if (r->t->tensors[i].dtype == HL_DTYPE_OTHER)
            return HL_OK;
    snprintf(found, sizeof found, "%08" PRIx32, hl_tensors_checksum(r->t));
    r->t->checked = strcmp(found, r->checksum) == 0;
    if (!*r->checksum || r->t->checked)
        return HL_OK;
    return fault(r,
                 "damaged, or modified by another program: the checksum is %s, but the metadata have '" HL_CHECKSUM_KEY
                 "' %s",
                 found, hl_tensor_shown(text, sizeof text, r->checksum));
}

static hl_status read_file(reader *r)
{
    hl_status status = read_header(r);

    if (status)
        return status;
    if (r->count)
        qsort(r->spans, r->count, sizeof *r->spans, compare_spans);
    status = check_cover(r);
    if (!status)
        status = fill_table(r);
    if (!status)
        status = read_data(r);
    return status ? status : check_sum(r);
}

/* Read what r->file is open for, and close it. */
static hl_status read_table(hl_context *ctx, reader *r, hl_tensors **tensors)
{
    hl_status status = hl_tensors_create(ctx, &r->t);

    if (!status)
        status = read_file(r);
    hl_free(ctx, r->spans);
    hl_file_close(&r->file);
    if (status)
        hl_tensors_free(r->t);
    else
        *tensors = r->t;
    return status;
}

hl_status hl_tensors_read(hl_context *ctx, const char *path, hl_tensors **tensors)
{
    reader r = { 0 };
    hl_status status;

    *tensors = NULL;
    status = hl_file_open(ctx, path, &r.file);
    return status ? status : read_table(ctx, &r, tensors);
}

hl_status hl_tensors_read_memory(hl_context *ctx, const char *name, const void *bytes, size_t size,
                                 hl_tensors **tensors)
{
    reader r = { 0 };

    *tensors = NULL;
    hl_file_open_memory(ctx, name, bytes, size, &r.file);
    return read_table(ctx, &r, tensors);
}
