/* integrator.c - steps of Adams and BDF methods: CVODES behind integrator.h.
 *
 * SUNDIALS' objects are for one number of unknowns; they are made when that changes and used again otherwise. */
#include <cvodes/cvodes.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ode/integrator_state.h"

enum { MAX_ERROR_FAILURES = 25, MAX_CONVERGENCE_FAILURES = 20 }; /* of one step; CVODE's 7 and 10 end OREGO's jumps */
/* gmres, newton and auto are for stiff systems, where the error of the end may be a hundred times that of a step: they
 * aim at this part of the tolerance, auto at a smaller one as it needs fewer evaluations. Of 41 tolerances around 1e-3 and 1e-6 each,
 * HIRES and OREGO then end within 150 tolerances at all of them; with 0.6, six times they do not, once by 40,000. */
static const double STIFF_SAFETY = 0.3, GMRES_SAFETY = 0.4;
static const double LARGEST_FALL = 1e10, LOST = 10; /* of a tolerance, by gmres; of rounding errors, in tolerances */
enum { WATCH = 20 };                                /* auto looks at its iteration after this many steps */
static const double FLOOR = 1e-6;  /* the weight of a value that is left out; 0 would divide by 0 in GMRES */
static const double BUSY = 2.5;    /* auto: iterations per step that are too many */
static const double UNDERFLOW = 4; /* a step of fewer units in the last place of t is none */

/* ---- our memory ---- */

/* Whether J and its factors are kept. */
static bool keeps_jacobian(const hl_integrator_options *o)
{
    return o->iteration == HL_NEWTON || (o->iteration == HL_AUTO && o->block <= HL_AUTO_NEWTON_BLOCK);
}

static hl_status allocate(hl_integrator *in)
{
    const hl_integrator_options *o = &in->options;
    size_t square = keeps_jacobian(o) ? hl_size_mul(o->max_size, o->block) : 0;
    size_t count = hl_size_add(hl_size_mul(o->max_size, 4), hl_size_mul(square, 2));
    in->memory = hl_alloc(in->ctx, hl_size_mul(count, sizeof(double)));
    in->linear.pivots = in->memory ? hl_calloc(in->ctx, square ? o->max_size : 1, sizeof(size_t)) : NULL;
    if (!in->linear.pivots)
        return HL_ERR_NOMEM;
    in->linear.unit = in->memory;
    in->linear.product = in->linear.unit + o->max_size;
    in->linear.diagonal = in->linear.product + o->max_size;
    in->peak = in->linear.diagonal + o->max_size;
    in->linear.jacobian = in->peak + o->max_size;
    in->linear.factors = in->linear.jacobian + square;
    return HL_OK;
}

hl_status hl_integrator_create(hl_context *ctx, const hl_integrator_options *options, hl_integrator **out)
{
    hl_integrator *in = hl_calloc(ctx, 1, sizeof *in);
    size_t kept = 0;
    *out = in;
    if (!in)
        return HL_ERR_NOMEM;
    in->ctx = ctx;
    in->options = *options;
    if (options->iteration >= HL_GMRES) {
        double safety = options->iteration == HL_GMRES ? GMRES_SAFETY : STIFF_SAFETY;
        in->options.rtol *= safety;
        in->options.atol *= safety;
    }
    for (size_t i = 0; options->weights && i < options->block; i++)
        kept += options->weights[i] > 0;
    in->scale = kept ? sqrt((double)options->block / (double)kept) : 1;
    return allocate(in);
}

/* ---- SUNDIALS' objects ---- */

static void demolish(hl_integrator *in)
{
    if (in->cvode)
        CVodeFree(&in->cvode);
    hl_iteration_detach(in);
    N_VDestroy(in->y);
    N_VDestroy(in->trial);
    N_VDestroy(in->spare);
    N_VDestroy(in->integrals);
    hl_vectors_free(&in->vectors);
    hl_vectors_free(&in->sums);
    if (in->sun)
        SUNContext_Free(&in->sun);
    in->y = in->trial = in->spare = in->integrals = NULL;
    in->sun = NULL;
    in->built = 0;
}

void hl_integrator_free(hl_integrator *in)
{
    if (!in)
        return;
    demolish(in);
    hl_free(in->ctx, in->linear.pivots);
    hl_free(in->ctx, in->memory);
    hl_free(in->ctx, in);
}

