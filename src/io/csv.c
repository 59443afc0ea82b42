/* csv.c - numbers in text.
 *
 * The input goes through a buffer that holds at least one whole record (a row; more than one line if quotes span lines). A
 * record is delimited first, then its fields are parsed in place; the byte after it is a line end, which stops every scan. A
 * record larger than the buffer doubles it. Memory is the longest record and the numbers of the wanted columns; those of a large file go to a
 * temporary one, from which they are read as those of an array. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "io/number.h"
#include "io/table.h"

enum {
    FIRST_BUFFER = 1 << 18,
    BLOCK_VALUES = 1 << 16, /* numbers of a block, if a row is not longer */
    IN_MEMORY = 1 << 23,    /* numbers, unless the options say otherwise */
    UNUSED = -1             /* in csv.place */
};

typedef struct csv {
    hl_table *t;
    char *buffer;
    size_t capacity; /* one byte more is there, for a line end after the last */
    size_t begin, end;
    bool ended;       /* the input has no more */
    size_t line;      /* where the record begins */
    size_t lines;     /* that the record has */
    char separator;   /* ' ' means any blanks */
    size_t fields;    /* of every record */
    ptrdiff_t *place; /* of each field in a row of the table, or UNUSED */
} csv;

/* A field as it stands in the record: inside its quotes if it has any. */
typedef struct field {
    const char *text;
    size_t bytes;
    bool quoted;
} field;

