/* test_atoms.c - density models with atoms: probabilities, integrals, samples, gradients, files, fits. */
#include "support.h"

#include "directory.h"

#include "hollow/density_fit.h"
#include "io/file.h"
#include "learn/density_atoms.h"

enum { DIM = 2, GRID = 160 };
static const double AT = 0.5; /* the atom of the first column */

/* Normal columns, correlated if there are two. */
static hl_density *make_rest(hl_context *ctx)
{
    static const hl_density_column columns[] = { { "a", 0.3, 1.2 }, { "b", -0.4, 0.8 } };
    hl_density *m = NULL;
    hl_tmixture *mixture = NULL;
    CHECK_OK(ctx, hl_density_create_columns(ctx, 2, 0, columns, &m));
    CHECK_OK(ctx, hl_tmixture_create(ctx, 2, 0, 1, INFINITY, &mixture));
    mixture->weight[0] = 1;
    mixture->factor[0] = 0.9;
    mixture->factor[2] = 0.3;
    mixture->factor[3] = 0.7;
    CHECK_OK(ctx, hl_tmixture_prepare(mixture));
    CHECK_OK(ctx, hl_density_add_mixture(m, mixture, false, 1));
    return m;
}

/* An atom in the first column: 60 rows without it, whose columns have a model, and 40 with it. The second column has one, too, never seen. */
static hl_density *make_model(hl_context *ctx)
{
    static const hl_density_column columns[] = { { "a", 0.3, 1.2 }, { "b", -0.4, 0.8 } };
    hl_density *m = NULL;
    const hl_column_form forms[] = { hl_column_form_none(), hl_column_form_none() };
    CHECK_OK(ctx, hl_density_create_columns(ctx, DIM, 0, columns, &m));
    CHECK_OK(ctx, hl_density_set_forms(m, forms));
    m->map = hl_calloc(ctx, DIM, sizeof(hl_column_map *));
    for (size_t i = 0; i < DIM; i++) {
        CHECK_OK(ctx, hl_column_map_create(ctx, 1, &m->map[i]));
        m->map[i]->weight[0] = 1 - 1e-9;
        m->map[i]->background = 1e-9;
        m->map[i]->deviation[0] = 0.6 + 0.2 * (double)i;
    }
    m->atoms = hl_calloc(ctx, 1, sizeof *m->atoms);
    m->atoms->count = 2;
    m->atoms->column[1] = 1;
    m->atoms->value[0] = m->atoms->value[1] = AT;
    m->atoms->patterns = 2;
    m->atoms->pattern = hl_calloc(ctx, 2, sizeof *m->atoms->pattern);
    m->atoms->pattern[0] = (hl_atom_pattern){ .mask = 0, .rows = 60, .rest = make_rest(ctx) };
    m->atoms->pattern[1] = (hl_atom_pattern){ .mask = 1, .rows = 40 };
    hl_atoms_prepare(m->atoms);
    return m;
}

/* The sum over all patterns of the integrals of p, or of p log p. */
static double integrate(hl_context *ctx, hl_density *m, bool entropy)
{
    static double x[(GRID + 1) * (GRID + 1) * DIM], logp[(GRID + 1) * (GRID + 1)];
    size_t rows = 0;
    double h = 14.0 / GRID, sum = 0, size[4] = { h * h, h, h, 1 };
    size_t ends[5] = { 0 };
    for (uint32_t mask = 0; mask < 4; mask++) {
        for (size_t i = 0; i < (mask & 1 ? 1 : GRID); i++)
            for (size_t k = 0; k < (mask & 2 ? 1 : GRID); k++, rows++) {
                x[DIM * rows] = mask & 1 ? AT : h * ((double)i + 0.51) - 7;
                x[DIM * rows + 1] = mask & 2 ? AT : h * ((double)k + 0.51) - 7;
            }
        ends[mask + 1] = rows;
    }
    CHECK_OK(ctx, hl_density_logp(m, rows, x, NULL, logp));
    for (uint32_t mask = 0; mask < 4; mask++)
        for (size_t r = ends[mask]; r < ends[mask + 1]; r++)
            sum += exp(logp[r]) * (entropy ? logp[r] : 1) * size[mask];
    return sum;
}

