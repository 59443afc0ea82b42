/* test_base.c - status texts, the context, memory, arenas, random numbers, and the team of threads. */
#define _GNU_SOURCE /* sched_setaffinity */

#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Linked with --wrap=pthread_create, so that a test can make the n-th creation fail. */
static int threads_to_start = -1; /* then fail; -1 never */
typedef void *thread_fn(void *);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, thread_fn *start, void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, thread_fn *start, void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, thread_fn *start, void *arg)
{
    if (threads_to_start == 0)
        return EAGAIN;
    if (threads_to_start > 0)
        threads_to_start--;
    return __real_pthread_create(thread, attr, start, arg);
}

static void test_texts(void **state)
{
    (void)state;
    assert_string_equal(hl_status_text(HL_OK), "success");
    assert_string_equal(hl_status_text(HL_ERR_NOMEM), "out of memory");
    assert_string_equal(hl_status_text(HL_STOPPED), "stopped on request");
    assert_non_null(hl_status_text((hl_status)-1000));
    assert_int_equal(hl_dtype_size(HL_F32), 4);
    assert_int_equal(hl_dtype_size(HL_F64), 8);
    assert_int_equal(hl_dtype_size((hl_dtype)2), 0);
    assert_string_equal(hl_dtype_name(HL_F32), "f32");
    assert_string_equal(hl_dtype_name(HL_F64), "f64");
    assert_null(hl_dtype_name((hl_dtype)2));
}

static void test_context_options(void **state)
{
    static const int bad[] = { -1, INT32_MIN, 257, INT32_MAX };
    hl_context *ctx;

    (void)state;
    assert_int_equal(hl_context_create(NULL, NULL), HL_ERR_INVALID);
    CHECK_OK(NULL, hl_context_create(NULL, &ctx));
    assert_int_equal(hl_context_threads(ctx), 1);
    assert_string_equal(hl_context_message(ctx), "");
    hl_context_free(ctx);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        hl_context_options options = { .threads = bad[i] };

        ctx = (hl_context *)&options;
        CHECK_STATUS(NULL, hl_context_create(&options, &ctx), HL_ERR_INVALID);
        assert_null(ctx);
    }
    /* An allocator is both halves or neither. */
    CHECK_STATUS(NULL, hl_context_create(&(hl_context_options){ .alloc = test_alloc }, &ctx), HL_ERR_INVALID);
    CHECK_STATUS(NULL, hl_context_create(&(hl_context_options){ .release = test_release }, &ctx), HL_ERR_INVALID);
    ctx = test_context(NULL, 256);
    assert_int_equal(hl_context_threads(ctx), 256);
    hl_context_free(ctx);
    hl_context_free(NULL);
    assert_string_equal(hl_context_message(NULL), "");
}

static void test_message(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    char longer[3000];
    size_t length;

    (void)state;
    assert_int_equal(hl_fail(ctx, HL_ERR_SHAPE, "%d is not %s", 3, "four"), HL_ERR_SHAPE);
    assert_string_equal(hl_context_message(ctx), "3 is not four");
    hl_fail(ctx, HL_ERR_IO, "outer: %s", hl_context_message(ctx));
    assert_string_equal(hl_context_message(ctx), "outer: 3 is not four");
    assert_int_equal(hl_fail(NULL, HL_ERR_IO, "nowhere to keep it"), HL_ERR_IO);

    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    hl_fail(ctx, HL_ERR_IO, "%.511s", longer); /* just fits */
    assert_int_equal(strlen(hl_context_message(ctx)), 511);
    assert_null(strchr(hl_context_message(ctx), '.'));
    hl_fail(ctx, HL_ERR_IO, "%s", longer);
    length = strlen(hl_context_message(ctx));
    assert_int_equal(length, 511);
    assert_string_equal(hl_context_message(ctx) + length - 4, "x...");

    /* Two-byte characters, at both parities: none is cut in half. */
    for (int shift = 0; shift < 2; shift++) {
        for (size_t i = 0; i < sizeof longer - 1; i++)
            longer[i] = i % 2 ? '\xA9' : '\xC3';
        hl_fail(ctx, HL_ERR_IO, "%s%s", shift ? "x" : "", longer);
        length = strlen(hl_context_message(ctx));
        assert_in_range(length, 508, 511);
        assert_string_equal(hl_context_message(ctx) + length - 4, "\xA9...");
    }
    hl_context_free(ctx);
}

