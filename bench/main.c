/* main.c - the program hollow-bench, which `hollow bench` starts: options and a table of benchmarks. */
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"

static const char *const case_names[] = { "a", "b", "c", "d", "all", NULL };
static const char *const dtype_names[] = { "f32", "f64", NULL };
static const char *const clock_names[] = { "wall", "cpu", NULL };
static const char *const method_names[] = { "fit", "regression", "fp", "pseudo-ml", NULL };
static const char *const observed_names[] = { "all", "snapshots", "sparse", "full", "few", "gaps", "scarce", NULL };
static const char *const density_names[] = { "mixture", "flow", NULL };
static const char *const network_names[] = { "mlp", "hollow", NULL };

typedef struct settings {
    uint64_t splits, threads, rows, iterations, parameters, first, seeds, hidden;
    double seconds, kept, rate;
    const char *name, *dtype, *clock, *out, *problem, *method, *network, *density, *data, *observed;
    bool markdown, quick, bands, paths, verdicts;
} settings;

static const cli_option options[] = {
    { "case", CLI_CHOICE, offsetof(settings, name), "a|b|c|d|all", "size of the network; default all", 0, 0,
      case_names },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N",
      "number of threads; default 1. Above 1, one thread is timed as well", 1, 256, NULL },
    { "dtype", CLI_CHOICE, offsetof(settings, dtype), "f32|f64", "precision; default f32", 0, 0, dtype_names },
    { "seconds", CLI_REAL, offsetof(settings, seconds), "S", "seconds per measurement; default 1", 0, 3600, NULL },
    { "rows", CLI_INTEGER, offsetof(settings, rows), "N",
      "rows per batch; default that of the case. density: training rows, default 20000", 1, 1000000, NULL },
    { "clock", CLI_CHOICE, offsetof(settings, clock), "wall|cpu",
      "clock; default wall. Use cpu for one thread on a busy machine", 0, 0, clock_names },
    { "iterations", CLI_INTEGER, offsetof(settings, iterations), "N",
      "learning, sde, density, scale: training iterations", 1, 1000000, NULL },
    { "parameters", CLI_INTEGER, offsetof(settings, parameters), "N",
      "learning: largest number of parameters of a network; default 30000", 5000, 10000000, NULL },
    { "out", CLI_TEXT, offsetof(settings, out), "DIR",
      "learning, sde: write a table to DIR; solvers: a table and a picture", 0, 0, NULL },
    { "quick", CLI_FLAG, offsetof(settings, quick), NULL,
      "solvers: fewer networks; sde: no regressions with single dictionaries; networks: fewer trajectories", 0, 0,
      NULL },
    { "problem", CLI_TEXT, offsetof(settings, problem), "LIST",
      "sde: names and groups (bench, old, calibration, fresh, unseen, all); default bench", 0, 0, NULL },
    { "method", CLI_CHOICE, offsetof(settings, method), "NAME",
      "sde: fit (default), as 'hollow sde fit'; regression, without the density; fp or pseudo-ml, networks", 0, 0,
      method_names },
    { "observed", CLI_CHOICE, offsetof(settings, observed), "NAME",
      "sde: observations: snapshots, sparse (5 % of the states, with trajectories), full, few (100 trajectories), "
      "gaps "
      "(200 trajectories with gaps) or scarce (600 rows at 10 times, unpaired); default all",
      0, 0, observed_names },
    { "network", CLI_CHOICE, offsetof(settings, network), "mlp|hollow", "sde: type of the networks; default hollow", 0,
      0, network_names },
    { "density", CLI_CHOICE, offsetof(settings, density), "mixture|flow", "sde: density; default mixture", 0, 0,
      density_names },
    { "hidden", CLI_INTEGER, offsetof(settings, hidden), "N", "sde: units per layer", 1, 4096, NULL },
    { "kept", CLI_REAL, offsetof(settings, kept), "SHARE",
      "sde: fraction of the observations to use; default 1, then 0.05", 0.001, 1, NULL },
    { "data", CLI_TEXT, offsetof(settings, data), "NAME",
      "density: a data set, an npz file with arrays train, valid and test, or a directory of these; default all data "
      "sets",
      0, 0, NULL },
    { "few", CLI_INTEGER, offsetof(settings, splits), "N", "density: use N random splits of the rows of --data FILE", 1,
      1000, NULL },
    { "markdown", CLI_FLAG, offsetof(settings, markdown), NULL, "density, sde: print a table instead of JSON", 0, 0,
      NULL },
    { "rate", CLI_REAL, offsetof(settings, rate), "X", "sde: learning rate; default 0.002", 0, 1, NULL },
    { "seeds", CLI_INTEGER, offsetof(settings, seeds), "N", "sde: number of seeds; default 1, with --bands 50", 1, 1000,
      NULL },
    { "bands", CLI_FLAG, offsetof(settings, bands), NULL,
      "sde: measure the coverage of the bands; with --out FILE a stopped run continues", 0, 0, NULL },
    { "paths", CLI_FLAG, offsetof(settings, paths), NULL, "sde: learn from single paths of a double well", 0, 0, NULL },
    { "verdicts", CLI_FLAG, offsetof(settings, verdicts), NULL, "sde: verdicts on correct and on wrong models", 0, 0,
      NULL },
    { "first-seed", CLI_INTEGER, offsetof(settings, first), "N", "sde: first seed; default 1", 1, 1000000, NULL },
    { 0 },
};

