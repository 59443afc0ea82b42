/* density.c - density models: their columns, members, solver and note. What they do with rows: density_rows.c. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/file.h"
#include "io/safetensors.h"
#include "learn/density.h"
#include "learn/density_atoms.h"

/* ---- creation ---- */

static hl_status check_column(hl_context *ctx, const hl_density_column *c, size_t index)
{
    if (!c->name || strlen(c->name) >= HL_DENSITY_NAME)
        return hl_fail(ctx, HL_ERR_INVALID, "column %zu has no name, or one of %d bytes or more", index + 1,
                       HL_DENSITY_NAME);
    if (!hl_is_utf8(c->name))
        return hl_fail(ctx, HL_ERR_INVALID, "the name of column %zu is not UTF-8", index + 1);
    if (!isfinite(c->mean) || !isfinite(c->deviation) || !(c->deviation > 0))
        return hl_fail(ctx, HL_ERR_INVALID,
                       "column '%.60s': mean %g, deviation %g; they must be finite, and the deviation positive",
                       c->name, c->mean, c->deviation);
    return HL_OK;
}

static hl_status fill_columns(hl_density *m, const hl_density_column *columns)
{
    size_t all = hl_size_add(m->dim, m->context);
    hl_status status = HL_OK;
    m->column = hl_calloc(m->ctx, all, sizeof *m->column);
    m->x = hl_calloc(m->ctx, hl_size_mul(HL_DENSITY_CHUNK, m->dim), sizeof *m->x);
    m->c = hl_calloc(m->ctx, hl_size_mul(HL_DENSITY_CHUNK, m->context + 1), sizeof *m->c);
    m->joint = hl_calloc(m->ctx, hl_size_mul(HL_DENSITY_CHUNK, all), sizeof *m->joint);
    m->member = hl_calloc(m->ctx, HL_DENSITY_CHUNK, sizeof *m->member);
    if (!m->column || !m->x || !m->c || !m->joint || !m->member)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < all && status == HL_OK; i++) {
        status = check_column(m->ctx, &columns[i], i);
        if (status != HL_OK)
            break;
        snprintf(m->column[i].name, sizeof m->column[i].name, "%s", columns[i].name);
        m->column[i].mean = columns[i].mean;
        m->column[i].deviation = columns[i].deviation;
    }
    return status == HL_OK ? hl_density_set_note(m, "") : status;
}

hl_status hl_density_create_columns(hl_context *ctx, size_t dim, size_t context, const hl_density_column *columns,
                                    hl_density **out)
{
    hl_density *m = hl_calloc(ctx, 1, sizeof *m);
    *out = NULL;
    if (!m)
        return HL_ERR_NOMEM;
    m->ctx = ctx;
    m->dim = dim;
    m->context = context;
    hl_status status = fill_columns(m, columns);
    if (status != HL_OK) {
        hl_density_free(m);
        return status;
    }
    *out = m;
    return HL_OK;
}

hl_status hl_density_add_flow(hl_density *m, const hl_flow_spec *flow)
{
    hl_status status = hl_flow_create(m->ctx, flow, &m->flow);
    m->flow_weight = 1;
    return status == HL_OK ? hl_density_set_solver(m, NULL) : status;
}

void hl_density_drop_flow(hl_density *m)
{
    hl_flow_free(m->flow);
    hl_free(m->ctx, m->factor);
    m->flow = NULL;
    m->factor = NULL;
    m->flow_weight = 0;
    m->flow_mapped = false;
}

hl_status hl_density_add_mixture(hl_density *m, hl_tmixture *mixture, bool mapped, double weight)
{
    if (m->mixtures == HL_DENSITY_MIXTURES || mixture->dim != m->dim + m->context || mixture->given != m->context) {
        hl_tmixture_free(mixture);
        return hl_fail(m->ctx, HL_ERR_INVALID,
                       "a mixture does not match the model's columns, or there are too many mixtures");
    }
    m->mixture[m->mixtures++] = (hl_density_mixture){ mixture, weight, mapped };
    return HL_OK;
}

void hl_density_weigh(hl_density *m, double flow_weight)
{
    size_t kept = 0;
    bool mapped = flow_weight > 0 && m->flow_mapped;
    m->flow_weight = flow_weight;
    if (!(flow_weight > 0))
        hl_density_drop_flow(m);
    for (size_t k = 0; k < m->mixtures; k++) {
        hl_density_mixture *x = &m->mixture[k];
        x->weight *= 1 - flow_weight;
        if (x->weight > 0) {
            mapped = mapped || x->mapped;
            m->mixture[kept++] = *x;
        } else {
            hl_tmixture_free(x->mixture);
        }
    }
    m->mixtures = kept;
    if (!mapped)
        hl_density_set_maps(m, NULL);
}

