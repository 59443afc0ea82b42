/* test_honest.c - no solver says that it succeeded and is wrong: the problems of honest_problem.h by all methods. `hollow bench solvers` has
 * the numbers. */
#include "support.h"

#include <stdio.h>

#include "problems/honest_problem.h"

static void test_list(void **state)
{
    size_t count = 0, answered = 0;
    (void)state;
    for (const stiff_problem *p; (p = honest_problem_get(count)); count++)
        answered += honest_problem_answer(p) != NULL;
    CHECK(count >= 30 && answered == count, "an answer to each of at least 30 problems");
}

/* Stiff problems by the methods for them only, as the others spend their whole budget. */
static void test_honest(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    size_t solved = 0, refused = 0;
    (void)state;
    for (size_t k = 0; honest_problem_get(k); k++)
        for (const char *const *method = hl_ode_methods(); *method; method++) {
            bool stiff = honest_problem_get(k)->y1 || strcmp(honest_problem_get(k)->name, "BRUSS") == 0;
            bool implicit = strstr(*method, "newton") || strstr(*method, "gmres") || strstr(*method, "jacobi");
            if (strncmp(*method, "ab", 2) == 0 || strcmp(*method, "euler") == 0 || (stiff && !implicit))
                continue;
            for (size_t tolerance = 0; tolerance < HONEST_TOLERANCES; tolerance++) {
                if (tolerance && (honest_problem_get(k)->n > 10 || strstr(*method, "fresh")))
                    continue; /* seconds */
                honest_run run = honest_problem_run(ctx, k, *method, tolerance);
                solved += run.status == HL_OK;
                refused += run.status != HL_OK;
                if (run.dishonest)
                    fail_msg("%s by %s at %g: status 0 with an error of %.3g tolerances, of a trusted code %.3g",
                             honest_problem_get(k)->name, *method, honest_tolerances[tolerance], run.error,
                             run.trusted);
            }
        }
    CHECK(solved > 8 * refused, "most runs succeed");
    test_context_free(ctx, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_list), cmocka_unit_test(test_honest) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
