/* basis.c - dictionaries of functions, and drift and diffusion made of them. */
#include <math.h>
#include <string.h>

#include "sde/regress.h"
#include "sde/sde.h"

hl_status hl_basis_create(hl_context *ctx, size_t inputs, size_t products, size_t bumps, hl_basis *b)
{
    *b = (hl_basis){ .inputs = inputs, .products = products, .bumps = bumps };
    b->factor = hl_calloc(ctx, products, sizeof *b->factor);
    b->centre = hl_calloc(ctx, hl_size_mul(bumps, inputs), sizeof *b->centre);
    b->scale = hl_calloc(ctx, hl_size_mul(bumps, inputs), sizeof *b->scale);
    return b->factor && b->centre && b->scale ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_basis_copy(hl_context *ctx, const hl_basis *from, size_t products, size_t bumps, hl_basis *b)
{
    hl_status status = hl_basis_create(ctx, from->inputs, products, bumps, b);
    if (status != HL_OK)
        return status;
    memcpy(b->factor, from->factor, products * sizeof *b->factor);
    memcpy(b->centre, from->centre, bumps * from->inputs * sizeof *b->centre);
    memcpy(b->scale, from->scale, bumps * from->inputs * sizeof *b->scale);
    size_t radial = from->bumps - from->ridges;
    b->ridges = bumps > radial ? bumps - radial : 0;
    if (!from->tangent || !b->ridges)
        return HL_OK;
    b->tangent = hl_calloc(ctx, bumps, sizeof *b->tangent);
    if (!b->tangent)
        return HL_ERR_NOMEM;
    memcpy(b->tangent, from->tangent, bumps * sizeof *b->tangent);
    return HL_OK;
}

void hl_basis_free(hl_context *ctx, hl_basis *b)
{
    hl_free(ctx, b->factor);
    hl_free(ctx, b->centre);
    hl_free(ctx, b->scale);
    hl_free(ctx, b->tangent);
    *b = (hl_basis){ 0 };
}

int hl_basis_degree(const hl_basis *b, size_t product)
{
    int degree = 0;
    for (size_t k = 0; k < HL_BASIS_FACTORS; k++)
        degree += b->factor[product][k] != 0;
    return degree;
}

/* u of a ridge: (z - centre) . scale. */
static double along(const hl_basis *b, size_t bump, const double *z)
{
    const double *centre = b->centre + bump * b->inputs, *scale = b->scale + bump * b->inputs;
    double sum = 0;
    for (size_t i = 0; i < b->inputs; i++)
        sum += (z[i] - centre[i]) * scale[i];
    return sum;
}

/* Tangents; those of one direction follow each other. */
static void eval_tangents(const hl_basis *b, const double *z, double *value)
{
    size_t before = SIZE_MAX;
    double slope = 0;
    for (size_t a = b->bumps - b->ridges; a < b->bumps; a++) {
        const hl_tangent *t = &b->tangent[a];
        size_t first = a - t->back;
        if (!t->back)
            continue;
        if (first != before) {
            slope = 0;
            for (size_t k = 0; k < HL_RIDGE_EACH; k++)
                slope -= t->coefficient[k] * along(b, first + k, z) * value[b->products + first + k];
            before = first;
        }
        value[b->products + a] = slope * hl_dot(b->inputs, b->scale + a * b->inputs, z);
    }
}

void hl_basis_eval(const hl_basis *b, const double *z, double *value)
{
    if (b->custom) {
        b->custom(b->user, z, value);
        return;
    }
    for (size_t a = 0; a < b->products; a++) {
        value[a] = 1;
        for (size_t k = 0; k < HL_BASIS_FACTORS && b->factor[a][k]; k++)
            value[a] *= z[b->factor[a][k] - 1];
    }
    for (size_t a = 0; a < b->bumps; a++) {
        double square = 0, sum = 0;
        for (size_t i = 0; i < b->inputs; i++) {
            double gap = (z[i] - b->centre[a * b->inputs + i]) * b->scale[a * b->inputs + i];
            square += gap * gap;
            sum += gap;
        }
        value[b->products + a] = exp(-0.5 * (a + b->ridges < b->bumps ? square : sum * sum));
    }
    if (b->tangent)
        eval_tangents(b, z, value);
}

/* ---- the result ---- */

hl_status hl_sde_simple_create(hl_context *ctx, size_t dim, size_t inputs, hl_sde_simple **simple)
{
    hl_sde_simple *s = hl_calloc(ctx, 1, sizeof *s);
    *simple = s;
    if (!s)
        return HL_ERR_NOMEM;
    s->ctx = ctx;
    s->dim = dim;
    s->inputs = inputs;
    s->least = hl_calloc(ctx, dim, sizeof *s->least);
    s->correlation = hl_calloc(ctx, hl_size_mul(dim, dim), sizeof *s->correlation);
    s->factor = hl_calloc(ctx, hl_size_mul(dim, dim), sizeof *s->factor);
    s->mean = hl_calloc(ctx, dim, sizeof *s->mean);
    s->deviation = hl_calloc(ctx, dim, sizeof *s->deviation);
    if (!s->least || !s->correlation || !s->factor || !s->mean || !s->deviation)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < dim; i++)
        s->correlation[i * dim + i] = s->factor[i * dim + i] = s->deviation[i] = 1;
    return HL_OK;
}

