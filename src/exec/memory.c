/* memory.c - places for values by their lifetimes: first fit, lowest offset that no value alive at the same time uses. The
 * placed ones are kept in a list by offset, so one walk along it finds the place. */
#include "exec/plan.h"

#define ALIGN 16 /* elements: one entry */
#define END SIZE_MAX

static bool meet(const hl_life *a, const hl_life *b)
{
    return a->first <= b->last && b->first <= a->last && a->size && b->size;
}

/* The lowest offset for life[n] among the placed ones. */
static size_t lowest(const hl_life *life, size_t n, size_t head)
{
    size_t at = 0;
    for (size_t i = head; i != END && life[i].offset < at + life[n].size; i = life[i].next)
        if (meet(&life[i], &life[n]) && at < life[i].offset + life[i].size)
            at = life[i].offset + life[i].size;
    return at;
}

size_t hl_life_place(hl_life *life, size_t count)
{
    size_t top = 0, head = END;
    for (size_t n = 0; n < count; n++) {
        life[n].size = (life[n].size + ALIGN - 1) / ALIGN * ALIGN;
        life[n].offset = lowest(life, n, head);
        if (top < life[n].offset + life[n].size)
            top = life[n].offset + life[n].size;
        size_t *link = &head;
        while (*link != END && life[*link].offset < life[n].offset)
            link = &life[*link].next;
        life[n].next = *link;
        *link = n;
    }
    return top;
}
