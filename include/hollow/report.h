/* hollow/report.h - reports that compare a model with data, as numbers, as JSON and as an HTML page.
 *
 *     rows = hl_report_pick(total, 0, 0, index);                        choose rows of a large table
 *     hl_report_density(model, &(hl_report_rows){ .rows = rows, .x = x, .index = index, .total = total }, NULL, &report);
 *     puts(hl_report_verdict(report));
 *     hl_report_save(report, "report.html");
 *     hl_report_free(report);
 *
 * A report uses the given rows and samples drawn from the model; the numbers of both are bounded. The same rows, options and model give the
 * same numbers for any number of threads. */
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
    uint64_t seed;     /* of the samples */
    size_t draws;      /* number of samples from the model; default 2000 */
    const char *title; /* title of the page; default "Report"; copied */
    const char *data;  /* name of the data on the page, such as a file name; default "the data"; copied */
    const char *call;  /* command that produced the report, shown on the page; default none; copied */
} hl_report_options;

/* Rows of data, borrowed during the call. */
typedef struct hl_report_rows {
    size_t rows;           /* 0: a report without data */
    const double *x;       /* rows x dim */
    const double *context; /* rows x context, or NULL without context */
    const size_t *index;   /* number of each row in its table, from 0; NULL: 0, 1, ... */
    size_t total;          /* number of rows in the table; 0: `rows` */
} hl_report_rows;

/* Choose `rows` (0: 4000) of `total` rows: the rows are divided into that many equal intervals, and one row is drawn from each. The row
 * numbers, in increasing order, go to `index`, which has room for min(rows, total) entries. Returns how many there are. */
HL_API size_t hl_report_pick(size_t total, size_t rows, uint64_t seed, size_t *index);

/* ---- all reports ---- */

typedef enum hl_report_level {
    HL_REPORT_GOOD = 0, /* no test found a difference between data and model */
    HL_REPORT_MINOR,    /* differences are small, or no test can decide */
    HL_REPORT_WRONG     /* the verdict says what is wrong */
} hl_report_level;

HL_API void hl_report_free(hl_report *report);                 /* takes NULL */
HL_API const char *hl_report_verdict(const hl_report *report); /* a sentence; borrowed until the report is freed */
HL_API hl_report_level hl_report_get_level(const hl_report *report);
/* The whole page, or its head only, which has no script. The page is self-contained and at most 1 MB large. */
typedef enum hl_report_part { HL_REPORT_PAGE = 0, HL_REPORT_HEAD } hl_report_part;
/* Write the page to memory. *size receives the number of bytes, without a terminating NUL. If `capacity` is less than that, nothing is
 * written and `text` may be NULL. */
HL_API hl_status hl_report_html(const hl_report *report, hl_report_part part, char *text, size_t capacity,
                                size_t *size);
/* Write all numbers as one JSON object, in the same way. Values that are not finite are null. */
HL_API hl_status hl_report_json(const hl_report *report, char *text, size_t capacity, size_t *size);
/* Write the page to a file, atomically. */
HL_API hl_status hl_report_save(const hl_report *report, const char *path);

/* ---- density models ---- */

/* A mean over rows with its standard error; NaN if unknown. */
typedef struct hl_report_mean {
    double value, error;
} hl_report_mean;

enum { HL_REPORT_BINS = 40, HL_REPORT_GRID = 99, HL_REPORT_WORST = 20, HL_REPORT_CAUSES = 3, HL_REPORT_TOLERANCES = 5 };

/* One column of data and samples. Arrays of two are { data, samples }. Fractions are of all rows, or of all samples. */
typedef struct hl_report_column {
    const char *name;
    size_t column;      /* number in the model, from 0 */
    double distance, p; /* Kolmogorov-Smirnov statistic of the two samples, and its p-value for this column only */
    double wasserstein; /* Wasserstein distance in the column's units */
    double mean[2], deviation[2], least[2], largest[2];
    double outside;   /* fraction of samples outside of the data's range */
    double tied;      /* fraction of rows that share their value with another row */
    double low, high; /* range of the histogram; values outside are counted in the first and last bin */
    double bin[2][HL_REPORT_BINS];
    double level[HL_REPORT_GRID]; /* fraction of rows <= quantile (k + 1) / (HL_REPORT_GRID + 1) of the samples */
} hl_report_column;

