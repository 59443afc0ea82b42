/* support.c - messages, Ctrl-C, time, JSON. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "program.h"

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted; /* the signal */

static void on_interrupt(int signal)
{
    interrupted = signal;
}

void cli_catch_interrupt(void)
{
    static const int signals[] = { SIGINT, SIGTERM };
    struct sigaction action = { .sa_handler = on_interrupt, .sa_flags = SA_RESTART }, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < 2; i++)
        if (sigaction(signals[i], NULL, &before) == 0 &&
            before.sa_handler != SIG_IGN) /* ignored on purpose: a background job */
            sigaction(signals[i], &action, NULL);
}

bool cli_interrupted(void)
{
    return interrupted != 0;
}

int cli_stop(void *user)
{
    (void)user;
    return cli_interrupted();
}

/* ---- messages ---- */

static bool quiet, as_json;

void cli_set_quiet(void)
{
    quiet = true;
}

void cli_set_json(void)
{
    as_json = true;
}

bool cli_json_wanted(void)
{
    return as_json;
}

bool cli_quiet(void)
{
    return quiet;
}

static void say(const cli_command *command, const char *format, va_list arguments)
{
    fflush(stdout);
    cli_progress_hide();
    fprintf(stderr, command ? "hollow %s: " : "hollow: ", command ? command->name : "");
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
}

void cli_say(const cli_command *command, const char *format, ...)
{
    va_list arguments;
    if (quiet)
        return;
    va_start(arguments, format);
    say(command, format, arguments);
    va_end(arguments);
}

int cli_fail(const cli_command *command, int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(command, format, arguments);
    va_end(arguments);
    return status;
}

/* The library calls an option by its name, "option time", which a user types as --time. */
static void dash_options(char *text, size_t size, const char *message)
{
    static const char word[] = "option ";
    size_t used = 0;
    for (const char *at = message; *at && used + 3 < size;) {
        bool option = strncmp(at, word, sizeof word - 1) == 0 && at[sizeof word - 1] >= 'a' &&
                      at[sizeof word - 1] <= 'z' && (at == message || at[-1] == ' ');
        if (option) {
            text[used++] = '-';
            text[used++] = '-';
            at += sizeof word - 1;
        } else {
            text[used++] = *at++;
        }
    }
    text[used] = '\0';
}

int cli_fail_library(const cli_command *command, const hl_context *ctx, hl_status status)
{
    if (status == HL_STOPPED)
        return cli_fail(command, CLI_STOPPED, "stopped");
    const char *message = hl_context_message(ctx);
    bool input = status == HL_ERR_INVALID || status == HL_ERR_SHAPE || status == HL_ERR_IO || status == HL_ERR_FORMAT ||
                 status == HL_ERR_UNSUPPORTED || status == HL_ERR_NOT_FINITE;
    char text[2000];
    dash_options(text, sizeof text, *message ? message : hl_status_text(status));
    return cli_fail(command, input ? CLI_WRONG : CLI_FAILED, "%s", text);
}

int cli_finish(int status)
{
    if (status == CLI_STOPPED && interrupted)
        status = 128 + interrupted;
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    int lost = cli_fail(NULL, CLI_WRONG, "cannot write the results: %s", errno ? strerror(errno) : "output error");
    return status == CLI_OK ? lost : status;
}

void cli_join(char *buffer, size_t size, const char *const *names)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (const char *const *n = names; *n && used < size; n++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", n == names ? "" : ", ", *n);
}

/* ---- time ---- */

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- JSON ---- */

static void quoted(FILE *file, const char *text)
{
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c == '"' || *c == '\\')
            fprintf(file, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(file, "\\u%04x", *c);
        else
            fputc(*c, file);
    fputc('"', file);
}

static void member(cli_json *json, const char *key)
{
    if (json->comma)
        fputs(", ", json->file);
    json->comma = true;
    if (key) {
        quoted(json->file, key);
        fputs(": ", json->file);
    }
}

void cli_json_open(cli_json *json, const char *key, char bracket)
{
    member(json, key);
    fputc(bracket, json->file);
    json->comma = false;
}

void cli_json_close(cli_json *json, char bracket)
{
    fputc(bracket, json->file);
    json->comma = true;
}

void cli_json_text(cli_json *json, const char *key, const char *value)
{
    member(json, key);
    quoted(json->file, value);
}

void cli_json_real(cli_json *json, const char *key, double value)
{
    member(json, key);
    if (isfinite(value))
        fprintf(json->file, "%.6g", value);
    else
        fputs("null", json->file);
}

void cli_json_exact(cli_json *json, const char *key, double value)
{
    char text[32];
    member(json, key);
    hl_number_text(value, 0, text);
    fputs(isfinite(value) ? text : "null", json->file);
}

void cli_json_count(cli_json *json, const char *key, uint64_t value)
{
    member(json, key);
    fprintf(json->file, "%llu", (unsigned long long)value);
}

void cli_json_bool(cli_json *json, const char *key, bool value)
{
    member(json, key);
    fputs(value ? "true" : "false", json->file);
}
