/* judge.c - observations and models, time by time.
 *
 * Energy distances are squares of a norm of P - Q, so that for a group k of a share w of all observations
 *   moved_k = |P_k - P_all|^2 = (1 - w)^2 |P_k - P_others|^2,
 * which two samples without a common row estimate without bias. A model that stands still at P_all misses all of it:
 * sum_k |P_k - model_k|^2 / sum_k moved_k = 1, and one that follows the data nothing. Simulations that stay where they start miss
 * all of sum_k |P_k - P_0|^2. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/linear.h"
#include "hollow/judge.h"
#include "sde/residuals.h"
#include "sde/weak_tests.h"

enum {
    STREAM_SPLIT = 20,
    STREAM_PICK = 21,
    LEAST_ROWS = 20,
    FEW = 10,
    NEAR_DIM = 5,
    LEAST_DRAWS = 1000,
    MOST_PATH = 1 << 24
};
/* Limits of the verdict. */
static const double stationary = 0.01, density_misses = 0.1, simulations_miss = 0.25, most_unexplained = 0.1,
                    most_speed = 0.5, widest_band = 0.25, most_difference = 0.25, most_escaped = 0.05;
/* Of tests: the effect from which on it matters, and how many standard errors it must be away from chance. */
static const double limits[HL_RESIDUAL_TESTS][2] = { { 0.15, 4 }, { 0.12, 4 }, { 0.15, 4 }, { 0.12, 4 },
                                                     { 0.15, 5 }, { 0.1, 5 },  { 1, 5 } };

/* Of tests of means. These limits were set beforehand; the variance floor and the Gaussians of weak_tests.c were changed after results on the
 * equations that docs/sde_verdicts.md lists as calibration. */
static const double means_limits[HL_WEAK_TESTS][2] = { { 0.15, 5 }, { 0.15, 5 }, { 0.15, 5 }, { 0.15, 5 } };

typedef struct group {
    hl_judge_group seen;
    size_t first, count; /* of `order` */
    size_t *pick;        /* seen.rows of these */
} group;

struct hl_judge {
    hl_context *ctx;
    hl_judge_options options;
    size_t dim, rows, groups, trajectories;
    double *t, *x, *mean, *deviation; /* observations; their columns' */
    size_t *trajectory;               /* [rows]; nothing if the observations are not paired */
    bool paired;
    size_t *order, *picks; /* rows by time; the groups' own */
    group *group;
    double *columns;        /* [groups][2][dim] Wasserstein distances */
    double *a, *b, *sorted; /* two samples; two columns */
    double *change;         /* [rows] d log p/dt */
    double *path;           /* [paths][steps + 1][dim] simulations */
    double spread;          /* twice the mean distance of two observations */
    hl_sde *sde;            /* with which the observations were compared */
    double interval;        /* of a path's steps */
    size_t *whole, wholes;  /* paths that stay finite, in order */
    bool lost;              /* too few do */
    double speed;           /* the share of the speed along trajectories that the drift leaves */
    hl_residuals residuals;
    hl_weak_tests weak;
    double regression[2]; /* differences from the regression: of f, of g */
    double band;          /* half of the bands over the size of f or g; NaN without bands */
};

/* ---- distances ---- */

static double gap(size_t dim, const double *a, const double *b)
{
    double square = 0;
    for (size_t i = 0; i < dim; i++)
        square += (a[i] - b[i]) * (a[i] - b[i]);
    return sqrt(square);
}

static double mean_inside(size_t dim, size_t rows, const double *a)
{
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < i; j++)
            sum += gap(dim, a + i * dim, a + j * dim);
    return 2 * sum / ((double)rows * (double)(rows - 1));
}

double hl_energy_distance(size_t dim, size_t a_rows, const double *a, size_t b_rows, const double *b)
{
    if (a_rows < 2 || b_rows < 2 || !a || !b)
        return NAN;
    double sum = 0;
    for (size_t i = 0; i < a_rows; i++)
        for (size_t j = 0; j < b_rows; j++)
            sum += gap(dim, a + i * dim, b + j * dim);
    return 2 * sum / ((double)a_rows * (double)b_rows) - mean_inside(dim, a_rows, a) - mean_inside(dim, b_rows, b);
}

