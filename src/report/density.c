/* density.c - a density model compared with data: the numbers of hl_report_density.
 *
 * Data are n rows of a table, draws are D rows of the model, with the contexts of the data in turn. If the model is right, both have one
 * distribution, and so have any functions of them: single columns, log p, distances of rows. Each comparison is one of two samples, so
 * that it holds for a sum of members as for a flow. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linear.h"
#include "report/compare.h"
#include "report/report.h"

enum { DRAWS = 2000, ROWS = 4000, DISTANCE_ROWS = 400, NEAREST_ROWS = 300, NEAREST_AMONG = 1000, BASE_ROWS = 128 };
enum { COPY_LEAST = 200, COPY_ROWS = 700 }; /* of the test for memorised rows */
enum { STREAM_PICK = 60 };
static const double NEAR = 0.01; /* share of the rows that a memorised draw is nearer than */

size_t hl_report_pick(size_t total, size_t rows, uint64_t seed, size_t *index)
{
    rows = rows ? rows : ROWS;
    if (total <= rows || !index) {
        for (size_t i = 0; index && i < total; i++)
            index[i] = i;
        return total < rows ? total : rows;
    }
    for (size_t i = 0; i < rows; i++) {
        double from = (double)i * ((double)total / (double)rows), to = (double)(i + 1) * ((double)total / (double)rows);
        size_t first = (size_t)ceil(from), end = (size_t)ceil(to);
        end = i + 1 == rows || end > total ? total : end;
        index[i] = first + (size_t)(hl_random_bits(seed, STREAM_PICK, i) % (end - first));
    }
    return rows;
}

hl_report_mean hl_report_mean_of(size_t rows, const double *values)
{
    double sum = 0, square = 0, n = (double)rows;
    for (size_t r = 0; r < rows; r++)
        sum += values[r];
    for (size_t r = 0; r < rows; r++)
        square += (values[r] - sum / n) * (values[r] - sum / n);
    return rows ? (hl_report_mean){ sum / n, sqrt(square / n / n) } : (hl_report_mean){ NAN, NAN };
}

/* ---- data and draws ---- */

static hl_status make_set(hl_report *r, size_t rows, size_t dim, size_t context, hl_report_set *set)
{
    set->x = hl_report_room(r, hl_size_mul(rows, dim), sizeof *set->x);
    set->c = hl_report_room(r, hl_size_mul(rows, context), sizeof *set->c);
    set->logp = hl_report_room(r, rows, sizeof *set->logp);
    set->number = hl_report_room(r, rows, sizeof *set->number);
    set->rows = rows;
    return set->x && set->c && set->logp && set->number ? HL_OK : HL_ERR_NOMEM;
}

/* Statuses that end a report; others are failures of single rows, which are NaN. */
static bool ends(hl_status status)
{
    return status == HL_STOPPED || status == HL_ERR_NOMEM || status == HL_ERR_INVALID || status == HL_ERR_CALLBACK;
}

