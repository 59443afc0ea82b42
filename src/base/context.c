/* context.c - the context: allocator, threads, and the last error. */
#include <stdlib.h>

#include "base/base.h"

enum { MAX_THREADS = 256 };

static void *default_alloc(void *user, size_t bytes)
{
    (void)user;
    return malloc(bytes);
}

static void default_release(void *user, void *pointer)
{
    (void)user;
    free(pointer);
}

hl_status hl_context_create(const hl_context_options *options, hl_context **context)
{
    hl_context_options o = { 0 };
    hl_context *ctx;
    hl_status status;

    if (!context)
        return HL_ERR_INVALID;
    *context = NULL;
    if (options)
        o = *options;
    if (o.threads < 0 || o.threads > MAX_THREADS || !o.alloc != !o.release)
        return HL_ERR_INVALID;
    if (!o.threads)
        o.threads = 1;
    if (!o.alloc) {
        o.alloc = default_alloc;
        o.release = default_release;
    }

    ctx = o.alloc(o.user, sizeof *ctx);
    if (!ctx)
        return HL_ERR_NOMEM;
    *ctx = (hl_context){ .failure = { HL_OK, HL_NOWHERE, HL_NOWHERE, HL_NOWHERE, "", 0 },
                         .alloc = o.alloc,
                         .release = o.release,
                         .user = o.user,
                         .stop = o.stop,
                         .stop_user = o.user,
                         .share_all = o.share_all != 0 };
    status = hl_team_create(ctx, o.threads, &ctx->team);
    if (status) {
        hl_context_free(ctx);
        return status;
    }
    *context = ctx;
    return HL_OK;
}

hl_status hl_context_branch(hl_context *parent, int (*stop)(void *user), void *user, hl_context **branch)
{
    hl_context_options o = { .threads = 1, .alloc = parent->alloc, .release = parent->release, .user = parent->user };
    hl_status status = hl_context_create(&o, branch);
    if (status != HL_OK)
        return hl_fail(parent, status, "%s", hl_status_text(status));
    (*branch)->stop = stop;
    (*branch)->stop_user = user;
    return HL_OK;
}

void hl_context_free(hl_context *context)
{
    if (!context)
        return;
    hl_team_free(context, context->team);
    context->release(context->user, context);
}

hl_status hl_check_stop(hl_context *ctx)
{
    return ctx->stop && ctx->stop(ctx->stop_user) ? hl_fail(ctx, HL_STOPPED, "stopped on request") : HL_OK;
}

const char *hl_context_message(const hl_context *context)
{
    return context ? context->message : "";
}

hl_failure hl_context_failure(const hl_context *context)
{
    return context ? context->failure : (hl_failure){ HL_OK, HL_NOWHERE, HL_NOWHERE, HL_NOWHERE, "", 0 };
}

int hl_context_threads(const hl_context *context)
{
    return context ? hl_team_size(context->team) : 0;
}
