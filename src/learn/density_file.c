/* density_file.c - density models in files.
 *
 * A model's file is a table of tensors. A flow alone, without maps, has the format "hollow-density 1" and these metadata:
 *
 *   kind, flows   of the flow
 *   architecture  of its first network, as in a network's file
 *   columns       [{"name": "x1", "mean": 0.1, "deviation": 2}, ...], first those of x, then those of the context
 *   solver        {"method": "dopri5", "rtol": 1e-05, "atol": 1e-05}; the method is "divided dopri5" for a solver that divides, which programs
 *                 from before there was one refuse
 *   dtype         "f32" or "f64"
 *   note          any text
 *   training      of models that hl_density_fit made: the course of the flow's training and hashes of rows (hl_density_training_text)
 *
 * and the parameters of network i are called "i.name". A tensor "factor", of dim x dim doubles, is there if the columns that the
 * flow sees are decorrelated: they are this lower triangular matrix times what it sees.
 *
 * Any other model has the format "hollow-density 2" and besides
 *
 *   context       the number of columns that are context
 *   members       [{"kind": "flow", "weight": 0.7, "mapped": true}, {"kind": "mixture", "weight": 0.3, "mapped": false, "nu": 8}, ...],
 *                 without "nu" if the parts are normal distributions
 *
 * The keys of the flow are there if it is. Mixture k is in the tensors "mixture.k.weight" [parts], "mixture.k.mean" [parts, columns],
 * "mixture.k.factor" [parts, columns, columns]; its columns are those of the context, then those of x. If a member is mapped, "maps" is
 * [{"centre": 0, "scale": 1, "background": 0.01}, ...], an entry per column, and the tensor "map.i" [3, parts] has the weights, means and
 * deviations of the parts of column i.
 *
 * A model whose columns have forms has the format "hollow-density 3" and besides "forms", [{"form": "log", "low": 0, "edge": 0.01, "step": 1}, {}, ...],
 * an entry per column: the name of the form if it is not none, bounds that are finite, edge, centre and scale if there are any, origin and
 * step of the grid if there is one, "least" and "most" if draws have such limits. If it has atoms, it has no members and "atoms" besides (density_file_atoms.c).
 *
 * The format is "hollow-density 4" if a map ends with the rows that it was fitted to: its entry has "low" and "high" besides. It
 * is "hollow-density 5" if columns of texts are in the context; then there are "categories" (density_categories.c). */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "learn/density_atoms.h"
#include "nn/model.h"

static const char format_text[] = "hollow-density 1", members_format[] = "hollow-density 2",
                  forms_format[] = "hollow-density 3", ranges_format[] = "hollow-density 4",
                  categories_format[] = "hollow-density 5";
static const char divided_prefix[] = "divided "; /* of a method */

/* Is it more than a flow? */
static bool has_members(const hl_density *m)
{
    return m->mixtures || m->map || !m->flow || m->form || m->categories;
}

/* Does a map end with its rows? */
static bool has_ranges(const hl_density *m)
{
    for (size_t i = 0; m->map && i < m->dim + m->context; i++)
        if (m->map[i]->low > -INFINITY || m->map[i]->high < INFINITY)
            return true;
    return false;
}

/* ---- writing ---- */

static char *columns_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < m->dim + m->context; i++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_text(&w, "name", m->column[i].name);
        hl_json_put_real(&w, "mean", m->column[i].mean);
        hl_json_put_real(&w, "deviation", m->column[i].deviation);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

