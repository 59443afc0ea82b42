/* regress.c - regression of drift and diffusion: the data as it needs them, iterations, the result.
 *
 * The weights of the conditions, and the residuals of steps of which the diffusion is learnt, depend on the coefficients.
 * So the conditions are made a few times, each time with the estimate before. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hollow/sde_forms.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum {
    ROUNDS = 4,
    RIDGE_ROUNDS = 2 /* of steps, with an estimate to start with */,
    FEW_PATHS = 10,
    BLOCKS = 4,
    RATE_ROWS = 400
};
enum { LEAST_PAIRS = 30, MOST_GROUPS = 10, BLOCK_PARTS = 3 }; /* groups of a fold; parts of a block of time */
static const double floor_share = 0.02, longest_step = 0.5, close_step = 0.25;
static const double longest_transition = 0.5;
static const double much_less = 0.7; /* see enrich() */

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
static hl_status order_rows(hl_regress *p, const hl_sde_data *data, size_t *place)
{
    stamp *s = hl_calloc(p->ctx, p->rows, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < p->rows; r++)
        s[r] = (stamp){ data->t[r], r };
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
    bool one = true;
    for (size_t r = 1; r < p->rows; r++) {
        paths += data->trajectory && data->trajectory[r] != data->trajectory[r - 1];
        one = one && data->t[r] > data->t[r - 1];
    }
    bool linked = data->trajectory || one, blocks = linked && paths < FEW_PATHS;
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
    size_t *place = hl_calloc(ctx, n, sizeof *place);
    status = place ? order_rows(p, data, place) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = set_pairs(p, data, place);
    hl_free(ctx, place);
    if (status != HL_OK)
        return status;
    set_known(p, s);
    return set_forms(p, data, s);
}

/* ---- the estimate ---- */

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

/* Root mean square of the derivatives of f: how fast things change. */
static double rate(const hl_regress *p, double *scratch)
{
    size_t d = p->dim, stride = p->rows / RATE_ROWS + 1, count = 0;
    double *z = scratch, *f = z + p->inputs, *f1 = f + d, *a = f1 + d, *value = a + p->entries, sum = 0;
    const double gap = 0.05;
    for (size_t r = 0; r < p->rows; r += stride, count++)
        for (size_t i = 0; i < d; i++) {
            memcpy(z, p->z + r * p->inputs, p->inputs * sizeof *z);
            z[i] += gap;
            hl_regress_values_at(p, z, value, f1, a);
            z[i] -= 2 * gap;
            hl_regress_values_at(p, z, value, f, a);
            for (size_t j = 0; j < d; j++)
                sum += (f1[j] - f[j]) * (f1[j] - f[j]) / (4 * gap * gap);
        }
    return sqrt(sum / (double)(count * d));
}

static size_t short_pairs(const hl_regress *p)
{
    size_t count = 0;
    for (size_t k = 0; k < p->pairs; k++)
        count += p->pair[k].step <= p->longest;
    return count;
}

typedef struct sources {
    hl_weak *weak;
    hl_steps *steps;
    hl_conditions rows;
    hl_candidate candidate[HL_REGRESS_CANDIDATES];
    size_t candidates;
    hl_choice choice;
} sources;

static hl_status round_of(hl_regress *p, sources *s, bool weak, bool steps)
{
    hl_status status = HL_OK;
    size_t first = weak ? hl_weak_count(s->weak) : 0;
    s->rows.noisy = first;
    s->rows.count = first + (steps ? hl_steps_count(s->steps) : 0);
    if (weak)
        status = hl_weak_rows(s->weak, &s->rows, 0);
    if (status == HL_OK && steps)
        status = hl_steps_rows(s->steps, &s->rows, first);
    if (status == HL_OK)
        status = hl_check_stop(p->ctx);
    return status == HL_OK ? hl_regress_choose(p, &s->rows, s->candidates, s->candidate, &s->choice) : status;
}