/* Pieces, and lists whose items are of every length: nothing is written past the end, what is cut off ends with dots. */
static void test_text(void **state)
{
    char buffer[40], item[12], expected[400];
    hl_text t = hl_text_start(buffer, 5);

    (void)state;
    buffer[5] = '#';
    hl_text_add(&t, "%d", 12);
    hl_text_add(&t, "%s", "345678");
    hl_text_add(&t, "9");
    assert_string_equal(buffer, "1234");
    assert_int_equal(t.length, 9);
    assert_int_equal(buffer[5], '#');
    t = hl_text_start(NULL, 0);
    hl_text_add(&t, "%s", "345678");
    assert_int_equal(t.length, 6);
    for (size_t size = 6; size < sizeof buffer; size++)
        for (size_t first = 0; first < sizeof item; first++) {
            memset(buffer, '#', sizeof buffer);
            t = hl_text_start(buffer, size);
            expected[0] = '\0';
            for (size_t i = 0; i < 20; i++) {
                snprintf(item, sizeof item, "%.*s", (int)(i ? 2 : first), "abcdefghijk");
                sprintf(expected + strlen(expected), "%s%s", *expected ? ", " : "", item);
                hl_text_list(&t, item);
            }
            size_t length = strlen(buffer);
            assert_true(length < size && buffer[size] == '#');
            assert_true(t.full && length >= 3);
            assert_string_equal(buffer + length - 3, "...");
            assert_memory_equal(buffer, expected, length - 3);
        }
}

static void test_sizes(void **state)
{
    (void)state;
    assert_true(hl_size_mul(6, 7) == 42);
    assert_true(hl_size_mul(0, SIZE_MAX) == 0);
    assert_true(hl_size_mul(SIZE_MAX, 0) == 0);
    assert_true(hl_size_mul(SIZE_MAX / 2 + 1, 2) == SIZE_MAX);
    assert_true(hl_size_mul(SIZE_MAX / 2, 2) == SIZE_MAX - 1);
    assert_true(hl_size_add(1, 2) == 3);
    assert_true(hl_size_add(SIZE_MAX, 1) == SIZE_MAX);
    assert_true(hl_size_add(SIZE_MAX - 1, 1) == SIZE_MAX);
}

static void test_memory(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    unsigned char *blocks[100];

    (void)state;
    for (size_t i = 0; i < 100; i++) {
        size_t bytes = i * 7;

        blocks[i] = i % 2 ? hl_alloc(ctx, bytes) : hl_calloc(ctx, i, 7);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        for (size_t j = 0; j < bytes && i % 2 == 0; j++)
            assert_int_equal(blocks[i][j], 0);
        memset(blocks[i], (int)i, bytes);
    }
    for (size_t i = 0; i < 100; i++) {
        for (size_t j = 0; j < i * 7; j++)
            assert_int_equal(blocks[i][j], i);
        hl_free(ctx, blocks[i]);
    }
    hl_free(ctx, NULL);
    assert_string_equal(hl_context_message(ctx), "");
    assert_null(hl_alloc(ctx, SIZE_MAX));
    assert_null(hl_alloc(ctx, SIZE_MAX - 40));
    assert_null(hl_calloc(ctx, SIZE_MAX / 4, 8));
    assert_non_null(strstr(hl_context_message(ctx), "out of memory"));
    test_context_free(ctx, &allocator);
}

