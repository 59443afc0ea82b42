/* density_fit.h - the stations of hl_density_fit: data, checks, choices, the loop, the outcome.
 *
 *   density_fit_stream.c       large tables: a sample of them, and rows read when a batch needs them
 *   density_fit_data.c         rows in the user's units become standardised rows of training and of validation
 *   density_fit_forms.c        bounds, grids and far values: forms of the columns
 *   density_fit_atoms.c        values that have a probability of their own: a fit for each pattern of them
 *   density_fit_patterns.c     which rows of a streamed table have which atoms
 *   density_fit_copies.c       rows that are copies of others
 *   density_fit_check.c        findings
 *   density_fit_members.c      mixtures beside the flow; weights
 *   density_fit_decorrelate.c  linear correlations are taken out
 *   density_fit_trial.c        brief runs choose what the flow sees, its size and rate
 *   density_fit_choose.c       sizes and training by columns and rows
 *   density_fit_pace.c         how long it will take
 *   density_fit.c              the call, the loop, the outcome */
#ifndef HL_DENSITY_FIT_H
#define HL_DENSITY_FIT_H

#include "base/base.h"
#include "base/options.h"
#include "hollow/density_fit.h"
#include "hollow/table.h"
#include "learn/column_form.h"

/* ---- data ---- */

enum { HL_FIT_LEAST_ROWS = 10 };

typedef struct hl_fit_rows {
    size_t rows;
    double *x, *c; /* rows x dim, rows x context */
    double *w;     /* weights of the rows, their mean being 1; or NULL */
    double unit;   /* > 0: the weights are numbers of copies times this; 0: others */
} hl_fit_rows;

/* A table that is streamed, and its sample. */
typedef struct hl_fit_stream {
    hl_context *ctx;
    size_t dim, context;
    hl_row_source source;
    const double *x, *c, *w; /* the rows of a table in memory, which the source reads; or NULL */
    uint64_t seed;
    bool streamed;  /* the table has more rows than the sample */
    size_t held;    /* rows of validation that were taken out of it */
    size_t *row;    /* numbers of the sample's rows: `held` of validation, then those of training, each in order */
    double *block;  /* the sample */
    double *sum;    /* weighted: sum[i] is that of the weights of rows 0 .. i, without those held; else NULL */
    size_t *wanted; /* rows of a batch, `room` of them */
    size_t room;
    const struct hl_fit_table *table; /* how rows become what the flow sees */
    struct hl_column_map **map;       /* if the table is mapped */
} hl_fit_stream;

/* The data that all but the flow's training see: as given, or a sample of a table that is streamed. Free on failure as well. */
hl_status hl_fit_stream_sample(hl_context *ctx, const hl_density_data *data, const hl_settings *settings,
                               hl_fit_stream *stream, hl_density_data *sample);
void hl_fit_stream_free(hl_fit_stream *stream);
/* Rows that the flow is trained on. */
size_t hl_fit_stream_rows(const hl_fit_stream *stream);
/* Rows of the table by their numbers, in the units of the data. */
hl_status hl_fit_stream_take(const hl_fit_stream *stream, size_t count, const size_t *row, double *x);
/* `read` of a hl_fit_source whose user is the stream; table and map must be there. */
hl_status hl_fit_stream_read(void *stream, size_t first, size_t count, double *x, double *context);

/* A table on its way to training. */
typedef struct hl_fit_table {
    hl_context *ctx;
    const hl_fit_stream *stream; /* that it is the sample of; or NULL */
    size_t dim, context;
    hl_density_column *column; /* dim, then context; names borrowed from the caller or from `names` */
    char (*names)[24];         /* those that the caller did not give */
    hl_column_stats *stats;    /* dim, then context */
    hl_fit_rows train, valid;  /* standardised, then decorrelated */
    size_t *original;     /* of copies that became one row: the places of training rows before the split; or NULL */
    bool mapped;          /* the rows are those of mapped columns */
    double map_scale;     /* minus the mean log slope of the maps over the validation rows */
    double *valid_slope;  /* the log slopes of these rows, if they are mapped */
    double *factor;       /* L: standardised rows are L times what the flow sees; dim x dim, or NULL */
    hl_column_form *form; /* [dim + context]; NULL: all are none */
    double *noise;        /* [dim]: width of the noise that dequantised a column, or 0 */
    double *form_slope;   /* log slopes of the forms, of the validation rows */
    uint64_t hash;        /* of all numbers that training sees */
    hl_finding *finding;
    size_t findings, finding_room;
} hl_fit_table;

/* Check, copy, split, dequantise and standardise. Free the table on failure as well. */
hl_status hl_fit_table_load(hl_fit_table *table, const hl_density_data *data, const hl_settings *settings);
void hl_fit_table_free(hl_fit_table *table);
/* A column has so few distinct values that, if they lie on a grid, it is dequantised as whole numbers are. */
bool hl_fit_is_graded(size_t rows, size_t distinct);
/* log |det| from standardised rows to the units of the data: what a mean of -log p of what the flow sees lacks. */
double hl_fit_table_scale(const hl_fit_table *table);

