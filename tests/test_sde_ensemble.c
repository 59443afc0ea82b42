/* test_sde_ensemble.c - bands of networks: they hold the truth, have the spread of the replicates, come back from files to the bit, do not depend on
 * threads; what is simulated for replicates. */
#include "support.h"

#include "hollow/sde_bands.h"
#include "hollow/sde_learn.h"
#include "io/safetensors.h"
#include "sde/ensemble.h"

enum { MOST = 6000, SUB = 10, POINTS = 5 };
static double t_all[MOST], x_all[MOST];
static size_t id_all[MOST];
static const double point[POINTS] = { 0.3, 0.7, 1.1, 1.5, 1.9 }, clock_of[POINTS] = { 0 };

static double drift(double x)
{
    return 0.9 * (1 - x);
}
static const double diffusion = 0.4;

/* Paths that come from 2 to rest. */
static hl_sde_observations simulate(uint64_t seed, size_t paths, size_t times, double step)
{
    size_t row = 0;
    for (size_t p = 0; p < paths; p++) {
        double x = 2 + 0.3 * hl_random_normal(seed, 1, p);
        for (size_t j = 0; j < times; j++, row++) {
            t_all[row] = step * (double)j;
            id_all[row] = p;
            x_all[row] = x;
            for (size_t k = 0; k < SUB; k++)
                x += drift(x) * step / SUB + diffusion * sqrt(step / SUB) * hl_random_normal(seed, 2 + p, j * SUB + k);
        }
    }
    return (hl_sde_observations){ .rows = row, .dim = 1, .t = t_all, .x = x_all, .trajectory = id_all };
}

typedef struct setting {
    const char *name, *value;
} setting;

static hl_status learn(hl_context *ctx, const hl_sde_observations *data, const setting *set, const hl_job *job,
                       hl_sde **sde, hl_sde_outcome **outcome)
{
    hl_settings *settings = NULL;
    hl_status status = hl_settings_create(ctx, hl_sde_learn_options(), &settings);
    for (; set->name && status == HL_OK; set++)
        status = hl_settings_set(settings, set->name, set->value);
    if (status == HL_OK)
        status = hl_sde_learn(ctx, data, settings, job, sde, outcome);
    hl_settings_free(settings);
    return status;
}

static const setting short_fit[] = { { "form", "network" }, { "method", "fp" }, { "components", "2" },
                                     { "iters", "300" },    { "bands", "5" },   { "batch", "128" },
                                     { "hidden", "12" },    { NULL, NULL } };

typedef struct bands {
    double f_low[POINTS], f_high[POINTS], g_low[POINTS], g_high[POINTS];
    int inside[POINTS];
} bands;

static void get(hl_context *ctx, hl_sde *sde, bands *b)
{
    memset(b, 0, sizeof *b);
    CHECK_OK(ctx, hl_sde_bands(sde, POINTS, clock_of, point,
                               &(hl_sde_band_values){ b->f_low, b->f_high, b->g_low, b->g_high, b->inside }));
}

