/* file.c - autoencoders in model files: safetensors, with the specification as JSON in the metadata. A file can name any sizes; they
 * are compared with its tensors before memory is taken. */
#include <stddef.h>
#include <string.h>

#include "io/file.h"
#include "io/json.h"
#include "nn/model.h"
#include "vae/vae.h"

/* Version 2 has tensors of the columns' units, version 1 none. */
static const char format_text[] = "hollow-vae 1", format_with_columns[] = "hollow-vae 2";
static const char shift_name[] = "columns.shift", scale_name[] = "columns.scale";
enum { COLUMN_TENSORS = 2 };

/* The entries of a specification beside image and layers. */
static const struct {
    const char *key;
    size_t offset;
} sizes[] = {
    { "dim", offsetof(hl_vae_spec, dim) },         { "latent", offsetof(hl_vae_spec, latent) },
    { "flows", offsetof(hl_vae_spec, flows) },     { "columns", offsetof(hl_vae_spec, columns) },
    { "hidden", offsetof(hl_vae_spec, hidden) },   { "features", offsetof(hl_vae_spec, features) },
    { "width", offsetof(hl_vae_spec, width) },     { "rank", offsetof(hl_vae_spec, rank) },
    { "steps", offsetof(hl_vae_spec, steps) },     { "deviations", offsetof(hl_vae_spec, deviations) },
}, texts[] = {
    { "likelihood", offsetof(hl_vae_spec, likelihood) }, { "net", offsetof(hl_vae_spec, net) },
    { "posterior", offsetof(hl_vae_spec, posterior) },   { "activation", offsetof(hl_vae_spec, activation) },
    { "trace", offsetof(hl_vae_spec, trace) },           { "code", offsetof(hl_vae_spec, code) },
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

const hl_training_point *hl_vae_course(const hl_vae *v, size_t *count)
{
    bool known = v && v->course && v->course->count;
    if (count)
        *count = known ? v->course->count : 0;
    return known ? v->course->point : NULL;
}

static char *training_text(const hl_vae *v)
{
    hl_json_writer w = { .ctx = v->ctx };
    hl_json_open(&w, NULL, '{');
    hl_curve_put(v->course, &w, "course");
    if (v->rows.rows)
        hl_row_sketch_put(&v->rows, &w);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

static char *names_text(const hl_vae *v)
{
    hl_json_writer w = { .ctx = v->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < v->dim; i++)
        hl_json_put_text(&w, NULL, v->names[i]);
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

static hl_status gather(const void *model, hl_tensors *t)
{
    const hl_vae *v = model;
    hl_status status = hl_params_check(v->params);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "format", v->scale ? format_with_columns : format_text);
    if (status == HL_OK)
        status = hl_model_set(v->ctx, t, "architecture", architecture_text(v));
    if (status == HL_OK && v->names)
        status = hl_model_set(v->ctx, t, "names", names_text(v));
    if (status == HL_OK && v->course)
        status = hl_model_set(v->ctx, t, "training", training_text(v));
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(v->spec.dtype));
    if (status == HL_OK && v->scale)
        status = hl_tensors_add(t, shift_name, HL_F64, 1, &v->dim, v->shift);
    if (status == HL_OK && v->scale)
        status = hl_tensors_add(t, scale_name, HL_F64, 1, &v->dim, v->scale);
    return status == HL_OK ? hl_params_add_tensors(v->params, "", t) : status;
}

/* ---- reading ---- */

static hl_status read_spec(hl_model_entries *r, hl_vae_spec *s)
{
    hl_model_sizes(r, "image", 3, 1 << 20, s->image);
    bool before_code = r->object && !hl_json_get(r->object, "code"); /* files from before there was a choice */
    for (size_t i = 0; i < TEXTS; i++)
        *text_at(s, i) = before_code && text_at(s, i) == &s->code ? "input" : hl_model_text(r, texts[i].key);
    bool one_deviation = r->object && !hl_json_get(r->object, "deviations"); /* the same */
    for (size_t i = 0; i < SIZES; i++)
        *size_at(s, i) = one_deviation && size_at(s, i) == &s->deviations
                             ? 1
                             : (size_t)hl_model_integer(r, sizes[i].key, 0, 1 << 20);
    s->layers = (int)hl_model_integer(r, "layers", -1, HL_VAE_MAX_LAYERS);
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

static const double *column_values(const hl_vae *v, const hl_tensors *t, const char *name)
{
    const hl_tensor *x = hl_tensors_find(t, name);
    return x && x->dtype == HL_F64 && x->rank == 1 && x->dims[0] == v->dim ? x->data : NULL;
}

static hl_status read_columns(hl_vae *v, const char *path, const hl_tensors *t)
{
    const double *shift = column_values(v, t, shift_name), *scale = column_values(v, t, scale_name);
    if (!shift || !scale)
        return hl_fail(v->ctx, HL_ERR_FORMAT, "%s: the units of its columns are missing, or not %zu numbers",
                       hl_path_shown(path), v->dim);
    hl_status status = hl_vae_set_columns(v, shift, scale);
    return status == HL_ERR_INVALID ? hl_model_blame(v->ctx, status, path, "") : status;
}

static hl_status make_vae(hl_context *ctx, const char *path, const hl_tensors *t, const hl_vae_spec *spec,
                          bool with_columns, hl_vae **vae)
{
    hl_status status = hl_vae_declare(ctx, spec, vae);
    if (status == HL_ERR_INVALID || status == HL_ERR_SHAPE)
        return hl_model_blame(ctx, status, path, "architecture: ");
    if (status == HL_OK)
        status = hl_params_check_tensors((*vae)->params, "", path, t);
    size_t expected = status == HL_OK ? (*vae)->params->count + (with_columns ? COLUMN_TENSORS : 0) : 0;
    if (status == HL_OK && hl_tensors_count(t) != expected)
        status = hl_fail(ctx, HL_ERR_FORMAT, "%s: %zu tensors where the architecture has %zu", hl_path_shown(path),
                         hl_tensors_count(t), expected);
    if (status == HL_OK)
        status = hl_params_allocate((*vae)->params);
    if (status == HL_OK)
        status = hl_params_take_tensors((*vae)->params, "", path, t);
    if (status == HL_OK && with_columns)
        status = read_columns(*vae, path, t);
    return status == HL_OK && (*vae)->field ? check_field(*vae, path) : status;
}

/* Files of unnamed columns, and those from before there were names, have none. */
static hl_status read_names(hl_vae *v, const char *path, const hl_tensors *t)
{
    if (!hl_tensors_metadata(t, "names"))
        return HL_OK;
    hl_json_document document = { 0 };
    hl_status status = hl_model_parse(v->ctx, t, "names", &document);
    const char **names = status == HL_OK ? hl_calloc(v->ctx, v->dim, sizeof *names) : NULL;
    bool good = hl_json_is_array(document.root, v->dim);
    size_t i = 0;
    for (const hl_json *at = good ? document.root->first : NULL; at && good && names; at = at->next)
        good = (names[i++] = hl_json_text(at)) != NULL;
    if (status == HL_OK && !names)
        status = HL_ERR_NOMEM;
    if (status == HL_OK && !good)
        status = hl_fail(v->ctx, HL_ERR_FORMAT, "%s: the names of its columns are not %zu texts", hl_path_shown(path),
                         v->dim);
    if (status == HL_OK)
        status = hl_vae_set_names(v, names);
    hl_free(v->ctx, names);
    hl_json_free(&document);
    return status;
}

static hl_status read_training(hl_vae *v, const char *path, const hl_tensors *t)
{
    if (!hl_tensors_metadata(t, "training"))
        return HL_OK;
    bool good = true;
    hl_json_document training = { 0 };
    hl_status status = hl_model_parse(v->ctx, t, "training", &training);
    v->course = status == HL_OK ? hl_calloc(v->ctx, 1, sizeof *v->course) : NULL;
    if (status == HL_OK && !v->course)
        status = HL_ERR_NOMEM;
    if (status == HL_OK && hl_json_get(training.root, "rows"))
        status = hl_row_sketch_read(v->ctx, training.root, &v->rows, &good);
    if (status == HL_OK && !(good && hl_curve_read(v->course, hl_json_get(training.root, "course"))))
        status = hl_fail(v->ctx, HL_ERR_FORMAT, "%s: the training history is malformed", hl_path_shown(path));
    hl_json_free(&training);
    return status;
}

static hl_status make(hl_context *ctx, const char *path, const hl_tensors *t, void **model)
{
    hl_vae_spec spec = { 0 };
    hl_vae *vae = NULL;
    const char *format = hl_tensors_metadata(t, "format");
    bool with_columns = format && strcmp(format, format_with_columns) == 0;
    hl_status status = with_columns ? HL_OK : hl_model_check_format(ctx, path, t, format_text, "an autoencoder");
    if (status == HL_OK)
        status = hl_model_dtype(ctx, path, t, &spec.dtype);
    if (status != HL_OK)
        return status;
    const char *text = hl_tensors_metadata(t, "architecture");
    hl_json_document document = { 0 };
    if (text)
        status = hl_json_parse(ctx, text, strlen(text), &document);
    hl_model_entries r = { ctx, path, "architecture", document.root, HL_OK };
    if (status != HL_OK)
        status = hl_model_blame(ctx, status, path, "architecture: ");
    else if (!hl_json_is_object(document.root))
        status = hl_fail(ctx, HL_ERR_FORMAT, "%s: its architecture is not a JSON object", hl_path_shown(path));
    if (status == HL_OK)
        status = read_spec(&r, &spec);
    if (status == HL_OK)
        status = make_vae(ctx, path, t, &spec, with_columns, &vae);
    if (status == HL_OK)
        status = read_names(vae, path, t);
    if (status == HL_OK)
        status = read_training(vae, path, t);
    *model = vae;
    hl_json_free(&document);
    return status;
}

static void discard(void *model)
{
    hl_vae_free(model);
}

static const hl_model_kind kind = { "hl_vae", "model", gather, make, discard };

hl_status hl_vae_save(const hl_vae *v, const char *path)
{
    return v ? hl_model_save(&kind, v->ctx, v, path) : HL_ERR_INVALID;
}

hl_status hl_vae_write(const hl_vae *v, void *bytes, size_t capacity, size_t *size)
{
    return v ? hl_model_write(&kind, v->ctx, v, bytes, capacity, size) : HL_ERR_INVALID;
}

hl_status hl_vae_load(hl_context *ctx, const char *path, hl_vae **out)
{
    void *model = NULL;
    hl_status status = hl_model_load(&kind, ctx, path, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
}

hl_status hl_vae_read(hl_context *ctx, const void *bytes, size_t size, hl_vae **out)
{
    void *model = NULL;
    hl_status status = hl_model_read(&kind, ctx, bytes, size, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
}
