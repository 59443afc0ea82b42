/* weak_tests.h - tests of a model by the means of functions of x at the times of the observations. */
#ifndef HL_SDE_WEAK_TESTS_H
#define HL_SDE_WEAK_TESTS_H

#include "hollow/judge.h"
#include "sde/sde.h"

typedef struct hl_weak_tests {
    size_t conditions; /* 0: too few times or rows, or too many columns */
    double band[2];    /* half of the 90 % bands of what drift and diffusion may miss, relative to their size */
    hl_residual_test
        test[HL_WEAK_TESTS +
             1]; /* the last: of a change of f and g by factors, which HL_WEAK_TREND tells if it is clearer */
    double terms[HL_WEAK_TESTS + 1]; /* of each test */
} hl_weak_tests;
/* effect: from which on it matters; sigma of these is told by simulations of the model. */
hl_status hl_sde_weak_tests(hl_sde *sde, const hl_sde_data *data, uint64_t seed, double effect, hl_weak_tests *out);

/* ---- simulations (weak_reference.c) ---- */

/* How a model is observed: rows of the data, by groups of times, each of a path; a path has at most one row in a group. */
typedef struct hl_weak_design {
    hl_sde *sde;
    const hl_sde_data *data;
    size_t groups, rows, paths;
    const size_t *index, *start, *path; /* [rows] of the data; [groups + 1]; [rows] */
} hl_weak_design;
/* States x (rows x dim) of simulated paths at the times of the rows. */
hl_status hl_weak_simulate(const hl_weak_design *design, uint64_t seed, double *x);

#endif
