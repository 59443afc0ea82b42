/* regress.h - inside the regression of drift and diffusion: dictionaries, rows of moment conditions, and their solution.
 *
 * Drift and squared diffusion are sums of functions of a dictionary, f_i = sum_a F_ia b_a and A_e = sum_a G_ea c_a, where e
 * numbers the diagonal of A = g g' and then, with correlated noise, the pairs i < j. All conditions on the coefficients are
 * linear: W theta = y, with rows of unit variance. Each of the folds of the data gives such rows of its own; their mean is
 * solved by least squares. The error of a candidate is the product of the residuals of two folds, with coefficients from
 * the others: its mean is the squared misfit itself, without the noise of the rows, which a plain held-out sum of squares
 * contains and which favours coefficients that are too small. */
#ifndef HL_REGRESS_H
#define HL_REGRESS_H

#include "base/base.h"
#include "base/linear.h"
#include "hollow/sde_regress.h"
#include "sde/region.h"

enum { HL_REGRESS_FOLDS = 5, HL_BASIS_FACTORS = 3, HL_REGRESS_CANDIDATES = 100 };
enum {
    HL_REGRESS_CROSSED = 6,
    HL_REGRESS_RIDGES = 6
}; /* most columns whose noise may be correlated; with directions */

/* ---- dictionaries (basis.c) ---- */

enum { HL_RIDGE_EACH = 6, HL_RIDGE_DIRECTIONS = 2 }; /* Gaussians of a direction; directions of a column */

/* The derivative of a sum of HL_RIDGE_EACH Gaussians of one direction by that direction: d/de sum_k coefficient_k exp(-(u_k + e w . z)^2 / 2) at e = 0. */
typedef struct hl_tangent {
    size_t back; /* the first of these Gaussians is so many functions before; 0: this function is no tangent */
    double coefficient[HL_RIDGE_EACH];
} hl_tangent;

/* Functions of the inputs: products of at most three of them, then Gaussians of some or all of them. The last `ridges` Gaussians are those of one
 * number, exp(-u^2 / 2) with u = (z - centre) . scale; some of them may be tangents, of which scale is w. */
typedef struct hl_basis {
    size_t inputs, products, bumps, ridges;
    unsigned short (*factor)[HL_BASIS_FACTORS]; /* [products]: number of the input + 1, or 0 */
    double *centre, *scale; /* [bumps][inputs]; scale: 1 / width, 0 for an input that does not count */
    hl_tangent *tangent;    /* NULL, or [bumps] */
    /* NULL, or what gives the values of all `products` instead */
    void (*custom)(const void *user, const double *z, double *value);
    const void *user;
} hl_basis;

static inline size_t hl_basis_size(const hl_basis *b)
{
    return b->products + b->bumps;
}
hl_status hl_basis_create(hl_context *ctx, size_t inputs, size_t products, size_t bumps, hl_basis *b);
/* The first so many functions of another. */
hl_status hl_basis_copy(hl_context *ctx, const hl_basis *from, size_t products, size_t bumps, hl_basis *b);
void hl_basis_free(hl_context *ctx, hl_basis *b);
void hl_basis_eval(const hl_basis *b, const double *z, double *value);
int hl_basis_degree(const hl_basis *b, size_t product);

/* Regressions of resampled data (regress_resample.c), over dictionaries of their own, and where the data are. */
typedef struct hl_replicates {
    size_t count, inputs, dim;
    hl_basis basis[2];
    double *coefficient[2]; /* [count][dim][size] */
    double quantile;        /* half of a band in root mean square deviations of the replicates */
    hl_region region;
} hl_replicates;
void hl_replicates_free(hl_context *ctx, hl_replicates *r); /* takes NULL */
hl_status hl_replicates_copy(hl_context *ctx, const hl_replicates *from,
                             hl_replicates **to); /* free it also on failure */

