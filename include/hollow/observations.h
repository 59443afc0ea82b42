/* hollow/observations.h - observations (trajectory, t, x) of stochastic equations from tables.
 *
 *     hl_observations *data;
 *     hl_observations_read(ctx, "paths.csv", NULL, &data);
 *     hl_sde_observations rows = hl_observations_rows(data);
 *     hl_sde_learn(ctx, &rows, NULL, NULL, &sde, &outcome);
 *     hl_observations_free(data);
 *
 * Which columns are what is told by the options, else by their names: times are in "t" or "time", trajectories in "trajectory",
 * x is the rest. Dates become years. Messages of errors name options as "option time". */
#ifndef HOLLOW_OBSERVATIONS_H
#define HOLLOW_OBSERVATIONS_H

#include "hollow/sde_learn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero or NULL in any field means the default. */
typedef struct hl_observation_options {
    const char *time, *trajectory; /* names or numbers of columns */
    const char *columns;           /* of x, such as "a,b" or "2-3" */
    const char *array;             /* of an npz archive; default all of its arrays that go together */
    double dt;                     /* > 0: no column of times; rows are so far apart */
    int times_optional;            /* with dt, nonzero: if there is a column of times, it is read */
    int drop_missing;              /* nonzero: leave rows with missing values out */
    const hl_sde *model;           /* x is the columns of this model */
    size_t extra;                  /* further columns after those of the model, with these names: */
    const char *const *extra_names;
    int unordered;   /* nonzero: rows are points, not trajectories */
    size_t min_rows; /* fewer are an error */
} hl_observation_options;

/* Rows of a trajectory stand together, times rising. */
typedef struct hl_observations {
    size_t dim, rows, trajectories;
    double *t, *x, *extra; /* [rows], [rows][dim], [rows][extra] */
    size_t *trajectory;    /* numbers from 0 */
    int paired;            /* nonzero: the trajectories were given, or there is but one */
    int timed, dates;      /* nonzero: times are of the table, not of dt; they were dates, and are years */
    size_t snapshots;      /* the first row whose time does not rise, as rows are snapshots; SIZE_MAX: they are not */
    size_t dropped;        /* rows with missing values */
    char **name;           /* of the dim columns, then of time */
    const char *path;
} hl_observations;

/* Read, sort and check. `path` "-" is standard input, and pipes are read once; `options` may be NULL. */
HL_API hl_status hl_observations_read(hl_context *context, const char *path, const hl_observation_options *options,
                                      hl_observations **observations);
HL_API void hl_observations_free(hl_observations *observations); /* takes NULL */
/* As hl_sde_learn takes them; borrowed. */
HL_API hl_sde_observations hl_observations_rows(const hl_observations *observations);
/* Where a row stands in its file, in a column (dim: time; SIZE_MAX: the row alone), for messages, as hl_table_place; returns buffer. */
HL_API const char *hl_observations_place(const hl_observations *observations, size_t row, size_t column, char *buffer,
                                         size_t size);

/* A time at the beginning of a text: a number, or a date such as 2020-01-01 or 2020-01-01T12:30, as years. Returns what follows it, or NULL
 * if there is none. */
HL_API const char *hl_time_scan(const char *text, double *time);
/* The days since 1970-01-01 of such a time in years. */
HL_API double hl_time_days(double time);

#ifdef __cplusplus
}
#endif

#endif
