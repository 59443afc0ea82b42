/* model.c - a model: drift, diffusion and density networks, their scale, and evaluation in the user's units.
 *
 * Inside, u = (t - t_first) / unit with unit = (t_last - t_first) / 5, and z = (x - mean) / deviation. Then
 *   f = deviation / unit f_z,   g = deviation / sqrt(unit) g_z,   log p = log p_z - sum log deviation,
 *   R = R_z / unit. */
#include <math.h>
#include <string.h>

#include "exec/plan.h"
#include "hollow/sde_forms.h"
#include "sde/ensemble.h"
#include "sde/expression.h"
#include "sde/regress.h"
#include "sde/sde.h"

enum { EXACT_DIM = 10 }; /* up to here curvature is exact unless something else is asked for */

/* ---- creation ---- */

static hl_status set_density(hl_sde *s, const hl_sde_spec *given)
{
    static const char *const ways[] = { "exact", "projected", "propagated" }; /* as in hl_sde_curvature */
    hl_sde_spec *p = &s->spec;
    bool flow = given->density && strcmp(given->density, "flow") == 0;
    if (given->density && !flow && strcmp(given->density, "mixture") != 0)
        return hl_fail(s->ctx, HL_ERR_INVALID, "unknown density '%.60s'; use mixture or flow", given->density);
    const char *way = given->curvature ? given->curvature : ways[flow && p->dim > EXACT_DIM];
    size_t k = 0;
    while (k < 3 && strcmp(way, ways[k]) != 0)
        k++;
    if (k == 3)
        return hl_fail(s->ctx, HL_ERR_INVALID, "unknown curvature '%.60s'; use exact, projected or propagated", way);
    p->density = flow ? "flow" : "mixture";
    p->curvature = ways[k];
    p->flows = p->flows ? p->flows : 3;
    s->curvature = flow ? (hl_sde_curvature)k : HL_SDE_EXACT;
    s->mixture = (hl_mixture){ p->dim, p->components, p->diagonal != 0, p->clamp };
    if (flow)
        s->mixture = (hl_mixture){ p->dim, 1, true, p->clamp };
    else
        p->flow = (hl_net_spec){ 0 };
    return HL_OK;
}

static hl_status set_spec(hl_sde *s, const hl_sde_spec *given)
{
    hl_sde_spec *p = &s->spec;
    *p = *given;
    p->network = (p->network && strcmp(p->network, "mlp") == 0) || (!p->network && p->simple) ? "mlp" : "hollow";
    size_t units = p->dim <= 3 ? 32 : 64;
    p->net.hidden = p->net.hidden ? p->net.hidden : units;
    p->net.width = p->net.width ? p->net.width : units;
    p->activation = hl_dense_activation(p->activation ? p->activation : "swish");
    p->hidden = p->hidden ? p->hidden : 64;
    p->layers = p->layers ? p->layers : 3;
    p->components = p->components ? p->components : 5;
    p->density_hidden = p->density_hidden ? p->density_hidden : 64;
    p->density_layers = p->density_layers ? p->density_layers : 3;
    p->clamp = p->clamp == 0 ? 5 : p->clamp;
    p->diffusion_start = p->diffusion_start == 0 ? 0.3 : p->diffusion_start;
    p->drift_scale = p->drift_scale == 0 ? 1 : p->drift_scale;
    if (p->dim < 1 || p->dim > 10000 || p->components > 1000 || p->layers < 0 || p->density_layers < 0 ||
        p->layers > 64 || p->density_layers > 64 || p->hidden > 100000 || p->density_hidden > 100000)
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_create: dim, components, layers or hidden are out of range");
    if (!p->activation || (given->network && strcmp(p->network, given->network) != 0))
        return hl_fail(s->ctx, HL_ERR_INVALID,
                       p->activation ? "unknown network '%.60s'; use mlp or hollow"
                                     : "unknown activation '%.60s'; use swish, tanh or softplus",
                       p->activation ? given->network : given->activation);
    if (!(p->clamp > 0) || !isfinite(p->clamp) || !(p->diffusion_start > 0) || !isfinite(p->diffusion_start) ||
        !(p->drift_scale > 0) || !isfinite(p->drift_scale))
        return hl_fail(s->ctx, HL_ERR_INVALID,
                       "hl_sde_create: clamp, diffusion_start and drift_scale must be positive");
    if (!hl_dtype_size(p->dtype))
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_create: unknown precision %d", (int)p->dtype);
    s->hollow = strcmp(p->network, "hollow") == 0;
    return set_density(s, given);
}

