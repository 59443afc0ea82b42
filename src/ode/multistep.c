/* multistep.c - Adams and BDF: all rows of a block are one system with one time and one step (integrator.h).
 *
 * Here is what a solve is: blocks of rows, output times, budget, and what to say when it fails. */
#include "ode/multistep.h"
#include "ode/tableau.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A tolerance is too fine if it is below this many times f's rounding: 1e-5 for float32. */
static const double ROUNDINGS = 160;

enum { RECENT = 50 }; /* evaluations */
/* The worst contraction of jacobi that is trusted. Hollow networks with kappa = 1000 and c to 0.5 have 0.08 to 0.67; HIRES, whose errors are
 * 600 to 40,000 tolerances, has 1 and more, OREGO with 3900 tolerances 0.7. */
static const double DOUBTFUL_RATE = 0.68;

/* ---- the system of a block of rows ---- */

hl_rows hl_multistep_rows(hl_multistep *m, double t, const double *y)
{
    for (size_t r = 0; r < m->rows; r++)
        m->t[r] = t;
    return (hl_rows){ .count = m->rows, .index = m->index, .t = m->t, .y = y };
}

static size_t evaluations(const hl_multistep *m)
{
    return m->ode->counts->f_calls + m->ode->counts->jvp_calls + m->ode->counts->vjp_calls;
}

void hl_multistep_begin(hl_multistep *m)
{
    m->spent = evaluations(m);
    m->over_budget = false;
    m->bad = HL_NO_ENTRY;
}

int hl_multistep_spend(hl_multistep *m)
{
    m->over_budget = m->over_budget || evaluations(m) - m->spent >= m->ode->options.max_evaluations;
    return m->over_budget || m->ode->report.callback ? -1 : 0;
}

int hl_multistep_note(hl_multistep *m, int value, const size_t *bad)
{
    if (value > 0) {
        m->bad = *bad;
        m->bad_at = evaluations(m);
    }
    return value;
}

static int block_rhs(void *user, double t, const double *y, double *dy)
{
    hl_multistep *m = user;
    hl_rows at = hl_multistep_rows(m, t, y);
    size_t bad = HL_NO_ENTRY;
    return hl_multistep_spend(m) ? -1 : hl_multistep_note(m, hl_call_rhs(m->ode, &at, dy, &bad), &bad);
}

static int block_diagonal(void *user, double t, const double *y, double *diagonal)
{
    hl_multistep *m = user;
    hl_rows at = hl_multistep_rows(m, t, y);
    size_t bad = HL_NO_ENTRY;
    return hl_multistep_note(m, hl_call_diagonal(m->ode, &at, NULL, diagonal, &bad), &bad);
}

static int block_apply(void *user, double t, const double *y, const double *v, double *jv)
{
    hl_multistep *m = user;
    hl_rows at = hl_multistep_rows(m, t, y);
    size_t bad = HL_NO_ENTRY;
    return hl_multistep_spend(m) ? -1 : hl_multistep_note(m, hl_call_jvp(m->ode, &at, v, jv, &bad), &bad);
}

hl_problem hl_multistep_problem(hl_multistep *m)
{
    const hl_system *s = &m->ode->system;
    return (hl_problem){ .size = m->rows * s->n,
                         .block = s->n,
                         .rhs = block_rhs,
                         .diagonal = s->diagonal ? block_diagonal : NULL,
                         .apply = s->jvp ? block_apply : NULL,
                         .user = m };
}

/* ---- creation ---- */

static const char *const names[] = { HL_MULTISTEP_NAMES, NULL };
enum { ITERATIONS = 6 }; /* in the order of hl_iteration */

static void set_method(hl_multistep *m)
{
    size_t k = hl_name_index(names, m->ode->options.method);
    m->bdf = k >= ITERATIONS;
    m->iteration = k == 2 * ITERATIONS ? HL_AUTO : (hl_iteration)(k % ITERATIONS);
}