/* "data.csv:17: <what is wrong>" */
static hl_status fault(const csv *c, hl_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
static hl_status fault(const csv *c, hl_status status, const char *format, ...)
{
    char text[320];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hl_fail(c->t->ctx, status, "%s:%zu: %s", hl_path_shown(c->t->source.path), c->line, text);
}

/* ---- records ---- */

/* Move what is left to the front of the buffer and fill it up; a buffer that is full is doubled first. */
static hl_status refill(csv *c)
{
    size_t left = c->end - c->begin, got;
    hl_status status;

    if (left == c->capacity || !c->buffer) {
        size_t capacity = c->buffer ? hl_size_mul(c->capacity, 2) : FIRST_BUFFER;
        char *grown = hl_alloc(c->t->ctx, hl_size_add(capacity, 1));

        if (!grown)
            return HL_ERR_NOMEM;
        if (left)
            memcpy(grown, c->buffer + c->begin, left);
        hl_free(c->t->ctx, c->buffer);
        c->buffer = grown;
        c->capacity = capacity;
    } else if (left) {
        memmove(c->buffer, c->buffer + c->begin, left);
    }
    c->begin = 0;
    c->end = left;
    status = hl_source_next(&c->t->source, c->buffer + left, c->capacity - left, &got);
    c->end += got;
    c->buffer[c->end] = '\n';
    c->ended = c->end < c->capacity;
    return status;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *p)
{
    while (is_blank(*p))
        p++;
    return p;
}

/* Until the first record has shown the separator, all may be it. */
static bool separates(const csv *c, char byte)
{
    if (c->separator && c->separator != ' ')
        return byte == c->separator;
    return is_blank(byte) || (!c->separator && (byte == ',' || byte == ';'));
}

/* The line end of the record p .. end, quotes respected, or NULL if it is not in the buffer. A quote opens only at the start
 * of a field. Counts the lines before it. */
static char *find_quoted_end(csv *c, char *p, char *end)
{
    bool start = true, inside = false;

    for (c->lines = 1; p < end; p++) {
        if (inside) {
            if (*p == '"' && p + 1 < end && p[1] == '"')
                p++;
            else if (*p == '"')
                inside = false;
            else if (*p == '\n')
                c->lines++;
        } else if (*p == '\n' || *p == '\r') {
            return p;
        } else if (*p == '"' && start) {
            inside = true;
            start = false;
        } else {
            start = separates(c, *p) || (start && is_blank(*p));
        }
    }
    return NULL;
}

/* The line end of the record at the buffer's begin, or NULL. memchr is several times as fast as any loop over bytes. */
static char *find_end(csv *c)
{
    char *p = c->buffer + c->begin, *end = c->buffer + c->end, *stop = memchr(p, '\n', (size_t)(end - p)), *cr;

    if (*skip_blanks(p) != '#' && memchr(p, '"', (size_t)((stop ? stop : end) - p)))
        return find_quoted_end(c, p, end);
    c->lines = 1;
    cr = memchr(p, '\r', (size_t)((stop ? stop : end) - p));
    return cr ? cr : stop;
}

/* Step over the line end at `stop`, of one byte or two. */
static void step_over(csv *c, const char *stop)
{
    c->begin = (size_t)(stop - c->buffer);
    if (c->begin < c->end)
        c->begin += *stop == '\r' && c->begin + 1 < c->end && stop[1] == '\n' ? 2 : 1;
    c->line += c->lines;
}

/* The next record that is not empty or a comment: *record .. *end, or NULL when there are no more. The byte at *end is a line
 * end. c->line is its line; call step_over to go on. */
static hl_status next_record(csv *c, const char **record, const char **end)
{
    for (;;) {
        char *stop = c->begin < c->end ? find_end(c) : NULL;
        const char *text;

        /* A \r that ends the buffer may have its \n behind. */
        if ((!stop || stop + 1 == c->buffer + c->end) && !c->ended) {
            hl_status status = refill(c);

            if (status)
                return status;
            continue;
        }
        if (c->begin == c->end) {
            *record = NULL;
            return HL_OK;
        }
        if (!stop)
            stop = c->buffer + c->end; /* the last line, without an end of its own */
        text = skip_blanks(c->buffer + c->begin);
        if (text < stop && *text != '#') {
            *record = c->buffer + c->begin;
            *end = stop;
            return HL_OK;
        }
        step_over(c, stop);
    }
}

/* ---- fields ---- */

/* Blanks around a field; a tab that separates is none. */
static const char *skip_padding(const csv *c, const char *p)
{
    while (is_blank(*p) && (c->separator == ' ' || *p != c->separator))
        p++;
    return p;
}

/* What comes after a field that ends at `stop`: behind its separator, or NULL if it is the last. */
static const char *after_field(const csv *c, const char *stop, const char *end)
{
    stop = skip_padding(c, stop);
    if (stop >= end)
        return NULL;
    return c->separator == ' ' ? stop : stop + 1;
}

/* The quoted field at p, which is its opening quote. */
static hl_status quoted_field(const csv *c, const char *p, const char *end, field *f, const char **next)
{
    const char *q = p + 1, *stop;

    for (;;) {
        q = memchr(q, '"', (size_t)(end - q));
        if (!q)
            return fault(c, HL_ERR_FORMAT, "unterminated quote (\")");
        if (q[1] != '"')
            break;
        q += 2; /* a quote inside the field */
    }
    *f = (field){ .text = p + 1, .bytes = (size_t)(q - p) - 1, .quoted = true };
    stop = skip_padding(c, q + 1);
    if (stop < end && (c->separator == ' ' ? stop == q + 1 : *stop != c->separator))
        return fault(c, HL_ERR_FORMAT, "text follows a closing quote (\")");
    *next = after_field(c, stop, end);
    return HL_OK;
}

/* The field at p, blanks around it left out. *next is behind its separator, or NULL if it is the last. */
static hl_status next_field(const csv *c, const char *p, const char *end, field *f, const char **next)
{
    const char *stop;

    p = skip_padding(c, p);
    if (*p == '"')
        return quoted_field(c, p, end, f, next);
    for (stop = p; stop < end && !separates(c, *stop);)
        stop++;
    *f = (field){ .text = p, .bytes = (size_t)(stop - p) };
    while (f->bytes && is_blank(f->text[f->bytes - 1]))
        f->bytes--;
    *next = after_field(c, stop, end);
    return HL_OK;
}

/* A field that is a date, and nothing else. */
static bool field_date(const field *f, double *value)
{
    const char *end = hl_date_scan(f->text, value);
    return end && end == f->text + f->bytes;
}

/* A field that is a number, and nothing else. */
static bool field_number(const field *f, double *value)
{
    const char *begin = f->text, *end = f->text + f->bytes, *stop;

    for (; f->quoted && begin < end && is_blank(*begin);)
        begin++;
    for (; f->quoted && end > begin && is_blank(end[-1]);)
        end--;
    stop = hl_number_scan(begin, value);
    return stop > begin && stop == end;
}

static bool field_missing(const field *f)
{
    static const char *const words[] = { "", "NA", "N/A", "NaN", "null", "none", "?", "inf", "infinity" };
    const char *text = f->text;
    size_t bytes = f->bytes;

    if (bytes > 1 && (*text == '-' || *text == '+'))
        text++, bytes--;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == bytes && strncasecmp(words[i], text, bytes) == 0)
            return true;
    return false;
}

