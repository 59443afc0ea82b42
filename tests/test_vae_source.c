/* test_vae_source.c - autoencoders from rows that are read when a batch needs them: the same bits as from rows in memory, on any number of
 * ranks, each of which reads its own share. */
#include "ranks_support.h"

#include "hollow/images.h"
#include "hollow/vae_fit.h"
#include "vae_support.h"

enum { DIM = 9, ROWS = 437, BATCH = 300, ITERATIONS = 6, VALID = 43 };

/* A fit of rows in memory or from a source, and the parameters that it ends with. */
typedef struct trial {
    void *raw; /* ROWS x DIM bytes or doubles */
    bool source, real, gray, dynamic;
    size_t fails_at; /* this row cannot be read on rank 1, in training; or SIZE_MAX */
    hl_status status[MOST_RANKS];
    size_t read[MOST_RANKS];
    double *values;
    size_t size, valid_rows;
} trial;

typedef struct reader {
    trial *t;
    size_t rank;
} reader;

static hl_status read_rows(size_t count, const size_t *row, void *to, void *user)
{
    reader *r = user;
    size_t width = DIM * (r->t->real ? sizeof(double) : 1);
    bool training = r->t->read[r->rank] > ROWS; /* all of it was looked at */
    for (size_t i = 0; i < count; i++) {
        if (row[i] >= ROWS || (training && r->rank == 1 && row[i] == r->t->fails_at))
            return HL_ERR_IO;
        memcpy((char *)to + i * width, (char *)r->t->raw + row[i] * width, width);
    }
    r->t->read[r->rank] += count;
    return HL_OK;
}

static hl_settings *settings_of(hl_context *ctx, const trial *t)
{
    const char *const some[] = { "iters",      "6",
                                 "batch",      "300",
                                 "latent",     "2",
                                 "net",        "linear",
                                 "seed",       "3",
                                 "likelihood", t->real ? "gaussian" : "bernoulli",
                                 "dynamic",    t->dynamic ? "on" : "off",
                                 NULL };
    hl_settings *s = NULL;
    if (hl_settings_create(ctx, hl_vae_fit_options(), &s) != HL_OK)
        return NULL;
    for (size_t i = 0; some[i]; i += 2)
        if (hl_settings_set(s, some[i], some[i + 1]) != HL_OK)
            return NULL;
    return s;
}

static void fit(hl_context *ctx, size_t rank, void *user)
{
    trial *t = user;
    reader r = { t, rank };
    hl_vae_source source = { ROWS, read_rows, &r, t->real, t->gray };
    hl_vae_data data = { .dim = DIM };
    hl_vae *v = NULL;
    hl_vae_outcome outcome = { 0 };
    hl_settings *s = settings_of(ctx, t);
    if (t->source)
        data.source = &source;
    else
        data.train = (hl_vae_rows){
            .rows = ROWS, .bytes = t->real ? NULL : t->raw, .values = t->real ? t->raw : NULL, .gray = t->gray
        };
    t->status[rank] = s ? hl_vae_fit(ctx, &data, s, NULL, &v, &outcome) : HL_ERR_NOMEM;
    if (rank == 0 && v) {
        t->size = hl_params_size(hl_vae_params(v));
        t->valid_rows = outcome.valid_rows;
        t->values = malloc(t->size * sizeof *t->values);
        hl_params_read(hl_vae_params(v), t->values);
    }
    hl_vae_free(v);
    hl_settings_free(s);
}

static void *make_rows(bool real, bool gray)
{
    unsigned char *bytes = malloc(ROWS * DIM);
    double *values = malloc(ROWS * DIM * sizeof *values);
    for (size_t i = 0; i < ROWS * DIM; i++) {
        double u = hl_random_uniform(4, 0, i) * (double)(i % DIM + 1) / DIM;
        bytes[i] = gray ? (unsigned char)(255 * u) : u > 0.3;
        values[i] = 3 * u;
    }
    free(real ? (void *)bytes : (void *)values);
    return real ? (void *)values : (void *)bytes;
}

