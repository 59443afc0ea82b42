/* evaluate.c - -ELBO and importance-weighted bounds, by rows.
 *
 * The log weight of a sample is  log p(x | z) + log p(z) - log q0(z0) + log |dz / dz0|.  IWAE-k is the logarithm of the mean of k
 * weights, summed in the order of the samples with a running maximum, in double: chunks cannot change a bit, and memory does not
 * grow with k.
 *
 * Noise e of Hutchinson's trace enters a log weight as w + e. For one sample it averages out; but log mean exp(w + e) tends to
 * log E exp(w) + log E exp(e) for large k, for normal noise of variance s^2 a bias of + s^2 / 2: hence it is refused. */
#include <math.h>
#include <string.h>

#include "vae/rows.h"

enum { CHUNK = 256, CHECKED_ROWS = 64, PROBES = 4 };

/* ---- one row's sums ---- */

typedef struct sums {
    double elbo, reconstruction, log_ratio, log_det; /* over the ELBO's samples */
    double top, weight, weight2;                     /* sum of exp(w - top), and of its square */
} sums;

static void add_weight(sums *s, double w)
{
    if (w > s->top) {
        double down = exp(s->top - w);
        s->weight *= down;
        s->weight2 *= down * down;
        s->top = w;
    }
    double share = exp(w - s->top);
    s->weight += share;
    s->weight2 += share * share;
}

static void add_sample(sums *s, const hl_vae_runner *r, size_t i, size_t sample, const hl_vae_eval_options *o)
{
    double log_px = r->log_px[i], log_det = r->log_det[i], log_ratio = r->log_pz[i] - r->log_q0[i] + log_det;
    double w = log_px + log_ratio;
    if (sample < o->samples) {
        s->elbo += w;
        s->reconstruction += log_px;
        s->log_ratio += log_ratio;
        s->log_det += log_det;
    }
    if (sample < o->importance)
        add_weight(s, w);
}

static hl_vae_row_result finish_row(const sums *s, const hl_vae_eval_options *o)
{
    double n = (double)o->samples;
    return (hl_vae_row_result){ .elbo = s->elbo / n,
                                .reconstruction = s->reconstruction / n,
                                .log_ratio = s->log_ratio / n,
                                .log_det = s->log_det / n,
                                .iwae = o->importance ? s->top + log(s->weight / (double)o->importance) : NAN,
                                .effective = o->importance ? s->weight * s->weight / s->weight2 : NAN };
}

/* ---- over rows ---- */

typedef struct totals {
    size_t rows;
    double elbo, elbo2, iwae, iwae2; /* about the first row's value, so that squares lose nothing */
    double elbo0, iwae0, reconstruction, log_ratio, log_det, effective;
    double *mean, *mean2; /* [latent] sums of the posterior's means and of their squares */
} totals;

static void add_row(totals *t, const hl_vae_row_result *row)
{
    if (t->rows == 0) {
        t->elbo0 = row->elbo;
        t->iwae0 = row->iwae;
    }
    double e = row->elbo - t->elbo0, i = row->iwae - t->iwae0;
    t->elbo += e;
    t->elbo2 += e * e;
    t->iwae += i;
    t->iwae2 += i * i;
    t->reconstruction += row->reconstruction;
    t->log_ratio += row->log_ratio;
    t->log_det += row->log_det;
    t->effective += row->effective;
    t->rows++;
}

static double error_of(double sum, double square, double n)
{
    double variance = n > 1 ? (square - sum * sum / n) / (n - 1) : 0;
    return sqrt((variance > 0 ? variance : 0) / n);
}

static void add_means(totals *t, const hl_vae_runner *r, size_t rows)
{
    size_t latent = r->vae->spec.latent;
    for (size_t i = 0; i < rows * latent; i++) {
        double m = r->piece[0][i];
        t->mean[i % latent] += m;
        t->mean2[i % latent] += m * m;
    }
}