/* ---- the first record ---- */

/* The separator, by its first sign in the first record: a tab, else ';', else ',', else blanks. That order, as numbers may be
 * written with a decimal comma, and names with blanks. */
static char find_separator(const char *p, const char *end)
{
    bool tab = false, semicolon = false, comma = false, blank = false, inside = false;

    p = skip_blanks(p);
    while (end > p && is_blank(end[-1]) && end[-1] != '\t')
        end--;
    for (; p < end; p++) {
        inside ^= *p == '"';
        if (inside)
            continue;
        tab |= *p == '\t';
        semicolon |= *p == ';';
        comma |= *p == ',';
        blank |= *p == ' ';
    }
    return tab ? '\t' : semicolon ? ';' : comma ? ',' : blank ? ' ' : ',';
}

/* The text of a field, "" in quotes being one quote; to be freed, NULL without memory. */
static char *field_copy(const csv *c, const field *f)
{
    char *text = hl_alloc(c->t->ctx, f->bytes + 1);
    size_t used = 0;

    for (size_t i = 0; text && i < f->bytes; i++) {
        text[used++] = f->text[i] ? f->text[i] : '?';
        if (f->quoted && f->text[i] == '"')
            i++;
    }
    if (text)
        text[used] = '\0';
    return text;
}

static hl_status add_name(csv *c, const field *f, size_t index)
{
    char *name = field_copy(c, f);
    hl_status status;

    if (!name)
        return HL_ERR_NOMEM;
    status = hl_table_add_column(c->t, name, 0, index);
    hl_free(c->t->ctx, name);
    return status;
}

/* Count the fields of the first record and find out if they are names: if one of them is text. */
static hl_status look_at_first(csv *c, const char *record, const char *end, bool *header)
{
    field f;
    double value;

    *header = false;
    for (const char *p = record; p; c->fields++) {
        hl_status status = next_field(c, p, end, &f, &p);

        if (status)
            return status;
        *header |=
            !field_number(&f, &value) && !field_missing(&f) && !(c->t->options.date_column && field_date(&f, &value));
    }
    if (c->t->options.header)
        *header = c->t->options.header > 0;
    return HL_OK;
}

/* Is this the column that a text names, or numbers as the file has them? */
static bool is_column(const csv *c, const char *wanted, size_t column)
{
    char number[24];

    for (size_t i = 0; wanted && i < c->t->column_count; i++)
        if (strcmp(wanted, c->t->columns[i].name) == 0)
            return i == column;
    snprintf(number, sizeof number, "%zu", c->t->columns[column].index + 1);
    return wanted && strcmp(wanted, number) == 0;
}

/* The same for a list "a,b". */
static bool is_listed(const csv *c, const char *list, size_t column)
{
    char item[HL_TABLE_SHOWN];

    for (const char *at = list; at && *at;) {
        const char *comma = strchr(at, ',');
        size_t bytes = comma ? (size_t)(comma - at) : strlen(at);

        if (bytes < sizeof item) {
            memcpy(item, at, bytes);
            item[bytes] = '\0';
            if (is_column(c, item, column))
                return true;
        }
        at = comma ? comma + 1 : NULL;
    }
    return false;
}

static hl_status take_columns(csv *c, const char *record, const char *end, bool header)
{
    const char *p = record;
    hl_status status = HL_OK;
    field f;

    for (size_t i = 0; !status && i < c->fields; i++) {
        if (!header) {
            status = hl_table_add_column(c->t, NULL, 0, i);
            continue;
        }
        status = next_field(c, p, end, &f, &p);
        if (!status)
            status = add_name(c, &f, i);
    }
    return status;
}

