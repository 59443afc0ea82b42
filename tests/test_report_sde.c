/* test_report_sde.c - reports of stochastic equations: steps of a double well against models that are right and wrong. */
#include "support.h"

#include "hollow/graph.h"
#include "report/report.h"

enum { PATHS = 100, STEPS = 40, ROWS = PATHS * (STEPS + 1) };

/* dx = 4 (x - x^3) dt + 0.7 dW */
static int double_well(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++) {
        if (f)
            f[r] = 4 * (at->y[r] - at->y[r] * at->y[r] * at->y[r]);
        if (g)
            g[r] = 0.7;
        if (dg)
            dg[r] = 0;
    }
    return 0;
}

static hl_node well_form(void *user, hl_graph *g, hl_node t, hl_node x)
{
    (void)user;
    (void)t;
    hl_node y = hl_sum(g, x, 0), cube = hl_mul(g, y, hl_mul(g, y, y));
    return hl_scale(g, 4, hl_sub(g, y, cube));
}

typedef struct data {
    double t[ROWS], x[ROWS];
    size_t path[ROWS];
} data;

static void simulate(hl_context *ctx, double dt, data *d)
{
    hl_noise_system system = { .n = 1, .coefficients = double_well, .slope = 1 };
    hl_simulator *s = NULL;
    double t[PATHS], y[PATHS];
    CHECK_OK(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .seed = 4, .level = 5 }, &s));
    for (size_t k = 0; k < PATHS; k++) {
        t[k] = 0;
        y[k] = -1.5 + 3 * (double)k / PATHS;
    }
    CHECK_OK(ctx, hl_simulator_run(s, PATHS, 0, t, dt, STEPS, y, d->x));
    for (size_t r = 0; r < ROWS; r++) {
        d->path[r] = r / (STEPS + 1);
        d->t[r] = dt * (double)(r % (STEPS + 1));
    }
    hl_simulator_free(s);
}

/* A model of known drift, with wells or linear, and diffusion. */
static hl_report *make_report(hl_context *ctx, const data *d, bool wells, double diffusion)
{
    const double slope = wells ? 0 : -0.5;
    hl_sde_known known = { .drift = 1,
                           .drift_linear = &slope,
                           .drift_form = wells ? well_form : NULL,
                           .diffusion = 1,
                           .diffusion_value = diffusion };
    hl_sde_data observed = { ROWS, d->t, d->x, d->path };
    hl_sde *sde = NULL;
    hl_sde_fit *fit = NULL;
    hl_report *report = NULL;
    CHECK_OK(ctx,
             hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .known = &known, .components = 2, .dtype = HL_F64 }, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 1));
    CHECK_OK(ctx,
             hl_sde_fit_create(sde, &observed, &(hl_sde_fit_options){ .iterations = 30, .density_only = 1 }, &fit));
    while (hl_sde_fit_step(fit, &(hl_sde_fit_report){ 0 }) == HL_OK)
        ;
    hl_sde_fit_free(fit);
    CHECK_OK(ctx, hl_sde_set_name(sde, 0, "<b>level</b>"));
    CHECK_OK(ctx, hl_report_sde(sde, &observed, NULL, &report));
    hl_sde_free(sde);
    return report;
}

static void check_texts(const hl_report *r)
{
    size_t size = 0;
    assert_int_equal(hl_report_html(r, HL_REPORT_PAGE, NULL, 0, &size), HL_OK);
    char *text = calloc(size + 1, 1);
    assert_int_equal(hl_report_html(r, HL_REPORT_PAGE, text, size, &size), HL_OK);
    CHECK(!strstr(text, "<b>level") && strstr(text, "&lt;b&gt;level&lt;/b&gt;"), "the name");
    free(text);
    assert_int_equal(hl_report_html(r, HL_REPORT_HEAD, NULL, 0, &size), HL_OK);
    assert_int_equal(hl_report_json(r, NULL, 0, &size), HL_OK);
}

/* The steps, short and long, agree with the model that made them, and the measured drift with the true one. */
static void test_right(void **state)
{
    (void)state;
    static data d;
    for (int k = 0; k < 2; k++) {
        hl_context *ctx = NULL;
        assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
        simulate(ctx, k ? 0.3 : 0.02, &d);
        hl_report *r = make_report(ctx, &d, true, 0.7);
        const hl_report_equation *e = hl_report_sde_numbers(r)->column;
        assert_int_equal(hl_report_sde_numbers(r)->steps, PATHS * STEPS);
        CHECK_NEAR(e->noise, 1, 5 * e->noise_error, "noise");
        CHECK(e->drift_p > 0.001, "drift");
        CHECK(!strstr(hl_report_verdict(r), "the noise of") && !strstr(hl_report_verdict(r), "the drift of"),
              hl_report_verdict(r));
        size_t off = 0;
        for (size_t c = 0; c < e->cells && !k; c++) {
            off += fabs(e->cell[c].measured[0] - e->cell[c].model[0]) > 2 * e->cell[c].error[0];
            CHECK_NEAR(e->cell[c].measured[1], 0.7, 6 * e->cell[c].error[1], "diffusion of a cell");
        }
        CHECK(off <= 5, "two standard errors of the drift");
        for (size_t c = 0; c < e->cells;
             c++) { /* steps of any length agree with those of the model, of as many steps */
            CHECK_NEAR(e->cell[c].made[0], e->cell[c].measured[0], 6 * e->cell[c].error[0], "steps of the model");
            CHECK_NEAR(e->cell[c].made[1], e->cell[c].measured[1], 6 * e->cell[c].error[1], "noise of the model");
        }
        check_texts(r);
        hl_report_free(r);
        hl_context_free(ctx);
    }
}

