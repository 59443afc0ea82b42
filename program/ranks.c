/* ranks.c - one command on several processes that mpirun started. The plug-in that knows MPI is loaded only then.
 *
 * All ranks run the same command. Rank 0 talks and writes; the others are silent, unless something went wrong on one of them alone. */
#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/hollow_mpi.h"
#include "program.h"

static const double PATIENCE = 10; /* seconds that a rank that failed waits for the others to fail, too */

static hl_ranks ranks = { .size = 1 }, plain; /* plain: as the plug-in has them */
static cli_exchange exchange;
static double delay;    /* seconds before each exchange, as of a slow network */
static size_t near = 1; /* ranks on this machine */
static hollow_mpi_end_fn *end;
static hollow_mpi_abort_fn *abort_all;
static FILE *kept;     /* what a silent rank says */
static int errors = 2; /* where it would go */

/* What starters of MPI programs tell them. */
static size_t started(const char *const *names)
{
    for (; *names; names++) {
        const char *value = getenv(*names);
        if (value && *value >= '0' && *value <= '9')
            return (size_t)strtoull(value, NULL, 10);
    }
    return 0;
}

/* How many of it there are, by mpirun or by srun with an interface for MPI; 0: nobody says so. */
static size_t started_ranks(void)
{
    static const char *const sizes[] = { "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS", NULL };
    static const char *const tasks[] = { "SLURM_STEP_NUM_TASKS", NULL };
    size_t count = started(sizes);
    return count || !getenv("PMIX_RANK") ? count : started(tasks);
}

static size_t started_number(void)
{
    static const char *const numbers[] = { "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID", NULL };
    return started(numbers);
}

static int silence(void)
{
    kept = tmpfile();
    errors = dup(2);
    if (!kept || errors < 0 || !freopen("/dev/null", "w", stdout) || dup2(fileno(kept), 2) < 0)
        return cli_fail(NULL, CLI_FAILED, "rank %zu: cannot store its output", ranks.rank);
    cli_set_quiet();
    return CLI_OK;
}

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The plug-in's exchange, counted. */
static int gather(const void *mine, const size_t *bytes, void *all, void *user)
{
    double start = processor_seconds();
    (void)user;
    if (delay > 0)
        nanosleep(&(struct timespec){ (time_t)delay, (long)(1e9 * (delay - floor(delay))) }, NULL);
    int failed = plain.gather(mine, bytes, all, plain.user);
    for (size_t k = 0; k < ranks.size; k++)
        exchange.bytes += k == ranks.rank ? 0 : bytes[k];
    exchange.count++;
    exchange.processor += processor_seconds() - start;
    return failed;
}

cli_exchange cli_exchanged(void)
{
    cli_exchange e = exchange;
    e.compute = processor_seconds() - e.processor;
    return e;
}

int cli_ranks_start(void)
{
    size_t count = started_ranks();
    char path[PATH_MAX + 64];
    if (count < 2)
        return CLI_OK;
    void *library = cli_find_beside("hollow-mpi.so", path, sizeof path) ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
    hollow_mpi_start_fn *start = NULL;
    if (library) {
        *(void **)&start = dlsym(library, "hollow_mpi_start");
        *(void **)&end = dlsym(library, "hollow_mpi_end");
        *(void **)&abort_all = dlsym(library, "hollow_mpi_abort");
    }
    if (!start || !end || !abort_all) {
        const char *why = library || !*path ? "" : dlerror();
        if (started_number() == 0) /* one of them says it */
            cli_fail(NULL, CLI_WRONG,
                     "started as %zu ranks, but this program was built without MPI%s%s; install MPI (Debian: "
                     "libopenmpi-dev) and build again, or start one process",
                     count, why && *why ? ": " : "", why ? why : "");
        return CLI_WRONG;
    }
    if (start(&plain, &near) != 0)
        return cli_fail(NULL, CLI_FAILED, "MPI could not be initialised");
    if (plain.size != count) { /* they do not know of each other */
        if (started_number() == 0)
            cli_fail(NULL, CLI_FAILED,
                     "started as %zu ranks, but MPI reports %zu; use the mpirun of the same MPI installation", count,
                     plain.size);
        end = NULL;
        return CLI_FAILED;
    }
    ranks = (hl_ranks){ plain.rank, plain.size, gather, NULL };
    const char *slow = getenv("HOLLOW_EXCHANGE_DELAY");
    delay = slow ? fmax(0, fmin(strtod(slow, NULL), 10)) : 0;
    return ranks.rank > 0 ? silence() : CLI_OK;
}

/* What went wrong on all is told by rank 0; if the others do not end as well, by the rank that it went wrong on. */
int cli_ranks_end(int status)
{
    char line[1000];
    if (!end || end(status == CLI_OK ? INFINITY : PATIENCE))
        return status;
    if (kept)
        rewind(kept);
    while (kept && fgets(line, sizeof line, kept))
        dprintf(errors, "rank %zu: %s", ranks.rank, line);
    abort_all(status);
    return status;
}

bool cli_is_first_rank(void)
{
    return ranks.rank == 0;
}

int cli_threads(void)
{
    int threads = hl_threads_available();
    return near > 1 && threads > 1 ? (threads > (int)near ? threads / (int)near : 1) : threads;
}

int cli_use_ranks(const cli_command *command, hl_context *ctx)
{
    static const char *const tasks[] = { "SLURM_STEP_NUM_TASKS", NULL };
    if (ranks.size < 2 && started_ranks() == 0 && started(tasks) > 1 && started_number() == 0)
        cli_say(command, "srun started %zu independent processes; use 'mpirun' or 'srun --mpi=pmix' to share one fit",
                started(tasks));
    if (ranks.size < 2)
        return CLI_OK;
    hl_status status = hl_context_set_ranks(ctx, &ranks);
    if (status == HL_OK)
        status = hl_ranks_compare(ctx, "version of hollow", hl_version(), strlen(hl_version()));
    cli_say(command, "%zu ranks, %d thread%s each", ranks.size, hl_context_threads(ctx),
            hl_context_threads(ctx) > 1 ? "s" : "");
    return status == HL_OK ? CLI_OK : cli_fail_library(command, ctx, status);
}

int cli_refuse_ranks(const cli_command *command, int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "--part", 6) == 0 || strncmp(argv[i], "--first", 7) == 0)
            return CLI_OK;
    if (started_ranks() < 2)
        return CLI_OK;
    if (started_number() > 0)
        return CLI_WRONG;
    return cli_fail(
        command, CLI_WRONG,
        "%zu processes were started, but this command runs on one; 'hollow fit', 'hollow sde fit' and 'hollow vae fit' "
        "run on several ranks; to evaluate or sample in parts see --part of logp and --first of sample",
        started_ranks());
}
