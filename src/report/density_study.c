/* density_study.c - what a density model gains over simple ones, its least likely rows, and what its solver does.
 *
 * Simple models are fitted to one half of the rows, every second, and judged by the other, and the other way round: none is judged by rows
 * that it saw. With n rows and d columns the normal distribution's covariance is (n S + d diag S) / (n + d). */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "report/report.h"

enum {
    LEAST_ROWS = 40,
    PARTS = 8,
    WIDE = 16, /* columns: more have half as many parts, as each has many parameters */
    EM_STEPS = 30,
    MOST_JOINT = 512,
    CANDIDATES = 4,
    REPLACED = 2 * (CANDIDATES + 1), /* by two values each, with the steepest */
    MEMBER_ROWS = 2000,
    SLOPES = 16, /* rows of which d log p / dx is computed: a panel, as a further row would cost as much again */
    SOLVER_ROWS = 16,
    COUNTED_ROWS = 6
};
static const double FAR = 100, FEW_STEPS = 10;
static const double HALF_LOG_2PI = 0.91893853320467274178, LEAST_VARIANCE = 1e-12;

/* ---- simple models ---- */

/* Rows of the columns of the context, then of x, standardised by the model's units. */
typedef struct halves {
    hl_density *m;
    size_t rows[2], all;
    double *x[2];    /* the halves */
    double *logp[2]; /* of a simple model, of the rows of each half */
    double *gain;    /* of all rows */
    double *factor;  /* all x all */
    double *mean, *row;
    double log_scale; /* from standardised columns to the user's */
} halves;

static hl_status split(hl_density *m, const hl_report *r, halves *h)
{
    const hl_report_set *data = &r->set[0];
    size_t all = m->dim + m->context, n = data->rows;
    *h = (halves){ .m = m, .rows = { (n + 1) / 2, n / 2 }, .all = all };
    size_t square = all <= MOST_JOINT ? all * all : 0;
    h->x[0] = hl_alloc(r->ctx, hl_size_mul(hl_size_mul(n, all) + 2 * n + 2 * all + square + 2, sizeof(double)));
    if (!h->x[0])
        return HL_ERR_NOMEM;
    h->x[1] = h->x[0] + h->rows[0] * all;
    h->logp[0] = h->x[0] + n * all;
    h->logp[1] = h->logp[0] + h->rows[0];
    h->gain = h->logp[0] + n;
    h->mean = h->gain + n;
    h->row = h->mean + all;
    h->factor = h->row + all;
    for (size_t i = 0; i < n; i++) {
        double *to = h->x[i % 2] + i / 2 * all;
        for (size_t k = 0; k < all; k++) {
            size_t column = k < m->context ? m->dim + k : k - m->context;
            double value = k < m->context ? data->c[i * m->context + k] : data->x[i * m->dim + column];
            to[k] = (value - m->column[column].mean) / m->column[column].deviation;
        }
    }
    for (size_t i = 0; i < m->dim; i++)
        h->log_scale -= log(m->column[i].deviation);
    return HL_OK;
}

static void find_means(const halves *h, size_t half)
{
    memset(h->mean, 0, h->all * sizeof *h->mean);
    for (size_t r = 0; r < h->rows[half]; r++)
        for (size_t i = 0; i < h->all; i++)
            h->mean[i] += h->x[half][r * h->all + i] / (double)h->rows[half];
}

/* log p of the rows of the other half by normal columns that are fitted to this one. */
static void independent(const halves *h, size_t half)
{
    size_t other = 1 - half, given = h->m->context;
    double constant = h->log_scale;
    find_means(h, half);
    for (size_t i = given; i < h->all; i++) {
        double variance = 0;
        for (size_t r = 0; r < h->rows[half]; r++) {
            double at = h->x[half][r * h->all + i] - h->mean[i];
            variance += at * at / (double)h->rows[half];
        }
        h->row[i] = sqrt(fmax(variance, LEAST_VARIANCE));
        constant -= log(h->row[i]) + HALF_LOG_2PI;
    }
    for (size_t r = 0; r < h->rows[other]; r++) {
        double sum = constant;
        for (size_t i = given; i < h->all; i++) {
            double z = (h->x[other][r * h->all + i] - h->mean[i]) / h->row[i];
            sum -= z * z / 2;
        }
        h->logp[other][r] = sum;
    }
}