double hl_wasserstein_distance(size_t a_rows, double *a, size_t b_rows, double *b)
{
    if (a_rows < 1 || b_rows < 1 || !a || !b)
        return NAN;
    hl_sort(a, a_rows);
    hl_sort(b, b_rows);
    double sum = 0, at = fmin(a[0], b[0]);
    for (size_t i = 0, j = 0; i < a_rows || j < b_rows;) {
        double next = j == b_rows || (i < a_rows && a[i] <= b[j]) ? a[i] : b[j];
        sum += (next - at) * fabs((double)i / (double)a_rows - (double)j / (double)b_rows);
        at = next;
        while (i < a_rows && a[i] == at)
            i++;
        while (j < b_rows && b[j] == at)
            j++;
    }
    return sum;
}

/* ---- groups ---- */

static hl_status make_arrays(hl_judge *j)
{
    hl_context *ctx = j->ctx;
    size_t d = j->dim, rows = j->options.rows, paths = rows;
    j->t = hl_calloc(ctx, j->rows, sizeof *j->t);
    j->x = hl_calloc(ctx, hl_size_mul(j->rows, d), sizeof *j->x);
    j->trajectory = hl_calloc(ctx, j->rows, sizeof *j->trajectory);
    j->mean = hl_calloc(ctx, d, 2 * sizeof *j->mean);
    j->order = hl_calloc(ctx, j->rows, sizeof *j->order);
    j->picks = hl_calloc(ctx, hl_size_mul(j->options.groups + 2, rows), sizeof *j->picks);
    j->group = hl_calloc(ctx, j->options.groups + 1, sizeof *j->group);
    j->columns = hl_calloc(ctx, hl_size_mul(j->options.groups + 1, d), 2 * sizeof *j->columns);
    j->a = hl_calloc(ctx, hl_size_mul(rows, d), sizeof *j->a);
    j->b = hl_calloc(ctx, hl_size_mul(rows, d), sizeof *j->b);
    j->sorted = hl_calloc(ctx, rows, 2 * sizeof *j->sorted);
    j->change = hl_calloc(ctx, rows, sizeof *j->change);
    j->path = hl_calloc(ctx, hl_size_mul(hl_size_mul(paths, j->options.steps + 1), d), sizeof *j->path);
    j->whole = hl_calloc(ctx, paths, sizeof *j->whole);
    if (!j->whole || !j->t || !j->x || !j->trajectory || !j->mean || !j->order || !j->picks || !j->group ||
        !j->columns || !j->a || !j->b || !j->sorted || !j->change || !j->path)
        return HL_ERR_NOMEM;
    j->deviation = j->mean + d;
    return HL_OK;
}

static hl_status take_data(hl_judge *j, const hl_sde_data *data)
{
    size_t d = j->dim;
    memcpy(j->t, data->t, j->rows * sizeof *j->t);
    memcpy(j->x, data->x, j->rows * d * sizeof *j->x);
    if (data->trajectory)
        memcpy(j->trajectory, data->trajectory, j->rows * sizeof *j->trajectory);
    j->paired = data->trajectory;
    for (size_t r = 0; r < j->rows; r++) {
        j->trajectories += !data->trajectory || r == 0 || data->trajectory[r] != data->trajectory[r - 1];
        if (!isfinite(j->t[r]))
            return hl_fail_at(j->ctx, HL_ERR_NOT_FINITE, hl_at(r, HL_NOWHERE), "the time is not finite");
    }
    for (size_t i = 0; i < d; i++) {
        for (size_t r = 0; r < j->rows; r++)
            if (!isfinite(j->x[r * d + i]))
                return hl_fail_at(j->ctx, HL_ERR_NOT_FINITE, hl_at(r, i), "not finite");
        hl_sde_column_scale(j->rows, d, i, j->x, &j->mean[i], &j->deviation[i]);
        if (!(j->deviation[i] > 0))
            j->deviation[i] = 1;
    }
    return HL_OK;
}

