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
/* The loss of a batch (x: batch x dim, context: batch x context), a mean over rows and dimensions, and its gradient to all
 * parameters, which replaces what `gradient` holds. Everything random is a function of (seed, iteration). */
hl_status hl_matcher_gradient(hl_matcher *matcher, size_t iteration, const double *x, const double *context,
                              double *loss, double *gradient);

#endif
