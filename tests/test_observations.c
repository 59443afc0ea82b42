/* test_observations.c - observations of stochastic equations from tables: which columns are what, the order of rows, what is refused. */
#include <math.h>

#include "directory.h"
#include "hollow/observations.h"
#include "support.h"

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0, "a file");
}

/* Trajectories whose rows are mixed up, named by texts; a column of text that nobody asked for; dates. */
static void test_order(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_observations *o = NULL;
    char place[200];
    put("a.csv", "who,when,x,note,y\nb,2,1,p,10\na,1,2,q,20\nb,3,3,r,30\na,4,4,s,40\n");
    hl_observation_options how = { .time = "when", .trajectory = "who", .columns = "y,x" };
    CHECK_OK(ctx, hl_observations_read(ctx, "a.csv", &how, &o));
    assert_int_equal(o->rows, 4);
    assert_int_equal(o->dim, 2);
    assert_int_equal(o->trajectories, 2);
    CHECK(o->paired && o->timed && !o->dates && o->snapshots == SIZE_MAX, "trajectories");
    for (size_t r = 1; r < 4; r++)
        CHECK(o->trajectory[r] >= o->trajectory[r - 1] &&
                  (o->trajectory[r] > o->trajectory[r - 1] || o->t[r] > o->t[r - 1]),
              "rows of a trajectory stand together, times rising");
    for (size_t r = 0; r < 4; r++)
        CHECK(o->x[2 * r] == 10 * o->x[2 * r + 1], "columns in the order of the list");
    CHECK(strcmp(o->name[0], "y") == 0 && strcmp(o->name[2], "when") == 0, "names");
    size_t row = o->t[0] == 2 ? 0 : 2; /* the first line of the file */
    CHECK(strcmp(hl_observations_place(o, row, 1, place, sizeof place), "a.csv:2: column 'x'") == 0, "a place");
    hl_sde_observations rows = hl_observations_rows(o);
    CHECK(rows.x == o->x && rows.trajectory == o->trajectory && rows.dim == 2, "as hl_sde_learn takes them");
    hl_observations_free(o);
    put("b.csv", "t,x\n2020-01-01,1\n2021-01-01,2\n");
    CHECK_OK(ctx, hl_observations_read(ctx, "b.csv", NULL, &o));
    CHECK(o->dates && o->paired && fabs(o->t[1] - o->t[0] - 366 / 365.2425) < 1e-9, "dates are years");
    hl_observations_free(o);
    put("c.csv", "t,x\n2,1\n1,2\n3,4\n");
    CHECK_OK(ctx, hl_observations_read(ctx, "c.csv", NULL, &o));
    CHECK(!o->paired && o->snapshots == 1 && o->trajectories == 3 && !hl_observations_rows(o).trajectory, "snapshots");
    hl_observations_free(o);
    put("d.csv", "x\n1\n2\n4\n");
    CHECK_OK(ctx, hl_observations_read(ctx, "d.csv", &(hl_observation_options){ .dt = 0.5 }, &o));
    CHECK(o->t[2] == 1 && !o->timed && o->paired, "equal steps");
    hl_observations_free(o);
    test_context_free(ctx, NULL);
}

/* A table of `trajectories` of `times` rows, time by time or trajectory by trajectory; x says where a row belongs. Without ids it is a path. */
static void put_large(const char *path, size_t trajectories, size_t times, bool by_time, bool ids)
{
    FILE *file = fopen(path, "w");
    CHECK(file, "a file");
    fprintf(file, "%st,x,y\n", ids ? "trajectory," : "");
    for (size_t k = 0; k < trajectories * times; k++) {
        size_t i = by_time ? k % trajectories : k / times, r = by_time ? k / trajectories : k % times;
        if (ids)
            fprintf(file, "%zu,", i);
        fprintf(file, "%zu,%zu,%zu\n", r, i, r);
    }
    CHECK(fclose(file) == 0, "a file");
}

static hl_observations *read_most(hl_context *ctx, const char *path, size_t most)
{
    hl_observations *o = NULL;
    CHECK_OK(ctx, hl_observations_read(ctx, path, &(hl_observation_options){ .most_rows = most }, &o));
    CHECK(o->rows <= most && 4 * o->rows >= 3 * most, path);
    return o;
}

/* Trajectories consist of at least `least` pieces of consecutive times in all; if `length` is given, each is whole and has this length. */
static void check_pieces(const hl_observations *o, size_t least, size_t length)
{
    size_t pieces = 0;
    CHECK(o->paired && o->snapshots == SIZE_MAX, "trajectories");
    for (size_t r = 0; r < o->rows; r++) {
        bool same = r && o->trajectory[r] == o->trajectory[r - 1], next = same && o->t[r] == o->t[r - 1] + 1;
        pieces += !next;
        CHECK(o->x[2 * r + 1] == o->t[r], "its own time");
        CHECK(!same || o->x[2 * r] == o->x[2 * r - 2], "its own trajectory");
        CHECK(!length || next || o->t[r] == 0, "whole trajectories");
    }
    CHECK(pieces >= least && pieces <= o->rows / 10, "many pieces, which are not short");
    CHECK(!length || (o->rows == pieces * length && o->trajectories == pieces), "whole trajectories");
}

