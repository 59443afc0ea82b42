/* options.c - from argv to a command's settings, and the help text made from the same table. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program.h"

enum { HELP_COLUMN = 22, HELP_WIDTH = 100, MOST_OPTIONS = 128 };

/* ---- help ---- */

/* The help goes on in the next line where a word does not fit. */
static void print_option(const char *name, const char *value, const char *help)
{
    int at = printf("  %s%s%s%s", name[1] ? "--" : "-", name, value ? " " : "", value ? value : "");
    if (at > HELP_COLUMN - 2)
        at = printf("\n") - 1;
    at += printf("%*s", HELP_COLUMN - at, "");
    for (bool first = true; *help; first = false) {
        int length = (int)strcspn(help, " ");
        if (!first && at + 1 + length > HELP_WIDTH)
            at = printf("\n%*s", HELP_COLUMN, "") - 1;
        else if (!first)
            at += printf(" ");
        at += printf("%.*s", length, help);
        help += length + (help[length] == ' ');
    }
    printf("\n");
}

static void print_job_option(const hl_option *o)
{
    char text[600], names[300] = "";
    bool otherwise = o->otherwise && o->kind != HL_OPTION_FLAG;
    if (o->choices && !strchr(o->value, '|'))
        cli_join(names, sizeof names, o->choices);
    snprintf(text, sizeof text, "%s%s%s%s%s%s%s", o->help, *names ? ": " : "", names, otherwise ? "; default " : "",
             otherwise ? o->otherwise : "", o->applies ? "; with " : "", o->applies ? o->applies : "");
    print_option(o->name, o->value, text);
}

/* The row that ends the command's table. */
static const cli_option *last_row(const cli_command *command)
{
    const cli_option *o = command->options;
    while (o->name)
        o++;
    return o;
}

/* The options of the command's job, or NULL. */
static const hl_option *job_options(const cli_command *command)
{
    const cli_job *job = command->options ? last_row(command)->more : NULL;
    return job ? job->options() : NULL;
}

/* Does the command itself take an option that all have? */
static bool has_own(const cli_command *command, const char *name)
{
    for (const cli_option *o = command->options; o && o->name; o++)
        if (strcmp(o->name, name) == 0)
            return true;
    return false;
}

void cli_print_help(const cli_command *command)
{
    printf("hollow %s - %s\n\nusage: hollow %s %s\n\n%s", command->name, command->summary, command->name,
           command->arguments, command->text);
    if (!command->options)
        return;
    printf("\nOptions:\n");
    for (const cli_option *o = command->options; o && o->name; o++)
        print_option(o->name, o->value, o->help);
    for (const hl_option *o = job_options(command); o && o->name; o++)
        print_job_option(o);
    if (!has_own(command, "json"))
        print_option("json", NULL, "print the result as one JSON object");
    if (!has_own(command, "quiet"))
        print_option("quiet", NULL, "print no progress and no remarks on stderr, only errors");
    print_option("help", NULL, "print this text");
}

/* "--loss nll|score", "--iters N", "--quiet" */
static void complete(const char *name, const char *value, const char *const *choices)
{
    printf("%s%s", name[1] ? "--" : "-", name);
    for (const char *const *c = choices; c && *c; c++)
        printf("%c%s", c == choices ? ' ' : '|', *c);
    printf("%s%s\n", value && !choices ? " " : "", value && !choices ? value : "");
}

void cli_complete_options(const cli_command *command)
{
    for (const cli_option *o = command->options; o && o->name; o++)
        complete(o->name, o->value, o->kind == CLI_CHOICE ? o->more : NULL);
    for (const hl_option *o = job_options(command); o && o->name; o++)
        complete(o->name, o->value, o->choices);
    printf("%s%s--help\n", has_own(command, "json") ? "" : "--json\n", has_own(command, "quiet") ? "" : "--quiet\n");
}

static int wrong(const cli_command *command, const char *what, const char *detail)
{
    return cli_fail(command, CLI_WRONG, "%s '%s'; see 'hollow %s --help'", what, detail, command->name);
}

static const char *dashes(const cli_option *o)
{
    return o->name[1] ? "--" : "-";
}