static hl_status copy_known(hl_sde *s, const hl_sde_known *given)
{
    size_t d = s->spec.dim;
    s->spec.known = NULL;
    if (!given && !s->forms)
        return HL_OK;
    s->known = hl_calloc(s->ctx, d, sizeof *s->known);
    s->known_linear = hl_calloc(s->ctx, d * d, sizeof *s->known_linear);
    if (!s->known || !s->known_linear)
        return HL_ERR_NOMEM;
    if (given)
        memcpy(s->known, given, d * sizeof *given);
    if (s->forms)
        hl_sde_forms_apply(s->forms, s->known);
    for (size_t i = 0; i < d; i++) {
        hl_sde_known *k = &s->known[i];
        if (k->drift && k->drift_linear)
            memcpy(s->known_linear + i * d, k->drift_linear, d * sizeof *s->known_linear);
        k->drift_linear = s->known_linear + i * d;
        bool good = isfinite(k->drift_constant) && k->diffusion_value >= 0 && isfinite(k->diffusion_value);
        for (size_t j = 0; j < d; j++)
            good = good && isfinite(s->known_linear[i * d + j]);
        if (!good)
            return hl_fail(s->ctx, HL_ERR_INVALID, "the known part of column %zu is not finite, or a diffusion < 0", i);
    }
    s->spec.known = s->known;
    return HL_OK;
}

static hl_status copy_forms(hl_sde *s, const hl_sde_forms *given)
{
    s->spec.forms = NULL;
    if (!given)
        return HL_OK;
    if (given->dim != s->spec.dim)
        return hl_fail(s->ctx, HL_ERR_INVALID, "hl_sde_create: the expressions are of %zu columns, not %zu", given->dim,
                       s->spec.dim);
    hl_status status = hl_sde_forms_copy(s->ctx, given, &s->forms);
    s->spec.forms = s->forms;
    return status;
}

static hl_status copy_simple(hl_sde *s, const hl_sde_simple *given)
{
    s->spec.simple = NULL;
    if (!given)
        return HL_OK;
    if (given->dim != s->spec.dim || (given->inputs > given->dim) > (s->spec.time != 0) || s->hollow)
        return hl_fail(s->ctx, HL_ERR_INVALID,
                       "hl_sde_create: a regression needs a model of its columns and times, with networks mlp");
    hl_status status = hl_sde_simple_copy(s->ctx, given, &s->simple);
    s->spec.simple = s->simple;
    return status;
}

static hl_status make_nets(hl_sde *s)
{
    const hl_sde_spec *p = &s->spec;
    hl_net_spec net = p->net;
    net.dim = p->dim;
    net.context = 0;
    net.time = p->time;
    net.dtype = p->dtype;
    net.activation = p->activation;
    hl_status status = HL_OK;
    for (size_t n = 0; n < HL_SDE_NETS && status == HL_OK; n++) {
        hl_dense *d = &s->dense[n];
        bool density = n + 1 == HL_SDE_NETS;
        *d = (hl_dense){ .in = density ? 1 : p->dim + (p->time != 0),
                         .hidden = density ? p->density_hidden : p->hidden,
                         .out = density ? hl_mixture_outputs(&s->mixture) : p->dim,
                         .layers = density ? p->density_layers : p->layers };
        if (s->hollow && !density) {
            status = hl_net_create(s->ctx, &net, &s->net[n]);
        } else if (density && strcmp(p->density, "flow") == 0) {
            status = hl_sde_flow_create(s->ctx, &s->spec, &s->flow);
            s->net[n] = s->flow.net;
        } else {
            status = hl_dense_create(s->ctx, p->activation, p->dtype, d);
            s->net[n] = d->net;
        }
    }
    if (status == HL_OK && s->hollow)
        s->spec.net = hl_net_describe(s->net[0]);
    return status;
}

