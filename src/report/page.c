/* page.c - the text of a page: what may go into HTML and how numbers look. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/page.h"

static void put(hl_page *p, const char *text, size_t length)
{
    if (p->failed || hl_grow(p->ctx, &p->text, &p->capacity, hl_size_add(p->used, length + 1), 1) != HL_OK) {
        p->failed = true;
        return;
    }
    memcpy((char *)p->text + p->used, text, length);
    p->used += length;
    ((char *)p->text)[p->used] = '\0';
}

void hl_page_put(hl_page *p, const char *html)
{
    put(p, html, strlen(html));
}

void hl_page_add(hl_page *p, const char *format, ...)
{
    char buffer[1024];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    if (length > 0)
        put(p, buffer, (size_t)length < sizeof buffer ? (size_t)length : sizeof buffer - 1);
}

/* Control characters and those that turn the direction of text become a sign that can be seen. Returns its length, or 0 for others. */
static size_t unseen(const unsigned char *c)
{
    if (*c < 0x20 || *c == 0x7f)
        return 1;
    if (c[0] == 0xe2 && ((c[1] == 0x80 && ((c[2] >= 0x8b && c[2] <= 0x8f) || (c[2] >= 0xa8 && c[2] <= 0xae))) ||
                         (c[1] == 0x81 && c[2] >= 0xa6 && c[2] <= 0xa9)))
        return 3;
    return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

void hl_page_text(hl_page *p, const char *text)
{
    static const char special[] = "<>&\"'";
    static const char *const written[] = { "&lt;", "&gt;", "&amp;", "&quot;", "&#39;" };
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        const char *found = strchr(special, *c);
        size_t length = unseen(c);
        if (length)
            hl_page_put(p, "\xef\xbf\xbd");
        else if (found)
            hl_page_put(p, written[found - special]);
        else
            put(p, (const char *)c, 1);
        c += length ? length : 1;
    }
}

void hl_page_script_text(hl_page *p, const char *text)
{
    put(p, "\"", 1);
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        size_t length = unseen(c);
        if (length)
            hl_page_put(p, "\\ufffd");
        else if (strchr("<>&\"'\\", *c))
            hl_page_add(p, "\\u%04x", *c);
        else
            put(p, (const char *)c, 1);
        c += length ? length : 1;
    }
    put(p, "\"", 1);
}

/* ---- numbers ---- */

/* The digits of a number and its exponent: value = 0.ddd 10^exponent, without zeros at its end. Whatever the locale has for a point is not
 * a digit. */
static size_t find_digits(double value, int digits, char *to, int *exponent)
{
    char text[64];
    size_t count = 0;
    snprintf(text, sizeof text, "%.*e", digits - 1, fabs(value));
    char *mark = strchr(text, 'e');
    for (const char *c = text; mark && c < mark; c++)
        if (*c >= '0' && *c <= '9')
            to[count++] = *c;
    *exponent = 1;
    if (mark)
        sscanf(mark + 1, "%d", exponent);
    *exponent += 1;
    while (count > 1 && to[count - 1] == '0')
        count--;
    to[count] = '\0';
    return count;
}

static void put_number(hl_page *p, double value, int digits, const char *minus)
{
    char d[40];
    int exponent;
    size_t count = find_digits(value, digits < 1 ? 1 : digits > 17 ? 17 : digits, d, &exponent);
    if (value < 0)
        hl_page_put(p, minus);
    if (value == 0) {
        hl_page_put(p, "0");
    } else if (exponent < -3 || exponent > 7) {
        put(p, d, 1);
        if (count > 1)
            hl_page_add(p, ".%s", d + 1);
        hl_page_add(p, "e%d", exponent - 1);
    } else if (exponent <= 0) {
        hl_page_add(p, "0.%.*s%s", -exponent, "0000", d);
    } else if ((int)count <= exponent) {
        hl_page_add(p, "%s%.*s", d, exponent - (int)count, "00000000");
    } else {
        put(p, d, (size_t)exponent);
        hl_page_add(p, ".%s", d + exponent);
    }
}

void hl_page_number(hl_page *p, double value, int digits)
{
    if (isnan(value))
        hl_page_put(p, "\xe2\x80\x93");
    else if (isinf(value))
        hl_page_put(p, value > 0 ? "\xe2\x88\x9e" : "\xe2\x88\x92\xe2\x88\x9e");
    else
        put_number(p, value, digits, "\xe2\x88\x92");
}

void hl_page_script_number(hl_page *p, double value, int digits)
{
    if (isfinite(value))
        put_number(p, value, digits, "-");
    else
        hl_page_put(p, "null");
}

void hl_page_place(hl_page *p, double value)
{
    double tenths = isnan(value) ? 0 : round(fmin(fmax(value, -9999), 9999) * 10);
    int whole = (int)fabs(tenths);
    hl_page_add(p, tenths < 0 ? "-%d" : "%d", whole / 10);
    if (whole % 10)
        hl_page_add(p, ".%d", whole % 10);
}

void hl_page_count(hl_page *p, size_t value)
{
    if (value >= 1000)
        hl_page_count(p, value / 1000);
    hl_page_add(p, value >= 1000 ? ",%03zu" : "%zu", value % 1000);
}

void hl_page_percent(hl_page *p, double share)
{
    hl_page_number(p, 100 * share, share < 0.1 ? 2 : 3);
    if (!isnan(share))
        hl_page_put(p, "\xc2\xa0%");
}

void hl_page_p_value(hl_page *p, double value)
{
    if (value < 0.001)
        hl_page_put(p, "&lt;\xc2\xa0"
                       "0.001");
    else
        hl_page_number(p, value, value < 0.1 ? 2 : 3);
}
