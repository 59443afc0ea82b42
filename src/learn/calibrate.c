/* calibrate.c - the cheapest solver that gives log p of a continuous flow with a wanted accuracy.
 *
 * The exact log p of some rows comes from the same network in double at a tight tolerance. Methods are tried from loose to tight
 * tolerances until the rows are accurate enough; of those that get there, the one with the fewest evaluations of the network is
 * kept. Evaluations are counted, not timed: the choice is the same on every machine. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/density.h"

static const char *const methods[] = { "bosh3", "tsit5", "dopri5", "dopri8", NULL };
static const double tolerances[] = { 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 1e-7, 1e-8 };
static const double start_error = 10, far = 10, worst_factor = 20, reference_tolerance = 1e-9;
enum { TOLERANCES = sizeof tolerances / sizeof *tolerances, FAR_ROWS = 16, MOST_ROWS = 256, LEAST_ROWS = 64 };
enum { VALUES = 16384 /* about this many values of rows, where there are many columns */ };

typedef struct calibration {
    hl_density *model;
    size_t near_rows, rows; /* with those far away */
    double accuracy;
    double *x, *context, *exact, *logp, *error;
} calibration;

/* ---- rows ---- */

/* Rows evenly spread over the given ones, as the flow sees them; then some with one value far away. */
static hl_status load(calibration *c, bool seen, size_t rows, const double *x, const double *context)
{
    hl_density *m = c->model;
    size_t most = VALUES / m->dim;
    most = most < LEAST_ROWS ? LEAST_ROWS : most > MOST_ROWS ? MOST_ROWS : most;
    c->near_rows = rows < most ? rows : most;
    c->rows = c->near_rows + FAR_ROWS;
    c->x = hl_calloc(m->ctx, hl_size_mul(c->rows, m->dim + m->context + 3), sizeof *c->x);
    if (!c->x)
        return HL_ERR_NOMEM;
    c->context = c->x + c->rows * m->dim;
    c->exact = c->context + c->rows * m->context;
    c->logp = c->exact + c->rows;
    c->error = c->logp + c->rows;
    for (size_t r = 0; r < c->rows; r++) {
        size_t from = (r < c->near_rows ? r * rows / c->near_rows : (r - c->near_rows) * rows / FAR_ROWS);
        memcpy(c->x + r * m->dim, x + from * m->dim, m->dim * sizeof *x);
        if (m->context)
            memcpy(c->context + r * m->context, context + from * m->context, m->context * sizeof *context);
    }
    if (!seen)
        hl_density_standardise(m, c->rows, c->x, m->context ? c->context : NULL);
    for (size_t r = c->near_rows, k = 0; r < c->rows; r++, k++)
        c->x[r * m->dim + k / 2 % m->dim] = k % 2 ? far : -far;
    return HL_OK;
}

/* ---- the exact solution ---- */

/* The flow with the same parameters in double. */
static hl_status copy_flow(const hl_flow *flow, hl_flow **copy)
{
    hl_flow_spec spec = hl_flow_describe(flow);
    spec.net.dtype = HL_F64;
    hl_status status = hl_flow_create(flow->ctx, &spec, copy);
    for (size_t i = 0; i < hl_flow_nets(flow) && status == HL_OK; i++)
        for (size_t p = 0; p < hl_net_param_count(flow->net[i]); p++) {
            hl_net_param from, to;
            hl_net_param_get(flow->net[i], p, &from);
            hl_net_param_get((*copy)->net[i], p, &to);
            hl_from_precision(flow->net[i]->dtype, from.size, from.values, to.values);
        }
    return status;
}

static hl_status solve_exactly(calibration *c)
{
    hl_flow *flow = NULL;
    hl_flow_solver tight = { .method = "dopri8", .rtol = reference_tolerance, .atol = reference_tolerance };
    hl_status status = copy_flow(c->model->flow, &flow);
    if (status == HL_OK)
        status = hl_flow_set_solver(flow, &tight);
    if (status == HL_OK)
        status = hl_flow_logp(flow, c->rows, c->x, c->model->context ? c->context : NULL, c->exact);
    hl_flow_free(flow);
    return status == HL_IMPRECISE ? HL_OK : status;
}

