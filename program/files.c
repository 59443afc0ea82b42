/* files.c - files that appear complete or not at all, pipes that are kept, and pictures by way of gnuplot. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

static int make_one(const char *path)
{
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return 0;
    int error = errno;
    if (stat(path, &st) != 0)
        return error;
    return S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
}

int cli_make_directory(const char *path)
{
    char *copy = strdup(path);
    int error = copy ? 0 : ENOMEM;
    for (char *c = copy ? copy + 1 : NULL; copy && copy[0] && *c && !error; c++)
        if (*c == '/') {
            *c = '\0';
            error = make_one(copy);
            *c = '/';
        }
    if (!error)
        error = make_one(path);
    if (!error && access(path, W_OK | X_OK) != 0)
        error = errno;
    free(copy);
    return error;
}

/* Remove what processes that are no more left of a file: directory/.name.PID */
static void remove_stale(const char *directory, const char *name)
{
    DIR *entries = opendir(directory);
    size_t length = strlen(name);
    for (const struct dirent *e; entries && (e = readdir(entries));) {
        const char *dot = e->d_name + 1 + length;
        if (e->d_name[0] != '.' || strncmp(e->d_name + 1, name, length) != 0 || *dot != '.')
            continue;
        char *end;
        long process = strtol(dot + 1, &end, 10);
        if (end > dot + 1 && !*end && process > 0 && kill((pid_t)process, 0) != 0 && errno == ESRCH)
            unlinkat(dirfd(entries), e->d_name, 0);
    }
    if (entries)
        closedir(entries);
}

/* Where a link leads in the end, which need not be there yet; else the path itself. */
static int follow_links(char path[PATH_MAX])
{
    enum { MOST_LINKS = 40 };
    char target[PATH_MAX];
    ssize_t length = 0;
    for (int links = 0; links < MOST_LINKS && (length = readlink(path, target, sizeof target - 1)) >= 0; links++) {
        char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
        size_t start = slash ? (size_t)(slash - path) + 1 : 0;
        target[length] = '\0';
        if (start + (size_t)length >= PATH_MAX)
            return ENAMETOOLONG;
        strcpy(path + start, target);
    }
    return length < 0 ? 0 : ELOOP;
}

/* A complete file must not replace a device, a pipe or a directory. */
static int refuse_special(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
        return 0;
    return S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
}

/* directory/name, or where this link leads, and .name.PID beside it. */
static int name_file(cli_file *file, const char *directory, const char *name)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    int error = length < 0 || (size_t)length >= sizeof path ? ENAMETOOLONG : follow_links(path);
    *file = (cli_file){ 0 };
    if (!error)
        error = refuse_special(path);
    if (error)
        return error;
    size_t size = strlen(path) + 40;
    *file = (cli_file){ .path = strdup(path), .temporary = malloc(size) };
    if (!file->path || !file->temporary) {
        cli_file_drop(file);
        return ENOMEM;
    }
    char *slash = strrchr(path, '/');
    *slash = '\0';
    remove_stale(slash > path ? path : "/", slash + 1);
    snprintf(file->temporary, size, "%s/.%s.%ld", path, slash + 1, (long)getpid());
    return 0;
}

static void forget(cli_file *file)
{
    free(file->path);
    free(file->temporary);
    *file = (cli_file){ 0 };
}

/* Give the complete temporary file its name. */
static int rename_file(cli_file *file)
{
    int error =
        cli_is_input(file->path) ? EEXIST : refuse_special(file->path); /* a picture must not replace the data either */
    if (error || rename(file->temporary, file->path) != 0) {
        error = error ? error : errno;
        cli_file_drop(file);
        return error;
    }
    forget(file);
    return 0;
}

int cli_file_open(cli_file *file, const char *directory, const char *name)
{
    int error = name_file(file, directory, name);
    if (error)
        return error;
    int fd = open(file->temporary, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    file->stream = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file->stream) {
        error = errno;
        cli_file_drop(file);
    }
    return error;
}

int cli_file_open_path(cli_file *file, const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    int error = directory ? cli_file_open(file, directory, slash ? slash + 1 : path) : ENOMEM;
    free(directory);
    return error;
}

int cli_check_file(const cli_command *command, const char *path)
{
    cli_file file;
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return cli_fail(command, CLI_WRONG, "%s: not a regular file", path);
    int error = cli_file_open_path(&file, path);
    if (error)
        return cli_fail(command, CLI_WRONG, "%s: %s", path, strerror(error));
    cli_file_drop(&file);
    return CLI_OK;
}

int cli_file_keep(cli_file *file)
{
    FILE *stream = file->stream;
    errno = 0;
    bool bad = fflush(stream) != 0 || ferror(stream) || fsync(fileno(stream)) != 0;
    int error = bad ? (errno ? errno : EIO) : 0;
    file->stream = NULL;
    if (fclose(stream) != 0 && !error)
        error = errno;
    if (error) {
        cli_file_drop(file);
        return error;
    }
    return rename_file(file);
}

