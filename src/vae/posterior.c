/* posterior.c - posteriors that are not continuous: none, planar, inverse autoregressive, Sylvester. All parameters but those of
 * the autoregressive networks come from the code.
 *
 *   planar     z <- z + u^ tanh(w.z + b),  u^ = u + (m(w.u) - w.u) w / |w|^2,  m(a) = softplus(a + c) - 1 > -1,
 *              log |det| = log(1 + (1 - tanh^2) w.u^): invertible, as w.u^ > -1; c = log(e - 1), so that u = 0 is the identity
 *   iaf        z_i <- s_i z_i + (1 - s_i) m_i,  s_i = sigmoid(a_i + 1),  m_i and a_i from z_1..z_{i-1} and the code
 *   sylvester  z <- z + Q R1 tanh(R2 Q' z + b),  R1 and R2 upper triangular with diagonals in (-1, 1),
 *              Q the first columns of a product of reflections, orthonormal whatever the code says
 *
 * Norms are guarded: a zero w or a zero reflection is the identity. */
#include <math.h>
#include <stdio.h>

#include "vae/vae.h"

#define LOG_E_LESS_1 0.54132485461291810 /* softplus of it is 1 */
#define HEAD_GAIN 0.3                    /* flows begin near the identity */

const hl_vae_posterior hl_vae_posterior_vae = { .name = "vae" };

/* Row i of a piece of `rows` x `size` values. */
static hl_node part(hl_graph *g, hl_node piece, size_t i, size_t size)
{
    return hl_slice(g, piece, 0, i * size, size);
}

static hl_node dot(hl_graph *g, hl_node a, hl_node b)
{
    return hl_sum(g, hl_mul(g, a, b), 0);
}

/* ---- planar ---- */

static void planar_heads(hl_vae_builder *b, hl_node code, hl_vae_pieces *p)
{
    const hl_vae_spec *s = &b->vae->spec;
    hl_vae_head(b, p, "planar_u", code, s->flows * s->latent, HEAD_GAIN, 0);
    hl_vae_head(b, p, "planar_w", code, s->flows * s->latent, HEAD_GAIN, 0);
    hl_vae_head(b, p, "planar_b", code, s->flows, HEAD_GAIN, 0);
}

static hl_node planar_apply(hl_vae_builder *b, const hl_node *piece, hl_node z, hl_node *log_det)
{
    const hl_vae_spec *s = &b->vae->spec;
    hl_graph *g = b->g;
    size_t scalar = 1;
    for (size_t k = 0; k < s->flows; k++) {
        hl_node u = part(g, piece[0], k, s->latent), w = part(g, piece[1], k, s->latent);
        hl_node shift = hl_reshape(g, part(g, piece[2], k, scalar), 0, NULL);
        hl_node wu = dot(g, w, u), ww = hl_add(g, dot(g, w, w), hl_const(g, 1e-8));
        hl_node bound = hl_sub(g, hl_softplus(g, hl_add(g, wu, hl_const(g, LOG_E_LESS_1))), hl_const(g, 1 - 1e-6));
        hl_node along = hl_div(g, hl_sub(g, bound, wu), ww);
        hl_node up = hl_add(g, u, hl_mul(g, along, w));
        hl_node a = hl_tanh(g, hl_add(g, dot(g, w, z), shift));
        hl_node slope = hl_sub(g, hl_const(g, 1), hl_mul(g, a, a));
        z = hl_add(g, z, hl_mul(g, up, a));
        *log_det = hl_add(g, *log_det, hl_log1p(g, hl_mul(g, slope, dot(g, w, up))));
    }
    return z;
}

const hl_vae_posterior hl_vae_posterior_planar = { .name = "planar", .heads = planar_heads, .apply = planar_apply };

/* ---- inverse autoregressive ---- */

static void iaf_heads(hl_vae_builder *b, hl_node code, hl_vae_pieces *p)
{
    hl_vae_head(b, p, "iaf_context", code, b->vae->spec.hidden, 1, 0);
}

