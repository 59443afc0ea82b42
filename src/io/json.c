/* json.c - the reader of JSON and its writer.
 *
 * The reader is a recursive descent of bounded depth over text that a NUL follows, so that no token can run beyond its end: a NUL
 * is in no token. All values of a document lie in one arena. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "io/number.h"
#include "io/safetensors.h"

/* ---- reading ---- */

typedef struct parser {
    hl_context *ctx;
    hl_arena *arena;
    const char *begin, *at; /* the next byte */
    hl_status status;       /* of the first failure */
} parser;

static bool fault(parser *p, const char *what)
{
    if (p->status == HL_OK)
        p->status = hl_fail(p->ctx, HL_ERR_FORMAT, "at byte %zu: %s", (size_t)(p->at - p->begin), what);
    return false;
}

static bool no_memory(parser *p)
{
    p->status = HL_ERR_NOMEM;
    return false;
}

static void skip_space(parser *p)
{
    p->at += strspn(p->at, " \t\n\r");
}

/* Four hexadecimal digits after "\u"; -1 if they are not there. */
static long hex4(const char *s)
{
    long value = 0;
    for (size_t i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef", *found = s[i] ? strchr(digits, s[i] | 0x20) : NULL;
        if (!found || s[i] < '0')
            return -1;
        value = value * 16 + (found - digits);
    }
    return value;
}

