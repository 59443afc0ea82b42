/* test_csv.c - numbers and tables as text: what is read, what is refused and how it is said, and damaged files. */
#include "table_support.h"

#include <errno.h>
#include <locale.h>
#include <sys/wait.h>

#include "io/number.h"

/* ---- numbers ---- */

static double bits_double(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The scan gives strtod's bits and takes all of the text. */
static void check_scan(const char *text)
{
    double value = NAN, expected = strtod(text, NULL);
    const char *end = hl_number_scan(text, &value);

    if (*end || memcmp(&value, &expected, sizeof value) != 0)
        fail_msg("%s: %.17g instead of %.17g, rest \"%s\"", text, value, expected, end);
}

static void test_scan(void **state)
{
    static const char *const numbers[] = {
        "0",
        "-0",
        "+1",
        "1.",
        ".5",
        "-.5e1",
        "1e0",
        "1E+2",
        "1e-2",
        "0.1",
        "0.30000000000000004",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0000000000000000000001",
        "18446744073709551615",
        "18446744073709551616",
        "99999999999999999999999",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "1e309",
        "-1e99999999999999999999",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "0e999999999999",
        "0.000000000000000000000000000001",
        "100000000000000000000000000000000",
        "1e22",
        "1e23",
        "8.98846567431158e307",
        "123456789012345678e-19",
        "123456789012345678e-20",
        "1234567890123456789e19",
    };
    static const char *const none[] = { "", "-", "+", ".", "e5", "-.e1", "x", "inf", "nan", " 1" };
    char text[128];
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        check_scan(numbers[i]);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_ptr_equal(hl_number_scan(none[i], &value), none[i]);
    assert_string_equal(hl_number_scan("1e", &value), "e");
    assert_string_equal(hl_number_scan("1e+x", &value), "e+x");
    assert_string_equal(hl_number_scan("0x10", &value), "x10");
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t r = hl_random_bits(1, 0, i), s = hl_random_bits(1, 1, i);
        int places = (int)(s % 21);

        snprintf(text, sizeof text, "%llu.%0*llue%d", (unsigned long long)(r >> s % 64), places,
                 (unsigned long long)((s >> 8) % 100000), (int)(s >> 32) % 45);
        check_scan(text);
        /* exactly between two doubles, and beside it */
        r = (r >> 11) | 1ull << 52;
        snprintf(text, sizeof text, "%llu", (unsigned long long)(2 * r + 1) << s % 10);
        check_scan(text);
        snprintf(text, sizeof text, "%.*g", (int)(s % 20) + 1, bits_double(r << 11 ^ s << 40));
        if (!strpbrk(text, "in"))
            check_scan(text);
    }
}

/* The text reads back to the same bits, and no shorter one of %.15g to %.17g does. */
static void check_text(double x)
{
    char text[HL_NUMBER_TEXT], shorter[40];
    size_t length = hl_number_text(x, 0, text);
    double back = strtod(text, NULL);
    float single = (float)x;

    assert_int_equal(strlen(text), length);
    if (memcmp(&x, &back, sizeof x) != 0)
        fail_msg("%.17g becomes %s", x, text);
    for (int digits = 15; digits < 17; digits++) {
        snprintf(shorter, sizeof shorter, "%.*g", digits, x);
        if (strtod(shorter, NULL) == x) {
            size_t significant = strspn(text, "-0."), count = 0;

            for (const char *p = text + significant; *p && *p != 'e'; p++)
                count += *p != '.';
            if (count > (size_t)digits)
                fail_msg("%s has more digits than %s", text, shorter);
            break;
        }
    }
    if (isfinite(single)) {
        hl_number_text(x, 1, text);
        if (strtof(text, NULL) != single || strlen(text) > 16)
            fail_msg("%.9g becomes %s", (double)single, text);
    }
}

