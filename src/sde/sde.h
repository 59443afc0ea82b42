/* sde.h - inside the stochastic layer: Brownian spans, steppers, plain networks and mixtures as parts of graphs. */
#ifndef HL_SDE_H
#define HL_SDE_H

#include <math.h>

#include "base/linear.h"
#include "exec/plan.h"
#include "flow/flow.h"
#include "hollow/sde.h"
#include "hollow/simulate.h"
#include "learn/curve.h"
#include "nn/net.h"

/* ---- Brownian paths (brownian.c) ---- */

typedef struct hl_span {
    double dw, u; /* u: the integral of W - W(begin) less h dw / 2 */
} hl_span;

/* The span `index` of `level` to stack[level], where stack[0..level] holds what the call for index - 1 left: about two
 * halvings for each call. A call with index 0 starts. */
void hl_brownian_walk(const hl_brownian *b, uint64_t path, size_t dimension, int level, uint64_t index, hl_span *stack);

/* ---- steppers (stepper.c) ---- */

/* One step of `rows` rows; all arrays are rows x n but t and index. */
typedef struct hl_stride {
    const hl_noise_system *system;
    size_t rows;
    const size_t *index;
    const double *t;
    double h, *y;
    const double *dw, *dz; /* dz is I_(1,0) */
    double *scratch;       /* rows x (HL_STEPPER_SCRATCH n + 1) */
} hl_stride;
enum { HL_STEPPER_SCRATCH = 13 };

typedef struct hl_stepper {
    const char *name;
    double strong, weak, weak_additive; /* weak_additive: if g depends on t alone; 0: as weak */
    bool additive_only;                 /* for such a g alone */
    bool stratonovich, slope;           /* the sense it solves; whether it needs dg in any case */
    const struct hl_srk *tableau;       /* of those that have one */
    int (*step)(const struct hl_stepper *m, const hl_stride *s); /* the callback's result */
} hl_stepper;
extern const hl_stepper hl_steppers[]; /* ends with a NULL name */
extern const char *const hl_stepper_names[];
const hl_stepper *hl_stepper_find(const char *name); /* NULL: the default; NULL if there is none */

/* v = C v (simulate.c). */
void hl_noise_mix(size_t n, const double *factor, double *v);

/* ---- plain networks (dense.c) ---- */

typedef struct hl_dense {
    hl_net *net; /* its parameters; owned by whoever frees it */
    size_t in, hidden, out;
    int layers; /* hidden ones */
} hl_dense;
/* The sizes are set; makes `net`, which the caller frees on failure as well. */
hl_status hl_dense_create(hl_context *ctx, const char *activation, hl_dtype dtype, hl_dense *dense);
/* y [in] to [out]; param holds the nodes of the parameters. */
hl_node hl_dense_build(const hl_dense *dense, hl_graph *g, hl_node y, const hl_node *param);
/* The static name of an activation, or NULL if there is none. */
const char *hl_dense_activation(const char *name);

/* ---- mixtures (mixture.c) ---- */

typedef struct hl_mixture {
    size_t dim, components;
    bool diagonal;
    double clamp; /* of log diag A */
} hl_mixture;
typedef struct hl_mixture_nodes {
    hl_node logit, mean, log_diagonal; /* [m], [m, d], [m, d] */
    hl_node factor;                    /* A: [m, d, d], or [m, d] if diagonal */
} hl_mixture_nodes;
size_t hl_mixture_outputs(const hl_mixture *m); /* values that describe a mixture */
void hl_mixture_split(const hl_mixture *m, hl_graph *g, hl_node out, hl_mixture_nodes *n);
/* Sets logp and, if `derivatives`, s and c. */
hl_status hl_mixture_build(const hl_mixture *m, hl_graph *g, const hl_mixture_nodes *n, hl_node x, int derivatives,
                           hl_fp_nodes *fp);
/* x holds d normals and becomes a draw; u in (0, 1) chooses the component. */
void hl_mixture_draw(const hl_mixture *m, const double *logit, const double *mean, const double *factor, double u,
                     double *x);

/* ---- flows (flow_density.c) ---- */

typedef struct hl_sde_flow {
    hl_net *net;   /* the parameters of all; owned */
    size_t count;  /* 0: there is no flow */
    hl_net **step; /* the networks, from x to z */
    hl_inverse **inverse;
    double *clock, *z; /* [HL_SDE_ROWS]: set before draws; [HL_INVERSE_ROWS][dim] */
} hl_sde_flow;
/* Fills in spec->flow; the caller frees on failure as well. */
hl_status hl_sde_flow_create(hl_context *ctx, hl_sde_spec *spec, hl_sde_flow *flow);
void hl_sde_flow_free(hl_context *ctx, hl_sde_flow *flow);
/* After random parameters: a flow near the identity. */
void hl_sde_flow_start(const hl_sde_flow *flow);
hl_status hl_sde_flow_build(const hl_sde_flow *flow, hl_graph *g, hl_node x, hl_node clock, hl_node *param,
                            hl_node *logp);
