/* model.c - model files: safetensors with the specification of the network in the metadata.
 *
 *   format        "hollow-net 1"
 *   architecture  {"dim": 2, "context": 0, "time": true, "conditioner": "made", "image": [0, 0, 0], "kernel": 0, "features": 16,
 *                  "hidden": 64, "hidden_layers": 2, "transformer": "shared", "width": 64, "layers": 2, "activation": "tanh",
 *                  "reflections": 0, "mlp": 0, "plus": []}, with "order": [..] if there is one; "plus" lists further terms
 *   dtype         "f32" or "f64"
 *
 * A file is believed only as far as its tensors bear it out: memory is allocated after every parameter was found in the file
 * with the shape that the architecture gives it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "io/json.h"
#include "nn/model.h"

static const char format_text[] = "hollow-net 1";

/* ---- writing ---- */

/* Layers as a file counts them: 0 is none, where a specification has -1. */
static int layers_out(int layers)
{
    return layers < 0 ? 0 : layers;
}

/* Of one term, without what all terms share. */
static void write_term(hl_json_writer *w, const hl_net_spec *s)
{
    hl_json_put_text(w, "conditioner", s->conditioner);
    hl_json_open(w, "image", '[');
    for (size_t i = 0; i < 3; i++)
        hl_json_put_integer(w, NULL, (int64_t)s->image[i]);
    hl_json_close(w, ']');
    hl_json_put_integer(w, "kernel", (int64_t)s->kernel);
    hl_json_put_integer(w, "features", (int64_t)s->features);
    hl_json_put_integer(w, "hidden", (int64_t)s->hidden);
    hl_json_put_integer(w, "hidden_layers", layers_out(s->hidden_layers));
    hl_json_put_text(w, "transformer", s->transformer);
    hl_json_put_integer(w, "width", (int64_t)s->width);
    hl_json_put_integer(w, "layers", layers_out(s->layers));
    hl_json_put_text(w, "activation", s->activation);
    hl_json_put_integer(w, "reflections", (int64_t)s->reflections);
    hl_json_put_integer(w, "mlp", (int64_t)s->mlp);
    if (!s->order)
        return;
    hl_json_open(w, "order", '[');
    for (size_t i = 0; i < s->dim; i++)
        hl_json_put_integer(w, NULL, (int64_t)s->order[i]);
    hl_json_close(w, ']');
}

