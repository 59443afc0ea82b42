/* model.c - model files: safetensors whose metadata say what the network is.
 *
 *   format        "hollow-net 1"
 *   architecture  {"dim": 2, "context": 0, "time": true, "conditioner": "made", "image": [0, 0, 0], "kernel": 0, "features": 16,
 *                  "hidden": 64, "hidden_layers": 2, "transformer": "shared", "width": 64, "layers": 2, "activation": "tanh",
 *                  "reflections": 0, "mlp": 0, "plus": []}, with "order": [..] if there is one; "plus" lists further terms
 *   dtype         "f32" or "f64"
 *
 * A file is believed only as far as its tensors bear it out: memory is allocated after every parameter was found in the file
 * with the shape that the architecture gives it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "io/file.h"
#include "nn/model.h"

static const char format_text[] = "hollow-net 1";

/* ---- writing ---- */

/* Layers as a file counts them: 0 is none, where a specification has -1. */
static int layers_out(int layers)
{
    return layers < 0 ? 0 : layers;
}

/* Of one term, without what all terms share. */
static json_t *term_json(const hl_net_spec *s)
{
    json_t *j = json_pack("{s:s, s:[I, I, I], s:I, s:I, s:I, s:i, s:s, s:I, s:i, s:s, s:I, s:I}", "conditioner",
                          s->conditioner, "image", (json_int_t)s->image[0], (json_int_t)s->image[1],
                          (json_int_t)s->image[2], "kernel", (json_int_t)s->kernel, "features", (json_int_t)s->features,
                          "hidden", (json_int_t)s->hidden, "hidden_layers", layers_out(s->hidden_layers), "transformer",
                          s->transformer, "width", (json_int_t)s->width, "layers", layers_out(s->layers), "activation",
                          s->activation, "reflections", (json_int_t)s->reflections, "mlp", (json_int_t)s->mlp);
    if (!j || !s->order)
        return j;
    json_t *order = json_array();
    for (size_t i = 0; i < s->dim; i++)
        json_array_append_new(order, json_integer((json_int_t)s->order[i]));
    if (json_array_size(order) == s->dim && json_object_set_new(j, "order", order) == 0)
        return j;
    json_decref(j);
    return NULL;
}

char *hl_net_architecture(const hl_net *net)
{
    json_t *j = json_pack("{s:I, s:I, s:b}", "dim", (json_int_t)net->dim, "context", (json_int_t)net->context, "time",
                          (int)net->time);
    json_t *first = term_json(&net->term[0].spec), *plus = json_array();
    bool good = j && first && plus && json_object_update(j, first) == 0;
    for (size_t i = 1; good && i < net->terms; i++)
        good = json_array_append_new(plus, term_json(&net->term[i].spec)) == 0;
    good = good && json_object_set(j, "plus", plus) == 0;
    char *text = good ? json_dumps(j, JSON_PRESERVE_ORDER | JSON_COMPACT) : NULL;
    json_decref(plus);
    json_decref(first);
    json_decref(j);
    return text;
}

hl_status hl_net_add_tensors(const hl_net *net, const char *prefix, hl_tensors *t)
{
    hl_status status = HL_OK;
    for (size_t i = 0; i < net->params && status == HL_OK; i++) {
        char name[128];
        hl_net_param p;
        hl_net_param_get(net, i, &p);
        snprintf(name, sizeof name, "%s%s", prefix, p.name);
        status = hl_tensors_add(t, name, net->dtype, p.rank, p.dims, p.values);
    }
    return status;
}

/* The network as a table of tensors, which borrows from it; the caller frees it, also after a failure. */
static hl_status gather(const hl_net *net, hl_tensors **table)
{
    char *text = hl_net_architecture(net);
    hl_status status = text ? hl_net_check(net) : hl_fail(net->ctx, HL_ERR_NOMEM, "out of memory for the model file");
    if (status == HL_OK)
        status = hl_tensors_create(net->ctx, table);
    hl_tensors *t = *table;
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "format", format_text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "architecture", text);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(net->dtype));
    if (status == HL_OK)
        status = hl_net_add_tensors(net, "", t);
    free(text);
    return status;
}

hl_status hl_net_save(const hl_net *net, const char *path)
{
    if (!net)
        return HL_ERR_INVALID;
    if (!path)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_net_save: the path is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(net, &t);
    if (status == HL_OK)
        status = hl_tensors_write(t, path);
    hl_tensors_free(t);
    return status;
}

