/* fit.c - training: standardised data, batches, one optimiser for each network, and the state of a checkpoint.
 *
 * An item is an observation, or for pseudo-likelihood an observation that has a next one. Everything random comes from
 * (seed, stream, counter), so that an iteration is the same whenever it is done. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "base/ranks.h"
#include "exec/plan.h"
#include "sde/sde.h"

enum { STREAM_SHUFFLE = 1, STREAM_END, STREAM_PROBE, STREAM_PLACE };
enum {
    FEW_TIMES = 20,
    HEAD = 1 + HL_SDE_COURSES * HL_CURVE_STATE,
    SHARE = 64
};                       /* SHARE: rows of a batch that stay on one rank */
enum { SMOOTH_DIM = 5 }; /* in more, rows of a batch have no neighbours: in ten, drift came out worse by half */

struct hl_sde_fit {
    hl_context *ctx;
    hl_sde *sde;
    hl_sde_fit_options options; /* defaults filled in */
    hl_sde_objective objective;
    hl_optimizer *optimizer[HL_SDE_NETS];
    size_t size[HL_SDE_NETS]; /* of their gradients */
    hl_shares *shares;        /* of a batch: its two losses and the gradient */
    size_t rows, items, iteration, epoch, *item, *shuffle;
    double *t, *x, *gradient; /* standardised data: [rows], [rows][dim] */
    /* a batch: t, x, dt, dx, end; or t, x, the place's t and x if the residual has its own, two probes */
    double *input[HL_SDE_INPUTS];
    double *place; /* draws at random times, in the user's units: t, then x; then residuals and weights */
    double logs;   /* sum of log deviation */
    hl_curve course[HL_SDE_COURSES];
};

static const size_t no_epoch = SIZE_MAX;

/* ---- data ---- */

static bool pseudo(const hl_sde_fit *fit)
{
    return fit->options.method == HL_SDE_PSEUDO_LIKELIHOOD;
}

static hl_status check_data(const hl_sde_fit *fit, const hl_sde_data *data)
{
    size_t d = fit->sde->spec.dim;
    if (!data->t || !data->x || data->rows < 2)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_sde_fit_create: at least two rows of t and x are needed");
    for (size_t r = 0; r < data->rows; r++) {
        if (!isfinite(data->t[r]))
            return hl_fail_at(fit->ctx, HL_ERR_NOT_FINITE, hl_at(r, HL_NOWHERE), "the time is not finite");
        for (size_t i = 0; i < d; i++)
            if (!isfinite(data->x[r * d + i]))
                return hl_fail_at(fit->ctx, HL_ERR_NOT_FINITE, hl_at(r, i), "not finite");
    }
    for (size_t r = 1; r < data->rows && pseudo(fit); r++) {
        bool same = !data->trajectory || data->trajectory[r] == data->trajectory[r - 1];
        if (same && !(data->t[r] > data->t[r - 1]))
            return hl_fail_at(fit->ctx, HL_ERR_INVALID, hl_at(r, HL_NOWHERE),
                              "time %g is not later than %g in the same trajectory", data->t[r], data->t[r - 1]);
    }
    return HL_OK;
}

/* Two passes, scaled by the largest value, so that huge ones do not overflow. */
void hl_sde_column_scale(size_t rows, size_t dim, size_t column, const double *x, double *mean, double *deviation)
{
    double top = 0, sum = 0, square = 0;
    for (size_t r = 0; r < rows; r++)
        top = fmax(top, fabs(x[r * dim + column]));
    for (size_t r = 0; r < rows && top > 0; r++)
        sum += x[r * dim + column] / top / (double)rows;
    for (size_t r = 0; r < rows && top > 0; r++) {
        double gap = x[r * dim + column] / top - sum;
        square += gap * gap / (double)rows;
    }
    *mean = sum * top;
    *deviation = sqrt(square) > 1e-12 ? sqrt(square) * top : 0;
}

hl_status hl_sde_measure(hl_context *ctx, const hl_sde_data *data, size_t d, double *t_first, double *t_last,
                         double *mean, double *deviation)
{
    size_t n = data->rows;
    double first = data->t[0], last = data->t[0];
    for (size_t r = 0; r < n; r++) {
        first = fmin(first, data->t[r]);
        last = fmax(last, data->t[r]);
    }
    if (!(last > first))
        return hl_fail(ctx, HL_ERR_INVALID, "all observations have the same time %g", first);
    for (size_t i = 0; i < d; i++) {
        hl_sde_column_scale(n, d, i, data->x, &mean[i], &deviation[i]);
        if (!(deviation[i] > 0))
            return hl_fail(ctx, HL_ERR_INVALID, "column %zu is constant (%g); remove it", i, data->x[i]);
    }
    *t_first = first;
    *t_last = last;
    return HL_OK;
}

