/* train.c - one iteration of training at a time. Everything random comes from (seed, stream, counter) and all state is a row of
 * doubles, so a run can stop anywhere and go on to the same bits.
 *
 * The gradient of IWAE-k is that of the log weights, each times its share of the sum of weights: one run of the plan gives the
 * weights, another the gradient. */
#include <math.h>
#include <string.h>

#include "vae/train.h"

enum { STREAM_SHUFFLE = 1, STREAM_NOISE, STREAM_PROBE, STREAM_BITS }; /* with the epoch in the upper half */
enum { HEAD = 7, MOST_STEPS = 64 };
enum { SHARE = 128 }; /* rows of a batch that stay together: a share costs as much as reading all parameters */
enum { SUM_LOSS, SUM_FAILED, SUMS }; /* what a share adds up beside the gradient */

static const double steps_differ = 0.05; /* nats */

/* ---- creation ---- */

static size_t pairs_of(const hl_vae_train *t)
{
    return t->o.batch * t->o.importance;
}

static hl_status make_arrays(hl_vae_train *t)
{
    hl_vae *v = t->vae;
    hl_context *ctx = v->ctx;
    size_t pairs = pairs_of(t), latent = v->spec.latent, size = sizeof(double);
    hl_status status = hl_shares_create(ctx, t->o.batch, SHARE, v->params->size + SUMS, &t->shares);
    if (status != HL_OK)
        return status;
    hl_shares_rows(t->shares, &t->first, &t->end);
    bool good = (t->shuffle = hl_calloc(ctx, t->rows, sizeof *t->shuffle)) &&
                (t->copy = hl_calloc(ctx, pairs, sizeof *t->copy)) &&
                (t->raw = hl_calloc(ctx, hl_size_mul(t->end - t->first, v->dim), t->train.real ? size : 1)) &&
                (t->x = hl_calloc(ctx, hl_size_mul(t->o.batch, v->dim), size)) &&
                (t->noise = hl_calloc(ctx, hl_size_mul(pairs, latent), size)) &&
                (t->probe = hl_calloc(ctx, hl_size_mul(pairs, latent), size)) &&
                (t->weight = hl_calloc(ctx, pairs, size)) && (t->best_values = hl_calloc(ctx, v->params->size, size));
    for (size_t i = 0; good && i < HL_VAE_TERMS; i++)
        good = (t->term[i] = hl_calloc(ctx, pairs, size));
    for (size_t i = 0; good && i < pairs; i++)
        t->copy[i] = i / t->o.importance;
    return good ? HL_OK : HL_ERR_NOMEM;
}

/* The plan for the steps of training as they are now. */
static hl_status make_loss(hl_vae_train *t)
{
    hl_vae_loss *loss = NULL;
    hl_status status = hl_vae_loss_create(t->vae, (size_t)t->ode_steps, t->o.frozen, &loss);
    if (status != HL_OK)
        return status;
    hl_vae_loss_free(t->loss);
    t->loss = loss;
    return HL_OK;
}

hl_status hl_vae_train_create(hl_vae *v, const hl_vae_source *train, size_t rows, const size_t *index,
                              const hl_vae_rows *valid, const hl_vae_train_options *options, hl_vae_train **out)
{
    hl_vae_train *t = hl_calloc(v->ctx, 1, sizeof *t);
    *out = NULL;
    if (!t)
        return HL_ERR_NOMEM;
    *t = (hl_vae_train){ .vae = v, .o = *options, .train = *train, .valid = *valid, .index = index, .rows = rows };
    t->epoch = SIZE_MAX;
    t->best = t->validation = NAN;
    t->ode_steps = (double)options->ode_steps;
    hl_curve_start(&t->course, options->iterations);
    if (t->valid.rows > options->validation_rows)
        t->valid.rows = options->validation_rows;
    hl_status status = make_arrays(t);
    if (status == HL_OK)
        status = make_loss(t);
    if (status == HL_OK)
        status = hl_optimizer_create_for(v->params, &options->optimizer, &t->optimizer);
    if (status != HL_OK) {
        hl_vae_train_free(t);
        return status;
    }
    *out = t;
    return HL_OK;
}

