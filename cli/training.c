/* training.c - what the commands that train share: outputs that can be written, logs that go on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

int cli_check_outputs(const cli_command *command, hl_context *ctx, const char *data, const char *out, const char *plot,
                      char **checkpoint)
{
    struct stat st;
    *checkpoint = malloc(strlen(out) + 6);
    if (!*checkpoint)
        return cli_fail(command, CLI_FAILED, "out of memory");
    sprintf(*checkpoint, "%s.ckpt", out);
    if (strcmp(out, "-") == 0)
        return cli_fail(command, CLI_WRONG, "-o -: a model needs a file");
    if (cli_keep_apart(command, out, data) != CLI_OK)
        return CLI_WRONG;
    if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
        return cli_fail(command, CLI_WRONG, "%s: %s", out, strerror(EISDIR));
    hl_table_writer *probe = NULL; /* which makes a temporary file beside it */
    hl_status status = hl_table_writer_create(ctx, out, 1, NULL, &probe);
    hl_table_writer_free(probe);
    if (status != HL_OK)
        return cli_fail_library(command, ctx, status);
    int error = plot ? cli_make_directory(plot) : 0;
    return error ? cli_fail(command, CLI_WRONG, "%s: %s", plot, strerror(error)) : CLI_OK;
}

int cli_check_resume(const cli_command *command, const char *model, const char *checkpoint, bool *resume)
{
    if (!*resume || access(checkpoint, F_OK) == 0)
        return CLI_OK;
    if (access(model, F_OK) == 0)
        return cli_fail(command, CLI_WRONG,
                        "--resume: there is no %s, and %s is there: its run is finished, nothing is left to go on with",
                        checkpoint, model);
    *resume = false;
    cli_say(command, "--resume: there is no %s yet: training starts from the beginning", checkpoint);
    return CLI_OK;
}

int cli_open_log(const cli_command *command, const char *path, const char *data, const char *model, bool resume,
                 FILE **log)
{
    *log = NULL;
    if (path && strcmp(path, model) == 0)
        return cli_fail(command, CLI_WRONG, "%s: the log and the model need files of their own", path);
    if (cli_keep_apart(command, path, data) != CLI_OK || cli_keep_apart(command, path, model) != CLI_OK)
        return CLI_WRONG;
    if (path && resume)
        *log = fopen(path, "r+");
    if (path && !*log)
        *log = fopen(path, "w");
    return path && !*log ? cli_fail(command, CLI_WRONG, "%s: %s", path, strerror(errno)) : CLI_OK;
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