static hl_status rounds(hl_regress *p, sources *s, bool weak, bool steps)
{
    hl_status status = HL_OK;
    bool started = p->started, apart = p->apart;
    const size_t count = p->ridge_each && !weak ? RIDGE_ROUNDS : ROUNDS;
    for (size_t k = 0; k < count && status == HL_OK; k++) {
        p->last = weak || k + 1 == count;
        p->settled = k + 1 == count;
        status = round_of(p, s, weak, steps);
        if (p->apart && !apart) { /* again, with weights that owe nothing to this estimate */
            apart = true;
            p->started = started;
            k = (size_t)-1;
        }
    }
    return status;
}

/* Sets p->longest by the estimate, but so that a tenth of the pairs is used. Are most of them close? */
static hl_status set_longest(hl_regress *p, bool *most)
{
    size_t size = p->inputs + 2 * p->dim + p->entries + p->size[0] + p->size[1];
    double *scratch = hl_calloc(p->ctx, size + p->pairs, sizeof *scratch), *step = scratch + size;
    if (!scratch)
        return HL_ERR_NOMEM;
    double r = rate(p, scratch);
    p->rate = p->plain ? 0 : r;
    for (size_t k = 0; k < p->pairs; k++)
        step[k] = p->pair[k].step;
    hl_sort(step, p->pairs);
    *most = step[p->pairs / 2] * r <= close_step;
    p->longest = fmax((p->rate > 0 ? longest_transition : longest_step) / r, step[p->pairs / 10]);
    hl_free(p->ctx, scratch);
    return HL_OK;
}

/* Again without pairs that are long against the time in which f changes, such as gaps in records, if there are some and enough others: over
 * a long step the drift looks smaller than it is. Without long pairs the estimate stays as it is. */
static hl_status without_long_pairs(hl_regress *p, sources *s)
{
    bool most;
    double rate_before = p->rate, longest_before = p->longest;
    hl_status status = set_longest(p, &most);
    if (status != HL_OK)
        return status;
    size_t kept = short_pairs(p);
    if (kept < p->pairs && kept >= LEAST_PAIRS)
        return rounds(p, s, false, true);
    p->rate = rate_before;
    p->longest = longest_before;
    return HL_OK;
}

static size_t noise_functions(const hl_candidate *c)
{
    return (c->degree[1] > 1 && !c->own[1]) + (size_t)c->degree[1] * 2 + c->bumps[1] * 2;
}

/* While the steps contradict the diffusion: again with larger dictionaries for it alone, if these leave much less. Held-out errors of e^2, in which
 * few large residuals count most, may take a constant diffusion for as good. */
static hl_status enrich(hl_regress *p, sources *s)
{
    double before, after, *theta = hl_calloc(p->ctx, p->columns, sizeof *theta);
    sources *kept = hl_calloc(p->ctx, 1, sizeof *kept);
    hl_status status = theta && kept ? hl_regress_noise_missed(p, &before) : HL_ERR_NOMEM;
    bool more = status == HL_OK && before > 0;
    while (more && status == HL_OK) {
        size_t few = noise_functions(&s->candidate[s->choice.candidate]);
        *kept = *s;
        memcpy(theta, p->theta, p->columns * sizeof *theta);
        s->candidates = 0;
        for (size_t k = 0; k < kept->candidates; k++)
            if (noise_functions(&kept->candidate[k]) > few)
                s->candidate[s->candidates++] = kept->candidate[k];
        after = before;
        if (s->candidates)
            status = rounds(p, s, false, true);
        if (status == HL_OK && s->candidates)
            status = hl_regress_noise_missed(p, &after);
        more = after > 0 && after < much_less * before;
        if (after >= much_less * before) {
            *s = *kept;
            memcpy(p->theta, theta, p->columns * sizeof *theta);
        }
        before = after;
    }
    hl_free(p->ctx, theta);
    hl_free(p->ctx, kept);
    return status;
}

/* Steps alone, if nearly all rows have a neighbour and their steps are short; otherwise snapshots first, and then with them
 * the steps that are short against what they show. */
