/* fit_options.c - the options of hl_vae_fit. */
#include <string.h>

#include "nn/net.h"
#include "vae/fit.h"

static const char *const nets[] = { "fc", "small", "mid", "paper", "linear", NULL };
static const char *const posteriors[] = { "vae", "planar", "iaf", "sylvester", "ffjord", "hollow", NULL };
static const char *const likelihoods[] = { "bernoulli", "gaussian", NULL };
static const char *const traces[] = { "exact", "hutchinson", NULL };
static const char *const codes[] = { "input", "weights", NULL };
static const char *const optimizers[] = { "adam", "adamax", NULL };
static const char *const dtypes[] = { "f32", "f64", NULL };

#define FLAG(name, help)                                                                                               \
    {                                                                                                                  \
        name, HL_OPTION_FLAG, NULL, 0, 0, NULL, "off", help, NULL                                                      \
    }
#define INTEGER(name, low, high, otherwise, help, applies)                                                             \
    {                                                                                                                  \
        name, HL_OPTION_INTEGER, "N", low, high, NULL, otherwise, help, applies                                        \
    }
#define REAL(name, value, low, high, otherwise, help)                                                                  \
    {                                                                                                                  \
        name, HL_OPTION_REAL, value, low, high, NULL, otherwise, help, NULL                                            \
    }
#define CHOICE(name, value, choices, otherwise, help, applies)                                                         \
    {                                                                                                                  \
        name, HL_OPTION_CHOICE, value, 0, 0, choices, otherwise, help, applies                                         \
    }

/* clang-format off */
static const hl_option options[] = {
    CHOICE("posterior", "NAME", posteriors, "vae", "approximate posterior", NULL),
    CHOICE("net", "NAME", nets, "fc", "encoder and decoder", NULL),
    CHOICE("likelihood", "NAME", likelihoods, "bernoulli", "distribution of x given z", NULL),
    INTEGER("latent", 1, 4096, "64, at most the values per row", "dimension of z", NULL),
    INTEGER("flows", 1, 256, "16 for planar, else 4", "number of transformations", "posterior=planar|iaf|sylvester"),
    INTEGER("columns", 1, 64, "min(8, latent)", "columns of Q", "posterior=sylvester"),
    INTEGER("hidden", 1, 65536, "320 for iaf, else 64", "units of each hidden layer", "posterior=iaf|ffjord|hollow"),
    INTEGER("layers", 1, 8, "2", "hidden layers of the vector field", "posterior=ffjord|hollow"),
    INTEGER("features", 2, 65536, "32", "number of features in each h_i", "posterior=hollow"),
    INTEGER("width", 1, 65536, "32", "units of each transformer layer", "posterior=hollow"),
    INTEGER("rank", 1, 1024, "4", "rank of the update of the weights by the code", "posterior=ffjord|hollow"),
    CHOICE("code", "NAME", codes, "input", "effect of the code on the vector field: an input only, or also on its weights",
           "posterior=hollow"),
    CHOICE("activation", "NAME", hl_activation_names, "tanh", "activation of the vector field", "posterior=ffjord|hollow"),
    CHOICE("trace", "NAME", traces, "hutchinson for ffjord, else exact", "computation of the divergence",
           "posterior=ffjord|hollow"),
    INTEGER("ode-steps", 1, 64, "2", "RK4 steps in training; doubled if they are too few", "posterior=ffjord|hollow"),
    INTEGER("epochs", 1, 1e6, "30, or more for few rows (iters)", "passes through the training rows", NULL),
    INTEGER("iters", 1, 1e12, "from epochs; at least 4000 for nets fc and linear, 1500 for the others, if neither is given", "iterations", NULL),
    REAL("minutes", "M", 0, 1e6, "no limit", "time limit of training; results are then not reproducible"),
    INTEGER("batch", 1, 65536, "128", "rows per batch", NULL),
    INTEGER("importance", 1, 1000, "1", "samples per row in the training loss (IWAE-k)", NULL),
    REAL("warmup", "X", 0, 1, "0.2", "fraction of the run in which beta increases from 0 to 1"),
    CHOICE("optimizer", "NAME", optimizers, "adam", "optimiser", NULL),
    REAL("lr", "X", 1e-12, 10, "2e-3; 2e-2 for net linear", "largest learning rate"),
    REAL("last-lr", "X", 1e-12, 1, "0.01", "final learning rate as a fraction of lr (cosine schedule)"),
    REAL("clip", "X", 0, 1e300, "100", "largest gradient norm (clipping); 0: no limit"),
    REAL("average", "X", 0, 0.999999, "0.99", "decay of the moving average of the parameters; 0: no average"),
    INTEGER("patience", 1, 100000, "10", "stop after N validations without improvement", NULL),
    REAL("validation-share", "X", 0, 0.9, "0.1", "fraction of the rows used for validation if none are given"),
    INTEGER("validation-rows", 1, 1e9, "2000", "largest number of rows in a validation", NULL),
    FLAG("dynamic", "draw bits from gray values again in every epoch"),
    FLAG("freeze", "train the posterior only; keep the given encoder and decoder"),
    INTEGER("seed", 0, 9e15, "0", "random seed", NULL),
    CHOICE("dtype", "f32|f64", dtypes, "f32", "precision", NULL),
    { 0 },
};
/* clang-format on */

