/* equation.c - drift and diffusion of a regression as text: polynomials in the user's units, and which other functions there are. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hollow/sde_forms.h"
#include "hollow/sde_regress.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { CORNERS = 1 << HL_BASIS_FACTORS }; /* terms of a product of sums of two */
static const double negligible = 1e-12;   /* of the sum of absolute values that a term is made of */

typedef struct term {
    unsigned short factor[HL_BASIS_FACTORS]; /* numbers of inputs + 1, rising, after zeros */
    double value, size;
} term;

static int degree_of(const term *t)
{
    int degree = 0;
    for (size_t k = 0; k < HL_BASIS_FACTORS; k++)
        degree += t->factor[k] != 0;
    return degree;
}

static int by_factors(const void *a, const void *b)
{
    const term *p = a, *q = b;
    int order = degree_of(p) - degree_of(q);
    for (size_t k = 0; k < HL_BASIS_FACTORS && order == 0; k++)
        order = (int)p->factor[k] - (int)q->factor[k];
    return order;
}

/* z = shift + scale * (column or time). */
static void scale_of(const hl_sde_simple *s, size_t input, double *shift, double *scale)
{
    if (input < s->dim) {
        *scale = 1 / s->deviation[input];
        *shift = -s->mean[input] / s->deviation[input];
        return;
    }
    double unit = (s->t_last - s->t_first) / HL_SDE_SPAN, rate = hl_sde_clock(1) - hl_sde_clock(0);
    *scale = rate / unit;
    *shift = hl_sde_clock(0) - rate * s->t_first / unit;
}

/* `value` times a product of the dictionary as terms in the user's units, CORNERS of them or fewer; returns their number. */
static size_t expand(const hl_sde_simple *s, const unsigned short *factor, double value, term *to)
{
    size_t count = 0, degree = 0;
    while (degree < HL_BASIS_FACTORS && factor[degree])
        degree++;
    for (size_t corner = 0; corner < (size_t)1 << degree; corner++) {
        term t = { .value = value };
        size_t at = HL_BASIS_FACTORS;
        for (size_t k = degree; k-- > 0;) {
            double shift, scale;
            scale_of(s, factor[k] - 1u, &shift, &scale);
            bool own = corner >> k & 1;
            t.value *= own ? scale : shift;
            if (own)
                t.factor[--at] = factor[k];
        }
        t.size = fabs(t.value);
        to[count++] = t;
    }
    return count;
}

static size_t merge(size_t count, term *t)
{
    size_t kept = 0;
    qsort(t, count, sizeof *t, by_factors);
    for (size_t k = 0; k < count; k++)
        if (kept && by_factors(&t[kept - 1], &t[k]) == 0) {
            t[kept - 1].value += t[k].value;
            t[kept - 1].size += t[k].size;
        } else {
            t[kept++] = t[k];
        }
    count = 0;
    for (size_t k = 0; k < kept; k++)
        if (fabs(t[k].value) > negligible * t[k].size)
            t[count++] = t[k];
    return count;
}

static void put_number(hl_text *to, bool first, double value)
{
    if (first)
        hl_text_add(to, "%.5g", value);
    else
        hl_text_add(to, value < 0 ? " - %.5g" : " + %.5g", fabs(value));
}

static const char *name_of(const hl_sde *sde, size_t input)
{
    return hl_sde_name(sde, input);
}

static void put_term(const hl_sde *sde, hl_text *to, bool first, const term *t)
{
    put_number(to, first, t->value);
    for (size_t k = 0; k < HL_BASIS_FACTORS; k++) {
        size_t power = 1;
        if (!t->factor[k])
            continue;
        hl_text_add(to, "*%s", name_of(sde, t->factor[k] - 1u));
        while (k + 1 < HL_BASIS_FACTORS && t->factor[k + 1] == t->factor[k]) {
            k++;
            power++;
        }
        if (power > 1)
            hl_text_add(to, "^%zu", power);
    }
}

/* Are the directions of two ridges the same? */
static bool parallel(const hl_basis *b, size_t j, size_t k)
{
    const double *u = b->scale + j * b->inputs, *v = b->scale + k * b->inputs;
    double product = hl_dot(b->inputs, u, v), size = hl_dot(b->inputs, u, u) * hl_dot(b->inputs, v, v);
    return product * product >= (1 - 1e-9) * size;
}

