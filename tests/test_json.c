/* test_json.c - JSON of headers: what is read, what is refused, and that what is written reads back. */
#include "io/json.h"
#include "support.h"

static void test_values(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    const char text[] =
        " {\"a\": [1, -2.5e1, true, false, null], \"b\": {\"c\": \"x\\n\\\"\\u00e9\\uD83D\\uDE00/\\/\"},"
        "\"n\": 9223372036854775807, \"m\": -9223372036854775808, \"z\": -0, \"e\": {}, \"f\": []} ";
    hl_json_document d;
    CHECK_OK(ctx, hl_json_parse(ctx, text, strlen(text), &d));
    const hl_json *a = hl_json_get(d.root, "a"), *j;
    assert_true(hl_json_is_array(a, 5));
    j = a->first;
    assert_true(hl_json_is_integer(j) && j->integer == 1 && j->number == 1);
    j = j->next;
    assert_true(!hl_json_is_integer(j) && hl_json_is_number(j) && j->number == -25);
    j = j->next;
    assert_true(j->kind == HL_JSON_BOOLEAN && j->integer == 1);
    j = j->next;
    assert_true(j->kind == HL_JSON_BOOLEAN && j->integer == 0);
    j = j->next;
    assert_true(j->kind == HL_JSON_NULL && !j->next);
    assert_string_equal(hl_json_text(hl_json_get(hl_json_get(d.root, "b"), "c")), "x\n\"\xc3\xa9\xf0\x9f\x98\x80//");
    assert_true(hl_json_get(d.root, "n")->integer == INT64_MAX);
    assert_true(hl_json_get(d.root, "m")->integer == INT64_MIN);
    assert_true(hl_json_get(d.root, "z")->integer == 0);
    assert_true(hl_json_is_object(hl_json_get(d.root, "e")) && hl_json_is_array(hl_json_get(d.root, "f"), 0));
    assert_null(hl_json_get(d.root, "none"));
    assert_null(hl_json_get(a, "a"));
    assert_null(hl_json_get(NULL, "a"));
    assert_null(hl_json_text(a));
    assert_false(hl_json_is_number(NULL) || hl_json_is_integer(NULL) || hl_json_is_object(NULL));
    hl_json_free(&d);
    hl_json_free(&(hl_json_document){ 0 });
    test_context_free(ctx, NULL);
}

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "", "expected a value" },
        { "{", "expected a string" },
        { "[1", "expected ',' or ']'" },
        { "[1,]", "expected a value" },
        { "{\"a\":1,}", "expected a string" },
        { "{\"a\" 1}", "expected ':'" },
        { "{\"a\":1 \"b\":2}", "expected ',' or '}'" },
        { "{\"a\":1,\"b\":2,\"a\":3}", "duplicate key" },
        { "1 2", "at byte 2: expected the end" },
        { "tru", "expected a value" },
        { "01", "invalid number" },
        { "-", "invalid number" },
        { "1.", "invalid number" },
        { "1e", "invalid number" },
        { "1e+", "invalid number" },
        { ".5", "expected a value" },
        { "+1", "expected a value" },
        { "NaN", "expected a value" },
        { "1e999", "too large" },
        { "9223372036854775808", "too large" },
        { "-9223372036854775809", "too large" },
        { "\"a", "unterminated string" },
        { "\"a\\", "unterminated string" },
        { "\"a\\\"", "unterminated string" },
        { "\"\\x\"", "invalid escape" },
        { "\"\\u12g4\"", "invalid escape" },
        { "\"\\u\x10\x10\x10\x10\"", "invalid escape" },
        { "\"\\u0000\"", "not supported" },
        { "\"\\ud800\"", "surrogate" },
        { "\"\\ud800\\u0041\"", "surrogate" },
        { "\"\\udc00\"", "surrogate" },
        { "\"\x01\"", "control character" },
        { "\"\xff\"", "not UTF-8" },
        { "\"\xed\xa0\x80\"", "not UTF-8" },
    };
    hl_context *ctx = test_context(NULL, 1);
    hl_json_document d;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hl_status status = hl_json_parse(ctx, cases[i].text, strlen(cases[i].text), &d);
        if (status != HL_ERR_FORMAT || d.root || !strstr(hl_context_message(ctx), cases[i].message))
            fail_msg("%s: status %d, '%s'", cases[i].text, status, hl_context_message(ctx));
        hl_json_free(&d);
    }
    assert_int_equal(hl_json_parse(ctx, "{}\0", 3, &d), HL_ERR_FORMAT); /* a NUL after the value */
    hl_json_free(&d);
    char deep[2 * HL_JSON_MAX_DEPTH + 4];
    for (size_t depth = HL_JSON_MAX_DEPTH; depth <= HL_JSON_MAX_DEPTH + 1; depth++) {
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        deep[2 * depth] = '\0';
        assert_int_equal(hl_json_parse(ctx, deep, 2 * depth, &d), depth > HL_JSON_MAX_DEPTH ? HL_ERR_FORMAT : HL_OK);
        hl_json_free(&d);
    }
    test_context_free(ctx, NULL);
}

static char *write_all(hl_context *ctx)
{
    hl_json_writer w = { .ctx = ctx };
    hl_json_open(&w, NULL, '{');
    hl_json_put_text(&w, "t\"", "a\\b\n\x01\xc3\xa9\t\b\f\r/");
    hl_json_open(&w, "list", '[');
    static const double reals[] = { 1, 0.1, -2.5, 1e-5, 1e300, 1e20, 3e-320, 123456789012345678.0, 0 };
    for (size_t i = 0; i < sizeof reals / sizeof *reals; i++)
        hl_json_put_real(&w, NULL, reals[i]);
    hl_json_close(&w, ']');
    hl_json_put_integer(&w, "i", -7);
    hl_json_put_boolean(&w, "yes", true);
    hl_json_put_boolean(&w, "no", false);
    hl_json_close(&w, '}');
    return hl_json_finish(&w);
}

static void test_writer(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    char *text = write_all(ctx);
    assert_string_equal(text,
                        "{\"t\\\"\":\"a\\\\b\\n\\u0001\xc3\xa9\\t\\b\\f\\r/\",\"list\":[1.0,0.10000000000000001,-2.5,"
                        "1.0000000000000001e-5,1.0000000000000001e300,1e20,2.999966601548049e-320,"
                        "1.2345678901234568e17,0.0],\"i\":-7,\"yes\":true,\"no\":false}");
    hl_json_document d;
    CHECK_OK(ctx, hl_json_parse(ctx, text, strlen(text), &d));
    assert_string_equal(hl_json_text(hl_json_get(d.root, "t\"")), "a\\b\n\x01\xc3\xa9\t\b\f\r/");
    const hl_json *j = hl_json_get(d.root, "list")->first;
    assert_true(j->number == 1 && j->next->number == 0.1 && j->next->next->next->number == 1e-5);
    hl_json_free(&d);
    hl_free(ctx, text);
    test_context_free(ctx, NULL);
}

static hl_status round_trip(hl_context *ctx, void *user)
{
    (void)user;
    char *text = write_all(ctx);
    hl_json_document d = { 0 };
    hl_status status = text ? hl_json_parse(ctx, text, strlen(text), &d) : HL_ERR_NOMEM;
    hl_json_free(&d);
    hl_free(ctx, text);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    check_every_allocation(1, round_trip, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_writer),
        cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
