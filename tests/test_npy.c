/* test_npy.c - npy and npz, written here byte by byte: every type and order, every lie, damaged files. */
#include "table_support.h"

#include <zlib.h>

/* ---- npy ---- */

/* A npy file of version `version` with this header text and these values. Returns its size. */
static size_t make_npy(char *out, int version, const char *header, const void *values, size_t bytes)
{
    size_t length = strlen(header), prefix = version == 1 ? 10 : 12;

    memcpy(out, "\x93NUMPY", 6);
    out[6] = (char)version;
    out[7] = 0;
    out[8] = (char)(length & 255);
    out[9] = (char)(length >> 8);
    out[10] = out[11] = 0;
    memcpy(out + prefix, header, length);
    memcpy(out + prefix + length, values, bytes);
    return prefix + length + bytes;
}

static void put_npy(const char *path, int version, const char *header, const void *values, size_t bytes)
{
    char file[2000];

    put_file(path, file, make_npy(file, version, header, values, bytes));
}

static void check_values(hl_context *ctx, const char *path, size_t rows, size_t columns, const double *expected)
{
    double values[64];
    hl_table *t;

    CHECK_OK(ctx, hl_table_open(ctx, path, NULL, &t));
    assert_int_equal(hl_table_rows(t), rows);
    assert_int_equal(hl_table_columns(t), columns);
    CHECK_OK(ctx, hl_table_read_rows(t, 0, rows, values));
    for (size_t i = 0; i < rows * columns; i++)
        if (memcmp(&values[i], &expected[i], sizeof *values) != 0)
            fail_msg("%s: value %zu is %g, not %g", path, i, values[i], expected[i]);
    for (size_t i = 0; i < rows; i++) /* one by one */
        for (size_t j = 0; j < columns; j++) {
            CHECK_OK(ctx, hl_table_read_columns(t, i, 1, 1, &j, values));
            assert_true(values[0] == expected[i * columns + j]);
        }
    hl_table_free(t);
}

/* The bytes of each type as NumPy writes them. */
static void test_types(void **state)
{
    static const struct {
        const char *descr, *bytes;
        size_t size;
        double values[3];
    } cases[] = {
        { "<f8",
          "\0\0\0\0\0\0\xF8\x3F"
          "\0\0\0\0\0\0\x00\xC0"
          "\x9A\x99\x99\x99\x99\x99\xB9\x3F",
          8,
          { 1.5, -2, 0.1 } },
        { ">f8",
          "\x3F\xF8\0\0\0\0\0\0"
          "\xC0\0\0\0\0\0\0\0"
          "\x3F\xB9\x99\x99\x99\x99\x99\x9A",
          8,
          { 1.5, -2, 0.1 } },
        { "<f4",
          "\0\0\xC0\x3F"
          "\0\0\0\xC0"
          "\0\0\x80\x4B",
          4,
          { 1.5, -2, 16777216 } },
        { ">f4",
          "\x3F\xC0\0\0"
          "\xC0\0\0\0"
          "\x4B\x80\0\0",
          4,
          { 1.5, -2, 16777216 } },
        { "<f2",
          "\x00\x3E"
          "\x00\xC0"
          "\x01\x80",
          2,
          { 1.5, -2, -0x1p-24 } },
        { ">f2",
          "\x3E\x00"
          "\x7B\xFF"
          "\x03\xFF",
          2,
          { 1.5, 65504, 1023 * 0x1p-24 } },
        { "<i8",
          "\1\0\0\0\0\0\0\0"
          "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
          "\0\0\0\0\0\0\0\x80",
          8,
          { 1, -2, -0x1p63 } },
        { "<u8",
          "\1\0\0\0\0\0\0\0"
          "\0\0\0\0\0\0\0\x80"
          "\0\1\0\0\0\0\0\0",
          8,
          { 1, 0x1p63, 256 } },
        { ">i4",
          "\0\0\0\1"
          "\xFF\xFF\xFF\xFE"
          "\x80\0\0\0",
          4,
          { 1, -2, -0x1p31 } },
        { "<u4",
          "\1\0\0\0"
          "\xFF\xFF\xFF\xFF"
          "\0\0\0\x80",
          4,
          { 1, 4294967295, 0x1p31 } },
        { "<i2",
          "\1\0"
          "\xFE\xFF"
          "\0\x80",
          2,
          { 1, -2, -32768 } },
        { ">u2",
          "\0\1"
          "\xFF\xFE"
          "\x80\0",
          2,
          { 1, 65534, 32768 } },
        { "|i1", "\1\xFE\x80", 1, { 1, -2, -128 } },
        { "|u1", "\1\xFE\x80", 1, { 1, 254, 128 } },
        { "|b1", "\0\1\1", 1, { 0, 1, 1 } },
    };
    hl_context *ctx = test_context(NULL, 1);
    char header[200];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sprintf(header, "{'descr': '%s', 'fortran_order': False, 'shape': (3,), }   \n", cases[i].descr);
        put_npy("a.npy", 1 + (int)(i % 3), header, cases[i].bytes, 3 * cases[i].size);
        check_values(ctx, "a.npy", 3, 1, cases[i].values);
    }
    hl_context_free(ctx);
}

