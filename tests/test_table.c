/* test_table.c - columns of tables, statistics against their definitions, and writing: round trips to the bit, and nothing left
 * behind by what fails. */
#include "table_support.h"

enum { ROWS = 1000, COLUMNS = 5 };

/* Write a table of this many columns and rows. */
static void write_table(hl_context *ctx, const char *path, const hl_table_writer_options *options, size_t rows,
                        size_t columns, const double *values)
{
    hl_table_writer *w;

    CHECK_OK(ctx, hl_table_writer_create(ctx, path, columns, options, &w));
    for (size_t i = 0; i < rows; i += 7) {
        size_t n = rows - i < 7 ? rows - i : 7;

        CHECK_OK(ctx, hl_table_write_rows(w, n, values + i * columns));
    }
    CHECK_OK(ctx, hl_table_writer_finish(w));
    hl_table_writer_free(w);
}

static void check_file(const char *path, const char *expected, size_t bytes)
{
    size_t size;
    char *data = get_file(path, &size);

    assert_int_equal(size, bytes);
    assert_memory_equal(data, expected, bytes);
    free(data);
}

/* ---- columns ---- */

static void test_find(void **state)
{
    static const struct {
        const char *list;
        size_t count, index[6];
    } cases[] = {
        { "t", 1, { 0 } },    { " x , y", 2, { 1, 2 } }, { "2-4", 3, { 1, 2, 3 } }, { "y,1", 2, { 2, 0 } },
        { "2020", 1, { 4 } }, { "5,4", 2, { 4, 3 } },    { "1-3", 1, { 3 } },       { "a b,t", 2, { 5, 0 } },
    };
    static const char text[] = "t,x,y,1-3,2020,a b\n1,2,3,4,5,6\n";
    hl_context *ctx = test_context(NULL, 1);
    size_t index[6], count;
    double values[2];
    hl_table *t;

    (void)state;
    put_file("a.csv", text, strlen(text));
    CHECK_OK(ctx, hl_table_open(ctx, "a.csv", NULL, &t));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(ctx, hl_table_find(t, cases[i].list, index, &count));
        assert_int_equal(count, cases[i].count);
        assert_memory_equal(index, cases[i].index, count * sizeof *index);
    }
    CHECK_STATUS(ctx, hl_table_find(t, "t,,x", index, &count), HL_ERR_INVALID);
    check_message(ctx, "a.csv: there is no column ''; the file has 6: t, x, y, 1-3, 2020, a b");
    assert_int_equal(count, 0);
    CHECK_STATUS(ctx, hl_table_find(t, "p,t,q,7", index, &count), HL_ERR_INVALID);
    check_message(ctx, "a.csv: there are no columns 'p', 'q', '7'; the file has 6: t, x, y, 1-3, 2020, a b");
    CHECK_STATUS(ctx, hl_table_find(t, "2-3,y", index, &count), HL_ERR_INVALID);
    check_message(ctx, "a.csv: column 'y' is listed twice");
    CHECK_OK(ctx, hl_table_read_columns(t, 0, 1, 2, (size_t[]){ 5, 1 }, values));
    assert_true(values[0] == 6 && values[1] == 2);
    assert_null(hl_table_name(t, 6));
    hl_table_free(t);
    hl_context_free(ctx);
}

