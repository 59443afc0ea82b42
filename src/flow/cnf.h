/* cnf.h - one network of a continuous flow as a system of rows (cnf_field.c), for the engine (cnf.c). */
#ifndef HL_FLOW_CNF_H
#define HL_FLOW_CNF_H

#include "flow/flow.h"
#include "ode/ode.h"

enum { HL_CNF_SLOTS = 256 /* rows of a call in a solve */, HL_CNF_GRADIENT_ROWS = 512 /* in a recorded one */ };

typedef struct hl_cnf_field hl_cnf_field;

/* What a solve integrates: (x, l) with the log-determinant l, or x alone. */
typedef struct hl_cnf_system {
    hl_cnf_field *field;
    size_t n; /* dim + 1 or dim */
    hl_ode *ode;
} hl_cnf_system;

struct hl_cnf_field {
    hl_context *ctx; /* whose threads share a call */
    const hl_flow *flow;
    const hl_net *net;
    const hl_flow_solver *solver; /* the flow's */
    hl_trace trace;               /* that the plans are made for */
    double straight;              /* likewise */
    size_t stream;                /* makes the random e of each network its own */
    size_t first;                 /* row 0 of the solve is this row of the user's call */
    const double *context;        /* of the rows of the solve */
    hl_plan *value;               /* x, t, context, e: f, trace */
    hl_plan *straightened;        /* x, t, context, e: f, trace + straight |f|^2 / dim; NULL if straight is 0 */
    hl_plan *plain;               /* x, t, context: f */
    hl_plan *slope;               /* x, t, context: f, trace, D f; exact trace only */
    hl_plan *jvp;                 /* x, t, context, v: J v of f and of the trace; exact trace only */
    hl_plan *gradient; /* x, t, context, e, cotangents: gradients of x and the parameters; NULL: not wanted */
    const void **param;
    hl_row_out *result;               /* of gradient */
    char *pieces;                     /* gradients of the parameters, in the network's precision */
    size_t values;                    /* of all parameters */
    size_t rows, copies;              /* rows of a call with e; copies of each: dim with brute force */
    size_t *row_of, *index;           /* of a copy: its row of the call and of the solve; brute force only */
    double *e, *f, *l, *gf, *gl, *gx; /* of the copies */
    hl_cnf_system both, alone;        /* (x, l); x */
    hl_cnf_system
        train; /* (x, l), recorded, which takes memory: its solver is made when the first gradient asks for it */
};

/* A field without plans. `ctx` is the flow's or a branch of it. */
hl_status hl_cnf_field_create(hl_context *ctx, const hl_flow *flow, const hl_flow_solver *solver, size_t index,
                              hl_cnf_field **field);
void hl_cnf_field_free(hl_cnf_field *field); /* takes NULL */
/* Make the plans for the solver's trace, if they are for another; solvers made before are freed. */
hl_status hl_cnf_field_compile(hl_cnf_field *field, bool with_gradient);
/* Make a solver by the flow's settings; that of `train` records its steps. */
hl_status hl_cnf_field_solver(hl_cnf_system *system, hl_ode **ode);

#endif
