/* Options by name: what may be set, what is refused and how, and the library's tables themselves. */
#include "support.h"

#include <stdio.h>

#include "base/options.h"
#include "hollow/density_fit.h"

static const char *const colours[] = { "red", "green", NULL };
static const hl_option table[] = {
    { "fast", HL_OPTION_FLAG, NULL, 0, 0, NULL, "off", "a flag", NULL },
    { "ode-steps", HL_OPTION_INTEGER, "N", 1, 256, NULL, "4", "an integer", "colour=green" },
    { "rate", HL_OPTION_REAL, "X", 0, 10, NULL, "1", "a number", NULL },
    { "name", HL_OPTION_TEXT, "TEXT", 0, 0, NULL, NULL, "a text", NULL },
    { "colour", HL_OPTION_CHOICE, "NAME", 0, 0, colours, "red", "a choice", NULL },
    { 0 },
};

static void values_are_kept_as_set(void **state)
{
    hl_context *ctx = *state;
    hl_settings *s;
    CHECK_OK(ctx, hl_settings_create(ctx, table, &s));
    assert_null(hl_settings_text(s, "rate"));
    assert_true(hl_settings_real(s, "rate", 7) == 7);
    CHECK_OK(ctx, hl_settings_set(s, "rate", "0")); /* zero is a value, not "not given" */
    assert_true(hl_settings_given(s, "rate"));
    assert_true(hl_settings_real(s, "rate", 7) == 0);
    CHECK_OK(ctx, hl_settings_set(s, "rate", "2.5"));
    assert_string_equal(hl_settings_text(s, "rate"), "2.5");
    CHECK_OK(ctx, hl_settings_set(s, "rate", NULL));
    assert_false(hl_settings_given(s, "rate"));
    CHECK_OK(ctx, hl_settings_set(s, "ode_steps", "12")); /* as other languages write it */
    assert_int_equal(hl_settings_integer(s, "ode-steps", 0), 12);
    CHECK_OK(ctx, hl_settings_set(s, "fast", "on"));
    assert_true(hl_settings_flag(s, "fast", false));
    CHECK_OK(ctx, hl_settings_set(s, "fast", "off"));
    assert_false(hl_settings_flag(s, "fast", true));
    CHECK_OK(ctx, hl_settings_set(s, "colour", "green"));
    assert_int_equal(hl_settings_choice(s, "colour", 0), 1);
    hl_settings_free(s);
    hl_settings_free(NULL);
    assert_null(hl_settings_text(NULL, "rate"));
    assert_true(hl_settings_real(NULL, "rate", 3) == 3);
}

