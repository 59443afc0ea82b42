/* hollow/sde_bands.h - confidence bands of drift and diffusion.
 *
 *     hl_sde_bands(sde, rows, t, x, &(hl_sde_band_values){ .f_low = low, .f_high = high, .inside = inside });
 *
 * Bands are pointwise 90 % bands from a bootstrap: regressions of resampled data, which the model and its file keep. Trajectories are
 * resampled; for snapshots, rows; for few trajectories, blocks of time. The bands describe the sampling error of the estimate. They do not
 * include its bias: functions that the dictionary of the regression cannot express, the ridge, and the discretisation error of long
 * steps. Bands of networks come from networks that were trained on data simulated by the model, and include a part of the bias. */
#ifndef HOLLOW_SDE_BANDS_H
#define HOLLOW_SDE_BANDS_H

#include "hollow/sde.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of bootstrap replicates of the model; 0: it has no bands. Set `replicates` of hl_sde_regress_options, or the setting "bands" of
 * hl_sde_learn. */
HL_API size_t hl_sde_replicates(const hl_sde *sde);

/* Results of hl_sde_bands. NULL members are not computed. */
typedef struct hl_sde_band_values {
    double *f_low, *f_high, *g_low,
        *g_high; /* rows x dim, in the user's units; they enclose the values of hl_sde_eval */
    int *inside; /* rows: 1 if there are observations near x (near (t, x) if f and g depend on t), else 0 */
} hl_sde_band_values;
/* HL_ERR_UNSUPPORTED if the model has no bands. */
HL_API hl_status hl_sde_bands(hl_sde *sde, size_t rows, const double *t, const double *x,
                              const hl_sde_band_values *values);

/* As hl_sde_system, but row r of a run uses drift and diffusion of replicate r % count. The spread of simulations then includes the
 * uncertainty of the model. The system has no slope and borrows the model. Constants of expressions are not varied. HL_ERR_UNSUPPORTED if the
 * model has no bands. */
HL_API hl_status hl_sde_replicate_system(hl_sde *sde, hl_noise_system *system);

#ifdef __cplusplus
}
#endif

#endif