/* ---- trying ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What a solver makes of the rows. Rows that it cannot solve have an infinite error. */
static hl_status measure(calibration *c, const hl_flow_solver *solver, hl_density_accuracy *a)
{
    hl_flow *flow = c->model->flow;
    hl_status status = hl_flow_set_solver(flow, solver);
    if (status != HL_OK)
        return status;
    hl_ode_summary before = hl_flow_report(flow);
    status = hl_flow_logp(flow, c->rows, c->x, c->model->context ? c->context : NULL, c->logp);
    if (status == HL_STOPPED || status == HL_ERR_NOMEM)
        return status;
    a->evaluations = (double)(hl_flow_report(flow).forward.f - before.forward.f) / (double)c->rows;
    a->worst = 0;
    for (size_t r = 0; r < c->rows; r++) {
        double error = fabs(c->logp[r] - c->exact[r]);
        c->error[r] = isfinite(error) ? error : INFINITY;
        a->worst = fmax(a->worst, c->error[r]);
    }
    qsort(c->error, c->near_rows, sizeof *c->error, by_size);
    a->typical = c->error[c->near_rows - 1 - c->near_rows / 100];
    return HL_OK;
}

static bool reaches(const calibration *c, const hl_density_accuracy *a)
{
    return a->typical <= c->accuracy && a->worst <= worst_factor * c->accuracy;
}

/* The loosest tolerance of a method that is good enough, unless it is dearer than what is there. */
static hl_status try_method(calibration *c, const char *method, hl_flow_solver *best, hl_density_accuracy *found)
{
    hl_flow_solver s = c->model->solver;
    hl_status status = HL_OK;
    s.method = method;
    s.steps = 0;
    s.start_error = start_error;
    for (size_t k = 0; k < TOLERANCES && status == HL_OK; k++) {
        hl_density_accuracy a;
        s.rtol = s.atol = tolerances[k];
        status = measure(c, &s, &a);
        if (status != HL_OK || (found->evaluations > 0 && a.evaluations >= found->evaluations))
            return status;
        if (reaches(c, &a)) {
            *best = s;
            *found = a;
            return HL_OK;
        }
    }
    return status;
}

static hl_status choose(calibration *c)
{
    hl_density *m = c->model;
    hl_flow_solver best = m->solver;
    hl_density_accuracy found = { 0 };
    hl_status status = solve_exactly(c);
    for (size_t i = 0; methods[i] && status == HL_OK; i++)
        status = try_method(c, methods[i], &best, &found);
    if (status == HL_OK && !(found.evaluations > 0)) { /* none: as it was, and how good that is */
        best = m->solver;
        status = measure(c, &best, &found);
    }
    hl_flow_solver kept = m->solver;
    hl_status set = hl_density_set_solver(m, status == HL_OK ? &best : &kept);
    if (status != HL_OK || set != HL_OK)
        return status != HL_OK ? status : set;
    m->accuracy = found;
    return reaches(c, &found)
               ? HL_OK
               : hl_fail(m->ctx, HL_IMPRECISE, "no solver reaches %g nats; that of the model has an error of %.2g",
                         c->accuracy, found.typical);
}

static hl_status calibrate(hl_density *m, bool seen, size_t rows, const double *x, const double *context,
                           double accuracy)
{
    calibration c = { .model = m, .accuracy = accuracy > 0 ? accuracy : 5e-4 };
    hl_status status = load(&c, seen, rows, x, context);
    if (status == HL_OK)
        status = choose(&c);
    hl_free(m->ctx, c.x);
    return status;
}

hl_status hl_density_calibrate(hl_density *m, size_t rows, const double *x, const double *context, double accuracy)
{
    if (!m)
        return HL_ERR_INVALID;
    if (!rows || !x || (m->context && !context))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_density_calibrate: there are no rows, or no context");
    if (!(accuracy >= 0) || isinf(accuracy))
        return hl_fail(m->ctx, HL_ERR_INVALID, "the accuracy is %g; it must be positive, or 0 for the default",
                       accuracy);
    if (!m->flow || !hl_flow_is_continuous(m->flow->kind->name))
        return hl_fail(m->ctx, HL_ERR_UNSUPPORTED, "only continuous flows have a solver to calibrate");
    return calibrate(m, false, rows, x, context, accuracy);
}

hl_status hl_density_calibrate_seen(hl_density *m, size_t rows, const double *x, const double *context)
{
    return m->flow && hl_flow_is_continuous(m->flow->kind->name) && rows ? calibrate(m, true, rows, x, context, 0)
                                                                         : HL_OK;
}

hl_density_accuracy hl_density_get_accuracy(const hl_density *m)
{
    return m ? m->accuracy : (hl_density_accuracy){ 0 };
}
