/* simple.c - the part of a model that is a regression: copies, as graph, and as text for files.
 *
 *   {"inputs": 2, "first": 0, "last": 5, "mean": [..], "deviation": [..], "least": [..], "correlation": [[..], ..], "form": "cubic, constant",
 *    "drift": {"products": [[1, 2, 0], ..], "centres": [[..], ..], "scales": [[..], ..], "coefficients": [[..], ..]}, "diffusion": {..},
 *    "replicates": {"count": 40, "quantile": 1.7, "radius": 0.2, "points": [[..], ..], "drift": {..}, "diffusion": {..}}}
 *
 * where the last is not there without bands, and has count x dim rows of coefficients. With ridges (regress.h) a part has their number, "ridges": 6, and
 * "directions" instead of "scales"; with tangents (of replicates alone) "turns" instead, and "tangents": [[function, back, coefficients ..], ..]. */
#include <math.h>
#include <string.h>

#include "io/file.h"
#include "io/json.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { MOST_FUNCTIONS = 100000 };

/* ---- copies ---- */

static hl_status copy_part(const hl_sde_simple *from, hl_sde_simple *to, size_t part)
{
    const hl_basis *b = &from->basis[part];
    size_t values = hl_size_mul(from->dim, hl_basis_size(b));
    hl_status status = hl_basis_copy(to->ctx, b, b->products, b->bumps, &to->basis[part]);
    to->coefficient[part] = hl_calloc(to->ctx, values, sizeof *to->coefficient[part]);
    if (status != HL_OK || !to->coefficient[part])
        return HL_ERR_NOMEM;
    memcpy(to->coefficient[part], from->coefficient[part], values * sizeof *to->coefficient[part]);
    return HL_OK;
}

hl_status hl_sde_simple_copy(hl_context *ctx, const hl_sde_simple *from, hl_sde_simple **to)
{
    size_t d = from->dim;
    hl_status status = hl_sde_simple_create(ctx, d, from->inputs, to);
    for (size_t part = 0; part < 2 && status == HL_OK; part++)
        status = copy_part(from, *to, part);
    if (status == HL_OK && from->replicates)
        status = hl_replicates_copy(ctx, from->replicates, &(*to)->replicates);
    if (status != HL_OK)
        return status;
    hl_sde_simple *s = *to;
    memcpy(s->least, from->least, d * sizeof *s->least);
    memcpy(s->correlation, from->correlation, d * d * sizeof *s->correlation);
    memcpy(s->factor, from->factor, d * d * sizeof *s->factor);
    memcpy(s->mean, from->mean, d * sizeof *s->mean);
    memcpy(s->deviation, from->deviation, d * sizeof *s->deviation);
    s->t_first = from->t_first;
    s->t_last = from->t_last;
    s->report = from->report;
    return HL_OK;
}

bool hl_sde_simple_correlated(const hl_sde_simple *s)
{
    bool any = false;
    for (size_t k = 0; s && k < s->dim * s->dim; k++)
        any = any || (s->correlation[k] != 0 && k / s->dim != k % s->dim);
    return any;
}

/* ---- graph ---- */

/* The functions of a dictionary at z [inputs]: [size]. */
static hl_node functions(hl_context *ctx, const hl_basis *b, hl_graph *g, hl_node z)
{
    size_t *index = hl_calloc(ctx, b->products, sizeof *index), shape[2] = { b->bumps, b->inputs };
    if (!index)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory");
    hl_node one = hl_const_array(g, 1, (size_t[]){ 1 }, (double[]){ 1 });
    hl_node more = hl_concat(g, 2, (hl_node[]){ z, one }, 0), y = HL_NONE;
    for (size_t k = 0; k < HL_BASIS_FACTORS; k++) {
        for (size_t a = 0; a < b->products; a++)
            index[a] = b->factor[a][k] ? b->factor[a][k] - 1u : b->inputs;
        hl_node part = hl_gather(g, more, 0, b->products, index);
        y = k ? hl_mul(g, y, part) : part;
    }
    hl_free(ctx, index);
    if (!b->bumps)
        return y;
    hl_node gap = hl_sub(g, hl_reshape(g, z, 2, (size_t[]){ 1, b->inputs }), hl_const_array(g, 2, shape, b->centre));
    gap = hl_mul(g, gap, hl_const_array(g, 2, shape, b->scale));
    size_t radial = b->bumps - b->ridges;
    hl_node parts[3] = { y }, square;
    int count = 1;
    if (radial) {
        hl_node own = b->ridges ? hl_slice(g, gap, 0, 0, radial) : gap;
        square = hl_sum(g, hl_mul(g, own, own), -1);
        parts[count++] = hl_exp(g, hl_scale(g, -0.5, square));
    }
    if (b->ridges) {
        hl_node own = hl_sum(g, radial ? hl_slice(g, gap, 0, radial, b->ridges) : gap, -1);
        square = hl_mul(g, own, own);
        parts[count++] = hl_exp(g, hl_scale(g, -0.5, square));
    }
    return hl_concat(g, count, parts, 0);
}