static int cvode_rhs(sunrealtype t, N_Vector y, N_Vector dy, void *user)
{
    hl_integrator *in = user;
    return in->problem.rhs(in->problem.user, t, N_VGetArrayPointer(y), N_VGetArrayPointer(dy));
}

static int cvode_quadrature(sunrealtype t, N_Vector y, N_Vector dq, void *user)
{
    hl_integrator *in = user;
    return in->problem.quadrature(in->problem.user, t, N_VGetArrayPointer(y), N_VGetArrayPointer(dq));
}

/* 1 / tolerance of every value, times its weight. */
static int cvode_weights(N_Vector y, N_Vector weights, void *user)
{
    const hl_integrator *in = user;
    const hl_integrator_options *o = &in->options;
    const double *from = N_VGetArrayPointer(y);
    double *to = N_VGetArrayPointer(weights);
    for (size_t i = 0; i < in->problem.size; i++) {
        double weight = o->weights ? fmax(o->weights[i % o->block], FLOOR) * in->scale : 1;
        to[i] = weight / (o->atol + o->rtol * fabs(from[i]));
    }
    return 0;
}

static int set_up_quadratures(hl_integrator *in)
{
    if (!in->problem.quadrature)
        return 0;
    in->integrals = hl_vector_create(&in->sums, in->options.quadratures, in->sun);
    if (!in->integrals)
        return 1;
    N_VConst(0, in->integrals);
    return CVodeQuadInit(in->cvode, cvode_quadrature, in->integrals) ||
           CVodeQuadSStolerances(in->cvode, in->options.rtol, in->options.atol) ||
           CVodeSetQuadErrCon(in->cvode, SUNTRUE);
}

static int set_up_cvode(hl_integrator *in, double t)
{
    const hl_integrator_options *o = &in->options;
    if (CVodeInit(in->cvode, cvode_rhs, t, in->y)) {
        /* It has freed its vectors and kept the pointers, so CVodeFree would free them again: only the object itself is left. */
        free(in->cvode);
        in->cvode = NULL;
        return 1;
    }
    int failed = CVodeWFtolerances(in->cvode, cvode_weights) || CVodeSetUserData(in->cvode, in) ||
                 CVodeSetMaxErrTestFails(in->cvode, MAX_ERROR_FAILURES) ||
                 CVodeSetMaxConvFails(in->cvode, MAX_CONVERGENCE_FAILURES) ||
                 (o->max_order > 0 && CVodeSetMaxOrd(in->cvode, o->max_order)) ||
                 (isfinite(o->max_step) && o->max_step > 0 && CVodeSetMaxStep(in->cvode, o->max_step));
    return failed || set_up_quadratures(in);
}

static hl_status build(hl_integrator *in, double t)
{
    size_t size = in->problem.size;
    demolish(in);
    in->sun = hl_sun_context();
    if (in->sun) {
        in->y = hl_vector_create(&in->vectors, size, in->sun);
        in->trial = hl_vector_create(&in->vectors, size, in->sun);
        in->spare = hl_vector_create(&in->vectors, size, in->sun);
        in->cvode = CVodeCreate(in->options.bdf ? CV_BDF : CV_ADAMS, in->sun);
    }
    if (!in->y || !in->trial || !in->spare || !in->cvode)
        return hl_fail(in->ctx, HL_ERR_NOMEM, "out of memory for %zu unknowns", in->problem.size);
#if SUNDIALS_VERSION_MAJOR < 7
    CVodeSetErrHandlerFn(in->cvode, hl_sun_silent, NULL);
#endif
    N_VConst(0, in->y);
    if (set_up_cvode(in, t) || hl_iteration_attach(in) || in->vectors.failed || in->sums.failed)
        return hl_fail(in->ctx, HL_ERR_NOMEM, "out of memory while CVODES is set up for %zu unknowns",
                       in->problem.size);
    in->built = in->problem.size;
    return HL_OK;
}

/* ---- stepping ---- */

static void add_counts(hl_integrator *in)
{
    long steps = 0, rejected = 0, iterations = 0, failures = 0;
    CVodeGetNumSteps(in->cvode, &steps);
    CVodeGetNumErrTestFails(in->cvode, &rejected);
    CVodeGetNumNonlinSolvIters(in->cvode, &iterations);
    CVodeGetNumNonlinSolvConvFails(in->cvode, &failures);
    in->counts.steps += (size_t)steps;
    in->counts.rejected += (size_t)rejected;
    in->counts.iterations += (size_t)iterations;
    in->counts.convergence_failures += (size_t)failures;
}

