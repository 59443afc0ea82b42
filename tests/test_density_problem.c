/* test_density_problem.c - the sets of known density: their log p is that of the rows they draw. */
#include "support.h"

#include "problems/density_problem.h"

enum { ROWS = 4000 };

/* For a density that is smooth and vanishes at the ends, the mean of x_i d log p / dx_i is -1 (integration by parts): a wrong scale, a
 * missing derivative of a map or a wrong width change it. Within five standard errors. The checkerboard has edges. */
static void test_stein(void **state)
{
    (void)state;
    for (const density_problem *p = density_problems; p->name; p++) {
        double x[DENSITY_MOST_DIM], sum[DENSITY_MOST_DIM] = { 0 }, square[DENSITY_MOST_DIM] = { 0 };
        size_t rows = p->dim > 3 ? ROWS : ROWS / 16;
        if (strcmp(p->name, "checkerboard") == 0)
            continue;
        for (size_t r = 0; r < rows; r++) {
            p->draw(3, r, x);
            for (size_t i = 0; i < p->dim; i++) {
                double at = x[i], step = 1e-5 * fmax(fabs(at), 1e-12);
                x[i] = at + step;
                double above = p->logp(x);
                x[i] = at - step;
                double value = at * (above - p->logp(x)) / (2 * step);
                sum[i] += value / (double)rows;
                square[i] += value * value / (double)rows;
                x[i] = at;
            }
        }
        for (size_t i = 0; i < p->dim; i++)
            CHECK_NEAR(sum[i], -1, 5 * sqrt((square[i] - sum[i] * sum[i]) / (double)rows), p->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_stein) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
