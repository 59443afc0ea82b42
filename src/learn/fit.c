/* fit.c - training of a flow: batches, losses, validations, and the state of a checkpoint.
 *
 * Everything random comes from (seed, stream, counter), so that an iteration is the same whenever it is done. */
#include <math.h>
#include <string.h>

#include "base/options.h"
#include "base/ranks.h"
#include "flow/flow.h"
#include "hollow/density_fit.h"
#include "learn/fit.h"
#include "learn/match.h"

enum { STREAM_SHUFFLE = 1, STREAM_JITTER = 4, STREAM_RESAMPLE = 5 }; /* of random numbers; match.c has others */
enum { MOST_STEPS = 256, HEAD = 11 };                                /* HEAD: scalars of a saved state */
enum {
    SHARE = 64
}; /* rows of a batch that stay together: more ranks than shares have nothing to do, smaller ones cost more */
/* What a share of a batch adds up beside the gradient. */
enum { SUM_LOSS, SUM_FORWARD, SUM_BACKWARD, SUM_STOPPED, SUM_FAILED, SUMS };
static const size_t no_epoch = SIZE_MAX;
/* An extension: by how much the best validation fell in the last `iterations / 4`, in nats; the share of `iterations` that it adds. */
static const double FALLING = 0.01, EXTENSION = 0.5;

struct hl_fit {
    hl_context *ctx;
    hl_flow *flow;
    hl_fit_data train, valid;
    hl_fit_source source;      /* instead of train.x, or none */
    hl_fit_options options;    /* defaults filled in */
    size_t dim, context, size; /* size: of a gradient */
    bool continuous, discrete_steps;
    hl_optimizer *optimizer;
    hl_matcher *matcher;                      /* of losses that need no solving */
    hl_shares *shares;                        /* of a batch */
    size_t iteration, steps, epoch, *shuffle; /* epoch: the one that `shuffle` is of */
    size_t best_iteration, worse;             /* worse: validations since the best */
    size_t begin, end, extensions; /* of the schedule that is run: its first and last iteration; extensions so far */
    double goal;                   /* no extension unless the best is below it */
    double best, early;            /* early: the best validation before the last `iterations / 4` */
    double weight, valid_weight;   /* sums of the weights, if there are any */
    bool fixed;                    /* the flow's solver is that of training */
    bool pending;                  /* the last iteration's validation was stopped and must be done first */
    double last_loss;              /* of the last iteration */
    double *best_values;
    double *x, *c, *logp; /* a batch */
    hl_curve curve;
};

/* ---- options ---- */

/* The loss that iteration is trained by. */
static hl_loss loss_at(const hl_fit *fit, size_t iteration)
{
    if (fit->options.loss != HL_LOSS_DEFAULT)
        return fit->options.loss;
    return fit->continuous && iteration < fit->options.matching ? HL_LOSS_FLOW_MATCHING : HL_LOSS_LIKELIHOOD;
}

static size_t at_least_one(size_t n)
{
    return n ? n : 1;
}

static size_t first_steps(const hl_fit *fit)
{
    return !fit->discrete_steps ? 0 : fit->options.train_steps ? fit->options.train_steps : fit->dim <= 2 ? 8 : 4;
}

/* For the optimiser, whose 0 is none. */
static double default_or_none(double given, double otherwise)
{
    return given == 0 ? otherwise : given < 0 ? 0 : given;
}

static void set_options(hl_fit *fit, const hl_fit_options *given)
{
    hl_fit_options *o = &fit->options;
    const hl_option *table = hl_density_fit_options();
    *o = *given;
    hl_fit_default_training(fit->dim, o);
    if (o->batch > fit->train.rows)
        o->batch = fit->train.rows;
    if (!o->optimizer.method)
        o->optimizer.method = "adamw";
    o->optimizer.clip = default_or_none(o->optimizer.clip, hl_option_number(table, "clip"));
    o->optimizer.average = default_or_none(o->optimizer.average, hl_option_number(table, "average"));
    o->warmup = o->warmup ? o->warmup : at_least_one(o->iterations / 50);
    o->last_rate = o->last_rate > 0 ? o->last_rate : hl_option_number(table, "last-lr");
    o->train_method = o->train_method ? o->train_method : "rk4";
    fit->discrete_steps = o->train_steps != SIZE_MAX;
    fit->steps = first_steps(fit);
    o->validate_every = o->validate_every ? o->validate_every : at_least_one(o->iterations / 20);
    if (fit->valid.rows > o->validation_rows)
        fit->valid.rows = o->validation_rows;
    if (o->transport == 0)
        o->transport = fit->dim <= 8 ? 1 : -1;
}

