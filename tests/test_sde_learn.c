/* test_sde_learn.c - hl_sde_learn: choices, findings, stopping and going on to the same bits, wrong calls, memory. */
#include "directory.h"
#include "hollow/hollow.h"
#include "support.h"

enum { PATHS = 60, TIMES = 5, ROWS = PATHS * TIMES, MOST = 2 * ROWS };

/* Paths of dx = -x dt + 0.5 dW from x = 3, by Euler steps; the second column is the first of other numbers. */
typedef struct observations {
    double t[ROWS], x[MOST];
    size_t trajectory[ROWS];
} observations;

static void simulate(observations *o, size_t dim)
{
    for (size_t p = 0; p < PATHS; p++)
        for (size_t i = 0; i < dim; i++) {
            double x = 3 + 0.3 * hl_random_normal(7, i, p);
            for (size_t k = 0; k < TIMES; k++) {
                size_t r = p * TIMES + k;
                o->t[r] = 0.2 * (double)k;
                o->trajectory[r] = p;
                o->x[r * dim + i] = x;
                for (size_t step = 0; step < 4; step++)
                    x += -0.05 * x + 0.5 * sqrt(0.05) * hl_random_normal(8, i, r * 4 + step);
            }
        }
}

static hl_sde_observations data_of(const observations *o, size_t dim, bool paired)
{
    return (hl_sde_observations){
        .rows = ROWS, .dim = dim, .t = o->t, .x = o->x, .trajectory = paired ? o->trajectory : NULL
    };
}

/* "name value name value ...". */
static hl_settings *settings_of(hl_context *ctx, const char *text)
{
    hl_settings *s = NULL;
    char name[40], value[80];
    int length;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_sde_learn_options(), &s));
    for (; sscanf(text, "%39s %79s%n", name, value, &length) == 2; text += length)
        CHECK_OK(ctx, hl_settings_set(s, name, value));
    return s;
}

static const char small[] = "iters 40 batch 16 hidden 4 components 1";

/* Callback that counts, and stops at an iteration of training, or of the choice of Gaussians. */
typedef struct counter {
    size_t choices, training, starts, stop_at, stop_choice;
    double last_loss;
} counter;

static int count(const void *report, void *user)
{
    const hl_sde_progress *p = report;
    counter *c = user;
    assert_true(p->iteration <= p->iterations);
    assert_true(p->outcome->rows == ROWS);
    if (p->phase == HL_SDE_PHASE_CHOICE) {
        c->choices++;
        return c->stop_choice && p->iteration >= c->stop_choice;
    }
    c->starts += isnan(p->loss);
    c->training += !isnan(p->loss);
    c->last_loss = p->loss;
    return c->stop_at && p->iteration >= c->stop_at;
}

static void check_same_file(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    assert_non_null(f);
    assert_non_null(g);
    int c, d;
    do {
        c = getc(f);
        d = getc(g);
        assert_int_equal(c, d);
    } while (c != EOF);
    fclose(f);
    fclose(g);
}

/* ---- stopping and going on ---- */

