/* hollow/report.h - reports: what a model says of data, as numbers, as JSON and as a page of HTML.
 *
 *     rows = hl_report_pick(total, 0, 0, index);                        which rows of a large table to look at
 *     hl_report_density(model, &(hl_report_rows){ .rows = rows, .x = x, .index = index, .total = total }, NULL, &report);
 *     puts(hl_report_verdict(report));
 *     hl_report_save(report, "report.html");
 *     hl_report_free(report);
 *
 * Everything is computed from the rows given and from draws of the model, both of bounded number. The same rows, options and
 * model give the same numbers for any number of threads. */
#ifndef HOLLOW_REPORT_H
#define HOLLOW_REPORT_H

#include "hollow/density.h"
#include "hollow/judge.h"
#include "hollow/vae.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_report hl_report; /* opaque */

/* Zero in any field means the default. */
typedef struct hl_report_options {
    uint64_t seed;     /* of the draws */
    size_t draws;      /* from the model; default 2000 */
    const char *title; /* of the page; default "Report"; copied */
    const char *data;  /* what the page calls the data, such as a file's name; default "the data"; copied */
    const char *call;  /* how the report was asked for, shown on the page; default nothing; copied */
} hl_report_options;

/* Rows of data, borrowed during the call. */
typedef struct hl_report_rows {
    size_t rows;           /* 0: a report of the model alone */
    const double *x;       /* rows x dim */
    const double *context; /* rows x context, or NULL without context */
    const size_t *index;   /* the number of each row in its table, from 0; NULL: 0, 1, ... */
    size_t total;          /* rows of the table that they were taken from; 0: rows */
} hl_report_rows;

/* Choose `rows` (0: 4000) of `total` rows, one at random from each of as many equal stretches: their numbers, rising, to `index`,
 * which has room for the smaller of the two numbers. Returns how many. */
HL_API size_t hl_report_pick(size_t total, size_t rows, uint64_t seed, size_t *index);

/* ---- what every report has ---- */

typedef enum hl_report_level {
    HL_REPORT_GOOD = 0, /* no test found a difference between data and model */
    HL_REPORT_MINOR,    /* differences that are small, or that no test can decide */
    HL_REPORT_WRONG     /* the verdict says what is wrong */
} hl_report_level;

HL_API void hl_report_free(hl_report *report);                 /* takes NULL */
HL_API const char *hl_report_verdict(const hl_report *report); /* a sentence; borrowed until the report is freed */
HL_API hl_report_level hl_report_get_level(const hl_report *report);
/* The page, or its head alone, which has no script. Without scripts, pictures and styles from elsewhere; at most 1 MB. */
typedef enum hl_report_part { HL_REPORT_PAGE = 0, HL_REPORT_HEAD } hl_report_part;
/* *size receives the number of bytes, without a NUL; they are written if `capacity` is at least that, otherwise nothing is, and `text` may
 * be NULL. */
HL_API hl_status hl_report_html(const hl_report *report, hl_report_part part, char *text, size_t capacity,
                                size_t *size);
/* All numbers as one JSON object, likewise. What is not finite is null. */
HL_API hl_status hl_report_json(const hl_report *report, char *text, size_t capacity, size_t *size);
/* Write the page to a file, atomically. */
HL_API hl_status hl_report_save(const hl_report *report, const char *path);

/* ---- density models ---- */

/* A mean over rows, and its standard error; NaN if it is not known. */
typedef struct hl_report_mean {
    double value, error;
} hl_report_mean;

enum { HL_REPORT_BINS = 40, HL_REPORT_GRID = 99, HL_REPORT_WORST = 20, HL_REPORT_CAUSES = 3, HL_REPORT_TOLERANCES = 5 };