/* Bits, gray values that are drawn in every epoch, and numbers. */
static void test_same_bits(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        trial memory = { .real = kind == 2, .gray = kind == 1, .dynamic = kind == 1, .fails_at = SIZE_MAX };
        memory.raw = make_rows(memory.real, memory.gray);
        trial plain = memory;
        plain.source = true;
        run_ranks(1, 1, fit, &memory);
        assert_int_equal(memory.status[0], HL_OK);
        assert_int_equal(memory.valid_rows, VALID);
        for (size_t ranks = 1; ranks <= 4; ranks++) {
            trial t = plain;
            run_ranks(ranks, 1 + (int)(ranks % 2), fit, &t);
            size_t training = 0;
            for (size_t k = 0; k < ranks; k++) {
                assert_int_equal(t.status[k], HL_OK);
                training += t.read[k] -
                            2 * ROWS; /* all look at some rows, take a sample of all, and hold those of validation */
            }
            /* each row of a batch is read once, by one of them; each looks at its part of the table beside the rows that all see */
            assert_int_equal(training, ITERATIONS * BATCH + ROWS);
            assert_int_equal(t.size, memory.size);
            assert_memory_equal(t.values, memory.values, t.size * sizeof *t.values);
            free(t.values);
        }
        free(memory.values);
        free(memory.raw);
    }
}

/* A row that one rank cannot read is an error of all; so is a source without a function. */
static void test_failures(void **state)
{
    (void)state;
    trial t = { .source = true, .raw = make_rows(false, false), .fails_at = SIZE_MAX };
    for (t.fails_at = 0; t.fails_at < ROWS; t.fails_at += 100) { /* some of these are validation rows */
        memset(t.read, 0, sizeof t.read);
        run_ranks(2, 1, fit, &t);
        assert_int_equal(t.status[0], t.status[1]);
        assert_true(t.status[0] == HL_OK || t.status[0] == HL_ERR_IO);
        if (t.status[0] == HL_ERR_IO)
            break;
        free(t.values);
    }
    assert_int_equal(t.status[0], HL_ERR_IO);
    ((unsigned char *)t.raw)[400 * DIM + 2] = 7; /* in the part of rank 1 */
    t.fails_at = SIZE_MAX;
    run_ranks(2, 1, fit, &t);
    assert_int_equal(t.status[0], HL_ERR_INVALID);
    assert_int_equal(t.status[1], HL_ERR_INVALID);
    hl_context *ctx = test_context(NULL, 1);
    hl_vae_data none = { .dim = DIM, .source = &(hl_vae_source){ .rows = ROWS } };
    hl_vae *v = NULL;
    CHECK_STATUS(ctx, hl_vae_fit(ctx, &none, NULL, NULL, &v, NULL), HL_ERR_INVALID);
    test_context_free(ctx, NULL);
    free(t.raw);
}

/* ---- files ---- */

static const char path[] = "test_vae_source.bin";

static void write_npy(bool fortran, const unsigned char *bytes)
{
    char head[128];
    memset(head, ' ', sizeof head);
    memcpy(head, "\x93NUMPY\x01\x00\x76\x00", 10);
    int used = snprintf(head + 10, 118, "{'descr': '|u1', 'fortran_order': %s, 'shape': (%d, %d), }",
                        fortran ? "True" : "False", ROWS, DIM);
    head[10 + used] = ' ';
    head[127] = '\n';
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(head, 1, sizeof head, f);
    for (size_t i = 0; i < ROWS * DIM; i++)
        fputc(bytes[fortran ? i % ROWS * DIM + i / ROWS : i], f);
    fclose(f);
}

static void write_csv(const unsigned char *bytes)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t i = 0; i < ROWS * DIM; i++)
        fprintf(f, "%d%c", bytes[i], i % DIM == DIM - 1 ? '\n' : ',');
    fclose(f);
}

