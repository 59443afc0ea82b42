/* hollow/flow.h - normalizing flows: invertible maps between data x and a base variable z ~ N(0, I), with the density
 * log p(x) = log N(z; 0, I) + log |det dz/dx|.
 *
 *     hl_flow_spec spec = { .kind = "maf", .net = { .dim = 6 } };
 *     hl_flow_create(ctx, &spec, &flow);
 *     hl_flow_init(flow, 1);
 *     hl_flow_forward(flow, rows, x, NULL, z, logdet);           z, and log |det dz/dx|
 *     hl_flow_inverse(flow, rows, z, NULL, x, logdet);           and back
 *
 * A continuous flow solves dx/dt = f(t, x), where f is a hollow network, from the base at t = 0 to the data at t = 1. Its
 * log-determinant is the integral of the exact divergence. Discrete flows are chains of hollow networks in which h_i depends on
 * preceding columns only; the Jacobian is triangular and log |det| is the sum of log D f_i.
 *
 * The result of a row is bitwise independent of the other rows and of the number of threads. (Adams and BDF solve row by row here.) */
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
    /* Number of networks in the chain. Default 1 for cnf, 5 for the others. Discrete flows reverse the order of the columns between two
     * networks. */
    size_t flows;
    /* The networks. For cnf: any hollow network. For the others: dim, context, dtype, sizes and activation; the kind determines
     * conditioner, transformer and order. */
    hl_net_spec net;
} hl_flow_spec;

/* Names of the kinds; the list ends with NULL. */
HL_API const char *const *hl_flow_kinds(void);
/* Nonzero if flows of this kind (NULL: the default) are continuous; 0 for discrete flows and for unknown names. */
HL_API int hl_flow_is_continuous(const char *kind);

HL_API hl_status hl_flow_create(hl_context *context, const hl_flow_spec *spec, hl_flow **flow); /* all parameters 0 */
HL_API void hl_flow_free(hl_flow *flow);                                                        /* takes NULL */
HL_API hl_status hl_flow_init(hl_flow *flow, uint64_t seed);
/* The specification with all defaults filled in. `net` is that of the first network. */
HL_API hl_flow_spec hl_flow_describe(const hl_flow *flow);
/* The networks in the order of application: from data to base, but for iaf from base to data. */
HL_API size_t hl_flow_nets(const hl_flow *flow);
HL_API hl_net *hl_flow_net(const hl_flow *flow, size_t index); /* borrowed until the flow is freed; or NULL */

/* Computation of the divergence in continuous flows. */
typedef enum hl_trace {
    HL_TRACE_EXACT = 0,  /* exact, the sum of D f */
    HL_TRACE_HUTCHINSON, /* Hutchinson's estimate e' J e with one random e per row and solve: unbiased, but noisy */
    HL_TRACE_BRUTE       /* d separate derivatives; for comparison */
} hl_trace;
/* Solver settings of continuous flows; discrete flows ignore them. Zero or NULL in any field means the default. */
typedef struct hl_flow_solver {
    /* Method and tolerances, see hl_ode_options. Default "dopri5" with rtol and atol 1e-5 for float32, 1e-6 and 1e-8 for float64. */
    const char *method;
    double rtol, atol;
    /* > 0: take this many equal steps without error control. */
    size_t steps;
    /* See hl_ode_options. even_steps and divided apply to log p and samples, not to gradients. */
    double start_error;
    size_t even_steps;
    int divided;
    /* Largest number of evaluations for a row. Default 100000. */
    size_t max_evaluations;
    hl_trace trace;
    /* Seed of the random vectors of HL_TRACE_HUTCHINSON. */
    uint64_t seed;
    /* Nonzero: these vectors are normal. Default: random signs. */
    int gaussian;
    /* Nonzero: gradients by the continuous adjoint (adams, bdf). Default: by replaying the steps. */
    int adjoint;
    /* W >= 0: hl_flow_gradient minimises -log p + W integral of |f|^2 / dim. The log p that it returns is reduced by the second term.
     * Straighter paths need fewer evaluations. Runge-Kutta only. No other function uses it. */
    double straight;
} hl_flow_solver;
/* Set the solver for all later calls. NULL: all defaults. */
HL_API hl_status hl_flow_set_solver(hl_flow *flow, const hl_flow_solver *solver);
/* Random vectors e are a function of (seed, draw, row of the call). Set another draw for other vectors. */
HL_API void hl_flow_set_draw(hl_flow *flow, uint64_t draw);
/* Evaluations of a continuous flow since the last hl_flow_reset, in both directions and for gradients. */
HL_API hl_ode_summary hl_flow_report(const hl_flow *flow);
HL_API void hl_flow_reset(hl_flow *flow);

/* From data to base: z and log |det dz/dx| of each row. x and z are rows x dim, context is rows x context (NULL if there is none), logdet
 * has one value per row. Results may be NULL. Rows that cannot be solved are NaN, and the status is that of the first of them. Memory
 * does not grow with the number of rows. */
HL_API hl_status hl_flow_forward(hl_flow *flow, size_t rows, const double *x, const double *context, double *z,
                                 double *logdet);
/* From base to data: x and log |det dx/dz|. Autoregressive networks are inverted by fixed-point sweeps; each sweep determines at least one
 * more dimension, up to rounding. */
HL_API hl_status hl_flow_inverse(hl_flow *flow, size_t rows, const double *z, const double *context, double *x,
                                 double *logdet);
/* Number of sweeps of the last inversion, summed over networks, for the rows that needed most. */
HL_API size_t hl_flow_sweeps(const hl_flow *flow);

/* log p of each row. HL_IMPRECISE, here and in hl_flow_forward and hl_flow_inverse: all rows are solved, but the tolerance of the solver
 * is finer than the rounding error of the networks. A coarser tolerance is as accurate and needs fewer evaluations. */
HL_API hl_status hl_flow_logp(hl_flow *flow, size_t rows, const double *x, const double *context, double *logp);
/* log p (may be NULL), and the gradient of the sum of -log p with respect to all parameters. The gradient is *added* to `gradient`, in the
 * order of hl_flow_net and hl_net_param_get. Stops at the first row that cannot be solved. The first call after a change of the solver
 * allocates memory for recorded steps. */
HL_API hl_status hl_flow_gradient(hl_flow *flow, size_t rows, const double *x, const double *context, double *logp,
                                  double *gradient);

/* Arguments of hl_flow_vjp. A NULL cotangent counts as zero; a NULL result is not computed. */
typedef struct hl_flow_pullback {
    int from_base;         /* 0: as hl_flow_forward; nonzero: as hl_flow_inverse */
    const double *from;    /* rows x dim: input of the pass */
    const double *context; /* rows x context */
    const double *gto;     /* rows x dim: cotangents of `to` */
    const double *glogdet; /* rows: cotangents of logdet */
    double *to, *logdet;   /* results of the pass */
    double *gfrom;         /* rows x dim */
    double *gcontext;      /* rows x context */
    double *gparameters;   /* as in hl_flow_gradient: summed over rows and *added* */
} hl_flow_pullback;
/* Gradients of the sum over rows of <gto, to> + glogdet . logdet. Continuous flows are solved with the exact trace; their gradient is that
 * of the steps taken or, with adams, bdf or `adjoint`, the continuous adjoint. Stops at the first row that cannot be solved. The first
 * call allocates memory. */
HL_API hl_status hl_flow_vjp(hl_flow *flow, size_t rows, const hl_flow_pullback *pass);

#ifdef __cplusplus
}
#endif

#endif
