/* info.c - `hollow info`: what a model file holds. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "sde.h"
#include "vae.h"

static const cli_option options[] = { { 0 } };

static const char text[] =
    "Prints the contents of a model file: the architecture of its networks, and name, shape,\n"
    "size and number of masked values of each parameter. For density models also the members,\n"
    "the columns with their means and standard deviations, the solver and the settings; for\n"
    "stochastic differential equations drift and diffusion (as equations where they are regressions), known\n"
    "parts, times, columns and settings.\n";

static int run(int argc, char **argv);
const cli_command cli_info = {
    "info", "MODEL [--json]", "show the contents of a model file", text, options, 1, 1, run
};

/* Weights that a mask excludes: those which a random initialisation leaves zero. Biases start at zero; they have one axis, or
 * a name that says so. */
static size_t masked_values(const hl_net *random, size_t index)
{
    hl_net_param p;
    size_t count = 0;
    if (!random || hl_net_param_get(random, index, &p) != HL_OK || strstr(p.name, ".bias"))
        return 0;
    bool single = hl_net_describe(random).dtype == HL_F32;
    for (size_t i = 0; i < p.size; i++)
        count += single ? ((const float *)p.values)[i] == 0 : ((const double *)p.values)[i] == 0;
    return count;
}

static int layers(int count)
{
    return count < 0 ? 0 : count;
}

/* A network, and one of the same architecture with random weights; NULL if it is plain: then nothing is masked. */
typedef struct subject {
    const hl_net *net;
    hl_net *random;
} subject;

static void put_term(cli_json *json, const hl_net_spec *s)
{
    cli_json_text(json, "conditioner", s->conditioner);
    if (s->kernel) {
        cli_json_open(json, "image", '[');
        for (int i = 0; i < 3; i++)
            cli_json_count(json, NULL, s->image[i]);
        cli_json_close(json, ']');
        cli_json_count(json, "kernel", s->kernel);
    }
    cli_json_count(json, "features", s->features);
    cli_json_count(json, "hidden", s->hidden);
    cli_json_count(json, "hidden_layers", (uint64_t)layers(s->hidden_layers));
    cli_json_text(json, "transformer", s->transformer);
    cli_json_count(json, "width", s->width);
    cli_json_count(json, "layers", (uint64_t)layers(s->layers));
    cli_json_text(json, "activation", s->activation);
    cli_json_count(json, "reflections", s->reflections);
    cli_json_count(json, "mlp", s->mlp);
    if (s->order) {
        cli_json_open(json, "order", '[');
        for (size_t i = 0; i < s->dim; i++)
            cli_json_count(json, NULL, s->order[i]);
        cli_json_close(json, ']');
    }
}