static void write_idx(const unsigned char *bytes)
{
    const unsigned char head[16] = { 0, 0, 8, 3, 0, 0, ROWS / 256, ROWS % 256, 0, 0, 0, 3, 0, 0, 0, 3 };
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(head, 1, sizeof head, f);
    fwrite(bytes, 1, ROWS * DIM, f);
    fclose(f);
}

/* Read all rows of a file, in another order than it has them. */
static void read_file(hl_context *ctx, size_t rank, void *user)
{
    hl_images *m = NULL;
    const unsigned char *bytes = user;
    size_t row[ROWS];
    unsigned char out[ROWS * DIM];
    (void)rank;
    for (size_t i = 0; i < ROWS; i++)
        row[i] = i * 5 % ROWS;
    CHECK_OK(ctx, hl_images_open(ctx, path, &(hl_images_options){ .in_file = 1, .shared = 1 }, &m));
    hl_vae_source source = hl_images_source(m);
    assert_int_equal(source.rows, ROWS);
    assert_int_equal(source.real, 0);
    assert_int_equal(source.gray, 1); /* which one row alone tells */
    assert_null(hl_images_rows(m).bytes);
    assert_int_equal(hl_images_rows(m).rows, ROWS);
    CHECK_OK(ctx, source.read(ROWS, row, out, source.user));
    for (size_t i = 0; i < ROWS; i++)
        assert_memory_equal(out + i * DIM, bytes + row[i] * DIM, DIM);
    hl_images_free(m);
}

static void test_files(void **state)
{
    unsigned char *bytes = make_rows(false, false);
    (void)state;
    bytes[400 * DIM + 2] = 200;
    for (int kind = 0; kind < 4; kind++) {
        if (kind < 2)
            write_npy(kind, bytes);
        else if (kind == 2)
            write_csv(bytes);
        else
            write_idx(bytes);
        run_ranks(1, 1, read_file, bytes);
        run_ranks(3, 1, read_file, bytes);
    }
    hl_context *ctx = test_context(NULL, 1);
    hl_images *m = NULL;
    write_idx(bytes); /* rows in memory are a source as well; a file that was cut short is an error */
    CHECK_OK(ctx, hl_images_open(ctx, path, NULL, &m));
    unsigned char row[DIM];
    CHECK_OK(ctx, hl_images_source(m).read(1, (size_t[]){ 7 }, row, m));
    assert_memory_equal(row, bytes + 7 * DIM, DIM);
    hl_images_free(m);
    CHECK_OK(ctx, hl_images_open(ctx, path, &(hl_images_options){ .in_file = 1 }, &m));
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fclose(f);
    CHECK_STATUS(ctx, hl_images_source(m).read(1, (size_t[]){ 7 }, row, m), HL_ERR_IO);
    hl_images_free(m);
    assert_int_equal(hl_images_source(NULL).rows, 0);
    test_context_free(ctx, NULL);
    remove(path);
    free(bytes);
}

static hl_status open_and_read(hl_context *ctx, void *user)
{
    hl_images *m = NULL;
    unsigned char row[DIM];
    (void)user;
    hl_status status = hl_images_open(ctx, path, &(hl_images_options){ .in_file = 1 }, &m);
    if (status == HL_OK)
        status = hl_images_source(m).read(1, (size_t[]){ 3 }, row, m);
    hl_images_free(m);
    return status;
}

static void test_allocations(void **state)
{
    unsigned char *bytes = make_rows(false, false);
    (void)state;
    write_npy(false, bytes);
    check_every_allocation(1, open_and_read, NULL);
    write_idx(bytes);
    check_every_allocation(1, open_and_read, NULL);
    remove(path);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_bits), cmocka_unit_test(test_failures),
                                        cmocka_unit_test(test_files), cmocka_unit_test(test_allocations) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
