/* hollow/ode.h - integrate dy/dt = f(t, y), where f is a network or a callback, and differentiate the result.
 *
 *     static int decay(void *user, const hl_rows *at, double *dy) { ... return 0; }
 *     hl_system system = { .n = 2, .rhs = decay };
 *     hl_ode_create(ctx, &system, &(hl_ode_options){ .method = "dopri5", .rtol = 1e-8 }, &ode);
 *     hl_ode_solve(ode, rows, t, 1.0, y, NULL);            y and t now hold the final state of every row
 *
 * Time and state are double for any precision of f. */
#ifndef HOLLOW_ODE_H
#define HOLLOW_ODE_H

#include "hollow/net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_ode hl_ode;     /* opaque; use one from one thread at a time */
typedef struct hl_field hl_field; /* opaque */

/* ---- systems ---- */

/* The points at which a system is evaluated: `count` rows, each at its own time. index[r] is the number of row r in the solve, for
 * systems with data of their own for each row. Borrowed during the call. */
typedef struct hl_rows {
    size_t count;
    const size_t *index;
    const double *t; /* count */
    const double *y; /* count x n */
} hl_rows;

/* Right-hand side: write dy (count x n). Callbacks must not keep pointers, and the values of a row must not depend on the other rows.
 * They return 0 for success, > 0 for a recoverable error (the solver tries a smaller step), < 0 to stop the solve: it then ends with
 * HL_ERR_CALLBACK, and hl_ode_report gives the value. A value that is not finite counts as a recoverable error. */
typedef int hl_rhs_fn(void *user, const hl_rows *at, double *dy);
/* Write the diagonal df_i/dy_i (count x n). If dy is not NULL, also write f. */
typedef int hl_diagonal_fn(void *user, const hl_rows *at, double *dy, double *diagonal);
/* Write the Jacobian-vector product J v; v is count x n. */
typedef int hl_jvp_fn(void *user, const hl_rows *at, const double *v, double *jv);
/* Write J' w to gy (count x n). If gparam is not NULL, *add* the sum over rows of w . df/dparameters to it (n_params values). */
typedef int hl_vjp_fn(void *user, const hl_rows *at, const double *w, double *gy, double *gparam);

/* A system of equations. Callbacks that the method does not need may be NULL. Copied by hl_ode_create. */
typedef struct hl_system {
    size_t n; /* values per row */
    hl_rhs_fn *rhs;
    hl_diagonal_fn *diagonal;
    hl_jvp_fn *jvp;
    hl_vjp_fn *vjp;
    /* Length of gparam. 0: no gradient with respect to parameters. */
    size_t n_params;
    /* Relative rounding error of rhs. Default that of double; set 6e-8 for a float32 network. */
    double rounding;
    void *user;
} hl_system;

/* A network as a system, with all four callbacks. Every call uses the current parameters. The network is borrowed until the field is
 * freed; its time input, if any, is t. `rows` is a hint: the approximate number of rows per call. */
HL_API hl_status hl_field_create(const hl_net *net, size_t rows, hl_field **field);
HL_API void hl_field_free(hl_field *field); /* takes NULL */
/* Set the context values of all rows of the solve (rows x context). Borrowed until the next call of this function. */
HL_API void hl_field_set_context(hl_field *field, const double *context);
/* The system. Borrows the field. gparam holds all parameters one after the other, in the order of hl_net_param_get. */
HL_API hl_system hl_field_system(hl_field *field);

/* ---- solving ---- */

/* Event function: write one value per row. The solve of a row ends where its value changes sign. */
typedef int hl_event_fn(void *user, const hl_rows *at, double *value);

typedef enum hl_ode_gradient_kind {
    HL_NO_GRADIENT = 0,
    /* Runge-Kutta: the exact gradient of the steps taken (discretise, then differentiate), recomputed from checkpoints. */
    HL_REPLAY,
    /* Adams, BDF: the continuous adjoint along the stored solution, with error control of the quadratures. */
    HL_ADJOINT,
    /* For comparison: the adjoint with y integrated backwards again. Inaccurate for stiff systems. */
    HL_ADJOINT_REINTEGRATED
} hl_ode_gradient_kind;

