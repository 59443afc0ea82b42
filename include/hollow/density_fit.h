/* hollow/density_fit.h - fit a density model to the rows of a table in one call.
 *
 *     hl_density_data data = { .dim = dim, .train = { .rows = rows, .x = x } };
 *     hl_density_fit(ctx, &data, NULL, NULL, &model, NULL);
 *     hl_density_logp(model, rows, x, NULL, logp);
 *
 * Settings that are not given are chosen from the data: validation rows, decorrelation, the order of columns, network sizes,
 * iterations, noise and weight decay. Rows, reports and results are in the units of the data. The same data, settings and seed give
 * bitwise the same model for any number of threads. */
#ifndef HOLLOW_DENSITY_FIT_H
#define HOLLOW_DENSITY_FIT_H

#include "hollow/density.h"
#include "hollow/job.h"
#include "hollow/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The options of hl_density_fit; the table ends with a NULL name. */
HL_API const hl_option *hl_density_fit_options(void);

/* ---- data ---- */

/* Rows in the units of the data. All values must be finite. Borrowed until the first report; the rows are copied. */
typedef struct hl_density_rows {
    size_t rows;
    const double *x;       /* rows x dim */
    const double *context; /* rows x context, or NULL without context */
    const double *weights; /* rows, >= 0; NULL: equal weights */
} hl_density_rows;

/* Read `count` rows by their numbers (from 0): count x dim values to x, count x context to context, count to weights. Arrays that are NULL
 * are not needed. A row must have the same values every time. Return HL_OK; an error ends the fit, which returns it. */
typedef hl_status hl_read_rows_fn(size_t count, const size_t *row, double *x, double *context, double *weights,
                                  void *user);

/* Rows that are read when they are needed, so that memory does not grow with their number. */
typedef struct hl_row_source {
    size_t rows;
    hl_read_rows_fn *read;
    void *user; /* passed to `read` */
    /* Nonzero: rows have weights. An index of one number per row is kept for them. */
    int weighted;
} hl_row_source;

/* Tables with more rows than this are streamed, whether they are in memory or not. Checks, moments, mixtures, trials and validations then
 * use a random sample of this many rows; the training of the flow reads batches from all other rows. The result is 100,000 rows, or fewer
 * if these have more than 2^24 numbers, but at least 5,000. If a streamed table has atoms, the rows of each pattern are streamed
 * separately, with an index of one number per row. */
HL_API size_t hl_density_sample_rows(size_t columns);

typedef struct hl_density_data {
    /* Columns to model, and columns that the density is conditional on (or 0). */
    size_t dim, context;
    /* Names of the dim columns, then those of the context. NULL: x1, x2, ... */
    const char *const *names;
    /* Training rows, at least 10. */
    hl_density_rows train;
    /* Validation rows. 0 rows: a part of `train` is used (option "validation-share"). */
    hl_density_rows valid;
    /* Training rows that are read when needed, in place of `train`; or NULL. Borrowed during the call. */
    const hl_row_source *source;
} hl_density_data;

/* ---- findings ---- */

typedef enum hl_finding_kind {
    /* The first two kinds end the call with HL_ERR_INVALID.
     * All values of the column equal `value`. */
    HL_FINDING_CONSTANT,
    /* The standard deviation of the column, `value`, is too small or too large for the arithmetic. Its range is low..high. */
    HL_FINDING_SCALE,
    /* The other kinds are warnings.
     * All values are integers. Uniform noise is added to them (dequantisation) unless the option "keep-steps" is on. */
    HL_FINDING_INTEGER,
    /* The fraction `value` of the rows share their value with another row, and the option "dequantize" is off. If `noise` is not 0, the column
     * has only `count` distinct values, which lie on a grid, and is treated as integers are. */
    HL_FINDING_TIED,
    /* `count` values are far from the others, half of which are in low..high. The farthest is `value`, in `row`. */
    HL_FINDING_FAR,
    /* The column is a linear function of `count` other columns; `others` holds the first of these. */
    HL_FINDING_DEPENDENT,
    /* `count` rows, more than 5 %, have the same `value` in a column whose other values repeat less; it is not modelled as an atom. */
    HL_FINDING_REPEATED,
    /* `count` validation rows, the fraction `value` (more than 1 %), equal a training row. `column` is dim + context. */
    HL_FINDING_COPIES,
    /* `count` training rows, the fraction `value`, are duplicates of others. Equal rows are used as one row with the sum of their weights, and
     * are never divided between training and validation. `column` is dim + context. */
    HL_FINDING_DUPLICATES,
    /* No value is beyond `value` (0 or 1), and many are close to it. The column seems bounded; low..high is a range for the option "bounds". */
    HL_FINDING_EDGE,
    /* `count` rows have the same `value`, which is modelled as an atom (see hl_density_patterns). */
    HL_FINDING_ATOM
} hl_finding_kind;

enum { HL_FINDING_OTHERS = 3 };

/* A property of the data that the user should know. Columns of x count from 0; those of the context follow. */
typedef struct hl_finding {
    hl_finding_kind kind;
    size_t column, row, count;
    double value, low, high;
    size_t others[HL_FINDING_OTHERS];
    /* HL_FINDING_INTEGER, HL_FINDING_TIED: > 0 if noise is added, < 0 if only the option "keep-steps" prevents it */
    int noise;
} hl_finding;
/* "constant", "scale", ...; NULL if there is no such kind. */
HL_API const char *hl_finding_name(hl_finding_kind kind);
/* Write a finding as a sentence without a full stop, truncated to fit, and return buffer. `names` are the names of all columns. The sentence
 * begins with the column, not with the row. Options are written as "option dequantize". */