/* The data's scale to the model, unless it has one to keep. */
static hl_status set_scale(hl_sde_fit *fit, const hl_sde_data *data)
{
    if (fit->sde->keeps_scale)
        return HL_OK;
    double first, last, *mean = fit->gradient, *deviation = mean + fit->sde->spec.dim;
    hl_status status = hl_sde_measure(fit->ctx, data, fit->sde->spec.dim, &first, &last, mean, deviation);
    return status == HL_OK ? hl_sde_set_scale(fit->sde, first, last, mean, deviation) : status;
}

/* Are there fewer different times than FEW_TIMES? */
static bool few_times(const hl_sde_data *data)
{
    double seen[FEW_TIMES];
    size_t count = 0;
    for (size_t r = 0; r < data->rows && count < FEW_TIMES; r++) {
        size_t k = 0;
        while (k < count && seen[k] != data->t[r])
            k++;
        if (k == count)
            seen[count++] = data->t[r];
    }
    return count < FEW_TIMES;
}

bool hl_sde_step_begins(const hl_sde_data *data, size_t row, double longest)
{
    return row + 1 < data->rows && (!data->trajectory || data->trajectory[row] == data->trajectory[row + 1]) &&
           data->t[row + 1] - data->t[row] <= longest;
}

hl_status hl_sde_longest_step(hl_context *ctx, const hl_sde_data *data, double medians, double *longest)
{
    size_t count = 0;
    double *step = hl_calloc(ctx, data->rows, sizeof *step);
    if (!step)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < data->rows; r++)
        if (hl_sde_step_begins(data, r, INFINITY))
            step[count++] = data->t[r + 1] - data->t[r];
    hl_sort(step, count);
    *longest = count ? medians * step[count / 2] : INFINITY;
    hl_free(ctx, step);
    return HL_OK;
}

/* Values in standardised units, and the items: for pseudo-likelihood without steps over gaps, which are no Euler steps. */
static hl_status standardise(hl_sde_fit *fit, const hl_sde_data *data)
{
    double longest = INFINITY;
    hl_status status = pseudo(fit) ? hl_sde_longest_step(fit->ctx, data, HL_SDE_LONG, &longest) : HL_OK;
    if (status != HL_OK)
        return status;
    const hl_sde *s = fit->sde;
    size_t d = s->spec.dim;
    hl_standardise(data->rows, 1, &s->t_first, &(double){ hl_sde_time_unit(s) }, 1, data->t, fit->t);
    hl_standardise(data->rows, d, s->mean, s->deviation, 1, data->x, fit->x);
    for (size_t i = 0; i < d; i++)
        fit->logs += log(s->deviation[i]);
    for (size_t r = 0; r < data->rows; r++)
        if (!pseudo(fit) || hl_sde_step_begins(data, r, longest))
            fit->item[fit->items++] = r;
    return HL_OK;
}

/* ---- creation ---- */

static hl_status set_options(hl_sde_fit *fit, const hl_sde_fit_options *given)
{
    hl_sde_fit_options *o = &fit->options;
    *o = *given;
    o->iterations = o->iterations ? o->iterations : 2000;
    o->batch = o->batch ? o->batch : 256;
    o->lambda = o->lambda == 0 ? 0.1 : o->lambda < 0 ? 0 : o->lambda;
    o->optimizer.method = o->optimizer.method ? o->optimizer.method : "adam";
    if (o->optimizer.rate == 0)
        o->optimizer.rate = fit->sde->flow.count ? 5e-3 : 2e-3;
    if (o->optimizer.clip == 0)
        o->optimizer.clip = 10;
    if (o->smooth == 0)
        o->smooth = fit->sde->spec.dim <= SMOOTH_DIM ? 0.5 : -1;
    if (pseudo(fit) || o->density_only || o->density_form || fit->sde->flow.count || o->smooth < 0)
        o->smooth = 0;
    o->last_rate = o->last_rate == 0 ? 0.01 : o->last_rate;
    o->variance_floor = o->variance_floor == 0 ? 1e-6 : o->variance_floor;
    if (!isfinite(o->lambda) || !(o->last_rate > 0 && o->last_rate <= 1) || !(o->variance_floor > 0) ||
        !(o->between <= 1) || !isfinite(o->smooth) || o->penalty < HL_SDE_L1 || o->penalty > HL_SDE_HUBER ||
        o->method < HL_SDE_FOKKER_PLANCK || o->method > HL_SDE_PSEUDO_LIKELIHOOD)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_sde_fit_create: one of the options is out of range");
    if (o->method == HL_SDE_FOKKER_PLANCK && fit->sde->curvature != HL_SDE_EXACT) {
        if (o->penalty == HL_SDE_HUBER)
            return hl_fail(fit->ctx, HL_ERR_INVALID,
                           "estimated curvature needs penalty l2; use it, or exact curvature");
        o->penalty = HL_SDE_L2;
    }
    return HL_OK;
}

