/* sde_fit.c - observe a known equation and learn it as `hollow sde fit` does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"
#include "sde_fit.h"

enum { FRESH_SEED = 1000003 };

/* Fresh states, once for each equation. */
static hl_status make_fresh(sde_run *run)
{
    const sde_equation *e = run->equation;
    size_t count = FRESH_ROWS * SDE_TIMES;
    if (run->fresh)
        return HL_OK;
    run->t = calloc(count, sizeof *run->t);
    run->fresh = calloc(count, e->dim * sizeof *run->fresh);
    run->f = calloc(count, e->dim * sizeof *run->f);
    run->g = calloc(count, e->dim * sizeof *run->g);
    run->states = calloc(e->rows * SDE_TIMES, e->dim * sizeof *run->states);
    if (!run->t || !run->fresh || !run->f || !run->g || !run->states)
        return HL_ERR_NOMEM;
    for (size_t k = 0; k < count; k++)
        run->t[k] = e->end / (SDE_TIMES - 1) * (double)(k % SDE_TIMES);
    return sde_equation_simulate(e, run->ctx, FRESH_ROWS, FRESH_SEED, run->fresh);
}

hl_status sde_run_observe(sde_run *run)
{
    const sde_equation *e = run->equation;
    hl_status status = make_fresh(run);
    if (status == HL_OK && run->held != run->seed) {
        status = sde_equation_simulate(e, run->ctx, e->rows, run->seed, run->states);
        run->held = status == HL_OK ? run->seed : 0;
    }
    return status == HL_OK ? sde_equation_observe(e, e->rows, run->states, run->view, run->seed, &run->data) : status;
}

void sde_run_free(sde_run *run)
{
    free(run->states);
    free(run->t);
    free(run->fresh);
    free(run->f);
    free(run->g);
}

hl_status sde_run_errors(sde_run *run, hl_sde *sde, double error[2])
{
    hl_status status =
        hl_sde_eval(sde, FRESH_ROWS * SDE_TIMES, run->t, run->fresh, &(hl_sde_values){ .f = run->f, .g = run->g });
    if (status == HL_OK)
        sde_equation_errors(run->equation, FRESH_ROWS, run->fresh, run->f, run->g, error);
    return status;
}

hl_status sde_run_learn(sde_run *run, const char *const *names, const char *const *values, sde_result *o)
{
    hl_sde_observations data = { .rows = run->data.rows,
                                 .dim = run->equation->dim,
                                 .t = run->data.t,
                                 .x = run->data.x,
                                 .trajectory = run->data.trajectory };
    char seed[24];
    hl_settings *settings = NULL;
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    *o = (sde_result){ .error = { NAN, NAN } };
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->seed);
    hl_status status = hl_settings_create(run->ctx, hl_sde_learn_options(), &settings);
    if (status == HL_OK)
        status = hl_settings_set(settings, "seed", seed);
    for (size_t k = 0; names && names[k] && status == HL_OK; k++)
        status = hl_settings_set(settings, names[k], values[k]);
    double start = numbers_cpu_time();
    if (status == HL_OK)
        status = hl_sde_learn(run->ctx, &data, settings, NULL, &sde, &outcome);
    o->cpu_seconds = numbers_cpu_time() - start;
    bool refused = status == HL_ERR_INVALID && outcome && outcome->findings;
    if (status == HL_OK) {
        o->full = outcome->verdict;
        o->reasons = outcome->verdict.reasons;
        o->correlated = outcome->correlated;
        snprintf(o->verdict, sizeof o->verdict, "%s", hl_answer_name(outcome->verdict.answer));
        snprintf(o->form, sizeof o->form, "%s", outcome->form);
        status = sde_run_errors(run, sde, o->error);
    }
    if (refused) {
        snprintf(o->verdict, sizeof o->verdict, "refused");
        o->reasons = outcome->verdict.reasons;
        status = HL_OK;
    }
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
    hl_settings_free(settings);
    return status;
}

static void print_tests(cli_json *json, const char *key, size_t count, const hl_residual_test *test)
{
    cli_json_open(json, key, '[');
    for (size_t k = 0; k < count; k++) {
        cli_json_real(json, NULL, test[k].effect);
        cli_json_real(json, NULL, test[k].sigma);
    }
    cli_json_close(json, ']');
}

void sde_print_numbers(cli_json *json, const hl_verdict *v)
{
    cli_json_real(json, "simulations_miss", v->simulated);
    cli_json_real(json, "band", v->band);
    cli_json_real(json, "drift_regression", v->regression[0]);
    cli_json_real(json, "diffusion_regression", v->regression[1]);
    print_tests(json, "steps_tests", v->steps ? HL_RESIDUAL_TESTS : 0, v->test);
    cli_json_real(json, "means_drift_band", v->means_band[0]);
    cli_json_real(json, "means_diffusion_band", v->means_band[1]);
    print_tests(json, "means_tests", v->means ? HL_WEAK_TESTS : 0, v->means_test);
}

const char *sde_reasons_text(uint32_t reasons, char *text, size_t size)
{
    static const char *const names[] = { "density",   "simulations",      "unexplained",     "speed",
                                         "residuals", "few trajectories", "stationary data", "time dependent",
                                         "few steps", "wide band",        "regression",      "means" };
    size_t used = 0;
    text[0] = 0;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (reasons >> k & 1 && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", names[k]);
    return text;
}
