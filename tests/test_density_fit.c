/* hl_density_fit: findings, the outcome, stopping and going on, settings of zero, memory. */
#include "support.h"

#include "directory.h"
#include "hollow/density_fit.h"

enum { ROWS = 300, DIM = 2 };

/* Settings of a training that takes a moment, and others after them: name, value, ..., NULL. */
static hl_settings *small_settings(hl_context *ctx, const char *const *more)
{
    static const char *const small[] = { "members",   "flow",  "iters",    "40",       "batch", "32",     "hidden",
                                         "8",         "width", "8",        "features", "4",     "layers", "1",
                                         "ode-steps", "2",     "patience", "100",      NULL };
    hl_settings *s = NULL;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    for (size_t i = 0; small[i]; i += 2)
        CHECK_OK(ctx, hl_settings_set(s, small[i], small[i + 1]));
    for (size_t i = 0; more && more[i]; i += 2)
        CHECK_OK(ctx, hl_settings_set(s, more[i], more[i + 1]));
    return s;
}

/* A bent band. */
static void draw(double *x, size_t rows, uint64_t seed)
{
    for (size_t r = 0; r < rows; r++) {
        x[2 * r] = hl_random_normal(seed, 0, r);
        x[2 * r + 1] = 100 * (0.5 * hl_random_normal(seed, 1, r) + x[2 * r] * x[2 * r]);
    }
}

static hl_context *context(void)
{
    hl_context *ctx = NULL;
    assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
    return ctx;
}

/* The log-densities of two models of the same data are the same bits. */
static void check_same(hl_context *ctx, hl_density *a, hl_density *b, const double *x, size_t rows)
{
    double p[ROWS], q[ROWS];
    CHECK_OK(ctx, hl_density_logp(a, rows, x, NULL, p));
    CHECK_OK(ctx, hl_density_logp(b, rows, x, NULL, q));
    assert_memory_equal(p, q, rows * sizeof *p);
}

/* ---- the call ---- */

/* Defaults alone, by rows and columns, give a density in the units of the data that is better than a normal one. */
static void a_table_becomes_a_model(void **state)
{
    (void)state;
    hl_context *ctx = context();
    static const char *const names[] = { "first", "second" };
    double x[ROWS * DIM], fresh[ROWS * DIM], logp[ROWS], mean = 0;
    draw(x, ROWS, 1);
    draw(fresh, ROWS, 2);
    hl_settings *s = small_settings(ctx, (const char *const[]){ "iters", "200", NULL });
    hl_density_data data = { .dim = DIM, .names = names, .train = { .rows = ROWS, .x = x } };
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    assert_string_equal(hl_density_get_column(model, 1).name, "second");
    assert_int_equal(o->verdict, HL_DENSITY_GOOD);
    assert_int_equal(o->end, HL_DENSITY_END_DONE);
    assert_int_equal(o->train_rows, ROWS - ROWS / 10);
    assert_int_equal(o->valid_rows, ROWS / 10);
    assert_int_equal(o->iteration, 200);
    assert_int_equal(o->findings, 0);
    CHECK_LE(o->best, o->normal, "better than normal columns");
    CHECK_OK(ctx, hl_density_logp(model, ROWS, fresh, NULL, logp));
    for (size_t r = 0; r < ROWS; r++)
        mean -= logp[r] / ROWS;
    CHECK_NEAR(mean, o->best, 0.5, "validation is in the units of the data");
    hl_density_outcome_free(o);
    hl_density_free(model);
    /* Without settings, job and outcome, and with rows of its own for validation. */
    data.names = NULL;
    data.valid = (hl_density_rows){ .rows = 20, .x = fresh };
    CHECK_OK(ctx, hl_settings_set(s, "iters", "20"));
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL));
    assert_string_equal(hl_density_get_column(model, 1).name, "x2");
    hl_density_free(model);
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* Half of the iterations more while validation falls; and what the callback and the outcome say of it. */
static int count_total(const void *progress, void *user)
{
    const hl_density_progress *p = progress;
    *(size_t *)user = p->iterations;
    return 0;
}