/* Zero or NULL in any field means the default. */
typedef struct hl_ode_options {
    /* Runge-Kutta methods, in which each row has its own step size: "euler", "midpoint", "heun", "rk4", "bosh3", "dopri5" (default),
     * "tsit5", "calvo6", "dopri8". Adams-Bashforth with fixed steps: "ab2".."ab5". Multistep methods, which solve all rows as one
     * system: "adams-functional", "adams-jacobi", "adams-jacobi-fresh", "adams-gmres", "adams-newton", "adams-auto", the same with
     * "bdf-", and "auto" (bdf-auto). See docs/solvers.md. */
    const char *method;
    /* Error tolerance of a step for each value: atol + rtol |y|. Defaults 1e-6 and 1e-8. */
    double rtol, atol;
    /* n weights of the errors of the values; 0 excludes a value from error control. Default 1. Copied. */
    const double *weights;
    /* > 0: take this many equal steps without error control (Runge-Kutta and Adams-Bashforth). */
    size_t steps;
    /* > 0: a row starts with this many equal steps and keeps them as long as each error is within the tolerance; after that its
     * steps are adaptive. Saves evaluations if the number is suitable. Runge-Kutta only; not for recorded solves. */
    size_t even_steps;
    /* Nonzero, with even_steps = N: only the first step has the length 1 / N of the interval. Each later step divides the remaining
     * interval evenly into as few steps as the error control allows, so the last step is not cut short. */
    int divided;
    /* Rows solved together, and the largest number of rows of a recorded solve. Default 256. */
    size_t rows;
    /* Length of the first step. Default: estimated from f. */
    double first_step;
    /* Target of that estimate: the approximate error of the first step in units of the tolerance. Default 0.01. A value of 10 saves
     * steps for smooth systems and may cost one rejected step for others. */
    double start_error;
    /* Largest step. Default none. */
    double max_step;
    /* Largest number of evaluations of f and jvp: for each row, or for the whole system with Adams and BDF. Default 100000. */
    size_t max_evaluations;
    /* Largest order of Adams (1..12) or BDF (1..5). Default the highest. */
    int max_order;
    /* Nonzero: Adams and BDF iterate until the convergence test of the paper is met. */
    int paper_test;
    /* Event function and its argument (Runge-Kutta only). Default none. */
    hl_event_fn *event;
    void *event_user;
    /* Record solves for hl_ode_gradient. Default HL_NO_GRADIENT. */
    hl_ode_gradient_kind gradient;
    /* Memory for the record. Default 256 MB; always at least 32 states per row. If S states of a row fit and a solve takes N > S
     * steps, the gradient recomputes steps at about 3 N / S^2 times the cost of the solve. hl_ode_report().backward.steps counts
     * them. If 64 steps of each row fit together with the slopes of the stages, the slopes are kept and f is not evaluated again. */
    size_t checkpoint_bytes;
} hl_ode_options;

/* Result of one row. */
typedef struct hl_ode_row {
    /* HL_OK, HL_STOPPED at an event, or an error. After an error t and y hold the last accepted step. */
    hl_status status;
    size_t steps, rejected, evaluations;
    size_t component; /* after an error: the value with the largest error */
    double step;      /* the last attempted step */
    double error;     /* its error in units of the tolerance */
} hl_ode_row;

HL_API hl_status hl_ode_create(hl_context *context, const hl_system *system, const hl_ode_options *options,
                               hl_ode **ode);
HL_API void hl_ode_free(hl_ode *ode); /* takes NULL */

/* Advance y (rows x n) and t (rows) in place to t1, forwards or backwards. `info` (rows) may be NULL. Allocates nothing.
 *
 * With a Runge-Kutta method the result of a row is bitwise independent of the other rows, and rows that fail do not affect others.
 * Adams and BDF solve options.rows rows at a time as one system: these rows must start at the same time, and all of them fail if one does.
 *
 * Returns the status of the first failed row; the message gives advice. Returns HL_IMPRECISE if all rows were solved but the tolerance
 * is finer than the rounding error of f allows, or if the error may exceed the tolerance although no step's estimate did: the Jacobi
 * iteration hardly contracts, or a value fell by many orders of magnitude. The message says which. */
HL_API hl_status hl_ode_solve(hl_ode *ode, size_t rows, double *t, double t1, double *y, hl_ode_row *info);
/* Solve and also write the states at `count` times, in the direction of integration, to out (count x rows x n), by dense output. t and y
 * end at the last time. Entries that a failed or stopped row did not reach are NaN. */
HL_API hl_status hl_ode_solve_at(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y,
                                 double *out, hl_ode_row *info);

/* After a recorded solve: gy (rows x n) holds the gradient of a loss with respect to y(t1) and receives that with respect to y(t0). The
 * gradient with respect to the parameters is *added* to gparam (n_params values; may be NULL). */
HL_API hl_status hl_ode_gradient(hl_ode *ode, double *gy, double *gparam);

/* Counts since creation or hl_ode_reset. */
typedef struct hl_ode_counts {
    size_t f_calls, diagonal_calls, jvp_calls, vjp_calls; /* calls, each for many rows */
    size_t f, diagonal, jvp, vjp;                         /* rows evaluated */
    size_t steps, rejected, iterations, convergence_failures;
    size_t switches; /* changes of the iteration by the "auto" methods */
} hl_ode_counts;

typedef struct hl_ode_summary {
    hl_ode_counts forward, backward; /* solves; gradients */
    int callback;                    /* the value of the callback that stopped the solve, or 0 */
    /* HL_ADJOINT_REINTEGRATED: largest difference between y(t0) integrated backwards and y(t0), in units of the tolerance. */
    double drift;
} hl_ode_summary;
HL_API hl_ode_summary hl_ode_report(const hl_ode *ode);
HL_API void hl_ode_reset(hl_ode *ode);

/* Write the name of the library that implements Adams and BDF, such as "SUNDIALS 6.4.1", to buffer, as snprintf does. */
HL_API int hl_ode_library(char *buffer, size_t size);

/* Names of the methods; the list ends with NULL. */
HL_API const char *const *hl_ode_methods(void);

#ifdef __cplusplus
}
#endif

#endif