static hl_status check_system(const hl_multistep *m)
{
    const hl_ode *ode = m->ode;
    if ((m->iteration == HL_JACOBI || m->iteration == HL_JACOBI_FRESH) && !ode->system.diagonal)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "%s needs the system's diagonal; without it use %s-functional",
                       ode->options.method, m->bdf ? "bdf" : "adams");
    if ((m->iteration == HL_GMRES || m->iteration == HL_NEWTON || m->iteration == HL_AUTO) && !ode->system.jvp)
        return hl_fail(ode->ctx, HL_ERR_INVALID, "%s needs the system's jvp; without it use %s-jacobi or -functional",
                       ode->options.method, m->bdf ? "bdf" : "adams");
    return HL_OK;
}

static hl_status check_options(const hl_multistep *m)
{
    const hl_ode_options *o = &m->ode->options;
    int highest = m->bdf ? 5 : 12;
    if (o->steps)
        return hl_fail(m->ode->ctx, HL_ERR_INVALID,
                       "%s has adaptive steps; options.steps is for Runge-Kutta and ab methods", o->method);
    if (o->event)
        return hl_fail(m->ode->ctx, HL_ERR_INVALID, "%s has no events; use a Runge-Kutta method", o->method);
    if (o->max_order < 0 || o->max_order > highest)
        return hl_fail(m->ode->ctx, HL_ERR_INVALID, "max_order is %d; %s has orders 1 to %d", o->max_order, o->method,
                       highest);
    if (o->gradient == HL_REPLAY)
        return hl_fail(m->ode->ctx, HL_ERR_INVALID, "HL_REPLAY is for Runge-Kutta methods; use HL_ADJOINT with %s",
                       o->method);
    return HL_OK;
}

static hl_status make_forward(hl_multistep *m)
{
    const hl_ode_options *o = &m->ode->options;
    size_t n = m->ode->system.n;
    hl_integrator_options options = { .bdf = m->bdf,
                                      .iteration = m->iteration,
                                      .max_order = o->max_order,
                                      .rtol = o->rtol,
                                      .atol = o->atol,
                                      .weights = o->weights,
                                      .first_step = o->first_step,
                                      .max_step = o->max_step,
                                      .paper_test = o->paper_test != 0,
                                      .max_size = hl_size_mul(o->rows, n),
                                      .block = n };
    return hl_integrator_create(m->ode->ctx, &options, &m->forward);
}

static hl_status multistep_create(hl_ode *ode)
{
    hl_multistep *m = hl_calloc(ode->ctx, 1, sizeof *m);
    hl_status status = HL_OK;
    if (!m)
        return HL_ERR_NOMEM;
    ode->state = m;
    m->ode = ode;
    set_method(m);
    if ((status = check_system(m)) != HL_OK || (status = check_options(m)) != HL_OK)
        return status;
    m->index = hl_calloc(ode->ctx, ode->options.rows, sizeof *m->index);
    m->t = m->index ? hl_calloc(ode->ctx, ode->options.rows, sizeof *m->t) : NULL;
    m->errors = m->t ? hl_calloc(ode->ctx, hl_size_mul(ode->options.rows, ode->system.n), sizeof *m->errors) : NULL;
    if (!m->errors)
        return HL_ERR_NOMEM;
    status = make_forward(m);
    return status == HL_OK && ode->options.gradient ? hl_adjoint_create(m) : status;
}

static void multistep_free(hl_ode *ode)
{
    hl_multistep *m = ode->state;
    if (!m)
        return;
    hl_adjoint_free(m);
    hl_integrator_free(m->forward);
    hl_free(ode->ctx, m->errors);
    hl_free(ode->ctx, m->t);
    hl_free(ode->ctx, m->index);
    hl_free(ode->ctx, m);
    ode->state = NULL;
}

/* ---- failing ---- */

static size_t largest(const double *values, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        best = values[i] > values[best] ? i : best;
    return best;
}

/* Statuses of a step become those of hollow/ode.h. CVODE may end for one reason and say another: a callback's word, the
 * budget, and values that were not finite a moment ago go before the step that became too small for them. */
