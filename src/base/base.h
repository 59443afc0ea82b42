/* base.h - what every layer uses: the context with its message, allocator and threads, arenas, and random numbers. */
#ifndef HL_BASE_H
#define HL_BASE_H

#include <stdarg.h>
#include <stdbool.h>

#include "hollow/base.h"
#include "hollow/random.h"
#include "hollow/ranks.h"

typedef struct hl_team hl_team;

struct hl_context {
    void *(*alloc)(void *user, size_t bytes);
    void (*release)(void *user, void *pointer);
    void *user; /* of alloc and release */
    hl_team *team;
    int (*stop)(void *user);
    void *stop_user;
    bool share_all; /* threads share the smallest runs, too */
    hl_ranks ranks;
    double gathered; /* seconds */
    char message[512];
    hl_failure failure; /* `what` points into the message */
};

/* Set the message (printf style, truncated to fit) and return `status`, so that errors read `return hl_fail(...)`. */
hl_status hl_fail(hl_context *ctx, hl_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* A text of bounded size, made piece by piece in a buffer of the caller. What does not fit is cut off; `length` is what all of
 * it would have needed, as snprintf counts. */
typedef struct hl_text {
    char *text;
    size_t size, used, length;
    bool full; /* a list ended with "..." */
} hl_text;
hl_text hl_text_start(char *buffer, size_t size);
void hl_text_add(hl_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Add an item to "a, b, c"; once one does not fit, "..." ends the list. The buffer holds the list alone. */
void hl_text_list(hl_text *text, const char *item);

/* The same at a place: "row 3, value 1: ..." or "node 7: ...". */
typedef struct hl_place {
    size_t row, column, node; /* or HL_NOWHERE */
    bool validation;          /* of the validation rows */
} hl_place;
static inline hl_place hl_at(size_t row, size_t column)
{
    return (hl_place){ .row = row, .column = column, .node = HL_NOWHERE };
}
static inline hl_place hl_at_node(size_t node)
{
    return (hl_place){ .row = HL_NOWHERE, .column = HL_NOWHERE, .node = node };
}
hl_status hl_fail_at(hl_context *ctx, hl_status status, hl_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* For layers that cut rows into chunks: the last error's row, if it has one, counts from `rows` rows earlier. */
hl_status hl_fail_offset(hl_context *ctx, hl_status status, size_t rows);
/* The last error, to be put back after others that are not reported. */
typedef struct hl_kept_failure {
    hl_failure failure;
    char message[512];
} hl_kept_failure;
void hl_failure_keep(const hl_context *ctx, hl_kept_failure *kept);
void hl_failure_restore(hl_context *ctx, const hl_kept_failure *kept);

/* HL_ERR_INVALID with "unknown WHAT 'NAME'; there are: ..." for a name that is not in the list, which ends with NULL. */
hl_status hl_fail_unknown(hl_context *ctx, const char *what, const char *name, const char *const *names);
/* The names of a list with commas between them, cut off at `size`; returns text. */
const char *hl_name_list(const char *const *names, char *text, size_t size);
/* The index of a name in a list, or the length of the list if it is not there. */
size_t hl_name_index(const char *const *names, const char *name);

/* A context of one thread over the memory of another, for work on one of the parent's threads: it has its own message, and
 * asks `stop` (may be NULL) with `user` instead of the parent's. The parent must outlive it. */
hl_status hl_context_branch(hl_context *parent, int (*stop)(void *user), void *user, hl_context **branch);

/* HL_STOPPED if the context's user wants to stop. */
hl_status hl_check_stop(hl_context *ctx);

/* Memory aligned to 64 bytes, or NULL with the message set. `bytes` may be 0. hl_free takes NULL. */
void *hl_alloc(hl_context *ctx, size_t bytes);
void *hl_calloc(hl_context *ctx, size_t count, size_t size); /* zeroed; checks the product for overflow */
void hl_free(hl_context *ctx, void *pointer);
/* Grow an array of `size`-byte elements to hold at least `need`: updates *array and *capacity, keeps the contents.
 * The array was made by hl_grow or is NULL with capacity 0. */
hl_status hl_grow(hl_context *ctx, void **array, size_t *capacity, size_t need, size_t size);

/* An arena: many small allocations, freed together. */
typedef struct hl_arena {
    hl_context *ctx;
    struct hl_arena_block *blocks;
} hl_arena;
void hl_arena_init(hl_arena *arena, hl_context *ctx);
void *hl_arena_alloc(hl_arena *arena, size_t bytes); /* 16-byte aligned; NULL with the message set */
void hl_arena_free(hl_arena *arena);

/* a * b and a + b, or SIZE_MAX if they overflow. */
size_t hl_size_mul(size_t a, size_t b);
size_t hl_size_add(size_t a, size_t b);

/* `count` doubles to the precision of `dtype` and back; the last adds. */
void hl_to_precision(hl_dtype dtype, size_t count, const double *from, void *to);
void hl_from_precision(hl_dtype dtype, size_t count, const void *from, double *to);
void hl_add_from_precision(hl_dtype dtype, size_t count, const void *from, double *to);

/* Processors that the control groups in file `groups` (as /proc/self/cgroup) give, by the files under `root`; may be infinity. */
double hl_group_processors(const char *groups, const char *root);

/* y with Phi(y) = p, 0 < p < 1; relative error about 1e-16. */
double hl_normal_quantile(double p);
/* Where `index` goes in a random permutation of 0 .. count - 1, which needs no memory. Uses the first 2^34 numbers of the stream. */
size_t hl_permuted(uint64_t seed, uint64_t stream, size_t count, size_t index);

/* A team of threads that run the same function, split by index. Created once; `run` allocates nothing. In a child of fork, where
 * the threads are not, it is a team of one. */
hl_status hl_team_create(hl_context *ctx, int threads, hl_team **team);
void hl_team_free(hl_context *ctx, hl_team *team);
int hl_team_size(const hl_team *team);
/* Call job(user, thread) once on each of the team's threads (0 is the caller) and wait for all. */
void hl_team_run(hl_team *team, void (*job)(void *user, int thread), void *user);
/* Inside a job: wait until every thread of the team is here. Spins for a while, then sleeps. */
void hl_team_barrier(hl_team *team);
/* Seconds that all threads together have spent at barriers so far; call between runs. */
double hl_team_waited(const hl_team *team);
/* Between runs: will the next one have to wait for a thread that sleeps? And, around work of the caller alone: wake the threads, so that
 * they are awake when a run follows soon; they do not sleep before hl_team_release, unless that takes many milliseconds. */
bool hl_team_asleep(hl_team *team);
void hl_team_wake(hl_team *team);
void hl_team_release(hl_team *team);
double hl_clock(void); /* seconds since some moment */

#endif