void cli_file_drop(cli_file *file)
{
    if (file->stream)
        file->pipe ? pclose(file->stream) : fclose(file->stream);
    if (file->temporary)
        unlink(file->temporary);
    forget(file);
}

/* ---- pipes ---- */

/* Standard input, or the descriptor of another pipe, such as <(command); -1 for files. */
static int open_pipe(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return STDIN_FILENO;
    int pipe = stat(path, &st) == 0 && S_ISFIFO(st.st_mode) ? open(path, O_RDONLY | O_NONBLOCK) : -1;
    if (pipe >= 0)
        fcntl(pipe, F_SETFL, O_RDONLY);
    return pipe;
}

/* Wait until there is something to read, or the end. False if the user stops the wait. */
static bool wait_for_data(int pipe)
{
    enum { WAIT = 200 }; /* ms */
    struct pollfd poller = { .fd = pipe, .events = POLLIN };
    while (!cli_interrupted())
        if (poll(&poller, 1, WAIT) > 0)
            return true;
    return false;
}

/* All of a pipe becomes a file without a name, as standard input. */
static int keep_input(const cli_command *command, int pipe)
{
    char piece[65536];
    ssize_t count = 0;
    bool good = true;
    FILE *file = tmpfile();
    if (!file)
        return cli_fail(command, CLI_FAILED, "standard input: cannot create a temporary file");
    while (good && (good = wait_for_data(pipe)) && (count = read(pipe, piece, sizeof piece)) > 0)
        good = fwrite(piece, 1, (size_t)count, file) == (size_t)count;
    good = good && count == 0 && fflush(file) == 0 && dup2(fileno(file), STDIN_FILENO) >= 0;
    fclose(file);
    if (pipe != STDIN_FILENO)
        close(pipe);
    if (cli_interrupted())
        return cli_fail(command, CLI_STOPPED, "stopped");
    return good ? CLI_OK
                : cli_fail(command, CLI_WRONG, "standard input: cannot be read, or not be copied to a temporary file");
}

int cli_keep_pipe(const cli_command *command, const char **path)
{
    int pipe = open_pipe(*path);
    *path = pipe >= 0 ? "-" : *path;
    return pipe >= 0 ? keep_input(command, pipe) : CLI_OK;
}

/* ---- gnuplot ---- */

bool cli_have_gnuplot(void)
{
    return system("command -v gnuplot >/dev/null 2>&1") == 0;
}

static void print_quoted(FILE *stream, const char *text)
{
    fputc('\'', stream);
    for (; *text; text++)
        fprintf(stream, *text == '\'' ? "''" : "%c", *text);
    fputc('\'', stream);
}

/* The look of all pictures; the colours are in program.h. */
static const char look[] = "\nset encoding utf8\nset border 3 linewidth 1.2 linecolor rgb '" CLI_SOFT "'\n"
                           "set grid xtics ytics linetype 1 linewidth 0.8 linecolor rgb '" CLI_GRID "'\n"
                           "set tics nomirror out scale 0.6 textcolor rgb '" CLI_SOFT "'\nunset mxtics\nunset mytics\n"
                           "set key Left reverse samplen 2 spacing 1.25 textcolor rgb '" CLI_INK "'\n"
                           "set title font ',15' textcolor rgb '" CLI_INK "'\n"
                           "set xlabel textcolor rgb '" CLI_INK "'\nset ylabel textcolor rgb '" CLI_INK "'\n"
                           "set minussign\n";

int cli_plot_open(cli_file *file, const char *directory, const char *name, int width, int height)
{
    int error = name_file(file, directory, name);
    if (error)
        return error;
    fflush(stdout);
    signal(SIGPIPE, SIG_IGN); /* a gnuplot that dies is told by its exit status */
    file->stream = popen("gnuplot", "w");
    if (!file->stream) {
        error = errno;
        signal(SIGPIPE, SIG_DFL);
        forget(file);
        return error;
    }
    file->pipe = true;
    fprintf(file->stream, "set terminal pngcairo size %d,%d font 'DejaVu Sans,13' background '#ffffff'\nset output ",
            width, height);
    print_quoted(file->stream, file->temporary);
    fputs(look, file->stream);
    return 0;
}

int cli_plot_keep(cli_file *file)
{
    fprintf(file->stream, "\nunset output\n");
    int status = pclose(file->stream);
    struct stat st;
    file->stream = NULL;
    signal(SIGPIPE, SIG_DFL);
    if (cli_interrupted() || status != 0 || stat(file->temporary, &st) != 0 || st.st_size == 0) {
        cli_file_drop(file);
        return -1;
    }
    return rename_file(file);
}
