/* Tables that are streamed: a sample, rows that are read when a batch needs them, and the same bits wherever they are. */
#include "ranks_support.h"

#include "hollow/density_fit.h"
#include "learn/density_atoms.h"
#include "learn/density_fit.h"

enum { ROWS = 120001, DIM = 2, PROBES = 50, MOST_SAMPLE = 100000 };

static hl_context *context(void)
{
    hl_context *ctx = NULL;
    assert_int_equal(hl_context_create(NULL, &ctx), HL_OK);
    return ctx;
}

/* ---- permutations ---- */

/* Every index goes to one place, and neighbours do not stay together. */
static void indices_are_permuted(void **state)
{
    (void)state;
    static const size_t counts[] = { 1, 2, 3, 4, 5, 64, 1000, 65537 };
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        size_t n = counts[k], together = 0, last = n;
        char *seen = calloc(n, 1);
        for (size_t i = 0; i < n; i++) {
            size_t at = hl_permuted(7, 1, n, i);
            assert_true(at < n && !seen[at]);
            seen[at] = 1;
            together += at == last + 1;
            last = at;
        }
        assert_true(n < 64 || together < n / 10);
        free(seen);
    }
    assert_int_not_equal(hl_permuted(7, 1, 1000000007, 5), hl_permuted(7, 2, 1000000007, 5));
    assert_int_not_equal(hl_permuted(7, 1, 1000000007, 5), hl_permuted(8, 1, 1000000007, 5));
    assert_true(hl_permuted(7, 1, SIZE_MAX, SIZE_MAX - 1) < SIZE_MAX);
}

/* ---- rows ---- */

typedef struct rows {
    size_t rows;
    double *x, *context, *weights;
    unsigned char *held; /* rows of the first reads, which are those of validation; NULL: not noted */
    size_t reads, bad;   /* rows read so far; of them, in training, those of validation */
    size_t fails_at;     /* that is never read, or SIZE_MAX */
} rows;

static void make_rows(rows *r, size_t count)
{
    *r = (rows){ .rows = count, .fails_at = SIZE_MAX };
    r->x = malloc(count * DIM * sizeof *r->x);
    r->context = malloc(count * sizeof *r->x);
    r->weights = malloc(count * sizeof *r->x);
    for (size_t i = 0; i < count; i++) {
        r->context[i] = hl_random_uniform(3, 2, i);
        r->x[2 * i] = hl_random_normal(3, 0, i);
        r->x[2 * i + 1] = floor(5 * (r->x[2 * i] + r->context[i] + hl_random_normal(3, 1, i)));
        r->weights[i] = i % 3 == 0 ? 0 : hl_random_uniform(3, 3, i);
    }
}

static void free_rows(rows *r)
{
    free(r->x);
    free(r->context);
    free(r->weights);
    free(r->held);
}

static hl_status read_some(size_t count, const size_t *row, double *x, double *c, double *w, void *user)
{
    rows *r = user;
    for (size_t i = 0; i < count; i++) {
        assert_true(row[i] < r->rows);
        if (row[i] == r->fails_at)
            return HL_ERR_IO;
        if (x)
            memcpy(x + i * DIM, r->x + row[i] * DIM, DIM * sizeof *x);
        if (c)
            c[i] = r->context[row[i]];
        if (w)
            w[i] = r->weights[row[i]];
        if (r->held && x && r->reads < MOST_SAMPLE / 10)
            r->held[row[i]] = 1;
        else if (r->held && x && r->reads >= MOST_SAMPLE)
            r->bad += r->held[row[i]];
        r->reads += x != NULL;
    }
    return HL_OK;
}

static hl_settings *brief_settings(hl_context *ctx, const char *loss)
{
    const char *const some[] = { "members",  "flow", "iters",  "4", "batch",     "200", "hidden", "8",  "width", "8",
                                 "features", "4",    "layers", "1", "ode-steps", "2",   "loss",   loss, NULL };
    hl_settings *s = NULL;
    CHECK_OK(ctx, hl_settings_create(ctx, hl_density_fit_options(), &s));
    for (size_t i = 0; some[i]; i += 2)
        CHECK_OK(ctx, hl_settings_set(s, some[i], some[i + 1]));
    return s;
}

