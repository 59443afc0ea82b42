/* npy.c - arrays of NumPy's npy format.
 *
 *     \x93NUMPY, version (2 bytes), header length (2 bytes; 4 from version 2 on), header, values
 *     header: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }   and blanks to fill up
 *
 * The header is a Python literal; of that language it may hold what this file parses and nothing else. */
#include <stdio.h>
#include <string.h>

#include "io/table.h"

enum { MAX_RANK = 32, MAX_DESCR = 16 };

/* ---- the header ---- */

typedef struct header {
    hl_table *t;
    const char *what; /* how messages call the array */
    const char *p, *end;
    char descr[MAX_DESCR + 1];
    bool fortran;
    int rank;
    size_t dims[MAX_RANK];
    bool has_descr, has_order, has_shape;
} header;

/* "data.npz: array 'x': <what is wrong>" */
static hl_status fault(const header *h, hl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static hl_status fault(const header *h, hl_status status, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hl_table_fault(h->t, status, "%s%s", h->what, text);
}

static hl_status malformed(const header *h, const char *why)
{
    return fault(h, HL_ERR_FORMAT, "the npy header is malformed: %s", why);
}

static void skip_space(header *h)
{
    while (h->p < h->end && (*h->p == ' ' || *h->p == '\t' || *h->p == '\n' || *h->p == '\r'))
        h->p++;
}

/* Take the sign if it comes next. */
static bool take(header *h, char sign)
{
    skip_space(h);
    if (h->p < h->end && *h->p == sign) {
        h->p++;
        return true;
    }
    return false;
}

/* A string in quotes of either kind, without escapes, into out (MAX_DESCR + 1 bytes). */
static bool take_string(header *h, char *out)
{
    const char *begin, *stop;

    skip_space(h);
    if (h->p == h->end || (*h->p != '\'' && *h->p != '"'))
        return false;
    begin = h->p + 1;
    stop = memchr(begin, *h->p, (size_t)(h->end - begin));
    if (!stop || stop - begin > MAX_DESCR || memchr(begin, '\\', (size_t)(stop - begin)))
        return false;
    memcpy(out, begin, (size_t)(stop - begin));
    out[stop - begin] = '\0';
    h->p = stop + 1;
    return true;
}

static bool take_word(header *h, const char *word)
{
    size_t length = strlen(word);

    skip_space(h);
    if ((size_t)(h->end - h->p) < length || memcmp(h->p, word, length) != 0)
        return false;
    h->p += length;
    return true;
}

/* A whole number; SIZE_MAX stands for all that are too large. Python 2 wrote an L behind it. */
static bool take_size(header *h, size_t *size)
{
    const char *begin;

    skip_space(h);
    *size = 0;
    for (begin = h->p; h->p < h->end && *h->p >= '0' && *h->p <= '9'; h->p++)
        *size = hl_size_add(hl_size_mul(*size, 10), (size_t)(*h->p - '0'));
    if (h->p == begin)
        return false;
    if (h->p < h->end && *h->p == 'L')
        h->p++;
    return true;
}

static hl_status take_shape(header *h)
{
    h->rank = 0;
    if (!take(h, '('))
        return malformed(h, "shape is not a tuple");
    while (!take(h, ')')) {
        if (h->rank == MAX_RANK)
            return fault(h, HL_ERR_UNSUPPORTED, "the array has more than %d dimensions", MAX_RANK);
        if (!take_size(h, &h->dims[h->rank]))
            return malformed(h, "shape contains a value that is not an integer");
        h->rank++;
        if (!take(h, ',')) {
            if (!take(h, ')'))
                return malformed(h, "shape has no closing parenthesis");
            break;
        }
    }
    h->has_shape = true;
    return HL_OK;
}

static hl_status take_entry(header *h)
{
    char key[MAX_DESCR + 1];

    if (!take_string(h, key) || !take(h, ':'))
        return malformed(h, "a key is missing");
    if (strcmp(key, "descr") == 0) {
        skip_space(h);
        if (h->p < h->end && *h->p == '[')
            return fault(h, HL_ERR_UNSUPPORTED,
                         "the array has records (a structured dtype); save a plain array of numbers");
        h->has_descr = take_string(h, h->descr);
        return h->has_descr ? HL_OK : malformed(h, "descr is not a short text");
    }
    if (strcmp(key, "fortran_order") == 0) {
        h->fortran = take_word(h, "True");
        h->has_order = h->fortran || take_word(h, "False");
        return h->has_order ? HL_OK : malformed(h, "fortran_order is neither True nor False");
    }
    if (strcmp(key, "shape") == 0)
        return take_shape(h);
    return malformed(h, "unknown key; keys are descr, fortran_order and shape");
}

static hl_status take_dictionary(header *h)
{
    if (!take(h, '{'))
        return malformed(h, "not a dictionary");
    while (!take(h, '}')) {
        hl_status status = take_entry(h);

        if (status)
            return status;
        if (!take(h, ',')) {
            if (!take(h, '}'))
                return malformed(h, "no closing brace");
            break;
        }
    }
    skip_space(h);
    if (h->p != h->end)
        return malformed(h, "unexpected text after the dictionary");
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return malformed(h, "descr, fortran_order or shape is missing");
    return HL_OK;
}

/* The element type: "<f8", ">i4", "|b1". */
static hl_status take_type(const header *h, hl_array *a)
{
    const char *d = h->descr;
    char order = *d, text[HL_TABLE_SHOWN];

    if (order && strchr("<>|=", order))
        d++;
    a->kind = d[0];
    a->size = d[0] && d[1] >= '1' && d[1] <= '8' && d[2] == '\0' ? (unsigned)(d[1] - '0') : 0;
    a->swapped = order == '>' && a->size > 1;
    if ((a->kind == 'f' && (a->size == 2 || a->size == 4 || a->size == 8)) ||
        ((a->kind == 'i' || a->kind == 'u') && (a->size == 1 || a->size == 2 || a->size == 4 || a->size == 8)) ||
        (a->kind == 'b' && a->size == 1))
        return HL_OK;
    return fault(h, HL_ERR_UNSUPPORTED,
                 "values of type '%s' are not supported; save float32, float64, integers or bool",
                 hl_text_shown(text, h->descr, strlen(h->descr)));
}

/* Rows and columns; no product of these with a size overflows. */
static hl_status take_extent(const header *h, hl_array *a)
{
    size_t columns = 1, bytes;

    if (h->rank == 0)
        return fault(h, HL_ERR_FORMAT, "the array is a single number (shape ()), not a table");
    for (int i = 1; i < h->rank; i++)
        columns = hl_size_mul(columns, h->dims[i]);
    bytes = hl_size_mul(hl_size_mul(columns, h->dims[0]), 8);
    a->rank = h->rank;
    a->rows = h->dims[0];
    a->columns = columns;
    a->fortran = h->fortran && h->rank > 1;
    if (columns == 0)
        return fault(h, HL_ERR_FORMAT, "the array has no columns");
    if (bytes > SIZE_MAX / 2 || columns > SIZE_MAX / 2)
        return fault(h, HL_ERR_FORMAT, "the shape is too large");
    if (a->fortran && h->rank > 2)
        return fault(h, HL_ERR_UNSUPPORTED, "Fortran order with %d dimensions is not supported; save it in C order",
                     h->rank);
    return HL_OK;
}

hl_status hl_npy_parse(hl_table *t, const char *what, const char *data, size_t bytes, hl_array *array,
                       size_t *header_bytes)
{
    header h = { .t = t, .what = what };
    const unsigned char *u = (const unsigned char *)data;
    size_t prefix, length;
    hl_status status;

    *array = (hl_array){ 0 };
    if (bytes < 10 || memcmp(data, "\x93NUMPY", 6) != 0)
        return fault(&h, HL_ERR_FORMAT, "not an npy file");
    if (u[6] < 1 || u[6] > 3)
        return fault(&h, HL_ERR_UNSUPPORTED, "unknown version %d of the npy format", u[6]);
    prefix = u[6] == 1 ? 10 : 12;
    if (bytes < prefix)
        return fault(&h, HL_ERR_FORMAT, "the npy header is truncated");
    length = (size_t)u[8] | (size_t)u[9] << 8;
    if (u[6] > 1)
        length |= (size_t)u[10] << 16 | (size_t)u[11] << 24;
    if (length > HL_NPY_HEADER - prefix)
        return fault(&h, HL_ERR_FORMAT, "the npy header is %zu bytes long; at most %zu are supported", length,
                     HL_NPY_HEADER - prefix);
    if (length > bytes - prefix)
        return fault(&h, HL_ERR_FORMAT, "the npy header is truncated");
    h.p = data + prefix;
    h.end = h.p + length;
    *header_bytes = prefix + length;
    status = take_dictionary(&h);
    if (!status)
        status = take_type(&h, array);
    return status ? status : take_extent(&h, array);
}

size_t hl_array_bytes(const hl_array *array)
{
    return array->rows * array->columns * array->size;
}

/* ---- values ---- */

static double half_to_double(uint16_t half)
{
    unsigned exponent = half >> 10 & 31, fraction = half & 1023;
    uint64_t bits = (uint64_t)(half >> 15) << 63;
    double value;

    if (exponent == 0) /* subnormal: fraction * 2^-24 */
        return (half >> 15 ? -1.0 : 1.0) * (double)fraction * 0x1p-24;
    bits |= (uint64_t)(exponent == 31 ? 2047 : exponent + 1008) << 52 | (uint64_t)fraction << 42;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint8_t swap8(uint8_t x)
{
    return x;
}

#define CONVERT(bits_type, swap, value_type, expression)                                                               \
    for (size_t i = 0; i < count; i++) {                                                                               \
        bits_type bits;                                                                                                \
        value_type v;                                                                                                  \
                                                                                                                       \
        memcpy(&bits, src + i * src_step, sizeof bits);                                                                \
        if (a->swapped)                                                                                                \
            bits = swap(bits);                                                                                         \
        memcpy(&v, &bits, sizeof v);                                                                                   \
        out[i * out_step] = (expression);                                                                              \
    }                                                                                                                  \
    break

void hl_array_convert(const hl_array *a, const char *src, size_t src_step, size_t count, double *out, size_t out_step)
{
    switch (a->kind << 8 | (int)a->size) {
    case 'f' << 8 | 8:
        CONVERT(uint64_t, __builtin_bswap64, double, v);
    case 'f' << 8 | 4:
        CONVERT(uint32_t, __builtin_bswap32, float, (double)v);
    case 'f' << 8 | 2:
        CONVERT(uint16_t, __builtin_bswap16, uint16_t, half_to_double(v));
    case 'i' << 8 | 8:
        CONVERT(uint64_t, __builtin_bswap64, int64_t, (double)v);
    case 'i' << 8 | 4:
        CONVERT(uint32_t, __builtin_bswap32, int32_t, (double)v);
    case 'i' << 8 | 2:
        CONVERT(uint16_t, __builtin_bswap16, int16_t, (double)v);
    case 'i' << 8 | 1:
        CONVERT(uint8_t, swap8, int8_t, (double)v);
    case 'u' << 8 | 8:
        CONVERT(uint64_t, __builtin_bswap64, uint64_t, (double)v);
    case 'u' << 8 | 4:
        CONVERT(uint32_t, __builtin_bswap32, uint32_t, (double)v);
    case 'u' << 8 | 2:
        CONVERT(uint16_t, __builtin_bswap16, uint16_t, (double)v);
    case 'u' << 8 | 1:
        CONVERT(uint8_t, swap8, uint8_t, (double)v);
    case 'b' << 8 | 1:
        CONVERT(uint8_t, swap8, uint8_t, (double)(v != 0));
    }
}

#undef CONVERT

/* ---- files ---- */

hl_status hl_table_read_npy(hl_table *t)
{
    char *start = NULL;
    hl_array array;
    size_t bytes, header_bytes = 0, there;
    hl_status status = hl_source_load(&t->source);

    if (status)
        return status;
    bytes = t->source.size < HL_NPY_HEADER ? t->source.size : HL_NPY_HEADER;
    start = hl_alloc(t->ctx, bytes);
    status = start ? hl_source_at(&t->source, 0, start, bytes) : HL_ERR_NOMEM;
    if (!status)
        status = hl_npy_parse(t, "", start, bytes, &array, &header_bytes);
    hl_free(t->ctx, start);
    if (status)
        return status;
    there = t->source.size - header_bytes;
    if (hl_array_bytes(&array) > there)
        return hl_table_fault(t, HL_ERR_FORMAT,
                              "%zu rows of %zu columns need %zu bytes, but the file has %zu; the file may be truncated",
                              array.rows, array.columns, hl_array_bytes(&array), there);
    if (hl_array_bytes(&array) < there)
        return hl_table_fault(t, HL_ERR_FORMAT, "%zu bytes follow the array", there - hl_array_bytes(&array));
    array.offset = header_bytes;
    return hl_table_add_array(t, &array, NULL);
}

void hl_npy_header(char out[HL_NPY_WRITTEN], bool single, size_t rows, size_t columns, bool flat)
{
    char shape[64];
    int length;

    if (flat)
        snprintf(shape, sizeof shape, "(%zu,)", rows);
    else
        snprintf(shape, sizeof shape, "(%zu, %zu)", rows, columns);
    memset(out, ' ', HL_NPY_WRITTEN);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = HL_NPY_WRITTEN - 10;
    out[9] = 0;
    length = snprintf(out + 10, HL_NPY_WRITTEN - 10, "{'descr': '<f%c', 'fortran_order': False, 'shape': %s, }",
                      single ? '4' : '8', shape);
    out[10 + length] = ' ';
    out[HL_NPY_WRITTEN - 1] = '\n';
}