/* The same by a normal distribution of all columns; its factor has the context first, which makes the rest that of x given it. */
static void correlated(const halves *h, size_t half)
{
    size_t other = 1 - half, all = h->all;
    double n = (double)h->rows[half], d = (double)all, constant = h->log_scale;
    find_means(h, half);
    memset(h->factor, 0, all * all * sizeof *h->factor);
    for (size_t r = 0; r < h->rows[half]; r++) {
        for (size_t i = 0; i < all; i++)
            h->row[i] = h->x[half][r * all + i] - h->mean[i];
        for (size_t i = 0; i < all; i++) {
            double at = h->row[i] / n;
            for (size_t k = 0; k <= i; k++)
                h->factor[i * all + k] += at * h->row[k];
        }
    }
    for (size_t i = 0; i < all; i++)
        for (size_t k = 0; k < i; k++)
            h->factor[i * all + k] *= n / (n + d);
    hl_cholesky(all, h->factor, LEAST_VARIANCE);
    for (size_t i = h->m->context; i < all; i++)
        constant -= log(h->factor[i * all + i]) + HALF_LOG_2PI;
    for (size_t r = 0; r < h->rows[other]; r++) {
        double sum = constant;
        for (size_t i = 0; i < all; i++)
            h->row[i] = h->x[other][r * all + i] - h->mean[i];
        hl_solve_lower(all, h->factor, all, h->row);
        for (size_t i = h->m->context; i < all; i++)
            sum -= h->row[i] * h->row[i] / 2;
        h->logp[other][r] = sum;
    }
}

/* The same by a mixture, which costs more than all other simple models: the second half alone is judged, by a fit to the first. */
static hl_status mixed(const halves *h, const hl_report_set *data, hl_report_mean *gain)
{
    hl_tmixture_fold fold = { .rows = h->rows[0], .x = h->x[0] };
    hl_tmixture_plan plan = {
        .parts = h->all > WIDE ? PARTS / 2 : PARTS, .nu = INFINITY, .prior = (double)h->all, .steps = EM_STEPS
    };
    hl_tmixture *mixture = NULL;
    hl_status status = hl_tmixture_fit(h->m->ctx, h->all, h->m->context, &fold, &plan, &mixture, NULL, NULL);
    if (status == HL_OK)
        status = hl_tmixture_logp(mixture, h->rows[1], h->x[1], h->logp[1]);
    for (size_t r = 0; r < h->rows[1] && status == HL_OK; r++)
        h->gain[r] = data->logp[2 * r + 1] - h->logp[1][r] - h->log_scale;
    if (status == HL_OK)
        *gain = hl_report_mean_of(h->rows[1], h->gain);
    hl_tmixture_free(mixture);
    return status;
}

/* log p above what h->logp has. */
static hl_report_mean gain_of(const halves *h, const hl_report_set *data)
{
    for (size_t r = 0; r < data->rows; r++)
        h->gain[r] = data->logp[r] - h->logp[r % 2][r / 2];
    return hl_report_mean_of(data->rows, h->gain);
}

/* The best of the model's own mixtures, by at most MEMBER_ROWS of the rows, evenly. These take the place of the halves. */
static hl_status best_member(const halves *h, hl_report *r)
{
    const hl_report_set *data = &r->set[0];
    hl_density_report *d = &r->density;
    size_t dim = h->m->dim, context = h->m->context, step = 1 + (data->rows - 1) / MEMBER_ROWS;
    size_t rows = (data->rows + step - 1) / step;
    double *x = h->x[0], *c = x + rows * dim;
    for (size_t k = 0; k < rows && r->members > (h->m->flow != NULL); k++) {
        memcpy(x + k * dim, data->x + k * step * dim, dim * sizeof *x);
        memcpy(c + k * context, data->c + k * step * context, context * sizeof *c);
    }
    for (size_t i = 0; i < r->members; i++) {
        if (r->member[i].kind != HL_MEMBER_MIXTURE)
            continue;
        hl_status status = hl_density_member_logp(h->m, i, rows, x, context ? c : NULL, h->gain);
        if (status == HL_STOPPED || status == HL_ERR_NOMEM)
            return status;
        r->member_logp[i] = hl_report_mean_of(rows, h->gain);
        for (size_t k = 0; k < rows; k++)
            h->gain[k] = data->logp[k * step] - h->gain[k];
        hl_report_mean over = hl_report_mean_of(rows, h->gain);
        if (!d->mixture_member || over.value < d->over_mixture.value)
            d->over_mixture = over;
        d->mixture_member = 1;
    }
    return HL_OK;
}