static void test_text(void **state)
{
    static const struct {
        double x;
        const char *text;
    } cases[] = {
        { 0, "0" },
        { -0.0, "-0" },
        { 1, "1" },
        { -1.5, "-1.5" },
        { 0.1, "0.1" },
        { 0.1 + 0.2, "0.30000000000000004" },
        { 1e6, "1000000" },
        { 1e22, "1e+22" },
        { 123456789012345, "123456789012345" },
        { 0.001, "0.001" },
        { 1e-5, "1e-05" },
        { 5e-324, "4.94065645841247e-324" },
        { NAN, "nan" },
        { INFINITY, "inf" },
        { -INFINITY, "-inf" },
        { 1.0 / 3, "0.3333333333333333" },
        { 2.5e15, "2.5e+15" },
    };
    char text[HL_NUMBER_TEXT];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hl_number_text(cases[i].x, 0, text);
        assert_string_equal(text, cases[i].text);
    }
    hl_number_text(0.1f, 1, text);
    assert_string_equal(text, "0.1");
    for (uint64_t i = 0; i < 100000; i++) {
        double x = bits_double(hl_random_bits(2, 0, i));

        if (isfinite(x))
            check_text(x);
        check_text(hl_random_normal(2, 1, i));
        check_text(ldexp(hl_random_normal(2, 2, i), (int)(i % 60) - 12));
        check_text(round(hl_random_normal(2, 3, i) * 1e4) / 1e3);
    }
}

/* A process may use a locale with a decimal comma. */
static void test_locale(void **state)
{
    static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "es_ES.UTF-8", "de_DE" };
    char text[HL_NUMBER_TEXT];
    double value;
    size_t i = 0;

    (void)state;
    while (i < sizeof locales / sizeof *locales && !setlocale(LC_ALL, locales[i]))
        i++;
    if (i == sizeof locales / sizeof *locales)
        skip();
    hl_number_scan("1.5e-300", &value);
    assert_true(value == 0x1.01279cb8db9cap-996 || fabs(value / 1.5e-300 - 1) < 1e-15);
    hl_number_text(1.5e-300, 0, text);
    assert_string_equal(text, "1.5e-300");
    setlocale(LC_ALL, "C");
}

/* ---- tables ---- */

/* A text, options, and what it holds: "names | row; row; ..." or the error. */
typedef struct text_case {
    const char *text;
    hl_table_options options;
    const char *expected;
} text_case;

static const text_case good[] = {
    { "a,b\n1,2\n3,4\n", { 0 }, "a,b|1,2|3,4" },
    { "1,2\n3,4", { 0 }, "x1,x2|1,2|3,4" },
    { "5\n", { 0 }, "x1|5" },
    { "\xEF\xBB\xBF"
      "a,b\r\n1,2\r\n\r\n3,4\r\n",
      { 0 },
      "a,b|1,2|3,4" },
    { "a;b\n1;2\n", { 0 }, "a,b|1,2" },
    { "a\tb\n1\t2\n 3 \t 4 \n", { 0 }, "a,b|1,2|3,4" },
    { "a b  c\n 1\t2   3\n4 5 6  \n", { 0 }, "a,b,c|1,2,3|4,5,6" },
    { "1 2\n3 4\n", { 0 }, "x1,x2|1,2|3,4" },
    { "# made by hand\n\n  # again \"x\na,b\n#, \"\n1,2\n   \n3,4\n#", { 0 }, "a,b|1,2|3,4" },
    { " a , b \n 1 , 2 \n", { 0 }, "a,b|1,2" },
    { "\"a,x\",\"b \"\"q\"\"\"\n\"1\", \" 2 \" \n", { 0 }, "a,x,b \"q\"|1,2" },
    { "\"two\nlines\",b\n1,2\n", { 0 }, "two?lines,b|1,2" },
    { "5\" tube,b\n1,2\n", { 0 }, "5\" tube,b|1,2" },
    { "\"a\" \"b\"\n1 2\n", { 0 }, "a,b|1,2" },
    { "\"a\"\t\"b\"\n1\t2\n", { 0 }, "a,b|1,2" },
    { "a,b\r1,2\r3,4\r", { 0 }, "a,b|1,2|3,4" },
    { ",x1,x2\n1,2,3\n", { 0 }, "column1,x1,x2|1,2,3" },
    { "1,NA\n3,4\n", { .drop_missing = 1 }, "x1,x2|3,4" },
    { "a,b\n1,\n,2\n3,4\nnan,1\n1,NULL\n1,?\n1,-inf\n1,N/A\n5,6\n", { .drop_missing = 1 }, "a,b|3,4|5,6" },
    { "1,2\n3,4\n", { .header = 1 }, "1,2|3,4" },
    { "a,b,c\n1,x,3\n4,,6\n", { .columns = "c, a" }, "c,a|3,1|6,4" },
    { "a,b,c\n1,2,\"x\ny\"\n4,5,z\n", { .columns = "1-2" }, "a,b|1,2|4,5" },
    { "2020,2021,total\n1,2,3\n", { .columns = "2021,1" }, "2021,2020|2,1" },
    { "a|b\n1|2\n", { .separator = '|' }, "a,b|1,2" },
    { "a b,c\n1,2\n", { 0 }, "a b,c|1,2" },
    { "a,b\n1,2\n", { .separator = ',', .min_rows = 1 }, "a,b|1,2" },
    { "d,x\n1970-01-01,1\n2024-02-29,2\n1969-12-31,3\n\"2000-03-01\",4\n",
      { .date_column = "d" },
      "d,x|0,1|19782,2|-1,3|11017,4" },
    { "0001-01-01,1\n", { .date_column = "1" }, "x1,x2|-719162,1" },
    { "x,d\n1,1970-01-02T06:00\n2,1970-01-02 12:00:00\n3,1970-01-02T18:00:00.0Z\n4,1970-01-02T18:00+06:00\n"
      "5,1970-01-02T18:00-0600\n6,1970-01-01T00:00:13.5\n",
      { .date_column = "d", .columns = "d" },
      "d|1.25|1.5|1.75|1.5|2|0.00015625" },
    { "d\n7\n8\n", { .date_column = "d" }, "d|7|8" },
    { "d\n\n7\n", { .date_column = "e" }, "d|7" },
    { "who,x\nann,1\nbob,2\n\"ann\",3\ncleo,4\n7,5\n", { .label_column = "who" }, "who,x|0,1|1,2|0,3|2,4|3,5" },
    { "who,x\n5,1\n3,2\n", { .label_column = "who" }, "who,x|5,1|3,2" },
    { "who,x\nNA,1\nbob,2\nann,3\n", { .label_column = "1", .drop_missing = 1 }, "who,x|0,2|1,3" },
    { "1e3,-2.5E-1,+.5,7.\n", { 0 }, "x1,x2,x3,x4|1000,-0.25,0.5,7" },
};