hl_status hl_net_write(const hl_net *net, void *bytes, size_t capacity, size_t *size)
{
    if (!net)
        return HL_ERR_INVALID;
    if (!size)
        return hl_fail(net->ctx, HL_ERR_INVALID, "hl_net_write: the size is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(net, &t);
    if (status == HL_OK)
        status = hl_tensors_write_memory(t, bytes, capacity, size);
    hl_tensors_free(t);
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

/* Three sizes of an image. */
static void read_image(reader *r, size_t *image)
{
    const json_t *j = json_object_get(r->architecture, "image");
    for (size_t i = 0; i < 3; i++) {
        const json_t *size = json_array_get(j, i);
        if (r->status == HL_OK && (json_array_size(j) != 3 || !json_is_integer(size) || json_integer_value(size) < 0 ||
                                   json_integer_value(size) > 1000000))
            bad(r, "architecture: 'image' is missing or not three integers in 0..1000000");
        image[i] = r->status == HL_OK ? (size_t)json_integer_value(size) : 0;
    }
}

/* The order of columns into memory of its own, or NULL if there is none. */
static size_t *read_order(reader *r, size_t dim)
{
    const json_t *j = json_object_get(r->architecture, "order");
    if (r->status != HL_OK || !j)
        return NULL;
    if (!json_is_array(j) || json_array_size(j) != dim) {
        bad(r, "architecture: 'order' is not a list of dim integers");
        return NULL;
    }
    size_t *order = hl_calloc(r->ctx, dim, sizeof *order);
    if (!order)
        r->status = HL_ERR_NOMEM;
    for (size_t i = 0; order && i < dim; i++) { /* what is no column is found when the network is made */
        json_int_t v = json_integer_value(json_array_get(j, i));
        order[i] = json_is_integer(json_array_get(j, i)) && v >= 0 ? (size_t)v : SIZE_MAX;
    }
    return order;
}

/* One term from r->architecture; `order` is the caller's to free. */
static void read_term(reader *r, hl_net_spec *s, size_t **order)
{
    s->conditioner = text(r, "conditioner");
    read_image(r, s->image);
    s->kernel = integer(r, "kernel", 31);
    s->features = integer(r, "features", 65536);
    s->hidden = integer(r, "hidden", 1 << 20);
    s->hidden_layers = layers_in(integer(r, "hidden_layers", 64));
    s->transformer = text(r, "transformer");
    s->width = integer(r, "width", 1 << 20);
    s->layers = layers_in(integer(r, "layers", 64));
    s->activation = text(r, "activation");
    s->reflections = integer(r, "reflections", HL_MAX_REFLECTIONS);
    s->mlp = integer(r, "mlp", 1 << 20);
    if (r->status == HL_OK && (s->features == 0 || s->hidden == 0 || s->width == 0))
        bad(r, "architecture: features, hidden and width must be at least 1");
    s->order = *order = read_order(r, s->dim);
}

/* All terms, chained by `plus`. */
static void read_spec(reader *r, hl_net_spec *s, size_t **order)
{
    const json_t *whole = r->architecture, *time = json_object_get(whole, "time");
    const json_t *plus = json_object_get(whole, "plus");
    size_t terms = 1 + json_array_size(plus);
    s[0].dim = integer(r, "dim", 1000000);
    s[0].context = integer(r, "context", 1000000);
    s[0].time = json_is_true(time);
    if (r->status == HL_OK && s[0].dim == 0)
        bad(r, "architecture: dim must be at least 1");
    if (r->status == HL_OK && !json_is_boolean(time))
        bad(r, "architecture: 'time' is missing or not a truth value");
    if (r->status == HL_OK && (!json_is_array(plus) || terms > HL_MAX_TERMS))
        bad(r, "architecture: 'plus' is missing or not a list of at most 63 networks");
    for (size_t i = 0; i < terms && r->status == HL_OK; i++) {
        r->architecture = i ? json_array_get(plus, i - 1) : whole;
        s[i].dim = s[0].dim;
        s[i].context = s[0].context;
        s[i].time = s[0].time;
        read_term(r, &s[i], &order[i]);
        s[i].plus = i + 1 < terms ? &s[i + 1] : NULL;
    }
    r->architecture = whole;
}

hl_status hl_architecture_read(hl_context *ctx, const char *path, const char *text, hl_dtype dtype,
                               hl_architecture **out)
{
    hl_architecture *a = hl_calloc(ctx, 1, sizeof *a);
    *out = a;
    if (!a)
        return HL_ERR_NOMEM;
    a->ctx = ctx;
    a->json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
    reader r = { ctx, hl_path_shown(path), a->json, HL_OK };
    if (!json_is_object((json_t *)a->json))
        return bad(&r, text ? "its architecture is not a JSON object" : "not a model of hollow (no architecture)");
    read_spec(&r, a->spec, a->order);
    a->spec[0].dtype = dtype;
    return r.status;
}

void hl_architecture_free(hl_architecture *a)
{
    if (!a)
        return;
    json_decref(a->json);
    for (size_t i = 0; i < HL_MAX_TERMS; i++)
        hl_free(a->ctx, a->order[i]);
    hl_free(a->ctx, a);
}

hl_status hl_model_dtype(hl_context *ctx, const char *path, const hl_tensors *t, hl_dtype *dtype)
{
    const char *name = hl_tensors_metadata(t, "dtype");
    if (!name || (strcmp(name, "f32") != 0 && strcmp(name, "f64") != 0))
        return hl_fail(ctx, HL_ERR_FORMAT, "%s: its metadata have no dtype 'f32' or 'f64'", hl_path_shown(path));
    *dtype = strcmp(name, "f64") == 0 ? HL_F64 : HL_F32;
    return HL_OK;
}

hl_status hl_model_check_format(hl_context *ctx, const char *path, const hl_tensors *t, const char *format,
                                const char *what)
{
    const char *found = hl_tensors_metadata(t, "format");
    if (found && strcmp(found, format) == 0)
        return HL_OK;
    char is[80] = "";
    if (found && strncmp(found, "hollow-", 7) == 0)
        snprintf(is, sizeof is, ", but '%.30s'", found);
    return hl_fail(ctx, HL_ERR_FORMAT, "%s: not %s of hollow (its metadata have no format '%s'%s)", hl_path_shown(path),
                   what, format, is);
}

hl_status hl_model_blame(hl_context *ctx, hl_status status, const char *path, const char *where)
{
    char detail[300];
    strncpy(detail, hl_context_message(ctx), sizeof detail - 1);
    detail[sizeof detail - 1] = '\0';
    if (status == HL_ERR_INVALID || status == HL_ERR_SHAPE)
        status = HL_ERR_FORMAT;
    return hl_fail(ctx, status, "%s: %s%s", hl_path_shown(path), where, detail);
}

size_t hl_model_values(const hl_tensors *t, hl_dtype dtype)
{
    size_t values = 0;
    for (size_t i = 0; i < hl_tensors_count(t); i++)
        values += hl_tensors_get(t, i)->bytes / hl_dtype_size(dtype);
    return values;
}

hl_status hl_model_count(hl_context *ctx, const char *path, const hl_net_spec *spec, size_t *tensors, size_t *values)
{
    hl_net *net = NULL;
    hl_status status = hl_net_declare(ctx, spec, &net);
    *tensors = *values = 0;
    if (status != HL_OK)
        return hl_model_blame(ctx, status, path, "architecture: ");
    *tensors = net->params;
    for (size_t p = 0; p < net->params; p++)
        *values = hl_size_add(*values, hl_shape_size(&net->param[p].shape));
    hl_net_free(net);
    return HL_OK;
}

/* A specification cannot ask for more than the file holds: every unit of every layer has a bias, and conditioners have at
 * least an output for each half of h. */
hl_status hl_model_check_size(hl_context *ctx, const char *path, const hl_tensors *t, const hl_net_spec *s,
                              size_t count)
{
    size_t elements = hl_model_values(t, s->dtype), needed = 0;
    for (; s; s = s->plus) {
        size_t hidden = s->hidden_layers > 0 ? s->hidden * (size_t)s->hidden_layers : 0;
        const hl_transformer *tau = hl_transformers[hl_name_index(hl_transformer_names, s->transformer)];
        const hl_conditioner *conditioner = hl_conditioners[hl_name_index(hl_conditioner_names, s->conditioner)];
        size_t width = s->layers > 0 && tau && !tau->no_layers ? s->width * (size_t)s->layers : 0;
        bool dense = conditioner && s->dim > conditioner->hidden_above;
        needed += s->dim * s->features / 2 + s->reflections * s->dim + s->mlp;
        needed += (dense ? hidden : 0) + width;
    }
    return hl_size_mul(needed, count) > elements
               ? hl_fail(ctx, HL_ERR_FORMAT, "%s: the tensors are too few for the architecture", hl_path_shown(path))
               : HL_OK;
}

hl_status hl_net_check_tensors(const hl_net *net, const char *prefix, const char *path, const hl_tensors *t)
{
    for (size_t i = 0; i < net->params; i++) {
        const hl_param_info *p = &net->param[i];
        char name[128], shape[120];
        snprintf(name, sizeof name, "%s%s", prefix, p->name);
        const hl_tensor *found = hl_tensors_find(t, name);
        if (!found)
            return hl_fail(net->ctx, HL_ERR_FORMAT, "%s: tensor '%s' is missing", hl_path_shown(path), name);
        bool same = found->dtype == net->dtype && found->rank == p->shape.rank;
        for (int a = 0; same && a < found->rank; a++)
            same = found->dims[a] == p->shape.dim[a];
        if (!same)
            return hl_fail(net->ctx, HL_ERR_FORMAT, "%s: tensor '%s' is not %s of %s, as the architecture needs",
                           hl_path_shown(path), name, hl_shape_text(&p->shape, shape, sizeof shape),
                           hl_dtype_name(net->dtype));
    }
    return HL_OK;
}

hl_status hl_net_take_tensors(hl_net *net, const char *prefix, const char *path, const hl_tensors *t)
{
    for (size_t i = 0; i < net->params; i++) {
        char name[128];
        hl_net_param p;
        hl_net_param_get(net, i, &p);
        snprintf(name, sizeof name, "%s%s", prefix, p.name);
        const hl_tensor *found = hl_tensors_find(t, name);
        memcpy(p.values, found->data, found->bytes);
    }
    hl_status status = hl_net_check(net);
    return status == HL_OK ? HL_OK : hl_model_blame(net->ctx, status, path, "");
}

/* The network that the specification says, if the tensors are those it needs. */
static hl_status make_net(hl_context *ctx, const char *path, const hl_tensors *t, const hl_net_spec *spec, hl_net **net)
{
    hl_status status = hl_model_check_size(ctx, path, t, spec, 1);
    if (status != HL_OK)
        return status;
    status = hl_net_declare(ctx, spec, net);
    if (status == HL_ERR_INVALID || status == HL_ERR_SHAPE)
        return hl_model_blame(ctx, status, path, "architecture: ");
    if (status == HL_OK)
        status = hl_net_check_tensors(*net, "", path, t);
    if (status == HL_OK && hl_tensors_count(t) != (*net)->params)
        status = hl_fail(ctx, HL_ERR_FORMAT, "%s: %zu tensors where the architecture has %zu", hl_path_shown(path),
                         hl_tensors_count(t), (*net)->params);
    if (status == HL_OK)
        status = hl_net_allocate(*net);
    return status == HL_OK ? hl_net_take_tensors(*net, "", path, t) : status;
}

static hl_status read_net(hl_context *ctx, const char *path, const hl_tensors *t, hl_net **net)
{
    const char *text = hl_tensors_metadata(t, "architecture");
    hl_architecture *a = NULL;
    hl_dtype dtype = HL_F32;
    hl_status status = text ? hl_model_check_format(ctx, path, t, format_text, "a model") : HL_OK;
    if (status == HL_OK)
        status = hl_architecture_read(ctx, path, text, dtype, &a);
    if (status == HL_OK)
        status = hl_model_dtype(ctx, path, t, &a->spec[0].dtype);
    if (status == HL_OK)
        status = make_net(ctx, path, t, a->spec, net);
    hl_architecture_free(a);
    return status;
}

/* Make a network of the table t, which it frees. */
static hl_status make_of(hl_context *ctx, const char *path, hl_tensors *t, hl_net **net)
{
    hl_status status = read_net(ctx, path, t, net);
    if (status != HL_OK) {
        hl_net_free(*net);
        *net = NULL;
    }
    hl_tensors_free(t);
    return status;
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
    return status == HL_OK ? make_of(ctx, path, t, net) : status;
}

hl_status hl_net_read(hl_context *ctx, const void *bytes, size_t size, hl_net **net)
{
    static const char name[] = "the network in memory";
    if (!ctx)
        return HL_ERR_INVALID;
    if (!bytes || !net)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_net_read: the bytes or the result is NULL");
    hl_tensors *t = NULL;
    *net = NULL;
    hl_status status = hl_tensors_read_memory(ctx, name, bytes, size, &t);
    return status == HL_OK ? make_of(ctx, name, t, net) : status;
}
