/* images.c - rows of pixels from tables and idx files. Everything in a file may be wrong: sizes are checked before memory is taken. */
#include <math.h>
#include <string.h>

#include "base/ranks.h"
#include "hollow/images.h"
#include "hollow/table.h"
#include "io/file.h"
#include "io/source.h"
#include "vae/vae.h"

enum { CHUNK = 256, IDX_HEADER = 16, MOST_PIXELS = 1 << 20 };

struct hl_images {
    hl_context *ctx;
    size_t rows, dim, shape[3], dropped;
    unsigned char *bytes;
    double *values;
    bool gray, bits, real;
    hl_table *table; /* where the rows are; NULL for an idx file */
    size_t columns, *column;
    const char **names; /* of the columns, or NULL */
    double *chunk;      /* rows of the table */
    hl_source idx;      /* of an idx file whose rows stay in it */
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
            return hl_fail(m->ctx, HL_ERR_INVALID, "%s: rows have %zu pixels, but an image of %zux%zux%zu has %zu",
                           hl_path_shown(path), most, asked[0], asked[1], asked[2], pixels);
        m->dim = pixels;
        memcpy(m->shape, asked, sizeof m->shape);
        return HL_OK;
    }
    size_t side = (size_t)(sqrt((double)most) + 0.5);
    m->dim = most;
    if (side * side == most && side > 1 && !m->real) { /* columns of real numbers have units of their own */
        m->shape[0] = 1;
        m->shape[1] = m->shape[2] = side;
    }
    return HL_OK;
}

static size_t width_of(const hl_images *m)
{
    return hl_size_mul(m->dim, m->real ? sizeof *m->values : 1);
}

static hl_status take_memory(hl_images *m)
{
    void *memory = hl_calloc(m->ctx, m->rows, width_of(m));
    m->values = m->real ? memory : NULL;
    m->bytes = m->real ? NULL : memory;
    return memory ? HL_OK : HL_ERR_NOMEM;
}

/* ---- tables ---- */

static hl_status bad_pixel(const hl_images *m, size_t row, size_t column, double value)
{
    char place[400];
    bool share = !m->bits && value > 0 && value < 1;
    hl_table_place(m->table, row, column, place, sizeof place);
    return hl_fail(m->ctx, HL_ERR_INVALID, "%s: %g is not %s%s", place, value,
                   m->bits ? "a byte of 8 pixels" : "a pixel: 0 or 1, or a gray value 0 to 255",
                   share ? "; if gray values are between 0 and 1, scale them to 0..255 and round" : "");
}

/* A row of the table as bytes or doubles. */
static hl_status take_row(hl_images *m, size_t row, const double *from, void *to)
{
    unsigned char *byte = to;
    if (m->real) {
        memcpy(to, from, m->dim * sizeof *from);
        return HL_OK;
    }
    for (size_t c = 0; c < m->columns; c++) {
        if (!(from[c] >= 0 && from[c] <= 255 && from[c] == floor(from[c])))
            return bad_pixel(m, row, c, from[c]);
        unsigned value = (unsigned)from[c];
        for (size_t k = 0; m->bits && k < 8 && 8 * c + k < m->dim; k++)
            byte[8 * c + k] = value >> (7 - k) & 1;
        if (!m->bits)
            byte[c] = (unsigned char)value;
        m->gray = m->gray || (!m->bits && value > 1);
    }
    return HL_OK;
}

/* Rows of the table by their numbers, or from `first` on. */
static hl_status take_rows(hl_images *m, size_t first, size_t count, const size_t *number, char *to, size_t step)
{
    hl_status status = HL_OK;
    for (size_t at = 0, n; at < count && status == HL_OK; at += n) {
        n = count - at < CHUNK ? count - at : CHUNK;
        status = number ? hl_table_gather(m->table, n, number + at, m->columns, m->column, m->chunk)
                        : hl_table_read_rows(m->table, first + at, n, m->chunk);
        for (size_t r = 0; r < n && status == HL_OK; r++)
            status =
                take_row(m, number ? number[at + r] : first + at + r, m->chunk + r * m->columns, to + (at + r) * step);
    }
    return status;
}

/* Look at all rows, or at this rank's, one after the other in the same place. */
static hl_status look_at_rows(hl_images *m, bool shared)
{
    size_t first = 0, end = m->rows;
    char *row = hl_calloc(m->ctx, 1, width_of(m));
    if (shared)
        hl_ranks_part(m->ctx, m->rows, &first, &end);
    hl_status status = row ? take_rows(m, first, end - first, NULL, row, 0) : HL_ERR_NOMEM;
    hl_free(m->ctx, row);
    return shared ? hl_ranks_agree(m->ctx, status) : status;
}

static hl_status take_names(hl_images *m)
{
    const char **names = hl_calloc(m->ctx, m->columns, sizeof *names);
    for (size_t c = 0; names && c < m->columns; c++)
        names[c] = hl_table_name(m->table, c);
    m->names = names ? hl_names_copy(m->ctx, m->columns, names) : NULL;
    hl_free(m->ctx, names);
    return m->names ? HL_OK : HL_ERR_NOMEM;
}

static hl_status read_table(hl_images *m, const char *path, const hl_images_options *o)
{
    size_t columns = m->columns = hl_table_columns(m->table), most = o->bits ? hl_size_mul(8, columns) : columns;
    m->rows = hl_table_rows(m->table);
    m->dropped = hl_table_dropped(m->table);
    hl_status status = set_shape(m, path, o->image, o->bits ? most - 7 : most, most);
    if (status != HL_OK)
        return status;
    m->chunk = hl_calloc(m->ctx, hl_size_mul(CHUNK, columns), sizeof *m->chunk);
    m->column = hl_calloc(m->ctx, columns, sizeof *m->column);
    if (!m->chunk || !m->column)
        return HL_ERR_NOMEM;
    for (size_t c = 0; c < columns; c++)
        m->column[c] = c;
    if (hl_table_named(m->table) && !o->bits && (status = take_names(m)) != HL_OK)
        return status;
    if (o->in_file)
        return look_at_rows(m, o->shared);
    status = take_memory(m);
    return status == HL_OK ? take_rows(m, 0, m->rows, NULL, m->real ? (char *)m->values : (char *)m->bytes, width_of(m))
                           : status;
}

