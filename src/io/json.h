/* json.h - JSON for the headers and metadata of files: a reader that trusts nothing, and a writer of compact text.
 *
 *     hl_json_parse(ctx, text, strlen(text), &document);      hl_json_writer w = { .ctx = ctx };
 *     j = hl_json_get(document.root, "dim");                  hl_json_open(&w, NULL, '{');
 *     if (hl_json_is_integer(j)) ... j->integer ...           hl_json_put_integer(&w, "dim", 2);
 *     hl_json_free(&document);                                hl_json_close(&w, '}');
 *                                                             text = hl_json_finish(&w);
 *
 * All memory comes from the context's allocator. */
#ifndef HL_JSON_H
#define HL_JSON_H

#include "base/base.h"

enum { HL_JSON_MAX_DEPTH = 64 };

typedef enum hl_json_kind {
    HL_JSON_NULL,
    HL_JSON_BOOLEAN,
    HL_JSON_INTEGER,
    HL_JSON_REAL,
    HL_JSON_TEXT,
    HL_JSON_ARRAY,
    HL_JSON_OBJECT
} hl_json_kind;

/* A value. Members of an array or an object form a list: for (j = array->first; j; j = j->next). */
typedef struct hl_json {
    hl_json_kind kind;
    const char *key;                    /* of a member of an object; otherwise NULL */
    int64_t integer;                    /* of integers; 0 or 1 of booleans */
    double number;                      /* of integers and reals; finite */
    const char *text;                   /* of texts: UTF-8 without NUL */
    size_t count;                       /* of arrays and objects */
    const struct hl_json *first, *next; /* first: of arrays and objects */
} hl_json;

typedef struct hl_json_document {
    hl_arena arena;
    const hl_json *root; /* NULL if parsing failed */
} hl_json_document;

/* Parse one value of `size` bytes, which a NUL follows. HL_ERR_FORMAT with a message "at byte N: ..." if the text is not JSON
 * (RFC 8259), nests too deeply, repeats a key, has a NUL, malformed UTF-8, an integer beyond 64 bits or a real beyond doubles;
 * HL_ERR_NOMEM. Free the document in every case. */
hl_status hl_json_parse(hl_context *ctx, const char *text, size_t size, hl_json_document *document);
void hl_json_free(hl_json_document *document); /* takes one that is all zeros */

/* The member of that name; NULL if there is none, or if `object` is NULL or not an object. */
const hl_json *hl_json_get(const hl_json *object, const char *key);
/* These take NULL. */
bool hl_json_is_object(const hl_json *j);
bool hl_json_is_array(const hl_json *j, size_t count); /* of so many members */
bool hl_json_is_integer(const hl_json *j);
bool hl_json_is_number(const hl_json *j);
const char *hl_json_text(const hl_json *j); /* NULL if it is not a text */
/* An array of so many numbers, or of rows of them, to `to`; false if it is something else. */
bool hl_json_get_reals(const hl_json *j, size_t count, double *to);
bool hl_json_get_rows(const hl_json *j, size_t rows, size_t columns, double *to);

/* A writer. The first failure is kept; after it nothing is written. */
typedef struct hl_json_writer {
    hl_context *ctx;
    char *text;
    size_t length, capacity;
    bool comma, failed;
} hl_json_writer;

/* `key` is NULL outside of objects. Texts must be UTF-8, numbers finite. */
void hl_json_open(hl_json_writer *w, const char *key, char bracket); /* '{' or '[' */
void hl_json_close(hl_json_writer *w, char bracket);                 /* '}' or ']' */
void hl_json_put_text(hl_json_writer *w, const char *key, const char *value);
void hl_json_put_integer(hl_json_writer *w, const char *key, int64_t value);
void hl_json_put_real(hl_json_writer *w, const char *key, double value); /* 17 digits: reads back to the bit */
void hl_json_put_reals(hl_json_writer *w, const char *key, size_t count, const double *values);
void hl_json_put_rows(hl_json_writer *w, const char *key, size_t rows, size_t columns, const double *values);
void hl_json_put_boolean(hl_json_writer *w, const char *key, bool value);
void hl_json_put_null(hl_json_writer *w, const char *key);
/* The text, NUL-terminated, which the caller frees with hl_free; NULL with the message set if memory ran out. */
char *hl_json_finish(hl_json_writer *w);

#endif
