/* forms.c - expressions of drift and diffusion as an object: constants, values, copies, and text for files.
 *
 *   {"drift": "x1 = kappa*(theta - x1)", "diffusion": null, "constants": [{"name": "kappa", "value": 1.2}, ..],
 *    "covariance": [[..], ..]} */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "hollow/sde_forms.h"
#include "io/file.h"
#include "io/json.h"
#include "sde/expression.h"

static const char *const parts[2] = { "drift", "diffusion" };

/* ---- creation ---- */

static hl_status allocate(hl_context *ctx, size_t dim, hl_sde_forms **out)
{
    hl_sde_forms *f = *out = hl_calloc(ctx, 1, sizeof *f);
    if (!f)
        return HL_ERR_NOMEM;
    f->ctx = ctx;
    f->dim = dim;
    f->term = hl_calloc(ctx, HL_TERM_MOST, sizeof *f->term);
    f->root[0] = hl_calloc(ctx, hl_size_mul(2, dim), sizeof *f->root[0]);
    f->name = hl_calloc(ctx, hl_size_add(dim, 1), sizeof *f->name);
    f->constant = hl_calloc(ctx, HL_CONSTANTS_MOST, sizeof *f->constant);
    f->value = hl_calloc(ctx, HL_CONSTANTS_MOST, sizeof *f->value);
    f->covariance = hl_calloc(ctx, HL_CONSTANTS_MOST * HL_CONSTANTS_MOST, sizeof *f->covariance);
    f->form = hl_calloc(ctx, dim, sizeof *f->form);
    if (!f->term || !f->root[0] || !f->name || !f->constant || !f->value || !f->covariance || !f->form)
        return HL_ERR_NOMEM;
    f->root[1] = f->root[0] + dim;
    for (size_t i = 0; i < dim; i++) {
        f->root[0][i] = f->root[1][i] = SIZE_MAX;
        f->form[i] = (struct hl_sde_form){ f, i };
        snprintf(f->name[i], HL_SDE_NAME, "x%zu", i + 1);
    }
    snprintf(f->name[dim], HL_SDE_NAME, "t");
    return HL_OK;
}

static hl_status parse_part(hl_sde_forms *f, size_t part, const char *text)
{
    if (!text)
        return HL_OK;
    f->text[part] = hl_alloc(f->ctx, strlen(text) + 1);
    if (!f->text[part])
        return HL_ERR_NOMEM;
    strcpy(f->text[part], text);
    return hl_expression_parse(f, part, parts[part], text);
}

hl_status hl_sde_forms_parse(hl_context *ctx, size_t dim, const char *const *names, const char *drift,
                             const char *diffusion, hl_sde_forms **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!out || dim < 1 || dim > 10000)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_forms_parse: no columns, too many, or no place for the result");
    hl_sde_forms *f = NULL;
    hl_status status = allocate(ctx, dim, &f);
    for (size_t i = 0; i <= dim && names && status == HL_OK; i++)
        if (!names[i] || !*names[i] || strlen(names[i]) >= HL_SDE_NAME)
            status = hl_fail(ctx, HL_ERR_INVALID, "hl_sde_forms_parse: name %zu is missing or too long", i);
        else
            strcpy(f->name[i], names[i]);
    if (status == HL_OK)
        status = parse_part(f, 0, drift);
    if (status == HL_OK)
        status = parse_part(f, 1, diffusion);
    if (status != HL_OK) {
        hl_sde_forms_free(f);
        f = NULL;
    }
    *out = f;
    return status;
}

void hl_sde_forms_free(hl_sde_forms *f)
{
    if (!f)
        return;
    void *const blocks[] = { f->term,     f->root[0], f->text[0],    f->text[1], f->name,
                             f->constant, f->value,   f->covariance, f->form };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(f->ctx, blocks[i]);
    hl_free(f->ctx, f);
}

hl_status hl_sde_forms_copy(hl_context *ctx, const hl_sde_forms *from, hl_sde_forms **to)
{
    const char **names = hl_calloc(ctx, from->dim + 1, sizeof *names);
    if (!names)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i <= from->dim; i++)
        names[i] = from->name[i];
    hl_status status = hl_sde_forms_parse(ctx, from->dim, names, from->text[0], from->text[1], to);
    hl_free(ctx, names);
    if (status != HL_OK)
        return status;
    memcpy((*to)->value, from->value, from->constants * sizeof *from->value);
    memcpy((*to)->covariance, from->covariance, from->constants * from->constants * sizeof *from->covariance);
    return HL_OK;
}

/* ---- constants and values ---- */

size_t hl_sde_forms_constants(const hl_sde_forms *f)
{
    return f ? f->constants : 0;
}

int hl_sde_forms_has(const hl_sde_forms *f, int part, size_t column)
{
    return f && (part == 0 || part == 1) && column < f->dim && f->root[part][column] != SIZE_MAX;
}

const char *hl_sde_forms_source(const hl_sde_forms *f, int part)
{
    return f && (part == 0 || part == 1) ? f->text[part] : NULL;
}

hl_sde_constant hl_sde_forms_constant(const hl_sde_forms *f, size_t k)
{
    return k < hl_sde_forms_constants(f)
               ? (hl_sde_constant){ f->constant[k], f->value[k], sqrt(f->covariance[k * f->constants + k]) }
               : (hl_sde_constant){ 0 };
}