static char *solver_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '{');
    char method[sizeof divided_prefix + sizeof m->method];
    snprintf(method, sizeof method, "%s%s", m->solver.divided ? divided_prefix : "", m->method);
    hl_json_put_text(&w, "method", method);
    hl_json_put_real(&w, "rtol", m->solver.rtol);
    hl_json_put_real(&w, "atol", m->solver.atol);
    hl_json_put_integer(&w, "steps", (int64_t)m->solver.steps);
    if (m->solver.start_error > 0)
        hl_json_put_real(&w, "start_error", m->solver.start_error);
    if (m->solver.even_steps)
        hl_json_put_integer(&w, "even_steps", (int64_t)m->solver.even_steps);
    if (m->accuracy.evaluations > 0) {
        hl_json_open(&w, "accuracy", '{');
        hl_json_put_real(&w, "typical", m->accuracy.typical);
        hl_json_put_real(&w, "worst", m->accuracy.worst);
        hl_json_put_real(&w, "evaluations", m->accuracy.evaluations);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

static char *maps_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < m->dim + m->context; i++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_real(&w, "centre", m->map[i]->centre);
        hl_json_put_real(&w, "scale", m->map[i]->scale);
        hl_json_put_real(&w, "background", m->map[i]->background);
        if (m->map[i]->low > -INFINITY)
            hl_json_put_real(&w, "low", m->map[i]->low);
        if (m->map[i]->high < INFINITY)
            hl_json_put_real(&w, "high", m->map[i]->high);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

/* The numbers of a form, by their names in files, and what they are if they are not there. */
static const struct form_number {
    const char *name;
    size_t offset;
    double otherwise;
} form_numbers[] = {
    { "low", offsetof(hl_column_form, low), -INFINITY },  { "high", offsetof(hl_column_form, high), INFINITY },
    { "centre", offsetof(hl_column_form, centre), 0 },    { "scale", offsetof(hl_column_form, scale), 1 },
    { "edge", offsetof(hl_column_form, edge), 0 },        { "origin", offsetof(hl_column_form, origin), 0 },
    { "step", offsetof(hl_column_form, step), 0 },        { "least", offsetof(hl_column_form, least), -INFINITY },
    { "most", offsetof(hl_column_form, most), INFINITY },
};
enum { FORM_NUMBERS = sizeof form_numbers / sizeof *form_numbers };

static double *form_number(hl_column_form *form, size_t i)
{
    return (double *)((char *)form + form_numbers[i].offset);
}

static char *forms_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '[');
    for (size_t i = 0; i < m->dim + m->context; i++) {
        hl_column_form form = m->form[i];
        hl_json_open(&w, NULL, '{');
        if (form.kind != HL_FORM_NONE)
            hl_json_put_text(&w, "form", hl_form_names[form.kind]);
        for (size_t k = 0; k < FORM_NUMBERS; k++)
            if (*form_number(&form, k) != form_numbers[k].otherwise)
                hl_json_put_real(&w, form_numbers[k].name, *form_number(&form, k));
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

static void put_member(hl_json_writer *w, const char *kind, double weight, bool mapped, double nu)
{
    hl_json_open(w, NULL, '{');
    hl_json_put_text(w, "kind", kind);
    hl_json_put_real(w, "weight", weight);
    hl_json_put_boolean(w, "mapped", mapped);
    if (isfinite(nu))
        hl_json_put_real(w, "nu", nu);
    hl_json_close(w, '}');
}

static char *members_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '[');
    if (m->flow)
        put_member(&w, "flow", m->flow_weight, m->flow_mapped, INFINITY);
    for (size_t k = 0; k < m->mixtures; k++)
        put_member(&w, "mixture", m->mixture[k].weight, m->mixture[k].mapped, m->mixture[k].mixture->nu);
    hl_json_close(&w, ']');
    return hl_json_finish(&w);
}

static hl_status write_flow_metadata(const hl_density *m, hl_tensors *t)
{
    char flows[24];
    snprintf(flows, sizeof flows, "%zu", m->flow->spec.flows);
    hl_status status = hl_tensors_set_metadata(t, "kind", m->flow->kind->name);
    if (status == HL_OK)
        status = hl_tensors_set_metadata(t, "flows", flows);
    if (status == HL_OK)
        status = hl_model_set(m->ctx, t, "architecture", hl_net_architecture(m->flow->net[0]));
    return status;
}

