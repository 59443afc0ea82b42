/* paths.c - no input is ever an output, and no two outputs are one file. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "program.h"

/* What a path leads to: a file that is there, by device and inode; or a name in a directory, for one that is not there yet. */
typedef struct place {
    bool there, special; /* special: a terminal, /dev/null, a pipe, ..., which keeps nothing */
    struct stat file, directory;
    char name[NAME_MAX + 1];
} place;

/* FILE.npz:ARRAY is in FILE.npz. */
static bool spell(const cli_path *p, char *text, size_t size)
{
    int length = snprintf(text, size, "%s%s", p->name, p->suffix ? p->suffix : "");
    char *colon = p->use != CLI_READ ? NULL : strstr(text, ".npz:");
    if (colon)
        colon[4] = '\0';
    return length >= 0 && (size_t)length < size;
}

/* A link that leads to nothing yet is followed, as the file will be made at its end. */
static bool find(char *path, place *at)
{
    struct stat link;
    for (int links = 0; links < 40; links++) {
        char target[PATH_MAX], *slash = strrchr(path, '/');
        ssize_t length;
        if (stat(path, &at->file) == 0) {
            at->there = true;
            at->special = !S_ISREG(at->file.st_mode);
            return true;
        }
        if (lstat(path, &link) != 0 || !S_ISLNK(link.st_mode)) {
            size_t start = slash ? (size_t)(slash - path) + 1 : 0;
            snprintf(at->name, sizeof at->name, "%.*s", NAME_MAX, path + start);
            path[start] = '\0';
            return stat(*path ? path : ".", &at->directory) == 0;
        }
        length = readlink(path, target, sizeof target - 1);
        if (length <= 0)
            return false;
        target[length] = '\0';
        if (target[0] == '/' || !slash)
            slash = path;
        else
            slash++;
        if ((size_t)(slash - path) + (size_t)length >= PATH_MAX)
            return false;
        strcpy(slash, target);
    }
    return false;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool same(const place *a, const place *b)
{
    if (a->there != b->there || a->special || b->special)
        return false;
    return a->there ? same_file(&a->file, &b->file)
                    : same_file(&a->directory, &b->directory) && strcmp(a->name, b->name) == 0;
}

static int refuse(const cli_command *command, const cli_path *a, const cli_path *b)
{
    const cli_path *in = a->use == CLI_READ ? a : b;
    if (in->use != CLI_READ)
        return cli_fail(command, CLI_WRONG, "%s%s and %s%s are the same file; use different output files", a->name,
                        a->suffix ? a->suffix : "", b->name, b->suffix ? b->suffix : "");
    return cli_fail(command, CLI_WRONG, "the output would replace the input %s; choose another output file", in->name);
}

static bool counts(const cli_path *p)
{
    return p->name && strcmp(p->name, "-") != 0;
}

/* A suffix that says otherwise than what would be written is a mistake. */
static int check_suffix(const cli_command *command, const cli_path *p)
{
    static const char *const known[] = { ".csv", ".npy", ".txt", ".dat" };
    const char *slash = strrchr(p->name, '/'), *dot = strrchr(slash ? slash : p->name, '.');
    bool good = !dot || dot == p->name || dot[-1] == '/';
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        good = good || strcmp(dot, known[i]) == 0;
    return good ? CLI_OK
                : cli_fail(command, CLI_WRONG,
                           "%s: unknown suffix; tables are written as .csv (also .txt, .dat or no suffix) or .npy",
                           p->name);
}

enum { MOST_INPUTS = 16 };
static struct stat inputs[MOST_INPUTS];
static size_t input_count;

bool cli_is_input(const char *path)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return false;
    for (size_t i = 0; i < input_count; i++)
        if (same_file(&file, &inputs[i]))
            return true;
    return false;
}

static void remember(const cli_path *p)
{
    char text[PATH_MAX];
    if (p->use == CLI_READ && counts(p) && input_count < MOST_INPUTS && spell(p, text, sizeof text) &&
        stat(text, &inputs[input_count]) == 0 && S_ISREG(inputs[input_count].st_mode))
        input_count++;
}

int cli_check_paths(const cli_command *command, size_t count, const cli_path *paths)
{
    char text[PATH_MAX];
    for (size_t i = 0; i < count; i++)
        remember(&paths[i]);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++) {
            place a = { 0 }, b = { 0 };
            if ((paths[i].use == CLI_READ && paths[j].use == CLI_READ) || !counts(&paths[i]) || !counts(&paths[j]))
                continue;
            if (!spell(&paths[i], text, sizeof text) || !find(text, &a) || !spell(&paths[j], text, sizeof text) ||
                !find(text, &b))
                continue; /* there is no such place: opening it will fail */
            if (same(&a, &b))
                return refuse(command, &paths[j], &paths[i]);
        }
    for (size_t i = 0; i < count; i++)
        if (paths[i].use == CLI_TABLE && counts(&paths[i]) && check_suffix(command, &paths[i]) != CLI_OK)
            return CLI_WRONG;
    return CLI_OK;
}
