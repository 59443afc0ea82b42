/* regress.c - regression of drift and diffusion: the data as it needs them, and the result. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hollow/sde_forms.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { FEW_PATHS = 10, BLOCKS = 4, MOST_GROUPS = 10, BLOCK_PARTS = 3 }; /* groups of a fold; parts of a block of time */
static const double floor_share = 0.02;

/* ---- data ---- */

static hl_status set_options(hl_regress *p, const hl_sde_regress_options *given)
{
    static const char *const forms[] = { "auto", "linear", "poly3", "radial", "ridge", NULL };
    static const char *const noises[] = { "auto", "diagonal", "full", NULL };
    static const char *const uses[] = { "auto", "snapshots", "steps", NULL };
    const struct {
        const char **value;
        const char *const *choices, *name;
    } texts[] = { { &p->options.form, forms, "form" },
                  { &p->options.noise, noises, "noise" },
                  { &p->options.use, uses, "use" } };
    p->options = given ? *given : (hl_sde_regress_options){ 0 };
    for (size_t k = 0; k < 3; k++) {
        const char *const *c = texts[k].choices;
        while (*c && *texts[k].value && strcmp(*c, *texts[k].value) != 0)
            c++;
        if (!*c)
            return hl_fail(p->ctx, HL_ERR_INVALID, "hl_sde_regress: unknown %s '%.60s'", texts[k].name,
                           *texts[k].value);
        *texts[k].value = *c;
    }
    if (strcmp(p->options.form, "ridge") == 0 && (p->dim < 2 || p->dim > HL_REGRESS_RIDGES || p->options.time))
        return hl_fail(p->ctx, HL_ERR_UNSUPPORTED,
                       "form ridge is for two to %d columns, without dependence on time; use form auto or radial",
                       HL_REGRESS_RIDGES);
    for (size_t i = 0; p->options.known && i < p->dim; i++)
        if ((p->options.known[i].drift && p->options.known[i].drift_form &&
             !hl_sde_forms_has(p->options.forms, 0, i)) ||
            (p->options.known[i].diffusion && p->options.known[i].diffusion_form &&
             !hl_sde_forms_has(p->options.forms, 1, i)))
            return hl_fail(p->ctx, HL_ERR_UNSUPPORTED,
                           "hl_sde_regress: known parts given as C functions are not supported");
    return HL_OK;
}

static hl_status check_data(hl_context *ctx, const hl_sde_data *data, size_t dim)
{
    if (dim < 1 || dim > 1000 || !data->t || !data->x || data->rows < 2)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_regress: 1 to 1000 columns and at least two rows are needed");
    for (size_t r = 0; r < data->rows; r++) {
        bool good = isfinite(data->t[r]);
        for (size_t i = 0; i < dim; i++)
            good = good && isfinite(data->x[r * dim + i]);
        if (!good)
            return hl_fail(ctx, HL_ERR_NOT_FINITE, "hl_sde_regress: a value of row %zu is not finite", r);
    }
    return HL_OK;
}

typedef struct stamp {
    double t;
    size_t row;
} stamp;

static int by_stamp(const void *a, const void *b)
{
    const stamp *p = a, *q = b;
    return p->t != q->t ? (p->t > q->t) - (p->t < q->t) : (p->row > q->row) - (p->row < q->row);
}

/* The place of each row in order of time: rows of one time are then spread evenly over the folds. */
static hl_status order_rows(const hl_regress *p, size_t *place)
{
    stamp *s = hl_calloc(p->ctx, p->rows, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < p->rows; r++)
        s[r] = (stamp){ p->u[r], r };
    qsort(s, p->rows, sizeof *s, by_stamp);
    for (size_t k = 0; k < p->rows; k++)
        place[s[k].row] = k;
    hl_free(p->ctx, s);
    return HL_OK;
}

/* Pairs of neighbours, except over gaps, and folds and their groups: whole trajectories, or rows, or blocks of time where there are few
 * trajectories. place: the rows' order in time. */
