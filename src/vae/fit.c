/* fit.c - hl_vae_fit: rows in, autoencoder out, with checkpoints and reports. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "learn/checkpoint.h"
#include "nn/model.h"
#include "vae/fit.h"

enum { LEAST_ROWS = 10, STREAM_SPLIT = 7, CHUNK = 256, SAMPLE_ROWS = 10000 };
enum { COMPARED_ROWS = 1000 }; /* that all ranks read; of the others each sees its own */
#define MIX 0x9E3779B97F4A7C15u

typedef struct job {
    hl_context *ctx;
    const hl_vae_data *data;
    const hl_settings *settings;
    hl_job how;
    hl_vae *vae;
    hl_vae_train_options options;
    hl_vae_train *train;
    hl_vae_source source;      /* of the training rows, wherever they are */
    size_t *index, train_rows; /* of them */
    uint64_t hash, compared;   /* of all of them; of some */
    hl_vae_rows valid;
    void *valid_copy; /* where `valid` is, if it is a part of the training rows */
    char *sample_copy;
    char *fingerprint;
    double start, saved, first; /* seconds; seconds; the iteration that it began with */
    hl_vae_outcome outcome;
} job;

/* ---- data ---- */

static size_t width_of(const job *j)
{
    return hl_size_mul(j->vae->dim, j->source.real ? sizeof(double) : 1);
}

/* Rows in memory: hl_vae_read_fn. */
static hl_status read_memory(size_t count, const size_t *row, void *to, void *user)
{
    const job *j = user;
    const hl_vae_rows *rows = &j->data->train;
    size_t width = width_of(j);
    const char *from = rows->bytes ? (const char *)rows->bytes : (const char *)rows->values;
    for (size_t r = 0; r < count; r++)
        memcpy((char *)to + r * width, from + row[r] * width, width);
    return HL_OK;
}

/* `count` rows of the source as they were read to `raw`. */
static hl_vae_rows rows_at(const job *j, size_t count, const void *raw)
{
    hl_vae_rows rows = { .rows = count, .gray = j->source.gray };
    rows.bytes = j->source.real ? NULL : raw;
    rows.values = j->source.real ? raw : NULL;
    return rows;
}

static hl_status open_source(job *j)
{
    const hl_vae_data *d = j->data;
    hl_vae_rows none = { 0 };
    if (d->source && !d->source->read)
        return hl_fail(j->ctx, HL_ERR_INVALID, "hl_vae_fit: the row source has no read function");
    if (d->source)
        j->source = *d->source;
    else
        j->source = (hl_vae_source){ d->train.rows, read_memory, j, d->train.values != NULL, d->train.gray };
    hl_vae_rows kind = d->source ? rows_at(j, j->source.rows, &none) : d->train;
    return hl_vae_check_kind(j->vae, &kind);
}

static hl_status check_data(job *j)
{
    const hl_vae_data *d = j->data;
    hl_status status = open_source(j);
    if (status == HL_OK && d->valid.rows)
        status = hl_vae_check_rows(j->vae, &d->valid);
    if (status == HL_OK && j->source.rows < LEAST_ROWS)
        status =
            hl_fail(j->ctx, HL_ERR_INVALID, "%zu rows; training needs at least %d", j->source.rows, (int)LEAST_ROWS);
    if (status == HL_OK && j->options.dynamic && !j->source.gray)
        status = hl_fail(j->ctx, HL_ERR_INVALID, "dynamic binarisation needs gray values, 0 to 255");
    if (status == HL_OK && j->options.frozen && !d->from)
        status = hl_fail(j->ctx, HL_ERR_INVALID, "freeze needs a given autoencoder (from)");
    if (status == HL_OK && j->options.importance > 1 && j->vae->hutchinson)
        status = hl_fail(
            j->ctx, HL_ERR_INVALID,
            "the loss IWAE-k would be biased by the stochastic trace (hutchinson); use trace exact or importance 1");
    return status;
}

