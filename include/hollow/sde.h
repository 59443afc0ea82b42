/* hollow/sde.h - learn stochastic differential equations dx_i = f_i(t, x) dt + g_i(t, x) dW_i (Ito) from observations.
 *
 *     hl_sde_create(ctx, &(hl_sde_spec){ .dim = 2 }, &sde);
 *     hl_sde_init(sde, 1);
 *     hl_sde_fit_create(sde, &(hl_sde_data){ .rows = n, .t = t, .x = x }, NULL, &fit);
 *     while ((status = hl_sde_fit_step(fit, &report)) == HL_OK)
 *         ...
 *     hl_sde_fit_finish(fit);
 *     hl_sde_eval(sde, rows, t, x, &(hl_sde_values){ .f = f, .g = g, .logp = logp });
 *
 * Fokker-Planck matching fits a density p(t, x) to the observations, and drift and diffusion to the Fokker-Planck equation of that density.
 * The density is a mixture of Gaussians whose parameters are a network of t, or a normalizing flow. The method does not use which
 * observations belong to the same trajectory, and has no discretisation error. It cannot separate f from g where p hardly changes with
 * time, or if both depend on t.
 *
 * Pseudo-maximum likelihood uses consecutive observations of a trajectory and approximates the transition by one Euler step.
 *
 * Arguments and results are in the user's units. Internally, time runs from 0 to 5, and columns have mean 0 and standard deviation 1. */
#ifndef HOLLOW_SDE_H
#define HOLLOW_SDE_H

#include "hollow/job.h"
#include "hollow/learn.h"
#include "hollow/simulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the Fokker-Planck equation as a graph ---- */

/* Inputs: drift f with D f; diffusion g with D g and D^2 g; a density with log p, its derivative with respect to t, its score s (gradient of
 * log p with respect to x), and c_i = (d^2 p / dx_i^2) / p = D s + s^2. All are [dim], except the scalars logp and logp_t. HL_NONE means
 * zero. logp is used for residual_p only. */
typedef struct hl_fp_nodes {
    hl_node f, df, g, dg, d2g;
    hl_node logp, logp_t, s, c;
    hl_node residual;   /* result: R = d log p/dt + sum_i [D f + f s - D^2 G/2 - (D G) s - G c/2]_i with G = g^2 */
    hl_node residual_p; /* result: p R, the residual of the equation for p */
    hl_node cross;      /* correlated noise: sum over i < j of (d^2 (A_ij p) / dx_i dx_j) / p, subtracted from R */
} hl_fp_nodes;
/* Build both residuals. They are 0 everywhere if and only if p solves the Fokker-Planck equation. */
HL_API hl_status hl_fp_build(hl_graph *g, hl_fp_nodes *nodes);
/* Compute logp_t, s and c from a log p that depends on the nodes t (scalar) and x ([dim]), with one jet per dimension. */
HL_API hl_status hl_fp_derive_density(hl_graph *g, hl_node logp, hl_node t, hl_node x, hl_fp_nodes *nodes);
/* Add the term of A_ij (a scalar node; i != j) to nodes->cross, with two jets. */
HL_API hl_status hl_fp_add_cross(hl_graph *g, hl_node logp, hl_node x, size_t i, size_t j, hl_node a,
                                 hl_fp_nodes *nodes);
/* Exact D^1 y .. D^order y (order 1 or 2) of any y of the shape of x, with one jet per dimension. For networks that are not hollow. */
HL_API hl_status hl_fp_derive(hl_graph *g, hl_node y, hl_node x, int order, hl_node *d);

/* ---- models ---- */

/* A known function as a graph, in the user's units: returns a scalar node, given t (scalar) and x ([dim]). It is called whenever a graph of the
 * model is built, and must build the same expression each time. Derivatives are computed from it. */
typedef hl_node hl_sde_form_fn(void *user, hl_graph *g, hl_node t, hl_node x);

/* Known drift or diffusion of one column, in the user's units. */
typedef struct hl_sde_known {
    int drift, diffusion;                        /* nonzero: known */
    double drift_constant;                       /* f_i = drift_constant + sum_j drift_linear[j] x_j */
    const double *drift_linear;                  /* dim values, or NULL for zeros; copied */
    double diffusion_value;                      /* g_i, >= 0 */
    hl_sde_form_fn *drift_form, *diffusion_form; /* added to these; NULL: none */
    void *user;                                  /* their argument; borrowed until the model and its fits are freed */
} hl_sde_known;

