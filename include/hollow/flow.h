/* hollow/flow.h - normalizing flows: invertible maps between data x and a base variable z ~ N(0, I), and the densities they
 * give, log p(x) = log N(z; 0, I) + log |det dz/dx|.
 *
 *     hl_flow_spec spec = { .kind = "maf", .net = { .dim = 6 } };
 *     hl_flow_create(ctx, &spec, &flow);
 *     hl_flow_init(flow, 1);
 *     hl_flow_forward(flow, rows, x, NULL, z, logdet);           z, and log |det dz/dx|
 *     hl_flow_inverse(flow, rows, z, NULL, x, logdet);           and back
 *
 * A continuous flow solves dx/dt = f(t, x), f hollow, with the base at t = 0 and the data at t = 1; its log-determinant is the
 * integral of the divergence, which is exact and as cheap as D. The discrete flows are hollow networks whose h_i looks one
 * way: their Jacobian is triangular, and log |det| is the sum of log D f_i. A row's results are the same bits whatever rows
 * are beside it and for any number of threads (adams and bdf solve row by row for that). */
#ifndef HOLLOW_FLOW_H
#define HOLLOW_FLOW_H

#include "hollow/net.h"
#include "hollow/ode.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_flow hl_flow; /* opaque */

/* Zero or NULL in any field but `net.dim` means the default. */
typedef struct hl_flow_spec {
    /* "cnf"      continuous (default)
     * "nice"     coupling, x_i + m; scales at the end
     * "realnvp"  coupling, x_i exp(s) + m
     * "maf"      autoregressive in the data
     * "iaf"      autoregressive in the base: sampling is one pass, the density needs the inverse
     * "naf"      autoregressive in the data with a monotone network */
    const char *kind;
    size_t flows;    /* networks one after the other; default 1 for cnf, 5 for the others, which turn the order of the
                      * columns from one to the next */
    hl_net_spec net; /* dim, context and dtype; for cnf any hollow network; for the others the sizes and the activation,
                      * while conditioner, transformer and order belong to the kind */
} hl_flow_spec;

/* The names of the kinds, ended by NULL. */
HL_API const char *const *hl_flow_kinds(void);
/* Nonzero if flows of this kind (NULL: the default) are integrated; 0 for discrete ones and for unknown names. */
HL_API int hl_flow_is_continuous(const char *kind);

HL_API hl_status hl_flow_create(hl_context *context, const hl_flow_spec *spec, hl_flow **flow); /* all parameters 0 */
HL_API void hl_flow_free(hl_flow *flow);                                                        /* takes NULL */
HL_API hl_status hl_flow_init(hl_flow *flow, uint64_t seed);
HL_API hl_flow_spec
hl_flow_describe(const hl_flow *flow); /* with all defaults filled in; `net` is the first network's */
/* The networks, in the order in which they are applied: from the data to the base, but for iaf from the base to the data. */
HL_API size_t hl_flow_nets(const hl_flow *flow);
HL_API hl_net *hl_flow_net(const hl_flow *flow, size_t index); /* borrowed until the flow is freed; NULL if none */