static int stop_at_start(const void *progress, void *user)
{
    const hl_density_progress *p = progress;
    snprintf(user, 2000, "%s", p->so_far && p->phase != HL_FIT_MIXING ? p->so_far->settings : "");
    return p->phase != HL_FIT_MIXING;
}

static void a_schedule_is_extended(void **state)
{
    (void)state;
    hl_context *ctx = context();
    double x[ROWS * DIM];
    draw(x, ROWS, 1);
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    for (size_t n = 0; n < 3; n++) {
        static const char *const given[] = { "0", "1", "2" };
        hl_settings *s = small_settings(ctx, n ? (const char *const[]){ "extensions", given[n], NULL } : NULL);
        hl_density *model = NULL;
        hl_density_outcome *o = NULL;
        size_t total = 0;
        hl_job job = { .progress = count_total, .user = &total };
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, &job, &model, &o));
        assert_int_equal(o->extensions, n);
        assert_int_equal(o->iterations, 40 + 20 * n);
        assert_int_equal(o->iteration, 40 + 20 * n);
        assert_int_equal(total, 40 + 20 * n);
        assert_int_equal(o->end, HL_DENSITY_END_DONE);
        hl_density_outcome_free(o);
        hl_density_free(model);
        hl_settings_free(s);
    }
    /* Not if the mixtures are better all the same. */
    hl_settings *beside = small_settings(ctx, (const char *const[]){ "members", "all", "extensions", "2", NULL });
    hl_density *whole = NULL;
    hl_density_outcome *after = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, beside, NULL, &whole, &after));
    CHECK(after->mixture < after->flow, "the mixtures are better");
    assert_int_equal(after->extensions, 0);
    assert_int_equal(after->iteration, 40);
    hl_density_outcome_free(after);
    hl_density_free(whole);
    hl_settings_free(beside);
    /* Without a number of iterations from the user, unless it is to be fast. */
    static const char *const wishes[][2] = {
        { "seed", "0" }, { "recipe", "best" }, { "recipe", "fast" }, { "iters", "500" }
    };
    for (size_t n = 0; n < 4; n++) {
        char text[2000] = "";
        hl_settings *s = NULL;
        CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
        CHECK_OK(ctx, hl_settings_set(s, "members", "flow"));
        CHECK_OK(ctx, hl_settings_set(s, wishes[n][0], wishes[n][1]));
        hl_density *model = NULL;
        hl_job job = { .progress = stop_at_start, .user = text };
        CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &model, NULL), HL_STOPPED);
        assert_int_equal(strstr(text, " extensions 2") != NULL, n < 2);
        assert_int_equal(strstr(text, "extensions") != NULL, n < 2);
        hl_density_free(model);
        hl_settings_free(s);
    }
    hl_context_free(ctx);
}

/* Normal columns: a flow has nothing to learn, and in a brief trial the smaller of two rates does less harm. That is no reason to train with it. */
static void a_calm_trial_keeps_the_rate(void **state)
{
    (void)state;
    enum { MANY = 2500 };
    static double x[MANY * DIM];
    hl_context *ctx = context();
    char text[2000] = "";
    for (size_t i = 0; i < MANY * DIM; i++)
        x[i] = 100 * hl_random_normal(3, 0, i);
    hl_density_data data = { .dim = DIM, .train = { .rows = MANY, .x = x } };
    hl_settings *s =
        small_settings(ctx, (const char *const[]){ "members", "all", "iters", "500", "recipe", "fast", NULL });
    hl_density *model = NULL;
    hl_job job = { .progress = stop_at_start, .user = text };
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &model, NULL), HL_STOPPED);
    assert_non_null(strstr(text, " lr 0.01 "));
    hl_density_free(model);
    hl_settings_free(s);
    hl_context_free(ctx);
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    hl_context *ctx = context();
    double x[ROWS * DIM];
    draw(x, ROWS, 1);
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    CHECK_STATUS(ctx, hl_density_fit(ctx, NULL, NULL, NULL, &model, &o), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, NULL, &(hl_job){ .resume = 1 }, &model, &o), HL_ERR_INVALID);
    data.train.rows = 9;
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, NULL, NULL, &model, NULL), HL_ERR_INVALID);
    data.train.rows = ROWS;
    data.context = 1;
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, NULL, NULL, &model, NULL), HL_ERR_INVALID);
    data.context = 0;
    x[7] = NAN;
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, NULL, NULL, &model, &o), HL_ERR_NOT_FINITE);
    CHECK(strstr(hl_context_message(ctx), "row 4, column 'x2'"), hl_context_message(ctx));
    hl_density_outcome_free(o);
    x[7] = 0;
    hl_settings *s = small_settings(ctx, (const char *const[]){ "model", "maf", NULL });
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL), HL_ERR_INVALID);
    hl_settings_free(s);
    assert_null(model);
    hl_context_free(ctx);
}