/* The table as text, in the form of the cases. */
static void describe(hl_context *ctx, hl_table *t, char *out)
{
    double values[16];

    *out = '\0';
    for (size_t j = 0; j < hl_table_columns(t); j++)
        sprintf(out + strlen(out), "%s%s", j ? "," : "", hl_table_name(t, j));
    for (size_t i = 0; i < hl_table_rows(t); i++) {
        CHECK_OK(ctx, hl_table_read_rows(t, i, 1, values));
        for (size_t j = 0; j < hl_table_columns(t); j++)
            sprintf(out + strlen(out), "%s%g", j ? "," : "|", values[j]);
    }
}

static void test_good(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    char text[1000];
    hl_table *t;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        put_file("data.csv", good[i].text, strlen(good[i].text));
        if (hl_table_open(ctx, "data.csv", &good[i].options, &t))
            fail_msg("\"%s\": %s", good[i].text, hl_context_message(ctx));
        describe(ctx, t, text);
        assert_string_equal(text, good[i].expected);
        hl_table_free(t);
    }
    test_context_free(ctx, &allocator);
}

#define LONG_NAME "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

static const struct {
    text_case text;
    hl_status status;
} bad[] = {
    { { "", { 0 }, "data.csv: the file is empty" }, HL_ERR_FORMAT },
    { { "\n# nothing\n", { 0 }, "data.csv: the file is empty" }, HL_ERR_FORMAT },
    { { "a,b\n", { 0 }, "data.csv: the file has a header but no rows" }, HL_ERR_FORMAT },
    { { "a\n1\n", { .min_rows = 2 }, "data.csv: the table has only 1 row; at least 2 are needed" }, HL_ERR_FORMAT },
    { { "a,b\n1,NA\n", { .drop_missing = 1 }, "no rows are left: all 1 have a missing value" }, HL_ERR_FORMAT },
    { { "age,b\n1,2\n\nabc,4\n", { 0 }, "data.csv:4: column 'age': 'abc' is not a number; " }, HL_ERR_FORMAT },
    { { "a,b\n1,2\n3\n", { 0 }, "data.csv:3: 1 field (separated by commas), but the first row has 2" }, HL_ERR_FORMAT },
    { { "a;b\n1;2;3\n", { 0 }, "data.csv:2: more than 2 fields (separated by semicolons), but" }, HL_ERR_FORMAT },
    { { "a\n1,2\n", { 0 }, "data.csv:2: more than 1 field (separated by commas)" }, HL_ERR_FORMAT },
    { { "a b\n1\n", { 0 }, "data.csv:2: 1 field (separated by blanks)" }, HL_ERR_FORMAT },
    { { "a,b\n1,\n", { 0 }, "data.csv:2: column 'b': an empty field is a missing value; fill" }, HL_ERR_NOT_FINITE },
    { { "a,b\n1,NaN\n", { 0 }, "data.csv:2: column 'b': 'NaN' is a missing value; fill" }, HL_ERR_NOT_FINITE },
    { { "1,-Inf\n", { 0 }, "data.csv:1: column 'x2': '-Inf' is a missing value" }, HL_ERR_NOT_FINITE },
    { { "1,1e999\n", { .drop_missing = 1 }, "column 'x2': '1e999' is too large for a double" }, HL_ERR_NOT_FINITE },
    { { "a;b\n1,5;2\n", { 0 }, "data.csv:2: column 'a': '1,5' is not a number; write a decimal point" },
      HL_ERR_FORMAT },
    { { "a,b,a\n1,2,3\n", { 0 }, "data.csv: columns 1 and 3 have the same name, 'a'" }, HL_ERR_FORMAT },
    { { "a,b\n1,\"2\n3,4\n", { 0 }, "data.csv:2: unterminated quote (\")" }, HL_ERR_FORMAT },
    { { "a,b\n1,\"2\"x\n", { 0 }, "data.csv:2: text follows a closing quote" }, HL_ERR_FORMAT },
    { { "a,b\n\"1\n\",2\n3,x\n", { 0 }, "data.csv:2: column 'a': '1?' is not a number" }, HL_ERR_FORMAT },
    { { "a,b\n1,0x10\n", { 0 }, "'0x10' is not a number" }, HL_ERR_FORMAT },
    { { "a,b\n1,2 3\n", { 0 }, "'2 3' is not a number" }, HL_ERR_FORMAT },
    { { "a,b\n1,\"1\"\"2\"\n", { 0 }, "'1\"\"2' is not a number" }, HL_ERR_FORMAT },
    { { "a\n" LONG_NAME "\n", { 0 }, "nnnn...' is not a number; correct" }, HL_ERR_FORMAT },
    { { "a,b\n1,2\n", { .columns = "c" }, "data.csv: there is no column 'c'; the file has 2: a, b" }, HL_ERR_INVALID },
    { { "a,b\n1,2\n", { .columns = "a,1" }, "data.csv: column 'a' is listed twice" }, HL_ERR_INVALID },
    { { "a,b\n1,2\n", { .columns = "1-3" }, "there is no column '1-3'" }, HL_ERR_INVALID },
    { { "a,b\n1,2\n", { .columns = "2-1" }, "there is no column '2-1'" }, HL_ERR_INVALID },
    { { "a,b\n1,2\n", { .columns = "0" }, "there is no column '0'" }, HL_ERR_INVALID },
    { { "a,b\n1,2\n", { .columns = "99999999999999999999" }, "there is no column '999" }, HL_ERR_INVALID },
    { { "a,b\n1,2\n", { .columns = "" }, "there is no column ''" }, HL_ERR_INVALID },
    { { "a,b\n1,2\n", { .separator = 'e' }, "a separator must be one of" }, HL_ERR_INVALID },
    { { "d\n2023-02-28\n2023-02-29\n",
        { .date_column = "d" },
        "data.csv:3: column 'd': '2023-02-29' is not a date, such as 2024-02-29 or 2024-02-29T13:45:00; this day "
        "or time does not exist" },
      HL_ERR_FORMAT },
    { { "d\n1900-02-29\n", { .date_column = "d" }, "data.csv:2: column 'd': '1900-02-29' is not a date" },
      HL_ERR_FORMAT },
    { { "d\n2023-13-01\n", { .date_column = "d" }, "'2023-13-01' is not a date" }, HL_ERR_FORMAT },
    { { "d\n2023-01-01\n2023-01-01T24:00\n", { .date_column = "d" }, "'2023-01-01T24:00' is not a date" },
      HL_ERR_FORMAT },
    { { "d\n2023-01-01\n2023-01-01T2\n", { .date_column = "d" }, "'2023-01-01T2' is not a date" }, HL_ERR_FORMAT },
    { { "d\n2023-01-01\n2023-01-01T20:00+1\n", { .date_column = "d" }, "is not a date" }, HL_ERR_FORMAT },
    { { "d\n2023-01-01\n12\n", { .date_column = "d" }, "data.csv:3: column 'd': '12' is not a date" }, HL_ERR_FORMAT },
    { { "d\n12\n2023-01-01\n", { .date_column = "d" }, "'2023-01-01' is not a number" }, HL_ERR_FORMAT },
    { { "d,e\n2023-01-01,2023-01-01\n", { .date_column = "d" }, "column 'e': '2023-01-01' is not a number" },
      HL_ERR_FORMAT },
    { { "who\n1\nbob\n", { .label_column = "who" }, "data.csv:3: column 'who': 'bob' is not a number" },
      HL_ERR_FORMAT },
    { { "who,x\nann,1\n,2\n", { .label_column = "who" }, "an empty field is a missing value" }, HL_ERR_NOT_FINITE },
    { { "d\n2023-01-01\n", { 0 }, "'2023-01-01' is not a number" }, HL_ERR_FORMAT },
    { { "\x1F\x8B\x08", { 0 }, "data.csv: compressed by gzip" }, HL_ERR_UNSUPPORTED },
    { { "\xFF\xFE"
        "a",
        { 0 },
        "data.csv: the text is UTF-16; save it as UTF-8" },
      HL_ERR_UNSUPPORTED },
};