static void test_grow(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    uint32_t *array = NULL;
    size_t capacity = 0, before;
    void *kept;

    (void)state;
    for (uint32_t i = 0; i < 10000; i++) {
        CHECK_OK(ctx, hl_grow(ctx, (void **)&array, &capacity, i + 1, sizeof *array));
        assert_true(capacity > i);
        array[i] = i * i;
    }
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(array[i], i * i);
    CHECK(allocator.calls < 40, "growth is geometric");

    before = capacity;
    kept = array;
    CHECK_STATUS(ctx, hl_grow(ctx, (void **)&array, &capacity, SIZE_MAX / 2, sizeof *array), HL_ERR_NOMEM);
    assert_int_equal(capacity, before);
    assert_ptr_equal(array, kept);
    assert_int_equal(array[9999], 9999 * 9999);
    hl_free(ctx, array);
    test_context_free(ctx, &allocator);
}

static void test_arena(void **state)
{
    test_allocator allocator;
    hl_context *ctx = test_context(&allocator, 1);
    unsigned char *blocks[3000];
    size_t sizes[3000], total = 0;
    hl_arena arena;

    (void)state;
    hl_arena_init(&arena, ctx);
    for (size_t i = 0; i < 3000; i++) {
        sizes[i] = hl_random_bits(1, 0, i) % (i % 100 == 99 ? 100000 : 100);
        total += sizes[i];
        blocks[i] = hl_arena_alloc(&arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)(i % 251), sizes[i]);
    }
    for (size_t i = 0; i < 3000; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            assert_int_equal(blocks[i][j], i % 251);
    CHECK(allocator.live < 60, "few blocks");
    CHECK(allocator.live_bytes < 2 * total + 100000, "little waste");
    assert_null(hl_arena_alloc(&arena, SIZE_MAX));
    assert_null(hl_arena_alloc(&arena, SIZE_MAX - 20));
    assert_non_null(strstr(hl_context_message(ctx), "out of memory"));
    hl_arena_free(&arena);
    assert_non_null(hl_arena_alloc(&arena, 20)); /* usable again, and its very first request may be large */
    hl_arena_free(&arena);
    assert_non_null(hl_arena_alloc(&arena, 1000000));
    hl_arena_free(&arena);
    hl_arena_free(&arena);
    test_context_free(ctx, &allocator);
}

static hl_status use_everything(hl_context *ctx, void *user)
{
    hl_status status = HL_ERR_NOMEM;
    void *array = NULL;
    size_t capacity = 0;
    hl_team *team = NULL;
    hl_arena arena;
    char *block = hl_calloc(ctx, 10, 10);

    (void)user;
    hl_arena_init(&arena, ctx);
    if (!block)
        goto out;
    for (size_t i = 0; i < 100; i++) {
        char *piece = hl_arena_alloc(&arena, i * 20);

        if (!piece)
            goto out;
        memset(piece, 1, i * 20);
        if (hl_grow(ctx, &array, &capacity, i + 1, 3))
            goto out;
    }
    status = hl_team_create(ctx, 3, &team);
out:
    hl_team_free(ctx, team);
    hl_free(ctx, array);
    hl_free(ctx, block);
    hl_arena_free(&arena);
    return status;
}

static void test_out_of_memory(void **state)
{
    (void)state;
    check_every_allocation(1, use_everything, NULL);
    check_every_allocation(3, use_everything, NULL);
}

/* Philox's inverse: from its output words 0 and 1 (words 2 and 3 zero) to the counter that gives them. */
static void philox_find(uint64_t seed, uint64_t bits, uint64_t *stream, uint64_t *index)
{
    const uint32_t m0 = 0xD2511F53, m1 = 0xCD9E8D57;
    uint32_t c[4] = { (uint32_t)bits, (uint32_t)(bits >> 32), 0, 0 }, i0 = 1, i1 = 1;

    for (int i = 0; i < 5; i++) { /* Newton: inverses modulo 2^32 */
        i0 *= 2 - m0 * i0;
        i1 *= 2 - m1 * i1;
    }
    for (uint32_t round = 10; round-- > 0;) {
        uint32_t k0 = (uint32_t)seed + round * 0x9E3779B9, k1 = (uint32_t)(seed >> 32) + round * 0xBB67AE85;
        uint32_t c2 = c[1] * i1, c0 = c[3] * i0;
        uint32_t c1 = c[0] ^ (uint32_t)((uint64_t)m1 * c2 >> 32) ^ k0;
        uint32_t c3 = c[2] ^ (uint32_t)((uint64_t)m0 * c0 >> 32) ^ k1;

        c[0] = c0, c[1] = c1, c[2] = c2, c[3] = c3;
    }
    *index = (uint64_t)c[1] << 32 | c[0];
    *stream = (uint64_t)c[3] << 32 | c[2];
}

