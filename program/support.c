/* support.c - messages, Ctrl-C, time. */
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

int cli_no_memory(const cli_command *command)
{
    return cli_fail(command, CLI_FAILED, "out of memory");
}

void cli_dash_options(char *text, size_t size, const char *message)
{
    static const char word[] = "option ";
    size_t used = 0;
    for (const char *at = message; *at && used + 3 < size;) {
        bool option = strncmp(at, word, sizeof word - 1) == 0 && at[sizeof word - 1] >= 'a' &&
                      at[sizeof word - 1] <= 'z' && (at == message || at[-1] == ' ' || at[-1] == '(');
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
    cli_dash_options(text, sizeof text, *message ? message : hl_status_text(status));
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
