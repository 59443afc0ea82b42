/* columns.c - the names of a table's columns, and lists of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/table.h"
#include "io/tensors.h"

const char *hl_text_shown(char out[HL_TABLE_SHOWN], const char *text, size_t bytes)
{
    char copy[HL_TABLE_SHOWN + 16];

    bytes = bytes < sizeof copy - 1 ? bytes : sizeof copy - 1;
    for (size_t i = 0; i < bytes; i++)
        copy[i] = text[i] ? text[i] : '\1'; /* which is not printable either, and does not end the text */
    copy[bytes] = '\0';
    return hl_tensor_shown(out, HL_TABLE_SHOWN, copy);
}

/* What is not printable UTF-8 becomes '?': names go to messages, files and model files. */
static const char *copy_name(hl_table *t, const char *name)
{
    size_t capacity = hl_size_add(strlen(name), 8); /* hl_tensor_shown keeps room for dots */
    char *copy = hl_arena_alloc(&t->names, capacity);

    return copy ? hl_tensor_shown(copy, capacity, name) : NULL;
}

hl_status hl_table_add_column(hl_table *t, const char *name, size_t array, size_t index)
{
    hl_column column = { .array = array, .index = index, .place = t->column_count };

    if (t->column_count >= HL_TABLE_MAX_COLUMNS)
        return hl_table_fault(t, HL_ERR_UNSUPPORTED, "more than %d columns", HL_TABLE_MAX_COLUMNS);
    if (name) {
        column.name = copy_name(t, name);
        if (!column.name)
            return HL_ERR_NOMEM;
        t->named = true;
    }
    if (hl_grow(t->ctx, (void **)&t->columns, &t->column_capacity, t->column_count + 1, sizeof *t->columns))
        return HL_ERR_NOMEM;
    t->columns[t->column_count++] = column;
    return HL_OK;
}

/* ---- names ---- */

/* Columns without a name: x1, x2, ... if none has one; else column1, ..., so that they do not meet an x1 of the file. */
static hl_status make_names(hl_table *t)
{
    for (size_t i = 0; i < t->column_count; i++) {
        char name[32];

        if (t->columns[i].name && *t->columns[i].name)
            continue;
        snprintf(name, sizeof name, t->named ? "column%zu" : "x%zu", i + 1);
        t->columns[i].name = copy_name(t, name);
        if (!t->columns[i].name)
            return HL_ERR_NOMEM;
    }
    return HL_OK;
}

static int compare_columns(const void *a, const void *b)
{
    const hl_column *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    return order ? order : (*x > *y) - (*x < *y);
}