static hl_status write_metadata(const hl_density *m, hl_tensors *t)
{
    char context[24];
    snprintf(context, sizeof context, "%zu", m->context);
    hl_status status = hl_tensors_set_metadata(t, "format",
                                               m->categories    ? categories_format
                                               : has_ranges(m)  ? ranges_format
                                               : m->form        ? forms_format
                                               : has_members(m) ? members_format
                                                                : format_text);
    if (status == HL_OK && m->flow)
        status = write_flow_metadata(m, t);
    if (status == HL_OK)
        status = hl_model_set(m->ctx, t, "columns", columns_text(m));
    if (status == HL_OK && m->flow)
        status = hl_model_set(m->ctx, t, "solver", solver_text(m));
    if (status == HL_OK && m->flow)
        status = hl_tensors_set_metadata(t, "dtype", hl_dtype_name(m->flow->net[0]->dtype));
    if (status == HL_OK && has_members(m))
        status = hl_model_set(m->ctx, t, "members", members_text(m));
    if (status == HL_OK && has_members(m))
        status = hl_tensors_set_metadata(t, "context", context);
    if (status == HL_OK && m->map)
        status = hl_model_set(m->ctx, t, "maps", maps_text(m));
    if (status == HL_OK && m->form)
        status = hl_model_set(m->ctx, t, "forms", forms_text(m));
    if (status == HL_OK && m->categories)
        status = hl_model_set(m->ctx, t, "categories", hl_density_categories_text(m));
    if (status == HL_OK && m->training)
        status = hl_model_set(m->ctx, t, "training", hl_density_training_text(m));
    return status == HL_OK ? hl_tensors_set_metadata(t, "note", m->note) : status;
}

static hl_status add_mixture(const hl_tmixture *x, size_t k, hl_tensors *t)
{
    const size_t dims[3] = { x->parts, x->dim, x->dim };
    const struct {
        const char *name;
        const double *values;
    } parts[] = { { "weight", x->weight }, { "mean", x->mean }, { "factor", x->factor } };
    hl_status status = HL_OK;
    for (int i = 0; i < 3 && status == HL_OK; i++) {
        char name[48];
        snprintf(name, sizeof name, "mixture.%zu.%s", k, parts[i].name);
        status = hl_tensors_add(t, name, HL_F64, i + 1, dims, parts[i].values);
    }
    return status;
}

static hl_status gather(const void *model, hl_tensors *t)
{
    const hl_density *m = model;
    hl_status status = write_metadata(m, t);
    char name[48];
    for (size_t i = 0; m->flow && i < m->flow->nets && status == HL_OK; i++) {
        snprintf(name, sizeof name, "%zu.", i);
        status = hl_net_check(m->flow->net[i]);
        if (status == HL_OK)
            status = hl_net_add_tensors(m->flow->net[i], name, t);
    }
    const size_t square[2] = { m->dim, m->dim };
    if (status == HL_OK && m->factor)
        status = hl_tensors_add(t, "factor", HL_F64, 2, square, m->factor);
    for (size_t k = 0; k < m->mixtures && status == HL_OK; k++)
        status = add_mixture(m->mixture[k].mixture, k, t);
    for (size_t i = 0; m->map && i < m->dim + m->context && status == HL_OK; i++) {
        const size_t dims[2] = { 3, m->map[i]->parts };
        snprintf(name, sizeof name, "map.%zu", i);
        status = hl_tensors_add(t, name, HL_F64, 2, dims, m->map[i]->weight);
    }
    return status == HL_OK && m->atoms ? hl_atoms_gather(m, t) : status;
}

/* ---- reading ---- */

typedef struct reader {
    hl_context *ctx;
    const char *path;
    const hl_tensors *t;
    hl_architecture *architecture; /* NULL: no flow */
    hl_flow_spec spec;
    size_t dim, context, tensors; /* tensors: those that were taken */
    hl_json_document columns, solver, members, maps, forms, atoms, training, categories;
} reader;