/* What was learnt. Everything is in standardised columns and time (0..5), as in models. */
struct hl_sde_simple {
    hl_context *ctx;
    size_t dim, inputs;     /* inputs: the columns, then time if f and g depend on it */
    hl_basis basis[2];      /* of f, of A */
    double *coefficient[2]; /* [dim][size] each; A: its diagonal */
    double *least;          /* [dim]: scale of the smooth floor of A, see hl_sde_simple_positive */
    double *correlation;    /* [dim][dim] of the noise */
    double *factor;         /* its lower triangular factor C */
    double t_first, t_last, *mean, *deviation;
    hl_sde_regress_report report;
    hl_replicates *replicates; /* NULL: none */
};
hl_status hl_sde_simple_create(hl_context *ctx, size_t dim, size_t inputs, hl_sde_simple **simple);
/* least log(1 + exp(value / least)): value where it is well above the floor, and always positive. */
double hl_sde_simple_positive(double value, double least);
/* Drift (part 0) or diffusion (1) in the user's units from a sum of functions. */
double hl_sde_simple_value(const hl_sde_simple *simple, size_t part, size_t i, double y);
hl_status hl_sde_simple_copy(hl_context *ctx, const hl_sde_simple *from, hl_sde_simple **to);
bool hl_sde_simple_correlated(const hl_sde_simple *simple); /* takes NULL */
/* f (part 0) or g (1) as node [dim] of standardised x [dim] and the clock of networks (simple.c). */
hl_node hl_sde_simple_node(const hl_sde_simple *simple, hl_graph *g, size_t part, hl_node x, hl_node clock);
/* As text for a file, which the caller frees (NULL without memory); and back. */
char *hl_sde_simple_text(const hl_sde_simple *simple);
hl_status hl_sde_simple_parse(hl_context *ctx, const char *path, const char *text, size_t dim, hl_sde_simple **simple);
/* Lower triangular factor of `correlation`, which is shrunk towards the identity until it has one. */
void hl_sde_simple_factor(hl_sde_simple *simple);

/* ---- the problem (regress.c) ---- */

typedef struct hl_pair {
    size_t from, to;
    double step;
} hl_pair;

typedef struct hl_regress {
    hl_context *ctx;
    hl_sde_regress_options options;    /* defaults filled in */
    size_t dim, inputs, rows, entries; /* entries of A that are free: dim, or with correlated noise dim (dim + 1) / 2 */
    double *z, *u;                     /* [rows][inputs], [rows]; standardised */
    unsigned char *fold;               /* [rows] */
    unsigned short *group;             /* [rows]: parts of folds that are resampled; group % folds is the fold */
    size_t groups;                     /* of each fold */
    double shared;                     /* mean rows of a trajectory; 0 without ids */
    hl_basis basis[2];
    size_t lines; /* Gaussians of the drift that depend on one input; its first */
    /* The drift's Gaussians from ridge_first on belong to single columns, ridge_each of them to each (regress_ridges.c); 0: none */
    size_t ridge_first, ridge_each;
    size_t ridge_tangents; /* of ridge_each, the last so many are tangents */
    size_t size[2], columns;
    size_t cross_size;  /* functions of an entry off the diagonal: the first of A's */
    size_t (*entry)[2]; /* [entries]: i, j */
    double *known;      /* [rows][2 dim]: what is known of f and of the diagonal of A; 0 elsewhere */
    bool *open[2];      /* [dim]: f_i is not known; A_ii is not known */
    double *theta;      /* [columns]: the estimate so far */
    bool started;       /* theta holds one */
    bool settled;       /* and further rounds would change it little */
    bool apart;         /* rows of different times are taken as independent */
    bool last;          /* of several rounds of steps; with snapshots always set */
    size_t pairs;
    hl_pair *pair;
    double longest; /* step of a pair that is used */
    size_t every;   /* one pair of so many is used, in rounds that prepare another; 0 and 1: all */
    bool plain;     /* no moments of transitions: parts are known at the rows alone, or expressions are fitted */
    double rate;    /* root mean square of the derivatives of f; 0 before there is an estimate, or if plain */
} hl_regress;

