/* attention.c - conditioner "attention": h_i is the attention of position i to all other x_j.
 *
 * The query of i is made from its place, t and context, never from x_i; keys and values from the x_j. The score of i with
 * itself is replaced, not added to, so that no x_i can win against the mask; its weight is then exactly 0. One layer only: a
 * second would bring x_i back through the others. With one dimension there is nothing to look at, and h is a constant. */
#include <math.h>

#include "nn/net.h"

#define NEVER (-1e30) /* a score whose exponential is 0 beside any other */

static hl_status attention_check(hl_context *ctx, const hl_net_spec *s)
{
    if (s->dim > 16384)
        return hl_fail(ctx, HL_ERR_INVALID,
                       "dim is %zu; conditioner attention compares all pairs and takes at most 16384; "
                       "use sum or tree",
                       s->dim);
    return HL_OK;
}

/* 1 where i = j, else 0. */
static hl_node diagonal(hl_graph *g, size_t d)
{
    double *values = hl_calloc(g->ctx, hl_size_mul(d, d), sizeof *values);
    if (!values)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the mask");
    for (size_t i = 0; i < d; i++)
        values[i * d + i] = 1;
    hl_node n = hl_const_array(g, 2, (size_t[]){ d, d }, values);
    hl_free(g->ctx, values);
    return n;
}

/* Queries [dim, hidden]: place, t and context. */
static hl_node queries(hl_builder *b)
{
    const hl_net_spec *s = &b->term->spec;
    hl_node q = hl_builder_place(b, "conditioner.query.place", s->hidden, 1);
    if (s->time || s->context)
        q = hl_add(b->g, q, hl_builder_offset(b, "conditioner.query", s->hidden, false, s->context + (size_t)s->time));
    return q;
}

static hl_node attention_build(hl_builder *b)
{
    const hl_net_spec *s = &b->term->spec;
    hl_graph *g = b->g;
    size_t d = s->dim, m = s->hidden;
    if (d == 1) {
        return hl_builder_place(b, "conditioner.out.place", s->features, 1);
    }
    hl_node y = hl_builder_encode(b, m);
    /* no bias: it would add the same to all scores of a query */
    hl_node key = hl_linear(g, y, hl_builder_param(b, "conditioner.key.weight", 2, (size_t[]){ m, m }, m));
    hl_node value = hl_builder_dense(b, "conditioner.value", y, m, m, false);
    hl_node score = hl_matmul(g, queries(b), hl_permute(g, key, (int[]){ 1, 0 }));
    score = hl_select(g, diagonal(g, d), hl_const(g, NEVER), hl_scale(g, 1 / sqrt((double)m), score));
    hl_node seen = hl_matmul(g, hl_softmax(g, score, 1), value);
    hl_node h = hl_builder_dense(b, "conditioner.out", seen, s->features, m, false);
    return hl_add(g, h, hl_builder_place(b, "conditioner.out.place", s->features, 0));
}

const hl_conditioner hl_conditioner_attention = { .check = attention_check,
                                                  .build = attention_build,
                                                  .hidden_above = 1 };