static hl_status bad(const reader *r, const char *what)
{
    return hl_fail(r->ctx, HL_ERR_FORMAT, "%s: %s", hl_path_shown(r->path), what);
}

static hl_status read_flow(reader *r)
{
    const char *flows = hl_tensors_metadata(r->t, "flows");
    hl_dtype dtype;
    hl_status status = hl_model_dtype(r->ctx, r->path, r->t, &dtype);
    if (status == HL_OK)
        status =
            hl_architecture_read(r->ctx, r->path, hl_tensors_metadata(r->t, "architecture"), dtype, &r->architecture);
    if (status != HL_OK)
        return status;
    r->spec.kind = hl_tensors_metadata(r->t, "kind");
    r->spec.net = r->architecture->spec[0];
    size_t digits = flows ? strspn(flows, "0123456789") : 0;
    if (digits >= 1 && digits <= 4 && !flows[digits])
        r->spec.flows = strtoul(flows, NULL, 10);
    if (!r->spec.kind || r->spec.flows < 1)
        return bad(r, "its kind or its number of flows is missing or wrong");
    if (!hl_flow_is_continuous(r->spec.kind)) /* these belong to the kind */
        r->spec.net.conditioner = r->spec.net.transformer = NULL;
    return HL_OK;
}

static hl_status read_columns(const reader *r, hl_density_column *columns)
{
    size_t count = r->dim + r->context;
    if (!hl_json_is_array(r->columns.root, count))
        return bad(r, "the columns are missing or do not match the architecture");
    const hl_json *c = r->columns.root->first;
    for (size_t i = 0; i < count; i++, c = c->next) {
        const hl_json *mean = hl_json_get(c, "mean"), *deviation = hl_json_get(c, "deviation");
        const char *name = hl_json_text(hl_json_get(c, "name"));
        if (!name || !hl_json_is_number(mean) || !hl_json_is_number(deviation))
            return bad(r, "a column has no name, mean or deviation");
        columns[i] = (hl_density_column){ name, mean->number, deviation->number };
    }
    return HL_OK;
}

/* What the flow's networks hold must be in the file before memory is taken for it. */
static hl_status check_nets(reader *r)
{
    hl_status status = hl_model_check_size(r->ctx, r->path, r->t, r->architecture->spec, r->spec.flows);
    size_t needed = 0, tensors = 0, flows = r->spec.flows;
    if (status == HL_OK)
        status = hl_model_count(r->ctx, r->path, r->architecture->spec, &tensors, &needed);
    if (status != HL_OK)
        return status;
    bool few = hl_size_mul(needed, flows) > hl_model_values(r->t, r->spec.net.dtype) ||
               hl_size_mul(tensors, flows) > hl_tensors_count(r->t);
    return few ? bad(r, "the tensors are too few for the architecture") : HL_OK;
}

/* A number >= 0 of an object; -1 if it is something else, 0 if it is missing. */
static double read_positive(const hl_json *j, const char *key)
{
    const hl_json *number = hl_json_get(j, key);
    if (!number)
        return 0;
    return hl_json_is_number(number) && isfinite(number->number) && number->number >= 0 ? number->number : -1;
}

