/* hollow/job.h - what a caller may want of a long job, of whatever kind: reports, stopping, checkpoints.
 *
 * Jobs are hl_density_fit and its like. The same job with the same data, settings and seed ends in the same bits, whether or not
 * it was stopped and resumed. */
#ifndef HOLLOW_JOB_H
#define HOLLOW_JOB_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Called with a report, whose type the job's header names; it is borrowed until the callback returns. Nonzero stops the job,
 * which then returns HL_STOPPED. The callback must not use the job's context. */
typedef int hl_progress_fn(const void *report, void *user);

/* Zero or NULL in any field means the default. */
typedef struct hl_job {
    hl_progress_fn *progress; /* default none */
    void *user;               /* passed to `progress` */
    const char *checkpoint;   /* a file for the state of the job; it is left there at the end. Default none */
    int resume;               /* nonzero: continue from `checkpoint`, which must be there */
    double save_every;        /* seconds between two states; default 20. A job that stops saves its state in any case */
    /* Called with the reason when a state could not be written: the job goes on and tries again after save_every. Default: silence. */
    void (*unsaved)(const char *reason, void *user);
} hl_job;

/* A stretch of iterations of a training, as model files keep it: at most 128 of them, without clock times, so that the same job writes the
 * same file. */
typedef struct hl_training_point {
    size_t iteration;   /* the last of the stretch */
    int phase;          /* hl_fit_phase; 0 where there is only one */
    size_t steps;       /* of the solver at its end; 0 if adaptive, or without */
    double loss;        /* mean */
    double evaluations; /* mean, of a row, forward and for the gradient; 0 if not counted */
    double validation;  /* the last of the stretch; NaN if there was none */
    size_t validated;   /* the iteration after which; 0 if there was none */
} hl_training_point;

#ifdef __cplusplus
}
#endif

#endif
