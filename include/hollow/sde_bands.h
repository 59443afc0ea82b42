/* hollow/sde_bands.h - how well the data determine drift and diffusion of a model, and where.
 *
 *     hl_sde_bands(sde, rows, t, x, &(hl_sde_band_values){ .f_low = low, .f_high = high, .inside = inside });
 *
 * Bands are pointwise and for 90 %, from regressions of resampled data (a bootstrap over trajectories; over rows of snapshots; over
 * blocks of time where there are few trajectories), which the model and its file keep. They tell the noise of the estimate. They do not
 * tell its bias: what the dictionary of the regression cannot express, the ridge, the error of long steps. */
#ifndef HOLLOW_SDE_BANDS_H
#define HOLLOW_SDE_BANDS_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How many replicates the model has; 0: it has no bands. Set `replicates` of hl_sde_regress_options, or the setting "bands" of
 * hl_sde_learn. */
HL_API size_t hl_sde_replicates(const hl_sde *sde);

/* Results of hl_sde_bands; what is NULL is not wanted. */
typedef struct hl_sde_band_values {
    double *f_low, *f_high, *g_low, *g_high; /* rows x dim, in the user's units; around the values of hl_sde_eval */
    int *inside; /* rows: 1 where there are observations near x (if f and g depend on t, near (t, x)), else 0 */
} hl_sde_band_values;
/* HL_ERR_UNSUPPORTED if the model has no bands. */
HL_API hl_status hl_sde_bands(hl_sde *sde, size_t rows, const double *t, const double *x,
                              const hl_sde_band_values *values);

/* As hl_sde_system, but row r of a run follows the drift and diffusion of replicate r % count, so that the spread of simulations has the
 * uncertainty of the model, too. It has no slope, and borrows the model. Constants of expressions stay as they are. HL_ERR_UNSUPPORTED if the
 * model has no bands. */
HL_API hl_status hl_sde_replicate_system(hl_sde *sde, hl_noise_system *system);

#ifdef __cplusplus
}
#endif

#endif
