/* file.h - reading a file, or bytes in memory, from front to back, loading a small file whole, and replacing one
 * atomically, at once or bit by bit.
 *
 * Every failure is HL_ERR_IO unless a function says otherwise, with the path and the system's reason in the message. */
#ifndef HL_FILE_H
#define HL_FILE_H

#include "base/base.h"

/* What of a path messages show: all of it, or its last 128 bytes if it is longer. Borrows from `path`. */
const char *hl_path_shown(const char *path);

/* The message "m.hollow: cannot open: No such file or directory" for an errno, and HL_ERR_IO. */
hl_status hl_io_error(hl_context *ctx, const char *path, const char *what, int error);
/* open and read, again if a signal came between. hl_fd_read: at most `bytes` bytes; how many came, 0 at the end, -1 with errno
 * set. */
int hl_fd_open(const char *path, int flags, unsigned mode);
ptrdiff_t hl_fd_read(int fd, void *data, size_t bytes);

/* A regular file open for reading, or bytes in memory. */
typedef struct hl_file {
    hl_context *ctx;
    const char *path; /* borrowed until hl_file_close */
    int fd;
    const char *memory; /* what is left to read; NULL for a file */
    size_t size;        /* bytes when it was opened */
    size_t left;        /* of them, in memory */
} hl_file;

/* Open for reading; refuses directories, pipes and devices. On failure there is nothing to close. */
hl_status hl_file_open(hl_context *ctx, const char *path, hl_file *file);
/* The same of `size` bytes in memory, borrowed until hl_file_close; messages call them `path`. */
void hl_file_open_memory(hl_context *ctx, const char *path, const void *bytes, size_t size, hl_file *file);
/* Read the next `bytes` bytes, all of them: a file that ends before is an error. */
hl_status hl_file_read(hl_file *file, void *data, size_t bytes);
/* Pass over the next `bytes` bytes. */
hl_status hl_file_skip(hl_file *file, size_t bytes);
void hl_file_close(hl_file *file);

/* Load all of a file or pipe. *data holds *size bytes and a NUL after them; the caller owns it (hl_free). More than
 * `limit` bytes is HL_ERR_FORMAT. On failure *data is NULL. */
hl_status hl_file_load(hl_context *ctx, const char *path, size_t limit, char **data, size_t *size);

/* One stretch of a file's new contents. */
typedef struct hl_file_piece {
    const void *data; /* may be NULL if bytes is 0 */
    size_t bytes;
} hl_file_piece;

/* Make `path` a file that holds the pieces one after another. Whoever reads `path` meanwhile, or after a crash, sees
 * either the old contents or the new: they are written to a temporary file in the same directory, flushed to the disk,
 * and renamed. A link is followed and stays a link, and the old file's permissions are kept. Refuses to replace what is
 * not a regular file or is write-protected.
 *
 * On failure the old file is untouched and the temporary one removed. The exception, which the message tells, is a
 * directory that cannot be flushed: then the new contents are in place but may not survive a power cut. */
hl_status hl_file_replace(hl_context *ctx, const char *path, const hl_file_piece *pieces, size_t count);

/* The same in steps. Between begin and commit the new contents grow in the temporary file; abandon, at any time after begin,
 * removes it, and does nothing after a commit that succeeded. Borrows the path until it is freed. */
typedef struct hl_replacement hl_replacement;
hl_status hl_replacement_begin(hl_context *ctx, const char *path, hl_replacement **replacement);
hl_status hl_replacement_write(hl_replacement *r, const void *data, size_t bytes);
/* Write over what stands at `offset`, and go on appending after. */
hl_status hl_replacement_patch(hl_replacement *r, size_t offset, const void *data, size_t bytes);
hl_status hl_replacement_commit(hl_replacement *r);
void hl_replacement_free(hl_replacement *r); /* takes NULL; abandons what was not committed */

/* Write all of it to a descriptor; `path` is for the message. */
hl_status hl_fd_write(hl_context *ctx, const char *path, int fd, const void *data, size_t bytes);

#endif
