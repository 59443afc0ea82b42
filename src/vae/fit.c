/* fit.c - hl_vae_fit: rows in, autoencoder out, with checkpoints and reports. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/checkpoint.h"
#include "nn/model.h"
#include "vae/fit.h"

enum { LEAST_ROWS = 10, STREAM_SPLIT = 7 };

typedef struct job {
    hl_context *ctx;
    const hl_vae_data *data;
    const hl_settings *settings;
    hl_job how;
    hl_vae *vae;
    hl_vae_train_options options;
    hl_vae_train *train;
    size_t *index, train_rows; /* of data->train */
    hl_vae_rows valid;
    void *valid_copy; /* where `valid` is, if it is a part of `train` */
    char *fingerprint;
    double start, saved, first; /* seconds; seconds; the iteration that it began with */
    hl_vae_outcome outcome;
} job;

/* ---- data ---- */

static hl_status check_data(job *j)
{
    const hl_vae_data *d = j->data;
    hl_status status = hl_vae_check_rows(j->vae, &d->train);
    if (status == HL_OK && d->valid.rows)
        status = hl_vae_check_rows(j->vae, &d->valid);
    if (status == HL_OK && d->train.rows < LEAST_ROWS)
        status =
            hl_fail(j->ctx, HL_ERR_INVALID, "%zu rows; training needs at least %d", d->train.rows, (int)LEAST_ROWS);
    if (status == HL_OK && j->options.dynamic && !d->train.gray)
        status = hl_fail(j->ctx, HL_ERR_INVALID, "dynamic binarisation needs gray values, 0 to 255");
    if (status == HL_OK && j->options.frozen && !d->from)
        status = hl_fail(j->ctx, HL_ERR_INVALID, "an autoencoder to freeze must be given");
    if (status == HL_OK && j->options.importance > 1 && j->vae->hutchinson)
        status =
            hl_fail(j->ctx, HL_ERR_INVALID,
                    "the loss IWAE-k needs log q without noise, but this trace is Hutchinson's: it would be biased");
    return status;
}

/* Rows for validation: those given, or a random part, copied. */
static hl_status split(job *j)
{
    const hl_vae_rows *all = &j->data->train;
    double share = hl_settings_real(j->settings, "validation-share", 0.1);
    size_t set_aside = j->data->valid.rows ? 0 : (size_t)(share * (double)all->rows), dim = j->vae->dim;
    size_t width = dim * (all->bytes ? 1 : sizeof *all->values);
    j->index = hl_calloc(j->ctx, all->rows, sizeof *j->index);
    j->valid_copy = hl_calloc(j->ctx, set_aside, width);
    if (!j->index || !j->valid_copy)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < all->rows; i++)
        j->index[i] = i;
    for (size_t i = all->rows, n = 0; n < set_aside; n++, i--) { /* the last ones of a partial shuffle */
        size_t k = (size_t)(hl_random_uniform(j->options.seed, STREAM_SPLIT, i) * (double)i), swap = j->index[i - 1];
        j->index[i - 1] = j->index[k];
        j->index[k] = swap;
    }
    j->train_rows = all->rows - set_aside;
    j->valid = j->data->valid;
    if (set_aside == 0)
        return HL_OK;
    const char *from = all->bytes ? (const char *)all->bytes : (const char *)all->values;
    for (size_t i = 0; i < set_aside; i++)
        memcpy((char *)j->valid_copy + i * width, from + j->index[j->train_rows + i] * width, width);
    j->valid = (hl_vae_rows){ .rows = set_aside, .gray = all->gray };
    if (all->bytes)
        j->valid.bytes = j->valid_copy;
    else
        j->valid.values = j->valid_copy;
    return HL_OK;
}

/* ---- the run ---- */

static uint64_t hash_rows(const hl_vae *v, const hl_vae_rows *rows)
{
    uint64_t sum = rows->rows;
    for (size_t i = 0; i < rows->rows; i++)
        sum = sum * 0x9E3779B97F4A7C15u + hl_vae_row_key(v, rows, i);
    return sum;
}

