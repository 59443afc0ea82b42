/* test_vae_fit.c - training of autoencoders: it learns, resumes to the same bits, and says what is wrong. */
#include "vae_support.h"

#include "hollow/vae_fit.h"

enum { SIDE = 6, DIM = SIDE * SIDE, ROWS = 200 };

/* Each image has one bright row or column, and a little noise; bits or gray values. */
static unsigned char *bars(bool gray)
{
    unsigned char *x = test_malloc(ROWS * DIM);
    for (size_t r = 0; r < ROWS; r++) {
        size_t kind = (size_t)(hl_random_bits(5, 0, r) % (2 * SIDE));
        for (size_t i = 0; i < DIM; i++) {
            bool on = kind < SIDE ? i / SIDE == kind : i % SIDE == kind - SIDE;
            bool flip = hl_random_uniform(5, 1, r * DIM + i) < 0.03;
            x[r * DIM + i] = gray ? (on ? 230 : 10) : on != flip;
        }
    }
    return x;
}

typedef struct options {
    const char *name, *text;
} option;

static hl_settings *settings_of(hl_context *ctx, const option *o)
{
    hl_settings *s;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_vae_fit_options(), &s));
    for (; o->name; o++)
        CHECK_OK(ctx, hl_settings_set(s, o->name, o->text));
    return s;
}

typedef struct watch {
    size_t stop_at, seen; /* an iteration */
    double first, last;   /* validations */
} watch;

static int progress(const void *report, void *user)
{
    const hl_vae_progress *p = report;
    watch *w = user;
    w->seen = p->iteration;
    if (p->validated) {
        w->first = w->first == 0 ? p->validation : w->first;
        w->last = p->validation;
    }
    return w->stop_at && p->iteration == w->stop_at;
}

static double *flat(hl_vae *v)
{
    double *values = test_calloc(hl_params_size(hl_vae_params(v)), sizeof *values);
    hl_params_read(hl_vae_params(v), values);
    return values;
}

/* The file of an autoencoder, with the course of its training. */
static char *file_of(hl_context *ctx, hl_vae *v, size_t *size)
{
    CHECK_OK(ctx, hl_vae_write(v, NULL, 0, size));
    char *bytes = test_malloc(*size);
    CHECK_OK(ctx, hl_vae_write(v, bytes, *size, size));
    return bytes;
}

/* The file gives the course back. */
static void check_course(hl_context *ctx, const hl_vae *v, const char *bytes, size_t size)
{
    hl_vae *back = NULL;
    size_t count, again;
    CHECK_OK(ctx, hl_vae_read(ctx, bytes, size, &back));
    const hl_training_point *a = hl_vae_course(v, &count), *b = hl_vae_course(back, &again);
    assert_int_equal(count, 30);
    assert_int_equal(again, 30);
    for (size_t i = 0; i < count; i++)
        CHECK(a[i].iteration == i + 1 && a[i].loss == b[i].loss && a[i].validated == b[i].validated, "a point");
    CHECK(b[29].validated == 30 && b[29].validation == a[29].validation, "the last validation");
    CHECK(b[29].validation < b[0].loss, "it fell");
    hl_vae_free(back);
}

