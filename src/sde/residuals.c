/* residuals.c - do the steps along trajectories agree with a model? Its residuals are tested.
 *
 * A short step is an Euler step, and z = (x' - x - f h) / (g sqrt h) is standard normal and independent if the model is right. For longer
 * steps the model is simulated from x over h, and z is the normal quantile of the rank of x' among the ends: standard normal as well,
 * however long the step and whatever the distribution. Some of the simulated ends are ranked in the same way, as a reference for
 * what the model itself does.
 *
 * Where z depends on x or t, the model is wrong by a measurable amount. Least squares of z on functions phi of x, times h over
 * the deviation s of the step, gives the drift that is missing, and of z^2 - 1 on phi the missing share of g^2, where z is less what the missing
 * drift explains of it: over long steps a small error of f moves x by more than the noise does. Of functions of t
 * what is constant is left out, as it is no change with time. From the squares
 * of both the noise of the coefficients is subtracted, so that effects are errors relative to f and g, without bias. */
#include <math.h>
#include <string.h>

#include "base/linear.h"
#include "sde/regress.h"
#include "sde/residuals.h"

enum {
    LEAST_STEPS = 100,
    MOST_STEPS = 20000, /* of Euler's */
    MOST_RUNS = 1000,   /* steps that are simulated */
    RANKED = 16,        /* ends that observations are ranked among */
    REFERENCES = 4,     /* ends that are ranked, too */
    ENDS = RANKED + REFERENCES,
    MOST_SUBSTEPS = 16,
    MOST_FUNCTIONS = 40,
    STREAM_RUN = 40,
    STREAM_RANK = 41
};
static const double short_step = 0.1; /* in deviations of the noise: Euler's error of a step */
static const double quiet =
    0.15; /* of the largest noise of a column: moments of less say nothing of the model's errors */
static const double most_turned = 0.5, most_missed = 0.5; /* see follows() */
static const double far = 3; /* deviations of a column: beyond, functions of x are constant */

typedef struct residuals {
    hl_sde *sde;
    const hl_sde_data *data;
    uint64_t seed;
    size_t dim, count, substeps; /* substeps 0: Euler steps */
    size_t *row;                 /* [count] where a step begins */
    double *f, *g, *end;         /* [count][dim]; end: f at the end of the step */
    double *z, *s;               /* [count][dim] */
    double *shift;               /* [count][dim] of z, by the drift that is missing */
    double *reference;           /* [count][REFERENCES][dim] z of simulated ends */
    bool *noisy;                 /* [dim]: the column has noise */
    bool *loud;                  /* [dim]: and not much less than others */
    double first, last;          /* times */
    double longest;              /* step; longer ones are gaps */
    hl_residual_test still;      /* of columns without noise; no effect: they do as the data do */
    size_t tested;               /* steps of these */
    hl_residuals *out;
} residuals;

static double step_of(const residuals *r, size_t k)
{
    return r->data->t[r->row[k] + 1] - r->data->t[r->row[k]];
}

/* ---- steps ---- */

/* Evenly spaced steps, each with the next one if there is one, for the correlation of neighbours. */
static void pick(residuals *r, size_t all, size_t most)
{
    size_t seen = 0;
    bool next = false;
    r->count = 0;
    for (size_t row = 0; row < r->data->rows && r->count < most; row++) {
        if (!hl_sde_step_begins(r->data, row, r->longest)) {
            next = false;
            continue;
        }
        bool due = all <= most || seen * (most / 2) / all >= (r->count + 1) / 2;
        seen++;
        if (due || next)
            r->row[r->count++] = row;
        next = due && !next;
    }
}