static hl_status read_solver(const reader *r, hl_density *m)
{
    const hl_json *j = r->solver.root, *rtol = hl_json_get(j, "rtol"), *atol = hl_json_get(j, "atol");
    const hl_json *steps = hl_json_get(j, "steps"), *even = hl_json_get(j, "even_steps");
    const char *method = hl_json_text(hl_json_get(j, "method"));
    bool divided = method && strncmp(method, divided_prefix, sizeof divided_prefix - 1) == 0;
    method = divided ? method + sizeof divided_prefix - 1 : method;
    if (!method || strlen(method) >= sizeof m->method || !hl_json_is_number(rtol) || !hl_json_is_number(atol) ||
        !hl_json_is_integer(steps) || steps->integer < 0 || steps->integer > 1000000)
        return bad(r, "its solver is missing or wrong");
    hl_flow_solver s = {
        .method = method, .rtol = rtol->number, .atol = atol->number, .steps = (size_t)steps->integer
    };
    const hl_json *accuracy = hl_json_get(j, "accuracy");
    hl_density_accuracy a = { read_positive(accuracy, "typical"), read_positive(accuracy, "worst"),
                              read_positive(accuracy, "evaluations") };
    s.start_error = read_positive(j, "start_error");
    if (even && (!hl_json_is_integer(even) || even->integer < 0 || even->integer > 1000000))
        return bad(r, "its solver is missing or wrong");
    s.even_steps = even ? (size_t)even->integer : 0;
    s.divided = divided;
    if (s.start_error < 0 || a.typical < 0 || a.worst < 0 || a.evaluations < 0)
        return bad(r, "its solver is missing or wrong");
    hl_status status = hl_density_set_solver(m, &s);
    if (status != HL_OK)
        return hl_model_blame(r->ctx, status, r->path, "solver: ");
    m->accuracy = a;
    return HL_OK;
}

static hl_status read_factor(const reader *r, hl_density *m)
{
    const hl_tensor *factor = hl_tensors_find(r->t, "factor");
    if (!factor)
        return HL_OK;
    if (factor->dtype != HL_F64 || factor->rank != 2 || factor->dims[0] != m->dim || factor->dims[1] != m->dim)
        return bad(r, "its factor of the columns is not a square of doubles as large as there are columns");
    hl_status status = hl_density_set_factor(m, factor->data);
    return status == HL_OK ? HL_OK : hl_model_blame(r->ctx, status, r->path, "");
}

static hl_status fill_flow(reader *r, hl_density *m)
{
    hl_status status = read_solver(r, m);
    if (status == HL_OK)
        status = read_factor(r, m);
    r->tensors += m->factor ? 1 : 0;
    for (size_t i = 0; i < m->flow->nets && status == HL_OK; i++) {
        char prefix[24];
        snprintf(prefix, sizeof prefix, "%zu.", i);
        status = hl_net_check_tensors(m->flow->net[i], prefix, r->path, r->t);
        if (status == HL_OK)
            status = hl_net_take_tensors(m->flow->net[i], prefix, r->path, r->t);
        r->tensors += m->flow->net[i]->params;
    }
    return status;
}

/* A tensor of doubles with these dimensions; 0 in dims is taken from it. NULL if it is not there or different. */
static const double *take(reader *r, const char *name, int rank, size_t dims[3])
{
    const hl_tensor *x = hl_tensors_find(r->t, name);
    if (!x || x->dtype != HL_F64 || x->rank != rank)
        return NULL;
    for (int i = 0; i < rank; i++) {
        dims[i] = dims[i] ? dims[i] : x->dims[i];
        if (x->dims[i] != dims[i])
            return NULL;
    }
    r->tensors++;
    return x->data;
}

static hl_status read_maps(reader *r, hl_density *m)
{
    size_t all = m->dim + m->context;
    if (!hl_json_is_array(r->maps.root, all))
        return bad(r, "the number of maps differs from the number of columns");
    m->map = hl_calloc(r->ctx, all, sizeof(hl_column_map *));
    if (!m->map)
        return HL_ERR_NOMEM;
    const hl_json *j = r->maps.root->first;
    for (size_t i = 0; i < all; i++, j = j->next) {
        const hl_json *centre = hl_json_get(j, "centre"), *scale = hl_json_get(j, "scale");
        const hl_json *background = hl_json_get(j, "background");
        char name[32];
        size_t dims[3] = { 3, 0, 0 };
        snprintf(name, sizeof name, "map.%zu", i);
        const double *values = take(r, name, 2, dims);
        if (!values || !hl_json_is_number(centre) || !hl_json_is_number(scale) || !hl_json_is_number(background))
            return bad(r, "a map of its columns is missing or incomplete");
        hl_status status = hl_column_map_create(r->ctx, dims[1], &m->map[i]);
        if (status != HL_OK)
            return status;
        m->map[i]->centre = centre->number;
        m->map[i]->scale = scale->number;
        m->map[i]->background = background->number;
        const hl_json *low = hl_json_get(j, "low"), *high = hl_json_get(j, "high");
        if ((low && !hl_json_is_number(low)) || (high && !hl_json_is_number(high)))
            return bad(r, "a map of its columns has impossible values");
        m->map[i]->low = low ? low->number : -INFINITY;
        m->map[i]->high = high ? high->number : INFINITY;
        memcpy(m->map[i]->weight, values, 3 * dims[1] * sizeof *values);
        if (!hl_column_map_valid(m->map[i]))
            return bad(r, "a map of its columns has impossible values");
    }
    return HL_OK;
}

