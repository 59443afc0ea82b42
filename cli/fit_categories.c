/* fit_categories.c - `hollow fit`: columns of texts in the context. */
#include <stdlib.h>
#include <string.h>

#include "fit.h"

void fit_free_categories(fit_job *j)
{
    for (size_t k = 0; k < j->categories; k++)
        free((void *)j->category[k].labels);
    free(j->category);
    j->category = NULL;
    j->categories = 0;
}

/* The columns of 0 and 1 of one column of texts; the first of them is number *first of the table. */
static int add_category(fit_job *j, size_t column, size_t *first)
{
    const char **labels = calloc(HL_TABLE_CATEGORIES, sizeof *labels);
    hl_category *c = &j->category[j->categories];
    size_t count = 0;
    if (!labels)
        return cli_no_memory(&cli_fit);
    *c = (hl_category){ .name = hl_table_name(j->table, column), .labels = labels };
    j->categories++;
    *first = hl_table_columns(j->table);
    hl_status status = hl_table_categories(j->table, column, labels, &count);
    c->count = count;
    if (status == HL_OK && count < 2)
        return cli_fail(&cli_fit, CLI_WRONG, "%s: column '%s' has the same text in all rows; remove it from --context",
                        j->path, c->name);
    if (status == HL_OK)
        status = hl_table_add_indicators(j->table, column, count, labels);
    return status == HL_OK ? CLI_OK : cli_fail_library(&cli_fit, j->ctx, status);
}

int fit_expand_context(fit_job *j)
{
    size_t room = j->dim + j->context * HL_TABLE_CATEGORIES + j->weights, at = j->dim, texts = 0;
    for (size_t i = 0; i < j->context; i++)
        texts += hl_table_kind(j->table, j->index[j->dim + i]) == HL_COLUMN_LABELS;
    if (!texts)
        return CLI_OK;
    size_t *index = calloc(room, sizeof *index);
    j->category = calloc(texts, sizeof *j->category);
    int result = index && j->category ? CLI_OK : cli_no_memory(&cli_fit);
    if (result == CLI_OK)
        memcpy(index, j->index, j->dim * sizeof *index);
    for (size_t i = 0; i < j->context && result == CLI_OK; i++) {
        size_t column = j->index[j->dim + i], first = 0;
        if (hl_table_kind(j->table, column) != HL_COLUMN_LABELS) {
            index[at++] = column;
            continue;
        }
        result = add_category(j, column, &first);
        for (size_t k = 1; result == CLI_OK && k < j->category[j->categories - 1].count; k++)
            index[at++] = first + k - 1;
    }
    if (result != CLI_OK) {
        free(index);
        return result;
    }
    if (j->weights)
        index[at] = j->index[j->dim + j->context];
    j->context = at - j->dim;
    free(j->index);
    j->index = index;
    return CLI_OK;
}

/* By the names of their columns, as constant columns may have been left out before them. */
hl_status fit_set_categories(const fit_job *j, hl_density *model)
{
    size_t dim = hl_density_dim(model), context = hl_density_context(model);
    for (size_t k = 0; k < j->categories; k++) {
        size_t length = strlen(j->category[k].name), at = 0;
        while (at < context) {
            const char *name = hl_density_get_column(model, dim + at).name;
            if (strncmp(name, j->category[k].name, length) == 0 && name[length] == '=' &&
                strcmp(name + length + 1, j->category[k].labels[1]) == 0)
                break;
            at++;
        }
        j->category[k].column = at;
    }
    return j->categories ? hl_density_set_categories(model, j->categories, j->category) : HL_OK;
}
