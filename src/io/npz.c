/* npz.c - archives of npy arrays, as numpy.savez and savez_compressed write them.
 *
 * The format is zip, of which this needs the directory at the end, stored members and deflated members; zlib inflates. Nothing
 * in the file is believed before it is checked: members must lie inside the file, a stated size must be one that deflate can
 * reach, equal what the array's shape needs and what comes out, and the checksum must hold. So memory is bounded by the
 * largest factor of deflate, 1032, times the file's size. Stored arrays stay in the file. */
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "io/table.h"

enum {
    END_BYTES = 22,       /* the record at the end */
    MAX_COMMENT = 0xFFFF, /* after it */
    LOCATOR_BYTES = 20,   /* of zip64, before it */
    END64_BYTES = 56,     /* where that leads to */
    ENTRY_BYTES = 46,     /* of the directory, before name, extra fields and comment */
    LOCAL_BYTES = 30,     /* before a member */
    MAX_MEMBERS = 100000,
    DEFLATE_FACTOR = 1032, /* no input grows more */
    CHUNK = 1 << 16
};

typedef struct member {
    char name[HL_TABLE_SHOWN]; /* without .npy; cut if it is longer */
    int method;                /* 0 stored, 8 deflated */
    uint32_t crc;
    size_t packed, size, offset; /* bytes in the file, bytes of the npy file, where the data begin */
    hl_array array;
    size_t header_bytes; /* of the npy file */
    bool chosen;
} member;

typedef struct npz {
    hl_table *t;
    char *directory;
    size_t directory_bytes, entries;
    member *members;
    size_t count, capacity;
    char *head; /* HL_NPY_HEADER bytes */
} npz;

static size_t little(const char *p, int bytes)
{
    size_t value = 0;

    for (int i = bytes - 1; i >= 0; i--)
        value = value << 8 | (unsigned char)p[i];
    return value;
}

static hl_status malformed(const npz *z, const char *why)
{
    return hl_table_fault(z->t, HL_ERR_FORMAT, "the zip archive is malformed: %s", why);
}

static hl_status member_fault(const npz *z, const member *m, hl_status status, const char *why)
{
    return hl_table_fault(z->t, status, "array '%s': %s", m->name, why);
}

/* ---- the directory ---- */

/* Find the last record: its signature, and a comment that ends with the file. */
static hl_status find_end_record(const npz *z, char record[END_BYTES], size_t *place)
{
    size_t size = z->t->source.size, tail = size < END_BYTES + MAX_COMMENT ? size : END_BYTES + MAX_COMMENT;
    char *bytes = hl_alloc(z->t->ctx, tail);
    hl_status status = bytes ? hl_source_at(&z->t->source, size - tail, bytes, tail) : HL_ERR_NOMEM;
    bool found = false;

    for (size_t i = tail; !status && !found && i-- > 0;) {
        if (tail - i < END_BYTES || memcmp(bytes + i, "PK\5\6", 4) != 0 ||
            little(bytes + i + 20, 2) != tail - i - END_BYTES)
            continue;
        memcpy(record, bytes + i, END_BYTES);
        *place = size - tail + i;
        found = true;
    }
    hl_free(z->t->ctx, bytes);
    if (!status && !found)
        return malformed(z, "no central directory; the file may be truncated");
    return status;
}