/* Is pair k used? Those of one in many are spread without a period. */
static inline bool hl_regress_uses(const hl_regress *p, size_t k)
{
    uint64_t spread = (uint64_t)k * UINT64_C(0x9E3779B97F4A7C15);
    return p->pair[k].step <= p->longest && (p->every <= 1 || (spread >> 32) % p->every == 0);
}

static inline size_t hl_regress_drift(const hl_regress *p, size_t i)
{
    return i * p->size[0];
}
static inline size_t hl_regress_noise(const hl_regress *p, size_t entry)
{
    size_t own = entry < p->dim ? entry : p->dim;
    return p->dim * p->size[0] + own * p->size[1] + (entry - own) * p->cross_size;
}
static inline size_t hl_regress_noise_size(const hl_regress *p, size_t entry)
{
    return entry < p->dim ? p->size[1] : p->cross_size;
}

/* f (dim) and A (entries) of the estimate at a row, known parts included. `value` holds both dictionaries' functions. */
void hl_regress_values(const hl_regress *p, size_t row, double *value, double *f, double *a);

/* The same at standardised inputs, without known parts. */
void hl_regress_values_at(const hl_regress *p, const double *z, double *value, double *f, double *a);

/* ---- transitions (regress_moments.c) ---- */

/* Of X after a step of h from a row; all but `a` point to the scratch. */
typedef struct hl_moments {
    double *mean, *covariance; /* [dim], [dim][dim] */
    double *f, *slope;         /* E f(X), [dim]; E[f(X) (X - mean)'], [dim][dim] */
    double *function;          /* E of all functions of both dictionaries */
    double *a;                 /* E A(X), [entries]; the caller's */
} hl_moments;
size_t hl_moments_scratch(const hl_regress *p);
/* False if they are not finite. p->rate is set. */
bool hl_regress_moments(const hl_regress *p, size_t row, double step, double *scratch, hl_moments *to);

/* Rows of conditions: [HL_REGRESS_FOLDS][count][columns + 1], the last column is y. Of groups: [HL_REGRESS_FOLDS x groups]. */
typedef struct hl_conditions {
    size_t count;
    size_t noisy; /* the first so many, of snapshots, have regressors with noise; those of steps have none */
    double *rows;
} hl_conditions;

/* ---- sources of conditions ---- */

typedef struct hl_weak hl_weak; /* weak form (regress_weak.c) */

enum { HL_WEAK_NODES = 4, HL_WEAK_MOST_NODES = 6 }; /* times of a quadrature; 4 or 2 if there are fewer */
/* Of conditions d E[phi] = E[L phi] dt between `times` rising times, times `waves` cosines of time: the weights of the right sides and of the
 * left ones, added to [waves][times] each. nodes: times of a quadrature. wave, if not NULL: [waves][times], the cosine of each interval. */
void hl_weak_waves(size_t times, const double *at, size_t nodes, size_t waves, double *weight, double *jump,
                   double *wave);
/* NULL if there are too few times or rows for it. Sums over the data; borrows the problem. */
hl_status hl_weak_create(hl_regress *p, hl_weak **weak);
void hl_weak_free(hl_weak *weak);
/* The number of times; the times, and the rows of time t: index[start[t]] .. index[start[t + 1] - 1]. */
size_t hl_weak_times(const hl_weak *weak, const double **at, const size_t **start, const size_t **index);
size_t hl_weak_count(const hl_weak *weak);
/* Weighted by the covariance that the estimate implies. */
hl_status hl_weak_rows(hl_weak *weak, hl_conditions *c, size_t first);
/* What the estimate leaves of the conditions in units of its noise (a chi-square variable if it is right), and -2 log likelihood of the scatter of the folds:
 * for rows that are independent, and for rows of different times that are of the same trajectories. The rows of c are overwritten. `expected`, if not NULL: the expectation
 * of each test function under the estimate and its derivative by time, [times][tests][2], whose error of the quadrature is taken out. */