static hl_status evaluate(const residuals *r, size_t shift, double *f, double *g)
{
    enum { CHUNK = 256 };
    double t[CHUNK], *x = hl_calloc(r->sde->ctx, CHUNK * r->dim, sizeof *x);
    hl_status status = x ? HL_OK : HL_ERR_NOMEM;
    for (size_t start = 0; start < r->count && status == HL_OK; start += CHUNK) {
        size_t n = r->count - start < CHUNK ? r->count - start : CHUNK;
        for (size_t k = 0; k < n; k++) {
            size_t row = r->row[start + k] + shift;
            t[k] = r->data->t[row];
            memcpy(x + k * r->dim, r->data->x + row * r->dim, r->dim * sizeof *x);
        }
        hl_sde_values v = { .f = f + start * r->dim, .g = g ? g + start * r->dim : NULL };
        status = hl_sde_eval(r->sde, n, t, x, &v);
    }
    hl_free(r->sde->ctx, x);
    return status;
}

/* Where the model's noise is correlated: C^-1 z, which is independent if the model is right. */
static void decorrelate(const residuals *r, double *z)
{
    const hl_sde_simple *s = r->sde->simple;
    size_t d = r->dim;
    for (size_t i = 0; i < d && hl_sde_simple_correlated(s); i++) {
        double sum = z[i];
        for (size_t j = 0; j < i; j++)
            sum -= isfinite(z[j]) ? s->factor[i * d + j] * z[j] : 0;
        z[i] = sum / s->factor[i * d + i];
    }
}

/* Euler's error of a step, in deviations of its noise: half the change of f over it. What correlated columns share is taken out as it is of the
 * residuals, of which the error becomes a larger part. */
static double step_error(residuals *r)
{
    double sum = 0, count = 0;
    for (size_t k = 0; k < r->count; k++) {
        double *error = r->z + k * r->dim;
        for (size_t i = 0; i < r->dim; i++) {
            size_t at = k * r->dim + i;
            error[i] = r->g[at] > 0 ? 0.5 * (r->end[at] - r->f[at]) * sqrt(step_of(r, k)) / r->g[at] : NAN;
        }
        decorrelate(r, error);
        for (size_t i = 0; i < r->dim; i++)
            if (isfinite(error[i])) {
                sum += fmin(error[i] * error[i], 100);
                count++;
            }
    }
    return count > 0 ? sqrt(sum / count) : 0;
}

static void euler(residuals *r)
{
    for (size_t k = 0; k < r->count; k++) {
        const double *x = r->data->x + r->row[k] * r->dim, h = step_of(r, k);
        for (size_t i = 0; i < r->dim; i++) {
            size_t at = k * r->dim + i;
            r->s[at] = r->g[at] * sqrt(h);
            r->z[at] = r->s[at] > 0 ? (x[r->dim + i] - x[i] - r->f[at] * h) / r->s[at] : NAN;
        }
        decorrelate(r, r->z + k * r->dim);
        for (size_t i = 0; i < r->dim && hl_sde_simple_correlated(r->sde->simple); i++)
            r->s[k * r->dim + i] *= r->sde->simple->factor[i * r->dim + i]; /* of the noise that is its own */
    }
}

/* ---- simulated steps ---- */

/* The standard normal quantile (Acklam), to 1e-9. */
static double quantile(double p)
{
    static const double a[] = { -3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                                1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00 };
    static const double b[] = { -5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                                6.680131188771972e+01, -1.328068155288572e+01 };
    static const double c[] = { -7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                                -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00 };
    static const double d[] = { 7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                                3.754408661907416e+00 };
    double q = p < 0.5 ? p : 1 - p, sign = p < 0.5 ? 1 : -1;
    if (q < 0.02425) {
        double u = sqrt(-2 * log(q));
        return sign * (((((c[0] * u + c[1]) * u + c[2]) * u + c[3]) * u + c[4]) * u + c[5]) /
               ((((d[0] * u + d[1]) * u + d[2]) * u + d[3]) * u + 1);
    }
    double u = q - 0.5, v = u * u;
    return sign * (((((a[0] * v + a[1]) * v + a[2]) * v + a[3]) * v + a[4]) * v + a[5]) * u /
           (((((b[0] * v + b[1]) * v + b[2]) * v + b[3]) * v + b[4]) * v + 1);
}