/* Where the directory is: in the last record, or, if its fields are too small for that, in that of zip64. */
static hl_status find_directory(npz *z, size_t *offset)
{
    char record[END_BYTES], locator[LOCATOR_BYTES], record64[END64_BYTES];
    hl_source *source = &z->t->source;
    size_t place = 0, place64;
    hl_status status = find_end_record(z, record, &place);

    if (status)
        return status;
    z->entries = little(record + 10, 2);
    z->directory_bytes = little(record + 12, 4);
    *offset = little(record + 16, 4);
    if (place >= LOCATOR_BYTES) {
        status = hl_source_at(source, place - LOCATOR_BYTES, locator, sizeof locator);
        if (status)
            return status;
        place64 = little(locator + 8, 8);
        if (memcmp(locator, "PK\6\7", 4) == 0 && place64 < place && place - place64 >= END64_BYTES) {
            status = hl_source_at(source, place64, record64, sizeof record64);
            if (status)
                return status;
            if (memcmp(record64, "PK\6\6", 4) != 0)
                return malformed(z, "the zip64 record is not at its position");
            z->entries = little(record64 + 32, 8);
            z->directory_bytes = little(record64 + 40, 8);
            *offset = little(record64 + 48, 8);
        }
    }
    if (*offset > place || z->directory_bytes > place - *offset)
        return malformed(z, "the central directory extends beyond the end of the file");
    if (z->entries > MAX_MEMBERS || z->entries > z->directory_bytes / ENTRY_BYTES)
        return malformed(z, "wrong number of members, or too many");
    return HL_OK;
}

/* Sizes and offset that do not fit 32 bits are in an extra field, those of them that are needed, in this order. */
static hl_status take_zip64(const npz *z, const char *extra, size_t bytes, member *m)
{
    size_t *const fields[] = { &m->size, &m->packed, &m->offset };

    while (bytes >= 4) {
        size_t id = little(extra, 2), length = little(extra + 2, 2);
        const char *p = extra + 4;

        if (length > bytes - 4)
            return malformed(z, "an extra field is truncated");
        for (int i = 0; id == 1 && i < 3; i++) {
            if (*fields[i] != 0xFFFFFFFF)
                continue;
            if ((size_t)(p - extra) - 4 + 8 > length)
                return malformed(z, "a zip64 field is truncated");
            *fields[i] = little(p, 8);
            p += 8;
        }
        extra += 4 + length;
        bytes -= 4 + length;
    }
    return HL_OK;
}

/* The member's data begin behind its own header, whose name and extra field have lengths of their own. */
static hl_status find_data(const npz *z, member *m)
{
    char local[LOCAL_BYTES];
    size_t size = z->t->source.size, skip;
    hl_status status;

    if (m->offset > size || size - m->offset < LOCAL_BYTES)
        return member_fault(z, m, HL_ERR_FORMAT, "the member starts beyond the end of the file");
    status = hl_source_at(&z->t->source, m->offset, local, sizeof local);
    if (status)
        return status;
    if (memcmp(local, "PK\3\4", 4) != 0)
        return member_fault(z, m, HL_ERR_FORMAT, "the member is not at the position given in the central directory");
    skip = LOCAL_BYTES + little(local + 26, 2) + little(local + 28, 2);
    if (skip > size - m->offset || m->packed > size - m->offset - skip)
        return member_fault(z, m, HL_ERR_FORMAT, "the member extends beyond the end of the file");
    m->offset += skip;
    return HL_OK;
}

static hl_status check_member(const npz *z, const member *m, size_t flags)
{
    if (flags & 1)
        return member_fault(z, m, HL_ERR_UNSUPPORTED, "the member is encrypted");
    if (m->method != 0 && m->method != 8)
        return member_fault(z, m, HL_ERR_UNSUPPORTED, "the compression method is neither 'stored' nor 'deflated'");
    if (m->method == 0 && m->packed != m->size)
        return member_fault(z, m, HL_ERR_FORMAT, "the member is stored, but its two sizes differ");
    if (m->packed < SIZE_MAX / DEFLATE_FACTOR / 2 && m->size > m->packed * DEFLATE_FACTOR + CHUNK)
        return member_fault(z, m, HL_ERR_FORMAT, "the stated size exceeds what the compressed data can contain");
    return HL_OK;
}

