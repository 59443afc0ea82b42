/* test_curve.c - the course of a training in few points, to checkpoints and files and back; sketches of rows. */
#include "support.h"

#include "learn/curve.h"

enum { ITERATIONS = 1234, CHANGE = 777, EVERY = 50, ROWS = 5000, DIM = 3 };

static void fill(hl_curve *c, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        hl_curve_add(c, &(hl_training_point){
                            .iteration = i + 1, .phase = i < CHANGE ? 1 : 3, .loss = (double)i, .evaluations = 2 });
        if ((i + 1) % EVERY == 0)
            hl_curve_validate(c, i + 1, 0.5 * (double)i);
    }
}

/* Stretches cover all iterations, none has two phases, and a course that went through a checkpoint anywhere is the same. */
static void test_course(void **state)
{
    (void)state;
    hl_curve whole, parts;
    double saved[HL_CURVE_STATE], again[HL_CURVE_STATE];
    hl_curve_start(&whole, ITERATIONS);
    fill(&whole, 0, ITERATIONS);
    CHECK(whole.count >= 90 && whole.count <= 102, "the number of points");
    for (size_t i = 0, first = 0; i < whole.count; first = whole.point[i++].iteration) {
        const hl_training_point *p = &whole.point[i];
        CHECK(p->phase == (first < CHANGE ? 1 : 3) && (p->phase == 3 || p->iteration <= CHANGE), "its phase");
        CHECK_LE(fabs(p->loss - 0.5 * (double)(first + p->iteration - 1)), 1e-9, "the mean loss");
        CHECK(p->validated ? p->validation == 0.5 * (double)(p->validated - 1) : isnan(p->validation), "validation");
    }
    CHECK(whole.point[whole.count - 1].iteration == ITERATIONS, "the end");
    hl_curve_get_state(&whole, saved);
    for (size_t stop = 1; stop < ITERATIONS; stop += 101) {
        hl_curve_start(&parts, ITERATIONS);
        fill(&parts, 0, stop);
        hl_curve_get_state(&parts, again);
        hl_curve_start(&parts, ITERATIONS);
        CHECK(hl_curve_set_state(&parts, again), "a state");
        fill(&parts, stop, ITERATIONS);
        hl_curve_get_state(&parts, again);
        assert_memory_equal(saved, again, sizeof saved);
    }
    again[0] = HL_CURVE_POINTS + 1;
    CHECK(!hl_curve_set_state(&parts, again), "too many points");
    again[0] = 1;
    again[2] = -1;
    CHECK(!hl_curve_set_state(&parts, again), "a negative iteration");
}

/* A course that becomes longer than was said keeps its end, in fewer points; also through a checkpoint. */
static void test_extended(void **state)
{
    (void)state;
    enum { LONGER = 3 * ITERATIONS + 5 };
    hl_curve whole, parts;
    double saved[HL_CURVE_STATE], again[HL_CURVE_STATE];
    for (size_t stop = ITERATIONS - 1; stop < LONGER; stop += 501) {
        hl_curve_start(&whole, ITERATIONS);
        fill(&whole, 0, ITERATIONS);
        hl_curve_extend(&whole, LONGER);
        CHECK(whole.count >= 20 && whole.count <= 40, "the number of points");
        fill(&whole, ITERATIONS, LONGER);
        CHECK(whole.count >= 60 && whole.count <= 102, "the number of points");
        size_t validations = 0;
        for (size_t i = 0, first = 0; i < whole.count; first = whole.point[i++].iteration) {
            const hl_training_point *p = &whole.point[i];
            CHECK(p->phase == (first < CHANGE ? 1 : 3) && (p->phase == 3 || p->iteration <= CHANGE), "its phase");
            CHECK_LE(fabs(p->loss - 0.5 * (double)(first + p->iteration - 1)), 1e-9, "the mean loss");
            CHECK(p->validated ? p->validated > first && p->validation == 0.5 * (double)(p->validated - 1)
                               : isnan(p->validation),
                  "validation");
            validations += p->validated > 0;
        }
        CHECK(validations == LONGER / EVERY - (LONGER / EVERY) / 26, "the number of validations");
        CHECK(whole.point[whole.count - 1].iteration == LONGER, "the end");
        hl_curve_get_state(&whole, saved);
        hl_curve_start(&parts, ITERATIONS);
        fill(&parts, 0, stop < ITERATIONS ? stop : ITERATIONS);
        if (stop >= ITERATIONS) {
            hl_curve_extend(&parts, LONGER);
            fill(&parts, ITERATIONS, stop);
        }
        hl_curve_get_state(&parts, again);
        hl_curve_start(&parts, ITERATIONS);
        if (stop >= ITERATIONS)
            hl_curve_extend(&parts, LONGER);
        CHECK(hl_curve_set_state(&parts, again), "a state");
        if (stop < ITERATIONS) {
            fill(&parts, stop, ITERATIONS);
            hl_curve_extend(&parts, LONGER);
        }
        fill(&parts, stop < ITERATIONS ? ITERATIONS : stop, LONGER);
        hl_curve_get_state(&parts, again);
        assert_memory_equal(saved, again, sizeof saved);
    }
}

