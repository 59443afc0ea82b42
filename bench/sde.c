/* sde.c - `hollow bench sde`: what `hollow sde fit` learns of known equations from snapshots, from 5% of the observations of
 * trajectories and from all of them. One line of JSON for each fit: relative errors of drift and diffusion over fresh states, the
 * processor's time, the functions chosen and the verdict, and the errors of the regressions with each dictionary. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"
#include "sde_fit.h"

static const char *const forms[] = { "linear", "poly3", "radial", NULL };

/* ---- one fit ---- */

static hl_status run_regression(sde_run *run, const char *form, sde_result *o)
{
    hl_sde_simple *simple = NULL;
    double start = numbers_cpu_time();
    hl_sde_regress_options options = { .form = form, .seed = run->seed };
    hl_status status = hl_sde_regress(run->ctx, &run->data, run->equation->dim, &options, &simple);
    o->regression_seconds = numbers_cpu_time() - start;
    if (status == HL_OK) {
        hl_sde_regress_report report = hl_sde_simple_report(simple);
        snprintf(o->form, sizeof o->form, "%s", report.form);
        o->correlated = report.correlated;
        status = hl_sde_simple_eval(simple, FRESH_ROWS * SDE_TIMES, run->t, run->fresh, run->f, run->g);
    }
    if (status == HL_OK)
        sde_equation_errors(run->equation, FRESH_ROWS, run->fresh, run->f, run->g, o->error);
    hl_sde_simple_free(simple);
    return status == HL_ERR_NO_SOLUTION ? HL_OK : status;
}

static void put_errors(cli_json *json, const char *name, const sde_result *o)
{
    char key[80];
    snprintf(key, sizeof key, "%sdrift", name);
    cli_json_real(json, key, o->error[0]);
    snprintf(key, sizeof key, "%sdiffusion", name);
    cli_json_real(json, key, o->error[1]);
}

static char *line_of(const sde_run *run, const char *method, const sde_result *o, const sde_result *variants)
{
    char *text = NULL, reasons[300];
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    cli_json json = { .file = file };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "sde");
    cli_json_text(&json, "problem", run->equation->name);
    cli_json_text(&json, "observed", sde_view_names[run->view]);
    cli_json_count(&json, "seed", run->seed);
    cli_json_text(&json, "method", method);
    put_errors(&json, "", o);
    cli_json_text(&json, "form", o->form);
    cli_json_bool(&json, "correlated", o->correlated);
    if (o->verdict[0]) {
        cli_json_text(&json, "verdict", o->verdict);
        sde_reasons_text(o->reasons, reasons, sizeof reasons);
        cli_json_text(&json, "reasons", reasons);
        cli_json_real(&json, "cpu_seconds", o->cpu_seconds);
    }
    cli_json_real(&json, "regression_seconds", variants[0].regression_seconds);
    put_errors(&json, "rule_", &variants[0]);
    for (size_t k = 0; forms[k]; k++) {
        char name[40];
        snprintf(name, sizeof name, "%s_", forms[k]);
        put_errors(&json, name, &variants[k + 1]);
    }
    sde_print_numbers(&json, &o->full);
    cli_json_close(&json, '}');
    fputc('\n', file);
    return fclose(file) == 0 ? text : NULL;
}

static int run_one(sde_run *run, const char *method, bool quick, sde_records *records)
{
    sde_result variants[4], o;
    hl_status status = HL_OK;
    for (size_t k = 0; k < 4 && status == HL_OK; k++) {
        variants[k] = (sde_result){ .error = { NAN, NAN } };
        if (k == 0 || !quick)
            status = run_regression(run, k ? forms[k - 1] : NULL, &variants[k]);
    }
    o = variants[0];
    if (status == HL_OK && strcmp(method, "fit") == 0)
        status = sde_run_learn(run, NULL, NULL, &o);
    if (status != HL_OK)
        return status == HL_STOPPED ? CLI_STOPPED : cli_fail_library(&bench_command, run->ctx, status);
    fprintf(stderr, "%-11s %-9s seed %-3llu  drift %.4f  diffusion %.4f  %-26s %-14s %5.1f s\n", run->equation->name,
            sde_view_names[run->view], (unsigned long long)run->seed, o.error[0], o.error[1], o.form, o.verdict,
            o.verdict[0] ? o.cpu_seconds : variants[0].regression_seconds);
    char *line = line_of(run, method, &o, variants);
    return line ? sde_records_add(records, line) : cli_fail_library(&bench_command, NULL, HL_ERR_NOMEM);
}

