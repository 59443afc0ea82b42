/* fail_io.c - preloaded into a program, makes calls on files fail or come short. Standard streams are left alone.
 *
 *     FAIL_IO=CALL:N:ERRNO   the N-th call of CALL (read, write, fsync, rename) fails with this number
 *     FAIL_IO=short          every read and write of more than one byte handles half of what was asked
 *     FAIL_IO_LOG=FILE       the order of writes, fsyncs, renames: a letter each, W F R, and D for the fsync of a directory
 *     FAIL_IO_COUNT=FILE     how many calls of each kind there were, as "read write fsync rename" */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { READ, WRITE, FSYNC, RENAME, KINDS };
static const char *const names[KINDS] = { "read", "write", "fsync", "rename" };
static atomic_long calls[KINDS];
static int fail_kind = KINDS, fail_errno, come_short;
static long fail_at;
static char order[1 << 16];
static atomic_size_t ordered;

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FAIL_IO");
    char name[16];
    if (text && strcmp(text, "short") == 0)
        come_short = 1;
    else if (text && sscanf(text, "%15[a-z]:%ld:%d", name, &fail_at, &fail_errno) == 3)
        for (fail_kind = 0; fail_kind < KINDS && strcmp(name, names[fail_kind]) != 0;)
            fail_kind++;
}

static void tell(const char *path, const char *format, const char *text)
{
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fprintf(file, format, text);
        fclose(file);
    }
}

__attribute__((destructor)) static void end(void)
{
    char counts[120];
    snprintf(counts, sizeof counts, "%ld %ld %ld %ld", calls[READ], calls[WRITE], calls[FSYNC], calls[RENAME]);
    order[ordered < sizeof order ? ordered : sizeof order - 1] = 0;
    tell(getenv("FAIL_IO_LOG"), "%s\n", order);
    tell(getenv("FAIL_IO_COUNT"), "%s\n", counts);
}

static void note(char letter)
{
    size_t at = ordered++;
    if (at < sizeof order - 1)
        order[at] = letter;
}

static int fails(int kind)
{
    if (++calls[kind] != fail_at || kind != fail_kind)
        return 0;
    errno = fail_errno;
    return 1;
}

static size_t length(size_t asked)
{
    return come_short && asked > 1 ? asked / 2 : asked;
}

ssize_t read(int fd, void *buffer, size_t size)
{
    static ssize_t (*real)(int, void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "read");
    if (fd <= 2)
        return real(fd, buffer, size);
    return fails(READ) ? -1 : real(fd, buffer, length(size));
}

ssize_t pread(int fd, void *buffer, size_t size, off_t at)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "pread");
    return fails(READ) ? -1 : real(fd, buffer, length(size), at);
}

ssize_t write(int fd, const void *buffer, size_t size)
{
    static ssize_t (*real)(int, const void *, size_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    if (fd <= 2)
        return real(fd, buffer, size);
    note('W');
    return fails(WRITE) ? -1 : real(fd, buffer, length(size));
}

int fsync(int fd)
{
    static int (*real)(int);
    struct stat s;
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "fsync");
    note(fstat(fd, &s) == 0 && S_ISDIR(s.st_mode) ? 'D' : 'F');
    return fails(FSYNC) ? -1 : real(fd);
}

int rename(const char *from, const char *to)
{
    static int (*real)(const char *, const char *);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "rename");
    note('R');
    return fails(RENAME) ? -1 : real(from, to);
}