const hl_option *hl_vae_fit_options(void)
{
    return options;
}

hl_vae_spec hl_vae_spec_of(const hl_vae_data *data, const hl_settings *s)
{
    hl_vae_spec spec = { .dim = data->dim,
                         .net = nets[hl_settings_choice(s, "net", 0)],
                         .posterior = posteriors[hl_settings_choice(s, "posterior", 0)],
                         .likelihood = likelihoods[hl_settings_choice(s, "likelihood", 0)],
                         .latent = hl_settings_integer(s, "latent", 0),
                         .flows = hl_settings_integer(s, "flows", 0),
                         .columns = hl_settings_integer(s, "columns", 0),
                         .hidden = hl_settings_integer(s, "hidden", 0),
                         .layers = (int)hl_settings_integer(s, "layers", 0),
                         .features = hl_settings_integer(s, "features", 0),
                         .width = hl_settings_integer(s, "width", 0),
                         .rank = hl_settings_integer(s, "rank", 0),
                         .activation = hl_activation_names[hl_settings_choice(s, "activation", 0)],
                         .code = codes[hl_settings_choice(s, "code", 0)],
                         .trace = hl_settings_text(s, "trace"),
                         .dtype = hl_settings_choice(s, "dtype", 0) ? HL_F64 : HL_F32 };
    for (size_t i = 0; i < 3; i++)
        spec.image[i] = data->image[i];
    return spec;
}

/* Iterations for few rows: on 1,500 images of digits, 8 x 8, 390 iterations ended 2.4 nats behind 4,000. */
enum { LEAST_ITERATIONS = 4000, LEAST_CONVOLVED = 1500 };

hl_vae_train_options hl_vae_train_options_of(const hl_settings *s, size_t rows)
{
    const char *net = nets[hl_settings_choice(s, "net", 0)];
    bool linear = strcmp(net, "linear") == 0, convolves = !linear && strcmp(net, "fc") != 0;
    hl_vae_train_options o = { .batch = hl_settings_integer(s, "batch", 128),
                               .importance = hl_settings_integer(s, "importance", 1),
                               .warmup = hl_settings_real(s, "warmup", 0.2),
                               .last_rate = hl_settings_real(s, "last-lr", 0.01),
                               .patience = hl_settings_integer(s, "patience", 10),
                               .validation_rows = hl_settings_integer(s, "validation-rows", 2000),
                               .ode_steps = hl_settings_integer(s, "ode-steps", 2),
                               .dynamic = hl_settings_flag(s, "dynamic", false),
                               .frozen = hl_settings_flag(s, "freeze", false),
                               .seed = hl_settings_integer(s, "seed", 0),
                               .optimizer = { .method = optimizers[hl_settings_choice(s, "optimizer", 0)],
                                              .rate = hl_settings_real(s, "lr", linear ? 2e-2 : 2e-3),
                                              .clip = hl_settings_real(s, "clip", 100),
                                              .average = hl_settings_real(s, "average", 0.99) } };
    o.batch = o.batch < rows ? o.batch : rows;
    size_t batches = rows / o.batch;
    o.iterations = hl_settings_integer(s, "iters", hl_settings_integer(s, "epochs", 30) * batches);
    if (!hl_settings_integer(s, "iters", 0) && !hl_settings_integer(s, "epochs", 0)) {
        size_t least = convolves ? LEAST_CONVOLVED : LEAST_ITERATIONS;
        o.iterations = o.iterations > least ? o.iterations : least;
    }
    size_t often = o.iterations / 10 + 1,
           rare = o.iterations / 40; /* 10 to 40 times, in long runs every epoch or less */
    o.validate_every = often < batches ? often : rare > batches ? rare : batches;
    return o;
}