/* The fit of some rows, as an array or from a source, and what it says about a few points. */
typedef struct trial {
    rows *data;
    bool source, context, weights;
    const char *loss;
    hl_status status;
    double logp[PROBES];
    size_t train_rows, valid_rows;
    double pattern[3]; /* rows of the patterns of atoms; the number of patterns */
    size_t atoms;      /* rows of the first finding, if it is an atom */
} trial;

static void fit_rows(hl_context *ctx, size_t rank, void *user)
{
    trial *t = user;
    rows *r = t->data;
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    hl_settings *s = brief_settings(ctx, t->loss);
    hl_row_source source = { r->rows, read_some, r, t->weights };
    hl_density_data data = { .dim = DIM, .context = t->context };
    if (t->source)
        data.source = &source;
    else
        data.train = (hl_density_rows){ .rows = r->rows,
                                        .x = r->x,
                                        .context = t->context ? r->context : NULL,
                                        .weights = t->weights ? r->weights : NULL };
    hl_status status = hl_density_fit(ctx, &data, s, NULL, &model, &o);
    if (rank == 0) {
        t->status = status;
        t->train_rows = o ? o->train_rows : 0;
        t->valid_rows = o ? o->valid_rows : 0;
        t->pattern[2] = model ? (double)hl_density_patterns(model) : 0;
        for (size_t k = 0; k < 2 && k < (size_t)t->pattern[2]; k++)
            t->pattern[k] = model->atoms->pattern[k].rows;
        t->atoms = o && o->findings && o->finding[0].kind == HL_FINDING_ATOM ? o->finding[0].count : 0;
    }
    if (rank == 0 && status == HL_OK)
        CHECK_OK(ctx, hl_density_logp(model, PROBES, r->x, t->context ? r->context : NULL, t->logp));
    hl_density_outcome_free(o);
    hl_density_free(model);
    hl_settings_free(s);
}

static void check_places(rows *r, bool with_context, bool weights, const char *loss)
{
    trial memory = { .data = r, .context = with_context, .weights = weights, .loss = loss }, source = memory;
    trial ranks = { .data = r, .source = true, .context = with_context, .weights = weights, .loss = loss };
    source.source = true;
    hl_context *ctx = context();
    fit_rows(ctx, 0, &memory);
    assert_int_equal(memory.status, HL_OK);
    assert_int_equal(memory.valid_rows, MOST_SAMPLE / 10);
    assert_int_equal(memory.train_rows, ROWS - MOST_SAMPLE / 10);
    fit_rows(ctx, 0, &source);
    assert_int_equal(source.status, HL_OK);
    assert_memory_equal(memory.logp, source.logp, sizeof memory.logp);
    unsigned char *held = r->held;
    r->held = NULL; /* two ranks would count at the same time */
    run_ranks(2, 1, fit_rows, &ranks);
    r->held = held;
    assert_int_equal(ranks.status, HL_OK);
    assert_memory_equal(memory.logp, ranks.logp, sizeof memory.logp);
    hl_context_free(ctx);
}

/* In memory, from a source, and from a source on two ranks: the same bits. Validation rows are never trained on. */
static void places_give_the_same_bits(void **state)
{
    (void)state;
    rows r;
    make_rows(&r, ROWS);
    r.held = calloc(ROWS, 1);
    check_places(&r, false, false, "nll");
    assert_true(r.reads > MOST_SAMPLE);
    assert_int_equal(r.bad, 0);
    r.reads = 0;
    memset(r.held, 0, ROWS);
    check_places(&r, true, true, "flow-matching");
    assert_true(r.reads > MOST_SAMPLE);
    assert_int_equal(r.bad, 0);
    free_rows(&r);
}

