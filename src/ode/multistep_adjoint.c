/* multistep_adjoint.c - gradients of Adams and BDF solves by the continuous adjoint:
 *
 *     a' = -J(t, y)' a,   a(t1) = gy,          g' = -a' df/dp,   g(t1) = 0      ->   dL/dy0 = a(t0),   dL/dp = g(t0)
 *
 * integrated from t1 to t0 by the same family and iteration, g as integrals under error control, a scaled to max |gy| = 1 so
 * that tolerances mean the same for every loss.
 *
 * HL_ADJOINT takes y(t) from a record of the solve: every step's own polynomial, so that the interpolation is as good as
 * the solution whatever the order. The record is a slab; when half of it is full, the steps are dropped and only their
 * start is kept as a mark. The backward pass goes from mark to mark and solves the dropped stretches again.
 *
 * HL_ADJOINT_REINTEGRATED integrates y backwards beside a: unknowns (y, a). */
#include <float.h>
#include <math.h>
#include <string.h>

#include "ode/multistep.h"

/* A recorded step: y(t) = sum_j c_j ((t - to) / h)^j with order + 1 vectors c_j behind the head. */
typedef struct step {
    double from, to, h;
    size_t order;
    size_t previous; /* where in the slab; HL_NO_ENTRY for the first */
} step;

/* Of the tolerances of the solve, for the adjoint: where the system contracts, a and its integrals become small beside gy,
 * and they are wanted to a relative error. */
static const double RTOL_PART = 0.3, ATOL_PART = 0.1;

enum { HEAD = sizeof(step) / sizeof(double), LEAST_STEPS = 128, LEAST_MARKS = 64 };

struct hl_adjoint {
    hl_integrator *backward;
    double *slab; /* of `capacity` doubles */
    size_t capacity, used, last;
    size_t at;     /* the step that was interpolated last */
    double *marks; /* of the stretches: t and y of their starts */
    size_t marks_capacity, marks_count;
    size_t loaded; /* the stretch whose steps the slab holds */
    bool overflow, usable;
    double t0, t1, before;   /* before: where the next step to be recorded begins */
    double *y0, *y1;         /* of the solve */
    double *y, *a, *scratch; /* work: y(t); unknowns of the backward problem, twice as many; one more */
    double *integrals;
};

static size_t unknowns(const hl_multistep *m)
{
    return m->rows * m->ode->system.n;
}

/* ---- creation ---- */

static hl_status make_backward(hl_multistep *m, hl_adjoint *a)
{
    const hl_ode_options *o = &m->ode->options;
    size_t n = m->ode->system.n, copies = o->gradient == HL_ADJOINT_REINTEGRATED ? 2 : 1;
    hl_integrator_options options = { .bdf = m->bdf,
                                      .iteration = m->iteration,
                                      .max_order = o->max_order,
                                      .rtol = RTOL_PART * o->rtol,
                                      .atol = ATOL_PART * o->atol,
                                      .max_step = o->max_step,
                                      .paper_test = o->paper_test != 0,
                                      .max_size = hl_size_mul(copies, hl_size_mul(o->rows, n)),
                                      .block = n,
                                      .quadratures = m->ode->system.n_params };
    return hl_integrator_create(m->ode->ctx, &options, &a->backward);
}