static hl_status read_mixture(reader *r, hl_density *m, double weight, bool mapped, double nu)
{
    size_t all = m->dim + m->context, dims[3] = { 0, all, all }, k = m->mixtures;
    const double *values[3];
    static const char *const names[] = { "weight", "mean", "factor" };
    for (int i = 0; i < 3; i++) {
        char name[48];
        snprintf(name, sizeof name, "mixture.%zu.%s", k, names[i]);
        values[i] = take(r, name, i + 1, dims);
        if (!values[i] || !dims[0])
            return bad(r, "a mixture is missing or does not have the right shape");
    }
    hl_tmixture *x = NULL;
    hl_status status = hl_tmixture_create(r->ctx, all, m->context, dims[0], nu, &x);
    if (status != HL_OK)
        return status;
    memcpy(x->weight, values[0], dims[0] * sizeof **values);
    memcpy(x->mean, values[1], dims[0] * all * sizeof **values);
    memcpy(x->factor, values[2], dims[0] * all * all * sizeof **values);
    status = hl_tmixture_prepare(x);
    if (status != HL_OK) {
        hl_tmixture_free(x);
        return hl_model_blame(r->ctx, status, r->path, "");
    }
    status = hl_density_add_mixture(m, x, mapped, weight);
    return status == HL_OK ? HL_OK : hl_model_blame(r->ctx, status, r->path, "");
}

/* Weights of all members, and the mixtures. */
static hl_status read_members(reader *r, hl_density *m)
{
    double total = 0;
    hl_status status = HL_OK;
    for (const hl_json *j = r->members.root->first; j && status == HL_OK; j = j->next) {
        const hl_json *weight = hl_json_get(j, "weight"), *mapped = hl_json_get(j, "mapped"),
                      *nu = hl_json_get(j, "nu");
        const char *kind = hl_json_text(hl_json_get(j, "kind"));
        bool flow = kind && strcmp(kind, "flow") == 0, mixture = kind && strcmp(kind, "mixture") == 0;
        if ((!flow && !mixture) || !hl_json_is_number(weight) || !(weight->number > 0 && weight->number <= 1) ||
            !mapped || mapped->kind != HL_JSON_BOOLEAN || (nu && !(hl_json_is_number(nu) && nu->number > 0)))
            return bad(r, "a member has an unknown kind, no weight or no map");
        if (mapped->integer && !m->map)
            return bad(r, "a member uses mapped columns, but there are no maps");
        if (flow && (!m->flow || j != r->members.root->first))
            return bad(r, "its members and its flow do not agree");
        total += weight->number;
        if (flow) {
            m->flow_weight = weight->number;
            m->flow_mapped = mapped->integer != 0;
        } else {
            status = read_mixture(r, m, weight->number, mapped->integer != 0, nu ? nu->number : INFINITY);
        }
    }
    if (status == HL_OK && (!(fabs(total - 1) <= 1e-9) || (m->flow && m->flow_weight == 0)))
        status = bad(r, "the weights of the members do not add up to 1");
    return status;
}