/* A masked layer: unit u of `out` sees the inputs below hi[u]. */
static hl_node masked(hl_vae_builder *b, const char *name, hl_node y, size_t out, const uint32_t *lo,
                      const uint32_t *hi, double gain)
{
    char full[64];
    size_t in = hl_node_size(b->g, y);
    snprintf(full, sizeof full, "%s.weight", name);
    hl_node w = hl_vae_param(b, full, 2, (size_t[]){ out, in }, gain / sqrt((double)(in ? in : 1)), 0);
    snprintf(full, sizeof full, "%s.bias", name);
    return hl_add(b->g, hl_linear_masked(b->g, y, w, lo, hi), hl_vae_param(b, full, 1, &out, 0, 0));
}

/* Hidden unit u has degree u latent / hidden in 0..latent-1 and sees z_j with j < degree and units of degrees up to its own;
 * output i sees units of degree <= i. So z_i reaches no output but those after it. */
static hl_node made(hl_vae_builder *b, size_t flow, hl_node z, hl_node context, uint32_t *lo, uint32_t *hi)
{
    size_t d = b->vae->spec.latent, units = b->vae->spec.hidden;
    char name[32];
    for (size_t u = 0; u < units; u++)
        hi[u] = (uint32_t)(u * d / units);
    snprintf(name, sizeof name, "iaf.%zu.0", flow);
    hl_node y = hl_elu(b->g, hl_add(b->g, masked(b, name, z, units, lo, hi, 1), context));
    for (size_t u = 0; u < units; u++)
        hi[u] = (uint32_t)(((u * d / units + 1) * units + d - 1) / d); /* units of degree <= that of u */
    snprintf(name, sizeof name, "iaf.%zu.1", flow);
    y = hl_elu(b->g, masked(b, name, y, units, lo, hi, 1));
    for (size_t i = 0; i < 2 * d; i++)
        hi[i] = (uint32_t)((((i % d) + 1) * units + d - 1) / d);
    snprintf(name, sizeof name, "iaf.%zu.2", flow);
    return masked(b, name, y, 2 * d, lo, hi, HEAD_GAIN);
}

static hl_node iaf_apply(hl_vae_builder *b, const hl_node *piece, hl_node z, hl_node *log_det)
{
    const hl_vae_spec *s = &b->vae->spec;
    hl_graph *g = b->g;
    size_t d = s->latent, most = 2 * d > s->hidden ? 2 * d : s->hidden;
    uint32_t *lo = hl_calloc(b->vae->ctx, most, 2 * sizeof *lo);
    size_t *turn = hl_calloc(b->vae->ctx, d, sizeof *turn);
    for (size_t k = 0; lo && turn && k < s->flows; k++) {
        hl_node out = made(b, k, z, piece[0], lo, lo + most);
        hl_node a = hl_add(g, hl_slice(g, out, 0, d, d), hl_const(g, 1)), keep = hl_sigmoid(g, a);
        hl_node m = hl_slice(g, out, 0, 0, d);
        z = hl_add(g, m, hl_mul(g, keep, hl_sub(g, z, m)));
        *log_det = hl_sub(g, *log_det, hl_sum(g, hl_softplus(g, hl_neg(g, a)), 0)); /* log sigmoid(a) = -softplus(-a) */
        for (size_t i = 0; i < d; i++)
            turn[i] = d - 1 - i;
        z = hl_gather(g, z, 0, d, turn);
    }
    if (!lo || !turn)
        z = hl_graph_fail(g, HL_ERR_NOMEM, "out of memory for the masks");
    hl_free(b->vae->ctx, lo);
    hl_free(b->vae->ctx, turn);
    return z;
}

const hl_vae_posterior hl_vae_posterior_iaf = { .name = "iaf", .heads = iaf_heads, .apply = iaf_apply };

/* ---- Sylvester ---- */

static void sylvester_heads(hl_vae_builder *b, hl_node code, hl_vae_pieces *p)
{
    const hl_vae_spec *s = &b->vae->spec;
    size_t m = s->columns;
    hl_vae_head(b, p, "sylvester_q", code, s->flows * m * s->latent, 1, 0);
    hl_vae_head(b, p, "sylvester_r1", code, s->flows * m * m, HEAD_GAIN, 0);
    hl_vae_head(b, p, "sylvester_r2", code, s->flows * m * m, 1, 0);
    hl_vae_head(b, p, "sylvester_b", code, s->flows * m, HEAD_GAIN, 0);
}