static int set_integer(const cli_command *command, const cli_option *o, const char *text, uint64_t *value)
{
    char *end;
    bool good = isdigit((unsigned char)text[0]);
    errno = 0;
    unsigned long long v = good ? strtoull(text, &end, 10) : 0;
    if (!good || *end || errno || (double)v < o->low || (double)v > o->high)
        return cli_fail(command, CLI_WRONG, "%s%s: '%s' is not an integer in %.0f..%.0f", dashes(o), o->name, text,
                        o->low, o->high);
    *value = v;
    return -1;
}

static int set_real(const cli_command *command, const cli_option *o, const char *text, double *value)
{
    char *end;
    double v = strtod(text, &end);
    if (!*text || isspace((unsigned char)*text) || *end || !isfinite(v) || v < o->low || v > o->high)
        return cli_fail(command, CLI_WRONG, "%s%s: '%s' is not a number in %g..%g", dashes(o), o->name, text, o->low,
                        o->high);
    *value = v;
    return -1;
}

static int set_choice(const cli_command *command, const cli_option *o, const char *text, const char **value)
{
    char names[200];
    for (const char *const *c = o->more; *c; c++)
        if (strcmp(*c, text) == 0) {
            *value = *c;
            return -1;
        }
    cli_join(names, sizeof names, o->more);
    return cli_fail(command, CLI_WRONG, "unknown %s '%s'; use one of %s", o->name, text, names);
}

static int set(const cli_command *command, const cli_option *o, const char *text, char *settings)
{
    void *value = settings + o->offset;
    switch (o->kind) {
    case CLI_FLAG:
        *(bool *)value = true;
        return -1;
    case CLI_INTEGER:
        return set_integer(command, o, text, value);
    case CLI_REAL:
        return set_real(command, o, text, value);
    case CLI_TEXT:
        if (!*text)
            return cli_fail(command, CLI_WRONG, "%s%s: the %s is empty", dashes(o), o->name, o->value);
        *(const char **)value = text;
        return -1;
    case CLI_CHOICE:
        return set_choice(command, o, text, value);
    }
    return CLI_WRONG;
}

/* An option of the command's job, or NULL. */
static const hl_option *find_job(const cli_command *command, const char *name, size_t length)
{
    for (const hl_option *o = job_options(command); o && o->name; o++)
        if (strlen(o->name) == length && strncmp(o->name, name, length) == 0)
            return o;
    return NULL;
}

/* Keep the text of an option of the job, which the library checks when it becomes a setting. */
static int choose(const cli_command *command, const hl_option *o, const char *value, int argc, char **argv, int *at,
                  void *settings)
{
    cli_chosen *chosen = (cli_chosen *)((char *)settings + last_row(command)->offset);
    if (o->kind == HL_OPTION_FLAG && value)
        return cli_fail(command, CLI_WRONG, "--%s takes no value", o->name);
    if (o->kind == HL_OPTION_FLAG)
        value = "on";
    else if (!value && *at + 1 >= argc)
        return cli_fail(command, CLI_WRONG, "%s needs a value: %s %s", argv[*at], argv[*at], o->value);
    chosen->text[o - job_options(command)] = value ? value : argv[++*at];
    return -1;
}

int cli_make_settings(const cli_command *command, hl_context *ctx, const cli_chosen *chosen, hl_settings **settings)
{
    const hl_option *o = job_options(command);
    hl_status status = hl_settings_create(ctx, o, settings);
    for (size_t i = 0; status == HL_OK && o[i].name; i++) {
        if (chosen->text[i])
            status = hl_settings_set(*settings, o[i].name, chosen->text[i]);
    }
    return status == HL_OK ? CLI_OK : cli_fail_job(command, ctx, status);
}

int cli_fail_job(const cli_command *command, const hl_context *ctx, hl_status status)
{
    const char *message = hl_context_message(ctx);
    for (const hl_option *o = job_options(command); status == HL_ERR_INVALID && o && o->name; o++) {
        size_t length = strlen(o->name);
        if (strncmp(message, o->name, length) == 0 && message[length] == ':')
            return cli_fail(command, CLI_WRONG, "--%s", message);
    }
    return cli_fail_library(command, ctx, status);
}