static void test_bad(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_table *t;

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const text_case *c = &bad[i].text;

        put_file("data.csv", c->text, strlen(c->text));
        t = (hl_table *)&t;
        CHECK_STATUS(ctx, hl_table_open(ctx, "data.csv", &c->options, &t), bad[i].status);
        assert_null(t);
        check_message(ctx, c->expected);
    }
    put_file("data.csv", "a,b\n1,2\0\n", 9);
    CHECK_STATUS(ctx, hl_table_open(ctx, "data.csv", NULL, &t), HL_ERR_FORMAT);
    check_message(ctx, "data.csv:2: column 'b': '2?' is not a number");
    CHECK_STATUS(ctx, hl_table_open(ctx, "missing.csv", NULL, &t), HL_ERR_IO);
    check_message(ctx, "missing.csv: cannot open: No such file or directory");
    CHECK_STATUS(ctx, hl_table_open(ctx, "/", NULL, &t), HL_ERR_IO);
    check_message(ctx, "Is a directory");
    test_context_free(ctx, &allocator);
}

static void test_lines(void **state)
{
    static const char text[] = "# comment\na,b\n1,2\n\"3\",4\n\n5,NA\n7,8\n9,\"10\"\n";
    static const char quoted[] = "\"a\nz\",b\n1,\"x\n\ny\"\n2,z\n";
    static const size_t lines[] = { 3, 4, 7, 8 };
    hl_context *ctx = test_context(NULL, 1);
    hl_table_options options = { .drop_missing = 1 };
    char place[64];
    hl_table *t;

    (void)state;
    put_file("data.csv", text, strlen(text));
    CHECK_OK(ctx, hl_table_open(ctx, "data.csv", &options, &t));
    assert_int_equal(hl_table_rows(t), 4);
    assert_int_equal(hl_table_dropped(t), 1);
    assert_true(hl_table_named(t));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(hl_table_line(t, i), lines[i]);
    assert_int_equal(hl_table_place(t, 2, 1, place, sizeof place), strlen("data.csv:7: column 'b'"));
    assert_string_equal(place, "data.csv:7: column 'b'");
    hl_table_place(t, 2, HL_NO_COLUMN, place, sizeof place);
    assert_string_equal(place, "data.csv:7");
    hl_table_free(t);
    /* lines inside quotes count, in rows and in the header */
    put_file("data.csv", quoted, strlen(quoted));
    CHECK_OK(ctx, hl_table_open(ctx, "data.csv", &(hl_table_options){ .columns = "1" }, &t));
    assert_int_equal(hl_table_rows(t), 2);
    assert_int_equal(hl_table_line(t, 0), 3);
    assert_int_equal(hl_table_line(t, 1), 6);
    hl_table_free(t);
    hl_context_free(ctx);
}