static hl_status set_pairs(hl_regress *p, const hl_sde_data *data, const size_t *place)
{
    double longest;
    hl_status status = hl_sde_longest_step(p->ctx, data, HL_SDE_GAP, &longest);
    if (status != HL_OK)
        return status;
    size_t paths = 1, path = 0;
    for (size_t r = 1; r < p->rows; r++)
        paths += data->trajectory && data->trajectory[r] != data->trajectory[r - 1];
    bool linked = data->trajectory || hl_sde_rising(data), blocks = linked && paths < FEW_PATHS;
    size_t units = linked ? paths : p->rows, most = units / HL_REGRESS_FOLDS;
    p->groups = blocks ? BLOCKS * BLOCK_PARTS : most < MOST_GROUPS ? most : MOST_GROUPS;
    p->groups = p->groups ? p->groups : 1;
    p->shared = linked ? (double)p->rows / (double)paths : 0;
    for (size_t r = 0; r < p->rows; r++) {
        path += r > 0 && data->trajectory && data->trajectory[r] != data->trajectory[r - 1];
        size_t part = r * HL_REGRESS_FOLDS * BLOCKS * BLOCK_PARTS / p->rows;
        size_t unit = !linked ? place[r] : blocks ? part / BLOCK_PARTS : path;
        size_t within = unit / HL_REGRESS_FOLDS;
        within = blocks ? within * BLOCK_PARTS + part % BLOCK_PARTS : within % p->groups;
        p->fold[r] = (unsigned char)(unit % HL_REGRESS_FOLDS);
        p->group[r] = (unsigned short)(p->fold[r] + HL_REGRESS_FOLDS * within);
        if (r > 0 && linked && hl_sde_step_begins(data, r - 1, longest) && data->t[r] > data->t[r - 1])
            p->pair[p->pairs++] = (hl_pair){ r - 1, r, p->u[r] - p->u[r - 1] };
    }
    return HL_OK;
}

/* What is known at every row, standardised. */
static void set_known(hl_regress *p, const hl_sde_simple *s)
{
    size_t d = p->dim;
    double unit = (s->t_last - s->t_first) / HL_SDE_SPAN;
    for (size_t i = 0; i < d; i++) {
        const hl_sde_known *k = p->options.known ? &p->options.known[i] : NULL;
        p->open[0][i] = !(k && k->drift);
        p->open[1][i] = !(k && k->diffusion);
        for (size_t r = 0; r < p->rows && k; r++) {
            double *to = p->known + r * 2 * d, sum = k->drift_constant;
            for (size_t j = 0; j < d && k->drift_linear; j++)
                sum += k->drift_linear[j] * (s->mean[j] + s->deviation[j] * p->z[r * p->inputs + j]);
            double g = k->diffusion_value / s->deviation[i];
            to[i] = k->drift ? sum * unit / s->deviation[i] : 0;
            to[d + i] = k->diffusion ? g * g * unit : 0;
        }
    }
}

/* What expressions say at every row, standardised. */
static hl_status set_forms(hl_regress *p, const hl_sde_data *data, const hl_sde_simple *s)
{
    const hl_sde_forms *forms = p->options.forms;
    size_t d = p->dim;
    if (!forms)
        return HL_OK;
    double *f = hl_calloc(p->ctx, 2 * d, sizeof *f), *g = f + d, unit = (s->t_last - s->t_first) / HL_SDE_SPAN;
    hl_status status = f ? HL_OK : HL_ERR_NOMEM;
    for (size_t r = 0; r < p->rows && status == HL_OK; r++) {
        double *to = p->known + r * 2 * d;
        status = hl_sde_forms_eval(forms, 1, data->t + r, data->x + r * d, f, g);
        for (size_t i = 0; i < d && status == HL_OK; i++) {
            if (hl_sde_forms_has(forms, 0, i))
                to[i] = f[i] * unit / s->deviation[i];
            if (hl_sde_forms_has(forms, 1, i))
                to[d + i] = g[i] * g[i] * unit / (s->deviation[i] * s->deviation[i]);
            if (!isfinite(to[i]) || !isfinite(to[d + i]))
                status = hl_fail(p->ctx, HL_ERR_NOT_FINITE,
                                 "the expression of column %zu has no finite value at row %zu of the data", i, r);
        }
    }
    for (size_t i = 0; i < d && status == HL_OK; i++) {
        p->open[0][i] = p->open[0][i] && !hl_sde_forms_has(forms, 0, i);
        p->open[1][i] = p->open[1][i] && !hl_sde_forms_has(forms, 1, i);
    }
    hl_free(p->ctx, f);
    return status;
}