/* The known answers published with Random123 (kat_vectors: philox4x32 10), first two words. */
static void test_philox(void **state)
{
    (void)state;
    assert_true(hl_random_bits(0, 0, 0) == 0xe169c58d6627e8d5);
    assert_true(hl_random_bits(UINT64_MAX, UINT64_MAX, UINT64_MAX) == 0x41c83b0e408f276d);
    assert_true(hl_random_bits(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) == 0x94fdccebd16cfe09);
}

static double normal_tail(double z) /* P(Z > z) */
{
    return 0.5 * erfc(z * 0.70710678118654752440);
}

static void test_extremes(void **state)
{
    static const int shifts[] = { 0, 11, 20, 26, 27, 28, 32, 40, 60 };
    double last = -INFINITY;
    uint64_t stream, index;

    (void)state;
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        uint64_t bits = shifts[i] ? (uint64_t)1 << shifts[i] : 0;
        double u, v, low, high;

        philox_find(7, bits, &stream, &index);
        assert_true(hl_random_bits(7, stream, index) == bits);
        u = hl_random_uniform(7, stream, index);
        low = hl_random_normal(7, stream, index);
        philox_find(7, ~bits, &stream, &index);
        v = hl_random_uniform(7, stream, index);
        high = hl_random_normal(7, stream, index);
        assert_true(u > 0 && v < 1);
        CHECK_LE(u, (double)bits * 0x1p-64 + 0x1p-53, "uniform");
        CHECK_LE(fabs(u - (1 - v)), 0x1p-52, "symmetric");
        CHECK_NEAR(normal_tail(-low) / u, 1, 2e-14, "low tail");
        CHECK_NEAR(normal_tail(high) / (1 - v), 1, 2e-14, "high tail");
        CHECK_LE(last, low, "monotone");
        last = low;
    }
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Moments, distribution (Kolmogorov and Smirnov) and independence of neighbours. The limits are about four standard
 * deviations; the numbers are fixed, so that this passes always or never. */
static void test_normals(void **state)
{
    enum { N = 200000 };
    double *z = malloc(N * sizeof *z);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, next = 0, other_stream = 0, other_seed = 0, ks = 0, worst = 0;

    (void)state;
    assert_non_null(z);
    for (uint64_t i = 0; i < N; i++) {
        double u = hl_random_uniform(11, 5, i), tail = u < 0.5 ? u : 1 - u;

        z[i] = hl_random_normal(11, 5, i);
        worst = fmax(worst, fabs(normal_tail(fabs(z[i])) / tail - 1));
        assert_true((z[i] < 0) == (u < 0.5));
        m1 += z[i];
        m2 += z[i] * z[i];
        m3 += z[i] * z[i] * z[i];
        m4 += z[i] * z[i] * z[i] * z[i];
        next += z[i] * hl_random_normal(11, 5, i + 1);
        other_stream += z[i] * hl_random_normal(11, 6, i);
        other_seed += z[i] * hl_random_normal(12, 5, i);
    }
    CHECK_LE(worst, 1e-14, "inverse of the distribution function");
    CHECK_NEAR(m1 / N, 0, 4 / sqrt(N), "mean");
    CHECK_NEAR(m2 / N, 1, 4 * sqrt(2.0 / N), "variance");
    CHECK_NEAR(m3 / N, 0, 4 * sqrt(15.0 / N), "third moment");
    CHECK_NEAR(m4 / N, 3, 4 * sqrt(96.0 / N), "fourth moment");
    CHECK_NEAR(next / N, 0, 4 / sqrt(N), "next index");
    CHECK_NEAR(other_stream / N, 0, 4 / sqrt(N), "next stream");
    CHECK_NEAR(other_seed / N, 0, 4 / sqrt(N), "next seed");
    qsort(z, N, sizeof *z, compare_doubles);
    for (size_t i = 0; i < N; i++)
        ks = fmax(ks, fabs(normal_tail(-z[i]) - (i + 0.5) / N));
    CHECK_LE(ks * sqrt(N), 1.95, "Kolmogorov-Smirnov, p = 0.001");
    free(z);
}

