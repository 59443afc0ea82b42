/* image.c - pictures of pixels in a page: PNG files without compression, as base64 text in the page itself.
 *
 * A PNG file is a signature and chunks, each with its length, name, bytes and CRC; the pixels are one zlib stream, here of stored blocks of at most
 * 65535 bytes, so that nothing is allocated for it but the page. */
#include <string.h>
#include <zlib.h>

#include "report/page.h"

enum { BLOCK = 65535 };

/* Bytes that become base64, three at a time. */
typedef struct encoder {
    hl_page *page;
    unsigned char rest[3];
    size_t count;
    uint32_t crc;
} encoder;

static void put_four(encoder *e)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t three = (uint32_t)e->rest[0] << 16 | (uint32_t)e->rest[1] << 8 | e->rest[2];
    char four[5] = { letters[three >> 18 & 63], letters[three >> 12 & 63], letters[three >> 6 & 63],
                     letters[three & 63], '\0' };
    for (size_t i = e->count + 1; i < 4; i++)
        four[i] = '=';
    hl_page_put(e->page, four);
    memset(e->rest, 0, sizeof e->rest);
    e->count = 0;
}

static void put_bytes(encoder *e, const unsigned char *bytes, size_t count)
{
    e->crc = (uint32_t)crc32(e->crc, bytes, (uInt)count);
    for (size_t i = 0; i < count; i++) {
        e->rest[e->count++] = bytes[i];
        if (e->count == 3)
            put_four(e);
    }
}

static void put_word(encoder *e, uint32_t word)
{
    const unsigned char bytes[4] = { (unsigned char)(word >> 24), (unsigned char)(word >> 16),
                                     (unsigned char)(word >> 8), (unsigned char)word };
    put_bytes(e, bytes, 4);
}

static void open_chunk(encoder *e, const char *name, size_t length)
{
    put_word(e, (uint32_t)length);
    e->crc = (uint32_t)crc32(0, NULL, 0);
    put_bytes(e, (const unsigned char *)name, 4);
}

/* The scan lines, each after a byte 0, as stored blocks. */
static void put_pixels(encoder *e, size_t line, size_t height, const unsigned char *pixels)
{
    size_t size = (line + 1) * height, left = size, blocks = (size + BLOCK - 1) / BLOCK, room = 0;
    uint32_t sum = (uint32_t)adler32(0, NULL, 0);
    open_chunk(e, "IDAT", 2 + 5 * blocks + size + 4);
    put_bytes(e, (const unsigned char *)"\x78\x01", 2);
    for (size_t at = 0; at < size; at++) {
        if (!room) {
            room = left < BLOCK ? left : BLOCK;
            const unsigned char head[5] = { left <= BLOCK, (unsigned char)room, (unsigned char)(room >> 8),
                                            (unsigned char)~room, (unsigned char)(~room >> 8) };
            put_bytes(e, head, 5);
        }
        unsigned char byte = at % (line + 1) ? pixels[at / (line + 1) * line + at % (line + 1) - 1] : 0;
        put_bytes(e, &byte, 1);
        sum = (uint32_t)adler32(sum, &byte, 1);
        room--;
        left--;
    }
    put_word(e, sum);
    put_word(e, e->crc);
}

void hl_page_picture(hl_page *p, const char *title, size_t width, size_t height, size_t channels,
                     const unsigned char *pixels)
{
    encoder e = { .page = p };
    hl_page_put(p, "<figure><figcaption>");
    hl_page_text(p, title);
    hl_page_put(p, "</figcaption><img class=\"pixels\" alt=\"");
    hl_page_text(p, title);
    hl_page_add(p, "\" width=\"%zu\" height=\"%zu\" src=\"data:image/png;base64,", width, height);
    put_bytes(&e, (const unsigned char *)"\x89PNG\r\n\x1a\n", 8);
    open_chunk(&e, "IHDR", 13);
    put_word(&e, (uint32_t)width);
    put_word(&e, (uint32_t)height);
    const unsigned char kind[5] = { 8, channels == 3 ? 2 : 0, 0, 0, 0 };
    put_bytes(&e, kind, 5);
    put_word(&e, e.crc);
    put_pixels(&e, width * channels, height, pixels);
    open_chunk(&e, "IEND", 0);
    put_word(&e, e.crc);
    if (e.count)
        put_four(&e);
    hl_page_put(p, "\"></figure>\n");
}