static bool all_finite(size_t count, const double *values)
{
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

/* Rows without log p leave the set; how many is returned. */
static size_t drop_failed(const hl_density *m, hl_report_set *set)
{
    size_t kept = 0, rows = set->rows, dim = m->dim, context = m->context;
    for (size_t r = 0; r < set->rows; r++) {
        if (isnan(set->logp[r]) || !all_finite(dim, set->x + r * dim) || !all_finite(context, set->c + r * context))
            continue;
        memmove(set->x + kept * dim, set->x + r * dim, dim * sizeof *set->x);
        memmove(set->c + kept * context, set->c + r * context, context * sizeof *set->c);
        set->logp[kept] = set->logp[r];
        set->number[kept++] = set->number[r];
    }
    set->rows = kept;
    return rows - kept;
}

static hl_status take_data(hl_density *m, const hl_report_rows *data, hl_report *r)
{
    hl_report_set *set = &r->set[0];
    hl_status status = make_set(r, data->rows, m->dim, m->context, set);
    if (status != HL_OK)
        return status;
    if (data->rows)
        memcpy(set->x, data->x, data->rows * m->dim * sizeof(double));
    if (data->rows && m->context)
        memcpy(set->c, data->context, data->rows * m->context * sizeof(double));
    for (size_t i = 0; i < data->rows; i++)
        set->number[i] = data->index ? data->index[i] : i;
    r->density.rows = data->rows;
    r->density.total = data->total ? data->total : data->rows;
    status = set->rows ? hl_density_logp(m, set->rows, set->x, m->context ? set->c : NULL, set->logp) : HL_OK;
    if (ends(status))
        return status;
    r->density.failed = drop_failed(m, set);
    return HL_OK;
}

/* Draws with the contexts of the data in turn; a model with context and no data has none. */
static hl_status take_draws(hl_density *m, size_t draws, uint64_t seed, hl_report *r)
{
    hl_report_set *data = &r->set[0], *set = &r->set[1];
    size_t bytes = m->context * sizeof(double);
    draws = m->context && !data->rows ? 0 : draws;
    hl_status status = make_set(r, draws, m->dim, m->context, set);
    for (size_t i = 0; i < draws && m->context && status == HL_OK; i++)
        memcpy(set->c + i * m->context, data->c + i % data->rows * m->context, bytes);
    if (status == HL_OK && draws)
        status = hl_density_draw(m, seed, draws, m->context ? set->c : NULL, set->x, set->logp);
    if (ends(status))
        return status;
    r->density.draws = draws;
    r->density.failed_draws = drop_failed(m, set);
    return HL_OK;
}

/* ---- columns ---- */

static void sort_column(const hl_report_set *set, size_t dim, size_t column, double *to, uint64_t *room)
{
    for (size_t r = 0; r < set->rows; r++)
        to[r] = set->x[r * dim + column];
    hl_sort_finite(set->rows, to, room);
}

static void describe(size_t which, size_t n, const double *sorted, hl_report_column *c)
{
    double sum = 0, square = 0;
    c->mean[which] = c->deviation[which] = c->least[which] = c->largest[which] = NAN;
    if (!n)
        return;
    for (size_t r = 0; r < n; r++)
        sum += sorted[r];
    c->mean[which] = sum / (double)n;
    for (size_t r = 0; r < n; r++)
        square += (sorted[r] - c->mean[which]) * (sorted[r] - c->mean[which]);
    c->deviation[which] = sqrt(square / (double)n);
    c->least[which] = sorted[0];
    c->largest[which] = sorted[n - 1];
}

/* Bins from the lowest to the highest value, but no farther than twice the middle 90 % beyond it: a few values far away would put all
 * others into one bin. */
static void choose_range(const double *sorted[2], const size_t n[2], hl_report_column *c)
{
    double low = INFINITY, high = -INFINITY, least = INFINITY, most = -INFINITY;
    for (size_t k = 0; k < 2; k++)
        if (n[k]) {
            low = fmin(low, hl_quantile(n[k], sorted[k], 0.05));
            high = fmax(high, hl_quantile(n[k], sorted[k], 0.95));
            least = fmin(least, sorted[k][0]);
            most = fmax(most, sorted[k][n[k] - 1]);
        }
    double reach = 2 * (high - low);
    c->low = fmax(least, low - reach);
    c->high = fmin(most, high + reach);
    if (!(c->high > c->low)) { /* one value, or none */
        double width = isfinite(least) && least != 0 ? fabs(least) * 0.5 : 1;
        c->low = (isfinite(least) ? least : 0) - width;
        c->high = (isfinite(most) ? most : 0) + width;
    }
}

static void fill_bins(const double *sorted[2], const size_t n[2], hl_report_column *c)
{
    choose_range(sorted, n, c);
    for (size_t k = 0; k < 2; k++)
        for (size_t r = 0; r < n[k]; r++) {
            double at = (sorted[k][r] - c->low) / (c->high - c->low) * HL_REPORT_BINS;
            size_t bin = at > 0 ? (size_t)fmin(at, HL_REPORT_BINS - 1) : 0;
            c->bin[k][bin] += 1 / (double)n[k];
        }
}

static double tied_share(size_t n, const double *sorted)
{
    size_t tied = 0;
    for (size_t r = 0; r < n; r++)
        tied += (r && sorted[r - 1] == sorted[r]) || (r + 1 < n && sorted[r + 1] == sorted[r]);
    return n ? (double)tied / (double)n : 0;
}

/* How a column's data lie among its draws. */
static void compare_column(const double *sorted[2], const size_t n[2], hl_report_column *c)
{
    size_t outside = 0;
    for (size_t k = 0; k < 2; k++)
        describe(k, n[k], sorted[k], c);
    fill_bins(sorted, n, c);
    c->tied = tied_share(n[0], sorted[0]);
    c->distance = c->p = c->outside = c->wasserstein = NAN;
    if (!n[0] || !n[1])
        return;
    c->distance = hl_ks_distance(n[0], sorted[0], n[1], sorted[1]);
    c->p = hl_ks_p(c->distance, (double)n[0], (double)n[1]);
    for (size_t r = 0; r < n[1]; r++)
        outside += sorted[1][r] < sorted[0][0] || sorted[1][r] > sorted[0][n[0] - 1];
    c->outside = (double)outside / (double)n[1];
    for (size_t k = 0; k < HL_REPORT_GRID; k++)
        c->level[k] =
            hl_share_below(n[0], sorted[0], hl_quantile(n[1], sorted[1], (double)(k + 1) / (HL_REPORT_GRID + 1)));
}

/* The integral of the distance of two distribution functions, of samples in rising order. */
static double wasserstein(const double *sorted[2], const size_t n[2])
{
    double sum = 0, last = fmin(sorted[0][0], sorted[1][0]);
    for (size_t i = 0, j = 0; i < n[0] || j < n[1];) {
        double value = i == n[0] ? sorted[1][j] : j == n[1] ? sorted[0][i] : fmin(sorted[0][i], sorted[1][j]);
        sum += fabs((double)i / (double)n[0] - (double)j / (double)n[1]) * (value - last);
        last = value;
        while (i < n[0] && sorted[0][i] <= value)
            i++;
        while (j < n[1] && sorted[1][j] <= value)
            j++;
    }
    return sum;
}

static int worst_first(const void *a, const void *b)
{
    const hl_report_column *p = a, *q = b;
    if (p->distance != q->distance && !isnan(p->distance) && !isnan(q->distance))
        return p->distance > q->distance ? -1 : 1;
    return p->column < q->column ? -1 : 1;
}

static hl_status compare_columns(hl_density *m, hl_report *r)
{
    const size_t n[2] = { r->set[0].rows, r->set[1].rows };
    double *room = hl_calloc(r->ctx, n[0] + n[1] + 2, sizeof *room);
    uint64_t *keys = hl_alloc(r->ctx, (2 * (n[0] + n[1]) + 1) * sizeof *keys);
    hl_report_column *column = hl_report_room(r, m->dim, sizeof *column);
    size_t *place = hl_report_room(r, m->dim, sizeof *place);
    if (!room || !keys || !column || !place) {
        hl_free(r->ctx, room);
        hl_free(r->ctx, keys);
        return HL_ERR_NOMEM;
    }
    const double *sorted[2] = { room, room + n[0] };
    for (size_t i = 0; i < m->dim; i++) {
        sort_column(&r->set[0], m->dim, i, room, keys);
        sort_column(&r->set[1], m->dim, i, room + n[0], keys);
        column[i].name = r->name[i];
        column[i].column = i;
        compare_column(sorted, n, &column[i]);
        if (n[0] && n[1])
            column[i].wasserstein = wasserstein(sorted, n);
    }
    qsort(column, m->dim, sizeof *column, worst_first);
    for (size_t i = 0; i < m->dim; i++)
        place[column[i].column] = i;
    r->density.column = column;
    r->density.columns = m->dim;
    r->by_column = place;
    hl_free(r->ctx, room);
    hl_free(r->ctx, keys);
    return HL_OK;
}

static hl_status correlate(hl_density *m, hl_report *r)
{
    size_t dim = m->dim;
    double *mean = hl_report_room(r, hl_size_mul(2, dim), sizeof *mean), *row = mean ? mean + dim : NULL;
    if (!mean)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < 2; k++) {
        const hl_report_set *set = &r->set[k];
        double *c = hl_report_room(r, hl_size_mul(dim, dim), sizeof *c);
        if (!c)
            return HL_ERR_NOMEM;
        r->density.correlation[k] = c;
        for (size_t i = 0; i < dim; i++)
            mean[i] = r->density.column[r->by_column[i]].mean[k];
        for (size_t s = 0; s < set->rows; s++) {
            for (size_t i = 0; i < dim; i++)
                row[i] = set->x[s * dim + i] - mean[i];
            for (size_t i = 0; i < dim; i++)
                for (size_t j = 0; j <= i; j++)
                    c[i * dim + j] += row[i] * row[j];
        }
        for (size_t i = 0; i < dim; i++)
            for (size_t j = 0; j < i; j++) {
                double scale = sqrt(c[i * dim + i] * c[j * dim + j]);
                c[j * dim + i] = c[i * dim + j] = scale > 0 ? fmin(fmax(c[i * dim + j] / scale, -1), 1) : 0;
            }
        for (size_t i = 0; i < dim; i++)
            c[i * dim + i] = 1;
    }
    return HL_OK;
}