/* ---- tables ---- */

static double median_of(const sde_records *r, const char *problem, const char *view, const char *key, size_t *count)
{
    double value[1000];
    char text[40];
    size_t n = 0;
    for (size_t k = 0; k < r->count && n < sizeof value / sizeof *value; k++) {
        const char *line = r->line[k];
        bool own = sde_record_text(line, "problem", text, sizeof text) && strcmp(text, problem) == 0 &&
                   sde_record_text(line, "observed", text, sizeof text) && strcmp(text, view) == 0;
        double v = own ? sde_record_real(line, key) : NAN;
        if (isfinite(v))
            value[n++] = v;
    }
    if (count)
        *count = n;
    return numbers_median(value, n);
}

static void print_error(FILE *file, double drift, double diffusion)
{
    if (isfinite(drift))
        fprintf(file, " %.3f / %.3f |", drift, diffusion);
    else
        fputs(" |", file);
}

/* How often each verdict was given: consistent, contradicted, not determined, refused. */
static void print_verdicts(const sde_records *r, FILE *file, const char *problem, const char *view)
{
    static const char *const names[] = { "consistent", "contradicted", "not determined", "refused" };
    size_t count[4] = { 0 };
    char text[40];
    for (size_t k = 0; k < r->count; k++) {
        const char *line = r->line[k];
        bool own = sde_record_text(line, "problem", text, sizeof text) && strcmp(text, problem) == 0 &&
                   sde_record_text(line, "observed", text, sizeof text) && strcmp(text, view) == 0 &&
                   sde_record_text(line, "verdict", text, sizeof text);
        for (size_t v = 0; v < 4 && own; v++)
            count[v] += strcmp(text, names[v]) == 0;
    }
    if (count[0] + count[1] + count[2] + count[3])
        fprintf(file, " %zu %zu %zu %zu |", count[0], count[1], count[2], count[3]);
    else
        fputs(" |", file);
}

static void print_row(const sde_records *r, FILE *file, const sde_equation *e, const char *view)
{
    size_t seeds, chosen;
    double own[2], best[2] = { INFINITY, INFINITY };
    own[0] = median_of(r, e->name, view, "drift", &seeds);
    own[1] = median_of(r, e->name, view, "diffusion", NULL);
    if (!seeds)
        return;
    fprintf(file, "| %s | %s | %zu |", e->name, view, seeds);
    print_error(file, own[0], own[1]);
    double rule = median_of(r, e->name, view, "rule_drift", &chosen);
    print_error(file, chosen >= seeds ? rule : NAN, median_of(r, e->name, view, "rule_diffusion", NULL));
    for (size_t k = 0; forms[k]; k++) {
        static const char *const parts[] = { "drift", "diffusion" };
        double value[2];
        for (size_t part = 0; part < 2; part++) {
            char key[40];
            snprintf(key, sizeof key, "%s_%s", forms[k], parts[part]);
            size_t runs;
            value[part] = median_of(r, e->name, view, key, &runs);
            if (runs != seeds) /* medians of other seeds do not compare */
                value[part] = NAN;
            best[part] = fmin(best[part], value[part]);
        }
        print_error(file, value[0], value[1]);
    }
    if (isfinite(best[0]))
        fprintf(file, " %.2f / %.2f |", own[0] / best[0], own[1] / best[1]);
    else
        fputs(" |", file);
    print_verdicts(r, file, e->name, view);
    double seconds = median_of(r, e->name, view, "cpu_seconds", NULL);
    fprintf(file, " %.1f |\n", isfinite(seconds) ? seconds : median_of(r, e->name, view, "regression_seconds", NULL));
}

