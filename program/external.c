/* external.c - commands that are programs of their own, hollow-NAME: beside this program in a build, in libexec when installed. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program.h"

#ifndef HL_LIBEXEC
#define HL_LIBEXEC "../libexec/hollow" /* from where this program is */
#endif

/* The directory of this program, without the slash at its end. */
static int find_directory(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length <= 0)
        return errno;
    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    return 0;
}

static const char *const places[] = { "", "/" HL_LIBEXEC }; /* from that directory */

bool cli_find_beside(const char *name, char *path, size_t size)
{
    char directory[PATH_MAX];
    if (find_directory(directory, sizeof directory) != 0)
        return false;
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, size, "%s%s/%s", directory, places[i], name);
        if (access(path, R_OK) == 0)
            return true;
    }
    return false;
}

int cli_start(const cli_command *command, int argc, char **argv)
{
    char directory[PATH_MAX], program[PATH_MAX + 64];
    char **call = calloc((size_t)argc + 2, sizeof *call);
    int error = call ? find_directory(directory, sizeof directory) : ENOMEM;
    if (error) {
        free(call);
        return cli_fail(command, CLI_FAILED, "cannot find the path of the program hollow: %s", strerror(error));
    }
    call[0] = program;
    for (int i = 0; i < argc; i++)
        call[i + 1] = argv[i];
    fflush(stdout);
    error = ENOENT;
    for (size_t i = 0; i < 2 && error == ENOENT; i++) {
        snprintf(program, sizeof program, "%s%s/hollow-%s", directory, places[i], command->name);
        execv(program, call);
        error = errno;
    }
    free(call);
    if (error != ENOENT)
        return cli_fail(command, CLI_FAILED, "cannot start %s: %s", program, strerror(error));
    return cli_fail(command, CLI_FAILED,
                    "the program hollow-%s is missing; run 'make' to build it or 'make install' to install it; looked "
                    "in %s and %s/" HL_LIBEXEC,
                    command->name, directory, directory);
}
