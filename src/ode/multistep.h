/* multistep.h - inside the family of Adams and BDF: what solving (multistep.c) and its gradient (multistep_adjoint.c) share. */
#ifndef HL_ODE_MULTISTEP_H
#define HL_ODE_MULTISTEP_H

#include "ode/integrator.h"

typedef struct hl_adjoint hl_adjoint; /* the record of a solve and the solver of its adjoint; multistep_adjoint.c */

typedef struct hl_multistep {
    hl_ode *ode;
    bool bdf;
    hl_iteration iteration;
    hl_integrator *forward;
    hl_adjoint *adjoint; /* NULL without a gradient */
    size_t rows;         /* of the block of rows that is being solved */
    size_t *index;       /* options.rows: its rows in the solve */
    double *t;           /* options.rows: all the same time */
    double *errors;      /* options.rows x n */
    size_t spent;        /* evaluations before this solve */
    size_t bad, bad_at;  /* the last entry that was not finite, or HL_NO_ENTRY, and after how many evaluations */
    bool over_budget;
} hl_multistep;

#define HL_NO_ENTRY SIZE_MAX

/* The rows of the block at one time; borrows y. */
hl_rows hl_multistep_rows(hl_multistep *m, double t, const double *y);
/* Before each call of the system's functions: < 0 if the budget is used up or a callback has said stop. (SUNDIALS' fixed-point
 * iteration takes that for a lack of convergence, and would go on.) */
int hl_multistep_spend(hl_multistep *m);
/* After it: keep what it says of values that are not finite. Returns `value`. */
int hl_multistep_note(hl_multistep *m, int value, const size_t *bad);
/* Start to spend. */
void hl_multistep_begin(hl_multistep *m);
/* The problem of the block's rows: `user` is m. */
hl_problem hl_multistep_problem(hl_multistep *m);
/* What went wrong in a step of `in`, in the words of hollow/ode.h; the message is set. `errors` are m's. */
hl_status hl_multistep_fail(hl_multistep *m, hl_integrator *in, hl_status status, const char *what);

hl_status hl_adjoint_create(hl_multistep *m);
void hl_adjoint_free(hl_multistep *m);
/* A recorded solve: begin, after every step, end. */
void hl_adjoint_begin(hl_multistep *m, double t, const double *y);
hl_status hl_adjoint_step(hl_multistep *m);
void hl_adjoint_end(hl_multistep *m, double t, const double *y);
hl_status hl_adjoint_gradient(hl_ode *ode, double *gy, double *gparam);

#endif