/* Stopped anywhere and resumed, and with two threads: the same bits. */
static void check_resume(const option *o, bool gray)
{
    const char *path = "test_vae_fit.ckpt";
    unsigned char *x = bars(gray);
    hl_vae_data data = { .image = { 1, SIDE, SIDE }, .train = { .rows = ROWS, .bytes = x, .gray = gray } };
    char *whole = NULL;
    size_t whole_size = 0, size;
    for (int way = 0; way < 3; way++) { /* whole; with two threads; in three parts */
        hl_context *ctx = test_context(NULL, way == 1 ? 2 : 1);
        hl_settings *s = settings_of(ctx, o);
        hl_vae *v;
        hl_vae_outcome outcome;
        watch w = { 0 };
        hl_job job = { .progress = progress, .user = &w, .checkpoint = way == 2 ? path : NULL };
        for (size_t stop = 7; way == 2 && stop < 30; stop += 13) {
            w.stop_at = stop;
            CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, s, &job, &v, &outcome), HL_STOPPED);
            assert_int_equal(outcome.end, HL_VAE_END_STOPPED);
            assert_int_equal(outcome.iteration, stop);
            assert_non_null(v);
            hl_vae_free(v);
            job.resume = 1;
        }
        w.stop_at = 0;
        CHECK_OK(ctx, hl_vae_fit(ctx, &data, s, &job, &v, &outcome));
        assert_int_equal(outcome.iteration, 30);
        char *bytes = file_of(ctx, v, &size);
        if (way == 0) {
            check_course(ctx, v, bytes, size);
            whole = bytes;
            whole_size = size;
        } else {
            assert_int_equal(size, whole_size);
            assert_memory_equal(bytes, whole, size);
            test_free(bytes);
        }
        hl_vae_free(v);
        hl_settings_free(s);
        test_context_free(ctx, NULL);
    }
    remove(path);
    test_free(whole);
    test_free(x);
}

static void test_resume(void **state)
{
    (void)state;
    check_resume((option[]){ { "iters", "30" }, { "latent", "3" }, { "batch", "20" }, { "dynamic", "on" }, { 0 } },
                 true);
    check_resume((option[]){ { "iters", "30" },
                             { "latent", "2" },
                             { "batch", "20" },
                             { "posterior", "ffjord" },
                             { "hidden", "5" },
                             { 0 } },
                 false);
}

/* A stop of the context that comes true once, after so many questions. */
static int countdown(void *user)
{
    size_t *left = user;
    return *left > 0 && --*left == 0;
}

/* The context may stop a run within a validation, the last one as well: the run is not over, nor is that validation done. */
static void test_stop_in_validation(void **state)
{
    const char *path = "test_vae_fit_stop.ckpt";
    unsigned char *x = bars(false);
    hl_vae_data data = { .dim = DIM, .train = { .rows = ROWS, .bytes = x } };
    hl_context *ctx;
    size_t left = SIZE_MAX;
    bool stopped[4] = { false };
    (void)state;
    assert_int_equal(hl_context_create(&(hl_context_options){ .threads = 1, .stop = countdown, .user = &left }, &ctx),
                     HL_OK);
    hl_settings *s = settings_of(ctx, (option[]){ { "iters", "3" },
                                                  { "net", "linear" },
                                                  { "latent", "2" },
                                                  { "batch", "20" },
                                                  { "posterior", "hollow" },
                                                  { "hidden", "5" },
                                                  { "warmup", "0" },
                                                  { 0 } });
    hl_vae *whole, *v;
    hl_vae_outcome expected, o;
    CHECK_OK(ctx, hl_vae_fit(ctx, &data, s, NULL, &whole, &expected));
    size_t questions = SIZE_MAX - left, size = hl_params_size(hl_vae_params(whole));
    double *a = flat(whole);
    for (size_t at = 5; at < questions; at += 17) { /* each iteration has a validation, of about 40 questions */
        hl_job job = { .checkpoint = path };
        left = at;
        CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, s, &job, &v, &o), HL_STOPPED);
        assert_int_equal(o.end, HL_VAE_END_STOPPED);
        stopped[o.iteration] = true;
        hl_vae_free(v);
        job.resume = 1;
        CHECK_OK(ctx, hl_vae_fit(ctx, &data, s, &job, &v, &o));
        assert_int_equal(o.end, HL_VAE_END_DONE);
        assert_int_equal(o.iteration, 3);
        CHECK_NEAR(o.best, expected.best, 0, "the best bound");
        double *b = flat(v);
        assert_memory_equal(a, b, size * sizeof *a);
        test_free(b);
        hl_vae_free(v);
    }
    CHECK(!stopped[0] && stopped[1] && stopped[2] && stopped[3], "stops within every validation");
    remove(path);
    hl_vae_free(whole);
    hl_settings_free(s);
    test_free(a);
    test_free(x);
    hl_context_free(ctx);
}

