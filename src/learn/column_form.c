/* column_form.c - outermost maps of columns: bounded or far-tailed values to all real numbers, with exact log slopes.
 *
 *   log     dv/dx = 1 / t, t = x - low                      d log(dv/dx) / dx = -1 / t
 *   soft    dv/dx = 1 / (s (1 - e^-u))                                        = -1 / (s (e^u - 1))
 *   logit   dv/dx = 1 / a + 1 / b, a = x - low, b = high - x                  = 1 / b - 1 / a
 *   asinh   dv/dx = 1 / (s sqrt(1 + u^2))                                     = -u / (s (1 + u^2))
 *
 * and mirrored for an upper bound alone. */
#include "learn/column_form.h"

#include <float.h>
#include <math.h>

#include "base/linear.h"
#include "learn/column_map.h"

enum { CHOOSE_ROWS = 4000 };
static const double TIED_SHARE = 0.01, FAR = 1000, FAR_VALUE = 1e300;

const char *const hl_form_names[] = { "none", "log", "soft", "logit", "asinh", NULL };

hl_column_form hl_column_form_none(void)
{
    return (hl_column_form){ .low = -INFINITY, .high = INFINITY, .scale = 1, .least = -INFINITY, .most = INFINITY };
}

bool hl_column_form_is_none(const hl_column_form *f)
{
    return f->kind == HL_FORM_NONE && f->step == 0;
}

bool hl_column_form_valid(const hl_column_form *f)
{
    bool below = isfinite(f->low), above = isfinite(f->high), one = below != above, both = below && above;
    bool bounds = f->kind == HL_FORM_LOGIT                            ? both
                  : f->kind == HL_FORM_LOG || f->kind == HL_FORM_SOFT ? one
                                                                      : !below && !above;
    bool good = (below || f->low == -INFINITY) && (above || f->high == INFINITY) && f->low < f->high;
    good = good && isfinite(f->centre) && f->scale > 0 && isfinite(f->scale) && isfinite(f->origin);
    good = good && f->step >= 0 && isfinite(f->step) && f->edge >= 0 && isfinite(f->edge);
    good = good && f->least <= f->most && f->least < INFINITY && f->most > -INFINITY;
    return good && bounds && (!(below || above) || f->edge > 0);
}

/* Distance from a bound; at the bound itself, that of the edge. */
static double distance(const hl_column_form *f, double from, double to)
{
    return to > from ? to - from : f->edge;
}

static double one_bound(const hl_column_form *f, double x, double *log_slope, double *curve)
{
    bool below = isfinite(f->low);
    double t = below ? distance(f, f->low, x) : distance(f, x, f->high), sign = below ? 1 : -1;
    if (f->kind == HL_FORM_LOG) {
        *log_slope = -log(t);
        *curve = -sign / t;
        return sign * log(t);
    }
    double u = t / f->scale, more = expm1(u), less = -expm1(-u);
    *log_slope = -log(less) - log(f->scale);
    *curve = -sign / (more * f->scale);
    return sign * (u > 30 ? u + log1p(-exp(-u)) : log(more));
}

double hl_column_form_forward(const hl_column_form *f, double x, double *log_slope, double *curve)
{
    double own_slope, own_curve, v = x;
    log_slope = log_slope ? log_slope : &own_slope;
    curve = curve ? curve : &own_curve;
    *log_slope = *curve = 0;
    if (!isfinite(x)) {
        *log_slope = *curve = NAN;
        return NAN;
    }
    if (x < f->low || x > f->high) {
        *log_slope = -INFINITY;
        *curve = 0;
        return NAN;
    }
    if (f->kind == HL_FORM_LOG || f->kind == HL_FORM_SOFT)
        return one_bound(f, x, log_slope, curve);
    if (f->kind == HL_FORM_LOGIT) {
        double a = distance(f, f->low, x), b = distance(f, x, f->high);
        *log_slope = log((f->high - f->low) / a) - log(b);
        *curve = 1 / b - 1 / a;
        return log(a) - log(b);
    }
    if (f->kind == HL_FORM_ASINH) {
        double u = (x - f->centre) / f->scale, r = hypot(1, u);
        *log_slope = -log(r) - log(f->scale);
        *curve = -(u / r) / r / f->scale;
        v = asinh(u);
    }
    return v;
}

static double clamp(const hl_column_form *f, double x)
{
    return isnan(x) ? x : fmin(fmax(x, fmax(f->low, -FAR_VALUE)), fmin(f->high, FAR_VALUE));
}

