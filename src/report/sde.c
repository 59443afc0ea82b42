/* sde.c - a stochastic equation compared with observations: the numbers of hl_report_sde.
 *
 * hl_judge compares densities and simulations with the observations, time by time. Where there are trajectories, their steps are looked at,
 * too: the model makes a step from each of the same points in the same time, by SUBSTEPS steps of Euler and Maruyama, and steps of data and
 * model are compared by cells of the column's values. That holds for steps of any length. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "report/compare.h"
#include "report/report.h"
#include "sde/sde.h"

enum {
    STEPS = 4000,
    SUBSTEPS = 16,
    STREAM_STEP = 62,
    LEAST_STEPS = 100,
    CELL_STEPS = 20,
    FIELD_SIDE = 19,
    FIELD_POINTS = 1000,
    LOGP_ROWS = 4000
};
static const double quantiles[HL_REPORT_QUANTILES] = { 0.05, 0.25, 0.5, 0.75, 0.95 };

/* ---- steps ---- */

typedef struct steps {
    size_t count, dim;
    double *t, *dt;          /* [count] */
    double *from, *to;       /* [count][dim]: of the data */
    double *end, *f, *g, *w; /* of the model; scratch */
    double *now;
    double *f0, *g0; /* of the model where the steps begin */
    void *room;
} steps;

static bool is_step(const hl_sde_data *d, size_t r)
{
    return d->trajectory[r] == d->trajectory[r + 1] && d->t[r + 1] > d->t[r];
}

/* At most STEPS of the steps, evenly. */
static hl_status take_steps(hl_context *ctx, size_t dim, const hl_sde_data *d, steps *s)
{
    size_t all = 0, taken = 0;
    *s = (steps){ .dim = dim };
    for (size_t r = 0; d->trajectory && r + 1 < d->rows; r++)
        all += is_step(d, r);
    s->count = all < STEPS ? all : STEPS;
    if (s->count < LEAST_STEPS) {
        s->count = 0;
        return HL_OK;
    }
    double *room = hl_alloc(ctx, hl_size_mul(s->count * (3 + 8 * dim), sizeof *room));
    if (!room)
        return HL_ERR_NOMEM;
    size_t n = s->count;
    s->room = room;
    s->t = room;
    s->dt = s->t + n;
    s->now = s->dt + n;
    s->from = s->now + n;
    s->to = s->from + n * dim;
    s->end = s->to + n * dim;
    s->f = s->end + n * dim;
    s->g = s->f + n * dim;
    s->w = s->g + n * dim;
    s->f0 = s->w + n * dim;
    s->g0 = s->f0 + n * dim;
    for (size_t r = 0, k = 0; r + 1 < d->rows; r++)
        if (is_step(d, r) && k++ * n / all == taken && taken < n) {
            s->t[taken] = d->t[r];
            s->dt[taken] = d->t[r + 1] - d->t[r];
            memcpy(s->from + taken * dim, d->x + r * dim, dim * sizeof *room);
            memcpy(s->to + taken++ * dim, d->x + (r + 1) * dim, dim * sizeof *room);
        }
    s->count = taken;
    return HL_OK;
}

/* A step of the model from each point. */
static hl_status make_steps(hl_sde *sde, uint64_t seed, steps *s)
{
    hl_noise_system system;
    hl_status status = hl_sde_system(sde, &system);
    memcpy(s->end, s->from, s->count * s->dim * sizeof *s->end);
    memcpy(s->now, s->t, s->count * sizeof *s->now);
    for (size_t k = 0; k < SUBSTEPS && status == HL_OK; k++) {
        status = hl_sde_eval(sde, s->count, s->now, s->end, &(hl_sde_values){ .f = s->f, .g = s->g });
        if (k == 0) {
            memcpy(s->f0, s->f, s->count * s->dim * sizeof *s->f);
            memcpy(s->g0, s->g, s->count * s->dim * sizeof *s->g);
        }
        for (size_t r = 0; r < s->count && status == HL_OK; r++) {
            double h = s->dt[r] / SUBSTEPS, *w = s->w + r * s->dim;
            hl_random_normals(seed, STREAM_STEP, (r * SUBSTEPS + k) * s->dim, s->dim, w);
            if (system.factor)
                hl_multiply_lower(s->dim, system.factor, s->dim, w);
            for (size_t i = 0; i < s->dim; i++)
                s->end[r * s->dim + i] += h * s->f[r * s->dim + i] + sqrt(h) * s->g[r * s->dim + i] * w[i];
            s->now[r] += h;
        }
    }
    return status;
}

/* ---- cells ---- */

/* Sums over the steps of a cell. */
typedef struct sums {
    double n, x, time, step, square, model, model_square, drift, diffusion;
    double noise[2], noise_square[2]; /* { data, model }: (step - f time) / sqrt(time) and its square */
} sums;