/* y - 2 v (v.y) / (v.v), or y itself if v is as good as zero. */
static hl_node reflect(hl_graph *g, hl_node y, hl_node v)
{
    hl_node vv = dot(g, v, v), real = hl_less(g, hl_const(g, 1e-12), vv);
    hl_node length = hl_select(g, real, vv, hl_const(g, 1));
    hl_node along = hl_select(g, real, hl_scale(g, -2, hl_div(g, dot(g, v, y), length)), hl_const(g, 0));
    return hl_add(g, y, hl_mul(g, along, v));
}

/* Upper triangular [m, m] from m x m values: the diagonal is 0.999 tanh. */
static hl_node triangular(hl_graph *g, hl_node values, size_t m, const double *above, const double *diagonal,
                          hl_node *on_diagonal)
{
    size_t dims[2] = { m, m };
    hl_node r = hl_reshape(g, values, 2, dims);
    hl_node bounded = hl_mul(g, hl_scale(g, 0.999, hl_tanh(g, r)), hl_const_array(g, 2, dims, diagonal));
    *on_diagonal = hl_sum(g, bounded, 1);
    return hl_add(g, bounded, hl_mul(g, r, hl_const_array(g, 2, dims, above)));
}

static hl_node times(hl_graph *g, hl_node r, hl_node y, size_t m)
{
    hl_node column = hl_matmul(g, r, hl_reshape(g, y, 2, (size_t[]){ m, 1 }));
    return hl_reshape(g, column, 1, &m);
}

static hl_node sylvester_flow(hl_vae_builder *b, const hl_node *piece, size_t k, hl_node z, const double *above,
                              const double *diagonal, hl_node *log_det)
{
    const hl_vae_spec *s = &b->vae->spec;
    hl_graph *g = b->g;
    size_t m = s->columns, rest = s->latent - m;
    hl_node d1, d2, y = z;
    for (size_t i = 0; i < m; i++)
        y = reflect(g, y, part(g, piece[0], k * m + i, s->latent));
    y = hl_slice(g, y, 0, 0, m); /* Q' z */
    hl_node r1 = triangular(g, part(g, piece[1], k, m * m), m, above, diagonal, &d1);
    hl_node r2 = triangular(g, part(g, piece[2], k, m * m), m, above, diagonal, &d2);
    hl_node a = hl_tanh(g, hl_add(g, times(g, r2, y, m), part(g, piece[3], k, m)));
    hl_node slope = hl_sub(g, hl_const(g, 1), hl_mul(g, a, a));
    hl_node step = times(g, r1, a, m);
    if (rest) {
        hl_node pad = hl_vae_zero(b, hl_slice(g, z, 0, 0, rest));
        step = hl_concat(g, 2, (hl_node[]){ step, pad }, 0);
    }
    for (size_t i = m; i-- > 0;)
        step = reflect(g, step, part(g, piece[0], k * m + i, s->latent));
    hl_node det = hl_mul(g, slope, hl_mul(g, d1, d2));
    *log_det = hl_add(g, *log_det, hl_sum(g, hl_log1p(g, det), 0));
    return hl_add(g, z, step);
}

static hl_node sylvester_apply(hl_vae_builder *b, const hl_node *piece, hl_node z, hl_node *log_det)
{
    size_t m = b->vae->spec.columns;
    double *above = hl_calloc(b->vae->ctx, m * m, 2 * sizeof *above), *diagonal = above ? above + m * m : NULL;
    if (!above)
        return hl_graph_fail(b->g, HL_ERR_NOMEM, "out of memory for the triangles");
    for (size_t i = 0; i < m; i++)
        for (size_t j = i; j < m; j++)
            *(i == j ? &diagonal[i * m + j] : &above[i * m + j]) = 1;
    for (size_t k = 0; k < b->vae->spec.flows; k++)
        z = sylvester_flow(b, piece, k, z, above, diagonal, log_det);
    hl_free(b->vae->ctx, above);
    return z;
}

const hl_vae_posterior hl_vae_posterior_sylvester = { .name = "sylvester",
                                                      .heads = sylvester_heads,
                                                      .apply = sylvester_apply };

const hl_vae_posterior *const hl_vae_posterior_list[] = { &hl_vae_posterior_vae,
                                                          &hl_vae_posterior_planar,
                                                          &hl_vae_posterior_iaf,
                                                          &hl_vae_posterior_sylvester,
                                                          &hl_vae_posterior_ffjord,
                                                          &hl_vae_posterior_hollow,
                                                          NULL };