static hl_status iterate(hl_regress *p, sources *s, hl_sde_regress_report *report)
{
    hl_status status = HL_OK;
    bool weak = s->weak != NULL, steps = s->steps != NULL, linked = steps && 5 * p->pairs >= 4 * p->rows, done = false;
    p->longest = INFINITY;
    if (steps && (!weak || linked)) {
        status = rounds(p, s, false, true);
        if (status == HL_OK && weak)
            status = set_longest(p, &done);
        if (status == HL_OK && done)
            status = rounds(p, s, false, true);
        for (size_t k = 0; k < 2 && status == HL_OK && !weak; k++)
            status = without_long_pairs(p, s);
        if (!weak || done)
            weak = false, done = true;
        if (status == HL_OK && done)
            status = enrich(p, s);
    }
    if (status == HL_OK && !done) {
        if (!linked)
            status = rounds(p, s, true, false);
        if (status == HL_OK && steps)
            status = set_longest(p, &done);
        steps = steps && short_pairs(p) >= LEAST_PAIRS;
        for (size_t k = 0; k < 2 && status == HL_OK && steps; k++) {
            status = rounds(p, s, true, true);
            if (status == HL_OK)
                status = set_longest(p, &done);
        }
    }
    report->snapshots = weak;
    report->steps = steps;
    return status;
}

/* Conditions, and room for their rows. */
static hl_status make_sources(hl_regress *p, bool weak, bool steps, sources *s)
{
    hl_status status = HL_OK;
    if (weak)
        status = hl_weak_create(p, &s->weak);
    if (status == HL_OK && steps && p->pairs >= LEAST_PAIRS)
        status = hl_steps_create(p, false, &s->steps);
    if (status == HL_OK && !s->weak && !s->steps)
        return hl_fail(p->ctx, HL_ERR_NO_SOLUTION,
                       "hl_sde_regress: too few times with enough rows, and too few steps, for a regression");
    size_t most = hl_weak_count(s->weak) + hl_steps_count(s->steps);
    if (status == HL_OK)
        s->rows.rows = hl_calloc(p->ctx, hl_size_mul(HL_REGRESS_FOLDS * most, p->columns + 1), sizeof *s->rows.rows);
    if (status == HL_OK && !s->rows.rows)
        status = HL_ERR_NOMEM;
    return status;
}

static void free_sources(hl_regress *p, sources *s)
{
    hl_weak_free(s->weak);
    hl_steps_free(s->steps);
    hl_free(p->ctx, s->rows.rows);
    s->weak = NULL;
    s->steps = NULL;
    s->rows.rows = NULL;
}

/* An estimate that may bend in every direction, to theta: the present one, or that of the best candidates of a drift that mixes columns. */
static hl_status bent_estimate(hl_regress *p, const sources *s, sources *other, double *theta)
{
    const hl_candidate *c = &s->candidate[s->choice.candidate];
    hl_status status = HL_OK;
    memcpy(theta, p->theta, p->columns * sizeof *theta);
    if (!c->own[0])
        return HL_OK;
    for (size_t k = 0; k < s->candidates; k++)
        if (!s->candidate[k].own[0] && (s->candidate[k].degree[0] > 1 || s->candidate[k].bumps[0]))
            other->candidate[other->candidates++] = s->candidate[k];
    if (other->candidates)
        status = hl_regress_choose(p, &s->rows, other->candidates, other->candidate, &other->choice);
    for (size_t k = 0; k < p->columns; k++) {
        double bent = p->theta[k];
        p->theta[k] = theta[k];
        theta[k] = bent;
    }
    return status;
}

