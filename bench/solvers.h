/* solvers.h - the parts of `hollow bench solvers`: sections that measure, and what shows the results. */
#ifndef BENCH_SOLVERS_H
#define BENCH_SOLVERS_H

#include "bench.h"

/* One line of the results. What does not apply is NaN or NULL and is not printed. Counts are of calls: one call evaluates all rows of
 * the system. Over several seeds they are medians. */
typedef struct solver_result {
    const char *section; /* "stiff", "honest", "network", "gradient", "inversion" */
    const char *problem, *method, *adjoint;
    double kappa, coupling, lipschitz, sign, rtol;
    double f, f_low, f_high, diagonal, jvp, vjp, steps;
    double ratio, ratio_low, ratio_high; /* evaluations of dopri5 over those of the method: median, least, most */
    double ratio_tenth, ratio_quarter, ratio_three_quarters, ratio_nine_tenths; /* quantiles over networks */
    double error; /* the largest, in units of the tolerance; of gradients, relative */
    double drift; /* of y integrated back, in units of the tolerance */
    /* honest: of the problem; the trusted code\'s error; counts of runs */
    double amplification, trusted, runs, good, dishonest;
    double found; /* fraction of rows whose inverse was found */
    double seconds;
} solver_result;

enum { SOLVER_RESULTS = 400 };

typedef struct solver_bench {
    hl_context *ctx;
    bool quick;
    size_t seeds, count;
    solver_result result[SOLVER_RESULTS];
} solver_bench;

solver_result solver_result_empty(const char *section, const char *method);
/* Keep a result and print it. */
void solver_bench_add(solver_bench *b, const solver_result *result);

/* The sections. HL_STOPPED: by Ctrl-C. */
hl_status solver_bench_networks(solver_bench *b);
hl_status solver_bench_gradients(solver_bench *b);
hl_status solver_bench_honest(solver_bench *b);

/* The picture, as commands for gnuplot. */
enum { SOLVER_WIDTH = 1860, SOLVER_HEIGHT = 700 };
void solver_bench_draw(FILE *gnuplot, const solver_bench *b);

#endif
