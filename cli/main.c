/* main.c - the program `hollow`: a table of commands. */
#include <string.h>

#include "cli.h"

static const cli_command *const commands[] = { &cli_fit,  &cli_logp,  &cli_sample, &cli_sde,
                                               &cli_info, &cli_paper, &cli_bench };
enum { COMMANDS = sizeof commands / sizeof *commands };

static const cli_command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static int unknown(const char *name)
{
    const char *names[COMMANDS + 2];
    char text[200];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i]->name;
    names[COMMANDS] = "help";
    names[COMMANDS + 1] = NULL;
    cli_join(text, sizeof text, names);
    return cli_fail(NULL, CLI_WRONG, "unknown %s '%s'; there are %s", name[0] == '-' ? "option" : "command", name,
                    name[0] == '-' ? "--help, --version" : text);
}

static int overview(void)
{
    printf("hollow " HL_VERSION " - neural networks with exact, cheap dimension-wise derivatives\n\n"
           "usage: hollow COMMAND [ARGUMENT ...] [--option VALUE ...]\n\nCommands:\n");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-8s%s\n", commands[i]->name, commands[i]->summary);
    printf("  %-8s%s\n\n", "help", "this text, or that of a command: hollow help COMMAND");
    printf("hollow --version prints the version.\n\n"
           "Exit status: 0 success, 1 the work failed, 2 the call or an input was wrong, 130 stopped by Ctrl-C,\n143 "
           "by SIGTERM.\n");
    return CLI_OK;
}

static int help(int argc, char **argv)
{
    if (argc == 0 || strcmp(argv[0], "help") == 0 || strcmp(argv[0], "--help") == 0)
        return overview();
    const cli_command *command = find(argv[0]);
    if (!command)
        return unknown(argv[0]);
    if (!command->text) /* it is a program of its own */
        return command->run(1, (char *[]){ "--help", NULL });
    if (argc > 1 && !command->options) /* it has commands of its own */
        return command->run(2, (char *[]){ argv[1], "--help", NULL });
    cli_print_help(command);
    return CLI_OK;
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2)
        return overview();
    const char *name = argv[1];
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return help(argc - 2, argv + 2);
    if (strcmp(name, "--version") == 0) {
        printf("hollow " HL_VERSION "\n");
        return CLI_OK;
    }
    const cli_command *command = find(name);
    return command ? command->run(argc - 2, argv + 2) : unknown(name);
}

int main(int argc, char **argv)
{
    cli_catch_interrupt();
    return cli_finish(dispatch(argc, argv));
}
