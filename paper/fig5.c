/* fig5.c - `hollow paper fig5`: errors of learned drift and diffusion against the share of the observations that is kept, by
 * Fokker-Planck matching, by pseudo-maximum likelihood, and by what `hollow sde fit` does without options, a regression.
 *
 * A seed makes the trajectories, which of their states are kept, and the networks' first weights; all methods see the same
 * observations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hollow/sde_learn.h"
#include "paper.h"
#include "problems/numbers.h"
#include "problems/sde_problem.h"

enum { MATCHING, PSEUDO, REGRESSION, METHODS, MOST_SHARES = 5, MOST_SEEDS = 3 };

/* How each method trains. Those of Fokker-Planck matching are the library's defaults, but with the residual
 * of each point, as in the paper; docs/paper.md tells how those of
 * pseudo-likelihood were found. */
static const struct {
    const char *name, *title, *colour;
    hl_sde_spec spec;
    hl_sde_fit_options fit;
} methods[METHODS] = {
    { "fp",
      "Fokker–Planck matching",
      CLI_BLUE,
      { .network = "mlp" },
      { .method = HL_SDE_FOKKER_PLANCK, .smooth = -1 } },
    { "pseudo-ml",
      "pseudo-maximum likelihood",
      CLI_ORANGE,
      { .network = "mlp" },
      { .method = HL_SDE_PSEUDO_LIKELIHOOD, .variance_floor = 1e-4 } },
    { "regression", "regression (hollow sde fit)", CLI_GREEN, { 0 }, { 0 } },
};

typedef struct fig5 {
    const paper_settings *set;
    hl_context *ctx;
    size_t shares, seeds, train, fresh, iterations; /* iterations 0: those of the method */
    double share[MOST_SHARES];
    double *states, *judge; /* trajectories to learn from and to judge by */
    size_t observations[MOST_SHARES][MOST_SEEDS];
    sde_outcome outcome[MOST_SHARES][METHODS][MOST_SEEDS];
} fig5;

/* ---- the work ---- */

/* As `hollow sde fit --bands 0`: regression, density and verdict. */
static hl_status learn_default(fig5 *a, const hl_sde_data *data, size_t seed, hl_sde **sde, sde_outcome *o)
{
    hl_sde_observations given = {
        .rows = data->rows, .dim = 2, .t = data->t, .x = data->x, .trajectory = data->trajectory
    };
    char text[24];
    hl_settings *settings = NULL;
    double start = cli_now(), cpu = numbers_cpu_time();
    *o = (sde_outcome){ 0 };
    *sde = NULL;
    snprintf(text, sizeof text, "%llu", (unsigned long long)(a->set->seed + seed));
    hl_status status = hl_settings_create(a->ctx, hl_sde_learn_options(), &settings);
    if (status == HL_OK)
        status = hl_settings_set(settings, "seed", text);
    if (status == HL_OK)
        status = hl_settings_set(settings, "bands", "0");
    if (status == HL_OK)
        status = hl_sde_learn(a->ctx, &given, settings, NULL, sde, NULL);
    hl_settings_free(settings);
    o->seconds = cli_now() - start;
    o->cpu_seconds = numbers_cpu_time() - cpu;
    return status;
}

static hl_status learn(fig5 *a, const hl_sde_data *data, size_t share, int method, size_t seed)
{
    hl_sde_fit_options fit = methods[method].fit;
    sde_outcome *o = &a->outcome[share][method][seed];
    hl_sde *sde;
    fit.seed = a->set->seed + seed;
    if (a->iterations)
        fit.iterations = a->iterations;
    hl_status status = method == REGRESSION
                           ? learn_default(a, data, seed, &sde, o)
                           : sde_problem_learn(&sde_pendulum, a->ctx, &methods[method].spec, &fit, data, &sde, o);
    if (status == HL_OK)
        status = sde_problem_judge(&sde_pendulum, sde, a->fresh, a->judge, o);
    hl_sde_free(sde);
    if (status == HL_OK)
        fprintf(stderr, "  %3.0f%% kept  %-10s  MAE of the drift %.4f, of the diffusion %.4f  %5.1f s\n",
                100 * a->share[share], methods[method].name, o->drift, o->diffusion, o->seconds);
    return status;
}

