/* hollow/judge.h - compare a learned equation with observations, and decide how far it can be trusted.
 *
 *     hl_judge_create(ctx, 2, &data, NULL, &judge);          before training: are the data sufficient?
 *     hl_judge_model(judge, sde);                            after training: does the model agree with the data?
 *     switch (hl_judge_verdict(judge).answer) ...
 *
 * A small residual of the Fokker-Planck equation does not prove a good model: it is also small if density and drift are constant in time.
 * These tests therefore compare how the density, and trajectories simulated from the first observations, change with time, with how the data
 * change. */
#ifndef HOLLOW_JUDGE_H
#define HOLLOW_JUDGE_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- distances of samples ---- */

/* Unbiased estimate of the energy distance 2 E|X - Y| - E|X - X'| - E|Y - Y'| of two samples (rows x dim, at least two rows each). It may be
 * negative; its mean is 0 if and only if both distributions are equal (Szekely and Rizzo, 2004). */
HL_API double hl_energy_distance(size_t dim, size_t a_rows, const double *a, size_t b_rows, const double *b);
/* Wasserstein distance of two samples of numbers: the integral of |F - G|. Sorts both arrays. */
HL_API double hl_wasserstein_distance(size_t a_rows, double *a, size_t b_rows, double *b);

/* ---- comparison ---- */

/* Zero in any field means the default. */
typedef struct hl_judge_options {
    size_t groups; /* largest number of time intervals; default 20 */
    size_t rows;   /* largest number of rows in each, chosen at random; default 400 */
    size_t steps;  /* steps of a simulation over the whole time; default 400, fewer above 100 dimensions */
    uint64_t seed;
} hl_judge_options;

/* A time interval. Energy distances are between columns with standard deviation 1. Fields that need a model are NaN without one. */
typedef struct hl_judge_group {
    double t_first, t_last;
    size_t rows;      /* rows compared */
    double moved;     /* distance from the observations of all times */
    double travelled; /* distance from the observations of the first interval */
    double noise;     /* distance between two halves of the observations */
    double density;   /* distance from draws from the model's density at the same times */
    double
        simulated; /* distance from simulations that start at observations of the first interval; infinite if they fail */
    double residual; /* mean |R| */
    double change;   /* mean |d log p/dt|, the scale of R */
    /* Squares of R and of d log p/dt at draws from p, averaged over neighbours: sums of R_r k_rs R_s over pairs. May be negative. */
    double averaged[2];
    const double *density_columns, *simulated_columns; /* dim Wasserstein distances, in the user's units; borrowed */
} hl_judge_group;

/* Tests of the steps along given trajectories; they need at least 100 steps. z is the residual of a step, which is standard normal and
 * independent of everything else if the model is right. */
typedef enum hl_residual {
    HL_RESIDUAL_DRIFT = 0,       /* error of f, as shown by the dependence of z on x, relative to f */
    HL_RESIDUAL_DIFFUSION,       /* error of g, as shown by the dependence of z^2 on x, relative to g */
    HL_RESIDUAL_DRIFT_TREND,     /* the same for the dependence on t */
    HL_RESIDUAL_DIFFUSION_TREND, /* the same for the dependence on t */
    HL_RESIDUAL_CORRELATION,     /* largest |correlation| of two columns */
    HL_RESIDUAL_AUTOCORRELATION, /* correlation of consecutive steps */
    HL_RESIDUAL_KURTOSIS,        /* excess kurtosis: rare large steps, such as jumps */
    HL_RESIDUAL_TESTS
} hl_residual;
/* "drift", "diffusion", ...; NULL if there is no such test. */
HL_API const char *hl_residual_name(hl_residual test);

typedef struct hl_residual_test {
    double effect; /* estimated effect, corrected for noise */
    double sigma;  /* deviation from the null hypothesis in standard errors */
    int failed;    /* nonzero: the effect is large and significant */
} hl_residual_test;

/* Tests of the means of functions of x at each time. They need no trajectories, but at least 8 times with 40 rows, and at most 10 columns. */
typedef enum hl_weak_test {
    HL_WEAK_DRIFT = 0, /* error of f, as shown by the change of means, relative to f */
    HL_WEAK_DIFFUSION, /* error of g, relative to g */
    HL_WEAK_TREND,     /* a change of f or g with time that the model does not have */
    HL_WEAK_CORRELATION,
    HL_WEAK_TESTS
} hl_weak_test;
/* "means: drift", ...; NULL if there is no such test. */
HL_API const char *hl_weak_test_name(hl_weak_test test);

typedef enum hl_answer {
    HL_CONSISTENT = 0, /* no test failed, and drift and diffusion are identified */
    HL_CONTRADICTED,   /* a test failed, see reasons */
    HL_NOT_DETERMINED  /* no test failed, but other drifts and diffusions would fit as well */
} hl_answer;
/* "consistent", "contradicted" or "not determined"; NULL for other values. */
HL_API const char *hl_answer_name(hl_answer answer);

