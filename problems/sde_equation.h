/* sde_equation.h - stochastic equations with known drift and diffusion, observed as snapshots or trajectories, and the
 * relative errors of what is learned of them.
 *
 * Groups: "bench", the equations on which results are reported; "old", those of sde_problem.h; "calibration", by which
 * the limits of verdicts were chosen; "fresh" and "unseen", which no constant of the library was chosen on. */
#ifndef PROBLEMS_SDE_EQUATION_H
#define PROBLEMS_SDE_EQUATION_H

#include "sde_problem.h"

enum { SDE_MOST_DIM = 10 };

typedef struct sde_equation {
    const char *name, *group;
    size_t dim, rows; /* columns; trajectories to learn from */
    double end;       /* seen at SDE_TIMES equal times of 0..end */
    void (*values)(double t, const double *x, double *f, double *g);
    void (*start)(uint64_t seed, size_t row, double *x);
    double correlation;      /* of the noise of the first two columns */
    bool time;               /* f or g depends on t */
    const sde_problem *with; /* the old problem that this is; then the last members but `rows` and `end` are not set */
} sde_equation;

extern const sde_equation sde_equations[]; /* the last has no name */
/* NULL if there is none of that name. */
const sde_equation *sde_equation_find(const char *name);
/* Is the equation in a list of names and groups, such as "cir,old"? "all": any. */
bool sde_equation_listed(const sde_equation *e, const char *list);
/* The first word of a list that is no name and no group, to `word`; false if there is none. */
bool sde_equation_unknown(const char *list, char *word, size_t size);

/* f, g (rows x dim) at rows of t and x. */
void sde_equation_values(const sde_equation *e, size_t rows, const double *t, const double *x, double *f, double *g);
/* Trajectories (rows x SDE_TIMES x dim). Euler with 60 steps between times. HL_STOPPED on Ctrl-C. */
hl_status sde_equation_simulate(const sde_equation *e, hl_context *ctx, size_t rows, uint64_t seed, double *states);

/* How trajectories are observed: all states without trajectories; a twentieth of them with; all with; those of the first 100 trajectories; those of the
 * first 200, with gaps of ten times, about a quarter of all; at ten times 60 states each, no trajectory twice, without trajectories. */
typedef enum sde_view { SDE_SNAPSHOTS, SDE_SPARSE, SDE_FULL, SDE_FEW, SDE_GAPS, SDE_SCARCE, SDE_VIEWS } sde_view;
extern const char *const sde_view_names[]; /* ends with NULL */
/* Arrays that sde_problem_forget frees. */
hl_status sde_equation_observe(const sde_equation *e, size_t rows, const double *states, sde_view view, uint64_t seed,
                               hl_sde_data *data);

/* Root mean square errors over those of the truth, over all columns and the states of `rows` trajectories: f, g. */
void sde_equation_errors(const sde_equation *e, size_t rows, const double *states, const double *f, const double *g,
                         double error[2]);

#endif
