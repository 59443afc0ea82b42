/* hollow/density_fit.h - from the rows of a table to a density model, in one call.
 *
 *     hl_density_data data = { .rows = rows, .dim = dim, .x = x };
 *     hl_density_fit(ctx, &data, NULL, NULL, &model, NULL);
 *     hl_density_logp(model, rows, x, NULL, logp);
 *
 * Everything that is not set is chosen from the data: rows for validation, decorrelation, the order of columns, the sizes of
 * networks, iterations, noise and weight decay. Rows, reports and results are in the units of the data. The same data, settings and
 * seed give the same bits for any number of threads. */
#ifndef HOLLOW_DENSITY_FIT_H
#define HOLLOW_DENSITY_FIT_H

#include "hollow/density.h"
#include "hollow/job.h"
#include "hollow/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The table of this job's options; ends with a NULL name. */
HL_API const hl_option *hl_density_fit_options(void);

/* ---- data ---- */

/* Rows, in the units of the data, which must be finite numbers. Copied: borrowed until the first report. */
typedef struct hl_density_rows {
    size_t rows;
    const double *x;       /* rows x dim */
    const double *context; /* rows x context, or NULL without context */
    const double *weights; /* rows, not negative, or NULL: all equal */
} hl_density_rows;

/* Read `count` rows by their numbers, from 0 on: to x count x dim values, to context count x context, to weights count. What is NULL is not
 * wanted. The same row must be the same numbers whenever it is read. Return HL_OK; any error ends the call and is its status. */
typedef hl_status hl_read_rows_fn(size_t count, const size_t *row, double *x, double *context, double *weights,
                                  void *user);

/* Rows that stay where they are and are read when they are needed, so that memory does not depend on their number. */
typedef struct hl_row_source {
    size_t rows;
    hl_read_rows_fn *read;
    void *user;   /* passed to `read` */
    int weighted; /* nonzero: rows have weights, for which an index of one number a row is kept */
} hl_row_source;

/* A table of more rows than this, in memory or not, is streamed. What looks at all rows at once, as checks, moments, mixtures, trials and
 * validations, sees a random sample of this many rows; batches of the flow's training are read from all others. It is 100,000 rows, less
 * if that is more than 2^24 numbers, but not less than 5,000. In a streamed table with atoms every pattern of them is such a table of its own, for which
 * an index of one number a row is kept. */
HL_API size_t hl_density_sample_rows(size_t columns);

typedef struct hl_density_data {
    size_t dim, context;      /* columns to model; columns that their density depends on, or 0 */
    const char *const *names; /* dim, then those of the context; NULL: x1, x2, ... */
    hl_density_rows train;    /* at least 10 rows */
    hl_density_rows valid;    /* 0 rows: part of `train` is set aside (option "validation-share") */
    const hl_row_source
        *source; /* NULL, or the training rows in place of `train`; borrowed until the end of the call */
} hl_density_data;

/* ---- findings ---- */

typedef enum hl_finding_kind {
    /* The first two end the call with HL_ERR_INVALID. All values of the column equal `value`. */
    HL_FINDING_CONSTANT,
    /* The column's deviation, `value`, is too small or too large to compute with; low..high is the column's range. */
    HL_FINDING_SCALE,
    /* The others are warnings. All values are whole numbers, to which uniform noise is added, unless "keep-steps" is on. */
    HL_FINDING_INTEGER,
    /* The share `value` of the rows has a value that another row has, too, and "dequantize" is off. */
    HL_FINDING_TIED,
    /* `value`, in `row`, is the farthest of `count` values far from the others, half of which are in low..high. */
    HL_FINDING_FAR,
    /* The column is a linear function of `count` other columns, the first of which are `others`. */
    HL_FINDING_DEPENDENT,
    /* `count` rows, more than one in 20, have the same `value` in a column whose other values repeat less, and it is no atom. */
    HL_FINDING_REPEATED,
    /* `count` validation rows, the share `value` of all, more than one in 100, equal a training row. `column` is behind the last. */
    HL_FINDING_COPIES,
    /* `count` training rows, the share `value` of all, are copies of others, by their contents. Equal rows are used as one of as many times the
     * weight, and are on one side of every split. `column` is behind the last. */
    HL_FINDING_DUPLICATES,
    /* No value is beyond `value`, 0 or 1, and many are near it: a bound, low..high being the one that the option "bounds" could declare. */
    HL_FINDING_EDGE,
    /* `count` rows, more than one in 20, have the same `value`, which is modelled as an atom: see hl_density_patterns. */
    HL_FINDING_ATOM
} hl_finding_kind;

enum { HL_FINDING_OTHERS = 3 };

/* What was found in the data. Columns count those of x from 0, then those of the context. */
typedef struct hl_finding {
    hl_finding_kind kind;
    size_t column, row, count;
    double value, low, high;
    size_t others[HL_FINDING_OTHERS];
    int noise; /* of HL_FINDING_INTEGER, nonzero: noise is added */
} hl_finding;
/* "constant", "scale", ...; NULL if there is no such kind. */
HL_API const char *hl_finding_name(hl_finding_kind kind);
/* A finding as a sentence without a full stop, cut to fit; `names` are those of all columns. It begins with the column, not with the row.
 * Options are named as "option dequantize". Returns buffer. */
