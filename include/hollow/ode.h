/* hollow/ode.h - integrate dy/dt = f(t, y), a network's or a user's, and differentiate the result.
 *
 *     static int decay(void *user, const hl_rows *at, double *dy) { ... return 0; }
 *     hl_system system = { .n = 2, .rhs = decay };
 *     hl_ode_create(ctx, &system, &(hl_ode_options){ .method = "dopri5", .rtol = 1e-8 }, &ode);
 *     hl_ode_solve(ode, rows, t, 1.0, y, NULL);            y and t now hold the end of every row
 *
 * Time and state are double, whatever the precision of f. */
#ifndef HOLLOW_ODE_H
#define HOLLOW_ODE_H

#include "hollow/net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_ode hl_ode;     /* opaque; use one from one thread at a time */
typedef struct hl_field hl_field; /* opaque */

/* ---- systems ---- */

/* Where a system is evaluated: `count` rows, each at its own time. index[r] says which row of the solve row r is, for systems
 * whose rows carry data of their own. Borrowed for the call. */
typedef struct hl_rows {
    size_t count;
    const size_t *index;
    const double *t; /* count */
    const double *y; /* count x n */
} hl_rows;

/* Callbacks. Write count x n values and keep no pointer. Return 0, > 0 for "not here: try a smaller step" or < 0 for "stop the
 * solve", which then ends with HL_ERR_CALLBACK and the value in hl_ode_report. A row's values must not depend on the other
 * rows of the call. A value that is not finite counts as > 0. */
typedef int hl_rhs_fn(void *user, const hl_rows *at, double *dy);
/* The diagonal df_i/dy_i; dy, unless NULL, also receives f. */
typedef int hl_diagonal_fn(void *user, const hl_rows *at, double *dy, double *diagonal);
/* J v, v being count x n. */
typedef int hl_jvp_fn(void *user, const hl_rows *at, const double *v, double *jv);
/* J' w to gy (count x n), and, unless gparam is NULL, sum over rows of w . df/dparameters *added* to gparam (n_params values). */
typedef int hl_vjp_fn(void *user, const hl_rows *at, const double *w, double *gy, double *gparam);

/* A system; what a method does not need may be NULL. Copied by hl_ode_create. */
typedef struct hl_system {
    size_t n; /* values of a row */
    hl_rhs_fn *rhs;
    hl_diagonal_fn *diagonal;
    hl_jvp_fn *jvp;
    hl_vjp_fn *vjp;
    size_t n_params; /* length of gparam; 0: no gradient to parameters */
    double rounding; /* relative error of rhs; default that of double; 6e-8 for a float32 network */
    void *user;
} hl_system;

/* A network as a system: rhs, diagonal, jvp and vjp compiled, parameters read at every call as they are then. The network is
 * borrowed until the field is freed; its time, if it has one, is the row's t. `rows`, about how many rows a
 * call has, is a hint. */
HL_API hl_status hl_field_create(const hl_net *net, size_t rows, hl_field **field);
HL_API void hl_field_free(hl_field *field); /* takes NULL */
/* Context values of all rows of the solve, rows x context in double; borrowed until the next call. */
HL_API void hl_field_set_context(hl_field *field, const double *context);
/* The system; borrows the field. gparam is all parameters one after the other, in the order of hl_net_param_get. */
HL_API hl_system hl_field_system(hl_field *field);

/* ---- solving ---- */

/* A scalar per row whose change of sign ends that row's solve. */
typedef int hl_event_fn(void *user, const hl_rows *at, double *value);

typedef enum hl_ode_gradient_kind {
    HL_NO_GRADIENT = 0,
    HL_REPLAY,  /* Runge-Kutta: the exact gradient of the steps taken, which are replayed from checkpoints */
    HL_ADJOINT, /* adams, bdf: the continuous adjoint on the stored solution, quadratures under error control */
    HL_ADJOINT_REINTEGRATED /* the adjoint with y integrated backwards anew; drifts when stiff; for comparison */
} hl_ode_gradient_kind;