/* The quantile of a value's rank among RANKED ends of column i; within a rank the place is random. */
static double rank_score(const residuals *r, const double *ends, size_t i, double value, uint64_t number)
{
    size_t below = 0;
    for (size_t p = 0; p < RANKED; p++)
        below += ends[p * r->dim + i] < value;
    return quantile(((double)below + hl_random_uniform(r->seed, STREAM_RANK, number)) / (RANKED + 1));
}

static double spread(const residuals *r, const double *ends, size_t i)
{
    double mean = 0, square = 0;
    for (size_t p = 0; p < RANKED; p++)
        mean += ends[p * r->dim + i] / RANKED;
    for (size_t p = 0; p < RANKED; p++)
        square += (ends[p * r->dim + i] - mean) * (ends[p * r->dim + i] - mean) / (RANKED - 1);
    return sqrt(square);
}

/* The ends of a step: x (ENDS x dim) from its begin. t, f and g are scratch. */
static hl_status run_step(const residuals *r, size_t k, double *t, double *x, double *f, double *g)
{
    size_t d = r->dim, row = r->row[k];
    double h = step_of(r, k) / (double)r->substeps;
    hl_status status = HL_OK;
    for (size_t p = 0; p < ENDS; p++) {
        t[p] = r->data->t[row];
        memcpy(x + p * d, r->data->x + row * d, d * sizeof *x);
    }
    for (size_t n = 0; n < r->substeps && status == HL_OK; n++) {
        status = hl_sde_eval(r->sde, ENDS, t, x, &(hl_sde_values){ .f = f, .g = g });
        for (size_t at = 0; at < ENDS * d; at++) {
            uint64_t number = (k * r->substeps + n) * ENDS * d + at;
            x[at] += f[at] * h;
            f[at] = hl_random_normal(r->seed, STREAM_RUN, number);
        }
        for (size_t p = 0; p < ENDS && r->sde->simple; p++)
            hl_noise_mix(d, r->sde->simple->factor, f + p * d);
        for (size_t at = 0; at < ENDS * d; at++)
            x[at] += g[at] * sqrt(h) * f[at];
        for (size_t p = 0; p < ENDS; p++)
            t[p] += h;
    }
    return status;
}

static hl_status simulate(residuals *r)
{
    size_t d = r->dim;
    double *t = hl_calloc(r->sde->ctx, ENDS, (1 + 3 * d) * sizeof *t);
    hl_status status = t ? HL_OK : HL_ERR_NOMEM;
    double *x = t + (t ? ENDS : 0), *f = x + (t ? ENDS * d : 0), *g = f + (t ? ENDS * d : 0);
    for (size_t k = 0; k < r->count && status == HL_OK; k++) {
        status = run_step(r, k, t, x, f, g);
        const double *end = r->data->x + (r->row[k] + 1) * d;
        for (size_t i = 0; i < d && status == HL_OK; i++) {
            uint64_t number = (k * d + i) * (REFERENCES + 1);
            r->s[k * d + i] = spread(r, x, i);
            r->z[k * d + i] = rank_score(r, x, i, end[i], number);
            for (size_t p = 0; p < REFERENCES; p++)
                r->reference[(k * REFERENCES + p) * d + i] =
                    rank_score(r, x, i, x[(RANKED + p) * d + i], number + 1 + p);
        }
        if (status == HL_OK)
            status = hl_check_stop(r->sde->ctx);
    }
    hl_free(r->sde->ctx, t);
    return status;
}

/* ---- functions of x and of t ---- */

static double clipped(const residuals *r, const double *x, size_t i)
{
    return fmax(-far, fmin(far, (x[i] - r->sde->mean[i]) / r->sde->deviation[i]));
}

/* Polynomials: cubic and products of two up to 3 columns, squares up to 10, else linear as far as there is room. */
static size_t functions_of_x(const residuals *r, size_t row, double *phi)
{
    const double *x = r->data->x + row * r->dim;
    size_t n = 0, d = r->dim;
    phi[n++] = 1;
    for (size_t i = 0; i < d && n < MOST_FUNCTIONS; i++) {
        double u = clipped(r, x, i);
        phi[n++] = u;
        if (d <= 10)
            phi[n++] = u * u - 1;
        if (d <= 3)
            phi[n++] = u * u * u - 3 * u;
        for (size_t j = 0; j < i && d <= 3; j++)
            phi[n++] = u * clipped(r, x, j);
    }
    return n;
}