/* Rows by time, by merging: no row moves past another of the same time. */
static hl_status sort_rows(hl_judge *j)
{
    size_t n = j->rows, *from = j->order, *to = hl_calloc(j->ctx, n, sizeof *to), *own = to;
    if (!to)
        return HL_ERR_NOMEM;
    for (size_t r = 0; r < n; r++)
        from[r] = r;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t start = 0; start < n; start += 2 * width) {
            size_t middle = start + width < n ? start + width : n, end = middle + width < n ? middle + width : n;
            for (size_t l = start, r = middle, k = start; k < end; k++)
                to[k] = l < middle && (r == end || j->t[from[l]] <= j->t[from[r]]) ? from[l++] : from[r++];
        }
        size_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != j->order)
        memcpy(j->order, from, n * sizeof *from);
    hl_free(j->ctx, own);
    return HL_OK;
}

/* `count` rows of order[first..first + all) to pick, without putting back: Floyd's way would forget the order, this keeps it. */
static void pick_rows(const hl_judge *j, uint64_t number, size_t first, size_t all, size_t count, size_t *pick)
{
    for (size_t k = 0, left = count; k < all && left; k++)
        if (hl_random_uniform(j->options.seed, STREAM_PICK + number, k) * (double)(all - k) < (double)left) {
            pick[count - left] = j->order[first + k];
            left--;
        }
}

/* Stretches of about equally many rows; rows of one time stay together. */
static void make_groups(hl_judge *j)
{
    size_t most = j->options.groups, wanted = j->rows / LEAST_ROWS, distinct = 1;
    for (size_t k = 1; k < j->rows; k++)
        distinct += j->t[j->order[k]] > j->t[j->order[k - 1]];
    if (wanted < 2)
        wanted = 2;
    if (most > wanted)
        most = wanted;
    bool each = distinct <= most;
    for (size_t start = 0, end; start < j->rows; start = end) {
        size_t share = each ? 1 : (j->rows - start) / (j->groups < most ? most - j->groups : 1);
        end = start + (share ? share : 1);
        while (end < j->rows && !(j->t[j->order[end]] > j->t[j->order[end - 1]]))
            end++;
        if (j->groups + 1 >= most && !each)
            end = j->rows;
        group *g = &j->group[j->groups];
        *g = (group){ .first = start, .count = end - start, .pick = j->picks + j->groups * j->options.rows };
        g->seen = (hl_judge_group){ .t_first = j->t[j->order[start]],
                                    .t_last = j->t[j->order[end - 1]],
                                    .rows = g->count < j->options.rows ? g->count : j->options.rows,
                                    .density = NAN,
                                    .simulated = NAN,
                                    .residual = NAN,
                                    .density_columns = j->columns + 2 * j->groups * j->dim,
                                    .simulated_columns = j->columns + (2 * j->groups + 1) * j->dim };
        pick_rows(j, 2 * j->groups + 1, start, g->count, g->seen.rows, g->pick);
        j->groups++;
    }
}

/* Rows of the data, standardised. */
static void load(const hl_judge *j, size_t count, const size_t *rows, double *to)
{
    for (size_t k = 0; k < count * j->dim; k++) {
        size_t i = k % j->dim;
        to[k] = (j->x[rows[k / j->dim] * j->dim + i] - j->mean[i]) / j->deviation[i];
    }
}

/* Rows that are not of group g: those before and after it, in shares. */
static size_t load_others(const hl_judge *j, const group *g, size_t number, double *to)
{
    size_t after = g->first + g->count, others = j->rows - g->count, *pick = j->picks + j->groups * j->options.rows;
    size_t count = others < j->options.rows ? others : j->options.rows;
    if (!others)
        return 0;
    size_t before = (size_t)((double)count * (double)g->first / (double)others + 0.5);
    before = before > g->first ? g->first : before;
    size_t rest = count - before > j->rows - after ? j->rows - after : count - before;
    pick_rows(j, 2 * number + 2, 0, g->first, before, pick);
    pick_rows(j, 2 * number + 2, after, j->rows - after, rest, pick + before);
    load(j, before + rest, pick, to);
    return before + rest;
}

