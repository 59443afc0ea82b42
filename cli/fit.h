/* fit.h - the parts of `hollow fit`: the call, what it says, pictures. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include "cli.h"

/* What only a command has: files, and how to talk. */
typedef struct fit_settings {
    uint64_t threads;
    double save_every;
    const char *out, *valid, *columns, *exclude, *context, *weights, *array, *log, *plot;
    bool resume, drop, drop_constant;
    cli_chosen chosen; /* the library's options */
} fit_settings;

typedef struct fit_rows {
    double *x, *context, *weights;
} fit_rows;

typedef struct fit_job {
    const fit_settings *set;
    const char *path;
    hl_context *ctx;
    hl_settings *settings;
    hl_table *table, *valid;
    size_t dim, context;   /* columns of x and of the context */
    size_t weights;        /* 1 if the rows have weights, else 0 */
    size_t *index;         /* of the table: x, the context, then the weights */
    hl_category *category; /* columns of texts in the context; texts borrowed from the table */
    size_t categories;
    hl_density_column *columns; /* their names, as functions of data.c want them */
    const char **names;         /* the same for the library */
    fit_rows rows, valid_rows;
    bool resume;
    char *checkpoint;
    FILE *log;
    cli_progress progress;
    cli_curves curves; /* iteration, loss or NaN, validation or NaN, evaluations, 1 if likelihood */
} fit_job;

extern const cli_command cli_fit;

/* The library has copied the rows. */
void fit_free_rows(fit_job *job);

/* ---- texts in the context (fit_categories.c) ---- */

/* Columns of texts in the context become columns of 0 and 1, in job->index. Returns CLI_OK or an exit status. */
int fit_expand_context(fit_job *job);
/* The model gets the categories. */
hl_status fit_set_categories(const fit_job *job, hl_density *model);
void fit_free_categories(fit_job *job);

/* ---- what it says (fit_report.c) ---- */

/* The callback of the library's job: `user` is the fit_job. */
int fit_progress(const void *report, void *user);
bool fit_has_atoms(const hl_density_outcome *outcome); /* takes NULL */
/* Say which columns the library refuses; false if there are none. */
bool fit_refuse(const fit_job *job, const hl_density_outcome *outcome);
/* What came of a training; returns the exit status. */
int fit_conclude(const fit_job *job, const hl_density_outcome *outcome);

/* ---- pictures (density_plot.c) ---- */

void fit_add_point(cli_curves *curves, const hl_density_progress *progress);
/* Curves and densities, as PNG files in a directory. */
int fit_plot(const fit_job *job, hl_density *model);

#endif
