/* cli.h - what the commands of the program hollow share: tables that fit a model, and the files of a training. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "program/program.h"

extern const cli_command cli_calibrate, cli_fit, cli_info, cli_logp, cli_report, cli_sample, cli_sde, cli_vae;

/* ---- data (data.c) ---- */

/* Open a table of which only these columns are needed, so that others may hold text; what it lacks is named. Columns that the
 * options choose are opened instead. */
hl_status cli_open_columns(hl_context *ctx, const char *path, const hl_table_options *options, size_t count,
                           const hl_density_column *columns, hl_table **table);
/* Where the table has these columns: by name; by place if the table has no names of its own and just as many columns. Returns
 * CLI_OK or an exit status, having said what does not fit. */
int cli_find_columns(const cli_command *command, const char *path, const hl_table *table, size_t count,
                     const hl_density_column *columns, size_t *index);
/* The same for the columns of a model: x to x_index (dim), the context's to c_index; for the context alone, x_index is NULL. */
int cli_match_columns(const cli_command *command, const char *path, const hl_table *table, const hl_density *model,
                      size_t *x_index, size_t *c_index);
/* All columns of a model, to be freed; or NULL. */
hl_density_column *cli_columns_of(const hl_density *model);

/* Is it a file of this format, such as "hollow-density"? */
bool cli_is_model(const char *path, const char *format);
/* As cli_fail_library, for a model that could not be loaded, where `data` is the argument after it. */
int cli_fail_model(const cli_command *command, const hl_context *ctx, hl_status status, const char *data);

/* ---- hollow info (info.c) ---- */

/* Begin and end what it prints of a model: JSON, or the same as text. */
cli_json cli_info_open(const char *path, const char *what, long long bytes);
void cli_info_close(cli_json *json);

/* ---- training (training.c) ---- */

/* The files of a training; NULL: none. */
typedef struct cli_outputs {
    const char *data, *more_data; /* what is read */
    const char *model, *log, *plot;
} cli_outputs;
/* Can the model, its checkpoint, whose name it makes (to be freed), log and pictures be written, without hurting the data or
 * another run? Locks the model until cli_unlock. CLI_OK or an exit status, having said what is wrong. */
int cli_check_outputs(const cli_command *command, hl_context *ctx, const cli_outputs *outputs, char **checkpoint);
void cli_unlock(void);
void cli_say_unsaved(const char *reason, void *user); /* hl_job.unsaved: warns */
/* Is there a checkpoint to go on from? If not, and no model either, *resume becomes false, having said so; a model without a
 * checkpoint is finished, which is said, and CLI_WRONG. */
int cli_check_resume(const cli_command *command, const char *model, const char *checkpoint, bool *resume);
/* Open a log, to be gone on with if `resume`; no path is no log. */
int cli_open_log(const cli_command *command, const char *path, bool resume, FILE **log);
/* Close it (may be NULL); returns `result`, or CLI_WRONG, having said so, if anything of the log was lost. */
int cli_close_log(const cli_command *command, const char *path, FILE *log, int result);
/* Lines after those of `iteration`, of a run that went on after its last checkpoint, will be written again. */
void cli_cut_log(FILE *log, size_t iteration);

#endif
