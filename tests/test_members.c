/* test_members.c - density models that are weighted sums of a flow and mixtures: integrals, sums, samples, files. */
#include "support.h"

#include "directory.h"

#include "io/file.h"
#include "io/safetensors.h"
#include "learn/density.h"

enum { DIM = 2, CONTEXT = 1 };

static hl_column_map *make_map(hl_context *ctx, size_t i)
{
    hl_column_map *m = NULL;
    CHECK_OK(ctx, hl_column_map_create(ctx, 2, &m));
    m->weight[0] = 0.55;
    m->weight[1] = 0.4;
    m->background = 0.05;
    m->mean[0] = -0.7 + 0.2 * (double)i;
    m->mean[1] = 0.8;
    m->deviation[0] = 0.6;
    m->deviation[1] = 0.4;
    m->centre = 0.3;
    m->scale = 1.2;
    return m;
}

static hl_tmixture *make_mixture(hl_context *ctx, size_t context, double nu, uint64_t seed)
{
    hl_tmixture *m = NULL;
    size_t all = DIM + context;
    CHECK_OK(ctx, hl_tmixture_create(ctx, all, context, 2, nu, &m));
    m->weight[0] = 0.7;
    m->weight[1] = 0.3;
    for (size_t i = 0; i < 2 * all; i++)
        m->mean[i] = 0.4 * hl_random_normal(seed, 0, i);
    for (size_t j = 0; j < 2; j++)
        for (size_t i = 0; i < all; i++)
            for (size_t k = 0; k <= i; k++)
                m->factor[(j * all + i) * all + k] = i == k ? 0.7 : 0.2;
    CHECK_OK(ctx, hl_tmixture_prepare(m));
    return m;
}

/* With the parts that `which` has bits for: 1 a flow, 2 a raw mixture, 4 a mapped one, 8 the flow sees mapped
 * columns, 16 all parts are normal (t parts on mapped columns have tails beyond any grid), 32 the flow is of single
 * precision, with units that have no bound. */
static hl_density *make_model(hl_context *ctx, size_t context, unsigned which)
{
    static const hl_density_column columns[] = { { "a", 0.5, 1.5 }, { "b", -0.2, 0.7 }, { "c", 0.1, 1.1 } };
    hl_density *m = NULL;
    double left = 1;
    CHECK_OK(ctx, hl_density_create_columns(ctx, DIM, context, columns, &m));
    if (which & 12) {
        hl_column_map **map = hl_calloc(ctx, DIM + context, sizeof(hl_column_map *));
        for (size_t i = 0; i < DIM + context; i++)
            map[i] = make_map(ctx, i);
        hl_density_set_maps(m, map);
    }
    if (which & 2)
        CHECK_OK(ctx, hl_density_add_mixture(m, make_mixture(ctx, context, INFINITY, 4), false, which == 2 ? 1 : 0.3));
    if (which & 4)
        CHECK_OK(ctx, hl_density_add_mixture(m, make_mixture(ctx, context, which & 16 ? INFINITY : 5, 5), true,
                                             (which & 15) == 4 ? 1 : 0.25));
    for (size_t k = 0; k < m->mixtures; k++)
        left -= m->mixture[k].weight;
    if (!(which & 1))
        m->mixture[0].weight += left;
    if (which & 1) {
        hl_flow_spec spec = { .net = { .dim = DIM,
                                       .context = context,
                                       .dtype = which & 32 ? HL_F32 : HL_F64,
                                       .activation = which & 32 ? "swish" : NULL,
                                       .hidden = 4,
                                       .hidden_layers = 1,
                                       .features = 2,
                                       .width = 4,
                                       .layers = 1 } };
        CHECK_OK(ctx, hl_density_add_flow(m, &spec));
        CHECK_OK(ctx, hl_flow_init(m->flow, 3));
        const double factor[] = { 0.6, 0, 0.2, 0.5 }; /* so that mapped columns stay on the grids of the tests */
        CHECK_OK(ctx, hl_density_set_factor(m, factor));
        m->flow_weight = left;
        m->flow_mapped = (which & 8) != 0;
    }
    return m;
}