/* Start, or start again, from in->t and in->y. */
static hl_status restart(hl_integrator *in, double first_step)
{
    if (in->integrals && CVodeQuadReInit(in->cvode, in->integrals))
        return HL_ERR_NOMEM;
    in->watched_steps = in->watched_iterations = in->watched_failures = 0;
    in->tried = false;
    if (CVodeReInit(in->cvode, in->t, in->y) || CVodeSetInitStep(in->cvode, first_step) ||
        CVodeSetStopTime(in->cvode, in->t_end))
        return hl_fail(in->ctx, HL_ERR_INVALID, "CVODES cannot integrate from t = %g to %g", in->t, in->t_end);
    return HL_OK;
}

static void note_peaks(hl_integrator *in, const double *y)
{
    for (size_t i = 0; i < in->problem.size; i++)
        in->peak[i] = fmax(in->peak[i], fabs(y[i]));
}

hl_status hl_integrator_begin(hl_integrator *in, const hl_problem *problem, double t, const double *y, double t_end)
{
    hl_status status = HL_OK;
    in->problem = *problem;
    in->t = t;
    in->t_end = t_end;
    in->counts = (hl_ode_counts){ 0 };
    bool fits = in->built == problem->size && !in->integrals == !problem->quadrature;
    if (!fits && (status = build(in, t)) != HL_OK) {
        demolish(in);
        return status;
    }
    hl_iteration_reset(in);
    memset(in->peak, 0, problem->size * sizeof *in->peak);
    in->worst_rate = 0;
    note_peaks(in, y);
    memcpy(N_VGetArrayPointer(in->y), y, problem->size * sizeof *y);
    if (in->integrals)
        N_VConst(0, in->integrals);
    return restart(in, copysign(in->options.first_step, t_end - t));
}

/* auto: a look at the iteration every WATCH steps. */
static void watch(hl_integrator *in)
{
    long steps = 0, iterations = 0, failures = 0;
    CVodeGetNumSteps(in->cvode, &steps);
    if (in->options.iteration != HL_AUTO || steps < in->watched_steps + WATCH)
        return;
    CVodeGetNumNonlinSolvIters(in->cvode, &iterations);
    CVodeGetNumNonlinSolvConvFails(in->cvode, &failures);
    if (failures - in->watched_failures >= 2 ||
        (double)(iterations - in->watched_iterations) > BUSY * (double)(steps - in->watched_steps))
        hl_iteration_strengthen(in);
    in->watched_steps = steps;
    in->watched_iterations = iterations;
    in->watched_failures = failures;
}

static hl_status step_status(int flag)
{
    switch (flag) {
    case CV_SUCCESS:
        return HL_OK;
    case CV_TSTOP_RETURN:
        return HL_STOPPED;
    case CV_CONV_FAILURE:
        return HL_ERR_CONVERGENCE;
    case CV_FIRST_RHSFUNC_ERR:
    case CV_REPTD_RHSFUNC_ERR:
    case CV_UNREC_RHSFUNC_ERR:
    case CV_FIRST_QRHSFUNC_ERR:
    case CV_REPTD_QRHSFUNC_ERR:
    case CV_UNREC_QRHSFUNC_ERR:
        return HL_ERR_NOT_FINITE;
    case CV_RHSFUNC_FAIL:
    case CV_QRHSFUNC_FAIL:
    case CV_LSETUP_FAIL:
    case CV_LSOLVE_FAIL:
        return HL_ERR_CALLBACK;
    case CV_MEM_FAIL:
        return HL_ERR_NOMEM;
    default: /* CV_ERR_FAILURE, CV_TOO_MUCH_ACC, ... */
        return HL_ERR_STEP;
    }
}

