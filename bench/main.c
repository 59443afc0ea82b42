/* main.c - the program hollow-bench, which `hollow bench` starts: options and a table of benchmarks. */
#include <string.h>

#include "bench.h"
#include "problems/numbers.h"

static const char *const case_names[] = { "a", "b", "c", "d", "all", NULL };
static const char *const dtype_names[] = { "f32", "f64", NULL };
static const char *const clock_names[] = { "wall", "cpu", NULL };
static const char *const method_names[] = { "fit", "regression", "fp", "pseudo-ml", NULL };
static const char *const observed_names[] = { "all", "snapshots", "sparse", "full", NULL };
static const char *const density_names[] = { "mixture", "flow", NULL };
static const char *const network_names[] = { "mlp", "hollow", NULL };

typedef struct settings {
    uint64_t splits, threads, rows, iterations, parameters, first, seeds, hidden;
    double seconds, kept, rate;
    const char *name, *dtype, *clock, *out, *problem, *method, *network, *density, *data, *observed;
    bool markdown, quick, bands, paths, verdicts;
} settings;

static const cli_option options[] = {
    { "case", CLI_CHOICE, offsetof(settings, name), "a|b|c|d|all", "which size of network; default all", 0, 0,
      case_names },
    { "threads", CLI_INTEGER, offsetof(settings, threads), "N", "threads; default 1; above 1, one is timed as well", 1,
      256, NULL },
    { "dtype", CLI_CHOICE, offsetof(settings, dtype), "f32|f64", "precision; default f32", 0, 0, dtype_names },
    { "seconds", CLI_REAL, offsetof(settings, seconds), "S", "time spent on each measurement; default 1", 0, 3600,
      NULL },
    { "rows", CLI_INTEGER, offsetof(settings, rows), "N",
      "rows of a batch, instead of the case's own; density: to train on, default 20000", 1, 1000000, NULL },
    { "clock", CLI_CHOICE, offsetof(settings, clock), "wall|cpu", "default wall; cpu: for one thread on a busy machine",
      0, 0, clock_names },
    { "iterations", CLI_INTEGER, offsetof(settings, iterations), "N", "learning, sde, density, scale: of training", 1,
      1000000, NULL },
    { "parameters", CLI_INTEGER, offsetof(settings, parameters), "N", "learning: of a network, at most; default 30000",
      5000, 10000000, NULL },
    { "out", CLI_TEXT, offsetof(settings, out), "DIR",
      "learning, sde: write the table there; solvers: table and picture", 0, 0, NULL },
    { "quick", CLI_FLAG, offsetof(settings, quick), NULL,
      "solvers: fewer networks; sde: without the regressions of single dictionaries; networks: fewer trajectories", 0,
      0, NULL },
    { "problem", CLI_TEXT, offsetof(settings, problem), "LIST",
      "sde: names and groups (bench, old, calibration, fresh, unseen, all); default bench", 0, 0, NULL },
    { "method", CLI_CHOICE, offsetof(settings, method), "NAME",
      "sde: fit (default): 'hollow sde fit'; regression: without its density; fp, pseudo-ml: networks", 0, 0,
      method_names },
    { "observed", CLI_CHOICE, offsetof(settings, observed), "NAME",
      "sde: snapshots, sparse (5% of the states, with trajectories), full; default all", 0, 0, observed_names },
    { "network", CLI_CHOICE, offsetof(settings, network), "mlp|hollow", "sde: default hollow", 0, 0, network_names },
    { "density", CLI_CHOICE, offsetof(settings, density), "mixture|flow", "sde: default mixture", 0, 0, density_names },
    { "hidden", CLI_INTEGER, offsetof(settings, hidden), "N", "sde: units of a layer", 1, 4096, NULL },
    { "kept", CLI_REAL, offsetof(settings, kept), "SHARE", "sde: of the observations; default 1 and then 0.05", 0.001,
      1, NULL },
    { "data", CLI_TEXT, offsetof(settings, data), "NAME",
      "density: a set, a npz file with arrays train, valid, test, or a directory of these; default all sets", 0, 0,
      NULL },
    { "few", CLI_INTEGER, offsetof(settings, splits), "N", "density: divide the rows of --data FILE anew, N times", 1,
      1000, NULL },
    { "markdown", CLI_FLAG, offsetof(settings, markdown), NULL, "density, sde: print a table instead of JSON", 0, 0,
      NULL },
    { "rate", CLI_REAL, offsetof(settings, rate), "X", "sde: of learning; default 0.002", 0, 1, NULL },
    { "seeds", CLI_INTEGER, offsetof(settings, seeds), "N", "sde: runs of each kind; default 1, with --bands 50", 1,
      1000, NULL },
    { "bands", CLI_FLAG, offsetof(settings, bands), NULL,
      "sde: how often bands hold the truth; with --out FILE a stopped run goes on", 0, 0, NULL },
    { "paths", CLI_FLAG, offsetof(settings, paths), NULL, "sde: single paths of a double well", 0, 0, NULL },
    { "verdicts", CLI_FLAG, offsetof(settings, verdicts), NULL, "sde: what is said of wrong models", 0, 0, NULL },
    { "first-seed", CLI_INTEGER, offsetof(settings, first), "N", "sde: the first of these seeds; default 1", 1, 1000000,
      NULL },
    { 0 },
};

