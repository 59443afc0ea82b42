/* test_categories.c - columns of texts: columns of 0 and 1 of a table, and what a density model keeps of them. */
#include "support.h"

#include <stdio.h>

#include "directory.h"
#include "hollow/table.h"
#include "learn/density.h"

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static const char data[] = "city,x,sex\nRome,1,m\n7,2,f\n\"A, b\",3,m\nRome,4,f\n";

static void test_indicators(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_table *t = NULL;
    const char *labels[HL_TABLE_CATEGORIES];
    size_t count;
    double rows[4 * 5];
    write_file("a.csv", data);
    CHECK_OK(ctx, hl_table_open(ctx, "a.csv", &(hl_table_options){ .label_columns = "3,city" }, &t));
    assert_int_equal(hl_table_kind(t, 0), HL_COLUMN_LABELS);
    assert_int_equal(hl_table_kind(t, 1), HL_COLUMN_NUMBERS);
    assert_int_equal(hl_table_kind(t, 2), HL_COLUMN_LABELS);
    CHECK_OK(ctx, hl_table_categories(t, 0, labels, &count));
    assert_int_equal(count, 3);
    assert_string_equal(labels[0], "7");
    assert_string_equal(labels[1], "A, b");
    assert_string_equal(labels[2], "Rome");
    CHECK_OK(ctx, hl_table_add_indicators(t, 0, count, labels));
    assert_int_equal(hl_table_columns(t), 5);
    assert_string_equal(hl_table_name(t, 4), "city=Rome");
    static const double rome[] = { 1, 0, 0, 1 }, other[] = { 0, 0, 1, 0 };
    CHECK_OK(ctx, hl_table_read_rows(t, 0, 4, rows));
    for (size_t r = 0; r < 4; r++)
        CHECK(rows[5 * r + 4] == rome[r] && rows[5 * r + 3] == other[r] && rows[5 * r + 1] == (double)(r + 1), "a row");
    CHECK_STATUS(ctx, hl_table_categories(t, 1, labels, &count), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_table_add_indicators(t, 4, 1, labels), HL_ERR_INVALID);
    static const char *const sexes[] = { "f", "x" };
    CHECK_STATUS(ctx, hl_table_add_indicators(t, 2, 2, sexes), HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx),
                 "a.csv:2: column 'sex': 'm' is not a category of the model; categories are: f, x"),
          hl_context_message(ctx));
    hl_table_free(t);
    /* A first value that is a number is a text where texts are expected, and a number elsewhere. */
    write_file("b.csv", "city,x\n7,1\n7,2\n");
    for (int only = 0; only < 2; only++) {
        CHECK_OK(ctx,
                 hl_table_open(ctx, "b.csv", &(hl_table_options){ .label_columns = "city", .labels_only = only }, &t));
        assert_int_equal(hl_table_kind(t, 0), only ? HL_COLUMN_LABELS : HL_COLUMN_NUMBERS);
        hl_table_free(t);
    }
    FILE *file = fopen("many.csv", "w");
    fputs("city,x\n", file);
    for (int i = 0; i <= HL_TABLE_CATEGORIES; i++)
        fprintf(file, "c%d,1\n", i);
    fclose(file);
    CHECK_OK(ctx, hl_table_open(ctx, "many.csv", &(hl_table_options){ .label_columns = "city" }, &t));
    CHECK_STATUS(ctx, hl_table_categories(t, 0, labels, &count), HL_ERR_INVALID);
    hl_table_free(t);
    test_context_free(ctx, NULL);
}

/* p(x | two columns), one normal part. */
static hl_status make_model(hl_context *ctx, hl_density **m)
{
    static const hl_density_column columns[] = { { "x", 0, 1 }, { "city=B", 0, 1 }, { "city=C", 0, 1 } };
    hl_tmixture *one = NULL;
    hl_status status = hl_density_create_columns(ctx, 1, 2, columns, m);
    if (status == HL_OK)
        status = hl_tmixture_create(ctx, 3, 2, 1, INFINITY, &one);
    if (status != HL_OK)
        return status;
    one->weight[0] = 1;
    for (size_t i = 0; i < 3; i++) {
        one->mean[i] = 0;
        for (size_t k = 0; k < 3; k++)
            one->factor[3 * i + k] = i == k;
    }
    status = hl_tmixture_prepare(one);
    if (status != HL_OK) {
        hl_tmixture_free(one);
        return status;
    }
    return hl_density_add_mixture(*m, one, false, 1);
}

static const char *const letters[] = { "A", "B", "\"C\"" };
static const hl_category city = { "city", 0, 3, letters };

static void test_models(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL, *back = NULL;
    CHECK_OK(ctx, make_model(ctx, &m));
    assert_int_equal(hl_density_categories(m), 0);
    CHECK_OK(ctx, hl_density_set_categories(m, 1, &city));
    CHECK_OK(ctx, hl_density_set_categories(m, 1, &city)); /* again */
    CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
    CHECK_OK(ctx, hl_density_load(ctx, "m.hollow", &back));
    assert_int_equal(hl_density_categories(back), 1);
    hl_category c = hl_density_get_category(back, 0);
    CHECK(strcmp(c.name, "city") == 0 && c.column == 0 && c.count == 3, "a category");
    for (size_t k = 0; k < 3; k++)
        assert_string_equal(c.labels[k], letters[k]);
    double x = 0.5, given[2] = { 1, 0 }, p, q;
    CHECK_OK(ctx, hl_density_logp(m, 1, &x, given, &p));
    CHECK_OK(ctx, hl_density_logp(back, 1, &x, given, &q));
    CHECK(p == q, "the same model");
    const hl_category wrong[] = { { "city", 1, 3, letters }, { "city", 0, 1, letters }, { NULL, 0, 2, letters } };
    for (size_t i = 0; i < 3; i++)
        CHECK_STATUS(ctx, hl_density_set_categories(m, 1, &wrong[i]), HL_ERR_INVALID);
    assert_int_equal(hl_density_categories(m), 1);
    CHECK_OK(ctx, hl_density_set_categories(m, 0, NULL));
    assert_int_equal(hl_density_categories(m), 0);
    hl_density_free(m);
    hl_density_free(back);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    (void)user;
    hl_density *m = NULL, *back = NULL;
    hl_table *t = NULL;
    const char *labels[HL_TABLE_CATEGORIES];
    size_t count;
    hl_status status = make_model(ctx, &m);
    if (status == HL_OK)
        status = hl_density_set_categories(m, 1, &city);
    if (status == HL_OK)
        status = hl_density_save(m, "m.hollow");
    if (status == HL_OK)
        status = hl_density_load(ctx, "m.hollow", &back);
    if (status == HL_OK)
        status = hl_table_open(ctx, "a.csv", &(hl_table_options){ .label_columns = "city,sex" }, &t);
    if (status == HL_OK)
        status = hl_table_categories(t, 0, labels, &count);
    if (status == HL_OK)
        status = hl_table_add_indicators(t, 0, count, labels);
    hl_table_free(t);
    hl_density_free(m);
    hl_density_free(back);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    write_file("a.csv", data);
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_indicators, empty_directory),
        cmocka_unit_test_teardown(test_models, empty_directory),
        cmocka_unit_test_teardown(test_allocations, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
