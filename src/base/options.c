/* options.c - options by name: looked up in a table, checked when they are set, kept as text. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/options.h"

struct hl_settings {
    hl_context *ctx;
    const hl_option *table;
    size_t count;
    char **text; /* [count], NULL where nothing is set */
};

/* ---- names ---- */

static bool same_letter(char a, char b)
{
    return a == b || (a == '_' && b == '-') || (a == '-' && b == '_');
}

static bool same_name(const char *a, const char *b)
{
    while (*a && same_letter(*a, *b))
        a++, b++;
    return !*a && !*b;
}

const hl_option *hl_option_find(const hl_option *table, const char *name)
{
    for (const hl_option *o = table; o && name && o->name; o++)
        if (same_name(o->name, name))
            return o;
    return NULL;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

enum { LONGEST = 40 }; /* names that are compared */

/* Letters to insert, delete, replace or swap with their neighbours to make one name the other; SIZE_MAX for long names. */
static size_t distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b), row[3][LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = row[i % 3], *before = row[(i - 1) % 3];
        const size_t *second = row[(i + 1) % 3]; /* the row before `before` */
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            bool same = same_letter(a[i - 1], b[j - 1]);
            now[j] = least(least(now[j - 1], before[j]) + 1, before[j - 1] + !same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = least(now[j], second[j - 2] + 1);
        }
    }
    return row[n % 3][m];
}

const char *hl_option_nearest(const hl_option *table, const char *name)
{
    const char *nearest = NULL;
    size_t length = name ? strlen(name) : 0, best = length > 3 ? length / 3 + 1 : 1; /* more make another word */
    for (const hl_option *o = table; o && name && o->name; o++) {
        size_t d = o->name[1] ? distance(name, o->name) : SIZE_MAX; /* one letter is near to anything */
        if (d <= best && (!nearest || d < best)) {
            best = d;
            nearest = o->name;
        }
    }
    return nearest;
}

/* ---- settings ---- */