/* Kurtosis of steps over the root of their time, about drift; for the error of a deviation. */
static double log_error(size_t n, double second, double fourth)
{
    double kurtosis = fourth / (second * second);
    return sqrt(fmax(kurtosis - 1, 0) / (4 * (double)n));
}

/* Deviations of the steps of data and model, without the model's drift, over the root of their time. */
static void compare_noise(const steps *s, size_t column, hl_report_equation *e)
{
    double second[2] = { 0, 0 }, fourth[2] = { 0, 0 }, mean[2] = { 0, 0 };
    for (int pass = 0; pass < 2; pass++)
        for (size_t r = 0; r < s->count; r++)
            for (int k = 0; k < 2; k++) {
                size_t at = r * s->dim + column;
                double z = ((k ? s->end[at] : s->to[at]) - s->from[at] - s->dt[r] * s->f0[at]) / sqrt(s->dt[r]);
                double y = z - mean[k];
                second[k] += pass ? y * y / (double)s->count : 0;
                fourth[k] += pass ? y * y * y * y / (double)s->count : 0;
                mean[k] += pass ? 0 : z / (double)s->count;
            }
    e->noise = sqrt(second[0] / second[1]);
    e->noise_error = hypot(log_error(s->count, second[0], fourth[0]), log_error(s->count, second[1], fourth[1]));
}

/* P(X > value) of the chi-squared distribution of k degrees of freedom, by Wilson and Hilferty. */
static double chi2_p(double value, double k)
{
    double a = 2 / (9 * k);
    return k > 0 ? 1 - hl_normal_cdf((cbrt(value / k) - 1 + a) / sqrt(a)) : NAN;
}

static void fill_cell(const sums *m, hl_report_cell *c)
{
    double mean = m->step / m->n, variance = fmax(m->square / m->n - mean * mean, 0), time = m->time / m->n;
    c->x = m->x / m->n;
    c->steps = (size_t)m->n;
    c->measured[0] = m->step / m->time;
    c->made[0] = m->model / m->time;
    c->error[0] = sqrt(variance / m->n) / time;
    for (int k = 0; k < 2; k++) {
        double middle = m->noise[k] / m->n, deviation = sqrt(fmax(m->noise_square[k] / m->n - middle * middle, 0));
        *(k ? &c->made[1] : &c->measured[1]) = deviation;
    }
    c->error[1] = c->measured[1] / sqrt(2 * m->n);
    c->model[0] = m->drift / m->n;
    c->model[1] = sqrt(m->diffusion / m->n);
}

/* Cells of about equal numbers of steps, by where they begin. */
static hl_status compare_steps(hl_context *ctx, const steps *s, size_t column, hl_report_equation *e)
{
    size_t cells = s->count / CELL_STEPS < HL_REPORT_CELLS ? s->count / CELL_STEPS : HL_REPORT_CELLS;
    double *sorted = hl_alloc(ctx, s->count * sizeof *sorted), chi = 0, left = 0, moved = 0;
    sums m[HL_REPORT_CELLS] = { { 0 } };
    if (!sorted)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < s->count; r++)
        sorted[r] = s->from[r * s->dim + column];
    hl_sort(sorted, s->count);
    for (size_t r = 0; r < s->count; r++) {
        size_t at = r * s->dim + column, k = 0;
        while (k + 1 < cells && s->from[at] > sorted[(k + 1) * s->count / cells - 1])
            k++;
        double step = s->to[at] - s->from[at], made = s->end[at] - s->from[at];
        m[k].n++;
        m[k].x += s->from[at];
        m[k].time += s->dt[r];
        m[k].step += step;
        m[k].square += step * step;
        m[k].model += made;
        m[k].model_square += made * made;
        m[k].drift += s->f0[at];
        m[k].diffusion += s->g0[at] * s->g0[at];
        for (int of = 0; of < 2; of++) {
            double noise = ((of ? made : step) - s->dt[r] * s->f0[at]) / sqrt(s->dt[r]);
            m[k].noise[of] += noise;
            m[k].noise_square[of] += noise * noise;
        }
    }
    hl_free(ctx, sorted);
    for (size_t k = 0; k < cells; k++) {
        if (m[k].n < 3)
            continue;
        double a = m[k].step / m[k].n, b = m[k].model / m[k].n;
        double error = (m[k].square / m[k].n - a * a + m[k].model_square / m[k].n - b * b) / m[k].n;
        if (error > 0)
            chi += (a - b) * (a - b) / error;
        left += m[k].n * ((a - b) * (a - b) - error);
        moved += m[k].n * (a * a - fmax(m[k].square / m[k].n - a * a, 0) / m[k].n);
        fill_cell(&m[k], &e->cell[e->cells++]);
    }
    e->drift_p = chi2_p(chi, (double)e->cells);
    e->drift_left = moved > 0 ? sqrt(fmax(left, 0) / moved) : NAN;
    compare_noise(s, column, e);
    return HL_OK;
}