/* ---- forms ---- */

/* Every column gets a form, of kind none, with the bounds of the text (or NULL); the rows of the data must be inside them. */
hl_status hl_fit_read_bounds(hl_fit_table *table, const hl_density_data *data, const char *text);
/* Grids of the columns of x, from training rows in the units of the data. */
hl_status hl_fit_find_grids(hl_fit_table *table);
/* Choose forms, and take all rows, means and deviations through them. */
hl_status hl_fit_apply_forms(hl_fit_table *table);
/* Minus the mean log slope of the forms over the validation rows: what a mean of -log p behind the forms lacks. */
double hl_fit_table_form_scale(const hl_fit_table *table);
/* Mean and deviation of a column, `at` of the first row on, by the rows' weights. */
void hl_fit_weigh_column(const hl_fit_rows *rows, const double *at, size_t stride, hl_density_column *column);

/* ---- checks ---- */

hl_status hl_fit_table_find(hl_fit_table *table, const hl_finding *finding);
/* Of statistics, on which further work depends: HL_ERR_INVALID if a column cannot be modelled. All columns are looked at. */
hl_status hl_fit_check_columns(hl_fit_table *table, bool dequantize);
/* Of all training rows in the units of the data; of standardised training rows. */
hl_status hl_fit_check_far(hl_fit_table *table);
hl_status hl_fit_check_edges(hl_fit_table *table);
hl_status hl_fit_check_dependent(hl_fit_table *table);
/* Of the rows in the units of the data, before the split: one value in many rows. */
hl_status hl_fit_check_repeated(hl_fit_table *table);

/* ---- copies ---- */

/* Training rows, in the units of the data, that are copies of each other become one, before the split. */
hl_status hl_fit_join_copies(hl_fit_table *table);
/* The same finding of rows that stay as they are. */
hl_status hl_fit_tell_copies(hl_fit_table *table);
/* Rows on both sides of the split, which may be the caller's. */
hl_status hl_fit_check_copies(hl_fit_table *table);

/* The numbers that training sees are final: take their hash. */
void hl_fit_table_hash(hl_fit_table *table);

/* How the flow is trained, as trials found or, by_rule, as rules have it. */
typedef struct hl_fit_variant {
    bool mapped, decorrelated; /* what it sees */
    bool by_rule;              /* decorrelated or not by the rule; no trial was made */
    bool hopeless;             /* too far behind the mixtures */
    double rate;               /* factor of the learning rate */
    double half;               /* the score after half of a trial; 0 without */
    double score; /* mean -log p of validation rows after the trial, in the units of the data; NaN without */
} hl_fit_variant;

/* Take correlations out as the settings say; else as the variant says, if there are strong ones. */
hl_status hl_fit_decorrelate(hl_fit_table *table, const hl_settings *settings, const hl_fit_variant *variant);

/* ---- members ---- */

enum { HL_FIT_MIXTURES = 2, HL_FIT_MEMBERS = HL_FIT_MIXTURES + 1, HL_FIT_VALIDATION_ROWS = 2000 };
#define HL_FIT_LEAST_WEIGHT 0.01 /* members with less are dropped */
typedef enum hl_fit_wish {
    HL_FIT_ALL = 0,
    HL_FIT_FLOW_ONLY,
    HL_FIT_MIXTURE_ONLY
} hl_fit_wish; /* as the option has them */

/* The mixtures of a model. No mixtures: the model is a flow alone. */
typedef struct hl_fit_members {
    hl_context *ctx;
    hl_fit_wish wish;
    size_t columns, mixtures;
    struct hl_column_map **map; /* [columns], x first, in the units of the data; or NULL */
    struct hl_tmixture *mixture[HL_FIT_MIXTURES];
    bool mapped[HL_FIT_MIXTURES];
    double nll[HL_FIT_MIXTURES], share[HL_FIT_MIXTURES]; /* mean -log p of held rows; weight among the mixtures */
    double *held[HL_FIT_MIXTURES];                       /* log p of held rows */
    double *logp;    /* of the mixtures together, of the validation rows, in the units of the data */
    double together; /* the mean of -logp; without validation rows, of held ones */
    double normal;   /* the same of normal columns without correlations */
    bool is_normal;  /* no mixture was better than these: they are the only one */
    bool alone;      /* no flow is trained */
    double *report;  /* rows that choose nothing, standardised, context first */
    size_t report_rows;
    bool flow_mapped; /* without trials, the flow is to see mapped columns */
} hl_fit_members;

/* Fit the mixtures to a standardised table; some of its validation rows go to the report. HL_STOPPED if the context's stop says so.
 * Free the members on failure as well. */
