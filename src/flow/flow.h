/* flow.h - inside a flow.
 *
 * flow.c checks arguments and cuts the rows into chunks; an *engine* takes a chunk through the networks: discrete.c for those
 * whose Jacobian is triangular, cnf.c for those that are integrated. */
#ifndef HL_FLOW_H
#define HL_FLOW_H

#include "exec/plan.h"
#include "hollow/flow.h"
#include "nn/net.h"

enum { HL_FLOW_CHUNK = 16384 }; /* no chunk is larger */

typedef struct hl_flow_engine {
    size_t chunk;          /* most rows of the calls below, but for gradient */
    bool deals;            /* deals rows out to threads: larger chunks are better */
    size_t gradient_chunk; /* most rows of gradient */
    hl_status (*create)(hl_flow *flow);
    void (*free)(hl_flow *flow);
    hl_status (*set_solver)(hl_flow *flow, const hl_flow_solver *solver);
    /* values (rows x dim) from data to base or back, in place; log |det| of that to logdet, unless it is NULL. Rows that fail are NaN, and
     * *status and the message say why, unless they did before. `first` is the number of the first row in the user's call. */
    void (*run)(hl_flow *flow, bool to_base, size_t first, size_t rows, const double *context, double *values,
                double *logdet, hl_status *status);
    /* values from data to base, and the gradient of the sum of -log p. */
    hl_status (*gradient)(hl_flow *flow, size_t first, size_t rows, const double *context, double *values,
                          double *logdet, double *gradient);
} hl_flow_engine;
extern const hl_flow_engine hl_flow_discrete, hl_flow_continuous;

/* What a kind of flow is made of. */
typedef struct hl_flow_kind {
    const char *name, *conditioner, *transformer;
    const hl_flow_engine *engine;
    size_t flows, features, width; /* defaults; 0: those of a network */
    int layers;
    bool from_base; /* the networks map base to data */
    bool scaled;    /* one more network that scales each dimension comes last */
} hl_flow_kind;
extern const char *const hl_flow_kind_names[]; /* ends with NULL */

/* What hl_flow_vjp needs (vjp.c); made by its first call. */
typedef struct hl_flow_pull hl_flow_pull;
void hl_flow_pull_reset(hl_flow *flow); /* the solver has changed */
void hl_flow_pull_free(hl_flow *flow);

struct hl_flow {
    hl_context *ctx;
    hl_flow_spec spec; /* strings point to static names */
    const hl_flow_kind *kind;
    size_t nets;
    hl_net **net;
    size_t *offset; /* of each network's parameters in a gradient */
    size_t dim, context;
    size_t chunk;  /* most rows of an engine's call */
    size_t sweeps; /* of the last run */
    uint64_t draw;
    double *work; /* [chunk][dim], [chunk] */
    void *state;  /* the engine's */
    hl_flow_pull *pull;
    const hl_flow_solver *solver; /* of continuous flows */
    hl_ode_summary report;
    hl_place place; /* of the first failure of the call */
    char message[480];
};

/* Keep a failure, unless there was one before. The row of the place is that of the user's call. */
void hl_flow_note(hl_flow *flow, hl_status *status, hl_status why, hl_place place, const char *what);

/* A network inverted by sweeps (inverse.c), for at most HL_INVERSE_ROWS rows at a time. */
enum { HL_INVERSE_ROWS = 128 };
typedef struct hl_inverse hl_inverse;
hl_status hl_inverse_create(const hl_net *net, hl_inverse **inverse);
void hl_inverse_free(hl_inverse *inverse); /* takes NULL */
/* Find x with f(x) = y; all arrays in double. Returns the sweeps of the row that needed most. A row without a solution has
 * values that are not finite. Allocates nothing. */
size_t hl_inverse_solve(hl_inverse *inverse, size_t rows, const double *y, const double *context, double *x);

#endif
