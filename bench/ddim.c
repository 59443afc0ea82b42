/* ddim.c - `hollow bench ddim`: dimension-wise derivatives against the machine's limits.
 *
 * The machine is shared and its clock moves, so nothing is timed on its own: every round runs each job of each subject, and a
 * burst of multiply-adds for the peak, close together. Times are the best of all runs; ratios come both from the bests and
 * as the median of the rounds' own ratios. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"

enum { MIN_ROUNDS = 15, MAX_ROUNDS = 2000, MAX_REPEATS = 32 };
static const double slice = 0.004; /* seconds of one job in one round, if it is shorter */

static const bench_case cases[] = {
    { "a", 2, 16, 64, 64, 512, NULL, 0 },
    { "b", 43, 32, 256, 64, 1000, NULL, 0 },
    { "c", 64, 100, 512, 100, 100, NULL, 0 },
    { "d", 784, 16, 1024, 32, 64, NULL, 0 },
};

/* ---- measuring ---- */

typedef struct timing {
    double best, round[MAX_ROUNDS]; /* of all runs; the median of each round's runs */
    int repeats;
} timing;

/* The subjects of one case: the masks skipped, the masks dense, one thread. */
enum { SPARSE, DENSE, SINGLE, SUBJECTS };

typedef struct measurement {
    const bench_case *c;
    bench_subject subject[SUBJECTS];
    size_t subjects, rounds, burst; /* burst: rounds of multiply-adds that last about a millisecond */
    timing time[SUBJECTS][BENCH_JOBS];
    double peak;
    double (*clock)(void);
    bench_errors errors;
} measurement;

static void measure_peak(measurement *m)
{
    hl_dtype dtype = m->subject[0].dtype;
    while (true) {
        double start = m->clock(), flops = hl_fma_burst(dtype, NULL, m->burst), seconds = m->clock() - start;
        if (seconds >= 5e-4 || !(flops > 0) || m->burst > (size_t)1 << 40) {
            m->peak = fmax(m->peak, flops / seconds);
            return;
        }
        m->burst *= 2;
    }
}

static hl_status measure_job(measurement *m, size_t subject, bench_job job, size_t round)
{
    timing *t = &m->time[subject][job];
    double run[MAX_REPEATS];
    for (int r = 0; r < t->repeats; r++) {
        double start = m->clock();
        hl_status status = bench_subject_run(&m->subject[subject], job);
        run[r] = m->clock() - start;
        if (status != HL_OK)
            return status;
        if (cli_interrupted())
            return HL_STOPPED;
        if (t->best == 0 || run[r] < t->best)
            t->best = run[r];
    }
    t->round[round] = numbers_median(run, (size_t)t->repeats);
    return HL_OK;
}

/* One round; the order turns, so that no job always follows the same other. */
static hl_status measure_round(measurement *m, size_t round)
{
    size_t jobs = m->subjects * BENCH_JOBS;
    measure_peak(m);
    for (size_t i = 0; i < jobs; i++) {
        size_t at = (i + round) % jobs, s = at / BENCH_JOBS, j = at % BENCH_JOBS;
        hl_status status = measure_job(m, s, (bench_job)j, round);
        if (status != HL_OK)
            return status;
    }
    return HL_OK;
}

/* A first round tells how often to repeat each job in the later ones. */
static hl_status measure(measurement *m, double seconds)
{
    size_t jobs = m->subjects * BENCH_JOBS;
    hl_status status = HL_OK;
    for (size_t i = 0; i < jobs; i++)
        m->time[i / BENCH_JOBS][i % BENCH_JOBS].repeats = 1;
    m->burst = 1000;
    status = measure_round(m, 0);
    for (size_t i = 0; i < jobs; i++) {
        timing *t = &m->time[i / BENCH_JOBS][i % BENCH_JOBS];
        double repeats = slice / (t->best > 0 ? t->best : 1);
        t->repeats = repeats < 1 ? 1 : repeats > MAX_REPEATS ? MAX_REPEATS : (int)repeats;
    }
    double start = cli_now(), end = start + seconds * (double)jobs, limit = start + fmax(20, seconds * (double)jobs);
    while (status == HL_OK && m->rounds < MAX_ROUNDS && (m->rounds < MIN_ROUNDS || cli_now() < end) &&
           (m->rounds < 3 || cli_now() < limit))
        status = measure_round(m, m->rounds++);
    return status;
}

static double median_seconds(const measurement *m, int subject, int job)
{
    double copy[MAX_ROUNDS];
    memcpy(copy, m->time[subject][job].round, m->rounds * sizeof *copy);
    return numbers_median(copy, m->rounds);
}

