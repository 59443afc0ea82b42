/* table_write.c - rows to csv and npy.
 *
 * Text or bytes are made in a buffer and handed on when it is full: to the replacement of a file, or, for standard output and
 * what is no regular file, to its descriptor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "io/number.h"
#include "io/table.h"

enum { BUFFER = 1 << 16 };

struct hl_table_writer {
    hl_context *ctx;
    char *path;           /* a copy, for messages */
    hl_replacement *file; /* NULL: written to fd */
    int fd;               /* -1 if there is a replacement */
    bool standard;        /* fd is standard output */
    bool npy, single, flat, finished;
    size_t date;           /* 1 + the number of a column of dates, or 0 */
    const hl_table *texts; /* has the texts of columns, or NULL */
    size_t columns;
    size_t expected, rows; /* rows announced, 0 if not; rows written */
    hl_status status;      /* the first failure; later calls give it again */
    size_t used;
    char buffer[BUFFER];
};

static hl_status send(hl_table_writer *w, const void *data, size_t bytes)
{
    return w->file ? hl_replacement_write(w->file, data, bytes) : hl_fd_write(w->ctx, w->path, w->fd, data, bytes);
}

static hl_status flush(hl_table_writer *w)
{
    size_t bytes = w->used;

    w->used = 0;
    return bytes ? send(w, w->buffer, bytes) : HL_OK;
}

/* At least `bytes` free bytes of the buffer. */
static hl_status make_room(hl_table_writer *w, size_t bytes)
{
    return BUFFER - w->used < bytes ? flush(w) : HL_OK;
}

static hl_status put_text(hl_table_writer *w, const char *text, size_t bytes)
{
    hl_status status = HL_OK;

    for (size_t i = 0; !status && i < bytes; i++) {
        status = make_room(w, 1);
        w->buffer[w->used++] = text[i];
    }
    return status;
}

/* ---- beginning ---- */

/* A name, in quotes if it could be read as anything else. */
static hl_status put_name(hl_table_writer *w, const char *name)
{
    size_t bytes = strlen(name);
    bool quote = bytes == 0 || strpbrk(name, ",;\t\"\r\n") || *name == '#' || *name == ' ' || name[bytes - 1] == ' ';
    hl_status status = quote ? put_text(w, "\"", 1) : HL_OK;

    for (; !status && *name; name++) {
        status = put_text(w, name, 1);
        if (!status && *name == '"')
            status = put_text(w, "\"", 1);
    }
    return !status && quote ? put_text(w, "\"", 1) : status;
}

static hl_status begin_contents(hl_table_writer *w, const char *const *names)
{
    hl_status status = HL_OK;

    if (w->npy) {
        hl_npy_header(w->buffer, w->single, w->expected, w->columns, w->flat);
        w->used = HL_NPY_WRITTEN;
        return HL_OK;
    }
    for (size_t i = 0; names && !status && i < w->columns; i++) {
        status = put_name(w, names[i]);
        if (!status)
            status = put_text(w, i + 1 < w->columns ? "," : "\n", 1);
    }
    return status;
}

/* A pipe can be opened once it has a reader; the user may stop the wait. */
static hl_status open_special(hl_table_writer *w)
{
    const struct timespec pause = { .tv_nsec = 20000000 };
    hl_status status = HL_OK;

    while (!status && (w->fd = hl_fd_open(w->path, O_WRONLY | O_NONBLOCK, 0)) < 0 && errno == ENXIO) {
        status = hl_check_stop(w->ctx);
        nanosleep(&pause, NULL);
    }
    if (!status && w->fd < 0)
        return hl_io_error(w->ctx, w->path, "open", errno);
    if (!status)
        fcntl(w->fd, F_SETFL, O_WRONLY);
    return status;
}

