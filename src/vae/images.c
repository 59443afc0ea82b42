/* images.c - rows of pixels from tables and idx files. Everything in a file may be wrong: sizes are checked before memory is taken. */
#include <math.h>
#include <string.h>

#include "hollow/images.h"
#include "hollow/table.h"
#include "io/file.h"

enum { CHUNK = 256, IDX_HEADER = 16, MOST_PIXELS = 1 << 20 };

struct hl_images {
    hl_context *ctx;
    size_t rows, dim, shape[3], dropped;
    unsigned char *bytes;
    double *values;
    bool gray;
};

/* ---- sizes ---- */

/* From the pixels of a row to its shape; `most` is how many a row may have, fewer with packed bits. */
static hl_status set_shape(hl_images *m, const char *path, const size_t *asked, size_t least, size_t most)
{
    size_t pixels = hl_size_mul(hl_size_mul(asked[0], asked[1]), asked[2]);
    if (most > MOST_PIXELS)
        return hl_fail(m->ctx, HL_ERR_FORMAT, "%s: %zu pixels in a row; at most %d are possible", hl_path_shown(path),
                       most, (int)MOST_PIXELS);
    if (pixels) {
        if (pixels < least || pixels > most)
            return hl_fail(m->ctx, HL_ERR_INVALID, "%s: its rows have %zu pixels, but an image of %zux%zux%zu has %zu",
                           hl_path_shown(path), most, asked[0], asked[1], asked[2], pixels);
        m->dim = pixels;
        memcpy(m->shape, asked, sizeof m->shape);
        return HL_OK;
    }
    size_t side = (size_t)(sqrt((double)most) + 0.5);
    m->dim = most;
    if (side * side == most && side > 1) {
        m->shape[0] = 1;
        m->shape[1] = m->shape[2] = side;
    }
    return HL_OK;
}

static hl_status take_memory(hl_images *m, bool real)
{
    size_t count = hl_size_mul(m->rows, m->dim);
    if (real)
        m->values = hl_calloc(m->ctx, count, sizeof *m->values);
    else
        m->bytes = hl_calloc(m->ctx, count, 1);
    return m->values || m->bytes ? HL_OK : HL_ERR_NOMEM;
}

/* ---- tables ---- */

static hl_status bad_pixel(hl_images *m, const hl_table *t, size_t row, size_t column, double value, bool bits)
{
    char place[400];
    hl_table_place(t, row, column, place, sizeof place);
    return hl_fail(m->ctx, HL_ERR_INVALID, "%s: %g is not %s", place, value,
                   bits ? "a byte of 8 pixels" : "a pixel: 0 or 1, or a gray value 0 to 255");
}

static hl_status take_row(hl_images *m, const hl_table *t, size_t row, const double *from, size_t columns,
                          const hl_images_options *o)
{
    size_t at = row * m->dim;
    if (o->real) {
        memcpy(m->values + at, from, m->dim * sizeof *from);
        return HL_OK;
    }
    for (size_t c = 0; c < columns; c++) {
        if (!(from[c] >= 0 && from[c] <= 255 && from[c] == floor(from[c])))
            return bad_pixel(m, t, row, c, from[c], o->bits);
        unsigned byte = (unsigned)from[c];
        for (size_t k = 0; o->bits && k < 8 && 8 * c + k < m->dim; k++)
            m->bytes[at + 8 * c + k] = byte >> (7 - k) & 1;
        if (!o->bits)
            m->bytes[at + c] = (unsigned char)byte;
        m->gray = m->gray || (!o->bits && byte > 1);
    }
    return HL_OK;
}

static hl_status read_table(hl_images *m, const char *path, hl_table *t, const hl_images_options *o)
{
    size_t columns = hl_table_columns(t), most = o->bits ? hl_size_mul(8, columns) : columns;
    m->rows = hl_table_rows(t);
    hl_status status = set_shape(m, path, o->image, o->bits ? most - 7 : most, most);
    if (status == HL_OK)
        status = take_memory(m, o->real);
    double *chunk = status == HL_OK ? hl_calloc(m->ctx, hl_size_mul(CHUNK, columns), sizeof *chunk) : NULL;
    if (status == HL_OK && !chunk)
        status = HL_ERR_NOMEM;
    for (size_t at = 0, n; at < m->rows && status == HL_OK; at += n) {
        n = m->rows - at < CHUNK ? m->rows - at : CHUNK;
        status = hl_table_read_rows(t, at, n, chunk);
        for (size_t r = 0; r < n && status == HL_OK; r++)
            status = take_row(m, t, at + r, chunk + r * columns, columns, o);
    }
    hl_free(m->ctx, chunk);
    return status;
}