static double median_ratio(const measurement *m, int subject, int job)
{
    double ratio[MAX_ROUNDS];
    for (size_t i = 0; i < m->rounds; i++)
        ratio[i] = m->time[subject][job].round[i] / m->time[subject][BENCH_F].round[i];
    return numbers_median(ratio, m->rounds);
}

/* ---- reporting ---- */

/* Fraction of the peak of all threads. */
static double peak_fraction(const measurement *m, int job, bool all)
{
    const bench_subject *s = &m->subject[SPARSE];
    hl_plan_info info = hl_plan_describe(s->plan[job]);
    double flops = (double)s->rows * (all ? info.flops_per_row : info.gemm_flops_per_row);
    return flops / m->time[SPARSE][job].best / (m->peak * hl_context_threads(s->ctx));
}

static const char *const job_names[] = { "f", "fd", "train" };

static void json_jobs(cli_json *json, const char *format, const double *value)
{
    char key[40];
    for (int j = 0; j < BENCH_JOBS; j++) {
        snprintf(key, sizeof key, "%s%s", format[0] == '*' ? job_names[j] : format,
                 format[0] == '*' ? format + 1 : job_names[j]);
        cli_json_real(json, key, value[j]);
    }
}

static void print_json(const measurement *m)
{
    cli_json json = { .file = stdout };
    const bench_case *c = m->c;
    const bench_subject *s = &m->subject[SPARSE];
    hl_plan_info fd = hl_plan_describe(s->plan[BENCH_FD]), train = hl_plan_describe(s->plan[BENCH_TRAIN]);
    double best[BENCH_JOBS], median[BENCH_JOBS], peak[BENCH_JOBS], all[BENCH_JOBS], mask[BENCH_JOBS],
        speedup[BENCH_JOBS];
    for (int j = 0; j < BENCH_JOBS; j++) {
        best[j] = m->time[SPARSE][j].best;
        median[j] = median_seconds(m, SPARSE, j);
        peak[j] = peak_fraction(m, j, false);
        all[j] = peak_fraction(m, j, true);
        mask[j] = m->time[DENSE][j].best / best[j];
        speedup[j] = m->time[SINGLE][j].best / best[j];
    }
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "ddim");
    cli_json_text(&json, "case", c->name);
    cli_json_count(&json, "d", c->dim);
    cli_json_count(&json, "features", c->features);
    cli_json_count(&json, "hidden", c->hidden);
    cli_json_count(&json, "width", c->width);
    cli_json_count(&json, "batch", c->rows);
    cli_json_text(&json, "dtype", hl_dtype_name(s->dtype));
    cli_json_text(&json, "isa", hl_context_isa(s->ctx));
    cli_json_count(&json, "threads", (uint64_t)hl_context_threads(s->ctx));
    cli_json_text(&json, "clock", m->clock == cli_now ? "wall" : "cpu");
    json_jobs(&json, "*_s", best);
    json_jobs(&json, "*_median_s", median);
    cli_json_real(&json, "fd_over_f", best[BENCH_FD] / best[BENCH_F]);
    cli_json_real(&json, "train_over_f", best[BENCH_TRAIN] / best[BENCH_F]);
    cli_json_real(&json, "fd_over_f_median", median_ratio(m, SPARSE, BENCH_FD));
    cli_json_real(&json, "train_over_f_median", median_ratio(m, SPARSE, BENCH_TRAIN));
    json_jobs(&json, "*_peak", peak);
    json_jobs(&json, "*_peak_all", all);
    cli_json_real(&json, "peak_flops", m->peak);
    json_jobs(&json, "mask_speedup_", mask);
    if (m->subjects > SINGLE)
        json_jobs(&json, "speedup_", speedup);
    cli_json_count(&json, "bytes", train.bytes);
    cli_json_count(&json, "chunk_rows", train.chunk_rows);
    cli_json_count(&json, "fd_bytes", fd.bytes);
    cli_json_count(&json, "fd_chunk_rows", fd.chunk_rows);
    cli_json_count(&json, "rounds", m->rounds);
    cli_json_real(&json, "brute_error", m->errors.brute);
    cli_json_real(&json, "difference_error", m->errors.differences);
    cli_json_real(&json, "gradient_error", m->errors.gradient);
    cli_json_real(&json, "precision_error", m->errors.precision);
    cli_json_bool(&json, "verified", m->errors.same_bits);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
}

