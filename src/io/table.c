/* table.c - opening tables, and reading rows from wherever they are. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/ranks.h"
#include "io/table.h"

enum {
    SCRATCH = 1 << 15,     /* bytes read from a file at a time, if a row is not larger */
    CHECK_VALUES = 1 << 14 /* values looked at together */
};

hl_status hl_table_fault(hl_table *t, hl_status status, const char *format, ...)
{
    char text[384];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return hl_fail(t->ctx, status, "%s: %s", hl_path_shown(t->source.path), text);
}

/* ---- places ---- */

/* The row of the arrays that row `row` of the table is: behind as many left out as there are before it. */
static size_t array_row(const hl_table *t, size_t row)
{
    size_t low = 0, high = t->gone ? t->dropped : 0;

    while (low < high) { /* gone[i] - i rows of the table come before gone[i] */
        size_t middle = low + (high - low) / 2;

        if (t->gone[middle] - middle <= row)
            low = middle + 1;
        else
            high = middle;
    }
    return row + low;
}

size_t hl_table_line(const hl_table *table, size_t row)
{
    size_t low = 0, high = table->mark_count;

    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;

        if (table->marks[middle].row <= row)
            low = middle;
        else
            high = middle;
    }
    return table->mark_count ? table->marks[low].line + (row - table->marks[low].row) : 0;
}

int hl_table_place(const hl_table *table, size_t row, size_t column, char *buffer, size_t size)
{
    const char *path = hl_path_shown(table->source.path);
    size_t line = hl_table_line(table, row);
    char name[HL_TABLE_SHOWN], of_column[HL_TABLE_SHOWN + 16] = "";

    if (column < table->column_count) {
        const char *full = table->columns[column].name;

        snprintf(of_column, sizeof of_column, "%s column '%s'", line ? ":" : ",",
                 hl_text_shown(name, full, strlen(full)));
    }
    if (line)
        return snprintf(buffer, size, "%s:%zu%s", path, line, of_column);
    return snprintf(buffer, size, "%s: row %zu%s", path, array_row(table, row) + 1, of_column);
}

size_t hl_table_rows(const hl_table *table)
{
    return table->rows;
}

size_t hl_table_columns(const hl_table *table)
{
    return table->column_count;
}

size_t hl_table_dropped(const hl_table *table)
{
    return table->dropped;
}

hl_column_kind hl_table_kind(const hl_table *table, size_t column)
{
    return table && column < table->column_count ? table->columns[column].kind : HL_COLUMN_NUMBERS;
}

const char *hl_table_label(const hl_table *table, size_t number)
{
    return table ? hl_labels_text(&table->labels, number) : NULL;
}

const char *hl_table_name(const hl_table *table, size_t column)
{
    return column < table->column_count ? table->columns[column].name : NULL;
}

int hl_table_named(const hl_table *table)
{
    return table->named;
}

/* ---- reading rows ---- */

/* What is asked for: `count` columns of the table. */
typedef struct wanted {
    size_t count;
    const size_t *index; /* NULL: all, in order */
} wanted;

static const hl_column *wanted_column(const hl_table *t, const wanted *w, size_t i)
{
    return &t->columns[w->index ? w->index[i] : i];
}

static void read_blocks(const hl_table *t, size_t first, size_t count, const wanted *w, double *out)
{
    bool whole = !w->index && t->column_count == t->block_columns;

    for (size_t i = 0; whole && i < w->count; i++)
        whole = t->columns[i].index == i;
    for (size_t row = first; row < first + count; row++, out += w->count) {
        const double *from = t->blocks[row / t->block_rows] + row % t->block_rows * t->block_columns;

        if (whole)
            memcpy(out, from, w->count * sizeof *out);
        else
            for (size_t i = 0; i < w->count; i++)
                out[i] = from[wanted_column(t, w, i)->index];
    }
}

static hl_status fetch(hl_table *t, const hl_array *a, size_t offset, size_t bytes, const char **data)
{
    if (a->memory) {
        *data = a->memory + offset;
        return HL_OK;
    }
    *data = t->scratch;
    return hl_source_at(&t->source, a->offset + offset, t->scratch, bytes);
}