static hl_status study_steps(hl_sde *sde, const hl_sde_data *data, uint64_t seed, hl_report *r)
{
    size_t dim = r->sde.dim;
    steps s;
    hl_report_equation *e = hl_report_room(r, dim, sizeof *e);
    hl_status status = e ? take_steps(r->ctx, dim, data, &s) : HL_ERR_NOMEM;
    if (!e)
        return status;
    r->sde.column = e;
    r->sde.columns = dim;
    r->sde.steps = s.count;
    if (status == HL_OK && s.count)
        status = make_steps(sde, seed, &s);
    for (size_t i = 0; i < dim && status == HL_OK; i++) {
        e[i] = (hl_report_equation){
            .name = r->name[i], .noise = NAN, .noise_error = NAN, .drift_left = NAN, .drift_p = NAN
        };
        if (s.count)
            status = compare_steps(r->ctx, &s, i, &e[i]);
    }
    hl_free(r->ctx, s.room);
    return status;
}

/* ---- time by time ---- */

/* Quantiles of every column of a sample (rows x dim). */
static void fill_quantiles(size_t dim, size_t rows, const double *x, double *sorted, double *to)
{
    for (size_t i = 0; i < dim; i++) {
        bool finite = rows > 0;
        for (size_t r = 0; r < rows; r++) {
            sorted[r] = x[r * dim + i];
            finite = finite && isfinite(sorted[r]);
        }
        if (finite)
            hl_sort(sorted, rows);
        for (size_t k = 0; k < HL_REPORT_QUANTILES; k++)
            to[i * HL_REPORT_QUANTILES + k] = finite ? hl_quantile(rows, sorted, quantiles[k]) : NAN;
    }
}

static hl_status fill_times(hl_judge *judge, hl_report *r)
{
    size_t groups = hl_judge_groups(judge), dim = r->sde.dim, most = 0;
    hl_report_time *time = hl_report_room(r, groups, sizeof *time);
    for (size_t k = 0; k < groups; k++)
        most = hl_judge_get(judge, k).rows > most ? hl_judge_get(judge, k).rows : most;
    double *x = hl_alloc(r->ctx, hl_size_mul(most * (dim + 1) + 1, sizeof *x));
    hl_status status = time && x ? HL_OK : HL_ERR_NOMEM;
    for (size_t k = 0; k < groups && status == HL_OK; k++) {
        hl_judge_group g = hl_judge_get(judge, k);
        double *q = hl_report_room(r, 2 * dim * HL_REPORT_QUANTILES, sizeof *q);
        if (!q) {
            status = HL_ERR_NOMEM;
            break;
        }
        time[k] = (hl_report_time){ .t = (g.t_first + g.t_last) / 2,
                                    .rows = g.rows,
                                    .travelled = g.travelled,
                                    .noise = g.noise,
                                    .density = g.density,
                                    .simulated = g.simulated,
                                    .data_quantiles = q,
                                    .simulated_quantiles = q + dim * HL_REPORT_QUANTILES };
        status = hl_judge_rows(judge, k, HL_JUDGE_DATA, x);
        if (status == HL_OK)
            fill_quantiles(dim, g.rows, x, x + most * dim, q);
        bool lost = status != HL_OK || hl_judge_rows(judge, k, HL_JUDGE_SIMULATED, x) != HL_OK;
        fill_quantiles(dim, lost ? 0 : g.rows, x, x + most * dim, q + dim * HL_REPORT_QUANTILES);
    }
    hl_free(r->ctx, x);
    r->sde.time = time;
    r->sde.times = status == HL_OK ? groups : 0;
    return status;
}

/* ---- the field and the density ---- */

static hl_status fill_field(hl_sde *sde, const hl_sde_data *data, hl_report *r)
{
    hl_report_field *field = &r->field;
    size_t n = FIELD_SIDE * FIELD_SIDE;
    if (r->sde.dim != 2)
        return HL_OK;
    field->points = data->rows < FIELD_POINTS ? data->rows : FIELD_POINTS;
    field->point = hl_report_room(r, field->points * 2, sizeof *field->point);
    field->f = hl_report_room(r, 2 * n, sizeof *field->f);
    double *at = hl_report_room(r, 3 * n, sizeof *at), *t = at ? at + 2 * n : NULL, middle = 0;
    if (!field->point || !field->f || !at)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < 2; i++) {
        field->low[i] = INFINITY;
        field->high[i] = -INFINITY;
    }
    for (size_t r2 = 0; r2 < data->rows; r2++) {
        middle += data->t[r2] / (double)data->rows;
        for (size_t i = 0; i < 2; i++) {
            field->low[i] = fmin(field->low[i], data->x[r2 * 2 + i]);
            field->high[i] = fmax(field->high[i], data->x[r2 * 2 + i]);
        }
    }
    for (size_t k = 0; k < field->points; k++)
        memcpy(field->point + 2 * k, data->x + k * data->rows / field->points * 2, 2 * sizeof *data->x);
    for (size_t k = 0; k < n; k++) {
        const double share[2] = { ((double)(k % FIELD_SIDE) + 0.5) / FIELD_SIDE,
                                  ((double)(k / FIELD_SIDE) + 0.5) / FIELD_SIDE };
        t[k] = middle;
        for (size_t i = 0; i < 2; i++)
            at[2 * k + i] = field->low[i] + share[i] * (field->high[i] - field->low[i]);
    }
    field->side = FIELD_SIDE;
    return hl_sde_eval(sde, n, t, at, &(hl_sde_values){ .f = field->f });
}