/* Values beyond the draws by FAR times their range: a single one decides means, deviations and correlations of the data. */
void hl_density_find_far(hl_density *m, hl_report *r)
{
    const hl_report_set *data = &r->set[0];
    double most = 0;
    for (size_t i = 0; i < data->rows && r->set[1].rows > 1; i++) {
        bool far = false;
        for (size_t k = 0; k < m->dim; k++) {
            const hl_report_column *c = &r->density.column[r->by_column[k]];
            double x = data->x[i * m->dim + k], range = fmax(c->largest[1] - c->least[1], m->column[k].deviation);
            double beyond = fmax(c->least[1] / range - x / range, x / range - c->largest[1] / range);
            far |= beyond > FAR;
            if (beyond > FAR && beyond > most) {
                most = beyond;
                r->far.number = data->number[i];
                r->far.column = k;
                r->far.value = x;
            }
        }
        r->far.rows += far;
    }
}

/* Simple models are densities of values that vary and are far from few: is there a reason why they cannot be compared? */
static bool no_gains(const hl_density *m, hl_report *r)
{
    hl_text t = hl_text_start(r->no_gains, sizeof r->no_gains);
    if (m->atoms)
        hl_text_add(&t, "the model has atoms, but the simple densities have none");
    for (size_t i = 0; i < m->dim && !t.used; i++) {
        const hl_report_column *c = &r->density.column[r->by_column[i]];
        if (c->least[0] == c->largest[0])
            hl_text_add(&t, "column '%.60s' is constant in the data", c->name);
        else if (m->form && m->form[i].step > 0 && c->deviation[0] < FEW_STEPS * m->form[i].step)
            hl_text_add(&t, "column '%.60s' has few distinct values and no density", c->name);
    }
    if (!t.used && r->far.rows)
        hl_text_add(&t, "a single extreme value would determine them");
    for (size_t i = 0; i < r->set[0].rows && !t.used; i++)
        if (!isfinite(r->set[0].logp[i]))
            hl_text_add(&t, "log p of row %zu is -inf", r->set[0].number[i] + 1);
    return t.used > 0;
}

hl_status hl_density_study_baselines(hl_density *m, hl_report *r)
{
    hl_density_report *d = &r->density;
    halves h;
    d->over_independent = d->over_normal = d->over_mixture = (hl_report_mean){ NAN, NAN };
    for (size_t i = 0; i < r->members; i++)
        r->member_logp[i] = (hl_report_mean){ NAN, NAN };
    if (r->set[0].rows < LEAST_ROWS || no_gains(m, r))
        return HL_OK;
    hl_status status = split(m, r, &h);
    if (status != HL_OK)
        return status;
    independent(&h, 0);
    independent(&h, 1);
    d->over_independent = gain_of(&h, &r->set[0]);
    if (h.all <= MOST_JOINT) {
        correlated(&h, 0);
        correlated(&h, 1);
        d->over_normal = gain_of(&h, &r->set[0]);
    }
    status = best_member(&h, r);
    if (status == HL_OK && !d->mixture_member && h.all <= MOST_JOINT) {
        status = mixed(&h, &r->set[0], &d->over_mixture);
        status = status == HL_STOPPED || status == HL_ERR_NOMEM ? status : HL_OK; /* without a mixture otherwise */
    }
    hl_free(r->ctx, h.x[0]);
    return status;
}

/* ---- the least likely rows ---- */

/* The normal distribution of the data, by which a column is expected from the others. */
typedef struct predictor {
    size_t dim;
    const double *x;                         /* the row that is looked at */
    double *factor, *mean, *precision, *row; /* precision: the diagonal of the inverse covariance */
    double *copy;                            /* rows with one value replaced, REPLACED for each of the least likely */
    double *context, *logp;
    size_t column[HL_REPORT_WORST][CANDIDATES + 1], columns[HL_REPORT_WORST]; /* that are replaced */
} predictor;

