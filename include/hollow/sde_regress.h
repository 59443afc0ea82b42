/* hollow/sde_regress.h - drift and diffusion of a stochastic equation by regression, in closed form.
 *
 *     hl_sde_regress(ctx, &(hl_sde_data){ .rows = n, .t = t, .x = x }, 2, NULL, &simple);
 *     hl_sde_simple_eval(simple, rows, t, x, f, g);
 *
 * dx = f(x) dt + diag(g(x)) C dW with f and g^2 in a dictionary: linear functions, cubic polynomials, Gaussian radial
 * functions. Two sources of conditions are used, together where both are there.
 *
 *   Snapshots: d/dt E[phi] = E[f . grad phi + A : Hess phi / 2], A = g g', integrated over each interval between times, for
 *   Gaussian and quadratic test functions phi, with means over the observations of each time. Rows are weighted by their
 *   covariance, regressors' noise included.
 *   Steps: x' - x = h (f(x) + f(x')) / 2 + e and e e' = h (A(x) + A(x')) / 2 on average, with functions of x as
 *   instruments. Both have an error of second order in the step h; Euler's regression has one of first order. Then with the
 *   mean and covariance of each transition under the estimate so far, which for linear f are right for any step.
 *
 * The dictionary and the ridge are those of the smallest error on held-out trajectories (without trajectories, rows). */
#ifndef HOLLOW_SDE_REGRESS_H
#define HOLLOW_SDE_REGRESS_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero or NULL in any field means the default. */
typedef struct hl_sde_regress_options {
    const char *form;  /* of the drift: "linear", "poly3", "radial" or "auto" (default): the best of them */
    const char *noise; /* "diagonal", "full" (constant correlations) or "auto" (default) */
    int time;          /* nonzero: f and g depend on t */
    const char *use;   /* "auto" (default), "snapshots" or "steps": the observations' conditions that are used */
    const hl_sde_known *known; /* dim of them, or NULL; forms that are functions must be those of `forms` */
    uint64_t seed;
    const hl_sde_forms *forms; /* expressions with their constants, see hollow/sde_forms.h: what they say is known */
    size_t replicates;         /* regressions of resampled data, for hl_sde_bands; default none */
} hl_sde_regress_options;

typedef struct hl_sde_regress_report {
    char form[32];        /* the dictionaries chosen: "cubic, constant" */
    double ridge, misfit; /* misfit: squared error of the conditions in held-out folds beyond their noise */
    size_t conditions;    /* rows of the least squares */
    size_t functions[2];  /* of f, of g^2, for each column */
    int snapshots, steps; /* nonzero: these conditions were used */
    int correlated;       /* nonzero: the noise of different columns is correlated */
} hl_sde_regress_report;

/* HL_ERR_NO_SOLUTION if the data have neither enough times with enough rows nor steps. The data are copied. */
HL_API hl_status hl_sde_regress(hl_context *context, const hl_sde_data *data, size_t dim,
                                const hl_sde_regress_options *options, hl_sde_simple **simple);
HL_API void hl_sde_simple_free(hl_sde_simple *simple); /* takes NULL */
HL_API hl_sde_regress_report hl_sde_simple_report(const hl_sde_simple *simple);
/* f and g (rows x dim; either may be NULL) in the user's units. */
HL_API hl_status hl_sde_simple_eval(const hl_sde_simple *simple, size_t rows, const double *t, const double *x,
                                    double *f, double *g);
/* Correlation of the noise of columns i and j. */
HL_API double hl_sde_simple_correlation(const hl_sde_simple *simple, size_t i, size_t j);

#ifdef __cplusplus
}
#endif

#endif