/* ---- findings ---- */

static const hl_finding *find(const hl_density_outcome *o, hl_finding_kind kind, size_t column)
{
    for (size_t i = 0; i < o->findings; i++)
        if (o->finding[i].kind == kind && o->finding[i].column == column)
            return &o->finding[i];
    return NULL;
}

/* Columns: normal, whole numbers, tied, with a far value in row 77, twice the first less the third; the context is normal. */
enum { WIDE = 5 };
static void draw_odd(double *x, double *c)
{
    for (size_t r = 0; r < ROWS; r++) {
        double *row = x + r * WIDE;
        row[0] = hl_random_normal(5, 0, r);
        row[1] = floor(4 * hl_random_normal(5, 1, r));
        row[2] = 0.25 * floor(4 * hl_random_normal(5, 2, r)) + 0.1;
        row[3] = r == 77 ? 1e6 : hl_random_normal(5, 3, r);
        row[4] = 2 * row[0] - row[2];
        c[r] = hl_random_normal(5, 4, r);
    }
}

static void what_is_odd_is_found(void **state)
{
    (void)state;
    hl_context *ctx = context();
    static double x[ROWS * WIDE], c[ROWS];
    draw_odd(x, c);
    hl_settings *s = small_settings(ctx, (const char *const[]){ "iters", "2", "keep-steps", "on", NULL });
    hl_density_data data = { .dim = WIDE, .context = 1, .train = { .rows = ROWS, .x = x, .context = c } };
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    assert_non_null(find(o, HL_FINDING_INTEGER, 1));
    assert_non_null(find(o, HL_FINDING_TIED, 2));
    const hl_finding *far = find(o, HL_FINDING_FAR, 3), *dependent = find(o, HL_FINDING_DEPENDENT, 4);
    assert_non_null(far);
    assert_int_equal(far->row, 77);
    assert_int_equal(far->count, 1);
    assert_true(far->value == 1e6);
    CHECK_NEAR(far->low, -0.67, 0.3, "lower quartile");
    CHECK_NEAR(far->high, 0.67, 0.3, "upper quartile");
    assert_non_null(dependent);
    assert_int_equal(dependent->count, 2);
    assert_int_equal(dependent->others[0], 0);
    assert_int_equal(dependent->others[1], 2);
    assert_int_equal(o->findings, 4);
    hl_density_free(model);
    hl_density_outcome_free(o);
    /* Noise makes columns of steps continuous: nothing to warn of. */
    CHECK_OK(ctx, hl_settings_set(s, "dequantize", "on"));
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o), HL_ERR_INVALID); /* both options */
    hl_density_outcome_free(o);
    CHECK_OK(ctx, hl_settings_set(s, "keep-steps", NULL));
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    assert_null(find(o, HL_FINDING_INTEGER, 1));
    assert_null(find(o, HL_FINDING_TIED, 2));
    assert_null(find(o, HL_FINDING_DEPENDENT, 4));
    hl_density_free(model);
    hl_density_outcome_free(o);
    /* All columns that cannot be modelled, at once; of the context, too. */
    for (size_t r = 0; r < ROWS; r++) {
        x[r * WIDE + 1] = 7.5;
        x[r * WIDE + 3] *= 1e200;
        c[r] = -1;
    }
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o), HL_ERR_INVALID);
    assert_null(model);
    assert_non_null(find(o, HL_FINDING_CONSTANT, 1));
    assert_true(find(o, HL_FINDING_CONSTANT, 1)->value == 7.5);
    assert_non_null(find(o, HL_FINDING_CONSTANT, WIDE));
    assert_non_null(find(o, HL_FINDING_SCALE, 3));
    CHECK_LE(1e140, find(o, HL_FINDING_SCALE, 3)->value, "deviation");
    hl_density_outcome_free(o);
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* A value in two fifths of the rows, another in one of fifty; validation rows that are training rows, too. Neither is found where it is not. */
/* A column of few values on a grid, not of whole numbers, is dequantised as these are, unless steps are to be kept. */
static void few_values_on_a_grid_get_noise(void **state)
{
    (void)state;
    enum { GRADED = 600 };
    hl_context *ctx = context();
    static double x[2 * GRADED];
    for (size_t r = 0; r < GRADED; r++) {
        x[2 * r] = hl_random_normal(8, 0, r);
        x[2 * r + 1] = 36.5 + 0.1 * floor(5 * hl_random_normal(8, 1, r) + 0.5);
    }
    hl_settings *s = small_settings(ctx, (const char *const[]){ "members", "mixture", NULL });
    hl_density_data data = { .dim = 2, .train = { .rows = GRADED, .x = x } };
    for (int keep = 0; keep < 2; keep++) {
        hl_density *model = NULL;
        hl_density_outcome *o = NULL;
        char text[400];
        CHECK_OK(ctx, hl_settings_set(s, "keep-steps", keep ? "on" : "off"));
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
        const hl_finding *f = find(o, HL_FINDING_TIED, 1);
        assert_non_null(f);
        assert_int_equal(f->noise, keep ? -1 : 1);
        hl_finding_text(f, (const char *const[]){ "a", "t" }, text, sizeof text);
        CHECK((strstr(text, "on a grid: uniform noise of width one step is added") != NULL) == !keep, text);
        CHECK((strstr(text, "on a grid, so the likelihood is unbounded; without option keep-steps") != NULL) == keep,
              text);
        hl_density_free(model);
        hl_density_outcome_free(o);
    }
    hl_settings_free(s);
    hl_context_free(ctx);
}