/* An unlikely row. */
typedef struct hl_report_row {
    size_t row; /* number in the table, from 0 */
    double logp;
    /* The columns that make it unlikely, most important first; `causes` entries are filled. log p increases by `gain` if this column is set
     * to `expected`, its value given the other columns. `slope` is d log p / dx times the standard deviation of the column, for the 16
     * least likely rows, else 0. */
    size_t causes, column[HL_REPORT_CAUSES];
    double gain[HL_REPORT_CAUSES], expected[HL_REPORT_CAUSES], slope[HL_REPORT_CAUSES];
} hl_report_row;

/* Energy distance (see hl_energy_distance) of data and samples, in columns with standard deviation 1. */
typedef struct hl_report_distance {
    size_t rows;     /* rows of each sample */
    double distance; /* unbiased */
    double halves;   /* distance between two halves of the data */
    double share;    /* distance as a fraction of its largest possible value, 0 to 1 */
    double p;        /* p-value of a permutation test */
} hl_report_distance;

/* log p with another tolerance of the solver. */
typedef struct hl_report_tolerance {
    double rtol, logp;      /* the tolerance, and the mean log p */
    double change, largest; /* mean and largest difference from the finest tolerance */
    double evaluations;     /* evaluations per row */
} hl_report_tolerance;

typedef struct hl_density_report {
    size_t total, rows; /* rows of the table; rows evaluated */
    size_t failed;      /* rows without log p, excluded from everything else */
    size_t draws, failed_draws;
    size_t dim, context, parameters;
    hl_report_mean logp,
        draws_logp; /* of the data; of the samples, which is the expected value if the model is right */
    /* Gain in log p over independent normal columns, over a normal distribution with shrunk covariance, and over a mixture. The mixture is
     * the best mixture among the members of the model; the others, and the mixture if there is no such member, are fitted to the other
     * half of the rows. NaN where the comparison is meaningless: models with atoms, columns with few values, values far from all samples; the
     * verdict says why. */
    hl_report_mean over_independent, over_normal, over_mixture;
    int mixture_member; /* nonzero: the mixture is a member of the model */
    hl_report_distance distance;
    /* Ranks of log p of the data among log p of the samples: largest distance from uniform ranks, its p-value, and the width of a
     * simultaneous 95 % band. Fractions of rows less likely than 99 % of the samples, and less likely than all samples. */
    double rank_distance, rank_p, band, unlikely, unseen;
    double rank[HL_REPORT_GRID]; /* as hl_report_column.level, for log p */
    /* Memorisation: fraction of samples that are closer to a row than 99 % of the rows are to each other (0.01 if nothing was memorised), and
     * the p-value of a permutation test for too many close pairs of a row and a sample. NaN with fewer than 200 rows or samples. */
    double memorised, memorised_p;
    /* Base variable z of the flow, compared with the normal distribution, for base_rows rows (0: no flow). Kolmogorov-Smirnov statistic of the
     * worst column, with a p-value for all columns together. */
    size_t base_rows;
    double base_distance, base_p;
    size_t base_column;
    double base_radius[HL_REPORT_GRID]; /* as rank, for |z|^2 against the chi-squared distribution */
    size_t columns;
    const hl_report_column *column; /* worst first */
    const double *correlation[2];   /* columns x columns, in the order of the model */
    size_t worst;
    const hl_report_row *row; /* the least likely rows, least likely first */
    size_t tolerances;
    hl_report_tolerance tolerance[HL_REPORT_TOLERANCES];
    /* Hashes in the model file tell for `known` of the rows whether they are training rows; `trained` of them are. `train_rows` is the number
     * of training rows. 0 if the training is unknown. */
    size_t known, trained, train_rows;
    uint64_t hash; /* of the rows evaluated; independent of their order */
    size_t courses;
    const hl_training_point *course; /* see hl_density_course */
    size_t evaluation_rows;          /* rows whose evaluations were counted individually */
    const double *evaluations;       /* evaluations of each, in increasing order */
} hl_density_report;