static void finish(const hl_vae *v, const totals *t, hl_vae_result *result)
{
    double n = (double)t->rows;
    result->rows = t->rows;
    result->elbo = t->elbo0 + t->elbo / n;
    result->elbo_error = error_of(t->elbo, t->elbo2, n);
    result->iwae = t->iwae0 + t->iwae / n;
    result->iwae_error = isnan(t->iwae) ? NAN : error_of(t->iwae, t->iwae2, n);
    result->reconstruction = t->reconstruction / n;
    result->log_ratio = t->log_ratio / n;
    result->log_det = t->log_det / n;
    result->effective = t->effective / n;
    for (size_t i = 0; i < v->spec.latent; i++)
        result->active += t->mean2[i] / n - (t->mean[i] / n) * (t->mean[i] / n) > 0.01;
}

/* All samples of a block of rows that is encoded. */
static hl_status run_block(hl_vae_runner *r, const hl_vae_eval_options *o, size_t rows, totals *t,
                           hl_vae_row_result *row)
{
    hl_vae_pairs p = { .samples = o->samples > o->importance ? o->samples : o->importance };
    sums s = { .top = -INFINITY };
    hl_status status = HL_OK;
    for (size_t all = rows * p.samples; p.first < all && status == HL_OK; p.first += p.count) {
        p.count = all - p.first < r->chunk ? all - p.first : r->chunk;
        hl_vae_runner_choose(r, &p, o->seed, o->seed);
        status = hl_vae_runner_flow(r, p.count);
        if (status == HL_OK)
            hl_vae_runner_decode(r, p.count);
        for (size_t i = 0; i < p.count && status == HL_OK; i++) {
            size_t sample = (p.first + i) % p.samples;
            add_sample(&s, r, i, sample, o);
            if (sample + 1 < p.samples)
                continue;
            hl_vae_row_result done = finish_row(&s, o);
            if (!isfinite(done.elbo))
                return hl_fail(r->vae->ctx, HL_ERR_NOT_FINITE, "row %zu: the bound is not finite", t->rows + 1);
            add_row(t, &done);
            if (row)
                row[(p.first + i) / p.samples] = done;
            s = (sums){ .top = -INFINITY };
        }
    }
    return status;
}

/* ---- what a finer solution and another probe change ---- */

static hl_status log_weights(hl_vae_runner *r, const hl_vae_eval_options *o, size_t rows, uint64_t probe_seed,
                             double *to)
{
    hl_vae_pairs p = { .count = rows, .samples = 1 };
    hl_vae_runner_choose(r, &p, o->seed, probe_seed);
    hl_status status = hl_vae_runner_flow(r, rows);
    if (status == HL_OK)
        hl_vae_runner_decode(r, rows);
    for (size_t i = 0; i < rows && status == HL_OK; i++)
        to[i] = r->log_px[i] + r->log_pz[i] - r->log_q0[i] + r->log_det[i];
    return status;
}

static hl_status check_steps(hl_vae_runner *r, const hl_vae_rows *data, const hl_vae_eval_options *o,
                             hl_vae_result *result)
{
    double a[CHECKED_ROWS], b[CHECKED_ROWS], sum = 0;
    size_t rows = data->rows < CHECKED_ROWS ? data->rows : CHECKED_ROWS;
    rows = rows < r->chunk ? rows : r->chunk;
    hl_vae_runner_encode(r, data, 0, rows);
    hl_status status = log_weights(r, o, rows, o->seed, a);
    for (uint64_t k = 1; r->vae->hutchinson && k <= PROBES && status == HL_OK; k++) {
        status = log_weights(r, o, rows, o->seed + k, b);
        for (size_t i = 0; i < rows; i++)
            sum += (a[i] - b[i]) * (a[i] - b[i]);
    }
    if (status == HL_OK)
        status = hl_vae_runner_set_solver(r, 2 * o->steps, o->tolerance / 10);
    if (status == HL_OK)
        status = log_weights(r, o, rows, o->seed, b);
    for (size_t i = 0; i < rows && status == HL_OK; i++)
        result->step_error = fmax(result->step_error, fabs(a[i] - b[i]));
    result->trace_bias = sum / (double)(4 * PROBES * rows); /* a difference has twice the variance */
    return status;
}