/* Bands enclose the estimate and hold the truth; f and g are far from known outside. */
static void test_bands(void **state)
{
    hl_context *ctx = *state;
    static const setting fit[] = {
        { "form", "network" }, { "components", "2" }, { "iters", "1000" }, { "bands", "10" }, { NULL, NULL }
    };
    hl_sde_observations data = simulate(1, 300, 15, 0.2);
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    bands b;
    double f[POINTS], g[POINTS], held = 0;
    CHECK_OK(ctx, learn(ctx, &data, fit, NULL, &sde, &outcome));
    assert_int_equal(hl_sde_replicates(sde), 10);
    CHECK(strstr(outcome->settings, " bands 10") != NULL, outcome->settings);
    get(ctx, sde, &b);
    CHECK_OK(ctx, hl_sde_eval(sde, POINTS, clock_of, point, &(hl_sde_values){ .f = f, .g = g }));
    for (size_t k = 0; k < POINTS; k++) {
        CHECK_NEAR(0.5 * (b.f_low[k] + b.f_high[k]), f[k], 1e-12 * (1 + fabs(f[k])), "middle of the drift's band");
        CHECK_NEAR(0.5 * (b.g_low[k] + b.g_high[k]), g[k], 1e-12 * (1 + fabs(g[k])), "middle of the diffusion's band");
        held += b.f_low[k] <= drift(point[k]) && drift(point[k]) <= b.f_high[k];
        held += b.g_low[k] <= diffusion && diffusion <= b.g_high[k];
        CHECK(b.inside[k], "data are near");
        CHECK(b.f_high[k] - b.f_low[k] > 1e-3 && b.g_high[k] - b.g_low[k] > 1e-4, "bands have a width");
    }
    CHECK_LE(2 * POINTS * 0.7, held, "the truth is in the bands");
    CHECK_LE(b.f_high[2] - b.f_low[2], 0.6, "the band of the drift, which goes from .6 to -.8, tells something");
    CHECK_OK(ctx, hl_sde_bands(sde, 1, clock_of, (double[]){ 9 }, &(hl_sde_band_values){ .inside = b.inside }));
    assert_int_equal(b.inside[0], 0);
    CHECK(isfinite(outcome->verdict.band), "the verdict knows the bands");
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
}

/* The spread of the replicates, row by row, is what bands are made of. */
static void test_replicates(void **state)
{
    enum { COUNT = 5 };
    hl_context *ctx = *state;
    hl_sde_observations data = simulate(1, 60, 15, 0.2);
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    hl_noise_system system;
    bands b;
    double t[2 * COUNT] = { 0 }, x[2 * COUNT], f[2 * COUNT], g[2 * COUNT], square[2] = { 0 };
    size_t index[2 * COUNT];
    CHECK_OK(ctx, learn(ctx, &data, short_fit, NULL, &sde, &outcome));
    CHECK_OK(ctx, hl_sde_replicate_system(sde, &system));
    for (size_t k = 0; k < 2 * COUNT; k++) {
        x[k] = point[2];
        index[k] = 3 * k;
    }
    assert_int_equal(system.coefficients(system.user, &(hl_rows){ 2 * COUNT, index, t, x }, f, g, NULL), 0);
    get(ctx, sde, &b);
    for (size_t k = 0; k < COUNT; k++) {
        assert_true(f[k] == f[k + COUNT] && g[k] == g[k + COUNT]);
        assert_true(k == 0 || f[k] != f[0]);
        square[0] += pow(f[k] - 0.5 * (b.f_low[2] + b.f_high[2]), 2) / COUNT;
        square[1] += pow(g[k] - 0.5 * (b.g_low[2] + b.g_high[2]), 2) / COUNT;
    }
    double quantile = hl_band_quantile(COUNT);
    CHECK_NEAR(quantile * sqrt(square[0]) / (0.5 * (b.f_high[2] - b.f_low[2])), 1, 1e-5, "spread of drifts");
    CHECK_NEAR(quantile * sqrt(square[1]) / (0.5 * (b.g_high[2] - b.g_low[2])), 1, 1e-5, "spread of diffusions");
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
}