static hl_status load(hl_regress *p, const hl_sde_data *data, hl_sde_simple *s)
{
    hl_context *ctx = p->ctx;
    size_t d = p->dim, n = data->rows;
    hl_status status = hl_sde_measure(ctx, data, d, &s->t_first, &s->t_last, s->mean, s->deviation);
    if (status != HL_OK)
        return status;
    bool cross = strcmp(p->options.noise, "diagonal") != 0 && d > 1 && d <= HL_REGRESS_CROSSED;
    p->rows = n;
    p->entries = cross ? d * (d + 1) / 2 : d;
    p->z = hl_calloc(ctx, hl_size_mul(n, p->inputs), sizeof *p->z);
    p->u = hl_calloc(ctx, n, sizeof *p->u);
    p->fold = hl_calloc(ctx, n, 1);
    p->group = hl_calloc(ctx, n, sizeof *p->group);
    p->known = hl_calloc(ctx, hl_size_mul(n, 2 * d), sizeof *p->known);
    p->pair = hl_calloc(ctx, n, sizeof *p->pair);
    p->entry = hl_calloc(ctx, p->entries, sizeof *p->entry);
    p->open[0] = hl_calloc(ctx, 2 * d, sizeof **p->open);
    if (!p->z || !p->u || !p->fold || !p->group || !p->known || !p->pair || !p->entry || !p->open[0])
        return HL_ERR_NOMEM;
    p->open[1] = p->open[0] + d;
    double unit = (s->t_last - s->t_first) / HL_SDE_SPAN;
    for (size_t r = 0; r < n; r++) {
        p->u[r] = (data->t[r] - s->t_first) / unit;
        for (size_t i = 0; i < d; i++)
            p->z[r * p->inputs + i] = (data->x[r * d + i] - s->mean[i]) / s->deviation[i];
        if (p->inputs > d)
            p->z[r * p->inputs + d] = hl_sde_clock(p->u[r]);
    }
    for (size_t i = 0, e = d; i < d; i++) {
        p->entry[i][0] = p->entry[i][1] = i;
        for (size_t j = i + 1; j < d && cross; j++, e++) {
            p->entry[e][0] = i;
            p->entry[e][1] = j;
        }
    }
    if (!data->trajectory && !hl_sde_rising(data))
        status = hl_sde_merge_times(ctx, n, p->u);
    if (status != HL_OK)
        return status;
    size_t *place = hl_calloc(ctx, n, sizeof *place);
    status = place ? order_rows(p, place) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = set_pairs(p, data, place);
    hl_free(ctx, place);
    if (status != HL_OK)
        return status;
    set_known(p, s);
    return set_forms(p, data, s);
}

/* ---- values of the estimate ---- */

void hl_regress_values_at(const hl_regress *p, const double *z, double *value, double *f, double *a)
{
    double *noise = value + p->size[0];
    hl_basis_eval(&p->basis[0], z, value);
    hl_basis_eval(&p->basis[1], z, noise);
    for (size_t i = 0; i < p->dim; i++)
        f[i] = hl_dot(p->size[0], p->theta + hl_regress_drift(p, i), value);
    for (size_t e = 0; e < p->entries; e++)
        a[e] = hl_dot(hl_regress_noise_size(p, e), p->theta + hl_regress_noise(p, e), noise);
}

void hl_regress_values(const hl_regress *p, size_t row, double *value, double *f, double *a)
{
    const double *known = p->known + row * 2 * p->dim;
    hl_regress_values_at(p, p->z + row * p->inputs, value, f, a);
    for (size_t i = 0; i < p->dim; i++) {
        f[i] += known[i];
        a[i] += known[p->dim + i];
    }
}

/* ---- the result ---- */