static hl_status run_seed(fig5 *a, size_t seed)
{
    uint64_t number = a->set->seed + seed;
    hl_status status = sde_problem_simulate(&sde_pendulum, a->ctx, a->train, number, a->states);
    fprintf(stderr, "seed %llu\n", (unsigned long long)number);
    for (size_t i = 0; i < a->shares && status == HL_OK; i++) {
        hl_sde_data data;
        status = sde_problem_observe(&sde_pendulum, a->train, a->states, a->share[i], number, &data);
        a->observations[i][seed] = data.rows;
        for (int m = 0; m < METHODS && status == HL_OK; m++)
            status = learn(a, &data, i, m, seed);
        sde_problem_forget(&data);
    }
    return status;
}

static int compute(fig5 *a)
{
    hl_status status = hl_context_create(&(hl_context_options){ .threads = (int)a->set->threads }, &a->ctx);
    a->states = calloc(a->train * SDE_TIMES, 2 * sizeof *a->states);
    a->judge = calloc(a->fresh * SDE_TIMES, 2 * sizeof *a->judge);
    if (status == HL_OK && (!a->states || !a->judge))
        status = HL_ERR_NOMEM;
    if (status == HL_OK) /* a stream that no seed of training has */
        status = sde_problem_simulate(&sde_pendulum, a->ctx, a->fresh, a->set->seed + 1000, a->judge);
    for (size_t s = 0; s < a->seeds && status == HL_OK; s++)
        status = run_seed(a, s);
    if (status == HL_STOPPED)
        return CLI_STOPPED;
    return status == HL_OK ? CLI_OK : cli_fail_library(&paper_command, a->ctx, status);
}

/* ---- the files ---- */

/* Over the seeds. */
typedef struct summary {
    double drift, drift_sd, diffusion, diffusion_sd, cpu_seconds;
} summary;

static summary summarise(const fig5 *a, size_t share, int method)
{
    double drift[MOST_SEEDS], diffusion[MOST_SEEDS], cpu_seconds[MOST_SEEDS];
    summary s;
    for (size_t k = 0; k < a->seeds; k++) {
        const sde_outcome *o = &a->outcome[share][method][k];
        drift[k] = o->drift;
        diffusion[k] = o->diffusion;
        cpu_seconds[k] = o->cpu_seconds;
    }
    s.drift = paper_mean(drift, a->seeds, &s.drift_sd);
    s.diffusion = paper_mean(diffusion, a->seeds, &s.diffusion_sd);
    s.cpu_seconds = paper_mean(cpu_seconds, a->seeds, NULL);
    return s;
}

static int write_csv(FILE *out, const void *figure)
{
    const fig5 *a = figure;
    fprintf(out, "kept,method,seed,observations,drift_mae,diffusion_mae,seconds,cpu_seconds\n");
    for (size_t i = 0; i < a->shares; i++)
        for (int m = 0; m < METHODS; m++)
            for (size_t s = 0; s < a->seeds; s++) {
                const sde_outcome *o = &a->outcome[i][m][s];
                fprintf(out, "%g,%s,%llu,%zu,%.6g,%.6g,%.3f,%.3f\n", a->share[i], methods[m].name,
                        (unsigned long long)(a->set->seed + s), a->observations[i][s], o->drift, o->diffusion,
                        o->seconds, o->cpu_seconds);
            }
    return 0;
}

static int write_json(FILE *out, const void *figure)
{
    const fig5 *a = figure;
    cli_json json = { .file = out };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "paper", "fig5");
    cli_json_count(&json, "trajectories", a->train);
    cli_json_count(&json, "judged_by", a->fresh);
    cli_json_count(&json, "seed", a->set->seed);
    cli_json_count(&json, "seeds", a->seeds);
    cli_json_bool(&json, "quick", a->set->quick);
    cli_json_open(&json, "results", '[');
    for (size_t i = 0; i < a->shares; i++)
        for (int m = 0; m < METHODS; m++) {
            summary s = summarise(a, i, m);
            cli_json_open(&json, NULL, '{');
            cli_json_real(&json, "kept", a->share[i]);
            cli_json_text(&json, "method", methods[m].name);
            cli_json_real(&json, "drift_mae_mean", s.drift);
            cli_json_real(&json, "drift_mae_sd", s.drift_sd);
            cli_json_real(&json, "diffusion_mae_mean", s.diffusion);
            cli_json_real(&json, "diffusion_mae_sd", s.diffusion_sd);
            cli_json_real(&json, "cpu_seconds_mean", s.cpu_seconds);
            cli_json_close(&json, '}');
        }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    fputc('\n', out);
    return 0;
}

/* ---- the picture ---- */