/* One entry of the directory; members that are not npy files are passed over. */
static hl_status take_entry(npz *z, const char *entry, const char *name, size_t name_bytes, size_t extra_bytes)
{
    member m = { .method = (int)little(entry + 10, 2), .crc = (uint32_t)little(entry + 16, 4) };
    hl_status status;

    if (name_bytes < 4 || memcmp(name + name_bytes - 4, ".npy", 4) != 0)
        return HL_OK;
    m.packed = little(entry + 20, 4);
    m.size = little(entry + 24, 4);
    m.offset = little(entry + 42, 4);
    hl_text_shown(m.name, name, name_bytes - 4);
    status = take_zip64(z, name + name_bytes, extra_bytes, &m);
    if (!status)
        status = find_data(z, &m);
    if (!status)
        status = check_member(z, &m, little(entry + 8, 2));
    if (status)
        return status;
    if (hl_grow(z->t->ctx, (void **)&z->members, &z->capacity, z->count + 1, sizeof *z->members))
        return HL_ERR_NOMEM;
    z->members[z->count++] = m;
    return HL_OK;
}

static hl_status read_directory(npz *z)
{
    size_t offset, at = 0;
    hl_status status = find_directory(z, &offset);

    if (status)
        return status;
    z->directory = hl_alloc(z->t->ctx, z->directory_bytes);
    if (!z->directory)
        return HL_ERR_NOMEM;
    status = hl_source_at(&z->t->source, offset, z->directory, z->directory_bytes);
    for (size_t i = 0; !status && i < z->entries; i++) {
        const char *entry = z->directory + at;
        size_t name, extra, comment;

        if (z->directory_bytes - at < ENTRY_BYTES || memcmp(entry, "PK\1\2", 4) != 0)
            return malformed(z, "invalid entry in the central directory");
        name = little(entry + 28, 2);
        extra = little(entry + 30, 2);
        comment = little(entry + 32, 2);
        if (z->directory_bytes - at - ENTRY_BYTES < name + extra + comment)
            return malformed(z, "truncated entry in the central directory");
        status = take_entry(z, entry, entry + ENTRY_BYTES, name, extra);
        at += ENTRY_BYTES + name + extra + comment;
    }
    if (!status && z->count == 0)
        return hl_table_fault(z->t, HL_ERR_FORMAT, "a zip archive without npy arrays");
    return status;
}

/* ---- inflating ---- */

static void *zlib_alloc(void *ctx, unsigned count, unsigned size)
{
    return hl_alloc(ctx, hl_size_mul(count, size));
}

static void zlib_free(void *ctx, void *pointer)
{
    hl_free(ctx, pointer);
}

typedef struct inflation {
    const npz *z;
    const member *m;
    z_stream stream;
    char *packed; /* CHUNK bytes */
    size_t read;  /* of the member */
    bool ended;
} inflation;

/* Give the stream its next input, if it has none left. */
static hl_status feed(inflation *f)
{
    size_t left = f->m->packed - f->read, bytes = left < CHUNK ? left : CHUNK;

    if (f->stream.avail_in || !bytes)
        return HL_OK;
    f->stream.next_in = (Bytef *)f->packed;
    f->stream.avail_in = (uInt)bytes;
    f->read += bytes;
    return hl_source_at(&f->z->t->source, f->m->offset + f->read - bytes, f->packed, bytes);
}

/* Inflate the next bytes, *got of them; fewer than asked for only at the end of the stream. */
static hl_status inflate_next(inflation *f, char *out, size_t bytes, size_t *got)
{
    for (*got = 0; *got < bytes && !f->ended;) {
        size_t room = bytes - *got < 1 << 30 ? bytes - *got : 1 << 30;
        hl_status status = feed(f);
        int result;

        if (status)
            return status;
        f->stream.next_out = (Bytef *)out + *got;
        f->stream.avail_out = (uInt)room;
        result = inflate(&f->stream, Z_NO_FLUSH);
        *got += room - f->stream.avail_out;
        f->ended = result == Z_STREAM_END;
        if (result == Z_MEM_ERROR)
            return HL_ERR_NOMEM; /* hl_alloc has said so */
        if (result != Z_OK && result != Z_STREAM_END)
            return member_fault(f->z, f->m, HL_ERR_FORMAT, "the compressed data are damaged");
    }
    return HL_OK;
}