typedef struct hl_sde_simple hl_sde_simple; /* a regression, see hollow/sde_regress.h; opaque */
typedef struct hl_sde_forms hl_sde_forms;   /* expressions, see hollow/sde_forms.h; opaque */

/* Zero or NULL in any field except `dim` means the default. Strings are copied. */
typedef struct hl_sde_spec {
    size_t dim;
    /* Networks of f and g: "hollow" (default), or "mlp", dense networks as in the paper, with D by dim jets. */
    const char *network;
    /* Nonzero: f and g depend on t. Default: they do not. */
    int time;
    /* mlp: units of a layer, default 64; number of hidden layers, default 3. */
    size_t hidden;
    int layers;
    /* "swish" (default), "tanh" or "softplus". */
    const char *activation;
    /* hollow: sizes, conditioner and transformer; other members are ignored. Default hidden and width: 32 up to 3 dimensions, else 64. */
    hl_net_spec net;
    /* "mixture" (default), or "flow", a normalizing flow of x with t as context. */
    const char *density;
    /* Components of the mixture. Default 5. */
    size_t components;
    /* Nonzero: diagonal covariances. Default: full. */
    int diagonal;
    /* Units and hidden layers of the density's network of t. Defaults 64 and 3. */
    size_t density_hidden;
    int density_layers;
    /* Bound of |log(1 / standard deviation)| of the mixture, in standardised units. Default 5. */
    double clamp;
    /* flow, in training: computation of the diagonal of the Hessian of log p. "exact" (default up to 10 dimensions), or an estimate,
     * "projected" (default above) or "propagated" (see hl_curvature). Estimates use the penalty HL_SDE_L2. Evaluation is always exact. */
    const char *curvature;
    /* flow: number of networks in the chain, at most 64. Default 3. */
    size_t flows;
    /* flow: each network. Conditioner "autoregressive" (default) or "coupling", transformer "monotone" (default) or "affine". Defaults:
     * hidden 32 up to 3 dimensions and else 64, features 8, width 16, layers 1. */
    hl_net_spec flow;
    /* Initial g, standardised. Default 0.3. */
    double diffusion_start;
    /* Scale of the output of the drift's network, standardised. Default 1. Increase it for fast dynamics observed over a long time. */
    double drift_scale;
    /* Known parts of the dim columns, or NULL. Copied. */
    const hl_sde_known *known;
    hl_dtype dtype;
    /* A regression that the networks correct: f is its f plus the network's output, g is its g times exp(output). The networks are
     * mlp and start at 0; the model's scale is that of the regression. Copied. */
    const hl_sde_simple *simple;
    /* Expressions for f and g of some columns, which are then known. Copied. */
    const hl_sde_forms *forms;
} hl_sde_spec;

typedef struct hl_sde hl_sde;                                                               /* opaque */
HL_API hl_status hl_sde_create(hl_context *context, const hl_sde_spec *spec, hl_sde **sde); /* all parameters 0 */
HL_API void hl_sde_free(hl_sde *sde);                                                       /* takes NULL */
HL_API hl_status hl_sde_init(hl_sde *sde, uint64_t seed);
/* The specification with all defaults filled in. Its pointers are borrowed until the model is freed. */
HL_API hl_sde_spec hl_sde_describe(const hl_sde *sde);
/* The networks: 0 drift, 1 diffusion, 2 density; NULL for other numbers. Borrowed until the model is freed. */
HL_API hl_net *hl_sde_net(const hl_sde *sde, size_t which);
/* Range of times, and mean and standard deviation of the columns, for standardisation. Set by hl_sde_fit_create; initially 0, 5, zeros and ones. */
HL_API hl_status hl_sde_set_scale(hl_sde *sde, double t_first, double t_last, const double *mean,
                                  const double *deviation);
HL_API void hl_sde_get_scale(const hl_sde *sde, double *t_first, double *t_last, double *mean, double *deviation);

