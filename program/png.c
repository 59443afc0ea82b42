/* png.c - grids of images as PNG files, by zlib alone: a header, one compressed block of rows, each after a filter byte of 0. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "png.h"

enum { GAP = 2, GAP_SHADE = 96, PIXELS = 2 }; /* a pixel of the image is PIXELS x PIXELS of the picture */

static void put_word(unsigned char *at, size_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (24 - 8 * i));
}

static int write_chunk(FILE *f, const char *type, const unsigned char *data, size_t size)
{
    unsigned char word[4];
    uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)type, 4);
    crc = size ? crc32(crc, data, (uInt)size) : crc;
    put_word(word, size);
    bool good =
        fwrite(word, 1, 4, f) == 4 && fwrite(type, 1, 4, f) == 4 && (size == 0 || fwrite(data, 1, size, f) == size);
    put_word(word, crc);
    return good && fwrite(word, 1, 4, f) == 4 ? 0 : EIO;
}

/* `samples` is 1 for gray and 3 for colour; rows already have their filter byte. */
static int write_png(FILE *f, size_t width, size_t height, size_t samples, const unsigned char *rows, size_t size)
{
    static const unsigned char signature[8] = { 137, 'P', 'N', 'G', 13, 10, 26, 10 };
    unsigned char head[13] = { 0 };
    uLongf packed = compressBound((uLong)size);
    unsigned char *data = malloc(packed);
    if (!data)
        return ENOMEM;
    put_word(head, width);
    put_word(head + 4, height);
    head[8] = 8; /* bits */
    head[9] = samples == 3 ? 2 : 0;
    int error = compress2(data, &packed, rows, (uLong)size, 9) == Z_OK ? 0 : ENOMEM;
    if (!error)
        error = fwrite(signature, 1, 8, f) == 8 ? 0 : EIO;
    if (!error)
        error = write_chunk(f, "IHDR", head, sizeof head);
    if (!error)
        error = write_chunk(f, "IDAT", data, packed);
    if (!error)
        error = write_chunk(f, "IEND", NULL, 0);
    free(data);
    return error;
}

/* Values of 0..1 as shades; three channels as colours, of others the first. */
static unsigned char shade(const cli_grid *g, size_t image, size_t channel, size_t y, size_t x)
{
    size_t area = g->shape[1] * g->shape[2], at = (image * g->shape[0] + channel) * area + y * g->shape[2] + x;
    double value = g->values[at] < 0 ? 0 : g->values[at] > 1 ? 1 : g->values[at];
    return (unsigned char)lround(255 * value);
}

static int draw(FILE *f, const cli_grid *g)
{
    size_t samples = g->shape[0] == 3 ? 3 : 1, lines = (g->count + g->columns - 1) / g->columns;
    size_t high = g->shape[1] * PIXELS + GAP, wide = g->shape[2] * PIXELS + GAP;
    size_t width = g->columns * wide + GAP, height = lines * high + GAP, stride = 1 + width * samples;
    unsigned char *rows = malloc(height * stride);
    if (!rows)
        return ENOMEM;
    memset(rows, GAP_SHADE, height * stride);
    for (size_t y = 0; y < height; y++)
        rows[y * stride] = 0;
    for (size_t i = 0; i < g->count; i++)
        for (size_t y = 0; y < high - GAP; y++)
            for (size_t x = 0; x < wide - GAP; x++)
                for (size_t c = 0; c < samples; c++)
                    rows[(i / g->columns * high + GAP + y) * stride + 1 + (i % g->columns * wide + GAP + x) * samples +
                         c] = shade(g, i, c, y / PIXELS, x / PIXELS);
    int error = write_png(f, width, height, samples, rows, height * stride);
    free(rows);
    return error;
}

int cli_write_grid(const char *path, const cli_grid *grid)
{
    cli_file file;
    int error = cli_file_open_path(&file, path);
    if (error)
        return error;
    error = draw(file.stream, grid);
    if (error)
        cli_file_drop(&file);
    else
        error = cli_file_keep(&file);
    return error;
}