/* ---- idx: big-endian 0, 0, 8 (bytes), 3 dimensions: images, height, width ---- */

static size_t big_endian(const unsigned char *at)
{
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

static hl_status read_idx(hl_images *m, hl_file *file, const unsigned char *head, const hl_images_options *o)
{
    size_t shape[3] = { 1, big_endian(head + 8), big_endian(head + 12) };
    size_t pixels = hl_size_mul(shape[1], shape[2]);
    m->rows = big_endian(head + 4);
    if (m->rows == 0 || pixels == 0 || hl_size_mul(m->rows, pixels) != file->size - IDX_HEADER)
        return hl_fail(m->ctx, HL_ERR_FORMAT, "%s: %zu images of %zux%zu are not the %zu bytes of the file",
                       hl_path_shown(file->path), m->rows, shape[1], shape[2], file->size);
    if (o->bits || o->real)
        return hl_fail(m->ctx, HL_ERR_INVALID, "%s: an idx file has gray values", hl_path_shown(file->path));
    hl_status status = set_shape(m, file->path, o->image[0] ? o->image : shape, pixels, pixels);
    if (status == HL_OK)
        status = take_memory(m, false);
    if (status == HL_OK)
        status = hl_file_read(file, m->bytes, m->rows * m->dim);
    for (size_t i = 0; status == HL_OK && i < m->rows * m->dim && !m->gray; i++)
        m->gray = m->bytes[i] > 1;
    return status;
}

/* Is it an idx file? Then it has been read. */
static bool try_idx(hl_images *m, const char *path, const hl_images_options *o, hl_status *status)
{
    unsigned char head[IDX_HEADER];
    hl_file file;
    if (strcmp(path, "-") == 0 || hl_file_open(m->ctx, path, &file) != HL_OK)
        return false;
    bool idx = file.size >= IDX_HEADER && hl_file_read(&file, head, sizeof head) == HL_OK && head[0] == 0 &&
               head[1] == 0 && head[2] == 8 && head[3] == 3;
    if (idx)
        *status = read_idx(m, &file, head, o);
    hl_file_close(&file);
    return idx;
}

/* ---- the calls ---- */

hl_status hl_images_open(hl_context *ctx, const char *path, const hl_images_options *options, hl_images **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_images_open: the path or the result is NULL");
    hl_images_options o = options ? *options : (hl_images_options){ 0 };
    *out = NULL;
    if (o.bits && o.real)
        return hl_fail(ctx, HL_ERR_INVALID, "packed bits are no real numbers");
    hl_images *m = hl_calloc(ctx, 1, sizeof *m);
    if (!m)
        return HL_ERR_NOMEM;
    m->ctx = ctx;
    hl_status status = HL_OK;
    if (!try_idx(m, path, &o, &status)) {
        hl_table *t = NULL;
        status = hl_table_open(ctx, path, &(hl_table_options){ .array = o.array, .drop_missing = o.drop_missing }, &t);
        if (status == HL_OK)
            status = read_table(m, path, t, &o);
        m->dropped = status == HL_OK ? hl_table_dropped(t) : 0;
        hl_table_free(t);
    }
    if (status != HL_OK) {
        hl_images_free(m);
        return status;
    }
    *out = m;
    return HL_OK;
}

void hl_images_free(hl_images *m)
{
    if (!m)
        return;
    hl_free(m->ctx, m->bytes);
    hl_free(m->ctx, m->values);
    hl_free(m->ctx, m);
}

hl_vae_rows hl_images_rows(const hl_images *m)
{
    return m ? (hl_vae_rows){ .rows = m->rows, .bytes = m->bytes, .values = m->values, .gray = m->gray }
             : (hl_vae_rows){ 0 };
}

size_t hl_images_dim(const hl_images *m)
{
    return m ? m->dim : 0;
}

size_t hl_images_dropped(const hl_images *m)
{
    return m ? m->dropped : 0;
}

void hl_images_shape(const hl_images *m, size_t shape[3])
{
    for (size_t i = 0; i < 3; i++)
        shape[i] = m ? m->shape[i] : 0;
}
