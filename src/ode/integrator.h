/* integrator.h - one system of equations, one time, one step: Adams and BDF by CVODES, with iterations of our own.
 *
 * The implicit equation of a step is F(y) = y - gamma f(t, y) - delta = 0, and an iteration solves (approximately)
 * (I - gamma J) x = -F. With D the exact diagonal of J:
 *
 *     functional      x = -F
 *     jacobi          x = -F / max(1, 1 - gamma D), D being used for many steps; the divisor is never near 0
 *     jacobi-fresh    x = -F / (1 - gamma D), D of every iterate: the paper's formula
 *     gmres           Krylov with J v, preconditioned from the right by jacobi's divisor
 *     newton          LU of I - gamma J, J from `block` products and used for many steps
 *     auto            jacobi while it contracts, then newton (small blocks) or gmres
 */
#ifndef HL_ODE_INTEGRATOR_H
#define HL_ODE_INTEGRATOR_H

#include "ode/ode.h"

typedef enum hl_iteration { HL_FUNCTIONAL, HL_JACOBI, HL_JACOBI_FRESH, HL_GMRES, HL_NEWTON, HL_AUTO } hl_iteration;

enum { HL_AUTO_NEWTON_BLOCK = 32 }; /* the largest block for which auto's strong iteration is newton */

/* What is integrated: `size` unknowns that fall into independent blocks of `block`. Functions return 0, > 0 "not here" or
 * < 0 "stop". */
typedef struct hl_problem {
    size_t size, block;
    int (*rhs)(void *user, double t, const double *y, double *dy);
    int (*diagonal)(void *user, double t, const double *y, double *diagonal);         /* may be NULL */
    int (*apply)(void *user, double t, const double *y, const double *v, double *jv); /* J v; may be NULL */
    int (*quadrature)(void *user, double t, const double *y, double *dq);             /* may be NULL */
    void *user;
} hl_problem;

typedef struct hl_integrator_options {
    bool bdf; /* or Adams */
    hl_iteration iteration;
    int max_order; /* 0: the highest */
    double rtol, atol;
    const double *weights; /* of the values of a block, or NULL; borrowed */
    double first_step, max_step;
    bool paper_test;
    size_t max_size, block;
    size_t quadratures; /* integrals kept under error control beside y */
} hl_integrator_options;

typedef struct hl_integrator hl_integrator; /* opaque */

/* All memory of ours is allocated here; SUNDIALS allocates its own when the size of the problem changes. */
hl_status hl_integrator_create(hl_context *ctx, const hl_integrator_options *options, hl_integrator **out);
void hl_integrator_free(hl_integrator *in); /* takes NULL */

/* Start at t with y; steps end exactly at t_end. Integrals start at 0. The functions of `problem` are kept, y is copied. */
hl_status hl_integrator_begin(hl_integrator *in, const hl_problem *problem, double t, const double *y, double t_end);
/* Make one step. HL_OK; HL_STOPPED: at t_end; or HL_ERR_STEP, HL_ERR_CONVERGENCE, HL_ERR_CALLBACK (a function said stop),
 * HL_ERR_NOT_FINITE (f said "not here" whatever the step), HL_ERR_NOMEM. The state is then that of the last good step. */
hl_status hl_integrator_step(hl_integrator *in);
/* After a step: where it went. */
double hl_integrator_time(const hl_integrator *in);
const double *hl_integrator_state(const hl_integrator *in);
double hl_integrator_last_step(const hl_integrator *in); /* its signed length; that of the step tried after a failure */
int hl_integrator_order(const hl_integrator *in);
/* y, or its derivative of order k <= the order of the step, at a time within the last step. */
hl_status hl_integrator_dense(hl_integrator *in, double t, int k, double *out);
/* Add the integrals up to the last step to `out`. */
hl_status hl_integrator_add_quadratures(hl_integrator *in, double *out);
/* The error of the last step tried, each value in units of its tolerance. */
void hl_integrator_errors(hl_integrator *in, double *out);
/* A value that fell so far that the errors of when it was large may exceed its tolerance now; the number of values if there is none. */
size_t hl_integrator_lost(const hl_integrator *in);
/* jacobi: the worst contraction of the linear equation's error that was measured, 0 if none was. */
double hl_integrator_worst_rate(const hl_integrator *in);
/* Add what happened since hl_integrator_begin to `counts`; call once, at the end. */
void hl_integrator_count(hl_integrator *in, hl_ode_counts *counts);

#endif
