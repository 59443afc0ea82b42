/* safetensors.c - the table of tensors, its writer and its reader.
 *
 * The reader validates the header completely before it reserves memory for the data, and reads every tensor to a place
 * of its own, so alignment does not depend on the file. Memory is bounded by the file's size and the limits in the
 * header. The JSON library's memory is its own; ours comes from the context. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/safetensors.h"

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "values are copied as they stand in the file: this needs a little-endian machine"
#endif

#define METADATA_KEY "__metadata__"

enum {
    DATA_ALIGNMENT = 64,
    MAX_DEPTH = 3,        /* of the JSON: the table, a tensor, its shape */
    MAX_VALUES = 2000000, /* in the JSON; HL_TENSORS_MAX_COUNT tensors of the largest rank have 1.4 million */
    NAME_SHOWN = 64       /* bytes of a name in a message */
};

typedef struct pair {
    const char *key, *value;
} pair;

typedef struct name_entry {
    const char *name;
    size_t index; /* in tensors */
} name_entry;

struct hl_tensors {
    hl_context *ctx;
    hl_arena texts; /* names, keys, values */
    hl_tensor *tensors;
    size_t count, capacity;
    name_entry *names; /* sorted; `count` of them */
    size_t names_capacity;
    pair *pairs;
    size_t pair_count, pair_capacity;
    char *data; /* the values that were read; NULL if none were */
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

/* ---- text ---- */

/* Bytes of the UTF-8 character at s, or 0 if it is malformed, too long for its value, a surrogate or beyond U+10FFFF.
 * s is NUL-terminated. */
static size_t utf8_length(const unsigned char *s)
{
    size_t length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;

    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] >= 0xA0) || (s[0] == 0xF0 && s[1] < 0x90) ||
        (s[0] == 0xF4 && s[1] >= 0x90))
        return 0;
    return length;
}

static bool is_utf8(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;

    while (*s) {
        size_t length = utf8_length(s);

        if (!length)
            return false;
        s += length;
    }
    return true;
}

/* U+0000..1F, U+7F and U+80..9F, with which a file could command the terminal its names are shown on. */
static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7F || (s[0] == 0xC2 && s[1] < 0xA0);
}

/* Copy text that may hold anything to where a message can show it: what is not printable becomes '?', and what does
 * not fit "...". Returns out. */
static const char *shown(char *out, size_t capacity, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t used = 0;

    while (*s) {
        size_t length = utf8_length(s);
        bool printable = length && !is_control(s);

        length = length ? length : 1;
        if (used + length + sizeof "..." > capacity) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }
        if (printable) {
            memcpy(out + used, s, length);
            used += length;
        } else {
            out[used++] = '?';
        }
        s += length;
    }
    out[used] = '\0';
    return out;
}

/* What is wrong with a tensor's name, or NULL. */
static const char *name_fault(const char *name)
{
    if (!*name)
        return "is empty";
    if (strlen(name) > HL_TENSOR_MAX_NAME)
        return "is longer than 256 bytes";
    if (!is_utf8(name))
        return "is not UTF-8";
    for (const unsigned char *s = (const unsigned char *)name; *s; s++)
        if (is_control(s))
            return "has a control character";
    return strcmp(name, METADATA_KEY) == 0 ? "is reserved" : NULL;
}

/* "[2, 3]" */
enum { SHAPE_TEXT = 2 + HL_TENSOR_MAX_RANK * (20 + 2) + 1 };
static const char *shape_text(char out[SHAPE_TEXT], const hl_tensor *tensor)
{
    size_t used = 0;

    out[used++] = '[';
    for (int i = 0; i < tensor->rank; i++)
        used += (size_t)snprintf(out + used, SHAPE_TEXT - used, i ? ", %zu" : "%zu", tensor->dims[i]);
    memcpy(out + used, "]", 2);
    return out;
}

