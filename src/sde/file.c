/* file.c - models in files, and states of their fits.
 *
 * A model's file is a table of tensors; its metadata are
 *
 *   format        "hollow-sde 1"
 *   model         {"dim": 2, "network": "hollow", "time": false, "hidden": 64, "layers": 3, "activation": "swish", "components":
 *                  5, "diagonal": false, "density_hidden": 64, "density_layers": 3, "clamp": 5, "diffusion_start": 0.3,
 *                  "drift_scale": 1, "density": "mixture", "curvature": "exact"}
 *   architecture  of a hollow drift, as in a network's file; not there for plain networks
 *   flow          architecture of a density that is a flow, the sum of its networks; not there for mixtures
 *   columns       [{"name": "x1", "mean": 0.1, "deviation": 2}, ...]
 *   clock         {"name": "t", "first": 0, "last": 5}
 *   known         [{"drift": {"constant": 0, "linear": [0, 1]}, "diffusion": 0}, {}]; not there if nothing is known
 *   dtype         "f32" or "f64"
 *   note          any text
 *
 * and the parameters are called "drift.name", "diffusion.name" and "density.name". */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "learn/checkpoint.h"
#include "nn/model.h"
#include "sde/sde.h"

static const char format_text[] = "hollow-sde 1";
static const char *const prefixes[HL_SDE_NETS] = { "drift.", "diffusion.", "density." };

/* ---- labels ---- */

hl_status hl_sde_start_labels(hl_sde *s)
{
    s->name = hl_calloc(s->ctx, s->spec.dim + 1, sizeof *s->name);
    if (!s->name)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < s->spec.dim; i++)
        snprintf(s->name[i], HL_SDE_NAME, "x%zu", i + 1);
    snprintf(s->name[s->spec.dim], HL_SDE_NAME, "t");
    return hl_sde_set_note(s, "");
}

hl_status hl_sde_set_name(hl_sde *s, size_t column, const char *name)
{
    if (!s)
        return HL_ERR_INVALID;
    if (column > s->spec.dim || !name || !*name || strlen(name) >= HL_SDE_NAME || !hl_is_utf8(name))
        return hl_fail(s->ctx, HL_ERR_INVALID, "the name of column %zu is missing, not UTF-8, or of %d bytes or more",
                       column + 1, (int)HL_SDE_NAME);
    memmove(s->name[column], name, strlen(name) + 1);
    return HL_OK;
}

const char *hl_sde_name(const hl_sde *s, size_t column)
{
    return s && column <= s->spec.dim ? s->name[column] : NULL;
}

hl_status hl_sde_set_note(hl_sde *s, const char *note)
{
    if (!s)
        return HL_ERR_INVALID;
    note = note ? note : "";
    char *copy = hl_alloc(s->ctx, strlen(note) + 1);
    if (!copy)
        return HL_ERR_NOMEM;
    strcpy(copy, note);
    hl_free(s->ctx, s->note);
    s->note = copy;
    return HL_OK;
}

const char *hl_sde_note(const hl_sde *s)
{
    return s ? s->note : "";
}

/* ---- writing ---- */

/* The text of a JSON value, which is given back; NULL without memory. */
static char *dump(json_t *j)
{
    char *text = j ? json_dumps(j, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(j);
    return text;
}

static char *model_text(const hl_sde_spec *p)
{
    return dump(json_pack(
        "{s:I, s:s, s:b, s:I, s:i, s:s, s:I, s:b, s:I, s:i, s:f, s:f, s:f, s:s, s:s}", "dim", (json_int_t)p->dim,
        "network", p->network, "time", p->time != 0, "hidden", (json_int_t)p->hidden, "layers", p->layers, "activation",
        p->activation, "components", (json_int_t)p->components, "diagonal", p->diagonal != 0, "density_hidden",
        (json_int_t)p->density_hidden, "density_layers", p->density_layers, "clamp", p->clamp, "diffusion_start",
        p->diffusion_start, "drift_scale", p->drift_scale, "density", p->density, "curvature", p->curvature));
}

static char *columns_text(const hl_sde *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->spec.dim; i++)
        json_array_append_new(
            list, json_pack("{s:s, s:f, s:f}", "name", s->name[i], "mean", s->mean[i], "deviation", s->deviation[i]));
    if (json_array_size(list) == s->spec.dim)
        return dump(list);
    json_decref(list);
    return NULL;
}