HL_API const char *hl_finding_text(const hl_finding *finding, const char *const *names, char *buffer, size_t size);

/* ---- reports ---- */

/* The report passed to the callback of hl_job. Reports with phase HL_FIT_MIXING, sent while mixtures are fitted and flows are tried, contain
 * `seconds` only; a callback that stops the job there ends the call without a model. The report with HL_FIT_START comes after the data
 * are checked and before training. */
typedef struct hl_density_progress {
    hl_fit_phase phase;
    size_t iteration, iterations; /* iterations done; total, with the extensions so far */
    /* Loss of this batch: mean -log p in the units of the data, or the loss of a matching phase. */
    double loss;
    /* Mean -log p of the validation rows at the last validation, and the best so far. NaN before the first validation. */
    double validation;
    double best;
    size_t best_iteration;
    int validated;           /* nonzero: `validation` is new */
    double validation_fixed; /* validation with the ODE steps of training; NaN if not validated */
    int steps_doubled; /* nonzero: the two validations differed too much, so the ODE steps of training were doubled */
    double gradient_norm;
    double evaluations, backward;            /* evaluations per row in this iteration: forward, and for the gradient */
    size_t ode_steps;                        /* ODE steps of training; 0 if adaptive */
    double seconds;                          /* since the start */
    double seconds_left;                     /* estimate for all remaining phases; NaN if unknown */
    double rows_per_second;                  /* in iterations of this phase */
    const struct hl_density_outcome *so_far; /* findings and sizes so far */
} hl_density_progress;

/* ---- outcome ---- */

typedef enum hl_density_end {
    HL_DENSITY_END_DONE,     /* all iterations were done */
    HL_DENSITY_END_PATIENCE, /* no improvement in as many validations as the option "patience" allows */
    HL_DENSITY_END_TIME,     /* the option "minutes" */
    HL_DENSITY_END_STOPPED,  /* by the callback, or by the context's stop function */
    HL_DENSITY_END_ERROR,    /* an iteration failed; the context's message says why */
    HL_DENSITY_END_BEHIND    /* the flow was so much worse than the mixtures that it would not contribute */
} hl_density_end;

typedef enum hl_density_verdict {
    HL_DENSITY_GOOD,          /* better than a normal distribution */
    HL_DENSITY_NORMAL,        /* nothing was better than a normal distribution, and the model is one; use more rows */
    HL_DENSITY_NORMAL_BETTER, /* a normal distribution is better on the validation rows, but the model is not one */
    HL_DENSITY_FAILED,        /* even the best iteration is much worse than a normal distribution */
    HL_DENSITY_DIVERGED,      /* the final loss is much worse than a normal distribution; the model is an earlier one */
    HL_DENSITY_UNVALIDATED    /* training ended before the first validation; the model is the last one */
} hl_density_verdict;

typedef struct hl_density_outcome {
    hl_density_verdict verdict;
    hl_density_end end;
    size_t iteration, iterations; /* iterations done; scheduled, with the extensions */
    size_t best_iteration;        /* iteration of the model */
    size_t extensions;       /* how often the schedule was extended because validation was still improving at its end */
    size_t failed_iteration; /* HL_DENSITY_END_ERROR: the iteration that failed; else 0 */
    /* Mean -log p of the validation rows in nats, in the units of the data: of the model (NaN without validation), and of a normal
     * distribution, which has correlations if the columns were decorrelated. */
    double best;
    double normal;
    double recent;  /* mean likelihood loss of the last iterations; NaN if that phase was not reached */
    double seconds; /* duration of this call */
    size_t train_rows, valid_rows;
    size_t parameters; /* of the model; during training, of the flow (0 without one) */
    size_t patience;
    /* Models with mixtures: mean -log p of the validation rows under all mixtures together, and under the flow only (NaN without
     * flow); `best` is that of their weighted sum. `gain` is the gain of the flow over the mixtures in nats per row, with its standard error,
     * measured on `gain_rows` rows that were used for nothing else; NaN without such rows. See also hl_density_get_member. */
    double mixture, flow, gain, gain_error;
    double fall;      /* improvement of the last validation over the best before; 0 if there was none */
    size_t gain_rows; /* see `gain` */
    size_t parts;     /* components of the mixture with the largest weight */
    int decorrelated; /* nonzero: linear correlations were removed */
    size_t findings;
    const hl_finding *finding; /* in the order in which they were found */
    const char *settings;      /* all settings that determine the model, as one line */
} hl_density_outcome;
/* "done", "patience", ... and "good", "normal", ...; NULL for other values. */
HL_API const char *hl_density_end_name(hl_density_end end);
HL_API const char *hl_density_verdict_name(hl_density_verdict verdict);
HL_API void hl_density_outcome_free(hl_density_outcome *outcome); /* takes NULL */

/* Fit a model. `settings` (of hl_density_fit_options), `job` and `outcome` may be NULL. The caller frees *model and *outcome after every result.
 *
 * HL_OK: *model is the best model. The verdict of the outcome rates it.
 * HL_STOPPED: the job was stopped; *model is the best model so far, and the checkpoint, if any, is written. If it was stopped while
 * mixtures were fitted, *model is NULL and nothing is written.
 * HL_ERR_INVALID and other errors before training: *model is NULL; the outcome contains the findings.
 * Errors of training, such as a loss that is not finite: *model is the best model before the error, or NULL if there was no validation.
 *
 * The caller should remove the checkpoint file when the model is saved. */
HL_API hl_status hl_density_fit(hl_context *context, const hl_density_data *data, const hl_settings *settings,
                                const hl_job *job, hl_density **model, hl_density_outcome **outcome);

#ifdef __cplusplus
}
#endif

#endif
