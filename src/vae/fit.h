/* fit.h - the settings of hl_vae_fit, as structs. */
#ifndef HL_VAE_FIT_H
#define HL_VAE_FIT_H

#include "base/options.h"
#include "vae/train.h"

hl_vae_spec hl_vae_spec_of(const hl_vae_data *data, const hl_settings *settings);
/* For so many rows of training. */
hl_vae_train_options hl_vae_train_options_of(const hl_settings *settings, size_t rows);

#endif
