/* integrator_state.h - inside an integrator: what integrator.c (steps) and iteration.c (nonlinear equations) share. */
#ifndef HL_ODE_INTEGRATOR_STATE_H
#define HL_ODE_INTEGRATOR_STATE_H

#include <sundials/sundials_nonlinearsolver.h>

#include "ode/integrator.h"
#include "ode/vector.h"

/* What an iteration keeps between the steps. */
typedef struct hl_linear_state {
    hl_iteration now; /* what is used; differs from the options for auto */
    bool check;       /* auto: measure jacobi's contraction at the next solve */
    double *diagonal; /* size; NULL if the iteration needs none */
    double *jacobian; /* blocks of block x block, row by row; NULL unless newton may be used */
    double *factors;  /* LU of I - gamma J, for gamma = factored; that is NAN without */
    size_t *pivots;   /* size */
    double factored;
    double rate, rate_gamma; /* jacobi: the last contraction that was measured, and gamma then */
    bool have_diagonal, have_jacobian;
    double *unit, *product; /* size each */
    double t;               /* of the solve, for the products of gmres */
    double gamma;
    const double *y;
    N_Vector weights; /* of the error, borrowed during a solve */
} hl_linear_state;

struct hl_integrator {
    hl_context *ctx;
    hl_integrator_options options;
    hl_problem problem;
    hl_linear_state linear;
    double *memory; /* holds all arrays of doubles of ours */
    double t, t_end;
    bool tried;           /* CVODE has an error of a step */
    double *peak;         /* size: the largest |y| so far */
    double worst_rate;    /* jacobi: the worst contraction that was measured */
    double scale;         /* of the weights, so that those left out do not dilute the norm */
    double last_change;   /* of the iterate, for convergence tests of ours */
    double seen_rate;     /* jacobi: its contraction as the iterates show it */
    size_t built;         /* the size for which SUNDIALS' objects are made; 0 none */
    hl_ode_counts counts; /* steps, rejected, iterations, convergence_failures, switches */
    long watched_steps, watched_iterations, watched_failures; /* auto: counts at the last look */
    SUNContext sun;
    void *cvode;
    hl_vectors vectors, sums;            /* of the unknowns; of the quadratures */
    N_Vector y, trial, integrals, spare; /* y: after the last good step */
    SUNNonlinearSolver nonlinear;
    SUNLinearSolver solver, gmres;
    SUNMatrix matrix;
};

/* Give CVODE its nonlinear solver, and all but functional a linear solver. */
hl_status hl_iteration_attach(hl_integrator *in);
void hl_iteration_detach(hl_integrator *in);
void hl_iteration_reset(hl_integrator *in); /* a new problem begins */
/* auto: go to the stronger iteration; false if there is none. */
bool hl_iteration_strengthen(hl_integrator *in);

#endif
