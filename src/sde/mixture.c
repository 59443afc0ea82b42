/* mixture.c - mixtures of Gaussians: N(x; mean_c, (A_c' A_c)^-1) with lower triangular A_c, weights softmax(logit).
 *
 *   z_c = A_c (x - mean_c)            l_c = logit_c - logsumexp(logit) - |z_c|^2/2 + sum_i log A_c,ii - d/2 log 2 pi
 *   log p = logsumexp(l)              w = softmax(l)
 *   s_c = -A_c' z_c                   s = sum_c w_c s_c
 *   c = sum_c w_c (s_c^2 - diag(A_c' A_c))
 *
 * The derivatives by x are written out: for m components that is two products with A, where jets would take d of them.
 * c = p''/p as it stands has no difference of large numbers s^2. */
#include <math.h>

#include "op/op.h"
#include "sde/sde.h"

size_t hl_mixture_outputs(const hl_mixture *m)
{
    size_t d = m->dim;
    return m->components * (1 + 2 * d + (m->diagonal ? 0 : d * (d - 1) / 2));
}

/* A [m, d, d] from its diagonal [m, d] and what is below it [m, d (d - 1) / 2]. */
static hl_node triangle(const hl_mixture *m, hl_graph *g, hl_node diagonal, hl_node below)
{
    size_t d = m->dim, size = d * d, under = d * (d - 1) / 2;
    size_t *index = hl_calloc(g->ctx, size, sizeof *index);
    if (!index)
        return hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for a mixture");
    hl_node zero = hl_broadcast(g, hl_const(g, 0), 2, (size_t[]){ m->components, 1 });
    hl_node parts[] = { diagonal, zero, below };
    hl_node all = hl_concat(g, under ? 3 : 2, parts, 1);
    for (size_t i = 0, next = d + 1; i < d; i++)
        for (size_t j = 0; j < d; j++)
            index[i * d + j] = j == i ? i : j < i ? next++ : d;
    hl_node a = hl_reshape(g, hl_gather(g, all, 1, size, index), 3, (size_t[]){ m->components, d, d });
    hl_free(g->ctx, index);
    return a;
}

void hl_mixture_split(const hl_mixture *m, hl_graph *g, hl_node out, hl_mixture_nodes *n)
{
    size_t d = m->dim, c = m->components, under = d * (d - 1) / 2;
    hl_node raw = hl_reshape(g, hl_slice(g, out, 0, c + c * d, c * d), 2, (size_t[]){ c, d });
    n->logit = hl_slice(g, out, 0, 0, c);
    n->mean = hl_reshape(g, hl_slice(g, out, 0, c, c * d), 2, (size_t[]){ c, d });
    n->log_diagonal = hl_scale(g, m->clamp, hl_tanh(g, hl_scale(g, 1 / m->clamp, raw)));
    n->factor = hl_exp(g, n->log_diagonal);
    if (!m->diagonal) {
        hl_node below = HL_NONE;
        if (under)
            below = hl_reshape(g, hl_slice(g, out, 0, c + 2 * c * d, c * under), 2, (size_t[]){ c, under });
        n->factor = triangle(m, g, n->factor, below);
    }
}

/* Sum over the components, weighted: w [m], v [m, d] to [d]. */
static hl_node average(hl_graph *g, size_t m, hl_node w, hl_node v)
{
    return hl_sum(g, hl_mul(g, hl_reshape(g, w, 2, (size_t[]){ m, 1 }), v), 0);
}

hl_status hl_mixture_build(const hl_mixture *m, hl_graph *g, const hl_mixture_nodes *n, hl_node x, int derivatives,
                           hl_fp_nodes *fp)
{
    static const double log_2pi = 1.8378770664093454836;
    size_t d = m->dim, c = m->components;
    hl_node gap = hl_sub(g, x, n->mean), z, sc, precision; /* [m, d] */
    if (m->diagonal) {
        z = hl_mul(g, n->factor, gap);
        sc = hl_neg(g, hl_mul(g, n->factor, z));
        precision = hl_mul(g, n->factor, n->factor);
    } else {
        z = hl_sum(g, hl_mul(g, n->factor, hl_reshape(g, gap, 3, (size_t[]){ c, 1, d })), 2);
        sc = hl_neg(g, hl_sum(g, hl_mul(g, n->factor, hl_reshape(g, z, 3, (size_t[]){ c, d, 1 })), 1));
        precision = hl_sum(g, hl_mul(g, n->factor, n->factor), 1);
    }
    hl_node inner = hl_sub(g, hl_sum(g, n->log_diagonal, 1), hl_scale(g, 0.5, hl_sum(g, hl_mul(g, z, z), 1)));
    hl_node l = hl_add(g, n->logit, inner);
    fp->logp = hl_sub(g, hl_sub(g, hl_logsumexp(g, l, 0), hl_logsumexp(g, n->logit, 0)),
                      hl_const(g, 0.5 * (double)d * log_2pi));
    if (!derivatives)
        return hl_graph_status(g);
    hl_node w = hl_softmax(g, l, 0);
    fp->s = average(g, c, w, sc);
    fp->c = average(g, c, w, hl_sub(g, hl_mul(g, sc, sc), precision));
    return hl_graph_status(g);
}

/* x = mean + A^-1 z of a component chosen with u. */
void hl_mixture_draw(const hl_mixture *m, const double *logit, const double *mean, const double *factor, double u,
                     double *x)
{
    size_t d = m->dim, c = 0;
    double top = -INFINITY, total = 0, sum = 0;
    for (size_t k = 0; k < m->components; k++)
        top = fmax(top, logit[k]);
    for (size_t k = 0; k < m->components; k++)
        total += exp(logit[k] - top);
    for (; c + 1 < m->components; c++) {
        sum += exp(logit[c] - top);
        if (u * total < sum)
            break;
    }
    for (size_t i = 0; i < d; i++) { /* x holds z above i, x - mean below it */
        const double *row = factor + (m->diagonal ? c * d + i : (c * d + i) * d);
        for (size_t j = 0; j < i && !m->diagonal; j++)
            x[i] -= row[j] * x[j];
        x[i] /= m->diagonal ? row[0] : row[i];
    }
    for (size_t i = 0; i < d; i++)
        x[i] += mean[c * d + i];
}