static const double six[] = { 1, 2, 3, 4, 5, 6 };

static void test_shapes(void **state)
{
    static const double transposed[] = { 1, 3, 5, 2, 4, 6 };
    static const struct {
        const char *header;
        size_t rows, columns;
        const double *values;
    } cases[] = {
        { "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n", 2, 3, six },
        { "{'descr':\"<f8\",'shape':(3L,2L),'fortran_order':False}", 3, 2, six },
        { "{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }\n", 2, 3, transposed },
        { "{'descr': '<f8', 'fortran_order': True, 'shape': (6,), }\n", 6, 1, six },
        { "{'descr': '=f8', 'fortran_order': False, 'shape': (3, 1, 2,)}\n", 3, 2, six },
    };
    hl_context *ctx = test_context(NULL, 1);
    hl_table *t;
    char place[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        put_npy("a.npy", 1, cases[i].header, six, sizeof six);
        check_values(ctx, "a.npy", cases[i].rows, cases[i].columns, cases[i].values);
    }
    CHECK_OK(ctx, hl_table_open(ctx, "a.npy", &(hl_table_options){ .columns = "x2" }, &t));
    assert_int_equal(hl_table_columns(t), 1);
    assert_false(hl_table_named(t));
    assert_int_equal(hl_table_line(t, 0), 0);
    hl_table_place(t, 1, 0, place, sizeof place);
    assert_string_equal(place, "a.npy: row 2, column 'x2'");
    CHECK_STATUS(ctx, hl_table_read_rows(t, 2, 2, NULL), HL_ERR_INVALID);
    check_message(ctx, "a.npy: rows 2 to 4 were requested, but there are only 3");
    CHECK_STATUS(ctx, hl_table_read_columns(t, 0, 1, 1, (size_t[]){ 1 }, NULL), HL_ERR_INVALID);
    hl_table_free(t);
    hl_context_free(ctx);
}

#define H(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}"

