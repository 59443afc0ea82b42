/* vae_support.h - what the tests of autoencoders share: small ones with generic weights, rows of bits. */
#ifndef HL_TESTS_VAE_SUPPORT_H
#define HL_TESTS_VAE_SUPPORT_H

#include "support.h"

#include <stdio.h>

#include "vae/vae.h"

static inline unsigned char *random_bits(size_t count, uint64_t seed)
{
    unsigned char *bits = test_malloc(count);
    for (size_t i = 0; i < count; i++)
        bits[i] = hl_random_uniform(seed, 9, i) < 0.4;
    return bits;
}

/* A small autoencoder in double with all parameters away from 0, so that every term counts. */
static inline hl_vae *small_vae(hl_context *ctx, const hl_vae_spec *spec)
{
    hl_vae *v;
    CHECK_OK(ctx, hl_vae_create(ctx, spec, &v));
    CHECK_OK(ctx, hl_vae_init(v, 5));
    for (size_t i = 0; i < v->params->count; i++) {
        hl_net_param *p = &v->params->param[i];
        for (size_t k = 0; k < p->size && v->deviation[i] >= 0; k++) {
            double extra = (p->size > 100 ? 0.02 : 0.2) * hl_random_normal(77, i, k), value;
            char *at = (char *)p->values + k * hl_dtype_size(v->spec.dtype);
            hl_from_precision(v->spec.dtype, 1, at, &value);
            value += extra;
            hl_to_precision(v->spec.dtype, 1, &value, at);
        }
    }
    return v;
}

/* The values of a parameter in double. */
static inline double *values_of(hl_vae *v, const char *name)
{
    size_t i = hl_params_find(v->params, name);
    if (i == v->params->count)
        fail_msg("there is no parameter %s", name);
    return v->params->param[i].values;
}

#endif
