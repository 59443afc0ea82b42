/* sde_sample.c - `hollow sde sample`: trajectories of a model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sde.h"

static const char *const methods[] = { "euler", "milstein", "heun", "srk", "sra", NULL };

typedef struct settings {
    uint64_t threads, seed, rows, steps, level;
    const char *out, *t0, *t1, *times, *method, *start, *given, *array;
    bool drop, intervals;
} settings;

enum { NO_LEVEL = 99, FINE = 512, CHUNK_VALUES = 1 << 20, SEGMENT_BITS = 28, MOST_TIMES = 4096 };

#define AT(member) offsetof(settings, member)
static const cli_option options[] = {
    { "n", CLI_INTEGER, AT(rows), "N", "number of trajectories; default 100, or the number of rows of --start", 1,
      1 << SEGMENT_BITS, NULL },
    { "t0", CLI_TEXT, AT(t0), "T",
      "start time, a number or a date such as 2020-01-01; default that of --start, or the first time of the data", 0, 0,
      NULL },
    { "t1", CLI_TEXT, AT(t1), "T", "end time; default the last time of the data", 0, 0, NULL },
    { "steps", CLI_INTEGER, AT(steps), "N", "print N + 1 equally spaced times; default 50", 1, 1 << 20, NULL },
    { "times", CLI_TEXT, AT(times), "LIST", "print these times, such as 0,0.5,2", 0, 0, NULL },
    { "start", CLI_TEXT, AT(start), "FILE",
      "start from the rows of FILE; default: from draws of the density at the start time", 0, 0, NULL },
    { "given", CLI_TEXT, AT(given), "FILE",
      "draw paths through the rows of FILE, two or more at increasing times; --steps then applies to each interval "
      "between rows",
      0, 0, NULL },
    { "method", CLI_CHOICE, AT(method), "NAME",
      "stepper: euler, milstein, heun, srk (default), sra (if g does not depend on x)", 0, 0, methods },
    { "level", CLI_INTEGER, AT(level), "K",
      "take 2^K steps between printed times; K is at most 20, with --given 16; default: at least 512 steps in total", 0,
      20, NULL },
    { "intervals", CLI_FLAG, AT(intervals), NULL,
      "print the 5, 50 and 95 % quantiles of the trajectories at each time, including the uncertainty of the model", 0,
      0, NULL },
    { "seed", CLI_INTEGER, AT(seed), "N", "random seed; default 0", 0, 9e15, NULL },
    { "drop-missing", CLI_FLAG, AT(drop), NULL, "--start, --given: skip rows with missing values", 0, 0, NULL },
    { "array", CLI_TEXT, AT(array), "NAME", "npz: names of the arrays of --start or --given; default all", 0, 0, NULL },
    { "out", CLI_TEXT, AT(out), "FILE", "output file (.csv or .npy); default stdout", 0, 0, NULL },
    { "threads", CLI_INTEGER, AT(threads), "N", "number of threads; default 1. Does not change results", 1, 256, NULL },
    { 0 },
};

static const char text[] =
    "Prints simulated trajectories as csv with the header trajectory,t,x1,x2,..., in units of the data.\n"
    "Trajectories start from draws of the model's density at the start time, or from given rows (at their\n"
    "time, if they have one). If the times of the data were dates, csv files have dates; npy and --json\n"
    "have years. With --json the result is one object; with --out it contains the number of rows only.\n"
    "\n"
    "The same seed gives the same trajectories; a larger -n appends trajectories to these. With equally\n"
    "spaced times, a finer --level uses the same Brownian paths.\n"
    "\n"
    "--intervals prints t,x1_low,x1_median,x1_high,...: 90 % forecast intervals, in which each trajectory\n"
    "uses drift and diffusion of one bootstrap replicate of the model (sde fit --bands). --given draws\n"
    "bridges, paths of the model through given states, and reports the effective fraction of the proposed\n"
    "paths.\n"
    "\n"
    "A trajectory that leaves the region of the data and does not stay finite has nan from there on; the\n"
    "status is then 1, and a message says how many there are. Intervals are of the others.\n";

static int run(int argc, char **argv);
const cli_command sde_command_sample = {
    "sde sample", "MODEL [-n N] [--option VALUE ...]", "simulate trajectories of a model", text, options, 1, 1, run
};
static const cli_command *const me = &sde_command_sample;

typedef struct job {
    const settings *set;
    hl_context *ctx;
    hl_sde *sde;
    hl_observations *start, *given;
    hl_simulator *simulator;
    hl_table_writer *writer; /* NULL: rows go into the object */
    cli_json json;
    size_t dim, rows, times;
    double *time;                 /* those printed */
    size_t gap_steps;             /* --given: of each gap */
    bool even;                    /* equally spaced: one run */
    double *x, *t, *saved, *line; /* a chunk */
    double effective;             /* --given: share of the proposals */
    double *all;                  /* --intervals: [times][dim][rows] */
    size_t escaped;               /* trajectories that are not finite at their end */
    bool dates;                   /* times are written as dates */
} job;

