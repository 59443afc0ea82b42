/* weak_quadrature.c - integrals over time from means at few times, times cosines: of the conditions of a regression and of the tests of means. */
#include <math.h>

#include "sde/regress.h"

/* Intervals that are longer than so many mean ones are left out: no polynomial knows what happens in them. */
static const double long_interval = 4;
/* Times nearer to each other than this share of an interval do not help to integrate over it: their difference is noise. */
static const double least_gap = 0.2;

/* Are all intervals about equally long? */
static bool evenly(size_t times, const double *at)
{
    double least = INFINITY, most = 0;
    for (size_t j = 0; j + 1 < times; j++) {
        least = fmin(least, at[j + 1] - at[j]);
        most = fmax(most, at[j + 1] - at[j]);
    }
    return most <= 2 * least;
}

/* Up to `most` times around interval j, alternately before and after it, to `node`; returns their number. Beyond HL_WEAK_NODES both sides must have one, or
 * times be even: a polynomial of high degree through growing intervals fails in the last. */
static size_t nodes_of(size_t times, const double *at, bool even, size_t most, size_t j, size_t *node)
{
    double gap = least_gap * (at[j + 1] - at[j]);
    size_t low = j, high = j + 1, count = 2;
    node[0] = low;
    node[1] = high;
    while (count < most) {
        size_t before = low, after = high;
        while (before > 0 && at[low] - at[before] < gap)
            before--;
        while (after + 1 < times && at[after] - at[high] < gap)
            after++;
        bool left = before < low && at[low] - at[before] >= gap, right = after > high && at[after] - at[high] >= gap;
        if ((!left && !right) || (count >= HL_WEAK_NODES && !even && !(left && right)))
            break;
        if (left)
            node[count++] = low = before;
        if (right && count < most)
            node[count++] = high = after;
    }
    return count;
}

/* Lagrange's quadrature of interval j by the polynomial through some times: their weights. */
static void interval_weights(const double *at, size_t nodes, const size_t *node, size_t j, double *weight)
{
    static const double point[] = { 0.1127016653792583, 0.5, 0.8872983346207417 }, share[] = { 5, 8, 5 };
    double h = at[j + 1] - at[j];
    for (size_t n = 0; n < nodes; n++) { /* Gauss' three points are exact for the fifth degree */
        double sum = 0;
        for (size_t q = 0; q < 3; q++) {
            double place = at[j] + h * point[q], value = share[q] / 18;
            for (size_t o = 0; o < nodes; o++)
                value *= o == n ? 1 : (place - at[node[o]]) / (at[node[n]] - at[node[o]]);
            sum += value;
        }
        weight[n] = h * sum;
    }
}

void hl_weak_waves(size_t times, const double *at, size_t nodes, size_t waves, double *weight, double *jump,
                   double *wave)
{
    const double pi = 3.14159265358979323846;
    size_t m = times, most = m < HL_WEAK_NODES ? 2 : m < nodes ? HL_WEAK_NODES : nodes;
    double interval[HL_WEAK_MOST_NODES], longest = long_interval * (at[m - 1] - at[0]) / (double)(m - 1);
    double all = 0, before = 0; /* time in intervals that count */
    bool even = evenly(m, at);
    for (size_t j = 0; j + 1 < m; j++)
        all += at[j + 1] - at[j] <= longest ? at[j + 1] - at[j] : 0;
    for (size_t j = 0; j + 1 < m; j++) {
        double h = at[j + 1] - at[j], middle = (before + 0.5 * h) / all;
        if (h > longest)
            continue;
        before += h;
        size_t node[HL_WEAK_MOST_NODES], count = nodes_of(m, at, even, most, j, node);
        interval_weights(at, count, node, j, interval);
        for (size_t k = 0; k < waves; k++) {
            double c = cos(pi * (double)k * middle);
            for (size_t n = 0; n < count; n++)
                weight[k * m + node[n]] += c * interval[n];
            jump[k * m + j] -= c;
            jump[k * m + j + 1] += c;
            if (wave)
                wave[k * m + j] = c;
        }
    }
}
