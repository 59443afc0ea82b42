/* hollow/judge.h - compare a learned equation with observations, time by time, and say how far it can be trusted.
 *
 *     hl_judge_create(ctx, 2, &data, NULL, &judge);          before training: do the data say enough?
 *     hl_judge_model(judge, sde);                            after it: does the model do as the data do?
 *     switch (hl_judge_verdict(judge).answer) ...
 *
 * A small residual of the Fokker-Planck equation is no success: a density and a drift that both stand still have none. What
 * counts is whether the density, and trajectories simulated from the first observations, move as the data do. */
#ifndef HOLLOW_JUDGE_H
#define HOLLOW_JUDGE_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- distances of samples ---- */

/* 2 E|X - Y| - E|X - X'| - E|Y - Y'| of two samples, rows x dim, of at least two rows each: without bias, so that it may be
 * below 0. 0 in the mean exactly if both have one distribution (Szekely and Rizzo, 2004). */
HL_API double hl_energy_distance(size_t dim, size_t a_rows, const double *a, size_t b_rows, const double *b);
/* The integral of |F - G| of two samples of numbers; sorts both. */
HL_API double hl_wasserstein_distance(size_t a_rows, double *a, size_t b_rows, double *b);

/* ---- comparison ---- */

/* Zero in any field means the default. */
typedef struct hl_judge_options {
    size_t groups; /* stretches of time, at most; default 20 */
    size_t rows;   /* of a group, at most; others are left out at random; default 400 */
    size_t steps;  /* of a simulation over the whole time; default 400, fewer above 100 dimensions */
    uint64_t seed;
} hl_judge_options;

/* A stretch of time. Energy distances are between columns of deviation 1; NaN without a model. */
typedef struct hl_judge_group {
    double t_first, t_last;
    size_t rows;      /* compared */
    double moved;     /* from the observations of all times */
    double travelled; /* from those of the first stretch */
    double noise;     /* between one half of the observations and the other */
    double density;   /* from draws from the model's density at the same times */
    double simulated; /* from simulations that start at observations of the first stretch; infinite if they fail */
    double residual;  /* mean |R| */
    double change;    /* mean |d log p/dt|, which R is to be compared with */
    double averaged
        [2]; /* squares of R and d log p/dt at draws from p, averaged over neighbours: sums of R_r k_rs R_s over pairs; may be < 0 */
    const double *density_columns, *simulated_columns; /* dim Wasserstein distances, in the user's units; borrowed */
} hl_judge_group;

/* Tests of the steps along given trajectories, of at least 100 of them. With z the residual of a step, standard normal and
 * independent of all else if the model is right: */
typedef enum hl_residual {
    HL_RESIDUAL_DRIFT = 0,   /* the error of f that z shows where it depends on x, relative to f */
    HL_RESIDUAL_DIFFUSION,   /* the error of g that z^2 shows, relative to g */
    HL_RESIDUAL_DRIFT_TREND, /* the same where they depend on t */
    HL_RESIDUAL_DIFFUSION_TREND,
    HL_RESIDUAL_CORRELATION,     /* the largest |correlation| of two columns */
    HL_RESIDUAL_AUTOCORRELATION, /* of neighbouring steps */
    HL_RESIDUAL_KURTOSIS,        /* excess: rare large steps, such as jumps */
    HL_RESIDUAL_TESTS
} hl_residual;
/* "drift", "diffusion", ...; NULL if there is no such test. */
HL_API const char *hl_residual_name(hl_residual test);

typedef struct hl_residual_test {
    double effect; /* its noise is subtracted */
    double sigma;  /* standard errors by which it differs from what chance makes */
    int failed;    /* nonzero: the effect is large, and not by chance */
} hl_residual_test;

/* Tests by the means of functions of x at each time, which need no trajectories: at least 8 times of 40 rows, at most 10 columns. */
typedef enum hl_weak_test {
    HL_WEAK_DRIFT = 0, /* the error of f that the change of means shows, relative to f */
    HL_WEAK_DIFFUSION, /* of g */
    HL_WEAK_TREND,     /* a change of f or g with time that the model misses */
    HL_WEAK_CORRELATION,
    HL_WEAK_TESTS
} hl_weak_test;
/* "means: drift", ...; NULL if there is no such test. */
HL_API const char *hl_weak_test_name(hl_weak_test test);

typedef enum hl_answer {
    HL_CONSISTENT = 0, /* no test failed, and drift and diffusion are identified */
    HL_CONTRADICTED,   /* a test failed: see reasons */
    HL_NOT_DETERMINED  /* no test failed, but other drifts and diffusions would do as well */
} hl_answer;
/* "consistent", "contradicted", "not determined"; NULL if it is none of these. */
HL_API const char *hl_answer_name(hl_answer answer);