static void repeated_values_and_rows_are_found(void **state)
{
    (void)state;
    hl_context *ctx = context();
    double x[ROWS * DIM];
    hl_settings *s =
        small_settings(ctx, (const char *const[]){ "iters", "2", "members", "mixture", "atoms", "off", NULL });
    for (int odd = 0; odd < 2; odd++) {
        draw(x, ROWS, 1);
        for (size_t r = 0; r < ROWS && odd; r++)
            x[r * DIM + 1] = r % 5 < 2 ? 0 : x[r * DIM + 1];
        for (size_t r = 0; r < ROWS && odd; r++)
            x[r * DIM] = r % 50 == 0 ? 0.25 : x[r * DIM];
        hl_density_data data = { .dim = DIM, .train = { .rows = ROWS - 50 * !odd, .x = x } };
        data.valid = (hl_density_rows){ .rows = 50, .x = x + (ROWS - 50) * DIM };
        hl_density *model = NULL;
        hl_density_outcome *o = NULL;
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
        assert_int_equal(o->findings, 3 * odd);
        if (odd) {
            const hl_finding *repeated = find(o, HL_FINDING_REPEATED, 1), *copies = find(o, HL_FINDING_COPIES, DIM);
            assert_non_null(repeated);
            assert_int_equal(repeated->count, 2 * ROWS / 5);
            repeated = find(o, HL_FINDING_REPEATED, 0);
            assert_non_null(repeated); /* of 2 % of the rows, too */
            assert_int_equal(repeated->count, ROWS / 50);
            repeated = find(o, HL_FINDING_REPEATED, 1);
            assert_true(repeated->value == 0);
            assert_non_null(copies);
            assert_int_equal(copies->count, 50);
            assert_true(copies->value == 1);
        }
        hl_density_free(model);
        hl_density_outcome_free(o);
    }
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* ---- progress, stop, resume ---- */

typedef struct watch {
    size_t reports, stop_at, first, validated; /* stop_at: SIZE_MAX never */
    double last_best, loss;
    bool in_order, timed;
} watch;

static int look(const void *report, void *user)
{
    const hl_density_progress *p = report;
    watch *w = user;
    if (p->phase == HL_FIT_MIXING)
        return 0;
    if (w->reports++ == 0) {
        w->first = p->iteration;
        w->in_order = p->phase == HL_FIT_START && p->so_far->train_rows == ROWS - ROWS / 10;
        return w->stop_at == 0;
    }
    w->in_order = w->in_order && p->phase != HL_FIT_START && p->iteration == w->first + w->reports - 1;
    w->validated += p->validated != 0;
    w->last_best = p->best;
    w->loss = p->phase == HL_FIT_LIKELIHOOD ? p->loss : w->loss;
    w->timed = p->seconds_left >= 0;
    return p->iteration >= w->stop_at;
}

/* Stopped at any iteration, before the first as well, and resumed, a fit ends in the same bits. What it has when it is stopped is a
 * model. */
/* Five copies of every row give the model of the rows once. Some copies are joined and told; equal rows of ratings and of zeros are not copies. */
static void copies_stay_together(void **state)
{
    (void)state;
    enum { DIFFER = ROWS / 5 };
    hl_context *ctx = context();
    double x[ROWS * DIM];
    hl_settings *s = small_settings(ctx, (const char *const[]){ "members", "mixture", "atoms", "off", NULL });
    hl_density *model[2] = { NULL };
    hl_density_outcome *o = NULL;
    draw(x, DIFFER, 1);
    for (size_t r = DIFFER; r < ROWS; r++)
        memcpy(x + r * DIM, x + r % DIFFER * DIM, DIM * sizeof *x);
    hl_density_data data = { .dim = DIM, .train = { .rows = DIFFER, .x = x } };
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model[0], NULL));
    data.train.rows = ROWS;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model[1], &o));
    check_same(ctx, model[0], model[1], x, DIFFER);
    const hl_finding *f = find(o, HL_FINDING_DUPLICATES, DIM);
    assert_non_null(f);
    assert_int_equal(f->count, ROWS - DIFFER);
    assert_int_equal(o->findings, 1);
    assert_int_equal(o->train_rows + o->valid_rows, DIFFER);
    hl_density_outcome_free(o);
    hl_density_free(model[1]);
    draw(x, ROWS, 1);
    for (size_t r = ROWS - 30; r < ROWS; r++) /* a far value behind copies is told by its place in the table */
        memcpy(x + r * DIM, x + (r - 50) * DIM, DIM * sizeof *x);
    x[(ROWS - 1) * DIM] = 1e6;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model[1], &o));
    f = find(o, HL_FINDING_DUPLICATES, DIM);
    assert_true(f && f->count == 29 && find(o, HL_FINDING_FAR, 0)->row == ROWS - 1);
    hl_density_outcome_free(o);
    hl_density_free(model[1]);
    for (int zeros = 0; zeros < 2; zeros++) {
        draw(x, ROWS, 1);
        for (size_t r = 0; r < ROWS; r++)
            for (size_t i = 0; i < DIM && (!zeros || r % 10 == 0); i++)
                x[r * DIM + i] = zeros ? 0 : floor(x[r * DIM + i] / (i ? 100 : 0.5));
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model[1], &o));
        assert_null(find(o, HL_FINDING_DUPLICATES, DIM));
        assert_int_equal(o->train_rows + o->valid_rows, ROWS);
        hl_density_outcome_free(o);
        hl_density_free(model[1]);
    }
    hl_density_free(model[0]);
    hl_settings_free(s);
    hl_context_free(ctx);
}

