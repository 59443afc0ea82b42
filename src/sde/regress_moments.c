/* regress_moments.c - mean and covariance of a transition, as the estimate has them.
 *
 *   m' = E f(X),   P' = E[f(X) (X - m)'] + its transpose + E A(X),   X ~ N(m, P),   m(0) = x, P(0) = 0
 *
 * by the classical Runge-Kutta method, with expectations over points of the Gaussian: m and m +- sqrt(k) times the columns of a
 * factor of P, k = max(3, d), exact for polynomials of degree three (in up to three columns nearly so for five). For a linear f and a
 * constant A this is the transition itself, however long the step; else the density is taken for a Gaussian. */
#include <math.h>
#include <string.h>

#include "sde/regress.h"
#include "sde/sde.h"

enum { MOST_SUBSTEPS = 12 };
static const double substep = 0.4; /* times the rate of f, at most */
static const double spread = 1e-3; /* of the points where P is 0 */

size_t hl_moments_scratch(const hl_regress *p)
{
    size_t d = p->dim, state = d + d * d;
    return 7 * state + 2 * d * d + 2 * d + p->inputs + p->entries + 2 * (p->size[0] + p->size[1]);
}

typedef struct closure {
    const hl_regress *p;
    hl_basis basis[2];                              /* without the first and last Gaussians that have no coefficient */
    size_t first[2];                                /* the first Gaussian that has one */
    double *point, *factor, *slope, *f, *a, *value; /* slope: E[f (X - m)'] */
} closure;

/* The sum of the functions of a part with one entry's coefficients. */
static double sum_of(const closure *c, size_t part, const double *theta, const double *value)
{
    const hl_basis *b = &c->basis[part];
    return hl_dot(b->products, theta, value) +
           hl_dot(b->bumps, theta + b->products + c->first[part], value + b->products);
}

/* f and A at inputs z. `all`: all functions to c->value, too. */
static void eval(const closure *c, const double *z, bool all)
{
    const hl_regress *p = c->p;
    double *noise = c->value + p->size[0];
    if (all) {
        hl_regress_values_at(p, z, c->value, c->f, c->a);
        return;
    }
    hl_basis_eval(&c->basis[0], z, c->value);
    hl_basis_eval(&c->basis[1], z, noise);
    for (size_t i = 0; i < p->dim; i++)
        c->f[i] = sum_of(c, 0, p->theta + hl_regress_drift(p, i), c->value);
    for (size_t e = 0; e < p->entries; e++) { /* entries off the diagonal have products alone, some of them */
        const double *theta = p->theta + hl_regress_noise(p, e);
        c->a[e] = e < p->dim ? sum_of(c, 1, theta, noise) : hl_dot(p->cross_size, theta, noise);
    }
}

/* Has a Gaussian of a part a coefficient? */
static bool used(const hl_regress *p, size_t part, size_t bump)
{
    bool any = false;
    for (size_t i = 0; i < p->dim; i++) {
        size_t first = part ? hl_regress_noise(p, i) : hl_regress_drift(p, i);
        any = any || p->theta[first + p->basis[part].products + bump] != 0;
    }
    return any;
}

static void set_bases(closure *c)
{
    const hl_regress *p = c->p;
    for (size_t part = 0; part < 2; part++) {
        hl_basis *b = &c->basis[part];
        *b = p->basis[part];
        size_t first = 0, end = b->bumps, radial = b->bumps - b->ridges;
        while (end && !b->tangent && !used(p, part, end - 1)) /* tangents need their Gaussians */
            end--;
        while (first < end && !b->tangent && !used(p, part, first))
            first++;
        c->first[part] = first;
        b->bumps = end - first;
        b->ridges = end > radial ? end - (first > radial ? first : radial) : 0;
        b->centre += first * b->inputs;
        b->scale += first * b->inputs;
    }
}

/* E f, E A and E[f (X - m)'] of X ~ N(m, P) at the clock's time, where state = m, P; E of all functions to `mean` if that is not NULL.
 * False if P has no factor. */