/* The last iteration of a schedule that was extended so many times. */
static size_t schedule_end(const hl_fit *fit, size_t extensions)
{
    return fit->options.iterations + extensions * at_least_one((size_t)(EXTENSION * (double)fit->options.iterations));
}

static void set_schedule(hl_fit *fit, size_t extensions)
{
    fit->begin = extensions ? schedule_end(fit, extensions - 1) : 0;
    fit->end = schedule_end(fit, extensions);
    fit->extensions = extensions;
}

static hl_status check_data(hl_fit *fit, const char *what, const hl_fit_data *data)
{
    if (!data->x || (fit->context && !data->context))
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_fit_create: the %s data have no %s", what,
                       data->x ? "context" : "values");
    for (size_t i = 0; i < data->rows * fit->dim; i++)
        if (!isfinite(data->x[i]))
            return hl_fail_at(fit->ctx, HL_ERR_NOT_FINITE, hl_at(i / fit->dim, i % fit->dim),
                              "the %s data are not finite", what);
    for (size_t i = 0; i < data->rows * fit->context; i++)
        if (!isfinite(data->context[i]))
            return hl_fail_at(fit->ctx, HL_ERR_NOT_FINITE, hl_at(i / fit->context, i % fit->context),
                              "the context of the %s data is not finite", what);
    return HL_OK;
}

/* The weights of rows are numbers that can be shares. */
static hl_status add_weights(hl_fit *fit, const char *what, const hl_fit_data *data, double *sum)
{
    *sum = 0;
    for (size_t r = 0; data->weights && r < data->rows; r++) {
        if (!(data->weights[r] >= 0) || !isfinite(data->weights[r]))
            return hl_fail_at(fit->ctx, HL_ERR_INVALID, hl_at(r, HL_NOWHERE),
                              "the weight of a %s row is %g; it must be 0 or more", what, data->weights[r]);
        *sum += data->weights[r];
    }
    if (data->weights && !(*sum > 0 && isfinite(*sum)))
        return hl_fail(fit->ctx, HL_ERR_INVALID, "the weights of the %s rows add up to %g", what, *sum);
    return HL_OK;
}

/* ---- creation ---- */

static hl_status make_arrays(hl_fit *fit)
{
    hl_context *ctx = fit->ctx;
    size_t batch = fit->options.batch, dim = fit->dim;
    fit->shuffle = hl_calloc(ctx, fit->source.read ? 1 : fit->train.rows, sizeof *fit->shuffle);
    fit->best_values = hl_calloc(ctx, fit->size, sizeof *fit->best_values);
    fit->x = hl_calloc(ctx, hl_size_mul(batch, dim), sizeof *fit->x);
    fit->c = hl_calloc(ctx, hl_size_mul(batch, fit->context + 1), sizeof *fit->c);
    fit->logp = hl_calloc(ctx, batch > fit->valid.rows ? batch : fit->valid.rows, sizeof *fit->logp);
    if (!fit->shuffle || !fit->best_values || !fit->x || !fit->c || !fit->logp)
        return HL_ERR_NOMEM;
    return hl_shares_create(ctx, batch, SHARE, fit->size + SUMS, &fit->shares);
}

static hl_status make_optimizer(hl_fit *fit)
{
    size_t count = hl_flow_nets(fit->flow);
    hl_net **nets = hl_calloc(fit->ctx, count, sizeof(hl_net *));
    if (!nets)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        nets[i] = hl_flow_net(fit->flow, i);
    hl_status status = hl_optimizer_create(fit->ctx, count, nets, &fit->options.optimizer, &fit->optimizer);
    hl_free(fit->ctx, nets);
    fit->size = hl_optimizer_size(fit->optimizer);
    return status;
}