void hl_weak_misfit(hl_weak *weak, hl_conditions *c, const double *expected, double left[2], double scatter[2]);
size_t hl_weak_test_count(const hl_weak *weak);
/* Of a test function, if x has a normal distribution. scratch: [dim][dim + 1]. */
double hl_weak_expect(const hl_weak *weak, size_t test, const double *mean, const double *covariance, double *scratch);
/* After hl_weak_rows: what the rows of a fold gain by every further copy of a group, to first order; the sum over the groups of a fold is 0. */
hl_status hl_weak_groups(hl_weak *weak, hl_conditions *c, size_t first);

typedef struct hl_steps hl_steps; /* pairs of neighbours in time (regress_pairs.c) */
/* With `grouped` each group has rows of its own, which add up to those of its fold. */
hl_status hl_steps_create(hl_regress *p, bool grouped, hl_steps **steps);
void hl_steps_free(hl_steps *steps);
size_t hl_steps_count(const hl_steps *steps);
hl_status hl_steps_rows(hl_steps *steps, hl_conditions *c, size_t first);

/* ---- choice (regress_choose.c) ---- */

/* Which functions a candidate has: products up to a degree, and Gaussians first .. bumps - 1. */
typedef struct hl_candidate {
    const char *name[2];
    int degree[2];
    bool own[2]; /* beyond degree 1 only powers of the component's own column */
    size_t first[2], bumps[2];
    size_t ridges; /* of each column's own, the first so many */
    bool crossed;  /* entries of A off the diagonal */
} hl_candidate;

typedef struct hl_choice {
    double score;
    size_t candidate;
    double ridge;
    size_t functions;                     /* coefficients of the candidate */
    bool moments;                         /* they are those of means and covariances (regress_gaussian.c) */
    double excess[HL_REGRESS_CANDIDATES]; /* of each candidate: its score beyond the best one, in standard errors */
} hl_choice;
/* p->basis and all that depends on it; theta is zero (regress_dictionaries.c). */
hl_status hl_regress_dictionaries(hl_regress *p);
/* Drifts times diffusions times with and without correlations, to c; returns their number. */
size_t hl_regress_candidates(const hl_regress *p, hl_candidate *c);
/* The best of at most HL_REGRESS_CANDIDATES candidates to p->theta; `fixed`: this one is, or SIZE_MAX. */
hl_status hl_regress_choose(hl_regress *p, const hl_conditions *c, size_t candidates, const hl_candidate *candidate,
                            size_t fixed, hl_choice *best);
/* Coefficients of a candidate. */
size_t hl_candidate_functions(const hl_regress *p, const hl_candidate *c);
/* A number that is larger for larger dictionaries of the diffusion: 0 constant, 2 linear. */
static inline size_t hl_candidate_noise(const hl_candidate *c)
{
    return (c->degree[1] > 1 && !c->own[1]) + (size_t)c->degree[1] * 2 + c->bumps[1] * 2;
}

/* ---- linear drift and constant diffusion from snapshots (regress_gaussian.c) ---- */

typedef struct hl_gaussian hl_gaussian;
/* Are these the functions of the candidate, and nothing else known? */
bool hl_gaussian_fits(const hl_regress *p, const hl_candidate *c);
/* Borrows the problem; NULL if its rows have too many different times, or too many columns. */
hl_status hl_gaussian_create(const hl_regress *p, const hl_weak *weak, hl_gaussian **gaussian);
void hl_gaussian_free(hl_gaussian *gaussian); /* takes NULL */
/* The most likely coefficients to p->theta, from those that it has. Returns -2 log of the probability of the data, or infinity, and p->theta as it was, if there are none. */
double hl_gaussian_estimate(hl_gaussian *gaussian, const hl_regress *p, bool crossed);
/* After that: what hl_weak_misfit wants, as if the rows of the first time moved by the estimate. */
hl_status hl_gaussian_expect(hl_gaussian *gaussian, const hl_weak *weak, double *expected);
/* And: the same to first order of `copies` [FOLDS x groups] of each group. */
bool hl_gaussian_replicate(hl_gaussian *gaussian, const hl_regress *p, const unsigned *copies);