static void test_density(void **state)
{
    (void)state;
    enum { ROWS = 5000 };
    static double x[ROWS * DIM], logp[ROWS], again[ROWS], few[3 * DIM];
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx), *back = NULL;
    double total = 0, mean = 0, square = 0, at = 0;
    for (uint32_t mask = 0; mask < 4; mask++)
        total += hl_atoms_probability(m->atoms, mask);
    CHECK_NEAR(total, 1, 1e-14, "the probabilities of all patterns");
    CHECK_NEAR(integrate(ctx, m, false), 1, 1e-4, "the integral over all patterns");
    double entropy = integrate(ctx, m, true);
    CHECK_OK(ctx, hl_density_sample(m, 3, 0, ROWS, NULL, x));
    CHECK_OK(ctx, hl_density_sample(m, 3, 4000, 3, NULL, few));
    CHECK(memcmp(few, x + 4000 * DIM, sizeof few) == 0, "rows drawn alone");
    CHECK_OK(ctx, hl_density_logp(m, ROWS, x, NULL, logp));
    for (size_t r = 0; r < ROWS; r++) {
        mean += logp[r] / ROWS;
        square += logp[r] * logp[r] / ROWS;
        at += x[DIM * r] == AT ? 1.0 / ROWS : 0;
    }
    CHECK_NEAR(at, 0.4, 0.03, "the share of the atom in samples");
    CHECK_NEAR(mean, entropy, 4 * sqrt((square - mean * mean) / ROWS), "the mean log p of samples");
    CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
    CHECK_OK(ctx, hl_density_load(ctx, "m.hollow", &back));
    CHECK_OK(ctx, hl_density_logp(back, ROWS, x, NULL, again));
    CHECK(memcmp(again, logp, sizeof logp) == 0, "the same bits from the file");
    CHECK(hl_density_patterns(back) == 2 && hl_density_get_pattern(back, 1).atoms == 1, "two patterns");
    CHECK(hl_density_get_atom(back, 0, &at) && at == AT && !hl_density_get_atom(back, 2, &at), "the atoms");
    x[0] = NAN;
    x[1] = AT;
    CHECK_STATUS(ctx, hl_density_logp(back, 1, x, NULL, logp), HL_ERR_NOT_FINITE);
    hl_density_free(back);
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

