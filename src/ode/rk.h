/* rk.h - inside the Runge-Kutta solver.
 *
 * Rows being solved sit in *slots* 0 .. active - 1; each has its own time, step and error control, and all take one step, or try
 * to, in a *round* that evaluates a stage of all slots in one call. Between rounds a slot is its y, k[0] = f(t, y) and its
 * hl_rk_slot. What is done to a row never depends on its slot or on other rows, so neither do its bits.
 *
 *     rk.c        creation; rows in and out of slots          round.c   a round: try, judge, accept or reject
 *     step.c      stages and the error of a step              control.c step sizes
 *     dense.c     dense output and events                     record.c  what a gradient needs of a solve
 *     replay.c    HL_REPLAY                                   reintegrate.c  HL_ADJOINT_REINTEGRATED */
#ifndef HL_ODE_RK_H
#define HL_ODE_RK_H

#include "ode/ode.h"
#include "ode/tableau.h"

/* What an evaluation said about a row: good, refused by the callback (> 0), or entry verdict - HL_RK_NOT_FINITE is not finite. */
enum { HL_RK_GOOD = 0, HL_RK_REFUSED = 1, HL_RK_NOT_FINITE = 2 };

typedef struct hl_rk_slot {
    size_t row;          /* of the solve */
    double start, t;     /* where it began; the last accepted step */
    double next;         /* end of the step being tried */
    double proposal;     /* size of the step to try */
    double error_before; /* of the last accepted step */
    bool rejected;       /* the last try was rejected */
    bool last;           /* the step ends at the end */
    bool even;           /* keeps to options.even_steps: none of its steps was rejected */
    bool passed;         /* this try is good so far */
    bool crossed;        /* the event changed sign in this step */
    bool done;           /* leaves its slot */
    size_t verdict;      /* of the last try */
    size_t time;         /* first output time not yet written */
    double theta;        /* an event cut the step at t + theta h; else 1 */
    double event, event_next;
    hl_ode_row info;
} hl_rk_slot;

/* Accepted steps of a solve: every stride-th of each row, with what the step control needs to go on from there. */
typedef struct hl_record_entry {
    size_t row, step, before;        /* before: the row's previous entry, or SIZE_MAX */
    double t, next, h, error_before; /* from t to next; h is the size that the stages use */
    bool rejected;
} hl_record_entry;

typedef struct hl_record {
    size_t capacity, count, stride;
    hl_record_entry *entry;
    double *y;             /* capacity x n: at the start of the step */
    int slopes;            /* of each step that are kept: those that later stages use, or 0 where memory is short */
    double *k;             /* capacity x slopes x n */
    size_t rows;           /* of the recorded solve */
    bool valid;            /* there is one */
    double end;            /* where it went */
    size_t *last, *steps;  /* of a row: its last entry, its number of steps */
    double *start, *theta; /* of a row: start time; place of the event in its last step, or 1 */
    size_t window;         /* steps of each row that are held while they are replayed */
    double *window_t, *window_h; /* rows x window */
    double *window_next;         /* rows x window */
    double *window_y;            /* rows x window x n */
    double *window_k;            /* rows x window x slopes x n */
    size_t *from, *to;           /* of a row: the steps in its window */
    size_t *cursor, *list;       /* scratch of the replay */
    double *stage[HL_RK_STAGES]; /* slots x n: where the stages were evaluated */
    double *gy;                  /* slots x n */
    double *next;                /* slots: ends of the steps */
} hl_record;

typedef struct hl_rk_state {
    const hl_rk *m;
    int ab; /* order of Adams-Bashforth, or 0 */
    const double *ab_weights;
    int stages;                       /* end + 1 + extra */
    bool adaptive;                    /* error control, or equal steps */
    size_t n, slots, active, counted; /* counted: values that have a weight */
    hl_rk_slot *slot;
    double *h, *t;                /* of slots: the step being tried; the time of a stage */
    size_t *index;                /* of slots: rows */
    size_t *verdict;              /* of the rows of a call */
    double *y, *end, *work;       /* slots x n: start and end of the step; scratch */
    double *k[HL_RK_STAGES];      /* slots x n */
    double *history[HL_AB_ORDER]; /* slots x n: f at step m is history[m % ab] */
    size_t *list, *list_index;    /* some slots, and their rows, times, states and slopes */
    double *list_t, *list_y, *list_k;
    hl_record record;
    struct hl_reintegration *back;
} hl_rk_state;

