/* params.c - a named set of parameters: names, shapes and values, owned or borrowed from networks; flat views; files.
 *
 * Owned values lie one parameter after the other in one block, as gradients do; borrowed ones stay where they are, so every
 * parameter has a pointer of its own. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/file.h"
#include "nn/model.h"
#include "nn/params.h"

enum { NAME_SIZE = 160 };

/* ---- making ---- */

static hl_status make(hl_context *ctx, hl_dtype dtype, size_t count, hl_params **out)
{
    hl_params *p = hl_calloc(ctx, 1, sizeof *p);
    *out = p;
    if (!p)
        return HL_ERR_NOMEM;
    p->ctx = ctx;
    p->dtype = dtype;
    hl_arena_init(&p->names, ctx);
    p->param = hl_calloc(ctx, count, sizeof *p->param);
    p->value = hl_calloc(ctx, count, sizeof *p->value);
    return p->param && p->value ? HL_OK : HL_ERR_NOMEM;
}

/* Append a parameter whose shape and values are known, with a copy of this name. */
static hl_status append(hl_params *p, const char *name, const hl_net_param *like)
{
    size_t length = strlen(name) + 1;
    char *copy = hl_arena_alloc(&p->names, length);
    if (!copy)
        return HL_ERR_NOMEM;
    memcpy(copy, name, length);
    p->param[p->count] = *like;
    p->param[p->count].name = copy;
    p->value[p->count++] = like->values;
    p->size = hl_size_add(p->size, like->size);
    return HL_OK;
}

static hl_status finish(hl_params *p, hl_status status, hl_params **out)
{
    if (status != HL_OK) {
        hl_params_free(p);
        p = NULL;
    }
    *out = p;
    return status;
}

static hl_status take_graph(hl_params *p, const hl_graph *g)
{
    hl_status status = HL_OK;
    for (size_t i = 0; i < hl_graph_params(g) && status == HL_OK; i++) {
        hl_node n = hl_graph_param(g, i);
        const char *name = hl_node_name(g, n);
        hl_net_param one = { .rank = hl_node_rank(g, n), .size = hl_node_size(g, n) };
        for (int a = 0; a < one.rank; a++)
            one.dims[a] = hl_node_dim(g, n, a);
        if (hl_params_find(p, name) < p->count)
            return hl_fail(p->ctx, HL_ERR_INVALID, "two parameters have the name '%.60s'", name);
        status = append(p, name, &one);
    }
    return status;
}

hl_status hl_params_declare(const hl_graph *g, hl_dtype dtype, hl_params **out)
{
    hl_params *p = NULL;
    *out = NULL;
    if (hl_graph_status(g) != HL_OK)
        return hl_fail(g->ctx, g->status, "%s", g->message);
    hl_status status = make(g->ctx, dtype, hl_graph_params(g), &p);
    if (status == HL_OK)
        status = take_graph(p, g);
    return finish(p, status, out);
}

/* Pointers into one block, parameter after parameter. */
static void spread(const hl_params *p, char *block, void **pointer)
{
    for (size_t i = 0; i < p->count; block += p->param[i++].size * hl_dtype_size(p->dtype))
        pointer[i] = block;
}

hl_status hl_params_allocate(hl_params *p)
{
    p->values = hl_calloc(p->ctx, p->size, hl_dtype_size(p->dtype));
    if (!p->values)
        return HL_ERR_NOMEM;
    char *block = p->values;
    for (size_t i = 0; i < p->count; block += p->param[i++].size * hl_dtype_size(p->dtype))
        p->value[i] = p->param[i].values = block;
    return HL_OK;
}

hl_status hl_params_from_graph(const hl_graph *g, hl_dtype dtype, hl_params **out)
{
    if (!g)
        return HL_ERR_INVALID;
    if (!out || hl_dtype_size(dtype) == 0)
        return hl_fail(g->ctx, HL_ERR_INVALID, "hl_params_from_graph: the result is NULL, or no such precision");
    hl_status status = hl_params_declare(g, dtype, out);
    return status == HL_OK ? finish(*out, hl_params_allocate(*out), out) : status;
}