hl_node hl_sde_simple_node(const hl_sde_simple *s, hl_graph *g, size_t part, hl_node x, hl_node clock)
{
    size_t shape[2] = { s->dim, hl_basis_size(&s->basis[part]) };
    hl_node z = s->inputs > s->dim ? hl_concat(g, 2, (hl_node[]){ x, hl_reshape(g, clock, 1, (size_t[]){ 1 }) }, 0) : x;
    hl_node y =
        hl_linear(g, functions(s->ctx, &s->basis[part], g, z), hl_const_array(g, 2, shape, s->coefficient[part]));
    if (part == 0)
        return y;
    hl_node least = hl_const_array(g, 1, &s->dim, s->least);
    return hl_sqrt(g, hl_mul(g, least, hl_softplus(g, hl_div(g, y, least))));
}

/* ---- text ---- */

/* Programs that do not know ridges, or tangents, would take them for other functions: they do not find their scales. */
static const char *scale_key(const hl_basis *b, bool tangents)
{
    return tangents ? "turns" : b->ridges ? "directions" : "scales";
}

static void put_tangents(hl_json_writer *w, const hl_basis *b)
{
    hl_json_open(w, "tangents", '[');
    for (size_t a = 0; a < b->bumps; a++) {
        const hl_tangent *t = &b->tangent[a];
        if (!t->back)
            continue;
        hl_json_open(w, NULL, '[');
        hl_json_put_integer(w, NULL, (int64_t)a);
        hl_json_put_integer(w, NULL, (int64_t)t->back);
        for (size_t k = 0; k < HL_RIDGE_EACH; k++)
            hl_json_put_real(w, NULL, t->coefficient[k]);
        hl_json_close(w, ']');
    }
    hl_json_close(w, ']');
}

/* A dictionary and `rows` lists of coefficients. */
static void put_part(hl_json_writer *w, const char *key, const hl_basis *b, size_t rows, const double *coefficient)
{
    hl_json_open(w, key, '{');
    hl_json_open(w, "products", '[');
    for (size_t a = 0; a < b->products; a++) {
        hl_json_open(w, NULL, '[');
        for (size_t k = 0; k < HL_BASIS_FACTORS; k++)
            hl_json_put_integer(w, NULL, b->factor[a][k]);
        hl_json_close(w, ']');
    }
    hl_json_close(w, ']');
    hl_json_put_rows(w, "centres", b->bumps, b->inputs, b->centre);
    hl_json_put_rows(w, scale_key(b, b->tangent != NULL), b->bumps, b->inputs, b->scale);
    if (b->ridges)
        hl_json_put_integer(w, "ridges", (int64_t)b->ridges);
    if (b->tangent)
        put_tangents(w, b);
    hl_json_put_rows(w, "coefficients", rows, hl_basis_size(b), coefficient);
    hl_json_close(w, '}');
}

static void put_replicates(hl_json_writer *w, const hl_replicates *r)
{
    hl_json_open(w, "replicates", '{');
    hl_json_put_integer(w, "count", (int64_t)r->count);
    hl_json_put_real(w, "quantile", r->quantile);
    hl_region_put(&r->region, w);
    put_part(w, "drift", &r->basis[0], r->count * r->dim, r->coefficient[0]);
    put_part(w, "diffusion", &r->basis[1], r->count * r->dim, r->coefficient[1]);
    hl_json_close(w, '}');
}