/* Why; bits of hl_verdict.reasons. */
typedef enum hl_reason {
    /* Contradicted. The model's density does not move as the observations do. */
    HL_REASON_DENSITY = 1,
    /* Simulations do not move as the observations do. */
    HL_REASON_SIMULATIONS = 2,
    /* Drift and diffusion, learned from the density, leave more than a tenth of its change unexplained. */
    HL_REASON_UNEXPLAINED = 4,
    /* The drift leaves more than half of the mean speed along the trajectories. */
    HL_REASON_SPEED = 8,
    /* Tests of residuals failed. */
    HL_REASON_RESIDUALS = 16,
    /* Not determined. Fewer than 10 trajectories do not show the density of a time, and its movement; not where learned
     * from steps, or by a regression where steps were tested that determine the drift. */
    HL_REASON_FEW_TRAJECTORIES = 32,
    /* The observations look the same at all times: densities do not tell drift from diffusion; not where steps do, as
     * above. */
    HL_REASON_STATIONARY_DATA = 64,
    /* Drift and diffusion both depend on t: for every diffusion a drift gives the same densities. */
    HL_REASON_TIME_DEPENDENT = 128,
    /* Learned from steps, of which there are fewer than 100. */
    HL_REASON_FEW_STEPS = 256,
    /* Half of the 90 % bands of drift or diffusion exceeds a quarter of their size where there are data: of a regression with bands, or
     * of what the steps of pseudo-likelihood determine of the drift. */
    HL_REASON_WIDE_BAND = 512,
    /* Drift or diffusion differ by more than a quarter from those of hl_sde_regress: two estimates, and one is wrong. */
    HL_REASON_REGRESSION = 1024,
    /* Contradicted: tests of means failed. */
    HL_REASON_MEANS = 2048
} hl_reason;

typedef struct hl_verdict {
    hl_answer answer; /* without a model: consistent, or what the data do not determine */
    uint32_t reasons; /* of hl_reason; those that do not decide the answer are there, too */
    size_t trajectories;
    double movement; /* of the observations: mean of moved, over twice the mean distance of two observations; 0 to 1 */
    double noise;    /* what chance makes of it */
    /* The share of the movement that the density misses: 0 none, 1 all; NaN without a model, or if they hardly move. */
    double density;
    double simulated; /* the same of simulations, of the way from the first observations: 1 if they stay there */
    double residual;  /* mean |R| */
    /* The share of the density's change that drift and diffusion leave: of |R| in |d log p/dt|, up to 5 dimensions averaged
     * over neighbours first, where ripples of the density count for little; NaN if fewer than 1,000 rows are compared. */
    double unexplained;
    /* The share of the mean speed along given trajectories that the drift leaves; NaN where it cannot be told: few or long
     * steps, more than five dimensions, no model. */
    double speed;
    size_t steps;        /* that were tested; 0: none */
    int steps_simulated; /* nonzero: they are too long for Euler's, and were compared with simulations */
    /* Half of the 90 % bands of a regression (hollow/sde_bands.h), relative to drift or diffusion; of a model without bands, of the drift
     * that steps determine; NaN without either. */
    double band;
    /* Mean differences of f and of g from those of hl_sde_regress on the same data, relative to their size; NaN without one. */
    double regression[2];
    hl_residual_test test[HL_RESIDUAL_TESTS];
    size_t means; /* conditions on means that were tested; 0: none */
    /* Half of the 90 % bands of polynomials that drift and diffusion may miss, as means determine them, relative to their size; NaN
     * without such tests. */
    double means_band[2];
    hl_residual_test means_test[HL_WEAK_TESTS];
} hl_verdict;

typedef struct hl_judge hl_judge; /* opaque */
/* Sort the observations into groups and see how they move. The data are copied, as far as they are needed. */
HL_API hl_status hl_judge_create(hl_context *context, size_t dim, const hl_sde_data *data,
                                 const hl_judge_options *options, hl_judge **judge);
HL_API void hl_judge_free(hl_judge *judge); /* takes NULL */
/* Compare with a model of the same columns, which is borrowed until the judge is freed or given another. */
HL_API hl_status hl_judge_model(hl_judge *judge, hl_sde *sde);
HL_API size_t hl_judge_groups(const hl_judge *judge);
HL_API hl_judge_group hl_judge_get(const hl_judge *judge, size_t group);
/* What was compared in a group: its observations, draws from the density at their times, or simulations there, in the user's
 * units, to x: as many rows as the group has. */
typedef enum hl_judge_source { HL_JUDGE_DATA = 0, HL_JUDGE_DENSITY, HL_JUDGE_SIMULATED } hl_judge_source;
HL_API hl_status hl_judge_rows(hl_judge *judge, size_t group, hl_judge_source source, double *x);
HL_API hl_verdict hl_judge_verdict(const hl_judge *judge);

#ifdef __cplusplus
}
#endif

#endif