/* ---- the call ---- */

static hl_status check_options(const hl_vae *v, hl_vae_eval_options *o)
{
    o->samples = o->samples ? o->samples : 1;
    o->chunk = o->chunk ? o->chunk : CHUNK;
    o->steps = o->tolerance > 0 ? 0 : o->steps ? o->steps : v->spec.steps;
    o->tolerance = o->tolerance > 0 ? o->tolerance : HL_VAE_TOLERANCE;
    if (o->chunk > 1 << 16 || o->steps > 4096)
        return hl_fail(v->ctx, HL_ERR_INVALID, "hl_vae_evaluate: chunk must be up to 65536 and steps up to 4096");
    if (o->importance > 0 && v->hutchinson && !o->allow_biased)
        return hl_fail(v->ctx, HL_ERR_INVALID,
                       "the trace of this posterior is stochastic (hutchinson), so IWAE would be biased upwards, for "
                       "large k by half the variance of the noise; option allow-biased computes it anyway");
    return HL_OK;
}

static hl_status run_all(hl_vae_runner *r, const hl_vae_rows *data, const hl_vae_eval_options *o, totals *t,
                         hl_vae_row_result *row, hl_vae_result *result)
{
    hl_vae *v = r->vae;
    bool continuous = v->posterior->field != NULL;
    hl_status status = hl_vae_runner_set_solver(r, o->steps, o->tolerance);
    for (size_t at = 0, n; at < data->rows && status == HL_OK; at += n) {
        n = data->rows - at < r->chunk ? data->rows - at : r->chunk;
        if (o->importance > 16 && n > 16) /* so that progress is seen, and a stop heard */
            n = 16;
        hl_vae_runner_encode(r, data, at, n);
        status = run_block(r, o, n, t, row ? row + at : NULL);
        if (status == HL_OK)
            add_means(t, r, n);
        if (status == HL_OK && o->progress && o->progress(at + n, data->rows, o->user))
            status = HL_STOPPED;
    }
    result->evaluations = r->solved > 0 ? r->evaluations / r->solved : 0;
    if (status == HL_OK && continuous)
        status = check_steps(r, data, o, result);
    if (status == HL_OK || status == HL_STOPPED)
        finish(v, t, result);
    result->samples = o->samples;
    result->importance = o->importance;
    result->steps = continuous ? o->steps : 0;
    return status;
}

hl_status hl_vae_evaluate(hl_vae *v, const hl_vae_rows *data, const hl_vae_eval_options *options,
                          hl_vae_row_result *row, hl_vae_result *result)
{
    if (!v)
        return HL_ERR_INVALID;
    hl_vae_eval_options o = options ? *options : (hl_vae_eval_options){ 0 };
    hl_vae_runner *r = NULL;
    hl_vae_result none;
    uint64_t *key = NULL;
    totals t = { 0 };
    result = result ? result : &none;
    memset(result, 0, sizeof *result);
    hl_status status = check_options(v, &o);
    if (status == HL_OK)
        status = hl_vae_check_rows(v, data);
    if (status == HL_OK)
        status = hl_vae_runner_create(v, o.chunk, &r);
    if (status == HL_OK)
        status = (key = hl_calloc(v->ctx, data->rows, sizeof *key)) ? hl_vae_row_keys(v, data, key) : HL_ERR_NOMEM;
    if (status == HL_OK)
        r->all_keys = key;
    t.mean = status == HL_OK ? hl_calloc(v->ctx, v->spec.latent, 2 * sizeof *t.mean) : NULL;
    t.mean2 = t.mean ? t.mean + v->spec.latent : NULL;
    if (status == HL_OK)
        status = t.mean ? run_all(r, data, &o, &t, row, result) : HL_ERR_NOMEM;
    hl_free(v->ctx, t.mean);
    hl_free(v->ctx, key);
    hl_vae_runner_free(r);
    return status;
}
