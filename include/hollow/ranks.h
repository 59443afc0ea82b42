/* hollow/ranks.h - train on several processes, on one machine or on several.
 *
 * The processes are called ranks. In hl_fit, hl_density_fit, hl_sde_learn and hl_vae_fit, each rank computes its share of every batch and
 * validation. Sums over rows are computed in an order that does not depend on the number of ranks, so the result is bitwise the same for any
 * number. All ranks must make the same calls with the same rows, settings and seed. Evaluation and sampling do not use ranks.
 *
 * The library does not communicate by itself: the caller provides a function `gather`, for example based on MPI_Allgatherv. */
#ifndef HOLLOW_RANKS_H
#define HOLLOW_RANKS_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All-gather: rank r contributes the bytes[r] bytes at `mine`. On return, `all` holds the bytes of rank 0, of rank 1, ... in sequence, on every
 * rank. `bytes` is the same on all ranks. Returns 0, or nonzero on failure. */
typedef int hl_gather_fn(const void *mine, const size_t *bytes, void *all, void *user);

typedef struct hl_ranks {
    size_t rank, size; /* this process and the number of processes, 0 <= rank < size */
    hl_gather_fn *gather;
    void *user; /* passed to `gather` */
} hl_ranks;

/* Make the context one of these ranks; copies. NULL: a single process again. Do not call this while an object of the context is in use. */
HL_API hl_status hl_context_set_ranks(hl_context *context, const hl_ranks *ranks);
/* Number of ranks; 1 by default. */
HL_API size_t hl_context_ranks(const hl_context *context);
/* Seconds that the context has spent in `gather`, including waiting for other ranks. */
HL_API double hl_context_gathered(const hl_context *context);
/* Wait for all ranks and compare `size` bytes, such as a version or a hash of the data. If they differ between ranks, every rank returns
 * HL_ERR_INVALID with `what` in the message. */
HL_API hl_status hl_ranks_compare(hl_context *context, const char *what, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