/* Where each field goes, and how rows are stored. */
static hl_status take_places(csv *c)
{
    hl_table *t = c->t;

    c->place = hl_calloc(t->ctx, c->fields, sizeof *c->place);
    if (!c->place)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < c->fields; i++)
        c->place[i] = UNUSED;
    for (size_t i = 0; i < t->column_count; i++) {
        bool listed = is_listed(c, t->options.label_columns, i), fixed = listed && t->options.labels_only;

        t->columns[i].free_text =
            t->named && t->options.number_columns && !listed && !is_listed(c, t->options.number_columns, i);
        t->columns[i].labels = listed || t->columns[i].free_text || is_column(c, t->options.label_column, i);
        t->columns[i].open = !fixed && (t->columns[i].labels || is_column(c, t->options.date_column, i));
        t->columns[i].kind = fixed ? HL_COLUMN_LABELS : HL_COLUMN_NUMBERS;
        c->place[t->columns[i].index] = (ptrdiff_t)i;
        t->columns[i].index = i;
    }
    t->block_columns = t->column_count;
    t->block_rows = BLOCK_VALUES / t->column_count ? BLOCK_VALUES / t->column_count : 1;
    return HL_OK;
}

/* Everything that the first record tells. Steps over it if it is a header. */
static hl_status begin(csv *c)
{
    const char *record, *end;
    bool header;
    hl_status status = refill(c);

    if (!status && c->end >= 3 && memcmp(c->buffer, "\xEF\xBB\xBF", 3) == 0)
        c->begin = 3;
    if (!status)
        status = next_record(c, &record, &end);
    if (status)
        return status;
    if (!record)
        return hl_table_fault(c->t, HL_ERR_FORMAT, "the file is empty");
    if (!c->separator)
        c->separator = find_separator(record, end);
    status = look_at_first(c, record, end, &header);
    if (!status)
        status = take_columns(c, record, end, header);
    if (!status)
        status = hl_table_check_names(c->t);
    if (!status)
        status = hl_table_select(c->t);
    if (!status)
        status = take_places(c);
    if (!status && header)
        step_over(c, end);
    return status;
}

/* ---- rows ---- */

/* A file without a name. */
static hl_status open_spill(hl_table *t)
{
    const char *directory = getenv("TMPDIR");
    char path[4096];

    directory = directory && *directory ? directory : "/tmp";
    if (snprintf(path, sizeof path, "%s/hollow-XXXXXX", directory) >= (int)sizeof path)
        return hl_io_error(t->ctx, directory, "create a temporary file in", ENAMETOOLONG);
    t->spill = mkstemp(path);
    if (t->spill < 0)
        return hl_io_error(t->ctx, directory, "create a temporary file in", errno);
    t->spilling = true;
    unlink(path);
    return HL_OK;
}

/* Rows that are in blocks go to the file. */
static hl_status spill_blocks(hl_table *t)
{
    size_t left = t->rows - t->spilled;
    hl_status status = t->spilling ? HL_OK : open_spill(t);

    for (size_t i = 0; i < t->block_count; i++) {
        size_t rows = left < t->block_rows ? left : t->block_rows;

        if (!status)
            status = hl_fd_write(t->ctx, "the temporary file of the table", t->spill, t->blocks[i],
                                 rows * t->block_columns * sizeof(double));
        hl_free(t->ctx, t->blocks[i]);
        left -= rows;
    }
    t->block_count = 0;
    t->spilled = t->rows;
    return status;
}

/* The file takes the place of the source, as an array of all numbers. */
static hl_status read_spill(hl_table *t)
{
    hl_array array = { .kind = 'f', .size = sizeof(double), .rank = 2, .rows = t->rows, .columns = t->block_columns };
    size_t row_bytes = t->block_columns * sizeof(double);
    hl_status status = spill_blocks(t);

    if (!status)
        status = hl_grow(t->ctx, (void **)&t->arrays, &t->array_capacity, 1, sizeof *t->arrays);
    if (!status)
        status =
            hl_grow(t->ctx, &t->scratch, &t->scratch_bytes, row_bytes > BLOCK_VALUES ? row_bytes : BLOCK_VALUES, 1);
    if (status)
        return status;
    hl_free(t->ctx, t->blocks);
    t->blocks = NULL;
    t->arrays[t->array_count++] = array;
    hl_source_replace(&t->source, t->spill, t->rows * row_bytes);
    t->spilling = false;
    return HL_OK;
}

