/* sde_verdicts.c - `hollow bench sde --verdicts`: what is said of models that are wrong on purpose, and of the fits of
 * `hollow bench sde` in the same directory. One line of JSON for each wrong model. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "sde_fit.h"

/* A fit that an option, or the equation itself, makes wrong. */
typedef struct wrong {
    const char *kind, *problem;
    unsigned views; /* bits of 1 << sde_view */
    const char *option, *value;
} wrong;
static const wrong wrongs[] = {
    { "half the diffusion", "ou", 7, "known-diffusion", "x1=0.2" },
    { "half the diffusion", "well", 5, "known-diffusion", "x1=0.225" },
    { "half the diffusion", "bist", 5, "known-diffusion", "x1=0.25" },
    { "half the diffusion", "spiral", 4, "known-diffusion", "x1=0.45;x2=0.45" },
    { "half the diffusion", "morse", 5, "known-diffusion", "x1=0.2" },
    { "twice the diffusion", "fhn", 5, "known-diffusion", "x1=0.4;x2=0.08" },
    { "twice the diffusion", "ou", 5, "known-diffusion", "x1=0.8" },
    { "constant diffusion", "logistic", 5, "known-diffusion", "x1=0.4" },
    { "constant diffusion", "cir", 5, "known-diffusion", "x1=0.3" },
    { "half the drift", "cir", 7, "known-drift", "x1=0.75-0.75*x1" },
    { "half the drift", "shear", 5, "known-drift", "x1=0.45*x2-0.4*x1;x2=-0.2*x2" },
    { "no cross terms", "corr", 7, "noise", "diagonal" },
    { "no cross terms", "shear", 5, "noise", "diagonal" },
    { "no cross terms", "heston", 5, "noise", "diagonal" },
    { "no wells", "bist", 7, "form", "linear" },
    { "no wells", "well", 5, "form", "linear" },
    { "no wells", "duffing", 7, "form", "linear" },
    { "no time dependence", "sqrtt", 7, NULL, NULL },
    { "no time dependence", "fading", 7, NULL, NULL },
    { "both depend on time", "ou", 1, "time-dependent", "on" },
    { "Euler steps at 5 %", "cir", 2, "method", "pseudo-ml" },
    { "Euler steps at 5 %", "lv", 2, "method", "pseudo-ml" },
    { "Euler steps at 5 %", "bist", 2, "method", "pseudo-ml" },
    { "a frozen density", "cir", 1, "iters", "3" },
    { "a frozen density", "lv", 1, "iters", "3" },
};
static const char right[] = "none";
/* Beside the group "calibration": equations whose results were seen before the last change of weak_tests.c. */
static const char *const looked_at[] = { "ou",   "well",  "gbm",    "vanderpol", "cir",
                                         "bist", "sqrtt", "spiral", "morse",     "fhn" };
enum { WRONGS = sizeof wrongs / sizeof *wrongs };
static const double large = 0.25, small = 0.1; /* errors of drift or diffusion */

static char *line_of(const wrong *w, const sde_run *run, const sde_result *o)
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
    sde_print_numbers(&json, &o->full);
    cli_json_close(&json, '}');
    fputc('\n', file);
    return fclose(file) == 0 ? text : NULL;
}

static int run_one(const wrong *w, sde_run *run, sde_records *records)
{
    static const char *const keys[] = { "wrong", "problem", "observed", "seed", NULL };
    static const char *const fit_keys[] = { "method", "problem", "observed", "seed", NULL };
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->seed);
    const char *own[] = { w->kind, w->problem, sde_view_names[run->view], seed };
    const char *fit[] = { "fit", w->problem, sde_view_names[run->view], seed };
    if (sde_records_find(records, keys, own) || (!w->option && sde_records_find(records, fit_keys, fit)))
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

typedef struct cell {
    size_t answers[4], all;
    double worst; /* error of a consistent one */
} cell;

/* Is the record one of a kind (NULL: any that is wrong), on calibration's equations or on others (0, 1; 2: both)? */
static bool counted(const char *line, const char *kind, int others)
{
    char text[40], name[40];
    if (!sde_record_text(line, "problem", name, sizeof name))
        return false;
    const sde_equation *e = sde_equation_find(name);
    if (!sde_record_text(line, "wrong", text, sizeof text)) /* a fit of `hollow bench sde` */
        snprintf(text, sizeof text, "%s", e && e->time ? "no time dependence" : right);
    if ((kind && strcmp(text, kind) != 0) || (!kind && strcmp(text, right) == 0))
        return false;
    bool chosen_on = e && strcmp(e->group, "calibration") == 0;
    for (size_t k = 0; e && k < sizeof looked_at / sizeof *looked_at; k++)
        chosen_on = chosen_on || strcmp(e->name, looked_at[k]) == 0;
    return e && (others == 2 || !chosen_on == others);
}