static void test_resume(void **state)
{
    static observations o;
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    const char *const texts[] = { small, "iters 40 batch 16 hidden 4 method pseudo-ml", "iters 20 batch 16 hidden 4" };
    simulate(&o, 1);
    for (size_t i = 0; i < 3; i++) {
        hl_settings *s = settings_of(ctx, texts[i]);
        hl_sde_observations data = data_of(&o, 1, true);
        hl_sde *whole = NULL, *part = NULL;
        hl_sde_outcome *outcome = NULL;
        counter all = { 0 };
        CHECK_OK(ctx, hl_sde_learn(ctx, &data, s, &(hl_job){ .progress = count, .user = &all }, &whole, &outcome));
        size_t iterations = i == 2 ? 20 : 40, at = 1 + (size_t)((double)iterations * hl_random_uniform(3, 0, i) * 0.9);
        assert_int_equal(all.training, iterations);
        assert_int_equal(all.starts, 1);
        assert_int_equal(all.choices, i == 2 ? 4 * 20 : 0);
        assert_int_equal(outcome->components_chosen, i == 2);
        assert_int_equal(outcome->iterations, iterations);
        assert_int_equal(outcome->judged, 1);
        CHECK_OK(ctx, hl_sde_save(whole, "whole"));
        hl_sde_outcome_free(outcome);
        hl_job job = { .progress = count, .user = &(counter){ .stop_at = at }, .checkpoint = "ckpt" };
        CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, s, &job, &part, &outcome), HL_STOPPED);
        assert_non_null(part); /* what there is so far */
        assert_int_equal(outcome->iterations, at);
        assert_int_equal(outcome->judged, 0);
        hl_sde_free(part);
        hl_sde_outcome_free(outcome);
        counter rest = { 0 };
        job.user = &rest;
        job.resume = 1;
        CHECK_OK(ctx, hl_sde_learn(ctx, &data, s, &job, &part, &outcome));
        assert_int_equal(rest.training, iterations - at);
        assert_int_equal(rest.choices, 0); /* the checkpoint knows the number of Gaussians */
        assert_int_equal(outcome->first, at);
        CHECK_OK(ctx, hl_sde_save(part, "part"));
        check_same_file("whole", "part");
        hl_sde_free(part);
        part = NULL;
        hl_sde_outcome_free(outcome);
        CHECK_OK(ctx, hl_settings_set(s, "lr", "0.01")); /* of another run */
        CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, s, &job, &part, &outcome), HL_ERR_INVALID);
        assert_non_null(strstr(hl_context_message(ctx), "other settings or data: it has 'lr 0.002"));
        assert_null(part);
        hl_sde_outcome_free(outcome);
        hl_settings_free(s);
        hl_sde_free(whole);
    }
    test_context_free(ctx, NULL);
}

static int stop_now(void *user)
{
    return *(int *)user;
}

static void test_stop(void **state)
{
    static observations o;
    (void)state;
    int now = 0;
    hl_context *ctx = NULL;
    CHECK_OK(NULL, hl_context_create(&(hl_context_options){ .stop = stop_now, .user = &now }, &ctx));
    hl_settings *s = settings_of(ctx, "iters 20 batch 16 hidden 4");
    simulate(&o, 1);
    hl_sde_observations data = data_of(&o, 1, true);
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    counter c = { .stop_choice = 5 };
    hl_job job = { .progress = count, .user = &c };
    CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, s, &job, &sde, &outcome), HL_STOPPED);
    assert_int_equal(c.choices, 5);
    assert_null(sde); /* training had not begun */
    hl_sde_outcome_free(outcome);
    now = 1; /* the context's own way */
    CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, s, NULL, &sde, &outcome), HL_STOPPED);
    assert_null(sde);
    hl_sde_outcome_free(outcome);
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* ---- data ---- */

/* The same rows in another order are the same data. */
static void test_order(void **state)
{
    static observations o, mixed;
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_settings *s = settings_of(ctx, small);
    simulate(&o, 1);
    for (size_t r = 0; r < ROWS; r++) {
        size_t to = r % TIMES * PATHS + r / TIMES; /* by time */
        mixed.t[to] = o.t[r];
        mixed.x[to] = o.x[r];
        mixed.trajectory[to] = 10 * o.trajectory[r] + 3;
    }
    const observations *const sets[] = { &o, &mixed };
    static const char *const files[] = { "a", "b" }, *const names[] = { "level", "when" };
    for (size_t i = 0; i < 2; i++) {
        hl_sde_observations data = data_of(sets[i], 1, true);
        hl_sde *sde = NULL;
        data.names = names;
        CHECK_OK(ctx, hl_sde_learn(ctx, &data, s, NULL, &sde, NULL));
        assert_string_equal(hl_sde_name(sde, 0), "level");
        assert_string_equal(hl_sde_name(sde, 1), "when");
        CHECK_OK(ctx, hl_sde_save(sde, files[i]));
        hl_sde_free(sde);
    }
    check_same_file("a", "b");
    hl_settings_free(s);
    test_context_free(ctx, NULL);
}

/* Learn, which ends with `status`, and find a finding of this kind; the outcome must be freed. */
static hl_sde_finding find(hl_context *ctx, const hl_sde_observations *data, const char *text, hl_status status,
                           hl_sde_finding_kind kind, hl_sde_outcome **outcome)
{
    hl_settings *s = settings_of(ctx, text);
    hl_sde *sde = NULL;
    char sentence[500];
    CHECK_STATUS(ctx, hl_sde_learn(ctx, data, s, NULL, &sde, outcome), status);
    assert_true((status == HL_OK) == (sde != NULL));
    hl_sde_free(sde);
    hl_settings_free(s);
    for (size_t k = 0; k < (*outcome)->findings; k++) {
        assert_non_null(hl_sde_finding_name((*outcome)->finding[k].kind));
        CHECK(*hl_sde_finding_text(*outcome, k, sentence, sizeof sentence), "a finding has a sentence");
        if ((*outcome)->finding[k].kind == kind)
            return (*outcome)->finding[k];
    }
    fail_msg("no finding '%s'", hl_sde_finding_name(kind));
    return (hl_sde_finding){ 0 };
}