static hl_status make_arrays(hl_sde_fit *fit, size_t rows)
{
    hl_context *ctx = fit->ctx;
    size_t d = fit->sde->spec.dim;
    size_t total = hl_sde_param_total(fit->sde);
    fit->rows = rows;
    fit->t = hl_calloc(ctx, rows, sizeof *fit->t);
    fit->x = hl_calloc(ctx, hl_size_mul(rows, d), sizeof *fit->x);
    fit->item = hl_calloc(ctx, rows, sizeof *fit->item);
    fit->shuffle = hl_calloc(ctx, rows, sizeof *fit->shuffle);
    fit->gradient = hl_calloc(ctx, total + 2 * d, sizeof *fit->gradient);
    fit->place = hl_calloc(ctx, hl_size_mul(fit->options.batch, d + 3), sizeof *fit->place);
    bool good = fit->t && fit->x && fit->item && fit->shuffle && fit->gradient && fit->place;
    for (size_t k = 0; k < HL_SDE_INPUTS; k++) {
        size_t width = k >= 4 && fit->objective.probe ? fit->objective.probe : k % 2 ? d : 1;
        fit->input[k] = hl_calloc(ctx, hl_size_mul(fit->options.batch, width), sizeof **fit->input);
        good = good && fit->input[k];
    }
    return good ? HL_OK : HL_ERR_NOMEM;
}

static hl_status make_optimizers(hl_sde_fit *fit)
{
    hl_status status = HL_OK;
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; n++) {
        status = hl_optimizer_create(fit->ctx, 1, &fit->sde->net[n], &fit->options.optimizer, &fit->optimizer[n]);
        fit->size[n] = hl_optimizer_size(fit->optimizer[n]);
    }
    return status;
}

static hl_status prepare(hl_sde_fit *fit, const hl_sde_data *data, const hl_sde_fit_options *options)
{
    hl_status status = set_options(fit, options);
    if (status == HL_OK)
        status = check_data(fit, data);
    if (status == HL_OK && fit->options.between == 0 && (fit->options.smooth > 0 || few_times(data)))
        fit->options.between = 1;
    if (fit->options.density_only)
        fit->options.between = 0;
    if (status == HL_OK)
        status = hl_sde_objective_create(fit->sde, &fit->options, &fit->objective);
    if (status == HL_OK)
        status = make_arrays(fit, data->rows);
    if (status == HL_OK)
        status = make_optimizers(fit);
    if (status == HL_OK)
        status = set_scale(fit, data);
    if (status != HL_OK)
        return status;
    status = standardise(fit, data);
    if (status != HL_OK)
        return status;
    if (fit->items == 0)
        return hl_fail(
            fit->ctx, HL_ERR_INVALID,
            "every trajectory has only one observation, but pseudo-likelihood needs pairs; use Fokker-Planck matching");
    if (fit->options.batch > fit->items)
        fit->options.batch = fit->items;
    status = hl_shares_create(fit->ctx, fit->options.batch, SHARE, 2 + fit->objective.total, &fit->shares);
    if (status != HL_OK)
        return status;
    for (size_t k = 0; k < HL_SDE_COURSES; k++)
        hl_curve_start(&fit->course[k], fit->options.iterations);
    fit->epoch = no_epoch;
    fit->sde->method = fit->options.method;
    return HL_OK;
}