/* Atoms: patterns are counted in all rows. One of more rows than a sample is streamed, the rows of the other are all read. */
static void patterns_have_all_rows(void **state)
{
    (void)state;
    enum { EVERY = 10, AT = ROWS / EVERY + 1 };
    rows r;
    make_rows(&r, ROWS);
    for (size_t i = 0; i < ROWS; i++) {
        r.x[2 * i + 1] += 0.5 * hl_random_uniform(3, 4, i); /* no whole numbers */
        if (i % EVERY == 0)
            r.x[2 * i] = 0;
    }
    trial memory = { .data = &r, .loss = "nll" }, source = { .data = &r, .loss = "nll", .source = true },
          ranks = source;
    hl_context *ctx = context();
    fit_rows(ctx, 0, &memory);
    assert_int_equal(memory.status, HL_OK);
    assert_int_equal(memory.pattern[2], 2);
    assert_int_equal(memory.pattern[0], ROWS - AT);
    assert_int_equal(memory.pattern[1], AT);
    assert_int_equal(memory.atoms, AT);
    assert_int_equal(memory.valid_rows,
                     MOST_SAMPLE / 10 + AT / 10); /* of the sample of the one, of all rows of the other */
    fit_rows(ctx, 0, &source);
    assert_int_equal(source.status, HL_OK);
    assert_true(r.reads > 2 * MOST_SAMPLE + ROWS);
    assert_memory_equal(memory.logp, source.logp, sizeof memory.logp);
    run_ranks(2, 1, fit_rows, &ranks);
    assert_int_equal(ranks.status, HL_OK);
    assert_memory_equal(memory.logp, ranks.logp, sizeof memory.logp);
    r.fails_at = hl_permuted(0, 47, ROWS, ROWS - 1); /* not in the sample: the pass over all rows meets it */
    fit_rows(ctx, 0, &source);
    assert_int_equal(source.status, HL_ERR_IO);
    hl_context_free(ctx);
    free_rows(&r);
}

/* A source of few rows is a table in memory. */
static void few_rows_are_not_streamed(void **state)
{
    (void)state;
    rows r;
    make_rows(&r, 400);
    hl_context *ctx = context();
    trial memory = { .data = &r, .context = true, .weights = true, .loss = "nll" }, source = memory;
    source.source = true;
    fit_rows(ctx, 0, &memory);
    fit_rows(ctx, 0, &source);
    assert_int_equal(memory.status, HL_OK);
    assert_int_equal(source.status, HL_OK);
    assert_int_equal(source.train_rows, 360);
    assert_memory_equal(memory.logp, source.logp, sizeof memory.logp);
    hl_context_free(ctx);
    free_rows(&r);
}

/* ---- what goes wrong ---- */

static void bad_rows_are_told(void **state)
{
    (void)state;
    rows r;
    make_rows(&r, ROWS);
    hl_context *ctx = context();
    trial t = { .data = &r, .source = true, .loss = "nll" };
    r.fails_at = hl_permuted(0, 47, ROWS, 11); /* in the sample of seed 0 */
    fit_rows(ctx, 0, &t);
    assert_int_equal(t.status, HL_ERR_IO);
    r.fails_at = SIZE_MAX;
    r.x[77776 * DIM + 1] = NAN; /* in memory all rows are looked at */
    t.source = false;
    fit_rows(ctx, 0, &t);
    assert_int_equal(t.status, HL_ERR_NOT_FINITE);
    assert_non_null(strstr(hl_context_message(ctx), "row 77777"));
    r.x[77776 * DIM + 1] = 0;
    t.source = t.weights = true;
    r.weights[ROWS - 1] = -1;
    fit_rows(ctx, 0, &t);
    assert_int_equal(t.status, HL_ERR_INVALID);
    assert_int_equal(hl_context_failure(ctx).row, ROWS - 1);
    memset(r.weights, 0, ROWS * sizeof *r.weights);
    fit_rows(ctx, 0, &t);
    assert_int_equal(t.status, HL_ERR_INVALID);
    hl_density_data none = { .dim = DIM, .source = &(hl_row_source){ .rows = ROWS } };
    hl_density *model = NULL;
    assert_int_equal(hl_density_fit(ctx, &none, NULL, NULL, &model, NULL), HL_ERR_INVALID);
    hl_context_free(ctx);
    free_rows(&r);
}