/* Lines of all lengths, so that ends of lines, quotes and numbers fall on the ends of the reader's buffer. */
static void test_buffer(void **state)
{
    enum { ROWS = 40000, SIZE = ROWS * 80 };
    static const char *const ends[] = { "\n", "\r\n", "\r" };
    hl_context *ctx = test_context(NULL, 1);
    char *text = malloc(SIZE);
    double *values = malloc(2 * ROWS * sizeof *values);
    hl_table *t;

    (void)state;
    for (int k = 0; k < 6; k++) {
        size_t used = (size_t)sprintf(text, "a,b%s", ends[k % 3]);

        for (int i = 0; i < ROWS; i++)
            used += (size_t)sprintf(text + used, k < 3 ? "%d%*s,%d.5%s" : "%d%*s,\"%d.5\"%s", i, i % 37, "", -i,
                                    ends[k % 3]);
        put_file("data.csv", text, used - (k % 2));
        CHECK_OK(ctx, hl_table_open(ctx, "data.csv", NULL, &t));
        assert_int_equal(hl_table_rows(t), ROWS);
        CHECK_OK(ctx, hl_table_read_rows(t, 0, ROWS, values));
        for (int i = 0; i < ROWS; i++) {
            assert_true(values[2 * i] == i && values[2 * i + 1] == -i - (i ? 0.5 : -0.5));
            assert_int_equal(hl_table_line(t, (size_t)i), i + 2);
        }
        hl_table_free(t);
    }
    free(text);
    free(values);
    hl_context_free(ctx);
}