static const char *copy_text(hl_tensors *t, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = hl_arena_alloc(&t->texts, bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* ---- the table ---- */

/* The number of elements, 0 if a dimension is 0; false if the product of the other dimensions overflows. The result
 * times 64 bits does not overflow. */
static bool count_elements(const hl_tensor *tensor, size_t *elements)
{
    bool empty = false;

    *elements = 1;
    for (int i = 0; i < tensor->rank; i++) {
        empty = empty || tensor->dims[i] == 0;
        *elements = hl_size_mul(*elements, tensor->dims[i] ? tensor->dims[i] : 1);
    }
    if (*elements > SIZE_MAX / 64)
        return false;
    if (empty)
        *elements = 0;
    return true;
}

/* The first place in the sorted names whose name is not before `name`. */
static size_t name_place(const hl_tensors *t, const char *name)
{
    size_t low = 0, high = t->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(t->names[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

hl_status hl_tensors_create(hl_context *ctx, hl_tensors **tensors)
{
    hl_tensors *t = hl_alloc(ctx, sizeof *t);

    *tensors = t;
    if (!t)
        return HL_ERR_NOMEM;
    *t = (hl_tensors){ .ctx = ctx };
    hl_arena_init(&t->texts, ctx);
    return HL_OK;
}

void hl_tensors_free(hl_tensors *tensors)
{
    if (!tensors)
        return;
    hl_arena_free(&tensors->texts);
    hl_free(tensors->ctx, tensors->tensors);
    hl_free(tensors->ctx, tensors->names);
    hl_free(tensors->ctx, tensors->pairs);
    hl_free(tensors->ctx, tensors->data);
    hl_free(tensors->ctx, tensors);
}

/* Room for `count` tensors and their names. */
static hl_status reserve(hl_tensors *t, size_t count)
{
    hl_status status = hl_grow(t->ctx, (void **)&t->tensors, &t->capacity, count, sizeof *t->tensors);

    return status ? status : hl_grow(t->ctx, (void **)&t->names, &t->names_capacity, count, sizeof *t->names);
}

/* Whether hl_tensors_add's arguments make a tensor. Fills in all of *tensor but its name. */
static hl_status check_added(hl_tensors *t, const char *name, hl_dtype dtype, int rank, const size_t *dims,
                             const void *data, hl_tensor *tensor)
{
    char text[NAME_SHOWN], shape[SHAPE_TEXT];
    const char *fault = name ? name_fault(name) : "is NULL";
    size_t elements;

    if (fault)
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor name '%s' %s", shown(text, sizeof text, name ? name : ""),
                       fault);
    if (hl_tensors_find(t, name))
        fault = "is there already";
    else if (dtype != HL_F32 && dtype != HL_F64)
        fault = "has an unknown type";
    else if (rank < 0 || rank > HL_TENSOR_MAX_RANK || (rank > 0 && !dims))
        fault = "has a bad rank";
    else if (t->count >= HL_TENSORS_MAX_COUNT)
        fault = "is one too many";
    if (fault)
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor '%s' %s", shown(text, sizeof text, name), fault);
    *tensor = (hl_tensor){ .type = dtype == HL_F32 ? "F32" : "F64", .dtype = dtype, .rank = rank, .data = data };
    if (rank > 0)
        memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    if (!count_elements(tensor, &elements))
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor '%s': shape %s is too large", shown(text, sizeof text, name),
                       shape_text(shape, tensor));
    tensor->bytes = elements * hl_dtype_size(dtype);
    if (tensor->bytes && !data)
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor '%s' has no data", shown(text, sizeof text, name));
    return HL_OK;
}

hl_status hl_tensors_add(hl_tensors *tensors, const char *name, hl_dtype dtype, int rank, const size_t *dims,
                         const void *data)
{
    hl_tensors *t = tensors;
    hl_tensor tensor;
    hl_status status = check_added(t, name, dtype, rank, dims, data, &tensor);
    size_t place;

    if (!status)
        status = reserve(t, t->count + 1);
    if (status)
        return status;
    tensor.name = copy_text(t, name);
    if (!tensor.name)
        return HL_ERR_NOMEM;
    place = name_place(t, name);
    memmove(&t->names[place + 1], &t->names[place], (t->count - place) * sizeof *t->names);
    t->names[place] = (name_entry){ .name = tensor.name, .index = t->count };
    t->tensors[t->count++] = tensor;
    return HL_OK;
}

size_t hl_tensors_count(const hl_tensors *tensors)
{
    return tensors->count;
}

const hl_tensor *hl_tensors_get(const hl_tensors *tensors, size_t index)
{
    return index < tensors->count ? &tensors->tensors[index] : NULL;
}

const hl_tensor *hl_tensors_find(const hl_tensors *tensors, const char *name)
{
    size_t place = name_place(tensors, name);

    if (place == tensors->count || strcmp(tensors->names[place].name, name) != 0)
        return NULL;
    return &tensors->tensors[tensors->names[place].index];
}

/* ---- metadata ---- */

static pair *find_pair(const hl_tensors *t, const char *key)
{
    for (size_t i = 0; i < t->pair_count; i++)
        if (strcmp(t->pairs[i].key, key) == 0)
            return &t->pairs[i];
    return NULL;
}

/* Append a pair whose key is new. */
static hl_status append_pair(hl_tensors *t, const char *key, const char *value)
{
    pair new = { 0 };

    if (hl_grow(t->ctx, (void **)&t->pairs, &t->pair_capacity, t->pair_count + 1, sizeof *t->pairs))
        return HL_ERR_NOMEM;
    new.key = copy_text(t, key);
    new.value = new.key ? copy_text(t, value) : NULL;
    if (!new.value)
        return HL_ERR_NOMEM;
    t->pairs[t->pair_count++] = new;
    return HL_OK;
}

hl_status hl_tensors_set_metadata(hl_tensors *tensors, const char *key, const char *value)
{
    char text[NAME_SHOWN];
    pair *old;

    if (!key || !value)
        return hl_fail(tensors->ctx, HL_ERR_INVALID, "a metadata key or value is NULL");
    if (!is_utf8(key) || !is_utf8(value))
        return hl_fail(tensors->ctx, HL_ERR_INVALID, "metadata '%s' is not UTF-8", shown(text, sizeof text, key));
    old = find_pair(tensors, key);
    if (old) {
        const char *copy = copy_text(tensors, value);

        if (!copy)
            return HL_ERR_NOMEM;
        old->value = copy;
        return HL_OK;
    }
    if (tensors->pair_count >= HL_TENSORS_MAX_COUNT)
        return hl_fail(tensors->ctx, HL_ERR_INVALID, "metadata '%s' is one too many", shown(text, sizeof text, key));
    return append_pair(tensors, key, value);
}

const char *hl_tensors_metadata(const hl_tensors *tensors, const char *key)
{
    const pair *found = find_pair(tensors, key);

    return found ? found->value : NULL;
}

size_t hl_tensors_metadata_count(const hl_tensors *tensors)
{
    return tensors->pair_count;
}

bool hl_tensors_metadata_get(const hl_tensors *tensors, size_t index, const char **key, const char **value)
{
    if (index >= tensors->pair_count)
        return false;
    *key = tensors->pairs[index].key;
    *value = tensors->pairs[index].value;
    return true;
}

/* ---- writing ---- */

/* Give the JSON library's memory back and say that it had too little. */
static hl_status json_failed(hl_context *ctx, json_t *json)
{
    json_decref(json);
    return hl_fail(ctx, HL_ERR_NOMEM, "out of memory for the header of tensors");
}

/* {"dtype": ..., "shape": ..., "data_offsets": ...}, or NULL. */
static json_t *describe_tensor(const hl_tensor *tensor, size_t begin)
{
    json_t *shape = json_array();

    for (int i = 0; i < tensor->rank; i++) {
        if (json_array_append_new(shape, json_integer((json_int_t)tensor->dims[i]))) {
            json_decref(shape);
            return NULL;
        }
    }
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", tensor->type, "shape", shape, "data_offsets", (json_int_t)begin,
                     (json_int_t)(begin + tensor->bytes));
}

/* The header's JSON, or NULL; `order` points to the tensors in the order of their data. */
static json_t *describe_table(const hl_tensors *t, const hl_tensor *const *order)
{
    json_t *root = json_object(), *metadata = NULL;
    size_t begin = 0;
    int failed = 0;

    if (t->pair_count) {
        metadata = json_object();
        failed |= json_object_set_new(root, METADATA_KEY, metadata);
    }
    for (size_t i = 0; !failed && i < t->pair_count; i++)
        failed |= json_object_set_new(metadata, t->pairs[i].key, json_string(t->pairs[i].value));
    for (size_t i = 0; !failed && i < t->count; i++) {
        failed |= json_object_set_new(root, order[i]->name, describe_tensor(order[i], begin));
        begin += order[i]->bytes;
    }
    if (failed) {
        json_decref(root);
        return NULL;
    }
    return root;
}

/* The length and the padded JSON, as they stand in the file. The caller owns *header. */
static hl_status make_header(const hl_tensors *t, const hl_tensor *const *order, char **header, size_t *bytes)
{
    json_t *root = describe_table(t, order);
    size_t length = root ? json_dumpb(root, NULL, 0, JSON_COMPACT) : 0;
    size_t padded = (length + 7) / 8 * 8;

    if (!length)
        return json_failed(t->ctx, root);
    if (padded > HL_TENSORS_MAX_HEADER) {
        json_decref(root);
        return hl_fail(t->ctx, HL_ERR_INVALID, "the names and metadata take %zu bytes; a file may have %d", padded,
                       HL_TENSORS_MAX_HEADER);
    }
    *header = hl_alloc(t->ctx, 8 + padded);
    if (!*header) {
        json_decref(root);
        return HL_ERR_NOMEM;
    }
    memcpy(*header, &(uint64_t){ padded }, 8);
    memset(*header + 8, ' ', padded);
    if (json_dumpb(root, *header + 8, padded, JSON_COMPACT) != length) {
        hl_free(t->ctx, *header);
        return json_failed(t->ctx, root);
    }
    json_decref(root);
    *bytes = 8 + padded;
    return HL_OK;
}

/* The widest type first, as a file has no gaps that could align a wider one after it. */
static hl_status order_tensors(const hl_tensors *t, const hl_tensor **order)
{
    static const hl_dtype widest_first[] = { HL_F64, HL_F32 };
    char name[NAME_SHOWN];
    size_t count = 0, total = 0;

    for (size_t pass = 0; pass < sizeof widest_first / sizeof *widest_first; pass++)
        for (size_t i = 0; i < t->count; i++)
            if (t->tensors[i].dtype == widest_first[pass])
                order[count++] = &t->tensors[i];
    for (size_t i = 0; i < t->count; i++) {
        if (t->tensors[i].dtype == HL_DTYPE_OTHER)
            return hl_fail(t->ctx, HL_ERR_UNSUPPORTED, "tensor '%s' of type %s cannot be written",
                           shown(name, sizeof name, t->tensors[i].name), t->tensors[i].type);
        total = hl_size_add(total, t->tensors[i].bytes);
    }
    if (total > INT64_MAX)
        return hl_fail(t->ctx, HL_ERR_INVALID, "the tensors are too large for a file");
    return HL_OK;
}

/* The header and then the data, in `count` + 1 pieces. */
static hl_status write_pieces(const hl_tensors *t, const hl_tensor *const *order, hl_file_piece *pieces,
                              const char *path)
{
    char *header = NULL;
    size_t bytes = 0;
    hl_status status = make_header(t, order, &header, &bytes);

    if (status)
        return status;
    pieces[0] = (hl_file_piece){ header, bytes };
    for (size_t i = 0; i < t->count; i++)
        pieces[1 + i] = (hl_file_piece){ order[i]->data, order[i]->bytes };
    status = hl_file_replace(t->ctx, path, pieces, t->count + 1);
    hl_free(t->ctx, header);
    return status;
}

hl_status hl_tensors_write(const hl_tensors *tensors, const char *path)
{
    hl_context *ctx = tensors->ctx;
    const hl_tensor **order = hl_calloc(ctx, tensors->count, sizeof *order);
    hl_file_piece *pieces = order ? hl_calloc(ctx, tensors->count + 1, sizeof *pieces) : NULL;
    hl_status status = pieces ? order_tensors(tensors, order) : HL_ERR_NOMEM;

    if (!status)
        status = write_pieces(tensors, order, pieces, path);
    hl_free(ctx, pieces);
    hl_free(ctx, order);
    return status;
}

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
    char text[288], name_text[NAME_SHOWN];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fault(r, "tensor '%s': %s", shown(name_text, sizeof name_text, name), text);
}

/* ---- reading: the header ---- */

static hl_status take_shape(const reader *r, const json_t *shape, hl_tensor *tensor)
{
    size_t rank = json_array_size(shape);

    if (!json_is_array(shape))
        return tensor_fault(r, tensor->name, "shape is not an array");
    if (rank > HL_TENSOR_MAX_RANK)
        return tensor_fault(r, tensor->name, "shape has %zu dimensions; at most %d are supported", rank,
                            HL_TENSOR_MAX_RANK);
    tensor->rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        json_int_t value = json_integer_value(dim);

        if (!json_is_integer(dim) || value < 0)
            return tensor_fault(r, tensor->name, "dimension %zu of shape is not a whole number >= 0", i);
        tensor->dims[i] = (uintmax_t)value < SIZE_MAX ? (size_t)value : SIZE_MAX;
    }
    return HL_OK;
}

