/* flow_density.c - normalizing flows as densities: z = f_K(.. f_1(x)), log p = log N(z; 0, I) + sum_k sum_i log D f_k,i.
 *
 * Each f_k is a hollow network whose h_i looks one way and whose tau rises, so that its Jacobian is triangular and D f its
 * diagonal; every second one takes the columns backwards. Time enters as context. One network `net`, a sum of all f_k as
 * far as anybody else can tell, declares and owns the parameters; step[k] is f_k by itself, over the same memory. */
#include <math.h>
#include <string.h>

#include "sde/sde.h"

/* ---- creation ---- */

/* Defaults, and what belongs to a flow. */
static void set_spec(const hl_sde_spec *s, hl_net_spec *net)
{
    size_t units = s->dim <= 3 ? 32 : 64;
    net->dim = s->dim;
    net->dtype = s->dtype;
    net->context = 1;
    net->time = 0;
    net->order = NULL;
    net->plus = NULL;
    net->conditioner = net->conditioner ? net->conditioner : "autoregressive";
    net->transformer = net->transformer ? net->transformer : "monotone";
    net->hidden = net->hidden ? net->hidden : units;
    net->features = net->features ? net->features : 8;
    net->width = net->width ? net->width : 16;
    net->layers = net->layers ? net->layers : 1;
}

/* step[k] over the values of `net`: parameters are laid out alike, so each step begins where the one before it ends. */
static hl_status make_steps(hl_context *ctx, const hl_net_spec *spec, hl_sde_flow *f)
{
    size_t at = 0;
    for (size_t k = 0; k < f->count; k++) {
        hl_net_spec one = spec[k];
        one.plus = NULL;
        hl_status status = hl_net_declare(ctx, &one, &f->step[k]);
        if (status != HL_OK)
            return status;
        f->step[k]->values = (char *)f->net->values + at * hl_dtype_size(f->net->dtype);
        at += f->step[k]->values_size;
        status = hl_inverse_create(f->step[k], &f->inverse[k]);
        if (status != HL_OK)
            return status;
    }
    return HL_OK;
}

static hl_status make_nets(hl_context *ctx, const hl_net_spec *net, hl_sde_flow *f, size_t *backwards)
{
    hl_net_spec spec[HL_MAX_TERMS];
    for (size_t i = 0; i < net->dim; i++)
        backwards[i] = net->dim - 1 - i;
    for (size_t k = 0; k < f->count; k++) {
        spec[k] = *net;
        spec[k].order = k % 2 ? backwards : NULL;
        spec[k].plus = k + 1 < f->count ? &spec[k + 1] : NULL;
    }
    hl_status status = hl_net_create(ctx, spec, &f->net);
    if (status != HL_OK)
        return status;
    const hl_term *t = f->net->term;
    if (!t->conditioner->triangular ||
        (t->transformer != &hl_transformer_affine && t->transformer != &hl_transformer_monotone))
        return hl_fail(
            ctx, HL_ERR_INVALID,
            "the conditioner of a flow must be autoregressive or coupling, and its transformer affine or monotone");
    return make_steps(ctx, spec, f);
}

hl_status hl_sde_flow_create(hl_context *ctx, hl_sde_spec *s, hl_sde_flow *f)
{
    size_t count = s->flows;
    if (count < 1 || count > HL_MAX_TERMS || s->flow.reflections || s->flow.mlp)
        return hl_fail(ctx, HL_ERR_INVALID,
                       "hl_sde_create: a flow has 1..%d networks, without reflections and plain networks",
                       HL_MAX_TERMS);
    set_spec(s, &s->flow);
    f->count = count;
    f->step = hl_calloc(ctx, count, sizeof *f->step);
    f->inverse = hl_calloc(ctx, count, sizeof *f->inverse);
    f->clock = hl_calloc(ctx, HL_SDE_ROWS, sizeof *f->clock);
    f->z = hl_calloc(ctx, hl_size_mul(HL_INVERSE_ROWS, s->dim), sizeof *f->z);
    size_t *backwards = hl_calloc(ctx, s->dim, sizeof *backwards);
    bool good = f->step && f->inverse && f->clock && f->z && backwards;
    hl_status status = good ? make_nets(ctx, &s->flow, f, backwards) : HL_ERR_NOMEM;
    hl_free(ctx, backwards);
    if (status != HL_OK)
        return status;
    s->flow = hl_net_describe(f->net);
    s->flow.order = NULL;
    s->flow.plus = NULL;
    return HL_OK;
}