void hl_density_set_maps(hl_density *m, hl_column_map **map)
{
    for (size_t i = 0; m->map && i < m->dim + m->context; i++)
        hl_column_map_free(m->map[i]);
    hl_free(m->ctx, m->map);
    m->map = map;
}

hl_status hl_density_create(hl_context *ctx, const hl_flow_spec *flow, const hl_density_column *columns,
                            hl_density **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!flow || !columns || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_density_create: the flow, the columns or the result is NULL");
    *out = NULL;
    hl_flow *made = NULL; /* first: it checks the specification, which says how many columns there are */
    hl_status status = hl_flow_create(ctx, flow, &made);
    if (status == HL_OK)
        status = hl_density_create_columns(ctx, made->dim, made->context, columns, out);
    if (status != HL_OK) {
        hl_flow_free(made);
        return status;
    }
    (*out)->flow = made;
    (*out)->flow_weight = 1;
    status = hl_density_set_solver(*out, NULL);
    if (status != HL_OK) {
        hl_density_free(*out);
        *out = NULL;
    }
    return status;
}

void hl_density_free(hl_density *m)
{
    if (!m)
        return;
    hl_density_drop_flow(m);
    hl_density_set_maps(m, NULL);
    hl_atoms_free(m->ctx, m->atoms);
    hl_density_free_categories(m);
    if (m->training)
        hl_row_sketch_free(m->ctx, &m->training->rows);
    hl_free(m->ctx, m->training);
    for (size_t k = 0; k < m->mixtures; k++)
        hl_tmixture_free(m->mixture[k].mixture);
    void *const blocks[] = { m->column, m->x, m->c, m->joint, m->member, m->note, m->form, m->formed };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(m->ctx, blocks[i]);
    hl_free(m->ctx, m);
}

size_t hl_density_members(const hl_density *m)
{
    return m ? m->mixtures + (m->flow != NULL) : 0;
}

hl_density_member hl_density_get_member(const hl_density *m, size_t index)
{
    if (!m || index >= hl_density_members(m))
        return (hl_density_member){ 0 };
    if (m->flow && index == 0)
        return (hl_density_member){ .kind = HL_MEMBER_FLOW, .weight = m->flow_weight, .mapped = m->flow_mapped };
    const hl_density_mixture *k = &m->mixture[index - (m->flow != NULL)];
    return (hl_density_member){ .kind = HL_MEMBER_MIXTURE,
                                .weight = k->weight,
                                .mapped = k->mapped,
                                .parts = k->mixture->parts,
                                .nu = isinf(k->mixture->nu) ? 0 : k->mixture->nu };
}

size_t hl_density_dim(const hl_density *m)
{
    return m ? m->dim : 0;
}

size_t hl_density_context(const hl_density *m)
{
    return m ? m->context : 0;
}

hl_density_column hl_density_get_column(const hl_density *m, size_t index)
{
    if (!m || index >= m->dim + m->context)
        return (hl_density_column){ 0 };
    const hl_density_units *c = &m->column[index];
    return (hl_density_column){ c->name, c->mean, c->deviation };
}

hl_status hl_density_set_forms(hl_density *m, const hl_column_form *form)
{
    size_t all = m->dim + m->context;
    hl_column_form *copy = form ? hl_calloc(m->ctx, all, sizeof *copy) : NULL;
    double *formed = form ? hl_calloc(m->ctx, hl_size_mul(HL_DENSITY_CHUNK, all + 1), sizeof *formed) : NULL;
    if (form && (!copy || !formed)) {
        hl_free(m->ctx, copy);
        hl_free(m->ctx, formed);
        return HL_ERR_NOMEM;
    }
    if (form)
        memcpy(copy, form, all * sizeof *copy);
    hl_free(m->ctx, m->form);
    hl_free(m->ctx, m->formed);
    m->form = copy;
    m->formed = formed;
    return HL_OK;
}

hl_density_range hl_density_get_range(const hl_density *m, size_t index)
{
    hl_column_form none = hl_column_form_none();
    const hl_column_form *f = m && m->form && index < m->dim + m->context ? &m->form[index] : &none;
    return (hl_density_range){ hl_form_names[f->kind], f->low, f->high, f->step, f->least, f->most };
}

void hl_density_set_rounding(hl_density *m, int on)
{
    if (m)
        m->exact_draws = !on;
}

hl_flow *hl_density_flow(const hl_density *m)
{
    return m ? m->flow : NULL;
}