/* dx = v dt, dv = -x dt + 0.2 dW: x has no noise of its own, though x moves differently for every v. */
static int oscillator(void *user, const hl_rows *at, double *f, double *g, double *dg)
{
    (void)user;
    for (size_t r = 0; r < at->count; r++)
        for (size_t i = 0; i < 2; i++) {
            if (f)
                f[2 * r + i] = i ? -at->y[2 * r] : at->y[2 * r + 1];
            if (g)
                g[2 * r + i] = i ? 0.2 : 0;
            if (dg)
                dg[2 * r + i] = 0;
        }
    return 0;
}

/* The diffusion of a cell is that of the steps about the drift, not the spread of the drift itself over the other columns. */
static void test_columns(void **state)
{
    (void)state;
    enum { DIM = 2 };
    const double linear[DIM][DIM] = { { 0, 1 }, { -1, 0 } }, dt = 0.05;
    static double t[ROWS], x[ROWS * DIM];
    static size_t path[ROWS];
    double start[PATHS], y[PATHS * DIM];
    hl_sde_known known[DIM];
    hl_context *ctx = NULL;
    hl_simulator *s = NULL;
    hl_sde *sde = NULL;
    hl_report *r = NULL;
    hl_noise_system system = { .n = DIM, .coefficients = oscillator, .slope = 1 };
    assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
    CHECK_OK(ctx, hl_simulator_create(ctx, &system, &(hl_simulator_options){ .seed = 4, .level = 4 }, &s));
    for (size_t k = 0; k < PATHS; k++) {
        start[k] = 0;
        y[DIM * k] = cos((double)k);
        y[DIM * k + 1] = sin((double)k);
    }
    CHECK_OK(ctx, hl_simulator_run(s, PATHS, 0, start, dt, STEPS, y, x));
    hl_simulator_free(s);
    for (size_t k = 0; k < ROWS; k++) {
        path[k] = k / (STEPS + 1);
        t[k] = dt * (double)(k % (STEPS + 1));
    }
    for (size_t i = 0; i < DIM; i++)
        known[i] =
            (hl_sde_known){ .drift = 1, .drift_linear = linear[i], .diffusion = 1, .diffusion_value = i ? 0.2 : 0 };
    CHECK_OK(ctx,
             hl_sde_create(ctx, &(hl_sde_spec){ .dim = DIM, .known = known, .components = 2, .dtype = HL_F64 }, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 1));
    hl_sde_data observed = { ROWS, t, x, path };
    hl_sde_fit *fit = NULL;
    CHECK_OK(ctx, hl_sde_fit_create(sde, &observed, &(hl_sde_fit_options){ .iterations = 1, .density_only = 1 }, &fit));
    hl_sde_fit_free(fit);
    CHECK_OK(ctx, hl_report_sde(sde, &observed, NULL, &r));
    const hl_report_equation *e = hl_report_sde_numbers(r)->column;
    for (size_t i = 0; i < DIM; i++)
        for (size_t c = 0; c < e[i].cells; c++) {
            CHECK_NEAR(e[i].cell[c].measured[1], i ? 0.2 : 0, 0.04, "diffusion");
            CHECK_NEAR(e[i].cell[c].made[1], i ? 0.2 : 0, 0.04, "diffusion of the model");
        }
    hl_report_free(r);
    hl_sde_free(sde);
    hl_context_free(ctx);
}

static void test_wrong(void **state)
{
    (void)state;
    static data d;
    hl_context *ctx = NULL;
    assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
    simulate(ctx, 0.05, &d);
    hl_report *r = make_report(ctx, &d, true, 0.35);
    CHECK(strstr(hl_report_verdict(r), "the noise of '<b>level</b>' is 2.0") ||
              strstr(hl_report_verdict(r), "the noise of '<b>level</b>' is 1.9"),
          hl_report_verdict(r));
    assert_int_equal(hl_report_get_level(r), HL_REPORT_WRONG);
    hl_report_free(r);
    r = make_report(ctx, &d, false, 0.7);
    CHECK(strstr(hl_report_verdict(r), "the drift of '<b>level</b>' leaves"), hl_report_verdict(r));
    assert_int_equal(hl_report_get_level(r), HL_REPORT_WRONG);
    hl_report_free(r);
    hl_context_free(ctx);
}

/* Snapshots without trajectories have no steps, and a page all the same. */
static void test_snapshots(void **state)
{
    (void)state;
    static data d;
    hl_context *ctx = NULL;
    assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
    simulate(ctx, 0.05, &d);
    hl_sde *sde = NULL;
    hl_report *r = NULL;
    CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1 }, &sde));
    CHECK_OK(ctx, hl_sde_init(sde, 1));
    CHECK_OK(ctx, hl_sde_set_name(sde, 0, "<b>level</b>"));
    CHECK_OK(ctx, hl_report_sde(sde, &(hl_sde_data){ ROWS, d.t, d.x, NULL }, NULL, &r));
    assert_int_equal(hl_report_sde_numbers(r)->steps, 0);
    check_texts(r);
    hl_report_free(r);
    CHECK_STATUS(ctx, hl_report_sde(sde, NULL, NULL, &r), HL_ERR_INVALID);
    hl_sde_free(sde);
    hl_context_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_snapshots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