static hl_status inflate_begin(const npz *z, const member *m, inflation *f)
{
    *f = (inflation){ .z = z, .m = m };
    f->packed = hl_alloc(z->t->ctx, CHUNK);
    if (!f->packed)
        return HL_ERR_NOMEM;
    f->stream.zalloc = zlib_alloc;
    f->stream.zfree = zlib_free;
    f->stream.opaque = z->t->ctx;
    if (inflateInit2(&f->stream, -MAX_WBITS) == Z_OK)
        return HL_OK;
    hl_free(z->t->ctx, f->packed);
    return hl_fail(z->t->ctx, HL_ERR_NOMEM, "out of memory to inflate an array");
}

static void inflate_done(inflation *f)
{
    inflateEnd(&f->stream);
    hl_free(f->z->t->ctx, f->packed);
}

/* The first bytes of a member, at most HL_NPY_HEADER, to z->head. */
static hl_status read_head(npz *z, const member *m, size_t *got)
{
    inflation f;
    hl_status status;

    *got = m->size < HL_NPY_HEADER ? m->size : HL_NPY_HEADER;
    if (m->method == 0)
        return hl_source_at(&z->t->source, m->offset, z->head, *got);
    status = inflate_begin(z, m, &f);
    if (status)
        return status;
    status = inflate_next(&f, z->head, *got, got);
    inflate_done(&f);
    return status;
}

/* ---- choosing ---- */

static hl_status parse_member(npz *z, member *m)
{
    char what[HL_TABLE_SHOWN + 16];
    size_t got;
    hl_status status = read_head(z, m, &got);

    if (status)
        return status;
    snprintf(what, sizeof what, "array '%s': ", m->name);
    status = hl_npy_parse(z->t, what, z->head, got, &m->array, &m->header_bytes);
    if (!status && hl_array_bytes(&m->array) != m->size - m->header_bytes)
        return member_fault(z, m, HL_ERR_FORMAT, "its shape does not fit its size");
    return status;
}

/* All names, as many as there is room for. */
static void list_members(const npz *z, char *out, size_t size)
{
    hl_text list = hl_text_start(out, size);

    for (size_t i = 0; i < z->count && !list.full; i++)
        hl_text_list(&list, z->members[i].name);
}

static hl_status choose_named(npz *z, const char *names)
{
    char list[192], text[HL_TABLE_SHOWN];

    for (const char *p = names;; p++) {
        size_t bytes = strcspn(p, ","), i = 0;

        hl_text_shown(text, p, bytes);
        while (i < z->count && strcmp(z->members[i].name, text) != 0)
            i++;
        if (i == z->count) {
            list_members(z, list, sizeof list);
            return hl_table_fault(z->t, HL_ERR_INVALID, "there is no array '%s'; the archive has: %s", text, list);
        }
        if (z->members[i].chosen)
            return member_fault(z, &z->members[i], HL_ERR_INVALID, "the array is listed twice");
        z->members[i].chosen = true;
        p += bytes;
        if (!*p)
            return HL_OK;
    }
}

/* Without a name: the only array, or the only table among vectors, or all if all are vectors. Arrays that are none of these,
 * text or single numbers, do not count. */
static hl_status choose_default(npz *z)
{
    size_t tables = 0, vectors = 0;
    hl_status status = HL_OK;
    char list[192] = "";

    for (size_t i = 0; i < z->count; i++) {
        member *m = &z->members[i];

        status = parse_member(z, m);
        if (status == HL_ERR_NOMEM || status == HL_ERR_IO || (status && z->count == 1))
            return status;
        m->chosen = !status;
        tables += m->chosen && m->array.rank > 1;
        vectors += m->chosen && m->array.rank == 1;
    }
    list_members(z, list, sizeof list);
    if (tables > 1)
        return hl_table_fault(z->t, HL_ERR_INVALID, "the archive has several arrays (%s); select one as FILE.npz:NAME",
                              list);
    if (tables + vectors == 0)
        return status; /* of the last */
    for (size_t i = 0; tables && i < z->count; i++)
        z->members[i].chosen &= z->members[i].array.rank > 1;
    return HL_OK;
}