double hl_column_form_inverse(const hl_column_form *f, double v)
{
    bool below = isfinite(f->low);
    double away = below ? v : -v, small = exp(-fabs(v)), x = v;
    if (f->kind == HL_FORM_NONE)
        return v;
    if (f->kind == HL_FORM_LOG)
        x = below ? f->low + exp(away) : f->high - exp(away);
    if (f->kind == HL_FORM_SOFT) {
        double u = f->scale * ((away > 0 ? away : 0) + log1p(small));
        x = below ? f->low + u : f->high - u;
    }
    if (f->kind == HL_FORM_LOGIT) {
        double part = (f->high - f->low) * (small / (1 + small));
        x = v < 0 ? f->low + part : f->high - part;
    }
    if (f->kind == HL_FORM_ASINH)
        x = f->centre + f->scale * sinh(v);
    return clamp(f, x);
}

enum { MOST_DIGITS = 9 };

/* Value k of the grid, as the quotient of whole numbers if step and origin are decimals: 3 / 10, not 3 times 0.1, so that samples are the
 * decimals that were read. */
static double grid_value(const hl_column_form *f, double k)
{
    double scale = 1;
    for (int digits = 0; digits <= MOST_DIGITS; digits++, scale *= 10) {
        double step = round(f->step * scale), origin = round(f->origin * scale);
        if (step >= 1 && fabs(f->step * scale - step) <= 1e-12 * step &&
            fabs(f->origin * scale - origin) <= 1e-12 * fmax(1, fabs(origin)))
            return (k * step + origin) / scale;
    }
    double inverse = 1 / f->step, whole = round(inverse);
    return f->origin + (whole >= 1 && fabs(inverse - whole) <= 1e-9 * whole ? k / whole : k * f->step);
}

double hl_column_form_round(const hl_column_form *f, double x)
{
    if (!(f->step > 0) || !isfinite(x))
        return x;
    x = fmin(fmax(x, f->least), f->most);
    double k = round((x - f->origin) / f->step), at = grid_value(f, k);
    if (at < f->low)
        at = grid_value(f, k + 1);
    if (at > f->high)
        at = grid_value(f, k - 1);
    return at >= f->low && at <= f->high ? at : x;
}

/* ---- grids ---- */

/* Are all values multiples of the step, but for the rounding of decimals? */
static bool is_grid(size_t count, const double *sorted, double step)
{
    for (size_t r = 0; r < count; r++) {
        double k = sorted[r] / step;
        if (!(fabs(k) < 1e15) || fabs(k - round(k)) > 1e-9 + 4 * DBL_EPSILON * fabs(k))
            return false;
    }
    return true;
}

/* Are the values multiples of their least distance from the least of them, as those of a grid that was standardised? Their step, or 0. Few
 * values are close to many grids by chance, so theirs must be exact. */
static double shifted_grid(size_t count, const double *sorted)
{
    double range = sorted[count - 1] - sorted[0], least = INFINITY, off = count > 10 ? 0.02 : 1e-6;
    for (size_t r = 1; r < count; r++)
        least = fmin(least, sorted[r] - sorted[r - 1] > 1e-6 * range ? sorted[r] - sorted[r - 1] : INFINITY);
    double steps = round(range / least), step = range / steps;
    for (size_t r = 0; r < count; r++) {
        double k = (sorted[r] - sorted[0]) / step;
        if (!(fabs(k - round(k)) <= off))
            return 0;
    }
    return step;
}

/* Limits of samples: both ends of few values on a grid or of few whole numbers; the lower end of many whole numbers from 0 or 1. */
static void limit_draws(size_t distinct, const double *sorted, hl_column_form *form)
{
    bool few = distinct <= HL_FORM_FEW_VALUES, whole = distinct > 0;
    for (size_t r = 0; r < distinct; r++)
        whole = whole && sorted[r] == floor(sorted[r]);
    bool both = few && (whole || form->step > 0);
    if (both || (whole && (sorted[0] == 0 || sorted[0] == 1)))
        form->least = sorted[0];
    if (both)
        form->most = sorted[distinct - 1];
}

