/* data.c - tables and models: which columns go where. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

static size_t find(const hl_table *table, const char *name)
{
    for (size_t i = 0; i < hl_table_columns(table); i++)
        if (strcmp(hl_table_name(table, i), name) == 0)
            return i;
    return HL_NO_COLUMN;
}

/* Is it a column of 0 and 1, such as "city=Paris", of this category? */
static bool is_indicator(const hl_category *c, const char *name)
{
    size_t length = strlen(c->name);
    for (size_t k = 1; k < c->count; k++)
        if (strncmp(name, c->name, length) == 0 && name[length] == '=' && strcmp(name + length + 1, c->labels[k]) == 0)
            return true;
    return false;
}

/* Add ",name" to a list that has room for it. */
static void add_name(char *list, const char *name)
{
    if (*list)
        strcat(list, ",");
    strcat(list, name);
}

/* "a,b,c" and, of categories, "city", in one block to be freed, the second `*texts`: columns that the file must have, and those of them that hold texts. NULL if a
 * name has a comma, or without memory. */
static char *list_columns(size_t count, const hl_density_column *columns, const cli_categories *categories,
                          char **texts)
{
    size_t size = 2;
    for (size_t i = 0; i < count; i++) {
        if (strchr(columns[i].name, ','))
            return NULL;
        size += 2 * strlen(columns[i].name) + 2;
    }
    char *list = calloc(2, size);
    if (!list)
        return NULL;
    *texts = list + size;
    for (size_t i = 0; i < count; i++) {
        const hl_category *c = NULL;
        for (size_t k = 0; k < categories->count && !c; k++)
            c = is_indicator(&categories->list[k], columns[i].name) ? &categories->list[k] : NULL;
        if (!c) {
            add_name(list, columns[i].name);
        } else if (strcmp(columns[i].name + strlen(c->name) + 1, c->labels[1]) == 0) { /* once */
            add_name(list, c->name);
            add_name(*texts, c->name);
        }
    }
    return list;
}

hl_status cli_open_columns(hl_context *ctx, const char *path, const hl_table_options *options, size_t count,
                           const hl_density_column *columns, const cli_categories *categories, bool others,
                           hl_table **table)
{
    hl_table_options some = *options;
    const cli_categories none = { 0 };
    categories = categories ? categories : &none;
    char *texts = NULL, *list = list_columns(count, columns, categories, &texts);
    if (list && *texts) {
        some.label_columns = texts;
        some.labels_only = 1;
    }
    if (others)
        some.number_columns = list;
    else if (list && !options->columns) {
        some.columns = list;
        some.names = 1;
    }
    hl_status status = hl_table_open(ctx, path, &some, table);
    for (size_t k = 0; k < categories->count && status == HL_OK; k++) {
        const hl_category *c = &categories->list[k];
        size_t at = find(*table, c->name);
        if (at != HL_NO_COLUMN)
            status = hl_table_add_indicators(*table, at, c->count, c->labels);
    }
    if (status != HL_OK) {
        hl_table_free(*table);
        *table = NULL;
    }
    free(list);
    return status;
}

static hl_density_column *columns_of(const hl_density *model)
{
    size_t all = hl_density_dim(model) + hl_density_context(model);
    hl_density_column *columns = calloc(all, sizeof *columns);
    for (size_t i = 0; columns && i < all; i++)
        columns[i] = hl_density_get_column(model, i);
    return columns;
}

hl_status cli_open_data(hl_context *ctx, const char *path, const hl_table_options *options, const hl_density *model,
                        size_t first, bool others, hl_table **table)
{
    size_t all = hl_density_dim(model) + hl_density_context(model);
    hl_density_column *columns = columns_of(model);
    cli_categories categories = { hl_density_categories(model), NULL };
    hl_category *list = calloc(categories.count + 1, sizeof *list);
    for (size_t k = 0; list && k < categories.count; k++)
        list[k] = hl_density_get_category(model, k);
    categories.list = list;
    hl_status status =
        columns && list ? cli_open_columns(ctx, path, options, all - first, columns + first, &categories, others, table)
                        : HL_ERR_NOMEM;
    free(columns);
    free(list);
    return status;
}

int cli_find_columns(const cli_command *command, const char *path, const hl_table *table, size_t count,
                     const hl_density_column *columns, size_t *index)
{
    size_t there = hl_table_columns(table), missing = count;
    for (size_t i = 0; i < count; i++) {
        index[i] = find(table, columns[i].name);
        if (index[i] == HL_NO_COLUMN && missing == count)
            missing = i;
    }
    if (missing == count)
        return CLI_OK;
    if (hl_table_named(table))
        return cli_fail(command, CLI_WRONG, "%s: column '%s' of the model is missing", path, columns[missing].name);
    if (there != count)
        return cli_fail(command, CLI_WRONG, "%s: %zu columns, but the model has %zu", path, there, count);
    for (size_t i = 0; i < count; i++)
        index[i] = i;
    return CLI_OK;
}

int cli_match_columns(const cli_command *command, const char *path, const hl_table *table, const hl_density *model,
                      size_t *x_index, size_t *c_index)
{
    size_t dim = hl_density_dim(model), all = dim + hl_density_context(model), first = x_index ? 0 : dim;
    hl_density_column *columns = columns_of(model);
    size_t *index = calloc(all, sizeof *index);
    int result = columns && index ? CLI_OK : cli_no_memory(command);
    if (result == CLI_OK)
        result = cli_find_columns(command, path, table, all - first, columns + first, index + first);
    for (size_t i = first; result == CLI_OK && i < all; i++)
        if (i < dim)
            x_index[i] = index[i];
        else
            c_index[i - dim] = index[i];
    free(columns);
    free(index);
    return result;
}

int cli_fail_model(const cli_command *command, const hl_context *ctx, hl_status status, const char *data)
{
    hl_file_kind kind = hl_file_identify(data);
    if (status == HL_ERR_FORMAT && (kind == HL_FILE_DENSITY || kind == HL_FILE_SDE || kind == HL_FILE_VAE))
        return cli_fail(command, CLI_WRONG, "%s is a model: give MODEL before DATA; usage: hollow %s %s", data,
                        command->name, command->arguments);
    return cli_fail_library(command, ctx, status);
}

bool cli_outside(const hl_density *model, const double *x, const double *context, size_t *column, char *what,
                 size_t size)
{
    size_t dim = hl_density_dim(model), all = dim + (context ? hl_density_context(model) : 0);
    for (size_t i = 0; i < all; i++) {
        double value = i < dim ? x[i] : context[i - dim], atom;
        hl_density_range range = hl_density_get_range(model, i);
        if (!(value < range.low || value > range.high) || (hl_density_get_atom(model, i, &atom) && value == atom))
            continue;
        bool low = value < range.low;
        snprintf(what, size, "%g is %s the model's bound %g", value, low ? "below" : "above",
                 low ? range.low : range.high);
        *column = i;
        return true;
    }
    return false;
}