/* The same bands for any number of threads, and from the model's file; the estimate is that of a fit without bands. */
static void test_bits(void **state)
{
    hl_context *ctx = *state, *team = NULL;
    hl_sde_observations data = simulate(2, 60, 15, 0.2);
    hl_sde *sde[3] = { NULL };
    hl_sde_outcome *outcome[3] = { NULL };
    setting plain_fit[sizeof short_fit / sizeof *short_fit];
    static char bytes[1 << 20];
    size_t size = 0;
    bands a, b;
    double f[2][POINTS];
    memcpy(plain_fit, short_fit, sizeof plain_fit);
    plain_fit[4].value = "0";
    CHECK_OK(ctx, hl_context_create(&(hl_context_options){ .threads = 3 }, &team));
    CHECK_OK(ctx, learn(ctx, &data, short_fit, NULL, &sde[0], &outcome[0]));
    CHECK_OK(team, learn(team, &data, short_fit, NULL, &sde[1], &outcome[1]));
    CHECK_OK(ctx, learn(ctx, &data, plain_fit, NULL, &sde[2], &outcome[2]));
    assert_int_equal(hl_sde_replicates(sde[2]), 0);
    get(ctx, sde[0], &a);
    get(team, sde[1], &b);
    assert_memory_equal(&a, &b, sizeof a);
    for (size_t k = 0; k < 2; k++) /* the estimate is not touched by evaluating replicates */
        CHECK_OK(ctx, hl_sde_eval(sde[2 * k], POINTS, clock_of, point, &(hl_sde_values){ .f = f[k] }));
    assert_memory_equal(f[0], f[1], sizeof f[0]);
    CHECK_OK(ctx, hl_sde_write(sde[0], bytes, sizeof bytes, &size));
    for (size_t k = 0; k < 3; k++) {
        hl_sde_outcome_free(outcome[k]);
        hl_sde_free(sde[k]);
    }
    CHECK_OK(ctx, hl_sde_read(ctx, bytes, size, &sde[0]));
    assert_int_equal(hl_sde_replicates(sde[0]), 5);
    get(ctx, sde[0], &b);
    assert_memory_equal(&a, &b, sizeof a);
    hl_sde_free(sde[0]);
    hl_context_free(team);
}

/* What is known has a band without width. */
static void test_known(void **state)
{
    hl_context *ctx = *state;
    hl_sde_observations data = simulate(1, 60, 15, 0.2);
    setting fit[sizeof short_fit / sizeof *short_fit + 1] = { { "known-drift", "x1=0.9-0.9*x1" } };
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    bands b;
    memcpy(fit + 1, short_fit, sizeof short_fit);
    CHECK_OK(ctx, learn(ctx, &data, fit, NULL, &sde, &outcome));
    get(ctx, sde, &b);
    for (size_t k = 0; k < POINTS; k++) {
        CHECK_NEAR(b.f_low[k], drift(point[k]), 1e-6, "known drift");
        CHECK_NEAR(b.f_high[k], drift(point[k]), 1e-6, "known drift");
        CHECK(b.g_low[k] < b.g_high[k], "the diffusion is not known");
    }
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
}

static int stop_in_bands(const void *report, void *user)
{
    const hl_sde_progress *p = report;
    size_t *seen = user;
    *seen += p->phase == HL_SDE_PHASE_BANDS;
    assert_true(p->fraction >= 0 && p->fraction <= 1);
    return *seen == 2;
}

/* Stopped between replicates: the trained model without bands. */
static void test_stop(void **state)
{
    hl_context *ctx = *state;
    hl_sde_observations data = simulate(1, 60, 15, 0.2);
    size_t seen = 0;
    hl_job job = { .progress = stop_in_bands, .user = &seen };
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    CHECK_STATUS(ctx, learn(ctx, &data, short_fit, &job, &sde, &outcome), HL_STOPPED);
    assert_int_equal(seen, 2);
    assert_non_null(sde);
    assert_int_equal(hl_sde_replicates(sde), 0);
    assert_int_equal(outcome->iterations, 300);
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
}

/* ---- simulated data ---- */

/* Of a known equation: the mean and variance of the Ornstein-Uhlenbeck process at every time, from the observations of the first one; trajectories
 * start where they did and keep their noise, rows of snapshots are independent. */