/* ---- rows as a whole ---- */

/* Ranks of log p of the data among those of the draws. */
static hl_status rank_logp(hl_report *r)
{
    const hl_report_set *data = &r->set[0], *draws = &r->set[1];
    hl_density_report *d = &r->density;
    d->rank_distance = d->rank_p = d->band = d->unlikely = d->unseen = NAN;
    if (!data->rows || !draws->rows)
        return HL_OK;
    double *room = hl_alloc(r->ctx, (data->rows + draws->rows) * sizeof *room), *other = room + data->rows;
    if (!room)
        return HL_ERR_NOMEM;
    memcpy(room, data->logp, data->rows * sizeof *room);
    memcpy(other, draws->logp, draws->rows * sizeof *room);
    hl_sort(room, data->rows);
    hl_sort(other, draws->rows);
    d->rank_distance = hl_ks_distance(data->rows, room, draws->rows, other);
    d->rank_p = hl_ks_p(d->rank_distance, (double)data->rows, (double)draws->rows);
    d->band = hl_ks_band((double)data->rows, (double)draws->rows);
    d->unlikely = hl_share_below(data->rows, room, hl_quantile(draws->rows, other, 0.01));
    d->unseen = hl_share_below(data->rows, room, nextafter(other[0], -INFINITY));
    for (size_t k = 0; k < HL_REPORT_GRID; k++)
        d->rank[k] =
            hl_share_below(data->rows, room, hl_quantile(draws->rows, other, (double)(k + 1) / (HL_REPORT_GRID + 1)));
    hl_free(r->ctx, room);
    return HL_OK;
}

