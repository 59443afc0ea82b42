/* hollow/sde_bridge.h - diffusion bridges: paths of a learned equation through given states.
 *
 *     hl_sde_bridge(sde, 2, (double[]){ 0, 1 }, ends, 100, &(hl_bridge_options){ .steps = 20 }, paths, &share);
 *
 * This draws 100 paths of the equation conditional on their first and last state. With more states, paths pass through all of them. All paths
 * have equal weight. */
#ifndef HOLLOW_SDE_BRIDGE_H
#define HOLLOW_SDE_BRIDGE_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero in any field means the default. */
typedef struct hl_bridge_options {
    /* Equal intervals between two given states; paths are returned at their ends. Default 50. */
    size_t steps;
    /* An interval consists of 2^level Euler steps. Default: at least 128 steps between two states. < 0: one step per interval. */
    int level;
    /* Number of proposed paths, from which the result is resampled. Default 4 times the number of paths, at least 400. */
    size_t candidates;
    uint64_t seed;
} hl_bridge_options;

/* Draw `paths` paths through the states x (points x dim) at increasing times t. `out` receives paths x ((points - 1) steps + 1) x dim
 * values, including the given states. The same seed gives the same paths.
 *
 * If effective is not NULL, it receives the effective fraction of the candidates for each of the points - 1 intervals: 1 where proposals are
 * exact, as for linear equations with constant noise; near 0 where more candidates are needed.
 *
 * HL_ERR_INVALID: times do not increase, a value is not finite, or a column has no noise there, so the state cannot be reached.
 * HL_ERR_NO_SOLUTION: no candidate has a positive weight. */
HL_API hl_status hl_sde_bridge(hl_sde *sde, size_t points, const double *t, const double *x, size_t paths,
                               const hl_bridge_options *options, double *out, double *effective);

#ifdef __cplusplus
}
#endif

#endif