hl_status hl_sde_fit_create(hl_sde *sde, const hl_sde_data *data, const hl_sde_fit_options *options, hl_sde_fit **out)
{
    static const hl_sde_fit_options defaults;
    if (!sde)
        return HL_ERR_INVALID;
    if (!data || !out)
        return hl_fail(sde->ctx, HL_ERR_INVALID, "hl_sde_fit_create: the data or the result is NULL");
    *out = NULL;
    hl_sde_fit *fit = hl_calloc(sde->ctx, 1, sizeof *fit);
    if (!fit)
        return HL_ERR_NOMEM;
    fit->ctx = sde->ctx;
    fit->sde = sde;
    hl_status status = prepare(fit, data, options ? options : &defaults);
    if (status != HL_OK) {
        hl_sde_fit_free(fit);
        return status;
    }
    *out = fit;
    return HL_OK;
}

hl_context *hl_sde_fit_context(const hl_sde_fit *fit)
{
    return fit->ctx;
}

size_t hl_sde_fit_iteration(const hl_sde_fit *fit)
{
    return fit->iteration;
}

void hl_sde_fit_free(hl_sde_fit *fit)
{
    if (!fit)
        return;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        hl_optimizer_free(fit->optimizer[n]);
    hl_sde_objective_free(&fit->objective);
    hl_shares_free(fit->shares);
    for (size_t k = 0; k < HL_SDE_INPUTS; k++)
        hl_free(fit->ctx, fit->input[k]);
    void *const blocks[] = { fit->t, fit->x, fit->item, fit->shuffle, fit->gradient, fit->place };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(fit->ctx, blocks[i]);
    hl_free(fit->ctx, fit);
}

/* ---- batches ---- */

/* The items of an epoch in a random order (Fisher and Yates). */
static void shuffle(hl_sde_fit *fit, size_t epoch)
{
    if (fit->epoch == epoch)
        return;
    fit->epoch = epoch;
    memcpy(fit->shuffle, fit->item, fit->items * sizeof *fit->item);
    for (size_t i = fit->items; i > 1; i--) {
        double u = hl_random_uniform(fit->options.seed, STREAM_SHUFFLE, epoch * fit->items + i);
        size_t k = (size_t)(u * (double)i), swap = fit->shuffle[i - 1];
        fit->shuffle[i - 1] = fit->shuffle[k];
        fit->shuffle[k] = swap;
    }
}

/* Random signs for place r of the batch: a function of the seed and the number of the item in the run. */
static void load_probes(hl_sde_fit *fit, size_t r, size_t number)
{
    size_t size = fit->objective.probe, words = (2 * size + 63) / 64;
    uint64_t bits = 0;
    for (size_t k = 0; k < 2 * size; k++, bits >>= 1) {
        if (k % 64 == 0)
            bits = hl_random_bits(fit->options.seed, STREAM_PROBE, number * words + k / 64);
        fit->input[4 + k / size][r * size + k % size] = bits & 1 ? 1 : -1;
    }
}

/* Row `row` of the data, and its step to the next, to place r of the batch. */
static void load_row(hl_sde_fit *fit, size_t r, size_t row, size_t number)
{
    size_t d = fit->sde->spec.dim;
    fit->input[0][r] = fit->t[row];
    memcpy(fit->input[1] + r * d, fit->x + row * d, d * sizeof *fit->x);
    if (!pseudo(fit)) {
        load_probes(fit, r, number);
        return;
    }
    fit->input[2][r] = fit->t[row + 1] - fit->t[row];
    fit->input[4][r] = (double)(hl_random_bits(fit->options.seed, STREAM_END, number) & 1);
    for (size_t i = 0; i < d; i++)
        fit->input[3][r * d + i] = fit->x[(row + 1) * d + i] - fit->x[row * d + i];
}

/* Batch `iteration` of an endless row of epochs. */
static void load_batch(hl_sde_fit *fit)
{
    for (size_t r = 0; r < fit->options.batch; r++) {
        size_t at = fit->iteration * fit->options.batch + r;
        shuffle(fit, at / fit->items);
        load_row(fit, r, fit->shuffle[at % fit->items], at);
    }
}

