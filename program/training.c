/* training.c - what the commands that train share: outputs that can be written, by one run at a time; logs that go on. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

static char *lock_name; /* of the only lock that a process has; NULL: none */
static int lock_file = -1;

void cli_unlock(void)
{
    if (lock_name) {
        unlink(lock_name);
        close(lock_file);
    }
    free(lock_name);
    lock_name = NULL;
}

/* Checkpoint and lock are named after the model: a file of the same name that is something else must not be replaced. */
static int refuse_foreign(const cli_command *command, const char *name, const char *kind)
{
    return cli_fail(command, CLI_WRONG,
                    "%s exists and is not %s of hollow, but training would replace it; choose another -o", name, kind);
}

/* Two runs that write the same model would replace each other's checkpoints. The lock is a file beside the model; what counts is
 * that it is locked, which ends with the process, however that ends. */
static int lock(const cli_command *command, const char *model)
{
    struct stat ours, there;
    size_t size = strlen(model) + sizeof ".lock";
    char *name = malloc(size);
    if (!name)
        return cli_no_memory(command);
    snprintf(name, size, "%s.lock", model);
    for (;;) {
        int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        bool busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        if (fd < 0 || busy) {
            int error = errno;
            if (fd >= 0)
                close(fd);
            free(name);
            return busy
                       ? cli_fail(command, CLI_WRONG, "%s: another run is writing this model; choose another -o", model)
                       : cli_fail(command, CLI_WRONG, "%s: %s", model, strerror(error));
        }
        bool known = fstat(fd, &ours) == 0;
        if (known && (!S_ISREG(ours.st_mode) || ours.st_size > 0)) { /* locks are empty */
            int result = refuse_foreign(command, name, "a lock");
            close(fd);
            free(name);
            return result;
        }
        if (known && stat(name, &there) == 0 && ours.st_ino == there.st_ino) {
            lock_file = fd;
            lock_name = name;
            return CLI_OK;
        }
        close(fd); /* its owner removed it in the meantime */
    }
}

int cli_check_outputs(const cli_command *command, hl_context *ctx, const cli_outputs *o, char **checkpoint)
{
    const cli_path paths[] = { { o->data, CLI_READ, NULL },      { o->more_data, CLI_READ, NULL },
                               { o->from, CLI_READ, NULL },      { o->model, CLI_WRITE, NULL },
                               { o->model, CLI_WRITE, ".ckpt" }, { o->model, CLI_WRITE, ".lock" },
                               { o->log, CLI_WRITE, NULL } };
    struct stat st;
    *checkpoint = malloc(strlen(o->model) + 6);
    if (!*checkpoint)
        return cli_no_memory(command);
    sprintf(*checkpoint, "%s.ckpt", o->model);
    if (!cli_is_first_rank())
        return CLI_OK; /* which looks after the files */
    if (strcmp(o->model, "-") == 0)
        return cli_fail(command, CLI_WRONG, "-o -: a model cannot be written to standard output; give a file");
    if (cli_check_paths(command, sizeof paths / sizeof *paths, paths) != CLI_OK)
        return CLI_WRONG;
    if (stat(o->model, &st) == 0 && !S_ISREG(st.st_mode)) /* opening a pipe would wait for its reader */
        return cli_fail(command, CLI_WRONG, "%s: %s", o->model,
                        S_ISDIR(st.st_mode) ? strerror(EISDIR) : "not a regular file");
    hl_file_kind there = hl_file_identify(*checkpoint);
    if (there != HL_FILE_NONE && there != HL_FILE_CHECKPOINT)
        return refuse_foreign(command, *checkpoint, "a checkpoint");
    hl_table_writer *probe = NULL; /* which makes a temporary file beside it */
    hl_status status = hl_table_writer_create(ctx, o->model, 1, NULL, &probe);
    hl_table_writer_free(probe);
    if (status != HL_OK)
        return cli_fail_library(command, ctx, status);
    int error = o->plot ? cli_make_directory(o->plot) : 0;
    return error ? cli_fail(command, CLI_WRONG, "%s: %s", o->plot, strerror(error)) : lock(command, o->model);
}

void cli_say_unsaved(const char *reason, void *user)
{
    (void)user;
    cli_say(NULL, "warning: the checkpoint could not be written: %s; training continues", reason);
}

int cli_check_resume(const cli_command *command, const char *model, const char *checkpoint, bool *resume)
{
    if (!*resume || access(checkpoint, F_OK) == 0)
        return CLI_OK;
    if (access(model, F_OK) == 0)
        return cli_fail(command, CLI_WRONG,
                        "--resume: there is no checkpoint %s, but the model %s exists: the run is finished", checkpoint,
                        model);
    *resume = false;
    cli_say(command, "--resume: there is no checkpoint %s; training starts from the beginning", checkpoint);
    return CLI_OK;
}

/* ---- logs ---- */

enum { WAIT = 200 }; /* ms between two looks at whether the user stops the run */

static bool is_pipe(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Wait for the reader of a pipe. NULL and errno if there cannot be one, or if the user stops the wait. */
static FILE *open_pipe(const char *path)
{
    int fd;
    while ((fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0 && errno == ENXIO && !cli_interrupted())
        poll(NULL, 0, WAIT);
    if (fd >= 0)
        fcntl(fd, F_SETFL, O_WRONLY);
    return fd >= 0 ? fdopen(fd, "w") : NULL;
}

int cli_open_log(const cli_command *command, const char *path, bool resume, FILE **log)
{
    *log = NULL;
    if (!cli_is_first_rank() || !path)
        return CLI_OK;
    if (is_pipe(path))
        *log = open_pipe(path);
    else if (!resume || !(*log = fopen(path, "r+")))
        *log = fopen(path, "w");
    if (!*log && cli_interrupted())
        return cli_fail(command, CLI_STOPPED, "stopped");
    return *log ? CLI_OK : cli_fail(command, CLI_WRONG, "%s: %s", path, strerror(errno));
}

/* A pipe takes a line at once if it has room. If its reader does not make any, and the user stops the run, the line is lost. */
void cli_end_log_line(FILE *log)
{
    struct pollfd poller = { .fd = fileno(log), .events = POLLOUT };
    fputc('\n', log);
    while (poll(&poller, 1, WAIT) <= 0)
        if (cli_interrupted()) {
            fcntl(poller.fd, F_SETFL, O_WRONLY | O_NONBLOCK);
            break;
        }
    fflush(log);
}

int cli_close_log(const cli_command *command, const char *path, FILE *log, int result)
{
    if (!log)
        return result;
    bool lost = ferror(log) != 0; /* of a line before the last, too */
    lost = fclose(log) != 0 || lost;
    if (lost)
        cli_fail(command, CLI_WRONG, "%s: the log could not be written", path);
    return lost && result == CLI_OK ? CLI_WRONG : result;
}

void cli_cut_log(FILE *log, size_t iteration)
{
    char line[1000];
    size_t number;
    long end = 0;
    rewind(log);
    while (fgets(line, sizeof line, log) && sscanf(line, "{\"iteration\": %zu", &number) == 1 && number <= iteration)
        end = ftell(log);
    if (end >= 0 && ftruncate(fileno(log), end) == 0)
        fseek(log, end, SEEK_SET);
}