static bool ends_in_npy(const char *path)
{
    size_t length = path ? strlen(path) : 0;
    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

/* ---- times ---- */

static int read_times(job *j)
{
    const char *at = j->set->times, *end;
    for (;; at = end + 1) {
        if (j->times == MOST_TIMES)
            return cli_fail(me, CLI_WRONG, "--times: more than %d times", (int)MOST_TIMES);
        double v;
        if (!(end = hl_time_scan(at, &v)) || (*end && *end != ','))
            return cli_fail(me, CLI_WRONG, "--times: '%s' is not a list of numbers or dates; error at '%s'",
                            j->set->times, at);
        if (j->times && !(v > j->time[j->times - 1]))
            return cli_fail(me, CLI_WRONG, "--times: %g is not later than %g", v, j->time[j->times - 1]);
        j->time[j->times++] = v;
        if (!*end)
            return CLI_OK;
    }
}

static int read_end(const char *option, const char *given, double *time)
{
    const char *end = given ? hl_time_scan(given, time) : "";
    if (end && !*end)
        return CLI_OK;
    return cli_fail(me, CLI_WRONG, "--%s: '%s' is not a number or a date such as 2020-01-31", option, given);
}

/* The rows to start from, and their time, if they have one, to *from. */
static int read_start(job *j, double *from)
{
    const settings *s = j->set;
    char place[400];
    sde_source source = { .path = s->start, .drop = s->drop, .how = { .array = s->array, .dt = 1, .model = j->sde } };
    source.how.times_optional = 1;
    source.how.unordered = 1;
    source.how.min_rows = 1;
    int result = s->start ? sde_read(me, j->ctx, &source, &j->start) : CLI_OK;
    if (!s->start || result != CLI_OK || !j->start->timed || s->t0 || s->times)
        return result;
    for (size_t r = 1; r < j->start->rows; r++)
        if (j->start->t[r] != j->start->t[0])
            return cli_fail(me, CLI_WRONG,
                            "%s: time %.10g differs from that of the first row, %.10g; all rows must start at the same "
                            "time: remove the others, or give --t0 or --times",
                            hl_observations_place(j->start, r, j->dim, place, sizeof place), j->start->t[r],
                            j->start->t[0]);
    *from = j->start->t[0];
    return CLI_OK;
}

/* The states that paths go through, and the times between them. */
static int read_given(job *j)
{
    const settings *s = j->set;
    sde_source source = { .path = s->given, .drop = s->drop, .how = { .array = s->array, .model = j->sde } };
    source.how.min_rows = 2;
    source.one = true;
    if (s->start || s->times || s->t0 || s->t1 || s->method)
        return cli_fail(me, CLI_WRONG,
                        "--given determines start and end of the paths, which use Euler steps; remove --start, "
                        "--times, --t0, --t1 and --method");
    int result = sde_read(me, j->ctx, &source, &j->given);
    if (result != CLI_OK)
        return result;
    size_t gaps = j->given->rows - 1, steps = s->steps ? (size_t)s->steps : (50 + gaps - 1) / gaps;
    if (!j->given->paired || j->given->trajectories != 1)
        return cli_fail(me, CLI_WRONG, "--given: %s must contain one trajectory with increasing times", s->given);
    j->times = gaps * steps + 1;
    j->gap_steps = steps;
    j->time = calloc(j->times, sizeof *j->time);
    if (!j->time)
        return cli_no_memory(me);
    for (size_t k = 0; k < j->times; k++) {
        size_t gap = k / steps < gaps ? k / steps : gaps - 1;
        double from = j->given->t[gap], to = j->given->t[gap + 1];
        j->time[k] = k == j->times - 1 ? to : from + (to - from) / (double)steps * (double)(k - gap * steps);
    }
    return CLI_OK;
}

/* Warn of times where there were no data. */
static void check_times(const job *j)
{
    double first, last;
    hl_sde_get_scale(j->sde, &first, &last, NULL, NULL);
    double slack = 1e-9 * (last - first), all[] = { j->time[0], j->time[j->times - 1], first, last };
    char shown[4][40];
    for (size_t k = 0; k < 4; k++)
        if (hl_sde_dates(j->sde))
            shown[k][hl_date_text(hl_time_days(all[k]), shown[k])] = 0;
        else
            snprintf(shown[k], sizeof *shown, "%.10g", all[k]);
    if (all[0] < first - slack || all[1] > last + slack)
        cli_say(me, "warning: times %s..%s are outside of those of the data, %s..%s", shown[0], shown[1], shown[2],
                shown[3]);
}

static int choose_times(job *j)
{
    const settings *s = j->set;
    double first, last;
    hl_sde_get_scale(j->sde, &first, &last, NULL, NULL);
    double from = first, to = last;
    if (s->times && (s->t0 || s->t1 || s->steps))
        return cli_fail(me, CLI_WRONG,
                        "--times cannot be combined with --t0, --t1 and --steps, which give equally spaced times");
    if (read_end("t0", s->t0, &from) != CLI_OK || read_end("t1", s->t1, &to) != CLI_OK)
        return CLI_WRONG;
    int result = read_start(j, &from);
    if (result != CLI_OK)
        return result;
    size_t steps = s->steps ? (size_t)s->steps : 50;
    j->even = !s->times;
    j->time = calloc(s->times ? MOST_TIMES : steps + 1, sizeof *j->time);
    if (!j->time)
        return cli_no_memory(me);
    if (s->times) {
        result = read_times(j);
        if (result != CLI_OK)
            return result;
    } else {
        if (!(to > from))
            return cli_fail(me, CLI_WRONG, "the start time, %g, is not before the end time, %g", from, to);
        j->times = steps + 1;
        for (size_t i = 0; i <= steps; i++)
            j->time[i] = from + (to - from) / (double)steps * (double)i;
    }
    return CLI_OK;
}

/* ---- simulation ---- */

/* sra takes g for the same at all x: say so where it is not, at draws from the density in the middle of the times. */
static hl_status check_method(const job *j)
{
    enum { DRAWS = 200 };
    size_t d = j->dim;
    double worst = 0, t[DRAWS], *x = calloc(2 * DRAWS * d, sizeof *x), *g = x + DRAWS * d;
    hl_status status = x ? HL_OK : HL_ERR_NOMEM;
    for (size_t r = 0; r < DRAWS; r++)
        t[r] = j->time[j->times / 2];
    if (status == HL_OK)
        status = hl_sde_sample(j->sde, DRAWS, t, j->set->seed, 0, x);
    if (status == HL_OK)
        status = hl_sde_eval(j->sde, DRAWS, t, x, &(hl_sde_values){ .g = g });
    for (size_t i = 0; i < d && status == HL_OK; i++) {
        double low = g[i], high = g[i];
        for (size_t r = 0; r < DRAWS; r++) {
            low = fmin(low, g[r * d + i]);
            high = fmax(high, g[r * d + i]);
        }
        worst = high > 0 ? fmax(worst, (high - low) / high) : worst;
    }
    free(x);
    if (worst > 0.02)
        cli_say(me,
                "warning: --method sra requires a diffusion that does not depend on x, but this one varies by %.0f %%; "
                "use srk",
                100 * worst);
    return status;
}

/* Rows go to a table or, with --json and without a file for them, into the object. */
static int open_output(job *j)
{
    const char *out = j->set->out;
    size_t d = j->dim, wide = j->set->intervals ? 1 + 3 * d : d + 2;
    hl_status status = HL_OK;
    const char **names = calloc(wide, sizeof *names);
    char(*made)[300] = calloc(3 * d, sizeof *made);
    if (!names || !made) {
        free(names);
        free(made);
        return cli_no_memory(me);
    }
    names[0] = j->set->intervals ? hl_sde_name(j->sde, d) : "trajectory";
    names[1] = hl_sde_name(j->sde, d);
    for (size_t i = 0; i < d && !j->set->intervals; i++)
        names[2 + i] = hl_sde_name(j->sde, i);
    for (size_t k = 0; k < 3 * d && j->set->intervals; k++) {
        static const char *const ends[] = { "low", "median", "high" };
        snprintf(made[k], sizeof *made, "%s_%s", hl_sde_name(j->sde, k / 3), ends[k % 3]);
        names[1 + k] = made[k];
    }
    j->json = (cli_json){ .file = stdout };
    if (cli_json_wanted())
        cli_json_open_table(&j->json, wide, names);
    if (cli_json_wanted() && !out)
        cli_json_open(&j->json, "sample", '[');
    else
        status = hl_table_writer_create(
            j->ctx, out ? out : "-", wide,
            &(hl_table_writer_options){ .names = names,
                                        .rows = j->set->intervals ? j->times : j->rows * j->times,
                                        .date_column = j->dates ? (j->set->intervals ? 1 : 2) : 0 },
            &j->writer);
    free(names);
    free(made);
    return status == HL_OK ? CLI_OK : cli_fail_library(me, j->ctx, status);
}

static size_t line_width(const job *j)
{
    return j->set->intervals ? 1 + 3 * j->dim : j->dim + 2;
}

static hl_status put_line(job *j)
{
    double *time = j->line + (j->set->intervals ? 0 : 1);
    if (j->dates)
        *time = hl_time_days(*time);
    if (j->writer)
        return hl_table_write_rows(j->writer, 1, j->line);
    cli_json_rows(&j->json, 1, line_width(j), j->line);
    return HL_OK;
}

static hl_status close_output(job *j)
{
    hl_status status = j->writer ? hl_table_writer_finish(j->writer) : HL_OK;
    if (status != HL_OK || !cli_json_wanted())
        return status;
    cli_json_close_rows(&j->json, j->set->out);
    cli_json_count(&j->json, "trajectories", j->rows);
    cli_json_count(&j->json, "not_finite", j->escaped);
    if (j->given)
        cli_json_real(&j->json, "effective_share", j->effective);
    cli_json_count(&j->json, "rows", j->set->intervals ? j->times : j->rows * j->times);
    cli_json_close(&j->json, '}');
    putchar('\n');
    return HL_OK;
}

static int prepare(job *j)
{
    const settings *s = j->set;
    int level = (int)s->level;
    hl_noise_system system;
    j->rows = s->rows ? (size_t)s->rows : s->start ? j->start->rows : 100;
    if (s->given)
        return open_output(j);
    if (level == NO_LEVEL)
        for (level = 0; j->times > 1 && (j->times - 1) << level < FINE; level++)
            ;
    bool replicates = s->intervals && hl_sde_replicates(j->sde);
    hl_status status = replicates ? hl_sde_replicate_system(j->sde, &system) : hl_sde_system(j->sde, &system);
    if (s->intervals && !replicates)
        cli_say(
            me,
            "warning: the model has no bands, so the intervals do not include the uncertainty of drift and diffusion");
    if (s->intervals && !s->start)
        cli_say(me,
                "the forecast starts from draws of the model's density at t = %.10g; use --start FILE to start from "
                "given states, such as the last observation",
                j->time[0]);
    if (status == HL_OK && s->method && strcmp(s->method, "sra") == 0)
        status = check_method(j);
    if (status == HL_OK)
        status = hl_simulator_create(
            j->ctx, &system,
            &(hl_simulator_options){ .method = s->method, .seed = s->seed, .level = level, .escapes = 1 },
            &j->simulator);
    return status == HL_OK ? open_output(j) : cli_fail_library(me, j->ctx, status);
}

/* Trajectories first .. first + count - 1 to saved: count x times x dim. */
static hl_status simulate(job *j, size_t first, size_t count)
{
    size_t d = j->dim;
    hl_status status = HL_OK;
    for (size_t r = 0; r < count; r++)
        j->t[r] = j->time[0];
    for (size_t r = 0; r < count && j->set->start; r++)
        memcpy(j->x + r * d, j->start->x + (first + r) % j->start->rows * d, d * sizeof *j->x);
    if (!j->set->start)
        status = hl_sde_sample(j->sde, count, j->t, j->set->seed, first, j->x);
    if (status == HL_OK && j->even)
        return hl_simulator_run(j->simulator, count, first, j->t,
                                (j->time[j->times - 1] - j->time[0]) / (double)(j->times - 1), j->times - 1, j->x,
                                j->saved);
    for (size_t k = 0; k < j->times && status == HL_OK; k++) { /* paths of its own for every stretch */
        if (k > 0)
            status = hl_simulator_run(j->simulator, count, (uint64_t)k << SEGMENT_BITS | first, j->t,
                                      j->time[k] - j->time[k - 1], 1, j->x, NULL);
        for (size_t r = 0; r < count; r++)
            memcpy(j->saved + (r * j->times + k) * d, j->x + r * d, d * sizeof *j->x);
    }
    return status;
}

/* Paths through the given states to saved, and what the proposals were worth. */
static hl_status simulate_given(job *j)
{
    const settings *s = j->set;
    double *share = calloc(j->given->rows, sizeof *share);
    hl_bridge_options o = { .steps = j->gap_steps, .seed = s->seed };
    o.level = s->level == NO_LEVEL ? 0 : s->level ? (int)s->level : -1;
    hl_status status =
        share ? hl_sde_bridge(j->sde, j->given->rows, j->given->t, j->given->x, j->rows, &o, j->saved, share)
              : HL_ERR_NOMEM;
    size_t worst = 0;
    for (size_t k = 1; k + 1 < j->given->rows && status == HL_OK; k++)
        worst = share[k] < share[worst] ? k : worst;
    if (status == HL_OK) {
        j->effective = share[worst];
        cli_say(me, "effective fraction of the proposed paths: %.3g%s%s", share[worst],
                j->given->rows > 2 ? " in the worst interval" : "",
                share[worst] < 0.02 ? "; few proposals have a significant weight: increase -n" : "");
    }
    free(share);
    return status;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The finite values to the front; returns their number. */
static size_t keep_finite(size_t count, double *v)
{
    size_t kept = 0;
    for (size_t k = 0; k < count; k++)
        if (isfinite(v[k]))
            v[kept++] = v[k];
    return kept;
}

/* Quantiles of all trajectories that are finite, a line for each time. */
static hl_status put_intervals(job *j)
{
    static const double at[] = { 0.05, 0.5, 0.95 };
    hl_status status = HL_OK;
    for (size_t k = 0; k < j->times && status == HL_OK; k++) {
        j->line[0] = j->time[k];
        for (size_t i = 0; i < j->dim; i++) {
            double *v = j->all + (k * j->dim + i) * j->rows;
            size_t count = keep_finite(j->rows, v);
            qsort(v, count, sizeof *v, ascending);
            for (size_t q = 0; q < 3; q++) {
                double place = at[q] * (double)(count - 1);
                size_t low = (size_t)place, high = low + 1 < count ? low + 1 : low;
                j->line[1 + 3 * i + q] = count ? v[low] + (place - (double)low) * (v[high] - v[low]) : NAN;
            }
        }
        status = put_line(j);
    }
    return status;
}

/* The chunk's states to the lists of each time and column. */
static void gather(job *j, size_t first, size_t count)
{
    for (size_t r = 0; r < count; r++)
        for (size_t k = 0; k < j->times * j->dim; k++)
            j->all[k * j->rows + first + r] = j->saved[r * j->times * j->dim + k];
}

static int write_all(job *j)
{
    size_t d = j->dim, chunk = CHUNK_VALUES / (j->times * d);
    chunk = j->given ? j->rows : chunk < 1 ? 1 : chunk > j->rows ? j->rows : chunk;
    j->x = calloc(chunk * d, sizeof *j->x);
    j->t = calloc(chunk, sizeof *j->t);
    j->saved = calloc(chunk * j->times, d * sizeof *j->saved);
    j->line = calloc(line_width(j), sizeof *j->line);
    j->all = calloc(j->set->intervals ? j->rows * j->times : 1, d * sizeof *j->all);
    hl_status status = j->x && j->t && j->saved && j->line && j->all ? HL_OK : HL_ERR_NOMEM;
    for (size_t first = 0; first < j->rows && status == HL_OK; first += chunk) {
        size_t count = j->rows - first < chunk ? j->rows - first : chunk;
        status = j->given ? simulate_given(j) : simulate(j, first, count);
        if (status == HL_ERR_NOT_FINITE)
            return cli_fail(
                me, CLI_FAILED,
                "the simulation failed: %s (--level, --steps). If that does not help, paths leave the region "
                "of the data, where the equation is extrapolated: start inside it (--start), stop earlier "
                "(--times), or fit a model with another --form, such as radial",
                hl_context_message(j->ctx));
        for (size_t r = 0; r < count && status == HL_OK; r++)
            j->escaped += isfinite(j->saved[((r + 1) * j->times - 1) * d]) ? 0 : 1;
        if (j->set->intervals && status == HL_OK)
            gather(j, first, count);
        for (size_t k = 0; k < count * j->times && status == HL_OK && !j->set->intervals; k++) {
            j->line[0] = (double)(first + k / j->times);
            j->line[1] = j->time[k % j->times];
            memcpy(j->line + 2, j->saved + k * d, d * sizeof *j->line);
            status = put_line(j);
        }
        if (cli_interrupted())
            return cli_fail(me, CLI_STOPPED, "stopped");
    }
    if (status == HL_OK && j->set->intervals)
        status = put_intervals(j);
    if (status == HL_OK)
        status = close_output(j);
    if (status == HL_ERR_NOMEM)
        return cli_no_memory(me);
    if (status == HL_OK && j->escaped)
        return cli_fail(
            me, CLI_FAILED,
            "%zu of %zu trajectories leave the region of the data and do not stay finite: their later rows are nan%s. "
            "Smaller steps may help (--level); otherwise start inside the data (--start), stop earlier (--times), "
            "or fit a model with another --form, such as radial",
            j->escaped, j->rows, j->set->intervals ? ", and the intervals are of the other trajectories" : "");
    return status == HL_OK ? CLI_OK : cli_fail_library(me, j->ctx, status);
}

static int run(int argc, char **argv)
{
    settings set = { .threads = 1, .level = NO_LEVEL };
    const char *path[2];
    int result = cli_parse(me, argc, argv, &set, path);
    if (result >= 0)
        return result;
    const cli_path paths[] = { { path[0], CLI_READ, NULL },
                               { set.start, CLI_READ, NULL },
                               { set.given, CLI_READ, NULL },
                               { set.out, CLI_TABLE, NULL } };
    if (cli_check_paths(me, 4, paths) != CLI_OK)
        return CLI_WRONG;
    job j = { .set = &set };
    hl_status status =
        hl_context_create(&(hl_context_options){ .threads = (int)set.threads, .stop = cli_stop }, &j.ctx);
    if (status == HL_OK)
        status = hl_sde_load(j.ctx, path[0], &j.sde);
    result = status == HL_OK ? CLI_OK : cli_fail_library(me, j.ctx, status);
    j.dim = hl_sde_describe(j.sde).dim;
    j.dates = hl_sde_dates(j.sde) && !ends_in_npy(set.out) && (set.out || !cli_json_wanted());
    if (result == CLI_OK)
        result = set.given ? read_given(&j) : choose_times(&j);
    if (result == CLI_OK) {
        check_times(&j);
        result = prepare(&j);
    }
    if (result == CLI_OK)
        result = write_all(&j);
    hl_table_writer_free(j.writer);
    hl_simulator_free(j.simulator);
    hl_observations_free(j.start);
    hl_observations_free(j.given);
    hl_sde_free(j.sde);
    hl_context_free(j.ctx);
    void *const blocks[] = { j.time, j.x, j.t, j.saved, j.line, j.all };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    return result;
}