static void test_malformed(void **state)
{
    static const struct {
        const char *header, *fragment;
    } cases[] = {
        { "", "the npy header is malformed: not a dictionary" },
        { "{", "a key is missing" },
        { "{}", "descr, fortran_order or shape is missing" },
        { "{'descr': '<f8', 'shape': (6,)}", "descr, fortran_order or shape is missing" },
        { "{'descr': '<f8', 'shape': (6,), 'other': 1}", "unknown key" },
        { "{'descr' '<f8'}", "a key is missing" },
        { "{'descr': '<f8' 'shape': (6,)}", "no closing brace" },
        { H("'<f8'", "False", "(6,)") " x", "unexpected text after the dictionary" },
        { H("'<f8'", "false", "(6,)"), "fortran_order is neither True nor False" },
        { H("'<f8", "False", "(6,)"), "no closing brace" },
        { H("8", "False", "(6,)"), "descr is not a short text" },
        { H("'<f8'", "False", "6"), "shape is not a tuple" },
        { H("'<f8'", "False", "(6"), "shape has no closing parenthesis" },
        { H("'<f8'", "False", "(-6,)"), "shape contains a value that is not an integer" },
        { H("'<f8'", "False", "(6,,)"), "shape contains a value that is not an integer" },
        { H("'<f8'", "False", "()"), "the array is a single number (shape ()), not a table" },
        { H("'<f8'", "False", "(0,)"), "the table has no rows" },
        { H("'<f8'", "False", "(0, 3)"), "6 bytes follow the array" },
        { H("'<f8'", "False", "(6, 0)"), "the array has no columns" },
        { H("'<f8'", "False", "(7,)"),
          "7 rows of 1 columns need 56 bytes, but the file has 48; the file may be truncated" },
        { H("'<f8'", "False", "(5,)"), "8 bytes follow the array" },
        { H("'<f8'", "False", "(4294967296, 4294967296)"), "the shape is too large" },
        { H("'<f8'", "False", "(0, 4294967296, 4294967296)"), "the shape is too large" },
        { H("'<f8'", "False", "(99999999999999999999999,)"), "the shape is too large" },
        { H("'<f8'", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)"),
          "more than 32 dimensions" },
        { H("'<f8'", "True", "(1, 2, 3)"), "Fortran order with 3 dimensions" },
        { H("'<c8'", "False", "(6,)"), "values of type '<c8' are not supported; save float32" },
        { H("'|O'", "False", "(6,)"), "values of type '|O' are not supported" },
        { H("'<U3'", "False", "(6,)"), "are not supported" },
        { H("''", "False", "(6,)"), "values of type '' are not supported" },
        { H("'<f16'", "False", "(6,)"), "are not supported" },
        { H("'<f3'", "False", "(6,)"), "are not supported" },
        { H("[('a', '<f8')]", "False", "(6,)"), "the array has records" },
    };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_table *t;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t bytes = strstr(cases[i].header, "(0,)") ? 0 : strstr(cases[i].header, "(0, 3)") ? 6 : sizeof six;

        put_npy("a.npy", 1, cases[i].header, six, bytes);
        if (hl_table_open(ctx, "a.npy", NULL, &t) >= 0)
            fail_msg("%s: accepted", cases[i].header);
        assert_null(t);
        check_message(ctx, "a.npy: ");
        check_message(ctx, cases[i].fragment);
    }
    put_file("a.npy", "\x93NUMPY\4\0\1\0 ", 11);
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npy", NULL, &t), HL_ERR_UNSUPPORTED);
    check_message(ctx, "a.npy: unknown version 4 of the npy format");
    put_file("a.npy", "\x93NUMPY\2\0\xFF\xFF\xFF\xFF ", 13);
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npy", NULL, &t), HL_ERR_FORMAT);
    check_message(ctx, "the npy header is 4294967295 bytes long");
    put_file("a.npy", "\x93NUMPY\1\0\x40\0{'descr': ", 20);
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npy", NULL, &t), HL_ERR_FORMAT);
    check_message(ctx, "a.npy: the npy header is truncated");
    test_context_free(ctx, &allocator);
}

static void test_not_finite(void **state)
{
    static const double values[] = { 1, 2, NAN, 4, 5, 6, 7, -INFINITY, INFINITY, NAN, 11, 12 };
    static const double kept[] = { 1, 2, 5, 6, 11, 12 };
    static const size_t rows[] = { 1, 3, 6 };
    hl_context *ctx = test_context(NULL, 1);
    hl_table_options dropping = { .drop_missing = 1 };
    double out[6];
    char place[64], expected[64];
    hl_table *t;

    (void)state;
    put_npy("a.npy", 1, H("'<f8'", "False", "(6, 2)"), values, sizeof values);
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npy", NULL, &t), HL_ERR_NOT_FINITE);
    check_message(ctx, "a.npy: row 2, column 'x1': nan is not a finite number; correct it, or skip");
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npy", &(hl_table_options){ .columns = "2" }, &t), HL_ERR_NOT_FINITE);
    check_message(ctx, "a.npy: row 4, column 'x2': an infinite value is not");
    CHECK_OK(ctx, hl_table_open(ctx, "a.npy", &(hl_table_options){ .unchecked = 1 }, &t));
    CHECK_OK(ctx, hl_table_read_rows(t, 0, 3, out));
    assert_true(hl_table_rows(t) == 6 && isnan(out[2]) && out[3] == 4);
    hl_table_free(t);
    dropping.unchecked = 1; /* without effect */
    CHECK_OK(ctx, hl_table_open(ctx, "a.npy", &dropping, &t));
    assert_int_equal(hl_table_rows(t), 3);
    assert_int_equal(hl_table_dropped(t), 3);
    CHECK_OK(ctx, hl_table_read_rows(t, 0, 3, out));
    assert_memory_equal(out, kept, sizeof kept);
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(ctx, hl_table_read_rows(t, i, 1, out));
        assert_memory_equal(out, kept + 2 * i, 2 * sizeof *kept);
        hl_table_place(t, i, HL_NO_COLUMN, place, sizeof place);
        sprintf(expected, "a.npy: row %zu", rows[i]);
        assert_string_equal(place, expected);
    }
    hl_table_free(t);
    hl_context_free(ctx);
}