/* Where the batch's residual is taken: at its observations, or at draws from the density at random times. */
static hl_status load_places(hl_sde_fit *fit)
{
    const hl_sde *s = fit->sde;
    size_t d = s->spec.dim, batch = fit->options.batch, first = fit->iteration * batch;
    double *t = fit->place, *x = t + batch;
    for (size_t r = 0; r < batch; r++)
        t[r] =
            s->t_first + (s->t_last - s->t_first) * hl_random_uniform(fit->options.seed, STREAM_PLACE, 2 * (first + r));
    hl_status status = hl_sde_sample(fit->sde, batch, t, hl_random_bits(fit->options.seed, STREAM_PLACE, 0), first, x);
    memcpy(fit->input[2], fit->input[0], batch * sizeof *t);
    memcpy(fit->input[3], fit->input[1], batch * d * sizeof *x);
    for (size_t r = 0; r < batch; r++) {
        if (hl_random_uniform(fit->options.seed, STREAM_PLACE, 2 * (first + r) + 1) >= fit->options.between)
            continue;
        hl_standardise(1, 1, &s->t_first, &(double){ hl_sde_time_unit(s) }, 1, t + r, fit->input[2] + r);
        hl_standardise(1, d, s->mean, s->deviation, 1, x + r * d, fit->input[3] + r * d);
    }
    return status;
}

/* w_r = sum_s k_rs R_s (objective.c), over other rows: a row's own R would bring its noise. k is a triangle in time and a
 * Gaussian in x. Rows of one block of NEIGHBOURS see each other, so that large batches cost no more for each row. */
static void load_weights(hl_sde_fit *fit)
{
    enum { NEIGHBOURS = 512 };
    static const double span = 1, most = 10; /* of standardised time; an |R| that is larger counts as this */
    const hl_sde *s = fit->sde;
    size_t d = s->spec.dim, n = fit->options.batch, at = fit->options.between > 0 ? 2 : 0;
    const double *t = fit->input[at], *x = fit->input[at + 1];
    double *r = fit->place, *w = fit->input[4];
    double scale = -0.5 / (fit->options.smooth * fit->options.smooth * (double)d);
    hl_execute_rows(s->all, n, (const hl_row_in[]){ { .p = t, .pitch = 1 }, { .p = x, .pitch = d }, { 0 }, { 0 } },
                    s->param, (const hl_row_out[]){ { .p = r, .pitch = 1 }, { 0 } });
    for (size_t i = 0; i < n; i++) {
        size_t first = i / NEIGHBOURS * NEIGHBOURS;
        double share = 1 / (double)(n - first < NEIGHBOURS ? n - first : NEIGHBOURS);
        r[i] = fmax(-most, fmin(most, r[i]));
        w[i] = 0;
        for (size_t k = first; k < i; k++) {
            double kernel = 1 - fabs(t[i] - t[k]) / span, square = 0;
            if (!(kernel > 0))
                continue;
            for (size_t j = 0; j < d; j++)
                square += (x[i * d + j] - x[k * d + j]) * (x[i * d + j] - x[k * d + j]);
            kernel *= share * exp(scale * square);
            w[i] += kernel * r[k];
            w[k] += kernel * r[i];
        }
    }
}

/* ---- stepping ---- */

/* Losses and gradient of a batch, summed over the shares of all ranks. */
static hl_status run_batch(hl_sde_fit *fit, const double *const *input, double lambda, double *loss, double *gradient)
{
    hl_sde_objective *o = &fit->objective;
    size_t first, end;
    double *sum;
    while (hl_shares_next(fit->shares, &first, &end, &sum)) {
        const double *part[HL_SDE_INPUTS];
        for (size_t k = 0; k < o->plan->inputs; k++)
            part[k] = input[k] + first * o->plan->input[k].elements;
        hl_sde_objective_run(o, end - first, part, lambda, sum, sum + 2);
    }
    hl_status status = hl_shares_total(fit->shares, &sum);
    if (status != HL_OK)
        return status;
    memcpy(loss, sum, 2 * sizeof *loss);
    memcpy(gradient, sum + 2, o->total * sizeof *gradient);
    return HL_OK;
}

/* A gradient that is not finite must stop all networks before the first has moved. */
static hl_status check_gradient(const hl_sde_fit *fit, const double *loss)
{
    double sum = loss[0] + loss[1];
    for (size_t i = 0; i < fit->objective.total; i++)
        sum += fabs(fit->gradient[i]);
    if (isfinite(sum))
        return HL_OK;
    return hl_fail(fit->ctx, HL_ERR_NOT_FINITE,
                   "the loss or gradient of iteration %zu is not finite; try a smaller rate", fit->iteration + 1);
}

