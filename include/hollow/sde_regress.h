/* hollow/sde_regress.h - estimate drift and diffusion by linear regression, in closed form.
 *
 *     hl_sde_regress(ctx, &(hl_sde_data){ .rows = n, .t = t, .x = x }, 2, NULL, &simple);
 *     hl_sde_simple_eval(simple, rows, t, x, f, g);
 *
 * The model is dx = f(x) dt + diag(g(x)) C dW with f and g^2 in a dictionary: linear functions, cubic polynomials, Gaussian radial
 * functions, or functions of those combinations of the columns in which a first estimate of f is not linear. Two kinds of conditions are used, together if the data provide both:
 *
 *   Snapshots: d/dt E[phi] = E[f . grad phi + A : Hess phi / 2], A = g g', integrated over each interval between two times, for Gaussian
 *   and quadratic test functions phi. Expectations are means over the observations of each time. Conditions are weighted by their
 *   covariance, including the noise of the regressors.
 *   Steps: x' - x = h (f(x) + f(x')) / 2 + e and E[e e'] = h (A(x) + A(x')) / 2, with functions of x as instruments. The error is of second
 *   order in the step h; that of Euler's regression is of first order. A second pass uses the mean and covariance of each transition under
 *   the first estimate, which are exact for linear f and any h.
 *
 * Dictionary and ridge are those with the smallest error on held-out trajectories (without trajectories: rows). */
#ifndef HOLLOW_SDE_REGRESS_H
#define HOLLOW_SDE_REGRESS_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero or NULL in any field means the default. */
typedef struct hl_sde_regress_options {
    /* Dictionary of the drift: "linear", "poly3", "radial", "ridge" (two to six columns; in one column as "auto") or "auto" (default), which chooses the
     * best. */
    const char *form;
    /* "diagonal", "full" (constant correlations) or "auto" (default). */
    const char *noise;
    /* Nonzero: f and g depend on t. */
    int time;
    /* Conditions to use: "auto" (default), "snapshots" or "steps". */
    const char *use;
    /* Known parts of the dim columns, or NULL. Known functions must be those of `forms`. */
    const hl_sde_known *known;
    uint64_t seed;
    /* Expressions with their constants (hollow/sde_forms.h); they count as known. */
    const hl_sde_forms *forms;
    /* Bootstrap replicates for hl_sde_bands. Default 0. */
    size_t replicates;
} hl_sde_regress_options;

typedef struct hl_sde_regress_report {
    char form[32];        /* dictionaries of f and g, such as "cubic, constant" */
    double ridge, misfit; /* misfit: squared error of held-out conditions in excess of their noise */
    size_t conditions;    /* equations of the least-squares problem */
    size_t functions[2];  /* basis functions of f and of g^2 for each column */
    int snapshots, steps; /* nonzero: these conditions were used */
    int correlated;       /* nonzero: the noise of different columns is correlated */
} hl_sde_regress_report;

/* HL_ERR_NO_SOLUTION if the data have neither steps nor enough times with enough rows. The data are copied. */
HL_API hl_status hl_sde_regress(hl_context *context, const hl_sde_data *data, size_t dim,
                                const hl_sde_regress_options *options, hl_sde_simple **simple);
HL_API void hl_sde_simple_free(hl_sde_simple *simple); /* takes NULL */
HL_API hl_sde_regress_report hl_sde_simple_report(const hl_sde_simple *simple);
/* Evaluate f and g (rows x dim; either may be NULL) in the user's units. */
HL_API hl_status hl_sde_simple_eval(const hl_sde_simple *simple, size_t rows, const double *t, const double *x,
                                    double *f, double *g);
/* Correlation of the noise of columns i and j. */
HL_API double hl_sde_simple_correlation(const hl_sde_simple *simple, size_t i, size_t j);

#ifdef __cplusplus
}
#endif

#endif
