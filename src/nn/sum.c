/* sum.c - conditioner "sum": h_i = rho(sum over j != i of phi_j(x_j)).
 *
 * The sum without j = i is the sum of all before plus the sum of all after, two running sums; never the total minus the own
 * term, which would see x_i by rounding. Cost and memory are linear in d. */
#include <math.h>

#include "nn/net.h"

static hl_node sum_build(hl_builder *b)
{
    const hl_net_spec *s = &b->term->spec;
    hl_node y = hl_builder_encode(b, s->hidden);
    hl_node others = hl_add(b->g, hl_cumsum(b->g, y, 0, 0, 1), hl_cumsum(b->g, y, 0, 1, 1));
    others = hl_scale(b->g, 1 / sqrt((double)s->dim), others);
    hl_node r = hl_builder_dense(b, "conditioner.rho.0", others, s->hidden, s->hidden, true);
    r = hl_builder_dense(b, "conditioner.rho.1", r, s->features, s->hidden, false);
    return hl_add(b->g, r, hl_builder_place(b, "conditioner.rho.place", s->features, 0));
}

const hl_conditioner hl_conditioner_sum = { .build = sum_build };