/* The n rows in a to two halves in b, at random: what alternates in the file must not tell them apart. */
static void split(hl_judge *j, size_t number, size_t n, size_t half)
{
    size_t d = j->dim, low = 0, high = half;
    for (size_t r = 0; r < n; r++) {
        double u = hl_random_uniform(j->options.seed, STREAM_SPLIT, number * j->options.rows + r);
        bool first = low < half && u * (double)(n - r) < (double)(half - low);
        memcpy(j->b + (first ? low++ : high++) * d, j->a + r * d, d * sizeof *j->a);
    }
}

/* How the observations move, and what chance does. */
static void measure_data(hl_judge *j)
{
    size_t d = j->dim;
    for (size_t k = 0; k < j->groups; k++) {
        group *g = &j->group[k];
        size_t n = g->seen.rows, half = n / 2;
        load(j, n, g->pick, j->a);
        size_t others = load_others(j, g, k, j->b);
        double left = 1 - (double)g->count / (double)j->rows;
        g->seen.moved = others ? left * left * hl_energy_distance(d, n, j->a, others, j->b) : 0;
        load(j, j->group[0].seen.rows, j->group[0].pick, j->b);
        g->seen.travelled = k > 0 ? hl_energy_distance(d, n, j->a, j->group[0].seen.rows, j->b) : 0;
        split(j, k, n, half);
        g->seen.noise = hl_energy_distance(d, half, j->b, n - half, j->b + half * d);
    }
    size_t all = j->rows < j->options.rows ? j->rows : j->options.rows, *pick = j->picks + j->groups * j->options.rows;
    pick_rows(j, 0, 0, j->rows, all, pick);
    load(j, all, pick, j->a);
    j->spread = 2 * mean_inside(d, all, j->a);
}

hl_status hl_judge_create(hl_context *ctx, size_t dim, const hl_sde_data *data, const hl_judge_options *options,
                          hl_judge **out)
{
    static const hl_judge_options defaults;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!data || !out || dim < 1 || !data->t || !data->x || data->rows < 2)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_judge_create: at least two rows of t and x, and a result, are needed");
    *out = NULL;
    hl_judge *j = hl_calloc(ctx, 1, sizeof *j);
    if (!j)
        return HL_ERR_NOMEM;
    j->ctx = ctx;
    j->dim = dim;
    j->rows = data->rows;
    j->options = options ? *options : defaults;
    j->options.groups = j->options.groups ? j->options.groups : 20;
    j->options.rows = j->options.rows ? j->options.rows : 400;
    for (size_t steps = 400; !j->options.steps; steps /= 2) /* paths of many columns take coarser steps than memory */
        if (steps <= 50 || hl_size_mul(j->options.rows * steps, dim) <= MOST_PATH)
            j->options.steps = steps;
    hl_status status = make_arrays(j);
    if (status == HL_OK)
        status = take_data(j, data);
    if (status == HL_OK)
        status = sort_rows(j);
    if (status != HL_OK) {
        hl_judge_free(j);
        return status;
    }
    make_groups(j);
    measure_data(j);
    *out = j;
    return HL_OK;
}

void hl_judge_free(hl_judge *j)
{
    if (!j)
        return;
    void *const blocks[] = { j->trajectory, j->t, j->x, j->mean,   j->order,  j->picks, j->group,
                             j->columns,    j->a, j->b, j->sorted, j->change, j->path,  j->whole };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(j->ctx, blocks[i]);
    hl_free(j->ctx, j);
}

/* ---- models ---- */

