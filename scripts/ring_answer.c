/* ring_answer.c - the ring modulator of problems/honest_problem.c at t = 1e-3 in extended precision, for scripts/honest_answers.py: the values published
 * with the test set have 6 digits. Prints one value a line.
 *
 *     cc -O2 scripts/ring_answer.c -lm -o ring_answer && ./ring_answer TOLERANCE
 *
 * Extrapolation of the explicit midpoint rule (Gragg, Bulirsch, Stoer) of order 2 COLUMNS with a step control of its own: all time scales are
 * resolved, as the problem is not stiff at this tolerance. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 15, COLUMNS = 7 };

static long double diode(long double u)
{
    return 40.67286402e-9L * expm1l(17.7493332L * u);
}

static void ring(long double t, const long double *y, long double *d)
{
    const long double pi = 3.141592653589793238462643383279502884L;
    const long double in1 = .5L * sinl(2e3L * pi * t), in2 = 2 * sinl(2e4L * pi * t);
    const long double q1 = diode(y[2] - y[4] - y[6] - in2), q2 = diode(-y[3] + y[5] - y[6] - in2);
    const long double q3 = diode(y[3] + y[4] + y[6] + in2), q4 = diode(-y[2] - y[5] + y[6] + in2);
    d[0] = (y[7] - .5L * y[9] + .5L * y[10] + y[13] - y[0] / 25e3L) / 1.6e-8L;
    d[1] = (y[8] - .5L * y[11] + .5L * y[12] + y[14] - y[1] / 25e3L) / 1.6e-8L;
    d[2] = (y[9] - q1 + q4) / 2e-12L;
    d[3] = (-y[10] + q2 - q3) / 2e-12L;
    d[4] = (y[11] + q1 - q3) / 2e-12L;
    d[5] = (-y[12] - q2 + q4) / 2e-12L;
    d[6] = (-y[6] / 50 + q1 + q2 - q3 - q4) / 1e-8L;
    d[7] = -y[0] / 4.45L;
    d[8] = -y[1] / 4.45L;
    d[9] = (.5L * y[0] - y[2] - 17.3L * y[9]) / 5e-4L;
    d[10] = (-.5L * y[0] + y[3] - 17.3L * y[10]) / 5e-4L;
    d[11] = (.5L * y[1] - y[4] - 17.3L * y[11]) / 5e-4L;
    d[12] = (-.5L * y[1] + y[5] - 17.3L * y[12]) / 5e-4L;
    d[13] = (-y[0] + in1 - (50 + 36.3L) * y[13]) / 2e-3L;
    d[14] = (-y[1] - (600 + 36.3L) * y[14]) / 2e-3L;
}

/* Gragg's smoothed midpoint rule with `parts` steps over h. */
static void midpoint(long double t, long double h, int parts, const long double *y, const long double *f,
                     long double *out)
{
    long double before[N], now[N], d[N], part = h / parts;
    for (int i = 0; i < N; i++) {
        before[i] = y[i];
        now[i] = y[i] + part * f[i];
    }
    for (int k = 1; k <= parts; k++) {
        ring(t + k * part, now, d);
        for (int i = 0; i < N; i++) {
            long double next = before[i] + 2 * part * d[i];
            if (k == parts)
                out[i] = .5L * (now[i] + before[i] + part * d[i]);
            before[i] = now[i];
            now[i] = next;
        }
    }
}

/* y to t + h; the difference of the two last columns over the tolerance is returned. */
static long double step(long double t, long double h, long double tolerance, const long double *y, long double *out)
{
    long double table[COLUMNS][N], f[N], worst = 0;
    ring(t, y, f);
    for (int k = 0; k < COLUMNS; k++) {
        midpoint(t, h, 2 * (k + 1), y, f, table[k]);
        for (int j = k; j-- > 0;) { /* table[j] goes one column to the right */
            long double ratio = (long double)(k + 1) / (j + 1), factor = 1 / (ratio * ratio - 1);
            for (int i = 0; i < N; i++) {
                long double better = table[j + 1][i] + (table[j + 1][i] - table[j][i]) * factor;
                if (k == COLUMNS - 1 && j == 0)
                    worst = fmaxl(worst, fabsl(better - table[j + 1][i]) / (tolerance * (1e-3L + fabsl(better))));
                table[j][i] = better;
            }
        }
    }
    memcpy(out, table[0], sizeof *table);
    return worst;
}

int main(int count, char **argument)
{
    long double y[N] = { 0 }, next[N], t = 0, h = 1e-12L, end = 1e-3L;
    long double tolerance = count > 1 ? strtold(argument[1], NULL) : 1e-16L;
    size_t steps = 0;
    while (t < end) {
        long double left = end - t, taken = h < left ? h : left;
        long double error = step(t, taken, tolerance, y, next);
        if (error <= 1) {
            memcpy(y, next, sizeof y);
            t = taken == left ? end : t + taken;
            steps++;
        }
        long double factor = error > 0 ? .8L * powl(error, -1.L / (2 * COLUMNS - 1)) : 4;
        h = taken * fminl(4, fmaxl(.1L, factor)); /* fmaxl takes .1 for NaN */
    }
    fprintf(stderr, "%zu steps\n", steps);
    for (int i = 0; i < N; i++)
        printf("%.20Lg\n", y[i]);
    return 0;
}