static hl_status make_predictor(hl_density *m, const hl_report *r, predictor *p)
{
    size_t d = m->dim, copies = REPLACED * HL_REPORT_WORST;
    bool joint = d <= MOST_JOINT && r->set[0].rows > 1;
    *p = (predictor){ .dim = d };
    p->mean =
        hl_calloc(r->ctx, hl_size_add((joint ? d * d : 0) + 3 * d, copies * (d + m->context + 1)), sizeof *p->mean);
    if (!p->mean)
        return HL_ERR_NOMEM;
    p->precision = p->mean + d;
    p->row = p->precision + d;
    p->copy = p->row + d;
    p->context = p->copy + copies * d;
    p->logp = p->context + copies * m->context;
    p->factor = joint ? p->logp + copies : NULL;
    for (size_t i = 0; i < d; i++) {
        const hl_report_column *c = &r->density.column[r->by_column[i]];
        p->mean[i] = c->mean[0];
        p->precision[i] = 1 / fmax(c->deviation[0] * c->deviation[0], 1e-300);
    }
    if (!joint)
        return HL_OK;
    double n = (double)r->set[0].rows;
    for (size_t i = 0; i < d; i++)
        for (size_t k = 0; k <= i; k++) {
            double scale =
                r->density.column[r->by_column[i]].deviation[0] * r->density.column[r->by_column[k]].deviation[0];
            p->factor[i * d + k] = r->density.correlation[0][i * d + k] * scale * (i == k ? 1 : n / (n + (double)d));
        }
    hl_cholesky(d, p->factor, 1e-300);
    for (size_t i = 0; i < d; i++) {
        memset(p->row, 0, d * sizeof *p->row);
        p->row[i] = 1;
        hl_solve_lower(d, p->factor, d, p->row);
        p->precision[i] = 0;
        for (size_t k = 0; k < d; k++)
            p->precision[i] += p->row[k] * p->row[k];
    }
    return HL_OK;
}

/* row becomes P (x - mean): x_i less row_i / P_ii is what the other columns let expect of column i. */
static void predict(predictor *p)
{
    for (size_t i = 0; i < p->dim; i++)
        p->row[i] = p->x[i] - p->mean[i];
    if (p->factor) {
        hl_solve_lower(p->dim, p->factor, p->dim, p->row);
        hl_solve_lower_transposed(p->dim, p->factor, p->dim, p->row);
        return;
    }
    for (size_t i = 0; i < p->dim; i++)
        p->row[i] *= p->precision[i];
}

/* The columns whose values are the most unexpected, and the one along which log p rises fastest. */
static size_t candidates(const predictor *p, const double *slope, size_t *column)
{
    size_t count = 0;
    for (size_t i = 0; i < p->dim; i++) {
        double at = fabs(p->row[i]) / sqrt(p->precision[i]);
        size_t place = count;
        if (isnan(at))
            continue;
        while (place && fabs(p->row[column[place - 1]]) / sqrt(p->precision[column[place - 1]]) < at)
            place--;
        if (place == CANDIDATES)
            continue;
        count += count < CANDIDATES;
        memmove(column + place + 1, column + place, (count - place - 1) * sizeof *column);
        column[place] = i;
    }
    size_t steepest = 0;
    for (size_t i = 0; i < p->dim; i++)
        steepest = fabs(slope[i]) > fabs(slope[steepest]) ? i : steepest;
    for (size_t k = 0; k < count; k++)
        if (column[k] == steepest)
            return count;
    column[count] = steepest;
    return count + 1;
}

static void add_cause(hl_report_row *row, size_t column, double gain, double expected)
{
    size_t place = row->causes;
    while (place && row->gain[place - 1] < gain)
        place--;
    if (place == HL_REPORT_CAUSES)
        return;
    row->causes += row->causes < HL_REPORT_CAUSES;
    for (size_t k = row->causes - 1; k > place; k--) {
        row->column[k] = row->column[k - 1];
        row->gain[k] = row->gain[k - 1];
        row->expected[k] = row->expected[k - 1];
    }
    row->column[place] = column;
    row->gain[place] = gain;
    row->expected[place] = expected;
}

/* Replace one value at a time of row `at` by what is expected of it, and by the column's mean. The copies begin at copy `first`; how many there are
 * is returned. */
