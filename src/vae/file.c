/* file.c - autoencoders in model files: safetensors, with the specification as JSON in the metadata. A file can name any sizes; they
 * are compared with its tensors before memory is taken. */
#include <stddef.h>
#include <string.h>

#include "io/file.h"
#include "io/json.h"
#include "nn/model.h"
#include "vae/vae.h"

static const char format_text[] = "hollow-vae 1";

/* The entries of a specification beside image and layers. */
static const struct {
    const char *key;
    size_t offset;
} sizes[] = {
    { "dim", offsetof(hl_vae_spec, dim) },         { "latent", offsetof(hl_vae_spec, latent) },
    { "flows", offsetof(hl_vae_spec, flows) },     { "columns", offsetof(hl_vae_spec, columns) },
    { "hidden", offsetof(hl_vae_spec, hidden) },   { "features", offsetof(hl_vae_spec, features) },
    { "width", offsetof(hl_vae_spec, width) },     { "rank", offsetof(hl_vae_spec, rank) },
    { "steps", offsetof(hl_vae_spec, steps) },
}, texts[] = {
    { "likelihood", offsetof(hl_vae_spec, likelihood) }, { "net", offsetof(hl_vae_spec, net) },
    { "posterior", offsetof(hl_vae_spec, posterior) },   { "activation", offsetof(hl_vae_spec, activation) },
    { "trace", offsetof(hl_vae_spec, trace) },
};

enum { SIZES = sizeof sizes / sizeof *sizes, TEXTS = sizeof texts / sizeof *texts };

static size_t *size_at(const hl_vae_spec *s, size_t i)
{
    return (size_t *)((uintptr_t)s + sizes[i].offset);
}

static const char **text_at(const hl_vae_spec *s, size_t i)
{
    return (const char **)((uintptr_t)s + texts[i].offset);
}

/* ---- writing ---- */