/* A column of data and draws. Shares are of all rows, or draws; pairs are { data, draws }. */
typedef struct hl_report_column {
    const char *name;
    size_t column;      /* its number in the model, from 0 */
    double distance, p; /* Kolmogorov and Smirnov's, of the two samples, and its p-value, of this column by itself */
    double wasserstein; /* in the column's units */
    double mean[2], deviation[2], least[2], largest[2];
    double outside;   /* share of the draws outside of the data's range */
    double tied;      /* share of the rows whose value another row has, too */
    double low, high; /* of the bins; values outside are in the first and the last */
    double bin[2][HL_REPORT_BINS];
    double level[HL_REPORT_GRID]; /* share of the rows not above the draws' quantile (k + 1) / (HL_REPORT_GRID + 1) */
} hl_report_column;

/* A row to look at. */
typedef struct hl_report_row {
    size_t row; /* of the table, from 0 */
    double logp;
    /* The columns responsible, the first the most: log p rises by `gain` if this column alone gets the value `expected`, which follows
     * from the others. `slope` is d log p / dx times the column's deviation, of the 16 lowest rows, else 0. Of these, `causes` are filled. */
    size_t causes, column[HL_REPORT_CAUSES];
    double gain[HL_REPORT_CAUSES], expected[HL_REPORT_CAUSES], slope[HL_REPORT_CAUSES];
} hl_report_row;

/* Two samples compared by their energy distance (see hl_energy_distance), of columns of deviation 1. */
typedef struct hl_report_distance {
    size_t rows;     /* of each sample */
    double distance; /* of data and draws, without bias */
    double halves;   /* of the two halves of the data */
    double share;    /* the distance as a share of its largest possible value: 0 to 1 */
    double p;        /* by permutation */
} hl_report_distance;

/* log p with another tolerance of the solver. */
typedef struct hl_report_tolerance {
    double rtol, logp, change, largest; /* mean log p; mean and largest change from the finest */
    double evaluations;                 /* a row */
} hl_report_tolerance;

typedef struct hl_density_report {
    size_t total, rows, failed; /* of the table; evaluated; of these without log p, which are left out of all else */
    size_t draws, failed_draws;
    size_t dim, context, parameters;
    hl_report_mean logp, draws_logp; /* of data; of draws: what it would be if the model were right */
    /* What log p is above that of independent normal columns, of a normal distribution with a shrunk covariance, and of the best
     * mixture: a member of the model, or else, as the two before, fitted to the other half of the rows. NaN where they mean nothing: for models
     * with atoms, columns with few values, values far from all draws; the verdict says why. */
    hl_report_mean over_independent, over_normal, over_mixture;
    int mixture_member;          /* nonzero: the mixture is a member */
    hl_report_distance distance; /* of data and draws */
    /* Ranks of log p of the data among those of draws: their largest distance from uniform ranks, its p-value, and the width of a band that
     * holds for all ranks at once with probability 0.95; share of the rows below 99 % of the draws, and below all. */
    double rank_distance, rank_p, band, unlikely, unseen;
    double rank[HL_REPORT_GRID]; /* as hl_report_column.level, of log p */
    /* Draws that are nearer to a row than 99 % of the rows are to theirs: 0.01 if nothing was memorised. Of the shortest distances of rows and
     * draws to their nearest, too many join a row and a draw: the p-value by permutation. NaN with fewer than 200 rows or draws. */
    double memorised, memorised_p;
    /* z of the flow's base for some rows, compared with the normal distribution; no rows: no flow. */
    size_t base_rows;
    double base_distance, base_p; /* of the worst column; p for all columns together */
    size_t base_column;
    double base_radius[HL_REPORT_GRID]; /* as rank, of |z|^2 against the chi-squared distribution */
    size_t columns;
    const hl_report_column *column; /* the worst first */
    const double *correlation[2];   /* columns x columns, in the model's order */
    size_t worst;
    const hl_report_row *row; /* the least likely, the lowest first */
    size_t tolerances;
    hl_report_tolerance tolerance[HL_REPORT_TOLERANCES];
    /* Of the rows evaluated, `known` can be told from training rows by hashes that the model keeps, and `trained` of these are such. Of
     * models whose training is not known: 0. `train_rows`: of the training table. */
    size_t known, trained, train_rows;
    uint64_t hash; /* of the rows evaluated, in any order */
    size_t courses;
    const hl_training_point *course; /* as hl_density_course */
    size_t evaluation_rows;          /* whose evaluations were counted one by one */
    const double *evaluations;       /* of each, rising */
} hl_density_report;