static void wrong_values_are_refused(void **state)
{
    static const char *const bad[][3] = {
        { "rate", "11", "rate: '11' is not a number in 0..10" },
        { "rate", "nan", "rate: 'nan' is not a number" },
        { "rate", "", "rate: '' is not a number" },
        { "rate", " 1", "is not a number" },
        { "rate", "1x", "is not a number" },
        { "ode-steps", "0", "ode-steps: '0' is not an integer in 1..256" },
        { "ode-steps", "-1", "is not an integer" },
        { "ode-steps", "1.5", "is not an integer" },
        { "ode-steps", "99999999999999999999", "is not an integer" },
        { "name", "", "name: the TEXT is empty" },
        { "fast", "maybe", "fast: 'maybe' is neither on nor off" },
        { "colour", "blue", "unknown colour 'blue'; use one of red, green" },
        { "ode-stesp", "1", "unknown option 'ode-stesp'; did you mean 'ode-steps'?" },
        { "colr", "red", "did you mean 'colour'?" },
        { "raet", "1", "did you mean 'rate'?" },
        { "nonsense", "1", "unknown option 'nonsense'" },
    };
    hl_context *ctx = *state;
    hl_settings *s;
    CHECK_OK(ctx, hl_settings_create(ctx, table, &s));
    CHECK_OK(ctx, hl_settings_set(s, "rate", "3"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK_STATUS(ctx, hl_settings_set(s, bad[i][0], bad[i][1]), HL_ERR_INVALID);
        if (!strstr(hl_context_message(ctx), bad[i][2]))
            fail_msg("'%s' does not say '%s'", hl_context_message(ctx), bad[i][2]);
    }
    assert_null(strstr(hl_context_message(ctx), "did you mean"));
    CHECK_STATUS(ctx, hl_settings_set(s, "rat", "1"), HL_ERR_INVALID);
    assert_non_null(strstr(hl_context_message(ctx), "did you mean 'rate'?"));
    CHECK_STATUS(ctx, hl_settings_set(s, "ab", "1"), HL_ERR_INVALID); /* two letters of two are no misspelling */
    assert_null(strstr(hl_context_message(ctx), "did you mean"));
    CHECK_STATUS(ctx, hl_settings_set(s, "tae", "1"), HL_ERR_INVALID); /* rate has two changes of three letters */
    assert_null(strstr(hl_context_message(ctx), "did you mean"));
    assert_string_equal(hl_settings_text(s, "rate"), "3");
    hl_settings_free(s);
    assert_int_equal(hl_settings_set(NULL, "rate", "1"), HL_ERR_INVALID);
}

static void options_without_effect_are_refused(void **state)
{
    hl_context *ctx = *state;
    hl_settings *s;
    CHECK_OK(ctx, hl_settings_create(ctx, table, &s));
    CHECK_OK(ctx, hl_settings_set(s, "ode-steps", "4"));
    CHECK_STATUS(ctx, hl_settings_check(ctx, s, table), HL_ERR_INVALID); /* the colour is red */
    CHECK(strstr(hl_context_message(ctx), "'ode-steps' has no effect with colour=red; it is for colour=green"),
          hl_context_message(ctx));
    CHECK_OK(ctx, hl_settings_set(s, "colour", "green"));
    CHECK_OK(ctx, hl_settings_check(ctx, s, table));
    CHECK_OK(ctx, hl_settings_check(ctx, NULL, table));
    CHECK_STATUS(ctx, hl_settings_check(ctx, s, hl_density_fit_options()), HL_ERR_INVALID);
    hl_settings_free(s);
}

/* Every row of a table can be shown in help, and its condition can hold. */
static void check_table(hl_context *ctx, const hl_option *options)
{
    for (const hl_option *o = options; o->name; o++) {
        CHECK(o->help && *o->help, o->name);
        CHECK(hl_option_find(options, o->name) == o, o->name);
        CHECK((o->kind == HL_OPTION_FLAG) == !o->value, o->name);
        CHECK((o->kind == HL_OPTION_CHOICE) == (o->choices != NULL), o->name);
        if (o->kind == HL_OPTION_INTEGER || o->kind == HL_OPTION_REAL)
            CHECK(o->low < o->high, o->name);
        if (!o->applies)
            continue;
        char name[40] = "", value[40] = "";
        hl_settings *s;
        assert_int_equal(sscanf(o->applies, "%39[^=]=%39[^|]", name, value), 2);
        CHECK_OK(ctx, hl_settings_create(ctx, options, &s));
        CHECK_OK(ctx, hl_settings_set(s, name, value));
        CHECK_OK(ctx, hl_settings_check(ctx, s, options));
        hl_settings_free(s);
    }
}

static void tables_are_complete(void **state)
{
    check_table(*state, hl_density_fit_options());
}

static hl_status set_some(hl_context *ctx, void *user)
{
    (void)user;
    hl_settings *s = NULL;
    hl_status status = hl_settings_create(ctx, table, &s);
    if (status == HL_OK)
        status = hl_settings_set(s, "rate", "1");
    if (status == HL_OK)
        status = hl_settings_set(s, "rate", "2");
    hl_settings_free(s);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    check_every_allocation(1, set_some, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_are_kept_as_set, group_context, group_context_free),
        cmocka_unit_test_setup_teardown(wrong_values_are_refused, group_context, group_context_free),
        cmocka_unit_test_setup_teardown(options_without_effect_are_refused, group_context, group_context_free),
        cmocka_unit_test_setup_teardown(tables_are_complete, group_context, group_context_free),
        cmocka_unit_test(memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
