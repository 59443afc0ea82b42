/* tree.c - conditioner "tree": inside and outside of a binary tree over the dimensions; cost linear in d, depth log d.
 *
 *   up:    u_parent = act(A_l [u_left; u_right] + a_l)
 *   down:  o_left = act(B_l [o_parent; u_right] + b_l),  o_right = act(B_l [o_parent; u_left] + b_l)
 *   h_i    = C o_leaf(i) + c_i
 *
 * u of a node knows the leaves below it, o all the others: o_leaf(i) has seen every x_j but x_i. Neighbours share much of
 * their way, so related columns should stand near each other. A level with an odd number of nodes gets a node of zeros. */
#include <stdio.h>

#include "nn/net.h"

enum { MAX_LEVELS = 24 };

/* y [n, m] with a row of zeros added if n is odd. */
static hl_node even(hl_graph *g, hl_node y, size_t n, size_t m)
{
    if (n % 2 == 0)
        return y;
    hl_node zeros = hl_broadcast(g, hl_const(g, 0), 2, (size_t[]){ 1, m });
    return hl_concat(g, 2, (hl_node[]){ y, zeros }, 0);
}

/* What both children of every parent see: [parent; the other child], as [2 pairs, 2 m]. */
static hl_node outside(hl_graph *g, hl_node o, hl_node u, size_t pairs, size_t m)
{
    hl_node both = hl_reshape(g, u, 3, (size_t[]){ pairs, 2, m });
    hl_node other = hl_gather(g, both, 1, 2, (size_t[]){ 1, 0 });
    hl_node parent = hl_broadcast(g, hl_reshape(g, o, 3, (size_t[]){ pairs, 1, m }), 3, (size_t[]){ pairs, 2, m });
    hl_node seen = hl_concat(g, 2, (hl_node[]){ parent, other }, 2);
    return hl_reshape(g, seen, 2, (size_t[]){ 2 * pairs, 2 * m });
}

/* The outside of the root: nothing but t and context. [1, m] */
static hl_node root(hl_builder *b, size_t m)
{
    const hl_net_spec *s = &b->term->spec;
    hl_node o = hl_builder_offset(b, "conditioner.root", m, false, s->context + (size_t)s->time);
    return hl_reshape(b->g, o, 2, (size_t[]){ 1, m });
}

static hl_node tree_build(hl_builder *b)
{
    const hl_net_spec *s = &b->term->spec;
    hl_graph *g = b->g;
    size_t m = s->hidden, n = s->dim, size[MAX_LEVELS], levels = 0;
    hl_node inside[MAX_LEVELS];
    char name[48];
    for (hl_node u = n > 1 ? hl_builder_encode(b, m) : HL_NONE; n > 1; levels++) {
        size[levels] = n;
        inside[levels] = u = even(g, u, n, m);
        n = (n + 1) / 2;
        if (n == 1)
            continue;
        snprintf(name, sizeof name, "conditioner.up.%zu", levels);
        u = hl_builder_dense(b, name, hl_reshape(g, u, 2, (size_t[]){ n, 2 * m }), m, 2 * m, true);
    }
    hl_node o = root(b, m);
    for (size_t l = levels; l-- > 0;) {
        size_t pairs = (size[l] + 1) / 2;
        snprintf(name, sizeof name, "conditioner.down.%zu", l);
        o = hl_builder_dense(b, name, outside(g, o, inside[l], pairs, m), m, 2 * m, true);
        if (2 * pairs != size[l])
            o = hl_slice(g, o, 0, 0, size[l]);
    }
    hl_node h = hl_builder_dense(b, "conditioner.out", o, s->features, m, false);
    return hl_add(g, h, hl_builder_place(b, "conditioner.out.place", s->features, 0));
}

const hl_conditioner hl_conditioner_tree = { .build = tree_build, .hidden_above = 1 };