/* At most `most` rows of a set, evenly spaced, columns of x and of the context divided by the deviations of the data. */
static size_t standard_rows(hl_density *m, const hl_report *r, const hl_report_set *set, size_t most, double *to)
{
    size_t rows = set->rows < most ? set->rows : most, all = m->dim + m->context;
    for (size_t i = 0; i < rows; i++) {
        size_t row = i * set->rows / rows;
        for (size_t k = 0; k < all; k++) {
            double scale = k < m->dim ? r->density.column[r->by_column[k]].deviation[0] : m->column[k].deviation;
            double value = k < m->dim ? set->x[row * m->dim + k] : set->c[row * m->context + k - m->dim];
            to[i * all + k] = (value - m->column[k].mean) / (scale > 0 ? scale : m->column[k].deviation);
        }
    }
    return rows;
}

/* The distance of data and draws. With a context, draw i has that of row i: both are cut to the same contexts. */
static hl_status measure_distance(hl_density *m, uint64_t seed, hl_report *r)
{
    hl_report_set data = r->set[0], draws = r->set[1];
    size_t all = m->dim + m->context;
    bool paired = m->context && !r->density.failed && !r->density.failed_draws;
    if (paired) /* the first rows of both have the same contexts */
        data.rows = draws.rows = data.rows < draws.rows ? data.rows : draws.rows;
    size_t least = data.rows < draws.rows ? data.rows : draws.rows;
    size_t rows = least < DISTANCE_ROWS ? least : DISTANCE_ROWS;
    double *room = hl_alloc(r->ctx, hl_size_mul(2 * rows * all, sizeof *room));
    if (!room)
        return HL_ERR_NOMEM;
    standard_rows(m, r, &data, rows, room);
    standard_rows(m, r, &draws, rows, room + rows * all);
    hl_status status = hl_compare_energy(r->ctx, all, rows, room, paired, seed, &r->density.distance);
    hl_free(r->ctx, room);
    return status;
}

