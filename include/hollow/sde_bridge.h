/* hollow/sde_bridge.h - paths of a learned equation between states that are given.
 *
 *     hl_sde_bridge(sde, 2, (double[]){ 0, 1 }, ends, 100, &(hl_bridge_options){ .steps = 20 }, paths, &share);
 *
 * draws 100 paths that begin and end at the given states, as the model distributes them. With more states, paths go through all of
 * them. Every path counts the same. */
#ifndef HOLLOW_SDE_BRIDGE_H
#define HOLLOW_SDE_BRIDGE_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero in any field means the default. */
typedef struct hl_bridge_options {
    size_t steps; /* equal intervals between neighbouring states, at whose ends paths are returned; default 50 */
    int level;    /* each is made of 2^level Euler steps; default: 128 or more between states; < 0: one */
    size_t
        candidates; /* paths that are proposed, of which those returned are drawn; default 4 times as many, at least 400 */
    uint64_t seed;
} hl_bridge_options;

/* Paths through x (points x dim) at times t (rising): paths x ((points - 1) steps + 1) x dim values to `out`, given states included.
 * effective, unless NULL, gets for every gap between neighbouring states the effective share of the candidates: 1 where proposals are
 * exact, as for linear equations with constant noise, and near 0 where too few of them count, so that more are needed. The same seed
 * gives the same paths. HL_ERR_INVALID: times do not rise, a value is not finite, or a column has no noise there (such states are not
 * reached); HL_ERR_NO_SOLUTION: no candidate has a positive weight. */
HL_API hl_status hl_sde_bridge(hl_sde *sde, size_t points, const double *t, const double *x, size_t paths,
                               const hl_bridge_options *options, double *out, double *effective);

#ifdef __cplusplus
}
#endif

#endif
