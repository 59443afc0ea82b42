/* sde.c - `hollow sde`: the commands about stochastic differential equations. */
#include "sde.h"

#include <string.h>

static const cli_command *const commands[] = { &sde_command_fit, &sde_command_sample, &sde_command_grid,
                                               &sde_command_eval };
enum { COMMANDS = sizeof commands / sizeof *commands };

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
    if (argc > 1 && strcmp(argv[0], "help") == 0) /* as 'hollow help sde COMMAND' */
        return run(2, (char *[]){ argv[1], "--help", NULL });
    if (argc == 0 || strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0) {
        cli_print_help(&cli_sde);
        return CLI_OK;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name + 4, argv[0]) == 0) /* after "sde " */
            return commands[i]->run(argc - 1, argv + 1);
    return cli_fail(&cli_sde, CLI_WRONG, "unknown %s '%s'; there are fit, sample, grid, eval",
                    argv[0][0] == '-' ? "option" : "command", argv[0]);
}
