/* hollow/random.h - counter-based random numbers (Philox 4x32-10).
 *
 * A number is a function of (seed, stream, index) only. It does not depend on the machine, the thread or the order of calls. Use one
 * stream for each purpose and the index as position in it; a run can then be resumed at any point. */
#ifndef HOLLOW_RANDOM_H
#define HOLLOW_RANDOM_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

HL_API uint64_t hl_random_bits(uint64_t seed, uint64_t stream, uint64_t index);
HL_API double hl_random_uniform(uint64_t seed, uint64_t stream, uint64_t index); /* in (0, 1), never 0 or 1 */
HL_API double hl_random_normal(uint64_t seed, uint64_t stream, uint64_t index);

/* Write `count` numbers, those with indices first, first + 1, ... */
HL_API void hl_random_uniforms(uint64_t seed, uint64_t stream, uint64_t first, size_t count, double *to);
HL_API void hl_random_normals(uint64_t seed, uint64_t stream, uint64_t first, size_t count, double *to);

#ifdef __cplusplus
}
#endif

#endif
