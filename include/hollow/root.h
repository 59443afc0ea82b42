/* hollow/root.h - solve F(y) = 0 for every row, using the exact diagonal of F.
 *
 * The inverse of an invertible residual network y = x + g(x) is F(x) = x + g(x) - y. */
#ifndef HOLLOW_ROOT_H
#define HOLLOW_ROOT_H

#include "hollow/ode.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hl_root hl_root; /* opaque */

/* Zero or NULL in any field means the default. */
typedef struct hl_root_options {
    const char
        *method; /* "jacobi": y <- y - F / diagonal, damped for each row; "anderson" (default): the same accelerated;
                         * "fixed-point": y <- y - F; "newton-krylov": KINSOL with jvp, all rows as one system */
    double tolerance;       /* on max |F| of a row; default 1e-10 */
    size_t depth;           /* anderson: earlier iterates used; default 5 */
    size_t max_evaluations; /* of F (and jvp) for a row; default 500 */
    size_t rows;            /* rows solved together; default 256 */
} hl_root_options;
/* The names of the methods, ended by NULL. */
HL_API const char *const *hl_root_methods(void);

typedef struct hl_root_row {
    hl_status status; /* HL_OK, or HL_ERR_NO_SOLUTION: y then holds the best iterate */
    size_t evaluations;
    double residual; /* max |F| */
} hl_root_row;

/* The system's rhs is F; its diagonal, and jvp for newton-krylov, are used where the method needs them. */
HL_API hl_status hl_root_create(hl_context *context, const hl_system *system, const hl_root_options *options,
                                hl_root **root);
HL_API void hl_root_free(hl_root *root); /* takes NULL */
/* Improve y (rows x n) in place; t (rows) is passed to the system, NULL for zeros. Allocates nothing; a row's result does not
 * depend on the others but for newton-krylov. Returns HL_ERR_NO_SOLUTION, "no solution found" with the residual, if any row
 * has none. `info` (rows) may be NULL. */
HL_API hl_status hl_root_solve(hl_root *root, size_t rows, const double *t, double *y, hl_root_row *info);

#ifdef __cplusplus
}
#endif

#endif
