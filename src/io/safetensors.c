/* safetensors.c - the table of tensors and its writer. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "io/file.h"
#include "io/json.h"
#include "io/tensors.h"

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

bool hl_is_utf8(const char *text)
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

const char *hl_tensor_shown(char *out, size_t capacity, const char *text)
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

const char *hl_tensor_name_fault(const char *name)
{
    if (!*name)
        return "is empty";
    if (strlen(name) > HL_TENSOR_MAX_NAME)
        return "is longer than 256 bytes";
    if (!hl_is_utf8(name))
        return "is not UTF-8";
    for (const unsigned char *s = (const unsigned char *)name; *s; s++)
        if (is_control(s))
            return "has a control character";
    return strcmp(name, HL_METADATA_KEY) == 0 ? "is reserved" : NULL;
}

/* "[2, 3]" */
const char *hl_tensor_shape_text(char out[HL_SHAPE_TEXT], const hl_tensor *tensor)
{
    hl_text text = hl_text_start(out, HL_SHAPE_TEXT);

    hl_text_add(&text, "[");
    for (int i = 0; i < tensor->rank; i++)
        hl_text_add(&text, i ? ", %zu" : "%zu", tensor->dims[i]);
    hl_text_add(&text, "]");
    return out;
}

const char *hl_tensors_copy_text(hl_tensors *t, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = hl_arena_alloc(&t->texts, bytes);

    return copy ? memcpy(copy, text, bytes) : NULL;
}

/* ---- the table ---- */

bool hl_tensor_elements(const hl_tensor *tensor, size_t *elements)
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

hl_status hl_tensors_reserve(hl_tensors *t, size_t count)
{
    hl_status status = hl_grow(t->ctx, (void **)&t->tensors, &t->capacity, count, sizeof *t->tensors);

    return status ? status : hl_grow(t->ctx, (void **)&t->names, &t->names_capacity, count, sizeof *t->names);
}

/* Whether hl_tensors_add's arguments make a tensor. Fills in all of *tensor but its name. */
static hl_status check_added(hl_tensors *t, const char *name, hl_dtype dtype, int rank, const size_t *dims,
                             const void *data, hl_tensor *tensor)
{
    char text[HL_NAME_SHOWN], shape[HL_SHAPE_TEXT];
    const char *fault = name ? hl_tensor_name_fault(name) : "is NULL";
    size_t elements;

    if (fault)
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor name '%s' %s",
                       hl_tensor_shown(text, sizeof text, name ? name : ""), fault);
    if (hl_tensors_find(t, name))
        fault = "is there already";
    else if (dtype != HL_F32 && dtype != HL_F64)
        fault = "has an unknown type";
    else if (rank < 0 || rank > HL_TENSOR_MAX_RANK || (rank > 0 && !dims))
        fault = "has a bad rank";
    else if (t->count >= HL_TENSORS_MAX_COUNT)
        fault = "is one too many";
    if (fault)
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor '%s' %s", hl_tensor_shown(text, sizeof text, name), fault);
    *tensor = (hl_tensor){ .type = dtype == HL_F32 ? "F32" : "F64", .dtype = dtype, .rank = rank, .data = data };
    if (rank > 0)
        memcpy(tensor->dims, dims, (size_t)rank * sizeof *dims);
    if (!hl_tensor_elements(tensor, &elements))
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor '%s': shape %s is too large",
                       hl_tensor_shown(text, sizeof text, name), hl_tensor_shape_text(shape, tensor));
    tensor->bytes = elements * hl_dtype_size(dtype);
    if (tensor->bytes && !data)
        return hl_fail(t->ctx, HL_ERR_INVALID, "tensor '%s' has no data", hl_tensor_shown(text, sizeof text, name));
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
        status = hl_tensors_reserve(t, t->count + 1);
    if (status)
        return status;
    tensor.name = hl_tensors_copy_text(t, name);
    if (!tensor.name)
        return HL_ERR_NOMEM;
    place = name_place(t, name);
    memmove(&t->names[place + 1], &t->names[place], (t->count - place) * sizeof *t->names);
    t->names[place] = (hl_name_entry){ .name = tensor.name, .index = t->count };
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

static hl_text_pair *find_pair(const hl_tensors *t, const char *key)
{
    for (size_t i = 0; i < t->pair_count; i++)
        if (strcmp(t->pairs[i].key, key) == 0)
            return &t->pairs[i];
    return NULL;
}

