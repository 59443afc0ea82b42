/* density.c - `hollow bench density`: what hl_density_fit makes of data whose density is known, with its defaults.
 *
 * Each set is drawn anew and learned. The model's mean -log p of fresh rows stands beside that of the true density on the same rows. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/density_problem.h"

enum { ROWS = 20000, TEST = 10000 };

typedef struct job {
    const bench_density_options *options;
    hl_context *ctx;
    hl_settings *settings;
    size_t rows;              /* to train on */
    double *train, *x, *logp; /* the last two: TEST rows */
    cli_progress progress;
} job;

static int show(const void *report, void *user)
{
    const hl_density_progress *p = report;
    job *j = user;
    double all = p->seconds + p->seconds_left;
    if (p->phase != HL_FIT_START && p->phase != HL_FIT_MIXING &&
        cli_progress_due(&j->progress, all > 0 ? p->seconds / all : 0, false)) {
        cli_progress_field(&j->progress, 0, "%6zu/%zu", p->iteration, p->iterations);
        cli_progress_field(&j->progress, 2, "%-13s", hl_fit_phase_name(p->phase));
        cli_progress_field(&j->progress, 2, "best %9.4f", p->best);
        cli_progress_show(&j->progress);
    }
    return cli_interrupted();
}

/* Rows as a table of nine digits would have them, so that `hollow fit` can be given the same. */
static void draw_rows(job *j, const density_problem *k)
{
    for (size_t r = 0; r < j->rows; r++)
        k->draw(1, r, j->train + r * k->dim);
    for (size_t i = 0; i < j->rows * k->dim; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.9g", j->train[i]);
        j->train[i] = strtod(text, NULL);
    }
}

/* Train, then mean -log p of the test rows, by the model and true. */
static hl_status learn(job *j, const density_problem *k, double *mean, double *true_mean)
{
    hl_density_data data = { .dim = k->dim, .train = { .rows = j->rows, .x = j->train } };
    hl_density *model = NULL;
    cli_progress_start(&j->progress, 0);
    hl_status status =
        hl_density_fit(j->ctx, &data, j->settings, &(hl_job){ .progress = show, .user = j }, &model, NULL);
    cli_progress_end(&j->progress, false);
    *mean = *true_mean = 0;
    for (size_t r = 0; r < TEST; r++)
        k->draw(2, r, j->x + r * k->dim);
    if (status == HL_OK)
        status = hl_density_logp(model, TEST, j->x, NULL, j->logp);
    for (size_t r = 0; r < TEST && status == HL_OK; r++) {
        *mean -= j->logp[r] / TEST;
        *true_mean -= k->logp(j->x + r * k->dim) / TEST;
    }
    hl_density_free(model);
    return status;
}

static int run_set(job *j, const density_problem *k)
{
    double mean, true_mean, start = cli_now();
    draw_rows(j, k);
    fprintf(stderr, "%s\n", k->name);
    hl_status status = learn(j, k, &mean, &true_mean);
    double seconds = cli_now() - start;
    if (status != HL_OK)
        return cli_fail_library(&bench_command, j->ctx, status);
    cli_json json = { stdout, false };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "density");
    cli_json_text(&json, "data", k->name);
    cli_json_count(&json, "dim", k->dim);
    cli_json_count(&json, "rows", j->rows);
    cli_json_real(&json, "test_nll", mean);
    cli_json_real(&json, "true_nll", true_mean);
    cli_json_real(&json, "gap", mean - true_mean);
    cli_json_real(&json, "seconds", seconds);
    cli_json_count(&json, "threads", (uint64_t)j->options->threads);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
    fprintf(stderr, "%s: test %.4f nats, true %.4f, gap %.4f, %.0f s\n", k->name, mean, true_mean, mean - true_mean,
            seconds);
    return CLI_OK;
}

static int run_all(job *j)
{
    const char *only = j->options->data;
    int result = CLI_OK;
    bool any = false;
    for (const density_problem *p = density_problems; p->name && result == CLI_OK; p++)
        if (!only || strcmp(only, p->name) == 0) {
            any = true;
            result = run_set(j, p);
        }
    if (any)
        return result;
    const char *names[DENSITY_PROBLEMS + 1] = { NULL };
    char list[200];
    for (size_t i = 0; i < DENSITY_PROBLEMS; i++)
        names[i] = density_problems[i].name;
    cli_join(list, sizeof list, names);
    return cli_fail(&bench_command, CLI_WRONG, "unknown data '%s'; there are %s", only, list);
}

int bench_density(const bench_density_options *options)
{
    char iterations[24];
    job j = { .options = options, .rows = options->rows ? options->rows : ROWS };
    snprintf(iterations, sizeof iterations, "%zu", options->iterations);
    j.train = calloc(j.rows, DENSITY_MOST_DIM * sizeof *j.train);
    j.x = calloc(TEST, DENSITY_MOST_DIM * sizeof *j.x);
    j.logp = calloc(TEST, sizeof *j.logp);
    hl_status status = j.train && j.x && j.logp ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_context_create(&(hl_context_options){ .threads = options->threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_settings_create(j.ctx, hl_density_fit_options(), &j.settings);
    if (status == HL_OK && options->iterations)
        status = hl_settings_set(j.settings, "iters", iterations);
    int result = status == HL_OK ? run_all(&j) : cli_fail_library(&bench_command, j.ctx, status);
    hl_settings_free(j.settings);
    hl_context_free(j.ctx);
    free(j.train);
    free(j.x);
    free(j.logp);
    return result;
}
