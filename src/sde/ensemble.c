/* ensemble.c - how far drift and diffusion of networks may be off: networks fitted to simulated data (parametric bootstrap).
 *
 * The model is simulated and observed as the data were: trajectories from their first observations, and each row of snapshots as the end of a path of
 * its own from an observation of the first time. A replicate is trained on that, from initial weights of its own, with a share of the iterations.
 * The truth of its data is the model, so its distance from the model has the noise of the estimate and its bias, of Euler steps or of an
 * averaged residual for example; resampled observations would not show the bias. The scale of a replicate is that of the model, so that its
 * parameters can take the place of the model's in the plans of evaluation. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/plan.h"
#include "sde/ensemble.h"
#include "sde/weak_tests.h"

enum { STREAM_DATA = 51, STREAM_START, LEAST_ITERATIONS = 200 };
static const double share = 0.5; /* of the model's iterations */
static const double beyond =
    0.5; /* of the range of the data: where simulations are extrapolated, and not to be learned from */

double hl_band_quantile(size_t freedom)
{
    const double z = 1.6448536269514722;
    return z + (z * z * z + z) / (4 * (double)freedom); /* Student's */
}

size_t hl_ensemble_iterations(size_t iterations)
{
    size_t part = (size_t)(share * (double)iterations);
    size_t least = iterations < LEAST_ITERATIONS ? iterations : LEAST_ITERATIONS;
    return part > least ? part : least;
}

void hl_ensemble_free(hl_context *ctx, hl_ensemble *e)
{
    if (!e)
        return;
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++)
        hl_free(ctx, e->value[n]);
    hl_region_free(ctx, &e->region);
    hl_free(ctx, e);
}

/* Room for `count` replicates. */
static hl_status make(const hl_sde *s, size_t count, hl_ensemble **out)
{
    hl_ensemble *e = *out = hl_calloc(s->ctx, 1, sizeof *e);
    if (!e)
        return HL_ERR_NOMEM;
    e->count = count;
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++) {
        e->size[n] = s->net[n]->values_size;
        e->value[n] = hl_calloc(s->ctx, hl_size_mul(count, e->size[n]), hl_dtype_size(s->spec.dtype));
        if (!e->value[n])
            return HL_ERR_NOMEM;
    }
    return HL_OK;
}

static void *value_of(const hl_sde *s, const hl_ensemble *e, size_t net, size_t replicate)
{
    return (char *)e->value[net] + replicate * e->size[net] * hl_dtype_size(s->spec.dtype);
}

/* ---- data ---- */

typedef struct stamp {
    size_t order; /* of groups */
    double t;
    size_t row;
} stamp;

static int by_stamp(const void *a, const void *b)
{
    const stamp *p = a, *q = b;
    if (p->order != q->order)
        return (p->order > q->order) - (p->order < q->order);
    return p->t != q->t ? (p->t > q->t) - (p->t < q->t) : (p->row > q->row) - (p->row < q->row);
}

/* The groups of trajectories are their first rows, their second rows, ...; those of snapshots are the rows of the first time and all others.
 * index, path: [rows]; start: [rows + 1]. */
static void set_design(const hl_sde_data *data, stamp *s, size_t *path_of_row, size_t *index, size_t *start,
                       size_t *path, hl_weak_design *d)
{
    size_t n = data->rows, paths = 0, begin = 0;
    bool linked = data->trajectory || hl_sde_rising(data);
    double first = data->t[0];
    for (size_t r = 0; r < n; r++)
        first = fmin(first, data->t[r]);
    for (size_t r = 0; r < n; r++) {
        bool new = r == 0 || !linked || (data->trajectory && data->trajectory[r] != data->trajectory[r - 1]);
        begin = new ? r : begin;
        paths += new;
        path_of_row[r] = paths - 1;
        s[r] = (stamp){ linked ? r - begin : data->t[r] > first, data->t[r], r };
    }
    qsort(s, n, sizeof *s, by_stamp);
    *d = (hl_weak_design){ .data = data, .rows = n, .paths = paths, .index = index, .start = start, .path = path };
    for (size_t k = 0; k < n; k++) {
        index[k] = s[k].row;
        path[k] = path_of_row[s[k].row];
        if (k == 0 || s[k].order != s[k - 1].order)
            start[d->groups++] = k;
    }
    start[d->groups] = n;
}

/* Rows that left the region of the data are those of the data. */
static void replace_far(const hl_sde_data *data, size_t d, double *x)
{
    for (size_t i = 0; i < d; i++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t r = 0; r < data->rows; r++) {
            low = fmin(low, data->x[r * d + i]);
            high = fmax(high, data->x[r * d + i]);
        }
        double gap = beyond * (high - low);
        for (size_t r = 0; r < data->rows; r++)
            if (!(x[r * d + i] >= low - gap && x[r * d + i] <= high + gap))
                memcpy(x + r * d, data->x + r * d, d * sizeof *x);
    }
}

