/* ring_answer.c - the ring modulator of problems/honest_problem.c at t = 1e-3, for problems/honest_problem.c and scripts/honest_answers.py. Prints one
 * value a line.
 *
 *     cc -O2 scripts/ring_answer.c -lm -o ring_answer && ./ring_answer TOLERANCE [MOVED]
 *
 * Extrapolation of the explicit midpoint rule (Gragg, Bulirsch, Stoer) of order 2 COLUMNS, with sums that are compensated: stability
 * keeps steps so small that what is left are rounding errors. A minute. With MOVED, the values of the start are not 0 but +MOVED and -MOVED in
 * turn, as honest_problem_amplification moves them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 15, COLUMNS = 4 };

static double diode(double u)
{
    return 40.67286402e-9 * expm1(17.7493332 * u);
}

static void ring(double t, const double *y, double *d)
{
    const double pi = 3.141592653589793238462643383279502884;
    const double in1 = .5 * sin(2e3 * pi * t), in2 = 2 * sin(2e4 * pi * t);
    const double q1 = diode(y[2] - y[4] - y[6] - in2), q2 = diode(-y[3] + y[5] - y[6] - in2);
    const double q3 = diode(y[3] + y[4] + y[6] + in2), q4 = diode(-y[2] - y[5] + y[6] + in2);
    d[0] = (y[7] - .5 * y[9] + .5 * y[10] + y[13] - y[0] / 25e3) / 1.6e-8;
    d[1] = (y[8] - .5 * y[11] + .5 * y[12] + y[14] - y[1] / 25e3) / 1.6e-8;
    d[2] = (y[9] - q1 + q4) / 2e-12;
    d[3] = (-y[10] + q2 - q3) / 2e-12;
    d[4] = (y[11] + q1 - q3) / 2e-12;
    d[5] = (-y[12] - q2 + q4) / 2e-12;
    d[6] = (-y[6] / 50 + q1 + q2 - q3 - q4) / 1e-8;
    d[7] = -y[0] / 4.45;
    d[8] = -y[1] / 4.45;
    d[9] = (.5 * y[0] - y[2] - 17.3 * y[9]) / 5e-4;
    d[10] = (-.5 * y[0] + y[3] - 17.3 * y[10]) / 5e-4;
    d[11] = (.5 * y[1] - y[4] - 17.3 * y[11]) / 5e-4;
    d[12] = (-.5 * y[1] + y[5] - 17.3 * y[12]) / 5e-4;
    d[13] = (-y[0] + in1 - (50 + 36.3) * y[13]) / 2e-3;
    d[14] = (-y[1] - (600 + 36.3) * y[14]) / 2e-3;
}

/* Gragg's smoothed midpoint rule with `parts` steps over h. */
static void midpoint(double t, double h, int parts, const double *y, const double *f, double *out)
{
    double before[N], now[N], at[N], d[N], part = h / parts; /* before and now: changes of y */
    for (int i = 0; i < N; i++) {
        before[i] = 0;
        now[i] = part * f[i];
    }
    for (int k = 1; k <= parts; k++) {
        for (int i = 0; i < N; i++)
            at[i] = y[i] + now[i];
        ring(t + k * part, at, d);
        for (int i = 0; i < N; i++) {
            double next = before[i] + 2 * part * d[i];
            if (k == parts)
                out[i] = .5 * (now[i] + before[i] + part * d[i]);
            before[i] = now[i];
            now[i] = next;
        }
    }
}

/* The change of y to t + h; the difference of the two last columns over the tolerance is returned. */
static double step(double t, double h, double tolerance, const double *y, double *out)
{
    double table[COLUMNS][N], f[N], worst = 0;
    ring(t, y, f);
    for (int k = 0; k < COLUMNS; k++) {
        midpoint(t, h, 2 * (k + 1), y, f, table[k]);
        for (int j = k; j-- > 0;) { /* table[j] goes one column to the right */
            double ratio = (double)(k + 1) / (j + 1), factor = 1 / (ratio * ratio - 1);
            for (int i = 0; i < N; i++) {
                double better = table[j + 1][i] + (table[j + 1][i] - table[j][i]) * factor;
                if (k == COLUMNS - 1 && j == 0)
                    worst = fmax(worst, fabs(better - table[j + 1][i]) / (tolerance * (1e-3 + fabs(y[i]))));
                table[j][i] = better;
            }
        }
    }
    memcpy(out, table[0], sizeof *table);
    return worst;
}

int main(int count, char **argument)
{
    double y[N] = { 0 }, lost[N] = { 0 }, next[N], t = 0, h = 1e-12, end = 1e-3;
    double tolerance = count > 1 ? strtod(argument[1], NULL) : 1e-13;
    double moved = count > 2 ? strtod(argument[2], NULL) : 0;
    size_t steps = 0;
    for (int i = 0; i < N; i++)
        y[i] = i % 2 ? -moved : moved;
    while (t < end) {
        double left = end - t, taken = h < left ? h : left;
        double error = step(t, taken, tolerance, y, next);
        if (error <= 1) {
            for (int i = 0; i < N; i++) { /* y + lost is the value */
                double change = next[i] + lost[i], sum = y[i] + change;
                lost[i] = change - (sum - y[i]);
                y[i] = sum;
            }
            t = taken == left ? end : t + taken;
            steps++;
        }
        double factor = error > 0 ? .8 * pow(error, -1. / (2 * COLUMNS - 1)) : 4;
        h = taken * fmin(4, fmax(.1, factor)); /* fmax takes .1 for NaN */
    }
    fprintf(stderr, "%zu steps\n", steps);
    for (int i = 0; i < N; i++)
        printf("%.17g\n", y[i]);
    return 0;
}