/* Pipes and devices, /dev/null among them, cannot be replaced: they are written to as they are. */
static hl_status open_target(hl_table_writer *w)
{
    struct stat info;

    if (strcmp(w->path, "-") == 0) {
        strcpy(w->path, "standard output");
        w->fd = STDOUT_FILENO;
        w->standard = true;
        return HL_OK;
    }
    if (stat(w->path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        return open_special(w);
    }
    return hl_replacement_begin(w->ctx, w->path, &w->file);
}

static bool ends_in_npy(const char *path)
{
    size_t length = strlen(path);

    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

static bool is_text(const hl_table_writer *w, size_t column)
{
    return w->texts && column < hl_table_columns(w->texts) && hl_table_kind(w->texts, column) == HL_COLUMN_LABELS;
}

hl_status hl_table_writer_create(hl_context *context, const char *path, size_t columns,
                                 const hl_table_writer_options *options, hl_table_writer **writer)
{
    hl_table_writer_options o = options ? *options : (hl_table_writer_options){ 0 };
    hl_table_writer *w;
    hl_status status;

    *writer = NULL;
    if (!path)
        return hl_fail(context, HL_ERR_INVALID, "a table needs a path");
    if (columns == 0 || (o.flat && columns != 1))
        return hl_fail(context, HL_ERR_INVALID, "a table of %zu columns cannot be written%s", columns,
                       columns ? " as a flat array" : "");
    w = hl_calloc(context, 1, sizeof *w);
    if (!w)
        return HL_ERR_NOMEM;
    w->ctx = context;
    w->fd = -1;
    w->npy = o.format == HL_TABLE_NPY || (o.format == HL_TABLE_AUTO && ends_in_npy(path));
    w->single = o.single != 0;
    w->flat = o.flat != 0;
    w->columns = columns;
    w->expected = o.rows;
    w->date = o.date_column;
    w->texts = o.texts;
    w->path = hl_alloc(context, strlen(path) + sizeof "standard output");
    status = w->path ? HL_OK : HL_ERR_NOMEM;
    if (!status) {
        strcpy(w->path, path);
        status = open_target(w);
    }
    for (size_t i = 0; !status && w->npy && i < columns; i++)
        if (is_text(w, i))
            status = hl_fail(context, HL_ERR_INVALID,
                             "%s: npy files contain numbers only, but column '%.60s' contains text; write csv",
                             hl_path_shown(w->path), hl_table_name(w->texts, i));
    if (!status && w->npy && !w->file && !w->expected)
        status =
            hl_fail(context, HL_ERR_INVALID, "%s: to write npy to a pipe, the number of rows must be known in advance",
                    hl_path_shown(w->path));
    if (!status)
        status = begin_contents(w, o.names);
    if (status)
        hl_table_writer_free(w);
    else
        *writer = w;
    return status;
}

/* ---- rows ---- */

/* A text by its number; an empty one stays empty. */
static hl_status put_label(hl_table_writer *w, double number)
{
    const char *text = hl_table_label(w->texts, (size_t)number);

    return text && *text ? put_name(w, text) : HL_OK;
}

static hl_status put_row(hl_table_writer *w, const double *values)
{
    for (size_t i = 0; i < w->columns; i++) {
        bool text = is_text(w, i);
        hl_status status = text ? put_label(w, values[i]) : HL_OK;

        if (!status)
            status = make_room(w, HL_NUMBER_TEXT + 1);
        float single = (float)values[i];

        if (status)
            return status;
        if (!w->npy) {
            char *to = w->buffer + w->used;
            w->used += text               ? 0
                       : i + 1 == w->date ? hl_date_text(values[i], to)
                                          : hl_number_text(values[i], w->single, to);
            w->buffer[w->used++] = i + 1 < w->columns ? ',' : '\n';
        } else if (w->single) {
            memcpy(w->buffer + w->used, &single, sizeof single);
            w->used += sizeof single;
        } else {
            memcpy(w->buffer + w->used, &values[i], sizeof *values);
            w->used += sizeof *values;
        }
    }
    return HL_OK;
}

hl_status hl_table_write_rows(hl_table_writer *writer, size_t count, const double *values)
{
    hl_table_writer *w = writer;

    if (!w->status && w->expected && count > w->expected - w->rows)
        w->status = hl_fail(w->ctx, HL_ERR_INVALID, "%s: more rows than the announced %zu", hl_path_shown(w->path),
                            w->expected);
    for (size_t i = 0; !w->status && i < count; i++, w->rows++)
        w->status = put_row(w, values + i * w->columns);
    return w->status;
}

hl_status hl_table_writer_flush(hl_table_writer *writer)
{
    if (!writer->status)
        writer->status = flush(writer);
    return writer->status;
}

/* ---- ending ---- */

static hl_status finish(hl_table_writer *w)
{
    char header[HL_NPY_WRITTEN];
    hl_status status;

    if (w->expected && w->rows != w->expected)
        return hl_fail(w->ctx, HL_ERR_INVALID, "%s: %zu rows were announced and %zu written", hl_path_shown(w->path),
                       w->expected, w->rows);
    status = flush(w);
    if (!status && w->npy && !w->expected) {
        hl_npy_header(header, w->single, w->rows, w->columns, w->flat);
        status = hl_replacement_patch(w->file, 0, header, sizeof header);
    }
    return !status && w->file ? hl_replacement_commit(w->file) : status;
}

hl_status hl_table_writer_finish(hl_table_writer *writer)
{
    if (!writer->status && !writer->finished)
        writer->status = finish(writer);
    writer->finished = true;
    return writer->status;
}

void hl_table_writer_free(hl_table_writer *writer)
{
    if (!writer)
        return;
    hl_replacement_free(writer->file);
    if (writer->fd >= 0 && !writer->standard)
        close(writer->fd);
    hl_free(writer->ctx, writer->path);
    hl_free(writer->ctx, writer);
}