static void test_gradient(void **state)
{
    (void)state;
    static const double x[] = { 0.1, 0.9, AT, -0.7, -0.3, AT, AT, AT };
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx);
    double g[8], side[2], row[2], h = 1e-5;
    CHECK_OK(ctx, hl_density_logp_gradient(m, 4, x, NULL, NULL, g, NULL));
    for (size_t i = 0; i < 8; i++) {
        for (int up = 0; up < 2; up++) {
            memcpy(row, x + i / 2 * 2, sizeof row);
            row[i % 2] += up ? h : -h;
            CHECK_OK(ctx, hl_density_logp(m, 1, row, NULL, &side[up]));
        }
        CHECK_NEAR(g[i], x[i] == AT ? 0 : (side[1] - side[0]) / (2 * h), 1e-6, "a central difference");
    }
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* A zero-inflated column of a table becomes an atom; its share, and the other columns given it, come back. */
static void test_fit(void **state)
{
    (void)state;
    enum { ROWS = 700, DRAWS = 4000 };
    static double x[ROWS * DIM], drawn[DRAWS * DIM], logp[DRAWS];
    hl_context *ctx = test_context(NULL, 1);
    for (size_t r = 0; r < ROWS; r++) {
        bool zero = r % 5 < 2;
        x[2 * r] = zero ? 0 : exp(0.5 * hl_random_normal(1, 0, r));
        x[2 * r + 1] = (zero ? 10 : -10) + hl_random_normal(1, 1, r);
    }
    hl_settings *s = NULL;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    CHECK_OK(ctx, hl_settings_set(s, "members", "mixture"));
    CHECK_OK(ctx, hl_settings_set(s, "recipe", "fast"));
    CHECK_OK(ctx, hl_settings_set(s, "bounds", "x1=0:"));
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    hl_density *m = NULL;
    hl_density_outcome *o = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &m, &o));
    CHECK(o->findings >= 1 && o->finding[0].kind == HL_FINDING_ATOM && o->finding[0].count == 280, "an atom is found");
    /* log 0.6 and the entropies of both normals, the lognormal being one in its logarithm, and log 0.4 and one normal */
    double normal = 0.5 * log(2 * acos(-1) * exp(1)),
           truth = 0.6 * (2 * normal + log(0.5) - log(0.6)) + 0.4 * (normal - log(0.4));
    CHECK_NEAR(o->best, truth, 0.15, "validation");
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, DRAWS, NULL, drawn));
    double zeros = 0, right = 0;
    for (size_t r = 0; r < DRAWS; r++) {
        zeros += drawn[2 * r] == 0 ? 1.0 / DRAWS : 0;
        right += (drawn[2 * r] == 0) == (drawn[2 * r + 1] > 0) ? 1.0 / DRAWS : 0;
        CHECK(drawn[2 * r] >= 0, "inside the bounds");
    }
    CHECK_NEAR(zeros, 0.4, 0.03, "the atom in samples");
    CHECK(right > 0.99, "the other column given it");
    CHECK_STATUS(ctx, hl_density_calibrate(m, DRAWS, drawn, NULL, 0), HL_ERR_UNSUPPORTED);
    CHECK(strstr(hl_context_message(ctx), "atoms"), hl_context_message(ctx));
    CHECK_OK(ctx, hl_density_logp(m, DRAWS, drawn, NULL, logp));
    hl_density_free(m);
    hl_density_outcome_free(o);
    CHECK_OK(ctx, hl_settings_set(s, "atoms", "off"));
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &m, &o));
    CHECK(hl_density_patterns(m) == 0 && hl_density_members(m) > 0, "no atoms");
    hl_density_free(m);
    hl_density_outcome_free(o);
    hl_settings_free(s);
    test_context_free(ctx, NULL);
}

typedef struct start {
    size_t train, valid, reports;
} start;

static int see_start(const void *report, void *user)
{
    const hl_density_progress *p = report;
    start *s = user;
    if (p->phase == HL_FIT_START) {
        s->train = p->so_far->train_rows;
        s->valid = p->so_far->valid_rows;
        s->reports++;
    }
    return 0;
}

static hl_density *fit_bounded(hl_context *ctx, const hl_density_data *data, const char *bounds, start *seen,
                               hl_density_outcome **o)
{
    hl_settings *s = NULL;
    hl_density *m = NULL;
    hl_job job = { .progress = see_start, .user = seen };
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    CHECK_OK(ctx, hl_settings_set(s, "members", "mixture"));
    CHECK_OK(ctx, hl_settings_set(s, "recipe", "fast"));
    CHECK_OK(ctx, hl_settings_set(s, "bounds", bounds));
    CHECK_OK(ctx, hl_density_fit(ctx, data, s, &job, &m, o));
    hl_settings_free(s);
    return m;
}