static void a_stopped_fit_goes_on(void **state)
{
    (void)state;
    hl_context *ctx = context();
    static double x[ROWS * DIM];
    static const char path[] = "fit.ckpt";
    draw(x, ROWS, 1);
    hl_settings *s = small_settings(ctx, NULL);
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    hl_density *whole = NULL, *part = NULL;
    hl_density_outcome *o = NULL, *end = NULL;
    watch w = { .stop_at = SIZE_MAX };
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, &(hl_job){ .progress = look, .user = &w }, &whole, &o));
    assert_true(w.in_order && w.timed);
    assert_int_equal(w.reports, 41);
    assert_int_equal(w.validated, 20);
    assert_true(w.last_best == o->best);
    CHECK_NEAR(w.loss, o->best, 3, "losses are in the units of the data");
    for (size_t i = 0; i < 4; i++) {
        size_t at = i == 0 ? 0 : 1 + (size_t)(hl_random_uniform(9, 0, i) * 39);
        hl_job job = { .progress = look, .user = &w, .checkpoint = path };
        w = (watch){ .stop_at = at };
        CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &part, &end), HL_STOPPED);
        assert_int_equal(end->end, HL_DENSITY_END_STOPPED);
        assert_int_equal(end->iteration, at);
        assert_non_null(part); /* a model all the same */
        double logp[ROWS];
        CHECK_OK(ctx, hl_density_logp(part, ROWS, x, NULL, logp));
        hl_density_free(part);
        hl_density_outcome_free(end);
        job.resume = 1;
        w = (watch){ .stop_at = SIZE_MAX };
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, &job, &part, &end));
        assert_true(w.in_order);
        assert_int_equal(w.first, at);
        check_same(ctx, part, whole, x, ROWS);
        assert_string_equal(hl_density_note(part), hl_density_note(whole));
        assert_true(end->best == o->best && end->best_iteration == o->best_iteration);
        hl_density_free(part);
        hl_density_outcome_free(end);
    }
    /* Not with other data or settings. */
    x[0] += 1;
    hl_job job = { .checkpoint = path, .resume = 1 };
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &part, NULL), HL_ERR_INVALID);
    assert_null(part);
    hl_density_free(whole);
    hl_density_outcome_free(o);
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* The context may stop as well, in the middle of a solve, of an iteration or of a validation. */
static int countdown(void *user)
{
    long *left = user;
    return *left > 0 && --*left == 0;
}

