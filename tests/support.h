/* support.h - what the tests share: an allocator that counts and fails on demand, checks that fail on NaN, errors of
 * arrays, and random arrays. All static, no .c; a test includes this instead of cmocka.h. */
#ifndef HL_TESTS_SUPPORT_H
#define HL_TESTS_SUPPORT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* Checks. Written so that a NaN on either side fails; `label` says which case it was. */
#define CHECK_LE(value, limit, label) check_le((value), (limit), #value " <= " #limit, (label), __FILE__, __LINE__)
#define CHECK_NEAR(value, expected, tolerance, label)                                                                  \
    check_le(fabs((double)(value) - (double)(expected)), (tolerance), #value " near " #expected, (label), __FILE__,    \
             __LINE__)
#define CHECK(condition, label)                                                                                        \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail_msg("%s: not true: %s", (label), #condition);                                                         \
    } while (0)
/* The call returns the expected status; a failure shows the context's message. */
#define CHECK_STATUS(ctx, call, expected) check_status((ctx), (call), (expected), #call, __FILE__, __LINE__)
#define CHECK_OK(ctx, call) CHECK_STATUS(ctx, call, HL_OK)

static inline void check_le(double value, double limit, const char *text, const char *label, const char *file, int line)
{
    if (!(value <= limit)) {
        print_error("%s: %s: %.17g > %.17g\n", label, text, value, limit);
        _fail(file, line);
    }
}

static inline void check_status(const hl_context *ctx, hl_status status, hl_status expected, const char *text,
                                const char *file, int line)
{
    if (status != expected) {
        print_error("%s: \"%s\" instead of \"%s\": %s\n", text, hl_status_text(status), hl_status_text(expected),
                    hl_context_message(ctx));
        _fail(file, line);
    }
}

/* A context for all tests of a group: cmocka_run_group_tests(tests, group_context, group_context_free). */
static inline int group_context(void **state)
{
    return hl_context_create(NULL, (hl_context **)state) != HL_OK;
}

static inline int group_context_free(void **state)
{
    hl_context_free(*state);
    return 0;
}

/* An allocator that counts. For one context at a time, as a context is for one thread. */
typedef struct test_allocator {
    long fail_at;      /* fail the n-th allocation, counting from 1; 0 never */
    long calls;        /* allocations asked for */
    long failed;       /* allocations refused */
    long live;         /* blocks not yet released */
    size_t live_bytes; /* their bytes */
    size_t peak_bytes;
} test_allocator;

enum { TEST_BLOCK_HEADER = 16 }; /* holds the size and keeps malloc's alignment */

static inline void *test_alloc(void *user, size_t bytes)
{
    test_allocator *a = user;
    char *block;

    if (++a->calls == a->fail_at || bytes > SIZE_MAX - TEST_BLOCK_HEADER ||
        !(block = malloc(bytes + TEST_BLOCK_HEADER))) {
        a->failed++;
        return NULL;
    }
    memcpy(block, &bytes, sizeof bytes);
    memset(block + TEST_BLOCK_HEADER, 0xA5, bytes); /* new memory is not zero */
    a->live++;
    a->live_bytes += bytes;
    if (a->live_bytes > a->peak_bytes)
        a->peak_bytes = a->live_bytes;
    return block + TEST_BLOCK_HEADER;
}

static inline void test_release(void *user, void *pointer)
{
    test_allocator *a = user;
    char *block = (char *)pointer - TEST_BLOCK_HEADER;
    size_t bytes;

    memcpy(&bytes, block, sizeof bytes);
    a->live--;
    a->live_bytes -= bytes;
    free(block);
}

static inline hl_context_options test_options(test_allocator *allocator, int threads)
{
    return (hl_context_options){
        .threads = threads, .share_all = 1, .alloc = test_alloc, .release = test_release, .user = allocator
    };
}