char *hl_sde_simple_text(const hl_sde_simple *s)
{
    hl_json_writer w = { .ctx = s->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_integer(&w, "inputs", (int64_t)s->inputs);
    hl_json_put_real(&w, "first", s->t_first);
    hl_json_put_real(&w, "last", s->t_last);
    hl_json_put_reals(&w, "mean", s->dim, s->mean);
    hl_json_put_reals(&w, "deviation", s->dim, s->deviation);
    hl_json_put_reals(&w, "least", s->dim, s->least);
    hl_json_put_rows(&w, "correlation", s->dim, s->dim, s->correlation);
    hl_json_put_text(&w, "form", s->report.form);
    put_part(&w, "drift", &s->basis[0], s->dim, s->coefficient[0]);
    put_part(&w, "diffusion", &s->basis[1], s->dim, s->coefficient[1]);
    if (s->replicates)
        put_replicates(&w, s->replicates);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

/* ---- reading ---- */

static bool get_products(const hl_json *j, hl_basis *b)
{
    size_t a = 0;
    for (const hl_json *row = j->first; row; row = row->next, a++) {
        size_t k = 0;
        if (!hl_json_is_array(row, HL_BASIS_FACTORS))
            return false;
        for (const hl_json *v = row->first; v; v = v->next, k++) {
            if (!hl_json_is_integer(v) || v->integer < 0 || v->integer > (int64_t)b->inputs)
                return false;
            b->factor[a][k] = (unsigned short)v->integer;
        }
    }
    return true;
}

/* One for each input, or, in files of earlier versions, one width for all. */
static bool get_scales(const hl_json *j, hl_basis *b)
{
    const hl_json *width = hl_json_get(j, "width"), *scales = hl_json_get(j, scale_key(b, b->tangent != NULL));
    if (scales || b->ridges)
        return hl_json_get_rows(scales, b->bumps, b->inputs, b->scale);
    if (!hl_json_is_number(width) || !(width->number > 0))
        return false;
    for (size_t k = 0; k < b->bumps * b->inputs; k++)
        b->scale[k] = 1 / width->number;
    return true;
}

static bool get_tangent(const hl_json *row, hl_basis *b)
{
    double value[2 + HL_RIDGE_EACH];
    size_t first = b->bumps - b->ridges;
    if (!hl_json_get_reals(row, 2 + HL_RIDGE_EACH, value) ||
        !(value[0] >= (double)first && value[0] < (double)b->bumps) || value[0] != floor(value[0]))
        return false;
    size_t at = (size_t)value[0]; /* its Gaussians are ridges before it */
    if (!(value[1] >= HL_RIDGE_EACH && value[1] <= (double)(at - first)) || value[1] != floor(value[1]))
        return false;
    b->tangent[at].back = (size_t)value[1];
    memcpy(b->tangent[at].coefficient, value + 2, sizeof b->tangent[at].coefficient);
    return true;
}

static hl_status get_tangents(hl_context *ctx, const hl_json *j, hl_basis *b)
{
    if (!j)
        return HL_OK;
    if (j->kind != HL_JSON_ARRAY)
        return HL_ERR_FORMAT;
    b->tangent = hl_calloc(ctx, b->bumps, sizeof *b->tangent);
    if (!b->tangent)
        return HL_ERR_NOMEM;
    for (const hl_json *row = j->first; row; row = row->next)
        if (!get_tangent(row, b))
            return HL_ERR_FORMAT;
    for (size_t a = 0; a < b->bumps; a++)
        for (size_t k = 0; k < HL_RIDGE_EACH && b->tangent[a].back; k++)
            if (b->tangent[a - b->tangent[a].back + k].back)
                return HL_ERR_FORMAT; /* tangents of tangents */
    return HL_OK;
}

/* HL_ERR_FORMAT without a message if it is wrong. */
static hl_status get_part(hl_context *ctx, const hl_json *j, size_t inputs, size_t rows, hl_basis *b,
                          double **coefficient)
{
    const hl_json *products = hl_json_get(j, "products"), *centres = hl_json_get(j, "centres");
    if (!products || products->kind != HL_JSON_ARRAY || !centres || centres->kind != HL_JSON_ARRAY ||
        products->count < 1 || products->count > MOST_FUNCTIONS || centres->count > MOST_FUNCTIONS)
        return HL_ERR_FORMAT;
    hl_status status = hl_basis_create(ctx, inputs, products->count, centres->count, b);
    if (status != HL_OK)
        return status;
    if (!hl_json_is_array(hl_json_get(j, "coefficients"), rows))
        return HL_ERR_FORMAT;
    *coefficient = hl_calloc(ctx, hl_size_mul(rows, hl_basis_size(b)), sizeof **coefficient);
    if (!*coefficient)
        return HL_ERR_NOMEM;
    const hl_json *ridges = hl_json_get(j, "ridges");
    if (ridges && (!hl_json_is_integer(ridges) || ridges->integer < 0 || ridges->integer > (int64_t)b->bumps))
        return HL_ERR_FORMAT;
    b->ridges = ridges ? (size_t)ridges->integer : 0;
    status = get_tangents(ctx, hl_json_get(j, "tangents"), b);
    if (status != HL_OK)
        return status;
    bool good = get_products(products, b) && hl_json_get_rows(centres, b->bumps, b->inputs, b->centre) &&
                get_scales(j, b) &&
                hl_json_get_rows(hl_json_get(j, "coefficients"), rows, hl_basis_size(b), *coefficient);
    return good ? HL_OK : HL_ERR_FORMAT;
}

static hl_status get_replicates(const hl_json *j, hl_sde_simple *s)
{
    const hl_json *count = hl_json_get(j, "count"), *quantile = hl_json_get(j, "quantile");
    if (!hl_json_is_integer(count) || count->integer < 1 || count->integer > MOST_FUNCTIONS ||
        !hl_json_is_number(quantile) || !(quantile->number > 0))
        return HL_ERR_FORMAT;
    hl_replicates *r = s->replicates = hl_calloc(s->ctx, 1, sizeof *r);
    if (!r)
        return HL_ERR_NOMEM;
    *r = (hl_replicates){
        .count = (size_t)count->integer, .inputs = s->inputs, .dim = s->dim, .quantile = quantile->number
    };
    hl_status status = hl_region_read(s->ctx, j, s->inputs, &r->region);
    for (size_t part = 0; part < 2 && status == HL_OK; part++)
        status = get_part(s->ctx, hl_json_get(j, part ? "diffusion" : "drift"), r->inputs,
                          hl_size_mul(r->count, r->dim), &r->basis[part], &r->coefficient[part]);
    return status;
}

static hl_status get_simple(const hl_json *j, hl_sde_simple *s)
{
    const hl_json *first = hl_json_get(j, "first"), *last = hl_json_get(j, "last");
    const char *form = hl_json_text(hl_json_get(j, "form"));
    size_t d = s->dim;
    bool good = hl_json_is_number(first) && hl_json_is_number(last) && form && strlen(form) < sizeof s->report.form &&
                hl_json_get_reals(hl_json_get(j, "mean"), d, s->mean) &&
                hl_json_get_reals(hl_json_get(j, "deviation"), d, s->deviation) &&
                hl_json_get_reals(hl_json_get(j, "least"), d, s->least) &&
                hl_json_get_rows(hl_json_get(j, "correlation"), d, d, s->correlation);
    for (size_t i = 0; i < d && good; i++) {
        good = s->least[i] > 0 && s->deviation[i] > 0;
        for (size_t k = 0; k < d; k++)
            good =
                good && fabs(s->correlation[i * d + k]) <= 1 && s->correlation[i * d + k] == s->correlation[k * d + i];
    }
    if (!good)
        return HL_ERR_FORMAT;
    s->t_first = first->number;
    s->t_last = last->number;
    strcpy(s->report.form, form);
    hl_sde_simple_factor(s);
    hl_status status = HL_OK;
    for (size_t part = 0; part < 2 && status == HL_OK; part++)
        status = get_part(s->ctx, hl_json_get(j, part ? "diffusion" : "drift"), s->inputs, d, &s->basis[part],
                          &s->coefficient[part]);
    for (size_t part = 0; part < 2 && status == HL_OK; part++)
        status = s->basis[part].tangent ? HL_ERR_FORMAT : HL_OK; /* only replicates have tangents */
    const hl_json *replicates = hl_json_get(j, "replicates");
    return status == HL_OK && replicates ? get_replicates(replicates, s) : status;
}

hl_status hl_sde_simple_parse(hl_context *ctx, const char *path, const char *text, size_t dim, hl_sde_simple **simple)
{
    hl_json_document document = { .root = NULL };
    hl_status status = hl_json_parse(ctx, text, strlen(text), &document);
    const hl_json *inputs = hl_json_get(document.root, "inputs");
    *simple = NULL;
    if (status == HL_OK &&
        !(hl_json_is_integer(inputs) && inputs->integer >= (int64_t)dim && inputs->integer <= (int64_t)dim + 1))
        status = HL_ERR_FORMAT;
    if (status == HL_OK)
        status = hl_sde_simple_create(ctx, dim, (size_t)inputs->integer, simple);
    if (status == HL_OK)
        status = get_simple(document.root, *simple);
    hl_json_free(&document);
    if (status == HL_OK)
        return HL_OK;
    hl_sde_simple_free(*simple);
    *simple = NULL;
    return status == HL_ERR_NOMEM ? status
                                  : hl_fail(ctx, HL_ERR_FORMAT, "%s: its regression is malformed", hl_path_shown(path));
}
