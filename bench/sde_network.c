/* sde_network.c - `hollow bench sde --method fp|pseudo-ml`: networks that learn known equations from all and from 5% of the
 * observations of 5000 trajectories, by Fokker-Planck matching or by pseudo-likelihood. One line of JSON for each run: mean absolute errors over the states of 2,000
 * fresh trajectories, and the seconds of training. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/sde_problem.h"

/* Problems of more columns than MANY are trained with FEWER iterations by default, so that a run takes about 20 s. */
enum { MANY = 5, FEWER = 1000 };

/* Trajectories to learn from and to judge by. */
static size_t train_rows(const bench_sde_options *b)
{
    return b->quick ? SDE_TRAIN / 10 : SDE_TRAIN;
}
static size_t fresh_rows(const bench_sde_options *b)
{
    return b->quick ? SDE_FRESH / 10 : SDE_FRESH;
}

/* What `hollow sde fit` and `eval` would say of the model. */
static hl_status judge(hl_context *ctx, hl_sde *sde, const hl_sde_data *data, hl_verdict *verdict)
{
    hl_judge *judge = NULL;
    hl_status status = hl_judge_create(ctx, hl_sde_describe(sde).dim, data, NULL, &judge);
    if (status == HL_OK)
        status = hl_judge_model(judge, sde);
    *verdict = hl_judge_verdict(judge);
    hl_judge_free(judge);
    return status;
}

static void print(const sde_problem *p, const hl_sde *sde, const hl_sde_fit_options *fit, double share,
                  const sde_outcome *o, const hl_verdict *v)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "sde");
    cli_json_text(&json, "problem", p->name);
    cli_json_text(&json, "method", hl_sde_method_name(fit->method));
    cli_json_text(&json, "network", hl_sde_describe(sde).network);
    cli_json_text(&json, "density", hl_sde_describe(sde).density);
    cli_json_real(&json, "kept", share);
    cli_json_count(&json, "seed", fit->seed);
    cli_json_real(&json, "drift_mae", o->drift);
    cli_json_real(&json, "diffusion_mae", o->diffusion);
    cli_json_count(&json, "components", hl_sde_describe(sde).components);
    cli_json_text(&json, "verdict", hl_answer_name(v->answer));
    cli_json_real(&json, "unexplained", v->unexplained);
    cli_json_real(&json, "density_misses", v->density);
    cli_json_real(&json, "simulations_miss", v->simulated);
    cli_json_count(&json, "reasons", v->reasons);
    cli_json_real(&json, "steps_drift", v->test[HL_RESIDUAL_DRIFT].effect);
    cli_json_real(&json, "steps_diffusion", v->test[HL_RESIDUAL_DIFFUSION].effect);
    cli_json_real(&json, "loss", o->loss);
    cli_json_real(&json, "nll", o->nll);
    cli_json_real(&json, "seconds", o->seconds);
    cli_json_real(&json, "cpu_seconds", o->cpu_seconds);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
    fprintf(stderr, "%-9s %-10s %3.0f%% kept  seed %llu  MAE of the drift %.4f, of the diffusion %.4f  %-14s %5.1f s\n",
            p->name, hl_sde_method_name(fit->method), 100 * share, (unsigned long long)fit->seed, o->drift,
            o->diffusion, hl_answer_name(v->answer), o->seconds);
}

/* Both methods, or the one that is asked for, on one set of observations. */
static hl_status compare(const sde_problem *p, hl_context *ctx, const bench_sde_options *b, uint64_t seed, double share,
                         const hl_sde_data *data, const double *fresh)
{
    hl_sde_spec spec = { .network = b->network,
                         .density = b->density,
                         .hidden = b->hidden,
                         .net = { .hidden = b->hidden, .width = b->hidden } };
    hl_status status = HL_OK;
    for (int m = 0; m < 2 && status == HL_OK; m++) {
        hl_sde_fit_options fit = { .method = m == 0 ? HL_SDE_FOKKER_PLANCK : HL_SDE_PSEUDO_LIKELIHOOD,
                                   .iterations = b->iterations || p->dim <= MANY ? b->iterations : FEWER,
                                   .optimizer = { .rate = b->rate },
                                   .seed = seed };
        sde_outcome outcome = { 0 };
        hl_sde *sde;
        if (b->method && strcmp(b->method, hl_sde_method_name((hl_sde_method)m)) != 0)
            continue;
        double start = cli_now();
        spec.dim = p->dim;
        spec.components = 0;
        if (m == 0 && !(b->density && strcmp(b->density, "flow") == 0)) /* as `hollow sde fit` does */
            status = hl_sde_choose_components(ctx, &spec, data, &fit, &spec.components);
        start = cli_now() - start;
        sde = NULL;
        if (status == HL_OK)
            status = sde_problem_learn(p, ctx, &spec, &fit, data, &sde, &outcome);
        outcome.seconds += start;
        if (status == HL_OK)
            status = sde_problem_judge(p, sde, fresh_rows(b), fresh, &outcome);
        hl_verdict verdict;
        if (status == HL_OK)
            status = judge(ctx, sde, data, &verdict);
        if (status == HL_OK)
            print(p, sde, &fit, share, &outcome, &verdict);
        hl_sde_free(sde);
    }
    return status;
}

static hl_status run(const sde_problem *p, hl_context *ctx, const bench_sde_options *b, double *states, double *fresh)
{
    const double shares[] = { b->kept > 0 ? b->kept : 1, 0.05 };
    hl_status status = sde_problem_simulate(p, ctx, fresh_rows(b), 1000, fresh);
    for (uint64_t seed = 1; seed <= b->seeds && status == HL_OK; seed++) {
        status = sde_problem_simulate(p, ctx, train_rows(b), seed, states);
        for (int i = 0; i < (b->kept > 0 ? 1 : 2) && status == HL_OK; i++) {
            hl_sde_data data;
            status = sde_problem_observe(p, train_rows(b), states, shares[i], seed, &data);
            if (status == HL_OK)
                status = compare(p, ctx, b, seed, shares[i], &data, fresh);
            sde_problem_forget(&data);
        }
    }
    return status;
}

int bench_sde_network(const bench_sde_options *b)
{
    const sde_problem *p = b->problem ? NULL : &sde_pendulum;
    for (size_t i = 0; b->problem && sde_problems[i]; i++)
        if (strcmp(b->problem, sde_problems[i]->name) == 0)
            p = sde_problems[i];
    if (!p)
        return cli_fail(&bench_command, CLI_WRONG, "--method %s supports the old problems only, not '%s'", b->method,
                        b->problem);
    hl_context *ctx = NULL;
    double *states = calloc(train_rows(b) * SDE_TIMES, p->dim * sizeof *states);
    double *fresh = calloc(fresh_rows(b) * SDE_TIMES, p->dim * sizeof *fresh);
    hl_status status = states && fresh ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_context_create(&(hl_context_options){ .threads = b->threads }, &ctx);
    if (status == HL_OK)
        status = run(p, ctx, b, states, fresh);
    int result = status == HL_OK        ? CLI_OK
                 : status == HL_STOPPED ? CLI_STOPPED
                                        : cli_fail_library(&bench_command, ctx, status);
    hl_context_free(ctx);
    free(states);
    free(fresh);
    return result;
}
