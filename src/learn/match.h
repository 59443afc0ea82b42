/* match.h - losses of continuous flows that need no solving: f is fitted to what the velocity at a noise level must be. */
#ifndef HL_MATCH_H
#define HL_MATCH_H

#include "flow/flow.h"

typedef struct hl_matcher hl_matcher;

typedef struct hl_matching {
    bool score;     /* score matching; otherwise flow matching */
    bool transport; /* flow matching: pair noise and rows of a batch by optimal transport */
    size_t batch;
    uint64_t seed;
} hl_matching;

/* Borrows the flow's network, the only one, until it is freed. */
hl_status hl_matcher_create(hl_flow *flow, const hl_matching *how, hl_matcher **matcher);
void hl_matcher_free(hl_matcher *matcher); /* takes NULL */
/* Rows of a batch that must be there for those from `first` up to `end`: their partners as well. */
void hl_matcher_rows(size_t batch, size_t *first, size_t *end);
/* Take the rows `first` up to `end` of a batch (x: batch x dim, context: batch x context) to their noise levels. Everything random is a
 * function of (seed, iteration, place in the batch). Borrows the context until the next batch. */
void hl_matcher_load(hl_matcher *matcher, size_t iteration, size_t first, size_t end, const double *x,
                     const double *context);
/* What some of the rows that were loaded add to the loss, a mean over the rows and dimensions of the batch, and to its gradient to all
 * parameters. */
hl_status hl_matcher_gradient(hl_matcher *matcher, size_t first, size_t end, double *loss, double *gradient);

#endif