/* Room for the next row. */
static hl_status next_row(hl_table *t, double **row)
{
    size_t block = (t->rows - t->spilled) / t->block_rows;
    size_t most = t->options.in_memory ? t->options.in_memory : IN_MEMORY;

    if (block == t->block_count && block && block * t->block_rows * t->block_columns >= most) {
        hl_status status = spill_blocks(t);

        if (status)
            return status;
        block = 0;
    }
    if (block == t->block_count) {
        if (hl_grow(t->ctx, (void **)&t->blocks, &t->block_capacity, block + 1, sizeof *t->blocks))
            return HL_ERR_NOMEM;
        t->blocks[block] = hl_alloc(t->ctx, t->block_rows * t->block_columns * sizeof(double));
        if (!t->blocks[block])
            return HL_ERR_NOMEM;
        t->block_count++;
    }
    *row = t->blocks[block] + (t->rows - t->spilled) % t->block_rows * t->block_columns;
    return HL_OK;
}

/* Note the row's line, if it is not the one after the last row's. */
static hl_status note_line(const csv *c)
{
    hl_table *t = c->t;

    if (t->mark_count && hl_table_line(t, t->rows) == c->line)
        return HL_OK;
    if (hl_grow(t->ctx, (void **)&t->marks, &t->mark_capacity, t->mark_count + 1, sizeof *t->marks))
        return HL_ERR_NOMEM;
    t->marks[t->mark_count++] = (hl_line_mark){ .row = t->rows, .line = c->line };
    return HL_OK;
}

/* A field that is no finite number: a missing value, which may be dropped, or an error. */
static hl_status not_a_number(const csv *c, const field *f, size_t column, bool infinite, bool *missing)
{
    const char *name = c->t->columns[column].name;
    char text[HL_TABLE_SHOWN], name_text[HL_TABLE_SHOWN];

    hl_text_shown(text, f->text, f->bytes);
    hl_text_shown(name_text, name, strlen(name));
    if (field_missing(f)) {
        *missing = true;
        if (c->t->options.drop_missing)
            return HL_OK;
        return fault(c, HL_ERR_NOT_FINITE,
                     "column '%s': %s%s%s is a missing value; fill it in, or skip such rows with --drop-missing",
                     name_text, f->bytes ? "'" : "an empty field", text, f->bytes ? "'" : "");
    }
    if (infinite)
        return fault(c, HL_ERR_NOT_FINITE, "column '%s': '%s' is too large for a double; rescale the column", name_text,
                     text);
    if (memchr(f->text, ',', f->bytes) && c->separator != ',')
        return fault(c, HL_ERR_FORMAT, "column '%s': '%s' is not a number; write a decimal point, not a comma",
                     name_text, text);
    return fault(c, HL_ERR_FORMAT,
                 "column '%s': '%s' is not a number; correct it, or select other columns with --columns", name_text,
                 text);
}

static hl_status wrong_length(const csv *c, size_t fields)
{
    const char *in = c->separator == '\t'  ? "tabs"
                     : c->separator == ';' ? "semicolons"
                     : c->separator == ' ' ? "blanks"
                     : c->separator == ',' ? "commas"
                                           : "the separator";

    return fault(c, HL_ERR_FORMAT, "%s%zu field%s (separated by %s), but the first row has %zu",
                 fields > c->fields ? "more than " : "", fields > c->fields ? c->fields : fields,
                 (fields > c->fields ? c->fields : fields) == 1 ? "" : "s", in, c->fields);
}

/* The common case: a number, up to the separator or the end, blanks around it only where they separate. */
static bool take_plain(const csv *c, const char **p, const char *end, double *value)
{
    const char *text = c->separator == ' ' ? skip_blanks(*p) : *p, *stop = hl_number_scan(text, value);

    if (stop == text || !isfinite(*value))
        return false;
    if (stop == end) {
        *p = NULL;
        return true;
    }
    if (!separates(c, *stop))
        return false;
    if (c->separator == ' ') {
        stop = skip_blanks(stop);
        *p = stop == end ? NULL : stop;
    } else {
        *p = stop + 1;
    }
    return true;
}