void hl_vae_train_free(hl_vae_train *t)
{
    if (!t)
        return;
    hl_context *ctx = t->vae->ctx;
    void *all[] = { t->shuffle, t->copy, t->raw, t->x, t->noise, t->probe, t->weight, t->best_values };
    hl_shares_free(t->shares);
    hl_optimizer_free(t->optimizer);
    hl_vae_loss_free(t->loss);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        hl_free(ctx, all[i]);
    for (size_t i = 0; i < HL_VAE_TERMS; i++)
        hl_free(ctx, t->term[i]);
    hl_free(ctx, t);
}

/* ---- a batch ---- */

static uint64_t stream_of(size_t epoch, uint64_t stream)
{
    return (uint64_t)epoch << 8 | stream;
}

static void shuffle(hl_vae_train *t, size_t epoch)
{
    for (size_t i = 0; i < t->rows; i++)
        t->shuffle[i] = t->index ? t->index[i] : i;
    for (size_t i = t->rows; i > 1; i--) {
        size_t k = (size_t)(hl_random_uniform(t->o.seed, stream_of(epoch, STREAM_SHUFFLE), i) * (double)i);
        size_t swap = t->shuffle[i - 1];
        t->shuffle[i - 1] = t->shuffle[k];
        t->shuffle[k] = swap;
    }
    t->epoch = epoch;
}

/* This rank's rows of the iteration. */
static hl_status read_rows(hl_vae_train *t, size_t epoch, size_t at)
{
    size_t count = t->end - t->first;
    hl_vae_rows rows = { .rows = count, .gray = t->train.gray };
    rows.bytes = t->train.real ? NULL : t->raw;
    rows.values = t->train.real ? t->raw : NULL;
    hl_status status = count ? t->train.read(count, t->shuffle + at + t->first, t->raw, t->train.user) : HL_OK;
    if (status == HL_OK)
        hl_vae_fetch(t->vae, &rows, stream_of(t->o.dynamic ? epoch : 0, STREAM_BITS) ^ t->o.seed << 32, 0, count, NULL,
                     t->x + t->first * t->vae->dim);
    return status;
}

/* Rows of this iteration and its random numbers. */
static hl_status take_batch(hl_vae_train *t)
{
    const hl_vae *v = t->vae;
    size_t iteration = (size_t)t->iteration, batches = t->rows / t->o.batch, epoch = iteration / batches;
    size_t pairs = pairs_of(t), values = pairs * v->spec.latent;
    uint64_t first = (uint64_t)iteration * values;
    if (t->epoch != epoch)
        shuffle(t, epoch);
    hl_random_normals(t->o.seed, STREAM_NOISE, first, values, t->noise);
    for (size_t i = 0; v->hutchinson && i < values; i++)
        t->probe[i] = hl_random_bits(t->o.seed, STREAM_PROBE, first + i) >> 63 ? 1 : -1;
    for (size_t i = 0; i < pairs; i++)
        t->weight[i] = 1 / (double)pairs;
    return read_rows(t, epoch, iteration % batches * t->o.batch);
}

/* Terms and gradients of the rows `first` up to `end`. */
static hl_status run(hl_vae_train *t, size_t first, size_t end, double beta)
{
    size_t k = t->o.importance, pair = first * k, latent = t->vae->spec.latent;
    const hl_row_in input[HL_VAE_INPUTS] = {
        [HL_VAE_X] = { .p = t->x, .pitch = t->vae->dim, .index = t->copy + pair },
        [HL_VAE_NOISE] = { .p = t->noise + pair * latent, .pitch = latent },
        [HL_VAE_PROBE] = { .p = t->probe + pair * latent, .pitch = latent },
        [HL_VAE_BETA] = { .p = &beta, .pitch = 0 },
        [HL_VAE_WEIGHT] = { .p = t->weight + pair, .pitch = 1 },
    };
    double *term[HL_VAE_TERMS];
    for (size_t i = 0; i < HL_VAE_TERMS; i++)
        term[i] = t->term[i] + pair;
    return hl_vae_loss_run(t->loss, (end - first) * k, input, term);
}

/* The log weight of a pair, with the ratio times beta. */
static double log_weight(const hl_vae_train *t, size_t i, double beta)
{
    return t->term[HL_VAE_LOG_PX][i] +
           beta * (t->term[HL_VAE_LOG_PZ][i] - t->term[HL_VAE_LOG_Q0][i] + t->term[HL_VAE_LOG_DET][i]);
}

