/* rows.c - rows of data as doubles. What is random about a row is keyed by its contents, so that it does not
 * depend on where the row stands; in evaluations also by how many equal rows stand before it, so that equal rows have samples of
 * their own. */
#include <math.h>

#include "vae/rows.h"

uint64_t hl_vae_row_key(const hl_vae *v, const hl_vae_rows *rows, size_t row)
{
    size_t bytes = v->dim * (rows->bytes ? 1 : sizeof *rows->values);
    const unsigned char *at =
        rows->bytes ? rows->bytes + row * v->dim : (const unsigned char *)(rows->values + row * v->dim);
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

uint64_t hl_vae_row_hash(const hl_vae *v, const hl_vae_rows *rows, size_t row)
{
    return hl_random_bits(hl_vae_row_key(v, rows, row), 0, 0);
}

hl_status hl_vae_row_keys(const hl_vae *v, const hl_vae_rows *rows, uint64_t *key)
{
    typedef struct seen {
        uint64_t hash, count;
    } seen;
    size_t room = 2;
    while (room / 2 < rows->rows && room <= SIZE_MAX / 4)
        room *= 2;
    seen *table = hl_calloc(v->ctx, room, sizeof *table); /* at most half full */
    if (!table)
        return HL_ERR_NOMEM;
    for (size_t i = 0; i < rows->rows; i++) {
        uint64_t hash = hl_vae_row_key(v, rows, i);
        size_t at = (size_t)hash & (room - 1);
        while (table[at].count && table[at].hash != hash)
            at = (at + 1) & (room - 1);
        table[at].hash = hash;
        key[i] = table[at].count ? hl_random_bits(hash, table[at].count, 0) : hash;
        table[at].count++;
    }
    hl_free(v->ctx, table);
    return HL_OK;
}

static hl_status bad_value(const hl_vae *v, size_t row, size_t column, double value, const char *what)
{
    return hl_fail(v->ctx, HL_ERR_INVALID, "row %zu, column %zu is %g: %s", row + 1, column + 1, value, what);
}

hl_status hl_vae_check_part(const hl_vae *v, const hl_vae_rows *rows, size_t first)
{
    size_t count = hl_size_mul(rows->rows, v->dim);
    for (size_t i = 0; i < count; i++) {
        double value = rows->bytes ? rows->bytes[i] : rows->values[i];
        if (!isfinite(value))
            return bad_value(v, first + i / v->dim, i % v->dim, value, "values must be finite");
        if (!v->gaussian && !rows->gray && value != 0 && value != 1)
            return bad_value(v, first + i / v->dim, i % v->dim, value,
                             "values must be 0 or 1 for the Bernoulli likelihood");
    }
    return HL_OK;
}

hl_status hl_vae_check_kind(const hl_vae *v, const hl_vae_rows *rows)
{
    if (!rows || rows->rows == 0 || !rows->bytes == !rows->values)
        return hl_fail(v->ctx, HL_ERR_INVALID, "no rows, or not exactly one of bytes and values");
    if (rows->gray && (!rows->bytes || v->gaussian))
        return hl_fail(v->ctx, HL_ERR_INVALID, "gray values are bytes, for the Bernoulli likelihood");
    return HL_OK;
}

hl_status hl_vae_check_rows(const hl_vae *v, const hl_vae_rows *rows)
{
    hl_status status = hl_vae_check_kind(v, rows);
    return status == HL_OK ? hl_vae_check_part(v, rows, 0) : status;
}

void hl_vae_fetch(const hl_vae *v, const hl_vae_rows *rows, uint64_t key, size_t first, size_t count,
                  const size_t *index, double *to)
{
    size_t at = 0;
    for (size_t r = 0; r < count; r++) {
        size_t row = index ? index[first + r] : first + r, base = row * v->dim;
        uint64_t stream = rows->gray ? hl_vae_row_key(v, rows, row) : 0;
        for (size_t j = 0; j < v->dim; j++, at++) {
            double value = rows->bytes ? rows->bytes[base + j] : rows->values[base + j];
            if (rows->gray)
                value = value >= 255 || (value > 0 && hl_random_uniform(key, stream, j) < value / 255);
            to[at] = v->scale ? (value - v->shift[j]) / v->scale[j] : value;
        }
    }
}
