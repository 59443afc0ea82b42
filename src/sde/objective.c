/* objective.c - the training objective as one plan: sums of the losses and all gradients.
 *
 * Fokker-Planck matching: the density's parameters minimise -log p + lambda penalty(R), drift and diffusion penalty(R)
 * at weight 1. Both are the gradient of -log p + penalty(R), if what R takes from the density is q' = stop(q) + lambda
 * (q - stop(q)): equal to q, with lambda times its derivative. R is taken where the observations are, or, as their times may be few,
 * at places of its own.
 *
 * A density from data has ripples, and what R takes from it, most of all its second derivatives, is wrong by more than its
 * values are: made small point by point, R comes out smallest with a diffusion, and a drift, that are too small, as slopes do in a
 * regression on noisy columns. So drift and diffusion get R averaged over neighbours, the gradient of
 *   sum_rs R_r k_rs R_s / 2     as     sum_r w_r R_r,   w_r = sum_s k_rs R_s,
 * the weak form of the equation: where the rows are draws from p, the mean of R times a smooth function has no derivatives
 * of p in it, by parts. fit.c makes w. POINTWISE of the penalty is left, so that no ripple of f and g goes unseen.
 *
 * Where the curvature of the density is estimated, R is too: the penalty is then R_1 R_2 / 2 with two independent
 * estimates, whose mean is R^2 / 2, which that of R_1^2 / 2 is not. With u = g v, v random signs, and the Hessian H of log
 * p, the mean of u' H u is sum_i G_i D s_i; by w = H stop(u) and w' as above, 2 u w' - stop(u) w' has the value and, for
 * each network, the derivative of u' H u that it should.
 *
 * Pseudo-likelihood: a step dt is one of Euler's, dx_i ~ N(f_i dt, g_i^2 dt + floor). The density is fitted beside it. */
#include <string.h>

#include "exec/plan.h"
#include "op/op.h"
#include "sde/sde.h"

static const double POINTWISE = 0.0005;

static hl_node dampen(const hl_sde_graph *b, bool stop, hl_node q)
{
    hl_node still = hl_stop(b->g, q);
    return stop ? still : hl_add(b->g, still, hl_mul(b->g, b->lambda, hl_sub(b->g, q, still)));
}

static hl_node penalise(hl_graph *g, hl_sde_penalty kind, hl_node r)
{
    hl_node half = hl_scale(g, 0.5, hl_mul(g, r, r)), size = hl_abs(g, r);
    if (kind == HL_SDE_L1)
        return size;
    if (kind == HL_SDE_L2)
        return half;
    return hl_select(g, hl_less(g, size, hl_const(g, 1)), half, hl_add(g, size, hl_const(g, -0.5)));
}

/* R with all that the density gives dampened; *c: what is to be c. */
static hl_status build_residual(const hl_sde_graph *b, bool stop, hl_node c, hl_fp_nodes *fp)
{
    *fp = b->fp;
    fp->logp = dampen(b, stop, fp->logp);
    fp->logp_t = dampen(b, stop, fp->logp_t);
    fp->s = dampen(b, stop, fp->s);
    fp->c = dampen(b, stop, c);
    return hl_fp_build(b->g, fp);
}

/* R, or p R, from one estimate of the curvature by the signs of `probe`. */
static hl_status estimate(const hl_sde *s, const hl_sde_fit_options *o, hl_sde_graph *b, hl_node probe, hl_node *r)
{
    hl_graph *g = b->g;
    bool stop = o->stop_gradient != 0, projected = s->curvature == HL_SDE_PROJECTED;
    hl_node square = hl_mul(g, b->fp.s, b->fp.s), diagonal = HL_NONE, w = HL_NONE;
    hl_node u = projected ? hl_mul(g, b->fp.g, probe) : HL_NONE, still = projected ? hl_stop(g, u) : HL_NONE;
    hl_fp_nodes fp;
    hl_status status = projected ? hl_jet(g, 1, 1, &b->x, &still, NULL, 1, &b->fp.s, &w)
                                 : hl_curvature(g, b->fp.logp, b->x, probe, &diagonal);
    if (status == HL_OK)
        status = build_residual(b, stop, hl_accumulate(g, square, diagonal), &fp);
    if (status != HL_OK)
        return status;
    if (projected) {
        hl_node both = hl_mul(g, hl_sub(g, hl_scale(g, 2, u), still), dampen(b, stop, w));
        fp.residual = hl_sub(g, fp.residual, hl_scale(g, 0.5, hl_sum(g, both, 0)));
    }
    *r = o->density_form ? hl_mul(g, hl_exp(g, fp.logp), fp.residual) : fp.residual;
    return hl_graph_status(g);
}