/* The file is cut short after it was opened: an error, not a signal. */
static void test_shrinks(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    double out[6];
    hl_table *t;

    (void)state;
    put_npy("a.npy", 1, H("'<f8'", "False", "(6,)"), six, sizeof six);
    CHECK_OK(ctx, hl_table_open(ctx, "a.npy", NULL, &t));
    assert_return_code(truncate("a.npy", 80), 0);
    CHECK_STATUS(ctx, hl_table_read_rows(t, 0, 6, out), HL_ERR_IO);
    check_message(ctx, "a.npy: cannot read: the file was truncated while it was read");
    hl_table_free(t);
    hl_context_free(ctx);
}

/* ---- npz ---- */

typedef struct archive {
    char data[20000], directory[4000];
    size_t used, directory_used, entries;
} archive;

static void put_little(char *out, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        out[i] = (char)(value >> (8 * i));
}

/* Raw deflate. */
static size_t deflate_bytes(const char *data, size_t bytes, char *out, size_t capacity)
{
    z_stream stream = { .next_in = (Bytef *)(uintptr_t)data,
                        .avail_in = (uInt)bytes,
                        .next_out = (Bytef *)out,
                        .avail_out = (uInt)capacity };

    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return capacity - stream.avail_out;
}

/* Add a member. zip64: its sizes are in an extra field, as numpy writes them into the header before the data. */
static void add_member(archive *a, const char *name, const char *data, size_t bytes, bool deflated, bool zip64)
{
    char *local = a->data + a->used, *entry = a->directory + a->directory_used;
    size_t length = strlen(name), extra = zip64 ? 20 : 0, offset = a->used, packed = bytes;
    uint32_t crc = (uint32_t)crc32(0, (const Bytef *)data, (uInt)bytes);

    memset(local, 0, 30);
    memcpy(local, "PK\3\4", 4);
    put_little(local + 8, deflated ? 8 : 0, 2);
    put_little(local + 26, length, 2);
    put_little(local + 28, extra, 2);
    memcpy(local + 30, name, length);
    memset(local + 30 + length, 0, extra);
    a->used += 30 + length + extra;
    if (deflated)
        packed = deflate_bytes(data, bytes, a->data + a->used, sizeof a->data - a->used);
    else
        memcpy(a->data + a->used, data, bytes);
    a->used += packed;
    memset(entry, 0, 46);
    memcpy(entry, "PK\1\2", 4);
    put_little(entry + 10, deflated ? 8 : 0, 2);
    put_little(entry + 16, crc, 4);
    put_little(entry + 20, zip64 ? 0xFFFFFFFF : packed, 4);
    put_little(entry + 24, zip64 ? 0xFFFFFFFF : bytes, 4);
    put_little(entry + 28, length, 2);
    put_little(entry + 30, extra, 2);
    put_little(entry + 42, offset, 4);
    memcpy(entry + 46, name, length);
    if (zip64) {
        put_little(entry + 46 + length, 1, 2);
        put_little(entry + 48 + length, 16, 2);
        put_little(entry + 50 + length, bytes, 8);
        put_little(entry + 58 + length, packed, 8);
    }
    a->directory_used += 46 + length + extra;
    a->entries++;
}

static size_t end_archive(archive *a)
{
    char *end;

    memcpy(a->data + a->used, a->directory, a->directory_used);
    end = a->data + a->used + a->directory_used;
    memset(end, 0, 22);
    memcpy(end, "PK\5\6", 4);
    put_little(end + 8, a->entries, 2);
    put_little(end + 10, a->entries, 2);
    put_little(end + 12, a->directory_used, 4);
    put_little(end + 16, a->used, 4);
    a->used += a->directory_used + 22;
    return a->used;
}

/* An array of doubles in the archive. */
static void add_array(archive *a, const char *name, const char *shape, const double *values, size_t count, int kind)
{
    char header[200], file[2000];
    size_t bytes;

    snprintf(header, sizeof header, H("'<f8'", "False", "%s") "\n", shape);
    bytes = make_npy(file, 1, header, values, count * sizeof *values);
    add_member(a, name, file, bytes, kind & 1, kind & 2);
}