static void test_simulate(void **state)
{
    enum { PATHS = 400, TIMES = 12 };
    hl_context *ctx = *state;
    const double step = 0.2;
    hl_sde_observations given = simulate(5, PATHS, TIMES, step);
    hl_sde_known known = {
        .drift = 1, .drift_constant = 0.9, .drift_linear = (double[]){ -0.9 }, .diffusion = 1, .diffusion_value = 0.4
    };
    hl_sde *sde = NULL;
    static double x[MOST], other[MOST];
    double scale[2] = { 1, 0.5 };
    CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .known = &known, .dtype = HL_F64 }, &sde));
    CHECK_OK(ctx, hl_sde_set_scale(sde, 0, step * (TIMES - 1), &scale[0], &scale[1]));
    for (size_t snapshots = 0; snapshots < 2; snapshots++) {
        hl_sde_data data = { given.rows, given.t, given.x, snapshots ? NULL : given.trajectory };
        double start = 0, spread = 0, product = 0;
        CHECK_OK(ctx, hl_ensemble_simulate(sde, &data, 3, 0, x));
        CHECK_OK(ctx, hl_ensemble_simulate(sde, &data, 3, 1, other));
        for (size_t p = 0; p < PATHS; p++) {
            CHECK_NEAR(x[p * TIMES], given.x[p * TIMES], 0, "the first observation");
            assert_true(x[p * TIMES + 1] != other[p * TIMES + 1]);
            start += x[p * TIMES] / PATHS;
        }
        for (size_t p = 0; p < PATHS; p++)
            spread += pow(x[p * TIMES] - start, 2) / PATHS;
        for (size_t j = 1; j < TIMES; j++) {
            double fade = exp(-0.9 * step * (double)j), mean = 0, square = 0;
            double variance = spread * fade * fade + 0.16 / 1.8 * (1 - fade * fade);
            for (size_t p = 0; p < PATHS; p++)
                mean += x[p * TIMES + j] / PATHS;
            for (size_t p = 0; p < PATHS; p++) {
                square += pow(x[p * TIMES + j] - mean, 2) / PATHS;
                if (j + 1 < TIMES)
                    product += (x[p * TIMES + j] - mean) * (x[p * TIMES + j + 1] - mean) / (PATHS * (TIMES - 2));
            }
            CHECK_NEAR(mean, 1 + (start - 1) * fade, 5 * sqrt(variance / PATHS), "mean");
            CHECK_NEAR(square / variance, 1, 5 * sqrt(2. / PATHS), "variance");
        }
        if (snapshots)
            CHECK_LE(fabs(product), 0.01, "rows of snapshots are independent");
        else
            CHECK_LE(0.04, product, "rows of a path are not");
    }
    hl_sde_free(sde);
}

/* What leaves the region of the data is left out: an equation that explodes gives no row far away, and not a NaN. */
static void test_far(void **state)
{
    hl_context *ctx = *state;
    hl_sde_observations given = simulate(5, 30, 12, 0.2);
    hl_sde_data data = { given.rows, given.t, given.x, given.trajectory };
    hl_sde_known known = {
        .drift = 1, .drift_constant = 0, .drift_linear = (double[]){ 9 }, .diffusion = 1, .diffusion_value = 0.4
    };
    hl_sde *sde = NULL;
    double x[360];
    CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1, .known = &known, .dtype = HL_F64 }, &sde));
    CHECK_OK(ctx, hl_sde_set_scale(sde, 0, 2.2, (double[]){ 1 }, (double[]){ 0.5 }));
    CHECK_OK(ctx, hl_ensemble_simulate(sde, &data, 3, 0, x));
    for (size_t r = 0; r < 360; r++)
        CHECK_LE(fabs(x[r]), 8, "no row is far away");
    CHECK_NEAR(x[11], given.x[11], 0, "a row that was");
    hl_sde_free(sde);
}

/* A model that keeps its scale is fitted in it. */
static void test_scale(void **state)
{
    hl_context *ctx = *state;
    hl_sde_observations given = simulate(1, 20, 15, 0.2);
    hl_sde_data data = { given.rows, given.t, given.x, NULL };
    for (int keeps = 0; keeps < 2; keeps++) {
        hl_sde *sde = NULL;
        hl_sde_fit *fit = NULL;
        double first, last, mean, deviation;
        CHECK_OK(ctx, hl_sde_create(ctx, &(hl_sde_spec){ .dim = 1 }, &sde));
        CHECK_OK(ctx, hl_sde_set_scale(sde, -1, 7, (double[]){ 3 }, (double[]){ 2 }));
        sde->keeps_scale = keeps;
        CHECK_OK(ctx, hl_sde_fit_create(sde, &data, &(hl_sde_fit_options){ .iterations = 3 }, &fit));
        hl_sde_get_scale(sde, &first, &last, &mean, &deviation);
        assert_int_equal(first == -1 && last == 7 && mean == 3 && deviation == 2, keeps);
        hl_sde_fit_free(fit);
        hl_sde_free(sde);
    }
}