static hl_status make_arrays(hl_sde *s)
{
    hl_context *ctx = s->ctx;
    size_t d = s->spec.dim, element = hl_dtype_size(s->spec.dtype), params = HL_SDE_KNOWN + 1;
    size_t wide = s->mixture.components * (s->mixture.diagonal ? d : d * d), next = 0;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        params += s->net[n]->params;
    s->mean = hl_calloc(ctx, d, sizeof *s->mean);
    s->deviation = hl_calloc(ctx, d, sizeof *s->deviation);
    s->scratch = hl_calloc(ctx, wide + s->mixture.components * (d + 1) + d, sizeof *s->scratch);
    s->param = hl_calloc(ctx, params, sizeof *s->param);
    s->t = hl_calloc(ctx, HL_SDE_ROWS, sizeof(double));
    s->x = hl_calloc(ctx, hl_size_mul(HL_SDE_ROWS, d), sizeof(double));
    s->v = hl_calloc(ctx, s->flow.count ? hl_size_mul(HL_SDE_ROWS, d) : 1, sizeof(double));
    s->diagonal = hl_calloc(ctx, s->flow.count ? hl_size_mul(HL_SDE_ROWS, d) : 1, sizeof(double));
    bool good = s->mean && s->deviation && s->scratch && s->param && s->t && s->x && s->v && s->diagonal;
    for (size_t k = 0; k < HL_SDE_KNOWN; k++) {
        s->fixed[k] = hl_calloc(ctx, !s->known ? 1 : k == 0 ? d * d : k == 4 ? 2 : d, element);
        good = good && s->fixed[k];
    }
    for (size_t k = 0; k < 4; k++) {
        s->out[k] = hl_calloc(ctx, hl_size_mul(HL_SDE_ROWS, k == 2 ? wide : s->mixture.components * d), sizeof(double));
        good = good && s->out[k];
    }
    if (!good)
        return HL_ERR_NOMEM;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        for (size_t i = 0; i < s->net[n]->params; i++)
            s->param[next++] = (const char *)s->net[n]->values + s->net[n]->param[i].offset * element;
    for (size_t k = 0; k < HL_SDE_KNOWN; k++)
        s->param[next++] = s->fixed[k];
    for (size_t i = 0; i < d; i++)
        s->deviation[i] = 1;
    s->t_last = HL_SDE_SPAN;
    return HL_OK;
}

/* Of a flow: the derivatives of log p, c from an input. The diagonal of the Hessian takes a run for each dimension,
 * instead of that many copies of the graph. */
static hl_status compile_bend(hl_sde *s, hl_sde_graph *b, const hl_plan_options *o)
{
    hl_node v = hl_input(b->g, "v", 1, &s->spec.dim), bend = HL_NONE;
    hl_node diagonal = hl_input(b->g, "diagonal", 1, &s->spec.dim);
    hl_status status = hl_sde_graph_density(s, b, 0);
    if (status == HL_OK)
        status = hl_sde_graph_slopes(b);
    if (status == HL_OK)
        status = hl_jet(b->g, 1, 1, &b->x, &v, NULL, 1, &b->fp.s, &bend);
    b->fp.c = hl_add(b->g, diagonal, hl_mul(b->g, b->fp.s, b->fp.s));
    return status == HL_OK ? hl_plan_create(s->ctx, b->g, 1, &bend, o, &s->bend) : status;
}

/* Plans for evaluation: f and g; with D g; log p and s; R; the mixture's parameters. */
static hl_status compile(hl_sde *s)
{
    hl_plan_options o = { .dtype = s->spec.dtype };
    hl_sde_graph b;
    hl_status status = hl_sde_graph_start(s, &b);
    if (status == HL_OK)
        status = hl_sde_graph_motion(s, &b, 2);
    if (status == HL_OK)
        status = s->flow.count ? compile_bend(s, &b, &o) : hl_sde_graph_density(s, &b, 1);
    if (status == HL_OK)
        status = hl_sde_graph_cross(s, &b);
    if (status == HL_OK)
        status = hl_fp_build(b.g, &b.fp);
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, b.g, 2, (hl_node[]){ b.fp.f, b.fp.g }, &o, &s->drift);
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, b.g, 3, (hl_node[]){ b.fp.f, b.fp.g, b.fp.dg }, &o, &s->slopes);
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, b.g, 2, (hl_node[]){ b.fp.logp, b.fp.s }, &o, &s->density);
    if (status == HL_OK)
        status = hl_plan_create(s->ctx, b.g, 2, (hl_node[]){ b.fp.residual, b.fp.logp_t }, &o, &s->all);
    if (status == HL_OK && !s->flow.count)
        status = hl_plan_create(s->ctx, b.g, 3, (hl_node[]){ b.mixture.logit, b.mixture.mean, b.mixture.factor }, &o,
                                &s->mixing);
    hl_sde_graph_end(s, &b);
    return status;
}