/* Names that are never numbers, and a file that has none. */
static void test_names(void **state)
{
    static const char named[] = "b,text,a\n1,x,2\n", bare[] = "1,2\n3,4\n";
    hl_context *ctx = test_context(NULL, 1);
    double values[2];
    hl_table *t;

    (void)state;
    put_file("named.csv", named, strlen(named));
    put_file("bare.csv", bare, strlen(bare));
    CHECK_OK(ctx, hl_table_open(ctx, "named.csv", &(hl_table_options){ .columns = "a,b", .names = 1 }, &t));
    CHECK_OK(ctx, hl_table_read_rows(t, 0, 1, values));
    assert_true(values[0] == 2 && values[1] == 1);
    hl_table_free(t);
    CHECK_STATUS(ctx, hl_table_open(ctx, "named.csv", &(hl_table_options){ .columns = "a,1,c", .names = 1 }, &t),
                 HL_ERR_INVALID);
    check_message(ctx, "named.csv: there are no columns '1', 'c'; the file has 3: b, text, a");
    CHECK_OK(ctx, hl_table_open(ctx, "bare.csv", &(hl_table_options){ .columns = "a,b", .names = 1 }, &t));
    assert_int_equal(hl_table_columns(t), 2);
    assert_int_equal(hl_table_named(t), 0);
    hl_table_free(t);
    CHECK_STATUS(ctx, hl_table_open(ctx, "bare.csv", &(hl_table_options){ .columns = "a,b,c", .names = 1 }, &t),
                 HL_ERR_INVALID);
    check_message(ctx, "bare.csv: the file has 2 columns without names, but 3 are needed");
    hl_context_free(ctx);
}

/* More names than a message has room for, of every length. The list has 191 characters at most. */
static void test_many_names(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    size_t index[60], count;
    const char *list;
    hl_table *t;

    (void)state;
    for (int first = 1; first < 8; first++) {
        char text[400];
        int used = sprintf(text, "%.*s", first, "ABCDEFGH");

        for (int i = 1; i < 60; i++)
            used += sprintf(text + used, ",%c%c", 'a' + i / 26, 'a' + i % 26);
        used += sprintf(text + used, "\n1");
        for (int i = 1; i < 60; i++)
            used += sprintf(text + used, ",1");
        put_file("a.csv", text, (size_t)used);
        CHECK_OK(ctx, hl_table_open(ctx, "a.csv", NULL, &t));
        CHECK_STATUS(ctx, hl_table_find(t, "nosuch", index, &count), HL_ERR_INVALID);
        check_message(ctx, ", ...");
        list = strstr(hl_context_message(ctx), "the file has 60: ");
        assert_non_null(list);
        CHECK_LE(strlen(list + strlen("the file has 60: ")), 191, "list");
        hl_table_free(t);
    }
    hl_context_free(ctx);
}

/* ---- statistics ---- */

/* Columns: normal far from zero; constant that sums badly; whole numbers; half zeros; pairs of equal values. */
static void make_columns(double *values, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        double *row = values + i * COLUMNS;

        row[0] = 1e9 + hl_random_normal(1, 0, i);
        row[1] = 0.1;
        row[2] = floor(10 * hl_random_uniform(1, 2, i));
        row[3] = i % 2 ? 0 : hl_random_normal(1, 3, i);
        row[4] = hl_random_normal(1, 4, i / 2);
    }
}

static void check_stats(hl_context *ctx, const char *path, const double *values, size_t rows)
{
    hl_column_stats stats[COLUMNS], again[COLUMNS];
    hl_table *t;

    CHECK_OK(ctx, hl_table_open(ctx, path, NULL, &t));
    CHECK_OK(ctx, hl_table_stats(t, stats));
    CHECK_OK(ctx, hl_table_stats(t, again));
    for (size_t j = 0; j < COLUMNS; j++) {
        long double sum = 0, square = 0;
        double min = INFINITY, max = -INFINITY;

        for (size_t i = 0; i < rows; i++) {
            sum += values[i * COLUMNS + j];
            min = fmin(min, values[i * COLUMNS + j]);
            max = fmax(max, values[i * COLUMNS + j]);
        }
        sum /= rows;
        for (size_t i = 0; i < rows; i++)
            square += (values[i * COLUMNS + j] - sum) * (values[i * COLUMNS + j] - sum);
        square = sqrtl(square / rows);
        CHECK_NEAR(stats[j].mean, (double)sum, 4e-15 * fabs((double)sum) + 1e-14 * (double)square, "mean");
        CHECK_NEAR(stats[j].deviation, (double)square, 1e-12 * (double)square + 1e-15, "deviation");
        assert_true(stats[j].min == min && stats[j].max == max);
        assert_int_equal(stats[j].integer, j == 2);
        assert_true(stats[j].mean == again[j].mean && stats[j].deviation == again[j].deviation);
        assert_true(stats[j].distinct == again[j].distinct && stats[j].tied == again[j].tied);
    }
    assert_true(stats[1].deviation == 0 && stats[1].mean == 0.1);
    assert_true(stats[1].distinct == 1 && stats[2].distinct == 10);
    assert_true(stats[0].tied < 0.01 && stats[1].tied == 1 && stats[2].tied == 1);
    if (rows <= 65536) {
        assert_int_equal(stats[0].examined, rows);
        assert_int_equal(stats[3].distinct, rows - rows / 2 + 1);
        assert_true(stats[3].tied == (double)(rows / 2) / (double)rows && stats[4].tied == 1);
    } else {
        assert_int_equal(stats[0].examined, 65536);
        CHECK_NEAR(stats[3].tied, 0.5, 0.01, "half are zero");
        CHECK_LE(0.1, stats[4].tied, "pairs are seen");
    }
    hl_table_free(t);
}

