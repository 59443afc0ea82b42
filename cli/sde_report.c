/* sde_report.c - verdicts and outcomes as JSON. */
#include <math.h>

#include "sde.h"

void sde_print_verdict(cli_json *json, const hl_verdict *v)
{
    static const char *const reasons[] = { "density",   "simulations",      "unexplained",     "speed",
                                           "residuals", "few trajectories", "stationary data", "time dependent",
                                           "few steps", "wide band",        "regression",      "means" };
    cli_json_text(json, "verdict", hl_answer_name(v->answer));
    cli_json_open(json, "reasons", '[');
    for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++)
        if (v->reasons >> k & 1)
            cli_json_text(json, NULL, reasons[k]);
    cli_json_close(json, ']');
    cli_json_real(json, "residual", v->residual);
    cli_json_real(json, "movement", v->movement);
    cli_json_real(json, "movement_noise", v->noise);
    cli_json_real(json, "density_misses", v->density);
    cli_json_real(json, "simulations_miss", v->simulated);
    cli_json_real(json, "unexplained", v->unexplained);
    cli_json_real(json, "steps_miss", v->speed);
    cli_json_count(json, "steps", v->steps);
    cli_json_real(json, "drift_band", v->band);
    cli_json_real(json, "drift_regression", v->regression[0]);
    cli_json_real(json, "diffusion_regression", v->regression[1]);
    for (int k = 0; k < HL_RESIDUAL_TESTS; k++) {
        cli_json_open(json, hl_residual_name((hl_residual)k), '{');
        cli_json_real(json, "effect", v->steps ? v->test[k].effect : NAN);
        cli_json_real(json, "sigma", v->steps ? v->test[k].sigma : NAN);
        cli_json_bool(json, "failed", v->test[k].failed);
        cli_json_close(json, '}');
    }
    cli_json_count(json, "means", v->means);
    cli_json_real(json, "means_drift_band", v->means_band[0]);
    cli_json_real(json, "means_diffusion_band", v->means_band[1]);
    for (int k = 0; k < HL_WEAK_TESTS; k++) {
        cli_json_open(json, hl_weak_test_name((hl_weak_test)k), '{');
        cli_json_real(json, "effect", v->means ? v->means_test[k].effect : NAN);
        cli_json_real(json, "sigma", v->means ? v->means_test[k].sigma : NAN);
        cli_json_bool(json, "failed", v->means_test[k].failed);
        cli_json_close(json, '}');
    }
}

void sde_print_constants(cli_json *json, const hl_sde_forms *forms)
{
    cli_json_open(json, "constants", '[');
    for (size_t k = 0; k < hl_sde_forms_constants(forms); k++) {
        hl_sde_constant c = hl_sde_forms_constant(forms, k);
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", c.name);
        cli_json_exact(json, "value", c.value);
        cli_json_exact(json, "error", c.error);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

void sde_print_outcome(const char *model, const hl_sde *sde, const hl_sde_outcome *o)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "model", model);
    cli_json_text(&json, "method", hl_sde_method_name(o->method));
    cli_json_count(&json, "rows", o->rows);
    cli_json_count(&json, "trajectories", o->trajectories);
    cli_json_count(&json, "components", o->components);
    cli_json_count(&json, "parameters", o->parameters);
    cli_json_count(&json, "iterations", o->iterations);
    cli_json_real(&json, "seconds", o->seconds);
    sde_print_constants(&json, hl_sde_describe(sde).forms);
    sde_print_verdict(&json, &o->verdict);
    cli_json_open(&json, "findings", '[');
    for (size_t k = 0; k < o->findings; k++) {
        char sentence[500];
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "kind", hl_sde_finding_name(o->finding[k].kind));
        cli_json_bool(&json, "fatal", o->finding[k].fatal);
        cli_json_real(&json, "value", o->finding[k].value);
        cli_json_text(&json, "text", hl_sde_finding_text(o, k, sentence, sizeof sentence));
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}