/* ---- hostile files, memory ---- */

/* The file with tensor `name` changed in its first value, its first dimension, or left out; or with another text of the metadata. */
typedef enum change { NOTHING, WITHOUT, SHORTER, NAN_VALUE } change;
static hl_status read_changed(hl_context *ctx, const void *bytes, size_t size, const char *name, change what,
                              const char *text)
{
    static char changed[1 << 20], values[1 << 20];
    hl_tensors *good = NULL, *bad = NULL;
    const char *key, *value;
    size_t length = 0;
    CHECK_OK(ctx, hl_tensors_read_memory(ctx, "good", bytes, size, &good));
    CHECK_OK(ctx, hl_tensors_create(ctx, &bad));
    for (size_t i = 0; hl_tensors_metadata_get(good, i, &key, &value); i++)
        CHECK_OK(ctx, hl_tensors_set_metadata(bad, key, text && strcmp(key, "bands") == 0 ? text : value));
    for (size_t i = 0; i < hl_tensors_count(good); i++) {
        const hl_tensor *t = hl_tensors_get(good, i);
        size_t dims[HL_TENSOR_MAX_RANK];
        const void *data = t->data;
        bool this = strcmp(t->name, name) == 0;
        memcpy(dims, t->dims, sizeof dims);
        if (this && what == WITHOUT)
            continue;
        if (this && what == SHORTER)
            dims[0]--;
        if (this && what == NAN_VALUE) {
            memcpy(values, t->data, t->bytes);
            memcpy(values, &(float){ NAN }, sizeof(float));
            data = values;
        }
        CHECK_OK(ctx, hl_tensors_add(bad, t->name, t->dtype, t->rank, dims, data));
    }
    CHECK_OK(ctx, hl_tensors_write_memory(bad, changed, sizeof changed, &length));
    hl_tensors_free(good);
    hl_tensors_free(bad);
    hl_sde *sde = NULL;
    hl_status status = hl_sde_read(ctx, changed, length, &sde);
    hl_sde_free(sde);
    return status;
}

static void test_hostile(void **state)
{
    hl_context *ctx = *state;
    static const char *const texts[] = { "{}",
                                         "[]",
                                         "{\"quantile\": -1, \"radius\": 1, \"points\": [[0]]}",
                                         "{\"quantile\": 2, \"radius\": 1, \"points\": [[0, 1]]}",
                                         "{\"quantile\": 2, \"radius\": 0, \"points\": [[0]]}",
                                         "{\"quantile\": 2, \"radius\": 1, \"points\": 3}" };
    hl_sde_observations data = simulate(1, 60, 15, 0.2);
    hl_sde *sde = NULL;
    hl_sde_outcome *outcome = NULL;
    static char bytes[1 << 20];
    size_t size = 0;
    CHECK_OK(ctx, learn(ctx, &data, short_fit, NULL, &sde, &outcome));
    CHECK_OK(ctx, hl_sde_write(sde, bytes, sizeof bytes, &size));
    CHECK_OK(ctx, read_changed(ctx, bytes, size, "", NOTHING, NULL));
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++)
        for (change what = WITHOUT; what <= NAN_VALUE; what++)
            CHECK_STATUS(ctx, read_changed(ctx, bytes, size, n ? "bands.diffusion" : "bands.drift", what, NULL),
                         HL_ERR_FORMAT);
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        CHECK_STATUS(ctx, read_changed(ctx, bytes, size, "", NOTHING, texts[k]), HL_ERR_FORMAT);
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
}

