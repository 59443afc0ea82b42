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
 * Fokker-Planck matching fits a density p(t, x), a mixture of Gaussians whose parameters are a network of t or a
 * normalizing flow, to the observations, and drift and diffusion to the Fokker-Planck equation of that density. It needs no pairs of
 * observations and takes no notice of the steps between them, but where p hardly changes in time, or where f and g may
 * both change with it, it cannot tell f from g. Pseudo-maximum likelihood looks at neighbours in time and takes the
 * step between them for one Euler step.
 *
 * All arguments are in the user's units; inside, time runs from 0 to 5 and every column has mean 0 and deviation 1. */
#ifndef HOLLOW_SDE_H
#define HOLLOW_SDE_H

#include "hollow/job.h"
#include "hollow/learn.h"
#include "hollow/simulate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the Fokker-Planck equation as graph ---- */

/* Drift f with D f, diffusion g with D g and D^2 g, and a density: log p and its derivative by t, the gradient s of log
 * p by x, and c_i = (d^2 p / dx_i^2) / p = D s + s^2. All are [dim] but the scalars logp and logp_t; HL_NONE is zero
 * (logp is needed for residual_p alone). */
typedef struct hl_fp_nodes {
    hl_node f, df, g, dg, d2g;
    hl_node logp, logp_t, s, c;
    hl_node residual;   /* result: R = d log p/dt + sum_i [D f + f s - D^2 G/2 - (D G) s - G c/2]_i with G = g^2 */
    hl_node residual_p; /* result: p R = dp/dt - the right-hand side of the equation for p */
    hl_node cross;      /* with correlated noise: sum over i < j of (d^2 (A_ij p) / dx_i dx_j) / p, which R loses */
} hl_fp_nodes;
/* Build both residuals; they are 0 everywhere exactly if p solves the equation. */
HL_API hl_status hl_fp_build(hl_graph *g, hl_fp_nodes *nodes);
/* Set logp_t, s and c from any log p that depends on the nodes t (scalar) and x ([dim]): one jet for each dimension. */
HL_API hl_status hl_fp_derive_density(hl_graph *g, hl_node logp, hl_node t, hl_node x, hl_fp_nodes *nodes);
/* Add the part of A_ij (a scalar node; i != j) to nodes->cross, by two jets. */
HL_API hl_status hl_fp_add_cross(hl_graph *g, hl_node logp, hl_node x, size_t i, size_t j, hl_node a,
                                 hl_fp_nodes *nodes);
/* D^1 y .. D^order y (order 1 or 2) of any y of x's shape, exact, by one jet for each dimension: for networks that are
 * not hollow. */
HL_API hl_status hl_fp_derive(hl_graph *g, hl_node y, hl_node x, int order, hl_node *d);

/* ---- models ---- */

/* A known form as graph, in the user's units: a scalar from t (a scalar) and x ([dim]). It is called whenever the model is
 * made into a graph and must make the same each time; its derivatives are taken as they are needed. */
typedef hl_node hl_sde_form_fn(void *user, hl_graph *g, hl_node t, hl_node x);

/* What is known of one component, in the user's units. */
typedef struct hl_sde_known {
    int drift, diffusion;                        /* nonzero: known */
    double drift_constant;                       /* f_i = drift_constant + sum_j drift_linear[j] x_j */
    const double *drift_linear;                  /* dim values, or NULL for zeros; copied */
    double diffusion_value;                      /* g_i, >= 0 */
    hl_sde_form_fn *drift_form, *diffusion_form; /* added to these; NULL: none */
    void *user;                                  /* theirs; borrowed until the model and its fits are freed */
} hl_sde_known;

typedef struct hl_sde_simple hl_sde_simple; /* a regression, see hollow/sde_regress.h; opaque */
typedef struct hl_sde_forms hl_sde_forms;   /* expressions, see hollow/sde_forms.h; opaque */

/* Zero or NULL in any field but `dim` means the default. Strings are not kept. */
typedef struct hl_sde_spec {
    size_t dim;
    const char *network;    /* "hollow" (default): D at once; "mlp": plain, as in the paper, with D by d jets */
    int time;               /* nonzero: f and g depend on t; default time-homogeneous */
    size_t hidden;          /* mlp: units of a layer, default 64 */
    int layers;             /* mlp: hidden layers, default 3 */
    const char *activation; /* "swish" (default), "tanh", "softplus" */
    hl_net_spec net;     /* hollow: its sizes, conditioner and transformer; the rest is as said here. Default width and
                             * hidden 64, up to 3 dimensions 32 */
    const char *density; /* "mixture" (default); "flow": a normalizing flow of x with t as context */
    size_t components;   /* of the mixture; default 5 */
    int diagonal;        /* nonzero: diagonal covariances; default full */
    size_t density_hidden;     /* of the density's network of t; default 64 */
    int density_layers;        /* default 3 */
    double clamp;              /* bound of |log(1 / deviation)| of the mixture, in standardised units; default 5 */
    const char *curvature;     /* flow, in training: the diagonal of the Hessian of log p "exact" (default up to 10
                            * dimensions), or estimated, "projected" (default beyond) or "propagated" (see
                            * hl_curvature); estimates need penalty L2, their default. Evaluation is always exact */
    size_t flows;              /* flow: networks one after the other, at most 64; default 3 */
    hl_net_spec flow;          /* flow: each of them, an autoregressive (default) or coupling conditioner and a monotone
                              * (default) or affine transformer; default hidden 64, up to 3 dimensions 32, features 8,
                              * width 16, layers 1 */
    double diffusion_start;    /* g to begin with, standardised; default 0.3 */
    double drift_scale;        /* factor of the drift's network, standardised; default 1. Large for fast equations that
                                * are observed for long: a network learns outputs of about 1 best */
    const hl_sde_known *known; /* dim of them, or NULL; copied */
    hl_dtype dtype;
    const hl_sde_simple
        *simple;               /* f is its f + the network's output, g its g times exp(output); copied. The networks are
                                  * plain (mlp) and start at 0; the model's scale is the regression's */
    const hl_sde_forms *forms; /* f and g of columns as expressions, which are then known; copied */
} hl_sde_spec;