static char *known_text(const hl_sde *s)
{
    json_t *list = json_array();
    bool good = list != NULL;
    for (size_t i = 0; good && i < s->spec.dim; i++) {
        const hl_sde_known *k = &s->known[i];
        json_t *entry = json_object(), *linear = json_array();
        for (size_t j = 0; k->drift && j < s->spec.dim; j++)
            json_array_append_new(linear, json_real(k->drift_linear[j]));
        good = entry && linear && (!k->drift || json_array_size(linear) == s->spec.dim);
        if (good && k->drift)
            good = json_object_set_new(entry, "drift",
                                       json_pack("{s:f, s:O}", "constant", k->drift_constant, "linear", linear)) == 0;
        if (good && k->diffusion)
            good = json_object_set_new(entry, "diffusion", json_real(k->diffusion_value)) == 0;
        json_decref(linear);
        good = json_array_append_new(list, entry) == 0 && good;
    }
    if (good)
        return dump(list);
    json_decref(list);
    return NULL;
}

static hl_status write_metadata(const hl_sde *s, hl_tensors *t)
{
    enum { TEXTS = 6 };
    static const char *const keys[TEXTS] = { "model", "columns", "clock", "architecture", "known", "flow" };
    char *text[TEXTS] = { model_text(&s->spec),
                          columns_text(s),
                          dump(json_pack("{s:s, s:f, s:f}", "name", s->name[s->spec.dim], "first", s->t_first, "last",
                                         s->t_last)),
                          s->hollow ? hl_net_architecture(s->net[0]) : NULL,
                          s->known ? known_text(s) : NULL,
                          s->flow.count ? hl_net_architecture(s->flow.net) : NULL };
    bool needed[TEXTS] = { true, true, true, s->hollow, s->known != NULL, s->flow.count > 0 };
    hl_status status = hl_tensors_set_metadata(t, "format", format_text);
    for (size_t i = 0; i < TEXTS; i++) {
        if (status == HL_OK && needed[i])
            status = text[i] ? hl_tensors_set_metadata(t, keys[i], text[i])
                             : hl_fail(s->ctx, HL_ERR_NOMEM, "out of memory for the model file");
        free(text[i]);
    }
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(s->spec.dtype));
    return status == HL_OK ? hl_tensors_set_metadata(t, "note", s->note) : status;
}

/* The model as a table of tensors, which borrows from it; the caller frees it, also after a failure. */
static hl_status gather(const hl_sde *s, hl_tensors **table)
{
    for (size_t i = 0; s->known && i < s->spec.dim; i++)
        if (s->known[i].drift_form || s->known[i].diffusion_form)
            return hl_fail(s->ctx, HL_ERR_UNSUPPORTED,
                           "a known form is a function of the program and cannot be in a file");
    hl_status status = hl_tensors_create(s->ctx, table);
    hl_tensors *t = *table;
    if (status == HL_OK)
        status = write_metadata(s, t);
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; n++) {
        status = hl_net_check(s->net[n]);
        if (status == HL_OK)
            status = hl_net_add_tensors(s->net[n], prefixes[n], t);
    }
    return status;
}

hl_status hl_sde_save(const hl_sde *s, const char *path)
{
    if (!s)
        return HL_ERR_INVALID;
    if (!path)
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_save: the path is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(s, &t);
    if (status == HL_OK)
        status = hl_tensors_write(t, path);
    hl_tensors_free(t);
    return status;
}

hl_status hl_sde_write(const hl_sde *s, void *bytes, size_t capacity, size_t *size)
{
    if (!s)
        return HL_ERR_INVALID;
    if (!size)
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_write: the size is NULL");
    hl_tensors *t = NULL;
    hl_status status = gather(s, &t);
    if (status == HL_OK)
        status = hl_tensors_write_memory(t, bytes, capacity, size);
    hl_tensors_free(t);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    hl_context *ctx;
    const char *path;
    const hl_tensors *t;
    json_t *model, *columns, *clock, *known_list;
    hl_architecture *architecture, *flow;
    hl_sde_spec spec;
    hl_sde_known *known;
    double *linear, *scale; /* scale: means, then deviations */
    hl_status status;       /* of the fields so far */
} reader;

static hl_status bad(reader *r, const char *what)
{
    r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: %s", hl_path_shown(r->path), what);
    return r->status;
}

static json_t *parse(const reader *r, const char *key)
{
    const char *text = hl_tensors_metadata(r->t, key);
    return text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
}

