/* tmixture.h - mixtures of multivariate Student's t distributions, normal ones included, and their fit by EM.
 *
 *   p(x) = sum_j w_j t_nu(x; m_j, L_j L_j'),   nu = infinity: normal distributions
 *
 * The first `given` columns may be a context: then log p and samples are those of the other columns given these, exactly, as every
 * part's marginal and conditional distributions are known. Sums have a fixed order, so that results do not depend on the number
 * of threads. */
#ifndef HL_LEARN_TMIXTURE_H
#define HL_LEARN_TMIXTURE_H

#include "base/base.h"

typedef struct hl_tmixture {
    hl_context *ctx;
    size_t parts, dim, given; /* dim: columns in all */
    double nu;
    double *weight; /* [parts] */
    double *mean;   /* [parts][dim] */
    double *factor; /* [parts][dim][dim]: L, lower triangular */
    /* Derived by hl_tmixture_prepare. */
    double *inverse;  /* [parts][dim][dim]: L^-1 */
    double *offset;   /* [parts][dim]: -L^-1 m */
    double *constant; /* [parts][2]: log w and the density's constant: of all columns, of the given ones */
} hl_tmixture;

/* The columns that k-means sees: themselves, their normal scores, or these without linear correlations. */
typedef enum hl_tmixture_start { HL_START_COLUMNS = 0, HL_START_SCORES, HL_START_WHITE } hl_tmixture_start;

/* How a mixture is fitted. */
typedef struct hl_tmixture_plan {
    size_t parts;
    double nu;
    /* A part's covariance from rows that weigh N becomes (N S + prior T) / (N + prior) + diag(floor^2): T is S's own diagonal, or the
     * covariance that all parts have in common. */
    double prior;
    bool pooled;
    const double *floor; /* [dim], at least 1e-3 each; NULL: 1e-3 */
    size_t steps;        /* of EM, at most */
    bool quick;          /* of the choice: fewer sizes and starts */
    hl_tmixture_start start;
    uint64_t seed;
} hl_tmixture_plan;

/* Rows to fit on and rows to judge by, dim columns each. */
typedef struct hl_tmixture_fold {
    size_t rows, held_rows;
    const double *x, *held;
} hl_tmixture_fold;

hl_status hl_tmixture_create(hl_context *ctx, size_t dim, size_t given, size_t parts, double nu, hl_tmixture **mixture);
void hl_tmixture_free(hl_tmixture *mixture); /* takes NULL */
/* To be called after weights, means or factors have changed. HL_ERR_INVALID if they make no density. */
hl_status hl_tmixture_prepare(hl_tmixture *mixture);
/* Log-density of rows of dim columns, of those that are not given. NaN where a row is not finite. */
hl_status hl_tmixture_logp(const hl_tmixture *mixture, size_t rows, const double *x, double *logp);
/* The gradient of this log-density with respect to all dim columns, rows x dim. NaN where a row is not finite. */
hl_status hl_tmixture_gradient(const hl_tmixture *mixture, size_t rows, const double *x, double *gradient);
/* Fill the columns that are not given of row `index` of the samples with this seed. x has dim values. */
void hl_tmixture_sample(const hl_tmixture *mixture, uint64_t seed, uint64_t index, double *x);

/* Fit by EM from k-means. With held rows, the step that was best for them is kept, *steps says which and *score is their mean
 * log p; else the last, and *score is that of the rows. Either may be NULL. HL_STOPPED between two steps if the context's stop says so. */
hl_status hl_tmixture_fit(hl_context *ctx, size_t dim, size_t given, const hl_tmixture_fold *data,
                          const hl_tmixture_plan *plan, hl_tmixture **mixture, size_t *steps, double *score);
/* More steps of EM from the mixture as it is, on other rows. A step that fails leaves the mixture as it was before it. */
hl_status hl_tmixture_refine(hl_tmixture *mixture, size_t rows, const double *x, const hl_tmixture_plan *plan,
                             size_t steps);
/* Choose parts, nu and prior by the held rows of all folds; `plan` has the seed and the floor and gets the rest. `most` is the largest
 * number of parts to be tried. `score`, unless NULL, becomes the mean log p of the held rows. */
hl_status hl_tmixture_choose(hl_context *ctx, size_t dim, size_t given, size_t folds, const hl_tmixture_fold *fold,
                             size_t most, hl_tmixture_plan *plan, double *score);

#endif