static void nap(long nanoseconds)
{
    nanosleep(&(struct timespec){ .tv_nsec = nanoseconds }, NULL);
}

/* Plain memory, on purpose: if the barrier or the start and end of a run did not order it, numbers would be wrong and the
 * thread sanitizer would say so. */
struct stress {
    hl_team *team;
    long input;
    long slots[8];  /* one for each thread */
    long errors[8]; /* counted here, as cmocka's checks are for the main thread only */
    long calls[8];
};

static void stress_job(void *user, int thread)
{
    struct stress *s = user;
    int size = hl_team_size(s->team);

    s->calls[thread]++;
    for (long phase = 0; phase < 3; phase++) {
        long sum = 0;

        if ((s->input + phase) % 97 == thread)
            nap(300000); /* now and then someone is late, and the others fall asleep */
        s->slots[thread] = s->input * (thread + 1) + phase;
        hl_team_barrier(s->team);
        for (int i = 0; i < size; i++)
            sum += s->slots[i];
        s->errors[thread] += sum != s->input * size * (size + 1) / 2 + phase * size;
        hl_team_barrier(s->team);
    }
    s->slots[thread] = -s->input;
}

static void test_team_stress(void **state)
{
    static const int sizes[] = { 1, 2, 3, 5 };
    enum { RUNS = 1500 };

    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        test_allocator allocator;
        hl_context *ctx = test_context(&allocator, sizes[k]);
        struct stress s = { .team = ctx->team };
        long calls = allocator.calls;

        assert_int_equal(hl_team_size(ctx->team), sizes[k]);
        for (long run = 1; run <= RUNS; run++) {
            s.input = run;
            hl_team_run(ctx->team, stress_job, &s);
            for (int i = 0; i < sizes[k]; i++)
                assert_int_equal(s.slots[i], -run);
            if (run % 100 == 0)
                nap(1000000);
        }
        for (int i = 0; i < 8; i++) {
            assert_int_equal(s.errors[i], 0);
            assert_int_equal(s.calls[i], i < sizes[k] ? RUNS : 0);
        }
        assert_int_equal(allocator.calls, calls);
        test_context_free(ctx, &allocator);
    }
}

/* Threads that are woken without a run are awake until they are released, and sleep afterwards; runs before, between and after are right. */
static void test_team_wake(void **state)
{
    hl_context *ctx = test_context(NULL, 2);
    struct stress s = { .team = ctx->team };
    bool slept = false, woke = false;

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 10000 && !(slept = hl_team_asleep(ctx->team)); i++)
            nap(1000000);
        assert_true(slept);
        woke = false;
        for (int i = 0; i < 1000 && !woke;
             i++) { /* on a busy machine it may be asleep again before this thread looks */
            hl_team_wake(ctx->team);
            for (int k = 0; k < 100000 && !woke; k++)
                woke = !hl_team_asleep(ctx->team);
            if (round == 1)
                hl_team_release(ctx->team);
        }
        assert_true(woke);
        s.input++;
        hl_team_run(ctx->team, stress_job, &s);
        hl_team_release(ctx->team);
        assert_int_equal(s.slots[1], -s.input);
        assert_int_equal(s.errors[0] + s.errors[1], 0);
        assert_int_equal(s.calls[1], round + 1);
    }
    hl_context_free(ctx);
}

