/* weak_tests.h - tests of a model by the means of functions of x at the times of the observations. */
#ifndef HL_SDE_WEAK_TESTS_H
#define HL_SDE_WEAK_TESTS_H

#include "hollow/judge.h"
#include "sde/sde.h"

typedef struct hl_weak_tests {
    size_t conditions; /* 0: too few times or rows, or too many columns */
    double band[2];    /* half of the 90 % bands of what drift and diffusion may miss, relative to their size */
    hl_residual_test test[HL_WEAK_TESTS];
} hl_weak_tests;
hl_status hl_sde_weak_tests(hl_sde *sde, const hl_sde_data *data, uint64_t seed, hl_weak_tests *out);

#endif
