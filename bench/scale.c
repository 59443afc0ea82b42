/* scale.c - `hollow bench scale`: a training on several ranks that mpirun starts, against one rank. Every run must write the same model. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

enum { COLUMNS = 43, ROWS = 4000, MOST_RANKS = 4, SEED = 31 };

/* A training: sizes of the network, rows of a batch, and a delay before each exchange, as of a slow network. */
typedef struct scale_case {
    size_t ranks, batch, hidden, features, width;
    double delay;
} scale_case;

typedef struct timing {
    double seconds, gathered; /* in all; of them, waiting for other ranks */
    double compute;           /* processor seconds of rank 0 outside of exchanges */
    double exchanges, bytes, parameters;
} timing;

/* Columns that depend on each other. */
static hl_status write_table(hl_context *ctx, const char *path)
{
    hl_table_writer *writer = NULL;
    hl_status status = hl_table_writer_create(ctx, path, COLUMNS, NULL, &writer);
    for (size_t r = 0; r < ROWS && status == HL_OK; r++) {
        double x[COLUMNS], last = 0;
        for (size_t i = 0; i < COLUMNS; i++)
            last = x[i] = 0.7 * last + hl_random_normal(SEED, 0, r * COLUMNS + i);
        status = hl_table_write_rows(writer, 1, x);
    }
    if (status == HL_OK)
        status = hl_table_writer_finish(writer);
    hl_table_writer_free(writer);
    return status;
}

/* The number after "key": in a line of JSON; NaN if there is none. */
static double member(const char *line, const char *key)
{
    char quoted[60];
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(line, quoted);
    return at ? strtod(at + strlen(quoted), NULL) : NAN;
}

static int run_case(const char *hollow, const char *directory, const scale_case *c, size_t iterations, timing *t)
{
    char command[3 * PATH_MAX + 500], line[10000] = "", starter[200] = "";
    if (c->ranks > 1)
        snprintf(starter, sizeof starter, "HOLLOW_EXCHANGE_DELAY=%g mpirun --oversubscribe -n %zu ", c->delay,
                 c->ranks);
    snprintf(
        command, sizeof command,
        "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 %s'%s' fit '%s/table.npy' -o '%s/%zu.hollow' "
        "--members flow --loss nll --calibrate off --ode-steps 4 --hidden %zu --features %zu --width %zu --layers 2 "
        "--iters %zu --batch %zu --validation-share 0.01 --threads 1 --json --quiet",
        starter, hollow, directory, directory, c->ranks, c->hidden, c->features, c->width, iterations, c->batch);
    FILE *pipe = popen(command, "r");
    bool read = pipe && fgets(line, sizeof line, pipe);
    if (!pipe || pclose(pipe) != 0 || !read)
        return cli_fail(&bench_command, CLI_FAILED, "this failed: %s", command);
    *t = (timing){ member(line, "seconds"),   member(line, "gathered_seconds"), member(line, "compute_seconds"),
                   member(line, "exchanges"), member(line, "exchanged_bytes"),  member(line, "parameters") };
    return CLI_OK;
}

/* Do the models of `ranks` and of one have the same bytes? */
static bool same_model(const char *directory, size_t ranks)
{
    char command[2 * PATH_MAX + 60];
    snprintf(command, sizeof command, "cmp -s '%s/1.hollow' '%s/%zu.hollow'", directory, directory, ranks);
    return system(command) == 0;
}

static void print_case(const scale_case *c, size_t iterations, const timing *t, const timing *one, bool same)
{
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "case", "likelihood training, 43 columns, one thread per rank");
    cli_json_count(&json, "ranks", c->ranks);
    cli_json_count(&json, "batch", c->batch);
    cli_json_real(&json, "parameters", t->parameters);
    cli_json_real(&json, "delay", c->delay);
    cli_json_count(&json, "iterations", iterations);
    cli_json_real(&json, "seconds", t->seconds);
    cli_json_real(&json, "speedup", one->seconds / t->seconds);
    cli_json_real(&json, "communication_share", t->gathered / t->seconds);
    cli_json_real(&json, "gathered_seconds", t->gathered);
    cli_json_real(&json, "compute_seconds", t->compute);
    cli_json_real(&json, "compute_speedup", one->compute / t->compute);
    cli_json_real(&json, "exchanges", t->exchanges);
    cli_json_real(&json, "exchanged_bytes", t->bytes);
    cli_json_bool(&json, "same_model", same);
    cli_json_close(&json, '}');
    putchar('\n');
    fflush(stdout);
}

/* Size b of bench ddim with batches of 1,024 and 256, a smaller network, and delays. */
static int compare(const char *hollow, const char *directory, size_t iterations)
{
    static const scale_case cases[] = {
        { 1, 1024, 256, 32, 64, 0 },   { 2, 1024, 256, 32, 64, 0 },  { 4, 1024, 256, 32, 64, 0 },
        { 2, 1024, 256, 32, 64, .05 }, { 1, 256, 256, 32, 64, 0 },   { 2, 256, 256, 32, 64, 0 },
        { 4, 256, 256, 32, 64, 0 },    { 1, 1024, 64, 16, 32, 0 },   { 2, 1024, 64, 16, 32, 0 },
        { 4, 1024, 64, 16, 32, 0 },    { 4, 1024, 64, 16, 32, .05 },
    };
    timing one = { 0 }, t;
    int result = CLI_OK;
    for (size_t i = 0; i < sizeof cases / sizeof *cases && result == CLI_OK; i++) {
        result = cli_interrupted() ? CLI_STOPPED : run_case(hollow, directory, &cases[i], iterations, &t);
        if (result != CLI_OK)
            break;
        if (cases[i].ranks == 1)
            one = t;
        bool same = same_model(directory, cases[i].ranks);
        print_case(&cases[i], iterations, &t, &one, same);
        if (!same)
            result = cli_fail(&bench_command, CLI_FAILED, "%zu ranks gave a different model than one", cases[i].ranks);
    }
    return result;
}

int bench_scale(size_t iterations)
{
    char hollow[PATH_MAX], directory[PATH_MAX / 2], path[PATH_MAX];
    const char *place = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/hollow-scale-XXXXXX", place && *place ? place : "/tmp");
    ssize_t length = readlink("/proc/self/exe", hollow, sizeof hollow - 10);
    if (length <= 0 || !mkdtemp(directory))
        return cli_fail(&bench_command, CLI_FAILED, "cannot create a directory for the table");
    hollow[length] = '\0';
    strcpy(strrchr(hollow, '/'), "/hollow");
    if (access(hollow, X_OK) != 0) /* installed: this program is in libexec */
        strcpy(hollow, "hollow");
    hl_context *ctx = NULL;
    hl_status status = hl_context_create(NULL, &ctx);
    snprintf(path, sizeof path, "%s/table.npy", directory);
    if (status == HL_OK)
        status = write_table(ctx, path);
    int result = status == HL_OK ? compare(hollow, directory, iterations ? iterations : 20)
                                 : cli_fail_library(&bench_command, ctx, status);
    hl_context_free(ctx);
    unlink(path);
    for (size_t ranks = 1; ranks <= MOST_RANKS; ranks *= 2) {
        snprintf(path, sizeof path, "%s/%zu.hollow", directory, ranks);
        unlink(path);
    }
    rmdir(directory);
    return result;
}