hl_status hl_ensemble_simulate(hl_sde *s, const hl_sde_data *data, uint64_t seed, size_t number, double *x)
{
    hl_context *ctx = s->ctx;
    size_t n = data->rows, d = s->spec.dim;
    stamp *stamps = hl_calloc(ctx, n, sizeof *stamps);
    size_t *block = hl_calloc(ctx, hl_size_add(hl_size_mul(n, 4), 1), sizeof *block);
    double *states = hl_calloc(ctx, hl_size_mul(n, d), sizeof *states); /* in the order of the design */
    hl_weak_design design;
    hl_status status = stamps && block && states ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK) {
        set_design(data, stamps, block, block + n, block + 2 * n, block + 3 * n + 1, &design);
        design.sde = s;
        status = hl_weak_simulate(&design, hl_random_bits(seed, STREAM_DATA, number), states);
    }
    for (size_t k = 0; k < n && status == HL_OK; k++)
        memcpy(x + design.index[k] * d, states + k * d, d * sizeof *x);
    if (status == HL_OK)
        replace_far(data, d, x);
    hl_free(ctx, stamps);
    hl_free(ctx, block);
    hl_free(ctx, states);
    return status;
}

/* ---- fitting ---- */

typedef struct work {
    hl_sde *sde;
    const hl_sde_spec *spec;
    const hl_sde_data *data;
    hl_sde_fit_options options; /* of a replicate, but for the seed */
    hl_ensemble *to;
    double *x; /* simulated */
    hl_ensemble_tell *tell;
    void *user;
} work;

static hl_status train(hl_sde *replicate, const work *w, const hl_sde_fit_options *o)
{
    const hl_sde *s = w->sde;
    const hl_sde_data data = { w->data->rows, w->data->t, w->x, w->data->trajectory };
    hl_sde_fit *fit = NULL;
    hl_status status = hl_sde_init(replicate, o->seed + 1);
    if (status == HL_OK)
        status = hl_sde_set_scale(replicate, s->t_first, s->t_last, s->mean, s->deviation);
    replicate->keeps_scale = true;
    if (status == HL_OK)
        status = hl_sde_fit_create(replicate, &data, o, &fit);
    for (size_t k = 0; k < o->iterations && status == HL_OK; k++) {
        status = hl_sde_fit_step(fit, NULL);
        if (status == HL_OK)
            status = hl_check_stop(replicate->ctx);
    }
    if (status == HL_OK)
        status = hl_sde_fit_finish(fit);
    hl_sde_fit_free(fit);
    return status;
}

static hl_status one(const work *w, size_t number)
{
    const hl_sde *s = w->sde;
    hl_sde_fit_options o = w->options;
    hl_sde *replicate = NULL;
    hl_status status = hl_ensemble_simulate(w->sde, w->data, o.seed, number, w->x);
    o.seed = hl_random_bits(o.seed, STREAM_START, number) >> 12;
    if (status == HL_OK)
        status = hl_sde_create(s->ctx, w->spec, &replicate);
    if (status == HL_OK)
        status = train(replicate, w, &o);
    for (size_t n = 0; n < HL_ENSEMBLE_NETS && status == HL_OK; n++)
        memcpy(value_of(s, w->to, n, number), replicate->net[n]->values, w->to->size[n] * hl_dtype_size(s->spec.dtype));
    hl_sde_free(replicate);
    return status;
}

/* Where the data are, in the inputs of the networks. */
static hl_status find_region(const work *w)
{
    const hl_sde *s = w->sde;
    size_t d = s->spec.dim, inputs = d + (s->spec.time != 0), rows = w->data->rows;
    double *z = hl_calloc(s->ctx, hl_size_mul(rows, inputs), sizeof *z);
    if (!z)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < d; i++)
            z[r * inputs + i] = (w->data->x[r * d + i] - s->mean[i]) / s->deviation[i];
        if (inputs > d)
            z[r * inputs + d] = hl_sde_clock((w->data->t[r] - s->t_first) / hl_sde_time_unit(s));
    }
    hl_status status = hl_region_find(s->ctx, rows, inputs, z, w->options.seed, &w->to->region);
    hl_free(s->ctx, z);
    return status;
}

static hl_status fit_all(work *w)
{
    size_t count = w->to->count;
    w->to->quantile = hl_band_quantile(count);
    hl_status status = find_region(w);
    for (size_t b = 0; b < count && status == HL_OK; b++) {
        status = one(w, b);
        if (status == HL_OK && w->tell)
            status = w->tell(w->user, b + 1, count);
    }
    return status;
}

