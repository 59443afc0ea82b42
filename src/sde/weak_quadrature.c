/* weak_quadrature.c - integrals over time from means at few times, times cosines: of the conditions of a regression and of the tests of means. */
#include <math.h>

#include "sde/regress.h"

/* Lagrange's quadrature of interval j: weights of `nodes` times from the one returned. */
static size_t interval_weights(size_t times, const double *at, size_t nodes, size_t j, double *weight)
{
    static const double point[] = { 0.1127016653792583, 0.5, 0.8872983346207417 }, share[] = { 5, 8, 5 };
    size_t low = j + 1 > nodes / 2 ? j + 1 - nodes / 2 : 0;
    double h = at[j + 1] - at[j];
    low = low + nodes > times ? times - nodes : low;
    for (size_t n = 0; n < nodes; n++) { /* Gauss' three points are exact for the fifth degree */
        double sum = 0;
        for (size_t q = 0; q < 3; q++) {
            double place = at[j] + h * point[q], value = share[q] / 18;
            for (size_t o = 0; o < nodes; o++)
                value *= o == n ? 1 : (place - at[low + o]) / (at[low + n] - at[low + o]);
            sum += value;
        }
        weight[n] = h * sum;
    }
    return low;
}

void hl_weak_waves(size_t times, const double *at, size_t nodes, size_t waves, double *weight, double *jump,
                   double *wave)
{
    const double pi = 3.14159265358979323846;
    size_t m = times;
    nodes = m < HL_WEAK_NODES ? 2 : m < nodes ? HL_WEAK_NODES : nodes;
    double interval[HL_WEAK_MOST_NODES], span = at[m - 1] - at[0];
    for (size_t j = 0; j + 1 < m; j++) {
        size_t low = interval_weights(m, at, nodes, j, interval);
        double middle = (0.5 * (at[j] + at[j + 1]) - at[0]) / span;
        for (size_t k = 0; k < waves; k++) {
            double c = cos(pi * (double)k * middle);
            for (size_t n = 0; n < nodes; n++)
                weight[k * m + low + n] += c * interval[n];
            jump[k * m + j] -= c;
            jump[k * m + j + 1] += c;
            if (wave)
                wave[k * m + j] = c;
        }
    }
}