/* -ELBO falls, and the outcome is what an evaluation finds. */
static void test_learns(void **state)
{
    unsigned char *x = bars(false);
    (void)state;
    for (int n = 0; n < 3; n++) {
        static const option all[3][8] = {
            { { "iters", "120" }, { "latent", "4" }, { "batch", "40" }, { "lr", "5e-3" }, { 0 } },
            { { "iters", "80" },
              { "latent", "4" },
              { "batch", "40" },
              { "posterior", "hollow" },
              { "lr", "5e-3" },
              { "optimizer", "adamax" },
              { 0 } },
            { { "iters", "60" },
              { "latent", "4" },
              { "batch", "40" },
              { "importance", "3" },
              { "lr", "5e-3" },
              { "average", "0" },
              { 0 } },
        };
        hl_context *ctx = test_context(NULL, 1);
        hl_settings *s = settings_of(ctx, all[n]);
        hl_vae_data data = { .dim = DIM,
                             .train = { .rows = 160, .bytes = x },
                             .valid = { .rows = 40, .bytes = x + 160 * DIM } };
        watch w = { 0 };
        hl_job job = { .progress = progress, .user = &w };
        hl_vae *v;
        hl_vae_outcome o;
        hl_vae_result r;
        CHECK_OK(ctx, hl_vae_fit(ctx, &data, s, &job, &v, &o));
        CHECK_OK(ctx, hl_vae_evaluate(v, &data.valid, NULL, NULL, &r));
        CHECK_NEAR(-r.elbo, o.best, 1e-9, "what it says is what it is");
        CHECK_LE(o.best, w.first - 2, "it learns");
        assert_int_equal(o.train_rows, 160);
        assert_int_equal(o.valid_rows, 40);
        assert_int_equal(o.ode_steps > 0, n == 1);
        CHECK(o.best_iteration > 0.2 * (double)o.iterations, "after the warm-up");
        hl_vae_free(v);
        hl_settings_free(s);
        test_context_free(ctx, NULL);
    }
    test_free(x);
}

/* With frozen networks only the posterior moves, and its bound gets better. */
static void test_freeze(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    unsigned char *x = bars(false);
    hl_vae_data data = { .dim = DIM, .train = { .rows = ROWS, .bytes = x } };
    hl_settings *s = settings_of(ctx, (option[]){ { "iters", "60" },
                                                  { "latent", "3" },
                                                  { "posterior", "planar" },
                                                  { "freeze", "on" },
                                                  { "lr", "2e-3" },
                                                  { "warmup", "0" },
                                                  { 0 } });
    hl_vae *v, *base;
    hl_vae_outcome o;
    watch w = { 0 };
    hl_job job = { .progress = progress, .user = &w };
    (void)state;
    CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, s, NULL, &v, &o), HL_ERR_INVALID);
    CHECK_OK(ctx, hl_vae_create(ctx, &(hl_vae_spec){ .dim = DIM, .latent = 3 }, &base));
    CHECK_OK(ctx, hl_vae_init(base, 1));
    data.from = base;
    CHECK_OK(ctx, hl_vae_fit(ctx, &data, s, &job, &v, &o));
    for (size_t i = 0; i < v->params->count; i++) {
        size_t at = hl_params_find(base->params, v->params->param[i].name);
        bool flow = i >= v->part[HL_VAE_HEADS] && i < v->part[HL_VAE_DECODER];
        bool same = !flow && memcmp(v->params->param[i].values, base->params->param[at].values,
                                    v->params->param[i].size * sizeof(float)) == 0;
        CHECK(flow || same, v->params->param[i].name);
    }
    CHECK_LE(o.best, w.first - 0.01, "the posterior learns");
    hl_vae_free(v);
    hl_vae_free(base);
    hl_settings_free(s);
    test_free(x);
    test_context_free(ctx, NULL);
}

