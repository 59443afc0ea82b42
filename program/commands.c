/* commands.c - tables of commands: which one is meant, and what a shell may complete. */
#include <string.h>

#include "program.h"

enum { MOST = 24 };

static const char *last_word(const cli_command *command)
{
    const char *space = strrchr(command->name, ' '); /* "sde fit" */
    return space ? space + 1 : command->name;
}

const cli_command *cli_find_command(const cli_command *const *commands, const char *name)
{
    for (; *commands; commands++)
        if (strcmp(last_word(*commands), name) == 0)
            return *commands;
    return NULL;
}

int cli_unknown(const cli_command *command, const cli_command *const *commands, const char *name)
{
    const char *names[MOST] = { NULL }, *kind = name[0] == '-' ? "option" : "command";
    hl_option table[MOST] = { 0 };
    char list[200];
    for (size_t i = 0; commands[i] && i + 2 < MOST; i++)
        table[i].name = names[i] = last_word(commands[i]);
    cli_join(list, sizeof list, names);
    if (name[0] == '-')
        return cli_fail(command, CLI_WRONG, "unknown option '%s'; options are --help%s", name,
                        command ? "" : ", --version");
    const char *near = hl_option_nearest(table, name);
    if (near)
        return cli_fail(command, CLI_WRONG, "unknown %s '%s'; did you mean '%s'? Commands are %s", kind, name, near,
                        list);
    return cli_fail(command, CLI_WRONG, "unknown %s '%s'; commands are %s", kind, name, list);
}

int cli_run(const cli_command *command, const cli_command *const *commands, int argc, char **argv)
{
    const char *name = argc ? argv[0] : "help";
    if (strcmp(name, "--complete") == 0) {
        cli_complete_commands(commands);
        return CLI_OK;
    }
    if (argc > 1 && strcmp(name, "help") == 0) /* as 'hollow help sde COMMAND' */
        return cli_run(command, commands, 2, (char *[]){ argv[1], "--help", NULL });
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        cli_print_help(command);
        return CLI_OK;
    }
    const cli_command *found = cli_find_command(commands, name);
    return found ? found->run(argc - 1, argv + 1) : cli_unknown(command, commands, name);
}

void cli_complete_commands(const cli_command *const *commands)
{
    for (; *commands; commands++)
        printf("%s\n", last_word(*commands));
}