/* The penalty from two estimates. */
static hl_status build_estimated(hl_sde_objective *j, const hl_sde_fit_options *o, hl_sde_graph *b, hl_node *penalty)
{
    hl_graph *g = b->g;
    hl_node r[2];
    j->probe = j->sde->spec.dim;
    hl_status status = hl_sde_graph_density(j->sde, b, 0);
    if (status == HL_OK && j->sde->curvature == HL_SDE_PROPAGATED)
        status = hl_curvature_noise(g, b->fp.logp, b->x, &j->probe);
    if (status == HL_OK)
        status = hl_sde_graph_slopes(b);
    for (int k = 0; k < 2 && status == HL_OK; k++)
        status = estimate(j->sde, o, b, hl_input(g, k ? "probe.1" : "probe.0", 1, &j->probe), &r[k]);
    if (status == HL_OK)
        *penalty = hl_scale(g, 0.5, hl_mul(g, r[0], r[1]));
    return status;
}

/* What drift and diffusion minimise if R is averaged, to loss[2]; loss[0] is then for the density alone. */
static hl_status build_averaged(const hl_sde_fit_options *o, const hl_sde_graph *b, hl_node *loss)
{
    hl_graph *g = b->g;
    hl_sde_graph still = *b;
    hl_fp_nodes fp;
    hl_node *const motion[] = { &still.fp.f, &still.fp.df, &still.fp.g, &still.fp.dg, &still.fp.d2g };
    for (size_t i = 0; i < sizeof motion / sizeof *motion; i++)
        *motion[i] = hl_stop(g, *motion[i]);
    hl_status status = build_residual(&still, o->stop_gradient != 0, b->fp.c, &fp);
    loss[0] = penalise(g, o->penalty, fp.residual);
    if (status == HL_OK)
        status = build_residual(b, true, b->fp.c, &fp);
    hl_node average = hl_mul(g, hl_input(g, "weight", 0, NULL), fp.residual);
    loss[2] = hl_add(g, average, hl_scale(g, POINTWISE, penalise(g, o->penalty, fp.residual)));
    return status;
}

static hl_status build_matching(hl_sde_objective *j, const hl_sde_fit_options *o, hl_sde_graph *b, hl_node *loss)
{
    const hl_sde *s = j->sde;
    hl_fp_nodes fp;
    hl_status status = HL_OK;
    if (o->between > 0) { /* the residual has places of its own */
        status = hl_sde_graph_density(s, b, 0);
        loss[1] = hl_neg(b->g, b->fp.logp);
        b->t = hl_input(b->g, "place.t", 0, NULL);
        b->x = hl_input(b->g, "place.x", 1, &s->spec.dim);
    }
    if (status == HL_OK)
        status = hl_sde_graph_motion(s, b, 2);
    if (status == HL_OK && s->curvature != HL_SDE_EXACT) {
        status = build_estimated(j, o, b, &loss[0]);
    } else if (status == HL_OK) {
        status = hl_sde_graph_density(s, b, 1);
        if (status == HL_OK && o->smooth > 0)
            status = build_averaged(o, b, loss);
        else if (status == HL_OK)
            status = build_residual(b, o->stop_gradient != 0, b->fp.c, &fp);
        if (status == HL_OK && !(o->smooth > 0))
            loss[0] = penalise(b->g, o->penalty, o->density_form ? fp.residual_p : fp.residual);
    }
    if (status != HL_OK)
        return status;
    if (!(o->between > 0))
        loss[1] = hl_neg(b->g, b->fp.logp);
    return hl_graph_status(b->g);
}

static hl_status build_pseudo(const hl_sde *s, const hl_sde_fit_options *o, hl_sde_graph *b, hl_node *loss)
{
    hl_graph *g = b->g;
    hl_node dt = hl_input(g, "dt", 0, NULL), dx = hl_input(g, "dx", 1, &s->spec.dim);
    hl_node end = hl_input(g, "end", 0, NULL);
    hl_status status = hl_sde_graph_motion(s, b, 0);
    if (status != HL_OK)
        return status;
    hl_node v = hl_add(g, hl_mul(g, hl_mul(g, b->fp.g, b->fp.g), dt), hl_const(g, o->variance_floor));
    hl_node gap = hl_sub(g, dx, hl_mul(g, b->fp.f, dt));
    loss[0] = hl_scale(g, 0.5, hl_sum(g, hl_add(g, hl_div(g, hl_mul(g, gap, gap), v), hl_log(g, v)), 0));
    b->t = hl_add(g, b->t, hl_mul(g, end, dt));
    b->x = hl_add(g, b->x, hl_mul(g, end, dx));
    status = hl_sde_graph_density(s, b, 0);
    loss[1] = hl_neg(g, b->fp.logp);
    return status;
}