char *hl_net_architecture(const hl_net *net)
{
    hl_json_writer w = { .ctx = net->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_integer(&w, "dim", (int64_t)net->dim);
    hl_json_put_integer(&w, "context", (int64_t)net->context);
    hl_json_put_boolean(&w, "time", net->time);
    write_term(&w, &net->term[0].spec);
    hl_json_open(&w, "plus", '[');
    for (size_t i = 1; i < net->terms; i++) {
        hl_json_open(&w, NULL, '{');
        write_term(&w, &net->term[i].spec);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
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

static hl_status gather(const void *model, hl_tensors *t)
{
    const hl_net *net = model;
    hl_status status = hl_net_check(net);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "format", format_text);
    if (status == HL_OK)
        status = hl_model_set(net->ctx, t, "architecture", hl_net_architecture(net));
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(net->dtype));
    return status == HL_OK ? hl_net_add_tensors(net, "", t) : status;
}

/* ---- reading ---- */

static int layers_in(int64_t layers)
{
    return layers == 0 ? -1 : (int)layers;
}

/* The order of columns into memory of its own, or NULL if there is none. */
static size_t *read_order(hl_model_entries *r, size_t dim)
{
    const hl_json *j = hl_json_get(r->object, "order");
    if (r->status != HL_OK || !j)
        return NULL;
    if (!hl_json_is_array(j, dim)) {
        hl_model_bad(r, "'order' is not a list of dim integers");
        return NULL;
    }
    size_t *order = hl_calloc(r->ctx, dim, sizeof *order);
    if (!order)
        r->status = HL_ERR_NOMEM;
    j = j->first;
    for (size_t i = 0; order && i < dim; i++, j = j->next) /* what is no column is found when the network is made */
        order[i] = hl_json_is_integer(j) && j->integer >= 0 ? (size_t)j->integer : SIZE_MAX;
    return order;
}

/* One term; `order` is the caller's to free. */
static void read_term(hl_model_entries *r, hl_net_spec *s, size_t **order)
{
    s->conditioner = hl_model_text(r, "conditioner");
    hl_model_sizes(r, "image", 3, 1000000, s->image);
    s->kernel = (size_t)hl_model_integer(r, "kernel", 0, 31);
    s->features = (size_t)hl_model_integer(r, "features", 0, 65536);
    s->hidden = (size_t)hl_model_integer(r, "hidden", 0, 1 << 20);
    s->hidden_layers = layers_in(hl_model_integer(r, "hidden_layers", 0, 64));
    s->transformer = hl_model_text(r, "transformer");
    s->width = (size_t)hl_model_integer(r, "width", 0, 1 << 20);
    s->layers = layers_in(hl_model_integer(r, "layers", 0, 64));
    s->activation = hl_model_text(r, "activation");
    s->reflections = (size_t)hl_model_integer(r, "reflections", 0, HL_MAX_REFLECTIONS);
    s->mlp = (size_t)hl_model_integer(r, "mlp", 0, 1 << 20);
    if (r->status == HL_OK && (s->features == 0 || s->hidden == 0 || s->width == 0))
        hl_model_bad(r, "features, hidden and width must be at least 1");
    s->order = *order = read_order(r, s->dim);
}

/* All terms, chained by `plus`. */
static void read_spec(hl_model_entries *r, hl_net_spec *s, size_t **order)
{
    const hl_json *whole = r->object;
    const hl_json *plus = hl_json_get(whole, "plus"), *next = plus ? plus->first : NULL;
    size_t terms = 1 + (plus ? plus->count : 0);
    s[0].dim = (size_t)hl_model_integer(r, "dim", 0, 1000000);
    s[0].context = (size_t)hl_model_integer(r, "context", 0, 1000000);
    s[0].time = hl_model_truth(r, "time");
    if (r->status == HL_OK && s[0].dim == 0)
        hl_model_bad(r, "dim must be at least 1");
    if (r->status == HL_OK && (!hl_json_is_array(plus, terms - 1) || terms > HL_MAX_TERMS))
        hl_model_bad(r, "'plus' is missing or not a list of at most 63 networks");
    for (size_t i = 0; i < terms && r->status == HL_OK; i++) {
        r->object = i ? next : whole;
        next = i ? next->next : next;
        s[i].dim = s[0].dim;
        s[i].context = s[0].context;
        s[i].time = s[0].time;
        read_term(r, &s[i], &order[i]);
        s[i].plus = i + 1 < terms ? &s[i + 1] : NULL;
    }
    r->object = whole;
}

hl_status hl_architecture_read(hl_context *ctx, const char *path, const char *text, hl_dtype dtype,
                               hl_architecture **out)
{
    hl_architecture *a = hl_calloc(ctx, 1, sizeof *a);
    *out = a;
    if (!a)
        return HL_ERR_NOMEM;
    a->ctx = ctx;
    hl_status status = text ? hl_json_parse(ctx, text, strlen(text), &a->json) : HL_OK;
    hl_model_entries r = { ctx, path, "architecture", a->json.root, HL_OK };
    if (status == HL_ERR_NOMEM)
        return status;
    if (!hl_json_is_object(a->json.root))
        return hl_fail(ctx, HL_ERR_FORMAT, "%s: %s", hl_path_shown(path),
                       text ? "its architecture is not a JSON object" : "not a model of hollow (no architecture)");
    read_spec(&r, a->spec, a->order);
    a->spec[0].dtype = dtype;
    return r.status;
}

void hl_architecture_free(hl_architecture *a)
{
    if (!a)
        return;
    hl_json_free(&a->json);
    for (size_t i = 0; i < HL_MAX_TERMS; i++)
        hl_free(a->ctx, a->order[i]);
    hl_free(a->ctx, a);
}

hl_status hl_model_dtype(hl_context *ctx, const char *path, const hl_tensors *t, hl_dtype *dtype)
{
    const char *name = hl_tensors_metadata(t, "dtype");
    if (!name || (strcmp(name, "f32") != 0 && strcmp(name, "f64") != 0))
        return hl_fail(ctx, HL_ERR_FORMAT, "%s: the metadata have no dtype 'f32' or 'f64'", hl_path_shown(path));
    *dtype = strcmp(name, "f64") == 0 ? HL_F64 : HL_F32;
    return HL_OK;
}

/* A kind of files: the start of its format, and the kind in words. */
typedef struct file_kind {
    hl_file_kind kind;
    const char *format, *words;
} file_kind;

static const file_kind kinds[] = { { HL_FILE_DENSITY, "hollow-density ", "a density model" },
                                   { HL_FILE_SDE, "hollow-sde ", "a stochastic equation" },
                                   { HL_FILE_VAE, "hollow-vae ", "an autoencoder" },
                                   { HL_FILE_NET, "hollow-net ", "a network" },
                                   { HL_FILE_CHECKPOINT, "hollow-checkpoint ", "a checkpoint of an unfinished fit" } };
enum { KINDS = sizeof kinds / sizeof *kinds };

/* NULL: none of them. */
static const file_kind *kind_of(const char *format)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strncmp(format, kinds[i].format, strlen(kinds[i].format)) == 0)
            return &kinds[i];
    return NULL;
}

