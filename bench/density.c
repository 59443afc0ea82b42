/* density.c - `hollow bench density`: what hl_density_fit makes of tables, beside a Gaussian mixture and one normal distribution.
 *
 * Sets of known density are drawn anew; tables come from npz files with the arrays train, valid, test and perhaps truth, the log-density of
 * the test rows. All three models see the same rows of training and validation. --few divides the rows of a table anew, many times. */
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/density_problem.h"
#include "problems/gaussian_mixture.h"
#include "problems/numbers.h"

enum { ROWS = 20000, TEST = 10000, VALID_PART = 10, MOST_FILES = 100, PATH = 1000 };

/* Rows of a set, owned. */
typedef struct rows {
    size_t rows;
    double *x;
} rows;

typedef struct set {
    char name[100];
    size_t dim;
    rows train, valid, test;
    double *truth; /* log p of the test rows, or NULL */
    bool chose;    /* the defaults were chosen with this set at hand */
} set;

/* Means of -log p of the test rows, and how much better the fit is than the mixture, with its paired standard error. */
typedef struct result {
    double fit, truth, mixture, normal, gain, gain_error, seconds;
    size_t parts;
} result;

typedef struct job {
    const bench_density_options *options;
    hl_context *ctx;
    hl_settings *settings;
    cli_progress progress;
    bool headed; /* the table's head is printed */
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

/* ---- sets ---- */

static void free_set(set *s)
{
    free(s->train.x);
    free(s->valid.x);
    free(s->test.x);
    free(s->truth);
    *s = (set){ .dim = 0 };
}

static bool make_rows(rows *r, size_t count, size_t dim)
{
    r->rows = count;
    r->x = calloc(count ? count : 1, dim * sizeof *r->x);
    return r->x;
}

/* Rows as a table of nine digits would have them, so that `hollow fit` can be given the same. */
static void draw_rows(const density_problem *k, uint64_t seed, size_t first, rows *to)
{
    for (size_t r = 0; r < to->rows; r++)
        k->draw(seed, first + r, to->x + r * k->dim);
    for (size_t i = 0; i < to->rows * k->dim; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.9g", to->x[i]);
        to->x[i] = strtod(text, NULL);
    }
}

static hl_status draw_set(const job *j, const density_problem *k, set *s)
{
    size_t all = j->options->rows ? j->options->rows : ROWS, valid = all / VALID_PART;
    *s = (set){ .dim = k->dim, .chose = k->chose };
    snprintf(s->name, sizeof s->name, "%s", k->name);
    s->truth = calloc(TEST, sizeof *s->truth);
    if (!make_rows(&s->train, all - valid, k->dim) || !make_rows(&s->valid, valid, k->dim) ||
        !make_rows(&s->test, TEST, k->dim) || !s->truth)
        return HL_ERR_NOMEM;
    draw_rows(k, 1, 0, &s->train);
    draw_rows(k, 1, s->train.rows, &s->valid);
    draw_rows(k, 2, 0, &s->test);
    for (size_t r = 0; r < TEST; r++)
        s->truth[r] = k->logp(s->test.x + r * k->dim);
    return HL_OK;
}

/* All rows of an array of an npz file, or of another file if `array` is NULL. */
static hl_status read_rows(const job *j, const char *path, const char *array, size_t *dim, rows *to)
{
    hl_table *table = NULL;
    hl_status status = hl_table_open(j->ctx, path, &(hl_table_options){ .array = array }, &table);
    if (status != HL_OK)
        return status;
    *dim = hl_table_columns(table);
    status = make_rows(to, hl_table_rows(table), *dim) ? hl_table_read_rows(table, 0, to->rows, to->x) : HL_ERR_NOMEM;
    hl_table_free(table);
    return status;
}

static void name_set(const char *path, set *s)
{
    const char *slash = strrchr(path, '/');
    snprintf(s->name, sizeof s->name, "%.90s", slash ? slash + 1 : path);
    char *dot = strrchr(s->name, '.');
    if (dot)
        *dot = 0;
}

static hl_status read_set(const job *j, const char *path, set *s)
{
    size_t dim[4];
    rows truth = { 0 };
    *s = (set){ .dim = 0 };
    name_set(path, s);
    hl_status status = read_rows(j, path, "train", &dim[0], &s->train);
    if (status == HL_OK)
        status = read_rows(j, path, "valid", &dim[1], &s->valid);
    if (status == HL_OK)
        status = read_rows(j, path, "test", &dim[2], &s->test);
    if (status != HL_OK)
        return status;
    s->dim = dim[0];
    if (read_rows(j, path, "truth", &dim[3], &truth) == HL_OK && dim[3] == 1 && truth.rows == s->test.rows)
        s->truth = truth.x;
    else
        free(truth.x);
    return dim[1] == dim[0] && dim[2] == dim[0] ? HL_OK : HL_ERR_INVALID;
}

/* ---- one fit ---- */

static hl_status fit_set(job *j, const set *s, double *logp, double *seconds)
{
    hl_density_data data = { .dim = s->dim,
                             .train = { .rows = s->train.rows, .x = s->train.x },
                             .valid = { .rows = s->valid.rows, .x = s->valid.x } };
    hl_density *model = NULL;
    double start = numbers_cpu_time();
    cli_progress_start(&j->progress, 0);
    hl_status status =
        hl_density_fit(j->ctx, &data, j->settings, &(hl_job){ .progress = show, .user = j }, &model, NULL);
    cli_progress_end(&j->progress, false);
    *seconds = numbers_cpu_time() - start;
    if (status == HL_OK)
        status = hl_density_logp(model, s->test.rows, s->test.x, NULL, logp);
    hl_density_free(model);
    return status;
}

static void summarise(const set *s, const double *fit, const double *mixture, const double *normal, result *to)
{
    double n = (double)s->test.rows, square = 0;
    for (size_t r = 0; r < s->test.rows; r++) {
        double gain = fit[r] - mixture[r];
        to->fit -= fit[r] / n;
        to->mixture -= mixture[r] / n;
        to->normal -= normal[r] / n;
        to->truth -= s->truth ? s->truth[r] / n : 0;
        to->gain += gain / n;
        square += gain * gain / n;
    }
    to->truth = s->truth ? to->truth : NAN;
    to->gain_error = sqrt(fmax(square - to->gain * to->gain, 0) / (n - 1));
}

static hl_status measure(job *j, const set *s, result *to)
{
    double *logp = calloc(s->test.rows, 3 * sizeof *logp), *mixture = logp + s->test.rows;
    *to = (result){ 0 };
    hl_status status = logp ? fit_set(j, s, logp, &to->seconds) : HL_ERR_NOMEM;
    if (status == HL_OK &&
        !gaussian_mixture(s->dim, (gaussian_rows){ s->train.rows, s->train.x },
                          (gaussian_rows){ s->valid.rows, s->valid.x }, (gaussian_rows){ s->test.rows, s->test.x },
                          mixture, mixture + s->test.rows, &to->parts))
        status = HL_ERR_NOMEM;
    if (status == HL_OK)
        summarise(s, logp, mixture, mixture + s->test.rows, to);
    free(logp);
    return status;
}

/* ---- results ---- */

static void print_json(const job *j, const set *s, const result *r)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "density");
    cli_json_text(&json, "data", s->name);
    cli_json_count(&json, "dim", s->dim);
    cli_json_count(&json, "rows", s->train.rows + s->valid.rows);
    cli_json_bool(&json, "chose_defaults", s->chose);
    cli_json_real(&json, "test_nll", r->fit);
    cli_json_real(&json, "true_nll", r->truth);
    cli_json_real(&json, "gap", r->fit - r->truth);
    cli_json_real(&json, "mixture_nll", r->mixture);
    cli_json_count(&json, "mixture_parts", r->parts);
    cli_json_real(&json, "normal_nll", r->normal);
    cli_json_real(&json, "gain", r->gain);
    cli_json_real(&json, "gain_error", r->gain_error);
    cli_json_real(&json, "cpu_seconds", r->seconds);
    cli_json_count(&json, "threads", (uint64_t)j->options->threads);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
}