hl_status hl_sde_create(hl_context *ctx, const hl_sde_spec *spec, hl_sde **out)
{
    if (!ctx)
        return HL_ERR_INVALID;
    if (!spec || !out)
        return hl_fail(ctx, HL_ERR_INVALID, "hl_sde_create: the specification or the result is NULL");
    *out = NULL;
    hl_sde *s = hl_calloc(ctx, 1, sizeof *s);
    if (!s)
        return HL_ERR_NOMEM;
    s->ctx = ctx;
    hl_status status = set_spec(s, spec);
    if (status == HL_OK)
        status = copy_forms(s, spec->forms);
    if (status == HL_OK)
        status = copy_known(s, spec->known);
    if (status == HL_OK)
        status = copy_simple(s, spec->simple);
    if (status == HL_OK)
        status = make_nets(s);
    if (status == HL_OK)
        status = make_arrays(s);
    if (status == HL_OK)
        status = compile(s);
    if (status == HL_OK)
        status = hl_sde_start_labels(s);
    if (status == HL_OK)
        status = s->simple
                     ? hl_sde_set_scale(s, s->simple->t_first, s->simple->t_last, s->simple->mean, s->simple->deviation)
                     : hl_sde_set_scale(s, 0, HL_SDE_SPAN, s->mean, s->deviation);
    if (status != HL_OK) {
        hl_sde_free(s);
        return status;
    }
    *out = s;
    return HL_OK;
}

void hl_sde_free(hl_sde *s)
{
    if (!s)
        return;
    hl_plan *const plans[] = { s->drift, s->slopes, s->density, s->all, s->mixing, s->bend };
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        hl_plan_free(plans[i]);
    for (size_t n = 0; n < HL_SDE_NETS; n++) {
        if (s->net[n] != s->dense[n].net && s->net[n] != s->flow.net)
            hl_net_free(s->net[n]);
        hl_net_free(s->dense[n].net);
    }
    hl_sde_simple_free(s->simple);
    hl_sde_forms_free(s->forms);
    hl_ensemble_free(s->ctx, s->ensemble);
    hl_sde_flow_free(s->ctx, &s->flow);
    for (size_t k = 0; k < HL_SDE_KNOWN; k++)
        hl_free(s->ctx, s->fixed[k]);
    for (size_t k = 0; k < 4; k++)
        hl_free(s->ctx, s->out[k]);
    void *const blocks[] = { s->known, s->known_linear, s->mean, s->deviation, s->scratch, s->param, s->t, s->x,
                             s->v,     s->diagonal,     s->name, s->note,      s->course };
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        hl_free(s->ctx, blocks[i]);
    hl_free(s->ctx, s);
}

/* ---- parameters ---- */

static double read_value(const hl_sde *s, const void *values, size_t at)
{
    return s->spec.dtype == HL_F32 ? (double)((const float *)values)[at] : ((const double *)values)[at];
}

static void scale_values(const hl_sde *s, const hl_net_param *p, double factor)
{
    for (size_t k = 0; k < p->size; k++) {
        double v = factor * read_value(s, p->values, k);
        hl_to_precision(s->spec.dtype, 1, &v, (char *)p->values + k * hl_dtype_size(s->spec.dtype));
    }
}

/* Means on a circle, in further pairs of dimensions on circles that turn faster. */
static void start_means(const hl_sde *s, const hl_net_param *bias)
{
    const double pi = 3.14159265358979323846;
    size_t d = s->spec.dim, m = s->spec.components;
    for (size_t c = 0; c < m; c++)
        for (size_t i = 0; i < d; i++) {
            double angle = 2 * pi * ((double)c + 0.25) / (double)m * (double)(i / 2 + 1);
            double v = i % 2 ? sin(angle) : cos(angle);
            hl_to_precision(s->spec.dtype, 1, &v,
                            (char *)bias->values + (m + c * d + i) * hl_dtype_size(s->spec.dtype));
        }
}

hl_status hl_sde_init(hl_sde *s, uint64_t seed)
{
    if (!s)
        return HL_ERR_INVALID;
    for (size_t n = 0; n < HL_SDE_NETS; n++) {
        hl_net *net = s->net[n];
        hl_status status = hl_net_init(net, hl_random_bits(seed, 0, n));
        if (status != HL_OK)
            return status;
        hl_net_param last;
        if (n > 0 && net == s->dense[n].net) { /* diffusion and density start near their biases */
            hl_net_param_get(net, net->params - 2, &last);
            scale_values(s, &last, 0.1);
        }
        for (size_t k = net->params - 2; s->simple && n < 2 && k < net->params; k++) {
            hl_net_param_get(net, k, &last);
            scale_values(s, &last, 0);
        }
    }
    if (s->flow.count) {
        hl_sde_flow_start(&s->flow);
        return HL_OK;
    }
    hl_net_param bias;
    hl_net_param_get(s->net[2], s->net[2]->params - 1, &bias);
    start_means(s, &bias);
    return HL_OK;
}

