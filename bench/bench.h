/* bench.h - the parts of `hollow bench ddim`: a subject is a network with the plans of three jobs; it is verified, then timed. */
#ifndef BENCH_H
#define BENCH_H

#include "program/program.h"

extern const cli_command bench_command;

typedef struct bench_case {
    const char *name;
    size_t dim, features, hidden, width, rows;
    const char *conditioner; /* NULL: the default */
    size_t height;           /* conv: rows of the image */
} bench_case;

/* f; f and D^1 f; a training step: f, D^1 f, loss, gradients of all parameters. */
typedef enum bench_job { BENCH_F, BENCH_FD, BENCH_TRAIN, BENCH_JOBS } bench_job;

typedef struct bench_subject {
    hl_context *ctx;
    hl_net *net;
    hl_dtype dtype;
    size_t rows, dim, params, values; /* `values`: elements of all gradients together */
    hl_plan *plan[BENCH_JOBS];
    const void **param;
    void *x, *f, *d, *loss, *gradient; /* [rows, dim] three times; [1]; [values] */
    void **output[BENCH_JOBS];
} bench_subject;

/* Same case, same bits in parameters and x, for every kind of subject. On failure the subject can be freed and its context
 * has the message. */
hl_status bench_subject_create(bench_subject *s, const bench_case *c, hl_dtype dtype, int threads, bool dense);
void bench_subject_free(bench_subject *s);
hl_status bench_subject_run(bench_subject *s, bench_job job);

/* Largest errors, relative to the largest value of each kind. */
typedef struct bench_errors {
    double brute;       /* D^1 in float64 against the Jacobian's diagonal by vector-Jacobian products */
    double differences; /* the same against central differences of f */
    double gradient;    /* float64 gradients against central differences of the loss */
    double precision;   /* f, D^1 and gradients of the subject against float64 */
    double dense;       /* f, D^1 and gradients with masks skipped against dense masks */
    bool same_bits;     /* for any number of threads */
} bench_errors;

/* Compare `s` with float64 and brute force. */
hl_status bench_verify(const bench_case *c, bench_subject *s, bench_errors *errors);
/* Largest difference of f, D^1 and gradients of two subjects that have run all jobs. `trainable`: only of gradients that are
 * not zero in `a`; dense masks give masked weights a gradient, too. */
double bench_difference(const bench_subject *a, const bench_subject *b, bool trainable);
/* Are they the same bits? */
bool bench_same_bits(const bench_subject *a, const bench_subject *b);
/* Is every error within what its kind of comparison allows? */
bool bench_errors_small(const bench_errors *e);

/* `hollow bench ddim`; rows 0: the case's own. Returns the exit status. */
typedef struct bench_ddim_options {
    const char *name; /* of a case, or "all" */
    hl_dtype dtype;
    int threads;
    size_t rows;
    double seconds; /* for each measurement */
    double (*clock)(void);
} bench_ddim_options;
int bench_ddim(const bench_ddim_options *options);

/* `hollow bench conditioners`; rows 0: the default. Returns the exit status. */
int bench_conditioners(hl_dtype dtype, int threads, size_t rows, double seconds, double (*clock)(void));

/* `hollow bench learning`. Returns the exit status. */
typedef struct bench_learning_options {
    size_t iterations, parameters;
    int threads;
    const char *out; /* directory for learning.md, or NULL */
} bench_learning_options;
int bench_learning(const bench_learning_options *options);

/* `hollow bench solvers`; `out`: directory for solvers.csv and solvers.png, or NULL. Returns the exit status. */
int bench_solvers(bool quick, int threads, const char *out);

/* `hollow bench sde`; 0 or NULL: the default. Returns the exit status. */
typedef struct bench_sde_options {
    const char *problem, *method, *network, *density;
    const char *observed, *out; /* snapshots, sparse or full; directory of results, or with --bands their file */
    size_t first, seeds, iterations, hidden;
    double kept, rate;
    int threads;
    bool quick;    /* fewer trajectories */
    bool markdown; /* the table to stdout instead of lines of JSON */
} bench_sde_options;
int bench_sde(const bench_sde_options *options);
/* `hollow bench sde --bands`; problem NULL: all of them. */
int bench_sde_bands(const bench_sde_options *options);
int bench_sde_network(const bench_sde_options *options);  /* --method fp, pseudo-ml */
int bench_sde_paths(const bench_sde_options *options);    /* --paths */
int bench_sde_verdicts(const bench_sde_options *options); /* --verdicts */

/* `hollow bench density`; data NULL: all sets of known density; else one, a file, or a directory of npz files. iterations 0: the default of
 * hl_density_fit. splits: of a file, or 0. Returns the exit status. */
typedef struct bench_density_options {
    const char *data;
    size_t iterations, rows; /* rows 0: 20,000 */
    int threads;
    size_t splits;
    bool markdown; /* a table instead of JSON */
} bench_density_options;
int bench_density(const bench_density_options *options);

int bench_scale(size_t iterations); /* 0: 20 */

#endif
