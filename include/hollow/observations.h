/* hollow/observations.h - read observations (trajectory, t, x) of stochastic differential equations from tables.
 *
 *     hl_observations *data;
 *     hl_observations_read(ctx, "paths.csv", NULL, &data);
 *     hl_sde_observations rows = hl_observations_rows(data);
 *     hl_sde_learn(ctx, &rows, NULL, NULL, &sde, &outcome);
 *     hl_observations_free(data);
 *
 * The options say which column is which. By default times are in the column "t" or "time", trajectories in "trajectory", and all other columns
 * are x. Dates are converted to years. Error messages write options as "option time". */
#ifndef HOLLOW_OBSERVATIONS_H
#define HOLLOW_OBSERVATIONS_H

#include "hollow/sde_learn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero or NULL in any field means the default. */
typedef struct hl_observation_options {
    /* Columns of times and of trajectories: names or numbers. */
    const char *time, *trajectory;
    /* Columns of x, such as "a,b" or "2-3". */
    const char *columns;
    /* npz: the array to read. Default: all arrays that belong together. */
    const char *array;
    /* > 0: the table has no column of times; consecutive rows are this far apart. */
    double dt;
    /* Nonzero, with dt: read a column of times if there is one. */
    int times_optional;
    /* Nonzero: skip rows with missing values. */
    int drop_missing;
    /* Read the columns of this model as x. */
    const hl_sde *model;
    /* Number and names of further columns, which follow those of the model. */
    size_t extra;
    const char *const *extra_names;
    /* Nonzero: rows are points, not trajectories. */
    int unordered;
    /* Fewer rows are an error. */
    size_t min_rows;
    /* Read at most about so many rows of a larger table, chosen at random, and always the same ones: whole trajectories; if these are few
     * and long, pieces of consecutive rows, with gaps between them; single rows of snapshots. The order of times is then
     * checked in these rows only. Default all rows. */
    size_t most_rows;
} hl_observation_options;

/* Observations. Rows of a trajectory are adjacent and in the order of time. */
typedef struct hl_observations {
    size_t dim, rows, trajectories;
    double *t, *x, *extra; /* [rows], [rows][dim], [rows][extra] */
    size_t *trajectory;    /* trajectory of each row, from 0 */
    int paired;            /* nonzero: trajectories were given, or there is only one */
    int timed, dates;      /* nonzero: times are from the table, not from dt; they were dates, converted to years */
    size_t snapshots;      /* the first row whose time does not increase, if rows are snapshots; else SIZE_MAX */
    size_t dropped;        /* rows skipped because of missing values */
    size_t all_rows;       /* rows of the table, of which `rows` were read */
    char **name;           /* names of the dim columns, then of time */
    const char *path;
} hl_observations;

/* Read, sort and check a table. `path` "-" is standard input. Pipes are read once. `options` may be NULL. */
HL_API hl_status hl_observations_read(hl_context *context, const char *path, const hl_observation_options *options,
                                      hl_observations **observations);
HL_API void hl_observations_free(hl_observations *observations); /* takes NULL */
/* The observations as hl_sde_learn takes them. Borrowed. */
HL_API hl_sde_observations hl_observations_rows(const hl_observations *observations);
/* Write the position of a value in the file, for messages, as hl_table_place does, and return buffer. Column dim is time; SIZE_MAX is the row
 * only. */
HL_API const char *hl_observations_place(const hl_observations *observations, size_t row, size_t column, char *buffer,
                                         size_t size);

/* Parse a time: a number, or a date such as 2020-01-01 or 2020-01-01T12:30, which is converted to years. Returns the end of the time, or NULL
 * if the text does not begin with one. */
HL_API const char *hl_time_scan(const char *text, double *time);
/* Convert a time in years to days since 1970-01-01. */
HL_API double hl_time_days(double time);

#ifdef __cplusplus
}
#endif

#endif
