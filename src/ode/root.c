/* root.c - F(y) = 0 for every row by itself: y <- y + x with x = -F / D, D being F's exact diagonal.
 *
 *     jacobi        a step that does not reduce max |F| is halved, and where the reduction is slow its length is the one that would
 *                   have been best for the step before (the inverse of a residual network with L = .99, Dg < 0: 18
 *                   evaluations instead of 76); each row has its own damping
 *     anderson      the same map, accelerated: of the last `depth` changes of y and x, the combination that takes x nearest to 0
 *                   is taken off; from a bad iterate it goes back to the best one, forgets, and damps
 *     fixed-point   x = -F
 *
 * Rows are evaluated together and leave the batch when they are done; nothing that is computed for a row sees another. */
#include "hollow/root.h"

#include <math.h>
#include <string.h>

#include "ode/root_state.h"

static const double MIN_DIVISOR = 0.05;
static const double MIN_DAMPING = 1. / 1024;                 /* jacobi and anderson give up below */
static const double MIN_RELAXATION = .5, MAX_RELAXATION = 4; /* jacobi's damping where it is slow */
static const double SLOW = .1;                               /* that is, where the residual falls by less */
static const double BAD = 4;        /* anderson: an iterate with this many times the least residual is bad */
static const double DIVERGED = 1e8; /* fixed-point: growth of the residual */

struct hl_root_slot {
    size_t row, evaluations, history; /* history: changes kept by anderson */
    double damping, first, residual, before, best;
    double *y, *base, *step; /* n each: the iterate; the last accepted one and the way from there */
    double *dy, *dx;         /* depth x n: changes of y and of x, newest first in turn */
    size_t newest;
};

double hl_root_divisor(double diagonal)
{
    return fabs(diagonal) >= MIN_DIVISOR ? diagonal : copysign(MIN_DIVISOR, diagonal);
}

/* ---- creation ---- */

static const char *const names[] = { "jacobi", "anderson", "fixed-point", "newton-krylov", NULL }; /* as in the enum */

const char *const *hl_root_methods(void)
{
    return names;
}

static hl_status set_method(hl_root *root, const char *name)
{
    const hl_system *s = &root->calls.system;
    size_t k = hl_name_index(names, name ? name : "anderson");
    if (!names[k])
        return hl_fail_unknown(root->calls.ctx, "method of root finding", name, names);
    root->method = (hl_root_method)k;
    root->options.method = names[k];
    if (k <= HL_ROOT_ANDERSON && !s->diagonal)
        return hl_fail(root->calls.ctx, HL_ERR_INVALID, "%s needs the system's diagonal", names[k]);
    if (k == HL_ROOT_KRYLOV && !s->jvp)
        return hl_fail(root->calls.ctx, HL_ERR_INVALID, "%s needs the system's jvp", names[k]);
    return HL_OK;
}

static hl_status set_options(hl_root *root, const hl_root_options *given)
{
    hl_root_options *o = &root->options;
    *o = *given;
    if (!(o->tolerance >= 0) || isinf(o->tolerance))
        return hl_fail(root->calls.ctx, HL_ERR_INVALID, "the tolerance is %g; it must be positive", o->tolerance);
    o->tolerance = o->tolerance > 0 ? o->tolerance : 1e-10;
    o->depth = o->depth ? o->depth : 5;
    o->depth = o->depth > root->calls.system.n ? root->calls.system.n : o->depth;
    o->max_evaluations = o->max_evaluations ? o->max_evaluations : 500;
    o->rows = o->rows ? o->rows : 256;
    return set_method(root, given->method);
}

/* Give the slots their parts of the memory. */
static void lay_out(hl_root *root, size_t depth)
{
    size_t n = root->calls.system.n, rows = root->options.rows;
    double *at = root->memory;
    root->t = at;
    root->y = root->t + rows;
    root->f = root->y + rows * n;
    root->diagonal = root->f + rows * n;
    root->work = root->diagonal + rows * n;
    at = root->work + n * (depth + 1);
    for (size_t k = 0; root->slots && k < rows; k++) {
        hl_root_slot *s = root->slots + k;
        s->y = at;
        s->base = s->y + n;
        s->step = s->base + n;
        s->dy = s->step + n;
        s->dx = s->dy + depth * n;
        at = s->dx + depth * n;
    }
}

