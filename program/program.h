/* program.h - what the programs hollow, hollow-bench and hollow-paper share: exit codes, tables of commands and options, messages,
 * progress, JSON, files, also those of a training, pictures. Nothing here knows a model.
 *
 * Results go to stdout or to files, talk to stderr. Programs see the library only through its public headers. */
#ifndef PROGRAM_PROGRAM_H
#define PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hollow/hollow.h"

#if defined(__GNUC__)
#define CLI_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CLI_PRINTF(text, first)
#endif

/* Exit status. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_WRONG = 2, CLI_STOPPED = 130 };

/* ---- commands and their options (options.c, commands.c) ---- */

typedef enum cli_kind {
    CLI_FLAG,    /* bool */
    CLI_INTEGER, /* uint64_t, in low..high */
    CLI_REAL,    /* double, in low..high, finite */
    CLI_TEXT,    /* const char * */
    CLI_CHOICE   /* const char *, one of `choices` */
} cli_kind;

typedef struct cli_option {
    const char *name; /* without the dashes; a single letter has one dash */
    cli_kind kind;
    size_t offset;            /* of the value in the command's settings */
    const char *value, *help; /* for the help text: what the value is called, what the option does */
    double low, high;
    const void *more; /* of a choice: a list of names that ends with NULL; of the last row, a cli_job or NULL */
} cli_option;

/* A job of the library whose options are the command's, too; `offset` of the last row is that of a cli_chosen. */
typedef struct cli_job {
    const hl_option *(*options)(void);
} cli_job;

typedef struct cli_command {
    const char *name, *arguments, *summary, *text;
    const cli_option *options; /* ends with a NULL name */
    size_t least, most;        /* how many arguments that are not options */
    int (*run)(int argc, char **argv);
} cli_command;

enum { CLI_MOST_CHOSEN = 64 };
/* The texts of a job's options that were given, in the order of their table; "on" for flags. */
typedef struct cli_chosen {
    const char *text[CLI_MOST_CHOSEN];
} cli_chosen;
/* Those of the command's job become settings, to be freed. Returns CLI_OK or an exit status, having said what is wrong. */
int cli_make_settings(const cli_command *command, hl_context *ctx, const cli_chosen *chosen, hl_settings **settings);
/* As cli_fail_library, for a job: a message that begins with the name of an option gets its dashes. */
int cli_fail_job(const cli_command *command, const hl_context *ctx, hl_status status);

/* The end of a program: flushes stdout, which may fail, and returns the exit status, which tells SIGTERM (143) from Ctrl-C. */
int cli_finish(int status);

/* One of a table that ends with NULL, by the last word of its name; or NULL. (commands.c) */
const cli_command *cli_find_command(const cli_command *const *commands, const char *name);
/* Run the one of a command's own commands that argv[0] names. */
int cli_run(const cli_command *command, const cli_command *const *commands, int argc, char **argv);
/* There is no such command among those of `command` (NULL: the program): says so, with the nearest. */
int cli_unknown(const cli_command *command, const cli_command *const *commands, const char *name);
/* For the completion of shells: the names of commands; a command's options, each with its value or choices. */
void cli_complete_commands(const cli_command *const *commands);
void cli_complete_options(const cli_command *command);

extern const cli_command cli_completion; /* scripts for shells (completion.c) */

/* A file of this name beside the program, in a build, or in libexec, when installed. (external.c) */
bool cli_find_beside(const char *name, char *path, size_t size);
/* A command that is a program of its own, hollow-NAME: becomes it, or returns an exit status. (external.c) */
int cli_start(const cli_command *command, int argc, char **argv);

/* Fill `settings` from the options and `arguments` (room for command->most + 1, filled up with NULL) from the rest. Returns
 * -1 to go on, else the exit status: help was printed or the call was wrong. */
int cli_parse(const cli_command *command, int argc, char **argv, void *settings, const char **arguments);
void cli_print_help(const cli_command *command);

/* ---- several processes (ranks.c) ---- */