/* Paths from observations of the first group, each from its own time, over all the time there is. */
static hl_status simulate(hl_judge *j, hl_sde *sde)
{
    size_t d = j->dim, paths = j->options.rows;
    const group *g = &j->group[0];
    double *start = hl_calloc(j->ctx, paths, (d + 1) * sizeof *start), *t = start + (start ? paths * d : 0);
    hl_noise_system system;
    hl_simulator *simulator = NULL;
    hl_status status = start ? hl_sde_system(sde, &system) : HL_ERR_NOMEM;
    j->interval = (j->group[j->groups - 1].seen.t_last - g->seen.t_first) / (double)j->options.steps;
    for (size_t p = 0; p < paths && status == HL_OK; p++) {
        size_t row = g->pick[p % g->seen.rows];
        memcpy(start + p * d, j->x + row * d, d * sizeof *start);
        t[p] = j->t[row];
    }
    if (status == HL_OK)
        status = hl_simulator_create(
            j->ctx, &system, &(hl_simulator_options){ .method = "euler", .seed = j->options.seed, .escapes = 1 },
            &simulator);
    if (status == HL_OK && j->interval > 0)
        status = hl_simulator_run(simulator, paths, 0, t, j->interval, j->options.steps, start, j->path);
    j->wholes = 0;
    for (size_t p = 0; p < paths && status == HL_OK; p++)
        if (isfinite(start[p * d])) /* a path that escapes is NaN to its end */
            j->whole[j->wholes++] = p;
    j->lost = (double)(paths - j->wholes) > most_escaped * (double)paths;
    hl_simulator_free(simulator);
    hl_free(j->ctx, start);
    return status;
}

/* Path p at a time, between its steps along a line. */
static void look_up(const hl_judge *j, size_t p, double t, double *to)
{
    size_t d = j->dim, last = j->options.steps, row = j->group[0].pick[p % j->group[0].seen.rows];
    double at = j->interval > 0 ? (t - j->t[row]) / j->interval : 0;
    at = at < 0 ? 0 : at > (double)last ? (double)last : at;
    size_t step = (size_t)at < last ? (size_t)at : last - 1;
    const double *from = j->path + (p * (last + 1) + step) * d;
    for (size_t i = 0; i < d; i++)
        to[i] = from[i] + (at - (double)step) * (from[d + i] - from[i]);
}

/* The sample in b, of the user's units, against the group's rows: standardises b. */
static double compare(hl_judge *j, const group *g, double *columns)
{
    size_t d = j->dim, n = g->seen.rows;
    for (size_t i = 0; i < d; i++) {
        for (size_t r = 0; r < n; r++) {
            j->sorted[r] = j->x[g->pick[r] * d + i];
            j->sorted[n + r] = j->b[r * d + i];
        }
        columns[i] = hl_wasserstein_distance(n, j->sorted, n, j->sorted + n);
    }
    for (size_t k = 0; k < n * d; k++)
        j->b[k] = (j->b[k] - j->mean[k % d]) / j->deviation[k % d];
    load(j, n, g->pick, j->a);
    return hl_energy_distance(d, n, j->a, n, j->b);
}

hl_status hl_judge_rows(hl_judge *j, size_t k, hl_judge_source source, double *x)
{
    if (!j)
        return HL_ERR_INVALID;
    if (k >= j->groups || !x || (source != HL_JUDGE_DATA && !j->sde))
        return hl_fail(j->ctx, HL_ERR_INVALID, "hl_judge_rows: no such group, or the result or the model is NULL");
    const group *g = &j->group[k];
    size_t d = j->dim, n = g->seen.rows;
    for (size_t r = 0; r < n; r++) {
        j->sorted[r] = j->t[g->pick[r]];
        if (source == HL_JUDGE_DATA)
            memcpy(x + r * d, j->x + g->pick[r] * d, d * sizeof *x);
        else if (source == HL_JUDGE_SIMULATED)
            look_up(j, j->lost ? r : j->whole[r % j->wholes], j->t[g->pick[r]], x + r * d);
    }
    if (source != HL_JUDGE_DENSITY)
        return HL_OK;
    return hl_sde_sample(j->sde, n, j->sorted, j->options.seed, k * j->options.rows, x);
}

/* The mean of v_r k_rs v_s over pairs of rows of x, k a Gaussian as wide as that of training: v averaged, squared, without what is
 * each row's own. */
