/* hollow/hollow.h - everything. */
#ifndef HOLLOW_HOLLOW_H
#define HOLLOW_HOLLOW_H

#include "hollow/base.h"
#include "hollow/density.h"
#include "hollow/density_fit.h"
#include "hollow/diff.h"
#include "hollow/fit.h"
#include "hollow/flow.h"
#include "hollow/graph.h"
#include "hollow/images.h"
#include "hollow/job.h"
#include "hollow/judge.h"
#include "hollow/learn.h"
#include "hollow/net.h"
#include "hollow/ode.h"
#include "hollow/options.h"
#include "hollow/params.h"
#include "hollow/plan.h"
#include "hollow/random.h"
#include "hollow/report.h"
#include "hollow/ranks.h"
#include "hollow/root.h"
#include "hollow/sde.h"
#include "hollow/sde_bands.h"
#include "hollow/sde_learn.h"
#include "hollow/sde_regress.h"
#include "hollow/simulate.h"
#include "hollow/table.h"
#include "hollow/vae.h"
#include "hollow/vae_fit.h"

#endif