/* Join the others, if mpirun started several. CLI_OK or an exit status, having said what is wrong. */
int cli_ranks_start(void);
int cli_ranks_end(int status); /* returns it; a failure ends all ranks */
bool cli_is_first_rank(void);  /* the one that writes; true if there is one */
int cli_threads(void);         /* that a command may use: all, or its part where ranks share a machine */
/* The context is one of the ranks from now on, which is said. */
int cli_use_ranks(const cli_command *command, hl_context *ctx);
/* What exchanges between ranks have cost this process so far. */
typedef struct cli_exchange {
    size_t count, bytes;       /* bytes: received */
    double processor, compute; /* processor seconds in exchanges, mostly waiting; and outside of them */
} cli_exchange;
cli_exchange cli_exchanged(void);
/* CLI_WRONG, having said so, if several were started of a command that would do the same on each: unless its arguments choose a part. */
int cli_refuse_ranks(const cli_command *command, int argc, char **argv);

/* ---- messages (support.c) ---- */

/* "hollow COMMAND: message" and a new line on stderr, unless the user wants it quiet. */
void cli_say(const cli_command *command, const char *format, ...) CLI_PRINTF(2, 3);
/* The same, as the last words: returns `status`. */
int cli_fail(const cli_command *command, int status, const char *format, ...) CLI_PRINTF(3, 4);
int cli_no_memory(const cli_command *command);
/* Report a failed call of the library; returns the exit status that fits. `ctx` may be NULL. */
int cli_fail_library(const cli_command *command, const hl_context *ctx, hl_status status);
/* A message of the library: an option that it calls by its name, "option time", becomes --time. */
void cli_dash_options(char *text, size_t size, const char *message);
/* Write "a, b, c" to buffer. */
void cli_join(char *buffer, size_t size, const char *const *names);

/* Options that every command has. --quiet: no progress and no messages but those of cli_fail. --json: the result on stdout is
 * one JSON object. */
void cli_set_quiet(void);
void cli_set_json(void);
bool cli_quiet(void);
bool cli_json_wanted(void);

/* Ctrl-C and SIGTERM set a flag, which loops look at. */
void cli_catch_interrupt(void);
bool cli_interrupted(void);
int cli_stop(void *user); /* the same, as a context asks it */

double cli_now(void); /* seconds of a steady clock */

/* ---- progress (progress.c) ---- */

/* One line on stderr. A terminal's line is drawn again in place, at most ten times a second, and fits the terminal's width: fields
 * that do not fit are left out. In a pipe, or with TERM=dumb, there is a line for each milestone of the command. The time left
 * ("ETA 2:05", added to every line) follows from the fraction of the work that is done and the time it took: the caller
 * weighs phases whose iterations differ in cost. Messages of cli_say and cli_fail take the line away first.
 *
 *     cli_progress_start(&p, 0);
 *     for (...)
 *         if (cli_progress_due(&p, fraction, validated)) {
 *             cli_progress_field(&p, 0, "%6zu/%zu", iteration, iterations);     rank 0 stays longest
 *             cli_progress_field(&p, 3, "loss %9.4f", loss);                    rank 3 goes before rank 2
 *             cli_progress_show(&p);
 *         }
 *     cli_progress_end(&p, true); */
enum { CLI_PROGRESS_FIELDS = 12 };
typedef struct cli_progress {
    bool terminal;
    double begun, fraction, start, last;
    size_t count;
    struct {
        char text[64];
        int rank;
    } field[CLI_PROGRESS_FIELDS];
} cli_progress;
/* `fraction`: the share of all work that was done before, by a run that is resumed; else 0. */
void cli_progress_start(cli_progress *progress, double fraction);
/* Is it time for a line? Then fields follow, from left to right, and cli_progress_show. */
bool cli_progress_due(cli_progress *progress, double fraction, bool milestone);
/* A field of plain ASCII. The time left has rank 1, and of equal ranks the last goes first. */
void cli_progress_field(cli_progress *progress, int rank, const char *format, ...) CLI_PRINTF(3, 4);
void cli_progress_show(cli_progress *progress);
double cli_progress_waited(const cli_progress *progress); /* seconds since the last line */
/* The line of a command that goes through rows; in a pipe one every ten seconds. */
void cli_show_rows(cli_progress *progress, size_t done, size_t rows);
/* Done: the terminal's last line stays, or is removed. */
void cli_progress_end(cli_progress *progress, bool keep);
void cli_progress_hide(void); /* before anything else is written to a terminal; the next line comes back below */