static hl_status refine(const hl_multistep *m, hl_status status)
{
    bool bad = m->bad != HL_NO_ENTRY && evaluations(m) - m->bad_at <= RECENT;
    if (m->ode->report.callback)
        return HL_ERR_CALLBACK;
    if (m->over_budget)
        return HL_ERR_BUDGET;
    if (bad && (status == HL_ERR_STEP || status == HL_ERR_CONVERGENCE))
        return HL_ERR_NOT_FINITE;
    return status == HL_ERR_NOT_FINITE && !bad ? HL_ERR_STEP : status;
}

/* What else to try: never what is in use, nor what is weaker. */
static const char *advice(const hl_multistep *m)
{
    bool newton = m->iteration == HL_NEWTON || (m->iteration == HL_AUTO && m->ode->system.n <= HL_AUTO_NEWTON_BLOCK);
    if (newton)
        return m->bdf ? "check that f is continuous and that jvp is its derivative" : "or try bdf-newton";
    if (m->iteration == HL_GMRES || m->iteration == HL_AUTO)
        return "or try bdf-newton, which needs n jvp products per Jacobian";
    return m->ode->system.jvp ? "or try auto" : "or provide a jvp and try auto";
}

hl_status hl_multistep_fail(hl_multistep *m, hl_integrator *in, hl_status status, const char *what)
{
    hl_ode *ode = m->ode;
    size_t n = ode->system.n, size = m->rows * n;
    double t = hl_integrator_time(in), h = hl_integrator_last_step(in);
    status = refine(m, status);
    size_t entry = status == HL_ERR_NOT_FINITE ? m->bad % size : largest(m->errors, size);
    size_t row = m->index[entry / n], value = entry % n;
    switch (status) {
    case HL_ERR_NOMEM:
        return status;
    case HL_ERR_CALLBACK:
        return hl_fail(ode->ctx, status, "%sa callback returned %d near t = %g", what, ode->report.callback, t);
    case HL_ERR_BUDGET:
        return hl_fail_at(ode->ctx, status, hl_at(row, value),
                          "%sthe %zu evaluations are used up at t = %g (step %g); this value has the largest error: "
                          "increase max_evaluations or the tolerances; %s",
                          what, ode->options.max_evaluations, t, h, advice(m));
    case HL_ERR_CONVERGENCE:
        return hl_fail_at(ode->ctx, status, hl_at(row, value),
                          "%sthe iteration of %s does not converge at t = %g even with small steps (last %g); this "
                          "value changes most: increase the tolerances; %s",
                          what, ode->options.method, t, h, advice(m));
    case HL_ERR_NOT_FINITE:
        return hl_fail_at(ode->ctx, status, hl_at(row, value), "%sf is not finite just after t = %g", what, t);
    default:
        return hl_fail_at(
            ode->ctx, status, hl_at(row, value),
            "%sthe step became too small at t = %g (last %g); this value has the largest error, %.3g tolerances: the "
            "solution may have a singularity or jump there; otherwise increase the tolerances",
            what, t, h, m->errors[entry]);
    }
}

/* ---- solving ---- */

typedef struct solve {
    size_t count, next; /* output times, and the first that is still to come */
    const double *times;
    double *out;       /* count x all x n, or NULL */
    size_t first, all; /* the block's first row; rows of the whole solve */
    double direction;
} solve;

static double *place(const hl_multistep *m, const solve *s, size_t k)
{
    return s->out + (k * s->all + s->first) * m->ode->system.n;
}

/* Write what the last step passed. */
static hl_status write_out(hl_multistep *m, solve *s)
{
    double t = hl_integrator_time(m->forward);
    size_t size = m->rows * m->ode->system.n;
    hl_status status = HL_OK;
    for (; s->next < s->count && (s->times[s->next] - t) * s->direction <= 0 && status == HL_OK; s->next++) {
        if (s->out && s->times[s->next] == t)
            memcpy(place(m, s, s->next), hl_integrator_state(m->forward), size * sizeof(double));
        else if (s->out)
            status = hl_integrator_dense(m->forward, s->times[s->next], 0, place(m, s, s->next));
    }
    return status;
}

/* Times at the start itself, and those that are not reached. */
static void write_constant(hl_multistep *m, solve *s, const double *y)
{
    size_t size = m->rows * m->ode->system.n;
    for (size_t k = s->next; s->out && k < s->count; k++)
        for (size_t i = 0; i < size; i++)
            place(m, s, k)[i] = y ? y[i] : NAN;
}