static char *put_utf8(char *to, long code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* The escape at p->at, a backslash, to *to. */
static bool escape(parser *p, char **to)
{
    static const char letters[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    const char *letter = p->at[1] ? strchr(letters, p->at[1]) : NULL;
    if (letter) {
        *(*to)++ = bytes[letter - letters];
        p->at += 2;
        return true;
    }
    long code = p->at[1] == 'u' ? hex4(p->at + 2) : -1;
    if (code <= 0)
        return fault(p, code == 0 ? "\\u0000 is not supported" : "invalid escape");
    bool high = code >= 0xD800 && code < 0xDC00;
    long low = high && p->at[6] == '\\' && p->at[7] == 'u' ? hex4(p->at + 8) : -1;
    if ((code >= 0xDC00 && code < 0xE000) || (high && (low < 0xDC00 || low >= 0xE000)))
        return fault(p, "invalid surrogate pair");
    p->at += high ? 12 : 6;
    *to = put_utf8(*to, high ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : code);
    return true;
}

/* The string at p->at, a quote. The result is never longer than its text in the file. */
static const char *string(parser *p)
{
    const char *end = p->at + 1;
    while (*end && *end != '"')
        end += *end == '\\' && end[1] ? 2 : 1;
    if (!*end) {
        fault(p, "unterminated string");
        return NULL;
    }
    char *text = hl_arena_alloc(p->arena, (size_t)(end - p->at)), *to = text;
    if (!text) {
        no_memory(p);
        return NULL;
    }
    for (p->at++; *p->at != '"';) {
        if ((unsigned char)*p->at < 0x20) {
            fault(p, "control character in a string");
            return NULL;
        }
        if (*p->at != '\\')
            *to++ = *p->at++;
        else if (!escape(p, &to))
            return NULL;
    }
    p->at++;
    *to = '\0';
    if (hl_is_utf8(text))
        return text;
    fault(p, "the string is not UTF-8");
    return NULL;
}

/* [-] 0 or digits [. digits] [e [+-] digits] */
static bool number(parser *p, hl_json *j)
{
    const char *s = p->at + (*p->at == '-');
    size_t digits = strspn(s, "0123456789");
    bool real = false;
    if (digits == 0 || (*s == '0' && digits > 1))
        return fault(p, "invalid number");
    s += digits;
    if (*s == '.') {
        real = true;
        digits = strspn(++s, "0123456789");
        s += digits;
    }
    if (digits && (*s == 'e' || *s == 'E')) {
        real = true;
        s += 1 + (s[1] == '+' || s[1] == '-');
        digits = strspn(s, "0123456789");
        s += digits;
    }
    if (digits == 0)
        return fault(p, "invalid number");
    j->kind = real ? HL_JSON_REAL : HL_JSON_INTEGER;
    if (hl_number_scan(p->at, &j->number) != s || !isfinite(j->number))
        return fault(p, "the number is too large");
    if (!real) {
        errno = 0;
        j->integer = strtoimax(p->at, NULL, 10);
        if (errno)
            return fault(p, "the integer is too large");
    }
    p->at = s;
    return true;
}

static bool literal(parser *p, hl_json *j)
{
    static const struct {
        const char *text;
        hl_json_kind kind;
        int64_t value;
    } literals[] = { { "true", HL_JSON_BOOLEAN, 1 }, { "false", HL_JSON_BOOLEAN, 0 }, { "null", HL_JSON_NULL, 0 } };
    for (size_t i = 0; i < sizeof literals / sizeof *literals; i++) {
        size_t length = strlen(literals[i].text);
        if (strncmp(p->at, literals[i].text, length) == 0) {
            j->kind = literals[i].kind;
            j->integer = literals[i].value;
            p->at += length;
            return true;
        }
    }
    return fault(p, "expected a value");
}

static int compare_keys(const void *a, const void *b)
{
    const hl_json *const *left = a, *const *right = b;
    return strcmp((*left)->key, (*right)->key);
}

/* No key stands twice: by sorting, as a file may have 100,000 tensors. */
static bool check_keys(parser *p, const hl_json *object)
{
    const hl_json **sorted = hl_calloc(p->ctx, object->count, sizeof(const hl_json *)), *j = object->first;
    if (!sorted)
        return no_memory(p);
    for (size_t i = 0; i < object->count; i++, j = j->next)
        sorted[i] = j;
    qsort(sorted, object->count, sizeof *sorted, compare_keys);
    bool twice = false;
    for (size_t i = 1; i < object->count && !twice; i++)
        twice = strcmp(sorted[i - 1]->key, sorted[i]->key) == 0;
    hl_free(p->ctx, sorted);
    return twice ? fault(p, "duplicate key in the object that ends here") : true;
}

static bool value(parser *p, hl_json *j, size_t depth);

/* The key and the colon of an object's member. */
static bool member_key(parser *p, hl_json *member)
{
    if (*p->at != '"')
        return fault(p, "expected a string");
    member->key = string(p);
    if (!member->key)
        return false;
    skip_space(p);
    if (*p->at != ':')
        return fault(p, "expected ':'");
    p->at++;
    return true;
}

/* An array or an object, whose bracket is at p->at. */
static bool members(parser *p, hl_json *j, size_t depth)
{
    bool object = *p->at++ == '{';
    char end = object ? '}' : ']';
    const hl_json **last = &j->first;
    j->kind = object ? HL_JSON_OBJECT : HL_JSON_ARRAY;
    if (depth == HL_JSON_MAX_DEPTH)
        return fault(p, "nested too deeply");
    skip_space(p);
    if (*p->at == end) {
        p->at++;
        return true;
    }
    for (;; p->at++) {
        hl_json *member = hl_arena_alloc(p->arena, sizeof *member);
        if (!member)
            return no_memory(p);
        *member = (hl_json){ 0 };
        skip_space(p);
        if ((object && !member_key(p, member)) || !value(p, member, depth + 1))
            return false;
        *last = member;
        last = &member->next;
        j->count++;
        skip_space(p);
        if (*p->at != ',')
            break;
    }
    if (*p->at != end)
        return fault(p, object ? "expected ',' or '}'" : "expected ',' or ']'");
    p->at++;
    return !object || check_keys(p, j);
}

static bool value(parser *p, hl_json *j, size_t depth)
{
    skip_space(p);
    if (*p->at == '{' || *p->at == '[')
        return members(p, j, depth);
    if (*p->at == '"') {
        j->kind = HL_JSON_TEXT;
        j->text = string(p);
        return j->text != NULL;
    }
    return *p->at == '-' || (*p->at >= '0' && *p->at <= '9') ? number(p, j) : literal(p, j);
}

hl_status hl_json_parse(hl_context *ctx, const char *text, size_t size, hl_json_document *document)
{
    *document = (hl_json_document){ 0 };
    hl_arena_init(&document->arena, ctx);
    parser p = { ctx, &document->arena, text, text, HL_OK };
    hl_json *root = hl_arena_alloc(&document->arena, sizeof *root);
    if (!root)
        return HL_ERR_NOMEM;
    *root = (hl_json){ 0 };
    if (!value(&p, root, 0))
        return p.status;
    skip_space(&p);
    if ((size_t)(p.at - text) != size)
        fault(&p, "expected the end of the text");
    else
        document->root = root;
    return p.status;
}

void hl_json_free(hl_json_document *document)
{
    hl_arena_free(&document->arena);
    document->root = NULL;
}

const hl_json *hl_json_get(const hl_json *object, const char *key)
{
    const hl_json *j = hl_json_is_object(object) ? object->first : NULL;
    while (j && strcmp(j->key, key) != 0)
        j = j->next;
    return j;
}

bool hl_json_is_object(const hl_json *j)
{
    return j && j->kind == HL_JSON_OBJECT;
}

bool hl_json_is_array(const hl_json *j, size_t count)
{
    return j && j->kind == HL_JSON_ARRAY && j->count == count;
}

bool hl_json_is_integer(const hl_json *j)
{
    return j && j->kind == HL_JSON_INTEGER;
}

bool hl_json_is_number(const hl_json *j)
{
    return j && (j->kind == HL_JSON_INTEGER || j->kind == HL_JSON_REAL);
}

const char *hl_json_text(const hl_json *j)
{
    return j && j->kind == HL_JSON_TEXT ? j->text : NULL;
}

bool hl_json_get_reals(const hl_json *j, size_t count, double *to)
{
    if (!hl_json_is_array(j, count))
        return false;
    for (const hl_json *v = j->first; v; v = v->next, to++) {
        if (!hl_json_is_number(v))
            return false;
        *to = v->number;
    }
    return true;
}

bool hl_json_get_rows(const hl_json *j, size_t rows, size_t columns, double *to)
{
    if (!hl_json_is_array(j, rows))
        return false;
    for (const hl_json *v = j->first; v; v = v->next, to += columns)
        if (!hl_json_get_reals(v, columns, to))
            return false;
    return true;
}

/* ---- writing ---- */

static void put(hl_json_writer *w, const char *bytes, size_t count)
{
    w->failed =
        w->failed || hl_grow(w->ctx, (void **)&w->text, &w->capacity, hl_size_add(w->length, count + 1), 1) != HL_OK;
    if (w->failed)
        return;
    memcpy(w->text + w->length, bytes, count);
    w->length += count;
    w->text[w->length] = '\0';
}

static void put_quoted(hl_json_writer *w, const char *s)
{
    put(w, "\"", 1);
    while (*s) {
        size_t plain = strcspn(s, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14"
                                  "\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
        put(w, s, plain);
        s += plain;
        if (!*s)
            break;
        static const char bytes[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
        const char *found = strchr(bytes, *s);
        char code[8];
        if (found)
            snprintf(code, sizeof code, "\\%c", letters[found - bytes]);
        else
            snprintf(code, sizeof code, "\\u%04X", (unsigned)(*s & 0x1F));
        put(w, code, strlen(code));
        s++;
    }
    put(w, "\"", 1);
}

/* The comma and the key before a value. */
static void begin(hl_json_writer *w, const char *key)
{
    if (w->comma)
        put(w, ",", 1);
    w->comma = true;
    if (!key)
        return;
    put_quoted(w, key);
    put(w, ":", 1);
}

void hl_json_open(hl_json_writer *w, const char *key, char bracket)
{
    begin(w, key);
    put(w, &bracket, 1);
    w->comma = false;
}

void hl_json_close(hl_json_writer *w, char bracket)
{
    put(w, &bracket, 1);
    w->comma = true;
}

void hl_json_put_text(hl_json_writer *w, const char *key, const char *value)
{
    begin(w, key);
    put_quoted(w, value);
}

void hl_json_put_integer(hl_json_writer *w, const char *key, int64_t value)
{
    char text[24];
    begin(w, key);
    snprintf(text, sizeof text, "%" PRId64, value);
    put(w, text, strlen(text));
}

/* Such as 1.0, 0.10000000000000001 and 1e-5, whatever the locale's decimal point is. */
void hl_json_put_real(hl_json_writer *w, const char *key, double value)
{
    char text[40], *exponent, *digit;
    begin(w, key);
    snprintf(text, sizeof text - 4, "%.17g", value);
    size_t whole = strspn(text, "-0123456789");
    if (text[whole] && text[whole] != 'e')
        text[whole] = '.';
    exponent = strchr(text, 'e');
    if (!exponent && !text[whole])
        strcat(text, ".0");
    if (exponent) { /* e-05 is e-5, e+20 is e20 */
        digit = exponent + 1 + (exponent[1] == '-');
        size_t skip = strspn(digit, "+0");
        memmove(digit, digit + skip, strlen(digit + skip) + 1);
    }
    put(w, text, strlen(text));
}

void hl_json_put_reals(hl_json_writer *w, const char *key, size_t count, const double *values)
{
    hl_json_open(w, key, '[');
    for (size_t k = 0; k < count; k++)
        hl_json_put_real(w, NULL, values[k]);
    hl_json_close(w, ']');
}

void hl_json_put_rows(hl_json_writer *w, const char *key, size_t rows, size_t columns, const double *values)
{
    hl_json_open(w, key, '[');
    for (size_t r = 0; r < rows; r++)
        hl_json_put_reals(w, NULL, columns, values + r * columns);
    hl_json_close(w, ']');
}

void hl_json_put_boolean(hl_json_writer *w, const char *key, bool value)
{
    begin(w, key);
    put(w, value ? "true" : "false", value ? 4 : 5);
}

void hl_json_put_null(hl_json_writer *w, const char *key)
{
    begin(w, key);
    put(w, "null", 4);
}

char *hl_json_finish(hl_json_writer *w)
{
    if (w->failed) {
        hl_free(w->ctx, w->text);
        w->text = NULL;
    }
    return w->text;
}