/* In a child of fork the threads are not there: a team of one, which does not hang when it is freed either. */
static void test_team_fork(void **state)
{
    hl_context *ctx = test_context(NULL, 3);
    struct stress s = { .team = ctx->team, .input = 7 };
    pid_t child;
    int status;

    (void)state;
    hl_team_run(ctx->team, stress_job, &s);
    nap(5000000); /* the workers sleep */
    child = fork();
    if (child == 0) {
        bool good = hl_context_threads(ctx) == 1;

        alarm(20);
        for (long run = 1; run <= 100; run++) {
            s.input = run;
            hl_team_run(ctx->team, stress_job, &s);
            good = good && s.slots[0] == -run && s.errors[0] == 0 && s.calls[1] == 1;
        }
        hl_context_free(ctx);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(hl_context_threads(ctx), 3);
    s.input = 9;
    hl_team_run(ctx->team, stress_job, &s);
    assert_int_equal(s.slots[2], -9);
    hl_context_free(ctx);
}

static void put_text(const char *directory, const char *name, const char *text)
{
    char path[200];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Control groups of both versions: the smallest share of a group and those above it. */
static void test_groups(void **state)
{
    static const struct {
        const char *groups, *outer, *inner;
        double expected;
    } cases[] = {
        { "0::/outer/inner\n", "max 100000", "150000 100000", 1.5 },
        { "0::/outer/inner\n", "50000 100000", "max 100000", .5 },
        { "0::/outer/inner\n", "300000 100000", "200000 100000", 2 },
        { "0::/outer\n", "300000 100000", "200000 100000", 3 },
        { "0::/\n", "300000 100000", "200000 100000", INFINITY },
        { "4:memory:/outer/inner\n", "300000 100000", "200000 100000", INFINITY },
        { "0::/elsewhere\n", "1 1", "1 1", INFINITY },
        { "0::/outer/inner\n", "nonsense", "-1 100000", INFINITY },
        { "broken", "1 1", "1 1", INFINITY },
    };
    char root[] = "/tmp/test_groups.XXXXXX", path[100], groups[100];

    (void)state;
    assert_non_null(mkdtemp(root));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, i ? "%s/outer/inner" : "%s/outer", root);
        assert_return_code(mkdir(path, 0777), 0);
    }
    snprintf(groups, sizeof groups, "%s/groups", root);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double found;

        put_text(root, "groups", cases[i].groups);
        put_text(root, "outer/cpu.max", cases[i].outer);
        put_text(root, "outer/inner/cpu.max", cases[i].inner);
        found = hl_group_processors(groups, root);
        CHECK(found == cases[i].expected, cases[i].groups);
    }
    snprintf(path, sizeof path, "%s/cpu", root);
    assert_return_code(mkdir(path, 0777), 0);
    put_text(root, "groups", "4:memory:/\n3:cpu,cpuacct:/\n");
    put_text(root, "cpu/cpu.cfs_quota_us", "250000");
    put_text(root, "cpu/cpu.cfs_period_us", "100000");
    assert_true(hl_group_processors(groups, root) == 2.5);
    put_text(root, "cpu/cpu.cfs_quota_us", "-1");
    assert_true(isinf(hl_group_processors(groups, root)));
    assert_true(isinf(hl_group_processors("/nowhere", root)));
    snprintf(path, sizeof path, "rm -r %s", root);
    assert_int_equal(system(path), 0);
}

/* Bound to one processor, a process has one thread to use. */
static void test_affinity(void **state)
{
    cpu_set_t before, one;

    (void)state;
    assert_in_range(hl_threads_available(), 1, 256);
    assert_return_code(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before))
            CPU_SET(i, &one);
    assert_return_code(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(hl_threads_available(), 1);
    assert_return_code(sched_setaffinity(0, sizeof before, &before), 0);
}