static hl_status take_nets(hl_params *p, size_t nets, hl_net *const *net)
{
    hl_status status = HL_OK;
    for (size_t n = 0; n < nets; n++)
        for (size_t i = 0; i < hl_net_param_count(net[n]) && status == HL_OK; i++) {
            char name[NAME_SIZE];
            hl_net_param one;
            status = hl_net_param_get(net[n], i, &one);
            if (nets > 1)
                snprintf(name, sizeof name, "%zu.%s", n, one.name);
            if (status == HL_OK)
                status = append(p, nets > 1 ? name : one.name, &one);
        }
    return status;
}

hl_status hl_params_from_nets(hl_context *ctx, size_t nets, hl_net *const *net, hl_params **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!out || !net || nets == 0)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_params_from_nets: no networks, or the result is NULL");
    *out = NULL;
    size_t count = 0;
    for (size_t n = 0; n < nets; n++) {
        if (!net[n])
            return hl_fail(ctx, HL_ERR_INVALID, "hl_params_from_nets: network %zu is NULL", n);
        if (net[n]->dtype != net[0]->dtype)
            return hl_fail(ctx, HL_ERR_INVALID, "hl_params_from_nets: networks 0 and %zu differ in precision", n);
        count += hl_net_param_count(net[n]);
    }
    hl_params *p = NULL;
    hl_status status = make(ctx, net[0]->dtype, count, &p);
    if (status == HL_OK)
        status = take_nets(p, nets, net);
    return finish(p, status, out);
}

void hl_params_free(hl_params *p)
{
    if (!p)
        return;
    hl_arena_free(&p->names);
    hl_free(p->ctx, p->param);
    hl_free(p->ctx, p->value);
    hl_free(p->ctx, p->values);
    hl_free(p->ctx, p->gradients);
    hl_free(p->ctx, p->gradient);
    hl_free(p->ctx, p);
}

/* ---- looking ---- */

size_t hl_params_count(const hl_params *p)
{
    return p ? p->count : 0;
}

size_t hl_params_size(const hl_params *p)
{
    return p ? p->size : 0;
}

hl_dtype hl_params_dtype(const hl_params *p)
{
    return p ? p->dtype : HL_F32;
}

hl_status hl_params_get(const hl_params *p, size_t index, hl_net_param *param)
{
    if (!p)
        return HL_ERR_INVALID;
    if (!param || index >= p->count)
        return hl_fail(p->ctx, HL_ERR_INVALID, "hl_params_get: parameter %zu of %zu", index, p->count);
    *param = p->param[index];
    return HL_OK;
}

size_t hl_params_find(const hl_params *p, const char *name)
{
    size_t i = 0;
    while (p && name && i < p->count && strcmp(p->param[i].name, name) != 0)
        i++;
    return p && name ? i : hl_params_count(p);
}

const void *const *hl_params_values(const hl_params *p)
{
    return p ? p->value : NULL;
}

void *const *hl_params_gradients(hl_params *p)
{
    if (!p || p->gradient)
        return p ? p->gradient : NULL;
    void *block = hl_calloc(p->ctx, p->size, hl_dtype_size(p->dtype));
    void **pointer = hl_calloc(p->ctx, p->count, sizeof *pointer);
    if (!block || !pointer) {
        hl_free(p->ctx, block);
        hl_free(p->ctx, pointer);
        return NULL;
    }
    spread(p, block, pointer);
    p->gradients = block;
    p->gradient = pointer;
    return pointer;
}

/* ---- flat views ---- */

void hl_params_read(const hl_params *p, double *flat)
{
    for (size_t i = 0; p && flat && i < p->count; flat += p->param[i++].size)
        hl_from_precision(p->dtype, p->param[i].size, p->param[i].values, flat);
}