hl_status hl_integrator_step(hl_integrator *in)
{
    for (;;) {
        sunrealtype t = in->t;
        int flag = CVode(in->cvode, in->t_end, in->trial, &t, CV_ONE_STEP);
        hl_status status = step_status(flag);
        in->tried = in->tried || flag >= 0 || flag == CV_ERR_FAILURE || flag == CV_CONV_FAILURE;
        if (in->vectors.failed || in->sums.failed) /* what the first step makes */
            return hl_fail(in->ctx, HL_ERR_NOMEM, "out of memory in CVODES");
        if (status >= 0) { /* what CVODE restores after a failure may have lost its digits */
            in->t = t;
            N_VScale(1, in->trial, in->y);
            note_peaks(in, N_VGetArrayPointer(in->y));
        }
        if (status == HL_ERR_CONVERGENCE && hl_iteration_strengthen(in)) {
            add_counts(in);
            if (in->integrals)
                CVodeGetQuad(in->cvode, &t, in->integrals);
            if ((status = restart(in, 0)) != HL_OK)
                return status;
            continue;
        }
        if (status == HL_OK && fabs(hl_integrator_last_step(in)) < UNDERFLOW * DBL_EPSILON * fabs(in->t))
            return HL_ERR_STEP;
        if (status == HL_OK)
            watch(in);
        return status;
    }
}

/* ---- looking ---- */

/* Errors of a time when a value was large stay, if a linear invariant keeps them, and may exceed its tolerance when it is small. Newton
 * leaves rounding errors, gmres errors of a part of the tolerance. E5 falls by 13 orders of magnitude: gmres ends 1e8 tolerances off, newton at
 * a tolerance of 1e-6 30,000; at 1e-3 it is right. gmres solves ROBER, which falls by 5e7, well. After newton values
 * below atol do not matter. */
size_t hl_integrator_lost(const hl_integrator *in)
{
    const hl_integrator_options *o = &in->options;
    const double *y = N_VGetArrayPointer(in->y);
    bool gmres = in->linear.now == HL_GMRES;
    double rounding = gmres ? o->rtol / LARGEST_FALL : DBL_EPSILON / LOST;
    for (size_t i = 0; i < in->problem.size; i++)
        if ((gmres || fabs(y[i]) > o->atol) && in->peak[i] * rounding > o->atol + o->rtol * fabs(y[i]) &&
            (!o->weights || o->weights[i % o->block] > 0))
            return i;
    return in->problem.size;
}

double hl_integrator_worst_rate(const hl_integrator *in)
{
    return in->worst_rate;
}

double hl_integrator_time(const hl_integrator *in)
{
    return in->t;
}

const double *hl_integrator_state(const hl_integrator *in)
{
    return N_VGetArrayPointer(in->y);
}

double hl_integrator_last_step(const hl_integrator *in)
{
    sunrealtype h = 0;
    CVodeGetLastStep(in->cvode, &h);
    return h;
}

int hl_integrator_order(const hl_integrator *in)
{
    int order = 0;
    CVodeGetLastOrder(in->cvode, &order);
    return order;
}

hl_status hl_integrator_dense(hl_integrator *in, double t, int k, double *out)
{
    if (CVodeGetDky(in->cvode, t, k, in->spare))
        return hl_fail(in->ctx, HL_ERR_INVALID, "no dense output at t = %g", t);
    memcpy(out, N_VGetArrayPointer(in->spare), in->problem.size * sizeof *out);
    return HL_OK;
}

hl_status hl_integrator_add_quadratures(hl_integrator *in, double *out)
{
    sunrealtype t = 0;
    if (!in->integrals || CVodeGetQuad(in->cvode, &t, in->integrals))
        return hl_fail(in->ctx, HL_ERR_INVALID, "no integrals");
    for (size_t i = 0; i < in->options.quadratures; i++)
        out[i] += N_VGetArrayPointer(in->integrals)[i];
    return HL_OK;
}

void hl_integrator_errors(hl_integrator *in, double *out)
{
    if (!in->tried) { /* the first evaluation failed, and CVODE's vectors have no values */
        memset(out, 0, in->problem.size * sizeof *out);
        return;
    }
    N_VConst(0, in->spare);
    CVodeGetEstLocalErrors(in->cvode, in->spare);
    memcpy(out, N_VGetArrayPointer(in->spare), in->problem.size * sizeof *out);
    N_VConst(0, in->spare);
    CVodeGetErrWeights(in->cvode, in->spare);
    for (size_t i = 0; i < in->problem.size; i++)
        out[i] = fabs(out[i] * N_VGetArrayPointer(in->spare)[i]);
}

void hl_integrator_count(hl_integrator *in, hl_ode_counts *counts)
{
    add_counts(in);
    counts->steps += in->counts.steps;
    counts->rejected += in->counts.rejected;
    counts->iterations += in->counts.iterations;
    counts->convergence_failures += in->counts.convergence_failures;
    counts->switches += in->counts.switches;
}
