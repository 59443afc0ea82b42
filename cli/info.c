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

static const char text[] = "Prints the architecture of the network in a model file and its parameters:\n"
                           "name, shape, number of values, and how many of these are zero for good, as a\n"
                           "mask excludes them. Of a density model also its kind, its columns with their\n"
                           "means and deviations, its solver and its note; of a stochastic equation its\n"
                           "networks, what is known of it, its times, columns and note.\n";

static int run(int argc, char **argv);
const cli_command cli_info = { "info", "MODEL [--json]", "what a model file holds", text, options, 1, 1, run };

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

static void shape_text(const hl_net_param *p, char *buffer, size_t size)
{
    size_t used = 0;
    buffer[0] = '\0';
    for (int a = 0; a < p->rank && used < size; a++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%zu", a ? " x " : "", p->dims[a]);
}

static int layers(int count)
{
    return count < 0 ? 0 : count;
}

static void print_term(const hl_net_spec *s)
{
    printf("conditioner    %s, %zu features, %d hidden layers of %zu%s\n", s->conditioner, s->features,
           layers(s->hidden_layers), s->hidden, s->order ? ", columns in an order of their own" : "");
    if (s->kernel)
        printf("image          %zu x %zu x %zu, kernel %zu\n", s->image[0], s->image[1], s->image[2], s->kernel);
    printf("transformer    %s, %d hidden layers of %zu\n", s->transformer, layers(s->layers), s->width);
    printf("activation     %s\n", s->activation);
    if (s->reflections)
        printf("basis          %zu reflections\n", s->reflections);
    if (s->mlp)
        printf("mlp            plus a plain network of %zu units\n", s->mlp);
    if (s->plus) {
        printf("\nplus\n");
        print_term(s->plus);
    }
}

/* A network, one of the same architecture with random weights (NULL if it is plain: then nothing is masked), and what stands
 * before the names of its parameters. */
typedef struct subject {
    const hl_net *net;
    hl_net *random;
    char prefix[24];
} subject;

static void print_params(const subject *nets, size_t count)
{
    size_t values = 0, masked = 0, trainable = 0;
    printf("\n%-40s %16s %10s %10s\n", "parameter", "shape", "values", "masked");
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < hl_net_param_count(nets[n].net); i++) {
            hl_net_param p;
            char shape[120], name[160];
            hl_net_param_get(nets[n].net, i, &p);
            shape_text(&p, shape, sizeof shape);
            snprintf(name, sizeof name, "%s%s", nets[n].prefix, p.name);
            size_t zero = masked_values(nets[n].random, i);
            printf("%-40s %16s %10zu %10zu\n", name, shape, p.size, zero);
            values += p.size;
            masked += zero;
        }
        trainable += hl_net_size(nets[n].net);
    }
    printf("%-40s %16s %10zu %10zu\n\ntrainable      %zu values\n", "total", "", values, masked, trainable);
}

static void print_net(const char *path, const subject *net, long long bytes)
{
    hl_net_spec s = hl_net_describe(net->net);
    printf("%s: a hollow network, %lld bytes\n\n", path, bytes);
    printf("dimensions     %zu\ncontext        %zu\ntime           %s\nprecision      %s\n", s.dim, s.context,
           s.time ? "yes" : "no", hl_dtype_name(s.dtype));
    print_term(&s);
    print_params(net, 1);
}

/* A text from a file, in `width` columns or more, without what could command a terminal. */
static void print_plain(const char *from, int width)
{
    for (; *from; from++) {
        unsigned char c = (unsigned char)*from;
        putchar(c < 0x20 || c == 0x7f ? ' ' : c);
        width -= (c & 0xc0) != 0x80; /* the first byte of a character */
    }
    printf("%*s", width > 0 ? width : 0, "");
}

/* The members of a sum; a flow alone is described by what follows. */
static void print_members(const hl_density *model)
{
    size_t count = hl_density_members(model);
    for (size_t i = 0; i < count && (count > 1 || !hl_density_flow(model)); i++) {
        hl_density_member m = hl_density_get_member(model, i);
        printf("member %-7zu weight %.4f, ", i + 1, m.weight);
        if (m.kind == HL_MEMBER_FLOW)
            printf("the flow");
        else
            printf("a mixture of %zu %s", m.parts, m.nu > 0 ? "t distributions" : "normal distributions");
        if (m.nu > 0)
            printf(" of %g degrees of freedom", m.nu);
        printf("%s\n", m.mapped ? ", on mapped columns" : "");
    }
}

