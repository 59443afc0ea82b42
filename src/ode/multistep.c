/* multistep.c - placeholder. */
#include "ode/ode.h"

static const char *const names[] = { NULL };
const hl_ode_family hl_ode_multistep = { .names = names };
