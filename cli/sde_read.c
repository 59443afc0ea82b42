/* sde_read.c - observations for `hollow sde`, from files and pipes. */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sde.h"

/* Standard input, or the descriptor of another pipe, such as <(command); -1 for files. */
static int open_pipe(const char *path)
{
    struct stat st;
    if (strcmp(path, "-") == 0)
        return STDIN_FILENO;
    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode) ? open(path, O_RDONLY) : -1;
}

/* The library opens a table more than once, to find what its columns hold; a pipe can be read but once. So a pipe becomes a file
 * without a name that has all of it, as standard input. */
static int keep_input(const cli_command *command, int pipe)
{
    char piece[65536];
    ssize_t count = 0;
    bool good = true;
    FILE *file = tmpfile();
    if (!file)
        return cli_fail(command, CLI_FAILED, "standard input: no temporary file can be made");
    while (good && (count = read(pipe, piece, sizeof piece)) > 0)
        good = fwrite(piece, 1, (size_t)count, file) == (size_t)count;
    good = good && count == 0 && fflush(file) == 0 && dup2(fileno(file), STDIN_FILENO) >= 0;
    fclose(file);
    if (pipe != STDIN_FILENO)
        close(pipe);
    return good ? CLI_OK : cli_fail(command, CLI_WRONG, "standard input: it cannot be read or kept");
}

int sde_read(const cli_command *command, hl_context *ctx, const sde_source *source, hl_observations **rows)
{
    hl_observation_options how = source->how;
    int pipe = open_pipe(source->path), result = pipe >= 0 ? keep_input(command, pipe) : CLI_OK;
    char place[400];
    how.drop_missing = source->drop;
    if (result != CLI_OK)
        return result;
    hl_status status = hl_observations_read(ctx, pipe >= 0 ? "-" : source->path, &how, rows);
    if (status != HL_OK)
        return cli_fail_library(command, ctx, status);
    const hl_observations *o = *rows;
    if (o->dropped)
        cli_say(command, "%s: %zu rows with missing values are left out", source->path, o->dropped);
    if (o->snapshots != SIZE_MAX)
        cli_say(command,
                "%s: times do not all rise, so rows are taken as snapshots; name trajectories by --trajectory COL",
                hl_observations_place(o, o->snapshots, SIZE_MAX, place, sizeof place));
    return CLI_OK;
}