static void test_findings(void **state)
{
    static observations o;
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_outcome *outcome = NULL;
    char sentence[100];
    simulate(&o, 2);
    for (size_t r = 0; r < ROWS; r++)
        o.x[2 * r + 1] = -7;
    hl_sde_observations data = data_of(&o, 2, true);
    hl_sde_finding f = find(ctx, &data, small, HL_ERR_INVALID, HL_SDE_FINDING_CONSTANT, &outcome);
    assert_int_equal(f.column, 1);
    assert_true(f.fatal && f.value == -7 && outcome->findings == 1);
    assert_string_equal(hl_sde_finding_text(outcome, 0, sentence, sizeof sentence),
                        "column 'x2' is constant (-7); remove it with option columns");
    assert_string_equal(hl_context_message(ctx), sentence);
    hl_sde_outcome_free(outcome);
    for (size_t r = 0; r < ROWS; r++)
        o.x[2 * r] = 1e300;
    find(ctx, &data, small, HL_ERR_INVALID, HL_SDE_FINDING_CONSTANT, &outcome);
    assert_int_equal(outcome->findings, 2); /* all of them */
    hl_sde_outcome_free(outcome);
    static const double units[][2] = {
        { 1e-200, 1 }, { 1e200, 1 }, { 1, 1e-300 }, { 1, 1e300 }
    }; /* of x and of time */
    for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
        simulate(&o, 1);
        for (size_t r = 0; r < ROWS; r++) {
            o.x[r] *= units[k][0];
            o.t[r] *= units[k][1];
        }
        data = data_of(&o, 1, true);
        hl_settings *s = settings_of(ctx, small);
        hl_sde *none = NULL;
        CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, s, NULL, &none, &outcome), HL_ERR_INVALID);
        assert_non_null(strstr(hl_context_message(ctx),
                               units[k][1] == 1
                                   ? "column 'x1' is too small or too large to compute with: its standard deviation is"
                                   : "column 't' is too small or too large to compute with: its times are 0 to"));
        assert_null(none);
        hl_settings_free(s);
        hl_sde_outcome_free(outcome);
    }
    simulate(&o, 1);
    data = data_of(&o, 1, false); /* snapshots */
    f = find(ctx, &data, "method pseudo-ml", HL_ERR_INVALID, HL_SDE_FINDING_TIME_ORDER, &outcome);
    assert_true(f.row == TIMES && f.value == 0 && fabs(f.other - 0.8) < 1e-12);
    hl_sde_outcome_free(outcome);
    data = data_of(&o, 1, true);
    o.t[23] = o.t[22];
    f = find(ctx, &data, small, HL_ERR_INVALID, HL_SDE_FINDING_TIME_ORDER, &outcome);
    assert_int_equal(f.row, 23);
    hl_sde_outcome_free(outcome);
    for (size_t r = 0; r < ROWS; r++)
        o.trajectory[r] = r;
    f = find(ctx, &data, "method pseudo-ml", HL_ERR_INVALID, HL_SDE_FINDING_NO_STEPS, &outcome);
    hl_sde_outcome_free(outcome);
    for (size_t r = 0; r < ROWS; r++)
        o.t[r] = 4;
    f = find(ctx, &data, small, HL_ERR_INVALID, HL_SDE_FINDING_SAME_TIMES, &outcome);
    assert_true(f.value == 4);
    hl_sde_outcome_free(outcome);
    test_context_free(ctx, NULL);
}