/* The slab gets two thirds of the memory, the marks a third; but the slab at least room for some steps. */
static hl_status make_record(hl_multistep *m, hl_adjoint *a)
{
    const hl_ode_options *o = &m->ode->options;
    size_t size = hl_size_mul(o->rows, m->ode->system.n), highest = m->bdf ? 5 : 12;
    size_t doubles = o->checkpoint_bytes / sizeof(double);
    size_t longest = hl_size_add(hl_size_mul(highest + 1, size), HEAD);
    size_t least = hl_size_mul(LEAST_STEPS, longest), most = hl_size_mul(o->max_evaluations, longest);
    if (o->gradient != HL_ADJOINT)
        return HL_OK;
    a->capacity = doubles / 3 * 2;
    a->capacity = a->capacity < least ? least : a->capacity > most ? most : a->capacity;
    a->marks_capacity = doubles / 3 / hl_size_add(size, 1) + LEAST_MARKS;
    a->marks_capacity = a->marks_capacity > o->max_evaluations ? o->max_evaluations + LEAST_MARKS : a->marks_capacity;
    a->slab = hl_alloc(m->ode->ctx, hl_size_mul(a->capacity, sizeof(double)));
    a->marks =
        a->slab ? hl_alloc(m->ode->ctx, hl_size_mul(hl_size_mul(a->marks_capacity, size + 1), sizeof(double))) : NULL;
    return a->marks ? HL_OK : HL_ERR_NOMEM;
}

hl_status hl_adjoint_create(hl_multistep *m)
{
    hl_context *ctx = m->ode->ctx;
    size_t size = hl_size_mul(m->ode->options.rows, m->ode->system.n);
    hl_adjoint *a = m->adjoint = hl_calloc(ctx, 1, sizeof *a);
    if (!a)
        return HL_ERR_NOMEM;
    a->y0 = hl_calloc(ctx, hl_size_mul(size, 7), sizeof(double));
    a->integrals = a->y0 ? hl_calloc(ctx, m->ode->system.n_params + 1, sizeof(double)) : NULL;
    if (!a->integrals)
        return HL_ERR_NOMEM;
    a->y1 = a->y0 + size;
    a->y = a->y1 + size;
    a->a = a->y + size;
    a->scratch = a->a + 2 * size;
    hl_status status = make_record(m, a);
    return status == HL_OK ? make_backward(m, a) : status;
}

void hl_adjoint_free(hl_multistep *m)
{
    hl_adjoint *a = m->adjoint;
    if (!a)
        return;
    hl_integrator_free(a->backward);
    hl_free(m->ode->ctx, a->marks);
    hl_free(m->ode->ctx, a->slab);
    hl_free(m->ode->ctx, a->integrals);
    hl_free(m->ode->ctx, a->y0);
    hl_free(m->ode->ctx, a);
    m->adjoint = NULL;
}

/* ---- the record ---- */

static step *step_at(const hl_adjoint *a, size_t place)
{
    return (step *)(void *)(a->slab + place);
}

static double *mark_at(const hl_multistep *m, size_t k)
{
    return m->adjoint->marks + k * (unknowns(m) + 1);
}

static void empty_slab(hl_adjoint *a, double t)
{
    a->used = 0;
    a->last = a->at = HL_NO_ENTRY;
    a->before = t;
}

static void set_mark(hl_multistep *m, double t, const double *y)
{
    hl_adjoint *a = m->adjoint;
    if (a->marks_count == a->marks_capacity) {
        a->overflow = true;
        return;
    }
    double *mark = mark_at(m, a->marks_count++);
    mark[0] = t;
    memcpy(mark + 1, y, unknowns(m) * sizeof *y);
    a->loaded = a->marks_count - 1;
    empty_slab(a, t);
}

void hl_adjoint_begin(hl_multistep *m, double t, const double *y)
{
    hl_adjoint *a = m->adjoint;
    a->usable = a->overflow = false;
    a->marks_count = 0;
    a->t0 = t;
    memcpy(a->y0, y, unknowns(m) * sizeof *y);
    if (a->slab)
        set_mark(m, t, y);
}

void hl_adjoint_end(hl_multistep *m, double t, const double *y)
{
    m->adjoint->usable = true;
    m->adjoint->t1 = t;
    memcpy(m->adjoint->y1, y, unknowns(m) * sizeof *y);
}