hl_status hl_settings_create(hl_context *ctx, const hl_option *table, hl_settings **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!table || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_settings_create: the table or the result is NULL");
    *out = NULL;
    hl_settings *s = hl_calloc(ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    s->ctx = ctx;
    s->table = table;
    while (table[s->count].name)
        s->count++;
    s->text = hl_calloc(ctx, s->count, sizeof *s->text);
    if (!s->text) {
        hl_settings_free(s);
        return HL_ERR_NOMEM;
    }
    *out = s;
    return HL_OK;
}

void hl_settings_free(hl_settings *s)
{
    if (!s)
        return;
    for (size_t i = 0; s->text && i < s->count; i++)
        hl_free(s->ctx, s->text[i]);
    hl_free(s->ctx, s->text);
    hl_free(s->ctx, s);
}

static bool is_integer(const char *text, uint64_t *value)
{
    char *end;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return !*end && !errno;
}

static bool is_real(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return *text && !isspace((unsigned char)*text) && !*end && isfinite(*value);
}

static size_t find_choice(const hl_option *o, const char *text)
{
    size_t i = 0;
    while (o->choices[i] && strcmp(o->choices[i], text) != 0)
        i++;
    return i;
}

static hl_status unknown_choice(hl_context *ctx, const hl_option *o, const char *text)
{
    char list[300] = "";
    size_t used = 0;
    for (size_t i = 0; o->choices[i] && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", o->choices[i]);
    return hl_fail(ctx, HL_ERR_INVALID, "unknown %s '%.80s'; use one of %s", o->name, text, list);
}

static hl_status check_value(hl_context *ctx, const hl_option *o, const char *text)
{
    uint64_t integer = 0;
    double real = 0;
    switch (o->kind) {
    case HL_OPTION_FLAG:
        if (strcmp(text, "on") == 0 || strcmp(text, "off") == 0)
            return HL_OK;
        return hl_fail(ctx, HL_ERR_INVALID, "%s: '%.80s' is neither on nor off", o->name, text);
    case HL_OPTION_INTEGER:
        if (is_integer(text, &integer) && (double)integer >= o->low && (double)integer <= o->high)
            return HL_OK;
        return hl_fail(ctx, HL_ERR_INVALID, "%s: '%.80s' is not an integer in %.0f..%.0f", o->name, text, o->low,
                       o->high);
    case HL_OPTION_REAL:
        if (is_real(text, &real) && real >= o->low && real <= o->high)
            return HL_OK;
        return hl_fail(ctx, HL_ERR_INVALID, "%s: '%.80s' is not a number in %g..%g", o->name, text, o->low, o->high);
    case HL_OPTION_TEXT:
        return *text ? HL_OK : hl_fail(ctx, HL_ERR_INVALID, "%s: the %s is empty", o->name, o->value);
    case HL_OPTION_CHOICE:
        return o->choices[find_choice(o, text)] ? HL_OK : unknown_choice(ctx, o, text);
    }
    return hl_fail(ctx, HL_ERR_INVALID, "option '%s' has an unknown kind", o->name);
}

hl_status hl_settings_set(hl_settings *s, const char *name, const char *text)
{
    if (!s)
        return HL_ERR_INVALID;
    const hl_option *o = hl_option_find(s->table, name);
    const char *nearest = o ? NULL : hl_option_nearest(s->table, name);
    if (!o)
        return hl_fail(s->ctx, HL_ERR_INVALID, "unknown option '%.80s'%s%s%s", name ? name : "",
                       nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    hl_status status = text ? check_value(s->ctx, o, text) : HL_OK;
    if (status != HL_OK)
        return status;
    char *copy = text ? hl_alloc(s->ctx, strlen(text) + 1) : NULL, **place = &s->text[o - s->table];
    if (text && !copy)
        return HL_ERR_NOMEM;
    if (text)
        memcpy(copy, text, strlen(text) + 1);
    hl_free(s->ctx, *place);
    *place = copy;
    return HL_OK;
}

const char *hl_settings_text(const hl_settings *s, const char *name)
{
    const hl_option *o = s ? hl_option_find(s->table, name) : NULL;
    return o ? s->text[o - s->table] : NULL;
}

/* ---- for jobs ---- */

bool hl_settings_given(const hl_settings *s, const char *name)
{
    return hl_settings_text(s, name) != NULL;
}

bool hl_settings_flag(const hl_settings *s, const char *name, bool otherwise)
{
    const char *text = hl_settings_text(s, name);
    return text ? strcmp(text, "on") == 0 : otherwise;
}

uint64_t hl_settings_integer(const hl_settings *s, const char *name, uint64_t otherwise)
{
    const char *text = hl_settings_text(s, name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

double hl_settings_real(const hl_settings *s, const char *name, double otherwise)
{
    const char *text = hl_settings_text(s, name);
    return text ? strtod(text, NULL) : otherwise;
}

size_t hl_settings_choice(const hl_settings *s, const char *name, size_t otherwise)
{
    const char *text = hl_settings_text(s, name);
    return text ? find_choice(hl_option_find(s->table, name), text) : otherwise;
}

/* Is the value among "cnf|maf"? */
static bool in_list(const char *list, const char *value)
{
    size_t length = strlen(value);
    for (const char *at = list; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL)
        if (strncmp(at, value, length) == 0 && (!at[length] || at[length] == '|'))
            return true;
    return false;
}

/* An option that was set depends on the value of another, which is its first choice if it was not set. */
static hl_status check_effect(hl_context *ctx, const hl_settings *s, const hl_option *o)
{
    char name[LONGEST + 1] = "";
    const char *equals = strchr(o->applies, '=');
    snprintf(name, sizeof name, "%.*s", equals ? (int)(equals - o->applies) : 0, o->applies);
    const hl_option *other = hl_option_find(s->table, name);
    if (!other)
        return hl_fail(ctx, HL_ERR_INVALID, "option '%s' depends on '%s', which is not an option", o->name, o->applies);
    const char *value = hl_settings_text(s, name);
    value = value ? value : other->choices ? other->choices[0] : "";
    if (in_list(equals + 1, value))
        return HL_OK;
    return hl_fail(ctx, HL_ERR_INVALID, "option '%s' has no effect with %s=%s; it is for %s", o->name, name, value,
                   o->applies);
}

hl_status hl_settings_check(hl_context *ctx, const hl_settings *s, const hl_option *table)
{
    if (s && s->table != table)
        return hl_fail(ctx, HL_ERR_INVALID, "the settings were created for another job");
    hl_status status = HL_OK;
    for (size_t i = 0; s && i < s->count && status == HL_OK; i++)
        if (s->text[i] && s->table[i].applies)
            status = check_effect(ctx, s, &s->table[i]);
    return status;
}

double hl_option_number(const hl_option *table, const char *name)
{
    for (; table->name; table++) {
        char *end = NULL;
        double value = strcmp(table->name, name) == 0 && table->otherwise ? strtod(table->otherwise, &end) : NAN;
        if (end && end != table->otherwise && !*end)
            return value;
    }
    return NAN;
}