hl_status hl_sde_forms_set(hl_sde_forms *f, size_t k, double value)
{
    if (!f)
        return HL_ERR_INVALID;
    if (k >= f->constants || !isfinite(value))
        return hl_fail(f->ctx, HL_ERR_INVALID, "hl_sde_forms_set: no such constant, or a value that is not finite");
    f->value[k] = value;
    return HL_OK;
}

hl_status hl_sde_forms_eval(const hl_sde_forms *f, size_t rows, const double *t, const double *x, double *drift,
                            double *diffusion)
{
    if (!f)
        return HL_ERR_INVALID;
    if (rows && (!t || !x))
        return hl_fail(f->ctx, HL_ERR_INVALID, "hl_sde_forms_eval: t or x is NULL");
    double *work = hl_calloc(f->ctx, HL_EXPRESSION_WORK, sizeof *work);
    if (!work)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < rows * f->dim; k++) {
        size_t r = k / f->dim;
        if (drift)
            drift[k] = hl_expression_eval(f, 0, k % f->dim, t[r], x + r * f->dim, NULL, work);
        if (diffusion)
            diffusion[k] = hl_expression_eval(f, 1, k % f->dim, t[r], x + r * f->dim, NULL, work);
    }
    hl_free(f->ctx, work);
    return HL_OK;
}

/* ---- models ---- */

static hl_node drift_form(void *user, hl_graph *g, hl_node t, hl_node x)
{
    const struct hl_sde_form *form = user;
    return hl_expression_node(form->forms, 0, form->column, g, t, x);
}

static hl_node diffusion_form(void *user, hl_graph *g, hl_node t, hl_node x)
{
    const struct hl_sde_form *form = user;
    return hl_expression_node(form->forms, 1, form->column, g, t, x);
}

void hl_sde_forms_apply(const hl_sde_forms *f, hl_sde_known *known)
{
    for (size_t i = 0; i < f->dim; i++) {
        hl_sde_known *k = &known[i];
        if (hl_sde_forms_has(f, 0, i)) {
            k->drift = 1;
            k->drift_constant = 0;
            k->drift_linear = NULL;
            k->drift_form = drift_form;
            k->user = &f->form[i];
        }
        if (hl_sde_forms_has(f, 1, i)) {
            k->diffusion = 1;
            k->diffusion_value = 0;
            k->diffusion_form = diffusion_form;
            k->user = &f->form[i];
        }
    }
}

/* ---- files ---- */

char *hl_sde_forms_text(const hl_sde_forms *f)
{
    hl_json_writer w = { .ctx = f->ctx };
    size_t n = f->constants;
    hl_json_open(&w, NULL, '{');
    for (size_t part = 0; part < 2; part++)
        if (f->text[part])
            hl_json_put_text(&w, parts[part], f->text[part]);
    hl_json_open(&w, "constants", '[');
    for (size_t k = 0; k < n; k++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_text(&w, "name", f->constant[k]);
        hl_json_put_real(&w, "value", f->value[k]);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    hl_json_open(&w, "covariance", '[');
    for (size_t k = 0; k < n * n; k++)
        hl_json_put_real(&w, NULL, f->covariance[k]);
    hl_json_close(&w, ']');
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

/* False if the list of constants is not that of the expressions. */
static bool get_constants(const hl_json *root, hl_sde_forms *f)
{
    const hl_json *constants = hl_json_get(root, "constants"), *covariance = hl_json_get(root, "covariance");
    size_t n = f->constants, k = 0;
    if (!hl_json_is_array(constants, n) || !hl_json_is_array(covariance, n * n))
        return false;
    for (const hl_json *c = constants->first; c; c = c->next, k++) {
        const char *name = hl_json_text(hl_json_get(c, "name"));
        const hl_json *value = hl_json_get(c, "value");
        if (!name || strcmp(name, f->constant[k]) != 0 || !hl_json_is_number(value))
            return false;
        f->value[k] = value->number;
    }
    k = 0;
    for (const hl_json *c = covariance->first; c; c = c->next, k++) {
        if (!hl_json_is_number(c) || (k / n == k % n && c->number < 0))
            return false;
        f->covariance[k] = c->number;
    }
    return true;
}

hl_status hl_sde_forms_read(hl_context *ctx, const char *path, const char *text, size_t dim, const char *const *names,
                            hl_sde_forms **forms)
{
    hl_json_document document = { .root = NULL };
    hl_status status = hl_json_parse(ctx, text, strlen(text), &document);
    *forms = NULL;
    if (status == HL_OK)
        status = hl_sde_forms_parse(ctx, dim, names, hl_json_text(hl_json_get(document.root, "drift")),
                                    hl_json_text(hl_json_get(document.root, "diffusion")), forms);
    if (status == HL_OK && !get_constants(document.root, *forms))
        status = HL_ERR_FORMAT;
    hl_json_free(&document);
    if (status == HL_OK)
        return HL_OK;
    hl_sde_forms_free(*forms);
    *forms = NULL;
    return status == HL_ERR_NOMEM
               ? status
               : hl_fail(ctx, HL_ERR_FORMAT, "%s: its expressions are malformed", hl_path_shown(path));
}