static void test_stats(void **state)
{
    enum { MANY = 200000 };
    hl_context *ctx = test_context(NULL, 1);
    double *values = malloc(MANY * COLUMNS * sizeof *values);
    hl_column_stats one;
    hl_table *t;

    (void)state;
    make_columns(values, MANY);
    write_table(ctx, "a.csv", NULL, ROWS, COLUMNS, values);
    check_stats(ctx, "a.csv", values, ROWS);
    write_table(ctx, "a.npy", NULL, MANY, COLUMNS, values);
    check_stats(ctx, "a.npy", values, MANY);
    put_file("one.csv", "x\n-3\n", 5);
    CHECK_OK(ctx, hl_table_open(ctx, "one.csv", NULL, &t));
    CHECK_OK(ctx, hl_table_stats(t, &one));
    assert_true(one.mean == -3 && one.deviation == 0 && one.integer && one.distinct == 1 && one.tied == 0);
    hl_table_free(t);
    free(values);
    hl_context_free(ctx);
}

/* Columns at the limits of doubles: the same numbers in other units have the same statistics in those units, to the bit. */
static void test_extreme_stats(void **state)
{
    static const int exponents[] = { 531, -531, 1022, -665, -1010, 300, -310 };
    enum { ROWS = 700, COLUMNS = 8 };
    static double values[ROWS * COLUMNS];
    hl_context *ctx = test_context(NULL, 1);
    hl_column_stats stats[COLUMNS];
    hl_table_writer *writer;
    hl_table *t;

    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        values[i * COLUMNS] = hl_random_uniform(3, 0, i) - .7;
        for (size_t k = 1; k < COLUMNS; k++)
            values[i * COLUMNS + k] = ldexp(values[i * COLUMNS], exponents[k - 1]);
    }
    CHECK_OK(ctx, hl_table_writer_create(ctx, "a.npy", COLUMNS, NULL, &writer));
    CHECK_OK(ctx, hl_table_write_rows(writer, ROWS, values));
    CHECK_OK(ctx, hl_table_writer_finish(writer));
    hl_table_writer_free(writer);
    CHECK_OK(ctx, hl_table_open(ctx, "a.npy", NULL, &t));
    CHECK_OK(ctx, hl_table_stats(t, stats));
    for (size_t k = 1; k < COLUMNS; k++) {
        CHECK(stats[k].mean == ldexp(stats[0].mean, exponents[k - 1]), "mean");
        CHECK(stats[k].deviation == ldexp(stats[0].deviation, exponents[k - 1]), "deviation");
    }
    hl_table_free(t);

    /* Both ends of the range in one column; values that grow from chunk to chunk; zeros before tiny values. */
    for (size_t i = 0; i < ROWS; i++) {
        values[i * 3] = i % 2 ? 1.5e308 : -1.5e308;
        values[i * 3 + 1] = i < 300 ? 1e-200 * (double)i : i < 600 ? (double)(i % 2) : 1e200 * (double)(i % 2);
        values[i * 3 + 2] = i < 300 ? 0 : i % 2 ? 1e-200 : -1e-200;
    }
    CHECK_OK(ctx, hl_table_writer_create(ctx, "b.npy", 3, NULL, &writer));
    CHECK_OK(ctx, hl_table_write_rows(writer, ROWS, values));
    CHECK_OK(ctx, hl_table_writer_finish(writer));
    hl_table_writer_free(writer);
    CHECK_OK(ctx, hl_table_open(ctx, "b.npy", NULL, &t));
    CHECK_OK(ctx, hl_table_stats(t, stats));
    CHECK_NEAR(stats[0].deviation / 1.5e308, 1, 1e-12, "both ends");
    CHECK_NEAR(stats[0].mean / 1.5e308, 0, 1e-12, "both ends");
    CHECK_NEAR(stats[1].mean / 1e200, 50. / ROWS, 1e-12, "growing");
    CHECK_NEAR(stats[1].deviation / 1e200, sqrt(50. / ROWS - 50. / ROWS * 50 / ROWS), 1e-12, "growing");
    CHECK_NEAR(stats[2].deviation / 1e-200, sqrt(400. / ROWS), 1e-12, "tiny");
    hl_table_free(t);
    hl_context_free(ctx);
}