static double over_neighbours(size_t dim, size_t rows, const double *x, const double *v)
{
    double sum = 0;
    for (size_t r = 0; r < rows; r++)
        for (size_t s = 0; s < r; s++) {
            double away = gap(dim, x + r * dim, x + s * dim);
            sum += v[r] * v[s] * exp(-2 * away * away / (double)dim);
        }
    return rows < 2 ? 0 : 2 * sum / ((double)rows * (double)(rows - 1));
}

static hl_status compare_group(hl_judge *j, size_t k)
{
    group *g = &j->group[k];
    size_t d = j->dim, n = g->seen.rows;
    double *columns = j->columns + 2 * k * d, *residual = j->sorted + n, *change = j->change;
    hl_status status = hl_judge_rows(j, k, HL_JUDGE_DATA, j->b); /* leaves the times in sorted */
    if (status == HL_OK)
        status = hl_sde_eval(j->sde, n, j->sorted, j->b, &(hl_sde_values){ .residual = residual, .change = change });
    g->seen.residual = g->seen.change = 0;
    for (size_t r = 0; r < n; r++) {
        g->seen.residual += fabs(residual[r]) / (double)n;
        g->seen.change += fabs(change[r]) / (double)n;
    }
    if (status == HL_OK)
        status = hl_judge_rows(j, k, HL_JUDGE_DENSITY, j->b);
    if (status == HL_OK) /* again there: what is averaged has no derivatives of p at draws from p alone */
        status = hl_sde_eval(j->sde, n, j->sorted, j->b, &(hl_sde_values){ .residual = residual, .change = change });
    if (status != HL_OK)
        return status;
    for (size_t i = 0; i < n * d; i++)
        j->a[i] = (j->b[i] - j->mean[i % d]) / j->deviation[i % d];
    g->seen.averaged[0] = over_neighbours(d, n, j->a, residual);
    g->seen.averaged[1] = over_neighbours(d, n, j->a, change);
    g->seen.density = compare(j, g, columns);
    status = hl_judge_rows(j, k, HL_JUDGE_SIMULATED, j->b);
    g->seen.simulated = j->lost ? INFINITY : compare(j, g, columns + d);
    for (size_t i = 0; i < d && j->lost; i++)
        columns[d + i] = INFINITY;
    return status;
}

hl_status hl_judge_model(hl_judge *j, hl_sde *sde)
{
    if (!j)
        return HL_ERR_INVALID;
    if (!sde || hl_sde_describe(sde).dim != j->dim)
        return hl_fail(j->ctx, HL_ERR_INVALID,
                       "hl_judge_model: the model is NULL or has other dimensions than the data");
    hl_status status = simulate(j, sde);
    j->sde = sde;
    for (size_t k = 0; k < j->groups && status == HL_OK; k++) {
        status = compare_group(j, k);
        if (status == HL_OK)
            status = hl_check_stop(j->ctx);
    }
    const hl_sde_data data = { j->rows, j->t, j->x, j->paired ? j->trajectory : NULL };
    if (status == HL_OK)
        status = hl_sde_steps_missed(sde, &data, &j->speed);
    if (status == HL_OK)
        status = hl_sde_residuals(sde, &data, j->options.seed, &j->residuals);
    if (status == HL_OK)
        status = hl_sde_weak_tests(sde, &data, j->options.seed, means_limits[0][0], &j->weak);
    if (status == HL_OK)
        status = hl_sde_compare_regression(sde, &data, j->options.seed, j->regression);
    if (status == HL_OK)
        status = hl_sde_band_width(sde, &data, &j->band);
    if (status != HL_OK)
        j->sde = NULL;
    return status;
}

/* ---- results ---- */

size_t hl_judge_groups(const hl_judge *j)
{
    return j ? j->groups : 0;
}

hl_judge_group hl_judge_get(const hl_judge *j, size_t k)
{
    return j && k < j->groups ? j->group[k].seen : (hl_judge_group){ 0 };
}

/* Sums over the groups; those of few rows say nothing. */
typedef struct sums {
    double groups, rows, moved, travelled, square, density, simulated, residual, change, averaged[2];
} sums;