/* Results of hl_sde_eval. NULL members are not computed. */
typedef struct hl_sde_values {
    double *f, *g, *dg;      /* rows x dim; dg is D g */
    double *logp, *residual; /* rows; residual is R */
    double *score;           /* rows x dim: gradient of log p with respect to x */
    double *change;          /* rows: d log p/dt */
} hl_sde_values;
/* Evaluate the model. Allocates nothing. Far from the data (in float32, beyond about 1e18 standard deviations) values may overflow; they are then NaN
 * or infinite, and no error is returned. */
HL_API hl_status hl_sde_eval(hl_sde *sde, size_t rows, const double *t, const double *x, const hl_sde_values *values);
/* Draw x (rows x dim) from p(t[r], .). Row r is a function of (seed, first + r, t[r]). */
HL_API hl_status hl_sde_sample(hl_sde *sde, size_t rows, const double *t, uint64_t seed, uint64_t first, double *x);
/* The model as a system for hl_simulator, with slope. It borrows the model. */
HL_API hl_status hl_sde_system(hl_sde *sde, hl_noise_system *system);

/* ---- fitting ---- */

/* Observations, copied. */
typedef struct hl_sde_data {
    size_t rows;
    const double *t; /* rows */
    const double *x; /* rows x dim */
    /* rows, or NULL. Pseudo-likelihood: rows of a trajectory are adjacent, with increasing times. */
    const size_t *trajectory;
} hl_sde_data;

typedef enum hl_sde_method { HL_SDE_FOKKER_PLANCK = 0, HL_SDE_PSEUDO_LIKELIHOOD } hl_sde_method;
/* "fp" or "pseudo-ml"; NULL for other values. */
HL_API const char *hl_sde_method_name(hl_sde_method method);
/* The method of the last fit of a model, kept in its file. Initially HL_SDE_FOKKER_PLANCK. */
HL_API hl_sde_method hl_sde_trained_by(const hl_sde *sde);
/* The training history of the last fit, as recorded by hl_sde_fit_finish and kept in the model file: the loss of drift and diffusion, or -log p
 * of the density, as in hl_sde_fit_report. *count receives the number of points; NULL and 0 if unknown. Borrowed from the model. */
typedef enum hl_sde_course_of { HL_SDE_COURSE_LOSS = 0, HL_SDE_COURSE_DENSITY, HL_SDE_COURSES } hl_sde_course_of;
HL_API const hl_training_point *hl_sde_course(const hl_sde *sde, hl_sde_course_of which, size_t *count);
/* Penalty of the residual: |R|; R^2/2; R^2/2 up to |R| = 1, linear beyond. With estimated curvature it is R_1 R_2/2 of two independent
 * estimates, whose mean is R^2/2 but which may be negative. */
typedef enum hl_sde_penalty { HL_SDE_L1 = 0, HL_SDE_L2, HL_SDE_HUBER } hl_sde_penalty;

/* Zero in any field means the default. */
typedef struct hl_sde_fit_options {
    hl_sde_method method;
    hl_sde_penalty penalty;
    /* Nonzero: penalise p R instead of R. */
    int density_form;
    /* Nonzero: the residual does not affect the density, as with lambda 0. */
    int stop_gradient;
    /* The density minimises -log p + lambda penalty; lambda decreases linearly to 0. Default 0.1; < 0: 0. */
    double lambda;
    /* mixture: drift and diffusion are fitted to R averaged over neighbours within this width, in standardised columns, so that they do not
     * follow small-scale fluctuations of the density. Default 0.5 up to 5 dimensions. < 0, or with density_form: no average. */
    double smooth;
    /* Fraction of the points of the residual that are drawn from the density at random times between the observations. Default 1 if R is
     * averaged or there are fewer than 20 times, else 0; < 0: 0. */
    double between;
    /* Nonzero: do not train drift and diffusion. */
    int density_only;
    /* Default 2000. */
    size_t iterations;
    /* Default 256. */
    size_t batch;
    /* Optimiser of each network. Defaults here: adam, rate 2e-3 (flow: 5e-3), clip 10. */
    hl_optimizer_options optimizer;
    /* Learning rate at the end of the cosine schedule, as a fraction of the rate. Default 0.01. */
    double last_rate;
    /* Iterations of learning-rate warm-up. Default 0. */
    size_t warmup;
    /* Pseudo-likelihood: added to g^2 dt, standardised. Default 1e-6. */
    double variance_floor;
    uint64_t seed;
} hl_sde_fit_options;

