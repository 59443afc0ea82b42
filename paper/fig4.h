/* fig4.h - the parts of `hollow paper fig4`: fig4.c computes, fig4_draw.c draws. */
#ifndef PAPER_FIG4_H
#define PAPER_FIG4_H

#include "paper.h"
#include "problems/sde_problem.h"

enum { FIG4_POSITIONS = 120, FIG4_VELOCITIES = 90, FIG4_PATHS = 30, FIG4_STATES = 1500, FIG4_SIDE = 15 };
enum { FIG4_DENSITY_WIDTH = 1500, FIG4_DENSITY_HEIGHT = 1000, FIG4_FIELD_WIDTH = 1300, FIG4_FIELD_HEIGHT = 1080 };
extern const double fig4_low, fig4_high; /* positions and velocities of grids, the cells' outer edges */

/* Drift and diffusion at some states, learned and true. */
typedef struct fig4_field {
    size_t count;
    double *x, *f, *g, *true_f, *true_g; /* count x 2 each; one allocation, x owns it */
} fig4_field;

/* Trajectories are rows x SDE_TIMES x 2, (p, v); densities of the position are SDE_TIMES x FIG4_POSITIONS. */
typedef struct fig4 {
    const paper_settings *set;
    hl_context *ctx;
    hl_sde *sde;
    size_t rows, iterations;
    sde_outcome outcome;
    double residual; /* mean |R| over the states of `truth`, per unit of time */
    double *observed, *truth, *learned,
        *sampled; /* training data; fresh ones; from the learned equation; from the density */
    double *data_density, *density, *sde_density; /* of observed, of the model, of learned */
    /* Wasserstein distance of the position from that in `truth`: observed, learned, sampled */
    double floor[SDE_TIMES], sde_gap[SDE_TIMES], density_gap[SDE_TIMES];
    fig4_field states, grid; /* at states of fresh trajectories; on a grid of FIG4_SIDE x FIG4_SIDE */
} fig4;

double fig4_position(size_t cell); /* middle of a cell */

/* The pictures, as commands for gnuplot; `figure` is a fig4. Return 0. */
int fig4_draw_density(FILE *gnuplot, const void *figure);
int fig4_draw_field(FILE *gnuplot, const void *figure);

#endif
