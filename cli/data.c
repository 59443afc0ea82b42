/* data.c - tables and models: which columns go where. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

static size_t find(const hl_table *table, const char *name)
{
    for (size_t i = 0; i < hl_table_columns(table); i++)
        if (strcmp(hl_table_name(table, i), name) == 0)
            return i;
    return HL_NO_COLUMN;
}

/* "a,b,c", to be freed; NULL if a name has a comma, or without memory. */
static char *list_columns(size_t count, const hl_density_column *columns)
{
    size_t size = 1, used = 0;
    for (size_t i = 0; i < count; i++) {
        if (strchr(columns[i].name, ','))
            return NULL;
        size += strlen(columns[i].name) + 1;
    }
    char *list = malloc(size);
    for (size_t i = 0; list && i < count; i++)
        used += (size_t)snprintf(list + used, size - used, "%s%s", i ? "," : "", columns[i].name);
    return list;
}

hl_status cli_open_columns(hl_context *ctx, const char *path, const hl_table_options *options, size_t count,
                           const hl_density_column *columns, hl_table **table)
{
    hl_table_options some = *options;
    char *list = options->columns ? NULL : list_columns(count, columns);
    if (list) {
        some.columns = list;
        some.names = 1;
    }
    hl_status status = hl_table_open(ctx, path, &some, table);
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
                        size_t first, hl_table **table)
{
    size_t all = hl_density_dim(model) + hl_density_context(model);
    hl_density_column *columns = columns_of(model);
    hl_status status =
        columns ? cli_open_columns(ctx, path, options, all - first, columns + first, table) : HL_ERR_NOMEM;
    free(columns);
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
        return cli_fail(command, CLI_WRONG, "%s: no column '%s', which the model needs", path, columns[missing].name);
    if (there != count)
        return cli_fail(command, CLI_WRONG, "%s: %zu columns, where the model has %zu", path, there, count);
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

/* The format is the first of the metadata, which come first. */
bool cli_is_model(const char *path, const char *format)
{
    char start[512] = "", quoted[40];
    struct stat st;
    size_t count = 0;
    ssize_t got;
    int file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? open(path, O_RDONLY) : -1; /* fopen may lack memory */
    while (file >= 0 && count < sizeof start - 1 && (got = read(file, start + count, sizeof start - 1 - count)) > 0)
        count += (size_t)got;
    snprintf(quoted, sizeof quoted, "\"%s ", format);
    if (file >= 0)
        close(file);
    for (size_t i = 8; i < count; i++) /* after the header's length */
        if (strncmp(start + i, quoted, strlen(quoted)) == 0)
            return true;
    return false;
}

int cli_fail_model(const cli_command *command, const hl_context *ctx, hl_status status, const char *data)
{
    if (status == HL_ERR_FORMAT && (cli_is_model(data, "hollow-density") || cli_is_model(data, "hollow-sde")))
        return cli_fail(command, CLI_WRONG, "MODEL comes before DATA: %s is a model; usage: hollow %s %s", data,
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