static void print_markdown(job *j, const set *s, const result *r)
{
    if (!j->headed)
        printf("| data | rows x columns | chose defaults | -log p | gap | Gaussian mixture (parts) | normal | gain "
               "over the "
               "mixture | CPU s |\n|---|---|---|---|---|---|---|---|---|\n");
    j->headed = true;
    char gap[30] = "";
    if (isfinite(r->truth))
        snprintf(gap, sizeof gap, "%.3f", r->fit - r->truth);
    printf("| %s | %zu x %zu | %s | %.3f | %s | %.3f (%zu) | %.3f | %.3f +- %.3f | %.0f |\n", s->name,
           s->train.rows + s->valid.rows, s->dim, s->chose ? "yes" : "no", r->fit, gap, r->mixture, r->parts, r->normal,
           r->gain, r->gain_error, r->seconds);
    fflush(stdout);
}

static int run_set(job *j, const set *s)
{
    result r;
    fprintf(stderr, "%s\n", s->name);
    hl_status status = measure(j, s, &r);
    if (status != HL_OK)
        return cli_fail_library(&bench_command, j->ctx, status);
    if (j->options->markdown)
        print_markdown(j, s, &r);
    else
        print_json(j, s, &r);
    fprintf(stderr, "%s: test %.4f nats, gap %.4f, a mixture of %zu %.4f, %.0f s of CPU\n", s->name, r.fit,
            r.fit - r.truth, r.parts, r.mixture, r.seconds);
    return CLI_OK;
}