static sums add_up(const hl_judge *j)
{
    sums s = { 0 };
    for (size_t k = 0; k < j->groups; k++) {
        const hl_judge_group *g = &j->group[k].seen;
        if (g->rows < 4)
            continue;
        s.groups++;
        s.rows += (double)g->rows;
        s.moved += g->moved;
        s.square += g->noise * g->noise;
        s.density += g->density;
        s.residual += g->residual;
        s.change += g->change;
        for (int i = 0; i < 2; i++)
            s.averaged[i] += g->averaged[i];
        s.travelled += g->travelled;
        s.simulated += k > 0 ? g->simulated : 0; /* they start in the first */
    }
    return s;
}

static double share(double missed, double moved)
{
    return missed < 0 ? 0 : missed / moved;
}

const char *hl_answer_name(hl_answer answer)
{
    static const char *const names[] = { "consistent", "contradicted", "not determined" };
    return (size_t)answer < sizeof names / sizeof *names ? names[answer] : NULL;
}

const char *hl_residual_name(hl_residual test)
{
    static const char *const names[HL_RESIDUAL_TESTS] = { "drift",           "diffusion",   "drift trend",
                                                          "diffusion trend", "correlation", "autocorrelation",
                                                          "kurtosis" };
    return (size_t)test < HL_RESIDUAL_TESTS ? names[test] : NULL;
}

const char *hl_weak_test_name(hl_weak_test test)
{
    static const char *const names[HL_WEAK_TESTS] = { "means: drift", "means: diffusion", "means: trend",
                                                      "means: correlation" };
    return (size_t)test < HL_WEAK_TESTS ? names[test] : NULL;
}

/* Does a density tell drift from diffusion? In each column one of them must be known. */
static bool all_known(const hl_sde *sde)
{
    for (size_t i = 0; i < sde->spec.dim; i++)
        if (!sde->known || (!sde->known[i].drift && !sde->known[i].diffusion))
            return false;
    return true;
}

/* What the data do not say: for the method of the model, or for matching if there is none. */
static uint32_t undetermined(const hl_judge *j, const hl_verdict *v)
{
    bool few = v->trajectories<FEW, moves = v->movement> stationary && v->movement > 3 * v->noise;
    uint32_t reasons = few ? HL_REASON_FEW_TRAJECTORIES : moves ? 0 : HL_REASON_STATIONARY_DATA;
    if (j->sde && j->sde->method == HL_SDE_FOKKER_PLANCK && j->sde->spec.time && !all_known(j->sde))
        reasons |= HL_REASON_TIME_DEPENDENT;
    if (j->sde && j->sde->method == HL_SDE_PSEUDO_LIKELIHOOD && v->steps == 0)
        reasons |= HL_REASON_FEW_STEPS;
    if (j->sde && (j->sde->method == HL_SDE_PSEUDO_LIKELIHOOD || isfinite(j->band)) && v->band > widest_band)
        reasons |= HL_REASON_WIDE_BAND;
    if (j->sde && !j->sde->simple && !v->steps && !v->means && isnan(v->regression[0]) && !all_known(j->sde))
        reasons |= HL_REASON_FEW_STEPS; /* nothing was there to test networks with */
    if (v->regression[0] > most_difference || v->regression[1] > most_difference)
        reasons |= HL_REASON_REGRESSION;
    return reasons;
}

/* Reasons that contradict the model. `by_chance` is the fraction of the movement that may be missed by chance; `left` is the distance of
 * simulations from the data, in units of the movement. */
