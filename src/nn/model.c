/* model.c - model files: safetensors whose metadata say what the network is.
 *
 *   format        "hollow-net 1"
 *   architecture  {"dim": 2, "context": 0, "time": true, "conditioner": "made", "image": [0, 0, 0], "kernel": 0, "features": 16, "hidden": 64,
 *                  "hidden_layers": 2, "transformer": "shared", "width": 64, "layers": 2, "activation": "tanh"}
 *   dtype         "f32" or "f64"
 *
 * A file is believed only as far as its tensors bear it out: memory is allocated after every parameter was found in the file
 * with the shape that the architecture gives it. */
#include <jansson.h>
#include <string.h>

#include "io/file.h"
#include "io/safetensors.h"
#include "nn/net.h"

static const char format_text[] = "hollow-net 1";

/* ---- writing ---- */

/* Layers as a file counts them: 0 is none, where a specification has -1. */
static int layers_out(int layers)
{
    return layers < 0 ? 0 : layers;
}

static char *architecture_text(const hl_net_spec *s)
{
    json_t *j =
        json_pack("{s:I, s:I, s:b, s:s, s:[I, I, I], s:I, s:I, s:I, s:i, s:s, s:I, s:i, s:s}", "dim",
                  (json_int_t)s->dim, "context", (json_int_t)s->context, "time", s->time, "conditioner", s->conditioner,
                  "image", (json_int_t)s->image[0], (json_int_t)s->image[1], (json_int_t)s->image[2], "kernel",
                  (json_int_t)s->kernel, "features", (json_int_t)s->features, "hidden", (json_int_t)s->hidden,
                  "hidden_layers", layers_out(s->hidden_layers), "transformer", s->transformer, "width",
                  (json_int_t)s->width, "layers", layers_out(s->layers), "activation", s->activation);
    char *text = j ? json_dumps(j, JSON_PRESERVE_ORDER) : NULL;
    json_decref(j);
    return text;
}

static hl_status add_params(const hl_net *net, hl_tensors *t)
{
    hl_status status = HL_OK;
    for (size_t i = 0; i < net->params && status == HL_OK; i++) {
        hl_net_param p;
        hl_net_param_get(net, i, &p);
        status = hl_tensors_add(t, p.name, net->spec.dtype, p.rank, p.dims, p.values);
    }
    return status;
}

hl_status hl_net_save(const hl_net *net, const char *path)
{
    if (!net)
        return HL_ERR_INVALID;
    if (!path)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_net_save: the path is NULL");
    hl_tensors *t = NULL;
    char *text = architecture_text(&net->spec);
    hl_status status = text ? hl_net_check(net) : hl_fail(net->ctx, HL_ERR_NOMEM, "out of memory for the model file");
    if (status == HL_OK)
        status = hl_tensors_create(net->ctx, &t);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "format", format_text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "architecture", text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(net->spec.dtype));
    if (status == HL_OK)
        status = add_params(net, t);
    if (status == HL_OK)
        status = hl_tensors_write(t, path);
    hl_tensors_free(t);
    free(text);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    hl_context *ctx;
    const char *path;
    const json_t *architecture;
    hl_status status;
} reader;

static hl_status bad(reader *r, const char *what)
{
    r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: %s", r->path, what);
    return r->status;
}

/* An integer entry in 0..limit. */
static size_t integer(reader *r, const char *key, json_int_t limit)
{
    const json_t *j = json_object_get(r->architecture, key);
    json_int_t v = json_integer_value(j);
    if (r->status == HL_OK && (!json_is_integer(j) || v < 0 || v > limit))
        r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: architecture: '%s' is missing or not an integer in 0..%lld",
                            r->path, key, (long long)limit);
    return r->status == HL_OK ? (size_t)v : 0;
}

static const char *text(reader *r, const char *key)
{
    const char *v = json_string_value(json_object_get(r->architecture, key));
    if (r->status == HL_OK && !v)
        r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: architecture: '%s' is missing or not a text", r->path, key);
    return v;
}

static int layers_in(size_t layers)
{
    return layers == 0 ? -1 : (int)layers;
}

static hl_net_spec read_spec(reader *r)
{
    hl_net_spec s = { .dim = integer(r, "dim", 1000000),
                      .context = integer(r, "context", 1000000),
                      .conditioner = text(r, "conditioner"),
                      .kernel = integer(r, "kernel", 31),
                      .features = integer(r, "features", 65536),
                      .hidden = integer(r, "hidden", 1 << 20),
                      .hidden_layers = layers_in(integer(r, "hidden_layers", 64)),
                      .transformer = text(r, "transformer"),
                      .width = integer(r, "width", 1 << 20),
                      .layers = layers_in(integer(r, "layers", 64)),
                      .activation = text(r, "activation") };
    const json_t *image = json_object_get(r->architecture, "image");
    for (size_t i = 0; i < 3; i++) {
        const json_t *size = json_array_get(image, i);
        if (r->status == HL_OK && (json_array_size(image) != 3 || !json_is_integer(size) ||
                                   json_integer_value(size) < 0 || json_integer_value(size) > 1000000))
            bad(r, "architecture: 'image' is missing or not three integers in 0..1000000");
        s.image[i] = r->status == HL_OK ? (size_t)json_integer_value(size) : 0;
    }
    const json_t *time = json_object_get(r->architecture, "time");
    if (r->status == HL_OK && !json_is_boolean(time))
        bad(r, "architecture: 'time' is missing or not a truth value");
    s.time = json_is_true(time);
    return s;
}

