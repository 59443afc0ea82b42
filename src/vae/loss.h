/* loss.h - one plan of the loss and all its gradients. */
#ifndef HL_VAE_LOSS_H
#define HL_VAE_LOSS_H

#include "exec/plan.h"
#include "vae/vae.h"

/* What a row gives: log p(x | z), log p(z), log q0(z0), log |det|. */
enum { HL_VAE_LOG_PX, HL_VAE_LOG_PZ, HL_VAE_LOG_Q0, HL_VAE_LOG_DET, HL_VAE_TERMS };

typedef struct hl_vae_loss {
    hl_vae *vae;
    hl_plan *plan;
    size_t first, last; /* parameters first..last-1 are trained */
    size_t outputs;
} hl_vae_loss;

/* `steps` RK4 steps if the posterior is continuous. `frozen`: only the posterior is trained, from the heads to the flow. */
hl_status hl_vae_loss_create(hl_vae *vae, size_t steps, bool frozen, hl_vae_loss **loss);
void hl_vae_loss_free(hl_vae_loss *loss); /* takes NULL */
/* Where a row's values are. */
enum { HL_VAE_X, HL_VAE_NOISE, HL_VAE_PROBE, HL_VAE_BETA, HL_VAE_WEIGHT, HL_VAE_INPUTS };
/* The gradient of the sum over rows of weight * (-log p(x | z) - beta (log p(z) - log q)) goes to the gradients of the
 * parameters, and each row's terms to term[..] (rows each). */
hl_status hl_vae_loss_run(hl_vae_loss *loss, size_t rows, const hl_row_in *input, double *const *term);

#endif