static size_t functions_of_t(const residuals *r, size_t row, double *phi)
{
    double u = 2 * (r->data->t[row] - r->first) / (r->last - r->first) - 1;
    phi[0] = 1;
    phi[1] = u;
    phi[2] = u * u - 1. / 3;
    return 3;
}

typedef size_t functions_fn(const residuals *r, size_t row, double *phi);

/* ---- least squares ---- */

typedef struct fit {
    size_t n;                                                         /* functions */
    double normal[MOST_FUNCTIONS * MOST_FUNCTIONS];                   /* X'X, then its factor */
    double metric[MOST_FUNCTIONS * MOST_FUNCTIONS];                   /* of the effect */
    double beta[MOST_FUNCTIONS], squares, scale, wald, effect, noise; /* squares: of y; noise: of the effect's square */
} fit;

/* beta, Wald's statistic, and the mean square of what beta means in the metric, less its noise. */
static void solve(fit *q, double rows)
{
    double right[MOST_FUNCTIONS], column[MOST_FUNCTIONS];
    size_t n = q->n;
    memcpy(right, q->beta, n * sizeof *right);
    for (size_t a = 0; a < n; a++)
        q->normal[a * n + a] *= 1 + 1e-9;
    hl_cholesky(n, q->normal, 1e-300);
    hl_solve_lower(n, q->normal, n, q->beta);
    hl_solve_lower_transposed(n, q->normal, n, q->beta);
    q->wald = q->effect = q->noise = 0;
    double explained = 0;
    for (size_t a = 0; a < n; a++)
        explained += right[a] * q->beta[a];
    double variance = fmax(q->squares - explained, 1e-300) / fmax(rows - (double)n, 1);
    q->wald = explained / variance;
    for (size_t a = 0; a < n; a++) {
        for (size_t b = 0; b < n; b++)
            column[b] = b <= a ? q->metric[a * n + b] : q->metric[b * n + a];
        for (size_t b = 0; b < n; b++)
            q->effect += q->beta[a] * column[b] * q->beta[b];
        hl_solve_lower(n, q->normal, n, column); /* the trace of metric (X'X)^-1 */
        hl_solve_lower_transposed(n, q->normal, n, column);
        q->noise += variance * column[a];
    }
}

/* Leave the first function, the constant, out: the others become orthogonal to it, so that a constant error is none of theirs. */
static void leave_constant(fit *q)
{
    double along[MOST_FUNCTIONS], measure[MOST_FUNCTIONS], right = q->beta[0];
    size_t n = q->n, m = n - 1;
    for (size_t a = n; a-- > 0;) {
        along[a] = q->normal[a * n] / fmax(q->normal[0], 1e-300);
        measure[a] = q->metric[a * n];
    }
    double constant = q->normal[0];
    for (size_t a = 1; a < n; a++) {
        for (size_t b = 1; b <= a; b++) {
            size_t to = (a - 1) * m + b - 1, from = a * n + b;
            q->normal[to] = q->normal[from] - along[a] * along[b] * constant;
            q->metric[to] =
                q->metric[from] - along[a] * measure[b] - along[b] * measure[a] + along[a] * along[b] * measure[0];
        }
        q->beta[a - 1] = q->beta[a] - along[a] * right;
    }
    q->squares -= right * right / fmax(constant, 1e-300);
    q->n = m;
}

static void add_row(fit *q, size_t n, const double *x, double y, const double *m)
{
    q->n = n;
    q->squares += y * y;
    for (size_t a = 0; a < n; a++) {
        q->beta[a] += x[a] * y;
        for (size_t b = 0; b <= a; b++) {
            q->normal[a * n + b] += x[a] * x[b];
            q->metric[a * n + b] += m[a] * m[b];
        }
    }
}

