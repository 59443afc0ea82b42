/* density_fit_options.c - the options of hl_density_fit. */
#include "flow/flow.h"
#include "hollow/density_fit.h"
#include "nn/net.h"

/* Those that continuous flows can have. */
static const char *const conditioners[] = { "made", "conv", "attention", "tree", "sum", NULL };
static const char *const traces[] = { "exact", "hutchinson", "brute", NULL };
static const char *const losses[] = { "default", "nll", "flow-matching", "score", NULL };
static const char *const dtypes[] = { "f32", "f64", NULL };
static const char *const optimizers[] = { "adamw", "adam", "adamax", "sgd", NULL };
static const char *const members[] = { "all", "flow", "mixture", NULL };
static const char *const recipes[] = { "default", "fast", "best", NULL };
static const char *const switches[] = { "on", "off", NULL };

#define FLAG(name, help)                                                                                               \
    {                                                                                                                  \
        name, HL_OPTION_FLAG, NULL, 0, 0, NULL, "off", help, NULL                                                      \
    }
#define INTEGER(name, low, high, otherwise, help, applies)                                                             \
    {                                                                                                                  \
        name, HL_OPTION_INTEGER, "N", low, high, NULL, otherwise, help, applies                                        \
    }
#define REAL(name, value, low, high, otherwise, help, applies)                                                         \
    {                                                                                                                  \
        name, HL_OPTION_REAL, value, low, high, NULL, otherwise, help, applies                                         \
    }
#define TEXT(name, value, otherwise, help, applies)                                                                    \
    {                                                                                                                  \
        name, HL_OPTION_TEXT, value, 0, 0, NULL, otherwise, help, applies                                              \
    }
#define CHOICE(name, value, choices, otherwise, help, applies)                                                         \
    {                                                                                                                  \
        name, HL_OPTION_CHOICE, value, 0, 0, choices, otherwise, help, applies                                         \
    }

/* clang-format off */
static const hl_option options[] = {
    CHOICE("members", "NAME", members, "all", "what the model is a weighted sum of: a flow, mixtures of t distributions", NULL),
    CHOICE("recipe", "NAME", recipes, "default", "fast: a tenth of the iterations and up to 64 parts; best: five times, up to 1024", NULL),
    CHOICE("model", "NAME", hl_flow_kind_names, "cnf", "kind of flow", NULL),
    CHOICE("conditioner", "NAME", conditioners, "made to 512 columns, tree above", "network that makes h", "model=cnf"),
    TEXT("image", "HxW", NULL, "shape of a row for conditioner conv: HxW or CxHxW", "conditioner=conv"),
    INTEGER("flows", 1, 1000, "1 for cnf, else 5", "networks one after the other", NULL),
    INTEGER("hidden", 1, 1 << 20, "by columns and model", "units of the conditioner's layers", NULL),
    INTEGER("hidden-layers", 1, 64, "1 for cnf to 3 columns, else 2", "layers of the conditioner", NULL),
    INTEGER("features", 2, 65536, "16 for cnf", "values of each h_i", NULL),
    INTEGER("width", 1, 1 << 20, "64 to 3 columns, else 32", "units of the transformer's layers", NULL),
    INTEGER("layers", 1, 64, "3 to 3 columns, else 2", "layers of the transformer", NULL),
    CHOICE("activation", "NAME", hl_activation_names, "tanh to 3 columns, else swish", "of all layers", NULL),
    CHOICE("trace", "NAME", traces, "exact", "how training computes the divergence", "model=cnf"),
    CHOICE("loss", "NAME", losses, "flow-matching, then nll", "what training minimises", NULL),
    CHOICE("transport", "on|off", switches, "on to 8 columns", "flow matching pairs by optimal transport", "model=cnf"),
    CHOICE("decorrelate", "on|off", switches, "where they are strong, to 512 columns",
           "take linear correlations out first", NULL),
    TEXT("solver", "NAME", "dopri5", "of the density and, without ode-steps, of training: tsit5, adams-jacobi, auto, ...",
         "model=cnf"),
    REAL("rtol", "X", 1e-16, 1, "1e-5", "relative tolerance of the density", "model=cnf"),
    REAL("atol", "X", 1e-100, 1, "1e-5", "absolute tolerance of the density", "model=cnf"),
    CHOICE("calibrate", "on|off", switches, "on without solver, rtol and atol",
           "choose the density's solver by its accuracy on validation rows", "model=cnf"),
    INTEGER("ode-steps", 1, 256, "8 to 2 columns, else 4", "steps of rk4 in training, doubled when too few", "model=cnf"),
    INTEGER("iters", 1, 1e12, "2000 to 3 columns, else 1000; twice that for a flow alone", "iterations of the flow", NULL),
    REAL("minutes", "M", 0, 1e6, "no limit", "stop after this time (then runs do not repeat)", NULL),
    INTEGER("batch", 1, 1000000, "512 to 2 columns, 128 above 512, else 256", "rows of a batch", NULL),
    CHOICE("optimizer", "NAME", optimizers, "adamw", "how gradients become steps", NULL),
    REAL("lr", "X", 1e-12, 10, "1e-2 to 3 columns, else 5e-3", "largest learning rate", NULL),
    REAL("weight-decay", "X", 0, 10, "0 with many rows, more with few", "of the weights", NULL),
    REAL("jitter", "X", 0, 10, "0 with many rows, 0.3 with few",
         "noise on rows of training, in deviations, falls from this to 0", NULL),
    REAL("straight", "W", 0, 1e6, "0", "weight of the path's mean |f|^2 in nll training: straight paths, fewer evaluations",
         "model=cnf"),
    INTEGER("warmup", 1, 1e12, "a fiftieth of all", "iterations in which the rate rises", NULL),
    REAL("last-lr", "X", 1e-12, 1, "0.01", "share of the rate at the end of its cosine", NULL),
    REAL("clip", "X", 0, 1e300, "10", "largest norm of a gradient; 0: no limit", NULL),
    REAL("average", "X", 0, 0.999999, "0.99", "decay of the average of the weights; 0: no average", NULL),
    REAL("beta1", "X", 0, 0.999999, "0.9", "decay of the average of gradients; 0: no average", NULL),
    INTEGER("patience", 1, 100000, "8", "stop after N validations without a better one", NULL),
    REAL("validation-share", "X", 0, 0.9, "0.1", "part of the rows for validation, where none are given", NULL),
    INTEGER("seed", 0, 9e15, "0", "of everything random", NULL),
    CHOICE("dtype", "f32|f64", dtypes, "f32", "precision of the network", NULL),
    TEXT("bounds", "LIST", NULL, "bounds of columns that draws never leave, such as 'a=0:1,b=0:'", NULL),
    CHOICE("atoms", "on|off", switches, "on", "a value that many rows of a column have gets a probability of its own", NULL),
    FLAG("dequantize", "add noise to tied columns, too, not to whole-numbered ones alone"),
    FLAG("keep-steps", "add no noise to whole-numbered columns"),
    { 0 },
};
/* clang-format on */

const hl_option *hl_density_fit_options(void)
{
    return options;
}