/* Rows of an array in C order: many rows at a time come to the scratch, then column by column to their place. */
static hl_status read_by_rows(hl_table *t, size_t array, size_t first, size_t count, const wanted *w, double *out)
{
    const hl_array *a = &t->arrays[array];
    size_t row_bytes = a->columns * a->size, most = t->scratch_bytes / row_bytes;
    bool whole = t->array_count == 1 && !w->index && w->count == a->columns;

    for (size_t i = 0; whole && i < w->count; i++)
        whole = t->columns[i].index == i;
    for (size_t n; count > 0; first += n, count -= n, out += n * w->count) {
        const char *data;

        n = count < most ? count : most;
        if (fetch(t, a, first * row_bytes, n * row_bytes, &data))
            return HL_ERR_IO;
        if (whole) {
            hl_array_convert(a, data, a->size, n * a->columns, out, 1);
            continue;
        }
        for (size_t i = 0; i < w->count; i++) {
            const hl_column *column = wanted_column(t, w, i);

            if (column->array == array)
                hl_array_convert(a, data + column->index * a->size, row_bytes, n, out + i, w->count);
        }
    }
    return HL_OK;
}

/* The same in Fortran order: one column after another. */
static hl_status read_by_columns(hl_table *t, size_t array, size_t first, size_t count, const wanted *w, double *out)
{
    const hl_array *a = &t->arrays[array];
    size_t most = t->scratch_bytes / a->size;

    for (size_t i = 0; i < w->count; i++) {
        const hl_column *column = wanted_column(t, w, i);
        size_t n;

        for (size_t done = 0; column->array == array && done < count; done += n) {
            const char *data;

            n = count - done < most ? count - done : most;
            if (fetch(t, a, (column->index * a->rows + first + done) * a->size, n * a->size, &data))
                return HL_ERR_IO;
            hl_array_convert(a, data, a->size, n, out + done * w->count + i, w->count);
        }
    }
    return HL_OK;
}

/* Rows of the arrays, those left out included. */
static hl_status read_arrays(hl_table *t, size_t first, size_t count, const wanted *w, double *out)
{
    hl_status status = HL_OK;

    for (size_t i = 0; !status && i < t->array_count; i++)
        status = (t->arrays[i].fortran ? read_by_columns : read_by_rows)(t, i, first, count, w, out);
    return status;
}

/* Numbers of labels become 1 or 0. */
static void compare_labels(const hl_table *t, size_t count, const wanted *w, double *out)
{
    for (size_t i = 0; i < w->count; i++) {
        const hl_column *column = wanted_column(t, w, i);

        for (size_t r = 0; column->indicator && r < count; r++)
            out[r * w->count + i] = out[r * w->count + i] == column->equals;
    }
}

static hl_status read_stored(hl_table *t, size_t first, size_t count, const wanted *w, double *out)
{
    if (first > t->rows || count > t->rows - first)
        return hl_table_fault(t, HL_ERR_INVALID, "rows %zu to %zu were requested, but there are only %zu", first,
                              hl_size_add(first, count), t->rows);
    if (t->blocks) {
        read_blocks(t, first, count, w, out);
        return HL_OK;
    }
    while (count > 0) { /* a stretch without a row left out */
        size_t row = array_row(t, first), low = row - first;
        size_t end = t->gone && low < t->dropped ? t->gone[low] : row + count;
        size_t n = end - row < count ? end - row : count;
        hl_status status = read_arrays(t, row, n, w, out);

        if (status)
            return status;
        first += n;
        count -= n;
        out += n * w->count;
    }
    return HL_OK;
}

static hl_status read_wanted(hl_table *t, size_t first, size_t count, const wanted *w, double *out)
{
    hl_status status = read_stored(t, first, count, w, out);

    if (!status)
        compare_labels(t, count, w, out);
    return status;
}

hl_status hl_table_read_rows(hl_table *table, size_t first, size_t count, double *out)
{
    wanted w = { .count = table->column_count };

    return read_wanted(table, first, count, &w, out);
}

hl_status hl_table_read_columns(hl_table *table, size_t first, size_t count, size_t columns, const size_t *index,
                                double *out)
{
    wanted w = { .count = columns, .index = index };

    for (size_t i = 0; i < columns; i++)
        if (index[i] >= table->column_count)
            return hl_table_fault(table, HL_ERR_INVALID, "column %zu was requested, but there are only %zu", index[i],
                                  table->column_count);
    return columns ? read_wanted(table, first, count, &w, out) : HL_OK;
}

hl_status hl_table_gather(hl_table *table, size_t count, const size_t *row, size_t columns, const size_t *index,
                          double *out)
{
    hl_status status = HL_OK;

    for (size_t i = 0, n; i < count && status == HL_OK; i += n) {
        for (n = 1; i + n < count && row[i + n] == row[i] + n;)
            n++;
        status = hl_table_read_columns(table, row[i], n, columns, index, out + i * columns);
    }
    return status;
}