typedef struct hl_sde hl_sde;                                                               /* opaque */
HL_API hl_status hl_sde_create(hl_context *context, const hl_sde_spec *spec, hl_sde **sde); /* all parameters 0 */
HL_API void hl_sde_free(hl_sde *sde);                                                       /* takes NULL */
HL_API hl_status hl_sde_init(hl_sde *sde, uint64_t seed);
/* With all defaults filled in; pointers are borrowed until the model is freed. */
HL_API hl_sde_spec hl_sde_describe(const hl_sde *sde);
/* The networks, for their parameters: 0 drift, 1 diffusion, 2 density; NULL for others. Borrowed until the model is
 * freed. */
HL_API hl_net *hl_sde_net(const hl_sde *sde, size_t which);
/* The times and columns that the model was made for: set by hl_sde_fit_create; at first 0, 5, zeros and ones. */
HL_API hl_status hl_sde_set_scale(hl_sde *sde, double t_first, double t_last, const double *mean,
                                  const double *deviation);
HL_API void hl_sde_get_scale(const hl_sde *sde, double *t_first, double *t_last, double *mean, double *deviation);

/* Results of hl_sde_eval; what is NULL is not wanted. */
typedef struct hl_sde_values {
    double *f, *g, *dg;      /* rows x dim; dg is D g */
    double *logp, *residual; /* rows; residual: R */
    double *score;           /* rows x dim: the gradient of log p */
    double *change;          /* rows: d log p/dt */
} hl_sde_values;
/* Allocates nothing. Far from the data values may overflow, in f32 beyond about 1e18 deviations: they are then NaN or infinite, which
 * is no error. */
HL_API hl_status hl_sde_eval(hl_sde *sde, size_t rows, const double *t, const double *x, const hl_sde_values *values);
/* Draw x (rows x dim) from p(t[r], .): a function of (seed, first + r, t[r]). */
HL_API hl_status hl_sde_sample(hl_sde *sde, size_t rows, const double *t, uint64_t seed, uint64_t first, double *x);
/* The model as a system for hl_simulator, with slope. It borrows the model until the system is no longer used. */
HL_API hl_status hl_sde_system(hl_sde *sde, hl_noise_system *system);

/* ---- fitting ---- */

/* Observations, copied. */
typedef struct hl_sde_data {
    size_t rows;
    const double *t; /* rows */
    const double *x; /* rows x dim */
    const size_t
        *trajectory; /* rows, or NULL. Pseudo-likelihood: rows of one trajectory stand together, times rising */
} hl_sde_data;

typedef enum hl_sde_method { HL_SDE_FOKKER_PLANCK = 0, HL_SDE_PSEUDO_LIKELIHOOD } hl_sde_method;
/* "fp" or "pseudo-ml"; NULL if it is neither. */
HL_API const char *hl_sde_method_name(hl_sde_method method);
/* The method of the last fit of a model, which its file keeps; at first HL_SDE_FOKKER_PLANCK. */
HL_API hl_sde_method hl_sde_trained_by(const hl_sde *sde);
/* The course of the last fit, as hl_sde_fit_finish left it and the model's file keeps it: the loss of drift and diffusion, or -log p of the
 * density, as hl_sde_fit_report has them. *count points, or NULL and 0 if it is not known. Borrowed from the model. */
typedef enum hl_sde_course_of { HL_SDE_COURSE_LOSS = 0, HL_SDE_COURSE_DENSITY, HL_SDE_COURSES } hl_sde_course_of;
HL_API const hl_training_point *hl_sde_course(const hl_sde *sde, hl_sde_course_of which, size_t *count);
typedef enum hl_sde_penalty {
    HL_SDE_L1 = 0,
    HL_SDE_L2,
    HL_SDE_HUBER
} hl_sde_penalty; /* |R|; R^2/2; R^2/2 up to |R| = 1. With estimated curvature R_1 R_2/2 of two estimates: its mean is
                     * R^2/2, but it may be < 0 */