/* ---- JSON (json.c) ---- */

/* A writer of one line; every member is preceded by a comma where one is due. A NULL key is for members of an array. With `plain` it writes the
 * same as text for a reader instead: a line for each member, and for each object of a list. */
typedef struct cli_json {
    FILE *file;
    bool comma, plain;
    int depth; /* of brackets */
} cli_json;
void cli_json_open(cli_json *json, const char *key, char bracket); /* '{' or '[' */
void cli_json_close(cli_json *json, char bracket);
void cli_json_text(cli_json *json, const char *key, const char *value);
void cli_json_real(cli_json *json, const char *key, double value);  /* null if not finite */
void cli_json_exact(cli_json *json, const char *key, double value); /* with all its digits */
void cli_json_count(cli_json *json, const char *key, uint64_t value);
void cli_json_bool(cli_json *json, const char *key, bool value);
/* Begin the object of a table with its columns; rows of a list, exactly; end the list, or name the file that they went to. */
void cli_json_open_table(cli_json *json, size_t columns, const char *const *names);
void cli_json_rows(cli_json *json, size_t rows, size_t columns, const double *values);
void cli_json_close_rows(cli_json *json, const char *file);

/* ---- files (files.c) ---- */

/* A file that appears under its name only when it is complete. */
typedef struct cli_file {
    FILE *stream;
    bool pipe; /* to gnuplot, which writes the file */
    char *path, *temporary;
} cli_file;

/* All return 0 or an errno. */
int cli_make_directory(const char *path); /* with its parents; checks that files can be made there */
int cli_file_open(cli_file *file, const char *directory, const char *name);
int cli_file_open_path(cli_file *file, const char *path);
int cli_file_keep(cli_file *file);  /* close and give it its name */
void cli_file_drop(cli_file *file); /* remove it; takes one that was kept or never opened */

/* Can a regular file be written there? Asked before the work, not after it. CLI_OK or CLI_WRONG, having said why not. */
int cli_check_file(const cli_command *command, const char *path);
/* The library opens a table more than once, to find what its columns hold; a pipe, such as "-" or <(command), can be read but
 * once. So all of it is kept in a file that becomes standard input, and the path "-". CLI_OK or an exit status. */
int cli_keep_pipe(const cli_command *command, const char **path);

/* ---- training (training.c) ---- */

/* The files of a training; NULL: none. */
typedef struct cli_outputs {
    const char *data, *more_data, *from; /* what is read; from: a model to start from */
    const char *model, *log, *plot;
} cli_outputs;
/* Can the model, its checkpoint, whose name it makes (to be freed), log and pictures be written, without hurting the data or
 * another run? Locks the model until cli_unlock. CLI_OK or an exit status, having said what is wrong. */
int cli_check_outputs(const cli_command *command, hl_context *ctx, const cli_outputs *outputs, char **checkpoint);
void cli_unlock(void);
void cli_say_unsaved(const char *reason, void *user); /* hl_job.unsaved: warns */
/* Is there a checkpoint to go on from? If not, and no model either, *resume becomes false, having said so; a model without a
 * checkpoint is finished, which is said, and CLI_WRONG. */
int cli_check_resume(const cli_command *command, const char *model, const char *checkpoint, bool *resume);
/* Open a log, to be gone on with if `resume`; no path is no log. Waits for the reader of a pipe until the user stops the run. */
int cli_open_log(const cli_command *command, const char *path, bool resume, FILE **log);
/* End a line and write it. */
void cli_end_log_line(FILE *log);
/* Close it (may be NULL); returns `result`, or CLI_WRONG, having said so, if anything of the log was lost. */
int cli_close_log(const cli_command *command, const char *path, FILE *log, int result);
/* Lines after those of `iteration`, of a run that went on after its last checkpoint, will be written again. */
void cli_cut_log(FILE *log, size_t iteration);

