/* sde_problem.h - stochastic equations that are known, so that what is learned of them can be judged: simulate, observe, learn,
 * measure. Trajectories are seen at SDE_TIMES equal times of 0..5. */
#ifndef PROBLEMS_SDE_PROBLEM_H
#define PROBLEMS_SDE_PROBLEM_H

#include "program/program.h"

enum { SDE_TIMES = 50, SDE_TRAIN = 5000, SDE_FRESH = 2000 }; /* times; trajectories to learn from and to judge by */

typedef struct sde_problem {
    const char *name;
    size_t dim;
    hl_noise_fn *coefficients; /* the equation; also the truth that errors are measured against */
    void (*start)(uint64_t seed, size_t row, double *y);
    const char *method; /* of its simulation */
} sde_problem;

/* The paper's pendulum: dp = v dt, dv = -2 sin(p) dt + 0.2 dW, from two modes at rest, p = -1 and 1.
 * A chain of five oscillators, x = (q_1..q_5, v_1..v_5): dq = v dt,
 * dv_i = (-q_i - (2 q_i - q_i-1 - q_i+1) - v_i / 4) dt + 0.3 sqrt((1 + v_i^2) / 2) dW_i, also from two modes. */
extern const sde_problem sde_pendulum, sde_chain;
/* Others, for what a fit does where nobody tuned it: one column that comes to rest (ou), two wells that fill (well), growth with a
 * noise in proportion (gbm), an oscillator on its limit cycle (vanderpol), ten linear columns (linear). */
extern const sde_problem sde_ou, sde_well, sde_gbm, sde_vanderpol, sde_linear;
extern const sde_problem *const sde_problems[]; /* all; the last is NULL */

double sde_problem_time(size_t k);
/* From y (rows x n) at time 0 along any equation: states (rows x SDE_TIMES x n); y is moved to the end. HL_STOPPED on Ctrl-C. */
hl_status sde_problem_follow(hl_context *ctx, const hl_noise_system *system, const hl_simulator_options *options,
                             size_t rows, double *y, double *states);
/* The same for a problem from its start. Other seeds give other trajectories, more rows begin with the same ones. */
hl_status sde_problem_simulate(const sde_problem *p, hl_context *ctx, size_t rows, uint64_t seed, double *states);

/* Each state of `rows` trajectories is kept with probability `share`, and with a smaller share fewer of the same. `data` gets
 * arrays that sde_problem_forget frees. */
hl_status sde_problem_observe(const sde_problem *p, size_t rows, const double *states, double share, uint64_t seed,
                              hl_sde_data *data);
void sde_problem_forget(hl_sde_data *data);

typedef struct sde_outcome {
    double loss, nll;            /* as the last report of training says */
    double drift, diffusion;     /* mean absolute errors over states and dimensions */
    double seconds, cpu_seconds; /* of training */
} sde_outcome;

/* Create a model (`spec` needs no dim), start it by options->seed and train it. HL_STOPPED on Ctrl-C. Free *sde in any case. */
hl_status sde_problem_learn(const sde_problem *p, hl_context *ctx, const hl_sde_spec *spec,
                            const hl_sde_fit_options *options, const hl_sde_data *data, hl_sde **sde,
                            sde_outcome *outcome);
/* Errors over all states of `rows` trajectories. */
hl_status sde_problem_judge(const sde_problem *p, hl_sde *sde, size_t rows, const double *states, sde_outcome *outcome);

#endif