/* x (rows x dim, at most HL_SDE_ROWS) holds normals and becomes draws at the times of flow->clock; false if a value is
 * not finite. */
bool hl_sde_flow_draw(const hl_sde_flow *flow, size_t rows, double *x);

/* ---- models (model.c, model_graph.c) ---- */

enum {
    HL_SDE_NETS = 3,
    HL_SDE_KNOWN = 7,
    HL_SDE_INPUTS = 6, /* of an objective, at most */
    HL_SDE_ROWS = 256,
    HL_SDE_SPAN = 5 /* of standardised time */,
    HL_SDE_NAME = 256
};

typedef enum hl_sde_curvature { HL_SDE_EXACT, HL_SDE_PROJECTED, HL_SDE_PROPAGATED } hl_sde_curvature;

struct hl_sde {
    hl_context *ctx;
    hl_sde_spec spec;             /* defaults filled in */
    hl_sde_simple *simple;        /* NULL: none; owned */
    hl_sde_forms *forms;          /* likewise */
    struct hl_ensemble *ensemble; /* networks of simulated data (ensemble.h); NULL: none; owned */
    hl_sde_known *known;
    double *known_linear; /* [dim][dim], what known[i].drift_linear points to */
    bool hollow;
    hl_sde_curvature curvature;  /* of the density, in training */
    hl_dense dense[HL_SDE_NETS]; /* dense[i].net is NULL where a hollow network stands */
    hl_net *net[HL_SDE_NETS];
    hl_mixture mixture; /* of one component, not used, if the density is a flow */
    hl_sde_flow flow;
    double t_first, t_last, *mean, *deviation, *scratch; /* scratch: a mixture, or [dim] */
    void *fixed
        [HL_SDE_KNOWN]; /* standardised: drift's matrix, its diagonal, its constant; diffusion; then the scale: first
                                * time and unit, mean, deviation */
    const void **param; /* of all networks, then fixed, then lambda */
    hl_plan *drift, *slopes, *density, *all, *mixing; /* f, g; f, g, D g; log p, s; R, d log p/dt; logit, mean, A */
    hl_plan
        *bend; /* flow: v H v, elementwise, of an input v and the Hessian H of log p; its diagonal is input to `all` */
    double *t, *x, *v, *diagonal, *out[4]; /* a chunk, standardised; v, diagonal: of a flow, [HL_SDE_ROWS][dim] */
    char (*name)[HL_SDE_NAME];             /* of the columns, then of time */
    bool keeps_scale;                      /* fits leave the scale as it is */
    bool dates;                            /* times are years that were dates */
    hl_sde_method method;                  /* of the last training */
    hl_curve *course;                      /* [HL_SDE_COURSES] of the last training; NULL: not known */
    char *note;
};
/* Room for the courses, if there is none yet; NULL: no memory. (file.c) */
hl_curve *hl_sde_add_course(hl_sde *sde);
/* Default names and an empty note (file.c). */
hl_status hl_sde_start_labels(hl_sde *sde);

/* The model in a graph: standardised t and x to everything. */
typedef struct hl_sde_graph {
    hl_graph *g;
    hl_node t, x, *param, lambda; /* param: of all networks, one after the other */
    size_t params;
    hl_mixture_nodes mixture;
    hl_fp_nodes fp;
} hl_sde_graph;
/* Inputs t and x, all parameters, lambda. */
hl_status hl_sde_graph_start(const hl_sde *sde, hl_sde_graph *b);
void hl_sde_graph_end(const hl_sde *sde, hl_sde_graph *b);
/* f and g, and D f, D g, D^2 g as far as order (0, 1, 2) goes, at t and x. */
hl_status hl_sde_graph_motion(const hl_sde *sde, hl_sde_graph *b, int order);
/* log p, and with `derivatives` its derivatives by t and x. */
hl_status hl_sde_graph_density(const hl_sde *sde, hl_sde_graph *b, int derivatives);
/* After f, g and log p: the cross terms of correlated noise, if it is. */
hl_status hl_sde_graph_cross(const hl_sde *sde, hl_sde_graph *b);
/* After log p alone: its derivatives by t and x; c is left open. */
hl_status hl_sde_graph_slopes(hl_sde_graph *b);
/* Values of the parameters in double, one network after the other. */
size_t hl_sde_param_total(const hl_sde *sde);
double hl_sde_time_unit(const hl_sde *sde);
double hl_sde_clock(double t); /* standardised time as the networks see it */