static void draw_panel(FILE *g, int panel)
{
    double left = .09 + .5 * panel;
    fprintf(g,
            "set lmargin at screen %.4f\nset rmargin at screen %.4f\nset title '%s'\n"
            "set ylabel 'mean absolute error of %s' offset 0\n%splot ",
            left, left + .39, panel ? "Diffusion" : "Drift", panel ? "{/:Italic g}" : "{/:Italic f}",
            panel ? "unset key\n" : "set key bottom right\n");
    static const int point[METHODS] = { 7, 5, 9 };
    for (int m = 0; m < METHODS; m++) {
        int value = panel ? 4 : 2;
        double low = 1e-4; /* an axis of logarithms has no room for less */
        fprintf(g,
                "%s$m%d using 1:%d:($%d-$%d>%g?$%d-$%d:%g):($%d+$%d) with yerrorbars linewidth 2 pointtype 0 linecolor "
                "rgb '%s' notitle, $m%d using 1:%d with linespoints linewidth 2.5 pointtype %d pointsize 1.4 linecolor "
                "rgb '%s' title '%s'",
                m ? ", " : "", m, value, value, value + 1, low, value, value + 1, low, value, value + 1,
                methods[m].colour, m, value, point[m], methods[m].colour, methods[m].title);
    }
    fputc('\n', g);
}

static int draw(FILE *g, const void *figure)
{
    const fig5 *a = figure;
    for (int m = 0; m < METHODS; m++) {
        fprintf(g, "$m%d << EOD\n", m);
        for (size_t i = 0; i < a->shares; i++) {
            summary s = summarise(a, i, m);
            fprintf(g, "%g %g %g %g %g\n", 100 * a->share[i], s.drift, isnan(s.drift_sd) ? 0 : s.drift_sd, s.diffusion,
                    isnan(s.diffusion_sd) ? 0 : s.diffusion_sd);
        }
        fprintf(g, "EOD\n");
    }
    fprintf(g,
            "set multiplot\nset logscale xy\n"
            "set tmargin at screen 0.775\nset bmargin at screen 0.135\nset xrange [115:4.5]\nset yrange [0.0008:2]\n"
            "set xtics (100, 50, 20, 10, 5)\nset ytics (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2)\n"
            "set xlabel 'observations kept, %% of 50 per trajectory' offset 0,-0.3\n"
            "set label 1 'Learning a noisy pendulum from fewer and fewer observations' at screen 0.03, screen 0.945 "
            "font ',20' textcolor rgb '" CLI_INK "'\n"
            "set label 2 '%zu trajectories; errors over the states of %zu fresh ones; %s' at screen 0.03, screen 0.893 "
            "font ',13' textcolor rgb '" CLI_SOFT "'\n",
            a->train, a->fresh, a->seeds > 1 ? "mean and standard deviation of three seeds" : "one seed");
    draw_panel(g, 0);
    fprintf(g, "unset label\n");
    draw_panel(g, 1);
    fprintf(g, "unset multiplot\n");
    return 0;
}

static const paper_file files[] = { { "fig5.csv", write_csv, 0, 0 },
                                    { "fig5.json", write_json, 0, 0 },
                                    { "fig5.png", draw, 1300, 640 } };

static int run(const paper_settings *set)
{
    static const double shares[MOST_SHARES] = { 1, 0.5, 0.2, 0.1, 0.05 }, quick[] = { 1, 0.05 };
    fig5 a = { .set = set, .shares = MOST_SHARES, .seeds = MOST_SEEDS, .train = SDE_TRAIN, .fresh = SDE_FRESH };
    memcpy(a.share, shares, sizeof shares);
    if (set->quick) {
        a = (fig5){ .set = set, .shares = 2, .seeds = 1, .train = 200, .fresh = 50, .iterations = 50 };
        memcpy(a.share, quick, sizeof quick);
    }
    int error = cli_make_directory(set->out);
    if (error)
        return cli_fail(&paper_command, CLI_WRONG, "cannot write to %s: %s", set->out, strerror(error));
    int result = compute(&a);
    if (result == CLI_OK)
        result = paper_write(set, sizeof files / sizeof *files, files, &a);
    if (result == CLI_STOPPED)
        cli_say(&paper_command, "stopped");
    free(a.states);
    free(a.judge);
    hl_context_free(a.ctx);
    return result;
}

const paper_item paper_fig5 = {
    "fig5", "errors with sparse observations: Fokker-Planck matching, pseudo-likelihood and regression", run
};