/* ---- idx: big-endian 0, 0, 8 (bytes), 3 dimensions: images, height, width ---- */

static size_t big_endian(const unsigned char *at)
{
    return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3];
}

static hl_status read_idx_row(hl_images *m, size_t row, void *to)
{
    return hl_source_at(&m->idx, IDX_HEADER + row * m->dim, to, m->dim);
}

/* Rows stay in the file; they are read until one is seen to be gray. */
static hl_status open_idx(hl_images *m, const char *path)
{
    unsigned char *row = hl_calloc(m->ctx, 1, m->dim);
    hl_status status = row ? hl_source_open(m->ctx, path, &m->idx) : HL_ERR_NOMEM;
    for (size_t r = 0; r < m->rows && !m->gray && status == HL_OK; r++) {
        status = read_idx_row(m, r, row);
        for (size_t i = 0; i < m->dim && status == HL_OK; i++)
            m->gray = m->gray || row[i] > 1;
    }
    hl_free(m->ctx, row);
    return status;
}

static hl_status read_idx(hl_images *m, hl_file *file, const unsigned char *head, const hl_images_options *o)
{
    size_t shape[3] = { 1, big_endian(head + 8), big_endian(head + 12) };
    size_t pixels = hl_size_mul(shape[1], shape[2]);
    m->rows = big_endian(head + 4);
    if (m->rows == 0 || pixels == 0 || hl_size_mul(m->rows, pixels) != file->size - IDX_HEADER)
        return hl_fail(m->ctx, HL_ERR_FORMAT, "%s: %zu images of %zux%zu do not match the file size of %zu bytes",
                       hl_path_shown(file->path), m->rows, shape[1], shape[2], file->size);
    if (o->bits || o->real)
        return hl_fail(m->ctx, HL_ERR_INVALID, "%s: an idx file has gray values", hl_path_shown(file->path));
    hl_status status = set_shape(m, file->path, o->image[0] ? o->image : shape, pixels, pixels);
    if (status == HL_OK && o->in_file)
        return open_idx(m, file->path);
    if (status == HL_OK)
        status = take_memory(m);
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

static void forget_table(hl_images *m)
{
    hl_table_free(m->table);
    hl_free(m->ctx, m->chunk);
    hl_free(m->ctx, m->column);
    m->table = NULL;
    m->chunk = NULL;
    m->column = NULL;
}

/* Rows are gray if any rank has seen that. */
static hl_status share_gray(hl_images *m)
{
    double gray = m->gray;
    hl_status status = hl_ranks_most(m->ctx, &gray);
    m->gray = gray > 0;
    return status;
}

hl_status hl_images_open(hl_context *ctx, const char *path, const hl_images_options *options, hl_images **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!path || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_images_open: the path or the result is NULL");
    hl_images_options o = options ? *options : (hl_images_options){ 0 };
    *out = NULL;
    if (o.bits && o.real)
        return hl_fail(ctx, HL_ERR_INVALID, "packed bits cannot be combined with real numbers");
    hl_images *m = hl_calloc(ctx, 1, sizeof *m);
    if (!m)
        return HL_ERR_NOMEM;
    *m = (hl_images){ .ctx = ctx, .bits = o.bits != 0, .real = o.real != 0, .idx.fd = -1 };
    o.shared = o.shared && o.in_file;
    hl_status status = HL_OK;
    if (!try_idx(m, path, &o, &status)) {
        hl_table_options t = { .array = o.array, .drop_missing = o.drop_missing, .shared = o.shared };
        status = hl_table_open(ctx, path, &t, &m->table);
        if (status == HL_OK)
            status = read_table(m, path, &o);
        if (!o.in_file)
            forget_table(m);
    }
    if (status == HL_OK && o.shared)
        status = share_gray(m);
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
    forget_table(m);
    hl_source_close(&m->idx);
    hl_free(m->ctx, m->bytes);
    hl_free(m->ctx, m->values);
    hl_free(m->ctx, m->names);
    hl_free(m->ctx, m);
}

hl_vae_rows hl_images_rows(const hl_images *m)
{
    return m ? (hl_vae_rows){ .rows = m->rows, .bytes = m->bytes, .values = m->values, .gray = m->gray }
             : (hl_vae_rows){ 0 };
}

/* hl_vae_read_fn */
static hl_status read_images(size_t count, const size_t *row, void *to, void *user)
{
    hl_images *m = user;
    size_t width = width_of(m);
    hl_status status = HL_OK;
    if (m->table)
        return take_rows(m, 0, count, row, to, width);
    for (size_t r = 0; r < count && status == HL_OK; r++) {
        char *at = (char *)to + r * width;
        const char *held = m->real ? (const char *)m->values : (const char *)m->bytes;
        if (held)
            memcpy(at, held + row[r] * width, width);
        else
            status = read_idx_row(m, row[r], at);
    }
    return status;
}

hl_vae_source hl_images_source(hl_images *m)
{
    return m ? (hl_vae_source){ m->rows, read_images, m, m->real, m->gray } : (hl_vae_source){ 0 };
}

size_t hl_images_dim(const hl_images *m)
{
    return m ? m->dim : 0;
}

const char *const *hl_images_names(const hl_images *m)
{
    return m ? m->names : NULL;
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