static hl_status allocate(hl_root *root)
{
    hl_context *ctx = root->calls.ctx;
    bool by_rows = root->method != HL_ROOT_KRYLOV;
    size_t n = root->calls.system.n, rows = root->options.rows;
    size_t depth = root->method == HL_ROOT_ANDERSON ? root->options.depth : 0;
    size_t each = hl_size_add(by_rows ? 6 : 3, hl_size_mul(2, depth));
    size_t count = hl_size_add(hl_size_mul(hl_size_add(hl_size_mul(each, n), 1), rows), hl_size_mul(n, depth + 1));
    root->index = hl_calloc(ctx, rows, sizeof *root->index);
    root->active = root->index ? hl_calloc(ctx, rows, sizeof *root->active) : NULL;
    root->memory = root->active ? hl_calloc(ctx, count, sizeof(double)) : NULL;
    if (root->memory && by_rows)
        root->slots = hl_calloc(ctx, rows, sizeof *root->slots);
    if (!root->memory || (by_rows && !root->slots))
        return HL_ERR_NOMEM;
    lay_out(root, depth);
    return by_rows ? HL_OK : hl_root_krylov_create(root);
}

hl_status hl_root_create(hl_context *ctx, const hl_system *system, const hl_root_options *options, hl_root **out)
{
    static const hl_root_options defaults;
    if (!ctx)
        return HL_ERR_INVALID;
    if (!system || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_root_create: the system or the result is NULL");
    *out = NULL;
    if (system->n == 0 || !system->rhs)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_root_create: a system needs n > 0 and a right-hand side");
    hl_root *root = hl_calloc(ctx, 1, sizeof *root);
    if (!root)
        return HL_ERR_NOMEM;
    root->calls.ctx = ctx;
    root->calls.system = *system;
    root->calls.counts = &root->calls.report.forward;
    hl_status status = set_options(root, options ? options : &defaults);
    if (status == HL_OK)
        status = allocate(root);
    if (status != HL_OK) {
        hl_root_free(root);
        return status;
    }
    *out = root;
    return HL_OK;
}

void hl_root_free(hl_root *root)
{
    if (!root)
        return;
    hl_context *ctx = root->calls.ctx;
    hl_root_krylov_free(root);
    hl_free(ctx, root->slots);
    hl_free(ctx, root->memory);
    hl_free(ctx, root->active);
    hl_free(ctx, root->index);
    hl_free(ctx, root);
}

/* ---- anderson's least squares ---- */

/* min |b - A c| for the n x m matrix A, column by column, by Householder reflections; A and b are destroyed, c is at the
 * start of b. A column that hardly differs from those before it is left out. */
static void least_squares(size_t n, size_t m, double *a, double *b, double *c)
{
    double largest = 0;
    for (size_t k = 0; k < m; k++) {
        double *v = a + k * n, norm = 0;
        for (size_t i = k; i < n; i++)
            norm += v[i] * v[i];
        norm = sqrt(norm);
        largest = fmax(largest, norm);
        double head = v[k] > 0 ? -norm : norm, scale = 0;
        if (norm > 1e-10 * largest) {
            v[k] -= head;
            for (size_t i = k; i < n; i++)
                scale += v[i] * v[i];
            for (size_t j = k + 1; j <= m; j++) { /* column m is b */
                double *to = j < m ? a + j * n : b, sum = 0;
                for (size_t i = k; i < n; i++)
                    sum += v[i] * to[i];
                for (size_t i = k; i < n; i++)
                    to[i] -= 2 * sum / scale * v[i];
            }
            c[k] = head;
        } else {
            c[k] = 0;
        }
    }
    for (size_t k = m; k-- > 0;) { /* R c = b; the diagonal of R is in c */
        double rest = b[k];
        for (size_t j = k + 1; j < m; j++)
            rest -= a[j * n + k] * c[j];
        c[k] = c[k] != 0 ? rest / c[k] : 0;
    }
}

/* ---- one row's next iterate ---- */

static void copy(size_t n, const double *from, double *to)
{
    memcpy(to, from, n * sizeof *to);
}

static void walk(const hl_root *root, hl_root_slot *s)
{
    for (size_t i = 0; i < root->calls.system.n; i++)
        s->y[i] = s->base[i] + s->damping * s->step[i];
}

static void set_step(const hl_root *root, double *step, const double *f, const double *diagonal)
{
    for (size_t i = 0; i < root->calls.system.n; i++)
        step[i] = root->method == HL_ROOT_FIXED_POINT ? -f[i] : -f[i] / hl_root_divisor(diagonal[i]);
}

/* All methods' next functions: false gives up. */
static bool fixed_point_next(const hl_root *root, hl_root_slot *s, const double *f, double residual)
{
    copy(root->calls.system.n, s->y, s->base);
    set_step(root, s->step, f, NULL);
    walk(root, s);
    return residual <= DIVERGED * s->first;
}

/* The damping that would have been best for the last step, had F been linear: x changed by damping A x, and |x - w A x| is
 * least for this w. */
static double relaxation(const hl_root *root, const hl_root_slot *s, const double *x)
{
    double dot = 0, norm = 0;
    for (size_t i = 0; i < root->calls.system.n; i++) {
        double change = s->step[i] - x[i];
        dot += s->step[i] * change;
        norm += change * change;
    }
    return norm > 0 ? fmin(fmax(s->damping * dot / norm, MIN_RELAXATION), MAX_RELAXATION) : 1;
}

static bool jacobi_next(const hl_root *root, hl_root_slot *s, double *f, const double *diagonal, double residual)
{
    /* The larger of the last two residuals, as Jacobi's may rise for once on their way down. */
    if (s->evaluations == 1 || residual < fmax(s->residual, s->before)) {
        bool slow = s->evaluations > 1 && residual > SLOW * s->residual;
        s->before = s->evaluations == 1 ? residual : s->residual;
        s->residual = residual;
        copy(root->calls.system.n, s->y, s->base);
        set_step(root, f, f, diagonal);
        s->damping = slow ? relaxation(root, s, f) : 1;
        copy(root->calls.system.n, f, s->step);
    } else {
        s->damping /= 2;
    }
    walk(root, s);
    return s->damping >= MIN_DAMPING;
}

/* Keep the changes from the iterate before: base and step hold it. */
static void remember(const hl_root *root, hl_root_slot *s, const double *x)
{
    size_t n = root->calls.system.n, depth = root->options.depth;
    s->newest = (s->newest + 1) % depth;
    s->history += s->history < depth;
    for (size_t i = 0; i < n; i++) {
        s->dy[s->newest * n + i] = s->y[i] - s->base[i];
        s->dx[s->newest * n + i] = x[i] - s->step[i];
    }
}

/* y <- y + damping x - sum_j c_j (dy_j + damping dx_j), c minimising |x - sum_j c_j dx_j|; the step is x. */
static void mix(const hl_root *root, hl_root_slot *s, double *c)
{
    size_t n = root->calls.system.n, depth = root->options.depth, m = s->history;
    double *b = root->work + m * n;
    for (size_t j = 0; j < m; j++)
        copy(n, s->dx + (s->newest + depth - j) % depth * n, root->work + j * n);
    copy(n, s->step, b);
    least_squares(n, m, root->work, b, c);
    walk(root, s);
    for (size_t j = 0; j < m; j++) {
        size_t at = (s->newest + depth - j) % depth * n;
        for (size_t i = 0; i < n; i++)
            s->y[i] -= c[j] * (s->dy[at + i] + s->damping * s->dx[at + i]);
    }
}

/* `best` is the row's best iterate, f and diagonal scratch. */
static bool anderson_next(const hl_root *root, hl_root_slot *s, double *f, double *diagonal, double residual,
                          const double *best)
{
    size_t n = root->calls.system.n;
    if (s->evaluations > 1 && !(residual <= BAD * s->best)) { /* back to the best, which is evaluated again */
        s->history = 0;
        s->damping /= 2;
        s->before = NAN; /* no changes are kept from here */
        copy(n, best, s->y);
        return s->damping >= MIN_DAMPING;
    }
    set_step(root, f, f, diagonal);
    if (s->evaluations > 1 && !isnan(s->before))
        remember(root, s, f);
    if (s->evaluations == 1)
        s->damping = 1;
    else if (residual <= s->best && !isnan(s->before))
        s->damping = fmin(1, 2 * s->damping);
    s->before = residual;
    copy(n, s->y, s->base);
    copy(n, f, s->step);
    mix(root, s, diagonal);
    return true;
}

/* ---- solving ---- */

static double max_norm(size_t n, const double *v)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        largest = isfinite(v[i]) ? fmax(largest, fabs(v[i])) : INFINITY;
    return largest;
}