/* A row, a number and a quoted field that are larger than the buffer. */
static void test_long(void **state)
{
    enum { SIZE = 3000000, COLUMNS = 300000 };
    hl_context *ctx = test_context(NULL, 1);
    char *text = malloc(SIZE + 100);
    hl_table_options options = { .columns = "2" };
    double value;
    hl_table *t;

    (void)state;
    memset(text, '1', SIZE);
    text[1] = '.';
    memcpy(text + SIZE, ",2\n", 3);
    put_file("data.csv", text, SIZE + 3);
    CHECK_OK(ctx, hl_table_open(ctx, "data.csv", NULL, &t));
    CHECK_OK(ctx, hl_table_read_columns(t, 0, 1, 1, (size_t[]){ 0 }, &value));
    assert_true(value == 10.0 / 9);
    hl_table_free(t);
    text[0] = '"';
    memset(text + 1, '\n', SIZE - 2);
    text[SIZE - 1] = '"';
    put_file("data.csv", text, SIZE + 3);
    CHECK_OK(ctx, hl_table_open(ctx, "data.csv", &(hl_table_options){ .columns = "2", .header = -1 }, &t));
    assert_int_equal(hl_table_columns(t), 1);
    hl_table_free(t);
    for (int i = 0; i < COLUMNS; i++)
        memcpy(text + 4 * i, i + 1 < COLUMNS ? " 7 ," : " 7 \n", 4);
    put_file("data.csv", text, 4 * COLUMNS);
    CHECK_OK(ctx, hl_table_open(ctx, "data.csv", NULL, &t));
    assert_int_equal(hl_table_columns(t), COLUMNS);
    assert_string_equal(hl_table_name(t, COLUMNS - 1), "x300000");
    hl_table_free(t);
    CHECK_OK(ctx, hl_table_open(ctx, "data.csv", &options, &t));
    hl_table_free(t);
    memset(text, ',', SIZE);
    put_file("data.csv", text, SIZE);
    CHECK_STATUS(ctx, hl_table_open(ctx, "data.csv", NULL, &t), HL_ERR_UNSUPPORTED);
    check_message(ctx, "data.csv: more than 1000000 columns");
    free(text);
    hl_context_free(ctx);
}

static void test_standard_input(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    int ends[2], old = dup(0);
    char text[64];
    hl_table *t;

    (void)state;
    assert_return_code(pipe(ends), 0);
    assert_int_equal(write(ends[1], "a,b\n1,2\n3,x\n", 12), 12);
    close(ends[1]);
    dup2(ends[0], 0);
    CHECK_STATUS(ctx, hl_table_open(ctx, "-", NULL, &t), HL_ERR_FORMAT);
    check_message(ctx, "standard input:3: column 'b': 'x' is not a number");
    put_file("data.csv", "a\n1\n2\n", 6);
    close(0);
    assert_int_equal(open("data.csv", O_RDONLY), 0);
    CHECK_OK(ctx, hl_table_open(ctx, "-", NULL, &t));
    describe(ctx, t, text);
    assert_string_equal(text, "a|1|2");
    hl_table_free(t);
    assert_int_equal(fcntl(0, F_GETFD), 0); /* still open */
    dup2(old, 0);
    close(old);
    close(ends[0]);
    hl_context_free(ctx);
}

