/* hollow/base.h - status codes, the context, and the two precisions.
 *
 * Every function that can fail returns an hl_status: 0 is success, < 0 an error, > 0 stopped as asked. The text of the
 * last error, with its details, is kept on the context. The library never prints, exits or aborts, and has no mutable
 * globals: everything belongs to a context, and two contexts may be used by two threads at once. One context, and all
 * that was made from it, is for one thread at a time. */
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

/* The version of the library that is linked, as HL_VERSION is that of the headers. */
HL_API const char *hl_version(void);
/* The size of every public struct, so that a binding can see whether it was made for this library. The list ends with a name of
 * NULL. */
typedef struct hl_struct_size {
    const char *name;
    size_t size;
} hl_struct_size;
HL_API const hl_struct_size *hl_struct_sizes(void);

/* One list gives code and text. */
#define HL_STATUS_LIST(X)                                                                                              \
    X(HL_OK, 0, "success")                                                                                             \
    X(HL_IMPRECISE, 2, "finished, but finer tolerances were asked for than the precision allows")                      \
    X(HL_STOPPED, 1, "stopped as asked")                                                                               \
    X(HL_ERR_NOMEM, -1, "out of memory")                                                                               \
    X(HL_ERR_INVALID, -2, "invalid argument")                                                                          \
    X(HL_ERR_SHAPE, -3, "shapes do not fit")                                                                           \
    X(HL_ERR_IO, -4, "input or output failed")                                                                         \
    X(HL_ERR_FORMAT, -5, "malformed file")                                                                             \
    X(HL_ERR_UNSUPPORTED, -6, "not supported")                                                                         \
    X(HL_ERR_NOT_FINITE, -7, "a value is not finite")                                                                  \
    X(HL_ERR_STEP, -8, "the step became too small")                                                                    \
    X(HL_ERR_BUDGET, -9, "the evaluation budget is used up")                                                           \
    X(HL_ERR_CONVERGENCE, -10, "the iteration did not converge")                                                       \
    X(HL_ERR_NO_SOLUTION, -11, "no solution found")                                                                    \
    X(HL_ERR_CALLBACK, -12, "a callback stopped the work")

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

/* Zero in any field means the default. Give both alloc and release, or neither. */
typedef struct hl_context_options {
    int threads;                                /* threads a run may use; default 1, at most 256 */
    void *(*alloc)(void *user, size_t bytes);   /* default malloc; must return memory aligned as malloc does */
    void (*release)(void *user, void *pointer); /* default free; never called with NULL */
    void *user;                                 /* passed to alloc, release and stop */
    int (*stop)(void *user); /* asked at every evaluation of a solve; nonzero ends the call with HL_STOPPED */
    int share_all; /* nonzero: threads share every run; default: those where it has paid of late. Changes no bit */
} hl_context_options;

/* Make a context. `options` may be NULL; it is copied. Its threads belong to the process that made it: in a child of fork the
 * context, and all that was made from it, goes on with one thread and the same bits. No call may be under way at the fork. */
HL_API hl_status hl_context_create(const hl_context_options *options, hl_context **context);
/* Everything made from the context must have been freed before. Takes NULL. */
HL_API void hl_context_free(hl_context *context);
/* The last error's message; "" if there was none. Borrowed until the next call that fails. Takes NULL. */
HL_API const char *hl_context_message(const hl_context *context);
/* The last error as data. Rows, values of a row (columns) and nodes count from 0, rows from the start of the caller's array;
 * HL_NOWHERE where the error has no such place. */
#define HL_NOWHERE ((size_t)-1)
typedef struct hl_failure {
    hl_status status; /* HL_OK: there was none */
    size_t row, column, node;
    const char *what; /* the message without the place; borrowed until the next call that fails */
} hl_failure;
HL_API hl_failure hl_context_failure(const hl_context *context); /* takes NULL */
/* The number of threads a run may use; 0 for NULL. */
HL_API int hl_context_threads(const hl_context *context);
/* How many threads this process can keep busy, 1 to 256: processors that it may run on (affinity), and its control groups' share. */
HL_API int hl_threads_available(void);
/* The instruction set in use: "avx512", "avx2" or "base". */
HL_API const char *hl_context_isa(const hl_context *context);
/* A short text for a status, such as "out of memory". Never NULL. */
HL_API const char *hl_status_text(hl_status status);

#ifdef __cplusplus
}
#endif

#endif