/* What came of evaluating the slot, at place k of the batch. True if the row is done. */
static bool judge(hl_root *root, hl_root_slot *s, size_t k, bool evaluated, double *y, hl_root_row *info)
{
    size_t n = root->calls.system.n;
    double *f = root->f + k * n, *diagonal = root->diagonal + k * n;
    double *best = y + s->row * n;
    bool finite = evaluated && isfinite(max_norm(n, diagonal));
    double residual = finite ? max_norm(n, f) : INFINITY;
    s->first = ++s->evaluations == 1 ? residual : s->first;
    if (s->evaluations == 1 || residual < s->best) {
        s->best = residual;
        copy(n, s->y, best);
    }
    bool found = s->best <= root->options.tolerance, more = !found && s->evaluations < root->options.max_evaluations;
    if (more && isinf(s->first))
        more = false;
    else if (more && root->method == HL_ROOT_FIXED_POINT)
        more = fixed_point_next(root, s, f, residual);
    else if (more && root->method == HL_ROOT_JACOBI)
        more = jacobi_next(root, s, f, diagonal, residual);
    else if (more)
        more = anderson_next(root, s, f, diagonal, residual, best);
    *info = (hl_root_row){ .status = found ? HL_OK : HL_ERR_NO_SOLUTION,
                           .evaluations = s->evaluations,
                           .residual = s->best };
    return !more;
}