/* The rest of a column's line: its map, its bounds and the steps of its values. */
static void print_range(hl_density_range r)
{
    if (strcmp(r.form, "none") != 0)
        printf("  %s", r.form);
    if (isfinite(r.low))
        printf("  >= %g", r.low);
    if (isfinite(r.high))
        printf("  <= %g", r.high);
    if (r.step > 0)
        printf("  samples in steps of %g", r.step);
    printf("\n");
}

/* What log p is a density of, if it is more than all columns as numbers. */
static void print_patterns(const hl_density *model)
{
    double value;
    for (size_t i = 0; i < hl_density_dim(model); i++)
        if (hl_density_get_atom(model, i, &value)) {
            printf("atom           ");
            print_plain(hl_density_get_column(model, i).name, 0);
            printf(" = %g\n", value);
        }
    for (size_t k = 0; k < hl_density_patterns(model); k++) {
        hl_density_pattern p = hl_density_get_pattern(model, k);
        printf("pattern %-6zu probability %.4f, %zu columns at their atoms, %s\n", k + 1, p.probability, p.atoms,
               p.atoms == hl_density_dim(model) ? "no others"
               : p.rest                         ? "a model of the others"
                                                : "the others independent");
    }
    if (hl_density_patterns(model))
        printf("measure        log p is log P(pattern) + log p(other columns | pattern)\n");
}

static void print_density(const char *path, const hl_density *model, const subject *nets, long long bytes)
{
    hl_flow_spec flow = hl_flow_describe(hl_density_flow(model));
    hl_flow_solver solver = hl_density_solver(model);
    size_t dim = hl_density_dim(model), context = hl_density_context(model);
    printf("%s: a density model, %lld bytes\n\n", path, bytes);
    printf("kind           %s\nflows          %zu\ndimensions     %zu\ncontext        %zu\nprecision      %s\n",
           flow.kind ? flow.kind : "no flow", flow.flows, dim, context, hl_dtype_name(flow.net.dtype));
    print_members(model);
    print_patterns(model);
    if (flow.kind && hl_flow_is_continuous(flow.kind)) {
        printf("solver         %s, rtol %g, atol %g", solver.method, solver.rtol, solver.atol);
        if (solver.even_steps)
            printf(", %zu even steps to begin with", solver.even_steps);
        printf(solver.steps ? ", %zu steps\n" : "\n", solver.steps);
        hl_density_accuracy a = hl_density_get_accuracy(model);
        if (a.evaluations > 0)
            printf("accuracy       99 %% of rows within %.2g nats, all within %.2g, %.1f evaluations a row\n",
                   a.typical, a.worst, a.evaluations);
    }
    if (hl_density_factor(model))
        printf("columns        decorrelated\n");
    if (flow.kind)
        print_term(&flow.net);
    if (*hl_density_note(model)) {
        printf("note           ");
        print_plain(hl_density_note(model), 0);
        printf("\n");
    }
    printf("\n%-32s %16s %16s\n", "column", "mean", "deviation");
    for (size_t i = 0; i < dim + context; i++) {
        hl_density_column c = hl_density_get_column(model, i);
        print_plain(c.name, 32);
        printf(" %16.9g %16.9g%s", c.mean, c.deviation, i < dim ? "" : "  context");
        print_range(hl_density_get_range(model, i));
    }
    print_params(nets, hl_flow_nets(hl_density_flow(model)));
}

static void print_known(const hl_sde *sde, size_t i)
{
    hl_sde_spec p = hl_sde_describe(sde);
    const hl_sde_known *k = &p.known[i];
    if (k->drift && !hl_sde_forms_has(p.forms, 0, i)) {
        printf("known drift    ");
        print_plain(hl_sde_name(sde, i), 0);
        printf(" = %g", k->drift_constant);
        for (size_t j = 0; j < p.dim; j++)
            if (k->drift_linear[j] != 0) {
                printf(" %+g ", k->drift_linear[j]);
                print_plain(hl_sde_name(sde, j), 0);
            }
        printf("\n");
    }
    if (k->diffusion && !hl_sde_forms_has(p.forms, 1, i)) {
        printf("known diffusion ");
        print_plain(hl_sde_name(sde, i), 0);
        printf(" = %g\n", k->diffusion_value);
    }
}