/* Whole numbers in a rare pattern: the density at them adds up to its probability, and draws have their shares. With rare patterns only there is no validation. */
static void test_rare(void **state)
{
    (void)state;
    enum { ROWS = 90, RARE = 18, MOST = 12, DRAWS = 20000 };
    static double x[ROWS * DIM], drawn[DRAWS * DIM], sums[MOST * DIM], logp[MOST];
    hl_context *ctx = test_context(NULL, 1);
    double zero = 0, at = 0, right = 0, sum = 0;
    for (size_t r = 0; r < ROWS; r++) {
        x[2 * r] = r < RARE ? 0 : exp(0.5 * hl_random_normal(2, 0, r));
        x[2 * r + 1] = floor(-2 * log(hl_random_uniform(2, 1, r)));
        zero += x[2 * r + 1] == 0 ? 1.0 / ROWS : 0;
    }
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = x } };
    start seen = { 0 };
    hl_density_outcome *o = NULL;
    hl_density *m = fit_bounded(ctx, &data, "x1=0:,x2=0:", &seen, &o);
    CHECK(seen.reports == 1 && seen.valid == (ROWS - RARE) / 10 && seen.train == ROWS - seen.valid,
          "rows at the start");
    CHECK(o->valid_rows == seen.valid && isfinite(o->best), "and at the end");
    for (size_t k = 0; k < MOST; k++)
        sums[2 * k + 1] = (double)k;
    CHECK_OK(ctx, hl_density_logp(m, MOST, sums, NULL, logp));
    for (size_t k = 0; k < MOST; k++)
        sum += exp(logp[k]);
    CHECK_NEAR(sum, hl_atoms_probability(m->atoms, 1), 0.06, "the sum over whole numbers");
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, DRAWS, NULL, drawn));
    for (size_t r = 0; r < DRAWS; r++) {
        at += drawn[2 * r] == 0;
        right += drawn[2 * r] == 0 && drawn[2 * r + 1] == 0;
        CHECK(drawn[2 * r] >= 0 && drawn[2 * r + 1] >= 0, "inside the bounds");
    }
    CHECK_NEAR(right / at, zero, 0.06, "the share of 0 in a rare pattern");
    hl_density_free(m);
    hl_density_outcome_free(o);
    data.train = (hl_density_rows){ .rows = 2 * RARE, .x = x };
    m = fit_bounded(ctx, &data, "x2=0:", &seen, &o);
    CHECK(seen.reports == 2 && seen.valid == 0 && seen.train == 2 * RARE, "rare patterns only");
    CHECK(o->valid_rows == 0 && isnan(o->best), "no validation");
    hl_density_free(m);
    hl_density_outcome_free(o);
    test_context_free(ctx, NULL);
}

static hl_density *fit_mixtures(hl_context *ctx, size_t dim, size_t rows, const double *x)
{
    hl_settings *s = NULL;
    hl_density *m = NULL;
    hl_density_data data = { .dim = dim, .train = { .rows = rows, .x = x } };
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    CHECK_OK(ctx, hl_settings_set(s, "members", "mixture"));
    CHECK_OK(ctx, hl_settings_set(s, "recipe", "fast"));
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &m, NULL));
    hl_settings_free(s);
    return m;
}