static hl_status choose(npz *z)
{
    const char *names = z->t->options.array;
    hl_status status = HL_OK;

    if (!names || !*names)
        return choose_default(z);
    if (strcmp(names, "*") != 0)
        status = choose_named(z, names);
    for (size_t i = 0; !status && i < z->count; i++) {
        z->members[i].chosen |= strcmp(names, "*") == 0;
        if (z->members[i].chosen)
            status = parse_member(z, &z->members[i]);
    }
    return status;
}

/* ---- loading ---- */

/* Inflate all of a member and keep its values. */
static hl_status load_deflated(const npz *z, member *m)
{
    char *data = hl_alloc(z->t->ctx, m->size), more;
    size_t got = 0, extra = 0;
    inflation f;
    hl_status status = data ? inflate_begin(z, m, &f) : HL_ERR_NOMEM;

    if (!status) {
        status = inflate_next(&f, data, m->size, &got);
        if (!status)
            status = inflate_next(&f, &more, 1, &extra); /* takes in the end of the stream, and no byte more */
        if (!status && (got != m->size || extra))
            status = member_fault(z, m, HL_ERR_FORMAT, "the member does not have the size stated in the archive");
        if (!status && crc32_z(0, (const Bytef *)data, got) != m->crc)
            status = member_fault(z, m, HL_ERR_FORMAT, "wrong checksum: the file is damaged");
        inflate_done(&f);
    }
    if (status) {
        hl_free(z->t->ctx, data);
        return status;
    }
    memmove(data, data + m->header_bytes, m->size - m->header_bytes);
    m->array.memory = data;
    return HL_OK;
}

static hl_status check_stored(npz *z, member *m)
{
    uLong crc = 0;
    hl_status status = HL_OK;

    for (size_t done = 0, n; !status && done < m->size; done += n) {
        n = m->size - done < HL_NPY_HEADER ? m->size - done : HL_NPY_HEADER;
        status = hl_source_at(&z->t->source, m->offset + done, z->head, n);
        crc = crc32_z(crc, (const Bytef *)z->head, n);
    }
    if (!status && crc != m->crc)
        return member_fault(z, m, HL_ERR_FORMAT, "wrong checksum: the file is damaged");
    m->array.offset = m->offset + m->header_bytes;
    return status;
}

/* Add the chosen arrays to the table. Members may overlap in the file only by fraud, and would add up to any size. */
static hl_status load_chosen(npz *z)
{
    const member *first = NULL;
    size_t count = 0, packed = 0;
    char why[160];

    for (size_t i = 0; i < z->count; i++) {
        const member *m = &z->members[i];

        if (!m->chosen)
            continue;
        count++;
        first = first ? first : m;
        packed = hl_size_add(packed, m->packed);
        if (m->array.rows != first->array.rows) {
            snprintf(why, sizeof why, "the array has %zu rows, but array '%s' has %zu; select one as FILE.npz:NAME",
                     m->array.rows, first->name, first->array.rows);
            return member_fault(z, m, HL_ERR_FORMAT, why);
        }
    }
    if (packed > z->t->source.size)
        return malformed(z, "the arrays overlap");
    for (size_t i = 0; i < z->count; i++) {
        member *m = &z->members[i];
        hl_status status = HL_OK;

        if (m->chosen)
            status = m->method ? load_deflated(z, m) : check_stored(z, m);
        if (m->chosen && !status)
            status = hl_table_add_array(z->t, &m->array, count > 1 ? m->name : NULL);
        if (status)
            return status;
    }
    return HL_OK;
}

hl_status hl_table_read_npz(hl_table *t)
{
    npz z = { .t = t };
    hl_status status = hl_source_load(&t->source);

    if (!status) {
        z.head = hl_alloc(t->ctx, HL_NPY_HEADER);
        status = z.head ? read_directory(&z) : HL_ERR_NOMEM;
    }
    if (!status)
        status = choose(&z);
    if (!status)
        status = load_chosen(&z);
    hl_free(t->ctx, z.head);
    hl_free(t->ctx, z.directory);
    hl_free(t->ctx, z.members);
    return status;
}