typedef struct hl_sde_fit_report {
    size_t iteration, iterations; /* iterations done; total */
    double loss; /* mean penalty of R, or mean negative log-likelihood of a step without constants; standardised */
    double nll;  /* mean -log p, in the user's units */
    double lambda;
    double gradient_norm[3];
} hl_sde_fit_report;

typedef struct hl_sde_fit hl_sde_fit; /* opaque */
/* Start a fit from the current parameters. Sets the model's scale from the data, and its method. The model is borrowed until the fit is freed. */
HL_API hl_status hl_sde_fit_create(hl_sde *sde, const hl_sde_data *data, const hl_sde_fit_options *options,
                                   hl_sde_fit **fit);
HL_API void hl_sde_fit_free(hl_sde_fit *fit); /* takes NULL */
/* Do one iteration. Returns HL_STOPPED after the last. After an error the networks hold the parameters before it. Allocates nothing. */
HL_API hl_status hl_sde_fit_step(hl_sde_fit *fit, hl_sde_fit_report *report);
/* Put the averaged parameters, if there is an average, into the networks, and the training history into the model. */
HL_API hl_status hl_sde_fit_finish(hl_sde_fit *fit);
/* The state of training, hl_sde_fit_state_size doubles. A run that continues from it with the same data and options is bitwise identical. */
HL_API size_t hl_sde_fit_state_size(const hl_sde_fit *fit);
HL_API void hl_sde_fit_get_state(const hl_sde_fit *fit, double *state);
HL_API hl_status hl_sde_fit_set_state(hl_sde_fit *fit, const double *state);
/* Checkpoints: the state and a text of settings. Loading fails if the settings differ. */
HL_API hl_status hl_sde_fit_save(const hl_sde_fit *fit, const char *settings, const char *path);
HL_API hl_status hl_sde_fit_load(hl_sde_fit *fit, const char *settings, const char *path);

/* Choose the number of mixture components. Mixtures of 1, 2, 5 and (up to 5 columns) 10 components are fitted to four fifths of the
 * trajectories (without trajectories: rows). The result is the smallest number whose log-likelihood of the others is within 0.001 nats of the
 * best; 0, the default, with fewer than 10 trajectories or 200 rows. Uses seed, batch and rate of the options, and at most 1000 iterations. */
HL_API hl_status hl_sde_choose_components(hl_context *context, const hl_sde_spec *spec, const hl_sde_data *data,
                                          const hl_sde_fit_options *options, size_t *components);

/* ---- model files ---- */

/* Names of the columns, initially "x1", ..., and of time (column dim), initially "t": UTF-8 of at most 255 bytes. Copied. */
HL_API hl_status hl_sde_set_name(hl_sde *sde, size_t column, const char *name);
HL_API const char *hl_sde_name(const hl_sde *sde, size_t column); /* borrowed until the model is freed */
/* Nonzero: the times of the data were dates. */
HL_API int hl_sde_dates(const hl_sde *sde);
/* Drift (part 0) or diffusion (part 1) of a column of a regression as text, zero-terminated, in the units of the data, such as "f_x1 = 1.5 - 1.5*x1",
 * "g_x1 = 0.5" or "g_x1^2 = 0.04 + 0.2*x1": a polynomial, and the number of the other functions. What does not fit ends with "...".
 * HL_ERR_UNSUPPORTED for networks and expressions. */
HL_API hl_status hl_sde_equation(const hl_sde *sde, int part, size_t column, char *buffer, size_t size);
/* An arbitrary text, kept in the model file; initially "". Copied. */
HL_API hl_status hl_sde_set_note(hl_sde *sde, const char *note);
HL_API const char *hl_sde_note(const hl_sde *sde);
/* Model files in safetensors format, with everything except tensors in the metadata. Files are replaced atomically. */
HL_API hl_status hl_sde_save(const hl_sde *sde, const char *path);
HL_API hl_status hl_sde_load(hl_context *context, const char *path, hl_sde **sde);
/* The contents of the model file in memory, as hl_density_write and hl_density_read. */
HL_API hl_status hl_sde_write(const hl_sde *sde, void *bytes, size_t capacity, size_t *size);
HL_API hl_status hl_sde_read(hl_context *context, const void *bytes, size_t size, hl_sde **sde);

#ifdef __cplusplus
}
#endif

#endif