/* A file for results by a name that the command does not have: says where they go. CLI_OK if it is something else. */
static int unknown_output(const cli_command *command, const char *given, const char *name, const hl_option *all)
{
    const char *const names[] = { "out", "o", "output" };
    bool asked = false;
    for (size_t k = 0; k < 3; k++)
        asked = asked || strcmp(name, names[k]) == 0;
    for (size_t k = 0; k < 2 && asked; k++)
        if (hl_option_find(all, names[k]))
            return cli_fail(command, CLI_WRONG, "unknown option '%s'; did you mean '-%s%s'?", given, k ? "" : "-",
                            names[k]);
    return asked
               ? cli_fail(command, CLI_WRONG,
                          "unknown option '%s': results are written to standard output; redirect it with > FILE", given)
               : CLI_OK;
}

/* Unknown; but perhaps there is one like it. */
static int unknown(const cli_command *command, const char *given, const char *start, size_t length)
{
    hl_option all[MOST_OPTIONS + 1] = { { .name = "help" } };
    size_t count = 1;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, start);
    for (const cli_option *o = command->options; o && o->name && count < MOST_OPTIONS; o++)
        all[count++].name = o->name;
    for (const hl_option *o = job_options(command); o && o->name && count < MOST_OPTIONS; o++)
        all[count++].name = o->name;
    int said = unknown_output(command, given, name, all);
    if (said != CLI_OK)
        return said;
    const char *nearest = hl_option_nearest(all, name);
    if (!nearest)
        return wrong(command, "unknown option", given);
    return cli_fail(command, CLI_WRONG, "unknown option '%s'; did you mean '--%s'?", given, nearest);
}

/* One option at argv[*at], with two dashes, or one if its name is one letter; moves *at over a value that stands apart. */
static int option(const cli_command *command, int argc, char **argv, int *at, void *settings)
{
    bool letter = argv[*at][1] != '-';
    const char *name = argv[*at] + (letter ? 1 : 2), *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    if (letter != (length == 1))
        return unknown(command, argv[*at], name, length);
    const hl_option *job = find_job(command, name, length);
    if (job)
        return choose(command, job, equals ? equals + 1 : NULL, argc, argv, at, settings);
    const cli_option *o = command->options;
    while (o && o->name && (strlen(o->name) != length || strncmp(o->name, name, length) != 0))
        o++;
    if (!o || !o->name)
        return unknown(command, argv[*at], name, length);
    if (o->kind == CLI_FLAG) {
        if (equals)
            return cli_fail(command, CLI_WRONG, "--%s takes no value", o->name);
        return set(command, o, NULL, settings);
    }
    if (equals)
        return set(command, o, equals + 1, settings);
    if (*at + 1 >= argc)
        return cli_fail(command, CLI_WRONG, "%s needs a value: %s %s", argv[*at], argv[*at], o->value);
    return set(command, o, argv[++*at], settings);
}

int cli_parse(const cli_command *command, int argc, char **argv, void *settings, const char **arguments)
{
    size_t count = 0;
    bool only_arguments = false;
    for (int i = 0; i < argc; i++) {
        const char *a = argv[i];
        if (only_arguments || a[0] != '-' || !a[1]) {
            if (count == command->most)
                return wrong(command, "unexpected argument", a);
            arguments[count++] = a;
        } else if (strcmp(a, "--") == 0) {
            only_arguments = true;
        } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) {
            cli_print_help(command);
            return CLI_OK;
        } else if (strcmp(a, "--complete") == 0) {
            cli_complete_options(command);
            return CLI_OK;
        } else if (strcmp(a, "--quiet") == 0 && !has_own(command, "quiet")) {
            cli_set_quiet();
        } else if (strcmp(a, "--json") == 0 && !has_own(command, "json")) {
            cli_set_json();
        } else {
            int status = option(command, argc, argv, &i, settings);
            if (status >= 0)
                return status;
        }
    }
    if (count < command->least)
        return cli_fail(command, CLI_WRONG, "usage: hollow %s %s", command->name, command->arguments);
    while (count <= command->most)
        arguments[count++] = NULL;
    return -1;
}
