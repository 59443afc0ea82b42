/* calibrate.c - the cheapest solver that gives log p of a model with a continuous flow with a wanted accuracy.
 *
 * The flow's exact log p of some rows comes from the same network in double at a tight tolerance. For each method the loosest
 * tolerance with which the rows are accurate enough is looked for, with steps that adapt from the start, with even steps and with divided ones; of those that
 * get there, the one with the fewest evaluations of the network is kept. Evaluations are counted, not timed: the choice is the same on every machine.
 *
 * An error is that of the model's log p = log(w p_flow + rest): where the other members have all the density, as far away, it does not
 * matter what the flow says. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/density.h"

static const char *const methods[] = { "bosh3", "tsit5", "dopri5", "calvo6", "dopri8", NULL };
static const size_t stages[] = { 3, 6, 6, 8, 12 }; /* evaluations of a step */
static const double tolerances[] = { 1e-2, 7e-3, 5e-3,   3e-3, 2e-3, 1.5e-3, 1e-3, 7e-4, 5e-4,
                                     3e-4, 2e-4, 1.5e-4, 1e-4, 7e-5, 5e-5,   3e-5, 2e-5, 1.5e-5,
                                     1e-5, 7e-6, 5e-6,   3e-6, 2e-6, 1.5e-6, 1e-6, 1e-7, 1e-8 };
static const double
    start_error = 10,
    far = 10, worst_factor = 20, reference_tolerance = 1e-9,
    least_share =
        .6; /* of the cheapest's evaluations: fewer even steps than these take would be rejected for most rows */
enum { TOLERANCES = sizeof tolerances / sizeof *tolerances, FAR_ROWS = 16, MOST_ROWS = 256, LEAST_ROWS = 64 };
enum { SINGLE_TOLERANCES = TOLERANCES - 2 /* float32 rounds more than the others */, LEAST_BUDGET = 2000 };
enum { VALUES = 16384 /* about this many values of rows, where there are many columns */ };