/* Copies the functions that have a coefficient, and with them the constant and the columns, to the result. */
static hl_status pack_part(const hl_regress *p, hl_sde_simple *s, size_t part)
{
    const hl_basis *b = &p->basis[part];
    size_t size = p->size[part], kept = 0, products = 0, ridges = 0;
    size_t *index = hl_calloc(p->ctx, size, sizeof *index);
    if (!index)
        return HL_ERR_NOMEM;
    for (size_t a = 0; a < size; a++) {
        bool used = a <= p->inputs;
        for (size_t i = 0; i < p->dim && !used; i++)
            used = p->theta[(part ? hl_regress_noise(p, i) : hl_regress_drift(p, i)) + a] != 0;
        if (used)
            index[kept++] = a;
        products += used && a < b->products;
        ridges += used && a + b->ridges >= size;
    }
    hl_basis *to = &s->basis[part];
    hl_status status = hl_basis_create(p->ctx, p->inputs, products, kept - products, to);
    to->ridges = ridges;
    s->coefficient[part] = hl_calloc(p->ctx, kept * p->dim, sizeof *s->coefficient[part]);
    if (!s->coefficient[part])
        status = HL_ERR_NOMEM;
    for (size_t k = 0; k < kept && status == HL_OK; k++) {
        if (k < products)
            memcpy(to->factor[k], b->factor[index[k]], sizeof *to->factor);
        else {
            size_t at = (k - products) * p->inputs, source = (index[k] - b->products) * p->inputs;
            memcpy(to->centre + at, b->centre + source, p->inputs * sizeof *to->centre);
            memcpy(to->scale + at, b->scale + source, p->inputs * sizeof *to->scale);
        }
        for (size_t i = 0; i < p->dim; i++)
            s->coefficient[part][i * kept + k] =
                p->theta[(part ? hl_regress_noise(p, i) : hl_regress_drift(p, i)) + index[k]];
    }
    s->report.functions[part] = kept;
    hl_free(p->ctx, index);
    return status;
}

/* Known parts are functions of the dictionary, too: its first are the constant and the columns. */
static void pack_known(const hl_regress *p, hl_sde_simple *s)
{
    double unit = (s->t_last - s->t_first) / HL_SDE_SPAN;
    for (size_t i = 0; p->options.known && i < p->dim; i++) {
        const hl_sde_known *k = &p->options.known[i];
        double *f = s->coefficient[0] + i * hl_basis_size(&s->basis[0]), scale = unit / s->deviation[i];
        double g = k->diffusion_value / s->deviation[i];
        if (k->drift)
            f[0] = k->drift_constant * scale;
        for (size_t j = 0; j < p->dim && k->drift && k->drift_linear; j++) {
            f[0] += k->drift_linear[j] * s->mean[j] * scale;
            f[j + 1] = k->drift_linear[j] * s->deviation[j] * scale;
        }
        if (k->diffusion)
            s->coefficient[1][i * hl_basis_size(&s->basis[1])] = g * g * unit;
    }
}

/* Is there an expression of g? The dictionary of correlations need not agree with it. */
static bool diffusion_form(const hl_regress *p)
{
    bool any = false;
    for (size_t i = 0; i < p->dim; i++)
        any = any || hl_sde_forms_has(p->options.forms, 1, i);
    return any;
}

/* The correlation of the steps' residuals over g, with f and A of the estimate. The rest is scratch. */
static void correlate_steps(const hl_regress *p, hl_sde_simple *s, double *value, double *f, double *a, double *sum)
{
    size_t d = p->dim;
    memset(sum, 0, d * d * sizeof *sum);
    for (size_t k = 0; k < p->pairs; k++) {
        const hl_pair *q = &p->pair[k];
        if (q->step > p->longest)
            continue;
        hl_regress_values(p, q->from, value, f, a);
        for (size_t i = 0; i < d; i++) {
            double gap = p->z[q->to * p->inputs + i] - p->z[q->from * p->inputs + i] - f[i] * q->step;
            f[i] = gap / sqrt(hl_sde_simple_positive(a[i], s->least[i]) * q->step);
        }
        for (size_t i = 0; i < d * d; i++)
            sum[i] += f[i / d] * f[i % d];
    }
    for (size_t i = 0; i < d * d; i++) {
        double size = sqrt(sum[i / d * (d + 1)] * sum[i % d * (d + 1)]);
        if (i / d != i % d)
            s->correlation[i] = size > 0 ? fmax(-0.999, fmin(0.999, sum[i] / size)) : 0;
    }
}