/* What the drift that column i misses explains of z. */
static void set_shift(const residuals *r, size_t i, const fit *q)
{
    double phi[MOST_FUNCTIONS];
    for (size_t k = 0; k < r->count; k++) {
        size_t at = k * r->dim + i;
        functions_of_x(r, r->row[k], phi);
        double shift = hl_dot(q->n, q->beta, phi) * step_of(r, k) / r->s[at];
        r->shift[at] = isfinite(shift) ? shift : 0;
    }
}

/* What functions of x or t say that drift (or diffusion) misses: an error relative to the size of f (or g), over all columns. */
static hl_status regress(const residuals *r, functions_fn *functions, bool drift, hl_residual_test *test, double *band)
{
    fit *q = hl_calloc(r->sde->ctx, 1, sizeof *q);
    double effect = 0, noise = 0, size = 0, wald = 0, freedom = 0, phi[MOST_FUNCTIONS], x[MOST_FUNCTIONS],
           m[MOST_FUNCTIONS];
    if (!q)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < r->dim; i++) {
        double unit = 1 / (r->sde->deviation[i] * sqrt((double)r->count)), rows = 0;
        if (!r->noisy[i])
            continue;
        memset(q, 0, sizeof *q);
        for (size_t k = 0; k < r->count; k++) {
            size_t at = k * r->dim + i, n = functions(r, r->row[k], phi);
            double z = r->z[at], weight = drift ? step_of(r, k) / r->s[at] : 1;
            double measure = drift ? unit : 0.5 * r->g[at] * unit; /* of g, half the share that is missing of g^2 */
            if (!isfinite(z) || !isfinite(weight))
                continue;
            for (size_t a = 0; a < n; a++) {
                x[a] = weight * phi[a];
                m[a] = measure * phi[a];
            }
            double own = z - r->shift[at];
            add_row(q, n, x, drift ? z : own * own - 1, m);
            rows++;
            size += pow((drift ? r->f[at] : r->g[at]) * unit, 2);
        }
        if (rows <= (double)(2 * q->n))
            continue;
        if (functions == functions_of_t) {
            leave_constant(q);
            rows--;
        }
        solve(q, rows);
        if (drift && functions == functions_of_x)
            set_shift(r, i, q);
        effect += q->effect;
        noise += q->noise;
        wald += q->wald;
        freedom += (double)q->n;
    }
    hl_free(r->sde->ctx, q);
    effect = fmax(effect - noise, 0);
    size = fmax(size, effect); /* a model without drift may miss all of it */
    if (size > 0 && freedom > 0) {
        test->effect = sqrt(effect / size);
        test->sigma = (wald - freedom) / sqrt(2 * freedom);
        if (band)
            *band = 1.645 * sqrt(noise / size); /* half of 90 % */
    }
    return HL_OK;
}

/* ---- moments of z ---- */

/* The mean of z_i z_j over the mean squares. `which` 0: of the data; 1..: of a reference. */
static double correlation(const residuals *r, size_t i, size_t j, size_t which)
{
    double product = 0, a = 0, b = 0;
    for (size_t k = 0; k < r->count; k++) {
        const double *z = which ? r->reference + (k * REFERENCES + which - 1) * r->dim : r->z + k * r->dim;
        if (!isfinite(z[i]) || !isfinite(z[j]))
            continue;
        product += z[i] * z[j];
        a += z[i] * z[i];
        b += z[j] * z[j];
    }
    return a > 0 && b > 0 ? product / sqrt(a * b) : 0;
}

static void test_correlation(const residuals *r, hl_residual_test *test)
{
    double noise = sqrt((1 + (r->substeps ? 1. / REFERENCES : 0)) / (double)r->count);
    for (size_t i = 0; i < r->dim; i++)
        for (size_t j = 0; j < i; j++) {
            if (!r->loud[i] || !r->loud[j])
                continue;
            double c = correlation(r, i, j, 0);
            for (size_t p = 1; r->substeps && p <= REFERENCES; p++)
                c -= correlation(r, i, j, p) / REFERENCES;
            test->effect = fmax(test->effect, fabs(c));
        }
    test->sigma = test->effect / noise;
}

