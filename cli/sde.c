/* sde.c - `hollow sde`: the commands about stochastic differential equations, and the observations that they read. */
#include "sde.h"

static const cli_command *const commands[] = { &sde_command_fit, &sde_command_sample, &sde_command_grid,
                                               &sde_command_eval, NULL };

static const char text[] =
    "Commands:\n"
    "  fit     learn drift and diffusion from observations\n"
    "  sample  simulate trajectories of a model\n"
    "  grid    evaluate drift, diffusion and log-density at points\n"
    "  eval    compare a model with data or with the true equation\n"
    "\n"
    "The model is dx_i = f_i(t, x) dt + g_i(t, x) dW_i with drift f and diffusion g. For details see\n"
    "'hollow sde COMMAND --help'.\n";

static int run(int argc, char **argv);
const cli_command cli_sde = { "sde",
                              "fit|sample|grid|eval ARGUMENT ... [--option VALUE ...]",
                              "learn, simulate and test stochastic differential equations",
                              text,
                              NULL,
                              0,
                              0,
                              run };

static int run(int argc, char **argv)
{
    return cli_run(&cli_sde, commands, argc, argv);
}

int sde_read(const cli_command *command, hl_context *ctx, const sde_source *source, hl_observations **rows)
{
    hl_observation_options how = source->how;
    const char *path = source->path;
    int result = cli_keep_pipe(command, &path);
    char place[400];
    how.drop_missing = source->drop;
    how.most_rows = (size_t)source->most;
    if (result != CLI_OK)
        return result;
    hl_status status = hl_observations_read(ctx, path, &how, rows);
    if (status != HL_OK)
        return cli_fail_library(command, ctx, status);
    const hl_observations *o = *rows;
    if (o->dropped)
        cli_say(command, "%s: skipped %zu rows with missing values", source->path, o->dropped);
    if (o->rows < o->all_rows && o->snapshots == SIZE_MAX)
        cli_say(command, "%s: uses %zu of %zu rows: randomly chosen trajectories, or pieces of long ones (--most-rows)",
                source->path, o->rows, o->all_rows);
    else if (o->rows < o->all_rows)
        cli_say(command, "%s: uses %zu randomly chosen rows of %zu (--most-rows)", source->path, o->rows, o->all_rows);
    if (o->snapshots != SIZE_MAX && source->one)
        return cli_fail(command, CLI_WRONG, "%s: the time is not later than that of the row before",
                        hl_observations_place(o, o->snapshots, SIZE_MAX, place, sizeof place));
    if (o->snapshots != SIZE_MAX)
        cli_say(command,
                "%s: times do not increase, so rows are treated as snapshots; if they belong to trajectories, give "
                "their column with --trajectory COL",
                hl_observations_place(o, o->snapshots, SIZE_MAX, place, sizeof place));
    return CLI_OK;
}
