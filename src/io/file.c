/* file.c - files over POSIX descriptors.
 *
 * stdio is not used: it hides short writes until close, and fsync needs the descriptor anyway. */
#define _XOPEN_SOURCE 700 /* realpath */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "io/file.h"

enum {
    PATH_SHOWN = 128,       /* bytes; leaves most of a message to what went wrong */
    LARGEST_CALL = 1 << 30, /* bytes of one read or write; some systems refuse more than INT_MAX */
    FIRST_LOAD = 4096,      /* bytes reserved for a pipe, whose size is not known */
    TEMPORARY_NAMES = 1000,
    MOST_LINKS = 40
};

const char *hl_path_shown(const char *path)
{
    size_t length = strlen(path);

    if (length > PATH_SHOWN) {
        path += length - PATH_SHOWN;
        while (((unsigned char)*path & 0xC0) == 0x80) /* not from the middle of a UTF-8 character */
            path++;
    }
    return path;
}

hl_status hl_io_error(hl_context *ctx, const char *path, const char *what, int error)
{
    char reason[128];

    /* strerror may share one buffer between threads */
    if (strerror_r(error, reason, sizeof reason))
        snprintf(reason, sizeof reason, "error %d", error);
    return hl_fail(ctx, HL_ERR_IO, "%s: cannot %s: %s", hl_path_shown(path), what, reason);
}

/* ---- reading ---- */