static hl_status integrate(hl_multistep *m, solve *s)
{
    hl_status status = HL_OK;
    while (status == HL_OK) {
        status = hl_integrator_step(m->forward);
        if (status < 0) {
            hl_integrator_errors(m->forward, m->errors);
            return hl_multistep_fail(m, m->forward, status, "");
        }
        hl_status written = write_out(m, s);
        if (written == HL_OK && m->adjoint)
            written = hl_adjoint_step(m);
        if (written != HL_OK)
            return written;
    }
    return HL_OK;
}

/* A way too short for CVODE to start on: one step of Euler's method is exact to rounding. */
static hl_status creep(hl_multistep *m, double t, double t1, double *y)
{
    size_t size = m->rows * m->ode->system.n;
    int value = t1 == t ? 0 : block_rhs(m, t, y, m->errors);
    if (value)
        return hl_fail(m->ode->ctx,
                       value < 0               ? HL_ERR_CALLBACK
                       : m->bad == HL_NO_ENTRY ? HL_ERR_STEP
                                               : HL_ERR_NOT_FINITE,
                       "the system cannot be evaluated at t = %g", t);
    for (size_t i = 0; t1 != t && i < size; i++)
        y[i] += (t1 - t) * m->errors[i];
    return HL_OK;
}

static hl_status check_precision(const hl_multistep *m, const double *y)
{
    const hl_ode_options *o = &m->ode->options;
    double rounding = m->ode->system.rounding > 0 ? m->ode->system.rounding : DBL_EPSILON;
    for (size_t i = 0; i < m->rows * m->ode->system.n; i++)
        if (o->atol + o->rtol * fabs(y[i]) < ROUNDINGS * rounding * fabs(y[i]))
            return hl_fail(m->ode->ctx, HL_IMPRECISE, "rtol %g is finer than the rounding error of f; use %.1g or more",
                           o->rtol, ROUNDINGS * rounding);
    return HL_OK;
}

/* Solves that CVODE takes for good and that need not be. */
static hl_status check_trust(const hl_multistep *m)
{
    size_t lost = hl_integrator_lost(m->forward), n = m->ode->system.n;
    double rate = hl_integrator_worst_rate(m->forward);
    if (lost < m->rows * n)
        return hl_fail_at(m->ode->ctx, HL_IMPRECISE, hl_at(m->index[lost / n], lost % n),
                          "this value decreased by so many orders of magnitude that earlier errors may exceed its "
                          "tolerance: increase the tolerances%s",
                          m->iteration == HL_GMRES ? " or use bdf-newton" : "");
    if (m->iteration != HL_AUTO && rate > DOUBTFUL_RATE)
        return hl_fail(m->ode->ctx, HL_IMPRECISE,
                       "the iteration of %s reduced its error only by a factor of %.2g, so the solution may be less "
                       "accurate than the tolerance; %s",
                       m->ode->options.method, 1 / rate, advice(m));
    return HL_OK;
}

static void tell(const hl_multistep *m, const hl_ode_counts *before, hl_status status, hl_ode_row *info)
{
    const hl_ode_counts *now = m->ode->counts;
    size_t n = m->ode->system.n;
    for (size_t r = 0; info && r < m->rows; r++) {
        size_t worst = status == HL_ERR_NOT_FINITE && m->bad / n == r ? m->bad % n : largest(m->errors + r * n, n);
        info[r] = (hl_ode_row){ .status = status,
                                .steps = now->steps - before->steps,
                                .rejected = now->rejected - before->rejected,
                                .evaluations = evaluations(m) - m->spent,
                                .component = status < 0 ? worst : 0,
                                .step = now->steps > before->steps ? hl_integrator_last_step(m->forward) : 0,
                                .error = m->errors[r * n + largest(m->errors + r * n, n)] };
    }
}