/* ---- iterations (regress_estimate.c) ---- */

typedef struct hl_sources {
    hl_weak *weak;
    hl_steps *steps;
    hl_conditions rows;
    hl_candidate candidate[HL_REGRESS_CANDIDATES];
    size_t candidates;
    size_t fixed; /* the candidate to take, or SIZE_MAX */
    hl_choice choice;
} hl_sources;
void hl_sources_free(hl_regress *p, hl_sources *s); /* what it points to */
/* Conditions weighted by the estimate, and the next estimate from them. */
hl_status hl_regress_round(hl_regress *p, hl_sources *s, bool weak, bool steps);
hl_status hl_regress_estimate(hl_regress *p, hl_sources *s, bool ridges, hl_sde_regress_report *report);
/* The first estimate from snapshots (regress_contest.c). */
hl_status hl_regress_contest(hl_regress *p, hl_sources *s);

/* ---- functions of what the estimate depends on (regress_ridges.c) ---- */

/* Could they help, or are they asked for? The estimate is of several columns, and not linear. */
bool hl_regress_bends(const hl_regress *p, const hl_candidate *c);
/* The problem with the functions of the candidate, which is the estimate's, and Gaussians of directions in which the drift of the coefficients `bent`
 * bends, for each column its own: all but bases and theta, which the caller frees, is borrowed. */
hl_status hl_regress_ridges(const hl_regress *p, const hl_candidate *c, const double *bent, hl_regress *to);
/* Candidates for that problem p, with the diffusions of those of `from` that have the drift of c; returns their number. */
size_t hl_regress_ridge_candidates(const hl_regress *p, size_t count, const hl_candidate *from, const hl_candidate *c,
                                   hl_candidate *candidate);

/* A problem with ridges and the tangents of the directions that `ridges` Gaussians of each column have, at the estimate; the caller frees bases and theta. */
hl_status hl_regress_tangents(const hl_regress *p, size_t ridges, hl_regress *to);
/* Turns the directions of the candidate to where its conditions are met best, in place. If it has one of each column, more Gaussians of that one take the place
 * of the second. */
hl_status hl_regress_turn(hl_regress *p, const hl_candidate *c, bool weak, bool steps);

/* Relative error of g that the residuals of steps show, the largest of the columns (regress_check.c); 0 if it is small or may be chance. */
hl_status hl_regress_noise_missed(const hl_regress *p, double *effect);

/* ---- expressions (forms_fit.c) ---- */

/* What is to be done with the problem after the estimate: p->theta, the choice and the result are there. */
typedef hl_status hl_regress_after_fn(void *user, const hl_regress *p, const hl_candidate *candidate,
                                      const hl_sde_simple *s);
hl_status hl_regress_run(hl_context *ctx, const hl_sde_data *data, size_t dim, const hl_sde_regress_options *options,
                         hl_regress_after_fn *after, void *user, hl_sde_simple **simple);

/* ---- resampling (regress_resample.c) ---- */

/* The problem with the candidate's functions alone: all but bases and theta, which the caller frees, is borrowed. */
hl_status hl_regress_narrow(const hl_regress *p, const hl_candidate *c, hl_regress *to);

/* Regressions of `count` resamplings of the groups to s->replicates, by the conditions that the estimate p->theta was found with. Each
 * chooses among the candidates that the data do not exclude. s holds the estimate. */
hl_status hl_regress_resample(const hl_regress *p, size_t candidates, const hl_candidate *candidate,
                              const hl_choice *choice, bool weak, bool steps, size_t count, hl_sde_simple *s);

#endif