static hl_status mean_logp(hl_sde *sde, const hl_sde_data *data, hl_report *r)
{
    size_t rows = data->rows < LOGP_ROWS ? data->rows : LOGP_ROWS, dim = r->sde.dim;
    double *x = hl_alloc(r->ctx, hl_size_mul(rows * (dim + 2), sizeof *x)), *t = x ? x + rows * dim : NULL;
    if (!x)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < rows; k++) {
        size_t row = k * data->rows / rows;
        memcpy(x + k * dim, data->x + row * dim, dim * sizeof *x);
        t[k] = data->t[row];
    }
    hl_status status = hl_sde_eval(sde, rows, t, x, &(hl_sde_values){ .logp = t + rows });
    r->sde.logp = hl_report_mean_of(rows, t + rows);
    hl_free(r->ctx, x);
    return status;
}

/* ---- the report ---- */

static hl_status copy_names(const hl_sde *sde, hl_report *r)
{
    size_t dim = r->sde.dim;
    r->name = hl_report_room(r, dim + 1, sizeof *r->name);
    for (size_t i = 0; r->name && i <= dim; i++) {
        const char *name = hl_sde_name(sde, i);
        char *copy = hl_report_room(r, strlen(name) + 1, 1);
        if (!copy)
            return HL_ERR_NOMEM;
        strcpy(copy, name);
        r->name[i] = copy;
    }
    hl_text note = hl_text_start(r->note, sizeof r->note);
    hl_text_add(&note, "%s", hl_sde_note(sde));
    return r->name ? HL_OK : HL_ERR_NOMEM;
}

static hl_status compare(hl_sde *sde, const hl_sde_data *data, uint64_t seed, hl_report *r)
{
    hl_judge *judge = NULL;
    hl_status status = hl_judge_create(r->ctx, r->sde.dim, data, &(hl_judge_options){ .seed = seed }, &judge);
    if (status == HL_OK)
        status = hl_judge_model(judge, sde);
    if (status == HL_OK)
        status = fill_times(judge, r);
    if (status == HL_OK)
        r->sde.verdict = hl_judge_verdict(judge);
    r->sde.trajectories = r->sde.verdict.trajectories;
    hl_judge_free(judge);
    return status;
}

hl_status hl_report_sde(hl_sde *sde, const hl_sde_data *data, const hl_report_options *options, hl_report **out)
{
    static const hl_report_options defaults;
    if (!sde)
        return HL_ERR_INVALID;
    hl_context *ctx = sde->ctx;
    if (!out || !data || !data->rows || !data->t || !data->x)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_report_sde: the observations or the result are NULL");
    *out = NULL;
    options = options ? options : &defaults;
    hl_report *r = NULL;
    hl_status status = hl_report_create(ctx, HL_REPORT_OF_SDE, options, &r);
    if (status == HL_OK) {
        r->sde.dim = hl_sde_describe(sde).dim;
        r->sde.rows = data->rows;
        status = copy_names(sde, r);
    }
    if (status == HL_OK)
        status = compare(sde, data, options->seed, r);
    if (status == HL_OK)
        status = study_steps(sde, data, options->seed, r);
    if (status == HL_OK)
        status = fill_field(sde, data, r);
    if (status == HL_OK)
        status = mean_logp(sde, data, r);
    for (int k = 0; k < HL_SDE_COURSES && status == HL_OK; k++) {
        const hl_training_point *from = hl_sde_course(sde, (hl_sde_course_of)k, &r->sde.courses[k]);
        status = hl_report_copy_course(r, r->sde.courses[k], from, &r->sde.course[k]);
    }
    if (status != HL_OK) {
        hl_report_free(r);
        return status;
    }
    hl_sde_report_judge(r);
    *out = r;
    return HL_OK;
}

const hl_sde_report *hl_report_sde_numbers(const hl_report *r)
{
    return r && r->kind == HL_REPORT_OF_SDE ? &r->sde : NULL;
}
