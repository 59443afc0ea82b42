/* ranks_support.h - ranks that are threads of one process. */
#ifndef HL_TESTS_RANKS_SUPPORT_H
#define HL_TESTS_RANKS_SUPPORT_H

#include <pthread.h>

#include "hollow/ranks.h"
#include "support.h"

enum { MOST_RANKS = 8 };

typedef struct test_ranks {
    size_t size;
    pthread_barrier_t barrier;
    const void *mine[MOST_RANKS];
} test_ranks;

typedef struct test_rank {
    test_ranks *all;
    size_t rank;
    void (*work)(hl_context *ctx, size_t rank, void *user);
    void *user;
    int threads;
    long calls; /* of gather */
} test_rank;

static inline int gather_threads(const void *mine, const size_t *bytes, void *all, void *user)
{
    test_rank *r = user;
    char *to = all;
    r->calls++;
    r->all->mine[r->rank] = mine;
    pthread_barrier_wait(&r->all->barrier);
    for (size_t k = 0; k < r->all->size; to += bytes[k++])
        memcpy(to, r->all->mine[k], bytes[k]);
    pthread_barrier_wait(&r->all->barrier);
    return 0;
}

static inline void *run_rank(void *user)
{
    test_rank *r = user;
    hl_ranks ranks = { r->rank, r->all->size, gather_threads, r };
    hl_context *ctx = NULL;
    hl_context_options options = { .threads = r->threads };
    if (hl_context_create(&options, &ctx) == HL_OK && hl_context_set_ranks(ctx, &ranks) == HL_OK)
        r->work(ctx, r->rank, r->user);
    hl_context_free(ctx);
    return NULL;
}

/* Call `work` on each of `size` ranks at the same time; it must make the same calls of `gather` on all. */
static inline void run_ranks(size_t size, int threads, void (*work)(hl_context *, size_t, void *), void *user)
{
    test_ranks all = { .size = size };
    test_rank rank[MOST_RANKS];
    pthread_t thread[MOST_RANKS];
    pthread_barrier_init(&all.barrier, NULL, (unsigned)size);
    for (size_t k = 0; k < size; k++) {
        rank[k] = (test_rank){ &all, k, work, user, threads, 0 };
        assert_int_equal(pthread_create(&thread[k], NULL, run_rank, &rank[k]), 0);
    }
    for (size_t k = 0; k < size; k++)
        pthread_join(thread[k], NULL);
    for (size_t k = 1; k < size; k++)
        assert_int_equal(rank[k].calls, rank[0].calls);
    pthread_barrier_destroy(&all.barrier);
}

#endif
