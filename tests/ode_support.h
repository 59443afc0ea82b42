/* ode_support.h - systems with known solutions for the tests of solvers. */
#ifndef HL_TESTS_ODE_SUPPORT_H
#define HL_TESTS_ODE_SUPPORT_H

#include "support.h"

#include "hollow/ode.h"

/* y = (sin t, cos t) solves a system that is nonlinear and explicit in t on purpose: a linear or autonomous problem cannot see a
 * wrong c or a broken nonlinear condition. It is strongly coupled (`user` may point to another strength than 1), so that the
 * leading term of the error shows even for methods built to make it small. */
static inline void wave_at(double t, double *y)
{
    y[0] = sin(t);
    y[1] = cos(t);
}

static inline int wave(void *user, const hl_rows *at, double *dy)
{
    double strength = user ? *(double *)user : 1;
    for (size_t r = 0; r < at->count; r++) {
        double t = at->t[r], a = at->y[2 * r], b = at->y[2 * r + 1], u = sin(t), v = cos(t);
        double q = strength * (3 + 1.5 * u), p = strength * .9;
        dy[2 * r] = v + q * (b - v) * (1 + a * a) + p * (a * b - u * v);
        dy[2 * r + 1] = -u - q * (a - u) * (1 + b * b) + p * (sin(a) * b - sin(u) * v);
    }
    return 0;
}

/* van der Pol's oscillator, as stiff as the row says. */
static inline int oscillator(void *user, const hl_rows *at, double *dy)
{
    const double *mu = user;
    for (size_t r = 0; r < at->count; r++) {
        double a = at->y[2 * r], b = at->y[2 * r + 1];
        dy[2 * r] = b;
        dy[2 * r + 1] = mu[at->index[r]] * (1 - a * a) * b - a;
    }
    return 0;
}

static inline hl_ode *make_ode(hl_context *ctx, const hl_system *system, const hl_ode_options *options)
{
    hl_ode *ode = NULL;
    CHECK_OK(ctx, hl_ode_create(ctx, system, options, &ode));
    return ode;
}

/* Order from errors at steps that halve: the slope of a straight line through the logarithms. */
static inline double fit_order(const double *error, int count)
{
    double sum = 0, weight = 0;
    for (int i = 0; i < count; i++) {
        double x = i - (count - 1) / 2.;
        sum -= x * log2(error[i]);
        weight += x * x;
    }
    return sum / weight;
}

#endif