/* Reasons of a verdict; bits of hl_verdict.reasons. */
typedef enum hl_reason {
    /* Contradicted: the model's density does not move as the observations do. */
    HL_REASON_DENSITY = 1,
    /* Contradicted: simulations do not move as the observations do. */
    HL_REASON_SIMULATIONS = 2,
    /* Contradicted: drift and diffusion, learned from the density, leave more than a tenth of its change unexplained. */
    HL_REASON_UNEXPLAINED = 4,
    /* Contradicted: the drift leaves more than half of the mean speed along the trajectories unexplained. */
    HL_REASON_SPEED = 8,
    /* Contradicted: tests of residuals failed. */
    HL_REASON_RESIDUALS = 16,
    /* Not determined: fewer than 10 trajectories do not determine the density at a time and its movement. Does not apply to models learned
     * from steps, nor to regressions if steps were tested that determine the drift. */
    HL_REASON_FEW_TRAJECTORIES = 32,
    /* Not determined: the observations have the same distribution at all times, so densities do not separate drift from diffusion. The same
     * exceptions apply. */
    HL_REASON_STATIONARY_DATA = 64,
    /* Not determined: drift and diffusion both depend on t. For every diffusion there is a drift with the same densities. */
    HL_REASON_TIME_DEPENDENT = 128,
    /* Not determined: learned from fewer than 100 steps; or networks, and there are neither steps nor rows enough for a test or a regression. */
    HL_REASON_FEW_STEPS = 256,
    /* Not determined: the half-width of the 90 % bands of drift or diffusion exceeds a quarter of their size near the data. The bands are those of
     * a regression or, for pseudo-likelihood, those of the drift determined by the steps. */
    HL_REASON_WIDE_BAND = 512,
    /* Not determined: drift or diffusion differ by more than a quarter from those of hl_sde_regress, so one of the two estimates is wrong. */
    HL_REASON_REGRESSION = 1024,
    /* Contradicted: tests of means failed. */
    HL_REASON_MEANS = 2048
} hl_reason;

typedef struct hl_verdict {
    hl_answer answer; /* without a model: consistent, or not determined by the data */
    uint32_t reasons; /* bits of hl_reason, including reasons that did not decide the answer */
    size_t trajectories;
    double movement; /* of the observations: mean of `moved` over twice the mean distance of two observations; 0 to 1 */
    double noise;    /* the value of `movement` expected by chance */
    /* Fraction of the movement that the density misses: 0 none, 1 all. NaN without a model, or if the data hardly move. */
    double density;
    /* The same for simulations, relative to the distance from the first observations: 1 if they do not move. */
    double simulated;
    double residual; /* mean |R| */
    /* Fraction of the density's change that drift and diffusion do not explain: |R| relative to |d log p/dt|, averaged over neighbours first
     * in up to 5 dimensions, so that small-scale fluctuations of the density have little weight. NaN if fewer than 1,000 rows are compared. */
    double unexplained;
    /* Fraction of the mean speed along given trajectories that the drift does not explain. NaN if unknown: few or long steps, more than five
     * dimensions, no model. */
    double speed;
    size_t steps;        /* steps tested; 0: none */
    int steps_simulated; /* nonzero: steps are too long for an Euler step and were compared with simulations */
    /* Half-width of the 90 % bands of a regression (hollow/sde_bands.h), relative to drift or diffusion. Without bands: that of the drift as
     * determined by steps. NaN without either. */
    double band;
    /* Mean differences of f and g from those of hl_sde_regress on the same data, relative to their size. NaN without a regression. */
    double regression[2];
    hl_residual_test test[HL_RESIDUAL_TESTS];
    size_t means; /* conditions on means that were tested; 0: none */
    /* Half-width of the 90 % bands, as determined by means, of polynomial corrections of drift and diffusion, relative to their size. NaN without such
     * tests. */
    double means_band[2];
    hl_residual_test means_test[HL_WEAK_TESTS];
} hl_verdict;

typedef struct hl_judge hl_judge; /* opaque */
/* Group the observations by time and measure how they change. Copies what it needs of the data. */
HL_API hl_status hl_judge_create(hl_context *context, size_t dim, const hl_sde_data *data,
                                 const hl_judge_options *options, hl_judge **judge);
HL_API void hl_judge_free(hl_judge *judge); /* takes NULL */
/* Compare with a model of the same columns. The model is borrowed until the judge is freed or gets another. */
HL_API hl_status hl_judge_model(hl_judge *judge, hl_sde *sde);
HL_API size_t hl_judge_groups(const hl_judge *judge);
HL_API hl_judge_group hl_judge_get(const hl_judge *judge, size_t group);
/* The samples compared in a group, in the user's units: its observations, draws from the density at the same times, or simulations. x receives as
 * many rows as the group has. */
typedef enum hl_judge_source { HL_JUDGE_DATA = 0, HL_JUDGE_DENSITY, HL_JUDGE_SIMULATED } hl_judge_source;
HL_API hl_status hl_judge_rows(hl_judge *judge, size_t group, hl_judge_source source, double *x);
HL_API hl_verdict hl_judge_verdict(const hl_judge *judge);

#ifdef __cplusplus
}
#endif

#endif