static void a_solve_may_be_stopped(void **state)
{
    (void)state;
    long left = 0;
    static double x[ROWS * DIM];
    static const char path[] = "fit.ckpt";
    hl_context *ctx = NULL;
    hl_density *whole = NULL, *part = NULL;
    hl_density_outcome *end = NULL;
    assert_int_equal(hl_context_create(&(hl_context_options){ .stop = countdown, .user = &left }, &ctx), HL_OK);
    draw(x, ROWS, 1);
    hl_settings *s = small_settings(ctx, NULL);
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &whole, NULL));
    for (long calls = 5; calls < 400; calls += 57) {
        hl_job job = { .checkpoint = path };
        left = calls;
        CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, &job, &part, &end), HL_STOPPED);
        assert_int_equal(left, 0);
        assert_int_equal(end->end, HL_DENSITY_END_STOPPED);
        assert_non_null(part);
        hl_density_free(part);
        hl_density_outcome_free(end);
        job.resume = 1;
        CHECK_OK(ctx, hl_density_fit(ctx, &data, s, &job, &part, NULL));
        check_same(ctx, part, whole, x, ROWS);
        assert_string_equal(hl_density_note(part), hl_density_note(whole));
        hl_density_free(part);
    }
    hl_density_free(whole);
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* ---- outcomes ---- */

static hl_density_outcome *fit_with(hl_context *ctx, const double *x, size_t rows, const char *const *more,
                                    hl_status expected)
{
    hl_settings *s = small_settings(ctx, more);
    hl_density_data data = { .dim = DIM, .train = { .rows = rows, .x = x } };
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o), expected);
    hl_density_free(model);
    hl_settings_free(s);
    return o;
}