hl_status hl_sde_fit_step(hl_sde_fit *fit, hl_sde_fit_report *report)
{
    hl_sde_fit_report own;
    if (!fit)
        return HL_ERR_INVALID;
    const hl_sde_fit_options *o = &fit->options;
    report = report ? report : &own;
    *report = (hl_sde_fit_report){ .iteration = fit->iteration, .iterations = o->iterations };
    if (fit->iteration >= o->iterations)
        return HL_STOPPED;
    double loss[2], *gradient = fit->gradient, rows = (double)o->batch;
    report->lambda = o->lambda * (1 - (double)fit->iteration / (double)o->iterations);
    load_batch(fit);
    hl_status status = !pseudo(fit) && o->between > 0 ? load_places(fit) : HL_OK;
    if (status != HL_OK)
        return status;
    if (o->smooth > 0)
        load_weights(fit);
    const double *input[HL_SDE_INPUTS]; /* those that there are, in order */
    size_t skipped = !pseudo(fit) && !(o->between > 0) ? 2 : 0;
    for (size_t k = 0; k + skipped < HL_SDE_INPUTS; k++)
        input[k] = fit->input[k < 2 ? k : k + skipped];
    status = run_batch(fit, input, report->lambda, loss, gradient);
    if (status == HL_OK)
        status = check_gradient(fit, loss);
    for (size_t i = 0; i < fit->objective.total; i++)
        gradient[i] /= rows;
    double factor = hl_schedule_cosine(fit->iteration, o->iterations, o->warmup, o->last_rate);
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; gradient += fit->size[n++])
        status = hl_optimizer_step(fit->optimizer[n], gradient, factor, &report->gradient_norm[n]);
    if (status != HL_OK)
        return status;
    report->loss = loss[0] / rows;
    report->nll = loss[1] / rows + fit->logs;
    report->iteration = ++fit->iteration;
    for (size_t k = 0; k < HL_SDE_COURSES; k++)
        hl_curve_add(&fit->course[k],
                     &(hl_training_point){ .iteration = fit->iteration,
                                           .loss = k == HL_SDE_COURSE_LOSS ? report->loss : report->nll });
    return HL_OK;
}

hl_status hl_sde_fit_finish(hl_sde_fit *fit)
{
    if (!fit)
        return HL_ERR_INVALID;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        hl_optimizer_use_average(fit->optimizer[n], 1);
    hl_curve *course = hl_sde_add_course(fit->sde);
    if (!course)
        return HL_ERR_NOMEM;
    memcpy(course, fit->course, sizeof fit->course);
    return HL_OK;
}

/* ---- state ---- */

size_t hl_sde_fit_state_size(const hl_sde_fit *fit)
{
    size_t size = fit ? HEAD : 0;
    for (size_t n = 0; fit && n < HL_SDE_NETS; n++)
        size += hl_optimizer_state_size(fit->optimizer[n]);
    return size;
}

void hl_sde_fit_get_state(const hl_sde_fit *fit, double *state)
{
    if (!fit || !state)
        return;
    *state++ = (double)fit->iteration;
    for (size_t k = 0; k < HL_SDE_COURSES; k++, state += HL_CURVE_STATE)
        hl_curve_get_state(&fit->course[k], state);
    for (size_t n = 0; n < HL_SDE_NETS; state += hl_optimizer_state_size(fit->optimizer[n++]))
        hl_optimizer_get_state(fit->optimizer[n], state);
}

hl_status hl_sde_fit_set_state(hl_sde_fit *fit, const double *state)
{
    if (!fit)
        return HL_ERR_INVALID;
    if (!state)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_sde_fit_set_state: the state is NULL");
    for (size_t i = 0; i < hl_sde_fit_state_size(fit); i++)
        if (!isfinite(state[i]) || (i == 0 && !(state[0] >= 0 && state[0] <= 1e15)))
            return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_sde_fit_set_state: not a saved fit state");
    double iteration = *state++;
    hl_status status = HL_OK;
    hl_curve course[HL_SDE_COURSES];
    memcpy(course, fit->course, sizeof course);
    for (size_t k = 0; k < HL_SDE_COURSES; k++, state += HL_CURVE_STATE)
        if (!hl_curve_set_state(&course[k], state))
            return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_sde_fit_set_state: not a saved fit state");
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; state += hl_optimizer_state_size(fit->optimizer[n++]))
        status = hl_optimizer_set_state(fit->optimizer[n], state);
    if (status != HL_OK)
        return status;
    fit->iteration = (size_t)iteration;
    memcpy(fit->course, course, sizeof course);
    return HL_OK;
}