hl_status hl_ensemble_fit(hl_sde *s, const hl_sde_spec *spec, const hl_sde_data *data,
                          const hl_sde_fit_options *options, size_t count, hl_ensemble_tell *tell, void *user)
{
    work w = { .sde = s, .spec = spec, .data = data, .options = *options, .tell = tell, .user = user };
    w.options.iterations = hl_ensemble_iterations(options->iterations);
    w.x = hl_calloc(s->ctx, hl_size_mul(data->rows, s->spec.dim), sizeof *w.x);
    hl_status status = make(s, count, &w.to);
    if (status == HL_OK)
        status = w.x ? fit_all(&w) : HL_ERR_NOMEM;
    hl_free(s->ctx, w.x);
    if (status != HL_OK) {
        hl_ensemble_free(s->ctx, w.to);
        return status;
    }
    hl_ensemble_free(s->ctx, s->ensemble);
    s->ensemble = w.to;
    return HL_OK;
}

/* ---- evaluation ---- */

/* The plans' drift and diffusion to those of a replicate, or with NULL back to the model's own. */
static void use(hl_sde *s, const hl_ensemble *e, size_t replicate)
{
    size_t next = 0, element = hl_dtype_size(s->spec.dtype);
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++) {
        const hl_net *net = s->net[n];
        const char *values = e ? value_of(s, e, n, replicate) : net->values;
        for (size_t i = 0; i < net->params; i++)
            s->param[next++] = values + net->param[i].offset * element;
    }
}

hl_status hl_ensemble_eval(hl_sde *s, size_t replicate, size_t rows, const double *t, const double *x, double *f,
                           double *g)
{
    use(s, s->ensemble, replicate);
    hl_status status = hl_sde_eval(s, rows, t, x, &(hl_sde_values){ .f = f, .g = g });
    use(s, NULL, 0);
    return status;
}

/* ---- files ---- */

static const char *const tensor_names[HL_ENSEMBLE_NETS] = { "bands.drift", "bands.diffusion" };

char *hl_ensemble_text(const hl_sde *s)
{
    hl_json_writer w = { .ctx = s->ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_real(&w, "quantile", s->ensemble->quantile);
    hl_region_put(&s->ensemble->region, &w);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

hl_status hl_ensemble_add_tensors(const hl_sde *s, hl_tensors *t)
{
    const hl_ensemble *e = s->ensemble;
    hl_status status = HL_OK;
    for (size_t n = 0; n < HL_ENSEMBLE_NETS && status == HL_OK; n++)
        status = hl_tensors_add(t, tensor_names[n], s->spec.dtype, 2, (size_t[]){ e->count, e->size[n] }, e->value[n]);
    return status;
}

void hl_ensemble_count(const hl_tensors *t, size_t *values, size_t *tensors)
{
    *values = 0;
    *tensors = HL_ENSEMBLE_NETS;
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++) {
        const hl_tensor *v = hl_tensors_find(t, tensor_names[n]);
        size_t element = v && v->dtype != HL_DTYPE_OTHER ? hl_dtype_size(v->dtype) : 0;
        *values = element ? hl_size_add(*values, v->bytes / element) : SIZE_MAX;
    }
}

static bool all_finite(hl_dtype dtype, size_t count, const void *values)
{
    bool good = true;
    for (size_t k = 0; k < count; k++)
        good = good && isfinite(dtype == HL_F32 ? (double)((const float *)values)[k] : ((const double *)values)[k]);
    return good;
}

hl_status hl_ensemble_take(hl_sde *s, const hl_tensors *t, const hl_json *root)
{
    const hl_json *quantile = hl_json_get(root, "quantile");
    const hl_tensor *first = hl_tensors_find(t, tensor_names[0]);
    size_t count = first && first->rank == 2 ? first->dims[0] : 0, element = hl_dtype_size(s->spec.dtype);
    if (!count || !hl_json_is_number(quantile) || !(quantile->number > 0))
        return HL_ERR_FORMAT;
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++) {
        const hl_tensor *v = hl_tensors_find(t, tensor_names[n]);
        size_t size = s->net[n]->values_size;
        if (!v || v->dtype != s->spec.dtype || v->rank != 2 || v->dims[0] != count || v->dims[1] != size ||
            !all_finite(v->dtype, count * size, v->data))
            return HL_ERR_FORMAT;
    }
    hl_status status = make(s, count, &s->ensemble);
    if (status != HL_OK)
        return status;
    s->ensemble->quantile = quantile->number;
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++)
        memcpy(s->ensemble->value[n], hl_tensors_find(t, tensor_names[n])->data,
               count * s->ensemble->size[n] * element);
    return hl_region_read(s->ctx, root, s->spec.dim + (s->spec.time != 0), &s->ensemble->region);
}
