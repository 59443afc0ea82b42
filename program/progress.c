/* progress.c - one line on stderr that tells how far a command is. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "program.h"

static const double REDRAW = 0.1; /* seconds between two lines of a terminal */
static const double PLAIN = 10;   /* and between two lines of a pipe, where there are no milestones */

static cli_progress *drawn; /* whose line the cursor is in, so that messages can make room */

static bool is_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

/* Columns of the terminal, asked for each time as its user may change them. */
static size_t width(void)
{
    struct winsize size;
    const char *columns = getenv("COLUMNS");
    long asked = columns ? strtol(columns, NULL, 10) : 0;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return asked > 0 && asked < 10000 ? (size_t)asked : 80;
}

void cli_progress_start(cli_progress *p, double fraction)
{
    double now = cli_now();
    *p = (cli_progress){ .terminal = is_terminal(), .begun = fraction, .start = now, .last = now };
}

double cli_progress_waited(const cli_progress *p)
{
    return cli_now() - p->last;
}

bool cli_progress_due(cli_progress *p, double fraction, bool milestone)
{
    double now = cli_now();
    if (cli_quiet() || (p->terminal ? now - p->last < REDRAW && fraction < 1 : !milestone))
        return false;
    p->last = now;
    p->fraction = fraction;
    p->count = 0;
    return true;
}

void cli_progress_field(cli_progress *p, int rank, const char *format, ...)
{
    va_list arguments;
    if (p->count == CLI_PROGRESS_FIELDS)
        return;
    va_start(arguments, format);
    vsnprintf(p->field[p->count].text, sizeof p->field->text, format, arguments);
    va_end(arguments);
    p->field[p->count++].rank = rank;
}

/* Of a run that went on, only the time and the work since then count. */
static void add_eta(cli_progress *p)
{
    double done = p->fraction - p->begun, left = (cli_now() - p->start) * (1 - p->fraction) / done;
    if (!(done > 0) || !(left < 3.6e6))
        cli_progress_field(p, 1, "ETA    ?");
    else if (left < 3600)
        cli_progress_field(p, 1, "ETA %2.0f:%02.0f", floor(left / 60), floor(fmod(left, 60)));
    else
        cli_progress_field(p, 1, "ETA %.0f:%02.0f:%02.0f", floor(left / 3600), floor(fmod(left / 60, 60)),
                           floor(fmod(left, 60)));
}

/* Leave out the field of the highest rank, of equals the last. */
static void drop_field(cli_progress *p)
{
    size_t worst = 0;
    for (size_t i = 1; i < p->count; i++)
        if (p->field[i].rank >= p->field[worst].rank)
            worst = i;
    p->count--;
    memmove(&p->field[worst], &p->field[worst + 1], (p->count - worst) * sizeof *p->field);
}

static size_t length(const cli_progress *p)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->count; i++)
        sum += strlen(p->field[i].text) + (i ? 2 : 0);
    return sum;
}

void cli_progress_show(cli_progress *p)
{
    size_t room = p->terminal ? width() - 1 : SIZE_MAX; /* some terminals wrap after the last column */
    add_eta(p);
    while (p->count > 1 && length(p) > room)
        drop_field(p);
    fflush(stdout);
    fputs(p->terminal ? "\r" : "", stderr);
    for (size_t i = 0; i < p->count; i++)
        fprintf(stderr, "%s%.*s", i ? "  " : "", (int)(room < 1000 ? room : 1000), p->field[i].text);
    fputs(p->terminal ? "\033[K" : "\n", stderr);
    drawn = p->terminal ? p : NULL;
}

void cli_show_rows(cli_progress *p, size_t done, size_t rows)
{
    if (done == rows || !cli_progress_due(p, (double)done / (double)rows, cli_progress_waited(p) > PLAIN))
        return;
    cli_progress_field(p, 0, "%zu/%zu rows", done, rows);
    cli_progress_field(p, 2, "%.0f rows/s", (double)done / (cli_now() - p->start));
    cli_progress_show(p);
}

void cli_progress_hide(void)
{
    if (drawn)
        fputs("\r\033[K", stderr);
    drawn = NULL;
}

void cli_progress_end(cli_progress *p, bool keep)
{
    if (drawn != p)
        return;
    if (keep)
        fputc('\n', stderr);
    else
        cli_progress_hide();
    drawn = NULL;
}