static uint32_t contradictions(const hl_judge *j, hl_verdict *v, double by_chance, double left)
{
    bool matching = j->sde->method == HL_SDE_FOKKER_PLANCK;
    uint32_t reasons = 0;
    if (!(v->reasons & (HL_REASON_FEW_TRAJECTORIES | HL_REASON_STATIONARY_DATA))) {
        if (matching && !(v->density - by_chance <= density_misses))
            reasons |= HL_REASON_DENSITY;
        if (!(v->simulated - by_chance <= simulations_miss)) /* by_chance: |P_k - P_0|^2 is larger yet */
            reasons |= HL_REASON_SIMULATIONS;
        if (matching && !j->sde->simple &&
            v->unexplained > most_unexplained) /* a regression did not see this density */
            reasons |= HL_REASON_UNEXPLAINED;
    } else if (!(v->reasons & HL_REASON_FEW_TRAJECTORIES) && left > stationary + 3 * v->noise)
        reasons |= HL_REASON_SIMULATIONS; /* the density stays where it is, simulations do not */
    if (matching && v->speed > most_speed)
        reasons |= HL_REASON_SPEED;
    for (size_t k = 0; k < HL_RESIDUAL_TESTS && v->steps; k++) {
        v->test[k].failed = v->test[k].effect > limits[k][0] && v->test[k].sigma > limits[k][1];
        if (v->test[k].failed)
            reasons |= HL_REASON_RESIDUALS;
    }
    for (size_t k = 0; k < HL_WEAK_TESTS && v->means; k++) {
        v->means_test[k].failed =
            v->means_test[k].effect > means_limits[k][0] && v->means_test[k].sigma > means_limits[k][1] &&
            !(k == HL_WEAK_CORRELATION && v->steps); /* steps show the correlation of the noise more exactly */
        if (v->means_test[k].failed)
            reasons |= HL_REASON_MEANS;
    }
    return reasons;
}

hl_verdict hl_judge_verdict(const hl_judge *j)
{
    hl_verdict v = { 0 };
    if (!j)
        return v;
    sums s = add_up(j);
    double chance = 0.5 * sqrt(s.square / s.groups); /* of whole groups: half of that between halves */
    v.trajectories = j->trajectories;
    v.movement = s.moved / s.groups / j->spread;
    v.noise = chance / j->spread;
    v.density = share(s.density, s.moved);
    v.simulated = share(s.simulated, s.travelled);
    v.residual = s.residual / s.groups;
    v.speed = j->sde ? j->speed : NAN;
    v.band = v.regression[0] = v.regression[1] = v.means_band[0] = v.means_band[1] = NAN;
    if (j->dim > NEAR_DIM)
        v.unexplained = s.residual / s.change;
    else /* of few pairs the sums are noise */
        v.unexplained = s.rows >= LEAST_DRAWS && s.averaged[1] > 0 ? sqrt(fmax(s.averaged[0], 0) / s.averaged[1]) : NAN;
    if (j->sde) {
        v.steps = j->residuals.steps;
        v.steps_simulated = j->residuals.simulated;
        v.band = isfinite(j->band) ? j->band : j->residuals.band;
        memcpy(v.regression, j->regression, sizeof v.regression);
        memcpy(v.test, j->residuals.test, sizeof v.test);
        v.means = j->weak.conditions;
        memcpy(v.means_band, j->weak.band, sizeof v.means_band);
        memcpy(v.means_test, j->weak.test, sizeof v.means_test);
    }
    v.reasons = undetermined(j, &v);
    const uint32_t still = HL_REASON_FEW_TRAJECTORIES | HL_REASON_STATIONARY_DATA;
    double left = s.groups > 1 ? s.simulated / (s.groups - 1) / j->spread : NAN;
    uint32_t against = j->sde ? contradictions(j, &v, 2 * chance * s.groups / s.moved, left) : 0;
    if (j->sde && v.reasons & still)
        v.density = v.simulated = NAN;
    bool stepwise = j->sde && (j->sde->method == HL_SDE_PSEUDO_LIKELIHOOD ||
                               (j->sde->simple && v.steps && !(v.band > widest_band)));
    if (stepwise) /* steps do not need a density that moves */
        v.reasons &= ~still;
    if (j->sde && j->sde->simple && v.steps) /* what steps leave open is the width of the bands */
        v.reasons &= ~(uint32_t)HL_REASON_TIME_DEPENDENT;
    bool tested = v.steps || (isfinite(left) && !(v.reasons & HL_REASON_FEW_TRAJECTORIES));
    uint32_t open = j->sde && all_known(j->sde) && tested ? v.reasons & ~still : v.reasons;
    v.answer = against ? HL_CONTRADICTED : open ? HL_NOT_DETERMINED : HL_CONSISTENT;
    v.reasons |= against;
    return v;
}
