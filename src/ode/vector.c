/* vector.c - see vector.h. A vector's content begins as SUNDIALS' serial vectors' does, so that all of their operations work. */
#include <stdlib.h>

#include "ode/vector.h"

typedef struct content {
    struct _N_VectorContent_Serial serial;
    hl_vectors *owner;
    double data[];
} content;

static void destroy(N_Vector v)
{
    if (!v)
        return;
    content *c = v->content;
    if (c && v == c->owner->reserve)
        return;
    free(c);
    v->content = NULL;
    N_VFreeEmpty(v);
}

static bool fill(hl_vectors *owner, sunindextype size, N_Vector v)
{
    content *c = malloc(hl_size_add(sizeof *c, hl_size_mul((size_t)size, sizeof(double))));
    v->content = c;
    if (!c)
        return false;
    c->serial = (struct _N_VectorContent_Serial){ .length = size, .own_data = SUNFALSE, .data = c->data };
    c->owner = owner;
    return true;
}

static N_Vector clone_vector(N_Vector w)
{
    const content *c = w->content;
    hl_vectors *owner = c->owner;
    N_Vector v = N_VNewEmpty(w->sunctx);
    if (v && N_VCopyOps(w, v) == 0 && fill(owner, c->serial.length, v))
        return v;
    if (v)
        N_VFreeEmpty(v);
    owner->failed = true;
    return owner->reserve;
}

/* One with the operations of serial vectors. */
static N_Vector first_vector(hl_vectors *vectors, size_t size, SUNContext sun)
{
    N_Vector v = N_VNewEmpty_Serial((sunindextype)size, sun);
    if (!v)
        return NULL;
    free(v->content);
    v->content = NULL;
    v->ops->nvclone = clone_vector;
    v->ops->nvcloneempty = NULL;
    v->ops->nvdestroy = destroy;
    if (fill(vectors, (sunindextype)size, v))
        return v;
    N_VFreeEmpty(v);
    return NULL;
}

N_Vector hl_vector_create(hl_vectors *vectors, size_t size, SUNContext sun)
{
    if (!vectors->reserve)
        vectors->reserve = first_vector(vectors, size, sun);
    return vectors->reserve ? first_vector(vectors, size, sun) : NULL;
}

void hl_vectors_free(hl_vectors *vectors)
{
    N_Vector v = vectors->reserve;
    vectors->reserve = NULL; /* destroyed like any other */
    destroy(v);
    vectors->failed = false;
}