/* The bytes that a tensor of this type and shape has. */
static hl_status take_bytes(const reader *r, const struct type *type, hl_tensor *tensor)
{
    char shape[SHAPE_TEXT];
    size_t elements;

    if (!count_elements(tensor, &elements))
        return tensor_fault(r, tensor->name, "shape %s is too large", shape_text(shape, tensor));
    if (elements * type->bits % 8 != 0)
        return tensor_fault(r, tensor->name, "shape %s of %s does not fill whole bytes", shape_text(shape, tensor),
                            type->name);
    tensor->bytes = elements * type->bits / 8;
    return HL_OK;
}

static hl_status take_offsets(const reader *r, const json_t *offsets, const struct type *type, span *s)
{
    const char *name = s->tensor.name;
    const json_t *first = json_array_get(offsets, 0), *second = json_array_get(offsets, 1);
    json_int_t begin = json_integer_value(first), end = json_integer_value(second);
    unsigned alignment = type->bits > 8 ? type->bits / 8 : 1;
    char shape[SHAPE_TEXT];

    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(second) || begin < 0 || end < 0)
        return tensor_fault(r, name, "data_offsets is not a pair of whole numbers >= 0");
    if (begin > end)
        return tensor_fault(r, name, "data_offsets [%" PRId64 ", %" PRId64 "] end before they begin", (int64_t)begin,
                            (int64_t)end);
    if ((uintmax_t)end > r->data_bytes)
        return tensor_fault(r, name, "data_offsets [%" PRId64 ", %" PRId64 "] reach beyond the file's %zu bytes of "
                            "data; is the file cut short?", (int64_t)begin, (int64_t)end, r->data_bytes);
    s->begin = (size_t)begin;
    s->end = (size_t)end;
    if (s->end - s->begin != s->tensor.bytes)
        return tensor_fault(r, name, "data_offsets [%zu, %zu] hold %zu bytes but shape %s of %s needs %zu", s->begin,
                            s->end, s->end - s->begin, shape_text(shape, &s->tensor), type->name, s->tensor.bytes);
    if (s->begin % alignment != 0)
        return tensor_fault(r, name, "data_offsets [%zu, %zu] of %s do not begin at a multiple of %u", s->begin, s->end,
                            type->name, alignment);
    return HL_OK;
}

