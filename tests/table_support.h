/* table_support.h - what the tests of tables share: a directory of their own, files, and damage to files. */
#ifndef HL_TESTS_TABLE_SUPPORT_H
#define HL_TESTS_TABLE_SUPPORT_H

#include "support.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hollow/table.h"

static char test_directory[] = "/tmp/test_table.XXXXXX";

static inline int enter_directory(void **state)
{
    (void)state;
    return !mkdtemp(test_directory) || chdir(test_directory);
}

/* Files in the directory; with `remove_them`, they are deleted. */
static inline int count_files(bool remove_them)
{
    DIR *dir = opendir(".");
    struct dirent *entry;
    int count = 0;

    assert_non_null(dir);
    while ((entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            count++;
            if (remove_them)
                assert_return_code(remove(entry->d_name), 0);
        }
    closedir(dir);
    return count;
}

static inline int empty_directory(void **state)
{
    (void)state;
    count_files(true);
    return 0;
}

static inline int leave_directory(void **state)
{
    (void)state;
    return chdir("/") || rmdir(test_directory);
}

static inline void put_file(const char *path, const void *data, size_t bytes)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

/* The contents of a file; the caller frees them. */
static inline char *get_file(const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "rb");
    char *data = calloc(1, 1 << 20);

    assert_non_null(file);
    *bytes = fread(data, 1, (1 << 20) - 1, file);
    fclose(file);
    return data;
}

static inline void check_message(const hl_context *ctx, const char *fragment)
{
    if (!strstr(hl_context_message(ctx), fragment))
        fail_msg("\"%s\" does not contain \"%s\"", hl_context_message(ctx), fragment);
}

/* Use all that a table promises, so that a sanitizer sees a broken promise. */
static inline void use_table(hl_table *t)
{
    size_t rows = hl_table_rows(t), columns = hl_table_columns(t);
    double *values = malloc(columns * sizeof *values);
    hl_column_stats *stats = malloc(columns * sizeof *stats);
    char place[512];

    assert_true(rows > 0 && columns > 0);
    for (size_t i = 0; i < rows; i++) {
        assert_int_equal(hl_table_read_rows(t, i, 1, values), HL_OK);
        for (size_t j = 0; j < columns; j++)
            assert_true(isfinite(values[j]));
    }
    for (size_t j = 0; j < columns; j++)
        assert_true(*hl_table_name(t, j));
    assert_true(hl_table_place(t, rows - 1, columns - 1, place, sizeof place) > 0);
    assert_int_equal(hl_table_stats(t, stats), HL_OK);
    free(values);
    free(stats);
}

/* Open the file, which may hold anything: a sound table, or an error with the file's name. */
static inline void try_table(const char *path, const hl_table_options *options)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_table *t = (hl_table *)&t;
    hl_status status = hl_table_open(ctx, path, options, &t);

    if (status) {
        assert_null(t);
        check_message(ctx, "dam");
    } else {
        use_table(t);
        hl_table_free(t);
    }
    test_context_free(ctx, &allocator);
}

/* Damage `bytes` at random, `times` times, and open each. Bytes are changed, taken out, doubled, or the end is cut off. */
static inline void damage_table(const char *bytes, size_t size, size_t times, uint64_t seed,
                                const hl_table_options *options)
{
    char *copy = malloc(2 * size + 16);
    size_t draw = 0;

#define DRAW(n) ((size_t)(hl_random_bits(seed, 1, draw++) % (n)))
    for (size_t k = 0; k < times; k++) {
        size_t now = size;

        memcpy(copy, bytes, size);
        for (size_t change = 1 + DRAW(4); change > 0 && now > 1; change--) {
            static const char signs[] = "\",;\n\r\t #0123456789.eE+-nN\0'(){}:PK\1\2\3\4\5\6\377";
            size_t at = DRAW(now), length = 1 + DRAW(8);

            length = length < now - at ? length : now - at;
            switch (DRAW(5)) {
            case 0:
                copy[at] ^= (char)(1 << DRAW(8));
                break;
            case 1:
                copy[at] = signs[DRAW(sizeof signs)];
                break;
            case 2:
                memmove(copy + at, copy + at + length, now - at - length);
                now -= length;
                break;
            case 3:
                if (now + length <= 2 * size) {
                    memmove(copy + at + length, copy + at, now - at);
                    now += length;
                }
                break;
            default:
                now = DRAW(8) ? now : at;
            }
        }
        put_file("dam", copy, now);
        try_table("dam", options);
    }
#undef DRAW
    free(copy);
}

#endif
