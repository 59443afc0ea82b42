/* sde_paths.c - `hollow bench sde --paths`: one path of a double well, dx = (x - x^3) dt + .5 dW, 20,001 rows .01 apart, learned as
 * `hollow sde fit` does without options, beside least squares of the increments on cubic polynomials (Euler). One line of JSON for
 * each path: root mean square errors of the drift over the observations, relative to the drift's, and the zeros of f. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"
#include "sde_records.h"

enum { ROWS = 20001, SUBSTEPS = 10, STREAM_PATH = 44, POWERS = 4, GRID = 401 };
static const double step = 0.01, noise = 0.5;

typedef struct path {
    hl_context *ctx;
    uint64_t seed;
    double *t, *x, *f; /* ROWS each */
} path;

static double drift(double x)
{
    return x - x * x * x;
}

static void simulate(path *p)
{
    double x = 1, h = step / SUBSTEPS, w[SUBSTEPS];
    for (size_t r = 0; r < ROWS; r++) {
        p->t[r] = step * (double)r;
        p->x[r] = x;
        hl_random_normals(p->seed, STREAM_PATH, r * SUBSTEPS, SUBSTEPS, w);
        for (size_t k = 0; k < SUBSTEPS; k++)
            x += h * drift(x) + noise * sqrt(h) * w[k];
    }
}

/* Root mean square of f - truth over that of the truth, at the path's own states. */
static double relative_error(const path *p)
{
    double sum = 0, size = 0;
    for (size_t r = 0; r < ROWS; r++) {
        double truth = drift(p->x[r]);
        sum += (p->f[r] - truth) * (p->f[r] - truth);
        size += truth * truth;
    }
    return sqrt(sum / size);
}

/* Least squares of dx/dt on 1, x, x^2, x^3 by Gauss' elimination. */
static void cubic(path *p)
{
    double a[POWERS][POWERS + 1] = { { 0 } }, v[POWERS];
    for (size_t r = 0; r + 1 < ROWS; r++) {
        for (size_t i = 0; i < POWERS; i++)
            v[i] = i ? v[i - 1] * p->x[r] : 1;
        for (size_t i = 0; i < POWERS; i++) {
            for (size_t j = 0; j < POWERS; j++)
                a[i][j] += v[i] * v[j];
            a[i][POWERS] += v[i] * (p->x[r + 1] - p->x[r]) / step;
        }
    }
    for (size_t k = 0; k < POWERS; k++) /* the matrix is positive definite */
        for (size_t i = 0; i < POWERS; i++) {
            double ratio = a[i][k] / a[k][k];
            for (size_t j = k; j <= POWERS && i != k; j++)
                a[i][j] -= ratio * a[k][j];
        }
    for (size_t r = 0; r < ROWS; r++) {
        p->f[r] = 0;
        for (size_t i = POWERS; i-- > 0;)
            p->f[r] = p->f[r] * p->x[r] + a[i][POWERS] / a[i][i];
    }
}

/* Changes of the sign of f on a grid over the path's range, its outer hundredths left out. */
static hl_status count_zeros(const path *p, hl_sde *sde, size_t *zeros)
{
    double *sorted = calloc(ROWS, sizeof *sorted), t[GRID] = { 0 }, x[GRID], f[GRID];
    if (!sorted)
        return HL_ERR_NOMEM;
    memcpy(sorted, p->x, ROWS * sizeof *sorted);
    numbers_sort(sorted, ROWS);
    double low = sorted[ROWS / 100], high = sorted[ROWS - 1 - ROWS / 100];
    free(sorted);
    for (size_t k = 0; k < GRID; k++)
        x[k] = low + (high - low) * (double)k / (GRID - 1);
    hl_status status = hl_sde_eval(sde, GRID, t, x, &(hl_sde_values){ .f = f });
    *zeros = 0;
    for (size_t k = 1; k < GRID && status == HL_OK; k++)
        *zeros += (f[k] > 0) != (f[k - 1] > 0);
    return status;
}

