/* commands.c - tables of commands: which one is meant, and what a shell may complete. */
#include <string.h>

#include "cli.h"

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
        return cli_fail(command, CLI_WRONG, "unknown option '%s'; there are --help%s", name,
                        command ? "" : ", --version");
    const char *near = hl_option_nearest(table, name);
    if (near)
        return cli_fail(command, CLI_WRONG, "unknown %s '%s'; did you mean '%s'? There are %s", kind, name, near, list);
    return cli_fail(command, CLI_WRONG, "unknown %s '%s'; there are %s", kind, name, list);
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

/* ---- completion ---- */

void cli_complete_commands(const cli_command *const *commands)
{
    for (; *commands; commands++)
        printf("%s\n", last_word(*commands));
}

static int run_completion(int argc, char **argv);
static const char text[] = "Prints a script with which the shell completes commands, options and their values:\n"
                           "  source <(hollow completion bash)\n"
                           "'make install' puts both scripts where the shells look for them.\n";
static const cli_option options[] = { { 0 } };
const cli_command cli_completion = {
    "completion", "bash|zsh", "a script that completes commands and options", text, options, 1, 1, run_completion
};

/* The program says what there is: a line for each command, or for each option with its value or choices. */
static const char bash[] =
    "# Completion of hollow for bash. The program tells what there is: hollow [COMMAND ...] --complete\n"
    "_hollow() {\n"
    "    local program=${COMP_WORDS[0]} cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at=1 lines "
    "option rest\n"
    "    local -a call=()\n"
    "    lines=$(\"$program\" --complete 2>/dev/null)\n"
    "    while [ $at -lt $COMP_CWORD ] && [[ $lines != -* ]]; do\n"
    "        call+=(\"${COMP_WORDS[at]}\")\n"
    "        at=$((at + 1))\n"
    "        lines=$(\"$program\" \"${call[@]}\" --complete 2>/dev/null)\n"
    "    done\n"
    "    COMPREPLY=()\n"
    "    while IFS=' ' read -r option rest; do\n"
    "        if [ \"$option\" = \"$prev\" ] && [[ $rest == *\\|* ]]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -W \"${rest//|/ }\" -- \"$cur\")\n"
    "            return\n"
    "        elif [ \"$option\" = \"$prev\" ] && [ -n \"$rest\" ]; then\n"
    "            mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "            return\n"
    "        fi\n"
    "    done <<<\"$lines\"\n"
    "    if [[ $lines != -* || $cur == -* ]]; then\n"
    "        mapfile -t COMPREPLY < <(compgen -W \"$(cut -d' ' -f1 <<<\"$lines\")\" -- \"$cur\")\n"
    "    else\n"
    "        mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "    fi\n"
    "}\n"
    "complete -o filenames -F _hollow hollow\n";

static const char zsh[] =
    "#compdef hollow\n"
    "# Completion of hollow for zsh. The program tells what there is: hollow [COMMAND ...] --complete\n"
    "_hollow() {\n"
    "    local at=2 line\n"
    "    local -a call lines\n"
    "    lines=(${(f)\"$($words[1] --complete 2>/dev/null)\"})\n"
    "    while (( at < CURRENT )) && [[ $lines[1] != -* ]]; do\n"
    "        call+=($words[at])\n"
    "        (( at++ ))\n"
    "        lines=(${(f)\"$($words[1] $call --complete 2>/dev/null)\"})\n"
    "    done\n"
    "    for line in $lines; do\n"
    "        if [[ ${line%% *} == $words[CURRENT-1] && $line == *\\|* ]]; then\n"
    "            compadd -- ${(s:|:)line#* }\n"
    "            return\n"
    "        elif [[ ${line%% *} == $words[CURRENT-1] && $line == *' '* ]]; then\n"
    "            _files\n"
    "            return\n"
    "        fi\n"
    "    done\n"
    "    if [[ $lines[1] != -* || $words[CURRENT] == -* ]]; then\n"
    "        compadd -- ${lines%% *}\n"
    "    else\n"
    "        _files\n"
    "    fi\n"
    "}\n"
    "_hollow \"$@\"\n";

static int run_completion(int argc, char **argv)
{
    const char *shell[2];
    int result = cli_parse(&cli_completion, argc, argv, NULL, shell);
    if (result >= 0)
        return result;
    if (strcmp(shell[0], "bash") != 0 && strcmp(shell[0], "zsh") != 0)
        return cli_fail(&cli_completion, CLI_WRONG, "unknown shell '%s'; there are bash, zsh", shell[0]);
    fputs(shell[0][0] == 'b' ? bash : zsh, stdout);
    return CLI_OK;
}