static void print_tables(const sde_records *r, FILE *file)
{
    fputs(
        "# Known equations: errors of drift and diffusion\n\n"
        "Written by `hollow bench sde --out DIR`. Medians over the seeds of relative errors (root mean squares over "
        "20,000 "
        "fresh states) of drift / diffusion:\nof `hollow sde fit` with its defaults, of the regression that the "
        "held-out "
        "rule chooses, and of the regression with each dictionary.\nThe ratio is that of the fit to the best "
        "dictionary, which the fit does not know.\nVerdicts: how "
        "many "
        "fits were called consistent, contradicted, not determined, and how many were refused. CPU: seconds of a fit, "
        "verdict included.\nThe equations are in problems/sde_equation.c.\n\n"
        "| problem | observed | seeds | fit | rule | linear | poly3 | radial | fit / best | verdicts | CPU s |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n",
        file);
    for (const sde_equation *e = sde_equations; e->name; e++)
        for (size_t view = 0; view < SDE_VIEWS; view++)
            print_row(r, file, e, sde_view_names[view]);
}

/* ---- all of them ---- */

static int run_view(sde_run *run, const char *method, bool quick, sde_records *records)
{
    static const char *const keys[] = { "problem", "observed", "seed", "method", NULL };
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->seed);
    const char *values[] = { run->equation->name, sde_view_names[run->view], seed, method };
    if (sde_records_find(records, keys, values))
        return CLI_OK;
    hl_status status = sde_run_observe(run);
    int result = status == HL_OK        ? run_one(run, method, quick, records)
                 : status == HL_STOPPED ? CLI_STOPPED
                                        : cli_fail_library(&bench_command, run->ctx, status);
    sde_problem_forget(&run->data);
    return result;
}

static int run_fits(const bench_sde_options *b, hl_context *ctx, sde_records *records)
{
    const char *list = b->problem ? b->problem : "bench", *view = b->observed ? b->observed : "all";
    const char *method = b->method ? b->method : "fit";
    int result = CLI_OK;
    for (const sde_equation *e = sde_equations; e->name && result == CLI_OK; e++) {
        sde_run run = { .ctx = ctx, .equation = e };
        if (!sde_equation_listed(e, list))
            continue;
        for (size_t s = 0; s < b->seeds && result == CLI_OK; s++)
            for (size_t v = 0; v < SDE_VIEWS && result == CLI_OK; v++)
                if (strcmp(view, "all") == 0 || strcmp(view, sde_view_names[v]) == 0) {
                    run.seed = b->first + s;
                    run.view = (sde_view)v;
                    result = run_view(&run, method, b->quick, records);
                }
        sde_run_free(&run);
    }
    return result;
}

int bench_sde(const bench_sde_options *b)
{
    char word[80];
    if (b->problem && sde_equation_unknown(b->problem, word, sizeof word))
        return cli_fail(&bench_command, CLI_WRONG, "--problem: unknown problem '%s'", word);
    if (b->method && (strcmp(b->method, "fp") == 0 || strcmp(b->method, "pseudo-ml") == 0))
        return bench_sde_network(b);
    hl_context *ctx = NULL;
    sde_records records;
    int result = sde_records_open(&records, b->out, "sde_fit");
    records.quiet = b->markdown;
    hl_status status = HL_OK;
    if (result == CLI_OK)
        status = hl_context_create(&(hl_context_options){ .threads = b->threads, .stop = cli_stop }, &ctx);
    if (status != HL_OK)
        result = cli_fail_library(&bench_command, ctx, status);
    if (result == CLI_OK)
        result = run_fits(b, ctx, &records);
    if (result == CLI_OK)
        result = sde_records_print(&records, "sde_fit.md", print_tables);
    if (result == CLI_OK && b->markdown)
        print_tables(&records, stdout);
    hl_context_free(ctx);
    sde_records_free(&records);
    return result;
}