/* ---- paths (paths.c) ---- */

/* A file that a command reads, as FILE or FILE.npz:ARRAY, or writes; NULL and "-" are none. A table must have a suffix that it
 * can be written by, or none. */
typedef enum cli_use { CLI_READ, CLI_WRITE, CLI_TABLE } cli_use;
typedef struct cli_path {
    const char *name;
    cli_use use;
    const char *suffix; /* of a file that the command names after another, such as ".ckpt"; else NULL */
} cli_path;
/* No input is ever an output, and no two outputs are one file, whatever links lead there. Every command asks this before it
 * writes anything, with all files that it will read or write. CLI_OK, or CLI_WRONG, having said which. */
int cli_check_paths(const cli_command *command, size_t count, const cli_path *paths);
/* Is this file one of those that were read, of all calls of cli_check_paths? */
bool cli_is_input(const char *path);


/* ---- pictures (files.c, plot.c) ---- */

/* Colours of all pictures, those of the pages of reports (src/report/page.css) among them. cli_plot_open sets type, axes, grid and
 * legends. */
#define CLI_BLUE "#1d63d1"
#define CLI_ORANGE "#d1491d"
#define CLI_GREEN "#009e73"
#define CLI_PINK "#cc79a7"
#define CLI_YELLOW "#e69f00"
#define CLI_GREY "#5f6b7a"  /* data */
#define CLI_LIGHT "#9aa6b5" /* lines to compare with */
#define CLI_PALE "#c9d0d9"  /* bars of data */
#define CLI_INK "#1b2430"   /* titles */
#define CLI_SOFT "#5c6878"  /* axes and subtitles */
#define CLI_GRID "#eaeef2"
/* A heat map from 0 up. */
#define CLI_HEAT "set palette defined (0 '#ffffff', 0.15 '#deebf7', 0.4 '#6baed6', 0.7 '#2171b5', 1 '#08306b')\n"

bool cli_have_gnuplot(void);
/* Start gnuplot with its output going to a temporary file for directory/name; write commands to file->stream. End with
 * cli_plot_keep, or cli_file_drop as for files. */
int cli_plot_open(cli_file *file, const char *directory, const char *name, int width, int height);
int cli_plot_keep(cli_file *file); /* -1 if gnuplot failed */
/* The same, having said what is wrong: CLI_OK or an exit status. */
int cli_plot_start(const cli_command *command, cli_file *file, const char *directory, const char *name, int width,
                   int height);
int cli_plot_finish(const cli_command *command, cli_file *file, const char *directory, const char *name);
/* "set WHAT "name"": a name may hold anything; what is not plain becomes '?'. */
void cli_plot_label(FILE *stream, const char *what, const char *name);
/* The first `columns` of at most `most` evenly spaced rows of x (rows x stride), as a block of data called `name`. */
void cli_plot_points(FILE *stream, const char *name, size_t rows, size_t stride, size_t columns, size_t most,
                     const double *x);

/* A histogram of the first column of x (rows x stride) over a range, as a density: a block of data called by name and number. */
void cli_plot_histogram(FILE *stream, const char *name, size_t number, size_t rows, size_t stride, const double *x,
                        const double range[2]);
/* Where the first column of x (rows x stride) is, without the outermost in a thousand, and a margin. CLI_OK or an exit status. */
int cli_find_range(const cli_command *command, size_t rows, size_t stride, const double *x, double range[2]);

/* Curves of training: an iteration and what the command draws over it. */
enum { CLI_CURVES = 5 };
typedef struct cli_curves {
    size_t count, capacity;
    double (*point)[CLI_CURVES]; /* to be freed */
} cli_curves;
void cli_curves_add(cli_curves *curves, const double point[CLI_CURVES]);

#endif