void hl_sde_flow_free(hl_context *ctx, hl_sde_flow *f)
{
    for (size_t k = 0; f->step && f->inverse && k < f->count; k++) {
        hl_inverse_free(f->inverse[k]);
        if (f->step[k])
            f->step[k]->values = NULL; /* not its own */
        hl_net_free(f->step[k]);
    }
    hl_free(ctx, f->step);
    hl_free(ctx, f->inverse);
    hl_free(ctx, f->clock);
    hl_free(ctx, f->z);
    hl_net_free(f->net);
}

/* ---- parameters ---- */

/* Near the identity: scales and shifts hardly depend on h, and the bent part of a monotone network is small. */
void hl_sde_flow_start(const hl_sde_flow *f)
{
    static const double bias[] = { -0.2, -1 };
    size_t element = hl_dtype_size(f->net->dtype);
    for (size_t k = 0; k < f->count; k++)
        for (size_t i = 0; i < f->step[k]->params; i++) {
            hl_net_param p;
            hl_net_param_get(f->step[k], i, &p);
            if (strncmp(p.name, "transformer.affine.", 19) != 0)
                continue;
            bool monotone = f->step[k]->term->transformer == &hl_transformer_monotone;
            for (size_t at = 0; at < p.size; at++) {
                double v;
                hl_from_precision(f->net->dtype, 1, (char *)p.values + at * element, &v);
                v *= 0.3;
                if (monotone && strcmp(p.name, "transformer.affine.bias") == 0 && at < 2)
                    v = bias[at];
                hl_to_precision(f->net->dtype, 1, &v, (char *)p.values + at * element);
            }
        }
}

/* ---- as graph ---- */

hl_status hl_sde_flow_build(const hl_sde_flow *f, hl_graph *g, hl_node x, hl_node clock, hl_node *param, hl_node *logp)
{
    static const double log_2pi = 1.8378770664093454836;
    double dim = (double)f->net->dim;
    hl_node d, context = hl_reshape(g, clock, 1, (size_t[]){ 1 });
    *logp = hl_const(g, -0.5 * dim * log_2pi);
    for (size_t k = 0; k < f->count; k++) {
        hl_net_nodes n = { .x = x, .context = context, .param = param, .reuse = 1, .d = &d };
        hl_status status = hl_net_build(f->step[k], g, 1, HL_TAYLOR, &n);
        if (status != HL_OK)
            return status;
        *logp = hl_add(g, *logp, hl_sum(g, hl_log(g, d), 0));
        x = n.f;
        param += f->step[k]->params;
    }
    *logp = hl_sub(g, *logp, hl_scale(g, 0.5, hl_sum(g, hl_mul(g, x, x), 0)));
    return hl_graph_status(g);
}

/* ---- draws ---- */

bool hl_sde_flow_draw(const hl_sde_flow *f, size_t rows, double *x)
{
    size_t d = f->net->dim, count;
    bool finite = true;
    for (size_t at = 0; at < rows; at += count) {
        count = rows - at < HL_INVERSE_ROWS ? rows - at : HL_INVERSE_ROWS;
        double *values = x + at * d;
        for (size_t k = f->count; k-- > 0;) {
            memcpy(f->z, values, count * d * sizeof *values);
            hl_inverse_solve(f->inverse[k], count, f->z, f->clock + at, values);
        }
        for (size_t i = 0; i < count * d; i++)
            finite = finite && isfinite(values[i]);
    }
    return finite;
}