static void print_row(const measurement *m, bool head)
{
    const timing *t = m->time[SPARSE];
    bool threads = m->subjects > SINGLE;
    if (head) {
        fprintf(stderr, "%s, %s, %d thread%s; times in ms, best of many\n", hl_dtype_name(m->subject[0].dtype),
                hl_context_isa(m->subject[0].ctx), hl_context_threads(m->subject[0].ctx), threads ? "s" : "");
        fprintf(
            stderr,
            "case     f   f+D  train | f+D/f median train/f | peak: f  f+D train | masks: f  f+D train%s | GFLOP/s\n",
            threads ? " | threads: f  f+D train" : "");
    }
    fprintf(stderr, "%-3s %6.3g %5.3g %6.3g | %5.2f %6.2f %7.2f |", m->c->name, 1e3 * t[BENCH_F].best,
            1e3 * t[BENCH_FD].best, 1e3 * t[BENCH_TRAIN].best, t[BENCH_FD].best / t[BENCH_F].best,
            median_ratio(m, SPARSE, BENCH_FD), t[BENCH_TRAIN].best / t[BENCH_F].best);
    fprintf(stderr, "   %4.0f%% %3.0f%% %4.0f%% |", 100 * peak_fraction(m, 0, false), 100 * peak_fraction(m, 1, false),
            100 * peak_fraction(m, 2, false));
    fprintf(stderr, "   %5.2f %4.2f %5.2f", m->time[DENSE][0].best / t[0].best, m->time[DENSE][1].best / t[1].best,
            m->time[DENSE][2].best / t[2].best);
    if (threads)
        fprintf(stderr, " |     %5.2f %4.2f %5.2f", m->time[SINGLE][0].best / t[0].best,
                m->time[SINGLE][1].best / t[1].best, m->time[SINGLE][2].best / t[2].best);
    fprintf(stderr, " | %.1f\n", 1e-9 * m->peak);
}

/* ---- the command ---- */

static int create_subjects(measurement *m, const bench_ddim_options *options)
{
    int threads = options->threads;
    m->subjects = threads > 1 ? SUBJECTS : SINGLE;
    for (size_t i = 0; i < m->subjects; i++) {
        bench_subject *s = &m->subject[i];
        hl_status status = bench_subject_create(s, m->c, options->dtype, i == SINGLE ? 1 : threads, i == DENSE);
        for (int j = 0; j < BENCH_JOBS && status == HL_OK; j++)
            status = cli_interrupted() ? HL_STOPPED : bench_subject_run(s, (bench_job)j);
        if (status == HL_STOPPED)
            return CLI_STOPPED;
        if (status != HL_OK)
            return cli_fail_library(&bench_command, s->ctx, status);
    }
    return CLI_OK;
}

static int verify(measurement *m)
{
    bench_errors *e = &m->errors;
    hl_status status = bench_verify(m->c, &m->subject[SPARSE], e);
    if (status != HL_OK)
        return cli_fail_library(&bench_command, NULL, status);
    e->dense = bench_difference(&m->subject[SPARSE], &m->subject[DENSE], true);
    e->same_bits = m->subjects <= SINGLE || bench_same_bits(&m->subject[SPARSE], &m->subject[SINGLE]);
    if (!bench_errors_small(e))
        return cli_fail(&bench_command, CLI_FAILED,
                        "case %s is wrong. Errors of D: %.2g by brute force, %.2g by differences; of gradients "
                        "%.2g; of the precision %.2g; of dense masks %.2g",
                        m->c->name, e->brute, e->differences, e->gradient, e->precision, e->dense);
    if (!e->same_bits)
        cli_say(&bench_command, "case %s: results with %d threads and with one differ", m->c->name,
                hl_context_threads(m->subject[SPARSE].ctx));
    return CLI_OK;
}

static int run_case(const bench_case *c, const bench_ddim_options *options, bool head)
{
    measurement *m = calloc(1, sizeof *m);
    bench_case own = *c;
    if (!m)
        return cli_no_memory(&bench_command);
    if (options->rows)
        own.rows = options->rows;
    m->c = &own;
    m->clock = options->clock;
    int result = create_subjects(m, options);
    if (result == CLI_OK)
        result = verify(m);
    if (result == CLI_OK) {
        hl_status status = measure(m, options->seconds);
        if (status == HL_STOPPED)
            result = CLI_STOPPED;
        else if (status != HL_OK)
            result = cli_fail_library(&bench_command, NULL, status);
    }
    if (result == CLI_OK) {
        print_row(m, head);
        print_json(m);
        result = m->errors.same_bits ? CLI_OK : CLI_FAILED;
    }
    for (size_t i = 0; i < SUBJECTS; i++)
        bench_subject_free(&m->subject[i]);
    free(m);
    return result;
}

int bench_ddim(const bench_ddim_options *options)
{
    bool head = true;
    int result = CLI_OK;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && result != CLI_STOPPED; i++)
        if (strcmp(options->name, "all") == 0 || strcmp(options->name, cases[i].name) == 0) {
            int status = run_case(&cases[i], options, head);
            result = status != CLI_OK ? status : result;
            head = false;
        }
    return result;
}
