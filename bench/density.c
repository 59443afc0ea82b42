/* density.c - `hollow bench density`: what `hollow fit` makes of data whose density is known, with its defaults.
 *
 * Each set is drawn anew, written as a table and given to `hollow fit train.csv -o model`, without options but the number of
 * threads. Its mean -log p of fresh rows stands beside that of the true density on the same rows. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "problems/density_problem.h"

enum { ROWS = 20000, TEST = 10000 };

/* ---- running ---- */

typedef struct job {
    const bench_density_options *options;
    hl_context *ctx;
    char directory[64], table[96], model[96];
    size_t rows;      /* to train on */
    double *x, *logp; /* TEST rows */
} job;

static int write_table(const job *j, const density_problem *k)
{
    double x[DENSITY_MOST_DIM];
    FILE *file = fopen(j->table, "w");
    if (!file)
        return cli_fail(&bench_command, CLI_WRONG, "cannot write %s", j->table);
    for (size_t i = 0; i < k->dim; i++)
        fprintf(file, "%sx%zu", i ? "," : "", i + 1);
    for (size_t r = 0; r < j->rows; r++) {
        k->draw(1, r, x);
        for (size_t i = 0; i < k->dim; i++)
            fprintf(file, "%c%.9g", i ? ',' : '\n', x[i]);
    }
    fputc('\n', file);
    return fclose(file) == 0 ? CLI_OK : cli_fail(&bench_command, CLI_WRONG, "cannot write %s", j->table);
}

/* Mean -log p of the test rows, by the model and true. */
static int judge(job *j, const density_problem *k, double *mean, double *true_mean)
{
    hl_density *model = NULL;
    hl_status status = hl_density_load(j->ctx, j->model, &model);
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
    return status == HL_OK ? CLI_OK : cli_fail_library(&bench_command, j->ctx, status);
}

static int run_set(job *j, const density_problem *k)
{
    char threads[24], iterations[24],
        *call[] = { j->table, "-o", j->model, "--threads", threads, "--iters", iterations };
    double mean, true_mean, start;
    snprintf(threads, sizeof threads, "%d", j->options->threads);
    snprintf(iterations, sizeof iterations, "%zu", j->options->iterations);
    int result = write_table(j, k);
    fprintf(stderr, "%s\n", k->name);
    start = cli_now();
    if (result == CLI_OK)
        result = cli_fit.run(j->options->iterations ? 7 : 5, call);
    double seconds = cli_now() - start;
    if (result == CLI_OK)
        result = judge(j, k, &mean, &true_mean);
    if (result != CLI_OK)
        return result;
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
    job j = { .options = options,
              .rows = options->rows ? options->rows : ROWS,
              .directory = "/tmp/hollow-bench-XXXXXX" };
    if (!mkdtemp(j.directory))
        return cli_fail(&bench_command, CLI_WRONG, "cannot make a directory in /tmp");
    snprintf(j.table, sizeof j.table, "%s/train.csv", j.directory);
    snprintf(j.model, sizeof j.model, "%s/m.hollow", j.directory);
    j.x = calloc(TEST, DENSITY_MOST_DIM * sizeof *j.x);
    j.logp = calloc(TEST, sizeof *j.logp);
    hl_status status = j.x && j.logp ? HL_OK : HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_context_create(&(hl_context_options){ .threads = options->threads }, &j.ctx);
    int result = status == HL_OK ? run_all(&j) : cli_fail_library(&bench_command, NULL, status);
    hl_context_free(j.ctx);
    free(j.x);
    free(j.logp);
    unlink(j.table);
    unlink(j.model);
    strcat(j.model, ".ckpt");
    unlink(j.model);
    rmdir(j.directory);
    return result;
}