/* A value far from the others is reported with its row of the table, not of the sample. */
static void findings_have_rows_of_the_table(void **state)
{
    (void)state;
    rows r;
    make_rows(&r, ROWS);
    hl_context *ctx = context();
    hl_settings *s = brief_settings(ctx, "nll");
    size_t far = hl_permuted(0, 47, ROWS, MOST_SAMPLE - 1), found = 0;
    r.x[far * DIM] = 1e9;
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = r.x } };
    hl_density *model = NULL;
    hl_density_outcome *o = NULL;
    CHECK_OK(ctx, hl_density_fit(ctx, &data, s, NULL, &model, &o));
    for (size_t i = 0; i < o->findings; i++)
        if (o->finding[i].kind == HL_FINDING_FAR && o->finding[i].column == 0) {
            assert_int_equal(o->finding[i].row, far);
            found++;
        }
    assert_int_equal(found, 1);
    hl_density_outcome_free(o);
    hl_density_free(model);
    hl_settings_free(s);
    hl_context_free(ctx);
    free_rows(&r);
}

/* A row outside of the bounds, which the sample did not have, ends training when it is read. */
static void rows_outside_of_bounds_end_training(void **state)
{
    (void)state;
    rows r;
    make_rows(&r, ROWS);
    hl_context *ctx = context();
    hl_settings *s = brief_settings(ctx, "nll");
    CHECK_OK(ctx, hl_settings_set(s, "bounds", "x1=-50:50"));
    for (size_t i = MOST_SAMPLE; i < ROWS; i++) /* all that are not in the sample */
        r.x[hl_permuted(0, 47, ROWS, i) * DIM] = 60;
    hl_density_data data = { .dim = DIM, .train = { .rows = ROWS, .x = r.x } };
    hl_density *model = NULL;
    assert_int_equal(hl_density_fit(ctx, &data, s, NULL, &model, NULL), HL_ERR_INVALID);
    assert_non_null(strstr(hl_context_message(ctx), "column 'x1' is 60, outside of its bounds"));
    hl_density_free(model);
    hl_settings_free(s);
    hl_context_free(ctx);
    free_rows(&r);
}

static hl_status sample_once(hl_context *ctx, void *user)
{
    const hl_density_data *data = user;
    hl_fit_stream stream;
    hl_density_data sample;
    hl_status status = hl_fit_stream_sample(ctx, data, NULL, &stream, &sample);
    double x[3 * DIM];
    hl_density_column column[DIM] = { { .name = "a", .deviation = 1 }, { .name = "b", .deviation = 1 } };
    hl_fit_table table = { .ctx = ctx, .dim = DIM, .column = column };
    stream.table = &table;
    if (status == HL_OK)
        status = hl_fit_stream_read(&stream, 5, 3, x, NULL);
    struct hl_density_atoms *atoms = status == HL_OK ? hl_calloc(ctx, 1, sizeof *atoms) : NULL;
    hl_fit_patterns patterns = { 0 };
    if (atoms) {
        atoms->count = 1;
        atoms->value[0] = data->train.x[0];
        status = hl_fit_patterns_make(&patterns, &stream, atoms);
    } else if (status == HL_OK) {
        status = HL_ERR_NOMEM;
    }
    hl_fit_patterns_free(&patterns);
    hl_atoms_free(ctx, atoms);
    hl_fit_stream_free(&stream);
    return status;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    rows r;
    make_rows(&r, MOST_SAMPLE + 10);
    hl_density_data data = { .dim = DIM, .train = { .rows = r.rows, .x = r.x, .weights = r.weights } };
    check_every_allocation(1, sample_once, &data);
    free_rows(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_are_permuted),
        cmocka_unit_test(places_give_the_same_bits),
        cmocka_unit_test(patterns_have_all_rows),
        cmocka_unit_test(few_rows_are_not_streamed),
        cmocka_unit_test(bad_rows_are_told),
        cmocka_unit_test(findings_have_rows_of_the_table),
        cmocka_unit_test(rows_outside_of_bounds_end_training),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
