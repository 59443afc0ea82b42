/* ensemble.h - networks fitted to simulated data, of which bands of drift and diffusion are made. */
#ifndef HL_SDE_ENSEMBLE_H
#define HL_SDE_ENSEMBLE_H

#include "io/tensors.h"
#include "sde/region.h"
#include "sde/sde.h"

enum { HL_ENSEMBLE_NETS = 2 }; /* drift and diffusion */

typedef struct hl_ensemble {
    size_t count;
    size_t size[HL_ENSEMBLE_NETS]; /* values of a network, as it keeps them */
    void *value[HL_ENSEMBLE_NETS]; /* [count][size], in the model's precision */
    double quantile;               /* half of a band in root mean square deviations of the replicates */
    hl_region region;
} hl_ensemble;

/* The factor of a root mean square for a band of 90 %, if it has so many degrees of freedom. */
double hl_band_quantile(size_t freedom);

/* x (rows x dim): the data as the model itself would have made them, number `number`. */
hl_status hl_ensemble_simulate(hl_sde *sde, const hl_sde_data *data, uint64_t seed, size_t number, double *x);
/* Iterations of a replicate of a model that has so many. */
size_t hl_ensemble_iterations(size_t iterations);
/* After every replicate; a status that is not HL_OK ends the work. */
typedef hl_status hl_ensemble_tell(void *user, size_t done, size_t all);
/* `count` replicates for a model that was trained on these data with these options; `spec` is what it was created with. */
hl_status hl_ensemble_fit(hl_sde *sde, const hl_sde_spec *spec, const hl_sde_data *data,
                          const hl_sde_fit_options *options, size_t count, hl_ensemble_tell *tell, void *user);
void hl_ensemble_free(hl_context *ctx, hl_ensemble *ensemble); /* takes NULL */

/* f and g (rows x dim, user's units) of a replicate. */
hl_status hl_ensemble_eval(hl_sde *sde, size_t replicate, size_t rows, const double *t, const double *x, double *f,
                           double *g);

/* In model files: an entry of the metadata, which the caller frees, and tensors. */
char *hl_ensemble_text(const hl_sde *sde);
hl_status hl_ensemble_add_tensors(const hl_sde *sde, hl_tensors *t);
/* Values and number of the tensors that a file has for it; the values are SIZE_MAX if one is missing. */
void hl_ensemble_count(const hl_tensors *t, size_t *values, size_t *tensors);
/* HL_ERR_FORMAT, without a message, if they do not fit the model. */
hl_status hl_ensemble_take(hl_sde *sde, const hl_tensors *t, const hl_json *root);

#endif