HL_API const char *hl_finding_text(const hl_finding *finding, const char *const *names, char *buffer, size_t size);

/* ---- reports ---- */

/* What the callback of hl_job gets. While mixtures are fitted and flows are tried, reports of HL_FIT_MIXING have the seconds alone, and a callback that stops
 * there ends the call without a model. The report of HL_FIT_START comes before training, when the data are checked. */
typedef struct hl_density_progress {
    hl_fit_phase phase;
    size_t iteration, iterations; /* done; in all */
    double loss;       /* of this batch: mean -log p in the units of the data; or that of the matching phases */
    double validation; /* mean -log p of the validation rows, of the last validation; NaN before the first */
    double best;       /* the best of these; NaN before the first */
    size_t best_iteration;
    int validated;           /* nonzero: `validation` is new */
    double validation_fixed; /* the same by the steps of training; NaN if not validated */
    int steps_doubled;       /* nonzero: the two differed too much, so training takes more steps from now on */
    double gradient_norm;
    double evaluations, backward; /* per row, forward and for the gradient, in this iteration */
    size_t ode_steps;             /* of training; 0 if adaptive */
    double seconds, seconds_left; /* since the start; expected until the end of all phases, NaN while that is unknown */
    double rows_per_second;       /* of iterations of this phase */
    const struct hl_density_outcome *so_far; /* findings and sizes */
} hl_density_progress;

/* ---- outcome ---- */

typedef enum hl_density_end {
    HL_DENSITY_END_DONE,     /* all iterations */
    HL_DENSITY_END_PATIENCE, /* as many validations in a row as the option "patience" says were no better */
    HL_DENSITY_END_TIME,     /* the option "minutes" */
    HL_DENSITY_END_STOPPED,  /* the callback, or the context's */
    HL_DENSITY_END_ERROR,    /* an iteration failed; the context's message says why */
    HL_DENSITY_END_BEHIND    /* the flow was so far behind the mixtures that it would add nothing */
} hl_density_end;

typedef enum hl_density_verdict {
    HL_DENSITY_GOOD,   /* better than normal columns */
    HL_DENSITY_NORMAL, /* nothing was better than a normal distribution, and the model is one; more needs more rows */
    HL_DENSITY_NORMAL_BETTER, /* a normal distribution is better on the validation rows, but the model is not one */
    HL_DENSITY_FAILED,        /* even the best iteration is much worse than normal columns */
    HL_DENSITY_DIVERGED,      /* the loss at the end is much worse than normal columns; the model is the best before */
    HL_DENSITY_UNVALIDATED    /* it ended before the first validation; the model is the last one */
} hl_density_verdict;

typedef struct hl_density_outcome {
    hl_density_verdict verdict;
    hl_density_end end;
    size_t iteration, iterations, best_iteration; /* done; asked for; of the model */
    size_t failed_iteration;                      /* of HL_DENSITY_END_ERROR; else 0 */
    double
        best; /* mean -log p of the validation rows, in nats, in the units of the data; NaN if there was no validation */
    double normal;  /* the same of normal columns, with their correlations if decorrelated */
    double recent;  /* likelihood's loss over the last iterations; NaN if that phase was not reached */
    double seconds; /* of this call */
    size_t train_rows, valid_rows;
    size_t parameters; /* of the model; before the end, of the flow that is trained, 0 without one */
    size_t patience;
    /* Of a model with mixtures: mean -log p of the validation rows of the mixtures together and of the flow alone (NaN without), of which
     * `best` is the weighted sum; and what the flow gained over the mixtures, in nats a row, with its standard error, on `gain_rows` rows that
     * chose nothing. NaN if there are none. The members themselves: hl_density_get_member. */
    double mixture, flow, gain, gain_error;
    double fall; /* by how much the last of all iterations was better than the best before; 0 if it was not */
    size_t gain_rows, parts; /* parts: of the mixture that weighs most */
    int decorrelated;        /* nonzero: linear correlations were taken out */
    size_t findings;
    const hl_finding *finding; /* in the order in which they were found */
    const char *settings;      /* all that decides the bits of the result, as one line */
} hl_density_outcome;
/* "done", "patience", ...; "good", "normal", ...; NULL if there is none such. */
HL_API const char *hl_density_end_name(hl_density_end end);
HL_API const char *hl_density_verdict_name(hl_density_verdict verdict);
HL_API void hl_density_outcome_free(hl_density_outcome *outcome); /* takes NULL */

/* Train. `settings` are of hl_density_fit_options; they, `job` and `outcome` may be NULL. Free *model and *outcome in any case.
 *
 * HL_OK: *model is the best model; the outcome's verdict says how good it is.
 * HL_STOPPED: the same, of a job that was stopped before its end; its checkpoint, if it has one, is written. Stopped while mixtures were
 * fitted: *model is NULL and nothing is written.
 * HL_ERR_INVALID and others before training: *model is NULL; the outcome has what was found in the data.
 * An error of training, as a loss that is not finite: *model is the best model before it, if there was a validation, else NULL.
 *
 * Whoever gave a checkpoint should remove it when the model is saved. */
HL_API hl_status hl_density_fit(hl_context *context, const hl_density_data *data, const hl_settings *settings,
                                const hl_job *job, hl_density **model, hl_density_outcome **outcome);

#ifdef __cplusplus
}
#endif

#endif