hl_sde_spec hl_sde_describe(const hl_sde *s)
{
    return s ? s->spec : (hl_sde_spec){ 0 };
}

const char *hl_sde_method_name(hl_sde_method method)
{
    static const char *const names[] = { "fp", "pseudo-ml" };
    return (size_t)method < sizeof names / sizeof *names ? names[method] : NULL;
}

hl_sde_method hl_sde_trained_by(const hl_sde *s)
{
    return s ? s->method : HL_SDE_FOKKER_PLANCK;
}

hl_net *hl_sde_net(const hl_sde *s, size_t which)
{
    return s && which < HL_SDE_NETS ? s->net[which] : NULL;
}

size_t hl_sde_param_total(const hl_sde *s)
{
    size_t total = 0;
    for (size_t n = 0; n < HL_SDE_NETS; n++)
        for (size_t i = 0; i < s->net[n]->params; i++)
            total += hl_shape_size(&s->net[n]->param[i].shape);
    return total;
}

/* ---- scale ---- */

double hl_sde_time_unit(const hl_sde *s)
{
    return (s->t_last - s->t_first) / HL_SDE_SPAN;
}

/* What is known, standardised. */
static void set_fixed(hl_sde *s)
{
    size_t d = s->spec.dim, element = hl_dtype_size(s->spec.dtype);
    double unit = hl_sde_time_unit(s);
    for (size_t i = 0; i < d && s->known; i++) {
        const hl_sde_known *k = &s->known[i];
        double constant = k->drift ? k->drift_constant : 0, g = k->diffusion ? k->diffusion_value : 0;
        for (size_t j = 0; j < d; j++) {
            double a = k->drift_linear[j] * unit * s->deviation[j] / s->deviation[i];
            constant += k->drift_linear[j] * s->mean[j];
            hl_to_precision(s->spec.dtype, 1, &a, (char *)s->fixed[0] + (i * d + j) * element);
            if (i == j)
                hl_to_precision(s->spec.dtype, 1, &a, (char *)s->fixed[1] + i * element);
        }
        constant *= unit / s->deviation[i];
        g *= sqrt(unit) / s->deviation[i];
        hl_to_precision(s->spec.dtype, 1, &constant, (char *)s->fixed[2] + i * element);
        hl_to_precision(s->spec.dtype, 1, &g, (char *)s->fixed[3] + i * element);
    }
    if (!s->known)
        return;
    hl_to_precision(s->spec.dtype, 2, (double[]){ s->t_first, unit }, s->fixed[4]);
    hl_to_precision(s->spec.dtype, d, s->mean, s->fixed[5]);
    hl_to_precision(s->spec.dtype, d, s->deviation, s->fixed[6]);
}

hl_status hl_sde_set_scale(hl_sde *s, double t_first, double t_last, const double *mean, const double *deviation)
{
    if (!s)
        return HL_ERR_INVALID;
    bool good = mean && deviation && isfinite(t_first) && isfinite(t_last) && t_last > t_first;
    for (size_t i = 0; good && i < s->spec.dim; i++)
        good = isfinite(mean[i]) && isfinite(deviation[i]) && deviation[i] > 0;
    if (!good)
        return hl_fail(s->ctx, HL_ERR_INVALID,
                       "hl_sde_set_scale: times must increase, and deviations must be positive");
    for (size_t i = 0; good && s->simple && i < s->spec.dim; i++)
        good = mean[i] == s->simple->mean[i] && deviation[i] == s->simple->deviation[i];
    if (!good || (s->simple && (t_first != s->simple->t_first || t_last != s->simple->t_last)))
        return hl_fail(s->ctx, HL_ERR_INVALID,
                       "hl_sde_set_scale: the scale of a model with a regression cannot be changed");
    s->t_first = t_first;
    s->t_last = t_last;
    memmove(s->mean, mean, s->spec.dim * sizeof *mean);
    memmove(s->deviation, deviation, s->spec.dim * sizeof *deviation);
    set_fixed(s);
    return HL_OK;
}

void hl_sde_get_scale(const hl_sde *s, double *t_first, double *t_last, double *mean, double *deviation)
{
    if (!s)
        return;
    if (t_first)
        *t_first = s->t_first;
    if (t_last)
        *t_last = s->t_last;
    if (mean)
        memcpy(mean, s->mean, s->spec.dim * sizeof *mean);
    if (deviation)
        memcpy(deviation, s->deviation, s->spec.dim * sizeof *deviation);
}
