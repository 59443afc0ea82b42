/* fit.h - inside a fit. */
#ifndef HL_FIT_H
#define HL_FIT_H

#include "base/base.h"
#include "hollow/fit.h"

hl_context *hl_fit_context(const hl_fit *fit);

#endif
