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

enum { HL_RK_STAGES = 16 /* most of any method */, HL_AB_ORDER = 5 };

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
} hl_rk;

extern const hl_rk hl_rk_methods[]; /* ended by a name of NULL */

/* Row j of a. */
const double *hl_rk_row(const hl_rk *m, int j);

/* Adams-Bashforth of order 2 .. 5: y + h sum_i b_i f(i steps ago). */
extern const double hl_ab_weights[HL_AB_ORDER + 1][HL_AB_ORDER];

#endif