static const unsigned cases[] = { 1, 2, 4, 6, 7, 9, 15 };
enum { CASES = sizeof cases / sizeof *cases };

enum { GRID = 100 };

/* The integral over a grid of x = sinh u of p, or of p log p. */
static double integrate(hl_context *ctx, hl_density *m, double context, bool entropy)
{
    double *x = calloc(GRID * GRID * DIM, sizeof *x), *logp = calloc(GRID * GRID, sizeof *logp);
    double *c = calloc(GRID * GRID, sizeof *c), h = 10.0 / GRID, sum = 0;
    for (size_t r = 0; r < GRID * GRID; r++) {
        x[2 * r] = sinh(h * ((double)(r / GRID) + 0.5) - 5);
        x[2 * r + 1] = sinh(h * ((double)(r % GRID) + 0.5) - 5);
        c[r] = context;
    }
    CHECK_OK(ctx, hl_density_logp(m, GRID * GRID, x, c, logp));
    for (size_t r = 0; r < GRID * GRID; r++)
        sum += exp(logp[r]) * (entropy ? logp[r] : 1) * h * h *
               sqrt((1 + x[2 * r] * x[2 * r]) * (1 + x[2 * r + 1] * x[2 * r + 1]));
    free(x);
    free(c);
    free(logp);
    return sum;
}

static void test_integral(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 2);
    for (size_t i = 0; i < 2 * CASES; i++) {
        if (i % 2 && cases[i / 2] & 1 && cases[i / 2] != 15)
            continue; /* for the sake of time */
        hl_density *m = make_model(ctx, i % 2, cases[i / 2] | 16);
        CHECK_NEAR(integrate(ctx, m, 0.8, false), 1, 1e-4, "the integral of the density");
        hl_density_free(m);
    }
    test_context_free(ctx, NULL);
}