static hl_status take_type(const reader *r, const json_t *dtype, const struct type **type, hl_tensor *tensor)
{
    const char *name = json_string_value(dtype);
    char text[NAME_SHOWN];

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
    return tensor_fault(r, tensor->name, "unknown dtype '%s'", shown(text, sizeof text, name));
}

/* A tensor has the three fields and no others: one that we do not know might change what the data means. */
static hl_status check_fields(const reader *r, const char *name, json_t *description)
{
    static const char *const fields[] = { "dtype", "shape", "data_offsets" };
    const char *key;
    char text[NAME_SHOWN];
    json_t *value;

    if (!json_is_object(description))
        return tensor_fault(r, name, "its description is not an object");
    for (size_t i = 0; i < 3; i++)
        if (!json_object_get(description, fields[i]))
            return tensor_fault(r, name, "%s is missing", fields[i]);
    json_object_foreach(description, key, value)
        if (strcmp(key, fields[0]) != 0 && strcmp(key, fields[1]) != 0 && strcmp(key, fields[2]) != 0)
            return tensor_fault(r, name, "unknown field '%s'", shown(text, sizeof text, key));
    return HL_OK;
}

static hl_status take_tensor(reader *r, const char *name, json_t *description)
{
    const char *bad = name_fault(name);
    const struct type *type = NULL;
    char text[NAME_SHOWN];
    span s = { 0 };
    hl_status status;

    if (bad)
        return fault(r, "tensor name '%s' %s", shown(text, sizeof text, name), bad);
    s.tensor.name = name;
    status = check_fields(r, name, description);
    if (!status)
        status = take_type(r, json_object_get(description, "dtype"), &type, &s.tensor);
    if (!status)
        status = take_shape(r, json_object_get(description, "shape"), &s.tensor);
    if (!status)
        status = take_bytes(r, type, &s.tensor);
    if (!status)
        status = take_offsets(r, json_object_get(description, "data_offsets"), type, &s);
    if (!status)
        status = hl_grow(r->t->ctx, (void **)&r->spans, &r->capacity, r->count + 1, sizeof *r->spans);
    if (status)
        return status;
    s.tensor.name = copy_text(r->t, name);
    if (!s.tensor.name)
        return HL_ERR_NOMEM;
    r->spans[r->count++] = s;
    return HL_OK;
}