static hl_status read_form(const reader *r, const hl_json *j, hl_column_form *form)
{
    const hl_json *name = hl_json_get(j, "form");
    *form = hl_column_form_none();
    if (name) {
        const char *text = hl_json_text(name);
        size_t kind = text ? hl_name_index(hl_form_names, text) : SIZE_MAX;
        if (kind > HL_FORM_ASINH)
            return bad(r, "a column has an unknown form");
        form->kind = (hl_form_kind)kind;
    }
    for (size_t k = 0; k < FORM_NUMBERS; k++) {
        const hl_json *number = hl_json_get(j, form_numbers[k].name);
        if (number && !hl_json_is_number(number))
            return bad(r, "a form of its columns is wrong");
        *form_number(form, k) = number ? number->number : form_numbers[k].otherwise;
    }
    return hl_column_form_valid(form) ? HL_OK : bad(r, "a form of its columns has impossible values");
}

static hl_status read_forms(const reader *r, hl_density *m)
{
    size_t all = m->dim + m->context;
    if (!hl_json_is_array(r->forms.root, all))
        return bad(r, "the number of forms differs from the number of columns");
    hl_column_form *form = hl_calloc(r->ctx, all, sizeof *form);
    hl_status status = form ? HL_OK : HL_ERR_NOMEM;
    const hl_json *j = r->forms.root->first;
    for (size_t i = 0; i < all && status == HL_OK; i++, j = j->next)
        status = read_form(r, j, &form[i]);
    if (status == HL_OK)
        status = hl_density_set_forms(m, form);
    hl_free(r->ctx, form);
    return status;
}

static hl_status fill(reader *r, hl_density *m)
{
    hl_status status = m->flow ? fill_flow(r, m) : HL_OK;
    if (status == HL_OK && r->maps.root)
        status = read_maps(r, m);
    if (status == HL_OK && r->forms.root)
        status = read_forms(r, m);
    if (status == HL_OK && r->atoms.root) {
        status = hl_atoms_read(m, r->path, r->t, r->atoms.root, &r->tensors);
    } else if (status == HL_OK && r->members.root) {
        m->flow_weight = 0;
        status = read_members(r, m);
    }
    if (status == HL_OK && r->tensors != hl_tensors_count(r->t))
        status = bad(r, "it has tensors that the architecture does not have");
    if (status == HL_OK && r->categories.root) {
        status = hl_density_categories_read(m, r->categories.root);
        status = status == HL_ERR_FORMAT ? bad(r, "its categories are wrong") : status;
    }
    if (status == HL_OK && r->training.root)
        status = hl_density_training_read(m, r->path, r->training.root);
    return status == HL_OK ? hl_density_set_note(m, hl_tensors_metadata(r->t, "note")) : status;
}

/* How many columns are context, and that there are members. */
static hl_status read_layout(reader *r)
{
    const char *context = hl_tensors_metadata(r->t, "context");
    size_t digits = context ? strspn(context, "0123456789") : 0;
    hl_status status = hl_model_parse(r->ctx, r->t, "members", &r->members);
    if (status == HL_OK)
        status = hl_model_parse(r->ctx, r->t, "maps", &r->maps);
    if (status != HL_OK)
        return status;
    if (!r->atoms.root && (!r->members.root || r->members.root->kind != HL_JSON_ARRAY || !r->members.root->count))
        return bad(r, "its members are missing");
    if (!r->columns.root || r->columns.root->kind != HL_JSON_ARRAY || digits < 1 || digits > 9 || context[digits])
        return bad(r, "its columns or the number of those that are context are missing");
    r->context = strtoul(context, NULL, 10);
    if (r->context >= r->columns.root->count)
        return bad(r, "all of its columns are context");
    r->dim = r->columns.root->count - r->context;
    return HL_OK;
}

