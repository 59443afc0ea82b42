/* stiff_problem.h - stiff problems with answers: the Bari / CWI test set and some of the textbooks'. The tests use this file, too.
 *
 * A right-hand side is written once, for complex numbers: Im f(y + i h v) / h with a tiny h is J v to rounding, as all of them
 * are analytic. */
#ifndef PROBLEMS_STIFF_PROBLEM_H
#define PROBLEMS_STIFF_PROBLEM_H

#include <complex.h>
#include <stdbool.h>

#include "hollow/hollow.h"

enum { STIFF_MAX = 400 }; /* unknowns */

typedef struct stiff_problem {
    const char *name;
    size_t n;
    void (*f)(double t, const double complex *y, double complex *dy);
    double t1;
    double ratio;  /* atol / rtol */
    double finest; /* rtol; a finer one asks for more digits than double has */
    bool gmres;    /* can be solved by gmres */
    const double *y0;
    void (*start)(double *y); /* instead of y0 */
    const double *y1;         /* at t1, or NULL: by a tight solve */
} stiff_problem;

extern const stiff_problem stiff_problems[]; /* ends with a NULL name; HIRES, OREGO and ROBER come first */
extern const stiff_problem stiff_medakzo;    /* of 400 unknowns, without an answer */

const stiff_problem *stiff_problem_named(const char *name);
hl_system stiff_problem_system(const stiff_problem *problem); /* borrows the problem */
void stiff_problem_start(const stiff_problem *problem, double *y);
/* Solve by a method of Adams or BDF; y is the end. */
hl_status stiff_problem_solve(hl_context *ctx, const stiff_problem *problem, const char *method, double rtol, double *y,
                              hl_ode_counts *counts);
hl_status stiff_problem_answer(hl_context *ctx, const stiff_problem *problem, double *y);
/* The largest error, in units of atol + rtol |answer|; NaN if any value is. */
double stiff_problem_error(const stiff_problem *problem, const double *y, const double *answer, double rtol);

#endif