/* An entry of "model", an integer in least..most. */
static size_t integer(reader *r, const char *key, json_int_t least, json_int_t most)
{
    const json_t *j = json_object_get(r->model, key);
    json_int_t v = json_integer_value(j);
    if (r->status == HL_OK && (!json_is_integer(j) || v < least || v > most))
        r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: model: '%s' is missing or not an integer in %lld..%lld",
                            hl_path_shown(r->path), key, (long long)least, (long long)most);
    return r->status == HL_OK ? (size_t)v : 0;
}

/* A finite number of an object; `where` names it in the message. */
static double number(reader *r, const json_t *object, const char *where, const char *key)
{
    const json_t *j = json_object_get(object, key);
    double v = json_number_value(j);
    if (r->status == HL_OK && (!json_is_number(j) || !isfinite(v)))
        r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: %s: '%s' is missing or not a number", hl_path_shown(r->path),
                            where, key);
    return r->status == HL_OK ? v : 0;
}

static int truth(reader *r, const char *key)
{
    const json_t *j = json_object_get(r->model, key);
    if (r->status == HL_OK && !json_is_boolean(j))
        r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: model: '%s' is missing or not a truth value",
                            hl_path_shown(r->path), key);
    return json_is_true(j);
}

static const char *text(reader *r, const char *key)
{
    const char *v = json_string_value(json_object_get(r->model, key));
    if (r->status == HL_OK && !v)
        r->status =
            hl_fail(r->ctx, HL_ERR_FORMAT, "%s: model: '%s' is missing or not a text", hl_path_shown(r->path), key);
    return v;
}

static hl_status read_model(reader *r)
{
    hl_sde_spec *p = &r->spec;
    r->model = parse(r, "model");
    if (!json_is_object(r->model))
        return bad(r, "its model is missing or not a JSON object");
    p->dim = integer(r, "dim", 1, 10000);
    p->network = text(r, "network");
    p->time = truth(r, "time");
    p->hidden = integer(r, "hidden", 1, 100000);
    p->layers = (int)integer(r, "layers", 1, 64);
    p->activation = text(r, "activation");
    p->components = integer(r, "components", 1, 1000);
    p->diagonal = truth(r, "diagonal");
    p->density_hidden = integer(r, "density_hidden", 1, 100000);
    p->density_layers = (int)integer(r, "density_layers", 1, 64);
    p->clamp = number(r, r->model, "model", "clamp");
    p->diffusion_start = number(r, r->model, "model", "diffusion_start");
    p->drift_scale = number(r, r->model, "model", "drift_scale");
    p->density = text(r, "density");
    p->curvature = text(r, "curvature");
    if (r->status == HL_OK && !(p->clamp > 0 && p->diffusion_start > 0 && p->drift_scale > 0))
        return bad(r, "model: 'clamp', 'diffusion_start' and 'drift_scale' must be positive");
    if (r->status == HL_OK && strcmp(p->network, "hollow") != 0 && strcmp(p->network, "mlp") != 0)
        return bad(r, "model: 'network' is neither hollow nor mlp");
    return r->status;
}

/* Parameters of a plain network. */
static size_t dense_values(size_t in, size_t hidden, size_t layers, size_t out)
{
    size_t between = hl_size_mul(hl_size_mul(hidden, hl_size_add(hidden, 1)), layers - 1);
    size_t ends = hl_size_add(hl_size_mul(hidden, in + 1), hl_size_mul(out, hidden + 1));
    return hl_size_add(between, ends);
}

/* Tensors and values of a network of which the file must have room for `copies`. */
static hl_status count_values(const reader *r, const hl_net_spec *spec, size_t copies, size_t *tensors, size_t *values)
{
    hl_status status = hl_model_check_size(r->ctx, r->path, r->t, spec, copies);
    return status == HL_OK ? hl_model_count(r->ctx, r->path, spec, tensors, values) : status;
}

/* The file holds exactly what the model needs, before memory is taken for it. */
static hl_status check_size(reader *r)
{
    const hl_sde_spec *p = &r->spec;
    hl_mixture mixture = { .dim = p->dim, .components = p->components, .diagonal = p->diagonal };
    size_t values, motion, tensors = 2 * ((size_t)p->layers + 1), of_density = 2 * ((size_t)p->density_layers + 1);
    hl_status status = HL_OK;
    values = dense_values(1, p->density_hidden, (size_t)p->density_layers, hl_mixture_outputs(&mixture));
    motion = dense_values(p->dim + (p->time != 0), p->hidden, (size_t)p->layers, p->dim);
    if (r->architecture)
        status = count_values(r, r->architecture->spec, 2, &tensors, &motion);
    if (status == HL_OK && r->flow)
        status = count_values(r, r->flow->spec, 1, &of_density, &values);
    if (status != HL_OK)
        return status;
    values = hl_size_add(values, hl_size_mul(2, motion));
    tensors = 2 * tensors + of_density;
    if (values != hl_model_values(r->t, p->dtype) || tensors != hl_tensors_count(r->t))
        return bad(r, "its tensors are not those that the model needs");
    return HL_OK;
}