static const char text[] =
    "Runs a benchmark; the default is ddim. Each prints one line of JSON per case on stdout.\n"
    "\n"
    "  ddim          time of f; of f and D f, the exact diagonal of the Jacobian; and of a training\n"
    "                step with all parameter gradients. Results are verified by brute force first;\n"
    "                a table is printed on stderr.\n"
    "  conditioners  the same for every conditioner and increasing d, per sample, in batches of 16\n"
    "  learning      train a continuous flow with each conditioner, with about equal numbers of\n"
    "                parameters, on images of known density in raster order and shuffled\n"
    "  solvers       evaluations needed to solve, differentiate and invert, on a stiff test set and\n"
    "                on stiff hollow networks\n"
    "  sde           errors of known stochastic equations, learned from snapshots and trajectories;\n"
    "                with --out a later call continues\n"
    "  density       compare 'hollow fit' with the true density of generated data\n"
    "  scale         speed-up by 1, 2 and 4 MPI ranks, and the time that they wait for each other\n"
    "\n"
    "  case    d  features  hidden  width  batch   two hidden layers everywhere, tanh\n"
    "  a       2        16      64     64    512\n"
    "  b      43        32     256     64   1000\n"
    "  c      64       100     512    100    100\n"
    "  d     784        16    1024     32     64\n"
    "\n"
    "*_s are seconds, best of many runs. *_over_f are ratios to f. *_peak is the fraction of the\n"
    "machine's peak reached by matrix products (*_peak_all: by all operations); the peak is\n"
    "measured between the runs. mask_speedup_* is the speed-up from skipping masked weights,\n"
    "speedup_* that of --threads over one thread. bytes is the memory of the training step's plan,\n"
    "for any batch. The exit status is 1 if the verification fails. The manual page explains every\n"
    "member.\n";

static int run(int argc, char **argv);
const cli_command bench_command = { "bench",
                                    "[ddim|conditioners|learning|solvers|sde|density|scale] [--option VALUE ...]",
                                    "run benchmarks; prints JSON lines",
                                    text,
                                    options,
                                    0,
                                    1,
                                    run };

static const char *const names[] = { "ddim", "conditioners", "learning", "solvers", "sde", "density", "scale", NULL };
enum { DDIM, CONDITIONERS, LEARNING, SOLVERS, SDE, DENSITY, SCALE };

static int run_one(int which, const settings *set)
{
    bool cpu = strcmp(set->clock, "cpu") == 0;
    int threads = (int)set->threads;
    hl_dtype dtype = strcmp(set->dtype, "f64") == 0 ? HL_F64 : HL_F32;
    double (*clock)(void) = cpu ? numbers_cpu_time : cli_now;
    if (which == LEARNING)
        return bench_learning(&(bench_learning_options){ set->iterations ? (size_t)set->iterations : 2000,
                                                         (size_t)set->parameters, threads, set->out });
    if (which == SOLVERS)
        return bench_solvers(set->quick, threads, set->out);
    if (which == SDE && set->bands)
        return bench_sde_bands(&(bench_sde_options){ .problem = set->problem,
                                                     .method = set->method,
                                                     .seeds = set->seeds ? (size_t)set->seeds : 50,
                                                     .threads = threads,
                                                     .out = set->out });
    if (which == SDE) {
        bench_sde_options sde = { .problem = set->problem,
                                  .method = set->method,
                                  .network = set->network,
                                  .density = set->density,
                                  .observed = set->observed,
                                  .out = set->out,
                                  .first = (size_t)set->first,
                                  .seeds = set->seeds ? (size_t)set->seeds : 1,
                                  .iterations = (size_t)set->iterations,
                                  .hidden = (size_t)set->hidden,
                                  .kept = set->kept,
                                  .rate = set->rate,
                                  .threads = threads,
                                  .quick = set->quick,
                                  .markdown = set->markdown };
        return set->paths ? bench_sde_paths(&sde) : set->verdicts ? bench_sde_verdicts(&sde) : bench_sde(&sde);
    }
    if (which == DENSITY)
        return bench_density(&(bench_density_options){ set->data, (size_t)set->iterations, (size_t)set->rows, threads,
                                                       (size_t)set->splits, set->markdown });
    if (which == SCALE)
        return bench_scale((size_t)set->iterations);
    if (threads > 1 && cpu)
        return cli_fail(&bench_command, CLI_WRONG, "--clock cpu requires one thread, but --threads is %d", threads);
    if (which == DDIM)
        return bench_ddim(&(bench_ddim_options){ set->name, dtype, threads, (size_t)set->rows, set->seconds, clock });
    if (strcmp(set->name, "all") != 0)
        return cli_fail(&bench_command, CLI_WRONG, "--case applies to ddim only");
    return bench_conditioners(dtype, threads, (size_t)set->rows, set->seconds / 5, clock);
}

static int run(int argc, char **argv)
{
    settings set = {
        .threads = 1, .seconds = 1, .name = "all", .dtype = "f32", .clock = "wall", .parameters = 30000, .first = 1
    };
    const char *name[2];
    char list[100];
    int result = cli_parse(&bench_command, argc, argv, &set, name), which = DDIM;
    if (result >= 0)
        return result;
    while (name[0] && names[which] && strcmp(name[0], names[which]) != 0)
        which++;
    if (!names[which]) {
        cli_join(list, sizeof list, names);
        return cli_fail(&bench_command, CLI_WRONG, "unknown benchmark '%s'; use one of %s", name[0], list);
    }
    result = run_one(which, &set);
    if (result == CLI_STOPPED)
        cli_say(&bench_command, "stopped");
    return result;
}

int main(int argc, char **argv)
{
    cli_catch_interrupt();
    return cli_finish(run(argc - 1, argv + 1));
}
