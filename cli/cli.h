/* cli.h - what the commands of the program hollow share: tables that fit a model. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "program/program.h"

extern const cli_command cli_calibrate, cli_fit, cli_info, cli_logp, cli_report, cli_sample, cli_sde, cli_vae;

/* ---- data (data.c) ---- */

/* Columns of texts, which a model sees as columns of 0 and 1. */
typedef struct cli_categories {
    size_t count;
    const hl_category *list;
} cli_categories;
/* Open a table of which only these columns are needed, so that others may hold text; what it lacks is named. With `others` those are
 * opened, too, as texts where they hold text. Columns that the options choose are opened instead. Columns of 0 and 1 are made of those of the categories, which may be NULL. */
hl_status cli_open_columns(hl_context *ctx, const char *path, const hl_table_options *options, size_t count,
                           const hl_density_column *columns, const cli_categories *categories, bool others,
                           hl_table **table);
/* The same for the columns of a model from `first` on: its dimension for the context alone. */
hl_status cli_open_data(hl_context *ctx, const char *path, const hl_table_options *options, const hl_density *model,
                        size_t first, bool others, hl_table **table);
/* Where the table has these columns: by name; by place if the table has no names of its own and just as many columns. Returns
 * CLI_OK or an exit status, having said what does not fit. */
int cli_find_columns(const cli_command *command, const char *path, const hl_table *table, size_t count,
                     const hl_density_column *columns, size_t *index);
/* The same for the columns of a model: x to x_index (dim), the context's to c_index; for the context alone, x_index is NULL. */
int cli_match_columns(const cli_command *command, const char *path, const hl_table *table, const hl_density *model,
                      size_t *x_index, size_t *c_index);
/* Is a row outside of the model's bounds? Then `what` says which column, as "below its bound 0"; *column is its number, those of the context
 * behind those of x. */
bool cli_outside(const hl_density *model, const double *x, const double *context, size_t *column, char *what,
                 size_t size);

/* As cli_fail_library, for a model that could not be loaded, where `data` is the argument after it. */
int cli_fail_model(const cli_command *command, const hl_context *ctx, hl_status status, const char *data);

/* ---- hollow info (info.c) ---- */

/* Begin and end what it prints of a model: JSON, or the same as text. */
cli_json cli_info_open(const char *path, const char *what, long long bytes);
void cli_info_close(cli_json *json);

#endif