static hl_status learn(path *p, FILE *file)
{
    hl_sde_observations data = { .rows = ROWS, .dim = 1, .t = p->t, .x = p->x };
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    size_t zeros = 0;
    double start = numbers_cpu_time();
    hl_status status = hl_sde_learn(p->ctx, &data, NULL, NULL, &sde, &outcome);
    double seconds = numbers_cpu_time() - start;
    if (status == HL_OK)
        status = hl_sde_eval(sde, ROWS, p->t, p->x, &(hl_sde_values){ .f = p->f });
    if (status == HL_OK)
        status = count_zeros(p, sde, &zeros);
    if (status == HL_OK) {
        cli_json json = { .file = file };
        double error = relative_error(p);
        cubic(p);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "bench", "sde paths");
        cli_json_count(&json, "seed", p->seed);
        cli_json_real(&json, "drift", error);
        cli_json_real(&json, "cubic_drift", relative_error(p));
        cli_json_count(&json, "zeros", zeros);
        cli_json_text(&json, "form", outcome->form);
        cli_json_text(&json, "verdict", hl_answer_name(outcome->verdict.answer));
        cli_json_real(&json, "cpu_seconds", seconds);
        cli_json_close(&json, '}');
        fputc('\n', file);
    }
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
    return status;
}

static int run_path(path *p, sde_records *records)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    simulate(p);
    hl_status status = file ? learn(p, file) : HL_ERR_NOMEM;
    if (file && fclose(file) != 0 && status == HL_OK)
        status = HL_ERR_NOMEM;
    if (status == HL_OK)
        return sde_records_add(records, text);
    free(text);
    return status == HL_STOPPED ? CLI_STOPPED : cli_fail_library(&bench_command, p->ctx, status);
}

static void print_table(const sde_records *r, FILE *file)
{
    double error[1000], least[1000];
    size_t n = 0, three = 0;
    for (size_t k = 0; k < r->count && n < 1000; k++, n++) {
        error[n] = sde_record_real(r->line[k], "drift");
        least[n] = sde_record_real(r->line[k], "cubic_drift");
        three += sde_record_real(r->line[k], "zeros") == 3;
    }
    fprintf(
        file,
        "# Single paths of a double well\n\nWritten by `hollow bench sde --paths --out DIR`: x - x^3, .5, 20,001 rows, "
        "dt "
        ".01, learned with all defaults.\n\n| paths | median drift error | of the cubic regression | paths with three "
        "zeros of f |\n|---|---|---|---|\n| %zu | %.3f | %.3f | %zu |\n",
        n, numbers_median(error, n), numbers_median(least, n), three);
}

int bench_sde_paths(const bench_sde_options *b)
{
    static const char *const keys[] = { "seed", NULL };
    path p = { 0 };
    sde_records records;
    int result = sde_records_open(&records, b->out, "sde_paths");
    hl_status status = HL_OK;
    if (result == CLI_OK)
        status = hl_context_create(&(hl_context_options){ .threads = b->threads, .stop = cli_stop }, &p.ctx);
    p.t = calloc(3 * ROWS, sizeof *p.t);
    if (status == HL_OK && !p.t)
        status = HL_ERR_NOMEM;
    if (status != HL_OK)
        result = cli_fail_library(&bench_command, p.ctx, status);
    for (size_t k = 0; k < b->seeds && result == CLI_OK; k++) {
        char seed[24];
        p.seed = b->first + k;
        p.x = p.t + ROWS;
        p.f = p.x + ROWS;
        snprintf(seed, sizeof seed, "%llu", (unsigned long long)p.seed);
        if (!sde_records_find(&records, keys, (const char *const[]){ seed }))
            result = run_path(&p, &records);
    }
    if (result == CLI_OK)
        result = sde_records_print(&records, "sde_paths.md", print_table);
    free(p.t);
    hl_context_free(p.ctx);
    sde_records_free(&records);
    return result;
}