static char *architecture_text(const hl_vae *v)
{
    hl_json_writer w = { .ctx = v->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_open(&w, "image", '[');
    for (size_t i = 0; i < 3; i++)
        hl_json_put_integer(&w, NULL, (int64_t)v->spec.image[i]);
    hl_json_close(&w, ']');
    for (size_t i = 0; i < TEXTS; i++)
        hl_json_put_text(&w, texts[i].key, *text_at(&v->spec, i));
    for (size_t i = 0; i < SIZES; i++)
        hl_json_put_integer(&w, sizes[i].key, (int64_t)*size_at(&v->spec, i));
    hl_json_put_integer(&w, "layers", v->spec.layers);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

/* The model as a table of tensors, which borrows from it; the caller frees it, also after a failure. */
static hl_status gather(const hl_vae *v, hl_tensors **table)
{
    char *text = architecture_text(v);
    hl_status status = text ? hl_params_check(v->params) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_tensors_create(v->ctx, table);
    hl_tensors *t = *table;
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "format", format_text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "architecture", text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(v->spec.dtype));
    if (status == HL_OK)
        status = hl_params_add_tensors(v->params, "", t);
    hl_free(v->ctx, text);
    return status;
}

hl_status hl_vae_save(const hl_vae *v, const char *path)
{
    if (!v)
        return HL_ERR_INVALID;
    if (!path)
        return hl_fail(v->ctx, HL_ERR_INVALID, "hl_vae_save: the path is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(v, &t);
    if (status == HL_OK)
        status = hl_tensors_write(t, path);
    hl_tensors_free(t);
    return status;
}

hl_status hl_vae_write(const hl_vae *v, void *bytes, size_t capacity, size_t *size)
{
    if (!v)
        return HL_ERR_INVALID;
    if (!size)
        return hl_fail(v->ctx, HL_ERR_INVALID, "hl_vae_write: the size is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(v, &t);
    if (status == HL_OK)
        status = hl_tensors_write_memory(t, bytes, capacity, size);
    hl_tensors_free(t);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    hl_context *ctx;
    const char *path;
    const hl_json *json;
    hl_status status;
} reader;

static int64_t integer_of(reader *r, const hl_json *j, const char *key, int64_t low, int64_t high)
{
    bool good = hl_json_is_integer(j) && j->integer >= low && j->integer <= high;
    if (r->status == HL_OK && !good)
        r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: architecture: '%s' is missing or not an integer in %lld..%lld",
                            hl_path_shown(r->path), key, (long long)low, (long long)high);
    return good ? j->integer : low;
}

static const char *text_of(reader *r, const char *key)
{
    const char *text = hl_json_text(hl_json_get(r->json, key));
    if (r->status == HL_OK && !text)
        r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: architecture: '%s' is missing or not a text",
                            hl_path_shown(r->path), key);
    return text;
}

static hl_status read_spec(reader *r, hl_vae_spec *s)
{
    const hl_json *image = hl_json_get(r->json, "image"), *size = hl_json_is_array(image, 3) ? image->first : NULL;
    for (size_t i = 0; i < 3; i++, size = size ? size->next : NULL)
        s->image[i] = (size_t)integer_of(r, size, "image", 0, 1 << 20);
    for (size_t i = 0; i < TEXTS; i++)
        *text_at(s, i) = text_of(r, texts[i].key);
    for (size_t i = 0; i < SIZES; i++)
        *size_at(s, i) = (size_t)integer_of(r, hl_json_get(r->json, sizes[i].key), sizes[i].key, 1, 1 << 20);
    s->layers = (int)integer_of(r, hl_json_get(r->json, "layers"), "layers", -1, HL_VAE_MAX_LAYERS);
    return r->status;
}

/* Masked weights of a hollow network must be 0. */
static hl_status check_field(hl_vae *v, const char *path)
{
    hl_status status = hl_net_allocate(v->field);
    for (size_t i = 0; i < v->field->params && status == HL_OK; i++) {
        hl_net_param p;
        status = hl_net_param_get(v->field, i, &p);
        memcpy(p.values, v->params->param[v->part[HL_VAE_FLOW] + i].values, p.size * hl_dtype_size(v->spec.dtype));
    }
    if (status == HL_OK && (status = hl_net_check(v->field)) != HL_OK)
        status = hl_model_blame(v->ctx, status, path, "");
    return status;
}

static hl_status make(hl_context *ctx, const char *path, const hl_tensors *t, const hl_vae_spec *spec, hl_vae **vae)
{
    hl_status status = hl_vae_declare(ctx, spec, vae);
    if (status == HL_ERR_INVALID || status == HL_ERR_SHAPE)
        return hl_model_blame(ctx, status, path, "architecture: ");
    if (status == HL_OK)
        status = hl_params_check_tensors((*vae)->params, "", path, t);
    if (status == HL_OK && hl_tensors_count(t) != (*vae)->params->count)
        status = hl_fail(ctx, HL_ERR_FORMAT, "%s: %zu tensors where the architecture has %zu", hl_path_shown(path),
                         hl_tensors_count(t), (*vae)->params->count);
    if (status == HL_OK)
        status = hl_params_allocate((*vae)->params);
    if (status == HL_OK)
        status = hl_params_take_tensors((*vae)->params, "", path, t);
    return status == HL_OK && (*vae)->field ? check_field(*vae, path) : status;
}

static hl_status read_vae(hl_context *ctx, const char *path, const hl_tensors *t, hl_vae **vae)
{
    hl_vae_spec spec = { 0 };
    hl_status status = hl_model_check_format(ctx, path, t, format_text, "an autoencoder");
    if (status == HL_OK)
        status = hl_model_dtype(ctx, path, t, &spec.dtype);
    if (status != HL_OK)
        return status;
    const char *text = hl_tensors_metadata(t, "architecture");
    hl_json_document document = { 0 };
    if (text)
        status = hl_json_parse(ctx, text, strlen(text), &document);
    reader r = { ctx, path, document.root, HL_OK };
    if (status != HL_OK)
        status = hl_model_blame(ctx, status, path, "architecture: ");
    else if (!hl_json_is_object(document.root))
        status = hl_fail(ctx, HL_ERR_FORMAT, "%s: its architecture is not a JSON object", hl_path_shown(path));
    if (status == HL_OK)
        status = read_spec(&r, &spec);
    if (status == HL_OK)
        status = make(ctx, path, t, &spec, vae);
    hl_json_free(&document);
    return status;
}

/* Make a model of the table t, which it frees. */
static hl_status make_of(hl_context *ctx, const char *path, hl_tensors *t, hl_vae **vae)
{
    hl_status status = read_vae(ctx, path, t, vae);
    if (status != HL_OK) {
        hl_vae_free(*vae);
        *vae = NULL;
    }
    hl_tensors_free(t);
    return status;
}

hl_status hl_vae_load(hl_context *ctx, const char *path, hl_vae **vae)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !vae)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_vae_load: the path or the result is NULL");
    hl_tensors *t = NULL;
    *vae = NULL;
    hl_status status = hl_tensors_read(ctx, path, &t);
    return status == HL_OK ? make_of(ctx, path, t, vae) : status;
}

hl_status hl_vae_read(hl_context *ctx, const void *bytes, size_t size, hl_vae **vae)
{
    static const char name[] = "the model in memory";
    if (!ctx)
        return HL_ERR_INVALID;
    if (!bytes || !vae)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_vae_read: the bytes or the result is NULL");
    hl_tensors *t = NULL;
    *vae = NULL;
    hl_status status = hl_tensors_read_memory(ctx, name, bytes, size, &t);
    return status == HL_OK ? make_of(ctx, name, t, vae) : status;
}
