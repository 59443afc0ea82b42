/* root_state.h - inside a root finder: what the iterations by rows (root.c) and KINSOL (root_krylov.c) share. */
#ifndef HL_ODE_ROOT_STATE_H
#define HL_ODE_ROOT_STATE_H

#include "hollow/root.h"
#include "ode/ode.h"

typedef enum hl_root_method { HL_ROOT_JACOBI, HL_ROOT_ANDERSON, HL_ROOT_FIXED_POINT, HL_ROOT_KRYLOV } hl_root_method;

typedef struct hl_root_slot hl_root_slot;     /* a row at work; root.c */
typedef struct hl_root_krylov hl_root_krylov; /* KINSOL's objects; root_krylov.c */

struct hl_root {
    hl_ode calls; /* not a solver: counts and checks calls of the system */
    hl_root_options options;
    hl_root_method method;
    hl_root_slot *slots; /* options.rows; NULL for newton-krylov */
    size_t *active;      /* slots at work */
    size_t *index;       /* options.rows: rows of the solve in a call */
    double *memory;
    double *t, *y, *f, *diagonal; /* of a call: options.rows, and options.rows x n each */
    double *work;                 /* least squares: n x (depth + 1) */
    hl_root_krylov *krylov;
};

/* 1 + Dg may have any sign; only its zeros are kept away from. */
double hl_root_divisor(double diagonal);

hl_status hl_root_krylov_create(hl_root *root);
void hl_root_krylov_free(hl_root *root);
/* Solve `rows` rows as one system from y, the first being row `first` of the solve; root->t is set. */
hl_status hl_root_krylov_solve(hl_root *root, size_t rows, size_t first, double *y, hl_root_row *info);

#endif