/* Every pair's share among the k of its row. */
static void share_weights(hl_vae_train *t, size_t first, size_t end, double beta)
{
    size_t k = t->o.importance;
    for (size_t row = first; row < end; row++) {
        double top = -INFINITY, sum = 0;
        for (size_t i = row * k; i < (row + 1) * k; i++)
            top = fmax(top, log_weight(t, i, beta));
        for (size_t i = row * k; i < (row + 1) * k; i++)
            sum += exp(log_weight(t, i, beta) - top);
        for (size_t i = row * k; i < (row + 1) * k; i++)
            t->weight[i] = exp(log_weight(t, i, beta) - top) / sum / (double)t->o.batch;
    }
}

/* ---- an iteration ---- */

static double beta_of(const hl_vae_train *t)
{
    double rise = t->o.warmup * (double)t->o.iterations;
    return rise > 0 ? fmin(1, (t->iteration + 1) / rise) : 1;
}

/* -ELBO of the validation rows by so many steps, or by the adaptive solver; NaN if that gave up. */
static hl_status bound_by(hl_vae_train *t, size_t steps, double *bound)
{
    hl_vae_result r;
    hl_vae_eval_options o = { .steps = steps, .tolerance = steps ? 0 : HL_VAE_TOLERANCE, .seed = t->o.seed };
    hl_status status = hl_vae_evaluate(t->vae, &t->valid, &o, NULL, &r);
    bool gave_up =
        t->vae->posterior->field && (status == HL_ERR_STEP || status == HL_ERR_BUDGET || status == HL_ERR_NOT_FINITE);
    *bound = gave_up ? NAN : -r.elbo;
    return hl_ranks_agree(t->vae->ctx, gave_up ? HL_OK : status);
}

static void fill_report(const hl_vae_train *t, hl_vae_progress *report)
{
    report->validation = t->validation;
    report->best = t->best;
    report->best_iteration = (size_t)t->best_iteration;
    report->iteration = (size_t)t->iteration;
    report->ode_steps = t->vae->posterior->field ? (size_t)t->ode_steps : 0;
}

static hl_status validate(hl_vae_train *t, hl_vae_progress *report)
{
    bool continuous = t->vae->posterior->field != NULL, risen = beta_of(t) >= 1;
    double coarse = 0, bound;
    hl_optimizer_use_average(t->optimizer, 1);
    hl_status status = bound_by(t, 0, &bound);
    if (status == HL_OK && continuous)
        status = bound_by(t, (size_t)t->ode_steps, &coarse);
    bool better = status == HL_OK && risen && !isnan(bound) && !(bound >= t->best);
    if (better) {
        hl_params_read(t->vae->params, t->best_values);
        t->best = bound;
        t->best_iteration = t->iteration;
    }
    hl_optimizer_use_average(t->optimizer, 0);
    if (status != HL_OK)
        return status;
    t->validation = bound;
    t->pending = 0;
    hl_curve_validate(&t->course, (size_t)t->iteration, bound);
    t->misses = better || !risen ? 0 : t->misses + 1;
    report->validated = 1;
    if (continuous && !(fabs(coarse - bound) <= steps_differ) && t->ode_steps < MOST_STEPS) {
        t->ode_steps *= 2;
        report->steps_doubled = 1;
        status = make_loss(t);
    }
    fill_report(t, report);
    return status;
}

/* Without a validation that is due. */
static bool no_more_iterations(const hl_vae_train *t)
{
    return t->iteration >= (double)t->o.iterations || (t->o.patience && t->misses >= (double)t->o.patience);
}

bool hl_vae_train_is_over(const hl_vae_train *t)
{
    return t->pending == 0 && no_more_iterations(t);
}

/* The sums of a batch over all ranks: the gradient, then the others. A share that fails fails on every rank. */
static hl_status batch_gradient(hl_vae_train *t, double beta, double **sum)
{
    size_t first, end, size = t->vae->params->size, k = t->o.importance;
    hl_status status = take_batch(t);
    double *share;
    while (hl_shares_next(t->shares, &first, &end, &share)) {
        double *more = share + size;
        if (status == HL_OK)
            status = run(t, first, end, beta);
        if (status == HL_OK && k > 1) {
            share_weights(t, first, end, beta);
            status = run(t, first, end, beta);
        }
        hl_params_read_gradients(t->vae->params, share);
        more[SUM_LOSS] = 0;
        more[SUM_FAILED] = status != HL_OK;
        for (size_t i = first * k; i < end * k; i++)
            more[SUM_LOSS] -= log_weight(t, i, 1);
    }
    hl_status gathered = hl_shares_total(t->shares, sum);
    if (gathered != HL_OK)
        return gathered;
    return (*sum)[size + SUM_FAILED] > 0 ? hl_ranks_agree(t->vae->ctx, status) : status;
}

