/* categories.c - columns of texts as columns of 0 and 1.
 *
 * Of the categories of a column all but the first get a column "name=category", which is 1 in the rows that have it: with a column for each, they would have
 * the sum 1 in every row and be dependent. These columns have no values of their own: a label's number is compared when it is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/table.h"

enum { CHUNK = 4096 };

static hl_status check_labels(hl_table *t, size_t column)
{
    char name[HL_TABLE_SHOWN];

    if (column >= t->column_count)
        return hl_table_fault(t, HL_ERR_INVALID, "column %zu was requested, but there are only %zu", column,
                              t->column_count);
    if (t->columns[column].kind == HL_COLUMN_LABELS && !t->columns[column].indicator)
        return HL_OK;
    return hl_table_fault(t, HL_ERR_INVALID, "column '%s' contains numbers, not texts",
                          hl_text_shown(name, t->columns[column].name, strlen(t->columns[column].name)));
}

/* To first[k] the first row of the column that has label k, plus 1; 0: none has. */
static hl_status find_labels(hl_table *t, size_t column, size_t *first)
{
    double values[CHUNK];
    hl_status status = HL_OK;

    for (size_t at = 0; at < t->rows && !status; at += CHUNK) {
        size_t n = t->rows - at < CHUNK ? t->rows - at : CHUNK;

        status = hl_table_read_columns(t, at, n, 1, &column, values);
        for (size_t r = 0; r < n && !status; r++)
            if (!first[(size_t)values[r]])
                first[(size_t)values[r]] = at + r + 1;
    }
    return status;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

hl_status hl_table_categories(hl_table *t, size_t column, const char **labels, size_t *count)
{
    hl_status status = check_labels(t, column);
    size_t *first = status ? NULL : hl_calloc(t->ctx, t->labels.count, sizeof *first);
    char name[HL_TABLE_SHOWN];

    *count = 0;
    if (status || !first)
        return status ? status : HL_ERR_NOMEM;
    status = find_labels(t, column, first);
    for (size_t k = 0; k < t->labels.count && !status; k++)
        if (first[k] && *count == HL_TABLE_CATEGORIES)
            status = hl_table_fault(
                t, HL_ERR_INVALID, "column '%s' has more than %d distinct texts, too many for a categorical column",
                hl_text_shown(name, t->columns[column].name, strlen(t->columns[column].name)), HL_TABLE_CATEGORIES);
        else if (first[k])
            labels[(*count)++] = hl_labels_text(&t->labels, k);
    if (!status)
        qsort(labels, *count, sizeof *labels, by_text);
    hl_free(t->ctx, first);
    return status;
}

/* A row has a text that is not among the categories. */
static hl_status unknown(hl_table *t, size_t column, size_t row, size_t label, size_t count, const char *const *labels)
{
    char place[400], text[HL_TABLE_SHOWN], known[200], shown[HL_TABLE_SHOWN];
    const char *found = hl_labels_text(&t->labels, label);
    hl_text list = hl_text_start(known, sizeof known);

    for (size_t k = 0; k < count && !list.full; k++)
        hl_text_list(&list, hl_text_shown(shown, labels[k], strlen(labels[k])));
    hl_table_place(t, row, column, place, sizeof place);
    return hl_fail(t->ctx, HL_ERR_INVALID, "%s: '%s' is not a category of the model; categories are: %s", place,
                   hl_text_shown(text, found, strlen(found)), known);
}

hl_status hl_table_add_indicators(hl_table *t, size_t column, size_t count, const char *const *labels)
{
    hl_status status = check_labels(t, column);
    size_t *first = status ? NULL : hl_calloc(t->ctx, t->labels.count, sizeof *first);
    size_t row = 0, other = 0;

    if (status || !first)
        return status ? status : HL_ERR_NOMEM;
    status = find_labels(t, column, first);
    for (size_t c = 0; c < count && !status; c++) {
        double number = -1;

        for (size_t k = 0; k < t->labels.count; k++)
            if (strcmp(hl_labels_text(&t->labels, k), labels[c]) == 0) {
                number = (double)k;
                first[k] = 0;
            }
        if (c == 0)
            continue;
        size_t size = strlen(t->columns[column].name) + strlen(labels[c]) + 2;
        char *name = hl_alloc(t->ctx, size);
        bool named = t->named;

        if (!name) {
            status = HL_ERR_NOMEM;
            break;
        }
        snprintf(name, size, "%s=%s", t->columns[column].name, labels[c]);
        status = hl_table_add_column(t, name, t->columns[column].array, t->columns[column].index);
        t->named = named;
        hl_free(t->ctx, name);
        if (!status) {
            t->columns[t->column_count - 1].indicator = true;
            t->columns[t->column_count - 1].equals = number;
        }
    }
    for (size_t k = 0; k < t->labels.count; k++) /* the first of the rows with others */
        if (first[k] && (!row || first[k] < row)) {
            row = first[k];
            other = k;
        }
    if (!status && row)
        status = unknown(t, column, row - 1, other, count, labels);
    hl_free(t->ctx, first);
    return status;
}
