/* honest_problem.h - problems for which `hollow bench solvers` and the tests ask whether a solver that says it succeeded did.
 *
 * The list: the 24 smooth problems of DETEST (Hull, Enright, Fellen and Sedgwick, 1972; C5 is left out), and of the stiff ones HIRES, OREGO, ROBER,
 * VDPOL, POLLU, KAPS, BRUSS, E5 and the ring modulator. It was fixed before any of them was run. Answers and the errors of trusted codes at the
 * same tolerance (SciPy's) are in honest_answers.c, which scripts/honest_answers.py writes.
 *
 * A run is *dishonest* if its status is HL_OK and its error exceeds both 100 tolerances and 10 times that of the trusted code of its class:
 * the worse of RK45 and DOP853 for Runge-Kutta, LSODA for Adams and BDF for BDF; for stiff problems LSODA or BDF. Euler's method, of order 1, is in no class. */
#ifndef PROBLEMS_HONEST_PROBLEM_H
#define PROBLEMS_HONEST_PROBLEM_H

#include "stiff_problem.h"

enum { HONEST_TOLERANCES = 2, HONEST_CODES = 4 };
extern const double honest_tolerances[HONEST_TOLERANCES]; /* 1e-3, 1e-6 */

typedef struct honest_answer {
    const char *name;
    /* Errors of RK45, DOP853, LSODA and BDF in tolerances; infinite where they fail. */
    double trusted[HONEST_TOLERANCES][HONEST_CODES];
    const double *y1;
} honest_answer;

extern const honest_answer honest_answers[]; /* ends with a NULL name */

/* Problem number k, or NULL if there are not so many. */
const stiff_problem *honest_problem_get(size_t k);
/* Its answer; NULL if there is none. */
const honest_answer *honest_problem_answer(const stiff_problem *problem);
/* For scripts: Re f of problem k, and J v if v is not NULL. */
void honest_problem_eval(size_t k, double t, const double *y, const double *v, double *out);

typedef struct honest_run {
    hl_status status;
    double error;   /* in tolerances; NaN if it failed */
    double trusted; /* that of the trusted code */
    bool dishonest;
} honest_run;

/* Solve problem k by a method at honest_tolerances[tolerance]. */
honest_run honest_problem_run(hl_context *ctx, size_t k, const char *method, size_t tolerance);
/* The problem's own amplification: how many tolerances (1e-6) the end moves if each value of the start is moved by one. NaN if that
 * cannot be solved. */
double honest_problem_amplification(hl_context *ctx, size_t k);

#endif