hl_status hl_vae_train_step(hl_vae_train *t, hl_vae_progress *report)
{
    double beta = beta_of(t), *sum = NULL, rate;
    if (t->pending != 0)
        return validate(t, report);
    hl_status status = batch_gradient(t, beta, &sum);
    if (status != HL_OK)
        return status;
    rate = hl_schedule_cosine((size_t)t->iteration, t->o.iterations, t->o.iterations / 50, t->o.last_rate);
    report->loss = sum[t->vae->params->size + SUM_LOSS] / (double)pairs_of(t) + t->vae->log_scale;
    status = hl_optimizer_step(t->optimizer, sum, rate, &report->gradient_norm);
    if (status != HL_OK)
        return hl_fail(t->vae->ctx, status,
                       "training diverged in iteration %.0f: the gradient is not finite; try a "
                       "smaller learning rate",
                       t->iteration + 1);
    t->iteration++;
    if (isfinite(report->loss))
        hl_curve_add(&t->course, &(hl_training_point){ .iteration = (size_t)t->iteration,
                                                       .steps = t->vae->posterior->field ? (size_t)t->ode_steps : 0,
                                                       .loss = report->loss });
    report->validated = report->steps_doubled = 0;
    report->beta = beta;
    t->pending = t->valid.rows && ((size_t)t->iteration % t->o.validate_every == 0 || no_more_iterations(t));
    if (t->pending != 0)
        return validate(t, report);
    fill_report(t, report);
    return HL_OK;
}

hl_status hl_vae_train_finish(hl_vae_train *t)
{
    hl_vae *v = t->vae;
    if (isnan(t->best))
        hl_optimizer_use_average(t->optimizer, 1);
    else
        hl_params_write(v->params, t->best_values);
    v->course = v->course ? v->course : hl_calloc(v->ctx, 1, sizeof *v->course);
    if (!v->course)
        return HL_ERR_NOMEM;
    *v->course = t->course;
    return HL_OK;
}

/* ---- state ---- */

/* The numbers of the head; NaN is kept as the largest double, since a state is finite. */
static void head(hl_vae_train *t, double *state, bool read)
{
    double *number[HEAD] = { &t->iteration, &t->best,      &t->best_iteration, &t->validation,
                             &t->misses,    &t->ode_steps, &t->pending };
    for (size_t i = 0; i < HEAD; i++)
        if (read)
            *number[i] = state[i] == 1e308 ? NAN : state[i];
        else
            state[i] = isnan(*number[i]) ? 1e308 : *number[i];
}

size_t hl_vae_train_state_size(const hl_vae_train *t)
{
    return HEAD + HL_CURVE_STATE + t->vae->params->size + hl_optimizer_state_size(t->optimizer);
}

void hl_vae_train_get_state(const hl_vae_train *t, double *state)
{
    hl_vae_train copy = *t;
    head(&copy, state, false);
    hl_curve_get_state(&t->course, state + HEAD);
    state += HEAD + HL_CURVE_STATE;
    memcpy(state, t->best_values, t->vae->params->size * sizeof *state);
    hl_optimizer_get_state(t->optimizer, state + t->vae->params->size);
}

hl_status hl_vae_train_set_state(hl_vae_train *t, const double *state)
{
    double numbers[HEAD];
    memcpy(numbers, state, sizeof numbers);
    if (!(numbers[0] >= 0 && numbers[0] <= 1e15 && numbers[5] >= 1 && numbers[5] <= MOST_STEPS) ||
        !hl_curve_set_state(&t->course, state + HEAD))
        return hl_fail(t->vae->ctx, HL_ERR_FORMAT, "not a saved state of an autoencoder's training");
    head(t, numbers, true);
    state += HEAD + HL_CURVE_STATE;
    memcpy(t->best_values, state, t->vae->params->size * sizeof *state);
    hl_status status = hl_optimizer_set_state(t->optimizer, state + t->vae->params->size);
    t->epoch = SIZE_MAX;
    return status == HL_OK ? make_loss(t) : status;
}
