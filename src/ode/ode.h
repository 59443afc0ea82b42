/* ode.h - inside a solver: what all methods share.
 *
 * ode.c checks arguments and fills in defaults; a *family* does the work: Runge-Kutta rows (rk.c) or one system of all rows
 * by SUNDIALS (multistep.c). Families call the system only through hl_call_*, which count and check. */
#ifndef HL_ODE_H
#define HL_ODE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/base.h"
#include "hollow/ode.h"

typedef struct hl_ode_family {
    /* Sets ode->state. Checks what is special to the family. */
    hl_status (*create)(hl_ode *ode);
    void (*free)(hl_ode *ode); /* takes a half-made state */
    /* hl_ode_solve_at; `out` is NULL and count is 1 for hl_ode_solve. Arguments are checked. */
    hl_status (*solve)(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y, double *out,
                       hl_ode_row *info);
    hl_status (*gradient)(hl_ode *ode, double *gy, double *gparam);
} hl_ode_family;
extern const hl_ode_family hl_ode_rk, hl_ode_multistep;

/* The family of a method (NULL: the default method); NULL if there is none of that name. */
const hl_ode_family *hl_ode_family_of(const char *method);

struct hl_ode {
    hl_context *ctx;
    hl_system system;
    hl_ode_options options; /* defaults filled in; `method` points to the family's name; `weights` is owned or NULL */
    const hl_ode_family *family;
    void *state; /* the family's */
    hl_ode_summary report;
    bool solved;           /* the last solve succeeded */
    bool stopped;          /* the context's user stopped it */
    atomic_size_t *next;   /* during hl_ode_solve_dealt: the next row that nobody has taken; otherwise NULL */
    hl_ode_counts *counts; /* where calls are counted: report.forward or report.backward */
};

/* hl_ode_solve of rows that several solvers share, each on a thread of its own: every row is solved by the one that takes it from
 * `next`, which starts at 0. Arguments are not checked; adams and bdf must have been created for one row at a time. The row of
 * the failure is the least of those that this solver took. */
hl_status hl_ode_solve_dealt(hl_ode *ode, atomic_size_t *next, size_t rows, double *t, double t1, double *y,
                             hl_ode_row *info);
/* Take the next row. False: there is none, and *taken, which starts at 0, is `rows`. */
bool hl_ode_take(hl_ode *ode, size_t rows, size_t *taken, size_t *row);

/* The first entry that is not finite, or size. */
size_t hl_first_bad(const double *v, size_t size);
/* What a call ended with that a callback or the context's user stopped: HL_ERR_CALLBACK or HL_STOPPED, with the message set. */
hl_status hl_ode_stopped(hl_ode *ode);

/* Call the system, count it, and see that what it wrote is finite. 0 is good; > 0: not here (the callback said so, or a value
 * is not finite, and then *bad, unless NULL, is the entry count * n + i); < 0: stop, the callback's value is in the report. */
int hl_call_rhs(hl_ode *ode, const hl_rows *at, double *dy, size_t *bad);
int hl_call_diagonal(hl_ode *ode, const hl_rows *at, double *dy, double *diagonal, size_t *bad);
int hl_call_jvp(hl_ode *ode, const hl_rows *at, const double *v, double *jv, size_t *bad);
int hl_call_vjp(hl_ode *ode, const hl_rows *at, const double *w, double *gy, double *gparam, size_t *bad);

#endif