static void test_wrong(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    unsigned char *x = bars(false);
    hl_vae_data data = { .dim = DIM, .train = { .rows = ROWS, .bytes = x } };
    const struct {
        option o[4];
        const char *message;
    } bad[] = {
        { { { "dynamic", "on" }, { 0 } }, "gray" },
        { { { "net", "small" }, { 0 } }, "needs images" },
        { { { "flows", "3" }, { 0 } }, "no effect" },
        { { { "posterior", "ffjord" }, { "importance", "5" }, { 0 } }, "hutchinson" },
    };
    hl_vae *v;
    hl_settings *s;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s = settings_of(ctx, bad[i].o);
        CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, s, NULL, &v, NULL), HL_ERR_INVALID);
        CHECK(strstr(hl_context_message(ctx), bad[i].message), hl_context_message(ctx));
        assert_null(v);
        hl_settings_free(s);
    }
    x[5] = 3;
    CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, NULL, NULL, &v, NULL), HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "row 1, column 6 is 3"), hl_context_message(ctx));
    x[5] = 0;
    data.train.rows = 9;
    CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, NULL, NULL, &v, NULL), HL_ERR_INVALID);
    data.train.rows = ROWS;
    hl_job job = { .resume = 1 };
    CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, NULL, &job, &v, NULL), HL_ERR_INVALID);
    job.checkpoint = "test_vae_fit_wrong.ckpt"; /* another run's state */
    s = settings_of(ctx, (option[]){ { "iters", "2" }, { "latent", "2" }, { 0 } });
    job.resume = 0;
    CHECK_OK(ctx, hl_vae_fit(ctx, &data, s, &job, &v, NULL));
    hl_vae_free(v);
    job.resume = 1;
    CHECK_OK(ctx, hl_settings_set(s, "iters", "3"));
    CHECK_STATUS(ctx, hl_vae_fit(ctx, &data, s, &job, &v, NULL), HL_ERR_INVALID);
    CHECK(strstr(hl_context_message(ctx), "it has 'iters 2', this run has 'iters 3'"), hl_context_message(ctx));
    hl_settings_free(s);
    s = settings_of(
        ctx, (option[]){
                 { "iters", "50" }, { "latent", "2" }, { "lr", "10" }, { "clip", "0" }, { "net", "linear" }, { 0 } });
    hl_status status = hl_vae_fit(ctx, &data, s, NULL, &v, NULL); /* diverges or survives; never a bad model */
    CHECK((status == HL_OK) == (v != NULL), "a model or an error");
    hl_vae_free(v);
    hl_settings_free(s);
    remove(job.checkpoint);
    test_free(x);
    test_context_free(ctx, NULL);
}

static hl_status short_fit(hl_context *ctx, void *user)
{
    hl_vae_data data = { .dim = 4, .train = { .rows = 20, .bytes = user } };
    hl_settings *s = NULL;
    hl_vae *v = NULL;
    hl_job job = { .checkpoint = "test_vae_fit_alloc.ckpt" };
    hl_status status = hl_settings_create(ctx, hl_vae_fit_options(), &s);
    const option o[] = {
        { "iters", "2" }, { "latent", "2" }, { "net", "linear" }, { "posterior", "hollow" }, { "hidden", "3" }
    };
    for (size_t i = 0; i < sizeof o / sizeof *o && status == HL_OK; i++)
        status = hl_settings_set(s, o[i].name, o[i].text);
    if (status == HL_OK)
        status = hl_vae_fit(ctx, &data, s, &job, &v, NULL);
    hl_vae_free(v);
    hl_settings_free(s);
    return status;
}

static void test_allocations(void **state)
{
    unsigned char *bits = random_bits(80, 4);
    (void)state;
    check_every_allocation(1, short_fit, bits);
    remove("test_vae_fit_alloc.ckpt");
    test_free(bits);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_resume), cmocka_unit_test(test_stop_in_validation),
                                        cmocka_unit_test(test_learns), cmocka_unit_test(test_freeze),
                                        cmocka_unit_test(test_wrong),  cmocka_unit_test(test_allocations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