/* Append the last step of the forward integrator. */
static hl_status append(hl_multistep *m)
{
    hl_adjoint *a = m->adjoint;
    hl_integrator *in = m->forward;
    size_t size = unknowns(m), order = (size_t)hl_integrator_order(in);
    double t = hl_integrator_time(in), h = hl_integrator_last_step(in), factor = 1;
    if (a->used + HEAD + (order + 1) * size > a->capacity)
        return hl_fail(m->ode->ctx, HL_ERR_NOMEM, "the record of the solve is full: increase checkpoint_bytes");
    step *s = step_at(a, a->used);
    double *c = a->slab + a->used + HEAD;
    *s = (step){ .from = a->before, .to = t, .h = h, .order = order, .previous = a->last };
    for (size_t k = 0; k <= order; k++, c += size) {
        hl_status status = hl_integrator_dense(in, t, (int)k, c);
        factor *= k ? h / (double)k : 1;
        for (size_t i = 0; i < size; i++)
            c[i] *= factor;
        if (status != HL_OK)
            return status;
    }
    a->before = t;
    a->last = a->at = a->used;
    a->used += HEAD + (order + 1) * size;
    return HL_OK;
}

hl_status hl_adjoint_step(hl_multistep *m)
{
    hl_adjoint *a = m->adjoint;
    if (!a->slab || a->overflow)
        return HL_OK;
    if (a->used > a->capacity / 2) /* solving a stretch again may take more steps: leave them room */
        set_mark(m, a->before, a->at == HL_NO_ENTRY ? a->y0 : a->slab + a->at + HEAD);
    return a->overflow ? HL_OK : append(m);
}

/* y(t) from the record. */
static const double *recorded(hl_multistep *m, double t)
{
    hl_adjoint *a = m->adjoint;
    size_t size = unknowns(m);
    double direction = a->t1 - a->t0;
    step *s = step_at(a, a->at);
    while ((t - s->from) * direction < 0 && s->previous != HL_NO_ENTRY) {
        a->at = s->previous;
        s = step_at(a, a->at);
    }
    while ((t - s->to) * direction > 0 && a->at != a->last) {
        a->at += HEAD + (s->order + 1) * size;
        s = step_at(a, a->at);
    }
    const double *c = a->slab + a->at + HEAD;
    double x = (t - s->to) / s->h;
    memcpy(a->y, c + s->order * size, size * sizeof(double));
    for (size_t k = s->order; k-- > 0;)
        for (size_t i = 0; i < size; i++)
            a->y[i] = a->y[i] * x + c[k * size + i];
    return a->y;
}

/* See that the slab holds stretch k, which ends at t. */
static hl_status load(hl_multistep *m, size_t k, double t)
{
    hl_adjoint *a = m->adjoint;
    const double *mark = mark_at(m, k);
    hl_problem problem = hl_multistep_problem(m);
    if (a->loaded == k)
        return HL_OK;
    empty_slab(a, mark[0]);
    a->loaded = HL_NO_ENTRY;
    hl_status status = hl_integrator_begin(m->forward, &problem, mark[0], mark + 1, t);
    while (status == HL_OK) {
        status = hl_integrator_step(m->forward);
        if (status < 0) {
            hl_integrator_errors(m->forward, m->errors);
            status = hl_multistep_fail(m, m->forward, status, "in the backward solve: ");
        } else {
            hl_status kept = append(m);
            status = kept == HL_OK ? status : kept;
        }
    }
    hl_integrator_count(m->forward, m->ode->counts);
    a->loaded = status == HL_STOPPED ? k : HL_NO_ENTRY;
    return status == HL_STOPPED ? HL_OK : status;
}

/* ---- the backward problem on the record ---- */

static void negate(double *v, size_t count)
{
    for (size_t i = 0; i < count; i++)
        v[i] = -v[i];
}

/* -J' w at y, and -w' df/dp to gparam unless that is NULL. */
static int transposed(hl_multistep *m, double t, const double *y, const double *w, double *to, double *gparam)
{
    hl_rows at = hl_multistep_rows(m, t, y);
    size_t bad = HL_NO_ENTRY;
    int value = hl_multistep_spend(m);
    if (gparam)
        memset(gparam, 0, m->ode->system.n_params * sizeof *gparam);
    if (value == 0)
        value = hl_multistep_note(m, hl_call_vjp(m->ode, &at, w, to, gparam, &bad), &bad);
    negate(to, unknowns(m));
    if (gparam)
        negate(gparam, m->ode->system.n_params);
    return value;
}