int hl_fd_open(const char *path, int flags, unsigned mode)
{
    int fd;

    do
        fd = open(path, flags | O_CLOEXEC, (mode_t)mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

ptrdiff_t hl_fd_read(int fd, void *data, size_t bytes)
{
    ssize_t got;

    do
        got = read(fd, data, bytes < LARGEST_CALL ? bytes : LARGEST_CALL);
    while (got < 0 && errno == EINTR);
    return got;
}

hl_status hl_file_open(hl_context *ctx, const char *path, hl_file *file)
{
    struct stat info;
    hl_status status = HL_OK;
    int fd = hl_fd_open(path, O_RDONLY | O_NONBLOCK, 0); /* or a pipe without a writer would hang us here */

    if (fd < 0)
        return hl_io_error(ctx, path, "open", errno);
    if (fstat(fd, &info))
        status = hl_io_error(ctx, path, "open", errno);
    else if (S_ISDIR(info.st_mode))
        status = hl_io_error(ctx, path, "read", EISDIR);
    else if (!S_ISREG(info.st_mode))
        status = hl_fail(ctx, HL_ERR_IO, "%s: cannot read: not a regular file", hl_path_shown(path));
    else if ((off_t)(size_t)info.st_size != info.st_size)
        status = hl_io_error(ctx, path, "read", EFBIG);
    if (status) {
        close(fd);
        return status;
    }
    *file = (hl_file){ .ctx = ctx, .path = path, .fd = fd, .size = (size_t)info.st_size };
    return HL_OK;
}

void hl_file_open_memory(hl_context *ctx, const char *path, const void *bytes, size_t size, hl_file *file)
{
    *file = (hl_file){ .ctx = ctx, .path = path, .fd = -1, .memory = bytes, .size = size, .left = size };
}

static hl_status ends_early(const hl_file *file, size_t bytes)
{
    return hl_fail(file->ctx, HL_ERR_IO, "%s: cannot read: the file ends %zu bytes too early",
                   hl_path_shown(file->path), bytes);
}

/* The next `bytes` bytes in memory to data, or past them if it is NULL. */
static hl_status read_memory(hl_file *file, void *data, size_t bytes)
{
    if (bytes > file->left)
        return ends_early(file, bytes - file->left);
    if (data && bytes > 0)
        memcpy(data, file->memory, bytes);
    file->memory += bytes;
    file->left -= bytes;
    return HL_OK;
}

hl_status hl_file_read(hl_file *file, void *data, size_t bytes)
{
    char *next = data;

    if (file->memory)
        return read_memory(file, data, bytes);
    while (bytes > 0) {
        ssize_t got = hl_fd_read(file->fd, next, bytes);

        if (got < 0)
            return hl_io_error(file->ctx, file->path, "read", errno);
        if (got == 0)
            return ends_early(file, bytes);
        next += got;
        bytes -= (size_t)got;
    }
    return HL_OK;
}

hl_status hl_file_skip(hl_file *file, size_t bytes)
{
    if (file->memory)
        return read_memory(file, NULL, bytes);
    if (lseek(file->fd, (off_t)bytes, SEEK_CUR) < 0)
        return hl_io_error(file->ctx, file->path, "read", errno);
    return HL_OK;
}

void hl_file_close(hl_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

/* ---- loading ---- */

typedef struct load {
    hl_context *ctx;
    const char *path;
    size_t limit;
    int fd;
    void *data;
    size_t used, capacity;
} load;

static hl_status too_large(const load *l)
{
    return hl_fail(l->ctx, HL_ERR_FORMAT, "%s: larger than the allowed %zu bytes", hl_path_shown(l->path), l->limit);
}

/* How many bytes to reserve at first: the file's size, so that it comes in one piece. */
static hl_status load_begin(load *l)
{
    struct stat info;
    size_t reserve = FIRST_LOAD;

    if (fstat(l->fd, &info))
        return hl_io_error(l->ctx, l->path, "read", errno);
    if (S_ISREG(info.st_mode)) {
        if ((uintmax_t)info.st_size > l->limit)
            return too_large(l);
        reserve = hl_size_add((size_t)info.st_size, 2);
    }
    return hl_grow(l->ctx, &l->data, &l->capacity, reserve, 1);
}

/* Read to the end, keeping a byte for the NUL and at least one to find the end with. */
static hl_status load_rest(load *l)
{
    for (;;) {
        ssize_t got;

        if (hl_grow(l->ctx, &l->data, &l->capacity, hl_size_add(l->used, 2), 1))
            return HL_ERR_NOMEM;
        got = hl_fd_read(l->fd, (char *)l->data + l->used, l->capacity - 1 - l->used);
        if (got < 0)
            return hl_io_error(l->ctx, l->path, "read", errno);
        if (got == 0)
            break;
        l->used += (size_t)got;
        if (l->used > l->limit)
            return too_large(l);
    }
    ((char *)l->data)[l->used] = '\0';
    return HL_OK;
}

hl_status hl_file_load(hl_context *ctx, const char *path, size_t limit, char **data, size_t *size)
{
    load l = { .ctx = ctx, .path = path, .limit = limit, .fd = hl_fd_open(path, O_RDONLY, 0) };
    hl_status status;

    *data = NULL;
    *size = 0;
    if (l.fd < 0)
        return hl_io_error(ctx, path, "open", errno);
    status = load_begin(&l);
    if (!status)
        status = load_rest(&l);
    close(l.fd);
    if (status) {
        hl_free(ctx, l.data);
        return status;
    }
    *data = l.data;
    *size = l.used;
    return HL_OK;
}

/* ---- replacing ---- */

hl_status hl_fd_write(hl_context *ctx, const char *path, int fd, const void *data, size_t bytes)
{
    const char *next = data;

    while (bytes > 0) {
        ssize_t put = write(fd, next, bytes < LARGEST_CALL ? bytes : LARGEST_CALL);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return hl_io_error(ctx, path, "write", errno);
        next += put;
        bytes -= (size_t)put;
    }
    return HL_OK;
}

struct hl_replacement {
    hl_context *ctx;
    const char *path;         /* as the caller spelt it, for messages */
    char target[PATH_MAX];    /* `path` without links */
    char temporary[PATH_MAX]; /* beside target; "" if there is no such file */
    size_t directory;         /* length of their common directory with its slash; 0 for the current one */
    mode_t mode;              /* of the new file */
    bool exists;              /* there is an old file, and `mode` is its own */
    int fd;                   /* the temporary file; -1 if not open */
};

static hl_status replace_error(const hl_replacement *r, const char *what)
{
    return hl_io_error(r->ctx, r->path, what, errno);
}

/* Flush to the disk. File systems that cannot are taken at their word. */
static int flush(int fd)
{
    int result;

    do
        result = fsync(fd);
    while (result && errno == EINTR);
    return result && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS ? -1 : 0;
}

/* Follow links, also those to a file that is not there yet: it will be made where they lead. Returns 0 or an errno. */
static int follow_links(const char *path, char target[PATH_MAX])
{
    char next[PATH_MAX];

    if (strlen(path) >= PATH_MAX)
        return ENAMETOOLONG;
    strcpy(target, path);
    for (int i = 0; i < MOST_LINKS; i++) {
        const char *slash = strrchr(target, '/');
        size_t directory = slash ? (size_t)(slash - target) + 1 : 0;
        ssize_t length;

        if (realpath(target, next)) {
            strcpy(target, next);
            return 0;
        }
        if (errno != ENOENT)
            return errno;
        length = readlink(target, next, sizeof next - 1);
        if (length < 0)
            return 0; /* no link: a new file */
        next[length] = '\0';
        directory = next[0] == '/' ? 0 : directory;
        if (directory + (size_t)length >= PATH_MAX)
            return ENAMETOOLONG;
        strcpy(target + directory, next);
    }
    return ELOOP;
}

/* Find what is to be replaced, and whether it may be. */
static hl_status find_target(hl_replacement *r)
{
    struct stat info;
    const char *slash;

    errno = follow_links(r->path, r->target);
    if (errno)
        return replace_error(r, "write");
    slash = strrchr(r->target, '/');
    r->directory = slash ? (size_t)(slash - r->target) + 1 : 0;
    r->mode = 0666; /* less what the umask takes away */
    if (stat(r->target, &info))
        return errno == ENOENT ? HL_OK : replace_error(r, "write");
    r->exists = true;
    r->mode = info.st_mode & 0777;
    if (S_ISDIR(info.st_mode))
        errno = EISDIR;
    else if (!S_ISREG(info.st_mode))
        return hl_fail(r->ctx, HL_ERR_IO, "%s: cannot write: not a regular file", hl_path_shown(r->path));
    else if (faccessat(AT_FDCWD, r->target, W_OK, AT_EACCESS) == 0)
        return HL_OK;
    return replace_error(r, "write");
}

/* Whoever writes a temporary file holds a lock on it, which ends with the process: one that can be locked was left behind by
 * a crash, and is removed. */
static void remove_stale(const char *path)
{
    int fd = hl_fd_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);

    if (fd < 0)
        return;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlink(path);
    close(fd);
}

/* Lock the new file; false if another process took it for one that was left behind before it was locked. */
static bool lock_temporary(const hl_replacement *r)
{
    struct stat ours, there;

    if (flock(r->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return false;
    return fstat(r->fd, &ours) == 0 && stat(r->temporary, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

/* Make an empty file in the target's directory. Its name follows from the target's, so that one left behind by a crash is
 * found, but does not contain it, as that may be as long as names can be. */
static hl_status create_temporary(hl_replacement *r)
{
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
    const char *name = r->target + r->directory;
    unsigned long hash = crc32(0, (const Bytef *)name, (uInt)strlen(name));

    for (int i = 0; i < TEMPORARY_NAMES; i++) {
        int length = snprintf(r->temporary, sizeof r->temporary, "%.*s.hollow-%08lx-%d.tmp", (int)r->directory,
                              r->target, hash, i);

        if (length < 0 || (size_t)length >= sizeof r->temporary) {
            errno = ENAMETOOLONG;
            break;
        }
        remove_stale(r->temporary);
        r->fd = hl_fd_open(r->temporary, flags, r->mode);
        if (r->fd >= 0 && lock_temporary(r)) {
            if (r->exists)
                (void)fchmod(r->fd, r->mode); /* give back what the umask took; if that fails, less is safe */
            return HL_OK;
        }
        if (r->fd >= 0)
            close(r->fd);
        else if (errno != EEXIST)
            break;
        r->fd = -1;
    }
    r->temporary[0] = '\0';
    return replace_error(r, "create a temporary file beside it");
}

/* Put the temporary file, complete and flushed, in the target's place. Closing may fail, too, and must come first; a second
 * descriptor keeps the lock until the file has its name. */
static hl_status move_in_place(hl_replacement *r)
{
    int fd = r->fd, lock;
    hl_status status = HL_OK;

    if (flush(fd))
        return replace_error(r, "write");
    lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    r->fd = -1;
    if (close(fd) || rename(r->temporary, r->target))
        status = replace_error(r, "write");
    else
        r->temporary[0] = '\0';
    if (lock >= 0)
        close(lock);
    return status;
}

/* Make the rename last. A directory that we may change but not read cannot be opened, thus not flushed; that is no
 * reason to fail. */
static hl_status flush_directory(hl_replacement *r)
{
    hl_status status = HL_OK;
    int fd;

    if (r->directory == 0)
        strcpy(r->target, ".");
    else
        r->target[r->directory] = '\0';
    fd = hl_fd_open(r->target, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return HL_OK;
    if (flush(fd))
        status = replace_error(r, "flush its directory, so the new contents may not survive a power cut");
    close(fd);
    return status;
}

hl_status hl_replacement_begin(hl_context *ctx, const char *path, hl_replacement **replacement)
{
    hl_replacement *r = hl_calloc(ctx, 1, sizeof *r);
    hl_status status;

    *replacement = NULL;
    if (!r)
        return HL_ERR_NOMEM;
    r->ctx = ctx;
    r->path = path;
    r->fd = -1;
    status = find_target(r);
    if (!status)
        status = create_temporary(r);
    if (status)
        hl_free(ctx, r);
    else
        *replacement = r;
    return status;
}

hl_status hl_replacement_write(hl_replacement *r, const void *data, size_t bytes)
{
    return hl_fd_write(r->ctx, r->path, r->fd, data, bytes);
}

hl_status hl_replacement_patch(hl_replacement *r, size_t offset, const void *data, size_t bytes)
{
    hl_status status;

    if (lseek(r->fd, (off_t)offset, SEEK_SET) < 0)
        return replace_error(r, "write");
    status = hl_fd_write(r->ctx, r->path, r->fd, data, bytes);
    if (!status && lseek(r->fd, 0, SEEK_END) < 0)
        return replace_error(r, "write");
    return status;
}

hl_status hl_replacement_commit(hl_replacement *r)
{
    hl_status status = move_in_place(r);

    return status ? status : flush_directory(r);
}

void hl_replacement_free(hl_replacement *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    if (r->temporary[0])
        unlink(r->temporary);
    hl_free(r->ctx, r);
}

hl_status hl_file_replace(hl_context *ctx, const char *path, const hl_file_piece *pieces, size_t count)
{
    hl_replacement *r;
    hl_status status = hl_replacement_begin(ctx, path, &r);

    if (status)
        return status;
    for (size_t i = 0; !status && i < count; i++)
        status = hl_replacement_write(r, pieces[i].data, pieces[i].bytes);
    if (!status)
        status = hl_replacement_commit(r);
    hl_replacement_free(r);
    return status;
}
