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
 *   clock         {"name": "t", "first": 0, "last": 5}, with "dates": true if the times are years that were dates
 *   known         [{"drift": {"constant": 0, "linear": [0, 1]}, "diffusion": 0}, {}]; not there if nothing is known
 *   method        "fp" or "pseudo-ml": that of the last training; files of version 0.1 without it have it in the note
 *   simple        a regression to which drift and diffusion add, as in simple.c; not there if there is none
 *   forms         expressions of drift and diffusion, as in forms.c; not there if there are none
 *   bands         {"quantile": 1.7, "radius": 0.2, "points": [[..], ..]} of networks of simulated data; not there if there are none
 *   training      {"loss": [...], "density": [...]}, courses as in learn/curve.c; not there if they are not known
 *   dtype         "f32" or "f64"
 *   note          any text
 *
 * and the parameters are called "drift.name", "diffusion.name" and "density.name"; those of networks of simulated data are rows of
 * "bands.drift" and "bands.diffusion". */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hollow/sde_forms.h"
#include "io/file.h"
#include "learn/checkpoint.h"
#include "nn/model.h"
#include "sde/ensemble.h"
#include "sde/expression.h"
#include "sde/regress.h"
#include "sde/sde.h"

static const char format_text[] = "hollow-sde 1";
static const char *const course_keys[HL_SDE_COURSES] = { "loss", "density" };
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

int hl_sde_dates(const hl_sde *s)
{
    return s && s->dates;
}

const char *hl_sde_note(const hl_sde *s)
{
    return s ? s->note : "";
}

/* ---- the course ---- */

hl_curve *hl_sde_add_course(hl_sde *s)
{
    if (!s->course)
        s->course = hl_calloc(s->ctx, HL_SDE_COURSES, sizeof *s->course);
    return s->course;
}

const hl_training_point *hl_sde_course(const hl_sde *s, hl_sde_course_of which, size_t *count)
{
    bool known = s && s->course && which >= 0 && which < HL_SDE_COURSES && s->course[which].count;
    if (count)
        *count = known ? s->course[which].count : 0;
    return known ? s->course[which].point : NULL;
}

/* ---- writing ---- */

