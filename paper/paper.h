/* paper.h - what `hollow paper` reproduces; one file for each figure or table, what they share, and the parts of fig1. */
#ifndef PAPER_PAPER_H
#define PAPER_PAPER_H

#include "program/program.h"

extern const cli_command paper_command;

typedef struct paper_settings {
    const char *out;
    bool quick, shared, anchor;
    uint64_t seed, dim, threads, epochs;
    const char *data, *net, *only; /* NULL: the figure's default */
} paper_settings;

typedef struct paper_item {
    const char *name, *summary;
    int (*run)(const paper_settings *set);
} paper_item;

extern const paper_item paper_fig1, paper_fig2, paper_fig3, paper_fig4, paper_fig5, paper_table1, paper_posteriors;

/* A file or a picture of a figure. `write` gets the file, or gnuplot's input, and the figure; it returns 0, or -1 if out of
 * memory. */
typedef struct paper_file {
    const char *name;
    int (*write)(FILE *out, const void *figure);
    int width, height; /* of a picture, in pixels; else 0 */
} paper_file;
/* Make all of them in set->out and print their names; pictures only if there is gnuplot. Returns the exit status, having said
 * what went wrong. */
int paper_write(const paper_settings *set, size_t count, const paper_file *files, const void *figure);
/* Mean, and standard deviation (of a sample; NaN for one value) unless NULL. */
double paper_mean(const double *values, size_t count, double *deviation);

/* Median of the 5 values around i, to keep single batches out of the pictures. */
double paper_filtered(const double *values, size_t count, size_t i);

/* ---- fig1 ---- */

enum { FIG1_FEATURES = 2, FIG1_SIZES = 9 };
enum { FIG1_WIDTH = 1400, FIG1_JACOBIAN_HEIGHT = 1110, FIG1_TIME_HEIGHT = 860 }; /* pixels */

/* The Jacobian of a random hollow network at a random point, in float64, d = dim, n = d * FIG1_FEATURES:
 *   df/dx = dtau/dx + dtau/dh dh/dx */
typedef struct fig1_jacobian {
    size_t dim;
    double *total;    /* [d, d] df/dx, by d reverse sweeps */
    double *direct;   /* [d, d] dtau/dx: the sweeps with h held */
    double *hollow;   /* [d, d] the sweeps through h alone */
    double *by_h;     /* [d, n] dtau/dh */
    double *h_by_x;   /* [n, d] dh/dx */
    double *diagonal; /* [d] D f, by one forward sweep with h held */
    double *memory;   /* owns all of these */
    /* largest differences; the first two must be exactly zero */
    double direct_off_diagonal, hollow_diagonal, diagonal_error, sum_error, product_error;
} fig1_jacobian;

enum { FIG1_TIME_FEATURES = 32, FIG1_TIME_HIDDEN = 256, FIG1_TIME_UNITS = 64 };

/* Seconds per row, best of many, of networks of growing dimension. */
typedef struct fig1_time {
    size_t count, dim[FIG1_SIZES];
    double f[FIG1_SIZES], fd[FIG1_SIZES], brute[FIG1_SIZES];
} fig1_time;

/* On failure the message is on the context. */
hl_status fig1_jacobian_compute(fig1_jacobian *j, const hl_net *net, hl_context *ctx, uint64_t seed);
void fig1_jacobian_free(fig1_jacobian *j);
hl_status fig1_time_measure(fig1_time *t, hl_context *ctx, bool quick, uint64_t seed); /* HL_STOPPED on Ctrl-C */

/* The pictures, as commands for gnuplot. Return 0, or -1 if out of memory. */
int fig1_draw_jacobian(FILE *gnuplot, const fig1_jacobian *j);
int fig1_draw_time(FILE *gnuplot, const fig1_time *t);

#endif