hl_status hl_density_set_solver(hl_density *m, const hl_flow_solver *given)
{
    static const hl_flow_solver defaults;
    if (!m)
        return HL_ERR_INVALID;
    for (size_t k = 0; m->atoms && k < m->atoms->patterns; k++) {
        hl_density *rest = m->atoms->pattern[k].rest;
        hl_status status = rest ? hl_density_set_solver(rest, given) : HL_OK;
        if (status != HL_OK)
            return status;
    }
    if (!m->flow)
        return HL_OK; /* nothing is solved */
    hl_flow_solver s = given ? *given : defaults;
    bool single = m->flow->net[0]->dtype == HL_F32;
    s.trace = HL_TRACE_EXACT;
    s.method = s.method ? s.method : "dopri5";
    s.rtol = s.rtol != 0 ? s.rtol : single ? 1e-5 : 1e-6;
    s.atol = s.atol != 0 ? s.atol : single ? 1e-5 : 1e-8;
    if (!(s.rtol > 0 && isfinite(s.rtol) && s.atol > 0 && isfinite(s.atol)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "rtol is %g and atol %g; they must be positive, or 0 for the default",
                       s.rtol, s.atol);
    hl_status status = hl_flow_set_solver(m->flow, &s);
    if (status != HL_OK)
        return status;
    if (s.method != m->method) /* as it is when the model's own solver is given back with a change */
        snprintf(m->method, sizeof m->method, "%s", s.method);
    m->solver = s;
    m->solver.method = m->method;
    m->accuracy = (hl_density_accuracy){ 0 };
    return HL_OK;
}

hl_flow_solver hl_density_solver(const hl_density *m)
{
    return m ? m->solver : (hl_flow_solver){ 0 };
}

hl_status hl_density_set_note(hl_density *m, const char *note)
{
    if (!m)
        return HL_ERR_INVALID;
    note = note ? note : "";
    char *copy = hl_alloc(m->ctx, strlen(note) + 1);
    if (!copy)
        return HL_ERR_NOMEM;
    strcpy(copy, note);
    hl_free(m->ctx, m->note);
    m->note = copy;
    return HL_OK;
}

const char *hl_density_note(const hl_density *m)
{
    return m ? m->note : "";
}

/* ---- training ---- */

hl_density_training *hl_density_add_training(hl_density *m)
{
    if (!m->training)
        m->training = hl_calloc(m->ctx, 1, sizeof *m->training);
    return m->training;
}

const hl_training_point *hl_density_course(const hl_density *m, size_t *count)
{
    for (size_t k = 0; m && m->atoms && k < m->atoms->patterns; k++) {
        const hl_training_point *points = hl_density_course(m->atoms->pattern[k].rest, count);
        if (points)
            return points;
    }
    bool known = m && m->training && m->training->curve.count;
    if (count)
        *count = known ? m->training->curve.count : 0;
    return known ? m->training->curve.point : NULL;
}

char *hl_density_training_text(const hl_density *m)
{
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '{');
    hl_curve_put(&m->training->curve, &w, "course");
    hl_row_sketch_put(&m->training->rows, &w);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

hl_status hl_density_training_read(hl_density *m, const char *path, const hl_json *j)
{
    bool good = false;
    hl_density_training *t = hl_density_add_training(m);
    hl_status status = t ? hl_row_sketch_read(m->ctx, j, &t->rows, &good) : HL_ERR_NOMEM;
    if (status == HL_OK && !(good && hl_curve_read(&t->curve, hl_json_get(j, "course"))))
        status = hl_fail(m->ctx, HL_ERR_FORMAT, "%s: the training history is malformed", hl_path_shown(path));
    return status;
}

hl_status hl_density_set_factor(hl_density *m, const double *factor)
{
    if (!m)
        return HL_ERR_INVALID;
    size_t dim = m->dim;
    double *copy = factor ? hl_calloc(m->ctx, hl_size_mul(dim, dim), sizeof *copy) : NULL;
    if (factor && !copy)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < dim && factor; i++)
        for (size_t j = 0; j <= i; j++) {
            copy[i * dim + j] = factor[i * dim + j];
            if (isfinite(factor[i * dim + j]) && (j < i || factor[i * dim + i] > 0))
                continue;
            hl_free(m->ctx, copy);
            return hl_fail(
                m->ctx, HL_ERR_INVALID,
                "the factor of the columns has %g in row %zu, column %zu; it must be finite, and its diagonal "
                "positive",
                factor[i * dim + j], i + 1, j + 1);
        }
    hl_free(m->ctx, m->factor);
    m->factor = copy;
    return HL_OK;
}

const double *hl_density_factor(const hl_density *m)
{
    return m ? m->factor : NULL;
}
