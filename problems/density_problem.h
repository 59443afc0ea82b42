/* density_problem.h - data whose density is known, so that what is learned of them can be judged. */
#ifndef PROBLEMS_DENSITY_PROBLEM_H
#define PROBLEMS_DENSITY_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DENSITY_PROBLEMS = 19, DENSITY_MOST_DIM = 10 };

typedef struct density_problem {
    const char *name;
    size_t dim;
    /* Row `row` of seed `seed`: the same numbers whenever it is drawn. */
    void (*draw)(uint64_t seed, uint64_t row, double *x);
    double (*logp)(const double *x);
    bool chose; /* the defaults of hl_density_fit were chosen with this set at hand, or with one like it */
} density_problem;

extern const density_problem density_problems[DENSITY_PROBLEMS + 1]; /* ends with a NULL name */

#endif