/* Compare a model with data. Uses the solver of the model. */
HL_API hl_status hl_report_density(hl_density *model, const hl_report_rows *data, const hl_report_options *options,
                                   hl_report **report);
/* The numbers; NULL if the report is of another kind. Borrowed until the report is freed. */
HL_API const hl_density_report *hl_report_density_numbers(const hl_report *report);

/* ---- stochastic differential equations ---- */

enum { HL_REPORT_CELLS = 24, HL_REPORT_QUANTILES = 5 };

/* Steps along trajectories that start in an interval of values of a column. Arrays of two are { drift, diffusion }. */
typedef struct hl_report_cell {
    double x; /* mean value at the start of the steps */
    size_t steps;
    /* Mean of step / time and std of (step - f time) / sqrt(time), where f is the model's drift at the start, with standard errors. */
    double measured[2], error[2];
    double made[2];  /* the same for steps simulated by the model from the same points over the same times */
    double model[2]; /* mean f and root mean square g at the same points */
} hl_report_cell;

/* One column of an equation. */
typedef struct hl_report_equation {
    const char *name;
    size_t cells; /* 0: no trajectories */
    hl_report_cell cell[HL_REPORT_CELLS];
    /* Steps of the data compared with steps of the model from the same points over the same time: ratio of standard deviations, standard
     * error of its logarithm, and the fraction of the mean steps that the model does not explain, with its p-value. */
    double noise, noise_error, drift_left, drift_p;
} hl_report_equation;

/* An interval of time: distances as in hl_judge_group, and quantiles 0.05, 0.25, 0.5, 0.75, 0.95 of every column, [dim][quantile]. */
typedef struct hl_report_time {
    double t;
    size_t rows;
    double travelled, noise, density, simulated;
    const double *data_quantiles, *simulated_quantiles; /* the latter are NaN if simulations failed */
} hl_report_time;

typedef struct hl_sde_report {
    size_t rows, dim, trajectories;
    size_t steps; /* steps along trajectories that were compared */
    hl_verdict verdict;
    hl_report_mean logp; /* of the density at the observations */
    size_t columns;
    const hl_report_equation *column;
    size_t times;
    const hl_report_time *time;
    /* See hl_sde_course. */
    size_t courses[HL_SDE_COURSES];
    const hl_training_point *course[HL_SDE_COURSES];
} hl_sde_report;

/* Compare an equation with observations, which are borrowed during the call. */
HL_API hl_status hl_report_sde(hl_sde *sde, const hl_sde_data *data, const hl_report_options *options,
                               hl_report **report);
HL_API const hl_sde_report *hl_report_sde_numbers(const hl_report *report); /* as hl_report_density_numbers */

/* ---- autoencoders ---- */

typedef struct hl_vae_report {
    size_t total, rows, dim, latent; /* `rows` of `total` rows were used, chosen by hl_report_pick */
    const char *posterior;
    int gaussian; /* nonzero: real values; 0: bits */
    hl_vae_result result;
    /* ELBO minus log p of independent columns, Bernoulli or normal, fitted to the other half of the rows. */
    double over_independent;
    const double *variance; /* variance of the posterior means over rows, for each latent column, largest first */
    const size_t *unit;     /* numbers of these columns */
    /* Rows compared with as many samples, which include the noise of p(x | z). With fewer than 40 rows samples.rows is 0. */
    hl_report_distance samples;
    size_t courses;
    const hl_training_point *course; /* see hl_vae_course */
    /* As in hl_density_report. Model files have hashes of up to 10,000 training rows; if there were more, `known` is 0. */
    size_t known, trained;
} hl_vae_report;

/* Evaluate an autoencoder on at least two rows of data, which are borrowed during the call. */
HL_API hl_status hl_report_vae(hl_vae *vae, const hl_vae_rows *data, const hl_report_options *options,
                               hl_report **report);
HL_API const hl_vae_report *hl_report_vae_numbers(const hl_report *report); /* as hl_report_density_numbers */

#ifdef __cplusplus
}
#endif

#endif