/* A pipe that gives more than one buffer: what was looked at to tell the format is read once. */
static void test_long_pipe(void **state)
{
    enum { ROWS = 100000 };
    hl_context *ctx = test_context(NULL, 1);
    double *values = malloc(ROWS * sizeof *values);
    char path[32];
    int ends[2], child;
    hl_table *t;

    (void)state;
    assert_return_code(pipe(ends), 0);
    fflush(NULL);
    child = fork();
    assert_return_code(child, errno);
    if (child == 0) {
        for (int i = 0; i < ROWS; i++)
            dprintf(ends[1], "%d\n", i);
        _exit(0);
    }
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    CHECK_OK(ctx, hl_table_open(ctx, path, NULL, &t));
    assert_int_equal(hl_table_rows(t), ROWS);
    CHECK_OK(ctx, hl_table_read_rows(t, 0, ROWS, values));
    for (int i = 0; i < ROWS; i++)
        assert_true(values[i] == i);
    hl_table_free(t);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    free(values);
    hl_context_free(ctx);
}

/* ---- damage and want of memory ---- */

static const char sample[] = "# c\n\"a \"\"1\"\"\",b;c, d\n1,2.5,\"-3e2\"\n\n4,NA,6\r\n7.25,\"8\",9\n10,11,1e-300\n";

static void test_damaged(void **state)
{
    hl_table_options dropping = { .drop_missing = 1 };

    (void)state;
    damage_table(sample, sizeof sample - 1, 3000, 1, NULL);
    damage_table(sample, sizeof sample - 1, 3000, 2, &dropping);
    for (size_t cut = 0; cut < sizeof sample; cut++) {
        put_file("dam", sample, cut);
        try_table("dam", &dropping);
    }
}

/* A table of more numbers than are to stay in memory is the same table, with the same lines and rows left out. */
static void test_spilled(void **state)
{
    enum { ROWS = 90000, ASKED = 1000 };
    FILE *file = fopen("long.csv", "w");
    hl_context *ctx = NULL;
    hl_table *t[2];
    hl_column_stats stats[2][2];
    static double a[2 * ASKED], b[2 * ASKED];

    (void)state;
    for (size_t r = 0; r < ROWS; r++)
        fprintf(file, r % 1000 == 7 ? "\n%zu,\n" : "%zu,%.3f\n", r, (double)(r % 97) / 7);
    fclose(file);
    assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
    CHECK_OK(ctx, hl_table_open(ctx, "long.csv", &(hl_table_options){ .drop_missing = 1 }, &t[0]));
    CHECK_OK(ctx, hl_table_open(ctx, "long.csv", &(hl_table_options){ .drop_missing = 1, .in_memory = 9 }, &t[1]));
    assert_int_equal(hl_table_rows(t[0]), ROWS - ROWS / 1000);
    assert_int_equal(hl_table_rows(t[1]), hl_table_rows(t[0]));
    for (size_t first = 0; first + ASKED <= hl_table_rows(t[0]); first += ASKED / 2 + 3) {
        CHECK_OK(ctx, hl_table_read_rows(t[0], first, ASKED, a));
        CHECK_OK(ctx, hl_table_read_rows(t[1], first, ASKED, b));
        assert_memory_equal(a, b, sizeof a);
        assert_int_equal(hl_table_line(t[0], first), hl_table_line(t[1], first));
    }
    const size_t rows[] = { 80000, 3, 4, 5, 70000, 3 }, second = 1;
    CHECK_OK(ctx, hl_table_gather(t[0], 6, rows, 1, &second, a));
    CHECK_OK(ctx, hl_table_gather(t[1], 6, rows, 1, &second, b));
    assert_memory_equal(a, b, 6 * sizeof *a);
    assert_int_equal(hl_table_gather(t[1], 1, &(size_t){ ROWS }, 1, &second, b), HL_ERR_INVALID);
    for (int k = 0; k < 2; k++)
        CHECK_OK(ctx, hl_table_stats(t[k], stats[k]));
    for (int c = 0; c < 2; c++) {
        const hl_column_stats *x = &stats[0][c], *y = &stats[1][c];
        assert_memory_equal(x, y, offsetof(hl_column_stats, integer));
        assert_true(x->integer == y->integer && x->examined == y->examined && x->distinct == y->distinct &&
                    x->tied == y->tied);
    }
    hl_table_free(t[0]);
    hl_table_free(t[1]);
    setenv("TMPDIR", "/nosuch", 1);
    assert_int_equal(hl_table_open(ctx, "long.csv", &(hl_table_options){ .drop_missing = 1, .in_memory = 9 }, &t[1]),
                     HL_ERR_IO);
    check_message(ctx, "temporary file");
    unsetenv("TMPDIR");
    hl_context_free(ctx);
}

static hl_status read_spilled(hl_context *ctx, void *user)
{
    hl_table *t = NULL;
    hl_status status = hl_table_open(ctx, "ones.csv", &(hl_table_options){ .in_memory = 9 }, &t);

    (void)user;
    hl_table_free(t);
    return status;
}

