/* regress_dictionaries.c - the functions that drift and diffusion may be sums of, and the candidates for which of them are.
 *
 * Drifts: products of the columns; Gaussians of single columns, few wide ones or more narrow ones, whose sums are functions of one column each; Gaussians of
 * all columns. The last need a number that grows exponentially with the columns and are left out beyond three. */
#include <math.h>
#include <string.h>

#include "sde/regress.h"
#include "sde/sde.h"

enum { SPREAD_ROWS = 2000 };
enum { FULL_CUBIC = 3, FULL_QUADRATIC = HL_REGRESS_CROSSED }; /* most columns with all such products */
enum { FEW_LINES = 4, MANY_LINES = 8, LINES_DIM = 6 };        /* Gaussians of one input; most columns with such */
static const double drift_width = 0.7, noise_width = 1, line_tail = 0.02, line_width = 1.2;

/* Products up to `degree` of n inputs: all, or beyond degree `mixed` only powers; to b, or counted if that is NULL. */
static size_t list_products(size_t n, int degree, int mixed, hl_basis *b)
{
    size_t count = 0;
    for (int k = 0; k <= degree; k++) {
        size_t at[HL_BASIS_FACTORS] = { 0 };
        for (bool more = true; more;) {
            bool power = true;
            for (int l = 1; l < k; l++)
                power = power && at[l] == at[0];
            if (k <= mixed || power) {
                for (int l = 0; l < k && b; l++)
                    b->factor[count][l] = (unsigned short)(at[l] + 1);
                count++;
            }
            int l = k - 1;
            while (l >= 0 && at[l] + 1 >= n)
                l--;
            more = l >= 0;
            for (size_t next = more ? at[l] + 1 : 0; more && l < k; l++)
                at[l] = next;
        }
    }
    return count;
}

/* The Gaussians from `first` on: centres far from each other among some of the rows. */
static void spread_centres(const hl_regress *p, hl_basis *b, size_t first, double width, double *gap)
{
    size_t n = p->rows < SPREAD_ROWS ? p->rows : SPREAD_ROWS, m = p->inputs, best = 0;
    for (size_t k = 0; k < n; k++)
        gap[k] = INFINITY;
    for (size_t k = first * m; k < b->bumps * m; k++)
        b->scale[k] = 1 / width;
    for (size_t c = first; c < b->bumps; c++) {
        const double *z = p->z + hl_sde_some_row(best, n, p->rows) * m;
        memcpy(b->centre + c * m, z, m * sizeof *z);
        for (size_t k = 0; k < n; k++) {
            const double *y = p->z + hl_sde_some_row(k, n, p->rows) * m;
            double square = 0;
            for (size_t i = 0; i < m; i++)
                square += (y[i] - z[i]) * (y[i] - z[i]);
            gap[k] = fmin(gap[k], square);
        }
        best = 0;
        for (size_t k = 1; k < n; k++)
            if (gap[k] > gap[best])
                best = k;
    }
}

/* `count` Gaussians of each input alone, evenly over most of its values, from `first` on. */
static void set_lines(const hl_regress *p, hl_basis *b, size_t first, size_t count, double *value)
{
    size_t n = p->rows < SPREAD_ROWS ? p->rows : SPREAD_ROWS, m = p->inputs, tail = (size_t)(line_tail * (double)n);
    for (size_t i = 0; i < m; i++) {
        for (size_t k = 0; k < n; k++)
            value[k] = p->z[hl_sde_some_row(k, n, p->rows) * m + i];
        hl_sort(value, n);
        double low = value[tail], gap = fmax((value[n - 1 - tail] - low) / (double)(count - 1), 1e-3);
        for (size_t k = 0; k < count; k++) {
            size_t at = (first + i * count + k) * m + i;
            b->centre[at] = low + (double)k * gap;
            b->scale[at] = 1 / (line_width * gap);
        }
    }
}

