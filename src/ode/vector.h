/* vector.h - vectors for SUNDIALS, with failures that SUNDIALS survives.
 *
 * SUNDIALS uses the result of a clone without looking whether there is one. So a clone for which memory runs out is a reserve that
 * was made before, and `failed` says so: whoever set SUNDIALS up looks at it then, and frees everything. */
#ifndef HL_ODE_VECTOR_H
#define HL_ODE_VECTOR_H

#include "base/base.h"
#include "ode/sundials.h"

typedef struct hl_vectors {
    N_Vector reserve;
    bool failed;
} hl_vectors;

/* Vectors of `size` values; NULL without memory. `vectors` is all zeros at first, and is borrowed until the last of
 * its vectors is destroyed. All vectors of one hl_vectors have at most the size of the first. */
N_Vector hl_vector_create(hl_vectors *vectors, size_t size, SUNContext sun);
/* Free the reserve, after everything that SUNDIALS made. */
void hl_vectors_free(hl_vectors *vectors);

#endif
