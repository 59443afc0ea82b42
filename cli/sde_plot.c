/* sde_plot.c - pictures of `hollow sde fit`. */
#include <stdlib.h>

#include "sde.h"

void sde_curves_add(sde_curves *curves, double iteration, double loss, double nll)
{
    if (curves->count == curves->capacity) {
        size_t capacity = curves->capacity ? 2 * curves->capacity : 256;
        void *grown = realloc(curves->point, capacity * sizeof *curves->point);
        if (!grown)
            return; /* pictures are not worth failing for */
        curves->point = grown;
        curves->capacity = capacity;
    }
    double *to = curves->point[curves->count++];
    to[0] = iteration;
    to[1] = loss;
    to[2] = nll;
}
