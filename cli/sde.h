/* sde.h - the parts of `hollow sde`: its commands, and observations (trajectory, t, x) from tables. */
#ifndef CLI_SDE_H
#define CLI_SDE_H

#include "cli.h"

extern const cli_command sde_command_fit, sde_command_sample, sde_command_grid, sde_command_eval;

/* Where observations come from, and which columns they are. */
typedef struct sde_source {
    const char *path;
    hl_observation_options how;
    bool drop;
    uint64_t most; /* rows; 0: all */
    bool one;      /* one trajectory is needed: rows whose times do not rise are an error */
} sde_source;

/* The options that say so, as lines of a table of options. */
#define SDE_SOURCE_OPTIONS(type, member)                                                                                   \
    { "time",                                                                                                              \
      CLI_TEXT,                                                                                                            \
      offsetof(type, member.how.time),                                                                                     \
      "COL",                                                                                                               \
      "the column of times; default t or time; dates and times of day become years",                                       \
      0,                                                                                                                   \
      0,                                                                                                                   \
      NULL },                                                                                                              \
        { "trajectory",                                                                                                    \
          CLI_TEXT,                                                                                                        \
          offsetof(type, member.how.trajectory),                                                                           \
          "COL",                                                                                                           \
          "the column of trajectories, numbers or text; default trajectory",                                               \
          0,                                                                                                               \
          0,                                                                                                               \
          NULL },                                                                                                          \
        { "dt",  CLI_REAL, offsetof(type, member.how.dt), "X", "no column of times: rows are X apart", 1e-300,             \
          1e300, NULL },                                                                                                   \
        { "drop-missing", CLI_FLAG, offsetof(type, member.drop), NULL, "leave rows with missing values out", 0, 0, NULL }, \
    {                                                                                                                      \
        "array", CLI_TEXT, offsetof(type, member.how.array), "NAME", "npz: the arrays to read; default all", 0, 0,         \
            NULL                                                                                                           \
    }

/* The option that says how many rows, for commands that learn or judge. */
#define SDE_MOST_OPTION(type, member)                                                                                  \
    {                                                                                                                  \
        "most-rows", CLI_INTEGER, offsetof(type, member.most), "N",                                                    \
            "use at most N rows of a larger table: random trajectories, or rows of snapshots; default 2000000", 1000,  \
            1e12, NULL                                                                                                 \
    }
enum { SDE_MOST_ROWS = 2000000 };

/* Read, from pipes, too. Returns CLI_OK or an exit status, having said what is wrong. */
int sde_read(const cli_command *command, hl_context *ctx, const sde_source *source, hl_observations **rows);

/* The verdict as members of an object. */
void sde_print_verdict(cli_json *json, const hl_verdict *verdict);

/* The outcome of `hollow sde fit` as a line on stdout. */
void sde_print_outcome(const char *model, const hl_sde *sde, const hl_sde_outcome *outcome);
/* The constants of expressions as a list in an object. */
void sde_print_constants(cli_json *json, const hl_sde_forms *forms);

/* Pictures as PNG files in a directory: training (curves of iteration, loss, nll), drift and diffusion, marginals. The judge has
 * compared the model. */
int sde_plot(const char *directory, hl_sde *sde, const hl_observations *rows, hl_judge *judge, bool matching,
             const cli_curves *curves);

#endif