/* The density alone. */
static hl_status build_density(const hl_sde *s, hl_sde_graph *b, hl_node *loss)
{
    hl_status status = hl_sde_graph_density(s, b, 0);
    loss[1] = hl_neg(b->g, b->fp.logp);
    loss[0] = hl_sub(b->g, b->fp.logp, b->fp.logp);
    return status;
}

static hl_status compile(hl_sde_objective *o, const hl_sde_fit_options *options)
{
    hl_sde *s = o->sde;
    hl_sde_graph b;
    hl_node loss[3] = { HL_NONE, HL_NONE, HL_NONE }, *out = NULL;
    hl_status status = hl_sde_graph_start(s, &b);
    if (status == HL_OK)
        status = options->density_only               ? build_density(s, &b, loss)
                 : o->method == HL_SDE_FOKKER_PLANCK ? build_matching(o, options, &b, loss)
                                                     : build_pseudo(s, options, &b, loss);
    if (status == HL_OK && !(out = hl_calloc(s->ctx, b.params + 2, sizeof *out)))
        status = HL_ERR_NOMEM;
    if (status == HL_OK)
        status = hl_vjp(b.g, loss[2] == HL_NONE ? 2 : 3, loss, NULL, b.params, b.param, NULL, out + 2);
    if (status == HL_OK) {
        out[0] = hl_sum_rows(b.g, loss[0]);
        out[1] = hl_sum_rows(b.g, loss[1]);
        status = hl_plan_create(s->ctx, b.g, b.params + 2, out, &(hl_plan_options){ .dtype = s->spec.dtype }, &o->plan);
    }
    hl_free(s->ctx, out);
    hl_sde_graph_end(s, &b);
    return status;
}

hl_status hl_sde_objective_create(hl_sde *s, const hl_sde_fit_options *options, hl_sde_objective *o)
{
    size_t element = hl_dtype_size(s->spec.dtype), params = 0, next = 2;
    *o = (hl_sde_objective){ .sde = s, .method = options->method, .total = hl_sde_param_total(s) };
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        params += s->net[n]->params;
    o->result = hl_calloc(s->ctx, params + 2, sizeof *o->result);
    o->values = hl_calloc(s->ctx, o->total + 2, element);
    if (!o->result || !o->values)
        return HL_ERR_NOMEM;
    char *at = o->values;
    o->result[0].shared = at;
    o->result[1].shared = at + element;
    at += 2 * element;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        for (size_t i = 0; i < s->net[n]->params; i++) {
            o->result[next++].shared = at;
            at += hl_shape_size(&s->net[n]->param[i].shape) * element;
        }
    return compile(o, options);
}

void hl_sde_objective_free(hl_sde_objective *o)
{
    if (!o->sde)
        return;
    hl_plan_free(o->plan);
    hl_free(o->sde->ctx, o->result);
    hl_free(o->sde->ctx, o->values);
    *o = (hl_sde_objective){ 0 };
}

void hl_sde_objective_run(hl_sde_objective *o, size_t rows, const double *const *input, double lambda, double *loss,
                          double *gradient)
{
    hl_sde *s = o->sde;
    hl_row_in in[HL_SDE_INPUTS];
    size_t params = 0;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        params += s->net[n]->params;
    hl_to_precision(s->spec.dtype, 1, &lambda, &o->lambda);
    s->param[params + HL_SDE_KNOWN] = &o->lambda;
    for (size_t k = 0; k < o->plan->inputs; k++)
        in[k] = (hl_row_in){ .p = input[k], .pitch = o->plan->input[k].elements };
    hl_execute_rows(o->plan, rows, in, s->param, o->result);
    hl_from_precision(s->spec.dtype, 2, o->values, loss);
    hl_from_precision(s->spec.dtype, o->total, o->values + 2 * hl_dtype_size(s->spec.dtype), gradient);
}
