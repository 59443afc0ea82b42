/* status.c - texts of status codes and element types, and the message kept on the context. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

const char *hl_status_text(hl_status status)
{
    switch (status) {
#define HL_STATUS_TEXT(name, code, text)                                                                               \
    case name:                                                                                                         \
        return text;
        HL_STATUS_LIST(HL_STATUS_TEXT)
#undef HL_STATUS_TEXT
    }
    return "unknown status";
}

size_t hl_dtype_size(hl_dtype dtype)
{
    switch (dtype) {
    case HL_F32:
        return sizeof(float);
    case HL_F64:
        return sizeof(double);
    }
    return 0;
}

const char *hl_dtype_name(hl_dtype dtype)
{
    switch (dtype) {
    case HL_F32:
        return "f32";
    case HL_F64:
        return "f64";
    }
    return NULL;
}

/* End a text that was cut off with "...", without leaving half of a UTF-8 character before the dots. */
static void mark_truncated(char *text, size_t capacity)
{
    size_t end = capacity - sizeof "...";

    while (end > 0 && ((unsigned char)text[end] & 0xC0) == 0x80)
        end--;
    memcpy(text + end, "...", sizeof "...");
}

/* The message is made aside, as an argument may be the old one. */
static hl_status fail(hl_context *ctx, hl_status status, hl_place at, const char *format, va_list args)
{
    char text[sizeof ctx->message] = "";
    size_t start = 0;
    if (at.node != HL_NOWHERE)
        start = (size_t)snprintf(text, sizeof text, "node %zu: ", at.node);
    else if (at.row != HL_NOWHERE && at.column != HL_NOWHERE)
        start = (size_t)snprintf(text, sizeof text, "row %zu, value %zu: ", at.row, at.column);
    else if (at.row != HL_NOWHERE)
        start = (size_t)snprintf(text, sizeof text, "row %zu: ", at.row);
    int length = vsnprintf(text + start, sizeof text - start, format, args);
    if (length < 0)
        snprintf(text + start, sizeof text - start, "%s", hl_status_text(status));
    else if ((size_t)length >= sizeof text - start)
        mark_truncated(text, sizeof text);
    memcpy(ctx->message, text, strlen(text) + 1);
    ctx->failure = (hl_failure){ status, at.row, at.column, at.node, ctx->message + start, at.validation };
    return status;
}

hl_status hl_fail(hl_context *ctx, hl_status status, const char *format, ...)
{
    va_list args;
    if (!ctx)
        return status;
    va_start(args, format);
    fail(ctx, status, hl_at(HL_NOWHERE, HL_NOWHERE), format, args);
    va_end(args);
    return status;
}

hl_status hl_fail_at(hl_context *ctx, hl_status status, hl_place place, const char *format, ...)
{
    va_list args;
    if (!ctx)
        return status;
    va_start(args, format);
    fail(ctx, status, place, format, args);
    va_end(args);
    return status;
}

hl_status hl_fail_offset(hl_context *ctx, hl_status status, size_t rows)
{
    const hl_failure *f = &ctx->failure;
    hl_place place = { f->row + rows, f->column, HL_NOWHERE, f->validation };
    return f->row == HL_NOWHERE ? status : hl_fail_at(ctx, status, place, "%s", f->what);
}

void hl_failure_keep(const hl_context *ctx, hl_kept_failure *kept)
{
    kept->failure = ctx->failure;
    memcpy(kept->message, ctx->message, sizeof kept->message);
}

void hl_failure_restore(hl_context *ctx, const hl_kept_failure *kept)
{
    ctx->failure = kept->failure;
    memcpy(ctx->message, kept->message, sizeof kept->message);
}

size_t hl_name_index(const char *const *names, const char *name)
{
    size_t i = 0;
    while (names[i] && strcmp(names[i], name) != 0)
        i++;
    return i;
}

const char *hl_name_list(const char *const *names, char *text, size_t size)
{
    hl_text list = hl_text_start(text, size);
    for (size_t i = 0; names[i]; i++)
        hl_text_list(&list, names[i]);
    return text;
}

hl_status hl_fail_unknown(hl_context *ctx, const char *what, const char *name, const char *const *names)
{
    char list[sizeof ctx->message];
    return hl_fail(ctx, HL_ERR_INVALID, "unknown %s '%.60s'; use one of: %s", what, name,
                   hl_name_list(names, list, sizeof list));
}
