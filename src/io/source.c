/* source.c - files, pipes and devices to read from.
 *
 * Regular files are read by pread rather than mapped: a mapped file that another program cuts short kills the process that
 * reads it, and mapped pages count as its memory. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file.h"
#include "io/source.h"

enum { FIRST_LOAD = 1 << 16, WAIT = 200 /* ms between questions whether to stop */ };

/* What kind of file it is, and how large. */
static hl_status examine(hl_source *in)
{
    struct stat info;

    if (fstat(in->fd, &info))
        return hl_io_error(in->ctx, in->path, "open", errno);
    if (S_ISDIR(info.st_mode))
        return hl_io_error(in->ctx, in->path, "read", EISDIR);
    if ((off_t)(size_t)info.st_size != info.st_size)
        return hl_io_error(in->ctx, in->path, "read", EFBIG);
    /* Standard input may have been read in part: then it is taken as a pipe, from where it is. Files of /proc say 0. */
    in->regular = S_ISREG(info.st_mode) && info.st_size > 0 && lseek(in->fd, 0, SEEK_CUR) == 0;
    in->size = in->regular ? (size_t)info.st_size : 0;
    return HL_OK;
}

hl_status hl_source_open(hl_context *ctx, const char *path, hl_source *source)
{
    bool standard = strcmp(path, "-") == 0;
    const char *shown = standard ? "standard input" : path;
    hl_status status;

    *source = (hl_source){ .ctx = ctx, .fd = -1, .standard = standard };
    source->path = hl_alloc(ctx, strlen(shown) + 1);
    if (!source->path)
        return HL_ERR_NOMEM;
    strcpy(source->path, shown);
    source->fd =
        standard ? STDIN_FILENO : hl_fd_open(path, O_RDONLY | O_NONBLOCK, 0); /* a pipe: wait later, see below */
    if (source->fd >= 0 && !standard)
        fcntl(source->fd, F_SETFL, O_RDONLY);
    status = source->fd < 0 ? hl_io_error(ctx, path, "open", errno) : examine(source);
    if (status)
        hl_source_close(source);
    return status;
}

void hl_source_close(hl_source *source)
{
    if (source->fd >= 0 && !source->standard)
        close(source->fd);
    if (source->path) {
        hl_free(source->ctx, source->path);
        hl_free(source->ctx, source->memory);
    }
    *source = (hl_source){ .fd = -1 };
}

void hl_source_replace(hl_source *source, int fd, size_t size)
{
    if (source->fd >= 0 && !source->standard)
        close(source->fd);
    hl_free(source->ctx, source->memory);
    source->memory = NULL;
    source->fd = fd;
    source->standard = false;
    source->regular = true;
    source->size = size;
}

/* Wait for the next bytes of a pipe or terminal, or for its end; the user may stop the wait. */
static hl_status wait_for_data(hl_source *in)
{
    struct pollfd poller = { .fd = in->fd, .events = POLLIN };
    hl_status status = HL_OK;

    while (!status && poll(&poller, 1, WAIT) <= 0)
        status = hl_check_stop(in->ctx);
    return status;
}

/* Read in order until `bytes` have come or the end. */
static hl_status read_on(hl_source *in, void *data, size_t bytes, size_t *got)
{
    for (*got = 0; *got < bytes;) {
        hl_status status = in->regular ? HL_OK : wait_for_data(in);

        if (status)
            return status;
        ptrdiff_t n = hl_fd_read(in->fd, (char *)data + *got, bytes - *got);

        if (n < 0)
            return hl_io_error(in->ctx, in->path, "read", errno);
        if (n == 0)
            break;
        *got += (size_t)n;
    }
    return HL_OK;
}

hl_status hl_source_peek(hl_source *source, char head[8], size_t *bytes)
{
    hl_status status = HL_OK;

    if (source->regular) {
        *bytes = source->size < 8 ? source->size : 8;
        return hl_source_at(source, 0, head, *bytes);
    }
    if (!source->head_bytes)
        status = read_on(source, source->head, sizeof source->head, &source->head_bytes);
    memcpy(head, source->head, sizeof source->head);
    *bytes = source->head_bytes;
    return status;
}

hl_status hl_source_next(hl_source *source, void *data, size_t bytes, size_t *got)
{
    size_t again = source->head_bytes - source->head_used;
    hl_status status;

    again = again < bytes ? again : bytes;
    memcpy(data, source->head + source->head_used, again);
    source->head_used += again;
    status = read_on(source, (char *)data + again, bytes - again, got);
    *got += again;
    return status;
}

hl_status hl_source_load(hl_source *source)
{
    void *data = NULL;
    size_t used = 0, capacity = 0, got;
    hl_status status;

    if (source->regular || source->memory)
        return HL_OK;
    do {
        size_t need = used ? hl_size_add(used, 1) : FIRST_LOAD;

        status = hl_grow(source->ctx, &data, &capacity, need, 1);
        if (status)
            break;
        status = hl_source_next(source, (char *)data + used, capacity - used, &got);
        used += got;
    } while (!status && used == capacity);
    if (status) {
        hl_free(source->ctx, data);
        return status;
    }
    source->memory = data;
    source->size = used;
    return HL_OK;
}

hl_status hl_source_at(hl_source *source, size_t offset, void *data, size_t bytes)
{
    char *next = data;

    if (offset > source->size || bytes > source->size - offset)
        return hl_fail(source->ctx, HL_ERR_IO, "%s: cannot read: the file ends too early", hl_path_shown(source->path));
    if (source->memory) {
        memcpy(data, source->memory + offset, bytes);
        return HL_OK;
    }
    while (bytes > 0) {
        ssize_t n = pread(source->fd, next, bytes < 1 << 30 ? bytes : 1 << 30, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return hl_io_error(source->ctx, source->path, "read", errno);
        if (n == 0)
            return hl_fail(source->ctx, HL_ERR_IO, "%s: cannot read: the file was truncated while it was read",
                           hl_path_shown(source->path));
        next += n;
        offset += (size_t)n;
        bytes -= (size_t)n;
    }
    return HL_OK;
}