/* Evaluate all rows at work. 0, > 0: the callback wants none of them; < 0 stop. */
static int evaluate(hl_root *root, size_t count, const double *t)
{
    size_t n = root->calls.system.n, bad = SIZE_MAX;
    for (size_t k = 0; k < count; k++) {
        const hl_root_slot *s = root->slots + root->active[k];
        root->index[k] = s->row;
        root->t[k] = t ? t[s->row] : 0;
        copy(n, s->y, root->y + k * n);
    }
    hl_rows at = { .count = count, .index = root->index, .t = root->t, .y = root->y };
    int value = root->method == HL_ROOT_FIXED_POINT
                    ? hl_call_rhs(&root->calls, &at, root->f, &bad)
                    : hl_call_diagonal(&root->calls, &at, root->f, root->diagonal, &bad);
    return value > 0 && bad != SIZE_MAX ? 0 : value; /* values that are not finite concern their rows alone */
}

static hl_status solve_block(hl_root *root, size_t rows, size_t first, const double *t, double *y, hl_root_row *info,
                             hl_root_row *worst)
{
    size_t n = root->calls.system.n, count = rows;
    for (size_t k = 0; k < rows; k++) {
        hl_root_slot *s = root->slots + k;
        root->active[k] = k;
        s->row = first + k;
        s->evaluations = s->history = s->newest = 0;
        s->damping = 1;
        copy(n, y + s->row * n, s->y);
    }
    while (count) {
        size_t kept = 0;
        int value = evaluate(root, count, t);
        if (value < 0)
            return hl_ode_stopped(&root->calls);
        for (size_t k = 0; k < count; k++) {
            hl_root_slot *s = root->slots + root->active[k];
            hl_root_row row;
            if (!judge(root, s, k, value == 0, y, &row)) {
                root->active[kept++] = root->active[k];
                continue;
            }
            if (info)
                info[s->row] = row;
            if (row.status && !(row.residual <= worst->residual))
                *worst = row;
        }
        count = kept;
    }
    return HL_OK;
}

static hl_status check_start(hl_root *root, size_t rows, const double *y)
{
    size_t n = root->calls.system.n;
    for (size_t i = 0; i < rows * n; i++)
        if (!isfinite(y[i]))
            return hl_fail_at(root->calls.ctx, HL_ERR_NOT_FINITE, hl_at(i / n, i % n),
                              "the initial state is not finite");
    return HL_OK;
}

hl_status hl_root_solve(hl_root *root, size_t rows, const double *t, double *y, hl_root_row *info)
{
    if (!root)
        return HL_ERR_INVALID;
    if (rows && !y)
        return hl_fail(root->calls.ctx, HL_ERR_INVALID, "hl_root_solve: y is NULL");
    hl_root_row worst = { .residual = -1 };
    root->calls.stopped = false;
    hl_status status = check_start(root, rows, y);
    for (size_t from = 0; from < rows && status == HL_OK; from += root->options.rows) {
        size_t count = rows - from < root->options.rows ? rows - from : root->options.rows;
        if (root->method != HL_ROOT_KRYLOV) {
            status = solve_block(root, count, from, t, y, info, &worst);
            continue;
        }
        hl_root_row row = { 0 };
        for (size_t k = 0; k < count; k++)
            root->t[k] = t ? t[from + k] : 0;
        status = hl_root_krylov_solve(root, count, from, y + from * root->calls.system.n, &row);
        for (size_t k = 0; info && k < count; k++)
            info[from + k] = row;
        if (row.status && !(row.residual <= worst.residual))
            worst = row;
    }
    if (status == HL_OK && worst.status)
        status =
            hl_fail(root->calls.ctx, HL_ERR_NO_SOLUTION,
                    "no solution found: the residual of %s is %.3g after %zu evaluations; there may be no solution",
                    root->options.method, worst.residual, worst.evaluations);
    return status;
}
