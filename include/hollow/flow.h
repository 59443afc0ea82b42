/* hollow/flow.h - normalizing flows: invertible maps between data x and a base variable z ~ N(0, I).
 *
 *     hl_flow_spec spec = { .kind = "maf", .dim = 6, .flows = 5 };
 *     hl_flow_create(ctx, &spec, &flow);
 *     hl_flow_init(flow, 1);
 *     hl_flow_forward(flow, rows, x, NULL, z, logdet);           z, and log |det dz/dx|
 *     hl_flow_inverse(flow, rows, z, NULL, x, logdet);           and back
 *
 * The discrete flows are hollow networks whose h_i looks one way: their Jacobian is triangular, and log |det| is the sum of
 * log D f_i, exact and as cheap as D. */
#ifndef HOLLOW_FLOW_H
#define HOLLOW_FLOW_H

#include "hollow/net.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_flow hl_flow; /* opaque */

/* Zero or NULL in any field but `dim` means the default. */
typedef struct hl_flow_spec {
    /* "nice"     coupling, x_i + m; scales at the end
     * "realnvp"  coupling, x_i exp(s) + m
     * "maf"      autoregressive in the data (default)
     * "iaf"      autoregressive in the base: sampling is one pass, the density needs the inverse
     * "naf"      autoregressive in the data with a monotone network */
    const char *kind;
    size_t dim, context;
    size_t flows;           /* networks one after the other, each in the reverse order of the one before; default 5 */
    size_t features;        /* of each network: see hl_net_spec */
    size_t hidden;          /* default 64 */
    int hidden_layers;      /* default 2 */
    size_t width;           /* naf; default 16 */
    int layers;             /* naf; default 1 */
    const char *activation; /* default "tanh" */
    hl_dtype dtype;
} hl_flow_spec;

HL_API hl_status hl_flow_create(hl_context *context, const hl_flow_spec *spec, hl_flow **flow); /* all parameters 0 */
HL_API void hl_flow_free(hl_flow *flow);                                                        /* takes NULL */
HL_API hl_status hl_flow_init(hl_flow *flow, uint64_t seed);
HL_API hl_flow_spec hl_flow_describe(const hl_flow *flow); /* with all defaults filled in */
/* The networks, in the order in which the data go through them on the way to the base. */
HL_API size_t hl_flow_nets(const hl_flow *flow);
HL_API hl_net *hl_flow_net(const hl_flow *flow, size_t index); /* borrowed until the flow is freed; NULL if none */

/* From data to base: z and log |det dz/dx| of each row. x and z are rows x dim, context rows x context (NULL if there is none),
 * logdet rows; results may be NULL. Where the map is defined by its inverse (iaf) this solves for z as below. */
HL_API hl_status hl_flow_forward(hl_flow *flow, size_t rows, const double *x, const double *context, double *z,
                                 double *logdet);
/* From base to data: x and log |det dx/dz|. An autoregressive network is inverted by sweeps, each of which gets at least one
 * more dimension right, to the rounding of its precision. A row's result does not depend on the others. A row for which no
 * solution is found is NaN, and the status is HL_ERR_NO_SOLUTION. */
HL_API hl_status hl_flow_inverse(hl_flow *flow, size_t rows, const double *z, const double *context, double *x,
                                 double *logdet);
/* Sweeps that the last inversion took, all networks together, for the row that needed most. */
HL_API size_t hl_flow_sweeps(const hl_flow *flow);

#ifdef __cplusplus
}
#endif

#endif
