/* data.c - tables and models: which columns go where. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

int cli_default_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 256 ? 256 : (int)n;
}

static size_t find(const hl_table *table, const char *name)
{
    for (size_t i = 0; i < hl_table_columns(table); i++)
        if (strcmp(hl_table_name(table, i), name) == 0)
            return i;
    return HL_NO_COLUMN;
}

int cli_match_columns(const cli_command *command, const char *path, const hl_table *table, const hl_density *model,
                      size_t *x_index, size_t *c_index)
{
    size_t dim = hl_density_dim(model), all = dim + hl_density_context(model), columns = hl_table_columns(table);
    bool named = hl_table_named(table);
    if (!named && columns != all)
        return cli_fail(command, CLI_WRONG, "%s: %zu columns, where the model has %zu", path, columns, all);
    for (size_t i = 0; i < all; i++) {
        const char *name = hl_density_get_column(model, i).name;
        size_t at = named ? find(table, name) : i;
        if (at == HL_NO_COLUMN)
            return cli_fail(command, CLI_WRONG, "%s: no column '%s', which the model needs", path, name);
        if (i < dim)
            x_index[i] = at;
        else
            c_index[i - dim] = at;
    }
    return CLI_OK;
}