/* All that decides the bits of the result, as one line. */
static hl_status describe(job *j)
{
    enum { ROOM = 4096 };
    char *text = j->fingerprint = hl_alloc(j->ctx, ROOM);
    if (!text)
        return HL_ERR_NOMEM;
    const hl_vae_spec s = hl_vae_describe(j->vae);
    const hl_vae_train_options *o = &j->options;
    hl_text t = hl_text_start(text, ROOM);
    hl_text_add(
        &t,
        "image %zux%zux%zu dim %zu net %s posterior %s likelihood %s latent %zu flows %zu columns %zu hidden %zu "
        "layers %d features %zu width %zu rank %zu activation %s trace %s dtype %s ",
        s.image[0], s.image[1], s.image[2], s.dim, s.net, s.posterior, s.likelihood, s.latent, s.flows, s.columns,
        s.hidden, s.layers, s.features, s.width, s.rank, s.activation, s.trace, hl_dtype_name(s.dtype));
    hl_text_add(
        &t,
        "batch %zu iters %zu importance %zu warmup %g last-lr %g validate-every %zu validation-rows %zu patience %zu "
        "ode-steps %zu dynamic %d freeze %d seed %llu optimizer %s lr %g clip %g average %g ",
        o->batch, o->iterations, o->importance, o->warmup, o->last_rate, o->validate_every, o->validation_rows,
        o->patience, o->ode_steps, o->dynamic, o->frozen, (unsigned long long)o->seed, o->optimizer.method,
        o->optimizer.rate, o->optimizer.clip, o->optimizer.average);
    hl_text_add(&t, "rows %zu data %016llx valid %016llx from %d", j->train_rows,
                (unsigned long long)hash_rows(j->vae, &j->data->train),
                (unsigned long long)hash_rows(j->vae, &j->valid), j->data->from != NULL);
    return HL_OK;
}

static hl_status save(job *j)
{
    j->saved = hl_clock();
    if (!j->how.checkpoint || j->ctx->ranks.rank > 0)
        return HL_OK;
    size_t size = hl_vae_train_state_size(j->train);
    double *state = hl_calloc(j->ctx, size, sizeof *state);
    if (!state)
        return HL_ERR_NOMEM;
    hl_vae_train_get_state(j->train, state);
    hl_status status = hl_checkpoint_write(j->ctx, j->fingerprint, j->how.checkpoint, size, state);
    hl_free(j->ctx, state);
    return status;
}

static hl_status resume(job *j)
{
    double *state = NULL;
    hl_status status =
        hl_checkpoint_read(j->ctx, j->fingerprint, j->how.checkpoint, hl_vae_train_state_size(j->train), &state);
    if (status == HL_OK && (status = hl_vae_train_set_state(j->train, state)) != HL_OK)
        status = hl_model_blame(j->ctx, status, j->how.checkpoint, "");
    hl_free(j->ctx, state);
    return status;
}

static hl_status report(job *j, hl_vae_progress *p)
{
    double per_epoch = (double)(j->train_rows / j->options.batch), done = (double)p->iteration - j->first;
    p->iterations = j->options.iterations;
    p->epoch = (double)p->iteration / per_epoch;
    p->batch = j->options.batch;
    p->parameters = j->vae->params->size;
    p->seconds = hl_clock() - j->start;
    p->seconds_left = done > 0 ? p->seconds / done * (double)(p->iterations - p->iteration) : NAN;
    bool stop = hl_check_stop(j->ctx) != HL_OK;
    stop = (j->how.progress && j->how.progress(p, j->how.user)) || stop;
    return hl_ranks_agree(j->ctx, stop ? HL_STOPPED : HL_OK);
}

/* Is the time over, on any rank? */
static bool is_late(const job *j, double seconds)
{
    double minutes = hl_settings_real(j->settings, "minutes", 0), late = minutes > 0 && seconds > 60 * minutes;
    return minutes > 0 && hl_ranks_most(j->ctx, &late) == HL_OK && late > 0;
}

