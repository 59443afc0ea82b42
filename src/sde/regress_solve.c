/* regress_solve.c - Cholesky factors, in rows. */
#include <math.h>
#include <string.h>

#include "sde/regress.h"

typedef double lanes __attribute__((vector_size(16)));
enum { LANES = 2 };

static lanes get(const double *from)
{
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

double hl_regress_dot(size_t n, const double *a, const double *b)
{
    lanes s[4] = { { 0 } };
    size_t k = 0;
    for (; k + 4 * LANES <= n; k += 4 * LANES)
        for (size_t l = 0; l < 4; l++)
            s[l] += get(a + k + l * LANES) * get(b + k + l * LANES);
    s[0] = (s[0] + s[1]) + (s[2] + s[3]);
    double sum = s[0][0] + s[0][1];
    for (; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

void hl_regress_axpy(size_t n, double a, const double *x, double *y)
{
    size_t k = 0;
    for (; k + LANES <= n; k += LANES) {
        lanes v = get(y + k) + a * get(x + k);
        memcpy(y + k, &v, sizeof v);
    }
    for (; k < n; k++)
        y[k] += a * x[k];
}

bool hl_regress_cholesky(size_t n, double *a)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double v = a[i * n + j] - hl_regress_dot(j, a + i * n, a + j * n);
            if (j == i && !(v > 0 && isfinite(v)))
                return false;
            a[i * n + j] = j == i ? sqrt(v) : v / a[j * n + j];
        }
    return true;
}

void hl_regress_solve(size_t n, const double *l, double *x)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (x[i] - hl_regress_dot(i, l + i * n, x)) / l[i * n + i];
    for (size_t i = n; i-- > 0;) {
        x[i] /= l[i * n + i];
        hl_regress_axpy(i, -x[i], l + i * n, x);
    }
}

void hl_regress_forward(size_t n, const double *l, size_t columns, double *b)
{
    for (size_t i = 0; i < n; i++) {
        double *row = b + i * columns, inverse = 1 / l[i * n + i];
        for (size_t j = 0; j < i; j++)
            hl_regress_axpy(columns, -l[i * n + j], b + j * columns, row);
        for (size_t k = 0; k < columns; k++)
            row[k] *= inverse;
    }
}