static hl_status take_metadata(reader *r, json_t *metadata)
{
    char text[NAME_SHOWN];
    const char *key;
    json_t *value;

    if (!json_is_object(metadata))
        return fault(r, METADATA_KEY " is not an object");
    if (json_object_size(metadata) > HL_TENSORS_MAX_COUNT)
        return fault(r, METADATA_KEY " has %zu entries; at most %d are supported", json_object_size(metadata),
                     HL_TENSORS_MAX_COUNT);
    json_object_foreach(metadata, key, value) {
        if (!json_is_string(value))
            return fault(r, METADATA_KEY " '%s' is not a string", shown(text, sizeof text, key));
        if (append_pair(r->t, key, json_string_value(value)))
            return HL_ERR_NOMEM;
    }
    return HL_OK;
}

static hl_status take_table(reader *r, json_t *root)
{
    size_t tensors = json_object_size(root) - (json_object_get(root, METADATA_KEY) ? 1 : 0);
    hl_status status = HL_OK;
    const char *key;
    json_t *value;

    if (tensors > HL_TENSORS_MAX_COUNT)
        return fault(r, "there are %zu tensors; at most %d are supported", tensors, HL_TENSORS_MAX_COUNT);
    json_object_foreach(root, key, value) {
        status = strcmp(key, METADATA_KEY) == 0 ? take_metadata(r, value) : take_tensor(r, key, value);
        if (status)
            break;
    }
    return status;
}