void hl_params_write(hl_params *p, const double *flat)
{
    for (size_t i = 0; p && flat && i < p->count; flat += p->param[i++].size)
        hl_to_precision(p->dtype, p->param[i].size, flat, p->param[i].values);
}

void hl_params_read_gradients(const hl_params *p, double *flat)
{
    if (!p || !flat)
        return;
    if (p->gradients)
        hl_from_precision(p->dtype, p->size, p->gradients, flat);
    else
        memset(flat, 0, p->size * sizeof *flat);
}

hl_status hl_params_init(hl_params *p, size_t index, size_t fan_in, uint64_t seed, uint64_t stream)
{
    if (!p)
        return HL_ERR_INVALID;
    if (index >= p->count)
        return hl_fail(p->ctx, HL_ERR_INVALID, "hl_params_init: parameter %zu of %zu", index, p->count);
    const hl_net_param *one = &p->param[index];
    for (size_t k = 0; k < one->size; k++) {
        double v = fan_in ? hl_random_normal(seed, stream, k) / sqrt((double)fan_in) : 0;
        hl_to_precision(p->dtype, 1, &v, (char *)one->values + k * hl_dtype_size(p->dtype));
    }
    return HL_OK;
}

hl_status hl_params_check(const hl_params *p)
{
    if (!p)
        return HL_ERR_INVALID;
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->param[i].size; k++) {
            double v;
            hl_from_precision(p->dtype, 1, (const char *)p->param[i].values + k * hl_dtype_size(p->dtype), &v);
            if (!isfinite(v))
                return hl_fail(p->ctx, HL_ERR_NOT_FINITE, "parameter '%s', element %zu, is %s", p->param[i].name, k,
                               isnan(v) ? "NaN" : "infinite");
        }
    return HL_OK;
}

/* ---- files ---- */

static const char *full_name(char *out, const char *prefix, const char *name)
{
    snprintf(out, NAME_SIZE, "%s%s", prefix, name);
    return out;
}

hl_status hl_params_add_tensors(const hl_params *p, const char *prefix, hl_tensors *t)
{
    hl_status status = HL_OK;
    char name[NAME_SIZE];
    for (size_t i = 0; i < p->count && status == HL_OK; i++)
        status = hl_tensors_add(t, full_name(name, prefix, p->param[i].name), p->dtype, p->param[i].rank,
                                p->param[i].dims, p->param[i].values);
    return status;
}

hl_status hl_params_check_tensors(const hl_params *p, const char *prefix, const char *path, const hl_tensors *t)
{
    for (size_t i = 0; i < p->count; i++) {
        const hl_net_param *one = &p->param[i];
        char name[NAME_SIZE], text[120];
        const hl_tensor *found = hl_tensors_find(t, full_name(name, prefix, one->name));
        if (!found)
            return hl_fail(p->ctx, HL_ERR_FORMAT, "%s: tensor '%s' is missing", hl_path_shown(path), name);
        if (found->dtype == p->dtype && found->rank == one->rank &&
            memcmp(found->dims, one->dims, (size_t)one->rank * sizeof *one->dims) == 0)
            continue;
        hl_shape shape = { .rank = one->rank };
        memcpy(shape.dim, one->dims, sizeof shape.dim);
        return hl_fail(p->ctx, HL_ERR_FORMAT, "%s: tensor '%s' is not %s of %s, as the architecture needs",
                       hl_path_shown(path), name, hl_shape_text(&shape, text, sizeof text), hl_dtype_name(p->dtype));
    }
    return HL_OK;
}

hl_status hl_params_take_tensors(hl_params *p, const char *prefix, const char *path, const hl_tensors *t)
{
    for (size_t i = 0; i < p->count; i++) {
        char name[NAME_SIZE];
        const hl_tensor *found = hl_tensors_find(t, full_name(name, prefix, p->param[i].name));
        memcpy(p->param[i].values, found->data, found->bytes);
    }
    hl_status status = hl_params_check(p);
    return status == HL_OK ? HL_OK : hl_model_blame(p->ctx, status, path, "");
}