/* A regression with the networks of bands is no model. */
static void test_both(void **state)
{
    hl_context *ctx = *state;
    static const setting regression[] = { { "iters", "2" }, { "components", "1" }, { "bands", "0" }, { NULL, NULL } };
    hl_sde_observations data = simulate(1, 60, 15, 0.2);
    hl_sde *sde = NULL, *again = NULL;
    hl_sde_outcome *outcome = NULL;
    hl_tensors *t = NULL, *both = NULL;
    const char *key, *value;
    static char bytes[1 << 20];
    size_t size = 0;
    CHECK_OK(ctx, learn(ctx, &data, regression, NULL, &sde, &outcome));
    CHECK_OK(ctx, hl_sde_write(sde, bytes, sizeof bytes, &size));
    CHECK_OK(ctx, hl_tensors_read_memory(ctx, "good", bytes, size, &t));
    CHECK_OK(ctx, hl_tensors_create(ctx, &both));
    for (size_t i = 0; hl_tensors_metadata_get(t, i, &key, &value); i++)
        CHECK_OK(ctx, hl_tensors_set_metadata(both, key, value));
    CHECK_OK(ctx, hl_tensors_set_metadata(both, "bands", "{\"quantile\": 2, \"radius\": 1, \"points\": [[0]]}"));
    for (size_t i = 0; i < hl_tensors_count(t); i++) {
        const hl_tensor *v = hl_tensors_get(t, i);
        CHECK_OK(ctx, hl_tensors_add(both, v->name, v->dtype, v->rank, v->dims, v->data));
    }
    for (size_t n = 0; n < HL_ENSEMBLE_NETS; n++) { /* networks of the right size */
        size_t values = hl_sde_net(sde, n)->values_size;
        CHECK_OK(ctx, hl_tensors_add(both, n ? "bands.diffusion" : "bands.drift", HL_F32, 2, (size_t[]){ 1, values },
                                     hl_sde_net(sde, n)->values));
    }
    CHECK_OK(ctx, hl_tensors_write_memory(both, bytes, sizeof bytes, &size));
    CHECK_STATUS(ctx, hl_sde_read(ctx, bytes, size, &again), HL_ERR_FORMAT);
    assert_null(again);
    hl_tensors_free(t);
    hl_tensors_free(both);
    hl_sde_outcome_free(outcome);
    hl_sde_free(sde);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    hl_sde_data data = { 60, t_all, x_all, NULL };
    hl_sde_spec spec = { .dim = 1, .hidden = 1, .layers = 1, .components = 1, .network = "mlp" };
    hl_sde_fit_options o = { .iterations = 1, .batch = 16 };
    hl_sde *sde = NULL;
    hl_sde_fit *fit = NULL;
    hl_noise_system system;
    double f[POINTS], g[POINTS];
    static char bytes[1 << 18];
    size_t size;
    (void)user;
    hl_status status = hl_sde_create(ctx, &spec, &sde);
    if (status == HL_OK)
        status = hl_sde_fit_create(sde, &data, &o, &fit);
    hl_sde_fit_free(fit);
    if (status == HL_OK)
        status = hl_ensemble_fit(sde, &spec, &data, &o, 2, NULL, NULL);
    if (status == HL_OK)
        status = hl_sde_bands(sde, POINTS, clock_of, point, &(hl_sde_band_values){ 0 });
    if (status == HL_OK)
        status = hl_sde_replicate_system(sde, &system);
    if (status == HL_OK &&
        system.coefficients(sde, &(hl_rows){ POINTS, (size_t[]){ 0, 1, 2, 3, 4 }, clock_of, point }, f, g, NULL) != 0)
        status = HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_sde_write(sde, bytes, sizeof bytes, &size);
    hl_sde_free(sde);
    sde = NULL;
    if (status == HL_OK)
        status = hl_sde_read(ctx, bytes, size, &sde);
    hl_sde_free(sde);
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    simulate(1, 60, 10, 0.2);
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bands), cmocka_unit_test(test_replicates), cmocka_unit_test(test_bits),
        cmocka_unit_test(test_known), cmocka_unit_test(test_stop),       cmocka_unit_test(test_simulate),
        cmocka_unit_test(test_far),   cmocka_unit_test(test_scale),      cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_both),  cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, group_context, group_context_free);
}