static int adjoint_rhs(void *user, double t, const double *a, double *da)
{
    return transposed(user, t, recorded(user, t), a, da, NULL);
}

static int adjoint_diagonal(void *user, double t, const double *a, double *diagonal)
{
    hl_multistep *m = user;
    hl_rows at = hl_multistep_rows(m, t, recorded(m, t));
    size_t bad = HL_NO_ENTRY;
    int value = hl_multistep_note(m, hl_call_diagonal(m->ode, &at, NULL, diagonal, &bad), &bad);
    (void)a;
    negate(diagonal, unknowns(m));
    return value;
}

static int adjoint_apply(void *user, double t, const double *a, const double *v, double *jv)
{
    (void)a; /* the problem is linear */
    return transposed(user, t, recorded(user, t), v, jv, NULL);
}

static int adjoint_quadrature(void *user, double t, const double *a, double *dq)
{
    hl_multistep *m = user;
    return transposed(m, t, recorded(m, t), a, m->adjoint->scratch, dq);
}

/* ---- the backward problem with y ---- */

static int both_rhs(void *user, double t, const double *z, double *dz)
{
    hl_multistep *m = user;
    hl_problem forward = hl_multistep_problem(m);
    int value = forward.rhs(m, t, z, dz);
    return value ? value : transposed(m, t, z, z + unknowns(m), dz + unknowns(m), NULL);
}

static int both_diagonal(void *user, double t, const double *z, double *diagonal)
{
    hl_multistep *m = user;
    hl_problem forward = hl_multistep_problem(m);
    int value = forward.diagonal(m, t, z, diagonal);
    for (size_t i = 0; i < unknowns(m); i++)
        diagonal[unknowns(m) + i] = -diagonal[i];
    return value;
}

/* How a depends on y is left out: it would need second derivatives, and the iteration converges without. */
static int both_apply(void *user, double t, const double *z, const double *v, double *jv)
{
    hl_multistep *m = user;
    hl_problem forward = hl_multistep_problem(m);
    int value = forward.apply(m, t, z, v, jv);
    return value ? value : transposed(m, t, z, v + unknowns(m), jv + unknowns(m), NULL);
}

static int both_quadrature(void *user, double t, const double *z, double *dq)
{
    hl_multistep *m = user;
    return transposed(m, t, z, z + unknowns(m), m->adjoint->scratch, dq);
}

static hl_problem backward_problem(hl_multistep *m, bool with_parameters)
{
    const hl_system *s = &m->ode->system;
    bool both = m->ode->options.gradient == HL_ADJOINT_REINTEGRATED;
    bool has_apply = !both || s->jvp;
    return (hl_problem){ .size = unknowns(m) * (both ? 2 : 1),
                         .block = s->n,
                         .rhs = both ? both_rhs : adjoint_rhs,
                         .diagonal = !s->diagonal ? NULL
                                     : both       ? both_diagonal
                                                  : adjoint_diagonal,
                         .apply = !has_apply ? NULL
                                  : both     ? both_apply
                                             : adjoint_apply,
                         .quadrature = !with_parameters ? NULL
                                       : both           ? both_quadrature
                                                        : adjoint_quadrature,
                         .user = m };
}

/* ---- the gradient ---- */