static void check_table(hl_context *ctx, const char *path, const char *array, const char *names, const double *expected)
{
    hl_table_options options = { .array = array };
    char text[200] = "";
    double values[64];
    hl_table *t;

    CHECK_OK(ctx, hl_table_open(ctx, path, &options, &t));
    for (size_t j = 0; j < hl_table_columns(t); j++)
        sprintf(text + strlen(text), "%s%s", j ? "," : "", hl_table_name(t, j));
    assert_string_equal(text, names);
    CHECK_OK(ctx, hl_table_read_rows(t, 0, hl_table_rows(t), values));
    assert_memory_equal(values, expected, hl_table_rows(t) * hl_table_columns(t) * sizeof *values);
    hl_table_free(t);
}

static void test_archive(void **state)
{
    static const double joined[] = { 1, 1, 2, 2, 3, 4 };
    hl_context *ctx = test_context(NULL, 1);
    hl_table *t;

    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        archive a = { .used = 0 };

        add_array(&a, "arr_0.npy", "(2, 3)", six, 6, kind);
        put_file("a.npz", a.data, end_archive(&a));
        check_table(ctx, "a.npz", NULL, "x1,x2,x3", six);
        check_table(ctx, "a.npz:arr_0", NULL, "x1,x2,x3", six);

        a = (archive){ .used = 0 };
        add_array(&a, "t.npy", "(2,)", six, 2, kind);
        add_member(&a, "readme.txt", "text", 4, false, false);
        add_array(&a, "x.npy", "(2, 2)", six, 4, kind);
        add_array(&a, "y.npy", "(3,)", six, 3, kind);
        put_file("b.npz", a.data, end_archive(&a));
        check_table(ctx, "b.npz", NULL, "x1,x2", six);
        check_table(ctx, "b.npz", "y", "x1", six);
        check_table(ctx, "b.npz:t,x", NULL, "t,x1,x2", joined);
        CHECK_STATUS(ctx, hl_table_open(ctx, "b.npz:*", NULL, &t), HL_ERR_FORMAT);
        check_message(ctx, "b.npz: array 'y': the array has 3 rows, but array 't' has 2");
        CHECK_STATUS(ctx, hl_table_open(ctx, "b.npz:z", NULL, &t), HL_ERR_INVALID);
        check_message(ctx, "b.npz: there is no array 'z'; the archive has: t, x, y");
        CHECK_STATUS(ctx, hl_table_open(ctx, "b.npz:t,t", NULL, &t), HL_ERR_INVALID);
        check_message(ctx, "array 't': the array is listed twice");

        a = (archive){ .used = 0 };
        add_array(&a, "t.npy", "(2,)", six, 2, kind);
        add_array(&a, "x1.npy", "(2,)", six + 2, 2, kind);
        put_file("c.npz", a.data, end_archive(&a));
        check_table(ctx, "c.npz", NULL, "t,x1", (double[]){ 1, 3, 2, 4 });

        a = (archive){ .used = 0 };
        add_array(&a, "p.npy", "(2, 1)", six, 2, kind);
        add_array(&a, "q.npy", "(1, 2)", six, 2, kind);
        put_file("d.npz", a.data, end_archive(&a));
        CHECK_STATUS(ctx, hl_table_open(ctx, "d.npz", NULL, &t), HL_ERR_INVALID);
        check_message(ctx, "d.npz: the archive has several arrays (p, q); select one as FILE.npz:NAME");
    }
    hl_context_free(ctx);
}

/* More names than a message has room for, of every length. The list has 191 characters at most. */
static void test_many_names(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    const char *list;
    hl_table *t;

    (void)state;
    for (int first = 1; first < 8; first++) {
        static archive a;

        a = (archive){ .used = 0 };
        for (int i = 0; i < 60; i++) {
            char name[16];

            if (i)
                snprintf(name, sizeof name, "%c%c.npy", 'a' + i / 26, 'a' + i % 26);
            else
                snprintf(name, sizeof name, "%.*s.npy", first, "ABCDEFGH");
            add_array(&a, name, "(1,)", six, 1, 0);
        }
        put_file("a.npz", a.data, end_archive(&a));
        CHECK_STATUS(ctx, hl_table_open(ctx, "a.npz:nosuch", NULL, &t), HL_ERR_INVALID);
        check_message(ctx, ", ...");
        list = strstr(hl_context_message(ctx), "the archive has: ");
        assert_non_null(list);
        CHECK_LE(strlen(list + strlen("the archive has: ")), 191, "list");
    }
    hl_context_free(ctx);
}

