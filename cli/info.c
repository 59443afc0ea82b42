/* info.c - `hollow info`: what a model file holds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"

typedef struct settings {
    bool json;
} settings;

static const cli_option options[] = {
    { "json", CLI_FLAG, offsetof(settings, json), NULL, "print one line of JSON instead", 0, 0, NULL },
    { 0 },
};

static const char text[] = "Prints the architecture of the network in a model file and its parameters:\n"
                           "name, shape, number of values, and how many of these are zero for good, as a\n"
                           "mask excludes them. Of a density model also its kind, its columns with their\n"
                           "means and deviations, its solver and its note.\n";

static int run(int argc, char **argv);
const cli_command cli_info = { "info", "MODEL [--json]", "what a model file holds", text, options, 1, 1, run };

/* Weights that a mask excludes: those which a random initialisation leaves zero. Biases start at zero; they have one axis, or
 * a name that says so. */
static size_t masked_values(const hl_net *random, size_t index)
{
    hl_net_param p;
    size_t count = 0;
    if (hl_net_param_get(random, index, &p) != HL_OK || strstr(p.name, ".bias"))
        return 0;
    for (size_t i = 0; i < p.size; i++)
        count += cli_get(hl_net_describe(random).dtype, p.values, i) == 0;
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

/* A network, and one of the same architecture with random weights. */
typedef struct subject {
    const hl_net *net;
    hl_net *random;
} subject;

static void print_params(const subject *nets, size_t count)
{
    size_t values = 0, masked = 0, trainable = 0;
    printf("\n%-32s %16s %10s %10s\n", "parameter", "shape", "values", "masked");
    for (size_t n = 0; n < count; n++) {
        for (size_t i = 0; i < hl_net_param_count(nets[n].net); i++) {
            hl_net_param p;
            char shape[120], name[160], number[24] = "";
            hl_net_param_get(nets[n].net, i, &p);
            shape_text(&p, shape, sizeof shape);
            if (count > 1)
                snprintf(number, sizeof number, "%zu.", n);
            snprintf(name, sizeof name, "%s%s", number, p.name);
            size_t zero = masked_values(nets[n].random, i);
            printf("%-32s %16s %10zu %10zu\n", name, shape, p.size, zero);
            values += p.size;
            masked += zero;
        }
        trainable += hl_net_size(nets[n].net);
    }
    printf("%-32s %16s %10zu %10zu\n\ntrainable      %zu values\n", "total", "", values, masked, trainable);
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
static void print_plain(const char *text, int width)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        putchar(c < 0x20 || c == 0x7f ? ' ' : c);
        width -= (c & 0xc0) != 0x80; /* the first byte of a character */
    }
    printf("%*s", width > 0 ? width : 0, "");
}

static void print_density(const char *path, const hl_density *model, const subject *nets, long long bytes)
{
    hl_flow_spec flow = hl_flow_describe(hl_density_flow(model));
    hl_flow_solver solver = hl_density_solver(model);
    size_t dim = hl_density_dim(model), context = hl_density_context(model);
    printf("%s: a density model, %lld bytes\n\n", path, bytes);
    printf("kind           %s\nflows          %zu\ndimensions     %zu\ncontext        %zu\nprecision      %s\n",
           flow.kind, flow.flows, dim, context, hl_dtype_name(flow.net.dtype));
    if (strcmp(flow.kind, "cnf") == 0) {
        printf("solver         %s, rtol %g, atol %g", solver.method, solver.rtol, solver.atol);
        printf(solver.steps ? ", %zu steps\n" : "\n", solver.steps);
    }
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
        printf(" %16.9g %16.9g%s\n", c.mean, c.deviation, i < dim ? "" : "  context");
    }
    print_params(nets, hl_flow_nets(hl_density_flow(model)));
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

