/* density_fit_patterns.c - which rows of a streamed table have which pattern of atoms. One pass over the table counts the patterns and leaves an
 * index of 8 bytes a row, sorted by pattern; by it the rows of a pattern are a table of their own, which may be streamed in turn. */
#include <stdlib.h>
#include <string.h>

#include "base/ranks.h"
#include "learn/density_atoms.h"
#include "learn/density_fit.h"

enum { CHUNK = 4096 };

static int by_rows(const void *a, const void *b)
{
    const hl_atom_pattern *x = a, *y = b;
    if (x->rows != y->rows)
        return x->rows > y->rows ? -1 : 1;
    return x->mask < y->mask ? -1 : x->mask > y->mask;
}

/* The pattern of every row, and how many rows each has. */
static hl_status read_masks(hl_fit_patterns *p, uint16_t *mask, size_t *count)
{
    const hl_fit_stream *s = p->stream;
    size_t rows = s->source.rows, number[CHUNK];
    double *x = hl_calloc(s->ctx, hl_size_mul(CHUNK, s->dim), sizeof *x);
    hl_status status = x ? HL_OK : HL_ERR_NOMEM;
    for (size_t at = 0; at < rows && status == HL_OK; at += CHUNK) {
        size_t n = rows - at < CHUNK ? rows - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            number[i] = at + i;
        status = hl_check_stop(s->ctx);
        if (status == HL_OK)
            status = hl_fit_stream_take(s, n, number, x);
        for (size_t i = 0; i < n && status == HL_OK; i++)
            count[mask[at + i] = (uint16_t)hl_atoms_mask(p->atoms, x + i * s->dim)]++;
    }
    hl_free(s->ctx, x);
    return status;
}

/* The patterns, the most frequent first, and where the rows of each begin. */
static hl_status list_patterns(hl_fit_patterns *p, size_t masks, size_t *count)
{
    struct hl_density_atoms *a = p->atoms;
    hl_context *ctx = p->stream->ctx;
    size_t found = 0, at = 0;
    for (size_t m = 0; m < masks; m++)
        found += count[m] > 0;
    a->pattern = hl_calloc(ctx, found, sizeof *a->pattern);
    p->first = hl_calloc(ctx, found + 1, sizeof *p->first);
    if (!a->pattern || !p->first)
        return HL_ERR_NOMEM;
    for (size_t m = 0; m < masks; m++)
        if (count[m])
            a->pattern[a->patterns++] = (hl_atom_pattern){ .mask = (uint32_t)m, .rows = (double)count[m] };
    qsort(a->pattern, a->patterns, sizeof *a->pattern, by_rows);
    for (size_t k = 0; k < a->patterns; k++) {
        p->first[k] = at;
        at += count[a->pattern[k].mask];
        count[a->pattern[k].mask] = p->first[k]; /* from now on: the place of its next row */
    }
    p->first[a->patterns] = at;
    hl_atoms_prepare(a);
    return HL_OK;
}

hl_status hl_fit_patterns_make(hl_fit_patterns *p, const hl_fit_stream *stream, struct hl_density_atoms *atoms)
{
    hl_context *ctx = stream->ctx;
    size_t rows = stream->source.rows, masks = (size_t)1 << atoms->count;
    *p = (hl_fit_patterns){ .stream = stream, .atoms = atoms };
    uint16_t *mask = hl_calloc(ctx, rows, sizeof *mask);
    size_t *count = hl_calloc(ctx, masks, sizeof *count);
    p->row = hl_calloc(ctx, rows, sizeof *p->row);
    hl_status status = mask && count && p->row ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = read_masks(p, mask, count);
    if (status == HL_OK)
        status = list_patterns(p, masks, count);
    for (size_t r = 0; r < rows && status == HL_OK; r++)
        p->row[count[mask[r]]++] = r;
    hl_free(ctx, mask);
    hl_free(ctx, count);
    return hl_ranks_agree(ctx, status);
}

void hl_fit_patterns_free(hl_fit_patterns *p)
{
    if (!p->stream)
        return;
    hl_free(p->stream->ctx, p->row);
    hl_free(p->stream->ctx, p->first);
}

size_t hl_fit_patterns_rows(const hl_fit_patterns *p, size_t k)
{
    return p->first[k + 1] - p->first[k];
}

hl_status hl_fit_pattern_read(size_t count, const size_t *row, double *x, double *context, double *weights, void *user)
{
    const hl_fit_pattern_rows *r = user;
    const hl_fit_stream *s = r->patterns->stream;
    const size_t *index = r->patterns->row + r->patterns->first[r->pattern];
    size_t number[CHUNK];
    double *whole = hl_calloc(s->ctx, hl_size_mul(CHUNK, s->dim), sizeof *whole);
    hl_status status = whole ? HL_OK : HL_ERR_NOMEM;
    (void)context;
    (void)weights;
    for (size_t at = 0, n; at < count && status == HL_OK; at += n) {
        n = count - at < CHUNK ? count - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            number[i] = index[row[at + i]];
        status = hl_fit_stream_take(s, n, number, whole);
        for (size_t i = 0; i < n * r->rest && status == HL_OK; i++)
            x[at * r->rest + i] = whole[i / r->rest * s->dim + r->columns[i % r->rest]];
    }
    hl_free(s->ctx, whole);
    return status;
}