/* The combination of columns that a ridge is a function of, its largest coefficient 1. */
static void put_direction(const hl_sde *sde, hl_text *to, const double *scale)
{
    const hl_sde_simple *s = sde->simple;
    double largest = 0, shift, unit;
    bool first = true;
    for (size_t i = 0; i < s->inputs; i++) {
        scale_of(s, i, &shift, &unit);
        largest = fabs(scale[i] * unit) > fabs(largest) ? scale[i] * unit : largest;
    }
    for (size_t i = 0; i < s->inputs; i++) {
        scale_of(s, i, &shift, &unit);
        double value = scale[i] * unit / largest;
        if (fabs(value) < 1e-3)
            continue;
        if (value == 1)
            hl_text_add(to, "%s%s", first ? "" : " + ", name_of(sde, i));
        else
            put_term(sde, to, first, &(term){ .factor = { 0, 0, (unsigned short)(i + 1) }, .value = value });
        first = false;
    }
}

static void put_gaussians(const hl_sde *sde, hl_text *to, const hl_basis *b, const double *coefficient)
{
    size_t radial = 0, ridges = b->bumps - b->ridges;
    for (size_t k = 0; k < ridges; k++)
        radial += coefficient[b->products + k] != 0;
    if (radial)
        hl_text_add(to, " + %zu Gaussian%s", radial, radial == 1 ? "" : "s");
    for (size_t k = ridges, next; k < b->bumps; k = next) {
        size_t count = 0;
        for (next = k; next < b->bumps && parallel(b, k, next); next++)
            count += coefficient[b->products + next] != 0;
        if (!count)
            continue;
        hl_text_add(to, " + %zu Gaussian%s of ", count, count == 1 ? "" : "s");
        put_direction(sde, to, b->scale + k * b->inputs);
    }
}

static hl_status put_sum(const hl_sde *sde, size_t part, size_t column, hl_text *to)
{
    const hl_sde_simple *s = sde->simple;
    const hl_basis *b = &s->basis[part];
    const double *coefficient = s->coefficient[part] + column * hl_basis_size(b);
    double unit = (s->t_last - s->t_first) / HL_SDE_SPAN, d = s->deviation[column];
    term *t = hl_calloc(sde->ctx, hl_size_mul(b->products, CORNERS), sizeof *t);
    if (!t)
        return HL_ERR_NOMEM;
    size_t count = 0;
    for (size_t a = 0; a < b->products; a++)
        if (coefficient[a] != 0)
            count += expand(s, b->factor[a], coefficient[a] * (part ? d * d : d) / unit, t + count);
    count = merge(count, t);
    if (!count)
        hl_text_add(to, "0");
    for (size_t k = 0; k < count; k++)
        put_term(sde, to, k == 0, &t[k]);
    put_gaussians(sde, to, b, coefficient);
    hl_free(sde->ctx, t);
    return HL_OK;
}

static bool is_constant(const hl_sde_simple *s, size_t part, size_t column)
{
    size_t size = hl_basis_size(&s->basis[part]);
    bool constant = true;
    for (size_t a = 1; a < size; a++)
        constant = constant && s->coefficient[part][column * size + a] == 0;
    return constant;
}

hl_status hl_sde_equation(const hl_sde *sde, int part, size_t column, char *buffer, size_t size)
{
    if (!sde)
        return HL_ERR_INVALID;
    if (!buffer || size < 8 || part < 0 || part > 1 || column >= sde->spec.dim)
        return hl_fail(sde->ctx, HL_ERR_INVALID,
                       "hl_sde_equation: part is 0 or 1, column a column, and the buffer has at least 8 bytes");
    *buffer = 0;
    const hl_sde_simple *s = sde->simple;
    if (!s || hl_sde_forms_has(sde->forms, part, column))
        return hl_fail(sde->ctx, HL_ERR_UNSUPPORTED, "hl_sde_equation: this part of the model is not a regression");
    hl_text to = hl_text_start(buffer, size - 3);
    hl_status status = HL_OK;
    if (part && is_constant(s, 1, column)) {
        hl_text_add(&to, "g_%s = %.5g", name_of(sde, column),
                    hl_sde_simple_value(s, 1, column, s->coefficient[1][column * hl_basis_size(&s->basis[1])]));
    } else {
        hl_text_add(&to, part ? "g_%s^2 = " : "f_%s = ", name_of(sde, column));
        status = put_sum(sde, (size_t)part, column, &to);
    }
    if (to.length > to.used) { /* cut after a whole word */
        char *space = strrchr(buffer, ' ');
        strcpy(space ? space + 1 : buffer, "...");
    }
    return status;
}