/* HL_OK when it is over, HL_STOPPED if somebody wants it to be. */
static hl_status run(job *j)
{
    double every = j->how.save_every;
    hl_vae_progress p = { .iteration = (size_t)j->train->iteration,
                          .loss = NAN,
                          .validation = j->train->validation,
                          .best = j->train->best,
                          .best_iteration = (size_t)j->train->best_iteration };
    j->first = j->train->iteration;
    every = every > 0 ? every : 20;
    hl_status status = report(j, &p);
    while (status == HL_OK) {
        if (hl_vae_train_is_over(j->train)) {
            j->outcome.end = p.iteration < j->options.iterations ? HL_VAE_END_PATIENCE : HL_VAE_END_DONE;
            return HL_OK;
        }
        status = hl_vae_train_step(j->train, &p);
        if (status == HL_OK)
            status = report(j, &p);
        if (status == HL_OK && is_late(j, p.seconds)) {
            j->outcome.end = HL_VAE_END_TIME;
            return HL_OK;
        }
        if (status == HL_OK && hl_clock() - j->saved > every)
            status = hl_checkpoint_tell(j->ctx, &j->how, save(j));
    }
    j->outcome.end = HL_VAE_END_STOPPED;
    return status;
}

/* ---- the call ---- */

static hl_status create(job *j)
{
    hl_vae_spec spec = hl_vae_spec_of(j->data, j->settings);
    hl_status status = hl_vae_create(j->ctx, &spec, &j->vae);
    if (status == HL_OK)
        status = hl_vae_init(j->vae, hl_settings_integer(j->settings, "seed", 0) + 1);
    if (status == HL_OK && j->data->from)
        status = hl_vae_copy_networks(j->vae, j->data->from);
    if (status == HL_OK) {
        j->options = hl_vae_train_options_of(j->settings, 1); /* what the checks and the split need of them */
        status = check_data(j);
    }
    if (status == HL_OK)
        status = split(j);
    if (status == HL_OK) {
        j->options = hl_vae_train_options_of(j->settings, j->train_rows);
        status = describe(j);
    }
    if (status == HL_OK)
        status =
            hl_vae_train_create(j->vae, &j->data->train, j->train_rows, j->index, &j->valid, &j->options, &j->train);
    if (status == HL_OK)
        status = hl_ranks_compare(j->ctx, "table or settings", j->fingerprint, strlen(j->fingerprint));
    return status == HL_OK && j->how.resume ? resume(j) : status;
}

static hl_status fit(job *j)
{
    hl_status status = create(j), ended = HL_OK;
    if (status == HL_OK)
        status = ended = run(j);
    if (status == HL_OK)
        status = hl_checkpoint_tell(j->ctx, &j->how, save(j));
    else if (status == HL_STOPPED)
        status = save(j);
    if (status != HL_OK)
        return status;
    hl_vae_train_finish(j->train);
    hl_vae_outcome *o = &j->outcome;
    o->iteration = (size_t)j->train->iteration;
    o->iterations = j->options.iterations;
    o->best = j->train->best;
    o->best_iteration = isnan(o->best) ? o->iteration : (size_t)j->train->best_iteration;
    o->train_rows = j->train_rows;
    o->valid_rows = j->train->valid.rows;
    o->parameters = j->vae->params->size;
    o->ode_steps = j->vae->posterior->field ? (size_t)j->train->ode_steps : 0;
    return ended;
}

hl_status hl_vae_fit(hl_context *ctx, const hl_vae_data *data, const hl_settings *settings, const hl_job *how,
                     hl_vae **vae, hl_vae_outcome *outcome)
{
    if (vae)
        *vae = NULL;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!data || !vae)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_vae_fit: the data or the result is NULL");
    job j = { .ctx = ctx, .data = data, .settings = settings, .how = how ? *how : (hl_job){ 0 } };
    if (j.how.resume && !j.how.checkpoint)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_vae_fit: a job that resumes needs a checkpoint");
    j.start = j.saved = hl_clock();
    hl_status status = hl_settings_check(ctx, settings, hl_vae_fit_options());
    if (status == HL_OK)
        status = fit(&j);
    j.outcome.seconds = hl_clock() - j.start;
    hl_vae_train_free(j.train);
    hl_free(ctx, j.index);
    hl_free(ctx, j.valid_copy);
    hl_free(ctx, j.fingerprint);
    if (status != HL_OK && status != HL_STOPPED) {
        hl_vae_free(j.vae);
        j.vae = NULL;
    }
    *vae = j.vae;
    if (outcome)
        *outcome = j.outcome;
    return status;
}