/* What is not known is not a number: a table in tiny units whose training has no phase of likelihood has not diverged. */
static void verdicts_do_not_depend_on_units(void **state)
{
    (void)state;
    hl_context *ctx = context();
    static double x[ROWS * DIM];
    draw(x, ROWS, 1);
    for (size_t i = 0; i < ROWS * DIM; i++)
        x[i] *= 1e-40;
    hl_density_outcome *o = fit_with(ctx, x, ROWS, (const char *const[]){ "loss", "flow-matching", NULL }, HL_OK);
    assert_true(isnan(o->recent));
    assert_true(o->verdict == HL_DENSITY_GOOD || o->verdict == HL_DENSITY_NORMAL);
    hl_density_outcome_free(o);
    o = fit_with(ctx, x, ROWS, (const char *const[]){ "loss", "nll", NULL }, HL_OK);
    CHECK_LE(o->recent, o->normal + 10, "likelihood's loss in the units of the data");
    hl_density_outcome_free(o);
    /* The rate rises: a good model first, steps that only grow then. */
    o = fit_with(ctx, x, ROWS,
                 (const char *const[]){ "loss", "nll", "optimizer", "sgd", "lr", "3", "warmup", "40", NULL }, HL_OK);
    assert_int_equal(o->verdict, HL_DENSITY_DIVERGED);
    hl_density_outcome_free(o);
    o = fit_with(ctx, x, ROWS, (const char *const[]){ "minutes", "1e-9", NULL }, HL_OK);
    assert_int_equal(o->verdict, HL_DENSITY_UNVALIDATED);
    assert_int_equal(o->end, HL_DENSITY_END_TIME);
    hl_density_outcome_free(o);
    o = fit_with(ctx, x, ROWS, (const char *const[]){ "lr", "1", "loss", "nll", "patience", "1", NULL }, HL_OK);
    assert_int_equal(o->end, HL_DENSITY_END_PATIENCE);
    hl_density_outcome_free(o);
    hl_context_free(ctx);
}

/* Of a fit with one setting. */
static double best_with(hl_context *ctx, const double *x, const char *name, const char *value)
{
    hl_density_outcome *o = fit_with(ctx, x, ROWS, (const char *const[]){ name, value, NULL }, HL_OK);
    double best = o->best;
    hl_density_outcome_free(o);
    return best;
}

/* Zero can be set where the default is another value. */
static void zero_is_a_setting(void **state)
{
    (void)state;
    hl_context *ctx = context();
    static double x[ROWS * DIM];
    draw(x, ROWS, 1);
    double plain = best_with(ctx, x, "seed", "0");
    assert_true(best_with(ctx, x, "average", "0.99") == plain);
    assert_true(best_with(ctx, x, "average", "0") != plain);
    assert_true(best_with(ctx, x, "beta1", "0.9") == plain);
    assert_true(best_with(ctx, x, "beta1", "0") != plain);
    assert_true(best_with(ctx, x, "clip", "10") == plain);
    assert_true(best_with(ctx, x, "clip", "0.01") != plain);
    assert_true(best_with(ctx, x, "clip", "0") == best_with(ctx, x, "clip", "1e300"));
    assert_true(best_with(ctx, x, "jitter", "0") != plain);
    hl_context_free(ctx);
}

/* ---- weights ---- */