/* What stands in a column that may hold dates or text, its first value tells. */
static void decide_kind(hl_column *column, const field *f)
{
    double value;
    const char *stop = hl_number_scan(f->text, &value);

    column->open = false;
    if (stop > f->text && stop == f->text + f->bytes)
        column->kind = HL_COLUMN_NUMBERS;
    else
        column->kind = column->labels                    ? HL_COLUMN_LABELS
                       : hl_date_like(f->text, f->bytes) ? HL_COLUMN_DATES
                                                         : HL_COLUMN_NUMBERS;
}

static hl_status number_label(const csv *c, const field *f, double *value)
{
    bool plain = !f->quoted || !memchr(f->text, '"', f->bytes);
    char *copy = plain ? NULL : field_copy(c, f);
    size_t number = 0;
    hl_status status = plain  ? hl_labels_number(&c->t->labels, f->text, f->bytes, &number)
                       : copy ? hl_labels_number(&c->t->labels, copy, strlen(copy), &number)
                              : HL_ERR_NOMEM;
    hl_free(c->t->ctx, copy);
    *value = (double)number;
    return status;
}

/* A date or a text to a number. */
static hl_status take_other(const csv *c, const field *f, size_t place, double *row, bool *missing)
{
    hl_column *column = &c->t->columns[place];
    char text[HL_TABLE_SHOWN], name[HL_TABLE_SHOWN];

    if (field_missing(f) && !column->free_text)
        return not_a_number(c, f, place, false, missing);
    if (column->kind == HL_COLUMN_LABELS)
        return number_label(c, f, &row[place]);
    if (field_date(f, &row[place]))
        return HL_OK;
    hl_text_shown(text, f->text, f->bytes);
    hl_text_shown(name, column->name, strlen(column->name));
    return fault(c, HL_ERR_FORMAT, "column '%s': '%s' is not a date, such as 2024-02-29 or 2024-02-29T13:45:00%s", name,
                 text, hl_date_like(f->text, f->bytes) ? "; this day or time does not exist" : "");
}

/* Parse one field at p to its place in the row. */
static hl_status take_field(const csv *c, const char **p, const char *end, ptrdiff_t place, double *row, bool *missing)
{
    double value;
    bool number;
    hl_status status;
    field f;

    hl_column *column = place == UNUSED ? NULL : &c->t->columns[place];

    if (column && column->kind == HL_COLUMN_NUMBERS && take_plain(c, p, end, &row[place])) {
        column->open = false;
        return HL_OK;
    }
    status = next_field(c, *p, end, &f, p);
    if (status || place == UNUSED)
        return status;
    if (column->open && (column->free_text || !field_missing(&f)))
        decide_kind(column, &f);
    if (column->kind != HL_COLUMN_NUMBERS)
        return take_other(c, &f, (size_t)place, row, missing);
    number = field_number(&f, &value);
    if (!number || !isfinite(value))
        return not_a_number(c, &f, (size_t)place, number, missing);
    row[place] = value;
    return HL_OK;
}

static hl_status take_record(csv *c, const char *record, const char *end)
{
    bool missing = false;
    const char *p = record;
    double *row;
    hl_status status = next_row(c->t, &row);

    for (size_t i = 0; !status && i < c->fields; i++) {
        if (!p)
            return wrong_length(c, i);
        status = take_field(c, &p, end, c->place[i], row, &missing);
    }
    if (status)
        return status;
    if (p)
        return wrong_length(c, c->fields + 1);
    if (missing) {
        c->t->dropped++;
        return HL_OK;
    }
    status = note_line(c);
    c->t->rows += !status;
    return status;
}

hl_status hl_table_read_csv(hl_table *t)
{
    csv c = { .t = t, .line = 1, .separator = t->options.separator };
    const char *record = NULL, *end;
    hl_status status;

    if (c.separator && !strchr(",;\t |:", c.separator))
        return hl_fail(t->ctx, HL_ERR_INVALID, "a separator must be one of , ; | : a tab or a blank");
    status = begin(&c);

    while (!status) {
        status = next_record(&c, &record, &end);
        if (status || !record)
            break;
        status = take_record(&c, record, end);
        step_over(&c, end);
    }
    if (!status && t->rows == 0 && !t->dropped)
        status = hl_table_fault(t, HL_ERR_FORMAT, "the file has a header but no rows");
    if (!status && t->spilling)
        status = read_spill(t);
    hl_free(t->ctx, c.buffer);
    hl_free(t->ctx, c.place);
    return status;
}