static hl_status read_architecture(reader *r)
{
    hl_status status = hl_model_dtype(r->ctx, r->path, r->t, &r->spec.dtype);
    if (status != HL_OK || strcmp(r->spec.network, "hollow") != 0)
        return status;
    status = hl_architecture_read(r->ctx, r->path, hl_tensors_metadata(r->t, "architecture"), r->spec.dtype,
                                  &r->architecture);
    if (status != HL_OK)
        return status;
    r->spec.net = r->architecture->spec[0];
    if (r->spec.net.dim != r->spec.dim || r->spec.net.context || !r->spec.net.time != !r->spec.time)
        return bad(r, "its architecture has other dimensions than the model, or a context");
    return HL_OK;
}

/* The networks of a flow are alike but for the order of the columns. */
static hl_status read_flow(reader *r)
{
    if (strcmp(r->spec.density, "flow") != 0)
        return HL_OK;
    hl_status status =
        hl_architecture_read(r->ctx, r->path, hl_tensors_metadata(r->t, "flow"), r->spec.dtype, &r->flow);
    if (status != HL_OK)
        return status;
    r->spec.flow = r->flow->spec[0];
    if (r->spec.flow.dim != r->spec.dim || r->spec.flow.context != 1)
        return bad(r, "its flow has other dimensions than the model");
    for (const hl_net_spec *term = r->flow->spec; term; term = term->plus)
        r->spec.flows++;
    r->spec.flow.order = NULL;
    r->spec.flow.plus = NULL;
    return HL_OK;
}

static hl_status read_known(reader *r)
{
    size_t d = r->spec.dim;
    if (!hl_tensors_metadata(r->t, "known"))
        return HL_OK;
    r->known_list = parse(r, "known");
    if (!json_is_array(r->known_list) || json_array_size(r->known_list) != d)
        return bad(r, "known: not a list of an entry for each column");
    r->known = hl_calloc(r->ctx, d, sizeof *r->known);
    r->linear = hl_calloc(r->ctx, hl_size_mul(d, d), sizeof *r->linear);
    if (!r->known || !r->linear)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < d; i++) {
        const json_t *entry = json_array_get(r->known_list, i), *drift = json_object_get(entry, "drift");
        const json_t *linear = json_object_get(drift, "linear");
        hl_sde_known *k = &r->known[i];
        *k = (hl_sde_known){ .drift = drift != NULL, .drift_linear = r->linear + i * d };
        k->diffusion = json_object_get(entry, "diffusion") != NULL;
        if (!json_is_object(entry) || (drift && (!json_is_array(linear) || json_array_size(linear) != d)))
            return bad(r, "known: an entry is no object, or its drift has not a number for each column");
        k->drift_constant = drift ? number(r, drift, "known", "constant") : 0;
        k->diffusion_value = k->diffusion ? number(r, entry, "known", "diffusion") : 0;
        for (size_t j = 0; drift && j < d; j++) {
            r->linear[i * d + j] = json_number_value(json_array_get(linear, j));
            if (!json_is_number(json_array_get(linear, j)))
                return bad(r, "known: 'linear' holds what is no number");
        }
    }
    r->spec.known = r->known;
    return r->status;
}

static hl_status read_scale(reader *r, hl_sde *s)
{
    size_t d = r->spec.dim;
    r->columns = parse(r, "columns");
    r->clock = parse(r, "clock");
    if (!json_is_array(r->columns) || json_array_size(r->columns) != d || !json_is_object(r->clock))
        return bad(r, "its columns or its clock are missing or wrong");
    r->scale = hl_calloc(r->ctx, d, 2 * sizeof *r->scale);
    hl_status status = r->scale ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i <= d && status == HL_OK; i++) {
        const json_t *c = i < d ? json_array_get(r->columns, i) : r->clock;
        status = hl_sde_set_name(s, i, json_string_value(json_object_get(c, "name")));
        if (i < d) {
            r->scale[i] = number(r, c, "columns", "mean");
            r->scale[d + i] = number(r, c, "columns", "deviation");
        }
    }
    double first = number(r, r->clock, "clock", "first"), last = number(r, r->clock, "clock", "last");
    if (status == HL_OK && r->status == HL_OK)
        status = hl_sde_set_scale(s, first, last, r->scale, r->scale + d);
    if (r->status != HL_OK)
        return r->status;
    return status == HL_OK || status == HL_ERR_NOMEM ? status : hl_model_blame(r->ctx, status, r->path, "");
}

