/* main.c - the program `hollow`: a table of commands. */
#include <string.h>

#include "cli.h"

static int run_bench(int argc, char **argv);
static int run_paper(int argc, char **argv);
static const cli_command bench = { .name = "bench", .summary = "run benchmarks; prints JSON lines", .run = run_bench };
static const cli_command paper = { .name = "paper",
                                   .summary = "reproduce a figure or table of the paper",
                                   .run = run_paper };

static const cli_command *const commands[] = { &cli_fit, &cli_logp, &cli_sample, &cli_report, &cli_calibrate,  &cli_sde,
                                               &cli_vae, &cli_info, &paper,      &bench,      &cli_completion, NULL };

static int run_bench(int argc, char **argv)
{
    return cli_start(&bench, argc, argv);
}

static int run_paper(int argc, char **argv)
{
    return cli_start(&paper, argc, argv);
}

static int overview(void)
{
    printf("hollow " HL_VERSION " - neural networks with exact, cheap dimension-wise derivatives\n\n"
           "usage: hollow COMMAND [ARGUMENT ...] [--option VALUE ...]\n\nCommands:\n");
    for (size_t i = 0; commands[i]; i++)
        printf("  %-12s%s\n", commands[i]->name, commands[i]->summary);
    printf("  %-12s%s\n\n", "help", "print this text, or that of a command: hollow help COMMAND");
    printf("hollow --version prints the version, instruction set, libraries and threads.\n"
           "\n"
           "Exit status: 0 success, 1 the computation failed, 2 invalid arguments or input, 130 stopped by\n"
           "Ctrl-C, 143 stopped by SIGTERM.\n");
    return CLI_OK;
}

static int version(bool as_json)
{
    char solvers[60];
    int threads = hl_threads_available();
    hl_ode_library(solvers, sizeof solvers);
    if (!as_json) {
        printf("hollow %s\n%s instructions, %s, %d thread%s\n", hl_version(), hl_context_isa(NULL), solvers, threads,
               threads > 1 ? "s" : "");
        return CLI_OK;
    }
    cli_json json = { .file = stdout };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "version", hl_version());
    cli_json_text(&json, "isa", hl_context_isa(NULL));
    cli_json_text(&json, "solvers", solvers);
    cli_json_count(&json, "threads", (uint64_t)threads);
    cli_json_close(&json, '}');
    putchar('\n');
    return CLI_OK;
}

static int help(int argc, char **argv)
{
    if (argc == 0 || strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0)
        return overview();
    const cli_command *command = cli_find_command(commands, argv[0]);
    if (!command)
        return cli_unknown(NULL, commands, argv[0]);
    if (argc > 1 && command->text && !command->options) /* it has commands of its own */
        return command->run(2, (char *[]){ argv[1], "--help", NULL });
    return command->run(1, (char *[]){ "--help", NULL });
}

/* Commands that several ranks share. */
static bool is_shared(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "", *next = argc > 2 ? argv[2] : "";
    return strcmp(name, "fit") == 0 ||
           ((strcmp(name, "vae") == 0 || strcmp(name, "sde") == 0) && strcmp(next, "fit") == 0);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return overview();
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(name, "--version") == 0)
        return version(argc > 2 && strcmp(argv[2], "--json") == 0);
    if (strcmp(name, "--complete") == 0) {
        cli_complete_commands(commands);
        return CLI_OK;
    }
    const cli_command *command = cli_find_command(commands, name);
    if (!command)
        return cli_unknown(NULL, commands, name);
    int refused = is_shared(argc, argv) ? CLI_OK : cli_refuse_ranks(command, argc - 2, argv + 2);
    return refused ? refused : command->run(argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    cli_catch_interrupt();
    int status = is_shared(argc, argv) ? cli_ranks_start() : CLI_OK;
    if (status == CLI_OK)
        status = dispatch(argc, argv);
    cli_unlock();
    return cli_ranks_end(cli_finish(status));
}