hl_status hl_tensors_append_pair(hl_tensors *t, const char *key, const char *value)
{
    hl_text_pair new = { 0 };

    if (hl_grow(t->ctx, (void **)&t->pairs, &t->pair_capacity, t->pair_count + 1, sizeof *t->pairs))
        return HL_ERR_NOMEM;
    new.key = hl_tensors_copy_text(t, key);
    new.value = new.key ? hl_tensors_copy_text(t, value) : NULL;
    if (!new.value)
        return HL_ERR_NOMEM;
    t->pairs[t->pair_count++] = new;
    return HL_OK;
}

hl_status hl_tensors_set_metadata(hl_tensors *tensors, const char *key, const char *value)
{
    char text[HL_NAME_SHOWN];
    hl_text_pair *old;

    if (!key || !value)
        return hl_fail(tensors->ctx, HL_ERR_INVALID, "a metadata key or value is NULL");
    if (!hl_is_utf8(key) || !hl_is_utf8(value))
        return hl_fail(tensors->ctx, HL_ERR_INVALID, "metadata '%s' is not UTF-8",
                       hl_tensor_shown(text, sizeof text, key));
    if (strcmp(key, HL_CHECKSUM_KEY) == 0)
        return hl_fail(tensors->ctx, HL_ERR_INVALID, "metadata '%s' is the file's checksum", key);
    old = find_pair(tensors, key);
    if (old) {
        const char *copy = hl_tensors_copy_text(tensors, value);

        if (!copy)
            return HL_ERR_NOMEM;
        old->value = copy;
        return HL_OK;
    }
    if (tensors->pair_count >= HL_TENSORS_MAX_COUNT)
        return hl_fail(tensors->ctx, HL_ERR_INVALID, "metadata '%s' is one too many",
                       hl_tensor_shown(text, sizeof text, key));
    return hl_tensors_append_pair(tensors, key, value);
}