static void json_density(cli_json *json, const hl_density *model, const subject *nets)
{
    hl_flow_spec flow = hl_flow_describe(hl_density_flow(model));
    hl_flow_solver solver = hl_density_solver(model);
    size_t dim = hl_density_dim(model);
    cli_json_text(json, "kind", flow.kind);
    cli_json_count(json, "flows", flow.flows);
    cli_json_open(json, "columns", '[');
    for (size_t i = 0; i < dim + hl_density_context(model); i++) {
        hl_density_column c = hl_density_get_column(model, i);
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", c.name);
        cli_json_exact(json, "mean", c.mean);
        cli_json_exact(json, "deviation", c.deviation);
        cli_json_bool(json, "context", i >= dim);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "solver", '{');
    cli_json_text(json, "method", solver.method);
    cli_json_exact(json, "rtol", solver.rtol);
    cli_json_exact(json, "atol", solver.atol);
    cli_json_count(json, "steps", solver.steps);
    cli_json_close(json, '}');
    cli_json_text(json, "note", hl_density_note(model));
    json_architecture(json, nets[0].net);
    cli_json_open(json, "networks", '[');
    for (size_t i = 0; i < hl_flow_nets(hl_density_flow(model)); i++) {
        cli_json_open(json, NULL, '{');
        json_params(json, &nets[i]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_json(const char *path, const hl_density *model, const subject *nets, long long bytes)
{
    cli_json json = { stdout, false };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", path);
    cli_json_count(&json, "bytes", (uint64_t)bytes);
    if (model) {
        json_density(&json, model, nets);
    } else {
        json_architecture(&json, nets[0].net);
        json_params(&json, &nets[0]);
    }
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- from the call to the file ---- */

/* Does the file say that it is a density model? Its format is the first of the metadata, which come first. */
static bool is_density(const char *path)
{
    char start[512] = "";
    FILE *file = fopen(path, "rb");
    size_t count = file ? fread(start, 1, sizeof start - 1, file) : 0;
    if (file)
        fclose(file);
    for (size_t i = 8; i < count; i++) /* after the header's length */
        if (strncmp(start + i, "\"hollow-density", 15) == 0)
            return true;
    return false;
}

static hl_status make_subject(hl_context *ctx, const hl_net *net, subject *s)
{
    hl_net_spec spec = hl_net_describe(net);
    s->net = net;
    hl_status status = hl_net_create(ctx, &spec, &s->random);
    return status == HL_OK ? hl_net_init(s->random, 1) : status;
}

static int describe(hl_context *ctx, const char *path, bool as_json, long long bytes)
{
    hl_density *model = NULL;
    hl_net *net = NULL;
    subject *nets = NULL;
    bool density = is_density(path);
    hl_status status = density ? hl_density_load(ctx, path, &model) : hl_net_load(ctx, path, &net);
    size_t count = density ? hl_flow_nets(hl_density_flow(model)) : 1;
    if (status == HL_OK && !(nets = calloc(count, sizeof *nets)))
        status = HL_ERR_NOMEM;
    for (size_t i = 0; i < count && status == HL_OK; i++)
        status = make_subject(ctx, density ? hl_flow_net(hl_density_flow(model), i) : net, &nets[i]);
    int result = status == HL_OK ? CLI_OK : cli_fail_library(&cli_info, ctx, status);
    if (status == HL_OK && as_json)
        print_json(path, model, nets, bytes);
    else if (status == HL_OK && density)
        print_density(path, model, nets, bytes);
    else if (status == HL_OK)
        print_net(path, nets, bytes);
    for (size_t i = 0; nets && i < count; i++)
        hl_net_free(nets[i].random);
    free(nets);
    hl_net_free(net);
    hl_density_free(model);
    return result;
}

static int run(int argc, char **argv)
{
    settings set = { 0 };
    const char *path[2];
    struct stat st;
    int result = cli_parse(&cli_info, argc, argv, &set, path);
    if (result >= 0)
        return result;
    if (stat(path[0], &st) != 0)
        return cli_fail(&cli_info, CLI_WRONG, "%s: %s", path[0], strerror(errno));
    if (S_ISDIR(st.st_mode))
        return cli_fail(&cli_info, CLI_WRONG, "%s: %s", path[0], strerror(EISDIR));
    hl_context *ctx = NULL;
    hl_status status = hl_context_create(NULL, &ctx);
    result = status == HL_OK ? describe(ctx, path[0], set.json, (long long)st.st_size)
                             : cli_fail_library(&cli_info, ctx, status);
    hl_context_free(ctx);
    return result;
}
