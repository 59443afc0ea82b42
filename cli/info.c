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
                           "mask excludes them.\n";

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

static void print_text(const char *path, const hl_net *net, const hl_net *random, long long bytes)
{
    hl_net_spec s = hl_net_describe(net);
    size_t values = 0, masked = 0;
    printf("%s: a hollow network, %lld bytes\n\n", path, bytes);
    printf("dimensions     %zu\ncontext        %zu\ntime           %s\nprecision      %s\n", s.dim, s.context,
           s.time ? "yes" : "no", hl_dtype_name(s.dtype));
    print_term(&s);
    printf("\n");
    printf("%-32s %16s %10s %10s\n", "parameter", "shape", "values", "masked");
    for (size_t i = 0; i < hl_net_param_count(net); i++) {
        hl_net_param p;
        char shape[120];
        hl_net_param_get(net, i, &p);
        shape_text(&p, shape, sizeof shape);
        size_t zero = masked_values(random, i);
        printf("%-32s %16s %10zu %10zu\n", p.name, shape, p.size, zero);
        values += p.size;
        masked += zero;
    }
    printf("%-32s %16s %10zu %10zu\n\ntrainable      %zu values\n", "total", "", values, masked, hl_net_size(net));
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

static void print_json(const char *path, const hl_net *net, const hl_net *random, long long bytes)
{
    hl_net_spec s = hl_net_describe(net);
    cli_json json = { stdout, false };
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "file", path);
    cli_json_count(&json, "bytes", (uint64_t)bytes);
    cli_json_open(&json, "architecture", '{');
    cli_json_count(&json, "dim", s.dim);
    cli_json_count(&json, "context", s.context);
    cli_json_bool(&json, "time", s.time != 0);
    json_term(&json, &s);
    if (s.plus) {
        cli_json_open(&json, "plus", '[');
        for (const hl_net_spec *term = s.plus; term; term = term->plus) {
            cli_json_open(&json, NULL, '{');
            json_term(&json, term);
            cli_json_close(&json, '}');
        }
        cli_json_close(&json, ']');
    }
    cli_json_close(&json, '}');
    cli_json_text(&json, "dtype", hl_dtype_name(s.dtype));
    cli_json_count(&json, "trainable", hl_net_size(net));
    cli_json_open(&json, "parameters", '[');
    for (size_t i = 0; i < hl_net_param_count(net); i++) {
        hl_net_param p;
        hl_net_param_get(net, i, &p);
        cli_json_open(&json, NULL, '{');
        cli_json_text(&json, "name", p.name);
        cli_json_open(&json, "shape", '[');
        for (int a = 0; a < p.rank; a++)
            cli_json_count(&json, NULL, p.dims[a]);
        cli_json_close(&json, ']');
        cli_json_count(&json, "values", p.size);
        cli_json_count(&json, "masked", masked_values(random, i));
        cli_json_close(&json, '}');
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
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
    hl_net *net = NULL, *random = NULL;
    hl_status status = hl_context_create(NULL, &ctx);
    if (status == HL_OK)
        status = hl_net_load(ctx, path[0], &net);
    if (status == HL_OK) {
        hl_net_spec spec = hl_net_describe(net);
        status = hl_net_create(ctx, &spec, &random);
    }
    if (status == HL_OK)
        status = hl_net_init(random, 1);
    result = CLI_OK;
    if (status != HL_OK)
        result = cli_fail_library(&cli_info, ctx, status);
    else if (set.json)
        print_json(path[0], net, random, (long long)st.st_size);
    else
        print_text(path[0], net, random, (long long)st.st_size);
    hl_net_free(random);
    hl_net_free(net);
    hl_context_free(ctx);
    return result;
}