/* An archive of one array, changed at one place. */
static void check_lie(hl_context *ctx, int kind, size_t place, const char *mark, uint64_t value, int bytes,
                      const char *fragment)
{
    archive a = { .used = 0 };
    size_t size;
    char *at = NULL;
    hl_table *t;

    add_array(&a, "x.npy", "(2, 3)", six, 6, kind);
    size = end_archive(&a);
    for (size_t i = 0; i + 4 <= size && !at; i++)
        if (memcmp(a.data + i, mark, 4) == 0)
            at = a.data + i;
    assert_non_null(at);
    put_little(at + place, value, bytes);
    put_file("a.npz", a.data, size);
    if (hl_table_open(ctx, "a.npz", NULL, &t) >= 0)
        fail_msg("accepted, no \"%s\"", fragment);
    check_message(ctx, "a.npz: ");
    check_message(ctx, fragment);
}

static void test_lies(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        check_lie(ctx, kind, 16, "PK\1\2", 1, 4, "array 'x': wrong checksum");
        check_lie(ctx, kind, 8, "PK\1\2", 1, 2, "array 'x': the member is encrypted");
        check_lie(ctx, kind, 10, "PK\1\2", 12, 2, "the compression method is neither");
        check_lie(ctx, kind, 42, "PK\1\2", 0xFFFFFFF0, 4, "the member starts beyond the end of the file");
        check_lie(ctx, kind, 42, "PK\1\2", 1, 4, "the member is not at the position given in the central directory");
        check_lie(ctx, kind, 20, "PK\1\2", 100000, 4, "the member extends beyond the end of the file");
        check_lie(ctx, kind, 28, "PK\1\2", 60000, 2, "truncated entry in the central directory");
        check_lie(ctx, kind, 0, "PK\1\2", 0, 4, "invalid entry in the central directory");
        check_lie(ctx, kind, 10, "PK\5\6", 2, 2, "wrong number of members");
        check_lie(ctx, kind, 16, "PK\5\6", 100000, 4, "the central directory extends beyond the end of the file");
        check_lie(ctx, kind, 20, "PK\5\6", 1, 2, "no central directory; the file may be truncated");
        check_lie(ctx, kind, 10, "PK\5\6", 0, 2, "a zip archive without npy arrays");
    }
    check_lie(ctx, 0, 24, "PK\1\2", 100, 4, "the member is stored, but its two sizes differ");
    check_lie(ctx, 1, 24, "PK\1\2", 100, 4, "its shape does not fit its size");
    check_lie(ctx, 1, 24, "PK\1\2", 4000000000, 4, "exceeds what the compressed data can contain");
    check_lie(ctx, 1, 20, "PK\1\2", 20, 4, "array 'x': ");
    check_lie(ctx, 1, 35, "PK\3\4", 0xFFFFFFFFFFFF, 6, "the compressed data are damaged");
    CHECK_LE((double)allocator.peak_bytes, 1e6, "memory");
    test_context_free(ctx, &allocator);
}

/* A bomb: a shape that fits the stated size, which is a thousand times what is there. */
static void test_bomb(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    archive a = { .used = 0 };
    char header[200], file[300], *entry;
    size_t bytes, size;
    hl_table *t;

    (void)state;
    snprintf(header, sizeof header, H("'<f8'", "False", "(%d,)"), 10000);
    bytes = make_npy(file, 1, header, six, 8);
    add_member(&a, "x.npy", file, bytes, true, false);
    entry = a.directory;
    put_little(entry + 24, bytes - 8 + 80000, 4);
    size = end_archive(&a);
    put_file("a.npz", a.data, size);
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npz", NULL, &t), HL_ERR_FORMAT);
    check_message(ctx, "array 'x': the member does not have the size stated in the archive");
    CHECK_LE((double)allocator.peak_bytes, 4e5, "memory");
    test_context_free(ctx, &allocator);
}

