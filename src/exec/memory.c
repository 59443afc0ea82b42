/* memory.c - places for values by their lifetimes: first fit, lowest offset that no value alive at the same time uses. */
#include "exec/plan.h"

#define ALIGN 16 /* elements: one entry */

static bool meet(const hl_life *a, const hl_life *b)
{
    return a->first <= b->last && b->first <= a->last && a->size && b->size;
}

/* The lowest offset for life[n] among the placed ones before it. */
static size_t lowest(const hl_life *life, size_t n)
{
    size_t at = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < n; i++)
            if (meet(&life[i], &life[n]) && at < life[i].offset + life[i].size && life[i].offset < at + life[n].size) {
                at = life[i].offset + life[i].size;
                moved = true;
            }
    }
    return at;
}

size_t hl_life_place(hl_life *life, size_t count)
{
    size_t top = 0;
    for (size_t n = 0; n < count; n++) {
        life[n].size = (life[n].size + ALIGN - 1) / ALIGN * ALIGN;
        life[n].offset = lowest(life, n);
        if (top < life[n].offset + life[n].size)
            top = life[n].offset + life[n].size;
    }
    return top;
}