/* A pattern of few rows is fitted with the help of others: what all have in common, a narrow correlation, is known, and its own mean, too. */
static void test_helped(void **state)
{
    (void)state;
    enum { ROWS = 400, EVERY = 5, WIDE = 4, FRESH = 500 };
    static double x[ROWS * WIDE], fresh[FRESH * WIDE], logp[FRESH], drawn[ROWS * WIDE];
    hl_context *ctx = test_context(NULL, 1);
    double gap = 0, mean = 0, count = 0;
    for (size_t r = 0; r < ROWS + FRESH; r++) {
        double *row = r < ROWS ? x + r * WIDE : fresh + (r - ROWS) * WIDE, z[WIDE];
        bool at = r >= ROWS || r % EVERY == 0;
        for (size_t i = 0; i < WIDE; i++)
            z[i] = hl_random_normal(5, i, r);
        row[0] = at ? 0 : 5 + z[0];
        row[1] = z[1] + (at ? 1.5 : 0);
        row[2] = row[1] + 0.1 * z[2];
        row[3] = row[2] + 0.1 * z[3];
        if (r >= ROWS) /* -log p of the other columns */
            gap -= (0.5 * (z[1] * z[1] + z[2] * z[2] + z[3] * z[3] + 3 * log(2 * acos(-1))) + 2 * log(0.1)) / FRESH;
    }
    hl_density *m = fit_mixtures(ctx, WIDE, ROWS, x);
    assert_int_equal(hl_density_patterns(m), 2);
    hl_density *rest = m->atoms->pattern[1].rest;
    CHECK(rest && rest->context == 1, "fitted with rows of the other pattern");
    CHECK_OK(ctx, hl_density_logp(m, FRESH, fresh, NULL, logp));
    for (size_t r = 0; r < FRESH; r++)
        gap -= (logp[r] - log(hl_atoms_probability(m->atoms, 1))) / FRESH;
    CHECK_LE(gap, 0.2, "near the truth");
    CHECK_OK(ctx, hl_density_sample(m, 1, 0, ROWS, NULL, drawn));
    for (size_t r = 0; r < ROWS; r++)
        if (drawn[r * WIDE] == 0) {
            mean += drawn[r * WIDE + 1];
            count++;
        }
    CHECK(count > ROWS / EVERY / 2, "draws of the pattern");
    CHECK_NEAR(mean / count, 1.5, 0.7, "whose mean is their own");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* Many columns with atoms, whose patterns would all be rare: the more frequent atoms are kept, the others are ties, and nothing fails. */
static void test_many(void **state)
{
    (void)state;
    enum { ROWS = 400, WIDE = 20 };
    static double x[ROWS * WIDE];
    hl_context *ctx = test_context(NULL, 1);
    for (size_t i = 0; i < ROWS * WIDE; i++) {
        double share = i % WIDE == 7 ? 0.5 : 0.3;
        x[i] = hl_random_uniform(6, 0, i) < share ? 0 : 1 + hl_random_normal(6, 1, i);
    }
    hl_density *m = fit_mixtures(ctx, WIDE, ROWS, x);
    CHECK(hl_density_get_atom(m, 7, NULL), "the most frequent");
    CHECK(m->atoms->count >= 2 && m->atoms->count <= 4 && hl_density_patterns(m) <= 16,
          "as many as leave rows for patterns");
    for (size_t k = 0; k + 1 < m->atoms->count; k++)
        CHECK(m->atoms->column[k] < m->atoms->column[k + 1], "in the order of columns");
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

/* A constant column is refused as it is without atoms, and named. */
static void test_constant(void **state)
{
    (void)state;
    enum { ROWS = 400 };
    static double x[ROWS * 3];
    hl_context *ctx = test_context(NULL, 1);
    for (size_t r = 0; r < ROWS; r++) {
        x[3 * r] = r % 4 == 0 ? 0 : exp(hl_random_normal(8, 0, r));
        x[3 * r + 1] = hl_random_normal(8, 1, r);
        x[3 * r + 2] = 7;
    }
    hl_density_data data = { .dim = 3, .train = { .rows = ROWS, .x = x } };
    hl_density_outcome *o = NULL;
    hl_density *m = NULL;
    assert_int_equal(hl_density_fit(ctx, &data, NULL, NULL, &m, &o), HL_ERR_INVALID);
    CHECK(!m && o && o->findings > 0 && o->finding[0].kind == HL_FINDING_CONSTANT && o->finding[0].column == 2,
          "the column that is constant");
    hl_density_outcome_free(o);
    test_context_free(ctx, NULL);
}

/* All bounds are kept, however long their text is. */
static void test_long_bounds(void **state)
{
    (void)state;
    enum { ROWS = 120, WIDE = 6, LONG = 220 };
    static double x[ROWS * WIDE], logp;
    static char name[WIDE][LONG + 1], bounds[WIDE * (LONG + 5)];
    const char *names[WIDE];
    hl_context *ctx = test_context(NULL, 1);
    for (size_t i = 0; i < WIDE; i++) {
        memset(name[i], 'a' + (int)i, LONG);
        names[i] = name[i];
        size_t used = strlen(bounds);
        snprintf(bounds + used, sizeof bounds - used, "%s%s=0:", i ? "," : "", name[i]);
        for (size_t r = 0; r < ROWS; r++)
            x[r * WIDE + i] = i == 0 && r % 4 == 0 ? 0 : exp(hl_random_normal(3, i, r));
    }
    hl_density_data data = { .dim = WIDE, .names = names, .train = { .rows = ROWS, .x = x } };
    start seen = { 0 };
    hl_density_outcome *o = NULL;
    hl_density *m = fit_bounded(ctx, &data, bounds, &seen, &o);
    double row[WIDE] = { 1, 1, 1, 1, 1, -0.01 };
    CHECK_OK(ctx, hl_density_logp(m, 1, row, NULL, &logp));
    CHECK(hl_density_patterns(m) == 2 && logp == -INFINITY, "outside of the last bound");
    hl_density_free(m);
    hl_density_outcome_free(o);
    test_context_free(ctx, NULL);
}

/* Files whose atoms are impossible. */
static void test_bad_files(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{}",
        "{\"atoms\": [], \"patterns\": [{\"mask\": 0, \"rows\": 1}]}",
        "{\"atoms\": [{\"column\": 2, \"value\": 0}], \"patterns\": [{\"mask\": 0, \"rows\": 1}]}",
        "{\"atoms\": [{\"column\": 0, \"value\": 0}], \"patterns\": [{\"mask\": 2, \"rows\": 1}]}",
        "{\"atoms\": [{\"column\": 0, \"value\": 0}], \"patterns\": [{\"mask\": 0, \"rows\": 0}]}",
        "{\"atoms\":[{\"column\":0,\"value\":0}],\"patterns\":[{\"mask\":0,\"rows\":1},{\"mask\":0,\"rows\":1}]}",
        "{\"atoms\": [{\"column\": 0, \"value\": 0}], \"patterns\": [{\"mask\": 1, \"rows\": 1, \"bytes\": 16}]}",
        "{\"atoms\": [{\"column\": 0, \"value\": 0}], \"patterns\": [{\"mask\": 0, \"rows\": 1, \"bytes\": 8}]}",
        "{\"atoms\": [{\"column\": 0, \"value\": 0}], \"patterns\": [{\"mask\": 0, \"rows\": 1}]}",
    };
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx), *back = NULL;
    CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hl_tensors *t = NULL, *changed = NULL;
        CHECK_OK(ctx, hl_tensors_read(ctx, "m.hollow", &t));
        CHECK_OK(ctx, hl_tensors_create(ctx, &changed));
        for (size_t k = 0; k < hl_tensors_count(t); k++) {
            const hl_tensor *x = hl_tensors_get(t, k);
            CHECK_OK(ctx, hl_tensors_add(changed, x->name, x->dtype, x->rank, x->dims, x->data));
        }
        for (size_t k = 0; k < hl_tensors_metadata_count(t); k++) {
            const char *key, *value;
            hl_tensors_metadata_get(t, k, &key, &value);
            if (strcmp(key, "crc32") != 0)
                CHECK_OK(ctx, hl_tensors_set_metadata(changed, key, strcmp(key, "atoms") ? value : bad[i]));
        }
        CHECK_OK(ctx, hl_tensors_write(changed, "bad.hollow"));
        CHECK_STATUS(ctx, hl_density_load(ctx, "bad.hollow", &back), HL_ERR_FORMAT);
        CHECK(!back, "no model");
        hl_tensors_free(changed);
        hl_tensors_free(t);
    }
    hl_density_free(m);
    test_context_free(ctx, NULL);
}

