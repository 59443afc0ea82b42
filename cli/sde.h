/* sde.h - the parts of `hollow sde`: its commands, and observations (trajectory, t, x) from tables. */
#ifndef CLI_SDE_H
#define CLI_SDE_H

#include "cli.h"

extern const cli_command sde_command_fit, sde_command_sample, sde_command_grid, sde_command_eval;

/* Where observations come from, and which columns they are. NULL, 0: the defaults. */
typedef struct sde_source {
    const char *path, *time, *trajectory, *columns, *array;
    double dt;           /* > 0: no column of times; rows are so far apart */
    bool times_optional; /* with dt: if there is a column of times, it is read */
    bool drop;
    const hl_sde *model; /* NULL: x is all columns that are left; else those of the model */
    size_t extra;        /* further columns after those of the model, with these names: */
    const char *const *extra_names;
    bool unordered; /* rows are points, not trajectories */
    size_t least;   /* rows */
} sde_source;

/* The options that say so, as lines of a table of options. */
#define SDE_SOURCE_OPTIONS(type, member)                                                                                   \
    { "time",                                                                                                              \
      CLI_TEXT,                                                                                                            \
      offsetof(type, member.time),                                                                                         \
      "COL",                                                                                                               \
      "the column of times; default t or time; dates and times of day become years",                                       \
      0,                                                                                                                   \
      0,                                                                                                                   \
      NULL },                                                                                                              \
        { "trajectory",                                                                                                    \
          CLI_TEXT,                                                                                                        \
          offsetof(type, member.trajectory),                                                                               \
          "COL",                                                                                                           \
          "the column of trajectories, numbers or text; default trajectory",                                               \
          0,                                                                                                               \
          0,                                                                                                               \
          NULL },                                                                                                          \
        { "dt", CLI_REAL, offsetof(type, member.dt), "X", "no column of times: rows are X apart", 1e-300, 1e300, NULL },   \
        { "drop-missing", CLI_FLAG, offsetof(type, member.drop), NULL, "leave rows with missing values out", 0, 0, NULL }, \
    {                                                                                                                      \
        "array", CLI_TEXT, offsetof(type, member.array), "NAME", "npz: the arrays to read; default all", 0, 0, NULL        \
    }

/* Observations in memory: rows of a trajectory stand together, times rising. */
typedef struct sde_rows {
    size_t dim, rows, trajectories;
    double *t, *x, *extra; /* [rows], [rows][dim], [rows][source's extra] */
    size_t *trajectory;    /* numbers 0.. */
    bool paired;           /* the trajectories were given, or there is but one */
    char **name;           /* dim, then that of time */
    hl_table *table;       /* for places in messages */
    size_t *place;         /* the table's row of each row */
    size_t *column;        /* the table's column of each name; time may be HL_NO_COLUMN */
    uint64_t hash;         /* of all numbers */
} sde_rows;

/* Read, sort and check. Returns CLI_OK or an exit status, having said what is wrong. */
int sde_read(const cli_command *command, hl_context *ctx, const sde_source *source, sde_rows *rows);
void sde_rows_free(sde_rows *rows);
/* Where row r stands, in the column of a name (dim: time; HL_NO_COLUMN: the row), for messages. */
const char *sde_place(const sde_rows *rows, size_t r, size_t name, char *buffer, size_t size);

/* A time: a number, or a date such as 2020-01-01 or 2020-01-01T12:30 as years, which is what a column of dates becomes; *end is behind it. False if
 * there is none. */
bool sde_read_time(const char *text, char **end, double *time);

/* Begin the object of a table with its columns; end the list of its rows, or name the file that they went to. */
void sde_open_table(cli_json *json, size_t columns, const char *const *names);
void sde_close_rows(cli_json *json, const char *file);

/* The verdict as members of an object. */
void sde_print_verdict(cli_json *json, const hl_verdict *verdict);

/* The outcome of `hollow sde fit` as a line on stdout. */
void sde_print_outcome(const char *model, const hl_sde_outcome *outcome);

/* Curves of training for pictures: iteration, loss, nll. */
typedef struct sde_curves {
    size_t count, capacity;
    double (*point)[3];
} sde_curves;
void sde_curves_add(sde_curves *curves, double iteration, double loss, double nll);
/* Pictures as PNG files in a directory: training, drift and diffusion, marginals. The judge has compared the model. */
int sde_plot(const char *directory, hl_sde *sde, const sde_rows *rows, hl_judge *judge, bool matching,
             const sde_curves *curves);

#endif