static void put_architecture(cli_json *json, const hl_net *net)
{
    hl_net_spec s = hl_net_describe(net);
    cli_json_open(json, "architecture", '{');
    cli_json_count(json, "dim", s.dim);
    cli_json_count(json, "context", s.context);
    cli_json_bool(json, "time", s.time != 0);
    put_term(json, &s);
    if (s.plus) {
        cli_json_open(json, "plus", '[');
        for (const hl_net_spec *term = s.plus; term; term = term->plus) {
            cli_json_open(json, NULL, '{');
            put_term(json, term);
            cli_json_close(json, '}');
        }
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
    cli_json_text(json, "dtype", hl_dtype_name(s.dtype));
}

static void put_params(cli_json *json, const subject *net)
{
    cli_json_count(json, "trainable", hl_net_size(net->net));
    cli_json_open(json, "parameters", '[');
    for (size_t i = 0; i < hl_net_param_count(net->net); i++) {
        hl_net_param p;
        hl_net_param_get(net->net, i, &p);
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", p.name);
        cli_json_open(json, "shape", '[');
        for (int a = 0; a < p.rank; a++)
            cli_json_count(json, NULL, p.dims[a]);
        cli_json_close(json, ']');
        cli_json_count(json, "values", p.size);
        cli_json_count(json, "masked", masked_values(net->random, i));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_range(cli_json *json, hl_density_range r)
{
    if (strcmp(r.form, "none") != 0)
        cli_json_text(json, "form", r.form);
    if (isfinite(r.low))
        cli_json_exact(json, "low", r.low);
    if (isfinite(r.high))
        cli_json_exact(json, "high", r.high);
    if (r.step > 0)
        cli_json_exact(json, "step", r.step);
    if (isfinite(r.least))
        cli_json_exact(json, "least", r.least);
    if (isfinite(r.most))
        cli_json_exact(json, "most", r.most);
}

static void put_categories(cli_json *json, const hl_density *model)
{
    cli_json_open(json, "categories", '[');
    for (size_t i = 0; i < hl_density_categories(model); i++) {
        hl_category c = hl_density_get_category(model, i);
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", c.name);
        cli_json_open(json, "labels", '[');
        for (size_t k = 0; k < c.count; k++)
            cli_json_text(json, NULL, c.labels[k]);
        cli_json_close(json, ']');
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

/* What log p is a density of, if it is more than all columns as numbers. */
static void put_patterns(cli_json *json, const hl_density *model)
{
    cli_json_open(json, "patterns", '[');
    for (size_t k = 0; k < hl_density_patterns(model); k++) {
        hl_density_pattern p = hl_density_get_pattern(model, k);
        cli_json_open(json, NULL, '{');
        cli_json_exact(json, "probability", p.probability);
        cli_json_count(json, "atoms", p.atoms);
        cli_json_bool(json, "rest", p.rest != 0);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_text(json, "measure", "log P(pattern) + log p(other columns | pattern)");
}

static void put_density(cli_json *json, const hl_density *model, const subject *nets)
{
    hl_flow_spec flow = hl_flow_describe(hl_density_flow(model));
    hl_flow_solver solver = hl_density_solver(model);
    double atom;
    size_t dim = hl_density_dim(model);
    cli_json_text(json, "kind", flow.kind ? flow.kind : "mixture");
    cli_json_count(json, "flows", flow.flows);
    cli_json_open(json, "members", '[');
    for (size_t i = 0; i < hl_density_members(model); i++) {
        hl_density_member m = hl_density_get_member(model, i);
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "kind", m.kind == HL_MEMBER_FLOW ? "flow" : "mixture");
        cli_json_exact(json, "weight", m.weight);
        cli_json_bool(json, "mapped", m.mapped);
        if (m.kind == HL_MEMBER_MIXTURE) {
            cli_json_count(json, "parts", m.parts);
            cli_json_exact(json, "nu", m.nu);
        }
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "columns", '[');
    for (size_t i = 0; i < dim + hl_density_context(model); i++) {
        hl_density_column c = hl_density_get_column(model, i);
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", c.name);
        cli_json_exact(json, "mean", c.mean);
        cli_json_exact(json, "deviation", c.deviation);
        put_range(json, hl_density_get_range(model, i));
        if (i < dim && hl_density_get_atom(model, i, &atom))
            cli_json_exact(json, "atom", atom);
        cli_json_bool(json, "context", i >= dim);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    if (hl_density_patterns(model))
        put_patterns(json, model);
    if (hl_density_categories(model))
        put_categories(json, model);
    cli_json_bool(json, "decorrelated", hl_density_factor(model) != NULL);
    if (flow.kind) {
        cli_json_open(json, "solver", '{');
        cli_json_text(json, "method", solver.method);
        cli_json_exact(json, "rtol", solver.rtol);
        cli_json_exact(json, "atol", solver.atol);
        cli_json_count(json, "steps", solver.steps);
        cli_json_count(json, "even_steps", solver.even_steps);
        cli_json_bool(json, "divided", solver.divided != 0);
        cli_json_exact(json, "typical_error", hl_density_get_accuracy(model).typical);
        cli_json_exact(json, "worst_error", hl_density_get_accuracy(model).worst);
        cli_json_exact(json, "evaluations", hl_density_get_accuracy(model).evaluations);
        cli_json_close(json, '}');
    }
    cli_json_text(json, "note", hl_density_note(model));
    if (flow.kind)
        put_architecture(json, nets[0].net);
    cli_json_open(json, "networks", '[');
    for (size_t i = 0; i < hl_flow_nets(hl_density_flow(model)); i++) {
        cli_json_open(json, NULL, '{');
        put_params(json, &nets[i]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_known(cli_json *json, const hl_sde_spec *p)
{
    cli_json_open(json, "known", '[');
    for (size_t i = 0; p->known && i < p->dim; i++) {
        const hl_sde_known *k = &p->known[i];
        cli_json_open(json, NULL, '{');
        if (k->drift) {
            cli_json_exact(json, "drift_constant", k->drift_constant);
            cli_json_open(json, "drift_linear", '[');
            for (size_t j = 0; j < p->dim; j++)
                cli_json_exact(json, NULL, k->drift_linear[j]);
            cli_json_close(json, ']');
        }
        if (k->diffusion)
            cli_json_exact(json, "diffusion", k->diffusion_value);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void put_forms(cli_json *json, const hl_sde_forms *forms)
{
    if (!forms)
        return;
    for (int part = 0; part < 2; part++)
        if (hl_sde_forms_source(forms, part))
            cli_json_text(json, part ? "diffusion_form" : "drift_form", hl_sde_forms_source(forms, part));
    sde_print_constants(json, forms);
}

/* Is the model a regression alone? Its networks are then single units that stay at 0. */
static bool is_regression(const hl_sde_spec *p)
{
    return p->simple && p->hidden == 1 && p->layers == 1;
}

/* The dictionaries of drift and diffusion; "expression" where every column has one. */
static void put_form(cli_json *json, const hl_sde_spec *p)
{
    const hl_sde_forms *forms = p->forms;
    hl_sde_regress_report report = hl_sde_simple_report(p->simple);
    char form[80], *comma = strchr(report.form, ',');
    bool given[] = { forms != NULL, forms != NULL };
    for (size_t i = 0; i < p->dim; i++)
        for (int part = 0; part < 2; part++)
            given[part] = given[part] && hl_sde_forms_has(forms, part, i);
    snprintf(form, sizeof form, "%.*s, %s", given[0] || !comma ? 10 : (int)(comma - report.form),
             given[0] ? "expression" : report.form, given[1] || !comma ? "expression" : comma + 2);
    cli_json_text(json, "form", form);
}

static void put_equations(cli_json *json, const hl_sde *sde, const hl_sde_spec *p)
{
    char equation[4000];
    put_form(json, p);
    cli_json_open(json, "equations", '[');
    for (size_t i = 0; i < p->dim; i++)
        for (int part = 0; part < 2; part++)
            if (hl_sde_equation(sde, part, i, equation, sizeof equation) == HL_OK)
                cli_json_text(json, NULL, equation);
    cli_json_close(json, ']');
    cli_json_open(json, "correlations", '[');
    for (size_t i = 0; i < p->dim; i++)
        for (size_t j = i + 1; j < p->dim; j++)
            if (hl_sde_simple_correlation(p->simple, i, j) != 0) {
                cli_json_open(json, NULL, '{');
                cli_json_text(json, "columns", hl_sde_name(sde, i));
                cli_json_text(json, "and", hl_sde_name(sde, j));
                cli_json_exact(json, "value", hl_sde_simple_correlation(p->simple, i, j));
                cli_json_close(json, '}');
            }
    cli_json_close(json, ']');
    cli_json_count(json, "replicates", hl_sde_replicates(sde));
}

static void put_sde(cli_json *json, const hl_sde *sde, const subject *nets, double *scale)
{
    static const char *const names[] = { "drift", "diffusion", "density" };
    hl_sde_spec p = hl_sde_describe(sde);
    double first, last;
    hl_sde_get_scale(sde, &first, &last, scale, scale + p.dim);
    cli_json_text(json, "kind", "sde");
    bool regression = is_regression(&p);
    if (!regression)
        cli_json_text(json, "network", p.network);
    if (!p.simple && hl_sde_replicates(sde))
        cli_json_count(json, "replicates", hl_sde_replicates(sde));
    if (p.simple)
        put_equations(json, sde, &p);
    cli_json_bool(json, "time", p.time != 0);
    cli_json_text(json, "dtype", hl_dtype_name(p.dtype));
    cli_json_text(json, "density", p.density);
    if (strcmp(p.density, "flow") == 0) {
        cli_json_count(json, "flows", p.flows);
    } else {
        cli_json_count(json, "components", p.components);
        cli_json_bool(json, "diagonal", p.diagonal != 0);
    }
    put_known(json, &p);
    put_forms(json, p.forms);
    cli_json_open(json, "clock", '{');
    cli_json_text(json, "name", hl_sde_name(sde, p.dim));
    cli_json_exact(json, "first", first);
    cli_json_exact(json, "last", last);
    cli_json_close(json, '}');
    cli_json_open(json, "columns", '[');
    for (size_t i = 0; i < p.dim; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", hl_sde_name(sde, i));
        cli_json_exact(json, "mean", scale[i]);
        cli_json_exact(json, "deviation", scale[p.dim + i]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_text(json, "method", hl_sde_method_name(hl_sde_trained_by(sde)));
    cli_json_text(json, "note", hl_sde_note(sde));
    cli_json_open(json, "networks", '[');
    for (size_t i = regression ? 2 : 0; i < 3; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", names[i]);
        put_params(json, &nets[i]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

/* What a file holds: one of the three. */
typedef struct holding {
    hl_density *density;
    hl_sde *sde;
    hl_net *net;
    subject *nets;
    size_t count;
    double *scale; /* of an equation: room for means and deviations */
} holding;

cli_json cli_info_open(const char *path, const char *what, long long bytes)
{
    cli_json json = { stdout, false, !cli_json_wanted(), 0 };
    if (json.plain)
        printf("%s: %s, %lld bytes\n\n", path, what, bytes);
    cli_json_open(&json, NULL, '{');
    if (!json.plain) {
        cli_json_text(&json, "file", path);
        cli_json_count(&json, "bytes", (uint64_t)bytes);
    }
    return json;
}

void cli_info_close(cli_json *json)
{
    cli_json_close(json, '}');
    if (!json->plain)
        putchar('\n');
}

static void print(const char *path, const holding *h, long long bytes)
{
    const char *what = h->density ? "a density model" : h->sde ? "a stochastic equation" : "a hollow network";
    cli_json json = cli_info_open(path, what, bytes);
    if (h->density) {
        put_density(&json, h->density, h->nets);
    } else if (h->sde) {
        put_sde(&json, h->sde, h->nets, h->scale);
    } else {
        put_architecture(&json, h->nets[0].net);
        put_params(&json, &h->nets[0]);
    }
    cli_info_close(&json);
}

/* ---- from the call to the file ---- */

static hl_status make_subject(hl_context *ctx, const hl_net *net, subject *s)
{
    hl_net_spec spec = hl_net_describe(net);
    s->net = net;
    if (!spec.dim) /* a plain network has no specification */
        return HL_OK;
    hl_status status = hl_net_create(ctx, &spec, &s->random);
    return status == HL_OK ? hl_net_init(s->random, 1) : status;
}

static hl_status load(hl_context *ctx, const char *path, hl_file_kind kind, holding *h)
{
    bool density = kind == HL_FILE_DENSITY, sde = kind == HL_FILE_SDE;
    hl_status status = density ? hl_density_load(ctx, path, &h->density)
                       : sde   ? hl_sde_load(ctx, path, &h->sde)
                               : hl_net_load(ctx, path, &h->net);
    h->count = density ? hl_flow_nets(hl_density_flow(h->density)) : sde ? 3 : 1;
    if (status == HL_OK) {
        h->nets = calloc(h->count + 1, sizeof *h->nets);
        h->scale = calloc(hl_sde_describe(h->sde).dim + 1, 2 * sizeof *h->scale);
        status = h->nets && h->scale ? HL_OK : HL_ERR_NOMEM;
    }
    for (size_t i = 0; i < h->count && status == HL_OK; i++)
        status = make_subject(ctx,
                              density ? hl_flow_net(hl_density_flow(h->density), i)
                              : sde   ? hl_sde_net(h->sde, i)
                                      : h->net,
                              &h->nets[i]);
    return status;
}

static int describe(hl_context *ctx, const char *path, long long bytes)
{
    holding h = { 0 };
    hl_file_kind kind = hl_file_identify(path);
    if (kind == HL_FILE_VAE)
        return vae_info(&cli_info, ctx, path, bytes);
    hl_status status = load(ctx, path, kind, &h);
    int result = status == HL_OK ? CLI_OK : cli_fail_library(&cli_info, ctx, status);
    if (status == HL_OK)
        print(path, &h, bytes);
    for (size_t i = 0; h.nets && i < h.count; i++)
        hl_net_free(h.nets[i].random);
    free(h.nets);
    free(h.scale);
    hl_net_free(h.net);
    hl_sde_free(h.sde);
    hl_density_free(h.density);
    return result;
}

static int run(int argc, char **argv)
{
    const char *path[2];
    struct stat st;
    int result = cli_parse(&cli_info, argc, argv, NULL, path);
    if (result >= 0)
        return result;
    if (stat(path[0], &st) != 0)
        return cli_fail(&cli_info, CLI_WRONG, "%s: %s", path[0], strerror(errno));
    if (S_ISDIR(st.st_mode))
        return cli_fail(&cli_info, CLI_WRONG, "%s: %s", path[0], strerror(EISDIR));
    if (!S_ISREG(st.st_mode)) /* reading a pipe might wait for ever */
        return cli_fail(&cli_info, CLI_WRONG, "%s: not a regular file", path[0]);
    hl_context *ctx = NULL;
    hl_status status = hl_context_create(NULL, &ctx);
    result = status == HL_OK ? describe(ctx, path[0], (long long)st.st_size) : cli_fail_library(&cli_info, ctx, status);
    hl_context_free(ctx);
    return result;
}
