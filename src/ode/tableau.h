/* tableau.h - Runge-Kutta methods as data.
 *
 *     Y_j = y + h sum_{i<j} a_ji k_i,   k_j = f(t + c_j h, Y_j),   y(t + h) = Y_end
 *
 * Stages 0 .. end - 1 make the step. Stage `end` is f at its end: the first stage of the next step, and needed here only by
 * the error estimates of some methods and by dense output. `extra` stages after it serve dense output alone.
 *
 * The error of a step is h sum e_i k_i. dopri8 has a second estimate, e3, and takes err5^2 / sqrt(err5^2 + err3^2 / 100).
 *
 * Dense output at t + theta h, with s = 1 - theta, is the cubic through both ends and their slopes, and rows of d above it:
 *     y + theta (F0 + s (F1 + theta (F2 + s (F3 + theta (F4 + s (F5 + theta F6)))))),
 *     F0 = y(t + h) - y,  F1 = h k_0 - F0,  F2 = 2 F0 - h (k_0 + k_end),  F_{3+m} = h sum_j d_mj k_j. */
#ifndef HL_ODE_TABLEAU_H
#define HL_ODE_TABLEAU_H

#include <stdbool.h>

/* The most of any method. */
enum { HL_RK_STAGES = 16, HL_RK_DENSE_ROWS = 4, HL_AB_ORDER = 5 };

typedef struct hl_rk {
    const char *name;
    int order;         /* of the solution */
    int error_order;   /* of the solution that the error estimate compares with: it is O(h^(error_order + 1)) */
    int dense_order;   /* of dense output: its error is O(h^(1 + the lesser of this and order)) */
    int end;           /* stages that make the step */
    bool end_in_error; /* the estimate uses stage `end` ("first same as last") */
    int extra;         /* stages for dense output only */
    int dense_rows;    /* of d */
    const double *c;   /* end + 1 + extra */
    const double *a;   /* row j = 1 .. end + extra has j entries, one after the other */
    const double *e;   /* end + end_in_error entries */
    const double *e3;  /* likewise, or NULL */
    const double *d;   /* dense_rows x (end + 1 + extra) */
    int c_count, a_count, e_count, d_count; /* lengths of the arrays as written */
} hl_rk;

extern const hl_rk hl_rk_methods[]; /* ended by a name of NULL */

const hl_rk *hl_rk_find(const char *name); /* NULL if there is none */
/* Do the arrays have the lengths that the stages need, and do they fit into a solver? Checked before memory is laid out. */
bool hl_rk_is_consistent(const hl_rk *m);
/* Row j of a. */
const double *hl_rk_row(const hl_rk *m, int j);

/* Adams-Bashforth: y + h sum_i b_i f(i steps ago), as many terms as its order. */
typedef struct hl_ab {
    const char *name;
    int order;
    const double *b;
} hl_ab;
extern const hl_ab hl_ab_methods[];        /* ended by a name of NULL */
const hl_ab *hl_ab_find(const char *name); /* NULL if there is none */

/* The names of the methods that SUNDIALS has a part in, in the order that multistep.c expects. */
#define HL_MULTISTEP_NAMES                                                                                             \
    "adams-functional", "adams-jacobi", "adams-jacobi-fresh", "adams-gmres", "adams-newton", "adams-auto",             \
        "bdf-functional", "bdf-jacobi", "bdf-jacobi-fresh", "bdf-gmres", "bdf-newton", "bdf-auto", "auto"

/* The names of all methods, ended by NULL. */
extern const char *const hl_ode_names[];

#endif