/* Refuse, before it is parsed, JSON that would take far more memory than the file: a parsed "0," is twenty times as
 * large. Sees only brackets, commas and strings; whether they are JSON is the parser's question. *values is a bound on
 * the number of values. */
static hl_status check_size(const reader *r, const char *header, size_t *values)
{
    size_t depth = 0;
    bool in_string = false;

    *values = 1;
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
            ++*values;
        if (depth > MAX_DEPTH)
            return fault(r, "the header is nested too deeply at byte %zu", 8 + i);
        if (*values > MAX_VALUES)
            return fault(r, "the header has more than %d values", MAX_VALUES);
    }
    return HL_OK;
}

/* Whether there is memory to parse the header with: a bound on what that takes is reserved and given back at once.
 * Jansson (2.14, its issue 362) ignores a failure to grow the buffer of a token and then reads and writes beyond its
 * end, so a file with a long string could break a program that runs short of memory. */
static hl_status check_memory(const reader *r, size_t values)
{
    size_t bytes = 65536 + 4 * r->header_bytes + 512 * values;
    void *memory = hl_alloc(r->t->ctx, bytes);

    hl_free(r->t->ctx, memory);
    return memory ? HL_OK : HL_ERR_NOMEM;
}

static hl_status parse_header(reader *r, const char *header)
{
    size_t values;
    hl_status status = check_size(r, header, &values);
    json_error_t error;
    char text[JSON_ERROR_TEXT_LENGTH];
    json_t *root;

    if (!status)
        status = check_memory(r, values);
    if (status)
        return status;
    root = json_loadb(header, r->header_bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root && (!error.text[0] || json_error_code(&error) == json_error_out_of_memory))
        return json_failed(r->t->ctx, NULL);
    if (!root)
        return fault(r, "the header is not valid JSON at byte %d: %s", 8 + error.position,
                     shown(text, sizeof text, error.text));
    status = take_table(r, root);
    json_decref(root);
    return status;
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
    if (length > HL_TENSORS_MAX_HEADER)
        return fault(r, "a header of %" PRIu64 " bytes is more than the %d allowed: not a safetensors file", length,
                     HL_TENSORS_MAX_HEADER);
    if (length > r->file.size - 8)
        return fault(r, "a header of %" PRIu64 " bytes reaches beyond the file's %zu bytes; is the file cut short?",
                     length, r->file.size);
    r->header_bytes = (size_t)length;
    r->data_bytes = r->file.size - 8 - r->header_bytes;
    header = hl_alloc(ctx, r->header_bytes);
    if (!header)
        return HL_ERR_NOMEM;
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
    const name_entry *a = left, *b = right;

    return strcmp(a->name, b->name);
}