static size_t replace_values(const hl_density *m, predictor *p, size_t at, size_t first, const double *context,
                             const double *slope)
{
    predict(p);
    p->columns[at] = candidates(p, slope, p->column[at]);
    for (size_t k = 0; k < 2 * p->columns[at]; k++) {
        size_t i = p->column[at][k / 2];
        double *copy = p->copy + (first + k) * p->dim;
        memcpy(copy, p->x, p->dim * sizeof *copy);
        copy[i] = k % 2 ? p->mean[i] : p->x[i] - p->row[i] / p->precision[i];
        memcpy(p->context + (first + k) * m->context, context, m->context * sizeof *context);
    }
    return 2 * p->columns[at];
}

/* What log p gains by that. */
static void find_causes(const predictor *p, size_t at, size_t first, const double *slope, hl_report_row *row)
{
    for (size_t k = 0; k < p->columns[at]; k++) {
        size_t best = first + 2 * k, column = p->column[at][k];
        best += isnan(p->logp[best]) || p->logp[best + 1] > p->logp[best];
        double gain = p->logp[best] - row->logp;
        if (gain > 0.1)
            add_cause(row, column, gain, p->copy[best * p->dim + column]);
    }
    for (size_t k = 0; k < row->causes; k++)
        row->slope[k] = slope[row->column[k]];
}

/* All rows in one call: a panel of rows costs as much as one of them. */
static hl_status explain_rows(hl_density *m, predictor *p, const hl_report_set *data, size_t rows, const size_t *at,
                              const double *slope, hl_report_row *row)
{
    size_t first[HL_REPORT_WORST + 1] = { 0 };
    for (size_t k = 0; k < rows; k++) {
        row[k] = (hl_report_row){ .row = data->number[at[k]], .logp = data->logp[at[k]] };
        p->x = data->x + at[k] * m->dim;
        first[k + 1] = first[k] + replace_values(m, p, k, first[k], data->c + at[k] * m->context, slope + k * m->dim);
    }
    hl_status status = hl_density_logp(m, first[rows], p->copy, m->context ? p->context : NULL, p->logp);
    if (status == HL_STOPPED || status == HL_ERR_NOMEM)
        return status;
    for (size_t k = 0; k < rows; k++)
        find_causes(p, k, first[k], slope + k * m->dim, &row[k]);
    return HL_OK;
}

/* d log p / dx of rows, times the deviations of the columns; 0 where it cannot be had, and of rows beyond SLOPES. */
static hl_status find_slopes(hl_density *m, const hl_report *r, size_t rows, const size_t *at, double *slope)
{
    const hl_report_set *data = &r->set[0];
    rows = rows < SLOPES ? rows : SLOPES;
    double *x = hl_alloc(r->ctx, hl_size_mul(rows * (m->dim + m->context) + rows + 1, sizeof *x));
    if (!x)
        return HL_ERR_NOMEM;
    double *c = x + rows * m->dim, *logp = c + rows * m->context;
    for (size_t k = 0; k < rows; k++) {
        memcpy(x + k * m->dim, data->x + at[k] * m->dim, m->dim * sizeof *x);
        memcpy(c + k * m->context, data->c + at[k] * m->context, m->context * sizeof *c);
    }
    hl_status status = rows ? hl_density_logp_gradient(m, rows, x, m->context ? c : NULL, logp, slope, NULL) : HL_OK;
    for (size_t i = 0; i < rows * m->dim; i++) {
        double scaled = slope[i] * r->density.column[r->by_column[i % m->dim]].deviation[0];
        slope[i] = status == HL_OK && isfinite(scaled) ? scaled : 0;
    }
    hl_free(r->ctx, x);
    return status == HL_STOPPED || status == HL_ERR_NOMEM ? status : HL_OK;
}