/* ---- few rows ---- */

/* Columns with repeated values get uniform noise as wide as the least difference of two values. */
static void dequantise(rows *all, size_t dim, uint64_t seed)
{
    double *sorted = calloc(all->rows, sizeof *sorted);
    for (size_t i = 0; i < dim && sorted; i++) {
        double least = INFINITY;
        size_t tied = 0;
        for (size_t r = 0; r < all->rows; r++)
            sorted[r] = all->x[r * dim + i];
        numbers_sort(sorted, all->rows);
        double tiny = 1e-9 * (sorted[all->rows - 1] - sorted[0]);
        for (size_t r = 1; r < all->rows; r++) {
            double step = sorted[r] - sorted[r - 1];
            tied += step <= tiny;
            least = step > tiny && step < least ? step : least;
        }
        for (size_t r = 0; r < all->rows && 100 * tied > all->rows; r++)
            all->x[r * dim + i] += least * (hl_random_uniform(seed, 1, r * dim + i) - 0.5);
    }
    free(sorted);
}

/* A fifth of the rows for the test, a tenth of the others for validation, at random. */
static bool divide(const rows *all, size_t dim, uint64_t split, set *s)
{
    size_t test = all->rows / 5, valid = (all->rows - test) / VALID_PART, train = all->rows - test - valid;
    size_t *order = calloc(all->rows, sizeof *order);
    bool good =
        order && make_rows(&s->train, train, dim) && make_rows(&s->valid, valid, dim) && make_rows(&s->test, test, dim);
    for (size_t r = 0; r < all->rows && good; r++)
        order[r] = r;
    for (size_t r = all->rows; r > 1 && good; r--) {
        size_t k = (size_t)(hl_random_uniform(split, 2, r) * (double)r), swap = order[r - 1];
        order[r - 1] = order[k];
        order[k] = swap;
    }
    for (size_t r = 0; r < all->rows && good; r++) {
        double *to = r < train           ? s->train.x + r * dim
                     : r < train + valid ? s->valid.x + (r - train) * dim
                                         : s->test.x + (r - train - valid) * dim;
        memcpy(to, all->x + order[r] * dim, dim * sizeof *to);
    }
    free(order);
    return good;
}

static void print_few(const set *s, size_t count, const result *each)
{
    double n = (double)count, fit = 0, mixture = 0, gain = 0, square = 0, seconds = 0;
    for (size_t i = 0; i < count; i++) {
        fit += each[i].fit / n;
        mixture += each[i].mixture / n;
        gain += each[i].gain / n;
        seconds += each[i].seconds / n;
    }
    for (size_t i = 0; i < count; i++)
        square += (each[i].gain - gain) * (each[i].gain - gain);
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "density");
    cli_json_text(&json, "data", s->name);
    cli_json_count(&json, "dim", s->dim);
    cli_json_count(&json, "splits", count);
    cli_json_real(&json, "test_nll", fit);
    cli_json_real(&json, "mixture_nll", mixture);
    cli_json_real(&json, "gain", gain);
    cli_json_real(&json, "gain_error", count > 1 ? sqrt(square / (n * (n - 1))) : NAN);
    cli_json_real(&json, "cpu_seconds", seconds);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
}

