/* checkpoint.c - checkpoints of all fits: one tensor of doubles, and the settings of the fit. */
#include <stdio.h>
#include <string.h>

#include "hollow/density.h"
#include "io/file.h"
#include "io/safetensors.h"
#include "learn/checkpoint.h"
#include "learn/fit.h"
#include "nn/model.h"

static const char format_text[] = "hollow-checkpoint 1";

enum { MOST_SHOWN = 80 };

/* A file that is there and is not a checkpoint, such as a user's data, must not be replaced. */
static hl_status check_replaced(hl_context *ctx, const char *path)
{
    hl_file_kind kind = hl_file_identify(path);
    return kind == HL_FILE_NONE || kind == HL_FILE_CHECKPOINT
               ? HL_OK
               : hl_fail(ctx, HL_ERR_IO, "%s exists and is not a checkpoint of hollow; it is not replaced",
                         hl_path_shown(path));
}

hl_status hl_checkpoint_write(hl_context *ctx, const char *settings, const char *path, size_t size, const double *state)
{
    hl_tensors *t = NULL;
    hl_status status = check_replaced(ctx, path);
    if (status == HL_OK)
        status = hl_tensors_create(ctx, &t);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "format", format_text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "settings", settings);
    if (status == HL_OK)
        status = hl_tensors_add(t, "state", HL_F64, 1, &size, state);
    if (status == HL_OK)
        status = hl_tensors_write(t, path);
    hl_tensors_free(t);
    return status;
}

/* Of a name and its value: to the second blank, but no more than can be shown. */
static int setting_length(const char *text)
{
    int length = 0;
    for (int blanks = 0; text[length] && length < MOST_SHOWN; length++)
        if (text[length] == ' ' && ++blanks == 2)
            break;
    return length;
}

/* The first setting in which both texts differ: the name before the word in which they do, and this word. */
static hl_status other_settings(hl_context *ctx, const char *path, const char *before, const char *now)
{
    size_t at = 0, words = 0;
    while (before[at] && before[at] == now[at])
        at++;
    while (at > 0 && (words += before[at - 1] == ' ') < 2)
        at--;
    return hl_fail(ctx, HL_ERR_INVALID,
                   "%s: the checkpoint has other settings or data: it has '%.*s', this run has '%.*s'",
                   hl_path_shown(path), setting_length(before + at), before + at, setting_length(now + at), now + at);
}

static hl_status take_state(hl_context *ctx, const hl_tensors *t, const char *settings, const char *path, size_t size,
                            double *to)
{
    const char *format = hl_tensors_metadata(t, "format"), *before = hl_tensors_metadata(t, "settings");
    const hl_tensor *state = hl_tensors_find(t, "state");
    if (!format || strcmp(format, format_text) != 0 || !before || !state)
        return hl_fail(ctx, HL_ERR_FORMAT, "%s: not a checkpoint of hollow", hl_path_shown(path));
    if (strcmp(before, settings) != 0)
        return other_settings(ctx, path, before, settings);
    if (state->dtype != HL_F64 || state->rank != 1 || state->dims[0] != size)
        return hl_fail(ctx, HL_ERR_FORMAT, "%s: the checkpoint does not match the model", hl_path_shown(path));
    if (!hl_tensors_checked(t)) /* damage would go on training */
        return hl_fail(ctx, HL_ERR_FORMAT, "%s: the checkpoint is damaged: its checksum is missing",
                       hl_path_shown(path));
    memcpy(to, state->data, size * sizeof *to);
    return HL_OK;
}

hl_status hl_checkpoint_read(hl_context *ctx, const char *settings, const char *path, size_t size, double **state)
{
    hl_tensors *t = NULL;
    *state = NULL;
    hl_status status = hl_tensors_read(ctx, path, &t);
    if (status != HL_OK)
        return status;
    *state = hl_calloc(ctx, size, sizeof **state);
    status = *state ? take_state(ctx, t, settings, path, size, *state) : HL_ERR_NOMEM;
    hl_tensors_free(t);
    return status;
}

hl_status hl_checkpoint_settings(hl_context *ctx, const char *path, char **settings)
{
    hl_tensors *t = NULL;
    *settings = NULL;
    hl_status status = hl_tensors_read(ctx, path, &t);
    if (status != HL_OK)
        return status;
    const char *format = hl_tensors_metadata(t, "format"), *text = hl_tensors_metadata(t, "settings");
    if (!format || strcmp(format, format_text) != 0 || !text)
        status = hl_fail(ctx, HL_ERR_FORMAT, "%s: not a checkpoint of hollow", hl_path_shown(path));
    else if (!(*settings = hl_alloc(ctx, strlen(text) + 1)))
        status = HL_ERR_NOMEM;
    else
        strcpy(*settings, text);
    hl_tensors_free(t);
    return status;
}

/* ---- of a flow's fit ---- */

hl_status hl_fit_save(const hl_fit *fit, const char *settings, const char *path)
{
    if (!fit)
        return HL_ERR_INVALID;
    hl_context *ctx = hl_fit_context(fit);
    if (!path || !settings)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_fit_save: the path or the settings are NULL");
    size_t size = hl_fit_state_size(fit);
    double *state = hl_calloc(ctx, size, sizeof *state);
    if (!state)
        return HL_ERR_NOMEM;
    hl_fit_get_state(fit, state);
    hl_status status = hl_checkpoint_write(ctx, settings, path, size, state);
    hl_free(ctx, state);
    return status;
}

hl_status hl_fit_load(hl_fit *fit, const char *settings, const char *path)
{
    if (!fit)
        return HL_ERR_INVALID;
    hl_context *ctx = hl_fit_context(fit);
    if (!path || !settings)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_fit_load: the path or the settings are NULL");
    double *state;
    hl_status status = hl_checkpoint_read(ctx, settings, path, hl_fit_state_size(fit), &state);
    if (status == HL_OK && (status = hl_fit_set_state(fit, state)) != HL_OK)
        status = hl_model_blame(ctx, status, path, "");
    hl_free(ctx, state);
    return status;
}

hl_status hl_checkpoint_tell(hl_context *ctx, const hl_job *job, hl_status status)
{
    if (status != HL_ERR_IO)
        return status;
    if (job && job->unsaved)
        job->unsaved(hl_context_message(ctx), job->user);
    return HL_OK;
}
