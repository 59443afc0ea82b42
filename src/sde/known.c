/* known.c - known parts of an equation, as text: "x1=x2;x2=0.5-2*x1" for drift, "x1=0" for diffusion.
 *
 *   list = item {";" item}      item = name "=" sum      sum = term {("+" | "-") term}
 *   term = number | number "*" name | name | name "*" number */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde/learn.h"

typedef struct scanner {
    const char *at;
    size_t dim;
    const char (*names)[HL_SDE_NAME];
} scanner;

static bool take(scanner *s, char c)
{
    while (isspace((unsigned char)*s->at))
        s->at++;
    if (*s->at != c)
        return false;
    s->at++;
    return true;
}

/* The longest name that stands here, or dim. */
static size_t take_name(scanner *s)
{
    size_t best = s->dim, length = 0;
    take(s, ' ');
    for (size_t i = 0; i < s->dim; i++) {
        size_t size = strlen(s->names[i]);
        if (size > length && strncmp(s->at, s->names[i], size) == 0) {
            best = i;
            length = size;
        }
    }
    s->at += length;
    return best;
}

static bool take_number(scanner *s, double *value)
{
    char *end;
    take(s, ' ');
    if (!isdigit((unsigned char)*s->at) && *s->at != '.')
        return false;
    *value = strtod(s->at, &end);
    bool good = end > s->at && isfinite(*value);
    s->at = end;
    return good;
}

/* Adds a term to the constant or to one coefficient. */
static bool take_term(scanner *s, double sign, double *constant, double *linear)
{
    double factor = 1;
    size_t name = take_name(s);
    if (name < s->dim) {
        if (take(s, '*') && !take_number(s, &factor))
            return false;
    } else {
        if (!take_number(s, &factor))
            return false;
        if (take(s, '*') && (name = take_name(s)) == s->dim)
            return false;
    }
    *(name < s->dim ? &linear[name] : constant) += sign * factor;
    return true;
}

static bool take_sum(scanner *s, double *constant, double *linear)
{
    double sign = take(s, '-') ? -1 : (take(s, '+'), 1);
    for (;;) {
        if (!take_term(s, sign, constant, linear))
            return false;
        if (take(s, '-'))
            sign = -1;
        else if (take(s, '+'))
            sign = 1;
        else
            return true;
    }
}

hl_status hl_known_read(hl_context *ctx, const char *option, const char *text, bool drift, size_t dim,
                        const char (*names)[HL_SDE_NAME], hl_sde_known *known, double *linear)
{
    scanner s = { text, dim, names };
    do {
        take(&s, ' ');
        const char *start = s.at;
        size_t i = take_name(&s);
        if (i == dim || !take(&s, '='))
            return hl_fail(ctx, HL_ERR_INVALID, "%s: '%.100s' does not begin with a column of x and '='", option,
                           start);
        if (drift ? known[i].drift : known[i].diffusion)
            return hl_fail(ctx, HL_ERR_INVALID, "%s: column '%.100s' is given twice", option, names[i]);
        double constant = 0, *row = linear + i * dim;
        bool good = drift ? take_sum(&s, &constant, row) : take_number(&s, &constant);
        if (!good || (!take(&s, ';') && *s.at))
            return hl_fail(ctx, HL_ERR_INVALID, "%s: '%.100s' is not %s; error at '%.100s'", option, start,
                           drift ? "a sum of numbers and of columns times numbers" : "a number that is not negative",
                           s.at);
        if (drift) {
            known[i].drift = 1;
            known[i].drift_constant = constant;
            known[i].drift_linear = row;
        } else {
            known[i].diffusion = 1;
            known[i].diffusion_value = constant;
        }
    } while (*s.at);
    return HL_OK;
}
