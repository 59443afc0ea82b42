/* model_file.c - saving and loading models of all kinds, and the entries of their metadata. */
#include "nn/model_file.h"

#include <stdio.h>
#include <string.h>

#include "io/file.h"

/* ---- files and memory ---- */

/* The model as a table of tensors, which borrows from it; the caller frees it, also after a failure. */
static hl_status gather(const hl_model_kind *kind, hl_context *ctx, const void *model, hl_tensors **t)
{
    hl_status status = hl_tensors_create(ctx, t);
    return status == HL_OK ? kind->gather(model, *t) : status;
}

hl_status hl_model_save(const hl_model_kind *kind, hl_context *ctx, const void *model, const char *path)
{
    if (!path)
        return hl_fail(ctx, HL_ERR_INVALID, "%s_save: the path is NULL", kind->type);
    hl_tensors *t = NULL;
    hl_status status = gather(kind, ctx, model, &t);
    if (status == HL_OK)
        status = hl_tensors_write(t, path);
    hl_tensors_free(t);
    return status;
}

hl_status hl_model_write(const hl_model_kind *kind, hl_context *ctx, const void *model, void *bytes, size_t capacity,
                         size_t *size)
{
    if (!size)
        return hl_fail(ctx, HL_ERR_INVALID, "%s_write: the size is NULL", kind->type);
    hl_tensors *t = NULL;
    hl_status status = gather(kind, ctx, model, &t);
    if (status == HL_OK)
        status = hl_tensors_write_memory(t, bytes, capacity, size);
    hl_tensors_free(t);
    return status;
}

/* A model of the table t, which is freed. */
static hl_status make(const hl_model_kind *kind, hl_context *ctx, const char *path, hl_tensors *t, void **model)
{
    hl_status status = kind->make(ctx, path, t, model);
    if (status != HL_OK) {
        kind->discard(*model);
        *model = NULL;
    }
    hl_tensors_free(t);
    return status;
}

hl_status hl_model_load(const hl_model_kind *kind, hl_context *ctx, const char *path, void **model)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !model)
        return hl_fail(ctx, HL_ERR_INVALID, "%s_load: the path or the result is NULL", kind->type);
    hl_tensors *t = NULL;
    *model = NULL;
    hl_status status = hl_tensors_read(ctx, path, &t);
    return status == HL_OK ? make(kind, ctx, path, t, model) : status;
}

hl_status hl_model_read(const hl_model_kind *kind, hl_context *ctx, const void *bytes, size_t size, void **model)
{
    char name[40];
    if (!ctx)
        return HL_ERR_INVALID;
    if (!bytes || !model)
        return hl_fail(ctx, HL_ERR_INVALID, "%s_read: the bytes or the result is NULL", kind->type);
    hl_tensors *t = NULL;
    *model = NULL;
    snprintf(name, sizeof name, "the %s in memory", kind->noun);
    hl_status status = hl_tensors_read_memory(ctx, name, bytes, size, &t);
    return status == HL_OK ? make(kind, ctx, name, t, model) : status;
}

/* ---- metadata ---- */

hl_status hl_model_set(hl_context *ctx, hl_tensors *t, const char *key, char *text)
{
    hl_status status = text ? hl_tensors_set_metadata(t, key, text) : HL_ERR_NOMEM;
    hl_free(ctx, text);
    return status;
}

hl_status hl_model_parse(hl_context *ctx, const hl_tensors *t, const char *key, hl_json_document *document)
{
    const char *text = hl_tensors_metadata(t, key);
    hl_status status = text ? hl_json_parse(ctx, text, strlen(text), document) : HL_OK;
    return status == HL_ERR_NOMEM ? status : HL_OK;
}

hl_status hl_model_bad(hl_model_entries *e, const char *what)
{
    if (e->status == HL_OK)
        e->status = hl_fail(e->ctx, HL_ERR_FORMAT, "%s: %s: %s", hl_path_shown(e->path), e->where, what);
    return e->status;
}

/* The entry `key` is not what it should be. */
static void wrong(hl_model_entries *e, const char *key, const char *what)
{
    char text[200];
    snprintf(text, sizeof text, "'%.60s' is missing or not %.100s", key, what);
    hl_model_bad(e, text);
}

int64_t hl_model_integer(hl_model_entries *e, const char *key, int64_t least, int64_t most)
{
    const hl_json *j = hl_json_get(e->object, key);
    char what[80];
    if (hl_json_is_integer(j) && j->integer >= least && j->integer <= most)
        return e->status == HL_OK ? j->integer : 0;
    snprintf(what, sizeof what, "an integer in %lld..%lld", (long long)least, (long long)most);
    wrong(e, key, what);
    return 0;
}

double hl_model_number(hl_model_entries *e, const char *key)
{
    const hl_json *j = hl_json_get(e->object, key);
    if (!hl_json_is_number(j))
        wrong(e, key, "a number");
    return e->status == HL_OK ? j->number : 0;
}

bool hl_model_truth(hl_model_entries *e, const char *key)
{
    const hl_json *j = hl_json_get(e->object, key);
    if (!j || j->kind != HL_JSON_BOOLEAN)
        wrong(e, key, "a truth value");
    return e->status == HL_OK && j->integer;
}

const char *hl_model_text(hl_model_entries *e, const char *key)
{
    const char *text = hl_json_text(hl_json_get(e->object, key));
    if (!text)
        wrong(e, key, "a text");
    return e->status == HL_OK ? text : NULL;
}

void hl_model_sizes(hl_model_entries *e, const char *key, size_t count, int64_t most, size_t *to)
{
    const hl_json *list = hl_json_get(e->object, key), *j = hl_json_is_array(list, count) ? list->first : NULL;
    char what[80];
    snprintf(what, sizeof what, "%zu integers in 0..%lld", count, (long long)most);
    for (size_t i = 0; i < count; i++, j = j ? j->next : NULL) {
        if (!hl_json_is_integer(j) || j->integer < 0 || j->integer > most)
            wrong(e, key, what);
        to[i] = e->status == HL_OK ? (size_t)j->integer : 0;
    }
}