/* Zero or NULL in any field means the default. */
typedef struct hl_ode_options {
    /* Runge-Kutta, each row with its own step: "euler", "midpoint", "heun", "rk4", "bosh3", "dopri5" (default), "tsit5",
     * "calvo6", "dopri8"; on a fixed grid also "ab2".."ab5"; all rows as one system: "adams-functional", "adams-jacobi",
     * "adams-jacobi-fresh", "adams-gmres", "adams-newton", "adams-auto", the same with "bdf-", and "auto" (bdf-auto). */
    const char *method;
    double rtol, atol;     /* error of a step, per value: atol + rtol |y|; defaults 1e-6, 1e-8 */
    const double *weights; /* n factors of the error of each value, 0 to leave one out; default 1; copied */
    size_t steps;          /* > 0: this many equal steps, no error control (Runge-Kutta and ab) */
    /* > 0: a row begins with this many equal steps and keeps to them as long as the error of each is within the tolerance; from the
     * first step that is not on its steps adapt. Where the number fits, this takes fewer evaluations. Runge-Kutta, not recorded. */
    size_t even_steps;
    /* Nonzero, with even_steps = N: only the first step is 1 / N of the way; each later one divides what is left evenly, into as few steps as
     * the error control allows, so that none is cut short at the end. */
    int divided;
    size_t rows;       /* rows solved together, and the most that a recorded solve may have; default 256 */
    double first_step; /* default chosen from f */
    double
        start_error; /* how large that choice makes the first error, very roughly and in units of the tolerance; default
                             * .01. With 10 smooth systems take fewer steps, and others a rejected step more */
    double max_step; /* default none */
    size_t max_evaluations; /* of f and jvp, for a row (for the whole in adams and bdf); default 100000 */
    int max_order;          /* adams 1..12, bdf 1..5; default the highest */
    int paper_test;         /* nonzero: adams and bdf iterate until the paper's convergence test is met */
    hl_event_fn *event;     /* ends a row where it changes sign; Runge-Kutta */
    void *event_user;
    hl_ode_gradient_kind gradient; /* record solves so that hl_ode_gradient can follow */
    /* Memory for the record; default 256 MB, at least 32 states a row. If it is short, steps are computed again: N steps cost about
     * 3 N / S^2 times as much again, S being the states of a row that fit. hl_ode_report().backward.steps counts them. */
    size_t checkpoint_bytes;
} hl_ode_options;

/* What happened to a row. */
typedef struct hl_ode_row {
    hl_status status; /* HL_OK, HL_STOPPED at an event, or why it failed: t and y then hold its last accepted step */
    size_t steps, rejected, evaluations;
    size_t component;   /* the value with the largest error when it failed */
    double step, error; /* the last step tried and its error in units of the tolerance */
} hl_ode_row;

HL_API hl_status hl_ode_create(hl_context *context, const hl_system *system, const hl_ode_options *options,
                               hl_ode **ode);
HL_API void hl_ode_free(hl_ode *ode); /* takes NULL */

/* Advance y (rows x n) and t (rows) in place to t1, forwards or backwards; allocates nothing. `info` (rows) may be NULL. With
 * a Runge-Kutta method each row's result is the same bits whatever the other rows are, and rows that fail do not disturb
 * the others; adams and bdf solve options.rows rows at a time as one system, in which one failure is that of all, and all must
 * start at one time. Returns the first failed row's status, with advice in the context's message; HL_IMPRECISE if all went well but
 * the tolerance is finer than f's rounding allows, or the error may exceed it although no step's did: jacobi hardly contracts, or a value
 * fell by very many orders of magnitude. The message says which. */
HL_API hl_status hl_ode_solve(hl_ode *ode, size_t rows, double *t, double t1, double *y, hl_ode_row *info);
/* The same through `count` times in the direction of travel; out (count x rows x n) receives the state at each, by dense
 * output. t and y end at the last of them. Entries that a failed or stopped row did not reach are NaN. */
HL_API hl_status hl_ode_solve_at(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y,
                                 double *out, hl_ode_row *info);

/* After a solve that was recorded: turn gy (rows x n), the gradient of a loss to y(t1), into that to y(t0), and add that to
 * the parameters to gparam (n_params; may be NULL). */
HL_API hl_status hl_ode_gradient(hl_ode *ode, double *gy, double *gparam);

/* Counts since creation or hl_ode_reset. A call evaluates many rows; `evaluations` counts rows. */
typedef struct hl_ode_counts {
    size_t f_calls, diagonal_calls, jvp_calls, vjp_calls;
    size_t f, diagonal, jvp, vjp;                                       /* rows evaluated */
    size_t steps, rejected, iterations, convergence_failures, switches; /* switches: auto's changes of iteration */
} hl_ode_counts;

typedef struct hl_ode_summary {
    hl_ode_counts forward, backward; /* backward: hl_ode_gradient */
    int callback;                    /* the value of the callback that stopped the solve, or 0 */
    double drift; /* HL_ADJOINT_REINTEGRATED: largest |y(t0) integrated back - y(t0)| in units of the tolerance */
} hl_ode_summary;
HL_API hl_ode_summary hl_ode_report(const hl_ode *ode);
HL_API void hl_ode_reset(hl_ode *ode);

/* The library under Adams and BDF, such as "SUNDIALS 6.4.1"; written to buffer as snprintf does. */
HL_API int hl_ode_library(char *buffer, size_t size);

/* The names of the methods, ended by NULL. */
HL_API const char *const *hl_ode_methods(void);

#ifdef __cplusplus
}
#endif

#endif
