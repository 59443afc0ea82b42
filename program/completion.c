/* completion.c - `hollow completion`: scripts with which shells complete commands and options. */
#include <string.h>

#include "program.h"

static int run_completion(int argc, char **argv);
static const char text[] = "Prints a script for the completion of commands, options and their values:\n"
                           "  source <(hollow completion bash)\n"
                           "'make install' installs the scripts for both shells.\n";
static const cli_option options[] = { { 0 } };
const cli_command cli_completion = {
    "completion", "bash|zsh", "print a completion script for bash or zsh", text, options, 1, 1, run_completion
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
        return cli_fail(&cli_completion, CLI_WRONG, "unknown shell '%s'; use bash or zsh", shell[0]);
    fputs(shell[0][0] == 'b' ? bash : zsh, stdout);
    return CLI_OK;
}