/* Floors of A, and the mean correlation of the noise. */
static hl_status pack_noise(const hl_regress *p, hl_sde_simple *s)
{
    size_t d = p->dim;
    double *value = hl_calloc(p->ctx, p->size[0] + p->size[1] + 2 * d + p->entries + 2 * d * d, sizeof *value);
    if (!value)
        return HL_ERR_NOMEM;
    double *f = value + p->size[0] + p->size[1], *mean = f + d, *a = mean + d, *up = a + p->entries, *down = up + d * d;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t r = 0; r < p->rows; r++) {
            hl_regress_values(p, r, value, f, a);
            for (size_t i = 0; i < d && !pass; i++)
                mean[i] += fmax(a[i], 0) / (double)p->rows;
            for (size_t e = d; e < p->entries && pass; e++) {
                size_t i = p->entry[e][0], j = p->entry[e][1];
                double size = hl_sde_simple_positive(a[i], s->least[i]) * hl_sde_simple_positive(a[j], s->least[j]);
                up[i * d + j] += a[e] * sqrt(size);
                down[i * d + j] += size;
            }
        }
        for (size_t i = 0; i < d && !pass; i++)
            s->least[i] = fmax(floor_share * mean[i], 1e-10);
    }
    for (size_t e = d; e < p->entries; e++) {
        size_t i = p->entry[e][0], j = p->entry[e][1];
        double c = down[i * d + j] > 0 ? up[i * d + j] / down[i * d + j] : 0;
        s->correlation[i * d + j] = s->correlation[j * d + i] = fmax(-0.999, fmin(0.999, c));
    }
    if (p->entries > d && s->report.steps && diffusion_form(p))
        correlate_steps(p, s, value, f, a, up);
    for (size_t k = 0; k < d * d; k++) /* what has no noise has no correlation */
        if (k / d != k % d && !(mean[k / d] > 0 && mean[k % d] > 0))
            s->correlation[k] = 0;
    hl_sde_simple_factor(s);
    hl_free(p->ctx, value);
    return HL_OK;
}

static void release(hl_regress *p, hl_sources *s)
{
    hl_sources_free(p, s);
    hl_basis_free(p->ctx, &p->basis[0]);
    hl_basis_free(p->ctx, &p->basis[1]);
    void *const blocks[] = { p->z, p->u, p->fold, p->group, p->known, p->pair, p->entry, p->open[0], p->theta };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(p->ctx, blocks[i]);
}

hl_status hl_regress_run(hl_context *ctx, const hl_sde_data *data, size_t dim, const hl_sde_regress_options *options,
                         hl_regress_after_fn *after, void *user, hl_sde_simple **simple)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!data || !simple)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_regress: the data or the result is NULL");
    *simple = NULL;
    hl_status status = check_data(ctx, data, dim);
    if (status != HL_OK)
        return status;
    hl_regress p = { .ctx = ctx, .dim = dim };
    hl_sources *s = hl_calloc(ctx, 1, sizeof *s);
    hl_sde_simple *to = NULL;
    if (!s)
        return HL_ERR_NOMEM;
    status = set_options(&p, options);
    p.inputs = dim + (p.options.time != 0);
    p.plain = after || p.options.known || p.options.forms;
    if (status == HL_OK)
        status = hl_sde_simple_create(ctx, dim, p.inputs, &to);
    if (status == HL_OK)
        status = load(&p, data, to);
    if (status == HL_OK)
        status = hl_regress_dictionaries(&p);
    if (status == HL_OK)
        status = hl_regress_estimate(&p, s, !after, &to->report);
    for (size_t part = 0; part < 2 && status == HL_OK; part++)
        status = pack_part(&p, to, part);
    if (status == HL_OK)
        status = pack_noise(&p, to);
    if (status == HL_OK)
        pack_known(&p, to);
    if (status == HL_OK && p.options.replicates)
        status = hl_regress_resample(&p, s->candidates, s->candidate, &s->choice, to->report.snapshots,
                                     to->report.steps, p.options.replicates, to);
    if (status == HL_OK && after)
        status = after(user, &p, &s->candidate[s->choice.candidate], to);
    release(&p, s);
    hl_free(ctx, s);
    if (status != HL_OK) {
        hl_sde_simple_free(to);
        return status;
    }
    *simple = to;
    return HL_OK;
}

hl_status hl_sde_regress(hl_context *ctx, const hl_sde_data *data, size_t dim, const hl_sde_regress_options *options,
                         hl_sde_simple **simple)
{
    return hl_regress_run(ctx, data, dim, options, NULL, NULL, simple);
}