/* ---- writing ---- */

/* Doubles of all sizes; NaN and infinities are not for reading. */
static void make_values(double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = hl_random_bits(3, 0, i);

        memcpy(&values[i], &bits, sizeof bits);
        if (i % 3 || !isfinite(values[i]))
            values[i] = hl_random_normal(3, 1, i);
    }
    values[0] = -0.0;
}

static void test_round_trip(void **state)
{
    static const char *const names[] = { "#f", "b,c", "d \"e\"", "a", "" };
    static const char *const read_names[] = { "#f", "b,c", "d \"e\"", "a", "column5" };
    static const char *const paths[] = { "a.csv", "a.npy", "b.txt", "c.npy", "d.csv" };
    hl_context *ctx = test_context(NULL, 1);
    double *values = malloc(ROWS * COLUMNS * sizeof *values), *back = malloc(ROWS * COLUMNS * sizeof *back);
    hl_table *t;

    (void)state;
    make_values(values, ROWS * COLUMNS);
    for (int k = 0; k < 5; k++) {
        hl_table_writer_options options = { .names = k < 2 ? names : NULL,
                                            .rows = k == 3 ? ROWS : 0,
                                            .single = k == 4 };

        for (size_t i = 0; k == 4 && i < ROWS * COLUMNS; i++)
            values[i] = isfinite((float)values[i]) ? (float)values[i] : 1;
        write_table(ctx, paths[k], &options, ROWS, COLUMNS, values);
        CHECK_OK(ctx, hl_table_open(ctx, paths[k], NULL, &t));
        assert_int_equal(hl_table_rows(t), ROWS);
        assert_int_equal(hl_table_columns(t), COLUMNS);
        for (size_t j = 0; k == 0 && j < COLUMNS; j++)
            assert_string_equal(hl_table_name(t, j), read_names[j]);
        CHECK_OK(ctx, hl_table_read_rows(t, 0, ROWS, back));
        for (size_t i = 0; k == 4 && i < ROWS * COLUMNS; i++)
            back[i] = (float)back[i];
        if (memcmp(values, back, ROWS * COLUMNS * sizeof *values) != 0)
            fail_msg("%s: other bits", paths[k]);
        hl_table_free(t);
    }
    assert_int_equal(count_files(false), 5);
    free(values);
    free(back);
    hl_context_free(ctx);
}