static hl_status read_density(reader *r, hl_density **out)
{
    const char *format = hl_tensors_metadata(r->t, "format");
    bool categories = format && strcmp(format, categories_format) == 0;
    bool ranges = categories || (format && strcmp(format, ranges_format) == 0);
    bool forms = ranges || (format && strcmp(format, forms_format) == 0);
    bool members = forms || (format && strcmp(format, members_format) == 0);
    hl_status status = hl_model_check_format(r->ctx, r->path, r->t, categories_format, "a density model");
    bool flow = !members || hl_tensors_metadata(r->t, "kind");
    if (status == HL_OK && flow)
        status = read_flow(r);
    if (status == HL_OK && flow)
        status = check_nets(r);
    if (status == HL_OK)
        status = hl_model_parse(r->ctx, r->t, "columns", &r->columns);
    if (status == HL_OK)
        status = hl_model_parse(r->ctx, r->t, "training", &r->training);
    if (status == HL_OK && flow)
        status = hl_model_parse(r->ctx, r->t, "solver", &r->solver);
    r->dim = r->spec.net.dim;
    r->context = r->spec.net.context;
    if (status == HL_OK && forms)
        status = hl_model_parse(r->ctx, r->t, "atoms", &r->atoms);
    if (status == HL_OK && members)
        status = read_layout(r);
    if (status == HL_OK && forms)
        status = hl_model_parse(r->ctx, r->t, "forms", &r->forms);
    if (status == HL_OK && categories)
        status = hl_model_parse(r->ctx, r->t, "categories", &r->categories);
    if (status == HL_OK && forms && !ranges && !r->forms.root)
        status = bad(r, "its forms are missing");
    if (status == HL_OK && flow && (r->dim != r->spec.net.dim || r->context != r->spec.net.context))
        status = bad(r, "its columns are not as many as the architecture has");
    if (status != HL_OK)
        return status;
    hl_density_column *columns = hl_calloc(r->ctx, r->dim + r->context, sizeof *columns);
    status = columns ? read_columns(r, columns) : HL_ERR_NOMEM;
    if (status == HL_OK) {
        status = flow ? hl_density_create(r->ctx, &r->spec, columns, out)
                      : hl_density_create_columns(r->ctx, r->dim, r->context, columns, out);
        if (status == HL_ERR_INVALID)
            status = hl_model_blame(r->ctx, status, r->path, "");
    }
    hl_free(r->ctx, columns);
    return status == HL_OK ? fill(r, *out) : status;
}

static hl_status make(hl_context *ctx, const char *path, const hl_tensors *t, void **model)
{
    reader r = { .ctx = ctx, .path = path, .t = t };
    hl_density *density = NULL;
    hl_status status = read_density(&r, &density);
    *model = density;
    hl_architecture_free(r.architecture);
    hl_json_free(&r.columns);
    hl_json_free(&r.solver);
    hl_json_free(&r.members);
    hl_json_free(&r.maps);
    hl_json_free(&r.forms);
    hl_json_free(&r.atoms);
    hl_json_free(&r.training);
    hl_json_free(&r.categories);
    return status;
}

static void discard(void *model)
{
    hl_density_free(model);
}

static const hl_model_kind kind = { "hl_density", "model", gather, make, discard };

hl_status hl_density_save(const hl_density *m, const char *path)
{
    return m ? hl_model_save(&kind, m->ctx, m, path) : HL_ERR_INVALID;
}

hl_status hl_density_write(const hl_density *m, void *bytes, size_t capacity, size_t *size)
{
    return m ? hl_model_write(&kind, m->ctx, m, bytes, capacity, size) : HL_ERR_INVALID;
}

hl_status hl_density_load(hl_context *ctx, const char *path, hl_density **out)
{
    void *model = NULL;
    hl_status status = hl_model_load(&kind, ctx, path, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
}

hl_status hl_density_read(hl_context *ctx, const void *bytes, size_t size, hl_density **out)
{
    void *model = NULL;
    hl_status status = hl_model_read(&kind, ctx, bytes, size, out ? &model : NULL);
    if (out)
        *out = model;
    return status;
}