static void test_file(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    static double x[ROWS * DIM];
    hl_curve curve, read;
    hl_row_sketch sketch, got = { 0 };
    hl_json_document document = { 0 };
    double saved[2][HL_CURVE_STATE];
    bool good;
    hl_random_normals(1, 1, 0, ROWS * DIM, x);
    hl_curve_start(&curve, ITERATIONS);
    fill(&curve, 0, ITERATIONS);
    CHECK_OK(ctx, hl_row_sketch_make(ctx, ROWS, 2, x, 1, x + 2 * ROWS, &sketch));
    hl_json_writer w = { .ctx = ctx };
    hl_json_open(&w, NULL, '{');
    hl_curve_put(&curve, &w, "course");
    hl_row_sketch_put(&sketch, &w);
    hl_json_close(&w, '}');
    char *text = hl_json_finish(&w);
    CHECK_OK(ctx, hl_json_parse(ctx, text, strlen(text), &document));
    CHECK(hl_curve_read(&read, hl_json_get(document.root, "course")), "a course");
    read.filled = curve.filled;
    hl_curve_get_state(&curve, saved[0]);
    hl_curve_get_state(&read, saved[1]);
    assert_memory_equal(saved[0], saved[1], sizeof saved[0]);
    CHECK_OK(ctx, hl_row_sketch_read(ctx, document.root, &got, &good));
    CHECK(good && got.rows == ROWS && got.sum == sketch.sum && got.limit == sketch.limit, "a sketch");
    size_t known = 0, others = 0;
    for (size_t r = 0; r < ROWS; r++) {
        int among = hl_row_sketch_has(&got, hl_row_hash(2, x + 2 * r, 1, x + 2 * ROWS + r));
        CHECK(among != 0, "a row of the table is not said to be new");
        known += among > 0;
        among = hl_row_sketch_has(&got, hl_row_hash(2, x + 2 * r, 1, x + 2 * ROWS + (r + 1) % ROWS));
        CHECK(among <= 0, "a new row is not said to be of the table");
        others += among == 0;
    }
    CHECK(known == got.count && others > known / 2 && others < 2 * known, "how many can be told");
    CHECK_OK(ctx, hl_row_sketch_read(ctx, hl_json_get(document.root, "course"), &(hl_row_sketch){ 0 }, &good));
    CHECK(!good, "a sketch that is none");
    hl_row_sketch_free(ctx, &sketch);
    hl_row_sketch_free(ctx, &got);
    hl_json_free(&document);
    hl_free(ctx, text);
    hl_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_course), cmocka_unit_test(test_extended),
                                        cmocka_unit_test(test_file) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