/* log p is that of the members, each alone in a model, by their weights. */
static void test_sum(void **state)
{
    (void)state;
    enum { ROWS = 50 };
    hl_context *ctx = test_context(NULL, 1);
    double x[ROWS * DIM], c[ROWS], all[ROWS], alone[3][ROWS], member[ROWS], one;
    fill_normal_f64(x, ROWS * DIM, 8);
    fill_normal_f64(c, ROWS, 9);
    hl_density *m = make_model(ctx, CONTEXT, 15);
    CHECK_OK(ctx, hl_density_logp(m, ROWS, x, c, all));
    const unsigned which[] = { 9, 2, 4 };
    for (int k = 0; k < 3; k++) {
        hl_density *part = make_model(ctx, CONTEXT, which[k]);
        CHECK_OK(ctx, hl_density_logp(part, ROWS, x, c, alone[k]));
        CHECK_OK(ctx, hl_density_member_logp(m, (size_t)k, ROWS, x, c, member));
        for (size_t r = 0; r < ROWS; r++)
            CHECK_NEAR(member[r], alone[k][r], 1e-10, "a member by itself");
        hl_density_free(part);
    }
    for (size_t r = 0; r < ROWS; r++) {
        double sum = 0.45 * exp(alone[0][r]) + 0.3 * exp(alone[1][r]) + 0.25 * exp(alone[2][r]);
        CHECK_NEAR(all[r], log(sum), 1e-10, "the weighted sum");
        CHECK_OK(ctx, hl_density_logp(m, 1, x + r * DIM, c + r, &one));
        CHECK(memcmp(&one, &all[r], sizeof one) == 0, "a row alone has the same bits");
    }
    CHECK_STATUS(ctx, hl_density_member_logp(m, 3, ROWS, x, c, member), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_member_logp(m, 1, ROWS, x, NULL, member), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_member_logp(NULL, 0, ROWS, x, c, member), HL_ERR_INVALID);
    x[3] = NAN;
    CHECK_STATUS(ctx, hl_density_logp(m, ROWS, x, c, all), HL_ERR_NOT_FINITE);
    CHECK(isnan(all[1]) && isfinite(all[0]) && isfinite(all[2]), "a row that is not finite, alone");
    assert_int_equal(hl_density_members(m), 3);
    CHECK(hl_density_get_member(m, 0).kind == HL_MEMBER_FLOW && hl_density_get_member(m, 0).mapped,
          "the flow is first");
    CHECK(hl_density_get_member(m, 1).nu == 0 && hl_density_get_member(m, 2).nu == 5, "then the mixtures");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* The mean log p of samples is the integral of p log p; a sample does not depend on how many are drawn. */
static void test_samples(void **state)
{
    (void)state;
    enum { ROWS = 3000 };
    hl_context *ctx = test_context(NULL, 2);
    double *x = calloc(ROWS * DIM, sizeof *x), *logp = calloc(ROWS, sizeof *logp), *c = calloc(ROWS, sizeof *c);
    double few[5 * DIM];
    for (size_t r = 0; r < ROWS; r++)
        c[r] = -0.6;
    for (size_t i = 1; i < CASES; i++) {
        hl_density *m = make_model(ctx, CONTEXT, cases[i] | 16);
        double entropy = integrate(ctx, m, -0.6, true), mean = 0, square = 0;
        CHECK_OK(ctx, hl_density_sample(m, 7, 0, ROWS, c, x));
        CHECK_OK(ctx, hl_density_sample(m, 7, 2500, 5, c, few));
        CHECK(memcmp(few, x + 2500 * DIM, sizeof few) == 0, "rows 2500 to 2504 drawn alone");
        CHECK_OK(ctx, hl_density_logp(m, ROWS, x, c, logp));
        for (size_t r = 0; r < ROWS; r++) {
            mean += logp[r] / ROWS;
            square += logp[r] * logp[r] / ROWS;
        }
        CHECK_NEAR(mean, entropy, 4 * sqrt((square - mean * mean) / ROWS), "the mean log p of samples");
        hl_density_free(m);
    }
    free(x);
    free(c);
    free(logp);
    test_context_free(ctx, NULL);
}

/* log p through maps against brute-force differences of the maps. */
static void test_slopes(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx, 0, 4);
    const double x[DIM] = { 0.9, -1.3 }, h = 1e-5;
    double y[DIM], logp, inside, slope = 0;
    for (size_t i = 0; i < DIM; i++) {
        y[i] = hl_column_map_forward(m->map[i], x[i], NULL);
        slope +=
            log((hl_column_map_forward(m->map[i], x[i] + h, NULL) - hl_column_map_forward(m->map[i], x[i] - h, NULL)) /
                (2 * h));
    }
    CHECK_OK(ctx, hl_density_logp(m, 1, x, NULL, &logp));
    CHECK_OK(ctx, hl_tmixture_logp(m->mixture[0].mixture, 1, y, &inside));
    CHECK_NEAR(logp, inside + slope, 1e-7, "log p and the slopes of the maps");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* The gradient of log p against central differences, with every member and map. */
static void test_gradient(void **state)
{
    (void)state;
    enum { ROWS = 7 };
    hl_context *ctx = test_context(NULL, 2);
    double x[ROWS * DIM], c[ROWS], g[ROWS * DIM], gc[ROWS], logp[ROWS], again[ROWS], side[2][ROWS];
    const double h = 1e-4;
    fill_normal_f64(x, ROWS * DIM, 8);
    fill_normal_f64(c, ROWS, 9);
    for (size_t i = 0; i < 2 * CASES; i++) {
        hl_density *m = make_model(ctx, i % 2, cases[i / 2]);
        CHECK_OK(ctx, hl_density_set_solver(m, &(hl_flow_solver){ .method = "dopri8", .rtol = 1e-12, .atol = 1e-12 }));
        CHECK_OK(ctx, hl_density_logp_gradient(m, ROWS, x, c, logp, g, gc));
        CHECK_OK(ctx, hl_density_logp(m, ROWS, x, c, again));
        for (size_t r = 0; r < ROWS; r++)
            CHECK_NEAR(logp[r], again[r], 1e-12, "log p beside its gradient");
        for (size_t k = 0; k < DIM + i % 2; k++) {
            for (int up = 0; up < 2; up++) {
                double moved[ROWS * DIM], given[ROWS];
                memcpy(moved, x, sizeof x);
                memcpy(given, c, sizeof c);
                for (size_t r = 0; r < ROWS; r++)
                    *(k < DIM ? &moved[r * DIM + k] : &given[r]) += up ? h : -h;
                CHECK_OK(ctx, hl_density_logp(m, ROWS, moved, given, side[up]));
            }
            for (size_t r = 0; r < ROWS; r++) {
                double difference = (side[1][r] - side[0][r]) / (2 * h), own = k < DIM ? g[r * DIM + k] : gc[r];
                CHECK_NEAR(own, difference, 1e-6 * (1 + fabs(difference)), "a central difference");
            }
        }
        hl_density_free(m);
    }
    hl_density *m = make_model(ctx, CONTEXT, 15);
    CHECK_STATUS(ctx, hl_density_logp_gradient(m, ROWS, x, NULL, NULL, g, gc), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_logp_gradient(m, ROWS, x, c, NULL, NULL, gc), HL_ERR_INVALID);
    CHECK_STATUS(ctx, hl_density_logp_gradient(NULL, ROWS, x, c, NULL, g, gc), HL_ERR_INVALID);
    x[3] = NAN;
    CHECK_STATUS(ctx, hl_density_logp_gradient(m, ROWS, x, c, NULL, g, NULL), HL_ERR_NOT_FINITE);
    CHECK(isnan(g[2]) && isnan(g[3]) && isfinite(g[1]) && isfinite(g[4]), "a row that is not finite, alone");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* Far from all data the flow cannot be solved; the others are log p, which the status says. */
static void test_far(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    double x[] = { 0.3, 0.4, 1e150, -1e150, 0.1, 0.2 }, logp[3], flow[3], mapped[3], g[6];
    hl_density *m = make_model(ctx, 0, 32 + 7), *alone = make_model(ctx, 0, 32 + 1);
    CHECK(hl_density_logp(alone, 3, x, NULL, flow) < 0 && isnan(flow[1]) && isfinite(flow[2]), "the flow alone fails");
    CHECK_STATUS(ctx, hl_density_logp(m, 3, x, NULL, logp), HL_IMPRECISE);
    CHECK(hl_context_failure(ctx).row == 1 && strstr(hl_context_message(ctx), "other members"), "the row is named");
    CHECK_OK(ctx, hl_density_member_logp(m, 2, 3, x, NULL, mapped));
    CHECK_NEAR(logp[1], mapped[1] + log(0.25), 1e-9, "the mixture of mapped columns is left");
    CHECK(isfinite(logp[0]) && isfinite(logp[2]), "the others have all members");
    CHECK(hl_density_logp_gradient(m, 3, x, NULL, NULL, g, NULL) >= HL_OK && isfinite(g[2]) && isfinite(g[4]),
          "a gradient without the flow");
    x[3] = NAN; /* a row that is not finite comes before one that lacks the flow */
    CHECK_STATUS(ctx, hl_density_logp(m, 3, x, NULL, logp), HL_ERR_NOT_FINITE);
    x[3] = 0;
    x[5] = NAN;
    CHECK_STATUS(ctx, hl_density_logp(m, 3, x, NULL, logp), HL_ERR_NOT_FINITE);
    CHECK(hl_context_failure(ctx).row == 2 && isnan(logp[2]) && isfinite(logp[1]), "and is the one that is named");
    hl_density_free(alone);
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* ---- files ---- */

static void test_files(void **state)
{
    (void)state;
    enum { ROWS = 20 };
    hl_context *ctx = test_context(NULL, 1);
    double x[ROWS * DIM], c[ROWS], before[ROWS * DIM], after[ROWS * DIM];
    fill_normal_f64(x, ROWS * DIM, 8);
    fill_normal_f64(c, ROWS, 9);
    for (size_t i = 0; i < 2 * CASES; i++) {
        hl_density *m = make_model(ctx, i % 2, cases[i / 2]), *back = NULL;
        CHECK_OK(ctx, hl_density_set_note(m, "a note"));
        CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
        CHECK_OK(ctx, hl_density_load(ctx, "m.hollow", &back));
        CHECK_OK(ctx, hl_density_logp(m, ROWS, x, c, before));
        CHECK_OK(ctx, hl_density_logp(back, ROWS, x, c, after));
        CHECK(memcmp(before, after, ROWS * sizeof *before) == 0, "the same bits from the file");
        CHECK_OK(ctx, hl_density_sample(m, 1, 0, ROWS, c, before));
        CHECK_OK(ctx, hl_density_sample(back, 1, 0, ROWS, c, after));
        CHECK(memcmp(before, after, sizeof before) == 0, "the same samples from the file");
        CHECK(strcmp(hl_density_note(back), "a note") == 0, "the note");
        hl_density_free(back);
        hl_density_free(m);
    }
    test_context_free(ctx, NULL);
}

/* A file of the first format, written before models had members. */
static void test_first_format(void **state)
{
    (void)state;
    static const double x[] = { 0.5, 11, -1, 7.5, 2, 15 }, c[] = { 0.25, -0.75, 1 };
    static const double expected[] = { -2.4209814146721205, -2.577710709199082, -7.536845288417045 };
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    double logp[3];
    CHECK_OK(ctx, hl_density_load(ctx, HL_TEST_DATA "/density_1.hollow", &m));
    CHECK_OK(ctx, hl_density_logp(m, 3, x, c, logp));
    for (int r = 0; r < 3; r++)
        CHECK_NEAR(logp[r], expected[r], 1e-12, "log p as it was then");
    assert_int_equal(hl_density_members(m), 1);
    CHECK(hl_density_get_member(m, 0).weight == 1, "a flow alone");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* A model that was loaded is written as it was. */
static void check_same_bytes(hl_context *ctx, const hl_density *m, const char *path)
{
    char *before = NULL, *after = NULL;
    size_t size[2];
    CHECK_OK(ctx, hl_density_save(m, "again.hollow"));
    CHECK_OK(ctx, hl_file_load(ctx, path, 1 << 20, &before, &size[0]));
    CHECK_OK(ctx, hl_file_load(ctx, "again.hollow", 1 << 20, &after, &size[1]));
    CHECK(size[0] == size[1] && memcmp(before, after, size[0]) == 0, "the same bytes");
    hl_free(ctx, before);
    hl_free(ctx, after);
}

/* A file of the second format, written before columns had forms: it loads, gives the same numbers and is written as it was. */
static void test_second_format(void **state)
{
    (void)state;
    static const double x[] = { 0.5, -0.2, -1, 0.7, 2, 1.5 }, c[] = { 0.25, -0.75, 1 };
    static const double expected[] = { -1.8570522286701558, -2.5283632945690324, -4.457272200344587 };
    static const double drawn[] = { 2.614519500791955,   -0.14464784940730033, -0.9292989802087068,
                                    -0.4322509903546014, 0.4211223404292496,   0.7897713943978193 };
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    double logp[3], sample[6];
    CHECK_OK(ctx, hl_density_load(ctx, HL_TEST_DATA "/density_2.hollow", &m));
    CHECK_OK(ctx, hl_density_logp(m, 3, x, c, logp));
    CHECK_OK(ctx, hl_density_sample(m, 0, 0, 3, c, sample));
    for (int r = 0; r < 3; r++)
        CHECK_NEAR(logp[r], expected[r], 1e-12, "log p as it was then");
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(sample[i], drawn[i], 1e-9, "samples as they were then");
    check_same_bytes(ctx, m, HL_TEST_DATA "/density_2.hollow");
    hl_density_free(m);
    /* One of a version to come. */
    hl_tensors *t = NULL;
    CHECK_OK(ctx, hl_tensors_create(ctx, &t));
    CHECK_OK(ctx, hl_tensors_set_metadata(t, "format", "hollow-density 99"));
    CHECK_OK(ctx, hl_tensors_write(t, "new.hollow"));
    hl_tensors_free(t);
    CHECK_STATUS(ctx, hl_density_load(ctx, "new.hollow", &m), HL_ERR_FORMAT);
    CHECK(strstr(hl_context_message(ctx), "a newer version of hollow wrote"), "said so");
    test_context_free(ctx, NULL);
}

/* A file of the fifth format: a flow of separate networks beside mixtures and maps, a bounded column, categories. */
static void test_fifth_format(void **state)
{
    (void)state;
    static const double x[] = { 0.5, 1.2, -1, 0.9, 2, 1.5 }, c[] = { 0, 1, 1 };
    static const double expected[] = { -2.213105815256399, -1.9569967563950112, -5.124325855801232 };
    static const double drawn[] = { -1.2947480414116934, 0.31643858142469794, 0.545079914400675,
                                    3.6346020576935536,  0.2682923996397401,  2.589344053719775 };
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = NULL;
    double logp[3], sample[6];
    CHECK_OK(ctx, hl_density_load(ctx, HL_TEST_DATA "/density_5.hollow", &m));
    assert_string_equal(hl_net_describe(hl_flow_net(hl_density_flow(m), 0)).conditioner, "separate");
    assert_int_equal(hl_density_members(m), 3);
    assert_string_equal(hl_density_get_category(m, 0).labels[1], "south");
    CHECK_OK(ctx, hl_density_logp(m, 3, x, c, logp));
    CHECK_OK(ctx, hl_density_sample(m, 0, 0, 3, c, sample));
    for (int r = 0; r < 3; r++)
        CHECK_NEAR(logp[r], expected[r], 1e-12, "log p as it was then");
    for (int i = 0; i < 6; i++)
        CHECK_NEAR(sample[i], drawn[i], 1e-9, "samples as they were then");
    check_same_bytes(ctx, m, HL_TEST_DATA "/density_5.hollow");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* Files that say impossible things are refused. */
static void test_bad_files(void **state)
{
    (void)state;
    static const char *const bad[][3] = {
        { "members", NULL, "members are missing" },
        { "members", "{}", "members are missing" },
        { "members", "[]", "members are missing" },
        { "members", "[{\"kind\": \"tree\", \"weight\": 1, \"mapped\": false}]", "unknown kind" },
        { "members", "[{\"kind\": \"flow\", \"weight\": 0, \"mapped\": false}]", "unknown kind, no weight" },
        { "members", "[{\"kind\": \"flow\", \"weight\": 0.5, \"mapped\": false}]", "add up to 1" },
        { "members", "[{\"kind\": \"flow\", \"weight\": 1, \"mapped\": 1}]", "no map" },
        { "members", "[{\"kind\": \"flow\", \"weight\": 1, \"mapped\": false}]", "tensors" },
        { "members",
          "[{\"kind\": \"mixture\", \"weight\": 0.5, \"mapped\": false}, {\"kind\": \"flow\", \"weight\": 0.5, "
          "\"mapped\": false}]",
          "do not agree" },
        { "members", "[{\"kind\": \"mixture\", \"weight\": 1, \"mapped\": false, \"nu\": 0}]", "unknown kind" },
        { "context", NULL, "context" },
        { "context", "3", "all of its columns are context" },
        { "context", "2", "" },
        { "context", "-1", "context" },
        { "maps", NULL, "no maps" },
        { "maps", "[]", "the number of maps differs" },
        { "maps", "[1, 2, 3]", "incomplete" },
        { "columns", "[]", "context" },
        { "kind", NULL, "do not agree" },
    };
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx, CONTEXT, 15), *back = NULL;
    CHECK_OK(ctx, hl_density_save(m, "good.hollow"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hl_tensors *t = NULL, *changed = NULL;
        CHECK_OK(ctx, hl_tensors_read(ctx, "good.hollow", &t));
        CHECK_OK(ctx, hl_tensors_create(ctx, &changed));
        for (size_t k = 0; k < hl_tensors_count(t); k++) {
            const hl_tensor *x = hl_tensors_get(t, k);
            CHECK_OK(ctx, hl_tensors_add(changed, x->name, x->dtype, x->rank, x->dims, x->data));
        }
        static const char *const keys[] = { "format", "kind",    "flows",   "architecture", "columns", "solver",
                                            "dtype",  "members", "context", "maps",         "note" };
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++) {
            const char *value = strcmp(keys[k], bad[i][0]) == 0 ? bad[i][1] : hl_tensors_metadata(t, keys[k]);
            if (value)
                CHECK_OK(ctx, hl_tensors_set_metadata(changed, keys[k], value));
        }
        CHECK_OK(ctx, hl_tensors_write(changed, "bad.hollow"));
        CHECK_STATUS(ctx, hl_density_load(ctx, "bad.hollow", &back), HL_ERR_FORMAT);
        if (!strstr(hl_context_message(ctx), bad[i][2]))
            fail_msg("%s %s: %s", bad[i][0], bad[i][1] ? bad[i][1] : "missing", hl_context_message(ctx));
        CHECK(!back, "no model");
        hl_tensors_free(changed);
        hl_tensors_free(t);
    }
    /* Values that make no density. */
    m->map[1]->deviation[0] = -1;
    CHECK_OK(ctx, hl_density_save(m, "bad.hollow"));
    CHECK_STATUS(ctx, hl_density_load(ctx, "bad.hollow", &back), HL_ERR_FORMAT);
    m->map[1]->deviation[0] = 1;
    m->mixture[0].mixture->weight[0] = 5;
    CHECK_OK(ctx, hl_density_save(m, "bad.hollow"));
    CHECK(hl_density_load(ctx, "bad.hollow", &back) < 0 && !back, "weights of parts");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    (void)user;
    double x[4] = { 0 }, c[2] = { 0 }, logp[2];
    hl_density *m = NULL;
    hl_status status = hl_density_load(ctx, "m.hollow", &m);
    if (status == HL_OK)
        status = hl_density_logp(m, 2, x, c, logp);
    if (status == HL_OK)
        status = hl_density_sample(m, 1, 0, 2, c, x);
    if (status == HL_OK)
        status = hl_density_save(m, "again.hollow");
    hl_density_free(m);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx, CONTEXT, 15);
    CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
    hl_density_free(m);
    test_context_free(ctx, NULL);
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_integral, empty_directory),
        cmocka_unit_test_teardown(test_sum, empty_directory),
        cmocka_unit_test_teardown(test_samples, empty_directory),
        cmocka_unit_test_teardown(test_slopes, empty_directory),
        cmocka_unit_test_teardown(test_gradient, empty_directory),
        cmocka_unit_test_teardown(test_far, empty_directory),
        cmocka_unit_test_teardown(test_files, empty_directory),
        cmocka_unit_test_teardown(test_first_format, empty_directory),
        cmocka_unit_test_teardown(test_second_format, empty_directory),
        cmocka_unit_test_teardown(test_fifth_format, empty_directory),
        cmocka_unit_test_teardown(test_bad_files, empty_directory),
        cmocka_unit_test_teardown(test_allocations, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