/* ---- opening ---- */

hl_status hl_table_add_array(hl_table *t, const hl_array *array, const char *name)
{
    size_t index = t->array_count, row_bytes = hl_size_mul(array->columns, array->size);
    hl_status status;

    if (hl_grow(t->ctx, (void **)&t->arrays, &t->array_capacity, index + 1, sizeof *t->arrays)) {
        hl_free(t->ctx, array->memory);
        return HL_ERR_NOMEM;
    }
    t->arrays[t->array_count++] = *array;
    if (hl_size_add(t->column_count, array->columns) > HL_TABLE_MAX_COLUMNS)
        return hl_table_fault(t, HL_ERR_UNSUPPORTED, "more than %d columns", HL_TABLE_MAX_COLUMNS);
    status = hl_grow(t->ctx, &t->scratch, &t->scratch_bytes, row_bytes > SCRATCH ? row_bytes : SCRATCH, 1);
    for (size_t i = 0; !status && i < array->columns; i++) {
        char numbered[HL_TABLE_SHOWN + 24];

        if (!name) {
            status = hl_table_add_column(t, NULL, index, i);
            continue;
        }
        if (array->rank == 1)
            snprintf(numbered, sizeof numbered, "%.64s", name);
        else
            snprintf(numbered, sizeof numbered, "%.64s%zu", name, i + 1);
        status = hl_table_add_column(t, numbered, index, i);
    }
    t->rows = array->rows;
    return status;
}

/* Leave out a row of the arrays, or refuse it. values are those of its columns. */
static hl_status bad_row(hl_table *t, size_t row, const double *values)
{
    char place[256];
    size_t column = 0;

    while (isfinite(values[column]))
        column++;
    if (!t->options.drop_missing) {
        hl_table_place(t, row, column, place, sizeof place);
        return hl_fail(t->ctx, HL_ERR_NOT_FINITE,
                       "%s: %s is not a finite number; correct it, or skip such rows with --drop-missing", place,
                       isnan(values[column]) ? "nan" : "an infinite value");
    }
    if (hl_grow(t->ctx, (void **)&t->gone, &t->gone_capacity, t->dropped + 1, sizeof *t->gone))
        return HL_ERR_NOMEM;
    t->gone[t->dropped] = row;
    t->dropped++;
    return HL_OK;
}

static bool all_finite(const double *values, size_t count)
{
    double sum = 0; /* of zeros, but for infinities and NaN */

    for (size_t i = 0; i < count; i++)
        sum += values[i] * 0;
    return sum == 0;
}

/* Look at every number of the arrays, or of this rank's part of them. Rows left out are noted only when all are seen, as they change the
 * numbering. */
static hl_status check_arrays(hl_table *t)
{
    size_t columns = t->column_count, step = CHECK_VALUES / columns ? CHECK_VALUES / columns : 1;
    wanted w = { .count = columns };
    double *values = hl_alloc(t->ctx, step * columns * sizeof *values);
    hl_status status = values ? HL_OK : HL_ERR_NOMEM;
    size_t start = 0, rows = t->rows;
    bool floats = false; /* integers are always finite */

    if (t->options.shared && !t->options.drop_missing)
        hl_ranks_part(t->ctx, t->rows, &start, &rows);

    for (size_t i = 0; i < t->array_count; i++)
        floats |= t->arrays[i].kind == 'f';
    floats = floats && (!t->options.unchecked || t->options.drop_missing);
    for (size_t first = start; floats && !status && first < rows; first += step) {
        size_t n = rows - first < step ? rows - first : step;

        status = read_arrays(t, first, n, &w, values);
        if (status || all_finite(values, n * columns))
            continue;
        for (size_t i = 0; !status && i < n; i++)
            if (!all_finite(values + i * columns, columns))
                status = bad_row(t, first + i, values + i * columns);
    }
    t->rows -= t->dropped;
    hl_free(t->ctx, values);
    return status;
}

