/* test_images.c - rows of pixels from files: packed bits in both orders, gray values, idx, and what is wrong with them. */
#include "support.h"

#include <stdio.h>

#include "hollow/images.h"

enum { PIXELS = 16, ROWS = 3 };

static const char path[] = "test_images.bin";

static void write_file(const void *head, size_t head_size, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(head, 1, head_size, f);
    fwrite(data, 1, size, f);
    fclose(f);
}

/* An npy file of bytes, rows x columns, written in either order. */
static void write_npy(size_t rows, size_t columns, bool fortran, const unsigned char *values)
{
    char head[128];
    unsigned char data[256];
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    int used = snprintf(head + 10, 118, "{'descr': '|u1', 'fortran_order': %s, 'shape': (%zu, %zu), }",
                        fortran ? "True" : "False", rows, columns);
    memset(head + 10 + used, ' ', 118 - (size_t)used);
    head[127] = '\n';
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            data[fortran ? c * rows + r : r * columns + c] = values[r * columns + c];
    write_file(head, sizeof head, data, rows * columns);
}

static void test_bits(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    const unsigned char packed[ROWS * 2] = { 0x80, 0x01, 0xF0, 0x0F, 0xAA, 0x55 };
    (void)state;
    for (int fortran = 0; fortran < 2; fortran++) {
        hl_images *m;
        size_t shape[3];
        write_npy(ROWS, 2, fortran, packed);
        CHECK_OK(ctx, hl_images_open(ctx, path, &(hl_images_options){ .bits = 1 }, &m));
        hl_vae_rows rows = hl_images_rows(m);
        hl_images_shape(m, shape);
        assert_int_equal(rows.rows, ROWS);
        assert_int_equal(hl_images_dim(m), PIXELS);
        assert_true(shape[0] == 1 && shape[1] == 4 && shape[2] == 4);
        assert_int_equal(rows.gray, 0);
        for (size_t i = 0; i < ROWS * PIXELS; i++)
            assert_int_equal(rows.bytes[i], packed[i / 8] >> (7 - i % 8) & 1);
        hl_images_free(m);
        /* 15 pixels, and one bit of padding */
        CHECK_OK(ctx, hl_images_open(ctx, path, &(hl_images_options){ .bits = 1, .image = { 1, 3, 5 } }, &m));
        assert_int_equal(hl_images_dim(m), 15);
        assert_int_equal(hl_images_rows(m).bytes[15 + 3], 1); /* row 1: 1111 0000 ... */
        hl_images_free(m);
        CHECK_STATUS(ctx, hl_images_open(ctx, path, &(hl_images_options){ .bits = 1, .image = { 1, 2, 4 } }, &m),
                     HL_ERR_INVALID);
        assert_null(m);
    }
    hl_images_free(NULL);
    remove(path);
    test_context_free(ctx, NULL);
}

static void test_gray(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    const unsigned char values[ROWS * 3] = { 0, 1, 255, 7, 8, 9, 0, 0, 1 };
    hl_images *m;
    size_t shape[3];
    (void)state;
    write_npy(ROWS, 3, true, values);
    CHECK_OK(ctx, hl_images_open(ctx, path, NULL, &m));
    assert_int_equal(hl_images_rows(m).gray, 1);
    assert_memory_equal(hl_images_rows(m).bytes, values, sizeof values);
    hl_images_shape(m, shape);
    assert_int_equal(shape[0], 0); /* 3 is no square */
    hl_images_free(m);
    CHECK_OK(ctx, hl_images_open(ctx, path, &(hl_images_options){ .image = { 3, 1, 1 } }, &m));
    hl_images_free(m);
    CHECK_OK(ctx, hl_images_open(ctx, path, &(hl_images_options){ .real = 1 }, &m));
    CHECK_NEAR(hl_images_rows(m).values[3], 7, 0, "a number");
    hl_images_free(m);
    /* csv */
    write_file("1,0.5\n", 6, "0,1\n", 4);
    CHECK_STATUS(ctx, hl_images_open(ctx, path, NULL, &m), HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), ":1") && strstr(hl_context_message(ctx), "0.5 is not a pixel"),
          hl_context_message(ctx));
    write_file("1,256\n", 6, "0,1\n", 4);
    CHECK_STATUS(ctx, hl_images_open(ctx, path, NULL, &m), HL_ERR_INVALID);
    write_file("1,nan\n", 6, "0,1\n", 4);
    CHECK_STATUS(ctx, hl_images_open(ctx, path, NULL, &m), HL_ERR_NOT_FINITE);
    CHECK_OK(ctx, hl_images_open(ctx, path, &(hl_images_options){ .drop_missing = 1 }, &m));
    assert_int_equal(hl_images_dropped(m), 1);
    assert_int_equal(hl_images_rows(m).rows, 1);
    assert_int_equal(hl_images_rows(m).bytes[1], 1);
    hl_images_free(m);
    CHECK_STATUS(ctx, hl_images_open(ctx, "test_images.none", NULL, &m), HL_ERR_IO);
    CHECK_STATUS(ctx, hl_images_open(ctx, path, &(hl_images_options){ .bits = 1, .real = 1 }, &m), HL_ERR_INVALID);
    remove(path);
    test_context_free(ctx, NULL);
}

static void test_idx(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    unsigned char head[16] = { 0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3 };
    const unsigned char data[12] = { 0, 1, 2, 3, 250, 5, 6, 7, 8, 9, 10, 255 };
    hl_images *m;
    size_t shape[3];
    (void)state;
    write_file(head, sizeof head, data, sizeof data);
    CHECK_OK(ctx, hl_images_open(ctx, path, NULL, &m));
    hl_images_shape(m, shape);
    assert_true(shape[0] == 1 && shape[1] == 2 && shape[2] == 3);
    assert_int_equal(hl_images_rows(m).rows, 2);
    assert_int_equal(hl_images_rows(m).gray, 1);
    assert_memory_equal(hl_images_rows(m).bytes, data, sizeof data);
    hl_images_free(m);
    write_file(head, sizeof head, data, 11); /* one byte is missing */
    CHECK_STATUS(ctx, hl_images_open(ctx, path, NULL, &m), HL_ERR_FORMAT);
    memset(head + 4, 0xFF, 12); /* more than there is memory for */
    write_file(head, sizeof head, data, sizeof data);
    CHECK_STATUS(ctx, hl_images_open(ctx, path, NULL, &m), HL_ERR_FORMAT);
    memset(head + 4, 0, 12);
    write_file(head, sizeof head, data, 0);
    CHECK_STATUS(ctx, hl_images_open(ctx, path, NULL, &m), HL_ERR_FORMAT);
    remove(path);
    test_context_free(ctx, NULL);
}

static hl_status open_one(hl_context *ctx, void *user)
{
    hl_images *m = NULL;
    (void)user;
    hl_status status = hl_images_open(ctx, path, NULL, &m);
    hl_images_free(m);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    write_npy(ROWS, 3, false, (const unsigned char[ROWS * 3]){ 0, 1, 1 });
    check_every_allocation(1, open_one, NULL);
    remove(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bits), cmocka_unit_test(test_gray),
                                        cmocka_unit_test(test_idx), cmocka_unit_test(test_allocations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