static void test_bytes(void **state)
{
    static const double values[] = { 1.5, -2, NAN, INFINITY };
    static const char *const names[] = { "t", "x" };
    static const char npy[] = "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }"
                              "                                                            \n"
                              "\0\0\xC0\x3F\0\0\0\xC0\0\0\xC0\x7F\0\0\x80\x7F";
    hl_context *ctx = test_context(NULL, 1);
    hl_table_writer_options options = { .names = names };

    (void)state;
    write_table(ctx, "a", &options, 2, 2, values);
    check_file("a", "t,x\n1.5,-2\nnan,inf\n", 19);
    options = (hl_table_writer_options){ .single = 1, .flat = 1 };
    write_table(ctx, "a.npy", &options, 4, 1, values);
    check_file("a.npy", npy, sizeof npy - 1);
    options = (hl_table_writer_options){ .format = HL_TABLE_CSV, .rows = 4 };
    write_table(ctx, "a.npy", &options, 4, 1, values);
    check_file("a.npy", "1.5\n-2\nnan\ninf\n", 15);
    write_table(ctx, "/dev/null", &options, 4, 1, values);
    hl_context_free(ctx);
}

static void test_write_refused(void **state)
{
    static const double values[] = { 1, 2, 3 };
    hl_context *ctx = test_context(NULL, 1);
    hl_table_writer_options options = { .rows = 2 };
    hl_table_writer *w = NULL;

    (void)state;
    put_file("old.csv", "old", 3);
    CHECK_STATUS(ctx, hl_table_writer_create(ctx, "missing/a.csv", 1, NULL, &w), HL_ERR_IO);
    check_message(ctx, "missing/a.csv: cannot create a temporary file beside it: No such file");
    assert_null(w);
    CHECK_STATUS(ctx, hl_table_writer_create(ctx, "/tmp", 1, NULL, &w), HL_ERR_IO);
    check_message(ctx, "/tmp: cannot write: Is a directory");
    CHECK_STATUS(ctx, hl_table_writer_create(ctx, "a.csv", 0, NULL, &w), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_table_writer_create(ctx, "a.npy", 2, &(hl_table_writer_options){ .flat = 1 }, &w),
                 HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_table_writer_create(ctx, "-", 1, &(hl_table_writer_options){ .format = HL_TABLE_NPY }, &w),
                 HL_ERR_INVALID);
    check_message(ctx, "standard output: to write npy to a pipe, the number of rows");
    /* given up, too many rows, too few rows: the old file stays, and no other */
    CHECK_OK(ctx, hl_table_writer_create(ctx, "old.csv", 1, NULL, &w));
    CHECK_OK(ctx, hl_table_write_rows(w, 3, values));
    assert_int_equal(count_files(false), 2);
    hl_table_writer_free(w);
    CHECK_OK(ctx, hl_table_writer_create(ctx, "old.csv", 1, &options, &w));
    CHECK_STATUS(ctx, hl_table_write_rows(w, 3, values), HL_ERR_INVALID);
    check_message(ctx, "old.csv: more rows than the announced 2");
    CHECK_STATUS(ctx, hl_table_writer_finish(w), HL_ERR_INVALID);
    hl_table_writer_free(w);
    CHECK_OK(ctx, hl_table_writer_create(ctx, "old.csv", 1, &options, &w));
    CHECK_OK(ctx, hl_table_write_rows(w, 1, values));
    CHECK_STATUS(ctx, hl_table_writer_finish(w), HL_ERR_INVALID);
    check_message(ctx, "old.csv: 2 rows were announced and 1 written");
    hl_table_writer_free(w);
    hl_table_writer_free(NULL);
    assert_int_equal(count_files(false), 1);
    check_file("old.csv", "old", 3);
    hl_context_free(ctx);
}

/* A full disk. */
static void test_full(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    double values[1000] = { 0 };
    hl_status status = HL_OK;
    hl_table_writer *w;

    (void)state;
    if (access("/dev/full", W_OK))
        skip();
    CHECK_OK(ctx, hl_table_writer_create(ctx, "/dev/full", 1, NULL, &w));
    for (int i = 0; i < 100 && !status; i++)
        status = hl_table_write_rows(w, 1000, values);
    assert_int_equal(status, HL_ERR_IO);
    check_message(ctx, "/dev/full: cannot write: No space left on device");
    assert_int_equal(hl_table_writer_finish(w), HL_ERR_IO);
    hl_table_writer_free(w);
    hl_context_free(ctx);
}

