/* hollow/root.h - solve F(y) = 0 for every row, using the exact diagonal of F.
 *
 * Example: the inverse of a residual network y = x + g(x) is the root of F(x) = x + g(x) - y. */
#ifndef HOLLOW_ROOT_H
#define HOLLOW_ROOT_H

#include "hollow/ode.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_root hl_root; /* opaque */

/* Zero or NULL in any field means the default. */
typedef struct hl_root_options {
    /* "anderson" (default): Jacobi with Anderson acceleration. "jacobi": y <- y - F / diagonal, damped for each row. "fixed-point":
     * y <- y - F. "newton-krylov": KINSOL with jvp, all rows as one system. */
    const char *method;
    /* Tolerance of max |F| of a row. Default 1e-10. */
    double tolerance;
    /* Anderson: number of previous iterates. Default 5. */
    size_t depth;
    /* Largest number of evaluations of F (and jvp) for a row. Default 500. */
    size_t max_evaluations;
    /* Rows solved together. Default 256. */
    size_t rows;
} hl_root_options;
/* Names of the methods; the list ends with NULL. */
HL_API const char *const *hl_root_methods(void);

typedef struct hl_root_row {
    hl_status status; /* HL_OK, or HL_ERR_NO_SOLUTION; y then holds the best iterate */
    size_t evaluations;
    double residual; /* max |F| */
} hl_root_row;

/* The system's rhs is F. "jacobi" and "anderson" need its diagonal. "newton-krylov" needs jvp and uses the diagonal, if there is one, as
 * preconditioner. */
HL_API hl_status hl_root_create(hl_context *context, const hl_system *system, const hl_root_options *options,
                                hl_root **root);
HL_API void hl_root_free(hl_root *root); /* takes NULL */
/* Solve, starting from y (rows x n), which receives the result. t (rows) is passed to the system; NULL means zeros. `info` (rows) may be
 * NULL. Allocates nothing. Except for "newton-krylov", the result of a row does not depend on the other rows. Returns
 * HL_ERR_NO_SOLUTION if a row was not solved; the message gives its residual. */
HL_API hl_status hl_root_solve(hl_root *root, size_t rows, const double *t, double *y, hl_root_row *info);

#ifdef __cplusplus
}
#endif

#endif