/* Many entries of the directory that lead to the same bytes, and an extra field too short for what it should hold. */
static void test_overlap(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    archive a = { .used = 0 };
    size_t length;
    hl_table *t;

    (void)state;
    add_array(&a, "a.npy", "(200,)", (double[200]){ 0 }, 200, 0);
    length = a.directory_used;
    for (size_t i = 1; i < 4; i++) {
        memcpy(a.directory + i * length, a.directory, length);
        a.directory[i * length + 46] = (char)('a' + i);
    }
    a.directory_used = 4 * length;
    a.entries = 4;
    put_file("a.npz", a.data, end_archive(&a));
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npz", NULL, &t), HL_ERR_FORMAT);
    check_message(ctx, "a.npz: the zip archive is malformed: the arrays overlap");

    a = (archive){ .used = 0 };
    add_array(&a, "x.npy", "(2, 3)", six, 6, 2);
    put_little(a.directory + 46 + 5 + 2, 8, 2);
    put_little(a.directory + 46 + 5 + 12, 7, 2); /* the rest of it becomes a field of another kind */
    put_little(a.directory + 46 + 5 + 14, 4, 2);
    put_file("a.npz", a.data, end_archive(&a));
    CHECK_STATUS(ctx, hl_table_open(ctx, "a.npz", NULL, &t), HL_ERR_FORMAT);
    check_message(ctx, "a zip64 field is truncated");
    hl_context_free(ctx);
}

/* ---- damage, pipes, want of memory ---- */

static void make_sample(archive *a)
{
    static const double values[] = { 1, 2, NAN, 4, 5, 6 };

    *a = (archive){ .used = 0 };
    add_array(a, "t.npy", "(3,)", six, 3, 0);
    add_array(a, "x.npy", "(3, 2)", values, 6, 1);
    add_array(a, "y.npy", "(3,)", six, 3, 3);
    end_archive(a);
}

static void test_damaged(void **state)
{
    hl_table_options all = { .array = "*", .drop_missing = 1 };
    archive a;
    char file[1000];
    size_t size = make_npy(file, 1, H("'<f4'", "True", "(3, 4)") "      \n", six, sizeof six);

    (void)state;
    damage_table(file, size, 4000, 3, NULL);
    for (size_t cut = 0; cut < size; cut++) {
        put_file("dam", file, cut);
        try_table("dam", NULL);
    }
    make_sample(&a);
    damage_table(a.data, a.used, 6000, 4, &all);
    damage_table(a.data, a.used, 3000, 5, NULL);
    for (size_t i = 0; i < a.used; i++) {
        a.data[i] ^= (char)(1 << i % 8);
        put_file("dam", a.data, a.used);
        a.data[i] ^= (char)(1 << i % 8);
        try_table("dam", &all);
    }
}

static hl_status read_sample(hl_context *ctx, void *user)
{
    hl_table_options all = { .array = "*", .drop_missing = 1, .columns = "y,x2" };
    hl_table *t = NULL;
    double values[4];
    hl_status status = hl_table_open(ctx, user, &all, &t);

    if (!status)
        status = hl_table_read_rows(t, 0, 2, values);
    if (!status)
        assert_true(values[0] == 1 && values[1] == 2 && values[2] == 2 && values[3] == 4);
    hl_table_free(t);
    return status;
}

static void test_out_of_memory(void **state)
{
    archive a;
    char sample[] = "sample.npz";

    (void)state;
    make_sample(&a);
    put_file(sample, a.data, a.used);
    check_every_allocation(1, read_sample, sample);
}

static void test_pipe(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    archive a;
    char path[32], file[1000];
    size_t size = make_npy(file, 1, H("'<f8'", "False", "(2, 3)"), six, sizeof six);
    int ends[2];

    (void)state;
    make_sample(&a);
    for (int i = 0; i < 2; i++) {
        assert_return_code(pipe(ends), 0);
        assert_return_code(write(ends[1], i ? a.data : file, i ? a.used : size), 0);
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        check_table(ctx, path, i ? "t" : NULL, i ? "x1" : "x1,x2,x3", six);
        close(ends[0]);
    }
    hl_context_free(ctx);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, empty_directory)
    const struct CMUnitTest tests[] = {
        TEST(test_types),   TEST(test_shapes),  TEST(test_malformed),     TEST(test_not_finite),
        TEST(test_shrinks), TEST(test_archive), TEST(test_many_names),    TEST(test_lies),
        TEST(test_bomb),    TEST(test_overlap), TEST(test_out_of_memory), TEST(test_pipe),
        TEST(test_damaged),
    };

    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