/* A time that is far from all others. */
/* Steps of strongly correlated columns: Euler's error is no error of the drift. */
static void test_correlated_steps(void **state)
{
    enum { WIDE = 300, LONG = 20, SUB = 30 };
    static double t[WIDE * LONG], x[2 * WIDE * LONG];
    static size_t trajectory[WIDE * LONG];
    const double h = 2. / (LONG - 1) / SUB, correlation = 0.95, rest = sqrt(1 - correlation * correlation);
    hl_context *ctx = test_context(NULL, 1);
    for (size_t p = 0, row = 0; p < WIDE; p++) {
        double a = 2 + 0.3 * hl_random_normal(3, 0, p), b = -1 + 0.3 * hl_random_normal(3, 1, p);
        for (size_t k = 0; k < LONG; k++, row++) {
            t[row] = (double)k * SUB * h;
            trajectory[row] = p;
            x[2 * row] = a;
            x[2 * row + 1] = b;
            for (size_t step = 0; step < SUB; step++) {
                double v = hl_random_normal(4, 0, row * SUB + step), w = hl_random_normal(4, 1, row * SUB + step);
                double fa = -1.2 * a + 0.3, fb = -0.6 * b + 0.4 * a;
                a += fa * h + 0.6 * sqrt(h) * v;
                b += fb * h + 0.4 * sqrt(h) * (correlation * v + rest * w);
            }
        }
    }
    const hl_sde_observations data = { .rows = WIDE * LONG, .dim = 2, .t = t, .x = x, .trajectory = trajectory };
    hl_settings *s = settings_of(ctx, "iters 40 components 1 bands 0");
    hl_sde_outcome *outcome = NULL;
    hl_sde *sde = NULL;
    CHECK_OK(ctx, hl_sde_learn(ctx, &data, s, NULL, &sde, &outcome));
    hl_verdict v = outcome->verdict;
    (void)state;
    CHECK_LE(v.test[HL_RESIDUAL_DRIFT].effect, 0.1, "missing drift");
    CHECK_LE(v.test[HL_RESIDUAL_DIFFUSION].effect, 0.1, "missing diffusion");
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
    hl_settings_free(s);
    hl_context_free(ctx);
}

static void test_gap(void **state)
{
    static observations o;
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_outcome *outcome = NULL;
    simulate(&o, 1);
    o.t[7 * TIMES - 1] = 180;
    hl_sde_observations data = data_of(&o, 1, true);
    hl_sde_finding f = find(ctx, &data, "iters 5 hidden 4 components 1", HL_OK, HL_SDE_FINDING_TIME_GAP, &outcome);
    assert_int_equal(f.row, 7 * TIMES - 1);
    assert_int_equal(f.column, 1);
    CHECK_NEAR(f.value, 179.2, 1e-9, "its length");
    CHECK_NEAR(f.other, 179.2 / 180, 1e-9, "its share");
    hl_sde_outcome_free(outcome);
    test_context_free(ctx, NULL);
}

/* What the data do not say: too few trajectories, and no movement. */
static void test_identification(void **state)
{
    static observations o;
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_sde_outcome *outcome = NULL;
    simulate(&o, 1);
    hl_sde_observations data = data_of(&o, 1, true);
    data.rows = 9 * TIMES;
    hl_sde_finding f =
        find(ctx, &data, "iters 5 hidden 4", HL_OK, HL_SDE_FINDING_METHOD, &outcome); /* not set: chosen */
    assert_true(f.value == 9 && !f.fatal && outcome->method == HL_SDE_PSEUDO_LIKELIHOOD && outcome->method_chosen);
    hl_sde_outcome_free(outcome);
    f = find(ctx, &data, "iters 5 method fp", HL_ERR_INVALID, HL_SDE_FINDING_FEW_TRAJECTORIES, &outcome);
    assert_true(f.value == 9 && f.fatal && outcome->method == HL_SDE_FOKKER_PLANCK && !outcome->method_chosen);
    hl_sde_outcome_free(outcome);
    f = find(ctx, &data, "iters 5 hidden 4 anyway on components 1", HL_OK, HL_SDE_FINDING_FEW_TRAJECTORIES, &outcome);
    assert_true(!f.fatal && outcome->method == HL_SDE_FOKKER_PLANCK); /* a setting of matching asks for it */
    hl_sde_outcome_free(outcome);
    for (size_t r = 0; r < ROWS; r++)
        o.x[r] = hl_random_normal(1, 2, r);
    data.rows = ROWS;
    f = find(ctx, &data, "iters 5 form network", HL_ERR_INVALID, HL_SDE_FINDING_STATIONARY, &outcome);
    CHECK_LE(f.value, 0.01, "movement");
    hl_sde_outcome_free(outcome);
    f = find(ctx, &data, "iters 5 hidden 4 components 1 known-diffusion x1=1", HL_OK, HL_SDE_FINDING_STATIONARY,
             &outcome);
    assert_false(f.fatal);
    hl_sde_outcome_free(outcome);
    test_context_free(ctx, NULL);
}