static hl_status fill(reader *r, hl_sde *s)
{
    hl_status status = read_scale(r, s);
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; n++) {
        status = hl_net_check_tensors(s->net[n], prefixes[n], r->path, r->t);
        if (status == HL_OK)
            status = hl_net_take_tensors(s->net[n], prefixes[n], r->path, r->t);
    }
    return status == HL_OK ? hl_sde_set_note(s, hl_tensors_metadata(r->t, "note")) : status;
}

static hl_status read_sde(reader *r, hl_sde **out)
{
    hl_status status = hl_model_check_format(r->ctx, r->path, r->t, format_text, "a stochastic equation");
    if (status == HL_OK)
        status = read_model(r);
    if (status == HL_OK)
        status = read_architecture(r);
    if (status == HL_OK)
        status = read_flow(r);
    if (status == HL_OK)
        status = check_size(r);
    if (status == HL_OK)
        status = read_known(r);
    if (status != HL_OK)
        return status;
    status = hl_sde_create(r->ctx, &r->spec, out);
    if (status != HL_OK)
        return status == HL_ERR_NOMEM ? status : hl_model_blame(r->ctx, status, r->path, "");
    return fill(r, *out);
}

/* Make a model of the table t, which it frees. */
static hl_status make_of(hl_context *ctx, const char *path, hl_tensors *t, hl_sde **out)
{
    reader r = { .ctx = ctx, .path = path, .t = t };
    hl_status status = read_sde(&r, out);
    if (status != HL_OK) {
        hl_sde_free(*out);
        *out = NULL;
    }
    hl_architecture_free(r.architecture);
    hl_architecture_free(r.flow);
    json_t *const values[] = { r.model, r.columns, r.clock, r.known_list };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        json_decref(values[i]);
    hl_free(ctx, r.known);
    hl_free(ctx, r.linear);
    hl_free(ctx, r.scale);
    hl_tensors_free(t);
    return status;
}

hl_status hl_sde_load(hl_context *ctx, const char *path, hl_sde **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_load: the path or the result is NULL");
    hl_tensors *t = NULL;
    *out = NULL;
    hl_status status = hl_tensors_read(ctx, path, &t);
    return status == HL_OK ? make_of(ctx, path, t, out) : status;
}

hl_status hl_sde_read(hl_context *ctx, const void *bytes, size_t size, hl_sde **out)
{
    static const char name[] = "the model in memory";
    if (!ctx)
        return HL_ERR_INVALID;
    if (!bytes || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_read: the bytes or the result is NULL");
    hl_tensors *t = NULL;
    *out = NULL;
    hl_status status = hl_tensors_read_memory(ctx, name, bytes, size, &t);
    return status == HL_OK ? make_of(ctx, name, t, out) : status;
}

/* ---- checkpoints ---- */

hl_status hl_sde_fit_save(const hl_sde_fit *fit, const char *settings, const char *path)
{
    if (!fit)
        return HL_ERR_INVALID;
    hl_context *ctx = hl_sde_fit_context(fit);
    if (!path || !settings)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_fit_save: the path or the settings are NULL");
    size_t size = hl_sde_fit_state_size(fit);
    double *state = hl_calloc(ctx, size, sizeof *state);
    if (!state)
        return HL_ERR_NOMEM;
    hl_sde_fit_get_state(fit, state);
    hl_status status = hl_checkpoint_write(ctx, settings, path, size, state);
    hl_free(ctx, state);
    return status;
}

hl_status hl_sde_fit_load(hl_sde_fit *fit, const char *settings, const char *path)
{
    if (!fit)
        return HL_ERR_INVALID;
    hl_context *ctx = hl_sde_fit_context(fit);
    if (!path || !settings)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_fit_load: the path or the settings are NULL");
    double *state;
    hl_status status = hl_checkpoint_read(ctx, settings, path, hl_sde_fit_state_size(fit), &state);
    if (status == HL_OK && (status = hl_sde_fit_set_state(fit, state)) != HL_OK)
        status = hl_model_blame(ctx, status, path, "");
    hl_free(ctx, state);
    return status;
}