hl_column_form hl_column_grid(size_t rows, const double *x, size_t stride, double *work)
{
    hl_column_form form = hl_column_form_none();
    size_t distinct = 0;
    for (size_t r = 0; r < rows; r++)
        work[r] = x[r * stride];
    hl_sort(work, rows);
    for (size_t r = 0; r < rows; r++)
        if (r == 0 || work[r] != work[r - 1])
            work[distinct++] = work[r];
    double range = distinct ? work[distinct - 1] - work[0] : 0;
    if (!(range > 0) || !((double)(rows - distinct) > TIED_SHARE * (double)rows)) {
        limit_draws(distinct, work, &form);
        return form;
    }
    static const double digit[] = { 5, 2, 1 };
    int most = (int)ceil(log10(range));
    for (int power = most; power > most - 9; power--)
        for (size_t i = 0; i < 3; i++) {
            double step = power < 0 ? digit[i] / pow(10, -power) : digit[i] * pow(10, power);
            if (!(form.step > 0) && step <= range && is_grid(distinct, work, step))
                form.step = step;
        }
    double wider = shifted_grid(distinct, work);
    if (wider > 1.5 * form.step) {
        form.step = wider;
        form.origin = is_grid(distinct, work, wider) ? 0 : work[0];
    }
    limit_draws(distinct, work, &form);
    return form;
}

/* ---- choice ---- */

/* Mean log-density of the values of one parity by a map of `parts` fitted to the other, through the form. */
static hl_status judge(hl_context *ctx, const hl_column_form *f, size_t rows, const double *x, double *work,
                       size_t parts, double *score)
{
    *score = 0;
    for (size_t half = 0; half < 2; half++) {
        size_t fitted = 0, held = 0;
        double slopes = 0, slope;
        for (size_t r = 0; r < rows; r++) {
            double v = hl_column_form_forward(f, x[r], &slope, NULL);
            if (r % 2 == half) {
                work[fitted++] = v;
            } else {
                work[rows + held++] = v;
                slopes += slope;
            }
        }
        hl_column_map *map = NULL;
        hl_column_fold fold = { .rows = fitted, .stride = 1, .x = work };
        hl_status status = hl_column_map_fit(ctx, &fold, parts, 0, &map);
        if (status != HL_OK)
            return status;
        for (size_t r = 0; r < held; r++)
            slopes += hl_column_map_logf(map, work[rows + r]);
        hl_column_map_free(map);
        *score += slopes / (double)rows;
    }
    return HL_OK;
}

/* The better of two forms, by maps of one and of three parts. */
static hl_status choose_better(hl_context *ctx, size_t rows, const double *x, double *work, const hl_column_form *other,
                               hl_column_form *form)
{
    static const size_t parts[] = { 1, 3 };
    double best[2] = { -INFINITY, -INFINITY }, score;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < 2; i++) {
            hl_status status = judge(ctx, k ? other : form, rows, x, work, parts[i], &score);
            if (status != HL_OK)
                return status;
            best[k] = score > best[k] ? score : best[k];
        }
    if (best[1] > best[0])
        *form = *other;
    return HL_OK;
}

/* Half the least distance of a value from a bound. */
static double find_edge(size_t rows, const double *x, double low, double high)
{
    double least = INFINITY;
    for (size_t r = 0; r < rows; r++) {
        double near = fmin(x[r] - low, high - x[r]);
        least = near > 0 ? fmin(least, near) : least;
    }
    return isfinite(least) ? fmax(least / 2, DBL_MIN) : 1;
}

hl_status hl_column_form_choose(hl_context *ctx, size_t rows, const double *x, size_t stride, double low, double high,
                                hl_column_form *form)
{
    size_t step = 1 + (rows - 1) / CHOOSE_ROWS, few = (rows + step - 1) / step;
    double *values = hl_calloc(ctx, hl_size_add(rows, 3 * few), sizeof *values), *some = values, *work;
    double centre, scale, farthest = 0;
    hl_status status = HL_OK;
    *form = hl_column_form_none();
    if (!values)
        return HL_ERR_NOMEM;
    hl_column_scale(rows, x, stride, values, &centre, &scale); /* which sorts them there */
    farthest = fmax(values[rows - 1] - centre, centre - values[0]) / scale;
    form->low = low;
    form->high = high;
    form->centre = centre;
    form->scale = scale;
    form->edge = isfinite(low) || isfinite(high) ? find_edge(rows, values, low, high) : 0;
    some = values + rows;
    work = some + few;
    for (size_t r = 0; r < few; r++)
        some[r] = x[r * step * stride];
    if (isfinite(low) && isfinite(high)) {
        form->kind = HL_FORM_LOGIT;
    } else if (form->edge > 0) {
        hl_column_form soft = *form;
        soft.kind = HL_FORM_SOFT;
        soft.scale = fmax(isfinite(low) ? centre - low : high - centre, scale);
        form->kind = HL_FORM_LOG;
        status = choose_better(ctx, few, some, work, &soft, form);
    } else if (farthest > FAR) {
        form->kind = HL_FORM_ASINH;
    }
    hl_free(ctx, values);
    return status;
}