/* Turns the directions that were chosen and chooses again; the result is kept if its held-out error is smaller. */
static hl_status turn_ridges(hl_regress *p, sources *s, const hl_sde_regress_report *report)
{
    hl_context *ctx = p->ctx;
    const hl_candidate c = s->candidate[s->choice.candidate];
    hl_basis before = { 0 };
    size_t count = s->rows.count;
    hl_choice *choice = hl_calloc(ctx, 1, sizeof *choice);
    double *theta = hl_calloc(ctx, p->columns, sizeof *theta);
    hl_status status = choice && theta
                           ? hl_basis_copy(ctx, &p->basis[0], p->basis[0].products, p->basis[0].bumps, &before)
                           : HL_ERR_NOMEM;
    if (status == HL_OK) {
        *choice = s->choice;
        memcpy(theta, p->theta, p->columns * sizeof *theta);
        free_sources(p, s);
        status = hl_regress_turn(p, &c, report->snapshots, report->steps);
    }
    if (status == HL_OK)
        status = make_sources(p, report->snapshots, report->steps, s);
    if (status == HL_OK)
        status = rounds(p, s, report->snapshots, report->steps);
    bool better = status == HL_OK && s->choice.score < choice->score && s->candidate[s->choice.candidate].ridges;
    if (status == HL_ERR_NO_SOLUTION)
        status = HL_OK;
    if (!better && status == HL_OK) {
        hl_basis turned = p->basis[0];
        p->basis[0] = before;
        before = turned;
        s->choice = *choice;
        s->rows.count = count;
        memcpy(p->theta, theta, p->columns * sizeof *theta);
    }
    hl_basis_free(ctx, &before);
    hl_free(ctx, choice);
    hl_free(ctx, theta);
    return status;
}

/* Again with functions of the directions in which the estimate bends; kept if a candidate that has them is chosen. */
static hl_status add_ridges(hl_regress *p, sources *s, const hl_sde_regress_report *report)
{
    const hl_candidate *c = &s->candidate[s->choice.candidate];
    if (!hl_regress_bends(p, c))
        return HL_OK;
    hl_context *ctx = p->ctx;
    hl_regress more = *p;
    more.theta = NULL;
    more.basis[0] = more.basis[1] = (hl_basis){ 0 };
    sources *other = hl_calloc(ctx, 1, sizeof *other);
    double *bent = hl_calloc(ctx, p->columns, sizeof *bent);
    hl_status status = other && bent ? bent_estimate(p, s, other, bent) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_regress_ridges(p, c, bent, &more);
    hl_free(ctx, bent);
    if (!other)
        return status;
    free_sources(p, s); /* they are not needed any more, and may be large */
    if (status == HL_OK)
        status = make_sources(&more, report->snapshots, report->steps, other);
    if (status == HL_OK) {
        other->candidates = hl_regress_ridge_candidates(&more, s->candidates, s->candidate, c, other->candidate);
        status = rounds(&more, other, report->snapshots, report->steps);
    }
    bool kept = status == HL_OK && other->candidate[other->choice.candidate].ridges;
    if (status == HL_ERR_NO_SOLUTION) /* the estimate stays */
        status = HL_OK;
    if (kept)
        status = turn_ridges(&more, other, report);
    hl_regress rest = kept ? *p : more;
    if (kept) {
        *p = more;
        s->candidates = other->candidates;
        memcpy(s->candidate, other->candidate, sizeof s->candidate);
        s->choice = other->choice;
        s->rows.count = other->rows.count;
    }
    free_sources(&rest, other);
    hl_basis_free(ctx, &rest.basis[0]);
    hl_basis_free(ctx, &rest.basis[1]);
    hl_free(ctx, rest.theta);
    hl_free(ctx, other);
    return status;
}

static hl_status estimate(hl_regress *p, sources *s, bool ridges, hl_sde_regress_report *report)
{
    bool weak = strcmp(p->options.use, "steps") != 0, steps = strcmp(p->options.use, "snapshots") != 0;
    hl_status status = make_sources(p, weak, steps, s);
    s->candidates = hl_regress_candidates(p, s->candidate);
    if (status == HL_OK)
        status = iterate(p, s, report);
    if (status == HL_OK && ridges)
        status = add_ridges(p, s, report);
    const hl_candidate *c = &s->candidate[s->choice.candidate];
    report->conditions = s->rows.count;
    report->ridge = s->choice.ridge;
    report->misfit = s->choice.score;
    report->correlated = c->crossed;
    if (status == HL_OK)
        snprintf(report->form, sizeof report->form, "%s, %s", c->name[0], c->name[1]);
    return status;
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

static void release(hl_regress *p, sources *s)
{
    free_sources(p, s);
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
    sources *s = hl_calloc(ctx, 1, sizeof *s);
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
        status = estimate(&p, s, !after, &to->report);
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