/* Of neighbours in time, and the fourth moment. */
static void test_moments(const residuals *r, hl_residual_test *neighbours, hl_residual_test *tails)
{
    for (size_t i = 0; i < r->dim; i++) {
        double square = 0, fourth = 0, product = 0, count = 0, pairs = 0;
        if (!r->loud[i])
            continue;
        for (size_t k = 0; k < r->count; k++) {
            double z = r->z[k * r->dim + i];
            if (!isfinite(z))
                continue;
            square += z * z;
            fourth += z * z * z * z;
            count++;
            if (k + 1 < r->count && r->row[k + 1] == r->row[k] + 1 && isfinite(r->z[(k + 1) * r->dim + i])) {
                product += z * r->z[(k + 1) * r->dim + i];
                pairs++;
            }
        }
        if (!(square > 0))
            continue;
        double variance = square / count, c = pairs > 0 ? product / pairs / variance : 0;
        double excess = fourth / count / (variance * variance) - 3;
        if (fabs(c) > neighbours->effect)
            *neighbours = (hl_residual_test){ .effect = fabs(c), .sigma = fabs(c) * sqrt(pairs) };
        if (excess > tails->effect)
            *tails = (hl_residual_test){ .effect = excess, .sigma = excess * sqrt(count / 24) };
    }
}

/* ---- all of them ---- */

static hl_status make_arrays(residuals *r, size_t room)
{
    hl_context *ctx = r->sde->ctx;
    size_t wide = hl_size_mul(room, r->dim);
    r->row = hl_calloc(ctx, room, sizeof *r->row);
    r->f = hl_calloc(ctx, wide, 6 * sizeof *r->f);
    r->noisy = hl_calloc(ctx, r->dim, 2 * sizeof *r->noisy);
    r->reference = hl_calloc(ctx, hl_size_mul(MOST_RUNS * REFERENCES, r->dim), sizeof *r->reference);
    if (!r->row || !r->f || !r->noisy || !r->reference)
        return HL_ERR_NOMEM;
    r->loud = r->noisy + r->dim;
    r->g = r->f + wide;
    r->end = r->g + wide;
    r->z = r->end + wide;
    r->s = r->z + wide;
    r->shift = r->s + wide;
    return HL_OK;
}

/* Which columns have noise? The sign of g means nothing. */
static void find_noisy(residuals *r)
{
    for (size_t at = 0; at < r->count * r->dim; at++) {
        r->g[at] = fabs(r->g[at]);
        r->noisy[at % r->dim] = r->noisy[at % r->dim] || r->g[at] > 0;
    }
}

/* A column that has no noise goes where f takes it. Of the change over a step and f's, their difference is a small part unless
 * there is noise, or f is wrong. Where f changes much over a step nothing is said. False if f does not do as the data do. */
static bool follows(const residuals *r, size_t i, bool *said)
{
    double missed = 0, size = 0, turned = 0, length = 0;
    for (size_t k = 0; k < r->count; k++) {
        const double *x = r->data->x + r->row[k] * r->dim + i, h = step_of(r, k);
        double a = r->f[k * r->dim + i], b = r->end[k * r->dim + i], change = x[r->dim] - x[0];
        double moved = 0.5 * (a + b) * h;
        missed += (change - moved) * (change - moved);
        size += change * change + moved * moved;
        turned += (b - a) * (b - a);
        length += a * a + b * b;
    }
    *said = turned <= most_turned * length;
    return !(*said && missed > most_missed * size);
}

/* What columns without noise say: none of the steps' deviation is the model's. */
static void test_still(residuals *r)
{
    for (size_t i = 0; i < r->dim; i++) {
        bool said = false;
        if (r->noisy[i])
            continue;
        if (!follows(r, i, &said))
            r->still = (hl_residual_test){ .effect = 1, .sigma = sqrt((double)r->count) };
        if (said)
            r->tested = r->count;
    }
}