/* A specification cannot ask for more than the file holds: every unit of every layer has a bias, and conditioners have at
 * least an output for each half of h. */
static hl_status check_size(reader *r, const hl_tensors *t, const hl_net_spec *s)
{
    size_t elements = 0;
    for (size_t i = 0; i < hl_tensors_count(t); i++)
        elements += hl_tensors_get(t, i)->bytes / hl_dtype_size(s->dtype);
    size_t hidden = s->hidden_layers > 0 ? s->hidden * (size_t)s->hidden_layers : 0;
    size_t width = s->layers > 0 ? s->width * (size_t)s->layers : 0;
    if (s->dim * s->features / 2 > elements || hidden > elements || width > elements)
        return bad(r, "the tensors are too few for the architecture");
    return HL_OK;
}

static hl_status check_tensors(reader *r, const hl_tensors *t, const hl_net *net)
{
    for (size_t i = 0; i < net->params; i++) {
        const hl_param_info *p = &net->param[i];
        const hl_tensor *found = hl_tensors_find(t, p->name);
        char shape[120];
        if (!found)
            return hl_fail(r->ctx, HL_ERR_FORMAT, "%s: tensor '%s' is missing", r->path, p->name);
        bool same = found->dtype == net->spec.dtype && found->rank == p->shape.rank;
        for (int a = 0; same && a < found->rank; a++)
            same = found->dims[a] == p->shape.dim[a];
        if (!same)
            return hl_fail(r->ctx, HL_ERR_FORMAT, "%s: tensor '%s' is not %s of %s, as the architecture needs", r->path,
                           p->name, hl_shape_text(&p->shape, shape, sizeof shape), hl_dtype_name(net->spec.dtype));
    }
    if (hl_tensors_count(t) != net->params)
        return hl_fail(r->ctx, HL_ERR_FORMAT, "%s: %zu tensors where the architecture has %zu", r->path,
                       hl_tensors_count(t), net->params);
    return HL_OK;
}

static hl_status fill(reader *r, const hl_tensors *t, hl_net *net)
{
    for (size_t i = 0; i < net->params; i++) {
        hl_net_param p;
        hl_net_param_get(net, i, &p);
        const hl_tensor *found = hl_tensors_find(t, p.name);
        memcpy(p.values, found->data, found->bytes);
    }
    hl_status status = hl_net_check(net);
    if (status == HL_OK)
        return HL_OK;
    char detail[300];
    strncpy(detail, hl_context_message(r->ctx), sizeof detail - 1);
    detail[sizeof detail - 1] = '\0';
    return hl_fail(r->ctx, status == HL_ERR_INVALID ? HL_ERR_FORMAT : status, "%s: %s", r->path, detail);
}

static hl_status read_net(reader *r, const hl_tensors *t, hl_net **net)
{
    const char *format = hl_tensors_metadata(t, "format"), *dtype = hl_tensors_metadata(t, "dtype");
    if (!format || strcmp(format, format_text) != 0)
        return bad(r, "not a model of hollow (its metadata have no format 'hollow-net 1')");
    hl_net_spec spec = read_spec(r);
    if (r->status != HL_OK)
        return r->status;
    if (!dtype || (strcmp(dtype, "f32") != 0 && strcmp(dtype, "f64") != 0))
        return bad(r, "its metadata have no dtype 'f32' or 'f64'");
    spec.dtype = strcmp(dtype, "f64") == 0 ? HL_F64 : HL_F32;
    if (spec.dim == 0 || spec.features == 0 || spec.hidden == 0 || spec.width == 0)
        return bad(r, "architecture: dim, features, hidden and width must be at least 1");
    if (check_size(r, t, &spec) != HL_OK)
        return r->status;
    hl_status status = hl_net_declare(r->ctx, &spec, net);
    if (status == HL_ERR_INVALID || status == HL_ERR_SHAPE) {
        char detail[300];
        strncpy(detail, hl_context_message(r->ctx), sizeof detail - 1);
        detail[sizeof detail - 1] = '\0';
        return hl_fail(r->ctx, HL_ERR_FORMAT, "%s: architecture: %s", r->path, detail);
    }
    if (status == HL_OK)
        status = check_tensors(r, t, *net);
    if (status == HL_OK)
        status = hl_net_allocate(*net);
    return status == HL_OK ? fill(r, t, *net) : status;
}

hl_status hl_net_load(hl_context *ctx, const char *path, hl_net **net)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !net)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_net_load: the path or the result is NULL");
    hl_tensors *t = NULL;
    *net = NULL;
    hl_status status = hl_tensors_read(ctx, path, &t);
    if (status != HL_OK)
        return status;
    const char *words = hl_tensors_metadata(t, "architecture");
    json_t *architecture = words ? json_loads(words, JSON_REJECT_DUPLICATES, NULL) : NULL;
    reader r = { ctx, hl_path_shown(path), architecture, HL_OK };
    if (!words || !json_is_object(architecture))
        status = bad(&r, words ? "its architecture is not a JSON object" : "not a model of hollow (no architecture)");
    else
        status = read_net(&r, t, net);
    if (status != HL_OK) {
        hl_net_free(*net);
        *net = NULL;
    }
    json_decref(architecture);
    hl_tensors_free(t);
    return status;
}