/* The spans, sorted, cover the data once. */
static hl_status check_cover(const reader *r)
{
    char name[NAME_SHOWN];
    size_t covered = 0;

    for (size_t i = 0; i < r->count; i++) {
        const span *s = &r->spans[i];

        if (s->begin < covered)
            return tensor_fault(r, s->tensor.name, "data_offsets [%zu, %zu] overlap those of '%s', [%zu, %zu]",
                                s->begin, s->end, shown(name, sizeof name, s[-1].tensor.name), s[-1].begin, s[-1].end);
        if (s->begin > covered)
            return fault(r, "bytes %zu to %zu of the data belong to no tensor", covered, s->begin);
        covered = s->end;
    }
    if (covered != r->data_bytes)
        return fault(r, "%zu bytes after the last tensor belong to none", r->data_bytes - covered);
    return HL_OK;
}

/* Move the spans' tensors to the table. */
static hl_status fill_table(reader *r)
{
    hl_tensors *t = r->t;
    hl_status status = reserve(t, r->count);

    if (status)
        return status;
    for (size_t i = 0; i < r->count; i++) {
        t->tensors[i] = r->spans[i].tensor;
        t->names[i] = (name_entry){ .name = t->tensors[i].name, .index = i };
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
    return status ? status : read_data(r);
}

hl_status hl_tensors_read(hl_context *ctx, const char *path, hl_tensors **tensors)
{
    reader r = { 0 };
    hl_status status;

    *tensors = NULL;
    status = hl_file_open(ctx, path, &r.file);
    if (status)
        return status;
    status = hl_tensors_create(ctx, &r.t);
    if (!status)
        status = read_file(&r);
    hl_free(ctx, r.spans);
    hl_file_close(&r.file);
    if (status)
        hl_tensors_free(r.t);
    else
        *tensors = r.t;
    return status;
}