/* The format is the first of the metadata, which come first, after the length of the header. */
hl_file_kind hl_file_identify(const char *path)
{
    enum { LENGTH = 8, START = 512 };
    char start[START] = "";
    struct stat st;
    size_t count = 0;
    ptrdiff_t got;
    if (!path || stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        return HL_FILE_NONE;
    int fd = hl_fd_open(path, O_RDONLY | O_NONBLOCK, 0);
    while (fd >= 0 && count < START - 1 && (got = hl_fd_read(fd, start + count, START - 1 - count)) > 0)
        count += (size_t)got;
    if (fd >= 0)
        close(fd);
    for (size_t i = LENGTH; i < count; i++) {
        const file_kind *kind = start[i] == '"' ? kind_of(start + i + 1) : NULL;
        if (kind)
            return kind->kind;
    }
    return HL_FILE_OTHER;
}

hl_status hl_model_check_format(hl_context *ctx, const char *path, const hl_tensors *t, const char *newest,
                                const char *what)
{
    const char *found = hl_tensors_metadata(t, "format"), *blank = strrchr(newest, ' ');
    size_t family = (size_t)(blank - newest) + 1;
    const char *number = found && strncmp(found, newest, family) == 0 ? found + family : "";
    char *end = NULL;
    unsigned long version = *number >= '1' && *number <= '9' ? strtoul(number, &end, 10) : 0;
    if (version && !*end && version <= strtoul(blank, NULL, 10))
        return HL_OK;
    if (version && !*end)
        return hl_fail(ctx, HL_ERR_FORMAT,
                       "%s: a newer version of hollow wrote this file: its format is '%.30s', and hollow %s reads "
                       "formats up to '%s'; update hollow",
                       hl_path_shown(path), found, HL_VERSION, newest);
    if (found && kind_of(found) && strncmp(found, newest, family) != 0)
        return hl_fail(ctx, HL_ERR_FORMAT, "%s: %s, not %s (its format is '%.30s')", hl_path_shown(path),
                       kind_of(found)->words, what, found);
    return hl_fail(
        ctx, HL_ERR_FORMAT,
        "%s: not %s of hollow: its metadata have no known format; another program wrote it, or it is damaged",
        hl_path_shown(path), what);
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

static hl_status make(hl_context *ctx, const char *path, const hl_tensors *t, void **model)
{
    const char *text = hl_tensors_metadata(t, "architecture");
    hl_architecture *a = NULL;
    hl_net *net = NULL;
    hl_dtype dtype = HL_F32;
    hl_status status = text ? hl_model_check_format(ctx, path, t, format_text, "a model") : HL_OK;
    if (status == HL_OK)
        status = hl_architecture_read(ctx, path, text, dtype, &a);
    if (status == HL_OK)
        status = hl_model_dtype(ctx, path, t, &a->spec[0].dtype);
    if (status == HL_OK)
        status = make_net(ctx, path, t, a->spec, &net);
    *model = net;
    hl_architecture_free(a);
    return status;
}

static void discard(void *model)
{
    hl_net_free(model);
}

static const hl_model_kind kind = { "hl_net", "network", gather, make, discard };

hl_status hl_net_save(const hl_net *net, const char *path)
{
    return net ? hl_model_save(&kind, net->ctx, net, path) : HL_ERR_INVALID;
}

hl_status hl_net_write(const hl_net *net, void *bytes, size_t capacity, size_t *size)
{
    return net ? hl_model_write(&kind, net->ctx, net, bytes, capacity, size) : HL_ERR_INVALID;
}

hl_status hl_net_load(hl_context *ctx, const char *path, hl_net **out)
{
    void *model = NULL;
    hl_status status = hl_model_load(&kind, ctx, path, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
}

hl_status hl_net_read(hl_context *ctx, const void *bytes, size_t size, hl_net **out)
{
    void *model = NULL;
    hl_status status = hl_model_read(&kind, ctx, bytes, size, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
}