/* Zero in any field means the default. */
typedef struct hl_sde_fit_options {
    hl_sde_method method;
    hl_sde_penalty penalty;
    int density_form;  /* nonzero: penalise p R instead of R */
    int stop_gradient; /* nonzero: the density does not follow the equation, as if lambda were 0 */
    double lambda;     /* the density minimises -log p + lambda penalty, lambda falling along a line to 0;
                        * default 0.1; < 0: none */
    double
        smooth; /* mixture: the width, in standardised columns, over which drift and diffusion see R averaged, so that
                        * they do not follow the ripples of the density; default 0.5 up to 5 dimensions; < 0, or density_form: R of
                        * each point */
    double between; /* share of the residual's points that are draws from the density at random times, so that it holds
                        * between the times of the observations, too; default 1 where R is averaged or there are fewer than
                        * 20 times, else 0; < 0: none */
    int density_only;               /* nonzero: drift and diffusion are left as they are */
    size_t iterations;              /* default 2000 */
    size_t batch;                   /* default 256 */
    hl_optimizer_options optimizer; /* of each network; defaults here: adam, rate 2e-3 (flow: 5e-3), clip 10 */
    double last_rate;               /* share of the rate at the end of the cosine; default 0.01 */
    size_t warmup;                  /* steps in which the rate rises; default 0 */
    double variance_floor;          /* pseudo-likelihood: added to g^2 dt, standardised; default 1e-6 */
    uint64_t seed;
} hl_sde_fit_options;

typedef struct hl_sde_fit_report {
    size_t iteration, iterations; /* done; in all */
    double loss; /* mean penalty of R, or mean -log likelihood of a step without constants; both standardised */
    double nll;  /* mean -log p, in the user's units */
    double lambda;
    double gradient_norm[3];
} hl_sde_fit_report;

typedef struct hl_sde_fit hl_sde_fit; /* opaque */
/* Sets the model's scale by the data, and its method. The model is borrowed until the fit is freed. Parameters are taken as they are. */
HL_API hl_status hl_sde_fit_create(hl_sde *sde, const hl_sde_data *data, const hl_sde_fit_options *options,
                                   hl_sde_fit **fit);
HL_API void hl_sde_fit_free(hl_sde_fit *fit); /* takes NULL */
/* One iteration; HL_STOPPED when all are done. On an error the networks have the parameters before it. Allocates
 * nothing. */
HL_API hl_status hl_sde_fit_step(hl_sde_fit *fit, hl_sde_fit_report *report);
/* Put the averaged parameters, if there is an average, into the networks, and the course into the model. */
HL_API hl_status hl_sde_fit_finish(hl_sde_fit *fit);
/* All that a later run needs to go on to the same bits, beside data and options: hl_sde_fit_state_size doubles. */
HL_API size_t hl_sde_fit_state_size(const hl_sde_fit *fit);
HL_API void hl_sde_fit_get_state(const hl_sde_fit *fit, double *state);
HL_API hl_status hl_sde_fit_set_state(hl_sde_fit *fit, const double *state);
/* A checkpoint: the state in a file, and a text of settings that must be the same when it is read. */
HL_API hl_status hl_sde_fit_save(const hl_sde_fit *fit, const char *settings, const char *path);
HL_API hl_status hl_sde_fit_load(hl_sde_fit *fit, const char *settings, const char *path);

/* How many Gaussians the data bear, for spec.components: mixtures of 1, 2, 5 and, up to 5 columns, 10 are fitted to four fifths
 * of the trajectories (of the rows, if there are none), and that of the fewest is taken which explains the others as well as the
 * best to 0.001 nats. With fewer than 10 trajectories, or 200 rows: 0, the default. Uses seed, batch and rate of the options, and at most 1000
 * iterations. */
HL_API hl_status hl_sde_choose_components(hl_context *context, const hl_sde_spec *spec, const hl_sde_data *data,
                                          const hl_sde_fit_options *options, size_t *components);

/* ---- model files ---- */

/* The names of the columns, at first "x1".., and of time (column dim), at first "t": UTF-8 of at most 255 bytes. Copied. */
HL_API hl_status hl_sde_set_name(hl_sde *sde, size_t column, const char *name);
HL_API const char *hl_sde_name(const hl_sde *sde, size_t column); /* borrowed until the model is freed */
/* Nonzero: the times of the data were dates. */
HL_API int hl_sde_dates(const hl_sde *sde);
/* Any text about the model; "" at first. Copied. */
HL_API hl_status hl_sde_set_note(hl_sde *sde, const char *note);
HL_API const char *hl_sde_note(const hl_sde *sde);
/* Safetensors, with everything but the values in the header's metadata. Written atomically. */
HL_API hl_status hl_sde_save(const hl_sde *sde, const char *path);
HL_API hl_status hl_sde_load(hl_context *context, const char *path, hl_sde **sde);
/* The bytes of the model's file in memory, as hl_density_write and hl_density_read. */
HL_API hl_status hl_sde_write(const hl_sde *sde, void *bytes, size_t capacity, size_t *size);
HL_API hl_status hl_sde_read(hl_context *context, const void *bytes, size_t size, hl_sde **sde);

#ifdef __cplusplus
}
#endif

#endif
