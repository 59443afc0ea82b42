/* residuals.h - tests of a model by the steps along trajectories. */
#ifndef HL_SDE_RESIDUALS_H
#define HL_SDE_RESIDUALS_H

#include "hollow/judge.h"
#include "sde/sde.h"

typedef struct hl_residuals {
    size_t steps;  /* that were tested; 0: there are no trajectories, or fewer than 100 steps */
    int simulated; /* nonzero: the steps are too long for Euler's */
    double
        band; /* half of the 90 % band of the drift that the steps determine, relative to the drift; NaN if steps is 0 */
    hl_residual_test test[HL_RESIDUAL_TESTS];
} hl_residuals;
hl_status hl_sde_residuals(hl_sde *sde, const hl_sde_data *data, uint64_t seed, hl_residuals *out);

#endif
