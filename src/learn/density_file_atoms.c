/* density_file_atoms.c - the atoms of a density model in its file: the metadata
 *
 *   atoms   {"atoms": [{"column": 1, "value": 0}, ...], "patterns": [{"mask": 1, "rows": 400, "bytes": 3280}, ...]}
 *
 * where bit a of a mask is set if atom a is taken. The model of the other columns of pattern k is in the tensor "pattern.k": its own file of so many
 * bytes, filled up with zeros to 8-byte numbers. A pattern without a model has no bytes and no tensor. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/density_atoms.h"
#include "nn/model_file.h"

/* The bytes of a pattern's model, which the pattern keeps until they are made again. */
static hl_status pack(hl_context *ctx, hl_atom_pattern *p)
{
    size_t size = 0;
    hl_status status = hl_density_write(p->rest, NULL, 0, &size);
    if (status != HL_OK)
        return status;
    hl_free(ctx, p->packed);
    p->bytes = size;
    p->packed = hl_calloc(ctx, size / sizeof *p->packed + 1, sizeof *p->packed);
    return p->packed ? hl_density_write(p->rest, p->packed, size, &size) : HL_ERR_NOMEM;
}

static char *describe(const hl_density *m)
{
    const struct hl_density_atoms *a = m->atoms;
    hl_json_writer w = { .ctx = m->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_open(&w, "atoms", '[');
    for (size_t i = 0; i < a->count; i++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_integer(&w, "column", (int64_t)a->column[i]);
        hl_json_put_real(&w, "value", a->value[i]);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    hl_json_open(&w, "patterns", '[');
    for (size_t k = 0; k < a->patterns; k++) {
        hl_json_open(&w, NULL, '{');
        hl_json_put_integer(&w, "mask", a->pattern[k].mask);
        hl_json_put_integer(&w, "rows", (int64_t)a->pattern[k].rows);
        if (a->pattern[k].rest)
            hl_json_put_integer(&w, "bytes", (int64_t)a->pattern[k].bytes);
        hl_json_close(&w, '}');
    }
    hl_json_close(&w, ']');
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

hl_status hl_atoms_gather(const hl_density *m, hl_tensors *t)
{
    struct hl_density_atoms *a = m->atoms;
    hl_status status = HL_OK;
    for (size_t k = 0; k < a->patterns && status == HL_OK; k++) {
        char name[32];
        if (!a->pattern[k].rest)
            continue;
        status = pack(m->ctx, &a->pattern[k]);
        const size_t dims[1] = { a->pattern[k].bytes / sizeof(double) + 1 };
        snprintf(name, sizeof name, "pattern.%zu", k);
        if (status == HL_OK)
            status = hl_tensors_add(t, name, HL_F64, 1, dims, a->pattern[k].packed);
    }
    return status == HL_OK ? hl_model_set(m->ctx, t, "atoms", describe(m)) : status;
}

static hl_status bad(hl_context *ctx, const char *path, const char *what)
{
    return hl_fail(ctx, HL_ERR_FORMAT, "%s: %s", path, what);
}

static hl_status read_rest(hl_density *m, const char *path, const hl_tensors *t, size_t k, size_t bytes)
{
    hl_atom_pattern *p = &m->atoms->pattern[k];
    char name[32];
    snprintf(name, sizeof name, "pattern.%zu", k);
    const hl_tensor *x = hl_tensors_find(t, name);
    if (!x || x->dtype != HL_F64 || x->rank != 1 || x->dims[0] != bytes / sizeof(double) + 1)
        return bad(m->ctx, path, "the model of a pattern is missing");
    size_t rest = m->dim;
    for (size_t i = 0; i < m->atoms->count; i++)
        rest -= p->mask >> i & 1;
    hl_status status = hl_density_read(m->ctx, x->data, bytes, &p->rest);
    if (status == HL_OK && (p->rest->dim != rest || p->rest->context > 1 || p->rest->atoms))
        status = bad(m->ctx, path, "the model of a pattern has other columns than the pattern leaves");
    return status;
}

static hl_status read_patterns(hl_density *m, const char *path, const hl_tensors *t, const hl_json *j, size_t *taken)
{
    struct hl_density_atoms *a = m->atoms;
    a->pattern = hl_calloc(m->ctx, j->count, sizeof *a->pattern);
    if (!a->pattern)
        return HL_ERR_NOMEM;
    for (const hl_json *p = j->first; p; p = p->next) {
        const hl_json *mask = hl_json_get(p, "mask"), *rows = hl_json_get(p, "rows"), *bytes = hl_json_get(p, "bytes");
        if (!hl_json_is_integer(mask) || mask->integer < 0 || mask->integer >= (int64_t)1 << a->count ||
            !hl_json_is_integer(rows) || rows->integer < 1 || rows->integer > (int64_t)1 << 53 ||
            (bytes && (!hl_json_is_integer(bytes) || bytes->integer < 1)) ||
            hl_atoms_find(a, (uint32_t)mask->integer) < a->patterns)
            return bad(m->ctx, path, "a pattern of its atoms is wrong");
        a->pattern[a->patterns++] = (hl_atom_pattern){ .mask = (uint32_t)mask->integer, .rows = (double)rows->integer };
        *taken += bytes != NULL;
        hl_status status = bytes ? read_rest(m, path, t, a->patterns - 1, (size_t)bytes->integer) : HL_OK;
        if (status != HL_OK)
            return status;
    }
    return HL_OK;
}

hl_status hl_atoms_read(hl_density *m, const char *path, const hl_tensors *t, const hl_json *j, size_t *taken)
{
    const hl_json *atoms = hl_json_get(j, "atoms"), *patterns = hl_json_get(j, "patterns");
    if (!atoms || atoms->kind != HL_JSON_ARRAY || atoms->count < 1 || atoms->count > HL_ATOMS || !patterns ||
        patterns->kind != HL_JSON_ARRAY || patterns->count < 1 || !m->map || m->context || m->flow || m->mixtures)
        return bad(m->ctx, path, "its atoms, or maps for them, are missing, or it has members besides");
    m->atoms = hl_calloc(m->ctx, 1, sizeof *m->atoms);
    if (!m->atoms)
        return HL_ERR_NOMEM;
    for (const hl_json *x = atoms->first; x; x = x->next) {
        const hl_json *column = hl_json_get(x, "column"), *value = hl_json_get(x, "value");
        size_t count = m->atoms->count;
        if (!hl_json_is_integer(column) || !hl_json_is_number(value) || !isfinite(value->number) ||
            column->integer < (count ? (int64_t)m->atoms->column[count - 1] + 1 : 0) ||
            column->integer >= (int64_t)m->dim)
            return bad(m->ctx, path, "an atom has no column or no value");
        m->atoms->column[count] = (size_t)column->integer;
        m->atoms->value[m->atoms->count++] = value->number;
    }
    hl_status status = read_patterns(m, path, t, patterns, taken);
    if (status == HL_OK)
        hl_atoms_prepare(m->atoms);
    return status;
}