/* The share of the draws that are nearer to a row than 99 % of the rows are to theirs. */
static hl_status share_near(hl_report *r, size_t all, size_t among, const double *x, size_t rows, const double *y,
                            bool paired)
{
    size_t own = among < NEAREST_ROWS ? among : NEAREST_ROWS, near = 0;
    double *between = hl_alloc(r->ctx, (own + rows) * sizeof *between), *to = between + own;
    if (!between)
        return HL_ERR_NOMEM;
    hl_status status = hl_compare_nearest(r->ctx, all, own, x, among, x, true, between);
    if (status == HL_OK)
        status = hl_compare_nearest(r->ctx, all, rows, y, among, x, paired, to);
    if (status == HL_OK) {
        hl_sort(between, own);
        double least = hl_quantile(own, between, NEAR);
        for (size_t i = 0; i < rows; i++)
            near += to[i] < least;
        r->density.memorised = (double)near / (double)rows;
    }
    hl_free(r->ctx, between);
    return status;
}

/* With a context, draw i has that of row i: both are cut to the same contexts, and no draw is compared with its own row. */
static hl_status find_memorised(hl_density *m, uint64_t seed, hl_report *r)
{
    hl_density_report *d = &r->density;
    hl_report_set data = r->set[0], draws = r->set[1];
    size_t all = m->dim + m->context, least = data.rows < draws.rows ? data.rows : draws.rows;
    bool paired = m->context > 0;
    d->memorised = d->memorised_p = NAN;
    if (least < COPY_LEAST || (paired && (d->failed || d->failed_draws)))
        return HL_OK;
    if (paired)
        data.rows = draws.rows = least;
    size_t pool = least < COPY_ROWS ? least : COPY_ROWS, rows = least < NEAREST_ROWS ? least : NEAREST_ROWS;
    size_t among = paired ? rows : data.rows < NEAREST_AMONG ? data.rows : NEAREST_AMONG;
    size_t first = among > pool ? among : pool;
    double *x = hl_alloc(r->ctx, hl_size_mul((first + pool) * all, sizeof *x)), *y = x + first * all;
    if (!x)
        return HL_ERR_NOMEM;
    standard_rows(m, r, &data, among, x);
    standard_rows(m, r, &draws, rows, y);
    hl_status status = share_near(r, all, among, x, rows, y, paired);
    standard_rows(m, r, &data, pool, x);
    standard_rows(m, r, &draws, pool, x + pool * all);
    if (status == HL_OK)
        status = hl_compare_copies(r->ctx, all, pool, x, paired, seed, &d->memorised_p);
    hl_free(r->ctx, x);
    return status;
}

/* ---- the flow's base ---- */

static void compare_base(hl_report *r, size_t rows, size_t dim, const double *z, double *room)
{
    hl_density_report *d = &r->density;
    d->base_rows = rows;
    for (size_t i = 0; i < dim; i++) {
        double most = 0;
        for (size_t k = 0; k < rows; k++)
            room[k] = z[k * dim + i];
        hl_sort(room, rows);
        for (size_t k = 0; k < rows; k++) {
            double p = hl_normal_cdf(room[k]);
            most = fmax(most, fmax(fabs(p - (double)k / (double)rows), fabs(p - (double)(k + 1) / (double)rows)));
        }
        if (most > d->base_distance) {
            d->base_distance = most;
            d->base_column = i;
        }
    }
    d->base_p = fmin(1, (double)dim * hl_ks_p(d->base_distance, (double)rows, 0));
    for (size_t k = 0; k < rows; k++) {
        room[k] = 0;
        for (size_t i = 0; i < dim; i++)
            room[k] += z[k * dim + i] * z[k * dim + i];
    }
    hl_sort(room, rows);
    for (size_t k = 0; k < HL_REPORT_GRID; k++)
        d->base_radius[k] =
            hl_share_below(rows, room, hl_chi2_quantile((double)dim, (double)(k + 1) / (HL_REPORT_GRID + 1)));
}

static hl_status study_base(hl_density *m, hl_report *r)
{
    const hl_report_set *data = &r->set[0];
    size_t rows = data->rows < BASE_ROWS ? data->rows : BASE_ROWS, dim = m->dim, kept = 0;
    r->density.base_p = NAN;
    if (!m->flow || rows < 20)
        return HL_OK;
    double *x = hl_alloc(r->ctx, hl_size_mul(rows * (2 * dim + m->context + 1), sizeof *x));
    if (!x)
        return HL_ERR_NOMEM;
    double *z = x + rows * dim, *c = z + rows * dim, *room = c + rows * m->context;
    for (size_t i = 0; i < rows; i++) {
        size_t row = i * data->rows / rows;
        memcpy(x + i * dim, data->x + row * dim, dim * sizeof *x);
        memcpy(c + i * m->context, data->c + row * m->context, m->context * sizeof *x);
    }
    hl_density_standardise(m, rows, x, m->context ? c : NULL);
    hl_status status = hl_flow_forward(m->flow, rows, x, m->context ? c : NULL, z, NULL);
    for (size_t i = 0; i < rows && !ends(status); i++) {
        if (all_finite(dim, z + i * dim))
            memmove(z + kept++ * dim, z + i * dim, dim * sizeof *z);
    }
    if (!ends(status) && kept >= 20)
        compare_base(r, kept, dim, z, room);
    hl_free(r->ctx, x);
    return ends(status) ? status : HL_OK;
}