/* A context over `allocator`, which is zeroed first; over malloc if it is NULL. */
static inline hl_context *test_context(test_allocator *allocator, int threads)
{
    hl_context_options options =
        allocator ? test_options(allocator, threads) : (hl_context_options){ .threads = threads, .share_all = 1 };
    hl_context *ctx = NULL;

    if (allocator)
        *allocator = (test_allocator){ 0 };
    CHECK_OK(NULL, hl_context_create(&options, &ctx));
    return ctx;
}

/* Free the context; all that was made over the allocator must be gone. */
static inline void test_context_free(hl_context *ctx, const test_allocator *allocator)
{
    hl_context_free(ctx);
    if (allocator) {
        assert_int_equal(allocator->live, 0);
        assert_int_equal(allocator->live_bytes, 0);
    }
}

/* Run `scenario` again and again, failing its 1st, 2nd, ... allocation (the context's own included) until it gets through.
 * It must return HL_ERR_NOMEM with a message when an allocation failed, HL_OK when none did, and leave nothing allocated. */
static inline void check_every_allocation(int threads, hl_status (*scenario)(hl_context *ctx, void *user), void *user)
{
    const char *all = getenv("EVERY_ALLOCATION"); /* else each of the first, then ever fewer */
    for (long n = 1;; n += all ? 1 : 1 + n / 200) {
        test_allocator allocator = { .fail_at = n };
        hl_context_options options = test_options(&allocator, threads);
        hl_context *ctx = NULL;
        hl_status status = hl_context_create(&options, &ctx);

        if (!status) {
            status = scenario(ctx, user);
            if (status != (allocator.failed ? HL_ERR_NOMEM : HL_OK))
                fail_msg("allocation %ld fails: status \"%s\", message \"%s\"", n, hl_status_text(status),
                         hl_context_message(ctx));
            if (status && !*hl_context_message(ctx))
                fail_msg("allocation %ld fails: no message", n);
        } else if (status != HL_ERR_NOMEM || ctx) {
            fail_msg("allocation %ld fails in hl_context_create: status \"%s\"", n, hl_status_text(status));
        }
        hl_context_free(ctx);
        if (allocator.live)
            fail_msg("allocation %ld fails: %ld blocks leak", n, allocator.live);
        if (!allocator.failed)
            return;
    }
}

/* max |a - b| / max |b|: the error of `a` relative to the largest value of `b`. NaN if any of them is, infinite if `b`
 * is all zero and `a` is not. */
static inline double relative_error_f64(const double *a, const double *b, size_t count)
{
    double error = 0, scale = 0;

    for (size_t i = 0; i < count; i++) {
        double e = fabs(a[i] - b[i]);

        if (isnan(e))
            return NAN;
        error = fmax(error, e);
        scale = fmax(scale, fabs(b[i]));
    }
    return error == 0 ? 0 : error / scale;
}

static inline double relative_error_f32(const float *a, const float *b, size_t count)
{
    double error = 0, scale = 0;

    for (size_t i = 0; i < count; i++) {
        double e = fabs((double)a[i] - (double)b[i]);

        if (isnan(e))
            return NAN;
        error = fmax(error, e);
        scale = fmax(scale, fabs((double)b[i]));
    }
    return error == 0 ? 0 : error / scale;
}

/* Fill arrays with numbers that depend on nothing but `seed`: normal, or uniform in (low, high). */
static inline void fill_normal_f64(double *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = hl_random_normal(seed, 0, i);
}

static inline void fill_normal_f32(float *values, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)hl_random_normal(seed, 0, i);
}

static inline void fill_uniform_f64(double *values, size_t count, double low, double high, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = low + (high - low) * hl_random_uniform(seed, 0, i);
}

static inline void fill_uniform_f32(float *values, size_t count, double low, double high, uint64_t seed)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(low + (high - low) * hl_random_uniform(seed, 0, i));
}

/* Rename the key of a file's checksum, so that what is behind it sees damage, too. */
static inline void forget_checksum(char *data, size_t size)
{
    static const char key[] = "\"crc32\"";
    for (size_t i = 0; i + sizeof key - 1 <= size; i++)
        if (memcmp(data + i, key, sizeof key - 1) == 0)
            data[i + 1] = 'x';
}

#endif
