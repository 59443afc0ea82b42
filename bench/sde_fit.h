/* sde_fit.h - a known equation, observed and learned, and what came of it. */
#ifndef BENCH_SDE_FIT_H
#define BENCH_SDE_FIT_H

#include "problems/sde_equation.h"
#include "sde_records.h"

enum { FRESH_ROWS = 400 }; /* trajectories of fresh states */

typedef struct sde_run {
    hl_context *ctx;
    const sde_equation *equation;
    uint64_t seed;
    sde_view view;
    hl_sde_data data;
    double *states; /* those of the seed, if `held` is that seed */
    uint64_t held;
    double *t, *fresh, *f, *g; /* times, states, and room for values there */
} sde_run;

typedef struct sde_result {
    double error[2];
    double cpu_seconds, regression_seconds;
    char form[40], verdict[20];
    uint32_t reasons;
    bool correlated;
    hl_verdict full;
} sde_result;

/* Simulates what is missing, and sets `data`, which sde_problem_forget frees. */
hl_status sde_run_observe(sde_run *run);
/* hl_sde_learn; `names` and `values` (end with NULL) are options, or NULL. The verdict is "refused" if the data are. */
hl_status sde_run_learn(sde_run *run, const char *const *names, const char *const *values, sde_result *result);
/* The errors of any model. */
hl_status sde_run_errors(sde_run *run, hl_sde *sde, double error[2]);
void sde_run_free(sde_run *run);
/* What the verdict was given by, as members of an object. */
void sde_print_numbers(cli_json *json, const hl_verdict *verdict);
/* "density, residuals". */
const char *sde_reasons_text(uint32_t reasons, char *text, size_t size);

#endif