static hl_status scenario(hl_context *ctx, void *user)
{
    double x[4] = { AT, 0.2, 0.1, 0.3 }, logp[2], g[4];
    hl_density *m = NULL;
    (void)user;
    hl_status status = hl_density_load(ctx, "m.hollow", &m);
    if (status == HL_OK)
        status = hl_density_logp_gradient(m, 2, x, NULL, logp, g, NULL);
    if (status == HL_OK)
        status = hl_density_sample(m, 1, 0, 2, NULL, x);
    if (status == HL_OK)
        status = hl_density_save(m, "again.hollow");
    hl_density_free(m);
    return status;
}

static void test_allocations(void **state)
{
    (void)state;
    hl_context *ctx = test_context(NULL, 1);
    hl_density *m = make_model(ctx);
    CHECK_OK(ctx, hl_density_save(m, "m.hollow"));
    hl_density_free(m);
    test_context_free(ctx, NULL);
    check_every_allocation(1, scenario, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_density, empty_directory),
        cmocka_unit_test_teardown(test_gradient, empty_directory),
        cmocka_unit_test_teardown(test_fit, empty_directory),
        cmocka_unit_test_teardown(test_rare, empty_directory),
        cmocka_unit_test_teardown(test_helped, empty_directory),
        cmocka_unit_test_teardown(test_many, empty_directory),
        cmocka_unit_test_teardown(test_constant, empty_directory),
        cmocka_unit_test_teardown(test_long_bounds, empty_directory),
        cmocka_unit_test_teardown(test_bad_files, empty_directory),
        cmocka_unit_test_teardown(test_allocations, empty_directory),
    };
    return cmocka_run_group_tests(tests, enter_directory, leave_directory);
}