/* Rows of weight 0 are as if they were not there; validations and the fall back to a normal distribution are weighted, too. */
static void rows_have_weights(void **state)
{
    (void)state;
    hl_context *ctx = context();
    static double x[ROWS * DIM], w[ROWS], even[ROWS];
    for (size_t r = 0; r < ROWS; r++) { /* two clouds, of which the weights see the one at 10 thrice, that at -10 not */
        w[r] = r % 2 ? 3 : 0;
        even[r] = 0.125;
        for (size_t i = 0; i < DIM; i++)
            x[r * DIM + i] = (r % 2 ? 10 : -10) + hl_random_normal(4, 0, r * DIM + i);
    }
    hl_settings *s = small_settings(ctx, NULL);
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x, .weights = w } };
    hl_density *model = NULL, *plain = NULL, *same = NULL;
    hl_density_outcome *o = NULL;
    double logp[2], point[2 * DIM] = { 10, 10, -10, -10 };
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    CHECK_NEAR(hl_density_get_column(model, 0).mean, 10, 0.3, "mean of what has a weight");
    CHECK_NEAR(hl_density_get_column(model, 0).deviation, 1, 0.2, "and its deviation");
    CHECK_NEAR(o->best, 2.84, 1, "a normal cloud");
    CHECK_NEAR(o->normal, 2.84, 1, "a normal cloud");
    CHECK_OK(ctx, hl_density_logp(model, 2, point, NULL, logp));
    CHECK_LE(logp[1], logp[0] - 20, "nothing where the weights are 0");
    hl_density_free(model);
    hl_density_outcome_free(o);
    /* Equal weights of any size: an epoch has every row once, in another order of the same rows. */
    data.train.weights = even;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &same, &o));
    data.train.weights = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &plain, NULL));
    CHECK_NEAR(hl_density_get_column(same, 1).deviation, hl_density_get_column(plain, 1).deviation, 1e-9, "deviation");
    hl_density_free(same);
    hl_density_free(plain);
    hl_density_outcome_free(o);
    w[5] = -1;
    data.train.weights = w;
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_context_failure(ctx).row, 5);
    assert_int_equal(hl_context_failure(ctx).validation, 0);
    data.train.weights = even;
    data.valid = (hl_density_rows){ .rows = ROWS, .x = x, .weights = w };
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL), HL_ERR_INVALID);
    assert_int_equal(hl_context_failure(ctx).row, 5);
    assert_int_equal(hl_context_failure(ctx).validation, 1);
    data.train.weights = w;
    data.valid = (hl_density_rows){ 0 };
    memset(w, 0, sizeof w);
    CHECK_STATUS(ctx, hl_density_fit(ctx, &data, s, NULL, &model, NULL), HL_ERR_INVALID);
    hl_settings_free(s);
    hl_context_free(ctx);
}

/* ---- memory ---- */

static hl_status fit_once(hl_context *ctx, void *user)
{
    (void)user;
    static double x[60 * 3], c[60];
    static const char path[] = "fit.ckpt";
    hl_settings *s = NULL;
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    for (size_t i = 0; i < 60 * 3; i++)
        x[i] = hl_random_normal(3, 0, i) + (i % 3 ? x[i - 1] : 0);
    for (size_t i = 0; i < 60; i++)
        c[i] = floor(3 * hl_random_normal(3, 1, i));
    hl_density_data data = { .dim = 3, .context = 1, .train = { .rows = 60, .x = x, .context = c } };
    hl_status status = hl_settings_create(ctx, hl_density_fit_options(), &s);
    static const char *const set[] = {
        "members",  "flow", "iters",  "3", "batch",       "16", "hidden",           "4",  "width", "4",
        "features", "2",    "layers", "1", "decorrelate", "on", "validation-share", "0.2"
    };
    for (size_t i = 0; i < sizeof set / sizeof *set && status == HL_OK; i += 2)
        status = hl_settings_set(s, set[i], set[i + 1]);
    if (status == HL_OK)
        status = hl_density_fit(ctx, &data, s, &(hl_job){ .checkpoint = path, .save_every = 1e-9 }, &model, &o);
    if ((status == HL_OK) != (model != NULL))
        fail_msg("a model after \"%s\", or none", hl_status_text(status));
    hl_density_free(model);
    hl_density_outcome_free(o);
    hl_settings_free(s);
    return status;
}

static void memory_runs_out(void **state)
{
    (void)state;
    check_every_allocation(1, fit_once, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_becomes_a_model),
        cmocka_unit_test(a_schedule_is_extended),
        cmocka_unit_test(a_calm_trial_keeps_the_rate),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(what_is_odd_is_found),
        cmocka_unit_test(few_values_on_a_grid_get_noise),
        cmocka_unit_test(repeated_values_and_rows_are_found),
        cmocka_unit_test(copies_stay_together),
        cmocka_unit_test_teardown(a_stopped_fit_goes_on, empty_directory),
        cmocka_unit_test_teardown(a_solve_may_be_stopped, empty_directory),
        cmocka_unit_test(verdicts_do_not_depend_on_units),
        cmocka_unit_test(zero_is_a_setting),
        cmocka_unit_test(rows_have_weights),
        cmocka_unit_test_teardown(memory_runs_out, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