/* ---- wrong calls, and memory ---- */

static void test_wrong(void **state)
{
    static observations o;
    (void)state;
    static const struct {
        const char *settings, *message;
    } wrong[] = {
        { "method pseudo-ml lambda 1", "option 'lambda' has no effect with method=pseudo-ml" },
        { "method pseudo-ml between 0", "option 'between'" },
        { "method pseudo-ml anyway on", "option 'anyway'" },
        { "variance-floor 1e-3", "option 'variance-floor' has no effect with method=fp" },
        { "density flow components 3", "option 'components' has no effect with density=flow" },
        { "flows 2", "option 'flows'" },
        { "known-drift y=1", "known-drift: 'y=1' does not begin with a column" },
        { "known-diffusion x1=-1", "known-diffusion: 'x1=-1' is not a number" },
    };
    hl_context *ctx = test_context(NULL, 1);
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    hl_settings *s;
    simulate(&o, 1);
    hl_sde_observations data = data_of(&o, 1, true);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        s = settings_of(ctx, wrong[i].settings);
        CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, s, NULL, &sde, &outcome), HL_ERR_INVALID);
        CHECK(strstr(hl_context_message(ctx), wrong[i].message), hl_context_message(ctx));
        assert_null(sde);
        hl_sde_outcome_free(outcome);
        hl_settings_free(s);
    }
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, s, NULL, &sde, &outcome), HL_ERR_INVALID); /* of another job */
    hl_settings_free(s);
    assert_null(outcome);
    CHECK_STATUS(ctx, hl_sde_learn(ctx, NULL, NULL, NULL, &sde, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, NULL, NULL, NULL, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_learn(NULL, &data, NULL, NULL, &sde, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, NULL, &(hl_job){ .resume = 1 }, &sde, NULL), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, NULL, &(hl_job){ .resume = 1, .checkpoint = "none" }, &sde, NULL),
                 HL_ERR_IO);
    o.x[17] = NAN;
    CHECK_STATUS(ctx, hl_sde_learn(ctx, &data, NULL, NULL, &sde, NULL), HL_ERR_NOT_FINITE);
    assert_string_equal(hl_context_message(ctx), "row 17, value 0: not finite");
    assert_int_equal(*hl_sde_finding_text(NULL, 0, (char[8]){ 1 }, 8), 0);
    assert_null(hl_sde_finding_name((hl_sde_finding_kind)99));
    test_context_free(ctx, NULL);
}

static hl_status learn_all(hl_context *ctx, void *user)
{
    hl_sde_observations data = data_of(user, 1, true);
    hl_settings *s = NULL;
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    hl_status status = hl_settings_create(ctx, hl_sde_learn_options(), &s);
    static const char *const set[][2] = { { "iters", "2" },          { "batch", "4" },
                                          { "hidden", "2" },         { "components", "1" },
                                          { "known-drift", "x1=1" }, { "known-diffusion", "x1=1" } };
    for (size_t i = 0; i < sizeof set / sizeof *set && status == HL_OK; i++)
        status = hl_settings_set(s, set[i][0], set[i][1]);
    if (status == HL_OK)
        status = hl_sde_learn(ctx, &data, s, &(hl_job){ .checkpoint = "memory" }, &sde, &outcome);
    assert_true((status == HL_OK) == (sde != NULL));
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
    hl_settings_free(s);
    return status;
}

static void test_memory(void **state)
{
    static observations o;
    (void)state;
    simulate(&o, 1);
    check_every_allocation(1, learn_all, &o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_resume, empty_directory),
        cmocka_unit_test_teardown(test_stop, empty_directory),
        cmocka_unit_test_teardown(test_order, empty_directory),
        cmocka_unit_test_teardown(test_findings, empty_directory),
        cmocka_unit_test(test_correlated_steps),
        cmocka_unit_test_teardown(test_gap, empty_directory),
        cmocka_unit_test_teardown(test_identification, empty_directory),
        cmocka_unit_test_teardown(test_wrong, empty_directory),
        cmocka_unit_test_teardown(test_memory, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
