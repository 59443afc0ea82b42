/* conditioners.c - `hollow bench conditioners`: what each conditioner costs as the number of dimensions grows.
 *
 * A conditioner whose work is linear in d shows the same time per dimension on every line. Each line is the best of several
 * runs of a batch; jobs take turns, as the machine is shared. */
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { MIN_RUNS = 3, MAX_RUNS = 200 };

/* How far a conditioner goes: the memory of made grows with d times hidden, the work of attention with d squared. */
static const struct {
    const char *name;
    size_t hidden, most_hidden, most_dim; /* hidden units: d, but within these */
} conditioners[] = {
    { "made", 64, 1024, 4096 }, { "sum", 32, 32, 65536 },      { "tree", 32, 32, 65536 },
    { "conv", 16, 16, 65536 },  { "attention", 32, 32, 1024 },
};
static const size_t sides[] = { 8, 16, 32, 64, 128, 256 }; /* d is their square, for images */

static int measure(bench_subject *s, double seconds, double (*clock)(void), double best[BENCH_JOBS])
{
    double end = cli_now() + seconds * BENCH_JOBS;
    for (int run = 0; run < MIN_RUNS || (run < MAX_RUNS && cli_now() < end); run++)
        for (int j = 0; j < BENCH_JOBS; j++) {
            double start = clock();
            hl_status status = bench_subject_run(s, (bench_job)j);
            double took = clock() - start;
            if (status != HL_OK)
                return cli_fail_library(&bench_command, s->ctx, status);
            if (cli_interrupted())
                return CLI_STOPPED;
            if (run == 0 || took < best[j])
                best[j] = took;
        }
    return CLI_OK;
}

static void print(const bench_case *c, const bench_subject *s, const double best[BENCH_JOBS])
{
    cli_json json = { .file = stdout };
    double rows = (double)s->rows;
    hl_plan_info fd = hl_plan_describe(s->plan[BENCH_FD]), train = hl_plan_describe(s->plan[BENCH_TRAIN]);
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "bench", "conditioners");
    cli_json_text(&json, "conditioner", c->conditioner);
    cli_json_count(&json, "d", c->dim);
    cli_json_count(&json, "features", c->features);
    cli_json_count(&json, "hidden", c->hidden);
    cli_json_count(&json, "width", c->width);
    cli_json_count(&json, "batch", s->rows);
    cli_json_text(&json, "dtype", hl_dtype_name(s->dtype));
    cli_json_text(&json, "isa", hl_context_isa(s->ctx));
    cli_json_count(&json, "threads", (uint64_t)hl_context_threads(s->ctx));
    cli_json_count(&json, "parameters", hl_net_size(s->net));
    cli_json_real(&json, "f_s_per_sample", best[BENCH_F] / rows);
    cli_json_real(&json, "fd_s_per_sample", best[BENCH_FD] / rows);
    cli_json_real(&json, "train_s_per_sample", best[BENCH_TRAIN] / rows);
    cli_json_real(&json, "fd_ns_per_dimension", 1e9 * best[BENCH_FD] / rows / (double)c->dim);
    cli_json_count(&json, "bytes", train.bytes);
    cli_json_count(&json, "fd_bytes", fd.bytes);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
    fprintf(stderr, "%-10s %6zu | %10.4g %10.4g %10.4g ms | %7.1f ns per dimension | %8.1f MB\n", c->conditioner,
            c->dim, 1e3 * best[BENCH_F] / rows, 1e3 * best[BENCH_FD] / rows, 1e3 * best[BENCH_TRAIN] / rows,
            1e9 * best[BENCH_FD] / rows / (double)c->dim, 1e-6 * (double)train.bytes);
}

int bench_conditioners(hl_dtype dtype, int threads, size_t rows, double seconds, double (*clock)(void))
{
    int result = CLI_OK;
    fprintf(stderr, "per sample: f, f + D, training step; f + D per dimension; memory of the training step\n");
    for (size_t n = 0; n < sizeof conditioners / sizeof *conditioners; n++)
        for (size_t i = 0; i < sizeof sides / sizeof *sides && result == CLI_OK; i++) {
            size_t d = sides[i] * sides[i], hidden = d < conditioners[n].hidden ? conditioners[n].hidden : d;
            if (d > conditioners[n].most_dim)
                break;
            bench_case c = { .name = "",
                             .dim = d,
                             .features = 16,
                             .width = 32,
                             .rows = rows ? rows : 16,
                             .hidden = hidden > conditioners[n].most_hidden ? conditioners[n].most_hidden : hidden,
                             .conditioner = conditioners[n].name,
                             .height = sides[i] };
            bench_subject s;
            double best[BENCH_JOBS] = { 0 };
            hl_status status = bench_subject_create(&s, &c, dtype, threads, false);
            if (status != HL_OK)
                result = cli_fail_library(&bench_command, s.ctx, status);
            else if ((result = measure(&s, seconds, clock, best)) == CLI_OK)
                print(&c, &s, best);
            bench_subject_free(&s);
        }
    return result;
}