/* From t to t_end; adjoint->a holds the unknowns before and after, integrals are added to. */
static hl_status go_back(hl_multistep *m, double t, double t_end, bool with_parameters)
{
    hl_adjoint *a = m->adjoint;
    hl_problem problem = backward_problem(m, with_parameters);
    hl_status status = hl_integrator_begin(a->backward, &problem, t, a->a, t_end);
    if (status != HL_OK)
        return status;
    while (status == HL_OK)
        status = hl_integrator_step(a->backward);
    hl_integrator_count(a->backward, m->ode->counts);
    if (status < 0) {
        hl_integrator_errors(a->backward, a->a); /* errors of (y, a), or of a: report those of the last part */
        memcpy(m->errors, a->a + problem.size - unknowns(m), unknowns(m) * sizeof(double));
        return hl_multistep_fail(m, a->backward, status, "the adjoint: ");
    }
    memcpy(a->a, hl_integrator_state(a->backward), problem.size * sizeof(double));
    return with_parameters ? hl_integrator_add_quadratures(a->backward, a->integrals) : HL_OK;
}

static double measure_drift(const hl_multistep *m)
{
    const hl_ode_options *o = &m->ode->options;
    double drift = 0;
    for (size_t i = 0; i < unknowns(m); i++)
        drift = fmax(drift, fabs(m->adjoint->a[i] - m->adjoint->y0[i]) / (o->atol + o->rtol * fabs(m->adjoint->y0[i])));
    return drift;
}

static double largest_of(const double *v, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(v[i]));
    return largest;
}

/* Stretch by stretch, the last first. */
static hl_status go_back_on_record(hl_multistep *m, bool with_parameters)
{
    hl_adjoint *a = m->adjoint;
    hl_status status = HL_OK;
    double t = a->t1;
    for (size_t k = a->marks_count; k-- > 0 && status == HL_OK; t = mark_at(m, k)[0]) {
        status = load(m, k, t);
        if (status == HL_OK)
            status = go_back(m, t, mark_at(m, k)[0], with_parameters);
    }
    return status;
}

static hl_status check_gradient(const hl_multistep *m, const double *gy)
{
    const hl_adjoint *a = m->adjoint;
    if (!a->usable)
        return hl_fail(m->ode->ctx, HL_ERR_INVALID, "hl_ode_gradient: there is no successful solve to differentiate");
    if (a->overflow)
        return hl_fail(m->ode->ctx, HL_ERR_NOMEM,
                       "hl_ode_gradient: the record of the solve is full: increase checkpoint_bytes");
    for (size_t i = 0; i < unknowns(m); i++)
        if (!isfinite(gy[i]))
            return hl_fail_at(m->ode->ctx, HL_ERR_NOT_FINITE, hl_at(i / m->ode->system.n, i % m->ode->system.n),
                              "hl_ode_gradient: gy is not finite");
    return HL_OK;
}

hl_status hl_adjoint_gradient(hl_ode *ode, double *gy, double *gparam)
{
    hl_multistep *m = ode->state;
    hl_adjoint *a = m->adjoint;
    size_t size = unknowns(m), parameters = ode->system.n_params;
    bool both = ode->options.gradient == HL_ADJOINT_REINTEGRATED;
    hl_status status = check_gradient(m, gy);
    double scale = status == HL_OK ? largest_of(gy, size) : 0;
    double *result = a->a + (both ? size : 0);
    if (status != HL_OK || scale == 0 || fabs(a->t1 - a->t0) <= 8 * DBL_EPSILON * fmax(fabs(a->t0), fabs(a->t1)))
        return status; /* no loss, or no way */
    hl_multistep_begin(m);
    memset(a->integrals, 0, parameters * sizeof *a->integrals);
    memcpy(a->a, a->y1, size * sizeof *a->y1);
    for (size_t i = 0; i < size; i++)
        result[i] = gy[i] / scale;
    bool with_parameters = gparam && parameters;
    status = both ? go_back(m, a->t1, a->t0, with_parameters) : go_back_on_record(m, with_parameters);
    if (status != HL_OK)
        return status;
    if (both)
        ode->report.drift = measure_drift(m);
    for (size_t i = 0; i < size; i++)
        gy[i] = result[i] * scale;
    for (size_t i = 0; with_parameters && i < parameters; i++)
        gparam[i] += a->integrals[i] * scale;
    return HL_OK;
}
