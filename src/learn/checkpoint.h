/* checkpoint.h - states of fits in files. */
#ifndef HL_CHECKPOINT_H
#define HL_CHECKPOINT_H

#include "base/base.h"
#include "hollow/job.h"

/* Write `size` doubles and the text of the settings that they belong to, atomically. HL_ERR_IO if the file is
 * there and is not a checkpoint. */
hl_status hl_checkpoint_write(hl_context *ctx, const char *settings, const char *path, size_t size,
                              const double *state);
/* Read them back, if settings and size are the same and nothing is damaged. The caller frees *state, on failure as well. */
hl_status hl_checkpoint_read(hl_context *ctx, const char *settings, const char *path, size_t size, double **state);
/* The text of the settings alone. The caller frees *settings. */
hl_status hl_checkpoint_settings(hl_context *ctx, const char *path, char **settings);

/* After a checkpoint on the way: a file that could not be written ends no job, but is told to its caller (hl_job.unsaved). */
hl_status hl_checkpoint_tell(hl_context *ctx, const hl_job *job, hl_status status);

#endif
