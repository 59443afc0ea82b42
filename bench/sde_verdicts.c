/* sde_verdicts.c - `hollow bench sde --verdicts`: what is said of models that are wrong on purpose, and of the fits of
 * `hollow bench sde` in the same directory. One line of JSON for each wrong model. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "sde_fit.h"

/* A fit that an option, or the equation itself, makes wrong. */
static const struct wrong {
    const char *kind, *problem;
    unsigned views; /* bits of 1 << sde_view */
    const char *option, *value;
} wrongs[] = {
    { "half the diffusion", "ou", 7, "known-diffusion", "x1=0.2" },
    { "half the diffusion", "well", 5, "known-diffusion", "x1=0.225" },
    { "half the diffusion", "bist", 5, "known-diffusion", "x1=0.25" },
    { "half the diffusion", "spiral", 4, "known-diffusion", "x1=0.45;x2=0.45" },
    { "no cross terms", "corr", 7, "noise", "diagonal" },
    { "no cross terms", "shear", 5, "noise", "diagonal" },
    { "no wells", "bist", 5, "form", "linear" },
    { "no wells", "well", 5, "form", "linear" },
    { "no time dependence", "sqrtt", 7, NULL, NULL },
    { "no time dependence", "fading", 7, NULL, NULL },
    { "a frozen density", "cir", 1, "iters", "3" },
    { "a frozen density", "lv", 1, "iters", "3" },
};
enum { WRONGS = sizeof wrongs / sizeof *wrongs };
static const double large = 0.25, small = 0.1; /* errors of drift or diffusion */

static char *line_of(const struct wrong *w, const sde_run *run, const sde_result *o)
{
    char *text = NULL, reasons[300];
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return NULL;
    cli_json json = { .file = file };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "sde verdicts");
    cli_json_text(&json, "wrong", w->kind);
    cli_json_text(&json, "problem", w->problem);
    cli_json_text(&json, "observed", sde_view_names[run->view]);
    cli_json_count(&json, "seed", run->seed);
    cli_json_real(&json, "drift", o->error[0]);
    cli_json_real(&json, "diffusion", o->error[1]);
    cli_json_text(&json, "verdict", o->verdict);
    cli_json_text(&json, "reasons", sde_reasons_text(o->reasons, reasons, sizeof reasons));
    cli_json_close(&json, '}');
    fputc('\n', file);
    return fclose(file) == 0 ? text : NULL;
}

static int run_one(const struct wrong *w, sde_run *run, sde_records *records)
{
    static const char *const keys[] = { "wrong", "problem", "observed", "seed", NULL };
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->seed);
    if (sde_records_find(records, keys, (const char *const[]){ w->kind, w->problem, sde_view_names[run->view], seed }))
        return CLI_OK;
    sde_result o;
    const char *const names[] = { w->option, NULL }, *const values[] = { w->value, NULL };
    hl_status status = sde_run_observe(run);
    if (status == HL_OK)
        status = sde_run_learn(run, names, values, &o);
    sde_problem_forget(&run->data);
    if (status != HL_OK)
        return status == HL_STOPPED ? CLI_STOPPED : cli_fail_library(&bench_command, run->ctx, status);
    fprintf(stderr, "%-20s %-8s %-9s seed %-3s drift %.3f  diffusion %.3f  %s\n", w->kind, w->problem,
            sde_view_names[run->view], seed, o.error[0], o.error[1], o.verdict);
    char *line = line_of(w, run, &o);
    return line ? sde_records_add(records, line) : cli_fail_library(&bench_command, NULL, HL_ERR_NOMEM);
}

/* ---- table ---- */

static double largest_error(const char *line)
{
    return fmax(sde_record_real(line, "drift"), sde_record_real(line, "diffusion"));
}

/* Counts of the answers among lines of one kind (NULL: any) whose larger error is in low..high. */
static void count(const sde_records *r, const char *kind, double low, double high, size_t answers[4])
{
    static const char *const names[] = { "consistent", "contradicted", "not determined", "refused" };
    char text[40];
    memset(answers, 0, 4 * sizeof *answers);
    for (size_t k = 0; k < r->count; k++) {
        double error = largest_error(r->line[k]);
        bool own = !kind || (sde_record_text(r->line[k], "wrong", text, sizeof text) && strcmp(text, kind) == 0);
        bool inside = isnan(error) ? high == INFINITY : error >= low && error < high; /* refused: no errors */
        if (!own || !inside || !sde_record_text(r->line[k], "verdict", text, sizeof text))
            continue;
        for (size_t v = 0; v < 4; v++)
            answers[v] += strcmp(text, names[v]) == 0;
    }
}

static void print_counts(FILE *file, const char *name, const char *error, const size_t n[4])
{
    fprintf(file, "| %s | %s | %zu | %zu | %zu | %zu |\n", name, error, n[0], n[1], n[2], n[3]);
}

static void print_table(const sde_records *r, FILE *file)
{
    sde_records fits;
    size_t n[4];
    fputs("# Verdicts on right and on wrong models\n\nWritten by `hollow bench sde --verdicts --out DIR`. Fits are "
          "those of "
          "`hollow bench sde --out DIR`; wrong models are made by options, or by an equation that depends on "
          "time.\nThe error "
          "is the larger of the relative errors of drift and diffusion.\n\n"
          "| models | error | consistent | contradicted | not determined | refused |\n|---|---|---|---|---|---|\n",
          file);
    if (sde_records_open(&fits, r->directory, "sde_fit") == CLI_OK) {
        count(&fits, NULL, 0, small, n);
        print_counts(file, "fits", "below 10 %", n);
        count(&fits, NULL, small, large, n);
        print_counts(file, "fits", "10 to 25 %", n);
        count(&fits, NULL, large, INFINITY, n);
        print_counts(file, "fits", "above 25 %", n);
        sde_records_free(&fits);
    }
    for (size_t k = 0; k < WRONGS; k++)
        if (k == 0 || strcmp(wrongs[k].kind, wrongs[k - 1].kind) != 0) {
            count(r, wrongs[k].kind, 0, large, n);
            print_counts(file, wrongs[k].kind, "below 25 %", n);
            count(r, wrongs[k].kind, large, INFINITY, n);
            print_counts(file, wrongs[k].kind, "above 25 %", n);
        }
}

int bench_sde_verdicts(const bench_sde_options *b)
{
    hl_context *ctx = NULL;
    sde_records records;
    int result = sde_records_open(&records, b->out, "sde_verdicts");
    hl_status status = HL_OK;
    if (result == CLI_OK)
        status = hl_context_create(&(hl_context_options){ .threads = b->threads, .stop = cli_stop }, &ctx);
    if (status != HL_OK)
        result = cli_fail_library(&bench_command, ctx, status);
    for (size_t k = 0; k < WRONGS && result == CLI_OK; k++) {
        const sde_equation *e = sde_equation_find(wrongs[k].problem);
        sde_run run = { .ctx = ctx, .equation = e };
        if (b->problem && !sde_equation_listed(e, b->problem))
            continue;
        for (size_t s = 0; s < b->seeds && result == CLI_OK; s++)
            for (size_t v = 0; v < SDE_VIEWS && result == CLI_OK; v++)
                if (wrongs[k].views >> v & 1) {
                    run.seed = b->first + s;
                    run.view = (sde_view)v;
                    result = run_one(&wrongs[k], &run, &records);
                }
        sde_run_free(&run);
    }
    if (result == CLI_OK)
        result = sde_records_print(&records, "sde_verdicts.md", print_table);
    hl_context_free(ctx);
    sde_records_free(&records);
    return result;
}