/* Rows for validation: those given, or a random part, of which as many are copied as validations use. */
static hl_status split(job *j)
{
    double share = hl_settings_real(j->settings, "validation-share", 0.1);
    size_t rows = j->source.rows, set_aside = j->data->valid.rows ? 0 : (size_t)(share * (double)rows);
    size_t held = set_aside < j->options.validation_rows ? set_aside : j->options.validation_rows;
    j->index = hl_calloc(j->ctx, rows, sizeof *j->index);
    j->valid_copy = hl_calloc(j->ctx, held, width_of(j));
    if (!j->index || !j->valid_copy)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < rows; i++)
        j->index[i] = i;
    for (size_t i = rows, n = 0; n < set_aside; n++, i--) { /* the last ones of a partial shuffle */
        size_t k = (size_t)(hl_random_uniform(j->options.seed, STREAM_SPLIT, i) * (double)i), swap = j->index[i - 1];
        j->index[i - 1] = j->index[k];
        j->index[k] = swap;
    }
    j->train_rows = rows - set_aside;
    j->valid = j->data->valid;
    if (set_aside == 0)
        return HL_OK;
    j->valid = rows_at(j, held, j->valid_copy);
    return j->source.read(held, j->index + j->train_rows, j->valid_copy, j->source.user);
}

/* ---- what the rows are ---- */

static uint64_t hash_rows(const hl_vae *v, const hl_vae_rows *rows, uint64_t sum)
{
    for (size_t i = 0; i < rows->rows; i++)
        sum = sum * MIX + hl_vae_row_key(v, rows, i);
    return sum;
}

static uint64_t power(uint64_t base, size_t exponent)
{
    uint64_t result = 1;
    for (; exponent; exponent /= 2, base *= base)
        result *= exponent % 2 ? base : 1;
    return result;
}

/* Check rows first, first + step, ... before `end`, and hash them. */
static hl_status look(job *j, size_t first, size_t end, size_t step, uint64_t *sum)
{
    size_t row[CHUNK], n;
    void *raw = hl_calloc(j->ctx, CHUNK, width_of(j));
    hl_status status = raw ? HL_OK : HL_ERR_NOMEM;
    for (size_t at = first; at < end && status == HL_OK;) {
        size_t start = at;
        for (n = 0; n < CHUNK && at < end; at += step)
            row[n++] = at;
        status = j->source.read(n, row, raw, j->source.user);
        hl_vae_rows rows = rows_at(j, n, raw);
        if (status == HL_OK && step == 1)
            status = hl_vae_check_part(j->vae, &rows, start);
        if (status == HL_OK)
            *sum = hash_rows(j->vae, &rows, *sum);
    }
    hl_free(j->ctx, raw);
    return status;
}

/* Each rank looks at its part of the training rows. The hash of all, sum_i key_i MIX^(rows - 1 - i), is a sum over parts. */
static hl_status look_at_rows(job *j)
{
    size_t ranks = hl_context_ranks(j->ctx), rows = j->source.rows, first, end;
    uint64_t mine = 0;
    double *part = hl_calloc(j->ctx, ranks, sizeof *part); /* bits of hashes */
    hl_ranks_part(j->ctx, rows, &first, &end);
    hl_status status = part ? look(j, first, end, 1, &mine) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = look(j, 0, rows, rows / COMPARED_ROWS + 1, &j->compared);
    status = hl_ranks_agree(j->ctx, status);
    mine *= power(MIX, rows - end);
    if (status == HL_OK) {
        memcpy(part + (ranks > 1 ? j->ctx->ranks.rank : 0), &mine, sizeof mine);
        status = hl_ranks_complete(j->ctx, ranks, part);
    }
    j->hash = rows * power(MIX, rows);
    for (size_t k = 0; k < ranks && status == HL_OK; k++) {
        memcpy(&mine, part + k, sizeof mine);
        j->hash += mine;
    }
    hl_free(j->ctx, part);
    return status;
}

/* So that a report can tell training rows from others. Of more rows than a sample has the model keeps nothing. */
static hl_status remember(job *j, const hl_vae_rows *rows)
{
    uint64_t *hash = hl_calloc(j->ctx, rows->rows, sizeof *hash);
    for (size_t i = 0; hash && i < rows->rows; i++)
        hash[i] = hl_vae_row_hash(j->vae, rows, i);
    hl_status status = hash ? hl_row_sketch_from(j->ctx, rows->rows, hash, &j->vae->rows) : HL_ERR_NOMEM;
    hl_free(j->ctx, hash);
    return status;
}