/* Compressed text, other characters than UTF-8 and model files would only give a strange first line. */
static hl_status check_text(hl_table *t, const char *head, size_t bytes)
{
    if (bytes >= 2 && memcmp(head, "\x1F\x8B", 2) == 0)
        return hl_table_fault(t, HL_ERR_UNSUPPORTED, "compressed by gzip; decompress it first (gzip -dc)");
    if (bytes >= 2 && (memcmp(head, "\xFF\xFE", 2) == 0 || memcmp(head, "\xFE\xFF", 2) == 0))
        return hl_table_fault(t, HL_ERR_UNSUPPORTED, "the text is UTF-16; save it as UTF-8");
    /* safetensors begin with the length of their header, eight bytes from the lowest */
    if (bytes == 8 && memcmp(head, "\0\0\0", 3) != 0 && memcmp(head + 3, "\0\0\0\0\0", 5) == 0)
        return hl_table_fault(t, HL_ERR_FORMAT, "a model or checkpoint of hollow (safetensors), not a table");
    return HL_OK;
}

static hl_status read_contents(hl_table *t)
{
    char head[8] = "";
    size_t bytes = 0;
    hl_status status = hl_source_peek(&t->source, head, &bytes);

    if (status)
        return status;
    if (bytes >= 6 && memcmp(head, "\x93NUMPY", 6) == 0)
        status = hl_table_read_npy(t);
    else if (bytes >= 4 && (memcmp(head, "PK\3\4", 4) == 0 || memcmp(head, "PK\5\6", 4) == 0))
        status = hl_table_read_npz(t);
    else if (!(status = check_text(t, head, bytes)))
        return hl_table_read_csv(t);
    if (!status)
        status = hl_table_check_names(t);
    if (!status)
        status = hl_table_select(t);
    return status ? status : check_arrays(t);
}

static hl_status check_rows(hl_table *t)
{
    size_t least = t->options.min_rows ? t->options.min_rows : 1;

    if (t->rows == 0 && t->dropped)
        return hl_table_fault(t, HL_ERR_FORMAT, "no rows are left: all %zu have a missing value", t->dropped);
    if (t->rows == 0)
        return hl_table_fault(t, HL_ERR_FORMAT, "the table has no rows");
    if (t->rows < least)
        return hl_table_fault(t, HL_ERR_FORMAT, "the table has only %zu row%s; at least %zu are needed", t->rows,
                              t->rows > 1 ? "s" : "", least);
    return HL_OK;
}

/* "data.npz:train" is an array of an archive. The path is copied without it, and the array follows the copy's NUL. */
static hl_status split_path(hl_context *ctx, const char *path, hl_table_options *options, char **copy)
{
    const char *colon = strstr(path, ".npz:");

    *copy = hl_alloc(ctx, strlen(path) + 1);
    if (!*copy)
        return HL_ERR_NOMEM;
    strcpy(*copy, path);
    if (colon && !options->array) {
        (*copy)[colon + 4 - path] = '\0';
        options->array = *copy + (colon + 5 - path);
    }
    return HL_OK;
}

hl_status hl_table_open(hl_context *context, const char *path, const hl_table_options *options, hl_table **table)
{
    hl_table *t;
    char *copy = NULL;
    hl_status status;

    *table = NULL;
    if (!path)
        return hl_fail(context, HL_ERR_INVALID, "a table needs a path");
    t = hl_calloc(context, 1, sizeof *t);
    if (!t)
        return HL_ERR_NOMEM;
    t->ctx = context;
    t->source.fd = -1;
    hl_arena_init(&t->names, context);
    hl_labels_init(&t->labels, context);
    if (options)
        t->options = *options;
    status = split_path(context, path, &t->options, &copy);
    if (!status)
        status = hl_source_open(context, copy, &t->source);
    if (!status)
        status = read_contents(t);
    if (!status)
        status = check_rows(t);
    if (t->options.shared)
        status = hl_ranks_agree(context, status);
    t->options = (hl_table_options){ 0 };
    hl_free(context, copy);
    if (status)
        hl_table_free(t);
    else
        *table = t;
    return status;
}

void hl_table_free(hl_table *table)
{
    hl_table *t = table;

    if (!t)
        return;
    for (size_t i = 0; i < t->block_count; i++)
        hl_free(t->ctx, t->blocks[i]);
    for (size_t i = 0; i < t->array_count; i++)
        hl_free(t->ctx, t->arrays[i].memory);
    if (t->spilling)
        close(t->spill);
    hl_free(t->ctx, t->blocks);
    hl_free(t->ctx, t->arrays);
    hl_free(t->ctx, t->marks);
    hl_free(t->ctx, t->gone);
    hl_free(t->ctx, t->scratch);
    hl_free(t->ctx, t->columns);
    hl_arena_free(&t->names);
    hl_labels_free(&t->labels);
    hl_source_close(&t->source);
    hl_free(t->ctx, t);
}
