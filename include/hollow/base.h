/* hollow/base.h - status codes, the context, and the two precisions.
 *
 * Every function that can fail returns an hl_status: 0 for success, < 0 for an error, > 0 for a call that was stopped on request
 * or finished with a warning. The context keeps the message of the last error. The library never prints, exits or aborts.
 *
 * There are no mutable globals: all objects belong to a context. Two threads may use two contexts at the same time. A context and
 * the objects created from it may be used by one thread at a time. */
#ifndef HOLLOW_BASE_H
#define HOLLOW_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HL_API __attribute__((visibility("default")))
#else
#define HL_API
#endif

#define HL_VERSION "0.1.0"

/* The version of the linked library. HL_VERSION is the version of the headers. */
HL_API const char *hl_version(void);
/* The size of every public struct. Bindings use it to check that they match the library. The list ends with a NULL name. */
typedef struct hl_struct_size {
    const char *name;
    size_t size;
} hl_struct_size;
HL_API const hl_struct_size *hl_struct_sizes(void);

/* All status codes with their texts. */
#define HL_STATUS_LIST(X)                                                                                              \
    X(HL_OK, 0, "success")                                                                                             \
    X(HL_IMPRECISE, 2, "finished, but the tolerance is finer than the precision allows")                               \
    X(HL_STOPPED, 1, "stopped on request")                                                                             \
    X(HL_ERR_NOMEM, -1, "out of memory")                                                                               \
    X(HL_ERR_INVALID, -2, "invalid argument")                                                                          \
    X(HL_ERR_SHAPE, -3, "shapes do not match")                                                                         \
    X(HL_ERR_IO, -4, "input or output failed")                                                                         \
    X(HL_ERR_FORMAT, -5, "malformed file")                                                                             \
    X(HL_ERR_UNSUPPORTED, -6, "not supported")                                                                         \
    X(HL_ERR_NOT_FINITE, -7, "a value is not finite")                                                                  \
    X(HL_ERR_STEP, -8, "the step became too small")                                                                    \
    X(HL_ERR_BUDGET, -9, "the evaluation budget is used up")                                                           \
    X(HL_ERR_CONVERGENCE, -10, "the iteration did not converge")                                                       \
    X(HL_ERR_NO_SOLUTION, -11, "no solution found")                                                                    \
    X(HL_ERR_CALLBACK, -12, "a callback stopped the computation")

typedef enum hl_status {
#define HL_STATUS_ENUM(name, code, text) name = code,
    HL_STATUS_LIST(HL_STATUS_ENUM)
#undef HL_STATUS_ENUM
} hl_status;

/* The element type of a plan or a network. */
typedef enum hl_dtype { HL_F32 = 0, HL_F64 = 1 } hl_dtype;

/* Bytes of one element; 0 if dtype is not one of the two. */
HL_API size_t hl_dtype_size(hl_dtype dtype);
/* "f32" or "f64"; NULL if dtype is not one of the two. */
HL_API const char *hl_dtype_name(hl_dtype dtype);

typedef struct hl_context hl_context; /* opaque */

/* Zero in any field means the default. Set both alloc and release, or neither. */
typedef struct hl_context_options {
    /* Number of threads that a call may use, at most 256. Default 1. */
    int threads;
    /* Memory allocation. Memory must be aligned as malloc aligns it. Default malloc and free; release is never called with NULL. */
    void *(*alloc)(void *user, size_t bytes);
    void (*release)(void *user, void *pointer);
    /* Passed to alloc, release and stop. */
    void *user;
    /* Called at every evaluation of a solve. A nonzero result ends the call with HL_STOPPED. Default none. */
    int (*stop)(void *user);
    /* Nonzero: use all threads for every run. Default: only where recent timings showed a speed-up. Results are bitwise identical
     * either way. */
    int share_all;
} hl_context_options;

/* Create a context. `options` is copied and may be NULL.
 *
 * After fork, the child process may use the context and its objects. They run with one thread and give bitwise the same results. No
 * call may be in progress during the fork. */
HL_API hl_status hl_context_create(const hl_context_options *options, hl_context **context);
/* Free a context. Free all objects created from it first. Takes NULL. */
HL_API void hl_context_free(hl_context *context);
/* The message of the last error, or "". Borrowed until the next call that fails. Takes NULL. */
HL_API const char *hl_context_message(const hl_context *context);
/* The last error as data. Row, column (value of a row) and node count from 0; rows count from the start of the caller's array. A
 * position that does not apply is HL_NOWHERE. */
#define HL_NOWHERE ((size_t)-1)
typedef struct hl_failure {
    hl_status status; /* HL_OK: no error so far */
    size_t row, column, node;
    const char *what; /* the message without the position; borrowed until the next call that fails */
    int validation;   /* hl_density_fit: nonzero if `row` counts the validation rows, zero if the training rows */
} hl_failure;
HL_API hl_failure hl_context_failure(const hl_context *context); /* takes NULL */
/* Number of threads that a call may use; 0 for NULL. */
HL_API int hl_context_threads(const hl_context *context);
/* Number of threads that this process can run in parallel, 1 to 256. Takes account of CPU affinity and of cgroup limits. */
HL_API int hl_threads_available(void);
/* The instruction set in use: "avx512", "avx2" or "base". */
HL_API const char *hl_context_isa(const hl_context *context);
/* A short text for a status, such as "out of memory". Never NULL. */
HL_API const char *hl_status_text(hl_status status);

#ifdef __cplusplus
}
#endif

#endif