typedef struct calibration {
    hl_density *model;
    size_t near_rows, rows; /* with those far away */
    double accuracy;
    double *x, *context, *exact, *logp, *error;
    double *
        rest; /* log of the other members' weighted density, in the units of what the flow sees; -INFINITY if there are none */
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
    c->x = hl_calloc(m->ctx, hl_size_mul(c->rows, m->dim + m->context + 4), sizeof *c->x);
    if (!c->x)
        return HL_ERR_NOMEM;
    c->context = c->x + c->rows * m->dim;
    c->exact = c->context + c->rows * m->context;
    c->logp = c->exact + c->rows;
    c->error = c->logp + c->rows;
    c->rest = c->error + c->rows;
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

/* ---- the other members ---- */

static double log_sum(double a, double b)
{
    double most = a > b ? a : b, least = a > b ? b : a;
    return isinf(most) ? most : most + log1p(exp(least - most));
}

/* The model's log p, given the flow's. */
static double total(const calibration *c, size_t r, double flow)
{
    return log_sum(log(c->model->flow_weight) + flow, c->rest[r]);
}

/* The rows in the units of the data, context after x. */
static void to_units(const calibration *c, double *x)
{
    const hl_density *m = c->model;
    double *context = x + c->rows * m->dim;
    memcpy(x, c->x, c->rows * (m->dim + m->context) * sizeof *x);
    hl_density_unstandardise(m, c->rows, x);
    for (size_t i = 0; i < c->rows * m->context; i++) {
        size_t column = m->dim + i % m->context;
        context[i] = m->flow_mapped ? hl_column_map_inverse(m->map[column], context[i])
                                    : m->column[column].mean + m->column[column].deviation * context[i];
    }
}

static bool ends(hl_status status)
{
    return status == HL_STOPPED || status == HL_ERR_NOMEM;
}

/* Fill in `rest`. The flow's log p in the units of the data and in its own differ by the log-slope of what it sees. */
static hl_status load_rest(calibration *c, double *x)
{
    hl_density *m = c->model;
    const double *context = m->context ? x + c->rows * m->dim : NULL;
    to_units(c, x);
    hl_status status = HL_OK;
    for (size_t k = 1; k <= m->mixtures && !ends(status); k++) {
        status = hl_density_member_logp(m, k, c->rows, x, context, c->logp);
        for (size_t r = 0; r < c->rows; r++)
            c->rest[r] = log_sum(c->rest[r], log(m->mixture[k - 1].weight) + c->logp[r]);
    }
    if (!ends(status))
        status = hl_density_member_logp(m, 0, c->rows, x, context, c->logp);
    if (!ends(status))
        status = hl_flow_logp(m->flow, c->rows, c->x, m->context ? c->context : NULL, c->error);
    for (size_t r = 0; r < c->rows; r++) {
        c->rest[r] -= c->logp[r] - c->error[r];
        if (isnan(c->rest[r]))
            c->rest[r] = -INFINITY;
    }
    return ends(status) ? status : HL_OK;
}

static hl_status weigh(calibration *c)
{
    hl_density *m = c->model;
    for (size_t r = 0; r < c->rows; r++)
        c->rest[r] = -INFINITY;
    if (!m->mixtures)
        return HL_OK;
    double *x = hl_calloc(m->ctx, c->rows * (m->dim + m->context), sizeof *x);
    hl_status status = x ? load_rest(c, x) : HL_ERR_NOMEM;
    hl_free(m->ctx, x);
    return status;
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

/* Errors of `count` rows from `first` on. Rows that the solver cannot solve have an infinite error. */
static hl_status measure_rows(calibration *c, size_t first, size_t count)
{
    const hl_density *m = c->model;
    const double *context = m->context ? c->context + first * m->context : NULL;
    hl_status status = hl_flow_logp(m->flow, count, c->x + first * m->dim, context, c->logp + first);
    for (size_t r = first; r < first + count && !ends(status); r++) {
        double error = fabs(total(c, r, c->logp[r]) - total(c, r, c->exact[r]));
        c->error[r] = isfinite(c->logp[r]) && isfinite(error) ? error : INFINITY;
    }
    return ends(status) ? status : HL_OK;
}

/* What a solver makes of the rows. Evaluations are those of the given rows, not of the ones far away, which are looked at only if the
 * others are good and cheaper than `limit`, or if that is 0; else `worst` is infinite. */
static hl_status measure(calibration *c, const hl_flow_solver *solver, double limit, hl_density_accuracy *a)
{
    hl_flow *flow = c->model->flow;
    hl_status status = hl_flow_set_solver(flow, solver);
    if (status != HL_OK)
        return status;
    hl_ode_summary before = hl_flow_report(flow);
    status = measure_rows(c, 0, c->near_rows);
    if (status != HL_OK)
        return status;
    a->evaluations = (double)(hl_flow_report(flow).forward.f - before.forward.f) / (double)c->near_rows;
    qsort(c->error, c->near_rows, sizeof *c->error, by_size);
    a->typical = c->error[c->near_rows - 1 - c->near_rows / 100];
    a->worst = INFINITY;
    if (limit > 0 && (a->typical > c->accuracy || a->evaluations >= limit))
        return HL_OK;
    status = measure_rows(c, c->near_rows, c->rows - c->near_rows);
    a->worst = c->error[c->near_rows - 1];
    for (size_t r = c->near_rows; r < c->rows; r++)
        a->worst = fmax(a->worst, c->error[r]);
    return status;
}

static bool reaches(const calibration *c, const hl_density_accuracy *a)
{
    return a->typical <= c->accuracy && a->worst <= worst_factor * c->accuracy;
}

/* The loosest tolerance that is good enough and cheaper than what is there, by bisection. */
static hl_status try_tolerances(calibration *c, hl_flow_solver s, hl_flow_solver *best, hl_density_accuracy *found)
{
    hl_status status = HL_OK;
    bool single = c->model->flow->net[0]->dtype == HL_F32;
    hl_flow_solver own = s;
    for (size_t low = 0, high = single ? SINGLE_TOLERANCES : TOLERANCES; low < high && status == HL_OK;) {
        hl_density_accuracy a;
        size_t k = (low + high) / 2;
        s.rtol = s.atol = own.rtol = own.atol = tolerances[k];
        s.max_evaluations =
            (size_t)fmax(LEAST_BUDGET, 20 * found->evaluations); /* a tolerance that takes more is of no use */
        double limit = found->evaluations > 0 ? found->evaluations : INFINITY;
        status = measure(c, &s, limit, &a);
        if (status != HL_OK)
            return status;
        bool dear = a.evaluations >= limit, good = reaches(c, &a);
        if (good && !dear) {
            *best = own;
            *found = a;
        }
        if (good || dear)
            high = k;
        else
            low = k + 1;
    }
    return status;
}

/* A method, with steps that adapt from the start; then, if that is known to be good for something, with even steps, or divided ones, as long as
 * these alone are cheaper than what was found; divided ones may end up one fewer. */
static hl_status try_method(calibration *c, size_t method, bool even, bool divided, hl_flow_solver *best,
                            hl_density_accuracy *found)
{
    hl_flow_solver s = c->model->solver;
    hl_status status = HL_OK;
    s.method = methods[method];
    s.steps = s.even_steps = 0;
    s.start_error = start_error;
    s.divided = divided;
    if (!even)
        return try_tolerances(c, s, best, found);
    s.even_steps = (size_t)fmax(1, ceil(least_share * found->evaluations / (double)stages[method]));
    for (; status == HL_OK && (double)((s.even_steps - divided) * stages[method] + 1) < found->evaluations;
         s.even_steps++)
        status = try_tolerances(c, s, best, found);
    return status;
}

static hl_status choose(calibration *c)
{
    hl_density *m = c->model;
    hl_flow_solver best = m->solver;
    hl_density_accuracy found = { 0 };
    hl_status status = solve_exactly(c);
    if (status == HL_OK)
        status = weigh(c);
    for (size_t i = 0; methods[i] && status == HL_OK; i++)
        status = try_method(c, i, false, false, &best, &found);
    for (size_t i = 1; methods[i] && status == HL_OK && found.evaluations > 0; i++)
        for (int divided = 1; divided >= 0 && status == HL_OK; divided--)
            status = try_method(c, i, true, divided, &best, &found);
    if (status == HL_OK && !(found.evaluations > 0)) { /* none: as it was, and how good that is */
        best = m->solver;
        status = measure(c, &best, 0, &found);
    }
    hl_flow_solver kept = m->solver;
    hl_status set = hl_density_set_solver(m, status == HL_OK ? &best : &kept);
    if (status != HL_OK || set != HL_OK)
        return status != HL_OK ? status : set;
    if (isfinite(found.worst))
        m->accuracy = found;
    return reaches(c, &found)
               ? HL_OK
               : hl_fail(m->ctx, HL_IMPRECISE,
                         "no solver reaches an accuracy of %g nats; the error of the model's solver is %.2g",
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
    if (m->atoms)
        return hl_fail(m->ctx, HL_ERR_UNSUPPORTED,
                       "this model has atoms; each pattern of atoms has its own solver, which was calibrated when the "
                       "model was fitted");
    if (!m->flow)
        return hl_fail(m->ctx, HL_ERR_UNSUPPORTED,
                       "the model has no flow and therefore no solver to calibrate; its log-densities are exact");
    if (!hl_flow_is_continuous(m->flow->kind->name))
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
