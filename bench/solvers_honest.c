/* solvers_honest.c - the problems of honest_problem.h by every method: one line for each problem and tolerance, with the problem's own
 * amplification and the worst error of the runs whose status is HL_OK. */
#include <math.h>
#include <string.h>

#include "problems/honest_problem.h"
#include "solvers.h"

static hl_status measure(solver_bench *b, size_t k, size_t tolerance, double amplification)
{
    solver_result r = solver_result_empty("honest", NULL);
    r.problem = honest_problem_get(k)->name;
    r.rtol = honest_tolerances[tolerance];
    r.amplification = amplification;
    r.runs = r.good = r.dishonest = r.error = r.trusted = 0;
    for (const char *const *method = hl_ode_methods(); *method; method++) {
        if (strcmp(*method, "euler") == 0 || strncmp(*method, "ab", 2) == 0)
            continue;
        if (cli_interrupted())
            return HL_STOPPED;
        honest_run run = honest_problem_run(b->ctx, k, *method, tolerance);
        if (run.status == HL_ERR_NOMEM)
            return run.status;
        r.runs++;
        r.trusted = fmax(r.trusted, run.trusted);
        if (run.status == HL_OK) {
            r.good++;
            r.error = fmax(r.error, run.error);
            r.dishonest += run.dishonest;
        }
    }
    solver_bench_add(b, &r);
    return HL_OK;
}

hl_status solver_bench_honest(solver_bench *b)
{
    hl_status status = HL_OK;
    for (size_t k = 0; honest_problem_get(k) && status == HL_OK; k += b->quick ? 8 : 1) {
        double amplification = honest_problem_amplification(b->ctx, k);
        for (size_t tolerance = 0; tolerance < HONEST_TOLERANCES && status == HL_OK; tolerance++)
            status = measure(b, k, tolerance, amplification);
    }
    return status;
}
