/* share.c - decides from recent timings whether a run uses several threads.
 *
 * Results do not depend on the decision. If threads wait for each other more than they gain, because the run is short or because
 * other programs use the processors, the plan runs on one thread for a while and then tries several threads again.
 * To wake a thread may take as long as a short run: such a run wakes the threads and goes on alone, and the next one finds them awake. */
#include "exec/plan.h"

#define STAGE_FLOPS 2e4 /* work of a processor in the time of one synchronisation */
#define LONG_FLOPS 4e8  /* a run with more work than this waits for threads to wake */
#define WAKING 5e-3     /* seconds in which a thread should be awake */
#define WORTH 1.15      /* smallest useful speed-up */
#define PATIENCE 16     /* after a run without speed-up, use one thread for this many times its duration ... */
#define MAX_BACKOFF 16  /* ... and up to this many times longer after several such runs */

bool hl_share(const hl_plan *p, size_t rows, double now)
{
    if (hl_team_size(p->ctx->team) == 1)
        return false;
    size_t panels = (rows + HL_LANES - 1) / HL_LANES;
    bool long_enough = p->flops * (double)(panels * HL_LANES) > STAGE_FLOPS * (double)(4 + 2 * p->segments);
    return p->ctx->share_all || (long_enough && now >= p->sharing.alone_until);
}

bool hl_share_waits(const hl_plan *p, size_t rows)
{
    return p->ctx->share_all || p->flops * (double)rows > LONG_FLOPS || !hl_team_asleep(p->ctx->team);
}

static void back_off(hl_sharing *s, double start, double end)
{
    s->backoff = s->backoff == 0 ? 1 : s->backoff < MAX_BACKOFF ? 2 * s->backoff : MAX_BACKOFF;
    s->alone_until = end + PATIENCE * s->backoff * (end - start);
}

void hl_share_woke(hl_sharing *s, double start, double end)
{
    if (s->woke == 0)
        s->woke = start;
    else if (start - s->woke > WAKING) {
        back_off(s, start, end); /* they fell asleep again before this run */
        s->woke = 0;
    }
}

void hl_share_learn(hl_sharing *s, int threads, double start, double end, double waited)
{
    s->woke = 0;
    if ((double)threads * (end - start) - waited > WORTH * (end - start))
        s->backoff = s->backoff > 1 ? s->backoff / 2 : 0; /* one success on a busy machine does not reset it */
    else
        back_off(s, start, end);
}