/* Answers of the records whose larger error of drift and diffusion is in low..high; refused ones have none and count as large. */
static cell count(const sde_records *r, const char *kind, int others, double low, double high)
{
    static const char *const names[] = { "consistent", "contradicted", "not determined", "refused" };
    cell c = { { 0 }, 0, 0 };
    char text[40];
    for (size_t k = 0; k < r->count; k++) {
        double error = fmax(sde_record_real(r->line[k], "drift"), sde_record_real(r->line[k], "diffusion"));
        bool inside = isnan(error) ? high == INFINITY : error >= low && error < high;
        if (!inside || !counted(r->line[k], kind, others) || !sde_record_text(r->line[k], "verdict", text, sizeof text))
            continue;
        c.all++;
        for (size_t v = 0; v < 4; v++)
            c.answers[v] += strcmp(text, names[v]) == 0;
        if (strcmp(text, names[0]) == 0)
            c.worst = fmax(c.worst, error);
    }
    return c;
}

static void print_counts(FILE *file, const char *name, const char *error, cell c)
{
    if (!c.all)
        return;
    fprintf(file, "| %s | %s | %zu | %zu | %zu | %zu |", name, error, c.answers[0], c.answers[1], c.answers[2],
            c.answers[3]);
    if (c.answers[0])
        fprintf(file, " %.2f |\n", c.worst);
    else
        fputs(" |\n", file);
}

static void print_kind(const sde_records *r, FILE *file, const char *name, const char *kind, int others)
{
    print_counts(file, name, "below 10 %", count(r, kind, others, 0, small));
    print_counts(file, name, "10 to 25 %", count(r, kind, others, small, large));
    print_counts(file, name, "above 25 %", count(r, kind, others, large, INFINITY));
}

static void print_table(const sde_records *r, FILE *file)
{
    fputs(
        "# Verdicts on right and on wrong models\n\n"
        "Written by `hollow bench sde --verdicts --out DIR`: how often each verdict was given. The error is the "
        "larger of the relative errors of drift and\ndiffusion over 20,000 fresh states. Fits are `hollow sde fit` "
        "with its defaults; wrong models are made by options, or by an equation that depends on time.\n"
        "\nCalibration: the limits of the tests of means (15 %, 5 standard errors) were set beforehand. The floor of "
        "the variance and the choice of Gaussians in\n`src/sde/weak_tests.c` were changed after fits (seed 1) of ou, "
        "well, gbm, logistic, shear, vanderpol and duffing and wrong models of cir, bist, sqrtt, fading\n(seed 1) and "
        "of bist, spiral, morse, fhn (seeds 11, 12) were seen. All these equations count as calibration here, with "
        "every seed: other seeds of them are other\ndata of the same equations, and wrong models of bist, spiral, "
        "morse and fhn in this table may be the very ones that were seen. No constant of the\ntests of means was "
        "chosen on the others.\n\nCorrelations that are missing are not part of the error.\n\n"
        "| models | error | consistent | contradicted | not determined | refused | worst error of a consistent one "
        "|\n|---|---|---|---|---|---|---|\n",
        file);
    print_kind(r, file, "fits, calibration", right, 0);
    print_kind(r, file, "fits, others", right, 1);
    print_kind(r, file, "wrong, calibration", NULL, 0);
    print_kind(r, file, "wrong, others", NULL, 1);
    for (size_t k = 0; k < WRONGS; k++)
        if (k == 0 || strcmp(wrongs[k].kind, wrongs[k - 1].kind) != 0)
            print_kind(r, file, wrongs[k].kind, wrongs[k].kind, 2);
}

/* ---- all of them ---- */

static int run_views(const bench_sde_options *b, hl_context *ctx, const sde_equation *e, const wrong *w,
                     sde_records *records)
{
    sde_run run = { .ctx = ctx, .equation = e };
    int result = CLI_OK;
    if (b->problem && !sde_equation_listed(e, b->problem))
        return CLI_OK;
    for (size_t s = 0; s < b->seeds && result == CLI_OK; s++)
        for (size_t v = 0; v < SDE_VIEWS && result == CLI_OK; v++)
            if (w->views >> v & 1 && (!b->observed || strcmp(b->observed, sde_view_names[v]) == 0)) {
                run.seed = b->first + s;
                run.view = (sde_view)v;
                result = run_one(w, &run, records);
            }
    sde_run_free(&run);
    return result;
}

int bench_sde_verdicts(const bench_sde_options *b)
{
    hl_context *ctx = NULL;
    sde_records records;
    int result = sde_records_open(&records, b->out, "sde_verdicts");
    hl_status status = HL_OK;
    if (result == CLI_OK)
        result = sde_records_join(&records, "sde_fit");
    if (result == CLI_OK)
        status = hl_context_create(&(hl_context_options){ .threads = b->threads, .stop = cli_stop }, &ctx);
    if (status != HL_OK)
        result = cli_fail_library(&bench_command, ctx, status);
    for (const sde_equation *e = sde_equations; e->name && result == CLI_OK; e++)
        if (!e->time)
            result = run_views(b, ctx, e, &(wrong){ right, e->name, 7, NULL, NULL }, &records);
    for (size_t k = 0; k < WRONGS && result == CLI_OK; k++)
        result = run_views(b, ctx, sde_equation_find(wrongs[k].problem), &wrongs[k], &records);
    if (result == CLI_OK)
        result = sde_records_print(&records, "sde_verdicts.md", print_table);
    hl_context_free(ctx);
    sde_records_free(&records);
    return result;
}