static bool expect(const closure *c, const double *state, double clock, double *f, double *a, double *mean)
{
    const hl_regress *p = c->p;
    size_t d = p->dim, both = p->size[0] + p->size[1];
    double k = fmax(3, (double)d), centre = 1 - (double)d / k;
    memcpy(c->factor, state + d, d * d * sizeof *c->factor);
    for (size_t i = 0; i < d; i++)
        c->factor[i * (d + 1)] += spread * spread;
    if (!(hl_cholesky(d, c->factor, 0) > 0))
        return false;
    memset(f, 0, d * sizeof *f);
    memset(a, 0, p->entries * sizeof *a);
    memset(c->slope, 0, d * d * sizeof *c->slope);
    if (mean)
        memset(mean, 0, both * sizeof *mean);
    if (p->inputs > d)
        c->point[d] = clock;
    for (size_t q = 0; q <= 2 * d; q++) {
        double weight = q ? 0.5 / k : centre, side = q % 2 ? sqrt(k) : -sqrt(k);
        size_t column = q ? (q - 1) / 2 : 0;
        if (weight == 0)
            continue;
        for (size_t i = 0; i < d; i++)
            c->point[i] = state[i] + (q && i >= column ? side * c->factor[i * d + column] : 0);
        eval(c, c->point, mean != NULL);
        hl_axpy(d, weight, c->f, f);
        hl_axpy(p->entries, weight, c->a, a);
        for (size_t i = 0; i < d; i++)
            for (size_t j = column; j < d && q; j++)
                c->slope[i * d + j] += weight * c->f[i] * side * c->factor[j * d + column];
        if (mean)
            hl_axpy(both, weight, c->value, mean);
    }
    return true;
}

/* The rate of change of state = m, P. */
static bool change(const closure *c, const double *state, double clock, double *a, double *rate)
{
    size_t d = c->p->dim;
    if (!expect(c, state, clock, rate, a, NULL))
        return false;
    for (size_t i = 0; i < d; i++)
        for (size_t j = 0; j < d; j++)
            rate[d + i * d + j] = c->slope[i * d + j] + c->slope[j * d + i];
    for (size_t e = 0; e < c->p->entries; e++) {
        size_t i = c->p->entry[e][0], j = c->p->entry[e][1];
        rate[d + i * d + j] += i == j ? fmax(a[e], 0) : a[e];
        rate[d + j * d + i] += i == j ? 0 : a[e];
    }
    return true;
}

bool hl_regress_moments(const hl_regress *p, size_t row, double h, double *scratch, hl_moments *to)
{
    static const double at[] = { 0, 0.5, 0.5, 1 }, share[] = { 1. / 6, 1. / 3, 1. / 3, 1. / 6 };
    size_t d = p->dim, size = d + d * d, steps = (size_t)fmin(MOST_SUBSTEPS, ceil(h * p->rate / substep));
    double *state = scratch, *rate = state + size, *trial = rate + 4 * size, *next = trial + size;
    closure c = { .p = p, .factor = next + size };
    set_bases(&c);
    c.slope = c.factor + d * d;
    c.f = c.slope + d * d;
    c.point = c.f + 2 * d;
    c.a = c.point + p->inputs;
    c.value = c.a + p->entries;
    to->f = c.f + d;
    to->mean = state;
    to->covariance = state + d;
    to->function = c.value + p->size[0] + p->size[1];
    memset(state, 0, size * sizeof *state);
    memcpy(state, p->z + row * p->inputs, d * sizeof *state);
    steps = steps ? steps : 1;
    double step = h / (double)steps;
    for (size_t s = 0; s < steps; s++) {
        memcpy(next, state, size * sizeof *state);
        for (size_t k = 0; k < 4; k++) {
            double clock = hl_sde_clock(p->u[row] + step * ((double)s + at[k]));
            memcpy(trial, state, size * sizeof *state);
            if (k)
                hl_axpy(size, step * at[k], rate + (k - 1) * size, trial);
            if (!change(&c, trial, clock, to->a, rate + k * size))
                return false;
            hl_axpy(size, step * share[k], rate + k * size, next);
        }
        memcpy(state, next, size * sizeof *state);
    }
    bool good = expect(&c, state, hl_sde_clock(p->u[row] + h), to->f, to->a, to->function);
    for (size_t k = 0; k < size; k++)
        good = good && isfinite(state[k]) && fabs(state[k]) < 100;
    to->slope = c.slope;
    return good;
}