/* ---- the report ---- */

static hl_status describe_model(hl_density *m, hl_report *r)
{
    hl_density_report *d = &r->density;
    size_t all = m->dim + m->context;
    d->dim = m->dim;
    d->context = m->context;
    r->name = hl_report_room(r, all, sizeof *r->name);
    if (!r->name)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < all; i++) {
        char *copy = hl_report_room(r, strlen(m->column[i].name) + 1, 1);
        if (!copy)
            return HL_ERR_NOMEM;
        strcpy(copy, m->column[i].name);
        r->name[i] = copy;
    }
    r->members = hl_density_members(m);
    for (size_t i = 0; i < r->members; i++)
        r->member[i] = hl_density_get_member(m, i);
    for (size_t k = 0; k < m->mixtures; k++)
        d->parameters += m->mixture[k].mixture->parts * (1 + all + all * (all + 1) / 2) - 1;
    for (size_t i = 0; m->flow && i < m->flow->nets; i++)
        d->parameters += hl_net_size(m->flow->net[i]);
    r->flow_kind = m->flow ? m->flow->kind->name : NULL;
    r->solver = m->solver;
    memcpy(r->method, m->method, sizeof r->method);
    r->accuracy = m->accuracy;
    hl_text note = hl_text_start(r->note, sizeof r->note);
    hl_text_add(&note, "%s", m->note);
    return HL_OK;
}

static hl_status study(hl_density *m, const hl_report_rows *data, size_t draws, uint64_t seed, hl_report *r)
{
    hl_status status = describe_model(m, r);
    if (status == HL_OK)
        status = take_data(m, data, r);
    if (status == HL_OK)
        status = take_draws(m, draws, seed, r);
    if (status == HL_OK)
        status = compare_columns(m, r);
    if (status == HL_OK)
        status = correlate(m, r);
    if (status == HL_OK)
        status = rank_logp(r);
    if (status == HL_OK)
        status = measure_distance(m, seed, r);
    if (status == HL_OK)
        status = find_memorised(m, seed, r);
    if (status == HL_OK)
        status = study_base(m, r);
    r->density.logp = hl_report_mean_of(r->set[0].rows, r->set[0].logp);
    r->density.draws_logp = hl_report_mean_of(r->set[1].rows, r->set[1].logp);
    if (status == HL_OK) {
        hl_density_find_far(m, r);
        status = hl_density_study_baselines(m, r);
    }
    if (status == HL_OK)
        status = hl_density_study_training(m, r);
    if (status == HL_OK)
        status = hl_density_study_rows(m, r);
    return status == HL_OK ? hl_density_study_solver(m, r) : status;
}

hl_status hl_report_density(hl_density *m, const hl_report_rows *data, const hl_report_options *options,
                            hl_report **out)
{
    static const hl_report_options defaults;
    static const hl_report_rows none;
    if (!m)
        return HL_ERR_INVALID;
    if (!out)
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_report_density: the result is NULL");
    *out = NULL;
    options = options ? options : &defaults;
    data = data ? data : &none;
    if (data->rows && (!data->x || (m->context && !data->context)))
        return hl_fail(m->ctx, HL_ERR_INVALID, "hl_report_density: rows without their values or their context");
    hl_report *r = NULL;
    hl_status status = hl_report_create(m->ctx, HL_REPORT_OF_DENSITY, options, &r);
    if (status == HL_OK)
        status = study(m, data, options->draws ? options->draws : DRAWS, options->seed, r);
    if (status != HL_OK) {
        hl_report_free(r);
        return status;
    }
    hl_density_judge(r);
    *out = r;
    return HL_OK;
}

const hl_density_report *hl_report_density_numbers(const hl_report *r)
{
    return r && r->kind == HL_REPORT_OF_DENSITY ? &r->density : NULL;
}
