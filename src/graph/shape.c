/* shape.c - per-row shapes. */
#include <string.h>

#include "graph/graph.h"

size_t hl_shape_size(const hl_shape *s)
{
    size_t n = 1;
    for (int i = 0; i < s->rank; i++)
        n = hl_size_mul(n, s->dim[i]);
    return n;
}

bool hl_shape_equal(const hl_shape *a, const hl_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

bool hl_shape_join(const hl_shape *a, const hl_shape *b, hl_shape *out)
{
    hl_shape s = { .rank = a->rank > b->rank ? a->rank : b->rank, .batched = a->batched || b->batched };
    for (int i = 0; i < s.rank; i++) {
        int ia = i - (s.rank - a->rank), ib = i - (s.rank - b->rank);
        size_t da = ia < 0 ? 1 : a->dim[ia], db = ib < 0 ? 1 : b->dim[ib];
        if (da != db && da != 1 && db != 1)
            return false;
        s.dim[i] = da == 1 ? db : da;
    }
    *out = s;
    return true;
}

const char *hl_shape_text(const hl_shape *s, char *buffer, size_t size)
{
    hl_text text = hl_text_start(buffer, size);
    hl_text_add(&text, "%s [", s->batched ? "batched" : "shared");
    for (int i = 0; i < s->rank; i++)
        hl_text_add(&text, i ? ", %zu" : "%zu", s->dim[i]);
    hl_text_add(&text, "]");
    return buffer;
}