/* Some of the training rows, from all of them, the same on every rank: the units of columns come from them, and a simple density. */
static hl_status take_sample(job *j)
{
    size_t row[CHUNK], rows = j->train_rows < SAMPLE_ROWS ? j->train_rows : SAMPLE_ROWS, width = width_of(j);
    char *raw = j->sample_copy = hl_calloc(j->ctx, rows, width);
    hl_status status = raw ? HL_OK : HL_ERR_NOMEM;
    for (size_t at = 0, n; at < rows && status == HL_OK; at += n) {
        n = rows - at < CHUNK ? rows - at : CHUNK;
        for (size_t i = 0; i < n; i++)
            row[i] = j->index[(size_t)((double)(at + i) * ((double)j->train_rows / (double)rows))];
        status = j->source.read(n, row, raw + at * width, j->source.user);
    }
    hl_vae_rows sample = rows_at(j, rows, raw);
    j->outcome.simple = NAN;
    if (status == HL_OK && rows == j->train_rows)
        status = remember(j, &sample);
    if (status == HL_OK && j->vae->gaussian && !j->vae->scale)
        status = hl_vae_choose_columns(j->vae, &sample, &j->outcome.constant_columns, &j->outcome.first_constant);
    if (status == HL_OK && j->valid.rows) {
        status = hl_vae_simple(j->vae, &sample, &j->valid, &j->outcome.simple);
        j->outcome.simple *= -1;
    }
    return hl_ranks_agree(j->ctx, status);
}

/* ---- the run ---- */

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
        "deviations %zu layers %d features %zu width %zu rank %zu activation %s trace %s code %s dtype %s ",
        s.image[0], s.image[1], s.image[2], s.dim, s.net, s.posterior, s.likelihood, s.latent, s.flows, s.columns,
        s.hidden, s.deviations, s.layers, s.features, s.width, s.rank, s.activation, s.trace, s.code,
        hl_dtype_name(s.dtype));
    hl_text_add(
        &t,
        "batch %zu iters %zu importance %zu warmup %g last-lr %g validate-every %zu validation-rows %zu patience %zu "
        "ode-steps %zu dynamic %d freeze %d seed %llu optimizer %s lr %g clip %g average %g ",
        o->batch, o->iterations, o->importance, o->warmup, o->last_rate, o->validate_every, o->validation_rows,
        o->patience, o->ode_steps, o->dynamic, o->frozen, (unsigned long long)o->seed, o->optimizer.method,
        o->optimizer.rate, o->optimizer.clip, o->optimizer.average);
    hl_text_add(&t, "rows %zu data %016llx some %016llx valid %016llx from %d", j->train_rows,
                (unsigned long long)j->hash, (unsigned long long)j->compared,
                (unsigned long long)hash_rows(j->vae, &j->data->valid, j->data->valid.rows), j->data->from != NULL);
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
    if (status == HL_OK)
        status = hl_vae_set_names(j->vae, j->data->names);
    if (status == HL_OK && j->data->from)
        status = hl_vae_copy_networks(j->vae, j->data->from);
    if (status == HL_OK) {
        j->options = hl_vae_train_options_of(j->settings, 1); /* what the checks and the split need of them */
        status = check_data(j);
    }
    status = hl_ranks_agree(j->ctx, status);
    if (status == HL_OK)
        status = look_at_rows(j);
    if (status == HL_OK)
        status = split(j);
    if (status == HL_OK)
        status = take_sample(j);
    if (status == HL_OK) {
        j->options = hl_vae_train_options_of(j->settings, j->train_rows);
        status = describe(j);
    }
    if (status == HL_OK)
        status = hl_vae_train_create(j->vae, &j->source, j->train_rows, j->index, &j->valid, &j->options, &j->train);
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
    status = hl_vae_train_finish(j->train);
    if (status != HL_OK)
        return status;
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
    hl_free(ctx, j.sample_copy);
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