/* The parameters as they are in the networks. */
static void read_values(const hl_fit *fit, double *to)
{
    for (size_t i = 0; i < hl_flow_nets(fit->flow); i++)
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(fit->flow, i)); p++) {
            hl_net_param q;
            hl_net_param_get(hl_flow_net(fit->flow, i), p, &q);
            hl_from_precision(hl_net_describe(hl_flow_net(fit->flow, i)).dtype, q.size, q.values, to);
            to += q.size;
        }
}

static void write_values(const hl_fit *fit, const double *from)
{
    for (size_t i = 0; i < hl_flow_nets(fit->flow); i++)
        for (size_t p = 0; p < hl_net_param_count(hl_flow_net(fit->flow, i)); p++) {
            hl_net_param q;
            hl_net_param_get(hl_flow_net(fit->flow, i), p, &q);
            hl_to_precision(hl_net_describe(hl_flow_net(fit->flow, i)).dtype, q.size, from, q.values);
            from += q.size;
        }
}

static hl_status use_solver(hl_fit *fit, bool training)
{
    hl_flow_solver solver = fit->options.solver;
    if (!fit->continuous || (training && fit->fixed))
        return HL_OK;
    solver.trace = training ? fit->options.train_trace : HL_TRACE_EXACT;
    solver.seed = fit->options.seed;
    solver.straight = training ? fit->options.straight : 0;
    if (training && fit->discrete_steps) {
        solver.method = fit->options.train_method;
        solver.steps = fit->steps;
    }
    fit->fixed = false;
    hl_status status = hl_flow_set_solver(fit->flow, &solver);
    fit->fixed = status == HL_OK && training;
    return status;
}

/* Losses without solving take rows from base to data by one network. */
static hl_status check_loss(hl_fit *fit, const char *kind)
{
    hl_fit_options *o = &fit->options;
    const char *name = o->loss == HL_LOSS_SCORE ? "score matching" : "flow matching";
    size_t nets = hl_flow_nets(fit->flow);
    if (o->loss < HL_LOSS_DEFAULT || o->loss > HL_LOSS_SCORE)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "unknown loss %d", (int)o->loss);
    if (o->train_trace < HL_TRACE_EXACT || o->train_trace > HL_TRACE_BRUTE)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "unknown trace %d", (int)o->train_trace);
    if (!(o->jitter >= 0) || !isfinite(o->jitter))
        return hl_fail(fit->ctx, HL_ERR_INVALID, "the jitter is %g; it must be >= 0", o->jitter);
    if (!(o->straight >= 0) || !isfinite(o->straight))
        return hl_fail(fit->ctx, HL_ERR_INVALID, "straight is %g; it must be >= 0", o->straight);
    if (o->loss == HL_LOSS_DEFAULT && nets > 1)
        o->loss = HL_LOSS_LIKELIHOOD;
    if (loss_at(fit, 0) == HL_LOSS_LIKELIHOOD)
        return HL_OK;
    if (!fit->continuous)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "%s is for continuous flows; this one is a %s", name, kind);
    if (nets > 1)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "%s trains one network; the flow has %zu", name, nets);
    return HL_OK;
}

static hl_status prepare(hl_fit *fit, const hl_fit_options *options)
{
    hl_flow_spec spec = hl_flow_describe(fit->flow);
    fit->dim = spec.net.dim;
    fit->context = spec.net.context;
    fit->continuous = hl_flow_is_continuous(spec.kind);
    if (fit->train.rows < 1)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_fit_create: there are no rows to train on");
    hl_status status = fit->source.read ? HL_OK : check_data(fit, "training", &fit->train);
    if (status == HL_OK && fit->valid.rows)
        status = check_data(fit, "validation", &fit->valid);
    if (status != HL_OK)
        return status;
    set_options(fit, options);
    status = check_loss(fit, spec.kind);
    if (status == HL_OK)
        status = add_weights(fit, "training", &fit->train, &fit->weight);
    if (status == HL_OK)
        status = add_weights(fit, "validation", &fit->valid, &fit->valid_weight);
    if (status != HL_OK)
        return status;
    fit->best = fit->early = fit->goal = INFINITY;
    set_schedule(fit, 0);
    fit->epoch = no_epoch;
    hl_curve_start(&fit->curve, fit->options.iterations);
    status = make_optimizer(fit);
    if (status == HL_OK)
        status = make_arrays(fit);
    if (status == HL_OK && loss_at(fit, 0) != HL_LOSS_LIKELIHOOD)
        status = hl_matcher_create(
            fit->flow,
            &(hl_matching){ .score = fit->options.loss == HL_LOSS_SCORE,
                            .transport = fit->options.transport > 0 && fit->options.loss != HL_LOSS_SCORE,
                            .batch = fit->options.batch,
                            .seed = fit->options.seed },
            &fit->matcher);
    bool solves = fit->options.loss != HL_LOSS_FLOW_MATCHING && fit->options.loss != HL_LOSS_SCORE;
    if (status == HL_OK && solves) /* a solver that cannot train is told now, not when its phase comes */
        status = use_solver(fit, true);
    if (status == HL_OK)
        read_values(fit, fit->best_values);
    return status;
}

