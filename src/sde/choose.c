/* choose.c - choice of the number of mixture components by held-out trajectories.
 *
 * A density with more than the data bear has ripples, and drift and diffusion follow them: of a linear equation in ten columns, whose
 * density is one Gaussian, five left a diffusion of half its size. */
#include <math.h>
#include <string.h>

#include "sde/sde.h"

enum { STREAM_HOLD = 30, LEAST_ROWS = 200, LEAST_PATHS = 10, MOST_STEPS = 1000, MANY_DIM = 5 };
static const size_t sizes[] = { 1, 2, 5, 10 };
enum { SIZES = sizeof sizes / sizeof *sizes };
static const double tie = 0.001; /* nats */

/* Rows to learn from, then those held out. */
typedef struct halves {
    size_t rows, held;
    double *t, *x;
} halves;

/* About a fifth of the trajectories is held out. */
static hl_status split(hl_context *ctx, size_t dim, const hl_sde_data *data, uint64_t seed, halves *h)
{
    h->t = hl_calloc(ctx, data->rows, sizeof *h->t);
    h->x = hl_calloc(ctx, hl_size_mul(data->rows, dim), sizeof *h->x);
    if (!h->t || !h->x)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < data->rows; r++) {
        bool held = hl_random_uniform(seed, STREAM_HOLD, data->trajectory ? data->trajectory[r] : r) < 0.2;
        size_t to = held ? data->rows - ++h->held : h->rows++;
        h->t[to] = data->t[r];
        memcpy(h->x + to * dim, data->x + r * dim, dim * sizeof *h->x);
    }
    return HL_OK;
}

/* Mean -log p of what is held out. */
static hl_status held_out(hl_context *ctx, hl_sde *sde, size_t dim, const halves *h, double *nll)
{
    double logp[HL_SDE_ROWS];
    hl_status status = HL_OK;
    *nll = 0;
    for (size_t at = 0, count; at < h->held && status == HL_OK; at += count) {
        if ((status = hl_check_stop(ctx)) != HL_OK)
            return status;
        count = h->held - at < HL_SDE_ROWS ? h->held - at : HL_SDE_ROWS;
        status =
            hl_sde_eval(sde, count, h->t + h->rows + at, h->x + (h->rows + at) * dim, &(hl_sde_values){ .logp = logp });
        for (size_t r = 0; r < count; r++)
            *nll -= logp[r] / (double)h->held;
    }
    return status;
}

/* Who is told of the iterations. */
typedef struct listener {
    hl_status (*tell)(void *user, size_t done, size_t all);
    void *user;
    size_t done, all;
} listener;

static size_t iterations_of(const hl_sde_fit_options *options)
{
    return options->iterations && options->iterations < MOST_STEPS ? options->iterations : MOST_STEPS;
}

static hl_status step(hl_context *ctx, hl_sde_fit *fit, listener *to)
{
    hl_status status = hl_check_stop(ctx);
    if (status == HL_OK)
        status = hl_sde_fit_step(fit, NULL);
    to->done++;
    return status == HL_OK && to->tell ? to->tell(to->user, to->done, to->all) : status;
}

static hl_status try_size(hl_context *ctx, const hl_sde_spec *given, const hl_sde_fit_options *options, size_t size,
                          const halves *h, listener *to, double *nll)
{
    hl_sde_spec spec = { .dim = given->dim,
                         .network = "mlp", /* f and g are not used: as small as they can be */
                         .hidden = 1,
                         .layers = 1,
                         .components = size,
                         .diagonal = given->diagonal,
                         .density_hidden = given->density_hidden,
                         .density_layers = given->density_layers,
                         .clamp = given->clamp,
                         .dtype = given->dtype };
    hl_sde_fit_options o = { .density_only = 1,
                             .iterations = iterations_of(options),
                             .batch = options->batch,
                             .optimizer = options->optimizer,
                             .seed = options->seed };
    hl_sde_data data = { h->rows, h->t, h->x, NULL };
    hl_sde *sde = NULL;
    hl_sde_fit *fit = NULL;
    hl_status status = hl_sde_create(ctx, &spec, &sde);
    if (status == HL_OK)
        status = hl_sde_init(sde, options->seed + 1);
    if (status == HL_OK)
        status = hl_sde_fit_create(sde, &data, &o, &fit);
    for (size_t i = 0; i < o.iterations && status == HL_OK; i++)
        status = step(ctx, fit, to);
    if (status == HL_OK)
        status = held_out(ctx, sde, given->dim, h, nll);
    hl_sde_fit_free(fit);
    hl_sde_free(sde);
    return status;
}

hl_status hl_sde_choose_components(hl_context *ctx, const hl_sde_spec *spec, const hl_sde_data *data,
                                   const hl_sde_fit_options *options, size_t *components)
{
    return hl_sde_choose(ctx, spec, data, options, NULL, NULL, components);
}

hl_status hl_sde_choose(hl_context *ctx, const hl_sde_spec *spec, const hl_sde_data *data,
                        const hl_sde_fit_options *options, hl_status (*tell)(void *user, size_t done, size_t all),
                        void *user, size_t *components)
{
    static const hl_sde_fit_options defaults;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!spec || spec->dim < 1 || !data || !data->t || !data->x || !components)
        return hl_fail(ctx, HL_ERR_INVALID,
                       "hl_sde_choose_components: the specification, the data or the result is NULL");
    *components = 0;
    options = options ? options : &defaults;
    size_t paths = 0;
    for (size_t r = 0; r < data->rows; r++)
        paths += !data->trajectory || r == 0 || data->trajectory[r] != data->trajectory[r - 1];
    if (data->rows < LEAST_ROWS || paths < LEAST_PATHS)
        return HL_OK;
    halves h = { 0 };
    double nll[SIZES], best = INFINITY;
    size_t count = spec->dim <= MANY_DIM ? SIZES : SIZES - 1;
    listener to = { tell, user, 0, count * iterations_of(options) };
    hl_status status = split(ctx, spec->dim, data, options->seed, &h);
    for (size_t k = 0; k < count && h.held && status == HL_OK; k++) {
        status = try_size(ctx, spec, options, sizes[k], &h, &to, &nll[k]);
        if (status == HL_OK && nll[k] < best)
            best = nll[k];
    }
    for (size_t k = count; k-- > 0 && h.held && status == HL_OK;)
        if (nll[k] <= best + tie)
            *components = sizes[k];
    hl_free(ctx, h.t);
    hl_free(ctx, h.x);
    return status;
}
