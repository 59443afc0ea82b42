/* density_fit.h - the stations of hl_density_fit: data, checks, choices, the loop, the outcome.
 *
 *   density_fit_data.c         rows in the user's units become standardised rows of training and of validation
 *   density_fit_check.c        findings
 *   density_fit_decorrelate.c  linear correlations are taken out
 *   density_fit_choose.c       sizes and training by columns and rows
 *   density_fit_pace.c         how long it will take
 *   density_fit.c              the call, the loop, the outcome */
#ifndef HL_DENSITY_FIT_H
#define HL_DENSITY_FIT_H

#include "base/base.h"
#include "base/options.h"
#include "hollow/density_fit.h"
#include "hollow/table.h"

/* ---- data ---- */

typedef struct hl_fit_rows {
    size_t rows;
    double *x, *c; /* rows x dim, rows x context */
    double *w;     /* weights of the rows, their mean being 1; or NULL */
} hl_fit_rows;

/* A table on its way to training. */
typedef struct hl_fit_table {
    hl_context *ctx;
    size_t dim, context;
    hl_density_column *column; /* dim, then context; names borrowed from the caller or from `names` */
    char (*names)[24];         /* those that the caller did not give */
    hl_column_stats *stats;    /* dim, then context */
    hl_fit_rows train, valid;  /* standardised, then decorrelated */
    double *factor;            /* L: standardised rows are L times what the flow sees; dim x dim, or NULL */
    uint64_t hash;             /* of all numbers that training sees */
    hl_finding *finding;
    size_t findings, finding_room;
} hl_fit_table;

/* Check, copy, split, dequantise, standardise and decorrelate. Free the table on failure as well. */
hl_status hl_fit_table_load(hl_fit_table *table, const hl_density_data *data, const hl_settings *settings);
void hl_fit_table_free(hl_fit_table *table);
/* log |det| from standardised rows to the units of the data: what a mean of -log p of what the flow sees lacks. */
double hl_fit_table_scale(const hl_fit_table *table);

/* ---- checks ---- */

hl_status hl_fit_table_find(hl_fit_table *table, const hl_finding *finding);
/* Of statistics, on which further work depends: HL_ERR_INVALID if a column cannot be modelled. All columns are looked at. */
hl_status hl_fit_check_columns(hl_fit_table *table, bool dequantize);
/* Of all training rows in the units of the data; of standardised training rows. */
hl_status hl_fit_check_far(hl_fit_table *table);
hl_status hl_fit_check_dependent(hl_fit_table *table);

/* Take correlations out where that is good, or as the settings say. */
hl_status hl_fit_decorrelate(hl_fit_table *table, const hl_settings *settings);

/* ---- choices ---- */

typedef struct hl_fit_plan {
    hl_flow_spec flow;
    size_t *order; /* of columns, which `flow` borrows; or NULL */
    hl_fit_options options;
    double minutes; /* 0: no limit */
} hl_fit_plan;

/* What the settings leave open, by columns and rows. Free the plan on failure as well. */
hl_status hl_fit_choose(const hl_fit_table *table, const hl_settings *settings, hl_fit_plan *plan);
void hl_fit_plan_free(hl_context *ctx, hl_fit_plan *plan);
/* All that decides the bits of the result, in one line; written as snprintf does. */
int hl_fit_describe(const hl_fit_table *table, const hl_fit_plan *plan, const hl_flow *flow, char *to, size_t size);

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