hl_status hl_fit_members_fit(hl_fit_table *table, const hl_settings *settings, hl_fit_members *members);
void hl_fit_members_free(hl_fit_members *members);
/* The table's rows become those of mapped columns. */
hl_status hl_fit_members_map(const hl_fit_members *members, hl_fit_table *table);
/* Weights of densities by EM on rows, which have weights `of_rows` or NULL, with a prior of two rows each; less than 1 % becomes 0. */
void hl_fit_weigh(size_t rows, size_t count, const double *const *logp, const double *of_rows, double *weight);
/* log of the weighted sum for one row. */
double hl_fit_mix(size_t count, const double *weight, const double *const *logp, size_t row);

/* ---- choices ---- */

typedef struct hl_fit_plan {
    hl_flow_spec flow;
    size_t *order; /* of columns, which `flow` borrows; or NULL */
    hl_fit_options options;
    double minutes; /* 0: no limit */
    double reach;   /* a flow that is further behind the mixtures, in nats, is given up */
} hl_fit_plan;

/* Does the conditioner (NULL: the default) see all other columns alike, so that they may be decorrelated? Others need columns as they are. */
bool hl_fit_is_dense(const char *conditioner);
/* What the settings leave open, by the variant, columns and rows. Free the plan on failure as well. */
hl_status hl_fit_choose(const hl_fit_table *table, const hl_settings *settings, const hl_fit_variant *variant,
                        hl_fit_plan *plan);
void hl_fit_plan_free(hl_context *ctx, hl_fit_plan *plan);
/* All that decides the bits of the result, in one line; written as snprintf does. */
int hl_fit_describe(const hl_fit_table *table, const hl_fit_plan *plan, const hl_flow *flow, char *to, size_t size);

/* Brief runs of the flow on copies of a standardised table; HL_STOPPED if the context's stop says so. */
hl_status hl_fit_try(const hl_fit_members *members, const hl_fit_table *table, const hl_settings *settings,
                     hl_fit_variant *best);

/* ---- atoms ---- */

struct hl_density_atoms;

/* The rows of a streamed table, sorted by pattern. */
typedef struct hl_fit_patterns {
    const hl_fit_stream *stream; /* NULL: the table is not streamed, and there is nothing here */
    struct hl_density_atoms *atoms;
    size_t *row;   /* numbers of all rows: those of pattern 0 in the order of the table, then those of pattern 1, ... */
    size_t *first; /* [patterns + 1] where a pattern begins */
} hl_fit_patterns;

/* Finds and counts the patterns of the atoms in all rows. Free on failure as well. */
hl_status hl_fit_patterns_make(hl_fit_patterns *patterns, const hl_fit_stream *stream, struct hl_density_atoms *atoms);
void hl_fit_patterns_free(hl_fit_patterns *patterns);
size_t hl_fit_patterns_rows(const hl_fit_patterns *patterns, size_t pattern);
/* The rows of one pattern, of which some columns are wanted; hl_fit_pattern_read is the `read` of a hl_row_source whose user this is. */
typedef struct hl_fit_pattern_rows {
    const hl_fit_patterns *patterns;
    size_t pattern, rest, *columns;
} hl_fit_pattern_rows;
hl_status hl_fit_pattern_read(size_t count, const size_t *row, double *x, double *context, double *weights, void *user);

/* Columns with an atom, or *atoms is NULL. */
hl_status hl_fit_find_atoms(hl_context *ctx, const hl_density_data *data, const hl_settings *settings,
                            struct hl_density_atoms **atoms);
/* hl_density_fit of a table that has these atoms, which it owns from then on; and of one without. Arguments are checked; stream may be
 * NULL. */
hl_status hl_fit_with_atoms(hl_context *ctx, const hl_density_data *data, const hl_settings *settings,
                            const hl_job *job, hl_fit_stream *stream, struct hl_density_atoms *atoms,
                            hl_density **model, hl_density_outcome **outcome);
hl_status hl_fit_one(hl_context *ctx, const hl_density_data *data, const hl_settings *settings, const hl_job *job,
                     hl_fit_stream *stream, hl_density **model, hl_density_outcome **outcome);
/* An outcome like this one; findings and settings are copied. */
hl_status hl_fit_make_outcome(hl_context *ctx, const hl_density_outcome *like, const char *settings,
                              hl_density_outcome **outcome);

/* ---- time ---- */

/* Seconds of an iteration of each kind and of a validation, averaged; what is left of them is the time that is left. */
typedef struct hl_fit_pace {
    double start, last;       /* when training began; when the last iteration ended */
    double matching, solving; /* seconds of an iteration; NaN while unknown */
    double validation;
    size_t validate_every, valid_rows, batch, first_solving; /* the first iteration by likelihood */
    bool probed;
} hl_fit_pace;

void hl_fit_pace_start(hl_fit_pace *pace, const hl_fit *fit);
/* After an iteration: the seconds that are left, or NaN. An error if memory ran out, HL_STOPPED if the user wants that. */
hl_status hl_fit_pace_step(hl_fit_pace *pace, hl_fit *fit, const hl_fit_report *report, double *left);
/* Rows of training in a second of a phase; 0 while unknown. */
double hl_fit_pace_rows(const hl_fit_pace *pace, hl_fit_phase phase);

#endif
