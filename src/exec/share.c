/* share.c - whether the threads should share a run.
 *
 * No bit depends on it, so it may be learnt: threads that wait for each other more than they gain, because the run is short or
 * because other programs have the processors, leave the plan's runs to the caller for a while, and try again later. */
#include "exec/plan.h"

#define STAGE_FLOPS 2e4 /* what a processor does while threads meet once */
#define WORTH 1.15      /* the least speed-up that is worth two processors */
#define PATIENCE 16     /* alone for so many times as long as the run that was shared in vain took ... */
#define MOST_DOUBT 16   /* ... and up to so many times longer after several such runs */

bool hl_share(const hl_plan *p, size_t rows, double now)
{
    if (hl_team_size(p->ctx->team) == 1)
        return false;
    size_t panels = (rows + HL_LANES - 1) / HL_LANES;
    bool long_enough = p->flops * (double)(panels * HL_LANES) > STAGE_FLOPS * (double)(4 + 2 * p->segments);
    return p->ctx->share_all || (long_enough && now >= p->sharing.alone_until);
}

void hl_share_learn(hl_sharing *s, int threads, double start, double end, double waited)
{
    if ((double)threads * (end - start) - waited > WORTH * (end - start)) {
        s->doubt = s->doubt > 1 ? s->doubt / 2 : 0; /* a busy machine has a free moment now and then */
        return;
    }
    s->doubt = s->doubt == 0 ? 1 : s->doubt < MOST_DOUBT ? 2 * s->doubt : MOST_DOUBT;
    s->alone_until = end + PATIENCE * s->doubt * (end - start);
}