static hl_status read_sample(hl_context *ctx, void *user)
{
    hl_table_options options = { .drop_missing = 1, .columns = "2-3" };
    hl_table *t = NULL;
    double values[2];
    size_t index[2], count;
    hl_status status = hl_table_open(ctx, "sample.csv", &options, &t);

    (void)user;
    if (!status)
        status = hl_table_read_rows(t, 2, 1, values);
    if (!status)
        status = hl_table_find(t, "d", index, &count);
    if (!status)
        assert_true(values[0] == 11 && values[1] == 1e-300 && count == 1 && index[0] == 1);
    hl_table_free(t);
    return status;
}

/* Texts and dates in their columns, and what the table says of them. */
static void test_kinds(void **state)
{
    static char text[60000];
    size_t used = (size_t)sprintf(text, "id,when,x\n");
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    hl_table *t = NULL;
    double row[3];

    (void)state;
    for (int i = 0; i < 1500; i++)
        used += (size_t)sprintf(text + used, "cell %d,2024-01-%02d,%d\n", i % 1000, 1 + i % 31, i);
    put_file("kinds.csv", text, used);
    CHECK_OK(ctx,
             hl_table_open(ctx, "kinds.csv", &(hl_table_options){ .date_column = "when", .label_column = "id" }, &t));
    assert_int_equal(hl_table_kind(t, 0), HL_COLUMN_LABELS);
    assert_int_equal(hl_table_kind(t, 1), HL_COLUMN_DATES);
    assert_int_equal(hl_table_kind(t, 2), HL_COLUMN_NUMBERS);
    assert_int_equal(hl_table_kind(t, 3), HL_COLUMN_NUMBERS);
    for (size_t r = 0; r < 1500; r++) {
        CHECK_OK(ctx, hl_table_read_rows(t, r, 1, row));
        assert_true(row[0] == (double)(r % 1000) && row[1] == 19723 + (double)(r % 31) && row[2] == (double)r);
    }
    assert_string_equal(hl_table_label(t, 999), "cell 999");
    assert_null(hl_table_label(t, 1000));
    assert_null(hl_table_label(NULL, 0));
    hl_table_free(t);
    test_context_free(ctx, &allocator);
}

static hl_status read_kinds(hl_context *ctx, void *user)
{
    hl_table *t = NULL;
    hl_status status =
        hl_table_open(ctx, "kinds.csv", &(hl_table_options){ .date_column = "when", .label_column = "id" }, &t);

    (void)user;
    hl_table_free(t);
    return status;
}

static void test_out_of_memory(void **state)
{
    static const char text[] = "a,b,d\n1,2,3\n4,,5\n\n6,7,8\nx,11,1e-300\n";

    (void)state;
    put_file("sample.csv", text, strlen(text));
    check_every_allocation(1, read_sample, NULL);
    put_file("kinds.csv", "id,when\nann,2024-01-01\nbob,2024-01-02\n", 38);
    check_every_allocation(1, read_kinds, NULL);
    FILE *file = fopen("ones.csv", "w");
    for (size_t r = 0; r < 70000; r++)
        fputs("1\n", file);
    fclose(file);
    check_every_allocation(1, read_spilled, NULL);
}

/* Dates of days, and back: every day of more than 400 years, after which dates repeat, and times of day. */
static void test_date_text(void **state)
{
    char text[32];
    double days;
    (void)state;
    for (int day = -80000; day < 80000; day++) {
        text[hl_date_text(day, text)] = 0;
        assert_non_null(hl_date_scan(text, &days));
        assert_true(days == day);
    }
    text[hl_date_text(19782 + (13 * 3600 + 45 * 60 + 30) / 86400., text)] = 0;
    assert_string_equal(text, "2024-02-29T13:45:30");
    text[hl_date_text(-1 - 1e-9, text)] = 0;
    assert_string_equal(text, "1969-12-31");
    text[hl_date_text(1e9, text)] = 0;
    assert_null(hl_date_scan(text, &days));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, empty_directory)
    const struct CMUnitTest tests[] = {
        TEST(test_scan),      TEST(test_text),    TEST(test_locale),        TEST(test_good),
        TEST(test_bad),       TEST(test_lines),   TEST(test_buffer),        TEST(test_long),
        TEST(test_damaged),   TEST(test_kinds),   TEST(test_out_of_memory), TEST(test_standard_input),
        TEST(test_long_pipe), TEST(test_spilled), TEST(test_date_text),
    };

    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