/* Teams that come and go, used or not. */
static void test_team_create(void **state)
{
    hl_context *ctx = test_context(NULL, 1);
    hl_team *team = (hl_team *)&ctx;

    (void)state;
    CHECK_STATUS(ctx, hl_team_create(ctx, 0, &team), HL_ERR_INVALID);
    assert_null(team);
    for (int i = 0; i < 200; i++) {
        struct stress s = { .input = 98 };

        CHECK_OK(ctx, hl_team_create(ctx, 1 + i % 5, &team));
        s.team = team;
        if (i % 3)
            hl_team_run(team, stress_job, &s);
        assert_int_equal(s.errors[0], 0);
        hl_team_free(ctx, team);
    }
    hl_team_free(ctx, NULL);
    hl_context_free(ctx);
}

static void test_no_threads(void **state)
{
    (void)state;
    for (int started = 0; started < 4; started++) {
        test_allocator allocator = { 0 };
        hl_context_options options = test_options(&allocator, 5);
        hl_context *ctx = NULL;

        threads_to_start = started;
        CHECK_STATUS(NULL, hl_context_create(&options, &ctx), HL_ERR_NOMEM);
        threads_to_start = -1;
        assert_null(ctx);
        assert_int_equal(allocator.live, 0);
    }
    /* One thread needs none. */
    threads_to_start = 0;
    hl_context_free(test_context(NULL, 1));
    threads_to_start = -1;
}

static void nothing(void *user, int thread)
{
    (void)user;
    (void)thread;
}

/* A team that waits falls asleep. On a busy machine its threads may come to that late: it is given a few times. */
static void test_idle(void **state)
{
    hl_context *ctx = test_context(NULL, 4);
    double used = INFINITY;

    (void)state;
    hl_team_run(ctx->team, nothing, NULL);
    nap(50000000);
    for (int tries = 0; tries < 20 && !(used <= 0.03); tries++) {
        clock_t before = clock();
        nap(300000000);
        used = (double)(clock() - before) / CLOCKS_PER_SEC;
    }
    CHECK_LE(used, 0.03, "processor seconds of an idle team");
    hl_context_free(ctx);
}

/* The helpers that other tests trust. */
static void test_support(void **state)
{
    double a[3] = { 1, 2, -4 }, b[3] = { 1, 2, -4 }, zero[3] = { 0 };
    float c[3] = { 1, 2, -4 }, d[3] = { 1, 2, -4 };

    (void)state;
    assert_true(relative_error_f64(a, b, 3) == 0);
    assert_true(relative_error_f64(zero, zero, 3) == 0);
    assert_true(relative_error_f64(a, zero, 3) == INFINITY);
    b[0] = 2;
    CHECK_NEAR(relative_error_f64(a, b, 3), 0.25, 1e-15, "f64");
    a[1] = NAN;
    assert_true(isnan(relative_error_f64(a, b, 3)));
    d[2] = 4;
    CHECK_NEAR(relative_error_f32(c, d, 3), 2, 1e-15, "f32");
    c[0] = NAN;
    assert_true(isnan(relative_error_f32(c, d, 3)));
    fill_uniform_f64(a, 3, -2, -1, 1);
    fill_uniform_f32(c, 3, -2, -1, 1);
    for (int i = 0; i < 3; i++) {
        assert_true(a[i] > -2 && a[i] < -1);
        assert_true(c[i] == (float)a[i]);
    }
    fill_normal_f64(a, 3, 1);
    fill_normal_f32(c, 3, 1);
    for (int i = 0; i < 3; i++) {
        assert_true(a[i] == hl_random_normal(1, 0, (uint64_t)i));
        assert_true(c[i] == (float)a[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),       cmocka_unit_test(test_context_options),
        cmocka_unit_test(test_message),     cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_memory),      cmocka_unit_test(test_grow),
        cmocka_unit_test(test_arena),       cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_philox),      cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_normals),     cmocka_unit_test(test_team_stress),
        cmocka_unit_test(test_team_create), cmocka_unit_test(test_no_threads),
        cmocka_unit_test(test_idle),        cmocka_unit_test(test_support),
        cmocka_unit_test(test_text),        cmocka_unit_test(test_team_fork),
        cmocka_unit_test(test_team_wake),   cmocka_unit_test(test_groups),
        cmocka_unit_test(test_affinity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
