/* ranks.h - work that several processes share: who does what, and sums whose order does not depend on how many there are. */
#ifndef HL_RANKS_H
#define HL_RANKS_H

#include "base/base.h"

/* The first of `count` things that the context's rank is to do, and the first that it is not. */
void hl_ranks_part(const hl_context *ctx, size_t count, size_t *first, size_t *end);
/* Each rank has the elements of its part (hl_ranks_part) of `values`; afterwards all have all. */
hl_status hl_ranks_complete(hl_context *ctx, size_t count, double *values);
/* The largest value of all ranks. */
hl_status hl_ranks_most(hl_context *ctx, double *value);
/* The same status on all ranks: the first that is not HL_OK, with its message. */
hl_status hl_ranks_agree(hl_context *ctx, hl_status status);

/* A sum of `size` doubles over the rows of a batch. The batch is cut into shares of `share` rows; their sums are added by pairs, pairs of
 * pairs, ..., whoever computed them. Nothing is allocated after the creation. */
typedef struct hl_shares hl_shares;
hl_status hl_shares_create(hl_context *ctx, size_t rows, size_t share, size_t size, hl_shares **shares);
void hl_shares_free(hl_shares *shares); /* takes NULL */
/* The rows that this rank has in all, `first` up to and without `end`. */
void hl_shares_rows(const hl_shares *shares, size_t *first, size_t *end);
/* The next share of this rank: its rows, and where their sum is to be written. False when there is none left; hl_shares_total begins again. */
bool hl_shares_next(hl_shares *shares, size_t *first, size_t *end, double **sum);
/* The sum over all rows on all ranks, after the last share. Borrowed until the next hl_shares_next. */
hl_status hl_shares_total(hl_shares *shares, double **sum);

#endif