static void test_most_rows(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_observations *o, *again;
    char place[200];
    put_large("many.csv", 3000, 10, false, true);
    o = read_most(ctx, "many.csv", 9000);
    check_pieces(o, 500, 10);
    assert_int_equal(o->all_rows, 30000);
    CHECK(strncmp(hl_observations_place(o, 0, SIZE_MAX, place, sizeof place), "many.csv:", 9) == 0 &&
              atof(place + 9) == 10 * o->x[0] + 2,
          "the line of the first row");
    put_large("mixed.csv", 3000, 10, true, true);
    again = read_most(ctx, "mixed.csv", 9000);
    CHECK(again->rows == o->rows && memcmp(again->x, o->x, 2 * o->rows * sizeof *o->x) == 0,
          "the same trajectories, however the file is sorted");
    hl_observations_free(o);
    hl_observations_free(again);
    put_large("few.csv", 3, 40000, true, true);
    o = read_most(ctx, "few.csv", 30000);
    check_pieces(o, 20, 0);
    hl_observations_free(o);
    put_large("path.csv", 1, 60000, true, false);
    o = read_most(ctx, "path.csv", 20000);
    check_pieces(o, 10, 0);
    hl_observations_free(o);
    hl_observation_options how = { .most_rows = 20000, .dt = 1, .columns = "x,y" };
    CHECK_OK(ctx, hl_observations_read(ctx, "path.csv", &how, &o));
    check_pieces(o, 10, 0); /* times that are counted, over the rows that were left out, too */
    hl_observations_free(o);
    how.trajectory = "trajectory";
    CHECK_STATUS(ctx, hl_observations_read(ctx, "few.csv", &how, &o), HL_ERR_INVALID);
    put_large("snapshots.csv", 2, 20000, true, false);
    o = read_most(ctx, "snapshots.csv", 1000);
    CHECK(!o->paired && o->snapshots != SIZE_MAX && o->trajectories == o->rows,
          "rows that are left out say what it is");
    for (size_t r = 0, twice = 0; r < o->rows; r++) {
        twice += r && o->t[r] < o->t[r - 1];
        CHECK(twice == 0 && o->x[2 * r + 1] == o->t[r], "the order of the file");
    }
    hl_observations_free(o);
    test_context_free(ctx, NULL);
}

static void test_refused(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_observations *o = (hl_observations *)&o;
    put("a.csv", "trajectory,t,x\n1,2,1\n1,1,2\n");
    CHECK_STATUS(ctx, hl_observations_read(ctx, "a.csv", NULL, &o), HL_ERR_INVALID);
    CHECK(!o && strstr(hl_context_message(ctx), "a.csv:3: column 't': time 1 goes back"), "a time that goes back");
    CHECK_STATUS(ctx, hl_observations_read(ctx, "a.csv", &(hl_observation_options){ .columns = "y" }, &o),
                 HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_observations_read(ctx, "a.csv", &(hl_observation_options){ .min_rows = 3 }, &o),
                 HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "at least 3 are needed"), "few rows");
    put("b.csv", "s,x\n1,2\n2,3\n");
    CHECK_STATUS(ctx, hl_observations_read(ctx, "b.csv", NULL, &o), HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "give its name with option time"), "no times");
    CHECK_STATUS(ctx, hl_observations_read(ctx, "none.csv", NULL, &o), HL_ERR_IO);
    CHECK_STATUS(ctx, hl_observations_read(ctx, NULL, NULL, &o), HL_ERR_INVALID);
    assert_int_equal(hl_observations_read(NULL, "a.csv", NULL, &o), HL_ERR_INVALID);
    hl_observations_free(NULL);
    test_context_free(ctx, NULL);
}

static void test_times(void **state)
{
    (void)state;
    double time;
    const char *rest = hl_time_scan("2.5,3", &time);
    CHECK(rest && *rest == ',' && time == 2.5, "a number");
    rest = hl_time_scan("1970-01-01T12:00", &time);
    CHECK(rest && !*rest && fabs(time - 1970 - 0.5 / 365.2425) < 1e-12, "a time of day");
    CHECK(!hl_time_scan("soon", &time) && !hl_time_scan("inf", &time) && !hl_time_scan(NULL, &time), "no times");
}

static hl_status read_one(hl_context *ctx, void *user)
{
    hl_observations *o = NULL;
    hl_status status = hl_observations_read(ctx, user, &(hl_observation_options){ .columns = "x" }, &o);
    hl_observations_free(o);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    put("m.csv", "trajectory,t,x\np,1,1\nq,1,2\np,2,3\n");
    check_every_allocation(1, read_one, "m.csv");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_most_rows),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_times),
        cmocka_unit_test_teardown(test_memory, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