static void print_forms(const hl_sde_forms *forms)
{
    for (int part = 0; part < 2; part++)
        if (hl_sde_forms_source(forms, part)) {
            printf("%s      ", part ? "diffusion" : "drift    ");
            print_plain(hl_sde_forms_source(forms, part), 0);
            printf("\n");
        }
    for (size_t k = 0; k < hl_sde_forms_constants(forms); k++) {
        hl_sde_constant c = hl_sde_forms_constant(forms, k);
        printf("constant       %s = %.6g, standard error %.2g\n", c.name, c.value, c.error);
    }
}

static void print_sde(const char *path, const hl_sde *sde, const subject *nets, double *scale, long long bytes)
{
    hl_sde_spec p = hl_sde_describe(sde);
    double first, last;
    hl_sde_get_scale(sde, &first, &last, scale, scale + p.dim);
    printf("%s: a stochastic equation, %lld bytes\n\n", path, bytes);
    printf("dimensions     %zu\ntime           %s\nprecision      %s\nnetwork        %s\n", p.dim,
           p.time ? "yes" : "no", hl_dtype_name(p.dtype), p.network);
    if (strcmp(p.network, "hollow") == 0)
        print_term(&p.net);
    else
        printf("layers         %d hidden of %zu\nactivation     %s\n", p.layers, p.hidden, p.activation);
    if (strcmp(p.density, "flow") == 0)
        printf("density        a flow of %zu networks, %s, %s, %zu units, curvature %s\n", p.flows, p.flow.conditioner,
               p.flow.transformer, p.flow.hidden, p.curvature);
    else
        printf("density        %zu Gaussians with %s covariances, %d hidden layers of %zu\n", p.components,
               p.diagonal ? "diagonal" : "full", p.density_layers, p.density_hidden);
    for (size_t i = 0; p.known && i < p.dim; i++)
        print_known(sde, i);
    print_forms(p.forms);
    printf("method         %s\n", hl_sde_method_name(hl_sde_trained_by(sde)));
    if (*hl_sde_note(sde)) {
        printf("note           ");
        print_plain(hl_sde_note(sde), 0);
        printf("\n");
    }
    printf("times          ");
    print_plain(hl_sde_name(sde, p.dim), 0);
    printf(", %.9g to %.9g\n\n%-32s %16s %16s\n", first, last, "column", "mean", "deviation");
    for (size_t i = 0; i < p.dim; i++) {
        print_plain(hl_sde_name(sde, i), 32);
        printf(" %16.9g %16.9g\n", scale[i], scale[p.dim + i]);
    }
    print_params(nets, 3);
}

static void json_term(cli_json *json, const hl_net_spec *s)
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

static void json_architecture(cli_json *json, const hl_net *net)
{
    hl_net_spec s = hl_net_describe(net);
    cli_json_open(json, "architecture", '{');
    cli_json_count(json, "dim", s.dim);
    cli_json_count(json, "context", s.context);
    cli_json_bool(json, "time", s.time != 0);
    json_term(json, &s);
    if (s.plus) {
        cli_json_open(json, "plus", '[');
        for (const hl_net_spec *term = s.plus; term; term = term->plus) {
            cli_json_open(json, NULL, '{');
            json_term(json, term);
            cli_json_close(json, '}');
        }
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
    cli_json_text(json, "dtype", hl_dtype_name(s.dtype));
}

static void json_params(cli_json *json, const subject *net)
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
}