hl_status hl_regress_dictionaries(hl_regress *p)
{
    size_t n = p->inputs, bumps = p->dim == 1 ? 12 : p->dim <= FULL_CUBIC ? 24 : 0;
    bool linear = strcmp(p->options.form, "linear") == 0;
    if (linear || strcmp(p->options.form, "poly3") == 0)
        bumps = 0;
    bool lines_too = !linear && strcmp(p->options.form, "poly3") != 0 && p->dim > 1 && p->dim <= LINES_DIM;
    p->lines = lines_too ? (FEW_LINES + MANY_LINES) * n : 0;
    double *gap = hl_calloc(p->ctx, SPREAD_ROWS, sizeof *gap);
    hl_status status = gap ? HL_OK : HL_ERR_NOMEM;
    for (size_t part = 0; part < 2 && status == HL_OK; part++) {
        int degree = part ? 2 : linear ? 1 : 3;
        int mixed = p->dim <= FULL_CUBIC ? 3 : p->dim <= FULL_QUADRATIC && !part ? 2 : 1;
        size_t products = list_products(n, degree, mixed, NULL), lines = part ? 0 : p->lines;
        status = hl_basis_create(p->ctx, n, products, part ? bumps / 2 : lines + bumps, &p->basis[part]);
        if (status == HL_OK) {
            list_products(n, degree, mixed, &p->basis[part]);
            if (lines) {
                set_lines(p, &p->basis[part], 0, FEW_LINES, gap);
                set_lines(p, &p->basis[part], FEW_LINES * n, MANY_LINES, gap);
            }
            spread_centres(p, &p->basis[part], lines, part ? noise_width : drift_width, gap);
            p->size[part] = hl_basis_size(&p->basis[part]);
        }
    }
    hl_free(p->ctx, gap);
    p->cross_size = p->dim <= 2 ? p->basis[1].products : 1;
    p->columns = hl_regress_noise(p, p->entries);
    if (status == HL_OK)
        p->theta = hl_calloc(p->ctx, p->columns, sizeof *p->theta);
    return status == HL_OK && !p->theta ? HL_ERR_NOMEM : status;
}

static bool wanted(const hl_regress *p, const char *form)
{
    bool all = strcmp(p->options.form, "auto") == 0 || strcmp(p->options.form, "ridge") == 0;
    return all || strcmp(p->options.form, form) == 0;
}

size_t hl_regress_candidates(const hl_regress *p, hl_candidate *c)
{
    const struct {
        const char *name, *form;
        int degree;
        bool own;
        size_t lines, bumps;
    } drifts[] = { { "constant", "", 0, false, 0, 0 },
                   { "linear", "linear", 1, false, 0, 0 },
                   { "additive", "poly3", 3, true, 0, 0 },
                   { "cubic", "poly3", 3, false, 0, 0 },
                   { "sum of radial", "radial", 1, false, FEW_LINES, 0 },
                   { "sum of radial", "radial", 1, false, MANY_LINES, 0 },
                   { "radial", "radial", 1, false, 0, 8 },
                   { "radial", "radial", 1, false, 0, 16 },
                   { "radial", "radial", 1, false, 0, 24 },
                   { "cubic radial", "radial", 3, false, 0, 24 } },
      noises[] = { { "constant", "", 0, false, 0, 0 },
                   { "linear", "", 1, false, 0, 0 },
                   { "own quadratic", "", 2, true, 0, 0 },
                   { "quadratic", "", 2, false, 0, 0 },
                   { "radial", "", 1, false, 0, 12 } };
    bool off = strcmp(p->options.noise, "full") != 0, on = p->entries > p->dim;
    size_t count = 0, most = p->basis[0].bumps - p->lines;
    for (size_t f = 0; f < sizeof drifts / sizeof *drifts; f++)
        for (size_t g = 0; g < sizeof noises / sizeof *noises; g++)
            for (int crossed = !off && on; crossed <= (on ? 1 : 0); crossed++) {
                size_t bumps = drifts[f].bumps < most ? drifts[f].bumps : most;
                bool twin = p->dim == 1 && (drifts[f].own || noises[g].own || drifts[f].bumps == 16);
                /* Snapshots tell diffusion from slopes of the drift poorly, so slopes that are not seen must not stand in for it. Steps tell them apart,
                 * and weak forces along a path are worth an estimate. */
                bool idle = (drifts[f].degree == 0 && p->pairs) || (drifts[f].bumps && !most) ||
                            (drifts[f].lines && !p->lines) || (noises[g].bumps && !p->basis[1].bumps);
                if (twin || idle || !wanted(p, drifts[f].form) || count == HL_REGRESS_CANDIDATES)
                    continue;
                c[count++] = (hl_candidate){ .name = { drifts[f].name, noises[g].name },
                                             .degree = { drifts[f].degree, noises[g].degree },
                                             .own = { drifts[f].own, noises[g].own },
                                             .first = { drifts[f].lines == FEW_LINES ? 0
                                                        : drifts[f].lines            ? FEW_LINES * p->inputs
                                                                                     : p->lines,
                                                        0 },
                                             .bumps = { drifts[f].lines == FEW_LINES ? FEW_LINES * p->inputs
                                                        : drifts[f].lines || bumps   ? p->lines + bumps
                                                                                     : 0,
                                                        noises[g].bumps ? p->basis[1].bumps : 0 },
                                             .crossed = crossed };
            }
    return count;
}