/* ---- objectives (objective.c) ---- */

/* A loss of a batch and its gradients, compiled. */
typedef struct hl_sde_objective {
    hl_sde *sde;
    hl_sde_method method;
    hl_plan *plan;
    size_t total;       /* values of all gradients */
    size_t probe;       /* signs of each of the two probes of a row; 0: the curvature is not estimated */
    hl_row_out *result; /* of the plan: sums of the two losses, then gradients */
    char *values;       /* where they are, in the model's precision */
    double lambda;      /* the place of the graph's parameter, in the model's precision */
} hl_sde_objective;
hl_status hl_sde_objective_create(hl_sde *sde, const hl_sde_fit_options *options, hl_sde_objective *o);
void hl_sde_objective_free(hl_sde_objective *o);
/* Sums over the rows of the losses to loss[2] (penalty or Euler's; -log p, standardised) and of the gradients to
 * `gradient` (total). input: t, x, and for pairs the step dt, its dx, and which end (0 or 1) the density sees; or for
 * options.between the t and x of the residual, and two probes where the curvature is estimated, or for options.smooth the
 * weights of the residual; in the model's precision, standardised. */
void hl_sde_objective_run(hl_sde_objective *o, size_t rows, const double *const *input, double lambda, double *loss,
                          double *gradient);

/* ---- fits (fit.c) ---- */

/* Medians of the steps of trajectories beyond which a step is no Euler step; and beyond which it is a gap in a record, which says nothing of f
 * and g. Observations at random times hardly have steps of 20 medians. */
enum { HL_SDE_LONG = 5, HL_SDE_GAP = 20 };
/* Does a step of at most `longest` begin at this row? Without trajectories all rows are one. */
bool hl_sde_step_begins(const hl_sde_data *data, size_t row, double longest);
/* The longest step of so many medians; infinity if there are no steps. */
hl_status hl_sde_longest_step(hl_context *ctx, const hl_sde_data *data, double medians, double *longest);
/* Is every row later than the one before? Without ids all rows are then one path. (times.c) */
bool hl_sde_rising(const hl_sde_data *data);
/* Times of snapshots that differ by rounding become one (times.c). */
hl_status hl_sde_merge_times(hl_context *ctx, size_t rows, double *t);
/* First and last time, means and deviations (dim each) of data; HL_ERR_INVALID if a column or time is constant. */
hl_status hl_sde_measure(hl_context *ctx, const hl_sde_data *data, size_t dim, double *t_first, double *t_last,
                         double *mean, double *deviation);
hl_context *hl_sde_fit_context(const hl_sde_fit *fit);
size_t hl_sde_fit_iteration(const hl_sde_fit *fit); /* done so far */
/* Row k of some that stand for all: even, and without a period that trajectories of equal length could share. */
static inline size_t hl_sde_some_row(size_t k, size_t some, size_t rows)
{
    const double golden = 0.6180339887498949;
    double at = golden * ((double)k + 0.5);
    return some >= rows ? k : (size_t)((at - floor(at)) * (double)rows);
}
/* Mean and deviation of a column of x (rows x dim); a column that is constant has deviation 0. */
void hl_sde_column_scale(size_t rows, size_t dim, size_t column, const double *x, double *mean, double *deviation);

/* ---- how many Gaussians (choose.c) ---- */

/* As hl_sde_choose_components; after each iteration `tell`, unless NULL, gets how many are done of how many, and ends it by a
 * status that is not HL_OK. */
hl_status hl_sde_choose(hl_context *ctx, const hl_sde_spec *spec, const hl_sde_data *data,
                        const hl_sde_fit_options *options, hl_status (*tell)(void *user, size_t done, size_t all),
                        void *user, size_t *components);

/* ---- comparison with the regression (regress_compare.c) ---- */

/* How far drift and diffusion are from those of hl_sde_regress at the data, relative to their size; NaN if there is no regression. */
hl_status hl_sde_compare_regression(hl_sde *sde, const hl_sde_data *data, uint64_t seed, double difference[2]);
/* Half of the 90 % bands of drift and diffusion over their size at observations, the larger of both; NaN without bands. */
hl_status hl_sde_band_width(hl_sde *sde, const hl_sde_data *data, double *share);

/* ---- steps along trajectories (steps.c) ---- */

/* The share of the mean speed along the data's trajectories that the model's drift leaves; NaN where it cannot be told: few
 * steps, or long ones, or more than five columns. */
hl_status hl_sde_steps_missed(hl_sde *sde, const hl_sde_data *data, double *share);

#endif