hl_status hl_fit_create(hl_flow *flow, const hl_fit_data *train, const hl_fit_data *valid,
                        const hl_fit_options *options, hl_fit **out)
{
    return hl_fit_create_from(flow, train, NULL, valid, options, out);
}

hl_status hl_fit_create_from(hl_flow *flow, const hl_fit_data *train, const hl_fit_source *source,
                             const hl_fit_data *valid, const hl_fit_options *options, hl_fit **out)
{
    static const hl_fit_options defaults;
    if (!flow)
        return HL_ERR_INVALID;
    hl_context *ctx = flow->ctx;
    if (!train || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_fit_create: the data or the result is NULL");
    *out = NULL;
    hl_fit *fit = hl_calloc(ctx, 1, sizeof *fit);
    if (!fit)
        return HL_ERR_NOMEM;
    fit->ctx = ctx;
    fit->flow = flow;
    fit->train = *train;
    if (source)
        fit->source = *source;
    if (valid)
        fit->valid = *valid;
    hl_status status = prepare(fit, options ? options : &defaults);
    if (status != HL_OK) {
        hl_fit_free(fit);
        return status;
    }
    *out = fit;
    return HL_OK;
}

hl_context *hl_fit_context(const hl_fit *fit)
{
    return fit->ctx;
}

void hl_fit_free(hl_fit *fit)
{
    if (!fit)
        return;
    hl_optimizer_free(fit->optimizer);
    hl_matcher_free(fit->matcher);
    hl_shares_free(fit->shares);
    void *const blocks[] = { fit->shuffle, fit->best_values, fit->x, fit->c, fit->logp };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(fit->ctx, blocks[i]);
    hl_free(fit->ctx, fit);
}

/* ---- batches ---- */

/* A row of weight w, in units of the mean, stands w times in an epoch: that many, rounded up or down at random, so that every loss is
 * weighted without bias (systematic sampling). */
static void resample(hl_fit *fit, size_t epoch)
{
    size_t rows = fit->train.rows, row = 0;
    double total = fit->weight, sum = fit->train.weights[0],
           u = hl_random_uniform(fit->options.seed, STREAM_RESAMPLE, epoch);
    for (size_t i = 0; i < rows; i++) {
        while (row + 1 < rows && sum <= ((double)i + u) / (double)rows * total)
            sum += fit->train.weights[++row];
        fit->shuffle[i] = row;
    }
}

/* The rows of an epoch in a random order (Fisher and Yates). */
static void shuffle(hl_fit *fit, size_t epoch)
{
    size_t rows = fit->train.rows;
    if (fit->epoch == epoch)
        return;
    fit->epoch = epoch;
    if (fit->train.weights)
        resample(fit, epoch);
    for (size_t i = 0; i < rows && !fit->train.weights; i++)
        fit->shuffle[i] = i;
    for (size_t i = rows; i > 1; i--) {
        size_t k = (size_t)(hl_random_uniform(fit->options.seed, STREAM_SHUFFLE, epoch * rows + i) * (double)i);
        size_t swap = fit->shuffle[i - 1];
        fit->shuffle[i - 1] = fit->shuffle[k];
        fit->shuffle[k] = swap;
    }
}

static void copy_batch(hl_fit *fit, size_t first, size_t end)
{
    size_t dim = fit->dim, rows = fit->train.rows;
    for (size_t r = first; r < end; r++) {
        size_t at = fit->iteration * fit->options.batch + r;
        shuffle(fit, at / rows);
        size_t row = fit->shuffle[at % rows];
        memcpy(fit->x + r * dim, fit->train.x + row * dim, dim * sizeof *fit->x);
        if (fit->context)
            memcpy(fit->c + r * fit->context, fit->train.context + row * fit->context, fit->context * sizeof *fit->c);
    }
}

/* Load the rows of batch `iteration` that this rank needs, in an endless sequence of epochs. The added noise, which decreases to 0, reduces
 * overfitting to few rows; the best validation selects how much of it is useful. */
static hl_status load_batch(hl_fit *fit)
{
    size_t dim = fit->dim, batch = fit->options.batch, first, end;
    double jitter = fit->options.jitter * fmax(1 - (double)fit->iteration / (double)fit->options.iterations, 0);
    hl_status status = HL_OK;
    hl_shares_rows(fit->shares, &first, &end);
    hl_matcher_rows(batch, &first, &end);
    if (fit->source.read && first < end)
        status = fit->source.read(fit->source.user, fit->iteration * batch + first, end - first, fit->x + first * dim,
                                  fit->c + first * fit->context);
    else
        copy_batch(fit, first, end);
    for (size_t i = first * dim; i < end * dim && jitter > 0; i++)
        fit->x[i] += jitter * hl_random_normal(fit->options.seed, STREAM_JITTER, fit->iteration * batch * dim + i);
    return status;
}

/* ---- gradients ---- */

/* The gradient of -log p, and its sum, over some rows of the batch. */
static hl_status likelihood_share(hl_fit *fit, size_t first, size_t end, double *gradient)
{
    size_t batch = fit->options.batch;
    hl_status status = hl_flow_gradient(fit->flow, end - first, fit->x + first * fit->dim,
                                        fit->context ? fit->c + first * fit->context : NULL, fit->logp, gradient);
    double *loss = &gradient[fit->size + SUM_LOSS];
    for (size_t r = 0; r < end - first && status == HL_OK; r++)
        *loss -= fit->logp[r] / (double)batch;
    for (size_t i = 0; i < fit->size; i++)
        gradient[i] /= (double)batch;
    return status;
}

/* Evaluations of all kinds, each about as dear as one of f. */
static double work_of(const hl_ode_counts *c)
{
    return (double)(c->f + c->diagonal + c->jvp + c->vjp);
}

/* The sums of a batch over all ranks; *sum is borrowed until the next batch. A share that fails, or whose rows could not be `loaded`, fails
 * on every rank. */
static hl_status batch_gradient(hl_fit *fit, hl_loss loss, hl_status loaded, double **sum)
{
    size_t first, end, size = fit->size;
    bool solves = loss == HL_LOSS_LIKELIHOOD;
    hl_status status = loaded == HL_OK && solves ? use_solver(fit, true) : loaded;
    double *share;
    hl_shares_rows(fit->shares, &first, &end);
    if (!solves && status == HL_OK)
        hl_matcher_load(fit->matcher, fit->iteration, first, end, fit->x, fit->c);
    while (hl_shares_next(fit->shares, &first, &end, &share)) {
        memset(share, 0, (size + SUMS) * sizeof *share);
        hl_flow_reset(fit->flow);
        hl_flow_set_draw(fit->flow, fit->iteration * fit->options.batch + first);
        if (status == HL_OK)
            status = solves ? likelihood_share(fit, first, end, share)
                            : hl_matcher_gradient(fit->matcher, first, end, &share[size + SUM_LOSS], share);
        hl_ode_summary counts = hl_flow_report(fit->flow);
        share[size + SUM_FORWARD] = work_of(&counts.forward);
        share[size + SUM_BACKWARD] = work_of(&counts.backward);
        share[size + SUM_STOPPED] = status == HL_STOPPED;
        share[size + SUM_FAILED] = status != HL_OK;
    }
    hl_status gathered = hl_shares_total(fit->shares, sum);
    if (gathered != HL_OK)
        return gathered;
    return (*sum)[size + SUM_FAILED] > 0 ? hl_ranks_agree(fit->ctx, status) : status;
}

/* ---- validation ---- */

static hl_status mean_nll(hl_fit *fit, bool training, double *mean)
{
    hl_status status = use_solver(fit, training);
    size_t first, end;
    hl_ranks_part(fit->ctx, fit->valid.rows, &first, &end);
    if (status == HL_OK)
        status = hl_flow_logp(fit->flow, end - first, fit->valid.x + first * fit->dim,
                              fit->context ? fit->valid.context + first * fit->context : NULL, fit->logp + first);
    status = hl_ranks_agree(fit->ctx, status == HL_IMPRECISE ? HL_OK : status);
    if (status == HL_OK)
        status = hl_ranks_complete(fit->ctx, fit->valid.rows, fit->logp);
    *mean = 0;
    for (size_t r = 0; r < fit->valid.rows; r++)
        *mean -= fit->valid.weights ? fit->logp[r] * (fit->valid.weights[r] / fit->valid_weight)
                                    : fit->logp[r] / (double)fit->valid.rows;
    return status;
}

/* To the best parameters, with an optimiser that knows nothing of what came after them. */
static void go_back(hl_fit *fit)
{
    write_values(fit, fit->best_values);
    hl_optimizer_reread(fit->optimizer);
    hl_optimizer_restart(fit->optimizer);
}

/* Compare both solvers on the averaged parameters, keep the best, and double the steps of training if they cheat. */
static hl_status validate(hl_fit *fit, hl_fit_report *report)
{
    hl_optimizer_use_average(fit->optimizer, 1);
    hl_status status = mean_nll(fit, true, &report->validation_fixed);
    if (status == HL_OK)
        status = mean_nll(fit, false, &report->validation);
    report->validated = 1;
    if (status == HL_OK && report->validation < fit->best) {
        fit->best = report->validation;
        fit->best_iteration = fit->iteration;
        fit->worse = 0;
        read_values(fit, fit->best_values);
    } else if (status == HL_OK) {
        fit->worse += loss_at(fit, fit->iteration - 1) == loss_at(fit, fit->options.iterations - 1);
    }
    hl_optimizer_use_average(fit->optimizer, 0);
    fit->fixed = false;
    double limit = fit->dim <= 2 ? 0.02 : 0.2;
    bool differs = !(fabs(report->validation_fixed - report->validation) <= limit);
    if (status == HL_OK && fit->continuous && fit->discrete_steps && differs && fit->steps < MOST_STEPS) {
        fit->steps *= 2;
        report->steps_doubled = 1;
        if (!(report->validation <= fit->best) && isfinite(fit->best))
            go_back(fit);
    }
    return status;
}

/* ---- stepping ---- */

const char *hl_fit_phase_name(hl_fit_phase phase)
{
    static const char *const names[] = { "start", "flow matching", "score matching", "likelihood", "mixtures" };
    return phase >= HL_FIT_START && phase <= HL_FIT_MIXING ? names[phase] : NULL;
}

/* Each phase warms up; the rate falls in the last, and again in extensions. The second begins with an optimiser that knows nothing of the first
 * loss. */
static double rate_factor(hl_fit *fit, hl_loss loss)
{
    const hl_fit_options *o = &fit->options;
    size_t change = fit->continuous && o->loss == HL_LOSS_DEFAULT ? o->matching : 0;
    if (loss == HL_LOSS_FLOW_MATCHING && change)
        return hl_schedule_cosine(fit->iteration, o->iterations, o->warmup, 1);
    if (change && fit->iteration == change)
        hl_optimizer_restart(fit->optimizer);
    if (fit->extensions)
        return hl_schedule_cosine(fit->iteration - fit->begin, fit->end - fit->begin, o->warmup, o->last_rate);
    return hl_schedule_cosine(fit->iteration - change, o->iterations - change, o->warmup, o->last_rate);
}

hl_fit_phase hl_fit_phase_at(const hl_fit *fit, size_t iteration)
{
    static const hl_fit_phase phases[] = { [HL_LOSS_LIKELIHOOD] = HL_FIT_LIKELIHOOD,
                                           [HL_LOSS_FLOW_MATCHING] = HL_FIT_FLOW_MATCHING,
                                           [HL_LOSS_SCORE] = HL_FIT_SCORE_MATCHING };
    return phases[loss_at(fit, iteration)];
}

/* After a validation: does the schedule go on, because the last iterations, a quarter of those asked for, brought much, and one of the last two validations the
 * best? From the best parameters then, with a rate that rises and falls again. */
static void extend(hl_fit *fit, hl_fit_report *report)
{
    if (fit->iteration <= fit->end - fit->options.iterations / 4)
        fit->early = fit->best;
    bool falls = isfinite(fit->early) && fit->early - fit->best > FALLING && fit->worse < 2 && fit->best < fit->goal;
    if (fit->iteration < fit->end || fit->extensions >= fit->options.extensions || !falls)
        return;
    set_schedule(fit, fit->extensions + 1);
    hl_curve_extend(&fit->curve, fit->end);
    fit->early = fit->best;
    fit->worse = 0;
    go_back(fit);
    report->extended = 1;
}

static hl_status iterate(hl_fit *fit, hl_fit_report *report)
{
    hl_loss loss = loss_at(fit, fit->iteration);
    bool solves = loss == HL_LOSS_LIKELIHOOD;
    double *sum = NULL, *more;
    report->phase = hl_fit_phase_at(fit, fit->iteration);
    hl_status status = batch_gradient(fit, loss, load_batch(fit), &sum);
    if (status != HL_OK)
        return status;
    more = sum + fit->size;
    double rows = (double)fit->options.batch;
    report->loss = more[SUM_LOSS];
    report->evaluations = solves ? more[SUM_FORWARD] / rows : 1;
    report->backward = solves ? more[SUM_BACKWARD] / rows : 1;
    if (!isfinite(report->loss))
        return hl_fail(fit->ctx, HL_ERR_NOT_FINITE, "the loss of iteration %zu is not finite", fit->iteration + 1);
    return hl_optimizer_step(fit->optimizer, sum, rate_factor(fit, loss), &report->gradient_norm);
}

hl_status hl_fit_step(hl_fit *fit, hl_fit_report *report)
{
    hl_fit_report own;
    if (!fit)
        return HL_ERR_INVALID;
    report = report ? report : &own;
    *report = (hl_fit_report){
        .iterations = fit->end, .iteration = fit->iteration, .best = fit->best, .best_iteration = fit->best_iteration
    };
    if (hl_fit_is_done(fit))
        return HL_STOPPED;
    hl_status status = HL_OK;
    if (fit->pending) {
        report->phase = hl_fit_phase_at(fit, fit->iteration - 1);
        report->loss = fit->last_loss;
    } else {
        status = iterate(fit, report);
        if (status != HL_OK)
            return status;
        fit->iteration++;
        fit->last_loss = report->loss;
        hl_curve_add(&fit->curve, &(hl_training_point){ .iteration = fit->iteration,
                                                        .phase = (int)report->phase,
                                                        .steps = fit->continuous ? fit->steps : 0,
                                                        .loss = report->loss,
                                                        .evaluations = report->evaluations + report->backward });
        bool due = fit->iteration % fit->options.validate_every == 0 || fit->iteration == fit->end;
        fit->pending = fit->valid.rows && due;
    }
    report->ode_steps = fit->continuous ? fit->steps : 0;
    report->iteration = fit->iteration;
    if (fit->pending)
        status = validate(fit, report);
    if (fit->pending && status == HL_OK)
        hl_curve_validate(&fit->curve, fit->iteration, report->validation);
    if (fit->pending && status == HL_OK)
        extend(fit, report);
    fit->pending = fit->pending && status != HL_OK;
    report->iterations = fit->end;
    report->best = fit->best;
    report->best_iteration = fit->best_iteration;
    return status;
}

bool hl_fit_is_done(const hl_fit *fit)
{
    return !fit->pending &&
           (fit->iteration >= fit->end || (fit->options.patience && fit->worse >= fit->options.patience));
}

const hl_fit_options *hl_fit_chosen(const hl_fit *fit)
{
    return &fit->options;
}

const hl_curve *hl_fit_curve(const hl_fit *fit)
{
    return &fit->curve;
}

size_t hl_fit_validation_rows(const hl_fit *fit)
{
    return fit->valid.rows;
}

size_t hl_fit_iteration(const hl_fit *fit)
{
    return fit->iteration;
}

size_t hl_fit_iterations(const hl_fit *fit)
{
    return fit->end;
}

size_t hl_fit_extensions(const hl_fit *fit)
{
    return fit->extensions;
}

void hl_fit_extend_below(hl_fit *fit, double nll)
{
    fit->goal = nll;
}

hl_status hl_fit_probe(hl_fit *fit, double *seconds)
{
    double start = hl_clock(), *sum;
    hl_status status = batch_gradient(fit, HL_LOSS_LIKELIHOOD, HL_OK, &sum);
    *seconds = hl_clock() - start;
    return status;
}

hl_status hl_fit_finish(hl_fit *fit)
{
    if (!fit)
        return HL_ERR_INVALID;
    if (!isfinite(fit->best)) { /* no validation decided */
        hl_optimizer_use_average(fit->optimizer, 1);
        read_values(fit, fit->best_values);
    }
    write_values(fit, fit->best_values);
    return use_solver(fit, false);
}

/* ---- state ---- */

size_t hl_fit_state_size(const hl_fit *fit)
{
    return fit ? HEAD + HL_CURVE_STATE + fit->size + hl_optimizer_state_size(fit->optimizer) : 0;
}

void hl_fit_get_state(const hl_fit *fit, double *state)
{
    if (!fit || !state)
        return;
    double head[HEAD] = { (double)fit->iteration,
                          (double)fit->steps,
                          (double)fit->best_iteration,
                          (double)fit->worse,
                          isfinite(fit->best) ? 1 : 0,
                          isfinite(fit->best) ? fit->best : 0,
                          fit->pending ? 1 : 0,
                          fit->last_loss,
                          (double)fit->extensions,
                          isfinite(fit->early) ? 1 : 0,
                          isfinite(fit->early) ? fit->early : 0 };
    memcpy(state, head, sizeof head);
    hl_curve_get_state(&fit->curve, state + HEAD);
    state += HEAD + HL_CURVE_STATE;
    memcpy(state, fit->best_values, fit->size * sizeof *state);
    hl_optimizer_get_state(fit->optimizer, state + fit->size);
}

hl_status hl_fit_set_state(hl_fit *fit, const double *state)
{
    if (!fit)
        return HL_ERR_INVALID;
    if (!state)
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_fit_set_state: the state is NULL");
    const double *values = state + HEAD + HL_CURVE_STATE;
    for (size_t i = 0; i < HEAD + HL_CURVE_STATE + fit->size; i++)
        if (!isfinite(state[i]) || (i < 4 && !(state[i] >= 0 && state[i] <= 1e15)))
            return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_fit_set_state: not a saved fit state");
    size_t least = fit->discrete_steps && fit->continuous, start = first_steps(fit);
    if (state[1] < (double)least || state[1] > (double)(start > MOST_STEPS ? start : 2 * MOST_STEPS))
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_fit_set_state: not a saved fit state: %g solver steps", state[1]);
    if (!(state[8] >= 0 && state[8] <= (double)fit->options.extensions))
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_fit_set_state: not a saved fit state: %g extensions", state[8]);
    hl_curve curve;
    hl_curve_start(&curve, fit->options.iterations);
    hl_curve_extend(&curve, schedule_end(fit, (size_t)state[8]));
    if (!hl_curve_set_state(&curve, state + HEAD))
        return hl_fail(fit->ctx, HL_ERR_INVALID, "hl_fit_set_state: not a saved fit state");
    hl_status status = hl_optimizer_set_state(fit->optimizer, values + fit->size);
    if (status != HL_OK)
        return status;
    fit->curve = curve;
    set_schedule(fit, (size_t)state[8]);
    fit->iteration = (size_t)state[0];
    fit->steps = (size_t)state[1];
    fit->best_iteration = (size_t)state[2];
    fit->worse = (size_t)state[3];
    fit->best = state[4] != 0 ? state[5] : INFINITY;
    fit->pending = state[6] != 0 && fit->iteration > 0;
    fit->last_loss = state[7];
    fit->early = state[9] != 0 ? state[10] : INFINITY;
    fit->fixed = false;
    memcpy(fit->best_values, values, fit->size * sizeof *values);
    return HL_OK;
}