/* Compare a model with data. Uses the model's solver. */
HL_API hl_status hl_report_density(hl_density *model, const hl_report_rows *data, const hl_report_options *options,
                                   hl_report **report);
/* The numbers; NULL if the report is of another kind. Borrowed until the report is freed. */
HL_API const hl_density_report *hl_report_density_numbers(const hl_report *report);

/* ---- stochastic equations ---- */

enum { HL_REPORT_CELLS = 24, HL_REPORT_QUANTILES = 5 };

/* Steps of a column that begin in a cell of its values, if there are trajectories. Pairs are { drift, diffusion }. */
typedef struct hl_report_cell {
    double x; /* mean of the values where the steps begin */
    size_t steps;
    double measured[2], error[2]; /* mean step / time, deviation of steps / sqrt(time), and their standard errors */
    double model[2];              /* mean f, root of the mean g^2, at the same points */
} hl_report_cell;

/* What the steps of a column say of it. */
typedef struct hl_report_equation {
    const char *name;
    size_t cells; /* 0: no trajectories */
    hl_report_cell cell[HL_REPORT_CELLS];
    /* Steps of the data over those that the model makes from the same points in the same time: their deviations, the logarithm's
     * standard error, and the share of the mean steps that the model leaves, with its p-value. */
    double noise, noise_error, drift_left, drift_p;
} hl_report_equation;

/* A stretch of time: distances as hl_judge_group has them, and quantiles 0.05, 0.25, 0.5, 0.75, 0.95 of every column: [dim][quantile]. */
typedef struct hl_report_time {
    double t;
    size_t rows;
    double travelled, noise, density, simulated;
    const double *data_quantiles, *simulated_quantiles; /* the second has NaN if simulations failed */
} hl_report_time;

typedef struct hl_sde_report {
    size_t rows, dim, trajectories, steps; /* steps: of the trajectories, that were compared */
    hl_verdict verdict;
    hl_report_mean logp; /* of the density at the observations */
    size_t columns;
    const hl_report_equation *column;
    size_t times;
    const hl_report_time *time;
    /* As hl_sde_course. */
    size_t courses[HL_SDE_COURSES];
    const hl_training_point *course[HL_SDE_COURSES];
} hl_sde_report;

/* Compare an equation with observations, which are borrowed during the call. */
HL_API hl_status hl_report_sde(hl_sde *sde, const hl_sde_data *data, const hl_report_options *options,
                               hl_report **report);
HL_API const hl_sde_report *hl_report_sde_numbers(const hl_report *report); /* as hl_report_density_numbers */

/* ---- autoencoders ---- */

typedef struct hl_vae_report {
    size_t total, rows, dim, latent; /* `rows` of all rows were looked at, as hl_report_pick chooses */
    const char *posterior;
    hl_vae_result result;
    double over_independent; /* the ELBO above log p of independent pixels, fitted to the other half of the rows */
    const double *variance;  /* of the posterior's means over the rows, of each latent column, the largest first */
    const size_t *unit;      /* their numbers */
    size_t courses;
    const hl_training_point *course; /* as hl_vae_course */
} hl_vae_report;

/* Look at an autoencoder with rows of data, two at least, which are borrowed during the call. */
HL_API hl_status hl_report_vae(hl_vae *vae, const hl_vae_rows *data, const hl_report_options *options,
                               hl_report **report);
HL_API const hl_vae_report *hl_report_vae_numbers(const hl_report *report); /* as hl_report_density_numbers */

#ifdef __cplusplus
}
#endif

#endif
