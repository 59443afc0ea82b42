/* text.c - texts of bounded size, made piece by piece. No other code computes how much room is left in a buffer.
 *
 * Invariant: text[0..used] is a string, used < size, and a list that is not full has room for ", ...". */
#include <stdio.h>
#include <string.h>

#include "base/base.h"

hl_text hl_text_start(char *buffer, size_t size)
{
    if (size)
        buffer[0] = '\0';
    return (hl_text){ .text = buffer, .size = size };
}

void hl_text_add(hl_text *t, const char *format, ...)
{
    size_t room = t->size - t->used;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(room ? t->text + t->used : NULL, room, format, args);
    va_end(args);
    if (length <= 0)
        return;
    t->length += (size_t)length;
    if (room)
        t->used += (size_t)length < room ? (size_t)length : room - 1;
}

void hl_text_list(hl_text *t, const char *item)
{
    const char *comma = t->used ? ", " : "";

    if (t->full)
        return;
    t->full = t->used + strlen(comma) + strlen(item) + sizeof ", ..." > t->size;
    hl_text_add(t, "%s%s", comma, t->full ? "..." : item);
}
