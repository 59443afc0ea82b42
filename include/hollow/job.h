/* hollow/job.h - progress reports, stopping and checkpoints of long-running functions.
 *
 * hl_density_fit, hl_sde_learn and hl_vae_fit take an hl_job. The same data, settings and seed give bitwise the same result, whether
 * or not the job was stopped and resumed. */
#ifndef HOLLOW_JOB_H
#define HOLLOW_JOB_H

#include "hollow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Progress callback. The type of the report is documented with the function; it is borrowed until the callback returns. A nonzero
 * result stops the job, which then returns HL_STOPPED. The callback must not use the job's context. */
typedef int hl_progress_fn(const void *report, void *user);

/* Zero or NULL in any field means the default. */
typedef struct hl_job {
    /* Progress callback. Default none. */
    hl_progress_fn *progress;
    /* Passed to `progress` and `unsaved`. */
    void *user;
    /* Path of a checkpoint file for the state of the job. The job does not remove it at the end. Default none. */
    const char *checkpoint;
    /* Nonzero: continue from `checkpoint`, which must exist. */
    int resume;
    /* Seconds between two checkpoints, default 20. A job that is stopped writes a checkpoint in any case. */
    double save_every;
    /* Called with the reason when a checkpoint cannot be written. The job continues and tries again after `save_every`. Default none. */
    void (*unsaved)(const char *reason, void *user);
} hl_job;

/* One point of a training history: an interval of consecutive iterations. Model files keep at most 128 points. They contain no clock
 * times, so the same job always writes the same file. */
typedef struct hl_training_point {
    size_t iteration;   /* last iteration of the interval */
    int phase;          /* hl_fit_phase; 0 if training has one phase only */
    size_t steps;       /* steps of the ODE solver at the end of the interval; 0 if adaptive or without solver */
    double loss;        /* mean loss */
    double evaluations; /* mean evaluations per row, forward and for the gradient; 0 if not counted */
    double validation;  /* last validation loss of the interval; NaN if there was none */
    size_t validated;   /* iteration of that validation; 0 if there was none */
} hl_training_point;

#ifdef __cplusplus
}
#endif

#endif