void hl_sde_simple_free(hl_sde_simple *s)
{
    if (!s)
        return;
    for (size_t k = 0; k < 2; k++) {
        hl_basis_free(s->ctx, &s->basis[k]);
        hl_free(s->ctx, s->coefficient[k]);
    }
    hl_replicates_free(s->ctx, s->replicates);
    hl_free(s->ctx, s->least);
    hl_free(s->ctx, s->correlation);
    hl_free(s->ctx, s->factor);
    hl_free(s->ctx, s->mean);
    hl_free(s->ctx, s->deviation);
    hl_free(s->ctx, s);
}

double hl_sde_simple_positive(double value, double least)
{
    double u = value / least;
    return least * (u > 0 ? u + log1p(exp(-u)) : log1p(exp(u)));
}

void hl_sde_simple_factor(hl_sde_simple *s)
{
    size_t d = s->dim;
    bool good = false;
    for (double keep = 1; !good; keep *= 0.95) {
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++)
                s->factor[i * d + j] = j > i ? 0 : j == i ? 1 : keep * s->correlation[i * d + j];
        good = hl_cholesky(d, s->factor, 0) > 0;
        for (size_t i = 0; i < d && good && keep < 1; i++)
            for (size_t j = 0; j < d; j++)
                s->correlation[i * d + j] *= i == j ? 1 : keep;
    }
}

hl_sde_regress_report hl_sde_simple_report(const hl_sde_simple *s)
{
    return s ? s->report : (hl_sde_regress_report){ 0 };
}

double hl_sde_simple_correlation(const hl_sde_simple *s, size_t i, size_t j)
{
    return s && i < s->dim && j < s->dim ? s->correlation[i * s->dim + j] : NAN;
}

/* Drift or diffusion in the user's units from a sum of functions. */
double hl_sde_simple_value(const hl_sde_simple *s, size_t part, size_t i, double y)
{
    double unit = (s->t_last - s->t_first) / HL_SDE_SPAN;
    return part ? s->deviation[i] * sqrt(hl_sde_simple_positive(y, s->least[i]) / unit) : s->deviation[i] * y / unit;
}

static void eval_row(const hl_sde_simple *s, const double *z, double *value, double *f, double *g)
{
    for (size_t part = 0; part < 2; part++) {
        double *to = part ? g : f;
        size_t size = hl_basis_size(&s->basis[part]);
        if (!to)
            continue;
        hl_basis_eval(&s->basis[part], z, value);
        for (size_t i = 0; i < s->dim; i++) {
            double y = hl_dot(size, s->coefficient[part] + i * size, value);
            to[i] = hl_sde_simple_value(s, part, i, y);
        }
    }
}

hl_status hl_sde_simple_eval(const hl_sde_simple *s, size_t rows, const double *t, const double *x, double *f,
                             double *g)
{
    if (!s)
        return HL_ERR_INVALID;
    if (rows && (!t || !x))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_simple_eval: t or x is NULL");
    size_t d = s->dim, most = hl_basis_size(&s->basis[0]), other = hl_basis_size(&s->basis[1]);
    double unit = (s->t_last - s->t_first) / HL_SDE_SPAN;
    double *value = hl_calloc(s->ctx, s->inputs + (most > other ? most : other), sizeof *value);
    if (!value)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < d; i++)
            value[i] = (x[r * d + i] - s->mean[i]) / s->deviation[i];
        if (s->inputs > d)
            value[d] = hl_sde_clock((t[r] - s->t_first) / unit);
        eval_row(s, value, value + s->inputs, f ? f + r * d : NULL, g ? g + r * d : NULL);
    }
    hl_free(s->ctx, value);
    return HL_OK;
}
