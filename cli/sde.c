/* sde.c - `hollow sde`: the commands about stochastic differential equations. */
#include "sde.h"

static const cli_command *const commands[] = { &sde_command_fit, &sde_command_sample, &sde_command_grid,
                                               &sde_command_eval, NULL };

static const char text[] = "Commands:\n"
                           "  fit     learn drift and diffusion from observations\n"
                           "  sample  simulate trajectories of a model\n"
                           "  grid    drift, diffusion and log-density at points\n"
                           "  eval    compare a model with data, or with a known truth\n\n"
                           "dx_i = f_i(t, x) dt + g_i(t, x) dW_i. 'hollow sde COMMAND --help' says more.\n";

static int run(int argc, char **argv);
const cli_command cli_sde = { "sde",
                              "fit|sample|grid|eval ARGUMENT ... [--option VALUE ...]",
                              "learn, simulate and compare stochastic equations",
                              text,
                              NULL,
                              0,
                              0,
                              run };

static int run(int argc, char **argv)
{
    return cli_run(&cli_sde, commands, argc, argv);
}