/* How a continuous flow is solved; the others take no notice. */
typedef enum hl_trace {
    HL_TRACE_EXACT = 0,  /* the divergence, by D */
    HL_TRACE_HUTCHINSON, /* e' J e with one random e per row and solve: unbiased, with noise */
    HL_TRACE_BRUTE       /* all d derivatives; for comparison */
} hl_trace;
typedef struct hl_flow_solver {
    const char *method;     /* see hl_ode_options; default "dopri5" */
    double rtol, atol;      /* defaults 1e-5 for float32, 1e-6 and 1e-8 for float64 */
    size_t steps;           /* > 0: this many equal steps instead */
    double start_error;     /* see hl_ode_options; default .01 */
    size_t even_steps;      /* see hl_ode_options; for log p and samples, not for gradients; default 0 */
    int divided;            /* likewise */
    size_t max_evaluations; /* for a row; default 100000 */
    hl_trace trace;
    uint64_t seed; /* of the random e */
    int gaussian;  /* nonzero: e is normal; default signs */
    int adjoint;   /* nonzero: gradients by the continuous adjoint (adams, bdf); default by replaying the steps */
    /* W >= 0: hl_flow_gradient minimises -log p + W integral of |f|^2 / dim, and the log p that it gives is less by the second term.
     * Straight paths take fewer evaluations. Runge-Kutta methods only. Nothing else is changed by it. */
    double straight;
} hl_flow_solver;
/* Takes effect for all later calls. NULL: all defaults. */
HL_API hl_status hl_flow_set_solver(hl_flow *flow, const hl_flow_solver *solver);
/* Random e are drawn for the rows of a call by (seed, draw, row): other draws give other e. */
HL_API void hl_flow_set_draw(hl_flow *flow, uint64_t draw);
/* Evaluations of a continuous flow since the last hl_flow_reset, both ways and for gradients. */
HL_API hl_ode_summary hl_flow_report(const hl_flow *flow);
HL_API void hl_flow_reset(hl_flow *flow);

/* From data to base: z and log |det dz/dx| of each row. x and z are rows x dim, context rows x context (NULL if there is none),
 * logdet rows; results may be NULL. A row that cannot be solved is NaN, and the status says why the first of them failed.
 * Memory does not grow with the number of rows. */
HL_API hl_status hl_flow_forward(hl_flow *flow, size_t rows, const double *x, const double *context, double *z,
                                 double *logdet);
/* From base to data: x and log |det dx/dz|. An autoregressive network is inverted by sweeps, each of which gets at least one
 * more dimension right, to the rounding of its precision. */
HL_API hl_status hl_flow_inverse(hl_flow *flow, size_t rows, const double *z, const double *context, double *x,
                                 double *logdet);
/* Sweeps that the last inversion took, all networks together, for the rows that needed most. */
HL_API size_t hl_flow_sweeps(const hl_flow *flow);

/* log p of each row. HL_IMPRECISE, here and in the two before: all rows are solved, but the solver's tolerance is finer than the
 * rounding of the networks allows, so it costs evaluations and gains no digits. */
HL_API hl_status hl_flow_logp(hl_flow *flow, size_t rows, const double *x, const double *context, double *logp);
/* log p (may be NULL) and the gradient of the sum of -log p to all parameters of all networks, *added* to `gradient` in the
 * order of hl_flow_net and hl_net_param_get. Stops at the first row that cannot be solved. The first call after a change of the
 * solver makes room for the steps that it records. */
HL_API hl_status hl_flow_gradient(hl_flow *flow, size_t rows, const double *x, const double *context, double *logp,
                                  double *gradient);

/* A pass and its gradient. Cotangents and results may be NULL: zero, not wanted. */
typedef struct hl_flow_pullback {
    int from_base;      /* 0: from data to base, as hl_flow_forward; nonzero: from base to data, as hl_flow_inverse */
    const double *from; /* rows x dim: where the pass begins */
    const double *context; /* rows x context */
    const double *gto;     /* rows x dim: cotangents of the result */
    const double *glogdet; /* rows: cotangents of log |det| */
    double *to, *logdet;   /* receive the pass itself */
    double *gfrom;         /* rows x dim */
    double *gcontext;      /* rows x context */
    double *gparameters;   /* of all networks, as in hl_flow_gradient: summed over the rows and *added* */
} hl_flow_pullback;
/* Gradients of the sum over rows of <gto, to> + glogdet . logdet. A continuous flow is solved by its solver's settings with the exact trace;
 * the gradient is that of the steps taken, or, with adams, bdf or `adjoint`, the continuous adjoint's. Stops at the first row that cannot be
 * solved. The first call makes room. */
HL_API hl_status hl_flow_vjp(hl_flow *flow, size_t rows, const hl_flow_pullback *pass);

#ifdef __cplusplus
}
#endif

#endif