static const char text[] =
    "ddim times dimension-wise derivatives: f; f and D f, the exact diagonal of its\n"
    "Jacobian; and a training step, with the gradients of a loss of f and D f with\n"
    "respect to all parameters. Before that, it verifies them against brute force.\n"
    "It prints one line of JSON for each case on stdout and a table on stderr.\n"
    "conditioners times the same three for every conditioner as d grows, per sample,\n"
    "in batches of 16. learning trains a continuous flow with each conditioner, all\n"
    "of about the same number of parameters, on images of known density in raster\n"
    "order and shuffled. solvers counts what solving, differentiating and inverting\n"
    "cost, on the stiff test set and on stiff hollow networks. sde learns stochastic\n"
    "equations that are known, from snapshots and from trajectories, and tells the\n"
    "errors; with --out it goes on where an earlier run ended. density gives data of known density to 'hollow fit'\n"
    "and compares the model with the truth. scale trains on 1, 2 and 4 ranks of MPI and\n"
    "tells the gain and the time that they wait for each other. Without a name it runs ddim.\n"
    "\n"
    "  case    d  features  hidden  width  batch   two hidden layers everywhere, tanh\n"
    "  a       2        16      64     64    512\n"
    "  b      43        32     256     64   1000\n"
    "  c      64       100     512    100    100\n"
    "  d     784        16    1024     32     64\n"
    "\n"
    "*_s are seconds, best of many; *_over_f are ratios to f; *_peak is the part of\n"
    "the machine's peak that matrix products reach (*_peak_all: all operations), the\n"
    "peak being measured between the runs; mask_speedup_* is the gain from skipping\n"
    "masked weights, speedup_* that of --threads over one; bytes is the memory of\n"
    "the training step's plan, whatever the batch. Exit status 1 if the\n"
    "verification fails. The manual page explains every member.\n";

static int run(int argc, char **argv);
const cli_command bench_command = { "bench",
                                    "[ddim|conditioners|learning|solvers|sde|density|scale] [--option VALUE ...]",
                                    "time against the machine's limits, as JSON lines",
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
        return cli_fail(&bench_command, CLI_WRONG, "--clock cpu is for one thread; --threads is %d", threads);
    if (which == DDIM)
        return bench_ddim(&(bench_ddim_options){ set->name, dtype, threads, (size_t)set->rows, set->seconds, clock });
    if (strcmp(set->name, "all") != 0)
        return cli_fail(&bench_command, CLI_WRONG, "--case is for ddim");
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
        return cli_fail(&bench_command, CLI_WRONG, "unknown benchmark '%s'; there are %s", name[0], list);
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