/* A solve under way. */
typedef struct hl_rk_job {
    size_t rows, taken; /* all; see hl_ode_take */
    double *t, *y;      /* the caller's, or NULL: nothing is written back */
    double end;
    size_t count; /* output times */
    const double *times;
    double *out;
    hl_ode_row *info;
    hl_event_fn *event;
    bool replay; /* steps go to the record's windows; a row leaves at step record.to[row] */
    bool imprecise;
    size_t failures;
    hl_rk_slot failed; /* the first by row, if there are failures */
} hl_rk_job;

/* ---- step.c ---- */

/* out (from row 0 on) = base + h sum_i coef_i k_i for slots first .. first + rows - 1, each with its own h; base may be NULL. */
void hl_rk_combine(const hl_rk_state *s, double *const *k, size_t first, size_t rows, const double *coef, int terms,
                   const double *base, double *out);
/* f, and for each row of the call whether it is good. Returns 0 if all are, > 0 if not, < 0 to stop. */
int hl_rk_evaluate(hl_ode *ode, const hl_rows *at, double *dy, size_t *verdict);
/* f at (t + c h, y) of slots first .. *good - 1 to k[stage]; slots where it is bad are moved to the end of the range, with their
 * verdict, and *good falls. Returns < 0 to stop. */
int hl_rk_stage(hl_ode *ode, size_t first, size_t *good, double c, const double *y, int stage);
/* All stages of the step and its end, for slots 0 .. *good - 1; likewise. */
int hl_rk_try(hl_ode *ode, size_t *good);
/* Error of the step, in units of the tolerance, of slots 0 .. good - 1: to info; what is not finite becomes the verdict. */
void hl_rk_measure(hl_ode *ode, size_t good);
/* Slot `to` receives what slot `from` is between rounds. */
void hl_rk_move(hl_rk_state *s, size_t to, size_t from);

/* ---- control.c ---- */

/* The first step of slots from `first` on, k[0] being there. Returns < 0 to stop. */
int hl_rk_first_steps(hl_ode *ode, const hl_rk_job *job, size_t first);
/* The step to try next: sets h and next; or the slot is done, with its status. */
void hl_rk_plan_step(hl_ode *ode, const hl_rk_job *job, size_t i);
/* After a try: the next step's size. */
void hl_rk_accepted(const hl_ode *ode, hl_rk_slot *slot);
void hl_rk_rejected(const hl_ode *ode, hl_rk_slot *slot);

/* ---- round.c ---- */

int hl_rk_round(hl_ode *ode, hl_rk_job *job); /* < 0 to stop */

/* ---- dense.c ---- */

/* Weights of the k_j in y(t + theta h) = y + h sum_j weight_j k_j. */
void hl_rk_dense_weights(const hl_rk *m, double theta, double *weight);
/* The state at t + theta h of the step that slot i has just made. */
void hl_rk_dense(const hl_rk_state *s, size_t i, double theta, double *y);
/* The event's values of slots first .. active - 1 at their start. Bad slots are done. Returns < 0 to stop. */
int hl_rk_first_events(hl_ode *ode, hl_rk_job *job, size_t first);
/* Its values at the end of the step of all slots that passed; sets `crossed`. Returns < 0 to stop. */
int hl_rk_events(hl_ode *ode, hl_rk_job *job, size_t good);
/* Where in the step of slot i the event changes sign: sets theta and next, and writes the state there to s->end. */
int hl_rk_locate(hl_ode *ode, hl_rk_job *job, size_t i);

/* ---- rk.c ---- */

/* Go on until no slot is active. */
hl_status hl_rk_run(hl_ode *ode, hl_rk_job *job);
hl_status hl_rk_solve(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y, double *out,
                      hl_ode_row *info);
/* Next piece of a slab: returns NULL while `slab` is NULL and only adds up. */
void *hl_slab_take(char *slab, size_t *used, size_t count, size_t size);

/* ---- record.c, replay.c, reintegrate.c ---- */

void hl_record_layout(hl_rk_state *s, const hl_ode_options *o, char *slab, size_t *used);
void hl_record_start(hl_rk_state *s, size_t rows, const double *t, double end);
/* Slot i has made a step, which is not yet taken over. */
void hl_record_step(hl_rk_state *s, size_t i, bool replay);
hl_status hl_replay_gradient(hl_ode *ode, double *gy, double *gparam);
hl_status hl_reintegrate_create(hl_ode *ode);
void hl_reintegrate_free(hl_ode *ode);
hl_status hl_reintegrate_solve(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y,
                               double *out, hl_ode_row *info);
hl_status hl_reintegrate_gradient(hl_ode *ode, double *gy, double *gparam);

#endif