/* One block of rows. */
static hl_status solve_block(hl_multistep *m, solve *s, double *t, double *y, hl_ode_row *info)
{
    hl_ode *ode = m->ode;
    size_t size = m->rows * ode->system.n;
    double t0 = t[0], t1 = s->times[s->count - 1];
    hl_ode_counts before = *ode->counts;
    hl_status status = HL_OK;
    hl_multistep_begin(m);
    memset(m->errors, 0, size * sizeof *m->errors);
    m->bad = hl_first_bad(y, size);
    if (m->bad < size) {
        status = hl_fail_at(
            ode->ctx, HL_ERR_NOT_FINITE, hl_at(m->index[m->bad / ode->system.n], m->bad % ode->system.n),
            "the initial state is not finite; %s solves %zu rows as one system", ode->options.method, m->rows);
        write_constant(m, s, NULL);
        tell(m, &before, status, info);
        return status;
    }
    m->bad = HL_NO_ENTRY;
    if (m->adjoint)
        hl_adjoint_begin(m, t0, y);
    s->direction = t1 - t0;
    while (s->next < s->count && s->times[s->next] == t0) {
        if (s->out)
            memcpy(place(m, s, s->next), y, size * sizeof *y);
        s->next++;
    }
    if (fabs(t1 - t0) <= 8 * DBL_EPSILON * fmax(fabs(t0), fabs(t1))) {
        status = creep(m, t0, t1, y);
        write_constant(m, s, status == HL_OK ? y : NULL);
        t0 = status == HL_OK ? t1 : t0;
    } else {
        hl_problem problem = hl_multistep_problem(m);
        status = hl_integrator_begin(m->forward, &problem, t0, y, t1);
        if (status == HL_OK) {
            status = integrate(m, s);
            write_constant(m, s, NULL);
            if (status == HL_OK)
                hl_integrator_errors(m->forward, m->errors);
            hl_integrator_count(m->forward, ode->counts);
            memcpy(y, hl_integrator_state(m->forward), size * sizeof *y);
            t0 = hl_integrator_time(m->forward);
            if (status == HL_OK)
                status = check_trust(m);
        }
    }
    for (size_t r = 0; r < m->rows; r++)
        t[r] = t0;
    if (status == HL_OK)
        status = check_precision(m, y);
    if (m->adjoint && status >= 0)
        hl_adjoint_end(m, t0, y);
    tell(m, &before, status, info);
    return status;
}

static hl_status multistep_solve(hl_ode *ode, size_t rows, double *t, size_t count, const double *times, double *y,
                                 double *out, hl_ode_row *info)
{
    hl_multistep *m = ode->state;
    size_t n = ode->system.n;
    hl_status first = HL_OK;
    for (size_t r = 1; r < rows && !ode->next; r++)
        if (t[r] != t[0])
            return hl_fail(ode->ctx, HL_ERR_INVALID,
                           "rows 0 and %zu start at %g and %g; %s solves all rows as one system, so they must start at "
                           "the same time",
                           r, t[0], t[r], ode->options.method);
    size_t from = 0, taken = 0;
    for (; ode->next ? hl_ode_take(ode, rows, &taken, &from) : from < rows; from += m->rows) {
        solve s = { .count = count, .times = times, .out = out, .first = from, .all = rows };
        m->rows = rows - from < ode->options.rows ? rows - from : ode->options.rows;
        for (size_t r = 0; r < m->rows; r++)
            m->index[r] = from + r;
        hl_kept_failure kept; /* the first failure, which is reported */
        hl_failure_keep(ode->ctx, &kept);
        hl_status status = solve_block(m, &s, t + from, y + from * n, info ? info + from : NULL);
        if (first < 0 || status == HL_OK)
            hl_failure_restore(ode->ctx, &kept);
        else if (status < 0 || first == HL_OK)
            first = status;
        if (status == HL_ERR_CALLBACK)
            break;
    }
    if (first == HL_ERR_CALLBACK && info) /* the rows that were still to come */
        for (from += m->rows; ode->next ? hl_ode_take(ode, rows, &taken, &from) : from < rows; from++)
            info[from] = (hl_ode_row){ .status = HL_ERR_CALLBACK };
    return first;
}

const hl_ode_family hl_ode_multistep = {
    .create = multistep_create, .free = multistep_free, .solve = multistep_solve, .gradient = hl_adjoint_gradient
};