const char *hl_tensors_metadata(const hl_tensors *tensors, const char *key)
{
    const hl_text_pair *found = find_pair(tensors, key);

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

/* ---- the checksum ---- */

bool hl_tensors_checked(const hl_tensors *tensors)
{
    return tensors->checked;
}

static uint32_t add_text(uint32_t crc, const char *text)
{
    return (uint32_t)crc32_z(crc, (const Bytef *)text, strlen(text) + 1);
}

uint32_t hl_tensors_checksum(const hl_tensors *t)
{
    uint32_t sum = 0; /* of the parts, so that their order does not matter */
    char shape[HL_SHAPE_TEXT];
    for (size_t i = 0; i < t->pair_count; i++)
        sum += add_text(add_text(0, t->pairs[i].key), t->pairs[i].value);
    for (size_t i = 0; i < t->count; i++) {
        const hl_tensor *tensor = &t->tensors[i];
        uint32_t crc = add_text(add_text(0, tensor->name), tensor->type);
        crc = add_text(crc, hl_tensor_shape_text(shape, tensor));
        sum += tensor->bytes ? (uint32_t)crc32_z(crc, tensor->data, tensor->bytes) : crc;
    }
    return sum;
}

/* ---- writing ---- */

/* {"dtype": ..., "shape": ..., "data_offsets": ...} */
static void describe_tensor(hl_json_writer *w, const hl_tensor *tensor, size_t begin)
{
    hl_json_open(w, tensor->name, '{');
    hl_json_put_text(w, "dtype", tensor->type);
    hl_json_open(w, "shape", '[');
    for (int i = 0; i < tensor->rank; i++)
        hl_json_put_integer(w, NULL, (int64_t)tensor->dims[i]);
    hl_json_close(w, ']');
    hl_json_open(w, "data_offsets", '[');
    hl_json_put_integer(w, NULL, (int64_t)begin);
    hl_json_put_integer(w, NULL, (int64_t)(begin + tensor->bytes));
    hl_json_close(w, ']');
    hl_json_close(w, '}');
}

/* The header's JSON, or NULL; `order` points to the tensors in the order of their data. */
static char *describe_table(const hl_tensors *t, const hl_tensor *const *order)
{
    hl_json_writer w = { .ctx = t->ctx };
    size_t begin = 0;
    char checksum[9];

    snprintf(checksum, sizeof checksum, "%08" PRIx32, hl_tensors_checksum(t));
    hl_json_open(&w, NULL, '{');
    hl_json_open(&w, HL_METADATA_KEY, '{');
    for (size_t i = 0; i < t->pair_count; i++)
        hl_json_put_text(&w, t->pairs[i].key, t->pairs[i].value);
    hl_json_put_text(&w, HL_CHECKSUM_KEY, checksum);
    hl_json_close(&w, '}');
    for (size_t i = 0; i < t->count; i++) {
        describe_tensor(&w, order[i], begin);
        begin += order[i]->bytes;
    }
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

/* The length and the padded JSON, as they stand in the file. The caller owns *header. */
static hl_status make_header(const hl_tensors *t, const hl_tensor *const *order, char **header, size_t *bytes)
{
    char *json = describe_table(t, order);
    size_t length = json ? strlen(json) : 0, padded = (length + 7) / 8 * 8;
    hl_status status = json ? HL_OK : HL_ERR_NOMEM;

    if (padded > HL_TENSORS_MAX_HEADER)
        status = hl_fail(t->ctx, HL_ERR_INVALID, "the names and metadata take %zu bytes; a file may have %d", padded,
                         HL_TENSORS_MAX_HEADER);
    *header = status == HL_OK ? hl_alloc(t->ctx, 8 + padded) : NULL;
    if (status == HL_OK && !*header)
        status = HL_ERR_NOMEM;
    if (status == HL_OK) {
        memcpy(*header, &(uint64_t){ padded }, 8);
        memset(*header + 8, ' ', padded);
        memcpy(*header + 8, json, length);
        *bytes = 8 + padded;
    }
    hl_free(t->ctx, json);
    return status;
}

/* The widest type first, as a file has no gaps that could align a wider one after it. */
static hl_status order_tensors(const hl_tensors *t, const hl_tensor **order)
{
    static const hl_dtype widest_first[] = { HL_F64, HL_F32 };
    char name[HL_NAME_SHOWN];
    size_t count = 0, total = 0;

    for (size_t pass = 0; pass < sizeof widest_first / sizeof *widest_first; pass++)
        for (size_t i = 0; i < t->count; i++)
            if (t->tensors[i].dtype == widest_first[pass])
                order[count++] = &t->tensors[i];
    for (size_t i = 0; i < t->count; i++) {
        if (t->tensors[i].dtype == HL_DTYPE_OTHER)
            return hl_fail(t->ctx, HL_ERR_UNSUPPORTED, "tensor '%s' of type %s cannot be written",
                           hl_tensor_shown(name, sizeof name, t->tensors[i].name), t->tensors[i].type);
        total = hl_size_add(total, t->tensors[i].bytes);
    }
    if (total > INT64_MAX)
        return hl_fail(t->ctx, HL_ERR_INVALID, "the tensors are too large for a file");
    return HL_OK;
}

/* Where the bytes go: to a file, or to memory if the path is NULL. */
typedef struct target {
    const char *path;
    char *bytes;
    size_t capacity, *size;
} target;

static hl_status put_pieces(hl_context *ctx, const target *to, const hl_file_piece *pieces, size_t count)
{
    size_t total = 0;

    if (to->path)
        return hl_file_replace(ctx, to->path, pieces, count);
    for (size_t i = 0; i < count; i++)
        total += pieces[i].bytes;
    *to->size = total;
    if (!to->bytes || total > to->capacity)
        return HL_OK;
    total = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].bytes)
            memcpy(to->bytes + total, pieces[i].data, pieces[i].bytes);
        total += pieces[i].bytes;
    }
    return HL_OK;
}

/* The header and then the data, in `count` + 1 pieces. */
static hl_status write_pieces(const hl_tensors *t, const hl_tensor *const *order, hl_file_piece *pieces,
                              const target *to)
{
    char *header = NULL;
    size_t bytes = 0;
    hl_status status = make_header(t, order, &header, &bytes);

    if (status)
        return status;
    pieces[0] = (hl_file_piece){ header, bytes };
    for (size_t i = 0; i < t->count; i++)
        pieces[1 + i] = (hl_file_piece){ order[i]->data, order[i]->bytes };
    status = put_pieces(t->ctx, to, pieces, t->count + 1);
    hl_free(t->ctx, header);
    return status;
}

static hl_status write_table(const hl_tensors *tensors, const target *to)
{
    hl_context *ctx = tensors->ctx;
    const hl_tensor **order = hl_calloc(ctx, tensors->count, sizeof *order);
    hl_file_piece *pieces = order ? hl_calloc(ctx, tensors->count + 1, sizeof *pieces) : NULL;
    hl_status status = pieces ? order_tensors(tensors, order) : HL_ERR_NOMEM;

    if (!status)
        status = write_pieces(tensors, order, pieces, to);
    hl_free(ctx, pieces);
    hl_free(ctx, order);
    return status;
}

hl_status hl_tensors_write(const hl_tensors *tensors, const char *path)
{
    return write_table(tensors, &(target){ .path = path });
}

hl_status hl_tensors_write_memory(const hl_tensors *tensors, void *bytes, size_t capacity, size_t *size)
{
    return write_table(tensors, &(target){ .bytes = bytes, .capacity = capacity, .size = size });
}