static void json_density(cli_json *json, const hl_density *model, const subject *nets)
{
    hl_flow_spec flow = hl_flow_describe(hl_density_flow(model));
    hl_flow_solver solver = hl_density_solver(model);
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
        cli_json_bool(json, "context", i >= dim);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_bool(json, "decorrelated", hl_density_factor(model) != NULL);
    if (flow.kind) {
        cli_json_open(json, "solver", '{');
        cli_json_text(json, "method", solver.method);
        cli_json_exact(json, "rtol", solver.rtol);
        cli_json_exact(json, "atol", solver.atol);
        cli_json_count(json, "steps", solver.steps);
        cli_json_count(json, "even_steps", solver.even_steps);
        cli_json_exact(json, "typical_error", hl_density_get_accuracy(model).typical);
        cli_json_exact(json, "worst_error", hl_density_get_accuracy(model).worst);
        cli_json_exact(json, "evaluations", hl_density_get_accuracy(model).evaluations);
        cli_json_close(json, '}');
    }
    cli_json_text(json, "note", hl_density_note(model));
    if (flow.kind)
        json_architecture(json, nets[0].net);
    cli_json_open(json, "networks", '[');
    for (size_t i = 0; i < hl_flow_nets(hl_density_flow(model)); i++) {
        cli_json_open(json, NULL, '{');
        json_params(json, &nets[i]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_known(cli_json *json, const hl_sde_spec *p)
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

static void json_forms(cli_json *json, const hl_sde_forms *forms)
{
    if (!forms)
        return;
    for (int part = 0; part < 2; part++)
        if (hl_sde_forms_source(forms, part))
            cli_json_text(json, part ? "diffusion_form" : "drift_form", hl_sde_forms_source(forms, part));
    sde_print_constants(json, forms);
}

static void json_sde(cli_json *json, const hl_sde *sde, const subject *nets, double *scale)
{
    static const char *const names[] = { "drift", "diffusion", "density" };
    hl_sde_spec p = hl_sde_describe(sde);
    double first, last;
    hl_sde_get_scale(sde, &first, &last, scale, scale + p.dim);
    cli_json_text(json, "kind", "sde");
    cli_json_text(json, "network", p.network);
    cli_json_bool(json, "time", p.time != 0);
    cli_json_text(json, "dtype", hl_dtype_name(p.dtype));
    cli_json_text(json, "density", p.density);
    if (strcmp(p.density, "flow") == 0) {
        cli_json_count(json, "flows", p.flows);
    } else {
        cli_json_count(json, "components", p.components);
        cli_json_bool(json, "diagonal", p.diagonal != 0);
    }
    json_known(json, &p);
    json_forms(json, p.forms);
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
    for (size_t i = 0; i < 3; i++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", names[i]);
        json_params(json, &nets[i]);
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

static void print_json(const char *path, const holding *h, long long bytes)
{
    cli_json json = { stdout, false };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", path);
    cli_json_count(&json, "bytes", (uint64_t)bytes);
    if (h->density) {
        json_density(&json, h->density, h->nets);
    } else if (h->sde) {
        json_sde(&json, h->sde, h->nets, h->scale);
    } else {
        json_architecture(&json, h->nets[0].net);
        json_params(&json, &h->nets[0]);
    }
    cli_json_close(&json, '}');
    putchar('\n');
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

static hl_status load(hl_context *ctx, const char *path, holding *h)
{
    static const char *const names[] = { "drift.", "diffusion.", "density." };
    bool density = cli_is_model(path, "hollow-density"), sde = cli_is_model(path, "hollow-sde");
    hl_status status = density ? hl_density_load(ctx, path, &h->density)
                       : sde   ? hl_sde_load(ctx, path, &h->sde)
                               : hl_net_load(ctx, path, &h->net);
    h->count = density ? hl_flow_nets(hl_density_flow(h->density)) : sde ? 3 : 1;
    if (status == HL_OK) {
        h->nets = calloc(h->count + 1, sizeof *h->nets);
        h->scale = calloc(hl_sde_describe(h->sde).dim + 1, 2 * sizeof *h->scale);
        status = h->nets && h->scale ? HL_OK : HL_ERR_NOMEM;
    }
    for (size_t i = 0; i < h->count && status == HL_OK; i++) {
        status = make_subject(ctx,
                              density ? hl_flow_net(hl_density_flow(h->density), i)
                              : sde   ? hl_sde_net(h->sde, i)
                                      : h->net,
                              &h->nets[i]);
        if (sde)
            snprintf(h->nets[i].prefix, sizeof h->nets[i].prefix, "%s", names[i]);
        else if (h->count > 1)
            snprintf(h->nets[i].prefix, sizeof h->nets[i].prefix, "%zu.", i);
    }
    return status;
}

static int describe(hl_context *ctx, const char *path, bool as_json, long long bytes)
{
    holding h = { 0 };
    if (cli_is_model(path, "hollow-vae"))
        return vae_info(&cli_info, ctx, path, as_json, bytes);
    hl_status status = load(ctx, path, &h);
    int result = status == HL_OK ? CLI_OK : cli_fail_library(&cli_info, ctx, status);
    if (status == HL_OK && as_json)
        print_json(path, &h, bytes);
    else if (status == HL_OK && h.density)
        print_density(path, h.density, h.nets, bytes);
    else if (status == HL_OK && h.sde)
        print_sde(path, h.sde, h.nets, h.scale, bytes);
    else if (status == HL_OK)
        print_net(path, h.nets, bytes);
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
    result = status == HL_OK ? describe(ctx, path[0], cli_json_wanted(), (long long)st.st_size)
                             : cli_fail_library(&cli_info, ctx, status);
    hl_context_free(ctx);
    return result;
}