static hl_status score(residuals *r, size_t all)
{
    pick(r, all, MOST_STEPS);
    hl_status status = evaluate(r, 0, r->f, r->g);
    if (status == HL_OK)
        status = evaluate(r, 1, r->end, NULL);
    if (status != HL_OK)
        return status;
    find_noisy(r);
    test_still(r);
    double error = step_error(r);
    if (error <= short_step) {
        euler(r);
        return HL_OK;
    }
    r->substeps = error < short_step * MOST_SUBSTEPS ? (size_t)ceil(error / short_step) : MOST_SUBSTEPS;
    r->out->simulated = 1;
    pick(r, all, MOST_RUNS);
    status = evaluate(r, 0, r->f, r->g);
    if (status == HL_OK)
        find_noisy(r);
    return status == HL_OK ? simulate(r) : status; /* the references are correlated as the model says */
}

/* Steps of which a column with noise has a residual. */
static size_t count_tested(const residuals *r)
{
    size_t tested = 0;
    for (size_t k = 0; k < r->count; k++) {
        bool any = false;
        for (size_t i = 0; i < r->dim; i++)
            any = any || (r->noisy[i] && isfinite(r->z[k * r->dim + i]));
        tested += any;
    }
    return tested > r->tested ? tested : r->tested;
}

/* Which columns have noise that is not much less than that of others, relative to their deviations? */
static void find_loud(residuals *r)
{
    double most = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < r->dim; i++) {
            double square = 0;
            for (size_t k = 0; k < r->count; k++)
                square += pow(r->g[k * r->dim + i] / r->sde->deviation[i], 2);
            if (pass == 0)
                most = fmax(most, square);
            else
                r->loud[i] = r->noisy[i] && square >= quiet * quiet * most;
        }
}

static hl_status test_all(residuals *r)
{
    find_loud(r);
    hl_residual_test *t = r->out->test;
    r->out->steps = count_tested(r);
    hl_status status = regress(r, functions_of_x, true, &t[HL_RESIDUAL_DRIFT], &r->out->band);
    if (status == HL_OK)
        status = regress(r, functions_of_x, false, &t[HL_RESIDUAL_DIFFUSION], NULL);
    if (status == HL_OK)
        status = regress(r, functions_of_t, true, &t[HL_RESIDUAL_DRIFT_TREND], NULL);
    if (status == HL_OK)
        status = regress(r, functions_of_t, false, &t[HL_RESIDUAL_DIFFUSION_TREND], NULL);
    if (r->still.effect > 0)
        t[HL_RESIDUAL_DIFFUSION] = r->still;
    test_correlation(r, &t[HL_RESIDUAL_CORRELATION]);
    test_moments(r, &t[HL_RESIDUAL_AUTOCORRELATION], &t[HL_RESIDUAL_KURTOSIS]);
    return status;
}

hl_status hl_sde_residuals(hl_sde *sde, const hl_sde_data *data, uint64_t seed, hl_residuals *out)
{
    residuals r = { .sde = sde, .data = data, .seed = seed, .dim = sde->spec.dim, .out = out };
    size_t all = 0;
    *out = (hl_residuals){ .band = NAN };
    hl_status status = hl_sde_longest_step(sde->ctx, data, HL_SDE_GAP, &r.longest);
    if (status != HL_OK)
        return status;
    r.first = r.last = data->t[0];
    for (size_t row = 0; row < data->rows && data->trajectory; row++) {
        all += hl_sde_step_begins(data, row, r.longest);
        r.first = fmin(r.first, data->t[row]);
        r.last = fmax(r.last, data->t[row]);
    }
    if (all < LEAST_STEPS)
        return HL_OK;
    status = make_arrays(&r, all < MOST_STEPS ? all : MOST_STEPS);
    if (status == HL_OK)
        status = score(&r, all);
    if (status == HL_OK)
        status = test_all(&r);
    void *const blocks[] = { r.row, r.f, r.noisy, r.reference };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(sde->ctx, blocks[i]);
    return status;
}
