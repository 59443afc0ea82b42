/* flow.h - inside a flow. */
#ifndef HL_FLOW_H
#define HL_FLOW_H

#include "exec/plan.h"
#include "hollow/flow.h"
#include "nn/net.h"

enum { HL_FLOW_ROWS = 128 }; /* rows that go through together */

/* What a kind of flow is made of. */
typedef struct hl_flow_kind {
    const char *name, *conditioner, *transformer;
    size_t features;
    bool from_base; /* the networks map base to data */
    bool scaled;    /* one more network that scales each dimension comes last */
} hl_flow_kind;

/* Doubles in a network's precision, and one of its values as a double. */
void hl_narrow(hl_dtype dtype, size_t count, const double *from, void *to);
double hl_widen(hl_dtype dtype, const void *from, size_t index);

/* A network inverted by sweeps (inverse.c). */
typedef struct hl_inverse hl_inverse;
hl_status hl_inverse_create(const hl_net *net, hl_inverse **inverse);
void hl_inverse_free(hl_inverse *inverse); /* takes NULL */
/* Find x with f(x) = y for rows <= HL_FLOW_ROWS; all arrays in double. Returns the sweeps of the row that needed most. A row
 * without a solution has values that are not finite. Allocates nothing. */
size_t hl_inverse_solve(hl_inverse *inverse, size_t rows, const double *y, const double *context, double *x);

struct hl_flow {
    hl_context *ctx;
    hl_flow_spec spec; /* defaults filled in; strings point to static names */
    const hl_flow_kind *kind;
    size_t nets;
    hl_net **net;         /* in the order of the data */
    hl_inverse **inverse; /* of each net */
    hl_plan **plan;       /* of each net: f and the sum of log D f */
    size_t sweeps;
    double *work; /* [2][HL_FLOW_ROWS][dim] */
    void *narrow; /* a chunk's x, context, f and log-determinants in the network's precision */
    const void **param;
};

#endif
