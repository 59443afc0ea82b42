/* hollow/ranks.h - one training on several processes, which need not be on one machine.
 *
 * A context that knows of other processes, its ranks, takes its share of every batch and of every validation of hl_fit, hl_density_fit and
 * hl_vae_fit; sums over rows are made in an order that is the same for any number of ranks, and so are the bits of the result. All ranks
 * must make the same calls of these with the same rows, settings and seed; scoring and sampling are as without ranks. The library does
 * not know how processes talk: whoever starts them fills in `gather`, by MPI_Allgatherv for example. */
#ifndef HOLLOW_RANKS_H
#define HOLLOW_RANKS_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Every rank gives the bytes[rank] bytes at `mine`; all get those of rank 0, of rank 1, ... one after the other in `all`. `bytes` is the
 * same on all ranks. Returns when all are there; nonzero: it failed. */
typedef int hl_gather_fn(const void *mine, const size_t *bytes, void *all, void *user);

typedef struct hl_ranks {
    size_t rank, size; /* this process, 0 <= rank < size */
    hl_gather_fn *gather;
    void *user; /* passed to `gather` */
} hl_ranks;

/* From now on the context is one of these ranks; copied. NULL: it is alone again. Not while something made from it is in use. */
HL_API hl_status hl_context_set_ranks(hl_context *context, const hl_ranks *ranks);
/* 1 for a context that is alone. */
HL_API size_t hl_context_ranks(const hl_context *context);
/* Seconds that the context has spent in `gather`, waiting for others included. */
HL_API double hl_context_gathered(const hl_context *context);
/* Wait for all ranks and compare `size` bytes, as a hash of the data or a version: HL_ERR_INVALID on every rank, with `what` in the message,
 * if those of a rank differ from rank 0's. */
HL_API hl_status hl_ranks_compare(hl_context *context, const char *what, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