static void test_standard_output(void **state)
{
    static const double values[] = { 1, 2, 3, 0.1 };
    hl_context *ctx = test_context(NULL, 1);
    hl_table_writer_options options = { .format = HL_TABLE_NPY, .rows = 2 };
    int old, file = open("out", O_RDWR | O_CREAT, 0666);
    hl_table_writer *w;
    struct stat info;
    double back[4];
    hl_table *t;

    (void)state;
    fflush(stdout);
    old = dup(1);
    dup2(file, 1);
    CHECK_OK(ctx, hl_table_writer_create(ctx, "-", 2, NULL, &w));
    CHECK_OK(ctx, hl_table_write_rows(w, 1, values));
    fstat(1, &info);
    assert_int_equal(info.st_size, 0);
    CHECK_OK(ctx, hl_table_writer_flush(w));
    fstat(1, &info);
    assert_int_equal(info.st_size, 4);
    CHECK_OK(ctx, hl_table_write_rows(w, 1, values + 2));
    CHECK_OK(ctx, hl_table_writer_finish(w));
    hl_table_writer_free(w);
    check_file("out", "1,2\n3,0.1\n", 10);
    assert_return_code(ftruncate(file, 0), 0);
    lseek(file, 0, SEEK_SET);
    write_table(ctx, "-", &options, 2, 2, values);
    dup2(old, 1);
    close(old);
    close(file);
    CHECK_OK(ctx, hl_table_open(ctx, "out", NULL, &t));
    CHECK_OK(ctx, hl_table_read_rows(t, 0, 2, back));
    assert_memory_equal(back, values, sizeof values);
    hl_table_free(t);
    hl_context_free(ctx);
}

/* ---- memory ---- */

static hl_status write_and_read(hl_context *ctx, void *user)
{
    static const double values[] = { 1, 2, 3, 4, 5, 6 };
    const char *path = user;
    hl_table_writer *w = NULL;
    hl_table *t = NULL;
    hl_column_stats stats[2];
    hl_status status = hl_table_writer_create(ctx, path, 2, NULL, &w);

    if (!status)
        status = hl_table_write_rows(w, 3, values);
    if (!status)
        status = hl_table_writer_finish(w);
    if (!status)
        status = hl_table_open(ctx, path, NULL, &t);
    if (!status)
        status = hl_table_stats(t, stats);
    if (!status)
        assert_true(stats[0].mean == 3 && stats[1].mean == 4);
    hl_table_writer_free(w);
    hl_table_free(t);
    return status;
}

static void test_out_of_memory(void **state)
{
    char csv[] = "a.csv", npy[] = "a.npy";

    (void)state;
    check_every_allocation(1, write_and_read, csv);
    check_every_allocation(1, write_and_read, npy);
    assert_int_equal(count_files(false), 2);
}

/* An array that stays in its file costs the same memory whatever its size. */
static void test_memory(void **state)
{
    enum { MANY = 300000 };
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    double *values = calloc(MANY * COLUMNS, sizeof *values);
    hl_table *t;

    (void)state;
    write_table(ctx, "a.npy", NULL, MANY, COLUMNS, values);
    CHECK_OK(ctx, hl_table_open(ctx, "a.npy", NULL, &t));
    for (size_t i = 0; i < MANY; i += 1000)
        CHECK_OK(ctx, hl_table_read_rows(t, i, 1000, values));
    hl_table_free(t);
    CHECK_LE((double)allocator.peak_bytes, 400e3, "bytes");
    free(values);
    test_context_free(ctx, &allocator);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, empty_directory)
    const struct CMUnitTest tests[] = {
        TEST(test_find),  TEST(test_many_names),      TEST(test_names),         TEST(test_extreme_stats),
        TEST(test_stats), TEST(test_round_trip),      TEST(test_bytes),         TEST(test_write_refused),
        TEST(test_full),  TEST(test_standard_output), TEST(test_out_of_memory), TEST(test_memory),
    };

    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