static int run_few(job *j, const char *path)
{
    rows all = { 0 };
    set s = { .dim = 0 };
    size_t count = j->options->splits, done = 0;
    result *each = calloc(count, sizeof *each);
    name_set(path, &s);
    hl_status status = each ? read_rows(j, path, NULL, &s.dim, &all) : HL_ERR_NOMEM;
    if (status == HL_OK)
        dequantise(&all, s.dim, 1);
    for (; done < count && status == HL_OK; done++) {
        set own = s;
        status = divide(&all, s.dim, done, &own) ? measure(j, &own, &each[done]) : HL_ERR_NOMEM;
        fprintf(stderr, "%s, split %zu: test %.4f nats, a mixture of %zu %.4f\n", s.name, done + 1, each[done].fit,
                each[done].parts, each[done].mixture);
        free_set(&own);
    }
    if (status == HL_OK)
        print_few(&s, done, each);
    free(all.x);
    free(each);
    return status == HL_OK ? CLI_OK : cli_fail_library(&bench_command, j->ctx, status);
}

/* ---- all of it ---- */

static int run_file(job *j, const char *path)
{
    set s;
    if (j->options->splits)
        return run_few(j, path);
    hl_status status = read_set(j, path, &s);
    int code = status == HL_OK ? run_set(j, &s) : cli_fail_library(&bench_command, j->ctx, status);
    free_set(&s);
    return code;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The npz files of a directory, by name. */
static int run_directory(job *j, const char *path, DIR *directory)
{
    char *name[MOST_FILES];
    size_t count = 0;
    int code = CLI_OK;
    for (struct dirent *d = readdir(directory); d && count < MOST_FILES; d = readdir(directory)) {
        size_t length = strlen(d->d_name);
        if (length > 4 && strcmp(d->d_name + length - 4, ".npz") == 0 && (name[count] = calloc(1, length + 1)))
            memcpy(name[count++], d->d_name, length);
    }
    qsort(name, count, sizeof *name, by_name);
    for (size_t i = 0; i < count; i++) {
        char file[PATH];
        snprintf(file, sizeof file, "%s/%s", path, name[i]);
        code = code == CLI_OK ? run_file(j, file) : code;
        free(name[i]);
    }
    return code;
}

static int run_known(job *j)
{
    const char *only = j->options->data;
    int code = CLI_OK;
    bool any = false;
    for (const density_problem *p = density_problems; p->name && code == CLI_OK; p++)
        if (!only || strcmp(only, p->name) == 0) {
            set s;
            any = true;
            hl_status status = draw_set(j, p, &s);
            code = status == HL_OK ? run_set(j, &s) : cli_fail_library(&bench_command, j->ctx, status);
            free_set(&s);
        }
    if (any)
        return code;
    const char *names[DENSITY_PROBLEMS + 1] = { NULL };
    char list[400];
    for (size_t i = 0; i < DENSITY_PROBLEMS; i++)
        names[i] = density_problems[i].name;
    cli_join(list, sizeof list, names);
    return cli_fail(&bench_command, CLI_WRONG, "unknown data '%s'; use one of %s, a file or a directory", only, list);
}

static int run_all(job *j)
{
    const char *data = j->options->data;
    DIR *directory = data ? opendir(data) : NULL;
    if (directory) {
        int code = run_directory(j, data, directory);
        closedir(directory);
        return code;
    }
    if (data && (strchr(data, '.') || strchr(data, '/')))
        return run_file(j, data);
    if (j->options->splits)
        return cli_fail(&bench_command, CLI_WRONG, "--few requires --data FILE");
    return run_known(j);
}

int bench_density(const bench_density_options *options)
{
    char iterations[24];
    job j = { .options = options };
    snprintf(iterations, sizeof iterations, "%zu", options->iterations);
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = options->threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_settings_create(j.ctx, hl_density_fit_options(), &j.settings);
    if (status == HL_OK && options->iterations)
        status = hl_settings_set(j.settings, "iters", iterations);
    int code = status == HL_OK ? run_all(&j) : cli_fail_library(&bench_command, j.ctx, status);
    hl_settings_free(j.settings);
    hl_context_free(j.ctx);
    return code;
}