hl_status hl_density_study_rows(hl_density *m, hl_report *r)
{
    const hl_report_set *data = &r->set[0];
    hl_density_report *d = &r->density;
    hl_report_row *row = hl_report_room(r, HL_REPORT_WORST, sizeof *row);
    size_t at[HL_REPORT_WORST + 1];
    if (!row)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < data->rows; i++) { /* the lowest, in order */
        size_t place = d->worst;
        while (place && data->logp[i] < data->logp[at[place - 1]])
            place--;
        if (place == HL_REPORT_WORST)
            continue;
        d->worst += d->worst < HL_REPORT_WORST;
        memmove(at + place + 1, at + place, (d->worst - place - 1) * sizeof *at);
        at[place] = i;
    }
    predictor p;
    double *slope = hl_calloc(r->ctx, hl_size_mul(d->worst + 1, m->dim), sizeof *slope);
    hl_status status = make_predictor(m, r, &p);
    if (status == HL_OK)
        status = slope ? find_slopes(m, r, d->worst, at, slope) : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = explain_rows(m, &p, data, d->worst, at, slope, row);
    hl_free(r->ctx, p.mean);
    hl_free(r->ctx, slope);
    d->row = row;
    return status;
}

/* ---- the solver ---- */

/* The rows that it is tried on: data, or else draws. */
static const hl_report_set *solver_set(const hl_report *r)
{
    return r->set[0].rows ? &r->set[0] : &r->set[1];
}

static void summarise(const double *logp, size_t rows, hl_density_report *d)
{
    for (size_t k = 0; k < HL_REPORT_TOLERANCES; k++) {
        hl_report_tolerance *t = &d->tolerance[k];
        for (size_t i = 0; i < rows; i++) {
            double change = fabs(logp[k * rows + i] - logp[(HL_REPORT_TOLERANCES - 1) * rows + i]);
            t->logp += logp[k * rows + i] / (double)rows;
            t->change += change / (double)rows;
            t->largest = fmax(t->largest, change);
        }
    }
    d->tolerances = HL_REPORT_TOLERANCES;
}

/* log p of the flow with tolerances from 1e-2 to 1e-6. */
static hl_status try_tolerances(hl_density *m, const hl_report_set *set, size_t rows, double *logp, hl_report *r)
{
    hl_status status = HL_OK;
    double rtol = 1e-2;
    for (size_t k = 0; k < HL_REPORT_TOLERANCES && status == HL_OK; k++, rtol /= 10) {
        hl_flow_solver solver = r->solver;
        hl_report_tolerance *t = &r->density.tolerance[k];
        solver.method = r->method;
        solver.rtol = solver.atol = t->rtol = rtol;
        status = hl_density_set_solver(m, &solver);
        hl_flow_reset(m->flow);
        if (status == HL_OK)
            hl_density_logp(m, rows, set->x, m->context ? set->c : NULL, logp + k * rows);
        if (status == HL_OK)
            status = hl_check_stop(r->ctx);
        t->evaluations = (double)hl_flow_report(m->flow).forward.f / (double)rows;
    }
    if (status == HL_OK)
        summarise(logp, rows, &r->density);
    return status;
}

/* Evaluations of single rows with the model's own solver. */
static hl_status count_evaluations(hl_density *m, const hl_report_set *set, hl_report *r)
{
    size_t rows = set->rows < COUNTED_ROWS ? set->rows : COUNTED_ROWS;
    double *count = hl_report_room(r, rows, sizeof *count), logp;
    if (!count)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < rows; i++) {
        size_t row = i * set->rows / rows;
        hl_flow_reset(m->flow);
        hl_density_member_logp(m, 0, 1, set->x + row * m->dim, m->context ? set->c + row * m->context : NULL, &logp);
        count[i] = (double)hl_flow_report(m->flow).forward.f;
    }
    hl_sort(count, rows);
    r->density.evaluations = count;
    r->density.evaluation_rows = rows;
    return hl_check_stop(r->ctx);
}

hl_status hl_density_study_solver(hl_density *m, hl_report *r)
{
    const hl_report_set *set = solver_set(r);
    size_t rows = set->rows < SOLVER_ROWS ? set->rows : SOLVER_ROWS;
    if (!m->flow || !hl_flow_is_continuous(m->flow->kind->name) || !rows)
        return HL_OK;
    double *logp = hl_alloc(r->ctx, rows * HL_REPORT_TOLERANCES * sizeof *logp);
    hl_status status = logp ? try_tolerances(m, set, rows, logp, r) : HL_ERR_NOMEM;
    hl_flow_solver own = r->solver;
    own.method = r->method;
    hl_status restored = hl_density_set_solver(m, &own);
    m->accuracy = r->accuracy;
    hl_free(r->ctx, logp);
    status = status == HL_OK ? restored : status;
    return status == HL_OK ? count_evaluations(m, set, r) : status;
}