static char *model_text(const hl_sde *s)
{
    const hl_sde_spec *p = &s->spec;
    hl_json_writer w = { .ctx = s->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_integer(&w, "dim", (int64_t)p->dim);
    hl_json_put_text(&w, "network", p->network);
    hl_json_put_boolean(&w, "time", p->time != 0);
    hl_json_put_integer(&w, "hidden", (int64_t)p->hidden);
    hl_json_put_integer(&w, "layers", p->layers);
    hl_json_put_text(&w, "activation", p->activation);
    hl_json_put_integer(&w, "components", (int64_t)p->components);
    hl_json_put_boolean(&w, "diagonal", p->diagonal != 0);
    hl_json_put_integer(&w, "density_hidden", (int64_t)p->density_hidden);
    hl_json_put_integer(&w, "density_layers", p->density_layers);
    hl_json_put_real(&w, "clamp", p->clamp);
    hl_json_put_real(&w, "diffusion_start", p->diffusion_start);
    hl_json_put_real(&w, "drift_scale", p->drift_scale);
    hl_json_put_text(&w, "density", p->density);
    hl_json_put_text(&w, "curvature", p->curvature);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

static char *columns_text(const hl_sde *s)
{
    hl_json_writer w = { .ctx = s->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < s->spec.dim; i++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_text(&w, "name", s->name[i]);
        hl_json_put_real(&w, "mean", s->mean[i]);
        hl_json_put_real(&w, "deviation", s->deviation[i]);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

static char *clock_text(const hl_sde *s)
{
    hl_json_writer w = { .ctx = s->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_text(&w, "name", s->name[s->spec.dim]);
    hl_json_put_real(&w, "first", s->t_first);
    hl_json_put_real(&w, "last", s->t_last);
    if (s->dates)
        hl_json_put_boolean(&w, "dates", true);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

static char *known_text(const hl_sde *s)
{
    hl_json_writer w = { .ctx = s->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < s->spec.dim; i++) {
        const hl_sde_known *k = &s->known[i];
        hl_json_open(&w, NULL, '{');
        if (k->drift) {
            hl_json_open(&w, "drift", '{');
            hl_json_put_real(&w, "constant", k->drift_constant);
            hl_json_open(&w, "linear", '[');
            for (size_t j = 0; j < s->spec.dim; j++)
                hl_json_put_real(&w, NULL, k->drift_linear[j]);
            hl_json_close(&w, ']');
            hl_json_close(&w, '}');
        }
        if (k->diffusion)
            hl_json_put_real(&w, "diffusion", k->diffusion_value);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

static char *training_text(const hl_sde *s)
{
    hl_json_writer w = { .ctx = s->ctx };
    hl_json_open(&w, NULL, '{');
    for (size_t k = 0; k < HL_SDE_COURSES; k++)
        hl_curve_put(&s->course[k], &w, course_keys[k]);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

static hl_status write_metadata(const hl_sde *s, hl_tensors *t)
{
    enum { TEXTS = 10 };
    static const char *const keys[TEXTS] = { "model", "columns", "clock", "architecture", "known",
                                             "flow",  "simple",  "forms", "training",     "bands" };
    char *text[TEXTS] = { model_text(s),
                          columns_text(s),
                          clock_text(s),
                          s->hollow ? hl_net_architecture(s->net[0]) : NULL,
                          s->known ? known_text(s) : NULL,
                          s->flow.count ? hl_net_architecture(s->flow.net) : NULL,
                          s->simple ? hl_sde_simple_text(s->simple) : NULL,
                          s->forms ? hl_sde_forms_text(s->forms) : NULL,
                          s->course ? training_text(s) : NULL,
                          s->ensemble ? hl_ensemble_text(s) : NULL };
    bool needed[TEXTS] = { true,
                           true,
                           true,
                           s->hollow,
                           s->known != NULL,
                           s->flow.count > 0,
                           s->simple != NULL,
                           s->forms != NULL,
                           s->course != NULL,
                           s->ensemble != NULL };
    hl_status status = hl_tensors_set_metadata(t, "format", format_text);
    for (size_t i = 0; i < TEXTS; i++) {
        if (status == HL_OK && needed[i])
            status = text[i] ? hl_tensors_set_metadata(t, keys[i], text[i]) : HL_ERR_NOMEM;
        hl_free(s->ctx, text[i]);
    }
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "method", hl_sde_method_name(s->method));
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(s->spec.dtype));
    return status == HL_OK ? hl_tensors_set_metadata(t, "note", s->note) : status;
}

static hl_status gather(const void *model, hl_tensors *t)
{
    const hl_sde *s = model;
    for (size_t i = 0; s->known && i < s->spec.dim; i++)
        if ((s->known[i].drift_form && !hl_sde_forms_has(s->forms, 0, i)) ||
            (s->known[i].diffusion_form && !hl_sde_forms_has(s->forms, 1, i)))
            return hl_fail(s->ctx, HL_ERR_UNSUPPORTED,
                           "a model with a known part given as a C function cannot be saved");
    hl_status status = write_metadata(s, t);
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; n++) {
        status = hl_net_check(s->net[n]);
        if (status == HL_OK)
            status = hl_net_add_tensors(s->net[n], prefixes[n], t);
    }
    if (status == HL_OK && s->ensemble)
        status = hl_ensemble_add_tensors(s, t);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    hl_context *ctx;
    const char *path;
    const hl_tensors *t;
    hl_json_document model, columns, clock, known_list;
    hl_architecture *architecture, *flow;
    hl_sde_spec spec;
    hl_sde_known *known;
    hl_sde_simple *simple;
    hl_sde_forms *forms;
    double *linear, *scale; /* scale: means, then deviations */
    hl_status status;       /* of the fields so far */
} reader;

static hl_status bad(reader *r, const char *what)
{
    r->status = hl_fail(r->ctx, HL_ERR_FORMAT, "%s: %s", hl_path_shown(r->path), what);
    return r->status;
}

/* A finite number of an object; `where` names it in the message. */
static double number(reader *r, const hl_json *object, const char *where, const char *key)
{
    hl_model_entries e = { r->ctx, r->path, where, object, r->status };
    double value = hl_model_number(&e, key);
    r->status = e.status;
    return value;
}

static hl_status read_model(reader *r)
{
    hl_sde_spec *p = &r->spec;
    hl_status status = hl_model_parse(r->ctx, r->t, "model", &r->model);
    if (status != HL_OK)
        return status;
    if (!hl_json_is_object(r->model.root))
        return bad(r, "its model is missing or not a JSON object");
    hl_model_entries e = { r->ctx, r->path, "model", r->model.root, HL_OK };
    p->dim = (size_t)hl_model_integer(&e, "dim", 1, 10000);
    p->network = hl_model_text(&e, "network");
    p->time = hl_model_truth(&e, "time");
    p->hidden = (size_t)hl_model_integer(&e, "hidden", 1, 100000);
    p->layers = (int)hl_model_integer(&e, "layers", 1, 64);
    p->activation = hl_model_text(&e, "activation");
    p->components = (size_t)hl_model_integer(&e, "components", 1, 1000);
    p->diagonal = hl_model_truth(&e, "diagonal");
    p->density_hidden = (size_t)hl_model_integer(&e, "density_hidden", 1, 100000);
    p->density_layers = (int)hl_model_integer(&e, "density_layers", 1, 64);
    p->clamp = hl_model_number(&e, "clamp");
    p->diffusion_start = hl_model_number(&e, "diffusion_start");
    p->drift_scale = hl_model_number(&e, "drift_scale");
    p->density = hl_model_text(&e, "density");
    p->curvature = hl_model_text(&e, "curvature");
    if (e.status == HL_OK && !(p->clamp > 0 && p->diffusion_start > 0 && p->drift_scale > 0))
        return hl_model_bad(&e, "'clamp', 'diffusion_start' and 'drift_scale' must be positive");
    if (e.status == HL_OK && strcmp(p->network, "hollow") != 0 && strcmp(p->network, "mlp") != 0)
        return hl_model_bad(&e, "'network' is neither hollow nor mlp");
    return e.status;
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
    size_t values, motion, more = 0, more_tensors = 0, tensors = 2 * ((size_t)p->layers + 1),
                           of_density = 2 * ((size_t)p->density_layers + 1);
    hl_status status = HL_OK;
    values = dense_values(1, p->density_hidden, (size_t)p->density_layers, hl_mixture_outputs(&mixture));
    motion = dense_values(p->dim + (p->time != 0), p->hidden, (size_t)p->layers, p->dim);
    if (r->architecture)
        status = count_values(r, r->architecture->spec, 2, &tensors, &motion);
    if (status == HL_OK && r->flow)
        status = count_values(r, r->flow->spec, 1, &of_density, &values);
    if (status != HL_OK)
        return status;
    if (hl_tensors_metadata(r->t, "bands"))
        hl_ensemble_count(r->t, &more, &more_tensors);
    values = hl_size_add(hl_size_add(values, hl_size_mul(2, motion)), more);
    tensors = 2 * tensors + of_density + more_tensors;
    if (values != hl_model_values(r->t, p->dtype) || tensors != hl_tensors_count(r->t))
        return bad(r, "the tensors do not match the model");
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
    hl_status status = hl_model_parse(r->ctx, r->t, "known", &r->known_list);
    if (status != HL_OK)
        return status;
    if (!hl_json_is_array(r->known_list.root, d))
        return bad(r, "known: not a list with one entry per column");
    r->known = hl_calloc(r->ctx, d, sizeof *r->known);
    r->linear = hl_calloc(r->ctx, hl_size_mul(d, d), sizeof *r->linear);
    if (!r->known || !r->linear)
        return HL_ERR_NOMEM;
    const hl_json *entry = r->known_list.root->first;
    for (size_t i = 0; i < d; i++, entry = entry->next) {
        const hl_json *drift = hl_json_get(entry, "drift"), *linear = hl_json_get(drift, "linear");
        hl_sde_known *k = &r->known[i];
        *k = (hl_sde_known){ .drift = drift != NULL, .drift_linear = r->linear + i * d };
        k->diffusion = hl_json_get(entry, "diffusion") != NULL;
        if (!hl_json_is_object(entry) || (drift && !hl_json_is_array(linear, d)))
            return bad(r, "known: an entry is not an object, or its drift does not have one number per column");
        k->drift_constant = drift ? number(r, drift, "known", "constant") : 0;
        k->diffusion_value = k->diffusion ? number(r, entry, "known", "diffusion") : 0;
        const hl_json *factor = drift ? linear->first : NULL;
        for (size_t j = 0; drift && j < d; j++, factor = factor->next) {
            if (!hl_json_is_number(factor))
                return bad(r, "known: 'linear' contains a value that is not a number");
            r->linear[i * d + j] = factor->number;
        }
    }
    r->spec.known = r->known;
    return r->status;
}

/* Expressions are in the names of the columns. */
static hl_status read_forms(reader *r)
{
    const char *text = hl_tensors_metadata(r->t, "forms");
    size_t d = r->spec.dim;
    if (!text)
        return HL_OK;
    const char **names = hl_calloc(r->ctx, d + 1, sizeof *names);
    hl_json_document columns = { .root = NULL }, clock = { .root = NULL };
    hl_status status = names ? hl_model_parse(r->ctx, r->t, "columns", &columns) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_model_parse(r->ctx, r->t, "clock", &clock);
    const hl_json *c = status == HL_OK && hl_json_is_array(columns.root, d) ? columns.root->first : NULL;
    for (size_t i = 0; i < d && names; i++, c = c ? c->next : NULL)
        names[i] = hl_json_text(hl_json_get(c, "name"));
    if (names)
        names[d] = hl_json_text(hl_json_get(clock.root, "name"));
    if (status == HL_OK)
        status = hl_sde_forms_read(r->ctx, r->path, text, d, names, &r->forms);
    hl_json_free(&columns);
    hl_json_free(&clock);
    hl_free(r->ctx, names);
    r->spec.forms = r->forms;
    return status;
}

static hl_status read_scale(reader *r, hl_sde *s)
{
    size_t d = r->spec.dim;
    hl_status status = hl_model_parse(r->ctx, r->t, "columns", &r->columns);
    if (status == HL_OK)
        status = hl_model_parse(r->ctx, r->t, "clock", &r->clock);
    if (status != HL_OK)
        return status;
    const hl_json *clock = r->clock.root, *c = hl_json_is_array(r->columns.root, d) ? r->columns.root->first : NULL;
    if (!c || !hl_json_is_object(clock))
        return bad(r, "the columns or the times are missing or malformed");
    r->scale = hl_calloc(r->ctx, d, 2 * sizeof *r->scale);
    status = r->scale ? HL_OK : HL_ERR_NOMEM;
    for (size_t i = 0; i <= d && status == HL_OK; i++, c = c ? c->next : NULL) {
        status = hl_sde_set_name(s, i, hl_json_text(hl_json_get(i < d ? c : clock, "name")));
        if (i < d) {
            r->scale[i] = number(r, c, "columns", "mean");
            r->scale[d + i] = number(r, c, "columns", "deviation");
        }
    }
    const hl_json *dates = hl_json_get(clock, "dates");
    s->dates = dates && dates->kind == HL_JSON_BOOLEAN && dates->integer;
    double first = number(r, clock, "clock", "first"), last = number(r, clock, "clock", "last");
    if (status == HL_OK && r->status == HL_OK)
        status = hl_sde_set_scale(s, first, last, r->scale, r->scale + d);
    if (r->status != HL_OK)
        return r->status;
    return status == HL_OK || status == HL_ERR_NOMEM ? status : hl_model_blame(r->ctx, status, r->path, "");
}

static hl_status read_method(reader *r, hl_sde *s)
{
    static const char before[] = "method pseudo-ml"; /* the beginning of a note, in files without the key */
    const char *name = hl_tensors_metadata(r->t, "method"), *note = hl_tensors_metadata(r->t, "note");
    if (!name)
        name = hl_sde_method_name(note && strncmp(note, before, strlen(before)) == 0 ? HL_SDE_PSEUDO_LIKELIHOOD
                                                                                     : HL_SDE_FOKKER_PLANCK);
    for (s->method = 0; hl_sde_method_name(s->method); s->method++)
        if (strcmp(hl_sde_method_name(s->method), name) == 0)
            return HL_OK;
    return bad(r, "its method is neither fp nor pseudo-ml");
}

static hl_status read_training(reader *r, hl_sde *s)
{
    if (!hl_tensors_metadata(r->t, "training"))
        return HL_OK;
    hl_json_document training = { .root = NULL };
    hl_status status = hl_model_parse(r->ctx, r->t, "training", &training);
    hl_curve *course = status == HL_OK ? hl_sde_add_course(s) : NULL;
    for (size_t k = 0; course && k < HL_SDE_COURSES && status == HL_OK; k++)
        if (!hl_curve_read(&course[k], hl_json_get(training.root, course_keys[k])))
            status = bad(r, "the training history is malformed");
    hl_json_free(&training);
    return status == HL_OK && !course ? HL_ERR_NOMEM : status;
}

static hl_status read_bands(reader *r, hl_sde *s)
{
    if (!hl_tensors_metadata(r->t, "bands"))
        return HL_OK;
    if (s->simple)
        return bad(r, "it has a regression and the networks of bands; a model has one of them");
    hl_json_document bands = { .root = NULL };
    hl_status status = hl_model_parse(r->ctx, r->t, "bands", &bands);
    if (status == HL_OK)
        status = hl_ensemble_take(s, r->t, bands.root);
    hl_json_free(&bands);
    return status == HL_ERR_FORMAT ? bad(r, "the networks of its bands do not match the model") : status;
}

static hl_status fill(reader *r, hl_sde *s)
{
    hl_status status = read_scale(r, s);
    if (status == HL_OK)
        status = read_method(r, s);
    if (status == HL_OK)
        status = read_training(r, s);
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; n++) {
        status = hl_net_check_tensors(s->net[n], prefixes[n], r->path, r->t);
        if (status == HL_OK)
            status = hl_net_take_tensors(s->net[n], prefixes[n], r->path, r->t);
    }
    if (status == HL_OK)
        status = read_bands(r, s);
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
    if (status == HL_OK)
        status = read_forms(r);
    const char *simple = hl_tensors_metadata(r->t, "simple");
    if (status == HL_OK && simple)
        status = hl_sde_simple_parse(r->ctx, r->path, simple, r->spec.dim, &r->simple);
    if (status != HL_OK)
        return status;
    r->spec.simple = r->simple;
    status = hl_sde_create(r->ctx, &r->spec, out);
    if (status != HL_OK)
        return status == HL_ERR_NOMEM ? status : hl_model_blame(r->ctx, status, r->path, "");
    return fill(r, *out);
}

static hl_status make(hl_context *ctx, const char *path, const hl_tensors *t, void **model)
{
    reader r = { .ctx = ctx, .path = path, .t = t };
    hl_sde *sde = NULL;
    hl_status status = read_sde(&r, &sde);
    *model = sde;
    hl_architecture_free(r.architecture);
    hl_architecture_free(r.flow);
    hl_json_free(&r.model);
    hl_json_free(&r.columns);
    hl_json_free(&r.clock);
    hl_json_free(&r.known_list);
    hl_sde_simple_free(r.simple);
    hl_sde_forms_free(r.forms);
    hl_free(ctx, r.known);
    hl_free(ctx, r.linear);
    hl_free(ctx, r.scale);
    return status;
}

static void discard(void *model)
{
    hl_sde_free(model);
}

static const hl_model_kind kind = { "hl_sde", "model", gather, make, discard };

hl_status hl_sde_save(const hl_sde *s, const char *path)
{
    return s ? hl_model_save(&kind, s->ctx, s, path) : HL_ERR_INVALID;
}

hl_status hl_sde_write(const hl_sde *s, void *bytes, size_t capacity, size_t *size)
{
    return s ? hl_model_write(&kind, s->ctx, s, bytes, capacity, size) : HL_ERR_INVALID;
}

hl_status hl_sde_load(hl_context *ctx, const char *path, hl_sde **out)
{
    void *model = NULL;
    hl_status status = hl_model_load(&kind, ctx, path, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
}

hl_status hl_sde_read(hl_context *ctx, const void *bytes, size_t size, hl_sde **out)
{
    void *model = NULL;
    hl_status status = hl_model_read(&kind, ctx, bytes, size, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
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