hl_status hl_table_check_names(hl_table *t)
{
    const hl_column **sorted;
    size_t count = t->column_count;
    char text[HL_TABLE_SHOWN];
    hl_status status = make_names(t);

    if (status || !t->named)
        return status;
    sorted = hl_calloc(t->ctx, count, sizeof *sorted);
    if (!sorted)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &t->columns[i];
    qsort(sorted, count, sizeof *sorted, compare_columns);
    for (size_t i = 1; !status && i < count; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            status = hl_table_fault(t, HL_ERR_FORMAT, "columns %zu and %zu have the same name, '%s'; rename one",
                                    (size_t)(sorted[i - 1] - t->columns) + 1, (size_t)(sorted[i] - t->columns) + 1,
                                    hl_text_shown(text, sorted[i]->name, strlen(sorted[i]->name)));
    hl_free(t->ctx, sorted);
    return status;
}

/* ---- lists ---- */

typedef struct list {
    const hl_table *table;
    size_t *index;
    size_t count;
    char *taken;     /* one for each column */
    bool places;     /* numbers are those of the file's columns */
    bool names_only; /* what is no name is no number either */
    size_t absent;
    char names[192]; /* of those that are not there */
    hl_text missing;
} list;

/* A whole number at text[0..bytes) and nothing else; 0 if it is not one or is too large. */
static size_t take_number(const char *text, size_t bytes)
{
    size_t number = 0;

    for (size_t i = 0; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9' || number > HL_TABLE_MAX_COLUMNS)
            return 0;
        number = number * 10 + (size_t)(text[i] - '0');
    }
    return number;
}

/* "t, x, y": as many names as a message has room for. */
static void list_names(const hl_table *t, char *out, size_t size)
{
    hl_text text = hl_text_start(out, size);

    for (size_t i = 0; i < t->column_count && !text.full; i++) {
        char name[HL_TABLE_SHOWN];
        const char *full = t->columns[i].name;

        hl_text_list(&text, hl_text_shown(name, full, strlen(full)));
    }
}

static hl_status not_there(const list *l)
{
    char names[192];
    const hl_table *t = l->table;

    list_names(t, names, sizeof names);
    return hl_fail(t->ctx, HL_ERR_INVALID, "%s: there %s %s; the file has %zu: %s", hl_path_shown(t->source.path),
                   l->absent > 1 ? "are no columns" : "is no column", l->names, t->column_count, names);
}

static hl_status take_column(list *l, size_t column)
{
    const char *name = l->table->columns[column].name;
    char shown[HL_TABLE_SHOWN];

    if (l->taken[column])
        return hl_fail(l->table->ctx, HL_ERR_INVALID, "%s: column '%s' is listed twice",
                       hl_path_shown(l->table->source.path), hl_text_shown(shown, name, strlen(name)));
    l->taken[column] = 1;
    l->index[l->count++] = column;
    return HL_OK;
}

/* The column of a number from 1; column_count if it is not there. */
static size_t numbered(const list *l, size_t number)
{
    const hl_table *t = l->table;
    size_t i = l->places ? 0 : number - 1;

    while (l->places && i < t->column_count && t->columns[i].place != number - 1)
        i++;
    return i < t->column_count ? i : t->column_count;
}

/* Note an entry that is not there. */
static void miss(list *l, const char *text, size_t bytes)
{
    char shown[HL_TABLE_SHOWN], quoted[HL_TABLE_SHOWN + 2];

    snprintf(quoted, sizeof quoted, "'%s'", hl_text_shown(shown, text, bytes));
    hl_text_list(&l->missing, quoted);
    l->absent++;
}

/* One entry: a name, a number, or a range. */
static hl_status take_entry(list *l, const char *text, size_t bytes)
{
    const hl_table *t = l->table;
    const char *dash = memchr(text, '-', bytes);
    size_t first, last;
    hl_status status = HL_OK;

    for (size_t i = 0; i < t->column_count; i++)
        if (strlen(t->columns[i].name) == bytes && memcmp(t->columns[i].name, text, bytes) == 0)
            return take_column(l, i);
    first = last = l->names_only ? 0 : take_number(text, bytes);
    if (dash && !l->names_only) {
        first = take_number(text, (size_t)(dash - text));
        last = take_number(dash + 1, bytes - (size_t)(dash - text) - 1);
    }
    if (first == 0 || first > last || (!l->places && last > t->column_count)) {
        miss(l, text, bytes);
        return HL_OK;
    }
    for (size_t i = first; !status && i <= last; i++) {
        size_t column = numbered(l, i);

        if (column == t->column_count) {
            miss(l, text, bytes);
            return HL_OK;
        }
        status = take_column(l, column);
    }
    return status;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static hl_status take_list(list *l, const char *text)
{
    for (;;) {
        const char *end = text + strcspn(text, ","), *stop = end;
        hl_status status;

        while (text < stop && is_blank(*text))
            text++;
        while (stop > text && is_blank(stop[-1]))
            stop--;
        status = take_entry(l, text, (size_t)(stop - text));
        if (status || !*end)
            return status ? status : l->absent ? not_there(l) : HL_OK;
        text = end + 1;
    }
}

static hl_status find_columns(const hl_table *table, const char *text, bool places, bool names_only, size_t *index,
                              size_t *count)
{
    list l = { .table = table,
               .index = index,
               .places = places,
               .names_only = names_only,
               .taken = hl_calloc(table->ctx, table->column_count, 1) };
    hl_status status;

    *count = 0;
    if (!l.taken)
        return HL_ERR_NOMEM;
    l.missing = hl_text_start(l.names, sizeof l.names);
    status = take_list(&l, text);
    hl_free(table->ctx, l.taken);
    if (!status)
        *count = l.count;
    return status;
}

hl_status hl_table_find(const hl_table *table, const char *text, size_t *index, size_t *count)
{
    return find_columns(table, text, false, false, index, count);
}

hl_status hl_table_find_in_file(const hl_table *table, const char *text, size_t *index, size_t *count)
{
    return find_columns(table, text, true, false, index, count);
}

/* The options' names are those of all columns, by place. */
static hl_status check_count(const hl_table *t)
{
    size_t count = 1;

    for (const char *c = t->options.columns; *c; c++)
        count += *c == ',';
    if (count == t->column_count)
        return HL_OK;
    return hl_fail(t->ctx, HL_ERR_INVALID, "%s: the file has %zu columns without names, but %zu are needed",
                   hl_path_shown(t->source.path), t->column_count, count);
}

static bool holds(const size_t *columns, size_t count, size_t column)
{
    for (size_t i = 0; i < count; i++)
        if (columns[i] == column)
            return true;
    return false;
}

/* Which columns of the file the options ask for: `chosen` are *count numbers; `found` has room for one list. */
static hl_status choose_columns(const hl_table *t, size_t *chosen, size_t *found, size_t *count)
{
    const hl_table_options *o = &t->options;
    size_t listed = t->column_count, n = 0;
    hl_status status = o->columns ? find_columns(t, o->columns, false, o->names != 0, chosen, &listed) : HL_OK;

    for (size_t i = 0; !o->columns && i < listed; i++)
        chosen[i] = i;
    if (!status && o->exclude)
        status = hl_table_find(t, o->exclude, found, &n);
    *count = 0;
    for (size_t i = 0; !status && i < listed; i++)
        if (!holds(found, n, chosen[i]))
            chosen[(*count)++] = chosen[i];
    n = 0;
    if (!status && o->extra)
        status = hl_table_find(t, o->extra, found, &n);
    for (size_t i = 0; i < n; i++)
        if (!holds(chosen, *count, found[i]))
            chosen[(*count)++] = found[i];
    n = 0;
    if (!status && o->exclude && o->extra)
        status = hl_table_find(t, o->exclude, found, &n);
    for (size_t i = 0; i < n; i++)
        if (holds(chosen, *count, found[i]))
            return hl_fail(t->ctx, HL_ERR_INVALID, "%s: column '%s' is both selected and excluded",
                           hl_path_shown(t->source.path), t->columns[found[i]].name);
    return status;
}

hl_status hl_table_select(hl_table *t)
{
    size_t *index, *found, count = 0;
    hl_column *chosen;
    hl_status status = HL_ERR_NOMEM;

    if (!t->options.columns && !t->options.exclude)
        return HL_OK;
    if (t->options.names && !t->named)
        return check_count(t);
    index = hl_calloc(t->ctx, t->column_count, sizeof *index);
    found = hl_calloc(t->ctx, t->column_count, sizeof *found);
    chosen = hl_calloc(t->ctx, t->column_count, sizeof *chosen);
    if (index && found && chosen)
        status = choose_columns(t, index, found, &count);
    if (!status && count == 0)
        status = hl_table_fault(t, HL_ERR_INVALID, "all columns are excluded");
    if (!status) {
        for (size_t i = 0; i < count; i++)
            chosen[i] = t->columns[index[i]];
        memcpy(t->columns, chosen, count * sizeof *chosen);
        t->column_count = count;
    }
    hl_free(t->ctx, index);
    hl_free(t->ctx, found);
    hl_free(t->ctx, chosen);
    return status;
}
